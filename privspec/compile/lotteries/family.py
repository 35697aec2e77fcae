"""The family of lotteries: a winner drawn from votes by the rule of least loss that the spec allows."""

from __future__ import annotations

from time import perf_counter

from privspec.compile.infeasible import Infeasible
from privspec.compile.lotteries.averages import Averages
from privspec.compile.lotteries.ballots import beyond_tables, voting
from privspec.compile.lotteries.bound import lower_bound
from privspec.compile.lotteries.candidates import Judged, calibrated, judge
from privspec.compile.lotteries.conflicts import conflict
from privspec.compile.lotteries.decision import LotteryDecision
from privspec.compile.lotteries.lower import lower
from privspec.compile.lotteries.system import LotterySystem
from privspec.compile.problem import Settings
from privspec.mechanisms.lotteries.register import RULES
from privspec.model.graph import Model


class Lotteries:
    """Takes votes that no table is for."""

    def accepts(self, model: Model) -> bool:
        """Whether the spec is a vote, and its lines or its size are beyond tables."""
        source = voting(model)
        return source is not None and beyond_tables(model, source)

    def lower(self, model: Model) -> LotterySystem:
        """Ballots, points, requirements and loss in exact numbers."""
        return lower(model)

    def decide(self, model: Model, system: LotterySystem, settings: Settings) -> LotteryDecision | Infeasible:
        """The rule of least loss.

        Raises: SpecError PS0523 where the worst case of the best rule has no exact value.
        """
        started = perf_counter()
        averages = Averages(system, settings.deadline, settings.progress)
        epsilons = tuple(promise.epsilon for promise in system.promises if promise.epsilon is not None)
        every = judge(system, [calibrated(system, rule, epsilons) for rule in RULES], averages)
        chosen = best(every)
        if chosen is None:
            return conflict(system, every)
        return LotteryDecision(
            model, system, settings, chosen, ranked(every), lower_bound(system), None, perf_counter() - started
        )

    def size(self, system: LotterySystem) -> int:
        """Alternatives."""
        return len(system.alternatives)


def ranked(every: list[Judged]) -> tuple[Judged, ...]:
    """Those with a loss first, least loss first."""
    return tuple(sorted(every, key=lambda one: (one.draw is None, one.loss.value)))


def best(every: list[Judged]) -> Judged | None:
    """The admissible rule of least loss; the first in the order of rules among equals."""
    possible = [one for one in every if one.admissible]
    return min(possible, key=lambda one: one.loss.value, default=None)
