"""Subset selection: report a set of values that is more likely when it holds the truth."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from math import comb, exp
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privspec.mechanisms.finite.context import Array, TableContext
from privspec.mechanisms.finite.mechanism import Candidate, shown
from privspec.mechanisms.finite.points import coordinates
from privspec.mechanisms.finite.remap import best_remap

_MOST_SETS = 1_000


def subset_table(k: int, size: int, epsilon: float) -> tuple[NDArray[np.bool_], Array]:
    """All subsets of a size (as indicators, (k, N)) and Pr(subset | value) (k, N)."""
    members = np.zeros((k, comb(k, size)), dtype=bool)
    for column, chosen in enumerate(combinations(range(k), size)):
        members[list(chosen), column] = True
    inverse = exp(-epsilon)
    return members, np.where(members, 1.0, inverse) / (comb(k - 1, size - 1) + comb(k - 1, size) * inverse)


class SubsetSelection:
    """A random subset of s of the k values; those that hold the truth are e^epsilon times as likely.

    Where the columns are indicators of subsets it is compared as it is, elsewhere with the best guess from the subset;
    s is the best of 1..k-1 (notes/subset-selection.md).
    """

    note: ClassVar[str] = "subset-selection"

    def candidates(self, context: TableContext) -> Iterator[Candidate]:
        """The one of least loss, for local differential privacy."""
        k = len(context.rows)
        if not context.neighbours.uniform or k < 3:
            return
        epsilon = float(context.epsilon) * context.neighbours.least
        found = [c for size in range(1, k) if (c := self._of_size(context, size, epsilon)) is not None]
        if found:
            yield min(found, key=lambda c: context.loss(c.table))

    def _of_size(self, context: TableContext, size: int, epsilon: float) -> Candidate | None:
        k = len(context.rows)
        if comb(k, size) > _MOST_SETS:
            return None
        members, law = subset_table(k, size, epsilon)
        words = f"a set of {size} of the {k} values, {shown(exp(epsilon))} times as likely if it holds the truth"
        name = f"subset selection of size {size}" if size > 1 else "k-randomised response"
        places = _indicators(context)
        if places is not None:
            at = [places.get(tuple(bool(v) for v in column)) for column in members.T]
            if any(a is None for a in at):
                return None
            table = np.zeros(context.cost.shape)
            table[:, [a for a in at if a is not None]] = law
            return Candidate(name, table, words, self.note)
        remapped = best_remap(context, law)
        if remapped is None:
            return None
        words = f"{words}; then the best guess for this loss"
        return Candidate(f"{name}, remapped", remapped, words, self.note)


def _indicators(context: TableContext) -> dict[tuple[bool, ...], int] | None:
    """Columns by the subset of rows that they indicate; None if they are no vectors of zeros and ones."""
    points = coordinates(context.columns)
    if points is None or len(points[0]) != len(context.rows):
        return None
    if any(v not in (Fraction(0), Fraction(1)) for point in points for v in point):
        return None
    return {tuple(bool(v) for v in point): column for column, point in enumerate(points)}
