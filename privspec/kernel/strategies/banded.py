"""Running totals of a long row: a banded root of the totals, with noise of a few sizes, one after another.

What is drawn is C x + s_i N(0, 1), C with the coefficients c_m = r_m (1 + ramp m / band), m < band, cut to whole
numbers of 2^-40, r_m those of (1 - x)^(-1/2); nothing of the size of all numbers squared is computed. Columns of C
that move at once are orthogonal where they lie a band apart, else mu^2 is as many times as large as numbers change
(Cauchy and Schwarz; noise/notes/streams.md, "Long series"):

    mu^2 = a^2 max over what one unit changes of sum_j u_j,      u_j = sum_m c_m^2 / s_(j+m)^2.
"""

from __future__ import annotations

from fractions import Fraction

from flint import fmpz_poly

from privspec.kernel.changes import Change, InARow
from privspec.kernel.core.numbers import ZERO
from privspec.kernel.core.reading import Refused, frozen
from privspec.kernel.laws.law import Strategy

BITS, INNER = 40, 62
"""Binary digits of the strategy, and of the recurrence that gives it."""
MOST_PLACES = 2**20
"""Places, once for each change, that are looked at one by one where changes need not be evenly spaced; else groups."""


@frozen
class Banded(Strategy):
    """`band` coefficients with a `ramp`, and for `lengths` numbers in turn the deviation of their noise."""

    ramp: Fraction
    band: int
    lengths: tuple[int, ...]
    deviations: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        sizes = len(self.lengths) == len(self.deviations) and min(self.deviations, default=ZERO) > 0
        if not sizes or self.ramp < 0 or not 1 <= self.band <= self.size or min(self.lengths) < 1:
            raise Refused("has noise of no size, or no band of the numbers in the row")

    @property
    def size(self) -> int:
        return sum(self.lengths)

    def quadratic_sensitivity(self, change: Change, seen: frozenset[str]) -> Fraction:
        """At least mu^2 of what one unit changes; whoever sees some total may see all noisy answers."""
        if not isinstance(change, InARow) or change.size != self.size:
            raise Refused("is about other units than numbers of the row, apart from each other")
        unit = min(self.deviations)
        shares = [-(-(2**BITS) * unit**2 // size**2) for size in self.deviations]
        rows = [share for share, count in zip(shares, self.lengths, strict=True) for _ in range(count)]
        squares = [(value * value >> BITS) + 1 for value in roots(self.ramp, self.band)]
        moved = _low(fmpz_poly(squares), fmpz_poly(rows[::-1]), self.size)[::-1]
        meet = change.count if self.band > change.apart else 1  # Cauchy and Schwarz
        return change.amount**2 * meet * Fraction(_most(moved, change), 4**BITS) / unit**2


def roots(ramp: Fraction, width: int) -> list[int]:
    """The strategy: c_m in units of 2^-BITS, not negative."""
    value, found, over, below = 1 << INNER, [], ramp.numerator, ramp.denominator * width
    for m in range(width):
        found.append(value * (below + over * m) // below >> (INNER - BITS))
        value = value * (2 * m + 1) // (2 * m + 2)
    return found


def _low(one: fmpz_poly, other: fmpz_poly, size: int) -> list[int]:
    """The first coefficients of a product."""
    found = [int(value) for value in one.mul_low(other, size).coeffs()]
    return found + [0] * (size - len(found))


def _most(moved: list[int], change: InARow) -> int:
    """At least the largest sum over what one unit changes."""
    times, apart, size = change.count, change.apart, len(moved)
    if times == 1:
        return max(moved)
    if change.exactly:
        starts = range(max(size - (times - 1) * apart, min(apart, size)))
        return max(sum(moved[start : start + times * apart : apart]) for start in starts)
    most = max(min(size * times // MOST_PLACES, apart // 64), 1)
    group = next(length for length in range(most, 0, -1) if apart % length == 0)
    largest = [max(moved[i : i + group]) for i in range(0, size, group)]
    step, reached = apart // group, [0] * (len(largest) + 1)
    for _ in range(times):
        before = reached
        reached = [0]
        for i, value in enumerate(largest):
            reached.append(max(reached[i], value + before[max(i + 1 - step, 0)]))
    return reached[-1]
