"""What a lie brings a voter under the rules of private voting: `accuracy: manipulation(O, vote) <= c`.

No ballot but the true one may add more than c to the probability of a voter's k best alternatives, for any k. Rules
whose strategy-proofness is proved gain 0 (notes/keeping.md). Of others a few lies are tried, in exact arithmetic and
with as many voters as the spec has: what these bring is a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate

from privspec.compile.lotteries.balls import near_law
from privspec.compile.lotteries.electorate import Scores
from privspec.compile.lotteries.estimates import Estimate
from privspec.compile.lotteries.system import Limit, LotterySystem
from privspec.language import syntax
from privspec.mechanisms.lotteries.rule import Draw, Property
from privspec.model.lotteries import Lottery
from privspec.model.values import show

FUNCTION = "manipulation"


def about_lies(expr: syntax.Node) -> bool:
    """Whether it is what a lie can bring."""
    return isinstance(expr, syntax.Call) and expr.function == FUNCTION


def gain(system: LotterySystem, draw: Draw) -> Estimate:
    """The most that a lie brings a voter: 0 by proof, or a number that it is not below."""
    if truthful(system, draw).holds:
        return Estimate(Fraction(0))
    found = [_gained(draw.lottery, honest, lying) for honest, lying in _lies(system)]
    return Estimate(max(found, default=Fraction(0)), at_least=True)


def truthful(system: LotterySystem, draw: Draw) -> Property:
    """Whether no lie pays under a rule, at any number of voters."""
    kept = draw.properties(system.promises[0].task)
    return next(item for item in kept if item.name == "strategy_proof")


def missed(system: LotterySystem, draw: Draw, limit: Limit, found: Estimate) -> str:
    """Why a rule under which lies may pay does not meet a line, or is not known to."""
    case = truthful(system, draw).counterexample
    example = f"; for example, {case}" if case else ""
    if found.value > limit.bound:
        least = f"at least {float(found.value):.2g} > {show(limit.bound)}"
        return f"it misses line {limit.target.line}, as a lie can pay ({least}){example}"
    return f"it is not known to meet line {limit.target.line}: what a lie brings at most is not computed{example}"


def _lies(system: LotterySystem) -> Iterator[tuple[Scores, Scores]]:
    """Points of all ballots with a true one and with a lie in its place; the true order is that of the declaration.

    The lies put the second alternative first, or last; the others stand behind it, or behind the last one.
    """
    order, others = system.alternatives, system.voters - 1
    if len(order) < 2 or others < 1:
        return
    swapped, behind, last = (order[1], order[0], *order[2:]), (*order[1:], order[0]), (order[-1], *order[:-1])
    buried = (order[0], *order[:0:-1])
    mine, *beside = (system.points.of(each[: system.longest]) for each in (order, swapped, behind, last))
    lies = [system.points.of(each[: system.longest]) for each in (swapped, buried)]
    for one in beside:
        for other in beside:
            more = others - others // 2
            given = tuple(more * a + (others - more) * b for a, b in zip(one, other, strict=True))
            for lie in lies:
                yield _with(given, mine), _with(given, lie)


def _with(given: Scores, ballot: Scores) -> Scores:
    return tuple(a + b for a, b in zip(given, ballot, strict=True))


def _gained(lottery: Lottery, honest: Scores, lying: Scores) -> Fraction:
    """What the lie adds to the probability of the k best alternatives, for the best k; rounded down."""
    (before, error), (after, more) = near_law(lottery, honest), near_law(lottery, lying)
    return max(accumulate(b - a for a, b in zip(before, after, strict=True))) - error - more
