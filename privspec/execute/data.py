"""Reads the data of a run into the exact base vector: entries put on their grids, records counted in their cells.

The rule for what does not fit is public, looks at one entry or record at a time, whatever the others are, and never
stops a run (unless `strict` is asked for): see the rules in `problems`. So data sets that differ in one entry are still
neighbours after it. A run stops only for what is public anyway: a missing file or column, or another size than the
declared one.

Of each person so many records are kept before anything is counted (`kept`): what is kept of a person depends on the
records of that person alone, and on chance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import isqrt, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.matrices import ExactVector, Integers, integers
from privspec.core.records import dataclass
from privspec.execute.engines import records_of
from privspec.execute.family import RunContext
from privspec.execute.keeper import (
    CLIP_RULE,
    DROP_RULE,
    FIRST_RULE,
    STRICT_RULE,
    DataOwnerReport,
    Fit,
    given_for,
    refuse,
    refuse_strictly,
)
from privspec.execute.kept import Keeping, People
from privspec.execute.reading import Declared, number, read_entries
from privspec.execute.sources import IN_DATABASE, Folder, is_frame, load_json, looked_up, place_on_disk
from privspec.execute.statistic import NO_PLACE, Attribute, Statistic
from privspec.execute.warehouse import DATABASES, Records, Table
from privspec.kernel.core.linear import Ball, ExchangeableUnits, InputLayout
from privspec.kernel.core.problem import ContributionBound
from privspec.problem.words import kept_words

if TYPE_CHECKING:
    import polars as pl

    from privspec.execute.family import RunContext
    from privspec.kernel.core.problem import ContributionBound
    from privspec.kernel.derived import Derived


Counts = NDArray[np.int64]


def kept_rule(kept: ContributionBound) -> str:
    """What is done with records before they are counted: part of every release."""
    return kept_words(kept)


SUFFIXES = (".csv", ".csv.gz", ".tsv", ".parquet", ".arrow", ".feather", ".npy", ".json")
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Grid:
    """An input as the kernel reads it, and the grid that its values are put on.

    `step`: as a share of upper - lower (of one unit where a bound is missing, of the radius for balls); `drops`:
    records that do not fit are left out of a table instead of being put into another cell; `index`: the set that the
    first axis runs over; `kept`: how many records of each person are counted; `derived`: columns that follow from
    others.
    """

    held: InputLayout
    step: Fraction
    drops: bool = False
    index: str | None = None
    kept: ContributionBound | None = None
    derived: tuple[Derived, ...] = ()

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return prod(self.held.shape) if self.held.ball else self.held.stop - self.held.start

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds of every coordinate, infinite where there is none."""
        lower, upper = self.held.lower, self.held.upper
        return -np.inf if lower is None else float(lower), np.inf if upper is None else float(upper)

    def lengths(self, values: Array) -> Array:
        """The lengths of the vectors of a ball (k,), in its norm; empty where there is no ball."""
        if self.held.ball is None:
            return np.zeros(0)
        ball = self.held.ball
        with np.errstate(over="ignore"):
            return np.asarray(np.linalg.norm(np.nan_to_num(values).reshape(-1, ball.dimension), ord=ball.norm, axis=1))

    def beyond(self, values: Array) -> int:
        """How many vectors lie outside their ball, but for round-off."""
        return 0 if self.held.ball is None else int((self.lengths(values) > float(self.held.ball.radius) * _NEAR).sum())


_NEAR = 1 + 1e-12


def read_inputs(
    inputs: Sequence[Grid], data: Mapping[str, Any], circumstances: RunContext | None = None
) -> ExactVector:
    """The base vector of data by input name: paths, numpy, polars, pandas, pyarrow objects, lists.

    Raises: DataError (PS0801 to PS0809), whose messages hold no value of the data.
    """
    pairs = zip(inputs, read_values(inputs, data, circumstances), strict=True)
    return ExactVector.joined([place_entries(*pair) for pair in pairs])


