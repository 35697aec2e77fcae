"""A plan about unknown keys as a mechanism that can be run: exact thresholds, one for each key by itself.

A key is text: the cells of its columns, each in Unicode's composed form (NFC), control signs and runs of blanks as one
blank, none at either end. A record of which a cell of the key is missing, or has a value that is not declared, has no
key. All of that looks at one record alone. Keys are drawn for and released in the order of their texts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privspec.execute.data import located
from privspec.execute.drawing import RowLaw
from privspec.execute.engines import records_of
from privspec.execute.family import (
    Circumstances,
    Drawn,
    FamilyMechanism,
    Plan,
    Secret,
    Simulation,
    readable_plan,
    refuse_long_simulation,
    refuse_unknown,
)
from privspec.execute.keeper import STRICT_RULE, given_for, is_missing, refuse, refuse_strictly
from privspec.execute.people import cut, ids_of, kept_rule
from privspec.execute.sources import is_frame, load_json
from privspec.execute.statistic import NO_PLACE, Attribute, Groups, Statistic
from privspec.kernel.core.problem import read_frame
from privspec.kernel.core.reading import Item
from privspec.kernel.keys import KeyBlock, KeyColumn, Keys, read_keys
from privspec.kernel.participation import Kept
from privspec.noise.samplers import Randomness, SimulationRandomness

if TYPE_CHECKING:
    from privspec.model.graph import Model

RULE = (
    "records without a key, or with a value that is not declared, are left out; a key is its text in Unicode's "
    "composed form (NFC), with one blank for blanks and control signs; keys stand in the order of their texts"
)
Key = tuple[str, ...]


def keys_of_plan(plan: Plan) -> Keys:
    """Raises: UsageError PS0820 if the plan is not one that this version can execute."""
    with readable_plan():
        (block,) = plan["problem"]["blocks"]
        return read_keys(Item(block, "block"), Item(plan["mechanism"], "mechanism"))


def _kept(plan: Plan) -> Kept | None:
    """What is kept of each person's records; None where no column says whose they are."""
    with readable_plan():
        return read_frame(Item(plan["problem"], "problem")).data[0].kept


