"""No rule under which lies never pay is better than dummy votes, from three alternatives on: with its lower bound.

Tables of first choices (notes/lottery-bound.md): a strategy-proof law that treats voters alike is f_a = d_a + s n_a.
Where g votes can be replaced, d_a + g s <= e^epsilon d_a, so that the d_a are at least k s together m k s, for k = g /
(e^epsilon - 1). Averages over permutations of voters and of alternatives stay strategy-proof and private, and raise no
loss that is convex and treats them alike; what is left is (1 - w) shares + w uniform, w >= m k / (T + m k), and every
loss that is named here grows with w. So none is below the loss of dummy votes with k rounded down.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from privspec.compile.lotteries.averages import Averages
from privspec.compile.lotteries.bound import LARGEST_STEP, LotteryBound
from privspec.compile.lotteries.budget import dummies_at
from privspec.compile.lotteries.candidates import lottery_value
from privspec.compile.lotteries.system import LotterySystem, Promise
from privspec.core.rounding import exp_up, log_down
from privspec.model.lotteries import FirstChoice, Proportional
from privspec.model.measures import Chosen, PureDP
from privspec.problem.vote_forms import Cost, Distance, Miss, Term, VotesMissed

SCOPE = "every strategy-proof rule that meets the requirement"
SLACK = Fraction(1, 1 << 60)
"""More than what values are rounded up by, beside 1 and themselves."""


def truthful_bound(system: LotterySystem, averages: Averages) -> LotteryBound | None:
    """A lower bound on the loss of all strategy-proof rules.

    None where the spec does not ask for one, or the loss of dummy votes has no exact value.
    """
    terms = system.loss.terms
    if not _known(system):
        return None
    if not terms or not all(_grows(system, term) for term in terms):
        return None
    if any(term.operator == "E" for term in terms) and averages.profiles is None:
        return None
    dummies = max(fewest(system.promises), default=None)
    if dummies is None:
        return None
    found = lottery_value(system, Proportional(dummies), averages)
    least = found.value - (abs(found.value) + 1) * SLACK
    if not found.exact or least < 0 <= found.value:  # below 0 it says nothing
        return None
    return LotteryBound(least, None, scope=SCOPE)


def truthful_epsilon(system: LotterySystem) -> LotteryBound | None:
    """The least epsilon of any strategy-proof rule that is as near to random dictatorship as the spec asks.

    At a distance of d at most K = T d / (m - 1 - m d) dummy votes are left: epsilon >= log(1 + g / K).
    """
    dummies = dummies_at(system) if _known(system) else None
    replaced = [p.task.moved for p in system.promises if _chosen(p) and not p.task.adding]
    if not dummies or not replaced:
        return None
    return LotteryBound(log_down(1 + max(replaced) / dummies), None, scope=SCOPE)


def _chosen(promise: Promise) -> bool:
    measure = promise.requirement.measure
    return promise.epsilon is None and isinstance(measure, Chosen) and measure.kind == PureDP.name


def _known(system: LotterySystem) -> bool:
    """Whether no lie may pay in a vote whose strategy-proof rules are known."""
    asked = any(limit.lies and limit.bound == 0 for limit in system.limits)
    first = system.votes.ballots == "first choice" and isinstance(system.points, FirstChoice)
    return asked and first and len(system.alternatives) > 2


def _grows(system: LotterySystem, term: Term) -> bool:
    """Whether it is convex, treats voters and alternatives alike, and grows from the shares to the uniform law."""
    if term.weight < 0 or (term.operator == "E" and not _alike(system)):
        return False
    return all(weight >= 0 and _of_shares(cost) for weight, cost in term.body.parts)


def _of_shares(cost: Cost) -> bool:
    """A plurality winner is another one where several have most votes and are declared in another order."""
    return isinstance(cost, VotesMissed) or (isinstance(cost, Distance | Miss) and cost.other == Proportional())


def _alike(system: LotterySystem) -> bool:
    """Whether the data model makes every first choice as likely as any other."""
    law = system.law
    return law is not None and len(law.points) == len(system.alternatives) and len(set(law.weights)) == 1


def fewest(promises: Iterable[Promise]) -> Iterable[Fraction]:
    """For each pure promise about replaced votes, the fewest dummy votes for each alternative; rounded down."""
    for promise in promises:
        epsilon = promise.epsilon
        if promise.task.adding or epsilon is None or not isinstance(promise.requirement.measure, PureDP):
            continue
        if 0 < epsilon <= LARGEST_STEP:
            yield promise.task.moved / (exp_up(epsilon) - 1)
