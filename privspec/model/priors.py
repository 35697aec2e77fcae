"""The exact law that a data model gives to the values of a finite domain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import comb
from typing import Any, TypeAlias

import numpy as np

from privspec.core.spans import Span
from privspec.language import syntax
from privspec.model.evaluate import Environment, evaluate
from privspec.model.reports import Failure
from privspec.model.requirements import DataModel
from privspec.model.values import Value

Law: TypeAlias = tuple[Fraction, ...]
"""Probabilities of listed values; they sum to one."""


def law_of(model: DataModel, values: Sequence[Value], environment: Environment) -> Law:
    """What a data model says of each of the values.

    Raises: Failure PS0514 for a distribution without an exact law on these values, PS0406 for wrong arguments.
    """
    rule = _RULES.get(model.distribution)
    if rule is None:
        raise Failure(
            "PS0514",
            model.span,
            f"{model.distribution} has no exact law on a finite domain",
            help=f"use {', '.join(_RULES)}",
        )
    arguments = [evaluate(a, environment) for a in model.arguments if not isinstance(a, _SPECIAL)]
    weights = rule(values, arguments, model.span)
    total = sum(weights, Fraction(0))
    if total <= 0 or min(weights) < 0:
        raise Failure("PS0406", model.span, f"this law gives {model.subject} no probability on its domain")
    return tuple(weight / total for weight in weights)


_SPECIAL = (syntax.Keyword, syntax.Member, syntax.Comprehension, syntax.RangeOf)


def _uniform(values: Sequence[Value], arguments: Sequence[Value], span: Span) -> list[Fraction]:
    if not arguments:
        return [Fraction(1)] * len(values)
    low, high = (_number(a, span) for a in arguments)
    return [Fraction(low <= _number(v, span) <= high) for v in values]


def _categorical(values: Sequence[Value], arguments: Sequence[Value], span: Span) -> list[Fraction]:
    weights = _flat(arguments[0], span)
    if len(weights) != len(values):
        raise Failure("PS0406", span, f"{len(weights)} weights for {len(values)} values")
    return weights


def _empirical(values: Sequence[Value], arguments: Sequence[Value], span: Span) -> list[Fraction]:
    observed = arguments[0]
    if not isinstance(observed, np.ndarray):
        raise Failure("PS0406", span, "empirical takes observations: a vector, or a matrix with one in each row")
    width = values[0].size if isinstance(values[0], np.ndarray) else 1
    rows = _flat(observed, span)
    if len(rows) % width:
        raise Failure("PS0406", span, f"each observation needs {width} numbers")
    at = {tuple(_flat(v, span)): i for i, v in enumerate(values)}
    counts = [Fraction(0)] * len(values)
    for start in range(0, len(rows), width):
        place = at.get(tuple(rows[start : start + width]))
        if place is None:
            raise Failure("PS0406", span, f"observation {start // width + 1} lies outside the domain")
        counts[place] += 1
    return counts


def _binomial(values: Sequence[Value], arguments: Sequence[Value], span: Span) -> list[Fraction]:
    n, p = (_number(a, span) for a in arguments)
    if n.denominator != 1 or n < 0 or not 0 <= p <= 1:
        raise Failure("PS0406", span, "binomial takes a whole number and a probability")
    return [_binomial_mass(int(n), p, _number(v, span)) for v in values]


def _binomial_mass(n: int, p: Fraction, value: Fraction) -> Fraction:
    if value.denominator != 1 or not 0 <= value <= n:
        return Fraction(0)
    k = int(value)
    return comb(n, k) * p**k * (1 - p) ** (n - k)


def _bernoulli(values: Sequence[Value], arguments: Sequence[Value], span: Span) -> list[Fraction]:
    return _binomial(values, (Fraction(1), *arguments), span)


def _geometric(values: Sequence[Value], arguments: Sequence[Value], span: Span) -> list[Fraction]:
    """Pr(k) proportional to (1 - p)^k on the values of the domain."""
    (p,) = (_number(a, span) for a in arguments)
    if not 0 < p < 1:
        raise Failure("PS0406", span, "geometric takes a probability between 0 and 1")
    return [(1 - p) ** int(_number(v, span)) for v in values]


_RULES: Mapping[str, Callable[[Sequence[Value], Sequence[Value], Span], list[Fraction]]] = {
    "uniform": _uniform,
    "categorical": _categorical,
    "empirical": _empirical,
    "binomial": _binomial,
    "bernoulli": _bernoulli,
    "geometric": _geometric,
}


def _number(value: Value, span: Span) -> Fraction:
    if not isinstance(value, Fraction):
        raise Failure("PS0406", span, "this law is for single numbers")
    return value


def _flat(value: Value, span: Span) -> list[Any]:
    """Entries in order, numbers as fractions; words as they are."""
    if isinstance(value, np.ndarray):
        return [entry if isinstance(entry, Fraction | str) else _finite(entry, span) for entry in value.ravel()]
    return list(value) if isinstance(value, tuple) else [value]


def _finite(entry: Any, span: Span) -> Fraction:
    if not np.isfinite(entry):
        raise Failure("PS0406", span, "a number here is not finite")
    return Fraction(float(entry))
