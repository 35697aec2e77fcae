"""The compiled engine of probit estimates: the rounds of `probit`, one voter after the other.

Needs numba; imported on first use by `probit`. Its own erfcx is a Chebyshev series of degree 24 of
(1 + 2x) erfcx(x) in (x - 3.75) / (x + 3.75), x >= 0 (Shepherd & Laframboise 1981): relative error below 6e-15, which
`tests/solvers/test_probit.py` checks against scipy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar, cast

import numpy as np
from numpy.polynomial import chebyshev
from privspec.solvers.probit import (
    BOLD,
    CAUTION,
    FLAT,
    GRADIENT_STEPS,
    NEWTON_STEPS,
    PATIENCE,
    RIDGE,
    ROOT_HALF,
    ROOT_TWO_OVER_PI,
)
from scipy.special import erfcx

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """The function, compiled on its first call and kept on disk; no fast-math."""
    return cast("Function", import_module("numba").njit(cache=True, error_model="numpy")(function))


def _scaled(place: Any) -> Any:
    x = 3.75 * (1.0 + place) / (1.0 - place)
    return (1.0 + 2.0 * x) * erfcx(x)


SERIES = chebyshev.chebinterpolate(_scaled, 24)
DESCENTS = np.array(GRADIENT_STEPS)


@compiled
def tail(x: float) -> float:
    """The scaled complementary error function erfcx(x), x >= 0."""
    place = 2.0 * (x - 3.75) / (x + 3.75)
    one = two = 0.0
    for k in range(len(SERIES) - 1, 0, -1):
        one, two = SERIES[k] + (place * one - two), one
    result: float = (SERIES[0] + (0.5 * place * one - two)) / (1.0 + 2.0 * x)
    return result


@compiled
def slope(value: float) -> float:
    """The derivative of ln Phi."""
    scaled = tail(abs(value) * ROOT_HALF)
    if value <= 0:
        return ROOT_TWO_OVER_PI / scaled
    shrunk = math.exp(-0.5 * value * value)
    return ROOT_TWO_OVER_PI * shrunk / (2.0 - shrunk * scaled)


@compiled
def loss(value: float) -> float:
    """-ln Phi."""
    scaled = tail(abs(value) * ROOT_HALF)
    if value <= 0:
        return 0.5 * value * value - math.log(0.5 * scaled)
    return -math.log1p(-0.5 * math.exp(-0.5 * value * value) * scaled)


@compiled
def look(data: Any, point: Any, values: Any) -> None:
    """Utilities of the records."""
    for j in range(data.shape[0]):
        total = 0.0
        for k in range(data.shape[1]):
            total += data[j, k] * point[k]
        values[j] = total


@compiled
def pull(data: Any, weights: Any, out: Any) -> None:
    """Sums of records by weights."""
    out[:] = 0.0
    for j in range(data.shape[0]):
        weight = weights[j]
        for k in range(data.shape[1]):
            out[k] += weight * data[j, k]


@compiled
def norm_of(point: Any, l1: bool) -> float:
    """The norm that makes the ball."""
    total = 0.0
    for k in range(len(point)):
        total += abs(point[k]) if l1 else point[k] * point[k]
    return total if l1 else math.sqrt(total)


@compiled
def dual_of(gradient: Any, l1: bool) -> float:
    """The dual norm."""
    largest = 0.0
    for k in range(len(gradient)):
        largest = max(largest, abs(gradient[k]))
    if l1 or largest == 0.0:
        return largest
    total = 0.0
    for k in range(len(gradient)):
        total += (gradient[k] / largest) ** 2
    return largest * math.sqrt(total)


@compiled
def project(point: Any, l1: bool) -> None:
    """The nearest point of the unit ball, in place; the threshold of l1 by Michelot's finite descent (1986)."""
    size = norm_of(point, l1)
    if size <= 1.0:
        return
    if not l1:
        for k in range(len(point)):
            point[k] /= size
        return
    threshold, before = (size - 1.0) / len(point), len(point) + 1
    while True:
        total, count = 0.0, 0
        for k in range(len(point)):
            if abs(point[k]) > threshold:
                total += abs(point[k])
                count += 1
        if count >= before or count == 0:  # rounding at ties must not make it go round
            break
        threshold, before = (total - 1.0) / count, count
    for k in range(len(point)):
        point[k] = math.copysign(max(abs(point[k]) - threshold, 0.0), point[k])


