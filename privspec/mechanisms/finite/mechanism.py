"""What a mechanism on finite domains must say of itself; one object for each, in a file of its own beside its note."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

from privspec.mechanisms.finite.context import Array, TableContext


@dataclass(frozen=True, eq=False, slots=True)
class Candidate:
    """A mechanism calibrated to a context: its table (X, Y), and one sentence on how it draws."""

    name: str
    table: Array
    text: str
    note: str


@dataclass(frozen=True, eq=False, slots=True)
class Comparison:
    """A mechanism that people use, beside the optimum: its table (X, Y) and its loss in the context.

    `admissible`: it meets the requirement; `reason` says how it is calibrated, or by how much it misses.
    """

    name: str
    table: Array
    loss: float
    admissible: bool
    reason: str
    note: str


class FiniteMechanism(Protocol):
    """A mechanism on finite domains."""

    note: ClassVar[str]
    """Stem of the note that proves its guarantee."""

    def candidates(self, context: TableContext) -> Iterator[Candidate]:
        """Its tables for a context, calibrated to the requirement; none where it does not apply."""
        ...


def shown(value: float) -> str:
    """A number in a sentence."""
    return f"{value:.4g}"


def decay(rate: float, exponent: str) -> str:
    """The power e^(-rate exponent) in a sentence."""
    factor = shown(rate)
    return f"e^(-{exponent})" if factor == "1" else f"e^(-{factor} {exponent})"
