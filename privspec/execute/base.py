"""Puts values on the grid of their input: the base vector that the mechanism sees, exactly.

Every rule here maps one entry (one record for balls) by itself, whatever the other entries are, so that
data sets that differ in one
entry are still neighbours after it.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from privspec.execute.exact import ExactVector, Integers, integers
from privspec.execute.executed import ExecutedInput
from privspec.kernel.core.linear import Alike


def place_entries(entry: ExecutedInput, values: NDArray[np.float64]) -> ExactVector:
    """Values (k,), not a number where missing, clipped to the domain and rounded to its grid; sums of those added up.

    A missing value becomes the point of the domain nearest to zero.
    """
    if entry.ball is not None:
        return _added(entry.alike, _place_balls(entry, values))
    # coordinates that share their bounds are placed together; most inputs have one pair of bounds
    pairs = list(zip(entry.lower, entry.upper, strict=True))
    if len(pairs) == 1:
        return _place_between(*pairs[0], entry.grid, values, entry.alike)
    cuts = [0, *(i for i in range(1, len(pairs)) if pairs[i] != pairs[i - 1]), len(pairs)]
    parts = [_place_between(*pairs[b], entry.grid, values[b:e]) for b, e in pairwise(cuts) if b < e]
    return ExactVector.joined(parts)


def _place_between(
    lower: Fraction | None,
    upper: Fraction | None,
    grid: Fraction,
    values: NDArray[np.float64],
    alike: Alike | None = None,
) -> ExactVector:
    finite = np.nan_to_num(values, nan=0.0)
    low = -np.inf if lower is None else float(lower)
    high = np.inf if upper is None else float(upper)
    clipped = np.clip(finite, low, high)
    if lower is None or upper is None:
        return _added(alike, _place_unbounded(lower, upper, grid, clipped))
    count = grid.denominator
    width = upper - lower
    share = (clipped - low) / float(width) if width else np.zeros(len(clipped))
    steps, copies = _sums(alike, np.clip(np.rint(share * count), 0, count))
    step = width / count
    denominator = np.lcm.reduce([lower.denominator, step.denominator], dtype=object)
    return ExactVector(
        steps * (step.numerator * (denominator // step.denominator))
        + copies * (lower.numerator * (denominator // lower.denominator)),
        int(denominator),
    )


LIMB = 2**26
"""Whole numbers up to 2^53 are added up in two parts, sums of which are whole numbers of 64 bits."""


def _sums(alike: Alike | None, steps: NDArray[np.float64]) -> tuple[Integers, Integers]:
    """Whole numbers up to 2^53 added up by class, number by number of a unit, and how many went into each sum."""
    if alike is None:
        return integers(steps), integers([1] * len(steps))
    classes = np.repeat(np.array(alike.classes), np.array(alike.counts))
    sums = np.zeros((2, len(alike.copies), alike.length), dtype=np.int64)
    for part, limb in zip(sums, (steps // LIMB, steps % LIMB), strict=True):
        np.add.at(part, classes, limb.astype(np.int64).reshape(-1, alike.length))
    high, low = (integers(part.reshape(-1).tolist()) for part in sums)
    return high * LIMB + low, integers([copies for copies in alike.copies for _ in range(alike.length)])


def _added(alike: Alike | None, placed: ExactVector) -> ExactVector:
    """The sums of the units of each class, number by number."""
    if alike is None:
        return placed
    sums = np.zeros((len(alike.copies), alike.length), dtype=object)
    classes = np.repeat(np.array(alike.classes), np.array(alike.counts))
    np.add.at(sums, classes, placed.numerators.reshape(-1, alike.length))
    return ExactVector(integers(sums.reshape(-1)), placed.denominator)


def _place_unbounded(
    lower: Fraction | None, upper: Fraction | None, grid: Fraction, clipped: NDArray[np.float64]
) -> ExactVector:
    """Multiples of the grid itself: there is no width to take a share of."""
    count = grid.denominator
    least = None if lower is None else -((-lower * count) // 1)
    most = None if upper is None else (upper * count) // 1
    steps = []
    for value in clipped:
        step = round(Fraction(float(value)) * count)
        step = step if least is None else max(step, int(least))
        steps.append(step if most is None else min(step, int(most)))
    return ExactVector(integers(steps), count)


def _place_balls(entry: ExecutedInput, values: NDArray[np.float64]) -> ExactVector:
    """Records scaled into their ball and rounded toward zero, so that they stay inside it, exactly."""
    assert entry.ball is not None
    radius, size = entry.ball.radius, entry.ball.size
    count = entry.grid.denominator
    steps: list[int] = []
    for record in np.where(np.isfinite(values), values, 0.0).reshape(-1, size):
        steps.extend(_into_ball([Fraction(float(x)) * count / radius for x in record], count, entry.ball.norm))
    scale = radius / count
    return ExactVector(integers(steps) * scale.numerator, scale.denominator)


def _into_ball(record: list[Fraction], radius: int, norm: int) -> list[int]:
    inside = [int(x) for x in record]
    length = sum(map(abs, inside)) if norm == 1 else isqrt(max(sum(x * x for x in inside) - 1, 0)) + 1
    if length <= radius:
        return inside
    return [(abs(x) * radius // length) * (1 if x > 0 else -1) for x in inside]


def place_counts(counts: NDArray[np.int64]) -> ExactVector:
    """Counts of cells, exactly as they are."""
    return ExactVector(integers(counts), 1)
