"""What a mechanism knows of a table: labels as points, neighbours, costs, prior; and what it makes of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import gcd, isfinite, lcm, prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass

Array: TypeAlias = NDArray[np.float64]
Value: TypeAlias = Fraction | str
Label: TypeAlias = tuple[Value, ...]
"""One row or column: a value for each node or coordinate that it is made of."""

_RELATIVE = 1e-9
_ABSOLUTE = 1e-13


@dataclass(frozen=True, eq=False, slots=True)
class Neighbours:
    """Which rows must look alike: Pr(S | a) <= e^(epsilon distances[a, b]) Pr(S | b) + delta where it is finite.

    `distances` (X, X) are >= 0, infinite where there is no condition.
    """

    distances: Array

    @classmethod
    def complete(cls, rows: int) -> Neighbours:
        """Every two rows are neighbours: local differential privacy, or replacing everything."""
        return cls(1.0 - np.eye(rows))

    @classmethod
    def adjacent(cls, rows: int, pairs: NDArray[np.intp]) -> Neighbours:
        """The ordered pairs (K, 2) are neighbours, such as counts that differ by one."""
        distances = np.full((rows, rows), np.inf)
        distances[pairs[:, 0], pairs[:, 1]] = 1.0
        np.fill_diagonal(distances, 0.0)
        return cls(distances)

    @classmethod
    def metric(cls, distances: Array) -> Neighbours:
        """Every two rows, by their distance (X, X): metric differential privacy."""
        return cls(np.asarray(distances, dtype=float))

    @property
    def pairs(self) -> NDArray[np.bool_]:
        """Which two different rows are under a condition (X, X)."""
        found: NDArray[np.bool_] = np.isfinite(self.distances)
        np.fill_diagonal(found, False)
        return found

    @property
    def least(self) -> float:
        """The least distance of two neighbours; infinite where there are none."""
        return float(np.min(self.distances[self.pairs], initial=np.inf))

    @property
    def uniform(self) -> bool:
        """Whether every two rows are neighbours at one distance."""
        off = self.distances[~np.eye(len(self.distances), dtype=bool)]
        return bool(off.size and np.isfinite(off).all() and np.all(off == off[0]))

    def rate(self, lengths: Array) -> float:
        """The greatest rate with rate * lengths[a, b] <= distances[a, b] for all neighbours; infinite without any."""
        at = self.pairs & (lengths > 0)
        return float(np.min(self.distances[at] / lengths[at], initial=np.inf))


@dataclass(frozen=True, eq=False, slots=True)
class TableContext:
    """One requirement and one loss over tables Pr(column | row).

    Args: rows, columns, their values; epsilon, delta of the requirement between `neighbours`; cost (X, Y), the loss
        of each pair, without the prior; prior (X,), for the expected loss; worst, whether the loss is the largest
        over the rows instead.
    Raises: ValueError for parts that do not fit together.
    """

    rows: tuple[Label, ...]
    columns: tuple[Label, ...]
    epsilon: Fraction
    neighbours: Neighbours
    cost: Array
    prior: Array | None = None
    worst: bool = False
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        """Refuse parts of different sizes, and an expected loss without a prior."""
        inputs, outputs = len(self.rows), len(self.columns)
        if self.cost.shape != (inputs, outputs) or self.neighbours.distances.shape != (inputs, inputs):
            raise ValueError("cost and distances must have a row for each row of the table")
        if self.prior is None and not self.worst:
            raise ValueError("an expected loss needs a prior")
        if self.prior is not None and self.prior.shape != (inputs,):
            raise ValueError("the prior must have one weight for each row")

    @property
    def points(self) -> Coordinates | None:
        """The rows as points; None where they are none, or nothing is spent on what they are."""
        return coordinates(self.rows) if self.epsilon else None

    @property
    def grid(self) -> ProductGrid | None:
        """The grid that the columns fill."""
        points = coordinates(self.columns)
        return None if points is None else product_grid(points)

    def rate(self, order: int) -> float | None:
        """How fast probabilities may fall with the distance of points in the l1 or l2 norm.

        None without points, and at no distance, which would need endless noise.
        """
        points = self.points
        rate = 0.0 if points is None else float(self.epsilon) * self.neighbours.rate(lengths(points, order))
        return rate if rate and isfinite(rate) else None

    def loss(self, table: Array) -> float:
        """The loss of a table (X, Y): expected under the prior, or the largest over the rows."""
        losses = np.sum(table * self.cost, axis=1)
        if self.worst:
            return float(losses.max())
        assert self.prior is not None
        return float(self.prior @ losses)

    def excess(self, table: Array) -> float:
        """How far the table breaks the requirement: 0 if it meets it, up to the rounding of doubles.

        With a delta: the largest delta beyond it. Without: the largest probability beyond its ratio.
        """
        allowed = np.where(self.neighbours.pairs, self.neighbours.distances, np.inf)
        with np.errstate(over="ignore"):
            ratios = np.exp(float(self.epsilon) * allowed)
        worst = 0.0
        if self.neighbours.uniform and not self.delta:
            # the extremes of a column decide
            low, high = table.min(axis=0), table.max(axis=0)
            worst = float(np.max(high * (1 - _RELATIVE) - ratios[0, 1] * low, initial=0.0))
            return worst if worst > _ABSOLUTE else 0.0
        for a, row in enumerate(table):
            others = np.isfinite(ratios[a])
            over = row - ratios[a, others, None] * table[others]
            if self.delta:
                spent = np.maximum(over, 0.0).sum(axis=1) - float(self.delta)
                worst = max(worst, float(np.max(spent, initial=0.0)))
            else:
                worst = max(worst, float(np.max(over - _RELATIVE * row, initial=0.0)))
        return worst if worst > _ABSOLUTE else 0.0


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


@dataclass(frozen=True, eq=False, slots=True)
class Candidate:
    """A mechanism calibrated to a context: its table (X, Y), and one sentence on how it draws."""

    name: str
    table: Array
    text: str
    note: str


@dataclass(frozen=True, eq=False, slots=True)
class Comparison(Candidate):
    """A mechanism that people use, beside the optimum: its loss in the context.

    `admissible`: it meets the requirement; `reason` says how it is calibrated, or by how much it misses.
    """

    loss: float
    admissible: bool
    reason: str


Mechanism: TypeAlias = "Callable[[TableContext], Iterator[Candidate]]"
"""The tables of a mechanism for a context, calibrated to the requirement; none where it does not apply."""


def shown(value: float) -> str:
    """A number in a sentence."""
    return f"{value:.4g}"


def decay(rate: float, exponent: str) -> str:
    """The power e^(-rate exponent) in a sentence."""
    factor = shown(rate)
    return f"e^(-{exponent})" if factor == "1" else f"e^(-{factor} {exponent})"


_LARGEST = 1_000_000
"""Entries of the program over random remaps up to which it is worth its time for a comparison."""


def best_remap(context: TableContext, noise: Array) -> Array | None:
    """The table (X, Y) after the best remap of noisy values, from their law `noise` (X, Z).

    For an expected loss each noisy value becomes the column of least posterior loss; for the worst case the remap may
    be random, from a linear program. None if that is too large.
    """
    remap = worst_case_remap(context, noise) if context.worst else bayes_remap(context, noise)
    return None if remap is None else np.asarray(noise @ remap)


def bayes_remap(context: TableContext, noise: Array) -> Array:
    """For each noisy value (Z, Y) the column of least expected loss given it, as a 0/1 matrix; the first of several."""
    assert context.prior is not None
    losses = noise.T @ (context.prior[:, None] * context.cost)
    # ties are decided by position, not by the last bit of a sum
    ties = losses <= losses.min(axis=1, keepdims=True) + 1e-13 * np.max(np.abs(losses), axis=1, keepdims=True)
    chosen: Array = np.eye(context.cost.shape[1])[np.argmax(ties, axis=1)]
    return chosen


def worst_case_remap(context: TableContext, noise: Array) -> Array | None:
    """The random remap (Z, Y) with the least largest loss over the rows; None if the program is too large."""
    values, (inputs, outputs) = noise.shape[1], context.cost.shape
    if inputs * values * outputs > _LARGEST:
        return None
    losses = (noise[:, :, None] * context.cost[:, None, :]).reshape(inputs, -1)
    from scipy.optimize import linprog  # slow to load

    found = linprog(
        np.append(np.zeros(values * outputs), 1.0),
        A_ub=np.hstack((losses, -np.ones((inputs, 1)))),
        b_ub=np.zeros(inputs),
        A_eq=np.hstack((np.kron(np.eye(values), np.ones((1, outputs))), np.zeros((values, 1)))),
        b_eq=np.ones(values),
        bounds=[(0, None)] * (values * outputs) + [(None, None)],
    )
    if found.x is None or found.status != 0:
        return None
    remap: Array = np.maximum(found.x[:-1], 0.0).reshape(values, outputs)
    remap /= remap.sum(axis=1, keepdims=True)
    return remap
