"""The same solution under budgets that all changed by one factor."""

from __future__ import annotations

from dataclasses import replace

from privspec.solvers.programs import DualPoint, GaussianSolution
from scipy import sparse


def rescale(solution: GaussianSolution, factor: float) -> GaussianSolution:
    """The solution when every difference is multiplied by `factor` (every budget divided by it)."""
    square = factor * factor
    dual = DualPoint(
        tuple(sparse.csc_array(d * factor) for d in solution.dual.differences),
        solution.dual.weights,
        solution.dual.loss_weights,
    )
    return replace(
        solution,
        value=solution.value * square,
        lower_bound=solution.lower_bound * square * (1 - 1e-15),
        strategy=solution.strategy / factor,
        reconstruction=None if solution.reconstruction is None else solution.reconstruction * factor,
        input_estimate=None if solution.input_estimate is None else solution.input_estimate * factor,
        variances=None if solution.variances is None else tuple(v * square for v in solution.variances),
        dual=dual,
    )
