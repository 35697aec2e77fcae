"""Real vectors of density ~ e^(-||v|| / scale) in a norm, drawn exactly: with as many digits as are asked for.

What is added to a point is rounded with it to a grid afterwards. Rounding is then post-processing of real numbers, and
the guarantee has no term for it. Note real-points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from math import isqrt

import numpy as np

from privspec.core.matrices import ExactVector, Integers, integers
from privspec.noise.inverse import (
    CHUNK,
    DOUBLE_BITS,
    EXPONENTIAL,
    NORMAL,
    SLACK,
    UNIFORM,
    UNIT,
    DrawnNumbers,
    floors_near,
)
from privspec.noise.law import Array
from privspec.noise.samplers import Randomness


class RealVectors(ABC):
    """Independent vectors of so many numbers, drawn together; whoever asks with more bits sees the same numbers."""

    def __init__(self, count: int, size: int, scale: Fraction, randomness: Randomness) -> None:
        self.count, self.size, self.scale = count, size, scale
        self._exponential = DrawnNumbers(EXPONENTIAL, count * self._degrees, randomness)

    @property
    def _degrees(self) -> int:
        """The radius is Gamma of this: the sum of so many exponential numbers."""
        return self.size

    @abstractmethod
    def enclosed(self, first: int, last: int) -> tuple[Array, Array]:
        """Doubles near the numbers of some vectors at scale 1, a row each, and bounds of their errors.

        An error that is infinite, or no number, says that doubles cannot tell.
        """

    @abstractmethod
    def ends(self, row: int, bits: int) -> tuple[Integers, Integers] | None:
        """Integers low <= x * 2^bits <= high of a vector's numbers at scale 1; None where more bits are needed."""

    def nearest(self, points: ExactVector, step: Fraction, scales: tuple[Fraction, ...] = ()) -> Integers:
        """The whole multiples of a step that are nearest to the points plus these vectors, halves up: a row each.

        Args: points, one after the other; scales, by how much each number of a vector is wider than `scale` says. Where
            doubles do not decide all numbers of a vector, bits are added until both ends of every number round to the
            same, which happens with probability 1.
        """
        times = [self.scale * own / step for own in scales or (Fraction(1),)]
        whole = integers(own.denominator for own in times)
        factor = integers(own.numerator for own in times)
        near, below = np.array(list(map(float, times))), 2 * points.denominator * step.numerator
        above = 2 * step.denominator * points.numerators + below // 2
        found = above // below
        parts = ((above - found * below) / below).astype(np.float64)
        above, found, parts = (side.reshape(self.count, self.size) for side in (above, found, parts))
        together = max(1, CHUNK // self.size)
        for first in range(0, self.count, together):
            here = slice(first, min(first + together, self.count))
            with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                low, high = floors_near(*self.enclosed(here.start, here.stop), near, parts[here])
            sure = (low == high).all(axis=1)
            found[here] += np.where(sure[:, None], low, 0).astype(np.int64).astype(object)
            for row in (first + np.flatnonzero(~sure)).tolist():
                found[row] = self._exactly(row, above[row] * whole, factor * below, below * whole)
        return np.asarray(found)

    def _exactly(self, row: int, above: Integers, factor: Integers, below: Integers) -> Integers:
        """The integer parts of (above + factor x) / below."""
        bits = DOUBLE_BITS
        while True:
            if (found := self.ends(row, bits)) is not None:
                first, last = (((above << bits) + factor * side) // (below << bits) for side in found)
                if (first == last).all():
                    return np.asarray(first)
            bits *= 2

    def _radii(self, first: int, last: int) -> tuple[Array, Array]:
        """The sums (rows, 1) of the exponential numbers of some vectors, and bounds of their errors."""
        sizes, errors = self._rows(self._exponential, first, last, signed=False)
        radii = sizes.sum(axis=1, keepdims=True)
        return radii, errors.sum(axis=1, keepdims=True) * SLACK + self._degrees * UNIT * radii

    def _rows(self, numbers: DrawnNumbers, first: int, last: int, *, signed: bool = True) -> tuple[Array, Array]:
        """The numbers of some vectors, a row each, and bounds of their errors."""
        each = len(numbers) // self.count
        found, errors = numbers.enclosed(slice(first * each, last * each), signed=signed)
        return found.reshape(-1, each), errors.reshape(-1, each)

    def _of_row(self, numbers: DrawnNumbers, row: int, bits: int, *, signed: bool) -> tuple[Integers, Integers]:
        each = len(numbers) // self.count
        return numbers.ends(bits, signed=signed, within=slice(row * each, (row + 1) * each))


class EuclideanVectors(RealVectors):
    """Gamma(size) times a uniform direction."""

    def __init__(self, count: int, size: int, scale: Fraction, randomness: Randomness) -> None:
        self._direction = DrawnNumbers(NORMAL, count * size, randomness)
        super().__init__(count, size, scale, randomness)

    def enclosed(self, first: int, last: int) -> tuple[Array, Array]:
        normal, error = self._rows(self._direction, first, last)
        radius, off = self._radii(first, last)
        length = np.sqrt(np.square(normal).sum(axis=1, keepdims=True))
        # relative: of the radius; of the length, by the triangle inequality and the roundings of squares, sum and root
        wrong = off / radius
        short = np.sqrt(np.square(error).sum(axis=1, keepdims=True)) / length * SLACK + (self.size + 4) * UNIT
        stretch = np.where(short < 0.5, radius / length, np.inf)
        value = normal * stretch
        error = (np.abs(normal) * (wrong + short) + error * (1 + wrong)) / (1 - short) * stretch
        return value, (error + 4 * UNIT * np.abs(value)) * SLACK

    def ends(self, row: int, bits: int) -> tuple[Integers, Integers] | None:
        low, high = self._of_row(self._direction, row, bits, signed=True)
        shortest = isqrt(sum(min(abs(a), abs(b)) ** 2 if a * b > 0 else 0 for a, b in zip(low, high, strict=True)))
        longest = isqrt(sum(max(abs(a), abs(b)) ** 2 for a, b in zip(low, high, strict=True))) + 1
        if shortest == 0:
            return None
        least, most = (sum(side) for side in self._of_row(self._exponential, row, bits, signed=False))
        # radius g_j / ||g||: the corners of its enclosure, by the sign of g_j
        down = [a * least // longest if a >= 0 else a * most // shortest for a in low]
        up = [-(-b * most // shortest) if b >= 0 else -(-b * least // longest) for b in high]
        return integers(down), integers(up)


class ManhattanVectors(RealVectors):
    """Independent Laplace numbers: exponential numbers with fair signs."""

    def enclosed(self, first: int, last: int) -> tuple[Array, Array]:
        return self._rows(self._exponential, first, last)

    def ends(self, row: int, bits: int) -> tuple[Integers, Integers] | None:
        return self._of_row(self._exponential, row, bits, signed=True)


def _product(place: Array, error: Array, radius: Array, off: Array) -> tuple[Array, Array]:
    """Radius times place, in doubles, and how far off it is at most, of numbers that are themselves off."""
    value = radius * place
    return value, (np.abs(place) * off + error * (radius + off) + UNIT * np.abs(value)) * SLACK


class CubeVectors(RealVectors):
    """Gamma(size + 1) times a uniform point of the cube from -1 to 1."""

    def __init__(self, count: int, size: int, scale: Fraction, randomness: Randomness) -> None:
        super().__init__(count, size, scale, randomness)
        self._places = DrawnNumbers(UNIFORM, count * size, randomness)

    @property
    def _degrees(self) -> int:
        return self.size + 1

    def enclosed(self, first: int, last: int) -> tuple[Array, Array]:
        place, error = self._rows(self._places, first, last)
        return _product(place, error, *self._radii(first, last))

    def ends(self, row: int, bits: int) -> tuple[Integers, Integers] | None:
        radius = [sum(side) for side in self._of_row(self._exponential, row, bits, signed=False)]
        places = self._of_row(self._places, row, bits, signed=True)
        corners = [end * side for end in radius for side in places]
        return np.minimum.reduce(corners) >> bits, -(-np.maximum.reduce(corners) >> bits)


class ProductVectors(RealVectors):
    """Gamma(size + 1) times a uniform point of a product of cross-polytopes, `parts` numbers each.

    Exponential numbers with fair signs over their sum with one more are a uniform point of a cross-polytope.
    """

    def __init__(self, count: int, parts: tuple[int, ...], scale: Fraction, randomness: Randomness) -> None:
        super().__init__(count, sum(parts), scale, randomness)
        self._part = np.repeat(np.arange(len(parts)), parts)
        """Of each number: its part."""
        self._sums = (np.arange(len(parts))[:, None] == np.append(self._part, np.arange(len(parts)))).T
        """Of each number, and of one more a part: whether it is in the sum of a part."""
        self._places = DrawnNumbers(EXPONENTIAL, count * len(self._sums), randomness)

    @property
    def _degrees(self) -> int:
        return self.size + 1

    def enclosed(self, first: int, last: int) -> tuple[Array, Array]:
        number, error = self._rows(self._places, first, last)
        total, off = np.abs(number) @ self._sums, error @ self._sums * SLACK
        off = off + (len(self._sums) + 1) * UNIT * total
        number, error = number[:, : self.size], error[:, : self.size]
        total, off = total[:, self._part], off[:, self._part]
        # of a quotient a / s, with s known within off: that of a, and |a| / s times that of s, over the least s
        place = number / total
        least = np.where(off < total / 2, total - off, np.nan)
        error = (error + np.abs(place) * off) / least * SLACK + UNIT * np.abs(place)
        return _product(place, error, *self._radii(first, last))

    def ends(self, row: int, bits: int) -> tuple[Integers, Integers] | None:
        low, high = self._of_row(self._places, row, bits, signed=True)
        least = integers(max(a, -b, 0) for a, b in zip(low, high, strict=True)) @ self._sums.astype(object)
        most = np.maximum(np.abs(low), np.abs(high)) @ self._sums.astype(object)
        if min(least) <= 0:
            return None
        least, most = least[self._part], most[self._part]
        shortest, longest = (sum(side) for side in self._of_row(self._exponential, row, bits, signed=False))
        # radius a / sum: the corners of its enclosure, by the sign of a
        sides = list(zip(low.tolist(), high.tolist(), least.tolist(), most.tolist(), strict=False))
        down = [a * shortest // top if a >= 0 else a * longest // bottom for a, _, bottom, top in sides]
        up = [-(-b * longest // bottom) if b >= 0 else -(-b * shortest // top) for _, b, bottom, top in sides]
        return integers(down), integers(up)


class ConeVectors(RealVectors):
    """The sum of some whole rows, `corners` (size, size), times exponential numbers: one vector."""

    def __init__(self, corners: Integers, scale: Fraction, randomness: Randomness) -> None:
        super().__init__(1, len(corners), scale, randomness)
        self._corners = corners

    def enclosed(self, first: int, last: int) -> tuple[Array, Array]:
        number, error = self._rows(self._exponential, first, last, signed=False)
        corners = self._corners.astype(np.float64)
        sizes = np.abs(corners)
        error = (error + (self.size + 2) * UNIT * number) @ sizes * SLACK
        return number @ corners, error

    def ends(self, row: int, bits: int) -> tuple[Integers, Integers]:
        low, high = self._of_row(self._exponential, row, bits, signed=False)
        up, down = np.maximum(self._corners, 0), np.minimum(self._corners, 0)
        return low @ up + high @ down, high @ up + low @ down


VECTORS: Mapping[str, type[RealVectors]] = {"l1": ManhattanVectors, "l2": EuclideanVectors, "linf": CubeVectors}
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


def approximate_product(parts: tuple[int, ...], count: int, generator: np.random.Generator) -> Array:
    """The same of a product of cross-polytopes: Laplace numbers over their sum with one more are a point of one."""
    points = list[Array]()
    for size in parts:
        number = generator.laplace(size=(count, size + 1))
        points.append(number[:, :size] / np.abs(number).sum(axis=1, keepdims=True))
    return np.asarray(generator.gamma(sum(parts) + 1, size=(count, 1)) * np.hstack(points))
