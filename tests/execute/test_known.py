"""One data set has one budget, whatever its file is; other data have their own: forty ways and more of each."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from privspec.execute import warehouse
from privspec.execute.fingerprint import Seeds
from privspec.execute.registry import registration
from privspec.execute.sketching import found_in
from tests.execute.knowing import pay_for, refusal

duckdb = pytest.importorskip("duckdb")

Columns = dict[str, list[Any]]
REGIONS = ("north", "south", "Île-de-France", "far  east")
LARGE = 400_000
"""Rows of some 20 MB."""


def people(rows: int, seed: int = 1) -> Columns:
    rng = random.Random(seed)
    return {
        "id": rng.sample(range(10**7, 10**8), rows),
        "age": [min(int(rng.expovariate(0.03)), 99) for _ in range(rows)],
        "pay": [None if rng.random() < 0.05 else round(rng.lognormvariate(7, 1), 2) for _ in range(rows)],
        "sex": [rng.choice("FM") for _ in range(rows)],
        "region": [rng.choice(REGIONS) for _ in range(rows)],
        "day": [f"2024-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}" for _ in range(rows)],
        "member": [rng.random() < 0.3 for _ in range(rows)],
    }


def text(cell: Any) -> str:
    return "" if cell is None else str(cell).lower() if isinstance(cell, bool) else str(cell)


def lines(columns: Mapping[str, list[Any]], separator: str = ",", write: Callable[[Any], str] = text) -> list[str]:
    head = separator.join(columns)
    return [head, *(separator.join(map(write, row)) for row in zip(*columns.values(), strict=True))]


def put(path: Path, content: str | bytes | list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "\n".join(content) + "\n" if isinstance(content, list) else content
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def frame(columns: Columns) -> pl.DataFrame:
    return pl.DataFrame(columns)


def records(columns: Columns) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def shuffled(columns: Columns) -> Columns:
    order = list(range(len(columns["id"])))
    random.Random(9).shuffle(order)
    return {name: [cells[i] for i in order] for name, cells in columns.items()}


def without(columns: Columns, *names: str) -> Columns:
    return {name: cells for name, cells in columns.items() if name not in names}


def quoted(cell: Any) -> str:
    return f'"{text(cell)}"'


def otherwise(cell: Any) -> str:
    """The same numbers in other digits, with blanks around cells, and words for what is missing."""
    if isinstance(cell, float):
        return f" {cell:.6e}" if cell == float(f"{cell:.6e}") else f"{cell:.4f} "
    return "NA" if cell is None else f" {cell} "


def hive(path: Path, columns: Columns) -> Path:
    whole = frame(columns)
    for sex in ("F", "M"):
        (path / f"sex={sex}").mkdir(parents=True)
        whole.filter(pl.col("sex") == sex).drop("sex").write_parquet(path / f"sex={sex}" / "part.parquet")
    return path


def folder(path: Path, columns: Columns) -> Path:
    path.mkdir()
    for k, part in enumerate(frame(columns).iter_slices(max(len(columns["id"]) // 3, 1))):
        part.write_parquet(path / f"part-{k}.parquet")
    return path


def parquet(path: Path, found: pl.DataFrame) -> Path:
    found.write_parquet(path)
    return path


def database(path: Path, columns: Columns, *statements: str) -> str:
    held = frame(columns)  # noqa: F841 - DuckDB finds it by this name
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people AS SELECT * FROM held")
        for statement in statements:
            connection.execute(statement)
    return f"{path}::{'seen' if any('seen' in one for one in statements) else 'people'}"


def small_kinds(found: pl.DataFrame) -> pl.DataFrame:
    return found.with_columns(
        pl.col("age").cast(pl.Int8), pl.col("sex", "region").cast(pl.Categorical), pl.col("day").str.to_date()
    )


def numbered(columns: Columns) -> Columns:
    return {"row": list(range(len(columns["id"]))), **columns}


def decimals(columns: Columns) -> Columns:
    return {**columns, "pay": [None if pay is None else Decimal(f"{pay:.3f}") for pay in columns["pay"]]}


WAYS: dict[str, Callable[[Path, Columns], Any]] = {
    "text": lambda p, c: put(p / "people.csv", lines(c)),
    "another name": lambda p, c: put(p / "else" / "copy of it.csv", lines(c)),
    "carriage returns": lambda p, c: put(p / "a.csv", "\r\n".join(lines(c)) + "\r\n"),
    "a mark of its encoding": lambda p, c: put(p / "a.csv", "\ufeff" + "\n".join(lines(c)) + "\n"),
    "one more newline": lambda p, c: put(p / "a.csv", [*lines(c), ""]),
    "no last newline": lambda p, c: put(p / "a.csv", "\n".join(lines(c))),
    "blank rows": lambda p, c: put(p / "a.csv", [line for one in lines(c) for line in (one, "," * 6)]),
    "blank lines": lambda p, c: put(p / "a.csv", [*lines(c)[:5], "", "", *lines(c)[5:]]),
    "upside down": lambda p, c: put(p / "a.csv", lines({n: cells[::-1] for n, cells in c.items()})),
    "shuffled": lambda p, c: put(p / "a.csv", lines(shuffled(c))),
    "columns in another order": lambda p, c: put(p / "a.csv", lines(dict(reversed(c.items())))),
    "columns of other names": lambda p, c: put(p / "a.csv", lines({f"v{n}": cells for n, cells in c.items()})),
    "without the ids": lambda p, c: put(p / "a.csv", lines(without(c, "id"))),
    "without most columns": lambda p, c: put(p / "a.csv", lines(without(c, "id", "region", "day", "member"))),
    "a row number": lambda p, c: put(p / "a.csv", lines(numbered(c))),
    "one column more": lambda p, c: put(p / "a.csv", lines({**c, "z": people(len(c["id"]), 8)["pay"]})),
    "quotes": lambda p, c: put(p / "a.csv", lines(c, write=quoted)),
    "tabs": lambda p, c: put(p / "a.tsv", lines(c, "\t")),
    "packed": lambda p, c: put(p / "a.csv.gz", gzip.compress("\n".join(lines(c)).encode())),
    "other digits": lambda p, c: put(p / "a.csv", lines(c, write=otherwise)),
    "no header": lambda p, c: put(p / "a.csv", lines(c)[1:]),
    "moments": lambda p, c: put(p / "a.csv", lines({**c, "day": [f"{day}T00:00:00Z" for day in c["day"]]})),
    "Parquet": lambda p, c: parquet(p / "a.parquet", frame(c)),
    "Parquet of small kinds": lambda p, c: parquet(p / "a.parquet", small_kinds(frame(c))),
    "Parquet, columns of it": lambda p, c: parquet(p / "a.parquet", frame(c).select("pay", "age")),
    "Parquet of decimals": lambda p, c: parquet(p / "a.parquet", frame(decimals(c))),
    "Parquet in a folder": lambda p, c: folder(p / "parts", c),
    "Hive": lambda p, c: hive(p / "hive", c),
    "Arrow": lambda p, c: (frame(c).write_ipc(p / "a.arrow"), p / "a.arrow")[1],
    "JSON of records": lambda p, c: put(p / "a.json", json.dumps(records(c))),
    "JSON of columns": lambda p, c: put(p / "a.json", json.dumps(c)),
    "JSON of numbered columns": lambda p, c: put(
        p / "a.json", json.dumps({n: dict(enumerate(cells)) for n, cells in c.items()})
    ),
    "JSON of lists": lambda p, c: put(p / "a.json", json.dumps(list(zip(*c.values(), strict=True)))),
    "JSON under the name": lambda p, c: put(p / "a.json", json.dumps({"people": records(shuffled(c))})),
    "a database": lambda p, c: database(p / "a.duckdb", c),
    "a database with another table": lambda p, c: database(p / "b.duckdb", c, "CREATE TABLE other AS SELECT 1"),
    "a view": lambda p, c: database(p / "c.duckdb", c, "CREATE VIEW seen AS SELECT * FROM people"),
    "a view of columns": lambda p, c: database(p / "d.duckdb", c, "CREATE VIEW seen AS SELECT age, pay FROM people"),
    "a sorted table": lambda p, c: database(
        p / "e.duckdb", c, "CREATE TABLE seen AS SELECT CAST(pay AS VARCHAR) AS w, id FROM people ORDER BY pay"
    ),
    "polars": lambda _, c: frame(c),
    "polars, lazily": lambda _, c: frame(shuffled(c)).lazy(),
    "Arrow in memory": lambda _, c: pa.table(c),
    "columns in memory": lambda _, c: dict(c),
    "arrays in memory": lambda _, c: {"a": np.array(c["age"]), "p": np.array(c["pay"], dtype=float), "s": c["sex"]},
    "records in memory": lambda _, c: records(c),
    "rows in memory": lambda _, c: list(zip(*c.values(), strict=True)),
}


def known_in_all_ways(tmp_path: Path, rows: int, ways: Mapping[str, Callable[[Path, Columns], Any]]) -> None:
    columns = people(rows)
    pay_for(WAYS["text"](tmp_path, columns), tmp_path / "people.ledger.db")
    given = f"give --ledger {tmp_path / 'people.ledger.db'}"
    for number, (way, write) in enumerate(ways.items()):
        place = tmp_path / str(number)
        place.mkdir()
        source = write(place, columns)
        # whoever says that they are others' is not believed
        for others in (False, True):
            assert refusal(source, tmp_path, others=others) == given, way


def test_a_small_data_set_written_in_any_way_is_known(tmp_path: Path) -> None:
    assert len(WAYS) >= 40
    known_in_all_ways(tmp_path, 40, WAYS)


def test_it_is_known_without_the_database_that_reads_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warehouse, "_asks", lambda _: False)
    known_in_all_ways(tmp_path, 40, {way: write for way, write in WAYS.items() if way.startswith(("Parquet", "Hive"))})


@pytest.mark.slow
def test_a_large_data_set_written_in_any_way_is_known(tmp_path: Path) -> None:
    known_in_all_ways(tmp_path, LARGE, WAYS)


# --- other data -----------------------------------------------------------------------------------


def with_(columns: Columns, **cells: list[Any]) -> Columns:
    return {**columns, **cells}


def drawn(seed: int, rows: int = 200, **choices: list[Any]) -> Columns:
    rng = random.Random(seed)
    return {name: [rng.choice(words) for _ in range(rows)] for name, words in choices.items()}


def of_steps(first: Any, rows: int = 200) -> list[Any]:
    return [first + k for k in range(rows)]


def pairs_of_other_data() -> Iterator[tuple[str, Any, Any]]:
    """Data of different people, the second of which looks as much like the first as it may by design or by chance."""
    one, other = people(200, 1), people(200, 2)
    yield "people", one, other
    yield "many people", people(2000, 1), people(2000, 2)
    yield "more people than before", one, people(300, 2)
    yield "half as many", one, people(100, 2)
    for name in one:
        if name != "id":
            yield f"one column, {name}", {name: one[name]}, {name: other[name]}
    for label, column in (
        ("numbers from 1", of_steps(1)),
        ("numbers from 1000", of_steps(1000)),
        ("numbers by tens", [10 * k for k in range(200)]),
        ("years", [1950 + k % 50 for k in range(200)]),
        ("days", [f"{date(2024, 1, 1) + timedelta(days=k)}" for k in range(200)]),
        ("moments", [f"2024-01-01T{k // 60:02}:{k % 60:02}:00" for k in range(200)]),
        ("names with numbers", [f"P{k:05}" for k in range(200)]),
        ("one word", ["Norway"] * 200),
        ("nothing", [None] * 200),
        ("a design of two arms", [("control", "treated")[k % 2] for k in range(200)]),
        ("a design of arms and years", [k // 20 for k in range(200)]),
        ("few words in a row", sorted(random.Random(5).choices("abc", k=200))),
    ):
        yield f"the same {label}", with_(without(one, "id"), c=column), with_(without(other, "id"), c=column)
    numbered = without(one, "id"), without(other, "id")
    yield (
        "the same ids but for few",
        *(
            with_(c, id=[k for k in range(1, 203) if k not in g])
            for c, g in zip(numbered, ((7, 9), (3, 8)), strict=True)
        ),
    )
    yield (
        "all at once the same",
        *(with_(c, id=of_steps(1), arm=["a", "b"] * 100, country=["no"] * 200, blank=[""] * 200) for c in numbered),
    )
    yield (
        "tallies",
        {"choice": list("abcdefgh"), "count": [5, 7, 1, 9, 12, 40, 2, 3]},
        {"choice": list("abcdefgh"), "count": [6, 5, 2, 9, 10, 41, 0, 3]},
    )
    words = [f"{a}{b}{c}" for a in "abcde" for b in "fghij" for c in "klmno"]
    yield "long tallies", *({"word": words, "count": drawn(s, 125, n=list(range(50)))["n"]} for s in (1, 2))
    yield "a matrix", np.random.default_rng(1).integers(0, 9, (20, 5)), np.random.default_rng(2).integers(0, 9, (20, 5))
    yield "numbers", np.random.default_rng(1).random(50), np.random.default_rng(2).random(50)
    yield "yes and no", ["yes"] * 6 + ["no"] * 4, ["yes"] * 7 + ["no"] * 3
    yield "more yes and no", drawn(1, 500, a=["yes", "no"]), drawn(2, 500, a=["yes", "no"])
    yield "yes and no of other numbers of people", ["yes"] * 6 + ["no"] * 4, ["yes"] * 60 + ["no"] * 40
    yield (
        "answers in one of two columns",
        {"a": list("yynyn"), "b": list("nnnyy")},
        {"a": list("yynny"), "c": list("nyyyy")},
    )
    yield "words", drawn(1, 300, a=["n", "s"], b=list("pqr")), drawn(2, 300, a=["n", "s"], b=list("pqr"))
    yield "objects of one length", [{"x": k} for k in (1, 5, 9, 12)], [{"x": k} for k in (2, 5, 9, 11)]
    yield "objects of the same names", records(drawn(1, 9, a=[1, 2, 3])), records(drawn(2, 9, a=[1, 2, 3]))
    yield "sparse numbers", drawn(1, 300, a=[*[0] * 30, 1, 2]), drawn(2, 300, a=[*[0] * 30, 1, 2])
    yield (
        "all missing, but for some",
        with_(drawn(1, 50, b=[1, 2, 3, 4, 5]), a=[None] * 50),
        with_(drawn(2, 50, b=[1, 2, 3, 4, 5]), a=[None] * 50),
    )
    yield "one number", [1.5], [1.6]
    yield "one and many", [1.5], [1.5, 1.7, 1.9]
    yield "some of them", {"a": one["pay"]}, {"a": one["pay"][:100]}


@pytest.mark.parametrize(("one", "other"), [pytest.param(a, b, id=label) for label, a, b in pairs_of_other_data()])
def test_other_data_have_a_budget_of_their_own(tmp_path: Path, one: Any, other: Any) -> None:
    pay_for(one, tmp_path / "one.ledger.db")
    assert refusal(other, tmp_path) is None
    pay_for(other, tmp_path / "other.ledger.db")
    assert refusal(one, tmp_path) and refusal(other, tmp_path)


def test_there_are_forty_pairs_of_other_data() -> None:
    assert len(list(pairs_of_other_data())) >= 40


@pytest.mark.slow
def test_other_data_of_any_size_have_a_budget_of_their_own(tmp_path: Path) -> None:
    """Forty data sets of 20 MB: of each pair of them, neither is taken for the other."""
    rng = np.random.default_rng(1)
    for number in range(40):
        columns = {
            "id": np.arange(LARGE),
            "age": rng.integers(0, 100, LARGE),
            "pay": rng.lognormal(7, 1, LARGE).round(2),
        }
        columns["day"] = rng.integers(0, 365, LARGE)
        frame(columns).write_parquet(tmp_path / f"{number}.parquet")
        pay_for(tmp_path / f"{number}.parquet", tmp_path / f"{number}.ledger.db")


def test_bytes_that_are_no_text_hide_no_column(tmp_path: Path) -> None:
    """What is added to one cell makes no data set that has a budget of its own: the other cells are near enough."""
    one = people(200)

    def written(path: Path, changed: bytes | None) -> Path:
        cells = [
            word.encode() for word in (f"{k}-{region}" for k, region in zip(one["id"], one["region"], strict=True))
        ]
        cells[7] = cells[7] if changed is None else changed
        buffers = pa.array(cells, pa.large_binary()).buffers()
        pa.parquet.write_table(pa.table({"a": pa.Array.from_buffers(pa.large_string(), len(cells), buffers)}), path)
        return path

    pay_for(written(tmp_path / "a.parquet", None), tmp_path / "a.ledger.db")
    other = written(tmp_path / "b.parquet", b"\xff\xfe")
    with registration({"people": other}, None) as found:
        found.check(tmp_path / "b.ledger.db", None)
        said = found.near()
    assert said is not None and said.code == "PS1017" and "a.ledger.db" in said.notes[0]


@pytest.mark.parametrize(
    ("records", "columns"),
    [
        (
            [{"pay": 1.5, "count": 2}, {"pay": None}, {"pay": 3.5, "count": 1}],
            {"pay": [1.5, None, 3.5], "count": [2, None, 1]},
        ),
        ([{"count": 2}, {"pay": 1.5, "count": 3}], {"pay": [None, 1.5], "count": [2, 3]}),
    ],
)
def test_a_name_that_a_record_lacks_moves_no_other_cell(records: Any, columns: Columns) -> None:
    """Rows stand for so many records each: a count belongs to the cells of its own row."""
    seeds = Seeds.of(b"any")
    (one,), (other,) = (found_in("people", data, seeds).tables for data in (records, columns))
    for mine, same in ((one.columns, other.columns), (one.weighted, other.weighted)):
        assert {name: sketch.cells for name, sketch in mine.items()} == {k: sketch.cells for k, sketch in same.items()}


def test_a_name_at_two_depths_is_counted_with_no_row() -> None:
    """It is no column: what it holds is known, but not how often its rows stand."""
    records = [{"x": {"v": 1.0}, "y": {"v": None}, "pay": 2.0, "count": 3}, {"x": {"v": 2.0}, "pay": 4.0, "count": 1}]
    (found,) = found_in("people", records, Seeds.of(b"any")).tables
    assert {name: sketch.cells for name, sketch in found.columns.items()} == {"v": 2, "pay": 2, "count": 2}
    assert {name: sketch.cells for name, sketch in found.weighted.items()} == {"pay": 4}
