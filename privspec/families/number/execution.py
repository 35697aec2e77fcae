"""Plans about unknown keys and about sequences as mechanisms that can be run, each by one keeper of all records.

Every key has an exact threshold by itself; sums of a sequence are exact whole numbers, with exact noise on one grid.

A key is text: the cells of its columns, each in Unicode's composed form (NFC), control signs and runs of blanks as one
blank, none at either end, without what shows nothing. A record of which a cell of the key is missing, or has a value
that is not declared, has no key. All of that looks at one record alone. Keys are drawn for and released in the order of
their texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass
from privspec.execute.cells import canonical_text, clean_text
from privspec.execute.data import kept_rule, located
from privspec.execute.drawing import RowLaw, atom_of, read_places, symbol
from privspec.execute.engines import records_of
from privspec.execute.family import BlockMechanism, BlockSecret, Drawn, Exposure, RunContext
from privspec.execute.keeper import STRICT_RULE, given_for, refuse, refuse_strictly
from privspec.execute.kept import Keeping, People
from privspec.execute.reading import Declared
from privspec.execute.sources import is_frame, load_json, looked_up
from privspec.execute.statistic import NO_PLACE, Attribute, Coded, Groups, Statistic
from privspec.kernel.chains import Chain, ChainBlock
from privspec.kernel.core.problem import Data
from privspec.kernel.keys import Added, KeyBlock, KeyColumn, Keys
from privspec.kernel.laws.laplace import laplace_variance
from privspec.model.neighbours import ReplacingEntry
from privspec.noise.samplers import Randomness, discrete_laplace

if TYPE_CHECKING:
    import polars as pl

RULE = (
    "records without a key, or with a value that is not declared, are left out; a key is its text in Unicode's "
    "composed form (NFC), with one blank for blanks and control signs; keys stand in the order of their texts"
)
Key = tuple[str, ...]
Sums = tuple[int, ...]
"""How many records, and of every column that is added up the steps above its lower end."""


def text_of(cell: Any) -> str:
    """A cell as a part of a key; empty where it is missing."""
    return clean_text(str(cell)) if isinstance(cell, str | bool) else canonical_text(cell) or ""


def read_counts(block: KeyBlock, said: Data, data: Mapping[str, Any], circumstances: RunContext) -> dict[Key, Sums]:
    """How many records each key has, and sums of them, in the order of the keys; of each person those that are kept.

    Raises: DataError PS0801 to PS0809.
    """
    name, columns = block.source, block.columns
    source, kept = located(name, given_for(name, data)), said.kept
    added = list(_columns(block).values())
    attributes = (*map(_attribute, columns), *map(_numbers, added))
    person = None if kept is None else kept.person
    asked = Statistic(name, attributes, block.steps, person, said.derived)
    names = asked.columns[kept is not None :]
    if isinstance(source, Path) and source.suffix.lower() == ".json":
        found = load_json(name, source)
        source = found.get(name, found) if isinstance(found, dict) else found
        if isinstance(source, list):
            source = looked_up(source, [*([] if kept is None else [kept.person]), *names])
    if not is_frame(source) and (not isinstance(source, Path) or source.suffix.lower() == ".npy"):
        refuse("PS0803", f"the data for {name} cannot be read as a table of columns")
    if kept is not None and not circumstances.texts.header:
        hint = f"a column named {kept.person} says whose each record is"
        refuse("PS0804", f"{name} is read person by person: give records under named columns", help=hint)
    table = records_of(name, source, circumstances.texts, names)
    table.check(asked.columns)
    if circumstances.selects is not None:
        circumstances.selects.extend((name, select) for select in table.select(asked.read))
        return {}
    keeping = None if kept is None else Keeping(kept, circumstances.randomness.word())
    alone = [asked.sets.index((place,)) for place in asked.added]
    sums: dict[Key, Sums] = {}
    for part in table.parts(asked.read, lambda *_: None):
        found = [_keyed(block, added, alone, groups, circumstances) for groups in map(asked.followed, part)]
        if not found:
            continue
        every = sorted({key for one in found for key in one.keys})
        places = {key: place for place, key in enumerate(every)}
        cells = np.concatenate([np.array([places[key] for key in one.keys], np.int64)[one.places] for one in found])
        records, *own = (np.concatenate(columns) for columns in zip(*(one.sums for one in found), strict=True))
        if keeping is not None:
            people = People.of([one.whose for one in found if one.whose is not None])
            left = keeping.of(people, [cells, *own], records)
            records, own = left, [left * each for each in own]
        if circumstances.strict and (any(one.misfits for one in found) or (keeping is not None and keeping.lost)):
            refuse_strictly(name)
        totals = np.zeros((1 + len(own), len(every)), dtype=object)
        for total, each in zip(totals, (records, *own), strict=True):
            np.add.at(total, cells, each)
        for key, both in zip(every, totals.T.tolist(), strict=True):
            if both[0]:
                sums[key] = tuple(map(int.__add__, sums.get(key, (0,) * len(both)), map(int, both)))
    if keeping is not None:
        keeping.tell(name, circumstances.keeper)
    return dict(sorted(sums.items()))


@dataclass(frozen=True, slots=True)
class _Keyed:
    """Of groups that have a key: the keys, which of them each has (n,), how many records it is, its sums, and whose.

    misfits: whether any group has none since a cell does not fit.
    """

    keys: Sequence[Key]
    places: NDArray[np.int64]
    sums: Sequence[NDArray[Any]]
    whose: pl.Series | None
    misfits: bool


def _keyed(
    block: KeyBlock, added: Sequence[Added], alone: Sequence[int], groups: Groups, circumstances: RunContext
) -> _Keyed:
    columns, name, records = block.columns, block.source, groups.records
    read = [_texts(*pair, records, name, circumstances) for pair in zip(columns, groups.keys, strict=False)]
    numbers = groups.keys[len(columns) :]
    read += [_known(*pair, records, name, circumstances) for pair in zip(added, numbers, strict=True)]
    fitting = meeting = np.ones(len(groups.records), dtype=bool)
    for cells, coded in zip(read, groups.keys, strict=True):
        fitting = fitting & np.array([cell is not None for cell in cells], dtype=bool)[coded.places]
        meeting = meeting & np.array([cell is None or cell[1] for cell in cells], dtype=bool)[coded.places]
    some = fitting & meeting
    keys: list[Key] = [()]
    places = np.zeros(int(some.sum()), dtype=np.int64)
    for column, cells, coded in zip(columns, read, groups.keys, strict=False):
        if column.grouped:
            both, places = np.unique(places * len(cells) + coded.places[some], return_inverse=True)
            pairs = (divmod(pair, len(cells)) for pair in both.tolist())
            keys = [(*keys[before], cell[0]) for before, at in pairs if (cell := cells[at]) is not None]
    sums = [groups.records[some], *(groups.sums[place][some] for place in alone)]
    whose = groups.people[0].filter(some) if groups.people else None
    return _Keyed(keys, places, sums, whose, not fitting.all())


def _attribute(column: KeyColumn) -> Attribute:
    """A column as engines read it: one of unknown values is one of words, each cell as it stands."""
    if column.lower is not None and column.upper is not None:
        return Attribute(column.name, (), column.lower, column.upper)
    return Attribute(column.name, column.values or ("",))


def _columns(block: KeyBlock) -> dict[str, Added]:
    """The columns that are added up, in order, each with a sum of it."""
    return {one.column: one for one in reversed(block.added) if one.column is not None}


def _numbers(one: Added) -> Attribute:
    """A column that is added up, as engines read it."""
    return Attribute(str(one.column), (str(one.lower), str(one.upper)), shared=True)


def _known(
    one: Added, coded: Coded, records: NDArray[np.int64], name: str, circumstances: RunContext
) -> list[tuple[str, bool] | None]:
    """Whether there is a number, or none: None where there is none."""
    fit = circumstances.keeper.fit(
        name, str(one.column), fate="their records are left out", lower=float(one.lower), upper=float(one.upper)
    )
    fit.rows += int(records.sum())
    for missing, count in zip(coded.values, coded.counted(records).tolist(), strict=True):
        if missing and count:
            fit.cell(None, count)
    return [None if missing else ("", True) for missing in coded.values]


def _texts(
    column: KeyColumn, coded: Coded, records: NDArray[np.int64], name: str, circumstances: RunContext
) -> list[tuple[str, bool] | None]:
    """The text of each of the different cells and whether it is one that is counted; None where it does not fit."""
    listed = bool(column.values) or column.lower is not None
    fit = circumstances.keeper.fit(name, column.name, fate="their records are left out", words=column.values)
    fit.rows += int(records.sum())
    lookup = _attribute(column).lookup() if listed else None
    kept = None if column.kept is None else set(column.kept)
    found: list[tuple[str, bool] | None] = []
    counted = coded.counted(records).tolist()
    for cell, count in zip(coded.values, counted, strict=True):
        if lookup is None:
            text = text_of(cell)
            found.append((text, True) if text else None)
        else:
            place, _ = lookup(cell)
            label = column.values[place] if column.values else str(place + (column.lower or 0))
            found.append(None if place == NO_PLACE else (label, kept is None or place in kept))
        if found[-1] is None and count:
            fit.cell(None if lookup is None else cell, count)
    return found


class KeyMechanism(BlockMechanism[Keys, dict[Key, Sums]]):
    """Every key that occurs draws a threshold of its own."""

    BLOCK = KeyBlock

    @staticmethod
    def content(block: Any, source: Data, data: Mapping[str, Any], circumstances: RunContext) -> dict[Key, Sums]:
        return read_counts(block, source, data, circumstances)

    @property
    def nothing(self) -> dict[Key, Sums]:
        """One key that is shown as often as not, its numbers at their lower ends."""
        half = next(n for n, chance in enumerate(self.executed.kept(), 1) if 2 * chance >= 1)
        return {("",): (half, *(0 for _ in _columns(self.executed.block)))}


class KeySecret(BlockSecret[KeyMechanism, dict[Key, Sums]]):
    """How many records each key has, and sums of them."""

    @property
    def rules(self) -> tuple[str, ...]:
        kept = self.mechanism.source.kept
        persons = () if kept is None else (f"of records with a key, {kept_rule(kept)}; a cell is a key",)
        return (*((STRICT_RULE,) if self.strict else ()), RULE, *persons)

    @property
    def size(self) -> int:
        return len(self.content)

    def numbers(self, randomness: Randomness) -> list[float]:
        """For every key in order its count, or 1 where keys are shown alone, and 0 where it is hidden; then sums."""
        shown, block = dict(self.shown(randomness)), self.mechanism.executed.block
        found = [float(shown.get(key, 0) if block.counts else key in shown) for key in self.content]
        drawn = self.sums(list(shown), randomness)
        for one in block.added:
            if one.each is not None:
                each = dict(zip(shown, drawn[one.each], strict=True))
                found += [float(each.get(key, 0)) for key in self.content]
            if one.together is not None:
                found += map(float, drawn[one.together])
        return found

    def sums(self, shown: Sequence[Key], randomness: Randomness) -> dict[str, list[Fraction]]:
        """Noisy sums of the keys that are shown, in their order, that of all others, and that of all."""
        keys, listed, found = self.mechanism.executed, set(shown), dict[str, list[Fraction]]()
        columns = list(_columns(keys.block))
        for one, scale in keys.sums:
            unit, place = keys.block.unit(one), None if one.column is None else 1 + columns.index(one.column)
            low = int(one.lower / unit)
            # of every key how many records, each at the lower end, and the steps above it
            steps = {key: own[0] * low + (0 if place is None else own[place]) for key, own in self.content.items()}
            sums = {
                one.each: [steps[key] for key in shown],
                one.rest: [sum(value for key, value in steps.items() if key not in listed)],
                one.whole: [sum(steps.values())],
            }
            for name in one.outputs:
                found[name] = [unit * (value + discrete_laplace(scale, randomness)) for value in sums[name]]
        return found

    def shown(self, randomness: Randomness) -> list[tuple[Key, int]]:
        """The keys that reach their thresholds, each with its released count; in the order of the keys."""
        keys = self.mechanism.executed
        law = RowLaw(tuple(accumulate(keys.steps)), keys.total)
        thresholds = (law.draws(len(self.content), randomness) + 1).tolist()
        drawn = zip(self.content.items(), thresholds, strict=True)
        return [(key, count - threshold + keys.centre) for (key, (count, *_)), threshold in drawn if count >= threshold]

    def draw(self, randomness: Randomness) -> Drawn:
        block, shown = self.mechanism.executed.block, self.shown(randomness)
        names = [column.name for column in block.columns if column.grouped]
        labels = {name: _words([key[place] for key, _ in shown]) for place, name in enumerate(names)}
        if block.counts:
            values: NDArray[Any] = np.array([count for _, count in shown], dtype=np.int64)
        else:
            values = _words([", ".join(key) for key, _ in shown])
        released, named = {block.output: values}, {block.output: labels}
        drawn = self.sums([key for key, _ in shown], randomness)
        for one in block.added:
            if one.each is not None:
                released[one.each] = np.array(list(map(float, drawn[one.each])))
                named[one.each] = labels
            if one.together is not None:
                released[one.together] = np.array(float(drawn[one.together][0]))
        keys = self.mechanism.executed
        sizes = {name: sqrt(keys.variance(*one)) for one in keys.sums for name in one[0].outputs}
        errors = {name: np.full(released[name].shape, size) for name, size in sizes.items()}
        return Drawn(released, "1" if block.counts and not block.added else None, labels=named, deviations=errors)


def _words(texts: Sequence[str]) -> NDArray[Any]:
    found = np.empty(len(texts), dtype=object)
    found[:] = texts
    return found


KeyMechanism.SECRET = KeySecret


# --- sequences ----------------------------------------------------------------------------------


ENTRY_RULE = (
    "each entry by itself: a number moves to the nearest value of its domain (halfway, to the larger), one that is "
    "missing or unreadable to the value nearest to zero; a word that is missing or not in its set becomes the set's "
    "first"
)


class ChainMechanism(BlockMechanism[Chain, list[int]]):
    """What entries add is summed up in whole steps; noise in whole steps is added to each number."""

    BLOCK = ChainBlock

    @staticmethod
    def content(block: Any, _source: Data, data: Mapping[str, Any], circumstances: RunContext) -> list[int]:
        """The place of every entry among its values."""
        declared = Declared(block.source, (len(block.added.rows) // len(block.offset.values()),))
        given = located(block.source, given_for(block.source, data))
        found: list[int] = read_places(atom_of([*map(symbol, block.states)]), declared, given, circumstances).tolist()
        return found

    @property
    def nothing(self) -> list[int]:
        """Entries of the first value."""
        return [0] * self.executed.length


class ChainSecret(BlockSecret[ChainMechanism, list[int]]):
    """The place of every entry among its values."""

    RULE = ENTRY_RULE

    @property
    def size(self) -> int:
        return len(self.mechanism.executed.offset)

    @cached_property
    def steps(self) -> list[int]:
        """The exact answers in steps (m,)."""
        counts = zip(self.mechanism.executed.counts, self.content, strict=True)
        return [sum(column) for column in zip(*([row[place] for row in rows] for rows, place in counts), strict=True)]

    def numbers(self, randomness: Randomness) -> list[float]:
        """The noisy answers, exact until they are written as doubles."""
        chain = self.mechanism.executed
        drawn = [steps + discrete_laplace(chain.scale, randomness) for steps in self.steps]
        return [float(at + chain.unit * one) for at, one in zip(chain.offset, drawn, strict=True)]

    def draw(self, randomness: Randomness) -> Drawn:
        chain, values = self.mechanism.executed, np.array(self.numbers(randomness))
        released = {one.name: values[one.start : one.stop].reshape(one.shape) for one in chain.block.released}
        return Drawn(released, str(chain.unit))

    def deviations(self) -> Mapping[str, NDArray[np.float64]]:
        chain = self.mechanism.executed
        size = float(chain.unit) * sqrt(float(laplace_variance(chain.scale, Fraction(1))))
        return {one.name: np.full(one.shape, size) for one in chain.block.released}


ChainMechanism.SECRET = ChainSecret


class ChainExposure(Exposure):
    """All outputs are released together.

    Guarantees given a model do not add up over releases. What does is what holds whatever the model: the epsilon of one
    entry, which the ledger is charged for a line that counts on the model.
    """

    def charged(self, guarantee: Mapping[str, Any]) -> Mapping[str, Any]:
        """For a line that counts on the model, what holds of one entry without it."""
        if int(guarantee["requirement"]) not in self.plan["problem"]["blocks"][0]["lines"]:
            return guarantee
        epsilon = self.plan["claims"]["without_model"]["entry"]
        kept = {key: value for key, value in guarantee.items() if key != "delta"}
        unit = {"neighbours": ReplacingEntry().describe(), "epsilon": epsilon, "achieved": {"epsilon": epsilon}}
        return kept | unit
