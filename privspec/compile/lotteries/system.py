"""A vote as the compiler reads it: ballots, who must look alike, and what the winner's law is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from privspec.compile.lotteries.costs import Body
from privspec.core.spans import Span
from privspec.mechanisms.lotteries.rule import VotingTask
from privspec.model.graph import Model
from privspec.model.lotteries import Lottery, Points
from privspec.model.requirements import AccuracyTarget, Requirement
from privspec.model.values import Symbol


@dataclass(frozen=True, slots=True)
class Promise:
    """A requirement with the electorates that it compares; `epsilon` is None where the solver picks it."""

    index: int
    requirement: Requirement
    task: VotingTask
    epsilon: Fraction | None


@dataclass(frozen=True, slots=True)
class Term:
    """weight * E[body] or weight * worst[body]."""

    weight: Fraction
    operator: str
    body: Body
    span: Span


@dataclass(frozen=True, slots=True)
class Measured:
    """A sum of terms and a constant: a loss, or the left side of an accuracy line."""

    terms: tuple[Term, ...]
    offset: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class Limit:
    """`measured` <= `bound`; with `lies`, the most that a lie brings a voter is what is bounded."""

    target: AccuracyTarget
    measured: Measured
    bound: Fraction
    lies: bool = False


@dataclass(frozen=True, slots=True)
class ChosenEpsilon:
    """`choose name in [low, high]`, which is the whole loss; `high` is None where there is no end."""

    name: str
    low: Fraction
    high: Fraction | None
    span: Span


@dataclass(frozen=True, slots=True)
class Rounds:
    """`budget / name` in every requirement: one of `name` rounds spends that much.

    `count` is None where the solver picks it from low..high; the loss is then weight * name, or with `inverse` weight /
    name.
    """

    name: str
    budget: Fraction
    count: int | None
    low: int
    high: int
    span: Span
    weight: Fraction = Fraction(-1)
    inverse: bool = False

    def loss(self, count: int) -> Fraction:
        """Of so many rounds."""
        return self.weight / count if self.inverse else self.weight * count

    def count_of(self, loss: Fraction) -> int:
        """The rounds of a loss."""
        return int(self.weight / loss if self.inverse else loss / self.weight)


@dataclass(frozen=True, slots=True)
class BallotLaw:
    """The law of the points of one ballot under the data model, the ballots being independent."""

    line: int
    points: tuple[tuple[Fraction, ...], ...]
    weights: tuple[Fraction, ...]


@dataclass(frozen=True, eq=False, slots=True)
class LotterySystem:
    """Everything in exact numbers.

    `ballots`: "first choice", "ranking" or "partial ranking"; `longest`: alternatives that a ballot names at most;
    `compared`: the lottery without noise that distortion is measured from, and its name in the language; `local`:
    whether nobody is trusted with the ballots.
    """

    model: Model
    source: str
    party: str
    voters: int
    points: Points
    ballots: str
    longest: int
    output: str
    promises: tuple[Promise, ...]
    loss: Measured
    limits: tuple[Limit, ...]
    compared: Lottery
    compared_name: str
    chosen: ChosenEpsilon | None
    law: BallotLaw | None
    local: bool
    rounds: Rounds | None = None

    @property
    def counting(self) -> bool:
        """Whether the solver picks the number of rounds."""
        return self.rounds is not None and self.rounds.count is None

    @property
    def chosen_span(self) -> Span | None:
        """Where the number stands that the solver picks."""
        if self.rounds is not None and self.counting:
            return self.rounds.span
        return None if self.chosen is None else self.chosen.span

    @property
    def alternatives(self) -> tuple[Symbol, ...]:
        """In the order declared."""
        return self.points.alternatives

    @property
    def adding(self) -> bool:
        """Whether the number of voters is secret: no requirement takes it as known."""
        return bool(self.promises) and all(promise.task.adding for promise in self.promises)
