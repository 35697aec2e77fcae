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
from scipy.optimize import minimize
from scipy.special import ndtr

from privspec.kernel.core.composition import Spent, composed_proves

Amounts: TypeAlias = dict[str, Fraction]
GRID = 5
"""Shares of each part that are solved at first, each a third of the one before."""
ROUNDS = 4
"""Times that the best split is solved and the curves are mended."""
SETTLED = 1e-5
"""Relative difference between the loss that was read off curves and the loss that was solved, at the end."""
DIGITS = 7
"""Significant digits of a share."""
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

    def at(self, amount: float) -> float:
        """Between shares that were solved a power law; beyond them that of the nearest two."""
        known = sorted(self.points.items())
        shares = [log(share) for share, _ in known]
        values = [log(max(value, 1e-300)) for _, value in known]
        if len(known) == 1:
            return known[0][1]
        x = log(max(amount, 1e-300))
        i = min(max(int(np.searchsorted(shares, x)), 1), len(known) - 1)
        slope = (values[i] - values[i - 1]) / (shares[i] - shares[i - 1])
        return exp(min(values[i - 1] + slope * (x - shares[i - 1]), 700))


@dataclass(frozen=True, eq=False, slots=True)
class Split:
    """A share for each part, and the sum of their losses."""

    kinds: tuple[Kind, ...]
    amounts: tuple[Fraction, ...]
    loss: float

    @property
    def spent(self) -> list[Spent]:
        """As the kernel composes them."""
        return [(kind.measure, {kind.amount: a}) for kind, a in zip(self.kinds, self.amounts, strict=True)]


@dataclass(frozen=True, eq=False, slots=True)
class Line:
    """What parts share: a measure with its exact amounts."""

    measure: str
    asked: Amounts

    def allows(self, kinds: Sequence[Kind], amounts: Sequence[Fraction]) -> bool:
        """Whether parts that spend these amounts satisfy the line together."""
        spent = [(kind.measure, {kind.amount: a}) for kind, a in zip(kinds, amounts, strict=True)]
        return composed_proves(self.measure, self.asked, spent)

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
        low, high = 0.0, 1.0
        while self._allows(kinds, direction, high) and high < 2.0**20:
            low, high = high, 2 * high
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self._allows(kinds, direction, middle) else (low, middle)
        return low

    def _allows(self, kinds: Sequence[Kind], direction: Sequence[float], scale: float) -> bool:
        pure = np.array([d * scale for kind, d in zip(kinds, direction, strict=True) if kind is PURE])
        squared = sum((d * scale) ** 2 for kind, d in zip(kinds, direction, strict=True) if kind is GAUSSIAN)
        asked = {key: float(value) for key, value in self.asked.items()}
        if self.measure == "epsilon-DP":
            return squared == 0 and float(pure.sum()) <= asked["epsilon"]
        if self.measure == "rho-zCDP":
            return bool((squared + (pure**2).sum()) / 2 <= asked["rho"])
        if self.measure == "mu-GDP":
            from scipy.special import ndtri

            own = 4 * ndtri(1 / (1 + np.exp(np.minimum(pure, 700)))) ** 2
            return bool(squared + own.sum() <= asked["mu"] ** 2)
        signs = np.array(list(product((1.0, -1.0), repeat=len(pure)))).reshape(-1, len(pure))
        chances = np.prod(1 / (1 + np.exp(-np.minimum(signs * pure, 700))), axis=1)
        rest = asked["epsilon"] - signs @ pure
        if squared == 0:
            delta = np.maximum(0.0, 1 - np.exp(np.minimum(rest, 0)))
        else:
            mu = squared**0.5
            delta = ndtr(mu / 2 - rest / mu) - np.exp(np.minimum(rest, 700)) * ndtr(-mu / 2 - rest / mu)
        return float(chances @ delta) <= asked["delta"]


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

    Args: curves, for each part its kinds of shares, of which one or two points are solved.
    """
    found: Split | None = None
    for kinds in product(*curves):
        if all(
            (most := line.largest(kind)) is not None and _begun(own[kind], most)
            for kind, own in zip(kinds, curves, strict=True)
        ):
            split = _searched(line, kinds, [own[kind] for kind, own in zip(kinds, curves, strict=True)])
            if split is not None and (found is None or split.loss < found.loss):
                found = split
    return found


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


def _searched(line: Line, kinds: tuple[Kind, ...], curves: list[Curve]) -> Split | None:
    """The best of the directions of the shares, for given kinds."""
    best: Split | None = None
    start = np.zeros(len(kinds) - 1)
    for _ in range(ROUNDS):

        def loss(logs: np.ndarray) -> float:
            direction = _direction(logs)
            scale = line.about(kinds, direction)
            return sum(c.at(d * scale) for c, d in zip(curves, direction, strict=True)) if scale > 0 else inf

        starts = [start] if best is not None else [start, *_corners(len(kinds))]
        tried = [
            minimize(loss, s, method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-12, "maxiter": 400})
            for s in starts
        ]
        result = min(tried, key=lambda one: float(one.fun))
        start = result.x
        amounts = line.scaled(kinds, _direction(start))
        losses = [curve.add(amount) for curve, amount in zip(curves, amounts, strict=True)]
        if any(one is None for one in losses):
            break
        total = sum(one for one in losses if one is not None)
        if best is None or total < best.loss:
            best = Split(kinds, amounts, total)
        if abs(total - float(result.fun)) <= SETTLED * abs(total):
            break
    return best


def _direction(logs: np.ndarray) -> list[float]:
    weights = np.exp(np.clip(np.concatenate([[0.0], logs]), -30, 30))
    return list(weights / weights.max())


def _corners(size: int) -> list[np.ndarray]:
    """Starts where one part has most of the line."""
    return [np.array([3.0 * (j == i) - 3.0 * (i == 0) for j in range(1, size)]) for i in range(size)]
