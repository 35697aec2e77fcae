"""What the rows of a matrix amount to, also of rows of ones in a row: running totals and ranges, which are many.

A row that is 1 at the columns from a to before b is the difference of two of the n + 1 running totals. So are the rows
of what such rows make of a matrix, and expected squares C_aa + C_bb - 2 C_ab follow from the covariance C of the n + 1;
nothing of the size of all rows times all columns is built.
"""

from __future__ import annotations

from fractions import Fraction

from flint import fmpq, fmpq_mat, fmpz, fmpz_mat

from privspec.kernel.core.numbers import ZERO, rational
from privspec.kernel.core.reading import ENTRIES, Grid, JsonNode, Refused, Wholes, frozen, wholes


@frozen
class Intervals:
    """Rows that are 1 at the columns from `starts` to before `ends`, and 0 elsewhere."""

    starts: Wholes
    ends: Wholes
    width: int

    def __post_init__(self) -> None:
        pairs = zip(self.starts, self.ends, strict=True)
        if len(self.starts) != len(self.ends) or not all(0 <= a <= b <= self.width for a, b in pairs):
            raise Refused("has rows that do not begin and end at its columns")

    def nrows(self) -> int:
        return len(self.starts)

    def ncols(self) -> int:
        return self.width

    def written(self) -> dict[str, object]:
        """As `intervals` reads it."""
        size = len(self.starts)
        starts, ends = (Grid((size,), Fraction(1), own) for own in (self.starts, self.ends))
        return {"form": "intervals", "shape": [size, self.width], "starts": starts, "ends": ends}

    def tolist(self) -> list[list[fmpq]]:
        return laid_out(self).tolist()

    def transpose(self) -> fmpq_mat:
        return laid_out(self).transpose()

    def __mul__(self, right: fmpq_mat) -> Totals:
        return Totals(self, right)

    def __rmul__(self, left: fmpq_mat) -> fmpq_mat:
        return left * laid_out(self)

    def totals(self, values: list[fmpq]) -> list[fmpq]:
        """The sum of the values at the columns of each row."""
        before = [fmpq(0)]
        for value in values:
            before.append(before[-1] + value)
        return [before[b] - before[a] for a, b in zip(self.starts, self.ends, strict=True)]

    def gram(self, weights: list[Fraction]) -> fmpq_mat:
        """For each two columns the sum of the weights of the rows that have both."""
        ends, same = range(self.width + 1), fmpq(1) if all(weight == 1 for weight in weights) else None
        found = [[fmpq(0) for _ in ends] for _ in ends]
        for a, b, weight in zip(self.starts, self.ends, weights, strict=True):
            found[a][b] += same or rational(weight)
        # rows that start at or before one column, and end after the other
        began, ended = (
            fmpq_mat([[int(a <= i) for a in ends] for i in ends]),
            fmpq_mat([[int(b > i) for i in ends] for b in ends]),
        )
        both = (began * fmpq_mat(found) * ended).tolist()
        return fmpq_mat([[both[min(i, j)][max(i, j)] for j in ends[:-1]] for i in ends[:-1]])


@frozen
class Totals:
    """The product of such rows with a matrix."""

    rows: Intervals
    inner: fmpq_mat

    def nrows(self) -> int:
        return self.rows.nrows()

    def ncols(self) -> int:
        return int(self.inner.ncols())

    def __mul__(self, right: fmpq_mat) -> Totals:
        return Totals(self.rows, self.inner * right)

    def __rmul__(self, left: fmpq_mat) -> fmpq_mat:
        return left * laid_out(self)

    def tolist(self) -> list[list[fmpq]]:
        return laid_out(self).tolist()

    def transpose(self) -> fmpq_mat:
        return laid_out(self).transpose()

    def before(self) -> fmpq_mat:
        """The sums of the first rows of the matrix: of none of them, of one, up to all."""
        size = self.rows.width
        ones = fmpz_mat(size + 1, size, [int(j < i) for i in range(size + 1) for j in range(size)])
        return fmpq_mat(ones) * self.inner

    def squares(self, variances: list[Fraction]) -> list[fmpq]:
        """For each row the expected square, when the columns are independent noise of these variances."""
        (whole, below), size = self.before().numer_denom(), self.ncols()
        values, unit = fmpq_mat(1, size, list(map(rational, variances))).numer_denom()
        weights, rows = values.entries(), whole.tolist()
        scaled = fmpz_mat(len(rows), size, [v * w for row in rows for v, w in zip(row, weights, strict=True)])
        found = [list(map(int, row)) for row in (scaled * whole.transpose()).tolist()]
        pairs = zip(self.rows.starts, self.rows.ends, strict=True)
        column = [found[a][a] + found[b][b] - 2 * found[a][b] for a, b in pairs]
        return over(fmpz_mat(len(column), 1, column), below**2 * unit)


Rows = fmpq_mat | Intervals | Totals


def matrix_of(grid: Grid) -> fmpq_mat:
    """The matrix of an array of two axes."""
    rows, columns = grid.shape
    return fmpq_mat(fmpz_mat(rows, columns, list(grid.entries))) * rational(grid.unit)


