"""Gaussian noise of any covariance, for one observer or several: the entry to all special solvers.

Full output covariance, for a trusted curator, is the matrix mechanism (MATH.md section 2): by dual ascent, or by the
barrier method for views that see different rows and for small programs that resist the ascent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from privspec.solvers.ascent import Atoms, BallAtoms, PairAtoms, Point, SingleAtoms, ascend, pair_span
from privspec.solvers.bounds import factor_root, lower_bound, release_mahalanobis
from privspec.solvers.placement import (
    UNSEEN,
    barrier_fits,
    effects_of,
    no_noise,
    package,
    solve_by_barrier,
    solve_placement,
)
from privspec.solvers.programs import (
    ROUNDS,
    VIOLATED,
    Array,
    Boxes,
    DualPoint,
    ExpectedLoss,
    GaussianProgram,
    GaussianSolution,
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
    large_signs,
    on_block,
    same_rows,
    sees_all,
    small_boxes,
)
from scipy import sparse

RANK_TOLERANCE = 1e-11
"""Effects below this fraction of the largest singular value count as zero."""
EXPLICIT_PAIRS = 24
"""Largest number of coordinates whose pairs are listed one by one."""


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


def _span(view: View, n: int) -> Array:
    """Columns that span the differences of the view."""
    differences = view.differences
    if isinstance(differences, Pairs):
        return pair_span(np.asarray(differences.coordinates, np.intp), n) * differences.scale
    if isinstance(differences, Streams):
        return np.eye(n) * differences.reach
    matrix = explicit(differences, n).matrix
    if matrix.shape[1] <= 2 * n:
        return np.asarray(matrix.toarray())
    left, singular, _ = np.linalg.svd((matrix @ matrix.T).toarray())
    return np.asarray(left * np.sqrt(singular))[:, singular > RANK_TOLERANCE**2 * singular[0]]


def _moves(target: Array, span: Array) -> bool:
    """Whether the differences that these columns span have an effect beyond round-off."""
    effects, sizes = np.abs(target @ span), np.abs(target)
    # most surely do, beyond what all entries together could round off
    if effects.max(initial=0.0) > RANK_TOLERANCE * sizes.sum(axis=1).max(initial=0.0) * np.abs(span).max(initial=0.0):
        return True
    return bool(np.any(effects > RANK_TOLERANCE * (sizes @ np.abs(span))))


def reduce_outputs(program: GaussianProgram) -> Reduced | None:
    """The program on the range of the effects; None when no difference has an effect."""
    n = program.target.shape[1]
    span = np.column_stack([_span(view, n) for view in program.views])
    effects = program.target @ span
    if not _moves(program.target, span):
        return None
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
    nothing = sparse.csc_array((program.target.shape[1], 0))
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
    bound = lower_bound(program, dual)
    return package(program, reduced.basis @ point.root, dual, bound, "matrix mechanism, dual ascent", watch)


def _solve_box(program: GaussianProgram, view: View, watch: Watch, tolerance: float) -> GaussianSolution:
    """One box over one block of many entries: cutting planes over sign vectors, scaled by a bound at the end.

    Every set of sign vectors gives a program whose lower bound holds for the box. The mechanism is the better of
    the last one, scaled until the upper bound of `box_bound` is one, and of independent noise on the inputs of
    variance proportional to reach_i / ||C F e_i|| (optimal for the relaxation, and within pi/2 of the optimum).
    """
    differences = view.differences
    if len(program.views) > 1 or not isinstance(differences, Boxes) or not isinstance(program.loss, ExpectedLoss):
        raise NotSpecialError("a large box beside other requirements or under a worst-case loss")
    blocks = [block[differences.reach[block] > 0] for block in differences.blocks]
    if sum(1 for block in blocks if len(block)) != 1:
        raise NotSpecialError("several box blocks of more than 12 entries")
    block = np.concatenate(blocks)
    block = block[np.linalg.norm(program.target[:, block], axis=0) > 0]
    reach, effects = differences.reach[block], program.target[:, block]
    errors = np.asarray(program.loss.error_map @ effects) * reach
    signs = large_signs(errors.T @ errors, 0)
    note = "a box of many entries: privacy rests on an upper bound, so the gap may stay open"
    solution = None
    for round_ in range(ROUNDS):
        vectors = on_block(signs * reach[:, None], block, program.target.shape[1])
        inner = replace(program, views=(View(view.rows, Vectors(vectors), view.name),))
        solution = solve_covariance(inner, tolerance, watch)
        strategy = solution.strategy[:, block] * reach
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
    norms = np.linalg.norm(errors / reach, axis=0)
    norms = np.maximum(norms, UNSEEN * norms.max(initial=0.0))
    spread = effects * np.sqrt(reach * float(reach @ norms) / norms)
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
    release = factor_root(solution.reconstruction, program.target, program.views)
    if strict and release_mahalanobis(program.views, program.target, release) > 1 + SLACK:
        return None
    dual = with_idle_views(program, solution, complete).dual
    note = "views that see a part of the outputs are implied by those that see everything"
    notes = (*solution.notes, note)
    found = package(program, solution.reconstruction, dual, solution.lower_bound, solution.method, watch, notes)
    return replace(found, root=solution.root)


def solve_gaussian(
    program: GaussianProgram,
    tolerance: float = 1e-6,
    deadline: float | None = None,
    progress: Progress | None = None,
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
    blocks, reach = view.differences.blocks, view.differences.reach
    effects = {(target[:, block] * reach[block]).tobytes(): block for block in reversed(blocks)}
    return replace(view, differences=Boxes(tuple(effects.values()), reach))


def rescale(solution: GaussianSolution, factor: float) -> GaussianSolution:
    """The solution of the same program after every view's mu was multiplied by one common factor.

    Noise covariances scale by factor^-2, and so do the value and the lower bound: one solve serves a whole sweep.
    """
    if not factor > 0:
        raise ValueError("the factor must be positive")
    square = factor**2
    dual = DualPoint(
        tuple(sparse.csc_array(part / factor) for part in solution.dual.differences),
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
