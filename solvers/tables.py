"""Optimal finite mechanisms: the linear program, the exact table near its solution, and the bound that proves it.

A single pure requirement over all pairs or over a forest of neighbours goes to column generation (`table_rays`), every
other program to HiGHS row by row (`table_rows`). The float solution is repaired to an exact table and its multipliers
to a certified bound.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from privspec.solvers.programs import Progress, Watch
from privspec.solvers.table_affine import repair_affine
from privspec.solvers.table_bounds import certified_bound
from privspec.solvers.table_programs import (
    Entries,
    ExactTable,
    Extra,
    InfeasibleTable,
    TableDual,
    TableProgram,
    TableSolution,
    exact_loss,
    repair,
    violations,
)
from privspec.solvers.table_rays import cone_of, solve_cone
from privspec.solvers.table_rows import RowsResult, solve_rows

GAP = 1e-9
"""Relative gap below which a bound is as good as any."""


def solve_table(
    program: TableProgram,
    tolerance: float = 1e-9,
    deadline: float | None = None,
    progress: Progress | None = None,
    cost: Entries | None = None,
) -> TableSolution | InfeasibleTable:
    """The optimal table, exact and with a certified bound; or which constraints conflict.

    Args: tolerance, relative, of the float optimum; deadline in seconds; cost (X, Y) of Fractions, the exact loss that
        `program.cost` rounds (used for `value` and `lower_bound` only).
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
    program: TableProgram, found: RowsResult, method: str, watch: Watch, cost: Entries | None = None
) -> TableSolution:
    """A float solution made exact, with the bound that its multipliers prove; `cost` as for `solve_table`.

    Raises: SolverError if no exact table is near.
    """
    exact = _exact(program, found)
    value = exact_loss(program, exact, cost)
    dual, bound = _proven(program, found.dual, value, cost)
    return TableSolution(
        table=found.table,
        optimum=found.value,
        exact=exact,
        value=value,
        lower_bound=bound,
        dual=dual,
        method=method,
        rows=found.rows,
        iterations=watch.iterations,
        seconds=watch.seconds,
        notes=found.notes,
    )


def _proven(
    program: TableProgram, dual: TableDual, value: Fraction, cost: Entries | None
) -> tuple[TableDual, Fraction]:
    """The multipliers and their bound; or without those of privacy, or of any line, where the rest proves more.

    Where ratios are so wide that privacy hardly costs anything, a rounding error of a multiplier times the ratio does;
    where nothing need be lost, any rounding error does.
    """
    bound = certified_bound(program, dual, cost)
    if value - bound <= GAP * abs(value):
        return dual, bound
    proven = [(part, certified_bound(program, part, cost)) for part in (dual.scaled(0, 1), dual.scaled(0, 0))]
    return max(((dual, bound), *proven), key=lambda pair: pair[1])


def _exact(program: TableProgram, found: RowsResult) -> ExactTable:
    if program.plain:
        exact = repair(program, found.table)
        # Ratios of one with a delta may leave no room to pad: a mixture always has some.
        if not violations(program, exact):
            return exact
    return repair_affine(program, found.table, found.extra)


def extreme_extra(program: TableProgram, index: int, largest: bool = True) -> TableSolution | InfeasibleTable:
    """The table with the largest (or least) value of one further scalar; its value is `exact.extra[index]`."""
    price = Fraction(-1 if largest else 1)
    costs = tuple(price if k == index else Fraction(0) for k in range(len(program.extra)))
    extra = Extra(program.extra.lower, program.extra.upper, costs, program.extra.names)
    return solve_table(replace(program, cost=np.zeros(program.shape), worst=False, extra=extra))
