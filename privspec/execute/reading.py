"""Numbers in rows and columns, laid out as an input is declared; and records, batch after batch, one a row.

Which cell is which entry follows from declared names and sizes alone, never from what a cell holds. The first line of a
text file is its header, unless the keeper says that there is none.

Of records, a variable with one value a record has a column with its name. One with several (a point in the plane, a
vector) has columns `place_1`, `place_2`, ... (`place.1` and `place[1]` are understood), row-major. Columns are found by
name only; a text file without a line of names has these columns and no others, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from math import inf, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass, replace
from privspec.execute.cells import id_text
from privspec.execute.keeper import refuse, refuse_unreadable, slip_of_header
from privspec.execute.sources import (
    AS_USUAL,
    CHUNK,
    TextFiles,
    Unordered,
    collect,
    column_names,
    is_frame,
    is_text,
    load_array,
    load_frame,
    load_json,
    numbers_at_once,
    of_width,
    outputs_of,
    parquet_frames,
    plain_text,
    readable,
    rows_of_text,
    unheard,
    whatever_is_text,
)

if TYPE_CHECKING:
    import polars as pl

NO_HEADER = "the first line of a text file is its header; where there is none, say --no-header"
_TRUTH = {"true": 1.0, "false": 0.0}


def number(value: Any) -> float:
    """A number, or not-a-number if there is none to be read."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf
    except (TypeError, ValueError):
        return _TRUTH.get(value.strip().casefold(), float("nan")) if isinstance(value, str) else float("nan")


@dataclass(frozen=True, slots=True)
class Declared:
    """An input as the spec declares it: name, shape, and the index set whose members hold its first axis.

    `read` turns one entry into a number, not-a-number where it cannot; words are read as their places in a set. `told`
    hears of each entry that is no number.
    """

    name: str
    shape: tuple[int, ...]
    index: str | None = None
    read: Callable[[Any], float] = number
    told: Callable[[Any], None] = unheard

    @property
    def size(self) -> int:
        return prod(self.shape)

    def row_counts(self, width: int) -> tuple[int, ...]:
        """How many rows data of so many columns can have: a vector may also be laid out as one row."""
        if len(self.shape) < 2:
            return (self.size, 1) if width == self.size else (self.size,)
        # a stack of matrices: one row for each matrix, or for each of their rows
        return tuple(prod(self.shape[:axes]) for axes in range(1, len(self.shape)))

    def entry(self, cell: Any) -> float:
        value = self.read(cell)
        if value != value:
            self.told(cell)
        return value


@dataclass(frozen=True, slots=True)
class Lines:
    """Rows of uninterpreted cells under `width` names; in "bare" text there are none."""

    names: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    kind: Literal["table", "text", "bare"] = "table"

    @property
    def width(self) -> int:
        """Number of columns, by the names or the first row."""
        return len(self.names) or (len(self.rows[0]) if self.rows else 0)


def numbers(declared: Declared, array: NDArray[Any]) -> NDArray[np.float64]:
    """The same array in doubles, not a number where there is none.

    Raises: DataError PS0803 if its kind is not one of numbers, texts or any objects.
    """
    if array.dtype.kind not in "biufUSO":
        refuse_unreadable(declared.name, "an array of numbers or texts")
    if array.dtype.kind in "biuf" and declared.read is number:
        found = array.astype(np.float64, copy=False)
        for _ in range(int(np.isnan(found).sum())):
            declared.told(None)
        return found
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", errors="replace")
    flat = [declared.entry(v) for v in array.reshape(-1).tolist()]
    return np.array(flat, dtype=np.float64).reshape(array.shape)


