"""Finite reports of real numbers: solved, run, told; and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from privspec.api import Problem
from privspec.cli import run_command_line
from privspec.core.diagnostics import PrivspecError, SpecError
from privspec.execute.family import simulate
from privspec.execute.run import _run as run
from privspec.families.number.report_execution import CellMechanism
from privspec.manual import template_text
from privspec.noise.samplers import SimulationRandomness
from privspec.plan import Plan
from tests.plans import solved, solved_text

ALARM = 1e-6
SPEC = """spec cells
{parties}variables:
  input x{index} in {domain}
  output z{index} in {values}
{model}loss: {loss}
{more}privacy:
  {line}
{options}"""


def spec(domain="[0, 1]", values="{0, 0.5, 1}", loss="worst[ (z - x)^2 ]", line="z is 2-LDP wrt x", **rest):
    given = {"parties": "", "index": "", "model": "", "more": "", "options": ""} | rest
    return SPEC.format(domain=domain, values=values, loss=loss, line=line, **given)


UNIFORM = {"model": "background:\n  x ~ uniform\n"}


@pytest.mark.parametrize(
    "text",
    [
        spec(),
        spec(values="0..1"),
        spec(values="grid(0, 1, 0.1)", line="z is 1-DP wrt x"),
        spec(loss="E[ |z - x| ]", **UNIFORM),
        spec(loss="E[ (z - x)^2 ]", line="z is 1-LDP wrt x\n  z is 3-DP wrt x, replacing everything", **UNIFORM),
        spec(domain="(0, 4]", values="{-1, 1, 7}"),
        spec(
            parties="parties: p in 1..5\n",
            index="[p]",
            loss="worst[ mean((z[p] - x[p])^2 for p) ]",
            line="z is 2-DP wrt x",
        ),
        spec(options="options: trust nobody, noise family table\n".replace(", ", "\n  ")),
    ],
)
def test_reports_are_the_best_there_are(text):
    plan = solved_text(text)
    assert plan["status"] == "optimal"
    assert plan["loss"]["among"] == "all mechanisms that see the number itself"
    assert all(one["loss"] >= plan["loss"]["value"] * (1 - 1e-9) for one in plan["alternatives"])
    assert Plan(plan).verify().ok


def test_two_values_are_randomised_response():
    """At the worst number, 1/2 away from both: E |z - x| is 1/2 there and the chance of the far one at the ends."""
    plan = solved_text(spec(values="{0, 1}", loss="worst[ |z - x| ]", line="z is 1-LDP wrt x"))
    assert plan["loss"]["value"] == pytest.approx(0.5)
    plan = solved_text(spec(values="{0, 1}", loss="E[ |z - x| ]", line="z is 3-LDP wrt x", **UNIFORM))
    right = np.exp(3) / (1 + np.exp(3))
    assert plan["loss"]["value"] == pytest.approx(right * 0.25 + (1 - right) * 0.75)


REFUSED = [
    (spec(line="z is (1, 0.01)-LDP wrt x"), "PS0501", "(epsilon, delta)-LDP of finite reports"),
    (spec(line="z is 1-metric-DP wrt x, distance euclidean"), "PS0501", "metric-DP of finite reports"),
    (spec(line="z is 0.5-zCDP wrt x"), "PS0501", "rho-zCDP of finite reports"),
    (spec(domain="[0, inf)"), "PS0501", "which has no bounds"),
    (spec(line="z is 50-LDP wrt x"), "PS0501", "protects nothing"),
    (spec(loss="E[ (z - x)^2 ]"), "PS0401", "no data model"),
    (spec(loss="worst[ (z - 2 * x)^2 ]"), "PS0502", "the size of one error"),
    (spec(loss="E[ |z - x| ]", model="background:\n  x ~ poisson(2)\n"), "PS0514", "poisson has no exact law"),
    (spec(loss="E[ |z - x| ]", model="background:\n  x ~ normal(90, 1)\n"), "PS0406", "no probability"),
    (spec(more="accuracy:\n  worst[ |z - x| ] <= 1\n"), "PS0501", "lines of accuracy"),
    (spec(options="options: noise family laplace\n"), "PS0501", "noise family laplace"),
    (spec(values="grid(0, 1, 0.001)"), "PS0515", "1,001 values"),
    (
        spec(parties="parties: p in 1..5\n", index="[p]").replace("z[p]", "z").replace("(z - x)^2", "(z - sum(x))^2"),
        "PS0501",
        "stay within a domain",
    ),
]


@pytest.mark.parametrize(("text", "code", "words"), REFUSED)
def test_what_is_not_known_is_refused_by_a_line(text, code, words):
    with pytest.raises(PrivspecError) as caught:
        Problem(text).solve()
    first = caught.value.diagnostics[0]
    assert (first.code, words in first.message) == (code, True), first.message
    assert first.labels


def test_draws_have_the_law_of_their_cell():
    """Chi-square at a false alarm of 1e-6 for each number, one of them at the end of two cells."""
    plan = solved("rounded_answers")
    cells = CellMechanism.of_plan(plan).executed
    for number in (0.3, 3.0, 9.99, 40.0):
        drawn = simulate(plan, 4000, 3, base={"hours": [number]})[:, 0]
        row = np.array(cells.term.rows[cells.block.cell(min(number, 10))], dtype=float) / cells.term.whole
        counts = np.array([(drawn == float(value)).sum() for value in cells.block.values])
        assert stats.chisquare(counts, row * len(drawn)).pvalue > ALARM
    release = run(plan, {"hours": np.array([0.5, 9.5] * 50)}, randomness=SimulationRandomness(1))
    assert release.values["answer"].shape == (100,)
    parties = spec(parties="parties: p in 1..5\n", index="[p]", loss="worst[ sum((z[p] - x[p])^2 for p) ]")
    release = run(solved_text(parties), {"x": [0.1, 0.2, 0.3, 0.8, 2.0]}, randomness=SimulationRandomness(1))
    assert release.values["z"].shape == (5,)


def test_shares_of_cells_from_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Cells of one law are one value, and what the reports leave open is said; forged reports are refused."""
    path, plan, out = (tmp_path / name for name in ("answers.priv", "answers.plan.json", "reports.csv"))
    path.write_text(template_text("rounded_answers"), "utf-8")
    assert run_command_line(["solve", str(path), "-o", str(plan), "--set", "epsilon=3", "-q"]) == 0
    hours = np.repeat([0.5, 4.5, 9.5], [600, 300, 100])
    (tmp_path / "hours.csv").write_text("hours\n" + "\n".join(map(str, hours)) + "\n", "utf-8")
    asked = ["run", str(plan), "--input", f"hours={tmp_path / 'hours.csv'}", "--new-ledger", "-q", "-o", str(out)]
    assert run_command_line(asked) == 0
    capsys.readouterr()
    assert run_command_line(["aggregate", str(plan), str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    shares = {row["value"]: row["share"] for row in found["shares"]}
    assert sum(shares.values()) == pytest.approx(1)
    low = sum(share for value, share in shares.items() if float(value.split(" to ")[1]) <= 2)
    assert low == pytest.approx(0.6, abs=0.12)
    out.write_text("answer\n3\n", "utf-8")
    assert run_command_line(["aggregate", str(plan), str(out)]) != 0


def test_the_whole_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, plan = tmp_path / "answers.priv", tmp_path / "answers.plan.json"
    path.write_text(template_text("rounded_answers"), "utf-8")
    (tmp_path / "hours.csv").write_text("who,hours\n1,3.25\n2,11\n3,much\n", "utf-8")
    assert run_command_line(["check", str(path), "--problem"]) == 0
    assert "depends on which of 10 cells" in capsys.readouterr().out
    assert run_command_line(["solve", str(path), "-o", str(plan)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "optimal" in said
    assert "one of 6 values, by which of 10 cells hours lies in" in said
    assert run_command_line(["verify", str(plan)]) == 0
    assert "all mechanisms that see the number itself" in capsys.readouterr().out
    data = f"hours={tmp_path / 'hours.csv'}"
    assert run_command_line(["data", str(plan), "--input", data]) == 0
    out = tmp_path / "reports.csv"
    assert run_command_line(["run", str(plan), "--input", data, "--new-ledger", "-o", str(out)]) == 0
    assert len(out.read_text("utf-8").splitlines()) == 4
    capsys.readouterr()
    for reader, words in (
        (
            "public",
            "By chance alone a report is on average off by 2.06 hours, at worst. Apart from chance, what is clipped",
        ),
        ("auditor", "no mechanism that sees the number itself does better"),
        ("engineer", "Chances of each value of answer"),
    ):
        assert run_command_line(["explain", str(plan), "--for", reader]) == 0
        assert words in " ".join(capsys.readouterr().out.split())
    assert run_command_line(["sweep", str(path), "--over", "epsilon=1:4:lin:2", "--json"]) == 0
    losses = [row["loss"] for row in json.loads(capsys.readouterr().out)["rows"] if row]
    assert losses[0] > losses[1]


def test_parts_of_systems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A point and a number as components; a finite report beside Laplace noise under one line."""
    for name in ("location_reports", "rounded_answers"):
        (tmp_path / f"{name}.priv").write_text(template_text(name), "utf-8")
    whole, plan = tmp_path / "whole.priv", tmp_path / "whole.plan.json"
    whole.write_text(
        """spec whole
components:
  where = spec("location_reports.priv", place = place)
  screen = spec("rounded_answers.priv", hours = hours)
variables:
  input place in [0, 12]^2
  input hours in [0, 10]
loss: where.loss + screen.loss
privacy:
""",
        "utf-8",
    )
    assert run_command_line(["solve", str(whole), "-o", str(plan)]) == 0
    assert "optimal" in capsys.readouterr().out
    assert run_command_line(["verify", str(plan)]) == 0
    (tmp_path / "place.csv").write_text("place_1,place_2\n3,4\n", "utf-8")
    (tmp_path / "hours.csv").write_text("hours\n5\n", "utf-8")
    data = [f"--input={name}={tmp_path / name}.csv" for name in ("place", "hours")]
    assert run_command_line(["run", str(plan), *data, "--seed", "1"]) == 0
    both = SPEC.format(
        parties="", index="", domain="[0, 10]", values="{0, 5, 10}\n  output O", model="", more="", options="",
        loss="20 * worst[ (z - x)^2 ] + E[ (O - x)^2 ]", line="all outputs are 3-DP wrt x",
    )  # fmt: skip
    found = Plan(solved_text(both))
    assert found.verify().ok
    assert "z is drawn from one of 3 values" in found.explain("engineer")


ONE_BIT = """\
variables:
  input x in [0, 2]
  output z in {0, 1}
  intermediate guess
background:
  E[z | x] = 0.2 + 0.3 * x
  guess = (z - 0.2) / 0.3
loss: worst[ (guess - x)^2 ]
privacy: z is EPSILON-LDP wrt x
"""


def test_conditions_that_no_report_of_the_two_ends_meets_are_infeasible():
    """One bit with the chance .2 at 0 and .8 at 2 has the ratio 4: less than log 4 is no amount for it."""
    found = Problem(ONE_BIT.replace("EPSILON", "1.38")).solve()
    assert not found.feasible
    assert found.document["reason"].startswith("even where x is 0 or 2, ")
    assert {one["line"] for one in found.document["conflicts"]} == {6, 9}
    assert found.document["relaxations"] == []
    with pytest.raises(SpecError, match="conditions on finite reports of the real number x"):
        Problem(ONE_BIT.replace("EPSILON", "1.39")).solve()
