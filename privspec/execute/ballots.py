"""Reads ballots: equal ones are counted before anything else happens to them, so that millions are read at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass
from privspec.execute.ballot_files import BALLOT, COUNT, JOIN, NOT_ONE, PARTY, Find, Form, open_ballots
from privspec.execute.family import Roll
from privspec.execute.keeper import Keeper, refuse
from privspec.execute.reading import Coded
from privspec.execute.sources import collect, column_names
from privspec.model.values import Symbol, show

if TYPE_CHECKING:
    import polars as pl

Codes: TypeAlias = NDArray[np.int16]
Marks: TypeAlias = NDArray[np.bool_]
MOST_OF_A_KIND = 2**32
"""Ballots that one row of counts can stand for."""
_ROW, _ROWS = "row", "rows"
_WHOLE = r"^(\d+)\.0+$"


@dataclass(frozen=True, eq=False, slots=True)
class Ballots:
    """Different ballots and how often each occurs (n,).

    ranked (n, places): numbers of alternatives, best first, NOT_ONE below the last place.
    """

    form: Form
    ranked: Codes
    counts: NDArray[np.int64]

    @property
    def number(self) -> int:
        return int(self.counts.sum())

    def each(self) -> Iterator[tuple[tuple[Symbol, ...], int]]:
        """The alternatives of each different ballot, best first, and how often it occurs."""
        items = self.form.alternatives
        for line, count in zip(self.ranked.tolist(), self.counts.tolist(), strict=True):
            yield tuple(items[place] for place in line if place != NOT_ONE), count


def read_ballots(
    form: Form,
    source: Any,
    *,
    strict: bool = False,
    only: str | None = None,
    roll: Roll | None = None,
    header: bool = True,
    keeper: Keeper | None = None,
) -> Ballots:
    """The ballots of an input: each by itself, and of a voter with several the first.

    Args: source, see `sources.open_ballots`; strict, refuse what a rule would have to be applied to; only, the one
        party whose ballot is read; roll, says whose ballots count; keeper, told how the ballots fit.
    Raises: DataError (PS0802 to PS0805, PS0809, PS0818); a row is named by its number, never by its ballot.
    """
    import polars as pl

    keeper = keeper or Keeper()
    frame, find = open_ballots(form, source, header=header)
    names = column_names(form.name, frame)
    frame = frame.with_row_index(_ROW)
    if roll is not None and PARTY not in names:
        _refuse_unnamed(form)
    if COUNT in names:
        frame = _with_counts(form, frame, keeper, least_one=PARTY in names)
    if PARTY in names:
        # rows without a party belong to nobody; one voter has one name, however a table of numbers writes it
        frame = frame.with_columns(pl.col(PARTY).str.replace(_WHOLE, "${1}"))
        frame = frame.filter(pl.col(PARTY) == only if only is not None else pl.col(PARTY) != "")
        frame = _one_each(form, frame, keeper)
    if roll is not None:
        frame, names = _counted(form, frame, roll, counts=COUNT in names), [*names, COUNT]
    many = pl.col(COUNT).sum() if COUNT in names else pl.len().cast(pl.Int64)
    grouped = collect(
        form.name, frame.group_by(BALLOT).agg(many.alias(COUNT), pl.col(_ROW).min(), pl.len().alias(_ROWS))
    )
    counts = grouped[COUNT].to_numpy().astype(np.int64)
    found = parse(form, grouped[BALLOT], find)
    # what is refused does not depend on whose ballots count
    seen = (counts > 0) | (roll is not None)
    if strict and (seen & ~found.exact).any():
        _refuse_ballot(form, int(grouped[_ROW].to_numpy()[seen & ~found.exact].min()) + 1)
    # nor does what the keeper hears: who is left out of a round stands in the roll alone
    heard = counts if roll is None else grouped[_ROWS].to_numpy().astype(np.int64)
    _tell(form, keeper, grouped[BALLOT], heard, found.valid)
    kept = (counts > 0) & found.valid if form.drops else counts > 0
    ranked = np.where(found.valid[:, None], found.ranked, form.first)
    return Ballots(form, ranked[kept], counts[kept])


def _tell(form: Form, keeper: Keeper, texts: pl.Series, counts: NDArray[np.int64], valid: NDArray[np.bool_]) -> None:
    """How many ballots are none, and what they say, for the keeper."""
    words = [show(item) for item in form.alternatives]
    fit = keeper.fit(form.name, fate=form.fate, words=words, what=form.what if form.most > 1 else "")
    fit.rows += int(counts.sum())
    for text, count in zip(texts.filter(~valid).to_list(), counts[~valid].tolist(), strict=True):
        fit.cell(text, count)
    if not valid.any() and counts.sum():
        keeper.remark(form.name, f"no row is {form.what}: the file and the spec may write the alternatives differently")


def _counted(form: Form, frame: pl.LazyFrame, roll: Roll, *, counts: bool) -> pl.LazyFrame:
    """With a count of 0 for the ballots of those who may not take part."""
    import polars as pl

    rows = collect(form.name, frame)
    count = pl.col(COUNT) if counts else pl.lit(1, dtype=pl.Int64)
    return rows.with_columns(pl.when(roll(rows[PARTY])).then(count).otherwise(0).alias(COUNT)).lazy()


def _refuse_unnamed(form: Form) -> NoReturn:
    party = form.party or "voter"
    refuse(
        "PS0804",
        f"the data for {form.name} have no column {party}: who takes part in a round is counted",
        "nothing was drawn and nothing was spent",
        help=f"the first line of the file names its columns: {party},choice",
    )


def _with_counts(form: Form, frame: pl.LazyFrame, keeper: Keeper, *, least_one: bool) -> pl.LazyFrame:
    """With whole numbers as counts: what is none, from 0 to MOST_OF_A_KIND, counts as 0; of a voter at most one."""
    import polars as pl

    kind = frame.collect_schema()[COUNT]
    plain = pl.col(COUNT).str.strip_chars() if kind == pl.String else pl.col(COUNT)
    number = plain.cast(pl.Float64, strict=False)
    most = 1 if least_one else MOST_OF_A_KIND
    whole = ((number >= 0) & (number <= MOST_OF_A_KIND) & (number == number.floor())).fill_null(value=False)
    wrong, rows = collect(form.name, frame.select((~whole).sum().alias(COUNT), pl.len())).row(0)
    if wrong:
        keeper.remark(form.name, f"{wrong:,} of {rows:,} counts are no whole numbers from 0, and count as 0")
    held = pl.when(whole).then(number).otherwise(0.0).cast(pl.Int64).clip(0, most)
    return frame.with_columns(held.alias(COUNT))


def _one_each(form: Form, frame: pl.LazyFrame, keeper: Keeper) -> pl.LazyFrame:
    """The first row of each voter: privacy is about one ballot of each."""
    import polars as pl

    different, rows = collect(form.name, frame.select(pl.col(PARTY).n_unique(), pl.len().alias(_ROW))).row(0)
    if different == rows:
        return frame
    keeper.remark(
        form.name, f"{rows - different:,} of {rows:,} rows are further ballots of a {form.party}, and are left out"
    )
    return frame.filter(pl.col(PARTY).is_first_distinct())


def refuse_number(form: Form, wanted: int, found: int) -> NoReturn:
    """Both numbers are public."""
    refuse(
        "PS0811",
        f"the plan is for {wanted} ballots, the data have {found}",
        f"the number of members of {form.party or 'voter'} is public; nothing was drawn and nothing was spent",
        help="solve the spec for this number; with `adding or removing one ...` in place of `replacing` it is secret",
    )


def _refuse_ballot(form: Form, row: int) -> NoReturn:
    """Under --strict: which row, never what stands in it."""
    refuse(
        "PS0809",
        f"row {row} of {form.name} is not {form.what} as it stands, and --strict was asked for",
        "nothing was drawn and nothing was spent",
        help="without --strict a public rule is applied to every ballot by itself",
    )


# --- from texts to numbers ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Parsed:
    """Ballots as numbers of alternatives, best first, NOT_ONE below their last place (n, most).

    valid (n,): which of them are ballots of the form; exact (n,): which are without any rule having to be applied.
    """

    ranked: Codes
    valid: Marks
    exact: Marks


def parse(form: Form, texts: pl.Series, find: Find) -> Parsed:
    """Texts, best first with spaces between; what follows an opening brace is tied and does not count.

    An alternative whose own name has spaces is found as a whole, a longer name before a shorter one.
    """
    if form.spaced:
        texts = texts.str.strip_chars().str.replace_all(r"\s+", " ")
        for name in form.spaced:
            texts = texts.str.replace_all(name, name.replace(" ", JOIN), literal=True)
    tied = texts.str.contains("{", literal=True).fill_null(value=False).to_numpy()
    if tied.any():
        texts = texts.str.split("{").list.first()
    if form.most == 1:
        return _first(texts, tied, find)
    # one place more than can be used shows which ballots are too long
    ranked, named = _ranked(texts, form.most + 1, find)
    long = named > form.most
    # a longer ranking of all alternatives names one of them twice: it is none
    wrong = long if form.most == len(form.alternatives) else np.zeros(len(named), dtype=bool)
    used = np.minimum(named, form.most)
    ranked = ranked[:, : form.most]
    wrong |= (ranked != NOT_ONE).sum(axis=1) < used
    wrong |= _repeats(ranked)
    completed = _complete(form, ranked, used, wrong)
    wrong |= used < form.least
    return Parsed(ranked, ~wrong, ~(wrong | tied | long | completed))


def _first(texts: pl.Series, tied: Marks, find: Find) -> Parsed:
    """The first word of each text."""
    first = texts.str.strip_chars().str.extract(r"^(\S+)")
    codes = _codes(first, find)
    valid = codes != NOT_ONE
    return Parsed(codes[:, None], valid, valid & ~tied)


def _words(texts: pl.Series) -> pl.Series:
    """The words of each text, in lists."""
    plain = texts.fill_null("").str.strip_chars()
    if plain.str.contains(r"\s\s|[^\S ]").any():
        plain = plain.str.replace_all(r"\s+", " ")
    return plain.str.split(" ")


def _ranked(texts: pl.Series, width: int, find: Find) -> tuple[Codes, NDArray[np.intp]]:
    """The numbers of the first `width` words of each text (n, width), and how many words these are (n,)."""
    words = _words(texts).list.head(width)
    lengths = words.list.len().to_numpy().astype(np.intp)
    flat = words.explode()
    codes = _codes(flat, find)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    places = np.arange(len(codes)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    ranked = np.full((len(lengths), width), NOT_ONE, dtype=np.int16)
    ranked[rows, places] = codes
    # splitting an empty text gives one empty word
    empty = (flat == "").to_numpy()
    if empty.any():
        lengths[rows[empty]] = 0
    return ranked, lengths


def _codes(words: pl.Series, find: Find) -> Codes:
    """The number of each word; the different ones are looked up once."""
    found = Coded.of_texts(words.fill_null(""))
    codes: Codes = np.array([find(word) for word in found.cells], dtype=np.int16)[found.places]
    return codes


def _repeats(ranked: Codes) -> Marks:
    """Which ballots name an alternative twice."""
    ordered = np.sort(ranked, axis=1)
    twice: Marks = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NOT_ONE)).any(axis=1)
    return twice


def _complete(form: Form, ranked: Codes, used: NDArray[np.intp], wrong: Marks) -> Marks:
    """Write the last place of rankings that leave out a single alternative (in place); which these are."""
    m = len(form.alternatives)
    if form.least < m or m < 2:
        return np.zeros(len(used), dtype=bool)
    short: Marks = (used == m - 1) & ~wrong
    ranked[short, m - 1] = m * (m - 1) // 2 - ranked[short, : m - 1].sum(axis=1, dtype=np.int64)
    used[short] = m
    return short
