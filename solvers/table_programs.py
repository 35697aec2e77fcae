"""Finite mechanisms as plain data: the linear programs over tables Pr(output | input).

Unknown is a row-stochastic table `f` (X, Y), and further scalars `w` (k,) in given ranges. Minimise
`sum c_xy f_xy + sum g_k w_k`, or `max_x sum_y c_xy f_xy + sum g_k w_k`, subject to privacy blocks and linear rows.
Ratios are `e^log_ratio` with an exact `log_ratio`; a `view` (Y,) merges the columns that an observer cannot
tell apart (`view[y]` is what is seen, numbered from 0). Columns of linear rows: x * Y + y for f_xy, X * Y + k for w_k.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from privspec.solvers.programs import Array
from privspec.solvers.results import Indices


@dataclass(frozen=True, eq=False, slots=True)
class CompleteRatio:
    """f_ay <= e^log_ratio f_by for all inputs a, b: pure differential privacy when every two inputs are neighbours."""

    log_ratio: Fraction
    view: Indices | None = None


@dataclass(frozen=True, eq=False, slots=True)
class PairRatio:
    """f_a(S) <= e^log_ratio f_b(S) + delta for every set S of outputs and each ordered pair (a, b).

    `pairs` (K, 2); `log_ratios` of length K, or of length 1 when the pairs share it; one `delta` for each pair.
    """

    pairs: Indices
    log_ratios: tuple[Fraction, ...]
    delta: Fraction = Fraction(0)
    view: Indices | None = None


@dataclass(frozen=True, eq=False, slots=True)
class AtomRatio:
    """f_ay <= e^log_ratio f_by + slack for each single output y: Ramon & Basu 3.3, slack = delta / |X|.

    It does not bound the delta of sets of outputs; `table_exact.true_delta` tells what it gives.
    """

    pairs: Indices
    log_ratios: tuple[Fraction, ...]
    slack: Fraction
    view: Indices | None = None


Privacy: TypeAlias = CompleteRatio | PairRatio | AtomRatio
"""One privacy requirement as one observer sees it."""


def log_ratio_of(block: PairRatio | AtomRatio, pair: int) -> Fraction:
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


def no_rows() -> LinearRows:
    """An empty set of rows."""
    empty = np.zeros(0, dtype=np.intp)
    return LinearRows(empty, empty, (), ())


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

    def cleared(self) -> CompleteDual:
        """All of them zero."""
        return CompleteDual(np.zeros_like(self.below), np.zeros_like(self.above))


@dataclass(frozen=True, eq=False, slots=True)
class PairDual:
    """Multipliers `values` >= 0 of f_ay <= R f_by + slack, for pair number `pairs` and seen output `columns`."""

    pairs: Indices
    columns: Indices
    values: Array

    def cleared(self) -> PairDual:
        """None of them."""
        return PairDual(self.pairs[:0], self.columns[:0], self.values[:0])


@dataclass(frozen=True, eq=False, slots=True)
class TableDual:
    """A proof of a lower bound: multipliers for each privacy block and linear row.

    `equalities` of any sign, `inequalities` >= 0, `loss_weights` (X,) >= 0 summing to 1 for a worst-case loss. The
    multipliers of the row sums follow from these (`table_bounds.certified_bound`).
    """

    privacy: tuple[CompleteDual | PairDual, ...]
    equalities: Array
    inequalities: Array
    loss_weights: Array | None = None


@dataclass(frozen=True, eq=False, slots=True)
class ExactTable:
    """Pr(y | x) = numerators[x][y] / denominator exactly, with the exact values of the further scalars."""

    numerators: tuple[tuple[int, ...], ...]
    denominator: int
    extra: tuple[Fraction, ...] = ()

    def to_array(self) -> Array:
        """The table in floats, each entry rounded to the nearest (X, Y)."""
        return np.array([[entry / self.denominator for entry in row] for row in self.numerators], dtype=float)


@dataclass(frozen=True, eq=False, slots=True)
class TableSolution:
    """An exact mechanism with its proof of quality.

    `table` (X, Y) and `optimum` are the float solution, `exact` the mechanism that is used, `value` its exact loss and
    `lower_bound` a certified bound on the loss of every table that meets the constraints.
    """

    table: Array
    optimum: float
    exact: ExactTable
    value: Fraction
    lower_bound: Fraction
    dual: TableDual
    method: str
    rows: int
    iterations: int
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def relative_gap(self) -> float:
        """(value - lower bound) / |value|."""
        return float((self.value - self.lower_bound) / abs(self.value)) if self.value else 0.0


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
