"""Counts of local reports, from the files that `run` writes or that people's devices sent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import VerificationError
from privspec.execute.data import located
from privspec.execute.drawing import NO_PLACE, Labels, TableLaw
from privspec.execute.family import Progress, silent
from privspec.execute.keeper import refuse, refuse_unreadable
from privspec.execute.reading import Batches, Fields, batches
from privspec.execute.release import DIGITS, MAJOR, Release, mark_names
from privspec.execute.sources import column_names, is_frame, load_frame


def count_reports(law: TableLaw, sources: Iterable[Any], digest: str, progress: Progress = silent) -> NDArray[np.int64]:
    """How often each joint output of a table was reported (columns,).

    Args: sources, each a path, a release, or an object with one report a row; digest, of the plan.
    Raises: DataError (PS0802 to PS0808, PS0842), VerificationError (PS0843) if a file says that its reports were made
        under another plan.
    """
    counts = np.zeros(len(law.columns), dtype=np.int64)
    for source in sources:
        reports, said = _opened(located("the reports", source))
        if said not in (None, digest):
            raise _other_plan()
        counts += _count(law.columns, reports, digest, progress)
    if not counts.any():
        refuse("PS0808", "there are no reports", help="one report a row, below a line that names the columns")
    impossible = np.all([np.diff((0, *row.cumulative)) == 0 for row in law.laws], axis=0)
    if counts[impossible].any():
        refuse("PS0842", "among the reports are some that the plan gives to no value at all")
    return counts


def _count(labels: Labels, source: Any, digest: str, progress: Progress) -> NDArray[np.int64]:
    counts = np.zeros(len(labels), dtype=np.int64)
    streams = [batches(fields, source) for fields in labels.fields]
    marks = mark_names(name for fields in labels.fields for name in fields.columns)
    if set(marks) <= _columns(source):
        # rows of a release say by themselves which plan made them, however files were put together
        streams.append(_of_plan(batches(Fields(marks[-1]), source), digest[:DIGITS]))
    done = 0
    for parts in zip(*streams, strict=True):
        columns = [column for part in parts for column in part]
        codes = [atom.codes(column, strict=True) for atom, column in zip(labels.atoms, columns, strict=True)]
        different, places, how_many = np.unique(np.stack(codes, axis=1), axis=0, return_index=True, return_counts=True)
        for key, place, number in zip(different.tolist(), places.tolist(), how_many.tolist(), strict=True):
            found = None if NO_PLACE in key else labels.places.get(tuple(key))
            if found is None:
                refuse(
                    "PS0842",
                    f"report {done + place + 1} is not one that the plan can make",
                    help=f"reports are values of {', '.join(f.name for f in labels.fields)} as the spec declares them",
                )
            counts[found] += number
        done += len(columns[0])
        progress("reports read", done, None)
    return counts


def _of_plan(plans: Batches, digest: str) -> Batches:
    """No columns, batch after batch, of rows that all say that they were made under one plan.

    Raises: VerificationError PS0843.
    """
    for (said,) in plans:
        if any(str(plan) != digest for plan in said):
            raise _other_plan()
        yield []


def _other_plan() -> VerificationError:
    return VerificationError.of(
        "PS0843",
        "these reports were made under another plan",
        help="aggregate them with the plan that made them: its table says what they mean",
    )


def _opened(source: Any) -> tuple[Any, Any]:
    """Reports as `batches` takes them, and the plan that they say they were made under; None where they do not say."""
    if isinstance(source, Release):
        return dict(source.values), source.plan_sha256
    suffix = source.suffix.lower() if isinstance(source, Path) else ""
    try:
        if suffix == ".json":
            found = json.loads(source.read_text(encoding="utf-8"))
            if isinstance(found, Mapping) and isinstance(found.get("outputs"), Mapping):
                if not str(found.get("format")).startswith(MAJOR):
                    refuse("PS0842", f"these reports have another format than {MAJOR}x", help="make them again")
                return {n: o["values"] for n, o in found["outputs"].items()}, found.get("plan_sha256")
        if suffix == ".npy":
            array = np.load(source, mmap_mode="r", allow_pickle=False)
            if array.dtype.names is not None:
                return {name: array[name] for name in array.dtype.names}, None
    except (OSError, ValueError, EOFError, RecursionError, TypeError, KeyError):
        refuse_unreadable("the reports", "a release of local reports")
    return source, None


def _columns(source: Any) -> set[str]:
    """The names of a table's columns; none where it has no names."""
    if isinstance(source, Mapping):
        return set(map(str, source))
    suffixes = (".parquet", ".csv", ".tsv", ".csv.gz")
    if is_frame(source) or (isinstance(source, Path) and source.name.lower().endswith(suffixes)):
        return set(column_names("the reports", load_frame("the reports", source)))
    return set()
