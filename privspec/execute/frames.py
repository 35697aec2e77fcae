"""Tables of named columns as polars frames; polars is imported when data are read, not before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privspec.execute.problems import refuse_unreadable

if TYPE_CHECKING:
    import polars as pl


def load_frame(name: str, source: Any) -> pl.LazyFrame:
    """A lazy frame of any table of named columns; text files give text in every column.

    Raises: DataError (PS0803) if it cannot be read.
    """
    import polars as pl

    try:
        return _frame(source)
    except (pl.exceptions.PolarsError, OSError, TypeError, ValueError):
        refuse_unreadable(name, "a table of columns")


def _frame(source: Any) -> pl.LazyFrame:
    import polars as pl

    if isinstance(source, Path):
        if source.suffix.lower() == ".parquet":
            return pl.scan_parquet(source, glob=False)
        return pl.scan_csv(
            source,
            separator="\t" if source.suffix.lower() == ".tsv" else ",",
            infer_schema=False,
            truncate_ragged_lines=True,
            encoding="utf8-lossy",
            glob=False,
        )
    if isinstance(source, pl.DataFrame | pl.LazyFrame):
        return source.lazy()
    if isinstance(source, Mapping):
        return pl.DataFrame({str(k): list(v) for k, v in source.items()}, strict=False).lazy()
    if hasattr(source, "column_names"):
        return pl.DataFrame(source.to_pydict(), strict=False).lazy()
    # pandas, by plain lists: a conversion through pyarrow would fail on columns of mixed kinds
    columns = {str(c): source[c].to_numpy().tolist() for c in source.columns}
    return pl.DataFrame(columns, strict=False).lazy()


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
