"""Exact figures of additive noise: covariances, expected squared errors, rounded once to the nearest double.

The compiler states figures by these functions, the kernel compares. Noise of irrational variance (discrete Laplace) is
known to 128 bits, far beyond what a double shows.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

from flint import ctx, fmpz_mat

from privspec.kernel.core.linear import Matrix
from privspec.kernel.core.numbers import ball, end

VARIANCE_BITS = 128
STEEPEST = 2000
SPARSE_TERMS = 4
"""Rows of errors with at most so many entries on average are added entry by entry."""


def turned(matrix: Matrix) -> Matrix:
    """Rows and columns exchanged."""
    return Matrix(matrix.whole.transpose(), matrix.unit)


def minus(left: Matrix, right: Matrix) -> Matrix:
    """The difference, exactly."""
    unit = Fraction(1, lcm(left.unit.denominator, right.unit.denominator))
    return Matrix(left.whole * int(left.unit / unit) - right.whole * int(right.unit / unit), unit)


def columns_of(matrix: Matrix, start: int, stop: int) -> Matrix:
    """Some columns."""
    return Matrix(fmpz_mat([row[start:stop] for row in matrix.rows]), matrix.unit)


def beside(parts: list[Matrix]) -> Matrix:
    """Matrices of as many rows, one beside the other."""
    unit = Fraction(1, lcm(*(part.unit.denominator for part in parts)))
    listed = [Matrix(part.whole * int(part.unit / unit), unit).rows for part in parts]
    return Matrix(fmpz_mat([[v for row in rows for v in row] for rows in zip(*listed, strict=True)]), unit)


def identity(size: int) -> Matrix:
    """Ones on the diagonal."""
    return Matrix(fmpz_mat([[int(i == j) for j in range(size)] for i in range(size)]), Fraction(1))


def whole_numbers(values: list[Fraction]) -> tuple[list[int], Fraction]:
    """Exact numbers as whole multiples of one unit."""
    below = lcm(*(value.denominator for value in values)) if values else 1
    return [value.numerator * (below // value.denominator) for value in values], Fraction(1, below)


def error_rows(terms: tuple[dict[int, Fraction], ...], moves: Matrix) -> Matrix:
    """How error terms, {output: coefficient}, move when the outputs move by the rows of a matrix."""
    if len(terms) == moves.whole.nrows() and all(term == {i: 1} for i, term in enumerate(terms)):
        return moves
    scale = lcm(*(c.denominator for term in terms for c in term.values()))
    if sum(map(len, terms)) > SPARSE_TERMS * len(terms):
        dense = fmpz_mat(len(terms), moves.whole.nrows())
        for r, term in enumerate(terms):
            for i, c in term.items():
                dense[r, i] = int(c * scale)
        return Matrix(dense * moves.whole, moves.unit / scale)
    rows, found = moves.rows, []
    for term in terms:
        total = [0] * moves.whole.ncols()
        for i, c in term.items():
            by = int(c * scale)
            total = [a + by * b for a, b in zip(total, rows[i], strict=True)]
        found.append(total)
    return Matrix(fmpz_mat(found), moves.unit / scale)


def laplace_variance(scale: Fraction, grid: Fraction) -> Fraction:
    """Variance of the discrete Laplace law with weights e^(-|z| / scale) on the multiples of a grid, to 128 bits.

    grid^2 / (2 sinh(grid / 2 scale)^2); 0 for a scale so far below the grid that no double is as small as the variance.
    """
    ratio = grid / (2 * scale)
    if ratio > STEEPEST:
        return Fraction(0)
    bits = max(0, (ratio.denominator.bit_length() - ratio.numerator.bit_length()))
    with ctx.workprec(4 * VARIANCE_BITS + 2 * bits):
        exact = ball(grid) ** 2 / (2 * ball(ratio).sinh() ** 2)
        middle = end(exact.mid())
    if middle == 0:
        return middle
    shift = VARIANCE_BITS - (middle.numerator.bit_length() - middle.denominator.bit_length())
    return Fraction(round(middle * Fraction(2) ** shift)) / Fraction(2) ** shift


def row_squares(moves: Matrix, variances: list[Fraction]) -> list[Fraction]:
    """For each row the expected square, when the columns are independent noise of these variances."""
    if len(set(variances)) == 1:
        factor = variances[0] * moves.unit**2
        return [factor * sum(v * v for v in row) for row in moves.rows]
    weights, unit = whole_numbers(variances)
    factor = unit * moves.unit**2
    return [factor * sum(w * v * v for w, v in zip(weights, row, strict=True)) for row in moves.rows]


def covariance(moves: Matrix, variances: list[Fraction]) -> Matrix:
    """The covariance of the rows under independent noise of these variances in the columns."""
    if len(set(variances)) == 1:
        return Matrix(moves.whole * moves.whole.transpose(), moves.unit**2 * variances[0])
    weights, unit = whole_numbers(variances)
    scaled = fmpz_mat([[w * v for w, v in zip(weights, row, strict=True)] for row in moves.rows])
    return Matrix(scaled * moves.whole.transpose(), moves.unit**2 * unit)


def doubles(matrix: Matrix) -> list[list[float]]:
    """The nearest doubles."""
    up, down = matrix.unit.numerator, matrix.unit.denominator
    return [[v * up / down for v in row] for row in matrix.rows]


def nearest(values: list[Fraction]) -> list[float]:
    """The nearest doubles."""
    return [value.numerator / value.denominator for value in values]


def loss_value(squares: list[Fraction], weights: tuple[Fraction, ...], worst: bool) -> Fraction:
    """The weighted sum of expected squares, or the largest of them with its weight."""
    terms = [w * s for w, s in zip(weights, squares, strict=True)]
    return max(terms) if worst else sum(terms, Fraction(0))