@compiled
def curvature_of(data: Any, bends: Any) -> float:
    """About the largest eigenvalue of the Hessian: power iteration."""
    count, features = data.shape
    vector, seen = np.empty(features), np.empty(count)
    for k in range(features):
        vector[k] = math.cos(1.0 * k)
    size = 0.0
    for _ in range(5):
        scale = dual_of(vector, False)
        if scale == 0.0:
            return 0.0
        for k in range(features):
            vector[k] /= scale
        look(data, vector, seen)
        for j in range(count):
            seen[j] *= bends[j]
        pull(data, seen, vector)
        size = dual_of(vector, False)
    return size


@compiled
def descend(data: Any, start: Any, curvature: float, l1: bool, steps: int) -> Any:
    """Accelerated projected gradient with restarts."""
    count, features = data.shape
    point, ahead, target, gradient = start.copy(), start.copy(), np.empty(features), np.empty(features)
    values, momentum = np.empty(count), 1.0
    for _ in range(steps):
        look(data, ahead, values)
        for j in range(count):
            values[j] = slope(values[j])
        pull(data, values, gradient)
        for k in range(features):
            target[k] = ahead[k] + gradient[k] / curvature
        project(target, l1)
        uphill = 0.0
        for k in range(features):
            uphill += (ahead[k] - target[k]) * (target[k] - point[k])
        following = 0.5 + math.sqrt(0.25 + momentum * momentum) if uphill <= 0 else 1.0
        factor = (momentum - 1.0) / following if uphill <= 0 else 0.0
        for k in range(features):
            ahead[k] = target[k] + factor * (target[k] - point[k])
            point[k] = target[k]
        momentum = following
    return point


@compiled
def newton(data: Any, point: Any, bends: Any, gradient: Any, l1: bool, careful: bool) -> Any:
    """One Newton step in the ball: on the face where the loss presses against the boundary, free inside.

    A careful step on a face of the l1 ball takes up no further entry, and ends where the first one becomes zero.
    """
    count, features = data.shape
    press = 0.0
    for k in range(features):
        press -= gradient[k] * point[k]
    edge = norm_of(point, l1) >= 1.0 - 1e-9 and press > 0
    free, normal, m = np.empty(features, np.int64), np.zeros(features), 0
    for k in range(features):
        if not edge or not l1 or point[k] != 0 or (not careful and abs(gradient[k]) > press):
            free[m] = k
            if edge:
                side = point[k] if point[k] != 0 or not l1 else -gradient[k]
                normal[m] = math.copysign(1.0, side) if l1 else side
            m += 1
    hessian = np.zeros((m, m))
    row = np.empty(m)
    for j in range(count):
        for a in range(m):
            row[a] = data[j, free[a]]
        for a in range(m):
            weighted = bends[j] * row[a]
            for b in range(a + 1):
                hessian[a, b] += weighted * row[b]
    trace = 0.0
    for a in range(m):
        trace += hessian[a, a]
    trace = trace if trace > FLAT else 1.0
    extra = RIDGE * trace + (press if edge and not l1 else 0.0)
    # Cholesky of the lower triangle, in place; a pivot that rounding made too small keeps the ridge.
    for a in range(m):
        hessian[a, a] += extra
        for b in range(a + 1):
            total = hessian[a, b]
            for c in range(b):
                total -= hessian[a, c] * hessian[b, c]
            hessian[a, b] = math.sqrt(max(total, extra)) if a == b else total / hessian[b, b]
    along, across = np.empty(m), normal[:m].copy()
    for a in range(m):
        along[a] = -gradient[free[a]]
    for a in range(m):
        for c in range(a):
            along[a] -= hessian[a, c] * along[c]
            across[a] -= hessian[a, c] * across[c]
        along[a] /= hessian[a, a]
        across[a] /= hessian[a, a]
    for a in range(m - 1, -1, -1):
        for c in range(a + 1, m):
            along[a] -= hessian[c, a] * along[c]
            across[a] -= hessian[c, a] * across[c]
        along[a] /= hessian[a, a]
        across[a] /= hessian[a, a]
    over = under = 0.0
    for a in range(m):
        over += normal[a] * along[a]
        under += normal[a] * across[a]
    multiplier = over / under if under > 0 else 0.0
    moved = point.copy()
    share = 1.0
    for a in range(m):
        along[a] -= multiplier * across[a]
        if careful and edge and l1 and along[a] * normal[a] < 0:
            share = min(share, -moved[free[a]] / along[a])
    for a in range(m):
        blocks = share < 1.0 and along[a] * normal[a] < 0 and -moved[free[a]] / along[a] <= share
        moved[free[a]] = 0.0 if blocks else moved[free[a]] + share * along[a]
        if edge and l1 and moved[free[a]] * normal[a] < 0:
            moved[free[a]] = 0.0
    project(moved, l1)
    return moved


