"""The finite family: any law of the outputs, as a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from privspec.core.diagnostics import Diagnostic, SpecError
from privspec.core.spans import Span
from privspec.families.decision import Decision, Infeasible, conflict_line
from privspec.families.family import Settings, Work
from privspec.families.tables.decision import DebiasedTable, LinearTable, TableDecision, Ways, target_itself
from privspec.families.tables.raising import raise_table
from privspec.families.tables.system import Debiased, Lowered, TableSystem, TooManyError, linear_rows, to_program
from privspec.kernel.measures import APPROXIMATE, PURE
from privspec.model.graph import Model
from privspec.model.measures import Chosen
from privspec.problem.elaborate import elaborate
from privspec.problem.form import Problem
from privspec.solvers.programs import SolverError, Watch
from privspec.solvers.table_divergences import CurveRatio
from privspec.solvers.table_programs import InfeasibleTable, TableSolution
from privspec.solvers.table_search_programs import DebiasedProgram
from privspec.solvers.tables import solve_table

SEARCH_TOLERANCE = 1e-6
"""Relative gap that the search for scale and background goes for."""
BYTES, SECONDS = 1700, 6e-5
"""Of an entry of a table, as measured of counts of 127 to 511 people, the tables that are found most easily.

The exact cost and probability of each entry are there as fractions, of some 150 bytes each, in the system, in the
table that is repaired, in the plan as it is written and read, and in what the independent check makes of it.
"""


class Finite:
    """Takes specs whose inputs and outputs all have finitely many values.

    `spends`: the measures in which a share of a line is priced again and again; others take a convex program each time.
    """

    spends = (PURE,)

    def __init__(self) -> None:
        """Remember the last table: a part of a system is lowered at one share after another."""
        self.last: TableSystem | None = None

    def lower(self, model: Model) -> TableSystem:
        """Rows, columns, costs and lines in exact numbers.

        Raises: SpecError, also for requirements that tables do not know.
        """
        if model.loss is None:
            said = _diagnostic(model, model.spec.span, "there is no loss to minimise", "add a loss: section")
            raise SpecError(replace(said, code="PS0504"))
        problem = elaborate(model)
        again = self.last is not None and self.last.problem.blocks == problem.blocks
        self.last = system = self.last.asked(problem) if again and self.last else TableSystem(problem)
        for found in _refused(model, system):
            raise SpecError(found)
        return system

    def decide(self, model: Model, system: TableSystem, settings: Settings) -> TableDecision | Infeasible:
        """The table of least loss.

        Raises: SpecError PS05xx for lines that tables do not know, and the solvers' errors.
        """
        try:
            solve = _linear if system.table.estimates is None else _debiased
            return solve(model, system, settings)
        except TooManyError as error:
            said = _diagnostic(model, error.line, "there are too many ballots that could be a lie")
            raise SpecError(replace(said, code="PS0515")) from None

    def priced(self, model: Model, settings: Settings) -> Decision | Infeasible:
        """The least cost of an amount of privacy that a spec leaves open."""
        from privspec.families.tables.priced import priced  # few specs ask for it

        return priced(model, settings, WAYS)

    def size(self, system: TableSystem) -> int:
        """Rows and columns."""
        return max(system.shape)

    def work(self, system: TableSystem) -> Work:
        """What the entries of the table take."""
        rows, columns = system.shape
        what = f"the numbers of a table of {rows:,} rows and {columns:,} columns"
        smaller = "coarser values of inputs or outputs take less"
        return Work(what, BYTES * rows * columns, SECONDS * rows * columns, smaller)


def _diagnostic(model: Model, place: int | Span, message: str, help_: str | None = None) -> Diagnostic:
    """PS0501 at a line of the spec, or at a place of it."""
    span = model.source.span(place) if isinstance(place, int) else place
    return Diagnostic.at(model.source, span, "PS0501", message, help=help_)


def _refused(model: Model, system: TableSystem) -> Iterator[Diagnostic]:
    """Requirements that tables do not know, and lines beside a scale that the search does not take."""
    for requested in system.requested:
        requirement = model.requirements[requested.index]
        if isinstance(requirement.measure, Chosen) and len(requested.neighbours.pairs):
            yield _diagnostic(
                model,
                requirement.span,
                f"solve cannot choose the amount of {requirement.measure.text} for tables",
                "give it a value under `parameters:`; privspec sweep SPEC --over compares many",
            )
        if system.table.estimates is not None and isinstance(requested.block, CurveRatio):
            yield _diagnostic(
                model,
                requirement.span,
                f"solve cannot compute {requirement.measure.name} beside a scale that is chosen",
                f"write {PURE.name} or {APPROXIMATE.name}, or give the scale a value",
            )


def explained(model: Model, system: TableSystem, settings: Settings) -> Infeasible | None:
    """Why no table meets the lines of a system; None where one does."""
    lowered = to_program(system)
    found = solved(lowered, settings)
    return _conflict(model, system, lowered, found, settings) if isinstance(found, InfeasibleTable) else None


def _conflict(
    model: Model, system: TableSystem, lowered: Lowered, found: InfeasibleTable, settings: Settings
) -> Infeasible:
    """Lines that no table meets: the fewest where programs are linear, else all of them."""
    if _curved(lowered):
        spans = [requirement.span for requirement in model.requirements]
        spans += [target.target.span for target in model.accuracy] + [one.relation.span for one in model.constraints]
        return Infeasible("no table meets all of these lines", tuple(conflict_line(model, s) for s in spans), ())
    from privspec.families.tables.conflicts import explain_infeasible  # solves again and again: many modules

    return explain_infeasible(model, system, lowered, found, settings, _solved_again)


def _linear(model: Model, system: TableSystem, settings: Settings) -> TableDecision | Infeasible:
    watch = Watch(settings.deadline)
    lowered = to_program(system)
    # of large tables it takes time to say what is to be solved
    found = target_itself(system, lowered) or solved(lowered, replace(settings, deadline=watch.left))
    if isinstance(found, InfeasibleTable):
        return _conflict(model, system, lowered, found, settings)
    if settings.exact:
        found.exact  # noqa: B018 - an error is one of this decision
    return LinearTable(model, system, settings, WAYS, found, lowered)


def _curved(lowered: Lowered) -> bool:
    """Whether some measure is no single ratio: programs are convex, and not linear."""
    return any(isinstance(block, CurveRatio) for block in lowered.program.privacy)


def solved(lowered: Lowered, settings: Settings) -> TableSolution | InfeasibleTable:
    """The least loss, or the constraints that conflict."""
    if settings.solver == "cvxpy" or _curved(lowered):
        from privspec.families.tables.reference import solve_with_cvxpy

        return solve_with_cvxpy(lowered.program, settings.deadline, settings.progress, lowered.cost)
    return solve_table(lowered.program, deadline=settings.deadline, progress=settings.progress, cost=lowered.cost)


def _debiased(model: Model, system: TableSystem, settings: Settings) -> TableDecision | Infeasible:
    debiased = Debiased.of(system.table)
    if debiased is None:
        raise SolverError("the conditions of this table make no estimates unbiased")
    program = _program(model, system, debiased)
    from privspec.families.tables.conflicts import explain_infeasible
    from privspec.solvers.table_search import search_debiased

    found = search_debiased(program, SEARCH_TOLERANCE, settings.deadline, settings.progress)
    if not isinstance(found, InfeasibleTable):
        return DebiasedTable(model, system, settings, WAYS, found, debiased, program)
    lowered = to_program(system)
    conflict = solve_table(lowered.program)
    if not isinstance(conflict, InfeasibleTable):
        said = _diagnostic(model, model.spec.span, "no scale above 0 meets these lines")
        raise SpecError(replace(said, code="PS0502"))
    return explain_infeasible(model, system, lowered, conflict, settings, _solved_again)


def _program(model: Model, system: TableSystem, debiased: Debiased) -> DebiasedProgram:
    assert system.prior is not None
    moments, masses, lines = debiased.moments, debiased.masses, system.beside("condition", "law")
    equal, less = (tuple(line for line in lines if line.equality is kind) for kind in (True, False))
    for line in (*equal, *less):
        if line.scalars:
            said = "solve cannot compute this line beside a scale that is chosen"
            raise SpecError(_diagnostic(model, line.line, said, "give the scale a value under `parameters:`"))
    return DebiasedProgram(
        tuple(system.prior),
        tuple(tuple(moment.g) for moment in moments),
        tuple(tuple(moment.t) for moment in moments),
        debiased.weights,
        tuple(block for _, block in system.privacy),
        (debiased.low, debiased.high),
        tuple(tuple(moment.h.get(name, Fraction(0)) for name in masses) for moment in moments) if masses else None,
        (Fraction(1), Fraction(-1 if debiased.weighted else 0)),
        linear_rows(equal, system.shape[1], {}),
        linear_rows(less, system.shape[1], {}),
    )


def _solved_again(model: Model, problem: Problem, settings: Settings) -> tuple[float | None, int]:
    """The loss of a changed problem, None if no table meets it, and how many programs a search solved."""
    found = Finite().decide(model, TableSystem(problem), settings)
    rounds = found.solution.iterations if isinstance(found, DebiasedTable) else 0
    return found.rounded_loss if isinstance(found, TableDecision) else None, rounds


WAYS = Ways(raise_table, _solved_again, solved, explained)
