"""Exact samplers against their laws. Seeds are fixed; thresholds are for a false alarm below 1e-6 a test."""

from __future__ import annotations

import os
import time
from fractions import Fraction
from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privspec.noise.samplers import (
    KNORM_LIMIT,
    Normal,
    Randomness,
    RootDifference,
    SimulationRandomness,
    SystemRandomness,
    bernoulli_exp,
    bernoulli_exp_real,
    discrete_knorm_l2,
    discrete_laplace,
    round_half_up,
    round_noisy,
)

ALARM = 1e-6


def frequency_fits(hits: int, trials: int, probability: float) -> bool:
    return bool(stats.binomtest(hits, trials, probability).pvalue > ALARM)


def chi_square(sample: np.ndarray, points: np.ndarray, law: np.ndarray) -> float:
    """P-value of a sample against probabilities at points; everything rare or elsewhere is one cell."""
    expected = law * len(sample)
    keep = expected > 10
    observed = np.array([np.sum(sample == x) for x in points[keep]])
    observed = np.append(observed, len(sample) - observed.sum())
    expected = np.append(expected[keep], len(sample) - expected[keep].sum())
    return float(stats.chisquare(observed, expected).pvalue)


def test_normal_law() -> None:
    source = SimulationRandomness(1)
    sample = np.array([Normal(source).floor(60) for _ in range(40_000)]) / 2.0**60
    assert stats.kstest(sample, "norm").pvalue > ALARM
    # the fourth and the tail probabilities are where a wrong rejection step would show
    counts, _ = np.histogram(np.abs(sample), bins=[0, 1, 2, 3, np.inf])
    edges = np.array([0, 1, 2, 3, np.inf])
    expected = 2 * np.diff(stats.norm.cdf(edges)) * len(sample)
    assert stats.chisquare(counts, expected).pvalue > ALARM


def test_low_digits_are_uniform() -> None:
    source = SimulationRandomness(2)
    digits = [Normal(source).floor(70) & 15 for _ in range(16_000)]
    assert stats.chisquare(np.bincount(digits, minlength=16)).pvalue > ALARM


def test_refining_a_normal_keeps_its_value() -> None:
    source = SimulationRandomness(3)
    for _ in range(300):
        number = Normal(source)
        coarse, fine, finest = number.floor(5), number.floor(64), number.floor(300)
        assert fine >> 59 == coarse
        assert finest >> 236 == fine
        assert number.floor(64) == fine


def test_normal_is_fast_enough() -> None:
    source = SystemRandomness()
    begin = time.perf_counter()
    for _ in range(2000):
        Normal(source).floor(64)
    assert (time.perf_counter() - begin) / 2000 < 200e-6  # 12 microseconds on an idle machine


def test_rounded_gaussian_law_on_a_coarse_grid() -> None:
    source = SimulationRandomness(4)
    value, grid = Fraction(1, 3), Fraction(1, 2)
    sample = np.array([round_noisy(value.numerator, value.denominator, grid, Normal(source)) for _ in range(30_000)])
    points = np.arange(-8, 10)
    law = np.diff(stats.norm.cdf((np.arange(-8, 11) - 0.5) * float(grid) - float(value)))
    assert chi_square(sample, points, law) > ALARM


@given(
    st.fractions(min_value=-(10**6), max_value=10**6, max_denominator=10**9),
    st.sampled_from([Fraction(1, 2**30), Fraction(1, 8), Fraction(3, 7), Fraction(5)]),
    st.integers(0, 10**6),
)
@settings(max_examples=200, deadline=None)
def test_rounding_agrees_with_a_finer_evaluation(value: Fraction, grid: Fraction, seed: int) -> None:
    number = Normal(SimulationRandomness(seed))
    rounded = round_noisy(value.numerator, value.denominator, grid, number)
    middle = Fraction(2 * number.floor(400) + 1, 2**401)
    assert rounded == ((value + middle) / grid + Fraction(1, 2)) // 1


@given(st.integers(-1000, 1000), st.integers(1, 50))
def test_round_half_up(numerator: int, denominator: int) -> None:
    assert round_half_up(numerator, denominator) == (Fraction(numerator, denominator) + Fraction(1, 2)) // 1


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 1), (1, 3), (1, 1), (5, 2)])
def test_bernoulli_exp(numerator: int, denominator: int) -> None:
    source = SimulationRandomness(5)
    hits = sum(bernoulli_exp(numerator, denominator, source) for _ in range(20_000))
    assert frequency_fits(hits, 20_000, exp(-numerator / denominator))


