"""Permute-and-flip over alternatives, by their points (notes/weighted-votes.md)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from privspec.mechanisms.lotteries.rule import Calibrated, VotingTask
from privspec.mechanisms.lotteries.weights import Weighted, base_of
from privspec.model.lotteries import PermuteAndFlip


@dataclass(frozen=True, slots=True)
class PermutedVotes(Weighted):
    """Alternatives in random order, each taken with probability base^(points - most points)."""

    family: ClassVar[str] = "permute_and_flip"

    @property
    def lottery(self) -> PermuteAndFlip:
        """The same as the largest of points with exponential noise."""
        return PermuteAndFlip(self.base)

    def single(self, task: VotingTask) -> tuple[Fraction, bool] | None:
        """When adding: x for T > 0, as for an alternative that stays behind. When replacing: known for m = 2 only."""
        x, m, voters = self.base, len(task.alternatives), task.voters
        if task.adding and voters:
            return x, True
        if task.adding:
            chosen, *others = self.lottery.law([Fraction(1), *[Fraction(0)] * (m - 1)])
            return max(m * chosen, 1 / (m * others[0])), True
        if not task.adding and m == 2:
            return (2 * x - 1 if voters == 1 else x**2), True
        return None


class PermuteAndFlipRule:
    """The same base as the exponential mechanism: never a smaller chance for the alternatives with most points."""

    family: ClassVar[str] = "permute_and_flip"
    name: ClassVar[str] = "permute-and-flip"
    note: ClassVar[str] = "weighted-votes"

    def calibrate(self, task: VotingTask, epsilon: Fraction) -> Calibrated | str:
        """For every size at once."""
        base = base_of(task, epsilon)
        return base if isinstance(base, str) else PermutedVotes(base)
