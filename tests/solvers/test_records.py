"""Records that agree with tables of counts: no change of one value of one record brings them nearer."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from privspec.solvers.records import ENOUGH, Counts, Rows, agreeing


def errors_of(rows: Rows, tables: list[Counts]) -> float:
    total = 0.0
    for one in tables:
        have = np.zeros(one.aims.shape)
        for row in rows.tolist():
            have[tuple(row[column] for column in one.by)] += 1
        total += one.weight * float(np.square(have - one.aims).sum())
    return total


def pairs_of(rows: Rows, sizes: tuple[int, ...]) -> list[Counts]:
    """All two-way tables of records, exactly."""
    found = []
    for by in combinations(range(len(sizes)), 2):
        counts = np.zeros(tuple(sizes[c] for c in by))
        for row in rows.tolist():
            counts[row[by[0]], row[by[1]]] += 1
        found.append(Counts(by, counts))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_no_change_of_one_value_is_better(seed: int) -> None:
    draw = np.random.default_rng(seed)
    sizes, records = (3, 2, 4), 9
    tables = [
        Counts(by, draw.normal(2, 2, tuple(sizes[c] for c in by)), float(draw.integers(1, 5)))
        for by in ((0,), (0, 1), (1, 2), (0, 1, 2))[: 2 + seed % 3]
    ]
    rows = agreeing(sizes, tables, records)
    assert rows.shape == (records, 3)
    assert rows.tolist() == sorted(rows.tolist())
    found = errors_of(rows, tables)
    for record, column in product(range(records), range(3)):
        for value in range(sizes[column]):
            other = rows.copy()
            other[record, column] = value
            # weights and aims are rounded to multiples of 2^-10, and the last sweep may gain a thousandth
            assert errors_of(other, tables) >= found * (1 - ENOUGH) - 0.05


def test_records_of_one_column_are_as_near_as_any() -> None:
    """All multisets are gone through: 126 of five records among five kinds."""
    every = [np.array(some)[:, None] for some in combinations_with_replacement(range(5), 5)]
    for seed in range(20):
        tables = [Counts((0,), np.random.default_rng(seed).normal(1, 1, 5))]
        least = min(errors_of(rows, tables) for rows in every)
        assert errors_of(agreeing((5,), tables, 5), tables) <= least + 0.05


def test_tables_of_real_records_are_met() -> None:
    draw, sizes = np.random.default_rng(7), (4, 3, 2, 5)
    first = draw.integers(0, 4, 2000)
    data = np.column_stack([first, (first + draw.integers(0, 2, 2000)) % 3, first % 2, draw.integers(0, 5, 2000)])
    tables = pairs_of(data, sizes)
    rows = agreeing(sizes, tables, 2000)
    assert max(abs(a.aims - b.aims).max() for a, b in zip(pairs_of(rows, sizes), tables, strict=True)) <= 3


def test_a_table_that_counts_nobody_leaves_all_values_alike() -> None:
    rows = agreeing((2, 3), [Counts((0, 1), -np.ones((2, 3)))], 600)
    assert np.bincount(rows[:, 0] * 3 + rows[:, 1]).tolist() == pytest.approx([100] * 6, abs=1)
