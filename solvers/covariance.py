"""Full output covariance, for a trusted curator: the matrix mechanism (MATH.md section 2)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from privspec.solvers.ascent import Ascent, Point
from privspec.solvers.atoms import Atoms, BallAtoms, PairAtoms, SingleAtoms, pair_span
from privspec.solvers.bounds import lower_bound
from privspec.solvers.boxes import ROUNDS, VIOLATED, large_signs
from privspec.solvers.differences import explicit, same_rows, small_boxes
from privspec.solvers.factor import Release, factor_root, loss_of, tighten
from privspec.solvers.placement import effects_of
from privspec.solvers.programs import (
    Array,
    Balls,
    Boxes,
    DualPoint,
    ExpectedLoss,
    GaussianProgram,
    GaussianSolution,
    Pairs,
    Vectors,
    View,
    WorstLoss,
)
from privspec.solvers.results import NotSpecialError, OutOfTimeError, Watch
from scipy import sparse

RANK_TOLERANCE = 1e-11
"""Effects below this fraction of the largest singular value count as zero."""
UNSEEN = 1e-7
"""Weight (as a root, relative) given to output directions that the loss does not see."""
EXPLICIT_PAIRS = 24
"""Largest number of coordinates whose pairs are listed one by one."""
TALL = 4
"""Outputs per input above which the reconstruction goes through an input estimate."""


@dataclass(frozen=True, eq=False, slots=True)
class Reduced:
    """The program in coordinates of the range of the differences' effects.

    `basis` (m, r): outputs of unit coordinates; `inputs` (r, n): coordinates of the effect of each input;
    `error_map` (q, r) of a worst-case loss, None for an expected loss, whose coordinates are orthonormal in the loss.
    """

    basis: Array
    inputs: Array
    error_map: Array | None


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
    ascent = Ascent(atoms, reduced.error_map, 0.9 * tolerance, watch)
    point = ascent.run()
    solution = _finish(program, reduced, atoms, point, watch)
    if watch.expired and solution.relative_gap > tolerance:
        raise OutOfTimeError(solution)
    return solution


def _span(view: View, n: int) -> Array:
    """Columns that span the differences of the view."""
    differences = view.differences
    if isinstance(differences, Pairs):
        return pair_span(np.asarray(differences.coordinates, np.intp), n) * differences.scale
    matrix = explicit(differences, n).matrix
    if matrix.shape[1] <= 2 * n:
        return np.asarray(matrix.toarray())
    left, singular, _ = np.linalg.svd((matrix @ matrix.T).toarray())
    return np.asarray(left * np.sqrt(singular))[:, singular > RANK_TOLERANCE**2 * singular[0]]


def _moves(target: Array, span: Array) -> bool:
    """Whether the differences that these columns span have an effect beyond round-off."""
    sizes = np.abs(target) @ np.abs(span)
    return bool(np.any(np.abs(target @ span) > RANK_TOLERANCE * sizes))


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
    unseen = UNSEEN * max(float(np.linalg.norm(errors, 2)), 1e-300)
    sizes = np.linalg.svd(errors, compute_uv=False)
    if len(sizes) < basis.shape[1] or sizes[-1] < unseen:
        errors = np.vstack([errors, unseen * np.eye(basis.shape[1])])
    inputs = basis.T @ program.target
    if isinstance(program.loss, WorstLoss):
        return Reduced(basis, inputs, errors)
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
    parts = [part.dual(logs) for part, logs in zip(atoms, point.logs, strict=True)]
    largest = max(float(weights.max(initial=0.0)) for _, weights in parts)
    loss_weights = None
    if point.loss_logs is not None:
        loss_weights = np.exp(point.loss_logs - point.loss_logs.max())[: len(program.loss.error_map)]
        loss_weights = loss_weights / loss_weights.sum()
    dual = DualPoint(tuple(d for d, _ in parts), tuple(p / largest for _, p in parts), loss_weights)
    bound = lower_bound(program, dual)
    return package(program, reduced.basis @ point.root, dual, bound, "matrix mechanism, dual ascent", (), watch)


def package(
    program: GaussianProgram,
    root: Array,
    dual: DualPoint,
    bound: float,
    method: str,
    notes: tuple[str, ...],
    watch: Watch,
) -> GaussianSolution:
    """The solution with covariance root @ root.T (m, k), scaled to the boundary; through the inputs when m is large."""
    m, n = program.target.shape
    if m > TALL * n and same_rows(program):
        turn, upper = np.linalg.qr(program.target)
        views = tuple(View(None, view.differences, view.name) for view in program.views)
        release, _ = tighten(views, upper, factor_root(turn.T @ root, upper, views))
        estimate = np.linalg.lstsq(upper, release.reconstruction, rcond=1e-12)[0]
        reconstruction = program.target @ estimate
    else:
        release, _ = tighten(program.views, program.target, factor_root(root, program.target, program.views))
        estimate, reconstruction = None, release.reconstruction
    return GaussianSolution(
        value=loss_of(program, reconstruction),
        lower_bound=bound,
        strategy=release.strategy,
        reconstruction=None if estimate is not None else reconstruction,
        input_estimate=estimate,
        blocks=release.blocks,
        variances=None,
        dual=dual,
        method=method,
        iterations=watch.iterations,
        seconds=watch.seconds,
        notes=(*notes, *release_notes(release)),
        root=root,
    )


def release_notes(release: Release) -> tuple[str, ...]:
    """What a reader must know about the shape of the release."""
    notes = []
    if not release.nested:
        notes.append("views see different rows that are not nested")
    if release.pinned:
        notes.append("effects that no requirement protects are released with nominal noise")
    return tuple(notes)


def no_noise(program: GaussianProgram, watch: Watch) -> GaussianSolution:
    """Nothing to protect: nominal noise only."""
    empty = explicit(View(None, Balls((), 1.0)).differences, program.target.shape[1]).matrix
    dual = DualPoint(tuple(empty for _ in program.views), tuple(np.zeros(0) for _ in program.views), None)
    return package(program, np.zeros((len(program.target), 0)), dual, 0.0, "no noise", (), watch)


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
        vectors = _signed(signs, block, reach, program.target.shape[1])
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
    cut = package(program, _root(program, solution), solution.dual, solution.lower_bound, "box cuts", (note,), watch)
    norms = np.linalg.norm(errors / reach, axis=0)
    norms = np.maximum(norms, UNSEEN * norms.max(initial=0.0))
    spread = effects * np.sqrt(reach * float(reach @ norms) / norms)
    plain = package(program, spread, solution.dual, solution.lower_bound, "box relaxation", (note,), watch)
    return cut if cut.value <= plain.value else plain


def _root(program: GaussianProgram, solution: GaussianSolution) -> Array:
    """A root of the output covariance of a solution."""
    if solution.reconstruction is not None:
        return solution.reconstruction
    assert solution.input_estimate is not None
    return np.asarray(program.target @ solution.input_estimate)


def _signed(signs: Array, block: np.ndarray, reach: Array, n: int) -> sparse.csc_array:
    """Sign vectors on a block (k, N) as differences (n, N)."""
    rows = np.repeat(block, signs.shape[1])
    columns = np.tile(np.arange(signs.shape[1]), len(block))
    values = (signs * reach[:, None]).ravel()
    return sparse.csc_array(sparse.coo_array((values, (rows, columns)), shape=(n, signs.shape[1])))
