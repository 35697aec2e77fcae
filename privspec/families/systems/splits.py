"""How parts share a line: the split of least loss among those that compose to what the line asks.

A split is a share for each part, pure epsilon or Gaussian mu. Losses between the shares that were solved are read off
curves; the kernel's own composition (`kernel.core.composition`) says which splits a line allows, in exact numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import exp, inf, log
from typing import TypeAlias

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.optimize import brentq, minimize
from scipy.special import ndtr, ndtri

from privspec.kernel.systems import Spent, composed_proves

Amounts: TypeAlias = dict[str, Fraction]
GRID = 5
"""Shares of each part that are solved at first, each a third of the one before."""
WIDTHS = (0.15, 0.05, 0.02, 0.0)
"""How far beside the split of each round, as a share of each amount, curves are solved as well."""
DIGITS = 7
"""Significant digits of a share."""
HOPELESS = 1.05
"""Kinds of shares whose best split costs, by the curves, so many times the best known are not searched further."""
LEAST = 1e-3
"""No part has less than this multiple of the largest share."""
TINY = 1e-300
STEPS = 48
"""Halvings of the largest scale at which a split still satisfies its line."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How a part may spend: `measure`, its `word` in a spec and its one amount."""

    measure: str
    word: str
    amount: str


PURE, GAUSSIAN = Kind("epsilon-DP", "DP", "epsilon"), Kind("mu-GDP", "GDP", "mu")
KINDS = (PURE, GAUSSIAN)


@dataclass(eq=False, slots=True)
class Curve:
    """The loss of a part against its share, in one kind; `solve` gives it at an exact share, or None."""

    solve: Callable[[Kind, Fraction], float | None]
    kind: Kind
    points: dict[Fraction, float] = field(default_factory=dict)

    def add(self, amount: Fraction) -> float | None:
        """The loss at a share, solved once."""
        if amount not in self.points:
            loss = self.solve(self.kind, amount)
            if loss is None:
                return None
            self.points[amount] = loss
        return self.points[amount]

    def fitted(self) -> Callable[[float], float]:
        """The loss at any share: monotone in logarithms through what was solved, beyond it a power law."""
        known = sorted(self.points.items())
        shares = np.array([log(share) for share, _ in known])
        values = np.array([log(max(value, TINY)) for _, value in known])
        curve = PchipInterpolator(shares, values, extrapolate=False)
        slopes = np.diff(values)[[0, -1]] / np.diff(shares)[[0, -1]]

        def at(amount: float) -> float:
            x = log(max(amount, TINY))
            if shares[0] < x < shares[-1]:
                return exp(float(curve(x)))
            end = 0 if x <= shares[0] else -1
            return exp(min(float(values[end] + slopes[end] * (x - shares[end])), 700.0))

        return at


@dataclass(frozen=True, eq=False, slots=True)
class Split:
    """A share for each part, and the sum of their losses."""

    kinds: tuple[Kind, ...]
    amounts: tuple[Fraction, ...]
    loss: float

    @property
    def spent(self) -> list[Spent]:
        """As the kernel composes them."""
        return _spent(self.kinds, self.amounts)


