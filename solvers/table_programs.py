"""Tables of probabilities as programs: the ratios that they keep, and their repair to exact rationals.

Finite mechanisms as plain data: the linear programs over tables Pr(output | input).

Unknown is a row-stochastic table `f` (X, Y), and further scalars `w` (k,) in given ranges. Minimise
`sum c_xy f_xy + sum g_k w_k`, or `max_x sum_y c_xy f_xy + sum g_k w_k`, subject to privacy blocks and linear rows.
Ratios are `e^log_ratio` with an exact `log_ratio`; a `view` (Y,) merges the columns that an observer cannot
tell apart (`view[y]` is what is seen, numbered from 0). Columns of linear rows: x * Y + y for f_xy, X * Y + k for w_k.

Exact bounds on e^epsilon, and small exact helpers that the modules on tables share.

Exact tables: float solutions repaired to integers that meet every ratio, and the check of it (notes/tables.md).

All ratios are rounded down (`ratio_down`), so what passes here is private in exact arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from privspec.solvers.programs import Array, Indices
from privspec.solvers.table_divergences import CurveDual, CurveRatio


@dataclass(frozen=True, eq=False, slots=True)
class CompleteRatio:
    """f_ay <= e^log_ratio f_by for all inputs a, b: pure differential privacy when every two inputs are neighbours."""

    log_ratio: Fraction
    view: Indices | None = None


@dataclass(frozen=True, eq=False, slots=True)
class PairRatio:
    """f_a(S) <= e^log_ratio f_b(S) + delta for every set S of outputs and each ordered pair (a, b).

    `pairs` (K, 2); `log_ratios` of length K, or of length 1 when the pairs share it; one `delta` for each pair. With a
    `slack` and no delta: f_ay <= e^log_ratio f_by + slack for each single output y (Ramon & Basu 3.3, slack =
    delta / |X|), which does not bound the delta of sets of outputs.
    """

    pairs: Indices
    log_ratios: tuple[Fraction, ...]
    delta: Fraction = Fraction(0)
    view: Indices | None = None
    slack: Fraction = Fraction(0)

    @property
    def pure(self) -> bool:
        """Whether it bounds ratios and nothing else."""
        return not (self.delta or self.slack)


Privacy: TypeAlias = CompleteRatio | PairRatio | CurveRatio
"""One privacy requirement as one observer sees it."""


def log_ratio_of(block: PairRatio, pair: int) -> Fraction:
    """The exact logarithm of the ratio allowed for the pair with this number."""
    return block.log_ratios[0] if len(block.log_ratios) == 1 else block.log_ratios[pair]


@dataclass(frozen=True, eq=False, slots=True)
class LinearRows:
    """Exact sparse rows: sum of `values` at (`rows`, `columns`) equals, or is at most, `bounds` (one for each row)."""

    rows: Indices
    columns: Indices
    values: tuple[Fraction, ...]
    bounds: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        """Refuse parts of different lengths."""
        if not len(self.rows) == len(self.columns) == len(self.values):
            raise ValueError("rows, columns and values must have the same length")

    @classmethod
    def of(cls, rows: Sequence[tuple[Mapping[int, Fraction], Fraction]]) -> LinearRows:
        """Values by column, and a bound, for each row."""
        cells = [(k, column, value) for k, (row, _) in enumerate(rows) for column, value in row.items() if value]
        at, where = (np.array([cell[part] for cell in cells], dtype=np.intp) for part in (0, 1))
        return cls(at, where, tuple(cell[2] for cell in cells), tuple(bound for _, bound in rows))


def no_rows() -> LinearRows:
    """An empty set of rows."""
    return LinearRows.of(())


@dataclass(frozen=True, eq=False, slots=True)
class Extra:
    """Further scalars of the program: finite ranges `lower` <= w <= `upper` and costs, each of length k."""

    lower: tuple[Fraction, ...] = ()
    upper: tuple[Fraction, ...] = ()
    cost: tuple[Fraction, ...] = ()
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        """The number of scalars."""
        return len(self.lower)


@dataclass(frozen=True, eq=False, slots=True)
class TableProgram:
    """The whole program. `cost` (X, Y) holds the prior already when the loss is expected (`worst` False)."""

    cost: Array
    privacy: tuple[Privacy, ...]
    worst: bool = False
    equalities: LinearRows = field(default_factory=no_rows)
    inequalities: LinearRows = field(default_factory=no_rows)
    extra: Extra = field(default_factory=Extra)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of inputs and of outputs."""
        return self.cost.shape[0], self.cost.shape[1]

    @property
    def plain(self) -> bool:
        """Whether privacy and row sums are the only constraints."""
        return not (self.equalities.bounds or self.inequalities.bounds or len(self.extra))


