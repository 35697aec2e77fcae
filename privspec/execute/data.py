"""Reads the data of a run into the exact base vector: entries put on their grids, records counted in their cells.

The rule for what does not fit is public, looks at one entry or record at a time, whatever the others are, and never
stops a run (unless `strict` is asked for): see the rules in `problems`. So data sets that differ in one entry are still
neighbours after it. A run stops only for what is public anyway: a missing file or column, or another size than the
declared one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import floor, isqrt, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.matrices import ExactVector, Integers, integers
from privspec.execute.family import Circumstances
from privspec.execute.keeper import (
    CLIP_RULE,
    DROP_RULE,
    FIRST_RULE,
    STRICT_RULE,
    Fit,
    Keeper,
    given_for,
    refuse,
    refuse_strictly,
)
from privspec.execute.people import cut, ids_of, kept_rule
from privspec.execute.reading import Declared, number, read_entries
from privspec.execute.sources import collect, column_names, is_frame, load_frame, load_json, readable
from privspec.kernel.core.linear import Alike, Held
from privspec.kernel.participation import Kept

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".parquet", ".npy", ".json")
NO_PLACE = -1
"""The code of a value that is missing or not in its attribute's domain."""
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Grid:
    """An input as the kernel reads it, and the grid that its values are put on.

    `step`: as a share of upper - lower (of one unit where a bound is missing, of the radius for balls); `drops`:
    records that do not fit are left out of a table instead of being put into another cell; `index`: the set that the
    first axis runs over; `kept`: how many records of each person are counted.
    """

    held: Held
    step: Fraction
    drops: bool = False
    index: str | None = None
    kept: Kept | None = None

    @property
    def size(self) -> int:
        return self.held.stop - self.held.start

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds of every coordinate, infinite where there is none."""
        lower, upper = self.held.lower, self.held.upper
        return -np.inf if lower is None else float(lower), np.inf if upper is None else float(upper)

    def lengths(self, values: Array) -> Array:
        """The lengths of the vectors of a ball (k,), in its norm; empty where there is no ball."""
        if self.held.ball is None:
            return np.zeros(0)
        _, dimension, norm = self.held.ball
        with np.errstate(over="ignore"):
            return np.asarray(np.linalg.norm(np.nan_to_num(values).reshape(-1, dimension), ord=norm, axis=1))

    def beyond(self, values: Array) -> int:
        """How many vectors lie outside their ball, but for round-off."""
        return 0 if self.held.ball is None else int((self.lengths(values) > float(self.held.ball[0]) * _NEAR).sum())


_NEAR = 1 + 1e-12


def read_inputs(
    inputs: Sequence[Grid], data: Mapping[str, Any], circumstances: Circumstances | None = None
) -> ExactVector:
    """The base vector of data by input name: paths, numpy, polars, pandas, pyarrow objects, lists.

    Raises: DataError (PS0801 to PS0809), whose messages hold no value of the data.
    """
    said = circumstances or Circumstances()
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
        parts.append(place_entries(one, values))
    return ExactVector.joined(parts)


def _entries(one: Grid, source: Any, circumstances: Circumstances) -> Array:
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
    values = read_entries(declared, source, header=circumstances.header)
    fit.rows += len(values)
    beyond = one.beyond(values)
    if held.ball is None:
        fit.numbers(values)
    else:
        fit.outside += beyond * held.ball[1]
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
        *(f"{one.held.name}: {kept_rule(one.kept)}" for one in inputs if one.kept),
    )


def located(name: str, source: Any, suffixes: Sequence[str] = SUFFIXES) -> Any:
    """A path that exists and has a known suffix, or the object itself.

    Raises: DataError (PS0802).
    """
    if not isinstance(source, str | Path):
        return source
    path = Path(source)
    if not path.is_file():
        refuse("PS0802", f"the file for {name} does not exist: {path}")
    if not path.name.lower().endswith(tuple(suffixes)):
        refuse("PS0802", f"no reader for the file of {name}: {path.name}", help=f"use {', '.join(suffixes)}")
    return path


# --- entries on their grid ------------------------------------------------------------------------


LIMB = 2**26
"""Whole numbers up to 2^53 are added up in two parts, sums of which are whole numbers of 64 bits."""


def place_entries(one: Grid, values: NDArray[Any]) -> ExactVector:
    """Values (k,), not a number where missing, clipped to the domain and rounded to its grid; sums of those added up.

    A missing value becomes the point of the domain nearest to zero. Counts of cells stay as they are.
    """
    held, (low, high) = one.held, one.ends
    if held.cells:
        return ExactVector(integers(values), one.step.denominator)
    if held.ball is not None:
        return _added(one.held.units, _place_balls(one, held.ball, values))
    clipped, count = np.clip(np.nan_to_num(values, nan=0.0), low, high), one.step.denominator
    if held.lower is None or held.upper is None:
        # multiples of the grid itself: there is no width to take a share of
        steps = [round(Fraction(float(value)) * count) for value in clipped]
        if held.lower is not None:
            steps = [max(step, -((-held.lower * count) // 1)) for step in steps]
        if held.upper is not None:
            steps = [min(step, (held.upper * count) // 1) for step in steps]
        return _added(one.held.units, ExactVector(integers(steps), count))
    width = held.upper - held.lower
    shares = (clipped - low) / float(width) if width else np.zeros(len(clipped))
    sums, copies = _sums(one.held.units, np.clip(np.rint(shares * count), 0, count))
    step = width / count
    below = np.lcm.reduce([held.lower.denominator, step.denominator], dtype=object)
    return ExactVector(
        sums * (step.numerator * (below // step.denominator))
        + copies * (held.lower.numerator * (below // held.lower.denominator)),
        int(below),
    )


def _sums(alike: Alike | None, steps: Array) -> tuple[Integers, Integers]:
    """Whole numbers up to 2^53 added up by class, number by number of a unit, and how many went into each sum."""
    if alike is None:
        return integers(steps), integers([1] * len(steps))
    classes = np.repeat(np.array(alike.classes), np.array(alike.counts))
    sums = np.zeros((2, len(alike.copies), alike.length), dtype=np.int64)
    for part, limb in zip(sums, (steps // LIMB, steps % LIMB), strict=True):
        np.add.at(part, classes, limb.astype(np.int64).reshape(-1, alike.length))
    high, low = (integers(part.reshape(-1).tolist()) for part in sums)
    return high * LIMB + low, integers([copies for copies in alike.copies for _ in range(alike.length)])


def _added(alike: Alike | None, placed: ExactVector) -> ExactVector:
    """The sums of the units of each class, number by number."""
    if alike is None:
        return placed
    sums = np.zeros((len(alike.copies), alike.length), dtype=object)
    classes = np.repeat(np.array(alike.classes), np.array(alike.counts))
    np.add.at(sums, classes, placed.numerators.reshape(-1, alike.length))
    return ExactVector(integers(sums.reshape(-1)), placed.denominator)


def _place_balls(one: Grid, ball: tuple[Fraction, int, int], values: Array) -> ExactVector:
    """Records scaled into their ball and rounded toward zero, so that they stay inside it, exactly."""
    radius, size, norm = ball
    count = one.step.denominator
    records = np.where(np.isfinite(values), values, 0.0).reshape(-1, size)
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


@dataclass(frozen=True, slots=True)
class Attribute:
    """One column of a table: either its admissible values in order, or integers lower..upper."""

    name: str
    values: tuple[str, ...] = ()
    lower: int = 0
    upper: int = -1
    shared: bool = False

    @classmethod
    def of(cls, column: tuple[str, tuple[str, ...], int | None, int | None, bool]) -> Attribute:
        """As the kernel reads it."""
        name, values, lower, upper, shared = column
        return cls(name, values, shared=shared) if lower is None or upper is None else cls(name, (), lower, upper)

    def share(self, value: Any, steps: int) -> tuple[int, bool]:
        """How many of so many steps a number lies above the low end, the nearest; none for what is no number."""
        low, high = map(Fraction, self.values)
        quantity = number(value)
        if quantity != quantity:
            return NO_PLACE, False
        inside = min(max(quantity, float(low)), float(high))
        return min(max(round((Fraction(inside) - low) / (high - low) * steps), 0), steps), inside == quantity

    @property
    def size(self) -> int:
        return len(self.values) or self.upper - self.lower + 1

    def lookup(self) -> Callable[[Any], tuple[int, bool]]:
        """From a value as it was read to its place in the domain, and whether it fits exactly."""
        if not self.values:
            return self._nearest
        words = {text: place for place, text in enumerate(self.values)}
        found = ((number(_decimal(text)), place) for text, place in words.items())
        return partial(_found, words, {quantity: place for quantity, place in found if quantity == quantity})

    def _nearest(self, value: Any) -> tuple[int, bool]:
        quantity = number(value)
        if quantity != quantity:
            return NO_PLACE, False
        nearest = floor(min(max(quantity, self.lower), self.upper) + 0.5)
        return nearest - self.lower, nearest == quantity


def _found(words: Mapping[str, int], quantities: Mapping[float, int], value: Any) -> tuple[int, bool]:
    place = words.get(str(value).strip(), quantities.get(number(value), NO_PLACE))
    return place, place != NO_PLACE


def _decimal(text: str) -> Any:
    """A number that may be written as a fraction."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def count_cells(
    one: Grid, source: Any, circumstances: Circumstances | None = None, given: Sequence[Attribute] = ()
) -> NDArray[np.int64]:
    """How many records fall into each cell, cells row-major in the order of the attributes: (k,).

    The attributes are those that are given, else those of the columns held.

    A table of records has a column for each attribute. An array of the cells' own shape, or one column
    `count`, is taken as the counts themselves. Without a header the columns are the attributes in their order.
    Raises: DataError (PS0803 to PS0809).
    """
    held, said = one.held, circumstances or Circumstances()
    attributes = list(given) or [Attribute.of(column) for column in held.columns]
    sizes, names = tuple(a.size for a in attributes), list(dict.fromkeys(a.name for a in attributes))
    if attributes and prod(sizes) != held.stop - held.start:
        refuse("PS0804", f"the attributes of {held.name} do not make {held.stop - held.start} cells")
    if isinstance(source, Path) and source.suffix.lower() == ".json":
        source = _document(held, names, source)
    shared = next((a.name for a in attributes if a.shared), None)
    if one.kept and not ((is_frame(source) or isinstance(source, Path)) and said.header):
        hint = f"a column named {one.kept.person} says whose each record is"
        refuse("PS0804", f"{held.name} is read person by person: give records under named columns", help=hint)
    if shared is not None and not is_frame(source) and not isinstance(source, Path):
        refuse("PS0804", f"{held.name} holds numbers ({shared}): give its records, and not counts")
    if not attributes or (not is_frame(source) and (not isinstance(source, Path) or source.suffix.lower() == ".npy")):
        return _given_counts(held, held.name, sizes, source, said)
    frame = load_frame(held.name, source, None if said.header else names)
    found = column_names(held.name, frame)
    if found == ["count"] and "count" not in names and shared is None and one.kept is None:
        return _given_counts(held, "count", sizes, source, said)
    ids = (one.kept.person,) if one.kept else ()
    missing = [name for name in (*ids, *names) if name not in found]
    if missing:
        refuse(
            "PS0804",
            f"the data for {held.name} have no column {', '.join(missing)}",
            help=f"the first line names the columns: {', '.join((*ids, *names))}",
        )
    return _count(one, attributes, readable(held.name, frame, names, ids), said)


