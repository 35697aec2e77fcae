"""Probit estimates: certified optimal, exactly inside the ball, and each voter on its own."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from privspec.solvers.probit import BALLS, inside, probit_mle, slope
from scipy.optimize import minimize
from scipy.special import erfcx, log_ndtr

Array = np.ndarray


def choices(voters: int, n: int, d: int, seed: int = 0, spread: float = 0.5) -> Array:
    rng = np.random.default_rng(seed)
    records = rng.normal(size=(voters, n, d))
    taste = spread * rng.normal(size=(voters, d, 1))
    chosen = np.sign((records @ taste)[..., 0] + rng.normal(size=(voters, n)))
    return records * chosen[..., None]


def cases(name: str) -> Array:
    """Records of a few voters, by what is special about them."""
    rng = np.random.default_rng(7)
    plain = choices(40, 13, 23, seed=3)
    if name == "integers":
        return np.rint(2 * plain)
    if name == "signs":
        return np.sign(plain)
    if name == "duplicate columns":
        return np.concatenate([plain[:, :, :8], plain[:, :, :8], -plain[:, :, :8]], axis=2)
    if name == "duplicate records":
        return np.repeat(plain[:, :4], 5, axis=1)
    if name == "separable":
        return np.abs(plain[:, :, :6])
    if name == "opposite records":
        return np.concatenate([plain[:, :6], -plain[:, :6]], axis=1)
    if name == "zero":
        return np.zeros((3, 5, 4))
    if name == "one feature":
        return plain[:, :, :1]
    if name == "one record":
        return plain[:, :1]
    if name == "many records":
        return choices(20, 60, 5, seed=4)
    if name == "tiny":
        return 1e-160 * plain
    if name == "huge":
        return 1e140 * np.sign(rng.normal(size=(10, 30, 4))) * (1 + rng.random((10, 30, 4)))
    return plain


NAMES = [
    "plain",
    "integers",
    "signs",
    "duplicate columns",
    "duplicate records",
    "separable",
    "opposite records",
    "zero",
]
NAMES += ["one feature", "one record", "many records", "tiny"]


def exact_norm(row: Array, norm: str) -> Fraction:
    parts = [abs(Fraction(float(value))) for value in row]
    return sum(parts, Fraction(0)) if norm == "l1" else sum((p * p for p in parts), Fraction(0))


def assert_inside(weights: Array, radius: float, norm: str) -> None:
    bound = Fraction(radius) if norm == "l1" else Fraction(radius) ** 2
    assert all(exact_norm(row, norm) <= bound for row in weights)


def plain_gap(records: Array, weights: Array, radius: float, norm: str) -> Array:
    """The Frank-Wolfe gap, written out without the solver's formulas."""
    values = np.einsum("ijk,ik->ij", records, weights)
    ratios = np.exp(-(values**2) / 2 - np.log(2 * np.pi) / 2 - log_ndtr(values))
    gradients = -np.einsum("ijk,ij->ik", records, ratios)
    dual = np.abs(gradients).max(axis=1) if norm == "l1" else np.linalg.norm(gradients, axis=1)
    return ((gradients * weights).sum(axis=1) + radius * dual) / -log_ndtr(values).sum(axis=1)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("name", NAMES)
