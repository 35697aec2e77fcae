"""Laplace noise under pure epsilon (MATH.md section 3): scales of sites, K-norm noise, a bound for any mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy
from privspec.solvers.programs import Array, OutOfTimeError, Progress, Watch

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
class Reached:
    """Inverse scales (k,), their value scaled to the boundary, and a bound with the multipliers of the costs."""

    inverse: Array
    value: float
    bound: float
    multipliers: Array


@dataclass(frozen=True, eq=False)
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

    def solve(self, inverse: Array, tolerance: float, watch: Watch, enough: float = 0.0) -> Reached:
        """Inverse scales whose relative gap is below the tolerance, or their value below `enough`, or the best found.

        A primal-dual interior point in log(1 / b), where costs and rows are sums of exponentials (Mehrotra's steps).
        Raises: OutOfTimeError.
        """
        size, few, loose = len(inverse), np.finfo(float).tiny, self.shares > 0
        inverse = inverse * (0.5 / float((self.costs @ inverse).max()))
        while np.any(self.rows[~loose] @ inverse**-2.0 >= self.limits[~loose]):
            # towards the boundary of the costs, where the limits are known to be met
            inverse = inverse * (0.5 + 0.5 / float((self.costs @ inverse).max()))
        first = self.rows @ inverse**-2.0
        # rows in units of the level or, of limits, of the limit; these a little lower, for round-off not to pass them
        units = np.where(loose, 2 * float(np.max(first[loose] / self.shares[loose])), self.limits)
        limits = np.where(loose, self.limits / units, 1 - INNER)
        rows, level, logs = self.rows / units[:, None], 1.0, np.log(inverse)
        room = np.concatenate([1 - self.costs @ inverse, np.maximum(self.shares + limits - first / units, INNER)])
        prices = 1 / (room * float(np.sum(self.shares / room[len(self.costs) :])))
        best, split = Reached(inverse, np.inf, 0.0, prices[: len(self.costs)]), len(self.costs)
        for _ in range(STEPS):
            inverse = np.exp(logs)
            value, bound = self.value(inverse), self.bound(prices[:split], prices[split:] / units)
            if value < best.value:
                best = replace(best, inverse=inverse, value=value)
            if bound > best.bound:
                best = replace(best, bound=bound, multipliers=prices[:split].copy())
            watch.step(best.value, best.bound)
            if best.value - best.bound <= tolerance * best.value or best.value <= enough:
                return best
            if watch.expired:
                raise OutOfTimeError(None)
            moved, spread = self.costs * inverse, rows * inverse**-2.0
            slopes = np.block([[moved, np.zeros((split, 1))], [-2 * spread, -self.shares[:, None]]])
            off = np.concatenate([moved.sum(axis=1) - 1, spread.sum(axis=1) - self.shares * level - limits]) + room
            matrix = slopes.T @ (slopes * (prices / room)[:, None])
            bend = np.append(prices[:split] @ moved + 4 * (prices[split:] @ spread), 0.0)
            matrix[np.diag_indices(size + 1)] += bend
            scale = np.sqrt(np.maximum(np.diag(matrix), few))
            factor = scipy.linalg.lu_factor(
                matrix / scale / scale[:, None] + ROUND_OFF * np.eye(size + 1), check_finite=False
            )
            pull = slopes.T @ prices + np.append(np.zeros(size), 1.0)
            products, middle = room * prices, float(room @ prices) / len(room)
            aims, step = -products, np.zeros(size + 1)
            for corrected in (False, True):
                push = -pull - slopes.T @ ((aims + prices * off) / room)
                step = scipy.linalg.lu_solve(factor, push / scale, check_finite=False) / scale
                wider = -off - slopes @ step
                dearer = (aims - prices * wider) / room
                length = min(1.0, SHORT * _longest(room, wider), SHORT * _longest(prices, dearer))
                if not corrected:
                    left = float((room + length * wider) @ (prices + length * dearer)) / len(room)
                    aims = (left / middle) ** 3 * middle - wider * dearer - products
            if not np.all(np.isfinite(step)):
                return best
            length = min(length, FAR / max(float(np.abs(step[:-1]).max()), few))
            logs, level = logs + length * step[:-1], level + length * float(step[-1])
            room, prices = room + length * wider, prices + length * dearer
        return best


STEPS = 100
"""Steps of the interior point, of which a few dozen are used."""
SHORT = 0.995
"""Share of the way to the boundary that a step goes."""
FAR = 2.0
"""Largest change of the logarithm of a scale in one step."""
INNER = 1e-9
"""Share by which limits are kept below what they are."""
ROUND_OFF = 1e-15


def _longest(values: Array, steps: Array) -> float:
    """How far positive numbers can move before one of them is 0."""
    shrinking = steps < 0
    return float(np.min(-values[shrinking] / steps[shrinking], initial=np.inf))


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
    1 / b and, with its logarithm for an unknown, a geometric program.

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
    found = program.solve(first, 0.9 * tolerance, watch)
    scales[columns], dual[rows] = 1 / found.inverse, found.multipliers
    used = costs[:, columns] @ (1 / scales[columns])
    scales[columns] *= float(used.max()) * (1 + (len(columns) + 8) * np.finfo(float).eps)
    value = float((weights @ scales**2).max()) * (1 + (weights.shape[1] + 4) * float(np.finfo(float).eps))
    return LaplaceSolution(scales, value, found.bound, dual, watch.iterations)


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
        inverse = replace(limits, rows=rows).solve(inverse, tolerance, watch, INSIDE).inverse
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
