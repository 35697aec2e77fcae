"""Every way to make the release private: a route, where its noise enters, when it is finished, the noise's shape.

And their predicted losses under the data model: the same simulated crowds for all, until the order is clear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from math import hypot, sqrt
from typing import Any

import numpy as np

from privspec.core.diagnostics import Diagnostic, Label, SpecError
from privspec.core.records import dataclass
from privspec.families.statistics.shapes import SHAPES, Calibrated, Shape, Site
from privspec.kernel.core.reading import Refused
from privspec.kernel.laws.statistics import SHAPES as LAWS
from privspec.kernel.laws.statistics import Noise
from privspec.kernel.statistics import StatisticBlock, largest_noise
from privspec.language import syntax
from privspec.language.walk import names_used, with_children
from privspec.model.evaluate import Environment, evaluate
from privspec.model.graph import Model
from privspec.model.library import GRID, Route, Unit
from privspec.model.measures import AskedMeasure
from privspec.model.neighbours import ReplacingRecord
from privspec.model.priors import Drawn, Generator, generator_of
from privspec.model.reports import Failure
from privspec.model.requirements import Requirement
from privspec.model.targets import environment, needed, value_of
from privspec.model.values import Array, Value, show
from privspec.problem.statistics import block_of, offered
from privspec.solvers.programs import OutOfTimeError, Watch


@dataclass(frozen=True, slots=True)
class Promise:
    """A requirement with what it protects: one party's records or one record; the measures of each party, or of all."""

    index: int
    requirement: Requirement
    unit: Unit
    measures: tuple[AskedMeasure, ...]

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

    @property
    def drawn(self) -> int:
        """Parties of a simulated crowd: all of them, or `SAMPLE` that stand for all of a larger one.

        They may stand for others where all are alike and the loss depends on means over the parties only.
        """
        parties = self.block.parties
        alike = self.block.mean and not any(promise.personal for promise in self.promises)
        return SAMPLE if parties > SAMPLE and alike and depends_on_means(self) else parties


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
    promises = tuple(_promise(r, i) for i, r in enumerate(model.requirements))
    return StatisticSystem(model, block, offered(block), loss, generator, promises)


def _promise(requirement: Requirement, index: int) -> Promise:
    measure = requirement.measure
    one = isinstance(requirement.neighbours, ReplacingRecord) and not measure.local
    return Promise(index, requirement, Unit.RECORD if one else Unit.PARTY, measure.by_person)


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
    if system.model.trust.public and not way.each_party:
        return "nobody is trusted with the pooled statistic"
    if sites is not None and way.at not in sites:
        return f"the spec asks for noise at {', '.join(sites)}"
    if families is not None and way.family not in families:
        return f"the spec asks for noise of family {', '.join(families)}"
    if not way.executable:
        return "there is no exact sampler for it, so it is simulated only"
    for limit in system.block.limits:
        off = error_of(system, way, limit.probability)
        if off is None:
            return f"how far it leads from {system.block.pool} is not known, and line {limit.line} bounds that"
        if off > limit.most:
            return f"it misses line {limit.line}: {float(off):.4g} > {show(limit.most)}"
    return ""


def error_of(system: StatisticSystem, way: Way, probability: Fraction) -> Fraction | None:
    """What no number is farther off than, with so much probability; None where that is not known."""
    (noise, *others), law = way.noise, LAWS.get(way.noise[0].shape)
    if others or law is None or law.norm is None or way.each_party or way.route.at != "result":
        return None
    try:
        drawn = Noise(noise.shape, noise.parameters[law.size], None)
        return system.block.share * largest_noise(drawn, way.route.size, probability)
    except Refused:
        return None


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


def _measure(promise: Promise, person: int, each_party: bool) -> AskedMeasure:
    """A party's own measure; that of the strictest party where one noise protects all."""
    if each_party:
        return promise.measures[person % len(promise.measures)]
    return min(promise.measures, key=lambda m: tuple(m.amounts.values()))


