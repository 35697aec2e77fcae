"""Records where they are: tables of a DuckDB database, Parquet files and folders of them, frames in memory.

A statistic is asked of the database as one SELECT (`select_of`, which `privspec data --sql` prints) that gives whole
numbers back; columns whose texts would have to be read as numbers come row by row instead, and are read by the one rule
for texts. The database is opened read-only beside an empty one that lives in memory: what it calls its own functions,
settings or files has no say, and a view that reads files elsewhere is refused. The `warehouse` extra brings DuckDB;
without it polars reads Parquet, with the same result.
"""

from __future__ import annotations

import atexit
import os
import re
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from functools import cached_property, lru_cache
from itertools import islice
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, SupportsFloat, TypeAlias

import numpy as np

from privspec.core.diagnostics import DataError, UsageError
from privspec.core.records import dataclass
from privspec.execute import sources
from privspec.execute.cells import ID_AS_IT_STANDS, Clock
from privspec.execute.fingerprint import COUNT, Seeds, Sketches
from privspec.execute.keeper import THOUSAND, refuse, refuse_unreadable, slip_of_header
from privspec.execute.statistic import (
    BATCH,
    Attribute,
    Coded,
    Groups,
    OnMisfit,
    Statistic,
    Tally,
    below_of,
    beyond,
    groups_of_file,
    groups_of_frame,
)
from privspec.execute.views import UnknownViewError, Views
from privspec.kernel.derived import Derived

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import duckdb
    import polars as pl


@dataclass(frozen=True, slots=True)
class Select:
    """A SELECT as DuckDB is asked, one that other databases know as well, and the words in both that say of what."""

    text: str
    plain: str
    source: str

    @classmethod
    def of(cls, asked: Statistic, kinds: Mapping[str, str], source: str) -> Select:
        """Of a statistic of records that stand there.

        Raises: DataError PS0803 if a column holds neither numbers nor words; RowsNeededError.
        """
        return cls(select_of(asked, kinds, source), select_of(asked, kinds, source, plain=True), source)

    def on(self, table: str) -> str:
        """The same of a table of that name, in words that other databases know: they compare texts by their signs."""
        return self.plain.replace(self.source, name_of(table)).replace(" COLLATE C AS", " AS")


