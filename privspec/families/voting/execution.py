"""A plan of a lottery as a mechanism that can be run: ballots, total points, one exact draw.

Draws take integers from the source of randomness and nothing else.

One voter's report, and the winner from the reports of all: nobody else ever sees a ballot.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import singledispatch
from itertools import accumulate
from math import lcm
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import UsageError
from privspec.core.records import dataclass
from privspec.execute import family
from privspec.execute.ballots import NOT_ONE, Ballots, Form, read_ballots, refuse_number
from privspec.execute.drawing import Labels, symbol
from privspec.execute.keeper import given_for, refuse, refuse_untrue
from privspec.kernel.laws import voting as rules
from privspec.kernel.promises import SharedBudget
from privspec.kernel.trust import NOBODY
from privspec.kernel.voting import Executed
from privspec.model import voting as lotteries
from privspec.noise.samplers import Randomness, SimulationRandomness, SystemRandomness

if TYPE_CHECKING:
    from privspec.model.graph import Model


# --- Total points of ballots, exactly: counts are whole numbers, points whole halves


def total_points(points: lotteries.Points, ballots: Ballots) -> tuple[Fraction, ...]:
    """The same as `model.voting.scores`, for many ballots at once."""
    totals = _doubled_borda(ballots) if isinstance(points, lotteries.Borda) else _doubled_first(ballots)
    return tuple(Fraction(int(total), 2) for total in totals)


def _doubled_first(ballots: Ballots) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    doubled = np.zeros(len(ballots.form.alternatives), dtype=np.int64)
    np.add.at(doubled, ballots.ranked[:, 0], 2 * ballots.counts)
    return doubled


def _doubled_borda(ballots: Ballots) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Twice the points: m - 1 less the place for those that are named, the mean of what is left for the others."""
    m = len(ballots.form.alternatives)
    lengths = (ballots.ranked != NOT_ONE).sum(axis=1)
    left = m - 1 - lengths
    # everybody gets what the ballot's unnamed get, then the named get the rest
    doubled = np.full(m, (left * ballots.counts).sum(), dtype=np.int64)
    for place in range(ballots.ranked.shape[1]):
        named = lengths > place
        own = (2 * (m - 1 - place) - left[named]) * ballots.counts[named]
        np.add.at(doubled, ballots.ranked[named, place], own)
    return doubled


def law_in_doubles(lottery: lotteries.Lottery, scores: Sequence[Fraction]) -> NDArray[np.float64]:
    """The law of the winner (m,), rounded: large powers are never written out, as they are in the exact one."""
    return np.array(lottery.rule.law(lottery.number, tuple(scores)), dtype=np.float64)


# --- Exact draws from lotteries: integers from the source of randomness and comparisons of inte

BITS = 1024
"""Length of the numbers that are compared at once, about."""


Sampler: TypeAlias = Callable[[Randomness], int]
"""One draw: the place of the winner among the alternatives."""


def draw(lottery: lotteries.Lottery, scores: Sequence[Fraction], randomness: Randomness) -> int:
    """The place of the winner among the alternatives, by the law of the lottery at these total points, exactly."""
    return sampler(lottery, scores)(randomness)


def sampler(lottery: lotteries.Lottery, scores: Sequence[Fraction]) -> Sampler:
    """Draws from the law of the lottery at these total points, exactly.

    Raises: ValueError where powers of whole and half points would be compared.
    """
    return _sampler(lottery.rule, lottery.number, scores)


@singledispatch
def _sampler(rule: rules.VotingRule, number: Fraction, scores: Sequence[Fraction]) -> Sampler:
    """One uniform integer below the weights of all together."""
    return weighted(rule.weights(number, tuple(scores)))


@_sampler.register
def _(rule: rules.Plurality, number: Fraction, scores: Sequence[Fraction]) -> Sampler:  # noqa: ARG001
    """Without chance."""
    winner = list(scores).index(max(scores))
    return lambda _: winner


@_sampler.register
def _(rule: rules.TurnedWinner, number: Fraction, scores: Sequence[Fraction]) -> Sampler:  # noqa: ARG001
    """The answer that the winner would give."""
    winner, size = list(scores).index(max(scores)), len(scores)
    return lambda randomness: report(number, winner, size, randomness)


