"""Readers, the public rule for what does not fit, and that no message ever shows a value."""

from __future__ import annotations

import contextlib
import gzip
import json
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from privspec.core.diagnostics import DataError, PrivspecError, UsageError
from privspec.core.spans import Source
from privspec.execute.data import Grid, count_cells, located, read_inputs
from privspec.execute.family import RunContext
from privspec.execute.fingerprint import Seeds
from privspec.execute.keeper import DataOwnerReport
from privspec.execute.reading import Declared, read_entries
from privspec.execute.run import _run as run
from privspec.execute.sketching import found_in
from privspec.execute.sources import AS_USUAL, Folder, TextFiles, load_frame, rows_of_text, text_files
from privspec.families.gaussian.execution import read_executed
from privspec.model.graph import Model
from privspec.noise.samplers import SimulationRandomness
from privspec.pipeline import Request, check
from privspec.profiles import fit_of_spec

from . import holding

MakePlan = Callable[..., dict[str, Any]]
SENTINEL = "8675309"
VECTOR = Declared("x", (3,))
MATRIX = Declared("M", (2, 3))


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "x\n1\n2\n3",
        "a,b,c\n1,2,3\n",
        "\ufeffx\n1\n2\n3\n",
        "id,x\n7,1\n8,2\n9,3\n",
        '"x"\r\n"1"\r\n"2"\r\n"3"\r\n',
        "x\n1\n2\n3\n\n\n",
    ],
)
def test_vectors_from_csv(tmp_path: Path, text: str) -> None:
    assert read_entries(VECTOR, write(tmp_path / "x.csv", text)).tolist() == [1, 2, 3]


@pytest.mark.parametrize("text", ["1\n2\n3\n", "1,2,3\n", "\ufeff1\n2\n3", '"1"\r\n"2"\r\n"3"\r\n'])
def test_vectors_without_a_header(tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "x.csv", text)
    assert read_entries(VECTOR, path, TextFiles(header=False)).tolist() == [1, 2, 3]
    with pytest.raises(DataError, match=r"PS080[45]") as caught:
        read_entries(VECTOR, path)
    assert "--no-header" in str(caught.value.diagnostics[0].help)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "PS0805"),
        ("x\n1\n2\n", "PS0805"),
        ("x\n1\n2\n3\n4\n", "PS0805"),
        ("1\n2\n3\n", "PS0805"),
        # one line more than there should be: no first record is taken for a header
        ("1\n2\n3\n4\n", "PS0804"),
        ("salary\n1\n2\n3\n", "PS0804"),
        ("1,2,3\n4,5,6\n", "PS0804"),
        ("a,b\n1,2\n3,4\n5,6\n", "PS0804"),
    ],
)
def test_a_header_is_a_first_line_that_names_the_column(tmp_path: Path, text: str, code: str) -> None:
    with pytest.raises(DataError, match=code):
        read_entries(VECTOR, write(tmp_path / "x.csv", text))


def test_a_header_is_no_person(tmp_path: Path) -> None:
    """A header and one person too few are as many lines as there are people."""
    salaries = "".join(f"{value}\n" for value in range(499))
    people = Declared("salary", (500,))
    for text, header in ((f"salary\n{salaries}", True), (f"7\n8\n{salaries}", False)):
        with pytest.raises(DataError, match="PS0805: salary is declared with size 500"):
            read_entries(people, write(tmp_path / "x.csv", text), TextFiles(header=header))


def test_a_blank_line_is_a_cell(tmp_path: Path) -> None:
    """The last cell of a column moves no other, whatever stands in it."""
    declared = Declared("x", (8,))
    cells = [f"0.{i}" for i in range(1, 9)]
    for blank in (0, 3, 7):
        text = "\n".join(["x", *(cell if i != blank else "" for i, cell in enumerate(cells))]) + "\n"
        for end in ("", "\n"):
            found = read_entries(declared, write(tmp_path / "x.csv", text + end))
            assert np.isnan(found).tolist() == [i == blank for i in range(8)]
            assert np.delete(found, blank).tolist() == [float(c) for i, c in enumerate(cells) if i != blank]


