"""The least epsilon at which a rule meets the accuracy lines, where the spec lets the solver choose it."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from privspec.compile.document import decimal_up
from privspec.compile.lotteries.averages import Averages
from privspec.compile.lotteries.candidates import Judged, calibrated, forbidden, judge, limited, spent
from privspec.compile.lotteries.estimates import Estimate
from privspec.compile.lotteries.system import LotterySystem
from privspec.compile.lotteries.worst import unanimous_distance
from privspec.mechanisms.lotteries.dictator import DummyVotes
from privspec.mechanisms.lotteries.register import RULES
from privspec.mechanisms.lotteries.rule import Rule
from privspec.model.lotteries import Proportional
from privspec.model.values import show
from privspec.problem.vote_forms import Distance, Limit

LARGEST = Fraction(64)
"""Epsilon that is tried where the range has no upper end: far beyond any privacy."""
STEPS = 40
HALVINGS = 12
TO_PLURALITY = ("exponential", "permute_and_flip", "randomised_winner")
"""Rules whose winner is certain for large epsilon: their distance from a lottery need not fall with epsilon."""
DIGITS = 12
"""Decimal digits of an epsilon that is found by bisection."""


def at_least_epsilon(system: LotterySystem, averages: Averages) -> list[Judged]:
    """Every rule at the least epsilon of its own, which is its loss."""
    return [_least(system, rule, averages) for rule in RULES]


def _least(system: LotterySystem, rule: Rule, averages: Averages) -> Judged:
    assert system.chosen is not None
    low, high = system.chosen.low, system.chosen.high or LARGEST
    exact = dummies_at(system) if rule.family == "dictator" else None
    if exact is not None:
        return _with_dummies(system, rule, averages, exact)
    at_end = _tried(system, rule, averages, high)
    if not at_end.admissible and (nearer := _nearer(system, rule, averages, low, high)) is not None:
        high = nearer
    elif not at_end.admissible:
        limits = at_end.reason if at_end.calibrated is None or forbidden(system, rule) else _at(high, at_end.reason)
        return replace(at_end, loss=None, reason=limits)
    if low > 0 and (found := _tried(system, rule, averages, low)).admissible:
        return found
    failing = low
    for _ in range(STEPS):
        middle = (failing + high) / 2
        if _tried(system, rule, averages, middle).admissible:
            high = middle
        else:
            failing = middle
    up = Fraction(str(Context(prec=DIGITS, rounding=ROUND_CEILING).divide(Decimal(high.numerator), high.denominator)))
    return _tried(system, rule, averages, min(up, system.chosen.high or LARGEST))


def _nearer(system: LotterySystem, rule: Rule, averages: Averages, low: Fraction, high: Fraction) -> Fraction | None:
    """An epsilon below the end of the range at which a rule that tends to plurality meets all lines, if found."""
    if rule.family not in TO_PLURALITY or forbidden(system, rule):
        return None
    if not all(found.exact for found in _tried(system, rule, averages, high).limits):
        return None  # then it is not known to meet a line anywhere
    for _ in range(HALVINGS):
        high /= 2
        if high <= low:
            return None
        if _tried(system, rule, averages, high).admissible:
            return high
    return None


def _at(epsilon: Fraction, reason: str) -> str:
    return f"with epsilon = {show(epsilon)} {reason}"


def _tried(system: LotterySystem, rule: Rule, averages: Averages, epsilon: Fraction) -> Judged:
    """The rule at an epsilon, which is its loss."""
    epsilons = tuple(epsilon if p.epsilon is None else p.epsilon for p in system.promises)
    (one,) = judge(system, [calibrated(system, rule, epsilons)], averages)
    return replace(one, loss=Estimate(epsilon))


# --- dummy votes, by formula ----------------------------------------------------------------------


def distance_limit(limit: Limit) -> Fraction | None:
    """The d of `worst[total_variation(O, w)] <= d` for the lottery w in proportion to points; None for other lines."""
    if limit.measured is None:
        return None
    terms = limit.measured.terms
    if len(terms) != 1 or terms[0].operator != "worst" or len(terms[0].body.parts) != 1:
        return None
    ((weight, cost),) = terms[0].body.parts
    factor = weight * terms[0].weight
    if not isinstance(cost, Distance) or cost.other != Proportional() or factor <= 0:
        return None
    return (limit.bound - limit.measured.offset - terms[0].weight * terms[0].body.offset) / factor


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


def _with_dummies(system: LotterySystem, rule: Rule, averages: Averages, dummies: Fraction) -> Judged:
    assert system.chosen is not None
    if not dummies:
        why = "without dummy votes an alternative that nobody else supports reveals its voter: no epsilon is enough"
        return Judged(rule, None, None, why)
    draw = DummyVotes(dummies)
    epsilon = max(spent(system, p, draw) for p in system.promises if p.epsilon is None)
    if epsilon < system.chosen.low:
        return _tried(system, rule, averages, system.chosen.low)
    found = Fraction(decimal_up(epsilon))
    reason = forbidden(system, rule)
    if system.chosen.high is not None and found > system.chosen.high:
        reason = reason or f"it takes an epsilon of {float(found):.4g} to meet the accuracy line"
    if any(p.epsilon is not None and spent(system, p, draw) > p.epsilon for p in system.promises):
        reason = reason or "another requirement asks for more dummy votes than the accuracy line allows"
    (one,) = judge(system, [Judged(rule, draw, draw, reason)], averages)
    return replace(limited(system, one), loss=Estimate(found))
