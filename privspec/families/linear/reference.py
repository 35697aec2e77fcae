"""The reference path: the same program through cvxpy, as written in the notes, without any trick.

Slow (an LMI a difference) and therefore the yardstick of the special solvers, and their fallback for programs
that they decline. Beside `finite.reference` the only module of the project that holds cvxpy objects.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import cvxpy
import numpy as np
from scipy import sparse

from privspec.solvers.bounds import factor, loss_of, lower_bound, tighten
from privspec.solvers.programs import (
    Array,
    Balls,
    Boxes,
    Differences,
    DualPoint,
    ExpectedLoss,
    GaussianProgram,
    GaussianSolution,
    OutOfTimeError,
    Pairs,
    ReferenceFailedError,
    SolverError,
    Vectors,
    View,
    WorstLoss,
)

cp: Any = cvxpy
"""cvxpy under its usual name; its atoms are built at run time and have no types."""
LARGEST_CONES = 5e7
"""Squared entries of all cones together: the doubles that one step of the solver factors in a minute or so."""
VERTEX_LIMIT = 12
"""Boxes of at most this many coordinates are written as all their vertices."""


class TooLargeError(SolverError):
    """The program would fill the memory before the general solver begins."""

    def __init__(self, program: GaussianProgram) -> None:
        super().__init__(
            f"{len(program.target)} outputs under {sum(count for _, count in _cones(program)):,} conditions are too "
            "many for the general convex solver, and no special one takes this program"
        )


@dataclass(frozen=True, eq=False, slots=True)
class _Block:
    """One LMI `[[Sigma_o, P F D], [., R]] >= 0` and the columns D that it protects."""

    constraint: Any
    columns: Array
    multiplicity: int


def solve_with_cvxpy(
    program: GaussianProgram, solver: str | None = None, deadline: float | None = None
) -> GaussianSolution:
    """The optimum of a Gaussian program by cvxpy, repaired to strict feasibility and with its dual point.

    Raises: ReferenceFailedError if no usable solution comes back, TooLargeError, OutOfTimeError.
    Source: Ramon & Basu 2020, section 3.2; notes/placement.md (Schur complement form).
    """
    started = time.perf_counter()
    if sum(count * (side * (side + 1) / 2) ** 2 for side, count in _cones(program)) > LARGEST_CONES:
        raise TooLargeError(program)
    m = program.target.shape[0]
    variances: list[Any] = []
    if program.sites is None:
        sigma: Any = cp.Variable((m, m), PSD=True)
    else:
        variances = [cp.Variable(site.map.shape[1], nonneg=True) for site in program.sites]
        sigma = sum(
            (site.map @ cp.diag(s) @ site.map.T for site, s in zip(program.sites, variances, strict=True)),
            start=np.zeros((m, m)),
        )
    blocks = [_view_blocks(program, view, sigma) for view in program.views]
    constraints = [block.constraint for view in blocks for block in view]
    constraints += [c for view in blocks for c in _box_sums(view)]
    C = program.loss.error_map
    row_losses = cp.sum(cp.multiply(C @ sigma, C), axis=1)
    worst_rows: list[Any] = []
    if isinstance(program.loss, WorstLoss):
        top = cp.Variable()
        worst_rows = [row_losses <= top]
        objective = top
    else:
        objective = cp.sum(row_losses)
    limits = [cp.sum(cp.multiply(c.error_map @ sigma, c.error_map)) / c.bound <= 1 for c in program.limits]
    problem = cp.Problem(cp.Minimize(objective), constraints + worst_rows + limits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            options = {"time_limit": deadline} if deadline is not None and solver is None else {}
            problem.solve(solver=solver or cp.CLARABEL, **options)
        except cp.SolverError as error:
            raise ReferenceFailedError("solver_error") from error
    if problem.status == cp.USER_LIMIT:
        raise OutOfTimeError(None)
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise ReferenceFailedError(problem.status)
    loss_weights = None
    if worst_rows:
        raw = np.maximum(np.asarray(worst_rows[0].dual_value, dtype=float), 0.0)
        loss_weights = raw / raw.sum()
    limit_weights = None
    if limits:
        prices = np.array([max(float(c.dual_value), 0.0) for c in limits])
        limit_weights = prices / np.array([c.bound for c in program.limits])
    dual = replace(_dual_point(program, blocks, loss_weights), limit_weights=limit_weights)
    covariance = np.asarray(sigma.value, dtype=float)
    release, scale = tighten(
        program.views, program.target, factor((covariance + covariance.T) / 2, program.target, program.views)
    )
    stats = problem.solver_stats
    return GaussianSolution(
        value=loss_of(program, release.reconstruction),
        lower_bound=_bound(program, dual, release.reconstruction),
        strategy=release.strategy,
        reconstruction=release.reconstruction,
        input_estimate=None,
        blocks=release.blocks,
        variances=tuple(np.maximum(np.asarray(s.value, dtype=float), 0.0) * scale for s in variances) or None,
        dual=dual,
        method=f"cvxpy ({stats.solver_name})",
        iterations=int(stats.num_iters or 0),
        seconds=time.perf_counter() - started,
        root=release.reconstruction,
    )


def _bound(program: GaussianProgram, dual: DualPoint, root: Array) -> float:
    """The certified lower bound; limits join the loss at their prices, and their bounds are paid back."""
    if dual.limit_weights is None:
        return lower_bound(program, dual, root)
    if isinstance(program.loss, WorstLoss):
        weights = dual.loss_weights if dual.loss_weights is not None else np.ones(len(program.loss.error_map))
        loss_rows = np.sqrt(weights)[:, None] * program.loss.error_map
    else:
        loss_rows = program.loss.error_map
    priced = [np.sqrt(nu) * limit.error_map for nu, limit in zip(dual.limit_weights, program.limits, strict=True)]
    joined = replace(program, loss=ExpectedLoss(np.vstack([loss_rows, *priced])), limits=())
    paid = sum(float(nu) * limit.bound for nu, limit in zip(dual.limit_weights, program.limits, strict=True))
    return max(
        lower_bound(joined, replace(dual, limit_weights=None, loss_weights=None), root) - paid * (1 + 1e-15), 0.0
    )


def _cones(program: GaussianProgram) -> Iterator[tuple[int, int]]:
    """Side and number of the positive semidefinite matrices of a program."""
    for view in program.views:
        seen = len(program.target) if view.rows is None else len(view.rows)
        match view.differences:
            case Vectors(matrix):
                yield seen + 1, matrix.shape[1]
            case Pairs(coordinates, _):
                yield seen + 1, len(coordinates) * (len(coordinates) - 1) // 2
            case Balls(ball_blocks, _):
                yield seen + max(len(block) for block in ball_blocks), len(ball_blocks)
            case Boxes(box_blocks, _):
                for block in box_blocks:
                    small = len(block) <= VERTEX_LIMIT
                    yield (seen + 1, 2 ** (len(block) - 1)) if small else (seen + len(block), 1)


def _view_blocks(program: GaussianProgram, view: View, sigma: Any) -> list[_Block]:
    rows = np.arange(program.target.shape[0]) if view.rows is None else view.rows
    seen = sigma[rows, :][:, rows]
    target = program.target[rows]
    blocks = []
    for columns, relaxed in _difference_blocks(view.differences, program.target.shape[1]):
        corner: Any = np.eye(columns.shape[1])
        if relaxed:
            corner = cp.diag(cp.Variable(columns.shape[1], nonneg=True))
        image = target @ columns
        lmi = cp.bmat([[seen, image], [image.T, corner]]) >> 0
        blocks.append(_Block(lmi, columns, columns.shape[1] if relaxed else 0))
    return blocks


def _box_sums(view: list[_Block]) -> list[Any]:
    """For relaxed boxes the corner variable sums to at most one."""
    out = []
    for block in view:
        if block.multiplicity:
            corner = [v for v in block.constraint.variables() if v.shape == (block.multiplicity,)]
            out.append(cp.sum(corner[-1]) <= 1)
    return out


def _difference_blocks(differences: Differences, n: int) -> list[tuple[Array, bool]]:
    """Columns that one LMI protects together, and whether its corner is the relaxed box of notes/placement.md."""
    match differences:
        case Vectors(matrix):
            dense = matrix.toarray()
            return [(dense[:, [i]], False) for i in range(dense.shape[1])]
        case Pairs(coordinates, scale):
            return [
                (scale * (_unit(n, int(i)) - _unit(n, int(j))), False)
                for i, j in itertools.combinations(coordinates, 2)
            ]
        case Balls(ball_blocks, radius):
            return [(radius * np.eye(n)[:, block], False) for block in ball_blocks]
        case Boxes(box_blocks, reach):
            out: list[tuple[Array, bool]] = []
            for block in box_blocks:
                corners = (np.eye(n) * reach)[:, block]
                if len(block) <= VERTEX_LIMIT:
                    signs = itertools.product((1.0, -1.0), repeat=len(block) - 1)
                    out += [((corners @ np.array((1.0, *s)))[:, None], False) for s in signs]
                else:
                    out.append((corners, True))
            return out


def _unit(n: int, i: int) -> Array:
    e = np.zeros((n, 1))
    e[i, 0] = 1.0
    return e


def _dual_point(program: GaussianProgram, blocks: list[list[_Block]], loss_weights: Array | None) -> DualPoint:
    """Weights from the corners of the dual matrices, each split along its eigenvectors."""
    columns, weights = [], []
    for view in blocks:
        found: list[Array] = []
        mass: list[float] = []
        for block in view:
            size = block.columns.shape[1]
            corner = np.asarray(block.constraint.dual_value, dtype=float)[-size:, -size:]
            values, vectors = np.linalg.eigh((corner + corner.T) / 2)
            if block.multiplicity:
                # the dual of a relaxed box has no vertex decomposition; sign vectors of its factors are admissible
                vectors = np.sign(vectors) + (vectors == 0)
            for value, vector in zip(values, vectors.T, strict=True):
                if value > 0:
                    found.append(block.columns @ vector)
                    mass.append(float(value))
        n = program.target.shape[1]
        columns.append(sparse.csc_array(np.array(found).T if found else np.zeros((n, 0))))
        weights.append(np.array(mass))
    return DualPoint(tuple(columns), tuple(weights), loss_weights)
