"""Rules that draw in proportion to points, mixed with the uniform law: dummy votes, and reports of each voter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from privspec.certify.lotteries.meaning import Ballots
from privspec.certify.lotteries.rule import ONE, Change, Ratio, Rule, free, number
from privspec.certify.reading import Malformed
from privspec.certify.relations import Unbounded


@dataclass(frozen=True, slots=True)
class Dummies(Rule):
    """(S_a + k) / (sum S + m k); uniform where that is 0/0."""

    dummies: Fraction

    family: ClassVar[str] = "dictator"
    key: ClassVar[str] = "dummy_votes"

    @property
    def amount(self) -> Fraction:
        """Dummy votes for each alternative, in points."""
        return self.dummies

    def check(self, ballots: Ballots) -> None:
        """Dummy votes do not take votes away."""
        if self.dummies < 0:
            raise Malformed("a negative number of dummy votes")

    def law(self, scores: Sequence[Fraction], one: Any = Fraction(1)) -> tuple[Any, ...]:
        """Shares."""
        whole = sum(scores, Fraction(0)) + len(scores) * self.dummies
        if not whole:
            return (one / len(scores),) * len(scores)
        return tuple(number((score + self.dummies) / whole, one) for score in scores)

    def ratio(self, ballots: Ballots, change: Change) -> Ratio:
        """1 + g h / k for g ballots, for every number of voters.

        Replacing g of T ballots leaves the sum as it is, and S_a = S'_a + d with d <= g h: the ratio (S'_a + d + k) /
        (S'_a + k) is largest at S'_a = 0, d = g h: all T ballots give a nothing, then g of them put it first.
        Adding i and removing j, i + j <= g, from n ballots: the ratio is at most (1 + i h / k) (n s + m k) /
        ((n + i - j) s + m k). For i >= j the second factor is below 1 and tends to 1 with n, so that 1 + g h / k is the
        supremum (i = g). For i < j it is largest at n = j, and (k + i h)(k + j u) <= (k + i u)(k + (i + j) h) for
        u = s / m <= h, as the difference of the sides is k j (h - u) + k i u + i i u h.
        """
        if free(ballots, change):
            return ONE
        if not self.dummies:
            return Ratio(None)
        return Ratio(1 + change.ballots * ballots.highest / self.dummies)

    def uniform_share(self, ballots: Ballots, voters: int) -> Fraction | None:
        """Dummies among all points."""
        dummies = ballots.size * self.dummies
        whole = voters * ballots.total + dummies
        return dummies / whole if whole else Fraction(1)


@dataclass(frozen=True, slots=True)
class Reports(Rule):
    """Each voter draws an alternative by the points of the ballot and reports it, or another; one report is drawn.

    What was drawn is reported `truth` times as likely as each other alternative. `seen`: whether reports are public.
    """

    truth: Fraction
    seen: bool = True

    family: ClassVar[str] = "local_dictator"
    key: ClassVar[str] = "ratio"

    @property
    def amount(self) -> Fraction:
        """How much more likely the truth is than each other answer."""
        return self.truth

    def check(self, ballots: Ballots) -> None:
        """The truth is at least as likely as the rest."""
        if self.truth < 1:
            raise Malformed("the truth is less likely than other answers")

    def law(self, scores: Sequence[Fraction], one: Any = Fraction(1)) -> tuple[Any, ...]:
        """The mean of the laws of the reports."""
        points, m = sum(scores, Fraction(0)), len(scores)
        if not points:
            return (one / m,) * m
        true, other = self.truth / (self.truth + m - 1), 1 / (self.truth + m - 1)
        return tuple(number((s * true + (points - s) * other) / points, one) for s in scores)

    def report(self, ballots: Ballots) -> Fraction:
        """The largest ratio of one report: 1 + w, w = (truth - 1) h / s, of the most points against none."""
        return 1 + (self.truth - 1) * ballots.highest / ballots.total if ballots.size > 1 else Fraction(1)

    def ratio(self, ballots: Ballots, change: Change) -> Ratio:
        """1 + w for each report that changes where reports are seen; the winner is computed from these.

        Of the winner alone 1 + w for any change: every law is a mean of laws of reports, or uniform, and each entry of
        these lies between 1 and 1 + w, divided by truth + m - 1.

        Raises: Unbounded for voters who come and go where reports are seen.
        """
        if change.adding and self.seen:
            raise Unbounded("reports tell who takes part: nothing is hidden of a voter who comes or goes")
        if free(ballots, change):
            return ONE
        return Ratio(self.report(ballots), change.ballots if self.seen else 1)

    def at(self, ballots: Ballots, change: Change) -> Ratio:
        """Of the winner alone: 1 + w g / T where g of T are replaced, as the share of the points moves by h g / (s T).

        One who comes to nobody: a report against the uniform law. To n > 0: the share moves by h / (s (n + 1)) <=
        h / (2 s) from 0, and by no larger factor from above. One who goes from n + 1: (1 + w) / (1 + w n / (n + 1)),
        which is below 1 + w / (n + 1).
        """
        if self.seen or free(ballots, change) or (change.adding and change.group > 1):
            return self.ratio(ballots, change)
        w, m = self.report(ballots) - 1, ballots.size
        if not change.adding:
            return Ratio(1 + w * change.ballots / change.voters)
        return Ratio(max(m * (1 + w) / (self.truth + m - 1), (self.truth + m - 1) / m, 1 + w / 2))

    def uniform_share(self, ballots: Ballots, voters: int) -> Fraction | None:
        """The same for every number of voters."""
        return ballots.size / (self.truth + ballots.size - 1) if voters else Fraction(1)
