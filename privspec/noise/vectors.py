"""Real vectors of density ~ e^(-||v|| / scale) in a norm, drawn exactly: with as many digits as are asked for.

What is added to a point is rounded with it to a grid afterwards. Rounding is then post-processing of real numbers, and
the guarantee has no term for it. Note real-points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import isqrt

import numpy as np

from privspec.noise.law import Array
from privspec.noise.samplers import WORD, Normal, Randomness

Ends = tuple[Fraction, Fraction]


class RealVector(ABC):
    """One vector; later calls with more bits refine the same numbers."""

    def __init__(self, size: int, scale: Fraction, randomness: Randomness) -> None:
        self.size, self.scale = size, scale
        self._radius = [Normal(randomness) for _ in range(2 * self._degrees)]

    @property
    def _degrees(self) -> int:
        """The radius is Gamma of this: half the sum of twice as many squared normal numbers."""
        return self.size

    def radius(self, bits: int) -> tuple[int, int]:
        """Integers low <= radius * 2^(2 bits + 1) <= high, at scale 1."""
        return _squares(self._radius, bits)

    @abstractmethod
    def enclosures(self, bits: int) -> list[Ends] | None:
        """Each number between two ends, at scale 1; None where more bits are needed."""

    def nearest(self, point: Sequence[Fraction], step: Fraction) -> list[int]:
        """The whole multiples of a step that are nearest to the point plus this vector, halves up.

        Bits are added until both ends of every enclosure round to the same, which happens with probability 1.
        """
        bits = WORD
        while True:
            found = self.enclosures(bits)
            if found is not None:
                rounded = [
                    [int(((at + self.scale * side) / step + Fraction(1, 2)) // 1) for side in ends]
                    for at, ends in zip(point, found, strict=True)
                ]
                if all(first == last for first, last in rounded):
                    return [first for first, _ in rounded]
            bits *= 2


class EuclideanVector(RealVector):
    """Gamma(size) times a uniform direction."""

    def __init__(self, size: int, scale: Fraction, randomness: Randomness) -> None:
        self._direction = [Normal(randomness) for _ in range(size)]
        super().__init__(size, scale, randomness)

    def enclosures(self, bits: int) -> list[Ends] | None:
        floors = [number.floor(bits) for number in self._direction]
        small, large = _squares(self._direction, bits)
        shortest, longest = isqrt(small), isqrt(large) + 1
        if shortest == 0:
            return None
        low, high = self.radius(bits)
        unit = 1 << (2 * bits + 1)
        # radius g_j / ||g||: the corners of its enclosure, by the sign of g_j
        return [
            (
                Fraction(floor * (low if floor >= 0 else high), unit * (longest if floor >= 0 else shortest)),
                Fraction((floor + 1) * (high if floor >= 0 else low), unit * (shortest if floor >= 0 else longest)),
            )
            for floor in floors
        ]


class ManhattanVector(RealVector):
    """Independent Laplace numbers: each half the sum of two squared normal numbers, with a fair sign."""

    def __init__(self, size: int, scale: Fraction, randomness: Randomness) -> None:
        super().__init__(size, scale, randomness)
        self._signs = [randomness.sign() for _ in range(size)]

    def enclosures(self, bits: int) -> list[Ends] | None:
        unit = 1 << (2 * bits + 1)
        found = []
        for j, sign in enumerate(self._signs):
            low, high = (Fraction(sign * part, unit) for part in _squares(self._radius[2 * j : 2 * j + 2], bits))
            found.append((min(low, high), max(low, high)))
        return found


class CubeVector(RealVector):
    """Gamma(size + 1) times a uniform point of the cube from -1 to 1."""

    def __init__(self, size: int, scale: Fraction, randomness: Randomness) -> None:
        super().__init__(size, scale, randomness)
        self._places = [_Uniform(randomness) for _ in range(size)]

    @property
    def _degrees(self) -> int:
        return self.size + 1

    def enclosures(self, bits: int) -> list[Ends] | None:
        radius, unit = self.radius(bits), 1 << (3 * bits + 1)
        found = []
        for place in self._places:
            first = 2 * place.floor(bits) - (1 << bits)
            corners = [end * side for end in radius for side in (first, first + 2)]
            found.append((Fraction(min(corners), unit), Fraction(max(corners), unit)))
        return found


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


def _squares(numbers: Sequence[Normal], bits: int) -> tuple[int, int]:
    """Integers low <= (sum of the squares) * 2^(2 bits) <= high."""
    ends = [(floor * floor, (floor + 1) * (floor + 1)) for floor in (number.floor(bits) for number in numbers)]
    return sum(min(pair) for pair in ends), sum(max(pair) for pair in ends)


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
