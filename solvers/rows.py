"""Row generation: many pair differences at restricted sites, of which few bind at the optimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from privspec.solvers.differences import pair_distances, pair_matrix
from privspec.solvers.factor import Release, chain, view_strategy
from privspec.solvers.placement import assemble, site_maps, solve_placement
from privspec.solvers.programs import Array, GaussianProgram, GaussianSolution, Pairs, Vectors, View
from privspec.solvers.results import Indices, OutOfTimeError, Unprotectable, Watch

LISTED_PAIRS = 128
"""Largest number of coordinates whose pairs are all given to the barrier method at once."""
MAXIMUM_ROUNDS = 30


def many_pairs(view: View) -> bool:
    """Whether the view has more pairs than the barrier method should list."""
    return isinstance(view.differences, Pairs) and len(view.differences.coordinates) > LISTED_PAIRS


def solve_by_rows(program: GaussianProgram, tolerance: float, watch: Watch) -> GaussianSolution | Unprotectable:
    """As `solve_placement`, with the pairs of large views generated as they are violated.

    Every round solves for the pairs found so far, which bounds the loss from below; all pairs are then checked
    through the Gram matrix of the strategy, and the release is scaled until every pair holds.
    """
    active: dict[int, tuple[Indices, Indices]] = {}
    for index, view in enumerate(program.views):
        if many_pairs(view) and isinstance(view.differences, Pairs):
            k = len(view.differences.coordinates)
            ring = np.arange(k)
            # a ring spans every pair, so that infeasibility shows in the first round
            firsts = np.concatenate([ring, ring])
            seconds = np.concatenate([(ring + 1) % k, (ring + k // 2) % k])
            active[index] = (firsts, seconds)
    best: GaussianSolution | None = None
    maps = site_maps(program)
    for _ in range(MAXIMUM_ROUNDS):
        smaller = replace(
            program,
            views=tuple(_listed(view, active.get(i), program) for i, view in enumerate(program.views)),
        )
        try:
            solution = solve_placement(smaller, tolerance, watch)
        except OutOfTimeError as late:
            # the bound for some of the pairs holds for all; the release must be scaled for the others
            raise OutOfTimeError(_better(best, late.best, program, maps, watch)) from None
        if isinstance(solution, Unprotectable):
            return solution
        scaled = _scaled(solution, program, maps, watch)
        best = _better(best, solution, program, maps, watch)
        if scaled.relative_gap <= tolerance or not _grow(program, scaled, active):
            break
        if watch.expired:
            raise OutOfTimeError(best)
    if best is None:
        raise ValueError("no rounds")
    return best


def _scaled(solution: GaussianSolution, program: GaussianProgram, maps: Array, watch: Watch) -> GaussianSolution:
    """The solution for some of the pairs, scaled until all of them hold."""
    state = np.sqrt(np.concatenate(solution.variances or ()))
    return assemble(program, state, maps, solution.dual, solution.lower_bound, watch)


def _better(
    best: GaussianSolution | None,
    solution: GaussianSolution | None,
    program: GaussianProgram,
    maps: Array,
    watch: Watch,
) -> GaussianSolution | None:
    """The one of smaller gap after scaling."""
    if solution is None:
        return best
    scaled = _scaled(solution, program, maps, watch)
    return scaled if best is None or scaled.relative_gap < best.relative_gap else best


def _listed(view: View, active: tuple[Indices, Indices] | None, program: GaussianProgram) -> View:
    """The view with its active pairs as single vectors."""
    if active is None or not isinstance(view.differences, Pairs):
        return view
    pairs = view.differences
    coordinates = np.asarray(pairs.coordinates, np.intp)
    matrix = pair_matrix(coordinates, *active, pairs.scale, program.target.shape[1])
    return View(view.rows, Vectors(matrix), view.name)


def _grow(program: GaussianProgram, solution: GaussianSolution, active: dict[int, tuple[Indices, Indices]]) -> bool:
    """Add the pairs of largest distance to the active ones; whether any was new."""
    grown = False
    _, nested = chain(program.views, len(program.target))
    outputs = np.zeros((len(program.target), 0)) if solution.reconstruction is None else solution.reconstruction
    release = Release(solution.strategy, outputs, solution.blocks, nested, 0)
    for index, (firsts, seconds) in active.items():
        view = program.views[index]
        if not isinstance(view.differences, Pairs):
            continue
        strategy = view_strategy(view, release, solution.blocks[index], program.target)
        k = len(view.differences.coordinates)
        distances = np.triu(pair_distances(_centred(strategy[:, view.differences.coordinates])), 1)
        known = np.zeros((k, k), bool)
        known[np.minimum(firsts, seconds), np.maximum(firsts, seconds)] = True
        top = float(distances[known].max(initial=0.0))
        distances[known] = 0.0
        flat = np.argsort(distances, axis=None)[::-1][: 2 * k]
        rows, columns = np.unravel_index(flat, distances.shape)
        fresh = distances[rows, columns] > top * (1 + 1e-9)
        if fresh.any():
            grown = True
            active[index] = (np.concatenate([firsts, rows[fresh]]), np.concatenate([seconds, columns[fresh]]))
    return grown


def _centred(points: Array) -> Array:
    """Gram matrix of the points about their mean."""
    centred = points - points.mean(axis=1, keepdims=True)
    return np.asarray(centred.T @ centred)
