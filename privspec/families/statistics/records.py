"""Records by party, in steps of the grid, each drawn in to its ball by itself: exactly, whatever doubles do.

Rows that stand together belong to one party; its first records count, missing ones are zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.execute.keeper import refuse
from privspec.model.library import GRID_BITS, Steps

if TYPE_CHECKING:
    import polars as pl

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


Block: TypeAlias = tuple[list[str], Steps]
"""Keys of some parties, and their records (M, n, d) in steps."""


@dataclass(slots=True)
class Gatherer:
    """Turns rows into blocks of parties; the party of the last row stays open until another one begins."""

    party: str
    count: int
    dimension: int
    _open: str | None = None
    _filled: int = 0
    _records: Steps = field(init=False)
    _seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._records = self._zeros(1)[0]

    def _zeros(self, parties: int) -> Steps:
        return np.zeros((parties, self.count, self.dimension), dtype=np.int64)

    def blocks(self, batches: Iterable[tuple[pl.Series, Steps]]) -> Iterator[Block]:
        """Parties with their records, in the order of the rows.

        Args: batches of rows, the key of each row's party (none missing) and its record.
        Raises: DataError PS0812 if rows of a party do not stand together.
        """
        for keys, records in batches:
            if len(records):
                yield self._add(keys, records)
        if self._open is not None:
            yield [self._open], self._records[None]

    def _add(self, keys: pl.Series, records: Steps) -> Block:
        begins = keys.ne_missing(keys.shift(1)).to_numpy().copy()
        begins[0] = keys.head(1).cast(str)[0] != self._open
        starts = np.flatnonzero(begins)
        group = np.cumsum(begins)
        place = np.arange(len(records)) - np.concatenate([[-self._filled], starts])[group]
        gathered = self._zeros(len(starts) + 1)
        gathered[0] = self._records
        kept = place < self.count
        gathered[group[kept], place[kept]] = records[kept]
        found = self._known(keys.gather(starts).cast(str).to_list())
        names = ([] if self._open is None else [self._open]) + found
        self._records, self._filled = gathered[-1].copy(), int(place[-1]) + 1
        begin = 1 if self._open is None else 0
        self._open = names[-1]
        return names[:-1], gathered[begin:-1]

    def _known(self, names: list[str]) -> list[str]:
        for name in names:
            if name in self._seen:
                refuse_scattered(self.party)
            self._seen.add(name)
        return names


def refuse_scattered(party: str) -> NoReturn:
    """Which party it is stays unsaid."""
    refuse(
        "PS0812",
        f"the rows of one {party} do not stand together",
        "nothing was drawn and nothing was spent",
        help=f"sort the data by {party}; the order of the rows of one {party} should stay as it is",
    )