@pytest.mark.parametrize(
    "real",
    [
        RootDifference(2, Fraction(1), Fraction(1)),
        RootDifference(9, Fraction(1, 2), Fraction(0)),
        RootDifference(0, Fraction(1), Fraction(0)),
        RootDifference(7, Fraction(3), Fraction(5)),
    ],
)
def test_bernoulli_exp_of_a_real(real: RootDifference) -> None:
    source = SimulationRandomness(6)
    hits = sum(bernoulli_exp_real(real, source) for _ in range(10_000))
    assert frequency_fits(hits, 10_000, exp(-(np.sqrt(real.square) * float(real.slope) - float(real.shift))))


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(7, 5), Fraction(40)])
def test_discrete_laplace_law(scale: Fraction) -> None:
    source = SimulationRandomness(7)
    sample = np.array([discrete_laplace(scale, source) for _ in range(20_000)])
    points = np.arange(-200, 201)
    p = np.exp(-1 / float(scale))
    assert chi_square(sample, points, (1 - p) / (1 + p) * p ** np.abs(points)) > ALARM


def test_discrete_laplace_is_the_law_of_opendp() -> None:
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    theirs = (dp.atom_domain(T=int), dp.absolute_distance(T=int)) >> dp.m.then_laplace(scale=2.5)
    source = SimulationRandomness(8)
    ours = np.array([discrete_laplace(Fraction(5, 2), source) for _ in range(8000)])
    others = np.array([theirs(0) for _ in range(8000)])
    cells = range(-8, 9)
    table = np.array([[np.sum(np.clip(s, -8, 8) == x) for x in cells] for s in (ours, others)])
    assert stats.chi2_contingency(table).pvalue > ALARM


def test_knorm_law_is_exact_on_a_small_lattice() -> None:
    source, scale = SimulationRandomness(9), Fraction(3, 2)
    sample = [tuple(discrete_knorm_l2(2, scale, source)) for _ in range(20_000)]
    lattice = [(a, b) for a in range(-60, 61) for b in range(-60, 61)]
    weights = np.array([exp(-np.hypot(a, b) / float(scale)) for a, b in lattice])
    codes = np.array([1000 * a + b for a, b in sample])
    points = np.array([1000 * a + b for a, b in lattice])
    assert chi_square(codes, points, weights / weights.sum()) > ALARM


@pytest.mark.parametrize(("dimension", "size"), [(1, 3000), (3, 3000), (8, 800)])
def test_knorm_radius_and_direction(dimension: int, size: int) -> None:
    source, steps = SimulationRandomness(10), 2**30
    sample = np.array([discrete_knorm_l2(dimension, Fraction(steps), source) for _ in range(size)]) / steps
    radius = np.linalg.norm(sample, axis=1)
    assert stats.kstest(radius, "gamma", args=(dimension,)).pvalue > ALARM
    if dimension == 3:  # a coordinate of a uniform direction in three dimensions is uniform
        assert stats.kstest(sample[:, 0] / radius, "uniform", args=(-1, 2)).pvalue > ALARM


def test_knorm_refuses_many_dimensions() -> None:
    with pytest.raises(ValueError, match="dimensions"):
        discrete_knorm_l2(KNORM_LIMIT + 1, Fraction(1), SimulationRandomness(1))


class Scripted(Randomness):
    """Words from a list, to force ties between uniform numbers."""

    private = False

    def __init__(self, words: list[int]) -> None:
        super().__init__()
        self.script = words

    def _fresh(self, count: int) -> bytes:
        raise AssertionError("the script is over")

    def word(self) -> int:
        return self.script.pop(0)


def test_ties_are_broken_by_further_digits() -> None:
    # 1/2 > U1 and U2 has the same first digit; its second digit is the smaller one; the run ends at U3
    from privspec.noise.samplers import _bernoulli_exp_half

    source = Scripted([5, 5, 4, 9, 6])
    assert _bernoulli_exp_half(source)  # the run U1 > U2 has even length
    assert not source.script


@given(st.integers(1, 10**30), st.integers(0, 100))
def test_below_stays_in_range(bound: int, seed: int) -> None:
    assert 0 <= SimulationRandomness(seed).below(bound) < bound


def test_a_seed_repeats_and_the_system_does_not() -> None:
    assert SimulationRandomness(1).bits(640) == SimulationRandomness(1).bits(640)
    assert SimulationRandomness(1).bits(640) != SimulationRandomness(2).bits(640)
    assert SystemRandomness().bits(640) != SystemRandomness().bits(640)
    assert SystemRandomness.private and not SimulationRandomness.private


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_does_not_share_noise() -> None:
    source = SystemRandomness()
    source.word()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, source.bits(256).to_bytes(32, "big"))
        os._exit(0)
    os.waitpid(child, 0)
    assert int.from_bytes(os.read(read, 32), "big") != source.bits(256)
