"""Rules that draw a winner by lot: what is voted on, and what each rule does, in figures and in words.

Laws are doubles for display; the plan holds the parameters exactly and `privspec verify` works with those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar, TypeAlias

from privspec.core.records import dataclass
from privspec.explain.quantities import UP, Quantity, count, exact, rounded, ungrouped
from privspec.kernel.laws.voting import (
    DUMMY_VOTES,
    EXPONENTIAL,
    ONE_REPORT,
    PERMUTE_AND_FLIP,
    PLURALITY,
    TURNED_WINNER,
    VotingRule,
)
from privspec.kernel.voting import Executed
from privspec.model.values import Symbol, show
from privspec.model.voting import (
    Ballot,
    Borda,
    FirstChoice,
    Lottery,
    Points,
)
from privspec.stated import parse_exact

Counted: TypeAlias = Sequence[tuple[Ballot, int]]
"""Ballots, each with how often it was cast."""
_POINTS: Mapping[str, type[FirstChoice] | type[Borda]] = {"first choice": FirstChoice, "borda": Borda}


@dataclass(frozen=True, slots=True)
class Vote:
    """An election: `voters` is None where their number is secret, `names` are the alternatives as words.

    `ballots` is "first choice", "ranking" or "partial ranking"; each alternative surely has so many `supporters`.
    """

    input: str
    party: str
    voters: int | None
    ballots: str
    output: str
    points: Points
    names: tuple[str, ...]
    supporters: int = 0

    @property
    def size(self) -> int:
        """How many alternatives there are."""
        return len(self.names)

    @property
    def ranked(self) -> bool:
        """Whether ballots are rankings whose whole order counts."""
        return isinstance(self.points, Borda)

    @property
    def counted(self) -> str:
        """What ballots add up to, for the public."""
        return "points" if self.ranked else "votes"

    @property
    def unit(self) -> str:
        """The same for auditors."""
        return "Borda points" if self.ranked else "first choices"

    @property
    def apart(self) -> Fraction:
        """The most that one ballot's points can differ from another's: half the sum of absolute differences."""
        return Fraction(self.size**2 // 2, 2) if self.ranked else Fraction(1)

    @property
    def tilt(self) -> Fraction:
        """The most that one ballot's points can differ from an even spread, in the same measure."""
        return self.apart / 2 if self.ranked else Fraction(self.size - 1, self.size)

    def totals(self, counted: Counted, points: Points | None = None) -> tuple[Fraction, ...]:
        """The points of each alternative, by the rule of the vote if by no other.

        Raises: ValueError if a ballot names what is no alternative.
        """
        found = [Fraction(0)] * self.size
        for ballot, times in counted:
            found = [a + times * b for a, b in zip(found, (points or self.points).of(ballot), strict=True)]
        return tuple(found)

    def firsts(self, counted: Counted) -> tuple[int, ...]:
        """How many put each alternative first."""
        return tuple(map(int, self.totals(counted, FirstChoice(self.points.alternatives))))

    def ballot(self, first: int) -> Ballot:
        """A ballot with one alternative on top; where all are ranked, the others follow in the order declared."""
        items = self.points.alternatives
        if not self.ranked:
            return items[first]
        return (items[first], *(item for i, item in enumerate(items) if i != first))

    def to_json(self) -> dict[str, object]:
        named = {name: getattr(self, name) for name in ("input", "party", "voters", "ballots", "output")}
        points = {"points": self.points.name, "points_of_a_ballot": str(self.points.per_ballot)}
        return named | points | {"most_points": str(self.points.highest), "alternatives": self.names}


def read_vote(found: Executed) -> Vote:
    """The election of a plan."""
    vote, ballots = found.vote, found.vote.ballots
    alternatives = tuple(map(_symbol, ballots.alternatives))
    return Vote(
        input=vote.source,
        party=vote.party,
        voters=vote.public_voters,
        ballots=ballots.kind,
        output=vote.output,
        points=_POINTS[ballots.counted](alternatives),
        names=tuple(map(show, alternatives)),
        supporters=ballots.supporters,
    )


def _symbol(item: object) -> Symbol:
    """A word, or a number that was declared as one."""
    try:
        return parse_exact(item)
    except ValueError:
        return str(item)


