"""The best report of one party: columns of chances, and unbiased estimates for each, as a cone program.

A column of a table of pure epsilon is, up to a factor, in {1, R}^rows, R = e^epsilon, or a mean of such (Kairouz, Oh &
Viswanath 2016). With weights c of such columns u, and e = c times their estimates, all is convex: sum c u = 1,
sum u e' = targets, and row r errs by sum u_r |e|^2 / c. Columns that lower the loss are added until there are none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import clarabel
import numpy as np
import scipy
from numpy.typing import NDArray
from privspec.solvers.programs import SolverError

Array = NDArray[np.float64]
ALL_COLUMNS = 8
"""Rows up to which all columns are in the program from the start."""
ADDED = 200
"""Columns that are added at a time, the best first."""
MOST_ROUNDS = 60
VIOLATED = 1e-9
"""A column is added where it breaks the bound by more than this, relative."""
USED = 1e-7
"""A column whose mean chance is below this is left out of a report."""
TOLERANCES = ("tol_gap_abs", "tol_gap_rel", "tol_feas", "tol_ktratio")
TOLERANCE = 1e-11


@dataclass(frozen=True, eq=False, slots=True)
class ReportSolution:
    """`weights` (columns,) of `columns` (rows, columns) in {1, R}; `estimates` (columns, numbers).

    `prior` (rows,), `directions` (rows, numbers) and `multipliers` (rows,) prove that no other report is better: for
    each column u the squares of directions' u add up to at most (multipliers' u) (prior' u).
    """

    value: float
    weights: Array
    columns: Array
    estimates: Array
    prior: Array
    directions: Array
    multipliers: Array


def best_report(
    targets: Array, places: NDArray[np.intp], offsets: Array, law: Array | None, ratio: float
) -> ReportSolution:
    """The report of least loss: by a law, or at the worst.

    Args: targets (rows, numbers) of the mean estimates; the error of group g is that of row places[g], the mean square
        of its estimates, plus offsets[g]; law (groups,), None for the largest.
    Raises: SolverError if the program is not solved.
    """
    rows = len(targets)
    every = _all_columns(rows, ratio)
    pool = np.arange(every.shape[1]) if rows <= ALL_COLUMNS else _near(every)
    for _ in range(MOST_ROUNDS):
        found = _solved(every[:, pool], targets, places, offsets, law)
        along = found.directions.T @ every
        excess = (along**2).sum(axis=0) / ((found.multipliers @ every) * (found.prior @ every)) - 1
        excess[pool] = 0
        best = np.argsort(-excess)[:ADDED]
        best = best[excess[best] > VIOLATED]
        if not len(best):
            break
        pool = np.concatenate([pool, best])
    used = found.weights * found.columns.mean(axis=0) > USED
    last = _solved(found.columns[:, used], targets, places, offsets, law, found)
    kept = last.weights * last.columns.mean(axis=0) > USED**2
    return replace(last, weights=last.weights[kept], columns=last.columns[:, kept], estimates=last.estimates[kept])


def _all_columns(rows: int, ratio: float) -> Array:
    """All of {1, ratio}^rows, one of each two that all entries are alike in left out."""
    numbers = np.arange(1, 2**rows)
    return np.where(numbers >> np.arange(rows)[:, None] & 1, ratio, 1.0)


def _near(every: Array) -> NDArray[np.intp]:
    """Columns that change their entry at most twice along the rows."""
    changes = (np.diff(every, axis=0) != 0).sum(axis=0)
    return np.flatnonzero(changes <= 2)


def _solved(
    columns: Array,
    targets: Array,
    places: NDArray[np.intp],
    offsets: Array,
    law: Array | None,
    proof: ReportSolution | None = None,
) -> ReportSolution:
    """The program with these columns; `proof`, where it was found with more of them."""
    (rows, many), size, raised = columns.shape, targets.shape[1], columns
    # columns whose entries are one on average: at a large ratio others would be of many sizes
    means = raised.mean(axis=0)
    columns = raised / means
    # variables: weights, squares, estimates number by number, and the largest error
    width, equal = many * (2 + size) + (law is None), rows * (1 + size)
    aim, sides = np.zeros(width), [np.ones(rows), targets.T.ravel()]
    dense = np.zeros((equal + len(places) * (law is None), width))
    dense[:rows, :many] = columns
    for j in range(size):
        dense[rows * (1 + j) :][:rows, many * (2 + j) :][:, :many] = columns
    cones = [clarabel.ZeroConeT(equal)]
    if law is None:
        aim[-1] = 1
        dense[equal:, many : 2 * many] = columns[places]
        dense[equal:, -1] = -1
        sides.append(-offsets)
        cones.append(clarabel.NonnegativeConeT(len(places)))
    else:
        aim[many : 2 * many] = law @ columns[places]
    # |2 e|^2 + (c - s)^2 <= (c + s)^2, column by column
    at, step = np.arange(many), size + 2
    entries = [(at * step, at, -1.0), (at * step, at + many, -1.0)]
    entries += [(at * step + 1, at, -1.0), (at * step + 1, at + many, 1.0)]
    entries += [(at * step + 2 + j, (2 + j) * many + at, -2.0) for j in range(size)]
    data = np.concatenate([np.full(many, value) for _, _, value in entries])
    where = np.concatenate([one for one, _, _ in entries]), np.concatenate([one for _, one, _ in entries])
    below = scipy.sparse.csc_array((data, where), shape=(many * step, width))
    sides.append(np.zeros(many * step))
    cones += [clarabel.SecondOrderConeT(step)] * many
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    for name in TOLERANCES:
        setattr(settings, name, TOLERANCE)
    nothing, limits = (
        scipy.sparse.csc_array((width, width)),
        scipy.sparse.vstack([scipy.sparse.csc_array(dense), below], format="csc"),
    )
    answer = clarabel.DefaultSolver(nothing, aim, limits, np.concatenate(sides), cones, settings).solve()
    if "Solved" not in str(answer.status) and "InsufficientProgress" not in str(answer.status):
        raise SolverError(f"the program of a report was not solved: {answer.status}")
    x, z = np.array(answer.x), np.array(answer.z)
    weights = np.maximum(x[:many], np.finfo(float).tiny)
    estimates = x[2 * many : (2 + size) * many].reshape(size, many).T / weights[:, None]
    if proof is not None:
        return replace(proof, value=answer.obj_val, weights=weights / means, columns=raised, estimates=estimates)
    share = np.maximum(z[equal:][: len(places)], 0) if law is None else law
    prior = np.zeros(rows)
    np.add.at(prior, places, share)
    directions = -z[rows:equal].reshape(size, rows).T / 2
    return ReportSolution(answer.obj_val, weights / means, raised, estimates, prior, directions, z[:rows])
