"""Exact draws from lotteries: integers from the source of randomness and comparisons of integers, nothing else.

Weights such as base^1000000 are never formed: what is needed is base^-gap as a probability, which is met step by step
and given up at the first failure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from itertools import accumulate
from math import lcm
from typing import Self, TypeAlias

from privspec.execute.randomness import Randomness
from privspec.model.lotteries import (
    Exponential,
    Largest,
    LocalPick,
    Lottery,
    PermuteAndFlip,
    Proportional,
    RandomisedLargest,
)

BITS = 1024
"""Length of the numbers that are compared at once, about."""


Sampler: TypeAlias = Callable[[Randomness], int]
"""One draw: the place of the winner among the alternatives."""


def draw(lottery: Lottery, scores: Sequence[Fraction], randomness: Randomness) -> int:
    """The place of the winner among the alternatives, by the law of the lottery at these total points, exactly."""
    return sampler(lottery, scores)(randomness)


@singledispatch
def sampler(lottery: Lottery, scores: Sequence[Fraction]) -> Sampler:  # noqa: ARG001
    """Draws from the law of the lottery at these total points, exactly.

    Raises: ValueError where powers of whole and half points would be compared.
    """
    raise TypeError(f"no draws from {type(lottery).__name__}")


@sampler.register
def _(lottery: Proportional, scores: Sequence[Fraction]) -> Sampler:
    """One uniform integer below the points and dummies of all together."""
    return weighted([score + lottery.dummies for score in scores])


@sampler.register
def _(lottery: Largest, scores: Sequence[Fraction]) -> Sampler:  # noqa: ARG001
    """Without chance."""
    winner = list(scores).index(max(scores))
    return lambda _: winner


@sampler.register
def _(lottery: RandomisedLargest, scores: Sequence[Fraction]) -> Sampler:
    """The answer that the winner would give."""
    winner, size = list(scores).index(max(scores)), len(scores)
    return lambda randomness: report(lottery.ratio, winner, size, randomness)


@sampler.register
def _(lottery: Exponential, scores: Sequence[Fraction]) -> Sampler:
    """Rejection from the uniform law: at least one alternative in m is kept for certain."""
    coins = [Coin.of(lottery.base, gap) for gap in gaps_of(scores)]

    def drawn(randomness: Randomness) -> int:
        while not coins[chosen := randomness.below(len(coins))].toss(randomness):
            pass
        return chosen

    return drawn


@sampler.register
def _(lottery: PermuteAndFlip, scores: Sequence[Fraction]) -> Sampler:
    """Visit in random order and take the first that its coin accepts; one with the most points is always accepted."""
    coins = [Coin.of(lottery.base, gap) for gap in gaps_of(scores)]

    def drawn(randomness: Randomness) -> int:
        waiting = list(range(len(coins)))
        while True:
            place = randomness.below(len(waiting))
            chosen = waiting[place]
            if coins[chosen].toss(randomness):
                return chosen
            waiting[place] = waiting[-1]
            waiting.pop()

    return drawn


@sampler.register
def _(lottery: LocalPick, scores: Sequence[Fraction]) -> Sampler:
    """A ballot drawn at random, and the report that its voter would have made: the others need not be made."""
    if not any(scores):
        return weighted(scores)
    ballot, size = weighted(scores), len(scores)
    return lambda randomness: report(lottery.ratio, ballot(randomness), size, randomness)


def report(ratio: Fraction, truth: int, size: int, randomness: Randomness) -> int:
    """k-randomised response: the truth `ratio` times as likely as each of the other size - 1 answers."""
    other = randomness.below(ratio.numerator + (size - 1) * ratio.denominator) - ratio.numerator
    if other < 0:
        return truth
    answer = other // ratio.denominator
    return answer + (answer >= truth)


def weighted(weights: Sequence[Fraction]) -> Sampler:
    """A place with a probability proportional to its weight; any place where all weights are zero."""
    scale = lcm(*(weight.denominator for weight in weights))
    cumulative = list(accumulate(int(weight * scale) for weight in weights))
    if not (total := cumulative[-1]):
        return lambda randomness: randomness.below(len(weights))
    return lambda randomness: bisect_right(cumulative, randomness.below(total))


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
class Coin:
    """Falls on its good side with probability base^-gap, exactly, for base >= 1 and gap >= 0.

    It is as many coins of probability 1 / base as there are points, several in one comparison with `chunk` (numerator,
    denominator) and the `rest`; the first failure ends it.
    """

    chunks: int
    chunk: tuple[int, int]
    rest: tuple[int, int]

    @classmethod
    def of(cls, base: Fraction, gap: int) -> Self:
        """The coin of a gap."""
        together = max(1, BITS // base.numerator.bit_length())
        chunks, rest = divmod(gap, together)
        top, bottom = base.denominator, base.numerator
        return cls(chunks, (top**together, bottom**together), (top**rest, bottom**rest))

    def toss(self, randomness: Randomness) -> bool:
        """Whether it falls on its good side."""
        top, bottom = self.chunk
        for _ in range(self.chunks):
            if randomness.below(bottom) >= top:
                return False
        return randomness.below(self.rest[1]) < self.rest[0]
