"""The long form of every diagnostic: `privspec explain-error PS0103`.

One module per family; to add a code, append an `Entry` to `ENTRIES` of its module, in order of codes. A test
finds codes that are used without an entry, and entries that are used nowhere.

    PS01xx syntax            PS06xx solve (infeasible, unbounded, solver)
    PS02xx names             PS07xx usage (files, options, constants)
    PS03xx privacy           PS08xx data (at run)
    PS04xx loss, background  PS09xx verify
    PS05xx compute (not yet) PS10xx ledger
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from privspec.core.catalogue.entry import Entry
from privspec.core.diagnostics import Diagnostic, UsageError
from privspec.core.suggest import nearest

__all__ = ["FAMILIES", "Entry", "entries", "explain_code"]

FAMILIES = {
    "PS01": "syntax",
    "PS02": "names",
    "PS03": "privacy",
    "PS04": "loss",
    "PS05": "compute",
    "PS06": "solve",
    "PS07": "usage",
    "PS08": "data",
    "PS09": "verify",
    "PS10": "ledger",
}
"""The module of every range of codes."""


@cache
def entries() -> dict[str, Entry]:
    """All entries by code, in order."""
    found: dict[str, Entry] = {}
    for family in FAMILIES.values():
        module = import_module(f"privspec.core.catalogue.{family}")
        for entry in module.ENTRIES:
            if entry.code in found:
                raise ValueError(f"{entry.code} stands in the catalogue twice")
            found[entry.code] = entry
    return dict(sorted(found.items()))


def explain_code(code: str) -> str:
    """The long form of a code, as text.

    Raises: UsageError (PS0703) for a code that does not exist.
    """
    known = entries()
    entry = known.get(code.strip().upper())
    if entry is not None:
        return entry.text()
    close = nearest(code.strip().upper(), known)
    advice = f"did you mean {close}?" if close else "codes look like PS0103"
    raise UsageError(Diagnostic("PS0703", f"there is no error {code}", help=advice))
