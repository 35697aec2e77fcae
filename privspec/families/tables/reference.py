"""The reference path: the program of a table through cvxpy, every row stated at once and as it is written.

The yardstick of the special solvers. What comes back is repaired and bounded like theirs: no float reaches a plan.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import cvxpy
import numpy as np

from privspec.solvers.programs import Array, OutOfTimeError, Progress, ReferenceFailedError, Watch
from privspec.solvers.table_programs import (
    AtomRatio,
    CompleteDual,
    CompleteRatio,
    Entries,
    InfeasibleTable,
    LinearRows,
    PairDual,
    PairRatio,
    Privacy,
    TableDual,
    TableProgram,
    TableSolution,
    classes,
    float_ratio,
    float_ratios,
)
from privspec.solvers.table_rows import RowsResult, explain_infeasible, float_rows, membership
from privspec.solvers.tables import exact_solution

cp: Any = cvxpy
"""cvxpy under its usual name; its atoms are built at run time and have no types."""
_FEASIBILITY = 1e-9


def solve_with_cvxpy(
    program: TableProgram,
    deadline: float | None = None,
    progress: Progress | None = None,
    cost: Entries | None = None,
) -> TableSolution | InfeasibleTable:
    """The optimal table by cvxpy and HiGHS, exact and with a certified bound; or which constraints conflict.

    Args: as for `solvers.tables.solve_table`.
    Raises: ReferenceFailedError if no usable solution comes back, OutOfTimeError.
    """
    watch = Watch(deadline, progress)
    stated = _Stated(program)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options: dict[str, float] = {} if deadline is None else {"time_limit": deadline}
        tolerances = {"primal_feasibility_tolerance": _FEASIBILITY, "dual_feasibility_tolerance": _FEASIBILITY}
        try:
            stated.problem.solve(solver=cp.HIGHS, **tolerances, **options)
        except cp.SolverError as error:
            raise ReferenceFailedError("solver_error") from error
    status = stated.problem.status
    if status in (cp.INFEASIBLE, cp.settings.INFEASIBLE_OR_UNBOUNDED):
        return explain_infeasible(program)
    if status == cp.USER_LIMIT:
        raise OutOfTimeError(None)
    if status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise ReferenceFailedError(status)
    watch.step(float(stated.problem.value), float(stated.problem.value))
    return exact_solution(program, stated.result(), "cvxpy", watch, cost)


@dataclass(eq=False, slots=True)
class _Block:
    """The constraints of one privacy block whose multipliers its dual consists of."""

    block: Privacy
    constraints: list[Any]

    def dual(self) -> CompleteDual | PairDual:
        """The multipliers in the solvers' form."""
        values = [np.maximum(np.asarray(c.dual_value, dtype=float), 0.0) for c in self.constraints]
        if isinstance(self.block, CompleteRatio):
            return CompleteDual(*values)
        pairs, columns = np.nonzero(values[0])
        return PairDual(pairs, columns, values[0][pairs, columns])


@dataclass(eq=False)
class _Stated:
    """The whole program as cvxpy has it."""

    program: TableProgram
    table: Any = field(init=False)
    extra: Any = field(init=False)
    blocks: list[_Block] = field(init=False)
    problem: Any = field(init=False)

    def __post_init__(self) -> None:
        """State every row."""
        program = self.program
        inputs, outputs = program.shape
        self.table = cp.Variable((inputs, outputs), nonneg=True)
        self.extra = cp.Variable(len(program.extra)) if len(program.extra) else None
        self._further: list[Any] = [cp.sum(self.table, axis=1) == 1]
        self.blocks = [self._state(block) for block in program.privacy]
        self._further += self._ranges()
        self.equalities = self._linear(program.equalities, equal=True)
        self.inequalities = self._linear(program.inequalities, equal=False)
        losses = cp.sum(cp.multiply(program.cost, self.table), axis=1)
        self.worst: Any = None
        objective = cp.sum(losses)
        if program.worst:
            objective = cp.Variable()
            self.worst = losses <= objective
        if self.extra is not None:
            objective = objective + np.array([float(v) for v in program.extra.cost]) @ self.extra
        stated = [c for c in (self.equalities, self.inequalities, self.worst) if c is not None]
        own = [c for block in self.blocks for c in block.constraints]
        self.problem = cp.Problem(cp.Minimize(objective), [*self._further, *own, *stated])

    def _ranges(self) -> list[Any]:
        if self.extra is None:
            return []
        extra = self.program.extra
        low, high = (np.array([float(v) for v in ends]) for ends in (extra.lower, extra.upper))
        return [self.extra >= low, self.extra <= high]

    def _linear(self, rows: LinearRows, *, equal: bool) -> Any:
        if not rows.bounds:
            return None
        everything = cp.reshape(self.table, (self.table.size,), order="C")
        if self.extra is not None:
            everything = cp.hstack([everything, self.extra])
        left = float_rows(rows, everything.size) @ everything
        right = np.array([float(bound) for bound in rows.bounds])
        return left == right if equal else left <= right

    def _state(self, block: Privacy) -> _Block:
        shown = self.table @ membership(classes(block, self.program.shape[1])).T
        if isinstance(block, CompleteRatio):
            least = np.ones((shown.shape[0], 1)) @ cp.Variable((1, shown.shape[1]))
            return _Block(block, [least <= shown, shown <= float_ratio(block.log_ratio) * least])
        first, second = block.pairs.T
        excess = shown[first] - cp.multiply(float_ratios(block)[:, None] * np.ones((1, shown.shape[1])), shown[second])
        if isinstance(block, AtomRatio):
            return _Block(block, [excess <= float(block.slack)])
        if isinstance(block, PairRatio) and block.delta > 0:
            slack = cp.Variable(excess.shape, nonneg=True)
            self._further.append(cp.sum(slack, axis=1) <= float(block.delta))
            return _Block(block, [excess <= slack])
        return _Block(block, [excess <= 0])

    def result(self) -> RowsResult:
        """Table, scalars and multipliers of the solution."""
        program = self.program
        table: Array = np.maximum(np.asarray(self.table.value, dtype=float), 0.0)
        extra = np.zeros(0) if self.extra is None else np.asarray(self.extra.value, dtype=float)
        none = np.zeros(0)
        # cvxpy adds multipliers times (left - right), HiGHS and `TableDual` subtract those of equalities
        equal = none if self.equalities is None else -np.asarray(self.equalities.dual_value, dtype=float)
        less = none if self.inequalities is None else np.asarray(self.inequalities.dual_value, dtype=float)
        weights = None
        if program.worst:
            weights = np.maximum(np.asarray(self.worst.dual_value, dtype=float), 0.0)
            weights = weights / weights.sum()
        dual = TableDual(tuple(block.dual() for block in self.blocks), equal, np.maximum(less, 0.0), weights)
        rows = sum(constraint.size for constraint in self.problem.constraints)
        return RowsResult(table, extra, float(self.problem.value), dual, rows)