def read_entries(declared: Declared, source: Any, texts: TextFiles = AS_USUAL) -> NDArray[np.float64]:
    """The entries of a value in row-major order, not a number where one is missing or cannot be read.

    Raises: DataError (PS0803 to PS0806) if the size is not the declared one or the form cannot be read.
    """
    found = _load(declared, source, texts)
    array = from_lines(declared, found) if isinstance(found, Lines) else found
    if _same_layout(array.shape, declared.shape):
        return array.reshape(-1)
    return _wrong_size(declared, " x ".join(str(d) for d in array.shape) or "1")


def _wrong_size(declared: Declared, found: str, lines: Lines | None = None) -> NoReturn:
    wanted = " x ".join(map(str, declared.shape)) or "1"
    below = "" if lines is None or lines.kind != "text" else " below its header"
    refuse(
        "PS0805",
        f"{declared.name} is declared with size {wanted}, the data have size {found}{below}",
        help=NO_HEADER if below else "a vector is one column or one row, a matrix one line per row",
    )


def _same_layout(found: tuple[int, ...], declared: tuple[int, ...]) -> bool:
    """Equal but for axes of length one, or with neighbouring axes of a larger array joined."""
    if [d for d in found if d != 1] == [d for d in declared if d != 1]:
        return True
    return len(found) == 2 and any(
        found == (prod(declared[:axes]), prod(declared[axes:])) for axes in range(1, len(declared))
    )


def _load(declared: Declared, source: Any, texts: TextFiles) -> Lines | NDArray[np.float64]:
    if isinstance(source, Path):
        if is_text(source):
            found = _large_text(declared, source, texts) if texts.header else None
            return _text_lines(declared, source, texts) if found is None else found
        if source.suffix.lower() == ".npy":
            return numbers(declared, load_array(declared.name, source))
        if source.suffix.lower() == ".json":
            return _document(declared, load_json(declared.name, source))
        return whatever_is_text(declared.name, source, partial(_frame_lines, declared))
    if is_frame(source):
        return whatever_is_text(declared.name, source, partial(_frame_lines, declared))
    if hasattr(source, "to_numpy") or isinstance(source, np.ndarray):
        return numbers(declared, np.asarray(source if isinstance(source, np.ndarray) else source.to_numpy()))
    if isinstance(source, Sequence | int | float) and (not isinstance(source, str) or declared.read is not number):
        return _nested(declared, source)
    return refuse("PS0803", f"the data for {declared.name} are of a kind that cannot be read")


# --- rows and columns -----------------------------------------------------------------------------


def from_lines(declared: Declared, lines: Lines) -> NDArray[np.float64]:
    """Numbers (rows, columns) from lines whose size is the declared one, or () by one of its rows.

    Raises: DataError.
    """
    lines = _in_order(declared, lines)
    if len(declared.shape) < 2:
        return _vector(declared, lines)
    lines = _of_its_own(declared, lines)
    columns = declared.size // max(len(lines.rows), 1)
    if len(lines.rows) not in declared.row_counts(lines.width) or lines.width != columns:
        _wrong_size(declared, f"{len(lines.rows)} x {lines.width}", lines)
    _check_names(declared, lines)
    return _matrix(declared, lines.rows, columns)


def _vector(declared: Declared, lines: Lines) -> NDArray[np.float64]:
    rows, width = lines.rows, lines.width
    named = declared.name in lines.names
    at = lines.names.index(declared.name) if named else 0
    if named or width == 1 or (not rows and lines.kind != "table"):
        if len(rows) != declared.size:
            _wrong_size(declared, str(len(rows)), lines)
        if not named and lines.kind == "text":
            refuse(
                "PS0804",
                f"the header of the data for {declared.name} does not name the column {declared.name}",
                help=slip_of_header((declared.name,), lines.names)
                or f"write {declared.name} in the first line, or say --no-header if that line is data",
            )
        return _matrix(declared, [[_cell(row, at)] for row in rows], 1).reshape(-1)
    slip = slip_of_header((declared.name,), lines.names) if lines.kind == "text" else None
    if width == declared.size and (slip is None or len(rows) == 1):
        if len(rows) != 1:
            _wrong_size(declared, f"{len(rows)} x {width}", lines)
        _check_names(declared, lines)
        row: NDArray[np.float64] = _matrix(declared, rows, width)[0]
        return row
    if lines.kind == "bare":
        _wrong_size(declared, f"{len(rows)} x {width}")
    return refuse(
        "PS0804",
        f"the data for {declared.name} have several columns, none of them named {declared.name}",
        help=slip or f"name the column {declared.name} in the first line, or give one column",
    )


