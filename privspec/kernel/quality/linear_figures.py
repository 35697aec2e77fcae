"""Exact figures of additive noise: what it averages to, covariances, expected squared errors, each rounded once.

The compiler states figures by these functions, the kernel compares. Noise of irrational variance (discrete Laplace) is
known to 128 bits, far beyond what a double shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import ctx, fmpq, fmpq_mat

from privspec.kernel.core.linear import Matrix, Measured, Release
from privspec.kernel.core.numbers import ball, end, fraction, rational
from privspec.kernel.rows import Rows, laid_out, row_squares, weighed
from privspec.kernel.sizes import expected_sizes, size_up

VARIANCE_BITS = 128
STEEPEST = 2000
NONE = Fraction(0)


def stacked(parts: list[Matrix]) -> Matrix:
    """Matrices of as many columns, one below the other."""
    return fmpq_mat(sum(one.nrows() for one in parts), parts[0].ncols(), [v for one in parts for v in one.entries()])


def beside(parts: list[Matrix]) -> Matrix:
    """Matrices of as many rows, one after the other."""
    return stacked([one.transpose() for one in parts]).transpose()


def identity(size: int) -> Matrix:
    """Ones on the diagonal."""
    return fmpq_mat([[int(i == j) for j in range(size)] for i in range(size)])


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


def covariance(moves: Rows, variances: list[Fraction]) -> Matrix:
    """The covariance of the rows under independent noise of these variances in the columns."""
    return laid_out(moves) * weighed(variances, moves.transpose())


def doubles(matrix: Matrix) -> list[list[float]]:
    """The nearest doubles."""
    return [[int(v.p) / int(v.q) for v in row] for row in matrix.tolist()]


@dataclass(frozen=True, slots=True)
class Figures:
    """From independent noise of `variances` (k,) to the outputs: `noise` (m, k).

    `spread`: the variance of each output; `squares`: the expected square of each error term of the loss; `value`: the
    loss; `lines`: what each accuracy line bounds.
    """

    noise: Rows
    variances: list[Fraction]
    spread: list[Fraction]
    squares: list[Fraction]
    value: Fraction
    lines: list[Fraction]

    @classmethod
    def of(cls, release: Release) -> Figures:
        """Exactly, from the matrices that are executed."""
        block, law = release.problem, release.noise
        noise = block.target * release.reconstruction if release.of_inputs else release.reconstruction
        rows = noise.ncols()
        if law.shape.startswith("laplace"):
            known = {b: laplace_variance(b, release.grid) * law.parties / law.honest for b in set(law.scales)}
            variances = [known[scale] for scale in law.scales]
        else:
            times = {"knorm-l2": Fraction(rows + 1), "gaussian-shares": law.parties / law.scales[0]}
            variances = [law.scales[0] ** 2 * times.get(law.shape, law.steps_squared)] * rows

        def squares(errors: Measured) -> tuple[list[Fraction], list[Fraction]]:
            moved = errors.of(noise)
            found = spread if errors.rows is None else row_squares(moved, variances)
            each = expected_sizes(release, laid_out(moved), found) if errors.sizes else found
            alike = set(errors.weights) == {1}
            return found, each if alike else [w * one for w, one in zip(errors.weights, each, strict=True)]

        spread = row_squares(noise, variances)
        own, terms = squares(block.errors)
        values = ((errors, sum(squares(errors)[1], NONE), chance) for errors, *_, chance in block.accuracy)
        lines = [
            value if chance is None else size_up(release, errors, laid_out(errors.of(noise)), value, chance)
            for errors, value, chance in values
        ]
        value = max(terms) if block.worst else fraction(sum(map(rational, terms), fmpq(0)))
        return cls(noise, variances, spread, own, value, lines)
