"""Counts the records of a table in the cells of its declared product domain, without holding all records."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import floor, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privspec.execute.arrays import Declared, is_frame, load_json, number, read_entries
from privspec.execute.executed import Attribute, ExecutedInput
from privspec.execute.frames import collect, column_names, load_frame, readable
from privspec.execute.keeper import Keeper
from privspec.execute.problems import refuse, refuse_strictly

if TYPE_CHECKING:
    import polars as pl

NO_PLACE = -1
"""The code of a value that is missing or not in its attribute's domain."""


def count_cells(
    entry: ExecutedInput,
    attributes: tuple[Attribute, ...],
    source: Any,
    *,
    strict: bool,
    header: bool = True,
    keeper: Keeper | None = None,
) -> NDArray[np.int64]:
    """How many records fall into each cell, cells row-major in the order of the attributes: (k,).

    A table of records has a column for each attribute. An array of the cells' own shape, or one column
    `count`, is taken as the counts themselves. Without a header the columns are the attributes in their order.
    Raises: DataError (PS0803 to PS0809).
    """
    sizes = tuple(a.size for a in attributes)
    if attributes and prod(sizes) != entry.size:
        refuse("PS0804", f"the attributes of {entry.name} do not make {entry.size} cells")
    keeper, names = keeper or Keeper(), [a.name for a in attributes]
    if isinstance(source, Path) and source.suffix.lower() == ".json":
        source = _document(entry, names, source)
    if not attributes or (not is_frame(source) and (not isinstance(source, Path) or source.suffix.lower() == ".npy")):
        return _given_counts(entry, entry.name, sizes, source, strict=strict, header=header)
    frame = load_frame(entry.name, source, None if header else names)
    found = column_names(entry.name, frame)
    if found == ["count"] and "count" not in names:
        return _given_counts(entry, "count", sizes, source, strict=strict, header=header)
    missing = [name for name in names if name not in found]
    if missing:
        refuse(
            "PS0804",
            f"the data for {entry.name} have no column {', '.join(missing)}",
            help=f"the first line names the columns: {', '.join(a.name for a in attributes)}",
        )
    return _count(entry, attributes, readable(entry.name, frame, names), keeper, strict=strict)


def _document(entry: ExecutedInput, names: list[str], path: Path) -> Any:
    """A JSON file as a table, where it holds records or columns under the names of the attributes; else as it is."""
    found = load_json(entry.name, path)
    if isinstance(found, list) and found and all(isinstance(item, dict) for item in found):
        keys = dict.fromkeys(str(key) for item in found for key in item)
        found = {key: [item.get(key) for item in found] for key in keys}
    if isinstance(found, dict) and not set(names) <= set(found):
        found = found.get(entry.name, found.get("count") if list(found) == ["count"] else found)
    return found


def _given_counts(
    entry: ExecutedInput, column: str, sizes: tuple[int, ...], source: Any, *, strict: bool, header: bool
) -> NDArray[np.int64]:
    """Counts that were made elsewhere; each becomes the nearest whole number from 0."""
    shaped = sizes if isinstance(source, np.ndarray) and source.shape == sizes else (entry.size,)
    values = read_entries(Declared(column, shaped), source, header=header)
    if strict and not np.all((values >= 0) & (values == np.rint(values)) & (values < 2**53)):
        refuse_strictly(entry.name)
    return np.rint(np.clip(np.nan_to_num(values, nan=0.0), 0, 2.0**53)).astype(np.int64)


def _count(
    entry: ExecutedInput, attributes: tuple[Attribute, ...], frame: pl.LazyFrame, keeper: Keeper, *, strict: bool
) -> NDArray[np.int64]:
    import polars as pl

    names = [a.name for a in attributes]
    # only one row for each combination of values that occurs is ever held
    grouped = collect(entry.name, frame.group_by(names).agg(pl.len().alias("_records")))
    records = grouped["_records"].to_numpy().astype(np.int64)
    if entry.records is not None and int(records.sum()) != entry.records:
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
        _tell(entry, attribute, keeper, table, column, records)
        fits &= codes != NO_PLACE
        cells = cells * attribute.size + np.maximum(codes, 0)
    if strict and not exact:
        refuse_strictly(entry.name)
    if entry.drops:
        lost = int(records[~fits].sum())
        if lost:
            keeper.remark(entry.name, f"{lost:,} of {int(records.sum()):,} records fit no cell and are left out")
        cells, records = cells[fits], records[fits]
    counts = np.zeros(entry.size, dtype=np.int64)
    np.add.at(counts, cells, records)
    return counts


def _tell(
    entry: ExecutedInput,
    attribute: Attribute,
    keeper: Keeper,
    table: dict[Any, tuple[int, bool]],
    column: list[Any],
    records: NDArray[np.int64],
) -> None:
    """How the values of an attribute fit, for the keeper."""
    ends: tuple[float | None, float | None] = (None, None)
    if not attribute.values:
        ends = (float(attribute.lower), float(attribute.upper))
    first = attribute.values[0] if attribute.values else str(attribute.lower)
    fate = "their records are left out" if entry.drops else f"each counts as {first}"
    fit = keeper.fit(entry.name, attribute.name, fate=fate, words=attribute.values, lower=ends[0], upper=ends[1])
    fit.rows += int(records.sum())
    counted: dict[Any, int] = dict.fromkeys(table, 0)
    for value, count in zip(column, records.tolist(), strict=True):
        counted[value] += count
    for value, count in counted.items():
        place, fits = table[value]
        if place == NO_PLACE:
            fit.cell(value, count)
        elif not attribute.values:
            fit.numbers(np.array([number(value)]), times=count)
            fit.outside += count * (not fits and attribute.lower < number(value) < attribute.upper)


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
