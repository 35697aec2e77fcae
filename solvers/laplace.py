"""Laplace noise under pure epsilon (MATH.md section 3): scales of sites, K-norm noise, a bound for any mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from privspec.solvers.programs import Array, OutOfTimeError, Progress, SolverError, Watch
from scipy import linalg

GROWTH = 20.0
INSIDE = 0.999
"""Share of the limits that leaves enough room to start from."""


@dataclass(frozen=True, eq=False, slots=True)
class LaplaceSolution:
    """Scales (k,) with strategy_costs @ (1 / scales) <= 1, their value, and a lower bound on it.

    A row that no difference touches needs no noise: its scale is 0. `dual` (N,) >= 0 proves, for the weights
    sum_k w_k b_k^2 of an expected loss, the bound (sum_k w_k^(1/3) (C' dual)_k^(2/3))^3 / (sum dual)^2.
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


@dataclass(frozen=True, eq=False, slots=True)
class _Program:
    """Minimise s subject to costs @ (1 / b) <= 1 and rows @ b^2 <= shares * s + limits (J rows, all entries >= 0)."""

    costs: Array
    rows: Array
    shares: Array
    limits: Array

    def value(self, inverse: Array) -> float:
        """The least s when 1 / b is this point, scaled to the boundary of the costs."""
        errors = self.rows @ (float((self.costs @ inverse).max()) / inverse) ** 2
        loose = self.shares > 0
        if np.any(errors[~loose] >= self.limits[~loose]):
            return math.inf
        return max(float(np.max((errors[loose] - self.limits[loose]) / self.shares[loose], initial=0.0)), 0.0)

    def bound(self, multipliers: Array, prices: Array) -> float:
        """What multipliers of the costs and prices of the rows prove of s, rounded down."""
        prices = prices / float(self.shares @ prices)
        paid = float(prices @ self.limits) * (1 + (len(prices) + 8) * float(np.finfo(float).eps))
        return laplace_bound(self.costs, prices @ self.rows, multipliers) - paid


def laplace_scales(
    costs: Array,
    weights: Array,
    tolerance: float = 1e-6,
    deadline: float | None = None,
    progress: Progress | None = None,
    limits: tuple[Array, Array] | None = None,
) -> LaplaceSolution | None:
    """Scales of Laplace noise at the strategy rows, jointly seen, of least weighted squares.

    Minimises the largest of sum_k w_jk b_k^2 subject to sum_k |C_ik| / b_k <= 1 for every difference i (costs come
    divided by epsilon; the variance of a row is 2 b_k^2) and sum_k g_lk b_k^2 <= h_l for every limit. Convex in
    1 / b; log-barrier Newton, scaled by the iterate.

    Args: costs C (N, k), the change |B d| of each strategy row under each difference; weights w (k,) or (J, k), every
        column with a positive one; limits (g (L, k), h (L,) > 0).
    Returns: scales rounded up so that every constraint holds, and the bound rounded down; None where no scales meet
        the limits.
    Raises: ValueError for weights that are not positive; OutOfTimeError (without a solution) at the deadline.
    """
    costs, weights = np.abs(np.asarray(costs, float)), np.atleast_2d(np.asarray(weights, float))
    if not (np.all(weights >= 0) and np.all(weights.sum(axis=0) > 0)) or not np.all(np.isfinite(costs)):
        raise ValueError("weights must be positive and costs finite")
    rows = np.flatnonzero(costs.sum(axis=1) > 0)
    columns = np.flatnonzero(costs.sum(axis=0) > 0)
    scales, dual = np.zeros(costs.shape[1]), np.zeros(costs.shape[0])
    if not len(columns):
        return LaplaceSolution(scales, 0.0, 0.0, dual, 0)
    watch = Watch(deadline, progress)
    errors, bounds = (np.zeros((0, costs.shape[1])), np.zeros(0)) if limits is None else limits
    inner, hard = costs[np.ix_(rows, columns)], np.asarray(errors, float)[:, columns]
    if np.all(np.count_nonzero(inner, axis=1) == 1):
        return _alone(costs, weights, np.asarray(errors, float), bounds)
    first = np.cbrt(weights[:, columns].sum(axis=0) / inner.max(axis=0))
    if len(hard):
        first = _within(inner, weights[:, columns].sum(axis=0), hard, bounds, first, tolerance, watch)
    program = _Program(
        inner,
        np.vstack([weights[:, columns], hard]),
        np.concatenate([np.ones(len(weights)), np.zeros(len(hard))]),
        np.concatenate([np.zeros(len(weights)), bounds]),
    )
    if not math.isfinite(program.value(first)):
        return None
    inverse, multipliers, prices = _newton(program, first, tolerance, watch)
    scales[columns], dual[rows] = 1 / inverse, multipliers
    used = costs[:, columns] @ (1 / scales[columns])
    scales[columns] *= float(used.max()) * (1 + (len(columns) + 8) * np.finfo(float).eps)
    value = float((weights @ scales**2).max()) * (1 + (weights.shape[1] + 4) * float(np.finfo(float).eps))
    return LaplaceSolution(scales, value, program.bound(multipliers, prices), dual, watch.iterations)


def _within(
    costs: Array, weights: Array, hard: Array, bounds: Array, inverse: Array, tolerance: float, watch: Watch
) -> Array:
    """Inverse scales whose errors keep the limits, or come near to it.

    The largest ratio of an error to its limit is minimised, with ever less of the loss mixed in: scales that no limit
    sees would have no least value otherwise.
    """
    loss = weights / float(weights @ (float((costs @ inverse).max()) / inverse) ** 2)
    limits = _Program(costs, hard, bounds, np.zeros(len(hard)))
    for share in (1e-2, 1e-5, 1e-8):
        rows = hard + share * bounds[:, None] * loss
        inverse, *_ = _newton(replace(limits, rows=rows), inverse, tolerance, watch, enough=INSIDE)
        if limits.value(inverse) <= INSIDE:
            break
    return inverse


def _alone(costs: Array, weights: Array, errors: Array, bounds: Array) -> LaplaceSolution | None:
    """Differences that move one strategy row each: the least scale of every row, which no other choice is below."""
    scales = costs.max(axis=0) * (1 + 4 * float(np.finfo(float).eps))
    if np.any(errors @ scales**2 > bounds):
        return None
    losses = weights @ scales**2
    row, slack = int(np.argmax(losses)), (len(scales) + 8) * float(np.finfo(float).eps)
    # the first difference that moves a row that far carries its price: w_k b_k^2 over the others of its kind
    dual, moved = np.zeros(len(costs)), np.flatnonzero(scales)
    dual[costs[:, moved].argmax(axis=0)] = (weights[row] * scales**2)[moved]
    return LaplaceSolution(scales, float(losses[row]) * (1 + slack), float(losses[row]) * (1 - 2 * slack), dual, 0)


def laplace_bound(costs: Array, weights: Array, dual: Array) -> float:
    """The lower bound on sum w b^2 that nonnegative multipliers of the differences prove, rounded down."""
    total = float(np.sum(dual))
    if total <= 0:
        return 0.0
    charges = np.abs(costs).T @ np.maximum(dual, 0.0)
    power = float(np.sum(np.cbrt(weights) * np.cbrt(charges) ** 2))
    slack = 4 * (len(weights) + len(dual) + 16) * float(np.finfo(float).eps)
    return power**3 / total**2 * (1 - slack)


def _newton(
    program: _Program, inverse: Array, tolerance: float, watch: Watch, enough: float = 0.0
) -> tuple[Array, Array, Array]:
    """Inverse scales (k,) strictly inside, multipliers (N,) and prices (J,), with a relative gap below the tolerance.

    Stops at once where the value is at most `enough`.
    """
    costs = program.costs
    inverse = inverse * (0.5 / float((costs @ inverse).max()))
    loose = program.shares > 0
    while np.any(program.rows[~loose] @ inverse**-2.0 >= program.limits[~loose]):
        # towards the boundary of the costs, where the limits are known to be met
        inverse = inverse * (0.5 + 0.5 / float((costs @ inverse).max()))
    level = 2 * float(np.max((program.rows[loose] @ inverse**-2.0) / program.shares[loose]))
    count = len(costs) + len(program.shares)
    weight = count / level
    best: tuple[float, Array, Array, Array] = (math.inf, inverse, np.ones(len(costs)), np.ones(len(program.shares)))
    for _ in range(300):
        errors = program.rows / inverse**2
        slack, room = 1 - costs @ inverse, program.shares * level + program.limits - errors.sum(axis=1)
        multipliers, prices = 1 / slack, 1 / room
        value, bound = program.value(inverse), program.bound(multipliers, prices)
        gap = (value - bound) / value
        watch.step(value, bound)
        if gap < best[0]:
            best = (gap, inverse, multipliers, prices)
        if gap <= 0.9 * tolerance or value <= enough:
            return inverse, multipliers, prices
        if watch.expired:
            raise OutOfTimeError(None)
        # relative coordinates of the inverse scales, and of the level
        scaled = (costs * inverse) * multipliers[:, None]
        leaning = np.column_stack([2 * errors, program.shares * level]) * prices[:, None]
        pull = leaning.sum(axis=0)
        matrix = leaning.T @ leaning
        matrix[:-1, :-1] += scaled.T @ scaled
        matrix[np.diag_indices(len(inverse))] += 3 * pull[:-1]
        push = np.append(pull[:-1] - scaled.sum(axis=0), pull[-1])
        last = 2 * count / (tolerance * value)
        step, decrement = np.zeros(len(push)), 0.0
        for _ in range(40):
            ahead = push.copy()
            ahead[-1] -= weight * level
            step = _solved(matrix, ahead)
            decrement = float(step @ ahead)
            if decrement > (1.0 if weight < last else 1e-8):
                break
            weight = min(weight * GROWTH, last) if weight < last else weight * 2
        if weight > 1e3 * last:
            break
        inverse, level = _search(program, inverse, level, step, weight, decrement)
    if not math.isfinite(best[0]):
        raise SolverError("the Laplace program did not start")
    return best[1:]


def _solved(matrix: Array, right: Array) -> Array:
    """The solution of a positive definite system, scaled to a unit diagonal; lifted a little where round-off spoils it.

    Raises: LinAlgError if no lift helps.
    """
    sizes = np.sqrt(np.diag(matrix))
    scaled, lift = matrix / sizes[:, None] / sizes, 1e-15
    while True:
        try:
            return np.asarray(linalg.cho_solve(linalg.cho_factor(scaled, check_finite=False), right / sizes) / sizes)
        except linalg.LinAlgError:
            if lift > 1e-6:
                raise
            scaled, lift = scaled + lift * np.eye(len(sizes)), lift * 100


def _search(
    program: _Program, inverse: Array, level: float, step: Array, weight: float, decrement: float
) -> tuple[Array, float]:
    """The backtracked Newton step in relative coordinates."""

    def merit(point: Array, height: float) -> float:
        if np.min(point) <= 0 or height <= 0:
            return math.inf
        slack = 1 - program.costs @ point
        room = program.shares * height + program.limits - program.rows @ point**-2.0
        if np.min(slack) <= 0 or np.min(room) <= 0:
            return math.inf
        return weight * height - float(np.sum(np.log(slack))) - float(np.sum(np.log(room)))

    before, length = merit(inverse, level), 1.0
    for _ in range(40):
        moved, height = inverse * (1 + length * step[:-1]), level * (1 + length * step[-1])
        if merit(moved, height) <= before - 0.1 * length * decrement + 1e-11 * abs(before):
            return moved, height
        length *= 0.5
    return inverse, level


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
