"""Neighbours in every format that is read: data, and the same data with one record changed in any way.

A record is a row, a line, an object, an entry or a file of its own. What is changed in it is anything that its format
can hold: texts and bytes, kinds of numbers, nulls, keys that no spec has. Not changed is who takes part where rows say
so, which is public, nor the kinds of columns that a format declares for all records at once.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet

from privspec.execute.ballots import Form, read_ballots
from privspec.execute.data import count_cells, located
from privspec.execute.drawing import Numbers, Words
from privspec.execute.family import RunContext
from privspec.execute.persons import gathered
from privspec.execute.reading import Declared, Fields, batches, read_entries
from privspec.execute.sources import Folder, TextFiles, text_files
from privspec.families.number.execution import Sums, read_counts
from privspec.families.statistics.tables import Wanted, rows_of
from privspec.kernel.core.problem import ContributionBound, Data
from privspec.kernel.derived import Combined, Derived, Fixed, Named, SourceColumn
from privspec.kernel.keys import Added, KeyColumn
from privspec.kernel.persons import Gathered, People, Source
from privspec.noise.samplers import SimulationRandomness

from .holding import grid

try:
    import duckdb
except ImportError:  # pragma: no cover - the extra is not installed
    duckdb = None  # type: ignore[assignment]
try:
    import pandas as pd
except ImportError:  # pragma: no cover
    pd = None

Record = dict[str, Any]
ABC = ("north", "south", "west")
STEPS = 20

# --- any value ------------------------------------------------------------------------------------

SIGNS = [
    *('"', "\n", "\r", ",", ";", " ", "\t", "a", "7", ".", "é", "\x00", "'", "\\", "{", "[", ":", "#", "-", "e"),
    *("\ufeff", "\u200b", "\u00a0", "\u2028", "\x85", "\x0b", "\x1c", "\x1e", "\x1f", "\U000e0041", "\u0301"),
]
TEXTS: tuple[str, ...] = (
    *("", " ", "\n", "\r", "\r\n", "\n\n", '"', '""', '"""', '"\n', '\n"', ',"', '",', '",\n"', "'", "\\", "\\n", "#"),
    *("\t", "\x00", "\x1f", "\x1e0", "\ufeff", "\ufffd", "\u2028", "\x85", "\x0b", "\x1a", "é", "🗳", "x", "x_1"),
    *("voter", "count", "age", "person", "nan", "NaN", "inf", "-inf", "Infinity", "null", "NULL", "None", "NA", "true"),
    *("False", "-0", "1_0", "٣", "²", "1e999", "0x10", "1/0", "1/2", "€ 20500", "20,5", "12 %", "1 000", "7.0", "007"),
    *("2026-01-01", "-99999-12-31", "=1+1", "{", "[1]", "[" * 200, "north", "North", "north ", "north south west"),
    *("north > south", "north,south", "{north} south", "north {", '"north', 'south"', '5"11', "9" * 5_000, "5" * 320),
    *("1" + "0" * 400, "a" * 200_000, "0.", ".5", "-", "+", "0" * 400, "1e5", "north\u200b", "\u200bF", "2\u00a0"),
)
FLOATS: tuple[float | None, ...] = (
    *(0.0, -0.0, 1.0, 0.5, -1.0, 8675309.0, 1e300, -1e300, 5e-324, float("inf"), float("-inf"), float("nan"), None),
    *(2.0**53 + 2, 2.0**63, -(2.0**63), 1e-5, 0.1 + 0.2),
)
INTEGERS: tuple[int | None, ...] = (0, 1, -1, 3, 8675309, 2**53 + 1, 2**63 - 1, -(2**63), None)
DECIMALS = (None, *map(Decimal, ("0", "0.00", "1.50", "-1", "2.00", "99999999.99", "-99999999.99", "0.01")))
BYTES = (b"", b"\xff", b"\xff\xfe", b"north", b"F\xc3", b"\xed\xa0\x80", b"1", b"\x00", None)
KEYS = ("", " ", "x", "x ", "x_1", "x_2", "x.1", "X", "age", "sex", "said", "count", "choice", "ranking", "vote", "who")


def any_text(draws: random.Random) -> str:
    if draws.random() < 0.6:
        return draws.choice(TEXTS)
    return "".join(draws.choice(SIGNS) for _ in range(draws.randrange(12)))


def any_json(draws: random.Random, depth: int = 2) -> Any:
    plain: tuple[Any, ...] = (
        *(
            None,
            True,
            False,
            0,
            1,
            2,
            -1,
            7.0,
            0.25,
            float("nan"),
            float("inf"),
            10**5_000,
            -(10**400),
            1e300,
            "\ud800",
        ),
        *([], {}, any_text(draws), draws.choice(TEXTS)),
    )
    if depth and draws.random() < 0.3:
        size = draws.randrange(4)
        if draws.random() < 0.5:
            return [any_json(draws, depth - 1) for _ in range(size)]
        return {draws.choice(KEYS): any_json(draws, depth - 1) for _ in range(size)}
    return draws.choice(plain)


