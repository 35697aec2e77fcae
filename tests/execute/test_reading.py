"""No cell's content changes what is refused, what is said, or how another row is read: 2,000 generated files.

In each, one cell is changed to any value, and the file is written by the usual writers of its format, its columns and
their kinds fixed. Keys of parties are no cells: who takes part is public where rows have them.
"""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privspec.execute import reading
from privspec.execute.ballots import Form, read_ballots
from privspec.execute.data import count_cells
from privspec.execute.drawing import Numbers, Words
from privspec.execute.reading import Declared, Fields, batches, read_entries
from privspec.execute.sources import load_frame
from privspec.families.statistics.tables import Wanted, rows_of

from . import holding
from .holding import Column
from .neighbours import dumped

FILES = 2_000
SECRET = "zq8675309"
ROWS = 6
ABC = ("north", "south", "west")
Table = dict[str, list[Any]]


# --- any value of a cell --------------------------------------------------------------------------

ODD: tuple[Any, ...] = (
    *(
        "",
        " ",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        '"',
        '""',
        '"""',
        '"\n',
        '\n"',
        ',"',
        '",',
        '",\n"',
        "'",
        "\\",
        "\\n",
        "#",
        "\t",
    ),
    *(
        "\x00",
        "\x1f",
        "\ufeff",
        "\ufffd",
        "\u2028",
        "\x85",
        "\x0b",
        "\x1a",
        "é",
        "🗳",
        "x",
        "x_1",
        "voter",
        "count",
        "age",
    ),
    *(
        "nan",
        "NaN",
        "inf",
        "-inf",
        "Infinity",
        "null",
        "NULL",
        "None",
        "NA",
        "true",
        "False",
        "-0",
        "1_0",
        "٣",
        "²",
        "1e999",
    ),
    *(
        "0x10",
        "1/0",
        "1/2",
        "€ 20500",
        "20,5",
        "12 %",
        "1 000",
        "2026-01-01",
        "-99999-12-31",
        "=1+1",
        "{",
        "[1]",
        "[" * 200,
    ),
    *(
        "north",
        "North",
        "north ",
        "north south west",
        "north > south",
        "north,south",
        "{north} south",
        SECRET,
        f'"{SECRET}\n',
    ),
    *("9" * 5_000, "1" + "0" * 400, "a" * 200_000, "0.", ".5", "-", "+", "0" * 400, None),
)
NUMBERS: tuple[float | None, ...] = (
    *(0.0, -0.0, 1.0, 0.5, -1.0, 8675309.0, 1e300, -1e300, 5e-324, float("inf"), float("-inf"), float("nan"), None),
    *(2.0**53 + 2, 2.0**63, -(2.0**63)),
)
INTEGERS: tuple[int | None, ...] = (0, 1, -1, 3, 8675309, 2**53 + 1, 2**63 - 1, -(2**63), None)
JSON_ONLY: tuple[Any, ...] = (
    *(
        10**5_000,
        -(10**5_000),
        True,
        False,
        [],
        {},
        [1],
        [[1]],
        {"x": 1},
        {"a": SECRET},
        [SECRET] * 3,
        "\ud800",
        10**400,
    ),
    *(float("nan"), float("inf"), 0.25),
)


def any_text(draws: random.Random) -> Any:
    if draws.random() < 0.7:
        return draws.choice(ODD)
    signs = ['"', "\n", "\r", ",", ";", " ", "\t", "a", "7", ".", "é", "\x00", "'", "\\"]
    return "".join(draws.choice(signs) for _ in range(draws.randrange(12)))


# --- the usual writers ----------------------------------------------------------------------------


def csv_module(table: Table, path: Path, **how: Any) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, **how)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))


def csv_lines(table: Table, path: Path) -> None:
    csv_module(table, path, lineterminator="\n")


def csv_quoted(table: Table, path: Path) -> None:
    csv_module(table, path, quoting=csv.QUOTE_ALL)


def texts(table: Table) -> pl.DataFrame:
    return pl.DataFrame(table, schema=dict.fromkeys(table, pl.String))


def polars_csv(table: Table, path: Path) -> None:
    texts(table).write_csv(path)


def arrow_csv(table: Table, path: Path) -> None:
    pa.csv.write_csv(texts(table).to_arrow(), path)


