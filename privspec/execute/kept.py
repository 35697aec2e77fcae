"""Of each person so many records are kept, drawn uniformly and exactly, before anything is counted.

An id is text of any kind. Two ids are one person's if `cells.id_text` gives them one text: signs that show nothing, and
blanks around them, do not count, and a whole number is one id whether it is written as 7 or 7.0; capital and small
letters differ, and so do "7" and "007". A record with a blank id, or none, is nobody's and is left out. Ids are never
shown, to nobody.

What is kept of a person follows from the cells of that person's records, from the text of the id, and from a number
that is drawn once a run: words are hashed from the two (XXH64, as in `fingerprint`), and of these the choice is drawn
without rounding. So it is the same whoever else is there, in whichever order, engine or parts the records come; to what
extent words are as good as independent is a matter of fairness to records, and privacy does not rest on it:
notes/people.md says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass, field
from privspec.execute.cells import folded, id_texts
from privspec.execute.fingerprint import WRAP, Hashes, bytes_of, hash_texts, hash_words
from privspec.execute.keeper import DataOwnerReport

if TYPE_CHECKING:
    import polars as pl

    from privspec.kernel.core.problem import ContributionBound

Counts = NDArray[np.int64]
Words = Callable[[Counts, int], Hashes]
"""A word for each of some segments, by their places (k,), in a round."""
BLOCK = 2**19
"""Rows, or bits of a table, that are looked at at once, so that they stay near the processor."""
NOBODY = -(2**63)
"""Whose a record without an id is."""
AGAIN = 2**32
"""So many rounds further on are the words that are taken where the first leave a choice open."""


@dataclass(frozen=True, slots=True)
class People:
    """Whose each record is (n,): the id where all are whole numbers, else its place among the texts, which ascend."""

    owner: Counts
    ids: pl.Series | None

    @classmethod
    def of(cls, written: Sequence[pl.Series]) -> People:
        """Of ids as they were read (`sources.readable`), some after others."""
        import polars as pl

        if all(part.dtype.is_integer() and part.dtype not in (pl.UInt64, pl.Int128, pl.UInt128) for part in written):
            whole = [part.cast(pl.Int64).fill_null(NOBODY).to_numpy() for part in written]
            return cls(np.concatenate(whole) if whole else np.zeros(0, dtype=np.int64), None)
        rows = pl.DataFrame({"written": pl.concat([part.cast(pl.String) for part in written]).fill_null("")})
        forms = rows.unique().with_columns(
            id=pl.col("written").map_batches(id_texts, return_dtype=pl.String).fill_null("")
        )
        ids = forms["id"].unique().sort()
        placed = forms.join(pl.DataFrame({"id": ids}).with_row_index("place"), on="id")
        found = rows.join(placed, on="written", how="left", maintain_order="left")["place"]
        owner = found.cast(pl.Int64).to_numpy()
        blank = len(ids) > 0 and ids[0] == ""
        return cls(np.where(owner == 0, NOBODY, owner) if blank else owner, ids)

    def texts(self, some: Counts) -> pl.Series:
        """The ids of some owners."""
        import polars as pl

        return pl.Series(some).cast(pl.String) if self.ids is None else self.ids.gather(some)


@dataclass(eq=False, slots=True)
class Keeping:
    """One choice, made of all records of some people after those of others.

    key: the number of this run; the others are for the keeper alone: records that were looked at, that say nobody's id,
    that were kept, the people whose were cut, all people, and their ids where these are texts.
    """

    kept: ContributionBound
    key: int
    records: int = 0
    lost: int = 0
    left: int = 0
    cut: int = 0
    people: int = 0
    ids: list[pl.Series] = field(default_factory=list)

    def of(self, people: People, cells: Sequence[Counts], records: Counts, held: Counts | None = None) -> Counts:
        """How many of the records of each row (n,) are counted.

        Rows are records that are alike: `records` of them, of one person, in a cell, which the first of some columns of
        numbers says; what agrees in all of these is alike. First each cell keeps what it may hold of a person, then the
        person what is allowed in all; both by uniform draws. `held`: how many each of the people had, in their order,
        where rows say less.
        """
        if not len(records):
            return records
        columns, order = [people.owner, *cells], _order([people.owner, *cells])
        whose, cell, left = columns[0][order], columns[1][order], np.array(records[order])
        left[whose == NOBODY] = 0
        persons = _starts(whose)
        named, before = whose[persons], np.add.reduceat(records[order], persons) if held is None else held
        if self.kept.per_cell is not None:
            both = _starts(whose, cell)
            _at_most(self.kept.per_cell, both, left, lambda some: self._words(people, whose[some], cell[some]))
        _at_most(self.kept.most, persons, left, lambda some: self._words(people, whose[some]))
        nobody, after = named == NOBODY, np.add.reduceat(left, persons)
        self.records += int(before.sum())
        self.lost += int(before[nobody].sum())
        self.left += int(after.sum())
        self.people += int(np.count_nonzero(~nobody))
        self.cut += int(np.count_nonzero(~nobody & (after < before)))
        if people.ids is not None:
            self.ids.append(people.texts(named[~nobody]))
        found = np.empty_like(left)
        found[order] = left
        return found

    def by_cell(self, people: People, cell: NDArray[Any], size: int) -> Counts:
        """How many records count in each of so many cells, of records (n,) each by itself that are alike in theirs."""
        owner, known, found = people.owner, people.owner != NOBODY, np.zeros(size, dtype=np.int64)
        if not known.all():
            nobody = int(np.count_nonzero(~known))
            self.records, self.lost = self.records + nobody, self.lost + nobody
            owner, cell = owner[known], cell[known]
        if len(owner):
            for own, cells, records, held in _merged(owner, cell, size, once=self.kept.per_cell == 1):
                left = self.of(People(own, people.ids), [cells], records, held)
                found += np.bincount(cells, left, size).astype(np.int64)
        return found

    def _words(self, people: People, owner: Counts, cell: Counts | None = None) -> Words:
        """Those of segments of records, each of an owner."""
        states = hash_texts(*bytes_of(people.texts(owner)), self.key)
        if cell is not None:
            states = hash_words(states + cell.astype(np.uint64), self.key)
        return lambda some, number: hash_words(states[some], (self.key + number) % WRAP)

    def tell(self, name: str, keeper: DataOwnerReport) -> None:
        """How many records were cut, and which ids may be one person's; in numbers, no id."""
        import polars as pl

        keeper.left_out(name, self.lost, self.records, f"say no {self.kept.person}")
        over = self.records - self.lost - self.left
        if over:
            text = f"{over:,} of {self.records:,} records are cut, those of {self.cut:,} of {self.people:,}"
            text += f" ids with more than {self.kept.most}"
            keeper.remark(name, text + ("" if self.kept.per_cell is None else f", or {self.kept.per_cell} in a cell"))
        alike = int(folded(pl.concat(self.ids)).is_duplicated().sum()) if self.ids else 0
        if alike:
            text = f"{alike:,} ids differ from another only in capital letters, spaces or how signs are written: they"
            keeper.remark(name, f"{text} count as different people")


