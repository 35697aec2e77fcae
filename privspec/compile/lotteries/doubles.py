"""Laws of lotteries in double precision, for many profiles at once: for simulation only, never for a guarantee."""

from __future__ import annotations

from fractions import Fraction
from functools import singledispatch
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import InternalError
from privspec.model.lotteries import (
    Exponential,
    Largest,
    LocalPick,
    Lottery,
    PermuteAndFlip,
    Proportional,
    RandomisedLargest,
)
from privspec.problem.vote_forms import Body, Cost, Distance, Miss, VotesMissed

Floats: TypeAlias = NDArray[np.float64]


@singledispatch
def laws(lottery: Lottery, scores: Floats) -> Floats:  # noqa: ARG001 - the form of all that are registered
    """The law of the winner at each profile.

    Args: scores (n, m), total points of the alternatives. Returns: (n, m), rows sum to 1.
    """
    raise InternalError(f"no laws in doubles for {type(lottery).__name__}")


@laws.register
def _(lottery: Proportional, scores: Floats) -> Floats:
    weights = scores + float(lottery.dummies)
    totals = weights.sum(axis=1, keepdims=True)
    even = np.full_like(weights, 1 / scores.shape[1])
    return np.where(totals > 0, weights / np.where(totals > 0, totals, 1), even)


@laws.register
def _(lottery: LocalPick, scores: Floats) -> Floats:
    voters, m = scores.sum(axis=1, keepdims=True), scores.shape[1]
    truth = float(lottery.ratio - 1) / float(lottery.ratio + m - 1)
    found: Floats = truth * laws(Proportional(), scores) + (1 - truth) / m * np.ones_like(voters)
    return found


@laws.register
def _(lottery: Largest, scores: Floats) -> Floats:  # noqa: ARG001 - dispatched on
    found = np.zeros_like(scores)
    found[np.arange(len(scores)), scores.argmax(axis=1)] = 1
    return found


@laws.register
def _(lottery: RandomisedLargest, scores: Floats) -> Floats:
    whole = lottery.ratio + scores.shape[1] - 1
    found: Floats = float(1 / whole) + float((lottery.ratio - 1) / whole) * laws(Largest(), scores)
    return found


@laws.register
def _(lottery: Exponential, scores: Floats) -> Floats:
    weights = _chances(lottery.base, scores)
    found: Floats = weights / weights.sum(axis=1, keepdims=True)
    return found


@laws.register
def _(lottery: PermuteAndFlip, scores: Floats) -> Floats:
    """The integral of `PermuteAndFlip.law` by Gauss's rule, which is exact for polynomials of this degree."""
    chances, m = _chances(lottery.base, scores), scores.shape[1]
    nodes, weights = np.polynomial.legendre.leggauss(max(1, (m + 1) // 2))
    found = np.zeros_like(scores)
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        passed = 1 - node * chances
        for a in range(m):
            found[:, a] += weight * chances[:, a] * np.delete(passed, a, axis=1).prod(axis=1)
    return found


def _chances(base: Fraction, scores: Floats) -> Floats:
    """base^(score - largest score)."""
    gaps = scores.max(axis=1, keepdims=True) - scores
    found: Floats = np.exp(-np.log1p(float(base - 1)) * gaps)
    return found


# --- costs ----------------------------------------------------------------------------------------


def body_at(body: Body, winners: Floats, scores: Floats) -> Floats:
    """A weighted sum of costs at many profiles: winners and scores (n, m); result (n,)."""
    total: Floats = np.full(len(scores), float(body.offset))
    for weight, cost in body.parts:
        total = total + float(weight) * cost_at(cost, winners, scores)
    return total


def cost_at(cost: Cost, winners: Floats, scores: Floats) -> Floats:
    """A cost at many profiles, as `cost.at` at one."""
    match cost:
        case Distance(other=other):
            found: Floats = np.abs(winners - laws(other, scores)).sum(axis=1) / 2
        case Miss(other=other):
            found = 1 - (winners * laws(other, scores)).sum(axis=1)
        case VotesMissed():
            found = 1 - (winners * scores).sum(axis=1) / scores.sum(axis=1)
    return found
