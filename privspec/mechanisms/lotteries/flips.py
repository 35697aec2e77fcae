"""Permute-and-flip over alternatives, by their points (notes/weighted-votes.md)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import ClassVar

from privspec.mechanisms.lotteries.rule import Calibrated, VotingTask
from privspec.mechanisms.lotteries.weights import Weighted, largest_base, power
from privspec.model.lotteries import PermuteAndFlip


@dataclass(frozen=True, slots=True)
class PermutedVotes(Weighted):
    """Alternatives in random order, each taken with probability base^(points - most points)."""

    family: ClassVar[str] = "permute_and_flip"

    @property
    def lottery(self) -> PermuteAndFlip:
        """The same as the largest of points with exponential noise."""
        return PermuteAndFlip(self.base)

    def single(self, task: VotingTask) -> tuple[Fraction, bool]:
        """When adding: x for T > 0, as for one that stays behind. When replacing: from a unanimous electorate.

        Replacing, T > 1: x^2 A(x / x^T) / A(1 / x^T), which tends to x^2 with T.
        """
        assert task.voters is not None
        x, m, voters = self.base, len(task.alternatives), task.voters
        if task.adding and voters:
            return x, True
        if voters < 2:
            chosen, *others = self.lottery.law([Fraction(1), *[Fraction(0)] * (m - 1)])
            return (max(m * chosen, 1 / (m * others[0])) if task.adding else chosen / others[0]), True
        ahead = power(x, voters)
        if m == 2 or ahead is None:
            return x**2, m == 2
        return x**2 * _behind(x / ahead, m - 2) / _behind(1 / ahead, m - 2), True


def _behind(chance: Fraction, others: int) -> Fraction:
    """A(y), the integral over t in [0, 1] of (1 - t) (1 - t y)^others: nobody who is before, at t, is taken."""
    return sum((comb(others, k) * (-chance) ** k / ((k + 1) * (k + 2)) for k in range(others + 1)), Fraction(0))


class PermuteAndFlipRule:
    """At one base never a smaller chance for the alternatives with most points than the exponential mechanism gives."""

    family: ClassVar[str] = "permute_and_flip"
    name: ClassVar[str] = "permute-and-flip"
    note: ClassVar[str] = "weighted-votes"

    def calibrate(self, task: VotingTask, epsilon: Fraction) -> Calibrated | str:
        """For the number of voters where it is public, else for every number at once."""
        base = largest_base(PermutedVotes, task, epsilon)
        return base if isinstance(base, str) else PermutedVotes(base)
