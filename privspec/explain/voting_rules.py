"""Rules that draw a winner by lot: what is voted on, and what each rule does, in figures and in words.

Laws are doubles for display; the plan holds the parameters exactly and `privspec verify` works with those.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.polynomial.legendre import leggauss

from privspec.explain.quantities import Quantity, Rounding, count, exact, parse_exact, rounded, ungrouped
from privspec.model.lotteries import (
    Ballot,
    Borda,
    FirstChoice,
    Largest,
    LocalPick,
    Points,
    Proportional,
    RandomisedLargest,
)
from privspec.model.values import Symbol, show

Counted: TypeAlias = Sequence[tuple[Ballot, int]]
"""Ballots, each with how often it was cast."""
_POINTS: Mapping[str, type[FirstChoice] | type[Borda]] = {"first choice": FirstChoice, "borda": Borda}


@dataclass(frozen=True, slots=True)
class Vote:
    """An election: `voters` is None where their number is secret, `names` are the alternatives as words.

    `ballots` is "first choice", "ranking" or "partial ranking".
    """

    input: str
    party: str
    voters: int | None
    ballots: str
    output: str
    points: Points
    names: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many alternatives there are."""
        return len(self.names)

    @property
    def people(self) -> str:
        """Those who vote, in the plural."""
        return f"{self.party}s"

    @property
    def ranked(self) -> bool:
        """Whether ballots are rankings whose whole order counts."""
        return isinstance(self.points, Borda)

    @property
    def apart(self) -> Fraction:
        """The most that one ballot's points can differ from another's: half the sum of absolute differences."""
        return Fraction(self.size**2 // 2, 2) if self.ranked else Fraction(1)

    @property
    def tilt(self) -> Fraction:
        """The most that one ballot's points can differ from an even spread, in the same measure."""
        return self.apart / 2 if self.ranked else Fraction(self.size - 1, self.size)

    def totals(self, counted: Counted) -> tuple[Fraction, ...]:
        """The points of each alternative.

        Raises: ValueError if a ballot names what is no alternative.
        """
        found = [Fraction(0)] * self.size
        for ballot, times in counted:
            found = [a + times * b for a, b in zip(found, self.points.of(ballot), strict=True)]
        return tuple(found)

    def firsts(self, counted: Counted) -> tuple[int, ...]:
        """How many put each alternative first."""
        first = FirstChoice(self.points.alternatives)
        found = [0] * self.size
        for ballot, times in counted:
            found = [a + times * int(b) for a, b in zip(found, first.of(ballot), strict=True)]
        return tuple(found)

    def ballot(self, first: int) -> Ballot:
        """A ballot with one alternative on top; where all are ranked, the others follow in the order declared."""
        items = self.points.alternatives
        if not self.ranked:
            return items[first]
        return (items[first], *(item for i, item in enumerate(items) if i != first))

    def to_json(self) -> dict[str, object]:
        return {
            "input": self.input,
            "party": self.party,
            "voters": self.voters,
            "ballots": self.ballots,
            "output": self.output,
            "points": self.points.name,
            "points_of_a_ballot": str(self.points.per_ballot),
            "most_points": str(self.points.highest),
            "alternatives": list(self.names),
        }


def read_vote(mechanism: Mapping[str, Any]) -> Vote:
    """The election of a plan's mechanism.

    Raises: KeyError, ValueError if it is not of the form of this family.
    """
    alternatives = tuple(_symbol(item) for item in mechanism["alternatives"])
    if len(alternatives) < 2 or len(set(alternatives)) < len(alternatives):
        raise ValueError("a lottery has two alternatives or more, all different")
    kind = str(mechanism.get("points", "first choice"))
    if kind not in _POINTS:
        raise ValueError(f"points {kind!r} are not known")
    voters = mechanism.get("voters")
    return Vote(
        input=str(mechanism["input"]),
        party=str(mechanism.get("party") or "voter"),
        voters=None if voters is None else int(voters),
        ballots=str(mechanism.get("ballots", "first choice")),
        output=str(mechanism["output"]),
        points=_POINTS[kind](alternatives),
        names=tuple(show(item) for item in alternatives),
    )


def _symbol(item: object) -> Symbol:
    """A word, or a number that was declared as one."""
    try:
        return parse_exact(item)
    except ValueError:
        return str(item)


@dataclass(frozen=True, slots=True)
class Rule(ABC):
    """How the winner is drawn from the points of the ballots."""

    title: ClassVar[str]
    """The rule by name."""
    without: ClassVar[str] = "the lottery without noise"
    """What it is compared with."""
    adds_up: ClassVar[bool] = True
    """Whether several ballots together can move the chances further than one of them."""

    @abstractmethod
    def law(self, scores: Sequence[Fraction]) -> tuple[float, ...]:
        """The chances of the alternatives, given their points."""

    @abstractmethod
    def noiseless(self, scores: Sequence[Fraction]) -> tuple[float, ...]:
        """Their chances in the lottery without noise."""

    @abstractmethod
    def parameter(self) -> tuple[str, Quantity]:
        """The name of its one parameter, and its value."""

    @abstractmethod
    def exactly(self) -> str:
        """The parameter as the plan holds it."""

    @abstractmethod
    def brief(self, vote: Vote) -> str:
        """The draw in a clause, for a table."""

    @abstractmethod
    def told(self, vote: Vote) -> tuple[str, ...]:
        """The draw in plain sentences for the people who vote."""

    @abstractmethod
    def executed(self, vote: Vote) -> tuple[str, ...]:
        """The draw for auditors, step by step."""

    def total(self, _vote: Vote) -> Quantity | None:
        """The tickets of a drum, if there is one and the number of voters is public."""
        return None

    def distance(self, _vote: Vote, *, adds: bool, local: bool) -> Fraction | None:
        """How far one ballot can move the chances (total variation); None where only epsilon bounds it."""
        return None

    def times(self, _vote: Vote, *, local: bool) -> Quantity | None:
        """The largest factor by which one ballot can change the chance of a winner; None: as epsilon says."""
        return None

    def attains(self, _vote: Vote, *, adds: bool, local: bool) -> bool:
        """Whether two neighbouring elections attain epsilon and the distance both, in both directions."""
        return False

    def to_json(self) -> dict[str, object]:
        name, value = self.parameter()
        return {"title": self.title, "parameter": name, "value": value.to_json(), "exactly": self.exactly()}


@dataclass(frozen=True, slots=True)
class ExponentialRule(Rule):
    """Each candidate in proportion to base^votes."""

    base: Fraction

    title: ClassVar[str] = "exponential mechanism"
    without: ClassVar[str] = "plurality without noise"

    def law(self, scores: Sequence[Fraction]) -> tuple[float, ...]:
        weights = _weights(self.base, scores)
        return tuple(float(w) for w in weights / weights.sum())

    def noiseless(self, scores: Sequence[Fraction]) -> tuple[float, ...]:
        first = list(scores).index(max(scores))
        return tuple(float(i == first) for i in range(len(scores)))

    def parameter(self) -> tuple[str, Quantity]:
        return "base", rounded(self.base, 6)

    def exactly(self) -> str:
        return str(self.base)

    def brief(self, vote: Vote) -> str:
        return f"each of {vote.size} candidates in proportion to {self.parameter()[1]} to the power of its votes"

    def told(self, vote: Vote) -> tuple[str, ...]:
        return (
            "The winner is drawn by lot, and the candidate with the most votes has the best chances.",
            f"Every vote makes the tickets of its candidate {self.parameter()[1]} times as many; one ticket is drawn.",
        )

    def executed(self, vote: Vote) -> tuple[str, ...]:
        return (
            f"A candidate with N votes is drawn in proportion to b^N, b = {self.parameter()[1]} (an exact fraction in "
            "the plan, rounded towards privacy).",
        )


@dataclass(frozen=True, slots=True)
class PermuteAndFlipRule(ExponentialRule):
    """Candidates in random order, each taken by a coin that favours those with many votes."""

    title: ClassVar[str] = "permute-and-flip"

    def law(self, scores: Sequence[Fraction]) -> tuple[float, ...]:
        """w_a times the integral over t in [0, 1] of the product of 1 - t w_b over b != a; Gauss nodes are exact."""
        weights = _weights(self.base, scores)
        nodes, parts = leggauss(len(weights) // 2 + 1)
        t, parts = (nodes + 1) / 2, parts / 2
        passed = 1 - t[:, None] * weights
        before = np.hstack([np.ones((len(t), 1)), np.cumprod(passed[:, :-1], axis=1)])
        after = np.hstack([np.cumprod(passed[:, :0:-1], axis=1)[:, ::-1], np.ones((len(t), 1))])
        return tuple(float(p) for p in weights * (parts @ (before * after)))

    def brief(self, vote: Vote) -> str:
        return (
            f"{vote.size} candidates are visited in random order; one that is k votes behind the largest count wins "
            f"with probability {self.parameter()[1]}^-k, else the next is visited"
        )

    def told(self, vote: Vote) -> tuple[str, ...]:
        return (
            "The winner is drawn by lot, and the candidate with the most votes has the best chances.",
            "The candidates are visited in random order. At each a coin is flipped: the farther a candidate is behind "
            "the one with the most votes, the rarer it shows heads. The first with heads wins; the one with the most "
            "votes always has heads.",
        )

    def executed(self, vote: Vote) -> tuple[str, ...]:
        return (
            "Candidates are visited in a uniformly random order; one that is k votes behind the largest count is taken "
            f"with probability b^-k, b = {self.parameter()[1]} (an exact fraction in the plan), else the next one.",
        )


def _weights(base: Fraction, scores: Sequence[Fraction]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """base^(points - most points)."""
    step, most = math.log(base), max(scores)
    return np.array([math.exp(step * float(score - most)) for score in scores])


@dataclass(frozen=True, slots=True)
class RandomisedWinner(Rule):
    """Randomised response of the candidate with most points."""

    ratio: Fraction

    title: ClassVar[str] = "randomised response of the winner"
    without: ClassVar[str] = "plurality without noise"
    adds_up: ClassVar[bool] = False

    def law(self, scores: Sequence[Fraction]) -> tuple[float, ...]:
        return tuple(float(p) for p in RandomisedLargest(self.ratio).law(scores))

    def noiseless(self, scores: Sequence[Fraction]) -> tuple[float, ...]:
        return tuple(float(p) for p in Largest().law(scores))

    def parameter(self) -> tuple[str, Quantity]:
        """How many times as likely the candidate is who has most votes."""
        return "how many times as likely the candidate with most votes is as each other", rounded(self.ratio, 6)

    def exactly(self) -> str:
        return str(self.ratio)

    def truth(self, vote: Vote) -> Quantity:
        """How often the candidate with most votes wins."""
        return rounded(self.ratio / (self.ratio + vote.size - 1), 4)

    def brief(self, vote: Vote) -> str:
        counted = "points" if vote.ranked else "votes"
        rest = "the other" if vote.size == 2 else f"one of the other {vote.size - 1}, each as likely as any other"
        return f"the candidate with most {counted} with probability {self.truth(vote)}, else {rest}"

    def told(self, vote: Vote) -> tuple[str, ...]:
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
        return rounded(self.ratio, 4, Rounding.UP)

    def attains(self, vote: Vote, *, adds: bool, local: bool) -> bool:
        return not local and vote.voters != 0


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
        return tuple(float(p) for p in Proportional(self.dummies).law(scores))

    def noiseless(self, scores: Sequence[Fraction]) -> tuple[float, ...]:
        return _shares(scores)

    def parameter(self) -> tuple[str, Quantity]:
        return "dummy votes for each candidate", _decimal(self.dummies)

    def exactly(self) -> str:
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
        drum = self.total(vote)
        each = f", {exact(vote.points.per_ballot)} each" if vote.ranked else ""
        votes = f"the votes{each}" if vote.voters is None else f"{vote.voters:,} votes{each}"
        first = f"one of {drum} tickets" if drum else "one ticket"
        return f"{first}: {votes}, and {self.tickets} for each of {vote.size} candidates"

    def told(self, vote: Vote) -> tuple[str, ...]:
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
        return tuple(float(p) for p in LocalPick(self.ratio).law(scores))

    def noiseless(self, scores: Sequence[Fraction]) -> tuple[float, ...]:
        return _shares(scores)

    def parameter(self) -> tuple[str, Quantity]:
        return "how many times as likely the true choice is as each other", rounded(self.ratio, 6)

    def exactly(self) -> str:
        return str(self.ratio)

    def truth(self, vote: Vote) -> Quantity:
        """How often a report is true."""
        return rounded(self.ratio / (self.ratio + vote.size - 1), 4)

    def brief(self, vote: Vote) -> str:
        return (
            f"each {vote.party} reports the true choice with probability {self.truth(vote)}, else another; one report "
            "is drawn"
        )

    def told(self, vote: Vote) -> tuple[str, ...]:
        return (
            f"Your vote is changed at random before it counts: with probability {self.truth(vote)} it stays what it "
            "is, else it becomes one of the other candidates, each as likely as any other.",
            "Then one of these changed votes is drawn like a ticket from a drum, and the candidate on it wins.",
        )

    def executed(self, vote: Vote) -> tuple[str, ...]:
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
        return rounded(self.ratio, 4, Rounding.UP) if local else None

    def attains(self, _vote: Vote, *, adds: bool, local: bool) -> bool:
        return local


RULES: Mapping[str, Callable[[Mapping[str, Any]], Rule]] = {
    "dictator": lambda m: Dictator(parse_exact(m["dummy_votes"])),
    "exponential": lambda m: ExponentialRule(parse_exact(m["base"])),
    "permute_and_flip": lambda m: PermuteAndFlipRule(parse_exact(m["base"])),
    "local_dictator": lambda m: LocalDictator(parse_exact(m["ratio"])),
    "randomised_winner": lambda m: RandomisedWinner(parse_exact(m["ratio"])),
}
"""How the rule of a plan is read, by its family."""


INVENTED = 100
"""Voters of an invented election where the true number is secret."""
RARE = 1e-3
"""Below this, a probability is told as once in so many draws."""
MOST = 12
"""Candidates that are listed."""


@dataclass(frozen=True, slots=True)
class Chance:
    """One candidate of an example: votes, and the chances with and without noise.

    `once_in` is the number of draws of which one is won, where a probability would be hard to read.
    """

    name: str
    votes: Quantity
    chance: Quantity
    without: Quantity
    once_in: Quantity | None

    @property
    def words(self) -> str:
        """How often it wins: "with probability 0.25", or "about once in 43,000 draws"."""
        return f"with probability {self.chance}" if self.once_in is None else f"about once in {self.once_in} draws"


@dataclass(frozen=True, slots=True)
class Example:
    """An invented election and the law of its winner; `distance` is that from the lottery without noise."""

    title: str
    voters: Quantity
    chances: tuple[Chance, ...]
    distance: Quantity


def examples(vote: Vote, rule: Rule) -> tuple[Example, ...]:
    """One where votes fall off from candidate to candidate, and one where all vote for the same."""
    voters = vote.voters if vote.voters is not None else INVENTED
    if voters < 1:
        return ()
    falling = _falling(voters, vote.size)
    unanimous = [voters] + [0] * (vote.size - 1)
    found = [("support falls off from candidate to candidate", falling)] if falling != unanimous else []
    return tuple(
        _example(title, firsts, vote, rule)
        for title, firsts in [*found, (f"everybody votes for {vote.names[0]}", unanimous)]
    )


def _falling(voters: int, size: int) -> list[int]:
    """Votes in proportion to m, m - 1, ..., 1; what rounding leaves goes to the first."""
    weights = [size - i for i in range(size)]
    shares = [voters * w // sum(weights) for w in weights]
    return [shares[0] + voters - sum(shares), *shares[1:]]


def _example(title: str, firsts: Sequence[int], vote: Vote, rule: Rule) -> Example:
    scores = vote.totals([(vote.ballot(i), n) for i, n in enumerate(firsts)])
    law, bare = rule.law(scores), rule.noiseless(scores)
    apart = sum(abs(p - q) for p, q in zip(law, bare, strict=True)) / 2
    chances = tuple(
        Chance(name, count(n), rounded(p, 4), rounded(q, 4), rounded(1 / p, 2) if 0 < p < RARE else None)
        for name, n, p, q in zip(vote.names, firsts, law, bare, strict=True)
    )
    return Example(title, count(sum(firsts)), chances, rounded(apart, 4))
