"""A vote as the compiler solves it: its block of the problem, and which electorates each requirement compares."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from privspec.core.spans import Span
from privspec.families.selection.rules import VotingTask
from privspec.model.graph import Model
from privspec.model.lotteries import Lottery, Points
from privspec.model.requirements import Nobody, Requirement
from privspec.problem.elaborate import obligation_of
from privspec.problem.types import Obligation
from privspec.problem.vote_forms import BallotLaw, Choice, Limit, Measured, Rounds, Votes
from privspec.problem.votes import votes_of


@dataclass(frozen=True, slots=True)
class Promise:
    """A requirement with the electorates that it compares; `epsilon` is None where the solver picks it."""

    index: int
    requirement: Requirement
    task: VotingTask
    epsilon: Fraction | None


@dataclass(frozen=True, eq=False, slots=True)
class LotterySystem:
    """The numbers of a vote are those of its block; the model serves diagnostics and names."""

    model: Model
    votes: Votes
    promises: tuple[Promise, ...]

    @property
    def source(self) -> str:
        """The input."""
        return self.votes.source

    @property
    def party(self) -> str:
        """The index set of the voters."""
        return self.votes.party

    @property
    def voters(self) -> int:
        """Their number, for losses."""
        return self.votes.voters

    @property
    def points(self) -> Points:
        """What a ballot gives."""
        return self.votes.ballots.points

    @property
    def alternatives(self) -> tuple[str, ...]:
        """In the order declared."""
        return self.votes.alternatives

    @property
    def output(self) -> str:
        """The winner."""
        return self.votes.output

    @property
    def loss(self) -> Measured:
        """The sum of costs; empty where the loss is a number that solving picks."""
        return self.votes.loss if isinstance(self.votes.loss, Measured) else Measured(())

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Accuracy lines."""
        return self.votes.limits

    @property
    def compared(self) -> Lottery:
        """The lottery without noise that distortion is measured from."""
        return self.votes.compared

    @property
    def law(self) -> BallotLaw | None:
        """The data model of one ballot."""
        return self.votes.law

    @property
    def rounds(self) -> Rounds | None:
        """Votes that share a budget."""
        return self.votes.rounds

    @property
    def local(self) -> bool:
        """Whether nobody is trusted with the ballots."""
        return isinstance(self.model.trust, Nobody)

    @property
    def picked(self) -> Choice | None:
        """The number that solving picks, of either kind."""
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

    @property
    def chosen_span(self) -> Span | None:
        """Where the number stands that solving picks."""
        return None if self.picked is None else self.model.nodes[self.picked.name].span

    @property
    def adding(self) -> bool:
        """Whether the number of voters is secret."""
        return self.votes.secret


def lower(model: Model) -> LotterySystem:
    """The system of a vote.

    Raises: SpecError PS05xx with the first construct that cannot be computed.
    """
    votes = votes_of(model)
    return LotterySystem(
        model, votes, tuple(_promise(model, votes, i, line) for i, line in enumerate(model.requirements))
    )


def _promise(model: Model, votes: Votes, index: int, requirement: Requirement) -> Promise:
    """A requirement as the problem says it."""
    obligation = obligation_of(model, requirement)
    amount = dict(obligation.measure.amounts)["epsilon"]
    return Promise(index, requirement, task_of(votes, obligation), amount if isinstance(amount, Fraction) else None)


def task_of(votes: Votes, obligation: Obligation) -> VotingTask:
    """The electorates that an obligation compares."""
    (unit,) = obligation.units
    return VotingTask(
        votes.ballots.points,
        None if votes.secret else votes.voters,
        unit.adding,
        votes.voters if unit.kind == "everything" else unit.count,
        votes.ballots.whole,
    )
