"""What bounds for all mechanisms of a kind rest on: what measures allow at most, and noise that parties draw alone."""

from __future__ import annotations

from fractions import Fraction

from flint import arb, ctx, fmpq

from privspec.kernel.changes import PERSON, Piece, Room, Units
from privspec.kernel.core.linear import Difference, Linear, Matrix, Places
from privspec.kernel.core.numbers import ZERO, ball, end, fraction, sqrt_up
from privspec.kernel.core.problem import AskedMeasure, Frame
from privspec.kernel.core.reading import JsonNode, Refused
from privspec.kernel.moves import units_of
from privspec.kernel.participation import of_kept
from privspec.kernel.shares import Owner, check_one, owners
from privspec.kernel.strategies.dense import chosen_rows


def largest_mu_squared(measure: AskedMeasure, pure: bool, stated: JsonNode) -> Fraction:
    """At least the mu^2 of every Gaussian release (every unbiased mechanism, if `pure`) that satisfies a measure.

    `stated`: a mu that is shown to be too large, where there is no closed form.
    """
    condition = measure.of.condition(measure.figures({}))
    if pure:
        stated.same(None)
    found = condition.largest_unbiased() if pure else condition.largest_mu_squared(stated)
    if found is None or measure.common is None or not measure.of.of_laws:
        raise stated.wrong("goes with a measure for which no bound is known")
    return found


def variance_up(size: Fraction, probability: Fraction) -> Fraction:
    """At least the variance of all normal noise that does not pass a size, with a probability."""
    with ctx.workprec(256):
        return end(((ball(size) / ball(probability).erfinv()) ** 2 / 2).upper())


def variance_of_size_up(size: Fraction) -> Fraction:
    """At least the variance of all normal noise of which the size is no larger on average."""
    with ctx.workprec(256):
        return end((ball(size) ** 2 * arb.pi() / 2).upper())


# --- noise that each party draws alone, of any covariance in all that it holds ---------------------------

PARTIES, MESSAGES = "parties", "messages"
"""Scopes of bounds: what each party draws is of any covariance, or noise on each of its numbers."""
APART = "Gaussian noise that each party draws alone, unbiased"


def among(scope: str, frame: Frame, words: tuple[str, ...], pure: bool) -> tuple[str, ...]:
    """What a bound is about: `words`, shares of such noise (noise/notes/shares.md), or what each party draws alone."""
    if scope == PARTIES:
        return (APART,)
    return (f"shares of {words[-1 if pure else 0]}",) if frame.trust.means.shared else words


def hulls(differences: tuple[Difference, ...], places: Places) -> list[Units]:
    """Sets of differences with the hull of each: units, or every choice of units that are held apart by itself."""
    plain = [units_of(one, places) for one in differences if one.apart is None]
    apart = [units_of(one, places).grouped() for one in differences if one.apart is not None]
    return plain + [Units((unit,), 1) for some in apart for unit in some.units]


def owners_of(moves: Units) -> dict[int, tuple[int, Piece]]:
    """The unit and the piece that move each coordinate; of several units the last."""
    return {i: (u, one) for u, (unit, _) in enumerate(moves.units) for one in unit if one.along is None for i in one.at}


def gauge(moves: Units, owners: dict[int, tuple[int, Piece]], column: dict[int, fmpq]) -> Fraction | None:
    """The least factor by which the convex hull of the differences contains a column, rounded up; None if none does.

    Units of a class stand for each other: the hull has each of them at most as often as there are. `owners`: as
    `owners_of` has them; where several units have a coordinate, the last gives a factor that is large enough.
    """
    units, count = moves.units, moves.count
    moved: dict[tuple[int, int], tuple[Piece, dict[int, Fraction]]] = {}
    for i, a in column.items():
        if i not in owners:
            return None
        unit, piece = owners[i]
        moved.setdefault((unit, id(piece)), (piece, {}))[1][i] = fraction(a)
    shares: dict[int, Fraction] = {}
    kept: dict[int, list[tuple[dict[int, Fraction], Room, str]]] = {}
    joined = {u: as_one(units[u][0], column) for u, _ in moved if any(one.along for one in units[u][0])}
    if None in joined.values():
        return None
    for (unit, _), (piece, own) in moved.items():
        if piece.shape == "box" and unit in joined:
            share = joined[unit] or ZERO
        elif not piece.amount or (piece.shape == "swap" and sum(own.values(), ZERO)):
            return None
        elif piece.shape in PERSON:
            places = {i - piece.at[0]: a for i, a in own.items()}
            kept.setdefault(unit, []).append((places, piece.room, piece.shape))
            continue
        else:
            square = piece.shape == "l2"
            size = sqrt_up(sum((a * a for a in own.values()), ZERO)) if square else sum(map(abs, own.values()), ZERO)
            share = size / piece.amount / (1 + (piece.shape == "swap"))
        shares[unit] = max(shares.get(unit, share), share)
    for unit, records in kept.items():
        shares[unit] = max(shares.get(unit, ZERO), of_kept(records))
    alone = [share / units[unit][1] for unit, share in shares.items()]
    return max([*alone, sum(shares.values(), ZERO) / count], default=ZERO)


