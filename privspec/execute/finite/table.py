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
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.execute.family import Plan, Progress, silent
from privspec.execute.finite.labels import Labels
from privspec.execute.randomness import Randomness

BATCH = 65_536
"""Draws between two words about the progress."""


@dataclass(frozen=True, slots=True)
class RowLaw:
    """The law of the joint output at one row: entry j has weight cumulative[j] - cumulative[j - 1] of `total`."""

    cumulative: tuple[int, ...]
    total: int

    @classmethod
    def read(cls, probabilities: Sequence[Any]) -> RowLaw:
        """Fractions as a plan writes them.

        Raises: ValueError if one is negative or they do not sum to one.
        """
        pairs = [_fraction(text) for text in probabilities]
        total = lcm(*(bottom for _, bottom in pairs))
        cumulative = tuple(accumulate(top * (total // bottom) for top, bottom in pairs))
        if any(top < 0 for top, _ in pairs) or cumulative[-1] != total:
            raise ValueError("a row of the table is not a law: it has a negative entry or does not sum to one")
        return cls(cumulative, total)

    def draw(self, randomness: Randomness) -> int:
        """The number of a joint output."""
        return bisect_right(self.cumulative, randomness.below(self.total))

    @property
    def weights(self) -> tuple[int, ...]:
        """The entries times `total`."""
        return tuple(b - a for a, b in zip((0, *self.cumulative), self.cumulative, strict=False))


def _fraction(text: Any) -> tuple[int, int]:
    """Numerator and denominator; several times faster than `Fraction`, and tables are large."""
    top, bar, bottom = str(text).partition("/")
    pair = int(top), int(bottom) if bar else 1
    if pair[1] <= 0:
        raise ValueError("a probability has a denominator that is not positive")
    return pair


@dataclass(frozen=True, eq=False, slots=True)
class TableLaw:
    """Pr(joint output | row): labels of rows and columns, and the law of every row."""

    rows: Labels
    columns: Labels
    laws: tuple[RowLaw, ...]

    @classmethod
    def of_plan(cls, plan: Plan) -> TableLaw:
        """The table of a plan.

        Raises: KeyError, TypeError, ValueError if it is none.
        """
        mechanism = plan["mechanism"]
        rows = Labels.read([str(n) for n in mechanism["of"]], mechanism["inputs"])
        columns = Labels.read([str(n) for n in mechanism["releases"]], mechanism["outputs"])
        probabilities = mechanism["probabilities"]
        if len(probabilities) != len(rows) or any(len(row) != len(columns) for row in probabilities):
            raise ValueError(f"the table is not {len(rows)} x {len(columns)}")
        return cls(rows, columns, tuple(RowLaw.read(row) for row in probabilities))

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
