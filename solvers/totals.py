"""Noise for running totals of a long row: few sizes of it, one for each stretch, on a banded root of the totals.

With C the first `band` coefficients of (1 - x)^(-1/2), raised along a ramp, noise of variance 1 / v_i on each number
of C x costs sum L_i / v_i, L_i the sum of the first squared coefficients of 1 / ((1 - x) C(x)); a unit that changes a
class of numbers moves sum over the class of C_2' v, C_2 the squares: convex in v. Stretches grow with the distance from
the end, as L does (notes/streams.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from privspec.solvers.programs import Array
from scipy import fft, optimize

STRETCHES = 32
"""Of growing length, from the end of the row."""
PIECES = 32
"""Of equal length, in all that a unit changes of a row."""
CLASSES = 200
"""Of which the moves are looked at."""
SHORT, SHORT_CLASS = 4096, 64
"""Numbers of a row, and between two that one unit changes, for which the ramp is looked for."""
NEAR = 1e-4
"""Share of the loss up to which it is made less."""


def root(size: int, ramp: float, band: int) -> Array:
    """The first coefficients of (1 - x)^(-1/2), each times 1 + ramp m / band, up to the band."""
    places = np.arange(band)
    found = np.zeros(size)
    found[:band] = np.cumprod(np.concatenate(([1.0], (2 * places[1:] - 1) / (2 * places[1:]))))
    found[:band] *= 1 + ramp * places / band
    return found


def convolved(one: Array, other: Array, size: int) -> Array:
    """The first entries of a convolution, along the last axis."""
    length = fft.next_fast_len(one.shape[-1] + other.shape[-1] - 1, real=True)
    return np.asarray(fft.irfft(fft.rfft(one, length) * fft.rfft(other, length), length)[..., :size])


def summed_inverse(size: int, ramp: float, band: int) -> Array:
    """The first coefficients of 1 / ((1 - x) C(x)): what noise in a number adds to later totals."""
    whole, found, at = root(size, ramp, band), np.ones(1), 1
    while at < size:
        at = min(2 * at, size)
        left = -convolved(whole[:at], found, at)
        left[0] += 2
        found = convolved(left, found, at)
    return np.cumsum(found)


def stretches(size: int, times: int, apart: int) -> NDArray[np.int64]:
    """Lengths of the stretches, in order."""
    pieces = max(PIECES // times, 1)
    even = (np.arange(0, size, apart)[:, None] + apart * np.arange(pieces) // pieces).reshape(-1)
    late = size - np.geomspace(1, size, STRETCHES).round().astype(np.int64)
    edges = np.unique(np.concatenate((even[even < size], late, [0, size])))
    return np.diff(edges)


def ramp_of(size: int, times: int, apart: int, band: int) -> float:
    """The ramp with the least loss, near enough: that of a shorter row."""
    if times == 1:
        return 0.0
    less = max(min(size // SHORT, apart // SHORT_CLASS), 1)

    def loss(ramp: float) -> float:
        return deviations(size // less, times, apart // less, ramp, band // less)[2]

    found = optimize.minimize_scalar(loss, bounds=(0.0, 16.0), method="bounded", options={"xatol": 1e-2})
    return float(found.x)


def deviations(size: int, times: int, apart: int, ramp: float, band: int) -> tuple[NDArray[np.int64], Array, float]:
    """Lengths of stretches, the deviation of noise in each, and the loss: near the least where classes move at most 1.

    Args: times, apart: a unit changes so many numbers, so far apart; band at most that where there are several.
    """
    lengths = stretches(size, times, apart)
    edges = np.concatenate(([0], np.cumsum(lengths)))
    costs = np.cumsum(summed_inverse(size, ramp, band) ** 2)[::-1]
    each = np.add.reduceat(costs, edges[:-1])
    squares = np.concatenate(([0.0], np.cumsum(root(band, ramp, band) ** 2)))
    late = apart - np.geomspace(1, apart, CLASSES).astype(np.int64)
    starts = np.unique(np.concatenate((np.linspace(0, apart - 1, CLASSES).astype(np.int64), late, edges % apart)))
    moves = np.zeros((len(starts), len(lengths)))
    for turn in range(0, size, apart):
        places = starts[starts < size - turn] + turn
        moves[: len(places)] += np.diff(squares[np.clip(edges[None, :] - places[:, None], 0, band)], axis=1)
    rates = _least(each / each.sum(), moves)
    rates /= float((moves @ rates).max())
    return lengths, 1 / np.sqrt(rates), float((each / rates).sum())


def _least(costs: Array, moves: Array) -> Array:
    """The rates v > 0 with the least sum of costs / v, near enough, and moves v <= 1: a barrier and Newton's steps."""
    rates = np.full(len(costs), 0.5 / float(moves.sum(axis=1).max()))
    weight, most = 1.0, len(moves) / NEAR
    while True:
        for _ in range(50):
            left = 1 - moves @ rates
            slope = -weight * costs / rates**2 + (moves / left[:, None]).sum(axis=0)
            # in relative steps, as rates differ much in size
            scaled = moves / left[:, None] * rates
            curve = scaled.T @ scaled + np.diag(2 * weight * costs / rates)
            step = -np.linalg.solve(curve, slope * rates)
            size = float(-(slope * rates) @ step)
            reach = max(float((scaled @ step).max()), float(-step.min()), 0.0)
            rates = rates * (1 + step * min(1.0, 1 / (1 + np.sqrt(max(size, 0.0))), 0.9 / max(reach, 1e-300)))
            if size < 1e-6:
                break
        if weight * float((costs / rates).sum()) > most:
            return np.asarray(rates)
        weight *= 8
