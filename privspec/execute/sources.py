"""Where data stand: text files, tables of named columns as polars frames, arrays, JSON. polars is imported when read.

Text files of separated values are cut into rows and cells by one fixed rule. A line feed ends a line, with the carriage
return before it if there is one; what follows the last line feed is a line unless it is empty. Every line is a row, a
blank one too, so no cell, whatever it holds, takes other rows with it. A cell that begins with a quote ends at the
first single quote that a separator or the end of the line follows; two quotes in it stand for one; where no such quote
comes, it is a sign like any other. Bytes that are no text become the sign for that, U+FFFD.

What separates cells, and whether numbers have decimal commas, is what the keeper says (`--separator`, `--decimal`).
Only where the keeper says that quoted cells of a .csv file hold line feeds (`--quoted-newlines`) may a quote be closed
on a later line; but not where the row would have another number of cells than the first line, or where none closes it.
A file in which no cell holds a line feed reads the same either way.
"""

from __future__ import annotations

import gzip
import json
import re
import struct
import sys
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from numbers import Number
from pathlib import Path
from tokenize import TokenError
from typing import IO, TYPE_CHECKING, Any, NoReturn, TypeVar
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import DataError, UsageError
from privspec.core.records import dataclass
from privspec.execute.cells import LOST, Clock, ids
from privspec.execute.keeper import refuse, refuse_unreadable

if TYPE_CHECKING:
    import polars as pl

QUOTE = '"'
CHUNK = 2**20


def is_text(path: Path) -> bool:
    """Whether the suffix of a file says that it holds separated values."""
    return path.name.lower().endswith((".csv", ".csv.gz", ".tsv"))


def separator_of(path: Path) -> str:
    """What stands between the cells of a line, by the suffix of the file."""
    return "\t" if path.suffix.lower() == ".tsv" else ","


def unheard(*_: Any) -> None:
    """Nobody is told."""


@dataclass(frozen=True, slots=True)
class TextFiles:
    """How text files are written, as their keeper says: nothing in them decides it.

    header: whether the first line names the columns, which else are those of the spec, in its order; quoted_newlines:
    whether a quoted cell of a .csv file may hold line feeds; told: hears, with an input's name, what of a file is not
    read as it may have been meant, for the keeper alone; separator: what stands between cells, by default what the
    suffix says; decimal: the sign before the decimals of a number, beside a point, in all lines but those of names.
    """

    header: bool = True
    quoted_newlines: bool = False
    told: Callable[[str, str], None] = unheard
    separator: str | None = None
    decimal: str = "."

    def between(self, path: Path) -> str:
        """What stands between the cells of a line of a file."""
        return self.separator or separator_of(path)


AS_USUAL = TextFiles()


def text_files(header: bool, quoted_newlines: bool, separator: str | None, decimal: str) -> TextFiles:
    """As a keeper says.

    Raises: UsageError PS0721 for signs that stand for something else.
    """
    if separator is not None and (len(separator) != 1 or separator in '"\r\n\x1f' or separator.isalnum()):
        raise UsageError.of("PS0721", "a separator is one sign, and no letter, digit or quote", help="--separator ';'")
    if decimal not in (".", ",") or decimal == separator:
        raise UsageError.of(
            "PS0721",
            "decimals follow a point or a comma, which separates no cells",
            help="--separator ';' --decimal ','",
        )
    return TextFiles(header, quoted_newlines, unheard, separator, decimal)


@contextmanager
def opened(name: str, path: Path, what: str = "comma-separated values") -> Iterator[IO[bytes]]:
    """The bytes of a text file, unpacked.

    Raises: DataError PS0803 if it cannot be read.
    """
    how = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with how(path, "rb") as file:
            yield file  # type: ignore[misc]
    except (OSError, EOFError, zlib.error):
        refuse_unreadable(name, what)


