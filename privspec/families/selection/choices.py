"""Numbers that solving picks: the least epsilon, and the most rounds that share a budget."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

from privspec.families.document import decimal_up
from privspec.families.selection.bounds import LotteryBound, distance_limit, dummies_at, least_epsilon
from privspec.families.selection.plans import Judged, calibrated, forbidden, judge, limited, spent
from privspec.families.selection.profiles import Averages, Estimate
from privspec.families.selection.rules import RULES, Draw, Rule
from privspec.families.selection.system import LotterySystem
from privspec.model.values import show
from privspec.problem.vote_forms import Rounds

# --- The least epsilon at which a rule meets the accuracy lines, where the spec lets the solver

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


def _with_dummies(system: LotterySystem, rule: Rule, averages: Averages, dummies: Fraction) -> Judged:
    assert system.chosen is not None
    if not dummies:
        why = "without dummy votes an alternative that nobody else supports reveals its voter: no epsilon is enough"
        return Judged(rule, None, None, why)
    draw = Draw("dictator", dummies)
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


# --- A budget for many votes: requirements that divide it, and the most rounds that accuracy li


def most_rounds(system: LotterySystem, averages: Averages) -> list[Judged]:
    """Every rule at the most rounds that it has room for, which is its loss; without one if not even the least fit."""
    limit = _limit(system)
    low, high = _range(system)
    high = high if limit is None else max(low, min(high, limit[0]))
    impossible = any((distance_limit(line) or 1) <= 0 for line in system.votes.limits)
    found: list[Judged] = []
    beaten = high if impossible else low
    for rule in RULES:
        one = _most(system, rule, averages, low, high, beaten)
        if one.admissible and one.loss is not None:
            beaten = max(beaten, int(system.count_of(one.loss.value)))
        found.append(one)
    return found


def _most(system: LotterySystem, rule: Rule, averages: Averages, low: int, high: int, beaten: int) -> Judged:
    """A rule for which the least number does not fit is tried at more than the `beaten` of others only."""
    found = least = _sharing(system, rule, averages, low)
    if not least.admissible:
        later = _later(system, rule, averages, beaten, high)
        if later is None:
            return replace(least, loss=None)
        found, low, high = later
    step = 1
    # doubling, then halving: where few fit, few are tried
    while low < high:
        middle = min(low + step, high)
        one = _sharing(system, rule, averages, middle)
        if not one.admissible:
            high = middle - 1
            break
        found, low, step = one, middle, 2 * step
    while low < high:
        middle = (low + high + 1) // 2
        one = _sharing(system, rule, averages, middle)
        if one.admissible:
            found, low = one, middle
        else:
            high = middle - 1
    return found


def _later(
    system: LotterySystem, rule: Rule, averages: Averages, low: int, high: int
) -> tuple[Judged, int, int] | None:
    """More rounds where the least do not fit: rules that tend to plurality can come nearer with less epsilon.

    Where no power of two times the least fits, the number that misses the lines by least is sought next to the best of
    them: from there both ways they are missed by more.
    Returns: the rule, at how many, and up to how many there may be.
    """
    if rule.family not in TO_PLURALITY or low >= high or forbidden(system, rule):
        return None
    tried: dict[int, Judged] = {}

    def excess(count: int) -> Fraction:
        one = tried[count] = tried.get(count) or _sharing(system, rule, averages, count)
        missed = [found.value - limit.bound for limit, found in zip(system.votes.limits, one.limits, strict=False)]
        return max(missed, default=Fraction(1))

    grid = [*(low << k for k in range(1, (high // low).bit_length()) if low << k < high), high]
    best = min(grid, key=excess)
    left, right = max((c for c in grid if c < best), default=low), min((c for c in grid if c > best), default=high)
    while right - left > 2 and not any(one.admissible for one in tried.values()):
        third = max(1, (right - left) // 3)
        if excess(left + third) <= excess(right - third):
            right = right - third
        else:
            left = left + third
    fits = max((count for count, one in tried.items() if one.admissible), default=None)
    if fits is None:
        return None
    return tried[fits], fits, min((count - 1 for count in tried if count > fits), default=high)


def _sharing(system: LotterySystem, rule: Rule, averages: Averages, count: int) -> Judged:
    """The rule with the share of one in so many rounds: every line is evaluated at exactly that share."""
    assert system.votes.rounds is not None
    epsilon = system.votes.rounds.budget / count
    (one,) = judge(system, [calibrated(system, rule, tuple(epsilon for _ in system.promises))], averages)
    return replace(one, loss=Estimate(system.loss_of(count)))


def rounds_bound(system: LotterySystem) -> LotteryBound | None:
    """A lower bound on the loss: no rule has room for more rounds than budget / the least epsilon of any rule."""
    found = _limit(system)
    if found is None or not found[0]:
        return None
    return replace(found[1], value=system.loss_of(min(_range(system)[1], found[0])))


def _limit(system: LotterySystem) -> tuple[int, LotteryBound] | None:
    """Rounds that no rule can exceed, and the least epsilon that proves it."""
    least = least_epsilon(system)
    if system.votes.rounds is None or least is None or least.value <= 0:
        return None
    return int(system.votes.rounds.budget / least.value), least


def _range(system: LotterySystem) -> tuple[int, int]:
    """The least and the most rounds that the spec allows."""
    assert system.counted.high is not None
    return int(system.counted.low), int(system.counted.high)


def rounds_json(rounds: Rounds | None, count: int | None) -> dict[str, Any] | None:
    """`mechanism.rounds`: how many there are, what they share, what each spends, and in how many one voter fits."""
    if rounds is None or count is None:
        return None
    return {"count": count, "budget": show(rounds.budget), "each": str(rounds.budget / count), "fit": count}
