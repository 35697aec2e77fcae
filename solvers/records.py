"""Records of which the tables of counts are as near to given ones as whole records can be.

Values are drawn apart at first, each column by its own shares along a sequence that fills a box evenly (Kronecker's,
by roots of primes). Then one value of one record after another is moved to where the squared errors of all tables are
least, until sweeps over all records gain next to nothing. Of two tables the errors count by their weights. Nothing is
random; sums are of dyadic numbers, so that no machine adds them up otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from privspec.solvers.programs import Array

STEP = 2.0**-10
"""Of aims and weights: products of the two, and sums of very many, are exact in doubles."""
SWEEPS = 30
"""Times that all records are gone through, at most."""
ENOUGH = 1e-3
"""Share of the error below which a sweep gains too little for another."""
Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False, slots=True)
class Counts:
    """How many records have each combination of values of the columns `by`, `aims` of that shape, and their weight."""

    by: tuple[int, ...]
    aims: Array
    weight: float = 1.0


def agreeing(
    sizes: Sequence[int], tables: Sequence[Counts], records: int, told: Callable[[int], None] = lambda _: None
) -> Rows:
    """Records (records, columns) as places of values, in order.

    Args: sizes, how many values each column has; tables, whose aims add up to `records` each, about; told, which is
    called with the number of sweeps after each.
    """
    rows = _apart(sizes, tables, records)
    search = _Search(sizes, tables, rows)
    before = search.error()
    for sweep in range(1, SWEEPS + 1):
        search.sweep()
        told(sweep)
        after = search.error()
        if after >= before * (1 - ENOUGH):
            break
        before = after
    found: Rows = rows[np.lexsort(rows.T[::-1])]
    return found


def _apart(sizes: Sequence[int], tables: Sequence[Counts], records: int) -> Rows:
    """Records whose columns tell nothing of each other, each with the shares that its tables give on average."""
    rows = np.zeros((records, len(sizes)), dtype=np.intp)
    for column, (size, prime) in enumerate(zip(sizes, _primes(len(sizes)), strict=True)):
        shares = np.zeros(size)
        for table in tables:
            if column in table.by:
                others = tuple(axis for axis, one in enumerate(table.by) if one != column)
                shares += table.weight / table.aims.size * np.maximum(table.aims.sum(axis=others), 0)
        if not shares.any():
            shares[:] = 1
        places = np.modf((np.arange(records) + 0.5) * np.sqrt(prime))[0]
        ends = np.cumsum(shares) / shares.sum()
        rows[:, column] = np.minimum(np.searchsorted(ends, places, side="right"), size - 1)
    return rows


def _primes(count: int) -> list[int]:
    found = list[int]()
    number = 2
    while len(found) < count:
        if all(number % one for one in found):
            found.append(number)
        number += 1
    return found


class _Search:
    """Records, the errors of their tables, and the place of each record in each table."""

    def __init__(self, sizes: Sequence[int], tables: Sequence[Counts], rows: Rows) -> None:
        self.sizes, self.rows = sizes, rows
        heaviest = max(table.weight for table in tables)
        self.weights = [max(STEP, float(np.rint(table.weight / heaviest / STEP)) * STEP) for table in tables]
        self.errors, self.places, self.steps = list[Array](), list[list[int]](), list[dict[int, int]]()
        for table, weight in zip(tables, self.weights, strict=True):
            shape = tuple(sizes[column] for column in table.by)
            places = np.ravel_multi_index(tuple(rows[:, column] for column in table.by), shape)
            aims = np.rint(table.aims.ravel() / STEP) * STEP
            # errors times their weight: what moves of a record are compared by
            self.errors.append((np.bincount(places, minlength=aims.size) - aims) * weight)
            self.places.append(places.tolist())
            steps = np.cumprod((1, *shape[:0:-1]))[::-1].tolist()
            self.steps.append(dict(zip(table.by, steps, strict=True)))

    def error(self) -> float:
        """The sum of squared errors, by weight."""
        return sum(float(np.square(one).sum()) / w for one, w in zip(self.errors, self.weights, strict=True))

    def sweep(self) -> None:
        """Move each value of each record to where the errors are least, one after another."""
        for column, size in enumerate(self.sizes):
            mine = [table for table, steps in enumerate(self.steps) if column in steps]
            if not mine:
                continue
            known = [(self.errors[t], self.places[t], self.steps[t][column], self.weights[t]) for t in mine]
            added = sum(self.weights[t] for t in mine)
            values: list[int] = self.rows[:, column].tolist()
            for record, value in enumerate(values):
                total = np.zeros(size)
                for errors, places, step, _ in known:
                    start = places[record] - value * step
                    total += errors[start : start + size * step : step]
                # half of what the squared errors grow by, of a move to each other value
                gains = total - total[value] + added
                gains[value] = 0
                best = int(gains.argmin())
                if gains[best] < 0:
                    for errors, places, step, weight in known:
                        errors[places[record]] -= weight
                        places[record] += (best - value) * step
                        errors[places[record]] += weight
                    values[record] = best
            self.rows[:, column] = values
