"""Execution of whole plans: laws, grids, rounding at the outputs, malformed plans."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privspec.core.diagnostics import UsageError, VerificationError
from privspec.core.matrices import multiply
from privspec.execute.family import simulate
from privspec.families.gaussian.execution import draw, origin, read_executed
from privspec.noise.inverse import NORMAL, DrawnNumbers
from privspec.noise.samplers import SimulationRandomness
from tests.execute.begun import execute_plan

MakePlan = Callable[..., dict[str, Any]]
ALARM = 1e-6


def matrices(k: int = 5, n: int = 4, m: int = 3) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(7)
    return generator.normal(size=(k, n)), generator.normal(size=(m, k))


def covariance_fits(sample: np.ndarray, expected: np.ndarray) -> bool:
    """Every entry of the sample covariance within 6 standard errors, sqrt((C_ii C_jj + C_ij^2) / N)."""
    error = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / len(sample))
    return bool(np.all(np.abs(np.cov(sample.T) - expected) < 6 * error))


@pytest.mark.parametrize("rounding", ["strategy", "outputs"])
def test_covariance_and_mean_of_many_releases(make_plan: MakePlan, rounding: str) -> None:
    B, L = matrices()
    plan = make_plan(B, L, round_outputs=rounding == "outputs")
    sample = simulate(plan, 3000, seed=1)
    assert covariance_fits(sample, L @ L.T)
    error = np.sqrt(np.diag(L @ L.T) / len(sample))
    assert np.all(np.abs(sample.mean(axis=0)) < 6 * error)


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize(
    ("noise", "variance"),
    [
        ({"shape": "gaussian", "scale": "3/2"}, 2.25),
        ({"shape": "laplace", "scales": ["3/2", "1/3", "2"]}, 2 * np.array([1.5, 1 / 3, 2]) ** 2),
        ({"shape": "laplace", "scale": "3/2"}, 4.5),
        ({"shape": "knorm-l2", "scale": "1/2"}, 4 * 0.25),
    ],
)
def test_laws_have_their_variance(make_plan: MakePlan, noise: dict[str, Any], variance: Any, approximate: bool) -> None:
    plan = make_plan(np.eye(3), np.eye(3), noise=noise)
    sample = simulate(plan, 4000, seed=2, approximate=approximate)
    expected = np.broadcast_to(variance, 3)
    # the fourth moment of all three laws is at most 6 variance^2
    assert np.all(np.abs(sample.var(axis=0) / expected - 1) < 6 * np.sqrt(5 / 4000))


def test_exact_and_approximate_simulation_agree(make_plan: MakePlan) -> None:
    plan = make_plan(*matrices())
    exact, floats = simulate(plan, 3000, seed=3), simulate(plan, 3000, seed=4, approximate=True)
    assert all(stats.ks_2samp(a, b).pvalue > ALARM for a, b in zip(exact.T, floats.T, strict=True))


def test_released_values_lie_on_the_declared_grid(make_plan: MakePlan) -> None:
    for rounding in ("strategy", "outputs"):
        plan = make_plan(*matrices(), round_outputs=rounding == "outputs", output_grid="2^-10")
        steps = execute_plan(plan, {"x": [0.1, 0.2, 0.3, 0.4]}).outputs["O"] * 2**10
        assert np.array_equal(steps, np.rint(steps))


def test_rounding_the_outputs_is_the_rounded_exact_sum(make_plan: MakePlan) -> None:
    B, L = matrices()
    plan = make_plan(B, L, round_outputs=True, output_grid="2^-40")
    executed = read_executed(plan)
    coarse = draw(executed, origin(executed), SimulationRandomness(5))
    # the same noise, evaluated in floats from the first digits
    low, _ = DrawnNumbers(NORMAL, 5, SimulationRandomness(5)).ends(60, signed=True)
    noise = low.astype(float) / 2.0**60
    answers = multiply(executed.strategy, origin(executed)).to_float()
    assert np.allclose(coarse, L @ (answers + noise), atol=1e-9)


def test_without_noise_the_answers_are_right(make_plan: MakePlan) -> None:
    B, L = matrices()
    plan = make_plan(B, L, noise={"shape": "gaussian", "scale": "1e-12"})
    values = np.array([0.25, 0.5, 1.0, 7.0])
    release = execute_plan(plan, {"x": values}, randomness=SimulationRandomness(1))
    assert np.allclose(release.outputs["O"], L @ B @ np.clip(values, 0, 1), atol=1e-5)


def test_offsets_shapes_and_several_outputs(make_plan: MakePlan) -> None:
    plan = make_plan(
        np.eye(4),
        np.vstack([np.eye(4), np.ones((1, 4))]),
        outputs=[("A", (2, 2)), ("t", ())],
        noise={"shape": "gaussian", "scale": "1e-12"},
        offset=[1, 2, 3, 4, 0],
    )
    release = execute_plan(plan, {"x": [0, 0.5, 0.25, 1]})
    assert release.outputs["A"].shape == (2, 2)
    assert np.allclose(release.outputs["A"], [[1, 2.5], [3.25, 5]], atol=1e-5)
    assert abs(release.outputs["t"] - 1.75) < 1e-5


def test_outputs_of_estimated_inputs_are_those_of_the_problem(make_plan: MakePlan) -> None:
    plan = make_plan(
        np.eye(2),
        np.eye(2),
        of="inputs",
        outputs=[("O", (1,))],
        noise={"shape": "laplace", "scale": "1/10000"},
        target=[[2, 4]],
    )
    assert abs(execute_plan(plan, {"x": [1, 0.5]}).outputs["O"][0] - 4) < 0.02
    assert simulate(plan, 10, 1).shape == (10, 1)


def test_laplace_answers_differ_by_the_counted_steps(make_plan: MakePlan) -> None:
    """|round(v) - round(v')| <= ceil(|v - v'|): what the notes count."""
    from privspec.core.matrices import ExactVector, integers
    from privspec.noise.law import on_lattice

    generator = np.random.default_rng(0)
    grid = Fraction(1, 8)
    for _ in range(200):
        first, second = (int(v) for v in generator.integers(-1000, 1000, size=2))
        a, b = on_lattice(ExactVector(integers([first, second]), 77), grid)
        assert abs(a - b) <= ceil(abs(Fraction(first - second, 77)) / grid)


def test_many_exact_draws_are_refused(make_plan: MakePlan) -> None:
    with pytest.raises(UsageError, match="PS0822"):
        simulate(make_plan(*matrices()), 10**7, seed=1)


def test_a_changed_plan_is_refused(identity_plan: dict[str, Any]) -> None:
    identity_plan["mechanism"]["executed"]["grid"] = "2^-2"
    with pytest.raises(VerificationError, match="PS0823"):
        execute_plan(identity_plan, {"x": [0, 0, 0, 0]})


@pytest.mark.parametrize(
    "change",
    [
        {"noise": {"shape": "none"}},
        {"noise": {"shape": "gaussian", "scale": "0"}},
        {"noise": {"shape": "laplace", "scales": ["1", "2"]}},
        {"grid": "0"},
        {"output_grid": "-1"},
        {"grid": "2^-99999"},
        {"strategy": {"shape": [1, 1], "unit": "2^0", "rows": [1]}},
        {"reconstruction": {"shape": [1, 1], "unit": "2^0", "rows": [1]}},
        {"of_inputs": "clouds"},
        {"outputs": []},
        {"steps": []},
        {"steps": ["2^-2", "2^-2"]},
        {"steps": ["2/3"]},
        {"steps": ["0"]},
        {"senders": [1, 1, 1, 1]},
        {"parties": 3},
        {"noise": {"shape": "laplace", "scales": ["1"] * 4}, "round_outputs": True},
        {"noise": {"shape": "laplace", "scales": ["1"] * 4, "whole": True}},
    ],
)
def test_malformed_plans_are_refused(identity_plan: dict[str, Any], change: dict[str, Any]) -> None:
    identity_plan["mechanism"]["executed"].update(change)
    with pytest.raises(UsageError, match="PS0820"):
        read_executed(identity_plan)


def test_a_plan_without_mechanism_is_refused() -> None:
    with pytest.raises(UsageError, match="PS0820"):
        read_executed({"format": "privspec-plan/3.0", "status": "infeasible"})
