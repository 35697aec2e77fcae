"""Voting: a winner drawn at random, with probabilities that depend on the votes through sums of points.

A ballot gives every alternative some points; a lottery turns the totals into a law. Random dictatorship draws in
proportion to the number of first choices (Torra 2019, Method 1), with dummy votes where it has to be private (Methods
2 and 3); Borda's lottery draws in proportion to Borda scores; plurality is the lottery without chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from privspec.core.records import dataclass
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


def scores(points: Points, ballots: Iterable[Ballot], weights: Sequence[Fraction] | None = None) -> Law:
    """The total points of each alternative; `weights`: how often each ballot counts, once without any."""
    total = [Fraction(0)] * len(points.alternatives)
    alike = dict[Ballot, Fraction]()
    for place, one in enumerate(ballots):
        ballot: Ballot = one if isinstance(one, str | Fraction) else tuple(one)
        alike[ballot] = alike.get(ballot, Fraction(0)) + (1 if weights is None else weights[place])
    for ballot, times in alike.items():
        total = [a + times * b for a, b in zip(total, points.of(ballot), strict=True)]
    return tuple(total)


# --- lotteries ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lottery:
    """The law of the winner given the total points of each alternative: a rule of the kernel with its number."""

    rule: VotingRule
    number: Fraction = Fraction(0)

    @property
    def certain(self) -> bool:
        """Whether it leaves nothing to chance."""
        from privspec.kernel.laws.voting import PLURALITY

        return self.rule is PLURALITY

    def law(self, scores: Sequence[Fraction]) -> Law:
        """Exact probabilities, in the order of the alternatives; they sum to 1. Where nobody voted: uniform.

        Raises: ValueError where powers of shared points would be compared.
        """
        from privspec.kernel.laws.voting import EXPONENTIAL, PERMUTE_AND_FLIP

        # the kernel encloses the powers of these two in balls
        if self.rule is EXPONENTIAL:
            chances = accepted(self.number, scores)
            # each alternative in proportion to its chance (McSherry and Talwar 2007)
            return tuple(Fraction(chance, sum(chances)) for chance in chances)
        if self.rule is PERMUTE_AND_FLIP:
            return _in_random_order(accepted(self.number, scores))
        return tuple(self.rule.law(self.number, tuple(scores)))


def _in_random_order(chances: tuple[int, ...]) -> Law:
    """Alternatives in random order; each is taken by its chance over the largest, else the next one.

    McKenna and Sheldon 2020. With y_a the chances to be taken: y_a times the integral over t in [0, 1] of prod over
    b != a of (1 - t y_b). t is the share of the order that comes before a: each other alternative stands there with
    probability t, and must then have been passed over.
    """
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
    gaps, (up, down) = gaps_of(scores), base.as_integer_ratio()
    return tuple(up ** (max(gaps) - gap) * down**gap for gap in gaps)


def gaps_of(scores: Sequence[Fraction]) -> list[int]:
    """How many points each alternative lacks to the most.

    Raises: ValueError if that is no whole number: its power of a rational base would be none.
    """
    most = max(scores)
    gaps = [most - score for score in scores]
    if any(gap.denominator != 1 for gap in gaps):
        raise ValueError("powers are exact for whole numbers of points only")
    return [int(gap) for gap in gaps]


@dataclass(frozen=True, slots=True)
class Drawn:
    """How a value is drawn from votes: what is known of a call such as random_dictator(vote)."""

    points: Points
    lottery: Lottery
    weights: tuple[Fraction, ...] | None = None
    """How often each vote counts, in their order; None where all count alike."""

    def law(self, votes: Iterable[Ballot]) -> dict[Symbol, Fraction]:
        """The exact law of the winner for a list of votes."""
        totals = scores(self.points, votes, self.weights)
        return dict(zip(self.points.alternatives, self.lottery.law(totals), strict=True))
