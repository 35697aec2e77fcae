"""What a user's runs know of data sets: the ledger of each, where it was, and how far it had come.

Data are recognised by what is in their columns (`fingerprint`), whatever their files, names and formats are and
whichever columns a plan reads. Two tables hold the same people's data for sure where columns agree that would agree by
chance once in 2^40 cases; where they agree in all that they hold, but so little may agree by chance, their keeper can
say on record that they are other people's. What is kept is keyed: nobody can compare it with a guess without this
registry's key, and neither leaves it. It cannot know what was released elsewhere, or before it was deleted.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import BudgetError, Diagnostic, PrivspecError, UsageError
from privspec.core.records import dataclass, field
from privspec.execute.fingerprint import COUNT, PLACES, Seeds, Sketch, Sketches
from privspec.execute.ledger import LedgerState, Receipt, look
from privspec.execute.receipts import UnusableError, real_path, transaction
from privspec.execute.sketching import Found, found_in
from privspec.execute.sources import AS_USUAL, TextFiles

APPLICATION = 0x7073_7231
"""What stands in the header of a registry's file."""
_FIRST = (
    "CREATE TABLE secret (key BLOB NOT NULL)",
    "CREATE TABLE ledgers (identity TEXT PRIMARY KEY, path TEXT NOT NULL, event INTEGER NOT NULL, head TEXT NOT NULL)",
    "CREATE TABLE inputs (fingerprint TEXT NOT NULL, identity TEXT NOT NULL, PRIMARY KEY (fingerprint, identity))",
)
"""The tables of the first version, whose fingerprints of files this one does not make: `inputs` says which ledgers
have data that are not known yet as they are now."""
_SCHEMA = (
    *_FIRST,
    "CREATE TABLE data (known TEXT NOT NULL, identity TEXT NOT NULL, name TEXT NOT NULL, "
    "PRIMARY KEY (known, identity))",
    "CREATE TABLE columns (tag TEXT NOT NULL, known TEXT NOT NULL, says INTEGER NOT NULL, places BLOB, "
    "PRIMARY KEY (tag, known))",
    "CREATE INDEX of_data ON columns (known)",
)
ENOUGH = 40.0
"""Bits that do not agree by chance."""
NEAR = 20.0
"""Bits in the parts that agree, from which on data are said to be nearly the same."""
SHOWN_NEAR = 64
"""Columns, those that say most, by which data are found to be nearly the same."""
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


# --- what a table says ----------------------------------------------------------------------------


class Says(IntEnum):
    """What it says that a column of a table is known."""

    NOTHING = 0
    """Numbers in steps, one value alone: other data with as many rows have it too."""
    SOMETHING = 1
    ALL = 2
    """All cells of the table as one column, however they are laid out."""
    PLACE = 3
    """Where they lie: a database, or the files of a Spark frame."""


@dataclass(frozen=True)
class Column:
    """A column, or all of them: under a keyed name, and with the bits that its agreement is worth."""

    tag: str
    says: Says
    sketch: Sketch
    bits: float

    @property
    def profile(self) -> tuple[int, ...]:
        """Columns that are told from each other by their words alone have the same."""
        return tuple(sorted(self.sketch.counts.tolist()))


