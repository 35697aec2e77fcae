"""Voting: a winner is drawn from votes by the rule of least loss that the spec allows, or it is said why none is.

A decision is the rule that is taken, beside all others, and the plan that says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from time import perf_counter
from typing import Any

from privspec.core.diagnostics import InternalError, SpecError
from privspec.core.records import dataclass
from privspec.core.spans import Span
from privspec.families.decision import (
    ConflictLine,
    Infeasible,
    Relaxation,
    conflict_line,
    decimal_up,
    float_down,
    float_up,
    guarantee_head,
    plan_document,
    rated,
)
from privspec.families.family import Settings
from privspec.families.voting import choices
from privspec.families.voting.papers import Condition, EachSupported, LeastShare, remarks
from privspec.families.voting.plans import Figures, Judged, calibrated, forbidden, judge, spent
from privspec.families.voting.profiles import Averages, Estimate, worst_case
from privspec.families.voting.rules import DICTATOR, RULES, WITHOUT, Draw, Promise, VotingSystem, lower
from privspec.kernel.laws.voting import DUMMY_VOTES, VOTING
from privspec.model.graph import Model
from privspec.model.reports import listing
from privspec.model.values import show
from privspec.model.voting import Lottery
from privspec.problem.voting import LISTED, Limit, beside


@dataclass(frozen=True, eq=False, slots=True)
class VotingDecision:
    """All rules with their losses; `chosen` is the best that the spec allows, `bound` holds for rules of any kind."""

    model: Model
    system: VotingSystem
    settings: Settings
    chosen: Judged
    ranking: tuple[Judged, ...]
    bound: choices.VotingBound | None
    seconds: float

    @property
    def epsilon(self) -> Fraction | None:
        """The one that the solver picks; of one round where it picks their number."""
        system, loss = self.system, self._found.value
        if system.counting and system.votes.rounds is not None:
            return system.votes.rounds.budget / system.count_of(loss)
        return None if system.chosen is None else loss

    @property
    def name(self) -> str:
        return self.chosen.rule.name

    @property
    def loss(self) -> float:
        """Its loss, to the nearest double."""
        return float(self._found.value)

    @property
    def lower_bound(self) -> float | None:
        """No rule of any kind has less; None where nothing is proved."""
        return None if self.bound is None else float_down(self.bound.value)

    def document(self) -> dict[str, Any]:
        found, loss = self._found, self.system.loss
        simulated: dict[str, Any] = {"standard_error": found.standard_error, "profiles": found.profiles}
        document = {
            **rated(
                self.model,
                self.loss,
                self.lower_bound,
                LISTED if self.bound is None else self.bound.scope,
                kind="expected" if any(term.operator == "E" for term in loss.terms) else "worst",
                **(simulated if found.standard_error else {}),
            ),
            "alternatives": [self._alternative(one) for one in self._others if one.loss is not None],
            "mechanism": self._mechanism(),
            "guarantees": [self._guarantee(promise) for promise in self.system.promises],
            "accuracy": [self._accuracy(limit, found) for limit, found in zip(*self._limits, strict=True)],
            "claims": {} if self.bound is None else {"bound": self.bound.witness},
            "remarks": {
                "compared": self.system.votes.compared_name,
                "properties": [p.to_json() for p in self._taken.properties(self.system.promises[0].task)],
                "figures": {} if self.chosen.figures is None else figures_json(self.chosen.figures),
                "paper": remarks(self.system, self._taken),
                "considered": [self._considered(one) for one in self._others if one.loss is None],
                "binding": [],
                "solver": {
                    "name": "comparison of the rules of private voting",
                    "iterations": max(one.loss.profiles for one in self.ranking if one.loss is not None),
                    "seconds": self.seconds,
                    "tolerance": self.settings.tolerance,
                },
            },
        }
        return plan_document(self.model, document)

    # -- rules

    @property
    def _found(self) -> Estimate:
        if self.chosen.loss is None:
            raise InternalError("a rule was chosen that has no loss")
        return self.chosen.loss

    @property
    def _taken(self) -> Draw:
        if self.chosen.calibrated is None:
            raise InternalError("a rule was chosen that was not calibrated")
        return self.chosen.calibrated

    def _mechanism(self) -> dict[str, Any]:
        votes = self.system.votes
        return self._taken.to_json() | {
            "input": votes.source,
            "party": votes.party,
            "output": votes.output,
            "ballots": votes.ballots.kind,
            "places": votes.ballots.places,
            "points": votes.ballots.counted,
            "alternatives": list(votes.alternatives),
            "voters": None if votes.secret else votes.voters,
            "leaves_out": all(promise.task.adding for promise in self.system.promises),
            "rounds": choices.rounds_json(votes.rounds, self._count),
            "scalars": self._scalars,
        }

    @property
    def _count(self) -> int | None:
        """How many rounds share a budget."""
        system = self.system
        if system.counting:
            return system.count_of(self._found.value)
        return None if system.votes.rounds is None else system.votes.rounds.count

    @property
    def _scalars(self) -> dict[str, str]:
        """The numbers that the spec leaves open."""
        system, loss = self.system, self._found.value
        if system.counting and system.votes.rounds is not None:
            return {system.counted.name: str(system.count_of(loss))}
        return {} if system.chosen is None else {system.chosen.name: str(loss)}

    @property
    def _others(self) -> list[Judged]:
        return [one for one in self.ranking if one is not self.chosen]

    def _considered(self, one: Judged) -> dict[str, Any]:
        """A rule without a loss: no such lottery, or none that meets the lines; `rule` is what was tried last."""
        task = self.system.promises[0].task
        return {
            "name": one.rule.name,
            "reason": one.reason,
            "rule": None if one.draw is None else one.draw.to_json(),
            "properties": {} if one.draw is None else {p.name: p.holds for p in one.draw.properties(task)},
        }

    def _alternative(self, one: Judged) -> dict[str, Any]:
        found = alternative_json(self.system, one, one.reason or _meets(one.loss), admissible=one.admissible)
        return found | _told(one.loss) | {"rule": None if one.draw is None else one.draw.to_json()}

    @property
    def _limits(self) -> tuple[tuple[Limit, ...], tuple[Estimate, ...]]:
        return self.system.votes.limits, self.chosen.limits

    @staticmethod
    def _accuracy(limit: Limit, found: Estimate) -> dict[str, Any]:
        line, text = limit.line, limit.text
        return {"line": line, "text": text, "value": float(found.value), "bound": float(limit.bound)}

    # -- guarantees and assumptions

    def _guarantee(self, promise: Promise) -> dict[str, Any]:
        taken = self._taken
        allowed = self.epsilon if promise.epsilon is None else promise.epsilon
        figure = decimal_up(spent(self.system, promise, taken))
        if allowed is not None and Fraction(figure) > allowed:
            figure = show(allowed)  # what the exact ratio was held to
        head = guarantee_head(promise.requirement, promise.index)
        if promise.epsilon is None and allowed is not None:
            head |= {"epsilon": show(allowed)}
        further = ["group-privacy"] if promise.task.group > 1 else []
        further += ["repeated-votes"] if self.system.votes.rounds is not None else []
        return head | {"achieved": {"epsilon": figure}, "because": [*taken.notes, *further]}


def alternative_json(system: VotingSystem, one: Judged, reason: str, *, admissible: bool) -> dict[str, Any]:
    """A rule beside the one that is taken: what it spends and keeps, and how far it is from the votes."""
    epsilon = None
    if one.calibrated is not None:
        epsilon = decimal_up(max(spent(system, p, one.calibrated) for p in system.promises))
    kept = {} if one.draw is None else {p.name: p.holds for p in one.draw.properties(system.promises[0].task)}
    figures = {} if one.figures is None else figures_json(one.figures)
    return {
        "name": one.rule.name,
        "admissible": admissible,
        "reason": reason,
        "figures": {"epsilon": epsilon, **figures, "properties": kept},
    }


def figures_json(figures: Figures) -> dict[str, Any]:
    """As plans list them: a worst case is given where it is known, and rounded up; averages to the nearest double."""
    worst = figures.worst_distortion
    return {
        "worst_distortion": None if worst.at_least else float_up(worst.value),
        "mean_distortion": _mean(figures.mean_distortion),
        "expected_welfare": _mean(figures.expected_welfare),
    }


def _mean(found: Estimate | None) -> float | None:
    return None if found is None else float(found.value)


def _told(loss: Estimate | None) -> dict[str, Any]:
    """The loss of a rule and how it is known: bounds rounded down, values up."""
    if loss is None:
        raise InternalError("a rule without a loss is no alternative")
    if loss.at_least:
        return {"loss": float_down(loss.value), "at_least": True}
    found: dict[str, Any] = {"loss": float_up(loss.value)}
    return found | ({"standard_error": loss.standard_error} if loss.standard_error else {})


def _meets(loss: Estimate | None) -> str:
    if loss is not None and loss.at_least:
        return "meets every line of the spec; its loss is at least the figure given"
    return "meets every line of the spec"


# --- the family -----------------------------------------------------------------------------------


NOBODY_ELSE = "a vote for an alternative that nobody else chose reveals its voter"

NO_LIES = "allow `noise family dictator`: with dummy votes no lie pays"


def conflict(system: VotingSystem, every: list[Judged]) -> Infeasible:
    """The lines that stand against each other: options if they rule all rules out, else accuracy and requirements."""
    _refuse_unknown(system, every)
    allowed = [one for one in every if not forbidden(system, one.rule) and one.rule.family != WITHOUT]
    if not allowed or not system.votes.limits:
        return _options(system, every)
    return _accuracy(system, allowed)


def _refuse_unknown(system: VotingSystem, every: list[Judged]) -> None:
    """Lines that some rule may meet are no contradiction.

    Raises: SpecError PS0523 where nobody knows.
    """
    unsure = {one.rule.name: one.unsure for one in every if one.unsure is not None}
    for limit in unsure.values():
        rules = listing(list(unsure), "or")
        why = "there are too many profiles of votes to list"
        way_out = "use fewer voters, or bound a worst case from random_dictator(...), which has a formula"
        if limit.measured is None:
            why, way_out = "what a lie brings at most", NO_LIES
        raise SpecError.at(
            system.model.source,
            span_of(system, limit),
            "PS0523",
            f"whether {rules} would meet this line cannot be computed",
            label=why,
            help=way_out,
        )


def _options(system: VotingSystem, every: list[Judged]) -> Infeasible:
    model = system.model
    reasons = "; ".join(f"{one.rule.name}: {one.reason}" for one in every if one.reason)
    way_out = f"drop the options, or name another rule: {', '.join(one.name for one in VOTING)}"
    if system.local and any(promise.task.adding for promise in system.promises):
        way_out = f"write `replacing one {system.votes.party}`: that one took part is then no secret"
    return Infeasible(
        f"no rule of private voting meets these lines: {reasons}",
        (*_lines(system, [option.span for option in model.spec.options]),),
        (Relaxation(way_out, None, None),),
    )


def _accuracy(system: VotingSystem, allowed: list[Judged]) -> Infeasible:
    spans = [span_of(system, limit) for limit in system.votes.limits]
    exact = [limit for limit in system.votes.limits if choices.distance_limit(limit) is not None]
    none_enough = any((choices.distance_limit(limit) or 0) <= 0 for limit in exact)
    if none_enough:
        reason = f"no epsilon is enough: {NOBODY_ELSE}, so the winner cannot be drawn from the votes alone"
    else:
        spans += [] if system.chosen_span is None else [system.chosen_span]
        spans += [option.span for option in system.model.spec.options] if system.model.families else []
        each = dict.fromkeys(f"{one.rule.name}: {one.reason}" for one in allowed if one.reason)
        head = f"{_least_rounds(system)}no rule of private voting that solve knows meets these lines"
        reason = f"{head}: {'; '.join(each)}"
    relaxations = [found for limit in exact for found in _distance(system, limit)]
    if (
        system.model.families
        and all(limit.measured is None and limit.bound >= 0 for limit in system.votes.limits)
        and not system.local
    ):
        relaxations.append(Relaxation(NO_LIES, _line(system, system.model.spec.options[0].span), None))
    if none_enough:
        relaxations += list(_in_vain(system))
    elif system.counting:
        relaxations += list(_budget(system))
    elif system.chosen_span is not None and (needed := _needed(allowed)) is not None:
        change = f"allow an epsilon of {float(needed) * 1.00005:.4g}"
        relaxations.append(Relaxation(change, _line(system, system.chosen_span), float(needed)))
    return Infeasible(reason, _lines(system, spans), tuple(relaxations))


def _lines(system: VotingSystem, spans: list[Span]) -> tuple[ConflictLine, ...]:
    model = system.model
    found = [conflict_line(model, span) for span in spans]
    found += [conflict_line(model, promise.requirement.span) for promise in system.promises]
    return tuple({line.line: line for line in found}.values())


def _line(system: VotingSystem, span: Span) -> int:
    return system.model.source.position(span.start)[0]


def span_of(system: VotingSystem, limit: Limit) -> Span:
    """Where an accuracy line stands."""
    return system.model.accuracy[system.votes.limits.index(limit)].target.span


def _least_rounds(system: VotingSystem) -> str:
    """How a reason begins where rounds are chosen."""
    if system.votes.rounds is None or not system.counting:
        return ""
    least = int(system.counted.low)
    return "not even one round fits: " if least == 1 else f"{least} rounds do not fit: "


def _budget(system: VotingSystem) -> Iterator[Relaxation]:
    """The budget with which the least number of rounds fits, by dummy votes."""
    dummies = choices.dummies_at(system)
    if dummies is None or not dummies or forbidden(system, DICTATOR):
        return
    needed = (
        max(spent(system, promise, Draw(DICTATOR.family, dummies)) for promise in system.promises) * system.counted.low
    )
    line = system.model.source.position(system.promises[0].requirement.span.start)[0]
    # a little more than the exact figure, as the draw is rounded towards privacy
    change = (
        f"allow a budget of {show(_up(needed * Fraction(100001, 100000), 5))} for {_rounds(int(system.counted.low))}"
    )
    yield Relaxation(change, line, float(system.loss_of(system.counted.low)))


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


def _distance(system: VotingSystem, limit: Limit) -> Iterator[Relaxation]:
    """The distance that dummy votes reach at the largest epsilon that the spec allows."""
    most = choices.LARGEST if system.chosen is None or system.chosen.high is None else system.chosen.high
    rounds = system.votes.rounds if system.counting else None
    if rounds is not None:
        most = rounds.budget / system.counted.low
    epsilons = tuple(most if p.epsilon is None else p.epsilon for p in system.promises)
    found = calibrated(system, DICTATOR, epsilons)
    if not found.admissible or found.draw is None:
        return
    reached = worst_case(system, found.draw.lottery, (beside("distance", Lottery(DUMMY_VOTES)),))
    rounded = _up(reached.value, 4)
    loss = float(most) if system.chosen is not None else None
    reached_at = f"epsilon = {show(max(epsilons))}"
    if rounds is not None:
        loss = float(system.loss_of(system.counted.low))
        reached_at = f"the budget of {show(rounds.budget)} for {_rounds(int(system.counted.low))}"
    change = f"allow a distance of {show(rounded)}, which dummy votes reach at {reached_at}"
    yield Relaxation(change, limit.line, loss)


def _in_vain(system: VotingSystem) -> Iterator[Relaxation]:
    span = system.chosen_span or system.promises[0].requirement.span
    yield Relaxation(
        f"a larger epsilon: no epsilon is enough, since {NOBODY_ELSE}", _line(system, span), None, works=False
    )
    if system.votes.ballots.borda:
        return
    adding = system.votes.secret
    conditions: tuple[Condition, ...] = (EachSupported(adding), LeastShare(Fraction(10), adding))
    for condition in conditions:
        yield Relaxation(
            f"{condition.name} of Torra 2019, which is no guarantee: it is about {condition.scope}, and says that "
            f"{condition.text}. Whether an electorate is such a one depends on the votes, and telling that it is tells "
            "of them",
            None,
            None,
            works=False,
        )


def _needed(allowed: list[Judged]) -> Fraction | None:
    """The least epsilon of a rule that misses nothing but the end of the range."""
    found = [one.loss.value for one in allowed if one.calibrated is not None and one.loss is not None]
    return min(found, default=None)


def _up(value: Fraction, digits: int) -> Fraction:
    """Rounded up to so many significant digits."""
    scale = Fraction(1)
    while value * scale < 10 ** (digits - 1):
        scale *= 10
    return -(-(value * scale) // 1) / scale


NO_LESS = Fraction(1, 10**8)
"""Relative distance up to which a bound for every rule is preferred to one for strategy-proof rules."""


class Voting:
    """Takes votes that no table is for."""

    def lower(self, model: Model) -> VotingSystem:
        """Ballots, points, requirements and loss in exact numbers."""
        return lower(model)

    def decide(self, model: Model, system: VotingSystem, settings: Settings) -> VotingDecision | Infeasible:
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
        return VotingDecision(model, system, settings, chosen, ranked(every), bound, seconds)

    def _every(self, system: VotingSystem, averages: Averages) -> list[Judged]:
        """All rules: with the most rounds, at the least epsilon, or at the epsilons of the spec."""
        if system.counting:
            return choices.most_rounds(system, averages)
        return (
            choices.at_least_epsilon(system, averages) if system.chosen is not None else self._fixed(system, averages)
        )

    @staticmethod
    def _bound(system: VotingSystem) -> choices.VotingBound | None:
        """Of all rules, or of all that are strategy-proof where the spec asks for it and that is known."""
        if system.counting:
            return choices.rounds_bound(system)
        if system.chosen is not None:
            return choices.truthful_epsilon(system) or choices.least_epsilon(system)
        every, honest = choices.lower_bound(system), choices.truthful_bound(system)
        if honest is None or (every is not None and every.value >= honest.value - abs(honest.value) * NO_LESS):
            return every
        return honest

    @staticmethod
    def _fixed(system: VotingSystem, averages: Averages) -> list[Judged]:
        epsilons = tuple(promise.epsilon for promise in system.promises if promise.epsilon is not None)
        return judge(system, [calibrated(system, rule, epsilons) for rule in RULES], averages)

    def size(self, system: VotingSystem) -> int:
        """Alternatives."""
        return len(system.votes.alternatives)


def certain(system: VotingSystem, every: list[Judged]) -> list[Judged]:
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
