"""Exact noise at statistics against its laws. Seeds are fixed; a false alarm has a chance below 1e-6 a test."""

from __future__ import annotations

from fractions import Fraction
from math import exp, sqrt

import flint
import numpy as np
import pytest
from scipy import stats

from privspec.families.statistics.execution import (
    SphereLaw,
    directions,
    law_of,
    logistic,
    roots,
)
from privspec.kernel.laws.statistics import Noise
from privspec.model.library import GRID_BITS
from privspec.noise.samplers import SimulationRandomness

from .tables import ALARM


def test_coins() -> None:
    source, count = SimulationRandomness(6), 10**6
    for found, probability in (
        (logistic(Fraction(3, 2), count, source), 1 / (1 + exp(-1.5))),
        (roots(np.full(count, 2), Fraction(9, 2), source), 2 / 3),
        (roots(np.full(count, 1), Fraction(2), source), 1 / sqrt(2)),
    ):
        assert stats.binomtest(int(found.sum()), count, probability).pvalue > ALARM
    assert roots(np.array([9, 9]), Fraction(9), source).all() and not roots(np.array([0, 0]), Fraction(9), source).any()


class Twice(SimulationRandomness):
    """One word, and then another, for ever."""

    def __init__(self, first: int, then: int) -> None:
        super().__init__(0)
        self.first, self.then = first, then

    def words(self, count: int) -> np.ndarray:
        return np.full(count, self.first, dtype=np.uint64)

    def word(self) -> int:
        return self.then


def test_coins_that_doubles_cannot_decide() -> None:
    """sqrt(1/2) and 1 / (1 + e^-1), whose first 64 digits leave it open: the digits behind them decide, exactly."""
    with flint.ctx.workprec(300):
        half, share = flint.arb(0.5).sqrt(), 1 / (1 + (-flint.arb(1)).exp())
        digits = [int((x * flint.arb(2) ** 128).floor().unique_fmpz()) for x in (half, share)]
    squares, limit = np.full(2, 1), Fraction(2)
    for place, toss in enumerate((lambda s: roots(squares, limit, s), lambda s: logistic(Fraction(1), 2, s))):
        first, then = digits[place] >> 64, digits[place] & (2**64 - 1)
        for word, more, answer in (
            (first - 1, 0, True),
            (first + 1, 0, False),
            (first, then - 1, True),
            (first, then + 1, False),
        ):
            assert (toss(Twice(word, more)) == answer).all()


def test_long_vectors_have_exact_inner_products() -> None:
    """A statistic whose inner products do not fit into 64 bits, against one that is shorter by a common factor."""
    law = [SphereLaw(Fraction(1), Fraction(size), 2) for size in (1, 2**30)]
    short = np.array([[2**19, -(2**18)]] * 500)
    found = [one.each(short << shift, SimulationRandomness(4)) for one, shift in zip(law, (0, 30), strict=True)]
    assert np.allclose(found[0] * 2**30, found[1])


def test_directions_are_symmetric_and_uniform() -> None:
    source = SimulationRandomness(7)
    found = directions(20_000, 2, source)
    angles = np.arctan2(found[:, 1], found[:, 0])
    assert stats.kstest((angles + np.pi) / (2 * np.pi), "uniform").pvalue > ALARM
    assert found.any(axis=1).all()


@pytest.mark.parametrize("statistic", [(0.0, 0.0, 0.0), (0.25, -0.5, 0.5), (0.0, 0.0, 1.0)])
def test_sphere_reports_are_unbiased_and_keep_their_promise(statistic: tuple[float, ...]) -> None:
    law = SphereLaw(Fraction(1), Fraction(1), 3)
    count = 20_000
    exact = np.round(np.array(statistic) * 2**GRID_BITS).astype(np.int64)
    reports = law.each(np.tile(exact, (count, 1)), SimulationRandomness(8))
    lengths = np.linalg.norm(reports, axis=1)
    assert np.allclose(lengths, lengths[0])
    error = reports.std(axis=0) / sqrt(count)
    assert np.all(np.abs(reports.mean(axis=0) - statistic) < 6 * error)


def test_sphere_report_chooses_the_hemisphere_as_often_as_it_says() -> None:
    law = SphereLaw(Fraction(2), Fraction(1), 2)
    count = 20_000
    exact = np.tile(np.array([2**GRID_BITS, 0]), (count, 1))
    near = int((law.each(exact, SimulationRandomness(9))[:, 0] > 0).sum())
    assert stats.binomtest(near, count, 1 / (1 + exp(-2.0))).pvalue > ALARM


@pytest.mark.parametrize("shape", ["laplace", "gaussian", "knorm-l2", "knorm-linf"])
def test_noise_is_added_to_the_exact_numbers(shape: str) -> None:
    law = law_of(Noise(shape, Fraction(1, 10**12), None), 2)
    total = [3, -(2**70)]
    assert (law.pooled(total, SimulationRandomness(1)) * 2.0**GRID_BITS).tolist() == total  # type: ignore[attr-defined]
    some = np.arange(10).reshape(5, 2)
    assert (law.each(some, SimulationRandomness(2)) * 2.0**GRID_BITS).tolist() == some.tolist()


@pytest.mark.parametrize(("shape", "norm"), [("knorm-l2", 2), ("knorm-linf", np.inf)])
def test_every_party_has_a_vector_of_its_own(shape: str, norm: float) -> None:
    found = law_of(Noise(shape, Fraction(3), None), 4).each(
        np.zeros((1000, 4), dtype=np.int64), SimulationRandomness(3)
    )
    radius = np.linalg.norm(found, norm, axis=1) / 3
    assert stats.kstest(radius, "gamma", args=(4,)).pvalue > ALARM