class Odd:
    """An object of the user's own."""

    def __repr__(self) -> str:
        raise AssertionError


def any_object(draws: random.Random) -> Any:
    odd = (Odd(), b"north", b"\xff", 1j, date(2026, 1, 1), Decimal("0.1"), Decimal("sNaN"), Fraction(1, 3), np.int8(1))
    more = (np.float32(2), np.datetime64("NaT"), np.array([1, 2]), (1, 2), {1}, range(2), bytearray(b"x"), np.bool_(1))
    return draws.choice([*odd, *more]) if draws.random() < 0.4 else any_json(draws)


def any_bytes(draws: random.Random) -> bytes | None:
    found = draws.choice(BYTES)
    return found if draws.random() < 0.5 else any_text(draws).encode()


ANY: dict[str, Callable[[random.Random], Any]] = {
    "text": any_text,
    "float": lambda draws: draws.choice(FLOATS),
    "int": lambda draws: draws.choice(INTEGERS),
    "decimal": lambda draws: draws.choice(DECIMALS),
    "bytes": any_bytes,
    "category": lambda draws: draws.choice((None, *TEXTS[:60])),
    "bool": lambda draws: draws.choice((None, True, False)),
    "date": lambda draws: draws.choice(DATES),
    "moment": lambda draws: draws.choice(MOMENTS),
    "list": lambda draws: draws.choice((None, [], [None], ["north"], ["west", None], [any_text(draws)] * 2, [*ABC])),
}
DATES = (None, date(2024, 2, 29), date(2025, 1, 1), date(2025, 12, 31), date(1, 1, 1), date(9999, 12, 31))
MOMENTS = (None, *(datetime(*day.timetuple()[:3], 23, 59, 59, 999_999) for day in DATES if day), datetime(2025, 1, 1))
POLARS = {
    "text": pl.String,
    "float": pl.Float64,
    "int": pl.Int64,
    "decimal": pl.Decimal(10, 2),
    "bytes": pl.Binary,
    "category": pl.Categorical,
    "bool": pl.Boolean,
    "date": pl.Date,
    "moment": pl.Datetime,
    "list": pl.List(pl.String),
}
ARROW = {
    "float": pa.float64(),
    "int": pa.int64(),
    "decimal": pa.decimal128(10, 2),
    "bytes": pa.binary(),
    "category": pa.dictionary(pa.int32(), pa.string()),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "moment": pa.timestamp("us"),
    "list": pa.list_(pa.string()),
}
NUMERIC = ("text", "float", "int", "decimal", "bool")
WORDS = ("text", "bytes", "category")
DAYS = ("text", "category", "date", "moment")


def held(value: Any, kind: str) -> Any:
    """A value that fits, as a column of that kind holds it."""
    if kind in ("text", "category"):
        return value
    if kind == "bytes":
        return value.encode()
    if kind == "list":
        return value.split()
    if kind == "decimal":
        return Decimal(value)
    if kind in ("date", "moment"):
        return {"date": date, "moment": datetime}[kind].fromisoformat(value)
    return {"float": float, "int": int, "bool": bool}[kind](Fraction(value))


# --- what is read ---------------------------------------------------------------------------------


def rows_apart(before: Sequence[Any], after: Sequence[Any], place: int) -> bool:
    """Whether all rows but one are read the same."""
    same = [np.array_equal(a, b, equal_nan=True) for a, b in zip(before, after, strict=True)]
    return all(fits for i, fits in enumerate(same) if i != place)


def counts_apart(before: Mapping[Any, int], after: Mapping[Any, int], place: int) -> bool:
    """Whether one record at most is another one."""
    return (Counter(before) - Counter(after)).total() <= 1 and (Counter(after) - Counter(before)).total() <= 1


def steps_apart(before: Mapping[Any, int], after: Mapping[Any, int], place: int) -> bool:
    """Whether as much as one record holds moves at most."""
    return (Counter(before) - Counter(after)).total() <= STEPS and (Counter(after) - Counter(before)).total() <= STEPS


def keyed_apart(before: Mapping[Any, Sums], after: Mapping[Any, Sums], place: int) -> bool:
    """Whether one record at most is another one, in the counts of keys, and what it adds in their sums."""
    counts, sums = ([{key: own[part] for key, own in some.items()} for some in (before, after)] for part in (0, 1))
    return counts_apart(*counts, place) and steps_apart(*sums, place)


Read = Callable[[Any, TextFiles, int], Any]


def said(texts: TextFiles) -> RunContext:
    return RunContext(texts=texts, randomness=SimulationRandomness(1))


def entries(*shape: int, index: str | None = None, words: bool = False) -> Read:
    def read(source: Any, texts: TextFiles, size: int) -> Any:
        reader = {"read": Words(ABC).read} if words else {}
        found = read_entries(Declared("x", (size, *shape), index, **reader), located("x", source), texts)
        return list(found.reshape(size, -1))

    return read


