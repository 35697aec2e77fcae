"""Linear programs in HiGHS: one that is changed and solved again, and one that is solved once.

SciPy's `linprog` calls the same solver, and takes six times as long for a small program: .14 s to load, 3 ms a call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import highspy
import numpy as np
import scipy
from highspy import HighsModelStatus
from privspec.solvers.programs import Array, Indices

Rows: TypeAlias = tuple[Any, Array]
"""A matrix (rows, columns), dense or sparse, and what its rows times the solution are compared with."""

_FEASIBILITY = 1e-10  # the finest that HiGHS accepts


class HighsProgram:
    """Minimise cost . v with bounded variables and rows."""

    def __init__(self, primal: bool = False) -> None:
        """Choose the primal simplex method where columns are added, else the dual one (rows are added)."""
        self._highs = highspy.Highs()  # type: ignore[no-untyped-call]
        self.set("output_flag", False)
        self.set("threads", 1)
        self.set("small_matrix_value", 1e-12)
        self.set("primal_feasibility_tolerance", _FEASIBILITY)
        self.set("dual_feasibility_tolerance", _FEASIBILITY)
        if primal:
            self.set("simplex_strategy", 4)

    def set(self, option: str, value: bool | int | float | str) -> None:
        """Set an option of HiGHS."""
        self._highs.setOptionValue(option, value)

    def add_rows(self, low: Array, high: Array, matrix: scipy.sparse.csr_array | None = None) -> None:
        """Add rows low <= matrix v <= high; without a matrix they are empty."""
        if matrix is None:
            matrix = scipy.sparse.csr_array((len(low), self._highs.getNumCol()))
        self._highs.addRows(
            len(low),
            low,
            high,
            matrix.nnz,
            matrix.indptr[:-1].astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data,
        )

    def add_columns(self, cost: Array, low: Array, high: Array, matrix: scipy.sparse.csc_array | None = None) -> None:
        """Add variables with the columns of a matrix (rows, N), or empty ones."""
        if not len(cost):
            return
        nothing = np.zeros(len(cost)), np.zeros(0), np.zeros(0)
        parts = nothing if matrix is None else (matrix.indptr[:-1], matrix.indices, matrix.data)
        starts, places = (part.astype(np.int32) for part in parts[:2])
        self._highs.addCols(len(cost), cost, low, high, len(places), starts, places, parts[2])

    def go_on_from_basis(self) -> None:
        """Choose the simplex method without presolve: best after rows were added (7 x 7 grid: 3.3 s, not 7 s)."""
        self.set("solver", "simplex")
        self.set("presolve", "off")
        self.set("simplex_dual_edge_weight_strategy", 1)

    def set_costs(self, columns: Indices, costs: Array) -> None:
        """Replace the costs of some columns."""
        self._highs.changeColsCost(len(columns), columns.astype(np.int32), costs)

    def set_ranges(self, columns: Indices, low: Array, high: Array) -> None:
        """Replace the ranges of some columns."""
        self._highs.changeColsBounds(len(columns), columns.astype(np.int32), low, high)

    def basis(self) -> highspy.HighsBasis:
        """The last basis."""
        return self._highs.getBasis()

    def start_from(self, basis: highspy.HighsBasis | None) -> None:
        """Start the next run from a basis of this many rows and columns, or from nothing."""
        if basis is None:
            self._highs.clearSolver()
        else:
            self._highs.setBasis(basis)

    def finish_by_primal(self, seconds: float | None = None) -> HighsModelStatus:
        """Go on with the primal simplex method, once, from where the dual one ended without an answer.

        Ratios over many powers of ten leave it at a feasible basis whose duals it cannot clear (10 x 10 grid with a
        prior of two powers of ten, epsilon 2 a step: e^25).
        """
        self.set("solver", "simplex")
        self.set("simplex_strategy", 4)
        status = self.run(seconds)
        self.set("simplex_strategy", 1)
        return status

    def run(self, seconds: float | None = None) -> HighsModelStatus:
        """Solve from the last basis, for at most so many further seconds."""
        limit = np.inf if seconds is None else self._highs.getRunTime() + max(seconds, 0.1)
        self.set("time_limit", float(limit))
        self._highs.run()
        return self._highs.getModelStatus()

    def value(self) -> float:
        """The value of the objective at the solution."""
        return float(self._highs.getInfo().objective_function_value)

    def column_value(self) -> Array:
        """The solution."""
        return np.array(self._highs.getSolution().col_value, dtype=float)

    def column_dual(self) -> Array:
        """The reduced costs of the columns."""
        return np.array(self._highs.getSolution().col_dual, dtype=float)

    def row_dual(self) -> Array:
        """The multipliers of the rows: <= 0 where an upper bound binds."""
        return np.array(self._highs.getSolution().row_dual, dtype=float)


@dataclass(frozen=True, eq=False, slots=True)
class Optimum:
    """A solution, its value, and what a unit more on the right of a row adds to the value (at most 0 for `most`)."""

    solution: Array
    value: float
    most: Array
    equal: Array


def linear_program(
    cost: Array, most: Rows, equal: Rows | None = None, *, low: Array | None = None, high: Array | None = None
) -> Optimum | None:
    """Minimise cost . v with most[0] v <= most[1], equal[0] v = equal[1], low <= v <= high (0 and no end without).

    Returns: None if HiGHS finds nothing; else what it found, maybe less exact than asked: whoever uses it checks that.
    """
    program, width = HighsProgram(), len(cost)
    program.add_columns(cost, np.zeros(width) if low is None else low, np.full(width, np.inf) if high is None else high)
    program.add_rows(np.full(len(most[1]), -np.inf), most[1], scipy.sparse.csr_array(most[0]))
    if equal is not None:
        program.add_rows(equal[1], equal[1], scipy.sparse.csr_array(equal[0]))
    status = program.run()
    if status == HighsModelStatus.kUnknown:
        status = program.finish_by_primal()
    if status not in (HighsModelStatus.kOptimal, HighsModelStatus.kUnknown):
        return None
    rows = program.row_dual()
    return Optimum(program.column_value(), program.value(), rows[: len(most[1])], rows[len(most[1]) :])