def rows_of_text(
    name: str, path: Path, texts: TextFiles = AS_USUAL, separator: str | None = None
) -> Iterator[list[str]]:
    """The cells of row after row, the first line among them; at their end it is told what lines were joined.

    Args: separator, where it is not what the suffix says.
    Raises: DataError PS0803.
    """
    separator = separator or texts.between(path)
    with opened(name, path) as file:
        lines = _Lines(file, separator, joined=texts.quoted_newlines and separator != "\t")
        names = texts.header
        while (cells := lines.next()) is not None:
            yield cells if names or texts.decimal == "." else [_DECIMAL_COMMA.sub(r"\1.\2", cell) for cell in cells]
            names = False
        for remark in lines.remarks():
            texts.told(name, remark)


_COMMA = r"^([ \t]*[+-]?[0-9]*),([0-9]*(?:[eE][+-]?[0-9]+)?[ \t]*)"
_DECIMAL_COMMA = re.compile(_COMMA + r"\Z")


def lines_without_quotes(name: str, path: Path) -> int | None:
    """How many lines a text file has; None where a quote is anywhere in it."""
    lines, last = 0, b"\n"
    with opened(name, path) as file:
        while chunk := file.read(CHUNK):
            if b'"' in chunk:
                return None
            lines, last = lines + chunk.count(b"\n"), chunk[-1:]
    return lines + (last != b"\n")


def _unquoted(part: str) -> str | None:
    """What lies between two separators, if it has no quotes but one at either end; None if it is not that simple."""
    if QUOTE not in part:
        return part
    inner = part[1:-1]
    return inner if len(part) > 1 and part[0] == QUOTE == part[-1] and QUOTE not in inner else None


class _Lines:
    """The lines of a file, and those of them that were looked at ahead of their turn."""

    def __init__(self, file: IO[bytes], separator: str, *, joined: bool) -> None:
        # binary files are cut at line feeds alone
        self._file, self._separator, self._ahead = iter(file), separator, deque[str]()
        self._joined, self._width = joined, 0
        self._read_so_far, self._open, self._used = 0, 0, 0

    def next(self) -> list[str] | None:
        """The cells of the next row, None after the last."""
        line = self._ahead.popleft() if self._ahead else self._read()
        if line is None:
            return None
        found = self._row(line)
        self._width = self._width or len(found)
        return found

    def remarks(self) -> Iterator[str]:
        """What a keeper should know of how lines became rows."""
        if self._used:
            yield f"{self._used:,} of {self._read_so_far:,} lines are no rows: they go on with a cell of the line above"
        if self._open:
            hint = "; where cells hold line breaks, say --quoted-newlines" if self._separator != "\t" else ""
            yield f"{self._open:,} of {self._read_so_far:,} lines do not close a quote: each line is a row{hint}"

    def _row(self, line: str) -> list[str]:
        if QUOTE not in line:
            return line.split(self._separator)
        plain = [_unquoted(part) for part in line.split(self._separator)]
        if None not in plain:
            return plain  # type: ignore[return-value]
        if self._joined:
            cells, used = self._cells(line, far=True)
            if not used or self._width in (0, len(cells)):
                for _ in range(used):
                    self._ahead.popleft()
                self._used += used
                return cells
        return self._cells(line, far=False)[0]

    def _read(self) -> str | None:
        raw = next(self._file, None)
        if raw is None:
            return None
        if not self._read_so_far:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        self._read_so_far += 1
        return raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", errors="replace")

    def _later(self, place: int) -> str | None:
        """The line so many places after the current one; None after the last."""
        while len(self._ahead) <= place:
            line = self._read()
            if line is None:
                return None
            self._ahead.append(line)
        return self._ahead[place]

    def _cells(self, line: str, *, far: bool) -> tuple[list[str], int]:
        """The cells of a row that begins with this line, and how many later lines belong to it."""
        cells, at, used = [], 0, 0
        while True:
            found = self._quoted(line, at + 1, used, far=far) if line.startswith(QUOTE, at) else None
            if found is not None:
                cell, line, at, used = found
                cells.append(cell)
                if at == len(line):
                    return cells, used
            else:
                end = line.find(self._separator, at)
                if end < 0:
                    cells.append(line[at:])
                    return cells, used
                cells.append(line[at:end])
                at = end
            at += len(self._separator)

    def _quoted(self, line: str, at: int, used: int, *, far: bool) -> tuple[str, str, int, int] | None:
        """A quoted cell from behind its quote on, the line that it ends on, and where; None if it does not end."""
        parts: list[str] = []
        while True:
            quote = line.find(QUOTE, at)
            if quote < 0:
                later = self._later(used) if far else None
                if later is None:
                    self._open += not far
                    return None
                parts += [line[at:], "\n"]
                line, at, used = later, 0, used + 1
                continue
            after = line[quote + 1 : quote + 2]
            parts.append(line[at:quote])
            if after in ("", self._separator):
                return "".join(parts), line, quote + 1, used
            if after != QUOTE:
                return None
            parts.append(QUOTE)
            at = quote + 2


