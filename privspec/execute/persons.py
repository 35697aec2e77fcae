"""Tables of persons, and columns that are looked up by an id, made of the records that a run is given.

What is made stands in the place of the data and is read as they would be. Every engine makes the same cells: an id is
its text by the rule of `cells`, a value is that of `statistic` for its column, so a record counts by its own cells
alone; what they come to is the same in any order of records (`gathering`). Only then is it bounded, which is where a
column of the table is read. A record without an id is nobody's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privspec.core.diagnostics import DataError
from privspec.core.records import dataclass, replace
from privspec.execute import sources, warehouse
from privspec.execute.data import located
from privspec.execute.engines import records_of
from privspec.execute.family import RunContext, readable_plan
from privspec.execute.gathering import GATHERING, parts_of
from privspec.execute.keeper import given_for, refuse
from privspec.execute.persons_asked import query_of
from privspec.execute.reading import number
from privspec.execute.statistic import NO_PLACE, Attribute, computed_in_frame, quantity
from privspec.kernel.core.problem import read_frame
from privspec.kernel.core.reading import JsonNode
from privspec.kernel.derived import Derived

if TYPE_CHECKING:
    import polars as pl

    from privspec.kernel.core.problem import Data
    from privspec.kernel.persons import Gathered, People

PERSON = "privspec: whose"
"""The column of ids in what is gathered, which no table has."""
RECORDS = "privspec: records"
"""How many records were gathered."""


def gathered(data: Sequence[Data], inputs: Mapping[str, Any], said: RunContext) -> Mapping[str, Any]:
    """The data of a run, by input: tables of persons, and columns that are looked up, in place of what these are of.

    Raises: DataError PS0801 to PS0804.
    """
    found, used, held = dict(inputs), set[str](), {one.name for one in data}
    for one in data:
        if one.people is None:
            continue
        tables = one.people.tables
        names = tuple(tables) if one.people.persons else (one.name, *tables)
        given = {
            name: _Records.of(
                name, given_for(name, inputs), _columns(one, one.people, name), said, whole=name not in tables
            )
            for name in names
        }
        used |= {*names} - held
        of_files = {table: sources.with_folder(records.source) for table, records in given.items()}
        whose = None if one.kept is None or one.people.persons else one.kept.person
        query = query_of(one.name, one.people, of_files, whose, {n: r.tell for n, r in given.items()})
        found[one.name] = _frame(one, one.people, given) if query is None else query
    return {name: source for name, source in found.items() if name not in used} if used else found


def of_plan(plan: Mapping[str, Any], inputs: Mapping[str, Any], said: RunContext) -> Mapping[str, Any]:
    """The same for a plan, or a document that has the problem alone.

    Raises: DataError PS0801 to PS0804; UsageError PS0820.
    """
    with readable_plan():
        frame = read_frame(JsonNode(plan["problem"], "problem"))
    return gathered(frame.data, inputs, said)


def _columns(one: Data, people: People, table: str) -> list[str]:
    """The columns that are looked at of the records of a table, whose they are first."""
    ids = [people.tables[table]] if table in people.tables else []
    if one.kept is not None and table == one.name:
        ids.append(one.kept.person)
    own = (column for column in people.gathered if column.source.table == table)
    cells = [source.name for column in own for part in parts_of(column) for source in part.columns]
    return list(dict.fromkeys([*ids, *cells]))


@dataclass(frozen=True, eq=False, slots=True)
class _Records:
    """Records that a run is given, and the columns of them that are looked at."""

    name: str
    source: Any
    columns: Sequence[str]
    said: RunContext

    @classmethod
    def of(cls, name: str, source: Any, columns: Sequence[str], said: RunContext, *, whole: bool) -> _Records:
        """Of data as they are given, of which more columns are read later where it is of the `whole`.

        Raises: DataError PS0802 to PS0804.
        """
        found = located(name, source)
        if isinstance(found, Path) and found.suffix.lower() == ".json":
            loaded = sources.load_json(name, found)
            if isinstance(loaded, dict) and not set(columns) <= set(loaded):
                loaded = loaded.get(name, loaded)
            if isinstance(loaded, list) and whole:
                text = f"{name} is a list of objects, and columns of other tables are looked up for it"
                refuse("PS0804", text, help="give an object of columns, CSV or Parquet")
            found = sources.looked_up(loaded, columns) if isinstance(loaded, list) else loaded
        if warehouse.in_spark(found):
            text = f"{name} is gathered person by person, which is not asked of Spark"
            refuse("PS0804", text, help="give Parquet files, or a table of a database")
        if not (sources.is_frame(found) or isinstance(found, Path)) or not said.texts.header:
            hint = f"a column named {columns[0]} says whose each record is"
            refuse("PS0804", f"{name} is read person by person: give records under named columns", help=hint)
        records = records_of(name, found, said.texts, columns)
        records.check(columns)
        for remark in records.remarks(columns):
            said.keeper.remark(name, remark)
        return cls(name, found, columns, said)

    def tell(self, nobody: int, total: int, whose: str) -> None:
        """For the keeper alone: how many records say nobody's id."""
        self.said.keeper.left_out(self.name, nobody, total, f"say no {whose}")

    def collected(self, of: Callable[[pl.LazyFrame], pl.LazyFrame]) -> pl.DataFrame:
        """What is made of the frame; of files again where their bytes are no text."""
        try:
            return sources.collect(self.name, of(sources.load_frame(self.name, self.source, self.said.texts)))
        except DataError:
            folder = self.source if isinstance(self.source, sources.Folder) else None
            files = folder.files if folder else (self.source,)
            if not all(isinstance(file, Path) for file in files):
                raise
        parts = (sources.mended(self.name, [f], folder.said(f) if folder else {}).lazy() for f in files)
        import polars as pl

        return sources.collect(self.name, of(pl.concat(parts, how="diagonal_relaxed")))


