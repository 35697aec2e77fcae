"""The budget of one data set: an append-only chain of events in SQLite, debited before a release.

Every event holds the digest of the one before it, so that a changed or missing event in the middle shows;
state is never stored, it is computed from the events. A debit is one transaction: of two runs at once, one
waits for the other. A crash after the debit loses budget; noise is drawn only after the debit is on disk.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privspec.core.diagnostics import BudgetError, Diagnostic, UsageError, VerificationError
from privspec.execute.budget import (
    EpsilonLimit,
    Limit,
    MixedError,
    Spend,
    Unit,
    limit_from_json,
    limit_to_json,
    own_limit,
    parse_limit,
    spends_of_plan,
)
from privspec.execute.rounds import check_round, counted_rounds, paid_for, refusal_notes

if TYPE_CHECKING:
    from privspec.execute.participation import Participation
    from privspec.model.graph import Model

FORMAT = "privspec-ledger/1.0"
WAIT_SECONDS = 30.0
"""How long a run waits for another one that is debiting the same ledger."""
_START = "0" * 64
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS events (sequence INTEGER PRIMARY KEY, body TEXT NOT NULL, "
    "previous TEXT NOT NULL UNIQUE, digest TEXT NOT NULL)",
    "CREATE TRIGGER IF NOT EXISTS no_update BEFORE UPDATE ON events "
    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    "CREATE TRIGGER IF NOT EXISTS no_delete BEFORE DELETE ON events "
    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
)


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of the chain: a creation, a limit that was set, or a debit."""

    sequence: int
    body: Mapping[str, Any]
    previous: str
    digest: str


@dataclass(frozen=True, slots=True)
class Account:
    """A unit of privacy with its limit (None: none set) and what was spent on it, in order."""

    unit: Unit
    limit: Limit | None
    spends: tuple[Spend, ...]

    def describe(self) -> str:
        """In one line: "wrt x, replacing one entry: spent mu=0.24 of mu=0.24 in 1 release"."""
        count = f"{len(self.spends)} release{'' if len(self.spends) == 1 else 's'}"
        if self.limit is None:
            return f"{self.unit.describe()}: no limit set, {count}"
        try:
            spent = self.limit.spent(self.spends) if self.spends else "nothing"
        except MixedError:
            spent = "amounts of different kinds"
        return f"{self.unit.describe()}: spent {spent} of {self.limit.describe()} in {count}"


@dataclass(frozen=True, slots=True)
class LedgerState:
    """What the events add up to. `head`, the last digest: a copy kept elsewhere shows a cut-off end."""

    accounts: tuple[Account, ...]
    waiting: Limit | None
    events: tuple[Event, ...]

    @property
    def head(self) -> str:
        """Digest of the last event."""
        return self.events[-1].digest if self.events else _START

    @property
    def debits(self) -> int:
        """The number of releases that were paid for."""
        return sum(1 for e in self.events if e.body["kind"] == "debit")

    def describe(self) -> str:
        """A few lines for people."""
        lines = [a.describe() for a in self.accounts]
        if self.waiting is not None:
            lines.append(f"{self.waiting.describe()} for the unit of the first release")
        lines += counted_rounds(self.events)
        return "\n".join([*lines, f"{len(self.events)} events, last {self.head[:16]}"])


def default_ledger(plan_path: Path | None, name: str) -> Path:
    """Beside the plan; in the working directory for a plan that is not a file."""
    if plan_path is None:
        return Path(f"{name}.ledger.db")
    stem = plan_path.name.removesuffix(".json").removesuffix(".plan")
    return plan_path.with_name(f"{stem}.ledger.db")


def create(path: Path, limits: Sequence[str], *, change: bool = False) -> LedgerState:
    """Set the budget of a data set; with `change`, of a ledger that is there already (knowingly).

    Args: limits, as `parse_limit` reads them.
    Raises: UsageError (PS1002 not a budget, PS1007 the ledger exists), VerificationError (PS1005).
    """
    parsed = [parse_limit(text) for text in limits]
    if not parsed:
        raise UsageError(Diagnostic("PS1002", "a ledger needs a budget", help="give --limit 'epsilon=2 delta=1e-6'"))
    with _transaction(path) as database:
        events = _read(database)
        if events and not change:
            raise UsageError(
                Diagnostic(
                    "PS1007",
                    f"there is a ledger already: {path}",
                    help="to change its limit knowingly, pass --raise as well; what was spent stays spent",
                )
            )
        if not events:
            _append(database, {"kind": "create", "format": FORMAT})
        for limit, unit in parsed:
            _append(database, _limit_event(limit, unit, "changed" if events else "set"))
        return _state(_read(database))


def show(path: Path) -> LedgerState:
    """What was spent and what is left.

    Raises: UsageError (PS1004) if there is no ledger, VerificationError (PS1005) if it was tampered with.
    """
    with _reading(path) as database:
        return _state(_read(database))


