"""A budget for many votes: requirements that divide it, and the most rounds that accuracy lines leave room for.

`O is (budget / rounds)-DP` is what one of so many votes may spend; by basic composition all of them together spend the
budget (notes/repeated-votes.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from privspec.compile.lotteries.averages import Averages
from privspec.compile.lotteries.ballots import voting
from privspec.compile.lotteries.bound import LotteryBound, least_epsilon
from privspec.compile.lotteries.budget import TO_PLURALITY, distance_limit
from privspec.compile.lotteries.candidates import Judged, calibrated, forbidden, judge
from privspec.compile.lotteries.estimates import Estimate
from privspec.compile.lotteries.system import LotterySystem, Rounds
from privspec.language import syntax
from privspec.mechanisms.lotteries.register import RULES
from privspec.mechanisms.lotteries.rule import Rule
from privspec.model.domains import IntegerRange
from privspec.model.graph import Model
from privspec.model.reports import Failure
from privspec.model.values import show
from privspec.model.walk import walk
from privspec.problem.terms import public, public_number

_LOSSES = "loss: -{name}, or loss: 1 / {name}"


# --- what the spec says ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Share:
    """`whole / name` in a requirement."""

    whole: syntax.Expr
    divisor: syntax.Name


def share_of(line: syntax.Requirement, model: Model) -> Share | None:
    """A public amount divided by a name that is chosen, or a parameter."""
    match line.amount.items:
        case (syntax.Binary(op="/", left=whole, right=syntax.Name() as divisor),) if public(whole, model):
            return Share(whole, divisor)
    return None


def rounds_of(model: Model) -> Rounds | None:
    """The rounds that share a budget: a chosen number, or a parameter that only requirements use; else None.

    Raises: Failure PS0525 where the number is chosen, and solve cannot.
    """
    lines = model.spec.privacy
    shares = [share for line in lines if (share := share_of(line, model)) is not None]
    if not shares:
        return None
    name, chosen = shares[0].divisor.id, {node.name for node in model.choices}
    wholes = {public_number(share.whole, model) for share in shares}
    same = len(shares) == len(lines) and len(wholes) == 1 and all(share.divisor.id == name for share in shares)
    if name in chosen:
        return _chosen(model, name, next(iter(wholes)) if same else None)
    count = model.values.get(name)
    uses = sum(isinstance(node, syntax.Name) and node.id == name for node in walk(model.spec))
    if not same or uses > len(shares) or not isinstance(count, Fraction) or count.denominator != 1 or count < 1:
        return None
    return Rounds(name, next(iter(wholes)), int(count), int(count), int(count), shares[0].divisor.span)


def shared_rounds(model: Model) -> Rounds | None:
    """Those of a vote, whatever draws its winner."""
    return rounds_of(model) if voting(model) is not None else None


def _chosen(model: Model, name: str, budget: Fraction | None) -> Rounds:
    node = model.nodes[name]
    if budget is None:
        text = f"rounds that are chosen divide one budget in every requirement: (budget / {name})-DP"
        raise _refused(model.spec.privacy[0], text)
    if budget <= 0:
        raise _refused(model.spec.privacy[0], "a budget that is shared by rounds is above 0")
    match node.domain:
        case IntegerRange(low=low, high=high) if low >= 1:
            weight, inverse = _objective(model, name)
            return Rounds(name, budget, None, int(low), int(high), node.span, weight, inverse)
    text = f"a number of rounds is chosen from whole numbers from 1: choose {name} in 1..10000"
    raise Failure("PS0525", node.span, text)


def _objective(model: Model, name: str) -> tuple[Fraction, bool]:
    """Weight, and whether the number divides it."""
    loss = model.loss
    if loss is not None and len(model.choices) == 1:
        found = weight_of(loss, name, model)
        if found is not None and (found[0] > 0) == found[1] and found[0]:
            return found
    span = model.spec.span if loss is None else loss.span
    raise Failure(
        "PS0525",
        span,
        f"solve chooses {name} where as many as fit is all that is wanted",
        help=_LOSSES.format(name=name),
    )


def weight_of(expr: syntax.Expr, name: str, model: Model) -> tuple[Fraction, bool] | None:
    """The w of `w * name` (False) or of `w / name` (True); None for anything else."""
    match expr:
        case syntax.Name(id=found) if found == name:
            return Fraction(1), False
        case syntax.Negate(operand=operand):
            inner = weight_of(operand, name, model)
            return None if inner is None else (-inner[0], inner[1])
        case syntax.Binary(op="*", left=left, right=right) if public(left, model) or public(right, model):
            factor, rest = (left, right) if public(left, model) else (right, left)
            inner = weight_of(rest, name, model)
            return None if inner is None else (inner[0] * public_number(factor, model), inner[1])
        case syntax.Binary(op="/", left=left, right=right) if public(left, model):
            inner = weight_of(right, name, model)
            if inner is None or inner[1] or not inner[0]:
                return None
            return public_number(left, model) / inner[0], True
        case syntax.Binary(op="/", left=left, right=right) if public(right, model):
            inner, divisor = weight_of(left, name, model), public_number(right, model)
            return None if inner is None or not divisor else (inner[0] / divisor, inner[1])
    return None


def _refused(line: syntax.Requirement, text: str) -> Failure:
    return Failure("PS0525", line.span, text, help="O is (budget / rounds)-DP wrt vote")


# --- as many as fit -------------------------------------------------------------------------------


def most_rounds(system: LotterySystem, averages: Averages) -> list[Judged]:
    """Every rule at the most rounds that it has room for, which is its loss; without one if not even the least fit."""
    rounds, limit = system.rounds, _limit(system)
    assert rounds is not None
    high = rounds.high if limit is None else max(rounds.low, min(rounds.high, limit[0]))
    impossible = any((distance_limit(line) or 1) <= 0 for line in system.limits)
    found: list[Judged] = []
    beaten = high if impossible else rounds.low
    for rule in RULES:
        one = _most(system, rule, averages, rounds.low, high, beaten)
        if one.admissible and one.loss is not None:
            beaten = max(beaten, rounds.count_of(one.loss.value))
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
    return replace(one, loss=Estimate(system.rounds.loss(count)))


def rounds_bound(system: LotterySystem) -> LotteryBound | None:
    """A lower bound on the loss: no rule has room for more rounds than budget / the least epsilon of any rule."""
    found = _limit(system)
    assert system.rounds is not None
    if found is None or not found[0]:
        return None
    return replace(found[1], value=system.rounds.loss(min(system.rounds.high, found[0])))


def _limit(system: LotterySystem) -> tuple[int, LotteryBound] | None:
    """Rounds that no rule can exceed, and the least epsilon that proves it."""
    least = least_epsilon(system)
    if system.rounds is None or least is None or least.value <= 0:
        return None
    return int(system.rounds.budget / least.value), least


def rounds_json(rounds: Rounds | None, loss: Fraction) -> dict[str, Any] | None:
    """`mechanism.rounds`: how many there are, what they share, what each spends, and in how many one voter fits."""
    if rounds is None:
        return None
    count = rounds.count if rounds.count is not None else rounds.count_of(loss)
    return {"count": count, "budget": show(rounds.budget), "each": str(rounds.budget / count), "fit": count}
