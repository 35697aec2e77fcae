"""Answers that are any linear map of the data: the largest d'Gd, and the largest cost, over what units change.

|B d|^2 = d'Gd for the Gram matrix G of the columns that a change moves. Few vertices are listed. Else a diagonal is put
above G (domination): with y = d / c, |B d|^2 <= lambda |y|^2 for the largest eigenvalue lambda of c B'B c, whatever the
positive numbers c are; they are a witness, and a poor one makes the bound worse. A person has at most so many records
in the cells of a table, and at most so many of them in one cell (notes/people.md). Units that change at distances from
each other (notes/streams.md) move what is seen by the root of the sum of G_ij v_i'v_j, |v_i| <= 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, gcd, isqrt

from flint import arb, arb_mat, ctx, fmpq, fmpq_mat, fmpz, fmpz_mat

from privspec.kernel.changes import COUNTED, CROWD, PERSON, Piece, Room, Units, boxed, freely
from privspec.kernel.core.numbers import ZERO, end, fraction, rational, sqrt_up
from privspec.kernel.core.reading import Refused, frozen

Matrix = fmpq_mat
Gram = tuple[tuple[int, ...], ...]
Move = dict[int, int]
Scaling = list[Fraction] | None
Answers = dict[int, Fraction]
"""Some answers, with a scale for each."""
Shared = dict[int, int]
"""By coordinate of a cell: the first of those that a record in it may lie in, by its share of each."""
SQUARES: dict[Gram, int] = {}
SQUARINGS, DIGITS = 40, 106
"""Squarings of a matrix until its norm bounds its largest eigenvalue, each of which loses one of so many digits."""
CLOSE = 1 + Fraction(1, 10**9)
"""Factor up to which a bound is not made better by a largest eigenvalue, which takes long to bound."""
LISTED = 4096
"""What a person may change is listed up to so many moves."""
VERTICES = 16
"""Boxes of at most so many numbers are enumerated."""
SINGLE = ("box", "l1", "cell")
"""Shapes of which one answer, or one column, moves farthest."""
FEW = 16
"""Rows for each column up to which all of them are compared."""


@frozen
class Dense:
    """A matrix (answers, numbers)."""

    matrix: Matrix

    @property
    def answers(self) -> int:
        return int(self.matrix.nrows())

    def chosen(self, rows: list[int]) -> Dense:
        """Some of the answers."""
        return Dense(chosen_rows(self.matrix, rows))

    def mixture(self, shown: list[list[fmpq]], inverse: fmpq_mat) -> tuple[Dense, Fraction]:
        """How K L B moves, for L the rows `shown` and K an `inverse`, and at least 1 / (the covariance of K L noise).

        Whoever sees L (B u + noise) and nothing else sees as much as K L (B u + noise), for any K with an inverse. That
        noise has the covariance K L L'K', which is at least 1 - e where |1 - K L L'K'| <= e < 1 (Frobenius norm); then
        K has an inverse on what L shows.
        """
        if not inverse.nrows() == inverse.ncols() == len(shown):
            raise Refused("is no inverse of what is seen")
        mixed = inverse * fmpq_mat(shown)
        gram = (mixed * mixed.transpose()).tolist()
        off = [v - (i == j) for i, row in enumerate(gram) for j, v in enumerate(row)]
        defect = sqrt_up(dot(off, off))
        if defect >= 1:
            raise Refused("is not near an inverse of what is seen")
        return Dense(mixed * self.matrix), 1 / (1 - defect)

    def quadratic_sensitivity(self, change: Units, scaling: list[Scaling] | None = None) -> Fraction:
        """At least the largest squared length of the move of all answers."""
        if change.apart is not None and change.crowded:
            return spread(self.matrix, change)
        units = change.grouped()
        return largest_square(self.matrix, units, scaling or [None] * len(units.units))

    def absolute_sensitivity(
        self, scales: list[Fraction], steps: list[Fraction], change: Units, shared: Shared
    ) -> Fraction:
        """At least the largest sum over the answers of their move, in the scale of each, with what rounding adds."""
        moved = change.grouped()
        return largest(unit_costs(self.matrix, scales, steps, moved, shared), moved)

    def largest_of_parts(self, blocks: list[list[Answers]], change: Units) -> Fraction:
        """At least the sum over blocks of the largest over their parts of how far answers move, sizes in scales added.

        For each unit every part by itself, at the worst of its changes: equal to it where the parts of one block move,
        and their moves are free of one another. What several units do at once is at most the sum of what each does.
        """
        moved = change.grouped()
        total = [ZERO] * len(moved.units)
        for parts in blocks:
            each = [
                unit_costs(self.chosen(list(own)).matrix, list(own.values()), [ZERO] * len(own), moved, {})
                for own in parts
            ]
            total = [before + max(own) for before, own in zip(total, zip(*each, strict=True), strict=True)]
        return largest(total, moved)


@frozen
class Lattice:
    """The noisy answers are rounded to whole multiples of `grid`.

    `points`: what the number of each coordinate is a sum of whole multiples of, which normal noise need not know;
    `shared`: cells of a table of which a record may lie in several, by its share of each.
    """

    grid: Fraction
    points: tuple[tuple[Fraction, ...], ...]
    shared: Shared

    def rounding(self, strategy: Dense, rows: list[int]) -> list[Fraction]:
        """The step of the lattice for each of these answers that may lie between its points, else 0."""
        answers = strategy.chosen(rows).matrix * rational(1 / self.grid)
        every = {point for points in self.points for point in points}
        if all((answers * rational(point)).numer_denom()[1] == 1 for point in every):
            return [ZERO] * len(rows)
        each = [[rational(point) for point in points] for points in self.points]
        scaled = answers.tolist()
        off = (any((v * p).q != 1 for v, own in zip(row, each, strict=True) if v for p in own) for row in scaled)
        return [self.grid if one else ZERO for one in off]

    def together(self, strategy: Dense, change: Units) -> int:
        """Answers that are points of the lattice move by whole multiples of so many of its steps."""
        if not change.multiples:
            return 1
        each = [[rational(amount) for amount in own] for own in change.multiples]
        rows = (strategy.matrix * rational(1 / self.grid)).tolist()
        moved: list[fmpq] = [v * a for row in rows for v, own in zip(row, each, strict=True) if v for a in own]
        return 1 if any(one.q != 1 for one in moved) else gcd(*(int(one.p) for one in moved))


def largest(found: list[Fraction], change: Units) -> Fraction:
    """The sum of the largest of what units reach, of as many as change at once."""
    total, left = ZERO, change.count
    for value, copies in sorted(zip(found, (copies for _, copies in change.units), strict=True), reverse=True):
        total += value * min(copies, left)
        left -= min(copies, left)
    return total


def largest_square(strategy: Matrix, change: Units, scaling: Sequence[Scaling]) -> Fraction:
    """At least the largest squared length of strategy d over the changes d.

    `scaling`: for each unit positive numbers, one for each piece, that only help to bound units of many numbers.
    """
    turned = strategy.transpose()
    columns = turned.tolist()
    single = any(piece.shape in SINGLE for unit, _ in change.units for piece in unit)
    squares = products(turned, turned) if single else []
    found = [of_unit(columns, squares, unit, own) for (unit, _), own in zip(change.units, scaling, strict=True)]
    if change.count == 1:
        return max(found, default=ZERO)
    return several(strategy, change, largest(list(map(sqrt_up, found)), change) ** 2)


def unit_costs(
    answers: Matrix, scales: list[Fraction], steps: list[Fraction], change: Units, shared: Shared
) -> list[Fraction]:
    """At least the largest cost of what each unit changes: the sum over answers of |move| in the scale of each.

    `steps`: that of the lattice where an answer may lie between its points and be rounded, else 0; it is paid where the
    answer moves, of records that cells have `shared` among them wherever one of these does.
    """
    rows = zip(map(rational, scales), answers.tolist(), strict=True)
    scaled = fmpq_mat(len(scales), answers.ncols(), [v / scale for scale, row in rows for v in row])
    whole, below = scaled.transpose().numer_denom()
    columns = [tuple(map(int, column)) for column in whole.tolist()]
    paid, totals = [s / scale for s, scale in zip(steps, scales, strict=True)], list[Fraction]()
    alone = len(scales) == 1 and not any(steps)

    def length(move: tuple[int, ...]) -> Fraction:
        return Fraction(sum(map(abs, move)), int(below))

    def step(moved: tuple[int, ...]) -> Fraction:
        return sum((p for v, p in zip(moved, paid, strict=True) if v), ZERO) if any(steps) else ZERO

    for unit, _ in change.units:
        total, touched = ZERO, [columns[i] for piece in unit if piece.shape not in COUNTED for i in piece.at]
        for piece in unit:
            # part of a record makes an answer round as a whole one does
            records = ceil(piece.amount)
            if piece.along is not None:
                turned = [[a * v for v in columns[i]] for i, a in piece.edges[0]]
                sums = (abs(sum(row, ZERO)) for row in zip(*turned, strict=True))
                total += sum(sums, ZERO) * piece.amount / int(below)
                continue
            ends = [columns[i] for i in piece.at]
            if piece.shape == "swap" and (alone or max(2 ** len(scales), VERTICES**2) <= len(ends)):
                total += length((widest(ends, len(scales)),)) * piece.amount + step((1,) * len(scales)) * records
                continue
            moved = moved_and_rounded(ends, list(piece.at), shared, swap=piece.shape == "swap")
            if piece.shape in PERSON and alone:
                # of one answer what moves it up and what moves it down do not add up
                values = [Fraction(v, int(below)) for move, _ in moved for v in move]
                sides = piece.room.top(values), piece.room.top([-v for v in values])
                total += sum(sides) if piece.shape == PERSON[1] else max(sides)
            elif piece.shape in PERSON:
                each = [length(move) + step(own) for move, own in moved]
                total += piece.room.top(each) * (1 + (piece.shape == PERSON[1]))
            elif piece.shape in COUNTED:
                each = [length(move) * piece.amount + step(own) * records for move, own in moved]
                total += max(each, default=0)
            else:
                each = [length(move) for move, _ in moved]
                total += (sum(each) if piece.shape in ("box", "l2") else max(each, default=0)) * piece.amount
        totals.append(total + step(tuple(map(any, zip(*touched, strict=True)))) if touched else total)
    return totals


def of_unit(columns: list[list[fmpq]], squares: list[Fraction], unit: tuple[Piece, ...], scaling: Scaling) -> Fraction:
    """The largest squared length of one unit, by the columns and the square of each.

    Pieces of other shapes than numbers and vectors are bounded one by one; a person's records are counted together.
    """
    if len(unit) > 1:
        unit = boxed(unit)
    if scaling is not None and len(scaling) != len(unit):
        raise Refused(f"has {len(scaling)} numbers in place of {len(unit)} in a scaling")
    moving = [piece for piece in unit if piece.amount]
    if len(moving) < 2 and all(piece.shape in SINGLE and piece.along is None for piece in moving):
        return max((squares[i] * piece.amount**2 for piece in moving for i in piece.at), default=ZERO)
    shapes = {piece.shape for piece in moving}
    if shapes & set(PERSON):
        return of_person(columns, moving, min(shapes))
    if shapes == {"swap"} and len(moving) < 2:
        return diameter(fmpq_mat([image(columns, edge, moving[0].amount) for edge in moving[0].edges]))
    if not shapes <= {"box", "l2"}:
        return sum((sqrt_up(of_unit(columns, squares, (piece,), None)) for piece in moving), ZERO) ** 2
    return of_numbers(columns, squares, unit, scaling)


def of_numbers(
    columns: list[list[fmpq]], squares: list[Fraction], unit: tuple[Piece, ...], scaling: Scaling
) -> Fraction:
    """The same of a box of numbers, or of vectors of the Euclidean norm.

    With y = d / c, c positive and one number for each piece, |B d|^2 <= lambda |y|^2 <= lambda sum (amount / c)^2 for
    the largest eigenvalue lambda of c B'B c. Boxes of few numbers are enumerated; what moves as one moves no farther
    than if each number did by itself.
    """
    balls = any(piece.shape == "l2" for piece in unit if piece.amount)
    # vectors lie in one ball, numbers in one box
    given = scaling or [Fraction(1) if balls else piece.amount for piece in unit]
    kept = [(piece, c) for piece, c in zip(unit, given, strict=True) if piece.amount]
    exact = not balls and len(kept) <= VERTICES
    scales = [(edge, piece.amount if exact else c) for piece, c in kept for edge in piece.edges]
    if any(scale <= 0 for _, scale in scales):
        raise ValueError("a scaling that is not positive")
    rows = fmpq_mat([image(columns, edge, scale) for edge, scale in scales])
    sizes = [piece.amount / c for piece, c in kept]
    if not exact and not (balls and rows.nrows() == len(sizes)):
        found = eigenvalue(rows) * sum((size**2 for size in sizes), ZERO)
        larger = freely(unit)
        return found if larger == unit else min(found, of_unit(columns, squares, larger, None))
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
        return ZERO
    with ctx.workprec(DIGITS):
        power = arb_mat(fmpz_mat(gram))
        for _ in range(SQUARINGS):
            power = power * power
        norm = sum((v * v for v in power.entries()), arb(0)).sqrt()
        return end((norm.log() / 2**SQUARINGS).exp().upper())


def of_vectors(gram: Gram, sizes: list[Fraction]) -> Fraction:
    """At least the largest sum of G_ij v_i'v_j over vectors v_i of at most these lengths, of any dimension."""
    rows = zip(sizes, gram, strict=True)
    total = sum((a * b * abs(v) for a, row in rows for b, v in zip(sizes, row, strict=True)), ZERO)
    alone = sum((a * a * gram[i][i] for i, a in enumerate(sizes)), ZERO)
    return total if total <= alone * CLOSE else min(total, _eigenvalue(gram) * sum((a * a for a in sizes), ZERO))


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