# --- tables of named columns ----------------------------------------------------------------------

BETWEEN = "\x1f"
"""Stands between cells that were cut already."""
_ONE_LINE = str.maketrans({"\n": LOST, BETWEEN: LOST})


ARROW = (".arrow", ".feather")
"""Suffixes of tables in the format that Arrow has for files."""
IN_DATABASE = "::"
"""Stands between a database and the name of one of its tables."""


class Unordered(ABC):
    """A source whose rows stand in no order."""

    @abstractmethod
    def frame(self, name: str) -> pl.LazyFrame:
        """All of its rows.

        Raises: DataError (PS0803).
        """


@dataclass(frozen=True, slots=True)
class Folder(Unordered):
    """The Parquet files of a folder and of the folders in it.

    A folder that writers of tables call `district=north` says the cells of a column that its files do not have.
    """

    files: tuple[Path, ...]
    root: Path = Path()

    @classmethod
    def of(cls, name: str, path: Path) -> Folder:
        """Raises: DataError PS0802 if it holds none, or other data beside them."""
        files = files_of(path)
        others = [file for file in files if file.suffix.lower() != ".parquet"]
        if others or not files:
            said = f"holds {others[0].name} beside Parquet" if others else "holds no Parquet file"
            refuse("PS0802", f"the folder for {name} {said}: {path}", help="a folder of data is one of Parquet files")
        return cls(files, path)

    def said(self, file: Path) -> dict[str, str | None]:
        """The cells that the names of a file's folders say, by column; None where they say that there is nothing."""
        parts = file.relative_to(self.root).parts[:-1] if file.is_relative_to(self.root) else ()
        found = (part.split("=", 1) for part in parts if "=" in part)
        return {unquote(key): None if text == NOTHING else unquote(text) for key, text in found}

    def frame(self, name: str) -> pl.LazyFrame:
        import polars as pl

        frames = self._frames()
        # what is a number in one file and a word in another one is compared by its text
        mixed = [column for column, found in _kinds(frames).items() if len(found) > 1]
        alike = []
        for frame in frames:
            schema = frame.collect_schema()
            alike.append(frame.with_columns(texts_of(pl.col(c), schema[c]) for c in mixed if c in schema))
        return pl.concat(alike, how="diagonal")

    def _frames(self) -> list[pl.LazyFrame]:
        return [parquet_frame([file], self.said(file)) for file in self.files]

    def remarks(self, names: Sequence[str] | None = None) -> Iterator[str]:
        """What a keeper should know of columns, all or those, whose kind is not the same in all files."""
        for column, found in _kinds(self._frames()).items():
            if len(found) > 1 and (names is None or column in names):
                kinds = ", ".join(f"{kind} in {len(places):,}" for kind, places in found.items())
                several = f"{column} is of different kinds in different files: {kinds}"
                yield f"{several}; a cell is read by its text, a whole number as one word"


