"""Execution with the spec at hand: declared shapes, definitions of outputs, joint cost of all outputs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privspec.core.diagnostics import DataError, UsageError
from privspec.core.spans import Source
from privspec.execute.ledger import spends_of_plan
from privspec.model.build import load_model
from privspec.model.graph import Model
from privspec.noise.samplers import SimulationRandomness
from tests.execute.begun import run

MakePlan = Callable[..., dict[str, Any]]


def model_of(domain: str, total: str = "sum(x)") -> Model:
    text = f"""
spec demo
variables:
  input x in {domain}
  intermediate y
  output A
  output B
background:
  y = {total}
loss:
  E[ ||A - x||^2 ] + E[ (B - y)^2 ]
privacy:
  A is 1-GDP wrt x, replacing one entry
"""
    return load_model(Source("demo.priv", text))


def test_a_matrix_is_read_with_its_declared_shape(make_plan: MakePlan) -> None:
    model = model_of("[0, 1]^(2, 3)", "sum(sum(x))")
    quiet = {"shape": "gaussian", "scale": "1e-12"}
    matrix = {"name": "x", "start": 0, "stop": 6, "layout": "entries", "lower": "0", "upper": "1", "shape": [2, 3]}
    plan = make_plan(np.eye(6), np.eye(6), noise=quiet, outputs=[("A", (2, 3))], inputs=[matrix])
    values = np.array([[0, 0.25, 0.5], [0.75, 1, 1]])
    release = run(plan, {"x": values}, model=model, randomness=SimulationRandomness(1))
    assert np.allclose(release.outputs["A"], values, atol=1e-5)
    for wrong in (values.T, values.reshape(-1)):
        with pytest.raises(DataError, match="PS0805"):
            run(plan, {"x": wrong}, model=model, randomness=SimulationRandomness(1))


def test_estimated_inputs_are_carried_through_the_definitions(make_plan: MakePlan) -> None:
    model = model_of("[0, 1]^3")
    quiet = {"shape": "gaussian", "scale": "1e-12"}
    outputs: list[tuple[str, tuple[int, ...]]] = [("A", (3,)), ("B", ())]
    plan = make_plan(
        np.eye(3), np.eye(3), of="inputs", noise=quiet, outputs=outputs, target=np.vstack([np.eye(3), np.ones(3)])
    )
    release = run(plan, {"x": [0.5, 0.25, 1]}, model=model, randomness=SimulationRandomness(1))
    assert np.allclose(release.outputs["A"], [0.5, 0.25, 1], atol=1e-5)
    assert abs(release.outputs["B"] - 1.75) < 1e-5


@pytest.mark.parametrize(
    ("noise", "cost"),
    [
        ({"shape": "gaussian", "scale": "2"}, {"mu": Fraction(1)}),
        ({"shape": "laplace", "scale": "2"}, {"pure": Fraction(3, 2)}),
        ({"shape": "knorm-l2", "scale": "2"}, {"pure": Fraction(1)}),
    ],
)
def test_outputs_without_a_common_line_pay_for_the_strategy(
    tmp_path: Path, make_plan: MakePlan, noise: dict[str, Any], cost: dict[str, Fraction]
) -> None:
    guarantee = {
        "outputs": ["A"],
        "wrt": "x",
        "neighbours": "replacing one entry",
        "achieved": {"mu": "1/10"},
        "requirement": 0,
    }
    # one entry moves the strategy answers by (2, 0, 0) or (1, 1, 1)
    strategy = np.array([[2.0, 1], [0, 1], [0, 1]])
    outputs: list[tuple[str, tuple[int, ...]]] = [("A", (2,)), ("B", ())]
    plan = make_plan(strategy, np.eye(3), noise=noise, outputs=outputs, guarantees=[guarantee])
    with pytest.raises(UsageError, match="PS1006"):
        spends_of_plan(plan)
    (spend,) = spends_of_plan(plan, model_of("[0, 1]^2")).values()
    (name, expected), *_ = cost.items()
    found = getattr(spend, name)
    assert expected <= found <= expected * (1 + Fraction(1, 10**7))
    run(plan, {"x": [0, 1]}, ledger=tmp_path / "l.db", model=model_of("[0, 1]^2"))
