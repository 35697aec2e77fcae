"""The largest bias of answers that are pulled towards public values, whatever the inputs hold.

Released numbers are M u + shift on average, u the base vector, and T u is asked for: with E the error terms, these are
off by b = E (M - T) (u - c) + E ((M - T) c + shift), c the middle of what inputs may hold. Each input is a sum of sets
around it: numbers between two ends, vectors of a ball, counts of cells whose sum is public. With y the shares of what
corners, axes of balls, and the fixed part move, sum w b^2 = |H y|^2 is at most L |y / s|^2 for any positive numbers s
and L the largest eigenvalue of s H'H s (domination); s is a witness, and a poor one makes the bound worse. Of few
intervals all corners are tried, of one set of corners each, and so is the largest bias of one error term exact.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import fmpq, fmpq_mat

from privspec.kernel.core.linear import Ball, InputLayout, Linear, Matrix, Measured, Numbers, Release
from privspec.kernel.core.numbers import ZERO, fraction, rational, sqrt_up
from privspec.kernel.core.reading import Refused, frozen
from privspec.kernel.rows import Rows, beside, laid_out, less, weighed
from privspec.kernel.strategies.dense import VERTICES, eigenvalue, vertex

TOGETHER = 512
"""Corners of all sets, or error terms, up to which errors are added up before their squares are bounded."""
CORNERS, EUCLIDEAN = "corners", "euclidean"
Moves = list[tuple[int, Fraction]]
"""What a corner moves: coordinates, and by how much."""


@frozen
class HeldSet:
    """Part of the inputs that varies by itself, as corners of a hull; or as the axes of a Euclidean ball."""

    kind: str
    corners: tuple[Moves, ...]


def middle_and_sets(block: Linear, needed: set[int]) -> tuple[list[Fraction], list[HeldSet]]:
    """The middle of what the inputs may hold, and the sets around it, for the coordinates that are needed.

    Raises: Refused where one of these has no ends.
    """
    middle, found = [ZERO] * block.inputs, list[HeldSet]()
    for held in block.held:
        at, one = block.places[held.start]
        copies = one.numbers
        if not needed & set(range(at, at + len(copies))):
            continue
        if held.cells:
            middle[at : at + len(copies)], own = _counts(held, at, len(copies))
            found.append(own)
        elif held.ball:
            found += _balls(held.ball, at, copies)
        elif held.lower is not None and held.upper is not None:
            half, centre = (held.upper - held.lower) / 2, (held.upper + held.lower) / 2
            middle[at : at + len(copies)] = [centre * count for count in copies]
            found += [HeldSet(CORNERS, ([(at + i, half * count)],)) for i, count in enumerate(copies) if half]
        else:
            raise Refused(f"pulls answers about {held.name}, which may be off by any amount")
    return middle, found


def _counts(held: InputLayout, at: int, size: int) -> tuple[list[Fraction], HeldSet]:
    """All records in one cell, or none that is counted."""
    if held.records is None:
        raise Refused(f"pulls answers about {held.name}, of which nobody knows how many records it has")
    even = Fraction(held.records, size)
    none = [(at + i, -even) for i in range(size)]
    full = [[(k, move + held.records * (i == k - at)) for k, move in none] for i in range(size)]
    return [even] * size, HeldSet(CORNERS, (none, *full))


def _balls(ball: Ball, at: int, copies: list[int]) -> list[HeldSet]:
    """Every so many coordinates in turn are a vector, or the sum of those of a class."""
    size, found = ball.dimension, list[HeldSet]()
    for start in range(0, len(copies), size):
        axes = tuple([(at + i, ball.radius * copies[i])] for i in range(start, start + size))
        found.append(HeldSet(EUCLIDEAN if ball.norm == 2 and size > 1 else CORNERS, axes))
    return found


@frozen
class Bias:
    """Upper bounds: `terms`, the size of the bias of each error term; `squares`, the weighted sum of their squares.

    `outputs`: the size of the bias of each released number; `middle`: of the inputs. Under a law of the data `average`
    has the mean square of the bias of each error term.
    """

    terms: list[Fraction]
    squares: Fraction
    outputs: list[Fraction]
    middle: list[Fraction]
    average: list[Fraction] | None = None


def bias_of(release: Release, noise: Rows) -> Bias:
    """Of what is executed, `noise` (m, k) the map from the noisy answers to the outputs.

    Raises: Refused where no bound is known.
    """
    block, shift = release.problem, release.shift or ()
    off = laid_out(less(noise * release.strategy, block.target))
    needed = {j for row in off.tolist() for j, v in enumerate(row) if v}
    middle, sets = middle_and_sets(block, needed)
    column = fmpq_mat(block.inputs, 1, list(map(rational, middle)))
    fixed = off * column + fmpq_mat(block.size, 1, list(map(rational, shift)))
    moved = off * _corners(block.inputs, sets)
    outputs = _sizes(moved, fixed, sets)
    if block.errors.rows is None:
        terms = outputs
    else:
        moved, fixed = laid_out(block.errors.of(moved)), laid_out(block.errors.of(fixed))
        terms = _sizes(moved, fixed, sets)
    squares = _squares(block.errors, moved, fixed, sets, terms, release.domination)
    if block.law is None:
        return Bias(terms, squares, outputs, middle)
    mean, spread = moments(block)
    errors = laid_out(block.errors.of(off))
    column, at = (
        fmpq_mat(block.inputs, 1, list(map(rational, mean))),
        fmpq_mat(block.size, 1, list(map(rational, shift))),
    )
    known = laid_out(block.errors.of(off * column + at)).entries()
    pairs = zip(errors.tolist(), known, strict=True)
    average = [fraction(base) ** 2 + spread(list(map(fraction, row))) for row, base in pairs]
    return Bias(terms, squares, outputs, mean, average)


Variance = Callable[[list[Fraction]], Fraction]
"""Of a combination of the coordinates."""


def moments(block: Linear) -> tuple[list[Fraction], Variance]:
    """The mean of the coordinates under the law of a block, and the variance of any combination.

    Raises: Refused for a law of what an input does not hold.
    """
    mean, alone, tables = [ZERO] * block.inputs, [ZERO] * block.inputs, list[tuple[range, int, Numbers]]()
    for held, law in zip(block.held, block.law or (), strict=True):
        at, one = block.places[held.start]
        span = range(at, at + len(one.numbers))
        if held.ball or held.cells != (law.chances is not None) or (held.cells and not held.records):
            raise Refused(f"has a law of other data than {held.name}")
        if law.chances is None:
            for i, count in zip(span, one.numbers, strict=True):
                mean[i], alone[i] = count * law.mean, count * law.variance
            continue
        if len(law.chances) != len(span):
            raise Refused(f"has a law of other cells than those of {held.name}")
        for i, chance in zip(span, law.chances, strict=True):
            mean[i] = (held.records or 0) * chance
        tables.append((span, held.records or 0, law.chances))

    def variance(row: list[Fraction]) -> Fraction:
        total = sum((v * v * own for v, own in zip(row, alone, strict=True) if v), ZERO)
        for span, records, chances in tables:
            pairs = list(zip((row[i] for i in span), chances, strict=True))
            first, second = (sum((p * v**power for v, p in pairs), ZERO) for power in (1, 2))
            total += records * (second - first**2)
        return total

    return mean, variance


def _corners(inputs: int, sets: list[HeldSet]) -> Matrix:
    """The corners (n, all of them)."""
    corners = [moves for one in sets for moves in one.corners]
    found = fmpq_mat(inputs, len(corners))
    for j, moves in enumerate(corners):
        for i, amount in moves:
            found[i, j] = rational(amount)
    return found


def _sizes(moved: Matrix, fixed: Matrix, sets: list[HeldSet]) -> list[Fraction]:
    """At most how far each row is from 0, in steps of which the first is fixed."""
    found = list[Fraction]()
    for row, (base,) in zip(moved.tolist(), fixed.tolist(), strict=True):
        total, at = abs(fraction(base)), 0
        if len(sets) == 1 and sets[0].kind == CORNERS and len(row) > 1 and _one_sided(sets[0]):
            found.append(max(abs(fraction(base + v)) for v in row))
            continue
        for one in sets:
            own = [fraction(v) for v in row[at : at + len(one.corners)]]
            total += _size(own, one)
            at += len(own)
        found.append(total)
    return found


def _one_sided(one: HeldSet) -> bool:
    """Whether the corners are all there are: those of counts, and not of a ball with their opposites."""
    return any(len(moves) > 1 for moves in one.corners)


def _size(values: list[Fraction], one: HeldSet) -> Fraction:
    if one.kind == EUCLIDEAN:
        return sqrt_up(sum((v * v for v in values), ZERO))
    return max(map(abs, values), default=ZERO)


def _squares(
    errors: Measured,
    moved: Matrix,
    fixed: Matrix,
    sets: list[HeldSet],
    terms: list[Fraction],
    scaling: tuple[Fraction, ...] | None,
) -> Fraction:
    """At most the weighted sum of squared biases: the less of what each term is at most, and of what all are together.

    `scaling`: positive numbers, for the fixed part and for each corner.
    Raises: Refused where these are not as many, or not positive.
    """
    weights = list(errors.weights)
    apart = sum((w * size**2 for w, size in zip(weights, terms, strict=True)), ZERO)
    if scaling is not None and (len(scaling) != 1 + moved.ncols() or min(scaling) <= 0):
        raise Refused("bounds biases by numbers that are not positive, or not one for each corner")
    rows = weighed([sqrt_up(w) for w in weights], beside([fixed, moved])).transpose()
    if len(sets) == 1 and sets[0].kind == CORNERS:
        base, *corners = rows.tolist()
        signs = (1,) if _one_sided(sets[0]) else (1, -1)
        moves = ([a + sign * b for a, b in zip(base, row, strict=True)] for row in corners for sign in signs)
        return max((fraction(sum((v * v for v in row), fmpq(0))) for row in moves), default=ZERO)
    if len(terms) == 1 or (scaling is None and rows.nrows() > VERTICES):
        return apart
    if rows.nrows() <= VERTICES and all(len(one.corners) == 1 for one in sets):
        whole, below = (rows * rows.transpose()).numer_denom()
        return Fraction(vertex(tuple(tuple(map(int, row)) for row in whole.tolist()))) / int(below)
    if scaling is None or min(rows.nrows(), rows.ncols()) > TOGETHER:
        return apart
    first, *others = scaling
    total, at = 1 / first**2 if any(fixed.entries()) else ZERO, 0
    for one in sets:
        total += max(1 / c**2 for c in others[at : at + len(one.corners)])
        at += len(one.corners)
    return min(apart, eigenvalue(weighed(list(scaling), rows)) * total)
