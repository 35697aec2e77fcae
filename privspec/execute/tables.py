"""Counts the records of a table in the cells of its declared product domain, without holding all records."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import floor, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privspec.execute.arrays import Declared, is_frame, number, read_entries
from privspec.execute.executed import Attribute, ExecutedInput
from privspec.execute.frames import collect, column_names, load_frame
from privspec.execute.problems import refuse, refuse_strictly

if TYPE_CHECKING:
    import polars as pl

NO_PLACE = -1
"""The code of a value that is missing or not in its attribute's domain."""


def count_cells(
    entry: ExecutedInput, attributes: tuple[Attribute, ...], source: Any, *, strict: bool
) -> NDArray[np.int64]:
    """How many records fall into each cell, cells row-major in the order of the attributes: (k,).

    A table of records has a column for each attribute. An array of the cells' own shape, or one column
    `count`, is taken as the counts themselves.
    Raises: DataError (PS0803 to PS0809).
    """
    sizes = tuple(a.size for a in attributes)
    if attributes and prod(sizes) != entry.size:
        refuse("PS0804", f"the attributes of {entry.name} do not make {entry.size} cells")
    if isinstance(source, Path) and source.suffix.lower() in (".npy", ".json"):
        return _given_counts(entry, sizes, source, strict=strict)
    if not isinstance(source, Path) and not is_frame(source):
        return _given_counts(entry, sizes, source, strict=strict)
    frame = load_frame(entry.name, source)
    found = column_names(entry.name, frame)
    if not attributes or (found == ["count"] and "count" not in [a.name for a in attributes]):
        return _given_counts(entry, sizes, source, strict=strict)
    missing = [a.name for a in attributes if a.name not in found]
    if missing:
        refuse(
            "PS0804",
            f"the data for {entry.name} have no column {', '.join(missing)}",
            help=f"the first line names the columns: {', '.join(a.name for a in attributes)}",
        )
    return _count(entry, attributes, frame, strict=strict)


def _given_counts(entry: ExecutedInput, sizes: tuple[int, ...], source: Any, *, strict: bool) -> NDArray[np.int64]:
    """Counts that were made elsewhere; each becomes the nearest whole number from 0."""
    shaped = sizes if isinstance(source, np.ndarray) and source.shape == sizes else (entry.size,)
    values = read_entries(Declared(entry.name, shaped), source)
    if strict and not np.all((values >= 0) & (values == np.rint(values)) & (values < 2**53)):
        refuse_strictly(entry.name)
    return np.rint(np.clip(np.nan_to_num(values, nan=0.0), 0, 2.0**53)).astype(np.int64)


def _count(
    entry: ExecutedInput, attributes: tuple[Attribute, ...], frame: pl.LazyFrame, *, strict: bool
) -> NDArray[np.int64]:
    import polars as pl

    names = [a.name for a in attributes]
    # only one row for each combination of values that occurs is ever held
    grouped = collect(entry.name, frame.select(names).group_by(names).agg(pl.len().alias("_records")))
    if entry.records is not None and int(grouped["_records"].sum()) != entry.records:
        # the number is public: it is in the spec, and every neighbouring table has it too
        text = f"the spec says that {entry.name} has {entry.records:,} records, and the data have another number"
        refuse("PS0805", text, help="declare it as table(...) if any number of records may come")
    cells = np.zeros(grouped.height, dtype=np.int64)
    fits = np.ones(grouped.height, dtype=bool)
    exact = True
    for attribute in attributes:
        lookup = _lookup(attribute)
        column = grouped[attribute.name].to_list()
        table = {value: lookup(value) for value in set(column)}
        codes = np.array([table[value][0] for value in column], dtype=np.int64)
        exact = exact and all(fitting for _, fitting in table.values())
        fits &= codes != NO_PLACE
        cells = cells * attribute.size + np.maximum(codes, 0)
    if strict and not exact:
        refuse_strictly(entry.name)
    records = grouped["_records"].to_numpy().astype(np.int64)
    if entry.drops:
        cells, records = cells[fits], records[fits]
    counts = np.zeros(entry.size, dtype=np.int64)
    np.add.at(counts, cells, records)
    return counts


def _lookup(attribute: Attribute) -> Callable[[Any], tuple[int, bool]]:
    """From a value as it was read to its place in the attribute's domain, and whether it fits exactly."""
    if not attribute.values:
        return lambda value: _nearest_integer(attribute, value)
    words = {text: place for place, text in enumerate(attribute.values)}
    quantities = {
        quantity: place
        for place, text in enumerate(attribute.values)
        if (quantity := number(_decimal(text))) == quantity
    }

    def place(value: Any) -> tuple[int, bool]:
        text = str(value).strip()
        found = words.get(text, quantities.get(number(value), NO_PLACE))
        return found, found != NO_PLACE

    return place


def _decimal(text: str) -> Any:
    """A number that may be written as a fraction."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def _nearest_integer(attribute: Attribute, value: Any) -> tuple[int, bool]:
    quantity = number(value)
    if quantity != quantity:
        return NO_PLACE, False
    nearest = floor(min(max(quantity, attribute.lower), attribute.upper) + 0.5)
    return nearest - attribute.lower, nearest == quantity
