"""The best reports of a real number under pure local privacy, as a linear program over its cells.

With least chances m_y of the reports, all chances of a row lie between m_y and R m_y: nothing else is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from privspec.solvers.programs import SolverError
from scipy import sparse
from scipy.optimize import linprog

Array: TypeAlias = NDArray[np.float64]
EXACT: Any = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True, slots=True)
class Solution:
    """Least chances (K,) of the reports; multipliers of the rows (J,), and of both ends of the worst cells (J, 2)."""

    least: Array
    rows: Array
    ends: Array | None


def solve(costs: Array, ratio: float) -> Solution:
    """The least sum of costs (J, K) times chances, or of errors (J, 2, K) the least of the largest at any end.

    Raises: SolverError.
    """
    worst, (cells, values) = costs.ndim == 3, (len(costs), costs.shape[-1])
    entries = cells * values
    chances: Any = sparse.eye(entries, format="csr")
    least: Any = sparse.kron(np.ones((cells, 1)), sparse.eye(values), format="csr")
    blocks: list[list[Any]] = [[least, -chances], [-ratio * least, chances]]
    objective = np.concatenate([np.zeros(values), costs.ravel() if not worst else np.zeros(entries)])
    if worst:
        errors = sparse.block_diag([costs[j] for j in range(cells)], format="csr")
        blocks = [[*row, sparse.csr_matrix((entries, 1))] for row in blocks]
        blocks.append([sparse.csr_matrix((2 * cells, values)), errors, -np.ones((2 * cells, 1))])
        objective = np.append(objective, 1.0)
    limits: Any = sparse.bmat(blocks, format="csr")
    whole: Any = sparse.kron(sparse.eye(cells), np.ones((1, values)), format="csr")
    sides: list[Any] = [sparse.csr_matrix((cells, values)), whole, *([sparse.csr_matrix((cells, 1))] if worst else [])]
    sums: Any = sparse.hstack(sides, format="csr")
    found = linprog(
        objective,
        A_ub=limits,
        b_ub=np.zeros(limits.shape[0]),
        A_eq=sums,
        b_eq=np.ones(cells),
        method="highs",
        options=EXACT,
    )
    if found.x is None or found.status not in (0, 4):
        raise SolverError(f"the program of {cells} cells and {values} values was not solved: {found.message}")
    ends = -np.minimum(found.ineqlin.marginals[2 * entries :], 0.0).reshape(cells, 2) if worst else None
    return Solution(np.maximum(found.x[:values], 0.0), np.asarray(found.eqlin.marginals), ends)
