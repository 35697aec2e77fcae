"""A vote in numbers: ballots, the points that they give, the costs of a winner's law, and what is asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from math import perm
from typing import ClassVar, TypeAlias

from privspec.model.lotteries import (
    Borda,
    FirstChoice,
    Largest,
    Law,
    Lottery,
    Points,
    Proportional,
    lottery_of,
)
from privspec.model.values import show

KINDS = 5040
"""Kinds of ballots that are listed."""


# --- costs of a winner's law at one profile -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cost:
    """`weight` times what a winner's law costs at a profile, beside another lottery of the same points.

    `form`: "distance" is the total variation of the two laws, "mismatch" the probability that two independent draws
    differ, "votes missed" the share of first choices that the winner does not have: the mismatch with the draw in
    proportion to points. `family` and `number` are those of the lottery.
    """

    weight: Fraction
    form: str
    family: str
    number: Fraction = Fraction(0)

    @classmethod
    def beside(cls, form: str, other: Lottery) -> Cost:
        return cls(Fraction(1), form, other.family, other.number)

    @property
    def other(self) -> Lottery:
        return lottery_of(self.family, self.number)

    @property
    def shares(self) -> bool:
        """Whether it is compared with the draw in proportion to points."""
        return self.family == Proportional.family and not self.number

    @property
    def plurality(self) -> bool:
        return self.family == Largest.family

    def at(self, law: Law, scores: Sequence[Fraction]) -> Fraction:
        """Exactly, at one profile."""
        pairs = list(zip(law, self.other.law(scores), strict=True))
        if self.form == "distance":
            return self.weight * sum((abs(p - q) for p, q in pairs), Fraction(0)) / 2
        return self.weight * (1 - sum((p * q for p, q in pairs), Fraction(0)))

    @property
    def words(self) -> str:
        """With its weight."""
        other = {
            Proportional.family: "the draw in proportion to points",
            Largest.family: "plurality (the first declared among equals)",
        }.get(self.family, f"the {self.family.replace('_', '-')} lottery")
        said = {
            "distance": f"distance (total variation) of the winner's law from {other}",
            "mismatch": f"probability that the winner differs from that of {other}",
            "votes missed": "share of voters who voted for something else than the winner",
        }[self.form]
        return f"{'' if self.weight == 1 else f'{show(self.weight)} times '}the {said}"


Costs: TypeAlias = tuple[Cost, ...]
"""A sum of costs: what stands inside E[ ... ] or worst[ ... ], less its constants."""


@dataclass(frozen=True, slots=True)
class Term:
    """E[parts] or worst[parts]: `operator` is "E" or "worst"."""

    operator: str
    parts: Costs

    @property
    def words(self) -> str:
        """As in "the average over votes and draws of (...)"."""
        over = "average over votes and draws" if self.operator == "E" else "largest value over all votes"
        return f"the {over} of {' plus '.join(cost.words for cost in self.parts)}"


@dataclass(frozen=True, slots=True)
class Measured:
    """A sum of terms and a constant: a loss, or the left side of an accuracy line."""

    FORM: ClassVar[str] = "measured"

    terms: tuple[Term, ...]
    offset: Fraction = Fraction(0)

    @property
    def words(self) -> str:
        """The sum."""
        parts = [term.words for term in self.terms]
        return " plus ".join(parts + ([show(self.offset)] if self.offset or not parts else []))


@dataclass(frozen=True, slots=True)
class Choice:
    """A number in [low, high] that solving picks, and that is the whole loss: weight * it, or weight / it.

    `high` is None where the range has no end; `whole`: a whole number, of rounds that share a budget.
    """

    FORM: ClassVar[str] = "choice"

    name: str
    low: Fraction
    high: Fraction | None
    whole: bool = False
    weight: Fraction = Fraction(1)
    inverse: bool = False

    def loss(self, number: Fraction | int) -> Fraction:
        """Of a number."""
        return self.weight / number if self.inverse else self.weight * number

    def number(self, loss: Fraction) -> Fraction:
        """Of a loss."""
        return self.weight / loss if self.inverse else loss / self.weight

    @property
    def words(self) -> str:
        """With its range."""
        ends = f"between {show(self.low)} and {show(self.high)}" if self.high is not None else f"from {show(self.low)}"
        what = f"{show(self.weight)} {'divided by' if self.inverse else 'times'} {self.name}"
        what = self.name if self.weight == 1 and not self.inverse else what
        return f"{what}, where solving picks {self.name} {ends}{', a whole number' if self.whole else ''}"


@dataclass(frozen=True, slots=True)
class Limit:
    """`measured` is at most `bound`; without it the most that a lie brings a voter is what is bounded."""

    line: int
    text: str
    measured: Measured | None
    bound: Fraction

    @property
    def lies(self) -> bool:
        """Whether it is about lies."""
        return self.measured is None


@dataclass(frozen=True, slots=True)
class Ballots:
    """What voters cast: `kind` "first choice", "ranking" or "partial ranking", of up to `places` of the alternatives.

    `counted`: the points that they give, "first choice" or "borda".
    """

    kind: str
    alternatives: tuple[str, ...]
    places: int
    counted: str

    @property
    def points(self) -> Points:
        """What one ballot gives to each alternative."""
        return (Borda if self.counted == Borda.name else FirstChoice)(self.alternatives)

    @property
    def whole(self) -> bool:
        """Whether every ballot is sure to give whole numbers of points."""
        return self.kind != "partial ranking" or self.counted == FirstChoice.name

    def kinds(self) -> tuple[Law, ...]:
        """The points that one ballot may give, each once; empty where there are too many kinds of ballots."""
        points, m = self.points, len(self.alternatives)
        if isinstance(points, FirstChoice):
            return tuple(points.of(a) for a in self.alternatives)
        lengths = (m,) if self.kind == "ranking" else range(1, self.places + 1)
        if sum(perm(m, k) for k in lengths) > KINDS:
            return ()
        return tuple(dict.fromkeys(points.of(order) for k in lengths for order in permutations(self.alternatives, k)))


BallotLaw: TypeAlias = tuple[tuple[Law, Fraction], ...]
"""Points that one ballot gives with their probabilities under the data model, the ballots being independent."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """`budget / name` in every requirement: so many votes share it. `count` is None where solving picks it."""

    name: str
    budget: Fraction
    count: int | None


@dataclass(frozen=True, slots=True)
class Votes:
    """Ballots `source[party]`, one for each voter, and one output, a winner that is drawn.

    `voters` serve the loss only where `secret`: some requirement lets voters come and go, so that their number is
    never public. `families`: rules that the spec allows, all where empty.
    """

    FORM: ClassVar[str] = "votes"

    source: str
    party: str
    output: str
    voters: int
    secret: bool
    ballots: Ballots
    law: BallotLaw | None
    loss: Measured | Choice
    expression: str
    limits: tuple[Limit, ...]
    rounds: Rounds | None
    families: tuple[str, ...]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The winner."""
        return (self.output,)

    @property
    def alternatives(self) -> tuple[str, ...]:
        return self.ballots.alternatives

    @property
    def compared(self) -> Lottery:
        """The lottery without noise that distortion is measured from: of the first comparison, else plurality."""
        sums = [line for line in (self.loss, *(limit.measured for limit in self.limits)) if isinstance(line, Measured)]
        for cost in (part for line in sums for term in line.terms for part in term.parts):
            if cost.form != "votes missed":
                return Largest() if cost.plurality else Proportional()
        return Largest()

    @property
    def compared_name(self) -> str:
        """In the language."""
        if self.compared == Largest():
            return "plurality"
        return "random_dictator" if self.ballots.counted == FirstChoice.name else "borda_lottery"

    def words(self) -> tuple[str, ...]:
        """What it says, in full sentences."""
        m, kind = len(self.alternatives), self.ballots.kind
        form = {"first choice": "names one", "ranking": "ranks all"}.get(kind, f"ranks up to {self.ballots.places}")
        number = (
            f"The number of {self.party}s is a secret; {self.voters:,} serve the loss only."
            if self.secret
            else f"There are {self.voters:,} of them, which everybody knows."
        )
        each = "one for the first choice" if self.ballots.counted == FirstChoice.name else f"{m - 1}, ..., 0 (Borda)"
        said = [
            f"Each {self.party} casts one ballot {self.source}: it {form} of {', '.join(self.alternatives)}. {number}",
            f"One alternative is drawn as {self.output}, by a law that depends on the ballots through their sums of "
            f"points: {each}.",
            f"The loss is {self.loss.words}.",
        ]
        if self.law is not None:
            alike = len({weight for _, weight in self.law}) == 1
            likely = "all of them equally likely" if alike else "with the weights listed"
            said.append(
                f"For averages ballots are independent, each of {len(self.law)} kinds of points, {likely}; no "
                "guarantee rests on that."
            )
        for limit in self.limits:
            what = "what a lie brings a voter" if limit.measured is None else limit.measured.words
            said.append(f"Line {limit.line}: {what} is at most {show(limit.bound)}.")
        if self.rounds is not None:
            count = f"{self.rounds.count}" if self.rounds.count else f"{self.rounds.name} (solving picks how many)"
            said.append(f"{count} votes share an epsilon of {show(self.rounds.budget)}, each with the same part of it.")
        if self.families:
            said.append(f"Only rules of the families {', '.join(self.families)} are allowed.")
        return tuple(said)
