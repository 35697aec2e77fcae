"""Units of one input that change at once at distances from each other, each by a number or a vector.

See notes/streams.md. A difference of a bound is made up of columns: in a row stands the vector of that unit.
"""

from __future__ import annotations

from fractions import Fraction

from privspec.kernel.changes import GROUPS, Units
from privspec.kernel.core.linear import Difference, Linear, Matrix, Places, first_cells
from privspec.kernel.core.numbers import fraction
from privspec.kernel.core.reading import Item
from privspec.kernel.moves import units_of
from privspec.kernel.participation import spaced
from privspec.kernel.strategies import dense


def crowded(difference: Difference, places: Places | None) -> bool:
    """Whether units of one number, or vector, each lie apart in too many ways to be listed."""
    part, apart, alike = difference.parts[0], difference.apart, (places or {}).get(difference.parts[0].start)
    if apart is None or len(difference.parts) > 1 or part.length > 1 or (alike and alike[1].counts != (1,)):
        return False
    size, exactly = part.stop - part.start, bool(difference.exactly)
    return spaced(size, min(difference.count, size), apart, exactly=exactly, most=GROUPS) is None


def spread(strategy: Matrix, difference: Difference, places: Places) -> Fraction:
    """At least the largest squared length of strategy d, over the differences of units that are crowded."""
    units, _ = units_of(difference, places)
    return dense.spread(strategy, Units(tuple(units), difference.count, difference.apart))


def charged(rows: list[dict[int, Fraction]], moved: Difference, amount: Fraction, dimension: int) -> Fraction | None:
    """The sum of squared gauges of differences that columns, `rows` of numbers by place, make up; None if they do not.

    Up to `dimension` columns in turn are one difference, in which a unit moves by the vector of its numbers: as many
    as fit into one choice of units that change at once.
    """
    total, sizes, taken = Fraction(0), dict[int, Fraction](), 0
    for row in rows:
        if taken == dimension or not together({*sizes, *row}, moved):
            total, sizes, taken = total + max(sizes.values(), default=Fraction(0)), {}, 0
        if not amount or not together(set(row), moved):
            return None
        sizes, taken = sizes | {i: sizes.get(i, Fraction(0)) + v * v for i, v in row.items()}, taken + 1
    return (total + max(sizes.values(), default=Fraction(0))) / amount**2 if rows else total


def together(places: set[int], moved: Difference) -> bool:
    """Whether units at these places may change at once."""
    row, count, apart = sorted(places), moved.count, moved.apart or 1
    steps = [row[i + 1] - row[i] for i in range(len(row) - 1)]
    if moved.exactly:
        return not any(step % apart for step in steps) and sum(steps) < count * apart
    return len(row) <= count and min(steps, default=apart) >= apart


def in_a_row(block: Linear, some: tuple[Difference, ...], columns: Matrix, given: Item) -> Fraction | None:
    """The sum of squared gauges of columns, the rows of a matrix, for a line about units that lie apart in one input.

    None for other lines, and where units have several numbers or count alike.
    """
    if len(some) != 1 or len(some[0].parts) > 1 or some[0].apart is None:
        return None
    (one,), (part,) = some, some[0].parts
    at, alike = block.places[part.start]
    if part.length > 1 or alike.counts != (1,):
        return None
    rows = [{i: fraction(v) for i, v in enumerate(row) if v} for row in columns.tolist()]
    inside = all(min(row, default=at) >= at and max(row, default=at) < at + alike.length for row in rows)
    found = charged(list(filter(None, rows)), one, part.amount, block.vectors or 1)
    if found is None or not inside:
        raise given.wrong("is no difference of neighbours")
    return found


def shared_among(block: Linear, steps: tuple[Fraction, ...]) -> dense.Shared:
    """The cells of all tables of which records stand on a grid of shares."""
    found: dense.Shared = {}
    for held, step in zip(block.held, steps, strict=True):
        firsts, at = first_cells(held.columns), block.places[held.start][0]
        for i in range(held.stop - held.start if held.cells and step != 1 else 0):
            found[at + i] = at + i - i % len(firsts) + firsts[i % len(firsts)]
    return found
