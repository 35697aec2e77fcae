"""Data models on finite domains, exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import comb
from typing import Any, TypeAlias

import numpy as np

from privspec.model.priors import falling, poisson

Weights: TypeAlias = list[Fraction]
Rule: TypeAlias = Callable[[Sequence[Any], Sequence[Any]], Weights | None]
"""Weights of listed values (flat tuples, or single values) from the arguments; None if the law is not about these."""


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
