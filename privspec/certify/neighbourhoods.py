"""Sets of differences between two neighbouring data sets, derived here from the words of a requirement.

Each set answers three questions: is a difference in it (or in its convex hull, which every guarantee of
additive noise covers as well), how far can it move a Gaussian release, how far a Laplace one. Answers are
exact or rounded up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import TypeAlias

import numpy as np

from privspec.certify.exact import (
    ROUNDINGS,
    UNIT_ROUNDOFF,
    Array,
    Integers,
    exact_gram,
    exact_squares,
    float_up,
    largest_eigenvalue_up,
    sqrt_up,
)

Difference: TypeAlias = Mapping[int, Fraction]
VERTEX_LIMIT = 16
"""Boxes of at most this many coordinates are enumerated; larger ones are bounded."""
SWEEPS = 60
"""Rounds of coordinate ascent for the bound of a large box."""


class Quadratic(ABC):
    """A form d'Gd: the squared shift, in noise units, of a Gaussian release under a difference d."""

    @abstractmethod
    def diagonal(self) -> list[Fraction]:
        """G_ii for every coordinate, not below the truth."""

    @abstractmethod
    def largest_move(self, cells: Integers) -> Fraction:
        """Max of G_ii + G_jj - 2 G_ij over pairs of the cells, not below the truth."""

    @abstractmethod
    def block(self, coordinates: Integers) -> tuple[Array, Array]:
        """A float matrix and a bound on the distance of each of its entries from that block of G."""


@dataclass(frozen=True, eq=False, slots=True)
class StrategyForm(Quadratic):
    """G = factor * X'X with X (k, n) integers: exact."""

    integers: Integers
    factor: Fraction

    def diagonal(self) -> list[Fraction]:
        """Exact squared column norms."""
        return [value * self.factor for value in exact_squares(self.integers).list()]

    def largest_move(self, cells: Integers) -> Fraction:
        """Exact: all pairs through the integer Gram matrix."""
        if len(cells) < 2:
            return Fraction(0)

        def moves(level: Integers) -> Integers:
            diagonal = np.diagonal(level)
            result: Integers = diagonal[:, None] + diagonal[None, :] - 2 * level
            return result

        return exact_gram(self.integers[:, cells]).map(moves).largest() * self.factor

    def block(self, coordinates: Integers) -> tuple[Array, Array]:
        """The exact block, rounded."""
        gram = exact_gram(self.integers[:, coordinates]).to_float() * float(self.factor)
        return gram, ROUNDINGS * UNIT_ROUNDOFF * np.abs(gram)


@dataclass(frozen=True, eq=False, slots=True)
class EnclosedForm(Quadratic):
    """G within `radius` (n, n) of `middle`, entry by entry; `moves`, where known, is not below G_ii + G_jj - 2 G_ij."""

    middle: Array
    radius: Array
    moves: Array | None = None

    def diagonal(self) -> list[Fraction]:
        """Upper ends."""
        ends = zip(np.diagonal(self.middle), np.diagonal(self.radius), strict=True)
        return [Fraction(float(value)) + Fraction(float(radius)) for value, radius in ends]

    def largest_move(self, cells: Integers) -> Fraction:
        """Upper end of the largest."""
        if self.moves is not None and len(cells) > 1:
            apart = self.moves[np.ix_(cells, cells)]
            return Fraction(float(np.max(apart[~np.eye(len(cells), dtype=bool)])))
        block = self.middle[np.ix_(cells, cells)]
        diagonal = np.diagonal(block)
        moves = diagonal[:, None] + diagonal[None, :] - 2 * block
        doubt = float(np.max(self.radius[np.ix_(cells, cells)], initial=0.0))
        slack = 8 * UNIT_ROUNDOFF * float(np.max(np.abs(block), initial=0.0)) + 4 * doubt
        return Fraction(float(np.max(moves, initial=0.0))) + Fraction(slack)

    def block(self, coordinates: Integers) -> tuple[Array, Array]:
        """The block with its radii."""
        at = np.ix_(coordinates, coordinates)
        return self.middle[at], self.radius[at]