def with_folder(source: Any) -> Any:
    """A file of Parquet as a folder of one; anything else as it is."""
    parquet = isinstance(source, Path) and source.suffix.lower() == ".parquet"
    return Folder((source,), source.parent) if parquet else source


def _kinds(frames: Sequence[pl.LazyFrame]) -> dict[str, dict[Any, list[int]]]:
    """Which files, by their places, hold a column in which kind."""
    found: dict[str, dict[Any, list[int]]] = {}
    for place, frame in enumerate(frames):
        for column, kind in frame.collect_schema().items():
            found.setdefault(column, {}).setdefault(kind, []).append(place)
    return found


NOTHING = "__HIVE_DEFAULT_PARTITION__"


def parquet_frame(files: Sequence[Path], said: Mapping[str, str | None]) -> pl.LazyFrame:
    """Files of one schema, with the cells that their folders say where they have no such column."""
    import polars as pl

    frame = pl.scan_parquet(list(files), glob=False, hive_partitioning=False)
    own = frame.collect_schema().names()
    more = {key: pl.lit(text, dtype=pl.String) for key, text in said.items() if key not in own}
    return frame.with_columns(**more) if more else frame


def files_of(path: Path) -> tuple[Path, ...]:
    """The files in a folder and in its folders, but for those that writers mark with a dot or a line below."""
    found = (file for file in path.rglob("*") if file.is_file())
    return tuple(sorted(f for f in found if not any(p.startswith((".", "_")) for p in f.relative_to(path).parts)))


def place_on_disk(source: str | Path) -> Path:
    """The file or folder that a source is in: of a table of a database, the database."""
    text = str(source)
    return Path(text if IN_DATABASE not in text or Path(text).exists() else text.split(IN_DATABASE)[0])


def texts_of(column: pl.Expr, kind: Any) -> pl.Expr:
    """A column of that kind in text: a list as its words, blanks between them; objects and lists of lists have none."""
    import polars as pl

    inner = kind.inner if isinstance(kind, pl.List | pl.Array) else None
    if kind == pl.Struct or kind == pl.Object or (inner is not None and inner.is_nested()):
        return pl.lit(None, pl.String).alias(column.meta.output_name())
    if inner is None or inner == pl.Binary:
        return ids(column)
    joined = column.arr.to_list() if isinstance(kind, pl.Array) else column
    return joined.cast(pl.List(pl.String), strict=False).list.join(" ", ignore_nulls=True)


Found = TypeVar("Found")


def whatever_is_text(name: str, source: Any, read: Callable[[Any], Found]) -> Found:
    """What is read of a source; where a file holds bytes that are no text in a column of texts, U+FFFD stands for them.

    Engines give such a file up as a whole. `read` is then given a frame, once it has failed.
    Raises: DataError.
    """
    files = source.files if isinstance(source, Folder) else [source] if isinstance(source, Path) else []
    if not all(file.suffix.lower() in (".parquet", *ARROW) for file in files):
        files = []
    try:
        return read(source)
    except DataError as error:
        if not files or error.diagnostics[0].code != "PS0803":
            raise
    said = source.said if isinstance(source, Folder) else lambda _: {}
    return read(mended(name, files, said(files[0])))


def mended(name: str, files: Sequence[Path], said: Mapping[str, str | None]) -> pl.DataFrame:
    """Files of one schema as `parquet_frame` reads them, with U+FFFD for bytes that are no text.

    Raises: DataError (PS0803).
    """
    import polars as pl
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
    import pyarrow.parquet as pq  # type: ignore[import-untyped, unused-ignore]

    with unreadable_said(name, pa.ArrowException):
        read = [pa.ipc.open_file(f).read_all() if f.suffix in ARROW else pq.ParquetFile(f).read() for f in files]
        parts = [pl.DataFrame([_from_arrow(key, part.column(key)) for key in part.column_names]) for part in read]
        frame = pl.concat(parts)
        more = {key: pl.lit(text, dtype=pl.String) for key, text in said.items() if key not in frame.columns}
        return frame.with_columns(**more)


