"""The entry point: the special solver that fits a Gaussian program."""

from __future__ import annotations

from dataclasses import replace

from privspec.solvers.differences import same_rows, small_boxes
from privspec.solvers.observers import solve_complete, solve_observers
from privspec.solvers.placement import solve_placement
from privspec.solvers.programs import Array, Boxes, DualPoint, GaussianProgram, GaussianSolution, View
from privspec.solvers.results import NotSpecialError, Progress, Unprotectable, Watch
from privspec.solvers.rows import many_pairs, solve_by_rows
from scipy import sparse


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
        solver = solve_by_rows if any(many_pairs(view) for view in program.views) else solve_placement
        return solver(program, tolerance, watch)
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
