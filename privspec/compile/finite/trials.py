"""Changed specs, tried out: whether any table meets them, and what the best one would cost, within a limit of time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import process_time

from privspec.compile.finite.lower import lower
from privspec.compile.finite.program import to_program
from privspec.compile.problem import Settings
from privspec.core.diagnostics import SpecError
from privspec.model.graph import Model
from privspec.model.reports import Failure
from privspec.solvers.results import OutOfTimeError, SolverError, Watch
from privspec.solvers.table_programs import TableProgram, TableSolution
from privspec.solvers.table_support import has_table
from privspec.solvers.tables import solve_table

PRICING_SHARE = 0.25
"""Share of the limit that one price may take."""
PATIENCE = 4.0
"""Seconds by the clock that a second of work may take: other programs may want the machine too."""


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

    def exact(self, model: Model) -> TableSolution | None:
        """An exact table that meets the spec, whatever it costs.

        Raises: OutOfTimeError.
        """
        program = self.constraints(model)
        if program is None:
            return None
        try:
            found = solve_table(program, deadline=self.left)
        except (SolverError, ArithmeticError):
            return None
        return found if isinstance(found, TableSolution) else None

    def loss(self, model: Model) -> float | None:
        """The loss of the best table; None if it was not found within its share of the time, or there is none."""
        from privspec.compile.finite.decision import TableDecision
        from privspec.compile.finite.family import Finite

        deadline = min(self.left, PRICING_SHARE * self.limit * PATIENCE)
        quiet = replace(self.settings, alternatives=False, progress=None, deadline=deadline)
        try:
            found = Finite().decide(model, lower(model), quiet)
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
