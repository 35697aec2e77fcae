"""A vote that the compiler takes: its block, and the electorates that each of its lines compares."""

from __future__ import annotations

from fractions import Fraction

from privspec.core.records import dataclass
from privspec.core.spans import Span
from privspec.families.selection.rules import VotingTask
from privspec.kernel.core.problem import Obligation
from privspec.kernel.lemmas.votes import Choice, Total
from privspec.model.graph import Model
from privspec.model.requirements import Requirement
from privspec.problem.elaborate import obligation_of
from privspec.problem.vote_forms import Votes
from privspec.problem.votes import block_of


@dataclass(frozen=True, slots=True)
class Promise:
    """A requirement with the electorates that it compares; `epsilon` is None where the solver picks it.

    `obligation` is what the kernel reads of it.
    """

    index: int
    requirement: Requirement
    obligation: Obligation
    task: VotingTask
    epsilon: Fraction | None

    @property
    def pure(self) -> bool:
        return self.obligation.measure.name == "epsilon-DP"


@dataclass(frozen=True, eq=False, slots=True)
class LotterySystem:
    """The numbers of a vote are those of its block; the model serves diagnostics.

    `loss` is the sum of costs, empty where the loss is a number that solving picks: `picked`.
    """

    model: Model
    votes: Votes
    promises: tuple[Promise, ...]

    @property
    def loss(self) -> Total:
        return self.votes.loss if isinstance(self.votes.loss, Total) else Total((), Fraction(0))

    @property
    def picked(self) -> Choice | None:
        return self.votes.loss if isinstance(self.votes.loss, Choice) else None

    @property
    def chosen(self) -> Choice | None:
        """The epsilon that solving picks."""
        return None if self.picked is None or self.picked.whole else self.picked

    @property
    def counted(self) -> Choice:
        """The number of rounds that solving picks; only where it does."""
        assert self.picked is not None and self.picked.whole
        return self.picked

    @property
    def counting(self) -> bool:
        """Whether solving picks the number of rounds."""
        return self.picked is not None and self.picked.whole

    def loss_of(self, count: int | Fraction) -> Fraction:
        """Of so many rounds."""
        return self.counted.weight / count if self.counted.inverse else self.counted.weight * count

    def count_of(self, loss: Fraction) -> int:
        """The number of rounds of a loss."""
        return int(self.counted.weight / loss if self.counted.inverse else loss / self.counted.weight)

    @property
    def chosen_span(self) -> Span | None:
        """Where the number stands that solving picks."""
        return None if self.picked is None else self.model.nodes[self.picked.name].span

    @property
    def local(self) -> bool:
        """Whether nobody is trusted with the ballots."""
        return self.model.trust.alone


def lower(model: Model) -> LotterySystem:
    """The system of a vote, also of one that a table is for.

    Raises: SpecError PS05xx with the first construct that cannot be computed.
    """
    votes = block_of(model)
    promises = []
    for i, line in enumerate(model.requirements):
        asked = obligation_of(model, line)
        amount = dict(asked.measure.amounts)["epsilon"]
        adding, group = asked.units[0].adding, votes.group(asked)
        task = VotingTask(votes.points, votes.public_voters, adding, group, votes.ballots.whole)
        promises.append(Promise(i, line, asked, task, amount if isinstance(amount, Fraction) else None))
    return LotterySystem(model, votes, tuple(promises))
