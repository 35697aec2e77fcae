"""The finite family: any law of the outputs, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product

from privspec.core.diagnostics import Diagnostic, Label, SpecError
from privspec.families.family import Settings
from privspec.families.infeasible import Infeasible, conflict_line
from privspec.families.tables.decision import DebiasedTable, LinearTable, TableDecision, Ways, target_itself
from privspec.families.tables.program import Lowered, linear_rows, privacy_blocks, to_program
from privspec.families.tables.raising import raise_table
from privspec.families.tables.system import Debiased, FiniteSystem, lower
from privspec.model.graph import Model
from privspec.model.reports import Failure
from privspec.solvers.table_programs import InfeasibleTable, Privacy, TableSolution
from privspec.solvers.table_search_programs import DebiasedProgram
from privspec.solvers.tables import solve_table

MOST_TRIED = 1000
"""Combinations of listed values that are tried, a program each."""
SAME = 1e-9
"""Relative gap below which no other value can be better."""
SEARCH_TOLERANCE = 1e-6
"""Relative gap that the search for scale and background goes for."""


class Finite:
    """Takes specs whose inputs and outputs all have finitely many values."""

    def lower(self, model: Model) -> FiniteSystem:
        """Rows, columns, costs and lines in exact numbers."""
        return lower(model)

    def decide(self, model: Model, system: FiniteSystem, settings: Settings) -> TableDecision | Infeasible:
        """The table of least loss.

        Raises: SpecError PS05xx for requirements and lines that tables do not know, and the solvers' errors.
        """
        try:
            solve = _linear if system.table.estimates is None else _debiased
            return solve(model, system, settings)
        except Failure as failure:
            label = Label(failure.span, failure.label)
            raise SpecError(
                Diagnostic(failure.code, failure.message, (label,), help=failure.help, source=model.source)
            ) from failure

    def size(self, system: FiniteSystem) -> int:
        """Rows and columns."""
        return max(system.shape)


def _linear(model: Model, system: FiniteSystem, settings: Settings) -> TableDecision | Infeasible:
    lowered = to_program(system)
    found = target_itself(system, lowered) or _solved(lowered, settings)
    if isinstance(found, InfeasibleTable):
        from privspec.families.tables.conflicts import explain_infeasible  # solves again and again: many modules

        return explain_infeasible(model, lowered, found, settings, _solved_again)
    listed = _listed(model, lowered)
    if not listed:
        return LinearTable(model, system, settings, WAYS, lowered, found)
    best = _one_by_one(lowered, listed, found, settings)
    if best is None:
        spans = [node.span for node in model.choices if node.name in listed]
        spans += [line.relation.span for line in model.constraints]
        lines = tuple(conflict_line(model, span) for span in spans)
        return Infeasible(f"no value of {', '.join(listed)} meets these lines", lines, ())
    return LinearTable(model, system, settings, WAYS, lowered, best)


def _listed(model: Model, lowered: Lowered) -> dict[str, tuple[Fraction, ...]]:
    """The numbers to choose that have a list of values, and not a range.

    Raises: Failure PS0501 if there are too many combinations to try.
    """
    found: dict[str, tuple[Fraction, ...]] = {}
    tried = 1
    for node in model.choices:
        if node.name in lowered.program.extra.names and node.domain is not None and node.domain.size is not None:
            tried *= node.domain.size
            if tried > MOST_TRIED:
                text = f"solve tries every value of {node.name}, together with what else is chosen: {tried:,} programs"
                help_ = f"give it a range, as in [0, 1], or at most {MOST_TRIED} values"
                raise Failure("PS0501", node.span, text, help=help_)
            found[node.name] = tuple(node.domain.elements())
    return found


def _one_by_one(
    lowered: Lowered,
    listed: Mapping[str, tuple[Fraction, ...]],
    relaxed: TableSolution,
    settings: Settings,
) -> TableSolution | None:
    """The best table over all values of what is chosen from lists; None if none of them meets the lines.

    `relaxed`: the optimum where each may lie between its least and its largest value, whose bound holds for every
    choice. Where the values next to it lose no more, no other is tried.
    """
    free = dict(zip(lowered.program.extra.names, relaxed.exact.extra, strict=True))
    near = tuple(_nearest(values, free[name]) for name, values in listed.items())
    best: TableSolution | None = None
    for values in (near, *(each for each in product(*listed.values()) if each != near)):
        fixed = _fixed(lowered, dict(zip(listed, values, strict=True)))
        found = _solved(fixed, settings)
        if not isinstance(found, InfeasibleTable) and (best is None or found.value < best.value):
            best = replace(found, lower_bound=relaxed.lower_bound, dual=relaxed.dual)
        if best is not None and best.value - relaxed.lower_bound <= SAME * abs(best.value):
            break
    return best


def _nearest(values: tuple[Fraction, ...], at: Fraction) -> Fraction:
    return min(values, key=lambda value: abs(value - at))


def _fixed(lowered: Lowered, values: Mapping[str, Fraction]) -> Lowered:
    """The program with some of its further numbers given."""
    extra = lowered.program.extra
    low = tuple(values.get(name, end) for name, end in zip(extra.names, extra.lower, strict=True))
    high = tuple(values.get(name, end) for name, end in zip(extra.names, extra.upper, strict=True))
    return replace(lowered, program=replace(lowered.program, extra=replace(extra, lower=low, upper=high)))


def _solved(lowered: Lowered, settings: Settings) -> TableSolution | InfeasibleTable:
    if settings.solver == "cvxpy":
        from privspec.families.tables.reference import solve_with_cvxpy

        return solve_with_cvxpy(lowered.program, settings.deadline, settings.progress, lowered.cost)
    return solve_table(lowered.program, deadline=settings.deadline, progress=settings.progress, cost=lowered.cost)


def _debiased(model: Model, system: FiniteSystem, settings: Settings) -> TableDecision | Infeasible:
    blocks = privacy_blocks(system)
    debiased = Debiased.of(system)
    program = _program(system, debiased, tuple(block for _, block in blocks))
    from privspec.families.tables.conflicts import explain_infeasible
    from privspec.solvers.table_search import search_debiased

    found = search_debiased(program, SEARCH_TOLERANCE, settings.deadline, settings.progress)
    if not isinstance(found, InfeasibleTable):
        indices = tuple(index for index, _ in blocks)
        return DebiasedTable(model, system, settings, WAYS, indices, debiased, program, found)
    lowered = to_program(system)
    conflict = solve_table(lowered.program)
    if not isinstance(conflict, InfeasibleTable):
        raise Failure("PS0502", model.spec.span, "no scale above 0 meets these lines")
    return explain_infeasible(model, lowered, conflict, settings, _solved_again)


def _program(system: FiniteSystem, debiased: Debiased, privacy: tuple[Privacy, ...]) -> DebiasedProgram:
    if system.prior is None:
        span = system.model.loss.span if system.model.loss else system.model.spec.span
        raise Failure("PS0401", span, "this average is over data without a model", help="add a model: x ~ uniform")
    moments, masses, lines = debiased.moments, debiased.masses, debiased.beside(system)
    equal, less = (tuple(line for line in lines if line.equality is kind) for kind in (True, False))
    for line in (*equal, *less):
        if line.scalars:
            raise Failure("PS0501", line.span, "solve cannot compute this line beside a scale that is chosen yet")
    return DebiasedProgram(
        tuple(system.prior),
        tuple(tuple(moment.g) for moment in moments),
        tuple(tuple(moment.t) for moment in moments),
        debiased.weights,
        privacy,
        (debiased.low, debiased.high),
        tuple(tuple(moment.h.get(name, Fraction(0)) for name in masses) for moment in moments) if masses else None,
        (Fraction(1), Fraction(-1 if debiased.weighted else 0)),
        linear_rows(equal, system.shape[1], {}),
        linear_rows(less, system.shape[1], {}),
    )


def _solved_again(model: Model, system: FiniteSystem, settings: Settings) -> tuple[float | None, int]:
    """The loss of a changed spec, None if no table meets it, and how many programs a search solved."""
    found = Finite().decide(model, system, settings)
    rounds = found.solution.iterations if isinstance(found, DebiasedTable) else 0
    return found.loss if isinstance(found, TableDecision) else None, rounds


WAYS = Ways(raise_table, _solved_again)
