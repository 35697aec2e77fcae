"""The truncated geometric mechanism, alone and followed by the best remap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, isfinite, prod
from typing import ClassVar

import numpy as np

from privspec.mechanisms.finite.context import Array, TableContext
from privspec.mechanisms.finite.mechanism import Candidate, decay
from privspec.mechanisms.finite.points import (
    Coordinates,
    coordinates,
    even_grid,
    lengths,
    product_grid,
    step,
    steps_between,
)
from privspec.mechanisms.finite.remap import best_remap

HULL_LIMIT = 2**14
"""Points of the largest grid that noise is compared on."""


def geometric_table(values: Sequence[Fraction], grid: Sequence[Fraction], decay: float) -> Array:
    """Pr(grid value | value) of geometric noise on an even grid, what is beyond its ends added to them (X, Z).

    The noise is k steps with probability (1 - decay) / (1 + decay) decay^|k|; values are whole steps from the grid.
    """
    if len(grid) == 1:
        return np.ones((len(values), 1))
    steps = steps_between(values, grid)
    powers = decay ** np.abs(steps)
    table = powers * (1 - decay) / (1 + decay)
    # Pr(k or fewer) for k <= 0, its complement for k > 0; and the mirror image
    for end, sign in ((0, 1), (-1, -1)):
        k = sign * steps[:, end]
        beyond = decay ** np.abs(np.where(k <= 0, k, k + 1)) / (1 + decay)
        table[:, end] = np.where(k <= 0, beyond, 1 - beyond)
    return np.asarray(table)


@dataclass(frozen=True, slots=True)
class GeometricNoise:
    """Geometric noise calibrated to a context: for each coordinate its step and the decay a step."""

    points: Coordinates
    steps: tuple[Fraction, ...]
    rate: float

    @classmethod
    def of(cls, context: TableContext) -> GeometricNoise | None:
        """The least noise on the even grid of the rows that meets the requirement; None where there is no such grid."""
        points = coordinates(context.rows)
        if points is None or not context.epsilon:
            return None
        steps = [step(axis) for axis in zip(*points, strict=True)]
        rate = float(context.epsilon) * context.neighbours.rate(lengths(points, 1))
        if not isfinite(rate) or rate == 0:  # values at no distance would need endless noise
            return None
        known = tuple(s for s in steps if s is not None)
        return cls(points, known, rate) if len(known) == len(steps) else None

    @property
    def decays(self) -> tuple[float, ...]:
        """For each coordinate the ratio of probabilities one step apart."""
        return tuple(exp(-self.rate * float(s)) for s in self.steps)

    def table(self, grids: Sequence[Sequence[Fraction]]) -> list[Array]:
        """For each coordinate its truncated law (X, Z)."""
        axes = zip(*self.points, strict=True)
        return [geometric_table(axis, grid, decay) for axis, grid, decay in zip(axes, grids, self.decays, strict=True)]

    def hull(self) -> Array | None:
        """The law on the smallest grid that holds all rows (X, Z), last coordinate fastest; None where it is too large.

        That is where the rows lie far apart for the step that holds them all.
        """
        axes = list(zip(*self.points, strict=True))
        if prod((max(a) - min(a)) / s + 1 for a, s in zip(axes, self.steps, strict=True)) > HULL_LIMIT:
            return None
        grids = [even_grid(min(a), max(a), s, a[0]) for a, s in zip(axes, self.steps, strict=True)]
        result = np.ones((len(self.points), 1))
        for factor in self.table(grids):
            result = (result[:, :, None] * factor[:, None, :]).reshape(len(self.points), -1)
        return result

    def describe(self) -> str:
        """What is drawn, in words."""
        noise = [decay(self.rate * float(s), "|k|") for s in self.steps]
        if len(set(noise)) > 1:
            return "noise of k steps on each coordinate with probabilities proportional to " + " and ".join(noise)
        where = "" if len(noise) == 1 else " on each coordinate"
        return f"noise of k steps{where} with probability proportional to {noise[0]}"


class TruncatedGeometric:
    """Geometric noise on the even grid of the rows, truncated at both ends (notes/truncated-geometric.md).

    Rows of several coordinates get independent noise on each. The raw mechanism needs columns that hold the grid; with
    the best remap any columns will do.
    """

    note: ClassVar[str] = "truncated-geometric"

    def candidates(self, context: TableContext) -> Iterator[Candidate]:
        """The raw mechanism, then the remapped one."""
        noise = GeometricNoise.of(context)
        if noise is None:
            return
        raw = self.raw(context, noise)
        if raw is not None:
            text = f"{noise.describe()}, truncated at both ends"
            yield Candidate("truncated geometric", raw, text, self.note)
        hull = noise.hull()
        remapped = None if hull is None else best_remap(context, hull)
        if remapped is not None:
            text = f"{noise.describe()}, truncated at both ends, then the best guess for this loss"
            yield Candidate("truncated geometric, remapped", remapped, text, "bayes-remap")

    def raw(self, context: TableContext, noise: GeometricNoise) -> Array | None:
        """The table (X, Y) over the columns; None if the grid of the noise leaves them."""
        points = coordinates(context.columns)
        columns = None if points is None else product_grid(points)
        if columns is None or len(columns.axes) != len(noise.steps):
            return None
        if any((a[-1] - a[0]) // s > len(a) for a, s in zip(columns.axes, noise.steps, strict=True)):
            return None  # the grid has more points than there are columns
        factors = []
        origin = noise.points[0]
        grids = [
            even_grid(axis[0], axis[-1], width, through)
            for axis, width, through in zip(columns.axes, noise.steps, origin, strict=True)
        ]
        for axis, grid, law in zip(columns.axes, grids, self._laws(noise, grids), strict=True):
            if law is None or not set(grid) <= set(axis):
                return None
            spread = np.zeros((len(law), len(axis)))
            spread[:, [axis.index(g) for g in grid]] = law
            factors.append(spread)
        return columns.gather(factors)

    def _laws(self, noise: GeometricNoise, grids: list[tuple[Fraction, ...]]) -> Sequence[Array | None]:
        return noise.table(grids) if all(grids) else [None] * len(grids)
