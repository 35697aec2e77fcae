"""Rules that draw in proportion to votes, with dummy votes or from randomised ballots; all rules by their family."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from privspec.explain.lotteries.rule import Rule
from privspec.explain.lotteries.vote import Vote
from privspec.explain.lotteries.weighted import ExponentialRule, PermuteAndFlipRule
from privspec.explain.lotteries.winner import RandomisedWinner
from privspec.explain.quantities import Quantity, Rounding, exact, parse_exact, rounded, ungrouped
from privspec.model.lotteries import LocalPick, Proportional

_SHORT = 24
"""Characters of a fraction that is printed."""


def _decimal(value: Fraction) -> Quantity:
    """To six digits; exact where that is all."""
    shown = rounded(value, 6)
    same = Fraction(ungrouped(shown.text)) == value
    return Quantity(shown.value, shown.text, Rounding.EXACT) if same else shown


def _shares(scores: Sequence[Fraction]) -> tuple[float, ...]:
    return tuple(float(p) for p in Proportional().law(scores))


@dataclass(frozen=True, slots=True)
class Dictator(Rule):
    """One ticket of a drum; `dummies` more of them, in points, for each alternative."""

    dummies: Fraction

    title: ClassVar[str] = "dummy votes"
    without: ClassVar[str] = "the lottery without dummy tickets"

    def law(self, scores: Sequence[Fraction]) -> tuple[float, ...]:
        """In proportion to points and dummies."""
        return tuple(float(p) for p in Proportional(self.dummies).law(scores))

    def noiseless(self, scores: Sequence[Fraction]) -> tuple[float, ...]:
        """In proportion to points."""
        return _shares(scores)

    def parameter(self) -> tuple[str, Quantity]:
        """Dummies for each alternative."""
        return "dummy votes for each candidate", _decimal(self.dummies)

    def exactly(self) -> str:
        """As a fraction."""
        return str(self.dummies)

    @property
    def tickets(self) -> str:
        """The dummies of one candidate: "1 dummy ticket"."""
        return f"{_decimal(self.dummies)} dummy ticket{'' if self.dummies == 1 else 's'}"

    def total(self, vote: Vote) -> Quantity | None:
        """All tickets in the drum, where the number of voters is public."""
        if vote.voters is None:
            return None
        return _decimal(vote.voters * vote.points.per_ballot + vote.size * self.dummies)

    @property
    def _exactly(self) -> str:
        """The dummies of one candidate, with their fraction where that is short."""
        shown, fraction = _decimal(self.dummies).text, str(self.dummies)
        whole = Fraction(ungrouped(shown)) == self.dummies
        return shown if whole or len(fraction) > _SHORT else f"{shown} (exactly {fraction})"

    def brief(self, vote: Vote) -> str:
        """As tickets of a drum."""
        drum = self.total(vote)
        each = f", {exact(vote.points.per_ballot)} each" if vote.ranked else ""
        votes = f"the votes{each}" if vote.voters is None else f"{vote.voters:,} votes{each}"
        first = f"one of {drum} tickets" if drum else "one ticket"
        return f"{first}: {votes}, and {self.tickets} for each of {vote.size} candidates"

    def told(self, vote: Vote) -> tuple[str, ...]:
        """A drum."""
        if vote.ranked:
            most, per = exact(vote.points.highest), exact(vote.points.per_ballot)
            ticket = f"Your ranking is {per} tickets: {most} with the name of your first choice, one less for each next"
        else:
            ticket = "Your vote is one ticket with the name of your candidate"
        parts = " (a dummy ticket may count for a part of a ticket)" if self.dummies.denominator > 1 else ""
        in_drum = f"{self.tickets} for every candidate {'is' if self.dummies == 1 else 'are'} in the drum"
        return (
            f"The winner is drawn by lot. {ticket}; {in_drum} too{parts}.",
            "One ticket is drawn, and the candidate on it wins. Only the winner is published, not how many votes "
            "anybody got.",
        )

    def executed(self, vote: Vote) -> tuple[str, ...]:
        """Exact shares."""
        of = "Borda points" if vote.ranked else "first choices"
        return (
            f"A candidate with N {of} wins with probability (N + k) / (S + m k), exactly: k = {self._exactly} dummy "
            f"votes for each of m = {vote.size} candidates, S the {of} of all together.",
        )

    def distance(self, vote: Vote, *, adds: bool, local: bool) -> Fraction | None:
        """Replacing: what two ballots can differ by, over all tickets. Adding: from nobody or one to one more.

        With c = m k tickets of dummies and t of votes that all lean against the new one, the chances move by
        (tilt c + apart t) / ((c + t)(c + t + per ballot)); that rises and then falls in t, before the first ballot.
        """
        dummies, per = self.dummies * vote.size, vote.points.per_ballot
        if not dummies:
            return Fraction(1)
        if not adds:
            return vote.apart / ((vote.voters or 1) * per + dummies)
        return max(
            (vote.tilt * dummies + vote.apart * t) / ((dummies + t) * (dummies + t + per)) for t in (0 * per, per)
        )

    def times(self, vote: Vote, *, local: bool) -> Quantity | None:
        """From no point at all to the most that one ballot gives."""
        if not self.dummies:
            return None
        return rounded(1 + vote.points.highest / self.dummies, 4, Rounding.UP)

    def attains(self, vote: Vote, *, adds: bool, local: bool) -> bool:
        """A candidate with one vote loses it to one without any; the others have the rest."""
        return not vote.ranked and not adds and vote.voters is not None and (vote.size > 2 or vote.voters == 1)


@dataclass(frozen=True, slots=True)
class LocalDictator(Rule):
    """Every ballot goes through randomised response, then one of the reports is drawn."""

    ratio: Fraction

    title: ClassVar[str] = "randomised ballots"
    without: ClassVar[str] = "the lottery without noise"

    def law(self, scores: Sequence[Fraction]) -> tuple[float, ...]:
        """A mixture of random dictatorship and the uniform law."""
        return tuple(float(p) for p in LocalPick(self.ratio).law(scores))

    def noiseless(self, scores: Sequence[Fraction]) -> tuple[float, ...]:
        """In proportion to first choices."""
        return _shares(scores)

    def parameter(self) -> tuple[str, Quantity]:
        """How many times as likely the truth is."""
        return "how many times as likely the true choice is as each other", rounded(self.ratio, 6)

    def exactly(self) -> str:
        """As a fraction."""
        return str(self.ratio)

    def truth(self, vote: Vote) -> Quantity:
        """How often a report is true."""
        return rounded(self.ratio / (self.ratio + vote.size - 1), 4)

    def brief(self, vote: Vote) -> str:
        """Reports."""
        return (
            f"each {vote.party} reports the true choice with probability {self.truth(vote)}, else another; one report "
            "is drawn"
        )

    def told(self, vote: Vote) -> tuple[str, ...]:
        """Each draws alone."""
        return (
            f"Your vote is changed at random before it counts: with probability {self.truth(vote)} it stays what it "
            "is, else it becomes one of the other candidates, each as likely as any other.",
            "Then one of these changed votes is drawn like a ticket from a drum, and the candidate on it wins.",
        )

    def executed(self, vote: Vote) -> tuple[str, ...]:
        """Randomised response."""
        return (
            f"Each ballot goes through {vote.size}-randomised response, the true choice r = {self.parameter()[1]} "
            "times as likely as each other (an exact fraction in the plan); then one report is drawn uniformly.",
        )

    def distance(self, vote: Vote, *, adds: bool, local: bool) -> Fraction | None:
        """Of one report where everyone may see it, else of the winner, who is one of the reports."""
        report = (self.ratio - 1) / (self.ratio + vote.size - 1)
        if local:
            return report
        return None if adds or vote.voters is None else report / max(1, vote.voters)

    def times(self, _vote: Vote, *, local: bool) -> Quantity | None:
        """The ratio, of one report."""
        return rounded(self.ratio, 4, Rounding.UP) if local else None

    def attains(self, _vote: Vote, *, adds: bool, local: bool) -> bool:
        """Any two reports."""
        return local


RULES: Mapping[str, Callable[[Mapping[str, Any]], Rule]] = {
    "dictator": lambda m: Dictator(parse_exact(m["dummy_votes"])),
    "exponential": lambda m: ExponentialRule(parse_exact(m["base"])),
    "permute_and_flip": lambda m: PermuteAndFlipRule(parse_exact(m["base"])),
    "local_dictator": lambda m: LocalDictator(parse_exact(m["ratio"])),
    "randomised_winner": lambda m: RandomisedWinner(parse_exact(m["ratio"])),
}
"""How the rule of a plan is read, by its family."""