AGE = ("age", (), 0, 4, (), False)
SEX = ("sex", ("F", "M"), None, None, (), False)
PAY = ("pay", ("0", "10"), None, None, (), True)
CUT = ("pay", ("0", "10"), None, None, ("< 5",), False)


_PAY, _AGE = SourceColumn("pay", ("0", "10"), between=True), SourceColumn("age", (), 0, 4)
_DAYS = tuple(f"2025-0{month}-01" for month in range(1, 7))
_HOURS = tuple(f"{day}T{hour:02}:00" for day in ("2024-02-29", "2025-01-01") for hour in (0, 11, 23))
FOLLOW = (
    Derived("gain", (_PAY, _AGE), Combined("*", Combined("-", Named("pay"), Fixed(Fraction(5))), Named("age"))),
    Derived("grown", (_AGE,), Named("age"), ("< 2",), ("no", "yes")),
    Derived("half", (SourceColumn("day", _DAYS),), None, (), ("first", "second"), (0, 0, 0, 1, 1, 1)),
    Derived("night", (SourceColumn("at", _HOURS),), None, (), ("no", "yes"), (1, 0, 1, 1, 0, 1)),
)
"""Columns that follow from others."""
GAIN = ("gain", ("-20", "20"), None, None, (), True)
GROWN = ("grown", ("no", "yes"), None, None, (), False)
HALF = ("half", ("first", "second"), None, None, (), False)
NIGHT = ("night", ("no", "yes"), None, None, (), False)


def cells(columns: Sequence[Any], *, drops: bool, person: bool = False, steps: int = 1) -> Read:
    kept = ContributionBound("person", 1, None) if person else None

    def read(source: Any, texts: TextFiles, size: int) -> Any:
        table = replace(grid(tuple(columns), drops=drops, steps=steps, kept=kept), derived=FOLLOW)
        return dict(enumerate(count_cells(table, located("x", source), said(texts)).tolist()))

    return read


_SAID = SourceColumn("said", ABC)
SPENT = Derived("pay", (_PAY,), Named("pay"))
NORTH = Derived("north", (_SAID,), None, (), ("no", "yes"), (1, 0, 0))
WHOSE = Source("x", "person")
GATHERED = (
    Gathered("many", WHOSE, "count", None),
    Gathered("north", WHOSE, "any", None, (NORTH,), (("yes",),)),
    Gathered("spent", WHOSE, "sum", SPENT, (NORTH,), (("yes",),)),
    Gathered("young", WHOSE, "least", Derived("age", (_AGE,), Named("age"))),
    Gathered("said", WHOSE, "only", Derived("said", (_SAID,), None, (), ABC, (0, 1, 2))),
)
"""Columns that are made of all records of a person."""
OWNERS = ("p1", "p2", "p1", "p3", "", "p1", "p4", "p4")
PERSONS = tuple(f"p{i}" for i in range(1, 9))


def by_person(*, drops: bool, looked_up: bool = False) -> Read:
    """Of persons; or of one record of each, with what their records say."""
    kept = ContributionBound("person", 1, None) if looked_up else None
    name = "y" if looked_up else "x"
    data = Data(name, "", "map", None, 1, kept=kept, people=People(GATHERED, () if looked_up else (WHOSE,)))
    columns = [("many", (), 0, 1, (), False), ("north", ("no", "yes"), None, None, (), False), ("said", ABC, None, None,
        (), False), ("young", (), 0, 4, (), False), ("spent", ("0", "10"), None, None, (), True)]  # fmt: skip

    def read(source: Any, texts: TextFiles, size: int) -> Any:
        one_each = {"y": pl.DataFrame({"person": PERSONS})} if looked_up else {}
        found = gathered((data,), {"x": source, **one_each}, said(texts))[name]
        table = replace(grid(tuple(columns), drops=drops, steps=STEPS, kept=data.kept), derived=())
        return dict(enumerate(count_cells(table, found, RunContext(randomness=SimulationRandomness(1))).tolist()))

    return read


def keys(source: Any, texts: TextFiles, size: int) -> Any:
    columns = (KeyColumn("said", True, (), None, None, None), KeyColumn("sex", True, ("F", "M"), None, None, None))
    added = (Added("pay", Fraction(0), Fraction(10), "pay", None, None, ()),)
    block: Any = SimpleNamespace(source="x", columns=columns, added=added, steps=STEPS)
    return read_counts(block, SimpleNamespace(kept=None, derived=FOLLOW), {"x": source}, said(texts))  # type: ignore[arg-type]


def reports(atom: Numbers | Words) -> Read:
    def read(source: Any, texts: TextFiles, size: int) -> Any:
        return [
            code for part in batches(Fields("x"), located("x", source), texts) for code in atom.codes(part[0]).tolist()
        ]

    return read


def pairs(source: Any, texts: TextFiles, size: int) -> Any:
    found = [
        np.stack([column_of(c) for c in part], axis=1) for part in batches(Fields("x", 2), located("x", source), texts)
    ]
    return [row for part in found for row in part]


def column_of(column: Any) -> Any:
    return Numbers((Fraction(0), Fraction(1))).codes(column)