@_sampler.register
def _(rule: rules.Exponential, number: Fraction, scores: Sequence[Fraction]) -> Sampler:  # noqa: ARG001
    """Rejection from the uniform law: at least one alternative in m is kept for certain."""
    coins = [Coin.of(number, gap) for gap in lotteries.gaps_of(scores)]

    def drawn(randomness: Randomness) -> int:
        while not coins[chosen := randomness.below(len(coins))].toss(randomness):
            pass
        return chosen

    return drawn


@_sampler.register
def _(rule: rules.PermuteAndFlip, number: Fraction, scores: Sequence[Fraction]) -> Sampler:  # noqa: ARG001
    """Visit in random order and take the first that its coin accepts; one with the most points is always accepted."""
    coins = [Coin.of(number, gap) for gap in lotteries.gaps_of(scores)]

    def drawn(randomness: Randomness) -> int:
        waiting = list(range(len(coins)))
        while True:
            place = randomness.below(len(waiting))
            chosen = waiting[place]
            if coins[chosen].toss(randomness):
                return chosen
            waiting[place] = waiting[-1]
            waiting.pop()

    return drawn


@_sampler.register
def _(rule: rules.OneReport, number: Fraction, scores: Sequence[Fraction]) -> Sampler:  # noqa: ARG001
    """A ballot drawn at random, and the report that its voter would have made: the others need not be made."""
    if not any(scores):
        return weighted(scores)
    ballot, size = weighted(scores), len(scores)
    return lambda randomness: report(number, ballot(randomness), size, randomness)


def report(ratio: Fraction, truth: int, size: int, randomness: Randomness) -> int:
    """k-randomised response: the truth `ratio` times as likely as each of the other size - 1 answers."""
    other = randomness.below(ratio.numerator + (size - 1) * ratio.denominator) - ratio.numerator
    if other < 0:
        return truth
    answer = other // ratio.denominator
    return answer + (answer >= truth)


def weighted(weights: Sequence[Fraction]) -> Sampler:
    """A place with a probability proportional to its weight; any place where all weights are zero."""
    scale = lcm(*(weight.denominator for weight in weights))
    cumulative = list(accumulate(int(weight * scale) for weight in weights))
    if not (total := cumulative[-1]):
        return lambda randomness: randomness.below(len(weights))
    return lambda randomness: bisect_right(cumulative, randomness.below(total))


