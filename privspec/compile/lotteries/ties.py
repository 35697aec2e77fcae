"""No rule whatever agrees more often with plurality: a bound from a near tie (notes/randomised-winner.md).

Of any number of votes there is a profile in which one replaced vote makes any alternative win that is wanted: all have
the same number of votes but for one more that those declared last may have. A rule that misses the winner with
probability d at most gives each of them 1 - d where it wins, so that at the near tie each of the m - 1 others has
e^-epsilon (1 - d): d >= (m - 1) / (e^epsilon + m - 1). Where voters are added or removed, each step is two; and without
the vote that is replaced each of the m alternatives is one step away: 1 >= m e^-epsilon (1 - d).
"""

from __future__ import annotations

from fractions import Fraction

from privspec.compile.lotteries.system import LotterySystem
from privspec.core.rounding import exp_up, log_down
from privspec.model.lotteries import FirstChoice, Largest
from privspec.problem.vote_forms import Distance, Measured, Miss

LARGEST_STEP = 200
"""Epsilon beyond which the bound is nothing."""
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
    if (
        measured is None
        or len(measured.terms) != 1
        or not isinstance(system.points, FirstChoice)
        or len(system.alternatives) < 2
    ):
        return None
    (term,) = measured.terms
    if term.operator != "worst" or len(term.body.parts) != 1:
        return None
    ((weight, cost),) = term.body.parts
    plurality = isinstance(cost, Distance | Miss) and isinstance(cost.other, Largest)
    if not plurality or weight <= 0 or term.weight <= 0:
        return None
    return term.weight * weight, term.weight * term.body.offset + measured.offset


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
