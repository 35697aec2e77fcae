"""HiGHS held open: a linear program that grows by rows and columns and is solved again from its last basis."""

from __future__ import annotations

import highspy
import numpy as np
from highspy import HighsModelStatus
from privspec.solvers.programs import Array
from privspec.solvers.results import Indices
from scipy import sparse

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

    def add_rows(self, low: Array, high: Array, matrix: sparse.csr_array | None = None) -> None:
        """Add rows low <= matrix v <= high; without a matrix they are empty."""
        if matrix is None:
            matrix = sparse.csr_array((len(low), self._highs.getNumCol()))
        self._highs.addRows(
            len(low),
            low,
            high,
            matrix.nnz,
            matrix.indptr[:-1].astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data,
        )

    def add_columns(self, cost: Array, low: Array, high: Array, matrix: sparse.csc_array | None = None) -> None:
        """Add variables with the columns of a matrix (rows, N), or empty ones."""
        if not len(cost):
            return
        entries = sparse.csc_array((self._highs.getNumRow(), len(cost))) if matrix is None else matrix
        self._highs.addCols(
            len(cost), cost, low, high, entries.nnz, entries.indptr[:-1].astype(np.int32),
            entries.indices.astype(np.int32), entries.data,
        )  # fmt: skip

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

    def clear_cost(self, columns: int) -> None:
        """Set the cost of the first columns to zero."""
        for column in range(columns):
            self._highs.changeColCost(column, 0.0)

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

    def iterations(self) -> int:
        """Simplex iterations of the last run."""
        return int(self._highs.getInfo().simplex_iteration_count)
