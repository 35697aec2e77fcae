"""Weights of laws that are not rational, rounded to the nearest multiple of 2^-60 of the largest one.

A data model serves the expected loss alone, so the rounding touches no guarantee; it makes the law exact, the same on
every machine, and short enough to be written into a plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lgamma, log

BITS = 60
"""Binary places of a weight."""
NOTHING = 50
"""Weights below e^-50 of the largest are rounded to 0 (so are all below 2^-61)."""


def falling(exponents: Sequence[Fraction | None]) -> list[Fraction]:
    """e^-q for each q >= 0, over the largest of them, correctly rounded; 0 for None."""
    least = min((q for q in exponents if q is not None), default=Fraction(0))
    return [Fraction(0) if q is None else Fraction(_power(least - q), 1 << BITS) for q in exponents]


def _power(exponent: Fraction) -> int:
    """2^60 e^exponent for exponent <= 0, to the nearest whole number.

    e^q is irrational for every rational q but 0, so that enough digits always decide.
    """
    import flint

    if exponent == 0:
        return 1 << BITS
    if exponent < -NOTHING:
        return 0
    precision = 160
    while True:
        with flint.ctx.workprec(precision):
            ball = flint.arb(flint.fmpq(exponent.numerator, exponent.denominator)).exp() * flint.arb(2) ** BITS
            nearest = (ball + flint.arb(1) / 2).floor().unique_fmpz()
        if nearest is not None:
            return int(nearest)
        precision *= 2


def poisson(mean: Fraction, counts: Sequence[int | None]) -> list[Fraction]:
    """mean^k / k! for each k >= 0, over the largest of them, correctly rounded (half up); 0 for None."""
    logs = [None if k is None else k * log(mean) - lgamma(k + 1) for k in counts]
    known = [(value, k) for value, k in zip(logs, counts, strict=True) if value is not None and k is not None]
    if not known:
        return [Fraction(0)] * len(counts)
    top, mode = max(known)
    near = [None if value is None or value < top - NOTHING else k for value, k in zip(logs, counts, strict=True)]
    ratios = [Fraction(0) if k is None else _ratio(mean, mode, k) for k in near]
    largest = max(ratios)
    return [Fraction((2 * (r / largest) * (1 << BITS) + 1) // 2, 1 << BITS) for r in ratios]


def _ratio(mean: Fraction, base: int, count: int) -> Fraction:
    """(mean^k / k!) / (mean^m / m!) for m = base."""
    found = Fraction(1)
    for j in range(min(base, count) + 1, max(base, count) + 1):
        found *= mean / j
    return found if count >= base else 1 / found
