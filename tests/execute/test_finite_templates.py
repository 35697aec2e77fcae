"""The templates that are tables, from spec to shares: exact laws of the draws, files, the command line."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privspec.cli import run_command_line
from privspec.core.diagnostics import DataError, UsageError
from privspec.execute import ledger
from privspec.execute.drawing import TableLaw
from privspec.execute.keeper import DataOwnerReport
from privspec.manual import template_text
from privspec.noise.samplers import SimulationRandomness
from privspec.plan import Plan
from tests import plans

from .tables import ALARM, chi_square

TEMPLATES = [
    *("counting_query", "fair_response", "frequency_survey", "k_randomised_response", "metric_dp_line"),
    pytest.param("geo_indistinguishability", marks=pytest.mark.slow),
    pytest.param("power_means", marks=pytest.mark.slow),
]


@cache
def solved(name: str) -> Plan:
    return solved_text(template_text(name))


@cache
def solved_text(text: str) -> Plan:
    return Plan(plans.solved_text(text))


@pytest.mark.parametrize("name", TEMPLATES)
def test_draws_of_a_template_follow_its_exact_law(name: str) -> None:
    law = TableLaw.of_plan(solved(name).document)
    rows = np.arange(100_000) % len(law.rows)
    drawn = law.draw(rows, SimulationRandomness(1))
    exact = [w / row.total / len(law.rows) for row in law.laws for w in row.weights]
    counts = np.bincount(rows * len(law.columns) + drawn, minlength=len(exact))
    # every row is drawn from equally often, but for a remainder
    assert len(rows) % len(law.rows) < 1e-3 * len(rows)
    assert chi_square(counts, exact) > ALARM


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_row_of_a_template_is_a_law_exactly(name: str) -> None:
    for row in TableLaw.of_plan(solved(name).document).laws:
        assert sum(row.weights) == row.total and min(row.weights) >= 0


# --- central --------------------------------------------------------------------------------------


def test_a_count_is_released_once(tmp_path: Path) -> None:
    plan = solved("counting_query")
    n = plan.model().block("answers").size
    out = tmp_path / "o.json"
    path = tmp_path / "answers.csv"
    path.write_text("answers\n" + "1\n0\n" * (n // 2))
    release = plan.run({"answers": path}, tmp_path / "l.db", out, new_ledger=True)
    assert release.outputs["O"].shape == () and 0 <= release.outputs["O"] <= n
    assert json.loads(out.read_text())["outputs"]["O"]["values"] == [release.outputs["O"]]
    assert ledger.show(tmp_path / "l.db").debits == 1
    with pytest.raises(DataError, match="PS0805"):
        plan.run({"answers": [1, 0]}, tmp_path / "l.db")
    with pytest.raises(UsageError, match="PS0841"):
        plan.aggregate([[3, 4]])


VOTES = """
parties:
  voter in 1..3
variables:
  input vote[voter] in {north, east}
  output winner in {north, east}
loss:
  worst[ mismatch(winner, plurality(vote)) ]
privacy:
  winner is 1-DP wrt vote, replacing one voter
"""


def test_words_of_parties_are_read_as_the_spec_lays_them_out(tmp_path: Path) -> None:
    plan = solved_text(VOTES)
    path = tmp_path / "votes.csv"
    path.write_text("voter,vote\n2,east\n1,north\n3,east\n")
    release = plan.run({"vote": path}, tmp_path / "l.db", new_ledger=True)
    assert release.outputs["winner"] in ("north", "east")
    shares = [plan.run({"vote": v}, randomness=SimulationRandomness(i)) for v in (["east"] * 3,) for i in range(300)]
    east = sum(r.outputs["winner"] == "east" for r in shares) / len(shares)
    assert east > 0.5
    with pytest.raises(DataError, match="PS0809"):
        plan.run({"vote": ["east", "west", "east"]}, tmp_path / "m.db", strict=True)


TWO = """
variables:
  input answers in {0, 1}^4
  intermediate total
  output O1 in 0..4
  output O2 in 0..4
background:
  total = sum(answers)
  total ~ uniform
loss:
  E[ |O1 - total| ] + E[ |O2 - total| ]
privacy:
  O1 is 0.5-DP wrt answers, replacing one record, seen by press
  O2 is 1-DP wrt answers, replacing one record, seen by auditors
