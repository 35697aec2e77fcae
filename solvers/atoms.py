"""Weighted sums of difference effects, for the dual of the full-covariance program.

The dual variable is one weight for each single difference and one positive semidefinite matrix for each ball.
It is kept as a vector of logarithms, in which the fixed point of `ascent` is a smooth map.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from privspec.solvers.differences import Directions, pair_distances, pair_matrix
from privspec.solvers.programs import Array, Pairs
from privspec.solvers.results import Indices
from scipy import sparse

LEAST_LOG = -60.0
"""Weights below e^-60 of the largest are round-off of any sum they enter."""


class Atoms(ABC):
    """The differences of one view in whitened coordinates: r-dimensional effects and their dual weights."""

    @abstractmethod
    def start(self) -> Array:
        """Logarithms of first weights: the size of each effect."""

    @abstractmethod
    def mass(self, logs: Array) -> float:
        """Sum of the weights (trace of the matrices)."""

    @abstractmethod
    def moment(self, logs: Array) -> Array:
        """Sum of weight times effect times its transpose (r, r)."""

    @abstractmethod
    def update(self, logs: Array, whitener: Array) -> tuple[Array, float]:
        """Logarithms of weight * q, and the largest q, where q = ||whitener @ effect||^2."""

    @abstractmethod
    def dual(self, logs: Array) -> tuple[sparse.csc_array, Array]:
        """The input differences (n, N) and weights (N,) that the logarithms stand for."""

    def shifted(self, logs: Array, shift: float) -> Array:
        """The logarithms of all weights times e^shift."""
        return logs + shift

    def quadratics(self, whitener: Array) -> Array | None:
        """All q when every difference is single, None otherwise."""
        return None

    def normalised(self, logs: Array) -> Array:
        """The logarithms kept above the floor."""
        return np.asarray(np.maximum(logs, logs.max() + LEAST_LOG)) if logs.size else logs


class SingleAtoms(Atoms):
    """Explicit single differences: `effects` (r, N)."""

    def __init__(self, effects: Array, matrix: sparse.csc_array) -> None:
        self.effects, self.matrix = effects, matrix

    def start(self) -> Array:
        """Logarithms of the norms."""
        return np.asarray(np.log(np.maximum(np.linalg.norm(self.effects, axis=0), 1e-300)))

    def mass(self, logs: Array) -> float:
        """Sum of the weights."""
        return float(np.exp(logs).sum())

    def moment(self, logs: Array) -> Array:
        """Effects @ diag(weights) @ effects.T."""
        scaled = self.effects * np.exp(logs / 2)
        return np.asarray(scaled @ scaled.T)

    def quadratics(self, whitener: Array) -> Array:
        """Squared norms of the whitened effects."""
        return np.asarray(np.sum((whitener @ self.effects) ** 2, axis=0))

    def update(self, logs: Array, whitener: Array) -> tuple[Array, float]:
        """Log weights plus log q."""
        q = self.quadratics(whitener)
        return logs + np.log(np.maximum(q, 1e-300)), float(q.max(initial=0.0))

    def dual(self, logs: Array) -> tuple[sparse.csc_array, Array]:
        """Differences of weight above round-off."""
        weights = np.exp(logs - logs.max(initial=0.0))
        used = np.flatnonzero(weights > 1e-16)
        return sparse.csc_array(self.matrix[:, used]), weights[used] * np.exp(logs.max(initial=0.0))


class PairAtoms(Atoms):
    """All pairs of coordinates: `points` (r, k) are the effects of the coordinates, weights one for each i < j."""

    def __init__(self, points: Array, pairs: Pairs, n: int) -> None:
        self.points, self.pairs, self.n = points - points.mean(axis=1, keepdims=True), pairs, n
        self.firsts, self.seconds = np.triu_indices(points.shape[1], 1)

    def start(self) -> Array:
        """Logarithms of the distances."""
        distances = pair_distances(self.points.T @ self.points)[self.firsts, self.seconds]
        floor = 1e-12 * max(float(distances.max(initial=0.0)), 1e-300)
        return np.asarray(0.5 * np.log(np.maximum(distances, floor)) + np.log(self.pairs.scale))

    def mass(self, logs: Array) -> float:
        """Sum of the weights."""
        return float(np.exp(logs).sum())

    def moment(self, logs: Array) -> Array:
        """Points @ (weighted graph Laplacian) @ points.T."""
        k = self.points.shape[1]
        weights = np.zeros((k, k))
        weights[self.firsts, self.seconds] = np.exp(logs)
        weights += weights.T
        laplacian = np.diag(weights.sum(axis=1)) - weights
        return np.asarray(self.points @ laplacian @ self.points.T) * self.pairs.scale**2

    def quadratics(self, whitener: Array) -> Array:
        """Squared distances of the whitened points."""
        whitened = whitener @ self.points
        distances = pair_distances(whitened.T @ whitened)
        return np.asarray(distances[self.firsts, self.seconds] * self.pairs.scale**2)

    def update(self, logs: Array, whitener: Array) -> tuple[Array, float]:
        """Log weights plus log q."""
        q = self.quadratics(whitener)
        return logs + np.log(np.maximum(q, 1e-300)), float(q.max(initial=0.0))

    def dual(self, logs: Array) -> tuple[sparse.csc_array, Array]:
        """Pairs of weight above round-off."""
        weights = np.exp(logs - logs.max(initial=0.0))
        used = np.flatnonzero(weights > 1e-12)
        coordinates = np.asarray(self.pairs.coordinates, np.intp)
        matrix = pair_matrix(coordinates, self.firsts[used], self.seconds[used], self.pairs.scale, self.n)
        return matrix, weights[used] * np.exp(logs.max(initial=0.0))


class BallAtoms(Atoms):
    """l2 balls: one positive semidefinite weight matrix for each group of columns of `effects` (r, N)."""

    def __init__(self, effects: Array, direction: Directions) -> None:
        self.effects, self.matrix = effects, direction.matrix
        self.slices = tuple(direction.slices)
        stops = np.cumsum(direction.sizes**2)
        self.parts = tuple(slice(int(b - s * s), int(b)) for b, s in zip(stops, direction.sizes, strict=True))

    def _roots(self, logs: Array) -> list[Array]:
        """Symmetric square roots of the weight matrices."""
        roots = []
        for part in self.parts:
            size = int(np.sqrt(part.stop - part.start))
            values, vectors = np.linalg.eigh(logs[part].reshape(size, size))
            roots.append((vectors * np.exp(values / 2)) @ vectors.T)
        return roots

    def _logs(self, matrices: list[Array]) -> Array:
        """Matrix logarithms, with eigenvalues kept above round-off."""
        decomposed = [np.linalg.eigh((matrix + matrix.T) / 2) for matrix in matrices]
        floor = max(float(values[-1]) for values, _ in decomposed) * np.exp(LEAST_LOG / 2)
        flat = [((vectors * np.log(np.maximum(values, floor))) @ vectors.T).ravel() for values, vectors in decomposed]
        return np.concatenate(flat)

    def start(self) -> Array:
        """Logarithms of the Gram matrices over their norms: the optimum for one ball."""
        grams = [self.effects[:, columns].T @ self.effects[:, columns] for columns in self.slices]
        return self._logs([gram / max(np.sqrt(np.trace(gram)), 1e-300) for gram in grams])

    def mass(self, logs: Array) -> float:
        """Sum of the traces."""
        return float(sum(np.sum(root**2) for root in self._roots(logs)))

    def moment(self, logs: Array) -> Array:
        """Sum of effects @ weights @ effects.T over the balls."""
        scaled = np.column_stack(
            [self.effects[:, columns] @ root for columns, root in zip(self.slices, self._roots(logs), strict=True)]
        )
        return np.asarray(scaled @ scaled.T)

    def update(self, logs: Array, whitener: Array) -> tuple[Array, float]:
        """Logarithms of root @ Q @ root for each ball, and the largest eigenvalue of the matrices Q."""
        largest, following = 0.0, []
        whitened = whitener @ self.effects
        for columns, root in zip(self.slices, self._roots(logs), strict=True):
            part = whitened[:, columns]
            largest = max(largest, float(np.linalg.norm(part, 2)) ** 2)
            product = part @ root
            following.append(product.T @ product)
        return self._logs(following), largest

    def normalised(self, logs: Array) -> Array:
        """Unchanged: the floor is kept by the matrix logarithm."""
        return logs

    def shifted(self, logs: Array, shift: float) -> Array:
        """Shift the diagonals of the matrix logarithms."""
        identities = [np.eye(int(np.sqrt(part.stop - part.start))).ravel() for part in self.parts]
        return logs + shift * np.concatenate(identities)

    def dual(self, logs: Array) -> tuple[sparse.csc_array, Array]:
        """The axes of each weight matrix, shrunk so that round-off leaves them admissible."""
        columns, weights = [], []
        for part, root in zip(self.slices, self._roots(logs), strict=True):
            values, vectors = np.linalg.eigh(root)
            vectors = vectors / (np.linalg.norm(vectors, axis=0) * (1 + 1e-14))
            columns.append(sparse.csc_array(self.matrix[:, part] @ vectors))
            weights.append(values**2)
        p = np.concatenate(weights)
        used = np.flatnonzero(p > 1e-16 * p.max(initial=0.0))
        return sparse.csc_array(sparse.csc_array(sparse.hstack(columns))[:, used]), p[used]


def pair_span(coordinates: Indices, n: int) -> Array:
    """Columns (n, k) that span the differences e_i - e_j."""
    k = len(coordinates)
    span = np.zeros((n, k))
    span[coordinates, np.arange(k)] = 1.0
    span[coordinates] -= 1.0 / k
    return span
