"""No rule whatever is nearer to random dictatorship: a bound from the requirement alone (notes/lottery-bound.md).

Merge the alternatives into two, the one that gains and all others, and walk k voters from the others to it, one by
one. Its probability starts at p_0 and ends at p_k <= e^(k epsilon) p_0. At distance d from random dictatorship
p_0 <= d and p_k >= k / T - d, so d >= (k / T) / (1 + e^(k epsilon)). Where voters are added or removed, each step is
two: 2 epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from privspec.compile.lotteries.budget import distance_limit
from privspec.compile.lotteries.costs import Distance
from privspec.compile.lotteries.system import LotterySystem, Promise
from privspec.core.powers import exp_up
from privspec.model.lotteries import FirstChoice, Proportional
from privspec.model.measures import Chosen, PureDP


def least_epsilon(system: LotterySystem) -> LotteryBound | None:
    """For `choose epsilon` with an accuracy line d on the same distance: epsilon >= log(k / (T d) - 1) / k, any k.

    Half of it where voters are added or removed.
    """
    distances = [distance_limit(limit) for limit in system.limits]
    d = min((found for found in distances if found is not None), default=Fraction(0))
    if d <= 0 or not isinstance(system.points, FirstChoice) or len(system.alternatives) < 2:
        return None
    promises = [p for p in system.promises if p.epsilon is None and isinstance(p.requirement.measure, Chosen)]
    each = 2 if all(promise.task.adding for promise in promises) else 1
    guess = float(system.voters * d) * _LEAST
    near = {max(1, min(system.voters, k)) for k in (floor(guess), ceil(guess))}
    found = [
        (log_down(Fraction(k) / (system.voters * d) - 1) / (k * each), k) for k in near if k > 2 * system.voters * d
    ]
    return LotteryBound(*max(found)) if found else None


def log_down(value: Fraction) -> Fraction:
    """A lower bound on the logarithm of a number above 1, within 2^-60."""
    from flint import arb, ctx, fmpq

    with ctx.workprec(192):
        scaled = arb(fmpq(value.numerator, value.denominator)).log() * arb(2) ** 64
        found = scaled.lower().floor().unique_fmpz()
    return Fraction(0) if found is None else Fraction(int(found), 1 << 64)


LARGEST_STEP = 200
"""Votes times epsilon beyond which the bound is nothing."""
_TURN = 1.2784645427610738
"""Where x / (1 + e^x) is largest."""
_LEAST = 4.591121476668622
"""Where log(x - 1) / x is largest."""


@dataclass(frozen=True, slots=True)
class LotteryBound:
    """A lower bound on the loss of every rule that meets the requirement, and the number of votes that proves it."""

    value: Fraction
    votes: int


def lower_bound(system: LotterySystem) -> LotteryBound | None:
    """For worst[total_variation(O, random_dictator(...))]; None for other losses and requirements."""
    if not _applies(system):
        return None
    ((term,), offset) = (system.loss.terms, system.loss.offset)
    ((weight, _),) = term.body.parts
    found = [best_walk(system.voters, step(promise)) for promise in system.promises if _pure(promise)]
    best = max(found, key=lambda bound: bound.value, default=None)
    if best is None:
        return None
    return LotteryBound(term.weight * (weight * best.value + term.body.offset) + offset, best.votes)


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


def best_walk(voters: int, step: Fraction) -> LotteryBound:
    """The number of votes with the largest bound."""
    guess = _TURN / float(step)
    near = {max(1, min(voters, k)) for k in (floor(guess) - 1, floor(guess), ceil(guess), ceil(guess) + 1)}
    return max((walk(voters, k, step) for k in sorted(near)), key=lambda bound: bound.value)


def walk(voters: int, votes: int, step: Fraction) -> LotteryBound:
    """The bound that a walk of so many votes gives, rounded down."""
    if votes * step > LARGEST_STEP:
        return LotteryBound(Fraction(0), votes)
    return LotteryBound(Fraction(votes, voters) / (1 + exp_up(votes * step)), votes)
