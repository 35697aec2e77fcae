"""Tables of named columns as polars frames; polars is imported when data are read, not before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privspec.execute.problems import refuse, refuse_unreadable
from privspec.execute.text import has_quotes, is_text, rows_of_text, separator_of

if TYPE_CHECKING:
    import polars as pl

BETWEEN = "\x1f"
"""Stands between cells that were cut already."""
LOST = "\ufffd"
"""The sign for what is no text: no declared value has it."""
_ONE_LINE = str.maketrans({"\n": LOST, BETWEEN: LOST})


def load_frame(name: str, source: Any, columns: Sequence[str] | None = None) -> pl.LazyFrame:
    """A lazy frame of any table of named columns; text files give text in every column.

    Args: columns, the names of a text file that has no header, in their order.
    Raises: DataError (PS0803) if it cannot be read.
    """
    import polars as pl

    try:
        return _frame(name, source, columns)
    except (pl.exceptions.PolarsError, OSError, TypeError, ValueError, OverflowError):
        refuse_unreadable(name, "a table of columns")


def _frame(name: str, source: Any, columns: Sequence[str] | None) -> pl.LazyFrame:
    import polars as pl

    if isinstance(source, Path):
        return _text(name, source, columns) if is_text(source) else pl.scan_parquet(source, glob=False)
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


def _text(name: str, path: Path, columns: Sequence[str] | None) -> pl.LazyFrame:
    """Cells as `rows_of_text` cuts them; polars reads the file itself where no quote is in it."""
    import polars as pl

    separator = separator_of(path)
    source: Path | bytes = path
    if columns is not None or has_quotes(name, path):
        rows = rows_of_text(name, path)
        cut = rows if columns is None else _under(name, rows, columns)
        content = "".join(BETWEEN.join(_held(cell) for cell in row) + "\n" for row in cut)
        separator, source = BETWEEN, content.encode()
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
    return frame.rename(plain)


def _under(name: str, rows: Iterator[list[str]], columns: Sequence[str]) -> Iterator[list[str]]:
    """Rows under names that the file itself does not have."""
    first = next(rows, list(columns))
    if len(first) != len(columns):
        refuse(
            "PS0804",
            f"the data for {name} have {len(first)} columns, and {len(columns)} are wanted where there is no header",
            help=f"in this order: {', '.join(columns)}",
        )
    return chain([list(columns), first], rows)


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
    found = pl.from_arrow(column)
    assert isinstance(found, pl.Series)
    return found.alias(name)


def readable(name: str, frame: pl.LazyFrame, columns: Sequence[str]) -> pl.LazyFrame:
    """These columns of a frame, as numbers, truth values or texts.

    Raises: DataError (PS0803) if a column is of a kind that holds none of them, whatever is in it.
    """
    import polars as pl

    chosen = []
    for column, kind in zip(columns, _kinds(name, frame, columns), strict=True):
        if kind in (pl.Categorical, pl.Enum, pl.Null, pl.Binary):
            chosen.append(pl.col(column).cast(pl.String, strict=False))
        elif kind.is_decimal():
            chosen.append(pl.col(column).cast(pl.Float64, strict=False))
        elif kind.is_numeric() or kind in (pl.String, pl.Boolean):
            chosen.append(pl.col(column))
        else:
            refuse(
                "PS0803",
                f"the column {column} of the data for {name} is of a kind that holds neither numbers nor words",
                help="write it as numbers or as text; dates, lists and structures are neither",
            )
    return frame.select(chosen)


def _kinds(name: str, frame: pl.LazyFrame, columns: Sequence[str]) -> list[Any]:
    import polars as pl

    try:
        schema = frame.collect_schema()
    except (pl.exceptions.PolarsError, OSError):
        refuse_unreadable(name, "a table of columns")
    return [schema[column] for column in columns]


def collect(name: str, frame: pl.LazyFrame) -> pl.DataFrame:
    """The frame's rows, without holding more of a file than it must.

    Raises: DataError (PS0803).
    """
    import polars as pl

    try:
        return frame.collect(engine="streaming")
    except (pl.exceptions.PolarsError, OSError):
        refuse_unreadable(name, "a table of columns")


def column_names(name: str, frame: pl.LazyFrame) -> list[str]:
    """The names of the columns, in order.

    Raises: DataError (PS0803).
    """
    import polars as pl

    try:
        return frame.collect_schema().names()
    except (pl.exceptions.PolarsError, OSError):
        refuse_unreadable(name, "a table of columns")
