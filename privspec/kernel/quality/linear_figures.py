"""Exact figures of additive noise: what it averages to, covariances, expected squared errors, each rounded once.

The compiler states figures by these functions, the kernel compares. Noise of irrational variance (discrete Laplace) is
known to 128 bits, far beyond what a double shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from flint import ctx, fmpz_mat

from privspec.kernel.allowed import size_up
from privspec.kernel.core.linear import Matrix, Measured, Release
from privspec.kernel.core.numbers import ball, end
from privspec.kernel.quality.stated import whole_numbers

VARIANCE_BITS = 128
STEEPEST = 2000
SPARSE_TERMS = 4
"""Rows of errors with at most so many entries on average are added entry by entry."""
NONE = Fraction(0)


def turned(matrix: Matrix) -> Matrix:
    """Rows and columns exchanged."""
    return Matrix(matrix.whole.transpose(), matrix.unit)


def minus(left: Matrix, right: Matrix) -> Matrix:
    """The difference, exactly."""
    unit = Fraction(1, lcm(left.unit.denominator, right.unit.denominator))
    return Matrix(left.whole * int(left.unit / unit) - right.whole * int(right.unit / unit), unit)


def stacked(parts: list[Matrix]) -> Matrix:
    """Matrices of as many columns, one below the other."""
    unit = Fraction(1, lcm(*(part.unit.denominator for part in parts)))
    return Matrix(fmpz_mat([row for part in parts for row in (part.whole * int(part.unit / unit)).tolist()]), unit)


def identity(size: int) -> Matrix:
    """Ones on the diagonal."""
    return Matrix(fmpz_mat([[int(i == j) for j in range(size)] for i in range(size)]), Fraction(1))


def weighed(weights: list[Fraction], matrix: Matrix) -> Matrix:
    """Each row times its weight."""
    whole, unit = whole_numbers(weights)
    rows = [[weight * v for v in row] for weight, row in zip(whole, matrix.rows, strict=True)]
    return Matrix(fmpz_mat(rows), matrix.unit * unit)


def moved_by(matrix: Matrix, sizes: list[Fraction]) -> list[Fraction]:
    """How far each row moves where columns move by at most so much."""
    whole, unit = whole_numbers(sizes)
    return [matrix.unit * unit * sum(abs(v) * s for v, s in zip(row, whole, strict=True) if s) for row in matrix.rows]


def error_rows(terms: tuple[dict[int, Fraction], ...], moves: Matrix) -> Matrix:
    """How error terms, {output: coefficient}, move when the outputs move by the rows of a matrix."""
    size, width = moves.whole.nrows(), moves.whole.ncols()
    if len(terms) == size and all(term == {i: 1} for i, term in enumerate(terms)):
        return moves
    scale = lcm(*(c.denominator for term in terms for c in term.values()))
    whole = [{i: int(c * scale) for i, c in term.items()} for term in terms]
    if sum(map(len, terms)) >= SPARSE_TERMS * len(terms):
        dense = fmpz_mat(len(terms), size, [term.get(i, 0) for term in whole for i in range(size)])
        return Matrix(dense * moves.whole, moves.unit / scale)
    rows, none = moves.rows, [0] * width
    parts = ([none, *([c * v for v in rows[i]] for i, c in term.items())] for term in whole)
    return Matrix(fmpz_mat([list(map(sum, zip(*part, strict=True))) for part in parts]), moves.unit / scale)


def laplace_variance(scale: Fraction, grid: Fraction) -> Fraction:
    """Variance of the discrete Laplace law with weights e^(-|z| / scale) on the multiples of a grid, to 128 bits.

    grid^2 / (2 sinh(grid / 2 scale)^2); 0 for a scale so far below the grid that no double is as small as the variance.
    """
    ratio = grid / (2 * scale)
    if ratio > STEEPEST:
        return NONE
    bits = max(0, (ratio.denominator.bit_length() - ratio.numerator.bit_length()))
    with ctx.workprec(4 * VARIANCE_BITS + 2 * bits):
        exact = ball(grid) ** 2 / (2 * ball(ratio).sinh() ** 2)
    with ctx.workprec(VARIANCE_BITS):
        return end((exact * 1).mid())


def row_squares(moves: Matrix, variances: list[Fraction]) -> list[Fraction]:
    """For each row the expected square, when the columns are independent noise of these variances."""
    whole, unit = whole_numbers(variances)
    factor = unit * moves.unit**2
    return [factor * sum(w * v * v for w, v in zip(whole, row, strict=True)) for row in moves.rows]


def covariance(moves: Matrix, variances: list[Fraction]) -> Matrix:
    """The covariance of the rows under independent noise of these variances in the columns."""
    return moves @ weighed(variances, turned(moves))


def doubles(matrix: Matrix) -> list[list[float]]:
    """The nearest doubles."""
    up, down = matrix.unit.as_integer_ratio()
    return [[v * up / down for v in row] for row in matrix.rows]


@dataclass(frozen=True, slots=True)
class Figures:
    """From independent noise of `variances` (k,) to the outputs: `noise` (m, k); `mean` (m, n): what they average.

    `spread`: the variance of each output; `squares`: the expected square of each error term of the loss; `value`: the
    loss; `lines`: what each accuracy line bounds.
    """

    noise: Matrix
    mean: Matrix
    variances: list[Fraction]
    spread: list[Fraction]
    squares: list[Fraction]
    value: Fraction
    lines: list[Fraction]

    @classmethod
    def of(cls, release: Release) -> Figures:
        """Exactly, from the matrices that are executed."""
        block, law = release.problem, release.noise
        noise = block.target @ release.reconstruction if release.of_inputs else release.reconstruction
        rows = noise.whole.ncols()
        if law.shape.startswith("laplace"):
            known = {b: laplace_variance(b, release.grid) * law.parties / law.honest for b in set(law.scales)}
            variances = [known[scale] for scale in law.scales]
        else:
            times = {"knorm-l2": Fraction(rows + 1), "gaussian-shares": law.parties / law.scales[0]}
            variances = [law.scales[0] ** 2 * times.get(law.shape, Fraction(1))] * rows

        def squares(errors: Measured) -> tuple[list[Fraction], list[Fraction]]:
            found = row_squares(error_rows(errors.terms, noise), variances)
            return found, [w * square for w, square in zip(errors.weights, found, strict=True)]

        own, terms = squares(block.errors)
        chances = [(sum(squares(errors)[1], NONE), len(errors.terms), chance) for errors, *_, chance in block.accuracy]
        lines = [value if chance is None else size_up(law.shape, n, value, chance) for value, n, chance in chances]
        value, spread = max(terms) if block.worst else sum(terms, NONE), row_squares(noise, variances)
        return cls(noise, noise @ release.strategy, variances, spread, own, value, lines)
