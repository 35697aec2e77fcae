"""What of data is sketched so that they are known again: all columns of their source, also those that no plan reads.

A text file counts as it is with its first line, and as it is without it; a folder as a whole, and each of its files; a
vector that lies in one row as one that stands. Besides, a database and the files of a Spark frame are known by their
places, whatever is chosen of them or was written to them since.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import PrivspecError
from privspec.core.records import dataclass, replace
from privspec.execute import ballots, sources
from privspec.execute.data import SUFFIXES, located
from privspec.execute.engines import records_of
from privspec.execute.fingerprint import COUNT, Seeds, Sketches
from privspec.execute.receipts import real_path
from privspec.execute.warehouse import in_spark

BATCH = 2**18
"""Rows that are held at once."""
AT_ONCE = 2**16
"""A text file of more bytes is read by columns where it is plain."""
_UNREADABLE = (PrivspecError, OSError, TypeError, ValueError, ArithmeticError, RecursionError)
"""What is no table is known by its text, or by its bytes: it was read already, as something else."""


@dataclass(frozen=True, slots=True)
class Found:
    """The tables that a source counts as, the first of them as it most likely is; and digests of where it lies."""

    tables: tuple[Sketches, ...]
    places: tuple[bytes, ...] = ()


def found_in(name: str, source: Any, seeds: Seeds, texts: sources.TextFiles = sources.AS_USUAL) -> Found:
    """What the data of an input are known by; they can be read as something."""
    places = [b"database" + os.fsencode(real_path(place)) for place in _databases(source)]
    if in_spark(source):
        places += [b"spark" + os.fsencode(file) for file in source.inputFiles()]
    try:
        tables = tuple(_tables(name, source, seeds, texts))
    except _UNREADABLE:
        whole = source.read_bytes() if isinstance(source, Path) else repr(source).encode("utf-8", "replace")
        own = Sketches(seeds)
        own.add(name, [hashlib.sha256(whole).hexdigest()])
        tables = (own,)
    return Found(tables, tuple(hashlib.sha256(place).digest() for place in places))


def _databases(source: Any) -> Iterator[Path]:
    if isinstance(source, str | Path) and (place := sources.place_on_disk(source)) != Path(source):
        yield place


def _tables(name: str, source: Any, seeds: Seeds, texts: sources.TextFiles) -> Iterator[Sketches]:
    found = located(name, source, (*SUFFIXES, *ballots.PREFLIB))
    kind = found.name.lower() if isinstance(found, Path) else ""
    if kind.endswith(ballots.PREFLIB):
        names, orders = ballots.orders_of(name, found)
        frame = orders.collect()
        words = [" ".join(names.get(word, word) for word in order.split()) for order in frame[ballots.BALLOT]]
        yield _of_rows(seeds, {ballots.BALLOT: words, COUNT: frame[COUNT].to_list()})
    elif isinstance(found, Path) and sources.is_text(found):
        said = sources.TextFiles(separator=texts.separator, decimal=texts.decimal)
        # whoever says something else of a file than before does not make it another one
        for layout in dict.fromkeys((said, sources.AS_USUAL)):
            yield from _of_text(name, found, seeds, layout)
    elif kind.endswith(".json"):
        yield _of_object(name, sources.load_json(name, found), seeds)
    elif kind.endswith(".npy"):
        yield _of_array(name, sources.load_array(name, found, mapped=True), seeds)
    elif isinstance(found, Path) or in_spark(found) or (sources.is_frame(found) and not isinstance(found, Mapping)):
        parts = list(records_of(name, found).sketches(seeds))
        whole = Sketches(seeds)
        for part in parts:
            whole.join(part)
        yield whole
        yield from parts if len(parts) > 1 else ()
    elif hasattr(found, "to_numpy") or isinstance(found, np.ndarray):
        yield _of_array(name, np.asarray(found if isinstance(found, np.ndarray) else found.to_numpy()), seeds)
    else:
        yield _of_object(name, found, seeds)


def _of_text(name: str, path: Path, seeds: Seeds, texts: sources.TextFiles) -> Iterator[Sketches]:
    """With its quoted cells over several lines if there are any, and with every line a row."""
    heard = list[str]()
    if path.stat().st_size > AT_ONCE and sources.lines_without_quotes(name, path) is not None:
        frame = sources.load_frame(name, path, texts)
        yield from _headed(
            name, path, texts, seeds, (part.get_columns() for part in sources.frames_of(name, frame, BATCH))
        )
    else:
        joined = replace(texts, quoted_newlines=True, told=lambda _, remark: heard.append(remark))
        yield from _headed(name, path, texts, seeds, _of_lines(name, path, joined))
        if heard:
            yield from _headed(name, path, texts, seeds, _of_lines(name, path, texts))


def _headed(
    name: str, path: Path, texts: sources.TextFiles, seeds: Seeds, parts: Iterator[Sequence[Any]]
) -> Iterator[Sketches]:
    """Below its first line, and with it."""
    first = [cell.strip() for cell in next(sources.rows_of_text(name, path, texts), [])]
    titles = [COUNT if title == COUNT else str(place) for place, title in enumerate(first)]
    body, head = Sketches(seeds), Sketches(seeds)
    for columns in parts:
        body.rows(dict(zip(titles, columns, strict=False)))
    yield body
    head.rows({title: [cell] for title, cell in zip(titles, first, strict=True)})
    head.join(body)
    yield head


def _of_lines(name: str, path: Path, texts: sources.TextFiles) -> Iterator[Sequence[Any]]:
    rows = sources.rows_of_text(name, path, texts)
    width = len(next(rows, []))
    while batch := list(islice(rows, BATCH)):
        yield [[row[j] if j < len(row) else None for row in batch] for j in range(width)]


def _of_rows(seeds: Seeds, columns: Mapping[str, Sequence[Any]]) -> Sketches:
    own = Sketches(seeds)
    own.rows(columns)
    return own


def _of_array(name: str, array: NDArray[Any], seeds: Seeds) -> Sketches:
    """A column for each place in a row."""
    own = Sketches(seeds)
    if array.size:
        flat = array.reshape(len(array), -1) if array.ndim else array.reshape(1, 1)
        numeric = flat.dtype.kind in "biu" or flat.dtype == np.float64
        for place in range(flat.shape[1]):
            column = np.ascontiguousarray(flat[:, place])
            own.add(f"{name}_{place + 1}", column if numeric else list(column))
    return own


def _of_object(name: str, found: Any, seeds: Seeds) -> Sketches:
    """Lists of records or of cells, and columns by their names; a release by its values."""
    outputs = sources.outputs_of(found)
    leaves: dict[str, list[Any]] = {}
    _gather(found if outputs is None else outputs, name, leaves, within=False)
    return _of_rows(seeds, leaves)


def _gather(value: Any, path: str, leaves: dict[str, Any], *, within: bool) -> None:
    """Cells under the names and places that lead to them; `within` a record."""
    if isinstance(value, Mapping):
        each = list(value.values())
        if within or any(isinstance(one, Sized) and not isinstance(one, str | bytes) for one in each):
            for key, one in value.items():
                _gather(one, str(key), leaves, within=within)
            return
        # some writers number the cells of a column
        value = each
    if hasattr(value, "dtype") and getattr(value, "ndim", 1) == 1 and not within:
        leaves[path] = value.to_numpy() if hasattr(value, "iloc") else value
    elif isinstance(value, list | tuple | np.ndarray):
        if within:
            for place, one in enumerate(value, 1):
                _gather(one, f"{path}_{place}", leaves, within=True)
        else:
            for name, cells in _of_records(value, path).items():
                leaves.setdefault(name, []).extend(cells)
    else:
        leaves.setdefault(path, []).append(value)


def _of_records(records: Iterable[Any], path: str) -> dict[str, list[Any]]:
    """Cells of records, one behind the other; a record has nothing under a name that it lacks."""
    found: dict[str, list[Any]] = {}
    for before, record in enumerate(records):
        known = set(found)
        _gather(record, path, found, within=True)
        for name, cells in found.items():
            if len(cells) <= before:
                at = len(cells) if name in known else 0
                cells[at:at] = [None] * (before + 1 - len(cells))
    return found