class Records(ABC):
    """A table whose rows are records in any order."""

    name: str
    public = True
    """Whether the names of its columns are no data: the first line of a text file may be."""

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Its columns."""

    @abstractmethod
    def groups(self, asked: Statistic, told: OnMisfit) -> Iterator[Groups]:
        """The groups of a statistic, some after others.

        Args: told, of each cell of a column that is added up (by its place) that is no number, and how often.
        Raises: DataError (PS0803).
        """

    def parts(self, asked: Statistic, told: OnMisfit) -> Iterator[Iterator[Groups]]:
        """The same, all records of a person in one of several parts where they are too many to be held at once."""
        yield self.groups(asked, told)

    @abstractmethod
    def sketches(self, seeds: Seeds) -> Iterator[Sketches]:
        """Of its parts, each a file of a folder: of all columns that can be read, whatever a plan reads."""

    def select(self, asked: Statistic) -> list[Select]:
        """What a database is asked.

        Raises: UsageError PS0721 where no database is asked.
        """
        raise UsageError.of(
            "PS0721",
            f"no database is asked for the data for {self.name}",
            help="--sql is for tables of a database, written DATABASE.duckdb::TABLE, and for Parquet",
        )

    def remarks(self, names: Sequence[str]) -> Iterator[str]:
        """What the keeper should know of these columns, whatever is in them."""
        return iter(())

    def check(self, names: Sequence[str]) -> None:
        """Raises: DataError PS0804 if a column is missing."""
        missing = [name for name in names if name not in self.names]
        if not missing:
            return
        near = [(name, get_close_matches(name, self.names, 1)) for name in missing if self.public]
        where = "columns are found by their names" if self.public else "the first line names the columns"
        refuse(
            "PS0804",
            f"the data for {self.name} have no column {', '.join(missing)}",
            *(f"they have a column {close[0]}: is that {name}?" for name, close in near if close),
            help=(None if self.public else slip_of_header(names, self.names)) or f"{where}: {', '.join(names)}",
        )


def in_spark(source: Any) -> bool:
    """Whether it is a frame of Spark."""
    return type(source).__module__.startswith("pyspark.")


@dataclass(frozen=True)
class OfFrame(Records):
    """A frame that is read whole."""

    name: str
    frame: pl.LazyFrame
    public: bool = True
    file: Path | None = None

    @cached_property
    def names(self) -> list[str]:
        return sources.column_names(self.name, self.frame)

    def groups(self, asked: Statistic, told: OnMisfit) -> Iterator[Groups]:
        if self.file is None:
            return groups_of_frame(asked, self.frame, told)
        return _or_mended(asked, groups_of_file(asked, self.frame, told), [self.file], {}, told)

    def sketches(self, seeds: Seeds) -> Iterator[Sketches]:
        yield sketches_of_frame(self.name, self.frame, seeds, self.file)


def _or_mended(
    asked: Statistic, groups: Iterator[Groups], files: Sequence[Path], said: Mapping[str, str | None], told: OnMisfit
) -> Iterator[Groups]:
    """The groups, which fail at the first if at all: where bytes are no text an engine gives up the whole file."""
    try:
        first = list(islice(groups, 1))
    except DataError:
        first, groups = [], groups_of_frame(asked, sources.mended(asked.name, files, said).lazy(), told)
    yield from first
    yield from groups


def sketches_of_frame(
    name: str, frame: pl.LazyFrame, seeds: Seeds, source: Path | sources.Folder | None = None
) -> Sketches:
    """Of all columns of a frame that can be read, some rows after others; `source`, the files that it is made of."""

    def read(columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        return (part.to_dict() for part in sources.frames_of(name, frame.select(columns), BATCH))

    def mended(columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        def whole(held: Any) -> pl.DataFrame:
            return sources.collect(name, sources.load_frame(name, held).select(columns))

        yield sources.whatever_is_text(name, source, whole).to_dict()

    return _sketched(sources.column_names(name, frame), read, seeds, mended if source is not None else None)


_Read: TypeAlias = "Callable[[Sequence[str]], Iterator[Mapping[str, Any]]]"


def _sketched(columns: Sequence[str], read: _Read, seeds: Seeds, mended: _Read | None = None) -> Sketches:
    """Of columns that are read some rows after others; what cannot be read, which no plan needs, is left out.

    Args: mended, reads one column where bytes are no text.
    """
    own = Sketches(seeds)
    try:
        for part in read(columns) if columns else ():
            own.rows(part)
    except DataError:
        own = Sketches(seeds)
        if len(columns) > 1:
            for column in columns:
                own.join(_sketched([column], read, seeds, mended))
        elif mended is not None:
            own.join(_sketched(columns, mended, seeds))
    return own


# --- Parquet --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OfParquet(Records):
    """Files of Parquet; those whose columns are of other kinds are asked by themselves."""

    name: str
    folder: sources.Folder

    @cached_property
    def schemas(self) -> Mapping[Path, Mapping[str, Any]]:
        """The columns of each file, with what its folders say, and their kinds."""
        files, said = self.folder.files, self.folder.said
        with connection(self.name) as database:
            if database is not None and all(map(_asks, files)):
                return {file: _kinds(self.name, database, _parquet([file], said(file))) for file in files}
        with sources.unreadable_said(self.name):
            return {file: sources.parquet_frame([file], said(file)).collect_schema() for file in files}

    @cached_property
    def names(self) -> list[str]:
        """The columns that all files have."""
        first, *others = self.schemas.values()
        return [name for name in first if all(name in other for other in others)]

    def check(self, names: Sequence[str]) -> None:
        if len(self.folder.files) > 1:
            for file, schema in self.schemas.items():
                lacking = [name for name in names if name not in schema]
                if lacking and len(lacking) < len(names):
                    refuse("PS0804", f"{file.name} of the folder for {self.name} has no column {', '.join(lacking)}")
        super().check(names)

    def remarks(self, names: Sequence[str]) -> Iterator[str]:
        return self.folder.remarks(names)

    def _alike(self, asked: Statistic) -> list[list[Path]]:
        wanted, found = asked.columns, dict[tuple[Any, ...], list[Path]]()
        for file, schema in self.schemas.items():
            said = self.folder.said(file)
            key = tuple((schema[name], said.get(name, name)) for name in wanted)
            found.setdefault(key, []).append(file)
        return list(found.values())

    def _of_one_schema(self, files: Sequence[Path]) -> Iterator[list[Path]]:
        """Files that polars reads at once: what is one kind to the database may be several to it."""
        import polars as pl

        found = dict[tuple[Any, ...], list[Path]]()
        with sources.unreadable_said(self.name):
            for file in files:
                schema = pl.scan_parquet(file, glob=False).collect_schema()
                found.setdefault(tuple(schema.items()), []).append(file)
        yield from found.values()

    def _pushed(self, asked: Statistic, files: Sequence[Path], database: duckdb.DuckDBPyConnection) -> Select | None:
        """The SELECT over some files that are alike; None where it has to be rows."""
        if not all(map(_asks, files)):
            return None
        source = _parquet(files, self.folder.said(files[0]))
        known = all(map(_asks, self.folder.files))
        try:
            return Select.of(asked, self.schemas[files[0]] if known else _kinds(self.name, database, source), source)
        except RowsNeededError:
            return None

    def one_source(self) -> tuple[str, Mapping[str, Any]] | None:
        """All files as DuckDB reads them, and what their columns hold, where all hold the same."""
        files, kinds = self.folder.files, list(self.schemas.values())
        said = [self.folder.said(file) for file in files]
        with connection(self.name) as database:
            alike = all(one == kinds[0] for one in kinds) and not any(said) and all(map(_asks, files))
            return (_parquet(files, {}), kinds[0]) if database is not None and alike else None

    def groups(self, asked: Statistic, told: OnMisfit) -> Iterator[Groups]:
        with connection(self.name) as database:
            for files in self._alike(asked):
                query = None if database is None else self._pushed(asked, files, database)
                said = self.folder.said(files[0])
                if query is not None:
                    assert database is not None
                    yield from _or_mended(asked, _asked(asked, database, query.text, told), files, said, told)
                    continue
                for alike in self._of_one_schema(files):
                    with sources.unreadable_said(self.name):
                        frame = sources.parquet_frame(alike, said)
                    yield from _or_mended(asked, groups_of_file(asked, frame, told), alike, said, told)

    def sketches(self, seeds: Seeds) -> Iterator[Sketches]:
        with connection(self.name) as database:
            for file, schema in self.schemas.items():
                said = self.folder.said(file)
                own, rest = Sketches(seeds), list(schema)
                if database is not None and _asks(file):
                    source = _parquet([file], said)
                    rest = _counted(self.name, database, source, _kinds(self.name, database, source), own)
                frame = sources.parquet_frame([file], said).select(rest)
                own.join(sketches_of_frame(self.name, frame, seeds, sources.Folder((file,), self.folder.root)))
                yield own

    def select(self, asked: Statistic) -> list[Select]:
        with connection(self.name) as database:
            if database is None:
                refuse_missing()
            found = [self._pushed(asked, files, database) for files in self._alike(asked)]
        queries = [query for query in found if query is not None]
        return queries if len(queries) == len(found) else super().select(asked)


def _asks(file: Path) -> bool:
    """Whether DuckDB takes the name of a file as it stands."""
    return not set(str(file)) & set("*?[{")


def _parquet(files: Sequence[Path], said: Mapping[str, str | None]) -> str:
    """Files as DuckDB reads them, with the cells that their folders say where they have no such column."""
    found = f"read_parquet([{', '.join(text_of(str(file)) for file in files)}], hive_partitioning = false)"
    if not said:
        return found
    cells = (
        f"CAST({'NULL' if text is None else text_of(text)} AS VARCHAR) AS {name_of(key)}" for key, text in said.items()
    )
    # of columns that are there twice the first counts
    return f"(SELECT * FROM {found} CROSS JOIN (SELECT {', '.join(cells)}))"


# --- databases ------------------------------------------------------------------------------------

DATABASES = (".duckdb", ".ddb")


@dataclass(frozen=True, slots=True)
class Table(sources.Unordered):
    """A table or view of a DuckDB database."""

    path: Path
    schema: str
    table: str
    query: str = ""
    """What is asked in place of a table."""

    @classmethod
    def of(cls, name: str, path: Path, table: str) -> Table:
        """The table of that name; `schema.table` where it is in a schema of its own.

        Raises: DataError PS0802 if there is none; UsageError PS0819 without the extra.
        """
        if not path.is_file():
            refuse("PS0802", f"the database for {name} does not exist: {path}")
        with connection(name, path) as database:
            if database is None:
                refuse_missing()
            query = (
                "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'data' UNION ALL "
                "SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'data' AND NOT internal"
            )
            found = [(str(schema), str(found)) for schema, found in database.execute(query).fetchall()]
        named = {one: (schema, one) for schema, one in found if schema == "main"}
        named = {f"{schema}.{one}": (schema, one) for schema, one in found} | named
        if table in named:
            return cls(path, *named[table])
        if not table or not table.replace("_", "").replace(".", "").replace("-", "").isalnum():
            said = f"what stands after {sources.IN_DATABASE} is the name of a table or view, and no query"
            refuse("PS0802", said, help="make a view of the query in the database, and name that")
        close = get_close_matches(table, list(named), 1)
        listed = ", ".join(sorted(named)[:8])
        return refuse(
            "PS0802",
            f"the database for {name} has no table {table}",
            help=f"is {close[0]} meant?" if close else f"it has {listed}" if listed else "it has no tables",
        )

    @property
    def quoted(self) -> str:
        return f"({self.query})" if self.query else f"data.{name_of(self.schema)}.{name_of(self.table)}"

    def frame(self, name: str) -> pl.LazyFrame:
        """All of its rows: for what is no statistic of a table."""
        import polars as pl

        records = OfTable(name, self)
        parts = list(records.rows(records.names))
        return (pl.concat(parts) if parts else pl.DataFrame({one: [] for one in records.names})).lazy()


@dataclass(frozen=True)
class OfTable(Records):
    """A table of a database, opened to be read alone."""

    name: str
    table: Table

    @cached_property
    def kinds(self) -> Mapping[str, str]:
        with connection(self.name, self.table.path) as database:
            assert database is not None
            return _kinds(self.name, database, self.source)

    @cached_property
    def source(self) -> str:
        """What is asked: of a view it is what it is made of, which no row makes fail."""
        if self.table.query:
            return self.table.quoted
        with connection(self.name, self.table.path) as database:
            assert database is not None
            try:
                return Views(database).total(self.table.schema, self.table.table) or self.table.quoted
            except UnknownViewError:
                return refuse(
                    "PS0803",
                    f"the view {self.table.table} for {self.name} is made of what may fail at one of its rows",
                    help="make a table of it in the database:  CREATE TABLE ... AS SELECT * FROM ...",
                )

    @property
    def names(self) -> list[str]:
        return list(self.kinds)

    def groups(self, asked: Statistic, told: OnMisfit) -> Iterator[Groups]:
        try:
            query = select_of(asked, self.kinds, self.source)
        except RowsNeededError:
            yield from self._read(asked, told)
            return
        with connection(self.name, self.table.path) as database:
            assert database is not None
            yield from _asked(asked, database, query, told)

    def _read(self, asked: Statistic, told: OnMisfit, where: str = "") -> Iterator[Groups]:
        for part in self.rows(asked.columns, asked.person, asked.clocks, where):
            yield from groups_of_frame(asked, part.lazy(), told, small=True)

    def parts(self, asked: Statistic, told: OnMisfit) -> Iterator[Iterator[Groups]]:
        kind = "" if asked.person is None else self.kinds[asked.person]
        if asked.person is None or not (is_whole(kind) or is_text(kind)):
            yield self.groups(asked, told)
            return
        whose = name_of(asked.person)
        odd = "false" if is_whole(kind) else f"bool_or({odd_id(whose)})"
        with connection(self.name, self.table.path) as database:
            assert database is not None
            records, strange = row_of(self.name, database, f"SELECT count(*), {odd} FROM {self.source}")
        # ids that are written otherwise may be one person's
        bits = 0 if strange else max(-(-records // MOST_AT_ONCE) - 1, 0).bit_length()
        for part in range(2**bits):
            yield self._read(asked, told, f"\nWHERE hash({whose}) & {2**bits - 1} = {part}" if bits else "")

    def sketches(self, seeds: Seeds) -> Iterator[Sketches]:
        with connection(self.name, self.table.path) as database:
            assert database is not None
            own, rest = Sketches(seeds), list(self.kinds)
            if self.source == self.table.quoted:
                # what a view is made of would be computed for every column anew
                rest = _counted(self.name, database, self.source, self.kinds, own)

            def read(columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
                cells = (f"{_whole_cell(one, self.kinds[one])} AS {name_of(one)}" for one in columns)
                found = _frames(self.name, database, f"SELECT {', '.join(cells)} FROM {self.source}")
                return (part.to_dict() for part in found)

            own.join(_sketched(rest, read, seeds))
            yield own

    def _rows(
        self, names: Sequence[str], person: str | None = None, clocks: Mapping[str, Clock] = {}, where: str = ""
    ) -> str:
        cells = (
            f"{clocks[one].cell(MOMENTS[kind].format(name_of(one)))} AS {name_of(one)}"
            if one in clocks and (kind := self.kinds[one]) in MOMENTS
            else _cell(one, self.kinds[one], whole=one == person)
            for one in names
        )
        return f"SELECT {', '.join(cells)}\nFROM {self.source}{where}"

    def rows(
        self, names: Sequence[str], person: str | None = None, clocks: Mapping[str, Clock] = {}, where: str = ""
    ) -> Iterator[pl.DataFrame]:
        """Its rows, some after others, in columns that polars holds; those of some people.

        Moments in `clocks` are days or hours. Whose they are is whole or in text, whatever the kind.
        """
        with connection(self.name, self.table.path) as database:
            assert database is not None
            yield from _frames(self.name, database, self._rows(names, person, clocks, where))

    def select(self, asked: Statistic) -> list[Select]:
        try:
            return [Select.of(asked, self.kinds, self.source)]
        except RowsNeededError:
            why = "records are read person by person" if asked.person else "text stands where numbers are added up"
            rows = self._rows(asked.columns, asked.person, asked.clocks)
            said = f"-- {why}: all rows are read\n{rows}"
            return [Select(said, said, self.source)]


@contextmanager
def connection(
    name: str, path: Path | None = None, *, rows: bool = False
) -> Iterator[duckdb.DuckDBPyConnection | None]:
    """DuckDB with nothing but that database, as `data`, to be read; None where it is not installed.

    Args: rows, whether it gives rows, for which room is needed beside it.

    What does not fit into memory, as far as the process may use it, goes to a folder of the user's own that is taken
    away.
    Raises: DataError PS0802 if it cannot be opened.
    """
    try:
        import duckdb
    except ImportError:
        yield None
        return
    if path is None:
        # files are read by one instance, which takes as long to make as a small query
        with _of_files(_may_hold(), os.getpid()).cursor() as database:
            yield database
        return
    spilled = tempfile.TemporaryDirectory(prefix="privspec-", ignore_cleanup_errors=True)
    with spilled as folder, duckdb.connect(":memory:") as database:
        most = _may_hold()
        _set(database, folder, most // 3 if rows and most is not None else most)
        # whole numbers that lie close together are grouped by their places in a table, several times as fast; it takes
        # no more room than the database does
        bits = min(CLOSE, path.stat().st_size // 16).bit_length() - 1
        database.execute(f"SET perfect_ht_threshold = {max(bits, 12)}")
        try:
            database.execute(f"ATTACH {text_of(str(path))} AS data (READ_ONLY, TYPE duckdb)")
        except duckdb.Error:
            refuse(
                "PS0802",
                f"the database for {name} cannot be opened: {path}",
                help="it has to be a DuckDB database that no other program has open for writing",
            )
        database.execute("SET enable_external_access = false")
        database.execute("SET lock_configuration = true")
        yield database


@lru_cache(maxsize=4)
def _of_files(most: int | None, _process: int) -> duckdb.DuckDBPyConnection:
    import duckdb

    folder = tempfile.TemporaryDirectory(prefix="privspec-", ignore_cleanup_errors=True)
    database = duckdb.connect(":memory:")
    _set(database, folder.name, most)
    database.execute("SET parquet_metadata_cache = true")
    database.execute("SET lock_configuration = true")
    atexit.register(folder.cleanup)
    return database


def _set(database: duckdb.DuckDBPyConnection, folder: str, most: int | None) -> None:
    database.execute(f"SET temp_directory = {text_of(folder)}")
    for setting in ("enable_progress_bar", "autoinstall_known_extensions", "autoload_known_extensions"):
        database.execute(f"SET {setting} = false")
    if most is not None:
        database.execute(f"SET memory_limit = '{most} bytes'")


def _may_hold() -> int | None:
    """Bytes that a database may hold where the process is limited (`ulimit`): four fifths, as it takes of a machine."""
    if resource is None:
        return None
    found = [resource.getrlimit(one)[0] for one in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    limited = [limit for limit in found if limit != resource.RLIM_INFINITY]
    return min(limited) * 4 // 5 if limited else None


@contextmanager
def _said(name: str) -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.Error:
        refuse_unreadable(name, "a table of columns")


def refuse_missing() -> NoReturn:
    """Raises: UsageError PS0819: without DuckDB a database cannot be read."""
    raise UsageError.of(
        "PS0819",
        "tables of a database are read by DuckDB, which is not installed",
        help="pip install 'privspec[warehouse]'",
    )


# --- SQL ------------------------------------------------------------------------------------------


EXACT_DIGITS = 15
"""Whole numbers of so many digits, and their quotient by a power of ten, are rounded once."""


def odd_id(cell: str) -> str:
    """When a text is not the one text of its cell."""
    return f"NOT regexp_matches(CAST({cell} AS VARCHAR), {text_of(ID_AS_IT_STANDS)})"


def row_of(name: str, database: duckdb.DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    """The first row that is asked for, or none of it.

    Raises: DataError (PS0803).
    """
    with _said(name):
        return tuple(database.execute(query).fetchone() or ())


def is_whole(kind: str) -> bool:
    """Whether a column holds whole numbers of up to 64 bits."""
    return _WHOLE.fullmatch(kind) is not None


class RowsNeededError(Exception):
    """A column is of a kind of which the database gives rows."""


_WHOLE = re.compile(r"U?(TINYINT|SMALLINT|INTEGER|BIGINT)")
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*\d+\)")


def is_text(kind: str) -> bool:
    """Whether a column holds texts."""
    return kind == "VARCHAR" or (kind.startswith("ENUM(") and kind.endswith(")"))


def _kinds(name: str, database: duckdb.DuckDBPyConnection, source: str) -> dict[str, str]:
    """What each column holds, by the database's names of types."""
    with _said(name):
        return {str(row[0]): str(row[1]) for row in database.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}