@pytest.mark.parametrize(("text", "header"), [("1,2,3\n4,5,6\n", False), ("a,b,c\n1,2,3\n4,5,6\n", True)])
def test_matrices_from_csv(tmp_path: Path, text: str, header: bool) -> None:
    assert read_entries(MATRIX, write(tmp_path / "x.csv", text), TextFiles(header=header)).tolist() == [
        1,
        2,
        3,
        4,
        5,
        6,
    ]
    with pytest.raises(DataError, match="PS0805"):
        read_entries(MATRIX, tmp_path / "x.csv", TextFiles(header=not header))
    beside = write(tmp_path / "y.csv", "M_2,name,M_1,M_3\n2,a,1,3\n5,b,4,6\n")
    assert read_entries(MATRIX, beside).tolist() == [1, 2, 3, 4, 5, 6]


def test_two_entries_as_a_row_under_names_or_as_a_column(tmp_path: Path) -> None:
    declared = Declared("x", (2,))
    assert read_entries(declared, write(tmp_path / "a.csv", "u,v\n1,2\n")).tolist() == [1, 2]
    assert read_entries(declared, write(tmp_path / "b.csv", "1\n2\n"), TextFiles(header=False)).tolist() == [1, 2]
    assert read_entries(declared, write(tmp_path / "c.csv", "1,2\n"), TextFiles(header=False)).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('a,b\n"1,2",3\n', [["1,2", "3"]]),
        ('a,b\n"1""2",3\n', [['1"2', "3"]]),
        ('a,b\n"1\n2",3\n4,5\n', [['"1'], ['2"', "3"], ["4", "5"]]),
        # a quote that nothing closes stays on its line
        ('a,b\n"1,2\n3,4\n', [['"1', "2"], ["3", "4"]]),
        ('a,b\n"1,2\n"3,4\n', [['"1', "2"], ['"3', "4"]]),
        ('a,b\n"1,2\n"3",4\n', [['"1', "2"], ["3", "4"]]),
        ('a,b\n"1"x,2\n3,4\n', [['"1"x', "2"], ["3", "4"]]),
        ('a,b\n1"2,3\n4",5\n', [['1"2', "3"], ['4"', "5"]]),
        ('a,b\n"1,2\n3,4",5,6\n7,8', [['"1', "2"], ["3", '4"', "5", "6"], ["7", "8"]]),
        ("a,b\n\n,\n1\n1,2,3\n\n", [[""], ["", ""], ["1"], ["1", "2", "3"], [""]]),
        ("a,b\r\n1\r,2\r\n\x00,\ufeff\r\n", [["1\r", "2"], ["\x00", "\ufeff"]]),
        ('a\n"\n"\n""\n', [['"'], ['"'], [""]]),
    ],
)
def test_text_is_cut_by_one_rule(tmp_path: Path, text: str, rows: list[list[str]]) -> None:
    cut_alike(write(tmp_path / "x.csv", text), TextFiles(), rows)
    # what no rule of another format decides: a table of tabs is cut by its lines, whatever is said of quotes
    tabbed = write(tmp_path / "x.tsv", text.replace(",", "\t"))
    cut_alike(tabbed, TextFiles(quoted_newlines=True), [[cell.replace(",", "\t") for cell in row] for row in rows])


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('a,b\n"1\n2",3\n4,5\n', [["1\n2", "3"], ["4", "5"]]),
        ('a,b\n"1""\n2",3\n4,5\n', [['1"\n2', "3"], ["4", "5"]]),
        ('a,b\n"1\n\n2","3\n"\n4,5\n', [["1\n\n2", "3\n"], ["4", "5"]]),
        # a quote that nothing closes stays on its line, and so does one whose row would be too long or too short
        ('a,b\n"1,2\n3,4\n', [['"1', "2"], ["3", "4"]]),
        ('a,b\n"1,2\n3,4",5,6\n7,8', [['"1', "2"], ["3", '4"', "5", "6"], ["7", "8"]]),
        ('a\n"\n"\n""\n', [["\n"], [""]]),
    ],
)
def test_rows_stand_on_several_lines_only_where_their_keeper_says_so(
    tmp_path: Path, text: str, rows: list[list[str]]
) -> None:
    cut_alike(write(tmp_path / "x.csv", text), TextFiles(quoted_newlines=True), rows)
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(text.encode()))
    cut_alike(tmp_path / "x.csv.gz", TextFiles(quoted_newlines=True), rows)
    heard = list[str]()
    told = TextFiles(told=lambda _, said: heard.append(said))
    lines = text.splitlines()[1:]
    assert len(list(rows_of_text("x", tmp_path / "x.csv", told))) == 1 + len(lines)
    assert all("--quoted-newlines" in said for said in heard) and len(heard) == 1


