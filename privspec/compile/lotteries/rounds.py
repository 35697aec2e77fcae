"""A budget for many votes: requirements that divide it, and the most rounds that accuracy lines leave room for.

`O is (budget / rounds)-DP` is what one of so many votes may spend; by basic composition all of them together spend the
budget (notes/repeated-votes.md).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from privspec.compile.lotteries.averages import Averages
from privspec.compile.lotteries.bound import LotteryBound, least_epsilon
from privspec.compile.lotteries.budget import TO_PLURALITY, distance_limit
from privspec.compile.lotteries.candidates import Judged, calibrated, forbidden, judge
from privspec.compile.lotteries.estimates import Estimate
from privspec.compile.lotteries.system import LotterySystem
from privspec.mechanisms.lotteries.register import RULES
from privspec.mechanisms.lotteries.rule import Rule
from privspec.model.values import show
from privspec.problem.vote_forms import Rounds


def most_rounds(system: LotterySystem, averages: Averages) -> list[Judged]:
    """Every rule at the most rounds that it has room for, which is its loss; without one if not even the least fit."""
    limit = _limit(system)
    low, high = _range(system)
    high = high if limit is None else max(low, min(high, limit[0]))
    impossible = any((distance_limit(line) or 1) <= 0 for line in system.limits)
    found: list[Judged] = []
    beaten = high if impossible else low
    for rule in RULES:
        one = _most(system, rule, averages, low, high, beaten)
        if one.admissible and one.loss is not None:
            beaten = max(beaten, int(system.counted.number(one.loss.value)))
        found.append(one)
    return found


def _most(system: LotterySystem, rule: Rule, averages: Averages, low: int, high: int, beaten: int) -> Judged:
    """A rule for which the least number does not fit is tried at more than the `beaten` of others only."""
    found = least = _tried(system, rule, averages, low)
    if not least.admissible:
        later = _later(system, rule, averages, beaten, high)
        if later is None:
            return replace(least, loss=None)
        found, low, high = later
    step = 1
    # doubling, then halving: where few fit, few are tried
    while low < high:
        middle = min(low + step, high)
        one = _tried(system, rule, averages, middle)
        if not one.admissible:
            high = middle - 1
            break
        found, low, step = one, middle, 2 * step
    while low < high:
        middle = (low + high + 1) // 2
        one = _tried(system, rule, averages, middle)
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
        one = tried[count] = tried.get(count) or _tried(system, rule, averages, count)
        missed = [found.value - limit.bound for limit, found in zip(system.limits, one.limits, strict=False)]
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


def _tried(system: LotterySystem, rule: Rule, averages: Averages, count: int) -> Judged:
    """The rule with the share of one in so many rounds: every line is evaluated at exactly that share."""
    assert system.rounds is not None
    epsilon = system.rounds.budget / count
    (one,) = judge(system, [calibrated(system, rule, tuple(epsilon for _ in system.promises))], averages)
    return replace(one, loss=Estimate(system.counted.loss(count)))


def rounds_bound(system: LotterySystem) -> LotteryBound | None:
    """A lower bound on the loss: no rule has room for more rounds than budget / the least epsilon of any rule."""
    found = _limit(system)
    if found is None or not found[0]:
        return None
    return replace(found[1], value=system.counted.loss(min(_range(system)[1], found[0])))


def _limit(system: LotterySystem) -> tuple[int, LotteryBound] | None:
    """Rounds that no rule can exceed, and the least epsilon that proves it."""
    least = least_epsilon(system)
    if system.rounds is None or least is None or least.value <= 0:
        return None
    return int(system.rounds.budget / least.value), least


def _range(system: LotterySystem) -> tuple[int, int]:
    """The least and the most rounds that the spec allows."""
    assert system.counted.high is not None
    return int(system.counted.low), int(system.counted.high)


def rounds_json(rounds: Rounds | None, count: int | None) -> dict[str, Any] | None:
    """`mechanism.rounds`: how many there are, what they share, what each spends, and in how many one voter fits."""
    if rounds is None or count is None:
        return None
    return {"count": count, "budget": show(rounds.budget), "each": str(rounds.budget / count), "fit": count}