def text_of(cell: Any) -> str:
    """A cell as a part of a key; empty where it is missing."""
    if is_missing(cell):
        return ""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    text = unicodedata.normalize("NFC", str(cell))
    plain = "".join(" " if unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") else sign for sign in text)
    return " ".join(plain.split())


def read_counts(
    block: KeyBlock, kept: Kept | None, data: Mapping[str, Any], circumstances: Circumstances
) -> dict[Key, int]:
    """How many records each key has, in the order of the keys; of each person those that are kept.

    Raises: DataError PS0801 to PS0809.
    """
    name, columns = block.source, block.columns
    source, names = located(name, given_for(name, data)), [column.name for column in columns]
    if isinstance(source, Path) and source.suffix.lower() == ".json":
        source = _records(load_json(name, source), name)
    if not is_frame(source) and (not isinstance(source, Path) or source.suffix.lower() == ".npy"):
        refuse("PS0803", f"the data for {name} cannot be read as a table of columns")
    if kept is not None and not circumstances.header:
        hint = f"a column named {kept.person} says whose each record is"
        refuse("PS0804", f"{name} is read person by person: give records under named columns", help=hint)
    table = records_of(name, source, None if circumstances.header else names)
    asked = Statistic(name, tuple(map(_attribute, columns)), 1, None if kept is None else kept.person)
    table.check(asked.columns)
    if circumstances.selects is not None:
        circumstances.selects.extend((name, select) for select in table.select(asked))
        return {}
    groups = Groups.joined(asked, table.groups(asked, lambda *_: None))
    times = list(groups.records)
    read = [_texts(*pair, times, name, circumstances) for pair in zip(columns, groups.keys, strict=True)]
    rows = list(zip(*read, strict=True))
    if circumstances.strict and any(None in row for row in rows):
        refuse_strictly(name)
    keys = [_key(row, columns) for row in rows]
    if kept is not None:
        if circumstances.strict and not all(ids_of(groups.people)):
            refuse_strictly(name)
        numbers: dict[Key | None, int] = {}
        cells = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
        counted = np.array(
            [0 if key is None else count for key, count in zip(keys, times, strict=True)], dtype=np.int64
        )
        times = cut(kept, name, groups.people, cells, counted, circumstances).tolist()
    counts: dict[Key, int] = {}
    for key, count in zip(keys, times, strict=True):
        if key is not None and count:
            counts[key] = counts.get(key, 0) + count
    return dict(sorted(counts.items()))


def _key(row: Sequence[tuple[str, bool] | None], columns: Sequence[KeyColumn]) -> Key | None:
    """The key of a record; None where it has none, or does not meet the conditions."""
    found = [cell for cell in row if cell is not None]
    if len(found) < len(row) or not all(kept for _, kept in found):
        return None
    return tuple(text for (text, _), column in zip(found, columns, strict=True) if column.grouped)


def _records(found: Any, name: str) -> Any:
    """A JSON file as columns."""
    if isinstance(found, list) and all(isinstance(item, dict) for item in found):
        keys = dict.fromkeys(str(key) for item in found for key in item)
        return {key: [item.get(key) for item in found] for key in keys}
    return found.get(name, found) if isinstance(found, dict) else found


def _attribute(column: KeyColumn) -> Attribute:
    """A column as engines read it: one of unknown values is one of words, each cell as it stands."""
    if column.lower is not None and column.upper is not None:
        return Attribute(column.name, (), column.lower, column.upper)
    return Attribute(column.name, column.values or ("",))


def _texts(
    column: KeyColumn, cells: Sequence[Any], times: Sequence[int], name: str, circumstances: Circumstances
) -> list[tuple[str, bool] | None]:
    """The text of each cell and whether it is one that is counted; None where it does not fit."""
    listed = bool(column.values) or column.lower is not None
    fit = circumstances.keeper.fit(name, column.name, fate="their records are left out", words=column.values)
    fit.rows += sum(times)
    lookup = _attribute(column).lookup() if listed else None
    kept = None if column.kept is None else set(column.kept)
    known: dict[Any, tuple[str, bool] | None] = {}
    for cell in set(cells):
        if lookup is None:
            text = text_of(cell)
            known[cell] = (text, True) if text else None
            continue
        place, _ = lookup(cell)
        label = column.values[place] if column.values else str(place + (column.lower or 0))
        known[cell] = None if place == NO_PLACE else (label, kept is None or place in kept)
    for cell, count in zip(cells, times, strict=True):
        if known[cell] is None:
            fit.cell(None if lookup is None else cell, count)
    return [known[cell] for cell in cells]


@dataclass(frozen=True, eq=False)
class KeyMechanism(FamilyMechanism):
    """Every key that occurs draws a threshold of its own."""

    keys: Keys
    kept: Kept | None = None

    @classmethod
    def of_plan(cls, plan: Plan) -> KeyMechanism:
        return cls(keys_of_plan(plan), _kept(plan))

    @staticmethod
    def fit(model: Model, data: Mapping[str, Any], circumstances: Circumstances) -> None:
        from privspec.kernel.core.reading import read
        from privspec.problem.elaborate import kept_of
        from privspec.problem.form import document
        from privspec.problem.keys import block_of

        block = read(KeyBlock, Item(document(block_of(model)), "block"))
        assert isinstance(block, KeyBlock)
        (source,) = model.inputs
        read_counts(block, kept_of(model, source), data, circumstances)

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.keys.outputs

    def read(self, data: Mapping[str, Any], circumstances: Circumstances) -> KeySecret:
        """How many records each key has.

        Raises: DataError PS0801 to PS0809.
        """
        refuse_unknown(data, (self.keys.block.source,))
        counts = read_counts(self.keys.block, self.kept, data, circumstances)
        return KeySecret(self.keys, counts, circumstances.strict, self.kept)

    def simulate(self, asked: Simulation) -> NDArray[np.float64]:
        """For every key of the data in order its count, or 1 where keys are shown alone, and 0 where it is hidden.

        Without data, of one key that is shown as often as not.
        """
        keys, given = self.keys, asked.data
        if given is None:
            middle = next(n for n, chance in enumerate(keys.kept(), 1) if 2 * chance >= 1)
            counts: dict[Key, int] = {("",): middle}
        else:
            counts = self.read(given, Circumstances()).counts
        refuse_long_simulation(
            asked.repetitions * len(counts), f"{asked.repetitions * len(counts)} draws", "take fewer"
        )
        secret, randomness = KeySecret(keys, counts, strict=False), SimulationRandomness(asked.seed)
        shown = [dict(secret.shown(randomness)) for _ in range(asked.repetitions)]
        one = keys.block.counts
        return np.array([[found.get(key, 0) if one else float(key in found) for key in counts] for found in shown])


@dataclass(frozen=True, eq=False, slots=True)
class KeySecret(Secret):
    """How many records each key has."""

    keys: Keys
    counts: dict[Key, int]
    strict: bool
    kept: Kept | None = None

    @property
    def rules(self) -> tuple[str, ...]:
        persons = () if self.kept is None else (f"of records with a key, {kept_rule(self.kept)}; a cell is a key",)
        return (*((STRICT_RULE,) if self.strict else ()), RULE, *persons)

    def shown(self, randomness: Randomness) -> list[tuple[Key, int]]:
        """The keys that reach their thresholds, each with its released count; in the order of the keys."""
        keys = self.keys
        law = RowLaw(tuple(accumulate(keys.steps)), keys.total)
        found = []
        for key, count in self.counts.items():
            threshold = law.draw(randomness) + 1
            if count >= threshold:
                found.append((key, count - threshold + keys.centre))
        return found

    def draw(self, randomness: Randomness) -> Drawn:
        block, shown = self.keys.block, self.shown(randomness)
        names = [column.name for column in block.columns if column.grouped]
        labels = {name: _words([key[place] for key, _ in shown]) for place, name in enumerate(names)}
        if block.counts:
            values: NDArray[Any] = np.array([count for _, count in shown], dtype=np.int64)
        else:
            values = _words([", ".join(key) for key, _ in shown])
        return Drawn({block.output: values}, "1" if block.counts else None, labels={block.output: labels})


def _words(texts: Sequence[str]) -> NDArray[Any]:
    found = np.empty(len(texts), dtype=object)
    found[:] = texts
    return found