def load_frame(name: str, source: Any, texts: TextFiles = AS_USUAL, columns: Sequence[str] = ()) -> pl.LazyFrame:
    """A lazy frame of any table of named columns; text files give text in every column.

    Args: columns, the names of a text file that has no header, in their order.
    Raises: DataError (PS0803) if it cannot be read.
    """
    with unreadable_said(name, TypeError, ValueError, OverflowError):
        return _frame(name, source, texts, columns)


@contextmanager
def unreadable_said(name: str, *more: type[Exception]) -> Iterator[None]:
    """Says PS0803 where polars cannot read a table."""
    import polars as pl

    kinds: tuple[type[Exception], ...] = (pl.exceptions.PolarsError, OSError, *more)
    try:
        yield
    except kinds:
        refuse_unreadable(name, "a table of columns")


def _frame(name: str, source: Any, texts: TextFiles, columns: Sequence[str]) -> pl.LazyFrame:
    import polars as pl

    if isinstance(source, Unordered):
        return source.frame(name)
    if isinstance(source, Path):
        if is_text(source):
            return _text(name, source, texts, columns)
        arrow = source.suffix.lower() in ARROW
        return pl.scan_ipc(source) if arrow else pl.scan_parquet(source, glob=False)
    if isinstance(source, pl.DataFrame | pl.LazyFrame):
        return source.lazy()
    if isinstance(source, Mapping):
        return pl.DataFrame([_column(str(k), v) for k, v in source.items()]).lazy()
    if hasattr(source, "column_names"):
        found = [_arrow(str(k), source.column(k)) for k in source.column_names]
        return pl.DataFrame(found).lazy()
    # pandas, by plain lists: a conversion through pyarrow would fail on columns of mixed kinds
    return pl.DataFrame([_column(str(c), _of_pandas(source[c])) for c in source.columns]).lazy()


def _of_pandas(column: Any) -> NDArray[Any]:
    found: NDArray[Any] = column.to_numpy()
    if found.dtype.kind == "O":
        found = column.astype(object).where(column.notna(), None).to_numpy()
    return found


def _text(name: str, path: Path, texts: TextFiles, columns: Sequence[str]) -> pl.LazyFrame:
    """Cells as `rows_of_text` cuts them; polars reads the file itself where no quote is in it."""
    separator = texts.between(path)
    source: Path | bytes = path
    if not texts.header or lines_without_quotes(name, path) is None:
        rows = rows_of_text(name, path, texts)
        cut = rows if texts.header else chain([list(columns)], of_width(name, rows, len(columns), texts))
        content = "".join(BETWEEN.join(_held(cell) for cell in row) + "\n" for row in cut)
        separator, source = BETWEEN, content.encode()
    return _plain_text(source, separator, texts.decimal)


def _plain_text(source: Path | bytes, separator: str, decimal: str) -> pl.LazyFrame:
    """Text without quotes; columns are found without the spaces around their names."""
    import polars as pl

    frame = pl.scan_csv(
        source,
        separator=separator,
        quote_char=None,
        infer_schema=False,
        truncate_ragged_lines=True,
        encoding="utf8-lossy",
        glob=False,
    )
    names = frame.collect_schema().names()
    plain: dict[str, str] = {}
    for found in names:
        if found.strip() not in (*names, *plain.values()):
            plain[found] = found.strip()
    frame = frame.rename(plain)
    return frame if decimal == "." else frame.with_columns(pl.all().str.replace(f"{_COMMA}$", "${1}.${2}"))


PLAIN = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
"""Cells that are numbers in one way only."""


def plain_text(name: str, path: Path, texts: TextFiles) -> pl.DataFrame | None:
    """The cells of a text file, all of them texts, where no quote is in it and each line below the first is one row.

    None where `rows_of_text` may cut it otherwise.
    """
    import polars as pl

    if path.suffix.lower() not in (".csv", ".tsv"):
        return None
    lines = lines_without_quotes(name, path)
    if lines is None:
        return None
    try:
        frame = collect(name, _plain_text(path, texts.between(path), texts.decimal))
    except (pl.exceptions.PolarsError, DataError):
        return None
    first = [cell.strip() for cell in next(rows_of_text(name, path, texts), [])]
    return frame if frame.height + 1 == lines and frame.columns == first else None