def _cell(column: str, kind: str, *, whole: bool = False) -> str:
    """A column as polars is to hold it: what has no counterpart there as text; `whole`: so is all else but lists."""
    quoted = name_of(column)
    opaque = whole and not kind.endswith((")", "]")) and kind not in _HELD and not is_whole(kind)
    if kind in ("HUGEINT", "UHUGEINT", "BIGNUM") or is_text(kind) or opaque:
        return f"CAST({quoted} AS VARCHAR) AS {quoted}"
    return quoted


_HELD = ("DOUBLE", "FLOAT", "BOOLEAN", "BLOB", "DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")
"""Kinds of which there is one text (`cells`), whatever the database would write."""


MOST_AT_ONCE = 2**25
"""Records of persons that are held at once, where a database can give those of some persons after those of others."""


FEW = 2**12
"""Different cells of a column that the database counts."""
CLOSE = 2**22
"""Whole numbers within so many are counted there, too: persons' numbers."""


def _counted(
    name: str, database: duckdb.DuckDBPyConnection, source: str, kinds: Mapping[str, str], own: Sketches
) -> list[str]:
    """The columns of a table that are left when those have been counted that hold few different cells."""
    cells = {column: _whole_cell(column, kind) for column, kind in kinds.items()}
    if COUNT in cells:
        # cells are to be counted row by row
        return list(cells)
    distinct = ", ".join(f"approx_count_distinct({cell})" for cell in cells.values())
    whole = (is_whole(kind) for kind in kinds.values())
    spans = ", ".join(
        f"max({c})::HUGEINT - min({c})" if w else "max(NULL)" for c, w in zip(cells.values(), whole, strict=True)
    )
    left = []
    try:
        with _said(name):
            (found,) = database.execute(f"SELECT {distinct} FROM (SELECT * FROM {source} LIMIT {16 * FEW})").fetchall()
            (wide,) = database.execute(f"SELECT {spans} FROM {source}").fetchall()
    except DataError:
        return list(cells)
    for (column, cell), count, span in zip(cells.items(), found, wide, strict=True):
        part = Sketches(own.seeds)
        with suppress(DataError):
            if count <= FEW or (span is not None and span < CLOSE):
                query = f"SELECT {cell} AS cell, count(*) AS times FROM {source} GROUP BY 1"
                for frame in _frames(name, database, query):
                    part.add(column, frame["cell"], frame["times"].to_numpy())
                own.join(part)
                continue
        left.append(column)
    return left