def verify(path: Path) -> LedgerState:
    """Recompute the chain and every debit against the limit in force at that moment.

    Raises: UsageError (PS1004), VerificationError (PS1005).
    """
    state = show(path)
    for end, event in enumerate(state.events, 1):
        if event.body["kind"] == "debit":
            try:
                _check(_state(state.events[:end]), _spends(event), path, None)
            except BudgetError as error:
                raise VerificationError(
                    Diagnostic(
                        "PS1005",
                        f"event {end} of the ledger is a debit beyond the limit of its time",
                        notes=error.diagnostics[0].notes[:2],
                    )
                ) from None
        elif event.body["kind"] == "round":
            check_round(state.events[:end])
    return state


def export(path: Path) -> dict[str, Any]:
    """All events as JSON data, the chain included.

    Raises: UsageError (PS1004), VerificationError (PS1005).
    """
    state = show(path)
    events = [
        {"sequence": e.sequence, "body": dict(e.body), "previous": e.previous, "digest": e.digest} for e in state.events
    ]
    return {"format": FORMAT, "events": events}


def debit(
    path: Path, plan: Mapping[str, Any], model: Model | None = None, counted: Participation | None = None
) -> LedgerState:
    """Pay for one run of a plan, in one transaction, or refuse.

    A ledger that is not there yet is made, with the plan's own guarantee as its limit; where rounds share a budget,
    with that budget. With a `model`, a unit for which no guarantee names all outputs pays for the noisy strategy
    answers. With `counted`, the first round pays the budget of all, once: from then on the counts of that file keep it.
    They are on disk before the debit is.
    Raises: BudgetError (PS1001 over the limit, PS1003 no limit covers a unit), UsageError (PS1006, PS1008; PS0849 a
        participation file that is behind the ledger), VerificationError (PS1005).
    """
    from privspec.execute.family import exposure_of

    spends, rounds = spends_of_plan(plan, model), exposure_of(plan).rounds
    budgets = {unit: own_limit(spend) for unit, spend in spends.items()}
    if rounds is not None:
        budgets = dict.fromkeys(spends, EpsilonLimit(rounds.budget))
        share = rounds.each if counted is None else rounds.budget
        # a rule may spend a little less than its share: what is promised is the share
        spends = {unit: Spend(pure=max(share, spend.pure or share)) for unit, spend in spends.items()}
    with _transaction(path) as database:
        events = _read(database)
        if not events:
            _append(database, {"kind": "create", "format": FORMAT})
            why = "the first release's own guarantee" if rounds is None else "the budget that all rounds share"
            for unit, limit in budgets.items():
                _append(database, _limit_event(limit, unit, why))
        paid = counted is not None and paid_for(events, counted, path)
        body: dict[str, Any] = {
            "plan_sha256": str(plan.get("digest", "")),
            "spec": str(plan.get("spec", {}).get("name", "")),
        }
        if counted is not None:
            body["participation"] = {"file": counted.number, "round": counted.held + 1, "fit": counted.fit}
        units = [{"unit": u.to_json(), "spend": s.to_json()} for u, s in spends.items()]
        _append(database, {"kind": "round", **body} if paid else {"kind": "debit", **body, "units": units})
        state = _state(_read(database))
        if not paid:
            # a refusal leaves this block by an exception, which takes the debit back
            _check(state, spends, path, plan)
        if counted is not None:
            counted.commit()
        return state


def _check(state: LedgerState, spends: Mapping[Unit, Spend], path: Path, plan: Mapping[str, Any] | None) -> None:
    """Every unit of the last debit stays within its limit."""
    accounts = {a.unit: a for a in state.accounts}
    for unit in spends:
        account = accounts[unit]
        if account.limit is None:
            raise BudgetError(_uncovered(state, unit, path))
        try:
            allowed = account.limit.allows(account.spends)
        except MixedError as error:
            raise BudgetError(
                Diagnostic(
                    "PS1003",
                    f"the limit {account.limit.describe()} cannot account for this release",
                    notes=(str(error),),
                    help="a limit 'epsilon=... delta=...' or 'mu=...' covers Gaussian and Laplace releases",
                )
            ) from None
        if not allowed:
            before = Account(unit, account.limit, account.spends[:-1])
            raise BudgetError(_exhausted(before, spends[unit], path, refusal_notes(state.events, plan)))


def _uncovered(state: LedgerState, unit: Unit, path: Path) -> Diagnostic:
    covered = "; ".join(a.unit.describe() for a in state.accounts if a.limit is not None)
    return Diagnostic(
        "PS1003",
        f"this ledger has no limit {unit.describe()}",
        notes=(
            f"it has limits {covered}" if covered else "it has no limits",
            "amounts for different units are not added up: they are about different changes of the data",
        ),
        help=f"privspec ledger init {path} --raise --limit 'epsilon=... delta=... {unit.describe()}'",
    )


