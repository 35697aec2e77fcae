"""Tables of counts of one table, some along columns in order as running totals or ranges, in numbers.

As in `marginals`, nothing of the number of cells of the whole table is built; of the columns in order all cells are.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import ClassVar

from privspec.core.records import dataclass
from privspec.language.spelling import spell
from privspec.model.graph import Model, once
from privspec.model.library import Tally
from privspec.model.reports import Failure, listing
from privspec.problem.linear import Column, _column
from privspec.problem.marginals import OtherFormError, Reader, gaussian, plain, size_of, summed

MOST_CELLS = 512
"""Of the columns in order together: strategies for more of them are not looked for."""
MOST_ENTRIES = 2**22
"""Of all strategies together."""


@dataclass(frozen=True, slots=True)
class Table:
    """Counts by some columns, along some of them running totals or all ranges; the last column runs fastest.

    `weight`: of its squared errors in the loss.
    """

    columns: tuple[int, ...]
    running: tuple[int, ...]
    ranges: tuple[int, ...]
    weight: Fraction


@dataclass(frozen=True, slots=True)
class Answers:
    """An output: tables, one after another."""

    name: str
    shape: tuple[int, ...]
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class OrderedBlock:
    """Counts of the records of a table by some of its columns; the loss is the weighted sum of squared errors."""

    FORM: ClassVar[str] = "ordered"

    source: str
    columns: tuple[Column, ...]
    records: int | None
    released: tuple[Answers, ...]
    loss: str
    families: tuple[str, ...]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs that it gives, in order."""
        return tuple(one.name for one in self.released)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each column has."""
        return tuple(map(size_of, self.columns))

    def words(self) -> tuple[str, ...]:
        """The table, what is released, and the loss."""
        names = [column.name for column in self.columns]
        known = f"{self.records} records" if self.records is not None else "any number of records"
        found = [f"{self.source} is a table of {known}, of {prod(self.sizes)} cells by {listing(names)}."]
        for one in self.released:
            along = {
                "running totals along": sorted({names[i] for table in one.tables for i in table.running}),
                "all ranges of": sorted({names[i] for table in one.tables for i in table.ranges}),
            }
            ways = "; ".join(f"{words} {listing(some)}" for words, some in along.items() if some)
            found.append(
                f"{one.name} is {len(one.tables)} tables of its counts{f', with {ways}' if ways else ''}, "
                f"{prod(one.shape)} numbers, plus noise that averages to 0."
            )
        found.append(f"The loss is the sum of expected squared errors: {self.loss}.")
        if self.families:
            found.append(f"Noise may be of the family {listing(list(self.families))} only.")
        return tuple(found)


def reads(model: Model) -> bool:
    """Whether a spec is about counts of one large table, some along columns in order, and records come and go."""
    return _found(model) is not None


def block_of(model: Model) -> OrderedBlock:
    """The block of a spec that `reads` takes."""
    found = _found(model)
    assert found is not None
    return found


@once
def _found(model: Model) -> OrderedBlock | None:
    if not plain(model) or not gaussian(model) or not all(line.neighbours.adding for line in model.requirements):
        return None
    (block,) = model.blocks
    try:
        reader = Reader(model)
        (term,), worst = reader.loss()
        tallies = {o.name: reader.known[o.name] for o in model.outputs}
    except (OtherFormError, Failure, KeyError, ValueError):
        return None
    first, at = dict[str, int](), 0
    for name, some in tallies.items():
        first[name], at = at, at + len(some)
    weights = {one.table: one.weight for one in summed(term, first)}
    if worst or len(weights) < at or not _ordered(tallies):
        return None
    released = tuple(
        Answers(
            o.name, o.type.shape, tuple(_table(t, weights[first[o.name] + k]) for k, t in enumerate(tallies[o.name]))
        )
        for o in model.outputs
    )
    columns = tuple(_column(name, domain) for name, domain in block.schema or ())
    found = OrderedBlock(block.name, columns, block.records, released, spell(model.loss), model.families)  # type: ignore[arg-type]
    return found if _fits(found, _ordered(tallies)) else None


def _ordered(tallies: dict[str, tuple[Tally, ...]]) -> set[int]:
    return {i for some in tallies.values() for tally in some for i in tally.running | tally.ranges}


def _table(tally: Tally, weight: Fraction) -> Table:
    return Table(tally.by, tuple(sorted(tally.running)), tuple(sorted(tally.ranges)), weight)


def _fits(block: OrderedBlock, ordered: set[int]) -> bool:
    """Whether the strategies of all sets of the other columns can be looked for."""
    cells = prod(block.sizes[i] for i in ordered)
    tables = (set(one.columns) - ordered for own in block.released for one in own.tables)
    return cells <= MOST_CELLS and sum(2 ** len(own) for own in tables) * cells**2 <= MOST_ENTRIES
