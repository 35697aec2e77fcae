"""Exact repair, exact checks, and bounds that hold whatever the multipliers are."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from privspec.solvers.table_programs import (
    CompleteRatio,
    ExactTable,
    PairDual,
    PairRatio,
    TableProgram,
    TableSolution,
    exact_loss,
    ratio_bounds,
    repair,
    violations,
)
from privspec.solvers.tables import solve_table

from tests.solvers.exact_bounds import bound_of, certified_bound, relative_gap


@given(st.fractions(min_value=0, max_value=50, max_denominator=10**6))
def test_ratios_enclose_the_exponential(log_ratio: Fraction) -> None:
    low, high = ratio_bounds(log_ratio)
    assert high - low == (1 if log_ratio else 0)
    # Bounds from the series of e^q with exact remainders, independent of ball arithmetic.
    terms, term, k = Fraction(0), Fraction(1), 0
    while term * 2**70 > 1 or k <= 2 * log_ratio:
        terms += term
        k += 1
        term = term * log_ratio / k
    assert Fraction(low, 2**64) <= terms + 2 * term
    assert terms <= Fraction(high, 2**64)


def test_double_precision_would_be_too_large() -> None:
    too_large = [
        k for k in range(1, 40) if math.floor(Fraction(math.exp(k / 10)) * 2**64) > ratio_bounds(Fraction(k, 10))[0]
    ]
    assert too_large


def line(n: int, epsilon: Fraction = Fraction(1)) -> TableProgram:
    pairs = np.array([(a, b) for a in range(n) for b in (a - 1, a + 1) if 0 <= b < n])
    return TableProgram(np.abs(np.subtract.outer(np.arange(n), np.arange(n))) / n, (PairRatio(pairs, (epsilon,)),))


@given(st.integers(0, 10**6), st.sampled_from([Fraction(1, 100), Fraction(1), Fraction(4)]))
def test_repair_makes_any_table_private(seed: int, epsilon: Fraction) -> None:
    generator = np.random.default_rng(seed)
    table = generator.dirichlet(np.full(6, 0.3), size=6)
    for program in (
        line(6, epsilon),
        replace(line(6), privacy=(CompleteRatio(epsilon), CompleteRatio(epsilon / 2, np.arange(6) // 2))),
    ):
        assert violations(program, repair(program, table)) == []


def test_a_perturbed_entry_is_seen() -> None:
    program = line(7)
    found = solve_table(program)
    assert isinstance(found, TableSolution)
    fine = 1 << 60
    scaled = [[n * fine for n in row] for row in found.exact.numerators]
    assert violations(program, ExactTable(tuple(map(tuple, scaled)), found.exact.denominator * fine)) == []
    scaled[3][2] += found.exact.denominator
    broken = violations(program, ExactTable(tuple(map(tuple, scaled)), found.exact.denominator * fine))
    assert {v.kind for v in broken} >= {"row"}


def test_a_moved_mass_breaks_a_ratio() -> None:
    program = line(7)
    found = solve_table(program)
    assert isinstance(found, TableSolution)
    rows = [list(row) for row in found.exact.numerators]
    step = found.exact.denominator >> 30
    rows[0][0] += step
    rows[0][6] -= step
    assert any(
        v.kind == "ratio" for v in violations(program, ExactTable(tuple(map(tuple, rows)), found.exact.denominator))
    )


@given(st.integers(0, 10**6))
def test_any_multipliers_bound_the_loss(seed: int) -> None:
    program = line(5)
    found = solve_table(program)
    assert isinstance(found, TableSolution)
    dual = found.dual.privacy[0]
    assert isinstance(dual, PairDual)
    noise = np.random.default_rng(seed).normal(0, 0.1, len(dual.values))
    spoilt = replace(found.dual, privacy=(replace(dual, values=dual.values + noise),))
    assert certified_bound(program, spoilt) <= found.value
    assert certified_bound(program, found.dual) <= bound_of(program, found) <= found.value


def test_exact_costs_replace_the_floats() -> None:
    program = line(3)
    exact = np.array([[Fraction(abs(x - y), 3) for y in range(3)] for x in range(3)], dtype=object)
    found = solve_table(program, cost=exact)
    assert isinstance(found, TableSolution)
    assert found.value == exact_loss(program, found.exact, exact)
    assert 3 * found.exact.denominator % found.value.denominator == 0
    bound = bound_of(program, found, exact)
    assert bound <= found.value
    assert relative_gap(found.value, bound) < 1e-9


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(2)])
def test_more_budget_never_raises_the_loss(epsilon: Fraction) -> None:
    tight, wide = solve_table(line(6, epsilon)), solve_table(line(6, epsilon * 2))
    assert isinstance(tight, TableSolution)
    assert isinstance(wide, TableSolution)
    assert wide.value < bound_of(line(6, epsilon), tight)
