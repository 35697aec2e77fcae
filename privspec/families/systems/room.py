"""Larger shares, where the laws that parts execute let through less than randomised responses would.

A split is found with parts that count as randomised responses of what they spend (`splits`). Once laws are known, the
search goes on as if every part had the same law at other shares, with log ratios in proportion to them; what it finds
is solved, and the kernel says what is let through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import islice, product
from math import expm1

import numpy as np
from scipy.special import ndtr

from privspec.core.records import dataclass, replace
from privspec.families.systems.splits import (
    GAUSSIAN,
    NEAR,
    TINY,
    Kind,
    Line,
    Lines,
    Split,
    directed,
    minimised,
    root,
    rounded_down,
)
from privspec.kernel.laws import CHANCES, GRID, PICKS, Counted, Pair
from privspec.kernel.systems import Composed
from privspec.solvers.programs import Array

WORTH = 0.01
"""Losses that fall by a smaller share are not worth a bound on fewer splits."""
SHY = 1e-4
"""By so much less than they may shares are tried, as laws at other shares are others."""
Asked = Mapping[int, Mapping[str, Fraction]]


@dataclass(frozen=True, eq=False, slots=True)
class ExecutedLine(Line):
    """A line of a delta; `laws`: log ratios of each part, as multiples of its share, and chances; of noise None."""

    laws: tuple[tuple[Array, Array] | None, ...] = ()

    def about(self, kinds: Sequence[Kind], direction: Sequence[float], near: float | None = None) -> float:
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
            near = ndtr(spread / 2 - rest / spread) - over * ndtr(-spread / 2 - rest / spread)
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


def _response(part: Counted) -> Pair:
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