"""


def test_two_observers_are_paid_for_together(tmp_path: Path) -> None:
    plan = solved_text(TWO + "  (O1, O2) is 1-DP wrt answers, replacing one record\n")
    release = plan.run({"answers": [1, 0, 1, 1]}, tmp_path / "l.db", tmp_path / "o.csv", new_ledger=True)
    assert set(release.outputs) == {"O1", "O2"}
    (account,) = ledger.show(tmp_path / "l.db").accounts
    assert account.limit is not None and account.limit.describe() == "epsilon=1"


def test_a_table_whose_outputs_together_reveal_without_bound_is_not_run(tmp_path: Path) -> None:
    plan = solved_text(TWO.replace("|O2 - total| ]", "|O2 - total| ] + 0.01 * E[ |O1 - O2| ]"))
    # nothing asks for a bound on both, and the best table has joint outputs that some counts never lead to
    law = TableLaw.of_plan(plan.document)
    assert any(0 in row.weights for row in law.laws)
    with pytest.raises(UsageError, match="PS1006") as caught:
        plan.run({"answers": [1, 0, 1, 1]}, tmp_path / "l.db", new_ledger=True)
    assert caught.value.diagnostics[0].help == "add a requirement for (O1, O2) together"
    assert not (tmp_path / "l.db").exists()


# --- local reports --------------------------------------------------------------------------------

PEOPLE: dict[str, dict[str, list[Any]]] = {
    "k_randomised_response": {},
    "frequency_survey": {"answer": ["car", "train", "bus", "bicycle", "foot", "other"]},
    "fair_response": {"group": ["young", "old"], "outcome": ["well", "ill"]},
    "metric_dp_line": {"minutes": [0, 35, 119, 500]},
}


def people_of(name: str, count: int) -> dict[str, list[Any]]:
    plan = solved(name)
    found = dict(PEOPLE[name])
    if not found:
        node = plan.model().inputs[0]
        assert node.domain is not None
        found = {node.name: [str(e) for e in node.domain.elements()]}
    return {
        key: [values[(i // (j + 1)) % len(values)] for i in range(count)]
        for j, (key, values) in enumerate(found.items())
    }


def write_people(name: str, path: Path, count: int) -> str:
    columns = people_of(name, count)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return next(iter(columns))


@pytest.mark.slow
@pytest.mark.parametrize("name", list(PEOPLE))
def test_from_people_to_reports_to_shares_on_the_command_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = solved(name).write(tmp_path / f"{name}.plan.json")
    first = write_people(name, tmp_path / "people.csv", 3000)
    reports, shares = tmp_path / "reports.csv", tmp_path / "shares.json"
    command = ["run", str(plan.path), "--input", f"{first}={tmp_path / 'people.csv'}"]
    assert run_command_line([*command, "--new-ledger", "-o", str(reports)]) == 0
    assert len(reports.read_text().splitlines()) == 3001
    assert run_command_line(["aggregate", str(plan.path), str(reports), "-o", str(shares)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{name} · 3,000 reports · shares of the values of {', '.join(people_of(name, 1))}\n")
    data = json.loads(shares.read_text())
    assert data["reports"] == 3000 and len(data["shares"]) == len(plan.document["mechanism"]["inputs"])
    assert sum(row["share"] for row in data["shares"]) == pytest.approx(1)
    # a second run is refused: the budget of these people is spent
    assert run_command_line([*command, "--quiet"]) == 6


def test_formats_of_shares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = solved("k_randomised_response").write(tmp_path / "krr.plan.json")
    name = write_people("k_randomised_response", tmp_path / "people.csv", 500)
    reports = tmp_path / "reports.json"
    command = ["run", str(plan.path), "--input", f"{name}={tmp_path / 'people.csv'}", "-o", str(reports), "--seed", "3"]
    assert run_command_line(command) == 0
    capsys.readouterr()
    base = ["aggregate", str(plan.path), str(reports), "--estimator", "ibu", "--level", "0.9"]
    assert run_command_line([*base, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["estimator"] == "ibu" and data["chosen"] is None and data["level"] == 0.9
    assert run_command_line([*base, "-o", str(tmp_path / "s.csv"), "--quiet"]) == 0
    lines = (tmp_path / "s.csv").read_text().splitlines()
    assert lines[0] == f"{name},share,low,high" and len(lines) == 1 + len(data["shares"])
    assert run_command_line([*base, "-o", str(tmp_path / "s.svg"), "--quiet"]) == 0
    assert (tmp_path / "s.svg").read_text().lstrip().startswith(("<?xml", "<svg"))
    assert capsys.readouterr().out == ""
    # both files are counted; a repeated command gives the same figures
    assert run_command_line([*base, str(reports), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reports"] == 1000
    assert run_command_line([*base, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == data


@pytest.mark.parametrize(
    ("more", "code", "exit_code"),
    [
        (["--estimator", "ibuu"], "PS0721", 2),
        (["--level", "95"], "PS0721", 2),
        (["-o", "shares.pdf"], "PS0721", 2),
        (["nowhere.csv"], "PS0802", 1),
    ],
)
def test_what_aggregate_refuses(
    more: list[str], code: str, exit_code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = solved("k_randomised_response").write(tmp_path / "krr.plan.json")
    label = str(plan.document["mechanism"]["outputs"][0])
    name = str(plan.document["problem"]["blocks"][0]["outputs"][0])
    (tmp_path / "reports.csv").write_text(f"{name}\n{label}\n{label}\n")
    assert run_command_line(["aggregate", str(plan.path), str(tmp_path / "reports.csv"), *more]) == exit_code
    assert code in capsys.readouterr().err


BITS = """
variables:
  input x in {0, 1}^3
  output z in 0..3
