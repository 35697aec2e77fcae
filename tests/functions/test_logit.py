"""Choices by odds (Bradley and Terry): the estimate, how far one voter's records move it, and plans about it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from privspec.solvers.probit import LOGIT, probit_mle
from scipy.optimize import minimize

from privspec.api import Problem
from privspec.cli import run_command_line
from privspec.functions.probit import logit_routes, probit_routes
from privspec.model.domains import L1Ball, L2Ball
from privspec.model.library import GRID_BITS, NormName, Records, Unit
from privspec.plan import verify
from tests.plans import resign

SPEC = """\
parties: voter in 1..4
variables:
  input V[voter] in l2_ball(1, 2)^3
  intermediate beta[voter]
  intermediate society
  output O
background:
  beta[voter] = logit_mle(V[voter], within = l1_ball(2, 2))
  society = mean(beta[voter] for voter)
  V ~ thurstone_mosteller(2, 3)
loss: E[ ||O - society||^2 ]
privacy: O is 1-DP wrt V, replacing one voter
"""


def drawn(voters: int, records: int, features: int, seed: int = 5) -> np.ndarray:
    """Records in the unit ball."""
    found = np.random.default_rng(seed).normal(size=(voters, records, features))
    return found / np.maximum(np.linalg.norm(found, axis=2, keepdims=True), 1)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_estimate_is_the_most_probable_one(norm: str) -> None:
    records, radius = drawn(4, 8, 3), 2.0
    found = probit_mle(records, radius, norm=norm, link=LOGIT)  # type: ignore[arg-type]
    assert found.converged()
    for own, weights in zip(records, found.weights, strict=True):

        def loss(b: np.ndarray, own: np.ndarray = own) -> float:
            return float(np.log1p(np.exp(-own @ b)).sum())

        size = {"l1": lambda b: np.abs(b).sum(), "l2": np.linalg.norm}[norm]
        inside = {"type": "ineq", "fun": lambda b, size=size: radius - size(b)}
        other = minimize(loss, np.zeros(3), constraints=[inside], options={"ftol": 1e-12, "maxiter": 500})
        assert loss(weights) <= other.fun * (1 + 1e-6)
        assert size(weights) <= radius


def test_no_records_move_a_statistic_farther_than_is_said() -> None:
    """Of any two voters, at random and at the ends: in every norm, by each way that is offered."""
    for within in (L1Ball(2, 3), L2Ball(2, 3)):
        routes = logit_routes(Records(4, 3, 1), within)
        assert "objective" not in {route.at for route in routes}
        assert {route.at for route in routes} < {route.at for route in probit_routes(Records(4, 3, 1), within)}
        far = np.repeat(np.concatenate([np.eye(3), -np.eye(3)])[:, None, :], 4, axis=1)
        records = np.concatenate([drawn(30, 4, 3), far])
        steps = np.trunc(records * 2**GRID_BITS).astype(np.int64)
        for route in routes:
            values = route.exact(steps) / 2**GRID_BITS
            moved = (values[:, None] - values[None]).reshape(-1, values.shape[-1])
            limits = route.spread(Unit.PARTY)
            for norm, order in ((NormName.L1, 1), (NormName.L2, 2), (NormName.LINF, np.inf)):
                assert np.linalg.norm(moved, order, axis=1).max() <= float(limits[norm]) + 1e-9


def test_plans_run_and_forged_ones_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(json.dumps(Problem(SPEC).solve().document))
    assert verify(json.dumps(document)).ok
    block = document["problem"]["blocks"][0]
    assert block["function"] == "logit_mle"
    for name in ("probit_mle", "loglog_mle"):  # the one offers more, the other is not known
        other = json.loads(json.dumps(document))
        other["problem"]["blocks"][0]["function"] = name
        assert not verify(json.dumps(resign(other))).ok
    spec, plan, data = (tmp_path / name for name in ("s.priv", "s.json", "V.csv"))
    spec.write_text(SPEC, "utf-8")
    plan.write_text(json.dumps(document), "utf-8")
    held = enumerate(drawn(4, 3, 2), 1)
    rows = ["voter,V_1,V_2", *(f"{voter},{a},{b}" for voter, own in held for a, b in own)]
    data.write_text("\n".join(rows) + "\n", "utf-8")
    run = ["run", str(plan), "--input", f"V={data}", "--ledger", str(tmp_path / "l.db"), "--new-ledger"]
    assert run_command_line(run) == 0
    assert len(json.loads(capsys.readouterr().out)["outputs"]["O"]["values"]) == 2
