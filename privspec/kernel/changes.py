"""What neighbours differ in: one encoding of every change, which is exact.

A rule of privacy may go over to a larger change, a bound on all mechanisms only to a smaller one; so a change is just
what neighbours may differ in, neither more nor less. Units of a class move alike, and stand for each other.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import comb

from privspec.kernel.core.reading import Grid, Refused, frozen

GROUPS = 4096
"""Groups of units are listed up to so many."""
CROWD = 1024
"""Units of one number each up to which what several do at once is added up pair by pair."""
MOST_LAWS, MOST_SEQUENCES = 64, 2**14
"""Laws of a model that are looked at, and sequences of a network, which are listed."""


PERSON = ("kept", "replaced")
"""Shapes of one person's records: they come or go, or are replaced by others."""
COUNTED = ("cell", "swap", *PERSON)
"""Shapes of whole records, of which some stand in one cell, or come from another, or are one person's."""


@frozen
class Room:
    """Where a person's records in a table may lie: `most` in all, `each` in one cell, at any of its coordinates."""

    cells: tuple[tuple[int, ...], ...]
    most: int
    each: int

    @classmethod
    def of(cls, size: int, most: int, each: int | None, cells: tuple[int, ...] | None) -> Room:
        """Of a table of so many coordinates; `cells`: of which cell each is an end, where cells have several."""
        if cells is None:
            return cls(tuple((i,) for i in range(size)), most, each or most)
        ends = dict[int, list[int]]()
        for i, cell in enumerate(cells):
            ends.setdefault(cell, []).append(i)
        return cls(tuple(map(tuple, ends.values())), most, each or most)

    def top(self, values: list[Fraction] | tuple[Fraction | int, ...]) -> Fraction:
        """The largest sum of the values of as many records, one value for each coordinate; 0 for none."""
        best = sorted((max(values[i] for i in cell) for cell in self.cells), reverse=True)
        total, left = Fraction(0), self.most
        for value in best[: -(-self.most // self.each)]:
            if value > 0:
                total, left = total + value * min(self.each, left), left - min(self.each, left)
        return total

    def holds(self, values: dict[int, Fraction]) -> Fraction:
        """The least factor by which it holds as many records as these values, none below 0, say."""
        cells = (sum((values.get(i, Fraction(0)) for i in cell), Fraction(0)) for cell in self.cells)
        return max(max(cells, default=Fraction(0)) / self.each, sum(values.values(), Fraction(0)) / self.most)


def groups(copies: list[int], count: int) -> list[list[tuple[int, int]]]:
    """Every choice of `count` units, as the places of those that move the same and how many of them."""
    if not copies or not count:
        return [] if count else [[]]
    *rest, most = copies
    some = [(k, group) for k in range(min(most, count) + 1) for group in groups(rest, count - k)]
    return [[*group, (len(rest), k)] if k else group for k, group in some]


def spaced(size: int, count: int, apart: int, *, exactly: bool, most: int) -> list[list[int]] | None:
    """The largest choices of up to `count` of `size` places, `apart` from each other or more; None for too many.

    Those that are within another choice are left out: what changes less often changes no more.
    """
    if exactly:
        starts = range(max(size - (count - 1) * apart, min(apart, size)))
        found = [list(range(start, size, apart))[:count] for start in starts]
        return found if len(found) <= most else None
    free = size - (count - 1) * (apart - 1)
    if free >= count and comb(free, count) > most:
        return None
    found, open_ = list[list[int]](), [[i] for i in range(size)]
    while open_:
        chosen = open_.pop()
        after = size - chosen[-1] > apart
        steps = [chosen[i + 1] - chosen[i] for i in range(len(chosen) - 1)]
        tight = chosen[0] < apart and not after and max(steps, default=0) < 2 * apart
        if len(chosen) == count or tight:
            found.append(chosen)
        elif after:
            open_ += [[*chosen, i] for i in range(chosen[-1] + apart, size)]
        if len(found) + len(open_) > 2 * most:
            return None
    return found


@frozen
class Piece:
    """What moves by itself in a unit: a number by at most `amount`, or a vector of that shape.

    `along`: several numbers move as one, each in this proportion. `most`, `cells`: as of a `Part`.
    """

    at: range | tuple[int, ...]
    shape: str
    amount: Fraction
    most: int | None = None
    cells: tuple[int, ...] | None = None
    along: tuple[Fraction, ...] | None = None

    @property
    def room(self) -> Room:
        """Of records: where they may lie, by the places of coordinates in the table."""
        return Room.of(len(self.at), int(self.amount), self.most, self.cells)

    def times(self, factor: int) -> Piece:
        """What so many units do that move alike."""
        return replace(self, amount=self.amount * factor)

    @property
    def edges(self) -> list[list[tuple[int, Fraction]]]:
        """Of a box: the directions in which it moves, as coordinates with proportions."""
        if self.along is None:
            return [[(i, Fraction(1))] for i in self.at]
        return [list(zip(self.at, self.along, strict=True))]


def freely(unit: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """A larger unit, in which what moves as one moves each number by itself."""
    more = dict[int, Fraction]()
    for i, share in (edge for piece in unit if piece.along for edge in piece.edges[0]):
        more[i] = more.get(i, Fraction(0)) + abs(share)
    rest = (piece for piece in unit if not piece.along)
    return tuple(replace(p, amount=p.amount + more.get(p.at[0], 0)) if p.shape == "box" else p for p in rest)


def boxed(unit: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """A unit of one shape as it is; of numbers beside vectors, or of vectors of several norms, a box that holds it."""
    shapes = {piece.shape for piece in unit}
    if len(shapes) == 1 or not shapes <= {"box", "l1", "l2"}:
        return unit
    single = (
        [piece] if piece.shape == "box" else [replace(piece, at=(i,), shape="box") for i in piece.at] for piece in unit
    )
    return tuple(piece for some in single for piece in some)


Unit = tuple[tuple[Piece, ...], int]
"""What a unit moves, and how many units move the same."""


@frozen
class Units:
    """Up to `count` of these units change at once, in order at least (or `exactly`) `apart` places from each other.

    `multiples`: for each coordinate what a number in it moves by sums of whole multiples of; empty where by any amount.
    """

    units: tuple[Unit, ...]
    count: int
    apart: int | None = None
    exactly: bool = False
    multiples: tuple[tuple[Fraction, ...], ...] = ()

    @property
    def amounts(self) -> set[Fraction]:
        """How far pieces move."""
        return {piece.amount for unit, _ in self.units for piece in unit}

    @property
    def crowded(self) -> bool:
        """Whether units of one number, or vector, each lie apart in too many ways to be listed."""
        alone = all(len(unit) == 1 and len(unit[0].at) == 1 and copies == 1 for unit, copies in self.units)
        if self.apart is None or not alone or len(self.amounts) > 1:
            return False
        most = min(self.count, len(self.units))
        return spaced(len(self.units), most, self.apart, exactly=self.exactly, most=GROUPS) is None

    def grouped(self) -> Units:
        """The same change, groups of units that change at once as one unit where they can be listed.

        Raises: Refused where units lie apart in too many ways.
        """
        if self.apart is not None:
            return self._spaced(self.apart)
        return self._chosen() if self.count > 1 else Units(self.units, self.count)

    def _spaced(self, apart: int) -> Units:
        """Every choice of units that lie so far apart, as one unit."""
        found = [unit for unit, copies in self.units if copies == 1]
        some = spaced(len(found), min(self.count, len(found)), apart, exactly=self.exactly, most=GROUPS)
        if some is None or len(found) < len(self.units):
            raise Refused("has units that change at distances from each other in too many ways")
        return Units(tuple((tuple(piece for k in group for piece in found[k]), 1) for group in some), 1)

    def _chosen(self) -> Units:
        """Every choice of so many units as one, where they are few and made of numbers."""
        copies = [count for _, count in self.units]
        count = min(self.count, sum(copies))
        numbers = all(piece.shape == "box" for unit, _ in self.units for piece in unit)
        ways = comb(len(copies) + count * any(one > 1 for one in copies), count)
        if count < 2 or not numbers or ways > GROUPS:
            return Units(self.units, count)
        moved = ([(piece, n) for k, n in some for piece in self.units[k][0]] for some in groups(copies, count))
        return Units(tuple((tuple(piece.times(n) for piece, n in unit), 1) for unit in moved), 1)


@frozen
class Rows:
    """Rows of a table that are compared: pairs of them, and cliques of which every two are.

    With `laws` of rows, each in whole numbers by row, it is these that are numbered: which row it is, is drawn by one.
    """

    pairs: tuple[tuple[int, int], ...]
    cliques: tuple[tuple[int, ...], ...] = ()
    laws: tuple[tuple[int, ...], ...] = ()


@frozen
class InARow:
    """Of so many numbers or vectors in a row up to `count` move by `amount`, at least or `exactly` so many apart."""

    size: int
    amount: Fraction
    count: int
    apart: int
    exactly: bool


@frozen
class Records:
    """So many records of a table come or go, where `adding`, or are replaced; up to `each` of them are in one key."""

    count: int
    adding: bool
    each: int

    @property
    def sides(self) -> int:
        """2 where some go and others come at once."""
        return 1 if self.adding else 2

    @property
    def moves(self) -> int:
        """How many records come or go."""
        return self.count * self.sides

    @property
    def fullest(self) -> list[int]:
        """How many of one side are in each key, where as few keys as may be have all."""
        full, rest = divmod(self.count, self.each)
        return [*[self.each] * full, rest]


@frozen
class Entries:
    """One entry of a sequence takes any other value, or `every` one does."""

    every: bool


@frozen
class ConditionalLaw:
    """Chances (rows, S) of an entry, a row for all values of its `parents`, earlier entries: the last one's fastest."""

    parents: tuple[int, ...]
    chances: Grid


@frozen
class SequenceModel:
    """Laws that draw a sequence: any of `starts` for its first entry, and any of `steps`, given the entry before.

    Of a step there is a row for each value. Where entries are drawn each in its own way, `network` has the law of each.
    """

    starts: Grid
    steps: Grid
    network: tuple[ConditionalLaw, ...] = ()

    def __post_init__(self) -> None:
        grids = (self.starts, self.steps, *(own.chances for own in self.network))
        laws = [(row, grid) for grid in grids for row in grid.rows]
        sizes = {len(row) for row, _ in laws}
        if any(min(row) < 0 or sum(row) * grid.unit != 1 for row, grid in laws):
            raise Refused("has a law whose chances do not add up to one")
        if self.network:
            known = not self.starts.rows and not self.steps.rows and len(sizes) == 1
            for place, one in enumerate(self.network):
                parents = len(set(one.parents)) == len(one.parents) and all(0 <= own < place for own in one.parents)
                known = known and parents and len(one.chances.rows) == self.size ** len(one.parents)
            if not known or self.size ** len(self.network) > MOST_SEQUENCES:
                raise Refused("has a network whose laws do not fit its entries, or one that is too large to be listed")
        elif len(sizes) != 1 or not self.starts.rows or not self.steps.rows or len(self.steps.rows) % self.size:
            raise Refused("has no laws of a step, or parts of one")
        if len(self.starts.rows) * len(self.steps.rows) > MOST_LAWS * self.size:
            raise Refused("has more laws than are judged")

    @property
    def size(self) -> int:
        """How many values an entry may have."""
        return len((self.network[0].chances if self.network else self.starts).rows[0])

    def every(self) -> list[tuple[int, list[int], list[list[int]]]]:
        """Every law: the number of its steps, the first entry, and an entry (column) given the one before (row)."""
        steps = [self.steps.rows[i : i + self.size] for i in range(0, len(self.steps.rows), self.size)]
        return [(number, first, step) for first in self.starts.rows for number, step in enumerate(steps)]


@frozen
class GivenModel:
    """One entry takes another value, and all others are drawn given it by any law of a model."""

    model: SequenceModel


@frozen
class OfParty:
    """So many records are replaced that one party holds: the party of this number, or any one."""

    count: int
    party: int | None = None


@frozen
class ByDistance:
    """Any two points, for each unit of their distance in a norm: l1, l2 or linf."""

    norm: str


@frozen
class Anything:
    """All that a model allows may change; of reports of several kinds, that of a party who sends one of this `kind`."""

    kind: int | None = None


Change = (
    Units
    | Rows
    | InARow
    | Records
    | OfParty
    | Entries
    | GivenModel
    | ByDistance
    | Anything
    | tuple["Change", ...]
    | None
)
"""Of independent parts a tuple, one change each that happen at once; None where nothing changes."""