def ballots(form: Form) -> Read:
    def read(source: Any, texts: TextFiles, size: int) -> Any:
        found: Counter[Any] = Counter()
        for ballot, count in read_ballots(form, source, texts=texts).each():
            found[ballot] += count
        return found

    return read


def statistics(source: Any, texts: TextFiles, size: int) -> Any:
    return [
        record for _, part in rows_of(Wanted("x", "voter", 2, 1, texts=texts), located("x", source)) for record in part
    ]


@dataclass(frozen=True)
class Case:
    """Columns with values that fit, in turns, and the kinds that may hold them; of which one record is changed.

    `public`: columns that say who takes part; `bare`: what a file without a header holds; `listed`: how a record stands
    in a list, if it may; `ordered`: whether rows stand in an order, which databases and folders lack.
    """

    name: str
    read: Read
    columns: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    apart: Callable[[Any, Any, int], bool] = rows_apart
    public: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    listed: Callable[[Record], Any] | None = None
    ordered: bool = True
    numbers: bool = False
    preflib: bool = False


TENTHS = tuple(f"0.{i}" for i in range(1, 9))
VOTERS = tuple(str(i) for i in range(1, 9))
ORDERS = ("north south west", "west south north", "south west north")
SEXES: dict[str, Any] = {"sex": (("F", "M"), WORDS)}
PAID: dict[str, Any] = {**SEXES, "pay": (tuple("0159"), NUMERIC)}
CHOICE: dict[str, Any] = {"choice": (ABC, WORDS)}
COUNTS: dict[str, Any] = {"apart": counts_apart, "ordered": False}
CASES = (
    Case("entries", entries(), {"x": (TENTHS, NUMERIC)}, bare=("x",), listed=lambda r: r["x"], numbers=True),
    Case("beside", entries(), {"id": (VOTERS, NUMERIC), "x": (TENTHS, NUMERIC), "said": (ABC, WORDS)}),
    Case("words", entries(words=True), {"x": (ABC, WORDS)}, bare=("x",), listed=lambda r: r["x"]),
    Case("matrix", entries(2), {"x_1": (TENTHS, NUMERIC), "x_2": (TENTHS, NUMERIC)}, bare=("x_1", "x_2"),
         listed=lambda r: [r["x_1"], r["x_2"]], numbers=True),
    Case("parties", entries(index="voter"), {"voter": (VOTERS, ("text", "int", "float")), "x": (TENTHS, NUMERIC)},
         public=("voter",), ordered=False),
    Case("unnamed", entries(index="voter"), {"x": (TENTHS, NUMERIC)}, bare=("x",), listed=lambda r: r["x"]),
    Case("cells", cells((AGE, SEX), drops=True), {"age": (tuple("012340"), NUMERIC), "sex": (("F", "M"), WORDS),
         "said": (ABC, WORDS)}, **COUNTS),
    Case("missing", cells((("sex", ("F", "M", "missing"), None, None, (), False),), drops=True), SEXES, **COUNTS),
    Case("nearest", cells((AGE, SEX), drops=False), {"age": (tuple("012340"), NUMERIC), "sex": (("F", "M"), WORDS)},
         bare=("age", "sex"), **COUNTS),
    Case("sums", cells((SEX, PAY), drops=False, steps=STEPS), PAID, apart=steps_apart, ordered=False),
    Case("cuts", cells((SEX, CUT), drops=True), PAID, **COUNTS),
    Case("computed", cells((GROWN, GAIN), drops=False, steps=STEPS), {"age": (tuple("012340"), NUMERIC),
         "pay": (tuple("0159"), NUMERIC)}, apart=steps_apart, ordered=False),
    Case("days", cells((HALF, SEX), drops=True), {"day": (_DAYS, DAYS), **SEXES}, **COUNTS),
    Case("hours", cells((NIGHT, SEX), drops=True), {"at": (_HOURS, DAYS), **SEXES}, **COUNTS),
    Case("people", cells((SEX,), drops=True, person=True), {"person": (PERSONS, WORDS), **SEXES}, **COUNTS),
    Case("persons", by_person(drops=True), {"person": (OWNERS, WORDS), "said": (ABC, WORDS), "age": (tuple("012340"),
         NUMERIC), "pay": (tuple("0159"), NUMERIC)}, public=("person",), apart=steps_apart, ordered=False),
    Case("looked up", by_person(drops=False, looked_up=True), {"person": (OWNERS, WORDS), "said": (ABC, WORDS),
         "age": (tuple("012340"), NUMERIC), "pay": (tuple("0159"), NUMERIC)}, public=("person",), apart=steps_apart,
         ordered=False),
    Case("keys", keys, {"said": (ABC, WORDS), "pay": (tuple("0159"), NUMERIC), **SEXES}, apart=keyed_apart,
         ordered=False),
    Case("word reports", reports(Words(ABC)), {"x": (ABC, WORDS)}, bare=("x",), listed=lambda r: r["x"]),
    Case("number reports", reports(Numbers(tuple(Fraction(i) for i in range(5)))), {"x": (tuple("01234"), NUMERIC),
         "said": (ABC, WORDS)}),
    Case("pairs", pairs, {"x_1": (("0", "1"), NUMERIC), "x_2": (("1", "0"), NUMERIC)}, bare=("x_1", "x_2"),
         listed=lambda r: [r["x_1"], r["x_2"]], numbers=True),
    Case("choices", ballots(Form("x", "voter", ABC)), CHOICE, bare=("choice",), listed=lambda r: r["choice"],
         preflib=True, **COUNTS),
    Case("secret", ballots(Form("x", None, ABC, drops=True)), {"x": (ABC, WORDS), "said": (ABC, WORDS)}, **COUNTS),
    Case("named", ballots(Form("x", "voter", ABC)), {"voter": (VOTERS, ("text", "int", "float")), **CHOICE},
         public=("voter",), **COUNTS),
    Case("rankings", ballots(Form("x", "voter", ABC, 3, 3)), {"ranking": (ORDERS, (*WORDS, "list"))}, bare=("ranking",),
         listed=lambda r: r["ranking"], preflib=True, **COUNTS),
    Case("places", ballots(Form("x", None, ABC, 1, 2, drops=True)), {"x": (ORDERS, WORDS)}, preflib=True, **COUNTS),
    Case("statistics", statistics, {"voter": (VOTERS, ("text", "int", "float")), "x_1": (TENTHS, NUMERIC),
         "x_2": (TENTHS, NUMERIC)}, public=("voter",)),
)  # fmt: skip