def _exhausted(account: Account, spend: Spend, path: Path, why: tuple[str, ...]) -> Diagnostic:
    assert account.limit is not None
    return Diagnostic(
        "PS1001",
        "the budget of this data set does not allow this release",
        notes=(
            account.describe(),
            f"this release would cost {own_limit(spend).describe()}",
            "nothing was drawn and nothing was spent",
            *why,
        ),
        help=f"to allow more, knowingly: privspec ledger init {path} --raise --limit "
        f"'<more than {account.limit.describe()}> {account.unit.describe()}'",
    )


def _limit_event(limit: Limit, unit: Unit | None, why: str) -> dict[str, Any]:
    return {
        "kind": "limit",
        "unit": None if unit is None else unit.to_json(),
        "limit": limit_to_json(limit),
        "why": why,
    }


def _spends(event: Event) -> dict[Unit, Spend]:
    return {Unit.from_json(u["unit"]): Spend.from_json(u["spend"]) for u in event.body["units"]}


def _state(events: Sequence[Event]) -> LedgerState:
    """Replay. A limit without a unit is for the units of the first debit; a later one replaces it."""
    limits: dict[Unit, Limit] = {}
    spends: dict[Unit, list[Spend]] = {}
    general: Limit | None = None
    first: tuple[Unit, ...] = ()
    for event in events:
        if event.body["kind"] == "limit":
            limit = limit_from_json(event.body["limit"])
            if event.body["unit"] is not None:
                limits[Unit.from_json(event.body["unit"])] = limit
            else:
                general = limit
        elif event.body["kind"] == "debit":
            found = _spends(event)
            first = first or tuple(found)
            for unit, spend in found.items():
                spends.setdefault(unit, []).append(spend)
        if general is not None and first:
            # a limit for the unit itself, wherever it stands in the chain, is the more exact word
            limits |= {unit: general for unit in first if not _has_own(events, unit)}
            general = None
    units = sorted({*limits, *spends})
    accounts = tuple(Account(u, limits.get(u), tuple(spends.get(u, ()))) for u in units)
    return LedgerState(accounts, general, tuple(events))


def _has_own(events: Sequence[Event], unit: Unit) -> bool:
    return any(
        e.body["kind"] == "limit" and e.body["unit"] is not None and Unit.from_json(e.body["unit"]) == unit
        for e in events
    )


def _canonical(body: Mapping[str, Any]) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def _digest(sequence: int, body: str, previous: str) -> str:
    return hashlib.sha256(f"{previous}\n{sequence}\n{body}".encode()).hexdigest()


def _append(database: sqlite3.Connection, body: Mapping[str, Any]) -> None:
    row = database.execute("SELECT sequence, digest FROM events ORDER BY sequence DESC LIMIT 1").fetchone()
    sequence, previous = (row[0] + 1, row[1]) if row else (1, _START)
    text = _canonical({**body, "time": datetime.now(UTC).isoformat(timespec="seconds")})
    digest = _digest(sequence, text, previous)
    database.execute("INSERT INTO events VALUES (?, ?, ?, ?)", (sequence, text, previous, digest))


def _read(database: sqlite3.Connection) -> tuple[Event, ...]:
    """All events, the chain checked."""
    rows = database.execute("SELECT sequence, body, previous, digest FROM events ORDER BY sequence").fetchall()
    previous = _START
    events = []
    for place, (sequence, body, before, digest) in enumerate(rows, 1):
        if sequence != place or before != previous or digest != _digest(sequence, body, before):
            raise VerificationError(
                Diagnostic(
                    "PS1005",
                    f"event {place} of the ledger does not fit its chain: it was changed or is damaged",
                    help="restore it from a copy; without a sound ledger nothing is released",
                )
            )
        events.append(Event(sequence, json.loads(body), before, digest))
        previous = digest
    return tuple(events)


@contextmanager
def _transaction(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that holds the write lock from the first read to the commit."""
    with _connection(path) as database:
        database.execute("BEGIN IMMEDIATE")
        try:
            for statement in _SCHEMA:
                database.execute(statement)
            yield database
        except BaseException:
            database.rollback()
            raise
        database.commit()


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise UsageError(
            Diagnostic(
                "PS1004",
                f"there is no ledger at {path}",
                help=f"privspec ledger init {path} --limit 'epsilon=2 delta=1e-6'",
            )
        )
    with _connection(path) as database:
        yield database


@contextmanager
def _connection(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        database = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None)
        try:
            database.execute("PRAGMA synchronous = FULL")
            yield database
        finally:
            database.close()
    except sqlite3.Error as error:
        raise UsageError(
            Diagnostic(
                "PS1009",
                f"the ledger {path} cannot be used: {error}",
                notes=("nothing was released: a release needs its debit on disk first",),
            )
        ) from None