@dataclass(frozen=True, eq=False, slots=True)
class CompleteDual:
    """Multipliers >= 0 of m_y <= f_xy (`below`) and f_xy <= R m_y (`above`), each (X, seen outputs)."""

    below: Array
    above: Array

    @property
    def largest(self) -> Array:
        """Numbers that are 0 where no multiplier is above it."""
        return self.above

    def scaled(self, factor: float) -> CompleteDual:
        """All of them times a factor."""
        return CompleteDual(self.below * factor, self.above * factor)


@dataclass(frozen=True, eq=False, slots=True)
class PairDual:
    """Multipliers `values` >= 0 of f_ay <= R f_by + slack, for pair number `pairs` and seen output `columns`."""

    pairs: Indices
    columns: Indices
    values: Array

    @property
    def largest(self) -> Array:
        """The multipliers."""
        return self.values

    def scaled(self, factor: float) -> PairDual:
        """All of them times a factor."""
        return replace(self, values=self.values * factor)


@dataclass(frozen=True, eq=False, slots=True)
class TableDual:
    """What proves a lower bound: multipliers for each privacy block and linear row.

    `equalities` of any sign, `inequalities` >= 0, `loss_weights` (X,) >= 0 summing to 1 for a worst-case loss. The
    multipliers of the row sums follow from these by weak duality (notes/tables.md).
    """

    privacy: tuple[CompleteDual | PairDual | CurveDual, ...]
    equalities: Array
    inequalities: Array
    loss_weights: Array | None = None

    def scaled(self, privacy: float, lines: float) -> TableDual:
        """The multipliers of privacy and of linear rows times two factors."""
        parts = tuple(part.scaled(privacy) for part in self.privacy)
        return TableDual(parts, self.equalities * lines, self.inequalities * lines, self.loss_weights)


@dataclass(frozen=True, eq=False, slots=True)
class ExactTable:
    """Pr(y | x) = numerators[x][y] / denominator exactly, with the exact values of the further scalars."""

    numerators: tuple[tuple[int, ...], ...]
    denominator: int
    extra: tuple[Fraction, ...] = ()

    def to_array(self) -> Array:
        """The table in floats, each entry rounded to the nearest (X, Y)."""
        return np.array([[entry / self.denominator for entry in row] for row in self.numerators], dtype=float)


@dataclass(frozen=True, eq=False)
class TableSolution:
    """A mechanism with the multipliers that prove its quality.

    `table` (X, Y) and `optimum` are the float solution; `make` finds an exact table next to it, when it is first asked
    for, and raises SolverError where none is near. `cost` (X, Y) are the exact costs that those of the program round.
    """

    program: TableProgram
    table: Array
    optimum: float
    make: Callable[[], ExactTable]
    dual: TableDual
    method: str
    rows: int
    iterations: int
    seconds: float
    notes: tuple[str, ...] = ()
    cost: Entries | None = None

    @cached_property
    def exact(self) -> ExactTable:
        """The mechanism that is used."""
        return self.make()

    @cached_property
    def value(self) -> Fraction:
        """Its exact loss."""
        return exact_loss(self.program, self.exact, self.cost)


@dataclass(frozen=True, eq=False, slots=True)
class InfeasibleTable:
    """No table meets the constraints: those named here conflict (with the rows summing to one).

    `privacy`, `equalities`, `inequalities` are indices into the program; `shortfall` is the least total violation of
    the linear rows.
    """

    privacy: tuple[int, ...]
    equalities: tuple[int, ...]
    inequalities: tuple[int, ...]
    shortfall: float


Entries: TypeAlias = NDArray[np.object_]
"""Exact entries: python integers or Fractions in a numpy array."""


RATIO_BITS = 64
"""Ratios are rounded to multiples of 2^-RATIO_BITS."""


@lru_cache(maxsize=100_000)
def ratio_bounds(log_ratio: Fraction) -> tuple[int, int]:
    """Integers lo, hi with lo / 2^64 <= e^log_ratio <= hi / 2^64, each the nearest: the one rounds down, the other up.

    Source: ball arithmetic (flint); `floor(math.exp(eps) 2^64)` is too large in half of all cases.
    """
    if log_ratio == 0:
        return 1 << RATIO_BITS, 1 << RATIO_BITS
    import flint

    precision = 2 * RATIO_BITS + max(0, int(2 * log_ratio))
    while True:
        with flint.ctx.workprec(precision):
            scaled = (
                flint.arb(flint.fmpq(log_ratio.numerator, log_ratio.denominator)).exp() * flint.arb(2) ** RATIO_BITS
            )
            low = scaled.floor().unique_fmpz()
        if low is not None:
            # e^q is irrational for rational q other than 0, so the ceiling is the next integer.
            return int(low), int(low) + 1
        precision *= 2


def ratio_down(log_ratio: Fraction) -> int:
    """floor(e^log_ratio 2^64), what privacy is checked with."""
    return ratio_bounds(log_ratio)[0]


def float_ratio(log_ratio: Fraction) -> float:
    """The lower bound on e^log_ratio as a float, for linear programs."""
    return float(ratio_down(log_ratio) / 2**RATIO_BITS)