def _whole_cell(column: str, kind: str) -> str:
    """A column with every cell as it is, in a kind that polars knows."""
    quoted = name_of(column)
    nested = kind.startswith("STRUCT(") or kind.endswith("]")
    plain = _WHOLE.fullmatch(kind) or _DECIMAL.fullmatch(kind) or kind in _HELD or kind.startswith("TIMESTAMP")
    return quoted if plain or nested else f"CAST({quoted} AS VARCHAR) COLLATE C"


def _frames(name: str, database: duckdb.DuckDBPyConnection, query: str) -> Iterator[pl.DataFrame]:
    """The rows of a query, some after others.

    Raises: DataError (PS0803).
    """
    import polars as pl

    with _said(name), sources.unreadable_said(name):
        for batch in database.sql(query).to_arrow_reader(BATCH):
            found = pl.from_arrow(batch)
            assert isinstance(found, pl.DataFrame)
            yield found


def double_of(column: str, kind: str) -> str | None:
    """A column as numbers of 64 bits, each the nearest; None of what holds no numbers."""
    quoted = name_of(column)
    if _WHOLE.fullmatch(kind) or kind == "BOOLEAN":
        return f"CAST({quoted} AS DOUBLE)"
    if kind in ("DOUBLE", "FLOAT"):
        return quoted if kind == "DOUBLE" else f"CAST({quoted} AS DOUBLE)"
    digits = _DECIMAL.fullmatch(kind)
    if digits is not None and int(digits[1]) <= EXACT_DIGITS:
        return f"CAST({quoted} AS DOUBLE)"
    if digits is not None or kind in ("HUGEINT", "UHUGEINT"):
        # by their digits: what lies on the way would be rounded twice
        return f"CAST(CAST({quoted} AS VARCHAR) AS DOUBLE)"
    return None


