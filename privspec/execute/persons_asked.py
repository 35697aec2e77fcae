"""What `persons` makes, as one SELECT over tables of a database or files of Parquet: the same cells.

Texts are compared as they stand, so a database is asked where every text that is looked at is the one text of its cell
(`cells`), which one query says; else all records are read. Which way was taken changes no cell of what is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from privspec.core.diagnostics import DataError
from privspec.core.records import dataclass
from privspec.execute import sources, warehouse
from privspec.execute.cells import ID_AS_IT_STANDS, id_text
from privspec.execute.gathering import GATHERING, parts_of
from privspec.execute.reading import number
from privspec.execute.statistic import NO_PLACE, Attribute
from privspec.kernel.derived import Derived, SourceColumn

if TYPE_CHECKING:
    from privspec.kernel.persons import Gathered, People

ID, WHOSE = '"privspec: id"', '"privspec: whose"'
"""Columns that no table has."""


@dataclass(frozen=True, eq=False, slots=True)
class Asked:
    """Records of a table: what is asked for them, and what each column holds."""

    source: str
    kinds: Mapping[str, str]

    def text(self, column: str, pattern: str = ID_AS_IT_STANDS) -> tuple[str, str | None]:
        """The text of each cell, and when it is not the one text of its cell.

        Raises: RowsNeededError for a kind whose texts a database writes in its own way.
        """
        quoted, kind = warehouse.name_of(column), self.kinds[column]
        if warehouse.is_whole(kind):
            return f"CAST({quoted} AS VARCHAR)", None
        if not warehouse.is_text(kind):
            raise warehouse.RowsNeededError
        cell = f"CAST({quoted} AS VARCHAR) COLLATE C"
        return cell, f"NOT regexp_matches(CAST({quoted} AS VARCHAR), {warehouse.text_of(pattern)})"

    def place(self, column: SourceColumn, labels: Sequence[str]) -> tuple[str, str | None]:
        """Which label a record has by the value of a column, and when its text would have to be looked at."""
        quoted, kind, attribute = warehouse.name_of(column.name), self.kinds[column.name], Attribute.source(column)
        if column.lower is not None and column.upper is not None:
            x = warehouse.double_of(column.name, kind)
            if x is None:
                raise warehouse.RowsNeededError
            listed = ", ".join(map(warehouse.text_of, labels))
            near = warehouse.clipped(x, column.ends)
            at = f"CAST(floor({near} + 0.5e0) AS BIGINT) - {column.lower} + 1"
            return f"CASE WHEN {x} IS NULL OR isnan({x}) THEN NULL ELSE ([{listed}])[{at}] END", None
        clock = attribute.clock
        if clock is not None and kind in warehouse.MOMENTS:
            cell, odd = clock.sql(warehouse.MOMENTS[kind].format(quoted)), None
        else:
            cell, odd = self.text(column.name, ID_AS_IT_STANDS if clock is None else clock.pattern)
        words = {id_text(text) or text: label for text, label in zip(column.values, labels, strict=True)}
        words |= dict(zip(column.values, labels, strict=True))
        if clock is None and any(number(text) == number(text) or "/" in text for text in words):
            raise warehouse.RowsNeededError  # "01" is a 1 as well
        if odd is not None:  # most cells are words, and no pattern is asked for these
            odd = f"CASE WHEN {cell} IN ({', '.join(map(warehouse.text_of, words))}) THEN false ELSE {odd} END"
        each = " ".join(f"WHEN {warehouse.text_of(text)} THEN {warehouse.text_of(own)}" for text, own in words.items())
        none, _ = attribute.lookup()(None)
        known = f"CASE {cell} {each} END"
        if none != NO_PLACE:
            missing = warehouse.text_of(labels[none])
            known = f"coalesce({known}, CASE WHEN {quoted} IS NULL THEN {missing} END)"
        return known, odd


def asked(table: str, source: Any) -> tuple[Asked, Any] | None:
    """What is asked for records, and of which database; None where rows are read."""
    if isinstance(source, warehouse.Table):
        records = warehouse.OfTable(table, source)
        return Asked(records.source, records.kinds), source.path
    if isinstance(source, sources.Folder):
        text = warehouse.OfParquet(table, source).one_source()
        return None if text is None else (Asked(*text), None)
    return None


def query_of(
    name: str, people: People, given: Mapping[str, Any], whose: str | None, told: Mapping[str, Any]
) -> warehouse.Table | None:
    """The table as what is asked of a database; None where records have to be read.

    Args: given, the data of each table; whose, the column of ids of a table that columns are looked up for; told, by
        table, hears how many records say nobody's id, and of how many, by which column.
    """
    found = {table: asked(table, source) for table, source in given.items()}
    paths = {None if one is None else str(one[1]) for one in found.values()}
    known = {table: one[0] for table, one in found.items() if one is not None}
    if len(known) < len(found) or len(paths) > 1 or (whose is not None and paths == {"None"}):
        return None
    (path,) = {one[1] for one in found.values() if one is not None}
    try:
        query, odd = _query(name, people, known, whose)
    except warehouse.RowsNeededError:
        return None
    with suppress(DataError), warehouse.connection(name, path) as database:
        if database is not None and not any(
            warehouse.row_of(name, database, f"SELECT 1 FROM {one} LIMIT 1") for one in odd
        ):
            for table, column in people.tables.items():
                asked_for = f"SELECT count(*), count({warehouse.name_of(column)}) FROM {known[table].source}"
                total, with_id = warehouse.row_of(name, database, asked_for)
                told[table](total - with_id, total, column)
            return warehouse.Table(path, "", name, query)
    return None


def _query(name: str, people: People, known: Mapping[str, Asked], whose: str | None) -> tuple[str, list[str]]:
    """The SELECT, and what would have to be empty for it to be asked."""
    parts, odd, columns = list[str](), list[str](), dict[str, str]()
    for k, (table, column) in enumerate(people.tables.items()):
        own, records = [one for one in people.gathered if one.source.table == table], known[table]
        # whole numbers are told apart as such, many times as fast as by their texts
        number_of = warehouse.name_of(column) if warehouse.is_whole(records.kinds[column]) else None
        person, strange = records.text(column)
        cells, doubts = [f"{number_of or person} AS {ID}"], [strange]
        for i, one in enumerate(own):
            for j, derived in enumerate(parts_of(one)):
                cell, doubt = _cell(records, derived)
                cells.append(f"{cell} AS cell_{i}_{j}")
                doubts.append(doubt)
        whole = f"CAST({ID} AS VARCHAR)" if number_of else ID
        sums = "".join(f",\n  {_gathered(i, one)} AS {warehouse.name_of(one.name)}" for i, one in enumerate(own))
        parts.append(f"records_{k} AS (\n  SELECT {', '.join(cells)}\n  FROM {records.source}\n)")
        told = f"FROM records_{k} WHERE {ID} IS NOT NULL GROUP BY {ID}"
        parts.append(f"persons_{k} AS (\n  SELECT {whole} AS {WHOSE}{sums}\n  {told}\n)")
        columns |= {o.name: GATHERING[o.way].or_nothing(f"persons_{k}.{warehouse.name_of(o.name)}") for o in own}
        odd += [f"{records.source} WHERE {' OR '.join(filter(None, doubts))}"] if any(doubts) else []
    listed = [f"{cell} AS {warehouse.name_of(column)}" for column, cell in columns.items()]
    first, *others = (f"persons_{k}" for k in range(len(people.tables)))
    if whose is None:
        head, of = f"everybody.{WHOSE} AS {warehouse.name_of(people.persons[0].id)}", f"{first} AS everybody"
        if others:
            every = " UNION ".join(f"SELECT {WHOSE} FROM {one}" for one in (first, *others))
            of, others = f"({every}) AS everybody", [first, *others]
        else:
            listed = [one.replace(f"{first}.", "everybody.") for one in listed]
    else:
        own_records = known[name]
        text, strange = own_records.text(whose)
        odd += [f"{own_records.source} WHERE {strange}"] if strange else []
        kept = (warehouse.name_of(column) for column in own_records.kinds if column not in columns)
        head, of, others = ", ".join(f"everybody.{one}" for one in kept), "own AS everybody", [first, *others]
        parts.append(f"own AS (\n  SELECT *, {text} AS {WHOSE} FROM {own_records.source}\n)")
    joins = "".join(f"\nLEFT JOIN {one} ON {one}.{WHOSE} = everybody.{WHOSE}" for one in others)
    return f"WITH {', '.join(parts)}\nSELECT {', '.join([head, *listed])}\nFROM {of}{joins}", odd


def _cell(records: Asked, derived: Derived) -> tuple[str, str | None]:
    """What a record has of a value or condition."""
    if derived.formula is None:
        return records.place(derived.columns[0], [derived.labels[at] for at in derived.places])
    doubles = {one.name: warehouse.double_of(one.name, records.kinds[one.name]) for one in derived.columns}
    known = {column: x for column, x in doubles.items() if x is not None}
    if len(known) < len(doubles):
        raise warehouse.RowsNeededError
    return warehouse.computed(derived, known), None


def _gathered(i: int, one: Gathered) -> str:
    """What the records of a person come to."""
    told = enumerate(", ".join(map(warehouse.text_of, labels)) for labels in one.holds)
    held = " AND ".join(f"coalesce(cell_{i}_{k} IN ({listed}), false)" for k, listed in told) or "true"
    x, labels = f"cell_{i}_{len(one.when)}", () if one.value is None else one.value.labels
    if labels:
        places = " ".join(f"WHEN {warehouse.text_of(own)} THEN {k + 1}" for k, own in enumerate(labels))
        x = f"CASE {x} {places} END"
    found = GATHERING[one.way].query(x, held, one.value)
    return f"([{', '.join(map(warehouse.text_of, labels))}])[{found}]" if labels else found