def laid_out(rows: Rows) -> fmpq_mat:
    """All entries."""
    if isinstance(rows, Intervals):
        return laid_out(Totals(rows, identity(rows.width)))
    if not isinstance(rows, Totals):
        return rows
    totals, ends = rows.before().tolist(), zip(rows.rows.starts, rows.rows.ends, strict=True)
    entries = [y - x for a, b in ends for x, y in zip(totals[a], totals[b], strict=True)]
    return fmpq_mat(rows.nrows(), rows.ncols(), entries)


def less(left: Rows, right: Rows) -> Rows:
    """The difference."""
    if isinstance(left, Totals) and left.rows == right:
        return Totals(left.rows, left.inner - identity(left.rows.width))
    return laid_out(left) - laid_out(right)


def intervals(item: JsonNode) -> Intervals | None:
    """Such rows where a document says that a matrix is made of them."""
    if not isinstance(item.value, dict) or item.value.get("form") != "intervals":
        return None
    rows, columns = item.extents(2)
    starts, ends = item.stating({"form": "intervals", "shape": [rows, columns]}, "starts", "ends")
    if rows * columns > ENTRIES or starts.extents(1) != [rows] or ends.extents(1) != [rows]:
        raise item.wrong("is too large, or does not say where its rows begin and end")
    return Intervals(wholes(starts), wholes(ends), columns)


def gram(rows: Rows, weights: list[Fraction]) -> fmpq_mat:
    """The sum of the weighted products of each row with itself."""
    if isinstance(rows, Intervals):
        return rows.gram(weights)
    return rows.transpose() * weighed(weights, rows)


def weighed(weights: list[Fraction], matrix: Rows) -> fmpq_mat:
    """Each row times its weight."""
    if set(weights) == {1}:
        return laid_out(matrix)
    rows = zip(map(rational, weights), matrix.tolist(), strict=True)
    return fmpq_mat(matrix.nrows(), matrix.ncols(), [weight * v for weight, row in rows for v in row])


def stacked(parts: list[fmpq_mat]) -> fmpq_mat:
    """Matrices of as many columns, one below the other."""
    columns, (first, *others) = parts[0].ncols(), [one for one in parts if one.nrows()] or parts[:1]
    if not others:
        return first
    return fmpq_mat(sum(one.nrows() for one in parts), columns, [v for one in parts for v in one.entries()])


def beside(parts: list[fmpq_mat]) -> fmpq_mat:
    """Matrices of as many rows, one after the other."""
    return stacked([one.transpose() for one in parts]).transpose()


def covariance(moves: Rows, variances: list[Fraction]) -> fmpq_mat:
    """The covariance of the rows under independent noise of these variances in the columns."""
    return laid_out(moves) * weighed(variances, moves.transpose())


def doubles(matrix: fmpq_mat) -> list[list[float]]:
    """The nearest doubles."""
    return [[int(v.p) / int(v.q) for v in row] for row in matrix.tolist()]


def over(whole: fmpz_mat, below: fmpz) -> list[fmpq]:
    """The entries of a matrix of whole numbers, all of them over one."""
    return (fmpq_mat(whole) * fmpq(1, below)).entries()


def times(whole: fmpz_mat, below: fmpz, values: list[Fraction]) -> list[fmpq]:
    """A matrix of whole numbers, all of them over one, times a column."""
    column, unit = fmpq_mat(len(values), 1, list(map(rational, values))).numer_denom()
    return over(whole * column, below * unit)


def moved_by(matrix: Rows, sizes: list[Fraction], together: tuple[slice, ...] = ()) -> list[fmpq]:
    """At least how far each row moves where columns move by at most so much, or of columns `together` one at a time.

    No farther, but in `Totals` and where columns of theirs or of `Intervals` are together.
    """
    if not any(sizes):
        return [fmpq(0)] * matrix.nrows()
    if isinstance(matrix, Intervals):
        return matrix.totals(list(map(rational, sizes)))
    if isinstance(matrix, Totals):
        return matrix.rows.totals(moved_by(matrix.inner, sizes))
    whole, below = matrix.numer_denom()
    rows = fmpz_mat(matrix.nrows(), matrix.ncols(), list(map(abs, whole.entries())))
    if not together:
        return times(rows, below, sizes)
    apart = list(sizes)
    for some in together:
        apart[some] = [ZERO] * len(apart[some])
    found, listed = times(rows, below, apart), rows.tolist()
    for some in together:
        own = list(map(rational, sizes[some]))
        most = [max(v * one for v, one in zip(row[some], own, strict=True)) / below for row in listed]
        found = [one + more for one, more in zip(found, most, strict=True)]
    return found


def row_squares(moves: Rows, variances: list[Fraction]) -> list[fmpq]:
    """For each row the expected square, when the columns are independent noise of these variances."""
    if isinstance(moves, Totals):
        return moves.squares(variances)
    whole, below = laid_out(moves).numer_denom()
    return times(fmpz_mat(moves.nrows(), moves.ncols(), [v * v for v in whole.entries()]), below**2, variances)


def denominator(matrix: Rows) -> int:
    """One that all entries have."""
    if isinstance(matrix, Totals):
        return denominator(matrix.inner)
    return 1 if isinstance(matrix, Intervals) else int(matrix.numer_denom()[1])


def identity(size: int) -> fmpq_mat:
    """Ones on the diagonal."""
    found = fmpq_mat(size, size)
    for i in range(size):
        found[i, i] = fmpq(1)
    return found
