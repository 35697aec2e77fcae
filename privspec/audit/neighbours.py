"""Made-up data sets that differ in one unit, in many ways: those that a mechanism tells apart best are looked for.

All units but one lie alike, in turns, or are not there at all; that one moves between values that are far apart, or
comes and goes.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice, product
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from privspec.core.records import dataclass, field
from privspec.model import domains
from privspec.model.distances import distances
from privspec.model.measures import Personalised
from privspec.model.neighbours import (
    NeighbourRelation,
    ReplacingEntry,
    ReplacingEverything,
    ReplacingOneOf,
    ReplacingRecord,
    ReplacingVoter,
    Spaced,
)
from privspec.model.requirements import takes_distance
from privspec.model.values import show
from privspec.problem.elaborate import kept_of

if TYPE_CHECKING:
    from privspec.model.graph import Model
    from privspec.model.neighbours import InputBlock
    from privspec.model.requirements import Requirement

UNITS, MANY, UNKNOWN = 3, 40, (1, 3, 12, 40)
"""Units of made-up data, few and many; where keys are unknown, each of several numbers of them."""
ENDLESS = Fraction(10)
"""How far numbers without bounds go."""
MOST = 40
"""Pairs that are tried."""
OTHERS = {
    "": "",
    "alike": ", others alike",
    "in turns": ", others in turns",
    "at the other end": ", others at the other end",
    "in the middle": ", others in the middle",
    "alone": ", no others",
}
"""Patterns by which all other units lie, in words."""
Rows: TypeAlias = list[list[str]]
Data: TypeAlias = dict[str, tuple[list[str], Rows]]
"""Of each input: the header of its file, and its rows."""
Choice: TypeAlias = int | None
"""Which of its values a unit has; None for one that is not there."""


class NotMadeUpError(Exception):
    """Data of this kind are not made up."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two data sets that are neighbours, by the unit at a `place`; `moved`: what each input has there, in both."""

    words: str
    left: Data
    right: Data
    place: int = 0
    moved: Mapping[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = field(default_factory=dict)


def written(data: Data, folder: Path) -> dict[str, Path]:
    """A CSV file of each input."""
    paths = {name: folder / f"{name}.csv" for name in data}
    for name, (header, rows) in data.items():
        with paths[name].open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *rows])
    return paths


def promised_of(model: Model, line: Requirement, pair: Pair) -> dict[str, float]:
    """Amounts that a line promises of these two data sets and not of all: to their party, by how far apart they are."""
    amounts = {}
    if isinstance(line.measure, Personalised):
        own = line.measure.each[pair.place].amounts
        amounts = {name: float(amount) for name, amount in own.items()}
    if takes_distance(line):
        amounts["distance"] = _distance(model, line, pair)
    return amounts


def _distance(model: Model, line: Requirement, pair: Pair) -> float:
    named = [name for name in line.wrt if name in pair.moved]
    lists: dict[str, Sequence[Any]] = {name: pair.moved[name] for name in named}
    left, right = [0] * len(named), [1] * len(named)
    if getattr(line.measure, "matrix", None) is not None:
        lists = {name: [_entries(value) for value in model.nodes[name].domain.elements()] for name in named}  # type: ignore[union-attr]
        left, right = ([lists[name].index(pair.moved[name][side]) for name in named] for side in (0, 1))
    shape = tuple(len(lists[name]) for name in named)
    places = [np.array([np.ravel_multi_index(side, shape)]) for side in (left, right)]
    which, squares = distances(model, line, lists).levels(*places)
    return sqrt(squares[int(which[0])])


def _entries(value: Any) -> tuple[Any, ...]:
    return tuple(np.ravel(value)) if isinstance(value, np.ndarray) else value if isinstance(value, tuple) else (value,)


