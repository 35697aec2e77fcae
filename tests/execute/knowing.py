"""Data that were paid for, and whether others are told from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privspec.core.diagnostics import BudgetError
from privspec.execute import ledger
from privspec.execute.fingerprint import Seeds, Sketches
from privspec.execute.ledger import Receipt, look, names_in
from privspec.execute.registry import registration
from privspec.execute.sketching import found_in

SEEDS = Seeds.of(b"a key")


def tables(source: Any, name: str = "people") -> list[frozenset[bytes]]:
    """What the columns of each table that a source counts as are known by."""
    return [digests(table) for table in found_in(name, source, SEEDS).tables]


def digests(table: Sketches) -> frozenset[bytes]:
    return frozenset(one.digest() for one in table.columns.values() if one.cells)


def pay_for(source: Any, path: Path, name: str = "people", *, others: bool = False, party: str | None = None) -> None:
    """Debit a release of these data to a new ledger there.

    Raises: BudgetError.
    """
    with registration({name: source}, party) as found:
        state = look(path)
        found.check(path, state, others=others)
        names = names_in(state, [name], found.names, found.same)
        ledger.create(path, ["epsilon=1"], change=state is not None)
        state = ledger.show(path)
        found.record(path, Receipt(state.identity, len(state.events), state.head), names)


def refusal(
    source: Any, folder: Path, name: str = "people", *, others: bool = False, party: str | None = None
) -> str | None:
    """What a run that gives these data a ledger of their own is told to do; None if nothing stands against it."""
    with registration({name: source}, party) as found:
        try:
            found.check(folder / "a ledger of their own.db", None, others=others)
        except BudgetError as error:
            (told,) = error.diagnostics
            assert told.code == "PS1012"
            return str(told.help)
    return None
