"""Rows of records from tables of named columns, arrays and the published layout of the Moral Machine.

The header alone decides how a table is read: columns `V_1`, `V_2`, ... hold the records of the input V; columns `x_*`
(chosen) and `z_*` (rejected) hold pairs of alternatives, a record is x - z, in the order of the columns `x_*`.
Rows that stand together belong to one party; its first records count, missing ones are zero. Records are put in steps
of the grid and drawn in to their ball each by itself: exactly, whatever doubles do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass, field
from privspec.execute import sources
from privspec.execute.cells import id_text, id_texts
from privspec.execute.keeper import Fit, refuse, slip_of_header
from privspec.execute.reading import Fields, number
from privspec.model.library import GRID_BITS, Steps

if TYPE_CHECKING:
    import polars as pl


Rows: TypeAlias = "Iterator[tuple[pl.Series, NDArray[np.float64]]]"
"""Keys of the parties of some rows, and their records in doubles, not a number where one is missing."""
ROWS = 65_536
CELLS = 2**24
"""Numbers of padded records that are held at once, at most, if every row is a party of its own."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for: the input's name, the column of the parties (None: one party), features, records per party.

    `only`: the one party whose rows are wanted; data without a column of parties are then all of that party. `texts`:
    how text files are written; without a header their columns are the party's and then the features in their order.
    `fit`: where the keeper is told of cells that are no numbers.
    """

    name: str
    party: str | None
    dimension: int
    count: int
    only: str | None = None
    texts: sources.TextFiles = sources.AS_USUAL
    fit: Fit | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table in which they stand in order."""
        key = () if self.party is None or self.only is not None else (self.party,)
        return (*key, *Fields(self.name, self.dimension).columns)

    @property
    def rows(self) -> int:
        """Rows that are read at once."""
        return max(1, min(ROWS, CELLS // (self.count * self.dimension)))


class Layout(Protocol):
    """How records stand in a table."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are read."""

    def arranged(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """The columns that are needed, the rows of a party together as far as the layout can see to it."""

    def split(self, wanted: Wanted, table: pl.DataFrame) -> tuple[pl.Series | None, NDArray[np.float64]]:
        """Keys (None: all rows are of one party) and records of some of its rows."""


def rows_of(wanted: Wanted, source: Any) -> Rows:
    """All rows, in the order of the data; rows without a party are left out.

    Args: source, a path (.csv, .csv.gz, .tsv, .parquet, .npy, .json), a table of named columns, or an array
        (parties, records, features).
    Raises: DataError (PS0803 to PS0805).
    """
    if isinstance(source, Path) and source.suffix.lower() == ".npy":
        source = sources.load_array(wanted.name, source, mapped=True)
    if isinstance(source, Path) and source.suffix.lower() == ".json":
        found = sources.load_json(wanted.name, source)
        source = found.get(wanted.name, found) if isinstance(found, Mapping) else found
    if isinstance(source, list):
        return _listed(wanted, source)
    if isinstance(source, np.ndarray):
        return _array(wanted, source)
    if isinstance(source, Mapping) and wanted.name in source:
        return rows_of(wanted, source[wanted.name])
    return _table(wanted, source)


def _table(wanted: Wanted, source: Any) -> Rows:
    import polars as pl

    if isinstance(source, sources.Unordered):
        refuse(
            "PS0812",
            f"the rows of a database or a folder stand in no order, and the first records of each {wanted.party} count",
            help="give a file in which the rows of each stand together",
        )
    frame = sources.load_frame(wanted.name, source, wanted.texts, wanted.columns)
    layout = layout_of(wanted, sources.column_names(wanted.name, frame))
    for table in _slices(wanted, source, layout, frame):
        keys, records = layout.split(wanted, table)
        if keys is None:
            yield pl.repeat("", len(table), eager=True), records
            continue
        keys = _known(wanted, keys)
        present = keys.is_not_null().to_numpy() if keys.null_count() else slice(None)
        yield keys.drop_nulls(), records[present]


def _known(wanted: Wanted, keys: pl.Series) -> pl.Series:
    """Keys in their one text; missing where a row is of nobody, or not of the party that is wanted."""
    keys = id_texts(keys)
    return keys if wanted.only is None else keys.set(keys != id_text(wanted.only), None)


def _slices(wanted: Wanted, source: Any, layout: Layout, frame: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    def read(held: Any) -> pl.DataFrame:
        plain = sources.readable(wanted.name, sources.load_frame(wanted.name, held), layout.names)
        return sources.collect(wanted.name, layout.arranged(plain))

    plain = sources.readable(wanted.name, frame, layout.names)
    if not isinstance(source, Path) or sources.is_text(source):
        yield from sources.frames_of(wanted.name, layout.arranged(plain), wanted.rows)
    elif source.suffix.lower() == ".parquet" and isinstance(layout, Columns):
        yield from sources.parquet_frames(wanted.name, source, layout.names, wanted.rows)
    else:
        yield from sources.whatever_is_text(wanted.name, source, read).iter_slices(wanted.rows)


# --- layouts --------------------------------------------------------------------------------------


def layout_of(wanted: Wanted, names: Sequence[str]) -> Layout:
    """How a table with these columns is read.

    Raises: DataError (PS0804, PS0805).
    """
    if {*MORAL_KEYS} <= set(names):
        return _moral(wanted, names)
    key = wanted.party
    if wanted.only is not None and key not in names:
        key = None
    if key is not None and key not in names:
        hint = slip_of_header((key,), names) or f"each row names its {key}"
        refuse("PS0804", f"the data for {wanted.name} have no column {key}", help=hint)
    chosen = [name for name in names if name.startswith("x_")]
    fields = Fields(wanted.name, wanted.dimension)
    if not chosen or set(fields.columns) <= set(names):
        return Columns(key, tuple(fields.find(names)))
    rejected = ["z_" + name[2:] for name in chosen]
    if not set(rejected) <= set(names):
        refuse(
            "PS0804",
            f"the data for {wanted.name} have a column x_* (chosen) without its column z_* (rejected)",
            help="pairs of alternatives: every feature twice, x_age and z_age",
        )
    _check_width(wanted, len(chosen))
    return Columns(key, tuple(chosen), tuple(rejected))


def _check_width(wanted: Wanted, found: int) -> None:
    if found != wanted.dimension:
        refuse(
            "PS0805",
            f"records of {wanted.name} have {wanted.dimension} features, the data have {found}",
            help="keep the columns that the spec is about, or declare another dimension",
        )


@dataclass(frozen=True, slots=True)
class Columns:
    """One record per row: numbers, or those of the chosen minus those of the rejected alternative."""

    key: str | None
    chosen: tuple[str, ...]
    rejected: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are read."""
        return (*(() if self.key is None else (self.key,)), *self.chosen, *self.rejected)

    def arranged(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """The rows as they stand."""
        return frame.select(self.names)

    def split(self, wanted: Wanted, table: pl.DataFrame) -> tuple[pl.Series | None, NDArray[np.float64]]:
        """Keys and records."""
        records = _matrix(table, self.chosen, wanted.fit)
        if self.rejected:
            # infinite minus infinite is not a number, as it should be
            with np.errstate(invalid="ignore", over="ignore"):
                records = records - _matrix(table, self.rejected, wanted.fit)
        return None if self.key is None else table[self.key], records


def _matrix(table: pl.DataFrame, names: Sequence[str], fit: Fit | None = None) -> NDArray[np.float64]:
    """Columns as doubles, one after another in memory; what cannot be read as a number is none."""
    import polars as pl

    out = np.empty((len(names), len(table))).T
    for j, name in enumerate(names):
        column = table[name]
        if not column.dtype.is_numeric() and column.dtype != pl.Boolean:
            column = id_texts(column) if column.dtype == pl.Binary else column.cast(pl.String, strict=False)
            column = column.str.strip_chars()
        out[:, j] = column.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
        missing = np.isnan(out[:, j])
        if fit is not None and missing.any():
            for cell in column.filter(missing).to_list():
                fit.cell(cell)
    return out


MORAL_KEYS = ("ResponseID", "UserID", "Saved")
MORAL_SITUATION = ("Intervention", "Barrier", "CrossingSignal")
MORAL_CHARACTERS = (
    *("Man", "Woman", "Pregnant", "Stroller", "OldMan", "OldWoman", "Boy", "Girl", "Homeless", "LargeWoman"),
    *("LargeMan", "Criminal", "MaleExecutive", "FemaleExecutive", "FemaleAthlete", "MaleAthlete", "FemaleDoctor"),
    *("MaleDoctor", "Dog", "Cat"),
)


def _moral(wanted: Wanted, names: Sequence[str]) -> Layout:
    """The 23 features that the published file has, or the 20 counts where the spec has as many."""
    features: tuple[str, ...] = MORAL_CHARACTERS
    if wanted.dimension != len(MORAL_CHARACTERS):
        features = (*MORAL_SITUATION, *MORAL_CHARACTERS)
    _check_width(wanted, len(features))
    if not set(features) <= set(names):
        refuse("PS0804", f"the data for {wanted.name} lack a column of the Moral Machine, such as {features[0]}")
    return MoralMachine(features)


@dataclass(frozen=True, slots=True)
class MoralMachine:
    """Two rows a response (Awad et al. 2018, SharedResponses*.csv): the side that is saved, and the other one.

    A record is the saved side minus the other one. Responses that do not have exactly one row of either kind are left
    out, by their own rows alone. A user's responses count in the order of the file.
    """

    features: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are read."""
        return (*MORAL_KEYS, *self.features)

    def arranged(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """One row a response, sorted by user; needs memory for all of them."""
        import polars as pl

        # counts of characters are small whole numbers, exact in four bytes; no others are kept
        saved = pl.col("Saved").cast(pl.Float32, strict=False)
        numbers = [
            pl.col(f).cast(pl.Float64, strict=False).fill_null(float("nan")).cast(pl.Float32) for f in self.features
        ]
        sides = frame.select("UserID", "ResponseID", saved, *numbers).with_row_index("place")
        signed = [(pl.col(f) * (2 * pl.col("Saved") - 1)).sum() for f in self.features]
        whole = (pl.len() == 2) & (pl.col("Saved").min() == 0) & (pl.col("Saved").max() == 1)
        pairs = sides.group_by("UserID", "ResponseID").agg(pl.col("place").min(), whole.alias("whole"), *signed)
        return pairs.filter("whole").sort("UserID", "place").drop("place", "whole", "ResponseID")

    def split(self, wanted: Wanted, table: pl.DataFrame) -> tuple[pl.Series | None, NDArray[np.float64]]:
        """Keys and records."""
        return table["UserID"], _matrix(table, self.features, wanted.fit)


# --- arrays ---------------------------------------------------------------------------------------


def _array(wanted: Wanted, array: NDArray[Any]) -> Rows:
    import polars as pl

    if (wanted.party is None or wanted.only is not None) and array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or array.shape[2] != wanted.dimension or array.dtype.kind not in "biuf":
        refuse(
            "PS0805",
            f"an array for {wanted.name} is of numbers, parties x records x {wanted.dimension} features, and this is "
            + (" x ".join(map(str, array.shape)) or "1"),
        )
    step = max(1, wanted.rows // max(array.shape[1], 1))
    for start in range(0, len(array), step):
        part = np.asarray(array[start : start + step], dtype=np.float64)
        keys = np.repeat(np.arange(start + 1, start + 1 + len(part)), part.shape[1])
        yield pl.Series(keys), part.reshape(-1, wanted.dimension)


_UNNAMED = "\x1e"
"""Before the place of an item that names no party: no canonical text has it."""


def _listed(wanted: Wanted, found: list[Any]) -> Rows:
    """A list in which every item is judged by itself.

    An object is a row of a table, under the names that the spec has; another item holds the records of one party, or,
    where the data are of a single one, is a record. An item that names no party is one by itself.
    """
    import polars as pl

    def entry(cell: Any) -> float:
        value = number(cell)
        if value != value and wanted.fit is not None:
            wanted.fit.cell(cell)
        return value

    for start in range(0, len(found), wanted.rows):
        keys, rows = list[str | None](), list[list[Any]]()
        for place, item in enumerate(found[start : start + wanted.rows], start):
            key, records = _of_item(wanted, item, f"{_UNNAMED}{place}")
            keys += [key] * len(records)
            rows += records
        values = np.array([[entry(cell) for cell in row] for row in rows], dtype=np.float64)
        whose = pl.Series(keys, dtype=pl.String)
        yield whose.drop_nulls(), values.reshape(-1, wanted.dimension)[whose.is_not_null().to_numpy()]


def _of_item(wanted: Wanted, item: Any, unnamed: str) -> tuple[str | None, list[list[Any]]]:
    """Whose an item is, None where it is nobody's here, and its records; missing where one has not all numbers."""
    party, alone = wanted.party, wanted.party is None or wanted.only is not None
    key: str | None = "" if alone else unnamed
    if isinstance(item, Mapping):
        names = Fields(wanted.name, wanted.dimension).columns
        records = [item[wanted.name] if wanted.name in item else [item.get(name) for name in names]]
        if party in item:
            said = id_text(item[party])
            key = said if wanted.only is None else key if said == id_text(wanted.only) else None
    else:
        records = [item] if alone else _items(item)[: wanted.count] or [None]
    missing = [None] * wanted.dimension
    return key, [row if len(row := _items(record)) == wanted.dimension else missing for record in records]


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


# --- records in steps -----------------------------------------------------------------------------


LARGEST = 2.0**40
"""Entries of records without a ball count as this at most, so that their steps fit into 64 bits."""
LARGEST_RADIUS = 2**10
"""Of a ball of records: products of two records in steps fit into 64 bits."""


def to_steps(values: NDArray[np.float64], radius: Fraction | None) -> tuple[Steps, NDArray[np.bool_]]:
    """Records (m, d) in steps of `GRID`, and which of them were as the domain says.

    A record with a number that is missing or not finite becomes zero; one outside the ball is drawn in to it; then
    every number is rounded towards zero. Its squared norm in steps, an integer, is at most that of the radius. What
    becomes of a record depends on nothing but the record.
    """
    finite: NDArray[np.bool_] = np.all(np.isfinite(values), axis=1)
    known = values if finite.all() else np.where(finite[:, None], values, 0.0)
    if radius is None:
        fits: NDArray[np.bool_] = finite & (np.abs(known) <= LARGEST).all(axis=1)
        return np.trunc(np.clip(known, -LARGEST, LARGEST) * 2.0**GRID_BITS).astype(np.int64), fits
    if not 0 < radius <= LARGEST_RADIUS:
        raise ValueError(f"records in a ball of radius {radius}: execution takes radii up to {LARGEST_RADIUS}")
    inside, drawn = _drawn_in(known, float(radius))
    # a whole number of steps: a cast to integers rounds towards zero
    return _shortened((drawn * 2.0**GRID_BITS).astype(np.int64), radius), finite & inside


def _drawn_in(values: NDArray[np.float64], radius: float) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Nearest points of the ball, up to the rounding of doubles."""
    largest = np.max(np.abs(values), axis=1, initial=0.0)[:, None]
    directions = values / np.where(largest > 0, largest, 1.0)
    squares = np.zeros(len(values))
    for column in directions.T:  # a sum in a fixed order: how a library groups it could depend on other records
        squares += column * column
    lengths = np.sqrt(squares)[:, None]
    with np.errstate(over="ignore"):
        inside = largest * lengths <= radius * (1 + 1e-12)
    directions *= radius / np.maximum(lengths, 1.0)
    return inside[:, 0], np.where(inside, values, directions)


def _shortened(steps: Steps, radius: Fraction) -> Steps:
    """Records that are longer than the radius, by the rounding of doubles, one step shorter until they are not."""
    limit = int(radius * radius * 2 ** (2 * GRID_BITS))
    over = np.flatnonzero((steps * steps).sum(axis=1) > limit)
    while over.size:
        shorter = steps[over] - np.sign(steps[over])
        steps[over] = shorter
        over = over[(shorter * shorter).sum(axis=1) > limit]
    return steps


Block: TypeAlias = "tuple[pl.Series, Steps]"
"""Keys of some parties, as texts, and their records (M, n, d) in steps."""


@dataclass(slots=True)
class Gatherer:
    """Turns rows into blocks of parties; the party of the last row stays open until another one begins."""

    party: str
    count: int
    dimension: int
    _open: str | None = None
    _filled: int = 0
    _records: Steps = field(init=False)
    _seen: list[pl.Series] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._records = self._zeros(1)[0]

    def _zeros(self, parties: int) -> Steps:
        return np.zeros((parties, self.count, self.dimension), dtype=np.int64)

    def blocks(self, batches: Iterable[tuple[pl.Series, Steps]]) -> Iterator[Block]:
        """Parties with their records, in the order of the rows.

        Args: batches of rows, the key of each row's party (none missing) and its record.
        Raises: DataError PS0812 if rows of a party do not stand together, once all were read.
        """
        import polars as pl

        for keys, records in batches:
            if len(records):
                yield self._add(keys, records)
        if self._open is not None:
            self._seen.append(pl.Series([self._open]))
            yield self._seen[-1], self._records[None]
            every = pl.concat(self._seen)
            if every.n_unique() < len(every):
                refuse_scattered(self.party)

    def _add(self, keys: pl.Series, records: Steps) -> Block:
        import polars as pl

        begins = keys.ne_missing(keys.shift(1)).to_numpy().copy()
        begins[0] = keys.head(1).cast(str)[0] != self._open
        starts = np.flatnonzero(begins)
        group = np.cumsum(begins)
        place = np.arange(len(records)) - np.concatenate([[-self._filled], starts])[group]
        gathered = self._zeros(len(starts) + 1)
        gathered[0] = self._records
        kept = place < self.count
        gathered[group[kept], place[kept]] = records[kept]
        names = keys.gather(starts).cast(pl.String)
        begin = 1 if self._open is None else 0
        if self._open is not None:
            names = pl.concat([pl.Series([self._open]), names])
        self._records, self._filled = gathered[-1].copy(), int(place[-1]) + 1
        self._open = names[-1]
        self._seen.append(names[:-1])
        return names[:-1], gathered[begin:-1]


def refuse_scattered(party: str) -> NoReturn:
    """Which party it is stays unsaid."""
    refuse(
        "PS0812",
        f"the rows of one {party} do not stand together",
        "nothing was drawn and nothing was spent",
        help=f"sort the data by {party}; the order of the rows of one {party} should stay as it is",
    )