@dataclass(frozen=True, slots=True)
class Coin:
    """Falls on its good side with probability base^-gap, exactly, for base >= 1 and gap >= 0.

    It is as many coins of probability 1 / base as there are points, several in one comparison with `chunk` (numerator,
    denominator) and the `rest`; the first failure ends it.
    """

    chunks: int
    chunk: tuple[int, int]
    rest: tuple[int, int]

    @classmethod
    def of(cls, base: Fraction, gap: int) -> Self:
        """The coin of a gap."""
        together = max(1, BITS // base.numerator.bit_length())
        chunks, rest = divmod(gap, together)
        top, bottom = base.denominator, base.numerator
        return cls(chunks, (top**together, bottom**together), (top**rest, bottom**rest))

    def toss(self, randomness: Randomness) -> bool:
        """Whether it falls on its good side."""
        top, bottom = self.chunk
        for _ in range(self.chunks):
            if randomness.below(bottom) >= top:
                return False
        return randomness.below(self.rest[1]) < self.rest[0]


@dataclass(frozen=True, eq=False, slots=True)
class VotingMechanism(family.FamilyMechanism):
    """The winner is drawn by `lottery` at the total `points` of the ballots; `voters` is None where it is secret.

    By the `facts` on some lines of the spec every alternative has so many `supporters` at least.
    """

    form: Form
    points: lotteries.Points
    lottery: lotteries.Lottery
    voters: int | None
    output: str
    labels: Labels
    supporters: int = 0
    facts: tuple[int, ...] = ()

    @classmethod
    def of_plan(cls, plan: family.Plan) -> VotingMechanism:
        frame, found = family.read_plan(plan)
        vote, ballots, rule = found.vote, found.vote.ballots, found.rule
        alternatives = tuple(symbol(word) for word in ballots.alternatives)
        if ballots.borda and rule.rule.reported:
            raise ValueError("reports of single voters are first choices")
        least = ballots.size if ballots.kind == "ranking" else 1
        return cls(
            Form(vote.source, vote.party, alternatives, least, ballots.places, found.drops),
            (lotteries.Borda if ballots.borda else lotteries.FirstChoice)(alternatives),
            lotteries.Lottery(rule.rule, rule.number),
            vote.public_voters,
            vote.output,
            Labels.read([vote.output], ballots.alternatives),
            ballots.supporters,
            tuple(one.line for one in frame.facts),
        )

    @staticmethod
    def fit(model: Model, data: Mapping[str, Any], circumstances: family.RunContext) -> None:
        from privspec.problem.elaborate import data_of

        (block,) = model.blocks
        form = Form.of_block(block, drops=data_of(model, model.nodes[block.name]).rule == "drop")
        assert form is not None
        source = given_for(form.name, data)
        found = read_ballots(form, source, texts=circumstances.texts, keeper=circumstances.keeper)
        secret = any(requirement.neighbours.adding for requirement in model.requirements)
        if not secret and found.number != block.type.size:
            refuse_number(form, block.type.size, found.number)

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.output,)

    @property
    def winners(self) -> NDArray[Any]:
        """The alternatives as they are released, in their order."""
        return self.labels.values()[self.output]

    def ballots(self, data: Mapping[str, Any], circumstances: family.RunContext, only: str | None = None) -> Ballots:
        """The ballots of a run.

        Raises: DataError PS0801 to PS0805, PS0809, PS0811, PS0818.
        """
        form = self.form
        family.refuse_unknown(data, (form.name,))
        roll = circumstances.roll
        found = read_ballots(
            form,
            given_for(form.name, data),
            strict=circumstances.strict,
            only=only,
            roll=roll,
            texts=circumstances.texts,
            keeper=circumstances.keeper,
        )
        if roll is None:  # else their number would tell how many were left out
            circumstances.progress("ballots read", found.number, self.voters)
        return found

    def read(self, data: Mapping[str, Any], circumstances: family.RunContext) -> family.Secret:
        """The total points.

        Raises: DataError PS0801 to PS0805, PS0809, PS0811, PS0818, PS0821.
        """
        found = self.ballots(data, circumstances)
        if self.voters is not None and found.number != self.voters:
            refuse_number(found.form, self.voters, found.number)
        points = total_points(self.points, found)
        if min(points) < self.supporters:
            refuse_untrue(self.facts)
        return Electorate(self, points, found.form.rules(strict=circumstances.strict))

    @property
    def by_messages(self) -> bool:
        return self.lottery.rule.reported

    def of_party(self, party: str, keys: family.Keys | None = None) -> family.Mechanism:
        """One voter's part of a run: a report that is private by itself.

        Raises: UsageError PS0844 where the noise is not the voters' own.
        """
        family.refuse_keys(keys)
        return PartyMechanism.of(self, party)

    def combine(self, digest: str, messages: Sequence[Mapping[str, Any]]) -> family.Drawn:
        """One of the reports, drawn at random.

        Raises: UsageError PS0844; DataError PS0811, PS0842, PS0843.
        """
        return combine(self, digest, messages)

    def simulate(self, asked: family.Simulation) -> NDArray[np.float64]:
        """Draws at ballots by input name, by default at nobody's or where the voters are public at equal ballots.

        Returns: numbers of alternatives, or the place of a word in their order (repetitions, 1).
        """
        data = asked.data
        scores = self._equal_ballots() if data is None else self._scores(data)
        figures = self.labels.figures()
        if asked.approximate:
            law = law_in_doubles(self.lottery, scores)
            return np.take(
                figures, np.random.default_rng(asked.seed).choice(len(law), asked.repetitions, p=law), axis=0
            )
        family.refuse_long_simulation(
            asked.repetitions, f"{asked.repetitions} exact draws", "take fewer, or draw in doubles"
        )
        drawn, randomness = sampler(self.lottery, scores), SimulationRandomness(asked.seed)
        return np.take(figures, [drawn(randomness) for _ in range(asked.repetitions)], axis=0)

    def _scores(self, base: Mapping[str, Any]) -> tuple[Fraction, ...]:
        return total_points(self.points, self.ballots(base, family.RunContext()))

    def _equal_ballots(self) -> tuple[Fraction, ...]:
        ballot = self.form.alternatives[: self.form.most]
        return tuple((self.voters or 0) * share for share in self.points.of(ballot))


@dataclass(frozen=True, eq=False, slots=True)
class Electorate(family.Secret):
    """The total points of the alternatives, in their order."""

    mechanism: VotingMechanism
    scores: tuple[Fraction, ...]
    rules: tuple[str, ...]

    def draw(self, randomness: Randomness) -> family.Drawn:
        winner = draw(self.mechanism.lottery, self.scores, randomness)
        return family.Drawn({self.mechanism.output: np.asarray(self.mechanism.winners[winner])})


