"""Changed specs, tried out: whether any table meets them, and what the best one would cost, within a limit of work.

Work is told from the sizes of programs and never from a clock: a plan says the same on a slow and on a fast machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeAlias

from privspec.compile.finite.program import to_program
from privspec.compile.finite.system import FiniteSystem, lower
from privspec.compile.problem import Settings
from privspec.core.diagnostics import SpecError
from privspec.model.graph import Model
from privspec.model.reports import Failure
from privspec.solvers.programs import OutOfTimeError, SolverError, Watch
from privspec.solvers.table_programs import CompleteRatio, Extra, TableProgram, TableSolution
from privspec.solvers.table_rows import RowsResult, solve_rows
from privspec.solvers.table_support import has_table
from privspec.solvers.tables import solve_table

A_SECOND = 300_000
"""Work that takes about a second."""
LEAST_WORK = 3_500
"""Work of the smallest program."""


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


Solver: TypeAlias = Callable[[Model, FiniteSystem, Settings], tuple[float | None, int]]
"""Solves a changed spec: the loss of its best table, None if there is none, and how many programs a search solved."""


@dataclass(frozen=True, slots=True)
class Worked:
    """A spec that an exact table meets, with its least loss if that is known."""

    loss: float | None


@dataclass(frozen=True, eq=False, slots=True)
class Trials:
    """Asks whether changed specs can be met, with `limit` of work in all (`work`).

    Every question raises EnoughError once it would take more; OutOfTimeError where the user's own time limit is over.
    """

    settings: Settings
    limit: float
    again: Solver
    watch: Watch = field(default_factory=Watch)
    done: list[int] = field(default_factory=list)

    def _charge(self, amount: int) -> None:
        """Count further work.

        Raises: EnoughError, OutOfTimeError.
        """
        if sum(self.done) + amount > self.limit:
            raise EnoughError
        self.done.append(amount)
        if self.left is not None and self.left <= 0:
            raise OutOfTimeError(None)

    def constraints(self, model: Model) -> TableProgram | None:
        """The program of a spec without its loss; None where it has no meaning (division by zero, too many values)."""
        try:
            return to_program(lower(model, priced=False)).program
        except (Failure, SpecError):
            return None

    def possible(self, model: Model) -> bool:
        """Whether a table meets the spec, as far as doubles can tell."""
        program = self.constraints(model)
        if program is None:
            return False
        self._charge(work(program))
        return has_table(program, Watch(self.left))

    def extreme(self, model: Model, name: str, *, largest: bool) -> float | None:
        """The largest, or least, value that a chosen number can have in a spec that is met; None if it is not met."""
        program = self.constraints(model)
        if program is None or name not in program.extra.names:
            return None
        index, extra = program.extra.names.index(name), program.extra
        price = Fraction(-1 if largest else 1)
        cost = tuple(price if k == index else Fraction(0) for k in range(len(extra)))
        sought = replace(program, extra=Extra(extra.lower, extra.upper, cost, extra.names))
        self._charge(work(program))
        try:
            found = solve_rows(sought, Watch(self.left), explained=False)
        except OutOfTimeError:
            raise
        except SolverError:
            return None
        return float(found.extra[index]) if isinstance(found, RowsResult) else None

    def works(self, model: Model) -> Worked | None:
        """Whether an exact table meets the spec, and the least loss where it is found."""
        loss = self.loss(model)
        if loss is not None:
            return Worked(loss)
        program = self.constraints(model)
        if program is None:
            return None
        self._charge(work(program))
        try:
            found = solve_table(program, deadline=self.left)
        except OutOfTimeError:
            raise
        except (SolverError, ArithmeticError):
            return None
        return Worked(None) if isinstance(found, TableSolution) else None

    def loss(self, model: Model, system: FiniteSystem | None = None) -> float | None:
        """The loss of the best table; None if there is none, or it was not found.

        Args: system, the model lowered, if that is known.
        """
        try:
            system = system or lower(model)
            each = work(to_program(system).program)
            self._charge(each)
            quiet = replace(self.settings, alternatives=False, progress=None, deadline=self.left)
            loss, rounds = self.again(model, system, quiet)
        except OutOfTimeError:
            raise
        except (Failure, SpecError, SolverError, ArithmeticError):
            return None
        if rounds:
            self.done.append(each * rounds)
        return loss

    @property
    def left(self) -> float | None:
        """Seconds of the user's time limit that are left; None without one."""
        return None if self.settings.deadline is None else self.settings.deadline - self.watch.seconds