MOMENTS = {
    **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), "{}"),
    "TIMESTAMP WITH TIME ZONE": "({} AT TIME ZONE 'UTC')",
}
"""Kinds of columns that hold days or moments, and what the day is taken of."""


def _key(one: Attribute, kind: str) -> str:
    """The key of a column of words or of whole numbers."""
    quoted, number = name_of(one.name), double_of(one.name, kind)
    if one.clock is not None and kind in MOMENTS:
        return one.clock.sql(MOMENTS[kind].format(quoted))
    if number is None:
        # by its signs, whatever order or case the table compares them by
        return f"CAST({quoted} AS VARCHAR) COLLATE C"
    if one.values or kind == "BOOLEAN":
        # zero has one text, whichever of its two signs stands there
        zero = f"CASE WHEN {number} = 0e0 THEN 0e0 ELSE {number} END"
        return zero if _DECIMAL.fullmatch(kind) or kind in ("FLOAT", "DOUBLE") else quoted
    if _WHOLE.fullmatch(kind):
        # `least` and `greatest` would take a number for what is missing
        low, high = (f"WHEN {quoted} {sign} THEN" for sign in (f"< {one.lower}", f"> {one.upper}"))
        return f"CASE {low} {one.lower - 1} {high} {one.upper + 1} ELSE {quoted} END"
    below, above = map(real_of, one.beyond)
    last = real_of(one.upper - 0.25)
    none = f"WHEN isnan({number}) THEN NULL " if kind in ("DOUBLE", "FLOAT") else ""
    low, high = map(real_of, (one.lower, one.upper))
    ends = f"CASE {none}WHEN {number} < {low} THEN {below} WHEN {number} > {high} THEN {above}\n"
    if not one.between:
        return f"{ends}      ELSE {number} END"
    return (
        f"{ends}      WHEN {number} = floor({number}) THEN {number}\n"
        f"      WHEN floor({number} + 0.5e0) >= {real_of(one.upper)} THEN {last}"
        f" ELSE floor({number} + 0.5e0) + 0.25e0 END"
    )


