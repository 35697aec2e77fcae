"""Large files of numbers are read by columns: whatever the cells hold, as they would be read one by one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privspec.core.diagnostics import DataError
from privspec.execute import reading, sketching
from privspec.execute.drawing import atom_of
from privspec.execute.keeper import DataOwnerReport
from privspec.execute.reading import Coded, Declared, Fields, batches, read_entries
from privspec.families.tables.execution import _different
from tests.execute.knowing import tables

ODD = ["", " ", "1", "-2.5", " 3 ", "1e3", ".5", "5.", "+7", "1_0", "nan", "inf", "-Infinity", "abc", "٣", "0x1", "1,5"]
ODDER = [
    "1e400",
    "true",
    "½",
    "1\r",
    "1e",
    "e5",
    "--1",
    "1.2.3",
    "\u00a04",
    "1d3",
    "12345678901234567890.5",
    "-",
    "+.e1",
]
CELLS = st.one_of(st.sampled_from(ODD), st.sampled_from(ODDER), st.floats().map(repr))
HEADERS = ["x", "x,z", "z,x", "p,x", "x_1,x_2", "a,b"]


def at_once(monkeypatch: pytest.MonkeyPatch, declared: Declared, source: Any) -> tuple[Any, list[Any], Any, list[Any]]:
    """What is read of a source by columns and cell by cell, and what is told of cells that are no numbers."""
    found = []
    for rows in (1, 10**9):
        monkeypatch.setattr(reading, "AT_ONCE", rows)
        told: list[Any] = []
        try:
            values = read_entries(replace(declared, told=told.append), source).tolist()
        except DataError as error:
            values = error.diagnostics[0].code
        found += [values, sorted((cell or "").strip() if isinstance(cell, str | None) else "" for cell in told)]
    return tuple(found)


@pytest.mark.slow
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6),
    st.sampled_from(["x", "x,z", "z,x", "p,x", "x_1,x_2", "a,b"]),
)
def test_large_files_are_read_by_columns_as_cell_by_cell(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rows: list[tuple[str, str]], header: str
) -> None:
    places = header.startswith("p")
    pairs = [(str(i) if places else first, second) for i, (first, second) in enumerate(rows)]
    lines = [header, *(",".join(pair) if "," in header else pair[0].replace(",", ".") for pair in pairs)]
    path = tmp_path / "x.csv"
    path.write_bytes(("\n".join(lines) + "\n").encode())
    shape = (len(rows), 2) if header in ("x_1,x_2", "a,b") else (len(rows),)
    columns, told, cells, told_too = at_once(monkeypatch, Declared("x", shape, "p"), path)
    assert repr(columns) == repr(cells)
    assert told == told_too


def test_parties_in_any_order_are_read_by_columns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    frame = pl.DataFrame({"p": [3, 1, 2], "x_1": [1.5, None, 2.0], "x_2": [1, 2, 3]})
    frame.write_parquet(tmp_path / "x.parquet")
    frame.write_csv(tmp_path / "x.csv")
    same = [frame.to_pandas()] if find_spec("pandas") and find_spec("pyarrow") else []
    for source in (frame, tmp_path / "x.parquet", tmp_path / "x.csv", *same):
        columns, told, cells, told_too = at_once(monkeypatch, Declared("x", (3, 2), "p"), source)
        assert repr(columns) == repr(cells) == "[nan, 2.0, 2.0, 3.0, 1.5, 1.0]"
        assert told == told_too == [""]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5), st.sampled_from(["x", "x,z", "1", "x,x"]))
def test_large_files_are_the_same_data(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rows: list[tuple[str, str]], header: str
) -> None:
    lines = [header, *(",".join(row[: 1 + header.count(",")]) for row in rows)]
    path = tmp_path / "x.csv"
    path.write_bytes(("\n".join(lines) + "\n").encode())
    found = []
    for size in (0, 10**9):
        monkeypatch.setattr(sketching, "AT_ONCE", size)
        found.append(tables(path, "x"))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "cells", [["a", " b", "", "nan"], ["1", " 2 ", "", "-0"], ["1", "x", "1", "1"], ["inf", "1e3"]]
)
def test_columns_of_few_different_cells_are_known_as_those_cut_one_by_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cells: list[str]
) -> None:
    monkeypatch.setattr(reading, "CHUNK", 0)
    monkeypatch.setattr(sketching, "AT_ONCE", 0)
    many = [cells[i % len(cells)] for i in range(3_000)]
    large, quoted = tmp_path / "large.csv", tmp_path / "quoted.csv"
    large.write_text("x,y\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(many)))
    quoted.write_text('"x",y\n' + "".join(f"{cell},{i}\n" for i, cell in enumerate(many)))
    assert tables(large, "x") == tables(quoted, "x")
    for atom in (atom_of((Fraction(1), Fraction(2))), atom_of(("a", "b"))):
        assert isinstance(next(batches(Fields("x"), large))[0], Coded)
        fits, codes = [DataOwnerReport(), DataOwnerReport()], list[list[int]]()
        for path, keeper in zip((large, quoted), fits, strict=True):
            fit = atom.fit(keeper, "x")
            parts = [atom.codes(columns[0], fit=fit).tolist() for columns in batches(Fields("x"), path)]
            codes.append([code for part in parts for code in part])
        assert codes[0] == codes[1]
        assert fits[0].report() == fits[1].report()


def test_the_different_rows_are_those_that_sorting_finds() -> None:
    rng = np.random.default_rng(3)
    for sizes in ((6,), (3, 4, 2), (250, 250, 250)):
        joint = np.stack([rng.integers(0, size, 500) for size in sizes], axis=1).astype(np.uint8)
        found, places = _different(joint)
        different, index = np.unique(joint, axis=0, return_inverse=True)
        assert found == [tuple(line) for line in different.tolist()]
        assert places.tolist() == index.reshape(-1).tolist()
