"""Who is asked about records: a database, Parquet files where they lie, Spark, or a frame that is read whole.

`plan.run({"people": frame}, ledger=...)` takes a frame of the user's own Spark session: the same SELECT, in Spark's
words, and the same whole numbers back. Spark is asked to be strict about nothing but what the SELECT says: texts are
compared by their signs, sums of long steps are decimals of 38 digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from privspec.core.diagnostics import DataError, UsageError
from privspec.core.records import dataclass
from privspec.execute import warehouse
from privspec.execute.fingerprint import ADDED, FAR, LAST_BYTES, MISSING, SECOND, WRAP, Seeds, Sketches
from privspec.execute.keeper import refuse_unreadable
from privspec.execute.sources import AS_USUAL, Folder, TextFiles, is_text, load_frame, with_folder
from privspec.execute.statistic import BATCH, Groups, OnMisfit, Statistic, groups_of_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_KINDS = {
    "string": "VARCHAR",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
}
_DECIMAL = re.compile(r"decimal(\(\d+,\d+\))")
VIEW = "privspec_records"


@dataclass(frozen=True)
class OfSpark(warehouse.Records):
    """A frame of Spark."""

    name: str
    frame: DataFrame

    @cached_property
    def kinds(self) -> Mapping[str, str]:
        """What each column holds, by the names that DuckDB has for it; others by Spark's own, which none reads."""
        found = {}
        for column, kind in self.frame.dtypes:
            digits = _DECIMAL.fullmatch(kind)
            found[column] = _KINDS.get(kind, kind) if digits is None else f"DECIMAL{digits[1]}"
        return found

    @property
    def names(self) -> list[str]:
        return list(self.kinds)

    def groups(self, asked: Statistic, told: OnMisfit) -> Iterator[Groups]:
        try:
            text = self._text(asked)
        except warehouse.RowsNeededError:
            for part in self._rows(asked.columns):
                yield from groups_of_frame(asked, load_frame(self.name, part), told)
            return
        with _said(self.name):
            found = self.frame.sparkSession.sql(text, **{VIEW: self.frame})
            rows = found.toLocalIterator()
            while batch := list(islice(rows, BATCH)):
                yield warehouse.groups_of_rows(asked, found.columns, batch, told)

    def _text(self, asked: Statistic) -> str:
        import sqlglot

        plain = warehouse.Select.of(asked, self.kinds, _HERE).on(VIEW)
        text = str(sqlglot.transpile(plain, "duckdb", "spark")[0])
        return text.replace(f"`{VIEW}`", f"{{{VIEW}}}")

    def _rows(self, names: Sequence[str]) -> Iterator[Mapping[str, list[Any]]]:
        """Its rows, some after others, each cell as it would stand in memory."""
        quoted = ["`" + name.replace("`", "``") + "`" for name in names]
        with _said(self.name):
            rows = self.frame.select(*quoted).toLocalIterator()
            while batch := list(islice(rows, BATCH)):
                yield {name: [row[i] for row in batch] for i, name in enumerate(names)}

    def sketches(self, seeds: Seeds) -> Iterator[Sketches]:
        own = Sketches(seeds)
        text = sketch_of(dict(self.frame.dtypes), f"{{{VIEW}}}", seeds)
        with _said(self.name):
            rows = self.frame.sparkSession.sql(text, **{VIEW: self.frame}).collect() if text else ()
        for column, place, cells, total, *steps in rows:
            sketch = own.column(self.names[column])
            sketch.counts[place] += cells
            sketch.sums[place] += np.uint64(int(total) % WRAP)
            sketch.step(*(int(one) for one in steps)) if steps[0] else None
        yield own

    def select(self, asked: Statistic) -> list[warehouse.Select]:
        raise UsageError.of("PS0721", "what Spark is asked is printed for a table of a database: --sql --dialect spark")


_HERE = "data.records"
_NUMBER = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"
_DAY = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
_TIME = "[ T][0-9][0-9]:[0-9][0-9](:[0-5][0-9]([.][0-9]+)?)?(Z|[+]00:?00)?"


def sketch_of(kinds: Mapping[str, str], source: str, seeds: Seeds) -> str:
    """What Spark is asked for the sketches of a table's columns, those of lists and structures left out.

    Its rows: the number of a column, a place, how many cells there are, their sum; and of how many the whole numbers
    were looked at, the least, the greatest, their sum and that of their squares.
    """
    cells = [
        (place, *found)
        for place, (column, kind) in enumerate(kinds.items())
        if (found := _sketched(column, kind, seeds))
    ]
    if not cells:
        return ""
    hashed = ", ".join(f"{one} AS h{place}, {step} AS s{place}" for place, one, step in cells)
    each = ", ".join(
        f"struct({place} AS c, h{place} AS h, CAST(s{place} AS DECIMAL(38, 0)) AS s)" for place, _, _ in cells
    )
    return (
        f"SELECT k.c, shiftrightunsigned(k.h, 56), count(*), "
        f"sum(CAST(shiftrightunsigned(k.h, {56 - ADDED}) & {2**ADDED - 1} AS DECIMAL(38, 0))), "
        f"count(k.s), min(k.s), max(k.s), sum(k.s), sum(CAST(k.s * k.s AS DECIMAL(38, 0)))\n"
        f"FROM (SELECT explode(array({each})) AS k FROM (SELECT {hashed} FROM {source}))\n"
        "WHERE k.h IS NOT NULL GROUP BY 1, 2"
    )


