"""Reads ballots: equal ones are counted before anything else happens to them, so that millions are read at once.

Ballots stand in any table, list or file, and are read as a frame with a text for each: CSV, Parquet, JSON, arrays and
PrefLib's files of orders (Mattei and Walsh 2013): .soc, .soi, .toc and .toi, as they are now (lines
`# ALTERNATIVE NAME 1: north`, then `count: 1,2,{3,4}`) and as they were (the number of alternatives, a line `1,north`
for each, a line of totals, then `count,1,2,{3,4}`). Braces hold what is tied.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass
from privspec.execute import sources
from privspec.execute.cells import clean_texts, id_text, ids
from privspec.execute.data import SUFFIXES, located
from privspec.execute.family import Roll
from privspec.execute.keeper import STRICT_RULE, DataOwnerReport, refuse, slip_of_header
from privspec.execute.reading import Coded
from privspec.model.domains import Domain, FiniteSet, IntegerRange, PartialRankingOf, RankingOf
from privspec.model.values import Symbol, show

if TYPE_CHECKING:
    import polars as pl

    from privspec.model.neighbours import InputBlock


MOST_ALTERNATIVES = 2**15 - 1
"""Alternatives that are numbered, at most."""
JOIN = "\x1e"
"""Stands for a space within the name of an alternative."""
NOT_ONE = -1
"""The number of what is no alternative."""
_NUMBER = re.compile(r"[+-]?\d{1,40}(?:\.\d{0,40}|/0{0,9}[1-9]\d{0,30})?", re.ASCII)
"""Other ways to write numbers: 3.0, 0.50, 1/2; none that takes long to compute."""


@dataclass(frozen=True, eq=False)
class Form:
    """The ballots of one input: rankings with `least` to `most` places, of which the first is the first choice.

    party: the index set whose members vote, None where nobody is named. drops: ballots that are none are left out,
    because nothing that is promised depends on how many there are; otherwise each counts as the first of all ballots.
    """

    name: str
    party: str | None
    alternatives: tuple[Symbol, ...]
    least: int = 1
    most: int = 1
    drops: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.alternatives) <= MOST_ALTERNATIVES:
            raise ValueError(f"ballots are about 1 to {MOST_ALTERNATIVES} alternatives")

    @classmethod
    def of_block(cls, block: InputBlock, *, drops: bool = False) -> Self | None:
        """The ballots of an input with one value for each party, None if its values are no ballots."""
        places = places_of(block.domain)
        return None if places is None else cls(block.name, block.index, *places, drops)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """From the ways to write an alternative to its number, from 0: its name, or, for words, its number from 1."""
        found = {JOIN.join(show(item).split()): i for i, item in enumerate(self.alternatives)}
        if not any(isinstance(item, Fraction) for item in self.alternatives):
            for i in range(len(self.alternatives)):
                found.setdefault(str(i + 1), i)
        return found

    @cached_property
    def spaced(self) -> tuple[str, ...]:
        """The alternatives whose names have spaces, the longest first."""
        names = {" ".join(show(item).split()) for item in self.alternatives}
        return tuple(sorted((name for name in names if " " in name), key=lambda name: (-len(name), name)))

    def find(self, text: str) -> int:
        """The number of the alternative that a word of a ballot names, NOT_ONE if it names none."""
        found = self.numbers.get(text)
        if found is not None or not _NUMBER.fullmatch(text):
            return NOT_ONE if found is None else found
        return self.numbers.get(show(Fraction(text)), NOT_ONE)

    @property
    def what(self) -> str:
        """What a ballot holds, in words."""
        if self.most == 1:
            return "one of the alternatives"
        if self.least == len(self.alternatives):
            return f"a ranking of all {self.least} alternatives"
        return f"a ranking of 1 to {self.most} alternatives"

    @property
    def first(self) -> NDArray[np.int16]:
        """The first of all ballots (most,): what counts in place of one that is none."""
        places = np.full(self.most, NOT_ONE, dtype=np.int16)
        places[: self.least] = np.arange(self.least)
        return places

    @property
    def fate(self) -> str:
        """What becomes of a ballot that is none."""
        names = " ".join(show(item) for item in self.alternatives[: self.least])
        return "each is left out" if self.drops else f"each counts as {names}"

    def rules(self, *, strict: bool) -> tuple[str, ...]:
        """What was done with ballots, whatever they are."""
        if strict:
            return (STRICT_RULE,)
        words = ["each ballot by itself: it counts as far as its first tie"]
        if self.most == 1:
            words.append("of a ranking the first place counts")
        elif self.most < len(self.alternatives):
            words.append(f"the first {self.most} places of a longer ranking count")
        elif self.least == len(self.alternatives):
            words.append("one that leaves out a single alternative has it last")
        words.append(f"one that is not {self.what} {'is left out' if self.drops else self.fate.removeprefix('each ')}")
        return ("; ".join(words),)


def places_of(domain: Domain) -> tuple[tuple[Symbol, ...], int, int] | None:
    """Alternatives, least and largest number of places of the ballots in a domain, None if its values are none."""
    match domain:
        case RankingOf(alternatives=items):
            return items, len(items), len(items)
        case PartialRankingOf(alternatives=items, places=places):
            return items, 1, places
        case FiniteSet(items=items):
            return items, 1, 1
        case IntegerRange() if (domain.size or 0) <= MOST_ALTERNATIVES:
            return tuple(domain.elements()), 1, 1
        case _:
            return None


# --- PrefLib's files ------------------------------------------------------------------------------


PREFLIB = tuple(kind + end for kind in (".soc", ".soi", ".toc", ".toi") for end in ("", ".gz"))
_NAME = re.compile(r"#\s*ALTERNATIVE NAME\s+(\d{1,9})\s*:\s*(.*?)\s*$", re.IGNORECASE)


def read_preflib(form: Form, path: Path) -> tuple[pl.LazyFrame, dict[str, int]]:
    """The orders of a file as it writes them (columns `ballot` and `count`), and what its alternatives' numbers mean.

    Returns: the second is from the file's numbers to the places of the spec's alternatives.
    Raises: DataError PS0803, PS0818.
    """
    names, frame = orders_of(form.name, path)
    return frame, _numbers(form, names)


def orders_of(name: str, path: Path) -> tuple[dict[str, str], pl.LazyFrame]:
    """The alternatives of a file by its numbers, and its orders as it writes them.

    Raises: DataError PS0803, PS0818.
    """
    import polars as pl

    lines = _lines(name, path)
    if lines and not lines[0].startswith("#"):
        names, body, separator = _old_head(name, lines)
    else:
        found = [match for line in lines if (match := _NAME.match(line))]
        names = {match[1]: match[2] for match in found}
        body, separator = [line for line in lines if not line.startswith("#")], ":"
    if not names:
        _refuse(name, "it does not name its alternatives")
    orders = pl.Series("line", body, dtype=pl.String)
    parts = pl.DataFrame(orders).select(
        pl.col("line").str.splitn(separator, 2).struct.rename_fields(["count", "order"])
    )
    order = pl.col("order")
    for sign, spaced in (("{", " { "), ("}", " "), (",", " ")):
        order = order.str.replace_all(sign, spaced, literal=True)
    return names, parts.unnest("line").lazy().select(order.alias("ballot"), pl.col("count").str.strip_chars())


def _lines(name: str, path: Path) -> list[str]:
    with sources.opened(name, path, "an election of PrefLib") as file:
        text = file.read().decode("utf-8-sig", errors="replace")
    # at line feeds alone: an order holds no other end of a line
    return [line for raw in text.split("\n") if (line := raw.strip())]


def _old_head(name: str, lines: list[str]) -> tuple[dict[str, str], list[str], str]:
    """Names by number, the lines of the orders, and what stands after their counts."""
    if not re.fullmatch(r"\d{1,9}", lines[0]) or int(lines[0]) >= len(lines):
        _refuse(name, "its first line is neither a comment nor the number of its alternatives")
    count = int(lines[0])
    names = {}
    for line in lines[1 : count + 1]:
        number, comma, alternative = line.partition(",")
        if not comma or not re.fullmatch(r"\d{1,9}", number.strip()):
            _refuse(name, "a line of its head is no number and name of an alternative")
        names[number.strip()] = alternative.strip()
    return names, lines[count + 2 :], ","


def _numbers(form: Form, names: dict[str, str]) -> dict[str, int]:
    """From the numbers of a file's alternatives to places in the spec, by name if all are known, else in order."""
    known = {_word(show(item)): i for i, item in enumerate(form.alternatives)}
    by_name = {number: known[plain] for number, name in names.items() if (plain := _word(name)) in known}
    if len(set(by_name.values())) == len(by_name) == len(names):
        return by_name
    if len(names) != len(form.alternatives):
        _refuse(form.name, f"it has {len(names)} alternatives, the spec {len(form.alternatives)}")
    if by_name:
        why = f"{len(by_name)} of its {len(names)} alternatives have names of the spec's, the others have not"
        _refuse(form.name, why)
    return {number: place for place, number in enumerate(sorted(names, key=int))}


