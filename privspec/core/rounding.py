"""Powers, logarithms and square roots between exact numbers, each with its direction in its name."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isqrt
from typing import Any

from privspec.core.diagnostics import InternalError

BITS = 64
"""Binary digits after the point."""
MANTISSA_BITS = 48
"""Short dyadic numbers: whole numbers of this many bits times a power of two, within 2^-47 of what they stand for."""


def exp_down(exponent: Fraction, bits: int = BITS) -> Fraction:
    """The largest multiple of 2^-bits that is not above e^exponent."""
    return Fraction(1) if exponent == 0 else _whole(_exp(exponent), exponent, bits, up=False)


def exp_up(exponent: Fraction, bits: int = BITS) -> Fraction:
    """The least multiple of 2^-bits that is not below e^exponent."""
    return Fraction(1) if exponent == 0 else _whole(_exp(exponent), exponent, bits, up=True)


def log_down(value: Fraction, bits: int = BITS) -> Fraction:
    """The largest multiple of 2^-bits that is not above the logarithm of a positive number."""
    return Fraction(0) if value == 1 else _whole(_log(value), value, bits, up=False)


def log_up(value: Fraction, bits: int = BITS) -> Fraction:
    """The least multiple of 2^-bits that is not below the logarithm of a positive number."""
    return Fraction(0) if value == 1 else _whole(_log(value), value, bits, up=True)


def _exp(value: Fraction) -> Callable[[], Any]:
    from flint import arb, fmpq

    return lambda: arb(fmpq(value.numerator, value.denominator)).exp()


def _log(value: Fraction) -> Callable[[], Any]:
    from flint import arb, fmpq

    return lambda: arb(fmpq(value.numerator, value.denominator)).log()


def _whole(enclose: Callable[[], Any], value: Fraction, bits: int, *, up: bool) -> Fraction:
    """An irrational number rounded to a multiple of 2^-bits: enough digits always decide."""
    from flint import arb, ctx

    magnitude = max(0, int(value * 3 // 2)) if abs(value) < 2**20 else 64  # e < 2^1.5: digits before the point
    precision = bits + magnitude + 64
    while True:
        with ctx.workprec(precision):
            ball = enclose() * arb(2) ** bits
            low, high = ball.lower().floor().unique_fmpz(), ball.upper().floor().unique_fmpz()
        if low is None or high is None:
            raise InternalError("a power or logarithm was not enclosed")
        if low == high:
            return Fraction(int(low) + up, 1 << bits)
        precision *= 2


def power_of_two(exponent: int) -> Fraction:
    """2^exponent, exactly."""
    return Fraction(2**exponent) if exponent >= 0 else Fraction(1, 2**-exponent)


def sqrt_down(value: Fraction) -> Fraction:
    """A short dyadic number within 2^-47 below the square root.

    Raises: ValueError if `value` is negative.
    """
    if value < 0:
        raise ValueError("square root of a negative number")
    if value == 0:
        return Fraction(0)
    magnitude = (value.numerator.bit_length() - value.denominator.bit_length()) // 2
    shift = MANTISSA_BITS - magnitude
    scaled = value * power_of_two(2 * shift)
    return isqrt(scaled.numerator // scaled.denominator) * power_of_two(-shift)


def sqrt_up(value: Fraction) -> Fraction:
    """A short dyadic number within 2^-46 above the square root.

    Raises: ValueError if `value` is negative.
    """
    low = sqrt_down(value)
    if low * low == value:
        return low
    magnitude = (value.numerator.bit_length() - value.denominator.bit_length()) // 2
    return low + power_of_two(magnitude - MANTISSA_BITS)


def root(value: Fraction) -> Fraction:
    """The square root of a number >= 0: exact where it is rational with small parts, else rounded down."""
    top, bottom = isqrt(value.numerator), isqrt(value.denominator)
    if top * top == value.numerator and bottom * bottom == value.denominator:
        return Fraction(top, bottom)
    return Fraction(isqrt((value.numerator << 2 * BITS) // value.denominator), 1 << BITS)
