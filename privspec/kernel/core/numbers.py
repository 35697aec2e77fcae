"""Exact numbers and enclosures: every figure with the direction in which it is rounded."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, isqrt

from flint import arb, ctx, fmpq

BITS = 128
"""Binary digits after the point of bounds on e^q."""
LARGEST_LOG = 1000
"""e^q is enclosed for |q| up to this: far beyond any privacy."""
FINEST = 2**16
"""Largest exponent of two that is worked out: anything finer counts as 2^-30000 where it may only be larger."""
PRECISIONS = (128, 256, 512, 1024, 2048, 4096)


def ball(value: Fraction) -> arb:
    """An enclosure of an exact number at the working precision."""
    return arb(fmpq(value.numerator, value.denominator))


def end(value: arb) -> Fraction:
    """The exact value of the end of a ball.

    Raises: ArithmeticError if it is out of all proportion.
    """
    mantissa, exponent = value.man_exp()
    if abs(int(exponent)) > FINEST:
        raise ArithmeticError("a figure out of proportion")
    return int(mantissa) * Fraction(2) ** int(exponent)


def exp_down(q: Fraction) -> Fraction:
    """At most e^q, within 2^-120 of it relative to the larger of it and one.

    Raises: ValueError if |q| is above `LARGEST_LOG`.
    """
    return Fraction(_exp(q)[0], 1 << BITS)


def exp_up(q: Fraction) -> Fraction:
    """At least e^q, as `exp_down`."""
    return Fraction(_exp(q)[1], 1 << BITS)


_KNOWN: dict[Fraction, tuple[int, int]] = {}


def _exp(q: Fraction) -> tuple[int, int]:
    if q in _KNOWN:
        return _KNOWN[q]
    if abs(q) > LARGEST_LOG:
        raise ValueError("an exponent out of range")
    with ctx.workprec(BITS + 2 * LARGEST_LOG):
        scaled = ball(q).exp() * arb(2) ** BITS
        found = floor(end(scaled.lower())), ceil(end(scaled.upper()))
    _KNOWN[q] = found if q else (1 << BITS, 1 << BITS)
    return _KNOWN[q]


def sqrt_down(value: Fraction, bits: int = 64) -> Fraction:
    """At most the square root, within about 2^-bits of it relatively.

    Raises: ValueError if `value` is negative.
    """
    if value < 0:
        raise ValueError("square root of a negative number")
    shift = max(0, bits + (value.denominator.bit_length() - value.numerator.bit_length()) // 2 + 2)
    return Fraction(isqrt((value.numerator << 2 * shift) // value.denominator), 1 << shift)


def sqrt_up(value: Fraction, bits: int = 64) -> Fraction:
    """At least the square root, as `sqrt_down`."""
    low = sqrt_down(value, bits)
    if low * low == value:
        return low
    shift = max(0, bits + (value.denominator.bit_length() - value.numerator.bit_length()) // 2 + 2)
    return low + Fraction(1, 1 << shift)


def gaussian_delta_up(epsilon: Fraction, mu_squared: Fraction) -> Fraction:
    """At least delta(epsilon) of Gaussian noise at distance mu in its own deviations, the square given.

    delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) (Balle & Wang 2018, theorem 8), for any sign of epsilon.
    """
    if mu_squared == 0:
        return max(Fraction(0), 1 - exp_down(epsilon)) if epsilon < 0 else Fraction(0)
    high = Fraction(1)
    for precision in PRECISIONS:
        with ctx.workprec(precision):
            eps, mu = ball(epsilon), ball(mu_squared).sqrt()
            root = arb(2).sqrt()
            near, far = (eps / mu - mu / 2) / root, (eps / mu + mu / 2) / root
            value = (near.erfc() - eps.exp() * far.erfc()) / 2
            if not value.is_finite():
                continue
            if value < arb(2) ** -30000:
                return Fraction(1, 2**30000)
            high = min(high, end(value.upper()))
            if end(value.upper()) - end(value.lower()) <= Fraction(1, 2**64) * max(end(value.lower()), Fraction(0)):
                break
    return max(high, Fraction(0))


def nearest_double(value: Fraction) -> float:
    """The double that an exact figure is stated as."""
    return value.numerator / value.denominator
