"""Rules that are private enough as they are: a loss of total variations alone is zero, and nothing is to be solved."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np

from privspec.compile.finite.program import Lowered
from privspec.compile.finite.system import FiniteSystem
from privspec.problem.table_losses import fractions
from privspec.solvers.table_programs import (
    CompleteDual,
    CompleteRatio,
    ExactTable,
    PairDual,
    Privacy,
    TableDual,
    TableSolution,
    violations,
)


def target_itself(system: FiniteSystem, lowered: Lowered) -> TableSolution | None:
    """The law that the loss compares the output with, where the loss is nothing else and every line allows it."""
    loss = system.loss
    costs = [] if loss.average is None else [loss.average]
    costs += [worst.costs for worst in loss.worst]
    apart = (*loss.variations, *(one for worst in loss.worst for one in worst.variations))
    if not apart or system.lines or system.scalars or any(any(cost.entries) for cost in costs):
        return None
    values, laws = apart[0].values, fractions(apart[0].law)
    if len(set(values)) < len(values) or any(sum(law) != 1 for law in laws):
        return None
    if any(one.law != apart[0].law or one.values != values for one in apart):
        return None
    whole = lcm(*(chance.denominator for law in laws for chance in law))
    rows = tuple(tuple(int(law[o] * whole) for o in values) for law in laws)
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
