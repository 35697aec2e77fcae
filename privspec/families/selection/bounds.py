"""No rule whatever is better: lower bounds from the requirement alone, and for rules under which no lie pays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, floor, log
from typing import Any

from privspec.core.rounding import exp_up, log_down
from privspec.families.selection.plans import lottery_value
from privspec.families.selection.profiles import Averages, unanimous_distance
from privspec.families.selection.system import LotterySystem, Promise
from privspec.model.lotteries import FirstChoice, Proportional
from privspec.model.measures import Chosen, PureDP
from privspec.problem.vote_forms import Cost, Limit, Measured

# --- No rule whatever agrees more often with plurality: a bound from a near tie (notes/randomis

VOTES = 1
"""How many votes are replaced."""


def near_tie(voters: int, alternatives: int) -> tuple[int, ...]:
    """Numbers of votes from which one replaced vote leads to any winner, for ties that the first declared wins.

    An alternative that gets the vote of the winner is ahead, or level with some that were declared after it.
    """
    each, more = divmod(voters, alternatives)
    return (*(each,) * (alternatives - more), *(each + 1,) * more)


def miss_of(system: LotterySystem, measured: Measured | None) -> tuple[Fraction, Fraction] | None:
    """Weight > 0 and constant where a line is weight * worst[mismatch(O, plurality(...))] + constant; else None.

    The total variation from plurality is the same number: what is drawn there is one alternative.
    """
    cost = None if measured is None else alone(measured)
    known = isinstance(system.points, FirstChoice) and len(system.alternatives) > 1
    return (cost.weight, measured.offset) if measured and cost and cost.plurality and known else None


def alone(measured: Measured) -> Cost | None:
    """The cost of weight > 0 where a sum is its worst case, and a constant; else None."""
    costs = [cost for term in measured.terms for cost in term.parts if term.operator == "worst" and cost.weight > 0]
    return costs[0] if len(costs) == len(measured.terms) == len(measured.terms[0].parts) == 1 else None


def least_miss(system: LotterySystem, epsilon: Fraction, *, adding: bool) -> Fraction:
    """No rule misses the winner of plurality less often; rounded down."""
    m, steps = len(system.alternatives), 2 if adding else 1
    if epsilon * steps > LARGEST_STEP:
        return Fraction(0)
    apart = (m - 1) / (exp_up(epsilon * steps) + m - 1)
    # without the vote that moves, each alternative is one added vote away
    return max(apart, 1 - exp_up(epsilon) / m) if adding and system.voters > 1 else apart


def least_epsilon_of_miss(system: LotterySystem, *, adding: bool) -> Fraction | None:
    """The least epsilon for which no accuracy line on the miss is below `least_miss`; None where there are none.

    With a miss of d: log((m - 1) (1 - d) / d), or the larger of half of it and log(m (1 - d)); rounded down.
    """
    m, found = len(system.alternatives), []
    for limit in system.limits:
        scaled = miss_of(system, limit.measured)
        if scaled is None:
            continue
        miss = (limit.bound - scaled[1]) / scaled[0]
        if not 0 < miss < 1:
            continue
        found.append(_log_down((m - 1) * (1 - miss) / miss) / (2 if adding else 1))
        if adding and system.voters > 1:
            found.append(_log_down(m * (1 - miss)))
    return max(found, default=None)


def _log_down(ratio: Fraction) -> Fraction:
    """A logarithm, rounded down; 0 where it would be below that."""
    return log_down(ratio) if ratio > 1 else Fraction(0)


def distance_limit(limit: Limit) -> Fraction | None:
    """The d of `worst[total_variation(O, w)] <= d` for the lottery w in proportion to points; None for other lines."""
    if limit.measured is None:
        return None
    cost = alone(limit.measured)
    if cost is None or cost.form != "distance" or not cost.shares:
        return None
    return (limit.bound - limit.measured.offset) / cost.weight


def dummies_at(system: LotterySystem) -> Fraction | None:
    """The most dummy votes for each alternative that all lines allow; None where there are other lines, or no limit.

    m k / (P + m k) V <= d, with P points of all voters and V the distance of a unanimous profile from the uniform law:
    k <= P d / (m (V - d)). For first choices T d / (m - 1 - m d).
    """
    distances = [distance_limit(limit) for limit in system.limits if not limit.lies]  # with dummies no lie pays
    known = [d for d in distances if d is not None]
    farthest, m = unanimous_distance(system), len(system.alternatives)
    if not known or len(known) < len(distances) or min(known) >= farthest:
        return None
    d = max(min(known), Fraction(0))
    return system.voters * system.points.per_ballot * d / (m * (farthest - d))


# --- No rule whatever is nearer to random dictatorship, or to plurality: bounds from the requir

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
    cost = alone(system.loss)
    if cost is None or not _applies(system, cost):
        return _beside_plurality(system)
    others = len(system.alternatives) - 1
    found = [best_walk(system.voters, others, step(promise)) for promise in system.promises if _pure(promise)]
    best = max(found, key=lambda bound: bound.value, default=None)
    if best is None:
        return None
    return LotteryBound(cost.weight * best.value + system.loss.offset, best.votes)


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


def _applies(system: LotterySystem, cost: Cost) -> bool:
    first = isinstance(system.points, FirstChoice) and len(system.alternatives) > 1
    return cost.form == "distance" and cost.shares and first


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


# --- No rule under which lies never pay is better than dummy votes, from three alternatives on:

SCOPE = "every strategy-proof rule that meets the requirement"
SLACK = Fraction(1, 1 << 60)
"""More than what values are rounded up by, beside 1 and themselves."""


def truthful_bound(system: LotterySystem, averages: Averages) -> LotteryBound | None:
    """A lower bound on the loss of all strategy-proof rules.

    None where the spec does not ask for one, or the loss of dummy votes has no exact value.
    """
    terms = system.loss.terms
    if not _known(system):
        return None
    if not terms or not all(cost.weight >= 0 and cost.shares for term in terms for cost in term.parts):
        return None
    if any(term.operator == "E" for term in terms) and not _alike(system):
        return None
    if any(term.operator == "E" for term in terms) and averages.profiles is None:
        return None
    dummies = max(fewest(system.promises), default=None)
    if dummies is None:
        return None
    found = lottery_value(system, Proportional(dummies), averages)
    least = found.value - (abs(found.value) + 1) * SLACK
    if not found.exact or least < 0 <= found.value:  # below 0 it says nothing
        return None
    return LotteryBound(least, None, scope=SCOPE)


def truthful_epsilon(system: LotterySystem) -> LotteryBound | None:
    """The least epsilon of any strategy-proof rule that is as near to random dictatorship as the spec asks.

    At a distance of d at most K = T d / (m - 1 - m d) dummy votes are left: epsilon >= log(1 + g / K).
    """
    dummies = dummies_at(system) if _known(system) else None
    replaced = [p.task.moved for p in system.promises if _chosen(p) and not p.task.adding]
    if not dummies or not replaced:
        return None
    return LotteryBound(log_down(1 + max(replaced) / dummies), None, scope=SCOPE)


def _chosen(promise: Promise) -> bool:
    measure = promise.requirement.measure
    return promise.epsilon is None and isinstance(measure, Chosen) and measure.kind == PureDP.name


def _known(system: LotterySystem) -> bool:
    """Whether no lie may pay in a vote whose strategy-proof rules are known."""
    asked = any(limit.lies and limit.bound == 0 for limit in system.limits)
    first = system.votes.ballots.kind == "first choice" and isinstance(system.points, FirstChoice)
    return asked and first and len(system.alternatives) > 2


def _alike(system: LotterySystem) -> bool:
    """Whether the data model makes every first choice as likely as any other."""
    law = system.law
    return law is not None and len(law) == len(system.alternatives) and len({weight for _, weight in law}) == 1


def fewest(promises: Iterable[Promise]) -> Iterable[Fraction]:
    """For each pure promise about replaced votes, the fewest dummy votes for each alternative; rounded down."""
    for promise in promises:
        epsilon = promise.epsilon
        if promise.task.adding or epsilon is None or not isinstance(promise.requirement.measure, PureDP):
            continue
        if 0 < epsilon <= LARGEST_STEP:
            yield promise.task.moved / (exp_up(epsilon) - 1)
