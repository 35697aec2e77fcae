"""Exact draws from lotteries: integers from the source of randomness and comparisons of integers, nothing else.

Weights such as base^1000000 are never formed: what is needed is base^-gap as a probability, which is met step by step
and given up at the first failure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import singledispatch
from itertools import accumulate
from math import lcm

from privspec.execute.randomness import Randomness
from privspec.model.lotteries import Exponential, Largest, LocalPick, Lottery, PermuteAndFlip, Proportional

BITS = 1024
"""Length of the numbers that are compared at once, about."""


@singledispatch
def draw(lottery: Lottery, scores: Sequence[Fraction], randomness: Randomness) -> int:  # noqa: ARG001
    """The place of the winner among the alternatives, by the law of the lottery at these total points, exactly."""
    raise TypeError(f"no draws from {type(lottery).__name__}")


@draw.register
def _(lottery: Proportional, scores: Sequence[Fraction], randomness: Randomness) -> int:
    """One uniform integer below the points and dummies of all together."""
    return weighted([score + lottery.dummies for score in scores], randomness)


@draw.register
def _(lottery: Largest, scores: Sequence[Fraction], randomness: Randomness) -> int:  # noqa: ARG001
    """Without chance."""
    return list(scores).index(max(scores))


@draw.register
def _(lottery: Exponential, scores: Sequence[Fraction], randomness: Randomness) -> int:
    """Rejection from the uniform law: at least one alternative in m is kept for certain."""
    gaps = gaps_of(scores)
    while True:
        chosen = randomness.below(len(gaps))
        if bernoulli_power(lottery.base, gaps[chosen], randomness):
            return chosen


@draw.register
def _(lottery: PermuteAndFlip, scores: Sequence[Fraction], randomness: Randomness) -> int:
    """Visit in random order and take the first that its coin accepts; one with the most points is always accepted."""
    waiting = list(enumerate(gaps_of(scores)))
    while True:
        place = randomness.below(len(waiting))
        chosen, gap = waiting[place]
        if bernoulli_power(lottery.base, gap, randomness):
            return chosen
        waiting[place] = waiting[-1]
        waiting.pop()


@draw.register
def _(lottery: LocalPick, scores: Sequence[Fraction], randomness: Randomness) -> int:
    """A ballot drawn at random, and the report that its voter would have made: the others need not be made."""
    if not any(scores):
        return randomness.below(len(scores))
    return report(lottery.ratio, weighted(scores, randomness), len(scores), randomness)


def report(ratio: Fraction, truth: int, size: int, randomness: Randomness) -> int:
    """k-randomised response: the truth `ratio` times as likely as each of the other size - 1 answers."""
    other = randomness.below(ratio.numerator + (size - 1) * ratio.denominator) - ratio.numerator
    if other < 0:
        return truth
    answer = other // ratio.denominator
    return answer + (answer >= truth)


def weighted(weights: Sequence[Fraction], randomness: Randomness) -> int:
    """A place with a probability proportional to its weight; any place where all weights are zero."""
    scale = lcm(*(weight.denominator for weight in weights))
    cumulative = list(accumulate(int(weight * scale) for weight in weights))
    if not cumulative[-1]:
        return randomness.below(len(weights))
    return bisect_right(cumulative, randomness.below(cumulative[-1]))


def gaps_of(scores: Sequence[Fraction]) -> list[int]:
    """How many points each alternative lacks to the most.

    Raises: ValueError if that is no whole number: its power of a rational base would be none.
    """
    most = max(scores)
    gaps = [most - score for score in scores]
    if any(gap.denominator != 1 for gap in gaps):
        raise ValueError("powers are exact for whole numbers of points only")
    return [int(gap) for gap in gaps]


def bernoulli_power(base: Fraction, gap: int, randomness: Randomness) -> bool:
    """True with probability base^-gap, exactly; base >= 1, gap >= 0.

    As many coins of probability 1 / base as there are points, several in one comparison; the first failure ends it.
    """
    together = max(1, BITS // base.numerator.bit_length())
    whole, rest = divmod(gap, together)
    if not all(_below_power(base, together, randomness) for _ in range(whole)):
        return False
    return _below_power(base, rest, randomness)


def _below_power(base: Fraction, power: int, randomness: Randomness) -> bool:
    """One comparison with the power written out."""
    top: int = base.denominator**power
    return randomness.below(base.numerator**power) < top