def numbers_at_once(column: pl.Series, entry: Callable[[Any], float]) -> NDArray[np.float64]:
    """A column in doubles; `entry` reads the cells that are no plain numbers."""
    import polars as pl

    if column.dtype == pl.String:
        plain = column.str.contains(PLAIN).fill_null(value=False)
        found = column.cast(pl.Float64, strict=False)
    else:
        found = column.cast(pl.Float64, strict=False)
        plain = found.is_not_nan().fill_null(value=False)
    values = found.fill_null(float("nan")).to_numpy().copy()
    for i in np.flatnonzero(~plain.to_numpy() | np.isnan(values)).tolist():
        values[i] = entry(column[i])
    return values


def of_width(name: str, rows: Iterable[list[str]], width: int, texts: TextFiles) -> Iterator[list[str]]:
    """Rows of a file that names no columns; it is told how many have another number of cells."""
    total = other = 0
    for row in rows:
        total, other = total + 1, other + (len(row) != width)
        yield [*row, *[""] * (width - len(row))][:width]
    if other:
        said = f"{other:,} of {total:,} lines do not have {width} cells, as the spec has it where there is no header"
        texts.told(name, f"{said}: what is beyond is not read, what lacks is missing")


def _held(cell: str) -> str:
    """A cell on one line: a sign that says that it was not, and that no value has, in place of the end of a line."""
    return cell.strip().translate(_ONE_LINE) if "\n" in cell or BETWEEN in cell else cell


def _column(name: str, values: Any) -> pl.Series:
    """Values in memory: numbers of one kind as they are, all others each as the text that it would be in a file."""
    import polars as pl

    if isinstance(values, Mapping):
        values = list(values.values())
    if hasattr(values, "to_numpy") and not isinstance(values, np.ndarray):
        values = values.to_numpy()
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "biuf":
        return pl.Series(name, values.astype(np.float64) if values.dtype.kind == "f" else values)
    if not isinstance(values, Iterable) or isinstance(values, str):
        raise TypeError("a column")
    if isinstance(values, np.ndarray) and values.dtype.kind not in "biufUSO":
        raise TypeError("neither numbers nor words")
    found = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if all(v is None or type(v) is float for v in found):
        return pl.Series(name, found, dtype=pl.Float64)
    return pl.Series(name, [cell_text(v) for v in found], dtype=pl.String)


def cell_text(value: Any) -> str | None:
    """A value in memory as the text that it would be in a file; whatever is no word or number is no word either."""
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, str):
        return value.encode("utf-8", errors="replace").decode()
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, list | tuple | np.ndarray):
        return " ".join(text for item in value if (text := cell_text(item)) is not None)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**400:
        # Python refuses to write whole numbers of more than 4,300 digits
        return "inf" if value > 0 else "-inf"
    return str(value) if isinstance(value, Number) else LOST


def _arrow(name: str, column: Any) -> pl.Series:
    """A column of Arrow; one of a kind that holds neither words nor numbers becomes one that `readable` refuses."""
    import polars as pl
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    kind = column.type
    inner = kind.value_type if pa.types.is_list(kind) or pa.types.is_large_list(kind) else kind
    inner = inner.value_type if pa.types.is_dictionary(inner) else inner
    known = (
        *(pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_null),
        *(pa.types.is_string, pa.types.is_large_string),
    )
    if not any(test(inner) for test in known):
        return pl.Series(name, [None] * len(column), dtype=pl.Duration)
    return _from_arrow(name, column)


