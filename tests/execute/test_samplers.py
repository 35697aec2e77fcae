"""Exact samplers against their laws. Seeds are fixed; thresholds are for a false alarm below 1e-6 a test."""

from __future__ import annotations

import os
from fractions import Fraction
from itertools import pairwise
from math import exp

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privspec.core.matrices import ExactVector, integers
from privspec.kernel.core.reading import Grid
from privspec.kernel.laws.knorm import Body, KNormBlocks, KNormHulls, KNormSwaps, contrasts
from privspec.noise.inverse import (
    EXPONENTIAL,
    NORMAL,
    UNIFORM,
    DrawnNumbers,
    Inverse,
    enclosed,
    laplace_steps,
    nearest_normal,
)
from privspec.noise.knorm import KNormHullsNoise, KNormSwapsNoise
from privspec.noise.samplers import (
    Randomness,
    SimulationRandomness,
    SystemRandomness,
    bernoulli_exp,
    discrete_laplace,
)
from privspec.noise.vectors import VECTORS, ConeVectors, ProductVectors

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


def normal_steps(value: Fraction, grid: Fraction, count: int, source: Randomness) -> np.ndarray:
    """Answers that are all the same, with noise."""
    return nearest_normal(ExactVector(integers([value.numerator] * count), value.denominator), grid, source)


def test_normal_law() -> None:
    sample = normal_steps(Fraction(0), Fraction(1, 2**40), 10**6, SimulationRandomness(1)).astype(float) / 2.0**40
    assert stats.kstest(sample, "norm").pvalue > ALARM
    # tails are where a wrong piece would show
    edges = np.array([0, 1, 2, 3, 4, np.inf])
    counts, _ = np.histogram(np.abs(sample), bins=edges)
    assert stats.chisquare(counts, 2 * np.diff(stats.norm.cdf(edges)) * len(sample)).pvalue > ALARM


def test_low_digits_are_uniform() -> None:
    digits = normal_steps(Fraction(0), Fraction(1, 2**46), 16_000, SimulationRandomness(2)).astype(np.int64) & 15
    assert stats.chisquare(np.bincount(digits, minlength=16)).pvalue > ALARM


def test_rounded_gaussian_law_on_a_coarse_grid() -> None:
    value, grid = Fraction(1, 3), Fraction(1, 2)
    sample = normal_steps(value, grid, 10**6, SimulationRandomness(4)).astype(int)
    points = np.arange(-10, 12)
    law = np.diff(stats.norm.cdf((np.arange(-10, 13) - 0.5) * float(grid) - float(value)))
    assert chi_square(sample, points, law) > ALARM


def at_word(law: Inverse, word: int, more: int = 0) -> tuple[flint.arb, flint.arb]:
    """g at both ends of what a word leaves open, `more` being 64 further digits."""
    with flint.ctx.workprec(400):
        ends = [flint.arb((word >> 1 << 64) + more + k) / (1 << 127) for k in (0, 1 if more else 2**64)]
        return law.at(ends[1]), law.at(ends[0])


EDGES = sorted(
    {
        word
        for octave in range(63)
        for piece in (0, 1, 2, 30, 31)
        for step in (-1, 0, 1)
        if 0 < (word := ((32 + piece) << 58 >> octave) + 2 * step) < 2**64
    }
    | {2**64 - 1, 2**64 - 2, 2, 3, 4}
)
"""Words at the ends of octaves and pieces."""


@pytest.mark.parametrize("law", [NORMAL, EXPONENTIAL, UNIFORM], ids=["normal", "exponential", "uniform"])
def test_doubles_enclose_what_they_say(law: Inverse) -> None:
    words = np.concatenate([np.array(EDGES, dtype=np.uint64), SimulationRandomness(3).words(5000)])
    near, error = enclosed(law, words)
    assert np.array_equal(np.isinf(error), words >> np.uint64(1) < 2**39)  # below 2^-24
    for word, middle, wrong in zip(words.tolist(), near.tolist(), error.tolist(), strict=True):
        if wrong < np.inf:
            low, high = at_word(law, word)
            with flint.ctx.workprec(400):
                assert low >= flint.arb(middle) - wrong and high <= flint.arb(middle) + wrong
    assert np.median(error / (near + 1)) < 2e-16