def pandas_csv(table: Table, path: Path) -> None:
    pd = pytest.importorskip("pandas")
    pd.DataFrame(table, dtype=object).to_csv(path, index=False)


def polars_parquet(table: Table, path: Path) -> None:
    texts(table).write_parquet(path)


def arrow_parquet(table: Table, path: Path) -> None:
    pa.parquet.write_table(texts(table).to_arrow(), path)


def json_columns(table: Table, path: Path) -> None:
    path.write_text(dumped(table), encoding="utf-8")


def json_objects(table: Table, path: Path) -> None:
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    path.write_text(dumped(rows), encoding="utf-8")


def polars_json(table: Table, path: Path) -> None:
    texts(table).write_json(path)


TEXT_WRITERS: dict[str, tuple[Callable[[Table, Path], None], ...]] = {
    ".csv": (csv_module, csv_lines, csv_quoted, polars_csv, arrow_csv, pandas_csv),
    ".parquet": (polars_parquet, arrow_parquet),
    ".json": (json_columns, json_objects, polars_json),
}


# --- readers --------------------------------------------------------------------------------------


def rows_apart(before: Sequence[Any], after: Sequence[Any], place: int) -> bool:
    """Whether all rows but one are read the same."""
    same = [np.array_equal(a, b, equal_nan=True) for a, b in zip(before, after, strict=True)]
    return all(fits for i, fits in enumerate(same) if i != place)


def counts_apart(before: Counter[Any], after: Counter[Any], place: int) -> bool:
    """Whether one record at most is another one."""
    return (before - after).total() <= 1 and (after - before).total() <= 1


def entries(path: Path) -> Any:
    return list(read_entries(Declared("x", (ROWS,)), path))


def words(path: Path) -> Any:
    return list(read_entries(Declared("x", (ROWS,), None, Words(ABC).read), path))


def matrix(path: Path) -> Any:
    return list(read_entries(Declared("x", (ROWS, 2)), path).reshape(ROWS, 2))


def by_party(path: Path) -> Any:
    return list(read_entries(Declared("x", (ROWS,), "voter"), path))


AGES: tuple[Column, ...] = (("age", (), 0, 4), ("sex", ("F", "M"), None, None))


def cells(path: Path, *, drops: bool = True) -> Any:
    return Counter(dict(enumerate(count_cells(holding.cells(10, AGES, drops=drops), path).tolist())))


def nearest_cells(path: Path) -> Any:
    return cells(path, drops=False)


def reports(path: Path, atom: Numbers | Words) -> Any:
    return [code for columns in batches(Fields("x"), path) for code in atom.codes(columns[0]).tolist()]


def word_reports(path: Path) -> Any:
    return reports(path, Words(ABC))


def number_reports(path: Path) -> Any:
    return reports(path, Numbers(tuple(Fraction(i) for i in range(5))))


def ballots(path: Path, form: Form) -> Any:
    found: Counter[Any] = Counter()
    for ballot, count in read_ballots(form, path).each():
        found[ballot] += count
    return found


def choices(path: Path) -> Any:
    return ballots(path, Form("x", "voter", ABC))


def secret_choices(path: Path) -> Any:
    return ballots(path, Form("x", None, ABC, drops=True))


def rankings(path: Path) -> Any:
    return ballots(path, Form("x", "voter", ABC, 3, 3))


def statistics(path: Path) -> Any:
    return [record for _, part in rows_of(Wanted("x", "voter", 2, 1), path) for record in part]


@dataclass(frozen=True)
class Case:
    """A table that fits, the columns of which a cell is changed, and how it is read."""

    read: Callable[[Path], Any]
    table: Table
    changed: tuple[str, ...]
    apart: Callable[[Any, Any, int], bool] = rows_apart


