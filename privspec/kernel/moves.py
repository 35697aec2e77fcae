"""What units that change do to the coordinates of a problem: pieces that move by themselves, and groups of units.

Units of a class move alike, and stand for each other; a list of pieces is as large a set as the difference says.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb

from privspec.kernel.changes import GROUPS, Piece
from privspec.kernel.core.linear import Difference, Part, Places
from privspec.kernel.core.reading import Refused
from privspec.kernel.participation import Alike, groups, spaced

Unit = tuple[tuple[Piece, ...], int]
"""What a unit moves, and how many units move the same."""
Moves = tuple[list[Unit], int]
"""Every unit in the sums of units that count alike, and how many units change at once."""


def units_of(difference: Difference, places: Places | None = None) -> Moves:
    """What a difference moves; refused where units that change together do not count alike together."""
    parts, found = difference.parts, dict[tuple[Piece, ...], int]()
    runs = [_runs(part, (places or {}).get(part.start), alone=len(parts) == 1) for part in parts]
    while any(runs):
        step, unit = min(run[-1][1] for run in runs if run), tuple[Piece, ...]()
        for run in filter(None, runs):
            moved, count = run.pop()
            unit += moved
            if count > step:
                run.append((moved, count - step))
        unit = _as_one(unit)
        found[unit] = found.get(unit, 0) + step
    return list(found.items()), min(difference.count, sum(found.values()))


def _as_one(unit: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """What several inputs move as one moves as one in all of them."""
    rest, lines = ([piece for piece in unit if (piece.along is None) == plain] for plain in (True, False))
    if len(lines) < 2:
        return unit
    at = tuple(i for piece in lines for i in piece.at)
    return (*rest, Piece(at, "box", Fraction(1), along=tuple(a for piece in lines for a in piece.along or ())))


def _runs(part: Part, place: tuple[int, Alike] | None, *, alone: bool) -> list[Unit]:
    """What the units of a part move, in turn from the last to the first; in any order if it is `alone`."""
    size, length = 1 if part.shape == "box" else part.dimension, part.stop - part.start
    at, one = place or (part.start, Alike(length, (1,), (0,)))

    def moved(start: int, length: int, times: int = 1) -> tuple[Piece, ...]:
        starts, amount = range(start, start + length, size), part.amount * times
        found = tuple(Piece(range(i, i + size), part.shape, amount, part.most, part.cells) for i in starts)
        if not part.middle:
            return found
        return (*found, Piece(range(start, start + length), "box", Fraction(1), along=(part.middle * times,) * length))

    if one.length % size:
        raise Refused("vectors do not lie in units that count alike")
    if one.counts == (1,) or (alone and one.length % part.length == 0):
        starts = range(at, at + len(one.numbers), part.length)
        return [(moved(i, part.length), n) for i, n in zip(starts, one.numbers[:: part.length], strict=True)][::-1]
    if part.length == length:
        return [(tuple(p for k, n in enumerate(one.copies) for p in moved(at + k * one.length, one.length, n)), 1)]
    if part.length != one.length:
        raise Refused("units that change together do not count alike together")
    runs = zip(reversed(one.counts), reversed(one.classes), strict=True)
    return [(moved(at + kind * one.length, one.length), count) for count, kind in runs]


def pieces(difference: Difference, places: Places | None = None) -> Moves:
    """The same; groups of units stand for units where there are few of them, and all their pieces are numbers."""
    found, count = units_of(difference, places)
    if difference.apart is not None:
        some = spaced(len(found), count, difference.apart, exactly=bool(difference.exactly), most=GROUPS)
        if some is None or len(difference.parts) > 1 or any(copies > 1 for _, copies in found):
            raise Refused("has units that change at distances from each other in too many ways, or are not laid out")
        return [(tuple(piece for k in group for piece in found[k][0]), 1) for group in some], 1
    listed = count > 1 and all(part.shape == "box" for part in difference.parts)
    if not listed or comb(len(found) + count * any(copies > 1 for _, copies in found), count) > GROUPS:
        return found, count
    chosen = groups([copies for _, copies in found], count)
    units = ([(piece, n) for k, n in some for piece in found[k][0]] for some in chosen)
    return [(tuple(piece.times(n) for piece, n in unit), 1) for unit in units], 1
