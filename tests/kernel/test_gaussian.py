import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import log_ndtr

from privspec.core.rounding import sqrt_down, sqrt_up
from privspec.kernel.gaussian import (
    EPSILON_CAP,
    delta_bounds,
    epsilon_up,
    mu_down,
)
from privspec.kernel.measures import RENYI, ZERO_CONCENTRATED


def closed_form(epsilon: Fraction, mu: Fraction) -> float:
    """The same formula in logarithms: doubles suffice while the two terms differ."""
    e, m = float(epsilon), float(mu)
    first, second = log_ndtr(m / 2 - e / m), e + log_ndtr(-m / 2 - e / m)
    return float(np.exp(first) * -np.expm1(second - first))


def by_quadrature(epsilon: float, mu: float) -> float:
    """The definition: how much of N(mu, 1) exceeds e^epsilon times N(0, 1)."""
    start = epsilon / mu + mu / 2
    value, _ = integrate.quad(
        lambda x: stats.norm.pdf(x, mu) - np.exp(epsilon) * stats.norm.pdf(x), start, start + 40, epsabs=0
    )
    return float(value)


CASES = [
    (Fraction(1), Fraction(1)),
    (Fraction(1, 100), Fraction(3)),
    (Fraction(0), Fraction(1, 7)),
    (Fraction(8), Fraction(1)),
    (Fraction(800), Fraction(35)),
    (Fraction(5), Fraction(1000)),
]


@pytest.mark.parametrize(("epsilon", "mu"), CASES)
def test_the_enclosure_agrees_with_the_closed_form(epsilon, mu):
    low, high = delta_bounds(epsilon, mu)
    assert float(low) == pytest.approx(closed_form(epsilon, mu), rel=1e-8)
    assert 0 <= low <= high <= 1
    assert high - low <= Fraction(1, 2**60) * high


@pytest.mark.parametrize(("epsilon", "mu"), [(1.0, 1.0), (0.01, 3.0), (8.0, 1.0), (3.0, 0.5)])
def test_the_enclosure_agrees_with_the_definition(epsilon, mu):
    low, _ = delta_bounds(Fraction(epsilon), Fraction(mu))
    assert float(low) == pytest.approx(by_quadrature(epsilon, mu), rel=1e-7)


def test_tiny_delta_is_enclosed():
    low, high = delta_bounds(Fraction(800), Fraction(1, 10))
    assert 0 < low <= high
    assert high - low <= Fraction(1, 2**60) * high
    assert high < Fraction(1, 10**1000)


def test_at_large_epsilon_the_double_formula_fails_and_the_ball_does_not():
    low, high = delta_bounds(Fraction(800), Fraction(355513123475389, 10**13))
    assert 0 < low <= high < Fraction(2, 10**6)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (Fraction(1), Fraction(1, 10**6)),
        (Fraction(1, 1000), Fraction(9, 10)),
        (Fraction(800), Fraction(1, 10**6)),
        (Fraction(1), Fraction(1, 10**300)),
        (Fraction(0), Fraction(1, 100)),
        (Fraction(8), Fraction(1, 100)),
    ],
)
def test_mu_is_on_the_private_side_and_tight(epsilon, delta):
    mu = mu_down(epsilon, delta)
    assert delta_bounds(epsilon, mu)[1] <= delta
    assert delta_bounds(epsilon, mu * (1 + Fraction(1, 10**12)))[0] > delta
    denominator = mu.denominator
    assert denominator & (denominator - 1) == 0
    assert mu.numerator.bit_length() <= 48


def test_known_value():
    assert float(mu_down(Fraction(1), Fraction(1, 10**6))) == pytest.approx(0.2367, abs=5e-5)


@settings(max_examples=15, deadline=None)
@given(
    st.fractions(Fraction(1, 100), Fraction(20), max_denominator=1000),
    st.integers(1, 30),
)
def test_the_inverses_agree(epsilon, digits):
    delta = Fraction(1, 10**digits)
    mu = mu_down(epsilon, delta)
    back = epsilon_up(mu, delta)
    assert delta_bounds(back, mu)[1] <= delta
    assert abs(epsilon - back) <= Fraction(1, 10**11) * max(epsilon, Fraction(1))


def test_epsilon_of_a_weak_release_is_zero():
    assert epsilon_up(Fraction(1, 100), Fraction(1, 10)) == 0


def test_extremes_do_not_hang():
    assert mu_down(Fraction(10**300), Fraction(1, 10**6)) == mu_down(EPSILON_CAP, Fraction(1, 10**6))
    assert mu_down(Fraction(1), Fraction(0)) == 0
    assert epsilon_up(Fraction(10**6), Fraction(1, 10**6)) > 5 * 10**11


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(Fraction(-1), Fraction(1, 2)), (Fraction(1), Fraction(1)), (Fraction(1), Fraction(-1))]
)
def test_outside_the_range_is_refused(epsilon, delta):
    with pytest.raises(ValueError, match="delta"):
        mu_down(epsilon, delta)


@given(st.fractions(0, 10**12))
def test_square_roots_are_directed(value):
    low, high = sqrt_down(value), sqrt_up(value)
    assert low * low <= value <= high * high
    assert high - low <= Fraction(1, 2**40) * high


def test_other_measures():
    assert ZERO_CONCENTRATED.gaussian_mu_down({"rho": Fraction(1, 2)}) == 1
    assert RENYI.gaussian_mu_down({"order": Fraction(2), "epsilon": Fraction(1)}) == 1
    assert 1.4142 < ZERO_CONCENTRATED.gaussian_mu_down({"rho": Fraction(1)}) <= math.sqrt(2)
