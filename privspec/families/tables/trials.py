"""Changed problems tried out within a limit of work, and the smallest figures that work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TypeAlias

from privspec.core.diagnostics import SpecError
from privspec.core.records import dataclass, field, replace
from privspec.families.family import Settings
from privspec.families.tables.changes import FIGURE, Change
from privspec.families.tables.system import TableSystem, TooManyError, edited, to_program
from privspec.model.graph import Model
from privspec.problem.form import Problem
from privspec.problem.table_forms import Amount
from privspec.solvers.programs import OutOfTimeError, SolverError, Watch
from privspec.solvers.table_programs import CompleteRatio, Extra, TableProgram, TableSolution
from privspec.solvers.table_rows import RowsResult, solve_rows
from privspec.solvers.table_support import has_table
from privspec.solvers.tables import solve_table

A_SECOND = 300_000
"""Work that takes about a second."""
LEAST_WORK = 3_500
"""Work of the smallest program."""
_CLOSE = Fraction(1, 4000)
_ATTEMPTS = 3

Solver: TypeAlias = Callable[[Model, Problem, Settings], tuple[float | None, int]]
"""Solves a changed problem: the loss of its best table, None without one, and how many programs a search solved."""


class EnoughError(Exception):
    """All the work that was allowed is done."""


def work(program: TableProgram) -> int:
    """About how long a program takes, from its size: a slack for each entry of each pair weighs most."""
    columns = program.shape[1]
    total = LEAST_WORK + int(program.cost.size**1.25)
    for block in program.privacy:
        if not isinstance(block, CompleteRatio):
            entries = len(block.pairs) * columns
            total += entries**2 // 400 if getattr(block, "delta", 0) else entries
    return total


def without_loss(problem: Problem) -> Problem:
    """The same lines with nothing to minimise."""
    return edited(problem, loss=Amount(None, (), (), (), Fraction(0)), estimates=None)


@dataclass(frozen=True, slots=True)
class Worked:
    """A problem that an exact table meets, with its least loss if that is known."""

    loss: float | None


@dataclass(frozen=True, eq=False, slots=True)
class Trials:
    """Asks whether changed problems can be met, with `limit` of work in all (`work`).

    Every question raises EnoughError once it would take more; OutOfTimeError where the user's own time limit is over.
    """

    model: Model
    settings: Settings
    limit: float
    again: Solver
    watch: Watch
    done: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, model: Model, settings: Settings, limit: float, again: Solver) -> Trials:
        """Trials of changes of one spec, within the user's time limit."""
        return cls(model, settings, limit, again, Watch(settings.deadline))

    def _charge(self, amount: int) -> None:
        """Count further work.

        Raises: EnoughError, OutOfTimeError.
        """
        if sum(self.done) + amount > self.limit:
            raise EnoughError
        self.done.append(amount)
        if self.watch.left is not None and self.watch.left <= 0:
            raise OutOfTimeError(None)

    def constraints(self, problem: Problem) -> TableProgram | None:
        """The program of a problem without its loss; None where it has too many rows."""
        try:
            return to_program(TableSystem(without_loss(problem))).program
        except TooManyError:
            return None

    def possible(self, problem: Problem) -> bool:
        """Whether a table meets the problem, as far as doubles can tell."""
        program = self.constraints(problem)
        if program is None:
            return False
        self._charge(work(program))
        return has_table(program, Watch(self.watch.left))

    def extreme(self, problem: Problem, name: str, *, largest: bool) -> float | None:
        """The largest, or least, value that a chosen number can have in a problem that is met; None if it is not."""
        program = self.constraints(problem)
        if program is None or name not in program.extra.names:
            return None
        index, extra = program.extra.names.index(name), program.extra
        price = Fraction(-1 if largest else 1)
        cost = tuple(price if k == index else Fraction(0) for k in range(len(extra)))
        sought = replace(program, extra=Extra(extra.lower, extra.upper, cost, extra.names))
        self._charge(work(program))
        try:
            found = solve_rows(sought, Watch(self.watch.left), explained=False)
        except OutOfTimeError:
            raise
        except SolverError:
            return None
        return float(found.extra[index]) if isinstance(found, RowsResult) else None

    def works(self, problem: Problem) -> Worked | None:
        """Whether an exact table meets the problem, and the least loss where it is found."""
        loss = self.loss(problem)
        if loss is not None:
            return Worked(loss)
        program = self.constraints(problem)
        if program is None:
            return None
        self._charge(work(program))
        try:
            found = solve_table(program, deadline=self.watch.left)
            if not isinstance(found, TableSolution) or not found.exact.numerators:
                return None
        except OutOfTimeError:
            raise
        except (SolverError, ArithmeticError):
            return None
        return Worked(None)

    def loss(self, problem: Problem) -> float | None:
        """The loss of the best table; None if there is none, or it was not found."""
        try:
            each = work(to_program(TableSystem(problem)).program)
            self._charge(each)
            quiet = replace(self.settings, alternatives=False, progress=None, deadline=self.watch.left)
            loss, rounds = self.again(self.model, problem, quiet)
        except OutOfTimeError:
            raise
        except (TooManyError, SpecError, SolverError, ArithmeticError):
            return None
        if rounds:
            self.done.append(each * rounds)
        return loss


def smallest(change: Change, problem: Problem, trials: Trials) -> Iterator[Fraction]:
    """Figures to try, the closest to the spec first, from the least amount with which the changed problem is possible.

    Raises: OutOfTimeError.
    """
    chosen = change.chosen(problem)
    if chosen is None:
        value = _searched(change, problem, trials)
    else:
        found = trials.extreme(chosen, FIGURE, largest=not change.up)
        value = None if found is None else Fraction(found)
    if value is not None:
        yield from (change.rounded(value, attempt) for attempt in range(_ATTEMPTS))


def _searched(change: Change, problem: Problem, trials: Trials) -> Fraction | None:
    """By doubling the amount, then halving what is between."""

    def works(amount: Fraction) -> bool:
        return trials.possible(change.apply(problem, change.value(amount)))

    low, high = Fraction(0), min(change.first, change.most)
    while not works(high):
        if high >= change.most:
            return None
        low, high = high, min(high * change.growth, change.most)
    while high - low > _CLOSE * max(abs(change.value(high)), high):
        middle = Fraction(float(low + high) / 2) if low * 3 > high or not low else Fraction(float(low * high) ** 0.5)
        low, high = (low, middle) if works(middle) else (middle, high)
    return change.value(high)
