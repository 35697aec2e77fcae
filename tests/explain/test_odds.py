"""The wording of the odds, proved: on whole curves, on every test of small mechanisms, and by simulation."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privspec.explain.curves import (
    EpsilonDeltaCurve,
    GaussianCurve,
    PairsCurve,
    RenyiCurve,
    normal_cdf,
    odds,
    posterior,
)

from .plans import page, plan

MUS = st.floats(min_value=1e-3, max_value=12.0)
EPSILONS = st.floats(min_value=1e-3, max_value=12.0)
DELTAS = st.floats(min_value=0.0, max_value=0.3)
CURVES = st.one_of(st.builds(GaussianCurve, MUS), st.builds(EpsilonDeltaCurve, EPSILONS, DELTAS))


@pytest.mark.parametrize(
    ("epsilon", "pair"),
    [(0.5, (37, 63, 100)), (1.0, (26, 74, 100)), (0.0, (49, 51, 100)), (6.0, (2, 998, 1000))],
)
def test_pure_epsilon(epsilon: float, pair: tuple[int, int, int]) -> None:
    found = odds(EpsilonDeltaCurve(epsilon))
    assert (found.without, found.taking_part, found.of) == pair


def test_hopeless_guarantees_promise_nothing() -> None:
    found = odds(EpsilonDeltaCurve(800.0))
    assert (found.without, found.taking_part, found.of) == (0, 10_000_000, 10_000_000)
    assert found.tells_little
    assert EpsilonDeltaCurve(800.0).advantage() <= 1.0
    assert EpsilonDeltaCurve(800.0).misses(0.5) >= 0.0


@given(CURVES)
def test_no_point_of_the_curve_is_better_on_both_counts(curve: GaussianCurve | EpsilonDeltaCurve) -> None:
    found = odds(curve)
    for i in range(1, 200):
        false_alarms = i / 200
        hits = 1.0 - curve.misses(false_alarms)
        assert not (false_alarms < found.without / found.of and hits > found.taking_part / found.of + 1e-12)


@given(CURVES)
def test_equal_errors_are_where_the_curve_meets_the_diagonal(
    curve: GaussianCurve | EpsilonDeltaCurve,
) -> None:
    error = curve.equal_error()
    assert curve.misses(error) == pytest.approx(error, abs=1e-9)
    assert curve.advantage() == pytest.approx(1.0 - 2.0 * error, abs=1e-9)
    assert odds(curve).without / odds(curve).of <= error
    assert odds(curve).taking_part / odds(curve).of >= 1.0 - error


def _laws(weights: list[int], other: list[int]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(weights) / sum(weights), np.array(other) / sum(other)


WEIGHTS = st.lists(st.integers(1, 40), min_size=4, max_size=4)


@given(WEIGHTS, WEIGHTS, st.floats(0.0, 0.2))
def test_every_test_on_a_small_mechanism(weights: list[int], other: list[int], delta: float) -> None:
    """Any two laws satisfy (epsilon, delta) for some epsilon; no test, mixed or not, then beats the odds."""
    p, q = _laws(weights, other)
    events = [np.array(mask, dtype=bool) for mask in itertools.product([False, True], repeat=4)]

    def excess(epsilon: float) -> float:
        return max(max(a[e].sum() - math.exp(epsilon) * b[e].sum() for e in events) for a, b in ((p, q), (q, p)))

    low, high = 0.0, 8.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) <= delta else (middle, high)
    found = odds(EpsilonDeltaCurve(high, delta))
    points = [(p[e].sum(), q[e].sum()) for e in events]  # false alarms, hits
    for (a, hit), (b, other_hit) in itertools.combinations_with_replacement(points, 2):
        for share in (0.0, 0.25, 0.5, 0.75):
            false_alarms, hits = share * a + (1 - share) * b, share * hit + (1 - share) * other_hit
            assert not (false_alarms < found.without / found.of - 1e-12 and hits > found.taking_part / found.of + 1e-12)
        # a mixture of two tests whose two kinds of mistakes are equally frequent
        gap, other_gap = a - (1 - hit), b - (1 - other_hit)
        if gap != other_gap and 0.0 <= (share := other_gap / (other_gap - gap)) <= 1.0:
            error = share * a + (1 - share) * b
            assert error >= found.without / found.of - 1e-9


RHOS = st.floats(min_value=1e-4, max_value=4.0)


@given(RHOS)
def test_zcdp_allows_no_less_than_the_noise_that_has_it(rho: float) -> None:
    """Gaussian noise, and randomised response calibrated by brute force over orders, are within the curve of zCDP."""
    bound, noise = RenyiCurve(rho), GaussianCurve(math.sqrt(2 * rho))
    lie = bound.equal_error()
    assert lie <= noise.equal_error()
    assert all(bound.misses(a) <= noise.misses(a) + 1e-12 for a in (0.01, 0.1, 0.3, 0.7))
    assert bound.misses(lie) == pytest.approx(lie, abs=1e-9)
    # the two outcomes that attain it keep to the divergences at orders that the curve does not use
    for order in np.linspace(1.01, 60, 400):
        high, low = order * math.log1p(-lie) + (1 - order) * math.log(lie), order * math.log(lie)
        divergence = float(np.logaddexp(high, low + (1 - order) * math.log1p(-lie))) / (order - 1)
        assert divergence <= rho * order * (1 + 5e-3) + 1e-9
    # and a little less of lying does not
    less = lie * (1 - 1e-6) if lie > 1e-6 else 0.0
    assert not bound._allows(np.array([1 - less]), np.array([less])).any()


@pytest.mark.slow
@given(st.floats(1.2, 40.0), st.floats(1e-3, 3.0), WEIGHTS, WEIGHTS)
def test_renyi_divergence_of_one_order_by_brute_force(
    order: float, epsilon: float, weights: list[int], other: list[int]
) -> None:
    """No set of outcomes of any two laws beats the curve of their own divergence."""
    p, q = _laws(weights, other)

    def divergence(a: np.ndarray, b: np.ndarray) -> float:
        return math.log(float((a**order * b ** (1 - order)).sum())) / (order - 1)

    found = RenyiCurve(max(divergence(p, q), divergence(q, p)) + 1e-12, order)
    events = [np.array(mask, dtype=bool) for mask in itertools.product([False, True], repeat=4)]
    assert all(1 - q[e].sum() >= found.misses(float(p[e].sum())) - 1e-9 for e in events)
    assert RenyiCurve(epsilon, order).advantage() == pytest.approx(1 - 2 * RenyiCurve(epsilon, order).equal_error())


@given(st.lists(WEIGHTS, min_size=2, max_size=4), WEIGHTS, st.lists(st.integers(1, 9), min_size=4, max_size=4))
def test_people_who_gave_different_answers(others: list[list[int]], own: list[int], shares: list[int]) -> None:
    """Whatever answers the others gave: a guesser with equal errors accuses no fewer of them than the sentence says."""
    answer = np.array(own) / sum(own)
    rows = [np.array(row) / sum(row) for row in others]
    mix = np.array(shares[: len(rows)]) / sum(shares[: len(rows)])
    pairs = PairsCurve(np.array(rows), np.array([answer] * len(rows)), (math.inf, 0.0))
    found = odds(pairs)
    # the best guesser against the mixture is the likelihood-ratio test; none with equal errors does better
    mixed = np.einsum("i,ij->j", mix, np.array(rows))
    best = PairsCurve(mixed[None], answer[None], (math.inf, 0.0)).equal_error()
    assert best >= found.without / found.of


def _printed(page: str) -> tuple[float, float]:
    """The two shares as the page words them."""
    match = re.search(
        r"A guesser who errs equally often both ways would on average accuse at least (\S+) of (\S+) people who "
        r"[^.]*\. Such a guesser would find at most (\S+) of (\S+) who ",
        page,
    )
    assert match is not None
    numbers = [int(g.replace(",", "")) for g in match.groups()]
    return numbers[0] / numbers[1], numbers[2] / numbers[3]


def test_simulated_best_observer_of_gaussian_noise() -> None:
    """The likelihood-ratio test with equal errors errs as the page says, and barely more seldom than it allows."""
    at_least, at_most = _printed(page("prefix_sums", "public"))
    covariance = np.array(plan("prefix_sums")["mechanism"]["output_covariance"])
    rng = np.random.default_rng(7)
    factor = np.linalg.cholesky(covariance)
    shifts = np.linalg.solve(factor, np.tril(np.ones((64, 64))))
    worst = shifts[:, np.argmax((shifts**2).sum(axis=0))]
    mu = float(np.linalg.norm(worst))
    draws = 400_000
    noise = rng.standard_normal(draws)  # along the direction that tells the two worlds apart
    false_alarms = np.mean(noise > mu / 2)
    hits = np.mean(noise + mu > mu / 2)
    slack = 4 / math.sqrt(draws)
    assert at_least - slack <= false_alarms <= at_least + 0.01 + slack
    assert at_most - 0.01 - slack <= hits <= at_most + slack
    assert false_alarms == pytest.approx(normal_cdf(-mu / 2), abs=slack)


def test_simulated_best_observer_of_randomised_response() -> None:
    """Randomised response attains the bound of pure epsilon; 27 and 73 would be beaten on both counts."""
    at_least, at_most = _printed(page("histogram", "public"))
    rng = np.random.default_rng(11)
    truth = math.e / (1 + math.e)
    lies = rng.random(1_000_000) > truth
    false_alarms, hits = np.mean(lies), 1.0 - np.mean(rng.random(1_000_000) > truth)
    assert at_least <= false_alarms
    assert hits <= at_most
    assert false_alarms < 0.27
    assert hits > 0.73


def test_posterior_moves_by_the_factor() -> None:
    before, epsilon = 0.1, 1.0
    after = posterior(before, epsilon)
    assert after / (1 - after) == pytest.approx(math.e * before / (1 - before))
    assert posterior(0.0, 1.0) == 0.0
    assert posterior(1.0, 1.0) == 1.0
    assert posterior(0.5, 900.0) == pytest.approx(1.0)


@given(MUS, st.integers(1, 12))
def test_repeats_and_groups_of_gaussian_noise(mu: float, k: int) -> None:
    assert GaussianCurve(mu).repeated(k).mu == pytest.approx(mu * math.sqrt(k))
    assert GaussianCurve(mu).for_group(k).mu == pytest.approx(k * mu)


@given(st.floats(0.0, 3.0), st.floats(0.0, 1e-3), st.integers(1, 6))
def test_groups_follow_the_chain(epsilon: float, delta: float, k: int) -> None:
    """One step after another, as the induction of the note does it."""
    total, grown = 0.0, 0.0
    for _ in range(k):
        grown = delta + math.exp(epsilon) * grown
        total += epsilon
    found = EpsilonDeltaCurve(epsilon, delta).for_group(k)
    assert found.epsilon == pytest.approx(total)
    assert found.delta == pytest.approx(min(1.0, grown))