def _from_arrow(name: str, column: Any) -> pl.Series:
    """A column of Arrow, whose texts need not be text."""
    import polars as pl
    import pyarrow as pa

    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        kind = pa.list_(pa.large_binary()) if pa.types.is_nested(column.type) else pa.large_binary()
        return pl.Series(name, [_decoded(cell) for cell in column.cast(kind).to_pylist()])
    found = pl.from_arrow(column)
    assert isinstance(found, pl.Series)
    return found.alias(name)


def _decoded(cell: Any) -> Any:
    if isinstance(cell, list):
        return [_decoded(item) for item in cell]
    return None if cell is None else cell.decode("utf-8", errors="replace")


def readable(
    name: str,
    frame: pl.LazyFrame,
    columns: Sequence[str],
    people: Sequence[str] = (),
    clocks: Mapping[str, Clock] = {},
) -> pl.LazyFrame:
    """These columns of a frame, as numbers, truth values or texts; the ids of `people`, whole or texts, before them.

    Moments in columns of `clocks` are the day or hour that they lie in, in UTC where they have a zone.

    Raises: DataError (PS0803) if a column is of a kind that holds none of them, whatever is in it.
    """
    import polars as pl

    chosen = []
    with unreadable_said(name):
        schema = frame.collect_schema()
    for column in (*people, *columns):
        kind = schema[column]
        person = column in people and not kind.is_nested() and kind != pl.Object and not kind.is_integer()
        if person or kind == pl.Binary:
            chosen.append(ids(pl.col(column)))
        elif kind in (pl.Categorical, pl.Enum, pl.Null):
            chosen.append(pl.col(column).cast(pl.String, strict=False))
        elif kind.is_decimal():
            # by their digits: a quotient of two doubles would be rounded twice
            chosen.append(pl.col(column).cast(pl.String).cast(pl.Float64, strict=False))
        elif kind.is_numeric() or kind in (pl.String, pl.Boolean):
            chosen.append(pl.col(column))
        elif column in clocks and isinstance(kind, pl.Date | pl.Datetime):
            zoned = isinstance(kind, pl.Datetime) and kind.time_zone is not None
            moment = pl.col(column).dt.convert_time_zone("UTC") if zoned else pl.col(column)
            chosen.append(clocks[column].frame(moment))
        else:
            refuse_kind(column, name)
    return frame.select(chosen)


def refuse_kind(column: str, name: str) -> NoReturn:
    """Raises: DataError PS0803: a column holds neither numbers nor words."""
    refuse(
        "PS0803",
        f"the column {column} of the data for {name} is of a kind that holds neither numbers nor words",
        help="write it as numbers or as text; dates, lists and structures are neither",
    )


def collect(name: str, frame: pl.LazyFrame) -> pl.DataFrame:
    """The frame's rows, without holding more of a file than it must.

    Raises: DataError (PS0803).
    """
    with unreadable_said(name):
        return frame.collect(engine="streaming")


def column_names(name: str, frame: pl.LazyFrame) -> list[str]:
    """The names of the columns, in order.

    Raises: DataError (PS0803).
    """
    with unreadable_said(name):
        return frame.collect_schema().names()


def frames_of(name: str, frame: pl.LazyFrame, rows: int) -> Iterator[pl.DataFrame]:
    """Some rows of a frame after others, so many at once at most.

    Raises: DataError (PS0803).
    """
    with unreadable_said(name):
        batches = getattr(frame, "collect_batches", None)  # not in every version of polars
        for part in (collect(name, frame),) if batches is None else batches(chunk_size=rows):
            yield from part.iter_slices(rows)


def parquet_frames(name: str, path: Path, columns: Sequence[str], rows: int) -> Iterator[pl.DataFrame]:
    """Some columns of a Parquet file, so many rows at once; what was read is let go of with its group of rows.

    Raises: DataError (PS0803).
    """
    import polars as pl
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
    import pyarrow.parquet as pq  # type: ignore[import-untyped, unused-ignore]

    plainly = {"pre_buffer": False, "buffer_size": CHUNK}
    with unreadable_said(name, pa.ArrowException), pq.ParquetFile(path, **plainly) as file:
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(batch_size=rows, row_groups=[group], columns=list(columns)):
                table = pa.Table.from_batches([batch])
                yield pl.DataFrame([_from_arrow(key, table.column(key)) for key in table.column_names])


