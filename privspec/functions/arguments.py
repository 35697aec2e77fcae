"""Checks of arguments that many functions share."""

from __future__ import annotations

from fractions import Fraction

from privspec.model.library import Argument, Arguments, FunctionError
from privspec.model.types import Anything, Numbers, Type


def vector(arguments: Arguments, position: int, function: str) -> int:
    """The extent of an argument that must be a vector of numbers.

    Raises: FunctionError PS0207.
    """
    kind = arguments[position].type
    if not isinstance(kind.element, Numbers | Anything) or len(kind.shape) != 1:
        raise FunctionError(f"{function} takes a vector, and this is {kind.describe()}", position, code="PS0207")
    return kind.shape[0]


def numbers(arguments: Arguments, position: int, function: str) -> Type:
    """The type of an argument that must be made of numbers.

    Raises: FunctionError PS0208.
    """
    kind = arguments[position].type
    if not isinstance(kind.element, Numbers | Anything):
        raise FunctionError(f"{function} takes numbers, and this is {kind.describe()}", position, code="PS0208")
    return kind


def public_whole(argument: Argument, position: int, what: str, least: int = 1, most: int = 2**31) -> int:
    """The value of an argument that must be a public whole number.

    Raises: FunctionError PS0206.
    """
    value = argument.value
    if isinstance(value, Fraction) and value.denominator == 1 and least <= value <= most:
        return int(value)
    upper = f" to {most}" if most < 2**31 else " on"
    raise FunctionError(f"{what} must be a public whole number from {least}{upper}", position)
