"""The entry point: the special solver that fits a Gaussian program."""

from __future__ import annotations

from privspec.solvers.covariance import solve_covariance
from privspec.solvers.differences import same_rows
from privspec.solvers.observers import barrier_fits, solve_by_barrier, solve_observers
from privspec.solvers.placement import solve_placement
from privspec.solvers.programs import GaussianProgram, GaussianSolution
from privspec.solvers.results import Progress, Unprotectable, Watch


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
    watch = Watch(deadline, progress)
    if program.sites is not None:
        return solve_placement(program, tolerance, watch)
    if not same_rows(program):
        return solve_observers(program, tolerance, watch)
    solution = solve_covariance(program, tolerance, watch)
    if solution.relative_gap <= tolerance or not barrier_fits(program):
        return solution
    second = solve_by_barrier(program, tolerance, watch)
    return second if second.relative_gap < solution.relative_gap else solution
