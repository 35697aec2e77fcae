"""What an observer can achieve: trade-off curves, attacker advantage and odds in natural frequencies.

A trade-off curve gives, for each share `a` of false alarms, the least share of misses any test can have
(notes/odds.md). Two are used: the exact curve of Gaussian noise, and the bound that follows from an
(epsilon, delta) claim alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Protocol

from privspec.explain.quantities import Rounding, exact, rounded

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
        ...

    @property
    def words(self) -> str:
        """What the curve is, for a caption."""
        ...

    def misses(self, false_alarms: float) -> float:
        """The least share of misses at a share of false alarms."""
        ...

    def equal_error(self) -> float:
        """The share of mistakes of the best test that errs equally often in both cases."""
        ...

    def advantage(self) -> float:
        """The largest true positive rate minus false positive rate."""
        ...

    def repeated(self, times: int) -> Curve:
        """The curve after so many independent releases."""
        ...

    def for_group(self, size: int) -> Curve:
        """The curve when so many units change together."""
        ...

    def bound(self, delta: Fraction | None) -> str:
        """Its parameter rounded up, and the epsilon that follows at a given delta where that says more."""
        ...


@dataclass(frozen=True, slots=True)
class GaussianCurve:
    """Phi(Phi^-1(1 - a) - mu): exact for Gaussian noise that a neighbour shifts by mu deviations."""

    mu: float

    @property
    def exact(self) -> bool:
        """Whether some test attains the curve."""
        return True

    @property
    def words(self) -> str:
        """What the curve is."""
        return "exact trade-off curve of the Gaussian noise"

    def misses(self, false_alarms: float) -> float:
        """The least share of misses."""
        if not 0.0 < false_alarms < 1.0:
            return 1.0 - false_alarms
        return normal_cdf(-_NORMAL.inv_cdf(false_alarms) - self.mu)

    def equal_error(self) -> float:
        """The share of mistakes at equal errors."""
        return normal_cdf(-self.mu / 2)

    def advantage(self) -> float:
        """The largest advantage."""
        return math.erf(self.mu / (2 * math.sqrt(2.0)))

    def repeated(self, times: int) -> GaussianCurve:
        """The curve after independent releases."""
        return GaussianCurve(self.mu * math.sqrt(times))

    def for_group(self, size: int) -> GaussianCurve:
        """The curve for a group."""
        return GaussianCurve(self.mu * size)

    def bound(self, delta: Fraction | None) -> str:
        """As in "μ ≤ 0.45, that is (2, 1e-6)-DP"."""
        words = f"μ ≤ {rounded(self.mu, 4, Rounding.UP)}"
        if not delta:
            return words
        from privspec.core.gaussian import epsilon_up

        return f"{words}, that is ({rounded(epsilon_up(Fraction(self.mu), delta), 4, Rounding.UP)}, {exact(delta)})-DP"


@dataclass(frozen=True, slots=True)
class EpsilonDeltaCurve:
    """max(0, 1 - delta - e^epsilon a, e^-epsilon (1 - delta - a)): all that (epsilon, delta) allows."""

    epsilon: float
    delta: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether some test attains the curve."""
        return False

    @property
    def words(self) -> str:
        """What the curve is."""
        return "bound from epsilon and delta" if self.delta else "bound from epsilon"

    def misses(self, false_alarms: float) -> float:
        """The least share of misses."""
        steep = 1.0 - self.delta - _exp(self.epsilon) * false_alarms if false_alarms > 0 else 1.0 - self.delta
        flat = math.exp(-self.epsilon) * (1.0 - self.delta - false_alarms)
        return max(0.0, steep, flat)

    def equal_error(self) -> float:
        """The share of mistakes at equal errors."""
        return (1.0 - self.delta) * _logistic(-self.epsilon)

    def advantage(self) -> float:
        """The largest advantage."""
        return math.tanh(self.epsilon / 2) + 2 * self.delta * _logistic(-self.epsilon)

    def repeated(self, times: int) -> EpsilonDeltaCurve:
        """The curve after independent releases."""
        return EpsilonDeltaCurve(self.epsilon * times, min(1.0, self.delta * times))

    def for_group(self, size: int) -> EpsilonDeltaCurve:
        """The curve for a group."""
        # notes/group-privacy.md: delta * (1 + e^eps + ... + e^((k-1) eps))
        grown = self.delta * math.fsum(_exp(j * self.epsilon) for j in range(size)) if self.delta else 0.0
        return EpsilonDeltaCurve(self.epsilon * size, min(1.0, grown))

    def bound(self, _delta: Fraction | None) -> str:
        """As in "ε ≤ 1"."""
        shown = rounded(self.epsilon, 4, Rounding.UP)
        return f"({shown}, {rounded(self.delta, 3, Rounding.UP)})-DP" if self.delta else f"ε ≤ {shown}"


@dataclass(frozen=True, slots=True)
class Odds:
    """Of `of` results, how many say "took part": at least `without` if not so, at most `taking_part` if so.

    True of every observer whose two kinds of mistakes are equally frequent, and no observer at all has
    both fewer false alarms than `without` and more hits than `taking_part` (notes/odds.md).
    """

    without: int
    taking_part: int
    of: int

    @property
    def tells_little(self) -> bool:
        """Whether the bound is so weak that not one result in `of` is spared."""
        return self.without == 0


_DENOMINATORS = tuple(10**power for power in range(2, 8))


def odds(curve: Curve) -> Odds:
    """The odds of the best observer with equal errors, rounded so that "at least" and "at most" stay true.

    Of 100 results unless the smaller number would be 0; then of 1,000 and so on up to 10,000,000.
    """
    error = curve.equal_error()
    for of in _DENOMINATORS:
        without = max(0, math.floor((error - _SLACK) * of))
        if without >= 1:
            return Odds(without, of - without, of)
    return Odds(0, _DENOMINATORS[-1], _DENOMINATORS[-1])


def posterior(prior: float, epsilon: float) -> float:
    """The largest probability after seeing the result, for a prior; pure epsilon only."""
    if prior <= 0.0 or prior >= 1.0:
        return prior
    return _logistic(epsilon + math.log(prior / (1.0 - prior)))


def _logistic(t: float) -> float:
    return 1.0 / (1.0 + math.exp(-t)) if t >= 0 else math.exp(t) / (1.0 + math.exp(t))


def _exp(t: float) -> float:
    return math.exp(t) if t < 700.0 else math.inf
