"""Numbers in rows and columns, from files and from objects in memory, laid out as an input is declared.

Whether a first line is a header, and which numbers belong where, follows from declared sizes and from the
column names alone, never from the content of a record.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from privspec.execute.problems import refuse, refuse_unreadable

COMMA_SEPARATED = (".csv", ".csv.gz", ".tsv")


def number(value: Any) -> float:
    """A number, or not-a-number if there is none to be read."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


@dataclass(frozen=True, slots=True)
class Declared:
    """An input as the spec declares it: name, shape, and the index set whose members hold its first axis.

    `read` turns one entry into a number, not-a-number where it cannot; words are read as their places in a set.
    """

    name: str
    shape: tuple[int, ...]
    index: str | None = None
    read: Callable[[Any], float] = number

    @property
    def row_counts(self) -> tuple[int, ...]:
        """How many rows its data can have, apart from a vector laid out as one row."""
        if len(self.shape) < 2:
            return (prod(self.shape),)
        # a stack of matrices: one row for each matrix, or for each of their rows
        return tuple(prod(self.shape[:axes]) for axes in range(1, len(self.shape)))


@dataclass(frozen=True, slots=True)
class Lines:
    """Rows of uninterpreted cells, with column names if there are any."""

    names: tuple[str, ...]
    rows: Sequence[Sequence[Any]]

    @property
    def width(self) -> int:
        """Number of columns, by the names or the first row."""
        return len(self.names) or (len(self.rows[0]) if self.rows else 0)


def numbers(declared: Declared, array: NDArray[Any]) -> NDArray[np.float64]:
    """The same array in doubles, not a number where there is none."""
    if array.dtype.kind in "biuf" and declared.read is number:
        return array.astype(np.float64)
    flat = [declared.read(v) for v in array.reshape(-1).tolist()]
    return np.array(flat, dtype=np.float64).reshape(array.shape)


def read_entries(declared: Declared, source: Any) -> NDArray[np.float64]:
    """The entries of a value in row-major order, not a number where one is missing or cannot be read.

    Raises: DataError (PS0803 to PS0806) if the size is not the declared one or the form cannot be read.
    """
    found = _load(declared, source)
    array = from_lines(declared, found) if isinstance(found, Lines) else found
    if _same_layout(array.shape, declared.shape):
        return array.reshape(-1)
    return _wrong_size(declared, " x ".join(str(d) for d in array.shape) or "1")


def _wrong_size(declared: Declared, found: str) -> NoReturn:
    wanted = " x ".join(map(str, declared.shape)) or "1"
    refuse(
        "PS0805",
        f"{declared.name} is declared with size {wanted}, the data have size {found}",
        help="a vector is one column or one row, a matrix one line a row",
    )


def _same_layout(found: tuple[int, ...], declared: tuple[int, ...]) -> bool:
    """Equal but for axes of length one, or with neighbouring axes of a larger array joined."""
    if [d for d in found if d != 1] == [d for d in declared if d != 1]:
        return True
    return len(found) == 2 and any(
        found == (prod(declared[:axes]), prod(declared[axes:])) for axes in range(1, len(declared))
    )


def _load(declared: Declared, source: Any) -> Lines | NDArray[np.float64]:
    if isinstance(source, Path):
        if source.name.lower().endswith(COMMA_SEPARATED):
            return _csv_lines(declared, source)
        if source.suffix.lower() == ".npy":
            return numbers(declared, _load_npy(declared.name, source))
        if source.suffix.lower() == ".json":
            return _nested(declared, _load_json(declared, source))
        return _frame_lines(declared.name, source)
    if isinstance(source, np.ndarray):
        return numbers(declared, source)
    if is_frame(source):
        return _frame_lines(declared.name, source)
    if hasattr(source, "to_numpy"):
        return numbers(declared, np.asarray(source.to_numpy()))
    if isinstance(source, Sequence | int | float) and (not isinstance(source, str) or declared.read is not number):
        return _nested(declared, source)
    return refuse("PS0803", f"the data for {declared.name} are of a kind that cannot be read")


def from_lines(declared: Declared, lines: Lines) -> NDArray[np.float64]:
    """Numbers (rows, columns) from lines whose size is the declared one, or () by one of its rows.

    Raises: DataError.
    """
    names, rows = lines.names, lines.rows
    if declared.index is not None and declared.index in names and declared.index != declared.name:
        rows = _by_party(declared, rows, names.index(declared.index))
        names = tuple(n for n in names if n != declared.index)
        lines = Lines(names, rows)
    if len(declared.shape) < 2:
        return _vector(declared, lines)
    columns = prod(declared.shape) // max(len(rows), 1)
    if len(rows) not in declared.row_counts or lines.width != columns:
        _wrong_size(declared, f"{len(rows)} x {lines.width}")
    return _matrix(declared, rows, columns)


