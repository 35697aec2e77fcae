"""The exponential mechanism over alternatives, by their points (notes/weighted-votes.md)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from privspec.mechanisms.lotteries.rule import Calibrated, VotingTask
from privspec.mechanisms.lotteries.weights import Weighted, largest_base, power
from privspec.model.lotteries import Exponential


@dataclass(frozen=True, slots=True)
class ExponentialVotes(Weighted):
    """The winner in proportion to base^points."""

    family: ClassVar[str] = "exponential"
    groups: ClassVar[bool] = True

    @property
    def lottery(self) -> Exponential:
        """base^S_a / sum."""
        return Exponential(self.base)

    def single(self, task: VotingTask) -> tuple[Fraction, bool]:
        """From a unanimous electorate: x (x^T + m - 1) / (x^(T-1) + x + m - 2); when adding the larger of two.

        Where g ballots are replaced, x^g in place of x, and T - g in place of T - 1.
        """
        assert task.voters is not None
        x, m = self.base, len(task.alternatives)
        y = power(x, task.voters)
        if y is None:
            return x ** (1 if task.adding else 2 * task.moved), False
        if task.adding:
            return max(x * (y + m - 1) / (y + x + m - 2), (x * y + m - 1) / (y + m - 1)), True
        gone = x**task.moved
        return gone * (y + m - 1) / (y / gone + gone + m - 2), True


class ExponentialRule:
    """The largest base: e^(epsilon / (2 g h)) when replacing, e^(epsilon / (g h)) when adding; more for few voters."""

    family: ClassVar[str] = "exponential"
    name: ClassVar[str] = "exponential mechanism"
    note: ClassVar[str] = "weighted-votes"

    def calibrate(self, task: VotingTask, epsilon: Fraction) -> Calibrated | str:
        """For the number of voters where it is public, else for every number at once."""
        base = largest_base(ExponentialVotes, task, epsilon)
        return base if isinstance(base, str) else ExponentialVotes(base)
