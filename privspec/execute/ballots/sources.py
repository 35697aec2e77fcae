"""Where ballots stand: any table, list or file as a frame with a text for each ballot, its number, and its party."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from privspec.execute.ballots.form import NOT_ONE, Form
from privspec.execute.ballots.preflib import SUFFIXES as PREFLIB
from privspec.execute.ballots.preflib import read_preflib
from privspec.execute.data import SUFFIXES, located
from privspec.execute.keeper import refuse
from privspec.execute.sources import (
    cell_text,
    column_names,
    is_frame,
    is_text,
    load_array,
    load_frame,
    load_json,
    readable,
    rows_of_text,
)

if TYPE_CHECKING:
    import polars as pl

BALLOT, COUNT, PARTY = "ballot", "count", "party"
"""Columns of the frames made here: a text, best first with spaces between; how often; whose."""
GENERIC = ("choice", "ranking")
"""Columns of ballots in any table."""


Find: TypeAlias = Callable[[str], int]
"""From a word of a ballot to the place of the alternative that it names, or NOT_ONE."""


def open_ballots(form: Form, source: Any, *, header: bool = True) -> tuple[pl.LazyFrame, Find]:
    """A lazy frame of the ballots, and what their words mean.

    The frame has texts in `ballot`, and where the source has them `count` and `party`, as they are.

    Args: source, a path (.csv, .csv.gz, .tsv, .parquet, .json, .npy, .soc, .soi, .toc, .toi), a table of named columns,
        an array or a list with a ballot in each row; header, whether the first line of a text file names its columns,
        which else are the ballots and, if there is another one, their counts.
    Raises: DataError (PS0802 to PS0805, PS0818).
    """
    found = located(form.name, source, (*SUFFIXES, *PREFLIB))
    if isinstance(found, Path) and found.name.lower().endswith(PREFLIB):
        frame, numbers = read_preflib(form, found)
        return frame, lambda word: numbers.get(word, NOT_ONE)
    return _opened(form, found, header=header), form.find


def _opened(form: Form, found: Any, *, header: bool) -> pl.LazyFrame:
    if isinstance(found, Path):
        lower = found.name.lower()
        if lower.endswith(".npy"):
            return _plain(form, load_array(form.name, found))
        if not lower.endswith(".json"):
            return _columns(form, load_frame(form.name, found, None if header else _headerless(form, found)))
        found = load_json(form.name, found)
    if isinstance(found, Mapping) and form.name in found and not _sized_alike(found):
        found = found[form.name]
    if is_frame(found):
        return _columns(form, load_frame(form.name, found))
    return _plain(form, found)


def _headerless(form: Form, path: Path) -> tuple[str, ...] | None:
    """The columns of a text file without a header: ballots, and counts if its first line has another cell."""
    if not is_text(path):
        return None
    first = next(rows_of_text(form.name, path), [])
    return (GENERIC[form.most > 1], COUNT) if len(first) == 2 else (GENERIC[form.most > 1],)


def holds_ballots(form: Form, source: Any) -> bool:
    """Whether a source is laid out as ballots and not as an input's entries: by its suffix and its columns alone."""
    found = located(form.name, source, (*SUFFIXES, *PREFLIB))
    if isinstance(found, Path):
        lower = found.name.lower()
        if lower.endswith(PREFLIB):
            return True
        if lower.endswith((".npy", ".json")):
            return False
        names = column_names(form.name, load_frame(form.name, found))
    elif is_frame(found):
        names = column_names(form.name, load_frame(form.name, found))
    else:
        return False
    return any(name in GENERIC and name != form.name for name in names) or {form.name, COUNT} <= set(names)


def _sized_alike(found: Mapping[Any, Any]) -> bool:
    """Whether a mapping is a table: columns of one length."""
    lengths = {len(column) for column in found.values() if hasattr(column, "__len__") and not isinstance(column, str)}
    return len(found) > 1 and len(lengths) == 1


# --- tables ---------------------------------------------------------------------------------------


def _columns(form: Form, frame: pl.LazyFrame) -> pl.LazyFrame:
    """The columns of a table that matter, under the names used here."""
    import polars as pl

    schema = dict(zip(column_names(form.name, frame), frame.collect_schema().dtypes(), strict=True))
    stripped = {name.strip(): name for name in schema}
    wanted = (form.name, *(GENERIC if form.most == 1 else reversed(GENERIC)))
    title = next((name for name in wanted if name in stripped and name not in (COUNT, form.party)), None)
    if title is None:
        first = GENERIC[form.most > 1]
        refuse(
            "PS0804",
            f"the data for {form.name} have no column {first} or {form.name}",
            help=f"the first line of a file names its columns: {first}, or {first},count",
        )
    column = stripped[title]
    chosen = [_text(pl.col(column), schema[column]).alias(BALLOT)]
    plain = [stripped[name] for name in (COUNT, form.party) if name is not None and name in stripped]
    kind = schema[column]
    listed = isinstance(kind, pl.List | pl.Array)
    if isinstance(kind, pl.List | pl.Array):
        readable(form.name, pl.LazyFrame(schema={column: kind.inner}), [column])
    # a column of another kind holds no ballots, whatever is in it
    readable(form.name, frame, plain if listed else [column, *plain])
    if COUNT in stripped:
        chosen.append(pl.col(stripped[COUNT]).alias(COUNT))
    if form.party is not None and form.party in stripped:
        chosen.append(pl.col(stripped[form.party]).cast(pl.String, strict=False).str.strip_chars().alias(PARTY))
    return frame.select(chosen)


def _text(column: pl.Expr, kind: Any) -> pl.Expr:
    import polars as pl

    if isinstance(kind, pl.List | pl.Array):
        joined = column.arr.to_list() if isinstance(kind, pl.Array) else column
        return joined.cast(pl.List(pl.String), strict=False).list.join(" ", ignore_nulls=True)
    return column.cast(pl.String, strict=False)


# --- lists and arrays -----------------------------------------------------------------------------


def _plain(form: Form, found: Any) -> pl.LazyFrame:
    """One ballot a row: a name, a list of names, or an object with the columns of a table."""
    import polars as pl

    if hasattr(found, "to_numpy") and not isinstance(found, np.ndarray):
        found = found.to_list() if hasattr(found, "to_list") else found.to_pylist()
    if isinstance(found, np.ndarray):
        if found.ndim > 1 and found.dtype.kind in "iu":
            numbers = pl.Series(found.reshape(len(found), -1).astype(np.int64)).cast(pl.List(pl.String))
            return pl.DataFrame({BALLOT: numbers.list.join(" ")}).lazy()
        found = found.tolist()
    if isinstance(found, str) or not isinstance(found, Iterable):
        refuse("PS0803", f"the data for {form.name} are of a kind that cannot be read", help="one ballot a row")
    rows = list(found)
    names = list(dict.fromkeys(key for row in rows if isinstance(row, Mapping) for key in row))
    titles = [name for name in (form.name, *GENERIC) if name in names]
    if rows and titles and all(isinstance(row, Mapping) for row in rows):
        return _columns(form, load_frame(form.name, {str(key): [row.get(key) for row in rows] for key in names}))
    if rows and not titles and all(isinstance(row, Mapping) for row in rows):
        return _columns(form, load_frame(form.name, {str(key): [] for key in names}))
    texts = [cell_text(row.get(titles[0]) if titles and isinstance(row, Mapping) else row) for row in rows]
    return pl.DataFrame({BALLOT: texts}, schema={BALLOT: pl.String}).lazy()