def pair_ratios(block: PairRatio) -> Entries:
    """The integer ratio of each pair (K,), over 2^64, rounded down."""
    return np.array([ratio_down(log_ratio_of(block, k)) for k in range(len(block.pairs))], dtype=object)


def float_ratios(block: PairRatio) -> Array:
    """The ratios of a block as floats (K,)."""
    return np.asarray([float_ratio(log_ratio_of(block, k)) for k in range(len(block.pairs))], dtype=float)


def classes(block: Privacy, columns: int) -> Indices:
    """What the observer of the block sees for each output (Y,)."""
    return np.arange(columns, dtype=np.intp) if block.view is None else block.view


def seen(block: Privacy, columns: int) -> int:
    """How many outputs the observer of the block can tell apart."""
    return columns if block.view is None else int(block.view.max()) + 1


def merged(block: Privacy, table: Entries) -> Entries:
    """Exact table of the outputs that the observer of the block sees (X, seen)."""
    if block.view is None:
        return table
    result: Entries = np.zeros((table.shape[0], seen(block, table.shape[1])), dtype=object)
    for column, shown in enumerate(block.view):
        result[:, shown] += table[:, column]
    return result


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
    return list(_violated(program, exact))


def valid(program: TableProgram, exact: ExactTable) -> bool:
    """Whether the table violates no constraint."""
    return next(_violated(program, exact), None) is None


def _violated(program: TableProgram, exact: ExactTable) -> Iterator[Violation]:
    table = np.array(exact.numerators, dtype=object)
    yield from (Violation("row", (x,)) for x, row in enumerate(table) if sum(row) != exact.denominator)
    yield from (Violation("sign", (int(x), int(y))) for x, y in np.argwhere(table < 0))
    for number, block in enumerate(program.privacy):
        broken = _ratio_violations(block, merged(block, table), exact.denominator)
        yield from (Violation("ratio", (number, *where)) for where in broken)
    for kind, rows in (("equality", program.equalities), ("inequality", program.inequalities)):
        gaps = [bound - value for value, bound in zip(_row_values(rows, exact), rows.bounds, strict=True)]
        yield from (Violation(kind, (k,)) for k, gap in enumerate(gaps) if gap < 0 or (gap and kind == "equality"))
    ranges = zip(program.extra.lower, exact.extra, program.extra.upper, strict=True)
    yield from (Violation("range", (k,)) for k, (low, value, high) in enumerate(ranges) if not low <= value <= high)


def _ratio_violations(block: Privacy, shown: Entries, total: int) -> Iterator[tuple[int, ...]]:
    if isinstance(block, CompleteRatio):
        low, high = shown.min(axis=0), shown.max(axis=0)
        yield from ((int(y),) for y in np.flatnonzero((high << RATIO_BITS) > ratio_down(block.log_ratio) * low))
        return
    if isinstance(block, CurveRatio):
        yield from ((k,) for k in block.broken(shown, total))
        return
    ratios = pair_ratios(block)
    for number, (a, b) in enumerate(block.pairs):
        excess = (shown[a] << RATIO_BITS) - ratios[number] * shown[b]
        if block.slack:
            spent, allowed = max(0, *excess), block.slack
        else:
            spent, allowed = sum(np.maximum(excess, 0)), block.delta
        if spent * allowed.denominator > (allowed.numerator * total) << RATIO_BITS:
            yield (number,)


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
    if isinstance(block, CompleteRatio) or (isinstance(block, PairRatio) and block.pure):
        return None
    assert not isinstance(block, CurveRatio)
    shown = table @ np.eye(int(classes(block, table.shape[1]).max()) + 1)[classes(block, table.shape[1])]
    ratios = np.array([float(r) for r in pair_ratios(block)]) / 2.0**RATIO_BITS
    used = np.maximum(shown[block.pairs[:, 0]] - ratios[:, None] * shown[block.pairs[:, 1]], 0.0)
    if block.slack:
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
    assert not isinstance(block, CurveRatio)
    ratios = pair_ratios(block)
    numbers = range(len(block.pairs))
    for k in reversed(numbers) if backwards else numbers:
        a, b = block.pairs[k]
        above, below = _seen_rows(block, entries, a, b)
        asked = above if slack is None else np.maximum(above - slack[k], 0)
        entries[b, first] += np.maximum(-((-asked << RATIO_BITS) // ratios[k]) - below, 0)


def _seen_rows(block: PairRatio, entries: Entries, a: int, b: int) -> tuple[Entries, Entries]:
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
    assert not isinstance(block, CurveRatio)
    ratios = pair_ratios(block)
    first, second = block.pairs.T
    needed_all = (missing[first] << RATIO_BITS) - ratios * missing[second]
    return max((_level(int(n), int(r) - (1 << RATIO_BITS)) for n, r in zip(needed_all, ratios, strict=True)), default=0)


def _level(needed: int, spare: int) -> int:
    if needed <= 0 or spare == 0:
        return 0
    return -(-needed // spare)
