"""Powers, logarithms and roots between exact numbers, each with its direction in its name."""

from __future__ import annotations

from fractions import Fraction

from privspec.core.diagnostics import InternalError

BITS = 64
"""Binary digits after the point."""


def exp_down(exponent: Fraction, bits: int = BITS) -> Fraction:
    """The largest multiple of 2^-bits that is not above e^exponent."""
    return _enclosed(exponent, bits, up=False)


def exp_up(exponent: Fraction, bits: int = BITS) -> Fraction:
    """The least multiple of 2^-bits that is not below e^exponent."""
    return _enclosed(exponent, bits, up=True)


def _enclosed(exponent: Fraction, bits: int, *, up: bool) -> Fraction:
    import flint

    magnitude = max(0, int(exponent * 3 // 2))  # e < 2^1.5: so many digits before the point at most
    precision = bits + magnitude + 64
    while True:
        with flint.ctx.workprec(precision):
            ball = flint.arb(flint.fmpq(exponent.numerator, exponent.denominator)).exp() * flint.arb(2) ** bits
            rounded = (ball.upper().ceil() if up else ball.lower().floor()).unique_fmpz()
            other = (ball.lower().ceil() if up else ball.upper().floor()).unique_fmpz()
        if rounded is None:
            raise InternalError("a power of e was not enclosed")
        if exponent == 0 or rounded == other:
            return Fraction(1) if exponent == 0 else Fraction(int(rounded), 1 << bits)
        precision *= 2
