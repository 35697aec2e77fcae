"""How often one person takes part: which units may change at once, as their places; how many records are kept."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb, prod

from privspec.kernel.core.reading import Item, Positive, Refused

Ball = tuple[Fraction, int, int]
Wholes = tuple[int, ...]


def wholes(item: Item) -> Wholes:
    """An array of whole numbers."""
    found = item.array(*item.extents(1))
    if found.unit != 1:
        raise item.wrong("are not whole numbers")
    return found.entries


READERS = {"Wholes": wholes}


@dataclass(frozen=True, slots=True)
class Alike:
    """Units of an input, `length` numbers each: `counts[i]` in turn are of class `classes[i]`, numbered as they appear.

    What is released depends on the units of a class through their sum alone, whose numbers are coordinates.
    """

    length: Positive
    counts: Wholes
    classes: Wholes

    def __post_init__(self) -> None:
        first = list(dict.fromkeys(self.classes))
        if len(self.counts) != len(self.classes) or min(self.counts, default=0) < 1 or first != list(range(len(first))):
            raise Refused("does not put every unit into one class, in order")

    @property
    def copies(self) -> list[int]:
        """How many units each class has."""
        found = [0] * (max(self.classes) + 1)
        for count, own in zip(self.counts, self.classes, strict=True):
            found[own] += count
        return found

    @property
    def numbers(self) -> list[int]:
        """How many numbers each coordinate adds up."""
        return [copies for copies in self.copies for _ in range(self.length)]


def told_apart(
    vectors: int | None, held: list[tuple[int, Wholes, Ball | None]], seen: list[tuple[int, Wholes]], more: bool
) -> bool:
    """Whether shapes are not those of so many numbers or vectors, or anything is not the same for all of a vector.

    Of inputs and outputs how many coordinates they have and their shape, of inputs the radius, dimension and norm of a
    ball; `more`: whether something adds to single numbers, or looks at them.
    """
    parts, each = [*((size, shape) for size, shape, _ in held if vectors), *seen], vectors or 1
    if any(prod(shape) != size * each for size, shape in parts):
        return True
    apart = any(ball is None or ball[1:] != (each, 2) for *_, ball in held)
    apart = apart or any(shape[-1:] != (each,) for _, shape in parts)
    return vectors is not None and (apart or more or each == 1)


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


# --- one person's records in tables -----------------------------------------------------------------

PERSON = ("kept", "replaced")
"""Shapes of one person's records: they come or go, or are replaced by others."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Of the records of each `person` in a table, `most` are kept, `per_cell` of them in one cell; drawn uniformly."""

    person: str
    most: Positive
    per_cell: Positive | None

    def __post_init__(self) -> None:
        if self.per_cell is not None and self.per_cell >= self.most:
            raise Refused("limits records in one cell to as many as are kept, or more")

    def describe(self) -> str:
        """As in "5 records per person, 2 in one cell"."""
        cell = "" if self.per_cell is None else f", {self.per_cell} in one cell"
        return f"{self.most} record{'s' * (self.most > 1)} of each {self.person}{cell}"


Moved = tuple[int, int, int, str, int, Fraction, int | None]
"""The fields of a part of a difference: of all coordinates from a start to a stop."""


def of_person(held: list[tuple[int, int, Kept]], *, adding: bool) -> list[list[Moved]]:
    """What one person changes in tables that keep so many of their records each, as sets of differences with parts.

    One table without a limit for a cell: all records may lie in one cell, come there, or move from there to another.
    """
    plain = len(held) == 1 and held[0][2].per_cell is None
    shapes = (("cell",) if adding else ("swap", "cell")) if plain else PERSON[:1] if adding else PERSON[1:]
    sizes = [(start, stop, max(stop - start, 1), own) for start, stop, own in held]
    return [
        [(start, stop, size, shape, size, Fraction(own.most), own.per_cell) for start, stop, size, own in sizes]
        for shape in shapes
    ]


def wrong_person(units: list[tuple[str, int]], kept: list[Kept | None]) -> str:
    """What is wrong where units, a kind and a count each, change inputs of which some keep records of each person."""
    persons = [count for kind, count in units if kind == "person"]
    if not persons:
        return "changes single records where which of them are kept depends on others" if any(kept) else ""
    if len(units) > 1 or any(one is None or one.most != persons[0] for one in kept):
        return "is about a person of whom no records are kept, or another number of them"
    return ""


def notes_of(units: list[tuple[str, int]]) -> tuple[str, ...]:
    """The notes that a guarantee of these units, a kind and a count each, rests on."""
    if any(kind == "person" for kind, _ in units):
        return ("people",)
    return ("group-privacy",) if any(count > 1 for _, count in units) else ()


Room = tuple[int, int, int]
"""How many cells there are, how many records lie there at most in all, and in one of them."""


def of_kept(moved: list[tuple[list[Fraction], Room, str]]) -> Fraction:
    """The least factor by which the hull of what a person changes, and of its opposite, contains numbers in tables.

    What goes up and what goes down are within so many times what a person may have; where records are replaced both
    happen at once, else one or the other, and the factors add up.
    """
    sides = [Fraction(0), Fraction(0)]
    for own, (_, most, each), _ in moved:
        for side, sign in enumerate((1, -1)):
            up = [sign * v for v in own if sign * v > 0]
            sides[side] = max(sides[side], max(up, default=Fraction(0)) / each, sum(up, Fraction(0)) / most)
    return max(sides) if moved[0][2] == PERSON[1] else sides[0] + sides[1]
