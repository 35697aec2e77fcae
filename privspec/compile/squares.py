"""Losses that the linear family can lower: non-negative sums of squares of affine values, or the worst of several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.compile.affine import Affine, Matrix

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Squares:
    """An array of `shape` whose entry i is the sum of weights[r] * rows[r]^2 over the rows r with element[r] = i."""

    shape: tuple[int, ...]
    rows: Affine
    weights: Array
    element: NDArray[np.intp]

    @classmethod
    def of(cls, value: Affine) -> Squares:
        """Entry-by-entry squares."""
        return cls(value.shape, value, np.ones(value.size), np.arange(value.size))

    def total(self) -> Squares:
        """The sum of all entries."""
        return Squares((), self.rows, self.weights, np.zeros(len(self.weights), dtype=np.intp))

    def scaled(self, factor: float) -> Squares:
        """Times a non-negative constant."""
        return Squares(self.shape, self.rows, self.weights * factor, self.element)

    def plus(self, other: Squares) -> Squares:
        """The sum of two of the same shape."""
        return Squares.added([self, other])

    @classmethod
    def added(cls, parts: list[Squares]) -> Squares:
        """The sum of all of one shape."""
        if len({part.shape for part in parts}) != 1:
            raise ValueError("shapes differ")
        return cls(
            parts[0].shape,
            stack([part.rows for part in parts]),
            np.concatenate([part.weights for part in parts]),
            np.concatenate([part.element for part in parts]),
        )


@dataclass(frozen=True, eq=False, slots=True)
class Worst:
    """The largest of several scalar sums of squares."""

    members: tuple[Squares, ...]


def stack(values: list[Affine]) -> Affine:
    """All entries of all values, one under another, as one vector."""
    from scipy import sparse

    symbols = sorted({s for v in values for s in v.coefficients})
    parts: dict[str, Matrix] = {}
    for symbol in symbols:
        width = next(v.coefficients[symbol].shape[1] for v in values if symbol in v.coefficients)
        blocks = [
            v.coefficients[symbol] if symbol in v.coefficients else sparse.csr_array((v.size, width)) for v in values
        ]
        dense = [b for b in blocks if isinstance(b, np.ndarray)]
        if dense:
            parts[symbol] = np.vstack([b if isinstance(b, np.ndarray) else b.toarray() for b in blocks])
        else:
            parts[symbol] = sparse.csr_array(sparse.vstack([sparse.csr_array(b) for b in blocks]))
    offset = np.concatenate([v.offset for v in values])
    return Affine((len(offset),), offset, parts)
