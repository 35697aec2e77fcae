"""Powers of e and logarithms, rounded to the right side."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from privspec.core.rounding import exp_down, exp_up, log_down, log_up

EXPONENTS = st.fractions(min_value=-40, max_value=40, max_denominator=10**6)


@given(EXPONENTS)
def test_both_sides_of_the_power(exponent: Fraction) -> None:
    low, high = exp_down(exponent), exp_up(exponent)
    with localcontext() as context:
        context.prec = 80
        power = Fraction((Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp())
    assert low <= power * (1 + Fraction(1, 10**70))
    assert high >= power * (1 - Fraction(1, 10**70))
    assert high - low <= Fraction(1, 2**64)


@given(st.fractions(min_value=0, max_value=10**6).filter(bool))
def test_both_sides_of_the_logarithm(value: Fraction) -> None:
    low, high = log_down(value), log_up(value)
    with localcontext() as context:
        context.prec = 80
        logarithm = Fraction((Decimal(value.numerator) / Decimal(value.denominator)).ln())
    assert low - Fraction(1, 10**70) <= logarithm <= high + Fraction(1, 10**70)
    assert high - low == (0 if value == 1 else Fraction(1, 2**64))


def test_the_power_of_nothing() -> None:
    assert exp_down(Fraction(0)) == exp_up(Fraction(0)) == 1


def test_a_double_would_have_been_too_large() -> None:
    """`math.exp` rounded down to 64 digits is above the power for half of all exponents (TABLES)."""
    from math import exp

    exponents = [Fraction(k, 10) for k in range(1, 60)]
    assert any(Fraction(exp(x)) > exp_up(x) for x in exponents)
    assert all(exp_down(x) < exp_up(x) for x in exponents)
