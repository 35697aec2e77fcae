"""A vote in numbers: ballots, the points that they give, the costs of a winner's law, and what is asked of it.

Ballots, costs and their sums are those that the kernel reads; here they are said in words.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple, TypeAlias

from privspec.kernel.laws.voting import DUMMY_VOTES, PLURALITY
from privspec.kernel.voting import Choice, Cost, Term, Total, Vote
from privspec.model.values import show
from privspec.model.voting import Borda, FirstChoice, Largest, Law, Lottery, Points, Proportional

Costs: TypeAlias = tuple[Cost, ...]
"""A sum of costs: what stands inside E[ ... ] or worst[ ... ], less its constants."""
BallotLaw: TypeAlias = tuple[tuple[Law, Fraction], ...]
"""Points that one ballot gives with their probabilities under the data model, the ballots being independent."""


def beside(form: str, other: Lottery) -> Cost:
    """The cost of a winner's law beside a lottery: its "distance", the "mismatch" of two draws, or "votes missed"."""
    return Cost(Fraction(1), form, other.rule.name, other.number)


# --- in words ---------------------------------------------------------------------------------------------


def cost_words(cost: Cost) -> str:
    """With its weight."""
    other = {
        DUMMY_VOTES.name: "the draw in proportion to points",
        PLURALITY.name: "plurality (the first declared among equals)",
    }.get(cost.family, f"the {cost.family.replace('_', '-')} lottery")
    said = {
        "distance": f"distance (total variation) of the winner's law from {other}",
        "mismatch": f"probability that the winner differs from that of {other}",
        "votes missed": "share of voters who voted for something else than the winner",
    }[cost.form]
    return f"{'' if cost.weight == 1 else f'{show(cost.weight)} times '}the {said}"


def term_words(term: Term) -> str:
    """As in "the average over votes and draws of (...)"."""
    over = "average over votes and draws" if term.operator == "E" else "largest value over all votes"
    return f"the {over} of {' plus '.join(map(cost_words, term.parts))}"


def loss_words(loss: Total | Choice) -> str:
    """A sum, or the number that solving picks with its range."""
    if isinstance(loss, Total):
        parts = [term_words(term) for term in loss.terms]
        return " plus ".join(parts + ([show(loss.offset)] if loss.offset or not parts else []))
    ends = f"between {show(loss.low)} and {show(loss.high)}" if loss.high is not None else f"from {show(loss.low)}"
    what = f"{show(loss.weight)} {'divided by' if loss.inverse else 'times'} {loss.name}"
    what = loss.name if loss.weight == 1 and not loss.inverse else what
    return f"{what}, where solving picks {loss.name} {ends}{', a whole number' if loss.whole else ''}"


# --- the block --------------------------------------------------------------------------------------------


class Limit(NamedTuple):
    """`measured` is at most `bound`; without it the most that a lie brings a voter is what is bounded."""

    line: int
    text: str
    measured: Total | None
    bound: Fraction


class Rounds(NamedTuple):
    """`budget / name` in every requirement: so many votes share it. `count` is None where solving picks it."""

    name: str
    budget: Fraction
    count: int | None  # type: ignore[assignment]  # in place of the method of tuples


class Votes(Vote):
    """Ballots `source[party]`, one for each voter, and one output, a winner that is drawn.

    `voters` serve the loss only where `secret`: some requirement lets voters come and go, so that their number is
    never public. `families`: rules that the spec allows, all where empty.
    """

    __slots__ = ()
    limits: tuple[Limit, ...]
    rounds: Rounds | None

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.output,)

    @property
    def alternatives(self) -> tuple[str, ...]:
        """In the order declared."""
        return self.ballots.alternatives

    @property
    def points(self) -> Points:
        """What one ballot gives to each alternative."""
        return (Borda if self.ballots.borda else FirstChoice)(self.alternatives)

    @property
    def compared(self) -> Lottery:
        """The lottery without noise that distortion is measured from: of the first comparison, else plurality."""
        sums = [line for line in (self.loss, *(limit.measured for limit in self.limits)) if isinstance(line, Total)]
        for cost in (part for line in sums for term in line.terms for part in term.parts):
            if cost.form != "votes missed":
                return Largest() if cost.family == PLURALITY.name else Proportional()
        return Largest()

    @property
    def compared_name(self) -> str:
        """In the language."""
        if self.compared == Largest():
            return PLURALITY.name
        return "borda_lottery" if self.ballots.borda else "random_dictator"

    def words(self) -> tuple[str, ...]:
        m, kind = len(self.alternatives), self.ballots.kind
        form = {"first choice": "names one", "ranking": "ranks all"}.get(kind, f"ranks up to {self.ballots.places}")
        number = (
            f"The number of {self.party}s is a secret; {self.voters:,} serve the loss only."
            if self.secret
            else f"There are {self.voters:,} of them, which everybody knows."
        )
        each = f"{m - 1}, ..., 0 (Borda)" if self.ballots.borda else "one for the first choice"
        said = [
            f"Each {self.party} casts one ballot {self.source}: it {form} of {', '.join(self.alternatives)}. {number}",
            f"One alternative is drawn as {self.output}, by a law that depends on the ballots through their sums of "
            f"points: {each}.",
            f"The loss is {loss_words(self.loss)}.",
        ]
        if self.law is not None:
            alike = len({weight for _, weight in self.law}) == 1
            likely = "all of them equally likely" if alike else "with the weights listed"
            said.append(
                f"For averages ballots are independent, each of {len(self.law)} kinds of points, {likely}; no "
                "guarantee rests on that."
            )
        for limit in self.limits:
            what = "what a lie brings a voter" if limit.measured is None else loss_words(limit.measured)
            said.append(f"Line {limit.line}: {what} is at most {show(limit.bound)}.")
        if self.rounds is not None:
            count = f"{self.rounds.count}" if self.rounds.count else f"{self.rounds.name} (solving picks how many)"
            said.append(f"{count} votes share an epsilon of {show(self.rounds.budget)}, each with the same part of it.")
        if self.families:
            said.append(f"Only rules of the families {', '.join(self.families)} are allowed.")
        return tuple(said)
