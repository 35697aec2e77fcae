"""The law of the rows from the data models of a spec, exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import chain, product
from math import comb, prod
from typing import Any, TypeAlias

import numpy as np

from privspec.certify.finite.ratios import Entries
from privspec.certify.finite.worlds import Facet, Rows, part_of, plain
from privspec.certify.motion import NotUnderstood
from privspec.certify.reading import Malformed
from privspec.language import syntax
from privspec.model.evaluate import evaluate
from privspec.model.graph import Model
from privspec.model.priors import falling, poisson
from privspec.model.requirements import DataModel
from privspec.model.targets import environment

LISTED = 2**18
"""Most joint values of one law."""
Weights: TypeAlias = list[Fraction]
Rule: TypeAlias = Callable[[Sequence[Any], Sequence[Any]], Weights | None]
"""Weights of listed values (flat tuples, or single values) from the arguments; None if the law is not about these."""


def row_law(model: Model, rows: Rows) -> tuple[Fraction, ...] | None:
    """Probabilities of the rows; None where a value that rows depend on has no data model.

    Raises: NotUnderstood, Malformed for laws that give nothing.
    """
    known = {name: m for m in model.models for name in m.subjects}
    facets = {facet.part.name: facet for facet in rows.worlds.facets}
    own = [name for name in rows.of if name in known and name not in facets]
    if own:
        if len(rows.of) > 1:
            raise NotUnderstood("a law of one of several computed values")
        return tuple(_law(model, known[own[0]], [plain(v) for v in rows.values[own[0]]]))
    if any(name not in known for name in facets):
        return None
    sizes = [facet.size for facet in rows.worlds.facets]
    masses: Entries = np.array([Fraction(1)] * rows.worlds.size, dtype=object).reshape(sizes)
    for data in model.models:
        if any(name in facets for name in data.subjects):
            masses = masses * _over(rows.worlds.facets, data.subjects, _data_law(model, data, facets))
    total = [Fraction(0)] * rows.size
    for row, mass in zip(rows.row_of.tolist(), masses.ravel().tolist(), strict=True):
        total[row] += mass
    return tuple(total)


def _over(facets: Sequence[Facet], subjects: Sequence[str], law: Entries) -> Entries:
    """A law with an axis for each of its subjects among the facets, as an array with an axis for every facet."""
    names = [facet.part.name for facet in facets]
    places = [names.index(name) for name in subjects if name in names]
    extents = [facet.size if i in places else 1 for i, facet in enumerate(facets)]
    return law.transpose(np.argsort(places)).reshape(extents)


def _data_law(model: Model, data: DataModel, facets: Mapping[str, Facet]) -> Entries:
    """The law of the subjects that rows depend on, an axis for each; the others are summed over."""
    if not data.joint:
        return np.array(_facet_law(model, data, facets[data.subject]), dtype=object)
    every = [facets.get(name) or Facet(part_of(model, model.nodes[name])) for name in data.joint]
    sizes = [facet.size for facet in every]
    if any(facet.counted for facet in every) or prod(sizes) > LISTED:
        raise NotUnderstood("a joint law of so many values, or of inputs that are held as counts")
    values = [tuple(chain.from_iterable(flats)) for flats in product(*(facet.flat for facet in every))]
    law: Entries = np.array(_law(model, data, values), dtype=object).reshape(sizes)
    summed: Entries = np.asarray(law.sum(axis=tuple(i for i, n in enumerate(data.joint) if n not in facets)))
    return summed


def _facet_law(model: Model, data: DataModel, facet: Facet) -> Weights:
    """The law of the values of an input as they are laid out."""
    if facet.counted is not None:
        each = _law(model, data, _unboxed(facet.part.record_items, facet.part.extents[1:]))
        ways = zip(facet.counted.ways(), facet.counted.counts, strict=True)
        return [w * prod((p**c for p, c in zip(each, counts, strict=True)), start=Fraction(1)) for w, counts in ways]
    whole = _weights(model, data, _unboxed(facet.flat, facet.part.extents))
    if whole is not None:
        return _normalised(data, whole)
    if not facet.part.extents:
        raise NotUnderstood(f"the law {data.distribution} of {data.subject}")
    # not about whole values: then about single ones, independently
    each = _law(model, data, list(facet.part.items))
    mass = dict(zip(facet.part.items, each, strict=True))
    return [prod((mass[item] for item in flat), start=Fraction(1)) for flat in facet.flat]


def _unboxed(flats: Sequence[tuple[Any, ...]], extents: Sequence[int]) -> list[Any]:
    """Vectors as flat tuples, single values as they are."""
    return list(flats) if extents else [flat[0] for flat in flats]


def _law(model: Model, data: DataModel, values: Sequence[Any]) -> Weights:
    found = _weights(model, data, values)
    if found is None:
        raise NotUnderstood(f"the law {data.distribution} of {data.subject}")
    return _normalised(data, found)


def _normalised(data: DataModel, weights: Weights) -> Weights:
    total = sum(weights, Fraction(0))
    if total <= 0 or min(weights) < 0:
        raise Malformed(f"the law of {data.subject} gives its values no probability")
    return [w / total for w in weights]


def _weights(model: Model, data: DataModel, values: Sequence[Any]) -> Weights | None:
    rule = RULES.get(data.distribution)
    special = (syntax.Keyword, syntax.Member, syntax.Comprehension, syntax.RangeOf)
    if rule is None or any(isinstance(a, special) for a in data.arguments):
        return None
    public = environment(model)
    return rule(values, [evaluate(a, public) for a in data.arguments if not isinstance(a, special)])


def _exact(value: Any) -> list[Any]:
    """Entries of a public value in order; doubles stand for themselves."""
    entries = (
        value.ravel().tolist() if isinstance(value, np.ndarray) else value if isinstance(value, tuple) else [value]
    )
    return [entry if isinstance(entry, Fraction | str) else Fraction(entry) for entry in entries]


def _numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(v, Fraction) for v in values)


def _uniform(values: Sequence[Any], arguments: Sequence[Any]) -> Weights | None:
    if not arguments:
        return [Fraction(1)] * len(values)
    low, high = arguments
    return [Fraction(int(low <= v <= high)) for v in values] if _numbers(values) else None


def _categorical(values: Sequence[Any], arguments: Sequence[Any]) -> Weights | None:
    weights = _exact(arguments[0])
    return weights if len(weights) == len(values) and _numbers(weights) else None


def _empirical(values: Sequence[Any], arguments: Sequence[Any]) -> Weights | None:
    """Shares among observations: the entries of a vector, or the rows of a matrix."""
    width = len(values[0]) if isinstance(values[0], tuple) else 1
    entries = _exact(arguments[0])
    if len(entries) % width:
        return None
    rows = [tuple(entries[i : i + width]) for i in range(0, len(entries), width)]
    counts = Counter(rows if isinstance(values[0], tuple) else [row[0] for row in rows])
    return [Fraction(counts[v]) for v in values] if set(counts) <= set(values) else None


def _binomial(values: Sequence[Any], arguments: Sequence[Any]) -> Weights | None:
    n, p = arguments
    if not _numbers(values) or n.denominator != 1 or not 0 <= n <= 2**20 or not 0 <= p <= 1:
        return None
    inside = [v.denominator == 1 and 0 <= v <= n for v in values]
    return [
        comb(int(n), int(v)) * p ** int(v) * (1 - p) ** int(n - v) if good else Fraction(0)
        for v, good in zip(values, inside, strict=True)
    ]


def _bernoulli(values: Sequence[Any], arguments: Sequence[Any]) -> Weights | None:
    return _binomial(values, [Fraction(1), *arguments])


def _geometric(values: Sequence[Any], arguments: Sequence[Any]) -> Weights | None:
    """Proportional to (1 - p)^k on the whole numbers of the domain."""
    (p,) = arguments
    if not _numbers(values) or not 0 < p < 1 or any(v.denominator != 1 or abs(v) > 2**16 for v in values):
        return None
    return [(1 - p) ** int(v) for v in values]


def _gaps(value: Any, mean: Any) -> list[Fraction] | None:
    """Differences from the mean, entry by entry; a vector needs a mean of its own length."""
    entries = list(value) if isinstance(value, tuple) else [value]
    means = _exact(mean)
    if isinstance(value, tuple) is not isinstance(mean, np.ndarray) or len(means) != len(entries):
        return None
    return [a - b for a, b in zip(entries, means, strict=True)] if _numbers([*entries, *means]) else None


def _falling(values: Sequence[Any], mean: Any, exponent: Callable[[list[Fraction]], Fraction]) -> Weights | None:
    gaps = [_gaps(value, mean) for value in values]
    return falling([exponent(own) for own in gaps if own is not None]) if None not in gaps else None


def _normal(values: Sequence[Any], arguments: Sequence[Any]) -> Weights | None:
    mean, deviation = arguments
    return _falling(values, mean, lambda gaps: sum((g * g for g in gaps), Fraction(0)) / (2 * deviation * deviation))


def _laplace(values: Sequence[Any], arguments: Sequence[Any]) -> Weights | None:
    mean, scale = arguments
    return _falling(values, mean, lambda gaps: sum(map(abs, gaps), Fraction(0)) / scale)


def _exponential(values: Sequence[Any], arguments: Sequence[Any]) -> Weights | None:
    (rate,) = arguments
    return falling([rate * v if v >= 0 else None for v in values]) if _numbers(values) else None


def _poisson(values: Sequence[Any], arguments: Sequence[Any]) -> Weights | None:
    (mean,) = arguments
    if not _numbers(values) or max(values) > 2**16:
        return None
    return poisson(mean, [int(v) if v >= 0 and v.denominator == 1 else None for v in values])


RULES: Mapping[str, Rule] = {
    "uniform": _uniform,
    "categorical": _categorical,
    "empirical": _empirical,
    "binomial": _binomial,
    "bernoulli": _bernoulli,
    "geometric": _geometric,
    "normal": _normal,
    "laplace": _laplace,
    "exponential": _exponential,
    "poisson": _poisson,
}
"""The laws that are exact on finite domains: rational, or with the weights that `model.weights` defines."""