def _document(held: Held, names: list[str], path: Path) -> Any:
    """A JSON file as a table, where it holds records or columns under the names of the attributes; else as it is."""
    found = load_json(held.name, path)
    if isinstance(found, list) and found and all(isinstance(item, dict) for item in found):
        keys = dict.fromkeys(str(key) for item in found for key in item)
        found = {key: [item.get(key) for item in found] for key in keys}
    if isinstance(found, dict) and not set(names) <= set(found):
        found = found.get(held.name, found.get("count") if list(found) == ["count"] else found)
    return found


def _given_counts(
    held: Held, column: str, sizes: tuple[int, ...], source: Any, circumstances: Circumstances
) -> NDArray[np.int64]:
    """Counts that were made elsewhere; each becomes the nearest whole number from 0."""
    shaped = sizes if isinstance(source, np.ndarray) and source.shape == sizes else (held.stop - held.start,)
    values = read_entries(Declared(column, shaped), source, header=circumstances.header)
    if circumstances.strict and not np.all((values >= 0) & (values == np.rint(values)) & (values < 2**53)):
        refuse_strictly(held.name)
    return np.rint(np.clip(np.nan_to_num(values, nan=0.0), 0, 2.0**53)).astype(np.int64)


def _count(
    one: Grid, attributes: Sequence[Attribute], frame: pl.LazyFrame, circumstances: Circumstances
) -> NDArray[np.int64]:
    import polars as pl

    held = one.held
    # only one row for each combination of values that occurs is ever held
    ids = [one.kept.person] if one.kept else []
    columns = list(dict.fromkeys([*ids, *(a.name for a in attributes)]))
    grouped = collect(held.name, frame.group_by(columns).agg(pl.len().alias("_records")))
    records = grouped["_records"].to_numpy().astype(np.int64)
    if not one.drops and held.records is not None and int(records.sum()) != held.records:
        # the number is public: it is in the spec, and every neighbouring table has it too
        text = f"the spec says that {held.name} has {held.records:,} records, and the data have another number"
        refuse("PS0805", text, help="declare it as table(...) if any number of records may come")
    cells, steps = np.zeros(grouped.height, dtype=np.int64), one.step.denominator
    fits = np.ones(grouped.height, dtype=bool)
    exact, shares = True, list[tuple[int, NDArray[np.int64]]]()
    for place, attribute in enumerate(attributes):
        lookup = partial(attribute.share, steps=steps) if attribute.shared else attribute.lookup()
        column = grouped[attribute.name].to_list()
        table = {value: lookup(value) for value in set(column)}
        codes = np.array([table[value][0] for value in column], dtype=np.int64)
        exact = exact and all(fitting for _, fitting in table.values())
        _tell(_fit(one, attribute, circumstances.keeper), attribute, table, column, records)
        fits &= codes != NO_PLACE
        cells = cells * attribute.size + (0 if attribute.shared else np.maximum(codes, 0))
        if attribute.shared:
            shares.append((prod(after.size for after in attributes[place + 1 :]), np.maximum(codes, 0)))
    if circumstances.strict and not exact:
        refuse_strictly(held.name)
    if one.drops:
        lost = int(records[~fits].sum())
        if lost:
            said = f"{lost:,} of {int(records.sum()):,} records fit no cell and are left out"
            circumstances.keeper.remark(held.name, said)
        records = np.where(fits, records, 0)
    if one.kept:
        if circumstances.strict and not all(ids_of(grouped[one.kept.person])):
            refuse_strictly(held.name)
        records = cut(one.kept, held.name, grouped[one.kept.person], cells, records, circumstances)
    counts = np.zeros(held.stop - held.start, dtype=np.int64)
    for at, mass in _shared(cells, shares, steps):
        np.add.at(counts, at, records * mass)
    return counts


