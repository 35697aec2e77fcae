"""Local mechanisms that maximise a utility of their columns: a linear program over two-level patterns.

A column of a table whose rows are all neighbours lies, divided by its least entry, in the box [1, e^epsilon]^k, whose
corners are the patterns. Where the utility of a table is a sum of sublinear functions of its columns, such as mutual
information, the best table therefore has patterns as columns, at most k of them (notes/extremal-tables.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
from highspy import HighsModelStatus
from numpy.typing import NDArray
from privspec.solvers.programs import Array
from privspec.solvers.results import SolverError
from privspec.solvers.table_exact import repair
from privspec.solvers.table_highs import HighsProgram
from privspec.solvers.table_programs import CompleteRatio, ExactTable, TableProgram
from privspec.solvers.table_ratios import RATIO_BITS, float_ratio, ratio_up
from scipy import sparse

MOST_ROWS = 16
"""Inputs up to which all 2^k patterns are listed."""
_BITS = 120


class ColumnUtility(Protocol):
    """A utility of a table that is the sum of mu(column), with mu(t c) = t mu(c) and mu(c + d) <= mu(c) + mu(d)."""

    @property
    def rows(self) -> int:
        """The number of inputs k."""
        ...

    def values(self, columns: Array) -> Array:
        """Mu of many columns (k, N), in floats (N,)."""
        ...

    def enclose(self, column: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
        """A lower and an upper bound on mu of one exact column."""
        ...


@dataclass(frozen=True, slots=True)
class MutualInformation:
    """Mutual information, in nats, between an input of law `prior` and the output."""

    prior: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        """Refuse what is no law."""
        if sum(self.prior) != 1 or min(self.prior) < 0:
            raise ValueError("a prior must be nonnegative and sum to one")

    @property
    def rows(self) -> int:
        """The number of inputs."""
        return len(self.prior)

    def values(self, columns: Array) -> Array:
        """Sum of pi_x c_x log c_x, less m log m for the mean m = sum of pi_x c_x."""
        prior = np.array([float(p) for p in self.prior])
        mean = prior @ columns
        return np.asarray(prior @ _entropies(columns) - _entropies(mean))

    def enclose(self, column: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
        """The same in ball arithmetic, rounded outwards."""
        mean = sum((p * c for p, c in zip(self.prior, column, strict=True)), Fraction(0))
        low = high = Fraction(0)
        for weight, value in (*((p * c, c) for p, c in zip(self.prior, column, strict=True)), (-mean, mean)):
            if weight:
                down, up = _log_bounds(value)
                low += weight * (down if weight > 0 else up)
                high += weight * (up if weight > 0 else down)
        return low, high


def _entropies(values: Array) -> Array:
    return np.asarray(values * np.log(np.where(values > 0, values, 1.0)))


@lru_cache(maxsize=100_000)
def _log_bounds(value: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals below and above the logarithm of a positive rational."""
    import flint

    if value == 1:
        return Fraction(0), Fraction(0)
    precision = _BITS + 40
    while True:
        with flint.ctx.workprec(precision):
            scaled = flint.arb(flint.fmpq(value.numerator, value.denominator)).log() * flint.arb(2) ** _BITS
            low = scaled.floor().unique_fmpz()
        if low is not None:
            # the logarithm of another rational is irrational, so the ceiling is the next integer
            return Fraction(int(low), 1 << _BITS), Fraction(int(low) + 1, 1 << _BITS)
        precision *= 2


