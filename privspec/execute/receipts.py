"""What the entries of a ledger say of rounds that share a budget, and of releases that were published.

Rounds: notes/repeated-votes.md. The file of a release names the entry that paid for it, so that a ledger can be checked
against what was published.

SQLite files that belong to privspec are for their owner alone, and recognised before anything is written to them. One
of them counts in how many rounds each voter took part, before a winner is drawn. Voters who took part in as many rounds
as one voter may are left out of a round, and no message says so. That file names voters, and is as secret as votes are.
"""

from __future__ import annotations

import csv
import json
import os
import re
import secrets
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from privspec.core.diagnostics import UsageError, VerificationError
from privspec.core.records import dataclass, field
from privspec.execute.family import exposure_of
from privspec.kernel.promises import SharedBudget

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
def transaction(
    path: Path, application: int, schema: Sequence[str], before: Sequence[str] = ()
) -> Iterator[sqlite3.Connection]:
    """A connection that holds the write lock from the first read to the commit; the file is made if there is none.

    Args: before, the statements that an earlier version made, with which those of the schema begin.
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
            _prepare(database, application, schema, before)
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
    found = _statements(database)
    if found and found != set(schema):
        raise AlteredError("its tables are not as this version of privspec makes them")
    return not found


def _statements(database: sqlite3.Connection) -> set[str]:
    return {row[0] for row in database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}


def _prepare(database: sqlite3.Connection, application: int, schema: Sequence[str], before: Sequence[str] = ()) -> None:
    older = bool(before) and _statements(database) == set(before)
    if older or is_empty(database, schema):
        for statement in schema[len(before) if older else 0 :]:
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
def participation(path: Path, digest: str, rounds: SharedBudget) -> Iterator[Participation]:
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


def _opened(database: sqlite3.Connection, path: Path, digest: str, rounds: SharedBudget) -> tuple[str, int]:
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


# --- receipts -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of the chain: a creation, a limit that was set, a debit, or a round that was paid for."""

    sequence: int
    body: Mapping[str, Any]
    previous: str
    digest: str


def held(events: Sequence[Event], plan: Mapping[str, Any]) -> int:
    """How many rounds of a plan were paid for."""
    return sum(e.body["kind"] in ("debit", "round") and e.body["plan_sha256"] == plan.get("digest") for e in events)


def adds(plan: Mapping[str, Any]) -> bool:
    """Whether every guarantee hides who takes part."""
    return all(str(guarantee["neighbours"]).startswith("adding or removing") for guarantee in plan["guarantees"])


def refusal_notes(events: Sequence[Event], plan: Mapping[str, Any] | None) -> tuple[str, ...]:
    """What a refusal adds: which round it would be, or that a plan was run before."""
    if plan is None or (before := held(events, plan) - 1) < 0:
        return ()
    rounds = exposure_of(plan).rounds
    if rounds is None:
        return ("running one plan again would average its noise away",) if before else ()
    all_held = f"all {rounds.count} rounds of this plan were held: " if before >= rounds.count else ""
    notes = [f"{all_held}this would be round {before + 1} of {rounds.count}"]
    last = events[-1].body
    if "participation" in last:
        notes = [
            "a participation file pays the whole budget with its first round, and something was spent before: by "
            "rounds without such a file, or with another one"
        ]
    elif any("participation" in e.body for e in events):
        notes = ["rounds of this ledger are counted for each voter: give --participation with the file of the others"]
    elif adds(plan):
        one = plan["problem"]["data"][0]["party"] or "voter"
        notes.append(
            f"with --participation FILE.db from the first round on, a budget lasts longer: each {one} may take part in "
            f"{rounds.fit} rounds, whichever these are"
        )
    return tuple(notes)


def counted_rounds(events: Sequence[Event]) -> list[str]:
    """One line for each participation file."""
    found = [e.body["participation"] for e in events if "participation" in e.body]
    last = {str(item["file"]): item for item in found}
    return [
        f"participation file {name[:8]}: {item['round']} round{'' if item['round'] == 1 else 's'} for one budget, one "
        f"voter takes part in at most {item['fit']}"
        for name, item in last.items()
    ]


def check_round(events: Sequence[Event]) -> None:
    """A round that is not debited follows one of the same participation file, whose first paid for all.

    Raises: VerificationError PS1005.
    """
    *before, last = events
    own = last.body["participation"]
    same = [e for e in before if _round_of(e, own["file"]) and e.body["plan_sha256"] == last.body["plan_sha256"]]
    if not same or same[0].body["kind"] != "debit" or _round_of(same[-1], own["file"]) >= own["round"]:
        raise VerificationError.of("PS1005", f"event {len(events)} of the ledger is a round that nothing was paid for")


def paid_for(events: Sequence[Event], number: str, held_before: int, path: Path) -> bool:
    """Whether an earlier round paid for all that the participation file with this number allows.

    Raises: UsageError PS0849 if the file holds fewer rounds than the ledger.
    """
    known = [_round_of(event, number) for event in events]
    if max(known, default=0) > held_before:
        raise UsageError.of(
            "PS0849",
            "the participation file has fewer rounds than its ledger: it is an older copy",
            "nothing was drawn and nothing was spent",
            help=f"use the file that the last round wrote; {path} says how many there were",
        )
    return any(known)


def _round_of(event: Event, number: str) -> int:
    """Which round of a participation file an event is for, 0 for none."""
    found = event.body.get("participation") or {}
    return int(found["round"]) if found.get("file") == number else 0


