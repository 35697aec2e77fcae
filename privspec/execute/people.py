"""Records by person: of each person so many are kept, drawn uniformly and exactly, before anything is counted.

An id is text of any kind. Two ids are one person's if they agree once white space around them is taken away and both
are written in one Unicode form (NFC); capital and small letters differ, and so do "7" and "007". A record with a blank
id, or none, is nobody's and is left out. What is kept of a person depends on the records of that person alone, and on
chance: notes/people.md says what follows. Ids are never shown, to nobody.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privspec.problem.words import kept_words

if TYPE_CHECKING:
    from privspec.execute.family import Circumstances
    from privspec.kernel.participation import Kept
    from privspec.noise.samplers import Randomness

Counts = NDArray[np.int64]


def kept_rule(kept: Kept) -> str:
    """What is done with records before they are counted: part of every release."""
    return kept_words(kept)


def ids_of(written: Sequence[str | None]) -> list[str]:
    """Whose each row is, in the one form of an id; empty for nobody's."""
    forms = {text: unicodedata.normalize("NFC", text).strip() if text else "" for text in set(written)}
    return [forms[text] for text in written]


def cut(
    kept: Kept, name: str, column: Sequence[str | None], cells: Counts, records: Counts, circumstances: Circumstances
) -> Counts:
    """How many of the records of each row (n,) are counted.

    Rows are records that are alike: `records` of them, of the person in the column, in a cell. First each cell keeps
    what it may hold of a person, then the person what is allowed in all; both by uniform draws.
    """
    ids, randomness = ids_of(column), circumstances.randomness
    numbers: dict[str, int] = {}
    owner = np.array([numbers.setdefault(one, len(numbers)) for one in ids], dtype=np.int64)
    nobody, found = numbers.get("", -1), records.copy()
    found[owner == nobody] = 0
    if kept.per_cell is not None:
        _, place = np.unique(np.stack([owner, cells], axis=1), axis=0, return_inverse=True)
        _at_most(kept.per_cell, place.reshape(-1), found, randomness)
    _at_most(kept.most, owner, found, randomness)
    _tell(kept, name, numbers, owner, records, found, circumstances)
    return found


def _at_most(most: int, owner: Counts, found: Counts, randomness: Randomness) -> None:
    """Of each owner's records a uniformly random choice of `most` stays, where there are more."""
    held = np.bincount(owner, weights=None, minlength=1) * 0
    np.add.at(held, owner, found)
    over = np.flatnonzero(held > most)
    if not over.size:
        return
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], over, side="left")
    ends = np.searchsorted(owner[order], over, side="right")
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        rows = order[start:end]
        found[rows] = chosen(found[rows].tolist(), most, randomness)


def chosen(counts: Sequence[int], most: int, randomness: Randomness) -> list[int]:
    """How many of each kind are among `most` things drawn uniformly, without putting back, from these counts."""
    left, drawn = list(counts), [0] * len(counts)
    total = sum(left)
    for _ in range(min(most, total)):
        at, kind = randomness.below(total), 0
        while at >= left[kind]:
            at, kind = at - left[kind], kind + 1
        left[kind] -= 1
        drawn[kind] += 1
        total -= 1
    return drawn


def _tell(
    kept: Kept,
    name: str,
    numbers: dict[str, int],
    owner: Counts,
    records: Counts,
    found: Counts,
    circumstances: Circumstances,
) -> None:
    """For the keeper alone: how many records were cut, and which ids may be one person's; in numbers, no id."""
    total, nobody = int(records.sum()), numbers.get("", -1)
    lost = int(records[owner == nobody].sum())
    if lost:
        circumstances.keeper.remark(name, f"{lost:,} of {total:,} records say no {kept.person} and are left out")
    over = total - lost - int(found.sum())
    if over:
        people = len({int(one) for one in owner[found < records]} - {nobody})
        text = f"{over:,} of {total:,} records are cut, those of {people:,} of {len(numbers) - (nobody >= 0):,}"
        text += f" ids with more than {kept.most}" + (
            "" if kept.per_cell is None else f", or {kept.per_cell} in a cell"
        )
        circumstances.keeper.remark(name, text)
    folded: dict[str, int] = {}
    for one in numbers:
        if one:
            plain = "".join(unicodedata.normalize("NFKC", one).casefold().split())
            folded[plain] = folded.get(plain, 0) + 1
    alike = sum(count for count in folded.values() if count > 1)
    if alike:
        text = f"{alike:,} ids differ from another only in capital letters, spaces or how signs are written: they count"
        circumstances.keeper.remark(name, f"{text} as different people")
