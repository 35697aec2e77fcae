"""Exact numbers: as people write them, as doubles, as arrays."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]


def show(value: object) -> str:
    """A number or word as an author would write it: decimals where they are exact and short, else a fraction."""
    if not isinstance(value, Fraction):
        return str(value)
    if value.denominator == 1:
        whole = str(value.numerator)
        stripped = whole.rstrip("0")
        return whole if len(whole) <= 12 else f"{stripped}e{len(whole) - len(stripped)}"
    try:
        decimal = repr(float(value))
    except OverflowError:
        return str(value)
    if Fraction(decimal) == value:
        return decimal.replace("e-0", "e-").replace("e+0", "e")
    return str(value)


def readable(value: object) -> str:
    """A number for people: as an author would write it, or six digits rounded up where that would be a long fraction.

    Exact numbers, which plans and certificates carry, are written by `show`.
    """
    text = show(value)
    if not isinstance(value, Fraction) or ("/" not in text and len(text) <= LONGEST):
        return text
    if len(text) <= SHORT_FRACTION:
        return text
    with localcontext(prec=READABLE_DIGITS, rounding=ROUND_CEILING):
        return format((Decimal(value.numerator) / Decimal(value.denominator)).normalize(), "g")


LONGEST, SHORT_FRACTION, READABLE_DIGITS = 20, 7, 6
"""Decimals and fractions of at most so many characters are shown whole, others to so many digits."""


def approximate(value: Fraction) -> float:
    """The nearest double; infinite when out of range (never raises)."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def as_float(value: object) -> Array:
    """A number or array of numbers as float64.

    Raises: TypeError if it holds anything else; OverflowError if a number has no double.
    """
    if isinstance(value, Fraction):
        return np.asarray(float(value))
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return np.array([float(entry) for entry in value.ravel()], dtype=np.float64).reshape(value.shape)
        return value.astype(np.float64, copy=False)
    raise TypeError(f"not numbers: {type(value).__name__}")


def exact_array(items: list[Fraction] | tuple[Fraction, ...], shape: tuple[int, ...]) -> NDArray[Any]:
    """An object array of fractions."""
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array.reshape(shape)


def as_fraction(value: object) -> Fraction:
    """A finite scalar as an exact fraction.

    Raises: TypeError if it is no scalar number; ValueError if it is not finite.
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, np.ndarray) and value.shape == ():
        return as_fraction(value.item())
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"not a number: {type(value).__name__}")
    if isinstance(value, float | np.floating) and not np.isfinite(value):
        raise ValueError("not finite")
    return Fraction(float(value)) if isinstance(value, float | np.floating) else Fraction(int(value))
