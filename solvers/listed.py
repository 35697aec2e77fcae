"""Linear programs of chances: laws over listed data sets of which neighbours must look alike, and reports over cells.

The best reports of a real number under pure local privacy have least chances m_y, and all chances of a row lie between
m_y and R m_y: nothing else is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from privspec.solvers.highs import linear_program
from privspec.solvers.programs import SolverError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class ListedSolution:
    """`laws` (data sets, answers); `multipliers` (pairs, answers) of "no more than `ratio` times as likely".

    `weights` of the data sets, where the loss is that at the worst of them; else those that were given.
    """

    laws: Array
    multipliers: Array
    weights: Array


def listed_laws(costs: Array, weights: Array | None, pairs: NDArray[np.intp], ratio: float) -> ListedSolution:
    """Laws p of least mean cost: the sum of weights costs p, or without weights that of the worst data set.

    Args: costs (data sets, answers); pairs (m, 2) of data sets, both ways round, with p[i] <= ratio p[j].
    Raises: SolverError if the program is not solved.
    """
    many, size = costs.shape
    count = many * size
    answers = np.arange(size)
    at = (pairs[:, :, None] * size + answers).transpose(1, 0, 2).reshape(2, -1)
    rows = np.arange(at.shape[1])
    worst = weights is None
    entries = [np.ones(len(rows)), np.full(len(rows), -ratio)]
    places = [(rows, at[0]), (rows, at[1])]
    if worst:
        # the cost of each data set is at most the last variable
        each = len(rows) + np.repeat(np.arange(many), size)
        places += [(each, np.arange(count)), (len(rows) + np.arange(many), np.full(many, count))]
        entries += [costs.ravel(), -np.ones(many)]
    shape = (len(rows) + many * worst, count + worst)
    at_most = scipy.sparse.csr_array(
        (np.concatenate(entries), tuple(np.concatenate(one) for one in zip(*places, strict=True))), shape
    )
    ones = (np.repeat(np.arange(many), size), np.arange(count))
    whole = scipy.sparse.csr_array((np.ones(count), ones), shape=(many, count + worst))
    aim = np.append(np.zeros(count), 1.0) if weights is None else (weights[:, None] * costs).ravel()
    found = linear_program(aim, (at_most, np.zeros(shape[0])), (whole, np.ones(many)))
    if found is None:
        raise SolverError("the program of laws was not solved")
    prices = np.maximum(-found.most, 0.0)
    laws = np.maximum(found.solution[:count].reshape(many, size), 0.0)
    own = prices[len(rows) :] if weights is None else weights
    return ListedSolution(laws / laws.sum(axis=1, keepdims=True), prices[: len(rows)].reshape(-1, size), own)


# --- cells of a real number -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Solution:
    """Least chances (K,) of the reports; multipliers of the rows (J,), and of both ends of the worst cells (J, 2)."""

    least: Array
    rows: Array
    ends: Array | None


def cell_reports(costs: Array, ratio: float) -> Solution:
    """The least sum of costs (J, K) times chances, or of errors (J, 2, K) the least of the largest at any end.

    Raises: SolverError.
    """
    worst, (cells, values) = costs.ndim == 3, (len(costs), costs.shape[-1])
    entries = cells * values
    chances: Any = scipy.sparse.eye(entries, format="csr")
    least: Any = scipy.sparse.kron(np.ones((cells, 1)), scipy.sparse.eye(values), format="csr")
    blocks: list[list[Any]] = [[least, -chances], [-ratio * least, chances]]
    objective = np.concatenate([np.zeros(values), costs.ravel() if not worst else np.zeros(entries)])
    if worst:
        errors = scipy.sparse.block_diag([costs[j] for j in range(cells)], format="csr")
        blocks = [[*row, scipy.sparse.csr_matrix((entries, 1))] for row in blocks]
        blocks.append([scipy.sparse.csr_matrix((2 * cells, values)), errors, -np.ones((2 * cells, 1))])
        objective = np.append(objective, 1.0)
    limits: Any = scipy.sparse.bmat(blocks, format="csr")
    whole: Any = scipy.sparse.kron(scipy.sparse.eye(cells), np.ones((1, values)), format="csr")
    sides: list[Any] = [
        scipy.sparse.csr_matrix((cells, values)),
        whole,
        *([scipy.sparse.csr_matrix((cells, 1))] if worst else []),
    ]
    sums: Any = scipy.sparse.hstack(sides, format="csr")
    found = linear_program(objective, (limits, np.zeros(limits.shape[0])), (sums, np.ones(cells)))
    if found is None:
        raise SolverError(f"the program of {cells} cells and {values} values was not solved")
    ends = -np.minimum(found.most[2 * entries :], 0.0).reshape(cells, 2) if worst else None
    return Solution(np.maximum(found.solution[:values], 0.0), found.equal, ends)
