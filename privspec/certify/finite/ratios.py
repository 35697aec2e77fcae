"""Exact bounds on e^q and exact comparisons of whole tables, in integers.

A logarithm of a ratio is held by its square, so that an epsilon times a Euclidean distance is exact too. What
privacy rests on is rounded down, what a lower bound on the loss rests on is rounded up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import floor, isqrt, log
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.certify.motion import NotUnderstood

Entries: TypeAlias = NDArray[np.object_]
"""Python integers (or fractions) in a numpy array."""
Indices: TypeAlias = NDArray[np.int64]

BITS = 128
"""Ratios are held as whole numbers over 2^BITS."""
LARGEST_LOG = 2**13
"""Ratios beyond e^LARGEST_LOG count as that where they are rounded down, and are not rounded up."""


@dataclass(frozen=True, slots=True)
class LogRatio:
    """The logarithm q >= 0 of a ratio, by its exact square."""

    square: Fraction

    @classmethod
    def of(cls, value: Fraction) -> LogRatio:
        """A rational logarithm."""
        return cls(value * value)

    def __float__(self) -> float:
        return float(float(self.square) ** 0.5)

    def __mul__(self, factor: Fraction) -> LogRatio:
        return LogRatio(self.square * factor * factor)

    @property
    def rational(self) -> Fraction | None:
        """The logarithm itself where it is rational."""
        top, bottom = isqrt(self.square.numerator), isqrt(self.square.denominator)
        whole = top * top == self.square.numerator and bottom * bottom == self.square.denominator
        return Fraction(top, bottom) if whole else None

    @property
    def down(self) -> int:
        """A whole number R with R / 2^BITS <= e^q."""
        return _bounds(self if self.square <= LARGEST_LOG**2 else LogRatio(Fraction(LARGEST_LOG**2)))[0]

    @property
    def up(self) -> int:
        """A whole number R with R / 2^BITS >= e^q.

        Raises: NotUnderstood beyond e^LARGEST_LOG.
        """
        if self.square > LARGEST_LOG**2:
            raise NotUnderstood("a ratio is too large to lay out")
        return _bounds(self)[1]

    @property
    def low(self) -> float:
        """A double near `down`, and below e^q by more than a rounding where that is out of range."""
        down = self.down
        return down / (1 << BITS) if down.bit_length() < BITS + 900 else 1e250


@lru_cache(maxsize=2**17)
def _bounds(ratio: LogRatio) -> tuple[int, int]:
    """Below and above e^q 2^BITS, by ball arithmetic (flint)."""
    from flint import arb, ctx, fmpq

    if ratio.square == 0:
        return 1 << BITS, 1 << BITS
    with ctx.workprec(2 * BITS + 64 + 2 * int(float(ratio))):
        exact = ratio.rational
        square = arb(fmpq(ratio.square.numerator, ratio.square.denominator))
        q = square.sqrt() if exact is None else arb(fmpq(exact.numerator, exact.denominator))
        ball = q.exp() * arb(2) ** BITS
        low, high = ball.lower().floor().unique_fmpz(), ball.upper().ceil().unique_fmpz()
    if low is None or high is None:
        raise NotUnderstood("a ratio could not be enclosed")
    return int(low), int(high)


def log_up(ratio: Fraction) -> float:
    """A double near the logarithm of a ratio >= 1, for display."""
    return log(ratio.numerator) - log(ratio.denominator)


# --- which entries of a table could break a ratio ----------------------------------------------------

SAFE = 2.0**-48
"""Room for the few roundings of a comparison in doubles."""
TINY = 1e-280
"""Doubles below this may have lost digits, so that they are always compared exactly."""


def doubles(numerators: Entries, denominator: int) -> NDArray[np.float64]:
    """Each entry as the nearest double; division of Python integers rounds correctly, whatever their size."""
    flat = [entry / denominator for entry in numerators.ravel().tolist()]
    return np.array(flat, dtype=np.float64).reshape(numerators.shape)


@dataclass(frozen=True, eq=False, slots=True)
class Comparison:
    """The entries (X, S) that an observer sees, as integers over one denominator and as doubles."""

    numerators: Entries
    denominator: int
    rounded: NDArray[np.float64]

    @classmethod
    def of(cls, numerators: Entries, denominator: int) -> Comparison:
        """With its doubles."""
        return cls(numerators, denominator, doubles(numerators, denominator))

    def broken_cliques(
        self, groups: Indices, ratio: LogRatio, slack: Fraction = Fraction(0)
    ) -> tuple[int, int, int] | None:
        """Rows a, b and a column of the first pair inside a group (G, m) with f_a > R f_b + slack, if any."""
        room = floor(slack * self.denominator * (1 << BITS))
        for group in groups:
            entries = self.numerators[group]
            most, least = entries.max(axis=0), entries.min(axis=0)
            wrong = (most << BITS) > least * ratio.down + room
            if np.any(wrong):
                column = int(np.argmax(wrong))
                a, b = int(np.argmax(entries[:, column])), int(np.argmin(entries[:, column]))
                return int(group[a]), int(group[b]), column
        return None

    def broken_row(
        self, a: int, others: Indices, kinds: Indices, ratios: Sequence[LogRatio], low: NDArray[np.float64]
    ) -> tuple[int, int, int] | None:
        """The first of the rows b with f_a > R_b f_b somewhere, with the column; R_b is ratios[kinds[b]]."""
        bound = self.rounded[others] * low[kinds][:, None]
        mine = self.rounded[a]
        doubtful = ((mine > bound * (1 - SAFE)) | (mine < TINY) | (bound < TINY)) & (self.numerators[a] != 0)
        for k, column in zip(*np.nonzero(doubtful), strict=True):
            other = int(others[k])
            if (int(self.numerators[a, column]) << BITS) > int(self.numerators[other, column]) * ratios[kinds[k]].down:
                return a, other, int(column)
        return None

    def excess(self, a: int, b: int, ratio: LogRatio) -> Fraction:
        """The sum over columns of what f_a has beyond R f_b: the delta of the pair, not below the truth."""
        over = (self.numerators[a] << BITS) - self.numerators[b] * ratio.down
        return Fraction(sum(int(v) for v in over if v > 0), self.denominator << BITS)

    def rough_excess(self, a: int, others: Indices, low: float) -> tuple[NDArray[np.float64], float]:
        """The same for many b in doubles, with a bound on the error."""
        over = self.rounded[a] - low * self.rounded[others]
        total: NDArray[np.float64] = np.maximum(over, 0.0).sum(axis=1)
        columns = self.rounded.shape[1]
        return total, (columns + 16) * 2.0**-52 * (1 + low) + columns * 1e-300
