from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privspec.certify import exact


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(1, 6), st.integers(1, 60), st.integers(0, 2**32))
def test_gram_and_column_norms_are_exact(rows: int, columns: int, bits: int, seed: int) -> None:
    integers = np.random.default_rng(seed).integers(-(2**bits), 2**bits, (rows, columns))
    big = [[int(v) for v in row] for row in integers]
    gram = exact.exact_gram(integers)
    squares = exact.exact_squares(integers).list()
    for i in range(columns):
        assert squares[i] == sum(row[i] ** 2 for row in big)
        for j in range(columns):
            assert gram.at((i, j)) == sum(row[i] * row[j] for row in big)
    assert gram.largest() == max(gram.list())
    truth = np.array(gram.list(), dtype=object).reshape(columns, columns)
    floats = gram.to_float()
    for value, double in zip(truth.ravel(), floats.ravel(), strict=True):
        assert abs(value - Fraction(float(double))) <= exact.ROUNDINGS * exact.UNIT_ROUNDOFF * abs(value)


def test_gram_at_the_size_of_real_strategies() -> None:
    integers = np.random.default_rng(0).integers(-(2**42), 2**42, (1024, 40))
    gram = exact.exact_gram(integers)
    column = [int(v) for v in integers[:, 3]]
    other = [int(v) for v in integers[:, 17]]
    assert gram.at((3, 17)) == sum(a * b for a, b in zip(column, other, strict=True))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 8), st.integers(0, 2**32))
def test_eigenvalue_bound_is_above_and_close(size: int, seed: int) -> None:
    half = np.random.default_rng(seed).standard_normal((size, size))
    matrix = half @ half.T
    bound = exact.largest_eigenvalue_up(matrix)
    truth = float(np.linalg.eigvalsh(matrix)[-1])
    assert truth * (1 - 1e-13) <= bound <= truth * (1 + 1e-10)
    assert not exact.is_nonnegative((truth * (1 - 1e-9)) * np.eye(size) - matrix)


def test_privacy_curve_against_the_formula() -> None:
    from statistics import NormalDist

    phi = NormalDist().cdf
    for epsilon, mu in ((1.0, 0.5), (0.1, 0.1), (3.0, 1.0)):
        value = phi(mu / 2 - epsilon / mu) - np.exp(epsilon) * phi(-mu / 2 - epsilon / mu)
        ball = exact.privacy_curve(Fraction(epsilon), Fraction(mu))
        assert float(ball.mid()) == pytest.approx(value, rel=1e-7, abs=1e-12)
    assert float(exact.privacy_curve(Fraction(800), Fraction(1, 2)).mid()) < 1e-300


def test_largest_mu_is_just_above_the_root() -> None:
    mu = exact.largest_mu_up(Fraction(1), Fraction(1, 10**6))
    assert mu == pytest.approx(0.2367, abs=1e-4)
    assert not exact.at_most(exact.privacy_curve(Fraction(1), Fraction(mu)), Fraction(1, 10**6))
    below = Fraction(mu) * (1 - Fraction(1, 10**12))
    assert exact.at_most(exact.privacy_curve(Fraction(1), below), Fraction(1, 10**6))


def test_hammersley_is_rounded_up() -> None:
    value = exact.hammersley_mu_up(Fraction(1))
    assert 2 * np.sinh(0.5) <= value <= 2 * np.sinh(0.5) * (1 + 1e-14)


def test_square_roots_round_up() -> None:
    for value in (Fraction(0), Fraction(2), Fraction(1, 3), Fraction(10**30)):
        root = exact.sqrt_up(value)
        assert root * root >= value
        assert float(root) == pytest.approx(float(value) ** 0.5, abs=1e-12)
