"""What a rule that draws a winner has to tell: its law, and the largest ratio that a change of ballots brings.

The laws are written for numbers of any kind: fractions where privacy is enumerated, balls (flint) where a loss is.
`S_a` are the points of alternative a, of one ballot at most h, at least 0, all ballots with the same sum s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from privspec.certify.finite.ratios import BITS, LogRatio
from privspec.certify.lotteries.meaning import Ballots


@dataclass(frozen=True, slots=True)
class Change:
    """Up to `group` ballots are replaced, or added and removed; `voters` counts where it is known (replacing)."""

    adding: bool
    group: int
    voters: int

    @property
    def ballots(self) -> int:
        """How many ballots may change."""
        return self.group if self.adding else min(self.group, self.voters)


@dataclass(frozen=True, slots=True)
class Ratio:
    """`base` to the power of a whole number; None for the base: no finite ratio."""

    base: Fraction | None
    power: int = 1

    def within(self, epsilon: Fraction) -> bool:
        """Whether it is at most e^epsilon: base <= e^(epsilon / power), against a lower bound of 128 bits."""
        if self.base == 1 or not self.power:
            return epsilon >= 0
        if self.base is None or epsilon < 0:
            return False
        return self.base * (1 << BITS) <= LogRatio.of(epsilon / self.power).down

    @property
    def log(self) -> float:
        """Its logarithm, near enough for display and comparison to nine digits."""
        from flint import arb, ctx, fmpq

        if self.base is None:
            return float("inf")
        with ctx.workprec(128):
            return self.power * float(arb(fmpq(self.base.numerator, self.base.denominator)).log())

    @property
    def value(self) -> Fraction | None:
        """Itself."""
        return None if self.base is None else self.base**self.power


ONE = Ratio(Fraction(1))


class Rule(ABC):
    """A law of the winner."""

    __slots__ = ()

    family: ClassVar[str]
    key: ClassVar[str]
    """Where a plan holds its one number."""
    alike: ClassVar[bool] = True
    """Whether alternatives with equal points have equal chances."""

    @property
    @abstractmethod
    def amount(self) -> Fraction:
        """Its one number."""

    @abstractmethod
    def law(self, scores: Sequence[Fraction], one: Any = Fraction(1)) -> tuple[Any, ...]:
        """Probabilities of the alternatives given their points; `one` is 1 in the numbers to compute with."""

    @abstractmethod
    def ratio(self, ballots: Ballots, change: Change) -> Ratio:
        """An upper bound, for every profile that the relation has, on the ratio of the probabilities of a winner.

        For dummy votes and reports it is attained (`exact`); for powers it is the supremum over all numbers of voters.

        Raises: Unbounded where the rule does not protect such a change.
        """

    def at(self, ballots: Ballots, change: Change) -> Ratio:
        """The same at the number of voters there is, where that is known to be smaller."""
        return self.ratio(ballots, change)

    def uniform_share(self, ballots: Ballots, voters: int) -> Fraction | None:
        """The share w where the law is (1 - w) S / sum S + w / m; None for other laws."""
        return None

    @abstractmethod
    def check(self, ballots: Ballots) -> None:
        """Refuse a number that is no parameter of the rule, and ballots that it cannot count.

        Raises: Malformed.
        """


def free(ballots: Ballots, change: Change) -> bool:
    """Whether nothing that an observer sees can change: one alternative, or no ballot."""
    return ballots.size == 1 or not change.ballots


def number(value: Fraction, one: Any) -> Any:
    """A fraction in the numbers of `one`."""
    return value if isinstance(one, Fraction) else one * value.numerator / value.denominator
