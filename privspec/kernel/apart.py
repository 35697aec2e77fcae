"""Units of one input that change at once at distances from each other, each by a number or a vector: notes/streams.md.

With G the Gram matrix of a strategy, units that change by vectors v_t of length 1 at most move what is seen by the root
of the sum of G_ij v_i'v_j. A difference of a bound is made up of columns: in a row stands the vector of that unit.
"""

from __future__ import annotations

from fractions import Fraction

from privspec.kernel.core.linear import Difference, Linear, Matrix, Places, chosen_rows
from privspec.kernel.core.numbers import fraction
from privspec.kernel.core.reading import Item
from privspec.kernel.participation import spaced

GROUPS = 4096
"""Groups of units are listed up to so many."""


def crowded(difference: Difference, places: Places | None) -> bool:
    """Whether units of one number, or vector, each lie apart in too many ways to be listed."""
    part, apart, alike = difference.parts[0], difference.apart, (places or {}).get(difference.parts[0].start)
    if apart is None or len(difference.parts) > 1 or part.length > 1 or (alike and alike[1].counts != (1,)):
        return False
    size, exactly = part.stop - part.start, bool(difference.exactly)
    return spaced(size, min(difference.count, size), apart, exactly=exactly, most=GROUPS) is None


def spread(strategy: Matrix, difference: Difference, places: Places) -> Fraction:
    """At least the largest squared length of strategy d, over the differences of units that are crowded."""
    part = difference.parts[0]
    start = places[part.start][0]
    rows = chosen_rows(strategy.transpose(), list(range(start, start + part.stop - part.start)))
    whole, below = (rows * rows.transpose()).numer_denom()
    gram = [list(map(int, row)) for row in whole.tolist()]
    return farthest(gram, difference.count, difference.apart or 1) * part.amount**2 / int(below)


def best(values: list[int], count: int, apart: int) -> list[list[int]]:
    """For up to 0, 1, .. `count` places `apart`: the largest sum of values >= 0, over the first 0, 1, .. of all."""
    found = [[0] * (len(values) + 1)]
    for _ in range(count):
        before, own = found[-1], [0]
        for i, value in enumerate(values):
            own.append(max(own[-1], value + before[max(i + 1 - apart, 0)]))
        found.append(own)
    return found


def farthest(gram: list[list[int]], count: int, apart: int) -> int:
    """At least the sum of G_ij v_i'v_j over units that change: up to `count`, `apart` from each other or more.

    |v_i'v_j| <= 1, so that unit i adds at most t_i, G_ii and the largest |G_ij| of others that may change with it.
    """
    totals = []
    for i, row in enumerate(gram):
        sides = [list(map(abs, row[: max(i + 1 - apart, 0)])), list(map(abs, row[i + apart :]))[::-1]]
        left, right = ([one[-1] for one in best(side if any(side) else [], count - 1, apart)] for side in sides)
        totals.append(abs(row[i]) + max(a + b for a, b in zip(left, reversed(right), strict=True)))
    return best(totals, count, apart)[-1][-1]


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
