"""Local reports: every record of the data is one person's, and each gets a draw of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from privspec.execute.data import located
from privspec.execute.family import Circumstances, Drawn, Progress, Secret
from privspec.execute.finite.atoms import NO_PLACE
from privspec.execute.finite.rows import Rows, Variable
from privspec.execute.finite.table import BATCH, TableLaw, small
from privspec.execute.problems import STRICT_RULE, refuse
from privspec.execute.randomness import Randomness
from privspec.execute.records import batches

Codes = NDArray[np.unsignedinteger[Any]]

REPORT_RULE = (
    "each record by itself: a number moves to the nearest value of its domain (halfway, to the larger), a missing or "
    "unreadable number to the value nearest to zero; a word that is missing or not in its set becomes the set's first"
)


@dataclass(frozen=True, eq=False, slots=True)
class LocalReports:
    """A table between people's values and their reports, with a text for each value."""

    law: TableLaw
    values: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Reports(Secret):
    """The rows that the records pick (n,)."""

    law: TableLaw
    chosen: Codes
    circumstances: Circumstances

    @property
    def rules(self) -> tuple[str, ...]:
        """What was done with values outside their domains."""
        return (STRICT_RULE,) if self.circumstances.strict else (REPORT_RULE,)

    def draw(self, randomness: Randomness) -> Drawn:
        """One report for each record, in order."""
        drawn = self.law.draw(self.chosen, randomness, self.circumstances.progress)
        columns = {f.name: f.columns for f in self.law.columns.fields if f.size is not None}
        return Drawn(
            {name: values[drawn] for name, values in self.law.columns.values().items()}, None, columns, reports=True
        )


def read_reports(law: TableLaw, rows: Rows, data: Mapping[str, Any], circumstances: Circumstances) -> Reports:
    """Reads one record a row; what is held of it is the number of its table row (one or two bytes).

    An input without data of its own takes its columns from the only data there are.
    Raises: DataError (PS0802 to PS0809), whose messages name a record by its number and never show a value.
    """
    encoded = encode(rows, data, circumstances)
    chosen = _choose_rows(rows, list(encoded.values()), len(law.rows))
    if not len(chosen):
        refuse("PS0808", "there are no records", help="one record a row, below a line that names the columns")
    return Reports(law, chosen, circumstances)


def encode(rows: Rows, data: Mapping[str, Any], circumstances: Circumstances) -> dict[str, Codes]:
    """The place of each value in its domain (n, places), by variable.

    Raises: DataError (PS0802 to PS0809).
    """
    encoded = {}
    for variable in rows.variables:
        name = variable.fields.name
        encoded[name] = _encode(variable, located(name, _source(name, data)), circumstances)
    lengths = {name: len(codes) for name, codes in encoded.items()}
    if len(set(lengths.values())) > 1:
        refuse(
            "PS0808",
            "the inputs have different numbers of records: " + ", ".join(f"{n} {k}" for n, k in lengths.items()),
            help="record i of every input belongs to the same person",
        )
    return encoded


def _source(name: str, data: Mapping[str, Any]) -> Any:
    if name in data:
        return data[name]
    if len(data) == 1:
        return next(iter(data.values()))
    return refuse("PS0801", f"no data for the input {name}", help=f"give --input {name}=FILE")


def _encode(variable: Variable, source: Any, circumstances: Circumstances) -> Codes:
    """The place of each value in its domain (n, places)."""
    kind = small(max(len(atom.elements) for atom in variable.atoms))
    parts: list[Codes] = []
    done = 0
    progress: Progress = circumstances.progress
    name, strict = variable.fields.name, circumstances.strict
    fits_of = [
        atom.fit(circumstances.keeper, name, column)
        for atom, column in zip(variable.atoms, variable.fields.columns, strict=True)
    ]
    for columns in batches(variable.fields, source, header=circumstances.header):
        found = [
            atom.codes(column, strict=strict, fit=fit)
            for atom, column, fit in zip(variable.atoms, columns, fits_of, strict=True)
        ]
        fits = np.all([codes != NO_PLACE for codes in found], axis=0)
        if not fits.all():
            _refuse_record(name, done + int(np.argmin(fits)))
        parts.append(np.stack(found, axis=1).astype(kind))
        done += len(fits)
        progress("records read", done, None)
    return np.concatenate(parts) if parts else np.zeros((0, len(variable.atoms)), dtype=kind)


def _choose_rows(rows: Rows, encoded: list[Codes], count: int) -> Codes:
    """The row of each record; each combination of values is looked up once."""
    chosen = np.empty(len(encoded[0]), dtype=small(count))
    known: dict[tuple[int, ...], int | None] = {}
    for start in range(0, len(chosen), BATCH):
        joint = np.concatenate([codes[start : start + BATCH] for codes in encoded], axis=1)
        different, places = np.unique(joint, axis=0, return_inverse=True)
        keys = [tuple(line) for line in different.tolist()]
        for key in keys:
            if key not in known:
                known[key] = rows.row(key)
        found = [known[key] for key in keys]
        # a table that names fewer rows than there are combinations of values: the first row, whoever else is there
        chosen[start : start + len(joint)] = np.array([row or 0 for row in found])[places.reshape(-1)]
    return chosen


def _refuse_record(name: str, place: int) -> NoReturn:
    """Under --strict: which record, never what stands in it."""
    refuse(
        "PS0809",
        f"record {place + 1} of {name} does not fit the declared domain, and --strict was asked for",
        "nothing was drawn and nothing was spent",
        help="without --strict a public rule is applied to every record by itself",
    )
