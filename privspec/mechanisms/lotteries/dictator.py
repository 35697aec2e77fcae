"""Random dictatorship with dummy votes: the winner in proportion to points + kappa (notes/dummy-votes.md)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from privspec.mechanisms.lotteries.keeping import TREATS_ALIKE, TRUTHFUL, inefficient
from privspec.mechanisms.lotteries.rounding import growth_down, log_up, simplest_up
from privspec.mechanisms.lotteries.rule import Calibrated, Property, VotingTask
from privspec.model.lotteries import Proportional


@dataclass(frozen=True, slots=True)
class DummyVotes:
    """The winner in proportion to (S_a + dummies), `dummies` > 0 points for each alternative."""

    dummies: Fraction
    family: ClassVar[str] = "dictator"
    notes: ClassVar[tuple[str, ...]] = ("dummy-votes",)

    @property
    def lottery(self) -> Proportional:
        """(S_a + k) / (sum S + m k)."""
        return Proportional(self.dummies)

    def ratio(self, task: VotingTask) -> Fraction:
        """(g h + k) / k when replacing; when adding, the larger of the two directions at the size given.

        h are the highest points of a ballot, g the ballots that differ. The most is gained by an alternative that
        had nothing; when adding, another one may lose more to the larger total, at T = 0.
        """
        k, gained = self.dummies, task.moved * task.points.highest
        if task.constant:
            return Fraction(1)
        if not task.adding or task.voters is None:
            return (gained + k) / k
        before = task.points.per_ballot * task.voters + len(task.alternatives) * k
        after = before + task.points.per_ballot * task.group
        return max((gained + k) / k * before / after, after / before)

    def exact(self, task: VotingTask) -> bool:
        """Always."""
        return True

    def epsilon(self, task: VotingTask) -> Fraction:
        """log(1 + g h / k) where the size is not fixed."""
        return log_up(self.ratio(task))

    def properties(self, task: VotingTask) -> tuple[Property, ...]:
        """Strategy-proof; never ex-post efficient."""
        return (TREATS_ALIKE, inefficient(task, self.lottery), TRUTHFUL)

    def to_json(self) -> dict[str, Any]:
        """The dummy votes of each alternative, in points."""
        return {"family": self.family, "dummy_votes": str(self.dummies)}


class Dictator:
    """As few dummy votes as epsilon allows, whatever the number of voters: g h / (e^epsilon - 1)."""

    family: ClassVar[str] = "dictator"
    name: ClassVar[str] = "dummy votes"
    note: ClassVar[str] = "dummy-votes"

    def calibrate(self, task: VotingTask, epsilon: Fraction) -> Calibrated | str:
        """Rounded up to a simple rational; when adding, for every size at once, since no size may be revealed."""
        if epsilon <= 0:
            return "with epsilon 0 no lottery may depend on the votes"
        reach = max(task.moved, 1) * max(task.points.highest, Fraction(1))
        return DummyVotes(simplest_up(reach / growth_down(epsilon)))
