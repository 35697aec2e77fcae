"""Sparse matrices of doubles with what elaboration needs of them: scipy's take longer to load than a spec to be read.

Families take them as scipy's (`csr`); entries, and the order in which they are added up, are the same there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass

if TYPE_CHECKING:
    import scipy

Array: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = "Array | SparseMatrix"
CHUNK = 2**22
"""Products that are held at once."""


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A matrix of `shape`: the entries of row i are indptr[i] to indptr[i + 1], in ascending columns `indices`."""

    shape: tuple[int, int]
    indptr: NDArray[np.intp]
    indices: NDArray[np.intp]
    data: Array
    __array_ufunc__ = None  # so that an array times one of these asks here

    @classmethod
    def of(cls, shape: tuple[int, int], rows: Any, columns: Any, values: Any) -> SparseMatrix:
        """From entries in any order; those at one place are added up."""
        rows, columns = np.asarray(rows, dtype=np.intp), np.asarray(columns, dtype=np.intp)
        places = rows * shape[1] + columns
        order = np.argsort(places, kind="stable")
        places, values = places[order], np.asarray(values, dtype=np.float64)[order]
        first = np.flatnonzero(np.diff(places, prepend=-1))
        if len(first) < len(places):
            places, values = places[first], np.add.reduceat(values, first)
        if not values.all():
            places, values = places[values != 0], values[values != 0]
        at, columns = np.divmod(places, max(shape[1], 1))
        ends = np.searchsorted(at, np.arange(shape[0] + 1))
        return cls((int(shape[0]), int(shape[1])), ends, columns, values)

    @classmethod
    def diagonal(cls, values: Array) -> SparseMatrix:
        """A square matrix with these on its diagonal."""
        n = len(values)
        return cls((n, n), np.arange(n + 1), np.arange(n), np.asarray(values, dtype=np.float64))

    @classmethod
    def from_array(cls, array: Array) -> SparseMatrix:
        """The entries of an array that are not 0."""
        rows, columns = np.nonzero(array)
        return cls.of((array.shape[0], array.shape[1]), rows, columns, array[rows, columns])

    @property
    def rows(self) -> NDArray[np.intp]:
        """The row of each entry."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

    @property
    def csr(self) -> scipy.sparse.csr_array:
        """The same as scipy has it."""
        import scipy

        return scipy.sparse.csr_array((self.data, self.indices, self.indptr), shape=self.shape)

    @property
    def T(self) -> SparseMatrix:  # noqa: N802 - as numpy's
        """The transposed matrix."""
        return SparseMatrix.of(self.shape[::-1], self.indices, self.rows, self.data)

    def toarray(self) -> Array:
        """All entries."""
        found = np.zeros(self.shape)
        found[self.rows, self.indices] = self.data
        return found

    def __getitem__(self, rows: Any) -> SparseMatrix:
        """Some rows, by places, a slice or marks."""
        wanted = np.arange(self.shape[0])[rows]
        counts, at = _within(self.indptr, wanted)
        ends = np.concatenate([[0], np.cumsum(counts)])
        return SparseMatrix((len(wanted), self.shape[1]), ends, self.indices[at], self.data[at])

    def columns(self, wanted: NDArray[np.intp]) -> SparseMatrix:
        """Some columns, each named once."""
        place = np.full(self.shape[1], -1)
        place[wanted] = np.arange(len(wanted))
        kept = place[self.indices] >= 0
        return SparseMatrix.of(
            (self.shape[0], len(wanted)), self.rows[kept], place[self.indices[kept]], self.data[kept]
        )

    def __neg__(self) -> SparseMatrix:
        return self * -1.0

    def __mul__(self, factor: float | Array) -> SparseMatrix:
        """Times a number, or each entry times its own."""
        return SparseMatrix(self.shape, self.indptr, self.indices, self.data * factor)

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, SparseMatrix):
            return self.toarray() + other
        both = ((self.rows, other.rows), (self.indices, other.indices), (self.data, other.data))
        return SparseMatrix.of(self.shape, *map(np.concatenate, both))

    __radd__ = __add__

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, SparseMatrix):
            counts, at = _within(other.indptr, self.indices)
            values = np.repeat(self.data, counts) * other.data[at]
            return SparseMatrix.of(
                (self.shape[0], other.shape[1]), np.repeat(self.rows, counts), other.indices[at], values
            )
        other = np.asarray(other, dtype=np.float64)
        found = np.zeros((self.shape[0], *other.shape[1:]))
        filled, width = np.flatnonzero(np.diff(self.indptr)), max(int(np.prod(other.shape[1:])), 1)
        start = 0
        while start < len(filled):
            # so many rows at once as have few enough products
            first = self.indptr[filled[start]]
            stop = int(np.searchsorted(self.indptr[filled + 1], first + CHUNK // width, side="right"))
            some = filled[start : max(stop, start + 1)]
            entries = slice(int(first), int(self.indptr[some[-1] + 1]))
            values = self.data[entries].reshape(-1, *[1] * (other.ndim - 1)) * other[self.indices[entries]]
            found[some] = np.add.reduceat(values, self.indptr[some] - first, axis=0)
            start += len(some)
        return found

    def __rmatmul__(self, other: Array) -> Array:
        return np.asarray((self.T @ np.asarray(other).T).T)


def _within(indptr: NDArray[np.intp], rows: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """How many entries each of these rows has, and where they are, one row after another."""
    counts = np.diff(indptr)[rows]
    before = np.cumsum(counts) - counts
    return counts, np.arange(int(counts.sum())) + np.repeat(indptr[rows] - before, counts)


def sparse_of(matrix: Matrix) -> SparseMatrix:
    """The same matrix, sparse."""
    return matrix if isinstance(matrix, SparseMatrix) else SparseMatrix.from_array(matrix)


def stacked(parts: list[SparseMatrix]) -> SparseMatrix:
    """Matrices of as many columns, one below the other."""
    rows = np.cumsum([0, *(part.shape[0] for part in parts)])
    at = [part.rows + first for part, first in zip(parts, rows[:-1], strict=True)]
    columns, values = np.concatenate([p.indices for p in parts]), np.concatenate([p.data for p in parts])
    return SparseMatrix.of((int(rows[-1]), parts[0].shape[1]), np.concatenate(at), columns, values)


def beside(parts: list[SparseMatrix]) -> SparseMatrix:
    """Matrices of as many rows, one after the other."""
    return stacked([part.T for part in parts]).T


def kron(left: Matrix, right: Matrix) -> SparseMatrix:
    """The Kronecker product."""
    a, b = sparse_of(left), sparse_of(right)
    (p, q), size = b.shape, len(b.data)
    rows = np.repeat(a.rows * p, size) + np.tile(b.rows, len(a.data))
    columns = np.repeat(a.indices * q, size) + np.tile(b.indices, len(a.data))
    return SparseMatrix.of((a.shape[0] * p, a.shape[1] * q), rows, columns, np.outer(a.data, b.data).reshape(-1))
