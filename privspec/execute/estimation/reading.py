"""Counts of local reports, from the files that `run` writes or that people's devices sent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import Diagnostic, VerificationError
from privspec.execute.data import located
from privspec.execute.family import Progress, silent
from privspec.execute.finite.atoms import NO_PLACE
from privspec.execute.finite.labels import Labels
from privspec.execute.finite.table import TableLaw
from privspec.execute.problems import refuse
from privspec.execute.records import batches
from privspec.execute.release import Release


def count_reports(law: TableLaw, sources: Iterable[Any], digest: str, progress: Progress = silent) -> NDArray[np.int64]:
    """How often each joint output of a table was reported (columns,).

    Args: sources, each a path, a release, or an object with one report a row; digest, of the plan.
    Raises: DataError (PS0802 to PS0808, PS0842), VerificationError (PS0843) if a file says that its reports were made
        under another plan.
    """
    counts = np.zeros(len(law.columns), dtype=np.int64)
    for source in sources:
        found = located("the reports", source)
        _check_digest(found, digest)
        counts += _count(law.columns, found.outputs if isinstance(found, Release) else found, progress)
    if not counts.any():
        refuse("PS0808", "there are no reports", help="one report a row, below a line that names the columns")
    impossible = np.all([np.diff((0, *row.cumulative)) == 0 for row in law.laws], axis=0)
    if counts[impossible].any():
        refuse("PS0842", "among the reports are some that the plan gives to no value at all")
    return counts


def _count(labels: Labels, source: Any, progress: Progress) -> NDArray[np.int64]:
    counts = np.zeros(len(labels), dtype=np.int64)
    streams = [batches(fields, source) for fields in labels.fields]
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


def _check_digest(source: Any, digest: str) -> None:
    said = source.plan_sha256 if isinstance(source, Release) else _statement(source).get("plan_sha256", digest)
    if said != digest:
        raise VerificationError(
            Diagnostic(
                "PS0843",
                "these reports were made under another plan",
                help="aggregate them with the plan that made them: its table says what they mean",
            )
        )


def _statement(source: Any) -> Mapping[str, Any]:
    """What a release says of itself, inside its file or beside it; nothing if it does not."""
    if not isinstance(source, Path):
        return {}
    try:
        if source.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq  # type: ignore[import-untyped, unused-ignore]

            found = json.loads((pq.read_schema(source).metadata or {}).get(b"privspec", b"{}"))
        else:
            beside = source.with_name(source.name + ".guarantee.json")
            found = json.loads((source if source.suffix.lower() == ".json" else beside).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, Mapping) else {}
