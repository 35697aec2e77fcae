"""Search over the scalars of a table's program: boxes, cuts and bounds, to a certified gap.

Boxes of alpha and the means, bounded by all cuts at once in floats, and the tree in which they were split.

Floats only steer the search: whoever judges a plan evaluates the tree again in exact arithmetic.

Debiased tables of least squared error, over all scales and all background laws, to certified optimality.

Branch and bound over boxes of alpha and the free means: in a box the squares give way to their chords, what remains is
a linear program, and its multipliers are an affine bound that holds everywhere, so that each serves all boxes
(notes/debiased.md). The best table is repaired to exact rationals and the tree of boxes is evaluated in exact
arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from privspec.solvers.programs import Array, Indices, OutOfTimeError, Progress, SolverError, Watch
from privspec.solvers.table_programs import ExactTable, InfeasibleTable
from privspec.solvers.table_rows import explain_infeasible
from privspec.solvers.table_search_programs import (
    Basis,
    BoxProgram,
    DebiasedProgram,
    DebiasedSolution,
    SearchCut,
    SearchSplit,
    SearchTree,
    Vertex,
    debiased_loss,
    slope,
)
from privspec.solvers.tables import repair_affine

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


_SHARE = 0.9  # of the tolerance that the search spends; the rest is for rounding
_MARGIN = 1e-6  # of a range, between the largest value of a coordinate and the boxes that exclude larger ones
_LEAST = 1e-9  # alpha, below which a problem counts as infeasible
_THIN = 1e-9  # of the ranges, below which boxes are not split
_DESCENTS = 60
_EDGE = 0.2  # splits keep this share of a box on either side
_MINOR = 0.05  # of the largest chord error: below it the table lies at ends of the box, which is then halved


def search_debiased(
    problem: DebiasedProgram, tolerance: float = 1e-4, deadline: float | None = None, progress: Progress | None = None
) -> DebiasedSolution | InfeasibleTable:
    """The table, scale and background law of least debiased loss, exact and with a certified bound.

    Args: tolerance, relative, on the loss; deadline in seconds, after which the best table so far is returned with the
        bound reached (its note says so).
    Raises: OutOfTimeError if the deadline passed before there was a table; SolverError if the best table could not be
        made exact; ValueError if alpha may be arbitrarily small and the targets do not vary.
    Source: notes/debiased.md; the problem is Ramon & Basu 2020, section 3.3, with the loss of the debiased estimate.
    """
    if problem.alpha[0] == 0 and slope(problem) == 0:
        raise ValueError("the range of alpha needs a positive lower end where targets or outputs do not vary")
    search = _Search(problem, tolerance, Watch(deadline, progress))
    try:
        if not search.start():
            return _conflict(problem)
        search.run()
    except OutOfTimeError:
        if search.best is None:
            raise
        search.notes.append("the deadline passed")
    return search.solution()


def _conflict(problem: DebiasedProgram) -> InfeasibleTable:
    low, high = problem.alpha
    found = explain_infeasible(problem.program((low or high, high)))
    if found.shortfall < _MARGIN**2:
        raise SolverError("the linear program over tables could not be solved")
    return found


class _Search:
    """The boxes that are still open, the cuts, and the best table."""

    def __init__(self, problem: DebiasedProgram, tolerance: float, watch: Watch) -> None:
        self.problem, self.tolerance, self.watch = problem, tolerance, watch
        self.lp = BoxProgram(problem, watch)
        self.weights = np.array([float(problem.weights[k]) for k in problem.means])
        self.spread, self.slope = float(problem.spread), float(slope(problem))
        self.pool = CutPool(self.weights, np.zeros((0, 2 + len(self.weights))), np.zeros(0, dtype=bool))
        self.cuts: list[SearchCut] = []
        ranges = (problem.alpha, *problem.range_of_means)
        self.low, self.high = (np.array([float(ends[k]) for ends in ranges]) for k in (0, 1))
        self.tree = BoxTree([self.low.copy()], [self.high.copy()])
        self.width = self.high - self.low
        self.best: Vertex | None = None
        self.ratio = np.inf
        self.closed = np.inf
        self.notes: list[str] = []
        self.open = np.zeros(0, dtype=np.intp)
        self.lower = np.zeros(0)
        self.bases: dict[int, Basis] = {}

    def start(self) -> bool:
        """Find the ranges that tables reach and a first table; whether there is one with alpha > 0."""
        inner = 0
        for k in range(len(self.low)):
            for sign in (-1.0, 1.0):
                prices = np.zeros(len(self.low))
                prices[k] = sign
                found = self.lp.extreme(self.low, self.high, prices)
                if found is None or (k == 0 and sign < 0 and found.point[0] <= _LEAST):
                    return False
                self._add(found)
                inner = self._exclude(inner, k, sign, float(found.point[k]))
                self._offer(found)
        assert self.best is not None
        self.descend(self.best)
        least = self.slope / self.ratio * (1 - _THIN)
        low, high = self.tree.low[inner][0], self.tree.high[inner][0]
        if low < least < high:
            inner = self.tree.split(inner, 0, least)[1]
        self._open((inner,))
        return True

    def _exclude(self, box: int, k: int, sign: float, reached: float) -> int:
        """Split off the part of a box that no table reaches; the rest."""
        at = reached - sign * _MARGIN * self.width[k]
        if not self.tree.low[box][k] < at < self.tree.high[box][k]:
            return box
        return self.tree.split(box, k, at)[1 if sign > 0 else 0]

    def _add(self, vertex: Vertex) -> None:
        self.pool.add(vertex.constant, vertex.slopes, vertex.empty)
        self.cuts.append(SearchCut(vertex.dual, vertex.empty))

    def _offer(self, vertex: Vertex) -> None:
        """Keep a table if it is the best so far."""
        ratio = self._ratio_of(vertex)
        if ratio < self.ratio:
            self.best, self.ratio = vertex, ratio

    def _ratio_of(self, vertex: Vertex) -> float:
        alpha, means = float(vertex.point[0]), vertex.point[1:]
        if alpha <= _LEAST:
            return np.inf
        # Near alpha = 0 the difference loses all digits.
        return max((vertex.cost - float(self.weights @ means**2)) / alpha**2, self.slope / alpha)

    def descend(self, start: Vertex, change: float = 1e-7) -> None:
        """Lower the ratio by linear programs: squares give way to their tangents, which they exceed.

        Each table is at least as good as the one before.
        """
        low, high = self.low, self.high
        vertex, ratio = start, self._ratio_of(start)
        for _ in range(_DESCENTS):
            prices = -2 * np.append(ratio, self.weights) * vertex.point
            found = self.lp.minimise(low, high, prices)
            if found is None:
                return
            self._add(found)
            self._offer(found)
            new = self._ratio_of(found)
            if not new < ratio * (1 - change):
                return
            vertex, ratio = found, new

    @property
    def target(self) -> float:
        """Boxes whose bound reaches this are settled."""
        loss = max(self.ratio - self.spread, _MARGIN * self.ratio)
        return self.ratio - _SHARE * self.tolerance * loss

    def _open(self, boxes: tuple[int, ...], least: float = 0.0) -> None:
        low, high = (np.array([ends[box] for box in boxes]) for ends in (self.tree.low, self.tree.high))
        bounds = np.maximum(self.pool.bounds(low, high).max(axis=1), least)
        self.open = np.append(self.open, np.array(boxes, dtype=np.intp))
        self.lower = np.append(self.lower, bounds)

    def _drop(self, kept: NDArray[np.bool_]) -> None:
        """Close boxes."""
        self.closed = min(self.closed, float(self.lower[~kept].min(initial=np.inf)))
        self.open, self.lower = self.open[kept], self.lower[kept]

    def run(self) -> None:
        """Treat the box of least bound until all are settled."""
        while True:
            self._drop(self.lower < self.target)
            reached = min(self.closed, float(self.lower.min(initial=np.inf)))
            self.watch.step(self.ratio - self.spread, min(self.ratio, reached) - self.spread)
            if not len(self.open):
                return
            if self.watch.expired:
                raise OutOfTimeError(None)
            self._treat(int(np.argmin(self.lower)))

    def _treat(self, k: int) -> None:
        """Bound a box by its linear program, and split it if that does not settle it."""
        box = int(self.open[k])
        low, high = self.tree.low[box], self.tree.high[box]
        errors = np.append(self.ratio, self.weights)
        found = self.lp.minimise(low, high, -errors * (low + high), self.bases.pop(box, None))
        at = (low + high) / 2
        chord = errors * (high - low) ** 2 / 4
        if found is None:
            basis, found = None, self.lp.nearest(low, high)
        else:
            basis, before = self.lp.basis(), self.ratio
            self._offer(found)
            error = errors * (high - found.point) * (found.point - low)
            if error.max() >= _MINOR * chord.max():
                at, chord = found.point, error
            if self.ratio < before * (1 - 1e-4):
                self.descend(found)
        if found is not None:
            self._add(found)
            self._tighten()
        if self.lower[k] < self.target:
            self._split(k, int(np.argmax(chord)), at, basis)

    def _tighten(self) -> None:
        """Apply the newest cut to all open boxes."""
        low, high = (np.array([ends[box] for box in self.open]) for ends in (self.tree.low, self.tree.high))
        self.lower = np.maximum(self.lower, self.pool.bounds(low, high, last=1)[:, 0])

    def _split(self, k: int, coordinate: int, at: Array, basis: Basis | None) -> None:
        box, least = int(self.open[k]), float(self.lower[k])
        low, high = self.tree.low[box][coordinate], self.tree.high[box][coordinate]
        kept = np.arange(len(self.open)) != k
        if high - low <= _THIN * self.width[coordinate]:
            self.notes.append("a box became too thin to be split")
            self._drop(kept)
            return
        edge = _EDGE * (high - low)
        parts = self.tree.split(box, coordinate, float(np.clip(at[coordinate], low + edge, high - edge)))
        self.open, self.lower = self.open[kept], self.lower[kept]
        self._open(parts, least)
        if basis is not None:
            self.bases |= dict.fromkeys(parts, basis)

    def solution(self) -> DebiasedSolution:
        """The best table, exact, with the proof of its quality."""
        problem = self.problem
        self.lp.watch = Watch()
        exact = self._exact()
        alpha, masses = exact.extra[0], exact.extra[1 : 1 + problem.values]
        rows = [[Fraction(n, exact.denominator) for n in row] for row in exact.numerators]
        value = debiased_loss(problem, rows, alpha)
        aim = float(value) * (1 - (1 + _SHARE) / 2 * self.tolerance) + self.spread
        tree, kept = self.tree.proof(self.pool, self.slope, aim)
        cuts = tuple(self.cuts[k] for k in kept)
        if self.ratio - self.spread < _MARGIN * self.ratio:
            self.notes.append("the loss is so small that its bound is sharp against the spread of the targets only")
        law = problem.law or ((),) * len(problem.weights)
        shifts = tuple(sum((b * c for b, c in zip(masses, row, strict=True)), Fraction(0)) for row in law)
        return DebiasedSolution(
            alpha=alpha,
            masses=masses,
            shifts=shifts,
            exact=exact,
            value=value,
            cuts=cuts,
            tree=tree,
            iterations=self.watch.iterations,
            seconds=self.watch.seconds,
            notes=tuple(dict.fromkeys(self.notes)),
        )

    def _exact(self) -> ExactTable:
        """The best table with a short scale if one is near enough, else with the scale that rounding gives."""
        assert self.best is not None
        best = self.best
        for alpha in self._scales(float(best.point[0])):
            low, high = self.low.copy(), self.high.copy()
            low[0] = high[0] = float(alpha)
            prices = np.append(0.0, -2 * self.weights * best.point[1:])
            found = self.lp.minimise(low, high, prices)
            if found is None or self._ratio_of(found) > self.ratio * (1 + 10 * self._fineness):
                continue
            try:
                return repair_affine(self.problem.program((alpha, alpha)), found.table, found.scalars)
            except SolverError:
                continue
        return repair_affine(self.problem.program(), best.table, best.scalars)

    @property
    def _fineness(self) -> float:
        """The relative change of alpha that is allowed for the sake of a short fraction."""
        return min(1e-6, self.tolerance / 100)

    def _scales(self, alpha: float) -> Iterator[Fraction]:
        """Ends of the range if alpha is there, then short fractions just below and above it."""
        low, high = self.problem.alpha
        step = Fraction(alpha * self._fineness)
        yield from (end for end in (low, high) if end and abs(end - Fraction(alpha)) <= step)
        exact = Fraction(alpha)
        for near, far in ((exact - step, exact - step / 100), (exact + step / 100, exact + step)):
            short = simplest(near, far)
            if low <= short <= high:
                yield short


def simplest(low: Fraction, high: Fraction) -> Fraction:
    """The fraction of least denominator in [low, high], 0 < low <= high."""
    whole = -(-low.numerator // low.denominator)
    if whole <= high:
        return Fraction(whole)
    below = whole - 1
    return below + 1 / simplest(1 / (high - below), 1 / (low - below))
