"""The linear program of a debiased problem, held open: solved again and again over boxes of alpha and the means.

Alpha and each free mean has a copy that stays in the box; the distance between the two is zero, or what is minimised
when no table lies in the box. The reduced costs of the copies are the slopes of a cut (notes/debiased.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import highspy
import numpy as np
from highspy import HighsModelStatus
from privspec.solvers.programs import Array
from privspec.solvers.results import OutOfTimeError, Watch
from privspec.solvers.table_programs import CompleteDual, PairDual, TableDual
from privspec.solvers.table_rows import RowsProgram
from privspec.solvers.table_search_programs import DebiasedProgram
from scipy import sparse

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
    dual: TableDual


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
        unit = np.ones(self.coordinates)
        values = np.concatenate((unit, -unit, unit, -unit))
        rows = np.tile(np.arange(self.coordinates), 4)
        columns = np.concatenate((self.real, self.copies, self.away))
        nothing = np.zeros(self.coordinates)
        shape = (self.coordinates, self.columns)
        self._add(sparse.csr_array((values, (rows, columns)), shape=shape), nothing, nothing)
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
        again = True
        while True:
            if self.watch.expired:
                raise OutOfTimeError(None)
            left = None if self.watch.deadline is None else self.watch.deadline - self.watch.seconds
            status = self.lp.run(left)
            if status == HighsModelStatus.kTimeLimit:
                raise OutOfTimeError(None)
            if status == HighsModelStatus.kInfeasible:
                return None
            if status != HighsModelStatus.kOptimal:
                if not again:
                    return None
                # A poor basis can make HiGHS give up.
                self.lp.start_from(None)
                again = False
                continue
            if not self.add_violated(self.table()):
                return self._vertex(prices)

    def _vertex(self, prices: Array) -> Vertex:
        factor = self.scale if self.costs_on else 1.0
        values, table = self.lp.column_value(), self.table()
        point = values[self.real]
        cost = self.scale * float(np.sum(self.program.cost * table))
        slopes = factor * self.lp.column_dual()[self.copies] - prices
        constant = (cost if self.costs_on else 0.0) - float(slopes @ point)
        scalars = values[self.entries : self.entries + len(self.program.extra)]
        return Vertex(point, cost, table, scalars, constant, slopes, not self.costs_on, _times(self.dual(), factor))


def _times(dual: TableDual, factor: float) -> TableDual:
    """All multipliers times a factor."""
    privacy = tuple(
        CompleteDual(part.below * factor, part.above * factor)
        if isinstance(part, CompleteDual)
        else PairDual(part.pairs, part.columns, part.values * factor)
        for part in dual.privacy
    )
    return TableDual(privacy, dual.equalities * factor, dual.inequalities * factor)
