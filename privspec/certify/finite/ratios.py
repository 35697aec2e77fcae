"""Exact bounds on e^q and exact comparisons of whole tables, in integers.

A logarithm of a ratio is held by its square, so that an epsilon times a Euclidean distance is exact too. What
privacy rests on is rounded down, what a lower bound on the loss rests on is rounded up.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt, log
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
