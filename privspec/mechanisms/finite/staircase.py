"""The staircase mechanism on a fine grid, truncated at both ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privspec.mechanisms.finite.context import Array, TableContext
from privspec.mechanisms.finite.mechanism import Candidate, shown
from privspec.mechanisms.finite.points import coordinates, even_grid, lengths, step, steps_between

_MOST_STAIRS = 48
"""How many widths of the upper stair are tried at most."""


@dataclass(frozen=True, slots=True)
class StaircaseNoise:
    """Noise on the integers that falls in stairs of `period` steps: `upper` of them high, the others e^-epsilon of it.

    Pr(k) = top for |k| < upper, top e^-epsilon for upper <= |k| < period, and e^-epsilon of it each period farther on.
    Source: Geng & Viswanath 2014 (sections 2 and 6), with the discrete law.
    """

    period: int
    upper: int
    epsilon: float

    @property
    def top(self) -> float:
        """The probability of no noise."""
        drop = exp(-self.epsilon)
        return (1 - drop) / (2 * self.upper + 2 * drop * (self.period - self.upper) - (1 - drop))

    def law(self, steps: NDArray[np.intp]) -> Array:
        """Pr(k) for whole numbers k."""
        blocks, within = np.divmod(np.abs(steps), self.period)
        return np.asarray(self.top * np.exp(-self.epsilon * (blocks + (within >= self.upper))))

    def beyond(self, steps: NDArray[np.intp]) -> Array:
        """Pr(noise >= k)."""
        blocks, within = np.divmod(np.where(steps > 0, steps, 1 - steps), self.period)
        drop = exp(-self.epsilon)
        block = self.upper + drop * (self.period - self.upper)
        left = np.maximum(self.upper - within, 0) + drop * (self.period - np.maximum(within, self.upper))
        tail = self.top * drop**blocks * (left + block * drop / (1 - drop))
        return np.asarray(np.where(steps > 0, tail, 1 - tail))

    def absolute(self) -> float:
        """The mean of |k|, in steps."""
        reach = np.arange(int(self.period * (2 + 45 / self.epsilon)))
        return float(2 * np.sum(reach * self.law(reach)))


def staircase_table(values: Sequence[Fraction], grid: Sequence[Fraction], noise: StaircaseNoise) -> Array:
    """Pr(grid value | value) of staircase noise on an even grid, what is beyond its ends added to them (X, Y)."""
    steps = steps_between(values, grid)
    table = noise.law(steps)
    table[:, 0], table[:, -1] = noise.beyond(-steps[:, 0]), noise.beyond(steps[:, -1])
    return table


class Staircase:
    """Staircase noise on the grid of the columns, with the best upper stair (notes/staircase.md).

    It applies in one dimension, to neighbours that are all at one distance and some of them several steps apart: with
    one step between neighbours it is the geometric mechanism.
    """

    note: ClassVar[str] = "staircase"

    def candidates(self, context: TableContext) -> Iterator[Candidate]:
        """The one of least loss, where its grid fits."""
        points, outputs = coordinates(context.rows), coordinates(context.columns)
        if points is None or outputs is None or len(points[0]) != 1 or len(outputs[0]) != 1 or not context.epsilon:
            return
        values, grid = [p[0] for p in points], [p[0] for p in outputs]
        width, pairs = step(grid), context.neighbours.pairs
        if width is None or not pairs.any() or np.ptp(context.neighbours.distances[pairs]) > 0:
            return
        even = even_grid(min(grid), max(grid), width, grid[0])
        if len(even) != len(grid) or any((v - grid[0]) % width for v in values):
            return
        period = round(float(np.max(lengths(points, 1)[pairs])) / float(width))
        if period < 2:
            return
        epsilon = float(context.epsilon) * context.neighbours.least
        stairs = np.unique(np.linspace(1, period, min(period, _MOST_STAIRS)).round().astype(int))
        order = [even.index(g) for g in grid]
        tables = {
            int(upper): staircase_table(values, even, StaircaseNoise(period, int(upper), epsilon))[:, order]
            for upper in stairs
        }
        best = min(tables, key=lambda upper: context.loss(tables[upper]))
        text = (
            f"noise in stairs of {period} steps, the upper {best} of them {shown(exp(epsilon))} times as likely as the "
            "others, truncated at both ends"
        )
        yield Candidate("staircase mechanism", tables[best], text, self.note)
