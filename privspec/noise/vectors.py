"""Real vectors of density ~ e^(-||v|| / scale) in a norm, drawn exactly: with as many digits as are asked for.

What is added to a point is rounded with it to a grid afterwards. Rounding is then post-processing of real numbers, and
the guarantee has no term for it. Note real-points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import isqrt, lcm

import numpy as np

from privspec.core.matrices import Integers, integers
from privspec.noise.inverse import DOUBLE_BITS, EXPONENTIAL, NORMAL, DrawnNumbers
from privspec.noise.law import Array
from privspec.noise.samplers import WORD, Randomness


class RealVector(ABC):
    """One vector; later calls with more bits refine the same numbers."""

    def __init__(self, size: int, scale: Fraction, randomness: Randomness) -> None:
        self.size, self.scale = size, scale
        self._exponential = DrawnNumbers(EXPONENTIAL, self._degrees, randomness)

    @property
    def _degrees(self) -> int:
        """The radius is Gamma of this: the sum of so many exponential numbers."""
        return self.size

    @abstractmethod
    def ends(self, bits: int) -> tuple[Integers, Integers] | None:
        """Integers low <= x * 2^bits <= high of each number at scale 1; None where more bits are needed."""

    def nearest(self, point: Sequence[Fraction], step: Fraction) -> list[int]:
        """The whole multiples of a step that are nearest to the point plus this vector, halves up.

        Bits are added until both ends of every number round to the same, which happens with probability 1.
        """
        bits, times = DOUBLE_BITS, self.scale / step
        places = [at / step + Fraction(1, 2) for at in point]
        below = lcm(times.denominator, *(at.denominator for at in places))
        starts, factor = integers(at * below for at in places), int(times * below)
        while True:
            if (found := self.ends(bits)) is not None:
                first, last = (((starts << bits) + factor * side) // (below << bits) for side in found)
                if (first == last).all():
                    return [int(one) for one in first]
            bits *= 2


class EuclideanVector(RealVector):
    """Gamma(size) times a uniform direction."""

    def __init__(self, size: int, scale: Fraction, randomness: Randomness) -> None:
        self._direction = DrawnNumbers(NORMAL, size, randomness)
        super().__init__(size, scale, randomness)

    def ends(self, bits: int) -> tuple[Integers, Integers] | None:
        low, high = self._direction.ends(bits, signed=True)
        shortest = isqrt(sum(min(abs(a), abs(b)) ** 2 if a * b > 0 else 0 for a, b in zip(low, high, strict=True)))
        longest = isqrt(sum(max(abs(a), abs(b)) ** 2 for a, b in zip(low, high, strict=True))) + 1
        if shortest == 0:
            return None
        least, most = (sum(side) for side in self._exponential.ends(bits, signed=False))
        # radius g_j / ||g||: the corners of its enclosure, by the sign of g_j
        down = [a * least // longest if a >= 0 else a * most // shortest for a in low]
        up = [-(-b * most // shortest) if b >= 0 else -(-b * least // longest) for b in high]
        return integers(down), integers(up)


class ManhattanVector(RealVector):
    """Independent Laplace numbers: exponential numbers with fair signs."""

    def ends(self, bits: int) -> tuple[Integers, Integers] | None:
        return self._exponential.ends(bits, signed=True)


class CubeVector(RealVector):
    """Gamma(size + 1) times a uniform point of the cube from -1 to 1."""

    def __init__(self, size: int, scale: Fraction, randomness: Randomness) -> None:
        super().__init__(size, scale, randomness)
        self._places = [_Uniform(randomness) for _ in range(size)]

    @property
    def _degrees(self) -> int:
        return self.size + 1

    def ends(self, bits: int) -> tuple[Integers, Integers] | None:
        radius = [sum(side) for side in self._exponential.ends(bits, signed=False)]
        found = []
        for place in self._places:
            first = 2 * place.floor(bits) - (1 << bits)
            corners = [end * side for end in radius for side in (first, first + 2)]
            found.append((min(corners) >> bits, -(-max(corners) >> bits)))
        low, high = zip(*found, strict=True)
        return integers(low), integers(high)


class _Uniform:
    """A uniform number in (0, 1) with as many digits as are asked for."""

    def __init__(self, randomness: Randomness) -> None:
        self._randomness = randomness
        self._digits = self._bits = 0

    def floor(self, bits: int) -> int:
        """The integer part of u * 2^bits."""
        while self._bits < bits:
            self._digits, self._bits = self._digits << WORD | self._randomness.word(), self._bits + WORD
        return self._digits >> (self._bits - bits)


VECTORS: Mapping[str, type[RealVector]] = {"l1": ManhattanVector, "l2": EuclideanVector, "linf": CubeVector}
"""By the norm."""


def approximate(norm: str, size: int, count: int, generator: np.random.Generator) -> Array:
    """Floating-point vectors (count, size) at scale 1: simulation only, never a release."""
    if norm == "l1":
        return np.asarray(generator.laplace(size=(count, size)))
    if norm == "linf":
        radius = generator.gamma(size + 1, size=(count, 1))
        return np.asarray(radius * generator.uniform(-1, 1, size=(count, size)))
    directions = generator.standard_normal((count, size))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.asarray(generator.gamma(size, size=(count, 1)) * directions)
