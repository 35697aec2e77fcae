"""The one text of a cell, whatever its file, engine or kind is: for ids, for words, and for knowing data again.

`canonical_text` says what it is, of one cell; `canonical_texts` is the same of a column at once. The rules:

- Missing (None, NaN, NaT, a null of any kind) and texts in which nothing is to be seen are None. Words such as "NA",
  "null" or "nan" in a text are words.
- A number of any kind, and a text that is written as one, is the shortest decimal that its kind rounds to it: 7, 7.0,
  Decimal("7.00"), "+7" and "7.000" are "7"; -0.0 is "0". A whole number is written with all its digits, 1e+16 as
  "10000000000000000"; any other as Python writes the nearest double of 64 bits: "0.1", "1e-05", "1.5e-07". Without an
  end it is "inf" or "-inf"; so is a whole number of more than 400 digits.
- Written as a number is a text of at most 400 characters: perhaps a sign; digits 0 to 9 with no needless zero before
  them, perhaps a point and digits; perhaps e or E, a sign, and up to four digits. So "007", "1e5", "1,000" are words.
- Truth values, and the words true and false however they are capitalised, are "true" and "false".
- A day is 2024-01-31, a time of day 12:30:00 or 12:30:00.5, a moment 2024-01-31 12:30:00, in UTC where it has a zone;
  at midnight it is its day. What lies beyond the years 1 to 9999 is U+FFFD.
- Of any text: what shows nothing goes (Unicode's class Cf, and what it calls ignorable by default); then it is in
  Unicode's form NFC; every run of blanks, whatever they are called, of control signs and of halves of signs is one
  space, and none is at either end. Capital and small letters differ. Bytes are UTF-8, with U+FFFD for what is none.
- A list is the texts of its items with a space between them, those that are missing left out; anything else is U+FFFD.

The canonical text of a canonical text is itself, and depends on its cell alone.

An id, or a word of the data, is told apart by more (`id_text`): where it is written as a text, "1.1" and "1.10" are
two, and so are "true" and "TRUE". Whole numbers, "7" and "7.0", are one there as well.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from privspec.core.records import dataclass

if TYPE_CHECKING:
    import polars as pl

LOST = "\ufffd"
"""The sign for what is no text: no declared value has it."""
MOST_DIGITS = 400
"""A whole number of more digits is beyond every range; Python would refuse to write one of 4,300."""

# Cf is looked up; these are ignorable by default (Unicode 16, DerivedCoreProperties), or look like a space
_IGNORED = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8]")
_IGNORED_BEYOND = range(0xE0000, 0xE1000)
_BLANK = re.compile("[\\s\x00-\x1f\x7f-\x9f\u2800\ud800-\udfff]+")
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-][0-9]{1,4})?")
_TRUTH = {"true", "false"}
_SAFE = 2.0**53
"""Doubles below it are whole where what they were rounded from is whole."""


def canonical_text(cell: Any) -> str | None:
    """The one text of a cell by the rules of this module; None where it is missing or blank."""
    if cell is None:
        return None
    if isinstance(cell, str):
        return _of_text(cell)
    if isinstance(cell, bytes):
        return _of_text(cell.decode("utf-8", errors="replace"))
    if isinstance(cell, bool | np.bool_):
        return str(bool(cell)).lower()
    if isinstance(cell, date | time | np.datetime64):
        try:
            return _of_time(cell) if cell == cell else None
        except OverflowError:
            return LOST
    if isinstance(cell, list | tuple | np.ndarray):
        return " ".join(text for item in cell if (text := canonical_text(item)) is not None) or None
    if isinstance(cell, Decimal):
        return None if cell.is_nan() else _of_quantity(str(cell))
    if not isinstance(cell, Real):
        return LOST
    if cell != cell:
        return None
    if isinstance(cell, Integral):
        return _of_whole(int(cell))
    if isinstance(cell, Fraction):
        n, d = cell.numerator, cell.denominator
        return _of_whole(n) if d == 1 else _of_quantity(str(Decimal(n) / Decimal(d)))
    # numbers of NumPy with the digits of their own kind
    return _of_quantity(str(cell))


def _of_whole(number: int) -> str:
    if abs(number) >= 10**MOST_DIGITS:
        return "inf" if number > 0 else "-inf"
    return str(number)


def _of_quantity(written: str) -> str:
    """Of a decimal however it is written, with an exponent of any size."""
    nearest = float(written)
    if abs(nearest) < _SAFE:
        return str(int(nearest)) if nearest.is_integer() else repr(nearest)
    exact = Decimal(written)
    exact = exact if exact.is_finite() and exact == exact.to_integral_value() else Decimal(nearest)
    if not exact.is_finite() or exact.adjusted() >= MOST_DIGITS:
        return "-inf" if exact < 0 else "inf"
    return str(int(exact))


def id_text(cell: Any) -> str | None:
    """The one text of an id or a word of the data; None where it is missing or blank."""
    if not isinstance(cell, str | bytes):
        return canonical_text(cell)
    text = clean_text(cell if isinstance(cell, str) else cell.decode("utf-8", errors="replace"))
    if len(text) <= MOST_DIGITS and _NUMBER.fullmatch(text):
        found = _of_quantity(text)
        return found if found.lstrip("-").isdecimal() else text
    return text or None


@dataclass(frozen=True, slots=True)
class Clock:
    """How finely a column tells moments apart: by the day, or the hour, they lie in, in UTC where they have a zone.

    As texts they are 2025-01-31, and 2025-01-31T07:00.
    """

    hours: bool

    @classmethod
    def of(cls, values: Sequence[str]) -> Clock | None:
        """That of a column's values; None where they are no moments."""
        hours = bool(values) and "T" in values[0]
        pattern = re.compile(cls(hours).pattern)
        return cls(hours) if values and all(map(pattern.match, values)) else None

    @property
    def pattern(self) -> str:
        """Texts that are their own, as far as their signs say."""
        return "^[0-9]{4}-[0-9]{2}-[0-9]{2}" + ("T[0-9]{2}:00$" if self.hours else "$")

    def text(self, cell: Any) -> str | None:
        """Of a cell that holds a day, or a moment; of any other its own text."""
        text = id_text(cell)
        try:
            moment = datetime.fromisoformat(text or "")
        except ValueError:
            return text
        moment = moment if moment.tzinfo is None else moment.astimezone(UTC)
        return f"{moment.date()}T{moment.hour:02}:00" if self.hours else str(moment.date())

    def frame(self, moment: pl.Expr) -> pl.Expr:
        """Of a column of polars, in UTC: days, or the texts of hours."""
        import polars as pl

        day = moment.dt.date()
        if not self.hours:
            return day
        hour = moment.cast(pl.Datetime("us"), strict=False).dt.hour().cast(pl.String).str.zfill(2)
        return pl.concat_str([day.cast(pl.String), pl.lit("T"), hour, pl.lit(":00")])

    def sql(self, moment: str) -> str:
        """The text in a database, of a moment without a zone."""
        day = f"CAST(CAST({moment} AS DATE) AS VARCHAR)"
        hour = f"lpad(CAST(extract(hour FROM CAST({moment} AS TIMESTAMP)) AS VARCHAR), 2, '0')"
        return f"({day} || 'T' || {hour} || ':00')" if self.hours else day

    def cell(self, moment: str) -> str:
        """What polars reads of a database: days, or the texts of hours."""
        return self.sql(moment) if self.hours else f"CAST({moment} AS DATE)"