def _check_names(declared: Declared, lines: Lines) -> None:
    """A header whose cells are numbers or blank is most likely data: one more row than there should be."""
    if lines.kind == "text" and not any(name and number(name) != number(name) for name in lines.names):
        refuse("PS0804", f"the header of the data for {declared.name} names no column", help=NO_HEADER)


def _cell(row: Sequence[Any], at: int) -> Any:
    return row[at] if at < len(row) else None


def _matrix(declared: Declared, rows: Sequence[Sequence[Any]], columns: int) -> NDArray[np.float64]:
    """Numbers (rows, columns); what a short row lacks is missing, what a long one has beyond is left out."""
    out = np.full((len(rows), columns), np.nan)
    for i, row in enumerate(rows):
        for j in range(columns):
            out[i, j] = declared.entry(_cell(row, j))
    return out


def _in_order(declared: Declared, lines: Lines) -> Lines:
    """The rows in the order of the party's index, without the column of that name, if there is one."""
    index = declared.index
    if index is None or index == declared.name or index not in lines.names:
        return lines
    at = lines.names.index(index)
    names = tuple(n for j, n in enumerate(lines.names) if j != at)
    return replace(lines, names=names, rows=_by_party(declared, lines.rows, at))


def _by_party(declared: Declared, rows: Sequence[Sequence[Any]], at: int) -> list[Sequence[Any]]:
    """Rows in the order of the party's index, without that column; every party has equally many."""
    groups: dict[Any, list[Sequence[Any]]] = {}
    for row in rows:
        key = id_text(_cell(row, at)) or ""
        groups.setdefault(key, []).append([v for j, v in enumerate(row) if j != at])
    if len(groups) != declared.shape[0] or len({len(g) for g in groups.values()}) != 1:
        refuse(
            "PS0806",
            f"the data for {declared.name} do not have the same number of rows for each of "
            f"{declared.shape[0]} members of {declared.index}",
        )
    return [row for key in sorted(groups, key=_place) for row in groups[key]]


