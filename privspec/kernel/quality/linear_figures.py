"""Exact figures of additive noise: covariances, expected squared errors, rounded once to the nearest double.

The compiler states figures by these functions, the kernel compares. Noise of irrational variance (discrete Laplace) is
known to 128 bits, far beyond what a double shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from flint import arb, ctx, fmpz_mat

from privspec.kernel.core.numbers import ball, end

VARIANCE_BITS = 128
SPARSE_TERMS = 4
"""Rows of errors with at most so many entries on average are added entry by entry."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Whole numbers times a unit."""

    whole: fmpz_mat
    unit: Fraction

    def __matmul__(self, other: Matrix) -> Matrix:
        return Matrix(self.whole * other.whole, self.unit * other.unit)

    @property
    def turned(self) -> Matrix:
        """Rows and columns exchanged."""
        return Matrix(self.whole.transpose(), self.unit)

    @property
    def rows(self) -> list[list[int]]:
        """The whole numbers, row by row."""
        return [[int(v) for v in row] for row in self.whole.tolist()]

    def minus(self, other: Matrix) -> Matrix:
        """The difference, exactly."""
        unit = Fraction(1, lcm(self.unit.denominator, other.unit.denominator))
        return Matrix(self.whole * int(self.unit / unit) - other.whole * int(other.unit / unit), unit)

    def columns(self, start: int, stop: int) -> Matrix:
        """Some columns."""
        return Matrix(fmpz_mat([row[start:stop] for row in self.whole.tolist()]), self.unit)


def beside(parts: list[Matrix]) -> Matrix:
    """Matrices of as many rows, one beside the other."""
    unit = Fraction(1, lcm(*(part.unit.denominator for part in parts)))
    listed = [(part.whole * int(part.unit / unit)).tolist() for part in parts]
    return Matrix(fmpz_mat([sum(rows, []) for rows in zip(*listed, strict=True)]), unit)


def whole_numbers(values: list[Fraction]) -> tuple[list[int], Fraction]:
    """Exact numbers as whole multiples of one unit."""
    below = lcm(*(value.denominator for value in values)) if values else 1
    return [value.numerator * (below // value.denominator) for value in values], Fraction(1, below)


@dataclass(frozen=True, slots=True)
class Errors:
    """Error terms: each a sum of entries of the outputs, {index: coefficient}; None for the entries themselves."""

    terms: tuple[dict[int, Fraction], ...] | None
    size: int

    @property
    def count(self) -> int:
        """How many there are."""
        return self.size if self.terms is None else len(self.terms)

    def of(self, moves: Matrix) -> Matrix:
        """How the terms move when the outputs move by the rows of a matrix."""
        if self.terms is None:
            return moves
        scale = lcm(*(c.denominator for term in self.terms for c in term.values()))
        rows = moves.whole.tolist()
        width = moves.whole.ncols()
        if sum(map(len, self.terms)) > SPARSE_TERMS * len(self.terms):
            dense = [[0] * len(rows) for _ in self.terms]
            for line, term in zip(dense, self.terms, strict=True):
                for i, c in term.items():
                    line[i] = int(c * scale)
            return Matrix(fmpz_mat(dense) * moves.whole, moves.unit / scale)
        found = []
        for term in self.terms:
            total = [0] * width
            for i, c in term.items():
                by = int(c * scale)
                total = [a + by * b for a, b in zip(total, rows[i], strict=True)]
            found.append(total)
        return Matrix(fmpz_mat(found), moves.unit / scale)

    def within(self, seen: list[bool]) -> list[bool]:
        """Which terms depend on nothing but the outputs that are seen."""
        if self.terms is None:
            return seen
        return [all(seen[i] for i in term) for term in self.terms]

    def joined(self, others: list[Errors]) -> Errors:
        """These terms and others."""
        if not others:
            return self
        own = tuple({i: Fraction(1)} for i in range(self.size)) if self.terms is None else self.terms
        return Errors(own + tuple(t for other in others for t in other.joined_terms()), self.size)

    def joined_terms(self) -> tuple[dict[int, Fraction], ...]:
        """The terms, spelt out."""
        return tuple({i: Fraction(1)} for i in range(self.size)) if self.terms is None else self.terms


def laplace_variance(scale: Fraction, grid: Fraction) -> Fraction:
    """Variance of the discrete Laplace law with weights e^(-|z| / scale) on the multiples of a grid, to 128 bits.

    grid^2 / (2 sinh(grid / 2 scale)^2).
    """
    ratio = grid / (2 * scale)
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
        return [factor * int(sum(v * v for v in row)) for row in moves.whole.tolist()]
    weights, unit = whole_numbers(variances)
    factor = unit * moves.unit**2
    return [
        factor * int(sum(w * v * v for w, v in zip(weights, row, strict=True))) for row in moves.whole.tolist()
    ]


def covariance(moves: Matrix, variances: list[Fraction]) -> Matrix:
    """The covariance of the rows under independent noise of these variances in the columns."""
    if len(set(variances)) == 1:
        return Matrix(moves.whole * moves.whole.transpose(), moves.unit**2 * variances[0])
    weights, unit = whole_numbers(variances)
    scaled = fmpz_mat([[w * v for w, v in zip(weights, row, strict=True)] for row in moves.whole.tolist()])
    return Matrix(scaled * moves.whole.transpose(), moves.unit**2 * unit)


def doubles(matrix: Matrix) -> list[list[float]]:
    """The nearest doubles."""
    up, down = matrix.unit.numerator, matrix.unit.denominator
    return [[int(v) * up / down for v in row] for row in matrix.whole.tolist()]


def nearest(values: list[Fraction]) -> list[float]:
    """The nearest doubles."""
    return [value.numerator / value.denominator for value in values]


def loss_value(squares: list[Fraction], weights: list[Fraction], worst: bool) -> Fraction:
    """The weighted sum of expected squares, or the largest of them with its weight."""
    terms = [w * s for w, s in zip(weights, squares, strict=True)]
    return max(terms) if worst else sum(terms, Fraction(0))


def deviation_down(matrix: Matrix) -> list[int]:
    """Square roots of the diagonal of a covariance in units of the root of its unit, rounded down."""
    from math import isqrt

    return [isqrt(int(matrix.whole[i, i])) for i in range(matrix.whole.nrows())]


__all__ = ["arb"]
