"""Vectors of a ball are put on its grid all at once, as each is by itself."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privspec.execute.data import _balls_at_once, _into_ball


@settings(max_examples=3 * settings().max_examples, deadline=None)
@given(
    st.integers(1, 4).flatmap(lambda d: st.lists(st.lists(st.floats(-1e4, 1e4), min_size=d, max_size=d), min_size=1)),
    st.fractions(Fraction(1, 50), 50, max_denominator=60),
    st.sampled_from([4, 2**20, 2**24, 2**31, 2**52]),
    st.sampled_from([1, 2]),
)
def test_all_at_once_as_each_by_itself(records: list[list[float]], radius: Fraction, count: int, norm: int) -> None:
    steps, sure, cut = _balls_at_once(np.array(records), radius, count, norm)
    for found, fine, whole, record in zip(steps.tolist(), sure.tolist(), cut.tolist(), records, strict=True):
        exact = [int(Fraction(x) * count / radius) for x in record]
        if fine:
            assert found == _into_ball(exact, count, norm)
        assert all(a != a or a == b for a, b in zip(whole, exact, strict=True))


@pytest.mark.parametrize("norm", [1, 2])
def test_most_are_certain(norm: int) -> None:
    records = np.random.default_rng(norm).normal(size=(1000, 3))
    for radius in (Fraction(1), Fraction(3, 7)):
        _, sure, _ = _balls_at_once(records, radius, 2**24, norm)
        assert sure.mean() > 0.99
