"""The laws of noise at statistics, drawn exactly, in steps of the grid.

Notes knorm-linf, knorm-l2, duchi-l2; a report of a direction in place of a bounded vector is exact in its guarantee.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privspec.core.matrices import ExactVector, Integers, integers
from privspec.core.records import dataclass
from privspec.families.statistics.shapes import SphereReport
from privspec.kernel.lemmas.statistics import Noise
from privspec.model.library import GRID, GRID_BITS, Steps
from privspec.noise.gaussian import GaussianNoise
from privspec.noise.laplace import LaplaceNoise
from privspec.noise.samplers import Randomness, bernoulli_exp
from privspec.noise.vectors import VECTORS

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
            raise ValueError("a sphere report of a different size from the statistic")
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
        words = randomness.words(open_rows.size * size)
        uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        out[open_rows] = np.trunc(ndtri(uniform) * FINE).astype(np.int64).reshape(-1, size)
        open_rows = open_rows[~out[open_rows].any(axis=1)]
    signs = 1 - 2 * (randomness.words(count) & np.uint64(1)).astype(np.int64)
    return np.asarray(out * signs[:, None])


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

    def each(self, statistics: NDArray[Any], randomness: Randomness) -> NDArray[np.float64]:
        """Noisy statistics (M, k) in data units for statistics (M, k) in steps."""


class AddedLaw(ABC):
    """Noise that is added, at each party or once at the sum."""

    @abstractmethod
    def each(self, statistics: NDArray[Any], randomness: Randomness) -> NDArray[np.float64]:
        """Every statistic with noise of its own."""

    def pooled(self, total: Sequence[int], randomness: Randomness) -> NDArray[np.float64]:
        """The sum over all parties with noise, in data units."""
        return np.asarray(self.each(np.array([total], dtype=object), randomness)[0])


def to_units(steps: Integers) -> NDArray[np.float64]:
    """Data units, the nearest doubles: of noisy numbers only."""
    return np.asarray((steps / 2**GRID_BITS).astype(np.float64))


@dataclass(frozen=True, slots=True)
class EntrywiseNoise(AddedLaw):
    """Laplace or Gaussian noise as for linear answers."""

    law: LaplaceNoise | GaussianNoise

    def each(self, statistics: NDArray[Any], randomness: Randomness) -> NDArray[np.float64]:
        """On the grid already, so that no rounding enters the sensitivity."""
        answers = ExactVector(integers(statistics.ravel()), 2**GRID_BITS)
        return to_units(self.law.release(answers, GRID, randomness)).reshape(statistics.shape)


@dataclass(frozen=True, slots=True)
class VectorNoise(AddedLaw):
    """One real vector of K-norm noise for each statistic, rounded to the grid with it."""

    norm: str
    scale: Fraction

    def each(self, statistics: NDArray[Any], randomness: Randomness) -> NDArray[np.float64]:
        vectors = VECTORS[self.norm](len(statistics), statistics.shape[1], self.scale, randomness)
        return to_units(vectors.nearest(ExactVector(integers(statistics.ravel()), 2**GRID_BITS), GRID))


SHAPES: Mapping[str, Callable[[Noise, int], Law]] = {
    "laplace": lambda noise, _: EntrywiseNoise(LaplaceNoise((noise.size,))),
    "gaussian": lambda noise, _: EntrywiseNoise(GaussianNoise(noise.size)),
    "knorm-l2": lambda noise, _: VectorNoise("l2", noise.size),
    "knorm-linf": lambda noise, _: VectorNoise("linf", noise.size),
    "duchi-l2": lambda noise, size: SphereLaw(noise.size, noise.bound or Fraction(0), size),
}
"""The laws by the `shape` of a site's noise, for a statistic of so many numbers."""


def law_of(noise: Noise, size: int) -> Law:
    """The law of a site of a plan, of which the kernel read that it is known and can be drawn exactly."""
    return SHAPES[noise.shape](noise, size)
