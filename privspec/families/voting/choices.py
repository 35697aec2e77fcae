"""Numbers that solving picks: the least epsilon, and the most rounds that share a budget; and that no rule is better.

Lower bounds follow from the requirement alone, and for rules under which no lie pays. Every bound is what the kernel
proves of a witness; here witnesses are chosen. Notes lottery-bound, randomised-winner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import ceil, exp, floor, log
from typing import Any

from privspec.core.records import dataclass, replace
from privspec.core.rounding import log_down
from privspec.families.decision import decimal_up
from privspec.families.voting.plans import Judged, calibrated, forbidden, judge, limited, spent
from privspec.families.voting.profiles import Averages, Estimate, unanimous_distance
from privspec.families.voting.rules import DICTATOR, RULES, Draw, Rule, VotingSystem
from privspec.kernel.core.reading import JsonNode, Refused
from privspec.kernel.voting import LARGEST as PLURALITY
from privspec.kernel.voting import SCOPES, SHARES, Limit, bounds
from privspec.model.values import show

Witness = dict[str, Any]


@dataclass(frozen=True, slots=True)
class VotingBound:
    """A lower bound on the loss of every rule of its scope, and what proves it, as the kernel reads it."""

    value: Fraction
    witness: Witness

    @property
    def scope(self) -> str:
        """The rules that it is about."""
        return SCOPES[self.witness["form"]]


TRUTHFUL: Witness = {"form": "strategy-proof"}
DUMMIES: Witness = {"form": "dummy votes"}


def near_tie(voters: int, alternatives: int) -> Witness:
    """Numbers of votes from which one replaced vote leads to any winner, for ties that the first declared wins.

    An alternative that gets the vote of the winner is ahead, or level with some that were declared after it.
    """
    each, more = divmod(voters, alternatives)
    return {"form": "near tie", "profile": [each] * (alternatives - more) + [each + 1] * more}


def best_walks(voters: int, others: int, step: float) -> list[Witness]:
    """Votes that move from unanimity, next to where the bound is largest: x = k step solves e^x (x - 1) = m - 1.

    A single vote besides: where supporters are certain fewer votes than that are best.
    """
    return [*_walks(_root(lambda x: exp(x) * (x - 1) - others, 1.0, 60.0) / step, voters), {"form": "walk", "votes": 1}]


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


def most(*found: VotingBound | None) -> VotingBound | None:
    """The largest of some bounds, by far the least part if not the first of those that are about more rules."""
    known = [one for one in found if one is not None]
    largest = max((one.value for one in known), default=Fraction(0))
    return next((one for one in known if one.value >= largest - abs(largest) * NO_LESS), None)


NO_LESS = Fraction(1, 10**8)
"""Relative distance up to which a bound that is about more rules is preferred."""


# --- a loss, from epsilon ---------------------------------------------------------------------------------


def lower_bound(system: VotingSystem) -> VotingBound | None:
    """For the worst distance from random dictatorship or plurality; None for other losses and requirements."""
    votes, others = system.votes, system.votes.ballots.size - 1
    tried = [near_tie(votes.voters, others + 1)]
    for promise in system.promises:
        if promise.epsilon and promise.pure and others:
            free = votes.voters - votes.ballots.supporters * (others + 1)
            tried += best_walks(free, others, float(promise.epsilon) * (2 if promise.task.adding else 1))
    return max((found for one in tried for found in _proved(system, one)), key=lambda one: one.value, default=None)


def truthful_bound(system: VotingSystem) -> VotingBound | None:
    """A lower bound on the loss of all strategy-proof rules.

    None where the spec does not ask for one, or the loss of dummy votes has no exact value.
    """
    return next((one for one in _proved(system, TRUTHFUL) if one.value >= 0), None)  # below 0 it says nothing


def dummies_bound(system: VotingSystem) -> VotingBound | None:
    """A lower bound on the loss of all dummy votes, where the spec takes no other rule; None where none is known."""
    return next(_proved(system, DUMMIES), None)


def _proved(system: VotingSystem, witness: Witness) -> Iterator[VotingBound]:
    """What a witness proves of the loss, if anything."""
    lines = tuple(promise.obligation for promise in system.promises if promise.pure)
    try:
        found = bounds(lines, system.votes, JsonNode(witness, "bound"), system.loss, {})
    except Refused:
        return
    if system.loss.terms and found:
        yield VotingBound(max(found), witness)


# --- an epsilon, from a distance --------------------------------------------------------------------------


def least_epsilon(system: VotingSystem) -> VotingBound | None:
    """For a number that is picked with an accuracy line d on such a distance; less where voters come and go.

    Random dictatorship: log((m - 1) (k / (T d) - 1)) / k, any k. Plurality: log((m - 1) (1 - d) / d); where voters are
    added or removed half of these, and log(m (1 - d)).
    """
    m, voters = system.votes.ballots.size, system.votes.voters
    each = 2 if all(p.task.adding for p in system.promises if p.epsilon is None) else 1
    found: list[VotingBound] = []
    if system.votes.ballots.borda or m < 2 or system.votes.ballots.supporters:
        return None
    distances = [d for limit in system.votes.limits if (d := distance_limit(limit)) is not None]
    if distances and min(distances) > 0:
        d = min(distances)
        root = _root(lambda u: log((m - 1) * (u - 1)) - u / (u - 1), 1 + 1e-9, 60.0)
        for walk in _walks(root * float(voters * d), voters):
            ratio = (m - 1) * (Fraction(walk["votes"]) / (voters * d) - 1)
            found += [VotingBound(log_down(ratio) / (walk["votes"] * each), walk)] if ratio > 1 else []
    for limit in system.votes.limits:
        miss = _scaled(limit, (True, PLURALITY), (False, PLURALITY))
        if miss is not None and 0 < miss < 1:
            steps = [((m - 1) * (1 - miss) / miss, each), *([(m * (1 - miss), 1)] if each == 2 and voters > 1 else [])]
            known = [log_down(ratio) / step for ratio, step in steps if ratio > 1]
            found += [VotingBound(value, near_tie(voters, m)) for value in known]
    return max(found, key=lambda one: one.value, default=None)


def _scaled(limit: Limit, *wanted: Any) -> Fraction | None:
    """The d of `worst[cost] <= d` for one of some costs; None for other lines."""
    weight = None if limit.measured is None else limit.measured.alone(*wanted)
    return None if weight is None or limit.measured is None else (limit.bound - limit.measured.offset) / weight


def distance_limit(limit: Limit) -> Fraction | None:
    """The d of `worst[total_variation(O, w)] <= d` for the lottery w in proportion to points; None for other lines."""
    return _scaled(limit, (True, SHARES))


def dummies_at(system: VotingSystem) -> Fraction | None:
    """The most dummy votes for each alternative that all lines allow; None where there are other lines, or no limit.

    m k / (P + m k) V <= d, with P points of all voters and V the distance of a unanimous profile from the uniform law:
    k <= P d / (m (V - d)). For first choices T d / (m - 1 - m d). V is less where supporters are certain.
    """
    votes = system.votes
    distances = [distance_limit(limit) for limit in votes.limits if limit.measured is not None]  # dummies: no lie pays
    known = [d for d in distances if d is not None]
    farthest, m = unanimous_distance(system), votes.ballots.size
    if not known or len(known) < len(distances) or min(known) >= farthest:
        return None
    d = max(min(known), Fraction(0))
    return votes.voters * sum(votes.ballots.ladder) * d / (m * (farthest - d))


def truthful_epsilon(system: VotingSystem) -> VotingBound | None:
    """The least epsilon of any strategy-proof rule that is as near to random dictatorship as the spec asks.

    At a distance of d at most K = T d / (m - 1 - m d) dummy votes are left: epsilon >= log(1 + g / K).
    """
    votes = system.votes
    asked = any(limit.measured is None and limit.bound == 0 for limit in votes.limits)
    known = asked and votes.ballots.kind == "first choice" and votes.ballots.size > 2 and not votes.ballots.supporters
    dummies = dummies_at(system) if known else None
    replaced = [p.task.moved for p in system.promises if p.epsilon is None and p.pure and not p.task.adding]
    if not dummies or not replaced:
        return None
    return VotingBound(log_down(1 + max(replaced) / dummies), TRUTHFUL)


def dummies_epsilon(system: VotingSystem) -> VotingBound | None:
    """The least epsilon of dummy votes as near to the shares as the spec asks, where it takes no other rule."""
    ballots, dummies = system.votes.ballots, dummies_at(system)
    moved = [p.task.moved for p in system.promises if p.epsilon is None and p.pure]
    enough = 0 if dummies is None else dummies + ballots.supporters
    if not enough or not moved or system.votes.families != (DICTATOR.family,):
        return None
    return VotingBound(log_down(1 + Fraction(max(moved) * ballots.highest) / enough), DUMMIES)


# --- The least epsilon at which a rule meets the accuracy lines, where the spec lets the solver

LARGEST = Fraction(64)
"""Epsilon that is tried where the range has no upper end: far beyond any privacy."""
STEPS = 40
HALVINGS = 12
DIGITS = 12
"""Decimal digits of an epsilon that is found by bisection."""


def at_least_epsilon(system: VotingSystem, averages: Averages) -> list[Judged]:
    """Every rule at the least epsilon of its own, which is its loss."""
    return [_least(system, rule, averages) for rule in RULES]


def _least(system: VotingSystem, rule: Rule, averages: Averages) -> Judged:
    assert system.chosen is not None
    low, high = system.chosen.low, system.chosen.high or LARGEST
    exact = dummies_at(system) if rule is DICTATOR else None
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
    return _tried(system, rule, averages, min(Fraction(decimal_up(high, DIGITS)), system.chosen.high or LARGEST))


def _nearer(system: VotingSystem, rule: Rule, averages: Averages, low: Fraction, high: Fraction) -> Fraction | None:
    """An epsilon below the end of the range at which a rule that tends to plurality meets all lines, if found."""
    # where the winner is certain for large epsilon, the distance from a lottery need not fall with epsilon
    if Draw(rule.family).rule.affine or forbidden(system, rule):
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


def _tried(system: VotingSystem, rule: Rule, averages: Averages, epsilon: Fraction) -> Judged:
    """The rule at an epsilon, which is its loss."""
    epsilons = tuple(epsilon if p.epsilon is None else p.epsilon for p in system.promises)
    (one,) = judge(system, [calibrated(system, rule, epsilons)], averages)
    return replace(one, loss=Estimate(epsilon))


def _with_dummies(system: VotingSystem, rule: Rule, averages: Averages, dummies: Fraction) -> Judged:
    assert system.chosen is not None
    if not dummies and not system.votes.ballots.supporters:
        why = "without dummy votes an alternative that nobody else supports reveals its voter: no epsilon is enough"
        return Judged(rule, None, None, why)
    draw = Draw(DICTATOR.family, dummies)
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


def most_rounds(system: VotingSystem, averages: Averages) -> list[Judged]:
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


def _most(system: VotingSystem, rule: Rule, averages: Averages, low: int, high: int, beaten: int) -> Judged:
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


def _later(system: VotingSystem, rule: Rule, averages: Averages, low: int, high: int) -> tuple[Judged, int, int] | None:
    """More rounds where the least do not fit: rules that tend to plurality can come nearer with less epsilon.

    Where no power of two times the least fits, the number that misses the lines by least is sought next to the best of
    them: from there both ways they are missed by more.
    Returns: the rule, at how many, and up to how many there may be.
    """
    if Draw(rule.family).rule.affine or low >= high or forbidden(system, rule):
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


def _sharing(system: VotingSystem, rule: Rule, averages: Averages, count: int) -> Judged:
    """The rule with the share of one in so many rounds: every line is evaluated at exactly that share."""
    assert system.votes.rounds is not None
    epsilon = system.votes.rounds.budget / count
    (one,) = judge(system, [calibrated(system, rule, tuple(epsilon for _ in system.promises))], averages)
    return replace(one, loss=Estimate(system.loss_of(count)))


def rounds_bound(system: VotingSystem) -> VotingBound | None:
    """A lower bound on the loss: no rule has room for more rounds than budget / the least epsilon of any rule."""
    found = _limit(system)
    if found is None or not found[0]:
        return None
    return replace(found[1], value=system.loss_of(min(_range(system)[1], found[0])))


def _limit(system: VotingSystem) -> tuple[int, VotingBound] | None:
    """Rounds that no rule can exceed, and the least epsilon that proves it."""
    least = most(least_epsilon(system), dummies_epsilon(system))
    if system.votes.rounds is None or least is None or least.value <= 0:
        return None
    return int(system.votes.rounds.budget / least.value), least


def _range(system: VotingSystem) -> tuple[int, int]:
    """The least and the most rounds that the spec allows."""
    assert system.counted.high is not None
    return int(system.counted.low), int(system.counted.high)
