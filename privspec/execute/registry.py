"""What a user's runs know of data sets: the ledger of each, where it was, and how far it had come.

Inputs are recognised by fingerprints that nobody can compare with a guess without this registry's key: of the bytes
of a file, and of the numbers and words in it, so that a copy, another name or another format is the same data.
Key and fingerprints never leave the registry. It cannot know what was released elsewhere, or before it was deleted.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from privspec.core.diagnostics import BudgetError, PrivspecError, UsageError
from privspec.core.records import dataclass
from privspec.execute import sources
from privspec.execute.data import located
from privspec.execute.ledger import LedgerState, Receipt, look
from privspec.execute.reading import Coded, Column, coded
from privspec.execute.receipts import UnusableError, real_path, transaction
from privspec.execute.warehouse import in_spark

if TYPE_CHECKING:
    import polars as pl

APPLICATION = 0x7073_7231
"""What stands in the header of a registry's file."""
LARGEST = 8 * 2**20
"""A larger file is known by its bytes alone: to read it again would take longer than the run."""
SAMPLED, BLOCK, BLOCKS = 2**28, 2**16, 256
"""From so many bytes on, by its size and so many blocks of this size: two files that agree in them count as one."""
AT_ONCE = 2**16
"""A file of text of more bytes is read by columns where it is plain."""
_SCHEMA = (
    "CREATE TABLE secret (key BLOB NOT NULL)",
    "CREATE TABLE ledgers (identity TEXT PRIMARY KEY, path TEXT NOT NULL, event INTEGER NOT NULL, head TEXT NOT NULL)",
    "CREATE TABLE inputs (fingerprint TEXT NOT NULL, identity TEXT NOT NULL, PRIMARY KEY (fingerprint, identity))",
)
_NO_TABLE = (PrivspecError, OSError, TypeError, ValueError, ArithmeticError, RecursionError)
_NOTHING = "nothing was drawn and nothing was spent"


def registry_path() -> Path:
    """The user's registry: in $XDG_STATE_HOME, by default ~/.local/state.

    Raises: UsageError PS1014 if the user has no home.
    """
    base = os.environ.get("XDG_STATE_HOME", "")
    try:
        root = Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError:
        raise _unusable(Path("~"), "this user has no home") from None
    return root / "privspec" / "registry.db"


@dataclass(frozen=True, slots=True)
class _Known:
    """A ledger as a run last saw it."""

    identity: str
    path: Path
    event: int
    head: str


@dataclass(eq=False, slots=True)
class Registration:
    """The data of one run in an open registry: no other run of this user goes on until it is closed."""

    _database: sqlite3.Connection
    _sought: Set[str]
    _kept: Set[str]
    _expected: str | None = None

    def check(self, path: Path, state: LedgerState | None) -> None:
        """Whether these data may be debited to the ledger at `path` (None: there is none).

        Raises: BudgetError (PS1012 they belong to another one, PS1013 it is gone or older than it was).
        """
        place = real_path(path)
        self._expected = None if state is None else state.identity
        for known in self._of_data():
            if known.identity != self._expected:
                _belongs_elsewhere(known)
        for known in self._select("path = ?", (str(place),)):
            if known.identity != self._expected:
                _gone(known)
        for known in self._select("identity = ?", (self._expected,)):
            events = () if state is None else state.events
            if len(events) < known.event or events[known.event - 1].digest != known.head:
                _older(path)

    def record(self, path: Path, receipt: Receipt) -> None:
        """Keep what was just paid; on disk when the registry is closed, and nothing is drawn before.

        Raises: BudgetError PS1013 if the ledger was exchanged meanwhile.
        """
        place = str(real_path(path))
        if self._expected not in (None, receipt.identity):
            _older(path)
        self._database.execute(
            "INSERT OR REPLACE INTO ledgers VALUES (?, ?, ?, ?)", (receipt.identity, place, receipt.event, receipt.head)
        )
        self._database.executemany(
            "INSERT OR IGNORE INTO inputs VALUES (?, ?)", ((f, receipt.identity) for f in self._kept)
        )

    def _of_data(self) -> list[_Known]:
        marks = ", ".join("?" * len(self._sought))
        where = f"identity IN (SELECT identity FROM inputs WHERE fingerprint IN ({marks}))"
        return self._select(where, tuple(self._sought))

    def _select(self, where: str, values: Sequence[str | None]) -> list[_Known]:
        rows = self._database.execute(f"SELECT identity, path, event, head FROM ledgers WHERE {where}", values)
        return [_Known(str(identity), Path(path), int(event), str(head)) for identity, path, event, head in rows]


