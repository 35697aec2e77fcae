"""What one draw of a lottery lets an observer tell: a bound by epsilon and by how far one vote moves the chances.

Where no probability changes by a factor above e^epsilon, and the chances of no set of winners by more than d, every
test with false alarms a misses at least max(1 - e^epsilon a, 1 - a - d, e^-epsilon (1 - a)) (note odds). Three winners
attain it: one that becomes likelier by the whole factor, one that becomes less likely by it, and all others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privspec.explain.curves import Curve, EpsilonDeltaCurve
from privspec.explain.finite.tradeoff import PairsCurve

_SLACK = 1e-12
"""More than the rounding of three probabilities."""
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
        """What the curve is."""
        return "exact trade-off curve of one draw" if self.exact else "bound from the lottery"

    def for_group(self, size: int) -> Curve:
        """Several units together: distances add up, and so does epsilon."""
        epsilon = self.bound_pair[0]
        return self if size == 1 or not self.adds_up else lottery_curve(epsilon * size, self.distance * size)

    def product(self, times: int) -> PairsCurve:
        """Several draws."""
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
