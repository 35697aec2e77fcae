"""How well two rows of a table can be told apart: exact trade-off curves, and bounds for large tables.

Of two rows p and q the best tests say "q" where q/p is large; the curve joins the points (share of p, rest of q) of
these sets (Neyman & Pearson). Over several pairs of rows, the worst of their curves counts at every point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from privspec.explain.curves import Curve, EpsilonDeltaCurve
from privspec.explain.finite.table import Array, Indices, Table
from privspec.explain.quantities import share_up

ENTRIES = 1_000_000
"""Entries of all pairs together up to which curves are exact; beyond it the guarantee's own bound is used."""
COMPOSED = 300
"""Pairs up to which several reports are followed pair by pair; beyond it one pair that bounds them all."""
STEPS = 128
"""Steps of the grid that ratios are split over, from 1 to the largest ratio."""
_COMPOSING = 1e-9
"""More than the rounding of a product of a few laws, in shares."""


@dataclass(frozen=True, eq=False)
class PairsCurve:
    """The worst trade-off curve over pairs of laws `first`, `second` (K, C), exact for them in both directions.

    `bound` is an (epsilon, delta) that all of them satisfy; `slack` is taken off every share of mistakes.
    """

    first: Array
    second: Array
    bound_pair: tuple[float, float]
    exact: bool = True
    slack: float = 0.0

    @property
    def words(self) -> str:
        """What the curve is."""
        return "exact trade-off curve of the table" if self.exact else "bound from the table"

    @cached_property
    def _corners(self) -> tuple[Array, Array]:
        """False alarms and misses (K, C + 1) at the corners of each curve, false alarms rising."""
        total = self.first + self.second
        leaning = np.divide(self.second, total, out=np.zeros_like(total), where=total > 0)
        order = np.argsort(-leaning, axis=1, kind="stable")
        zero = np.zeros((len(self.first), 1))
        alarms = np.cumsum(np.take_along_axis(self.first, order, axis=1), axis=1)
        hits = np.cumsum(np.take_along_axis(self.second, order, axis=1), axis=1)
        return (
            np.minimum(np.hstack([zero, alarms]), 1.0),
            np.maximum(1.0 - np.hstack([zero, hits]), 0.0),
        )

    @cached_property
    def _errors(self) -> Array:
        """The share of mistakes (K,) of the best test of each pair that errs equally often."""
        alarms, misses = self._corners
        gap = alarms - misses  # from -1 up to 1
        after = np.argmax(gap >= 0, axis=1)
        row = np.arange(len(gap))
        before = np.maximum(after - 1, 0)
        low, high = gap[row, before], gap[row, after]
        share = np.divide(-low, high - low, out=np.zeros_like(low), where=high > low)
        return np.asarray((1 - share) * alarms[row, before] + share * alarms[row, after])

    @property
    def worst(self) -> int:
        """The number of the pair that is told apart best."""
        return int(np.argmin(self._errors))

    def misses(self, false_alarms: float) -> float:
        """The least share of misses at a share of false alarms."""
        alarms, misses = self._corners
        least = min(_at(alarms, misses, false_alarms), _at(misses[:, ::-1], alarms[:, ::-1], false_alarms))
        return max(0.0, least - self.slack)

    def equal_error(self) -> float:
        """The share of mistakes of the best test that errs equally often in both cases."""
        return max(0.0, float(self._errors.min(initial=0.5)) - self.slack)

    def advantage(self) -> float:
        """The largest difference in total variation."""
        apart = 0.5 * np.abs(self.first - self.second).sum(axis=1)
        return min(1.0, float(apart.max(initial=0.0)) + 2 * self.slack)

    def repeated(self, times: int) -> Curve:
        """The curve after so many independent reports on the same value."""
        if times == 1:
            return self
        pairs = self if len(self.first) <= COMPOSED else dominating(*self.bound_pair)
        return pairs.product(times)

    def for_group(self, size: int) -> Curve:
        """The curve when so many units change together."""
        return self if size == 1 else EpsilonDeltaCurve(*self.bound_pair).for_group(size)

    def bound(self, delta: Fraction | None) -> str:
        """The epsilon and delta that it satisfies; where no epsilon does, the advantage that is left."""
        if not math.isfinite(self.bound_pair[0]):
            return f"no finite ε, an advantage of up to {share_up(self.advantage())}"
        return EpsilonDeltaCurve(*self.bound_pair).bound(delta)

    def to_json(self) -> dict[str, object]:
        """The bound that it stays within, and whether it is exact."""
        epsilon, delta = self.bound_pair
        return {"epsilon": epsilon if math.isfinite(epsilon) else None, "delta": delta, "exact": self.exact}

    def product(self, times: int) -> PairsCurve:
        """The curve of `times` independent draws, from above: every outcome is split over a grid of ratios.

        An outcome whose ratio lies between two points of the grid is replaced by two outcomes with these ratios and
        the same sums: whoever sees which one it was knows at least as much, so the bound holds. Ratios of products
        stay on the grid.
        """
        step = self._step()
        finite, only_first, only_second = split(self.first, self.second, step)
        reach = finite.shape[1] // 2
        size = 2 * reach * times + 1
        padded = 1 << (size - 1).bit_length()
        many = np.fft.irfft(np.fft.rfft(finite, padded, axis=1) ** times, padded, axis=1)[:, :size]
        first = np.maximum(many, 0.0)
        second = first * np.exp(step * (np.arange(size) - reach * times))
        bare = np.zeros((len(first), 1))
        first = np.hstack([first, bare, 1.0 - (1.0 - only_first[:, None]) ** times])
        second = np.hstack([second, 1.0 - (1.0 - only_second[:, None]) ** times, bare])
        epsilon, delta = self.bound_pair
        return PairsCurve(first, second, (epsilon * times, min(1.0, delta * times)), exact=False, slack=_COMPOSING)

    def _step(self) -> float:
        both = (self.first > 0) & (self.second > 0)
        ratios = np.divide(self.second, self.first, out=np.ones_like(self.first), where=both)
        return max(float(np.abs(np.log(ratios)).max(initial=0.0)) / STEPS, 1e-12)


