"""SQLite files that belong to privspec: for their owner alone, and recognised before anything is written to them."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

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
