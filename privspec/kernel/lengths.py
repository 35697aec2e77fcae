"""The largest d'Gd, for a matrix G of whole numbers, over what units change: signs, vectors, one person's records.

A person has at most so many records in the cells of a table, and at most so many of them in one cell; in several tables
at once where they hold records of the same people. The cells of all tables are numbered one after another.

Units of one input that change at once at distances from each other, each by a number or a vector (notes/streams.md):
with G the Gram matrix of a strategy, units that change by vectors v_t of length 1 at most move what is seen by the root
of the sum of G_ij v_i'v_j. A difference of a bound is made up of columns: in a row stands the vector of that unit.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

from flint import arb, arb_mat, ctx, fmpq, fmpq_mat, fmpz_mat

from privspec.kernel.core.linear import Difference, Linear, Matrix, Places, first_cells
from privspec.kernel.core.numbers import end, fraction, rational, sqrt_up
from privspec.kernel.core.problem import NOTHING
from privspec.kernel.core.reading import Item
from privspec.kernel.moves import GROUPS, Piece, freely
from privspec.kernel.participation import PERSON, Room, spaced
from privspec.kernel.rows import chosen_rows

Gram = tuple[tuple[int, ...], ...]
Move = dict[int, int]
SQUARES: dict[Gram, int] = {}
SQUARINGS, DIGITS = 40, 106
"""Squarings of a matrix until its norm bounds its largest eigenvalue, each of which loses one of so many digits."""
CLOSE = 1 + Fraction(1, 10**9)
"""Factor up to which a bound is not made better by a largest eigenvalue, which takes long to bound."""
NONE = Fraction(0)
LISTED = 4096
"""What a person may change is listed up to so many moves."""


VERTICES = 16
"""Boxes of at most so many numbers are enumerated."""


def of_unit(columns: list[list[fmpq]], squares: list[Fraction], unit: tuple[Piece, ...], scaling: Item) -> Fraction:
    """The largest squared length of one unit, by the columns and the square of each.

    With y = d / c, c positive and one number for each piece, |B d|^2 <= lambda |y|^2 <= lambda sum (amount / c)^2 for
    the largest eigenvalue lambda of c B'B c. Boxes of few numbers are enumerated; the pieces of other units with
    vertices are bounded one by one; what moves as one moves no farther than if each number did by itself.
    """
    given = [piece.amount for piece in unit] if scaling.absent else [c.exact(0) for c in scaling.items(len(unit))]
    kept = [(piece, c) for piece, c in zip(unit, given, strict=True) if piece.amount]
    shapes = {piece.shape for piece, _ in kept}
    persons = shapes & set(PERSON)
    if len(kept) > 1 and not shapes <= {"box", "l2"} and not persons:
        return sum((sqrt_up(of_unit(columns, squares, (piece,), NOTHING)) for piece, _ in kept), Fraction(0)) ** 2
    if len(kept) < 2 and not shapes & {"l2", "swap"} and not persons and all(p.along is None for p, _ in kept):
        return max((squares[i] * p.amount**2 for p, _ in kept for i in p.at), default=Fraction(0))
    exact = shapes == {"swap"} or (shapes == {"box"} and len(kept) <= VERTICES)
    scales = [
        (edge, piece.amount if exact else Fraction(1) if persons else c) for piece, c in kept for edge in piece.edges
    ]
    if any(scale <= 0 for _, scale in scales):
        raise ValueError("a scaling that is not positive")
    rows = fmpq_mat([image(columns, edge, scale) for edge, scale in scales])
    if shapes == {"swap"}:
        return diameter(rows)
    if persons:
        return largest_form(rows, [piece.room for piece, _ in kept], min(persons))
    sizes = [piece.amount / c for piece, c in kept]
    alone = shapes == {"l2"} and rows.nrows() == len(sizes)
    if not exact and not alone:
        found = eigenvalue(rows) * sum((size**2 for size in sizes), Fraction(0))
        larger = freely(unit)
        return found if larger == unit else min(found, of_unit(columns, squares, larger, NOTHING))
    whole, below = (rows * rows.transpose()).numer_denom()
    gram = tuple(tuple(map(int, row)) for row in whole.tolist())
    return (Fraction(vertex(gram)) if exact else of_vectors(gram, sizes)) / int(below)


def image(columns: list[list[fmpq]], edge: list[tuple[int, Fraction]], scale: Fraction) -> list[fmpq]:
    """What an edge moves of answers, by the columns of these."""
    (first, share), *others = [(columns[i], rational(a * scale)) for i, a in edge]
    found = [share * v for v in first]
    for column, factor in others:
        found = [v + factor * w for v, w in zip(found, column, strict=True)]
    return found


def vertex(gram: tuple[tuple[int, ...], ...]) -> int:
    """The largest s'Gs over vectors s of signs, flipped one by one (Gray's order); kept for units alike."""
    if gram in SQUARES:
        return SQUARES[gram]
    pulls, signs = [sum(row) for row in gram], [1] * len(gram)
    value = best = sum(pulls)
    for step in range(1, 2 ** max(len(gram) - 1, 0)):
        i = (step & -step).bit_length() - 1
        value -= 4 * (signs[i] * pulls[i] - gram[i][i])
        signs[i] = -signs[i]
        pulls = [pull + 2 * signs[i] * v for pull, v in zip(pulls, gram[i], strict=True)]
        best = max(best, value)
    return SQUARES.setdefault(gram, best)


def eigenvalue(rows: Matrix) -> Fraction:
    """At least the largest eigenvalue of a matrix times its transpose, or of its transpose times it, the same."""
    small = rows.transpose() * rows if rows.ncols() < rows.nrows() else rows * rows.transpose()
    whole, below = small.numer_denom()
    return _eigenvalue([list(map(int, row)) for row in whole.tolist()]) / int(below)


def _eigenvalue(gram: Gram | list[list[int]]) -> Fraction:
    """At least that of a positive semidefinite matrix: the 2^k-th root of a norm of its power."""
    if not any(map(any, gram)):
        return Fraction(0)
    with ctx.workprec(DIGITS):
        power = arb_mat(fmpz_mat(gram))
        for _ in range(SQUARINGS):
            power = power * power
        norm = sum((v * v for v in power.entries()), arb(0)).sqrt()
        return end((norm.log() / 2**SQUARINGS).exp().upper())


def of_vectors(gram: Gram, sizes: list[Fraction]) -> Fraction:
    """At least the largest sum of G_ij v_i'v_j over vectors v_i of at most these lengths, of any dimension."""
    rows = zip(sizes, gram, strict=True)
    total = sum((a * b * abs(v) for a, row in rows for b, v in zip(sizes, row, strict=True)), NONE)
    alone = sum((a * a * gram[i][i] for i, a in enumerate(sizes)), NONE)
    return total if total <= alone * CLOSE else min(total, _eigenvalue(gram) * sum((a * a for a in sizes), NONE))