@dataclass(frozen=True, slots=True)
class Rule:
    """How the winner is drawn from the points of the ballots; `amount` is its one parameter."""

    amount: Fraction

    title: ClassVar[str]
    """The rule by name."""
    named: ClassVar[str]
    """What its parameter is."""
    rule: ClassVar[VotingRule]
    """What draws the winner, by the parameter."""
    noise_free: ClassVar[Lottery] = Lottery(DUMMY_VOTES)
    without: ClassVar[str] = "the lottery without noise"
    """What it is compared with, in words."""
    adds_up: ClassVar[bool] = True
    """Whether several ballots together can move the chances further than one of them."""

    def law(self, scores: Sequence[Fraction]) -> tuple[float, ...]:
        """The chances of the alternatives, given their points."""
        return tuple(float(p) for p in self.rule.law(self.amount, tuple(scores)))

    def noiseless(self, scores: Sequence[Fraction]) -> tuple[float, ...]:
        """Their chances in the lottery without noise."""
        return tuple(float(p) for p in self.noise_free.law(scores))

    @property
    def shown(self) -> Quantity:
        """The parameter in digits."""
        return rounded(self.amount, 6)

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
        return {"title": self.title, "parameter": self.named, "value": self.shown, "exactly": str(self.amount)}


class ExponentialRule(Rule):
    """Each candidate in proportion to base^votes; the law in doubles, relative to the largest weight."""

    rule: ClassVar[VotingRule] = EXPONENTIAL
    title: ClassVar[str] = "exponential mechanism"
    named: ClassVar[str] = "base"
    noise_free = Lottery(PLURALITY)
    without: ClassVar[str] = "plurality without noise"


class PermuteAndFlipRule(ExponentialRule):
    """Candidates in random order, each taken by a coin that favours those with many votes."""

    rule: ClassVar[VotingRule] = PERMUTE_AND_FLIP
    title: ClassVar[str] = "permute-and-flip"


class Response(Rule):
    """Randomised response: the truth is `amount` times as likely as each other candidate."""

    def truth(self, vote: Vote) -> Quantity:
        """The probability of the truth."""
        return rounded(self.amount / (self.amount + vote.size - 1), 4)

    def distance(self, vote: Vote, *, adds: bool, local: bool) -> Fraction | None:
        """From one truth to another: (r - 1) / (r + m - 1), for any relation."""
        return (self.amount - 1) / (self.amount + vote.size - 1)

    def times(self, _vote: Vote, *, local: bool) -> Quantity | None:
        return rounded(self.amount, 4, UP)


class RandomisedWinner(Response):
    """Randomised response of the candidate with most points: nothing else of the votes counts."""

    title: ClassVar[str] = "randomised response of the winner"
    named: ClassVar[str] = "how many times as likely the candidate with most votes is as each other"
    rule: ClassVar[VotingRule] = TURNED_WINNER
    noise_free = Lottery(PLURALITY)
    without: ClassVar[str] = "plurality without noise"
    adds_up: ClassVar[bool] = False

    def attains(self, vote: Vote, *, adds: bool, local: bool) -> bool:
        """Two elections whose winners differ by one ballot."""
        return not local and vote.voters != 0


class Dictator(Rule):
    """One ticket of a drum; `amount` more of them, in points, for each alternative."""

    title: ClassVar[str] = "dummy votes"
    named: ClassVar[str] = "dummy votes for each candidate"
    rule: ClassVar[VotingRule] = DUMMY_VOTES
    without: ClassVar[str] = "the lottery without dummy tickets"

    @property
    def shown(self) -> Quantity:
        return _decimal(self.amount)

    def total(self, vote: Vote) -> Quantity | None:
        if vote.voters is None:
            return None
        return _decimal(vote.voters * vote.points.per_ballot + vote.size * self.amount)

    def distance(self, vote: Vote, *, adds: bool, local: bool) -> Fraction | None:
        """Replacing: what two ballots can differ by, over all tickets. Adding: from nobody or one to one more.

        With c = m k tickets of dummies and t of votes that all lean against the new one, the chances move by
        (tilt c + apart t) / ((c + t)(c + t + per ballot)); that rises and then falls in t, before the first ballot.
        """
        dummies, per = self.amount * vote.size, vote.points.per_ballot
        first = vote.size * vote.supporters
        if not dummies and not first:
            return Fraction(1)
        if not adds:
            return vote.apart / ((vote.voters or 1) * per + dummies)
        return max(
            (vote.tilt * dummies + vote.apart * t) / ((dummies + t) * (dummies + t + per))
            for t in (first * per, max(first, 1) * per)
        )

    def times(self, vote: Vote, *, local: bool) -> Quantity | None:
        """From the least points to the most that one ballot gives beside them."""
        least = self.amount + vote.supporters
        return rounded(1 + vote.points.highest / least, 4, UP) if least else None

    def attains(self, vote: Vote, *, adds: bool, local: bool) -> bool:
        """A candidate with one vote loses it to one without any; the others have the rest."""
        plain = not vote.ranked and not vote.supporters
        return plain and not adds and vote.voters is not None and (vote.size > 2 or vote.voters == 1)