@dataclass(frozen=True)
class Table:
    """A table under the keyed names of its columns, and of all of them together."""

    known: str
    columns: Mapping[str, Column]
    places: frozenset[str]

    @classmethod
    def of(cls, sketches: Sketches, places: Sequence[bytes], name: _Name) -> Table:
        """A table that is one row of many cells is a vector that lies down."""
        columns = [one for one in sketches.columns.values() if one.cells]
        whole = Sketch()
        for sketch in columns:
            whole.join(sketch)
        if len(columns) > 1 and (whole.cells == len(columns) or sketches.wide):
            columns = [whole]
        weighted = [one for one in sketches.weighted.values() if one.cells]
        own = sketches.columns.get(COUNT)
        # what stands once in a row for many records may be there by design
        by_count = [one for one in columns if weighted and one is not own]
        found = {}
        for sketch in (*columns, *weighted):
            bits = sketch.bits
            told = bits > 0 and not any(sketch is one for one in by_count)
            tag = name.of(sketch.digest())
            found[tag] = Column(tag, Says.SOMETHING if told else Says.NOTHING, sketch, bits)
        if len(columns) > 1:
            most = sum(one.bits for one in found.values() if one.says is Says.SOMETHING)
            tag = name.of(whole.digest())
            found.setdefault(tag, Column(tag, Says.ALL, whole, min(whole.bits, most)))
        known = name.of(b"".join(sorted(one.digest() for one in (*columns, *weighted))))
        return cls(known, found, frozenset(map(name.of, places)))

    @cached_property
    def told(self) -> frozenset[str]:
        """The columns that say something."""
        return frozenset(tag for tag, one in self.columns.items() if one.says is Says.SOMETHING)

    @property
    def tags(self) -> list[str]:
        return [*self.columns, *self.places]

    def weight(self, agreed: frozenset[str], least: Says = Says.SOMETHING) -> float:
        """The bits of columns that agree: of several that may be each other's in other words, those of one."""
        each: dict[tuple[int, ...], float] = {}
        whole = 0.0
        for tag in agreed & self.columns.keys():
            one = self.columns[tag]
            if one.says is Says.ALL:
                whole = one.bits
            elif one.says >= least:
                each[one.profile] = max(each.get(one.profile, 0.0), one.bits)
        return max(whole, sum(each.values()))


