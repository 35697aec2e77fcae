"""No rule whatever is better: lower bounds from the requirement alone, and for rules under which no lie pays.

Every bound is what the kernel proves of a witness; here witnesses are chosen. Notes lottery-bound, randomised-winner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, floor, log
from typing import Any

from privspec.core.rounding import log_down
from privspec.families.selection.profiles import unanimous_distance
from privspec.families.selection.system import LotterySystem
from privspec.kernel.core.reading import Item, Refused
from privspec.kernel.lemmas.votes import PLURALITY, SCOPES, SHARES, bounds
from privspec.problem.vote_forms import Limit

Witness = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LotteryBound:
    """A lower bound on the loss of every rule of its scope, and what proves it, as the kernel reads it."""

    value: Fraction
    witness: Witness

    @property
    def scope(self) -> str:
        """The rules that it is about."""
        return SCOPES[self.witness["form"]]

    @property
    def truthful(self) -> bool:
        """Whether it is about strategy-proof rules alone."""
        return bool(self.witness["form"] == TRUTHFUL["form"])


TRUTHFUL: Witness = {"form": "strategy-proof"}


def near_tie(voters: int, alternatives: int) -> Witness:
    """Numbers of votes from which one replaced vote leads to any winner, for ties that the first declared wins.

    An alternative that gets the vote of the winner is ahead, or level with some that were declared after it.
    """
    each, more = divmod(voters, alternatives)
    return {"form": "near tie", "profile": [each] * (alternatives - more) + [each + 1] * more}


def best_walks(voters: int, others: int, step: float) -> list[Witness]:
    """Votes that move from unanimity, next to where the bound is largest: x = k step solves e^x (x - 1) = m - 1."""
    return _walks(_root(lambda x: exp(x) * (x - 1) - others, 1.0, 60.0) / step, voters)


def _walks(guess: float, voters: int) -> list[Witness]:
    """Whole numbers next to a guess, among 1, ..., T."""
    near = sorted({max(1, min(voters, k)) for k in (floor(guess), ceil(guess))})
    return [{"form": "walk", "votes": k} for k in near]


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where an increasing function is 0."""
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return low


# --- a loss, from epsilon ---------------------------------------------------------------------------------


def lower_bound(system: LotterySystem) -> LotteryBound | None:
    """For the worst distance from random dictatorship or plurality; None for other losses and requirements."""
    votes, others = system.votes, len(system.votes.alternatives) - 1
    tried = [near_tie(votes.voters, others + 1)]
    for promise in system.promises:
        if promise.epsilon and promise.pure and others:
            tried += best_walks(votes.voters, others, float(promise.epsilon) * (2 if promise.task.adding else 1))
    return max((found for one in tried for found in _proved(system, one)), key=lambda one: one.value, default=None)


def truthful_bound(system: LotterySystem) -> LotteryBound | None:
    """A lower bound on the loss of all strategy-proof rules.

    None where the spec does not ask for one, or the loss of dummy votes has no exact value.
    """
    return next((one for one in _proved(system, TRUTHFUL) if one.value >= 0), None)  # below 0 it says nothing


def _proved(system: LotterySystem, witness: Witness) -> Iterator[LotteryBound]:
    """What a witness proves of the loss, if anything."""
    lines = tuple(promise.obligation for promise in system.promises if promise.pure)
    try:
        found = bounds(lines, system.exact, Item(witness, "bound"), system.loss, {})
    except Refused:
        return
    if system.loss.terms and found:
        yield LotteryBound(max(found), witness)


# --- an epsilon, from a distance --------------------------------------------------------------------------


def least_epsilon(system: LotterySystem) -> LotteryBound | None:
    """For a number that is picked with an accuracy line d on such a distance; less where voters come and go.

    Random dictatorship: log((m - 1) (k / (T d) - 1)) / k, any k. Plurality: log((m - 1) (1 - d) / d); where voters are
    added or removed half of these, and log(m (1 - d)).
    """
    m, voters = len(system.votes.alternatives), system.votes.voters
    each = 2 if all(p.task.adding for p in system.promises if p.epsilon is None) else 1
    found: list[LotteryBound] = []
    if system.votes.ballots.borda or m < 2:
        return None
    distances = [d for limit in system.votes.limits if (d := distance_limit(limit)) is not None]
    if distances and min(distances) > 0:
        d = min(distances)
        root = _root(lambda u: log((m - 1) * (u - 1)) - u / (u - 1), 1 + 1e-9, 60.0)
        for walk in _walks(root * float(voters * d), voters):
            ratio = (m - 1) * (Fraction(walk["votes"]) / (voters * d) - 1)
            found += [LotteryBound(log_down(ratio) / (walk["votes"] * each), walk)] if ratio > 1 else []
    for limit in system.votes.limits:
        miss = _scaled(limit, (True, PLURALITY), (False, PLURALITY))
        if miss is not None and 0 < miss < 1:
            steps = [((m - 1) * (1 - miss) / miss, each), *([(m * (1 - miss), 1)] if each == 2 and voters > 1 else [])]
            known = [log_down(ratio) / step for ratio, step in steps if ratio > 1]
            found += [LotteryBound(value, near_tie(voters, m)) for value in known]
    return max(found, key=lambda one: one.value, default=None)


def _scaled(limit: Limit, *wanted: Any) -> Fraction | None:
    """The d of `worst[cost] <= d` for one of some costs; None for other lines."""
    weight = None if limit.measured is None else limit.measured.alone(*wanted)
    return None if weight is None or limit.measured is None else (limit.bound - limit.measured.offset) / weight


def distance_limit(limit: Limit) -> Fraction | None:
    """The d of `worst[total_variation(O, w)] <= d` for the lottery w in proportion to points; None for other lines."""
    return _scaled(limit, (True, SHARES))


def dummies_at(system: LotterySystem) -> Fraction | None:
    """The most dummy votes for each alternative that all lines allow; None where there are other lines, or no limit.

    m k / (P + m k) V <= d, with P points of all voters and V the distance of a unanimous profile from the uniform law:
    k <= P d / (m (V - d)). For first choices T d / (m - 1 - m d).
    """
    votes = system.votes
    distances = [distance_limit(limit) for limit in votes.limits if limit.measured is not None]  # dummies: no lie pays
    known = [d for d in distances if d is not None]
    farthest, m = unanimous_distance(system), len(votes.alternatives)
    if not known or len(known) < len(distances) or min(known) >= farthest:
        return None
    d = max(min(known), Fraction(0))
    return votes.voters * sum(votes.ballots.ladder) * d / (m * (farthest - d))


def truthful_epsilon(system: LotterySystem) -> LotteryBound | None:
    """The least epsilon of any strategy-proof rule that is as near to random dictatorship as the spec asks.

    At a distance of d at most K = T d / (m - 1 - m d) dummy votes are left: epsilon >= log(1 + g / K).
    """
    votes = system.votes
    asked = any(limit.measured is None and limit.bound == 0 for limit in votes.limits)
    known = asked and votes.ballots.kind == "first choice" and len(votes.alternatives) > 2
    dummies = dummies_at(system) if known else None
    replaced = [p.task.moved for p in system.promises if p.epsilon is None and p.pure and not p.task.adding]
    if not dummies or not replaced:
        return None
    return LotteryBound(log_down(1 + max(replaced) / dummies), TRUTHFUL)
