"""Tiny programs of every kind against the plain semidefinite program."""

from __future__ import annotations

import numpy as np
import pytest
from privspec.solvers.bounds import lower_bound, release_mahalanobis, release_of
from privspec.solvers.gaussian import solve_gaussian
from privspec.solvers.programs import (
    Boxes,
    ExpectedLoss,
    GaussianProgram,
    GaussianSolution,
    Pairs,
    Site,
    Vectors,
    View,
    WorstLoss,
    largest_norm,
)
from scipy import sparse

kinds = pytest.mark.parametrize("worst", [False, True], ids=["expected", "worst"])
places = pytest.mark.parametrize("sites", [False, True], ids=["full", "sites"])


def entries(n, size):
    return Vectors(sparse.csc_array(size * np.eye(n)))


def check(program, reference):
    solution = solve_gaussian(program)
    assert isinstance(solution, GaussianSolution)
    figure = reference(program)
    assert solution.relative_gap <= 1e-6
    assert solution.value == pytest.approx(figure, rel=2e-5)
    assert solution.lower_bound <= figure * (1 + 1e-6)
    assert solution.value <= solution.lower_bound * (1 + 2e-6)
    check_release(program, solution)
    return solution


def check_release(program, solution):
    """What the release says is true: unbiased, feasible for every view, of the loss and covariance it claims."""
    reconstruction = solution.reconstruction
    if reconstruction is None:
        reconstruction = program.target @ solution.input_estimate
    offset = np.abs(reconstruction @ solution.strategy - program.target).max()
    assert offset <= 1e-9 * np.abs(program.target).max()
    covariance = reconstruction @ reconstruction.T
    errors = np.sum((program.loss.error_map @ reconstruction) ** 2, axis=1)
    loss = errors.max() if isinstance(program.loss, WorstLoss) else errors.sum()
    assert solution.value == pytest.approx(loss, rel=1e-12)
    largest = release_mahalanobis(program.views, program.target, release_of(program, solution))
    assert 1 - 1e-9 <= largest <= 1 - 1e-12
    for view in program.views:
        rows = np.arange(len(program.target)) if view.rows is None else view.rows
        # by the root of the covariance: what no loss sees may carry a million times the noise of the rest, and the
        # covariance itself, formed in doubles, would have lost the rest to round-off
        vectors, deviations, _ = np.linalg.svd(reconstruction[rows], full_matrices=False)
        kept = deviations > 1e-13 * deviations[0]
        whitened = (vectors[:, kept] / deviations[kept]).T @ program.target[rows]
        assert largest_norm(whitened, view.differences) <= 1 + 1e-6
    # the dual point proves as much with vectors taken from the released covariance, as a checker takes them
    assert lower_bound(program, solution.dual, reconstruction) >= solution.value * (1 - 2e-6)
    if solution.variances is not None:
        total = sum((site.map * v) @ site.map.T for site, v in zip(program.sites, solution.variances, strict=True))
        np.testing.assert_allclose(total, covariance, atol=1e-6 * np.abs(covariance).max())


@kinds
@places
@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (5, 1), (1, 4)])
def test_entries(make, reference, shape, worst, sites):
    target = np.random.default_rng(sum(shape)).standard_normal(shape)
    check(make(target, worst=worst, sites=sites), reference)


@kinds
@places
def test_pairs(make, reference, worst, sites):
    target = np.random.default_rng(2).standard_normal((4, 5))
    check(make(target, worst=worst, sites=sites, differences=Pairs(np.arange(5), 1.3)), reference)


@kinds
@places
def test_histogram(make, reference, worst, sites):
    # replacing one record of a histogram that is released as it is: the total is protected by nobody
    check(make(np.eye(5), worst=worst, sites=sites, differences=Pairs(np.arange(5), 1.0)), reference)
    check(make(np.eye(5), worst=worst, sites=sites, differences=Pairs(np.arange(3), 1.0)), reference)


@kinds
@places
@pytest.mark.parametrize("sizes", [(6,), (3, 3), (1, 2, 3)], ids=str)
@pytest.mark.parametrize("m", [4, 7])
def test_balls(make, blocks, reference, sizes, m, worst, sites):
    target = np.random.default_rng(m).standard_normal((m, 6))
    check(make(target, worst=worst, sites=sites, differences=blocks(*sizes, radius=0.7)), reference)


@kinds
@places
def test_small_boxes(make, reference, worst, sites):
    target = np.random.default_rng(4).standard_normal((4, 4))
    boxes = Boxes((np.array([0, 1, 2]), np.array([3])), np.array([1, 2, 0.5, 1]))
    check(make(target, worst=worst, sites=sites, differences=boxes), reference)


@kinds
@places
@pytest.mark.parametrize(
    "views",
    [
        (((0, 1), 3.0), (None, 1.0)),
        (((0, 1), 0.8), (None, 1.0)),
        (((0, 1, 2), 1.0), ((2, 3, 4), 2.0)),
        (((0,), 5.0), ((0, 4), 2.0), (None, 1.0)),
    ],
    ids=["nested", "implied", "overlapping", "chain"],
)
def test_several_views(reference, views, worst, sites):
    target = np.random.default_rng(5).standard_normal((5, 4))
    loss = WorstLoss(np.eye(5)) if worst else ExpectedLoss(np.eye(5))
    places = (Site("x", target), Site("y", np.eye(5))) if sites else None
    seen = tuple(View(None if rows is None else np.array(rows), entries(4, size)) for rows, size in views)
    solution = check(GaussianProgram(target, loss, seen, places), reference)
    if len(views) == 3:
        assert solution.blocks == (1, 2, 5)


@kinds
@places
def test_union_of_requirements(reference, worst, sites):
    target = np.random.default_rng(6).standard_normal((5, 4))
    loss = WorstLoss(np.eye(5)) if worst else ExpectedLoss(np.eye(5))
    places = (Site("x", target), Site("y", np.eye(5))) if sites else None
    views = (View(None, entries(4, 1.0)), View(None, Pairs(np.arange(4), 1.0)))
    check(GaussianProgram(target, loss, views, places), reference)


@kinds
@places
def test_loss_of_fewer_terms(reference, worst, sites):
    random = np.random.default_rng(7)
    target, error_map = random.standard_normal((5, 4)), random.standard_normal((3, 5))
    loss = WorstLoss(error_map) if worst else ExpectedLoss(error_map)
    places = (Site("x", target), Site("y", np.eye(5))) if sites else None
    check(GaussianProgram(target, loss, (View(None, entries(4, 1.0)),), places), reference)
