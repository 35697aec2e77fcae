"""Randomised response of the plurality winner (notes/randomised-winner.md)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from privspec.mechanisms.lotteries.keeping import TREATS_ALIKE, inefficient, swayed
from privspec.mechanisms.lotteries.rounding import growth_simple, log_up
from privspec.mechanisms.lotteries.rule import Calibrated, Property, VotingTask
from privspec.model.lotteries import RandomisedLargest


@dataclass(frozen=True, slots=True)
class TurnedWinner:
    """The alternative with most points, the first declared among equals, `odds` > 1 times as likely as each other."""

    odds: Fraction
    family: ClassVar[str] = "randomised_winner"
    notes: ClassVar[tuple[str, ...]] = ("randomised-winner",)

    @property
    def lottery(self) -> RandomisedLargest:
        """The winner with probability odds / (odds + m - 1)."""
        return RandomisedLargest(self.odds)

    def ratio(self, task: VotingTask) -> Fraction:
        """The odds, for every relation, group and size: at each some ballot decides who has most points."""
        return Fraction(1) if task.constant else self.odds

    def exact(self, task: VotingTask) -> bool:
        """Always."""
        return True

    def epsilon(self, task: VotingTask) -> Fraction:
        """log(odds)."""
        return log_up(self.ratio(task))

    def properties(self, task: VotingTask) -> tuple[Property, ...]:
        """Strategy-proof for two alternatives only, as plurality is; never ex-post efficient."""
        return (TREATS_ALIKE, inefficient(task, self.lottery), swayed(task, self.lottery))

    def to_json(self) -> dict[str, Any]:
        """How much more likely the winner is than each other alternative."""
        return {"family": self.family, "ratio": str(self.odds)}


class RandomisedWinner:
    """One draw from a function of the votes: whatever changes in these, the odds are e^epsilon."""

    family: ClassVar[str] = "randomised_winner"
    name: ClassVar[str] = "randomised response of the winner"
    note: ClassVar[str] = "randomised-winner"

    def calibrate(self, task: VotingTask, epsilon: Fraction) -> Calibrated | str:
        """Rounded down to a simple rational; the same for groups."""
        if epsilon <= 0:
            return "with epsilon 0 no lottery may depend on the votes"
        return TurnedWinner(1 + growth_simple(epsilon))