def forward(size: flint.arb) -> flint.arb:
    """The uniform number of the size of a normal number."""
    return (size / flint.arb(2).sqrt()).erfc() if size > 0 else flint.arb(1)


@pytest.mark.parametrize("count", [3000, pytest.param(10**5, marks=pytest.mark.slow)])
def test_normal_numbers_agree_with_the_distribution_function(count: int) -> None:
    """By erfc itself at both rounding boundaries, in place of its inverse: words of chance, and words that are rare."""
    words = np.concatenate([np.array(EDGES, dtype=np.uint64), SimulationRandomness(5).words(count)])
    value, grid = Fraction(1, 3), Fraction(1, 2**30)
    source = Scripted(words.tolist(), SimulationRandomness(6))
    found = nearest_normal(ExactVector(integers([1] * len(words)), 3), grid, source)
    with flint.ctx.workprec(200):
        for word, steps in zip(words.tolist(), found.tolist(), strict=True):
            turned = -1 if word & 1 else 1
            ends = sorted(turned * ((steps + Fraction(side, 2)) * grid - value) for side in (-1, 1))
            low, high = (forward(flint.arb(flint.fmpq(*end.as_integer_ratio()))) for end in (ends[1], ends[0]))
            digits = flint.arb(word >> 1) / 2**63, flint.arb((word >> 1) + 1) / 2**63
            assert low <= digits[1] and digits[0] <= high  # the number's digits and its step have a place in common


def test_words_that_decide_nothing_take_more_digits() -> None:
    """A boundary inside what the word leaves open: the next word says on which side the number is."""
    word = 3 << 61
    low, high = at_word(NORMAL, word)
    with flint.ctx.workprec(400):
        cut = Fraction(int(((low + high) * 2**199).floor().unique_fmpz() or 0), 2**200)
    starts = ExactVector(integers([-cut.numerator]), cut.denominator)
    for more, step in ((0, 0), (2**64 - 1, -1)):  # the larger the digits, the smaller the number
        source = Scripted([word, more], None)
        assert DrawnNumbers(NORMAL, 1, source).floors(starts, (Fraction(1),), signed=False)[0] == step
        assert not source.script


def test_asking_again_gives_the_same_numbers() -> None:
    numbers = DrawnNumbers(NORMAL, 300, SimulationRandomness(3))
    before = numbers.ends(40, signed=True)
    for bits in (500, 40, 128, 48, 500):
        low, high = numbers.ends(bits, signed=True)
        assert (low <= high).all()
        wide = max(bits, 40)
        first, last = (side << wide - 40 for side in before)
        assert ((low << wide - bits) <= last).all() and ((high << wide - bits) >= first).all()
        assert max(high - low) <= (2 if bits > 48 else 3)


