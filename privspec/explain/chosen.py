"""Numbers that solving picked, as pages tell them."""

from __future__ import annotations

from dataclasses import dataclass

from privspec.explain.context import Context
from privspec.explain.document import Judged, Sentence, SpecLine, proved
from privspec.explain.quantities import Quantity, rounded
from privspec.model.reports import listing
from privspec.stated import Stated, parse_exact


@dataclass(frozen=True, slots=True)
class ChosenNumber:
    """A number that the solver picked, and the lines that it stands in."""

    name: str
    value: Quantity
    exactly: str
    lines: tuple[SpecLine, ...]

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"

    def sentence(self) -> Sentence:
        """For auditors and engineers, exactly where that is short."""
        short = len(self.exactly) <= 24 and self.exactly != self.value.text
        exactly = f" (exactly {self.exactly})" if short else ""
        return proved(f"The solver chose {self}{exactly}{standing(self.lines)}.", *self.lines[:1], Judged("choices"))


def standing(lines: tuple[SpecLine, ...]) -> str:
    """Where a number stands, behind a comma; empty where no line is known."""
    numbers = [str(line.number) for line in lines]
    return f", which stands in line{'s' if len(numbers) > 1 else ''} {listing(numbers)}" if numbers else ""


def chosen_numbers(plan: Stated, where: Context) -> tuple[ChosenNumber, ...]:
    """Those of a plan, with the lines that they stand in."""
    return tuple(
        ChosenNumber(name, rounded(parse_exact(value), 6), value, where.choices.get(name, ()))
        for name, value in plan.mechanism.scalars.items()
    )
