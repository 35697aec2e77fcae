"""The family of noisy statistics: functions of bounded records that are not linear."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from time import perf_counter
from typing import Any

from privspec.core.diagnostics import Diagnostic, Label, SpecError
from privspec.families.decision import (
    MEETS,
    Alternative,
    ConflictLine,
    Decided,
    Decision,
    Infeasible,
    Relaxation,
    accuracy_json,
    conflict_line,
    guarantee,
)
from privspec.families.family import Settings
from privspec.families.statistics.predict import (
    Predicted,
    Prediction,
    Promise,
    StatisticSystem,
    Way,
    forbidden,
    lower,
    predict,
    ways,
    weights_of,
)
from privspec.kernel.measures import PURE
from privspec.kernel.statistics import PLACES, Executed, Site
from privspec.kernel.writing import write
from privspec.model.graph import Model
from privspec.model.library import GRID
from privspec.model.reports import Failure
from privspec.solvers.programs import OutOfTimeError

CROWD_LIMIT = 2**29
"""Numbers in all records of one simulated crowd: four gigabytes."""
NUMBERS_COMPARED = 2**22
"""Numbers in all crowds on which the loss without noise is simulated, where it is all there is to tell."""
SECONDS_COMPARED = 10.0
"""Seconds that this may take."""


class Statistics:
    """Takes specs with a function that offers routes."""

    unpriced = "errors of a fitted statistic are known by simulation, and none shows that a smaller amount would not do"

    def lower(self, model: Model) -> StatisticSystem:
        """Records, function, pool.

        Raises: SpecError PS05xx; PS0518 where the spec asks for no privacy.
        """
        system = lower(model)
        _refuse_crowds(system)
        if not system.promises:
            raise _no_privacy(system)
        return system

    def decide(self, model: Model, system: StatisticSystem, settings: Settings) -> Decision | Infeasible:
        """The candidate of least predicted loss that the spec allows."""
        every = list(ways(system))
        allowed = [way for way in every if not forbidden(system, way)]
        if not allowed:
            return _conflict(system, every)
        others = [way for way in every if forbidden(system, way)] if settings.alternatives else []
        started = perf_counter()
        found = _predicted(system, allowed, others, settings.progress, deadline=settings.deadline)
        return decided(model, system, found, settings, perf_counter() - started)

    def size(self, system: StatisticSystem) -> int:
        """Numbers of the largest statistic."""
        return max(route.size for route in system.routes)


def decided(
    model: Model, system: StatisticSystem, prediction: Prediction, settings: Settings, seconds: float
) -> Decided:
    """The first candidate of a ranking that the spec allows; nothing is proved of other mechanisms."""
    chosen = next(one for one in prediction.ranking if not forbidden(system, one.way))
    guarantees, executed = (
        [_guarantee(promise, chosen.way) for promise in system.promises],
        executed_of(system, chosen.way),
    )
    limits = [(one.line, one.text, executed.error(one.probability), one.most) for one in system.block.limits]
    return Decided(
        model,
        chosen.way.name,
        chosen.loss,
        lambda: {"mechanism": write(executed), "guarantees": guarantees, "accuracy": accuracy_json(limits)},
        among="the ways that this plan lists, by simulation under the data model",
        others=tuple(_alternative(system, one) for one in prediction.ranking if one is not chosen),
        solver={
            "name": "ranking by simulation with common random numbers",
            "iterations": prediction.crowds,
            "seconds": seconds,
            "tolerance": settings.tolerance,
        },
        figures={
            "standard_error": chosen.standard_error,
            "crowds": prediction.crowds,
            "parties": prediction.parties,
            "without_noise": prediction.exact,
        },
        program=lambda: "places for noise are ranked by simulated loss, which is not convex in the noise",
    )


def _alternative(system: StatisticSystem, one: Predicted) -> Alternative:
    reason, error = forbidden(system, one.way), {"standard_error": one.standard_error}
    return Alternative(one.way.name, one.loss, reason or MEETS, not reason, error)


def executed_of(system: StatisticSystem, way: Way) -> Executed:
    """What is executed, in public numbers: the statistic by its place in the call, and the noise at each site."""
    weights = weights_of(way, system.block.parties)
    return Executed(
        system.block,
        way.route.at,
        PLACES[0] if way.each_party else PLACES[1],
        way.finish_first,
        tuple(Site(way.at, noise.shape, noise.parameters, GRID) for noise in way.noise),
        None if weights is None else tuple(Fraction(float(w)).limit_denominator(2**30) for w in weights),
    )


def _guarantee(promise: Promise, way: Way) -> dict[str, Any]:
    notes = way.route.note, *dict.fromkeys(n for one in way.noise for n in one.notes), "post-processing"
    return guarantee(promise.requirement, promise.index, _weakest(promise, way), notes)


def _weakest(promise: Promise, way: Way) -> dict[str, Fraction]:
    """What is reached for every party: the largest of their figures."""
    found = [one.achieved(way.route.spread(promise.unit)) for one in dict.fromkeys(way.noise)]
    return {key: max(figures[key] for figures in found) for key in found[0]}


def _refuse_crowds(system: StatisticSystem) -> None:
    """Losses are predicted on whole crowds, which have to fit in memory.

    Raises: SpecError PS0515.
    """
    block = system.block
    numbers = system.drawn * block.count * block.dimension
    if numbers > CROWD_LIMIT:
        text = (
            f"a crowd to simulate would have {numbers:,} numbers; losses are predicted on crowds of up to "
            f"{CROWD_LIMIT:,}"
        )
        label = Label(system.model.nodes[block.source].span, "all records together")
        help_ = "solve for a smaller number of parties or records, or for a coarser description"
        raise SpecError(Diagnostic("PS0515", text, (label,), help=help_, source=system.model.source))


def _predicted(system: StatisticSystem, *given: Any, **named: Any) -> Prediction:
    """As `predict`.

    Raises: SpecError where the loss has no value on simulated crowds, OutOfTimeError.
    """
    try:
        return predict(system, *given, **named)
    except Failure as failure:
        label, source = Label(failure.span, failure.label), system.model.source
        raise SpecError(
            Diagnostic(failure.code, failure.message, (label,), help=failure.help, source=source)
        ) from failure


def _no_privacy(system: StatisticSystem) -> SpecError:
    """A spec without a requirement is no plan: its loss is told, and that it protects nobody."""
    block = system.block
    crowd = system.drawn * block.count * block.dimension
    most, notes, model = max(2, min(100, NUMBERS_COMPARED // crowd)), list[str](), system.model
    with suppress(OutOfTimeError):
        exact = _predicted(system, [], most=most, deadline=SECONDS_COMPARED).exact
        notes.append(f"predicted loss without any noise, for comparison: {exact:.4f}")
    return SpecError(
        Diagnostic(
            "PS0518",
            "this spec asks for no privacy, so there is no plan: whatever is computed from the records may reveal them",
            (Label(model.nodes[block.output].span, "would be published as it is"),),
            notes=tuple(notes),
            help=f"add a line under privacy: {block.output} is 1-{PURE.word} wrt {block.source}, replacing one record",
            source=model.source,
        )
    )


def _conflict(system: StatisticSystem, every: list[Way]) -> Infeasible:
    """Options that leave no candidate."""
    model = system.model
    lines: list[ConflictLine] = [conflict_line(model, o.span) for o in model.spec.options]
    lines += [conflict_line(model, promise.requirement.span) for promise in system.promises]
    lines += [conflict_line(model, one.target.span) for one in model.accuracy]
    reasons = sorted({forbidden(system, way) for way in every})
    return Infeasible(
        "no noise that the options allow meets the requirement: " + "; ".join(reasons or ["no shape of noise fits it"]),
        tuple(lines),
        (Relaxation("drop the options: the best place and shape are then found", None, None),),
    )