SAMPLE = 1024
"""Parties that are drawn of a larger crowd."""
TOGETHER = 2**22
"""Numbers of the records of crowds whose statistics are worked out at once."""
ROUND = 25
"""Crowds that are drawn before the order is looked at again."""
FEW = 5
"""As many, where some parties stand for all: candidates that have no chance are costly then."""
CLEAR = 3.0
"""Standard errors between the two best candidates that end the simulation."""
LOST = 6.0
"""Standard errors behind the best from which a candidate is not followed any further."""
FINE = 2e-3
"""Standard error of the best loss that ends it."""
CLOSE = 0.05
"""Share of the best loss that its standard error may be where some parties stand for all: losses may be tiny then."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """The mean loss of a candidate over simulated crowds, with its standard error."""

    way: Way
    loss: float
    standard_error: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """All candidates, best first; `crowds` drawn, of so many `parties`; `exact` the loss of the value without noise."""

    ranking: tuple[Predicted, ...]
    crowds: int
    parties: int
    exact: float


def predict(
    system: StatisticSystem,
    allowed: Sequence[Way],
    others: Sequence[Way] = (),
    progress: Callable[[int, float, float], None] | None = None,
    most: int | None = None,
    deadline: float | None = None,
) -> Prediction:
    """Simulate candidates on the same crowds; those that are clearly worse than the best are not followed further.

    Args: others, ways that the spec rules out: seen on the first crowds only, for comparison; deadline in seconds.
    Returns: means and standard errors; stops when the best two allowed differ clearly, or the best is known finely:
    by what was simulated, and never by the clock.
    Raises: OutOfTimeError at the deadline: fewer crowds might have another winner.
    """
    random = np.random.default_rng(system.block.loss.seed)
    most = system.block.loss.crowds if most is None else most
    candidates = [*allowed, *others]
    tally = _Tally(system, candidates, len(allowed))
    watch = Watch(deadline)
    while tally.crowds < most:
        wanted = min(tally.crowds + (ROUND if tally.whole else FEW), most)
        while tally.crowds < wanted:
            if watch.expired:
                raise OutOfTimeError(None)
            tally.add(random, wanted - tally.crowds)
        if not allowed:
            continue
        best = tally.best
        if progress is not None:
            mean, error = tally.mean(best), tally.error(best)
            progress(tally.crowds, mean, mean - error)
        if tally.crowds >= min(ROUND, most) and tally.settled():
            break
        tally.drop()
    ranking = [Predicted(candidates[i], tally.mean(i), tally.whole_error(i)) for i in tally.order]
    return Prediction(tuple(ranking), tally.crowds, tally.drawn, float(np.mean(tally.exact)))


RECORDS = ""
"""What stands for the records among the names of attributes."""


class _Seen:
    """Crowds of as many parties each, with statistics that are worked out when they are asked for."""

    def __init__(self, crowds: Sequence[Drawn]) -> None:
        self.attributes = tuple(crowds[0].attributes)
        self._values: dict[Route | str, Array] = {
            n: np.stack([c.attributes[n] for c in crowds]) for n in self.attributes
        }
        self._values[RECORDS] = np.stack([crowd.records for crowd in crowds])

    def values(self, what: Route | str) -> Array:
        """A route's statistics, an attribute or the records (C, N, ...)."""
        if not isinstance(what, str) and what not in self._values:
            records, base = self._values[RECORDS], what.based_on
            flat = records.reshape(-1, *records.shape[2:])
            found = what.statistic(flat) if base is None else what.derived(self.values(base).reshape(len(flat), -1))
            self._values[what] = found.reshape(*records.shape[:2], -1)
        return self._values[what]


@dataclass(frozen=True, eq=False, slots=True)
class _View:
    """The first parties of crowds, of whom all `drawn` stand for so many `times` as many.

    The mean over parties and their mirror images (None: all parties are there) has the expectation of that over all
    parties, without what stands across the axis by chance. What does is as large as for all parties if it is that of
    those who were drawn over the root of `times`: the same for any view, so that two of them differ in the mean only.
    """

    seen: _Seen
    images: _Seen | None
    parties: int
    drawn: int
    times: float

    def _across(self, what: Route | str, parties: int) -> Array:
        """Half of what lies between the mean of the first parties and that of their images (C, 1, ...)."""
        assert self.images is not None
        mean, image = (one.values(what)[:, :parties].mean(axis=1, keepdims=True) for one in (self.seen, self.images))
        return np.asarray((mean - image) / 2)

    def moved(self, what: Route | str) -> Array:
        """How far the mean of all parties is from that of the first ones, of each crowd (C, 1, ...)."""
        if self.images is None:
            return np.zeros(1)
        return np.asarray(self._across(what, self.drawn) / sqrt(self.times) - self._across(what, self.parties))

    def of(self, what: Route | str) -> Array:
        """Values (C, parties, ...) of the first parties, moved so that their mean is that of all."""
        return np.asarray(self.seen.values(what)[:, : self.parties] + self.moved(what))

    def judges(self, system: StatisticSystem) -> list[Judge]:
        """One for each crowd."""
        attributes = {name: self.of(name) for name in self.seen.attributes}
        result = next((r for r in system.routes if r.at == "result"), None)
        exactly = None if result is None else cache(partial(self.of, result))
        return [
            Judge(
                system,
                Drawn(records, {name: values[i] for name, values in attributes.items()}),
                None if exactly is None else partial(_one_of, exactly, i),
            )
            for i, records in enumerate(self.of(RECORDS))
        ]


