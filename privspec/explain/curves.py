"""What an observer can achieve: trade-off curves, odds in natural frequencies, and the largest advantage.

A trade-off curve gives, for each share `a` of false alarms, the least share of misses that any test can have
(notes/odds.md). There are five: the exact curve of Gaussian noise; the bound that follows from an (epsilon, delta)
claim alone; that which follows from Rényi divergences; that of pairs of rows of a table, where the best tests say "q"
where q/p is large, so that the curve joins the points (share of p, rest of q) of these sets (Neyman & Pearson); and
that of one draw of a lottery, by epsilon and by how far one vote moves the chances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import InternalError
from privspec.core.records import dataclass
from privspec.explain.quantities import DOWN, UP, Quantity, count, exact, rounded, share_up
from privspec.kernel.divergences import Condition, HockeyStick, Renyi, TradeOff
from privspec.kernel.measures import APPROXIMATE

Array: TypeAlias = NDArray[np.float64]
_NORMAL = NormalDist()
_SLACK = 1e-12  # covers the error of erfc and exp in doubles, in shares


def normal_cdf(t: float) -> float:
    """Phi(t), accurate in both tails."""
    return 0.5 * math.erfc(-t / math.sqrt(2.0))


class Curve(Protocol):
    """A trade-off curve between false alarms and misses."""

    @property
    def exact(self) -> bool:
        """Whether some test attains the curve (else it is a bound)."""

    @property
    def words(self) -> str:
        """What the curve is, for a caption."""

    def misses(self, false_alarms: float) -> float:
        """The least share of misses at a share of false alarms."""

    def equal_error(self) -> float:
        """The share of mistakes of the best test that errs equally often in both cases."""

    def advantage(self) -> float:
        """The largest true positive rate minus false positive rate."""

    def repeated(self, times: int) -> Curve:
        """The curve after so many independent releases."""

    def for_group(self, size: int) -> Curve:
        """The curve when so many units change together."""

    def bound(self, delta: Fraction | None) -> str:
        """Its parameter rounded up, and the epsilon that follows at a given delta where that says more."""


@dataclass(frozen=True, slots=True)
class GaussianCurve:
    """Phi(Phi^-1(1 - a) - mu): exact for Gaussian noise that a neighbour shifts by mu deviations."""

    mu: float
    exact: ClassVar[bool] = True
    words: ClassVar[str] = "exact trade-off curve of the Gaussian noise"

    def misses(self, false_alarms: float) -> float:
        if not 0.0 < false_alarms < 1.0:
            return 1.0 - false_alarms
        return normal_cdf(-_NORMAL.inv_cdf(false_alarms) - self.mu)

    def equal_error(self) -> float:
        return normal_cdf(-self.mu / 2)

    def advantage(self) -> float:
        return math.erf(self.mu / (2 * math.sqrt(2.0)))

    def repeated(self, times: int) -> GaussianCurve:
        return GaussianCurve(self.mu * math.sqrt(times))

    def for_group(self, size: int) -> GaussianCurve:
        return GaussianCurve(self.mu * size)

    def bound(self, delta: Fraction | None) -> str:
        from privspec.kernel.gaussian import epsilon_up

        words = f"μ ≤ {rounded(self.mu, 4, UP)}"
        if not delta:
            return words
        epsilon = rounded(epsilon_up(Fraction(self.mu), delta), 4, UP)
        return f"{words}, that is {APPROXIMATE.at((str(epsilon), str(exact(delta))))}"


@dataclass(frozen=True, slots=True)
class EpsilonDeltaCurve:
    """max(0, 1 - delta - e^epsilon a, e^-epsilon (1 - delta - a)): all that (epsilon, delta) allows."""

    epsilon: float
    delta: float = 0.0
    exact: ClassVar[bool] = False

    @property
    def words(self) -> str:
        return "bound from epsilon and delta" if self.delta else "bound from epsilon"

    def misses(self, false_alarms: float) -> float:
        steep = 1.0 - self.delta - _exp(self.epsilon) * false_alarms if false_alarms > 0 else 1.0 - self.delta
        flat = math.exp(-self.epsilon) * (1.0 - self.delta - false_alarms)
        return max(0.0, steep, flat)

    def equal_error(self) -> float:
        return (1.0 - self.delta) * _logistic(-self.epsilon)

    def advantage(self) -> float:
        return math.tanh(self.epsilon / 2) + 2 * self.delta * _logistic(-self.epsilon)

    def repeated(self, times: int) -> EpsilonDeltaCurve:
        return EpsilonDeltaCurve(self.epsilon * times, min(1.0, self.delta * times))

    def for_group(self, size: int) -> EpsilonDeltaCurve:
        # notes/group-privacy.md: delta * (1 + e^eps + ... + e^((k-1) eps))
        grown = self.delta * math.fsum(_exp(j * self.epsilon) for j in range(size)) if self.delta else 0.0
        return EpsilonDeltaCurve(self.epsilon * size, min(1.0, grown))

    def bound(self, _delta: Fraction | None) -> str:
        shown = rounded(self.epsilon, 4, UP)
        return APPROXIMATE.at((str(shown), str(rounded(self.delta, 3, UP)))) if self.delta else f"ε ≤ {shown}"


ORDERS = np.array([1, 1.05, 1.2, 1.5, 2, 2.5, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100, 300, 1000])
"""Orders of Rényi divergences at which zCDP is used; each bounds by itself, order 1 (Kullback & Leibler) as well."""


@dataclass(frozen=True, slots=True)
class RenyiCurve:
    """All that Rényi divergences allow: of one order at most `amount`, or where none is named (zCDP) of every order a.

    Then the divergence of order a is at most `amount` a. A test makes two outcomes of a result, whose divergences are
    no larger; the curve is that of all mechanisms with two outcomes within the bounds, so no smaller one is true
    (notes/odds.md).
    """

    amount: float
    order: float | None = None
    exact: ClassVar[bool] = False

    @property
    def words(self) -> str:
        return "bound from ρ" if self.order is None else f"bound from the Rényi divergence of order {self.order:g}"

    def _allows(self, hits: Array, alarms: Array) -> NDArray[np.bool_]:
        """Whether an outcome may have these chances in two neighbouring worlds (k,)."""
        orders = ORDERS if self.order is None else np.array([self.order])
        most = self.amount * orders if self.order is None else self.amount
        both = np.concatenate([hits, alarms]), np.concatenate([alarms, hits])
        return np.asarray((_divergences(orders, *both) <= most).all(axis=1).reshape(2, -1).all(axis=0))

    def misses(self, false_alarms: float) -> float:
        return self.least_misses([false_alarms])[0]

    def least_misses(self, false_alarms: Sequence[float]) -> list[float]:
        """The misses at many shares, which are searched for together."""
        alarms = np.array(false_alarms, dtype=np.float64)
        inside = (alarms > 0) & (alarms < 1)
        found = 1.0 - alarms
        found[inside] = 1.0 - _last(lambda hits: self._allows(hits, alarms[inside]), alarms[inside])
        return [float(one) for one in found]

    def equal_error(self) -> float:
        return 1.0 - float(_last(lambda hits: self._allows(hits, 1.0 - hits), np.array([0.5]))[0])

    def advantage(self) -> float:
        # divergences are jointly quasi-convex: the largest gap is where both kinds of mistakes are equally frequent
        return 1.0 - 2.0 * self.equal_error()

    def repeated(self, times: int) -> RenyiCurve:
        return RenyiCurve(self.amount * times, self.order)

    def for_group(self, size: int) -> Curve:
        if size == 1:
            return self
        # Bun & Steinke 2016, proposition 1.9; of a single order nothing follows for groups that is as simple
        return RenyiCurve(self.amount * size**2) if self.order is None else EpsilonDeltaCurve(math.inf, 1.0)

    def bound(self, _delta: Fraction | None) -> str:
        shown = rounded(self.amount, 4, UP)
        return f"ρ ≤ {shown}" if self.order is None else f"a Rényi divergence of order {self.order:g} ≤ {shown}"


def curve_of(condition: Condition) -> Curve:
    """All that a condition on pairs of laws allows."""
    match condition:
        case HockeyStick(epsilon, delta):
            return EpsilonDeltaCurve(float(epsilon), float(delta))
        case Renyi(order, amount):
            return RenyiCurve(float(amount), None if order is None else float(order))
        case TradeOff(mu):
            return GaussianCurve(float(mu))
    raise InternalError("a condition without a curve")


def least_misses(curve: Curve, false_alarms: Sequence[float]) -> list[float]:
    """The least shares of misses at many shares of false alarms."""
    if isinstance(curve, RenyiCurve):
        return curve.least_misses(false_alarms)
    return [curve.misses(one) for one in false_alarms]


def _divergences(orders: Array, p: Array, q: Array) -> Array:
    """The Rényi divergences (k, orders) of two outcomes, the first with the chance p, from two with the chance q."""
    inside = (p > 0) & (p < 1) & (q > 0) & (q < 1)
    p, q = (np.where(inside, one, 0.5)[:, None] for one in (p, q))
    one, other = np.log(p / q), np.log((1.0 - p) / (1.0 - q))
    sums = np.logaddexp(np.log(p) + (orders - 1) * one, np.log(1.0 - p) + (orders - 1) * other)
    plain = np.broadcast_to(p * one + (1.0 - p) * other, sums.shape).copy()
    found = np.divide(sums, orders - 1, out=plain, where=orders != 1)
    return np.where(inside[:, None], found, math.inf)


def _last(holds: Callable[[Array], NDArray[np.bool_]], low: Array) -> Array:
    """From above, the ends (k,) of the parts of [low, 1] that begin at `low` and in which it holds."""
    high = np.ones_like(low)
    while (high - low).max(initial=0.0) > 1e-13:
        middle = (low + high) / 2
        kept = holds(middle)
        low, high = np.where(kept, middle, low), np.where(kept, high, middle)
    return high


@dataclass(frozen=True, slots=True)
class Odds:
    """Of `of` results, how many say "took part": at least `without` if not so, at most `taking_part` if so.

    True of every observer whose two kinds of mistakes are equally frequent, and no observer at all has
    both fewer false alarms than `without` and more hits than `taking_part` (notes/odds.md). `error` is the share of
    mistakes in per cent, rounded down.
    """

    without: int
    taking_part: int
    of: int
    error: Quantity

    @property
    def tells_little(self) -> bool:
        """Whether the bound is so weak that not one result in `of` is spared."""
        return self.without == 0

    @property
    def without_words(self) -> str:
        """How many results say "took part" of one who did not: "at least 26 of 100"."""
        return f"{'possibly fewer than 1' if self.tells_little else f'at least {self.without:,}'} of {self.of:,}"

    @property
    def taking_part_words(self) -> str:
        """How many results say "took part" of one who did: "at most 74 of 100"."""
        most = f"possibly more than {self.of - 1:,}" if self.tells_little else f"at most {self.taking_part:,}"
        return f"{most} of {self.of:,}"

    @property
    def pair(self) -> str:
        """Both numbers in short: "26 and 74 of 100"."""
        if self.tells_little:
            return f"possibly fewer than 1 and more than {self.of - 1:,} of {self.of:,}"
        return f"{self.without:,} and {self.taking_part:,} of {self.of:,}"

    def to_json(self) -> dict[str, object]:
        counts = {"without": self.without, "taking_part": self.taking_part, "of": self.of, "coin": self.of // 2}
        return {**{key: count(value) for key, value in counts.items()}, "error": self.error, "words": self.pair}


CountedOdds: TypeAlias = tuple[Quantity, Odds]
"""A number of releases or of units, and the odds at it."""


def odds(curve: Curve) -> Odds:
    """The odds of the best observer with equal errors, rounded so that "at least" and "at most" stay true.

    Of 100 results unless the smaller number would be 0; then of 1,000 and so on up to 10,000,000.
    """
    error = curve.equal_error()
    shown = rounded(100 * (error - _SLACK), 4, DOWN)
    for of in (10**power for power in range(2, 8)):
        without = max(0, math.floor((error - _SLACK) * of))
        if without >= 1:
            break
    return Odds(without, of - without, of, shown)


@dataclass(frozen=True, slots=True)
class Consequences:
    """What a curve means: odds and the largest advantage."""

    words: str
    exact: bool
    odds: Odds
    advantage: Quantity


def consequences(curve: Curve) -> Consequences:
    """All that follows from a curve, rounded so that "at least" and "at most" stay true."""
    return Consequences(curve.words, curve.exact, odds(curve), share_up(curve.advantage()))


def posterior(prior: float, epsilon: float) -> float:
    """The largest probability after seeing the result, for a prior; pure epsilon only."""
    if prior <= 0.0 or prior >= 1.0:
        return prior
    return _logistic(epsilon + math.log(prior / (1.0 - prior)))


def _logistic(t: float) -> float:
    return 1.0 / (1.0 + math.exp(-t)) if t >= 0 else math.exp(t) / (1.0 + math.exp(t))


def _exp(t: float) -> float:
    return math.exp(t) if t < 700.0 else math.inf


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
        return np.minimum(np.hstack([zero, alarms]), 1.0), np.maximum(1.0 - np.hstack([zero, hits]), 0.0)

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
        alarms, misses = self._corners
        least = min(_at(alarms, misses, false_alarms), _at(misses[:, ::-1], alarms[:, ::-1], false_alarms))
        return max(0.0, least - self.slack)

    def equal_error(self) -> float:
        return max(0.0, float(self._errors.min(initial=0.5)) - self.slack)

    def advantage(self) -> float:
        apart = 0.5 * np.abs(self.first - self.second).sum(axis=1)
        return min(1.0, float(apart.max(initial=0.0)) + 2 * self.slack)

    def repeated(self, times: int) -> Curve:
        if times == 1:
            return self
        pairs = self if len(self.first) <= COMPOSED else dominating(*self.bound_pair)
        return pairs.product(times)

    def for_group(self, size: int) -> Curve:
        return self if size == 1 else EpsilonDeltaCurve(*self.bound_pair).for_group(size)

    def bound(self, delta: Fraction | None) -> str:
        """The epsilon and delta that it satisfies; where no epsilon does, the advantage that is left."""
        if not math.isfinite(self.bound_pair[0]):
            return f"no finite ε, an advantage of up to {share_up(self.advantage())}"
        return EpsilonDeltaCurve(*self.bound_pair).bound(delta)

    def to_json(self) -> dict[str, object]:
        epsilon, delta = self.bound_pair
        return {"epsilon": epsilon if math.isfinite(epsilon) else None, "delta": delta, "exact": self.exact}

    def product(self, times: int) -> PairsCurve:
        """The curve of `times` independent draws, from above: every outcome is split over a grid of ratios.

        An outcome whose ratio lies between two points of the grid is replaced by two outcomes with these ratios and
        the same sums: whoever sees which one it was knows at least as much, so the bound holds. Ratios of products
        stay on the grid.
        """
        step = max(largest_ratio(self.first, self.second) / STEPS, 1e-12)
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


def largest_ratio(first: Array, second: Array) -> float:
    """The logarithm of the largest ratio of probabilities in any column where both laws (K, C) have some."""
    both = (first > 0) & (second > 0)
    ratios = np.divide(second, first, out=np.ones_like(first), where=both)
    return float(np.abs(np.log(ratios)).max(initial=0.0))


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


def _at(x: Array, y: Array, place: float) -> float:
    """The least of several piecewise linear curves at one place; x (K, N) rises, y (K, N) falls."""
    # of several corners at one place the last, which is the lowest
    before = np.maximum((x <= place).sum(axis=1) - 1, 0)
    after = np.minimum(before + 1, x.shape[1] - 1)
    row = np.arange(len(x))
    left, right = x[row, before], x[row, after]
    share = np.clip(np.divide(place - left, right - left, out=np.ones_like(left), where=right > left), 0.0, 1.0)
    return float(((1 - share) * y[row, before] + share * y[row, after]).min(initial=1.0))


MOST_ROUNDS = 10_000
"""Draws up to which they are followed together; beyond it the bound by epsilon alone is used."""


@dataclass(frozen=True, eq=False)
class LotteryCurve(PairsCurve):
    """The trade-off curve of one draw; `distance` is how far one unit moves the chances.

    `adds_up` is whether several units can move them further.
    """

    distance: float = 1.0
    adds_up: bool = True

    @property
    def words(self) -> str:
        return "exact trade-off curve of one draw" if self.exact else "bound from the lottery"

    def for_group(self, size: int) -> Curve:
        epsilon = self.bound_pair[0]
        return self if size == 1 or not self.adds_up else lottery_curve(epsilon * size, self.distance * size)

    def product(self, times: int) -> PairsCurve:
        if times > MOST_ROUNDS:
            return lottery_curve(self.bound_pair[0] * times, 1.0)
        return PairsCurve.product(self, times)


def lottery_curve(epsilon: float, distance: float, *, exact: bool = False, adds_up: bool = True) -> LotteryCurve:
    """The curve of all lotteries with that epsilon whose chances move by at most `distance`."""
    epsilon = min(epsilon, 700.0)
    distance = min(distance, EpsilonDeltaCurve(epsilon).advantage())
    likely = distance / -math.expm1(-epsilon) if epsilon > 0 else 0.0
    unlikely = likely * math.exp(-epsilon)
    first = np.array([[likely, max(0.0, 1.0 - likely - unlikely), unlikely]])
    return LotteryCurve(first, first[:, ::-1].copy(), (epsilon, 0.0), exact, _SLACK, distance, adds_up)