@given(
    st.fractions(min_value=-(10**6), max_value=10**6, max_denominator=10**9),
    st.sampled_from([Fraction(1, 2**30), Fraction(1, 8), Fraction(3, 7), Fraction(5), Fraction(1, 2**90)]),
    st.integers(0, 10**6),
)
@settings(max_examples=100, deadline=None)
def test_rounding_agrees_with_a_finer_evaluation(value: Fraction, grid: Fraction, seed: int) -> None:
    number = DrawnNumbers(NORMAL, 1, SimulationRandomness(seed))
    twice = 2 * value.denominator * grid.numerator
    start = ExactVector(integers([2 * grid.denominator * value.numerator + twice // 2]), twice)
    (rounded,) = number.floors(start, (1 / grid,), signed=True)
    (low,), (high,) = number.ends(600, signed=True)
    ends = [((value + Fraction(end, 2**600)) / grid + Fraction(1, 2)) // 1 for end in (low, high)]
    assert ends[0] <= rounded <= ends[1] and ends[1] - ends[0] <= 1


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 1), (1, 3), (1, 1), (5, 2)])
def test_bernoulli_exp(numerator: int, denominator: int) -> None:
    source = SimulationRandomness(5)
    hits = sum(bernoulli_exp(numerator, denominator, source) for _ in range(20_000))
    assert frequency_fits(hits, 20_000, exp(-numerator / denominator))


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(7, 5), Fraction(40)])
def test_discrete_laplace_law(scale: Fraction) -> None:
    points, p = np.arange(-200, 201), np.exp(-1 / float(scale))
    law = (1 - p) / (1 + p) * p ** np.abs(points)
    source = SimulationRandomness(7)
    assert chi_square(np.array([discrete_laplace(scale, source) for _ in range(20_000)]), points, law) > ALARM
    assert chi_square(laplace_steps([scale], 10**6, source).astype(int), points, law) > ALARM


def test_scales_of_their_own() -> None:
    scales = [Fraction(1, 50), Fraction(2**30), Fraction(3)] * 20_000
    found = laplace_steps(scales, len(scales), SimulationRandomness(8)).reshape(-1, 3)
    assert not found[:, 0].any()  # 1 of e^50 is another
    assert stats.kstest(found[:, 1].astype(float) / 2**30, "laplace").pvalue > ALARM
    assert abs(found[:, 2].astype(float).std() - np.sqrt(2 * 3**2)) < 0.2


@pytest.mark.slow
def test_ten_million_draws() -> None:
    source = SimulationRandomness(9)
    normal = normal_steps(Fraction(0), Fraction(1, 2**30), 10**7, source).astype(float) / 2**30
    assert stats.kstest(normal, "norm").pvalue > ALARM
    cells = np.bincount((stats.norm.cdf(normal) * 1000).astype(int), minlength=1000)
    assert stats.chisquare(cells).pvalue > ALARM
    laplace = laplace_steps([Fraction(2**30)], 10**7, source).astype(float) / 2**30
    assert stats.kstest(laplace, "laplace").pvalue > ALARM
    points, p = np.arange(-100, 101), np.exp(-1 / 2.5)
    steps = laplace_steps([Fraction(5, 2)], 10**7, source).astype(int)
    assert chi_square(steps, points, (1 - p) / (1 + p) * p ** np.abs(points)) > ALARM


def test_discrete_laplace_is_the_law_of_opendp() -> None:
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    theirs = (dp.atom_domain(T=int), dp.absolute_distance(T=int)) >> dp.m.then_laplace(scale=2.5)
    source = SimulationRandomness(8)
    ours = laplace_steps([Fraction(5, 2)], 8000, source)
    others = np.array([theirs(0) for _ in range(8000)])
    cells = range(-8, 9)
    table = np.array([[np.sum(np.clip(s, -8, 8) == x) for x in cells] for s in (ours, others)])
    assert stats.chi2_contingency(table).pvalue > ALARM


def vectors(norm: str, point: list[Fraction], scale: Fraction, count: int, source: Randomness) -> np.ndarray:
    """Vectors (count, size) at one point, in whole steps."""
    points = ExactVector.of(point * count)
    return np.asarray(VECTORS[norm](count, len(point), scale, source).nearest(points, Fraction(1)))


LENGTH = {"l1": 1, "l2": 2, "linf": np.inf}


