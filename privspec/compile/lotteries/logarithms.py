"""Logarithms, rounded down."""

from __future__ import annotations

from fractions import Fraction


def log_down(value: Fraction) -> Fraction:
    """A lower bound on the logarithm of a number above 1, within 2^-60."""
    from flint import arb, ctx, fmpq

    with ctx.workprec(192):
        scaled = arb(fmpq(value.numerator, value.denominator)).log() * arb(2) ** 64
        found = scaled.lower().floor().unique_fmpz()
    return Fraction(0) if found is None else Fraction(int(found), 1 << 64)
