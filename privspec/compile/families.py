"""The families of mechanisms that the compiler knows; each takes the specs that are its own, from graph to plan."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

from privspec.compile.infeasible import Infeasible
from privspec.compile.problem import Settings
from privspec.model.graph import Model
from privspec.problem.elaborate import reading_of


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


FAMILIES = {
    "votes": ("privspec.compile.lotteries.family", "Lotteries"),
    "tables": ("privspec.compile.finite.family", "Finite"),
    "statistics": ("privspec.compile.statistics.family", "Statistics"),
    "linear": ("privspec.compile.linear", "Linear"),
}
"""Where the family of each reading of `problem.elaborate` stands: only that of the spec is loaded."""


def family_of(model: Model) -> Family:
    """The family of a spec: that of the forms in which its problem is said."""
    module, name = FAMILIES[reading_of(model)]
    found: Family = getattr(import_module(module), name)()
    return found
