"""No rule whatever is nearer to random dictatorship, or to plurality: bounds from the requirement alone.

Notes: lottery-bound.md, and randomised-winner.md for plurality (`ties`). For random dictatorship:

Let all T voters vote for one alternative: at distance d the m - 1 others are drawn with probability d at most, one of
them with p_0 <= d / (m - 1). Now k voters, one by one, move their votes to that one: p_k <= e^(k epsilon) p_0, and p_k
>= k / T - d. So d >= (k / T) / (1 + e^(k epsilon) / (m - 1)). Where voters are added or removed, each step is two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, floor, log
from typing import Any

from privspec.compile.lotteries.budget import distance_limit
from privspec.compile.lotteries.system import LotterySystem, Promise
from privspec.compile.lotteries.ties import VOTES, least_epsilon_of_miss, least_miss, miss_of, near_tie
from privspec.core.rounding import exp_up, log_down
from privspec.model.lotteries import FirstChoice, Proportional
from privspec.model.measures import Chosen, PureDP
from privspec.problem.vote_forms import Distance

EVERY_RULE = "every rule that meets the requirement"
LARGEST_STEP = 200
"""Votes times epsilon beyond which the bound is nothing."""


@dataclass(frozen=True, slots=True)
class LotteryBound:
    """A lower bound on the loss of every rule of its scope, and the number of votes that proves it, if votes do.

    `profile` are the votes for each alternative from which they move; None where all vote for one.
    """

    value: Fraction
    votes: int | None
    scope: str = EVERY_RULE
    profile: tuple[int, ...] | None = None

    def witness(self) -> dict[str, Any]:
        """What proves it, as the kernel reads it."""
        if self.votes is None:
            return {"form": "strategy-proof"}
        if self.profile is None:
            return {"form": "walk", "votes": self.votes}
        return {"form": "near tie", "profile": list(self.profile)}


# --- a distance, from epsilon ---------------------------------------------------------------------


def lower_bound(system: LotterySystem) -> LotteryBound | None:
    """For the worst distance from random dictatorship or plurality; None for other losses and requirements."""
    if not _applies(system):
        return _beside_plurality(system)
    ((term,), offset) = (system.loss.terms, system.loss.offset)
    ((weight, _),) = term.body.parts
    others = len(system.alternatives) - 1
    found = [best_walk(system.voters, others, step(promise)) for promise in system.promises if _pure(promise)]
    best = max(found, key=lambda bound: bound.value, default=None)
    if best is None:
        return None
    return LotteryBound(term.weight * (weight * best.value + term.body.offset) + offset, best.votes)


def _beside_plurality(system: LotterySystem) -> LotteryBound | None:
    """For worst[mismatch(O, plurality(...))], and the total variation."""
    scaled = miss_of(system, system.loss)
    found = [
        least_miss(system, promise.epsilon, adding=promise.task.adding)
        for promise in system.promises
        if _pure(promise) and promise.epsilon is not None
    ]
    if scaled is None or not found:
        return None
    weight, constant = scaled
    profile = near_tie(system.voters, len(system.alternatives))
    return LotteryBound(weight * max(found) + constant, VOTES, profile=profile)


def _applies(system: LotterySystem) -> bool:
    terms = system.loss.terms
    if len(terms) != 1 or terms[0].operator != "worst" or len(terms[0].body.parts) != 1:
        return False
    ((weight, cost),) = terms[0].body.parts
    plain = isinstance(cost, Distance) and cost.other == Proportional() and isinstance(system.points, FirstChoice)
    return plain and weight > 0 and terms[0].weight > 0 and len(system.alternatives) > 1


def _pure(promise: Promise) -> bool:
    return isinstance(promise.requirement.measure, PureDP)


def step(promise: Promise) -> Fraction:
    """By how much the logarithm of a probability can change when one vote moves."""
    assert promise.epsilon is not None
    return promise.epsilon * (2 if promise.task.adding else 1)


def best_walk(voters: int, others: int, step: Fraction) -> LotteryBound:
    """The number of votes with the largest bound: x = k step solves e^x (x - 1) = m - 1."""
    near = _about(_root(lambda x: exp(x) * (x - 1) - others, 1.0, 60.0) / float(step), voters)
    return max((walk(voters, others, k, step) for k in near), key=lambda bound: bound.value)


def walk(voters: int, others: int, votes: int, step: Fraction) -> LotteryBound:
    """The bound that a walk of so many votes gives, rounded down."""
    if votes * step > LARGEST_STEP:
        return LotteryBound(Fraction(0), votes)
    return LotteryBound(Fraction(votes, voters) / (1 + exp_up(votes * step) / others), votes)


# --- an epsilon, from a distance ------------------------------------------------------------------


def least_epsilon(system: LotterySystem) -> LotteryBound | None:
    """For `choose epsilon` with an accuracy line d on such a distance; half of it where voters are added or removed.

    Random dictatorship: log((m - 1) (k / (T d) - 1)) / k, any k. Plurality: log((m - 1) (1 / d - 1)).
    """
    promises = [p for p in system.promises if p.epsilon is None and isinstance(p.requirement.measure, Chosen)]
    each = 2 if all(promise.task.adding for promise in promises) else 1
    found = [one for one in (_from_shares(system, each), _from_plurality(system, each)) if one is not None]
    return max(found, key=lambda one: one.value, default=None)


def _from_plurality(system: LotterySystem, each: int) -> LotteryBound | None:
    found = least_epsilon_of_miss(system, adding=each == 2)
    if not found:
        return None
    return LotteryBound(found, VOTES, profile=near_tie(system.voters, len(system.alternatives)))


def _from_shares(system: LotterySystem, each: int) -> LotteryBound | None:
    distances = [distance_limit(limit) for limit in system.limits]
    d = min((found for found in distances if found is not None), default=Fraction(0))
    if d <= 0 or not isinstance(system.points, FirstChoice) or len(system.alternatives) < 2:
        return None
    others = len(system.alternatives) - 1
    best = _root(lambda u: log(others * (u - 1)) - u / (u - 1), 1 + 1e-9, 60.0)
    found = []
    for votes in _about(best * float(system.voters * d), system.voters):
        ratio = others * (Fraction(votes) / (system.voters * d) - 1)
        if ratio > 1:
            found.append((log_down(ratio) / (votes * each), votes))
    return LotteryBound(*max(found)) if found else None


def _about(guess: float, voters: int) -> list[int]:
    """Whole numbers next to a guess, among 1, ..., T."""
    return sorted({max(1, min(voters, k)) for k in (floor(guess), ceil(guess))})


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where an increasing function is 0."""
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return low