@dataclass(frozen=True, eq=False, slots=True)
class Line:
    """What parts share: a measure with its exact amounts."""

    measure: str
    asked: Amounts

    def allows(self, kinds: Sequence[Kind], amounts: Sequence[Fraction]) -> bool:
        """Whether parts that spend these amounts satisfy the line together."""
        return composed_proves(self.measure, self.asked, _spent(kinds, amounts))

    def largest(self, kind: Kind) -> Fraction | None:
        """The most that one part alone may spend, None where no amount of this kind satisfies the line."""
        return self.scaled((kind,), (1.0,))[0] if self.allows((kind,), (Fraction(1, 10**6),)) else None

    def scaled(self, kinds: Sequence[Kind], direction: Sequence[float]) -> tuple[Fraction, ...]:
        """The largest multiple of a direction that the line allows, in exact numbers, each rounded down."""
        low, high = 0.0, 1.0
        while self.allows(kinds, _down(direction, high)) and high < 2.0**20:
            low, high = high, 2 * high
        for _ in range(STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.allows(kinds, _down(direction, middle)) else (low, middle)
        return _down(direction, low)

    def about(self, kinds: Sequence[Kind], direction: Sequence[float]) -> float:
        """The largest multiple of a direction in doubles, for the search."""
        pure = np.array([d for kind, d in zip(kinds, direction, strict=True) if kind is PURE])
        mu = sum(d * d for kind, d in zip(kinds, direction, strict=True) if kind is GAUSSIAN) ** 0.5
        asked = {key: float(value) for key, value in self.asked.items()}
        if self.measure == "epsilon-DP":
            return asked["epsilon"] / float(pure.sum()) if mu == 0 else 0.0
        if self.measure == "rho-zCDP":
            return float((2 * asked["rho"] / (mu**2 + (pure**2).sum())) ** 0.5)
        signs = np.array(list(product((1.0, -1.0), repeat=len(pure)))).reshape(2 ** len(pure), len(pure))

        def excess(scale: float) -> float:
            if self.measure == "mu-GDP":
                own = 4 * ndtri(1 / (1 + np.exp(np.minimum(scale * pure, 700)))) ** 2
                return float((scale * mu) ** 2 + own.sum() - asked["mu"] ** 2)
            chances = np.prod(1 / (1 + np.exp(-np.minimum(scale * signs * pure, 700))), axis=1)
            rest, spread = asked["epsilon"] - scale * (signs @ pure), scale * mu
            if spread == 0:
                return float(chances @ np.maximum(0.0, 1 - np.exp(np.minimum(rest, 0)))) - asked["delta"]
            near, far = ndtr(spread / 2 - rest / spread), ndtr(-spread / 2 - rest / spread)
            return float(chances @ (near - np.exp(np.minimum(rest, 700)) * far)) - asked["delta"]

        high = 1e-6
        while excess(high) < 0 and high < 1e6:
            high *= 4
        return float(brentq(excess, high / 4, high, xtol=1e-14, rtol=1e-12)) if 1e-6 < high < 1e6 else 0.0


def _spent(kinds: Sequence[Kind], amounts: Sequence[Fraction]) -> list[Spent]:
    return [(kind.measure, {kind.amount: a}) for kind, a in zip(kinds, amounts, strict=True)]


def _down(direction: Sequence[float], scale: float) -> tuple[Fraction, ...]:
    return tuple(rounded_down(d * scale) for d in direction)


def rounded_down(value: float) -> Fraction:
    """At most a positive number, of `DIGITS` significant decimal digits."""
    if value <= 0:
        return Fraction(0)
    places = DIGITS - 1 - int(np.floor(np.log10(value)))
    return Fraction(int(Fraction(value) * Fraction(10) ** places)) / Fraction(10) ** places


def best_split(line: Line, curves: Sequence[dict[Kind, Curve]]) -> Split | None:
    """The split of least loss among those tried; None where no kinds of shares satisfy the line.

    Args: curves, for each part those of the kinds in which it may spend.
    """
    most = {kind: line.largest(kind) for kind in KINDS}
    usable = [[c for c in own.values() if (m := most[c.kind]) is not None and _begun(c, m)] for own in curves]
    splits: list[Split] = []
    for chosen in product(*usable):
        least = min((split.loss for split in splits), default=inf)
        found = _searched(line, tuple(curve.kind for curve in chosen), chosen, least)
        splits += [] if found is None else [found]
    return min(splits, key=lambda split: split.loss, default=None)


def compared(line: Line, split: Split, curves: Sequence[dict[Kind, Curve]]) -> list[tuple[str, float]]:
    """What other splits among the same kinds of shares would cost, in words."""
    count, kinds = len(split.kinds), split.kinds
    chosen = [own[kind] for kind, own in zip(kinds, curves, strict=True)]
    asked = {key: value if key == "mu" else value / count for key, value in line.asked.items()}
    if "mu" in asked:
        asked["mu"] = rounded_down(float(asked["mu"]) / count**0.5)
    alone = [Line(line.measure, asked).largest(kind) for kind in kinds]
    most = [line.largest(kind) for kind in kinds]
    tried = {
        "even shares, composed as exactly": line.scaled(kinds, [float(m or 0) for m in most]),
        "an even part of the amounts for each, added up": tuple(a for a in alone if a is not None),
    }
    found = []
    for name, amounts in tried.items():
        losses = [curve.add(amount) for curve, amount in zip(chosen, amounts, strict=False)]
        if len(losses) == count and all(one is not None for one in losses):
            found.append((name, sum(one for one in losses if one is not None)))
    return found


def _begun(curve: Curve, most: Fraction) -> bool:
    """Whether a part can be solved at the largest share and at smaller ones."""
    return all(curve.add(rounded_down(float(most) / 3**i)) is not None for i in range(GRID))


def _searched(line: Line, kinds: tuple[Kind, ...], curves: Sequence[Curve], least: float) -> Split | None:
    """The best of the directions of the shares, for given kinds; None where curves say that it is not below `least`."""
    best: Split | None = None
    starts = [np.zeros(len(kinds) - 1), *_corners(len(kinds))]
    for width in WIDTHS:
        fitted = [curve.fitted() for curve in curves]

        def loss(logs: np.ndarray, fitted: Sequence[Callable[[float], float]] = fitted) -> float:
            direction = _direction(logs)
            scale = line.about(kinds, direction)
            return sum(at(d * scale) for at, d in zip(fitted, direction, strict=True)) if scale > 0 else inf

        tried = [
            minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-12, "maxiter": 400})
            for start in starts
        ]
        result = min(tried, key=lambda one: float(one.fun))
        if float(result.fun) > least * HOPELESS:
            return best
        starts = [result.x, *_corners(len(kinds))]
        amounts = line.scaled(kinds, _direction(result.x))
        losses = [curve.add(amount) for curve, amount in zip(curves, amounts, strict=True)]
        if any(one is None for one in losses):
            break
        total = sum(one for one in losses if one is not None)
        if best is None or total < best.loss:
            best = Split(kinds, amounts, total)
        # losses of tables bend where their columns change: what curves do beside a split decides where the best one is
        for (curve, amount), factor in product(zip(curves, amounts, strict=True), (1 - width, 1 + width)):
            curve.add(rounded_down(float(amount) * factor))
    return best


def _direction(logs: np.ndarray) -> list[float]:
    weights = np.exp(np.concatenate([[0.0], logs]) - max(0.0, *logs))
    return list(np.maximum(weights, LEAST))


def _corners(size: int) -> list[np.ndarray]:
    """Starts where one part has most of the line."""
    return [np.array([3.0 * (j == i) - 3.0 * (i == 0) for j in range(1, size)]) for i in range(size)]