# --- arrays and JSON ------------------------------------------------------------------------------

DEEPEST = 24
"""Lists and objects of JSON that stand in one another, at most: what is deeper is a value that does not fit."""
_NO_ARRAY = (
    *(OSError, ValueError, EOFError, SyntaxError, TypeError, KeyError, IndexError, AttributeError, OverflowError),
    *(MemoryError, RecursionError, TokenError, struct.error, zipfile.BadZipFile),
)
"""What NumPy raises for files that are none of its own."""


def load_array(name: str, path: Path, *, mapped: bool = False) -> NDArray[Any]:
    """The array in an NPY file; of texts, numbers or truth values.

    Raises: DataError PS0803.
    """
    try:
        loaded = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except _NO_ARRAY:
        refuse_unreadable(name, "a NumPy array")
    if not isinstance(loaded, np.ndarray):
        refuse_unreadable(name, "a single NumPy array")
    if loaded.dtype.kind not in "biufUS":
        refuse_unreadable(name, "an array of numbers or texts")
    if loaded.dtype.kind == "S":
        return np.char.decode(loaded, "utf-8", errors="replace")
    if loaded.dtype.kind == "U" and loaded.size and loaded.dtype.itemsize:
        signs = np.ascontiguousarray(loaded).view(np.dtype(np.uint32).newbyteorder(loaded.dtype.byteorder))
        if (beyond := signs > sys.maxunicode).any():
            return np.asarray(np.where(beyond, ord(LOST), signs).astype(signs.dtype).view(loaded.dtype))
    return loaded


def outputs_of(document: Any) -> dict[str, Any] | None:
    """The values of a release in JSON, by output; None if it is none."""
    found = document.get("outputs") if isinstance(document, Mapping) else None
    if not isinstance(found, Mapping):
        return None
    return {name: one.get("values") if isinstance(one, Mapping) else one for name, one in found.items()}


def load_json(name: str, path: Path) -> Any:
    """What a JSON file holds; numbers of any length, and nothing that is nested deeper than data are.

    Raises: DataError PS0803.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig", errors="replace")
        return json.loads(_shallow(text), parse_int=_whole)
    except (OSError, ValueError, RecursionError):
        return refuse_unreadable(name, "JSON")


def _whole(digits: str) -> int | float:
    # Python refuses to read whole numbers of more than 4,300 digits
    return int(digits) if len(digits) < 400 else float(digits)


_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def _shallow(text: str) -> str:
    """The same text with null in place of what is nested too deeply to be read."""
    depth, begin, parts, done = 0, 0, [], 0
    if text.count("[") + text.count("{") <= DEEPEST:
        return text
    for match in _BRACKETS.finditer(text):
        sign = match[0]
        if sign in "[{":
            depth += 1
            if depth == DEEPEST + 1:
                begin = match.start()
        elif sign in "]}":
            if depth == DEEPEST + 1:
                parts += [text[done:begin], "null"]
                done = match.end()
            depth -= 1
    return "".join([*parts, text[done:]])


def looked_up(items: Iterable[Any], names: Iterable[str]) -> dict[str, list[Any]]:
    """Columns of these names from a list of objects, one a record.

    Each is looked at by itself: what an object does not say is missing, and all of what is no object is.
    """
    records = [item if isinstance(item, Mapping) else {} for item in items]
    return {name: [record.get(name) for record in records] for name in names}


def is_frame(source: Any) -> bool:
    """Whether it is a table of named columns: polars, pandas, pyarrow or a mapping of columns."""
    # of the type: asking a lazy frame itself would compute its columns
    return isinstance(source, Mapping | Unordered) or any(
        hasattr(type(source), name) for name in ("columns", "column_names")
    )
