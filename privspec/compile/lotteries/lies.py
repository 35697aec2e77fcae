"""What a lie brings a voter under the rules of private voting: `accuracy: manipulation(O, vote) <= c`.

No ballot but the true one may add more than c to the probability of a voter's k best alternatives, for any k. Rules
whose strategy-proofness is proved gain 0 (notes/keeping.md). Of others a few lies are tried, in exact arithmetic and
with as many voters as the spec has: what these bring is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, product

from privspec.compile.lotteries.balls import near_law
from privspec.compile.lotteries.electorate import Scores
from privspec.compile.lotteries.estimates import Estimate
from privspec.compile.lotteries.system import LotterySystem
from privspec.mechanisms.lotteries.rule import Draw, Property
from privspec.model.lotteries import Law
from privspec.model.values import show
from privspec.problem.vote_forms import Limit


def gain(system: LotterySystem, draw: Draw) -> Estimate:
    """The most that a lie brings a voter: 0 by proof, or a number that it is not below."""
    if truthful(system, draw).holds:
        return Estimate(Fraction(0))
    law = lru_cache(maxsize=None)(lambda scores: near_law(draw.lottery, scores))
    return Estimate(max((lie.gain(law) for lie in _lies(system)), default=Fraction(0)), at_least=True)


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
        return f"it misses line {limit.line}, as a lie can pay ({least}){example}"
    return f"it is not known to meet line {limit.line}: what a lie brings at most is not computed{example}"


@dataclass(frozen=True, slots=True)
class _Lie:
    """A true order, by the numbers of alternatives, and the points of all with the true ballot and with a lie."""

    order: tuple[int, ...]
    honest: Scores
    lying: Scores

    def gain(self, law: Callable[[Scores], tuple[Law, Fraction]]) -> Fraction:
        """What it adds to the probability of the k best alternatives, for the best k; rounded down."""
        (before, error), (after, more) = law(self.honest), law(self.lying)
        return max(accumulate(after[a] - before[a] for a in self.order)) - error - more


def _lies(system: LotterySystem) -> Iterator[_Lie]:
    """For a few true orders: the second alternative comes first, or last, beside others who want another one first."""
    m, others = len(system.alternatives), system.voters - 1
    if m < 2 or others < 1:
        return
    for order in dict.fromkeys((tuple(range(m)), tuple(range(m))[::-1], (m - 1, *range(m - 1)))):
        swapped, buried = (order[1], order[0], *order[2:]), (order[0], *order[:0:-1])
        camps = [_ballot(system, each) for each in (swapped, (*order[1:], order[0]), (order[-1], *order[:-1]))]
        true = _ballot(system, order)
        for one, other in product(camps, repeat=2):
            half = others // 2
            given = tuple((others - half) * a + half * b for a, b in zip(one, other, strict=True))
            for lie in (swapped, buried):
                yield _Lie(order, _with(given, true), _with(given, _ballot(system, lie)))


def _ballot(system: LotterySystem, order: tuple[int, ...]) -> Scores:
    return system.points.of(tuple(system.alternatives[a] for a in order[: system.votes.longest]))


def _with(given: Scores, ballot: Scores) -> Scores:
    return tuple(a + b for a, b in zip(given, ballot, strict=True))
