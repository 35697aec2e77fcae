"""A table of exact probabilities, and exact draws from its rows.

A draw takes a uniform integer below the common denominator of the row and finds it among the cumulative
numerators: no floating-point number takes part in it, and each entry's probability is exactly the fraction that
the plan states.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.execute.family import Plan, Progress, silent
from privspec.execute.finite.labels import Labels
from privspec.execute.randomness import Randomness
from privspec.kernel.core.reading import Item, Refused
from privspec.kernel.core.tables import read_law

BATCH = 65_536
"""Draws between two words about the progress."""


@dataclass(frozen=True, slots=True)
class RowLaw:
    """The law of the joint output at one row: entry j has weight cumulative[j] - cumulative[j - 1] of `total`."""

    cumulative: tuple[int, ...]
    total: int

    @classmethod
    def of(cls, numerators: Sequence[int], denominator: int) -> RowLaw:
        """A row in lowest terms."""
        shared = gcd(*numerators, denominator)
        return cls(tuple(accumulate(n // shared for n in numerators)), denominator // shared)

    def draw(self, randomness: Randomness) -> int:
        """The number of a joint output."""
        return bisect_right(self.cumulative, randomness.below(self.total))

    @property
    def weights(self) -> tuple[int, ...]:
        """The entries times `total`."""
        return tuple(b - a for a, b in zip((0, *self.cumulative), self.cumulative, strict=False))


@dataclass(frozen=True, eq=False, slots=True)
class TableLaw:
    """Pr(joint output | row): labels of rows and columns, and the law of every row."""

    rows: Labels
    columns: Labels
    laws: tuple[RowLaw, ...]

    @classmethod
    def of_plan(cls, plan: Plan) -> TableLaw:
        """The table of a plan, as the kernel reads it.

        Raises: KeyError, TypeError, ValueError if it is none.
        """
        mechanism = plan["mechanism"]
        rows = Labels.read([str(n) for n in mechanism["of"]], mechanism["inputs"])
        columns = Labels.read([str(n) for n in mechanism["releases"]], mechanism["outputs"])
        try:
            numerators, whole = read_law(Item(mechanism["probabilities"], "probabilities"), (len(rows), len(columns)))
        except Refused as error:
            raise ValueError(str(error)) from error
        return cls(rows, columns, tuple(RowLaw.of(row, whole) for row in numerators))

    def draw(
        self, rows: NDArray[np.integer[Any]], randomness: Randomness, progress: Progress = silent
    ) -> NDArray[np.unsignedinteger[Any]]:
        """One draw for each row number (n,): the number of its joint output."""
        drawn = np.empty(len(rows), dtype=small(len(self.columns)))
        laws = self.laws
        for start in range(0, len(rows), BATCH):
            part = rows[start : start + BATCH].tolist()
            drawn[start : start + len(part)] = [laws[row].draw(randomness) for row in part]
            progress("reports drawn", start + len(part), len(rows))
        return drawn

    def matrix(self) -> NDArray[np.float64]:
        """The probabilities in doubles (rows, columns)."""
        return np.array([[w / law.total for w in law.weights] for law in self.laws])


def small(count: int) -> np.dtype[Any]:
    """The smallest type of whole number for places 0..count - 1."""
    return np.min_scalar_type(max(count - 1, 0))
