"""A release and its files: complete under their final name or not there at all."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import Diagnostic, UsageError
from privspec.core.files import AtomicFile

if TYPE_CHECKING:
    from privspec.execute.ledger import Receipt

FORMAT = "privspec-release/1.0"
SIMULATION = "simulation: the noise comes from a seed, whoever knows it can take it off; no guarantee holds"
UNPROTECTED = "the spec asks for no privacy: what is released may reveal the data"


@dataclass(frozen=True, eq=False, slots=True)
class Release:
    """What leaves the keeper: outputs on their grid, and the guarantees they carry (none for a simulation).

    `outputs` are numbers, or words of a finite domain (object arrays). `columns` names the columns of an
    output that has several, where they have names of their own. `kind` is the library the data came from
    ("numpy", "polars", "pandas", "pyarrow"): `release["O"]` is of it. `warnings` are diagnostics of the run;
    they say nothing about the data. `round`, where several share a budget: "3 of 20". `ledger`: the debit that
    paid for it (none for a simulation).
    """

    plan_sha256: str
    outputs: Mapping[str, NDArray[Any]]
    guarantees: tuple[Mapping[str, Any], ...]
    grid: str | None
    private: bool
    data_rules: tuple[str, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    kind: str = "numpy"
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    round: str | None = None
    ledger: Receipt | None = None

    def __getitem__(self, name: str) -> Any:
        return _NATIVE[self.kind](self.outputs[name])

    def to_json(self) -> dict[str, Any]:
        """The JSON form of INTERFACE.md, with what was done with data that do not fit."""
        return {
            **self.statement(),
            "outputs": {name: values.tolist() for name, values in self.outputs.items()},
        }

    def statement(self) -> dict[str, Any]:
        """Everything but the outputs: what stands beside formats that hold numbers only."""
        head: dict[str, Any] = {
            "format": FORMAT,
            "plan_sha256": self.plan_sha256,
            "private": self.private,
            "guarantees": [dict(g) for g in self.guarantees],
            **({} if self.grid is None else {"grid": self.grid}),
            "data_rules": list(self.data_rules),
            **({} if self.round is None else {"round": self.round}),
            **({} if self.ledger is None else {"ledger": self.ledger.to_json()}),
        }
        if self.private:
            return head
        return {**head, "notice": SIMULATION if self.ledger is None else UNPROTECTED}


def _polars(values: NDArray[Any]) -> Any:
    import polars as pl

    return pl.Series(values) if values.ndim == 1 else pl.DataFrame(np.atleast_2d(values))


def _pandas(values: NDArray[Any]) -> Any:
    import pandas as pd  # type: ignore[import-not-found, import-untyped, unused-ignore]

    return pd.Series(values) if values.ndim == 1 else pd.DataFrame(np.atleast_2d(values))


def _pyarrow(values: NDArray[Any]) -> Any:
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    if values.ndim == 1:
        return pa.array(values)
    return pa.table({f"column_{j}": column for j, column in enumerate(np.atleast_2d(values).T)})


_NATIVE: Mapping[str, Callable[[NDArray[Any]], Any]] = {
    "numpy": lambda values: values,
    "polars": _polars,
    "pandas": _pandas,
    "pyarrow": _pyarrow,
}


def kind_of(source: Any) -> str:
    """The library an object comes from, "numpy" for anything else (paths, lists)."""
    library = type(source).__module__.split(".")[0]
    return library if library in _NATIVE else "numpy"


def columns(release: Release) -> dict[str, NDArray[Any]]:
    """The outputs as columns of one table.

    Outputs of one length stand side by side, a matrix as a column for each of its columns ("O[0]"); outputs
    of different lengths below one another with the columns `output`, `index`, `value`. Columns with names of
    their own have these.
    """
    flat = {name: np.atleast_1d(v) for name, v in release.outputs.items()}
    flat = {name: v.reshape(v.shape[0], -1) for name, v in flat.items()}
    if len({v.shape[0] for v in flat.values()}) == 1:
        return {
            title: v[:, j] for name, v in flat.items() for j, title in enumerate(_titles(release, name, v.shape[1]))
        }
    return {
        "output": np.concatenate([np.full(v.size, name) for name, v in flat.items()]),
        "index": np.concatenate([np.arange(v.size) for v in flat.values()]),
        "value": np.concatenate([v.reshape(-1) for v in flat.values()]),
    }


def _titles(release: Release, name: str, width: int) -> Sequence[str]:
    if release.outputs[name].ndim > 1 and len(release.columns.get(name, ())) == width:
        return release.columns[name]
    return [name] if width == 1 else [f"{name}[{j}]" for j in range(width)]


LINES = 65_536
"""Lines of a text file that are held at once."""


def _json(release: Release) -> Iterator[bytes]:
    pieces = json.JSONEncoder(indent=1).iterencode(release.to_json())
    while part := "".join(islice(pieces, LINES)):
        yield part.encode()
    yield b"\n"


def _csv(release: Release) -> Iterator[bytes]:
    table = columns(release)
    yield (",".join(_quoted(name) for name in table) + "\n").encode()
    length = max((len(c) for c in table.values()), default=0)
    for start in range(0, length, LINES):
        part = [c[start : start + LINES].tolist() for c in table.values()]
        yield "".join(",".join(_quoted(str(value)) for value in row) + "\n" for row in zip(*part, strict=True)).encode()


def _quoted(text: str) -> str:
    plain = not any(mark in text for mark in ',"\n')
    return text if plain else '"' + text.replace('"', '""') + '"'


def _parquet(release: Release) -> Iterator[bytes]:
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
    import pyarrow.parquet as pq  # type: ignore[import-untyped, unused-ignore]

    table = pa.table(columns(release))
    table = table.replace_schema_metadata({"privspec": json.dumps(release.statement())})
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    yield buffer.getvalue()


def _npy(release: Release) -> Iterator[bytes]:
    buffer = io.BytesIO()
    np.save(buffer, next(iter(release.outputs.values())), allow_pickle=False)
    yield buffer.getvalue()


def _npz(release: Release) -> Iterator[bytes]:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **dict(release.outputs))
    yield buffer.getvalue()


_WRITERS: Mapping[str, Callable[[Release], Iterator[bytes]]] = {
    ".json": _json,
    ".csv": _csv,
    ".parquet": _parquet,
    ".npy": _npy,
    ".npz": _npz,
}
_NUMBERS_ONLY = (".npy", ".npz")
_WITH_STATEMENT = (".json", ".parquet")


class ReleaseFile:
    """The file of a release, and beside formats without room for it `NAME.guarantee.json`.

    Use as a context: entering checks the suffix and that the folder can be written to.
    Raises: UsageError (PS0713, PS0831).
    """

    def __init__(self, path: Path, outputs: int, words: Sequence[str] = ()) -> None:
        self.path, suffix = path, path.suffix.lower()
        if suffix not in _WRITERS:
            raise UsageError(Diagnostic("PS0831", f"no writer for {path.name}", help=f"use {', '.join(_WRITERS)}"))
        if suffix == ".npy" and outputs > 1:
            raise UsageError(
                Diagnostic("PS0831", f"a .npy file holds one output, this plan has {outputs}", help="use .npz")
            )
        if suffix in _NUMBERS_ONLY and words:
            raise UsageError(
                Diagnostic(
                    "PS0831",
                    f"a {suffix} file holds numbers, and {words[0]} is a word",
                    help="use .json, .csv or .parquet",
                )
            )
        self._write = _WRITERS[suffix]
        self._file = AtomicFile(path)
        statement = path.with_name(path.name + ".guarantee.json")
        self._statement = None if suffix in _WITH_STATEMENT else AtomicFile(statement)

    def __enter__(self) -> Self:
        self._file.__enter__()
        if self._statement is not None:
            self._statement.__enter__()
        return self

    def commit(self, release: Release) -> None:
        """Write the guarantee first: numbers never stand without it."""
        content = self._write(release)
        if self._statement is not None:
            self._statement.commit((json.dumps(release.statement(), indent=1) + "\n").encode())
        self._file.commit(content)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.__exit__(kind, error, trace)
        if self._statement is not None:
            self._statement.__exit__(kind, error, trace)


def write_release(release: Release, path: Path) -> None:
    """Write a release to a file, by its suffix: .json, .csv, .parquet, .npy or .npz.

    Raises: UsageError (PS0713, PS0831).
    """
    words = [name for name, values in release.outputs.items() if values.dtype == object]
    with ReleaseFile(path, len(release.outputs), words) as file:
        file.commit(release)
