"""Randomised response of every ballot, then one of the reports at random (notes/local-votes.md)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from privspec.mechanisms.lotteries.keeping import TREATS_ALIKE, TRUTHFUL, inefficient
from privspec.mechanisms.lotteries.rounding import growth_simple, log_up
from privspec.mechanisms.lotteries.rule import Calibrated, Property, VotingTask
from privspec.model.lotteries import LocalPick, Points


@dataclass(frozen=True, slots=True)
class LocalReports:
    """An alternative drawn by the points of one's own ballot and reported `odds` > 1 times as likely as each other."""

    odds: Fraction
    family: ClassVar[str] = "local_dictator"
    notes: ClassVar[tuple[str, ...]] = ("local-votes",)

    @property
    def lottery(self) -> LocalPick:
        """(S_a / sum S (odds - 1) + 1) / (odds + m - 1)."""
        return LocalPick(self.odds)

    def of_report(self, points: Points) -> Fraction:
        """The largest ratio of one voter's report, any ballot against any other: all that the public sees."""
        return 1 + (self.odds - 1) * points.highest / points.per_ballot

    def epsilon_of_report(self, points: Points) -> Fraction:
        """Its logarithm, rounded up: what each voter is promised without trusting anybody."""
        return log_up(self.of_report(points))

    def ratio(self, task: VotingTask) -> Fraction:
        """Of the winner alone: 1 + g w / T when replacing, w + 1 the ratio of one report.

        When adding: 1 + g w / (T + g) for T > 0; without any other voters the uniform law against a single report.
        """
        if task.constant:
            return Fraction(1)
        m, more = len(task.alternatives), self.of_report(task.points) - 1
        alone = max(m * (1 + more) / (self.odds + m - 1), (self.odds + m - 1) / m)
        if not task.adding:
            return 1 + more * task.moved / (task.moved if task.voters is None else task.voters)
        if task.voters is None:
            return max(alone, 1 + more / 2) if task.group == 1 else 1 + more
        return alone if task.voters == 0 else 1 + more * task.group / (task.voters + task.group)

    def exact(self, task: VotingTask) -> bool:
        """Always."""
        return True

    def epsilon(self, task: VotingTask) -> Fraction:
        """Of the winner alone: log(1 + (odds - 1) / T) for first choices."""
        return log_up(self.ratio(task))

    def properties(self, task: VotingTask) -> tuple[Property, ...]:
        """Strategy-proof; never ex-post efficient."""
        return (TREATS_ALIKE, inefficient(task, self.lottery), TRUTHFUL)

    def to_json(self) -> dict[str, Any]:
        """How much more likely the truth is than each other alternative."""
        return {"family": self.family, "ratio": str(self.odds)}


class LocalDictator:
    """Every report meets epsilon by itself, against whoever sees it."""

    family: ClassVar[str] = "local_dictator"
    name: ClassVar[str] = "randomised response, then one report"
    note: ClassVar[str] = "local-votes"

    def calibrate(self, task: VotingTask, epsilon: Fraction) -> Calibrated | str:
        """Odds of e^epsilon for first choices, more for points that are spread; rounded down to a simple rational."""
        if epsilon <= 0:
            return "with epsilon 0 no report may depend on the vote"
        spread = task.points.per_ballot / task.points.highest if len(task.alternatives) > 1 else Fraction(1)
        return LocalReports(1 + growth_simple(epsilon / max(task.moved, 1)) * spread)