def model_of(text: str) -> Model:
    return check(Request(Source("t.priv", text)))


def cut_alike(path: Path, texts: TextFiles, rows: list[list[str]]) -> None:
    """Line by line, and as a table."""
    first, *found = rows_of_text("x", path, texts)
    assert found == rows
    width = len(first)
    frame = load_frame("x", path, texts).collect().rows()
    padded = [[*row, *[""] * width][:width] for row in rows]
    assert [[(cell or "").strip() for cell in row] for row in frame] == [
        [cell.strip().replace("\n", "\ufffd") for cell in row] for row in padded
    ]


def test_a_quote_takes_no_other_row_with_it(tmp_path: Path) -> None:
    """Feet and inches: one cell ends with a quote, another one far below begins with one."""
    rows = [f"{i % 5},x" for i in range(2_000)]
    rows[3], rows[1_990] = '"5 ft,x', "5'11\",x"
    for suffix, sign in ((".csv", ","), (".tsv", "\t")):
        path = write(tmp_path / f"t{suffix}", "\n".join(["age,sex", *rows, ""]).replace(",", sign))
        assert len(list(rows_of_text("x", path))) == 2_001
        keeper = DataOwnerReport()
        assert load_frame("x", path, TextFiles(told=keeper.remark)).collect().height == 2_000
        assert [line.partition(":")[0] for line in keeper.brief()] == ["x"]
        assert "1 of 2,001 lines do not close a quote: each line is a row" in keeper.brief()[0]
    path = write(tmp_path / "s.csv", "\n".join(["age,sex", *rows[:3], '"4\n\n",x', *rows[4:9], ""]))
    keeper = DataOwnerReport()
    assert load_frame("x", path, TextFiles(quoted_newlines=True, told=keeper.remark)).collect().height == 9
    said = "x: 2 of 12 lines are no rows: they go on with a cell of the line above"
    assert keeper.brief() == [said]
    model = model_of(
        "variables:\n  input x in [0, 1]^11\n  output y\nloss:\n  E[ (y - sum(x))^2 ]\nprivacy:\n  y is 1-DP wrt x\n"
    )
    with pytest.raises(DataError) as caught:
        fit_of_spec(
            model, {"x": write(tmp_path / "s.csv", "x\n" + "0\n" * 8 + '"4\n\n"\n')}, TextFiles(quoted_newlines=True)
        )
    assert caught.value.diagnostics[0].notes[-1:] == (said,)


def test_files_of_a_folder_that_hold_a_column_in_several_kinds(tmp_path: Path) -> None:
    """They are told, and read by their text: a file of one record decides nothing about the others."""
    columns = (["F", "M"], [1, 2], [[["F"]], None], [{"a": 1}, None], [["F"], ["M", "F"]], [b"F", b"\xff"])
    for i, cells in enumerate(columns):
        pl.DataFrame({"sex": cells, "age": [1, 1]}).write_parquet(tmp_path / f"{i}.parquet")
    found = Folder.of("people", tmp_path).frame("people").collect()["sex"].to_list()
    assert found == ["F", "M", "1", "2", None, None, None, None, "F", "M F", "F", "\ufffd"]
    for i in (2, 3, 4, 5):
        (tmp_path / f"{i}.parquet").unlink()
    model = model_of(
        "variables:\n  input people in table(sex in {F, M})\n  output y\nloss:\n  E[ (y - count(people, sex = F))^2 ]\n"
        "privacy:\n  y is 1-DP wrt people, adding or removing one record\n"
    )
    assert fit_of_spec(model, {"people": tmp_path}).remarks["people"][0] == (
        "sex is of different kinds in different files: String in 1, Int64 in 1; a cell is read by its text, "
        "a whole number as one word"
    )


def test_bytes_that_are_no_text_are_a_cell(tmp_path: Path) -> None:
    for bad in (b"\xff\xfe", b"\x00", b"9" * 200_000, b"'", b'"', b'""""', b"1e999", b"\xc3", b"--", b"#", b"\\"):
        (tmp_path / "x.csv").write_bytes(b"x\n1\n" + bad + b"\n3\n")
        found = read_entries(VECTOR, tmp_path / "x.csv")
        assert found[[0, 2]].tolist() == [1, 3]
        (tmp_path / "x.csv.gz").write_bytes(gzip.compress((tmp_path / "x.csv").read_bytes()))
        assert np.array_equal(read_entries(VECTOR, tmp_path / "x.csv.gz"), found, equal_nan=True)