@pytest.mark.parametrize(("norm", "size"), [("l1", 1), ("l2", 1), ("l2", 3), ("l2", 90), ("linf", 1), ("linf", 5)])
def test_knorm_vectors(norm: str, size: int) -> None:
    steps = 2**30
    count = 200_000 // (size + 9)
    found = vectors(norm, [Fraction(0)] * size, Fraction(steps), count, SimulationRandomness(10))
    sample = found.astype(float) / steps
    radius = np.linalg.norm(sample, LENGTH[norm], axis=1)
    assert stats.kstest(radius, "gamma", args=(size,)).pvalue > ALARM
    cells = np.bincount((stats.gamma(size).cdf(radius) * 100).astype(int), minlength=100)
    assert stats.chisquare(cells).pvalue > ALARM
    if (norm, size) == ("l2", 3):  # a coordinate of a uniform direction in three dimensions is uniform
        assert stats.kstest(sample[:, 0] / radius, "uniform", args=(-1, 2)).pvalue > ALARM
    if (norm, size) == ("l2", 90):  # 90 of them squared are Beta(1/2, 89/2)
        assert stats.kstest((sample[:, 7] / radius) ** 2, "beta", args=(0.5, 44.5)).pvalue > ALARM


def test_knorm_vectors_on_a_coarse_grid() -> None:
    source, scale = SimulationRandomness(11), Fraction(3, 2)
    edges = np.arange(-30, 32) - 0.5
    for norm in VECTORS:
        sample = vectors(norm, [Fraction(1, 3)], scale, 50_000, source)[:, 0].astype(int)
        law = np.diff(stats.laplace.cdf(edges, loc=1 / 3, scale=1.5))
        assert chi_square(sample, np.arange(-30, 31), law) > ALARM


class Remembered(Randomness):
    """Words of a seed, all of them kept; further digits are zero, in whatever order they are asked for."""

    private = False

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seeded, self.said = SimulationRandomness(seed), list[np.ndarray]()

    def _fresh(self, count: int) -> bytes:
        self.said.append(self.seeded.words(count))
        return bytes(self.said[-1].tobytes())

    def word(self) -> int:
        return 0


def slowly(norm: str, words: list[int], size: int) -> list[flint.arb]:
    """One vector at scale 1, each of its words being all the digits of a number: in balls, by the definition."""

    def number(law: Inverse, word: int) -> flint.arb:
        found = law.at(flint.arb(word >> 1) / (1 << 63))
        return -found if word & 1 and law is not EXPONENTIAL else found

    if norm == "l1":
        return [(-1 if word & 1 else 1) * number(EXPONENTIAL, word) for word in words]
    split, law = (size, NORMAL) if norm == "l2" else (size + 1, UNIFORM)
    first, second = words[:split], words[split:]
    directions, sizes = (first, second) if norm == "l2" else (second, first)
    radius = sum((number(EXPONENTIAL, word) for word in sizes), flint.arb(0))
    direction = [number(law, word) for word in directions]
    length = sum((one * one for one in direction), flint.arb(0)).sqrt() if norm == "l2" else flint.arb(1)
    return [radius * one / length for one in direction]


