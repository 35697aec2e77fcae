"""Noise of pure epsilon against formulas: Laplace scales, the geometric mechanism, the K-norm of the l2 ball."""

from __future__ import annotations

from fractions import Fraction
from math import exp, sinh

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privspec.families.gaussian.problem import Problem
from privspec.families.gaussian.release import Candidate, LinearRelease, length_up
from privspec.families.gaussian.release import reached as let_through
from privspec.kernel.laws.knorm import KNorm
from privspec.kernel.laws.laplace import Laplace

from .cases import PURE, SQUARES
from .specs import chosen, problem_of, spec

SERIES = "input x in [0, 2]^4; intermediate y; output O"
MATRIX = np.tril(np.ones((4, 4)))


def privacy(epsilon: float, relation: str = "replacing one entry", name: str = "x") -> str:
    return f"O is {epsilon}-DP wrt {name}, {relation}"


def candidate(text: str, name: str) -> Candidate:
    choice = chosen(text)
    return next(c for c in (choice.chosen, *choice.others) if c.name == name)


def amounts(problem: Problem, release: LinearRelease) -> list[Fraction]:
    """What each view reaches: of one vector by its length."""
    if not isinstance(release.noise, KNorm):
        return let_through(problem, release)
    views = zip(problem.system.views, release.view_rows, strict=True)
    return [length_up(release, view, rows) / release.noise.scale for view, rows in views]


def laplace_of(found: Candidate) -> Laplace:
    assert found.mechanism is not None
    noise = found.mechanism.release.noise
    assert isinstance(noise, Laplace)
    return noise


@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_laplace_noise_on_inputs(epsilon: float) -> None:
    """Scale = width / epsilon, variance 2 scale^2."""
    found = candidate(spec(SERIES, "y = prefix_sums(x)", SQUARES, privacy(epsilon)), "Laplace noise on x")
    np.testing.assert_allclose([float(b) for b in laplace_of(found).scales], 2 / epsilon, rtol=2e-6)
    assert found.loss == pytest.approx(2 * (2 / epsilon) ** 2 * (MATRIX**2).sum(), rel=2e-6)


def test_laplace_noise_on_answers_of_equal_weight() -> None:
    """The first entry moves all four totals: sum 2 / b = epsilon, and equal scales are best."""
    found = candidate(spec(SERIES, "y = prefix_sums(x)", SQUARES, privacy(1)), "Laplace noise on y")
    assert found.loss == pytest.approx(4 * 2 * (4 * 2) ** 2, rel=1e-5)


def test_laplace_scales_follow_weights() -> None:
    """One entry seen through two answers of weights w: b proportional to w^(-1/3)."""
    text = spec(
        "input x in [0, 1]^1; intermediate y; output O",
        "y = [x[1], x[1]]",
        "E[ (O[1] - y[1])^2 ] + 8 * E[ (O[2] - y[2])^2 ]",
        privacy(1),
    )
    first, second = (float(b) for b in laplace_of(candidate(text, "Laplace noise on y")).scales)
    assert first / second == pytest.approx(2, rel=1e-4)
    assert 1 / first + 1 / second == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 1, 3])
def test_counts_get_geometric_noise(epsilon: float) -> None:
    """Adding or removing one record: variance 2 p / (1 - p)^2, p = exp(-epsilon): twice the bound for any mechanism."""
    text = spec(
        "input p in table(a in 0..4); intermediate y; output O",
        "y = histogram(p)",
        SQUARES,
        privacy(epsilon, "adding or removing one record", "p"),
    )
    choice = chosen(text)
    release = choice.chosen.mechanism.release  # type: ignore[union-attr]
    assert (release.grid, release.output_grid) == ("2^0", "2^0")
    assert laplace_of(choice.chosen).scales == (1 / Fraction(str(epsilon)),) * 5
    p = exp(-epsilon)
    assert choice.chosen.loss == pytest.approx(5 * 2 * p / (1 - p) ** 2, rel=1e-9)
    assert choice.chosen.lower_bound == pytest.approx(5 / (4 * sinh(epsilon / 2) ** 2), rel=1e-6)
    assert choice.chosen.loss == pytest.approx(2 * choice.chosen.lower_bound, rel=1e-6)  # type: ignore[operator]


def test_replacing_a_record_moves_two_counts() -> None:
    """Independent noise hides two counts; noise of all that records may swap is better (test_shaped)."""
    p, choice = exp(-1 / 2), chosen(PURE["geometric, replacing"])
    alone = [one for one in choice.others if one.family == "laplace"]
    assert min(one.loss for one in alone) == pytest.approx(5 * 2 * p / (1 - p) ** 2, rel=1e-9)
    assert choice.chosen.loss < alone[0].loss


