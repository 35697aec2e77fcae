"""Measures of pairs of laws that are no single ratio, for programs over tables: Rényi divergences and mu-GDP.

Each says at every one of its levels that a sum over values of a convex generator of the two probabilities is bounded:
p^order q^(1 - order) at an order, and (p - e^epsilon q)+ at an epsilon. Programs state the levels that a table shows to
be needed, in pairs of rows; notes/divergences.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray
from privspec.solvers.programs import Array, Indices

from privspec.kernel.divergences import Curved, Renyi, TradeOff

TINY = 1e-12
"""Probabilities below count as this where orders and epsilons are looked for."""


WITHIN = -0.05
"""Orders whose excess is less are not looked at closely."""


class Curve(ABC):
    """Bounds by level, and the levels at which a pair of laws (Y,) each breaks them."""

    starts: tuple[float, ...]
    """Levels that are stated at the start."""

    @abstractmethod
    def weaker(self, factor: float) -> Curve:
        """That of so many times the amount."""

    @abstractmethod
    def bound(self, level: float) -> float:
        """What the generators add up to at most; of a Rényi divergence, the divergence itself."""

    @abstractmethod
    def line(self, level: float, at: Array) -> tuple[float, Array, Array]:
        """A linear bound: sum u p - v q is at most the first number; as the kernel derives it from a multiplier."""

    @abstractmethod
    def broken(self, p: Array, q: Array) -> list[tuple[float, float]]:
        """Levels of p against q at which the excess is largest nearby, each with it."""


@dataclass(frozen=True)
class RenyiCurve(Curve):
    """Divergences of one order at most an amount, or of every order from 1 on at most an amount times the order."""

    order: float | None
    amount: float

    @property
    def starts(self) -> tuple[float, ...]:  # type: ignore[override]
        return (1.0,) if self.order is None else (self.order,)

    def weaker(self, factor: float) -> Curve:
        return replace(self, amount=self.amount * factor)

    def bound(self, level: float) -> float:
        return self.amount * level if self.order is None else self.amount

    def line(self, level: float, at: Array) -> tuple[float, Array, Array]:
        s, limit, log = level - 1, self.bound(level), np.log(np.maximum(at, 1e-300))
        if not s:
            return limit, log, np.expm1(log)
        return float(np.expm1(s * limit) / (level * s)), np.expm1(s * log) / s, np.expm1(level * log) / level

    def broken(self, p: Array, q: Array) -> list[tuple[float, float]]:
        p, q = np.maximum(p, TINY), np.maximum(q, TINY)
        log = np.log(p / q)
        if self.order is not None:
            return [(self.order, self._excess(log, p, self.order))]
        # log-moments lie below rho s (s + 1) from s = (largest log ratio) / rho on
        last = max(float(log.max()) / self.amount, 1e-3)
        levels = 1 + np.concatenate([[0.0], np.geomspace(1e-3 * last, last, 30)])
        found = [self._excess(log, p, level) for level in levels]
        above = [-np.inf, *found, -np.inf]
        peaks = [k for k in range(len(found)) if above[k] <= above[k + 1] >= above[k + 2]]
        return [self._peak(log, p, levels, k) for k in peaks if found[k] > WITHIN]

    def _peak(self, log: Array, p: Array, levels: Array, k: int) -> tuple[float, float]:
        """The order of largest excess next to the k-th of some, with it."""
        for _ in range(4):
            levels = np.linspace(levels[max(k - 1, 0)], levels[min(k + 1, len(levels) - 1)], 9)
            found = [self._excess(log, p, level) for level in levels]
            k = int(np.argmax(found))
        return float(levels[k]), found[k]

    def _excess(self, log: Array, p: Array, level: float) -> float:
        """Of the divergence, relatively."""
        s = level - 1
        top = float(log.max()) * s
        divergence = (top + np.log(np.sum(p * np.exp(s * log - top)))) / s if s > 1e-9 else np.sum(p * log)
        return float(divergence / self.bound(level) - 1)


@dataclass(frozen=True)
class GaussianCurve(Curve):
    """No test has more power than one of two Gaussians mu apart."""

    mu: float

    @property
    def starts(self) -> tuple[float, ...]:  # type: ignore[override]
        return tuple(self.mu * z for z in (-2.0, -1.0, 0.0, 1.0, 2.0))

    def weaker(self, factor: float) -> Curve:
        return GaussianCurve(self.mu * factor)

    def bound(self, level: float) -> float:
        mu = self.mu
        return float(scipy.special.ndtr(mu / 2 - level / mu) - np.exp(level) * scipy.special.ndtr(-mu / 2 - level / mu))

    def line(self, level: float, at: Array) -> tuple[float, Array, Array]:
        return self.bound(level), at, at * np.exp(level)

    def broken(self, p: Array, q: Array) -> list[tuple[float, float]]:
        falling = np.argsort(-(p + TINY) / (q + TINY))
        power, size = np.cumsum(p[falling])[:-1], np.clip(np.cumsum(q[falling])[:-1], TINY, 1 - TINY)
        quantile = scipy.special.ndtri(size)
        levels = -self.mu * quantile - self.mu**2 / 2
        return list(zip(levels.tolist(), (power - scipy.special.ndtr(quantile + self.mu)).tolist(), strict=True))


def curve_of(condition: Curved) -> Curve:
    """The curve of what the kernel judges, in floats."""
    if isinstance(condition, Renyi):
        return RenyiCurve(None if condition.order is None else float(condition.order), float(condition.amount))
    assert isinstance(condition, TradeOff)
    return GaussianCurve(float(condition.mu))


@dataclass(frozen=True, eq=False, slots=True)
class CurveRatio:
    """The laws of each ordered pair satisfy a condition that no single ratio says."""

    pairs: Indices
    condition: Curved
    view: Indices | None = None

    @property
    def curve(self) -> Curve:
        """In floats."""
        return curve_of(self.condition)

    @property
    def both(self) -> bool:
        """Whether a pair must satisfy it both ways, each by itself."""
        return isinstance(self.curve, RenyiCurve)

    def growth(self, level: float, share: float) -> float:
        """By how much the bound of a level grows, to first order, when the last amount grows by a share."""
        more, nowhere = self.curve.weaker(1.000001), np.ones(1)
        return (more.line(level, nowhere)[0] - self.curve.line(level, nowhere)[0]) * 1e6 * share

    def broken(self, shown: NDArray[np.object_], total: int) -> list[int]:
        """The numbers of pairs whose laws do not satisfy it, exactly; both ways at once."""
        found = []
        for k, (a, b) in enumerate(self.pairs.tolist()):
            if a < b and not self.condition.holds(list(shown[a]), list(shown[b]), total):
                found.append(k)
        return found


@dataclass(frozen=True, eq=False, slots=True)
class Supported:
    """A multiplier of a linear bound on a pair of rows (a, b): the level, and where its tangents are (seen,)."""

    rows: tuple[int, int]
    level: float
    multiplier: float
    at: Array


@dataclass(frozen=True, eq=False, slots=True)
class CurveDual:
    """Multipliers of the linear bounds that a measure implies."""

    supports: tuple[Supported, ...]

    @property
    def largest(self) -> Array:
        """The multipliers."""
        return np.array([one.multiplier for one in self.supports])

    def scaled(self, factor: float) -> CurveDual:
        """All of them times a factor."""
        scaled = (Supported(one.rows, one.level, one.multiplier * factor, one.at) for one in self.supports)
        return CurveDual(tuple(scaled) if factor else ())
