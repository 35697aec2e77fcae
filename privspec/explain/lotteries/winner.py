"""The rule that turns the winner at random: nothing else of the votes counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from privspec.explain.lotteries.rule import Rule
from privspec.explain.lotteries.vote import Vote
from privspec.explain.quantities import Quantity, Rounding, rounded
from privspec.model.lotteries import Largest, RandomisedLargest


@dataclass(frozen=True, slots=True)
class RandomisedWinner(Rule):
    """Randomised response of the candidate with most points."""

    ratio: Fraction

    title: ClassVar[str] = "randomised response of the winner"
    without: ClassVar[str] = "plurality without noise"
    adds_up: ClassVar[bool] = False

    def law(self, scores: Sequence[Fraction]) -> tuple[float, ...]:
        """Two probabilities."""
        return tuple(float(p) for p in RandomisedLargest(self.ratio).law(scores))

    def noiseless(self, scores: Sequence[Fraction]) -> tuple[float, ...]:
        """All on the largest."""
        return tuple(float(p) for p in Largest().law(scores))

    def parameter(self) -> tuple[str, Quantity]:
        """How many times as likely the candidate is who has most votes."""
        return "how many times as likely the candidate with most votes is as each other", rounded(self.ratio, 6)

    def exactly(self) -> str:
        """As a fraction."""
        return str(self.ratio)

    def truth(self, vote: Vote) -> Quantity:
        """How often the candidate with most votes wins."""
        return rounded(self.ratio / (self.ratio + vote.size - 1), 4)

    def brief(self, vote: Vote) -> str:
        """The winner, or another."""
        counted = "points" if vote.ranked else "votes"
        rest = "the other" if vote.size == 2 else f"one of the other {vote.size - 1}, each as likely as any other"
        return f"the candidate with most {counted} with probability {self.truth(vote)}, else {rest}"

    def told(self, vote: Vote) -> tuple[str, ...]:
        """A draw between the leader and the rest."""
        counted = "points" if vote.ranked else "votes"
        ballot = (
            "Your ranking gives points: the most to your first choice, one less to each next. " if vote.ranked else ""
        )
        rest = (
            "the other one wins" if vote.size == 2 else "one of the others is drawn by lot, each as likely as any other"
        )
        return (
            f"The winner is drawn by lot. {ballot}The {counted} are counted, but the candidate with the most {counted} "
            f"does not always win: it does with probability {self.truth(vote)}; else {rest}. Of several with equally "
            "many the one that is named first in the list of candidates counts as the one with the most.",
            "How far ahead that candidate is makes no difference. Only the winner is published, not how many "
            f"{counted} anybody got.",
        )

    def executed(self, vote: Vote) -> tuple[str, ...]:
        """Randomised response."""
        of = "Borda points" if vote.ranked else "first choices"
        return (
            f"The candidate with most {of}, of several the one declared first, goes through {vote.size}-randomised "
            f"response: it is r = {self.parameter()[1]} times as likely to win as each other candidate (an exact "
            "fraction in the plan, rounded towards privacy), whatever the lead.",
        )

    def distance(self, vote: Vote, *, adds: bool, local: bool) -> Fraction | None:
        """From one winner to another: (r - 1) / (r + m - 1), for any relation."""
        return (self.ratio - 1) / (self.ratio + vote.size - 1)

    def times(self, _vote: Vote, *, local: bool) -> Quantity | None:
        """The ratio."""
        return rounded(self.ratio, 4, Rounding.UP)

    def attains(self, vote: Vote, *, adds: bool, local: bool) -> bool:
        """Two elections whose winners differ by one ballot."""
        return not local and vote.voters != 0