# --- polars ---------------------------------------------------------------------------------------


def _frame(one: Data, people: People, given: Mapping[str, _Records]) -> pl.DataFrame:
    """The table as a frame."""
    import polars as pl

    parts = []
    for table, whose in people.tables.items():
        own, records = [o for o in people.gathered if o.source.table == table], given[table]
        part = records.collected(partial(_by_person, table, whose, own))
        nobody = int(part.filter(pl.col(PERSON).is_null())[RECORDS].sum())
        records.tell(nobody, int(part[RECORDS].sum()), whose)
        parts.append(part.filter(pl.col(PERSON).is_not_null()).drop(RECORDS))
    if people.persons:
        rows = pl.concat([part.select(PERSON) for part in parts]).unique()
    else:
        assert one.kept is not None
        names = [own.name for own in people.gathered]
        rows = given[one.name].collected(lambda frame: frame.drop(names, strict=False))
        whose = one.kept.person
        ids = sources.collect(one.name, sources.readable(one.name, rows.lazy(), (), (whose,)))[whose]
        rows = rows.with_columns(ids.cast(pl.String).alias(PERSON))
    for part in parts:
        rows = rows.join(part, on=PERSON, how="left")
    nothing = {own.name: GATHERING[own.way].nothing for own in people.gathered}
    rows = rows.with_columns(pl.col(name).fill_null(value) for name, value in nothing.items() if value is not None)
    return rows.rename({PERSON: people.persons[0].id}) if people.persons else rows.drop(PERSON)


def _by_person(table: str, whose: str, columns: Sequence[Gathered], frame: pl.LazyFrame) -> pl.LazyFrame:
    """What the records of each person come to, by the text of their id."""
    import polars as pl

    parts = [replace(part, name=f"{i} {k}") for i, own in enumerate(columns) for k, part in enumerate(parts_of(own))]
    cells = list(dict.fromkeys(source.name for part in parts for source in part.columns if source.name != whose))
    again = [source.name for part in parts for source in part.columns if source.name == whose]
    computed = [part for part in parts if part.formula is not None]
    listed = [part for part in parts if part.formula is None]
    of_parts = (Attribute.source(part.columns[0]) for part in listed)
    clocks = {one.name: one.clock for one in of_parts if one.clock is not None}
    plain = sources.readable(table, frame.with_columns(pl.col(whose).alias(PERSON)), [*cells, *again], [PERSON], clocks)
    schema, read = plain.collect_schema(), list[pl.Expr]()
    for name in dict.fromkeys(s.name for part in computed for s in part.columns):
        if schema[name] == pl.String:
            values = pl.col(name).map_batches(
                lambda column: pl.Series(column.name, sources.numbers_at_once(column, number)),
                return_dtype=pl.Float64,
                is_elementwise=True,
            )
            read.append(values.alias(quantity(name)))
    texts = (pl.col(name).cast(pl.String) for name in schema if name == PERSON or schema[name] == pl.Date)
    plain = plain.with_columns(*read, *texts)
    plain = computed_in_frame(computed, plain)
    plain = plain.with_columns(_place(part).alias(part.name) for part in listed)
    made = (_aggregate(i, own).alias(own.name) for i, own in enumerate(columns))
    return plain.group_by(PERSON).agg(pl.len().alias(RECORDS), *made)


def _place(part: Derived) -> pl.Expr:
    """Which label a record has."""
    import polars as pl

    lookup, labels = Attribute.source(part.columns[0]).lookup(), part.labels

    def places(column: pl.Series) -> pl.Series:
        cells = column.unique().to_list()
        found = {cell: lookup(cell)[0] for cell in cells if cell is not None}
        known = {cell: labels[part.places[at]] for cell, at in found.items() if at != NO_PLACE}
        return column.replace_strict(list(known), list(known.values()), default=None, return_dtype=pl.String)

    cell, (none, _) = pl.col(part.columns[0].name), lookup(None)
    found = cell.map_batches(places, return_dtype=pl.String, is_elementwise=True)
    return (
        found if none == NO_PLACE else pl.when(cell.is_null()).then(pl.lit(labels[part.places[none]])).otherwise(found)
    )


def _aggregate(i: int, own: Gathered) -> pl.Expr:
    """What records come to, of those of which the conditions hold."""
    import polars as pl

    holds = [pl.col(f"{i} {k}").is_in(labels).fill_null(value=False) for k, labels in enumerate(own.holds)]
    # a literal is no column of a group
    held = pl.all_horizontal(holds) if holds else pl.col(PERSON).is_not_null()
    if own.value is None:
        return GATHERING[own.way].frame(held, None)
    value, labels = pl.col(f"{i} {len(holds)}"), own.value.labels
    places = {label: at for at, label in enumerate(labels)}
    if labels:
        value = value.replace_strict(places, default=None, return_dtype=pl.Int64)
    found = GATHERING[own.way].frame(pl.when(held).then(value), own.value)
    if labels:
        found = found.replace_strict(dict(enumerate(labels)), default=None, return_dtype=pl.String)
    return found
