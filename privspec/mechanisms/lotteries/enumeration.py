"""The largest ratio of probabilities between neighbours, by going through all electorates of a small size."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import permutations
from math import comb, factorial
from typing import TypeAlias

from privspec.mechanisms.lotteries.rule import VotingTask
from privspec.model.lotteries import Ballot, FirstChoice, Law, Lottery, Points

FEW = 3000
"""Pairs of neighbours that are gone through while somebody waits."""
Change: TypeAlias = tuple[Law, Law]


def kinds(points: Points) -> tuple[Ballot, ...]:
    """Every ballot that counts differently: one for each first choice, or every full ranking."""
    if isinstance(points, FirstChoice):
        return points.alternatives
    return tuple(permutations(points.alternatives))


def totals(points: Points, voters: int) -> tuple[Law, ...]:
    """Every vector of points that so many ballots can add up to, each once."""
    each = tuple(dict.fromkeys(points.of(ballot) for ballot in kinds(points)))
    return _sums(each, voters)


@lru_cache(maxsize=256)
def _sums(each: tuple[Law, ...], voters: int) -> tuple[Law, ...]:
    if not voters:
        return (tuple(Fraction(0) for _ in each[0]),)
    return tuple(dict.fromkeys(_plus(a, b) for a in _sums(each, voters - 1) for b in each))


def _plus(one: Law, other: Law) -> Law:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def neighbours(task: VotingTask) -> Iterator[Change]:
    """Points of every pair of neighbouring electorates of the size that the task names, in one order or both."""
    assert task.voters is not None
    for common in totals(task.points, task.voters - (0 if task.adding else task.moved)):
        if task.adding:
            for more in range(1, task.group + 1):
                yield from ((common, _plus(common, extra)) for extra in totals(task.points, more))
        else:
            moved = [_plus(common, part) for part in totals(task.points, task.moved)]
            yield from ((a, b) for k, a in enumerate(moved) for b in moved[:k])


def few(task: VotingTask) -> bool:
    """Whether there are at most FEW pairs, counted generously; no more than one voter at once."""
    m = len(task.alternatives)
    if task.voters is None or (task.group > 1 if task.adding else task.moved > 1):
        return False
    k = m if isinstance(task.points, FirstChoice) else factorial(min(m, 8))
    # beyond 64 a number too large to list anything, in place of one with a million digits
    return comb(task.voters + k - 1, min(task.voters, k - 1, 64)) * (k if task.adding else k * k) <= FEW


@lru_cache(maxsize=64)
def enumerated_ratio(lottery: Lottery, task: VotingTask) -> Fraction | None:
    """The largest ratio of a probability between neighbours of the task, which must name the number of voters.

    Returns: None where it is infinite: an alternative can win in one electorate only.
    """
    law = lru_cache(maxsize=None)(lottery.law)
    largest = Fraction(1)
    for one, other in neighbours(task):
        for a, b in zip(law(one), law(other), strict=True):
            if a == b:
                continue
            if not a or not b:
                return None
            largest = max(largest, a / b, b / a)
    return largest