def test_json_cells_of_any_kind(tmp_path: Path) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    odd = ["1" * 5_000, "-" + "1" * 5_000, "1e999", "NaN", "null", '"\\ud800"', "{}", '{"x": 2}', "[1, 2]", deep]
    for bad in odd:
        found = read_entries(VECTOR, write(tmp_path / "x.json", f"[1, {bad}, 3]"))
        assert found[[0, 2]].tolist() == [1, 3]
        found = read_entries(VECTOR, write(tmp_path / "x.json", f'[{{"x": 1}}, {{"x": {bad}}}, {{"x": 3}}]'))
        assert found[[0, 2]].tolist() == [1, 3]


ODD_ITEMS = (None, 7, "x", [], [1, 2], {}, {"y": 1}, {"x": None}, {"x": 0.5, "count": 9}, {"x_1": 0.5}, {"x": [1, 2]})


@pytest.mark.parametrize("odd", [*ODD_ITEMS, {"x": 0.5, "voter": 3}], ids=str)
def test_no_object_decides_how_the_entries_of_others_are_read(tmp_path: Path, odd: Any) -> None:
    for index in (None, "voter"):
        declared = Declared("x", (5,), index)
        items: list[Any] = [{"x": 0.1 * i} for i in range(5)]
        items[2] = odd
        for source in (items, {"x": items}, write(tmp_path / "x.json", json.dumps(items))):
            found = read_entries(declared, source if not isinstance(source, dict) else [*items])
            assert np.delete(found, 2).tolist() == [0.1 * i for i in (0, 1, 3, 4)]
    rows: list[Any] = [{"x_1": i, "x_2": -i, "x_3": 0.5} for i in range(4)]
    rows[1] = odd
    found = read_entries(Declared("x", (4, 3)), write(tmp_path / "m.json", json.dumps(rows))).reshape(4, 3)
    assert np.delete(found, 1, axis=0).tolist() == [[i, -i, 0.5] for i in (0, 2, 3)]


def test_objects_stand_in_the_order_of_their_list(tmp_path: Path) -> None:
    """Who takes part is public: where all say so, it may not contradict the order."""
    declared = Declared("x", (3,), "voter")
    items = [{"voter": voter, "x": voter / 10} for voter in (2, 9, 10)]
    assert read_entries(declared, items).tolist() == [0.2, 0.9, 1.0]
    with pytest.raises(DataError, match="PS0806"):
        read_entries(declared, [items[0], items[2], items[1]])
    path = write(tmp_path / "x.json", json.dumps({"voter": [10, 2, 9], "x": [1.0, 0.2, 0.9]}))
    assert read_entries(declared, path).tolist() == [0.2, 0.9, 1.0]
    stacked = Declared("x", (2, 2, 2))
    assert read_entries(stacked, [{"x_1": i, "x_2": -i} for i in range(4)]).tolist() == [0, 0, 1, -1, 2, -2, 3, -3]
    assert read_entries(VECTOR, [{"x_1": 1, "x_2": 2, "x_3": 3}]).tolist() == [1, 2, 3]


@pytest.mark.parametrize("odd", [*ODD_ITEMS, {"age": 1, "sex": "F", "count": 7}, {"age": {}, "sex": []}], ids=str)
def test_no_record_decides_how_the_others_of_a_json_table_are_read(tmp_path: Path, odd: Any) -> None:
    """Nor, where it is the only one, whether a run goes on."""
    for others in (0, 1, 5, 7):
        items: list[Any] = [{"sex": "M", "age": 2}] * others
        for held_under in ([odd, *items], {"x": [*items, odd]}):
            counts = count_cells(cells(True), write(tmp_path / "t.json", json.dumps(held_under)))
            own = np.array([0, 0, 0, 0, 0, others])
            assert (counts >= own).all() and counts.sum() - others == (
                1 if "age" in str(odd) and "{}" not in str(odd) else 0
            )


def test_counts_in_json_stand_under_their_name(tmp_path: Path) -> None:
    counts = [1, 2, 3, 4, 5, 6]
    path = write(tmp_path / "t.json", json.dumps({"count": counts}))
    assert count_cells(cells(True), path).tolist() == counts
    for found in (counts, {"x": counts}):
        assert count_cells(cells(True), write(tmp_path / "t.json", json.dumps(found))).sum() == 0


