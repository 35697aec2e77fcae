"""Total points of ballots, and exact draws from lotteries: integers from the source of randomness, nothing else."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from itertools import accumulate
from math import lcm
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.execute.ballot_files import NOT_ONE
from privspec.execute.ballots import Ballots
from privspec.model.lotteries import (
    Borda,
    Exponential,
    Largest,
    LocalPick,
    Lottery,
    PermuteAndFlip,
    Points,
    Proportional,
    RandomisedLargest,
)
from privspec.noise.samplers import Randomness

# --- Total points of ballots, exactly: counts are whole numbers, points whole halves


def total_points(points: Points, ballots: Ballots) -> tuple[Fraction, ...]:
    """The same as `model.lotteries.scores`, for many ballots at once."""
    totals = _doubled_borda(ballots) if isinstance(points, Borda) else _doubled_first(ballots)
    return tuple(Fraction(int(total), 2) for total in totals)


def _doubled_first(ballots: Ballots) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    doubled = np.zeros(len(ballots.form.alternatives), dtype=np.int64)
    np.add.at(doubled, ballots.ranked[:, 0], 2 * ballots.counts)
    return doubled


def _doubled_borda(ballots: Ballots) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Twice the points: m - 1 less the place for those that are named, the mean of what is left for the others."""
    m = len(ballots.form.alternatives)
    lengths = (ballots.ranked != NOT_ONE).sum(axis=1)
    left = m - 1 - lengths
    # everybody gets what the ballot's unnamed get, then the named get the rest
    doubled = np.full(m, (left * ballots.counts).sum(), dtype=np.int64)
    for place in range(ballots.ranked.shape[1]):
        named = lengths > place
        own = (2 * (m - 1 - place) - left[named]) * ballots.counts[named]
        np.add.at(doubled, ballots.ranked[named, place], own)
    return doubled


# --- Laws of lotteries in doubles, for simulations at any number of votes: large powers are nev

Floats = NDArray[np.float64]


def law_in_doubles(lottery: Lottery, scores: Sequence[Fraction]) -> Floats:
    """The law of the winner (m,), rounded; the exact one is `lottery.law(scores)`."""
    match lottery:
        case Exponential(base=base):
            weights = _accepted(base, scores)
        case PermuteAndFlip(base=base):
            weights = _flipped(_accepted(base, scores))
        case _:
            weights = np.array([float(p) for p in lottery.law(scores)])
    found: Floats = weights / weights.sum()
    return found


def _accepted(base: Fraction, scores: Sequence[Fraction]) -> Floats:
    """base^(score - largest score)."""
    most = max(scores)
    gaps = np.array([float(most - score) for score in scores])
    logarithm = float(np.log1p(float(base - 1)))
    accepted: Floats = np.exp(-gaps * logarithm)
    return accepted


def _flipped(accepted: Floats) -> Floats:
    """Each y_a times the integral over t in [0, 1] of the product over b != a of (1 - t y_b): see the model's law."""
    # Gauss-Legendre with k nodes is exact to degree 2k - 1, and the product has degree m - 1
    nodes, weights = np.polynomial.legendre.leggauss(len(accepted) // 2 + 1)
    times = (nodes + 1) / 2
    factors = 1 - times[:, None] * accepted
    found = [
        chance * float((weights / 2) @ np.delete(factors, a, axis=1).prod(axis=1)) for a, chance in enumerate(accepted)
    ]
    return np.array(found)


# --- Exact draws from lotteries: integers from the source of randomness and comparisons of inte

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
