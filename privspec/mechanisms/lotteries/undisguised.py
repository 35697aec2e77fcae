"""Random dictatorship as it is, without dummy votes (notes/no-dummies.md): no epsilon at all."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from privspec.mechanisms.lotteries.keeping import TREATS_ALIKE, TRUTHFUL, undominated
from privspec.mechanisms.lotteries.rule import Calibrated, Property, VotingTask
from privspec.model.lotteries import Proportional


@dataclass(frozen=True, slots=True)
class Undisguised:
    """The winner in proportion to the points alone: Torra's Method 1, or Borda's lottery."""

    family: ClassVar[str] = "none"
    notes: ClassVar[tuple[str, ...]] = ("no-dummies",)

    @property
    def lottery(self) -> Proportional:
        """S_a / sum S."""
        return Proportional()

    def properties(self, task: VotingTask) -> tuple[Property, ...]:
        """Strategy-proof; with first choices ex-post efficient too, and nothing else is all three (Gibbard 1977)."""
        return (TREATS_ALIKE, undominated(task, self.lottery), TRUTHFUL)

    def to_json(self) -> dict[str, Any]:
        """No dummy votes."""
        return {"family": self.family, "dummy_votes": "0"}


class NoDummies:
    """Never admissible; it is listed to say why."""

    family: ClassVar[str] = "none"
    name: ClassVar[str] = "no dummy votes"
    note: ClassVar[str] = "no-dummies"
    draw: ClassVar[Undisguised] = Undisguised()

    def calibrate(self, task: VotingTask, epsilon: Fraction) -> Calibrated | str:
        """Always a refusal."""
        return (
            "an alternative that nobody else supports can win only if one voter chose it: the winner then reveals "
            "that vote, and no epsilon allows that"
        )
