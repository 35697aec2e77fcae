"""Sensitivities in exact arithmetic: never below the true one, and hardly above it."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from privspec.solvers.programs import Balls, Boxes, Pairs, Vectors
from scipy import sparse

from privspec.core.matrices import DyadicMatrix
from privspec.families.gaussian.release import exact as exact_matrix
from privspec.families.gaussian.release import length_up
from privspec.kernel.changes import Piece, Units
from privspec.kernel.strategies.dense import Dense

SHAPES = st.tuples(st.integers(1, 4), st.integers(2, 4))
MATRICES = st.one_of(
    arrays.arrays(np.int64, SHAPES, elements=st.integers(-9, 9)),
    arrays.arrays(np.int64, SHAPES, elements=st.integers(-(2**60), 2**60)),
).map(lambda integers: DyadicMatrix(integers, 3))
AMOUNTS = st.fractions(min_value=Fraction(1, 1000), max_value=1000)


def l2_sensitivity_up(strategy: DyadicMatrix, differences: Any) -> Fraction:
    release: Any = SimpleNamespace(strategy=strategy)
    view: Any = SimpleNamespace(differences=differences)
    return length_up(release, view, strategy.shape[0])


def absolute(strategy: DyadicMatrix, scales: tuple[Fraction, ...], pieces: list[Piece], step: Fraction) -> Fraction:
    """The sum of moves in scales, with rounding, as the kernel has it."""
    change = Units(tuple(((piece,), 1) for piece in pieces), 1)
    return Dense(exact_matrix(strategy)).absolute_sensitivity(list(scales), [step] * len(scales), change, {})


def exact(strategy: DyadicMatrix, difference: list[Fraction]) -> list[Fraction]:
    """B d without rounding."""
    rows = strategy.integers.tolist()
    return [sum((value * d for value, d in zip(row, difference, strict=True)), Fraction(0)) / 8 for row in rows]


def squared(strategy: DyadicMatrix, difference: list[Fraction]) -> Fraction:
    return sum((value**2 for value in exact(strategy, difference)), Fraction(0))


def unit(n: int, *changes: tuple[int, Fraction]) -> list[Fraction]:
    out = [Fraction(0)] * n
    for index, amount in changes:
        out[index] = amount
    return out


def check_l2(strategy: DyadicMatrix, differences: Any, extremes: list[list[Fraction]], slack: float = 1e-9) -> None:
    true = max(squared(strategy, difference) for difference in extremes)
    found = l2_sensitivity_up(strategy, differences)
    assert found**2 >= true
    assert float(found) <= float(true) ** 0.5 * (1 + slack) + 1e-300


@given(MATRICES, st.data())
def test_single_coordinates(strategy: DyadicMatrix, data: st.DataObject) -> None:
    n = strategy.shape[1]
    amounts = data.draw(st.lists(AMOUNTS, min_size=n, max_size=n))
    differences = Vectors(sparse.csc_array(np.diag(list(map(float, amounts)))))
    extremes = [unit(n, (i, amounts[i])) for i in range(n)]
    check_l2(strategy, differences, extremes)
    scales = tuple(data.draw(st.lists(AMOUNTS, min_size=strategy.shape[0], max_size=strategy.shape[0])))
    step = data.draw(st.sampled_from([Fraction(0), Fraction(1, 2**30), Fraction(1)]))
    pieces = [Piece((i,), "box", amount) for i, amount in enumerate(amounts)]
    assert absolute(strategy, scales, pieces, step) == l1(strategy, scales, extremes, step)


@given(MATRICES, AMOUNTS, st.data())
def test_pairs(strategy: DyadicMatrix, scale: Fraction, data: st.DataObject) -> None:
    n = strategy.shape[1]
    differences = Pairs(np.arange(n), float(scale))
    extremes = [unit(n, (i, scale), (j, -scale)) for i, j in combinations(range(n), 2)]
    true = max(squared(strategy, d) for d in extremes)
    found = l2_sensitivity_up(strategy, differences)
    assert found**2 >= true
    common = max(squared(strategy, unit(n, (i, scale), (0, -scale))) for i in range(1, n))
    assert float(found) <= float(true) ** 0.5 * (1 + 1e-9) + 1e-6 * float(common) ** 0.5
    scales = tuple(data.draw(st.lists(AMOUNTS, min_size=strategy.shape[0], max_size=strategy.shape[0])))
    extremes = [unit(n, (i, Fraction(1)), (j, Fraction(-1))) for i, j in combinations(range(n), 2)]
    step, one = Fraction(1, 4), Piece(range(n), "swap", Fraction(1))
    assert absolute(strategy, scales, [one], step) == l1(strategy, scales, extremes, step)


def test_records_that_move_together_round_answers_of_their_own() -> None:
    """Two records move in cells apart: four answers move by one, and each may be rounded a step further."""
    strategy, step = DyadicMatrix(np.eye(4, dtype=np.int64), 0), Fraction(1, 8)
    two = Piece(range(4), "swap", Fraction(2))
    assert absolute(strategy, (Fraction(1),) * 4, [two], step) == 4 + 4 * step


def l1(
    strategy: DyadicMatrix, scales: tuple[Fraction, ...], extremes: list[list[Fraction]], step: Fraction
) -> Fraction:
    worst = Fraction(0)
    for difference in extremes:
        moved = exact(strategy, difference)
        worst = max(worst, sum(((abs(m) + step) / b for m, b in zip(moved, scales, strict=True) if m), Fraction(0)))
    return worst


def test_a_constant_that_dwarfs_what_moves_costs_nothing() -> None:
    """The number of records is no secret when they are replaced, however large its weight in the strategy."""
    big = 2**50
    strategy = DyadicMatrix(np.array([[big + 1, big, big - 1]], dtype=np.int64), 0)
    assert float(l2_sensitivity_up(strategy, Pairs(np.arange(3), 1.0))) == pytest.approx(2, rel=1e-6)


@given(MATRICES, AMOUNTS)
def test_balls(strategy: DyadicMatrix, radius: Fraction) -> None:
    n = strategy.shape[1]
    found = l2_sensitivity_up(strategy, Balls((np.arange(n),), float(radius)))
    gram = [[sum(a * b for a, b in zip(p, q, strict=True)) for q in columns(strategy)] for p in columns(strategy)]
    largest = np.linalg.eigvalsh(np.array(gram, dtype=float))[-1] / 64
    assert float(found) == pytest.approx(float(radius) * max(largest, 0.0) ** 0.5, rel=1e-9, abs=1e-12)
    # no vector of the ball is moved further: probe with the axes, exactly
    assert found**2 >= max(squared(strategy, unit(n, (i, radius))) for i in range(n))


def columns(strategy: DyadicMatrix) -> list[list[int]]:
    return [[int(v) for v in column_] for column_ in strategy.integers.T]


@given(MATRICES, st.data())
def test_boxes(strategy: DyadicMatrix, data: st.DataObject) -> None:
    n = strategy.shape[1]
    reach = data.draw(st.lists(AMOUNTS, min_size=n, max_size=n))
    extremes = [[s * r for s, r in zip(signs, reach, strict=True)] for signs in product((1, -1), repeat=n)]
    check_l2(strategy, Boxes((np.arange(n),), np.array(list(map(float, reach)))), extremes)


@pytest.mark.parametrize("n", [1, 14, 15, 18])
def test_wide_boxes_are_bounded_from_above(n: int) -> None:
    dice = np.random.default_rng(n)
    strategy = DyadicMatrix(dice.integers(-5, 6, size=(3, n)), 3)
    reach = [Fraction(int(k), 3) for k in dice.integers(1, 5, size=n)]
    found = l2_sensitivity_up(strategy, Boxes((np.arange(n),), np.array(list(map(float, reach)))))
    signs = np.array(list(product((1.0, -1.0), repeat=n - 1))).reshape(2 ** (n - 1), n - 1)
    corners = np.hstack([np.ones((len(signs), 1)), signs]) * np.array([float(r) for r in reach])
    true = float(np.sqrt(((corners @ strategy.to_float().T) ** 2).sum(axis=1).max()))
    assert true * (1 - 1e-12) <= float(found) <= true * (1.5 if n > 14 else 1 + 1e-9)


def test_blocks_stand_for_themselves() -> None:
    """The worst block counts, not their sum."""
    strategy = DyadicMatrix(np.array([[3, 4, 1, 0], [0, 0, 0, 2]], dtype=np.int64), 0)
    blocks = (np.array([0, 1]), np.array([2, 3]))
    reach = np.ones(4)
    assert float(l2_sensitivity_up(strategy, Boxes(blocks, reach))) == pytest.approx(7)
    assert float(l2_sensitivity_up(strategy, Balls(blocks, 1.0))) == pytest.approx(5)


def test_an_l1_sensitivity_of_a_box_adds_up_its_numbers() -> None:
    identity, scales = DyadicMatrix(np.eye(2, dtype=np.int64), 0), (Fraction(1),) * 2
    box = tuple(Piece((i,), "box", Fraction(1 + 2 * i)) for i in range(2))
    change = Units(((box, 1),), 1)
    assert Dense(exact_matrix(identity)).absolute_sensitivity(list(scales), [Fraction(0)] * 2, change, {}) == 4