@dataclass(frozen=True, slots=True)
class _Name:
    """Names that nobody can make without the key: of data as of all, or as of one party."""

    key: bytes
    whose: str

    def of(self, digest: bytes) -> str:
        head = hashlib.sha256(self.whose.encode("utf-8", "surrogatepass")).digest()
        return hmac.new(self.key, head + digest, hashlib.sha256).hexdigest()[:32]

    def parts(self, sketch: Sketch) -> bytes:
        """Four bytes for each place of a sketch."""
        key = hmac.new(self.key, b"parts" + self.whose.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
        cells = np.column_stack([np.arange(PLACES), sketch.counts, sketch.sums.view(np.int64)]).astype("<i8")
        return b"".join(hashlib.blake2b(row.tobytes(), digest_size=4, key=key).digest() for row in cells)


# --- one run --------------------------------------------------------------------------------------


class Match(IntEnum):
    """How surely a table holds the data of another one."""

    NONE = 0
    ALIKE = 1
    """In all that one of them holds, though it may be by chance."""
    PARTLY = 2
    """In columns that do not agree by chance, or by their place."""
    SAME = 3
    """Both."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A ledger as a run last saw it."""

    identity: str
    path: Path
    event: int
    head: str


@dataclass(frozen=True, slots=True)
class _Input:
    """The data of an input: tables under the names they are sought and kept by, as they most likely are first."""

    sought: Sequence[Table]
    kept: Sequence[Table]
    parts: _Name


@dataclass(eq=False, slots=True)
class Registration:
    """The data of one run in an open registry: no other run of this user goes on until it is closed.

    names: what the ledger calls the data of each input, as far as they are known.
    """

    _database: sqlite3.Connection
    _inputs: Mapping[str, _Input]
    names: dict[str, str] = field(default_factory=dict)
    _expected: str | None = None

    def check(self, path: Path, state: LedgerState | None, *, others: bool = False) -> None:
        """Whether these data may be debited to the ledger at `path` (None: there is none).

        Args: others, whether their keeper says that they are other people's than those of every other ledger.
        Raises: BudgetError (PS1012 they belong to another one, PS1013 it is gone or older than it was, PS1016 that
            cannot be known).
        """
        place = real_path(path)
        self._expected = None if state is None else state.identity
        unknown = []
        for name, one in self._inputs.items():
            found = self._matches(one.sought)
            mine, self.names[name] = found.pop(self._expected or "", (Match.NONE, name))
            for identity, (match, _) in found.items():
                if match > (Match.PARTLY if others else mine):
                    _belongs_elsewhere(self._ledger(identity), match)
            if not mine:
                del self.names[name]
                unknown += [] if found else [name]
        for known in self._select("path = ?", (str(place),)):
            if known.identity != self._expected:
                _gone(known)
        for known in self._select("identity = ?", (self._expected,)):
            events = () if state is None else state.events
            if len(events) < known.event or events[known.event - 1].digest != known.head:
                _older(path)
        before = [] if others or self.begun or not unknown else self._select(_UNSEEN, ())
        if before and self._expected not in {known.identity for known in before}:
            _from_before(before)

    @property
    def same(self) -> dict[str, str]:
        """Inputs that hold, for sure, the data of another one, each with that."""
        found: dict[str, str] = {}
        first: dict[str, str] = {}
        for name, one in self._inputs.items():
            table = one.kept[0]
            if table.weight(table.told) >= ENOUGH:
                other = first.setdefault(table.known, name)
                found |= {name: other} if other != name else {}
        return found

    @property
    def begun(self) -> bool:
        """Whether data of this ledger are known."""
        return self._one("SELECT 1 FROM data WHERE identity = ?", self._expected) is not None

    def near(self) -> Diagnostic | None:
        """What their keeper is told where many parts of a column are those of data of another ledger.

        None once the ledger has data: what is corrected is paid from the same one.
        """
        if self.begun:
            return None
        query = "SELECT c.places, d.identity FROM columns c JOIN data d USING (known) WHERE c.places IS NOT NULL"
        rows = [(places, identity) for places, identity in self._database.execute(query)]
        if not rows:
            return None
        kept = np.frombuffer(b"".join(places for places, _ in rows), "<u4").reshape(len(rows), PLACES)
        found = set[str]()
        for one in self._inputs.values():
            for column in _those_that_say_most(one.kept[0]):
                close = _close(kept, np.frombuffer(one.parts.parts(column.sketch), "<u4"), column)
                found |= {rows[at][1] for at in np.flatnonzero(close).tolist()}
        return _nearly([self._ledger(identity).path for identity in sorted(found)]) if found else None

    def record(self, path: Path, receipt: Receipt, names: Mapping[str, str]) -> None:
        """Keep what was just paid; on disk when the registry is closed, and nothing is drawn before.

        Args: names, what the ledger calls the data of each input.
        Raises: BudgetError PS1013 if the ledger was exchanged meanwhile.
        """
        place = str(real_path(path))
        if self._expected not in (None, receipt.identity):
            _older(path)
        self._database.execute(
            "INSERT OR REPLACE INTO ledgers VALUES (?, ?, ?, ?)", (receipt.identity, place, receipt.event, receipt.head)
        )
        for name, one in self._inputs.items():
            for number, table in enumerate(one.kept):
                row = (table.known, receipt.identity, names[name])
                new = self._one("SELECT 1 FROM data WHERE known = ?", table.known) is None
                self._database.execute("INSERT OR IGNORE INTO data VALUES (?, ?, ?)", row)
                if not new:
                    continue
                most = [] if number else [column.tag for column in _those_that_say_most(table)]
                columns = (
                    (tag, table.known, column.says, one.parts.parts(column.sketch) if tag in most else None)
                    for tag, column in table.columns.items()
                )
                self._database.executemany("INSERT OR IGNORE INTO columns VALUES (?, ?, ?, ?)", columns)
                places = ((tag, table.known, Says.PLACE, None) for tag in table.places)
                self._database.executemany("INSERT OR IGNORE INTO columns VALUES (?, ?, ?, ?)", places)

    def _matches(self, tables: Sequence[Table]) -> dict[str, tuple[Match, str]]:
        """By ledger: how surely it knows these data, under which name; the surest first."""
        found: dict[str, tuple[Match, str]] = {}
        for table in tables:
            query = "SELECT c.known, c.tag, c.says FROM columns c JOIN json_each(?) j ON c.tag = j.value"
            there: dict[str, dict[str, int]] = {}
            for known, tag, says in self._database.execute(query, (json.dumps(table.tags),)):
                there.setdefault(known, {})[tag] = says
            for known in {*there, table.known}:
                match = self._match(table, known, there.get(known, {}))
                for identity, name in self._database.execute(
                    "SELECT identity, name FROM data WHERE known = ?", (known,)
                ):
                    found[identity] = max(found.get(identity, (Match.NONE, "")), (match, name))
        surest = sorted(found.items(), key=lambda one: one[1], reverse=True)
        return {identity: best for identity, best in surest if best[0]}

    def _match(self, table: Table, known: str, agreed: Mapping[str, int]) -> Match:
        tags = frozenset(agreed)
        sure = table.weight(tags) >= ENOUGH
        all_here = known == table.known or bool(table.told and table.told <= tags)
        told = self._one("SELECT count(*) FROM columns WHERE known = ? AND says = ?", known, Says.SOMETHING)
        own = sum(says == Says.SOMETHING for says in agreed.values())
        # of a table with many columns one may be as another by chance
        likely = table.weight(tags, Says.NOTHING) >= math.log2(max(len(table.told), 1))
        whole = all_here or (own > 0 and told == (own,) and likely)
        if sure:
            return Match.SAME if whole else Match.PARTLY
        if tags & table.places:
            return Match.PARTLY
        return Match.ALIKE if whole else Match.NONE

    def _one(self, query: str, *values: Any) -> Any:
        return self._database.execute(query, values).fetchone()

    def _ledger(self, identity: str) -> _Known:
        return self._select("identity = ?", (identity,))[0]

    def _select(self, where: str, values: Sequence[str | None]) -> list[_Known]:
        rows = self._database.execute(f"SELECT identity, path, event, head FROM ledgers WHERE {where}", values)
        return [_Known(str(identity), Path(path), int(event), str(head)) for identity, path, event, head in rows]


_UNSEEN = "identity IN (SELECT identity FROM inputs) AND identity NOT IN (SELECT identity FROM data)"


def _those_that_say_most(table: Table) -> list[Column]:
    most = sorted((table.columns[tag] for tag in table.told), key=lambda one: (-one.bits, one.tag))
    return most[:SHOWN_NEAR]


def _close(kept: NDArray[np.uint32], own: NDArray[np.uint32], column: Column) -> NDArray[np.bool_]:
    """Which of some columns (n, places) agree with this one in parts, too many of them for chance.

    A part agrees by chance no more often than a count of that mean (Poisson) is the same again.
    """
    counts = column.sketch.counts
    some = counts > 0
    if not column.sketch.scattered:
        return np.zeros(len(kept), bool)
    parts, often = int(some.sum()), int(np.gcd.reduce(counts[some]))
    each = np.array([k - k * math.log(k) + math.lgamma(k + 1) for k in (counts[some] // often).tolist()])
    chosen = np.array([_log_chosen(parts, k) for k in range(parts + 1)])
    agree = (kept == own)[:, some]
    unlikely = agree @ each - chosen[agree.sum(axis=1)] >= NEAR * math.log(2)
    return np.asarray(unlikely & ~(kept == own).all(axis=1))


def _log_chosen(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


@contextmanager
def registration(
    inputs: Mapping[str, Any], party: str | None = None, texts: TextFiles = AS_USUAL
) -> Iterator[Registration]:
    """These data in the user's registry, which is made if there is none; what was recorded is kept on leaving.

    A party's data are known as those of that party, and not to another, who may well say the same.
    Raises: UsageError PS1014.
    """
    with _opened() as (_, key):
        seeds = Seeds.of(key)
    # read while nobody is kept waiting
    found = {name: found_in(name, source, seeds, texts) for name, source in inputs.items()}
    with _opened() as (database, key):
        yield Registration(database, {name: _input(one, key, party) for name, one in found.items()})


@contextmanager
def _opened() -> Iterator[tuple[sqlite3.Connection, bytes]]:
    """The registry and its key.

    Raises: UsageError PS1014.
    """
    path = registry_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.parent.chmod(0o700)
        with transaction(path, APPLICATION, _SCHEMA, _FIRST) as database:
            row = database.execute("SELECT key FROM secret").fetchone()
            if row is None:
                row = (secrets.token_bytes(32),)
                database.execute("INSERT INTO secret VALUES (?)", row)
            yield database, row[0]
    except (sqlite3.Error, UnusableError, OSError) as error:
        raise _unusable(path, (error.strerror if isinstance(error, OSError) else None) or str(error)) from None


def _input(found: Found, key: bytes, party: str | None) -> _Input:
    own, others = ("whole", "of a party") if party is None else (f"of party {party}", "whole")
    kept = (own,) if party is None else (own, "of a party")

    def tables(whose: str) -> list[Table]:
        return [Table.of(one, found.places, _Name(key, whose)) for one in found.tables]

    named = {whose: tables(whose) for whose in {own, others, *kept}}
    sought = [*named[own], *named[others]]
    return _Input(sought, [table for whose in kept for table in named[whose]], _Name(key, own))


# --- refusals -------------------------------------------------------------------------------------

_OTHERS = "if they are other people's, say so on record:  --other-people 'why'"


def _belongs_elsewhere(known: _Known, match: Match) -> NoReturn:
    try:
        found = look(known.path)
    except PrivspecError:
        found = None
    if found is None or found.identity != known.identity:
        _gone(known, match)
    why = {
        Match.SAME: "a data set has one budget, whatever its files are called",
        Match.PARTLY: "some of what they hold agrees with data of that ledger, and not by chance",
        Match.ALIKE: "they agree with data of that ledger, though so little may agree by chance",
    }
    raise BudgetError.of(
        "PS1012",
        "these data belong to another ledger",
        why[match],
        _NOTHING,
        help=f"give --ledger {known.path}" + ("" if match is Match.SAME else f"\n\n{_OTHERS}"),
    )


def _gone(known: _Known, match: Match = Match.SAME) -> NoReturn:
    raise BudgetError.of(
        "PS1013",
        f"the ledger of these data is gone from {known.path}",
        "what was spent on them cannot be known without it",
        _NOTHING,
        help="put it back, or say with --ledger where it is now" + ("" if match is Match.SAME else f"\n\n{_OTHERS}"),
    )


def _older(path: Path) -> NoReturn:
    raise BudgetError.of(
        "PS1013",
        f"{path} is an older copy of the ledger of these data: it lacks releases that were paid for",
        _NOTHING,
        help="put back the newest one",
    )


def _from_before(before: Sequence[_Known]) -> NoReturn:
    listed = sorted(str(known.path) for known in before)
    raise BudgetError.of(
        "PS1016",
        "whether these data have a ledger cannot be known",
        "an earlier version of privspec knew data by their files; of these ledgers none was used since: "
        + ", ".join(listed[:5])
        + (f", and {len(listed) - 5} more" if len(listed) > 5 else ""),
        _NOTHING,
        help=f"if these are the data of one of them, give it once:  --ledger {listed[0]}\n\n{_OTHERS}",
    )


def _nearly(paths: Sequence[Path]) -> Diagnostic:
    return Diagnostic(
        "PS1017",
        "these data are nearly those of another ledger",
        notes=(f"much of a column is the same as in data of {', '.join(map(str, paths))}",),
        help=f"if they are the same people's, give --ledger {paths[0]}\n\n{_OTHERS}",
        severity="warning",
    )


def _unusable(path: Path, why: str) -> UsageError:
    return UsageError.of(
        "PS1014",
        f"the registry of your data sets cannot be used: {path}: {why}",
        "nothing was released: without it a copied file or an older ledger would not be noticed",
        help="it is in $XDG_STATE_HOME/privspec, by default ~/.local/state/privspec: let it be written to",
    )