def _word(name: str) -> str:
    """A name as a word of a spec can be."""
    return re.sub(r"\W+", "_", name.casefold()).strip("_")


def _refuse(name: str, why: str) -> NoReturn:
    refuse(
        "PS0818",
        f"the PrefLib file for {name} does not fit: {why}",
        "nothing was drawn and nothing was spent",
        help="name the spec's alternatives as the file does, or declare as many, in its order",
    )


# --- tables, lists and arrays ---------------------------------------------------------------------


BALLOT, COUNT, PARTY = "ballot", "count", "party"
"""Columns of the frames made here: a text, best first with spaces between; how often; whose."""
GENERIC = ("choice", "ranking")
"""Columns of ballots in any table."""
Find: TypeAlias = Callable[[str], int]
"""From a word of a ballot to the place of the alternative that it names, or NOT_ONE."""


def open_ballots(
    form: Form, source: Any, keeper: DataOwnerReport, texts: sources.TextFiles = sources.AS_USUAL
) -> tuple[pl.LazyFrame, Find]:
    """A lazy frame of the ballots, and what their words mean.

    The frame has texts in `ballot`, and where the source has them `count` and `party`, as they are.

    Args: source, a path (.csv, .csv.gz, .tsv, .parquet, .json, .npy, .soc, .soi, .toc, .toi), a table of named columns,
        an array or a list with a ballot in each row; texts, how text files are written: without a header they have
        one column, the ballots.
    Raises: DataError (PS0802 to PS0805, PS0818).
    """
    found = located(form.name, source, (*SUFFIXES, *PREFLIB))
    if isinstance(found, Path) and found.name.lower().endswith(PREFLIB):
        frame, numbers = read_preflib(form, found)
        return frame, lambda word: numbers.get(word, NOT_ONE)
    return _opened(form, found, keeper, texts), form.find


