"""Exact numbers and enclosures: every figure with the direction in which it is rounded."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, isqrt, log10

from flint import arb, ctx, fmpq

ZERO = Fraction(0)
BITS = 128
"""Binary digits after the point of bounds on e^q."""
LARGEST_LOG = 1000
"""e^q is enclosed for |q| up to this: far beyond any privacy."""
FINEST = 2**16
"""Largest exponent of two that is worked out: anything finer counts as 2^-30000 where it may only be larger."""
NORMAL = Fraction(1, 10**300), Fraction(10**300)
"""Sizes of numbers whose digits are cut; those beyond are near the ends of what a double can hold."""
PRECISION = 2048
"""Binary digits with which Gaussian curves are worked out."""


def rational(value: Fraction) -> fmpq:
    """The same number, as flint computes with it."""
    return fmpq(*value.as_integer_ratio())


def fraction(value: fmpq | int) -> Fraction:
    """The same number, as all else computes with it."""
    return Fraction(int(value.p), int(value.q)) if isinstance(value, fmpq) else Fraction(int(value))


def ball(value: Fraction | fmpq) -> arb:
    """An enclosure of an exact number at the working precision."""
    return arb(value if isinstance(value, fmpq) else rational(value))


def end(value: arb) -> Fraction:
    """The exact value of the end of a ball, unless it is out of all proportion."""
    mantissa, exponent = map(int, value.man_exp())
    if abs(exponent) > FINEST:
        raise ArithmeticError("a figure out of proportion")
    return Fraction(mantissa << max(exponent, 0), 1 << max(-exponent, 0))


def nearest(value: arb) -> Fraction:
    """The middle of a ball, to 128 bits."""
    if not value.is_finite():
        raise ArithmeticError("a figure without an end")
    with ctx.workprec(BITS):
        return end((value * 1).mid())


_KNOWN: dict[Fraction, tuple[Fraction, Fraction]] = {Fraction(0): (Fraction(1), Fraction(1))}


def _exp(q: Fraction) -> tuple[Fraction, Fraction]:
    if q not in _KNOWN:
        if abs(q) > LARGEST_LOG:
            raise ValueError("an exponent out of range")
        with ctx.workprec(3 * BITS + 2 * max(0, ceil(q))):  # e^q is below 2^(2 q)
            scaled = ball(q).exp() * arb(2) ** BITS
            _KNOWN[q] = Fraction(floor(end(scaled.lower())), 1 << BITS), Fraction(ceil(end(scaled.upper())), 1 << BITS)
    return _KNOWN[q]


def exp_down(q: Fraction) -> Fraction:
    """At most e^q, within 2^-120 of it relative to the larger of it and one."""
    return _exp(q)[0]


def exp_up(q: Fraction) -> Fraction:
    """At least e^q, as `exp_down`."""
    return _exp(q)[1]


def sqrt_down(value: Fraction, bits: int = 64) -> Fraction:
    """At most the square root, within about 2^-bits of it relatively."""
    shift = max(0, bits + (value.denominator.bit_length() - value.numerator.bit_length()) // 2 + 2)
    return Fraction(isqrt((value.numerator << 2 * shift) // value.denominator), 1 << shift)


def sqrt_up(value: Fraction, bits: int = 64) -> Fraction:
    """At least the square root, as `sqrt_down`."""
    shift = max(0, bits + (value.denominator.bit_length() - value.numerator.bit_length()) // 2 + 2)
    low = sqrt_down(value, bits)
    return low if low * low == value else low + Fraction(1, 1 << shift)


def digits_down(value: Fraction, digits: int = 6) -> str:
    """At most the value, with so many significant digits."""
    if value == 0 or not NORMAL[0] < abs(value) < NORMAL[1]:
        return f"{float(value):.{digits}g}"
    unit = Fraction(10) ** (floor(log10(abs(float(value)))) - digits + 1)
    return f"{float(floor(value / unit) * unit):.{digits}g}"


def gaussian_delta(epsilon: Fraction | fmpq, mu: arb) -> arb:
    """Delta(epsilon) of Gaussian noise at distance mu in its own deviations, for any sign of epsilon.

    delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) (Balle & Wang 2018, theorem 8); without noise it is
    max(0, 1 - e^eps).
    """
    eps, scaled = ball(epsilon), mu * arb(2).sqrt()
    if mu == 0:
        return 1 - eps.exp() if epsilon < 0 else arb(0)
    return ((eps / scaled - scaled / 4).erfc() - eps.exp() * (eps / scaled + scaled / 4).erfc()) / 2


def chance_up(value: arb) -> Fraction:
    """At least a probability that is enclosed."""
    if not value.is_finite():
        return Fraction(1)
    if value < arb(2) ** -30000:
        return Fraction(1, 2**30000)
    return min(max(end(value.upper()), ZERO), Fraction(1))


def gaussian_delta_up(epsilon: Fraction, mu_squared: Fraction) -> Fraction:
    """At least delta(epsilon) of Gaussian noise, given the square of its mu."""
    if not mu_squared and epsilon >= 0:
        return ZERO
    with ctx.workprec(PRECISION):
        return chance_up(gaussian_delta(epsilon, ball(mu_squared).sqrt()))
