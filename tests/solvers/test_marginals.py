"""Marginals have a closed form and are rank-deficient: the bound must not be inflated by round-off."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from privspec.solvers.gaussian import solve_gaussian


def marginals(sizes, ways):
    parts = []
    for subset in itertools.combinations(range(len(sizes)), ways):
        factors = [np.eye(size) if axis in subset else np.ones((1, size)) for axis, size in enumerate(sizes)]
        matrix = np.ones((1, 1))
        for factor in factors:
            matrix = np.kron(matrix, factor)
        parts.append(matrix)
    return parts


def closed_form(sizes, up_to):
    axes = range(len(sizes))
    tops = [set(t) for k in range(up_to + 1) for t in itertools.combinations(axes, k)]
    total = 0.0
    for subset in (set(s) for k in range(len(sizes) + 1) for s in itertools.combinations(axes, k)):
        weight = sum(math.prod(sizes[i] for i in axes if i not in top) for top in tops if subset <= top)
        total += math.prod(sizes[i] - 1 for i in subset) * math.sqrt(weight)
    return total**2 / math.prod(sizes)


@pytest.mark.parametrize(
    ("sizes", "up_to"), [((3, 4), 1), ((5, 5), 2), ((4, 4, 4), 1), ((4, 4, 4), 2), ((2, 3, 4, 2), 2)]
)
def test_closed_form(make, sizes, up_to):
    target = np.vstack([part for k in range(up_to + 1) for part in marginals(sizes, k)])
    solution = solve_gaussian(make(target))
    figure = closed_form(sizes, up_to)
    assert solution.lower_bound <= figure
    assert figure <= solution.value * (1 + 1e-12)
    assert solution.relative_gap <= 1e-6


def test_ten_cubed(make):
    sizes = (10, 10, 10)
    # two-way marginals of 1000 cells: 331 outputs of rank 271
    target = np.vstack([part for k in range(3) for part in marginals(sizes, k)])
    solution = solve_gaussian(make(target))
    figure = closed_form(sizes, 2)
    assert solution.lower_bound <= figure <= solution.value * (1 + 1e-12)
    assert solution.relative_gap <= 1e-6
