"""Columns that follow from others are read alike by every engine, and as a plain reading of each record says."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest

from privspec.execute.engines import records_of
from privspec.execute.statistic import Attribute, Groups, Statistic
from privspec.execute.warehouse import Table
from privspec.kernel.derived import Combined, Derived, Fixed, Named, Power, SourceColumn

duckdb = pytest.importorskip("duckdb")

STEPS = 2**20
PAY, TAX = SourceColumn("pay", ("0", "100"), between=True), SourceColumn("tax", ("0", "40"), between=True)
AGE, KIDS = SourceColumn("age", (), 0, 100), SourceColumn("kids", (), 0, 10)
DERIVED = (
    Derived("net", (PAY, TAX), Combined("-", Named("pay"), Named("tax"))),
    Derived("group", (AGE,), Named("age"), ("< 15", "<= 30"), ("young", "middle", "old")),
    Derived("square", (PAY,), Power(Combined("-", Named("pay"), Fixed(Fraction(50))), 2)),
    Derived("most", (AGE, KIDS), Combined("max", Named("age"), Named("kids"))),
    Derived("senior", (AGE,), None, (), ("no", "yes"), tuple(int(age >= 65) for age in range(101))),
    Derived("size", (TAX,), Power(Combined("-", Named("tax"), Fixed(Fraction(20))), 1, size=True)),
)
ATTRIBUTES = (
    Attribute("net", ("-40", "100"), shared=True),
    Attribute("group", ("young", "middle", "old")),
    Attribute("square", ("0", "2500"), shared=True),
    Attribute("most", (), 0, 100),
    Attribute("senior", ("no", "yes")),
    Attribute("size", ("0", "20"), shared=True),
)
ASKED = Statistic("x", ATTRIBUTES, STEPS, None, DERIVED)


def records(count: int) -> list[dict[str, float | int | None]]:
    draws = random.Random(11)
    return [
        {
            "pay": draws.choice([None, draws.uniform(-20, 130), 50.0, float("nan")]),
            "tax": draws.choice([None, draws.uniform(-5, 50), 20.0]),
            "age": draws.choice([None, float(draws.randint(-5, 120)), draws.uniform(0, 100), 30.0]),
            "kids": draws.choice([None, draws.randint(-1, 12)]),
        }
        for _ in range(count)
    ]


def plainly(record: dict[str, Any]) -> tuple[Any, ...] | None:
    """What a record counts as, by the sentences of the manual; None where something is missing."""
    if any(value is None or value != value for value in record.values()):
        return None
    pay, tax = min(max(record["pay"], 0), 100), min(max(record["tax"], 0), 40)
    age, kids = (floor(min(max(record[name], 0), top) + 0.5) for name, top in (("age", 100), ("kids", 10)))
    group = "young" if age < 15 else "middle" if age <= 30 else "old"
    steps = ((pay - tax + 40) / 140, (pay - 50) ** 2 / 2500, abs(tax - 20) / 20)
    return group, max(age, kids), "yes" if age >= 65 else "no", tuple(floor(one * STEPS + 0.5) for one in steps)


def read(source: Any) -> tuple[Counter[Any], dict[Any, list[int]], Any]:
    groups = ASKED.followed(Groups.joined(ASKED, records_of("x", source).groups(ASKED.read, lambda *_, **__: None)))
    counts: Counter[Any] = Counter()
    sums: dict[Any, list[int]] = {}
    lookups, columns = [one.lookup() for one in ATTRIBUTES], [one.cells for one in groups.keys]
    for place, count in enumerate(groups.records):
        cells = zip(ATTRIBUTES, lookups, columns, strict=True)
        key = tuple(keys[place] if one.shared else look(keys[place])[0] for one, look, keys in cells)
        counts[key] += count
        total = sums.setdefault(key, [0] * len(ASKED.sets))
        for j, column in enumerate(groups.sums):
            total[j] += column[place]
    return counts, sums, groups.tallies


def test_every_engine_reads_the_same(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        records(2000), schema={"pay": pl.Float64, "tax": pl.Float64, "age": pl.Float64, "kids": pl.Int64}
    )
    frame.write_parquet(tmp_path / "x.parquet")
    frame.write_csv(tmp_path / "x.csv")
    with duckdb.connect(str(tmp_path / "x.duckdb")) as database:
        database.execute(f"CREATE TABLE t AS SELECT * FROM read_parquet('{tmp_path / 'x.parquet'}')")
    first, *others = (
        read(source)
        for source in (frame, tmp_path / "x.csv", tmp_path / "x.parquet", Table.of("x", tmp_path / "x.duckdb", "t"))
    )
    assert all(other == first for other in others)


def test_what_is_read_is_what_each_record_says() -> None:
    made = [record for record in records(400) if plainly(record) is not None]
    for record in made[:60]:
        frame = pl.DataFrame(
            [record], schema={"pay": pl.Float64, "tax": pl.Float64, "age": pl.Float64, "kids": pl.Int64}
        )
        ((key, count),) = read(frame)[0].items()
        group, most, senior, steps = plainly(record) or ((),) * 4
        assert count == 1
        assert [ATTRIBUTES[1].values[key[1]], key[3], ATTRIBUTES[4].values[key[4]]] == [group, most, senior]
        own = read(frame)[1][key]
        assert np.allclose(own[:3], steps, atol=1)


def test_words_that_follow_are_not_read_from_the_data() -> None:
    """A cell that says what would follow from another is none of the values, and nothing follows from it."""
    asked = Statistic(
        "x",
        (Attribute("month", ("2025-01", "2025-02")),),
        1,
        None,
        (
            Derived(
                "month", (SourceColumn("day", ("2025-01-31", "2025-02-01")),), None, (), ("2025-01", "2025-02"), (0, 1)
            ),
        ),
    )
    frame = pl.DataFrame({"day": ["2025-01-31", "2025-01", "2025-02-01T23:59:59", "2025-02-01T01:00:00+02:00", None]})
    groups = asked.followed(Groups.joined(asked, records_of("x", frame).groups(asked.read, lambda *_: None)))
    found = Counter(dict.fromkeys((), 0))
    for key, count in zip(groups.keys[0].cells, groups.records, strict=True):
        found[key] += count
    assert found == Counter({"2025-01": 2, "2025-02": 1, None: 2})


def test_every_engine_reads_moments_at_the_hour_that_they_lie_in(tmp_path: Path) -> None:
    """Texts with and without a zone, moments of Parquet and of a database, days: summer time, a leap day, seconds."""
    values = ("2024-02-29T23:00", "2025-03-30T00:00", "2025-03-30T01:00")
    asked = Statistic("x", (Attribute("at", values),), 1)
    moments = [
        datetime(2024, 2, 29, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2025, 3, 30, 0, 30, tzinfo=UTC),
        # half an hour later by the clocks of Berlin, which go from 2 to 3
        datetime(2025, 3, 30, 1, 0, tzinfo=UTC),
        datetime(2025, 3, 30, 2, 0, tzinfo=UTC),
        None,
    ]
    frame = pl.DataFrame({"at": moments}, schema={"at": pl.Datetime("us", "UTC")})
    plain = frame.with_columns(pl.col("at").dt.replace_time_zone(None))
    texts = [None if one is None else one.astimezone(ZoneInfo("Europe/Berlin")).isoformat(" ") for one in moments]
    sources: list[Any] = [frame, plain, pl.DataFrame({"at": texts})]
    sources.append(frame.with_columns(pl.col("at").dt.convert_time_zone("Europe/Berlin")))
    sources[-1].write_parquet(tmp_path / "at.parquet")
    sources.append(tmp_path / "at.parquet")
    with duckdb.connect(str(tmp_path / "at.duckdb")) as database:
        database.execute("create table zoned as select * from read_parquet(?)", [str(tmp_path / "at.parquet")])
        database.execute("""create table plain as select "at" at time zone 'UTC' as "at" from zoned""")
    sources += [Table(tmp_path / "at.duckdb", "main", table) for table in ("zoned", "plain")]
    for source in sources:
        lookup, found = asked.attributes[0].lookup(), Counter[int]()
        for groups in records_of("x", source).groups(asked, lambda *_: None):
            for cell, count in zip(groups.keys[0].cells, groups.records, strict=True):
                found[lookup(cell)[0]] += int(count)
        assert found == {0: 1, 1: 1, 2: 1, -1: 2}, source
