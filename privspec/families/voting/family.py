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
    MEETS,
    Alternative,
    ConflictLine,
    Decided,
    Infeasible,
    Relaxation,
    accuracy_json,
    conflict_line,
    decimal_up,
    float_down,
    float_up,
    guarantee,
    line_of,
)
from privspec.families.family import Settings
from privspec.families.voting import choices
from privspec.families.voting.papers import Condition, EachSupported, LeastShare, remarks
from privspec.families.voting.plans import Figures, Judged, calibrated, forbidden, judge, spent
from privspec.families.voting.profiles import Averages, Estimate, worst_case
from privspec.families.voting.rules import DICTATOR, RULES, WITHOUT, Draw, Promise, VotingSystem, lower
from privspec.kernel.laws.voting import DUMMY_VOTES, VOTING
from privspec.kernel.promises import SharedBudget
from privspec.kernel.voting import LISTED, Executed, Limit
from privspec.kernel.writing import write
from privspec.model.graph import Model
from privspec.model.reports import listing
from privspec.model.values import show
from privspec.model.voting import Lottery
from privspec.problem.voting import beside, compared_name


@dataclass(frozen=True, eq=False, slots=True)
class ChosenRule:
    """All rules with their losses; `chosen` is the best that the spec allows, `bound` holds for rules of any kind."""

    model: Model
    system: VotingSystem
    settings: Settings
    chosen: Judged
    ranking: tuple[Judged, ...]
    bound: choices.VotingBound | None
    seconds: float

    def decided(self) -> Decided:
        """As a decision, with the loss to the nearest double."""
        bound, loss = self.bound, self._loss
        averaged = any(term.operator == "E" for term in self.system.loss.terms)
        simulated = {"standard_error": loss.standard_error, "profiles": loss.profiles}
        return Decided(
            self.model,
            self.chosen.rule.name,
            float(loss.value),
            self._stated,
            lambda: None if bound is None else bound.value,
            LISTED if bound is None else bound.scope,
            kind="expected" if averaged else "worst",
            others=tuple(self._alternative(one) for one in self._others if one.loss is not None),
            solver={
                "name": "comparison of the rules of private voting",
                "iterations": max(one.loss.profiles for one in self.ranking if one.loss is not None),
                "seconds": self.seconds,
                "tolerance": self.settings.tolerance,
            },
            figures=simulated if loss.standard_error else {},
            program=lambda: "the rule is the best of those of private voting that the plan lists",
        )

    def _stated(self) -> dict[str, Any]:
        """The rule as it stands in the plan, and what it keeps."""
        votes, task = self.system.votes, self.system.promises[0].task
        limits = zip(votes.limits, self.chosen.limits, strict=True)
        return {
            "mechanism": self._mechanism(),
            "guarantees": [self._guarantee(promise) for promise in self.system.promises],
            "accuracy": accuracy_json((limit.line, limit.text, found.value, limit.bound) for limit, found in limits),
            "claims": {} if self.bound is None else {"bound": self.bound.witness},
            "remarks": {
                "compared": compared_name(votes),
                "properties": [one.to_json() for one in self._taken.properties(task)],
                "figures": {} if self.chosen.figures is None else figures_json(self.chosen.figures),
                "paper": remarks(self.system, self._taken),
                "considered": [self._considered(one) for one in self._others if one.loss is None],
            },
        }

    # -- rules

    @property
    def _loss(self) -> Estimate:
        if self.chosen.loss is None:
            raise InternalError("a rule was chosen that has no loss")
        return self.chosen.loss

    @property
    def _taken(self) -> Draw:
        if self.chosen.calibrated is None:
            raise InternalError("a rule was chosen that was not calibrated")
        return self.chosen.calibrated

    @property
    def _others(self) -> list[Judged]:
        return [one for one in self.ranking if one is not self.chosen]

    @property
    def epsilon(self) -> Fraction | None:
        """The one that the solver picks; of one round where it picks their number."""
        system, rounds = self.system, self.system.votes.rounds
        if system.counting and rounds is not None:
            return rounds.budget / system.count_of(self._loss.value)
        return None if system.chosen is None else self._loss.value

    def _mechanism(self) -> dict[str, Any]:
        system, votes = self.system, self.system.votes
        scalars, rounds = dict[str, Fraction](), None
        if votes.rounds is not None:
            count = system.count_of(self._loss.value) if system.counting else votes.rounds.count
            scalars = {} if not system.counting or count is None else {system.counted.name: Fraction(count)}
            budget = votes.rounds.budget
            rounds = None if count is None else SharedBudget(int(count), budget, budget / count, int(count))
        if system.chosen is not None:
            scalars = {system.chosen.name: self._loss.value}
        drawn, names = self._taken, ("dummy_votes", "base", "ratio")
        dummy_votes, base, ratio = (drawn.number if name == drawn.rule.parameter else None for name in names)
        return write(Executed(votes, drawn.family, scalars, dummy_votes, base, ratio, rounds))

    def _considered(self, one: Judged) -> dict[str, Any]:
        """A rule without a loss: no such lottery, or none that meets the lines; `rule` is what was tried last."""
        task = self.system.promises[0].task
        return {
            "name": one.rule.name,
            "reason": one.reason,
            "rule": None if one.draw is None else one.draw.to_json(),
            "properties": {} if one.draw is None else {p.name: p.holds for p in one.draw.properties(task)},
        }

    def _alternative(self, one: Judged) -> Alternative:
        """A rule with its loss, and how that is known: bounds are rounded down, values up."""
        loss = one.loss
        assert loss is not None
        told: dict[str, Any] = {"standard_error": loss.standard_error} if loss.standard_error else {}
        meets = MEETS
        if loss.at_least:
            told, meets = {"at_least": True}, f"{MEETS}; its loss is at least the figure given"
        return Alternative(
            one.rule.name,
            float_down(loss.value) if loss.at_least else float_up(loss.value),
            one.reason or meets,
            one.admissible,
            beside_others(self.system, one) | told | {"rule": None if one.draw is None else one.draw.to_json()},
        )

    def _guarantee(self, promise: Promise) -> dict[str, Any]:
        taken = self._taken
        allowed = self.epsilon if promise.epsilon is None else promise.epsilon
        figure = decimal_up(spent(self.system, promise, taken))
        if allowed is not None and Fraction(figure) > allowed:
            figure = show(allowed)  # what the exact ratio was held to
        asked = {"epsilon": show(allowed)} if promise.epsilon is None and allowed is not None else {}
        further = ["group-privacy"] if promise.task.group > 1 else []
        further += ["repeated-votes"] if self.system.votes.rounds is not None else []
        return guarantee(promise.requirement, promise.index, {"epsilon": figure}, [*taken.notes, *further]) | asked


