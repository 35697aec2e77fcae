"""Exact products and grids against fractions."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privspec.core.matrices import DyadicMatrix, ExactVector, integers, multiply
from privspec.execute import data
from privspec.execute.data import Grid, place_entries
from privspec.kernel.core.linear import ExchangeableUnits, InputLayout
from tests.execute.holding import held


@given(
    st.integers(1, 6),
    st.integers(0, 6),
    st.integers(-70, 70),
    st.integers(1, 60),
    st.integers(1, 200),
    st.integers(0, 2**32),
)
@settings(max_examples=150, deadline=None)
def test_products_are_exact(rows: int, columns: int, exponent: int, bits: int, width: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    matrix = generator.integers(-(2**bits), 2**bits, size=(rows, columns))
    vector = [int(generator.integers(-100, 100)) * 2**width // 7 for _ in range(columns)]
    product = multiply(DyadicMatrix(matrix, exponent), ExactVector(integers(vector), 9)).fractions()
    unit = Fraction(2) ** -exponent
    expected = [sum((int(a) * unit * v for a, v in zip(row, vector, strict=True)), Fraction(0)) / 9 for row in matrix]
    assert product == expected


def test_a_large_product_is_fast() -> None:
    generator = np.random.default_rng(0)
    matrix = DyadicMatrix(generator.integers(-(2**42), 2**42, size=(1700, 1700)), 40)
    vector = ExactVector(integers(generator.integers(0, 2**24, size=1700)), 2**24)
    begin = time.perf_counter()
    product = multiply(matrix, vector)
    assert time.perf_counter() - begin < 2
    row = sum(int(a) * int(v) for a, v in zip(matrix.integers[17], vector.numerators, strict=True))
    assert product.fractions()[17] == Fraction(row, 2**64)


def bounded(lower: Any, upper: Any, size: int, grid: Fraction = Fraction(1, 16)) -> Grid:
    return Grid(held("x", size, lower, upper), grid)


@given(
    st.fractions(min_value=-100, max_value=100, max_denominator=1000),
    st.fractions(min_value=0, max_value=100, max_denominator=1000),
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=5),
)
@settings(max_examples=150, deadline=None)
def test_entries_lie_on_their_grid_inside_the_domain(lower: Fraction, width: Fraction, values: list[float]) -> None:
    entry = bounded(lower, lower + width, len(values), Fraction(1, 2**20))
    for placed, value in zip(place_entries(entry, np.array(values)).fractions(), values, strict=True):
        assert lower <= placed <= lower + width
        if width:
            assert ((placed - lower) / width * 2**20).denominator == 1
        clipped = min(max(value if value == value else 0.0, float(lower)), float(lower + width))
        assert abs(float(placed) - clipped) <= float(width) * 2**-20 + 1e-9


def test_both_ends_of_the_domain_are_on_the_grid() -> None:
    entry = bounded(Fraction(1, 3), Fraction(5, 7), 2)
    assert place_entries(entry, np.array([-9, 9.0])).fractions() == [Fraction(1, 3), Fraction(5, 7)]


def test_inputs_without_bounds_are_on_multiples_of_the_grid() -> None:
    ends = ((-3.3, None, None), (-1, Fraction(0), None), (7.0, None, Fraction(1)))
    placed = [place_entries(bounded(a, b, 1, Fraction(1, 8)), np.array([v])).fractions() for v, a, b in ends]
    assert placed == [[Fraction(-26, 8)], [Fraction(0)], [Fraction(1)]]


@given(
    st.lists(st.floats(-1e200, 1e200), min_size=6, max_size=6),
    st.sampled_from([1, 2]),
    st.fractions(min_value=Fraction(1, 9), max_value=9, max_denominator=9),
)
@settings(max_examples=150, deadline=None)
def test_records_end_inside_their_ball(values: list[float], norm: int, radius: Fraction) -> None:
    entry = Grid(held("V", 6, ball=(radius, 3, norm)), Fraction(1, 2**20))
    placed = place_entries(entry, np.array(values)).fractions()
    for record in (placed[:3], placed[3:]):
        length = sum(abs(x) for x in record) if norm == 1 else sum(x * x for x in record)
        assert length <= (radius if norm == 1 else radius**2)


def test_a_record_in_its_ball_stays_where_it_is() -> None:
    entry = Grid(held("V", 2, ball=(Fraction(2), 2, 2)), Fraction(1, 16))
    assert place_entries(entry, np.array([0.5, -1.0])).fractions() == [Fraction(1, 2), Fraction(-1)]


def test_parts_are_joined_over_one_denominator() -> None:
    joined = ExactVector.joined([ExactVector(integers([1, 2]), 6), ExactVector(integers([3]), 4)])
    assert joined.fractions() == [Fraction(1, 6), Fraction(1, 3), Fraction(3, 4)]


def test_units_are_added_up_some_at_a_time_and_no_number_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    alike, fine = ExchangeableUnits(2, (3, 1, 5, 2, 4), (0, 1, 0, 2, 1)), Fraction(1, 2**53)
    values = np.random.default_rng(5).uniform(-1, 3, 30)
    values[[3, 7, 29]] = np.nan, np.inf, -np.inf
    ends = Fraction(-1, 3), Fraction(2)
    held = InputLayout("x", 0, 30, "entries", (30,), *ends, None, (), None, alike)
    each = place_entries(Grid(replace(held, units=None), fine), values).fractions()
    owners = [own for count, own in zip(alike.counts, alike.classes, strict=True) for _ in range(count)]
    expected = [Fraction(0)] * 6
    for i, value in enumerate(each):
        expected[2 * owners[i // 2] + i % 2] += value
    for size in (1, 4, 7, 2**18):
        monkeypatch.setattr(data, "AT_ONCE", size)
        assert place_entries(Grid(held, fine), values).fractions() == expected
