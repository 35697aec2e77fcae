"""Keys that are shown where their records reach a threshold of their own, and nothing of a key that no record has.

A key with n records draws a threshold i from 1, 2, ... and is shown if n >= i, by itself or with n - i, so that one
record more or less moves one key by one step. Records of several keys count as independent draws, and several of one
key by group privacy; or thresholds count as a normal number that is rounded, and what is not so as a lump of delta
(Desfontaines, Voss, Gipson & Mandayam 2022; noise/notes/unknown-keys.md).
"""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate, pairwise
from math import comb

from flint import arb, ctx

from privspec.kernel.changes import Records
from privspec.kernel.core.numbers import LARGEST_LOG, ZERO, ball, end, exp_down, exp_up, gaussian_delta_up
from privspec.kernel.core.reading import Refused, frozen

PRECISION = 256


@frozen
class Normal:
    """A normal number, to which thresholds are near when it is rounded."""

    scale: Fraction
    middle: Fraction


@frozen
class Threshold:
    """`steps[i - 1]` of the sum of all is the chance of the threshold i; `counts`: whether n - i is shown as well."""

    steps: tuple[int, ...]
    counts: bool
    notes = ("unknown-keys",)

    def __post_init__(self) -> None:
        if min(self.steps, default=-1) < 0 or not any(self.steps):
            raise Refused("is no law of thresholds")

    def of_one(self, epsilon: Fraction) -> Fraction:
        """At least the delta at an epsilon of one record more or less of one key, whatever its count."""
        ratio, total = exp_down(epsilon), sum(self.steps)
        if not self.counts:
            kept = [0, *accumulate(self.steps)]
            pairs = list(pairwise(kept))
            up = max(after - ratio * before for before, after in pairs)
            down = max((total - before) - ratio * (total - after) for before, after in pairs)
            return max(up, down, ZERO) / total
        # from a number of records on that all thresholds are below; merging hidden values can only lower it
        pairs = list(zip([0, *self.steps], [*self.steps, 0], strict=True))
        up = sum((max(after - ratio * before, ZERO) for before, after in pairs), ZERO)
        down = sum((max(before - ratio * after, ZERO) for before, after in pairs), ZERO)
        return max(up, down) / total

    def delta_up(self, change: Records, epsilon: Fraction, by: Fraction | Normal) -> Fraction:
        """At least the delta at an epsilon of a change, by an epsilon of one record, or by a law that is near."""
        if isinstance(by, Normal):
            return self._by_normal(change, by, epsilon)
        alone = self.of_one(by)
        if change.each == 1:
            return alone if change.moves == 1 and by <= epsilon else composed(by, alone, change.moves, epsilon)
        return Fraction(1) if by * change.moves > epsilon else alone * grown(change, by)

    def _by_normal(self, change: Records, normal: Normal, epsilon: Fraction) -> Fraction:
        """With thresholds round(middle + scale Z) counts are rounded from n - scale Z.

        Whoever moves d_j records of key j then has mu = |d| / scale. Thresholds as executed differ from these, in all,
        by `off` for each key; what differs is added.
        """
        if normal.scale <= 0:
            raise Refused("is near a normal law of no size of noise")
        total, steps = sum(self.steps), len(self.steps)
        with ctx.workprec(PRECISION):
            size = ball(normal.scale) * arb(2).sqrt()
            above = [((ball(i - normal.middle) + arb(1) / 2) / size).erfc() / 2 for i in range(steps + 1)]
            off = (1 - above[0]) + above[-1]
            for i, step in enumerate(self.steps):
                off += abs(above[i] - above[i + 1] - ball(Fraction(step, total)))
            each = end((off / 2).upper())
        square = change.sides * sum(size**2 for size in change.fullest) / normal.scale**2
        lump = (1 + exp_up(epsilon)) * change.moves * each
        return min(gaussian_delta_up(epsilon, square) + lump, Fraction(1))


def grown(change: Records, share: Fraction) -> Fraction:
    """At least how many times the delta of one record that of all is, where each key has as many as it may.

    One record of one key spends a `share` of epsilon; j of them are (j share, d(j))-DP by group privacy, d(j) = delta
    (R^j - 1) / (R - 1), R = e^share; these add up over keys, and d is largest where few keys have all.
    """
    ratio = exp_up(share)
    return change.sides * sum((Fraction(ratio**j) for size in change.fullest for j in range(size)), ZERO)


def composed(share: Fraction, delta: Fraction, moves: int, epsilon: Fraction) -> Fraction:
    """At least the delta at an epsilon of so many independent keys, each (share, delta)-DP.

    Each pair of laws is made of randomised response with a failure by post-processing (Kairouz, Oh & Viswanath 2015).
    """
    if share > LARGEST_LOG:
        return Fraction(1)
    with ctx.workprec(4 * PRECISION):
        ratio, limit = ball(share).exp(), ball(epsilon).exp()
        likely = [k for k in range(moves + 1) if share * (moves - 2 * k) > epsilon]
        whole = sum((comb(moves, k) * (ratio ** (moves - k) - limit * ratio**k) for k in likely), arb(0))
        found = 1 - (1 - ball(delta)) ** moves * (1 - whole / (1 + ratio) ** moves)
        return min(max(end(found.upper()), ZERO), Fraction(1))