def read_values(
    inputs: Sequence[Grid], data: Mapping[str, Any], circumstances: RunContext | None = None
) -> list[NDArray[Any]]:
    """The entries of each input, not a number where one is missing, or the counts of its cells, as `place_entries` has.

    Raises: as `read_inputs`.
    """
    said = circumstances or RunContext()
    names = [one.held.name for one in inputs]
    for name in data:
        if name not in names:
            refuse("PS0801", f"the plan has no input {name}", help=f"its inputs are {', '.join(names)}")
    for name in names:
        given_for(name, data)
    parts = []
    for one in inputs:
        source = located(one.held.name, data[one.held.name])
        values = count_cells(one, source, said) if one.held.cells else _entries(one, source, said)
        parts.append(values)
    return parts


def _entries(one: Grid, source: Any, circumstances: RunContext) -> Array:
    """The entries of an input, not a number where one is missing; how they fit is told to the keeper."""
    held, (lower, upper) = one.held, one.ends
    fit = circumstances.keeper.fit(
        held.name,
        fate=f"each becomes {'zero' if held.ball else 'the number nearest to zero'}",
        what="in records outside the ball" if held.ball else "",
        lower=lower,
        upper=upper,
    )
    declared = Declared(held.name, held.shape, one.index, told=fit.cell)
    values = read_entries(declared, source, circumstances.texts)
    fit.rows += len(values)
    beyond = one.beyond(values)
    if held.ball is None:
        fit.numbers(values)
    else:
        fit.outside += beyond * held.ball.dimension
    if circumstances.strict and (beyond or not np.all(np.isfinite(values) & (values >= lower) & (values <= upper))):
        refuse_strictly(held.name)
    return values


def data_rules(inputs: Sequence[Grid], strict: bool) -> tuple[str, ...]:
    """What is done with data that do not fit, in words: part of every release."""
    if strict:
        return (STRICT_RULE,)
    return (
        *((CLIP_RULE,) if any(not one.held.cells for one in inputs) else ()),
        *(
            f"{one.held.name}: {DROP_RULE if one.drops else FIRST_RULE}; numbers move into their range"
            for one in inputs
            if one.held.cells
        ),
        *(
            f"{one.held.name}: a number counts in whole steps of 1/{one.step.denominator} of its range, the nearest"
            for one in inputs
            if any(column.shared for column in one.held.columns)
        ),
        *(f"{one.held.name}: {kept_rule(one.kept)}" for one in inputs if one.kept),
    )


def located(name: str, source: Any, suffixes: Sequence[str] = SUFFIXES) -> Any:
    """A path that exists and has a known suffix, a folder of Parquet, a table of a database, or the object itself.

    Raises: DataError (PS0802).
    """
    if not isinstance(source, str | Path):
        return source
    path = place_on_disk(source)
    if path != Path(source):
        return Table.of(name, path, str(source).split(IN_DATABASE, 1)[1])
    if path.is_dir():
        return Folder.of(name, path)
    if path.suffix.lower() in DATABASES:
        said = f"{path} is a database: which of its tables holds {name}?"
        refuse("PS0802", said, help=f"write {path}{IN_DATABASE}TABLE")
    if not path.is_file():
        refuse("PS0802", f"the file for {name} does not exist: {path}")
    if not path.name.lower().endswith(tuple(suffixes)):
        refuse("PS0802", f"no reader for the file of {name}: {path.name}", help=f"use {', '.join(suffixes)}")
    return path


# --- entries on their grid ------------------------------------------------------------------------


LIMB = 2**26
"""Whole numbers up to 2^53 are added up in two parts, sums of which are whole numbers of 64 bits."""
AT_ONCE = 2**18
"""Numbers that are added up at once."""


