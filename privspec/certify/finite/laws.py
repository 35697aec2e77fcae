"""The law of the rows from the data models of a spec, exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import comb, prod
from typing import Any, TypeAlias

import numpy as np

from privspec.certify.finite.worlds import Facet, Rows, plain
from privspec.certify.motion import NotUnderstood
from privspec.certify.reading import Malformed
from privspec.language import syntax
from privspec.model.evaluate import evaluate
from privspec.model.graph import Model
from privspec.model.requirements import DataModel
from privspec.model.targets import environment

Weights: TypeAlias = list[Fraction]
Rule: TypeAlias = Callable[[Sequence[Any], Sequence[Any]], Weights | None]
"""Weights of listed values (flat tuples, or single values) from the arguments; None if the law is not about these."""


def row_law(model: Model, rows: Rows) -> tuple[Fraction, ...] | None:
    """Probabilities of the rows; None where a value that rows depend on has no data model.

    Raises: NotUnderstood, Malformed for laws that give nothing.
    """
    known = {m.subject: m for m in model.models}
    inputs = {facet.part.name for facet in rows.worlds.facets}
    own = [name for name in rows.of if name in known and name not in inputs]
    if own:
        if len(rows.of) > 1:
            raise NotUnderstood("a law of one of several computed values")
        return tuple(_law(model, known[own[0]], [plain(v) for v in rows.values[own[0]]]))
    if any(facet.part.name not in known for facet in rows.worlds.facets):
        return None
    laws = [_facet_law(model, known[facet.part.name], facet) for facet in rows.worlds.facets]
    joint = np.array([Fraction(1)], dtype=object)
    for law in laws:
        joint = np.multiply.outer(joint, np.array(law, dtype=object)).ravel()
    total = [Fraction(0)] * rows.size
    for row, mass in zip(rows.row_of.tolist(), joint.tolist(), strict=True):
        total[row] += mass
    return tuple(total)


def _facet_law(model: Model, data: DataModel, facet: Facet) -> Weights:
    """The law of the values of an input as they are laid out; of independent single values where it is about those."""
    if facet.counted is not None:
        each = _law(model, data, list(facet.part.items))
        ways = zip(facet.counted.ways(), facet.counted.counts, strict=True)
        return [w * prod((p**c for p, c in zip(each, counts, strict=True)), start=Fraction(1)) for w, counts in ways]
    values = [flat[0] if not facet.part.extents else flat for flat in facet.flat]
    whole = _weights(model, data, values)
    if whole is not None:
        return _normalised(data, whole)
    if not facet.part.extents:
        raise NotUnderstood(f"the law {data.distribution} of {data.subject}")
    each = _law(model, data, list(facet.part.items))
    mass = dict(zip(facet.part.items, each, strict=True))
    return [prod((mass[item] for item in flat), start=Fraction(1)) for flat in facet.flat]


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


RULES: Mapping[str, Rule] = {
    "uniform": _uniform,
    "categorical": _categorical,
    "empirical": _empirical,
    "binomial": _binomial,
    "bernoulli": _bernoulli,
    "geometric": _geometric,
}
"""The laws that are exact on finite domains."""