# --- how it is written ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Written:
    """Records as a format holds them, the kinds of their columns, and the text files' layout."""

    case: Case
    kinds: dict[str, str]
    draws: random.Random
    folder: Path

    def cell(self, column: str) -> Any:
        """Any value that the column may hold."""
        return ANY[self.kinds[column]](self.draws)

    def good(self, place: int) -> Record:
        return {n: held(good[place % len(good)], self.kinds[n]) for n, (good, _) in self.case.columns.items()}

    def other(self, record: Record) -> Any:
        """The same record, some of its cells of any value."""
        free = [name for name in record if name not in self.case.public]
        some = self.draws.sample(free, self.draws.randint(1, len(free)))
        found = {name: self.cell(name) if name in some else value for name, value in record.items()}
        # two records of one person are another matter
        if self.case.name == "people" and "person" in some:
            found["person"] = held(f"q{self.draws.random()}", self.kinds["person"])
        return found


class Format:
    """How records are written; most hold any kind of text and nothing else."""

    name: str
    kinds: tuple[str, ...] = ("text",)
    unordered = False
    some = 6
    """Pairs that every run of the tests draws."""

    def fits(self, case: Case) -> bool:
        return case.ordered is False or not self.unordered

    def changed(self, how: Written, record: Record) -> Any:
        return how.other(record)

    def write(self, how: Written, records: Sequence[Any]) -> tuple[Any, TextFiles]:
        raise NotImplementedError


@dataclass(frozen=True)
class Text(Format):
    """Lines with cells between separators; a record that is changed is any line, whatever its bytes are."""

    name: str
    suffix: str
    joined: bool = False
    header: bool = True
    claimed: bool = False
    commas: bool = False
    """Whether numbers have decimal commas, with semicolons between cells."""

    def fits(self, case: Case) -> bool:
        return self.header or bool(case.bare)

    def changed(self, how: Written, record: Record) -> Any:
        if self.joined or how.case.public or how.draws.random() < 0.5 or how.case.name == "people":
            found = how.other(record)
            return found if self.joined else {n: v.replace("\n", " ") for n, v in found.items()}
        raw = any_text(how.draws).encode() + how.draws.choice((b"", b"\xff", b",", b'"', b"\xc3,", b";1,5"))
        return raw.replace(b"\n", b"")

    def line(self, cells: Sequence[str], quoted: bool, end: str) -> bytes:
        file = io.StringIO()
        quoting = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
        sign = "\t" if self.suffix == ".tsv" else ";" if self.commas else ","
        if self.commas:
            cells = [cell.replace(".", ",") if cell.count(".") == 1 else cell for cell in cells]
        csv.writer(file, quoting=quoting, delimiter=sign, lineterminator=end).writerow(cells)
        return file.getvalue().encode()

    def write(self, how: Written, records: Sequence[Any]) -> tuple[Any, TextFiles]:
        columns = list(how.case.columns if self.header else how.case.bare)
        styles = [(how.draws.random() < 0.4, how.draws.choice(("\n", "\r\n"))) for _ in (columns, *records)]
        lines = [self.line(columns, *styles[0])] if self.header else []
        for record, style in zip(records, styles[1:], strict=True):
            whole = isinstance(record, bytes)
            lines.append(record + b"\n" if whole else self.line([record[name] for name in columns], *style))
        content = b"".join(lines)
        path = how.folder / f"data{self.suffix}"
        path.write_bytes(gzip.compress(content) if self.suffix.endswith(".gz") else content)
        said = (";", ",") if self.commas else (None, ".")
        return path, text_files(self.header, self.joined or self.claimed, *said)