@dataclass(frozen=True, eq=False, slots=True)
class LaplaceCost:
    """sum_r (|(B d)_r| + grid where row r is rounded and moved) / scale_r, with B = integers * unit."""

    integers: Integers
    unit: Fraction
    scales: tuple[Fraction, ...]
    grid: Fraction
    rounded: Integers

    def of(self, moved: Sequence[int], lengths: Sequence[Fraction]) -> Fraction:
        """The exact cost when row moved[i] moves by lengths[i] > 0."""
        by_scale: dict[Fraction, Fraction] = {}
        for row, length in zip(moved, lengths, strict=True):
            step = self.grid if self.rounded[row] else 0
            scale = self.scales[row]
            by_scale[scale] = by_scale.get(scale, Fraction(0)) + length + step
        return sum((total / scale for scale, total in by_scale.items()), Fraction(0))

    def steps(self, unit: Integers) -> Fraction:
        """The cost of rounding where the coordinates of a unit have a part."""
        rows = np.flatnonzero(np.any(self.integers[:, unit] != 0, axis=1) & (self.rounded != 0))
        return sum((self.grid / self.scales[row] for row in rows), Fraction(0))

    def worst(self, shifts: Integers) -> Fraction:
        """The largest cost over the columns of integer shifts (k, N): exact for those that can be the largest."""
        weights = np.array([float(self.unit / b) for b in self.scales])
        steps = np.array([float(self.grid / b) if r else 0.0 for b, r in zip(self.scales, self.rounded, strict=True)])
        costs = weights @ shifts + steps @ (shifts != 0)
        error = 8 * (len(weights) + 4) * UNIT_ROUNDOFF
        largest = float(np.max(costs, initial=0.0))
        worst = Fraction(0)
        for column in np.flatnonzero(costs >= largest * (1 - 2 * error)):
            moved = np.flatnonzero(shifts[:, column])
            worst = max(worst, self.of(moved.tolist(), [int(shifts[r, column]) * self.unit for r in moved]))
        return worst


class Neighbourhood(ABC):
    """A symmetric set of differences of the base vector."""

    __slots__ = ()

    @property
    def exact(self) -> bool:
        """Whether `reach` is the largest value itself and not a bound."""
        return True

    @abstractmethod
    def admits(self, difference: Difference) -> bool:
        """Whether a difference lies in the convex hull of the set."""

    @abstractmethod
    def reach(self, form: Quadratic) -> Fraction:
        """The largest d'Gd over the set, not below the truth."""

    @abstractmethod
    def cost(self, laplace: LaplaceCost) -> Fraction:
        """The largest Laplace cost over the set, not below the truth."""


@dataclass(frozen=True, eq=False, slots=True)
class Entries(Neighbourhood):
    """Up to `group` coordinates change, i by at most ranges[i]; guarantees are asked for `cover` times that.

    `mixed`: units of which any coordinates change together, so that the changes are mixtures of those; answers that are
    rounded then move wherever the unit has a part, in up to `units_moved` units.
    """

    ranges: Mapping[int, Fraction]
    group: int = 1
    cover: int = 1
    mixed: tuple[Integers, ...] = ()
    units_moved: int = 1

    @property
    def exact(self) -> bool:
        """Several at once are bounded."""
        return self.group == self.cover == 1

    def admits(self, difference: Difference) -> bool:
        """Shares of the ranges sum to at most the group."""
        if any(i not in self.ranges or abs(a) > self.ranges[i] for i, a in difference.items()):
            return False
        return sum((abs(a) / self.ranges[i] for i, a in difference.items() if a), Fraction(0)) <= self.group

    def reach(self, form: Quadratic) -> Fraction:
        """The largest squared column; several at once by the triangle inequality."""
        diagonal = form.diagonal()
        squares = sorted((r * r * diagonal[i] for i, r in self.ranges.items()), reverse=True)[: self.group]
        total = sum((sqrt_up(s) for s in squares), Fraction(0)) ** 2 if self.group > 1 else max(squares, default=0)
        return Fraction(total) * self.cover**2

    def cost(self, laplace: LaplaceCost) -> Fraction:
        """The largest column, as many times as may change."""
        worst = Fraction(0)
        exact = replace(laplace, grid=Fraction(0)) if self.mixed else laplace
        for size in set(self.ranges.values()):
            columns = np.array([i for i, r in self.ranges.items() if r == size], dtype=np.int64)
            scaled = replace(exact, unit=laplace.unit * size)
            worst = max(worst, scaled.worst(np.abs(laplace.integers[:, columns])))
        return worst * self.group * self.cover + self.units_moved * max(map(laplace.steps, self.mixed), default=0)