def select_of(asked: Statistic, kinds: Mapping[str, str], source: str, *, plain: bool = False) -> str:
    """One SELECT that asks a statistic of a table: its rows are the groups, and all its numbers are whole.

    Args: plain, whether in words that other databases than DuckDB know, few of which have sums of more than 64 bits.
    Raises: DataError PS0803 if a column holds neither numbers nor words.
    """
    numbers, cells, found = list[str](), list[str](), ["count(*) AS records"]
    source, kinds = _with_computed(asked, kinds, source)
    sole = asked.attributes[asked.added[0]] if len(asked.added) == 1 and not plain else None
    inside = sole is not None and asked.of(sole.name) is None and _top(sole, asked.steps) == asked.steps
    if asked.person is not None or "BLOB" in (kinds[one.name] for one in asked.attributes):
        raise RowsNeededError
    for one in asked.attributes:
        if one.clock is not None and kinds[one.name] in MOMENTS:
            continue
        if not is_text(kinds[one.name]) and double_of(one.name, kinds[one.name]) is None:
            sources.refuse_kind(one.name, asked.name)
    for i, one in enumerate(asked.attributes):
        kind, follows = kinds[one.name], asked.of(one.name) is not None
        if follows:
            numbers.append(f"{name_of(beyond(one.name))} AS beyond_{i}")
            cells.append(f"beyond_{i}")
            found.append(f"sum(CAST(beyond_{i} AS INTEGER)) AS tally_{i}_0")
        if not one.measured:
            numbers.append(f"{_key(one, kind)} AS key_{i}")
            cells.append(f"key_{i}")
            continue
        number = double_of(one.name, kind)
        if number is None:
            raise RowsNeededError
        low, high = one.ends
        missing = f"x_{i} IS NULL OR isnan(x_{i})" if kind in ("DOUBLE", "FLOAT") else f"x_{i} IS NULL"
        numbers.append(f"{number} AS x_{i}")
        # what is missing is in groups of its own, and its steps are not looked at
        cells += [f"{missing if one.shared else _side(one, missing, i)} AS key_{i}", f"x_{i}"]
        if one.shared:
            cells.append(f"{_steps(one, asked.steps, i, inside=inside)} AS steps_{i}")
        tests = [f"x_{i} < {real_of(low)}", f"x_{i} > {real_of(high)}"]
        if high >= THOUSAND:
            tests += [f"x_{i} <> 0e0", f"x_{i} <> 0e0 AND abs(x_{i}) <= {real_of(high / THOUSAND)}"]
        if not follows:
            found += [f"sum(CAST({test} AS INTEGER)) AS tally_{i}_{j}" for j, test in enumerate(tests)]
    for j, some in enumerate(asked.sets):
        least = f"steps_{some[0]}" if len(some) == 1 else f"least({', '.join(f'steps_{i}' for i in some)})"
        least = f"CAST({least} AS DECIMAL(38, 0))" if plain and asked.steps >= 2**31 else least
        top = f"{asked.steps} * tally_{some[0]}_1 + coalesce(" if inside else ""
        found.append(f"{top}sum({least}){', 0)' if top else ''} AS sum_{j}")
    keys = ", ".join(f"key_{i}" for i in range(len(asked.attributes)))
    return (
        f"WITH numbers AS (\n  SELECT {_listed(numbers)}\n  FROM {source}\n),\n"
        f"cells AS (\n  SELECT {_listed(cells)}\n  FROM numbers\n)\n"
        f"SELECT {_listed([*keys.split(', '), *found])}\nFROM cells\nGROUP BY {keys}"
    )