def as_one(unit: tuple[Piece, ...], column: dict[int, fmpq]) -> Fraction | None:
    """The least t for which numbers of a unit are s c_i + d_i with |s| <= t and |d_i| <= t h_i; None if there is none.

    c is what moves as one, h how far each number moves besides. Two intervals of s, (v_i - t h_i) / c_i to
    (v_i + t h_i) / c_i or -t to t, meet from a t on; all of them meet where every two do. Of those of one width the
    outer ones count.
    """
    reach = {piece.at[0]: piece.amount for piece in unit if piece.shape == "box" and piece.along is None}
    middles = {i: a for piece in unit if piece.along for i, a in zip(piece.at, piece.along, strict=True)}
    found, ends = ZERO, {Fraction(1): [ZERO, ZERO]}
    for i, most in reach.items():
        value, middle = fraction(column.get(i, fmpq(0))), middles.get(i, ZERO)
        if middle:
            place, width = value / middle, most / abs(middle)
            low, high = ends.get(width, [place, place])
            ends[width] = [min(low, place), max(high, place)]
        elif value and not most:
            return None
        elif value:
            found = max(found, abs(value) / most)
    for width, (low, _) in ends.items():
        for other, (_, high) in ends.items():
            if high > low and not width + other:
                return None
            if high > low:
                found = max(found, (high - low) / (width + other))
    return found


def mass(
    block: Linear, some: tuple[Difference, ...], columns: Matrix, given: JsonNode, times: list[Fraction] | None = None
) -> Fraction:
    """The sum of squared gauges of columns, which are the rows of a matrix, for the differences of a line.

    `times`: how often each counts.

    Of records that move from one cell to another only F F' matters: F stands for all pairs at once, F F' =
    sum p (e_i - e_j)(e_i - e_j)', if columns sum to zero and nothing is positive off the diagonal.
    """
    spaced = in_a_row(block, some, columns, given)
    if spaced is not None:
        return spaced
    found, rows, total = hulls(some, block.places), columns.tolist(), ZERO
    swaps = [piece for change in found for own, _ in change.units for piece in own if piece.shape == "swap"]
    if len(found) == len(swaps) == 1 and any(sum(map(bool, row)) > 2 for row in rows):
        cells, moment = swaps[0].at, (columns.transpose() * columns).tolist()
        outside = any(any(row[: cells[0]]) or any(row[cells[-1] + 1 :]) or sum(row) for row in rows)
        if outside or any(v > 0 for i, row in enumerate(moment) for j, v in enumerate(row) if i != j):
            raise given.wrong("is no mixture of differences of two cells")
        return fraction(sum(row[i] for i, row in enumerate(moment))) / (2 * swaps[0].amount ** 2)
    owners = [owners_of(moves) for moves in found]
    for row, often in zip(rows, times or [Fraction(1)] * len(rows), strict=True):
        column = {i: v for i, v in enumerate(row) if v}
        sizes = [gauge(*pair, column) for pair in zip(found, owners, strict=True)]
        known = [size for size in sizes if size is not None]
        if not known:
            raise given.wrong("is no difference of neighbours")
        total += often * min(known) ** 2
    return total


def grams(scope: str, frame: Frame, block: Linear, columns: Matrix, found: Matrix, moved: Matrix) -> list[Matrix]:
    """The Gram matrices of the vectors, columns of `found`, none of which may be more than kappa: one, or each party's.

    Where parties draw noise alone, what party i sends hides its differences by noise of a covariance S_i, and the noise
    in the answers is the sum: 2 z'T f - z'S_i z <= mu^2 for the columns of that party, and Z_i Z_i' <= kappa is enough.
    Raises: Refused where messages are not seen by all, or a difference is in what several parties hold.
    """
    left = found.transpose()
    if scope != PARTIES:
        inner = found * left if found.nrows() <= columns.nrows() else left * found
        return [left * (moved * found) if scope == "inputs" else inner]
    if not frame.trust.means.alone or not columns.nrows():
        raise Refused("bounds noise of single parties, and nobody adds any alone")
    own = dict[Owner, list[int]]()
    for row, name in enumerate(_whose(frame, block, columns)):
        own.setdefault(name, []).append(row)
    parts = [chosen_rows(left, rows) for rows in own.values()]
    return [one * one.transpose() if one.nrows() <= one.ncols() else one.transpose() * one for one in parts]


def _whose(frame: Frame, block: Linear, columns: Matrix) -> list[Owner]:
    """The party whose numbers each column, a row of a matrix, is a difference in; or the class whose members' it is."""
    owner = owners(frame, [(one.shape, one.stop - one.start, one.cells, one.units) for one in block.held])
    found = [{owner[i] for i, v in enumerate(row) if v} for row in columns.tolist()]
    if any(len(names) != 1 for names in found):
        raise Refused("bounds noise of single parties by a difference in what several of them hold")
    return [min(names) for names in found]


def sent(scope: str, frame: Frame, block: Linear, columns: Matrix, found: Matrix | None = None) -> list[Fraction]:
    """How many parties each column, a row of a matrix, stands for in a bound of noise that they draw alone.

    The members of a class have the same columns and vectors, one set each, and so traces and masses of them add up. A
    vector of theirs, a column of `found`, is about what one of them holds. Elsewhere each column counts once.
    """
    if scope not in (PARTIES, MESSAGES) or all(max(one.copies) == 1 for _, one in block.places.values()):
        return [Fraction(1)] * columns.nrows()
    for one in (one for line in range(len(block.differences)) for one in block.surely(line)):
        check_one(one.count, [(part.length, block.places[part.start][1]) for part in one.parts])
    whose = _whose(frame, block, columns)
    if found is not None and scope == MESSAGES and _whose(frame, block, found.transpose()) != whose:
        raise Refused("bounds noise of single parties by vectors in what others hold")
    return [Fraction(n) for _, n in whose]


# --- units of one input that lie apart: columns stand in a row for the vectors of units (noise/notes/streams.md) ---


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


def in_a_row(block: Linear, some: tuple[Difference, ...], columns: Matrix, given: JsonNode) -> Fraction | None:
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
