"""Whichever engine reads a table, the same whole numbers come: those of a naive reading, cell by cell."""

from __future__ import annotations

import json
import math
import re
import sys
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privspec.api import Problem, load
from privspec.cli import run_command_line
from privspec.core.diagnostics import BudgetError, DataError, UsageError
from privspec.execute import sources, statistic, warehouse
from privspec.execute.data import Grid, count_cells, data_rules, located, read_inputs
from privspec.execute.engines import records_of
from privspec.execute.family import RunContext
from privspec.execute.ledger import place_of
from privspec.execute.reading import Declared, read_entries
from privspec.execute.statistic import Attribute, Groups, Statistic
from privspec.families.gaussian.execution import read_executed
from privspec.kernel.core.linear import Column, InputLayout
from privspec.kernel.core.problem import ContributionBound
from privspec.kernel.writing import plan_digest
from privspec.noise.samplers import SimulationRandomness
from privspec.plan import Plan
from privspec.profiles import fit_of_spec
from tests.execute.knowing import pay_for, refusal, tables

duckdb = pytest.importorskip("duckdb")

COLUMNS = (
    ("sex", ("F", "M", "2"), None, None, (), False),
    ("age", (), 0, 3, (), False),
    ("pay", ("-1/10", "1000"), None, None, (), True),
    ("hours", ("0", "60"), None, None, (), True),
)
CUT = (
    *COLUMNS,
    ("age", (), 0, 3, ("< 2",), False),
    ("hours", ("0", "60"), None, None, ("< 1/10", "<= 5/2", "< 60"), False),
)
STEPS = 2**30
HOURS = """variables:
  input people in table(sex in {0, 1}, "hours-per-week" in [0, 98])
  output worked
loss: E[ ||worked - sum(people."hours-per-week", by = {sex})||^2 ]
privacy: worked is (1, 1e-6)-DP wrt people, adding or removing one record
"""
PLACES = count()


def table(drops: bool, columns: Any = COLUMNS, steps: int = STEPS, records: int | None = None) -> Grid:
    columns = tuple(Column(*one) for one in columns)
    size = math.prod(column.size for column in columns)
    held = InputLayout("people", 0, size, "cells", (), Fraction(0), None, None, columns, records, None)
    return Grid(held, Fraction(1, steps), drops)


def as_number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        truth = {"true": 1.0, "false": 0.0}
        return truth.get(cell.strip().casefold(), math.nan) if isinstance(cell, str) else math.nan


def naively(rows: list[tuple[Any, ...]], drops: bool) -> list[int]:
    """Every record's steps one by one, straight from what the documentation of `statistic` says."""
    counts = np.zeros((3, 4, 2, 2, 2, 4), dtype=object)
    for sex, age, *numbers in rows:
        text, quantity = str(sex).strip(), as_number(sex)
        word = {"F": 0, "M": 1, "2": 2}.get(text, 2 if quantity == 2 else None)
        years = as_number(age)
        whole = None if math.isnan(years) else math.floor(min(max(years, 0), 3) + 0.5)
        shares, lost = [], word is None or whole is None
        for value, low, high, width in zip(numbers, (-0.1, 0.0), (1000.0, 60.0), ("10001/10", "60"), strict=True):
            x = as_number(value)
            lost = lost or math.isnan(x)
            inside = low if math.isnan(x) else min(max(x, low), high)
            shares.append(min(math.floor((inside - low) * float(STEPS / Fraction(width)) + 0.5), STEPS))
            shares[-1] = 0 if math.isnan(x) else shares[-1]
        if lost and drops:
            continue
        x = as_number(numbers[1])
        side = 0 if math.isnan(x) else (x >= 0.1) + (x > 2.5) + (x >= 60)
        cell, (p, q) = counts[word or 0, whole or 0, :, :, int((whole or 0) >= 2), side], shares
        cell[1, 1] += min(p, q)
        cell[1, 0] += max(p - q, 0)
        cell[0, 1] += max(q - p, 0)
        cell[0, 0] += STEPS - max(p, q)
    return counts.reshape(-1).tolist()


def of_table(folder: Path, rows: list[tuple[Any, ...]], types: tuple[str, ...]) -> warehouse.Table:
    path = folder / f"{next(PLACES)}.duckdb"
    with duckdb.connect(path) as database:
        database.execute(f"CREATE TABLE t (sex {types[0]}, age {types[1]}, pay {types[2]}, hours {types[3]})")
        if rows:
            database.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    found = located("people", f"{path}::t")
    assert isinstance(found, warehouse.Table)
    return found


def counted(source: Any, drops: bool) -> tuple[list[int], list[str]]:
    circumstances = RunContext()
    return count_cells(table(drops, CUT), source, circumstances).tolist(), circumstances.keeper.report()


def every_engine(
    monkeypatch: pytest.MonkeyPatch, folder: Path, rows: list[tuple[Any, ...]], types: tuple[str, ...]
) -> dict[str, Any]:
    """The same rows in a database, in Parquet, in folders of it, as Arrow and polars frames."""
    stored = of_table(folder, rows, types)
    name = f"{folder}/{next(PLACES)}"
    with duckdb.connect(stored.path, read_only=True) as database:
        database.execute(f"COPY t TO '{name}.parquet' (FORMAT parquet)")
        arrow = database.sql("SELECT * FROM t").to_arrow_table()
    frame = pl.from_arrow(arrow)
    assert isinstance(frame, pl.DataFrame)
    parts = Path(f"{name}.parts")
    (parts / "more").mkdir(parents=True)
    frame.head(1).write_parquet(parts / "b.parquet")
    frame.tail(-1).write_parquet(parts / "more" / "a.parquet")
    frame.write_ipc(f"{name}.arrow")
    (parts / "_SUCCESS").touch()
    return {
        "database": stored,
        "Parquet": Path(f"{name}.parquet"),
        "folder": located("people", parts),
        "Arrow": arrow,
        "Arrow file": Path(f"{name}.arrow"),
        "polars": frame,
        "reversed": frame.reverse(),
        "lazy": frame.lazy(),
    }


