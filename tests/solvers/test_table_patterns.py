"""The patterns of note extremal-tables: its figures, and the same optimum as the program over tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privspec.solvers.table_programs import CompleteRatio, TableProgram, TableSolution
from privspec.solvers.tables import solve_table
from scipy.optimize import linprog

Utility = Callable[[np.ndarray], np.ndarray]


def best_patterns(k: int, epsilon: float, utility: Utility) -> tuple[float, np.ndarray]:
    """The largest utility of an epsilon-LDP table on k inputs, and the patterns (k, N) of its columns."""
    high = (np.arange(2**k - 1)[None, :] >> np.arange(k)[:, None] & 1).astype(bool)
    columns = np.where(high, math.exp(epsilon), 1.0)
    found = linprog(-utility(columns), A_eq=columns, b_eq=np.ones(k), method="highs-ds")
    assert found.status == 0
    return -float(found.fun), high[:, found.x > 1e-12]


def information(prior: np.ndarray) -> Utility:
    """Mutual information, in nats, of columns (k, N)."""

    def of(columns: np.ndarray) -> np.ndarray:
        mean = prior @ columns
        return np.asarray(prior @ (columns * np.log(columns)) - mean * np.log(mean))

    return of


def of_subsets(k: int, size: int, epsilon: float) -> float:
    """The information of subset selection under a uniform prior."""
    ratio = math.exp(epsilon)
    mean = (size * ratio + k - size) / k
    return size * ratio * epsilon / (k * mean) - math.log(mean)


@pytest.mark.parametrize(
    ("epsilon", "size"), [("1/10", 3), ("1/4", 3), ("1/2", 3), ("1", 2), ("2", 1), ("3", 1), ("6", 1)]
)
def test_subset_selection_maximises_mutual_information(epsilon: str, size: int) -> None:
    """Six values: three of them up to epsilon 1/2, two at 1, one (k-randomised response) from 2."""
    amount = float(Fraction(epsilon))
    value, patterns = best_patterns(6, amount, information(np.full(6, 1 / 6)))
    assert set(patterns.sum(axis=0).tolist()) == {size}
    assert patterns.shape[1] <= 6
    assert value == pytest.approx(of_subsets(6, size, amount), rel=1e-9)
    assert max(of_subsets(6, s, amount) for s in range(1, 6)) <= value * (1 + 1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 5), st.integers(1, 4), st.sampled_from(["1/2", "1", "3"]), st.integers(0, 10**6))
def test_best_guesses_agree_with_the_program_over_tables(k: int, answers: int, epsilon: str, seed: int) -> None:
    """The expected loss of the best answer: the same optimum as with the answers as outputs."""
    cost = np.random.default_rng(seed).integers(0, 30, (k, answers)) / (30.0 * k)
    value, _ = best_patterns(k, float(Fraction(epsilon)), lambda columns: -np.min(cost.T @ columns, axis=0))
    table = solve_table(TableProgram(cost, (CompleteRatio(Fraction(epsilon)),)))
    assert isinstance(table, TableSolution)
    assert -value == pytest.approx(float(table.value), rel=1e-6, abs=1e-9)