def test_a_first_line_that_is_data_decides_nothing(tmp_path: Path) -> None:
    bare = TextFiles(header=False)
    for first in ("1", "1,2", "1,2,3,4", ""):
        found = read_entries(VECTOR, write(tmp_path / "x.csv", f"{first}\n2\n3\n"), bare)
        assert found[1:].tolist() == [2, 3]
        found = read_entries(MATRIX, write(tmp_path / "m.csv", f"{first}\n4,5,6\n"), bare)
        assert found[3:].tolist() == [4, 5, 6]
        keeper = DataOwnerReport()
        said = RunContext(texts=TextFiles(header=False, told=keeper.remark), keeper=keeper)
        counts = count_cells(cells(True), write(tmp_path / "t.csv", f"{first}\n" + "2,M\n" * 4), said)
        assert counts.tolist() == [0, 0, 0, 0, 0, 4]
        assert any("do not have 2 cells" in line for line in keeper.brief()) == (first != "1,2")


def test_arrays_are_numbers_or_texts(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.array(["1", "two", "3"]))
    assert np.isnan(read_entries(VECTOR, path)).tolist() == [False, True, False]
    np.save(path, np.array([b"1", b"\xff", b"3"]))
    assert np.isnan(read_entries(VECTOR, path)).tolist() == [False, True, False]
    pairs = np.array([(1, 2.0)] * 3, dtype=[("a", "i4"), ("b", "f8")])
    for other in (pairs, np.array([1j] * 3), np.array(["2026-01-01"] * 3, dtype="M8[D]")):
        np.save(path, other)
        with pytest.raises(DataError, match="PS0803"):
            read_entries(VECTOR, path)
    np.save(path, np.array([1.0, 2.0, 3.0]))
    whole = path.read_bytes()
    for at in range(8, 100):
        for byte in (0, 32, 39, 40, 91, 255):
            path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
            with contextlib.suppress(DataError):
                read_entries(VECTOR, path)


def test_columns_of_other_kinds_are_refused_whatever_they_hold(tmp_path: Path) -> None:
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    far = pa.array([2**31 - 1, 0, None], pa.int32()).cast(pa.date32())
    late = pa.array([0, 1, 2**62], pa.timestamp("us"))
    for column in (far, late, pa.array([[1], [2], None]), pa.array([{"a": 1}] * 3)):
        table = pa.table({"x": column, "age": column, "sex": ["F", "M", "F"]})
        pq.write_table(table, tmp_path / "x.parquet")
        for source in (tmp_path / "x.parquet", table, pl.from_arrow(table)):
            with pytest.raises(DataError, match="PS0803: the column x of the data"):
                read_entries(VECTOR, source)
            with pytest.raises(DataError, match="PS0803: the column age of the data"):
                count_cells(cells(True), source)
        # a column that is not read may be of any kind
        assert read_entries(Declared("y", (3,)), table.append_column("y", pa.array([1, 2, 3]))).tolist() == [1, 2, 3]


def test_two_inputs_from_two_columns_of_one_file(tmp_path: Path) -> None:
    path = write(tmp_path / "both.csv", '"y","x"\n1,4\n2,5\n3,6\n')
    assert read_entries(VECTOR, path).tolist() == [4, 5, 6]
    assert read_entries(Declared("y", (3,)), path).tolist() == [1, 2, 3]


def test_other_files(tmp_path: Path) -> None:
    import polars as pl

    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"x\n1\n2\n3\n"))
    np.save(tmp_path / "x.npy", np.array([[1], [2], [3]]))
    write(tmp_path / "x.json", "[1, 2, 3]")
    write(tmp_path / "y.json", '{"x": [[1, 2, 3]]}')
    pl.DataFrame({"x": [1, 2, 3], "other": [7, 8, 9]}).write_parquet(tmp_path / "x.parquet")
    for name in ("x.csv.gz", "x.npy", "x.json", "y.json", "x.parquet"):
        assert read_entries(VECTOR, tmp_path / name).tolist() == [1, 2, 3]


def test_objects_in_memory() -> None:
    import polars as pl
    import pyarrow as pa

    for source in (
        [1, 2, 3],
        (1, 2, 3),
        np.array([[1, 2, 3]]),
        np.array(["1", "2", "3"]),
        pl.Series([1, 2, 3]),
        pl.DataFrame({"x": [1, 2, 3]}),
        pa.array([1, 2, 3]),
        pa.table({"x": [1, 2, 3]}),
        {"x": [1, 2, 3]},
    ):
        assert read_entries(VECTOR, source).tolist() == [1, 2, 3]