def clean_text(text: str) -> str:
    """A text without what shows nothing, in the form NFC, with one space for blanks and none at either end."""
    if not (text.isascii() and text.isprintable()):
        text = "".join(sign for sign in _IGNORED.sub("", text) if not _shows_nothing(sign))
        text = unicodedata.normalize("NFC", text)
    return _BLANK.sub(" ", text).strip(" ")


def _of_text(text: str) -> str | None:
    text = clean_text(text)
    if text.lower() in _TRUTH:
        return text.lower()
    return _of_quantity(text) if len(text) <= MOST_DIGITS and _NUMBER.fullmatch(text) else text or None


def _shows_nothing(sign: str) -> bool:
    return unicodedata.category(sign) == "Cf" or ord(sign) in _IGNORED_BEYOND


def _of_time(cell: date | time | np.datetime64) -> str:
    if isinstance(cell, np.datetime64):
        # NumPy gives numbers for nanoseconds, and for what lies beyond every calendar
        unit = "D" if np.datetime_data(cell)[0] == "D" else "us"
        found = cell.astype(f"datetime64[{unit}]").item()
        return _of_time(found) if isinstance(found, date) else LOST
    if isinstance(cell, datetime):
        said = (cell.astimezone(UTC) if cell.tzinfo else cell).replace(tzinfo=None).isoformat(sep=" ")
    else:
        said = cell.isoformat() if isinstance(cell, date) else cell.replace(tzinfo=None).isoformat()
    return said.rstrip("0") if "." in said else said.removesuffix(" 00:00:00")