def _with_computed(asked: Statistic, kinds: Mapping[str, str], source: str) -> tuple[str, Mapping[str, str]]:
    """Records with the columns that follow from numbers, and what each column holds.

    Raises: RowsNeededError where numbers are written as texts.
    """
    columns, known = list[str](), dict(kinds)
    for one in asked.computed:
        doubles = {}
        for column in one.columns:
            number = double_of(column.name, kinds[column.name])
            if number is None:
                raise RowsNeededError
            doubles[column.name] = number
        columns.append(f"{computed(one, doubles)} AS {name_of(one.name)}")
        columns.append(f"{_outside(one, doubles)} AS {name_of(beyond(one.name))}")
        known[one.name] = "VARCHAR" if one.cuts else "DOUBLE"
    if not columns:
        return source, kinds
    kept = [name_of(name) for name in kinds if name in asked.columns and asked.of(name) is None]
    return f"(SELECT {', '.join([*kept, *columns])} FROM {source})", known


def _outside(one: Derived, doubles: Mapping[str, str]) -> str:
    """Whether something that a column follows from lies beyond its ends."""
    ends = {column.name: " AND ".join(map(real_of, map(float, column.ends))) for column in one.columns}
    return f"NOT ({' AND '.join(f'{doubles[name]} BETWEEN {between}' for name, between in ends.items())})"


