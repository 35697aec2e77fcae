"""Rules that are private enough as they are: a loss of total variations alone is zero, and nothing is to be solved."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np

from privspec.compile.finite.program import Lowered
from privspec.compile.finite.system import FiniteSystem
from privspec.solvers.table_exact import violations
from privspec.solvers.table_programs import (
    CompleteDual,
    CompleteRatio,
    ExactTable,
    PairDual,
    Privacy,
    TableDual,
    TableSolution,
)


def target_itself(system: FiniteSystem, lowered: Lowered) -> TableSolution | None:
    """The law that the loss compares the output with, where the loss is nothing else and every line allows it."""
    costs = [] if system.expected is None else [system.expected]
    costs += [worst for _, worst in system.worst]
    if not system.apart or system.lines or system.scalars or any(np.any(cost != 0) for cost in costs):
        return None
    first = system.apart[0]
    if len(set(first.seen.tolist())) < len(first.seen) or any(sum(law) != 1 for law in first.law):
        return None
    if any(np.any(gap.law != first.law) or np.any(gap.seen != first.seen) for gap in system.apart):
        return None
    whole = lcm(*(chance.denominator for law in first.law for chance in law))
    rows = tuple(tuple(int(law[o] * whole) for o in first.seen) for law in first.law)
    program = lowered.program
    exact = ExactTable(rows, whole, (Fraction(0),) * len(program.extra))
    if violations(program, exact):
        return None
    none = (np.zeros(len(lines)) for lines in (lowered.equalities, lowered.inequalities))
    dual = TableDual(tuple(_nothing(block, program.shape) for block in program.privacy), *none)
    zero = Fraction(0)
    return TableSolution(exact.to_array(), 0.0, exact, zero, zero, dual, "the law itself", 0, 0, 0.0)


def _nothing(block: Privacy, shape: tuple[int, int]) -> CompleteDual | PairDual:
    """No multipliers."""
    if isinstance(block, CompleteRatio):
        return CompleteDual(np.zeros(shape), np.zeros(shape))
    none = np.zeros(0, dtype=np.intp)
    return PairDual(none, none, np.zeros(0))
