"""Exact noise at statistics against its laws. Seeds are fixed; a false alarm has a chance below 1e-6 a test."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import exp, sqrt

import numpy as np
import pytest
from scipy import stats

from privspec.families.statistics.noise import (
    SphereLaw,
    bernoulli_logistic,
    bernoulli_root,
    directions,
    discrete_knorm_linf,
    geometric,
    law_of,
    smooth_knorm_l2,
)
from privspec.kernel.lemmas.statistics import Noise
from privspec.model.library import GRID_BITS
from privspec.noise.samplers import SimulationRandomness, discrete_knorm_l2

from .tables import ALARM, chi_square


def vectors_fit(sample: list[tuple[int, ...]], norm: float, scale: float, reach: int) -> bool:
    """Whether vectors have probabilities proportional to exp(-norm / scale); those beyond `reach` are one cell."""
    dimension = len(sample[0])

    def weights(most: int) -> np.ndarray:
        found = np.array(list(itertools.product(range(-most, most + 1), repeat=dimension)))
        return np.exp(-np.linalg.norm(found, norm, axis=1) / scale)

    points = list(itertools.product(range(-reach, reach + 1), repeat=dimension))
    law = weights(reach) / weights(8 * reach).sum()
    counts = dict.fromkeys(points, 0)
    for z in sample:
        if z in counts:
            counts[z] += 1
    observed = np.array([*counts.values(), len(sample) - sum(counts.values())])
    return chi_square(observed, [*law, 1 - law.sum()]) > ALARM


def test_geometric_law() -> None:
    source = SimulationRandomness(1)
    scale = Fraction(7, 3)
    sample = np.bincount([geometric(scale, source) for _ in range(20_000)], minlength=60)
    q = exp(-1 / float(scale))
    law = (1 - q) * q ** np.arange(len(sample))
    assert chi_square(np.append(sample, 0), [*law, q ** len(sample)]) > ALARM


@pytest.mark.parametrize(
    ("dimension", "scale", "reach"), [(1, Fraction(5, 2), 12), (2, Fraction(2), 6), (3, Fraction(1, 2), 2)]
)
def test_cube_law(dimension: int, scale: Fraction, reach: int) -> None:
    source = SimulationRandomness(2)
    sample = [tuple(discrete_knorm_linf(dimension, scale, source)) for _ in range(20_000)]
    assert vectors_fit(sample, np.inf, float(scale), reach)


@pytest.mark.parametrize(
    ("dimension", "scale", "reach"), [(1, Fraction(7, 2), 12), (2, Fraction(5, 2), 5), (3, Fraction(2), 3)]
)
def test_length_law(dimension: int, scale: Fraction, reach: int) -> None:
    source = SimulationRandomness(3)
    sample = [tuple(smooth_knorm_l2(dimension, scale, source)) for _ in range(12_000)]
    assert vectors_fit(sample, 2, float(scale), reach)


def test_both_samplers_of_the_length_agree() -> None:
    source = SimulationRandomness(4)
    scale = Fraction(1000)
    lengths = [
        [sqrt(sum(z * z for z in sampler(5, scale, source))) for _ in range(1500)]
        for sampler in (smooth_knorm_l2, discrete_knorm_l2)
    ]
    assert stats.ks_2samp(*lengths).pvalue > ALARM
    assert stats.kstest(np.array(lengths[0]) / 1000, "gamma", args=(5,)).pvalue > ALARM


def test_length_of_many_numbers() -> None:
    source = SimulationRandomness(5)
    lengths = [sqrt(sum(z * z for z in smooth_knorm_l2(90, Fraction(2**20), source))) / 2**20 for _ in range(60)]
    assert stats.kstest(lengths, "gamma", args=(90,)).pvalue > ALARM


def test_coins() -> None:
    source = SimulationRandomness(6)
    for found, probability in (
        ([bernoulli_logistic(Fraction(3, 2), source) for _ in range(20_000)], 1 / (1 + exp(-1.5))),
        ([bernoulli_root(2, Fraction(9, 2), source) for _ in range(20_000)], 2 / 3),
        ([bernoulli_root(1, Fraction(2), source) for _ in range(20_000)], 1 / sqrt(2)),
    ):
        assert stats.binomtest(sum(found), 20_000, probability).pvalue > ALARM
    assert bernoulli_root(9, Fraction(9), source) and not bernoulli_root(0, Fraction(9), source)


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


def test_pooled_noise_is_added_to_the_exact_sum() -> None:
    for shape in ("laplace", "gaussian"):
        total = [3, -(2**70) + 1]
        law = law_of(Noise(shape, Fraction(1, 10**12), None), 2)
        assert law.added.noisy(total, SimulationRandomness(1)) == total  # type: ignore[attr-defined]
