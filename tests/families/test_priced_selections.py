"""The least epsilon at which a median or a most frequent value keeps to its line of accuracy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from privspec.api import Problem
from privspec.cli import run_command_line
from privspec.core.diagnostics import SolveError, SpecError
from privspec.plan import verify
from tests.plans import resign

AT = """\
parameters: epsilon = 1
variables:
  input homes in table(rooms in 1..8)
  output m
loss: worst[ rank_error(m, CALL) ]
ACCURACY
privacy: m is epsilon-DP wrt homes, UNIT one record
"""
LEAST = (
    AT.replace("parameters: epsilon = 1\n", "")
    .replace("  output m\n", "  output m\n  choose epsilon in [0, 9]\n")
    .replace("loss: worst[ rank_error(m, CALL) ]", "loss: epsilon")
    .replace("ACCURACY", "accuracy: worst[ rank_error(m, CALL) ] <= 4")
)


@pytest.mark.parametrize("unit", ["adding or removing", "replacing"])
@pytest.mark.parametrize("call", ["median(homes.rooms)", "argmax(histogram(homes, by = {rooms}))"])
def test_the_least_epsilon_is_where_the_plan_of_the_loss_reaches_the_line(call: str, unit: str) -> None:
    plan = Problem(LEAST.replace("CALL", call).replace("UNIT", unit)).solve()
    assert plan.verify().ok
    epsilon = plan.loss.value
    assert plan.loss.lower_bound is not None
    assert 0 < plan.loss.lower_bound <= epsilon
    text = AT.replace("CALL", call).replace("UNIT", unit).replace("ACCURACY\n", "")
    at, below = (Problem(text, {"epsilon": e}).solve() for e in (epsilon, epsilon * 0.999))
    assert at.loss.value <= 4 * (1 + 1e-9) < below.loss.value
    # what is proved of the line is proved of the loss: at the bound none is known to reach it
    proved = Problem(text, {"epsilon": plan.loss.lower_bound * 0.999}).solve()
    assert proved.loss.lower_bound is not None
    assert proved.loss.lower_bound > 4


def test_a_line_beside_the_loss_is_met_or_said_to_be_missed() -> None:
    text = AT.replace("CALL", "median(homes.rooms)").replace("UNIT", "replacing")
    free = Problem(text.replace("ACCURACY\n", "")).solve().loss.value
    line = "accuracy: worst[ rank_error(m, median(homes.rooms)) ] <= {}"
    met = Problem(text.replace("ACCURACY", line.format(free * 1.01))).solve()
    assert met.verify().ok
    assert met.document["accuracy"][0]["value"] == pytest.approx(free)
    with pytest.raises(SolveError) as caught:
        Problem(text.replace("ACCURACY", line.format(free * 0.9))).solve()
    (found,) = caught.value.diagnostics
    assert found.code == "PS0612"
    accepted = (found.help or "").split()[1]
    assert Problem(text.replace("ACCURACY", line.format(accepted))).solve().feasible


def _raised(document: dict[str, Any]) -> None:
    """A bound that the witness does not prove."""
    document["claims"]["bound"]["cells"][0]["upto"] = "0.7"
    document["loss"]["lower_bound"] = 0.7


def _cheaper(document: dict[str, Any]) -> None:
    """A smaller epsilon than that of the draw."""
    document["mechanism"]["scalars"]["epsilon"] = "0.1"


def _bolder(document: dict[str, Any]) -> None:
    """A draw that is off less than its epsilon allows."""
    document["mechanism"]["base"] = "3"


def _idle(document: dict[str, Any]) -> None:
    """An error that is not that of the draw."""
    document["accuracy"][0]["value"] = 1.0


@pytest.mark.parametrize("forge", [_raised, _cheaper, _bolder, _idle])
def test_forged_plans_are_refused(forge: Callable[[dict[str, Any]], None]) -> None:
    text = LEAST.replace("CALL", "median(homes.rooms)").replace("UNIT", "adding or removing")
    document = json.loads(json.dumps(Problem(text).solve().document))
    assert verify(json.dumps(document)).ok
    forge(document)
    assert not verify(json.dumps(resign(document))).ok


@pytest.mark.parametrize(
    ("loss", "line"),
    [
        ("epsilon", "E[ |m - median(homes.rooms)| ] <= 4"),
        ("epsilon", "worst[ rank_error(m, quantile(homes.rooms, 0.9)) ] <= 4\n  worst[ rank_error(m, CALL) ] <= 4"),
        ("worst[ rank_error(m, CALL) ] + epsilon", "worst[ rank_error(m, CALL) ] <= 4"),
    ],
)
def test_other_lines_and_prices_are_refused(loss: str, line: str) -> None:
    text = LEAST.replace("loss: epsilon", f"loss: {loss}").replace("worst[ rank_error(m, CALL) ] <= 4", line)
    with pytest.raises(SpecError):
        Problem(text.replace("CALL", "median(homes.rooms)").replace("UNIT", "replacing")).solve()


def test_it_runs_and_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, plan, data = (tmp_path / name for name in ("s.priv", "s.json", "homes.csv"))
    spec.write_text(LEAST.replace("CALL", "median(homes.rooms)").replace("UNIT", "replacing"), "utf-8")
    data.write_text("rooms\n" + "3\n4\n4\n5\n" * 30, "utf-8")
    assert run_command_line(["solve", str(spec), "-q", "-o", str(plan)]) == 0
    for reader in ("public", "auditor", "engineer"):
        assert run_command_line(["explain", str(plan), "--for", reader]) == 0
    capsys.readouterr()
    run = ["run", str(plan), "--input", f"homes={data}", "--ledger", str(tmp_path / "l.db"), "--new-ledger"]
    assert run_command_line(run) == 0
    assert json.loads(capsys.readouterr().out)["outputs"]["m"]["values"][0] in range(1, 9)