@dataclass(frozen=True, eq=False, slots=True)
class Cells(Neighbourhood):
    """Up to `group` records of a table are added or removed, or each moves from one cell to another.

    `cells` are consecutive coordinates.
    """

    cells: Integers
    moving: bool
    group: int = 1

    def admits(self, difference: Difference) -> bool:
        """The l1 norm is at most the number of records, twice that and balanced when they move."""
        first, last = int(self.cells[0]), int(self.cells[-1])
        if any(not first <= i <= last for i in difference):
            return False
        size = sum((abs(a) for a in difference.values()), Fraction(0))
        balanced = sum(difference.values(), Fraction(0)) == 0
        return size <= 2 * self.group and balanced if self.moving else size <= self.group

    def reach(self, form: Quadratic) -> Fraction:
        """The largest cell, or the largest of all pairs."""
        if self.moving:
            return form.largest_move(self.cells) * self.group**2
        diagonal = form.diagonal()
        return max((diagonal[i] for i in self.cells), default=Fraction(0)) * self.group**2

    def cost(self, laplace: LaplaceCost) -> Fraction:
        """The largest cell, or the largest of all pairs."""
        columns = laplace.integers[:, self.cells]
        if not self.moving:
            return laplace.worst(np.abs(columns)) * self.group
        pairs = (np.abs(columns[:, i + 1 :] - columns[:, i : i + 1]) for i in range(columns.shape[1] - 1))
        return max((laplace.worst(shifts) for shifts in pairs), default=Fraction(0)) * self.group


@dataclass(frozen=True, eq=False, slots=True)
class Boxes(Neighbourhood):
    """All coordinates of one unit change, each by at most its reach; a guarantee is asked for `cover` times that.

    `whole` False: the boxes only cover the true set, so no difference is known to be admissible.
    """

    units: tuple[Integers, ...]
    reaches: Mapping[int, Fraction]
    cover: int = 1
    whole: bool = True

    @property
    def exact(self) -> bool:
        """Small boxes are enumerated."""
        return self.whole and self.cover == 1 and all(len(unit) <= VERTEX_LIMIT for unit in self.units)

    def admits(self, difference: Difference) -> bool:
        """Inside one box."""
        if not self.whole or any(i not in self.reaches or abs(a) > self.reaches[i] for i, a in difference.items()):
            return False
        return any(set(difference) <= set(unit.tolist()) for unit in self.units)

    def _sizes(self, unit: Integers) -> Array:
        return np.array([float_up(self.reaches[int(i)]) for i in unit])

    def reach(self, form: Quadratic) -> Fraction:
        """Vertices where they are few, else the least of two bounds."""
        worst = Fraction(0)
        for unit in self.units:
            gram, radius = form.block(unit)
            sizes = self._sizes(unit)
            scaled = sizes[:, None] * gram * sizes[None, :]
            doubt = sizes @ (radius + 4 * UNIT_ROUNDOFF * np.abs(gram)) @ sizes
            error = float(doubt) * (1 + 4 * len(unit) * UNIT_ROUNDOFF)
            bound = _vertex_bound(scaled) if len(unit) <= VERTEX_LIMIT else _sign_bound(scaled)
            worst = max(worst, Fraction(bound) + Fraction(error))
        return worst * self.cover**2

    def cost(self, laplace: LaplaceCost) -> Fraction:
        """Vertices where they are few, else the sum of the coordinates."""
        weights = np.array([float_up(laplace.unit / b) for b in laplace.scales])
        steps = float(
            sum(float_up(laplace.grid / b) for b, r in zip(laplace.scales, laplace.rounded, strict=True) if r)
        )
        worst = 0.0
        for unit in self.units:
            scaled = laplace.integers[:, unit] * self._sizes(unit)
            shifts = np.abs(scaled @ _signs(len(unit)).T) if len(unit) <= VERTEX_LIMIT else np.abs(scaled)
            total = weights @ (shifts if len(unit) <= VERTEX_LIMIT else shifts.sum(axis=1, keepdims=True))
            slack = 8 * (len(weights) + len(unit)) * UNIT_ROUNDOFF * float(weights @ np.abs(scaled).sum(axis=1))
            worst = max(worst, float(np.max(total, initial=0.0)) + slack + steps)
        return Fraction(worst) * (1 + Fraction(1, 2**45)) * self.cover


