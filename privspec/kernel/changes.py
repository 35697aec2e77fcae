"""What neighbours differ in: one encoding of every change, which is exact.

A rule of privacy may go over to a larger change, a bound on all mechanisms only to a smaller one; so a change is just
what neighbours may differ in, neither more nor less. Units of a class move alike, and stand for each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb

from privspec.kernel.core.reading import Refused
from privspec.kernel.participation import Room, groups, spaced

GROUPS = 4096
"""Groups of units are listed up to so many."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
        found, count = list(self.units), min(self.count, sum(copies for _, copies in self.units))
        if self.apart is not None:
            some = spaced(len(found), count, self.apart, exactly=self.exactly, most=GROUPS)
            if some is None or any(copies > 1 for _, copies in found):
                raise Refused("has units that change at distances from each other in too many ways")
            return Units(tuple((tuple(piece for k in group for piece in found[k][0]), 1) for group in some), 1)
        numbers = all(piece.shape == "box" for unit, _ in found for piece in unit)
        ways = comb(len(found) + count * any(copies > 1 for _, copies in found), count)
        if count < 2 or not numbers or ways > GROUPS:
            return Units(self.units, count)
        chosen = groups([copies for _, copies in found], count)
        moved = ([(piece, n) for k, n in some for piece in found[k][0]] for some in chosen)
        return Units(tuple((tuple(piece.times(n) for piece, n in unit), 1) for unit in moved), 1)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a table that are compared: pairs of them, and cliques of which every two are."""

    pairs: tuple[tuple[int, int], ...]
    cliques: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class InARow:
    """Of so many numbers or vectors in a row up to `count` move by `amount`, at least or `exactly` so many apart."""

    size: int
    amount: Fraction
    count: int
    apart: int
    exactly: bool


@dataclass(frozen=True, slots=True)
class Records:
    """So many records of a table come or go, where `adding`, or are replaced; up to `each` of them are in one key."""

    count: int
    adding: bool
    each: int


@dataclass(frozen=True, slots=True)
class ByDistance:
    """Any two points, for each unit of their distance in a norm: l1, l2 or linf."""

    norm: str


@dataclass(frozen=True, slots=True)
class Anything:
    """All that a model allows may change; of reports of several kinds, that of a party who sends one of this `kind`."""

    kind: int | None = None


Change = Units | Rows | InARow | Records | ByDistance | Anything | tuple["Change", ...] | None
"""Of independent parts a tuple, one change each that happen at once; None where nothing changes."""
