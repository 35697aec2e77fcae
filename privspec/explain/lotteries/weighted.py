"""Rules that favour the largest count: by weights that grow with every vote, or by coins that do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.polynomial.legendre import leggauss

from privspec.explain.lotteries.rule import Rule
from privspec.explain.lotteries.vote import Vote
from privspec.explain.quantities import Quantity, rounded


@dataclass(frozen=True, slots=True)
class ExponentialRule(Rule):
    """Each candidate in proportion to base^votes."""

    base: Fraction

    title: ClassVar[str] = "exponential mechanism"
    without: ClassVar[str] = "plurality without noise"

    def law(self, scores: Sequence[Fraction]) -> tuple[float, ...]:
        """Weights relative to the largest."""
        weights = _weights(self.base, scores)
        return tuple(float(w) for w in weights / weights.sum())

    def noiseless(self, scores: Sequence[Fraction]) -> tuple[float, ...]:
        """All on the largest."""
        first = list(scores).index(max(scores))
        return tuple(float(i == first) for i in range(len(scores)))

    def parameter(self) -> tuple[str, Quantity]:
        """The base."""
        return "base", rounded(self.base, 6)

    def exactly(self) -> str:
        """As a fraction."""
        return str(self.base)

    def brief(self, vote: Vote) -> str:
        """By weights."""
        return f"each of {vote.size} candidates in proportion to {self.parameter()[1]} to the power of its votes"

    def told(self, vote: Vote) -> tuple[str, ...]:
        """A drum whose tickets multiply."""
        return (
            "The winner is drawn by lot, and the candidate with the most votes has the best chances.",
            f"Every vote makes the tickets of its candidate {self.parameter()[1]} times as many; one ticket is drawn.",
        )

    def executed(self, vote: Vote) -> tuple[str, ...]:
        """Weights."""
        return (
            f"A candidate with N votes is drawn in proportion to b^N, b = {self.parameter()[1]} (an exact fraction in "
            "the plan, rounded towards privacy).",
        )


@dataclass(frozen=True, slots=True)
class PermuteAndFlipRule(ExponentialRule):
    """Candidates in random order, each taken by a coin that favours those with many votes."""

    title: ClassVar[str] = "permute-and-flip"

    def law(self, scores: Sequence[Fraction]) -> tuple[float, ...]:
        """w_a times the integral over t in [0, 1] of the product of 1 - t w_b over b != a; Gauss nodes are exact."""
        weights = _weights(self.base, scores)
        nodes, parts = leggauss(len(weights) // 2 + 1)
        t, parts = (nodes + 1) / 2, parts / 2
        passed = 1 - t[:, None] * weights
        before = np.hstack([np.ones((len(t), 1)), np.cumprod(passed[:, :-1], axis=1)])
        after = np.hstack([np.cumprod(passed[:, :0:-1], axis=1)[:, ::-1], np.ones((len(t), 1))])
        return tuple(float(p) for p in weights * (parts @ (before * after)))

    def brief(self, vote: Vote) -> str:
        """By coins."""
        return (
            f"{vote.size} candidates are visited in random order; one that is k votes behind the largest count wins "
            f"with probability {self.parameter()[1]}^-k, else the next is visited"
        )

    def told(self, vote: Vote) -> tuple[str, ...]:
        """Cards and coins."""
        return (
            "The winner is drawn by lot, and the candidate with the most votes has the best chances.",
            "The candidates are visited in random order. At each a coin is flipped: the farther a candidate is behind "
            "the one with the most votes, the rarer it shows heads. The first with heads wins; the one with the most "
            "votes always has heads.",
        )

    def executed(self, vote: Vote) -> tuple[str, ...]:
        """Coins."""
        return (
            "Candidates are visited in a uniformly random order; one that is k votes behind the largest count is taken "
            f"with probability b^-k, b = {self.parameter()[1]} (an exact fraction in the plan), else the next one.",
        )


def _weights(base: Fraction, scores: Sequence[Fraction]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """base^(points - most points)."""
    step, most = math.log(base), max(scores)
    return np.array([math.exp(step * float(score - most)) for score in scores])
