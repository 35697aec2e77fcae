"""The exact law that a data model gives to the values of a finite domain.

`uniform`, `categorical`, `empirical`, `binomial`, `bernoulli` and `geometric` are rational as they are. The weights of
`normal`, `laplace`, `exponential` and `poisson` are those of `model.weights`: rounded to 2^-60 of the largest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import comb
from typing import Any, TypeAlias

import numpy as np

from privspec.core.spans import Span
from privspec.language import syntax
from privspec.model.evaluate import Environment, evaluate
from privspec.model.reports import Failure
from privspec.model.requirements import DataModel
from privspec.model.values import Value
from privspec.model.weights import falling, poisson

Law: TypeAlias = tuple[Fraction, ...]
"""Probabilities of listed values; they sum to one."""
LARGEST_COUNT = 2**16
"""Whole numbers beyond have powers that are too long to compute with."""
LARGEST_BITS = 2**13
"""Longest numerator and denominator of a probability."""


def law_of(model: DataModel, values: Sequence[Value], environment: Environment) -> Law:
    """What a data model says of each of the values.

    Raises: Failure PS0514 for a distribution without an exact law on these values, PS0406 for wrong arguments.
    """
    rule = RULES.get(model.distribution)
    if rule is None:
        raise Failure(
            "PS0514",
            model.span,
            f"{model.distribution} has no exact law on a finite domain",
            help=f"use {', '.join(RULES)}",
        )
    arguments = [evaluate(a, environment) for a in model.arguments if not isinstance(a, _SPECIAL)]
    weights = rule(values, arguments, model.span)
    total = sum(weights, Fraction(0))
    if total <= 0 or min(weights) < 0:
        raise Failure("PS0406", model.span, f"this law gives {model.subject} no probability on its domain")
    return short(tuple(weight / total for weight in weights), model.span)


def short(law: Law, span: Span) -> Law:
    """A law whose probabilities can be written down.

    Raises: Failure PS0514 otherwise.
    """
    if max(max(p.numerator.bit_length(), p.denominator.bit_length()) for p in law) > LARGEST_BITS:
        raise Failure(
            "PS0514",
            span,
            "the exact probabilities of this law have thousands of digits",
            help="use fewer records, smaller numbers, or weights with fewer digits",
        )
    return law


def joint_law(model: DataModel, lists: Sequence[Sequence[Value]], environment: Environment) -> Law:
    """The law of several inputs, over their joint values in row-major order of `lists` (one for each subject).

    Raises: as `law_of`.
    """
    if model.distribution == "categorical":
        weights = evaluate(_plain(model.arguments[0], model.span), environment)
        sizes = tuple(len(values) for values in lists)
        if isinstance(weights, np.ndarray) and weights.ndim > 1 and weights.shape != sizes:
            raise Failure(
                "PS0406",
                model.span,
                f"{' x '.join(map(str, weights.shape))} weights for {model.subject}, "
                f"which takes {' x '.join(map(str, sizes))} values",
                help="a row for each value of the first name; the last name changes fastest",
            )
    return law_of(model, [_joined(parts) for parts in product(*lists)], environment)


def _joined(parts: Sequence[Value]) -> Value:
    """Several values one after another."""
    flat = [entry for part in parts for entry in (part.ravel() if isinstance(part, np.ndarray) else [part])]
    joined = np.empty(len(flat), dtype=object)
    joined[:] = flat
    return joined


_SPECIAL = (syntax.Keyword, syntax.Member, syntax.Comprehension, syntax.RangeOf)


def _plain(argument: syntax.Argument, span: Span) -> syntax.Expr:
    if isinstance(argument, _SPECIAL):
        raise Failure("PS0406", span, "a plain value is wanted here")
    return argument


# --- laws that are rational as they are ------------------------------------------------------------


def _uniform(values: Sequence[Value], arguments: Sequence[Value], span: Span) -> list[Fraction]:
    if not arguments:
        return [Fraction(1)] * len(values)
    low, high = (_number(a, span) for a in arguments)
    return [Fraction(low <= _number(v, span) <= high) for v in values]


def _categorical(values: Sequence[Value], arguments: Sequence[Value], span: Span) -> list[Fraction]:
    (given,) = _some(arguments, 1, span)
    weights = _flat(given, span)
    if len(weights) != len(values):
        raise Failure("PS0406", span, f"{len(weights)} weights for {len(values)} values")
    return [_number(weight, span) for weight in weights]


def _empirical(values: Sequence[Value], arguments: Sequence[Value], span: Span) -> list[Fraction]:
    (observed,) = _some(arguments, 1, span)
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
    n, p = (_number(a, span) for a in _some(arguments, 2, span))
    if n.denominator != 1 or n < 0 or not 0 <= p <= 1:
        raise Failure("PS0406", span, "binomial takes a whole number and a probability")
    _limited(n, span)
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
    (p,) = (_number(a, span) for a in _some(arguments, 1, span))
    if not 0 < p < 1:
        raise Failure("PS0406", span, "geometric takes a probability between 0 and 1")
    numbers = [_number(v, span) for v in values]
    if any(number.denominator != 1 for number in numbers):
        raise Failure("PS0406", span, "geometric is a law of whole numbers")
    _limited(max(map(abs, numbers)), span)
    return [(1 - p) ** int(number) for number in numbers]


def _limited(number: Fraction, span: Span) -> None:
    if number > LARGEST_COUNT:
        raise Failure("PS0514", span, f"this law has exact probabilities for numbers up to {LARGEST_COUNT:,} only")


# --- laws with rounded weights ---------------------------------------------------------------------


def _normal(values: Sequence[Value], arguments: Sequence[Value], span: Span) -> list[Fraction]:
    """Density at each value; at each point for a vector, with independent coordinates."""
    mean, deviation = _some(arguments, 2, span)
    spread = _positive(deviation, "a standard deviation", span)
    gaps = [_gaps(value, mean, span) for value in values]
    return falling([sum((gap * gap for gap in own), Fraction(0)) / (2 * spread * spread) for own in gaps])


def _laplace(values: Sequence[Value], arguments: Sequence[Value], span: Span) -> list[Fraction]:
    mean, scale = _some(arguments, 2, span)
    spread = _positive(scale, "a scale", span)
    return falling([sum(map(abs, _gaps(value, mean, span)), Fraction(0)) / spread for value in values])


def _exponential(values: Sequence[Value], arguments: Sequence[Value], span: Span) -> list[Fraction]:
    (given,) = _some(arguments, 1, span)
    rate = _positive(given, "a rate", span)
    numbers = [_number(value, span) for value in values]
    return falling([rate * number if number >= 0 else None for number in numbers])


def _poisson(values: Sequence[Value], arguments: Sequence[Value], span: Span) -> list[Fraction]:
    (given,) = _some(arguments, 1, span)
    mean = _positive(given, "a mean", span)
    numbers = [_number(value, span) for value in values]
    _limited(max(map(abs, numbers)), span)
    return poisson(mean, [int(n) if n >= 0 and n.denominator == 1 else None for n in numbers])


RULES: Mapping[str, Callable[[Sequence[Value], Sequence[Value], Span], list[Fraction]]] = {
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
"""Weights of listed values, by distribution."""


# --- arguments ------------------------------------------------------------------------------------


def _some(arguments: Sequence[Value], count: int, span: Span) -> Sequence[Value]:
    if len(arguments) != count:
        raise Failure("PS0406", span, f"this law takes {count} plain value{'' if count == 1 else 's'}")
    return arguments


def _positive(value: Value, what: str, span: Span) -> Fraction:
    number = _number(value, span)
    if number <= 0:
        raise Failure("PS0406", span, f"{what} is a positive number")
    return number


def _gaps(value: Value, mean: Value, span: Span) -> list[Fraction]:
    """Differences from the mean, entry by entry; one mean may serve all entries of a point."""
    entries = [_number(entry, span) for entry in _flat(value, span)]
    means = [_number(entry, span) for entry in _flat(mean, span)]
    if isinstance(mean, Fraction) and isinstance(value, np.ndarray):
        raise Failure("PS0406", span, f"the mean of {len(entries)} numbers is a vector of {len(entries)}")
    if len(means) != len(entries):
        raise Failure("PS0406", span, f"a mean of {len(means)} numbers for values of {len(entries)}")
    return [entry - middle for entry, middle in zip(entries, means, strict=True)]


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
