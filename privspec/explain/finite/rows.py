"""A table summed up row by row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privspec.explain.finite.table import Table, spoken
from privspec.explain.quantities import Quantity, rounded

MOST_LISTED = 100
"""Rows of a table that are summed up one by one; of larger tables every so many."""


@dataclass(frozen=True, slots=True)
class RowFact:
    """A row: its likeliest column with its probability, and the probability of the truth where that is a column."""

    row: str
    likeliest: str
    probability: Quantity
    truth: Quantity | None


def row_facts(table: Table) -> tuple[RowFact, ...]:
    """The rows of a table, at most `MOST_LISTED` of them, evenly chosen."""
    if not table.columns:
        return ()
    truths = table.truths(table.releases[0], table.of[0]) if len(table.of) == len(table.releases) == 1 else None
    step = -(-len(table.rows) // MOST_LISTED)
    return tuple(
        RowFact(
            spoken(table.rows[r]),
            spoken(table.columns[int(np.argmax(table.shares[r]))]),
            rounded(float(table.shares[r].max())),
            None if truths is None else rounded(float(truths[r])),
        )
        for r in range(0, len(table.rows), max(step, 1))
    )
