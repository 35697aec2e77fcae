"""Boxes of alpha and the means, bounded by all cuts at once in floats, and the tree in which they were split.

Floats only steer the search; `table_search_bounds` evaluates the tree again in exact arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from privspec.solvers.programs import Array
from privspec.solvers.results import Indices
from privspec.solvers.table_search_programs import SearchSplit, SearchTree

_POSITIVE = 1e-9  # what an affine bound must exceed, relative to its terms, to exclude a box
_CHUNK = 2_000_000


@dataclass(slots=True)
class CutPool:
    """Affine minorants (M, 1 + coordinates) as they are found: constant, slope in alpha, slopes in the means."""

    weights: Array
    rows: Array
    empty: NDArray[np.bool_]

    def add(self, constant: float, slopes: Array, empty: bool) -> None:
        """Append a cut."""
        self.rows = np.vstack((self.rows, np.append(constant, slopes)))
        self.empty = np.append(self.empty, empty)

    def bounds(self, low: Array, high: Array, last: int | None = None) -> Array:
        """Lower bounds on loss + spread in boxes (N, coordinates), one for each of the `last` cuts (N, M)."""
        rows = self.rows if last is None else self.rows[-last:]
        empty = self.empty if last is None else self.empty[-last:]
        size = max(1, _CHUNK // max(1, rows.size))
        parts = [
            self._bounds(rows, empty, low[start : start + size], high[start : start + size])
            for start in range(0, len(low), size)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, len(rows)))

    def _bounds(self, rows: Array, empty: NDArray[np.bool_], low: Array, high: Array) -> Array:
        ends = (low[:, None, :], high[:, None, :])
        squares = np.where(empty[:, None], 0.0, self.weights)
        at_ends = [rows[:, 2:] * end[..., 1:] - squares * end[..., 1:] ** 2 for end in ends]
        constant = rows[:, 0] + np.minimum(*at_ends).sum(axis=2)
        scale = np.broadcast_to(rows[:, 1], constant.shape)
        found = _least_ratio(constant, scale, low[:, :1], high[:, :1])
        least = constant + np.minimum(scale * low[:, :1], scale * high[:, :1])
        size = np.abs(rows[:, 0]) + np.abs(rows[:, 1:]) @ np.maximum(np.abs(low), np.abs(high)).max(axis=0)
        excluded = np.where(least > _POSITIVE * size, np.inf, 0.0)
        result: Array = np.where(empty, excluded, found)
        return result


def _least_ratio(constant: Array, scale: Array, low: Array, high: Array) -> Array:
    """The least of (constant + scale alpha) / alpha^2 for alpha in [low, high], or 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        nearest, farthest = 1 / high, 1 / low
        first = constant * nearest**2 + scale * nearest
        second = np.where(low > 0, constant * farthest**2 + scale * farthest, np.where(constant > 0, np.inf, 0.0))
        turn = -scale / (2 * constant)
        inside = (constant > 0) & (turn > nearest) & (turn < farthest)
        least = np.where(inside, constant * turn**2 + scale * turn, np.minimum(first, second))
    result: Array = np.maximum(np.nan_to_num(least, nan=0.0, posinf=np.inf), 0.0)
    return result


@dataclass(slots=True)
class BoxTree:
    """All boxes that were ever made; `low` and `high` (N, coordinates), `children` the first of two, or -1."""

    low: list[Array]
    high: list[Array]
    children: list[int] = field(default_factory=lambda: [-1])
    splits: list[SearchSplit | None] = field(default_factory=lambda: [None])

    def split(self, box: int, coordinate: int, at: float) -> tuple[int, int]:
        """Cut a box in two; the numbers of its parts."""
        first = len(self.low)
        self.children[box], self.splits[box] = first, SearchSplit(coordinate, at)
        for below in (True, False):
            low, high = self.low[box].copy(), self.high[box].copy()
            (high if below else low)[coordinate] = at
            self.low.append(low)
            self.high.append(high)
            self.children.append(-1)
            self.splits.append(None)
        return first, first + 1

    def proof(self, pool: CutPool, slope: float, aim: float) -> tuple[SearchTree, Indices]:
        """A small tree in which every box has loss + spread >= `aim` (or the least of all), and the cuts it needs.

        Boxes whose parts one cut bounds well enough are not split, and few cuts serve all boxes.
        """
        low, high = np.array(self.low), np.array(self.high)
        with np.errstate(divide="ignore"):
            small = slope / high[:, :1]
        bounds = np.hstack((small, pool.bounds(low, high)))
        best = bounds.max(axis=1)
        # The worst box decides.
        aim = min(aim, float(best[np.array(self.children) < 0].min()))
        order, leaves = self._pruned(best >= aim)
        serves = bounds[leaves] >= aim
        chosen = _cover(serves)
        kept = np.setdiff1d(chosen, [0])
        number = {int(cut): position for position, cut in enumerate(kept)} | {0: -1}
        of_leaf = {leaf: number[next(c for c in chosen if serves[k, c])] for k, leaf in enumerate(leaves)}
        tree = tuple(of_leaf[box] if box in of_leaf else self._split_of(box) for box in order)
        return tree, kept - 1

    def _split_of(self, box: int) -> SearchSplit:
        split = self.splits[box]
        assert split is not None
        return split

    def _pruned(self, settled: NDArray[np.bool_]) -> tuple[list[int], list[int]]:
        """Boxes in preorder down to the settled ones, and the leaves among them."""
        order, leaves, stack = [], [], [0]
        while stack:
            box = stack.pop()
            order.append(box)
            if settled[box] or self.children[box] < 0:
                leaves.append(box)
            else:
                stack.extend((self.children[box] + 1, self.children[box]))
        return order, leaves


def _cover(serves: NDArray[np.bool_]) -> list[int]:
    """Columns, greedily chosen, such that every row has one that serves it."""
    left = np.ones(len(serves), dtype=bool)
    chosen: list[int] = []
    while left.any():
        chosen.append(int(np.argmax(serves[left].sum(axis=0))))
        left &= ~serves[:, chosen[-1]]
    return chosen
