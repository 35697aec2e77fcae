"""Means, sums, extremes and counts of tables; comparisons of two values or their laws, and prices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import combinations
from math import acos, pi, prod
from typing import Any

import numpy as np

from privspec.functions.linear import numbers
from privspec.model.domains import Anything, Symbols, Tables, Texts, Type, fits
from privspec.model.library import Argument, Arguments, Bound, Function, FunctionError, NotComputableError
from privspec.model.reports import nearest
from privspec.model.targets import Labels, cell_labels, joined
from privspec.model.values import Array, as_float


def _fold(name: str, apply: Callable[[Any], Any], *, linear: bool) -> Callable[[Arguments], Bound]:
    """Bind a fold along the first axis: of the entries of a vector, the rows of an array, the terms of a `for`."""

    def bind(arguments: Arguments) -> Bound:
        kind = numbers(arguments, 0, name)
        if not kind.shape:
            raise FunctionError(
                f"{name} takes a vector or `... for j in ...`, and this is one number", 0, code="PS0207"
            )
        if kind.shape[0] == 0:
            raise FunctionError(f"{name} of nothing", 0)
        return Bound(Type(kind.shape[1:]), apply, linear=linear)

    return bind


def _mean(values: Any) -> Any:
    if values.dtype == object:
        return _sum(values) / Fraction(len(values))
    return np.mean(values, axis=0)


def _sum(values: Any) -> Any:
    return np.sum(values, axis=0)


def _extreme(name: str, fold: Callable[..., Any]) -> Callable[[Arguments], Bound]:
    """Bind max or min: of several numbers, or along the first axis of one argument."""
    one = _fold(name, lambda values: fold(as_float(values), axis=0), linear=False)

    def bind(arguments: Arguments) -> Bound:
        if len(arguments) == 1:
            return one(arguments)
        kinds = [numbers(arguments, i, name) for i in range(len(arguments))]
        shape = max((kind.shape for kind in kinds), key=len)
        for i, kind in enumerate(kinds):
            if kind.shape not in ((), shape):
                raise FunctionError(f"{name} compares values of one shape", i, code="PS0207")

        def apply(*values: Any) -> Any:
            return fold(np.stack([np.broadcast_to(as_float(v), shape) for v in values]), axis=0)

        return Bound(Type(shape), apply, data=tuple(range(len(arguments))))

    return bind


def _variance(values: Any) -> Any:
    return np.var(as_float(values), axis=0)


# --- tables ---------------------------------------------------------------------------------------


def _table(arguments: Arguments, name: str) -> Tables:
    element = arguments[0].type.element
    if not isinstance(element, Tables):
        message = f"{name} takes a table, and this is {arguments[0].type.describe()}"
        hint = "a table is declared as in `input people in table(age in 0..120, sex in {F, M})`"
        raise FunctionError(message, 0, help=hint, code="PS0208")
    return element


def _bind_histogram(arguments: Arguments) -> Bound:
    element = _table(arguments, "histogram")
    table = element.table
    every = range(len(table.names))
    return Bound(Type((table.cell_count,)), as_float, linear=True, labels=lambda: cell_labels(table, every))


def marginal(counts: Array, shape: tuple[int, ...], keep: tuple[int, ...]) -> Array:
    """Counts of some attributes, the others added up, (cells, *batch) -> (product of kept, *batch), row-major."""
    batch = counts.shape[1:]
    axes = tuple(i for i in range(len(shape)) if i not in keep)
    summed = counts.reshape((*shape, *batch)).sum(axis=axes) if axes else counts
    return summed.reshape((prod(shape[i] for i in keep), *batch))


def marginal_sets(names: tuple[str, ...], arguments: tuple[Argument, ...]) -> tuple[tuple[int, ...], ...]:
    """The sets of attributes asked for: a number k means every set of k, in lexicographic order of attributes.

    A set {age, sex} means that one; its cells run in the order of the attributes in the table.
    Raises: FunctionError if a number or an attribute does not exist.
    """
    found: list[tuple[int, ...]] = []
    for position, argument in enumerate(arguments, start=1):
        value = argument.value
        if isinstance(value, Fraction):
            if value.denominator != 1 or not 0 <= value <= len(names):
                raise FunctionError(f"a table of {len(names)} attributes has no such marginals", position)
            found.extend(combinations(range(len(names)), int(value)))
        elif isinstance(value, tuple):
            places = []
            for word in value:
                if word not in names:
                    near = nearest(str(word), names)
                    hint = f"did you mean {near}?" if near else f"it has {', '.join(names)}"
                    raise FunctionError(f"the table has no attribute {word}", position, help=hint)
                places.append(names.index(str(word)))
            found.append(tuple(sorted(places)))
        else:
            raise FunctionError("write how many attributes at once, or which: marginals(t, 1, {age, sex})", position)
    for i, one in enumerate(found):
        if one in found[:i]:
            words = ", ".join(names[j] for j in one) or "none"
            raise FunctionError(f"the marginal over {words} is asked for twice", None)
    return tuple(found)


def _bind_marginals(arguments: Arguments) -> Bound:
    table = _table(arguments, "marginals").table
    sets = marginal_sets(table.names, arguments.positional[1:])
    shape = table.cell_shape
    size = sum(prod(shape[i] for i in keep) for keep in sets)

    def apply(counts: Any) -> Array:
        array = as_float(counts)
        return np.concatenate([marginal(array, shape, keep) for keep in sets])

    def labels() -> Labels:
        return joined((cell_labels(table, keep), prod(shape[i] for i in keep)) for keep in sets)

    return Bound(Type((size,)), apply, linear=True, labels=labels)


def _bind_count(arguments: Arguments) -> Bound:
    _table(arguments, "count")
    return Bound(Type(), lambda counts: np.sum(as_float(counts), axis=0), linear=True)


STATISTICS: Mapping[str, Function] = {
    f.name: f
    for f in (
        Function(
            "sum",
            "sum(e for i in 1..N), sum(v)",
            "The sum of the terms, or of the entries of a vector; the rows of a matrix are added as vectors.",
            _fold("sum", _sum, linear=True),
            linear=True,
            symmetric=True,
        ),
        Function(
            "mean",
            "mean(e for voter), mean(v)",
            "The arithmetic mean of the terms, or of the entries of a vector, or of the rows of a matrix.",
            _fold("mean", _mean, linear=True),
            linear=True,
            symmetric=True,
        ),
        Function(
            "variance",
            "variance(v)",
            "The mean squared distance of the entries from their mean.",
            _fold("variance", _variance, linear=False),
            symmetric=True,
        ),
        Function(
            "max",
            "max(e for i in 1..N), max(v), max(a, b)",
            "The largest of the terms, of the entries of a vector, or of several numbers.",
            _extreme("max", np.max),
            arity=(1, None),
            symmetric=True,
        ),
        Function(
            "min",
            "min(e for i in 1..N), min(v), min(a, b)",
            "The least of the terms, of the entries of a vector, or of several numbers.",
            _extreme("min", np.min),
            arity=(1, None),
            symmetric=True,
        ),
        Function(
            "histogram",
            "histogram(t)",
            "How many records of the table t stand in each cell: all combinations of attribute values, "
            "the last attribute running fastest.",
            _bind_histogram,
            linear=True,
        ),
        Function(
            "marginals",
            "marginals(t, 1, 2), marginals(t, {age, sex})",
            "Counts of the table t over some of its attributes, one after another: a number k asks for every set of k "
            "attributes in their order, a set for that one. Within each, the last attribute runs fastest.",
            _bind_marginals,
            arity=(2, None),
            linear=True,
        ),
        Function("count", "count(t)", "How many records the table t has.", _bind_count, linear=True),
    )
}


def _same(arguments: Arguments, name: str) -> None:
    first, second = arguments[0].type, arguments[1].type
    if not fits(first, second):
        raise FunctionError(
            f"{name} compares values of one kind: {first.describe()} and {second.describe()}", 1, code="PS0207"
        )


def _bind_mismatch(arguments: Arguments) -> Bound:
    _same(arguments, "mismatch")

    def apply(left: Any, right: Any) -> Fraction:
        return Fraction(int(not np.array_equal(np.asarray(left), np.asarray(right))))

    return Bound(Type(), apply, data=(0, 1))


def _not_yet(reason: str) -> Callable[..., Any]:
    def apply(*_: Any) -> Any:
        raise NotComputableError(reason)

    return apply


def _bind_total_variation(arguments: Arguments) -> Bound:
    _same(arguments, "total_variation")
    return Bound(Type(), _not_yet("it compares laws, not values"), data=(0, 1))


def angle_between(left: Any, right: Any) -> float:
    """The angle between two vectors in radians; a right angle if one of them is zero."""
    a, b = as_float(left).ravel(), as_float(right).ravel()
    length = float(np.linalg.norm(a) * np.linalg.norm(b))
    return pi / 2 if length == 0 else acos(min(1.0, max(-1.0, float(a @ b) / length)))


def _angle(name: str, scale: float) -> Callable[[Arguments], Bound]:
    def bind(arguments: Arguments) -> Bound:
        _same(arguments, name)
        for position in (0, 1):
            kind = numbers(arguments, position, name)
            if kind.known and len(kind.shape) != 1:
                raise FunctionError(
                    f"{name} compares two vectors, and this is {kind.describe()}", position, code="PS0207"
                )
        return Bound(Type(), lambda a, b: Fraction(angle_between(a, b) * scale), data=(0, 1))

    return bind


def _bind_cost(arguments: Arguments) -> Bound:
    choice = arguments[0]
    if not isinstance(choice.type.element, Symbols | Texts | Anything) or choice.type.shape:
        raise FunctionError(f"cost prices a choice among words, and this is {choice.type.describe()}", 0)
    if not arguments.keywords:
        raise FunctionError("cost needs a price for each choice", None)
    prices = {word: _price(word, argument) for word, argument in arguments.keywords.items()}
    items = choice.type.element.items if isinstance(choice.type.element, Symbols) else None
    if items is not None:
        missing = [str(item) for item in items if item not in prices]
        if missing:
            raise FunctionError(f"cost has no price for {', '.join(missing)}", None)
        extra = [word for word in prices if word not in items]
        if extra:
            raise FunctionError(f"{extra[0]} is not among the choices", extra[0])

    def apply(word: Any) -> Fraction:
        price = prices.get(str(word))
        if price is None:
            raise FunctionError(f"cost has no price for {word}", 0)
        return price

    return Bound(Type(), apply)


def _price(word: str, argument: Argument) -> Fraction:
    if not isinstance(argument.value, Fraction):
        raise FunctionError("a price is a public number", word)
    return argument.value


COMPARISONS: Mapping[str, Function] = {
    f.name: f
    for f in (
        Function(
            "mismatch",
            "mismatch(a, b)",
            "1 where the two values differ and 0 where they agree; its average is the probability of differing.",
            _bind_mismatch,
            arity=(2, 2),
            same_type=True,
        ),
        Function(
            "total_variation",
            "total_variation(a, b)",
            "How far the law of a is from the law of b, given the input: the largest difference of the "
            "probabilities they give to any event.",
            _bind_total_variation,
            arity=(2, 2),
            same_type=True,
        ),
        Function(
            "angle",
            "angle(a, b)",
            "The angle between two vectors, in radians.",
            _angle("angle", 1.0),
            arity=(2, 2),
            same_type=True,
        ),
        Function(
            "disagreement",
            "disagreement(a, b)",
            "angle(a, b) / pi: the share of random pairs of alternatives that the two weight vectors order "
            "differently.",
            _angle("disagreement", 1 / pi),
            arity=(2, 2),
            same_type=True,
        ),
        Function(
            "cost",
            "cost(choice, word = price, ...)",
            "The price of what a `choose` variable picks, so that a loss can weigh designs against each other.",
            _bind_cost,
            keywords=None,
        ),
    )
}

FUNCTIONS: Mapping[str, Function] = {**STATISTICS, **COMPARISONS}
