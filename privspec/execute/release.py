"""A release and its files: tidy, complete in themselves, and under their final name whole or not at all."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from html import escape
from itertools import islice
from math import prod
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from privspec.core.columns import Cells, Column
from privspec.core.diagnostics import Diagnostic, UsageError
from privspec.core.files import PRIVATE, STANDARD, AtomicFile, StandardOutput
from privspec.core.records import dataclass, field, replace
from privspec.execute.budget import names_of
from privspec.execute.reading import number
from privspec.execute.receipts import is_paid
from privspec.execute.sources import load_json
from privspec.model.targets import Labels, column, numbered

if TYPE_CHECKING:
    from privspec.execute.ledger import Receipt

MAJOR = "privspec-release/2."
FORMAT = MAJOR + "0"
SIMULATION = "simulation: the noise comes from a seed, whoever knows it can take it off; no guarantee holds"
BARE = "no line of the spec protects {}: what is released of it may reveal the data"
UNPROTECTED = "the spec asks for no privacy: what is released may reveal the data"
DIGITS = 32
"""Digits of the plan's digest in each row."""
ANYONE = "anyone"
Columns = dict[str, NDArray[Any]]
"""A table: columns of one length by name."""


@dataclass(frozen=True, eq=False, slots=True)
class Release:
    """What leaves the keeper: outputs on their grid, and the guarantees they carry (none for a simulation).

    `values` are numbers, or words of a finite domain (object arrays). `kind` is the library the data came from
    ("numpy", "polars", "pandas", "pyarrow"): `outputs` and `table` are of it. `private`: the noise was drawn as the
    plan says, and there is a guarantee; `unprotected` are the outputs that hide next to nothing of an input all the
    same, since no line of the spec names them for it: their rows are not called private. `labels` and `deviations` by
    output: what each number is about, and the standard deviation of its noise where the plan alone fixes one.
    `reports`: every row of the outputs is one person's, and `columns` names the columns of an output with several
    values. `observers`: who is given which outputs, where not everybody is given all of them. `warnings` are
    diagnostics of the run; they say nothing about the data. `round`, where several share a budget: "3 of 20". `ledger`:
    the debit that paid for it (none for a simulation, nor for what parties' messages add up to: these have
    `ledgers`). `skipped`: outputs that were not drawn, because the released value that they depend on is 0.
    """

    plan_sha256: str
    values: Mapping[str, NDArray[Any]]
    guarantees: tuple[Mapping[str, Any], ...]
    grid: str | None
    private: bool
    data_rules: tuple[str, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    kind: str = "numpy"
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    round: str | None = None
    ledger: Receipt | None = None
    ledgers: tuple[Receipt, ...] = ()
    """What each party paid for its message, of a release that is made of these."""
    labels: Mapping[str, Labels] = field(default_factory=dict)
    deviations: Mapping[str, Cells] = field(default_factory=dict)
    reports: bool = False
    observers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unprotected: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    called: Mapping[str, str] = field(default_factory=dict)
    """The labels that the spec gives outputs."""
    bias: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Which way outputs are moved besides their noise, by what is done with data that do not fit: "left_out"; "pulled"
    towards public values, by how much at most."""

    def __getitem__(self, name: str) -> Any:
        """An output in the library of the data: a vector as its series or array, a matrix as its frame or table."""
        values = self.values[name]
        return _LIBRARIES[self.kind]().values(values, [name, *self._titles(name)])

    @property
    def outputs(self) -> dict[str, Any]:
        """All outputs by name, in the library of the data."""
        return {name: self[name] for name in self.values}

    def table(self) -> Any:
        """The rows of its files as one table in the library of the data: a structured array, a frame, an Arrow table.

            >>> from privspec import load
            >>> plan = load("prefix_sums").solve(n=4)
            >>> release = plan.run({"x": [0.5, 0.25, 1, 0]}, ledger="rows.ledger.db", new_ledger=True)
            >>> "value" in release.table().dtype.names, len(release.table())
            (True, 4)

        One row per number: output, labels, value, standard_deviation (of its noise), and which way it is moved besides,
        by what is left out, clipped, not listed or pulled; or one row per report. Every row says whether it
        is private, which event and head of the ledger paid for it, and which plan made it.
        """
        return _LIBRARIES[self.kind]().table(self.rows())

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} ({values.size:,})" for name, values in self.values.items())
        return f"<Release of plan {self.plan_sha256[:DIGITS]}: {sizes}; {self.notice or 'private'}>"

    def _repr_html_(self) -> str:
        """Its first rows, as a notebook shows them."""
        rows = {title: ["" if c is None else str(c) for c in column[:SHOWN]] for title, column in self.rows().items()}
        head = "".join(f"<th>{escape(title)}</th>" for title in rows)
        lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in zip(*rows.values(), strict=True))
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f"<p>{escape(repr(self)[1:-1])}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def seen_by(self, observer: str) -> Release:
        """What one of the `observers` is given, with the guarantees about it.

        Raises: KeyError if there is no such observer.
        """
        names = self.observers[observer]
        return replace(
            self,
            values={name: self.values[name] for name in self.values if name in names},
            guarantees=tuple(g for g in self.guarantees if _concerns(g, observer, names)),
            observers={},
            unprotected=tuple(name for name in self.unprotected if name in names),
            skipped=tuple(name for name in self.skipped if name in names),
        )

    def rows(self) -> Columns:
        """The rows of its files, column by column."""
        return {title: np.asarray(one) for title, one in self.in_columns().items()}

    def in_columns(self) -> dict[str, Column]:
        """The same, laid out as they are asked for."""
        body = self._reports() if self.reports else self._numbers()
        length = max(map(len, body.values()), default=0)
        mark = " ".join(one.mark for one in ((self.ledger,) if self.ledger else self.ledgers)) or None
        marks = (self._private(length), Column.same(mark, length), Column.same(self.plan_sha256[:DIGITS], length))
        return {**body, **dict(zip(mark_names(body), marks, strict=True))}

    def _private(self, length: int) -> Column:
        """Whether each row is private; a report is so as a whole."""
        if not self.private or not self.unprotected or self.reports:
            return Column.same(self.private and not self.unprotected, length)
        each = (Column.same(name not in self.unprotected, values.size) for name, values in self.values.items())
        return Column.joined(each)

    def _reports(self) -> dict[str, Column]:
        return {
            title: Column.of(values.reshape(len(values), -1)[:, j])
            for name, values in self.values.items()
            for j, title in enumerate(self._titles(name) or [name])
        }

    def _numbers(self) -> dict[str, Column]:
        labels = {name: self._labels(name) for name in self.values}
        names = dict.fromkeys(title for found in labels.values() for title in found)
        sizes = {name: values.size for name, values in self.values.items()}
        table = {"output": Column.joined(Column.same(name, size) for name, size in sizes.items())}
        if any(name in self.called for name in sizes):
            table["called"] = Column.joined(Column.same(self.called.get(name), size) for name, size in sizes.items())
        for title in names:
            parts = [labels[name].get(title, Column.same(None, size)) for name, size in sizes.items()]
            table[_free(title, (*_TITLES, *table, *MARKS), "{}_label")] = Column.joined(parts)
        table["value"] = Column.joined(_plain_numbers(Column.of(one.reshape(-1))) for one in self.values.values())
        table["standard_deviation"] = Column.joined(
            self._deviations(name) or Column.same(None, size) for name, size in sizes.items()
        )
        for done, ways in self.bias.items():
            moves = {
                name: ways[name] for name, values in self.values.items() if name in ways and values.dtype != object
            }
            if moves:
                moved = (Column.same(moves.get(name), size) for name, size in sizes.items())
                table[_free(done, (*table, *MARKS), "{}_bias")] = Column.joined(moved)
        return table

    def _labels(self, name: str) -> dict[str, Column]:
        """The labels of an output; places where there are none that fit."""
        values = self.values[name]
        found = self.labels.get(name, {})
        fit = all(len(labels) == values.size for labels in found.values())
        chosen = found if fit and (found or values.size == 1) else numbered(values.shape)
        return {title: Column.of(labels) for title, labels in chosen.items()}

    def _deviations(self, name: str) -> Column | None:
        """The deviations of the numbers of an output, where there are some that fit."""
        found = self.deviations.get(name)
        if found is None:
            return None
        laid_out = found if isinstance(found, Column) else Column.of(found.reshape(-1))
        return laid_out if len(laid_out) == self.values[name].size else None

    def _titles(self, name: str) -> list[str]:
        """The names of the columns of an output that is no single column."""
        values = self.values[name]
        if values.ndim < 2:
            return []
        width = prod(values.shape[1:])
        own = self.columns.get(name, ())
        return list(own) if len(own) == width else [f"{name}_{j + 1}" for j in range(width)]

    def to_json(self, listed: Callable[[Column], Any] = Column.tolist) -> dict[str, Any]:
        """The JSON form of INTERFACE.md, with what was done with data that do not fit.

        Args: listed, how columns are listed.
        """
        return {**self.statement(), "outputs": {name: self._document(name, listed) for name in self.values}}

    def _document(self, name: str, listed: Callable[[Column], Any]) -> dict[str, Any]:
        values = self.values[name]
        private = self.private and name not in self.unprotected
        if self.reports:
            return {"labels": {}, "values": values.tolist(), "private": private}
        deviations = self._deviations(name)
        called = {"called": self.called[name]} if name in self.called else {}
        return called | {
            "labels": {title: listed(labels) for title, labels in self._labels(name).items()},
            "values": listed(Column.of(values.reshape(-1))),
            "standard_deviation": None if deviations is None else listed(deviations),
            **(
                {"bias": bias}
                if (bias := {done: ways[name] for done, ways in self.bias.items() if name in ways})
                else {}
            ),
            "private": private,
        }

    def statement(self) -> dict[str, Any]:
        head: dict[str, Any] = {
            "format": FORMAT,
            "plan_sha256": self.plan_sha256,
            "private": self.private and not self.unprotected,
            "ledger": None if self.ledger is None else self.ledger.to_json(),
            **({} if not self.ledgers else {"ledgers": [one.to_json() for one in self.ledgers]}),
            "guarantees": [dict(g) for g in self.guarantees],
            **({} if self.grid is None else {"grid": self.grid}),
            "data_rules": list(self.data_rules),
            **({} if self.round is None else {"round": self.round}),
            **({} if not self.skipped else {"not_drawn": list(self.skipped)}),
            **({} if not self.observers else {"observers": {w: list(names) for w, names in self.observers.items()}}),
        }
        notice = self.notice
        return head if notice is None else {**head, "notice": notice}

    @property
    def notice(self) -> str | None:
        """Why it, or some of it, is not private; None if all of it is."""
        if self.private:
            return BARE.format(", ".join(self.unprotected)) if self.unprotected else None
        return SIMULATION if self.ledger is None else UNPROTECTED


def document_of(release: Release | Path | str | Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The document of a release, of its file (.json) or as it is; None of what is not of the form of releases.

    Raises: DataError PS0803 for a file that holds no JSON.
    """
    found = load_json("the release", Path(release)) if isinstance(release, str | Path) else release
    document = found.to_json() if isinstance(found, Release) else found
    if not isinstance(document, Mapping) or not str(document.get("format")).startswith(MAJOR):
        return None
    outputs = document.get("outputs")
    known = isinstance(outputs, Mapping) and all(isinstance(one, Mapping) for one in outputs.values())
    return document if known else None


SHOWN = 20
"""Rows of a release that a notebook shows."""
_TITLES = ("output", "value", "standard_deviation")
MARKS = ("private", "ledger", "plan")
"""The last columns: whether the row is private, event and head of the ledger, the plan's digest."""


def mark_names(taken: Iterable[str]) -> list[str]:
    """The names of the last columns beside columns with other names."""
    names = tuple(taken)
    return [_free(mark, names, "release_{}") for mark in MARKS]


def _free(name: str, taken: tuple[str, ...], form: str) -> str:
    while name in taken:
        name = form.format(name)
    return name


def _plain_numbers(values: Column) -> Column:
    """Values of one kind: numbers where no word is among them."""
    pieces = values.pieces if values.dtype == object else ()
    plain = (replace(piece, values=column(piece.values.tolist())) for piece in pieces)
    return Column(tuple(plain)) if pieces else values


def _concerns(guarantee: Mapping[str, Any], observer: str, names: tuple[str, ...]) -> bool:
    """Whether a guarantee is about what an observer is given: its own lines, those of its coalitions, those for all."""
    who = str(guarantee["observer"])
    about = set(names_of(guarantee["outputs"])) & set(names)
    return bool(about) and (who == ANYONE or not set(observer.split(" and ")).isdisjoint(who.split(" and ")))


def observers_of(guarantees: Iterable[Mapping[str, Any]], outputs: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Who is given which outputs; nobody by name where everybody is given all of them.

    A line for somebody alone says what they are given. A coalition is given something of its own only where the lines
    of its members do not add up to it. What is left, and what has lines for anyone, is for anyone.
    """
    seen: dict[str, set[str]] = {}
    for guarantee in guarantees:
        seen.setdefault(str(guarantee.get("observer", ANYONE)), set()).update(names_of(guarantee["outputs"]))
    public = seen.pop(ANYONE, set())
    given = {
        who: names
        for who, names in seen.items()
        if " and " not in who or not names <= set().union(*(seen.get(one, set()) for one in who.split(" and ")))
    }
    rest = public | (set(outputs) - set().union(*given.values()))
    found = {**given, **({ANYONE: rest} if rest else {})}
    if len(found) < 2 or not set().union(*found.values()) <= set(outputs):
        return {}
    return {who: tuple(name for name in outputs if name in names) for who, names in found.items()}


def places(path: Path, observers: Iterable[str]) -> dict[str, Path]:
    """The file of each observer: release.csv for alice is release.alice.csv."""
    return {who: path.with_name(f"{path.stem}.{who.replace(' and ', '-and-')}{path.suffix}") for who in observers}


# --- in the library of the data -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Library:
    """How a library holds an output (given its name, then the names of its columns), and a table."""

    values: Callable[[NDArray[Any], list[str]], Any]
    table: Callable[[Columns], Any]


def _structured(table: Columns) -> NDArray[Any]:
    """A structured array: a text where a label is missing is empty, a number is not a number."""
    ready = {title: _plain(title, values) for title, values in table.items()}
    length = max((len(values) for values in ready.values()), default=0)
    found = np.empty(length, dtype=[(title, values.dtype) for title, values in ready.items()])
    for title, values in ready.items():
        found[title] = values
    return found


def _plain(title: str, values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype != object:
        return values
    if title == "standard_deviation":
        return values.astype(np.float64)
    return np.array(["" if value is None else str(value) for value in values.tolist()], dtype=np.str_)


def _listed(values: NDArray[Any]) -> Any:
    return values.tolist() if values.dtype == object else values


def _wide(values: NDArray[Any], titles: list[str]) -> Columns:
    flat = values.reshape(len(values), -1)
    return {title: flat[:, j] for j, title in enumerate(titles)}


def _by(series: Callable[[str, Any], Any], frame: Callable[[dict[str, Any]], Any]) -> _Library:
    """A library of series and frames; a single number stays one."""

    def values(found: NDArray[Any], names: list[str]) -> Any:
        if found.ndim == 0:
            return found.item()
        if found.ndim == 1:
            return series(names[0], _listed(found))
        return table(_wide(found, names[1:]))

    def table(columns: Columns) -> Any:
        return frame({title: _listed(found) for title, found in columns.items()})

    return _Library(values, table)


def _polars() -> _Library:
    import polars as pl

    return _by(pl.Series, pl.DataFrame)


def _pandas() -> _Library:
    import pandas as pd  # type: ignore[import-not-found, import-untyped, unused-ignore]

    return _by(lambda name, found: pd.Series(found, name=name), pd.DataFrame)


def _pyarrow() -> _Library:
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    return _by(lambda _, found: pa.array(found), pa.table)


_LIBRARIES: Mapping[str, Callable[[], _Library]] = {
    "numpy": lambda: _Library(lambda values, _: values, _structured),
    "polars": _polars,
    "pandas": _pandas,
    "pyarrow": _pyarrow,
}
"""Libraries by name, imported when an output is asked for."""


def kind_of(sources: Iterable[Any]) -> str:
    """The library of the first object that comes from one, "numpy" for anything else (paths, lists)."""
    libraries = (type(source).__module__.split(".")[0] for source in sources)
    return next((library for library in libraries if library in _LIBRARIES), "numpy")


# --- files ----------------------------------------------------------------------------------------


LINES = 65_536
"""Lines of a file that are held at once."""


class _Listed(list[Any]):
    """A column as a list of JSON, laid out as it is written."""

    def __init__(self, column: Column) -> None:
        super().__init__()
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def __iter__(self) -> Iterator[Any]:
        for block in _blocks({"": self._column}):
            yield from block[0].tolist()


def _blocks(table: Mapping[str, Column]) -> Iterator[list[NDArray[Any]]]:
    """The cells of some lines, column by column."""
    for start in range(0, max(map(len, table.values()), default=0), LINES):
        yield [one.cells(start, start + LINES) for one in table.values()]


def _json(release: Release) -> Iterator[bytes]:
    pieces = json.JSONEncoder(indent=1).iterencode(release.to_json(_Listed))
    while part := "".join(islice(pieces, LINES)):
        yield part.encode()
    yield b"\n"


def _csv(release: Release) -> Iterator[bytes]:
    table = release.in_columns()
    yield (",".join(_quoted(name) for name in table) + "\n").encode()
    # what says the same in every row is written out once
    cells = [one.pieces[0].values if len(one.pieces) == 1 else np.zeros(0) for one in table.values()]
    same = [_cell(one.tolist()[0]) if len(one) == 1 else None for one in cells]
    own = [j for j, cell in enumerate(same) if cell is None]
    first, last = (own[0], own[-1]) if own else (0, len(same) - 1)
    head, tail = "".join(f"{cell}," for cell in same[:first]), "".join(f",{cell}" for cell in same[last + 1 :])
    for part in _blocks(table):
        written = [_cells(one.tolist()) for one in part[first : last + 1]]
        lines = map(",".join, zip(*written, strict=True)) if len(written) > 1 else written[0]
        yield (head + f"{tail}\n{head}".join(lines) + tail + "\n").encode()


FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""


def _cells(values: list[Any]) -> list[str]:
    """The cells of a column; of texts and truths it holds few different ones, each written out once."""
    kinds = set(map(type, values))
    if len(kinds) > 1 or not kinds <= {str, bool}:
        return [_cell(value) for value in values]
    known = {value: _cell(value) for value in set(values)}
    return [known[value] for value in values]


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value.startswith(FORMULA) and number(value) != number(value):
        value = f"'{value}"  # a text, whatever it says
    return "" if value is None else _quoted(str(value))


def _quoted(text: str) -> str:
    plain = not any(mark in text for mark in ',"\r\n')
    return text if plain else '"' + text.replace('"', '""') + '"'


class _Sink(io.RawIOBase):
    """Takes what a library writes to a file, for who asks for it piece by piece."""

    def __init__(self) -> None:
        super().__init__()
        self._written, self._at = bytearray(), 0

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        size = memoryview(content).nbytes
        self._written += content
        self._at += size
        return size

    def tell(self) -> int:
        return self._at

    def taken(self) -> bytes:
        """What was written since this was asked last."""
        found = bytes(self._written)
        self._written.clear()
        return found


def _parquet(release: Release) -> Iterator[bytes]:
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
    import pyarrow.parquet as pq  # type: ignore[import-untyped, unused-ignore]

    kinds = {"standard_deviation": pa.float64(), "ledger": pa.string()}

    def kind(title: str, one: Column) -> Any:
        if one.dtype != object:
            return pa.from_numpy_dtype(one.dtype)
        found = pa.array([cell for piece in one.pieces for cell in piece.values.tolist()]).type
        return kinds.get(title, found)

    table, sink = release.in_columns(), _Sink()
    schema = pa.schema([(title, kind(title, one)) for title, one in table.items()])
    schema = schema.with_metadata({"privspec": json.dumps(release.statement())})
    with pq.ParquetWriter(sink, schema) as writer:
        for part in _blocks(table):
            cells = [pa.array(_listed(one), field.type) for one, field in zip(part, schema, strict=True)]
            writer.write_table(pa.Table.from_arrays(cells, schema=schema))
            yield sink.taken()
    yield sink.taken()


def _npy(release: Release) -> Iterator[bytes]:
    table = release.in_columns()
    length = max(map(len, table.values()), default=0)
    kind = np.dtype([(title, _plain_kind(title, one)) for title, one in table.items()])
    yield _npy_head(kind, length)
    for part in _blocks(table):
        found = np.empty(len(part[0]), dtype=kind)
        for title, cells in zip(table, part, strict=True):
            found[title] = _plain(title, cells)
        yield found.tobytes()


def _plain_kind(title: str, one: Column) -> np.dtype[Any]:
    if one.dtype != object or title == "standard_deviation":
        return np.dtype(float) if one.dtype == object else one.dtype
    return np.result_type(*(_plain(title, piece.values.astype(object)).dtype for piece in one.pieces), "<U1")


def _npy_head(kind: np.dtype[Any], length: int) -> bytes:
    """The beginning of an NPY file of so many records: that of an empty one, which leaves room for any length."""
    empty = io.BytesIO()
    np.save(empty, np.empty(0, dtype=kind), allow_pickle=False)
    described, _, rest = empty.getvalue().rpartition(b"(0,)")
    shape = b"(%d,)" % length
    return described + shape + rest[: 3 - len(shape)] + b"\n"


LONGEST = float.fromhex("-0x1.0p-1022")
"""A double that takes as many signs as any, and where the room for a file is reckoned, all of them."""
_HEAD, _GROUP = 2**16, 2**10
"""Bytes beside the cells and the statement of a file at most; and of a column, or of its part in some lines."""


def _signs(column: Column) -> int:
    """Signs that its cells take at most, in quotes and with what stands in place of some."""
    found = 0
    for piece in column.pieces:
        values = piece.values
        if values.dtype == object:
            each = max((len(json.dumps(str(one))) for one in set(values.tolist()) if one is not None), default=0)
        else:
            ends = [values.min(), values.max()] if len(values) and values.dtype.kind in "iu" else [LONGEST]
            each = max(len(str(one)) for one in ends)
        found += piece.size * each
    return found


def _text_room(release: Release) -> int:
    return sum(_signs(one) + len(one) + _GROUP for one in release.in_columns().values())


def _parquet_room(release: Release) -> int:
    """Few different values stand once in a dictionary of some lines, with two bytes a cell."""
    found = 0
    for one in release.in_columns().values():
        different = Column(tuple(replace(piece, size=len(piece.values)) for piece in one.pieces))
        groups, listed = 1 + len(one) // LINES, _signs(different)
        few = len(different) <= 2**12 and listed < 2**19
        found += (
            groups * (2 * _GROUP + listed) + 4 * len(one) if few else _signs(one) + 9 * len(one) + 2 * groups * _GROUP
        )
    return found


def _json_room(release: Release) -> int:
    """Each cell stands in a line of its own: five blanks, it, a comma; or `null`."""
    columns: list[Column] = list(release.in_columns().values()) if release.reports else []
    if not columns:
        release.to_json(columns.append)
    return sum(_signs(one) + len("     null,\n") * len(one) for one in columns)


def _npy_room(release: Release) -> int:
    table = release.in_columns()
    return sum(_plain_kind(title, one).itemsize * len(one) for title, one in table.items())


@dataclass(frozen=True, slots=True)
class _Writer:
    """How a release is written, and the bytes that its cells take at most."""

    write: Callable[[Release], Iterator[bytes]]
    room: Callable[[Release], int]


_WRITERS: Mapping[str, _Writer] = {
    ".json": _Writer(_json, _json_room),
    ".csv": _Writer(_csv, _text_room),
    ".parquet": _Writer(_parquet, _parquet_room),
    ".npy": _Writer(_npy, _npy_room),
}


class ReleaseFiles:
    """The file of a release or, where not everybody is given all of it, one for each observer.

    Every file says by itself, in every row, whether it is private. All are written and forced to disk before the first
    gets its name. Use as a context: entering checks the suffix and that the folder can be written to. `-` is the
    standard output: all of the release, as JSON.
    Args: mode, the permissions of the files; force, whether a release that was paid for may be replaced.
    Raises: UsageError (PS0713, PS0831, PS0833).
    """

    def __init__(self, path: Path, observers: Iterable[str] = (), mode: int = PRIVATE, *, force: bool = False) -> None:
        printed = str(path) == STANDARD
        writer = _WRITERS.get(".json" if printed else path.suffix.lower())
        if writer is None:
            raise UsageError.of("PS0831", f"no writer for {path.name}", help=f"use {', '.join(_WRITERS)}")
        self._writer, self._force = writer, force
        self._single = StandardOutput() if printed else AtomicFile(path, mode)
        apart = {} if printed else places(path, observers)
        self._each = {who: AtomicFile(place, mode) for who, place in apart.items()}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        for file in () if self._force else self._files:
            if is_paid(file.path):
                raise UsageError.of(
                    "PS0833",
                    f"{file.path} is a release that was paid for, and would be replaced",
                    "nothing was drawn and nothing was spent",
                    help="write to another file with -o, or replace it with --force (force=True in Python)",
                )
        with ExitStack() as stack:
            for file in self._files:
                stack.enter_context(file)
            self._open = stack.pop_all()
        return self

    @property
    def _files(self) -> list[AtomicFile]:
        return list(self._each.values()) or [self._single]

    @property
    def paths(self) -> list[Path]:
        return [file.path for file in self._files]

    def _parts(self, release: Release) -> Iterator[tuple[AtomicFile, Release]]:
        """Each file with what it holds of a release."""
        yield from ((file, release.seen_by(who)) for who, file in self._each.items())
        if not self._each:
            yield self._single, release

    def reserve(self, release: Release) -> None:
        """Take room on disk for a release with values as long as these, or longer than any.

        Raises: UsageError PS0713 if there is not so much.
        """
        for file, part in self._parts(release):
            statement = len(json.dumps(part.statement(), indent=1))
            file.reserve(_HEAD + 2 * statement + self._writer.room(part))

    def commit(self, release: Release) -> None:
        """Write the release, each observer's part of it where there are several.

        Raises: UsageError PS0713.
        """
        for file, part in self._parts(release):
            file.write(self._writer.write(part))
        for file in self._files:
            _remove_statement(file.path)
            file.place()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)


def _remove_statement(path: Path) -> None:
    """Take away what the first format put beside a file: it says of other numbers that they are private."""
    beside = path.with_name(path.name + ".guarantee.json")
    with contextlib.suppress(OSError, ValueError, AttributeError, RecursionError):
        if str(json.loads(beside.read_text(encoding="utf-8")).get("format")).startswith("privspec-release/1."):
            beside.unlink()


def write_release(release: Release, path: Path, mode: int = PRIVATE, *, force: bool = False) -> None:
    """Write a release to its file or files, by the suffix: .json, .csv, .parquet or .npy; `-` is standard output.

    Args: mode, force, as for `ReleaseFiles`.
    Raises: UsageError (PS0713, PS0831, PS0833).
    """
    with ReleaseFiles(path, release.observers, mode, force=force) as files:
        files.commit(release)
