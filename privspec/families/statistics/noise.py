"""The laws of noise at statistics, drawn exactly, in steps of the grid.

Notes knorm-linf, knorm-l2, duchi-l2; a report of a direction in place of a bounded vector is exact in its guarantee.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import exp
from typing import Any, Protocol

import flint
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
from privspec.noise.samplers import WORD, Randomness
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
        units = found / np.linalg.norm(found.astype(np.float64), axis=1, keepdims=True)
        reports: NDArray[np.float64] = units * self._sides(statistics, found, randomness)[:, None]
        return reports

    def _sides(self, statistics: Steps, found: Steps, randomness: Randomness) -> Steps:
        """1 if the direction is to be reported as it is, -1 if turned round."""
        poles = statistics.copy()
        squares = _inner(statistics, statistics)
        poles[squares == 0, 0] = 1  # zero has no pole, and both signs are as likely: any fixed one will do
        coins = randomness.words(len(poles))
        side = np.sign(_inner(poles, found)).astype(np.int64)
        side[side == 0] = (1 - 2 * (coins & np.uint64(1)).astype(np.int64))[side == 0]
        other = np.flatnonzero(coins & np.uint64(2))
        turned = ~roots(squares[other], (self.bound * 2**GRID_BITS) ** 2, randomness)
        side[other[turned]] *= -1
        side[~logistic(self.epsilon, len(side), randomness)] *= -1
        return np.asarray(side)


def _inner(left: Steps, right: Steps) -> NDArray[Any]:
    """Inner products of rows, exactly: Python integers where they may not fit into 64 bits."""
    largest = max(int(np.abs(left).max(initial=0)), 1) * max(int(np.abs(right).max(initial=0)), 1)
    if largest * left.shape[1] < 2**63:
        return np.asarray((left * right).sum(axis=1))
    return np.asarray((left.astype(object) * right).sum(axis=1))


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


Decided = Callable[[int, int, int], "bool | None"]
"""Whether a uniform number is below its probability, by its place, its digits as an integer, and their number."""
UNSURE = 2.0**-40
"""More than doubles can be wrong by, of a probability or of a uniform number."""


def _below(near: NDArray[np.float64], decided: Decided, randomness: Randomness) -> NDArray[np.bool_]:
    """Whether uniform numbers are below probabilities known nearly: exactly, by as many digits as it takes."""
    words = randomness.words(len(near))
    gaps = words.astype(np.float64) * 2.0**-WORD - near
    found: NDArray[np.bool_] = gaps < 0
    for i in np.flatnonzero(~(np.abs(gaps) > UNSURE)).tolist():
        digits, bits = int(words[i]), WORD
        while (answer := decided(i, digits, bits)) is None:
            digits, bits = digits << WORD | randomness.word(), bits + WORD
        found[i] = answer
    return found


def roots(squares: NDArray[Any], limit: Fraction, randomness: Randomness) -> NDArray[np.bool_]:
    """True with probability sqrt(square / limit) <= 1, exactly, for each of some whole numbers."""

    def decided(i: int, digits: int, bits: int) -> bool | None:
        target = int(squares[i]) * limit.denominator << (2 * bits)
        if (digits + 1) ** 2 * limit.numerator <= target:
            return True
        return False if digits**2 * limit.numerator >= target else None

    return _below(np.sqrt(squares.astype(np.float64) / float(limit)), decided, randomness)


def logistic(epsilon: Fraction, count: int, randomness: Randomness) -> NDArray[np.bool_]:
    """True with probability e^epsilon / (1 + e^epsilon), exactly, so many times."""

    def decided(_: int, digits: int, bits: int) -> bool | None:
        with flint.ctx.workprec(2 * bits):
            share = 1 / (1 + (-flint.arb(flint.fmpq(epsilon.numerator, epsilon.denominator))).exp())
            scaled = share * flint.arb(2) ** bits
            return True if digits + 1 <= scaled else False if digits >= scaled else None

    return _below(np.full(count, 1 / (1 + exp(-float(epsilon)))), decided, randomness)


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
