"""Columns of long tables: what repeats is held once, and cells are laid out a stretch at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass, replace


@dataclass(frozen=True, eq=False, slots=True)
class Piece:
    """`size` cells: values one after another, each `each` times, over and over again."""

    values: NDArray[Any]
    size: int
    each: int = 1

    def cells(self, start: int, stop: int) -> NDArray[Any]:
        """Those from one place to before another."""
        if self.each == 1 and len(self.values) == self.size:
            return self.values[start:stop]
        return self.values[np.arange(start, stop) // self.each % len(self.values)]


@dataclass(frozen=True, eq=False, slots=True)
class Column:
    """Pieces one after another, with cells of one kind: numbers, texts, or objects where some are missing (None)."""

    pieces: tuple[Piece, ...]

    @classmethod
    def of(cls, values: Any) -> Column:
        """The column of a vector, of which one that was spread out is held once; a column as it is."""
        if isinstance(values, Column):
            return values
        found = np.asarray(values)
        return cls((Piece(found if any(found.strides) else found[:1], len(found)),))

    @classmethod
    def same(cls, value: Any, size: int) -> Column:
        """One that says the same in every row."""
        cell = np.empty(1, dtype=bool if isinstance(value, bool) else object)
        cell[0] = value
        return cls((Piece(cell, size),))

    @classmethod
    def joined(cls, columns: Iterable[Column]) -> Column:
        """One after another; all as texts if any cell is one."""
        pieces = tuple(piece for column in columns for piece in column.pieces)
        if any(isinstance(one, str) for piece in pieces if piece.values.dtype == object for one in piece.values):
            pieces = tuple(replace(piece, values=_texts(piece.values)) for piece in pieces)
        return cls(pieces)

    def __len__(self) -> int:
        return sum(piece.size for piece in self.pieces)

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of its cells."""
        return np.concatenate([piece.values[:0] for piece in self.pieces] or [np.zeros(0)]).dtype

    def cells(self, start: int, stop: int) -> NDArray[Any]:
        """Those from one place to before another."""
        found, at = [np.zeros(0, dtype=self.dtype)], 0
        for piece in self.pieces:
            low, high = max(start - at, 0), min(stop - at, piece.size)
            found += [piece.cells(low, high)] if low < high else []
            at += piece.size
        return np.concatenate(found)

    def tolist(self) -> list[Any]:
        found: list[Any] = np.asarray(self).tolist()
        return found

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.cells(0, len(self)).astype(dtype or self.dtype, copy=False)


Cells: TypeAlias = NDArray[Any] | Column
"""One cell for each number of an output, row-major: laid out, or a column."""


def _texts(values: NDArray[Any]) -> NDArray[Any]:
    found = np.empty(len(values), dtype=object)
    found[:] = [None if value is None else str(value) for value in values.tolist()]
    return found


def crossed(values: Sequence[NDArray[Any]]) -> list[Column]:
    """A column for each list of values: all combinations, those of the last list running fastest."""
    sizes = [len(one) for one in values]
    return [Column((Piece(one, prod(sizes), prod(sizes[i + 1 :])),)) for i, one in enumerate(values)]