def split(first: Array, second: Array, step: float) -> tuple[Array, Array, Array]:
    """Pairs of laws (K, C) on a grid of ratios e^(step i), |i| <= STEPS + 1.

    Returns: masses of the first law on the grid (K, 2 STEPS + 3); the masses (K,) that only one of the two laws has.
    """
    reach = STEPS + 1
    both = (first > 0) & (second > 0)
    ratio = np.divide(second, first, out=np.ones_like(first), where=both)
    below = np.clip(np.floor(np.log(ratio) / step), -reach, reach - 1)
    low, high = np.exp(step * below), np.exp(step * (below + 1))
    upper = np.clip((second - low * first) / (high - low), 0.0, first) * both
    lower = (first - upper) * both
    grid = np.zeros((len(first), 2 * reach + 1))
    row = np.broadcast_to(np.arange(len(first))[:, None], first.shape)
    at = below.astype(np.intp) + reach
    np.add.at(grid, (row, at), lower)
    np.add.at(grid, (row, at + 1), upper)
    return grid, (first * (second <= 0)).sum(axis=1), (second * (first <= 0)).sum(axis=1)


def dominating(epsilon: float, delta: float) -> PairsCurve:
    """Two laws from which all others of the same (epsilon, delta) can be drawn (Kairouz, Oh & Viswanath 2015)."""
    high = (1.0 - delta) / (1.0 + math.exp(-min(epsilon, 700.0)))
    low = 1.0 - delta - high
    first = np.array([[delta, high, low, 0.0]])
    return PairsCurve(first, first[:, ::-1].copy(), (epsilon, delta), exact=False)


def curve_of(table: Table, pairs: Indices, bound: tuple[float, float]) -> PairsCurve | None:
    """The exact curve of pairs of rows; None where there are none, or too many for the time a page may take."""
    if len(pairs) == 0 or len(pairs) * table.shares.shape[1] > ENTRIES:
        return None
    return PairsCurve(table.shares[pairs[:, 0]], table.shares[pairs[:, 1]], bound)


def bound_of(table: Table, pairs: Indices) -> Curve:
    """The exact curve of pairs of rows, or what their largest ratio or distance allows where there are too many."""
    if len(pairs) == 0:
        return EpsilonDeltaCurve(0.0)
    ratio = largest_ratio(table, pairs)
    exact = curve_of(table, pairs, (ratio, 0.0))
    if exact is not None or math.isfinite(ratio):
        return exact or EpsilonDeltaCurve(ratio)
    apart = max(0.5 * float(np.abs(table.shares[a] - table.shares[b]).sum()) for a, b in pairs)
    return EpsilonDeltaCurve(0.0, min(1.0, apart * (1 + 1e-9)))


def largest_ratio(table: Table, pairs: Indices) -> float:
    """The logarithm of the largest ratio of probabilities in any column, over pairs of rows; rounded up."""
    first, second = table.shares[pairs[:, 0]], table.shares[pairs[:, 1]]
    if np.any((first > 0) != (second > 0)):
        return math.inf
    both = first > 0
    ratios = np.divide(first, second, out=np.ones_like(first), where=both)
    return float(np.abs(np.log(ratios)).max(initial=0.0)) * (1 + 1e-12)


def _at(x: Array, y: Array, place: float) -> float:
    """The least of several piecewise linear curves at one place; x (K, N) rises, y (K, N) falls."""
    # of several corners at one place the last, which is the lowest
    before = np.maximum((x <= place).sum(axis=1) - 1, 0)
    after = np.minimum(before + 1, x.shape[1] - 1)
    row = np.arange(len(x))
    left, right = x[row, before], x[row, after]
    share = np.clip(np.divide(place - left, right - left, out=np.ones_like(left), where=right > left), 0.0, 1.0)
    return float(((1 - share) * y[row, before] + share * y[row, after]).min(initial=1.0))
