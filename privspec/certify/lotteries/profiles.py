"""All profiles of a few voters, by the points that they give; and the largest ratio of probabilities among neighbours.

Nothing here knows a closed form: pairs of profiles are written down one by one, and their laws divided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb, factorial, prod
from operator import add
from typing import TypeAlias

from privspec.certify.lotteries.meaning import FIRST, Ballots, Scores
from privspec.certify.lotteries.rules import Change, Rule
from privspec.certify.motion import NotUnderstood

PAIR_LIMIT = 20_000
"""Most pairs of profiles that are compared."""
PROFILE_LIMIT = 5_000
"""Most totals of points that a loss is evaluated at."""
Weighted: TypeAlias = Mapping[Scores, Fraction | None]
"""Totals of points with their probability, None where there is no data model."""


@lru_cache(maxsize=256)
def totals(ballots: Ballots, voters: int) -> tuple[Scores, ...]:
    """The totals of points that so many ballots can have.

    Raises: NotUnderstood if there are too many.
    """
    if not voters:
        return ((Fraction(0),) * ballots.size,)
    kinds = ballots.kinds()
    if comb(voters + len(kinds) - 1, voters) > PAIR_LIMIT:
        raise NotUnderstood("too many profiles to list")
    found: dict[Scores, None] = {}
    for profile in combinations_with_replacement(kinds, voters):
        found[tuple(sum(points, Fraction(0)) for points in zip(*profile, strict=True))] = None
    return tuple(found)


def neighbours(ballots: Ballots, change: Change, voters: int) -> Iterator[tuple[Scores, Scores]]:
    """Totals of all pairs of profiles that the relation compares; the first is of so many voters.

    Replacing: g ballots are taken out of T and g others put in. Adding or removing: i are put in, j taken out.
    """
    group = min(change.group, voters) if not change.adding else change.group
    steps = (
        [(group, group)]
        if not change.adding
        else [(i, j) for i in range(group + 1) for j in range(min(group - i, voters) + 1)]
    )
    for into, out in steps:
        for rest in totals(ballots, voters - out):
            for old in totals(ballots, out):
                before = _sum(rest, old)
                for new in totals(ballots, into):
                    yield before, _sum(rest, new)


def pairs(ballots: Ballots, change: Change, voters: int) -> int:
    """How many of those there are, at most."""
    kinds = ballots.count if ballots.points != FIRST else ballots.size

    def count(n: int) -> int:
        # beyond 64 a number too large to list anything, in place of one with a million digits
        return comb(n + kinds - 1, min(n, kinds - 1, 64))

    if not change.adding:
        group = min(change.group, voters)
        return count(voters - group) * count(group) ** 2
    group = change.group
    steps = [(i, j) for i in range(group + 1) for j in range(min(group - i, voters) + 1)]
    return sum(count(voters - j) * count(j) * count(i) for i, j in steps)


def _sum(one: Scores, other: Scores) -> Scores:
    return tuple(a + b for a, b in zip(one, other, strict=True))


@lru_cache(maxsize=256)
def largest(rule: Rule, ballots: Ballots, change: Change, voters: int) -> Fraction | None:
    """The largest ratio between the laws of two neighbours, either way round; None if one of them has a zero.

    Where a rule treats alternatives alike, of pairs that differ in their names only one is looked at.
    """
    law, worst = lru_cache(maxsize=None)(rule.law), Fraction(1)
    every = (tuple(zip(one, other, strict=True)) for one, other in neighbours(ballots, change, voters))
    pairs_once = {tuple(sorted(pair)) if rule.alike else pair for pair in every}
    for pair in pairs_once:
        for p, q in zip(*(law(tuple(scores)) for scores in zip(*pair, strict=True)), strict=True):
            if (p == 0) != (q == 0):
                return None
            if p:
                worst = max(worst, p / q, q / p)
    return worst


# --- profiles of the voters of a spec ------------------------------------------------------------------


def profiles(ballots: Ballots, voters: int, weights: Mapping[Scores, Fraction] | None) -> Weighted:
    """The totals of all profiles of so many voters, with their probability if each ballot has a law of its own.

    Raises: NotUnderstood beyond the limit.
    """
    found = _every(ballots, voters, None if weights is None else tuple(weights.items()))
    if found is None:
        raise NotUnderstood("too many profiles to list")
    return found


@lru_cache(maxsize=16)
def _every(ballots: Ballots, voters: int, law: tuple[tuple[Scores, Fraction], ...] | None) -> Weighted | None:
    weights = None if law is None else dict(law)
    if ballots.points == FIRST:
        return _counts(ballots.size, voters, weights)
    kinds = ballots.kinds()
    if len(kinds) > 1 and voters >= PROFILE_LIMIT:
        return None
    # points are whole multiples of a half
    steps = [(tuple(int(2 * p) for p in kind), None if weights is None else weights[kind]) for kind in kinds]
    found: dict[tuple[int, ...], Fraction | None] = {(0,) * ballots.size: None if weights is None else Fraction(1)}
    for _ in range(voters):
        longer: dict[tuple[int, ...], Fraction | None] = {}
        for scores, mass in found.items():
            for kind, weight in steps:
                after = tuple(map(add, scores, kind))
                more = None if mass is None or weight is None else mass * weight
                before = longer.get(after)
                longer[after] = more if before is None or more is None else before + more
        if len(longer) > PROFILE_LIMIT:
            return None
        found = longer
    return {tuple(Fraction(twice, 2) for twice in scores): mass for scores, mass in found.items()}


def _counts(size: int, voters: int, weights: Mapping[Scores, Fraction] | None) -> Weighted | None:
    """Numbers of first choices: the multinomial law."""
    if comb(voters + size - 1, size - 1) > PROFILE_LIMIT:
        return None
    units = [tuple(Fraction(a == b) for a in range(size)) for b in range(size)]
    found: dict[Scores, Fraction | None] = {}
    ways = factorial(voters)
    for counts in _compositions(voters, size):
        mass = None
        if weights is not None:
            powers = prod((weights[unit] ** n for unit, n in zip(units, counts, strict=True)), start=Fraction(1))
            mass = Fraction(ways, prod(map(factorial, counts))) * powers
        found[tuple(map(Fraction, counts))] = mass
    return found


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)
