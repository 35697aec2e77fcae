"""What a solver answers besides a solution: infeasibility, lack of time, and 'not one of mine'."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from privspec.solvers.programs import Array, GaussianSolution

Progress: TypeAlias = Callable[[int, float, float], None]
"""Called with the iteration, the value of the best feasible point and the best lower bound."""


@dataclass(frozen=True, eq=False, slots=True)
class Unprotectable:
    """No noise at the allowed sites hides this input difference from this view: the program is infeasible.

    `view` is the index of the view, `difference` (n,) an admissible difference of the inputs whose effect on
    the view's outputs lies outside the range of every site map.
    """

    view: int
    name: str
    difference: Array


class SolverError(Exception):
    """A solver could not answer."""


class NotSpecialError(SolverError):
    """The program has a shape that no special solver treats; the general convex solver must."""


class OutOfTimeError(SolverError):
    """The deadline passed; `best` is the best feasible solution so far with its certified gap, if there is one."""

    def __init__(self, best: GaussianSolution | None) -> None:
        """Carry the best solution so far."""
        gap = "no feasible point was found" if best is None else f"relative gap {best.relative_gap:.1e} reached"
        super().__init__(f"the solver ran out of time: {gap}")
        self.best = best


NotSpecial = NotSpecialError
OutOfTime = OutOfTimeError


@dataclass(slots=True)
class Watch:
    """Counts iterations, tells `progress`, and knows when the deadline has passed."""

    deadline: float | None = None
    progress: Progress | None = None
    started: float = field(default_factory=time.perf_counter)
    iterations: int = 0

    def step(self, value: float, lower_bound: float) -> None:
        """Count one iteration and report it."""
        self.iterations += 1
        if self.progress is not None:
            self.progress(self.iterations, value, lower_bound)

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    @property
    def expired(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline is not None and self.seconds > self.deadline


Indices: TypeAlias = NDArray[np.intp]