def _opened(form: Form, found: Any, keeper: DataOwnerReport, texts: sources.TextFiles) -> pl.LazyFrame:
    if isinstance(found, Path):
        lower = found.name.lower()
        if lower.endswith(".npy"):
            return _listed(form, sources.load_array(form.name, found), keeper)
        if not lower.endswith(".json"):
            return _columns(form, sources.load_frame(form.name, found, texts, (GENERIC[form.most > 1],)))
        found = sources.load_json(form.name, found)
    if isinstance(found, Mapping) and form.name in found and not _sized_alike(found):
        found = found[form.name]
    if sources.is_frame(found):
        return _columns(form, sources.load_frame(form.name, found))
    return _listed(form, found, keeper)


def holds_ballots(form: Form, source: Any) -> bool:
    """Whether a source is laid out as ballots and not as an input's entries: by its suffix and its columns alone."""
    found = located(form.name, source, (*SUFFIXES, *PREFLIB))
    if isinstance(found, Path):
        lower = found.name.lower()
        if lower.endswith(PREFLIB):
            return True
        if lower.endswith((".npy", ".json")):
            return False
        names = sources.column_names(form.name, sources.load_frame(form.name, found))
    elif sources.is_frame(found):
        names = sources.column_names(form.name, sources.load_frame(form.name, found))
    else:
        return False
    return any(name in GENERIC and name != form.name for name in names) or {form.name, COUNT} <= set(names)


def _sized_alike(found: Mapping[Any, Any]) -> bool:
    """Whether a mapping is a table: columns of one length."""
    lengths = {len(column) for column in found.values() if hasattr(column, "__len__") and not isinstance(column, str)}
    return len(found) > 1 and len(lengths) == 1


def _titles(form: Form) -> list[str]:
    """The columns that ballots may stand in, the first that there is."""
    wanted = (form.name, *(GENERIC if form.most == 1 else reversed(GENERIC)))
    return [name for name in wanted if name not in (COUNT, form.party)]


