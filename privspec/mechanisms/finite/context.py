"""What a finite mechanism is judged by, as plain data: its rows and columns, the requirement, and the loss."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Value: TypeAlias = Fraction | str
Label: TypeAlias = tuple[Value, ...]
"""One row or column: a value for each node or coordinate that it is made of."""

_RELATIVE = 1e-9
_ABSOLUTE = 1e-13


@dataclass(frozen=True, eq=False, slots=True)
class Neighbours:
    """Which rows must look alike: Pr(S | a) <= e^(epsilon distances[a, b]) Pr(S | b) + delta where it is finite.

    `distances` (X, X) are >= 0, infinite where there is no condition.
    """

    distances: Array

    @classmethod
    def complete(cls, rows: int) -> Neighbours:
        """Every two rows are neighbours: local differential privacy, or replacing everything."""
        return cls(1.0 - np.eye(rows))

    @classmethod
    def adjacent(cls, rows: int, pairs: NDArray[np.intp]) -> Neighbours:
        """The ordered pairs (K, 2) are neighbours, such as counts that differ by one."""
        distances = np.full((rows, rows), np.inf)
        distances[pairs[:, 0], pairs[:, 1]] = 1.0
        np.fill_diagonal(distances, 0.0)
        return cls(distances)

    @classmethod
    def metric(cls, distances: Array) -> Neighbours:
        """Every two rows, by their distance (X, X): metric differential privacy."""
        return cls(np.asarray(distances, dtype=float))

    @property
    def pairs(self) -> NDArray[np.bool_]:
        """Which two different rows are under a condition (X, X)."""
        found: NDArray[np.bool_] = np.isfinite(self.distances)
        np.fill_diagonal(found, False)
        return found

    @property
    def least(self) -> float:
        """The least distance of two neighbours; infinite where there are none."""
        return float(np.min(self.distances[self.pairs], initial=np.inf))

    @property
    def uniform(self) -> bool:
        """Whether every two rows are neighbours at one distance."""
        off = self.distances[~np.eye(len(self.distances), dtype=bool)]
        return bool(off.size and np.isfinite(off).all() and np.all(off == off[0]))

    def rate(self, lengths: Array) -> float:
        """The greatest rate with rate * lengths[a, b] <= distances[a, b] for all neighbours; infinite without any."""
        at = self.pairs & (lengths > 0)
        return float(np.min(self.distances[at] / lengths[at], initial=np.inf))


@dataclass(frozen=True, eq=False, slots=True)
class TableContext:
    """One requirement and one loss over tables Pr(column | row).

    Args: rows, columns, their values; epsilon, delta of the requirement between `neighbours`; cost (X, Y), the loss
        of each pair, without the prior; prior (X,), for the expected loss; worst, whether the loss is the largest
        over the rows instead.
    Raises: ValueError for parts that do not fit together.
    """

    rows: tuple[Label, ...]
    columns: tuple[Label, ...]
    epsilon: Fraction
    neighbours: Neighbours
    cost: Array
    prior: Array | None = None
    worst: bool = False
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        """Refuse parts of different sizes, and an expected loss without a prior."""
        inputs, outputs = len(self.rows), len(self.columns)
        if self.cost.shape != (inputs, outputs) or self.neighbours.distances.shape != (inputs, inputs):
            raise ValueError("cost and distances must have a row for each row of the table")
        if self.prior is None and not self.worst:
            raise ValueError("an expected loss needs a prior")
        if self.prior is not None and self.prior.shape != (inputs,):
            raise ValueError("the prior must have one weight for each row")

    def loss(self, table: Array) -> float:
        """The loss of a table (X, Y): expected under the prior, or the largest over the rows."""
        losses = np.sum(table * self.cost, axis=1)
        if self.worst:
            return float(losses.max())
        assert self.prior is not None
        return float(self.prior @ losses)

    def excess(self, table: Array) -> float:
        """How far the table breaks the requirement: 0 if it meets it, up to the rounding of doubles.

        With a delta: the largest delta beyond it. Without: the largest probability beyond its ratio.
        """
        allowed = np.where(self.neighbours.pairs, self.neighbours.distances, np.inf)
        with np.errstate(over="ignore"):
            ratios = np.exp(float(self.epsilon) * allowed)
        worst = 0.0
        if self.neighbours.uniform and not self.delta:
            # the extremes of a column decide
            low, high = table.min(axis=0), table.max(axis=0)
            worst = float(np.max(high * (1 - _RELATIVE) - ratios[0, 1] * low, initial=0.0))
            return worst if worst > _ABSOLUTE else 0.0
        for a, row in enumerate(table):
            others = np.isfinite(ratios[a])
            over = row - ratios[a, others, None] * table[others]
            if self.delta:
                spent = np.maximum(over, 0.0).sum(axis=1) - float(self.delta)
                worst = max(worst, float(np.max(spent, initial=0.0)))
            else:
                worst = max(worst, float(np.max(over - _RELATIVE * row, initial=0.0)))
        return worst if worst > _ABSOLUTE else 0.0
