"""What is asked of a table of records: counts by keys and sums of clipped numbers in whole steps; no row is given back.

Every engine (polars here, a database in `warehouse`) answers with groups of records that this plan cannot tell apart:
- of a column of words, and of whole numbers in text, the cell as it stands is a key;
- of a column of whole numbers the key is the number, all numbers beyond an end as one, and what lies between two whole
  numbers as a quarter beside the nearest;
- of a column of numbers that only cuts tell apart, the key is how many cuts lie below;
- a column of numbers is added up: x becomes floor((min(max(x, low), high) - low) * factor + 1/2) steps, in doubles of
  64 bits operation by operation, at most `steps`, where factor = steps / (high - low) is rounded once, here. Whether x
  is missing (nothing, or not a number) is a key, and it counts as no steps.
So a record's steps are a function of its own cells alone, whole numbers from 0 to `steps` whatever doubles do: that is
all that a guarantee rests on; they are within 1/2 step and 2^-51 of x's share of what is exact. Sums are of whole
numbers, so neither the order of rows nor the number of threads nor the engine changes them.

Where several columns are added up, a record's steps are shared among the 2^c combinations of their ends as `masses`
says, for which engines give the sum of the least steps of every set of columns.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, partial, reduce
from itertools import combinations
from math import floor, nextafter
from operator import mul
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import astuple, dataclass, replace
from privspec.execute.cells import Clock, id_text
from privspec.execute.keeper import THOUSAND
from privspec.execute.reading import number
from privspec.execute.sources import collect, frames_of, numbers_at_once, readable
from privspec.kernel.derived import COMBINED, Derived, Formula, SourceColumn, cut_at

if TYPE_CHECKING:
    import polars as pl

    from privspec.kernel.core.linear import Column

NO_PLACE = -1
"""The code of a value that is missing or not in its attribute's domain."""
MISSING = "missing"
"""The word that an empty cell says where a column has it."""
BATCH = 2**18
"""Rows of text, or groups, that are held at once."""


def below_of(cuts: Iterable[str]) -> tuple[float, ...]:
    """For each cut the least number that does not lie before it: 12.1 is 12.1, rounded as data are to 64 bits."""
    told = ((float(value), up_to) for value, up_to in map(cut_at, cuts))
    return tuple(nextafter(value, np.inf) if up_to else value for value, up_to in told)