def beside_others(system: VotingSystem, one: Judged) -> dict[str, Any]:
    """What plans say of a rule among others: what it spends and keeps, and how far it is from the votes."""
    epsilon = None
    if one.calibrated is not None:
        epsilon = decimal_up(max(spent(system, promise, one.calibrated) for promise in system.promises))
    kept = {} if one.draw is None else {p.name: p.holds for p in one.draw.properties(system.promises[0].task)}
    figures = {} if one.figures is None else figures_json(one.figures)
    return {"figures": {"epsilon": epsilon, **figures, "properties": kept}}


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
    sure = system.votes.ballots.supporters
    none_enough = not sure and any((choices.distance_limit(limit) or 0) <= 0 for limit in exact)
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
        relaxations.append(Relaxation(NO_LIES, line_of(system.model, system.model.spec.options[0].span.start), None))
    if none_enough:
        relaxations += list(_in_vain(system))
    elif system.counting:
        relaxations += list(_budget(system))
    elif system.chosen_span is not None and (needed := _needed(allowed)) is not None:
        change = f"allow an epsilon of {float(needed) * 1.00005:.4g}"
        relaxations.append(Relaxation(change, line_of(system.model, system.chosen_span.start), float(needed)))
    return Infeasible(reason, _lines(system, spans), tuple(relaxations))


def _lines(system: VotingSystem, spans: list[Span]) -> tuple[ConflictLine, ...]:
    model = system.model
    found = [conflict_line(model, span) for span in spans]
    found += [conflict_line(model, promise.requirement.span) for promise in system.promises]
    return tuple({line.line: line for line in found}.values())


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
    draw = Draw(DICTATOR.family, dummies)
    needed = max(spent(system, promise, draw) for promise in system.promises) * system.counted.low
    line = line_of(system.model, system.promises[0].requirement.span.start)
    # a little more than the exact figure, as the draw is rounded towards privacy
    budget = Fraction(decimal_up(needed * Fraction(100001, 100000), 5))
    change = f"allow a budget of {show(budget)} for {_rounds(int(system.counted.low))}"
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
    rounded = Fraction(decimal_up(reached.value, 4))
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
        f"a larger epsilon: no epsilon is enough, since {NOBODY_ELSE}", line_of(system.model, span.start), works=False
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


class Voting:
    """Takes votes that no table is for."""

    def lower(self, model: Model) -> VotingSystem:
        """Ballots, points, requirements and loss in exact numbers."""
        return lower(model)

    def decide(self, model: Model, system: VotingSystem, settings: Settings) -> Decided | Infeasible:
        """The rule of least loss.

        Raises: SpecError PS0523 where the worst case of the best rule has no exact value.
        """
        found = chosen_rule(model, system, settings)
        return found.decided() if isinstance(found, ChosenRule) else found

    def size(self, system: VotingSystem) -> int:
        """Alternatives."""
        return system.votes.ballots.size


def chosen_rule(model: Model, system: VotingSystem, settings: Settings) -> ChosenRule | Infeasible:
    """The rule of least loss that meets every line, with all others; or which lines conflict.

    Raises: SpecError PS0523.
    """
    started = perf_counter()
    averages = Averages(system, settings.deadline, settings.progress)
    every = certain(system, _every(system, averages))
    chosen = best(every)
    if chosen is None:
        return conflict(system, every)
    return ChosenRule(model, system, settings, chosen, ranked(every), _bound(system), perf_counter() - started)


def _every(system: VotingSystem, averages: Averages) -> list[Judged]:
    """All rules: with the most rounds, at the least epsilon, or at the epsilons of the spec."""
    if system.counting:
        return choices.most_rounds(system, averages)
    if system.chosen is not None:
        return choices.at_least_epsilon(system, averages)
    epsilons = tuple(promise.epsilon for promise in system.promises if promise.epsilon is not None)
    return judge(system, [calibrated(system, rule, epsilons) for rule in RULES], averages)


def _bound(system: VotingSystem) -> choices.VotingBound | None:
    """Of all rules; of strategy-proof ones, or of dummy votes, where the spec asks for these and that is more."""
    if system.counting:
        return choices.rounds_bound(system)
    if system.chosen is not None:
        truthful = choices.truthful_epsilon(system)
        return choices.most(truthful or choices.least_epsilon(system), choices.dummies_epsilon(system))
    every, truthful = choices.lower_bound(system), choices.truthful_bound(system)
    return choices.most(every, truthful, choices.dummies_bound(system))


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
