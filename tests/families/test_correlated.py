"""Lines that count on a model, from the command line: checked, solved, verified, run, charged, explained, swept."""

from __future__ import annotations

import csv
import json
import random
from fractions import Fraction
from pathlib import Path

import pytest

from privspec.cli import run_command_line
from privspec.core.diagnostics import DataError
from privspec.execute.ledger import spends_of_plan
from privspec.manual import template_text
from privspec.noise.samplers import SimulationRandomness
from privspec.plan import Plan
from tests.plans import solved, solved_text

NUMERIC = """spec steps
parameters:
  start = [0.2, 0.5, 0.3]
  step = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0, 0.5, 0.5]]
variables:
  input x in (0..2)^6
  output O
background:
  x[1] ~ categorical(start)
  x[i] ~ categorical(step[x[i-1]])
loss: E[ (O - sum(x))^2 ]
privacy: O is 1-DP wrt x, replacing one entry
"""


@pytest.fixture
def hours(tmp_path: Path) -> tuple[Path, list[str]]:
    dice = random.Random(3)
    words = [dice.choice(["rest", "walk", "sport"]) for _ in range(12)]
    path = tmp_path / "hours.csv"
    path.write_text("hour\n" + "\n".join(words) + "\n", "utf-8")
    return path, words


def test_the_whole_way(tmp_path: Path, hours: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    spec, plan = tmp_path / "readings.priv", tmp_path / "readings.plan.json"
    spec.write_text(template_text("correlated_readings"), "utf-8")
    assert run_command_line(["check", str(spec)]) == 0
    assert "given the model" in capsys.readouterr().out
    assert run_command_line(["check", str(spec), "--problem"]) == 0
    assert "other entries drawn from the model given that one" in capsys.readouterr().out
    assert run_command_line(["solve", str(spec), "--set", "T=12", "-o", str(plan)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "optimal" in said
    assert "If the model is wrong" in said
    assert "noise for one entry alone (differential privacy)" in said
    assert "group privacy: all entries as one unit" in said
    assert run_command_line(["verify", str(plan)]) == 0
    assert "by the laws of the answer given each value" in capsys.readouterr().out
    out, ledger = tmp_path / "out.json", tmp_path / "ledger.db"
    run = ["run", str(plan), "--input", f"hour={hours[0]}", "--ledger", str(ledger), "-o", str(out)]
    assert run_command_line([*run, "--new-ledger"]) == 0
    release = json.loads(out.read_text("utf-8"))
    assert release["outputs"]["O"]["values"][0] == int(release["outputs"]["O"]["values"][0])
    assert release["guarantees"][0]["neighbours"] == "one entry against any other value, given the model"
    capsys.readouterr()
    assert run_command_line(["ledger", "show", str(ledger)]) == 0
    shown = capsys.readouterr().out
    assert "wrt hour, replacing one entry" in shown
    assert "given the model" not in shown
    assert run_command_line([*run[:-1], str(tmp_path / "again.json")]) == 6
    for reader in ("public", "auditor", "engineer"):
        assert run_command_line(["explain", str(plan), "--for", reader, "-o", str(tmp_path / f"{reader}.md")]) == 0
        page = " ".join((tmp_path / f"{reader}.md").read_text("utf-8").split())
        assert "declared and not checked" in page
        assert "hatever the model" in page
    frontier = tmp_path / "frontier.csv"
    sweep = ["sweep", str(spec), "--set", "T=6", "--over", "epsilon=0.5,1,2", "-o", str(frontier)]
    assert run_command_line(sweep) == 0
    with frontier.open(encoding="utf-8") as file:
        losses = [float(row["loss"]) for row in csv.DictReader(file)]
    assert len(losses) == 3
    assert losses == sorted(losses, reverse=True)


def test_what_is_run_is_the_count_and_whole_noise(hours: tuple[Path, list[str]]) -> None:
    plan = Plan(solved("correlated_readings", T=12))
    active = sum(word != "rest" for word in hours[1])
    values = [
        plan.run({"hour": data}, randomness=SimulationRandomness(seed))["O"].item()
        for seed in range(300)
        for data in (hours[1],)
    ]
    scale = float(Fraction(plan.document["mechanism"]["scale"]))
    assert all(value == int(value) for value in values)
    assert abs(sum(values) / 300 - active) < 5 * 1.5 * scale / 300**0.5
    assert plan.run({"hour": hours[0]}, randomness=SimulationRandomness(0))["O"].item() == values[0]


def test_an_entry_that_is_none_counts_as_the_first(hours: tuple[Path, list[str]]) -> None:
    plan, words = Plan(solved("correlated_readings", T=12)), hours[1]
    strange = ["?" if word == "rest" else word for word in words]
    one, other = (plan.run({"hour": data}, randomness=SimulationRandomness(1)) for data in (words, strange))
    assert one["O"].item() == other["O"].item()
    with pytest.raises(DataError) as caught:
        plan.run({"hour": strange}, strict=True, randomness=SimulationRandomness(1))
    assert caught.value.diagnostics[0].code == "PS0809"
    with pytest.raises(DataError):
        plan.run({"hour": words[:5]}, randomness=SimulationRandomness(1))


def test_a_ledger_is_charged_what_holds_whatever_the_model() -> None:
    plan = solved("correlated_readings", T=12)
    ((unit, spend),) = spends_of_plan(plan).items()
    assert unit.neighbours == "replacing one entry"
    assert spend.pure == Fraction(plan["claims"]["without_model"]["entry"])
    assert spend.pure < Fraction(plan["guarantees"][0]["epsilon"])


def test_a_line_without_the_clause_says_what_it_does_not_bound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, plan = tmp_path / "steps.priv", tmp_path / "steps.plan.json"
    spec.write_text(NUMERIC, "utf-8")
    assert run_command_line(["check", str(spec)]) == 0
    said = capsys.readouterr()
    assert "PS0341" in said.out + said.err
    assert "does not bound what correlations tell" in said.out + said.err
    assert run_command_line(["solve", str(spec), "-o", str(plan)]) == 0
    for reader in ("auditor", "engineer"):
        assert run_command_line(["explain", str(plan), "--for", reader, "-o", str(tmp_path / "page.md")]) == 0
        page = " ".join((tmp_path / "page.md").read_text("utf-8").split())
        assert "It does not bound what correlations tell" in page
    document = json.loads(plan.read_text("utf-8"))
    assert document["problem"]["blocks"][0]["form"] == "linear"
    whole = NUMERIC.replace("one entry", "everything")
    told = [item["text"] for item in solved_text(whole)["assumptions"]]
    assert not any("correlations" in text for text in told)


@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(1), Fraction(4)])
def test_more_epsilon_never_needs_more_noise_and_quilts_never_less_than_laws(epsilon: Fraction) -> None:
    text = NUMERIC.replace("one entry", "one entry, given the model")
    found, more = (solved_text(text.replace("1-DP", f"{float(e)}-DP")) for e in (epsilon, 2 * epsilon))
    assert more["loss"]["value"] < found["loss"]["value"]
    others = {item["name"]: item["loss"] for item in found["alternatives"] if item["admissible"]}
    assert min(others.values()) >= found["loss"]["value"] * (1 - 1e-9)
    paper = others["Markov quilt mechanism (Song et al. 2017, MQMExact)"]
    assert others["Markov quilts, one for each pair of values"] <= paper * (1 + 1e-9)
    assert paper <= others["group privacy: all entries as one unit"] * (1 + 1e-9)


def test_a_component_brings_its_model_with_it(tmp_path: Path) -> None:
    (tmp_path / "readings.priv").write_text(template_text("correlated_readings"), "utf-8")
    whole = tmp_path / "whole.priv"
    whole.write_text(
        """spec whole
components:
  readings = spec("readings.priv", hour = hour, T = 6)
variables:
  input hour in {rest, walk, sport}^6
loss: readings.loss
privacy: readings.O is 2-DP wrt hour, replacing one entry
""",
        "utf-8",
    )
    plan = tmp_path / "whole.plan.json"
    assert run_command_line(["solve", str(whole), "-o", str(plan)]) == 0
    document = json.loads(plan.read_text("utf-8"))
    given = [one["neighbours"] for one in document["guarantees"]]
    assert sorted(given) == ["one entry against any other value, given the model", "replacing one entry"]
    assert run_command_line(["verify", str(plan)]) == 0
    assert run_command_line(["explain", str(plan), "--for", "auditor", "-o", str(tmp_path / "page.md")]) == 0
    assert "declared and not checked" in " ".join((tmp_path / "page.md").read_text("utf-8").split())


def test_a_sensitivity_takes_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "asserted.priv"
    claim = "  y has l1 sensitivity at most 3 wrt x, replacing one entry, given the model\nloss: E[ (O - y)^2 ]"
    text = NUMERIC.replace("loss: E[ (O - sum(x))^2 ]", claim).replace("  output O", "  intermediate y\n  output O")
    spec.write_text(text, "utf-8")
    assert run_command_line(["check", str(spec)]) == 3
    assert "PS0310" in capsys.readouterr().err


def test_the_public_page_says_what_a_plain_line_leaves_open(tmp_path: Path) -> None:
    page = " ".join(Plan(solved_text(NUMERIC)).explain("public").split())
    assert "compared with any other answer" in page
    assert "It does not limit what related entries reveal: one entry of “x” says something about others." in page
    given = Plan(solved_text(NUMERIC.replace("one entry", "one entry, given the model"))).explain("public")
    assert "It does not limit what related entries tell" not in given
    assert "What if the model is wrong?" in given


def test_the_middle_is_told_of_where_it_loses_less() -> None:
    """Of six numbers from 0 to 2 the sum is off by 6 at most; with options that ask for averages nothing is said."""
    strict = NUMERIC.replace("1-DP wrt x, replacing one entry", "0.05-DP wrt x, replacing one entry, given the model")
    (told,) = [one for one in solved_text(strict)["alternatives"] if one["name"].startswith("the middle")]
    assert (told["loss"], told["admissible"]) == (36, False)
    for text in (strict + "options: unbiased\n", strict.replace("0.05", "5")):
        assert not any(one["name"].startswith("the middle") for one in solved_text(text)["alternatives"])
