"""Predicted losses of all candidates under the data model: the same simulated crowds for all, until order is clear."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import sqrt
from typing import Any

import numpy as np

from privspec.compile.statistics.candidates import Way
from privspec.compile.statistics.system import StatisticSystem
from privspec.language import syntax
from privspec.model.evaluate import Environment, evaluate
from privspec.model.generators import Drawn
from privspec.model.routes import Route
from privspec.model.targets import environment
from privspec.model.values import Array, Value
from privspec.model.walk import names_used

ROUND = 25
"""Crowds that are drawn before the order is looked at again."""
MOST_CROWDS = 400
CLEAR = 3.0
"""Standard errors between the two best candidates that end the simulation."""
FINE = 2e-3
"""Standard error of the best loss that ends it."""
SEED = 20190406
"""Of the simulation, so that a plan can be made again."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """The mean loss of a candidate over simulated crowds, with its standard error."""

    way: Way
    loss: float
    standard_error: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """All candidates, best first; `crowds` drawn; `exact` the loss of the value without noise."""

    ranking: tuple[Predicted, ...]
    crowds: int
    exact: float


def predict(
    system: StatisticSystem,
    candidates: Sequence[Way],
    progress: Callable[[int, float, float], None] | None = None,
    most: int = MOST_CROWDS,
) -> Prediction:
    """Simulate every candidate on the same crowds.

    Returns: means and standard errors; stops when the best two differ clearly, or both are known finely.
    """
    losses: list[list[float]] = [[] for _ in range(len(candidates) + 1)]
    random = np.random.default_rng(SEED)
    while len(losses[-1]) < most:
        for _ in range(min(ROUND, most - len(losses[-1]))):
            for each, loss in zip(losses, _one_crowd(system, candidates, random), strict=True):
                each.append(loss)
        if not candidates:
            continue
        values = np.array(losses[:-1])
        order = np.argsort(values.mean(axis=1))
        best = values[order[0]]
        error = float(best.std(ddof=1)) / sqrt(len(best))
        if progress is not None:
            progress(len(best), float(best.mean()), float(best.mean()) - error)
        if _settled(values, order, error):
            break
    table = np.array(losses)
    errors = table.std(axis=1, ddof=1) / sqrt(table.shape[1])
    found = [Predicted(w, float(m), float(e)) for w, m, e in zip(candidates, table.mean(axis=1), errors, strict=False)]
    found.sort(key=lambda p: p.loss)
    return Prediction(tuple(found), table.shape[1], float(table[-1].mean()))


def _settled(values: Array, order: Array, error: float) -> bool:
    if error <= FINE or len(order) == 1:
        return error <= FINE
    difference = values[order[1]] - values[order[0]]
    between = float(difference.std(ddof=1)) / sqrt(len(difference))
    return float(difference.mean()) > CLEAR * between and error <= 5 * FINE


def _one_crowd(system: StatisticSystem, candidates: Sequence[Way], random: np.random.Generator) -> list[float]:
    """The loss of each candidate on one crowd, and of the value without noise last."""
    crowd = system.generator.draw(system.parties, random)
    judge = Judge(system, crowd)
    statistics: dict[str, Array] = {}
    for route in {w.route.name: w.route for w in candidates}.values():
        statistics[route.name] = route.statistic(crowd.records)
    losses = []
    for way in candidates:
        noise = np.random.default_rng(random.integers(2**63))
        losses.append(judge.loss(released(system, way, statistics[way.route.name], noise)))
    result = next((r for r in system.routes if r.at == "result"), None)
    if result is None:
        return [*losses, float("nan")]
    exact = statistics[result.name] if result.name in statistics else result.statistic(crowd.records)
    return [*losses, judge.loss(_pooled(system, exact, None))]


def released(system: StatisticSystem, way: Way, statistics: Array, random: np.random.Generator) -> Array:
    """What a candidate releases for statistics (N, k), in doubles: simulation only."""
    if not way.each_party:
        total = way.noise[0].noisy(statistics.sum(axis=0)[None, :], random)[0]
        return way.route.finish(total * float(system.share))
    noisy = _noisy_each(way, statistics, random)
    weights = weights_of(way, len(statistics))
    if way.finish_first:
        noisy = way.route.finish(noisy)
        return _pooled(system, noisy, weights)
    return way.route.finish(_pooled(system, noisy, weights))


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
    pooled: Array = weighted.sum(axis=0) * float(system.share)
    return pooled


# --- the loss ------------------------------------------------------------------------------------


class Judge:
    """The loss of released values on one crowd; what does not depend on them is computed once."""

    def __init__(self, system: StatisticSystem, crowd: Drawn) -> None:
        known: dict[str, Value] = {system.source: crowd.records}
        known |= {f"{system.source}.{name}": values for name, values in crowd.attributes.items()}
        self._environment: Environment = environment(system.model, known)
        self._output = system.output
        self._expr = self._fixed(system.loss)

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
        changes: dict[str, Any] = {}
        for item in fields(expr):
            value = getattr(expr, item.name)
            if isinstance(value, syntax.Node):
                changes[item.name] = self._fixed(value)
            elif isinstance(value, tuple) and any(isinstance(v, syntax.Node) for v in value):
                changes[item.name] = tuple(self._fixed(v) if isinstance(v, syntax.Node) else v for v in value)
        return replace(expr, **changes)


def statistics_of(routes: Sequence[Route], records: Array) -> Mapping[str, Array]:
    """The statistics of every route, by its name."""
    return {route.name: route.statistic(records) for route in routes}
