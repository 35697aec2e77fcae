"""By what data are recognised: for every column a sum of keyed hashes of its cells, in whatever order and file.

A cell is a number (as a double: 7, "7.0" and "007" are one), a moment (in microseconds) or, of anything else, its
canonical text; a missing one, or a word that says so, counts for nothing. It is hashed by XXH64 (Collet), which Spark
has as well, begun from a secret number. Of the 64 bits 8 choose one of 256 places; there 37 others are added up, modulo
2^64, and the cells are counted. So a column's sketch depends neither on the order of rows, on other columns and on
names nor on the library that holds it; sketches of parts of a column add up to that of the whole; and where few cells
differ, most places agree.

What the agreement of two columns says is reckoned in bits (`Sketch.bits`): with what chance as many cells, drawn anew
with the frequencies seen, fall into the places just as often. Whole numbers and moments that run in equal steps say
nothing: all data with as many rows may have them.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass, field
from privspec.execute.cells import canonical_text

if TYPE_CHECKING:
    import polars as pl

Hashes: TypeAlias = "NDArray[np.uint64]"
Whole: TypeAlias = "NDArray[np.int64]"
PLACES = 256
ADDED = 37
"""Bits of a hash that are added up: sums of 2^16 of them are exact in doubles."""
LAST_BYTES = 24
"""Of a text: where many begin alike, most end otherwise."""
BLOCK = 2**14
"""Cells that are hashed at once, so that they stay near the processor."""
WIDEST = 1024
"""Columns that are told apart; of a wider table all cells are one column."""
FAR = 2**40
"""Whole numbers nearer to zero are looked at whether they run in steps."""
FEW = 4096
"""Texts that are looked at to see what a column holds."""
WRAP = 2**64

# --- the hash -------------------------------------------------------------------------------------

_PRIMES = (
    *(11400714785074694791, 14029467366897019727, 1609587929392839161),
    *(9650029242287828579, 2870177450012600261),
)
_P1, _P2, _P3, _P4, _P5 = map(np.uint64, _PRIMES)


def _turned(words: Hashes, by: int) -> Hashes:
    """Rotated to the left, in their place."""
    high = words >> np.uint64(64 - by)
    words <<= np.uint64(by)
    words |= high
    return words


def _round(words: Hashes) -> Hashes:
    words = _turned(words * _P2, 31)
    words *= _P1
    return words


def _taken(hashes: Hashes, words: Hashes) -> Hashes:
    """With eight bytes more of each text."""
    words = _round(words)
    words ^= hashes
    _turned(words, 27)
    words *= _P1
    words += _P4
    return words


def _finished(hashes: Hashes) -> Hashes:
    for by, prime in ((33, _P2), (29, _P3)):
        hashes ^= hashes >> np.uint64(by)
        hashes *= prime
    hashes ^= hashes >> np.uint64(32)
    return hashes


def hash_words(words: Hashes, seed: int) -> Hashes:
    """XXH64 of eight bytes each (n,)."""
    with np.errstate(over="ignore"):
        return _finished(_taken(np.full(1, (seed + _PRIMES[4] + 8) % WRAP, np.uint64), words))


def hash_texts(data: NDArray[np.uint8], ends: Whole, seed: int) -> Hashes:
    """XXH64 of the last 24 bytes of texts that lie one behind the other: text i from byte ends[i] to ends[i + 1].

    What is shorter is filled up with zero bytes to a multiple of eight.
    """
    words = np.ndarray((ends[-1] + 1,), "<u8", np.append(data[: ends[-1]], np.zeros(8, np.uint8)), strides=(1,))
    left = np.minimum(np.diff(ends), LAST_BYTES)
    at = ends[1:] - left
    with np.errstate(over="ignore"):
        hashes = (left + 7).astype(np.uint64) // np.uint64(8) * np.uint64(8) + np.uint64((seed + _PRIMES[4]) % WRAP)
        while len(some := np.flatnonzero(left > 0)):
            word = words[at[some]] & _FULL[np.minimum(left[some], 8)]
            hashes[some] = _taken(hashes[some], word)
            at[some], left[some] = at[some] + 8, left[some] - 8
        return _finished(hashes)


_FULL = np.array([2 ** (8 * k) - 1 for k in range(9)], np.uint64)
"""What is left of a word of which so many bytes count."""


# --- what a cell is -------------------------------------------------------------------------------

MISSING = frozenset({"nan", "na", "n/a", "null", "none", "nat", "<na>"})
"""Words for what is not there, in small letters."""
ODD = r"(?i)^(?:nan|na|n/a|null|none|nat|<na>|true|false)$"
"""Words that are none."""
PLAIN = r"^[!-~]+(?: [!-~]+)*$"
"""Texts of which nothing changes but capital letters."""
MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ Tt][0-9]{2}:[0-9]{2}(?::[0-5][0-9](?:\.[0-9]{1,6})?)?(?:[Zz]|\+00:?00)?)?$"
LAST = "([0-9]{1,12})$"
"""The number that a name ends with."""
_MOMENT, _LAST = re.compile(MOMENT), re.compile(LAST)
_TRUTH = {"true": 1.0, "false": 0.0}
_ALIKE = (str, int)
"""Cells of these kinds that are equal are the same."""
EPOCH, TICK, SECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1), 10**6


def meaning(cell: Any) -> float | datetime | str | None:
    """A number, a moment (in UTC) or a text; None where nothing is."""
    text = canonical_text(cell)
    if text is None or text.lower() in MISSING:
        return None
    try:
        # Python takes 1_000 for a number
        return _TRUTH[text] if text in _TRUTH else float(text.replace("_", " _"))
    except ValueError:
        return _moment(text) or text


def _moment(text: str) -> datetime | None:
    if _MOMENT.match(text) is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


# --- sketches -------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class Sketch:
    """Of one column: how many cells there are at each place (256,), and their sums.

    steps: of how many cells the whole numbers, or seconds, were looked at: the least, the greatest, the sums of them
    and of their squares.
    """

    counts: Whole = field(default_factory=lambda: np.zeros(PLACES, np.int64))
    sums: Hashes = field(default_factory=lambda: np.zeros(PLACES, np.uint64))
    steps: tuple[int, int, int, int, int] = (0, FAR, -FAR, 0, 0)

    def add(self, hashes: Hashes, times: Whole | None = None) -> None:
        """These cells (n,), each so many times."""
        with np.errstate(over="ignore"):
            places = (hashes >> np.uint64(56)).astype(np.intp)
            parts = (hashes >> np.uint64(56 - ADDED)) & np.uint64(2**ADDED - 1)
            if times is None:
                self.counts += np.bincount(places, minlength=PLACES)
                self.sums += np.bincount(places, parts.astype(np.float64), PLACES).astype(np.uint64)
            else:
                np.add.at(self.counts, places, times)
                np.add.at(self.sums, places, parts * times.astype(np.uint64))

    @property
    def stepping(self) -> bool:
        """Whether all cells so far were whole numbers that are looked at: nothing else runs in steps."""
        return self.steps[0] == self.cells

    def look(self, whole: Whole, times: Whole | None = None) -> None:
        """At whole numbers (n,) nearer to zero than `FAR`, each so many times."""
        if len(whole):
            each = np.ones(1, np.int64) if times is None else times
            with np.errstate(over="ignore"):
                sums = int((whole * each).sum()), int((whole * whole * each).sum())
            count = len(whole) if times is None else int(times.sum())
            self.step(count, int(whole.min()), int(whole.max()), *sums)

    def join(self, other: Sketch) -> None:
        """With the cells of another part of the column."""
        with np.errstate(over="ignore"):
            self.counts += other.counts
            self.sums += other.sums
        self.step(*other.steps)

    def step(self, count: int, low: int, high: int, total: int, squares: int) -> None:
        """So many whole numbers, with these ends and sums."""
        n, least, most, some, square = self.steps
        sums = (some + total) % WRAP, (square + squares) % WRAP
        self.steps = (n + count, min(least, low), max(most, high), *sums)

    @property
    def cells(self) -> int:
        return int(self.counts.sum())

    def digest(self) -> bytes:
        """What is the same for the same cells, and for no others."""
        return hashlib.sha256(self.counts.astype("<i8").tobytes() + self.sums.astype("<u8").tobytes()).digest()

    @property
    def bits(self) -> float:
        """The logarithm (base 2) of how unlikely other data agree with it, at least; 0 where nothing says so.

        That as many cells with these frequencies fall into the places just as often, by the law of many draws. If all
        counts are multiples of one number, rows come so often by design.
        """
        held = self.counts[self.counts > 0]
        if len(held) < 2:
            return 0.0
        often = int(np.gcd.reduce(held))
        counts = [int(one) // often for one in held]
        total = sum(counts)
        chance = math.lgamma(total + 1) + sum(k * math.log(k / total) - math.lgamma(k + 1) for k in counts)
        return min(-chance, self._of_steps(often, total)) / math.log(2)

    @property
    def scattered(self) -> bool:
        """Whether it is more than numbers in steps with some left out: in those, most parts of a column may agree."""
        held = self.counts[self.counts > 0]
        often = int(np.gcd.reduce(held)) if len(held) else 0
        return often > 0 and math.isinf(self._of_steps(often, self.cells // often))

    def _of_steps(self, often: int, total: int) -> float:
        """The logarithm of how many sets of whole numbers there are beside this one, where it is almost all between."""
        looked, low, high, sums, squares = self.steps
        if looked != often * total or total < 2:
            return math.inf
        width, rest = divmod(high - low, total - 1)
        run = often * (low * total + width * (total - 1) * total // 2)
        square = often * (
            total * low * low
            + low * width * total * (total - 1)
            + width * width * (total - 1) * total * (2 * total - 1) // 6
        )
        if not rest and (run - sums) % WRAP == 0 == (square - squares) % WRAP:
            return 0.0
        span = high - low + 1
        if not total <= span <= 2 * total:
            return math.inf
        return math.lgamma(span + 1) - math.lgamma(total + 1) - math.lgamma(span - total + 1)


@dataclass(frozen=True, slots=True)
class Seeds:
    """Where the hashes of numbers, moments and texts begin: at those of a secret number each, as Spark hashes several.

    secrets: whole numbers of 64 bits with a sign.
    """

    secrets: tuple[int, int, int]
    numbers: int
    moments: int
    texts: int

    @classmethod
    def of(cls, key: bytes) -> Seeds:
        """Of any key, from which they follow in one direction only."""
        drawn = np.frombuffer(hashlib.sha256(b"cells" + key).digest(), "<i8")[:3]
        first, second, third = drawn.tolist()
        return cls((first, second, third), *hash_words(drawn.view(np.uint64), 42).tolist())


COUNT = "count"
"""A column that says how many records a row stands for."""
REST = "\0"
"""All columns that are too many to be told apart."""


@dataclass(eq=False, slots=True)
class Sketches:
    """Of a table: of each column by its name; of rows that stand for several records, also of their cells so often."""

    seeds: Seeds
    columns: dict[str, Sketch] = field(default_factory=dict)
    weighted: dict[str, Sketch] = field(default_factory=dict)

    def column(self, name: str) -> Sketch:
        """The sketch of a column, made if there is none."""
        if name not in self.columns and len(self.columns) >= WIDEST:
            name = REST
        return self.columns.setdefault(name, Sketch())

    @property
    def wide(self) -> bool:
        """Whether it has so many columns that only all of its cells say something."""
        return REST in self.columns

    def join(self, other: Sketches) -> None:
        """With the rows of another part of the table."""
        for mine, parts in ((self.columns, other.columns), (self.weighted, other.weighted)):
            for name, sketch in parts.items():
                mine.setdefault(name, Sketch()).join(sketch)

    def rows(self, columns: Mapping[str, Any]) -> None:
        """Some rows: of each column its cells."""
        for name, cells in columns.items():
            self.add(name, cells)
        if COUNT in columns and len(columns) > 1:
            often = [meaning(cell) for cell in columns[COUNT]]
            sure = [int(n) if isinstance(n, float) and 0 <= n < FAR else 0 for n in often]
            own = Sketches(self.seeds)
            # a name that a record has twice, at two depths, is no column of the same rows
            for name in (one for one in columns if one != COUNT and len(columns[one]) == len(sure)):
                own.add(name, columns[name], np.array(sure, np.int64))
            self.join(Sketches(self.seeds, {}, own.columns))

    def add(self, name: str, cells: Any, times: Whole | None = None) -> None:
        """Cells of a column, each so many times: an array, a series of polars, or objects of any kind."""
        sketch = self.column(name)
        if hasattr(cells, "to_physical"):
            self._series(name, cells, times)
        elif isinstance(cells, np.ndarray) and (cells.dtype.kind in "biu" or cells.dtype == np.float64):
            self._numbers(sketch, cells, times)
        else:
            self._objects(name, list(cells), times)

    def _numbers(self, sketch: Sketch, values: NDArray[Any], times: Whole | None) -> None:
        for some in _blocks(len(values)):
            own, each = values[some], _part(times, some)
            doubles = own.astype(np.float64) + 0.0
            missing = np.isnan(doubles)
            if missing.any():
                doubles, each = doubles[~missing], _part(each, ~missing)
            stepping = sketch.stepping
            sketch.add(hash_words(doubles.view(np.uint64), self.seeds.numbers), each)
            if stepping and own.dtype.kind == "i" and own.min() > -FAR and own.max() < FAR:
                sketch.look(own.astype(np.int64), each)
            elif stepping:
                whole = (np.abs(doubles) < FAR) & (doubles == np.floor(doubles))
                sketch.look(doubles[whole].astype(np.int64), _part(each, whole))

    def _moments(self, sketch: Sketch, ticks: Whole, times: Whole | None) -> None:
        """Microseconds since 1970."""
        for some in _blocks(len(ticks)):
            own, each, stepping = ticks[some], _part(times, some), sketch.stepping
            sketch.add(hash_words(own.view(np.uint64), self.seeds.moments), each)
            if stepping:
                # by a fixed number a quotient is several times as fast as a remainder
                seconds = own // SECOND
                whole = (seconds * SECOND == own) & (np.abs(own) < FAR * SECOND)
                sketch.look(seconds[whole], _part(each, whole))

    def _texts(self, sketch: Sketch, data: NDArray[np.uint8], ends: Whole, times: Whole | None) -> None:
        """One behind the other in UTF-8."""
        for some in _blocks(len(ends) - 1):
            own = ends[some.start : some.stop + 1]
            hashes = hash_texts(data[own[0] : own[-1]], own - own[0], self.seeds.texts)
            sketch.add(hashes, _part(times, some))

    def _objects(self, name: str, cells: Sequence[Any], times: Whole | None) -> None:
        """Cells that are equal are looked at once; many texts, or numbers, are looked at together."""
        kinds, sketch = set(map(type, cells)) - {type(None)}, self.column(name)
        if kinds <= {float}:
            # nothing is not a number
            self._numbers(sketch, np.array(cells, np.float64), times)
            return
        if kinds == {str} and len(cells) > FEW and (series := _together(cells)) is not None:
            self._series(name, series, times)
        else:
            self._one_by_one(sketch, cells, times)

    def _one_by_one(self, sketch: Sketch, cells: Iterable[Any], times: Whole | None) -> None:
        same = Counter[Any]()
        for cell, often in zip(cells, repeat(1) if times is None else times.tolist(), strict=False):
            same[cell if type(cell) in _ALIKE else meaning(cell)] += often
        found: dict[type, dict[Any, int]] = {float: {}, datetime: {}, str: {}}
        for cell, often in same.items():
            meant = meaning(cell)
            if meant is not None:
                own = found[type(meant)]
                own[meant] = own.get(meant, 0) + often
        each = {kind: np.array([*counted.values()], np.int64) for kind, counted in found.items()}
        self._numbers(sketch, np.array([*found[float]], np.float64), each[float])
        ticks = [(moment - EPOCH) // TICK for moment in found[datetime]]
        self._moments(sketch, np.array(ticks, np.int64), each[datetime])
        texts = [text.encode("utf-8", "replace") for text in found[str]]
        ends = np.cumsum([0, *map(len, texts)])
        stepping = sketch.stepping
        self._texts(sketch, np.frombuffer(b"".join(texts), np.uint8), ends, each[str])
        if stepping:
            last = np.array([int(match[1]) if (match := _LAST.search(text)) else -1 for text in found[str]], np.int64)
            sketch.look(last[last >= 0], each[str][last >= 0])

    # --- series of polars

    def _series(self, name: str, column: pl.Series, times: Whole | None) -> None:
        import polars as pl

        kind, sketch = column.dtype, self.column(name)
        if isinstance(kind, pl.List | pl.Array):
            lists = column if isinstance(kind, pl.List) else column.arr.to_list()
            for place in range(min(max(lists.list.len().drop_nulls(), default=0), WIDEST)):
                self._series(f"{name}_{place + 1}", lists.list.get(place, null_on_oob=True), times)
            return
        if isinstance(kind, pl.Struct):
            for one in kind.fields:
                self._series(f"{name}.{one.name}", column.struct.field(one.name), times)
            return
        if kind == pl.Float32 or kind.is_decimal():
            # 0.1 is 0.1, however many bits hold it
            column = column.cast(pl.String)
        if kind.is_numeric() or kind == pl.Boolean:
            # nothing is not a number
            self._numbers(sketch, column.cast(pl.Float64).to_numpy(), times)
            return
        if column.null_count():
            known = column.is_not_null()
            column, times = column.filter(known), _part(times, known.to_numpy())
        if kind in (pl.Date, pl.Datetime):
            ticks = column.cast(pl.Datetime("us"), strict=False).dt.replace_time_zone(None).to_physical()
            self._moments(sketch, ticks.drop_nulls().to_numpy(), times)
        elif kind in (pl.String, pl.Categorical, pl.Enum):
            self._strings(sketch, column.cast(pl.String), times)
        else:
            self._objects(name, column.to_list(), times)

    def _strings(self, sketch: Sketch, column: pl.Series, times: Whole | None) -> None:
        """Texts, none of them missing."""
        import polars as pl

        if times is None and 4 * column.head(FEW).n_unique() <= min(len(column), FEW):
            counted = column.alias("cell").value_counts(name="times")
            column, times = counted["cell"], counted["times"].cast(pl.Int64).to_numpy()
        numbers = column.cast(pl.Float64, strict=False).to_numpy()
        self._numbers(sketch, numbers, times)
        others = np.isnan(numbers)
        if not others.any():
            return
        if not others.all():
            column, times = column.filter(pl.Series(others)), _part(times, others)
        moment = column.str.contains(MOMENT)
        if moment.any():
            rest, often = self._parsed(sketch, column.filter(moment), _part(times, moment.to_numpy()))
            self._one_by_one(sketch, rest.to_list(), often)
            column, times = column.filter(~moment), _part(times, ~moment.to_numpy())
        plain = column.str.contains(PLAIN) & ~column.str.contains(ODD)
        if not plain.all():
            self._one_by_one(sketch, column.filter(~plain).to_list(), _part(times, ~plain.to_numpy()))
            column, times = column.filter(plain), _part(times, plain.to_numpy())
        if len(column):
            data, ends = bytes_of(column)
            stepping = sketch.stepping
            self._texts(sketch, data, ends, times)
            if stepping and column.head(FEW).str.contains(LAST).any():
                last = column.str.extract(LAST)
                sketch.look(last.drop_nulls().cast(pl.Int64).to_numpy(), _part(times, last.is_not_null().to_numpy()))

    def _parsed(self, sketch: Sketch, texts: pl.Series, times: Whole | None) -> tuple[pl.Series, Whole | None]:
        """Those that are no moments after all."""
        for plain in (lambda column: column, _plain_moments):
            ticks = plain(texts).str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False).to_physical()
            known = ticks.is_not_null()
            self._moments(sketch, ticks.filter(known).to_numpy(), _part(times, known.to_numpy()))
            texts, times = texts.filter(~known), _part(times, ~known.to_numpy())
        return texts, times


def bytes_of(texts: pl.Series) -> tuple[NDArray[np.uint8], Whole]:
    """Texts one behind the other in UTF-8, and where each begins and the last ends."""
    array = texts.rechunk().to_arrow()
    _, ends, data = array.buffers()
    whole = np.frombuffer(ends, np.int64)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8), whole


def _plain_moments(texts: pl.Series) -> pl.Series:
    """With all their parts, and nothing else."""
    texts = texts.str.replace("T", " ", literal=True).str.replace(r"(?:Z|\+00:?00)$", "")
    return texts.str.replace("^(.{10})$", "${1} 00:00").str.replace("^(.{16})$", "${1}:00")


def _together(texts: Sequence[str | None]) -> pl.Series | None:
    import polars as pl

    try:
        return pl.Series(texts, dtype=pl.String)
    except UnicodeEncodeError:
        return None


def _blocks(length: int) -> Iterator[slice]:
    return (slice(begin, min(begin + BLOCK, length)) for begin in range(0, length, BLOCK))


def _part(times: Whole | None, some: Any) -> Whole | None:
    return None if times is None else times[some]