@dataclass(frozen=True, slots=True)
class BestGuess:
    """Minus the expected loss of the best answer to each output: costs (k, Y) with the prior in them, exact."""

    cost: tuple[tuple[Fraction, ...], ...]

    @property
    def rows(self) -> int:
        """The number of inputs."""
        return len(self.cost)

    def values(self, columns: Array) -> Array:
        """Minus the least over answers y of the sum of cost_xy c_x."""
        cost = np.array([[float(c) for c in row] for row in self.cost])
        return np.asarray(-np.min(cost.T @ columns, axis=0))

    def enclose(self, column: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
        """Exactly."""
        losses = (sum(row[y] * c for row, c in zip(self.cost, column, strict=True)) for y in range(len(self.cost[0])))
        exact = Fraction(-min(losses))
        return exact, exact


@dataclass(frozen=True, eq=False, slots=True)
class PatternSolution:
    """The best local table for a utility of its columns.

    `high` (k, N) are the patterns in use, one column of `exact` each; `value` bounds the utility of `exact` from below,
    `upper_bound` that of every table of this epsilon, with any number of outputs.
    """

    high: NDArray[np.bool_]
    exact: ExactTable
    value: Fraction
    upper_bound: Fraction

    @property
    def gap(self) -> float:
        """Upper bound minus value."""
        return float(self.upper_bound - self.value)

    @property
    def sizes(self) -> tuple[int, ...]:
        """For each pattern the number of its high entries: all equal for subset selection."""
        return tuple(int(n) for n in self.high.sum(axis=0))


def best_patterns(epsilon: Fraction, utility: ColumnUtility) -> PatternSolution:
    """The epsilon-LDP table of largest utility, exact, and a certified bound on what any table reaches.

    Raises: ValueError beyond `MOST_ROWS` inputs or for an epsilon that is not positive; SolverError.
    Source: Kairouz, Oh & Viswanath 2016, theorem 4; notes/extremal-tables.md.
    """
    k = utility.rows
    if k > MOST_ROWS or epsilon <= 0:
        raise ValueError(f"patterns are listed for a positive epsilon and at most {MOST_ROWS} inputs, not {k}")
    # the pattern of all ones is that of all e^epsilon; a pattern and its weight are told apart by the rows
    high = (np.arange(2**k - 1)[None, :] >> np.arange(k)[:, None] & 1).astype(bool)
    columns = np.where(high, 1.0, 1.0 / float_ratio(epsilon))
    weights, prices = _solve(columns, utility.values(columns))
    used = np.flatnonzero(weights > 1e-12)
    program = TableProgram(np.zeros((k, len(used))), (CompleteRatio(epsilon),))
    exact = repair(program, columns[:, used] * weights[used])
    return PatternSolution(high[:, used], exact, _value(utility, exact), _bound(epsilon, utility, high, prices))


def _solve(columns: Array, utilities: Array) -> tuple[Array, Array]:
    """Weights (N,) of the patterns and prices (k,) of the row sums."""
    lp = HighsProgram(primal=True)
    ones = np.ones(len(columns))
    lp.add_rows(ones, ones)
    count = columns.shape[1]
    lp.add_columns(-utilities, np.zeros(count), np.full(count, np.inf), sparse.csc_array(columns))
    status = lp.run()
    if status != HighsModelStatus.kOptimal:
        raise SolverError(f"the program over patterns ended with {status.name}")
    return lp.column_value(), -lp.row_dual()


def _value(utility: ColumnUtility, exact: ExactTable) -> Fraction:
    columns = zip(*exact.numerators, strict=True)
    return sum(
        (utility.enclose([Fraction(n, exact.denominator) for n in column])[0] for column in columns), Fraction(0)
    )


def _bound(epsilon: Fraction, utility: ColumnUtility, high: NDArray[np.bool_], prices: Array) -> Fraction:
    """Sum of the prices, raised alike until each pattern, with its ratio rounded up, costs what it is worth."""
    ratio = Fraction(ratio_up(epsilon), 1 << RATIO_BITS)
    exact = [Fraction(price) for price in prices.tolist()]
    lift: Fraction | None = None
    for pattern in high.T.tolist():
        column = [ratio if up else Fraction(1) for up in pattern]
        worth = utility.enclose(column)[1]
        paid = sum((c * price for c, price in zip(column, exact, strict=True)), Fraction(0))
        needed = (worth - paid) / sum(column)
        lift = needed if lift is None else max(lift, needed)
    assert lift is not None
    return sum(exact, Fraction(0)) + len(exact) * lift
