"""The unit balls of probit estimates: projection, dual norm, faces; and points that lie inside in exact arithmetic."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from privspec.solvers.programs import Array


class Ball(Protocol):
    """The unit ball of a norm; all methods treat rows (N, d) independently."""

    def norm(self, points: Array) -> Array:
        """The norm of each row, within (d + 8) 2^-52 relative."""

    def dual(self, gradients: Array) -> Array:
        """The dual norm of each row: the largest g'b over the ball."""

    def project(self, points: Array) -> Array:
        """The nearest point of the ball to each row."""

    def face(self, points: Array, gradients: Array, careful: bool) -> tuple[NDArray[np.bool_], Array, Array]:
        """What a Newton step at boundary points keeps: free entries, outward normal, curvature of the boundary.

        A careful step takes up no entries that are zero.
        """

    def settle(self, points: Array, steps: Array, normals: Array, careful: bool) -> Array:
        """The points of the ball that Newton steps from boundary points stand for; a careful one stays on the face."""


class L1:
    """The l1 ball."""

    def norm(self, points: Array) -> Array:
        """The sum of magnitudes."""
        return np.asarray(np.abs(points).sum(axis=1))

    def dual(self, gradients: Array) -> Array:
        """The largest magnitude."""
        return np.asarray(np.abs(gradients).max(axis=1))

    def project(self, points: Array) -> Array:
        """Soft threshold at the largest (S_k - 1)/k, S_k the sum of the k largest magnitudes (Duchi et al. 2008)."""
        sizes = np.abs(points)
        falling = -np.sort(-sizes, axis=1)
        sums = np.cumsum(falling, axis=1)
        sums -= 1.0
        sums /= np.arange(1, points.shape[1] + 1)
        threshold = np.maximum(sums.max(axis=1), 0.0)
        sizes -= threshold[:, None]
        np.maximum(sizes, 0.0, out=sizes)
        return np.copysign(sizes, points)

    def face(self, points: Array, gradients: Array, careful: bool) -> tuple[NDArray[np.bool_], Array, Array]:
        """Entries that are not zero, and zeros whose slope exceeds the multiplier of the face."""
        used = points != 0
        multiplier = -(gradients * points).sum(axis=1)
        free = used if careful else used | (np.abs(gradients) > multiplier[:, None])
        normals = np.where(used, np.sign(points), -np.sign(gradients)) * free
        return free, normals, np.zeros(len(points))

    def settle(self, points: Array, steps: Array, normals: Array, careful: bool) -> Array:
        """Entries that would change sign become zero; a careful step ends where the first one does."""
        if careful:
            falling = steps * normals < 0
            shares = np.where(falling, -points / np.where(falling, steps, 1.0), np.inf)
            share = np.minimum(shares.min(axis=1), 1.0)[:, None]
            moved = np.where(falling & (shares <= share) & (share < 1.0), 0.0, points + share * steps)
        else:
            moved = points + steps
        return self.project(np.where(moved * normals > 0, moved, 0.0))


class L2:
    """The l2 ball."""

    def norm(self, points: Array) -> Array:
        """The Euclidean norm, without overflow."""
        largest = np.abs(points).max(axis=1)
        safe = np.where(largest > 0, largest, 1.0)
        return np.asarray(np.sqrt(np.square(points / safe[:, None]).sum(axis=1)) * largest)

    def dual(self, gradients: Array) -> Array:
        """The Euclidean norm."""
        return self.norm(gradients)

    def project(self, points: Array) -> Array:
        """Points outside move along the ray to zero."""
        return points / np.maximum(self.norm(points), 1.0)[:, None]

    def face(self, points: Array, gradients: Array, careful: bool) -> tuple[NDArray[np.bool_], Array, Array]:
        """Every entry; the sphere bends as much as the multiplier says."""
        multiplier = np.maximum(-(gradients * points).sum(axis=1), 0.0)
        return np.ones(points.shape, dtype=bool), points, multiplier

    def settle(self, points: Array, steps: Array, normals: Array, careful: bool) -> Array:
        """Back to the ball."""
        return self.project(points + steps)


BALLS: dict[str, Ball] = {"l1": L1(), "l2": L2()}


def inside(points: Array, radius: float, ball: Ball) -> Array:
    """The points, moved towards zero where needed so that their norm is at most `radius` in exact arithmetic.

    The computed norm times (1 + (2d + 16) 2^-52) is an upper bound on the exact one (d - 1 additions, or d squares,
    quotients and additions and a root, each within 2^-53). The factor t <= radius / bound is rounded down and every
    product is moved one double towards zero, so |result_k| <= t |b_k| holds exactly, also for subnormal numbers.
    """
    features = points.shape[1]
    above = np.nextafter(ball.norm(points) * (1.0 + (2 * features + 16) * 2.0**-52), np.inf)
    scale = np.nextafter(radius / np.maximum(above, np.finfo(float).smallest_subnormal), 0.0)
    return np.where((above <= radius)[:, None], points, np.nextafter(points * scale[:, None], 0.0))
