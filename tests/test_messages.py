"""A walk over the families whose parties make messages: each party's message, what they add up to, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privspec.api import Problem
from privspec.cli import run_command_line
from privspec.core.diagnostics import PrivspecError
from privspec.families.gaussian.masks import write_key
from privspec.noise.samplers import SimulationRandomness
from privspec.plan import Plan
from tests.plans import solved_text

SUM = """parties: owner in 1..3
variables:
  input x[owner] in [0, 1]
  output O
loss: E[ (O - sum(x))^2 ]
privacy: O is 2-GDP wrt x, replacing one owner
options: trust TRUST
"""
TABLES = """parties: owner in 1..3
variables:
  input visits[owner] in table(age in {young, old})
  intermediate counts
  output O
background: counts = histogram(visits)
loss: E[ ||O - counts||^2 ]
privacy: O is 2-DP wrt visits, adding or removing one record
options: trust TRUST
"""
VOTES = """parties: owner in 1..3
variables:
  input vote[owner] in {north, south}
  intermediate winner
  output O
background: winner = random_dictator(vote)
loss: worst[ total_variation(O, winner) ]
privacy: O is 1-DP wrt vote, replacing one owner
options: trust nobody
"""
CROWD = """parties: owner in 1..3
variables:
  input V[owner] in l2_ball(1, 2)^2
  intermediate beta[owner]
  intermediate society
  output O
background:
  beta[owner] = probit_mle(V[owner], within = l1_ball(1, 2))
  society = mean(beta[owner] for owner)
  V ~ thurstone_mosteller(2, 2)
loss: E[ disagreement(O, mean(V[owner].weights for owner)) ]
privacy: O is 5-DP wrt V, replacing one owner
options: trust nobody
"""


@dataclass(frozen=True)
class Family:
    """A spec, what each of three parties holds, whether messages are masked, and how far a mean of draws may be off."""

    spec: str
    data: Sequence[dict[str, Any]]
    masked: bool = False
    truth: float | None = None


NUMBERS = [{"x": np.array([v])} for v in (0.25, 0.5, 1.0)]
RECORDS = [{"visits": {"age": ages}} for ages in (["young", "old"], ["old"], ["young"] * 3)]
FAMILIES = {
    "noise of each party": Family(SUM.replace("TRUST", "nobody"), NUMBERS, truth=1.75),
    "shares": Family(SUM.replace("TRUST", "secure_sum(colluding = 1)"), NUMBERS, masked=True, truth=1.75),
    "tables at parties": Family(TABLES.replace("TRUST", "nobody"), RECORDS, truth=4),
    "tables in shares": Family(TABLES.replace("TRUST", "secure_sum"), RECORDS, masked=True, truth=4),
    "ballots": Family(VOTES, [{"vote": [word]} for word in ("north", "south", "north")]),
    "estimates": Family(CROWD, [{"V": np.array([[0.5, v], [v, -0.5]])} for v in (0.1, 0.2, 0.3)]),
}


def messages(plan: Plan, one: Family, folder: Path, seed: int | None = None) -> list[Path]:
    """Every party's message by itself; from a seed, no ledger is charged."""
    folder.mkdir(exist_ok=True)
    rosters = [folder / f"{i}.pub" for i in (1, 2, 3)]
    for number, path in enumerate(rosters, 1) if one.masked else ():
        path.with_suffix(".key").unlink(missing_ok=True)
        path.write_text(json.dumps(write_key(str(number), path.with_suffix(".key"))), "utf-8")
    found = []
    for number, data in enumerate(one.data, 1):
        more: dict[str, Any] = {"key": folder / f"{number}.key", "roster": rosters} if one.masked else {}
        if seed is not None:
            more["randomness"] = SimulationRandomness(1000 * seed + number)
        ledger = folder / f"{number}.db"
        found.append(folder / f"m{number}.json")
        found[-1].unlink(missing_ok=True)
        plan.run(data, ledger, found[-1], new_ledger=seed is None, party=str(number), **more)
    return found


