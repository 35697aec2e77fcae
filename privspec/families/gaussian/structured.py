"""Gaussian noise of strategies with structure: of problems for which no matrix is laid out, long rows and large tables.

A strategy offers noise as it is executed, with what shows that no other noise is better; ranking, guarantees, prices
and the plan are the same for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import floor, log2
from time import perf_counter
from typing import Any, TypeVar

from privspec.core.diagnostics import InternalError
from privspec.core.records import dataclass, field
from privspec.core.rounding import graded
from privspec.families.decision import (
    Alternative,
    Decided,
    gaussian_prices,
    guarantee,
    increased,
    price,
    ranked,
    stated_mu,
)
from privspec.families.family import Settings
from privspec.kernel.core.problem import Frame, Obligation, notes_of
from privspec.kernel.core.reading import JsonNode
from privspec.kernel.writing import write
from privspec.model.graph import Model
from privspec.model.requirements import Requirement
from privspec.problem.elaborate import elaborate

OUTPUT_STEPS = 14
"""What is released lies on a grid of at least 2^14 steps in its deviation."""
BINDS = 1e-9
"""Share of the loss from which on a tenth more of an amount is said to bring something."""
TRIES, WIDER = 40, 4
"""How often noise is made larger until it meets every line exactly, and by how many times as much each time."""
Executed = TypeVar("Executed")


@dataclass(frozen=True, eq=False, slots=True)
class System:
    """A spec in numbers: its problem, of one block."""

    model: Model
    frame: Frame

    @property
    def block(self) -> Any:
        """What is released, and what an error costs."""
        return self.frame.blocks[0]

    @property
    def lines(self) -> list[tuple[Requirement, Obligation]]:
        """What is asked, as the spec and as the problem say it."""
        return list(zip(self.model.requirements, self.frame.obligations, strict=True))

    @property
    def mus(self) -> list[float]:
        """The mu that each line allows."""
        return [float(line.measure.gaussian_mu_down() or 0) for line in self.model.requirements]

    def mu_of(self, number: int) -> str | None:
        """At least the mu that a line of two amounts allows, in a bound."""
        measure = self.model.requirements[number].measure
        return stated_mu(measure, measure.gaussian_mu_down())


@dataclass(frozen=True, eq=False, slots=True)
class Offer:
    """Noise of one strategy: its loss, how it stands in the plan, and what bounds all other noise.

    `reached`: for each line the amounts that it reaches; `notes`: where that is proved. `bound`: what a witness proves,
    as the kernel derives it, of the class `among`.
    """

    name: str
    loss: float
    mechanism: Mapping[str, Any]
    reached: Sequence[Mapping[str, str]]
    notes: tuple[str, ...]
    witness: Mapping[str, Any]
    bound: Callable[[JsonNode], Fraction]
    among: str
    prices: Callable[[], Iterable[dict[str, Any]]]
    solver: Mapping[str, Any]
    others: tuple[Alternative, ...] = field(default=())
    """Usual ways to add noise, beside it."""

    def decided(self, system: System, others: tuple[Alternative, ...], seconds: float) -> Decided:
        """As a decision."""
        block = system.block
        return Decided(
            system.model,
            self.name,
            self.loss,
            lambda: self._stated(system),
            lambda: self.bound(JsonNode(self.witness, "bound")),
            self.among,
            block.units,
            "worst" if getattr(block, "worst", False) else "expected",
            others,
            self.prices,
            {**self.solver, "seconds": seconds},
            program=lambda: "the special solver of this structure has a program that is not stated in cvxpy",
        )

    def _stated(self, system: System) -> dict[str, Any]:
        guarantees = []
        for number, ((requirement, asked), achieved) in enumerate(zip(system.lines, self.reached, strict=True)):
            group = notes_of(asked.units)
            guarantees.append(guarantee(requirement, number, achieved, (*self.notes, *group)))
        own = {"problem": write(system.frame), "mechanism": self.mechanism, "guarantees": guarantees}
        return own | {"claims": {"bound": self.witness}}


class Structured(ABC):
    """Takes specs whose strategies have a structure."""

    @abstractmethod
    def offers(self, system: System, settings: Settings) -> Iterator[Offer]:
        """Noise of each strategy, with the ways that it is compared with where the settings ask for them."""

    def lower(self, model: Model) -> System:
        """The problem."""
        return System(model, elaborate(model))

    def decide(self, model: Model, system: System, settings: Settings) -> Decided:
        """The noise of least loss."""
        started = perf_counter()
        found = list(self.offers(system, settings))
        best, *rest = sorted(found, key=lambda one: graded(one.loss))
        others = (*(Alternative(one.name, one.loss) for one in rest), *found[0].others)
        compared = ranked(others) if settings.alternatives else ()
        return best.decided(system, compared, perf_counter() - started)


def grown(spare: float, build: Callable[[float], Executed], meets: Callable[[Executed], bool]) -> Executed:
    """What is built with the least spare noise, of some, with which it meets every line exactly."""
    for _ in range(TRIES):
        found = build(spare)
        if meets(found):
            return found
        spare *= WIDER
    raise InternalError("the noise that was found does not meet the lines")


def finest(variance: float) -> int:
    """The exponent of a power of two fine enough for the least noisy number."""
    return min(floor(log2(variance) / 2) - OUTPUT_STEPS, -20)


def prices(model: Model, loss: Callable[[list[float]], float], now: float) -> Iterator[dict[str, Any]]:
    """What more of each amount brings that says how much Gaussian noise there is: one line scales, several bind.

    Args: loss, the least at the mu of each line; now, that of the spec.
    """
    lines = model.requirements
    if len(lines) == 1:
        yield from gaussian_prices(lines[0])
        return
    for index, requirement in enumerate(lines):
        for amount, more in increased(requirement):
            eased = [*lines[:index], more, *lines[index + 1 :]]
            after = loss([float(line.measure.gaussian_mu_down() or 0) for line in eased]) / now
            if after < 1 - BINDS:
                yield price(requirement, after - 1, amount)
