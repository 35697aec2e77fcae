"""A table as what stands between the people's values and their reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Channel:
    """Pr(report | value), `matrix` (values, reports) with rows that sum to one, and a text for each value."""

    matrix: Array
    values: tuple[str, ...]

    @classmethod
    def of(cls, table: Sequence[Sequence[Fraction | float]] | NDArray[Any], values: Sequence[str] = ()) -> Channel:
        """A table of exact or floating-point probabilities.

        Raises: ValueError if a row is no law.
        """
        matrix = np.array([[float(p) for p in row] for row in table], dtype=np.float64)
        if matrix.ndim != 2 or not matrix.size or np.any(matrix < 0) or np.any(abs(matrix.sum(axis=1) - 1) > 1e-9):
            raise ValueError("each row of the table must be a law")
        return cls(matrix, tuple(values) or tuple(str(i + 1) for i in range(len(matrix))))

    @property
    def size(self) -> int:
        """The number of values whose shares are wanted."""
        return len(self.matrix)

    @cached_property
    def rank(self) -> int:
        """How many shares the law of the reports determines."""
        return int(np.linalg.matrix_rank(self.matrix))

    @property
    def identified(self) -> bool:
        """Whether the law of the reports determines all shares: without it, no number of reports tells them apart."""
        return self.rank == self.size

    def unique_maximum(self, counts: Array) -> bool:
        """Whether one law alone has the greatest likelihood.

        The likelihood looks at the reports that occurred only; two laws that give these the same probabilities are as
        likely, even if the whole table is invertible.
        """
        seen = self.matrix[:, counts > 0]
        return int(np.linalg.matrix_rank(np.column_stack([seen, np.ones(self.size)]))) == self.size

    @cached_property
    def inverse(self) -> Array:
        """Least squares (reports, values): q @ inverse is the r nearest to q = r C, before it must sum to one."""
        inverse: Array = np.linalg.pinv(self.matrix).astype(np.float64)
        return inverse

    @cached_property
    def correction(self) -> Array:
        """What is added for each unit that the shares lack of one, so that they stay nearest in least squares."""
        towards: Array = np.linalg.pinv(self.matrix @ self.matrix.T).sum(axis=1)
        total = float(towards.sum())
        return towards / total if total > 0 else np.full(self.size, 1 / self.size)

    def reports(self, law: Array, people: int, runs: int, generator: np.random.Generator) -> Array:
        """Counts of reports (runs, reports) of so many people whose values have a law (values,) or (runs, values)."""
        shares = np.clip(law @ self.matrix, 0, None)
        return generator.multinomial(people, shares / shares.sum(axis=-1, keepdims=True), size=runs).astype(np.float64)
