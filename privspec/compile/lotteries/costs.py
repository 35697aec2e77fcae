"""What a winner's law costs at a profile of votes: exactly for one profile, in doubles for many at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.compile.lotteries.doubles import laws
from privspec.model.lotteries import Law, Lottery

Floats: TypeAlias = NDArray[np.float64]


class Cost(ABC):
    """A number for every profile, given as the total points of each alternative."""

    __slots__ = ()

    @abstractmethod
    def at(self, law: Law, scores: Sequence[Fraction]) -> Fraction:
        """Exactly, at one profile."""

    @abstractmethod
    def many(self, winners: Floats, scores: Floats) -> Floats:
        """At many: winners and scores (n, m); result (n,)."""


@dataclass(frozen=True, slots=True)
class Distance(Cost):
    """Total variation between the winner's law and that of another lottery of the same points."""

    other: Lottery

    def at(self, law: Law, scores: Sequence[Fraction]) -> Fraction:
        """Half the sum of the differences."""
        other = self.other.law(scores)
        return sum((abs(p - q) for p, q in zip(law, other, strict=True)), Fraction(0)) / 2

    def many(self, winners: Floats, scores: Floats) -> Floats:
        """Half the sums of the differences."""
        found: Floats = np.abs(winners - laws(self.other, scores)).sum(axis=1) / 2
        return found


@dataclass(frozen=True, slots=True)
class Miss(Cost):
    """The probability that the winner differs from one that another lottery draws independently."""

    other: Lottery

    def at(self, law: Law, scores: Sequence[Fraction]) -> Fraction:
        """One less the probability to agree."""
        return 1 - sum((p * q for p, q in zip(law, self.other.law(scores), strict=True)), Fraction(0))

    def many(self, winners: Floats, scores: Floats) -> Floats:
        """One less the probabilities to agree."""
        found: Floats = 1 - (winners * laws(self.other, scores)).sum(axis=1)
        return found


@dataclass(frozen=True, slots=True)
class VotesMissed(Cost):
    """The share of first choices that the winner does not have, on average."""

    def at(self, law: Law, scores: Sequence[Fraction]) -> Fraction:
        """One less the winner's share."""
        total = sum(scores, Fraction(0))
        return 1 - sum((p * s for p, s in zip(law, scores, strict=True)), Fraction(0)) / total if total else Fraction(0)

    def many(self, winners: Floats, scores: Floats) -> Floats:
        """One less the winner's share."""
        found: Floats = 1 - (winners * scores).sum(axis=1) / scores.sum(axis=1)
        return found


@dataclass(frozen=True, slots=True)
class Body:
    """A weighted sum of costs and a constant: what stands inside E[ ... ] or worst[ ... ]."""

    parts: tuple[tuple[Fraction, Cost], ...]
    offset: Fraction = Fraction(0)

    def at(self, law: Law, scores: Sequence[Fraction]) -> Fraction:
        """Exactly, at one profile."""
        return sum((weight * cost.at(law, scores) for weight, cost in self.parts), self.offset)

    def many(self, winners: Floats, scores: Floats) -> Floats:
        """At many profiles."""
        total: Floats = np.full(len(scores), float(self.offset))
        for weight, cost in self.parts:
            total = total + float(weight) * cost.many(winners, scores)
        return total
