"""Where noise goes: diagonal noise at given places, and noise of many rows of one kind.

Noise at given sites: how much independent Gaussian noise each coordinate of each site gets (MATH.md section 2).

Row generation: many pair differences at restricted sites, of which few bind at the optimum.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from privspec.solvers.barrier import Barrier, BarrierResult, Diagonal, Eye, largest_group
from privspec.solvers.bounds import Release, chain, factor_root, loss_of, lower_bound, tighten, view_strategy
from privspec.solvers.programs import (
    Array,
    Directions,
    DualPoint,
    GaussianProgram,
    GaussianSolution,
    Indices,
    OutOfTimeError,
    Pairs,
    Unprotectable,
    Vectors,
    View,
    Watch,
    WorstLoss,
    explicit,
    pair_distances,
    pair_matrix,
    seen_rows,
)
from scipy import sparse

RANGE_TOLERANCE = 1e-9
"""An effect whose part outside the range of the sites is below this fraction counts as inside."""
FREE_COST = 1e-9
"""Cost, relative to the dearest site, given to noise that the loss does not see."""


def solve_placement(program: GaussianProgram, tolerance: float, watch: Watch) -> GaussianSolution | Unprotectable:
    """Variances at the sites that meet every view at least loss, to a relative gap of `tolerance`.

    Args: program with sites; tolerance relative; watch with the deadline in seconds.
    Returns: a strictly feasible solution with its certified lower bound (the gap is the caller's to judge), or
        the difference that no noise at these sites can hide.
    Raises: OutOfTimeError at the deadline.
    Source: Ramon & Basu 2020, section 3.2; notes/placement.md.
    """
    m, n = program.target.shape
    maps = site_maps(program)
    useful = np.flatnonzero(np.any(maps != 0, axis=0))
    directions = tuple(explicit(view.differences, n) for view in program.views)
    eyes = []
    for index, (view, direction) in enumerate(zip(program.views, directions, strict=True)):
        rows = np.arange(m) if (seen := seen_rows(view, m)) is None else seen
        effects = effects_of(program.target[rows], direction)
        found = reduce_view(maps[np.ix_(rows, useful)], effects, direction)
        if isinstance(found, int):
            column = direction.matrix[:, [found]].toarray()[:, 0]
            return Unprotectable(index, view.name, column)
        if found is not None:
            eyes.append(found)
    error_map = np.asarray(program.loss.error_map @ maps[:, useful])
    if not eyes:
        return assemble(program, np.zeros(maps.shape[1]), maps, tuple(_nothing(d) for d in directions), None, watch)
    error_map = _with_floor(error_map)
    worst = isinstance(program.loss, WorstLoss)
    barrier = Barrier(Diagonal(len(useful)), tuple(eyes), error_map, worst=worst)
    result = barrier.minimise(first_state(eyes, error_map), 0.9 * tolerance, watch)
    state = np.zeros(maps.shape[1])
    state[useful] = result.state
    solution = _finish(program, maps, state, directions, result, watch)
    if result.expired and solution.relative_gap > tolerance:
        raise OutOfTimeError(solution)
    return solution


def site_maps(program: GaussianProgram) -> Array:
    """The maps of all sites side by side (m, K)."""
    if program.sites is None:
        raise ValueError("the program has no sites")
    return np.column_stack([np.zeros((len(program.target), 0)), *(site.map for site in program.sites)])


def effects_of(target: Array, direction: Directions) -> Array:
    """Target @ differences (m, N)."""
    return np.asarray(sparse.csr_array(direction.matrix.T) @ target.T).T


def reduce_view(maps: Array, effects: Array, direction: Directions) -> Eye | int | None:
    """The view in coordinates of the range of its site maps.

    Returns: the view, with the differences that have no effect left out; None when no difference has one; or the
        column of a difference that the sites cannot hide.
    """
    norms = np.linalg.norm(effects, axis=0)
    # a single vector without effect constrains nothing; columns of a ball stay together
    sizes = np.repeat(direction.sizes, direction.sizes)
    kept = (sizes > 1) | (norms > 1e-14 * np.max(norms, initial=0.0))
    if not np.any(norms > 0):
        return None
    left, singular, _ = np.linalg.svd(maps, full_matrices=False)
    basis = left[:, singular > 1e-12 * np.max(singular, initial=0.0)] if singular.size else left[:, :0]
    inside = basis.T @ effects
    outside = np.linalg.norm(effects - basis @ inside, axis=0)
    bad = np.flatnonzero(outside > RANGE_TOLERANCE * norms)
    if bad.size:
        return int(bad[np.argmax(outside[bad])])
    alone = int(np.count_nonzero(direction.sizes == 1))
    group_sizes = np.concatenate([np.ones(int(np.count_nonzero(kept[:alone])), np.intp), direction.sizes[alone:]])
    return Eye(basis.T @ maps, inside[:, kept], group_sizes)


def first_state(eyes: list[Eye], error_map: Array) -> Array:
    """Standard deviations (K,) inside the feasible set: noise inversely to its cost, scaled."""
    cost = np.sum(error_map**2, axis=0)
    state = cost**-0.25
    state = state / np.max(state)
    largest = 0.0
    for eye in eyes:
        _, upper = np.linalg.qr((eye.maps * state).T)
        largest = max(largest, largest_group(np.linalg.solve(upper.T, eye.effects), eye.sizes))
    return np.asarray(state * np.sqrt(2 * largest))


def _with_floor(error_map: Array) -> Array:
    """The error map with a nominal extra row for coordinates that cost (almost) nothing."""
    cost = np.sum(error_map**2, axis=0)
    top = float(np.max(cost, initial=0.0))
    floor = FREE_COST * top if top > 0 else 1.0
    lacking = cost < floor
    if not lacking.any():
        return error_map
    return np.vstack([error_map, np.diag(np.sqrt(np.where(lacking, floor, 0.0)))[lacking]])


def _finish(
    program: GaussianProgram,
    maps: Array,
    state: Array,
    directions: tuple[Directions, ...],
    result: BarrierResult,
    watch: Watch,
) -> GaussianSolution:
    """The dual point at the last centre, and the release after vanishing variances were set to zero."""
    root = maps * state
    dual = dual_point(program, directions, root, result.loss_weights)
    bound = lower_bound(program, dual, root)
    solution = assemble(program, state, maps, dual, bound, watch)
    leeway = 0.2 * (solution.value - bound)
    shares = state**2 * np.sum(np.asarray(program.loss.error_map @ maps) ** 2, axis=0)
    small = shares < 0.1 * (solution.value - bound) / max(len(state), 1)
    if small.any() and not small.all():
        pruned = np.where(small, 0.0, state)
        simpler = assemble(program, pruned, maps, dual, bound, watch)
        # a checker takes the dual vectors from the released covariance: it must still prove the bound
        cheap = simpler.value <= solution.value + leeway
        if cheap and lower_bound(program, dual, maps * pruned) >= bound - leeway:
            return simpler
    return solution


def dual_point(
    program: GaussianProgram, directions: tuple[Directions, ...], root: Array, loss_weights: Array
) -> DualPoint:
    """The dual point of the barrier at a covariance root @ root.T, its weights scaled together."""
    parts = [dual_of(program, index, direction, root) for index, direction in enumerate(directions)]
    largest = max((float(p.max(initial=0.0)) for _, p in parts), default=0.0)
    scale = largest if largest > 0 else 1.0
    shares = None
    if isinstance(program.loss, WorstLoss):
        # rows beyond the loss's own carry nominal costs only
        shares = loss_weights[: program.loss.error_map.shape[0]]
        shares = shares / shares.sum()
    return DualPoint(tuple(d for d, _ in parts), tuple(p / scale for _, p in parts), shares)


def dual_of(program: GaussianProgram, index: int, direction: Directions, root: Array) -> tuple[sparse.csc_array, Array]:
    """Weights 1 / (1 - q) of the barrier on the differences of one view; a ball is split into its own axes."""
    view = program.views[index]
    rows = np.arange(len(root)) if (seen := seen_rows(view, len(root))) is None else seen
    left, singular, _ = np.linalg.svd(root[rows], full_matrices=False)
    kept = singular > 1e-11 * max(float(np.max(singular, initial=0.0)), 1e-300)
    whitened = (left[:, kept].T @ effects_of(program.target[rows], direction)) / singular[kept, None]
    alone = int(np.count_nonzero(direction.sizes == 1))
    quadratics = np.sum(whitened[:, :alone] ** 2, axis=0)
    columns = [direction.matrix[:, :alone]]
    weights = [np.where(quadratics > 0, 1 / np.maximum(1 - quadratics, 1e-12), 0.0)]
    for part in list(direction.slices)[alone:]:
        values, turn = np.linalg.eigh(whitened[:, part].T @ whitened[:, part])
        # turned columns are unit combinations only up to round-off: shrink them so that they stay admissible
        turn = turn / (np.linalg.norm(turn, axis=0) * (1 + 1e-14))
        columns.append(sparse.csc_array(direction.matrix[:, part] @ turn))
        weights.append(1 / np.maximum(1 - values, 1e-12))
    p = np.concatenate(weights)
    used = np.flatnonzero(p > 0)
    matrix = sparse.csc_array(sparse.csc_array(sparse.hstack(columns))[:, used])
    return matrix, p[used]


def _nothing(direction: Directions) -> tuple[sparse.csc_array, Array]:
    """A dual part without weight."""
    return sparse.csc_array((direction.matrix.shape[0], 0)), np.zeros(0)


def assemble(
    program: GaussianProgram,
    state: Array,
    maps: Array,
    dual: DualPoint | tuple[tuple[sparse.csc_array, Array], ...],
    bound: float | None,
    watch: Watch,
) -> GaussianSolution:
    """The solution with standard deviations `state` (K,) at the columns of `maps`, scaled to the boundary."""
    if not isinstance(dual, DualPoint):
        q = len(np.asarray(program.loss.error_map @ np.zeros(len(maps))))
        weights = np.full(q, 1 / q) if isinstance(program.loss, WorstLoss) and q else None
        dual = DualPoint(tuple(d for d, _ in dual), tuple(p for _, p in dual), weights)
    release, scale = tighten(program.views, program.target, factor_root(maps * state, program.target, program.views))
    splits = np.cumsum([site.map.shape[1] for site in program.sites or ()])[:-1]
    notes = []
    if not release.nested:
        notes.append("views see different rows that are not nested")
    if release.pinned:
        notes.append("effects that no requirement protects are released with nominal noise")
    return GaussianSolution(
        value=loss_of(program, release.reconstruction),
        lower_bound=0.0 if bound is None else bound,
        strategy=release.strategy,
        reconstruction=release.reconstruction,
        input_estimate=None,
        blocks=release.blocks,
        variances=tuple(np.split(state**2 * scale, splits)),
        dual=dual,
        method="barrier",
        iterations=watch.iterations,
        seconds=watch.seconds,
        notes=tuple(notes),
    )


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