@dataclass(frozen=True)
class Json(Format):
    """A list of objects, each of which may hold or be anything; or of what stands in them alone; or columns."""

    name: str
    form: str
    memory: bool = False

    def fits(self, case: Case) -> bool:
        if self.form == "items":
            return case.listed is not None
        # in memory a list is of entries or counts, and of one ballot, report or record each
        counted = case.name in (
            "cells",
            "nearest",
            "sums",
            "cuts",
            "computed",
            "days",
            "hours",
            "people",
            "keys",
            "persons",
            "looked up",
            "missing",
        )
        return not (self.memory and self.form == "objects" and counted)

    def anything(self, draws: random.Random) -> Any:
        return any_object(draws) if self.memory else any_json(draws)

    def changed(self, how: Written, record: Record) -> Any:
        draws, public = how.draws, {n: record[n] for n in how.case.public}
        if self.form == "columns":
            public["person"] = ""
            return {n: v if n in public or draws.random() < 0.5 else self.anything(draws) for n, v in record.items()}
        if self.form == "items":
            return SimpleNamespace(item=self.anything(draws))
        if not public and draws.random() < 0.3:
            return SimpleNamespace(item=self.anything(draws))
        found = {n: v for n, v in record.items() if n in public or draws.random() < 0.7}
        names = [n for n in (*KEYS, *how.case.columns, "voter") if n not in public]
        # whose a record is, is public
        names = [n for n in names if n != "person" or how.case.name != "people"]
        found |= {draws.choice(names): self.anything(draws) for _ in range(draws.randrange(3))}
        if "person" in found and "person" not in public:
            found["person"] = f"q{draws.random()}"
        return dict(draws.sample(list(found.items()), len(found)))

    def write(self, how: Written, records: Sequence[Any]) -> tuple[Any, TextFiles]:
        case, whole = how.case, [r.item if isinstance(r, SimpleNamespace) else r for r in records]
        found: Any = whole
        if self.form == "columns":
            found = {name: [record[name] for record in whole] for name in case.columns}
        elif self.form == "items":
            assert case.listed is not None
            listed = [r.item if isinstance(r, SimpleNamespace) else case.listed(r) for r in records]
            found = listed if len(listed) % 2 or case.name == "people" else {"x": listed}
        elif len(whole) % 2:
            found = {"x": whole}
        if self.memory:
            return found if self.form == "columns" or isinstance(found, list) else found["x"], TextFiles()
        path = how.folder / "data.json"
        path.write_text(dumped(found), encoding="utf-8")
        return path, TextFiles()


def dumped(found: Any) -> str:
    # Python writes whole numbers of any length only when it is asked to
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return json.dumps(found)
    finally:
        sys.set_int_max_str_digits(limit)


def arrow_of(how: Written, records: Sequence[Record]) -> pa.Table:
    """Columns of Arrow; texts of any bytes where the kind is one of texts."""
    columns: dict[str, Any] = {}
    for name in how.case.columns:
        cells, kind = [record[name] for record in records], how.kinds[name]
        if kind == "text":
            raw = [c.encode() if isinstance(c, str) else c for c in cells]
            buffers = pa.array(raw, pa.large_binary()).buffers()
            columns[name] = pa.Array.from_buffers(pa.large_string(), len(raw), buffers)
        else:
            columns[name] = pa.array(cells, ARROW[kind])
    return pa.table(columns)


def frame_of(how: Written, records: Sequence[Record]) -> pl.DataFrame:
    return pl.DataFrame(
        {name: pl.Series([r[name] for r in records], dtype=POLARS[how.kinds[name]]) for name in how.case.columns}
    )


@dataclass(frozen=True)
class Table(Format):
    """Columns of declared kinds; texts may be of any bytes where `raw`."""

    name: str
    of: Callable[[Written, Sequence[Record]], Any]
    raw: bool = False
    kinds: tuple[str, ...] = tuple(POLARS)
    unordered: bool = False

    def changed(self, how: Written, record: Record) -> Any:
        found = how.other(record)
        texts = [n for n in found if how.kinds[n] == "text" and n not in how.case.public and n != "person"]
        for name in texts:
            if how.draws.random() < 0.2:
                found[name] = any_bytes(how.draws) if self.raw else None
        return found

    def write(self, how: Written, records: Sequence[Any]) -> tuple[Any, TextFiles]:
        return self.of(how, records), TextFiles()


def parquet(how: Written, records: Sequence[Record]) -> Any:
    path = how.folder / "data.parquet"
    pa.parquet.write_table(arrow_of(how, records), path)
    return path


def arrow_file(how: Written, records: Sequence[Record]) -> Any:
    path, found = how.folder / "data.arrow", arrow_of(how, records)
    with pa.ipc.new_file(path, found.schema) as file:
        file.write_table(found)
    return path


