"""Lotteries whose weights are powers of the points (notes/weighted-votes.md): what both of them share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from privspec.mechanisms.lotteries.enumeration import enumerated_ratio, few
from privspec.mechanisms.lotteries.keeping import TREATS_ALIKE, inefficient, swayed
from privspec.mechanisms.lotteries.rounding import CLOSE, growth_simple, log_up, simplest
from privspec.mechanisms.lotteries.rule import Property, VotingTask
from privspec.model.lotteries import Lottery

_BITS = 1 << 16
"""Bits up to which powers are worked out, here as in the checker of plans; beyond them bounds serve."""

_NEAR = 1e-9
"""Share of an epsilon that a calibration may leave unused."""
_EXPANSIONS, _STEPS = 24, 24


@dataclass(frozen=True, slots=True)
class Weighted(ABC):
    """Weights base^points, base > 1."""

    base: Fraction
    family: ClassVar[str]
    notes: ClassVar[tuple[str, ...]] = ("weighted-votes",)
    groups: ClassVar[bool] = False
    """Whether `single` knows the ratio for several ballots that are replaced."""

    @property
    @abstractmethod
    def lottery(self) -> Lottery:
        """The law that the weights lead to."""

    @abstractmethod
    def single(self, task: VotingTask) -> tuple[Fraction, bool]:
        """The ratio for first choices at the size that the task names, and whether it is exact."""

    def ratio(self, task: VotingTask) -> Fraction:
        """At most base^(2 g h) when replacing, base^(g h) when adding; less at the sizes for which that is known."""
        return self._found(task)[0]

    def exact(self, task: VotingTask) -> bool:
        """Where the size is secret, in closed forms, and in electorates small enough to go through."""
        return self._found(task)[1]

    def _found(self, task: VotingTask) -> tuple[Fraction, bool]:
        if task.constant:
            return Fraction(1), True
        bound = self.base ** reach(task)
        if task.voters is None:
            return bound, True
        if task.points.highest == task.points.per_ballot and (task.moved == 1 or (self.groups and not task.adding)):
            return self.single(task)
        if task.whole and few(task):
            ratio = enumerated_ratio(self.lottery, task)
            assert ratio is not None
            return ratio, True
        return bound, False

    def epsilon(self, task: VotingTask) -> Fraction:
        """2 g h log(base) or g h log(base) where the size is not fixed."""
        return log_up(self.ratio(task))

    def properties(self, task: VotingTask) -> tuple[Property, ...]:
        """Strategy-proof for two alternatives only; never ex-post efficient."""
        return (TREATS_ALIKE, inefficient(task, self.lottery), swayed(task, self.lottery))

    def to_json(self) -> dict[str, Any]:
        """What one point multiplies a weight by."""
        return {"family": self.family, "base": str(self.base)}


def reach(task: VotingTask) -> int:
    """By how many powers of the base the ratios of a task are bounded: twice the points moved when replacing.

    Every score moves by at most g h; when adding, all in one direction, so that the sum of the weights does not turn
    against the weight (note weighted-votes).
    """
    points = task.moved * task.points.highest
    assert points.denominator == 1
    return int(points) * (1 if task.adding else 2)


def base_of(task: VotingTask, epsilon: Fraction) -> Fraction | str:
    """The largest base that meets epsilon for every size, rounded down to a simple rational; or why there is none."""
    if epsilon <= 0:
        return "with epsilon 0 no lottery may depend on the votes"
    if not task.whole:
        return "ballots that leave out alternatives give halves of points, whose powers are not rational"
    return 1 + growth_simple(epsilon / max(reach(task), 1))


def largest_base(build: Callable[[Fraction], Weighted], task: VotingTask, epsilon: Fraction) -> Fraction | str:
    """The largest base that meets epsilon, to 10^-9 of it; or why there is none.

    Where the number of voters is public, the ratio at that number decides, which is smaller than the one that holds
    for every number: `base_of` is where the search starts.
    """
    least = base_of(task, epsilon)
    if isinstance(least, str) or task.voters is None or task.adding or task.constant:
        return least
    limit, wanted = 1 + growth_simple(epsilon), float(epsilon)

    def over(base: Fraction) -> tuple[bool, float]:
        ratio = build(base).ratio(task)
        return ratio > limit, float(log_up(ratio)) - wanted

    best, (beyond, short) = least, over(least)
    if beyond:
        return least
    low, left = math.log(least), short
    high, right = low, short
    for _ in range(_EXPANSIONS):
        if right > 0 or -right <= _NEAR * wanted:
            break
        low, left = high, right
        # a little beyond where the logarithm of the ratio would be if it grew as that of the base does
        high *= max(wanted / (wanted + right) * (1 + _NEAR), 1 + 2 * _NEAR)
        base = _rational(high)
        beyond, right = over(base)
        best = best if beyond else max(best, base)
    for _ in range(_STEPS):
        if left >= -_NEAR * wanted or right <= left:
            break
        middle = (low * right - high * left) / (right - left)
        base = _rational(middle)
        beyond, found = over(base)
        if beyond:
            high, right, left = middle, found, left / 2
        else:
            best, low, left, right = max(best, base), middle, found, right / 2
            if found >= -_NEAR * wanted:
                break
    return best


def _rational(logarithm: float) -> Fraction:
    """A simple rational just below e^logarithm."""
    growth = Fraction(math.expm1(logarithm))
    return 1 + simplest(growth * (1 - CLOSE), growth)


def power(base: Fraction, exponent: int) -> Fraction | None:
    """base^exponent; None where it would be long."""
    return base**exponent if exponent * base.numerator.bit_length() <= _BITS else None
