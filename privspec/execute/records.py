"""Records from files and from objects in memory, in batches: one record a row, so that millions fit in memory.

A variable with one value a record has a column with its name. One with several (a point in the plane, a vector) has
columns `place_1`, `place_2`, ... (`place.1` and `place[1]` are understood), row-major. Columns are found by name only,
never by their content; a text file without a line of names has these columns and no others, in their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.execute.arrays import is_frame, load_array, load_json
from privspec.execute.frames import collect, column_names, load_frame, readable
from privspec.execute.problems import refuse, refuse_unreadable
from privspec.execute.text import is_text, rows_of_text

BATCH = 65_536
"""Records that are held in their original form at once."""
Column: TypeAlias = "Sequence[Any] | NDArray[Any]"
Batches: TypeAlias = Iterator[list[Column]]
"""Batch after batch, the columns of one variable's places."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The columns of one variable: of `size` values, or of a single one (None)."""

    name: str
    size: int | None = None

    @property
    def count(self) -> int:
        """How many columns."""
        return 1 if self.size is None else self.size

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names."""
        return (self.name,) if self.size is None else tuple(f"{self.name}_{j + 1}" for j in range(self.size))

    def find(self, names: Sequence[str]) -> list[str]:
        """The names under which the columns stand in a table.

        Raises: DataError PS0804 if they do not.
        """
        spellings = [self.columns]
        if self.size is not None:
            spellings += [
                tuple(form.format(self.name, j + 1) for j in range(self.size)) for form in ("{}.{}", "{}[{}]")
            ]
            spellings += [(self.name,)] if self.size == 1 else []
        for spelling in spellings:
            if set(spelling) <= set(names):
                return list(spelling)
        return refuse(
            "PS0804",
            f"the data for {self.name} have no column {', '.join(self.columns[:4])}{', ...' if self.count > 4 else ''}",
            help=f"the first line of a file names its columns: {','.join(self.columns[:4])}",
        )


def batches(fields: Fields, source: Any, *, header: bool = True) -> Batches:
    """The columns of a variable, batch after batch.

    Args: source, a path (.csv, .csv.gz, .tsv, .parquet, .npy, .json), a table of named columns, or one array or list
        with a record in each row; header, whether the first line of a text file names its columns.
    Raises: DataError (PS0803 to PS0805).
    """
    if isinstance(source, Path):
        if is_text(source):
            return _text(fields, source, header=header)
        if source.suffix.lower() == ".parquet":
            return _parquet(fields, source)
        if source.suffix.lower() == ".npy":
            return _array(fields, load_array(fields.name, source, mapped=True))
        return _document(fields, _json(fields, source))
    if isinstance(source, Mapping) and fields.name in source:
        return batches(fields, source[fields.name])
    if is_frame(source):
        return _frame(fields, source)
    if isinstance(source, np.ndarray):
        return _array(fields, source)
    if hasattr(source, "to_numpy"):
        return _array(fields, np.asarray(source.to_numpy()))
    return _document(fields, source)


# --- text -----------------------------------------------------------------------------------------


def _text(fields: Fields, path: Path, *, header: bool) -> Batches:
    rows = rows_of_text(fields.name, path)
    names = [name.strip() for name in next(rows, [])] if header else list(fields.columns)
    at = [names.index(name) for name in fields.find(names)]
    while batch := list(islice(rows, BATCH)):
        if not header and len(batch[0]) != fields.count:
            _wrong_width(fields, str(len(batch[0])))
        header = True
        yield _picked(batch, at)


def _picked(batch: list[list[str]], at: list[int]) -> list[Column]:
    return [[line[j] if j < len(line) else None for line in batch] for j in at]


# --- columns --------------------------------------------------------------------------------------


def _parquet(fields: Fields, path: Path) -> Batches:
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
    import pyarrow.parquet as pq  # type: ignore[import-untyped, unused-ignore]

    try:
        with pq.ParquetFile(path) as file:
            names = fields.find(file.schema_arrow.names)
            readable(fields.name, load_frame(fields.name, path), names)
            for batch in file.iter_batches(batch_size=BATCH, columns=names):
                yield [_arrow(batch.column(name)) for name in names]
    except (pa.ArrowException, OSError):
        refuse_unreadable(fields.name, "a table of columns")


def _arrow(column: Any) -> Column:
    """An Arrow column: an array of numbers (not a number where one is missing), or a list."""
    import pyarrow as pa

    if any(test(column.type) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)):
        # the nearest double, also of whole numbers that none is equal to
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    found: list[Any] = column.to_pylist()
    return found


def _frame(fields: Fields, source: Any) -> Batches:
    frame = load_frame(fields.name, source)
    names = fields.find(column_names(fields.name, frame))
    table = collect(fields.name, readable(fields.name, frame, names))
    for part in table.iter_slices(BATCH):
        yield [c.to_numpy() if c.dtype.is_numeric() else c.to_list() for c in part.get_columns()]


# --- arrays and lists -----------------------------------------------------------------------------


def _array(fields: Fields, array: NDArray[Any]) -> Batches:
    if array.dtype.kind not in "biufUSO":
        refuse_unreadable(fields.name, "an array of numbers or texts")
    if array.ndim == 0:
        array = array.reshape(1)
    if prod(array.shape[1:]) != fields.count:
        _wrong_width(fields, " x ".join(map(str, array.shape[1:])) or "1")
    for start in range(0, len(array), BATCH):
        part = np.asarray(array[start : start + BATCH]).reshape(-1, fields.count)
        yield [part[:, j] for j in range(fields.count)]


def _wrong_width(fields: Fields, found: str) -> NoReturn:
    refuse(
        "PS0805",
        f"{fields.name} has {fields.count} value{'s' * (fields.count > 1)} a record, the data have {found}",
        help="one record a row",
    )


def _json(fields: Fields, path: Path) -> Any:
    loaded = load_json(fields.name, path)
    if isinstance(loaded, dict) and isinstance(loaded.get("outputs"), dict):
        # a release of local reports
        found = loaded["outputs"]
        loaded = {name: one.get("values") if isinstance(one, dict) else one for name, one in found.items()}
    return loaded


def _document(fields: Fields, found: Any) -> Batches:
    """A list with an item for each record, a list of objects, or an object of lists."""
    if isinstance(found, Mapping):
        if fields.name in found:
            found = _listed(found[fields.name])
        else:
            names = fields.find(list(found))
            columns = [_listed(found[name]) for name in names]
            if any(not isinstance(c, list) or len(c) != len(columns[0]) for c in columns):
                refuse_unreadable(fields.name, "a list of records")
            found = [list(row) for row in zip(*columns, strict=True)]
    if isinstance(found, str) or not isinstance(found, Sequence):
        found = [found]
    for start in range(0, len(found), BATCH):
        yield _items(fields, found[start : start + BATCH])


def _listed(column: Any) -> Any:
    """A column; some writers number its cells."""
    return list(column.values()) if isinstance(column, Mapping) else column


def _items(fields: Fields, items: Sequence[Any]) -> list[Column]:
    rows = [_item(fields, item) for item in items]
    return [[row[j] for row in rows] for j in range(fields.count)]


def _item(fields: Fields, item: Any) -> Sequence[Any]:
    """The values of one record; missing where it has not as many as it should."""
    if isinstance(item, Mapping):
        item = item[fields.name] if fields.name in item else [item.get(name) for name in fields.columns]
        item = item[0] if fields.size is None and isinstance(item, list) and len(item) == 1 else item
    if fields.size is None:
        return [item]
    values = list(_flat(item))
    return values if len(values) == fields.count else [None] * fields.count


def _flat(item: Any) -> Iterator[Any]:
    if isinstance(item, list | tuple | np.ndarray):
        for part in item:
            yield from _flat(part)
    else:
        yield item
