"""Optimal finite mechanisms: the linear program, and the exact table near its solution.

A single pure requirement over all pairs or over a forest of neighbours goes to column generation (`table_rays`), every
other program to HiGHS row by row (`table_rows`). The float solution is repaired to an exact table.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from privspec.solvers.programs import Array, Progress, Watch
from privspec.solvers.table_affine import mixed, repair_affine
from privspec.solvers.table_divergences import CurveRatio
from privspec.solvers.table_programs import (
    Entries,
    ExactTable,
    InfeasibleTable,
    TableProgram,
    TableSolution,
    repair,
    valid,
)
from privspec.solvers.table_rays import cone_of, solve_cone
from privspec.solvers.table_rows import RowsResult, solve_rows


def solve_table(
    program: TableProgram,
    tolerance: float = 1e-9,
    deadline: float | None = None,
    progress: Progress | None = None,
    cost: Entries | None = None,
) -> TableSolution | InfeasibleTable:
    """The optimal table, exact, with its multipliers; or which constraints conflict.

    Args: tolerance, relative, of the float optimum; deadline in seconds; cost (X, Y) of Fractions, the exact loss that
        `program.cost` rounds (used for `value` only).
    Raises: OutOfTimeError if the deadline passed before there was a feasible table; SolverError if HiGHS gave up.
    Source: TABLES.md; Kairouz, Oh, Viswanath 2016 (complete adjacency); notes/tables.md.
    """
    watch = Watch(deadline, progress)
    cone = cone_of(program)
    if cone is None:
        found = solve_rows(program, watch)
        method = "rows"
        if isinstance(found, InfeasibleTable):
            return found
    else:
        rays = solve_cone(program, cone, tolerance, watch)
        found = RowsResult(rays.table, np.zeros(0), rays.value, rays.dual, rays.rows, rays.notes)
        method = "rays"
    return exact_solution(program, found, method, watch, cost)


def exact_solution(
    program: TableProgram,
    found: RowsResult,
    method: str,
    watch: Watch,
    cost: Entries | None = None,
    inner: tuple[Array, Array] | None = None,
) -> TableSolution:
    """A float solution made exact; `cost` as for `solve_table`, `inner` a table with scalars well inside, if known."""
    return TableSolution(
        program=program,
        table=found.table,
        optimum=found.value,
        make=partial(_exact, program, found, inner),
        dual=found.dual,
        method=method,
        rows=found.rows,
        iterations=watch.iterations,
        seconds=watch.seconds,
        notes=found.notes,
        cost=cost,
    )


def _exact(program: TableProgram, found: RowsResult, inner: tuple[Array, Array] | None) -> ExactTable:
    curved = any(isinstance(block, CurveRatio) for block in program.privacy)
    if program.plain and curved:
        return mixed(program, found.table)
    if program.plain:
        exact = repair(program, found.table)
        # Ratios of one with a delta may leave no room to pad: a mixture always has some.
        if valid(program, exact):
            return exact
    return repair_affine(program, found.table, found.extra, inner)
