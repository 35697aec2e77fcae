"""The family of lotteries: a winner drawn from votes by the rule of least loss that the spec allows."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from time import perf_counter

from privspec.core.diagnostics import SpecError
from privspec.families.family import Settings
from privspec.families.infeasible import Infeasible
from privspec.families.selection.bounds import (
    LotteryBound,
    least_epsilon,
    lower_bound,
    truthful_bound,
    truthful_epsilon,
)
from privspec.families.selection.choices import at_least_epsilon, most_rounds, rounds_bound
from privspec.families.selection.conflicts import conflict
from privspec.families.selection.decision import LotteryDecision
from privspec.families.selection.plans import Judged, calibrated, judge
from privspec.families.selection.profiles import Averages
from privspec.families.selection.rules import RULES
from privspec.families.selection.system import LotterySystem, lower
from privspec.model.graph import Model

NO_LESS = Fraction(1, 10**8)
"""Relative distance up to which a bound for every rule is preferred to one for strategy-proof rules."""


class Lotteries:
    """Takes votes that no table is for."""

    def lower(self, model: Model) -> LotterySystem:
        """Ballots, points, requirements and loss in exact numbers."""
        return lower(model)

    def decide(self, model: Model, system: LotterySystem, settings: Settings) -> LotteryDecision | Infeasible:
        """The rule of least loss.

        Raises: SpecError PS0523 where the worst case of the best rule has no exact value.
        """
        started = perf_counter()
        averages = Averages(system, settings.deadline, settings.progress)
        every = certain(system, self._every(system, averages))
        chosen = best(every)
        if chosen is None:
            return conflict(system, every)
        seconds = perf_counter() - started
        bound = self._bound(system)
        return LotteryDecision(model, system, settings, chosen, ranked(every), bound, seconds)

    def _every(self, system: LotterySystem, averages: Averages) -> list[Judged]:
        """All rules: with the most rounds, at the least epsilon, or at the epsilons of the spec."""
        if system.counting:
            return most_rounds(system, averages)
        return at_least_epsilon(system, averages) if system.chosen is not None else self._fixed(system, averages)

    @staticmethod
    def _bound(system: LotterySystem) -> LotteryBound | None:
        """Of all rules, or of all that are strategy-proof where the spec asks for it and that is known."""
        if system.counting:
            return rounds_bound(system)
        if system.chosen is not None:
            return truthful_epsilon(system) or least_epsilon(system)
        every, honest = lower_bound(system), truthful_bound(system)
        if honest is None or (every is not None and every.value >= honest.value - abs(honest.value) * NO_LESS):
            return every
        return honest

    @staticmethod
    def _fixed(system: LotterySystem, averages: Averages) -> list[Judged]:
        epsilons = tuple(promise.epsilon for promise in system.promises if promise.epsilon is not None)
        return judge(system, [calibrated(system, rule, epsilons) for rule in RULES], averages)

    def size(self, system: LotterySystem) -> int:
        """Alternatives."""
        return len(system.votes.alternatives)


def certain(system: LotterySystem, every: list[Judged]) -> list[Judged]:
    """Without rules whose loss has no exact value, but may be below that of the best rule that has one.

    Raises: SpecError PS0523 where no rule that the spec allows has one.
    """
    possible = [one for one in every if one.admissible and one.loss is not None]
    known = [one.loss.value for one in possible if one.loss is not None and not one.loss.at_least]
    if possible and not known:
        loss = system.model.loss
        span = system.model.spec.span if loss is None else loss.span
        rules = " and ".join(one.rule.name for one in possible)
        raise SpecError.at(
            system.model.source,
            span,
            "PS0523",
            f"the worst case of {rules} over all votes has no exact value here",
            label="a bound from below is all that is known",
            help="ask for an average under a data model, for fewer voters, or allow `noise family dictator`",
        )
    unsure = [one for one in possible if one.loss is not None and one.loss.at_least and one.loss.value < min(known)]
    why = "its worst case has no exact value: it may be less than that of the rule taken, or more"
    return [replace(one, reason=why) if any(one is other for other in unsure) else one for one in every]


def ranked(every: list[Judged]) -> tuple[Judged, ...]:
    """Those with a loss first, least loss first."""
    return tuple(sorted(every, key=_loss))


def best(every: list[Judged]) -> Judged | None:
    """The admissible rule of least loss; the first in the order of rules among equals."""
    possible = [one for one in every if one.admissible]
    return min(possible, key=_loss, default=None)


def _loss(one: Judged) -> tuple[bool, Fraction]:
    """Rules without a loss come last."""
    return one.loss is None, Fraction(0) if one.loss is None else one.loss.value