def _signs(size: int) -> Array:
    """All vectors of signs with first sign + (2^(size-1), size)."""
    rest = np.array(list(product((1.0, -1.0), repeat=size - 1)), dtype=float).reshape(2 ** (size - 1), size - 1)
    return np.hstack([np.ones((len(rest), 1)), rest])


def _vertex_bound(scaled: Array) -> float:
    """Max of s'Qs over signs s, rounded up."""
    signs = _signs(scaled.shape[0])
    values = np.einsum("vi,vi->v", signs @ scaled, signs)
    slack = 4 * (len(scaled) + 4) * UNIT_ROUNDOFF * float(np.abs(scaled).sum())
    return float(values.max()) + slack


def _sign_bound(scaled: Array) -> float:
    """An upper bound of s'Qs over signs s: sum d for diag(d) - Q >= 0, or the sum of absolute entries.

    d is found by coordinate ascent on the dual (unit vectors v_i with d_i v_i = sum_j Q_ij v_j at the
    optimum), then lifted until the matrix inequality is proved.
    """
    n = scaled.shape[0]
    plain = float(np.abs(scaled).sum()) * (1 + 4 * n * UNIT_ROUNDOFF)
    rank = min(n, int(np.sqrt(2 * n)) + 2)
    vectors = np.random.default_rng(0).standard_normal((n, rank))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    diagonal = np.diagonal(scaled).copy()
    for _ in range(SWEEPS):
        for i in range(n):
            pull = scaled[i] @ vectors - diagonal[i] * vectors[i]
            length = float(np.linalg.norm(pull))
            if length > 0:
                vectors[i] = pull / length
    product_ = scaled @ vectors - diagonal[:, None] * vectors
    d = diagonal + np.linalg.norm(product_, axis=1)
    lift = largest_eigenvalue_up(scaled - np.diag(d), 2 * UNIT_ROUNDOFF * float(np.linalg.norm(np.diag(d))))
    return float(min(plain, float((d + max(lift, 0.0)).sum()) * (1 + 4 * n * UNIT_ROUNDOFF)))


@dataclass(frozen=True, eq=False, slots=True)
class Balls(Neighbourhood):
    """Runs of `dimension` coordinates change by vectors of l2 norm at most `radius`, in up to `group` units."""

    units: tuple[Integers, ...]
    dimension: int
    radius: Fraction
    group: int = 1

    @property
    def exact(self) -> bool:
        """Several balls at once are covered by one larger ball."""
        return self.group == 1 and all(len(unit) <= self.dimension for unit in self.units)

    def admits(self, difference: Difference) -> bool:
        """Few enough units, every run inside its ball."""
        owner = {
            int(i): (u, place // self.dimension) for u, unit in enumerate(self.units) for place, i in enumerate(unit)
        }
        if any(i not in owner for i in difference):
            return False
        squares: dict[tuple[int, int], Fraction] = {}
        for i, a in difference.items():
            squares[owner[i]] = squares.get(owner[i], Fraction(0)) + a * a
        moved = {unit for (unit, _), square in squares.items() if square}
        return len(moved) <= self.group and all(square <= self.radius**2 for square in squares.values())

    def reach(self, form: Quadratic) -> Fraction:
        """Radius squared times the largest eigenvalue of a block."""
        worst = Fraction(0)
        for unit in self.units:
            gram, radius = form.block(unit)
            balls = -(-len(unit) // self.dimension)
            distance = float(np.linalg.norm(radius)) * (1 + 1e-12)
            worst = max(worst, Fraction(largest_eigenvalue_up(gram, distance)) * balls)
        return worst * self.radius**2 * self.group**2

    def cost(self, laplace: LaplaceCost) -> Fraction:
        """Every row by itself: a bound."""
        worst = Fraction(0)
        steps = sum((laplace.grid / b for b, r in zip(laplace.scales, laplace.rounded, strict=True) if r), Fraction(0))
        for unit in self.units:
            balls = -(-len(unit) // self.dimension)
            squares = exact_squares(np.ascontiguousarray(laplace.integers[:, unit].T)).list()
            lengths = [sqrt_up(s * balls * (laplace.unit * self.radius) ** 2) for s in squares]
            total = sum((x / b for x, b in zip(lengths, laplace.scales, strict=True)), Fraction(0))
            worst = max(worst, total)
        return (worst + steps) * self.group