@compiled
def one_voter(data: Any, tolerance: float, l1: bool, limit: int, point: Any) -> int:
    """The rounds of one voter; `point` starts at zero and ends at the estimate. Returns the steps taken."""
    count, features = data.shape
    values, tried, slopes, bends = np.empty(count), np.empty(count), np.empty(count), np.empty(count)
    gradient, candidate = np.empty(features), np.empty(features)
    best = count * math.log(2.0)
    values[:] = 0.0
    caution, steps, number = CAUTION, 0, 0
    while steps < limit:
        for newtons in range(NEWTON_STEPS + 1):
            for j in range(count):
                slopes[j] = slope(values[j])
                bend = slopes[j] * (values[j] + slopes[j])
                bends[j] = 1.0 if values[j] < -1e4 else min(max(bend, 0.0), 1.0)
            pull(data, slopes, gradient)
            gap = dual_of(gradient, l1)
            for k in range(features):
                gradient[k] = -gradient[k]
                gap += gradient[k] * point[k]
            if gap <= 0.5 * tolerance * best:
                return steps
            if newtons == NEWTON_STEPS or number == 0:
                break
            steps += 1
            moved = newton(data, point, bends, gradient, l1, False)
            share, better = 1.0, False
            for attempt in range(6):
                if attempt == 3:
                    moved = newton(data, point, bends, gradient, l1, True)
                    share = 1.0
                for k in range(features):
                    candidate[k] = moved[k] if share == 1.0 else point[k] + share * (moved[k] - point[k])
                look(data, candidate, tried)
                reached = 0.0
                for j in range(count):
                    reached += loss(tried[j])
                if reached < best:
                    better = True
                    break
                share *= 0.25
            if not better:
                break
            best = reached
            point[:] = candidate
            values[:] = tried
        curvature = caution * curvature_of(data, bends)
        descents = DESCENTS[min(number, len(DESCENTS) - 1)]
        reachedat = descend(data, point, curvature if curvature > FLAT else 1.0, l1, descents)
        steps += descents
        number += 1
        look(data, reachedat, tried)
        reached = 0.0
        for j in range(count):
            reached += loss(tried[j])
        if reached < best:
            best = reached
            point[:] = reachedat
            values[:] = tried
            caution = max(CAUTION if number <= PATIENCE else BOLD, 0.3 * caution)
        else:
            caution *= 4.0
    return steps


@compiled
def every_voter(unit: Any, tolerance: float, l1: bool, limit: int, points: Any) -> int:
    """Each voter on its own; the largest number of steps."""
    most = 0
    for i in range(unit.shape[0]):
        most = max(most, one_voter(unit[i], tolerance, l1, limit, points[i]))
    return most