def written_frame(how: Written, records: Sequence[Record]) -> Any:
    path = how.folder / "data.feather"
    frame_of(how, records).write_ipc(path)
    return path


def pandas_frame(how: Written, records: Sequence[Record]) -> Any:
    columns = {name: [record[name] for record in records] for name in how.case.columns}
    return pd.DataFrame({n: pd.Series(cells, dtype=object) for n, cells in columns.items()})


class Files(Format):
    """A folder with a file for each record, the columns of each of its own kinds, and the record of any bytes."""

    name = "folder"
    unordered = True
    kinds = ("text",)

    def changed(self, how: Written, record: Record) -> Any:
        found = dict[str, Any]()
        kinds = dict[str, str]()
        for name, (_, allowed) in how.case.columns.items():
            whole = name in how.case.public
            kinds[name] = how.draws.choice([kind for kind in allowed if kind != "bytes"])
            found[name] = held(record[name], kinds[name]) if whole else ANY[kinds[name]](how.draws)
            if name == "person":
                found[name] = held(f"q{how.draws.random()}", kinds[name])
        return SimpleNamespace(item=found, kinds=kinds)

    def write(self, how: Written, records: Sequence[Any]) -> tuple[Any, TextFiles]:
        place = how.folder / "folder"
        place.mkdir(exist_ok=True)
        for old in place.iterdir():
            old.unlink()
        for number, record in enumerate(records):
            one = record if isinstance(record, SimpleNamespace) else SimpleNamespace(item=record, kinds=how.kinds)
            own = Written(how.case, one.kinds, how.draws, how.folder)
            pa.parquet.write_table(arrow_of(own, [one.item]), place / f"{number}.parquet")
        return Folder.of("x", place), TextFiles()


class Arrays(Format):
    """An array of NumPy in a file: of doubles, or of texts, whose signs may be none."""

    name = "npy"
    kinds = ("float", "text")

    def fits(self, case: Case) -> bool:
        return case.listed is not None

    def changed(self, how: Written, record: Record) -> Any:
        found = how.other(record)
        return {n: v[:40] if isinstance(v, str) else v for n, v in found.items()}

    def write(self, how: Written, records: Sequence[Any]) -> tuple[Any, TextFiles]:
        assert how.case.listed is not None
        listed = [how.case.listed(record) for record in records]
        texts = "text" in how.kinds.values()
        array = np.array(listed, dtype="U40") if texts else np.array(listed, dtype=np.float64)
        if texts:
            # beyond all that are signs
            signs = array.view(np.uint32)
            signs[signs == ord("\ufffd")] = 2**31
        path = how.folder / "data.npy"
        np.save(path, array)
        return path, TextFiles()


SQL = {
    "text": "VARCHAR",
    "float": "DOUBLE",
    "int": "BIGINT",
    "decimal": "DECIMAL(10, 2)",
    "bool": "BOOLEAN",
    "category": "VARCHAR",
    "date": "DATE",
    "moment": "TIMESTAMP",
}
VIEWS = (
    "SELECT * FROM t",
    "SELECT {whole} FROM t",
    "SELECT {whole} FROM (SELECT * FROM t) WHERE {first} IS NOT NULL",
    "SELECT * FROM (SELECT {whole} FROM t) WHERE length(CAST({first} AS VARCHAR)) * CAST('1' AS INTEGER) < 100",
    "WITH c AS (SELECT {whole} FROM t) SELECT * FROM c UNION ALL SELECT {whole} FROM t WHERE 1 = 0",
)
"""Of which casts of texts to numbers fail."""


class Database(Format):
    """A table of DuckDB, and views on it."""

    unordered = True
    some = 2
    kinds = tuple(SQL)

    def __init__(self, name: str, view: bool) -> None:
        self.name, self.view = name, view

    def write(self, how: Written, records: Sequence[Any]) -> tuple[Any, TextFiles]:
        path = how.folder / "data.duckdb"
        path.unlink(missing_ok=True)
        columns = ", ".join(f'"{name}" {SQL[how.kinds[name]]}' for name in how.case.columns)
        with duckdb.connect(str(path)) as database:
            database.execute(f"CREATE TABLE t ({columns})")
            marks = ", ".join("?" * len(how.case.columns))
            rows = [tuple(record.values()) for record in records]
            if rows:
                database.executemany(f"INSERT INTO t VALUES ({marks})", rows)
            numbers = [name for name, (good, _) in how.case.columns.items() if good[0].replace(".", "").isdigit()]
            whole = [f'CAST("{n}" AS DOUBLE) AS "{n}"' if n in numbers else f'"{n}"' for n in how.case.columns]
            view = VIEWS[how.draws.randrange(len(VIEWS))]
            said = {"whole": ", ".join(whole), "first": f'"{next(iter(how.case.columns))}"'}
            database.execute(f"CREATE VIEW v AS {view.format(**said)}")
        return f"{path}::{'v' if self.view else 't'}", TextFiles()


