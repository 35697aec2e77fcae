"""Noise for running totals of a long row: few sizes of it, one for each stretch, on a banded root of the totals.

With C the first `band` coefficients of (1 - x)^(-1/2), raised along a ramp, noise of variance 1 / v_i on each number
of C x costs sum L_i / v_i, L_i the sum of the first squared coefficients of 1 / ((1 - x) C(x)); a unit that changes a
class of numbers moves sum over the class of C_2' v, C_2 the squares: convex in v. Stretches grow with the distance from
the end, as L does (notes/streams.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray
from privspec.solvers.programs import Array

STRETCHES = 32
"""Of growing length, from the end of the row."""
PIECES = 32
"""Of equal length, in all that a unit changes of a row."""
PLACES, FIRST = 1024, 64
"""Where units may begin to change numbers, and of how many of these what is moved is met from the first."""
MOST = 2**19
"""Places, once for each change, that are looked at where numbers need not be evenly spaced."""
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
    length = scipy.fft.next_fast_len(one.shape[-1] + other.shape[-1] - 1, real=True)
    return np.asarray(scipy.fft.irfft(scipy.fft.rfft(one, length) * scipy.fft.rfft(other, length), length)[..., :size])


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

    found = scipy.optimize.minimize_scalar(loss, bounds=(0.0, MOST_RAMP), method="bounded", options={"xatol": 1e-2})
    return float(found.x)


def deviations(row: Row, ramp: float, rounds: int = ROUNDS) -> tuple[NDArray[np.int64], Array, float]:
    """Lengths of stretches, the deviation of noise in each, and the loss: near the least where units move at most 1.

    What moves most joins what was looked at, for so many rounds.
    """
    size, band = row.size, row.band
    lengths = stretches(size, row.apart)
    edges = np.concatenate(([0], np.cumsum(lengths)))
    costs = np.cumsum(summed_inverse(size, ramp, band) ** 2)[::-1]
    each = np.add.reduceat(costs, edges[:-1])
    moved = Moved(row, edges, np.cumsum(root(band, ramp, band) ** 2))
    even = moved.evenly()
    moves = even[:: max(len(even) // FIRST, 1)]
    for _ in range(rounds):
        rates = _least(each / each.sum(), moves)
        most = moved.most(rates, even)
        if most @ rates < 1 + NEAR:
            break
        # places that move more than those around them
        reached = np.pad(even @ rates, 1)
        peaks = (reached[1:-1] >= np.maximum(reached[:-2], reached[2:])) & (reached[1:-1] > 1 + NEAR)
        moves = np.vstack((moves, even[peaks], most))
    rates /= float(most @ rates)
    return lengths, 1 / np.sqrt(rates), float((each / rates).sum())


class Moved:
    """What a unit moves in each stretch: a number at p adds squares[0] + .. + squares[e - 1 - p] up to an edge e."""

    def __init__(self, row: Row, edges: NDArray[np.int64], squares: Array) -> None:
        self.row, self.edges = row, edges
        self.squares = np.concatenate(([0.0], squares, np.full(row.size - row.band, squares[-1])))

    def evenly(self) -> Array:
        """A row for each of many places from which on numbers are changed that lie exactly so far apart."""
        size, apart, reach = self.row.size, self.row.apart, self.row.times * self.row.apart
        rows = np.pad(self.squares, (0, -len(self.squares) % apart)).reshape(-1, apart)
        totals = np.cumsum(rows, axis=0).reshape(-1)
        last = max(size - reach + apart, min(apart, size)) - 1
        late = last + 1 - np.geomspace(1, last + 1, PLACES).astype(np.int64)
        starts = np.unique(np.concatenate((np.linspace(0, last, PLACES).astype(np.int64), late, self.edges)))
        left = self.edges - starts[starts <= last, None]
        return np.asarray(np.diff(totals[np.maximum(left, 0)] - totals[np.maximum(left - reach, 0)], axis=1))

    def most(self, rates: Array, even: Array) -> Array:
        """The row that moves most, of those and, where numbers may lie farther apart, of the best places on a grid."""
        found = np.asarray(even[np.argmax(even @ rates)])
        size, times = self.row.size, self.row.times
        step = max(size * times // MOST, 1)
        if self.row.exactly or times == 1 or step > self.row.apart:
            return found
        places, between = np.arange(0, size, step), -(-self.row.apart // step)
        alone = np.zeros(len(places))
        for edge, weight in zip(self.edges, -np.diff(rates, prepend=0.0, append=0.0), strict=True):
            alone += weight * self.squares[np.maximum(edge - places, 0)]
        before, values = np.maximum(np.arange(1, len(places) + 1) - between, 0), list[Array]()
        best = np.zeros(len(places) + 1)
        for _ in range(times):
            values.append(alone + best[before])
            best = np.concatenate(([0.0], np.maximum.accumulate(values[-1])))
        chosen, end = list[int](), len(places)
        for value in reversed(values):
            if end:
                chosen.append(int(value[:end].argmax()))
                end = int(before[chosen[-1]])
        left = np.maximum(self.edges - places[chosen][:, None], 0)
        other = np.diff(self.squares[left].sum(axis=0))
        return found if found @ rates >= other @ rates else np.asarray(other)


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