# --- one person's records -----------------------------------------------------------------------------


def corners(room: Room) -> list[Move] | None:
    """Where a person's records may lie, as far out as they may: cells that are full, and one that holds the rest.

    All records of a cell lie at one of its coordinates. None where there are too many such places.
    """
    cells, (whole, rest) = room.cells, divmod(room.most, room.each)
    whole, rest = (whole, rest) if whole < len(cells) else (len(cells), 0)
    found, open_ = list[Move]([{}]), list[tuple[int, Move]]([(0, {})])
    for count in range(whole + (rest > 0)):
        # what is full stands in order; the rest may lie in any cell that is not
        held, before, open_ = rest if count == whole else room.each, open_, []
        for after, one in before:
            for c in range(0 if count == whole else after, len(cells)):
                open_ += [(c + 1, {**one, i: held}) for i in cells[c] if one.keys().isdisjoint(cells[c])]
            if len(found) + len(open_) > LISTED:
                return None
        found += [one for _, one in open_]
    return found


def moves_of(rooms: list[Room], shape: str) -> list[Move] | None:
    """Moves whose hull, with that of their opposites, is all that a person changes; None where there are too many."""
    whole, first = list[Move]([{}]), 0
    for room in rooms:
        some = corners(room)
        if some is None or len(whole) * len(some) > LISTED:
            return None
        whole = [{**one, **{first + i: v for i, v in other.items()}} for one in whole for other in some]
        first += sum(map(len, room.cells))
    if shape == PERSON[0]:
        return [one for one in whole if one]
    if len(whole) * (len(whole) - 1) > 2 * LISTED:
        return None
    pairs = ((a, b) for i, a in enumerate(whole) for b in whole[:i])
    return [{i: v for i in {**a, **b} if (v := a.get(i, 0) - b.get(i, 0))} for a, b in pairs]