# --- columns at once ------------------------------------------------------------------------------

_WORDS = r"[!-~]*(?: [!-~]+)*"
_CLEAN = rf"^(?:[!-~]{_WORDS})?$"
_NO_NUMBER = rf"[!-*,/:-~]{_WORDS}|[0-9]+(?:[!-\-/:-DF-df-~]{_WORDS}| [!-~]{_WORDS})|0[0-9]{_WORDS}"
"""Words of plain signs that are no number: they begin as none does, or go on so."""
_AS_IT_STANDS = "|".join(
    (
        _NO_NUMBER,
        # whole numbers, and decimals of so few digits that the nearest double is written as they are
        r"0|-?[1-9][0-9]*",
        r"-?[1-9][0-9]{0,7}\.[0-9]{0,6}[1-9]",
        r"-?0\.0{0,3}[1-9](?:[0-9]{0,9}[1-9])?",
    )
)
_AS_IT_STANDS = f"^(?:{_AS_IT_STANDS})$"
_TRUE_OR_FALSE = "^(?i:true|false)$"
_DECIMAL = r"^[+-]?(?:0|[1-9][0-9]{0,14})\.[0-9]{0,300}$"
_POSITIONAL = 1e-4
"""Doubles of this size and below 2^53 are written without an exponent."""
_EPOCH = datetime(1970, 1, 1)
_A_DAY = 86_400_000_000


def canonical_texts(column: pl.Series) -> pl.Series:
    """`canonical_text` of each cell: texts, null where a cell is missing or blank.

    Some tens of nanoseconds a cell for whole numbers and plain words, some hundreds for other numbers.
    """
    import polars as pl

    kind = column.dtype
    if kind.is_float():
        return _of_floats(column)
    if kind.is_integer() or kind in (pl.Boolean, pl.Null):
        return column.cast(pl.String)
    if kind.is_decimal() or kind in (pl.String, pl.Categorical, pl.Enum):
        return _of_texts(column.cast(pl.String))
    if kind in (pl.Date, pl.Datetime):
        return _of_moments(column)
    if isinstance(kind, pl.List | pl.Array):
        return _of_lists(column)
    if kind in (pl.Struct, pl.Duration):
        return _listed(column.name, [None if none else LOST for none in column.is_null()])
    return _listed(column.name, [canonical_text(cell) for cell in column.to_list()])


ID_AS_IT_STANDS = rf"^(?:{_NO_NUMBER}|0|-?[1-9][0-9]*|[0-9]*\.[0-9]*[1-9])$"
_WHOLE_WITH_POINT = r"^(-?[1-9][0-9]{0,99})\.0*$"


def id_texts(column: pl.Series) -> pl.Series:
    """`id_text` of each cell: texts, null where a cell is missing or blank."""
    import polars as pl

    if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
        if column.dtype == pl.Binary:
            return _listed(column.name, [id_text(cell) for cell in column.to_list()])
        return canonical_texts(column)
    plain = column.cast(pl.String).str.replace(_WHOLE_WITH_POINT, "${1}")
    return _one_by_one(plain, ~plain.str.contains(ID_AS_IT_STANDS), id_text)


def ids(column: pl.Expr) -> pl.Expr:
    """`id_texts` of a column of a lazy frame."""
    import polars as pl

    return column.map_batches(id_texts, return_dtype=pl.String, is_elementwise=True)


