"""Total points of ballots, exactly: counts are whole numbers, points whole halves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np

from privspec.execute.ballots.form import NOT_ONE
from privspec.execute.ballots.reading import Ballots
from privspec.model.lotteries import Borda, FirstChoice, Points

POINTS: Mapping[str, Callable[..., Points]] = {FirstChoice.name: FirstChoice, Borda.name: Borda}
"""Points by the name that plans give them."""


def total_points(points: Points, ballots: Ballots) -> tuple[Fraction, ...]:
    """The same as `model.lotteries.scores`, for many ballots at once."""
    totals = _doubled_borda(ballots) if isinstance(points, Borda) else _doubled_first(ballots)
    return tuple(Fraction(int(total), 2) for total in totals)


def _doubled_first(ballots: Ballots) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    doubled = np.zeros(len(ballots.form.alternatives), dtype=np.int64)
    np.add.at(doubled, ballots.ranked[:, 0], 2 * ballots.counts)
    return doubled


def _doubled_borda(ballots: Ballots) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Twice the points: m - 1 less the place for those that are named, the mean of what is left for the others."""
    m = len(ballots.form.alternatives)
    lengths = (ballots.ranked != NOT_ONE).sum(axis=1)
    left = m - 1 - lengths
    # everybody gets what the ballot's unnamed get, then the named get the rest
    doubled = np.full(m, (left * ballots.counts).sum(), dtype=np.int64)
    for place in range(ballots.ranked.shape[1]):
        named = lengths > place
        own = (2 * (m - 1 - place) - left[named]) * ballots.counts[named]
        np.add.at(doubled, ballots.ranked[named, place], own)
    return doubled
