"""The linear family: answers that are linear in the data, with unbiased additive noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privspec.compile.choose import Choice, choose
from privspec.compile.infeasible import Infeasible
from privspec.compile.lower import lower
from privspec.compile.problem import Problem, Settings
from privspec.compile.program import LinearSystem
from privspec.compile.raising import raise_plan
from privspec.model.graph import Model


@dataclass(frozen=True, eq=False, slots=True)
class LinearDecision:
    """A chosen release with its problem."""

    problem: Problem
    choice: Choice

    @property
    def name(self) -> str:
        """The mechanism in a few words."""
        return self.choice.chosen.name

    @property
    def loss(self) -> float:
        """Its loss."""
        return self.choice.chosen.loss

    @property
    def lower_bound(self) -> float | None:
        """No mechanism that the plan names has less."""
        return self.choice.chosen.lower_bound

    def document(self) -> dict[str, Any]:
        """The plan."""
        return raise_plan(self.problem, self.choice.chosen, self.choice.others)


class Linear:
    """Takes every spec that no other family takes: what it cannot compute it refuses with a reason."""

    def lower(self, model: Model) -> LinearSystem | Infeasible:
        """The linear system."""
        return lower(model)

    def decide(self, model: Model, system: LinearSystem, settings: Settings) -> LinearDecision | Infeasible:
        """The admissible release of least loss."""
        problem = Problem(model, system, settings)
        found = choose(problem)
        return found if isinstance(found, Infeasible) else LinearDecision(problem, found)

    def size(self, system: LinearSystem) -> int:
        """The smaller side of the map from inputs to outputs."""
        return min(system.outputs_count, system.inputs_count)
