"""Exact numbers: as people write them, as doubles, as arrays, and their powers, logarithms and square roots.

What is rounded has its direction in its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from math import ceil, floor, gcd, isqrt, lcm
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import InternalError
from privspec.kernel.gaussian import sqrt_down as sqrt_down
from privspec.kernel.gaussian import sqrt_up as sqrt_up

BITS = 64
"""Binary digits after the point."""
SHORT_BITS = 40
"""Binary digits of an amount of noise."""
LISTED = 4
"""Digits of losses that are listed in order: solved ones are no more exact."""


def exp_down(exponent: Fraction, bits: int = BITS) -> Fraction:
    """The largest multiple of 2^-bits that is not above e^exponent."""
    return Fraction(1) if exponent == 0 else _whole(_exp(exponent), bits, _digits(exponent), up=False)


def exp_up(exponent: Fraction, bits: int = BITS) -> Fraction:
    """The least multiple of 2^-bits that is not below e^exponent."""
    return Fraction(1) if exponent == 0 else _whole(_exp(exponent), bits, _digits(exponent), up=True)


def log_down(value: Fraction, bits: int = BITS) -> Fraction:
    """The largest multiple of 2^-bits that is not above the logarithm of a positive number."""
    return Fraction(0) if value == 1 else _whole(_log(value), bits, up=False)


def log_up(value: Fraction, bits: int = BITS) -> Fraction:
    """The least multiple of 2^-bits that is not below the logarithm of a positive number."""
    return Fraction(0) if value == 1 else _whole(_log(value), bits, up=True)


def _exp(value: Fraction) -> Callable[[], Any]:
    from flint import arb, fmpq

    return lambda: arb(fmpq(value.numerator, value.denominator)).exp()


def _log(value: Fraction) -> Callable[[], Any]:
    from flint import arb, fmpq

    return lambda: arb(fmpq(value.numerator, value.denominator)).log()


def _digits(exponent: Fraction) -> int:
    """Binary digits of e^exponent before the point, at most: e < 2^1.5."""
    return max(0, int(exponent * 3 // 2)) if abs(exponent) < 2**20 else 64


def _whole(enclose: Callable[[], Any], bits: int, digits: int = 0, *, up: bool) -> Fraction:
    """An irrational number of so many digits, rounded to a multiple of 2^-bits: enough of them always decide."""
    from flint import arb, ctx

    precision = bits + digits + 64
    while True:
        with ctx.workprec(precision):
            ball = enclose() * arb(2) ** bits
            low, high = ball.lower().floor().unique_fmpz(), ball.upper().floor().unique_fmpz()
        if low is None or high is None:
            raise InternalError("a power or logarithm was not enclosed")
        if low == high:
            return Fraction(int(low) + up, 1 << bits)
        precision *= 2


def root(value: Fraction) -> Fraction:
    """The square root of a number >= 0: exact where it is rational with small parts, else rounded down."""
    top, bottom = isqrt(value.numerator), isqrt(value.denominator)
    if top * top == value.numerator and bottom * bottom == value.denominator:
        return Fraction(top, bottom)
    return Fraction(isqrt((value.numerator << 2 * BITS) // value.denominator), 1 << BITS)


# --- numbers --------------------------------------------------------------------------------------


Array: TypeAlias = NDArray[np.float64]


def graded(value: Fraction | float, digits: int = 9) -> float:
    """A loss as it is compared: those that agree in so many digits are equal on any machine, and the first leads."""
    return float(f"{float(value):.{digits}g}")


def in_digits(value: Fraction, digits: int, rounding: str = ROUND_HALF_EVEN) -> Decimal:
    """An exact number in so many significant digits, rounded once."""
    return Context(prec=digits, rounding=rounding).divide(Decimal(value.numerator), Decimal(value.denominator))


def short_up(value: Fraction, bits: int = SHORT_BITS) -> Fraction:
    """A binary fraction of so many digits, at or above."""
    step = _last_digit(value, bits)
    return ceil(value / step) * step


def short_down(value: Fraction, bits: int = SHORT_BITS) -> Fraction:
    """The same, at or below."""
    step = _last_digit(value, bits)
    return floor(value / step) * step


def _last_digit(value: Fraction, bits: int) -> Fraction:
    return Fraction(2) ** (value.numerator.bit_length() - value.denominator.bit_length() - bits)


def least_whole(works: Callable[[int], bool], low: int, high: int) -> int:
    """The least whole number above `low` that works, where `high` does and more never harms."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if works(middle) else (middle, high)
    return high


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


def step_text(step: Fraction) -> str:
    """A step of a lattice as people write it: a fine binary one as a power of two."""
    bits = step.denominator.bit_length() - 1
    return f"2^-{bits}" if bits > 9 and step == Fraction(1, 2**bits) else str(step)


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


def common(numbers: Iterable[Fraction]) -> Fraction:
    """The largest number that all are whole multiples of; 0 if all are 0."""
    listed = list(numbers)
    below = lcm(*(number.denominator for number in listed))
    return Fraction(gcd(*(int(number * below) for number in listed)), below)
