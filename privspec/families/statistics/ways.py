"""Every way to make the release private: a route, where its noise enters, when it is finished, the noise's shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from privspec.core.diagnostics import Diagnostic, Label, SpecError
from privspec.families.statistics.shapes import SHAPES, Calibrated, Shape, Site
from privspec.language import syntax
from privspec.language.walk import with_children
from privspec.model.graph import Model
from privspec.model.library import GRID, Route, Unit
from privspec.model.measures import Measure, Personalised
from privspec.model.neighbours import ReplacingRecord
from privspec.model.priors import Generator, generator_of
from privspec.model.reports import Failure
from privspec.model.requirements import Requirement
from privspec.model.targets import needed
from privspec.problem.statistics import StatisticBlock, block_of


@dataclass(frozen=True, slots=True)
class Promise:
    """A requirement with what it protects: one party's whole records or one record; a measure for each party."""

    index: int
    requirement: Requirement
    unit: Unit
    measures: tuple[Measure, ...]

    @property
    def personal(self) -> bool:
        """Whether parties ask for different amounts."""
        return len(set(self.measures)) > 1


@dataclass(frozen=True, eq=False, slots=True)
class StatisticSystem:
    """The block that is solved, with what computes its routes, draws crowds and evaluates the loss."""

    model: Model
    block: StatisticBlock
    routes: tuple[Route, ...]
    loss: syntax.Expr
    generator: Generator
    promises: tuple[Promise, ...]


def lower(model: Model) -> StatisticSystem:
    """The block of a spec, ready to be simulated.

    Raises: SpecError PS05xx with the first construct that cannot be computed.
    """
    block = block_of(model)
    assert isinstance(model.loss, syntax.Over)
    try:
        loss = _opened(model, block.output, model.loss.body)
    except Failure as failure:
        label = Label(failure.span, failure.label)
        raise SpecError(
            Diagnostic(failure.code, failure.message, (label,), help=failure.help, source=model.source)
        ) from failure
    radius = None if block.radius is None else float(block.radius)
    generator = generator_of(model, block.source, block.count, block.dimension, radius)
    assert generator is not None
    promises = tuple(_promise(r, i, block.parties) for i, r in enumerate(model.requirements))
    return StatisticSystem(model, block, block.offered(), loss, generator, promises)


def _promise(requirement: Requirement, index: int, parties: int) -> Promise:
    measure = requirement.measure
    one = isinstance(requirement.neighbours, ReplacingRecord) and not measure.local
    each = measure.each if isinstance(measure, Personalised) else (measure,) * parties
    return Promise(index, requirement, Unit.RECORD if one else Unit.PARTY, each)


def _opened(model: Model, output: str, expr: Any) -> Any:
    """The loss with what is computed from the output written out, so that the rest stands still on one crowd.

    Raises: Failure PS0502 for a value of each party that depends on the output.
    """
    if isinstance(expr, syntax.Name) and expr.id != output and expr.id in model.nodes:
        node = model.nodes[expr.id]
        if node.definition is None or output not in needed(model, expr.id):
            return expr
        if node.index is not None:
            raise Failure(
                "PS0502",
                expr.span,
                f"solve cannot predict a loss with a {node.name} of each {node.index} that depends on {output}",
            )
        return _opened(model, output, node.definition)
    return with_children(expr, lambda child: _opened(model, output, child))


# --- ways ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Way:
    """One candidate.

    `each_party`: every party adds noise to its own statistic, else noise enters once, at the sum over the parties.
    `finish_first`: each party's noisy statistic is finished and the results are pooled; else statistics are pooled and
    finished once. `noise`: calibrated to the sum, or to each party in turn (of length 1 when all ask for the same).
    """

    route: Route
    each_party: bool
    finish_first: bool
    noise: tuple[Calibrated, ...]
    name: str
    at: str
    family: str

    @property
    def executable(self) -> bool:
        """Whether every draw has an exact sampler."""
        return all(noise.executable for noise in self.noise)


def ways(system: StatisticSystem) -> Iterator[Way]:
    """All of them, also those that an option of the spec rules out (see `forbidden`)."""
    for route in system.routes:
        for each_party in (False, True):
            for shape in SHAPES:
                noise = _calibrated(system, route, each_party, shape)
                if noise is None:
                    continue
                for finish_first in (False, True) if each_party and not route.linear else (False,):
                    name = _name(system, route, each_party, finish_first, shape)
                    at = site_name(system, route, each_party)
                    yield Way(route, each_party, finish_first, noise, name, at, shape.family)


def forbidden(system: StatisticSystem, way: Way) -> str:
    """Why the spec does not allow a candidate; empty if it does."""
    sites, families = system.block.sites, system.block.families
    if system.model.trust.alone and not way.each_party:
        return "nobody is trusted with the pooled statistic"
    if sites is not None and way.at not in sites:
        return f"the spec asks for noise at {', '.join(sites)}"
    if families is not None and way.family not in families:
        return f"the spec asks for noise of family {', '.join(families)}"
    if not way.executable:
        return "there is no exact sampler for it yet, so it is simulated only"
    return ""


def site_name(system: StatisticSystem, route: Route, each_party: bool) -> str:
    """How `noise at` names the place: `beta`, `society`, `objective(beta)`, `records(society)`."""
    node = system.block.each if each_party else system.block.pool
    return node if route.at == "result" else f"{route.at}({node})"


def _name(system: StatisticSystem, route: Route, each_party: bool, finish_first: bool, shape: Shape) -> str:
    where = f"at each {system.block.party or 'party'}" if each_party else "at the pool"
    order = ", solved one by one" if finish_first else ""
    return f"{shape.name} noise on the {route.name} {where}{order}"


# --- calibration ----------------------------------------------------------------------------------


def _calibrated(system: StatisticSystem, route: Route, each_party: bool, shape: Shape) -> tuple[Calibrated, ...] | None:
    """Noise that meets every requirement: for all parties alike, or for each where they ask for different amounts."""
    people = range(system.block.parties) if each_party and any(p.personal for p in system.promises) else range(1)
    found = []
    for person in people:
        noise = _for_all(system, route, each_party, shape, person)
        if noise is None:
            return None
        found.append(noise)
    return tuple(found)


def _for_all(system: StatisticSystem, route: Route, each_party: bool, shape: Shape, person: int) -> Calibrated | None:
    """The largest of the noises that the requirements ask for."""
    candidates = []
    for promise in system.promises:
        site = Site(route.size, route.spread(promise.unit), route.bound(), GRID, each_party)
        noise = shape.calibrate(site, _measure(promise, person, each_party))
        if noise is None:
            return None
        candidates.append(noise)
    return max(candidates, key=lambda noise: noise.variance, default=None)


def _measure(promise: Promise, person: int, each_party: bool) -> Measure:
    """A party's own measure; that of the strictest party where one noise protects all."""
    if each_party:
        return promise.measures[person]
    return min(promise.measures, key=lambda m: tuple(m.amounts.values()))
