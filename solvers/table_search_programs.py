"""What the search over scalars solves in a box: programs, their linear forms and their bounds.

Tables whose loss is that of a debiased estimate, as plain data (notes/debiased.md).

Unknown are a table f (X, Y), a scale alpha and the masses b_v >= 0 of a background law, with

    sum_y f_xy g_k(y) = alpha t_k(x) + s_k,     s_k = sum_v b_v c_k(v),     sum_v b_v = m_0 + m_1 alpha

for every row x and moment k. The estimate of t_k(x) is (g_k(z) - s_k) / alpha, the loss its expected squared error,

    sum_x p_x sum_k w_k Var(g_k(z) | x) / alpha^2 = (sum f cost - sum_k w_k mean_k^2) / alpha^2 - spread,

where mean_k = alpha sum_x p_x t_k(x) + s_k is the mean of g_k(z) over all rows: once alpha and the means are fixed, the
program is linear. Without a law, or with a law of a single value, the means are known and moved into the cost.

The linear program of a debiased problem, held open: solved again and again over boxes of alpha and the means.

Alpha and each free mean has a copy that stays in the box; the distance between the two is zero, or what is minimised
when no table lies in the box. The reduced costs of the copies are the slopes of a cut (notes/debiased.md).

Certified lower bounds on the loss of debiased estimates, from multipliers and a tree of boxes (notes/debiased.md).

Each cut is recomputed exactly from its multipliers; in a box of alpha and the means, an affine minorant less the
squares of the means, over alpha squared, has its least value at known points. Nothing of the float search is trusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

import highspy
import numpy as np
from highspy import HighsModelStatus
from privspec.solvers import table_programs
from privspec.solvers.programs import Array, OutOfTimeError, Watch
from privspec.solvers.table_rows import RowsProgram

Moments: TypeAlias = tuple[tuple[Fraction, ...], ...]
"""One tuple for each moment function."""


@dataclass(frozen=True, eq=False, slots=True)
class DebiasedProgram:
    """The whole problem, exact.

    `prior` (X,); `moments` (K, Y) the g_k(y); `targets` (K, X) the t_k(x); `weights` (K,) >= 0, where a moment of
    weight zero is a condition only; `alpha` the range of the scale, open at 0; `law` (K, V) the c_k(v), None without a
    law (all s_k = 0); `mass` the pair m_0, m_1. Columns of further linear rows: x * Y + y for f_xy, X * Y for alpha, X
    * Y + 1 + v for b_v.
    """

    prior: tuple[Fraction, ...]
    moments: Moments
    targets: Moments
    weights: tuple[Fraction, ...]
    privacy: tuple[table_programs.Privacy, ...]
    alpha: tuple[Fraction, Fraction] = (Fraction(0), Fraction(1))
    law: Moments | None = None
    mass: tuple[Fraction, Fraction] = (Fraction(1), Fraction(-1))
    equalities: table_programs.LinearRows = field(default_factory=table_programs.no_rows)
    inequalities: table_programs.LinearRows = field(default_factory=table_programs.no_rows)

    def __post_init__(self) -> None:
        """Refuse lengths that do not match, a prior that is none, and a range of alpha outside [0, 1]."""
        lengths = {len(self.moments), len(self.targets), len(self.weights)} | (
            {len(self.law)} if self.law is not None else set()
        )
        inputs, outputs = self.shape
        if len(lengths) != 1 or any(len(row) != inputs for row in self.targets):
            raise ValueError("moments, targets, weights and law must agree in length")
        if any(len(row) != outputs for row in self.moments) or (
            self.law is not None and len(set(map(len, self.law))) != 1
        ):
            raise ValueError("each moment must be given for every output and every value of the law")
        if sum(self.prior) != 1 or min(self.prior) < 0:
            raise ValueError("the prior must be a law")
        if min(self.weights) < 0 or max(self.weights) == 0:
            raise ValueError("weights must not be negative, nor all zero")
        if not 0 <= self.alpha[0] <= self.alpha[1] <= 1 or self.alpha[1] == 0:
            raise ValueError("alpha must range within (0, 1]")

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of outputs."""
        return len(self.prior), len(self.moments[0])

    @property
    def values(self) -> int:
        """The number of values of the background law."""
        return 0 if self.law is None else len(self.law[0])

    @property
    def means(self) -> tuple[int, ...]:
        """The moments whose mean is free: those with a weight, if the law can vary."""
        return tuple(k for k, weight in enumerate(self.weights) if weight and self.values > 1)

    @property
    def range_of_means(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """The least and the largest value of each free mean."""
        return tuple((min(self.moments[k]), max(self.moments[k])) for k in self.means)

    def expected_target(self, k: int) -> Fraction:
        """sum_x p_x t_k(x)."""
        return sum((p * t for p, t in zip(self.prior, self.targets[k], strict=True)), Fraction(0))

    def _anchor(self, k: int) -> tuple[Fraction, Fraction]:
        """Where the means are known: s_k = first + second * alpha."""
        if self.law is None:
            return Fraction(0), Fraction(0)
        return self.mass[0] * self.law[k][0], self.mass[1] * self.law[k][0]

    @property
    def spread(self) -> Fraction:
        """What the ratio of the module's formula exceeds the loss by."""
        total = Fraction(0)
        for k, weight in enumerate(self.weights):
            shift = -self.expected_target(k) if k in self.means else self._anchor(k)[1]
            total += weight * sum(
                (p * (t + shift) ** 2 for p, t in zip(self.prior, self.targets[k], strict=True)), Fraction(0)
            )
        return total

    def cost(self) -> table_programs.Entries:
        """The exact cost (X, Y) of the entries, prior included."""
        _, outputs = self.shape
        squares = [Fraction(0)] * outputs
        for k, weight in enumerate(self.weights):
            origin = Fraction(0) if self.means else self._anchor(k)[0]
            squares = [total + weight * (g - origin) ** 2 for total, g in zip(squares, self.moments[k], strict=True)]
        found: table_programs.Entries = np.array([[p * square for square in squares] for p in self.prior], dtype=object)
        return found

    def program(self, alpha: tuple[Fraction, Fraction] | None = None) -> table_programs.TableProgram:
        """The linear program whose cost is the numerator without its squares.

        Scalars: alpha, the masses, the free means. Equalities: the conditions (number k * X + x), the mass of the law
        if there is one, the definitions of the free means, then the problem's own.
        """
        low, high = alpha or self.alpha
        # Above what the masses sum to, so that a single mass lies inside its range.
        most = 1 + max(Fraction(0), *(self.mass[0] + self.mass[1] * end for end in (low, high)))
        ranges = self.range_of_means
        lower = (low, *[Fraction(0)] * self.values, *(a for a, _ in ranges))
        upper = (high, *[most] * self.values, *(b for _, b in ranges))
        extra = table_programs.Extra(lower, upper, (Fraction(0),) * len(lower))
        equalities = joined(self._rows(), self.equalities)
        return table_programs.TableProgram(
            self.cost().astype(float), self.privacy, equalities=equalities, inequalities=self.inequalities, extra=extra
        )

    def _rows(self) -> table_programs.LinearRows:
        inputs, outputs = self.shape
        scale = inputs * outputs
        law = self.law or ((),) * len(self.weights)
        found: list[tuple[dict[int, Fraction], Fraction]] = []
        for moment, target, of_law in zip(self.moments, self.targets, law, strict=True):
            for x in range(inputs):
                row = {x * outputs + y: g for y, g in enumerate(moment)}
                found.append(
                    (row | {scale: -target[x]} | {scale + 1 + v: -c for v, c in enumerate(of_law)}, Fraction(0))
                )
        if self.values:
            masses = {scale + 1 + v: Fraction(1) for v in range(self.values)}
            found.append((masses | {scale: -self.mass[1]}, self.mass[0]))
        for number, k in enumerate(self.means):
            row = {scale: self.expected_target(k)} | {scale + 1 + v: c for v, c in enumerate(law[k])}
            found.append((row | {scale + 1 + self.values + number: Fraction(-1)}, Fraction(0)))
        return table_programs.LinearRows.of(found)


def joined(first: table_programs.LinearRows, second: table_programs.LinearRows) -> table_programs.LinearRows:
    """The rows of both, in this order."""
    return table_programs.LinearRows(
        np.append(first.rows, second.rows + len(first.bounds)).astype(np.intp),
        np.append(first.columns, second.columns).astype(np.intp),
        first.values + second.values,
        first.bounds + second.bounds,
    )


def debiased_loss(problem: DebiasedProgram, table: Sequence[Sequence[Fraction]], alpha: Fraction) -> Fraction:
    """sum_x p_x sum_k w_k Var(g_k(z) | x) / alpha^2 of any table (X, Y), exactly."""
    total = Fraction(0)
    for p, row in zip(problem.prior, table, strict=True):
        for weight, moment in zip(problem.weights, problem.moments, strict=True):
            mean = sum((f * g for f, g in zip(row, moment, strict=True)), Fraction(0))
            square = sum((f * g * g for f, g in zip(row, moment, strict=True)), Fraction(0))
            total += p * weight * (square - mean * mean)
    return total / alpha**2


@dataclass(frozen=True, eq=False, slots=True)
class SearchCut:
    """Multipliers of `DebiasedProgram.program`, proof of an affine bound in alpha and the free means on all tables.

    With the cost of the program it bounds the numerator without its squares; where `empty`, the cost is zero and no
    table exists where the bound is positive.
    """

    dual: table_programs.TableDual
    empty: bool = False


@dataclass(frozen=True, slots=True)
class SearchSplit:
    """A box is cut in two at `at` of a coordinate: 0 for alpha, then the free means."""

    coordinate: int
    at: float


SearchTree: TypeAlias = tuple[SearchSplit | int, ...]
"""Boxes in preorder: a split is followed by the tree of its lower and of its upper part.

A number names the cut that bounds the loss in the box, -1 the bound slope / alpha (`table_search_bounds.slope`)."""


@dataclass(frozen=True, eq=False, slots=True)
class DebiasedSolution:
    """An exact mechanism with its proof of quality.

    `alpha`, `masses` (V,) and `exact` (its `extra`: alpha, masses, free means) meet every condition exactly; `shifts`
    (K,) are the s_k that the estimate subtracts. `value` is the exact loss; a bound for every table and every alpha of
    the problem follows from `cuts` and `tree` alone.
    """

    alpha: Fraction
    masses: tuple[Fraction, ...]
    shifts: tuple[Fraction, ...]
    exact: table_programs.ExactTable
    value: Fraction
    cuts: tuple[SearchCut, ...]
    tree: SearchTree
    iterations: int
    seconds: float
    notes: tuple[str, ...] = ()


Basis: TypeAlias = tuple[int, highspy.HighsBasis]
"""The number of rows that it is for, and the basis."""


@dataclass(frozen=True, eq=False, slots=True)
class Vertex:
    """A table that is optimal in a box, and the cut that proves it.

    `point` (coordinates,) alpha and the means; `cost` its cost, `table` (X, Y), `scalars` those of the program. The
    cost of every table is at least constant + slopes . point; where `empty`, that is at most 0 for every table.
    """

    point: Array
    cost: float
    table: Array
    scalars: Array
    constant: float
    slopes: Array
    empty: bool
    dual: table_programs.TableDual


class BoxProgram(RowsProgram):
    """The program of a debiased problem with movable ranges and prices of alpha and the means."""

    def __init__(self, problem: DebiasedProgram, watch: Watch) -> None:
        program = problem.program()
        self.watch = watch
        self.scale = float(np.abs(program.cost).sum(axis=0).max()) or 1.0
        super().__init__(replace(program, cost=program.cost / self.scale))
        self.lp.set("solver", "simplex")
        self.lp.set("presolve", "off")
        self.coordinates = 1 + len(problem.means)
        first = self.entries + 1 + problem.values
        self.real = np.append(self.entries, np.arange(first, first + len(problem.means))).astype(np.intp)
        endless = np.full(self.coordinates, np.inf)
        # Only the copies are bounded, so that prices of alpha and the means show in their reduced costs.
        self.lp.set_ranges(self.real, -endless, endless)
        self.copies = self._new_columns(self.coordinates, low=-np.inf)
        self.away = self._new_columns(2 * self.coordinates)
        each, nothing = np.arange(self.coordinates), np.zeros(self.coordinates)
        columns = (self.real, self.copies, *np.split(self.away, 2))
        self._add(
            [(each, at, sign) for at, sign in zip(columns, (1.0, -1.0, 1.0, -1.0), strict=True)], nothing, nothing
        )
        self._elastic(None)
        self.costs_on = True

    def minimise(self, low: Array, high: Array, prices: Array, basis: Basis | None = None) -> Vertex | None:
        """The least of cost + prices . point in a box, None if there is no table or HiGHS gives up."""
        self._switch_costs(on=True)
        self._set_box(low, high, prices / self.scale)
        if basis is not None and basis[0] == self.rows:
            self.lp.start_from(basis[1])
        return self._solve(prices)

    def extreme(self, low: Array, high: Array, prices: Array) -> Vertex | None:
        """The least of prices . point among the tables in a box."""
        self._switch_costs(on=False)
        self._set_box(low, high, prices)
        return self._solve(prices)

    def nearest(self, low: Array, high: Array) -> Vertex | None:
        """The table nearest to a box, in units of the box, with a cut that separates them."""
        self._switch_costs(on=False)
        nothing = np.zeros(self.coordinates)
        self._set_box(low, high, nothing)
        width = high - low
        self._elastic(1 / np.where(width > 0, width, 1.0))
        self.lp.start_from(None)
        try:
            return self._solve(nothing)
        finally:
            self._elastic(None)

    def basis(self) -> Basis:
        """The last basis, for a box inside the last one."""
        return self.rows, self.lp.basis()

    def _elastic(self, prices: Array | None) -> None:
        """Let the copies differ from alpha and the means at these prices, or not at all."""
        width = len(self.away)
        most = np.zeros(width) if prices is None else np.full(width, np.inf)
        self.lp.set_ranges(self.away, np.zeros(width), most)
        self.lp.set_costs(self.away, np.zeros(width) if prices is None else np.tile(prices, 2))

    def _switch_costs(self, on: bool) -> None:
        if on != self.costs_on:
            costs = self.program.cost.ravel()
            self.lp.set_costs(np.arange(self.entries), costs if on else np.zeros(len(costs)))
            self.costs_on = on

    def _set_box(self, low: Array, high: Array, prices: Array) -> None:
        self.lp.set_ranges(self.copies, low, high)
        self.lp.set_costs(self.copies, prices)

    def _solve(self, prices: Array) -> Vertex | None:
        status = self._settled()
        if status not in (HighsModelStatus.kOptimal, HighsModelStatus.kInfeasible):
            # A poor basis can make HiGHS give up.
            self.lp.start_from(None)
            status = self._settled()
        return self._vertex(prices) if status == HighsModelStatus.kOptimal else None

    def _settled(self) -> HighsModelStatus:
        if self.watch.expired:
            raise OutOfTimeError(None)
        return self.settle(Watch(self.watch.left))

    def _vertex(self, prices: Array) -> Vertex:
        factor = self.scale if self.costs_on else 1.0
        values, table = self.lp.column_value(), self.table()
        point = values[self.real]
        cost = self.scale * float(np.sum(self.program.cost * table))
        slopes = factor * self.lp.column_dual()[self.copies] - prices
        constant = (cost if self.costs_on else 0.0) - float(slopes @ point)
        return Vertex(
            point, cost, table, self.scalars(), constant, slopes, not self.costs_on, self.dual().scaled(factor, factor)
        )


def slope(problem: DebiasedProgram) -> Fraction:
    """A number with which every table, private or not, has loss + spread >= slope / alpha.

    The sum over the moments of w_k gap_k d_k / 2: gap_k the least distance of two values of g_k, d_k the mean absolute
    deviation of t_k from its median. Source: notes/debiased.md.
    """
    total = Fraction(0)
    for weight, moment, target in zip(problem.weights, problem.moments, problem.targets, strict=True):
        values = sorted(set(moment))
        gap = min((b - a for a, b in pairwise(values)), default=Fraction(0))
        deviation = min(
            sum((p * abs(t - centre) for p, t in zip(problem.prior, target, strict=True)), Fraction(0))
            for centre in target
        )
        total += weight * gap * deviation / 2
    return total
