"""Every way to make the release private: a route, where its noise enters, when it is finished, the noise's shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from privspec.compile.statistics.system import Promise, StatisticSystem
from privspec.mechanisms.shapes.register import SHAPES
from privspec.mechanisms.shapes.shape import Calibrated, Shape, Site
from privspec.model.measures import Measure
from privspec.model.routes import GRID, Route
from privspec.model.trust import Nobody


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
    model = system.model
    if isinstance(model.trust, Nobody) and not way.each_party:
        return "nobody is trusted with the pooled statistic"
    if model.noise_at is not None and way.at not in model.noise_at:
        return f"the spec asks for noise at {', '.join(model.noise_at)}"
    if model.families and way.family not in model.families:
        return f"the spec asks for noise of family {', '.join(model.families)}"
    if not way.executable:
        return "there is no exact sampler for it yet, so it is simulated only"
    return ""


def site_name(system: StatisticSystem, route: Route, each_party: bool) -> str:
    """How `noise at` names the place: `beta`, `society`, `objective(beta)`, `records(society)`."""
    node = system.each if each_party else system.pool
    return node if route.at == "result" else f"{route.at}({node})"


def _name(system: StatisticSystem, route: Route, each_party: bool, finish_first: bool, shape: Shape) -> str:
    where = f"at each {system.party or 'party'}" if each_party else "at the pool"
    order = ", solved one by one" if finish_first else ""
    return f"{shape.name} noise on the {route.name} {where}{order}"


# --- calibration ----------------------------------------------------------------------------------


def _calibrated(system: StatisticSystem, route: Route, each_party: bool, shape: Shape) -> tuple[Calibrated, ...] | None:
    """Noise that meets every requirement: for all parties alike, or for each where they ask for different amounts."""
    people = range(system.parties) if each_party and any(p.personal for p in system.promises) else range(1)
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