def _columns(form: Form, frame: pl.LazyFrame) -> pl.LazyFrame:
    """The columns of a table that matter, under the names used here."""
    import polars as pl

    schema = dict(zip(sources.column_names(form.name, frame), frame.collect_schema().dtypes(), strict=True))
    stripped = {name.strip(): name for name in schema}
    title = next((name for name in _titles(form) if name in stripped), None)
    if title is None:
        first = GENERIC[form.most > 1]
        refuse(
            "PS0804",
            f"the data for {form.name} have no column {first} or {form.name}",
            help=slip_of_header((first,), list(stripped))
            or slip_of_header((form.name,), list(stripped))
            or f"the first line of a file names its columns: {first}, or {first},count",
        )
    column = stripped[title]
    chosen = [_text(pl.col(column), schema[column]).alias(BALLOT)]
    plain = [stripped[name] for name in (COUNT, form.party) if name is not None and name in stripped]
    kind = schema[column]
    listed = isinstance(kind, pl.List | pl.Array)
    if isinstance(kind, pl.List | pl.Array):
        sources.readable(form.name, pl.LazyFrame(schema={column: kind.inner}), [column])
    # a column of another kind holds no ballots, whatever is in it
    sources.readable(form.name, frame, plain if listed else [column, *plain])
    if COUNT in stripped:
        chosen.append(pl.col(stripped[COUNT]).alias(COUNT))
    if form.party is not None and form.party in stripped:
        chosen.append(ids(pl.col(stripped[form.party])).alias(PARTY))
    return frame.select(chosen)


def _text(column: pl.Expr, kind: Any) -> pl.Expr:
    import polars as pl

    plain = kind != pl.Binary and not isinstance(kind, pl.List | pl.Array)
    return column.cast(pl.String, strict=False) if plain else sources.texts_of(column, kind)


def _listed(form: Form, found: Any, keeper: DataOwnerReport) -> pl.LazyFrame:
    """One ballot per row: a name, a list of names, or an object with the columns of a table."""
    import polars as pl

    if hasattr(found, "to_numpy") and not isinstance(found, np.ndarray):
        found = found.to_list() if hasattr(found, "to_list") else found.to_pylist()
    if isinstance(found, np.ndarray):
        if found.ndim > 1 and found.dtype.kind in "iu":
            numbers = pl.Series(found.reshape(len(found), -1).astype(np.int64)).cast(pl.List(pl.String))
            return pl.DataFrame({BALLOT: numbers.list.join(" ")}).lazy()
        found = found.tolist()
    if isinstance(found, str) or not isinstance(found, Iterable):
        refuse("PS0803", f"the data for {form.name} are of a kind that cannot be read", help="one ballot per row")
    return _each(form, list(found), keeper)


_UNNAMED = "\x1e"
"""Before the place of an item that names no voter: no canonical text has it."""


def _each(form: Form, items: list[Any], keeper: DataOwnerReport) -> pl.LazyFrame:
    """The ballot of each item, judged by itself: an object says it under the names that a table has for it.

    An object may also say whose it is; what does not is of a voter by itself. It stands for one ballot, whatever else
    it says: how many another counts for would be its own affair.
    """
    import polars as pl

    objects, names, party = [item if isinstance(item, Mapping) else {} for item in items], _titles(form), form.party
    ballots = [
        next((one[name] for name in names if name in one), None) if isinstance(item, Mapping) else item
        for one, item in zip(objects, items, strict=True)
    ]
    columns = {BALLOT: [sources.cell_text(cell) for cell in ballots]}
    if any(party in one for one in objects):
        named = (id_text(one[party]) if party in one else f"{_UNNAMED}{i}" for i, one in enumerate(objects))
        columns[PARTY] = list(named)
    counted = sum(COUNT in one for one in objects)
    if counted:
        said = f"{counted:,} of {len(items):,} objects say a count, and each stands for one ballot: give an object of"
        keeper.remark(form.name, f"{said} columns if rows are to stand for several")
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String)).lazy()


# --- ballots --------------------------------------------------------------------------------------


