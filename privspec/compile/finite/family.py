"""The finite family: any law of the outputs, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privspec.compile.finite.conflicts import explain_infeasible
from privspec.compile.finite.lower import lower
from privspec.compile.finite.program import Lowered, to_program
from privspec.compile.finite.system import FiniteSystem
from privspec.compile.infeasible import Infeasible
from privspec.compile.problem import Settings
from privspec.core.diagnostics import Diagnostic, Label, SpecError
from privspec.model.graph import Model
from privspec.model.reports import Failure
from privspec.model.worlds import finite
from privspec.solvers.table_programs import InfeasibleTable, TableSolution
from privspec.solvers.tables import solve_table


@dataclass(frozen=True, eq=False, slots=True)
class TableDecision:
    """An exact table with the program that it is the optimum of."""

    model: Model
    system: FiniteSystem
    lowered: Lowered
    solution: TableSolution
    settings: Settings

    @property
    def name(self) -> str:
        """The mechanism in a few words."""
        rows, columns = self.system.shape
        return f"table of {rows} x {columns} probabilities"

    @property
    def exact_loss(self) -> Fraction:
        """The loss of the exact table."""
        return self.solution.value + self.system.offset - self._overstated

    @property
    def _overstated(self) -> Fraction:
        """By how much the scalars that stand for worst cases exceed what they stand for, weighted."""
        exact = self.solution.exact
        scalars = dict(zip(self.lowered.program.extra.names, exact.extra, strict=False))
        over = Fraction(0)
        for k, (weight, worst) in enumerate(self.system.worst):
            if f"worst:{k}" in scalars:
                rows = zip(worst, exact.numerators, strict=True)
                largest = max(sum(c * n for c, n in zip(*row, strict=True)) for row in rows) / exact.denominator
                over += weight * (scalars[f"worst:{k}"] - largest)
        return over

    @property
    def exact_bound(self) -> Fraction:
        """A certified bound on the loss of every table."""
        return self.solution.lower_bound + self.system.offset

    @property
    def loss(self) -> float:
        """The loss, rounded up."""
        return float_up(self.exact_loss)

    @property
    def lower_bound(self) -> float | None:
        """The bound, rounded down."""
        return -float_up(-self.exact_bound)

    def document(self) -> dict[str, Any]:
        """The plan."""
        from privspec.compile.finite.raising import raise_table

        return raise_table(self)


def float_up(value: Fraction) -> float:
    """The least double that is not below an exact number."""
    from math import inf, nextafter

    near = float(value)
    return near if Fraction(near) >= value else nextafter(near, inf)


class Finite:
    """Takes specs whose inputs and outputs all have finitely many values."""

    def accepts(self, model: Model) -> bool:
        """Whether every input and output is finite."""
        return finite(model)

    def lower(self, model: Model) -> FiniteSystem:
        """Rows, columns, costs and lines in exact numbers."""
        return lower(model)

    def decide(self, model: Model, system: FiniteSystem, settings: Settings) -> TableDecision | Infeasible:
        """The table of least loss."""
        try:
            lowered = to_program(system)
        except Failure as failure:
            raise SpecError(
                Diagnostic(
                    failure.code, failure.message, (Label(failure.span),), help=failure.help, source=model.source
                )
            ) from failure
        found = solve_table(lowered.program, deadline=settings.deadline, progress=settings.progress, cost=lowered.cost)
        if isinstance(found, InfeasibleTable):
            return explain_infeasible(model, lowered, found)
        return TableDecision(model, system, lowered, found, settings)

    def size(self, system: FiniteSystem) -> int:
        """Rows and columns."""
        return max(system.shape)
