"""Certified lower bounds on the loss of any private table, from the multipliers of a float solution (notes/tables.md).

Multipliers are clipped to their signs and read as exact integers over 2^-BITS; ratios are rounded up, sums down. By
weak duality the result bounds the loss of every table of the program, however poor the multipliers are.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import singledispatchmethod

import numpy as np
from privspec.solvers.programs import Array
from privspec.solvers.table_programs import (
    RATIO_BITS,
    AtomRatio,
    CompleteDual,
    CompleteRatio,
    Entries,
    LinearRows,
    PairDual,
    PairRatio,
    TableDual,
    TableProgram,
    classes,
    pair_ratios,
    ratio_up,
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
        least = [
            int(p.sum()) - _up(int(q.sum()) * ratio_up(block.log_ratio)) for p, q in zip(below.T, above.T, strict=True)
        ]
        self.constant += min(0, *least)

    @subtract.register(PairRatio)
    @subtract.register(AtomRatio)
    def _(self, block: PairRatio | AtomRatio, dual: PairDual) -> None:
        ratios = pair_ratios(block, up=True)
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
        spent = block.slack * total if isinstance(block, AtomRatio) else block.delta * sum(largest.values())
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