class VotingExposure(family.Exposure):
    """One output, the winner, whose guarantees hold for all that is released."""

    @property
    def rounds(self) -> SharedBudget | None:
        found: Executed = family.read_plan(self.plan)[1]
        return found.rounds


@dataclass(frozen=True, eq=False, slots=True)
class PartyMechanism(family.Mechanism):
    """The plan for one voter: randomised response to the own first choice."""

    whole: VotingMechanism
    lottery: lotteries.Lottery
    party: str
    index: str

    @classmethod
    def of(cls, whole: VotingMechanism, party: str) -> Self:
        """Raises: UsageError PS0844 if voters make no reports."""
        lottery, index = _local(whole)
        return cls(whole, lottery, party, index)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Who it is from, and the report."""
        return (self.index, family.MESSAGE)

    def read(self, data: Mapping[str, Any], circumstances: family.RunContext) -> family.Secret:
        """The voter's own ballot; data without a column of voters are all its own.

        Raises: DataError PS0811 unless there is exactly one.
        """
        found = self.whole.ballots(data, circumstances, only=self.party)
        if found.number != 1:
            refuse(
                "PS0811",
                f"a {self.index} has one ballot, the data have {found.number}",
                "nothing was drawn and nothing was spent",
            )
        return _OneVoter(self, int(found.ranked[0, 0]), found.form.rules(strict=circumstances.strict))

    def simulate(self, asked: family.Simulation) -> NDArray[np.float64]:
        """Reports of a voter with the given ballot, by default for the first alternative."""
        truth = 0
        if asked.data is not None:
            secret = self.read(asked.data, family.RunContext())
            assert isinstance(secret, _OneVoter)
            truth = secret.choice
        randomness, size = SimulationRandomness(asked.seed), len(self.whole.form.alternatives)
        drawn = [report(self.lottery.number, truth, size, randomness) for _ in range(asked.repetitions)]
        return np.take(self.whole.labels.figures(), drawn, axis=0)


@dataclass(frozen=True, eq=False, slots=True)
class _OneVoter(family.Secret):
    mechanism: PartyMechanism
    choice: int
    rules: tuple[str, ...]

    def draw(self, randomness: Randomness) -> family.Drawn:
        whole = self.mechanism.whole
        answer = report(self.mechanism.lottery.number, self.choice, len(whole.form.alternatives), randomness)
        who = np.array([self.mechanism.party], dtype=object)
        return family.Drawn({self.mechanism.index: who, family.MESSAGE: whole.winners[[answer]]})


def combine(whole: VotingMechanism, digest: str, messages: Sequence[Mapping[str, Any]]) -> family.Drawn:
    """The winner: one of the reports, each with the same probability.

    Which one is drawn costs no privacy, as every report is private by itself.
    Args: messages, one for each voter, as their JSON files hold them.
    Raises: UsageError PS0844; DataError PS0842 (no message of this plan), PS0843 (of another plan), PS0811.
    """
    _, index = _local(whole)
    places = {str(value): place for place, value in enumerate(whole.winners.tolist())}

    def read(outputs: Mapping[str, Any]) -> tuple[str, str]:
        (who,), (answer,) = outputs[index], outputs[family.MESSAGE]
        return str(who), str(answer)

    def flaw(_who: str, answer: str) -> str:
        return "" if answer in places else "names no alternative"

    found = family.messages_by_party(digest, messages, index, read, flaw)
    if whole.voters is not None and len(found) != whole.voters:
        refuse_number(whole.form, whole.voters, len(found))
    randomness, reports = SystemRandomness(), [places[answer] for answer in found.values()]
    winner = reports[randomness.below(len(reports))] if reports else randomness.below(len(places))
    return family.Drawn({whole.output: np.asarray(whole.winners[winner])})


def _local(whole: VotingMechanism) -> tuple[lotteries.Lottery, str]:
    if not whole.by_messages or whole.form.party is None:
        _no_messages()
    return whole.lottery, whole.form.party


def _no_messages() -> NoReturn:
    raise UsageError.of(
        "PS0844",
        "parties make no messages under this plan: chance enters once, where all ballots are counted",
        help=f"with `options: {NOBODY.written}` every voter sends a report that is private by itself",
    )
