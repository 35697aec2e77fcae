"""Continuous Laplace noise on each coordinate, rounded to the nearest column."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import ClassVar

import numpy as np

from privspec.mechanisms.finite.context import Array, TableContext
from privspec.mechanisms.finite.mechanism import Candidate, shown
from privspec.mechanisms.finite.points import coordinates, lengths, middles, product_grid


def laplace_cells(values: Array, bounds: Array, rate: float) -> Array:
    """Pr(a value plus Laplace noise lies between two bounds), for values (X,) and bounds (Z - 1,): (X, Z).

    The noise has density proportional to e^(-rate |t|); tails are computed without cancellation.
    """
    edges = np.concatenate(([-np.inf], bounds, [np.inf]))
    low, high = rate * (edges[None, :-1] - values[:, None]), rate * (edges[None, 1:] - values[:, None])
    # cells on one side of the value: mirror to the right, then e^-near (1 - e^-(width)) / 2
    near = np.where(low >= 0, low, -high)
    one_side = 0.5 * np.exp(-np.maximum(near, 0.0)) * -np.expm1(-(high - low))
    around = 1 - 0.5 * np.exp(np.minimum(low, 0.0)) - 0.5 * np.exp(-np.maximum(high, 0.0))
    return np.asarray(np.where((low < 0) & (high > 0), around, one_side))


class RoundedLaplace:
    """Laplace noise on each coordinate, rounded to the nearest column (notes/rounded-laplace.md)."""

    note: ClassVar[str] = "rounded-laplace"

    def candidates(self, context: TableContext) -> Iterator[Candidate]:
        """One, where rows and columns are numbers and the columns fill a grid."""
        points, outputs = coordinates(context.rows), coordinates(context.columns)
        grid = None if outputs is None else product_grid(outputs)
        if points is None or grid is None or len(points[0]) != len(grid.axes) or not context.epsilon:
            return
        rate = float(context.epsilon) * context.neighbours.rate(lengths(points, 1))
        if not isfinite(rate) or rate == 0:  # values at no distance would need endless noise
            return
        values = np.array([[float(v) for v in point] for point in points])
        table = grid.gather([laplace_cells(values[:, i], middles(axis), rate) for i, axis in enumerate(grid.axes)])
        several = len(grid.axes) > 1
        name = "Laplace noise on each coordinate, rounded" if several else "Laplace noise, rounded"
        where = " on each coordinate" if several else ""
        text = f"Laplace noise of scale {shown(1 / rate)}{where}, rounded to the nearest answer"
        yield Candidate(name, table, text, self.note)