DOUBLES = [0.0, -0.0, 0.1, -0.1, 0.5, 1.5, 2.0, 2.5, 3.0, 59.99999999, 60.0, 999.9999999, 1e3, 5e-324, 1.7e308]
DOUBLES += [-1.7e308, math.inf, -math.inf, math.nan, 2.0**53 + 2, 0.49999999999999994, 333.3333333333333]
WHOLES = [0, 1, 2, 3, 4, -1, 59, 60, 61, 999, 1000, 1001, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]
WORDS = ["F", "M", "2", " F ", "f", "", "2.0", "M\u00a0", "Δ", "F'", '"', "nan"]
TEXTS = [
    "1",
    " 2 ",
    "1e2",
    "nan",
    "inf",
    "-Infinity",
    "abc",
    "",
    "1_0",
    "٣",
    "0.1",
    "-0",
    "1e400",
    "true",
    "1,5",
    "12.5",
]


def cells(values: list[Any], more: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[Any]:
    found = st.none() | st.sampled_from(values)
    return found if more is None else found | more


KINDS = {
    "DOUBLE": cells(DOUBLES, st.floats(width=64)),
    "FLOAT": cells([0.0, -0.0, 0.5, math.nan, math.inf], st.floats(width=32)),
    "TINYINT": cells([v for v in WHOLES if abs(v) < 128]),
    "UBIGINT": cells([v for v in WHOLES if v >= 0], st.integers(0, 2**64 - 1)),
    "INTEGER": cells([v for v in WHOLES if abs(v) < 2**31]),
    "BIGINT": cells(WHOLES, st.integers(-(2**63), 2**63 - 1)),
    "DECIMAL(9, 3)": cells([Decimal("0.001"), Decimal("2.000"), Decimal("-0.1"), Decimal("999.999"), Decimal("59.5")]),
    "DECIMAL(38, 20)": cells([Decimal("0.10000000000000000555"), Decimal("2"), Decimal("333.33333333333333333333")]),
    "BOOLEAN": cells([True, False]),
    "VARCHAR": cells([*TEXTS, *WORDS]),
}
ROWS = st.tuples(*[st.sampled_from(sorted(KINDS)) for _ in range(4)]).flatmap(
    lambda types: st.tuples(
        st.just(types), st.lists(st.tuples(*[KINDS[kind] for kind in types]), min_size=1, max_size=24)
    )
)


@settings(
    max_examples=settings().max_examples // 6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(ROWS, st.booleans())
def test_engines_agree_to_the_last_digit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: tuple[tuple[str, ...], list[tuple[Any, ...]]], drops: bool
) -> None:
    types, rows = found
    expected = naively(rows, drops)
    reports = {}
    for name, source in every_engine(monkeypatch, tmp_path, rows, types).items():
        counts, reports[name] = counted(source, drops)
        assert counts == expected, name
        if name in ("Parquet", "folder"):
            with monkeypatch.context() as without:
                without.setitem(sys.modules, "duckdb", None)
                counts, reports[f"{name}, by polars"] = counted(source, drops)
                assert counts == expected, name
    for name, report in reports.items():
        assert sorted(report) == sorted(reports["database"]), name


@settings(
    max_examples=settings().max_examples // 8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.tuples(*[KINDS["VARCHAR"]] * 4), min_size=1, max_size=24), st.booleans())
def test_text_is_read_alike_from_files_and_databases(
    tmp_path: Path, rows: list[tuple[str | None, ...]], drops: bool
) -> None:
    path = tmp_path / f"{next(PLACES)}.csv"
    frame = pl.DataFrame(rows, schema={name: pl.String for name, *_ in COLUMNS}, orient="row")
    frame.write_csv(path, quote_style="always")
    expected = naively(rows, drops)
    found = [path, frame, frame.to_dict(as_series=False), of_table(tmp_path, rows, ("VARCHAR",) * 4)]
    for source in found:
        assert counted(source, drops)[0] == expected


def test_a_record_that_is_missing_is_left_out_and_not_counted_below(tmp_path: Path) -> None:
    """The least of a number and nothing is the number, in most databases."""
    rows = [("F", None, 1.0, 1.0), ("F", 1, None, 1.0), (None, 1, 1.0, 1.0), ("F", 1, 1.0, math.nan)]
    source = of_table(tmp_path, rows, ("VARCHAR", "INTEGER", "DOUBLE", "DOUBLE"))
    assert sum(counted(source, True)[0]) == 0
    assert sum(counted(source, False)[0]) == 4 * STEPS


def test_words_are_compared_by_their_signs_whatever_the_table_says(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    with duckdb.connect(path) as database:
        database.execute("CREATE TABLE t (sex VARCHAR COLLATE NOCASE, age INT, pay DOUBLE, hours DOUBLE)")
        database.execute("INSERT INTO t VALUES ('f', 0, 0, 0), ('F', 0, 0, 0), ('F', 0, 0, 0)")
        for function in ("isnan(x) AS true", "least(a, b) AS 7", "greatest(a, b) AS 7", "floor(x) AS 7", "sum(x) AS 7"):
            database.execute(f"CREATE MACRO {function}")
        database.execute("CREATE TYPE DOUBLE_ AS ENUM ('F')")
    assert sum(counted(located("people", f"{path}::t"), True)[0]) == 2 * STEPS


def test_zero_has_one_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    columns = (("sex", ("-0.0", "0.0"), None, None, (), False),)
    rows = [(zero, 1, 1.0, 1.0) for zero in (-0.0, 0.0, -0.0)]
    for kind in ("DOUBLE", "FLOAT"):
        for source in every_engine(monkeypatch, tmp_path, rows, (kind, "INTEGER", "DOUBLE", "DOUBLE")).values():
            assert count_cells(table(True, columns, 1), source).tolist() == [0, 3]


@pytest.mark.parametrize("drops", [True, False])
def test_sums_go_beyond_64_bits(tmp_path: Path, drops: bool) -> None:
    columns = (("pay", ("0", "1"), None, None, (), True),)
    frame = pl.DataFrame({"pay": [1.0] * 5000})
    frame.write_parquet(tmp_path / "p.parquet")
    for source in (frame, tmp_path / "p.parquet"):
        assert count_cells(table(drops, columns, 2**52), source).tolist() == [0, 5000 * 2**52]


def bare(report: list[str]) -> list[str]:
    return [re.sub("word .*:", "", line) for line in report]


def test_narrow_ranges_overflow_nowhere(tmp_path: Path) -> None:
    ends = {"pay": ("0", "1e-320"), "hours": ("1", "1.00000000000000000001")}
    columns = tuple((name, both, None, None, (), True) for name, both in ends.items())
    frame = pl.DataFrame({"pay": [0.0, 5.0, -5.0], "hours": [0.0, 1.0, math.inf]})
    frame.write_parquet(tmp_path / "p.parquet")
    found = [count_cells(table(True, columns, 2**52), source) for source in (frame, tmp_path / "p.parquet")]
    assert found[0].tolist() == found[1].tolist()
    assert found[0].sum() == 3 * 2**52
    assert (found[0] >= 0).all()


def test_groups_come_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = [(f"word {i}", i % 5, str(i), i / 3) for i in range(250)] + [("F", 1, " 2 ", 3.0)] * 5
    whole, report = counted(of_table(tmp_path, rows, ("VARCHAR", "INTEGER", "VARCHAR", "DOUBLE")), True)
    for module in (warehouse, statistic):
        monkeypatch.setattr(module, "BATCH", 7)
    for source in every_engine(monkeypatch, tmp_path, rows, ("VARCHAR", "INTEGER", "VARCHAR", "DOUBLE")).values():
        counts, said = counted(source, True)
        assert counts == whole
        # which of 250 words are shown is left open
        assert sorted(bare(said)) == sorted(bare(report))


def refused(source: Any, drops: bool = True) -> str:
    with pytest.raises((DataError, UsageError)) as caught:
        count_cells(table(drops), located("people", source))
    (said,) = caught.value.diagnostics
    return " | ".join([said.code, said.message, *said.notes, said.help or ""])


def test_what_stands_behind_the_colons_is_a_name_and_no_query(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    outside = tmp_path / "outside.csv"
    outside.write_text("sex,age,pay,hours\nF,1,2,3\n")
    odd = 'a"; DROP TABLE people; --'
    with duckdb.connect(path) as database:
        database.execute("CREATE TABLE people AS SELECT 'F' AS sex, 1 AS age, 2.0 AS pay, 3.0 AS hours")
        database.execute("CREATE SCHEMA clinic")
        for name in ("clinic.people", '"' + odd.replace('"', '""') + '"'):
            database.execute(f"CREATE TABLE {name} AS SELECT * FROM people")
        database.execute("CREATE VIEW women AS SELECT * FROM people WHERE sex = 'F'")
        database.execute(f"CREATE VIEW elsewhere AS SELECT * FROM read_csv('{outside}')")
        database.execute("CREATE TABLE dated AS SELECT 'F' AS sex, DATE '2020-01-01' AS age, 2.0 AS pay, 3.0 AS hours")
        database.execute("CREATE TABLE listed AS SELECT 'F' AS sex, 1 AS age, [2.0] AS pay, 3.0 AS hours")
    for name in ("people", "main.people", "clinic.people", "women", odd):
        assert sum(counted(located("people", f"{path}::{name}"), True)[0]) == STEPS
    assert "no query" in refused(f"{path}::(SELECT * FROM people)")
    assert "no query" in refused(f'{path}::"people"; DROP TABLE people')
    assert "no query" in refused(f"{path}::")
    assert "no table peple | is people meant?" in refused(f"{path}::peple")
    assert "which of its tables" in refused(path)
    assert "does not exist" in refused(f"{tmp_path}/none.duckdb::people")
    assert "cannot be opened" in refused(f"{outside}::people")
    assert "PS0803" in refused(f"{path}::elsewhere")
    assert "column age of the data for people is of a kind" in refused(f"{path}::dated")
    assert "column pay of the data for people is of a kind" in refused(f"{path}::listed")
    with duckdb.connect(path):
        assert "no other program has open for writing" in refused(f"{path}::people")
    with duckdb.connect(path, read_only=True) as database:
        assert database.execute("SELECT count(*) FROM people").fetchone() == (1,)


def test_a_column_that_is_missing_is_named_with_the_nearest(tmp_path: Path) -> None:
    frame = pl.DataFrame({"sex": ["F"], "age": [1], "Pay": [2.0], "hours": [1.0]})
    frame.write_parquet(tmp_path / "p.parquet")
    frame.write_csv(tmp_path / "p.csv")
    assert "no column pay | they have a column Pay: is that pay?" in refused(tmp_path / "p.parquet")
    of_text = refused(tmp_path / "p.csv")
    assert "Pay" not in of_text
    assert "the first line names pay in other letters" in of_text


@pytest.mark.parametrize(("sign", "called"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
def test_other_separators_are_named(tmp_path: Path, sign: str, called: str) -> None:
    frame = pl.DataFrame({"sex": ["F"], "age": [1], "pay": [2.0], "hours": [1.0]})
    frame.write_csv(tmp_path / "p.csv", separator=sign)
    assert f"the first line has {called} between its columns" in refused(tmp_path / "p.csv")


def test_folders_hold_parquet_and_nothing_else(tmp_path: Path) -> None:
    assert "holds no Parquet file" in refused(tmp_path)
    frame = pl.DataFrame({"sex": ["F"], "age": [1], "pay": [2.0], "hours": [1.0]})
    frame.write_parquet(tmp_path / "a.parquet")
    frame.with_columns(age=pl.lit("1"), pay=pl.lit(2, dtype=pl.Int8)).write_parquet(tmp_path / "b[1].parquet")
    frame.select("hours", "pay", "age", "sex", more=1).write_parquet(tmp_path / "c.parquet")
    frame.clear().write_parquet(tmp_path / "none.parquet")
    assert sum(counted(located("people", tmp_path), True)[0]) == 3 * STEPS
    frame.drop("pay").write_parquet(tmp_path / "d.parquet")
    assert "d.parquet of the folder for people has no column pay" in refused(tmp_path)
    (tmp_path / "d.parquet").rename(tmp_path / "d.csv")
    assert "holds d.csv beside Parquet" in refused(tmp_path)


def test_folders_may_say_a_column(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As writers of partitioned tables leave it; a column of the file itself counts before what its folder says."""
    rows = [("F", 1, 2.0, 3.0), ("M", 2, 1.0, None), (None, 1, 2.0, 3.0), ("a b/%", 1, 2.0, 3.0)] * 3
    stored = of_table(tmp_path, rows, ("VARCHAR", "INTEGER", "DOUBLE", "DOUBLE"))
    with duckdb.connect(stored.path, read_only=True) as database:
        database.execute(f"COPY t TO '{tmp_path}/parts' (FORMAT parquet, PARTITION_BY (sex, age))")
    folder = located("people", tmp_path / "parts")
    for drops in (True, False):
        expected = counted(stored, drops)
        assert counted(folder, drops) == expected
        assert expected[0] == naively(rows, drops)
        with monkeypatch.context() as without:
            without.setitem(sys.modules, "duckdb", None)
            assert counted(folder, drops) == expected
        assert counted(folder.frame("people"), drops)[0] == expected[0]
    own = tmp_path / "own" / "sex=M"
    own.mkdir(parents=True)
    pl.DataFrame({"sex": ["F"], "age": [1], "pay": [2.0], "hours": [3.0]}).write_parquet(own / "a.parquet")
    assert counted(located("people", tmp_path / "own"), True)[0] == naively([("F", 1, 2.0, 3.0)], True)


def test_databases_are_read_where_no_table_is_counted(tmp_path: Path) -> None:
    """Reports, ballots: whatever is asked of all rows in any order."""
    path = tmp_path / "w.duckdb"
    with duckdb.connect(path) as database:
        database.execute(
            "CREATE TABLE answers AS SELECT ['car', 'train', 'boat'][1 + i % 3] AS answer FROM range(30) r(i)"
        )
        database.execute("CREATE TABLE ballots AS SELECT 'north' AS vote FROM range(100000)")
    keeper = fit_of_spec(load("frequency_survey").check(), {"answer": f"{path}::answers"})
    assert "answer: 30 values, 10 do not fit" in " ".join(keeper.report())
    keeper = fit_of_spec(load("dp_random_dictatorship_compulsory").check(), {"vote": f"{path}::ballots"})
    assert "vote: 100,000 values, all fit" in keeper.report()


def test_a_release_does_not_stand_among_the_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It would be read as data by the next run."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "people"
    folder.mkdir()
    pl.DataFrame({"sex": ["0", "1"], "hours-per-week": [1, 2]}).write_parquet(folder / "a.parquet")
    plan = Problem(HOURS).solve()
    with pytest.raises(UsageError, match="would stand among the data for people"):
        plan.run({"people": folder}, output=folder / "release.parquet", new_ledger=True)
    plan.run({"people": folder}, output=tmp_path / "release.parquet", new_ledger=True)
    assert (tmp_path / "people.ledger.db").is_file()


def test_the_number_of_records_is_public_where_the_spec_has_it(tmp_path: Path) -> None:
    source = of_table(tmp_path, [("F", 1, 1.0, 1.0)] * 3, ("VARCHAR", "INTEGER", "DOUBLE", "DOUBLE"))
    assert count_cells(table(False, records=3), source).sum() == 3 * STEPS
    with pytest.raises(DataError, match="has 4 records, and the data have a different number"):
        count_cells(table(False, records=4), source)
    with pytest.raises(DataError, match="strict"):
        count_cells(
            table(False),
            of_table(tmp_path, [("F", 5, 1, 1)], ("VARCHAR", *["INTEGER"] * 3)),
            RunContext(strict=True),
        )


def test_values_in_order_are_not_read_where_there_is_none(tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    with duckdb.connect(path) as database:
        database.execute("CREATE TABLE t AS SELECT i AS x, 3 - i AS p FROM range(3) r(i)")
    source = located("x", f"{path}::t")
    with pytest.raises(DataError, match="stand in no order"):
        read_entries(Declared("x", (3,)), source)
    assert read_entries(Declared("x", (3,), "p"), source).tolist() == [2.0, 1.0, 0.0]
    held = InputLayout("x", 0, 3, "entries", (3,), Fraction(0), Fraction(4), None, (), None, None)
    with pytest.raises(DataError, match="stand in no order"):
        read_inputs([Grid(held, Fraction(1, 4))], {"x": f"{path}::t"})


def test_a_database_is_one_data_set(tmp_path: Path) -> None:
    """Whatever table or view is named, and whatever was written to it since."""
    path = tmp_path / "w.duckdb"
    with duckdb.connect(path) as database:
        database.execute("CREATE TABLE people AS SELECT 'F' AS sex, 1 AS age, 2.0 AS pay, 3.0 AS hours FROM range(9)")
        database.execute("CREATE VIEW women AS SELECT * FROM people WHERE sex = 'F'")
        database.execute(f"COPY people TO '{tmp_path}/people.parquet'")
    assert place_of({"people": f"{path}::people"}) == place_of({"people": f"{path}::women"}) == tmp_path / "w.ledger.db"
    pay_for(f"{path}::people", tmp_path / "w.ledger.db")
    assert refusal(tmp_path / "people.parquet", tmp_path)
    with duckdb.connect(path) as database:
        database.execute("INSERT INTO people VALUES ('M', 2, 3, 4)")
    assert refusal(f"{path}::women", tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "people.parquet").rename(tmp_path / "folder" / "a.parquet")
    assert place_of({"people": tmp_path / "folder"}) == tmp_path / "folder.ledger.db"
    assert refusal(tmp_path / "folder", tmp_path)


def test_a_column_without_cells_is_no_part_of_what_data_are_known_by(tmp_path: Path) -> None:
    """A cast in a view gives nothing where a cell is no number."""
    path = tmp_path / "w.duckdb"
    with duckdb.connect(path) as database:
        database.execute("CREATE TABLE people AS SELECT i AS id, 'x' || i AS word FROM range(100, 180) t(i)")
        database.execute("CREATE VIEW good AS SELECT id FROM people")
        database.execute("CREATE VIEW bad AS SELECT id, CAST(word AS INTEGER) AS number FROM people")
    assert tables(f"{path}::good") == tables(f"{path}::bad")


def test_what_a_database_is_asked_is_printed_and_nothing_is_read(tmp_path: Path) -> None:
    rows = [("secret", 1, 2.0, 3.0)]
    source = of_table(tmp_path, rows, ("VARCHAR", "INTEGER", "DOUBLE", "DOUBLE"))
    selects: list[Any] = []
    assert count_cells(table(True), source, RunContext(selects=selects)).sum() == 0
    ((name, select),) = selects
    assert name == "people"
    assert "secret" not in select.text
    with warehouse.connection("people", source.path) as database:
        assert database is not None
        ((*keys, records, _, _, _, _, _, _, first, second, least),) = database.execute(select.text).fetchall()
    assert keys == ["secret", 1, False, False]
    assert (records, least) == (1, min(first, second))
    assert first == math.floor((2.0 + 0.1) * float(STEPS / Fraction(10001, 10)) + 0.5)
    with pytest.raises(UsageError, match="no database is asked"):
        count_cells(table(True), {"sex": [], "age": [], "pay": [], "hours": []}, RunContext(selects=[]))


def test_the_command_line_prints_what_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, path = tmp_path / "hours.priv", tmp_path / "w.duckdb"
    spec.write_text(HOURS)
    with duckdb.connect(path) as database:
        database.execute("CREATE TABLE t AS SELECT '0' AS sex, 8.0 AS \"hours-per-week\"")
    asked = ["data", str(spec), "--input", f"people={path}::t"]
    run_command_line([*asked, "--sql"])
    said = capsys.readouterr().out
    assert 'FROM data."main"."t"' in said
    assert said.endswith("GROUP BY key_0, key_1;\n")
    pytest.importorskip("sqlglot")
    run_command_line([*asked, "--dialect", "spark"])
    assert "FROM `people`" in capsys.readouterr().out


def test_a_database_is_read_in_a_session_of_its_own(tmp_path: Path) -> None:
    """Nothing is drawn on standard output, which may be a release; no file is read; what is spilled goes elsewhere."""
    source = of_table(tmp_path, [("F", 1, 1.0, 1.0)], ("VARCHAR", "INTEGER", "DOUBLE", "DOUBLE"))
    with warehouse.connection("people", source.path) as database:
        assert database is not None
        settings = ("enable_progress_bar", "autoload_known_extensions", "enable_external_access", "temp_directory")
        query = f"SELECT {', '.join(f'current_setting({name!r})' for name in settings)}"
        (found,) = database.execute(query).fetchall()
        assert not any(found[:3])
        assert Path(found[3]).stat().st_mode & 0o777 == 0o700
        for statement in ("SET threads = 1", "CREATE TABLE data.t2 AS SELECT 1", f"COPY data.t TO '{tmp_path}/x.csv'"):
            with pytest.raises(duckdb.Error):
                database.execute(statement)
    assert not Path(found[3]).exists()


def test_without_duckdb_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "w.duckdb").touch()
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert "pip install 'privspec[warehouse]'" in refused(f"{tmp_path}/w.duckdb::people")


def test_files_with_colons_in_their_names_are_files(tmp_path: Path) -> None:
    path = tmp_path / "a::b.csv"
    path.write_text("sex,age,pay,hours\nF,1,2,3\n")
    assert located("people", path) == sources.place_on_disk(path) == path
    assert sum(counted(path, True)[0]) == STEPS


def test_records_are_read_person_by_person_from_every_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where nobody has more records than are kept, nothing is drawn; where somebody has, so many of theirs stay."""
    columns = (("sex", ("F", "M"), None, None, (), False), ("pay", ("0", "10"), None, None, (), True))
    rows = [(i // 3, "F" if i % 2 else "M", i % 11) for i in range(60)] + [(None, "F", 3), (7, "F", None), (8, "x", 1)]
    path = tmp_path / "w.duckdb"
    with duckdb.connect(path) as database:
        database.execute("CREATE TABLE t (person UUID, sex VARCHAR, pay DOUBLE)")
        for person, sex, pay in rows:
            database.execute("INSERT INTO t VALUES (?, ?, ?)", [None if person is None else f"{person:032x}", sex, pay])
        database.execute(f"COPY (SELECT CAST(person AS VARCHAR) AS person, sex, pay FROM t) TO '{tmp_path}/p.parquet'")
        database.execute(f"COPY t TO '{tmp_path}/p.csv'")
    monkeypatch.setattr(warehouse, "BATCH", 7)
    grid = replace(table(True, columns, 2**10), kept=ContributionBound("person", 100, None))
    sources_ = [located("people", str(where)) for where in (f"{path}::t", tmp_path / "p.parquet", tmp_path / "p.csv")]
    found = [count_cells(grid, source).tolist() for source in sources_]
    assert found[0] == found[1] == found[2]
    assert sum(found[0]) == 60 * 2**10
    for source in sources_:
        assert sum(count_cells(replace(grid, kept=ContributionBound("person", 1, None)), source).tolist()) == 20 * 2**10


ADULT = Path("/work/shared/data/adult_discretised_privatepgm.csv.gz")
QUESTIONS = """variables:
  input people in table("education-num" in 0..15, sex in {0, 1}, "hours-per-week" in [0, 98], age in [0, 84])
  output number
  output worked
  output older
loss:
  (E[ ||number - count(people, by = {sex})||^2 ]
  + 1e-3 * E[ ||worked - sum(people."hours-per-week", by = {sex})||^2 ]
  + 1e-3 * E[ (older - sum(people.age, "education-num" >= 10))^2 ])
privacy:
  all outputs are (1, 1e-6)-DP wrt people, adding or removing one record
"""


@pytest.mark.skipif(not ADULT.is_file(), reason="the Adult extract is not here")
def test_adult_is_the_same_from_text_parquet_and_a_database(tmp_path: Path) -> None:
    """48,842 rows: the same whole numbers, so the same release from the same seed; and the sums are those of DuckDB."""
    with duckdb.connect(tmp_path / "census.duckdb") as database:
        database.execute(f"CREATE TABLE adult AS SELECT * FROM read_csv('{ADULT}')")
        database.execute(f"COPY adult TO '{tmp_path}/adult.parquet'")
        database.execute(f"COPY adult TO '{tmp_path}/parts' (FORMAT parquet, PER_THREAD_OUTPUT)")
        query = 'SELECT sex, count(*), sum("hours-per-week") FROM adult GROUP BY sex ORDER BY sex'
        plain = database.execute(query).fetchall()
    plan = Problem(QUESTIONS).solve()
    named = (ADULT, tmp_path / "adult.parquet", tmp_path / "parts", f"{tmp_path}/census.duckdb::adult")
    bases = [read_inputs(executed(plan).inputs, {"people": source}) for source in named]
    assert all(base.fractions() == bases[0].fractions() for base in bases)
    found = [plan.run({"people": source}, randomness=SimulationRandomness(7)).values for source in named]
    for values in found:
        assert all(np.array_equal(values[name], found[0][name]) for name in values)
    spread = plan.run({"people": ADULT}, randomness=SimulationRandomness(7)).deviations
    for place, (_, number, worked) in enumerate(plain):
        assert abs(found[0]["number"][place] - number) < 8 * spread["number"][place]
        assert abs(found[0]["worked"][place] - worked) < 8 * spread["worked"][place]


def executed(plan: Plan) -> Any:
    return read_executed(plan.document)


def test_what_rounding_to_steps_does_is_said(tmp_path: Path) -> None:
    rules = data_rules([table(True)], strict=False)
    assert f"people: a number counts in whole steps of 1/{STEPS} of its range, the nearest" in rules
    assert not any("steps" in rule for rule in data_rules([table(True, COLUMNS[:2], 1)], strict=False))


@pytest.mark.slow
def test_spark_agrees_to_the_last_digit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every kind of column that Spark has, with two threads; text where numbers are added up comes by rows."""
    session = pytest.importorskip("pyspark.sql").SparkSession
    spark = session.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    names = {"VARCHAR": "string", "INTEGER": "int", "UBIGINT": "decimal(20,0)"}
    try:
        for types in (
            ("VARCHAR", "INTEGER", "DOUBLE", "DOUBLE"),
            ("VARCHAR", "DOUBLE", "DECIMAL(9, 3)", "BIGINT"),
            ("DOUBLE", "DECIMAL(9, 3)", "DECIMAL(38, 20)", "FLOAT"),
            ("BOOLEAN", "BIGINT", "BOOLEAN", "TINYINT"),
            ("INTEGER", "VARCHAR", "VARCHAR", "DOUBLE"),
        ):
            rows = [tuple(row) for row in zip(*(many(kind) for kind in types), strict=True)]
            kinds = [names.get(kind, kind.lower().replace(" ", "")) for kind in types]
            schema = "sex {}, age {}, pay {}, hours {}".format(*kinds)
            source = spark.createDataFrame(rows, schema)
            for drops in (True, False):
                counts, report = counted(source, drops)
                assert counts == naively(rows, drops), types
                assert sorted(report) == sorted(counted(of_table(tmp_path, rows, types), drops)[1])
        wide = spark.createDataFrame([(1.0,)] * 5000, "pay double")
        columns = (("pay", ("0", "1"), None, None, (), True),)
        assert count_cells(table(True, columns, 2**52), wide).tolist() == [0, 5000 * 2**52]
        pl.DataFrame({"sex": ["0", "1"] * 9, "hours-per-week": range(18)}).write_parquet(tmp_path / "p.parquet")
        held = spark.read.parquet(str(tmp_path / "p.parquet"))
        assert tables(held) == tables(tmp_path / "p.parquet") != tables(wide)
        pay_for(held, tmp_path / "held.ledger.db")
        for same in (held.filter("sex = '1'"), held.select("sex"), tmp_path / "p.parquet", held.orderBy("sex")):
            assert (refusal(same, tmp_path) or "").startswith(f"give --ledger {tmp_path / 'held.ledger.db'}")
        assert refusal(wide, tmp_path) is None
        plan = Problem(HOURS).solve()
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of nobody yet"))
        first = plan.run({"people": held}, tmp_path / "l.db", new_ledger=True)
        assert first.private
        with pytest.raises(BudgetError):
            plan.run({"people": held.filter("sex = '1'")}, tmp_path / "other.db", new_ledger=True)
        drawn = [plan.run({"people": s}, randomness=SimulationRandomness(1)) for s in (held, tmp_path / "p.parquet")]
        assert np.array_equal(drawn[0].values["worked"], drawn[1].values["worked"])
        with pytest.raises(DataError, match="of a kind that holds neither"):
            count_cells(table(True, columns, 2**52), spark.sql("SELECT DATE'2020-01-01' AS pay"))
    finally:
        spark.stop()


def many(kind: str) -> list[Any]:
    """The odd values of a kind, over and over: 97 rows, in an order that differs from kind to kind."""
    values = {
        "DOUBLE": DOUBLES,
        "FLOAT": [0.0, -0.0, 0.5, math.nan, math.inf, 59.75],
        "VARCHAR": [*WORDS, *TEXTS],
        "BOOLEAN": [True, False],
        "TINYINT": [-128, 0, 59, 60, 61, 127],
        "INTEGER": [v for v in WHOLES if abs(v) < 2**31],
        "BIGINT": WHOLES,
        "DECIMAL(9, 3)": [Decimal("0.001"), Decimal("2.000"), Decimal("-0.100"), Decimal("999.999"), Decimal("2.500")],
        "DECIMAL(38, 20)": [Decimal("0.10000000000000000555"), Decimal("2"), Decimal("333.33333333333333333333")],
    }[kind]
    return [[None, *values][i * (3 + len(values)) % (len(values) + 1)] for i in range(97)]


def test_a_database_holds_no_more_than_the_process_may(monkeypatch: pytest.MonkeyPatch) -> None:
    def held() -> str:
        with warehouse.connection("people") as database:
            assert database is not None
            return str(database.execute("SELECT current_setting('memory_limit')").fetchone()[0])

    infinite = warehouse.resource.RLIM_INFINITY
    monkeypatch.setattr(warehouse.resource, "getrlimit", lambda _one: (infinite, infinite))
    unlimited = held()
    monkeypatch.setattr(warehouse.resource, "getrlimit", lambda _one: (5 * 2**20, infinite))
    assert held() == "4.0 MiB" != unlimited


EDGES = [*DOUBLES, None, -0.1 - 1e-9, math.nextafter(60.0, math.inf), math.nextafter(-0.1, -math.inf), 5e-320, 2.0**31]


@pytest.mark.parametrize("ends", [("-1/10", "60"), ("0", "200000"), ("-1e307", "1e307"), ("0", "5e-324"), ("7", "7.5")])
@pytest.mark.parametrize("steps", [3, 2**24, 2**31, 2**53])
def test_the_sum_of_one_column_is_that_of_its_records_one_by_one(
    tmp_path: Path, ends: tuple[str, str], steps: int
) -> None:
    one = Attribute.of(Column("pay", ends, None, None, (), True))
    asked = Statistic("people", (one,), steps)
    low, high = one.ends
    values = [*EDGES, low, high, (low + high) / 2, math.nextafter(high, 0.0), math.nextafter(low, 0.0)]
    plain = [value for value in values if value is not None and value == value]
    found = sum(one.steps(v, steps) for v in plain), sum(v < low for v in plain), sum(v > high for v in plain)
    frame = pl.DataFrame({"pay": pl.Series(values, dtype=pl.Float64)})
    frame.write_parquet(tmp_path / "t.parquet")
    with duckdb.connect(tmp_path / "t.duckdb") as database:
        database.execute("CREATE TABLE t AS SELECT * FROM frame")
    for source in (tmp_path / "t.parquet", f"{tmp_path}/t.duckdb::t", frame):
        records = records_of("people", located("people", source))
        groups = Groups.joined(asked, records.groups(asked, lambda *_: None))
        rows = zip(groups.keys[0].cells, groups.records, groups.sums[0], strict=True)
        known = [(n, s) for none, n, s in rows if not none]
        assert tuple(map(sum, zip(*known, strict=True))) == (len(plain), found[0]), source
        assert (groups.tallies[0].below, groups.tallies[0].above) == found[1:], source
        assert sum(groups.records) == len(values)


def test_a_forged_plan_reads_no_row_and_leaves_no_trace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spec = tmp_path / "hours.priv"
    spec.write_text(HOURS)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(warehouse, "_asked", lambda *_: pytest.fail("rows were asked for"))
    document = json.loads(load(str(spec)).solve().to_json())
    for line in document["guarantees"]:
        line["epsilon"] = "1/2"
    document["digest"] = plan_digest(document)
    (tmp_path / "forged.plan.json").write_text(json.dumps(document))
    pl.DataFrame({"sex": [0, 1], "hours-per-week": [8.0, 9.0]}).write_parquet(tmp_path / "people.parquet")
    before = sorted(tmp_path.iterdir())
    asked = ["run", str(tmp_path / "forged.plan.json"), "--input", f"people={tmp_path}/people.parquet"]
    assert run_command_line([*asked, "--new-ledger", "-o", str(tmp_path / "release.csv")]) == 7
    assert sorted(tmp_path.iterdir()) == before


VIEWS = {
    "SELECT CAST(w AS INTEGER) AS x FROM t": [1, 3, None],
    "SELECT CAST(w AS INTEGER) + n AS x FROM t WHERE n < 4": [2, 6, None],
    "SELECT a.n AS x FROM t a JOIN first b ON a.n = b.x": [1, 3],
    "SELECT n AS x FROM t WHERE w = 3": [3],
    "SELECT n AS x FROM t WHERE CAST(w AS INTEGER) = 3 OR n = 2": [2, 3],
    "WITH c AS (SELECT strptime(w, '%Y') AS y FROM t) SELECT year(y) AS x FROM c": [1, 3, None],
    "SELECT plus(w) AS x FROM t": [2, 4, None],
    "SELECT CAST(sum(CAST(w AS INTEGER)) AS BIGINT) AS x FROM t GROUP BY n": [1, 3, None],
    "SELECT CAST(max(w) AS INTEGER) AS x FROM t": [None],
    "SELECT x FROM (SELECT 9223372036854775807 + (n - 1) AS x FROM t UNION ALL SELECT 0 FROM t)": [
        *(0, 0, 0),
        *(2**63 - 1, None, None),
    ],
    "SELECT n AS x FROM other.t": [7],
    "WITH t AS (SELECT 5 AS z) SELECT x FROM first, t": [1, 3, None],
}


def view_of(path: Path, text: str, third: str) -> warehouse.Table:
    with duckdb.connect(path) as database:
        database.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES ('1', 1), ('{third}', 2), ('3', 3)) v(w, n)")
        database.execute("CREATE SCHEMA other")
        database.execute("CREATE TABLE other.t AS SELECT 7 AS n")
        database.execute("CREATE MACRO plus(z) AS CAST(z AS INTEGER) + 1")
        database.execute("CREATE VIEW first AS SELECT CAST(w AS INTEGER) AS x FROM t")
        database.execute(f'CREATE VIEW "the ""view" AS {text}')
    found = located("people", f'{path}::the "view')
    assert isinstance(found, warehouse.Table)
    return found


@pytest.mark.parametrize("text", VIEWS)
def test_one_row_at_which_a_view_fails_is_a_row_without_that_cell(tmp_path: Path, text: str) -> None:
    """And no more: nothing is refused, and all other rows are read as they are."""
    found = view_of(tmp_path / "a.duckdb", text, "x").frame("people").collect()["x"].to_list()
    assert sorted(found, key=lambda cell: (cell is None, cell)) == VIEWS[text]
    assert view_of(tmp_path / "b.duckdb", text, "2").frame("people").collect().height >= len(found)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT CASE WHEN w = 'x' THEN error('no') ELSE n END AS x FROM t",
        "SELECT n AS x FROM t JOIN (SELECT 1 AS w) one USING (w)",
        "SELECT geomean(n) AS x FROM t",
    ],
)
def test_a_view_that_one_row_can_make_fail_is_refused_whatever_it_holds(tmp_path: Path, text: str) -> None:
    refused = []
    for third in ("x", "2"):
        with pytest.raises(DataError) as caught:
            view_of(tmp_path / f"{third}.duckdb", text, third).frame("people")
        refused.append([(one.code, one.message, one.help) for one in caught.value.diagnostics])
    assert refused[0] == refused[1] and refused[0][0][0] == "PS0803"


def test_a_view_that_cannot_fail_is_asked_as_it_is(tmp_path: Path) -> None:
    text = "SELECT n FROM t WHERE (n > 1 AND w IS NOT NULL) OR w = 'x' OR n BETWEEN 0 AND 5"
    table = view_of(tmp_path / "a.duckdb", text, "x")
    with warehouse.connection("people", table.path) as database:
        assert database is not None
        assert warehouse.Views(database).total(table.schema, table.table) is None