background: x ~ uniform
loss: E[ |z - sum(x)| ]
privacy: z is 2-LDP wrt x
"""


def test_counts_of_a_vector_say_what_they_count(tmp_path: Path) -> None:
    plan = solved_text(BITS)
    assert plan.document["mechanism"]["inputs"][1] == ["2", "1"]
    path = tmp_path / "x.csv"
    path.write_text("x_1,x_2,x_3\n" + "1,0,0\n0,1,0\n1,1,1\n" * 200)
    release = plan.run({"x": path}, randomness=SimulationRandomness(1))
    found = plan.aggregate([release])
    assert found.values == ("0: 3, 1: 0", "0: 2, 1: 1", "0: 1, 1: 2", "0: 0, 1: 3")


RANKINGS = """
variables:
  input r in ranking of {a, b, c}
  output z in ranking of {a, b, c}
loss: worst[ mismatch(z, r) ]
privacy: z is 9-LDP wrt r
"""


def test_rankings_are_written_best_first(tmp_path: Path) -> None:
    plan = solved_text(RANKINGS)
    path = tmp_path / "r.csv"
    path.write_text("r\n" + "b a c\nc  b a\n" * 100)
    release = plan.run({"r": path}, tmp_path / "l.db", tmp_path / "o.csv", new_ledger=True)
    assert (release.outputs["z"] == [["b", "a", "c"], ["c", "b", "a"]] * 100).all(axis=1).mean() > 0.9
    found = plan.aggregate([tmp_path / "o.csv"])
    assert max(zip(found.shares, found.values, strict=True))[1] in ("b, a, c", "c, b, a")
    keeper = DataOwnerReport()
    odd = plan.run({"r": ["a b", "c > b > a"]}, randomness=SimulationRandomness(1), keeper=keeper)
    assert odd.outputs["z"].shape == (2, 3)
    assert any('"c > b > a": not one of' in line and line.endswith("(write `c b a`)") for line in keeper.report())


@pytest.mark.slow
def test_places_on_a_map(tmp_path: Path) -> None:
    plan = solved("geo_indistinguishability")
    generator = np.random.default_rng(1)
    places = generator.normal([3, 5], 1, size=(5000, 2))
    release = plan.run({"place": places}, tmp_path / "l.db", tmp_path / "o.csv", new_ledger=True)
    assert release.outputs["report"].shape == (5000, 2)
    (account,) = ledger.show(tmp_path / "l.db").accounts
    assert account.unit.neighbours == "replacing everything, for each unit of distance euclidean"
    assert plan.aggregate([tmp_path / "o.csv"]).reports == 5000
    many = generator.normal([3, 5], 1, size=(100_000, 2))
    found = plan.aggregate([plan.run({"place": many}, randomness=SimulationRandomness(2))])
    assert found.shares.sum() == pytest.approx(1)
    # four in five people are near (3, 5): nine places of 49, of which the reports determine 24 shares only
    near = {f"{a}, {b}" for a in (2, 3, 4) for b in (4, 5, 6)}
    assert sum(s for v, s in zip(found.values, found.shares, strict=True) if v in near) > 0.5
