"""Logarithms and powers as simple rationals, rounded towards privacy by ball arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

CLOSE = Fraction(1, 1 << 30)
"""How far, relatively, a simple rational may be from the number that it replaces."""
LARGEST = Fraction(256)
"""Larger epsilons are treated as this one: far beyond any privacy."""
_PRECISION = 192


def growth_down(epsilon: Fraction) -> Fraction:
    """At most e^epsilon - 1, relatively within 2^-100; epsilon > 0."""
    from flint import arb, ctx, fmpq

    epsilon = min(epsilon, LARGEST)
    with ctx.workprec(_PRECISION):
        return _dyadic(arb(fmpq(epsilon.numerator, epsilon.denominator)).expm1().lower())


def log_up(ratio: Fraction) -> Fraction:
    """At least the logarithm of a number >= 1, relatively within 2^-100."""
    from flint import arb, ctx, fmpq

    beyond = ratio - 1
    with ctx.workprec(_PRECISION):
        return _dyadic(arb(fmpq(beyond.numerator, beyond.denominator)).log1p().upper())


def growth_simple(epsilon: Fraction) -> Fraction:
    """The simplest rational that is at most e^epsilon - 1 and relatively within 2^-30 of it."""
    most = growth_down(epsilon)
    return simplest(most * (1 - CLOSE), most)


def simplest_up(value: Fraction) -> Fraction:
    """The simplest rational that is at least a positive value and relatively within 2^-30 of it."""
    return simplest(value, value * (1 + CLOSE))


def simplest(low: Fraction, high: Fraction) -> Fraction:
    """The rational of the smallest denominator in [low, high], 0 < low <= high (continued fractions)."""
    whole = low.numerator // low.denominator
    if low == whole:
        return Fraction(whole)
    if whole + 1 <= high:
        return Fraction(whole + 1)
    return whole + 1 / simplest(1 / (high - whole), 1 / (low - whole))


def _dyadic(ball: Any) -> Fraction:
    """An exact ball as a fraction."""
    mantissa, exponent = (int(part) for part in ball.man_exp())
    return Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)


def decimal_up(value: Fraction, places: int = 6) -> str:
    """A decimal that is not below the value, with so many places; trailing zeros are left out."""
    whole = -(-value.numerator * 10**places // value.denominator)
    text = f"{whole // 10**places}.{whole % 10**places:0{places}d}".rstrip("0")
    return text.rstrip(".")
