"""SQLite files that belong to privspec: for their owner alone, and recognised before anything is written to them.

One of them counts in how many rounds each voter took part, before a winner is drawn (notes/repeated-votes.md). Voters
who took part in as many rounds as one voter may are left out of a round, and no message says so. That file names voters
and is as secret as their votes.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from privspec.core.diagnostics import UsageError
from privspec.core.records import dataclass, field
from privspec.execute.family import Rounds

if TYPE_CHECKING:
    import polars as pl

WAIT_SECONDS = 30.0
"""How long one run waits for others that use the same file."""
_MAGIC = b"SQLite format 3\0"
_APPLICATION = slice(68, 72)
"""Where a SQLite file says whose it is (https://www.sqlite.org/fileformat.html)."""


class UnusableError(Exception):
    """A file that cannot be used, with the reason in words."""


class AlteredError(UnusableError):
    """A database of ours whose tables are not as this version of privspec makes them."""


def real_path(path: Path) -> Path:
    """Where a file really is.

    Raises: UnusableError for names that are no file on disk to SQLite.
    """
    if path.name == ":memory:" or str(path).startswith("file:"):
        raise UnusableError("that names no file on disk")
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        raise UnusableError("that is no name of a file") from None


def is_there(path: Path, application: int) -> bool:
    """Whether there is a database of that application; a file without content is none yet. Nothing is written.

    Raises: UnusableError if something else is there.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UnusableError("it is a directory" if path.is_dir() else "it is no ordinary file")
        with path.open("rb") as file:
            head = file.read(_APPLICATION.stop)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise UnusableError(error.strerror or "it cannot be read") from None
    if head and (not head.startswith(_MAGIC) or head[_APPLICATION] != application.to_bytes(4, "big")):
        raise UnusableError("it is a file of something else")
    return bool(head)


@contextmanager
def transaction(path: Path, application: int, schema: Sequence[str]) -> Iterator[sqlite3.Connection]:
    """A connection that holds the write lock from the first read to the commit; the file is made if there is none.

    Raises: UnusableError, sqlite3.Error.
    """
    if not is_there(path, application):
        # the journal takes the mode of the file, so SQLite must not be the one who makes it
        try:
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                path.chmod(0o600)
        except OSError as error:
            raise UnusableError(error.strerror or "it cannot be made") from None
    with connection(path) as database:
        database.execute("BEGIN IMMEDIATE")
        try:
            _prepare(database, application, schema)
            yield database
        except BaseException:
            database.rollback()
            raise
        database.commit()


@contextmanager
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection for which a commit is on disk when it returns."""
    database = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None)
    try:
        database.execute("PRAGMA synchronous = EXTRA")
        yield database
    finally:
        database.close()


def is_empty(database: sqlite3.Connection, schema: Sequence[str]) -> bool:
    """Whether nothing was ever committed to it.

    Raises: AlteredError if what is there is not exactly that schema.
    """
    found = {row[0] for row in database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    if found and found != set(schema):
        raise AlteredError("its tables are not as this version of privspec makes them")
    return not found


def _prepare(database: sqlite3.Connection, application: int, schema: Sequence[str]) -> None:
    if is_empty(database, schema):
        for statement in schema:
            database.execute(statement)
        database.execute(f"PRAGMA application_id = {application}")


# --- who took part --------------------------------------------------------------------------------

PARTICIPATION = "privspec-participation/1.0"
_VOTERS = (
    "CREATE TABLE IF NOT EXISTS about (format TEXT NOT NULL, number TEXT NOT NULL, plan TEXT NOT NULL, "
    "fit INTEGER NOT NULL, held INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS voters (voter TEXT PRIMARY KEY, rounds INTEGER NOT NULL) WITHOUT ROWID",
)


@dataclass(eq=False, slots=True)
class Participation:
    """One round with an open file: nobody else can use it until `commit`, or until it is given up.

    number: of the file, drawn when it was made; held: rounds before this one; fit: in how many one voter may take part.
    """

    number: str
    held: int
    fit: int
    _database: sqlite3.Connection = field(repr=False)
    _open: bool = True

    def admit(self, voters: pl.Series) -> pl.Series:
        """Whether each of these voters (n,), each named once, may take part; those who may are counted now."""
        import polars as pl

        rows = self._database.execute("SELECT voter FROM voters WHERE rounds >= ?", (self.fit,))
        gone = pl.Series("gone", [row[0] for row in rows], dtype=pl.String)
        admitted = ~voters.is_in(gone.implode())
        self._database.executemany(
            "INSERT INTO voters VALUES (?, 1) ON CONFLICT (voter) DO UPDATE SET rounds = rounds + 1",
            ((name,) for name in voters.filter(admitted).to_list()),
        )
        return admitted

    def commit(self) -> None:
        """Put the counts of this round on disk."""
        if self._open:
            self._database.execute("UPDATE about SET held = held + 1")
            self._database.commit()
            self._open = False


@contextmanager
def participation(path: Path, digest: str, rounds: Rounds) -> Iterator[Participation]:
    """A round of the plan with that digest, in a file that is made if there is none; undone unless committed.

    Raises: UsageError PS0849.
    """
    with suppress(FileExistsError, OSError):
        # for its owner alone: it says who took part
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        # what was not committed when it is closed is undone
        with connection(path) as database:
            database.execute("BEGIN IMMEDIATE")
            number, held = _opened(database, path, digest, rounds)
            yield Participation(number, held, rounds.fit, database)
    except sqlite3.Error as error:
        # the text of an integrity error could quote a voter
        _refuse(path, f"it cannot be used as such a file ({type(error).__name__})")


def _opened(database: sqlite3.Connection, path: Path, digest: str, rounds: Rounds) -> tuple[str, int]:
    """Number of the file and rounds held, for a new file those of one without rounds."""
    tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if tables and not {"about", "voters"} <= tables:
        _refuse(path, "it is a database of something else")
    for statement in _VOTERS:
        database.execute(statement)
    rows: Sequence[Any] = database.execute("SELECT format, number, plan, fit, held FROM about").fetchall()
    if not rows:
        number = secrets.token_hex(16)
        database.execute("INSERT INTO about VALUES (?, ?, ?, ?, 0)", (PARTICIPATION, number, digest, rounds.fit))
        return number, 0
    ((form, number, plan, fit, held),) = rows
    if form != PARTICIPATION:
        _refuse(path, "another version of privspec wrote it")
    if (plan, fit) != (digest, rounds.fit):
        _refuse(path, "it belongs to another plan")
    return str(number), int(held)


def _refuse(path: Path, why: str) -> NoReturn:
    raise UsageError.of(
        "PS0849",
        f"the participation file {path} cannot count this round: {why}",
        "nothing was drawn and nothing was spent",
        help="one file for one plan, from its first round on; to begin anew takes a new budget",
    ) from None
