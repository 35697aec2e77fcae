"""Properties on random small programs: feasibility, sound bounds, monotonicity, degenerate inputs, deadlines."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from privspec.solvers.bounds import factor_root, lower_bound, release_mahalanobis, release_of, root_of
from privspec.solvers.gaussian import rescale, solve_gaussian
from privspec.solvers.programs import (
    Balls,
    Boxes,
    DualPoint,
    ExpectedLoss,
    GaussianProgram,
    GaussianSolution,
    NotSpecialError,
    OutOfTimeError,
    Pairs,
    Site,
    Unprotectable,
    Vectors,
    View,
    WorstLoss,
    explicit,
    largest_norm,
)
from scipy import sparse

quick = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@st.composite
def programs(draw):
    m, n = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    numbers = st.integers(-3, 3).map(float) if draw(st.booleans()) else st.floats(-2, 2).map(lambda x: round(x, 3))
    target = draw(arrays(float, (m, n), elements=numbers))
    assume(np.abs(target).max() > 0.05)
    size = draw(st.sampled_from([0.3, 1.0, 2.5]))
    vectors = Vectors(sparse.csc_array(size * np.eye(n)))
    kinds = [vectors, Balls((np.arange(n),), size), Boxes((np.arange(n),), np.full(n, size))]
    if n > 1:
        kinds += [Pairs(np.arange(n), size), Balls((np.arange(1), np.arange(1, n)), size)]
    views = [View(None, draw(st.sampled_from(kinds)))]
    if m > 1 and draw(st.booleans()):
        rows = np.arange(draw(st.integers(1, m - 1)))
        views.insert(0, View(rows, Vectors(sparse.csc_array(draw(st.sampled_from([0.5, 3.0])) * size * np.eye(n)))))
    loss = WorstLoss(np.eye(m)) if draw(st.booleans()) else ExpectedLoss(np.eye(m))
    sites = (Site("x", target), Site("y", np.eye(m))) if draw(st.booleans()) else None
    return GaussianProgram(target, loss, tuple(views), sites)


def has_effect(program):
    n = program.target.shape[1]
    parts = [program.target @ explicit(view.differences, n).matrix for view in program.views]
    return max(np.abs(part).max(initial=0.0) for part in parts) > 1e-6


def farthest(program, solution):
    """The largest squared Mahalanobis distance of a solution over all views and differences."""
    return release_mahalanobis(program.views, program.target, release_of(program, solution))


@quick
@given(programs())
def test_solutions_are_feasible_and_certified(program):
    assume(has_effect(program))
    solution = solve_gaussian(program)
    assert isinstance(solution, GaussianSolution)
    assert 0 < solution.lower_bound <= solution.value
    assert solution.relative_gap <= 2e-5
    assert farthest(program, solution) < 1


@quick
@given(programs(), st.integers(0, 2**32 - 1))
def test_no_dual_point_exceeds_a_feasible_value(program, seed):
    assume(has_effect(program))
    random = np.random.default_rng(seed)
    solution = solve_gaussian(program)
    n, q = program.target.shape[1], len(program.loss.error_map)
    matrices = tuple(explicit(view.differences, n).matrix for view in program.views)
    weights = tuple(
        random.exponential(size=matrix.shape[1]) * (random.random(matrix.shape[1]) < 0.7) for matrix in matrices
    )
    shares = random.dirichlet(np.ones(q)) if isinstance(program.loss, WorstLoss) else None
    root = random.standard_normal((len(program.target), len(program.target) + 1))
    assert lower_bound(program, DualPoint(matrices, weights, shares), root) <= solution.value


@pytest.mark.slow
@quick
@given(programs())
def test_more_privacy_never_costs_less(program):
    assume(has_effect(program) and len(program.views) > 1)
    fewer = GaussianProgram(program.target, program.loss, program.views[1:], program.sites)
    assert solve_gaussian(fewer).lower_bound <= solve_gaussian(program).value * (1 + 1e-9)


@quick
@given(programs(), st.sampled_from([0.01, 0.5, 3.0, 100.0]))
def test_rescaling_is_solving_again(program, mu):
    assume(has_effect(program))
    solution = rescale(solve_gaussian(program), mu)
    views = []
    for view in program.views:
        matrix = sparse.csc_array(explicit(view.differences, program.target.shape[1]).matrix / mu)
        views.append(View(view.rows, Vectors(matrix)))
    if any(isinstance(view.differences, Balls) for view in program.views):
        return
    other = GaussianProgram(program.target, program.loss, tuple(views), program.sites)
    assert farthest(other, solution) < 1
    again = solve_gaussian(other)
    assert solution.lower_bound <= again.value * (1 + 1e-9)
    assert again.lower_bound <= solution.value * (1 + 1e-9)


@quick
@given(programs())
def test_the_same_program_twice(program):
    assume(has_effect(program))
    first, second = solve_gaussian(program), solve_gaussian(program)
    assert first.value == second.value
    np.testing.assert_array_equal(first.strategy, second.strategy)


def test_duplicate_and_useless_sites(make):
    target = np.tril(np.ones((6, 6)))
    plain = make(target, sites=True)
    zero = Site("nowhere", np.column_stack([np.zeros(6), target[:, 0]]))
    doubled = GaussianProgram(plain.target, plain.loss, plain.views, (*plain.sites, *plain.sites, zero))
    solution = solve_gaussian(doubled)
    assert solution.relative_gap <= 1e-6
    assert solution.value == pytest.approx(solve_gaussian(plain).value, rel=2e-6)
    assert solution.variances[-1][0] == 0.0


def test_vanishing_variances_are_zero(make):
    # one answer that is the sum of all inputs: noise at the answer alone is best
    solution = solve_gaussian(make(np.ones((1, 8)), sites=True))
    assert solution.value == pytest.approx(1.0, rel=1e-6)
    at_input, at_output = solution.variances
    assert np.all((at_input == 0) | (at_input > 1e-3))
    assert at_input.sum() + at_output.sum() == pytest.approx(1.0, rel=1e-6)


def test_unprotectable():
    target = np.array([[1.0, 0.0], [0.0, 1.0]])
    program = GaussianProgram(
        target,
        ExpectedLoss(np.eye(2)),
        (View(None, Vectors(sparse.csc_array(np.eye(2))), "both"),),
        (Site("first", target[:, :1]),),
    )
    result = solve_gaussian(program)
    assert isinstance(result, Unprotectable)
    assert (result.view, result.name) == (0, "both")
    np.testing.assert_array_equal(result.difference, [0.0, 1.0])


def test_unprotected_inputs_keep_the_target(make):
    # the second input is public: its effect passes with nominal noise
    solution = solve_gaussian(make(np.eye(2), differences=Vectors(sparse.csc_array([[1.0], [0.0]]))))
    np.testing.assert_allclose(solution.reconstruction @ solution.strategy, np.eye(2), atol=1e-12)
    assert solution.value == pytest.approx(1.0, rel=1e-6)
    assert any("nominal" in note for note in solution.notes)


def test_large_box(make):
    target = np.random.default_rng(0).standard_normal((20, 16))
    solution = solve_gaussian(make(target, differences=Boxes((np.arange(16),), np.linspace(1, 2, 16))))
    relaxed = float(np.linspace(1, 2, 16) @ np.linalg.norm(target, axis=0)) ** 2
    assert solution.value <= relaxed * (1 + 1e-9)
    assert solution.lower_bound >= 2 / np.pi * solution.value * (1 - 1e-9)
    assert any("box" in note for note in solution.notes)


def test_large_boxes_are_left_to_others(make):
    boxes = Boxes((np.arange(16), np.arange(16, 32)), np.ones(32))
    with pytest.raises(NotSpecialError):
        solve_gaussian(make(np.random.default_rng(0).standard_normal((20, 32)), differences=boxes))


def test_columns_that_are_copies_make_a_large_box_small(make):
    boxes = Boxes((np.arange(16), np.arange(16, 32)), np.ones(32))
    # sixteen equal columns move like one of sixteen times the width
    alone = solve_gaussian(make(np.ones((2, 1)), differences=Boxes((np.arange(1),), np.full(1, 16.0))))
    assert solve_gaussian(make(np.ones((2, 32)), differences=boxes)).value == pytest.approx(alone.value, rel=1e-6)


def test_deadline(make):
    with pytest.raises(OutOfTimeError) as caught:
        solve_gaussian(make(np.tril(np.ones((96, 96))), sites=True), deadline=0.02)
    best = caught.value.best
    assert best is not None
    assert best.relative_gap > 1e-6
    assert 0 <= best.lower_bound < best.value


def test_deadline_among_pairs_and_views(make):
    n = 150
    program = make(np.tril(np.ones((n, n))), sites=True, differences=Pairs(np.arange(n), 1.0))
    with pytest.raises(OutOfTimeError) as caught:
        solve_gaussian(program, deadline=0.05)
    best = caught.value.best
    assert best is not None
    # what was found in time holds for every pair, not only for those that were looked at
    assert farthest(program, best) < 1
    target = np.tril(np.ones((n, n)))
    entries = sparse.csc_array(sparse.eye_array(n))
    views = (View(np.arange(3), Vectors(entries * 30.0)), View(None, Vectors(entries)))
    program = GaussianProgram(target, ExpectedLoss(np.eye(n)), views)
    with pytest.raises(OutOfTimeError) as caught:
        solve_gaussian(program, deadline=0.001)
    best = caught.value.best
    assert best is not None
    assert farthest(program, best) < 1


@pytest.mark.parametrize("sites", [False, True])
def test_progress(make, sites):
    seen = []
    solve_gaussian(make(np.tril(np.ones((12, 12))), sites=sites), progress=lambda *step: seen.append(step))
    assert [step[0] for step in seen] == list(range(1, len(seen) + 1))
    assert all(bound <= value * (1 + 1e-9) for _, value, bound in seen)


def test_many_pairs_at_sites(make):
    # above the number of coordinates whose pairs are listed: every pair must hold all the same
    n = 140
    program = make(np.eye(n), sites=True, differences=Pairs(np.arange(n), 1.0))
    solution = solve_gaussian(program)
    assert solution.value == pytest.approx(2 * n, rel=1e-6)
    assert largest_norm(solution.strategy, program.views[0].differences) < 1


def test_factor_of_nested_views():
    random = np.random.default_rng(3)
    target, root = random.standard_normal((6, 4)), random.standard_normal((6, 6))
    views = (
        View(np.array([4, 1]), Vectors(sparse.csc_array(np.eye(4)))),
        View(np.array([0, 1, 4]), Vectors(sparse.csc_array(np.eye(4)))),
        View(None, Vectors(sparse.csc_array(np.eye(4)))),
    )
    release = factor_root(root_of(root @ root.T), target, views)
    assert release.blocks == (2, 3, 6)
    np.testing.assert_allclose(release.reconstruction @ release.reconstruction.T, root @ root.T, atol=1e-12)
    np.testing.assert_allclose(release.reconstruction @ release.strategy, target, atol=1e-12)
    assert not release.reconstruction[[1, 4], 2:].any()
    assert not release.reconstruction[0, 3:].any()
    covariance = root @ root.T
    exact = max(
        float(np.max(np.diag(target[rows].T @ np.linalg.solve(covariance[np.ix_(rows, rows)], target[rows]))))
        for rows in ([1, 4], [0, 1, 4], list(range(6)))
    )
    assert release_mahalanobis(views, target, release) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("replacing", [False, True])
def test_moments_of_many_values(replacing):
    """1, h, w, hw, h^2 and w^2 of pairs of values: sizes a million apart, more differences than can be weighed."""
    height, weight = (values.ravel().astype(float) for values in np.meshgrid(np.arange(100, 131), np.arange(30, 61)))
    target = np.array([np.ones_like(height), height, weight, height * weight, height**2, weight**2])
    cells = target.shape[1]
    moved = Pairs(np.arange(cells), 1.0) if replacing else Vectors(sparse.csc_array(sparse.identity(cells)))
    program = GaussianProgram(target, ExpectedLoss(np.eye(6)), (View(None, moved),))
    solution = solve_gaussian(program, 1e-6)
    assert solution.relative_gap <= 1e-6
    # few weights prove it: a witness names its differences
    assert len(solution.dual.weights[0]) <= 60
    assert lower_bound(program, solution.dual) == pytest.approx(solution.lower_bound, rel=1e-9)
    assert farthest(program, solution) <= 1 + 1e-9
