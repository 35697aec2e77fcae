"""Coordinates in which the barrier method moves: independent noise, or any covariance.

A state S carries unit noise to covariance S S'; a move X takes it to S (I + X) S'.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from privspec.solvers.programs import Array


class Chart(ABC):
    """Coordinates of the unknown: how a state S moves, and the quadratic forms of a move."""

    @abstractmethod
    def carry(self, maps: Array, state: Array) -> Array:
        """Return maps @ S."""

    @abstractmethod
    def squares(self, columns: Array) -> Array:
        """The linear forms X -> g' X g, one column (d, N) for each column g of `columns` (K, N)."""

    @abstractmethod
    def curvature(self, left: Array, right: Array) -> Array:
        """The bilinear form (X, X') -> tr(left X right X'), symmetrised, as a matrix (d, d)."""

    @abstractmethod
    def trace(self) -> Array:
        """The linear form X -> tr X (d,)."""

    @abstractmethod
    def move(self, state: Array, step: Array) -> tuple[Array, float] | None:
        """The state S (I + X)^(1/2) and log det(I + X); None when I + X is not positive definite."""


class Diagonal(Chart):
    """Independent noise: S = diag(state), X = diag(step)."""

    def __init__(self, size: int) -> None:
        self.size = size

    def carry(self, maps: Array, state: Array) -> Array:
        """Return maps @ diag(state)."""
        return maps * state

    def squares(self, columns: Array) -> Array:
        """Squares of the entries."""
        return columns**2

    def curvature(self, left: Array, right: Array) -> Array:
        """Return left o right."""
        return left * right

    def trace(self) -> Array:
        """All ones."""
        return np.ones(self.size)

    def move(self, state: Array, step: Array) -> tuple[Array, float] | None:
        """Scale the standard deviations."""
        if np.min(step, initial=0.0) <= -1 + 1e-12:
            return None
        return state * np.sqrt(1 + step), float(np.sum(np.log1p(step)))


class Symmetric(Chart):
    """Any covariance: S lower triangular, X symmetric, coordinates scaled to keep the inner product."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows, self.columns = np.triu_indices(size)
        self.scale = np.where(self.rows == self.columns, 1.0, np.sqrt(2.0))

    def carry(self, maps: Array, state: Array) -> Array:
        """Return maps @ S."""
        return np.asarray(maps @ state)

    def squares(self, columns: Array) -> Array:
        """The coordinates of g g'."""
        return columns[self.rows] * columns[self.columns] * self.scale[:, None]

    def curvature(self, left: Array, right: Array) -> Array:
        """Half the sum over orders of the indices of both sides."""
        i, j = self.rows, self.columns
        total = left[np.ix_(i, i)] * right[np.ix_(j, j)]
        total += left[np.ix_(i, j)] * right[np.ix_(j, i)]
        total += left[np.ix_(j, i)] * right[np.ix_(i, j)]
        total += left[np.ix_(j, j)] * right[np.ix_(i, i)]
        half = self.scale / 2
        return np.asarray(total * half[:, None] * half[None, :])

    def trace(self) -> Array:
        """Coordinates of the identity."""
        return np.asarray((self.rows == self.columns).astype(float))

    def move(self, state: Array, step: Array) -> tuple[Array, float] | None:
        """Multiply by the Cholesky factor of I + X."""
        matrix = np.zeros((self.size, self.size))
        matrix[self.rows, self.columns] = matrix[self.columns, self.rows] = step / self.scale
        try:
            factor = np.linalg.cholesky(np.eye(self.size) + matrix)
        except np.linalg.LinAlgError:
            return None
        return state @ factor, float(2 * np.sum(np.log(np.diag(factor))))