@contextmanager
def registration(inputs: Mapping[str, Any], party: str | None = None) -> Iterator[Registration]:
    """These data in the user's registry, which is made if there is none; what was recorded is kept on leaving.

    A party's data are known as those of that party, and not to another, who may well say the same.
    Raises: UsageError PS1014.
    """
    path = registry_path()
    # read before others are kept waiting
    found = {digest for name, source in inputs.items() for digest in digests(name, source)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.parent.chmod(0o700)
        with transaction(path, APPLICATION, _SCHEMA) as database:
            row = database.execute("SELECT key FROM secret").fetchone()
            if row is None:
                row = (secrets.token_bytes(32),)
                database.execute("INSERT INTO secret VALUES (?)", row)
            own, others = ("whole", "of a party") if party is None else (f"of party {party}", "whole")

            def keyed(whose: str) -> set[str]:
                head = hashlib.sha256(whose.encode("utf-8", "surrogatepass")).digest()
                return {hmac.new(row[0], head + digest, hashlib.sha256).hexdigest() for digest in found}

            mine = keyed(own)
            yield Registration(database, mine | keyed(others), mine if party is None else mine | keyed("of a party"))
    except (sqlite3.Error, UnusableError, OSError) as error:
        raise _unusable(path, (error.strerror if isinstance(error, OSError) else None) or str(error)) from None


# --- fingerprints ---------------------------------------------------------------------------------


def digests(name: str, source: Any) -> frozenset[bytes]:
    """Digests by which the data of an input are the same: of a file's bytes, and of the table in file or memory.

    A table is known by its columns, whatever their names, order, library and format; a folder by each of its files; a
    database also by its place, whatever was written to it since, so that all its tables are one data set; a frame of
    Spark by the files that it is read from.
    """
    found = []
    if isinstance(source, str | Path):
        place = sources.place_on_disk(source)
        if place.is_dir():
            return frozenset(digest for file in sources.files_of(place) for digest in digests(name, file))
        found.append(_of_bytes(place))
        if place != Path(source):
            found.append(hashlib.sha256(b"database" + os.fsencode(real_path(place))).digest())
            source = located(name, source)
        else:
            source = place
        if place.stat().st_size > LARGEST:
            return frozenset(found)
    if in_spark(source):
        from privspec.execute.engines import whereabouts  # most data are not in Spark

        return frozenset({hashlib.sha256(b"spark" + whereabouts(source).encode()).digest()})
    try:
        found += [_of_table(columns) for columns in _tables(name, source) if columns]
    except _NO_TABLE:
        # no table, nor an array: an object in memory is known by its text
        if not isinstance(source, Path):
            found.append(hashlib.sha256(repr(source).encode("utf-8", "replace")).digest())
    return frozenset(found)


def _of_bytes(path: Path) -> bytes:
    size = path.stat().st_size
    with path.open("rb") as file:
        if size < SAMPLED:
            return hashlib.file_digest(file, "sha256").digest()
        found = hashlib.sha256(f"{size} bytes".encode())
        for place in range(BLOCKS):
            file.seek(place * (size - BLOCK) // (BLOCKS - 1))
            found.update(file.read(BLOCK))
        return found.digest()


def _of_table(columns: Sequence[Column]) -> bytes:
    return hashlib.sha256(b"".join(sorted(map(_of_column, columns)))).digest()


def _of_column(column: Column) -> bytes:
    """Of numbers, as doubles, if there is nothing else in it; of trimmed words otherwise. Blank is missing."""
    if not isinstance(column, np.ndarray):
        # columns hold few different words: each is looked at once
        if not isinstance(column, Coded):
            column = Coded.of([cell if type(cell) is str else sources.cell_text(cell) or "" for cell in column])
        words, places = [cell.strip() for cell in column.cells], column.places
        try:
            found = np.array([float(word or "nan") for word in words])[places]
        except ValueError:
            every = "\x1f".join(map(words.__getitem__, places.tolist()))
            return hashlib.sha256(b"words" + every.encode("utf-8", "replace")).digest()
    else:
        found = column
    numbers = found.astype("<f8") + 0.0
    return hashlib.sha256(b"numbers" + np.where(np.isnan(numbers), np.nan, numbers).tobytes()).digest()


def _tables(name: str, source: Any) -> Iterator[Sequence[Column]]:
    """The columns of a source; of a text file with its first line and without it: it may be a header."""
    kind = source.name.lower() if isinstance(source, Path) else ""
    if kind.endswith((".csv", ".csv.gz", ".tsv")):
        frame = sources.plain_text(name, source) if source.stat().st_size > AT_ONCE else None
        widths = {len(row) for row in islice(sources.rows_of_text(name, source), 2)}
        if frame is not None and widths == {frame.width}:
            cells = [coded(column.fill_null("")) for column in frame]
            yield _upright([_below(name, column) for name, column in zip(frame.columns, cells, strict=True)])
            yield _upright([_plain_numbers(*both) for both in zip(frame, cells, strict=True)])
            return
        rows = list(sources.rows_of_text(name, source))
        yield _columns(rows)
        yield _columns(rows[1:])
    elif kind.endswith((".parquet", *sources.ARROW)) or sources.is_frame(source):
        # days and times by their numbers: some of them are beyond every calendar
        frame = sources.collect(name, sources.load_frame(name, source))
        plain = [c.to_physical() if c.dtype.is_temporal() else c for c in frame if not c.dtype.is_nested()]
        yield _upright([c.to_numpy() if c.dtype.is_numeric() else c.to_list() for c in plain])
    else:
        if kind.endswith(".npy"):
            source = sources.load_array(name, source)
        elif kind.endswith(".json"):
            found = sources.load_json(name, source)
            source = found.get(name) if isinstance(found, dict) else found
        elif isinstance(source, Path):
            return
        array = np.asarray(source.to_numpy() if hasattr(source, "to_numpy") else source)
        if array.size == 0:
            return
        columns = array.reshape(len(array), -1).T if array.ndim else array.reshape(1, 1)
        yield _upright([c if c.dtype.kind in "biuf" else c.tolist() for c in columns])


def _below(name: str, column: Column) -> Column:
    """The cells of a column with its name before them."""
    if isinstance(column, Coded):
        return Coded([*column.cells, name], np.append(len(column.cells), column.places))
    return [name, *column]


def _plain_numbers(column: pl.Series, cells: Column) -> Column:
    """Of a column of texts its numbers, not a number where it is blank; the cells if there are others."""

    def blank(cell: str | None) -> float:
        if (cell or "").strip():
            raise ValueError
        return float("nan")

    try:
        return cells if isinstance(cells, Coded) else sources.numbers_at_once(column, blank)
    except ValueError:
        return cells


def _columns(rows: Sequence[Sequence[str]]) -> Sequence[Column]:
    width = len(rows[0]) if rows else 0
    return _upright([[row[j] if j < len(row) else "" for row in rows] for j in range(width)])


def _upright(columns: Sequence[Column]) -> Sequence[Column]:
    """One row of many cells is a vector that lies down; where no row is, there is nothing to know data by."""
    if columns and len(columns[0]) == 1 < len(columns):
        return [[column[0] for column in columns]]
    return columns if columns and len(columns[0]) else []


# --- refusals -------------------------------------------------------------------------------------


def _belongs_elsewhere(known: _Known) -> NoReturn:
    try:
        found = look(known.path)
    except PrivspecError:
        found = None
    if found is None or found.identity != known.identity:
        _gone(known)
    raise BudgetError.of(
        "PS1012",
        "these data belong to another ledger",
        "a data set has one budget, whatever its files are called",
        _NOTHING,
        help=f"give --ledger {known.path}",
    )


def _gone(known: _Known) -> NoReturn:
    raise BudgetError.of(
        "PS1013",
        f"the ledger of these data is gone from {known.path}",
        "what was spent on them cannot be known without it",
        _NOTHING,
        help="put it back, or say with --ledger where it is now",
    )


def _older(path: Path) -> NoReturn:
    raise BudgetError.of(
        "PS1013",
        f"{path} is an older copy of the ledger of these data: it lacks releases that were paid for",
        _NOTHING,
        help="put back the newest one",
    )


def _unusable(path: Path, why: str) -> UsageError:
    return UsageError.of(
        "PS1014",
        f"the registry of your data sets cannot be used: {path}: {why}",
        "nothing was released: without it a copied file or an older ledger would not be noticed",
        help="it is in $XDG_STATE_HOME/privspec, by default ~/.local/state/privspec: let it be written to",
    )
