"""Electorates gone through ballot by ballot, with laws written out again: what closed forms are compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, permutations

from privspec.families.voting.rules import VotingTask, kinds
from privspec.model import voting as model

Counts = tuple[int, ...]
Law = Callable[[Counts], list[Fraction]]


def first_choices(m: int) -> list[Counts]:
    """What each ballot gives to each of m alternatives."""
    return [tuple(int(a == b) for b in range(m)) for a in range(m)]


def rankings(m: int) -> list[Counts]:
    """Borda points of every strict ranking."""
    return [tuple(order) for order in permutations(range(m))]


def added(ballots: Sequence[Counts], m: int) -> Counts:
    """Total points."""
    return tuple(sum(ballot[a] for ballot in ballots) for a in range(m))


def pairs(ballots: Sequence[Counts], m: int, voters: int, adding: bool) -> Iterator[tuple[Counts, Counts]]:
    """Totals of every two neighbours; when adding, of `voters` and one more."""
    for profile in combinations_with_replacement(ballots, voters):
        before = added(profile, m)
        if adding:
            for more in ballots:
                yield before, added((*profile, more), m)
        else:
            for k, other in ((k, b) for k in range(voters) for b in ballots):
                yield before, added((*profile[:k], other, *profile[k + 1 :]), m)


def largest(law: Law, ballots: Sequence[Counts], m: int, voters: int, adding: bool) -> Fraction | None:
    """The largest ratio of a probability; None where it is infinite."""
    worst = Fraction(1)
    for one, other in set(pairs(ballots, m, voters, adding)):
        for a, b in zip(law(one), law(other), strict=True):
            for top, bottom in ((a, b), (b, a)):
                if top and not bottom:
                    return None
                if top:
                    worst = max(worst, top / bottom)
    return worst


def dummies(k: Fraction) -> Law:
    """(N_a + k) / (sum N + m k)."""
    return lambda n: [(c + k) / (sum(n) + len(n) * k) if sum(n) or k else Fraction(1, len(n)) for c in n]


def exponential(x: Fraction) -> Law:
    """x^N_a / sum."""
    return lambda n: [x**c / sum(x**d for d in n) for c in n]


def flips(x: Fraction) -> Law:
    """Every order of the alternatives, gone through."""

    def law(n: Counts) -> list[Fraction]:
        found = [Fraction(0)] * len(n)
        orders = list(permutations(range(len(n))))
        for order in orders:
            left = Fraction(1, len(orders))
            for a in order:
                taken = left * x ** (n[a] - max(n))
                found[a] += taken
                left -= taken
        return found

    return law


def reports(odds: Fraction) -> Law:
    """One voter at random, whose answer is turned: the truth `odds` times as likely as each other alternative."""

    def law(n: Counts) -> list[Fraction]:
        m, whole = len(n), sum(n)
        if not whole:
            return [Fraction(1, m)] * m
        return [
            sum(Fraction(c, whole) * (odds if a == b else 1) / (odds + m - 1) for b, c in enumerate(n))
            for a in range(m)
        ]

    return law


# --- the largest ratio of a lottery of the model ----------------------------------------------------------


def totals(points: model.Points, voters: int) -> tuple[model.Law, ...]:
    """Every vector of points that so many ballots can add up to, each once."""
    each = tuple(dict.fromkeys(points.of(ballot) for ballot in kinds(points)))
    return _sums(each, voters)


@lru_cache(maxsize=256)
def _sums(each: tuple[model.Law, ...], voters: int) -> tuple[model.Law, ...]:
    if not voters:
        return (tuple(Fraction(0) for _ in each[0]),)
    return tuple(dict.fromkeys(_plus(a, b) for a in _sums(each, voters - 1) for b in each))


def _plus(one: model.Law, other: model.Law) -> model.Law:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def neighbours(task: VotingTask) -> Iterator[tuple[model.Law, model.Law]]:
    """Points of every pair of neighbouring electorates of the size that the task names, in one order or both."""
    assert task.voters is not None
    for common in totals(task.points, task.voters - (0 if task.adding else task.moved)):
        if task.adding:
            for more in range(1, task.group + 1):
                yield from ((common, _plus(common, extra)) for extra in totals(task.points, more))
        else:
            moved = [_plus(common, part) for part in totals(task.points, task.moved)]
            yield from ((a, b) for k, a in enumerate(moved) for b in moved[:k])


@lru_cache(maxsize=64)
def enumerated_ratio(lottery: model.Lottery, task: VotingTask) -> Fraction | None:
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