def _sketched(column: str, kind: str, seeds: Seeds) -> tuple[str, str] | None:
    """The hash of a cell of a column, and the whole number in it."""
    quoted = "`" + column.replace("`", "``") + "`"
    if kind in ("tinyint", "smallint", "int", "bigint", "double", "boolean"):
        return _of_number(f"CAST({quoted} AS DOUBLE)", seeds)
    if kind == "float" or _DECIMAL.match(kind):
        return _of_number(f"CAST(CAST({quoted} AS STRING) AS DOUBLE)", seeds)
    if kind == "date":
        return _of_moment(f"unix_date({quoted}) * {86_400 * SECOND}L", seeds)
    if kind == "timestamp":
        return _of_moment(f"unix_micros({quoted})", seeds)
    if kind == "timestamp_ntz":
        return _of_moment(_since(quoted), seeds)
    return _of_text(quoted, seeds) if kind == "string" or kind.startswith(("char", "varchar")) else None


def _of_number(number: str, seeds: Seeds) -> tuple[str, str]:
    """`+ 0.0D`: zero has one sign."""
    near = f"abs({number}) < {FAR}"
    whole = (
        f"CASE WHEN {near} AND CAST(CAST({number} AS BIGINT) AS DOUBLE) = {number} THEN CAST({number} AS BIGINT) END"
    )
    known = f"{number} IS NOT NULL AND NOT isnan({number})"
    return f"CASE WHEN {known} THEN xxhash64({seeds.secrets[0]}L, {number} + 0.0D) END", whole


def _of_moment(ticks: str, seeds: Seeds) -> tuple[str, str]:
    """Microseconds since 1970."""
    whole = f"CASE WHEN {ticks} % {SECOND} = 0 THEN ({ticks}) DIV {SECOND} END"
    return f"CASE WHEN {ticks} IS NOT NULL THEN xxhash64({seeds.secrets[1]}L, {ticks}) END", whole


def _since(moment: str) -> str:
    return f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {moment})"


def _of_text(quoted: str, seeds: Seeds) -> tuple[str, str]:
    text = f"trim(regexp_replace({quoted}, '[ \t\r\n]+', ' '))"
    numeric, truth = f"{text} RLIKE '{_NUMBER}'", f"lower({text}) IN ('true', 'false')"
    endless = f"lower({text}) RLIKE '^[+-]?inf(inity)?$'"
    number, number_whole = _of_number(f"CAST({text} AS DOUBLE)", seeds)
    said, said_whole = _of_number(f"CAST(lower({text}) = 'true' AS DOUBLE)", seeds)
    beyond, _ = _of_number(f"CASE WHEN {text} LIKE '-%' THEN -1D ELSE 1D END * CAST('Infinity' AS DOUBLE)", seeds)
    dated = f"{text} RLIKE '^{_DAY}({_TIME})?$' AND {_since(f'try_cast({text} AS TIMESTAMP_NTZ)')} IS NOT NULL"
    moment, moment_whole = _of_moment(_since(f"try_cast({text} AS TIMESTAMP_NTZ)"), seeds)
    missing = f"lower({text}) IN ('', {', '.join(repr(word) for word in sorted(MISSING))})"
    end = f"substring(CAST({text} AS BINARY), -{LAST_BYTES}, {LAST_BYTES})"
    filled = f"concat({end}, CAST(repeat(chr(0), pmod(-least(octet_length({text}), {LAST_BYTES}), 8)) AS BINARY))"
    last = f"regexp_extract({text}, '([0-9]+)$', 1)"
    hashed = (
        f"CASE WHEN {text} IS NULL OR {missing} THEN NULL WHEN {numeric} THEN {number} WHEN {truth} THEN {said} "
        f"WHEN {endless} THEN {beyond} WHEN {dated} THEN {moment} ELSE xxhash64({seeds.secrets[2]}L, {filled}) END"
    )
    whole = (
        f"CASE WHEN {text} IS NULL OR {missing} OR {endless} THEN NULL WHEN {numeric} THEN {number_whole} "
        f"WHEN {truth} THEN {said_whole} WHEN {dated} THEN {moment_whole} "
        f"WHEN length({last}) BETWEEN 1 AND 12 THEN CAST({last} AS BIGINT) END"
    )
    return hashed, whole


@contextmanager
def _said(name: str) -> Iterator[None]:
    """Says PS0803 where Spark fails, without its words, which may quote the data."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError):
        refuse_unreadable(name, "a table of columns")


def records_of(name: str, source: Any, texts: TextFiles = AS_USUAL, columns: Sequence[str] = ()) -> warehouse.Records:
    """The records of a path, a table of a database, a folder or a frame.

    Args: columns, the names of a text file that has no header, in their order.
    Raises: DataError (PS0803).
    """
    if isinstance(source, warehouse.Table):
        return warehouse.OfTable(name, source)
    if warehouse.in_spark(source):
        return OfSpark(name, source)
    source = with_folder(source)
    if isinstance(source, Folder):
        return warehouse.OfParquet(name, source)
    frame, text = load_frame(name, source, texts, columns), isinstance(source, Path) and is_text(source)
    return warehouse.OfFrame(name, frame, not text, source if isinstance(source, Path) and not text else None)


@contextmanager
def opened_meanwhile(inputs: Mapping[str, Any]) -> Iterator[None]:
    """Parquet files and their database are opened while something else is done, so that they are ready after it.

    Of the files it is read what columns they have, and no row. What is wrong with them is said when they are read.
    """
    paths = {name: Path(source) for name, source in inputs.items() if isinstance(source, str | Path)}
    parquet = {name: path for name, path in paths.items() if path.suffix.lower() == ".parquet" or path.is_dir()}

    def opened() -> None:
        for name, path in parquet.items():
            with suppress(DataError):
                _ = records_of(name, Folder.of(name, path) if path.is_dir() else path).names

    thread = Thread(target=opened)
    if parquet:
        thread.start()
    try:
        yield
    finally:
        if parquet:
            thread.join()
