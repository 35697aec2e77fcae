"""How often one person takes part: which units may change at once, as their places; how many records are kept.

What one person lets through of several inputs, one after the other.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod

from privspec.kernel.changes import PERSON, Room
from privspec.kernel.core.numbers import LARGEST_LOG, exp_up
from privspec.kernel.core.reading import Positive, Refused, Wholes, frozen
from privspec.kernel.divergences import pure_mu_up

Ball = tuple[Fraction, int, int]


@frozen
class ExchangeableUnits:
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


# --- one person's records in tables -----------------------------------------------------------------


@frozen
class ContributionBound:
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


Moved = tuple[int, int, int, str, int, Fraction, int | None, Wholes | None]
"""The fields of a part of a difference: of all coordinates from a start to a stop."""


def of_person(held: list[tuple[int, int, ContributionBound, Wholes]], *, adding: bool) -> list[list[Moved]]:
    """What one person changes in tables that keep so many of their records each, as sets of differences with parts.

    One table without a limit for a cell: all records may lie in one cell, come there, or move from there to another.
    Args: held, where each table starts and stops, what is kept, and of which cell each of its coordinates is an end.
    """
    plain = len(held) == 1 and held[0][2].per_cell is None
    shapes = (("cell",) if adding else ("swap", "cell")) if plain else PERSON[:1] if adding else PERSON[1:]
    found = list[list[Moved]]()
    for shape in shapes:
        found.append([])
        for start, stop, own, cells in held:
            size, several = max(stop - start, 1), own.per_cell and len(set(cells)) < len(cells)
            ends = cells if several else None
            found[-1].append((start, stop, size, shape, size, Fraction(own.most), own.per_cell, ends))
    return found


def wrong_person(units: list[tuple[str, int]], kept: list[ContributionBound | None]) -> str:
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


def of_kept(moved: list[tuple[dict[int, Fraction], Room, str]]) -> Fraction:
    """The least factor by which the hull of what a person changes, and of its opposite, contains numbers in tables.

    What goes up and what goes down are within so many times what a person may have; where records are replaced both
    happen at once, else one or the other, and the factors add up.
    """
    up, down = (
        max(room.holds({i: sign * v for i, v in own.items() if sign * v > 0}) for own, room, _ in moved)
        for sign in (1, -1)
    )
    return max(up, down) if moved[0][2] == PERSON[1] else up + down


# --- one person in several inputs ----------------------------------------------------------------------


def in_turn(bounds: list[dict[str, Fraction] | None]) -> dict[str, Fraction] | None:
    """What worlds let through that are as many steps apart, each of which lets through no more than its bound.

    None where some step has no bound, or a delta beside a mu.
    """
    known = [one for one in bounds if one is not None]
    if len(known) < len(bounds) or (any("mu" in one for one in known) and any(one.get("delta") for one in known)):
        return None
    if any("mu" in one for one in known):
        return {"mu": sum((one["mu"] if "mu" in one else pure_mu_up(one["epsilon"]) for one in known), Fraction(0))}
    epsilon, delta = Fraction(0), Fraction(0)
    for one in known:
        # P <= e^a (e^b R + d') + d, either way round
        steps = ((epsilon, delta, one["delta"]), (one["epsilon"], one["delta"], delta))
        delta, epsilon = max(_after(*step) for step in steps), epsilon + one["epsilon"]
    return {"epsilon": epsilon, "delta": min(delta, Fraction(1))}


def _after(epsilon: Fraction, delta: Fraction, then: Fraction) -> Fraction:
    """The delta of two steps, at least."""
    if not then:
        return delta
    return Fraction(1) if epsilon > LARGEST_LOG else delta + exp_up(epsilon) * then