# --- which pairs ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class _Case:
    """What makes a pair: the inputs that move, and how; a pattern for all other units; what the unit has in both."""

    blocks: Mapping[str, _Input]
    relation: NeighbourRelation
    moved: tuple[_Input, ...]
    pattern: str
    before: Choice
    after: Choice
    changed: range

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells it from other cases."""
        units = 1 if self.pattern == "alone" else self.moved[0].units
        return tuple(one.name for one in self.moved), units, self.pattern, self.before, self.after, self.changed

    def pair(self) -> Pair:
        """Both data sets."""
        inner = self.relation.inner if isinstance(self.relation, Spaced) else self.relation
        part = {ReplacingEntry: "entry", ReplacingRecord: "record"}.get(type(inner), "")
        left, right = (
            {
                one.name: one.data(self.pattern, self.changed if one in self.moved else (), choice, part)
                for one in self.blocks.values()
            }
            for choice in (self.before, self.after)
        )
        who, place = ", ".join(one.name for one in self.moved), self.changed[0]
        words = f"{who}: {self.relation.describe()} at place {place + 1}{OTHERS[self.pattern]}"
        values = {one.name: (one.value(self.before), one.value(self.after)) for one in self.moved}
        return Pair(words, left, right, place, values)


def pairs_of(model: Model, line: Requirement, *, plain: bool = False, most: int = MOST) -> Iterator[Pair]:
    """Some neighbours, `most` of them at most.

    Args: plain, where noise is added that does not depend on the data: then others than the unit need not be varied.
    Raises: NotMadeUpError.
    """
    relation = line.neighbours
    if any(domains.unknown_keys(block.domain) for block in model.blocks):
        sizes: tuple[int, ...] = UNKNOWN  # whether a key is shown depends on how many records have it
    else:
        any_number = relation.adding or any(
            isinstance(block.base_domain, domains.Table) and block.records is None for block in model.blocks
        )
        sizes = (UNITS, MANY) if any_number and not plain else (UNITS,)
    if isinstance(relation, ReplacingOneOf):
        parts = [(inner, names) for inner, names in relation.joined if set(names) & set(line.wrt)]
    elif isinstance(relation, ReplacingEntry | ReplacingRecord) and not relation.by_id:
        parts = [(relation, (name,)) for name in line.wrt]  # it is of one of the inputs; a party moves in all of them
    else:
        parts = [(relation, line.wrt)]
    found: list[_Case] = []
    for units in sizes:
        blocks = {block.name: _Input.of(model, block, units, relation) for block in model.blocks}
        for inner, names in parts:
            found += _cases(inner, blocks, tuple(blocks[name] for name in names), plain=plain)
    found = list({one.key: one for one in found}.values())
    step = max(len(found) / most, 1.0)
    return (found[int(place * step)].pair() for place in range(int(len(found) / step)))


def _cases(
    relation: NeighbourRelation, blocks: Mapping[str, _Input], moved: tuple[_Input, ...], *, plain: bool
) -> Iterator[_Case]:
    """Neighbours by a unit that changes in some inputs at once.

    Raises: NotMadeUpError.
    """
    apart, inner = (relation.apart, relation.inner) if isinstance(relation, Spaced) else (1, relation)
    if not isinstance(inner, ReplacingEntry | ReplacingRecord | ReplacingVoter | ReplacingEverything):
        raise NotMadeUpError(f"no data sets are made up for {relation.describe()}")
    units, most = min(one.units for one in moved), max(len(one.choices) for one in moved)
    free = relation.adding and all(one.free for one in moved)
    changes: list[tuple[Choice, Choice]] = [(None, own) for own in range(most)]
    if not relation.adding:  # those farthest apart first
        changes = [(low, low + gap) for gap in range(most - 1, 0, -1) for low in range(most - gap)]
    middle = any(one.middle is not None for one in moved)
    fit = {"": False, "alone": free, "in the middle": middle}
    patterns = [pattern for pattern in OTHERS if fit.get(pattern, True)]
    if plain or isinstance(inner, ReplacingEverything) or units == 1:
        patterns = [""]
    places = (0,) if free or isinstance(inner, ReplacingEverything) else tuple(sorted({0, units - 1}))
    for pattern, (before, after), place in product(patterns, changes, places):
        changed = _units(relation, inner, units, apart, place)
        yield _Case(blocks, relation, moved, pattern, before, after, changed)


def _units(relation: NeighbourRelation, inner: NeighbourRelation, units: int, apart: int, place: int) -> range:
    """The places of what changes at once, from a place on or up to it."""
    if isinstance(inner, ReplacingEverything):
        return range(units)
    count = min(1 if inner.by_id else max(relation.group, inner.group), 1 + (units - 1) // apart)
    first = min(place, units - 1 - (count - 1) * apart)
    return range(first, first + (count - 1) * apart + 1, apart)


# --- the data of one input ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Input:
    """How data of one input look in a file: `units`, each of `each` rows, which are one of `choices`.

    `numbered`: rows say whose they are; `free`: units may be left out. `alike`: so many rows of a unit are one choice,
    the next ones the next; `middle`: a row between the ends.
    """

    name: str
    header: tuple[str, ...]
    choices: tuple[tuple[str, ...], ...]
    units: int
    each: int = 1
    numbered: bool = False
    free: bool = False
    alike: int | None = None
    middle: tuple[str, ...] | None = None

    def _row(self, choice: Choice, row: int = 0) -> tuple[str, ...]:
        """Zeros for what is not there, and cannot be left out."""
        if choice is None:
            return tuple("0" for _ in self.header[self.numbered :])
        if self.alike is None:
            return self.choices[min(choice, len(self.choices) - 1)]
        return self.choices[(choice + row // self.alike) % len(self.choices)]

    def value(self, choice: Choice) -> tuple[Any, ...]:
        """What a unit has: its numbers and words one after another."""
        cells = [word for row in range(self.each) for cell in self._row(choice, row) for word in cell.split(" ")]
        return tuple(Fraction(cell) if _is_number(cell) else cell for cell in cells)

    def data(self, pattern: str, changed: Sequence[int], choice: Choice, part: str) -> tuple[list[str], Rows]:
        """Rows by a pattern, but for those of the changed units.

        Args: part, "entry" or "record" where only the first number of the first row, or that row, of a unit changes.
        """
        rows: Rows = []
        last = len(self.choices) - 1
        # beside the changed unit, the others begin with the first choice
        turns = {"in turns": (last, 0), "at the other end": (last, last)}.get(pattern, (0, 0))
        usual = [[list(self._row(own, row)) for row in range(self.each)] for own in turns]
        if pattern == "in the middle" and self.middle is not None:
            usual = [[list(self.middle)] * self.each] * 2
        for unit in range(self.units):
            mine = usual[unit % 2]
            if unit in changed:
                mine = [
                    kept if part and row else [*other[:1], *kept[1:]] if part == "entry" else other
                    for row, kept in enumerate(mine)
                    for other in [list(self._row(choice, row))]
                    if not (choice is None and self.free) or (part and row)
                ]
            elif pattern == "alone" and self.free:
                continue
            rows += [[str(unit + 1), *row] for row in mine] if self.numbered else mine
        return list(self.header), rows

    @classmethod
    def of(cls, model: Model, block: InputBlock, few: int, relation: NeighbourRelation) -> _Input:
        """Raises: NotMadeUpError."""
        domain, index, name = block.base_domain, block.index, block.name
        units = few if index is None else model.parties[index].size
        some_units = min(units, few) if relation.adding else units
        if isinstance(domain, domains.Table):
            kept = None if index is not None else kept_of(model, model.nodes[name])
            alike = None if kept is None else kept.per_cell
            cells = 4 if kept is None or alike is None else -(-kept.most // alike)
            columns = domain.columns
            values = product(*(_some(one, 2 if alike is None else cells) for one in columns.values()))
            every = list(islice(values, MANY))
            choices = tuple(dict.fromkeys([*every[: max(cells - 1, 1)], every[-1]]))
            middle = tuple(_middle(one) for one in columns.values())
            if index is not None:
                each = domain.records or 2
                return cls(name, (index, *columns), choices, units, each, numbered=True, free=not domain.records)
            if kept is not None:
                header = (kept.person, *columns)
                return cls(name, header, choices, units, each=kept.most, numbered=True, free=True, alike=alike)
            count = few if relation.adding or domain.records is None else domain.records
            return cls(name, tuple(columns), choices, count, free=True, middle=middle)
        if isinstance(domain, domains.RankingOf | domains.PartialRankingOf) and index is not None:
            words = [show(one) for one in domain.alternatives]
            words = words[: max(domain.places, 2)] if isinstance(domain, domains.PartialRankingOf) else words
            orders = dict.fromkeys([tuple(words), (words[1], words[0], *words[2:]), tuple(words[::-1])])
            return cls(name, ("ranking",), tuple((" ".join(order),) for order in orders), some_units, free=True)
        if isinstance(domain, domains.FiniteSet) and index is not None:
            ballots = tuple((show(one),) for one in domain.items[:3])
            return cls(name, ("choice",), ballots, some_units, free=True)
        inner, shape = block.base_domain, block.type.shape if index is None else block.type.shape[1:]
        wide = 1
        if isinstance(inner, domains.Ball):
            wide, shape = inner.dimension, shape[:-1]
        elif len(shape) > (index is None) or (shape and model.trust.alone and index is None):
            wide, shape = shape[-1], shape[:-1]
        if len(shape) > 1:
            raise NotMadeUpError(f"data of the form {block.domain.describe()} are not made up")
        count = 3 if shape or index is not None else 4
        if isinstance(inner, domains.Ball):
            ends = _alone((show(-inner.radius), show(inner.radius)), wide, "0")
        else:
            some = _some(inner, count)
            ends = tuple((one,) * wide for one in some)
            if wide > 1:  # all of a vector moves, or its first number alone
                ends += _alone((some[0], some[-1]), wide, "0" if inner.contains(Fraction(0)) else some[0])
                ends = tuple(dict.fromkeys(ends))
        names = (name,) if wide == 1 else tuple(f"{name}_{i + 1}" for i in range(wide))
        several = shape[0] if shape else 1
        if index is None:
            return cls(name, names, ends, several)
        return cls(name, (index, *names), ends, units, each=several, numbered=True)


def _is_number(cell: str) -> bool:
    try:
        Fraction(cell)
    except ValueError:
        return False
    return True


def _some(domain: domains.Domain, count: int) -> tuple[str, ...]:
    """So many values at most: both ends, and where values are listed, that beside the first and one in the middle."""
    if isinstance(domain, domains.Unknown):
        return ("here", "there", *(f"place {number}" for number in range(3, count + 1)))
    if domain.size is not None and not isinstance(domain, domains.Between):
        size = domain.size
        places = [0, size - 1, *([1] if count > 2 else []), *([size // 2] if count > 3 else []), *range(2, count - 2)]
        wanted = sorted(set(places) & set(range(size)))
        return tuple(show(next(islice(domain.elements(), place, None))) for place in wanted)
    low, high = domain.bounds
    return show(-ENDLESS if low is None else low), show(ENDLESS if high is None else high)


def _middle(domain: domains.Domain) -> str:
    """A value between the ends."""
    if domain.size is None or isinstance(domain, domains.Between):
        return _some(domain, 2)[0]
    return show(next(islice(domain.elements(), domain.size // 2, None)))


def _alone(ends: tuple[str, ...], wide: int, rest: str) -> tuple[tuple[str, ...], ...]:
    """Vectors whose first number alone differs."""
    return tuple((one, *[rest] * (wide - 1)) for one in ends)
