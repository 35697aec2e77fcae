"""The budget of one data set: an append-only chain of events in SQLite, debited before a release.

Every event holds the digest of the one before it, so that a changed or missing event in the middle shows;
a cut-off end shows against a release, which names the last event of its time. State is never stored, it is
computed from the events. A debit is one transaction: of two runs at once, one waits for the other. A crash
after the debit loses budget; noise is drawn only after the debit is on disk.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privspec.core.diagnostics import BudgetError, Diagnostic, UsageError, VerificationError
from privspec.core.records import dataclass
from privspec.execute import budget
from privspec.execute.family import exposure_of
from privspec.execute.receipts import (
    AlteredError,
    Event,
    UnusableError,
    check_release,
    check_round,
    connection,
    counted_rounds,
    held,
    is_empty,
    is_there,
    paid_for,
    real_path,
    refusal_notes,
    transaction,
)
from privspec.execute.sources import place_on_disk
from privspec.kernel.core.reading import canonical

if TYPE_CHECKING:
    from privspec.execute.receipts import Participation
    from privspec.model.graph import Model

FORMAT = "privspec-ledger/2.1"
APPLICATION = 0x7073_6C31
"""What stands in the header of a ledger's file."""
KINDS = frozenset({"create", "limit", "debit", "round", "statement"})
_START = "0" * 64
_IDENTITY = re.compile("[0-9a-f]{32}")
_SCHEMA = (
    "CREATE TABLE events (sequence INTEGER PRIMARY KEY, body TEXT NOT NULL, "
    "previous TEXT NOT NULL UNIQUE, digest TEXT NOT NULL)",
    "CREATE TRIGGER no_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    "CREATE TRIGGER no_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was paid for a release: the ledger's identity, the event of the debit, and the ledger's head with it.

    `held`: how many releases of the same plan were paid for, this one included.
    """

    identity: str
    event: int
    head: str
    held: int = 1

    def to_json(self) -> dict[str, Any]:
        return {"identity": self.identity, "event": self.event, "head": self.head}

    @property
    def mark(self) -> str:
        """As every row of a release names it: the event and the first 32 digits of the head."""
        return f"{self.event}:{self.head[:MARK_DIGITS]}"


MARK_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Account:
    """A unit of privacy with its limit (None: none set) and what was spent on it, in order."""

    unit: budget.Unit
    limit: budget.Limit | None
    spends: tuple[budget.Spend, ...]

    def describe(self) -> str:
        """In one line: "wrt x, replacing one entry: spent mu=0.24 of mu=0.24 in 1 release"."""
        count = f"{len(self.spends)} release{'' if len(self.spends) == 1 else 's'}"
        if self.limit is None:
            return f"{self.unit.describe()}: no limit set, {count}"
        try:
            spent = self.limit.spent(self.spends) if self.spends else "nothing"
        except budget.MixedError:
            spent = "amounts of different kinds"
        return f"{self.unit.describe()}: spent {spent} of {self.limit.describe()} in {count}"


@dataclass(frozen=True, slots=True)
class LedgerState:
    """What the events add up to. `head`, the last digest: a copy kept elsewhere shows a cut-off end."""

    accounts: tuple[Account, ...]
    waiting: budget.Limit | None
    events: tuple[Event, ...]

    @property
    def head(self) -> str:
        return self.events[-1].digest if self.events else _START

    @property
    def identity(self) -> str:
        """The number that was drawn for this ledger when it was made."""
        return str(self.events[0].body["identity"])

    @property
    def debits(self) -> int:
        """The number of releases that were paid for."""
        return sum(1 for e in self.events if e.body["kind"] == "debit")

    def describe(self) -> str:
        """A few lines for people."""
        lines = [line for account in self.accounts for line in self._statement(account)]
        if self.waiting is not None:
            lines.append(f"{self.waiting.describe()} for the unit of the first release")
        lines += counted_rounds(self.events)
        lines += [
            f"stated on {str(event.body['time'])[:10]}, that these are other people's data: {event.body['why']}"
            for event in self.events
            if event.body["kind"] == "statement"
        ]
        return "\n".join([*lines, f"{len(self.events)} events, last {self.head[:16]}"])

    def _statement(self, account: Account) -> Iterator[str]:
        """An account, what it was changed by, event after event, and how much one more release may cost."""
        yield account.describe()
        # a limit for the unit itself is the more exact word
        meant = account.unit.to_json() if _has_own(self.events, account.unit) else None
        for event in self.events:
            when = f"  on {str(event.body['time'])[:16].replace('T', ' at ')} UTC"
            if event.body["kind"] == "debit" and account.unit in (spends := _spends(event)):
                name = (
                    "".join(sign for sign in str(event.body["spec"]) if sign.isprintable()) or "a spec without a name"
                )
                cost = budget.own_limit(spends[account.unit]).describe()
                yield f"{when}: {name} (plan {str(event.body['plan_sha256'])[:12]}) cost {cost}"
            changed = event.body["kind"] == "limit" and event.body["why"] == "changed"
            if changed and account.limit is not None and event.body["unit"] == meant:
                yield f"{when}: the limit was changed to {budget.limit_from_json(event.body['limit']).describe()}"
        if account.limit is not None and account.spends:
            with suppress(budget.MixedError):
                left = account.limit.left(account.spends)
                told = (
                    "nothing is left" if left is None else f"one more release may cost up to {left.describe(down=True)}"
                )
                yield f"  {told}"


def place_of(inputs: Mapping[str, Any], named: Path | str | None = None) -> Path:
    """Where the ledger of a data set is.

    As named, else as PRIVSPEC_LEDGER says, else beside the first input that is a file, a folder or in a database: all
    tables and views of a database share one, since the same people may stand in several of them.

    Raises: BudgetError PS1010 where all data are in memory and no ledger is named.
    """
    named = named if named is not None else os.environ.get("PRIVSPEC_LEDGER") or None
    if named is not None:
        return Path(named)
    for source in inputs.values():
        if isinstance(source, str | Path):
            file = place_on_disk(source)
            stem = file.name.removesuffix(".gz")
            return file.with_name(f"{stem.removesuffix(Path(stem).suffix)}.ledger.db")
    raise BudgetError.of(
        "PS1010",
        "data in memory have no ledger of their own: name one",
        "all plans that are run on these data share it",
        help='run(.., ledger="people.ledger.db"), with new_ledger=True to give it exactly what this plan spends',
    )


def create(path: Path, limits: Sequence[str], *, change: bool = False) -> LedgerState:
    """Set the budget of a data set; with `change`, of a ledger that is there already (knowingly).

    Args: limits, as `parse_limit` reads them.
    Raises: UsageError (PS1002 not a budget, PS1007 the ledger exists, PS1018 the limit would change nothing),
        VerificationError (PS1005).
    """
    parsed = [budget.parse_limit(text) for text in limits]
    if not parsed:
        raise UsageError.of("PS1002", "a ledger needs a budget", help="give --limit 'epsilon=2 delta=1e-6'")
    if change and look(path) is None:
        raise _no_ledger(path)
    with _transaction(path) as database:
        events = _read(database)
        if events and not change:
            raise UsageError.of(
                "PS1007",
                f"there is a ledger already: {path}",
                help="to change its limit knowingly, pass --raise as well; what was spent stays spent",
            )
        if not events:
            _append(database, _creation())
        units = [account.unit for account in _state(events).accounts]
        for limit, named in parsed:
            unit = None if named is None else named.known_as({}, units)
            _append(database, _limit_event(limit, unit, "changed" if events else "set"))
        events = _read(database)
        debits = (_spends(event) for event in events if event.body["kind"] == "debit")
        deaf = [unit for unit in next(debits, ()) if _has_own(events, unit)]
        if deaf and any(named is None for _, named in parsed):
            raise UsageError.of(
                "PS1018",
                "a limit without a unit is for that of the first release, which has a limit of its own",
                "nothing was changed",
                help=f"privspec ledger init {path} --raise --limit '{parsed[0][0].describe()} {deaf[0].describe()}'",
            )
        return _state(events)


def look(path: Path) -> LedgerState | None:
    """What is known of a ledger, None if there is none.

    Raises: UsageError PS1009, VerificationError (PS1005) if it was tampered with.
    """
    with _translated(path):
        place = real_path(path)
        if not is_there(place, APPLICATION):
            return None
        with connection(place) as database:
            return None if is_empty(database, _SCHEMA) else _state(_read(database))


def show(path: Path) -> LedgerState:
    """What was spent and what is left.

    Raises: UsageError (PS1004) if there is no ledger, VerificationError (PS1005) if it was tampered with.
    """
    state = look(path)
    if state is None:
        raise _no_ledger(path)
    return state


def _no_ledger(path: Path) -> UsageError:
    return UsageError.of(
        "PS1004", f"there is no ledger at {path}", help=f"privspec ledger init {path} --limit 'epsilon=2 delta=1e-6'"
    )


def verify(path: Path, against: Sequence[Path] = ()) -> LedgerState:
    """Recompute the chain and every debit against the limit in force at that moment.

    Args: against, files of releases, each of which names the last event of its time: none of them was cut off.
    Raises: UsageError (PS0710, PS1004), VerificationError (PS1005, PS1015 a release that is not of this ledger).
    """
    state = show(path)
    for release in against:
        check_release(state.identity, state.events, release)
    for end, event in enumerate(state.events, 1):
        if event.body["kind"] == "debit":
            try:
                _check(_state(state.events[:end]), _spends(event), path, None)
            except BudgetError as error:
                raise VerificationError.of(
                    "PS1005",
                    f"event {end} of the ledger is a debit beyond the limit of its time",
                    *error.diagnostics[0].notes[:2],
                ) from None
        elif event.body["kind"] == "round":
            try:
                check_round(state.events[:end])
            except (KeyError, TypeError):
                raise _altered(f"event {end} of the ledger is none that this version of privspec writes") from None
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
    path: Path,
    plan: Mapping[str, Any],
    model: Model | None = None,
    counted: Participation | None = None,
    *,
    new: bool = False,
    names: Mapping[str, str] | None = None,
    others: str | None = None,
) -> Receipt:
    """Pay for one run of a plan, in one transaction, or refuse.

    With `new` the ledger is made, with the plan's own guarantee as its limit; where rounds share a budget, with that
    budget. With a `model`, a unit for which no guarantee names all outputs pays for the noisy strategy answers.
    With `counted`, the first round pays the budget of all, once: from then on the counts of that file keep it.
    They are on disk before the debit is.
    Args: names, what the ledger calls the data of each input (`names_in`); others, why these are other people's data
        than those of other ledgers, as their keeper states.
    Raises: BudgetError (PS1001 over the limit, PS1003 no limit covers a unit, PS1010 no ledger, PS1011 one that is
        not new), UsageError (PS1006, PS1008; PS0849 a participation file that is behind the ledger), VerificationError
        (PS1005).
    """
    stated, rounds = spends_of_plan(plan, model), exposure_of(plan).rounds
    known = look(path)
    accounts = () if known is None else known.accounts
    spends: dict[budget.Unit, budget.Spend] = {}
    for own, spend in stated.items():
        unit = own.known_as(names or {}, [account.unit for account in accounts])
        spends[unit] = budget.together(spends[unit], spend) if unit in spends else spend
    budgets = {unit: budget.own_limit(spend) for unit, spend in spends.items()}
    if rounds is not None:
        budgets = dict.fromkeys(spends, budget.EpsilonLimit(rounds.budget))
        share = rounds.each if counted is None else rounds.budget
        # a rule may spend a little less than its share: what is promised is the share
        spends = {unit: budget.Spend(pure=max(share, spend.pure or share)) for unit, spend in spends.items()}
    if not new and known is None:
        raise no_budget(path)
    with _transaction(path) as database:
        events = _read(database)
        if bool(events) is new:
            raise _declared_twice(path, _state(events)) if events else no_budget(path)
        if new:
            _append(database, _creation())
            why = "the first release's own guarantee" if rounds is None else "the budget that all rounds share"
            for unit, limit in budgets.items():
                _append(database, _limit_event(limit, unit, why))
        if others is not None:
            _append(database, {"kind": "statement", "why": others})
        paid = counted is not None and paid_for(events, counted.number, counted.held, path)
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
            if not spends and (state.accounts or state.waiting is not None):
                raise _bounded_by_nothing(path)
        if counted is not None:
            counted.commit()
        return Receipt(state.identity, len(state.events), state.head, held(state.events, plan))


LONGEST_WHY = 200
"""Signs of a statement."""


def stated(why: str) -> str:
    """A statement as the ledger keeps it.

    Raises: UsageError PS0721 if it says nothing, or is not one line that a terminal can show.
    """
    found = " ".join(why.split())
    if not found or len(found) > LONGEST_WHY or not found.isprintable():
        raise UsageError.of(
            "PS0721", f"--other-people takes a reason in 1 to {LONGEST_WHY} signs", help="--other-people 'wave of May'"
        )
    return found


def no_budget(path: Path) -> BudgetError:
    """What a run is told for whose data nobody has decided how much they may spend."""
    return BudgetError.of(
        "PS1010",
        "this data set has no budget yet",
        help="decide what all releases of it together may spend:  "
        f"privspec ledger init {path} --limit 'epsilon=2 delta=1e-6'\n\n"
        "or give it exactly what this plan spends:            privspec run ... --new-ledger",
    )


def _declared_twice(path: Path, state: LedgerState) -> BudgetError:
    return BudgetError.of(
        "PS1011",
        f"this data set has a budget already: {path}",
        *(account.describe() for account in state.accounts),
        "nothing was drawn and nothing was spent",
        help="a budget is declared once: leave --new-ledger out",
    )


def _bounded_by_nothing(path: Path) -> BudgetError:
    return BudgetError.of(
        "PS1006",
        "no line of the spec bounds what this release reveals, and these data have a budget",
        f"the budget is in {path}",
        "nothing was drawn and nothing was spent",
        help="add a line under privacy: O is ...",
    )


def _check(
    state: LedgerState, spends: Mapping[budget.Unit, budget.Spend], path: Path, plan: Mapping[str, Any] | None
) -> None:
    """Every unit of the last debit stays within its limit."""
    accounts = {a.unit: a for a in state.accounts}
    for unit in spends:
        account = accounts[unit]
        if account.limit is None:
            raise BudgetError(_uncovered(state, unit, path))
        try:
            allowed = account.limit.allows(account.spends)
        except budget.MixedError as error:
            kinds = " or ".join(f"'{kind} {unit.describe()}'" for kind in budget.kinds_that_count(account.spends))
            raise BudgetError.of(
                "PS1003",
                f"the limit {account.limit.describe()} cannot account for this release",
                str(error),
                help=f"privspec ledger init {path} --raise --limit {kinds}"
                if kinds
                else "no kind of limit adds up what was released before and this release: solve it in another measure",
            ) from None
        if not allowed:
            before = Account(unit, account.limit, account.spends[:-1])
            raise BudgetError(_exhausted(before, spends[unit], path, refusal_notes(state.events, plan)))


def _uncovered(state: LedgerState, unit: budget.Unit, path: Path) -> Diagnostic:
    covered = "; ".join(a.unit.describe() for a in state.accounts if a.limit is not None)
    return Diagnostic(
        "PS1003",
        f"this ledger has no limit {unit.describe()}",
        notes=(
            f"it has limits {covered}" if covered else "it has no limits",
            "amounts for different units are not added up: they are about different changes of the data",
            "with a limit for each unit both are let through, and nothing bounds them together",
        ),
        help=f"privspec ledger init {path} --raise --limit 'epsilon=... delta=... {unit.describe()}'",
    )


def _exhausted(account: Account, spend: budget.Spend, path: Path, why: tuple[str, ...]) -> Diagnostic:
    assert account.limit is not None
    return Diagnostic(
        "PS1001",
        "the budget of this data set does not allow this release",
        notes=(
            account.describe(),
            f"this release would cost {budget.own_limit(spend).describe()}",
            "nothing was drawn and nothing was spent",
            *why,
        ),
        help=f"to allow more, knowingly: privspec ledger init {path} --raise --limit "
        f"'<more than {account.limit.describe()}> {account.unit.describe()}'",
    )


def _creation() -> dict[str, Any]:
    return {"kind": "create", "format": FORMAT, "identity": secrets.token_hex(16)}


def _limit_event(limit: budget.Limit, unit: budget.Unit | None, why: str) -> dict[str, Any]:
    return {
        "kind": "limit",
        "unit": None if unit is None else unit.to_json(),
        "limit": {name: str(amount) for name, amount in limit.amounts.items()},
        "why": why,
    }


def _spends(event: Event) -> dict[budget.Unit, budget.Spend]:
    return {budget.Unit.from_json(u["unit"]): budget.Spend.from_json(u["spend"]) for u in event.body["units"]}


def _state(events: Sequence[Event]) -> LedgerState:
    """Replay. A limit without a unit is for the units of the first debit; a later one replaces it.

    Raises: VerificationError PS1005.
    """
    try:
        return _replayed(events)
    except (KeyError, TypeError, ValueError, ZeroDivisionError, AttributeError):
        raise _altered("an event of the ledger is none that this version of privspec writes") from None


def _replayed(events: Sequence[Event]) -> LedgerState:
    limits: dict[budget.Unit, budget.Limit] = {}
    spends: dict[budget.Unit, list[budget.Spend]] = {}
    general: budget.Limit | None = None
    first: tuple[budget.Unit, ...] = ()
    for event in events:
        if event.body["kind"] == "limit":
            limit = budget.limit_from_json(event.body["limit"])
            if event.body["unit"] is not None:
                limits[budget.Unit.from_json(event.body["unit"])] = limit
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


def _has_own(events: Sequence[Event], unit: budget.Unit) -> bool:
    return any(
        e.body["kind"] == "limit" and e.body["unit"] is not None and budget.Unit.from_json(e.body["unit"]) == unit
        for e in events
    )


def _digest(sequence: int, body: str, previous: str) -> str:
    return hashlib.sha256(f"{previous}\n{sequence}\n{body}".encode()).hexdigest()


def _append(database: sqlite3.Connection, body: Mapping[str, Any]) -> None:
    row = database.execute("SELECT sequence, digest FROM events ORDER BY sequence DESC LIMIT 1").fetchone()
    sequence, previous = (row[0] + 1, row[1]) if row else (1, _START)
    text = canonical({**body, "time": datetime.now(UTC).isoformat(timespec="seconds")})
    digest = _digest(sequence, text, previous)
    database.execute("INSERT INTO events VALUES (?, ?, ?, ?)", (sequence, text, previous, digest))


def _read(database: sqlite3.Connection) -> tuple[Event, ...]:
    """All events, the chain checked."""
    rows = database.execute("SELECT sequence, body, previous, digest FROM events ORDER BY sequence").fetchall()
    previous = _START
    events = []
    for place, (sequence, body, before, digest) in enumerate(rows, 1):
        if sequence != place or before != previous or digest != _digest(sequence, body, before):
            raise _altered(f"event {place} of the ledger does not fit its chain: it was changed or is damaged")
        try:
            event = Event(sequence, json.loads(body), before, digest)
            if event.body["kind"] not in KINDS or (event.body["kind"] == "create") is not (place == 1):
                raise ValueError("an event of another kind")
        except (ValueError, TypeError, KeyError, RecursionError):
            raise _altered(f"event {place} of the ledger is none that this version of privspec writes") from None
        events.append(event)
        previous = digest
    if events:
        _check_creation(events[0])
    return tuple(events)


def _check_creation(event: Event) -> None:
    """Raises: UsageError PS1009 for a ledger of another version, VerificationError PS1005 for one without identity."""
    name, _, version = str(event.body.get("format")).partition("/")
    own, _, mine = FORMAT.partition("/")
    if name != own or version.partition(".")[0] != mine.partition(".")[0]:
        raise UsageError.of(
            "PS1009",
            "another version of privspec wrote this ledger",
            "nothing was released: what was spent on the data cannot be known from it",
            help="use the version of privspec that wrote it",
        )
    if _IDENTITY.fullmatch(str(event.body.get("identity"))) is None:
        raise _altered("event 1 of the ledger names no identity")


def _altered(message: str) -> VerificationError:
    return VerificationError.of(
        "PS1005", message, help="restore it from a copy; without a sound ledger nothing is released"
    )


@contextmanager
def _transaction(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that holds the write lock from the first read to the commit."""
    with _translated(path), transaction(real_path(path), APPLICATION, _SCHEMA) as database:
        yield database


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Errors of the file in words; what cannot be replayed was altered."""
    try:
        yield
    except AlteredError as error:
        raise _altered(f"the ledger {path} was changed: {error}") from None
    except (sqlite3.Error, UnusableError) as error:
        raise UsageError.of(
            "PS1009",
            f"the ledger {path} cannot be used: {error}",
            "nothing was released: a release needs its debit on disk first",
            help="a ledger is a file that `ledger init` or `run --new-ledger` makes; --ledger names another place",
        ) from None


def names_in(
    state: LedgerState | None, inputs: Sequence[str], known: Mapping[str, str], same: Mapping[str, str]
) -> dict[str, str]:
    """What a ledger calls the data of each input of a run: a variable of another name begins no budget anew.

    Data that are known there keep their name; others have that of the variable, if the ledger has it; and where it has
    one name more, and the run one input more, these are the same people, perhaps in a corrected file.

    Args: known, the names of inputs whose data were paid for in this ledger; same, inputs that hold those of another.
    """
    held = {} if state is None else {name: None for account in state.accounts for name in account.unit.wrt}
    found = {name: known.get(name, name) for name in inputs if name in known or name in held}
    left = [name for name in inputs if name not in found and name not in same]
    free = [name for name in held if name not in found.values()]
    if len(left) == len(free) == 1:
        found[left[0]] = free[0]
    found = {name: name for name in inputs} | found
    return found | {name: found[other] for name, other in same.items()}


def spends_of_plan(plan: Mapping[str, Any], model: Model | None = None) -> dict[budget.Unit, budget.Spend]:
    """What one run of a plan costs each unit: that of all outputs together, whoever sees which.

    For each unit it takes the guarantees that hold for everything released (`Exposure.covers`); failing that,
    if there is a model, what everything released costs under the relation of the unit's first requirement; or those
    of a line on more inputs, in which a unit that is replaced may stay as it is in all others. One person who may be in
    several inputs pays besides for all of them, where the plan states a bound that no line does.
    Raises: UsageError (PS1006) if a unit has none, (PS1008) if an amount is missing.
    """
    exposure = exposure_of(plan)
    whole: dict[budget.Unit, list[budget.Spend]] = {}
    units: dict[budget.Unit, int] = {}
    for place, guarantee in enumerate(map(exposure.charged, plan["guarantees"])):
        unit = budget.Unit.of_guarantee(guarantee)
        index = int(guarantee.get("requirement", place))
        units.setdefault(unit, index)
        if exposure.covers(index, frozenset(budget.names_of(guarantee["outputs"]))):
            whole.setdefault(unit, []).append(budget.spend_of_guarantee(guarantee))
    for unit, index in units.items():
        joint = None if unit in whole or model is None else exposure.joint_spend(model, index)
        if joint is not None:
            whole[unit] = [joint]
        larger = [spend for other, found in whole.items() if unit.within(other) for spend in found]
        if unit not in whole and larger:
            whole[unit] = larger
        if unit not in whole:
            raise UsageError.of(
                "PS1006",
                f"no line of the spec bounds what all outputs together reveal {unit.describe()}",
                "the ledger counts what an observer of everything released could learn",
                help=f"add a requirement for ({', '.join(sorted(exposure.outputs))}) together",
            )
    stated = {unit: _strongest(found) for unit, found in whole.items()}
    return dict(_of_several_inputs(plan)) | stated


def _of_several_inputs(plan: Mapping[str, Any]) -> Iterator[tuple[budget.Unit, budget.Spend]]:
    """What one person pays who may be in several inputs, by the bound for whoever sees all that depends on these."""
    views = plan.get("exposures", ())
    for view in views:
        unit, seen = budget.Unit.from_json(view), set(view["outputs"])
        about = (one for one in (*plan["guarantees"], *views) if {*unit.wrt} & {*budget.names_of(one["wrt"])})
        all_seen = seen.issuperset(name for one in about for name in budget.names_of(one["outputs"]))
        if len(unit.wrt) > 1 and view["bound"] is not None and all_seen:
            yield unit, budget.spend_of_guarantee({"achieved": view["bound"]})


def _strongest(found: Sequence[budget.Spend]) -> budget.Spend:
    """Several statements about one release hold at once: the least of each kind."""

    def least(get: Callable[[budget.Spend], Fraction | None]) -> Fraction | None:
        return min((v for s in found if (v := get(s)) is not None), default=None)

    pairs = [s.pair for s in found if s.pair is not None]
    pair = min(pairs, default=None)
    return budget.Spend(least(lambda s: s.mu), least(lambda s: s.pure), least(lambda s: s.rho), pair)
