"""Records by party: rows that stand together belong to one party; its first records count, missing ones are zero."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import numpy as np

from privspec.execute.problems import refuse
from privspec.model.library import Steps

if TYPE_CHECKING:
    import polars as pl

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
