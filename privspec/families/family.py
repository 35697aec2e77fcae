"""What the compiler of every family can do: from graph to plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from privspec.families.cache import SolutionCache
from privspec.families.infeasible import Infeasible
from privspec.model.graph import Model
from privspec.registry import family_of


@dataclass(frozen=True, slots=True)
class Settings:
    """How to solve. `solver` "default" or "cvxpy"; `deadline` in seconds; `progress` as in `solvers.results`.

    `exact` False: only losses in doubles and witnesses are asked for, no plan.
    """

    solver: str = "default"
    tolerance: float = 2e-7
    deadline: float | None = None
    progress: Callable[[int, float, float], None] | None = None
    alternatives: bool = True
    exact: bool = True
    cache: SolutionCache = field(default_factory=SolutionCache)


class Decision(Protocol):
    """The best admissible mechanism of a spec, and those it was compared with."""

    @property
    def name(self) -> str:
        """The mechanism in a few words."""

    @property
    def loss(self) -> float:
        """Its loss."""

    @property
    def lower_bound(self) -> float | None:
        """No mechanism of the family has less; None where nothing is proved."""

    def document(self) -> dict[str, Any]:
        """The plan."""


class Family(Protocol):
    """One way to compile: reductions from the graph to a program of its own, and back."""

    def lower(self, model: Model) -> Any:
        """The spec as numbers, or `Infeasible`.

        Raises: SpecError PS05xx with every construct that cannot be computed yet.
        """

    def decide(self, model: Model, system: Any, settings: Settings) -> Decision | Infeasible:
        """Solve it.

        Raises: SpecError, and the solvers' errors.
        """

    def size(self, system: Any) -> int:
        """Extent of the matrices at hand, for the number of threads."""


def compiler_of(model: Model) -> Family:
    """What compiles a spec."""
    found: Family = family_of(model).compiles()
    return found
