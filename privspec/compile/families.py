"""The families of mechanisms that the compiler knows; each takes the specs that are its own, from graph to plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from privspec.compile.infeasible import Infeasible
from privspec.compile.problem import Settings
from privspec.model.graph import Model


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

    def accepts(self, model: Model) -> bool:
        """Whether the spec is one of its own."""

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


def family_of(model: Model) -> Family:
    """The family of a spec, the first that accepts it.

    Lotteries for votes beyond tables, tables where all is finite, noisy statistics for functions that offer routes,
    else linear.
    """
    return next(family for family in _families() if family.accepts(model))


def _families() -> Iterator[Family]:
    """In this order, each loaded when it is asked: most of the time before a vote is solved would go into imports."""
    from privspec.compile.lotteries.family import Lotteries

    yield Lotteries()
    from privspec.compile.finite.family import Finite

    yield Finite()
    from privspec.compile.statistics.family import Statistics

    yield Statistics()
    from privspec.compile.linear import Linear

    yield Linear()
