"""The Gaussian privacy curve in ball arithmetic, and its inverses with directed rounding.

`delta(eps; mu) = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)` (Balle & Wang 2018, theorem 8) is exact for
a Gaussian release of sensitivity `mu` in units of its own noise. It falls in eps and rises in mu, so both
inverses are bisections; every answer is proved by an enclosure and rounded towards privacy.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isqrt
from typing import Any

MANTISSA_BITS = 48
"""Short dyadic numbers: whole numbers of this many bits times a power of two, within 2^-47 of what they stand for."""
PRECISIONS = (96, 192, 384, 768, 1536, 3072, 6144)
EPSILON_CAP = Fraction(2**64)
"""Larger epsilons are treated as this one: far beyond any privacy, and short of what balls can enclose."""

RELATIVE_RADIUS = Fraction(1, 2**64)


def power_of_two(exponent: int) -> Fraction:
    """2^exponent, exactly."""
    return Fraction(2) ** exponent


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


def _dyadic(ball: Any) -> Fraction:
    """An exact (radius zero) ball as a fraction."""
    mantissa, exponent = map(int, ball.man_exp())
    return mantissa * power_of_two(exponent)


def _enclose(epsilon: Fraction, mu: Fraction) -> Any:
    """Delta as a ball at the current working precision."""
    from privspec.kernel.core.numbers import ball, gaussian_delta

    return gaussian_delta(epsilon, ball(mu))


def delta_bounds(epsilon: Fraction, mu: Fraction) -> tuple[Fraction, Fraction]:
    """Fractions `lo <= delta(epsilon; mu) <= hi`, relatively 2^-64 apart unless delta is below 2^-6000.

    Args: epsilon >= 0; mu >= 0, the sensitivity in units of the noise.
    Raises: ValueError outside that range.
    Source: Balle & Wang 2018, theorem 8.
    """
    if epsilon < 0 or mu < 0:
        raise ValueError("epsilon and mu must not be negative")
    if mu == 0:
        return Fraction(0), Fraction(0)
    from flint import ctx

    low, high = Fraction(0), Fraction(1)
    for precision in PRECISIONS:
        with ctx.workprec(precision):
            delta = _enclose(epsilon, mu)
            if not delta.is_finite():
                continue
            low = max(low, _dyadic(delta.lower()))
            high = min(high, _dyadic(delta.upper()))
        if high - low <= RELATIVE_RADIUS * low:
            break
    return low, high


def _satisfies(epsilon: Fraction, mu: Fraction, delta: Fraction) -> bool:
    """Whether delta(epsilon; mu) <= delta is proved; precision grows until it is, or is refuted."""
    from flint import ctx

    from privspec.kernel.core.numbers import ball

    if mu == 0:
        return True
    for precision in PRECISIONS:
        with ctx.workprec(precision):
            found, limit = _enclose(epsilon, mu), ball(delta)
            if found <= limit:
                return True
            if found > limit:
                return False
    return False


def _largest(holds: Callable[[Fraction], bool]) -> Fraction:
    """The largest short dyadic number > 0 for which a property that fails from some point on holds.

    Raises: ValueError if it holds, or fails, over the whole range 2^-4096 .. 2^4096.
    """
    exponent = 0
    step = 1 if holds(Fraction(1)) else -1
    while holds(power_of_two(exponent)) == (step == 1):
        exponent += step
        if abs(exponent) > 4096:
            raise ValueError("no finite answer")
    top = exponent if step == 1 else exponent + 1
    unit = power_of_two(top - MANTISSA_BITS)
    good, bad = 1 << MANTISSA_BITS - 1, 1 << MANTISSA_BITS
    while bad - good > 1:
        middle = (good + bad) // 2
        if holds(middle * unit):
            good = middle
        else:
            bad = middle
    return unit * good


def mu_down(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A sensitivity mu with delta(epsilon; mu) <= delta, proved, within 2^-47 of the largest one.

    Above `EPSILON_CAP` it is that of the cap.

    Args: epsilon >= 0; 0 <= delta < 1 (delta 0 gives 0: no Gaussian release is purely differentially private).
    Raises: ValueError outside that range.
    """
    if epsilon < 0 or not 0 <= delta < 1:
        raise ValueError("epsilon must not be negative and delta must be in [0, 1)")
    if delta == 0:
        return Fraction(0)
    # delta falls in epsilon, so what holds at the cap holds beyond it
    capped = min(epsilon, EPSILON_CAP)
    return _largest(lambda mu: _satisfies(capped, mu, delta))


def epsilon_up(mu: Fraction, delta: Fraction) -> Fraction:
    """An epsilon with delta(epsilon; mu) <= delta, proved, within 2^-46 of the least one (0 if that suffices).

    Args: mu >= 0; 0 < delta < 1.
    Raises: ValueError outside that range.
    """
    if mu < 0 or not 0 < delta < 1:
        raise ValueError("mu must not be negative and delta must be in (0, 1)")
    if _satisfies(Fraction(0), mu, delta):
        return Fraction(0)
    below = _largest(lambda epsilon: not _satisfies(epsilon, mu, delta))
    # one unit in the last place above the largest epsilon that is not proved
    bits = below.numerator.bit_length() - below.denominator.bit_length()
    candidate = below + power_of_two(bits - MANTISSA_BITS)
    while not _satisfies(candidate, mu, delta):
        candidate += power_of_two(bits - MANTISSA_BITS)
    return candidate