def of_person(columns: list[list[fmpq]], moving: list[Piece], shape: str) -> Fraction:
    """At least the largest d'Gd over what a person changes, G being rows times rows; equal where that can be listed.

    Else the least of two bounds (notes/people.md): (Gd)_i is at most the sum of the largest entries of row i that a
    person's records may take, so that d'Gd is at most such a sum of these; or the largest eigenvalue times |d|^2.
    """
    rows = fmpq_mat([image(columns, edge, Fraction(1)) for piece in moving for edge in piece.edges])
    rooms = [piece.room for piece in moving]
    (gram, below), listed = gram_of(rows), moves_of(rooms, shape)
    if listed is not None:
        forms = (sum(a * gram[i][j] * b for i, a in d.items() for j, b in d.items()) for d in listed)
        return Fraction(max(forms, default=0), int(below))
    signs = (1, -1) if shape == PERSON[1] else (1,)
    sizes = [sum(map(len, room.cells)) for room in rooms]
    parts = [(sum(sizes[:k]), sum(sizes[: k + 1]), room) for k, room in enumerate(rooms)]

    def largest(values: tuple[Fraction | int, ...]) -> Fraction:
        return sum((room.top(values[start:stop]) for start, stop, room in parts), ZERO)

    sides = [[tuple(sign * v for v in row) for sign in signs] for row in gram]
    tops = largest(tuple(sum(map(largest, both), ZERO) for both in sides))
    square = sum(room.most // room.each * room.each**2 + (room.most % room.each) ** 2 for room in rooms)
    # no eigenvalue is above the largest sum of a row, and the largest is not below an entry of the diagonal
    found = min(tops, Fraction(max(sum(map(abs, row)) for row in gram)) * square)
    least = max(row[i] for i, row in enumerate(gram)) * square
    found = found if found <= least * CLOSE else min(found, eigenvalue(rows) * int(below) * square)
    return len(signs) * found / int(below)


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


def diameter(rows: Matrix) -> Fraction:
    """The largest squared distance of two rows."""
    if rows.nrows() >= FEW * rows.ncols():
        return diameter_of_many(rows)
    gram, below = gram_of(rows)
    pairs = (gram[i][i] + gram[j][j] - 2 * row[j] for i, row in enumerate(gram) for j in range(i))
    return Fraction(max(pairs, default=0), below)


def diameter_of_many(rows: Matrix) -> Fraction:
    """The same of many rows, of which only groups of near ones that may be far enough are compared.

    Points of two groups are no farther apart than one of each group and the radii about these.
    """
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


def spread(strategy: Matrix, change: Units) -> Fraction:
    """At least the largest squared length of strategy d, of units of one number or vector each that are crowded."""
    (amount,) = change.amounts
    places = [unit[0].at[0] for unit, _ in change.units]
    rows = chosen_rows(strategy.transpose(), places)
    gram, below = gram_of(rows)
    return farthest(gram, change.count, change.apart or 1) * amount**2 / below


def several(strategy: Matrix, change: Units, known: Fraction) -> Fraction:
    """What is known, or less: of units of one number or one vector each, what they do together, pair by pair."""
    pieces = [unit[0] for unit, copies in change.units if len(unit) == copies == 1]
    single = all(len(one.at) == 1 and one.along is None and one.shape in ("box", "l1", "l2") for one in pieces)
    if not single or not change.count < len(pieces) == len(change.units) <= CROWD:
        return known
    rows = chosen_rows(strategy.transpose(), [one.at[0] for one in pieces]).tolist()
    moved = fmpq_mat([[rational(one.amount) * v for v in row] for one, row in zip(pieces, rows, strict=True)])
    whole, below = (moved * moved.transpose()).numer_denom()
    found = at_once([list(map(int, row)) for row in whole.tolist()], change.count)
    return min(known, Fraction(found, int(below)))


def at_once(gram: list[list[int]], count: int) -> int:
    """At least the sum of G_ij v_i'v_j over up to `count` units that change, |v_i'v_j| <= 1.

    What a unit adds, with all others that change, is at most the sum of the `count` largest |G_ij| of its row.
    """
    rows = sorted((sum(sorted(map(abs, row))[-count:]) for row in gram), reverse=True)
    return sum(rows[:count])


# --- exact matrices ------------------------------------------------------------------------------------------------


def gram_of(rows: Matrix) -> tuple[list[list[int]], int]:
    """The products of every two rows, in whole numbers, and what they are over."""
    whole, below = (rows * rows.transpose()).numer_denom()
    return [list(map(int, row)) for row in whole.tolist()], int(below)


def dot(left: list[fmpq], right: list[fmpq]) -> Fraction:
    """The sum of the products of two rows."""
    return fraction((fmpq_mat(1, len(left), left) * fmpq_mat(len(right), 1, right))[0, 0])


def chosen_rows(matrix: fmpq_mat, rows: list[int]) -> fmpq_mat:
    """Some of the rows, in any order."""
    if rows == list(range(matrix.nrows())):
        return matrix
    return fmpq_mat(len(rows), matrix.ncols(), [v for row in map(matrix.tolist().__getitem__, rows) for v in row])


def products(left: fmpq_mat, right: fmpq_mat) -> list[Fraction]:
    """The product of each row with the row of another matrix."""
    (a, unit), (b, below) = left.numer_denom(), right.numer_denom()
    rows = ((sum(map(fmpz.__mul__, *pair), fmpz(0)), unit * below) for pair in zip(a.tolist(), b.tolist(), strict=True))
    return [fraction(fmpq(*one)) for one in rows]
