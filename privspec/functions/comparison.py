"""Comparing two values or their laws, and prices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import acos, pi
from typing import Any

import numpy as np

from privspec.functions.arguments import numbers
from privspec.model.library import Argument, Arguments, Bound, Function, FunctionError, NotComputableError
from privspec.model.types import Anything, Symbols, Texts, Type, fits
from privspec.model.values import as_float


def _same(arguments: Arguments, name: str) -> None:
    first, second = arguments[0].type, arguments[1].type
    if not fits(first, second):
        raise FunctionError(
            f"{name} compares values of one kind: {first.describe()} and {second.describe()}",
            1,
            code="PS0207",
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


FUNCTIONS: Mapping[str, Function] = {
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
