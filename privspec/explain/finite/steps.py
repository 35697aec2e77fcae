"""Privacy by distance: how well two values can be told apart that are at most so far from each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privspec.explain.curves import Curve, EpsilonDeltaCurve
from privspec.explain.finite.table import Array, Indices, Table
from privspec.explain.finite.tradeoff import curve_of
from privspec.explain.quantities import Rounding, parse_exact, rounded, ungrouped

MOST_STEPS = 3
"""Round distances that are shown, besides the largest."""
_NEAR = 1 + 1e-9
"""Two values count as at most d apart up to this factor, so that roots in doubles leave none out."""


@dataclass(frozen=True, eq=False, slots=True)
class Reach:
    """What an observer can tell of two values at most `distance` apart, and the epsilon that holds for them."""

    distance: Fraction
    epsilon: Fraction
    curve: Curve


def reaches(table: Table, wrt: Sequence[str], metric: str, epsilon: Fraction) -> tuple[Reach, ...]:
    """The curves at a few round distances between the least and the largest of the table, from near to far.

    Args: epsilon for each unit of distance; metric, the distance as the spec names it.
    """
    pairs = table.pairs(wrt)
    apart = _distances(table, wrt, metric, pairs)
    if apart is None or not apart.any():
        return tuple(Reach(d, epsilon * d, EpsilonDeltaCurve(float(epsilon * d))) for d in map(Fraction, (1, 2, 5)))
    found = []
    for distance in _round_distances(float(apart[apart > 0].min()), float(apart.max())):
        bound = epsilon * distance
        near = pairs[apart <= float(distance) * _NEAR]
        exact = curve_of(table, near, (float(bound) * _NEAR, 0.0))
        found.append(Reach(distance, bound, exact or EpsilonDeltaCurve(float(bound) * _NEAR)))
    return tuple(found)


def _round_distances(least: float, largest: float) -> list[Fraction]:
    """The first of 1, 2, 5 times a power of ten from the least distance on, and the largest distance, rounded up."""
    ten = Fraction(10) ** int(np.floor(np.log10(least)))
    steps = [digit * ten * 10**power for power in range(40) for digit in (1, 2, 5)]
    inside = [step for step in steps if least <= float(step) * _NEAR and float(step) < largest / _NEAR]
    return [*inside[:MOST_STEPS], Fraction(ungrouped(rounded(largest, 3, Rounding.UP).text))]


def _distances(table: Table, wrt: Sequence[str], metric: str, pairs: Indices) -> Array | None:
    """The distances of pairs of rows (K,), in doubles; None if they are not known here."""
    apart = _METRICS.get(metric)
    at = [i for i, name in enumerate(table.of) if name in wrt]
    if apart is None or not at or any(table.of[i] in table.counted for i in at):
        return None
    scalars = [[scalar for i in at for scalar in row[i]] for row in table.rows]
    if len({len(row) for row in scalars}) != 1:
        return None
    return apart(np.column_stack([_gaps([row[k] for row in scalars], pairs) for k in range(len(scalars[0]))]))


def _gaps(values: list[str], pairs: Indices) -> Array:
    """Sizes of the differences (K,) of numbers; words are one apart where they differ."""
    try:
        numbers = np.array([float(parse_exact(text)) for text in values])
    except ValueError:
        words = np.array(values)
        return np.asarray(words[pairs[:, 0]] != words[pairs[:, 1]], dtype=float)
    return np.asarray(np.abs(numbers[pairs[:, 0]] - numbers[pairs[:, 1]]))


_METRICS: Mapping[str, Callable[[Array], Array]] = {
    "euclidean": lambda gaps: np.sqrt((gaps**2).sum(axis=1)),
    "manhattan": lambda gaps: gaps.sum(axis=1),
    "chebyshev": lambda gaps: gaps.max(axis=1),
    "hamming": lambda gaps: np.count_nonzero(gaps, axis=1).astype(float),
    "discrete": lambda gaps: gaps.any(axis=1).astype(float),
}
"""Distances (K,) from the differences of all scalars (K, d); those of rankings are not drawn."""


def separation(rows: Sequence[Array]) -> Array:
    """The Euclidean distances of points (n, d), as a matrix (n, n)."""
    stacked = np.asarray(rows)
    return np.asarray(np.sqrt(((stacked[:, None, :] - stacked[None, :, :]) ** 2).sum(axis=2)))


def spread_out(at: Array, most: int) -> list[int]:
    """A few points (n, d) that show the whole: one in the middle, then always the one farthest from those chosen."""
    middle = at.mean(axis=0)
    chosen = [int(np.argmin(((at - middle) ** 2).sum(axis=1)))]
    apart = separation([*at])
    while len(chosen) < min(most, len(at)):
        nearest = apart[:, chosen].min(axis=1)
        if nearest.max() <= 0:
            break
        chosen.append(int(np.argmax(nearest)))
    return chosen
