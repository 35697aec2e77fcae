"""Noise for running totals of a long row: few sizes of it, one for each stretch, on a banded root of the totals.

With C the first `band` coefficients of (1 - x)^(-1/2), raised along a ramp, noise of variance 1 / v_i on each number
of C x costs sum L_i / v_i, L_i the sum of the first squared coefficients of 1 / ((1 - x) C(x)); a unit that changes a
class of numbers moves sum over the class of C_2' v, C_2 the squares: convex in v. Stretches grow with the distance from
the end, as L does (notes/streams.md).
"""

from __future__ import annotations

from dataclasses import dataclass

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
MOST_TURNS, MOST_PLACES = 64, 2**11
"""Of a row, how often a unit may change a number there, and numbers, that are looked at."""
ROUNDS = 12
MOST_RAMP = 1.0
"""Up to it coefficients fall, and the inverse does not grow."""
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


def stretches(size: int, apart: int) -> NDArray[np.int64]:
    """Lengths of the stretches, in order."""
    turns = -(-size // apart)
    inner = np.arange(max(PIECES // turns, 1)) * apart // max(PIECES // turns, 1)
    even = (np.arange(turns)[:, None] * apart + inner).reshape(-1)
    even = even[:: max(len(even) // (2 * PIECES), 1)]
    late = size - np.geomspace(1, size, STRETCHES).round().astype(np.int64)
    edges = np.unique(np.concatenate((even[even < size], late, [0, size])))
    return np.diff(edges)


@dataclass(frozen=True, slots=True)
class Row:
    """`size` numbers, of which a unit changes `times`, `exactly` or at least `apart`; the band of its strategy."""

    size: int
    times: int
    apart: int
    exactly: bool
    band: int


def ramp_of(row: Row) -> float:
    """The ramp with the least loss, near enough: that of a shorter row."""
    if row.times == 1 or row.band > row.apart:
        return 0.0
    less = max(min(row.size // SHORT, row.apart // SHORT_CLASS), 1)
    short = Row(row.size // less, row.times, row.apart // less, True, row.band // less)

    def loss(ramp: float) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            found = deviations(short, ramp, 1)[2]
        return found if np.isfinite(found) else np.inf

    found = optimize.minimize_scalar(loss, bounds=(0.0, MOST_RAMP), method="bounded", options={"xatol": 1e-2})
    return float(found.x)


def deviations(row: Row, ramp: float, rounds: int = ROUNDS) -> tuple[NDArray[np.int64], Array, float]:
    """Lengths of stretches, the deviation of noise in each, and the loss: near the least where units move at most 1.

    What moves most joins what was looked at, for so many rounds.
    """
    size, apart, band = row.size, row.apart, row.band
    lengths = stretches(size, apart)
    edges = np.concatenate(([0], np.cumsum(lengths)))
    costs = np.cumsum(summed_inverse(size, ramp, band) ** 2)[::-1]
    each = np.add.reduceat(costs, edges[:-1])
    squares = np.concatenate(([0.0], np.cumsum(root(band, ramp, band) ** 2)))
    turns = _turns(-(-size // apart), row.times)
    few = max(min(CLASSES, MOST_PLACES // len(turns)), 2)
    late = apart - np.geomspace(1, apart, few).astype(np.int64)
    even = np.linspace(0, apart - 1, few).astype(np.int64)
    starts = np.unique(np.concatenate((even, late, edges % apart, (edges - 1) % apart)))
    places = turns[:, None] * apart + starts
    effects = np.diff(squares[np.clip(edges - places[..., None], 0, band)], axis=2) * (places < size)[..., None]
    moves = np.add.reduceat(effects, np.arange(0, len(turns), row.times), axis=0).reshape(-1, len(lengths))
    moves = moves[moves.any(axis=1)]
    for _ in range(rounds):
        rates = _least(each / each.sum(), moves)
        most = effects[_most(effects @ rates, places, row)].sum(axis=0)
        if most @ rates < 1 + NEAR:
            break
        moves = np.vstack((moves, most))
    rates /= float(most @ rates)
    return lengths, 1 / np.sqrt(rates), float((each / rates).sum())


def _turns(count: int, times: int) -> NDArray[np.int64]:
    """All turns of a row, or so many in a row from each of a few."""
    if count <= max(times, MOST_TURNS):
        return np.arange(count)
    firsts = np.linspace(0, count - times, max(MOST_TURNS // times, 2)).astype(np.int64)
    return np.unique(firsts[:, None] + np.arange(times))


def _most(moved: Array, places: NDArray[np.int64], row: Row) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """What one unit changes, of these places (turns, starts) in order, that moves most."""
    if row.exactly:
        sums = np.cumsum(np.vstack((np.zeros(moved.shape[1]), moved)), axis=0)
        windows = sums[row.times :] - sums[: len(sums) - row.times]
        turn, start = divmod(int(windows.argmax()), moved.shape[1])
        return np.arange(turn, turn + row.times), np.full(row.times, start)
    flat = places.reshape(-1)
    before = np.searchsorted(flat, flat - row.apart, side="right")
    best, values = np.zeros(len(flat) + 1), []
    for _ in range(row.times):
        values.append(moved.reshape(-1) + best[before])
        best = np.concatenate(([0.0], np.maximum.accumulate(values[-1])))
    found, end = list[int](), len(flat)
    for value in reversed(values):
        if end:
            found.append(int(value[:end].argmax()))
            end = int(before[found[-1]])
    turn, start = np.divmod(np.array(found), moved.shape[1])
    return turn, start


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