def largest_form(rows: Matrix, rooms: list[Room], shape: str) -> Fraction:
    """At least the largest d'Gd over what a person changes, G being rows times rows; equal where that can be listed.

    Else the least of two bounds (notes/people.md): (Gd)_i is at most the sum of the largest entries of row i that a
    person's records may take, so that d'Gd is at most such a sum of these; or the largest eigenvalue times |d|^2.
    """
    whole, below = (rows * rows.transpose()).numer_denom()
    gram, listed = [list(map(int, row)) for row in whole.tolist()], moves_of(rooms, shape)
    if listed is not None:
        forms = (sum(a * gram[i][j] * b for i, a in d.items() for j, b in d.items()) for d in listed)
        return Fraction(max(forms, default=0), int(below))
    signs = (1, -1) if shape == PERSON[1] else (1,)
    sizes = [sum(map(len, room.cells)) for room in rooms]
    parts = [(sum(sizes[:k]), sum(sizes[: k + 1]), room) for k, room in enumerate(rooms)]

    def largest(values: tuple[Fraction | int, ...]) -> Fraction:
        return sum((room.top(values[start:stop]) for start, stop, room in parts), Fraction(0))

    sides = [[tuple(sign * v for v in row) for sign in signs] for row in gram]
    tops = largest(tuple(sum(map(largest, both), Fraction(0)) for both in sides))
    square = sum(room.most // room.each * room.each**2 + (room.most % room.each) ** 2 for room in rooms)
    # no eigenvalue is above the largest sum of a row, and the largest is not below an entry of the diagonal
    found = min(tops, Fraction(max(sum(map(abs, row)) for row in gram)) * square)
    least = max(row[i] for i, row in enumerate(gram)) * square
    found = found if found <= least * CLOSE else min(found, eigenvalue(rows) * int(below) * square)
    return len(signs) * found / int(below)


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

    |v_i'v_j| <= 1. Of units that change next to each other |G_ij| is added up as it is; of all others, which are twice
    as far apart or more, at its largest for each unit by itself.
    """
    own, far = list[int](), 2 * apart
    for i, row in enumerate(gram):
        sides = [list(map(abs, row[: max(i + 1 - far, 0)])), list(map(abs, row[i + far :]))[::-1]]
        left, right = ([one[-1] for one in best(side if any(side) else [], max(count - 2, 0), apart)] for side in sides)
        own.append(abs(row[i]) + max(a + b for a, b in zip(left, reversed(right), strict=True)))
    ends, most = own, max(own)
    for _ in range(count - 1):
        # the largest sum of so many units by the last of them
        twice = (
            [2 * abs(v) + end for v, end in zip(row[: max(i + 1 - apart, 0)], ends, strict=False)]
            for i, row in enumerate(gram)
        )
        ends = [(one + max(some)) if some else -1 for one, some in zip(own, twice, strict=True)]
        most = max(most, *ends)
    return most


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


Shared = dict[int, int]
"""By coordinate of a cell: the first of those that a record in it may lie in, by its share of each."""


def shared_among(block: Linear, steps: tuple[Fraction, ...]) -> Shared:
    """The cells of all tables of which records stand on a grid of shares."""
    found: Shared = {}
    for held, step in zip(block.held, steps, strict=True):
        firsts, at = first_cells(held.columns), block.places[held.start][0]
        for i in range(held.stop - held.start if held.cells and step != 1 else 0):
            found[at + i] = at + i - i % len(firsts) + firsts[i % len(firsts)]
    return found


def moved_and_rounded(
    ends: list[tuple[int, ...]], at: list[int], shared: Shared, *, swap: bool
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """By how much a record in each cell moves answers, or one that goes to another cell; and which of them it may move.

    Where it lies by shares in several cells it moves them by a mixture of these, but any that one of these moves.
    """
    touched = ends
    if at[0] in shared:
        alike = dict[int, list[tuple[int, ...]]]()
        for i, end_ in zip(at, ends, strict=True):
            alike.setdefault(shared[i], []).append(end_)
        any_of = {first: tuple(int(any(one)) for one in zip(*own, strict=True)) for first, own in alike.items()}
        touched = [any_of[shared[i]] for i in at]
    if not swap:
        return list(zip(ends, touched, strict=True))
    moves = [tuple(map(int.__sub__, a, b)) for i, a in enumerate(ends) for b in ends[:i]]
    if touched is ends:
        return list(zip(moves, moves, strict=True))
    return list(zip(moves, (tuple(map(max, a, b)) for i, a in enumerate(touched) for b in touched[:i]), strict=True))


def widest(points: list[tuple[int, ...]], size: int) -> int:
    """The largest distance of two points, in sums of sizes of as many numbers: for some signs, it is a range."""
    found = 0
    for pattern in range(2 ** max(size - 1, 0)):
        signs = [1 - 2 * (pattern >> k & 1) for k in range(size)]
        sums = [sum(map(int.__mul__, signs, point)) for point in points]
        found = max(found, max(sums) - min(sums))
    return found


FEW = 16
"""Rows for each column up to which all of them are compared."""


def diameter(rows: Matrix) -> Fraction:
    """The largest squared distance of two rows: of many, only groups of near ones that may be far enough are compared.

    Points of two groups are no farther apart than one of each group and the radii about these.
    """
    if rows.nrows() < FEW * rows.ncols():
        whole, below = (rows * rows.transpose()).numer_denom()
        gram = [list(map(int, row)) for row in whole.tolist()]
        pairs = (gram[i][i] + gram[j][j] - 2 * row[j] for i, row in enumerate(gram) for j in range(i))
        return Fraction(max(pairs, default=0), int(below))
    whole, below = rows.numer_denom()
    points = [tuple(map(int, row)) for row in whole.tolist()]
    groups = [(own[0], isqrt(max(apart(own[0], one) for one in own)) + 1, own) for own in near(points)]
    reaches = [
        (isqrt(apart(a[0], b[0])) + 1 + a[1] + b[1], a[2], b[2]) for i, a in enumerate(groups) for b in groups[: i + 1]
    ]
    found = 0
    for reach, some, others in sorted(reaches, key=lambda pair: -pair[0]):
        if reach * reach <= found:
            break
        found = max(found, max(apart(a, b) for a in some for b in others))
    return Fraction(found, int(below) ** 2)


def near(points: list[tuple[int, ...]]) -> list[list[tuple[int, ...]]]:
    """The points in groups, halved where they are widest, so that groups are about as many as a group has points."""
    if not points or not points[0]:
        return []
    groups, size = [points], len(points)
    while len(groups) ** 2 < size:
        halves = list[list[tuple[int, ...]]]()
        for own in groups:
            widths = [max(values) - min(values) for values in zip(*own, strict=True)]
            _, widest = max(zip(widths, zip(*own, strict=True), strict=True))
            order = sorted(range(len(own)), key=widest.__getitem__)
            halves += [[own[i] for i in half] for half in (order[: len(own) // 2], order[len(own) // 2 :]) if half]
        groups = halves
    return groups


def apart(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """The squared distance of two points."""
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))