def _of_its_own(declared: Declared, lines: Lines) -> Lines:
    """The columns `x_1`, `x_2`, ... of the input x, if a table has them beside others."""
    own = [f"{declared.name}_{j + 1}" for j in range(declared.size // max(len(lines.rows), 1))]
    if lines.kind == "bare" or len(own) == len(lines.names) or not set(own) <= set(lines.names):
        return lines
    at = [lines.names.index(name) for name in own]
    return replace(lines, names=tuple(own), rows=[[_cell(row, j) for j in at] for row in lines.rows])


# --- files ----------------------------------------------------------------------------------------


def _text_lines(declared: Declared, path: Path, texts: TextFiles) -> Lines:
    rows = list(rows_of_text(declared.name, path, texts))
    if texts.header:
        names, rows = tuple(name.strip() for name in rows[0]) if rows else (), rows[1:]
        return Lines(names, _all_but_blank(rows, declared.row_counts(len(names))), "text")
    rows = _all_but_blank(rows, declared.row_counts(declared.size))
    if len(declared.shape) < 2 and len(rows) == 1 < declared.size:
        return Lines((), rows, "bare")
    return Lines((), list(of_width(declared.name, rows, max(declared.size // max(len(rows), 1), 1), texts)), "bare")


AT_ONCE = 10_000
"""Rows from which on columns of numbers are read as columns, and not cell by cell."""


def _large_text(declared: Declared, path: Path, texts: TextFiles) -> NDArray[np.float64] | None:
    """What `_text_lines` and `from_lines` make of a large file of plain numbers; None of any other file."""
    if declared.size < AT_ONCE:
        return None
    frame = plain_text(declared.name, path, texts)
    if frame is None or all(number(name) == number(name) for name in frame.columns):
        return None
    return _columns_at_once(declared, frame)


def _columns_at_once(declared: Declared, frame: pl.DataFrame) -> NDArray[np.float64] | None:
    """Numbers (rows, columns) of an input with many units, a row each; None where rows are to be looked at one by one.

    Columns are those that the input names, in the order of the party's index if that is one of them.
    """
    name, index, names = declared.name, declared.index, list(frame.columns)
    if declared.read is not number or frame.height < AT_ONCE or declared.shape[:1] != (frame.height,):
        return None
    order = np.arange(frame.height)
    if index is not None and index != name and index in names:
        names.remove(index)
        keys = numbers_at_once(frame[index], number)
        if np.isnan(keys).any() or len(np.unique(keys)) < len(keys):
            return None
        order = np.argsort(keys)
    width = declared.size // frame.height
    own = [name] if len(declared.shape) < 2 else [f"{name}_{j + 1}" for j in range(width)]
    if len(declared.shape) > 1 and len(names) == width:
        own = names
    if not set(own) <= set(names):
        return None
    return np.column_stack([numbers_at_once(frame[column], declared.entry) for column in own])[order]


def _all_but_blank(rows: list[list[str]], counts: Sequence[int]) -> list[list[str]]:
    """Rows without blank ones beyond the number that there must be, one of `counts`."""
    last = max((k for k in counts if k <= len(rows)), default=len(rows))
    return rows if any("".join(row).strip() for row in rows[last:]) else rows[:last]


def _document(declared: Declared, loaded: Any) -> NDArray[np.float64] | Lines:
    """A list of entries or objects; an object of columns."""
    name, index = declared.name, declared.index
    if isinstance(loaded, Mapping):
        columns = {str(key): list(v.values()) if isinstance(v, Mapping) else v for key, v in loaded.items()}
        parties = index is not None and index != name and index in columns
        if parties or (name not in columns and f"{name}_1" in columns):
            return _columns(declared, columns)
        if name not in columns:
            refuse("PS0804", f"the JSON file has no entry {name}")
        loaded = columns[name]
    if not isinstance(loaded, list | int | float) and declared.read is number and declared.shape:
        refuse_unreadable(name, "a JSON list of numbers")
    return _nested(declared, loaded)


def _columns(declared: Declared, columns: Mapping[str, Any]) -> Lines:
    lists = {key: column for key, column in columns.items() if isinstance(column, list)}
    if len({len(column) for column in lists.values()}) != 1:
        refuse_unreadable(declared.name, "columns of one length")
    return Lines(tuple(lists), list(zip(*lists.values(), strict=True)))


def _nested(declared: Declared, values: Any) -> NDArray[np.float64]:
    """Nested lists with as many items as there are; deeper ones get their declared length.

    An item that is an object says its numbers under the name of the input, or `x_1`, `x_2`, ..: each by itself.
    """
    if not isinstance(values, Sequence) or isinstance(values, str):
        return np.array(declared.entry(values))
    if len(declared.shape) < 2 and len(values) == 1 and declared.size > 1:
        values = _said(declared, values[0], declared.size)
    if declared.index is not None:
        _check_order(declared, values)
    # a stack of matrices: an item for each matrix, or for each of their rows
    axes = next((k for k in range(1, len(declared.shape)) if prod(declared.shape[:k]) == len(values)), 1)
    inner = declared.shape[axes:]
    out = np.full((len(values), *inner), np.nan)
    for i, item in enumerate(values):
        alone = isinstance(item, Mapping) and bool(inner) and declared.name not in item
        place = out[i : i + 1].reshape(1, -1) if alone else out[i : i + 1]
        _fill(declared, place, _said(declared, item, prod(inner)) if inner else item)
    return out if axes == 1 else out.reshape(len(values), -1)


def _said(declared: Declared, item: Any, size: int) -> Sequence[Any]:
    """The entries of one item: those of an object by the names that the spec has for them."""
    name = declared.name
    if isinstance(item, Mapping):
        item = item[name] if name in item else [item.get(f"{name}_{j + 1}") for j in range(size)]
    return item if isinstance(item, list | tuple) else [item]


def _check_order(declared: Declared, items: Sequence[Any]) -> None:
    """Items stand in the order of the list; who takes part is public, and may not contradict that.

    Raises: DataError PS0806.
    """
    keys = [item.get(declared.index) for item in items if isinstance(item, Mapping)]
    said = [text for key in keys if (text := id_text(key)) is not None]
    if len(said) == len(items) and said != sorted(said, key=_place):
        refuse(
            "PS0806",
            f"the objects of the data for {declared.name} do not stand in the order of {declared.index}",
            help=f"sort them, or give an object of columns: {declared.index} and {declared.name}",
        )


def _place(key: str) -> tuple[float, str]:
    """Where a party stands: numbers first, by size."""
    return (number(key), key) if number(key) == number(key) else (inf, key)


def _fill(declared: Declared, place: NDArray[np.float64], item: Any) -> None:
    """Write an item into `place` (1, *shape), as far as it goes."""
    if place.ndim == 1:
        found = _said(declared, item, 1)
        place[0] = declared.entry(found[0] if len(found) == 1 else item)
        return
    parts = item if isinstance(item, list | tuple) else ()
    for j in range(place.shape[1]):
        _fill(declared, place[0, j : j + 1], parts[j] if j < len(parts) else None)


def _frame_lines(declared: Declared, source: Any) -> Lines | NDArray[np.float64]:
    name, index = declared.name, declared.index
    frame = load_frame(name, source)
    names = column_names(name, frame)
    if isinstance(source, Unordered) and declared.size > 1 and (index is None or index not in names):
        refuse(
            "PS0806",
            f"the rows of a database or a folder stand in no order, and {name} is {declared.size} values in order",
            help=f"give a file, or a column {index} that says whose each row is" if index else "give a file",
        )
    # other columns may be of any kind
    own = [n for n in names if n in (name, index)] if len(declared.shape) < 2 and name in names else names
    table = collect(name, readable(name, frame, own))
    found = _columns_at_once(declared, table)
    return Lines(tuple(table.columns), table.rows()) if found is None else found


# --- records --------------------------------------------------------------------------------------

BATCH = 65_536
"""Records that are held in their original form at once."""
Column: TypeAlias = "Sequence[Any] | NDArray[Any]"
Batches: TypeAlias = Iterator[list[Column]]
"""Batch after batch, the columns of one variable's places."""


class Coded(Sequence[Any]):
    """A column of few different cells: these `cells`, and the place among them of what each record holds (n,)."""

    def __init__(self, cells: Sequence[Any], places: NDArray[np.integer[Any]]) -> None:
        self.cells, self.places = cells, places

    @classmethod
    def of(cls, column: Column) -> Coded:
        """Of cells that can be looked up."""
        if isinstance(column, cls):
            return column
        known = {cell: place for place, cell in enumerate(dict.fromkeys(column))}
        return cls(list(known), np.fromiter(map(known.__getitem__, column), np.intp, len(column)))

    @classmethod
    def of_texts(cls, column: pl.Series) -> Coded:
        """Of texts, none of them missing."""
        import polars as pl

        cells = column.unique(maintain_order=True)
        return cls(cells.to_list(), column.cast(pl.Enum(cells)).to_physical().to_numpy())

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, at: Any) -> Any:
        places = self.places[at]
        return [self.cells[place] for place in places] if isinstance(at, slice) else self.cells[places]


def coded(column: pl.Series) -> Column:
    """A column that is not of numbers, as it stands."""
    import polars as pl

    texts = column.dtype == pl.String and not column.null_count()
    return Coded.of_texts(column) if texts and 4 * column.n_unique() <= len(column) else column.to_list()


@dataclass(frozen=True, slots=True)
class Fields:
    """The columns of one variable: of `size` values, or of a single one (None)."""

    name: str
    size: int | None = None

    @property
    def count(self) -> int:
        return 1 if self.size is None else self.size

    @property
    def columns(self) -> tuple[str, ...]:
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
            help=slip_of_header(self.columns, names)
            or f"the first line of a file names its columns: {','.join(self.columns[:4])}",
        )


def batches(fields: Fields, source: Any, texts: TextFiles = AS_USUAL) -> Batches:
    """The columns of a variable, batch after batch.

    Args: source, a path (.csv, .csv.gz, .tsv, .parquet, .npy, .json), a table of named columns, or one array or list
        with a record in each row; texts, how text files are written.
    Raises: DataError (PS0803 to PS0805).
    """
    if isinstance(source, Path):
        if is_text(source):
            return _of_text(fields, source, texts)
        if source.suffix.lower() == ".npy":
            return _of_array(fields, load_array(fields.name, source, mapped=True))
        if source.suffix.lower() == ".json":
            return _of_items(fields, _json(fields, source))
    elif isinstance(source, Mapping) and fields.name in source:
        return batches(fields, source[fields.name])
    if isinstance(source, Path) or is_frame(source):
        return _of_frame(fields, source)
    if hasattr(source, "to_numpy") or isinstance(source, np.ndarray):
        return _of_array(fields, np.asarray(source if isinstance(source, np.ndarray) else source.to_numpy()))
    return _of_items(fields, source)


def _of_text(fields: Fields, path: Path, texts: TextFiles) -> Batches:
    plain = plain_text(fields.name, path, texts) if texts.header and path.stat().st_size > CHUNK else None
    if plain is not None:
        chosen = plain.select(fields.find(plain.columns))
        for part in chosen.iter_slices(BATCH):
            yield [coded(column.fill_null("")) for column in part]
        return
    rows = rows_of_text(fields.name, path, texts)
    names = [name.strip() for name in next(rows, [])] if texts.header else list(fields.columns)
    rows = rows if texts.header else of_width(fields.name, rows, fields.count, texts)
    at = [names.index(name) for name in fields.find(names)]
    while batch := list(islice(rows, BATCH)):
        yield [[_cell(line, j) for line in batch] for j in at]


def _of_frame(fields: Fields, source: Any) -> Batches:
    """Arrays of numbers (not a number where one is missing), or lists."""

    def read(held: Any) -> pl.DataFrame:
        return collect(fields.name, load_frame(fields.name, held).select(names))

    frame = load_frame(fields.name, source)
    names = fields.find(column_names(fields.name, frame))
    readable(fields.name, frame, names)
    if isinstance(source, Path) and source.suffix.lower() == ".parquet":
        parts = parquet_frames(fields.name, source, names, BATCH)
    else:
        parts = whatever_is_text(fields.name, source, read).iter_slices(BATCH)
    for part in parts:
        columns = collect(fields.name, readable(fields.name, part.lazy(), names)).get_columns()
        yield [c.to_numpy() if c.dtype.is_numeric() else coded(c) for c in columns]


def _of_array(fields: Fields, array: NDArray[Any]) -> Batches:
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
        help="one record per row",
    )


def _json(fields: Fields, path: Path) -> Any:
    loaded = load_json(fields.name, path)
    # perhaps a release of local reports
    values = outputs_of(loaded)
    return loaded if values is None else values


def _of_items(fields: Fields, found: Any) -> Batches:
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