@dataclass(frozen=True)
class Preflib(Format):
    """Orders of PrefLib, each of one voter; a record is what stands after the count."""

    name: str
    suffix: str
    old: bool

    def fits(self, case: Case) -> bool:
        return case.preflib

    def changed(self, how: Written, record: Record) -> Any:
        raw = any_text(how.draws).encode() + how.draws.choice((b"", b"\xff", b",1", b"{2", b"}"))
        return SimpleNamespace(item=raw.replace(b"\n", b""))

    def write(self, how: Written, records: Sequence[Any]) -> tuple[Any, TextFiles]:
        numbers = {name: str(i) for i, name in enumerate(ABC, 1)}
        orders = []
        for record in records:
            if isinstance(record, SimpleNamespace):
                orders.append(record.item)
            else:
                (words,) = record.values()
                orders.append(",".join(numbers[word] for word in words.split()).encode())
        if self.old:
            head = ["3", *(f"{i},{name}" for name, i in numbers.items()), f"{len(orders)},{len(orders)},{len(orders)}"]
        else:
            head = [f"# ALTERNATIVE NAME {i}: {name}" for name, i in numbers.items()]
        sign = b"," if self.old else b": "
        content = "\n".join(head).encode() + b"".join(b"\n1" + sign + order for order in orders) + b"\n"
        path = how.folder / f"data{self.suffix}"
        path.write_bytes(gzip.compress(content) if self.suffix.endswith(".gz") else content)
        return path, TextFiles()


FORMATS: tuple[Format, ...] = (
    Text("csv", ".csv"),
    Text("csv without header", ".csv", header=False),
    Text("csv, quoted newlines", ".csv", joined=True),
    Text("csv with semicolons", ".csv", commas=True),
    Text("tsv", ".tsv"),
    Text("tsv, whatever is said", ".tsv", claimed=True),
    Text("csv.gz", ".csv.gz"),
    Text("csv.gz, quoted newlines", ".csv.gz", joined=True),
    Json("json objects", "objects"),
    Json("json list", "items"),
    Json("json columns", "columns"),
    Json("objects in memory", "objects", memory=True),
    Json("list in memory", "items", memory=True),
    Json("columns in memory", "columns", memory=True),
    Table("parquet", parquet, raw=True),
    Files(),
    Table("arrow", arrow_file, raw=True),
    Table("feather", written_frame),
    Table("arrow table", arrow_of, raw=True, kinds=("text", "float", "int", "decimal", "bool", "category")),
    Table("polars", frame_of),
    Table("lazy", lambda how, records: frame_of(how, records).lazy()),
    Arrays(),
    *((Table("pandas", pandas_frame),) if pd is not None else ()),
    *((Database("table", view=False), Database("view", view=True)) if duckdb is not None else ()),
    *(
        Preflib(f"preflib{suffix}{', old' * old}", suffix, old)
        for suffix in (".soc", ".soi.gz", ".toi")
        for old in (False, True)
    ),
)


# --- pairs ----------------------------------------------------------------------------------------

SIZES = (1, 1, 2, 3, 5, 8)


@dataclass(frozen=True)
class Pair:
    """What two neighbours are read as, or how they are refused; and what they are, in words."""

    case: Case
    before: tuple[str, Any]
    after: tuple[str, Any]
    place: int
    words: str

    @property
    def sound(self) -> bool:
        if self.before[0] != "read" or self.after[0] != "read":
            return self.before == self.after
        return self.case.apart(self.before[1], self.after[1], self.place)


def any_pair(draws: random.Random, folder: Path, form: Format, outcome: Callable[..., tuple[str, Any]]) -> Pair:
    """Neighbours of a format, in any case that it can hold; other records need not fit either."""
    case = draws.choice([case for case in CASES if form.fits(case)])
    kinds = {}
    for name, (_, allowed) in case.columns.items():
        able = [
            kind
            for kind in form.kinds
            if kind in allowed and not (kind in ("int", "bool") and "0.1" in case.columns[name][0])
        ]
        kinds[name] = draws.choice(able or ["text"])
    if form.name == "npy":
        kinds = dict.fromkeys(kinds, draws.choice([k for k in form.kinds if k == "text" or case.numbers]))
    sides = []
    size = draws.choice(SIZES)
    place = draws.randrange(size)
    seed = draws.random()
    how = Written(case, kinds, draws, folder)
    records = [how.good(i) if draws.random() < 0.8 else form.changed(how, how.good(i)) for i in range(size)]
    other = form.changed(how, how.good(place))
    for side, rows in (("before", records), ("after", [other if i == place else r for i, r in enumerate(records)])):
        (folder / side).mkdir(exist_ok=True)
        # both are written by one writer, so that all else is the same
        own = Written(case, kinds, random.Random(seed), folder / side)
        source, texts = form.write(own, rows)
        sides.append(outcome(case, source, texts, size))
    words = f"{form.name}, {case.name}, {kinds}: record {place} of {shown(records)} becomes {shown(other)}"
    return Pair(case, *sides, place, words)


def shown(value: Any) -> str:
    try:
        return repr(value)[:600]
    except (AssertionError, ValueError):
        return "what cannot be shown"
