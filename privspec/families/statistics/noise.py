"""The laws of noise at statistics, drawn exactly: on integers in steps of the grid.

Notes knorm-linf, knorm-l2, duchi-l2; a report of a direction in place of a bounded vector is exact in its guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privspec.core.matrices import ExactVector, integers
from privspec.families.statistics.shapes import SphereReport
from privspec.kernel.lemmas.statistics import Noise
from privspec.model.library import GRID, GRID_BITS, Steps
from privspec.noise.gaussian import GaussianNoise
from privspec.noise.laplace import LaplaceNoise
from privspec.noise.samplers import (
    Randomness,
    bernoulli_exp,
    bernoulli_exp_real,
    bernoulli_fraction,
)
from privspec.noise.vectors import EuclideanVector


def geometric(scale: Fraction, randomness: Randomness) -> int:
    """An integer j >= 0 with probability proportional to exp(-j / scale), exactly.

    Source: Canonne, Kamath & Steinke 2020, algorithm 2, without its sign.
    """
    top = scale.numerator
    while not bernoulli_exp(remainder := randomness.below(top), top, randomness):
        pass
    quotient = 0
    while bernoulli_exp(1, 1, randomness):
        quotient += 1
    return (remainder + top * quotient) // scale.denominator


def discrete_knorm_linf(dimension: int, scale: Fraction, randomness: Randomness) -> list[int]:
    """An integer vector z with probability proportional to exp(-max |z_j| / scale), exactly.

    exp(-a / scale) is the sum over m >= a of (1 - q) q^m with q = exp(-1 / scale): z is uniform on a cube of half side
    m, where m has weight (2 m + 1)^k q^m. That m is drawn as a sum of k + 1 geometric numbers, of weight
    C(m + k, k) q^m, and kept with the ratio of both over its upper bound 2^k k!, the product of
    (2 m + 1) / (2 m + 2 i) over i = 1..k.
    """
    while True:
        m = sum(geometric(scale, randomness) for _ in range(dimension + 1))
        if all(bernoulli_fraction(2 * m + 1, 2 * (m + i), randomness) for i in range(1, dimension + 1)):
            return [randomness.below(2 * m + 1) - m for _ in range(dimension)]


# --- the length -----------------------------------------------------------------------------------


def smooth_knorm_l2(dimension: int, scale: Fraction, randomness: Randomness) -> list[int]:
    """An integer vector z with probability proportional to exp(-||z||_2 / scale), exactly, for any dimension.

    A real vector x of density proportional to exp(-||x|| / scale) is rounded to z, which is kept with probability
    exp(-(||z|| - ||x||) / scale - c), c >= sqrt(k) / (2 scale): the factors of ||x|| cancel inside every cell. x is
    exact to as many digits as rounding and comparison ask for. Meant for scales well above sqrt(k).
    """
    while True:
        proposal = _Proposal(dimension, scale, randomness)
        if bernoulli_exp_real(_Excess(proposal), randomness):
            return proposal.rounded


class _Proposal:
    """A real vector, and the nearest integers."""

    def __init__(self, dimension: int, scale: Fraction, randomness: Randomness) -> None:
        self.scale = scale
        self.vector = EuclideanVector(dimension, scale, randomness)
        self.slack = Fraction(isqrt(dimension << 64) + 1, 1 << 33) / scale
        """c, rounded up."""
        self.rounded = self.vector.nearest([Fraction(0)] * dimension, Fraction(1))
        self.square = sum(z * z for z in self.rounded)


@dataclass(frozen=True, slots=True)
class _Excess:
    """The real number (||z|| - ||x||) / scale + c >= 0."""

    proposal: _Proposal

    def enclosure(self, bits: int) -> tuple[int, int]:
        """Integers low <= t * 2^bits <= high, as close as that many digits of x allow."""
        found = self.proposal
        fine = bits + 16
        root = isqrt(found.square << (2 * fine))
        small, large = found.vector.radius(fine)
        constant = found.slack * 2**fine
        low = root / found.scale - Fraction(large, 2 ** (fine + 1)) + constant
        high = (root + 1) / found.scale - Fraction(small, 2 ** (fine + 1)) + constant
        return max(int(low // 2**16), 0), -int(-high // 2**16)


FINE = 2.0**20
"""Steps of a standard normal number in the public directions."""
TOGETHER = 4096
"""Directions that are drawn at once."""


@dataclass(frozen=True, slots=True)
class SphereLaw:
    """One report for each statistic, of the length that makes it unbiased."""

    epsilon: Fraction
    bound: Fraction
    size: int

    def each(self, statistics: Steps, randomness: Randomness) -> NDArray[np.float64]:
        """Reports (M, k) in data units for statistics (M, k) in steps."""
        if statistics.shape[1] != self.size:
            raise ValueError("a sphere report of another size than the statistic")
        parts = [self._some(statistics[i : i + TOGETHER], randomness) for i in range(0, len(statistics), TOGETHER)]
        radius = SphereReport(self.epsilon, self.bound, self.size).radius
        return radius * np.concatenate(parts) if parts else np.zeros((0, self.size))

    def _some(self, statistics: Steps, randomness: Randomness) -> NDArray[np.float64]:
        found = directions(len(statistics), self.size, randomness)
        sides = np.array([self._side(s, v, randomness) for s, v in zip(statistics, found, strict=True)])
        units = found / np.linalg.norm(found.astype(np.float64), axis=1, keepdims=True)
        reports: NDArray[np.float64] = units * sides[:, None]
        return reports

    def _side(self, statistic: Steps, direction: Steps, randomness: Randomness) -> int:
        """1 if the direction is to be reported as it is, -1 if turned round."""
        vector = [int(s) for s in statistic]
        square = sum(s * s for s in vector)
        if square == 0:
            vector[0] = 1  # zero has no pole, and both signs are as likely: any fixed one will do
        inner = sum(a * int(b) for a, b in zip(vector, direction, strict=True))
        side = (inner > 0) - (inner < 0) or randomness.sign()
        if randomness.sign() < 0 and not bernoulli_root(square, (self.bound * 2**GRID_BITS) ** 2, randomness):
            side = -side
        return side if bernoulli_logistic(self.epsilon, randomness) else -side


def directions(count: int, size: int, randomness: Randomness) -> Steps:
    """Integer vectors (count, size), none zero, nearly uniform in direction; v and -v are equally likely, exactly.

    Which vectors are likely is public and no matter of privacy, so doubles may say it; the fair sign in front of each
    makes the law symmetric whatever they say.
    """
    out = np.zeros((count, size), dtype=np.int64)
    open_rows = np.arange(count)
    while open_rows.size:
        words = np.array([randomness.word() for _ in range(open_rows.size * size)], dtype=np.uint64)
        uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        out[open_rows] = np.trunc(ndtri(uniform) * FINE).astype(np.int64).reshape(-1, size)
        open_rows = open_rows[~out[open_rows].any(axis=1)]
    signs = np.array([randomness.sign() for _ in range(count)], dtype=np.int64)
    return out * signs[:, None]


def bernoulli_root(square: int, limit: Fraction, randomness: Randomness) -> bool:
    """True with probability sqrt(square / limit) <= 1, exactly: digits of a uniform number until it is decided."""
    bits = 64
    uniform = randomness.bits(bits)
    target, unit = square * limit.denominator, limit.numerator
    while True:
        if (uniform + 1) ** 2 * unit <= target << (2 * bits):
            return True
        if uniform**2 * unit >= target << (2 * bits):
            return False
        uniform = uniform << 64 | randomness.bits(64)
        bits += 64


def bernoulli_logistic(epsilon: Fraction, randomness: Randomness) -> bool:
    """True with probability e^epsilon / (1 + e^epsilon), exactly.

    A fair coin chooses True at once, or False with probability e^-epsilon; otherwise it is tossed again.
    """
    while randomness.sign() < 0:
        if bernoulli_exp(epsilon.numerator, epsilon.denominator, randomness):
            return False
    return True


class Law(Protocol):
    """What every shape can do: noisy statistics for parties one by one."""

    def each(self, statistics: Steps, randomness: Randomness) -> NDArray[np.float64]:
        """Noisy statistics (M, k) in data units for statistics (M, k) in steps."""


class Additive(Protocol):
    """A law of noise that is added."""

    def noisy(self, total: Sequence[int], randomness: Randomness) -> list[int]:
        """A statistic and its noise, in steps."""


@dataclass(frozen=True, slots=True)
class AddedLaw:
    """Noise that is added, at each party or once at the sum."""

    added: Additive

    def each(self, statistics: Steps, randomness: Randomness) -> NDArray[np.float64]:
        """Every statistic with noise of its own."""
        out = np.empty(statistics.shape)
        for i, statistic in enumerate(statistics.tolist()):
            out[i] = to_units(self.added.noisy(statistic, randomness))
        return out

    def pooled(self, total: Sequence[int], randomness: Randomness) -> NDArray[np.float64]:
        """The sum over all parties with noise, in data units."""
        return to_units(self.added.noisy(total, randomness))


def to_units(steps: Sequence[int]) -> NDArray[np.float64]:
    """Data units, the nearest doubles: of noisy numbers only."""
    return np.array([step / 2**GRID_BITS for step in steps])


@dataclass(frozen=True, slots=True)
class EntrywiseNoise:
    """Laplace or Gaussian noise as for linear answers."""

    law: LaplaceNoise | GaussianNoise

    def noisy(self, total: Sequence[int], randomness: Randomness) -> list[int]:
        """On the grid already, so that no rounding enters the sensitivity."""
        answers = ExactVector(integers(total), 2**GRID_BITS)
        return [int(step) for step in self.law.release(answers, GRID, randomness)]


@dataclass(frozen=True, slots=True)
class VectorNoise:
    """One lattice vector of K-norm noise."""

    sampler: Callable[[int, Fraction, Randomness], list[int]]
    scale: Fraction

    def noisy(self, total: Sequence[int], randomness: Randomness) -> list[int]:
        """The statistic plus the vector."""
        noise = self.sampler(len(total), self.scale / GRID, randomness)
        return [step + z for step, z in zip(total, noise, strict=True)]


SHAPES: Mapping[str, Callable[[Noise, int], Law]] = {
    "laplace": lambda noise, _: AddedLaw(EntrywiseNoise(LaplaceNoise((noise.size,)))),
    "gaussian": lambda noise, _: AddedLaw(EntrywiseNoise(GaussianNoise(noise.size))),
    "knorm-l2": lambda noise, _: AddedLaw(VectorNoise(smooth_knorm_l2, noise.size)),
    "knorm-linf": lambda noise, _: AddedLaw(VectorNoise(discrete_knorm_linf, noise.size)),
    "duchi-l2": lambda noise, size: SphereLaw(noise.size, noise.bound or Fraction(0), size),
}
"""The laws by the `shape` of a site's noise, for a statistic of so many numbers."""


def law_of(noise: Noise, size: int) -> Law:
    """The law of a site of a plan, of which the kernel read that it is known and can be drawn exactly."""
    return SHAPES[noise.shape](noise, size)