def test_certified_and_inside(name: str, norm: str) -> None:
    records = cases(name)
    for radius in (0.3, 1.7):
        solution = probit_mle(records, radius, norm=norm)
        assert solution.converged(), (name, solution.gaps.max())
        assert_inside(solution.weights, radius, norm)
        assert np.all(plain_gap(records, solution.weights, radius, norm) <= 1.01e-6)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_huge_records_stay_inside(norm: str) -> None:
    solution = probit_mle(cases("huge"), 3.0, norm=norm, limit=500)
    assert_inside(solution.weights, 3.0, norm)
    assert np.isfinite(solution.weights).all() and not np.isnan(solution.gaps).any()


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_against_slsqp(norm: str) -> None:
    records, radius = choices(6, 20, 3, seed=5), 0.8
    solution = probit_mle(records, radius, tolerance=1e-9, norm=norm)
    for voter, weights in zip(records, solution.weights, strict=True):
        split = np.concatenate([voter, -voter], axis=1) if norm == "l1" else voter
        room = (
            {"type": "ineq", "fun": lambda x: radius - x.sum()}
            if norm == "l1"
            else {"type": "ineq", "fun": lambda x: radius**2 - x @ x}
        )
        bounds = [(0, None)] * 6 if norm == "l1" else None
        best = minimize(
            lambda x, split=split: -log_ndtr(split @ x).sum(),
            np.full(split.shape[1], 0.01),
            bounds=bounds,
            constraints=[room],
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        point = best.x[:3] - best.x[3:] if norm == "l1" else best.x
        assert -log_ndtr(voter @ weights).sum() <= best.fun * (1 + 1e-8)
        assert np.allclose(point, weights, atol=1e-4)


@pytest.mark.parametrize("shape", [(13, 23), (50, 10), (7, 1), (1, 5), (9, 16)])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_a_voter_alone_and_in_any_crowd(shape: tuple[int, int], norm: str) -> None:
    records = np.concatenate([choices(150, *shape, seed=1), np.rint(choices(150, *shape, seed=2, spread=2.0))])
    together = probit_mle(records, 1.5, norm=norm).weights
    order = np.random.default_rng(0).permutation(300)
    assert np.array_equal(probit_mle(records[order], 1.5, norm=norm).weights, together[order])
    assert np.array_equal(probit_mle(records[:37], 1.5, norm=norm).weights, together[:37])
    for voter in range(0, 300, 29):
        alone = probit_mle(records[voter : voter + 1], 1.5, norm=norm).weights
        assert np.array_equal(alone[0], together[voter])


def test_identical_voters_get_identical_weights() -> None:
    weights = probit_mle(np.tile(choices(1, 13, 23), (301, 1, 1)), 1.0).weights
    assert np.all(weights == weights[0])


VALUES = np.concatenate([np.linspace(-30, 30, 30_001), [-1e8, -1e60, -1e100, 1e100, 37.0], -np.logspace(-8, 60, 400)])
SLOPES = np.sqrt(2 / np.pi) / erfcx(-np.sqrt(0.5) * VALUES)


def test_slopes_match_scipy() -> None:
    with np.errstate(over="ignore", under="ignore"):
        assert np.allclose(slope(VALUES), SLOPES, rtol=2e-14, atol=1e-300)
    assert np.array_equal(slope(VALUES[1:]), slope(VALUES)[1:])  # wherever a number stands


def test_separable_integers_in_a_wide_ball() -> None:
    records = np.rint(2 * choices(60, 13, 23, seed=11))
    solution = probit_mle(records, 5.0, limit=5000)
    assert solution.converged()
    assert_inside(solution.weights, 5.0, "l1")


def test_a_limit_is_told() -> None:
    solution = probit_mle(choices(20, 13, 23), 4.0, tolerance=1e-9, limit=1)
    assert not solution.converged(1e-9)
    assert_inside(solution.weights, 4.0, "l1")


@pytest.mark.parametrize(
    ("records", "radius", "norm"),
    [(np.ones((2, 3)), 1.0, "l1"), (np.full((1, 2, 2), np.nan), 1.0, "l1"), (np.ones((1, 2, 2)), 0.0, "l1")],
)
def test_what_makes_no_sense(records: Array, radius: float, norm: str) -> None:
    with pytest.raises(ValueError):
        probit_mle(records, radius, norm=norm)  # type: ignore[arg-type]


def test_no_voters_no_records() -> None:
    assert probit_mle(np.zeros((0, 3, 2)), 1.0).weights.shape == (0, 2)
    empty = probit_mle(np.zeros((4, 0, 2)), 1.0)
    assert np.all(empty.weights == 0) and np.all(empty.gaps == 0)


@settings(deadline=None, max_examples=60)
@given(
    st.tuples(st.integers(1, 4), st.integers(1, 6), st.integers(1, 5)).flatmap(
        lambda shape: hnp.arrays(float, shape, elements=st.floats(-8, 8) | st.integers(-3, 3).map(float))
    ),
    st.floats(1e-3, 3),
    st.sampled_from(["l1", "l2"]),
)
def test_any_records(records: Array, radius: float, norm: str) -> None:
    solution = probit_mle(records, radius, norm=norm, limit=500)  # type: ignore[arg-type]
    assert_inside(solution.weights, radius, norm)
    assert np.all(solution.gaps >= 0)
    values = (records @ solution.weights[..., None])[..., 0]
    assert np.all(-log_ndtr(values).sum(axis=1) <= records.shape[1] * np.log(2) * (1 + 1e-12))


@settings(deadline=None, max_examples=200)
@given(
    hnp.arrays(
        float, st.tuples(st.just(3), st.integers(1, 9)), elements=st.floats(allow_nan=False, allow_infinity=False)
    ),
    st.floats(5e-324, 1e300),
    st.sampled_from(["l1", "l2"]),
)
def test_every_point_is_moved_inside(points: Array, radius: float, norm: str) -> None:
    with np.errstate(all="ignore"):
        assert_inside(inside(points / points.shape[1], radius, BALLS[norm]), radius, norm)
