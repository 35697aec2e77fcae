"""Figures of a lottery: how far it is from another one, and how many voters the winner has on its side.

Distortion is the total variation of two laws of the winner; welfare the share of first choices that the winner has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from math import fsum, lcm
from typing import TypeAlias

from privspec.model.lotteries import Ballot, FirstChoice, Law, LocalPick, Lottery, Points, Proportional

MOST = 5000
"""Vectors of counts that are gone through; beyond them the compiler simulates."""
WORK = 500_000
"""Vectors times voters that are gone through: powers of points grow with the voters."""
Counts: TypeAlias = tuple[int, ...]


def total_variation(one: Sequence[Fraction], other: Sequence[Fraction]) -> Fraction:
    """Half the sum of the differences."""
    return sum((abs(a - b) for a, b in zip(one, other, strict=True)), Fraction(0)) / 2


def distortion(lottery: Lottery, plain: Lottery, scores: Sequence[Fraction]) -> Fraction:
    """The total variation of two lotteries at one profile."""
    return total_variation(lottery.law(scores), plain.law(scores))


def worst_distortion(lottery: Lottery, plain: Lottery, points: Points, voters: int | None) -> Fraction | None:
    """The largest over all profiles of so many voters, over all sizes where that is None.

    Exact in closed form for lotteries that mix the points' shares with the uniform law: the distortion is convex in
    the shares, so that a unanimous profile is worst (note dummy-votes). Else by going through sorted counts of first
    choices.
    Returns: None where neither is feasible.
    """
    mixed = _uniform_share(lottery, points, 1 if voters is None else voters)
    if mixed is not None and plain == Proportional():
        share = [p / points.per_ballot for p in points.of(points.alternatives)] if points.per_ballot else [Fraction(1)]
        return mixed * total_variation(share, [Fraction(1, len(share))] * len(share)) if voters != 0 else Fraction(0)
    if voters is None or not isinstance(points, FirstChoice) or plain != Proportional():
        return None
    most = min(MOST, WORK // max(voters, 1))
    sorted_counts = list(islice(_partitions(voters, len(points.alternatives), voters), most + 1))
    if len(sorted_counts) > most:
        return None
    return max(distortion(lottery, plain, [Fraction(c) for c in counts]) for counts in sorted_counts)


def _uniform_share(lottery: Lottery, points: Points, voters: int) -> Fraction | None:
    """The weight of the uniform law in a mixture with the points' shares; None for lotteries that are none."""
    m = len(points.alternatives)
    match lottery:
        case Proportional(dummies=k):
            whole = points.per_ballot * voters + m * k
            return m * k / whole if whole else Fraction(0)
        case LocalPick(ratio=odds):
            return m / (odds + m - 1)
    return None


def _partitions(total: int, parts: int, largest: int) -> Iterator[Counts]:
    """Non-increasing counts with a sum: every profile of a lottery that treats alternatives alike."""
    if parts == 1:
        if total <= largest:
            yield (total,)
        return
    for first in range(min(total, largest), (total - 1) // parts, -1):
        for rest in _partitions(total - first, parts - 1, first):
            yield (first, *rest)


# --- independent ballots ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Profile:
    """Points of the alternatives, how many voters put each first, and the probability of both."""

    scores: Law
    firsts: Counts
    probability: Fraction


def profiles(points: Points, voters: int, ballots: Mapping[Ballot, Fraction]) -> tuple[Profile, ...] | None:
    """All profiles of independent ballots with the probabilities given (they sum to 1); None where there are too many.

    Raises: ValueError for no voters, or probabilities that do not sum to 1.
    """
    if voters < 1 or sum(ballots.values()) != 1:
        raise ValueError("a law of profiles needs voters, and probabilities that sum to 1")
    most = min(MOST, WORK // voters)
    if len(ballots) > MOST:
        return None
    given = [(points.of(ballot), _first(points, ballot), p) for ballot, p in ballots.items() if p]
    scale = lcm(*(p.denominator for row, _, _ in given for p in row))
    whole = lcm(*(p.denominator for _, _, p in given))
    steps = [((*(int(p * scale) for p in row), *first), int(p * whole)) for row, first, p in given]
    m = len(points.alternatives)
    weights: dict[Counts, int] = {(0,) * (2 * m): 1}
    for _ in range(voters):
        grown: dict[Counts, int] = {}
        for state, weight in weights.items():
            for step, times in steps:
                reached = tuple(a + b for a, b in zip(state, step, strict=True))
                grown[reached] = grown.get(reached, 0) + weight * times
        if len(grown) > most:
            return None
        weights = grown
    return tuple(
        Profile(tuple(Fraction(s, scale) for s in state[:m]), state[m:], Fraction(weight, whole**voters))
        for state, weight in weights.items()
    )


def _first(points: Points, ballot: Ballot) -> Counts:
    return tuple(int(p) for p in FirstChoice(points.alternatives).of(ballot))


def mean_distortion(lottery: Lottery, plain: Lottery, found: Sequence[Profile]) -> float:
    """Expected total variation; every term is exact before it becomes a double."""
    return fsum(float(p.probability * distortion(lottery, plain, p.scores)) for p in found)


def expected_welfare(lottery: Lottery, found: Sequence[Profile]) -> float:
    """E[N_winner] / T, N_a the voters who put a first; every term is exact before it becomes a double."""
    return fsum(
        float(p.probability * chance * count / sum(p.firsts))
        for p in found
        for chance, count in zip(lottery.law(p.scores), p.firsts, strict=True)
    )