def computed(one: Derived, doubles: Mapping[str, str]) -> str:
    """What a column holds that follows from others; nothing where one of these is missing."""
    assert one.formula is not None
    inside = {}
    for column in one.columns:
        x = doubles[column.name]
        inside[column.name] = clipped(x, column.ends, "" if column.between else f"floor({x} + 0.5e0)")
    found = one.formula.fold(
        inside.__getitem__,
        lambda number: f"CAST({real_of(float(number))} AS DOUBLE)",
        _combined,
        lambda base, exponent, size: f"({' * '.join([f'abs({base})' if size else base] * exponent)})",
    )
    if one.cuts:
        sides = zip(below_of(one.cuts), one.labels, strict=False)
        classes = " ".join(f"WHEN {found} < {real_of(value)} THEN {text_of(label)}" for value, label in sides)
        found = f"CASE {classes} ELSE {text_of(one.labels[-1])} END"
    missing = " OR ".join(f"{x} IS NULL OR isnan({x})" for x in doubles.values())
    return f"CASE WHEN {missing} THEN NULL ELSE {found} END"


def clipped(x: str, ends: Iterable[SupportsFloat], between: str = "") -> str:
    """A number that is moved between two ends; what it is `between` them, if not itself."""
    low, high = (real_of(float(end)) for end in ends)
    return f"(CASE WHEN {x} < {low} THEN {low} WHEN {x} > {high} THEN {high} ELSE {between or x} END)"


def _combined(sign: str, left: str, right: str) -> str:
    name = {"min": "least", "max": "greatest"}.get(sign)
    return f"({left} {sign} {right})" if name is None else f"{name}({left}, {right})"


def _side(one: Attribute, missing: str, i: int) -> str:
    """How many cuts lie below, nothing where a number is missing."""
    sides = (f"WHEN x_{i} < {real_of(value)} THEN {k}" for k, value in enumerate(one.below))
    return f"CASE WHEN {missing} THEN NULL {' '.join(sides)} ELSE {len(one.below)} END"


def _top(one: Attribute, most: int) -> int:
    """The steps of the high end as doubles are rounded: more or fewer than there are where a range is narrow."""
    low, high = one.ends
    return floor((high - low) * one.factor(most) + 0.5)


def _steps(one: Attribute, most: int, i: int, *, inside: bool) -> str:
    """What a number counts as; `inside`: nothing if it lies outside its range, without a branch."""
    low, high = one.ends
    # a third cheaper than `least` and `greatest`
    below, above = (f"WHEN x_{i} {sign} {real_of(end)} THEN {real_of(end)}" for sign, end in (("<", low), (">", high)))
    steps = f"x_{i}" if inside else f"(CASE {below} {above} ELSE x_{i} END)"
    steps = f"({steps} - {real_of(low)})" if low else steps
    if inside:
        # half as long as the branches; infinity times 0 is no number, which becomes NULL, and sums leave that out
        steps = f"{steps} * CAST(x_{i} BETWEEN {real_of(low)} AND {real_of(high)} AS DOUBLE)"
    steps = f"floor({steps} * {real_of(one.factor(most))} + 0.5e0)"
    steps = f"least({steps}, {real_of(most)})" if _top(one, most) > most else steps
    return f"{'TRY_CAST' if inside else 'CAST'}({steps} AS {'INTEGER' if most < 2**31 else 'BIGINT'})"


def _asked(asked: Statistic, database: duckdb.DuckDBPyConnection, query: str, told: OnMisfit) -> Iterator[Groups]:
    with _said(asked.name):
        cursor = database.execute(query)
        names = [column[0] for column in cursor.description or ()]
        while rows := cursor.fetchmany(BATCH):
            yield groups_of_rows(asked, names, rows, told)


def groups_of_rows(asked: Statistic, names: Sequence[str], rows: Sequence[Sequence[Any]], told: OnMisfit) -> Groups:
    """Groups from rows that a SELECT of `select_of` gave: where a number is missing, it counts as no steps."""
    columns: dict[str, Any] = dict(zip(names, zip(*rows, strict=True), strict=True))
    tallies, records = [], np.array(columns["records"], dtype=np.int64)
    sums = [np.array([int(n or 0) for n in columns[f"sum_{j}"]], dtype=object) for j in range(len(asked.sets))]
    for i in asked.numbers:
        shared = asked.attributes[i].shared
        known = np.array([not none if shared else none is not None for none in columns[f"key_{i}"]])
        counted = (columns.get(f"tally_{i}_{j}", ()) for j in range(4))
        tallies.append(Tally(*(sum(n for n, there in zip(c, known, strict=False) if there) for c in counted)))
        missing = int(records[~known].sum())
        if missing:
            told(i, None, missing)
            sums = [np.where(known, n, 0) if i in some else n for some, n in zip(asked.sets, sums, strict=True)]
    keys = tuple(Coded.of(columns[f"key_{i}"]) for i in range(len(asked.attributes)))
    return Groups(keys, records, tuple(sums), tuple(tallies))


def _listed(items: Sequence[str]) -> str:
    return ",\n    ".join(items)


def name_of(text: str) -> str:
    """A name in quotes."""
    return '"' + text.replace('"', '""') + '"'


def text_of(text: str) -> str:
    """A text as a literal."""
    return "'" + text.replace("'", "''") + "'"


def real_of(value: float) -> str:
    """A number as a literal of 64 bits."""
    text = repr(float(value))
    return text if "e" in text else text + "e0"
