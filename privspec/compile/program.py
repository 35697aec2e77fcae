"""What lowering hands on: the linear system with its lineage, so that each number leads back to a line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privspec.core.spans import Span
from privspec.model import neighbours
from privspec.model.requirements import Requirement
from privspec.problem.linear_lowering import Lowered, OpenConstant, OutputSlice
from privspec.solvers import programs
from privspec.solvers.programs import Array


@dataclass(frozen=True, eq=False, slots=True)
class ProtectedView:
    """One set of neighbours of one requirement, lowered.

    `rows`: joint output rows that the requirement names (None = all); `differences`: of the inputs, in data
    units, as doubles; `exact`: the same as the model states them; `counts`: every input is a table's counts;
    `cover`: how many times larger these differences are than ones that neighbours surely have (1 where they are
    exact, k where k records are covered by k times one).
    """

    requirement: Requirement
    index: int
    rows: NDArray[np.intp] | None
    differences: programs.Differences
    exact: neighbours.Differences
    counts: bool = False
    cover: float = 1.0


@dataclass(frozen=True, eq=False, slots=True)
class AccuracyLimit:
    """One instance of an accuracy line: the squares of error_map (q, m) @ noise sum to at most `bound` on average."""

    error_map: sparse.csr_array
    bound: float
    line: int
    text: str
    span: Span


@dataclass(frozen=True, eq=False, slots=True)
class LinearSystem:
    """What is released (`lowered`), with the views that have to be protected.

    error_map (q, m) sparse, rows times the roots of their weights: the loss is the sum of the squared entries of
    error_map @ noise on average, or the largest of them if `worst`.
    """

    lowered: Lowered
    error_map: sparse.csr_array
    views: tuple[ProtectedView, ...]
    limits: tuple[AccuracyLimit, ...] = ()

    @property
    def outputs(self) -> tuple[OutputSlice, ...]:
        """Where each output stands."""
        return self.lowered.outputs

    @property
    def target(self) -> Array:
        """The map (m, n) from the base vector to the outputs."""
        return self.lowered.target

    @property
    def offset(self) -> Array:
        """What is added to the outputs (m,)."""
        return self.lowered.offset

    @property
    def worst(self) -> bool:
        """Whether only the largest error counts."""
        return self.lowered.worst

    @property
    def candidates(self) -> tuple[str, ...]:
        """Names of the nodes where noise may enter."""
        return self.lowered.candidates

    @property
    def constants(self) -> tuple[OpenConstant, ...]:
        """Public values that a run is given."""
        return self.lowered.constants

    @property
    def outputs_count(self) -> int:
        """Rows of the joint output."""
        return int(self.target.shape[0])

    @property
    def inputs_count(self) -> int:
        """Coordinates of the base vector."""
        return int(self.target.shape[1])

    @property
    def seen_whole(self) -> bool:
        """Whether every requirement is about all outputs together."""
        return all(view.rows is None for view in self.views)
