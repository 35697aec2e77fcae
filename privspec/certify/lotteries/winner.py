"""The rule that draws from the winner of plurality alone: randomised response of that winner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from privspec.certify.lotteries.meaning import Ballots, Scores
from privspec.certify.lotteries.rule import ONE, Change, Ratio, Rule, free, number
from privspec.certify.reading import Malformed


@dataclass(frozen=True, slots=True)
class Winner(Rule):
    """The alternative with most points, the first declared among equals, `truth` times as likely as each other."""

    truth: Fraction

    family: ClassVar[str] = "randomised_winner"
    key: ClassVar[str] = "ratio"
    alike: ClassVar[bool] = False

    @property
    def amount(self) -> Fraction:
        """How much more likely the winner is than each other alternative."""
        return self.truth

    def check(self, ballots: Ballots) -> None:
        """The winner is at least as likely as the rest."""
        if self.truth < 1:
            raise Malformed("the winner is less likely than other alternatives")

    def law(self, scores: Sequence[Fraction], one: Any = Fraction(1)) -> tuple[Any, ...]:
        """Two values."""
        winner, whole = scores.index(max(scores)), self.truth + len(scores) - 1
        return tuple(number((self.truth if a == winner else Fraction(1)) / whole, one) for a in range(len(scores)))

    def ratio(self, ballots: Ballots, change: Change) -> Ratio:
        """The truth against any other alternative, whatever changes: no law has other probabilities than these two.

        It is reached for every number of voters: k ballots with a before b, k with b before a, and the two of them
        before all others; where one is left over, it decides between a and b, else any one that comes or is replaced.
        """
        return ONE if free(ballots, change) else Ratio(self.truth)


def extremes(voters: int, size: int) -> list[Scores]:
    """Numbers of first choices of which one is worst for the rule, in the distance from shares and in votes missed.

    Let M be the most votes. One less the winner's share falls with M, so that even shares are worst. The distance is
    (p - M / T)_+ + sum over the others of (q - n / T)_+: given M convex in each n, so largest where they are M or 0 but
    for one, T // M = j of all with M; for the same j it is convex in M, so largest at the least or largest M with j.
    """
    found: dict[Scores, None] = {}
    for j in range(1, size + 1):
        for most in (voters // j, voters // (j + 1) + 1):
            counts = [most] * j + [voters - j * most] * (j < size)
            if most >= 1 and 0 <= voters - j * most <= most and (j < size or j * most == voters):
                found[tuple(Fraction(n) for n in (*counts, *(0,) * (size - len(counts))))] = None
    each, more = divmod(voters, size)
    found[tuple(Fraction(each + (a < more)) for a in range(size))] = None
    return list(found)
