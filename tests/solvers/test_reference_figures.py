"""Certified optima of MATH.md section 2 (mu = 1, replacing one entry of [0, 1]^n), to a relative gap of 1e-6."""

from __future__ import annotations

import time

import numpy as np
import pytest
from privspec.solvers.gaussian import solve_gaussian
from privspec.solvers.programs import ExpectedLoss, GaussianProgram, GaussianSolution, Vectors, View
from scipy import sparse


def prefix(n):
    return np.tril(np.ones((n, n)))


def ranges(n):
    starts, stops = np.triu_indices(n)
    entries = np.arange(n)
    return ((starts[:, None] <= entries) & (entries <= stops[:, None])).astype(float)


def check(program, figure, *, relative=1e-6):
    solution = solve_gaussian(program)
    assert isinstance(solution, GaussianSolution)
    assert solution.relative_gap <= 1e-6
    assert solution.lower_bound <= figure * (1 + relative)
    assert solution.value >= figure * (1 - relative)
    assert solution.value <= figure * (1 + 1e-6 + relative)
    return solution


@pytest.mark.parametrize(("n", "figure"), [(64, 282.201421), (256, 1631.403046)])
def test_prefix_full(make, n, figure):
    check(make(prefix(n)), figure, relative=2e-9)


@pytest.mark.slow
def test_prefix_full_1024(make):
    started = time.process_time()
    check(make(prefix(1024)), 8944.329202, relative=2e-9)
    assert time.process_time() - started <= 60  # 30 s on two cores


def test_prefix_sites_64(make):
    solution = check(make(prefix(64), sites=True), 371.42, relative=1e-5)
    assert len(solution.variances) == 2


def test_prefix_sites_256(make):
    check(make(prefix(256), sites=True), 2854.76, relative=1e-5)


def test_all_ranges_64(make):
    solution = check(make(ranges(64)), 11024.38151, relative=1e-9)
    assert solution.reconstruction is None
    assert solution.input_estimate.shape == (64, 64)


@pytest.mark.slow
def test_all_ranges_256():
    target = ranges(256)
    loss = ExpectedLoss(sparse.csr_array(sparse.eye_array(len(target))))
    program = GaussianProgram(target, loss, (View(None, Vectors(sparse.csc_array(sparse.eye_array(256)))),))
    check(program, 276929.3084, relative=1e-9)


def test_classics_are_worse(make):
    # noise only at the input, or only at the output, of 256 prefix sums
    input_only, output_only = 32896, 65536
    best = solve_gaussian(make(prefix(256))).value
    assert 20 < input_only / best < output_only / best < 41


def test_wide_gaussian(make):
    target = np.random.default_rng(0).standard_normal((20, 200))
    solution = solve_gaussian(make(target))
    assert solution.relative_gap <= 1e-6
    assert solution.strategy.shape == (20, 200)


def test_random_binary(make):
    target = np.random.default_rng(1).integers(0, 2, (128, 128)).astype(float)
    assert solve_gaussian(make(target)).relative_gap <= 1e-6


@pytest.mark.parametrize("n", [32, 64])
def test_worst_case_prefix(make, n):
    # between the mean error of the expected-loss optimum and its worst row
    program = make(prefix(n), worst=True)
    solution = solve_gaussian(program)
    assert solution.relative_gap <= 1e-6
    expected = solve_gaussian(make(prefix(n)))
    assert expected.lower_bound / n <= solution.value
    assert solution.lower_bound <= np.max(np.sum(expected.reconstruction**2, axis=1))


def test_a_start_from_every_second_difference():
    """It is near the optimum where weights are smooth, and none where they jump; either way the figure is the same."""
    from privspec.solvers.ascent import Ascent, SingleAtoms, from_every_second
    from privspec.solvers.programs import Watch

    watch, some = Watch(), np.random.default_rng(0).exponential(size=(160, 160))
    for effects, smooth in ((prefix(160), True), (np.linalg.cholesky(some @ some.T), False)):
        atoms = SingleAtoms(effects, sparse.csc_array(np.eye(160)))
        first = from_every_second(atoms, 1e-6, watch)
        assert (first is not None) is smooth
        found = Ascent((atoms,), None, 1e-6, watch, None if first is None else [first])
        assert (found.best.gap < 0.05) is smooth
        assert found.run().gap <= 1e-6