# --- releases -------------------------------------------------------------------------------------

_ROW = re.compile("(?P<event>[1-9][0-9]{0,15}):(?P<head>[0-9a-f]{32})")
_WHOLE = re.compile("[0-9a-f]{64}")
_UNREADABLE = (OSError, ValueError, TypeError, LookupError, csv.Error, RecursionError)
"""Errors of readers, those of pyarrow among them."""


@dataclass(frozen=True, slots=True)
class Named:
    """An entry that a release names: digits of its digest, and the ledger's identity where the file says it."""

    event: int
    head: str
    identity: str | None = None


Paid = frozenset[frozenset[Named]]
"""What rows name: one entry, or for those that are made of messages, one of the ledger of each party."""


def check_release(identity: str, events: Sequence[Event], path: Path) -> None:
    """Whether each entry that a release names, or one of those that paid for it together, is a paid one of the ledger.

    Raises: UsageError PS0710, VerificationError PS1015.
    """
    for together in _named(path):
        flaws = [_flaw(identity, events, named) for named in sorted(together, key=str)]
        if all(flaws):
            _mismatch(path, flaws[0] if len(flaws) == 1 else "none of those that paid for it did so from this ledger")


def _flaw(identity: str, events: Sequence[Event], named: Named) -> str:
    """Why an entry is none that paid in the ledger with these events; nothing where it is."""
    if named.identity not in (None, identity):
        return "it was paid for in another ledger"
    last = len(events)
    if named.event > last:
        return f"it names event {named.event}, the ledger ends with event {last}: its end was cut off"
    event = events[named.event - 1]
    if not event.digest.startswith(named.head):
        return f"event {named.event} of the ledger is not the one that it names"
    return "" if event.body["kind"] in ("debit", "round") else f"event {named.event} of the ledger paid for nothing"


def is_paid(path: Path) -> bool:
    """Whether a file is a release that a ledger paid for: unlike one of messages, it cannot be had for nothing."""
    reader = _READERS.get(path.suffix.lower())
    try:
        return reader is not None and path.is_file() and any(len(together) == 1 for together in reader(path))
    except _UNREADABLE:
        return False


def _named(path: Path) -> Paid:
    reader = _READERS.get(path.suffix.lower())
    if not path.is_file():
        raise UsageError.of("PS0710", f"the file {path} does not exist")
    if reader is None:
        raise UsageError.of("PS0831", f"{path} is no release", help=f"releases are {', '.join(_READERS)}")
    try:
        found = reader(path)
    except _UNREADABLE:
        _mismatch(path, "it cannot be read as a release")
    if not found:
        _mismatch(path, "it names no ledger, as a simulation does")
    return found


def _of_document(document: Any) -> Paid:
    found = document.get("ledgers", ()) if document["ledger"] is None else [document["ledger"]]
    return frozenset({frozenset(map(entry_of, found))} if found else ())


def entry_of(found: Any) -> Named:
    """The entry that a receipt names.

    Raises: KeyError, TypeError, ValueError if it is none.
    """
    event, head, identity = found["event"], found["head"], found["identity"]
    if set(found) != {"event", "head", "identity"} or type(event) is not int or event < 1:
        raise ValueError("no receipt")
    if _WHOLE.fullmatch(head) is None or not isinstance(identity, str):
        raise ValueError("no receipt")
    return Named(event, head, identity)


def _of_rows(cells: Iterable[Any]) -> Paid:
    """Of the marks of rows; a row that names nothing makes it a file that names nothing."""
    found = set()
    for cell in set(cells):
        matches = [_ROW.fullmatch(word) for word in (cell or "").split(" ")]
        named = [Named(int(match["event"]), match["head"]) for match in matches if match is not None]
        if len(named) < len(matches):
            return frozenset()
        found.add(frozenset(named))
    return frozenset(found)


def _place(columns: Sequence[str]) -> int:
    """The column of the ledger: the last but one."""
    if len(columns) < 3 or not columns[-2].endswith("ledger"):
        raise ValueError("no column of the ledger")
    return len(columns) - 2


def _json(path: Path) -> Paid:
    return _of_document(json.loads(path.read_text(encoding="utf-8")))


def _csv(path: Path) -> Paid:
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        place = _place(next(rows, []))
        return _of_rows(row[place] for row in rows)


def _parquet(path: Path) -> Paid:
    import pyarrow.parquet as pq  # type: ignore[import-untyped, unused-ignore]

    table = pq.read_table(path)
    whole = _of_document(json.loads(table.schema.metadata[b"privspec"]))
    rows = _of_rows(table.column(_place(table.column_names)).to_pylist())
    return whole | rows if whole and rows else frozenset()


def _npy(path: Path) -> Paid:
    table = np.load(path, allow_pickle=False)
    names = list(table.dtype.names or ())
    return _of_rows(str(cell) for cell in table[names[_place(names)]].reshape(-1).tolist())


_READERS: Mapping[str, Callable[[Path], Paid]] = {
    ".json": _json,
    ".csv": _csv,
    ".parquet": _parquet,
    ".npy": _npy,
}


def _mismatch(path: Path, why: str) -> NoReturn:
    raise VerificationError.of(
        "PS1015",
        f"the release {path} does not fit this ledger: {why}",
        help="find the ledger that it was paid from; what was spent on the data cannot be known from this one",
    ) from None
