"""What the file of a release says of its debit, so that a ledger can be checked against what was published."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from privspec.core.diagnostics import UsageError, VerificationError
from privspec.execute.rounds import Event

_ROW = re.compile("(?P<event>[1-9][0-9]{0,15}):(?P<head>[0-9a-f]{32})")
_WHOLE = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Named:
    """An entry that a release names: digits of its digest, and the ledger's identity where the file says it."""

    event: int
    head: str
    identity: str | None = None


def check_release(identity: str, events: Sequence[Event], path: Path) -> None:
    """Whether each entry that a release names is a paid one of the ledger with these events.

    Raises: UsageError PS0710, VerificationError PS1015.
    """
    for named in _named(path):
        if named.identity not in (None, identity):
            _mismatch(path, "it was paid for in another ledger")
        last = len(events)
        if named.event > last:
            _mismatch(path, f"it names event {named.event}, the ledger ends with event {last}: its end was cut off")
        event = events[named.event - 1]
        if not event.digest.startswith(named.head):
            _mismatch(path, f"event {named.event} of the ledger is not the one that it names")
        if event.body["kind"] not in ("debit", "round"):
            _mismatch(path, f"event {named.event} of the ledger paid for nothing")


def _named(path: Path) -> frozenset[Named]:
    reader = _READERS.get(path.suffix.lower())
    if not path.is_file():
        raise UsageError.of("PS0710", f"the file {path} does not exist")
    if reader is None:
        raise UsageError.of("PS0831", f"{path} is no release", help=f"releases are {', '.join(_READERS)}")
    try:
        found = reader(path)
    except (OSError, ValueError, TypeError, KeyError, LookupError, csv.Error, RecursionError):
        # pyarrow's errors are of these kinds
        _mismatch(path, "it cannot be read as a release")
    if not found:
        _mismatch(path, "it names no ledger, as a simulation does")
    return found


def _of_document(document: Any) -> frozenset[Named]:
    found = document["ledger"]
    if found is None:
        return frozenset()
    event, head, identity = found["event"], found["head"], found["identity"]
    if set(found) != {"event", "head", "identity"} or type(event) is not int or event < 1:
        raise ValueError("no receipt")
    if _WHOLE.fullmatch(head) is None or not isinstance(identity, str):
        raise ValueError("no receipt")
    return frozenset({Named(event, head, identity)})


def _of_rows(cells: Iterable[Any]) -> frozenset[Named]:
    """Of the marks of rows; a row that names nothing makes it a file that names nothing."""
    found = set()
    for cell in set(cells):
        match = _ROW.fullmatch(cell or "")
        if match is None:
            return frozenset()
        found.add(Named(int(match["event"]), match["head"]))
    return frozenset(found)


def _place(columns: Sequence[str]) -> int:
    """The column of the ledger: the last but one."""
    if len(columns) < 3 or not columns[-2].endswith("ledger"):
        raise ValueError("no column of the ledger")
    return len(columns) - 2


def _json(path: Path) -> frozenset[Named]:
    return _of_document(json.loads(path.read_text(encoding="utf-8")))


def _csv(path: Path) -> frozenset[Named]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        place = _place(next(rows, []))
        return _of_rows(row[place] for row in rows)


def _parquet(path: Path) -> frozenset[Named]:
    import pyarrow.parquet as pq  # type: ignore[import-untyped, unused-ignore]

    table = pq.read_table(path)
    whole = _of_document(json.loads(table.schema.metadata[b"privspec"]))
    rows = _of_rows(table.column(_place(table.column_names)).to_pylist())
    return whole | rows if whole and rows else frozenset()


def _npy(path: Path) -> frozenset[Named]:
    table = np.load(path, allow_pickle=False)
    names = list(table.dtype.names or ())
    return _of_rows(str(cell) for cell in table[names[_place(names)]].reshape(-1).tolist())


_READERS: Mapping[str, Callable[[Path], frozenset[Named]]] = {
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