def edited(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    document = json.loads(path.read_text("utf-8"))
    change(document)
    other = path.with_name(f"edited-{path.name}")
    other.write_text(json.dumps(document), "utf-8")
    return other


def refused(plan: Plan, sent: Sequence[Path]) -> str:
    with pytest.raises(PrivspecError) as caught:
        plan.combine(sent)
    (found,) = caught.value.diagnostics
    return found.code


@pytest.mark.parametrize("name", FAMILIES)
def test_messages_become_a_release_or_are_refused(name: str, tmp_path: Path) -> None:
    one = FAMILIES[name]
    plan = Plan(solved_text(one.spec))
    assert plan.by_messages
    sent = messages(plan, one, tmp_path / "own", 7)
    release = plan.combine(sent)
    assert not release.private, "its noise came from a seed"
    assert set(release.values) == {"O"}
    # dropped, twice, of another plan, of another version, of a party that there is not, of no number
    assert refused(plan, sent[:2]) == "PS0811"
    assert refused(plan, [sent[0], *sent]) == "PS0842"
    assert refused(plan, [edited(sent[0], lambda d: d.update(plan_sha256="0" * 64)), *sent[1:]]) == "PS0843"
    assert refused(plan, [edited(sent[0], lambda d: d.update(format="privspec-release/9.0")), *sent[1:]]) == "PS0842"
    assert refused(plan, [edited(sent[0], lambda d: d["outputs"]["message"].update(values=["x", "y"])), *sent[1:]]) in (
        "PS0842",
        "PS0811",
    )


@pytest.mark.parametrize("name", [name for name, one in FAMILIES.items() if one.truth is not None])
def test_messages_have_the_law_of_a_run(name: str, tmp_path: Path) -> None:
    """Means and variances of 25 releases by messages, against those that the plan states."""
    one = FAMILIES[name]
    plan = Plan(solved_text(one.spec))
    drawn = np.array(
        [np.ravel(plan.combine(messages(plan, one, tmp_path / "m", seed)).outputs["O"])[0] for seed in range(25)]
    )
    size = 2 if "tables" in name else 1
    variance = plan.loss.value / size
    assert one.truth is not None
    assert abs(drawn.mean() - one.truth) < 6 * (variance / 25) ** 0.5
    assert 0.2 * variance < drawn.var() < 3 * variance


def test_reports_from_a_table_say_whose_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A local report is a message as well: shares are estimated from the files of all, each person once."""
    monkeypatch.chdir(tmp_path)
    text = """variables:
  input answer in {yes, no}
  output z in {yes, no}
background: answer ~ uniform
loss: E[ mismatch(z, answer) ]
privacy: z is 1-LDP wrt answer
"""
    Problem(text).solve().write("p.json")
    for number in range(4):
        Path(f"{number}.csv").write_text(f"answer,of\nyes,{number}\n", "utf-8")
        said = ["run", "p.json", "--party", f"ann{number}", "--input", f"answer={number}.csv", "--new-ledger"]
        assert run_command_line([*said, "-o", f"r{number}.json", "-q"]) == 0
    assert json.loads(Path("r1.json").read_text("utf-8"))["outputs"]["party"]["values"] == ["ann1"]
    assert run_command_line(["aggregate", "p.json", *(f"r{number}.json" for number in range(4))]) == 0
    assert "4 reports" in capsys.readouterr().out
    assert run_command_line(["aggregate", "p.json", "r1.json", "r1.json"]) == 1
    assert "two reports of party ann1" in capsys.readouterr().err
    Path("two.csv").write_text("answer\nyes\nno\n", "utf-8")
    assert run_command_line(["run", "p.json", "--party", "b", "--input", "answer=two.csv", "--new-ledger"]) == 1
    assert "a person makes one report" in capsys.readouterr().err
