"""Reports of a public direction in place of a bounded vector (notes/duchi-l2.md): the guarantee is exact."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privspec.execute.randomness import Randomness
from privspec.execute.samplers import bernoulli_exp
from privspec.mechanisms.shapes.duchi import SphereReport
from privspec.model.library import GRID_BITS, Steps

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