@pytest.mark.parametrize(("dimension", "radius", "epsilon"), [(1, 1, 1), (2, 1, 1), (5, 0.5, 2), (12, 3, 0.1)])
def test_the_knorm_mechanism_hides_balls(dimension: int, radius: float, epsilon: float) -> None:
    """Radius Gamma(d, 2r/epsilon), uniform direction: d (d + 1) (2r/epsilon)^2 in all."""
    text = spec(
        f"input x in l2_ball({radius}, {dimension}); output O",
        "",
        "E[ ||O - x||^2 ]",
        privacy(epsilon, "replacing everything"),
    )
    found = chosen(text).chosen
    if dimension == 1:  # an interval: a staircase is better than Laplace noise, which is the same law
        assert found.family == "staircase"
        assert found.loss < 2 * (2 * radius / epsilon) ** 2
        return
    noise = found.mechanism.release.noise  # type: ignore[union-attr]
    assert isinstance(noise, KNorm)
    assert found.family == "mixed"
    assert found.loss == pytest.approx(dimension * (dimension + 1) * (2 * radius / epsilon) ** 2, rel=1e-6)


@pytest.mark.parametrize("name", PURE)
def test_the_bound_for_every_unbiased_mechanism(name: str) -> None:
    choice = chosen(PURE[name])
    for found in (choice.chosen, *choice.others):
        if found.lower_bound is not None:
            assert found.lower_bound < found.loss


@pytest.mark.parametrize("name", PURE)
def test_epsilon_is_reached_and_not_passed(name: str) -> None:
    problem = problem_of(PURE[name])
    choice = chosen(PURE[name])
    for found in (choice.chosen, *choice.others):
        if found.mechanism is None:
            continue
        release = found.mechanism.release
        for view, reached in zip(problem.system.views, amounts(problem, release), strict=True):
            if release.noise.accounted:  # what is reached is the delta
                assert reached == 0
                assert release.noise.accounted["epsilon"] <= view.requirement.measure.amounts["epsilon"]
            else:
                assert Fraction(999, 1000) < reached <= 1


@settings(max_examples=25)
@given(
    st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=1, max_size=4).filter(
        lambda rows: all(any(row[i] for row in rows) for i in range(3))
    ),
    st.sampled_from(["0.5", "1", "2.5"]),
)
def test_any_small_map_meets_its_epsilon(rows: list[list[int]], epsilon: str) -> None:
    text = spec(
        f"input x in [0, 1]^3; constant A = {rows}; intermediate y; output O",
        "y = A @ x",
        SQUARES,
        f"O is {epsilon}-DP wrt x, replacing one entry",
    )
    problem = problem_of(text)
    choice = chosen(text)
    for found in (choice.chosen, *choice.others):
        if found.mechanism is None:
            continue
        (reached,) = amounts(problem, found.mechanism.release)
        assert reached <= Fraction(epsilon)
        assert found.lower_bound is not None
        assert found.lower_bound <= found.loss


def test_what_never_moves_needs_no_noise() -> None:
    """Under replacing, the last running total of a histogram is the number of records, which is public."""
    text = spec(
        "input p in table(a in 0..4); intermediate y; output O",
        "y = prefix_sums(histogram(p))",
        SQUARES,
        privacy(1, "replacing one record", "p"),
    )
    found = candidate(text, "Laplace noise on y")
    last = laplace_of(found).scales[-1]
    assert 0 < last < Fraction(1, 1000)
    # one record moves at most four totals by one each: scales of 4 are enough
    p = exp(-1 / 4)
    assert found.loss == pytest.approx(4 * 2 * p / (1 - p) ** 2, rel=1e-3)


@pytest.mark.parametrize("width", ["1e-30", "1e-9", "1e9", "1e30"])
def test_the_lattice_is_as_fine_as_the_noise(width: str) -> None:
    text = spec(f"input x in [0, {width}]^2; output O", "", "E[ ||O - x||^2 ]", privacy(1))
    found = chosen(text).chosen
    # two staircases
    assert found.loss == pytest.approx(2 * 1.918104 * float(width) ** 2, rel=1e-5)
    release = found.mechanism.release  # type: ignore[union-attr]
    assert float(release.step) < float(width) * 1e-8
    ball = spec(f"input x in l2_ball({width}, 3); output O", "", "E[ ||O - x||^2 ]", privacy(1, "replacing everything"))
    assert chosen(ball).chosen.loss == pytest.approx(12 * 4 * float(width) ** 2, rel=1e-6)