PLAIN = [f"0.{i}" for i in range(1, ROWS + 1)]
NAMED = [ABC[i % 3] for i in range(ROWS)]
ORDERS = ["north south west", "west south north", "south west north"] * 2
KEYS = [str(i) for i in range(1, ROWS + 1)]
CASES = (
    Case(entries, {"x": PLAIN}, ("x",)),
    Case(entries, {"id": KEYS, "x": PLAIN, "said": NAMED}, ("x", "said", "id")),
    Case(words, {"x": NAMED}, ("x",)),
    Case(matrix, {"x_1": PLAIN, "x_2": PLAIN}, ("x_1", "x_2")),
    Case(by_party, {"voter": KEYS, "x": PLAIN}, ("x",)),
    Case(cells, {"age": list("012340"), "sex": list("FMFMFM"), "said": NAMED}, ("age", "sex", "said"), counts_apart),
    Case(nearest_cells, {"age": list("012340"), "sex": list("FMFMFM")}, ("age", "sex"), counts_apart),
    Case(word_reports, {"x": NAMED}, ("x",)),
    Case(number_reports, {"x": list("012340"), "said": NAMED}, ("x", "said")),
    Case(choices, {"choice": NAMED}, ("choice",), counts_apart),
    Case(secret_choices, {"x": NAMED, "said": NAMED}, ("x", "said"), counts_apart),
    Case(rankings, {"voter": KEYS, "ranking": ORDERS}, ("ranking",), counts_apart),
    Case(statistics, {"voter": KEYS, "x_1": PLAIN, "x_2": PLAIN}, ("x_1", "x_2")),
)


def shown(value: Any) -> str:
    return "a long number" if isinstance(value, int) and abs(value) > 10**100 else repr(value)[:80]


def changed(table: Table, column: str, place: int, value: Any) -> Table:
    return {n: [value if (n, i) == (column, place) else v for i, v in enumerate(vs)] for n, vs in table.items()}


class Folder:
    """Files written once, and what is read in them."""

    def __init__(self, path: Path) -> None:
        self.path, self._known = path, dict[tuple[int, Any], Any]()

    def compare(
        self, case: Case, write: Callable[[Table, Path], None], suffix: str, cell: tuple[str, int, Any]
    ) -> None:
        """A cell changed to another value moves no other row, and is refused no more than the cell before."""
        column, place, value = cell
        key = (CASES.index(case), write)
        if key not in self._known:
            write(case.table, self.path / f"before{suffix}")
            self._known[key] = case.read(self.path / f"before{suffix}")
        after = self.path / f"after{suffix}"
        write(changed(case.table, column, place, value), after)
        what = f"{write.__name__}, {case.read.__name__}, {column}[{place}] = {shown(value)}"
        try:
            found = case.read(after)
        except Exception as error:  # noqa: BLE001 - a panic of a library's is what is looked for
            pytest.fail(f"{what}: {error!r}")
        assert case.apart(self._known[key], found, place), what


def test_no_cell_moves_another(tmp_path: Path) -> None:
    draws, folder = random.Random(10), Folder(tmp_path)
    for _ in range(FILES):
        suffix = draws.choice([".csv"] * 5 + [".parquet", ".json", ".json"])
        write = draws.choice(TEXT_WRITERS[suffix])
        case = draws.choice(CASES)
        only_json = write in (json_columns, json_objects) and draws.random() < 0.4
        value = draws.choice(JSON_ONLY) if only_json else any_text(draws)
        folder.compare(case, write, suffix, (draws.choice(case.changed), draws.randrange(ROWS), value))


def test_large_text_files_are_read_as_small_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draws, path, asked = random.Random(1), tmp_path / "a.csv", Fields("x", 1)
    cells = ["car", " bus ", "1", "", "\t2", "é", "a\rb", "\r", "x,y", "'q'", "nan", "\x1f", "\x85", "1,", "\ufeff"]

    def read(large: int) -> list[list[str]]:
        monkeypatch.setattr(reading, "CHUNK", large)
        return [[cell or "" for cell in column] for batch in batches(asked, path) for column in batch]

    for _ in range(100):
        ends, head = draws.choice(["\n", "\r\n", "\n\n"]), draws.choice(["x_1", " x_1 ", "x_1,y", "y,x_1"])
        lines = [head, *(draws.choice(cells) for _ in range(draws.randrange(6)))]
        path.write_text(ends.join(lines) + draws.choice(["", "\n"]), newline="")
        assert read(10**9) == read(-1)


# --- numbers as numbers ---------------------------------------------------------------------------


def npy(table: Table, path: Path) -> None:
    (column,) = table.values()
    np.save(path, np.array([np.nan if v is None else v for v in column], dtype=np.float64))


def npy_of_texts(table: Table, path: Path) -> None:
    (column,) = table.values()
    np.save(path, np.array(["" if v is None else str(v) for v in column], dtype="U40"))


