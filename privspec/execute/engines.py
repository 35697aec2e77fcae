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

from privspec.core.diagnostics import DataError, UsageError
from privspec.core.records import dataclass
from privspec.execute import warehouse
from privspec.execute.keeper import refuse_unreadable
from privspec.execute.sources import AS_USUAL, Folder, TextFiles, is_text, load_frame
from privspec.execute.statistic import BATCH, Groups, Statistic, Told, groups_of_frame

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


def whereabouts(frame: DataFrame) -> str:
    """The files that a frame is read from, whatever is chosen of them; without files, how it is made."""
    files: list[str] = sorted(frame.inputFiles())
    return "\n".join(files) or str(frame.semanticHash())


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

    def groups(self, asked: Statistic, told: Told) -> Iterator[Groups]:
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

    def select(self, asked: Statistic) -> list[warehouse.Select]:
        raise UsageError.of("PS0721", "what Spark is asked is printed for a table of a database: --sql --dialect spark")


_HERE = "data.records"


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
    if isinstance(source, Path) and source.suffix.lower() == ".parquet":
        source = Folder((source,), source.parent)
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
