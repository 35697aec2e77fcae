"""How parts share lines: the split of least loss among those that compose to what every line asks.

A split is a share for each part, pure epsilon or Gaussian mu, which the part spends of every line that it shares.
Losses between the shares that were solved are read off curves; the kernel's own composition
(`kernel.divergences`) says which splits the lines allow, in exact numbers.

A split is found with parts that count as randomised responses of what they spend. Once laws are known, the search goes
on as if every part had the same law at other shares, with log ratios in proportion to them; what it finds is solved,
and the kernel says what is let through.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import islice, product
from math import ceil, exp, expm1, inf, log, log10
from typing import TypeAlias, TypeVar

import numpy as np
import scipy

from privspec.core.records import dataclass, field, replace
from privspec.kernel.losses import CHANCES, GRID, PICKS, Pair, PrivacyLoss
from privspec.kernel.measures import GAUSSIAN, PURE, PURE_MEASURES, ZERO_CONCENTRATED, Measure
from privspec.kernel.systems import Composed, Spent, composed_proves
from privspec.solvers.programs import Array

T = TypeVar("T")
Amounts: TypeAlias = dict[str, Fraction]
COARSE_GRID = 5
"""Shares of each part that are solved at first, each a third of the one before."""
WIDTHS = (0.15, 0.05, 0.015, 0.004, 0.0)
"""How far beside the split of each round, as a share of each amount, curves are solved as well."""
DIGITS = 7
"""Significant digits of a share."""
FINER = 1e-4
"""How much finer than that a round looks for its split."""
STARTS = 2
"""Starts, the best of those at hand, from which a least sum is looked for."""
HOPELESS = 1.05
"""Kinds of shares whose best split costs, by the curves, so many times the best known are not searched further."""
LEAST, NEXT = 1e-4, 5.0
"""No part has less than this multiple of the largest share, nor a few times as much that brings nothing."""
FINE_GRID = 4
"""How many times as many there are where a law tells the loss."""
SAME = 1e-6
"""Relative difference up to which a loss is the one that was foretold."""
TOLD = 1e-7
"""Share of all losses by which curves may be wrong at a split that the next round need not come nearer to."""
TINY = 1e-300
STEPS = 48
"""Halvings of the largest scale at which a split still satisfies its lines."""


KINDS = (PURE, GAUSSIAN)
"""The measures in which a part may spend, each of one amount."""


@dataclass(eq=False, slots=True)
class Curve:
    """The loss of a part against its share, in one kind; `solve` gives it at an exact share, or None.

    `scaled`: the loss at a share if the noise of another one, which was solved, is only made larger or smaller; None
    where that says nothing. `law`: the loss at any share, where that, or a square, foretold what a solution cost.
    """

    solve: Callable[[Measure, Fraction], float | None]
    scaled: Callable[[Measure, Fraction, Fraction], float | None]
    kind: Measure
    most: Fraction = Fraction(0)
    points: dict[Fraction, float] = field(default_factory=dict)
    law: Callable[[Fraction], float | None] | None = None

    def add(self, amount: Fraction) -> float | None:
        """The loss at a share, solved once, or by the law where that is known to tell it."""
        if amount not in self.points:
            loss = self.solve(self.kind, amount) if self.law is None or not amount else self.law(amount)
            if loss is None:
                return None
            self.points[amount] = loss
        return self.points[amount]

    def begin(self) -> bool:
        """Whether the part can be solved at shares below the largest, which was solved."""
        for i in range(1, COARSE_GRID):
            if self.add(rounded_down(float(self.most) / 3**i)) is None:
                return False
            if self.law is None and i == 1 and (law := self._foretold()) is not None:
                self.law = law
                for j in range(FINE_GRID * COARSE_GRID):
                    self.add(rounded_down(float(self.most) / 3 ** (j / FINE_GRID)))
        return True

    def _foretold(self) -> Callable[[Fraction], float | None] | None:
        """A law by which the loss at the largest share foretells that at the other one that was solved."""
        first = self.points[self.most]
        (share, other), kind, most = min(self.points.items()), self.kind, self.most
        square = first * float(most) ** 2
        laws: tuple[Callable[[Fraction], float | None], ...] = (
            lambda amount: self.scaled(kind, most, amount),
            lambda amount: square / float(amount) ** 2,
        )
        return next((law for law in laws if abs((law(share) or 0.0) - other) <= SAME * abs(other)), None)

    def beside(self, amount: Fraction, width: float) -> None:
        """Solve at shares beside one: losses of tables bend where their columns change."""
        for factor in (1 - width, 1 + width):
            self.add(rounded_down(float(amount) * factor))

    def fitted(self) -> Callable[[float], float]:
        """The loss at any share: monotone in logarithms through what was solved, beyond it a power law."""
        known = sorted(self.points.items())
        shares = np.array([log(share) for share, _ in known])
        values = np.array([log(max(value, TINY)) for _, value in known])
        steps, secants = np.diff(shares), np.diff(values) / np.diff(shares)
        # monotone cubics (Fritsch & Butland 1984): weighted harmonic means of secants, 0 where these change sign
        weights = 2 * steps[1:] + steps[:-1], steps[1:] + 2 * steps[:-1]
        same = secants[:-1] * secants[1:] > 0
        firsts, seconds = (np.where(same, part, 1.0) for part in (secants[:-1], secants[1:]))
        inner = np.where(same, (weights[0] + weights[1]) / (weights[0] / firsts + weights[1] / seconds), 0.0)
        slopes = [float(secants[0]), *inner.tolist(), float(secants[-1])]
        places, heights = shares.tolist(), values.tolist()

        def at(amount: float) -> float:
            x = log(max(amount, TINY))
            k = bisect(places, x)
            if not 0 < k < len(places):
                end = -1 if k else 0
                return exp(min(heights[end] + slopes[end] * (x - places[end]), 700.0))
            step, t = places[k] - places[k - 1], (x - places[k - 1]) / (places[k] - places[k - 1])
            rest = 1 - t
            ends = heights[k - 1] * (1 + 2 * t) * rest * rest + heights[k] * t * t * (3 - 2 * t)
            return exp(ends + step * t * rest * (slopes[k - 1] * rest - slopes[k] * t))

        return at


@dataclass(frozen=True, eq=False, slots=True)
class Split:
    """A share for each part, and the sum of their losses."""

    kinds: tuple[Measure, ...]
    amounts: tuple[Fraction, ...]
    loss: float

    @property
    def spent(self) -> list[Spent]:
        """As the kernel composes them."""
        return [(kind, {kind.figure: a}) for kind, a in zip(self.kinds, self.amounts, strict=True)]


@dataclass(frozen=True, eq=False, slots=True)
class Line:
    """What parts share: a measure with its exact amounts; `parts`: their numbers, None for all of them."""

    measure: Measure
    asked: Amounts
    parts: tuple[int, ...] | None = None

    def some(self, values: Sequence[T]) -> list[T]:
        """The values of the parts that share it."""
        return list(values) if self.parts is None else [values[k] for k in self.parts]

    def allows(self, kinds: Sequence[Measure], amounts: Sequence[Fraction]) -> bool:
        """Whether parts that spend these amounts satisfy the line together."""
        own = [pair for pair in zip(self.some(kinds), self.some(amounts), strict=True) if pair[1]]
        return composed_proves(self.measure, self.asked, [(kind, {kind.figure: a}) for kind, a in own])

    def about(self, kinds: Sequence[Measure], direction: Sequence[float], near: float | None = None) -> float:
        """The largest multiple of a direction in doubles, for the search; `near`, that of a direction nearby."""
        own = list(zip(self.some(kinds), self.some(direction), strict=True))
        pure = np.array([d for kind, d in own if kind is PURE])
        mu = sum(d * d for kind, d in own if kind is GAUSSIAN) ** 0.5
        asked = {key: float(value) for key, value in self.asked.items()}
        if not mu and not pure.any():
            return inf
        if self.measure in PURE_MEASURES:
            return asked["epsilon"] / float(pure.sum()) if mu == 0 else 0.0
        if self.measure is ZERO_CONCENTRATED:
            return float((2 * asked["rho"] / (mu**2 + (pure**2).sum())) ** 0.5)
        losses = np.zeros(1)  # of privacy, by the answers of the randomised responses, each of a chance ~ e^(loss / 2)
        for own in pure:
            losses = np.concatenate((losses + own, losses - own))

        def excess(scales: Array) -> Array:
            if self.measure is GAUSSIAN:
                spent = 4 * scipy.special.ndtri(1 / (1 + np.exp(np.minimum(scales * pure, 700)))) ** 2
                return np.asarray(np.log(((scales[:, 0] * mu) ** 2 + spent.sum(axis=1)) / asked["mu"] ** 2))
            chances, spread = np.exp(scales / 2 * (losses - losses[0])), scales * mu
            rest = asked["epsilon"] - scales * losses
            over = np.exp(np.minimum(rest, 700))
            if not mu:
                total = (chances * np.maximum(0.0, 1 - over)).sum(axis=1) / chances.sum(axis=1)
                return np.asarray(total - asked["delta"])
            near = scipy.special.ndtr(spread / 2 - rest / spread) - over * scipy.special.ndtr(
                -spread / 2 - rest / spread
            )
            total = (chances * near).sum(axis=1) / chances.sum(axis=1)
            return np.asarray(np.log(np.maximum(total, TINY) / max(asked["delta"], TINY)))

        if near and mu:
            return root(excess, near, NEAR)
        # without Gaussian noise nothing is let through up to this guess, where the curve bends
        return root(excess, asked.get("epsilon", asked.get("mu", 1.0)) / (float(pure.sum()) + 4 * mu))


POINTS = np.linspace(0, 1, 33)[:, None]
REACH, NEAR = 2.0**7, 1.25
"""How many times a guess a root may be above it, or below: any guess, and the root of a direction nearby."""
NARROW = 1e-4
"""Relative width at which values at both ends tell where a root is."""


def root(excess: Callable[[Array], Array], guess: float, reach: float = REACH) -> float:
    """Where a rising function of scales, all of them at once, is 0; 0 where that is nowhere near a guess."""
    low, high = guess / reach, guess * reach
    while True:
        scales = low * (high / low) ** POINTS
        values = excess(scales)
        k = int(np.searchsorted(values, 0.0))
        if not 0 < k < len(values):
            return root(excess, guess) if reach < REACH else 0.0
        low, high, (below, above) = float(scales[k - 1, 0]), float(scales[k, 0]), values[k - 1 : k + 1]
        if high < low * (1 + NARROW):
            return low + (high - low) * float(below / (below - above))


@dataclass(frozen=True, eq=False, slots=True)
class Lines:
    """All the lines that parts share."""

    each: tuple[Line, ...]

    def allow(self, kinds: Sequence[Measure], amounts: Sequence[Fraction]) -> bool:
        """Whether all of them hold."""
        return all(line.allows(kinds, amounts) for line in self.each)

    def about(self, kinds: Sequence[Measure], direction: Sequence[float], near: float | None = None) -> float:
        """The largest multiple of a direction that all lines allow, in doubles; `near`, that of a direction nearby."""
        return min(line.about(kinds, direction, near) for line in self.each)

    def scaled(self, kinds: Sequence[Measure], direction: Sequence[float]) -> tuple[Fraction, ...]:
        """The largest multiple of a direction that all lines allow, in exact numbers, each rounded down."""
        near = _down(direction, self.about(kinds, direction))
        if any(near) and self.allow(kinds, near):
            return near
        low, high = 0.0, 1.0
        while self.allow(kinds, _down(direction, high)) and high < 2.0**20:
            low, high = high, 2 * high
        for _ in range(STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.allow(kinds, _down(direction, middle)) else (low, middle)
        return _down(direction, low)

    def largest(self, part: int, count: int, kind: Measure) -> Fraction | None:
        """The most that one of so many parts may spend by itself; None where no amount of this kind is allowed."""
        kinds, direction = (kind,) * count, [float(i == part) for i in range(count)]
        if not self.allow(kinds, [Fraction(i == part) / 10**6 for i in range(count)]):
            return None
        return self.scaled(kinds, direction)[part]


def most_beside(line: Line, spent: Sequence[tuple[Measure, Fraction]], kind: Measure) -> Fraction | None:
    """The most of a kind that one part may spend beside what others do; None where the line allows none of it."""
    kinds, amounts = [*(one for one, _ in spent), kind], [amount for _, amount in spent]
    if not line.allows(kinds, [*amounts, Fraction(1, 10**6)]):
        return None
    low, high = Fraction(1, 10**6), Fraction(1)
    while line.allows(kinds, [*amounts, high]):
        low, high = high, 2 * high
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if line.allows(kinds, [*amounts, middle]) else (low, middle)
    rounded = rounded_down(float(high))
    return rounded if line.allows(kinds, [*amounts, rounded]) else rounded_down(float(low))


def _down(direction: Sequence[float], scale: float) -> tuple[Fraction, ...]:
    return tuple(rounded_down(d * scale) for d in direction)


def rounded_down(value: float) -> Fraction:
    """At most a positive number, of `DIGITS` significant decimal digits."""
    if value <= 0:
        return Fraction(0)
    places = DIGITS - 1 - int(np.floor(np.log10(value)))
    return Fraction(int(Fraction(value) * Fraction(10) ** places)) / Fraction(10) ** places


def rounded_up(value: Fraction) -> Fraction:
    """At least a number, of `DIGITS` significant decimal digits."""
    if value <= 0:
        return Fraction(0)
    unit = Fraction(10) ** (int(np.floor(log10(value))) - DIGITS + 1)
    return ceil(value / unit) * unit


def best_split(lines: Lines, curves: Sequence[dict[Measure, Curve]]) -> Split | None:
    """The split of least loss among those tried; None where no kinds of shares satisfy the lines.

    Args: curves, for each part those of the kinds in which it may spend.
    """
    usable = list[list[tuple[float, Curve]]]()
    for k, own in enumerate(curves):
        usable.append([])
        for curve in own.values():
            curve.most = lines.largest(k, len(curves), curve.kind) or Fraction(0)
            if curve.most and (least := curve.add(curve.most)) is not None:
                usable[-1].append((least, curve))
    # losses fall with shares: no split costs less than all parts would at the largest share of each
    ways = sorted(product(*usable), key=lambda pairs: sum(least for least, _ in pairs))
    begun, near = list[_Begun](), inf
    for pairs in ways:
        chosen = tuple(curve for _, curve in pairs)
        if sum(least for least, _ in pairs) < near * HOPELESS and all(curve.begin() for curve in chosen):
            begun.append(_Begun(chosen, *_coarsely(lines, chosen)))
            near = min(near, begun[-1].value)
    best: Split | None = None
    for one in sorted(begun, key=lambda one: one.value):
        found = _searched(lines, one, inf if best is None else best.loss)
        best = found if found is not None and (best is None or found.loss < best.loss) else best
    return best


@dataclass(frozen=True, eq=False, slots=True)
class _Begun:
    """Curves of the parts, and where they are lowest together as far as their first shares tell."""

    curves: tuple[Curve, ...]
    value: float
    logs: np.ndarray

    @property
    def kinds(self) -> tuple[Measure, ...]:
        return tuple(curve.kind for curve in self.curves)


def _coarsely(lines: Lines, curves: Sequence[Curve]) -> tuple[float, np.ndarray]:
    """About the least sum, and its direction in logarithms."""
    kinds, fitted = tuple(curve.kind for curve in curves), [curve.fitted() for curve in curves]
    return minimised(lines, kinds, fitted, [np.zeros(len(kinds) - 1), *corners(len(kinds))], 1e-2)


def compared(lines: Lines, split: Split, curves: Sequence[dict[Measure, Curve]]) -> dict[str, Split]:
    """Other splits among the same kinds of shares, by their names; the lines hold of each."""
    kinds, count = split.kinds, len(split.kinds)
    chosen = [own[kind] for kind, own in zip(kinds, curves, strict=True)]
    most = [float(lines.largest(k, count, kind) or 0) for k, kind in enumerate(kinds)]
    scale = [(chosen[k].add(amount) or 0.0) * float(amount) ** 2 for k, amount in enumerate(split.amounts)]
    ways = {
        "even shares": lines.scaled(kinds, most),
        "an even part of the amounts for each, added up (basic composition)": _basic(lines, kinds),
        "shares in proportion to cube roots of losses": lines.scaled(kinds, [max(c, TINY) ** (1 / 3) for c in scale]),
    }
    if all(line.asked.get("delta") for line in lines.each):
        fitted, zcdp = [curve.fitted() for curve in chosen], Lines(tuple(map(_by_zcdp, lines.each)))
        weights = _direction(minimised(zcdp, kinds, fitted, [np.zeros(count - 1)])[1])
        ways[f"the best shares by {ZERO_CONCENTRATED.word}"] = zcdp.scaled(kinds, weights)
    found = dict[str, Split]()
    for name, amounts in ways.items():
        if min(amounts) > 0 and lines.allow(kinds, amounts):
            losses = [curve.add(amount) for curve, amount in zip(chosen, amounts, strict=True)]
            if all(one is not None for one in losses):
                found[name] = Split(kinds, tuple(amounts), sum(one for one in losses if one is not None))
    return found


def _basic(lines: Lines, kinds: Sequence[Measure]) -> list[Fraction]:
    """What each part may spend where every amount of a line is divided by the number of its parts."""
    found = []
    for k, kind in enumerate(kinds):
        own = []
        for line in lines.each:
            count = len(line.some(kinds))
            asked = {key: value / count for key, value in line.asked.items()}
            if "mu" in asked:
                asked["mu"] = rounded_down(float(line.asked["mu"]) / count**0.5)
            if line.parts is None or k in line.parts:
                own.append(Lines((Line(line.measure, asked),)).largest(0, 1, kind) or Fraction(0))
        found.append(min(own))
    return found


def _by_zcdp(line: Line) -> Line:
    """The rho-zCDP that implies a line: rho + 2 sqrt(rho log(1 / delta)) = epsilon (Bun & Steinke 2016)."""
    bits = log(1 / line.asked["delta"])
    root = (bits + float(line.asked["epsilon"])) ** 0.5 - bits**0.5
    return Line(ZERO_CONCENTRATED, {"rho": rounded_down(root**2)}, line.parts)


def minimised(
    lines: Lines,
    kinds: Sequence[Measure],
    fitted: Sequence[Callable[[float], float]],
    starts: Sequence[np.ndarray],
    digits: float = 1e-6,
) -> tuple[float, np.ndarray]:
    """The least sum of fitted losses, and its direction in logarithms."""
    last: float | None = None

    def loss(logs: np.ndarray) -> float:
        nonlocal last
        direction = _direction(logs)
        last = scale = lines.about(kinds, direction, last)
        return sum(at(d * scale) for at, d in zip(fitted, direction, strict=True)) if scale > 0 else inf

    if len(kinds) == 1:
        return loss(np.zeros(0)), np.zeros(0)
    tried = [
        scipy.optimize.minimize(
            loss,
            start,
            method="Nelder-Mead",
            options={"xatol": digits, "fatol": max(1e-12, abs(loss(start)) * digits**2), "maxiter": 400},
        )
        for start in sorted(starts, key=loss)[:STARTS]
    ]
    best = min(tried, key=lambda one: float(one.fun))
    return float(best.fun), best.x


def _searched(lines: Lines, begun: _Begun, least: float) -> Split | None:
    """The best of the directions of the shares, for given kinds; None where curves say that it is not below `least`."""
    best: Split | None = None
    kinds, curves, starts = begun.kinds, begun.curves, [begun.logs]
    told = False
    for width in WIDTHS:
        if told and width:  # straight to the last round
            continue
        digits, fitted = max(1e-7, width * FINER), [curve.fitted() for curve in curves]
        value, logs = minimised(lines, kinds, fitted, starts, digits)
        if value > least * HOPELESS:
            return best
        starts = [logs]
        amounts = lines.scaled(kinds, _direction(logs))
        losses = [curve.add(amount) for curve, amount in zip(curves, amounts, strict=True)]
        if any(one is None for one in losses):
            break
        total = sum(one for one in losses if one is not None)
        if best is None or total < best.loss:
            best = Split(kinds, amounts, total)
        said = [at(float(amount)) for at, amount in zip(fitted, amounts, strict=True)]
        near = [abs(a - (b or 0.0)) <= TOLD * total for a, b in zip(said, losses, strict=True)]
        told = all(near)
        for curve, amount, known in zip(curves, amounts, near, strict=True):
            if width and not (known and curve.law is None):  # laws cost next to nothing
                curve.beside(amount, WIDTHS[-2] if told else width)
    return best and _with_least(lines, curves, best)


def _with_least(lines: Lines, curves: Sequence[Curve], best: Split) -> Split:
    """The same with the least share for parts that have little more, where it ended by chance, if that is no worse."""
    least = LEAST * float(max(best.amounts))
    amounts = lines.scaled(best.kinds, [least if a < NEXT * least else float(a) for a in best.amounts])
    losses = [curve.add(amount) for curve, amount in zip(curves, amounts, strict=True)]
    known = [one for one in losses if one is not None]
    good = len(known) == len(losses) and sum(known) <= best.loss
    return Split(best.kinds, amounts, sum(known)) if good else best


def directed(lines: Lines, kinds: Sequence[Measure], logs: np.ndarray) -> list[float]:
    """The largest shares in a direction in logarithms."""
    direction = _direction(logs)
    scale = lines.about(kinds, direction)
    return [scale * d for d in direction]


def _direction(logs: np.ndarray) -> list[float]:
    weights = np.exp(np.concatenate([[0.0], logs]) - max((0.0, *logs)))
    return list(np.maximum(weights, LEAST))


def corners(size: int) -> list[np.ndarray]:
    """Starts where one part has most of the lines."""
    return [np.array([3.0 * (j == i) - 3.0 * (i == 0) for j in range(1, size)]) for i in range(size)]


# --- larger shares --------------------------------------------------------------------------------


WORTH = 0.01
"""Losses that fall by a smaller share are not worth a bound on fewer splits."""
SHY = 1e-4
"""By so much less than they may shares are tried, as laws at other shares are others."""
Asked = Mapping[int, Mapping[str, Fraction]]


@dataclass(frozen=True, eq=False, slots=True)
class ExecutedLine(Line):
    """A line of a delta; `laws`: log ratios of each part, as multiples of its share, and chances; of noise None."""

    laws: tuple[tuple[Array, Array] | None, ...] = ()

    def about(self, kinds: Sequence[Measure], direction: Sequence[float], near: float | None = None) -> float:
        """The largest multiple of a direction in doubles, if laws are the same at all shares."""
        losses, chances = np.zeros(1), np.ones(1)
        own = list(zip(self.some(kinds), self.some(direction), self.laws, strict=True))
        for _, amount, law in own:
            if law is not None:
                losses, chances = np.add.outer(losses, law[0] * amount).ravel(), np.outer(chances, law[1]).ravel()
        mu = sum(d * d for kind, d, _ in own if kind is GAUSSIAN) ** 0.5
        epsilon, delta = float(self.asked["epsilon"]), float(self.asked["delta"])

        def excess(scales: Array) -> Array:
            rest, spread = epsilon - scales * losses, scales * mu
            over = np.exp(np.minimum(rest, 700))
            near = scipy.special.ndtr(spread / 2 - rest / spread) - over * scipy.special.ndtr(
                -spread / 2 - rest / spread
            )
            return np.asarray(np.log(np.maximum((chances * near).sum(axis=1), TINY) / delta))

        return root(excess, near, NEAR) if near else root(excess, epsilon / (float(np.abs(losses).max()) + 4 * mu))


def keeps(found: Mapping[int, Composed], asked: Asked) -> bool:
    """Whether parts keep to all their lines of a delta."""
    return all(one.delta <= asked[number]["delta"] for number, one in found.items())


def larger(
    lines: Lines,
    split: Split,
    fitted: Sequence[Callable[[float], float]],
    found: Mapping[int, Composed],
    asked: Asked,
    *,
    along: bool = False,
) -> Split | None:
    """A split that costs less if laws stay as they are; None where it is not worth it, or laws are not known.

    Only beside Gaussian noise: what pure parts alone let through beyond epsilon is next to all that they spend beyond
    it. `along`: only larger or smaller in all parts alike.
    """
    shared = list(zip(lines.each, found.items(), strict=True))
    if GAUSSIAN not in split.kinds or not all(asked[number].get("delta") for number in found):
        return None
    own = [float(amount) for amount in split.amounts]
    known = Lines(tuple(_executed(line, split, one, asked[number]) for line, (number, one) in shared))
    if along:
        amounts = [amount * known.about(split.kinds, own) for amount in own]
    else:
        start = np.log(own[1:]) - np.log(own[0])
        amounts = directed(known, split.kinds, minimised(known, split.kinds, fitted, [start])[1])
    loss = sum(at(amount) for at, amount in zip(fitted, amounts, strict=True))
    if not along and loss > (1 - WORTH) * sum(at(amount) for at, amount in zip(fitted, own, strict=True)):
        return None
    return replace(split, amounts=tuple(rounded_down(amount * (1 - SHY)) for amount in amounts))


def _executed(line: Line, split: Split, found: Composed, asked: Mapping[str, Fraction]) -> ExecutedLine:
    """The line with the laws of its parts, of the pairs that let through most together."""
    parts = [part for part, times in found.parts for _ in range(times)]
    listed = [part.pairs or (_response(part),) for part in parts if not part.mu_squared[0]]
    picks: list[tuple[Pair, ...]] = list(islice(product(*listed), PICKS))
    epsilon = float(asked["epsilon"])
    beyond = [_beyond(picked, epsilon) for picked in picks]
    laws = iter(picks[beyond.index(max(beyond))])
    shares = line.some([float(amount) for amount in split.amounts])
    each = tuple(
        None if part.mu_squared[0] else _law(next(laws), share) for part, share in zip(parts, shares, strict=True)
    )
    return ExecutedLine(line.measure, line.asked, line.parts, each)


def _response(part: PrivacyLoss) -> Pair:
    """Of Laplace noise, randomised response of its epsilon."""
    log = round(part.laplace[0] * GRID)
    likely = round(CHANCES / (1 + np.exp(-log / GRID)))
    return {log: likely, -log: CHANCES - likely}, {}


def _law(pair: Pair, share: float) -> tuple[Array, Array]:
    up, _ = pair
    return np.array([log / GRID / share for log in up]), np.array([chance / CHANCES for chance in up.values()])


def _beyond(picked: Sequence[Pair], epsilon: float) -> float:
    """Which pairs let through more beside noise: by the mean of e^(log ratio), up to what is asked."""
    total = 1.0
    for up, _ in picked:
        total *= sum(chance / CHANCES * (1 + expm1(min(4 * log / GRID, epsilon))) for log, chance in up.items())
    return total