@dataclass(frozen=True)
class Attribute:
    """One column of a table: its admissible values in order, integers lower..upper, or numbers between two `ends`.

    `cuts`, as in "< 18": its cells hold what lies before each, and the rest.
    """

    name: str
    values: tuple[str, ...] = ()
    lower: int = 0
    upper: int = -1
    shared: bool = False
    cuts: tuple[str, ...] = ()
    between: ClassVar[bool] = True
    """Of whole numbers: whether all numbers that are as near to one of them may stand for each other."""

    @classmethod
    def of(cls, column: Column) -> Attribute:
        """As the kernel reads it."""
        if column.lower is None or column.upper is None:
            return cls(column.name, column.values, shared=column.shared, cuts=column.cuts)
        return cls(column.name, (), column.lower, column.upper, cuts=column.cuts)

    @classmethod
    def source(cls, column: SourceColumn) -> Attribute:
        """A column that others follow from."""
        if column.lower is None or column.upper is None:
            return cls(column.name, column.values, shared=column.between)
        return cls(column.name, (), column.lower, column.upper)

    @property
    def size(self) -> int:
        return len(self.cuts) + 1 if self.cuts else len(self.values) or self.upper - self.lower + 1

    @cached_property
    def clock(self) -> Clock | None:
        """Where its values are days or hours: moments are read as the one that they lie in."""
        return Clock.of(self.values)

    @property
    def measured(self) -> bool:
        """Whether its cells are read as numbers between two ends: added up, or cut."""
        return self.shared or bool(self.cuts and self.values)

    @cached_property
    def below(self) -> tuple[float, ...]:
        """For each cut the least number that does not lie before it."""
        return below_of(self.cuts)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Of numbers that are added up."""
        low, high = map(Fraction, self.values)
        return float(low), float(high)

    def factor(self, steps: int) -> float:
        """Steps per unit of numbers that are added up."""
        low, high = map(Fraction, self.values)
        return float(min(steps / (high - low), Fraction(2) ** 1000))

    def steps(self, value: Any, steps: int) -> int:
        """What a number counts as; none for what is no number."""
        quantity, (low, high) = number(value), self.ends
        if quantity != quantity:
            return 0
        return min(floor((min(max(quantity, low), high) - low) * self.factor(steps) + 0.5), steps)

    @property
    def beyond(self) -> tuple[float, float]:
        """Numbers that stand for all those below and above a range of whole numbers."""
        low, high = float(self.lower), float(self.upper)
        return min(low - 1, nextafter(low, -np.inf)), max(high + 1, nextafter(high, np.inf))

    def lookup(self) -> Callable[[Any], tuple[int, bool]]:
        """From a key as it was read to its place in the domain, and whether it fits exactly."""
        if self.measured:
            return lambda place: (NO_PLACE if place is None else place, place is not None)
        if not self.values:
            return self._nearest
        words = {text: place for place, text in enumerate(self.values)}
        if (clock := self.clock) is not None:
            return lambda value: _found(words, {}, clock.text(value))
        found = ((number(_decimal(text)), place) for text, place in words.items())
        quantities = {quantity: place for quantity, place in found if quantity == quantity}
        return partial(_found, {id_text(text) or text: place for text, place in words.items()} | words, quantities)

    def _nearest(self, value: Any) -> tuple[int, bool]:
        quantity = number(value)
        if quantity != quantity:
            return NO_PLACE, False
        nearest = floor(min(max(quantity, self.lower), self.upper) + 0.5)
        place = bisect_right(self.below, nearest) if self.cuts else nearest - self.lower
        return place, nearest == quantity


def _found(words: Mapping[str, int], quantities: Mapping[float, int], value: Any) -> tuple[int, bool]:
    text, place = id_text(value), words.get(MISSING, NO_PLACE)
    if text is not None:
        place = words.get(text, words.get(str(value), quantities.get(number(value), NO_PLACE)))
    return place, place != NO_PLACE


def _decimal(text: str) -> Any:
    """A number that may be written as a fraction."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


class OnMisfit(Protocol):
    """Who hears of cells, in the column at some place, that are added up and are no numbers, and how often each is."""

    def __call__(self, place: int, cell: Any, times: int = 1) -> None: ...


@dataclass(frozen=True, slots=True)
class Tally:
    """Of the numbers of a column: how many lie below and above its range, are not 0, and are small beside its end."""

    below: int
    above: int
    nonzero: int
    small: int

    @classmethod
    def joined(cls, some: Iterable[Tally]) -> Tally:
        counts = [astuple(one) for one in some]
        return cls(*(sum(count[j] for count in counts) for j in range(4)))