@pytest.mark.parametrize("count", [400, pytest.param(2 * 10**4, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("norm", "size"), [("l1", 5), ("l2", 1), ("l2", 5), ("linf", 5)])
@pytest.mark.parametrize("steps", [2**20, 2**50])
def test_knorm_vectors_agree_with_balls(norm: str, size: int, steps: int, count: int) -> None:
    """The same words, number by number: 2^50 steps leave doubles undecided nearly always, and both ways must agree."""
    source, scale, place = Remembered(steps), Fraction(steps, 3), Fraction(2, 7)
    found = vectors(norm, [place] * size, scale, count if steps < 2**50 else count // 20, source)
    each = [words.reshape(len(found), -1).tolist() for words in source.said]
    with flint.ctx.workprec(250):
        for i, row in enumerate(found.tolist()):
            exact = slowly(norm, [word for part in each for word in part[i]], size)
            at = flint.arb(flint.fmpq(2, 7)) + flint.arb(flint.fmpq(1, 2))
            assert row == [int((at + x * flint.arb(flint.fmpq(steps, 3))).floor().unique_fmpz()) for x in exact]


PARTS = [(1,), (1, 1, 1, 1), (3,), (2, 3), (2, 1, 1)]


def products(parts: tuple[int, ...], count: int, steps: int, source: Randomness, scales: tuple[Fraction, ...] = ()):
    """Vectors (count, k) around the origin, of scale 1, in steps."""
    drawn = ProductVectors(count, parts, Fraction(1), source)
    return drawn.nearest(ExactVector.of([Fraction(0)] * count * sum(parts)), Fraction(1, steps), scales)


@pytest.mark.parametrize("parts", PARTS)
def test_vectors_of_products(parts: tuple[int, ...]) -> None:
    """Their norms are of law Gamma(k), and each of k independent tests alarms with a chance of ALARM at most.

    In its part a number of a uniform point of a cross-polytope is of law Beta(1, n) in size, with a fair sign.
    """
    count, size = 20_000, sum(parts)
    scales = tuple(Fraction(n + 1, 2) for n in range(size))
    found = products(parts, count, 2**30, SimulationRandomness(13), scales).astype(float) / 2**30
    sample = found / np.array(list(map(float, scales)))
    ends = np.cumsum([0, *parts])
    sums = np.column_stack([np.abs(sample[:, a:b]).sum(axis=1) for a, b in pairwise(ends)])
    assert stats.kstest(sums.max(axis=1), "gamma", args=(size,)).pvalue > ALARM
    for part, (a, b) in enumerate(pairwise(ends)):
        # given the norm, each part is the largest with a chance in proportion to its numbers
        largest = int((sums.argmax(axis=1) == part).sum())
        assert stats.binomtest(largest, count, (b - a) / size).pvalue > ALARM
        for i in range(a, b):
            assert stats.binomtest(int((sample[:, i] > 0).sum()), count, 0.5).pvalue > ALARM
            if b - a > 1:  # where its own part is the largest it is on the surface: Beta(1, n - 1)
                mine = sums.argmax(axis=1) == part
                share = np.abs(sample[mine, i]) / sums[mine, part]
                assert stats.kstest(share, "beta", args=(1, b - a - 1)).pvalue > ALARM
    law = KNormBlocks((tuple(scales[a:b] for a, b in pairwise(ends)),))
    variances = [float(v) for v in law.variances(size, Fraction(1))]
    np.testing.assert_allclose(found.var(axis=0), variances, rtol=0.12)


@pytest.mark.parametrize("count", [200, pytest.param(10**4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("steps", [2**20, 2**50])
def test_vectors_of_products_agree_with_balls(parts: tuple[int, ...], steps: int, count: int) -> None:
    """The same words, number by number: doubles, where they decide, and fractions say what balls say."""
    source, size = Remembered(steps), sum(parts)
    found = products(parts, count if steps < 2**50 else count // 10, steps, source)
    radii, places = (words.reshape(len(found), -1).tolist() for words in source.said)
    with flint.ctx.workprec(250):
        for row, sizes, words in zip(found.tolist(), radii, places, strict=True):
            radius = sum((-(flint.arb(word >> 1) / (1 << 63)).log() for word in sizes), flint.arb(0))
            number = [-(flint.arb(word >> 1) / (1 << 63)).log() for word in words]
            total = list(number[size:])
            part = [p for p, many in enumerate(parts) for _ in range(many)]
            for i, p in enumerate(part):
                total[p] += number[i]
            exact = [(-1) ** (words[i] & 1) * radius * number[i] / total[p] for i, p in enumerate(part)]
            half = flint.arb(flint.fmpq(1, 2))
            assert row == [int((half + x * steps).floor().unique_fmpz()) for x in exact]


SWAPS = ((1, 1), (2, 0), (1, -1), (-1, -1), (-2, 0), (-1, 1))
"""Of three counts: the first less the second, and their sum, in turn around 0."""


def hexagon(scale: Fraction, *, whole: bool) -> KNormHulls:
    corners = Grid((6, 2), Fraction(1), (1, 1, 2, 0, 1, -1, -1, -1, -2, 0, -1, 1))
    cones = Grid((6, 2), Fraction(1), tuple(i % 6 for start in range(6) for i in (start, start + 1)))
    return KNormHulls((Body(corners, cones, scale, whole),))


def test_whole_vectors_of_a_hull() -> None:
    """Points by their chances, e^-(the records that move, in scales), and their squares by those that are stated."""
    law, source = hexagon(Fraction(3, 2), whole=True), SimulationRandomness(17)
    noise, at = KNormHullsNoise(law), ExactVector(integers([3, -5]), 1)
    found = np.array([noise.release(at, Fraction(1), source) for _ in range(6_000)]).astype(int) - [3, -5]
    points = [(a, b) for a in range(-40, 41) for b in range(-40, 41) if (a + b) % 2 == 0]
    sizes = np.array([(abs(a + b) / 2 + abs(b - a) / 2 + abs(b)) / 2 for a, b in points])
    chances = np.exp(-sizes / 1.5)
    keys = {point: i for i, point in enumerate(points)}
    sample = np.array([keys[a, b] for a, b in found.tolist()])
    assert chi_square(sample, np.arange(len(points)), chances / chances.sum()) > ALARM
    np.testing.assert_allclose(found.var(axis=0), [float(v) for v in law.variances(2, Fraction(1))], rtol=0.15)
    rough = noise.approximate(2, 20_000, np.random.default_rng(3))
    np.testing.assert_allclose(rough.var(axis=0), [float(v) for v in law.variances(2, Fraction(1))], rtol=0.1)


def test_real_vectors_of_a_hull() -> None:
    """Norms are of law Gamma(2), in six triangles alike, and in each of them even along its side."""
    law, source, step = hexagon(Fraction(1), whole=False), SimulationRandomness(18), Fraction(1, 2**20)
    noise, at = KNormHullsNoise(law), ExactVector(integers([0, 0]), 1)
    found = np.array([noise.release(at, step, source) for _ in range(3_000)]).astype(float) / 2**20
    one, other = found[:, 0] + found[:, 1], found[:, 1] - found[:, 0]
    norms = (np.abs(one) / 2 + np.abs(other) / 2 + np.abs(found[:, 1])) / 2
    assert stats.kstest(norms, "gamma", args=(2,)).pvalue > ALARM
    places = found @ np.linalg.inv(np.array(SWAPS[:2]))
    inside = (places > 0).all(axis=1)
    assert frequency_fits(int(inside.sum()), len(found), 1 / 6)
    assert stats.kstest(places[inside, 0] / places[inside].sum(axis=1), "uniform").pvalue > ALARM
    np.testing.assert_allclose(found.var(axis=0), [float(v) for v in law.variances(2, step)], rtol=0.15)


def counts_of(contrasts_of: np.ndarray) -> np.ndarray:
    """Four numbers that add up to 0, by their contrasts."""
    turn = np.array(contrasts(4))
    return contrasts_of @ (turn / (turn**2).sum(axis=1, keepdims=True))


def test_whole_swaps_of_counts() -> None:
    """All points by their chances, and an answer beside them."""
    source = SimulationRandomness(19)
    noise, at = (
        KNormSwapsNoise(KNormSwaps(4, Fraction(2, 3), Fraction(5), whole=True)),
        ExactVector(integers([1, 2, 3, 4]), 1),
    )
    drawn = np.array([noise.release(at, Fraction(1, 2), source) for _ in range(3_000)]).astype(float) / 2 - [
        1,
        2,
        3,
        4,
    ]
    found = counts_of(drawn[:, :3])
    np.testing.assert_allclose(found, np.rint(found), atol=1e-9)
    span = range(-11, 12)
    points = [(a, b, c) for a in span for b in span for c in span]
    sizes = np.array([(abs(a) + abs(b) + abs(c) + abs(a + b + c)) / 2 for a, b, c in points])
    chances = np.exp(-1.5 * sizes)
    keys = {point: i for i, point in enumerate(points)}
    sample = np.array([keys.get((a, b, c), -1) for a, b, c, _ in np.rint(found).astype(int).tolist()])
    assert chi_square(sample, np.arange(len(points)), chances / chances.sum()) > ALARM
    assert stats.kstest(drawn[:, 3] + 0.25, "laplace", args=(0.25, 5)).pvalue > ALARM / 1e9
    variances = [float(v) for v in noise.law.variances(4, Fraction(1))]
    np.testing.assert_allclose(drawn.var(axis=0), variances, rtol=0.2)
    np.testing.assert_allclose(noise.approximate(4, 20_000, np.random.default_rng(4)).var(axis=0), variances, rtol=0.1)


def test_real_swaps_of_counts() -> None:
    """Half the sums of sizes are of law Gamma(3); one, two or three of four counts are above 0 by volumes 4, 12, 4."""
    source = SimulationRandomness(20)
    noise, at = KNormSwapsNoise(KNormSwaps(4, Fraction(1), Fraction(1), whole=False)), ExactVector(integers([0] * 4), 1)
    drawn = np.array([noise.release(at, Fraction(1, 2**20), source) for _ in range(2_000)]).astype(float) / 2**20
    found = counts_of(drawn[:, :3])
    assert stats.kstest(np.abs(found).sum(axis=1) / 2, "gamma", args=(3,)).pvalue > ALARM
    above = (found > 0).sum(axis=1)
    assert stats.chisquare([(above == p).sum() for p in (1, 2, 3)], [400, 1_200, 400]).pvalue > ALARM
    two = found[above == 2]
    share = np.where(two > 0, two, 0).max(axis=1) / np.where(two > 0, two, 0).sum(axis=1)
    assert stats.kstest(share, "uniform", args=(0.5, 0.5)).pvalue > ALARM
    assert frequency_fits(int((found[above == 1, 0] > 0).sum()), int((above == 1).sum()), 1 / 4)


@pytest.mark.parametrize("steps", [2**20, 2**50])
def test_vectors_of_a_cone_agree_with_balls(steps: int) -> None:
    """Of corners that are far apart in size: doubles, where they decide, and fractions say what balls say."""
    corners = integers([3, -5, 2**40, 1, 0, 7, -(2**30), 11, 1]).reshape(3, 3)
    for seed in range(60):
        source = Remembered(seed)
        (row,) = ConeVectors(corners, Fraction(2, 3), source).nearest(
            ExactVector.of([Fraction(1, 7)] * 3), Fraction(1, steps)
        )
        with flint.ctx.workprec(250):
            number = [-(flint.arb(int(word) >> 1) / (1 << 63)).log() for word in source.said[0]]
            sums = [sum((n * int(corners[i, j]) for i, n in enumerate(number)), flint.arb(0)) for j in range(3)]
            at = flint.arb(flint.fmpq(1, 2)) + flint.arb(flint.fmpq(steps, 7))
            exact = [int((at + x * flint.arb(flint.fmpq(2 * steps, 3))).floor().unique_fmpz()) for x in sums]
        assert row.tolist() == exact


def test_a_vector_of_many_numbers() -> None:
    size = 200_000
    (found,) = vectors("l2", [Fraction(0)] * size, Fraction(2**20), 1, SimulationRandomness(12)).astype(float) / 2**20
    assert abs(np.linalg.norm(found) / size - 1) < 5 / np.sqrt(size)
    assert stats.kstest(found / np.linalg.norm(found) * np.sqrt(size), "norm").pvalue > ALARM


class Scripted(Randomness):
    """Words from a list, and then those of another source."""

    private = False

    def __init__(self, words: list[int], then: Randomness | None) -> None:
        super().__init__()
        self.script, self.then = words, then

    def _fresh(self, count: int) -> bytes:
        assert self.script or self.then is not None, "the script is over"
        taken, self.script = self.script[:count], self.script[count:]
        rest = b"" if self.then is None else self.then.words(count - len(taken)).tobytes()
        return np.array(taken, dtype="<u8").tobytes() + rest

    def word(self) -> int:
        return int(self.words(1)[0])


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
