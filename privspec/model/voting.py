"""Voting: a winner drawn at random, with probabilities that depend on the votes through sums of points.

A ballot gives every alternative some points; a lottery turns the totals into a law. Random dictatorship draws in
proportion to the number of first choices (Torra 2019, Method 1), with dummy votes where it has to be private (Methods
2 and 3); Borda's lottery draws in proportion to Borda scores; plurality is the lottery without chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from privspec.core.records import dataclass, fields
from privspec.model.values import Symbol

if TYPE_CHECKING:
    from privspec.kernel.laws.voting import VotingRule

Ballot: TypeAlias = Symbol | Sequence[Symbol]
"""One alternative, or several of them, best first."""
Law: TypeAlias = tuple[Fraction, ...]
"""Probabilities of the alternatives, in their order."""


@dataclass(frozen=True, slots=True)
class FirstChoice:
    """One point for the alternative that stands first.

    `per_ballot`: the points of one ballot together, the same for all; `highest`: the most that it can give to an
    alternative, the least is 0. What `of` gives is in the order of the alternatives.
    Raises: ValueError if a ballot names what is no alternative, or names one twice.
    """

    alternatives: tuple[Symbol, ...]

    name: ClassVar[str] = "first choice"
    per_ballot: ClassVar[Fraction] = Fraction(1)
    highest: ClassVar[Fraction] = Fraction(1)

    def of(self, ballot: Ballot) -> Law:
        """1 at the first choice."""
        first = _named(ballot, self.alternatives)[0]
        return tuple(Fraction(alternative == first) for alternative in self.alternatives)


@dataclass(frozen=True, slots=True)
class Borda:
    """m - 1 points for the first of m alternatives, one less for each that follows.

    Alternatives that a partial ranking leaves out share the points that are left evenly, so that no ballot has more
    weight than another.
    """

    alternatives: tuple[Symbol, ...]

    name: ClassVar[str] = "borda"

    @property
    def per_ballot(self) -> Fraction:
        """As many as there are pairs of alternatives."""
        m = len(self.alternatives)
        return Fraction(m * (m - 1), 2)

    @property
    def highest(self) -> Fraction:
        """One for each other alternative."""
        return Fraction(len(self.alternatives) - 1)

    def of(self, ballot: Ballot) -> Law:
        m = len(self.alternatives)
        ranked = _named(ballot, self.alternatives)
        place = {alternative: m - 1 - i for i, alternative in enumerate(ranked)}
        shared = Fraction(m - 1 - len(ranked), 2)  # the mean of 0, ..., m - 1 - len(ranked)
        return tuple(Fraction(place.get(alternative, shared)) for alternative in self.alternatives)


Points: TypeAlias = FirstChoice | Borda
"""What one ballot gives to each alternative."""


def _named(ballot: Ballot, alternatives: tuple[Symbol, ...]) -> tuple[Symbol, ...]:
    named = (ballot,) if isinstance(ballot, str | Fraction) else tuple(ballot)
    if not named or len(set(named)) < len(named) or not set(named) <= set(alternatives):
        raise ValueError("a ballot names alternatives, each once")
    return named


def scores(points: Points, ballots: Iterable[Ballot]) -> Law:
    """The total points of each alternative."""
    total = [Fraction(0)] * len(points.alternatives)
    alike = Counter(one if isinstance(one, str | Fraction) else tuple(one) for one in ballots)
    for ballot, times in alike.items():
        total = [a + times * b for a, b in zip(total, points.of(ballot), strict=True)]
    return tuple(total)


# --- lotteries ------------------------------------------------------------------------------------


class Lottery:
    """The law of the winner given the total points of each alternative: a rule with its number."""

    __slots__ = ()

    @property
    def rule(self) -> VotingRule:
        """What draws the winner; a table of probabilities has none."""
        raise TypeError(f"{type(self).__name__} is drawn by no rule")

    @property
    def number(self) -> Fraction:
        """Its one number; 0 where it has none."""
        return next((getattr(self, one.name) for one in fields(self)), Fraction(0))  # type: ignore[arg-type]

    def law(self, scores: Sequence[Fraction]) -> Law:
        """Exact probabilities, in the order of the alternatives; they sum to 1. Where nobody voted: uniform."""
        return tuple(self.rule.law(self.number, tuple(scores)))


@dataclass(frozen=True, slots=True)
class Proportional(Lottery):
    """In proportion to the points and `dummies` more for each alternative: (S_a + k) / (sum S + m k)."""

    @property
    def rule(self) -> VotingRule:
        from privspec.kernel.laws.voting import DUMMY_VOTES

        return DUMMY_VOTES

    dummies: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class Largest(Lottery):
    """The alternative with the most points; among equals the one that was declared first."""

    @property
    def rule(self) -> VotingRule:
        from privspec.kernel.laws.voting import PLURALITY

        return PLURALITY


@dataclass(frozen=True, slots=True)
class RandomisedLargest(Lottery):
    """Randomised response of the winner: that of `Largest` is `ratio` times as likely as each other alternative."""

    @property
    def rule(self) -> VotingRule:
        from privspec.kernel.laws.voting import TURNED_WINNER

        return TURNED_WINNER

    ratio: Fraction


@dataclass(frozen=True, slots=True)
class Exponential(Lottery):
    """In proportion to base^points (McSherry and Talwar 2007); `base` at least 1. Whole numbers of points."""

    @property
    def rule(self) -> VotingRule:
        from privspec.kernel.laws.voting import EXPONENTIAL

        return EXPONENTIAL

    base: Fraction

    def law(self, scores: Sequence[Fraction]) -> Law:
        weights = accepted(self.base, scores)
        return tuple(Fraction(weight, sum(weights)) for weight in weights)


@dataclass(frozen=True, slots=True)
class PermuteAndFlip(Lottery):
    """Alternatives in random order; each is taken with probability base^(points - most points), else the next one.

    McKenna and Sheldon 2020. Whole numbers of points.
    """

    @property
    def rule(self) -> VotingRule:
        from privspec.kernel.laws.voting import PERMUTE_AND_FLIP

        return PERMUTE_AND_FLIP

    base: Fraction

    def law(self, scores: Sequence[Fraction]) -> Law:
        """With y_a the chances to be taken: y_a times the integral over t in [0, 1] of prod over b != a of (1 - t y_b).

        t is the share of the order that comes before a: each other alternative stands there with probability t, and
        must then have been passed over.
        """
        chances = accepted(self.base, scores)
        whole, parts, law = max(chances), lcm(*range(1, len(chances) + 1)), list[Fraction]()  # y = chance / whole
        for a, chance in enumerate(chances):
            polynomial = [1]
            for other in (*chances[:a], *chances[a + 1 :]):
                pairs = zip([*polynomial, 0], [0, *polynomial], strict=True)
                polynomial = [whole * c - other * before for c, before in pairs]
            integral = sum(c * (parts // (k + 1)) for k, c in enumerate(polynomial))
            law.append(Fraction(chance * integral, parts * whole ** len(chances)))
        return tuple(law)


def accepted(base: Fraction, scores: Sequence[Fraction]) -> tuple[int, ...]:
    """Whole numbers that are to the largest of them as base^(score - largest score) is to 1.

    Raises: ValueError where a difference of scores is no whole number: the power would not be rational.
    """
    most = max(scores)
    gaps = [most - score for score in scores]
    if any(gap.denominator != 1 for gap in gaps):
        raise ValueError("powers are exact for whole numbers of points only")
    up, down = base.as_integer_ratio()
    return tuple(up ** int(max(gaps) - gap) * down ** int(gap) for gap in gaps)


@dataclass(frozen=True, slots=True)
class LocalPick(Lottery):
    """Every first choice goes through randomised response, then one of the reports is drawn.

    The truth is `ratio` times as likely as each other alternative: (S_a (ratio - 1) + T) / (T (ratio + m - 1)).
    """

    @property
    def rule(self) -> VotingRule:
        from privspec.kernel.laws.voting import ONE_REPORT

        return ONE_REPORT

    ratio: Fraction


@dataclass(frozen=True, slots=True)
class ByRule(Lottery):
    """The lottery of a rule that no function of the language draws by."""

    by: VotingRule
    amount: Fraction

    @property
    def rule(self) -> VotingRule:
        return self.by

    @property
    def number(self) -> Fraction:
        return self.amount


def lottery_of(rule: VotingRule, number: Fraction) -> Lottery:
    """The lottery of a rule."""
    from privspec.kernel.laws import voting as rules

    known: Mapping[VotingRule, Callable[[], Lottery]] = {
        rules.DUMMY_VOTES: lambda: Proportional(number),
        rules.TURNED_WINNER: lambda: RandomisedLargest(number),
        rules.EXPONENTIAL: lambda: Exponential(number),
        rules.PERMUTE_AND_FLIP: lambda: PermuteAndFlip(number),
        rules.ONE_REPORT: lambda: LocalPick(number),
        rules.PLURALITY: Largest,
    }
    return known[rule]() if rule in known else ByRule(rule, number)


@dataclass(frozen=True, slots=True)
class Drawn:
    """How a value is drawn from votes: what is known of a call such as random_dictator(vote)."""

    points: Points
    lottery: Lottery

    def law(self, votes: Iterable[Ballot]) -> dict[Symbol, Fraction]:
        """The exact law of the winner for a list of votes."""
        return dict(zip(self.points.alternatives, self.lottery.law(scores(self.points, votes)), strict=True))
