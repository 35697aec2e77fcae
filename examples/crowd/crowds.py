"""Specs of crowd-guided decisions as candidates, simulated on the same crowds: accuracies with standard errors."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import privspec
from privspec.families.statistics.family import Statistics
from privspec.families.statistics.predict import Judge, StatisticSystem, Way, released, ways
from privspec.model.priors import Drawn, clipped

Array: TypeAlias = NDArray[np.float64]
HERE = Path(__file__).resolve().parent
SPECS = HERE.parents[1] / "specs"
PERSONAL = HERE / "personalised.priv"


@dataclass(frozen=True, eq=False, slots=True)
class Candidate:
    """One way to release the weights of a society.

    `equal`: weights that do not look at each voter's noise; `epsilon`: as the spec states it.
    """

    system: StatisticSystem
    way: Way
    epsilon: float
    equal: bool = False

    def release(self, statistics: Array, random: np.random.Generator) -> Array:
        """Simulated weights for statistics (N, k) of all voters."""
        if not self.equal:
            return released(self.system, self.way, statistics, random)
        noise = self.way.noise * (len(statistics) // len(self.way.noise))
        noisy = np.concatenate([one.noisy(s[None, :], random) for one, s in zip(noise, statistics, strict=True)])
        return self.way.route.finish(noisy.mean(axis=0))


@dataclass(frozen=True, slots=True)
class Measured:
    """A mean over simulated crowds, with its standard error."""

    mean: float
    error: float

    def over(self, base: Measured) -> Measured:
        """As a share of another one."""
        return Measured(self.mean / base.mean, self.error / base.mean)

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.error:.3f}"


def system_of(path: Path, **parameters: Any) -> StatisticSystem:
    """A spec with other parameters, as the compiler reads it."""
    return Statistics().lower(privspec.load(path, **parameters).check())


def algorithm(number: int, epsilon: float, **parameters: Any) -> Candidate:
    """Algorithm 1, 2 or 3 of Wang et al. 2019, with noise as large as its guarantee needs."""
    system = system_of(SPECS / f"wang_algorithm_{number}.priv", epsilon=str(epsilon), **parameters)
    at = {1: "society", 2: "beta", 3: "objective(beta)"}[number]
    way = find(system, at, "laplace", finish_first=number == 3)
    return Candidate(system, way, epsilon)


def found(paradigm: str, at: str, family: str, epsilon: float, shape: str = "", **parameters: Any) -> Candidate:
    """A way of one of the four paradigms: "vlcp", "rlcp", "vldp", "rldp"."""
    system = system_of(SPECS / f"crowd_{paradigm}.priv", epsilon=str(epsilon), **parameters)
    return Candidate(system, find(system, at, family, shape), epsilon)


def find(system: StatisticSystem, at: str, family: str, shape: str = "", finish_first: bool = False) -> Way:
    """The way with noise of that family at that place."""
    for way in ways(system):
        if (way.at, way.family, way.finish_first) == (at, family, finish_first) and shape in way.noise[0].shape:
            return way
    raise LookupError(f"no {family} noise at {at}")


def personal(epsilons: Sequence[float], **parameters: Any) -> StatisticSystem:
    """The spec in which every voter has a budget."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / PERSONAL.name).write_text(PERSONAL.read_text("utf-8"), "utf-8")
        (place / "epsilons.csv").write_text("".join(f"{e}\n" for e in epsilons), "utf-8")
        return system_of(place / PERSONAL.name, N=len(epsilons), **parameters)


Source: TypeAlias = Callable[[np.random.Generator], tuple[Drawn, Callable[[Array], float]]]
"""Draws a crowd, its records not clipped, and how good released weights are for it."""


def synthetic(system: StatisticSystem) -> Source:
    """Crowds of the data model of the spec; good is the share of decisions on which both weights agree."""
    raw = replace(system.generator, radius=None)  # type: ignore[type-var]

    def draw(random: np.random.Generator) -> tuple[Drawn, Callable[[Array], float]]:
        crowd = raw.draw(system.block.parties, random)
        judge = Judge(system, crowd)
        return crowd, lambda weights: 1.0 - judge.loss(weights)

    return draw


def accuracies(
    candidates: Mapping[str, Candidate],
    source: Source,
    crowds: int,
    seed: int = 1,
    tick: Callable[[int], None] | None = None,
) -> dict[str, Measured]:
    """All candidates on the same crowds; statistics of a crowd are computed once for all that share them."""
    random = np.random.default_rng(seed)
    scores: dict[str, list[float]] = {name: [] for name in candidates}
    for done in range(crowds):
        crowd, good = source(random)
        known: dict[Any, Array] = {}
        for name, one in candidates.items():
            value = one.release(_statistics(one, crowd.records, known), random)
            scores[name].append(good(value))
        if tick is not None:
            tick(done + 1)
    return {name: _measured(values) for name, values in scores.items()}


def without_noise(system: StatisticSystem, source: Source, crowds: int, seed: int = 1) -> Measured:
    """The mean of all voters' weights as it is (Noothigattu et al. 2018)."""
    random = np.random.default_rng(seed)
    result = next(route for route in system.routes if route.at == "result")
    scores = []
    for _ in range(crowds):
        crowd, good = source(random)
        scores.append(good(result.statistic(crowd.records).mean(axis=0)))
    return _measured(scores)


def _statistics(one: Candidate, records: Array, known: dict[Any, Array]) -> Array:
    radius = None if one.system.block.radius is None else float(one.system.block.radius)
    key = (one.way.route, radius)
    if key not in known:
        known[key] = one.way.route.statistic(clipped(records, radius))
    return known[key]


def _measured(values: Iterable[float]) -> Measured:
    scores = np.array(list(values))
    error = float(scores.std(ddof=1)) / len(scores) ** 0.5 if len(scores) > 1 else float("nan")
    return Measured(float(scores.mean()), error)