@dataclass(frozen=True, slots=True)
class Coded:
    """A column: cells that occur in it, and some that may not, and which of them each of its cells is (n,)."""

    values: Sequence[Any]
    places: NDArray[Any]

    @classmethod
    def of(cls, cells: Sequence[Any]) -> Coded:
        """A list of cells of any kinds."""
        numbers = {value: place for place, value in enumerate(dict.fromkeys(cells))}
        return cls(list(numbers), np.fromiter(map(numbers.__getitem__, cells), dtype=np.int64, count=len(cells)))

    @classmethod
    def of_series(cls, column: pl.Series) -> Coded:
        """Days become texts; few operations a cell where whole numbers or days lie close together."""
        import polars as pl

        days, whole = column.dtype == pl.Date, column.to_physical()
        if whole.dtype.is_integer() and len(whole) and not whole.null_count():
            low, high = int(whole.min()), int(whole.max())  # type: ignore[arg-type]
            if high - low < CLOSE and -(2**62) < low < 2**62:
                values = pl.Series(range(low, high + 1), dtype=whole.dtype)
                texts = values.cast(pl.Date).cast(pl.String) if days else values
                return cls(texts.to_list(), whole.to_numpy().astype(np.int64) - low)
        values = column.unique()
        places = column.replace_strict(values, np.arange(len(values)), return_dtype=pl.Int64)
        return cls((values.cast(pl.String) if days else values).to_list(), places.to_numpy())

    def counted(self, records: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many records each of the different cells has, where each cell is of so many; all below 2^53."""
        alone = (records == 1).all()
        return np.bincount(self.places, None if alone else records, len(self.values)).astype(np.int64)

    @property
    def cells(self) -> list[Any]:
        return [self.values[place] for place in self.places.tolist()]


CLOSE = 2**10
"""Between whole numbers that are looked up by their distance from the least."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of records: a key for each attribute (of numbers: whether it is missing), and how many records they are.

    sums: for each of `Statistic.sets`, the sum over a group's records of the least of their steps; tallies: of each
    column that is read as numbers, over all these groups; people: whose records they are, where read by person, some
    after others, as `readable` has them: then each group is one record.
    """

    keys: tuple[Coded, ...]
    records: NDArray[np.int64]
    sums: tuple[NDArray[Any], ...]
    tallies: tuple[Tally, ...]
    people: tuple[pl.Series, ...] = ()

    @classmethod
    def joined(cls, asked: Statistic, some: Iterable[Groups]) -> Groups:
        """All of them at once."""
        parts = list(some)
        if len(parts) == 1:
            return parts[0]
        keys = []
        for i in range(len(asked.attributes)):
            each = [part.keys[i] for part in parts]
            before = np.cumsum([0, *(len(one.values) for one in each)])
            places = [one.places + first for one, first in zip(each, before, strict=False)]
            keys.append(Coded([value for one in each for value in one.values], _in_a_row(places)))
        return cls(
            tuple(keys),
            _in_a_row([part.records for part in parts]),
            tuple(_in_a_row([part.sums[j] for part in parts]) for j in range(len(asked.sets))),
            tuple(Tally.joined(part.tallies[i] for part in parts) for i in range(len(asked.numbers))),
            tuple(one for part in parts for one in part.people),
        )

    def only(self, some: NDArray[np.bool_]) -> Groups:
        """The same without the records of the other groups."""
        sums = tuple(np.where(some, column, 0) for column in self.sums)
        return replace(self, records=np.where(some, self.records, 0), sums=sums)


def _in_a_row(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Statistic:
    """The plan: these attributes of the records of the input `name`, numbers in so many steps.

    person: the column that says whose a record is; then records of a group are one person's, and all alike. derived:
    columns that follow from others: what does is read as if it stood in the data.
    """

    name: str
    attributes: tuple[Attribute, ...]
    steps: int
    person: str | None = None
    derived: tuple[Derived, ...] = ()

    @property
    def columns(self) -> list[str]:
        """All that are read."""
        names = dict.fromkeys(name for one in self.attributes for name in self.sources(one.name))
        return [*([] if self.person is None else [self.person]), *names]

    def sources(self, name: str) -> tuple[str, ...]:
        """The columns of the data that a column is, or follows from."""
        found = self.of(name)
        return (name,) if found is None else tuple(one.name for one in found.columns)

    def of(self, name: str) -> Derived | None:
        """How a column follows from others; None of one of the data."""
        return next((one for one in self.derived if one.name == name), None)

    @cached_property
    def computed(self) -> tuple[Derived, ...]:
        """The columns that an engine computes."""
        names = {one.name for one in self.attributes}
        return tuple(one for one in self.derived if one.formula is not None and one.name in names)

    @cached_property
    def read(self) -> Statistic:
        """What an engine is asked: in place of words that follow from values, these values."""
        attributes = []
        for one in self.attributes:
            found = self.of(one.name)
            tabled = found is not None and found.formula is None
            attributes.append(Attribute.source(found.columns[0]) if found is not None and tabled else one)
        return replace(self, attributes=tuple(attributes), derived=self.computed)

    def followed(self, groups: Groups) -> Groups:
        """Groups that an engine gave, with the words that follow from values."""
        keys = list(groups.keys)
        for i, (one, engine) in enumerate(zip(self.attributes, self.read.attributes, strict=True)):
            found = self.of(one.name)
            if found is not None and found.formula is None:
                place, labels = engine.lookup(), found.labels
                known = ((value, place(value)[0]) for value in keys[i].values)
                # what is none of the values stays what it is, but for a text that says a word which follows
                words = [
                    labels[found.places[at]] if at != NO_PLACE else None if id_text(value) in labels else value
                    for value, at in known
                ]
                keys[i] = Coded(words, keys[i].places)
        return replace(groups, keys=tuple(keys))

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The places of the columns whose cells are read as numbers, whatever they are written as."""
        computed = {one.name for one in self.computed}
        return tuple(i for i, one in enumerate(self.attributes) if one.measured or one.name in computed)

    @property
    def clocks(self) -> dict[str, Clock]:
        """The columns of the data that hold days or hours."""
        return {one.name: one.clock for one in self.read.attributes if one.clock is not None}

    @cached_property
    def quantities(self) -> Mapping[str, int]:
        """The columns of the data whose cells are read as numbers, each with the place of the first that it is for."""
        found: dict[str, int] = {}
        for i in self.numbers:
            for name in self.sources(self.attributes[i].name):
                found.setdefault(name, i)
        return found

    @cached_property
    def added(self) -> tuple[int, ...]:
        """The places of the columns that are added up."""
        return tuple(i for i, one in enumerate(self.attributes) if one.shared)

    @cached_property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """All sets of them but the empty one."""
        return tuple(some for size in range(len(self.added)) for some in combinations(self.added, size + 1))

    def masses(
        self, records: NDArray[np.int64], sums: Sequence[NDArray[Any]]
    ) -> Iterator[tuple[tuple[int, ...], NDArray[Any]]]:
        """For each set of added columns, the steps of the records (groups,) that stand at the high ends of just these.

        A record with steps p stands there for those t of 0..steps - 1 for which just these columns have p > t: so in
        at most one combination of ends more than it has such columns.
        """
        if not self.sets:
            large = int(records.sum()) * self.steps >= 2**63
            yield (), records.astype(object if large else np.int64) * self.steps
            return
        # whole numbers of 64 bits where all of them together are
        small = int(records.sum()) * self.steps < 2**62
        least = dict(zip(self.sets, (part.astype(np.int64 if small else object) for part in sums), strict=True))
        least[()] = records.astype(np.int64 if small else object) * self.steps
        for some in least:
            larger = (other for other in least if set(some) <= set(other))
            yield some, sum((-1) ** (len(other) - len(some)) * least[other] for other in larger)


# --- polars ---------------------------------------------------------------------------------------


def groups_of_frame(asked: Statistic, frame: pl.LazyFrame, told: OnMisfit, *, small: bool = False) -> Iterator[Groups]:
    """The groups of a frame; where numbers are text, or records are persons', those of some rows after others.

    Args: small, whether it has few rows, that may be held at once.
    Raises: DataError (PS0803).
    """
    import polars as pl

    names = asked.columns
    people = [names.pop(0)] if asked.person is not None else []
    plain = readable(asked.name, frame, names, people, asked.clocks)
    schema = plain.collect_schema()
    texts = {name: place for name, place in asked.quantities.items() if schema[name] == pl.String}
    for part in frames_of(asked.name, plain, BATCH) if texts or (people and not small) else (plain,):
        numbers = part.lazy()
        for name, place in texts.items():

            def entry(cell: Any, place: int = place) -> float:
                value = number(cell)
                if value != value:
                    told(place, cell)
                return value

            column = collect(asked.name, part.lazy().select(name))[name]
            numbers = numbers.with_columns(pl.Series(quantity(name), numbers_at_once(column, entry)))
        for found in collect(asked.name, _keyed(asked, numbers)).iter_slices(BATCH):
            for i in asked.numbers:
                none = found[f"key_{i}"] if asked.attributes[i].shared else found[f"key_{i}"].is_null()
                missing = int(found["records"].filter(none).sum())
                if missing and not texts.keys() & {*asked.sources(asked.attributes[i].name)}:
                    told(i, None, missing)
            yield _groups(asked, found)


def groups_of_file(asked: Statistic, frame: pl.LazyFrame, told: OnMisfit) -> Iterator[Groups]:
    """The same of a file of columns of texts or numbers: what is wrong with it is said before the first group."""
    import polars as pl

    schema = frame.collect_schema()
    texts = [name for name in asked.quantities if schema[name] == pl.String]
    if texts:
        collect(asked.name, frame.select(pl.col(texts).null_count()))
    yield from groups_of_frame(asked, frame, told)


def quantity(name: str) -> str:
    """What a column of texts is called once its cells are read as numbers: its words may be counted as well."""
    return f"number of {name}"


def beyond(name: str) -> str:
    """What is called whether something that a column follows from lies beyond its ends."""
    return f"beyond {name}"


def _number(schema: Mapping[str, object], name: str) -> pl.Expr:
    import polars as pl

    read = quantity(name)
    return pl.col(read if read in schema else name).cast(pl.Float64, strict=False).fill_nan(None)


def computed_in_frame(computed: Iterable[Derived], frame: pl.LazyFrame) -> pl.LazyFrame:
    """A frame with the columns that follow from numbers, where none of these is missing."""
    import polars as pl

    schema, columns = frame.collect_schema(), list[pl.Expr]()
    for one in computed:
        assert one.formula is not None
        known = {source.name: _number(schema, source.name) for source in one.columns}
        inside, outside = {}, []
        for source in one.columns:
            low, high = map(float, source.ends)
            x = known[source.name].clip(low, high)
            inside[source.name] = x if source.between else (x + 0.5).floor().clip(low, high)
            outside.append(known[source.name].is_between(low, high).not_())
        there = pl.all_horizontal([x.is_not_null() for x in known.values()])
        found = _computed(one.formula, inside)
        if one.cuts:
            place = pl.sum_horizontal([(found >= value).cast(pl.Int64) for value in below_of(one.cuts)])
            found = place.replace_strict(dict(enumerate(one.labels)), return_dtype=pl.String)
        columns += [
            pl.when(there).then(found).otherwise(None).alias(one.name),
            (there & pl.any_horizontal(outside)).fill_null(value=False).alias(beyond(one.name)),
        ]
    return frame.with_columns(columns)


def _computed(formula: Formula, columns: Mapping[str, pl.Expr]) -> pl.Expr:
    import polars as pl

    signs = COMBINED | {
        "min": lambda *both: pl.min_horizontal(both),
        "max": lambda *both: pl.max_horizontal(both),
    }
    found: pl.Expr = formula.fold(
        columns.__getitem__,
        lambda number: pl.lit(float(number), dtype=pl.Float64),
        lambda sign, left, right: signs[sign](left, right),
        lambda base, exponent, size: reduce(mul, [base.abs() if size else base] * exponent),
    )
    return found


def _keyed(asked: Statistic, frame: pl.LazyFrame) -> pl.LazyFrame:
    import polars as pl

    frame = computed_in_frame(asked.computed, frame)
    schema, chosen, found = frame.collect_schema(), [], [pl.len().alias("records")]
    for i, one in enumerate(asked.attributes):
        column, outside = pl.col(one.name), beyond(one.name)
        if outside in schema:
            chosen.append(pl.col(outside).alias(f"beyond_{i}"))
        if one.measured:
            x = _number(schema, one.name)
            low, high = one.ends
            chosen += [(x.is_null() if one.shared else _side(one, x)).alias(f"key_{i}"), x.alias(f"x_{i}")]
            if one.shared:
                steps = ((x.clip(low, high) - low) * one.factor(asked.steps) + 0.5).floor()
                steps = steps.clip(0.0, float(asked.steps)).cast(pl.Int64).fill_null(0)
                chosen.append(steps.alias(f"steps_{i}"))
            known = pl.col(f"x_{i}")
            nonzero, edge = known != 0.0, high / THOUSAND
            tests = [known < low, known > high, nonzero, nonzero & (known.abs() <= edge)]
        elif one.values or not schema[one.name].is_numeric():
            # zero has one text, whichever of its two signs stands there
            plain = pl.when(column == 0.0).then(0.0).otherwise(column) if schema[one.name].is_float() else column
            chosen.append(plain.alias(f"key_{i}"))
        else:
            chosen.append(_key(one, column.cast(pl.Float64).fill_nan(None)).alias(f"key_{i}"))
        if i in asked.numbers:
            if outside in schema:
                tests = [pl.col(f"beyond_{i}"), *[pl.lit(value=False)] * 3]
            found += [test.alias(f"tally_{i}_{j}") for j, test in enumerate(tests)]
    sums = {f"sum_{j}": pl.min_horizontal([pl.col(f"steps_{i}") for i in some]) for j, some in enumerate(asked.sets)}
    if asked.person is not None:
        # each record by itself
        each = [pl.lit(1, dtype=pl.Int64).alias("records"), *(test.cast(pl.Int64) for test in found[1:])]
        own = frame.select(pl.col(asked.person).alias("person"), *chosen)
        return own.with_columns(*each, *(least.alias(name) for name, least in sums.items()))
    keys = [f"key_{i}" for i in range(len(asked.attributes))]
    totals = (least.cast(pl.Int128).sum().alias(name) for name, least in sums.items())
    found = [found[0], *(test.sum() for test in found[1:])]
    return frame.select(chosen).group_by(keys).agg(*found, *totals)


def _side(one: Attribute, x: pl.Expr) -> pl.Expr:
    """How many cuts lie below, nothing where a number is missing."""
    import polars as pl

    after = [pl.when(x >= value).then(1).otherwise(0) for value in one.below]
    return pl.when(x.is_null()).then(None).otherwise(pl.sum_horizontal(after))


def _key(one: Attribute, x: pl.Expr) -> pl.Expr:
    import polars as pl

    below, above = one.beyond
    ends = pl.when(x < one.lower).then(below).when(x > one.upper).then(above)
    if not one.between:
        return ends.otherwise(x)
    nearest = (x + 0.5).floor()
    between = pl.when(nearest >= one.upper).then(one.upper - 0.25).otherwise(nearest + 0.25)
    return ends.when(x == x.floor()).then(x).otherwise(between)


def _groups(asked: Statistic, found: pl.DataFrame) -> Groups:
    import polars as pl

    tallies = (Tally(*(int(found[f"tally_{i}_{j}"].sum()) for j in range(4))) for i in asked.numbers)
    sums = (found[f"sum_{j}"] for j in range(len(asked.sets)))
    return Groups(
        tuple(Coded.of_series(found[f"key_{i}"]) for i in range(len(asked.attributes))),
        found["records"].cast(pl.Int64).to_numpy(),
        tuple(one.to_numpy() if asked.person else np.array(one.to_list(), dtype=object) for one in sums),
        tuple(tallies),
        () if asked.person is None else (found["person"],),
    )
