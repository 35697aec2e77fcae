"""Changed specs, tried out: whether any table meets them, and what the best one would cost, within a limit of time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from time import process_time

from privspec.compile.finite.lower import lower
from privspec.compile.finite.program import to_program
from privspec.compile.finite.system import FiniteSystem
from privspec.compile.problem import Settings
from privspec.core.diagnostics import SpecError
from privspec.model.graph import Model
from privspec.model.reports import Failure
from privspec.solvers.results import OutOfTimeError, SolverError, Watch
from privspec.solvers.table_programs import Extra, TableProgram, TableSolution
from privspec.solvers.table_rows import RowsResult, solve_rows
from privspec.solvers.table_support import has_table
from privspec.solvers.tables import solve_table

PRICING_SHARE = 0.25
"""Share of the limit that one price may take."""
PATIENCE = 4.0
"""Seconds by the clock that a second of work may take: other programs may want the machine too."""


@dataclass(frozen=True, slots=True)
class Worked:
    """A spec that an exact table meets, with its least loss if that is known."""

    loss: float | None


@dataclass(frozen=True, eq=False, slots=True)
class Trials:
    """Asks whether changed specs can be met, for `limit` seconds of work in all."""

    settings: Settings
    limit: float
    started: float = field(default_factory=process_time)

    def constraints(self, model: Model) -> TableProgram | None:
        """The program of a spec without its loss; None where it has no meaning (division by zero, too many values)."""
        try:
            return to_program(lower(model, priced=False)).program
        except (Failure, SpecError):
            return None

    def possible(self, model: Model) -> bool:
        """Whether a table meets the spec, as far as doubles can tell.

        Raises: OutOfTimeError.
        """
        program = self.constraints(model)
        return program is not None and has_table(program, Watch(self.left))

    def extreme(self, model: Model, name: str, *, largest: bool) -> float | None:
        """The largest, or least, value that a chosen number can have in a spec that is met; None if it is not met.

        Raises: OutOfTimeError.
        """
        program = self.constraints(model)
        if program is None or name not in program.extra.names:
            return None
        index, extra = program.extra.names.index(name), program.extra
        price = Fraction(-1 if largest else 1)
        cost = tuple(price if k == index else Fraction(0) for k in range(len(extra)))
        sought = replace(program, extra=Extra(extra.lower, extra.upper, cost, extra.names))
        try:
            found = solve_rows(sought, Watch(self.left), explained=False)
        except SolverError:
            return None
        return float(found.extra[index]) if isinstance(found, RowsResult) else None

    def works(self, model: Model) -> Worked | None:
        """Whether an exact table meets the spec, and the least loss where it is found in its share of the time.

        Raises: OutOfTimeError.
        """
        loss = self.loss(model)
        if loss is not None:
            return Worked(loss)
        program = self.constraints(model)
        if program is None:
            return None
        try:
            found = solve_table(program, deadline=self.left)
        except (SolverError, ArithmeticError):
            return None
        return Worked(None) if isinstance(found, TableSolution) else None

    def loss(self, model: Model, system: FiniteSystem | None = None) -> float | None:
        """The loss of the best table; None if it was not found within its share of the time, or there is none.

        Args: system, the model lowered, if that is known.
        Raises: OutOfTimeError.
        """
        from privspec.compile.finite.decision import TableDecision
        from privspec.compile.finite.family import Finite

        deadline = min(self.left, PRICING_SHARE * self.limit * PATIENCE)
        quiet = replace(self.settings, alternatives=False, progress=None, deadline=deadline)
        try:
            found = Finite().decide(model, system or lower(model), quiet)
        except (Failure, SpecError, SolverError, ArithmeticError):
            return None
        return found.loss if isinstance(found, TableDecision) else None

    @property
    def left(self) -> float:
        """Seconds by the clock that one more question may take.

        Raises: OutOfTimeError if there are none.
        """
        left = self.limit - (process_time() - self.started)
        if left <= 0:
            raise OutOfTimeError(None)
        return left * PATIENCE
