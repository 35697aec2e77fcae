"""The canonical text of a cell: of one, of columns at once, and the same for all kinds of one value."""

from __future__ import annotations

import datetime as dt
import unicodedata
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from privspec.execute.cells import LOST, canonical_text, canonical_texts, clean_text, clean_texts, id_text, id_texts


def at_once(cells: list[Any], kind: Any) -> list[str | None]:
    return canonical_texts(pl.Series("x", cells, dtype=kind)).to_list()


@pytest.mark.parametrize(
    "cell",
    [
        *(7, 7.0, Decimal(7), Decimal("7.00"), Decimal("0.7E1"), Fraction(14, 2), "7", " 7 ", "+7", "7.", "7.000"),
        *("7\u200b", "\ufeff7", "7\u00a0", "\u20077\u3000", "\u2060\u00ad7\x00", "7\u2800", b"7", "7e+0", "70e-1"),
        *(np.int8(7), np.uint64(7), np.float16(7), np.float32(7), np.float64(7), np.str_("7"), np.bytes_(b"7"), [7.0]),
    ],
)
def test_a_whole_number_has_one_text_whatever_its_kind(cell: Any) -> None:
    assert canonical_text(cell) == "7"


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        (
            (None, float("nan"), np.nan, Decimal("nan"), Decimal("snan"), "", " ", "\u200b \u3000", b"", [], [None]),
            None,
        ),
        ((0, -0.0, "-0", "0.0", "+0.00", "1e-999"), "0"),
        (
            (0.1, Decimal("0.10"), "0.1", ".1", "+0.100", np.float32(0.1), Fraction(1, 10), "0.10000000000000000001"),
            "0.1",
        ),
        ((1e16, 10**16, "1e+16", "10000000000000000", Decimal("1E+16")), "1" + 16 * "0"),
        ((1e-5, "0.00001", "1E-05", np.float32(1e-5)), "1e-05"),
        ((2**53 + 1, str(2**53 + 1), f"{2**53 + 1}.00", Decimal(2**53 + 1)), str(2**53 + 1)),
        ((10**400, float("inf"), "1e+999", Decimal("1e500")), "inf"),
        ((True, np.bool_(1), "true", "True", "TRUE "), "true"),
        (("NA",), "NA"),
        (("null",), "null"),
        (("nan",), "nan"),
        (("007",), "007"),
        (("1e5",), "1e5"),
        (("1,000",), "1,000"),
        (("1_000",), "1_000"),
        (("٣",), "٣"),
        (("A\u0308",), "\u00c4"),
        (("Ann  Lee", "Ann\u00a0Lee", " Ann\tLee\n", "Ann\u2003 Lee", "A\u200dnn Lee\ufe0f"), "Ann Lee"),
        (("ann lee",), "ann lee"),
        ((b"\xff", b"\xfe", {"a": 1}, object(), dt.timedelta(1)), LOST),
        (("\ud800",), None),
        ((dt.date(2024, 1, 31), dt.datetime(2024, 1, 31), np.datetime64("2024-01-31T00:00:00.000")), "2024-01-31"),
        ((dt.datetime(2024, 1, 31, 12, 30),), "2024-01-31 12:30:00"),
        ((dt.datetime(2024, 1, 31, 14, 30, 0, 500000, dt.timezone(dt.timedelta(hours=2))),), "2024-01-31 12:30:00.5"),
        (([1, None, "b c", 2.0],), "1 b c 2"),
    ],
)
def test_what_a_cell_of_each_kind_is(cells: tuple[Any, ...], text: str | None) -> None:
    assert [canonical_text(cell) for cell in cells] == [text] * len(cells)


signs = st.one_of(
    st.sampled_from("0123456789.eE+-_ trueTRUEfalseé\t\n\u200b\ufeff\u00a0\u2800\u0301\ufe0f\x00\x1f\U000e0001"),
    st.characters(exclude_categories=["Cs"]),
)
texts = st.one_of(
    st.text(signs, max_size=12),
    st.from_regex(
        r"[+-]?[0-9]{0,18}\.?[0-9]{0,20}([eE][+-]?[0-9]{1,4})?",
        fullmatch=True,
        alphabet=st.sampled_from("0123456789.eE+-"),
    ),
    st.floats().map(repr),
    st.decimals(allow_nan=False).map(str),
)


@given(st.lists(st.none() | texts, max_size=8))
@example(["1" * 320 + ".5", "9" * 399 + ".9", "1" * 500, "0." + "9" * 390, "-" + "1" * 400, "0.00012345678901234567"])
@example(["123456789012345.99", "999999999999999.9999", "0.9999999999999999999", "00.5", "5.", "1.5.3", "12 Main St"])
def test_columns_of_texts_at_once(cells: list[str | None]) -> None:
    expected = [canonical_text(cell) for cell in cells]
    assert at_once(cells, pl.String) == expected
    assert at_once([None if c is None else c.encode() for c in cells], pl.Binary) == expected
    assert at_once(cells, pl.Categorical) == expected


@given(texts)
def test_it_is_its_own_canonical_text(cell: str) -> None:
    found = canonical_text(cell)
    assert canonical_text(found) == found
    if found is not None:
        assert unicodedata.is_normalized("NFC", found)
        assert not {unicodedata.category(sign) for sign in found} & {"Cf", "Cc", "Zl", "Zp"}
        assert {sign for sign in found if unicodedata.category(sign) == "Zs"} <= {" "}


