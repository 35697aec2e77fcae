"""The beginning of a spec for a file of data, for its keeper: what stands in it of the data are the names of columns.

Bounds and words are promises to everybody, so none of them is taken from the data: the skeleton has places to fill in,
which `check` names in one message. Of cells it is seen what kind of thing nine in ten of the first ones are; a Parquet
file says that itself, and none of its rows is read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Any

from privspec.core.diagnostics import UsageError
from privspec.core.records import dataclass
from privspec.core.spans import Source
from privspec.execute.keeper import SEPARATORS, refuse_unreadable, written
from privspec.execute.sources import is_text, rows_of_text, separator_of
from privspec.kernel.measures import PURE
from privspec.language.syntax import FILL_IN

LOOKED_AT = 1_000
"""Rows by which the kinds of columns are told."""
MOST = 0.9
"""The share of their cells that are of a kind."""
LONGEST = 100
"""Signs of a name."""


class Kind(Enum):
    """What a column holds, and what is to be typed for it."""

    WHOLE = "whole numbers: the least and the largest that count, as in 0..120"
    NUMBER = "numbers: the least and the largest that count, as in [0, 10000]"
    COMMA = "numbers with decimal commas, which are read as numbers with --decimal ',': as in [0, 10000]"
    DAY = "days: the first and the last that count, as in 2025-01-01..2025-12-31"
    OTHER_DAY = (
        "days in a form that is not read: write them as 2025-12-31 in the file; then as in 2025-01-01..2025-12-31"
    )
    WORD = (
        "words: all that count, as in {F, M}; or unknown, if nobody can list them; or id, if they say whose a record is"
    )
    TRUTH = "yes or no: the words of the file, as in {true, false}"
    OTHER = "what this is was not seen: as in 0..120, [0, 10000], or {F, M}"


_DIGITS = r"[+-]?\d+"
_FORMS = (
    (Kind.WHOLE, re.compile(_DIGITS)),
    (Kind.NUMBER, re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")),
    (Kind.COMMA, re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+")),
    (Kind.DAY, re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d.*)?")),
    (Kind.OTHER_DAY, re.compile(r"\d{1,4}[./]\d{1,2}[./]\d{1,4}")),
    (Kind.TRUTH, re.compile(r"(?i:true|false)")),
)


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of columns in order, their kinds, and what a keeper should know of how the file is written."""

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    remarks: tuple[str, ...] = ()


def skeleton(path: Path, *, header: bool = True) -> str:
    """The text of a spec with the columns of a file.

    Args: header, whether the first line of a text file names the columns.
    Raises: UsageError PS0721 for a file of another form, PS0734 where no line names columns; DataError PS0803.
    """
    from privspec.language.formatter import format_source

    if is_text(path):
        columns = _of_text(path, header)
    elif path.name.lower().endswith(".parquet"):
        columns = _of_parquet(path)
    else:
        raise UsageError.of(
            "PS0721", "a spec is begun from a .csv, .tsv or .parquet file", help="save the table as one"
        )
    table = table_name(path)
    usable = [place for place, name in enumerate(columns.names) if _writable(name)]
    if not usable:
        raise _no_names("no spec can write them")
    remarks = [*columns.remarks]
    remarks += [
        f"column {place} has no name that a spec can write: name it in the file to ask about it"
        for place, name in enumerate(columns.names, 1)
        if not _writable(name)
    ]
    if any(columns.names[place] != columns.names[place].lower() for place in usable):
        remarks.append("capital letters count: names stand here as in the file")
    said = [f"{columns.names[place]}: {_of_kind(columns.names[place], columns.kinds[place])}" for place in usable]
    comments = "".join(f"  # {line}\n" for line in (*remarks, *said))
    attributes = ", ".join(f'"{columns.names[place]}" in {FILL_IN}' for place in usable)
    text = _TEXT.format(measure=PURE.word, table=table, comments=comments, attributes=attributes, blank=FILL_IN)
    return format_source(Source(f"{table}.priv", text))


_TEXT = '''# The names of columns are those of the file; no value of a cell stands here. Bounds and words are public,
# and part of the promise: take them from what everybody may know, never from these data. Write them for {blank}.
spec {table}
"""How many records are there?"""

variables:
{comments}  input {table} in table({attributes})
  output total

loss:
  # what an error costs; other questions: privspec help functions
  E[ (total - count({table}))^2 ]

privacy:
  # where a person may have several records: one person with at most 5 records, and a column that is an id
  total is 1-{measure} wrt {table}, adding or removing one record
'''