def _merged(
    owner: Counts, cell: NDArray[Any], size: int, *, once: bool
) -> Iterator[tuple[Counts, Counts, Counts, Counts | None]]:
    """Each owner and cell that records have (n > 0,), once, in order, some owners after others.

    And how many records have them; where it does not matter (`once`), 1, and how many records each owner has.
    """
    low = int(owner.min())
    span, ids = int(owner.max()) - low + 1, None
    if span * size >= 2**62:
        ids, owner = np.unique(owner, return_inverse=True)
        low, span = 0, len(ids)
    both = owner - low
    if once and span * size <= min(2**29, 16 * len(both)):
        totals, there = np.bincount(both, minlength=span), np.zeros(span * size, dtype=bool)
        both *= size
        both += cell
        there[both] = True
        for begin in range(0, span, step := max(BLOCK // size, 1)):
            own, cells = np.divmod(np.flatnonzero(there[begin * size : (begin + step) * size]), size)
            some = totals[begin : begin + step]
            if len(own):
                own += begin + low
                yield own if ids is None else ids[own], cells, np.ones(len(own), dtype=np.int64), some[some > 0]
        return
    both *= size
    both += cell
    if span * size < 2**32:
        both = both.astype(np.uint32)  # half as long to sort
    both.sort()
    ends = both.searchsorted(both[BLOCK::BLOCK] // size * size)
    for some in np.split(both, np.unique(ends)):
        if len(some):
            starts = _starts(some)
            own, cells = np.divmod(some[starts].astype(np.int64), size)
            own += low
            yield own if ids is None else ids[own], cells, np.diff(starts, append=len(some)), None


def _order(columns: Sequence[Counts]) -> Counts | slice:
    """The rows in order, by the first column first; as they stand where they are."""
    first, second, *others = columns
    up, level = first[1:] > first[:-1], first[1:] == first[:-1]
    if not others and np.all(up | (level & (second[1:] >= second[:-1]))):
        return slice(None)
    return np.lexsort(columns[::-1])


def _starts(*columns: Counts) -> Counts:
    """Where other values begin than stand before."""
    other = np.zeros(len(columns[0]), dtype=bool)
    other[:1] = True
    for values in columns:
        other[1:] |= values[1:] != values[:-1]
    return np.flatnonzero(other)


def _at_most(most: int, starts: Counts, left: Counts, of: Callable[[Counts], Words]) -> None:
    """Of the records of each segment of rows a uniformly random choice of `most` stays, where there are more.

    Args: starts, the first row of each segment; left, how many records of each row are left, which is changed; of,
        gives the words of some segments, by their first rows: independent and uniform if the choice is to be.
    """
    lengths, totals = np.diff(starts, append=len(left)), np.add.reduceat(left, starts)
    alone = starts[(totals > most) & (lengths == 1)]
    left[alone] = most
    over = (totals > most) & (lengths > 1)
    if not over.any():
        return
    sizes, begins = totals[over], starts[over]
    rows = np.repeat(begins - _before(lengths[over]), lengths[over]) + np.arange(lengths[over].sum())
    slots, words, first = np.repeat(rows, left[rows]), of(begins), _before(sizes)
    # so many steps of a shuffle: each takes one of the records that are left
    for drawn in range(most):
        here, there = first + drawn, first + drawn + _below(sizes - drawn, words, drawn)
        slots[here], slots[there] = slots[there], slots[here]
    left[rows] = 0
    np.add.at(left, slots[first[:, None] + np.arange(most)].reshape(-1), 1)


def _before(sizes: Counts) -> Counts:
    return np.cumsum(sizes) - sizes


def _below(bounds: Counts, words: Words, number: int) -> Counts:
    """A uniform whole number from 0 below each bound, exactly (by rejection)."""
    every, limits = np.arange(len(bounds)), bounds.astype(np.uint64)
    # of all words so many would make the first numbers likelier
    surplus = (np.uint64(0) - limits) % limits
    found = words(every, number)
    while (again := np.flatnonzero(found < surplus)).size:
        number += AGAIN
        found[again] = words(again, number)
    return (found % limits).astype(np.int64)
