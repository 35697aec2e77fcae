"""Full covariance by the barrier method: views that see different rows, and small programs that resist dual ascent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from privspec.solvers.barrier import Barrier, Eye, largest_group
from privspec.solvers.bounds import lower_bound
from privspec.solvers.charts import Symmetric
from privspec.solvers.covariance import UNSEEN, no_noise, package, solve_covariance, with_idle_views
from privspec.solvers.differences import Directions, explicit, seen_rows, small_boxes
from privspec.solvers.factor import factor_root, release_mahalanobis
from privspec.solvers.placement import dual_point, effects_of
from privspec.solvers.programs import Array, Boxes, GaussianProgram, GaussianSolution, WorstLoss
from privspec.solvers.results import NotSpecialError, OutOfTimeError, Watch

LARGEST = 48
"""Outputs above which the Newton matrix of m (m + 1) / 2 unknowns is too large to be worth it."""
SLACK = 1e-9
"""Excess of a view's squared distance that is scaled away instead of treated as a violation."""


def solve_observers(program: GaussianProgram, tolerance: float, watch: Watch) -> GaussianSolution:
    """The full output covariance for views that see different rows.

    First without the views that see only a part: often those that see everything imply them. Else by the
    barrier method over all covariances.

    Raises: NotSpecialError for more than 48 outputs; OutOfTimeError at the deadline.
    """
    relaxed = _without_partial_views(program, tolerance, watch)
    return relaxed if relaxed is not None else solve_by_barrier(program, tolerance, watch)


def solve_complete(program: GaussianProgram, tolerance: float, watch: Watch) -> GaussianSolution:
    """The full output covariance for views that see everything: dual ascent, then the barrier where that stalls."""
    solution = solve_covariance(program, tolerance, watch)
    if solution.relative_gap <= tolerance or not barrier_fits(program):
        return solution
    second = solve_by_barrier(program, tolerance, watch)
    return second if second.relative_gap < solution.relative_gap else solution


def _without_partial_views(program: GaussianProgram, tolerance: float, watch: Watch) -> GaussianSolution | None:
    """The solution for the views of everything when it happens to satisfy the others; None otherwise."""
    m, n = program.target.shape
    complete = [index for index, view in enumerate(program.views) if seen_rows(view, m) is None]
    if not complete or m > 4 * n:
        return None
    smaller = replace(program, views=tuple(program.views[index] for index in complete))
    try:
        solution = solve_complete(smaller, tolerance, watch)
    except OutOfTimeError as late:
        best = None if late.best is None else _with_all_views(program, late.best, complete, watch, strict=False)
        raise OutOfTimeError(best) from None
    return _with_all_views(program, solution, complete, watch, strict=True)


def _with_all_views(
    program: GaussianProgram, solution: GaussianSolution, complete: list[int], watch: Watch, *, strict: bool
) -> GaussianSolution | None:
    """A solution for the complete views as one for all views; None when `strict` and another view objects."""
    if solution.reconstruction is None:
        return None
    release = factor_root(solution.reconstruction, program.target, program.views)
    if strict and release_mahalanobis(program.views, program.target, release) > 1 + SLACK:
        return None
    dual = with_idle_views(program, solution, complete).dual
    note = "views that see a part of the outputs are implied by those that see everything"
    notes = (*solution.notes, note)
    found = package(program, solution.reconstruction, dual, solution.lower_bound, solution.method, notes, watch)
    return replace(found, root=solution.root)


def barrier_fits(program: GaussianProgram) -> bool:
    """Whether the barrier method over all covariances is small enough."""
    return len(program.target) <= LARGEST and all(
        not isinstance(view.differences, Boxes) or small_boxes(view.differences) for view in program.views
    )


def solve_by_barrier(program: GaussianProgram, tolerance: float, watch: Watch) -> GaussianSolution:
    """The full output covariance by the log-barrier Newton method.

    Raises: NotSpecialError for more than 48 outputs; OutOfTimeError at the deadline.
    """
    m, n = program.target.shape
    if m > LARGEST:
        raise NotSpecialError(f"views of different rows on more than {LARGEST} outputs")
    directions = tuple(explicit(view.differences, n) for view in program.views)
    eyes = []
    for view, direction in zip(program.views, directions, strict=True):
        rows = np.arange(m) if (seen := seen_rows(view, m)) is None else seen
        eye = _eye(np.eye(m)[rows], effects_of(program.target[rows], direction), direction)
        if eye is not None:
            eyes.append(eye)
    if not eyes:
        return no_noise(program, watch)
    error_map = np.asarray(program.loss.error_map @ np.eye(m))
    scale = max(float(np.linalg.norm(error_map, 2)), 1e-300)
    sizes = np.linalg.svd(error_map, compute_uv=False)
    if len(sizes) < m or sizes[-1] < UNSEEN * scale:
        error_map = np.vstack([error_map, UNSEEN * scale * np.eye(m)])
    worst = isinstance(program.loss, WorstLoss)
    barrier = Barrier(Symmetric(m), tuple(eyes), error_map, worst=worst)
    result = barrier.minimise(_first_state(eyes, m), 0.9 * tolerance, watch)
    dual = dual_point(program, directions, result.state, result.loss_weights)
    bound = lower_bound(program, dual, result.state)
    solution = package(program, result.state, dual, bound, "barrier, full covariance", (), watch)
    if result.expired and solution.relative_gap > tolerance:
        raise OutOfTimeError(solution)
    return solution


def _eye(maps: Array, effects: Array, direction: Directions) -> Eye | None:
    """The view without single differences that have no effect."""
    norms = np.linalg.norm(effects, axis=0)
    if not np.any(norms > 0):
        return None
    kept = (np.repeat(direction.sizes, direction.sizes) > 1) | (norms > 1e-14 * norms.max())
    alone = int(np.count_nonzero(direction.sizes == 1))
    sizes = np.concatenate([np.ones(int(np.count_nonzero(kept[:alone])), np.intp), direction.sizes[alone:]])
    return Eye(maps, effects[:, kept], sizes)


def _first_state(eyes: list[Eye], m: int) -> Array:
    """A multiple of the identity inside the feasible set."""
    largest = max(largest_group(eye.effects, eye.sizes) for eye in eyes)
    return np.asarray(np.eye(m) * np.sqrt(2 * largest))
