"""Several numbers that change at once: noise and a dual point that are better than those for single numbers.

Sums of up to `count` columns, each with the sign that hides it least, are differences too, `count` times as large as
those meant. From each of some columns others are added that the best noise for single columns hides least beside it.
With D their effects on the errors and K = D'D, weights p prove (tr (p^1/2 K p^1/2)^1/2)^2 / sum p, the squared nuclear
norm of D p^1/2: at its largest, p is the diagonal of that root, over its trace (Pukelsheim 1993), which is iterated.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy
from privspec.solvers.bounds import loss_of, nuclear_bound, weighted_error_map
from privspec.solvers.gaussian import package
from privspec.solvers.programs import (
    Array,
    GaussianProgram,
    GaussianSolution,
    Vectors,
    Watch,
    at_once,
    sees_all,
)

from privspec.kernel.changes import CROWD

MOST = 128
"""Sums that are taken, and the columns that they begin with."""
ROUNDS = 60
LEAST = 1e-9


def several_at_once(program: GaussianProgram, solution: GaussianSolution) -> GaussianSolution:
    """The solution with less noise where more of each number by itself is hidden, and a dual point of sums.

    Its bound is about differences `count` times as large as those meant. One view of all outputs, and noise of any
    covariance.
    """
    (view, *more) = program.views
    found, seen = view.differences, sees_all(view, len(program.target))
    if more or program.sites is not None or not isinstance(found, Vectors) or not seen:
        return solution
    matrix, count = found.matrix, found.count
    if not 1 < count < matrix.shape[1] <= CROWD:
        return solution
    moved = np.asarray(solution.strategy @ matrix)
    sums = matrix @ scipy.sparse.csc_array(_groups(moved, count))
    effects = np.asarray(weighted_error_map(program, solution.dual) @ (program.target @ sums.toarray()))
    weights = _weights(effects.T @ effects)
    kept = weights > LEAST
    dual = replace(solution.dual, differences=(scipy.sparse.csc_array(sums[:, kept]),), weights=(weights[kept],))
    bound = nuclear_bound(program, dual)
    if bound < solution.lower_bound:
        dual, bound = solution.dual, solution.lower_bound
    root = _apart(program, moved, matrix, count) if matrix.shape[0] == matrix.shape[1] else None
    if root is None:
        return replace(solution, dual=dual, lower_bound=bound)
    return package(program, root, dual, bound, solution.method, Watch(None, None), solution.notes)


def _apart(program: GaussianProgram, moved: Array, matrix: scipy.sparse.csc_array, count: int) -> Array | None:
    """A root of the best covariance where t times as much tells of each number apart; None where t = 0 is best.

    `moved` (k, n): what the strategy does to each difference. So that what numbers do together is less, and each alone
    more, its products have the same added to all of their diagonal.
    """
    values, vectors = np.linalg.eigh(moved.T @ moved)
    scale, effects = float(values.mean()), np.asarray(program.target @ (matrix @ vectors))

    def tried(share: float) -> tuple[float, Array]:
        own = np.sqrt(np.maximum(values, 0.0) + share * scale)
        root = effects / own
        return loss_of(program, root) * at_once(vectors * own, count), root

    steps = [2.0**k for k in range(-4, 7)]
    best = min(steps, key=lambda share: tried(share)[0])
    best = min((best * 2**k for k in (-0.5, -0.25, 0.0, 0.25, 0.5)), key=lambda share: tried(share)[0])
    least, root = tried(best)
    own = loss_of(program, effects / np.sqrt(np.maximum(values, LEAST * scale)))
    return root if least < own * at_once(moved.T, count) else None


def _groups(moved: Array, count: int) -> Array:
    """Columns (N, s) of signs: up to `count` of N columns of `moved` that are longest together, from each of some."""
    gram, size = moved.T @ moved, moved.shape[1]
    starts = np.unique(np.linspace(0, size - 1, min(size, MOST)).round().astype(np.intp))
    found = np.zeros((size, len(starts)))
    for number, start in enumerate(starts.tolist()):
        signs, pull = found[:, number], gram[start].copy()
        signs[start] = 1.0
        for _ in range(count - 1):
            gain = np.where(signs == 0, 2 * np.abs(pull) + np.diag(gram), -np.inf)
            best = int(gain.argmax())
            signs[best] = 1.0 if pull[best] >= 0 else -1.0
            pull += signs[best] * gram[best]
    return found


def _weights(gram: Array) -> Array:
    """Weights (s,) that sum to one."""
    weights = np.full(len(gram), 1 / len(gram))
    for _ in range(ROUNDS):
        root = np.sqrt(weights)
        values, vectors = np.linalg.eigh(root[:, None] * gram * root)
        diagonal = vectors**2 @ np.sqrt(np.maximum(values, 0.0))
        weights = diagonal / diagonal.sum()
    return np.asarray(weights)