def _vector(declared: Declared, lines: Lines) -> NDArray[np.float64]:
    size = prod(declared.shape)
    if declared.name in lines.names:
        return _matrix(declared, [[_cell(row, lines.names.index(declared.name))] for row in lines.rows], 1).reshape(-1)
    if lines.width == 1:
        return _matrix(declared, lines.rows, 1).reshape(-1)
    if len(lines.rows) == 1 and size > 1:
        row: NDArray[np.float64] = _matrix(declared, lines.rows, lines.width)[0]
        return row
    return refuse(
        "PS0804",
        f"the data for {declared.name} have several columns, none of them named {declared.name}",
        help=f"name the column {declared.name}, or give one column",
    )


def _cell(row: Sequence[Any], at: int) -> Any:
    return row[at] if at < len(row) else None


def _matrix(declared: Declared, rows: Sequence[Sequence[Any]], columns: int) -> NDArray[np.float64]:
    """Numbers (rows, columns); what a short row lacks is missing, what a long one has beyond is left out."""
    out = np.full((len(rows), columns), np.nan)
    for i, row in enumerate(rows):
        for j, value in enumerate(row[:columns]):
            out[i, j] = declared.read(value)
    return out


def _by_party(declared: Declared, rows: Sequence[Sequence[Any]], at: int) -> list[Sequence[Any]]:
    """Rows in the order of the party's index, without that column; every party has equally many."""
    groups: dict[Any, list[Sequence[Any]]] = {}
    for row in rows:
        key = str(_cell(row, at)).strip()
        groups.setdefault(key, []).append([v for j, v in enumerate(row) if j != at])
    if len(groups) != declared.shape[0] or len({len(g) for g in groups.values()}) != 1:
        refuse(
            "PS0806",
            f"the data for {declared.name} do not have the same number of rows for each of "
            f"{declared.shape[0]} members of {declared.index}",
        )
    keys = sorted(groups, key=lambda k: (number(k), k) if number(k) == number(k) else (float("inf"), k))
    return [row for key in keys for row in groups[key]]


def _csv_lines(declared: Declared, path: Path) -> Lines:
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    try:
        raw = path.read_bytes()
        if path.name.lower().endswith(".gz"):
            raw = gzip.decompress(raw)
        text = raw.decode("utf-8-sig", errors="replace").rstrip("\r\n")
        rows = list(csv.reader(io.StringIO(text), delimiter=separator)) if text else []
    except (OSError, EOFError, zlib.error, csv.Error):
        refuse_unreadable(declared.name, "comma-separated values")
    if _first_is_header(declared, rows):
        return Lines(tuple(n.strip() for n in rows[0]), rows[1:])
    return Lines((), rows)


def _first_is_header(declared: Declared, rows: list[list[str]]) -> bool:
    counts, size = declared.row_counts, prod(declared.shape)
    if len(declared.shape) < 2 and rows and len(rows[0]) == size > 1:
        return len(rows) == 2
    return len(rows) not in counts and len(rows) - 1 in counts


def _load_npy(name: str, path: Path) -> NDArray[Any]:
    try:
        loaded = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        refuse_unreadable(name, "a NumPy array")
    if not isinstance(loaded, np.ndarray):
        refuse_unreadable(name, "a single NumPy array")
    return loaded


def _load_json(declared: Declared, path: Path) -> Any:
    name = declared.name
    try:
        loaded = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        refuse_unreadable(name, "JSON")
    if isinstance(loaded, dict):
        if name not in loaded:
            refuse("PS0804", f"the JSON file has no entry {name}")
        loaded = loaded[name]
    if not isinstance(loaded, list | int | float) and declared.read is number:
        refuse_unreadable(name, "a JSON list of numbers")
    return loaded


def _nested(declared: Declared, values: Any) -> NDArray[np.float64]:
    """Nested lists with as many items as there are; deeper ones get their declared length."""
    if not isinstance(values, Sequence) or isinstance(values, str):
        return np.array(declared.read(values))
    single = len(values) == 1 and isinstance(values[0], Sequence) and not isinstance(values[0], str)
    if len(declared.shape) < 2 and single:
        values = values[0]
    inner = declared.shape[1:]
    out = np.full((len(values), *inner), np.nan)
    for i, item in enumerate(values):
        _fill(declared, out[i : i + 1], item)
    return out


def _fill(declared: Declared, place: NDArray[np.float64], item: Any) -> None:
    """Write an item into `place` (1, *shape), as far as it goes."""
    if place.ndim == 1:
        alone = isinstance(item, list | tuple) and len(item) == 1
        place[0] = declared.read(item[0] if alone else item)
    elif isinstance(item, list | tuple):
        for j, part in enumerate(item[: place.shape[1]]):
            _fill(declared, place[0, j : j + 1], part)


def is_frame(source: Any) -> bool:
    """Whether it is a table of named columns: polars, pandas, pyarrow or a mapping of columns."""
    # of the type: asking a lazy frame itself would compute its columns
    return isinstance(source, Mapping) or any(hasattr(type(source), name) for name in ("columns", "column_names"))


def _frame_lines(name: str, source: Any) -> Lines:
    from privspec.execute.frames import collect, load_frame

    frame = collect(name, load_frame(name, source))
    return Lines(tuple(frame.columns), frame.rows())
