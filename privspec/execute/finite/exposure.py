"""What a run of a table shows, for the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from privspec.core.rounding import log_up
from privspec.execute.budget import Spend
from privspec.execute.family import Exposure, Plan
from privspec.execute.finite.table import TableLaw
from privspec.execute.rounds import Rounds
from privspec.model.measures import MetricDP

if TYPE_CHECKING:
    from privspec.model.graph import Model


@dataclass(frozen=True, eq=False, slots=True)
class TableExposure(Exposure):
    """All outputs of a table are drawn jointly.

    Local reports cost each person their own budget, all the same amount, so one run is one debit.
    """

    plan: Plan

    @property
    def outputs(self) -> frozenset[str]:
        """All that is released."""
        return frozenset(str(name) for name in self.plan["mechanism"]["releases"])

    @property
    def rounds(self) -> Rounds | None:
        """As the plan states them."""
        return Rounds.of_plan(self.plan)

    def covers(self, requirement: int, outputs: frozenset[str]) -> bool:
        """It names all outputs."""
        return self.outputs <= outputs

    def joint_spend(self, model: Model, requirement: int) -> Spend | None:
        """The least pure epsilon of the joint output over the rows that the requirement compares."""
        from privspec.model.worlds import worlds

        found = model.requirements[requirement]
        if isinstance(found.measure, MetricDP):
            return None
        law = TableLaw.of_plan(self.plan)
        ratio = Fraction(1)
        for a, b in worlds(model).neighbours(found).pairs.tolist():
            one, other = law.laws[a], law.laws[b]
            for top, bottom in zip(one.weights, other.weights, strict=True):
                if top and not bottom:
                    return None
                # cross-multiplied: building a fraction for each entry would take the greatest common divisor
                left, right = top * other.total, bottom * one.total
                if left * ratio.denominator > right * ratio.numerator:
                    ratio = Fraction(left, right)
        return Spend(pure=log_up(ratio))
