"""The labels of a table's rows or columns: which values each joint value stands for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.execute.finite.atoms import Atom, atom_of, symbol
from privspec.execute.records import Fields


@dataclass(frozen=True, eq=False)
class Labels:
    """Joint values of some variables, one for each row or column of a table.

    `entries[i]` holds the label of joint value i as one text for each place of each variable, one variable after
    another; `fields` says how many places a variable has.
    """

    fields: tuple[Fields, ...]
    entries: tuple[tuple[str, ...], ...]

    @classmethod
    def read(cls, names: Sequence[str], labels: Sequence[Any]) -> Labels:
        """Labels as plans write them: a text, a list of texts for a vector, and a list of these for several variables.

        Raises: ValueError if they are not of one form, or one of them stands there twice.
        """
        parts = [[label] if len(names) == 1 else label for label in labels]
        if not parts or any(not isinstance(p, list) or len(p) != len(names) for p in parts):
            raise ValueError(f"labels are wanted for {', '.join(names)}")
        flat = [[tuple(_texts(value)) for value in part] for part in parts]
        fields = []
        for at, name in enumerate(names):
            sizes = {len(values[at]) for values in flat}
            if len(sizes) > 1:
                raise ValueError(f"labels of {name} have different lengths")
            single = all(isinstance(part[at], str) for part in parts)
            fields.append(Fields(name, None if single else sizes.pop()))
        entries = tuple(tuple(text for value in values for text in value) for values in flat)
        if len(set(entries)) < len(entries):
            raise ValueError("a label stands there twice")
        return cls(tuple(fields), entries)

    def __len__(self) -> int:
        return len(self.entries)

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        """The values of each place, in the order in which labels name them."""
        return tuple(atom_of([symbol(t) for t in dict.fromkeys(texts)]) for texts in zip(*self.entries, strict=True))

    @cached_property
    def places(self) -> dict[tuple[int, ...], int]:
        """From the values of all places, by number, to the joint value."""
        numbers = [{text: i for i, text in enumerate(dict.fromkeys(t))} for t in zip(*self.entries, strict=True)]
        return {
            tuple(known[text] for known, text in zip(numbers, entry, strict=True)): i
            for i, entry in enumerate(self.entries)
        }

    def figures(self) -> NDArray[np.float64]:
        """Each joint value as one number a place (labels, places): its number, or a word's place in its set."""
        codes = np.array(list(self.places), dtype=np.intp)
        return np.stack([atom.figures[codes[:, j]] for j, atom in enumerate(self.atoms)], axis=1)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """One text for each joint value: "3", "3, 4", "F, high"."""
        return tuple(", ".join(entry) for entry in self.entries)

    def values(self) -> dict[str, NDArray[Any]]:
        """The values of each variable, one row for each joint value: whole numbers, doubles, or words."""
        out: dict[str, NDArray[Any]] = {}
        columns = list(zip(*self.entries, strict=True))
        start = 0
        for found in self.fields:
            part = [_column(texts) for texts in columns[start : start + found.count]]
            start += found.count
            words = any(column.dtype == object for column in part)
            stacked = np.stack([c.astype(object) if words else c for c in part], axis=1)
            out[found.name] = stacked[:, 0] if found.size is None else stacked
        return out


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield value
    else:
        raise ValueError("a label is a text")


def _column(texts: Sequence[str]) -> NDArray[Any]:
    symbols = [symbol(text) for text in texts]
    numbers = [s for s in symbols if isinstance(s, Fraction)]
    if len(numbers) < len(symbols):
        return np.array(texts, dtype=object)
    whole = all(s.denominator == 1 and abs(s) < 2**62 for s in numbers)
    return np.array([int(s) if whole else float(s) for s in numbers])
