"""Laplace noise under pure epsilon (MATH.md section 3): scales of sites, K-norm noise, a bound for any mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from privspec.solvers.programs import Array
from privspec.solvers.results import OutOfTimeError, Progress, SolverError, Watch
from scipy import linalg

GROWTH = 20.0


@dataclass(frozen=True, eq=False, slots=True)
class LaplaceSolution:
    """Scales (k,) with strategy_costs @ (1 / scales) <= 1, their value sum w b^2, and a lower bound on it.

    A row that no difference touches needs no noise: its scale is 0. `dual` (N,) >= 0 proves the bound
    (sum_k w_k^(1/3) (C' dual)_k^(2/3))^3 / (sum dual)^2.
    """

    scales: Array
    value: float
    lower_bound: float
    dual: Array
    iterations: int

    @property
    def relative_gap(self) -> float:
        """(value - lower bound) / value."""
        return (self.value - self.lower_bound) / self.value if self.value > 0 else 0.0


def laplace_scales(
    costs: Array,
    weights: Array,
    tolerance: float = 1e-6,
    deadline: float | None = None,
    progress: Progress | None = None,
) -> LaplaceSolution:
    """Scales of Laplace noise at the strategy rows, jointly seen, of least weighted squares.

    Minimises sum_k w_k b_k^2 subject to sum_k |C_ik| / b_k <= 1 for every difference i (costs come divided by epsilon;
    the variance of a row is 2 b_k^2). Convex in 1 / b; log-barrier Newton, scaled by the iterate.

    Args: costs C (N, k), the change |B d| of each strategy row under each difference; weights w (k,) > 0.
    Returns: scales rounded up so that every constraint holds, and the bound rounded down.
    Raises: ValueError for weights that are not positive; OutOfTimeError (without a solution) at the deadline.
    """
    costs, weights = np.abs(np.asarray(costs, float)), np.asarray(weights, float)
    if not np.all(weights > 0) or not np.all(np.isfinite(costs)):
        raise ValueError("weights must be positive and costs finite")
    rows = np.flatnonzero(costs.sum(axis=1) > 0)
    columns = np.flatnonzero(costs.sum(axis=0) > 0)
    scales, dual = np.zeros(costs.shape[1]), np.zeros(costs.shape[0])
    if not len(columns):
        return LaplaceSolution(scales, 0.0, 0.0, dual, 0)
    watch = Watch(deadline, progress)
    inverse, multipliers = _newton(costs[np.ix_(rows, columns)], weights[columns], tolerance, watch)
    scales[columns], dual[rows] = 1 / inverse, multipliers
    used = costs[:, columns] @ (1 / scales[columns])
    scales[columns] *= float(used.max()) * (1 + (len(columns) + 8) * np.finfo(float).eps)
    value = float(weights @ scales**2) * (1 + (len(weights) + 4) * float(np.finfo(float).eps))
    return LaplaceSolution(scales, value, laplace_bound(costs, weights, dual), dual, watch.iterations)


def laplace_bound(costs: Array, weights: Array, dual: Array) -> float:
    """The lower bound on sum w b^2 that nonnegative multipliers of the differences prove, rounded down."""
    total = float(np.sum(dual))
    if total <= 0:
        return 0.0
    charges = np.abs(costs).T @ np.maximum(dual, 0.0)
    power = float(np.sum(np.cbrt(weights) * np.cbrt(charges) ** 2))
    slack = 4 * (len(weights) + len(dual) + 16) * float(np.finfo(float).eps)
    return power**3 / total**2 * (1 - slack)


def _newton(costs: Array, weights: Array, tolerance: float, watch: Watch) -> tuple[Array, Array]:
    """Inverse scales (k,) strictly inside and multipliers (N,), with a relative gap below the tolerance."""
    count, size = costs.shape
    inverse = np.cbrt(weights / costs.max(axis=0))
    inverse = inverse * (0.5 / float((costs @ inverse).max()))
    weight = count / float(np.sum(weights / inverse**2))
    best: tuple[float, Array, Array] = (math.inf, inverse, np.ones(count))
    for _ in range(300):
        slack = 1 - costs @ inverse
        multipliers = 1 / slack
        value = float(np.sum(weights / inverse**2)) * float((costs @ inverse).max()) ** 2
        bound = laplace_bound(costs, weights, multipliers)
        gap = (value - bound) / value
        watch.step(value, bound)
        if gap < best[0]:
            best = (gap, inverse, multipliers)
        if gap <= 0.9 * tolerance:
            break
        if watch.expired:
            raise OutOfTimeError(None)
        scaled = (costs * inverse) * multipliers[:, None]
        curvature = scaled.T @ scaled
        pull, push = 2 * weights / inverse**2, scaled.sum(axis=0)
        last = 2 * count / (tolerance * value)
        step, decrement = np.zeros(size), 0.0
        for _ in range(40):
            matrix = curvature + np.diag(3 * weight * pull)
            step = linalg.solve(matrix, weight * pull - push, assume_a="pos", check_finite=False)
            decrement = float(step @ (weight * pull - push))
            if decrement > (1.0 if weight < last else 1e-8):
                break
            weight = min(weight * GROWTH, last) if weight < last else weight * 2
        if weight > 1e3 * last:
            break
        inverse = _search(costs, weights, inverse, step, weight, decrement)
    if not math.isfinite(best[0]):
        raise SolverError("the Laplace program did not start")
    return best[1], best[2]


def _search(costs: Array, weights: Array, inverse: Array, step: Array, weight: float, decrement: float) -> Array:
    """The backtracked Newton step in relative coordinates."""

    def merit(point: Array) -> float:
        slack = 1 - costs @ point
        if np.min(point) <= 0 or np.min(slack) <= 0:
            return math.inf
        return weight * float(np.sum(weights / point**2)) - float(np.sum(np.log(slack)))

    before, length = merit(inverse), 1.0
    for _ in range(40):
        moved = inverse * (1 + length * step)
        if merit(moved) <= before - 0.1 * length * decrement + 1e-11 * abs(before):
            return moved
        length *= 0.5
    return inverse


def knorm_l2_variance(dimension: int, scale: float) -> float:
    """Variance of each coordinate of noise in R^d of density proportional to exp(-||z||_2 / scale).

    The radius is Gamma(d, scale) and the direction uniform, so the covariance is scale^2 (d + 1) I.
    """
    return scale**2 * (dimension + 1)


def hcr_mu_squared(epsilon: float) -> float:
    """4 sinh(epsilon / 2)^2, rounded up: the mu^2 at which the Gaussian optimum bounds every unbiased mechanism.

    Source: Hammersley-Chapman-Robbins; MATH.md section 3.
    """
    return 4 * math.sinh(epsilon / 2) ** 2 * (1 + 1e-14)


def hcr_bound(lower_bound: float, epsilon: float) -> float:
    """Least loss of any unbiased epsilon-DP mechanism, from the Gaussian lower bound at mu = 1 (full covariance)."""
    return lower_bound / hcr_mu_squared(epsilon) * (1 - 1e-15)
