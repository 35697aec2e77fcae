"""Exact tables: float solutions repaired to integers that meet every ratio, and the check of it (notes/tables.md).

All ratios are rounded down (`ratio_down`), so what passes here is private in exact arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from privspec.solvers.programs import Array
from privspec.solvers.table_programs import (
    AtomRatio,
    CompleteRatio,
    Entries,
    ExactTable,
    LinearRows,
    PairRatio,
    Privacy,
    TableProgram,
)
from privspec.solvers.table_ratios import RATIO_BITS, classes, merged, pair_ratios, ratio_down

ENTRY_BITS = 62
"""Tables are first rounded to multiples of 2^-ENTRY_BITS."""
_MOST_SWEEPS = 10_000


@dataclass(frozen=True, eq=False, slots=True)
class Violation:
    """A constraint that a table does not meet: row, sign, ratio, equality, inequality or range; `where` its indices."""

    kind: str
    where: tuple[int, ...]


def violations(program: TableProgram, exact: ExactTable) -> list[Violation]:
    """Every constraint of the program that the table violates in exact arithmetic, each pair once; none when valid."""
    table = np.array(exact.numerators, dtype=object)
    found = [Violation("row", (x,)) for x, row in enumerate(table) if sum(row) != exact.denominator]
    found += [Violation("sign", (int(x), int(y))) for x, y in np.argwhere(table < 0)]
    for number, block in enumerate(program.privacy):
        shown = merged(block, table)
        found += [Violation("ratio", (number, *where)) for where in _ratio_violations(block, shown, exact.denominator)]
    for kind, rows in (("equality", program.equalities), ("inequality", program.inequalities)):
        gaps = [bound - value for value, bound in zip(_row_values(rows, exact), rows.bounds, strict=True)]
        found += [Violation(kind, (k,)) for k, gap in enumerate(gaps) if gap < 0 or (gap and kind == "equality")]
    ranges = zip(program.extra.lower, exact.extra, program.extra.upper, strict=True)
    return found + [Violation("range", (k,)) for k, (low, value, high) in enumerate(ranges) if not low <= value <= high]


def _ratio_violations(block: Privacy, shown: Entries, total: int) -> Iterable[tuple[int, ...]]:
    if isinstance(block, CompleteRatio):
        low, high = shown.min(axis=0), shown.max(axis=0)
        return [(int(y),) for y in np.flatnonzero((high << RATIO_BITS) > ratio_down(block.log_ratio) * low)]
    ratios = pair_ratios(block)
    found = []
    for number, (a, b) in enumerate(block.pairs):
        excess = (shown[a] << RATIO_BITS) - ratios[number] * shown[b]
        if isinstance(block, AtomRatio):
            spent, allowed = max(0, *excess), block.slack
        else:
            spent, allowed = sum(np.maximum(excess, 0)), block.delta
        if spent * allowed.denominator > (allowed.numerator * total) << RATIO_BITS:
            found.append((number,))
    return found


def _row_values(rows: LinearRows, exact: ExactTable) -> list[Fraction]:
    entries = [entry for row in exact.numerators for entry in row]
    values = [Fraction(0)] * len(rows.bounds)
    for row, column, value in zip(rows.rows, rows.columns, rows.values, strict=True):
        inside = column < len(entries)
        amount = Fraction(entries[column], exact.denominator) if inside else exact.extra[column - len(entries)]
        values[row] += value * amount
    return values


def exact_loss(program: TableProgram, exact: ExactTable, cost: Entries | None = None) -> Fraction:
    """The loss of the table; `cost` (X, Y) of Fractions replaces the floats of the program (which are read exactly)."""
    scale, costs = _scaled(program.cost) if cost is None else _common(cost)
    rows = [
        sum(c * n for c, n in zip(row, numerators, strict=True) if n and c)
        for row, numerators in zip(costs, exact.numerators, strict=True)
    ]
    loss = Fraction(max(rows) if program.worst else sum(rows)) / (scale * exact.denominator)
    return loss + sum(
        (price * value for price, value in zip(program.extra.cost, exact.extra, strict=True)), Fraction(0)
    )


def _common(cost: Entries) -> tuple[int, list[list[int]]]:
    """Fractions as integers over one denominator."""
    scale = math.lcm(*{c.denominator for row in cost for c in row})
    return scale, [[c.numerator * (scale // c.denominator) for c in row] for row in cost]


def _scaled(cost: Array) -> tuple[int, list[list[int]]]:
    """Floats as integers over one power of two, exactly."""
    _, exponents = np.frexp(cost[cost != 0]) if cost.any() else (None, np.zeros(1))
    shift = max(0, 53 - int(exponents.min()))
    return 1 << shift, [
        [int(math.ldexp(c, shift)) if shift < 900 else int(Fraction(c) * (1 << shift)) for c in row]
        for row in cost.tolist()
    ]


def true_delta(exact: ExactTable, block: PairRatio | AtomRatio) -> Fraction:
    """The least delta, rounded up, with which the table is (eps, delta) private for the pairs of the block."""
    shown = merged(block, np.array(exact.numerators, dtype=object))
    ratios = pair_ratios(block)
    spent = max(
        sum(np.maximum((shown[a] << RATIO_BITS) - ratios[k] * shown[b], 0)) for k, (a, b) in enumerate(block.pairs)
    )
    return Fraction(spent, exact.denominator << RATIO_BITS)


def repair(program: TableProgram, table: Array) -> ExactTable:
    """Integers near a float table that meet every ratio, for a program without linear rows.

    Each entry rises to what the ratios ask for; one column is then padded so that all rows have the same sum.
    Raises: ArithmeticError when a ratio of one with a delta leaves no room (mix with a constant table then).
    """
    scaled = np.maximum(table, 0.0) / np.maximum(table, 0.0).sum(axis=1, keepdims=True)
    entries = np.array([[int(v * 2.0**ENTRY_BITS) for v in row] for row in scaled], dtype=object)
    least_sum = min(int(sum(row)) for row in entries)
    slacks = [_slacks(block, scaled, least_sum) for block in program.privacy]
    for sweep in range(_MOST_SWEEPS):
        before = entries.copy()
        for block, slack in zip(program.privacy, slacks, strict=True):
            _sweep(block, entries, slack, backwards=sweep % 2 == 1)
        if np.array_equal(before, entries):
            break
    sums = entries.sum(axis=1)
    missing = sums.max() - sums
    level = max((_padding(block, missing) for block in program.privacy), default=0)
    pad = missing + level
    column = int(np.argmin(program.cost.T @ (pad.astype(float) + 1.0)))
    entries[:, column] += pad
    return ExactTable(tuple(tuple(int(n) for n in row) for row in entries), int(sums.max() + level))


def _slacks(block: Privacy, table: Array, least_sum: int) -> Entries | None:
    """Integer slacks (K, seen) within the budget of each pair, in proportion to what the float table uses."""
    if isinstance(block, CompleteRatio) or (isinstance(block, PairRatio) and block.delta == 0):
        return None
    shown = table @ np.eye(int(classes(block, table.shape[1]).max()) + 1)[classes(block, table.shape[1])]
    ratios = np.array([float(r) for r in pair_ratios(block)]) / 2.0**RATIO_BITS
    used = np.maximum(shown[block.pairs[:, 0]] - ratios[:, None] * shown[block.pairs[:, 1]], 0.0)
    if isinstance(block, AtomRatio):
        most = block.slack.numerator * least_sum // block.slack.denominator
        return np.full(used.shape, most, dtype=object)
    # Padding spends delta only where the ratio is one; a share of 2^-40 is kept for it.
    budget = block.delta.numerator * least_sum // block.delta.denominator
    budget -= budget >> 40
    result: Entries = np.zeros(used.shape, dtype=object)
    for k, row in enumerate(used):
        integers = [int(v * 2.0**ENTRY_BITS) for v in row]
        total = sum(integers)
        shrink = total > budget
        result[k] = [v * budget // total for v in integers] if shrink else integers
    return result


def _sweep(block: Privacy, entries: Entries, slack: Entries | None, backwards: bool) -> None:
    """Raise entries to what each ratio of the block asks for, once round; both directions settle a chain at once."""
    view = classes(block, entries.shape[1])
    first = np.array([int(np.flatnonzero(view == shown)[0]) for shown in range(int(view.max()) + 1)])
    if isinstance(block, CompleteRatio):
        shown = merged(block, entries)
        needed = -((-shown.max(axis=0) << RATIO_BITS) // ratio_down(block.log_ratio))
        entries[:, first] += np.maximum(needed - shown, 0)
        return
    ratios = pair_ratios(block)
    numbers = range(len(block.pairs))
    for k in reversed(numbers) if backwards else numbers:
        a, b = block.pairs[k]
        above, below = _seen_rows(block, entries, a, b)
        asked = above if slack is None else np.maximum(above - slack[k], 0)
        entries[b, first] += np.maximum(-((-asked << RATIO_BITS) // ratios[k]) - below, 0)


def _seen_rows(block: PairRatio | AtomRatio, entries: Entries, a: int, b: int) -> tuple[Entries, Entries]:
    if block.view is None:
        return entries[a], entries[b]
    two = merged(block, entries[[a, b]])
    return two[0], two[1]


def _padding(block: Privacy, missing: Entries) -> int:
    """The least level L >= 0 for which missing + L meets the ratios of the block."""
    if isinstance(block, CompleteRatio):
        numerator, spare = int(missing.max()), ratio_down(block.log_ratio) - (1 << RATIO_BITS)
        low = int(missing.min())
        needed = (numerator << RATIO_BITS) - ratio_down(block.log_ratio) * low
        return _level(needed, spare)
    ratios = pair_ratios(block)
    first, second = block.pairs.T
    needed_all = (missing[first] << RATIO_BITS) - ratios * missing[second]
    return max((_level(int(n), int(r) - (1 << RATIO_BITS)) for n, r in zip(needed_all, ratios, strict=True)), default=0)


def _level(needed: int, spare: int) -> int:
    if needed <= 0 or spare == 0:
        return 0
    return -(-needed // spare)