def test_pandas_objects() -> None:
    pd = pytest.importorskip("pandas")
    assert read_entries(VECTOR, pd.Series([1, 2, 3])).tolist() == [1, 2, 3]
    assert read_entries(VECTOR, pd.DataFrame({"x": [1, 2, 3]})).tolist() == [1, 2, 3]


def test_data_of_parties_come_in_the_order_of_the_index(tmp_path: Path) -> None:
    declared = Declared("V", (2, 2, 2), "voter")
    text = "voter,a,b\n10,5,6\n2,1,2\n10,7,8\n2,3,4\n"
    assert read_entries(declared, write(tmp_path / "v.csv", text)).tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    uneven = "voter,a,b\n1,5,6\n2,1,2\n2,7,8\n2,3,4\n"
    with pytest.raises(DataError, match="PS0806"):
        read_entries(declared, write(tmp_path / "w.csv", uneven))


def test_missing_and_unreadable_numbers_are_not_numbers(tmp_path: Path) -> None:
    values = read_entries(Declared("x", (4,)), write(tmp_path / "x.csv", "x\n1\n\nhello\n4\n"))
    assert values[[0, 3]].tolist() == [1, 4]
    assert np.isnan(values[1:3]).all()
    short = read_entries(MATRIX, write(tmp_path / "m.csv", "a,b,c\n1,2,3\n4\n"))
    assert np.isnan(short).tolist() == [False] * 4 + [True] * 2
    ragged = read_entries(MATRIX, [[1, 2, None], [4, 5, 6, 7]])
    assert np.isnan(ragged).tolist() == [False, False, True, False, False, False]


def test_clipping_and_missing_values_in_the_base_vector(make_plan: MakePlan) -> None:
    executed = read_executed(make_plan(np.eye(4), np.eye(4)))
    base = read_inputs(executed.inputs, {"x": [-3, None, float("inf"), 0.5]})
    assert base.to_float().tolist() == [0, 0, 1, 0.5]


def cells(drops: bool) -> Grid:
    return holding.cells(6, holding.AGE_SEX, drops=drops)


RECORDS = "id,sex,age\n1,F,0\n2,M,2\n3,F,99\n4,?,1\n5,M,\n6,M,1.0\n"


@pytest.mark.parametrize(("drops", "expected"), [(True, [1, 0, 0, 1, 1, 1]), (False, [1, 1, 1, 1, 1, 1])])
def test_records_are_counted_in_cells(tmp_path: Path, drops: bool, expected: list[int]) -> None:
    import polars as pl

    path = write(tmp_path / "t.csv", RECORDS)
    assert count_cells(cells(drops), path).tolist() == expected
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(RECORDS.encode()))
    assert count_cells(cells(drops), tmp_path / "t.csv.gz").tolist() == expected
    frame = pl.read_csv(path)
    frame.write_parquet(tmp_path / "t.parquet")
    for source in (frame, frame.to_arrow(), frame.to_dict(as_series=False), tmp_path / "t.parquet"):
        assert count_cells(cells(drops), source).tolist() == expected


def test_a_public_number_of_records_is_that_of_the_file(tmp_path: Path) -> None:
    """However the cells read: the number is in the spec, and a record that does not fit is still a record."""
    three = holding.cells(6, holding.AGE_SEX, drops=False, records=3)
    path = write(tmp_path / "p.csv", "sex,age\nF,0\nunknown,7\nM,\n")
    assert count_cells(three, path).sum() == 3
    path = write(tmp_path / "q.csv", "sex,age\nF,0\nM,1\n")
    with pytest.raises(DataError) as caught:
        count_cells(three, path)
    assert [d.code for d in caught.value.diagnostics] == ["PS0805"]
    assert "2" not in caught.value.diagnostics[0].message


def test_counts_may_be_given(tmp_path: Path) -> None:
    for source in ([1, 2, 3, 4, 5, 6], np.arange(1, 7).reshape(3, 2), {"count": [1, 2, 3, 4, 5, 6]}):
        assert count_cells(cells(True), source).tolist() == [1, 2, 3, 4, 5, 6]
    np.save(tmp_path / "c.npy", np.array([1.4, -3, np.nan, 0, 0, 0]))
    assert count_cells(cells(True), tmp_path / "c.npy").tolist() == [1, 0, 0, 0, 0, 0]


