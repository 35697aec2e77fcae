"""Lower bounds on the loss of any private table in exact arithmetic: what the kernel says, said another way.

Multipliers are clipped to their signs and read as exact integers over 2^-BITS; ratios are rounded up, sums down. By
weak duality the result bounds the loss of every table of the program, however poor the multipliers are. A tree of boxes
bounds the loss of debiased estimates for every scale and background (notes/debiased.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import singledispatchmethod

import numpy as np
from privspec.solvers.programs import Array
from privspec.solvers.table_programs import (
    RATIO_BITS,
    CompleteDual,
    CompleteRatio,
    Entries,
    LinearRows,
    PairDual,
    PairRatio,
    TableDual,
    TableProgram,
    TableSolution,
    classes,
    log_ratio_of,
    ratio_bounds,
)
from privspec.solvers.table_search_programs import (
    DebiasedProgram,
    DebiasedSolution,
    SearchCut,
    SearchSplit,
    SearchTree,
    slope,
)

BITS = 100


def certified_bound(program: TableProgram, dual: TableDual, cost: Entries | None = None) -> Fraction:
    """A lower bound on the loss of every table that meets the constraints of the program.

    Args: cost (X, Y) of Fractions replaces the floats of the program (which are read exactly).
    Raises: ValueError if a worst-case loss comes without loss weights.
    """
    return _Lagrangian(program, dual, program.cost if cost is None else cost).value()


def affine_bound(
    program: TableProgram, dual: TableDual, cost: Entries | None = None
) -> tuple[Fraction, tuple[Fraction, ...]]:
    """A constant and one price for each further scalar: no table has a loss below constant + sum of prices * scalars.

    Unlike in `certified_bound` the ranges of the scalars are not used. Args and Raises as there.
    """
    return _Lagrangian(program, dual, program.cost if cost is None else cost).affine()


def _integers(values: Array) -> Entries:
    """floor(v 2^BITS) of floats."""
    flat = [math.floor(math.ldexp(v, BITS)) for v in values.ravel().tolist()]
    return np.array(flat, dtype=object).reshape(values.shape)


def _up(value: int) -> int:
    """Ceil(value / 2^RATIO_BITS)."""
    return -(-value >> RATIO_BITS)


class _Lagrangian:
    """Reduced costs of the entries and of the further scalars, as integers over 2^-BITS rounded down."""

    def __init__(self, program: TableProgram, dual: TableDual, cost: Entries | Array) -> None:
        self.program = program
        self.constant = 0
        self.reduced = self._costs(dual, cost)
        self.extra = [price * (1 << BITS) for price in program.extra.cost]
        for block, multipliers in zip(program.privacy, dual.privacy, strict=True):
            self.subtract(block, multipliers)
        self._rows(program.equalities, [-u for u in _integers(dual.equalities)])
        self._rows(program.inequalities, [max(0, v) for v in _integers(dual.inequalities)])

    def _costs(self, dual: TableDual, cost: Entries | Array) -> Entries:
        scaled: Entries = np.empty(self.program.shape, dtype=object)
        if cost.dtype == object:
            for x, row in enumerate(cost):
                scaled[x] = [(c.numerator << BITS) // c.denominator for c in row]
        else:
            scaled = _integers(np.asarray(cost, dtype=float))
        if not self.program.worst:
            return scaled
        if dual.loss_weights is None:
            raise ValueError("a worst-case loss needs loss weights")
        weights = _integers(np.maximum(dual.loss_weights, 0.0))
        # Weights of a convex combination: they must sum to one exactly.
        weights = np.array([(w << BITS) // int(weights.sum()) for w in weights], dtype=object)
        weights[int(np.argmax(dual.loss_weights))] += (1 << BITS) - int(weights.sum())
        result: Entries = (scaled * weights[:, None]) >> BITS
        return result

    @singledispatchmethod
    def subtract(self, block: object, dual: CompleteDual | PairDual) -> None:
        """Add the multipliers of a privacy block."""
        raise TypeError(f"no bound for {type(block).__name__}")

    @subtract.register
    def _(self, block: CompleteRatio, dual: CompleteDual) -> None:
        below, above = (_integers(np.maximum(part, 0.0)) for part in (dual.below, dual.above))
        view = classes(block, self.program.shape[1])
        self.reduced += (above - below)[:, view]
        # The minima m_y are free: their reduced costs must not be negative, and they sum to at most one.
        ratio = ratio_bounds(block.log_ratio)[1]
        least = [int(p.sum()) - _up(int(q.sum()) * ratio) for p, q in zip(below.T, above.T, strict=True)]
        self.constant += min(0, *least)

    @subtract.register
    def _(self, block: PairRatio, dual: PairDual) -> None:
        ratios = [ratio_bounds(log_ratio_of(block, k))[1] for k in range(len(block.pairs))]
        view = classes(block, self.program.shape[1])
        members = [np.flatnonzero(view == shown) for shown in range(int(view.max()) + 1)]
        largest: dict[int, int] = {}
        values = _integers(np.maximum(dual.values, 0.0))
        total = 0
        for k, shown, z in zip(dual.pairs, dual.columns, values, strict=True):
            a, b = block.pairs[k]
            down = _up(z * ratios[k])
            for y in members[shown]:
                self.reduced[a, y] += z
                self.reduced[b, y] -= down
            largest[k] = max(largest.get(k, 0), z)
            total += z
        spent = block.slack * total + block.delta * sum(largest.values())
        self.constant += _floor(-spent)

    def _rows(self, rows: LinearRows, multipliers: list[int]) -> None:
        """Add `multipliers` times (row - bound)."""
        outputs = self.program.shape[1]
        entries = self.reduced.size
        common = math.lcm(*(value.denominator for value in rows.values))
        extra = [0] * len(self.extra)
        for row, column, value in zip(rows.rows.tolist(), rows.columns.tolist(), rows.values, strict=True):
            if column < entries:
                self.reduced[divmod(column, outputs)] += multipliers[row] * value.numerator // value.denominator
            else:
                # Ranges of the scalars may reach below zero: their reduced costs must stay exact.
                extra[column - entries] += multipliers[row] * (value.numerator * (common // value.denominator))
        self.extra = [price + Fraction(more, common) for price, more in zip(self.extra, extra, strict=True)]
        self.constant += _floor(
            -sum((m * bound for m, bound in zip(multipliers, rows.bounds, strict=True)), Fraction(0))
        )

    def affine(self) -> tuple[Fraction, tuple[Fraction, ...]]:
        """The least over row-stochastic tables, and the prices of the scalars."""
        least = self.constant + sum(int(row.min()) for row in self.reduced)
        return Fraction(least, 1 << BITS), tuple(price / (1 << BITS) for price in self.extra)

    def value(self) -> Fraction:
        """The least of the Lagrangian over row-stochastic tables and the ranges of the scalars."""
        total, prices = self.affine()
        for price, low, high in zip(prices, self.program.extra.lower, self.program.extra.upper, strict=True):
            total += min(price * low, price * high)
        return total


def _floor(value: Fraction) -> int:
    return value.numerator // value.denominator


@dataclass(frozen=True, slots=True)
class Minorant:
    """constant + slopes . (alpha, free means): below the cost of every table, or at most 0 where `empty`."""

    constant: Fraction
    slopes: tuple[Fraction, ...]
    empty: bool


def affine_minorants(problem: DebiasedProgram, cuts: Sequence[SearchCut]) -> list[Minorant]:
    """The exact affine function that the multipliers of each cut prove."""
    program = problem.program()
    cost, nothing = problem.cost(), np.full(program.shape, Fraction(0), dtype=object)
    return [_minorant(problem, program, cut, nothing if cut.empty else cost) for cut in cuts]


def _minorant(problem: DebiasedProgram, program: TableProgram, cut: SearchCut, cost: Entries) -> Minorant:
    constant, prices = affine_bound(program, cut.dual, cost)
    scale, masses, means = prices[0], prices[1 : 1 + problem.values], prices[1 + problem.values :]
    # The masses are not negative and sum to m_0 + m_1 alpha.
    least = min(masses, default=Fraction(0))
    return Minorant(constant + least * problem.mass[0], (scale + least * problem.mass[1], *means), cut.empty)


@dataclass(frozen=True, slots=True)
class Box:
    """Closed ranges of alpha and the free means."""

    low: tuple[Fraction, ...]
    high: tuple[Fraction, ...]

    def halves(self, split: SearchSplit) -> tuple[Box, Box]:
        """The parts below and above the split."""
        at, k = Fraction(split.at), split.coordinate
        if not self.low[k] <= at <= self.high[k]:
            raise ValueError("a split must lie in its box")
        below = Box(self.low, (*self.high[:k], at, *self.high[k + 1 :]))
        return below, Box((*self.low[:k], at, *self.low[k + 1 :]), self.high)


def whole_box(problem: DebiasedProgram) -> Box:
    """The box of all alpha and means that any table can have."""
    ranges = (problem.alpha, *problem.range_of_means)
    return Box(tuple(low for low, _ in ranges), tuple(high for _, high in ranges))


def certified_search_bound(problem: DebiasedProgram, cuts: Sequence[SearchCut], tree: SearchTree) -> Fraction:
    """A lower bound on the loss of every table of the problem, for every alpha in its range; at least 0.

    Raises: ValueError if the tree is not one, or proves that no table exists.
    """
    minorants = affine_minorants(problem, cuts)
    nodes = iter(tree)
    bounds = list(_leaves(problem, minorants, whole_box(problem), nodes))
    if next(nodes, None) is not None:
        raise ValueError("the tree of boxes has too many nodes")
    finite = [bound for bound in bounds if bound is not None]
    if not finite:
        raise ValueError("the cuts exclude every table")
    # Variances are not negative.
    return max(Fraction(0), min(finite) - problem.spread)


def _leaves(
    problem: DebiasedProgram, minorants: Sequence[Minorant], root: Box, nodes: Iterator[SearchSplit | int]
) -> Iterator[Fraction | None]:
    stack = [root]
    while stack:
        box, node = stack.pop(), next(nodes, None)
        if node is None:
            raise ValueError("the tree of boxes has too few nodes")
        if isinstance(node, SearchSplit):
            stack.extend(reversed(box.halves(node)))
        elif node < 0:
            yield slope(problem) / box.high[0]
        else:
            yield ratio_bound(problem, minorants[node], box)


def ratio_bound(problem: DebiasedProgram, minorant: Minorant, box: Box) -> Fraction | None:
    """The least of loss + spread in a box as far as the minorant tells; None if it excludes the box."""
    scale, *means = minorant.slopes
    ends = list(zip(box.low, box.high, strict=True))
    if minorant.empty:
        total = minorant.constant + sum(min(s * a, s * b) for s, (a, b) in zip(minorant.slopes, ends, strict=True))
        return None if total > 0 else Fraction(0)
    constant = minorant.constant
    for k, price, (low, high) in zip(problem.means, means, ends[1:], strict=True):
        # Concave in each mean: least at an end.
        constant += min(price * end - problem.weights[k] * end * end for end in (low, high))
    return _least_ratio(constant, scale, *ends[0])


def _least_ratio(constant: Fraction, scale: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """The least of (constant + scale alpha) / alpha^2 for alpha in [low, high], 0 if it is not above zero."""
    if low == 0 and (constant < 0 or (constant == 0 and scale < 0)):
        return Fraction(0)
    ends = [1 / high] if low == 0 else [1 / high, 1 / low]
    least = min(constant * t * t + scale * t for t in ends)
    if constant > 0:
        turn = -scale / (2 * constant)
        if turn > ends[0] and (low == 0 or turn < ends[-1]):
            least = min(least, constant * turn * turn + scale * turn)
    return max(Fraction(0), least)


def bound_of(program: TableProgram, found: TableSolution, cost: Entries | None = None) -> Fraction:
    """What the multipliers of a solution prove: all of them, or without those of privacy, or of any line."""
    duals = (found.dual, found.dual.scaled(0, 1), found.dual.scaled(0, 0))
    return max(certified_bound(program, dual, cost) for dual in duals)


def search_bound_of(problem: DebiasedProgram, found: DebiasedSolution) -> Fraction:
    """What the cuts and the tree of a solution prove."""
    return certified_search_bound(problem, found.cuts, found.tree)


def relative_gap(value: Fraction, bound: Fraction) -> float:
    """(value - bound) / |value|."""
    return float((value - bound) / abs(value)) if value else 0.0


def largest_extra(program: TableProgram, index: int) -> TableProgram:
    """The program whose table has the largest value of one further scalar; its loss is minus that value."""
    costs = tuple(Fraction(-1 if k == index else 0) for k in range(len(program.extra)))
    extra = replace(program.extra, cost=costs)
    return replace(program, cost=np.zeros(program.shape), worst=False, extra=extra)
