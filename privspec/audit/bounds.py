"""What a guesser who is often right proves: exact lower bounds on the amount of a privacy measure.

A coin picks which of two neighbouring data sets a release is of, and the guesser names one of them or abstains. Under a
promise the chance of a right guess is at most a concave function F of that of a wrong one, and so, by Jensen's
inequality, is the average over both data sets: right <= F(wrong). Right guesses among all guesses are a binomial
number, which gives exact bounds (Clopper and Pearson 1934); its share is bounded in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from privspec.core.diagnostics import InternalError
from privspec.core.records import dataclass
from privspec.kernel.divergences import HockeyStick, Renyi, TradeOff
from privspec.kernel.measures import Measure

Array: TypeAlias = NDArray[np.float64]
Amounts: TypeAlias = Mapping[str, float]
ORDERS = (1.01, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 8.0, 16.0, 32.0, 64.0)
SHARE = 0.01
"""Of the chance of a false alarm, what the bound on the share of guesses takes."""
SEEN = 0.95
"""How often a breach that is called visible is seen."""


def at_least(hits: Any, trials: Any, alarm: float) -> Array:
    """What a probability is at least, wrong in `alarm` of all samples."""
    few = np.maximum(hits, 1)
    return np.where(np.asarray(hits) > 0, scipy.special.betaincinv(few, np.maximum(trials, few) - few + 1, alarm), 0.0)


def _ratio(right: Array, wrong: Array, delta: float) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((right - delta > wrong) & (wrong > 0), np.log((right - delta) / wrong), 0.0)


def _normal(right: Array, wrong: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.where(
            (right < 1) & (right > wrong) & (wrong > 0), scipy.special.ndtri(right) - scipy.special.ndtri(wrong), 0.0
        )


def _renyi(right: Array, wrong: Array, order: float) -> Array:
    """Renyi divergence of two coins, the first of which falls on one side more often."""
    with np.errstate(divide="ignore", invalid="ignore"):
        sides = right * (right / wrong) ** (order - 1) + (1 - right) * ((1 - right) / (1 - wrong)) ** (order - 1)
        return np.where((right < 1) & (right > wrong) & (wrong > 0), np.log(sides) / (order - 1), 0.0)


@dataclass(frozen=True, slots=True)
class Promise:
    """A measure with its amounts; of one that speaks of distances, also how far apart the two data sets are."""

    measure: Measure
    amounts: Amounts

    @property
    def amount(self) -> str:
        """The name of what is tested."""
        return self.measure.main.name

    def least(self, right: Array, wrong: Array) -> Array:
        """What it is at least where guesses are right, and wrong, with these probabilities."""
        asked = {name: Fraction(self.amounts[name]) for name in self.measure.figures}
        match self.measure.condition(asked):
            case Renyi(order=None):
                return np.asarray(np.max([_renyi(right, wrong, order) / order for order in ORDERS], axis=0))
            case Renyi(order=Fraction() as order):
                return _renyi(right, wrong, float(order))
            case TradeOff():
                return _normal(right, wrong)
            case HockeyStick(epsilon=epsilon, delta=delta):
                # an epsilon beside the delta that is allowed, or a delta beside no epsilon
                found = _ratio(right, wrong, float(delta)) if epsilon else np.maximum(right - wrong, 0.0)
                return np.asarray(found / self.amounts.get("distance", 1.0))
        raise InternalError(f"no test of {self.measure.name}")

    @property
    def promised(self) -> float:
        """What it is at most."""
        return self.amounts[self.amount]

    def shown(self, right: Any, wrong: Any, trials: int, alarm: float) -> Array:
        """What so many right and wrong guesses among the trials show of the amount, wrong in `alarm` of all tests."""
        right, guesses = np.asarray(right), np.asarray(right) + np.asarray(wrong)
        share = at_least(guesses, trials, SHARE * alarm)
        hit = at_least(right, guesses, (1 - SHARE) * alarm)
        return self.least(hit * share, (1 - hit) * share)

    def visible(self, guesses: int, trials: int, alarm: float) -> float | None:
        """The least amount that as many guesses would have shown to be more than is promised, in `SEEN` of all tests.

        None where guesses that are all right would not show it.
        """
        below, enough = 0, guesses
        if float(self.shown(guesses, 0, trials, alarm)) <= self.promised:
            return None
        while enough - below > 1:
            middle = (below + enough) // 2
            broken = float(self.shown(middle, guesses - middle, trials, alarm)) > self.promised
            below, enough = (below, middle) if broken else (middle, enough)
        hit, share = scipy.special.betaincinv(enough, guesses - enough + 1, SEEN), guesses / trials
        found = float(self.least(np.asarray(hit * share), np.asarray((1 - hit) * share)))
        return found if found > self.promised else None
