"""Gaussian noise of any covariance, for one observer or several: the entry to all special solvers.

Full output covariance, for a trusted curator, is the matrix mechanism (MATH.md section 2): by dual ascent, or by the
barrier method for views that see different rows and for small programs that resist the ascent. Independent noise at
given sites is found by the barrier method too (MATH.md 2); of many pair differences few bind at the optimum, and these
are met by generating rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy
from privspec.solvers import bounds
from privspec.solvers.ascent import Atoms, BallAtoms, PairAtoms, Point, SingleAtoms, ascend, pair_span
from privspec.solvers.barrier import Barrier, Diagonal, Eye, Symmetric
from privspec.solvers.programs import (
    ROUNDS,
    VIOLATED,
    Array,
    Boxes,
    Directions,
    DualPoint,
    ExpectedLoss,
    GaussianProgram,
    GaussianSolution,
    Indices,
    NotSpecialError,
    OutOfTimeError,
    Pairs,
    Progress,
    Streams,
    Unprotectable,
    Vectors,
    View,
    Watch,
    WorstLoss,
    explicit,
    groups,
    large_signs,
    on_block,
    pair_distances,
    pair_matrix,
    same_rows,
    seen_rows,
    sees_all,
    small_boxes,
)

RANGE_TOLERANCE = 1e-9
"""An effect whose part outside the range of the sites is below this fraction counts as inside."""
FREE_COST = 1e-9
"""Cost, relative to the dearest site, given to noise that the loss does not see."""
UNSEEN = 1e-7
"""Weight (as a root, relative) given to output directions that the loss does not see."""
LARGEST = 48
"""Outputs above which the Newton matrix of m (m + 1) / 2 unknowns is too large to be worth it."""
TALL = 4
"""Outputs per input above which the reconstruction goes through an input estimate."""


def barrier_fits(program: GaussianProgram) -> bool:
    """Whether the barrier method over all covariances is small enough."""
    return len(program.target) <= LARGEST and all(
        not isinstance(view.differences, Boxes) or small_boxes(view.differences) for view in program.views
    )


def solve_by_barrier(program: GaussianProgram, tolerance: float, watch: Watch) -> GaussianSolution | Unprotectable:
    """The variances at the sites, or the covariance, that meet every view at least loss.

    Args: tolerance of the relative gap; watch with the deadline in seconds.
    Returns: a strictly feasible solution with its certified lower bound (the gap is the caller's to judge), or
        the difference that no noise at these sites can hide.
    Raises: NotSpecialError for a full covariance of more than 48 outputs; OutOfTimeError at the deadline.
    Source: Ramon & Basu 2020, section 3.2; notes/placement.md.
    """
    m, n = program.target.shape
    free = program.sites is None
    if free and m > LARGEST:
        raise NotSpecialError(f"views of different rows on more than {LARGEST} outputs")
    if isinstance(program.loss, WorstLoss) and program.loss.groups is not None:
        raise NotSpecialError("the largest of several sums under the barrier method")
    maps = np.eye(m) if free else bounds.site_maps(program)
    useful = np.flatnonzero(np.any(maps != 0, axis=0))
    directions = tuple(explicit(view.differences, n) for view in program.views)
    eyes = []
    for index, (view, direction) in enumerate(zip(program.views, directions, strict=True)):
        rows = seen_rows(view, m)
        found = _eye(maps[np.ix_(rows, useful)], effects_of(program.target[rows], direction), direction)
        if isinstance(found, int):
            return Unprotectable(index, view.name, direction.matrix[:, [found]].toarray()[:, 0])
        if found is not None:
            eyes.append(found)
    if not eyes:
        return no_noise(program, watch)
    error_map = _floored(np.asarray(program.loss.error_map @ maps[:, useful]), free)
    chart = Symmetric(m) if free else Diagonal(len(useful))
    first = np.eye(m) if free else np.sum(error_map**2, axis=0) ** -0.25
    barrier = Barrier(chart, eyes, error_map, worst=isinstance(program.loss, WorstLoss))
    result = barrier.minimise(first if free else first / np.max(first), 0.9 * tolerance, watch)
    noise = result.at.state
    if not free:
        noise = np.zeros(maps.shape[1])
        noise[useful] = result.at.state
    root = noise if free else maps * noise
    dual = _dual_point(program, directions, root, barrier.shares(result.at))
    bound = bounds.lower_bound(program, dual, root)
    solution = package(program, noise, dual, bound, "barrier, full covariance" if free else "barrier", watch)
    if not free:
        solution = _pruned(program, noise, solution, maps, watch)
    if result.expired and solution.relative_gap > tolerance:
        raise OutOfTimeError(solution)
    return solution


def effects_of(target: Array, direction: Directions) -> Array:
    """Target @ differences (m, N)."""
    return np.asarray(scipy.sparse.csr_array(direction.matrix.T) @ target.T).T


def _eye(maps: Array, effects: Array, direction: Directions) -> Eye | int | None:
    """The view in coordinates of the range of its maps.

    Returns: the view, with the differences that have no effect left out; None when no difference has one; or the
        column of a difference that the sites cannot hide.
    """
    norms = np.linalg.norm(effects, axis=0)
    if not np.any(norms > 0):
        return None
    left, singular, _ = np.linalg.svd(maps, full_matrices=False)
    basis = left[:, singular > 1e-12 * np.max(singular, initial=0.0)] if singular.size else left[:, :0]
    inside = basis.T @ effects
    outside = np.linalg.norm(effects - basis @ inside, axis=0)
    bad = np.flatnonzero(outside > RANGE_TOLERANCE * norms)
    if bad.size:
        return int(bad[np.argmax(outside[bad])])
    # a single vector without effect constrains nothing; columns of a ball stay together
    alone, _ = groups(direction.sizes)
    kept = norms > 1e-14 * np.max(norms)
    kept[alone:] = True
    sizes = np.concatenate([np.ones(int(np.count_nonzero(kept[:alone])), np.intp), direction.sizes[alone:]])
    return Eye(basis.T @ maps, inside[:, kept], sizes)


def _floored(error_map: Array, free: bool) -> Array:
    """The error map with nominal extra rows for noise that costs (almost) nothing."""
    if free:
        sizes = np.linalg.svd(error_map, compute_uv=False)
        floor = UNSEEN * max(float(sizes[0]), 1e-300)
        lacking = len(sizes) < error_map.shape[1] or sizes[-1] < floor
        return np.vstack([error_map, floor * np.eye(error_map.shape[1])]) if lacking else error_map
    cost = np.sum(error_map**2, axis=0)
    top = float(np.max(cost, initial=0.0))
    floor = FREE_COST * top if top > 0 else 1.0
    return np.vstack([error_map, np.sqrt(floor) * np.eye(len(cost))[cost < floor]])


def _dual_point(
    program: GaussianProgram, directions: tuple[Directions, ...], root: Array, loss_weights: Array
) -> DualPoint:
    """The dual point of the barrier at a covariance root @ root.T, its weights scaled together."""
    parts = [_dual_of(program, view, d, root) for view, d in zip(program.views, directions, strict=True)]
    scale = max((float(p.max(initial=0.0)) for _, p in parts), default=0.0) or 1.0
    shares = None
    if isinstance(program.loss, WorstLoss):
        # rows beyond the loss's own carry nominal costs only
        shares = loss_weights[: program.loss.error_map.shape[0]]
        shares = shares / shares.sum()
    return DualPoint(tuple(d for d, _ in parts), tuple(p / scale for _, p in parts), shares)


def _dual_of(
    program: GaussianProgram, view: View, direction: Directions, root: Array
) -> tuple[scipy.sparse.csc_array, Array]:
    """Weights 1 / (1 - q) of the barrier on the differences of one view; a ball is split into its own axes."""
    rows = seen_rows(view, len(root))
    left, singular, _ = np.linalg.svd(root[rows], full_matrices=False)
    kept = singular > 1e-11 * max(float(np.max(singular, initial=0.0)), 1e-300)
    whitened = (left[:, kept].T @ effects_of(program.target[rows], direction)) / singular[kept, None]
    alone, wide = groups(direction.sizes)
    quadratics = np.sum(whitened[:, :alone] ** 2, axis=0)
    columns = [direction.matrix[:, :alone]]
    weights = [np.where(quadratics > 0, 1 / np.maximum(1 - quadratics, 1e-12), 0.0)]
    for part in wide:
        values, turn = np.linalg.eigh(whitened[:, part].T @ whitened[:, part])
        # turned columns are unit combinations only up to round-off: shrink them so that they stay admissible
        turn = turn / (np.linalg.norm(turn, axis=0) * (1 + 1e-14))
        columns.append(scipy.sparse.csc_array(direction.matrix[:, part] @ turn))
        weights.append(1 / np.maximum(1 - values, 1e-12))
    p = np.concatenate(weights)
    used = np.flatnonzero(p > 0)
    matrix = scipy.sparse.csc_array(scipy.sparse.csc_array(scipy.sparse.hstack(columns))[:, used])
    return matrix, p[used]


def _pruned(
    program: GaussianProgram, state: Array, solution: GaussianSolution, maps: Array, watch: Watch
) -> GaussianSolution:
    """The solution with vanishing variances set to zero, where that costs next to nothing."""
    room = solution.value - solution.lower_bound
    shares = state**2 * np.sum(np.asarray(program.loss.error_map @ maps) ** 2, axis=0)
    small = shares < 0.1 * room / max(len(state), 1)
    if small.any() and not small.all():
        pruned = np.where(small, 0.0, state)
        simpler = package(program, pruned, solution.dual, solution.lower_bound, "barrier", watch)
        # a checker takes the dual vectors from the released covariance: it must still prove the bound
        cheap = simpler.value <= solution.value + 0.2 * room
        if cheap and bounds.lower_bound(program, solution.dual, maps * pruned) >= solution.lower_bound - 0.2 * room:
            return simpler
    return solution


def package(
    program: GaussianProgram,
    noise: Array,
    dual: DualPoint,
    bound: float,
    method: str,
    watch: Watch,
    notes: tuple[str, ...] = (),
) -> GaussianSolution:
    """The solution with this noise, scaled to the boundary; through the inputs when m is large.

    Args: noise a root (m, k) of the covariance or, with sites, the standard deviations (K,) at their coordinates.
    """
    m, n = program.target.shape
    root = noise if program.sites is None else bounds.site_maps(program) * noise
    estimate = variances = None
    if program.sites is None and m > TALL * n and same_rows(program):
        turn, upper = np.linalg.qr(program.target)
        views = tuple(replace(view, rows=None) for view in program.views)
        release, scale = bounds.tighten(views, upper, bounds.factor_root(turn.T @ root, upper, views))
        estimate = np.linalg.lstsq(upper, release.reconstruction, rcond=1e-12)[0]
        reconstruction = program.target @ estimate
    else:
        release, scale = bounds.tighten(
            program.views, program.target, bounds.factor_root(root, program.target, program.views)
        )
        reconstruction = release.reconstruction
    if program.sites is not None:
        splits = np.cumsum([site.map.shape[1] for site in program.sites])[:-1]
        variances = tuple(np.split(noise**2 * scale, splits))
    return GaussianSolution(
        value=bounds.loss_of(program, reconstruction),
        lower_bound=bound,
        strategy=release.strategy,
        reconstruction=None if estimate is not None else reconstruction,
        input_estimate=estimate,
        blocks=release.blocks,
        variances=variances,
        dual=dual,
        method=method,
        iterations=watch.iterations,
        seconds=watch.seconds,
        notes=(*notes, *_notes(release)),
        root=root if program.sites is None else None,
    )


def _notes(release: bounds.Release) -> tuple[str, ...]:
    """What a reader must know about the shape of the release."""
    notes = []
    if not release.nested:
        notes.append("views see different rows that are not nested")
    if release.pinned:
        notes.append("effects that no requirement protects are released with nominal noise")
    return tuple(notes)


def no_noise(program: GaussianProgram, watch: Watch) -> GaussianSolution:
    """Nothing to protect: nominal noise only."""
    m, n = program.target.shape
    nothing = tuple(scipy.sparse.csc_array((n, 0)) for _ in program.views)
    loss = program.loss
    shares = np.full(loss.count, 1 / loss.count) if isinstance(loss, WorstLoss) and loss.count else None
    dual = DualPoint(nothing, tuple(np.zeros(0) for _ in program.views), shares)
    noise = np.zeros((m, 0)) if program.sites is None else np.zeros(bounds.site_maps(program).shape[1])
    return package(program, noise, dual, 0.0, "no noise", watch)


# --- many pairs -----------------------------------------------------------------------------------

LISTED_PAIRS = 128
"""Largest number of coordinates whose pairs are all given to the barrier method at once."""
MAXIMUM_ROUNDS = 30
Listed = dict[int, tuple[Indices, Indices]]
"""By the index of a view, the pairs of its coordinates that are stated so far."""


def solve_placement(program: GaussianProgram, tolerance: float, watch: Watch) -> GaussianSolution | Unprotectable:
    """As `solve_by_barrier`, with the pairs of large views generated as they are violated.

    Every round solves for the pairs found so far, which bounds the loss from below; all pairs are then checked
    through the Gram matrix of the strategy, and the release is scaled until every pair holds.
    """
    active: Listed = {}
    for index, view in enumerate(program.views):
        if isinstance(view.differences, Pairs) and len(view.differences.coordinates) > LISTED_PAIRS:
            k = len(view.differences.coordinates)
            ring = np.arange(k)
            # a ring spans every pair, so that infeasibility shows in the first round
            active[index] = np.tile(ring, 2), np.concatenate([(ring + 1) % k, (ring + k // 2) % k])
    if not active:
        return solve_by_barrier(program, tolerance, watch)
    best: GaussianSolution | None = None
    for _ in range(MAXIMUM_ROUNDS):
        listed = tuple(_listed(view, active.get(i), program) for i, view in enumerate(program.views))
        late = False
        try:
            solution = solve_by_barrier(replace(program, views=listed), tolerance, watch)
        except OutOfTimeError as error:
            # the bound for some of the pairs holds for all; the release must be scaled for the others
            if error.best is None:
                raise OutOfTimeError(best) from None
            solution, late = error.best, True
        if isinstance(solution, Unprotectable):
            return solution
        deviations = np.sqrt(np.concatenate(solution.variances or ()))
        scaled = package(program, deviations, solution.dual, solution.lower_bound, "barrier", watch)
        best = scaled if best is None or scaled.relative_gap < best.relative_gap else best
        if not late and (scaled.relative_gap <= tolerance or not _grow(program, scaled, active)):
            break
        if late or watch.expired:
            raise OutOfTimeError(best)
    assert best is not None
    return best


def _listed(view: View, active: tuple[Indices, Indices] | None, program: GaussianProgram) -> View:
    """The view with its active pairs as single vectors."""
    if active is None or not isinstance(view.differences, Pairs):
        return view
    pairs = view.differences
    coordinates = np.asarray(pairs.coordinates, np.intp)
    matrix = pair_matrix(coordinates, *active, pairs.scale, program.target.shape[1])
    return View(view.rows, Vectors(matrix), view.name)


def _grow(program: GaussianProgram, solution: GaussianSolution, active: Listed) -> bool:
    """Add the pairs of largest distance to the active ones; whether any was new."""
    grown = False
    release = bounds.release_of(program, solution)
    for index, (firsts, seconds) in active.items():
        view = program.views[index]
        assert isinstance(view.differences, Pairs)
        strategy = bounds.view_strategy(view, release, solution.blocks[index], program.target)
        points = strategy[:, view.differences.coordinates]
        points = points - points.mean(axis=1, keepdims=True)
        distances = np.triu(pair_distances(points.T @ points), 1)
        known = np.zeros(distances.shape, bool)
        known[np.minimum(firsts, seconds), np.maximum(firsts, seconds)] = True
        top = float(distances[known].max(initial=0.0))
        distances[known] = 0.0
        flat = np.argsort(distances, axis=None)[::-1][: 2 * len(distances)]
        rows, columns = np.unravel_index(flat, distances.shape)
        fresh = distances[rows, columns] > top * (1 + 1e-9)
        if fresh.any():
            grown = True
            active[index] = (np.concatenate([firsts, rows[fresh]]), np.concatenate([seconds, columns[fresh]]))
    return grown


# --- the program ----------------------------------------------------------------------------------


RANK_TOLERANCE = 1e-11
"""Effects below this fraction of the largest singular value count as zero."""
EXPLICIT_PAIRS = 24
"""Largest number of coordinates whose pairs are listed one by one."""
MANY_INPUTS = 2048
"""Inputs above which no matrix of inputs by inputs is laid out where most of it is zero."""


@dataclass(frozen=True, eq=False, slots=True)
class Reduced:
    """The program in coordinates of the range of the differences' effects.

    `basis` (m, r): outputs of unit coordinates; `inputs` (r, n): coordinates of the effect of each input;
    `error_map` (q, r) of a worst-case loss, None for an expected loss, whose coordinates are orthonormal in the loss.
    """

    basis: Array
    inputs: Array
    error_map: Array | None
    worst: WorstLoss | None = None


def solve_covariance(program: GaussianProgram, tolerance: float, watch: Watch) -> GaussianSolution:
    """The output covariance that meets every view at least loss, to a relative gap of `tolerance`.

    Args: program without sites whose views all see every output row; tolerance relative; watch.
    Returns: a strictly feasible solution with its certified lower bound.
    Raises: NotSpecialError for views of different rows and for large boxes in several blocks; OutOfTimeError.
    Source: MATH.md section 2; notes/placement.md.
    """
    if not same_rows(program):
        raise NotSpecialError("views that see different rows under a full covariance")
    large = [
        view for view in program.views if isinstance(view.differences, Boxes) and not small_boxes(view.differences)
    ]
    if large:
        return _solve_box(program, large[0], watch, tolerance)
    reduced = reduce_outputs(program)
    if reduced is None:
        return no_noise(program, watch)
    spans = [_span(view, program.target.shape[1]) for view in program.views]
    moving = [index for index, span in enumerate(spans) if _moves(program.target, span)]
    if len(moving) < len(program.views):
        # views that no difference moves hold by themselves
        solved = solve_covariance(replace(program, views=tuple(program.views[i] for i in moving)), tolerance, watch)
        return with_idle_views(program, solved, moving)
    atoms = tuple(_atoms(view, reduced.inputs) for view in program.views)
    point = ascend(atoms, reduced.worst, 0.9 * tolerance, watch)
    solution = _finish(program, reduced, atoms, point, watch)
    if watch.expired and solution.relative_gap > tolerance:
        raise OutOfTimeError(solution)
    return solution


def _span(view: View, n: int) -> Array | scipy.sparse.csc_array:
    """Columns that span the differences of the view: mostly zeros where there are many inputs."""
    differences = view.differences
    if isinstance(differences, Pairs):
        if n > MANY_INPUTS:
            first, others = differences.coordinates[:1], np.asarray(differences.coordinates[1:], np.intp)
            rows = np.concatenate([others, np.broadcast_to(first, len(others))])
            values = np.repeat([differences.scale, -differences.scale], len(others))
            return scipy.sparse.csc_array((values, (rows, np.tile(np.arange(len(others)), 2))), shape=(n, len(others)))
        return pair_span(np.asarray(differences.coordinates, np.intp), n) * differences.scale
    if isinstance(differences, Streams):
        return np.eye(n) * differences.reach
    matrix = explicit(differences, n).matrix
    if n > MANY_INPUTS:
        return matrix
    if matrix.shape[1] <= 2 * n:
        return np.asarray(matrix.toarray())
    left, singular, _ = np.linalg.svd((matrix @ matrix.T).toarray())
    return np.asarray(left * np.sqrt(singular))[:, singular > RANK_TOLERANCE**2 * singular[0]]


def _moves(target: Array, span: Array | scipy.sparse.csc_array) -> bool:
    """Whether the differences that these columns span have an effect beyond round-off."""
    if not span.shape[1]:
        return False
    effects, sizes = np.abs(target @ span), np.abs(target)
    largest = np.abs(span).max() if isinstance(span, np.ndarray) else abs(span).max()
    # most surely do, beyond what all entries together could round off
    if effects.max(initial=0.0) > RANK_TOLERANCE * sizes.sum(axis=1).max(initial=0.0) * float(largest):
        return True
    return bool(np.any(effects > RANK_TOLERANCE * (sizes @ abs(span))))


def reduce_outputs(program: GaussianProgram) -> Reduced | None:
    """The program on the range of the effects; None when no difference has an effect."""
    n = program.target.shape[1]
    spans = [_span(view, n) for view in program.views]
    if not any(_moves(program.target, span) for span in spans):
        return None
    effects = np.column_stack([program.target @ span for span in spans])
    if effects.shape[0] > 2 * effects.shape[1]:
        turn, effects = np.linalg.qr(effects)
        left, singular, _ = np.linalg.svd(effects, full_matrices=False)
        left = turn @ left
    else:
        left, singular, _ = np.linalg.svd(effects, full_matrices=False)
    basis = left[:, singular > RANK_TOLERANCE * singular[0]]
    errors = np.asarray(program.loss.error_map @ basis)
    sizes = np.linalg.svd(errors, compute_uv=False)
    unseen = UNSEEN * max(float(sizes[0]), 1e-300)
    if len(sizes) < basis.shape[1] or sizes[-1] < unseen:
        errors = np.vstack([errors, unseen * np.eye(basis.shape[1])])
    inputs = basis.T @ program.target
    if isinstance(program.loss, WorstLoss):
        groups = program.loss.groups
        if groups is not None:
            # rows that stand for what no error sees are groups of their own
            groups = np.concatenate([groups, program.loss.count + np.arange(len(errors) - len(groups))])
        return Reduced(basis, inputs, errors, WorstLoss(errors, groups))
    upper = np.asarray(np.linalg.qr(errors, mode="r"))
    return Reduced(np.linalg.solve(upper.T, basis.T).T, upper @ inputs, None)


def _atoms(view: View, inputs: Array) -> Atoms:
    """The view's differences with their effects in reduced coordinates."""
    n = inputs.shape[1]
    differences = view.differences
    if isinstance(differences, Pairs) and len(differences.coordinates) > EXPLICIT_PAIRS:
        return PairAtoms(inputs[:, np.asarray(differences.coordinates, np.intp)], differences, n)
    direction = explicit(differences, n)
    effects = effects_of(inputs, direction)
    if not direction.single:
        return BallAtoms(effects, direction)
    norms = np.linalg.norm(effects, axis=0)
    kept = np.flatnonzero(norms > 1e-13 * norms.max(initial=0.0))
    return SingleAtoms(effects[:, kept], direction.matrix[:, kept])


def with_idle_views(program: GaussianProgram, solution: GaussianSolution, kept: list[int]) -> GaussianSolution:
    """A solution for some of the views, which all see everything, as one for all of them: the others have no weight."""
    nothing = scipy.sparse.csc_array((program.target.shape[1], 0))
    differences, weights = [nothing] * len(program.views), [np.zeros(0)] * len(program.views)
    for position, index in enumerate(kept):
        differences[index] = solution.dual.differences[position]
        weights[index] = solution.dual.weights[position]
    dual = DualPoint(tuple(differences), tuple(weights), solution.dual.loss_weights)
    return replace(solution, dual=dual, blocks=(len(solution.strategy),) * len(program.views))


def _finish(
    program: GaussianProgram, reduced: Reduced, atoms: tuple[Atoms, ...], point: Point, watch: Watch
) -> GaussianSolution:
    """The release of the best point, with the bound that its dual proves."""
    parts = [part.dual(logs) for part, logs in zip(atoms, point.logs, strict=False)]
    largest = max(float(weights.max(initial=0.0)) for _, weights in parts)
    loss_weights = None
    if reduced.error_map is not None:
        assert isinstance(program.loss, WorstLoss)
        loss_weights = np.exp(point.logs[-1] - point.logs[-1].max())[: program.loss.count]
        loss_weights = loss_weights / loss_weights.sum()
    dual = DualPoint(tuple(d for d, _ in parts), tuple(p / largest for _, p in parts), loss_weights)
    bound = bounds.lower_bound(program, dual)
    return package(program, reduced.basis @ point.root, dual, bound, "matrix mechanism, dual ascent", watch)


def _solve_box(program: GaussianProgram, view: View, watch: Watch, tolerance: float) -> GaussianSolution:
    """One box over one block of many entries: cutting planes over sign vectors, scaled by a bound at the end.

    Every set of sign vectors gives a program whose lower bound holds for the box. The mechanism is the better of
    the last one, scaled until the upper bound of `box_bound` is one, and of independent noise along each edge e_i of
    variance proportional to 1 / ||C F e_i|| (optimal for the relaxation, and within pi/2 of the optimum).
    """
    differences = view.differences
    if len(program.views) > 1 or not isinstance(differences, Boxes) or not isinstance(program.loss, ExpectedLoss):
        raise NotSpecialError("a large box beside other requirements or under a worst-case loss")
    moving = [(block, edges) for block, edges in differences.edges() if len(block)]
    if len(moving) != 1:
        raise NotSpecialError("several box blocks of more than 12 entries")
    ((block, edges),) = moving
    edges = edges[:, np.linalg.norm(program.target[:, block] @ edges, axis=0) > 0]
    effects = program.target[:, block] @ edges
    errors = np.asarray(program.loss.error_map @ effects)
    signs = large_signs(errors.T @ errors, 0)
    note = "a box of many entries: privacy rests on an upper bound, so the gap may stay open"
    solution = None
    for round_ in range(ROUNDS):
        vectors = on_block(edges @ signs, block, program.target.shape[1])
        inner = replace(program, views=(View(view.rows, Vectors(vectors), view.name),))
        solution = solve_covariance(inner, tolerance, watch)
        strategy = solution.strategy[:, block] @ edges
        gram = strategy.T @ strategy
        fresh = large_signs(gram, round_ + 1)
        fresh = fresh[:, np.einsum("ij,ik,kj->j", fresh, gram, fresh) > 1 + VIOLATED]
        if not fresh.shape[1] or watch.expired:
            break
        signs = np.unique(np.hstack([signs, fresh]), axis=1)
    assert solution is not None
    root = solution.reconstruction if solution.input_estimate is None else program.target @ solution.input_estimate
    assert root is not None
    cut = package(program, root, solution.dual, solution.lower_bound, "box cuts", watch, (note,))
    norms = np.linalg.norm(errors, axis=0)
    norms = np.maximum(norms, UNSEEN * norms.max(initial=0.0))
    spread = effects * np.sqrt(norms.sum() / norms)
    plain = package(program, spread, solution.dual, solution.lower_bound, "box relaxation", watch, (note,))
    return cut if cut.value <= plain.value else plain


SLACK = 1e-9
"""Excess of a view's squared distance that is scaled away instead of treated as a violation."""


def solve_observers(program: GaussianProgram, tolerance: float, watch: Watch) -> GaussianSolution:
    """The full output covariance for views that see different rows.

    First without the views that see only a part: often those that see everything imply them. Else by the
    barrier method over all covariances.

    Raises: NotSpecialError for more than 48 outputs; OutOfTimeError at the deadline.
    """
    relaxed = _without_partial_views(program, tolerance, watch)
    return relaxed if relaxed is not None else _by_barrier(program, tolerance, watch)


def solve_complete(program: GaussianProgram, tolerance: float, watch: Watch) -> GaussianSolution:
    """The full output covariance for views that see everything: dual ascent, then the barrier where that stalls."""
    solution = solve_covariance(program, tolerance, watch)
    if solution.relative_gap <= tolerance or not barrier_fits(program):
        return solution
    second = _by_barrier(program, tolerance, watch)
    return second if second.relative_gap < solution.relative_gap else solution


def _by_barrier(program: GaussianProgram, tolerance: float, watch: Watch) -> GaussianSolution:
    solution = solve_by_barrier(program, tolerance, watch)
    assert isinstance(solution, GaussianSolution)  # a covariance of full rank hides everything
    return solution


def _without_partial_views(program: GaussianProgram, tolerance: float, watch: Watch) -> GaussianSolution | None:
    """The solution for the views of everything when it happens to satisfy the others; None otherwise."""
    m, n = program.target.shape
    complete = [index for index, view in enumerate(program.views) if sees_all(view, m)]
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
    release = bounds.factor_root(solution.reconstruction, program.target, program.views)
    if strict and bounds.release_mahalanobis(program.views, program.target, release) > 1 + SLACK:
        return None
    dual = with_idle_views(program, solution, complete).dual
    note = "views that see a part of the outputs are implied by those that see everything"
    notes = (*solution.notes, note)
    found = package(program, solution.reconstruction, dual, solution.lower_bound, solution.method, watch, notes)
    return replace(found, root=solution.root)


def solve_gaussian(
    program: GaussianProgram, tolerance: float = 1e-6, deadline: float | None = None, progress: Progress | None = None
) -> GaussianSolution | Unprotectable:
    """The Gaussian noise of least loss that every view allows, with a certified lower bound.

    Args: program; tolerance on the relative gap; deadline in seconds; progress called in every iteration
        with (iteration, value, lower bound).
    Returns: a strictly feasible solution (its gap can exceed the tolerance when round-off stops the solver: look
        at `relative_gap`), or the difference that cannot be hidden.
    Raises: NotSpecialError if no special solver treats the program; OutOfTimeError at the deadline.
    """
    if program.limits:
        raise NotSpecialError("accuracy limits")
    watch = Watch(deadline, progress)
    program = replace(program, views=tuple(_without_copies(view, program.target) for view in program.views))
    if program.sites is not None:
        return solve_placement(program, tolerance, watch)
    return (solve_complete if same_rows(program) else solve_observers)(program, tolerance, watch)


def _without_copies(view: View, target: Array) -> View:
    """The view without boxes that have the effect of an earlier one, where there are too many to list them all."""
    if not isinstance(view.differences, Boxes) or small_boxes(view.differences):
        return view
    boxes = view.differences
    effects = [moved.tobytes() for moved in boxes.moved(target)]
    first = {effect: number for number, effect in reversed(list(enumerate(effects)))}
    some, lines = [boxes.blocks[i] for i in first.values()], [boxes.lines[i] for i in first.values() if boxes.lines]
    return replace(view, differences=Boxes(tuple(some), boxes.reach, tuple(lines)))


def rescale(solution: GaussianSolution, factor: float) -> GaussianSolution:
    """The solution of the same program after every view's mu was multiplied by one common factor.

    Noise covariances scale by factor^-2, and so do the value and the lower bound: one solve serves a whole sweep.
    """
    if not factor > 0:
        raise ValueError("the factor must be positive")
    square = factor**2
    dual = DualPoint(
        tuple(scipy.sparse.csc_array(part / factor) for part in solution.dual.differences),
        solution.dual.weights,
        solution.dual.loss_weights,
    )
    return replace(
        solution,
        value=solution.value / square,
        lower_bound=solution.lower_bound / square * (1 - 4e-16),
        strategy=solution.strategy * factor,
        reconstruction=None if solution.reconstruction is None else solution.reconstruction / factor,
        input_estimate=None if solution.input_estimate is None else solution.input_estimate / factor,
        variances=None if solution.variances is None else tuple(part / square for part in solution.variances),
        dual=dual,
    )
