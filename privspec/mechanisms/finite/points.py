"""Rows and columns as numbers: their coordinates, the grids that they are products of, and their nearest cells."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm, prod

import numpy as np
from numpy.typing import NDArray

from privspec.mechanisms.finite.context import Array, Label

Coordinates = tuple[tuple[Fraction, ...], ...]
"""For each label its numbers."""


def coordinates(labels: Sequence[Label]) -> Coordinates | None:
    """The labels as numbers; None if one is a word, or has another number of parts."""
    found = []
    for label in labels:
        numbers = tuple(v for v in label if isinstance(v, Fraction))
        if len(numbers) != len(labels[0]) or not numbers:
            return None
        found.append(numbers)
    return tuple(found)


def lengths(points: Coordinates, order: int) -> Array:
    """Distances in the l1 (order 1) or l2 norm between every two points (X, X)."""
    at = np.array([[float(v) for v in point] for point in points])
    result: Array = np.linalg.norm(at[:, None] - at[None], ord=order, axis=2)
    return result


def positions(labels: Sequence[Label], among: Sequence[Label]) -> NDArray[np.intp] | None:
    """Where each label stands among others (X,); None unless all are there, each once."""
    number = {label: k for k, label in enumerate(among)}
    if len(number) != len(among) or any(label not in number for label in labels):
        return None
    return np.array([number[label] for label in labels], dtype=np.intp)


@dataclass(frozen=True, slots=True)
class ProductGrid:
    """Points that are every combination of values on each axis (`axes`, ascending), in any order.

    `places` holds for each point the number of its value on every axis.
    """

    axes: tuple[tuple[Fraction, ...], ...]
    places: tuple[tuple[int, ...], ...]

    def gather(self, factors: Sequence[Array]) -> Array:
        """The table (X, Y) of independent coordinates, from one (X, values) for each axis."""
        result = np.ones((len(factors[0]), len(self.places)))
        for axis, factor in enumerate(factors):
            result *= factor[:, [place[axis] for place in self.places]]
        return result


def product_grid(points: Coordinates) -> ProductGrid | None:
    """The grid that the points fill; None if one is missing or twice there."""
    axes = tuple(tuple(sorted(set(values))) for values in zip(*points, strict=True))
    if prod(len(axis) for axis in axes) != len(points) or len(set(points)) != len(points):
        return None
    number = [{value: k for k, value in enumerate(axis)} for axis in axes]
    return ProductGrid(axes, tuple(tuple(number[i][v] for i, v in enumerate(point)) for point in points))


def step(values: Sequence[Fraction]) -> Fraction | None:
    """The greatest step of an even grid that holds all of the values; None for less than two different ones."""
    gaps = [abs(v - values[0]) for v in values if v != values[0]]
    if not gaps:
        return None
    common = lcm(*(g.denominator for g in gaps))
    return Fraction(gcd(*(int(g * common) for g in gaps)), common)


def even_grid(low: Fraction, high: Fraction, width: Fraction, through: Fraction) -> tuple[Fraction, ...]:
    """The points through + k width between low and high, both included."""
    first = -((through - low) // width)
    last = (high - through) // width
    return tuple(through + k * width for k in range(first, last + 1))


def steps_between(values: Sequence[Fraction], grid: Sequence[Fraction]) -> NDArray[np.intp]:
    """How many steps of an even grid lie between each value, whole steps from it, and each grid point (X, Z)."""
    width = grid[1] - grid[0]
    at = np.array([int((v - grid[0]) / width) for v in values], dtype=np.intp)
    return np.arange(len(grid), dtype=np.intp)[None, :] - at[:, None]


def middles(axis: Sequence[Fraction]) -> Array:
    """Where the nearest value of the axis changes: (values - 1,)."""
    return np.array([float((a + b) / 2) for a, b in itertools.pairwise(axis)])