def _decimal(value: Fraction) -> Quantity:
    """To six digits; exact where that is all."""
    shown = rounded(value, 6)
    return exact(value) if Fraction(ungrouped(shown.text)) == value else shown


class LocalDictator(Response):
    """Every ballot goes through randomised response, then one of the reports is drawn."""

    title: ClassVar[str] = "randomised ballots"
    named: ClassVar[str] = "how many times as likely the true choice is as each other"
    rule: ClassVar[VotingRule] = ONE_REPORT

    def distance(self, vote: Vote, *, adds: bool, local: bool) -> Fraction | None:
        """Of one report where everyone may see it, else of the winner, who is one of the reports."""
        report = (self.amount - 1) / (self.amount + vote.size - 1)
        if local:
            return report
        return None if adds or vote.voters is None else report / max(1, vote.voters)

    def times(self, _vote: Vote, *, local: bool) -> Quantity | None:
        return rounded(self.amount, 4, UP) if local else None

    def attains(self, _vote: Vote, *, adds: bool, local: bool) -> bool:
        return local


_RULES = {
    one.rule.name: one for one in (Dictator, ExponentialRule, PermuteAndFlipRule, LocalDictator, RandomisedWinner)
}
RULES = frozenset(_RULES)
"""The families of mechanisms that draw a winner."""


def read_rule(found: Executed) -> Rule:
    """The rule of a plan, by its family."""
    return _RULES[found.family](found.rule.number)


INVENTED = 100
"""Voters of an invented election where the true number is secret."""
RARE = 1e-3
"""Below this, a probability is told as once in so many draws."""
SHORT = 24
"""Characters of a fraction that is printed."""
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
    sure = vote.supporters
    voters = vote.voters if vote.voters is not None else max(INVENTED, 2 * sure * vote.size)
    if voters < 1:
        return ()
    # in proportion to m, m - 1, ..., 1; what rounding leaves goes to the first
    weights = range(vote.size, 0, -1)
    shares = [voters * w // sum(weights) for w in weights]
    falling, unanimous = (
        [shares[0] + voters - sum(shares), *shares[1:]],
        [voters - (vote.size - 1) * sure] + [sure] * (vote.size - 1),
    )
    falls = falling != unanimous and min(falling) >= sure
    found = [("support falls off from candidate to candidate", falling)] if falls else []
    agree = "everybody votes" if not sure else f"all but {sure} for each other candidate vote"
    return tuple(
        _example(title, firsts, vote, rule) for title, firsts in [*found, (f"{agree} for {vote.names[0]}", unanimous)]
    )


def _example(title: str, firsts: Sequence[int], vote: Vote, rule: Rule) -> Example:
    scores = vote.totals([(vote.ballot(i), n) for i, n in enumerate(firsts)])
    law, bare = rule.law(scores), rule.noiseless(scores)
    apart = sum(abs(p - q) for p, q in zip(law, bare, strict=True)) / 2
    chances = tuple(
        Chance(name, count(n), rounded(p, 4), rounded(q, 4), rounded(1 / p, 2) if 0 < p < RARE else None)
        for name, n, p, q in zip(vote.names, firsts, law, bare, strict=True)
    )
    return Example(title, count(sum(firsts)), chances, rounded(apart, 4))
