"""The least epsilon of a local histogram that meets its accuracy lines, and that of least cost beside its errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import exp
from pathlib import Path
from typing import Any

import pytest

from privspec.api import Problem
from privspec.cli import run_command_line
from privspec.plan import verify
from tests.plans import resign

SPEC = """\
parties: pupil in 1..60
variables:
  input snack[pupil] in {apple, bread, carrot}
  choose epsilon in [0, 8]
  output H
loss: LOSS
ACCURACY
privacy: H is epsilon-LDP wrt snack
"""
LEAST = SPEC.replace("LOSS", "epsilon").replace("ACCURACY", "accuracy: E[ ||H - histogram(snack)||^2 ] <= BOUND")
BESIDE = SPEC.replace("LOSS", "E[ ||H - histogram(snack)||^2 ] + 40 * epsilon").replace("ACCURACY\n", "")


def least_error(epsilon: float, values: int = 3, people: int = 60) -> float:
    """Of reports that are sets of any size (Ye and Barg 2018), by their chances alone."""
    found = []
    for size in range(1, values):
        own = size * exp(epsilon) / (size * exp(epsilon) + values - size)
        other = (size - own) / (values - 1)
        variances = own * (1 - own) + (values - 1) * other * (1 - other)
        found.append(people * variances / (own - other) ** 2)
    return min(found)


@pytest.mark.parametrize("bound", [30, 150, 1200])
def test_the_least_epsilon_just_meets_the_line(bound: int) -> None:
    plan = Problem(LEAST.replace("BOUND", str(bound))).solve()
    assert plan.status == "optimal"
    assert plan.verify().ok
    assert least_error(plan.loss.value) == pytest.approx(bound, rel=1e-6)
    assert plan.document["accuracy"][0]["value"] <= bound


def test_the_epsilon_of_least_cost_is_no_dearer_than_any_other() -> None:
    plan = Problem(BESIDE).solve()
    wanted = min(least_error(k / 100) + 40 * k / 100 for k in range(1, 800))
    assert plan.verify().ok
    assert plan.loss.value <= wanted * (1 + 1e-9)
    assert plan.loss.lower_bound is not None
    assert wanted * 0.99 <= plan.loss.lower_bound <= plan.loss.value


def test_an_epsilon_beyond_the_range_is_named() -> None:
    text = LEAST.replace("BOUND", "150").replace("[0, 8]", "[0, 0.5]")
    found = Problem(text).solve()
    assert not found.feasible
    ways = [way["change"] for way in found.document["relaxations"]]
    (needed,) = [way for way in ways if way.startswith("let epsilon go up to")]
    assert Problem(text.replace("[0, 0.5]", f"[0, {needed.split()[-1]}]")).solve().feasible
    (looser,) = [way for way in ways if way.startswith("accept")]
    assert Problem(text.replace("<= 150", f"<= {looser.split()[1]}")).solve().feasible


def _raised(document: dict[str, Any]) -> None:
    """A bound that no cell proves."""
    cells = document["claims"]["bound"]["cells"]
    cells[0]["upto"] = "1.5"
    document["loss"]["lower_bound"] = 1.5


def _cheaper(document: dict[str, Any]) -> None:
    """A smaller epsilon than the sets have."""
    document["mechanism"]["scalars"]["epsilon"] = "0.5"


def _bolder(document: dict[str, Any]) -> None:
    """Sets that say more of the own value."""
    document["mechanism"]["sets"][0]["chance"] = "0.9"


def _idle(document: dict[str, Any]) -> None:
    """An error that is not the line's."""
    document["accuracy"][0]["value"] = 1.0


@pytest.mark.parametrize("forge", [_raised, _cheaper, _bolder, _idle])
def test_forged_plans_are_refused(forge: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(json.dumps(Problem(LEAST.replace("BOUND", "150")).solve().document))
    assert verify(json.dumps(document)).ok
    forge(document)
    assert not verify(json.dumps(resign(document))).ok


def test_it_runs_and_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, plan, data = (tmp_path / name for name in ("s.priv", "s.json", "snack.csv"))
    spec.write_text(LEAST.replace("BOUND", "150"), "utf-8")
    data.write_text("snack\n" + "apple\nbread\ncarrot\n" * 20, "utf-8")
    assert run_command_line(["solve", str(spec), "-q", "-o", str(plan)]) == 0
    for reader in ("public", "auditor", "engineer"):
        capsys.readouterr()
        assert run_command_line(["explain", str(plan), "--for", reader]) == 0
    capsys.readouterr()
    run = ["run", str(plan), "--input", f"snack={data}", "--ledger", str(tmp_path / "l.db"), "--new-ledger"]
    assert run_command_line(run) == 0
    assert sum(json.loads(capsys.readouterr().out)["outputs"]["H"]["values"]) == pytest.approx(60, abs=1e-6)