@given(st.lists(st.none() | st.floats(), max_size=8))
@example([1e-4, 9.99e-5, 2.0**53, 2.0**53 - 1, -(2.0**53), 1e16, 1.5e300, 5e-324, 1234567890123456.8, -0.0])
def test_columns_of_floats_at_once_and_as_a_file_writes_them(cells: list[float | None]) -> None:
    expected = [canonical_text(cell) for cell in cells]
    assert at_once(cells, pl.Float64) == expected
    written = [None if cell is None or cell != cell else repr(cell) for cell in cells]
    assert at_once(written, pl.String) == expected


@given(st.lists(st.floats(width=32), max_size=8))
def test_columns_of_short_floats_have_the_digits_of_their_kind(cells: list[float]) -> None:
    assert at_once(cells, pl.Float32) == [canonical_text(cell) for cell in np.array(cells, dtype=np.float32)]


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=8))
def test_columns_of_whole_numbers_at_once(cells: list[int | None]) -> None:
    expected = [None if cell is None else str(cell) for cell in cells]
    assert [canonical_text(cell) for cell in cells] == expected
    assert at_once(cells, pl.Int64) == expected
    assert at_once([None if c is None else Decimal(c) for c in cells], pl.Decimal(38, 2)) == expected
    assert at_once([None if c is None else f"{c}.0" for c in cells], pl.String) == expected
    assert at_once([[c] for c in cells], pl.List(pl.Int64)) == expected


@given(st.lists(st.none() | st.datetimes(), max_size=8))
def test_columns_of_moments_at_once(cells: list[dt.datetime | None]) -> None:
    expected = [canonical_text(cell) for cell in cells]
    assert at_once(cells, pl.Datetime("us")) == expected
    days = [None if cell is None else cell.date() for cell in cells]
    assert at_once(days, pl.Date) == [canonical_text(day) for day in days]


def test_moments_beyond_every_calendar_are_lost_and_stop_nobody() -> None:
    for kind in (pl.Date, pl.Datetime("ms"), pl.Datetime("us"), pl.Datetime("ms", "UTC")):
        whole = pl.Int32 if kind == pl.Date else pl.Int64
        ticks = pl.Series("x", [0, None, np.iinfo(np.int32 if kind == pl.Date else np.int64).max], dtype=whole)
        assert canonical_texts(ticks.cast(kind)).to_list() == ["1970-01-01", None, LOST]
    assert canonical_text(np.datetime64(2**62, "us")) == LOST
    assert canonical_text(dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2)))) == LOST


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (pl.Series("x", [True, None, False]), ["true", None, "false"]),
        (pl.Series("x", [None, None]), [None, None]),
        (pl.Series("x", [[1, None, 2], None, []]), ["1 2", None, None]),
        (pl.Series("x", [["a\u200b", "7.0"]]), ["a 7"]),
        (pl.Series("x", [{"a": 1}, None]), [LOST, None]),
        (pl.Series("x", [dt.time(12, 30), None]), ["12:30:00", None]),
        (pl.Series("x", [dt.timedelta(1), None]), [LOST, None]),
        (pl.Series("x", [object(), "a"], dtype=pl.Object), [LOST, "a"]),
        (pl.Series("x", [[2**31 - 1]], dtype=pl.List(pl.Int32)).cast(pl.List(pl.Date)), [LOST]),
    ],
)
def test_columns_of_other_kinds(column: pl.Series, texts: list[str | None]) -> None:
    found = canonical_texts(column)
    assert (found.name, found.dtype, found.to_list()) == ("x", pl.String, texts)


def test_each_cell_has_its_text_whatever_stands_beside_it() -> None:
    cells = ["7.50", "a b", "x\u200b", None, "1e+20", "007", " ", "TRUE", "0.00000001", "12.5"]
    together = at_once(cells, pl.String)
    assert together == [at_once([cell], pl.String)[0] for cell in cells]


@given(st.lists(st.none() | texts, max_size=8))
@example(["7.0", "-7.000", "0.0", "-0.0", "7.", "1.10", "1.1", ".5", "+7", "1e+16", "1e-3", "1e5", "TRUE", "007.0"])
@example(["9" * 120 + ".0", "9" * 399 + ".", "-" + "9" * 399 + ".0", "12.30 Main St", "7.0\u200b", "ann\x00", "a\x00b"])
def test_columns_of_ids_at_once(cells: list[str | None]) -> None:
    expected = [None if cell is None else id_text(cell) for cell in cells]
    assert [id_text(cell) for cell in expected] == expected
    for kind in (pl.String, pl.Categorical):
        assert id_texts(pl.Series("x", cells, dtype=kind)).to_list() == expected
    written = [None if cell is None else cell.encode() for cell in cells]
    assert id_texts(pl.Series("x", written, dtype=pl.Binary)).to_list() == expected
    assert clean_texts(pl.Series("x", cells, dtype=pl.String)).to_list() == [
        None if cell is None else clean_text(cell) for cell in cells
    ]


def test_an_id_that_is_a_text_is_told_apart_by_its_signs() -> None:
    assert [id_text(cell) for cell in ("1.10", "1.1", "TRUE", "true", "0.50", "1,0")] == [
        *("1.10", "1.1", "TRUE", "true", "0.50", "1,0")
    ]
    for kinds in (
        [7, 7.0, Decimal("7.00"), "7", "7.0", " 7.00\u200b", np.float32(7), b"7.0"],
        [1.1, "1.1", np.float32(1.1)],
    ):
        assert len({id_text(cell) for cell in kinds}) == 1
