"""Records in steps of the grid, each drawn in to its ball by itself: exactly, whatever doubles do."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privspec.model.library import GRID_BITS, Steps

LARGEST = 2.0**40
"""Entries of records without a ball count as this at most, so that their steps fit into 64 bits."""
LARGEST_RADIUS = 2**10
"""Of a ball of records: products of two records in steps fit into 64 bits."""


def to_steps(values: NDArray[np.float64], radius: Fraction | None) -> tuple[Steps, NDArray[np.bool_]]:
    """Records (m, d) in steps of `GRID`, and which of them were as the domain says.

    A record with a number that is missing or not finite becomes zero; one outside the ball is drawn in to it; then
    every number is rounded towards zero. Its squared norm in steps, an integer, is at most that of the radius. What
    becomes of a record depends on nothing but the record.
    """
    finite: NDArray[np.bool_] = np.all(np.isfinite(values), axis=1)
    known = np.where(finite[:, None], values, 0.0)
    if radius is None:
        fits: NDArray[np.bool_] = finite & (np.abs(known) <= LARGEST).all(axis=1)
        return np.trunc(np.clip(known, -LARGEST, LARGEST) * 2.0**GRID_BITS).astype(np.int64), fits
    if not 0 < radius <= LARGEST_RADIUS:
        raise ValueError(f"records in a ball of radius {radius}: execution takes radii up to {LARGEST_RADIUS}")
    inside, drawn = _drawn_in(known, float(radius))
    return _shortened(np.trunc(drawn * 2.0**GRID_BITS).astype(np.int64), radius), finite & inside


def _drawn_in(values: NDArray[np.float64], radius: float) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Nearest points of the ball, up to the rounding of doubles."""
    largest = np.max(np.abs(values), axis=1, initial=0.0)[:, None]
    directions = values / np.where(largest > 0, largest, 1.0)
    squares = np.zeros(len(values))
    for column in directions.T:  # a sum in a fixed order: how a library groups it could depend on other records
        squares += column * column
    lengths = np.sqrt(squares)[:, None]
    with np.errstate(over="ignore"):
        inside = largest * lengths <= radius * (1 + 1e-12)
    shrunk = directions * (radius / np.maximum(lengths, 1.0))
    return inside[:, 0], np.where(inside, values, shrunk)


def _shortened(steps: Steps, radius: Fraction) -> Steps:
    """Records that are longer than the radius, by the rounding of doubles, one step shorter until they are not."""
    limit = int(radius * radius * 2 ** (2 * GRID_BITS))
    over = np.flatnonzero((steps * steps).sum(axis=1) > limit)
    while over.size:
        shorter = steps[over] - np.sign(steps[over])
        steps[over] = shorter
        over = over[(shorter * shorter).sum(axis=1) > limit]
    return steps
