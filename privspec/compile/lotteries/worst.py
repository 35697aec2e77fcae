"""The worst case over all profiles of votes: closed forms for any number of voters, else all profiles or some.

Proofs: notes/worst-cases.md (mixtures with the uniform law, the least lead of a plurality winner), and
notes/randomised-winner.md (the winner's own randomised response against shares).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from privspec.compile.lotteries.balls import near_law
from privspec.compile.lotteries.doubles import body_at, laws
from privspec.compile.lotteries.electorate import Scores, listed
from privspec.compile.lotteries.estimates import Estimate
from privspec.compile.lotteries.system import LotterySystem
from privspec.model.lotteries import FirstChoice, Largest, LocalPick, Lottery, Proportional, RandomisedLargest
from privspec.problem.vote_forms import Body, Cost, Distance, Miss, VotesMissed

ROUNDING = 1e-9
"""What doubles may be wrong by, relatively, when they serve as a lower bound."""


def worst_case(system: LotterySystem, lottery: Lottery, body: Body) -> Estimate:
    """The largest cost over all profiles; a lower bound, so marked, where no formula and no list gives it."""
    found = _closed(system, lottery, body)
    if found is not None:
        return Estimate(found)
    profiles = listed(system)
    if profiles is not None:
        return Estimate(max(body.at(lottery.law(scores), scores) for scores in profiles), profiles=len(profiles))
    scores = np.array(list(_telling(system)), dtype=np.float64)
    seen = float(body_at(body, laws(lottery, scores), scores).max())
    return Estimate(Fraction(seen - abs(seen) * ROUNDING), at_least=True, profiles=len(scores))


# --- formulas -------------------------------------------------------------------------------------


def _closed(system: LotterySystem, lottery: Lottery, body: Body) -> Fraction | None:
    """Where one cost stands by itself."""
    if len(body.parts) != 1 or body.parts[0][0] < 0:
        return None
    ((weight, cost),) = body.parts
    found = _against_shares(system, lottery, cost)
    if found is None:
        profiles = _extreme(system, lottery, cost)
        found = None if profiles is None else max(_cost_up(cost, lottery, scores) for scores in profiles)
    return None if found is None else weight * found + body.offset


def _cost_up(cost: Cost, lottery: Lottery, scores: Scores) -> Fraction:
    """The cost at a profile; no cost moves further than the law does, in l1."""
    law, error = near_law(lottery, scores)
    return cost.at(law, scores) + error


def uniform_share(system: LotterySystem, lottery: Lottery) -> Fraction | None:
    """The weight of the uniform law in a lottery that is a mixture of it and the shares of points."""
    m = len(system.alternatives)
    match lottery:
        case Proportional(dummies=dummies):
            whole = system.voters * system.points.per_ballot + m * dummies
            return m * dummies / whole if whole else Fraction(1)
        case LocalPick(ratio=ratio):
            return m / (ratio + m - 1)
    return None


def unanimous_distance(system: LotterySystem) -> Fraction:
    """Total variation between the uniform law and the shares of points when all cast one of the longest ballots."""
    if len(system.alternatives) < 2:
        return Fraction(0)
    shares = [p / system.points.per_ballot for p in system.points.of(system.alternatives[: system.votes.longest])]
    even = Fraction(1, len(shares))
    return sum((abs(share - even) for share in shares), Fraction(0)) / 2


def _against_shares(system: LotterySystem, lottery: Lottery, cost: Cost) -> Fraction | None:
    """A mixture against the shares themselves: convex in the shares, so largest where everybody agrees."""
    share = uniform_share(system, lottery)
    if share is None or not isinstance(cost, Distance) or cost.other != Proportional():
        return None
    return share * unanimous_distance(system)


def mixture_mean(system: LotterySystem, lottery: Lottery, body: Body) -> Estimate | None:
    """The average of votes missed by a mixture (1 - w) shares + w uniform, by the variance of counts; else None.

    1 - (1 - w) sum E[q^2] - w / m with E[N^2] = T p (1 - p) + T^2 p^2.
    """
    share, law, voters = uniform_share(system, lottery), system.law, system.voters
    if share is None or law is None or not isinstance(system.points, FirstChoice):
        return None
    if not all(
        isinstance(c, VotesMissed) or (isinstance(c, Miss) and c.other == Proportional()) for _, c in body.parts
    ):
        return None
    squares = sum((p * (1 - p) / voters + p * p for p in law.weights), Fraction(0))
    missed = 1 - (1 - share) * squares - share / len(system.alternatives)
    return Estimate(sum((weight * missed for weight, _ in body.parts), body.offset))


def _extreme(system: LotterySystem, lottery: Lottery, cost: Cost) -> Iterator[Scores] | None:
    """Profiles of which one is the worst, for rules that treat alternatives alike and prefer those with more votes."""
    if not isinstance(system.points, FirstChoice):
        return None
    if isinstance(cost, Distance | Miss) and isinstance(cost.other, Largest):
        return _least_leads(system.voters, len(system.alternatives))
    even = system.voters % len(system.alternatives) == 0
    votes = isinstance(cost, VotesMissed) or (isinstance(cost, Miss) and cost.other == Proportional())
    winner = isinstance(lottery, RandomisedLargest)
    if votes and (even or winner or uniform_share(system, lottery) is not None):
        return iter((_balanced(system.voters, len(system.alternatives)),))
    if winner and isinstance(cost, Distance) and cost.other == Proportional():
        return _leads(system.voters, len(system.alternatives))
    return None


def _least_leads(voters: int, m: int) -> Iterator[Scores]:
    """For each number j of leaders: the least score that j of them, and no j + 1, can have; the rest in one hand."""
    for leaders in range(1, m + 1):
        score = voters // (leaders + 1) + 1 if leaders < m else voters // m
        rest = voters - leaders * score
        if score < 1 or rest < 0 or (leaders == m and rest):
            continue
        yield _profile((score,) * leaders + ((rest,) if leaders < m else ()), m)


def _leads(voters: int, m: int) -> Iterator[Scores]:
    """For each number j of leaders: the least and the largest score that j of them, and no j + 1, can have."""
    yield from _least_leads(voters, m)
    for leaders in range(1, m):
        score = voters // leaders
        rest = voters - leaders * score
        if score > rest:
            yield _profile((score,) * leaders + (rest,), m)


def _balanced(voters: int, m: int) -> Scores:
    each, more = divmod(voters, m)
    return _profile([each + 1] * more + [each] * (m - more), m)


def _profile(votes: Sequence[int], m: int) -> Scores:
    return tuple(Fraction(v) for v in (*votes, *(0,) * (m - len(votes))))


# --- profiles to look at --------------------------------------------------------------------------


def _telling(system: LotterySystem) -> Iterator[list[float]]:
    """Profiles where rules tend to be at their worst: everybody agrees, two camps, all alternatives alike."""
    m, voters = len(system.alternatives), system.voters
    first = [float(p) for p in system.points.of(system.alternatives[: system.votes.longest])]
    second = [first[1], first[0], *first[2:]] if m > 1 else first
    third = first[::-1]
    gaps = {0, 1, 2, 3, voters, *(int(voters * t / 64) for t in range(64))}
    gaps |= {int(1.2**i) for i in range(1, 90) if 1.2**i < voters}
    for gap in sorted(g for g in gaps if 0 <= g <= voters):
        fewer = (voters - gap) // 2
        for other in (second, third):
            yield [fewer * b + (voters - fewer) * a for a, b in zip(first, other, strict=True)]
    if isinstance(system.points, FirstChoice):
        yield [float(v) for v in _balanced(voters, m)]
        yield from ([float(v) for v in profile] for profile in _least_leads(voters, m))
