"""A plan of a lottery as a mechanism that can be run: ballots, total points, one exact draw.

One voter's report, and the winner from the reports of all: nobody else ever sees a ballot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import UsageError
from privspec.execute.ballot_files import Form
from privspec.execute.ballots import Ballots, read_ballots, refuse_number
from privspec.execute.drawing import Labels, symbol
from privspec.execute.family import (
    MESSAGE,
    Circumstances,
    Drawn,
    Exposure,
    Keys,
    Mechanism,
    Plan,
    Rounds,
    Secret,
    Simulation,
    messages_by_party,
    readable_plan,
    refuse_keys,
    refuse_long_simulation,
    refuse_unknown,
)
from privspec.execute.keeper import given_for, refuse
from privspec.families.selection.draws import draw, law_in_doubles, report, sampler, total_points
from privspec.kernel.core.problem import read_frame
from privspec.kernel.core.reading import Item
from privspec.kernel.lemmas.votes import Executed, read_executed
from privspec.model.lotteries import Borda, FirstChoice, LocalPick, Lottery, Points, lottery_of
from privspec.noise.samplers import Randomness, SimulationRandomness, SystemRandomness

if TYPE_CHECKING:
    from privspec.model.graph import Model


def executed_of(plan: Plan) -> Executed:
    """What the kernel judges of a plan.

    Raises: UsageError PS0820 if it is no plan of a vote.
    """
    with readable_plan():
        return read_executed(Item(plan["mechanism"], "mechanism"), read_frame(Item(plan["problem"], "problem")))


@dataclass(frozen=True, eq=False, slots=True)
class LotteryMechanism(Mechanism):
    """The winner is drawn by `lottery` at the total `points` of the ballots; `voters` is None where it is secret."""

    form: Form
    points: Points
    lottery: Lottery
    voters: int | None
    output: str
    labels: Labels

    @classmethod
    def of_plan(cls, plan: Plan) -> LotteryMechanism:
        """Raises: UsageError PS0820; ValueError if this version cannot execute the plan."""
        found = executed_of(plan)
        vote, ballots, rule = found.vote, found.vote.ballots, found.rule
        alternatives = tuple(symbol(word) for word in ballots.alternatives)
        if ballots.borda and rule.family == "local_dictator":
            raise ValueError("reports of single voters are first choices")
        least = ballots.size if ballots.kind == "ranking" else 1
        return cls(
            Form(vote.source, vote.party, alternatives, least, ballots.places, found.drops),
            (Borda if ballots.borda else FirstChoice)(alternatives),
            lottery_of(rule.family, rule.number),
            vote.public_voters,
            vote.output,
            Labels.read([vote.output], ballots.alternatives),
        )

    @property
    def outputs(self) -> tuple[str, ...]:
        """The winner."""
        return (self.output,)

    @property
    def winners(self) -> NDArray[Any]:
        """The alternatives as they are released, in their order."""
        return self.labels.values()[self.output]

    def ballots(self, data: Mapping[str, Any], circumstances: Circumstances, only: str | None = None) -> Ballots:
        """The ballots of a run.

        Raises: DataError PS0801 to PS0805, PS0809, PS0811, PS0818.
        """
        form = self.form
        refuse_unknown(data, (form.name,))
        roll = circumstances.roll
        found = read_ballots(
            form,
            given_for(form.name, data),
            strict=circumstances.strict,
            only=only,
            roll=roll,
            header=circumstances.header,
            keeper=circumstances.keeper,
        )
        if roll is None:  # else their number would tell how many were left out
            circumstances.progress("ballots read", found.number, self.voters)
        return found

    def read(self, data: Mapping[str, Any], circumstances: Circumstances) -> Secret:
        """The total points.

        Raises: DataError PS0801 to PS0805, PS0809, PS0811, PS0818.
        """
        found = self.ballots(data, circumstances)
        if self.voters is not None and found.number != self.voters:
            refuse_number(found.form, self.voters, found.number)
        return Electorate(self, total_points(self.points, found), found.form.rules(strict=circumstances.strict))

    def of_party(self, party: str, keys: Keys | None = None) -> Mechanism:
        """One voter's part of a run: a report that is private by itself.

        Raises: UsageError PS0844 where the noise is not the voters' own.
        """
        refuse_keys(keys)
        return PartyMechanism.of(self, party)

    def combine(self, digest: str, messages: Sequence[Mapping[str, Any]]) -> Drawn:
        """One of the reports, drawn at random.

        Raises: UsageError PS0844; DataError PS0811, PS0842, PS0843.
        """
        return combine(self, digest, messages)

    def simulate(self, asked: Simulation) -> NDArray[np.float64]:
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
        refuse_long_simulation(asked.repetitions, f"{asked.repetitions} exact draws", "take fewer, or draw in doubles")
        drawn, randomness = sampler(self.lottery, scores), SimulationRandomness(asked.seed)
        return np.take(figures, [drawn(randomness) for _ in range(asked.repetitions)], axis=0)

    def _scores(self, base: Mapping[str, Any]) -> tuple[Fraction, ...]:
        return total_points(self.points, self.ballots(base, Circumstances()))

    def _equal_ballots(self) -> tuple[Fraction, ...]:
        ballot = self.form.alternatives[: self.form.most]
        return tuple((self.voters or 0) * share for share in self.points.of(ballot))


@dataclass(frozen=True, eq=False, slots=True)
class Electorate(Secret):
    """The total points of the alternatives, in their order."""

    mechanism: LotteryMechanism
    scores: tuple[Fraction, ...]
    rules: tuple[str, ...]

    def draw(self, randomness: Randomness) -> Drawn:
        """The winner."""
        winner = draw(self.mechanism.lottery, self.scores, randomness)
        return Drawn({self.mechanism.output: np.asarray(self.mechanism.winners[winner])})


class LotteryExposure(Exposure):
    """One output, the winner, whose guarantees hold for all that is released."""

    @property
    def outputs(self) -> frozenset[str]:
        """The winner."""
        return frozenset((executed_of(self.plan).vote.output,))

    @property
    def rounds(self) -> Rounds | None:
        """As they are executed."""
        shared = executed_of(self.plan).rounds
        return None if shared is None else Rounds(*shared, shared[1] / shared[0], shared[0])


@dataclass(frozen=True, eq=False, slots=True)
class PartyMechanism(Mechanism):
    """The plan for one voter: randomised response to the own first choice."""

    whole: LotteryMechanism
    lottery: LocalPick
    party: str
    index: str

    @classmethod
    def of(cls, whole: LotteryMechanism, party: str) -> Self:
        """Raises: UsageError PS0844 if voters make no reports."""
        lottery, index = _local(whole)
        return cls(whole, lottery, party, index)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Who it is from, and the report."""
        return (self.index, MESSAGE)

    def read(self, data: Mapping[str, Any], circumstances: Circumstances) -> Secret:
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

    def simulate(self, asked: Simulation) -> NDArray[np.float64]:
        """Reports of a voter with the given ballot, by default for the first alternative."""
        truth = 0
        if asked.data is not None:
            secret = self.read(asked.data, Circumstances())
            assert isinstance(secret, _OneVoter)
            truth = secret.choice
        randomness, size = SimulationRandomness(asked.seed), len(self.whole.form.alternatives)
        drawn = [report(self.lottery.ratio, truth, size, randomness) for _ in range(asked.repetitions)]
        return np.take(self.whole.labels.figures(), drawn, axis=0)