def place_entries(one: Grid, values: NDArray[Any]) -> ExactVector:
    """Values (k,), not a number where missing, clipped to the domain and rounded to its grid; sums of those added up.

    A missing value becomes the point of the domain nearest to zero. Counts of cells stay as they are.
    """
    held, (low, high) = one.held, one.ends
    if held.cells:
        return ExactVector(integers(values), one.step.denominator)
    if held.ball is not None:
        return _added(one.held.units, _place_balls(one, held.ball, values))
    count = one.step.denominator
    if held.lower is None or held.upper is None:
        # multiples of the grid itself: there is no width to take a share of
        clipped = np.clip(np.nan_to_num(values, nan=0.0), low, high)
        steps = [round(Fraction(float(value)) * count) for value in clipped]
        if held.lower is not None:
            steps = [max(step, -((-held.lower * count) // 1)) for step in steps]
        if held.upper is not None:
            steps = [min(step, (held.upper * count) // 1) for step in steps]
        return _added(one.held.units, ExactVector(integers(steps), count))
    width = held.upper - held.lower

    def whole(part: Array) -> Array:
        clipped = np.clip(np.nan_to_num(part, nan=0.0), low, high)
        shares = (clipped - low) / float(width) if width else np.zeros(len(part))
        return np.clip(np.rint(shares * count), 0, count)

    sums, copies = _sums(one.held.units, values, whole)
    step = width / count
    below = np.lcm.reduce([held.lower.denominator, step.denominator], dtype=object)
    return ExactVector(
        sums * (step.numerator * (below // step.denominator))
        + copies * (held.lower.numerator * (below // held.lower.denominator)),
        int(below),
    )


def _sums(alike: ExchangeableUnits | None, values: Array, whole: Callable[[Array], Array]) -> tuple[Integers, Integers]:
    """Values as whole numbers up to 2^53, and 1 of each; added up by class, number by number of a unit, where alike."""
    if alike is None:
        steps = whole(values)
        return integers(steps), integers([1] * len(steps))
    sums = np.zeros((2, len(alike.copies), alike.length), dtype=np.int64)
    ends, classes, each = np.cumsum(alike.counts), np.array(alike.classes), max(AT_ONCE // alike.length, 1)
    for start in range(0, int(ends[-1]), each):
        part = whole(values[start * alike.length : (start + each) * alike.length]).astype(np.int64)
        part = part.reshape(-1, alike.length)
        own = classes[np.searchsorted(ends, np.arange(start, start + len(part)), side="right")]
        for total, limb in zip(sums, (part // LIMB, part % LIMB), strict=True):
            if (own == own[0]).all():
                total[own[0]] += limb.sum(axis=0)
            else:
                np.add.at(total, own, limb)
    high, low = (integers(part.reshape(-1).tolist()) for part in sums)
    return high * LIMB + low, integers(alike.numbers)


def _added(alike: ExchangeableUnits | None, placed: ExactVector) -> ExactVector:
    """The sums of the units of each class, number by number."""
    if alike is None:
        return placed
    sums = np.zeros((len(alike.copies), alike.length), dtype=object)
    classes = np.repeat(np.array(alike.classes), np.array(alike.counts))
    np.add.at(sums, classes, placed.numerators.reshape(-1, alike.length))
    return ExactVector(integers(sums.reshape(-1)), placed.denominator)


def _place_balls(one: Grid, ball: Ball, values: Array) -> ExactVector:
    """Records scaled into their ball and rounded toward zero, so that they stay inside it, exactly."""
    radius, norm, count = ball.radius, ball.norm, one.step.denominator
    records = np.where(np.isfinite(values), values, 0.0).reshape(-1, ball.dimension)
    steps, sure, cut = _balls_at_once(records, radius, count, norm)
    for i in np.flatnonzero(~sure).tolist():
        exact = cut[i] if np.isfinite(cut[i]).all() else [Fraction(x) * count / radius for x in records[i].tolist()]
        steps[i] = _into_ball(list(map(int, exact)), count, norm)
    scale = radius / count
    return ExactVector(integers(steps.reshape(-1).tolist()) * scale.numerator, scale.denominator)


def _balls_at_once(
    records: Array, radius: Fraction, count: int, norm: int
) -> tuple[NDArray[Any], NDArray[np.bool_], Array]:
    """What `_into_ball` makes of records (N, d), of which of them that is certain in 64 bits, and the whole numbers.

    The last are those below the shares of the radius, not a number where doubles do not tell.
    """
    most = float(np.sqrt(2.0**62 / records.shape[1]))
    with np.errstate(over="ignore"):
        shares = np.abs(records) * (count / float(radius))
    exact = all(n & (n - 1) == 0 for n in (radius.numerator, radius.denominator, count))
    # doubles are off by less than 2^-50 of a share, and so is what is below it
    told = (exact | (np.abs(shares - np.rint(shares)) > shares * 2.0**-50) | (shares == 0)) & np.isfinite(shares)
    sure = told & (shares < most) & (most * count < 2.0**63)
    whole = np.floor(np.where(sure, shares, 0.0)).astype(np.int64)
    below = whole.sum(axis=1) if norm == 1 else np.maximum((whole * whole).sum(axis=1) - 1, 0)
    if norm == 2:
        root = np.sqrt(below.astype(np.float64)).astype(np.int64)
        root -= root * root > below
        root += (root + 1) * (root + 1) <= below
        below = root + 1
    outside = (below > count)[:, None]
    inside = np.where(outside, whole * count // np.maximum(below, 1)[:, None], whole)
    cut = np.where(told, np.floor(shares) * np.sign(records), np.nan)
    return (inside * np.sign(records).astype(np.int64)).astype(object), sure.all(axis=1), cut


def _into_ball(inside: list[int], radius: int, norm: int) -> list[int]:
    length = sum(map(abs, inside)) if norm == 1 else isqrt(max(sum(x * x for x in inside) - 1, 0)) + 1
    if length <= radius:
        return inside
    return [(abs(x) * radius // length) * (1 if x > 0 else -1) for x in inside]


# --- records in their cells -----------------------------------------------------------------------


def count_cells(
    one: Grid, source: Any, circumstances: RunContext | None = None, given: Sequence[Attribute] = ()
) -> NDArray[np.int64]:
    """How many records fall into each cell, cells row-major in the order of the attributes: (k,).

    The attributes are those that are given, else those of the columns held.

    A table of records has a column for each attribute. An array of the cells' own shape, or one column
    `count`, is taken as the counts themselves. Without a header the columns are the attributes in their order.
    Raises: DataError (PS0803 to PS0809).
    """
    attributes = list(given) or [Attribute.of(column) for column in one.held.columns]
    return _tables(one, attributes, [tuple(range(len(attributes)))], source, circumstances or RunContext())[0]


def count_tables(
    one: Grid, tables: Sequence[tuple[int, ...]], source: Any, circumstances: RunContext | None = None
) -> list[NDArray[np.int64]]:
    """How many records fall into each cell of some tables by columns, each in the shape of its columns' sizes.

    Nothing of the number of cells of the whole table is built, unless it is given. Raises: as `count_cells`.
    """
    attributes = [Attribute.of(column) for column in one.held.columns]
    found = _tables(one, attributes, tables, source, circumstances or RunContext())
    return [counts.reshape([attributes[i].size for i in own]) for own, counts in zip(tables, found, strict=True)]


def _tables(
    one: Grid, attributes: Sequence[Attribute], tables: Sequence[tuple[int, ...]], source: Any, said: RunContext
) -> list[NDArray[Any]]:
    """The same in one row each, of attributes by their places.

    Raises: DataError (PS0803 to PS0809).
    """
    held = one.held
    sizes, person = tuple(a.size for a in attributes), one.kept.person if one.kept else None
    asked = Statistic(held.name, tuple(attributes), one.step.denominator, person, one.derived)
    names = asked.columns[person is not None :]
    if attributes and prod(sizes) != held.stop - held.start:
        refuse("PS0804", f"the attributes of {held.name} do not make {held.stop - held.start} cells")
    document = isinstance(source, Path) and source.suffix.lower() == ".json"
    if one.index and names == [held.name] and not is_frame(source) and (document or not isinstance(source, Path)):
        # what each party holds, one after another; each is looked at by itself
        found = load_json(held.name, source) if document else source
        each = found.get(held.name, ()) if isinstance(found, dict) else found
        source = {held.name: [item.get(held.name) if isinstance(item, Mapping) else item for item in each]}
    elif document:
        source = _document(held, [*([one.kept.person] if one.kept else []), *names], source)
    shared = next((a.name for a in attributes if a.shared), None)
    if one.kept and not ((is_frame(source) or isinstance(source, Path)) and said.texts.header):
        hint = f"a column named {one.kept.person} says whose each record is"
        refuse("PS0804", f"{held.name} is read person by person: give records under named columns", help=hint)
    if shared is not None and not is_frame(source) and not isinstance(source, Path):
        refuse("PS0804", f"{held.name} holds numbers ({shared}): give its records, and not counts")
    if not attributes or (not is_frame(source) and (not isinstance(source, Path) or source.suffix.lower() == ".npy")):
        return _summed(_given_counts(held, held.name, sizes, source, said), sizes, tables)
    data = records_of(held.name, source, said.texts, names)
    if data.names == ["count"] and "count" not in names and shared is None and one.kept is None:
        return _summed(_given_counts(held, "count", sizes, source, said), sizes, tables)
    data.check(asked.columns)
    for remark in data.remarks(asked.columns):
        said.keeper.remark(held.name, remark)
    if said.selects is not None:
        said.selects.extend((held.name, select) for select in data.select(asked.read))
        return [np.zeros(prod(sizes[i] for i in own), dtype=np.int64) for own in tables]
    return _count(one, asked, tables, data, said)


def _summed(
    counts: NDArray[np.int64], sizes: tuple[int, ...], tables: Sequence[tuple[int, ...]]
) -> list[NDArray[np.int64]]:
    """Tables by some columns from the counts of all cells."""
    if list(tables) == [tuple(range(len(sizes)))]:
        return [counts]
    every = counts.reshape(sizes)
    others = (tuple(i for i in range(len(sizes)) if i not in own) for own in tables)
    return [np.asarray(every.sum(axis=axes)).reshape(-1) for axes in others]


def _document(held: InputLayout, columns: Sequence[str], path: Path) -> Any:
    """What a JSON file holds as columns: those of an object, or of a list of objects, each a record.

    Counts that were made elsewhere are a list under `count`: one that stands alone, or under the input's name, is of
    records, whatever is in it.
    """
    found = load_json(held.name, path)
    if isinstance(found, dict) and not set(columns) <= set(found):
        if list(found) == ["count"]:
            return found["count"]
        found = found.get(held.name, found)
    return looked_up(found, columns) if isinstance(found, list) and columns else found


def _given_counts(
    held: InputLayout, column: str, sizes: tuple[int, ...], source: Any, circumstances: RunContext
) -> NDArray[np.int64]:
    """Counts that were made elsewhere; each becomes the nearest whole number from 0."""
    shaped = sizes if isinstance(source, np.ndarray) and source.shape == sizes else (held.stop - held.start,)
    values = read_entries(Declared(column, shaped), source, circumstances.texts)
    if circumstances.strict and not np.all((values >= 0) & (values == np.rint(values)) & (values < 2**53)):
        refuse_strictly(held.name)
    return np.rint(np.clip(np.nan_to_num(values, nan=0.0), 0, 2.0**53)).astype(np.int64)


def _count(
    one: Grid, asked: Statistic, tables: Sequence[tuple[int, ...]], data: Records, circumstances: RunContext
) -> list[NDArray[Any]]:
    """Counts of the cells of tables by some attributes, from groups of records, a few at a time.

    Whole numbers of steps where columns are added up; persons' records are cut by the cells of the first table.
    """
    held, attributes, keeper = one.held, asked.attributes, circumstances.keeper
    fits = [_fit(one, attribute, keeper, computed=asked.of(attribute.name)) for attribute in attributes]
    lookups = [attribute.lookup() for attribute in attributes]
    strides = [{i: prod(attributes[j].size for j in own[k + 1 :]) for k, i in enumerate(own)} for own in tables]
    kind = object if asked.added else np.int64
    counts = [np.zeros(prod(attributes[i].size for i in own), dtype=kind) for own in tables]
    exact, total, lost = True, 0, 0

    def told(place: int, cell: Any, times: int = 1) -> None:
        nonlocal exact
        exact = False
        fits[place].cell(cell, times)

    def add(cells: Sequence[Counts], records: Counts, sums: Sequence[NDArray[Any]]) -> None:
        for some, mass in asked.masses(records, sums):
            for at, own, found_counts in zip(cells, strides, counts, strict=True):
                part = np.zeros(len(found_counts), dtype=mass.dtype)
                np.add.at(part, at + sum(own[place] for place in some), mass)
                found_counts += part

    keeping = None if one.kept is None else Keeping(one.kept, circumstances.randomness.word())
    known: list[dict[Any, tuple[int, bool]]] = [{} for _ in attributes]
    narrow = np.int32 if max(map(len, counts)) < 2**31 else np.int64
    for part in data.parts(asked.read, told):
        persons: list[tuple[pl.Series, list[NDArray[Any]]]] = []
        for groups in map(asked.followed, part):
            records = groups.records
            fitting, places = np.ones(len(records), dtype=bool), dict[int, NDArray[np.int64]]()
            total += int(records.sum())
            for place, (attribute, column) in enumerate(zip(attributes, groups.keys, strict=True)):
                again = any(before.name == attribute.name for before in attributes[:place])
                fits[place].rows += 0 if again else int(records.sum())
                if attribute.shared:
                    fitting &= ~np.array(column.values, dtype=bool)[column.places]
                    continue
                counted, table = column.counted(records).tolist(), known[place]
                for value in column.values:
                    if value not in table:
                        table[value] = lookups[place](value)
                there = {value: count for value, count in zip(column.values, counted, strict=True) if count}
                codes = np.array([table[value][0] for value in column.values], dtype=np.int64)
                exact = exact and all(table[value][1] for value in there)
                if not again and not attribute.measured:
                    _tell(fits[place], attribute, table, there)
                if (codes == NO_PLACE).any():
                    fitting &= (codes != NO_PLACE)[column.places]
                places[place] = np.maximum(codes, 0)[column.places]
            for place, tally in zip(asked.numbers, groups.tallies, strict=True):
                exact = exact and not tally.below + tally.above
                if asked.of(attributes[place].name) is not None:
                    fits[place].outside += tally.below
                else:
                    fits[place].tally(tally.below, tally.above, tally.nonzero, tally.small)
            if one.drops:
                lost += int(records[~fitting].sum())
                groups = groups.only(fitting)
            none = np.zeros(len(records), dtype=np.int64)
            cells = [sum((places[i] * step for i, step in own.items() if i in places), none) for own in strides]
            if keeping is None:
                add(cells, groups.records, groups.sums)
            else:
                (whose,), own = groups.people, [each.astype(narrow) for each in cells] + list(groups.sums)
                if one.drops and not fitting.all():
                    whose, own = whose.filter(fitting), [each[fitting] for each in own]
                persons.append((whose, own))
        if keeping is not None and persons:
            people = People.of([whose for whose, _ in persons])
            columns = [np.concatenate(each) for each in zip(*(own for _, own in persons), strict=True)]
            persons.clear()
            if len(columns) == 1:
                add([np.arange(len(counts[0]))], keeping.by_cell(people, columns[0], len(counts[0])), ())
            else:
                left = keeping.of(people, columns, np.ones(len(people.owner), dtype=np.int64))
                cells, sums = columns[: len(tables)], columns[len(tables) :]
                add(cells, left, [each * left for each in sums])
    if keeping is not None:
        exact = exact and not keeping.lost
        keeping.tell(held.name, keeper)
    if not one.drops and held.records is not None and total != held.records:
        # the number is public: it is in the spec, and every neighbouring table has it too
        text = f"the spec says that {held.name} has {held.records:,} records, and the data have a different number"
        refuse("PS0805", text, help="declare it as table(...) if any number of records may come")
    if circumstances.strict and not exact:
        refuse_strictly(held.name)
    keeper.left_out(held.name, lost, total, "fit no cell")
    return counts


def _fit(one: Grid, attribute: Attribute, keeper: DataOwnerReport, computed: Derived | None = None) -> Fit:
    first = attribute.values[0] if attribute.values else str(attribute.lower)
    fate = "their records are left out" if one.drops else f"each counts as {first}"
    ends = (None, None) if attribute.values else (float(attribute.lower), float(attribute.upper))
    words = attribute.values
    if computed is not None and computed.formula is not None:
        return keeper.fit(one.held.name, attribute.name, fate=fate, what="computed from a number beyond its ends")
    if attribute.measured:
        ends, words = (float(Fraction(words[0])), float(Fraction(words[1]))), ()
    return keeper.fit(one.held.name, attribute.name, fate=fate, words=words, lower=ends[0], upper=ends[1])


def _tell(
    fit: Fit,
    attribute: Attribute,
    table: Mapping[Any, tuple[int, bool]],
    counted: Mapping[Any, int],
) -> None:
    """How the values of an attribute fit, for the keeper: how often each occurs."""
    for value, count in counted.items():
        place, fits = table[value]
        if place == NO_PLACE:
            fit.cell(value, count)
        elif not attribute.values:
            fit.numbers(np.array([number(value)]), times=count)
            fit.outside += count * (not fits and attribute.lower < number(value) < attribute.upper)