def table_name(path: Path) -> str:
    """What a file's table is called: the name of the file, made one word."""
    from privspec.language.layout import SECTIONS

    stem = re.sub(r"\W+", "_", path.name.partition(".")[0], flags=re.ASCII).strip("_").lower()
    return stem if re.match("[a-z]", stem) and len(stem) > 1 and stem not in (*SECTIONS, "spec") else f"table_{stem}"


def _writable(name: str) -> bool:
    return bool(name.strip()) and name.isprintable() and '"' not in name and "\N{REPLACEMENT CHARACTER}" not in name


def _of_kind(name: str, kind: Kind) -> str:
    """What to type for a column; whole numbers may say whose a record is, where the name does."""
    owner = kind is Kind.WHOLE and re.search(r"(?i:\bid\b|_id\b)|[a-z]I[dD]\b", name)
    return f"{kind.value}; or id, if it says whose a record is" if owner else kind.value


# --- text files -----------------------------------------------------------------------------------


def _of_text(path: Path, header: bool) -> Columns:
    separator = _separator(path)
    rows = rows_of_text(table_name(path), path, separator=separator)
    first = next(rows, None)
    if first is None:
        refuse_unreadable(table_name(path), "a table: it is empty")
    names = tuple(first) if header else tuple(f"column_{place}" for place in range(1, len(first) + 1))
    if header:
        _check_names(names)
    seen = [*islice(rows, LOOKED_AT)] if header else [first, *islice(rows, LOOKED_AT - 1)]
    kinds = tuple(_kind([row[place] for row in seen if place < len(row)]) for place in range(len(names)))
    return Columns(names, kinds, tuple(_remarks(path, separator, header)))


def _separator(path: Path) -> str:
    """What stands between names in the first line, if it is not what the suffix says."""
    usual = separator_of(path)
    first = next(rows_of_text(table_name(path), path), [])
    if len(first) > 1:
        return usual
    return next((sign for sign in SEPARATORS if sign in "".join(first)), usual)


def _remarks(path: Path, separator: str, header: bool) -> Iterator[str]:
    if separator != separator_of(path):
        yield (
            f"the file has {SEPARATORS[separator]} between its columns: run it, and look at its data, with "
            f"--separator {written(separator)}"
        )
    if not header:
        yield "columns are in the order of the file: name them as you like, and run with --no-header"


def _check_names(names: Sequence[str]) -> None:
    """A first line that is a record is quoted nowhere.

    Raises: UsageError PS0734.
    """
    told = [name.strip() for name in names if name.strip()]
    if any(_form(name) not in (Kind.WORD, Kind.TRUTH) or len(name) > LONGEST for name in told):
        why = "a number, a day or a long text stands in it"
    elif len({*told}) < len(told):
        why = "two of its cells are alike"
    elif not told:
        why = "it is blank"
    else:
        return
    raise _no_names(why)


def _no_names(why: str) -> UsageError:
    return UsageError.of(
        "PS0734",
        f"the first line does not read as names of columns: {why}",
        help="give each column a name of its own there; if the first line is a record, say --no-header",
    )


def _form(cell: str) -> Kind:
    return next((kind for kind, form in _FORMS if form.fullmatch(cell.strip())), Kind.WORD)


def _kind(cells: Sequence[str]) -> Kind:
    """What nearly all of some cells are."""
    forms = Counter(_form(cell) for cell in cells if cell.strip())
    most = MOST * forms.total()
    if not most:
        return Kind.OTHER
    for kind, also in ((Kind.WHOLE, 0), (Kind.NUMBER, forms[Kind.WHOLE]), (Kind.COMMA, forms[Kind.WHOLE])):
        if forms[kind] + also >= most and forms[kind]:
            return kind
    return next((kind for kind in (Kind.DAY, Kind.OTHER_DAY, Kind.TRUTH) if forms[kind] >= most), Kind.WORD)


# --- Parquet --------------------------------------------------------------------------------------


def _of_parquet(path: Path) -> Columns:
    """By the schema in a file's footer alone."""
    import polars as pl

    try:
        schema = pl.read_parquet_schema(path)
    except Exception:  # noqa: BLE001 - whatever a broken file makes a library say may quote it
        refuse_unreadable(table_name(path), "Parquet")
    return Columns(tuple(schema), tuple(map(_of_type, schema.values())))


def _of_type(kind: Any) -> Kind:
    import polars as pl

    if kind.is_integer():
        return Kind.WHOLE
    if kind.is_numeric():
        return Kind.NUMBER
    if kind == pl.Boolean:
        return Kind.TRUTH
    if kind == pl.Date or kind == pl.Datetime:
        return Kind.DAY
    return Kind.WORD if kind in (pl.String, pl.Categorical, pl.Enum) else Kind.OTHER