Codes: TypeAlias = NDArray[np.int16]
Marks: TypeAlias = NDArray[np.bool_]
MOST_OF_A_KIND = 2**32
"""Ballots that one row of counts can stand for."""
_ROW, _ROWS = "row", "rows"


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
    texts: sources.TextFiles = sources.AS_USUAL,
    keeper: DataOwnerReport | None = None,
) -> Ballots:
    """The ballots of an input: each by itself, and of a voter with several the first.

    Args: source, see `sources.open_ballots`; strict, refuse what a rule would have to be applied to; only, the one
        party whose ballot is read; roll, says whose ballots count; keeper, told how the ballots fit.
    Raises: DataError (PS0802 to PS0805, PS0809, PS0818); a row is named by its number, never by its ballot.
    """
    keeper = keeper or DataOwnerReport()
    found = located(form.name, source, (*SUFFIXES, *PREFLIB))

    def read(held: Any) -> Ballots:
        return _read(form, *open_ballots(form, held, keeper, texts), keeper, strict=strict, only=only, roll=roll)

    return sources.whatever_is_text(form.name, found, read)


def _read(
    form: Form,
    frame: pl.LazyFrame,
    find: Find,
    keeper: DataOwnerReport,
    *,
    strict: bool,
    only: str | None,
    roll: Roll | None,
) -> Ballots:
    import polars as pl

    names = sources.column_names(form.name, frame)
    frame = frame.with_row_index(_ROW)
    if roll is not None and PARTY not in names:
        _refuse_unnamed(form)
    if COUNT in names:
        frame = _with_counts(form, frame, keeper, least_one=PARTY in names)
    if PARTY in names:
        # rows without a party belong to nobody; who takes part in a round has to be named
        named = ~pl.col(PARTY).str.starts_with(_UNNAMED) if roll is not None else pl.col(PARTY).is_not_null()
        frame = frame.filter(pl.col(PARTY) == id_text(only) if only is not None else named)
        frame = _one_each(form, frame, keeper)
    if roll is not None:
        frame, names = _counted(form, frame, roll, counts=COUNT in names), [*names, COUNT]
    many = pl.col(COUNT).sum() if COUNT in names else pl.len().cast(pl.Int64)
    grouped = sources.collect(
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


def _tell(
    form: Form, keeper: DataOwnerReport, texts: pl.Series, counts: NDArray[np.int64], valid: NDArray[np.bool_]
) -> None:
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

    rows = sources.collect(form.name, frame)
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


def _with_counts(form: Form, frame: pl.LazyFrame, keeper: DataOwnerReport, *, least_one: bool) -> pl.LazyFrame:
    """With whole numbers as counts: what is none, from 0 to MOST_OF_A_KIND, counts as 0; of a voter at most one."""
    import polars as pl

    kind = frame.collect_schema()[COUNT]
    plain = pl.col(COUNT).str.strip_chars() if kind == pl.String else pl.col(COUNT)
    number = plain.cast(pl.Float64, strict=False)
    most = 1 if least_one else MOST_OF_A_KIND
    whole = ((number >= 0) & (number <= MOST_OF_A_KIND) & (number == number.floor())).fill_null(value=False)
    wrong, rows = sources.collect(form.name, frame.select((~whole).sum().alias(COUNT), pl.len())).row(0)
    if wrong:
        keeper.remark(form.name, f"{wrong:,} of {rows:,} counts are no whole numbers from 0, and count as 0")
    held = pl.when(whole).then(number).otherwise(0.0).cast(pl.Int64).clip(0, most)
    return frame.with_columns(held.alias(COUNT))


def _one_each(form: Form, frame: pl.LazyFrame, keeper: DataOwnerReport) -> pl.LazyFrame:
    """The first row of each voter: privacy is about one ballot of each."""
    import polars as pl

    different, rows = sources.collect(form.name, frame.select(pl.col(PARTY).n_unique(), pl.len().alias(_ROW))).row(0)
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
    tied = texts.str.contains("{", literal=True).fill_null(value=False).to_numpy()
    texts = clean_texts(texts.str.split("{").list.first() if tied.any() else texts)
    for name in form.spaced:
        texts = texts.str.replace_all(name, name.replace(" ", JOIN), literal=True)
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
    first = texts.str.extract(r"^(\S+)")
    codes = _codes(first, find)
    valid = codes != NOT_ONE
    return Parsed(codes[:, None], valid, valid & ~tied)


def _words(texts: pl.Series) -> pl.Series:
    """The words of each text, in lists."""
    return texts.fill_null("").str.split(" ")


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