def _shared(
    cells: NDArray[np.int64], shares: Sequence[tuple[int, NDArray[np.int64]]], steps: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Cells of records, and how many of their `steps` each of them has there.

    `shares`: for each column of numbers, how far apart the cells of its ends are, and the steps at the high one.
    The same steps go to high ends first, so that a record stands in at most one cell more than it has such columns.
    """
    if not shares:
        yield cells, np.full(len(cells), steps)
        return
    strides, parts = np.array([stride for stride, _ in shares]), np.stack([part for _, part in shares], axis=1)
    order = np.argsort(-parts, axis=1, kind="stable")
    falling = np.take_along_axis(parts, order, axis=1)
    above = np.full(len(cells), steps)
    for rank in range(len(shares)):
        yield cells, above - falling[:, rank]
        above, cells = falling[:, rank], cells + strides[order[:, rank]]
    yield cells, above


def _fit(one: Grid, attribute: Attribute, keeper: Keeper) -> Fit:
    first = attribute.values[0] if attribute.values else str(attribute.lower)
    fate = "their records are left out" if one.drops else f"each counts as {first}"
    ends = (None, None) if attribute.values else (float(attribute.lower), float(attribute.upper))
    words = attribute.values
    if attribute.shared:
        ends, words = (float(Fraction(words[0])), float(Fraction(words[1]))), ()
    return keeper.fit(one.held.name, attribute.name, fate=fate, words=words, lower=ends[0], upper=ends[1])


def _tell(
    fit: Fit,
    attribute: Attribute,
    table: Mapping[Any, tuple[int, bool]],
    column: Sequence[Any],
    records: NDArray[np.int64],
) -> None:
    """How the values of an attribute fit, for the keeper."""
    fit.rows += int(records.sum())
    counted: dict[Any, int] = dict.fromkeys(table, 0)
    for value, count in zip(column, records.tolist(), strict=True):
        counted[value] += count
    for value, count in counted.items():
        place, fits = table[value]
        if place == NO_PLACE:
            fit.cell(value, count)
        elif attribute.shared:
            fit.numbers(np.array([number(value)]), times=count)
        elif not attribute.values:
            fit.numbers(np.array([number(value)]), times=count)
            fit.outside += count * (not fits and attribute.lower < number(value) < attribute.upper)