def _one_of(values: Callable[[], Array], i: int) -> Array:
    return np.asarray(values()[i])


class _Tally:
    """Losses of the candidates on the crowds so far; a candidate that was dropped keeps those that it has."""

    def __init__(self, system: StatisticSystem, candidates: Sequence[Way], allowed: int) -> None:
        self.system, self.candidates, self.allowed = system, candidates, allowed
        self.drawn = system.drawn
        self.losses: list[list[float]] = [[] for _ in candidates]
        self.rises: list[list[float]] = [[] for _ in candidates]
        """By how much the losses are larger where half as many parties stand for all."""
        self.exact: list[float] = []
        self.crowds = 0
        self.followed = set(range(len(candidates)))

    @property
    def whole(self) -> bool:
        """Whether all parties of a crowd are drawn."""
        return self.drawn == self.system.block.parties

    def mean(self, i: int) -> float:
        """Mean loss of a candidate."""
        return float(np.mean(self.losses[i]))

    def error(self, i: int) -> float:
        """Its standard error."""
        return float(np.std(self.losses[i], ddof=1)) / sqrt(len(self.losses[i]))

    def _parts(self, i: int) -> tuple[float, float]:
        """Of what a loss may be off: what more crowds make smaller, and what they do not.

        What is missing counts in full: losses of m parties are off by c m^-1/2 at most, so that from half of them to
        all that were drawn a loss falls by (sqrt 2 - 1) times what it is still off.
        """
        rises = np.array(self.rises[i]) / (sqrt(2) - 1)
        return float(rises.std(ddof=1)) / sqrt(len(rises)), abs(float(rises.mean()))

    def whole_error(self, i: int) -> float:
        """The standard error of the loss of all parties, of whom fewer may have been drawn."""
        return self.error(i) if self.whole else hypot(self.error(i), sum(self._parts(i)))

    def known(self, i: int) -> bool:
        """Whether the loss of all parties is known closely, or more crowds would not make it so."""
        chance, missing = self._parts(i)
        still = 3 * hypot(self.error(i), chance)
        return self.whole_error(i) <= CLOSE * self.mean(i) or still <= max(missing, CLOSE * self.mean(i))

    @property
    def order(self) -> list[int]:
        """Candidates, best first."""
        return sorted(range(len(self.candidates)), key=self.mean)

    @property
    def contest(self) -> list[int]:
        """Allowed candidates, best first."""
        return [i for i in self.order if i < self.allowed]

    @property
    def best(self) -> int:
        """The best allowed candidate."""
        return self.contest[0]

    def add(self, random: np.random.Generator, most: int) -> None:
        """Some more crowds, the same for all that are followed, and `most` of them at most."""
        drawn = list[tuple[Drawn, Any]]()
        while len(drawn) < most and (not drawn or (len(drawn) + 1) * drawn[0][0].records.size <= TOGETHER):
            crowd = self.system.generator.draw(self.drawn, random)
            drawn.append((crowd, random.integers(2**63, size=len(self.candidates))))
        crowds = [crowd for crowd, _ in drawn]
        images = None if self.whole else _Seen([crowd.mirrored() for crowd in crowds])
        sizes = (self.drawn,) if self.whole else (self.drawn, self.drawn // 2)
        seen, times = _Seen(crowds), self.system.block.parties / self.drawn
        views = [_View(seen, images, size, self.drawn, times) for size in sizes]
        judges = [view.judges(self.system) for view in views]
        for i in sorted(self.followed):
            found = self._losses(self.candidates[i], views, judges, [seeds[i] for _, seeds in drawn])
            self.losses[i] += found[0].tolist()
            if not self.whole:
                self.rises[i] += (found[1] - found[0]).tolist()
        self.crowds += len(drawn)
        if self.whole or self.crowds <= ROUND:  # estimates of many voters take long, and no choice depends on these
            self.exact += [judge.bare(self.system) for judge in judges[0]]

    def _losses(
        self, way: Way, views: Sequence[_View], judges: Sequence[Sequence[Judge]], seeds: Sequence[int]
    ) -> list[Array]:
        """Of every crowd in each view; they share the noise of the first, so that they differ by the data only."""
        system, first = self.system, views[0]
        draws = [np.random.default_rng(seed) for seed in seeds]
        statistics = first.seen.values(way.route)
        moved = np.broadcast_to(first.moved(way.route), (len(draws), 1, way.route.size))[:, 0]
        noisy = np.stack([_noisy(system, way, *one) for one in zip(statistics, moved, draws, strict=True)])
        found = []
        for view, judge in zip(views, judges, strict=True):
            part = noisy[:, : view.parties] if way.finish_first else noisy
            if view is not first and not way.finish_first:
                off = [
                    _pooled(system, a, None) - _pooled(system, b, None)
                    for a, b in zip(view.of(way.route), first.of(way.route), strict=True)
                ]
                part = noisy + np.stack(off)
            values = _finished(system, way, part)
            found.append(np.array([one.loss(value) for one, value in zip(judge, values, strict=True)]))
        return found

    def _behind(self, i: int) -> float:
        """How many standard errors a candidate is behind the best, on the crowds that both were simulated on."""
        best = self.best
        shared = min(len(self.losses[i]), len(self.losses[best]))
        difference = np.array(self.losses[i][:shared]) - np.array(self.losses[best][:shared])
        spread = float(difference.std(ddof=1)) / sqrt(shared)
        return float(difference.mean()) / spread if spread > 0 else float("inf")

    def drop(self) -> None:
        """Follow only those that may still be the best allowed one."""
        best = self.best
        self.followed = {i for i in self.followed if i < self.allowed and (i == best or self._behind(i) < LOST)}

    def settled(self) -> bool:
        """Whether the order of the best two is clear or the best is known finely; where some stand for all, closely."""
        contest = self.contest
        if not self.whole:
            return self.known(contest[0])
        error = self.error(contest[0])
        return error <= FINE or (error <= 5 * FINE and all(self._behind(i) > CLEAR for i in contest[1:2]))


def released(system: StatisticSystem, way: Way, statistics: Array, random: np.random.Generator) -> Array:
    """What a candidate releases for statistics (N, k), in doubles: simulation only.

    Where they are of fewer parties than there are, what these add up to counts so many times more, and the sum of their
    noises as many times as the root of that: noises have mean zero, so those of all vary that much.
    """
    found: Array = _finished(system, way, _noisy(system, way, statistics, 0.0, random)[None])[0]
    return found


def _noisy(
    system: StatisticSystem, way: Way, statistics: Array, moved: Array | float, random: np.random.Generator
) -> Array:
    """What is finished: the noisy pool (k,), or noisy statistics (N, k) that are finished one by one.

    Args: moved (k,), how far the mean of all parties is from that of those whose statistics these are.
    """
    times = system.block.parties / len(statistics)
    if not way.each_party:
        total = way.noise[0].noisy((statistics + moved).sum(axis=0)[None, :] * times, random)[0]
        return np.asarray(total * float(system.block.share))
    noisy = _noisy_each(way, statistics, random)
    if way.finish_first:
        return noisy
    if times > 1:
        noisy = statistics + moved + (noisy - statistics) / sqrt(times)
    return _pooled(system, noisy, weights_of(way, len(statistics)))


def _finished(system: StatisticSystem, way: Way, noisy: Array) -> Array:
    """The values (C, d) of several crowds, from what `_noisy` gave for each."""
    values: Array = way.route.finish(noisy)
    if not way.finish_first:
        return values
    weights = weights_of(way, noisy.shape[1])
    return np.stack([_pooled(system, value, weights) for value in values])


def _noisy_each(way: Way, statistics: Array, random: np.random.Generator) -> Array:
    if len(way.noise) == 1:
        return way.noise[0].noisy(statistics, random)
    each = zip(way.noise, statistics, strict=True)
    return np.concatenate([noise.noisy(one[None, :], random) for noise, one in each])


def weights_of(way: Way, parties: int) -> Array | None:
    """Weights inverse to the variance of each party's noise; None where all are alike."""
    if len(way.noise) == 1:
        return None
    inverse = np.array([1.0 / noise.variance for noise in way.noise])
    weights: Array = inverse * parties / inverse.sum()
    return weights


def _pooled(system: StatisticSystem, values: Array, weights: Array | None) -> Array:
    weighted = values if weights is None else values * weights[:, None]
    pooled: Array = weighted.sum(axis=0) * (system.block.parties / len(values) * float(system.block.share))
    return pooled


# --- the loss ------------------------------------------------------------------------------------


def _before(model: Model, name: str) -> tuple[str, ...]:
    """The computed values behind a name, in order, itself last."""
    if name not in model.nodes:
        return ()
    return tuple(n for n in needed(model, name) if model.nodes[n].kind is syntax.VariableKind.INTERMEDIATE)


def depends_on_means(system: StatisticSystem) -> bool:
    """Whether a crowd in which each party stands twice has the loss of that crowd: found by trying, with a few."""
    random = np.random.default_rng(1)
    crowd = system.generator.draw(4, random)
    output, *values = random.standard_normal((5, crowd.records.shape[-1]))

    def loss(times: int) -> float:
        attributes = {name: np.repeat(values, times, axis=0) for name, values in crowd.attributes.items()}
        more = Drawn(np.repeat(crowd.records, times, axis=0), attributes)
        return Judge(system, more, lambda: np.repeat(values, times, axis=0)).loss(output)

    try:
        return abs(loss(1) - loss(2)) <= 1e-9 * (1 + abs(loss(1)))
    except Failure:  # it is told where the loss is simulated
        return False


class Judge:
    """The loss of released values on one crowd; what does not depend on them is computed once.

    `exact` gives the function's value for each party (N, d), which the loss may compare the release with.
    """

    def __init__(self, system: StatisticSystem, crowd: Drawn, exact: Callable[[], Array] | None = None) -> None:
        known: dict[str, Value] = {system.block.source: crowd.records}
        known |= {f"{system.block.source}.{name}": values for name, values in crowd.attributes.items()}
        found = environment(system.model, known)
        party = system.block.party
        parties = found.parties if party is None else {**found.parties, party: len(crowd.records)}
        self._environment: Environment = replace(found, parties=parties)
        self._output, self._exact = system.block.output, exact
        self._compute(system, exact)
        self._expr = self._fixed(system.loss)

    def _compute(self, system: StatisticSystem, exact: Callable[[], Array] | None) -> None:
        """Give the loss the computed values that it names, in the order of the graph."""
        used = [name for name in names_used(system.loss) if name != system.block.output]
        for name in dict.fromkeys(before for one in used for before in _before(system.model, one)):
            node = system.model.nodes[name]
            value: Value | None = None
            if exact is not None and name in (system.block.each, system.block.pool):
                each = exact()
                value = _pooled(system, each, None) if name == system.block.pool else each
            elif node.definition is not None:
                value = value_of(node, node.definition, self._environment)
            if value is not None:
                self._environment = self._environment.bind(name, value)

    def bare(self, system: StatisticSystem) -> float:
        """The loss of the value without noise; no number where the function itself is not to be had."""
        return float("nan") if self._exact is None else self.loss(_pooled(system, self._exact(), None))

    def loss(self, released: Array) -> float:
        """The loss of one release."""
        return float(evaluate(self._expr, self._environment.bind(self._output, released)))  # type: ignore[arg-type]

    def _fixed(self, expr: Any) -> Any:
        """With every largest part that does not use the output replaced by a name for its value."""
        if isinstance(expr, syntax.Node) and self._output not in names_used(expr):
            if isinstance(expr, syntax.Number | syntax.Keyword | syntax.Comprehension):
                return expr
            name = f"part {len(self._environment.values)}"
            self._environment = self._environment.bind(name, evaluate(expr, self._environment))  # type: ignore[arg-type]
            return syntax.Name(name, span=expr.span)
        return with_children(expr, self._fixed)