@dataclass(frozen=True, eq=False, slots=True)
class _OneVoter(Secret):
    mechanism: PartyMechanism
    choice: int
    rules: tuple[str, ...]

    def draw(self, randomness: Randomness) -> Drawn:
        whole = self.mechanism.whole
        answer = report(self.mechanism.lottery.ratio, self.choice, len(whole.form.alternatives), randomness)
        who = np.array([self.mechanism.party], dtype=object)
        return Drawn({self.mechanism.index: who, MESSAGE: whole.winners[[answer]]})


def combine(whole: LotteryMechanism, digest: str, messages: Sequence[Mapping[str, Any]]) -> Drawn:
    """The winner: one of the reports, each with the same probability.

    Which one is drawn costs no privacy, as every report is private by itself.
    Args: messages, one for each voter, as their JSON files hold them.
    Raises: UsageError PS0844; DataError PS0842 (no message of this plan), PS0843 (of another plan), PS0811.
    """
    _, index = _local(whole)
    places = {str(value): place for place, value in enumerate(whole.winners.tolist())}

    def read(outputs: Mapping[str, Any]) -> tuple[str, str]:
        (who,), (answer,) = outputs[index], outputs[MESSAGE]
        return str(who), str(answer)

    def flaw(_who: str, answer: str) -> str:
        return "" if answer in places else "names no alternative"

    found = messages_by_party(digest, messages, index, read, flaw)
    if whole.voters is not None and len(found) != whole.voters:
        refuse_number(whole.form, whole.voters, len(found))
    randomness, reports = SystemRandomness(), [places[answer] for answer in found.values()]
    winner = reports[randomness.below(len(reports))] if reports else randomness.below(len(places))
    return Drawn({whole.output: np.asarray(whole.winners[winner])})


def _local(whole: LotteryMechanism) -> tuple[LocalPick, str]:
    if not isinstance(whole.lottery, LocalPick) or whole.form.party is None:
        _no_messages()
    return whole.lottery, whole.form.party


def _no_messages() -> NoReturn:
    raise UsageError.of(
        "PS0844",
        "parties make no messages under this plan: chance enters once, where all ballots are counted",
        help="with `options: trust nobody` every voter sends a report that is private by itself",
    )


def fit(model: Model, data: Mapping[str, Any], circumstances: Circumstances) -> None:
    """How data fit the spec, told to the keeper; nothing is solved and nothing released.

    Raises: DataError where their structure does not fit, as a run does.
    """
    from privspec.problem.elaborate import data_of

    (block,) = model.blocks
    form = Form.of_block(block, drops=data_of(model, model.nodes[block.name]).rule == "drop")
    assert form is not None
    source = given_for(form.name, data)
    found = read_ballots(form, source, header=circumstances.header, keeper=circumstances.keeper)
    secret = any(requirement.neighbours.adding for requirement in model.requirements)
    if not secret and found.number != block.type.size:
        refuse_number(form, block.type.size, found.number)