def test_numeric_categories_match_their_number() -> None:
    entry = holding.cells(3, (("v", ("0", "1/2", "high"), None, None),), drops=True)
    counted = count_cells(entry, {"v": [0, 0.5, "0.50", " high ", "low"]})
    assert counted.tolist() == [1, 2, 1]


def test_records_are_left_out_only_if_no_guarantee_replaces(make_plan: MakePlan) -> None:
    inputs = [{"name": "x", "start": 0, "stop": 4, "layout": "cells"}]
    for neighbours, drops in (("adding or removing one record", True), ("replacing one record", False)):
        plan = make_plan(np.eye(4), np.eye(4), inputs=inputs, neighbours=neighbours)
        assert read_executed(plan).inputs[0].drops is drops


BAD = {
    "unreadable.csv": f'{SENTINEL}\x00\n"{SENTINEL}',
    "short.csv": f"{SENTINEL}\n{SENTINEL}\n",
    "wide.csv": f"{SENTINEL},{SENTINEL}\n" * 4,
    "broken.json": f"[{SENTINEL}, ",
    "word.json": f'"{SENTINEL}"',
    "other.json": json.dumps({SENTINEL: [1, 2, 3, 4]}),
    "long.json": json.dumps([int(SENTINEL)] * 7),
    "broken.npy": SENTINEL,
    "broken.parquet": SENTINEL,
    "broken.csv.gz": SENTINEL,
    "none.txt": SENTINEL,
    "headless.tsv": f"{SENTINEL}\t1\n",
}


@pytest.mark.parametrize("layout", ["entries", "cells"])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", sorted(BAD))
def test_no_message_holds_a_value(
    tmp_path: Path,
    make_plan: MakePlan,
    capsys: pytest.CaptureFixture[str],
    name: str,
    strict: bool,
    layout: str,
) -> None:
    path = tmp_path / name
    path.write_bytes(BAD[name].encode())
    cell = {
        "name": "x",
        "start": 0,
        "stop": 4,
        "layout": "cells",
        "attributes": [{"name": "a", "values": list("wxyz")}],
    }
    plan = make_plan(np.eye(4), np.eye(4), inputs=[cell] if layout == "cells" else None)
    said = ""
    try:
        run(plan, {"x": path}, strict=strict, randomness=SimulationRandomness(1))
    except PrivspecError as error:
        said = "".join(traceback.format_exception(error)) + repr(error.diagnostics)
        assert error.diagnostics[0].code.startswith("PS08")
    captured = capsys.readouterr()
    assert SENTINEL not in said + captured.out + captured.err
    assert name != "headless.tsv" or said


@pytest.mark.parametrize("value", [SENTINEL, float(SENTINEL), None, "", [SENTINEL], {"a": SENTINEL}])
def test_strict_refuses_without_saying_what(make_plan: MakePlan, value: Any) -> None:
    plan = make_plan(np.eye(4), np.eye(4))
    with pytest.raises(DataError) as caught:
        run(plan, {"x": [0, 1, value, 1]}, strict=True, randomness=SimulationRandomness(1))
    assert caught.value.diagnostics[0].code == "PS0809"
    assert SENTINEL not in "".join(traceback.format_exception(caught.value))
    fine = run(plan, {"x": [0, 1, 0.5, 1]}, strict=True, randomness=SimulationRandomness(1))
    assert fine.warnings[0].code == "PS0810"


def test_missing_inputs_files_and_columns(tmp_path: Path, make_plan: MakePlan) -> None:
    executed = read_executed(make_plan(np.eye(4), np.eye(4)))
    for data, code in (
        ({}, "PS0801"),
        ({"x": [0] * 4, "y": [0]}, "PS0801"),
        ({"x": tmp_path / "none.csv"}, "PS0802"),
        ({"x": str(write(tmp_path / "x.txt", "1"))}, "PS0802"),
        ({"x": object()}, "PS0803"),
        ({"x": [0] * 5}, "PS0805"),
        ({"x": {"a": [0] * 4, "b": [0] * 4}}, "PS0804"),
        ({"x": {}}, "PS0804"),
    ):
        with pytest.raises(DataError, match=code):
            read_inputs(executed.inputs, data)
    with pytest.raises(DataError, match="PS0804"):
        count_cells(cells(True), {"age": [1]})
    assert located("x", [1]) == [1]