def savetxt(table: Table, path: Path) -> None:
    columns = [[np.nan if v is None else v for v in column] for column in table.values()]
    np.savetxt(path, np.array(columns).T, delimiter=",", header=",".join(table), comments="")


def floats_parquet(table: Table, path: Path) -> None:
    pl.DataFrame(table, schema=dict.fromkeys(table, pl.Float64)).write_parquet(path)


def floats_csv(table: Table, path: Path) -> None:
    pl.DataFrame(table, schema=dict.fromkeys(table, pl.Float64)).write_csv(path)


def integers_parquet(table: Table, path: Path) -> None:
    whole = {name: [None if v is None else int(v) for v in column] for name, column in table.items()}
    pl.DataFrame(whole, schema=dict.fromkeys(table, pl.Int64)).write_parquet(path)


def numbered_words(path: Path) -> Any:
    return reports(path, Words((Fraction(1), Fraction(2), "many")))


STEPS = [1.0, 2.0, 1.0, 2.0, 2.0, 1.0]
NUMERIC = (
    Case(entries, {"x": STEPS}, ("x",)),
    Case(number_reports, {"x": STEPS}, ("x",)),
    Case(numbered_words, {"x": STEPS}, ("x",)),
)


def test_no_number_moves_another(tmp_path: Path) -> None:
    draws = random.Random(11)
    writers = {
        ".npy": (npy, npy_of_texts),
        ".csv": (savetxt, floats_csv),
        ".parquet": (floats_parquet, integers_parquet),
        ".json": (json_columns,),
    }
    for _ in range(300):
        suffix = draws.choice(list(writers))
        write, case, place = draws.choice(writers[suffix]), draws.choice(NUMERIC), draws.randrange(ROWS)
        value = draws.choice(INTEGERS if write is integers_parquet else NUMBERS)
        what = f"{write.__name__}, {case.read.__name__}, x[{place}] = {shown(value)}"
        write(case.table, tmp_path / f"before{suffix}")
        write(changed(case.table, "x", place, value), tmp_path / f"after{suffix}")
        before, after = (case.read(tmp_path / f"{name}{suffix}") for name in ("before", "after"))
        assert case.apart(before, after, place), what


@pytest.mark.parametrize("case", [*CASES, *NUMERIC[:1]], ids=lambda case: case.read.__name__)
def test_no_value_in_memory_moves_another(case: Case) -> None:
    """Lists, and objects of any kind in them."""

    class Odd:
        def __repr__(self) -> str:
            return SECRET

    odd = (
        *ODD,
        *JSON_ONLY,
        Odd(),
        b"north",
        b"\xff",
        1j,
        date(2026, 1, 1),
        Decimal("0.1"),
        Decimal("sNaN"),
        np.float32(2),
    )
    expected = case.read(case.table)  # type: ignore[arg-type]
    for column in case.changed:
        for value in odd:
            found = case.read(changed(case.table, column, 2, value))  # type: ignore[arg-type]
            assert case.apart(expected, found, 2), f"{column} = {shown(value)}"


RAW = st.text(
    st.sampled_from(['"', "'", ";", " ", "\r", "\x00", "a", "7", ".", "\\", "\ufeff", "\x1f", "é"]), max_size=8
)


@given(RAW, st.integers(0, ROWS - 1), st.booleans(), st.sampled_from(["x", "y,x", "x,y"]))
@settings(
    max_examples=4 * settings().max_examples, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
def test_no_sign_typed_into_a_line_moves_another(tmp_path: Path, raw: str, place: int, quoted: bool, head: str) -> None:
    """A file that an editor changed: one line for each row, whatever the quotes in it say."""
    sign = '"' if quoted else ""
    cells_of = [
        [raw if (i, name) == (place, "x") else f"{sign}0.{i + 1}{sign}" for name in head.split(",")]
        for i in range(ROWS)
    ]
    path = tmp_path / "x.csv"
    path.write_bytes("\n".join([head, *(",".join(row) for row in cells_of), ""]).encode())
    expected = [0.1 + i / 10 for i in range(ROWS)]
    found = entries(path)
    assert [i for i in range(ROWS) if not np.isclose(found[i], expected[i])] in ([], [place])
    frame = load_frame("x", path).collect()
    assert frame.height == ROWS
    kept = [text for i, text in enumerate(frame["x"].to_list()) if i != place]
    assert kept == [f"0.{i + 1}" for i in range(ROWS) if i != place]
