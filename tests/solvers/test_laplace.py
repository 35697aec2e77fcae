"""Laplace scales: certified, in agreement with cvxpy; the bound for every unbiased mechanism."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privspec.solvers.laplace import laplace_bound, laplace_scales


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_certified(count, size, seed):
    random = np.random.default_rng(seed)
    costs = random.exponential(size=(count, size)) * (random.random((count, size)) < 0.6)
    weights = random.exponential(size=size) + 0.05
    solution = laplace_scales(costs, weights)
    touched = costs.sum(axis=0) > 0
    assert np.all((solution.scales > 0) == touched)
    assert np.all(costs[:, touched] @ (1 / solution.scales[touched]) <= 1)
    assert solution.lower_bound <= solution.value
    assert solution.relative_gap <= 1e-6
    assert laplace_bound(costs, weights, random.exponential(size=count)) <= solution.value


def test_against_cvxpy():
    random = np.random.default_rng(0)
    costs, weights = random.exponential(size=(12, 7)), random.exponential(size=7) + 0.1
    inverse = cp.Variable(7, pos=True)
    problem = cp.Problem(cp.Minimize(weights @ cp.power(inverse, -2)), [costs @ inverse <= 1])
    problem.solve(solver=cp.CLARABEL)
    assert laplace_scales(costs, weights).value == pytest.approx(problem.value, rel=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_limits_and_worst_cases_against_cvxpy(seed):
    random = np.random.default_rng(seed)
    costs, weights = random.exponential(size=(9, 5)), random.exponential(size=(3, 5)) + 0.1
    errors = random.exponential(size=(2, 5)) * (random.random((2, 5)) < 0.7) + 0.01
    free = laplace_scales(costs, weights).scales
    inverse, top = cp.Variable(5, pos=True), cp.Variable()
    for share in (2.0, 0.9, 0.6, 0.01):
        bounds = share * (errors @ free**2)
        constraints = [costs @ inverse <= 1, errors @ cp.power(inverse, -2) <= bounds]
        problem = cp.Problem(cp.Minimize(top), [*constraints, weights @ cp.power(inverse, -2) <= top])
        problem.solve(solver=cp.CLARABEL)
        found = laplace_scales(costs, weights, limits=(errors, bounds))
        if problem.status == cp.INFEASIBLE:
            assert found is None
            continue
        assert found.value == pytest.approx(problem.value, rel=1e-5)
        assert found.value == pytest.approx((weights @ found.scales**2).max(), rel=1e-9)
        assert np.all(costs @ (1 / found.scales) <= 1)
        assert np.all(errors @ found.scales**2 <= bounds)
        assert 0 <= found.relative_gap <= 1e-6


def test_differences_that_move_one_row_each():
    costs = np.array([[2.0, 0, 0], [0, 3, 0], [1, 0, 0], [0, 0, 0]])
    found = laplace_scales(costs, np.array([1.0, 2, 5]))
    np.testing.assert_allclose(found.scales, [2, 3, 0], rtol=1e-12)
    assert found.value == pytest.approx(4 + 18, rel=1e-12)
    assert laplace_bound(costs, np.array([1.0, 2, 5]), found.dual) == pytest.approx(22, rel=1e-12)
    assert laplace_scales(costs, np.ones(3), limits=(np.array([[0.0, 1, 0]]), np.array([8.9]))) is None
    assert laplace_scales(costs, np.ones(3), limits=(np.array([[0.0, 1, 0]]), np.array([9.1]))) is not None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e-17, 1e-9, 1e9])
def test_rows_that_move_very_unequally(size):
    """No warning, and the closed form for one difference."""
    costs, weights = np.array([[1.0, 1.0, size]]), np.ones(3)
    value = float(np.sum(costs[0] ** (2 / 3))) ** 3
    assert laplace_scales(costs, weights).value == pytest.approx(value, rel=2e-6)


def test_closed_form_of_one_neighbour():
    # minimise sum w b^2 subject to sum c / b = 1: b proportional to (c / w)^(1/3)
    costs, weights = np.array([[1.0, 2.0, 0.5]]), np.array([1.0, 3.0, 0.2])
    value = float(np.sum(weights ** (1 / 3) * costs[0] ** (2 / 3))) ** 3
    assert laplace_scales(costs, weights).value == pytest.approx(value, rel=1e-6)


def test_larger_program():
    random = np.random.default_rng(1)
    costs = np.abs(np.tril(random.standard_normal((150, 150))))
    assert laplace_scales(costs, np.ones(150)).relative_gap <= 1e-6


def test_bad_weights():
    with pytest.raises(ValueError, match="positive"):
        laplace_scales(np.ones((1, 2)), np.array([1.0, 0.0]))