def test_the_base_vector_changes_in_one_coordinate_with_one_entry(make_plan: MakePlan) -> None:
    """Neighbours stay neighbours, whatever is wrong with the entry."""
    executed = read_executed(make_plan(np.eye(4), np.eye(4)))
    plain = read_inputs(executed.inputs, {"x": [0.1, 0.2, 0.3, 0.4]}).fractions()
    for bad in (None, "x", float("nan"), float("inf"), -1e300, "1e400", b"7", [3], True):
        changed = read_inputs(executed.inputs, {"x": [0.1, 0.2, bad, 0.4]}).fractions()
        assert [a == b for a, b in zip(plain, changed, strict=True)] == [True, True, False, True]
        assert 0 <= changed[2] <= 1


# --- semicolons and decimal commas ----------------------------------------------------------------

COMMAS = text_files(True, False, ";", ",")
ODD = ["3.5", "-0.25", "+7", "1e-3", "2.5e1", " 4.5 ", "1.234.5", "", "nan", "x", "0.", ".5", "1/2"]


@pytest.mark.parametrize("quotes", [False, True])
@pytest.mark.parametrize("header", [True, False])
def test_semicolons_and_decimal_commas_read_as_commas_and_points(tmp_path: Path, quotes: bool, header: bool) -> None:
    """In every way that a text file is read: cell by cell, as columns, where the first line is a record."""
    rows = [[cell, f"w{place % 3}", str(place)] for place, cell in enumerate(ODD * 2000)]
    lines = [["pay,5", "word", "place"], *rows] if header else rows
    mark = '"' if quotes else ""
    plain = write(tmp_path / "plain.csv", "".join(f"{mark}{a}{mark},{b},{c}\n" for a, b, c in [*lines[1:]]))
    other = "".join(f"{mark}{a.replace('.', ',')}{mark};{b};{c}\n" for a, b, c in lines[1:])
    texts = replace(COMMAS, header=header)
    path = write(tmp_path / "commas.csv", other)
    if header:
        plain = write(tmp_path / "plain.csv", "pay,word,place\n" + plain.read_text())
        path = write(tmp_path / "commas.csv", "pay;word;place\n" + other)
    usual = TextFiles(header)
    names = ["pay", "word", "place"]
    one, two = (load_frame("x", *pair, names).collect() for pair in ((plain, usual), (path, texts)))
    assert two["pay"].to_list() == [cell and cell.replace("1.234.5", "1,234,5") for cell in one["pay"]]
    assert one.drop("pay").equals(two.drop("pay"))
    cut = [*rows_of_text("x", path, texts)][header:]
    assert [[cell.strip() for cell in row] for row in cut] == [
        [(cell or "").strip() for cell in row] for row in two.rows()
    ]
    alone = [
        write(tmp_path / f"{k}.csv", "".join(f"{cell}\n" for cell in cells))
        for k, cells in enumerate((["x", *map(str, range(20_000))], ["x", *(f"{place},0" for place in range(20_000))]))
    ]
    declared = Declared("x", (20_000,))
    found = [read_entries(declared, *pair) for pair in zip(alone, (AS_USUAL, COMMAS), strict=True)]
    assert (found[0] == found[1]).all()


def test_a_file_with_semicolons_is_known_as_the_one_with_commas(tmp_path: Path) -> None:
    rows = [(f"{place * 37 % 1001}.{place % 7 + 1}", f"w{place % 11}") for place in range(500)]
    plain = write(tmp_path / "plain.csv", "pay,word\n" + "".join(f"{a},{b}\n" for a, b in rows))
    other = write(tmp_path / "other.csv", "pay;word\n" + "".join(f"{a.replace('.', ',')};{b}\n" for a, b in rows))
    seeds = Seeds.of(b"any")
    (body, *_), (same, _, as_usual, _) = found_in("x", plain, seeds).tables, found_in("x", other, seeds, COMMAS).tables
    assert [one.digest() for one in body.columns.values()] == [one.digest() for one in same.columns.values()]
    (before, _) = found_in("x", other, seeds).tables
    assert [one.digest() for one in before.columns.values()] == [one.digest() for one in as_usual.columns.values()]


@pytest.mark.parametrize(
    "said", [("ab", "."), ("7", "."), ('"', "."), ("\n", "."), (";", ";"), (",", ","), (None, "x")]
)
def test_signs_that_separate_nothing_are_refused(said: tuple[str | None, str]) -> None:
    with pytest.raises(UsageError, match="PS0721"):
        text_files(True, False, *said)