def clean_texts(column: pl.Series) -> pl.Series:
    """`clean_text` of each of some texts."""
    return _one_by_one(column, ~column.str.contains(_CLEAN), clean_text)


def folded(column: pl.Series) -> pl.Series:
    """Texts without what people write now so and now otherwise: capital letters, spaces, how signs are made."""
    odd = ~column.str.contains("^[ -~]*$")
    plain = column.str.to_lowercase().str.replace_all(" ", "", literal=True)
    unusual = (unicodedata.normalize("NFKC", text).casefold() for text in column.filter(odd))
    return plain.scatter(odd.arg_true(), ["".join(text.split()) for text in unusual])


def _listed(name: str, texts: Sequence[str | None]) -> pl.Series:
    import polars as pl

    return pl.Series(name, texts, dtype=pl.String)


def _of_floats(column: pl.Series) -> pl.Series:
    import polars as pl

    x, digits = pl.col("x"), 24 if column.dtype == pl.Float32 else 53
    known, exact, whole = x.is_not_nan(), x.abs() < 2.0**digits, x == x.floor()
    frame = (
        pl.DataFrame({"x": column})
        .with_columns(whole=known & exact & whole)
        .with_columns(
            # nothing is written but what is looked at
            number=pl.when("whole").then(x).cast(pl.Int64).cast(pl.String),
            text=pl.when(known & ~pl.col("whole")).then(x).cast(pl.String),
        )
    )
    text = frame["text"]
    # some versions of polars write no sign of an exponent
    large = _one_by_one(text.str.replace("e([0-9])", "e+${1}"), column.abs() >= 2.0**digits)
    small = ((column.abs() < _POSITIONAL) & text.is_not_null()).arg_true()
    text = large.scatter(small, [repr(float(cell)) for cell in large.gather(small)])
    return frame["number"].zip_with(frame["text"].is_null(), text).alias(column.name)


def _of_texts(column: pl.Series) -> pl.Series:
    import polars as pl

    odd = ~column.str.contains(_AS_IT_STANDS) | column.str.contains(_TRUE_OR_FALSE)
    if not odd.any():
        return column
    decimal = odd & column.str.contains(_DECIMAL)
    if decimal.any():
        quantities = pl.select(pl.when(decimal).then(column).cast(pl.Float64)).to_series()
        column = _of_floats(quantities).zip_with(decimal, column).alias(column.name)
    return _one_by_one(column, odd & ~decimal)


def _one_by_one(column: pl.Series, odd: pl.Series, text_of: Callable[[Any], str | None] = canonical_text) -> pl.Series:
    """Texts, those that are marked each looked at once."""
    if not odd.any():
        return column
    cells = column.filter(odd).unique()
    return column.replace(cells, _listed("", [text_of(cell) for cell in cells]))


def _of_moments(column: pl.Series) -> pl.Series:
    """Of days and moments by their numbers: polars itself fails on those beyond every calendar."""
    import polars as pl

    ticks = column.to_physical()
    distinct = ticks.unique().drop_nulls()
    kind = column.dtype
    times, over = (_A_DAY, 1) if not isinstance(kind, pl.Datetime) else _MICROSECONDS[kind.time_unit]
    texts = []
    for tick in distinct.to_list():
        try:
            texts.append(_of_time(_EPOCH + timedelta(microseconds=tick * times // over)))
        except OverflowError:
            texts.append(LOST)
    return ticks.replace_strict(distinct, _listed("", texts), default=None, return_dtype=pl.String)


_MICROSECONDS = {"ms": (1000, 1), "us": (1, 1), "ns": (1, 1000)}


def _of_lists(column: pl.Series) -> pl.Series:
    import polars as pl

    lists = column.arr.to_list() if isinstance(column.dtype, pl.Array) else column
    lengths = lists.list.len().fill_null(0).to_numpy()
    rows = pl.Series(np.repeat(np.arange(len(lists)), lengths))
    cells = pl.DataFrame({"row": rows, "cell": canonical_texts(lists.filter(lengths > 0).explode())})
    joined = cells.drop_nulls().group_by("row").agg(pl.col("cell").str.join(" "))
    return _listed(column.name, [None] * len(column)).scatter(joined["row"], joined["cell"])
