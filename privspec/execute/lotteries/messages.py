"""One voter's report, and the winner from the reports of all: nobody else ever sees a ballot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import Diagnostic, UsageError
from privspec.execute.ballots.reading import refuse_number
from privspec.execute.exact import ExactVector
from privspec.execute.family import Circumstances, Drawn, Mechanism, Secret
from privspec.execute.lotteries.draws import report
from privspec.execute.lotteries.mechanism import LotteryMechanism
from privspec.execute.mechanism import Target
from privspec.execute.problems import refuse
from privspec.execute.randomness import Randomness, SimulationRandomness, SystemRandomness
from privspec.model.lotteries import LocalPick

MESSAGE = "message"
"""The entry of a message that holds the report."""


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

    def simulate(
        self,
        repetitions: int,
        seed: int,
        base: ExactVector | Mapping[str, Any] | None,
        target: Target | None,
        *,
        approximate: bool,
    ) -> NDArray[np.float64]:
        """Reports of a voter with the given ballot, by default for the first alternative."""
        truth = 0
        if base is not None and not isinstance(base, ExactVector):
            secret = self.read(base, Circumstances())
            assert isinstance(secret, _OneVoter)
            truth = secret.choice
        randomness, size = SimulationRandomness(seed), len(self.whole.form.alternatives)
        drawn = [report(self.lottery.ratio, truth, size, randomness) for _ in range(repetitions)]
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
    found: dict[str, int] = {}
    for place, message in enumerate(messages, 1):
        who, answer = _message(index, places, digest, message, place)
        if who in found:
            refuse("PS0842", f"message {place} is from a {index} who has sent one already")
        found[who] = answer
    if whole.voters is not None and len(found) != whole.voters:
        refuse_number(whole.form, whole.voters, len(found))
    randomness, reports = SystemRandomness(), list(found.values())
    winner = reports[randomness.below(len(reports))] if reports else randomness.below(len(places))
    return Drawn({whole.output: np.asarray(whole.winners[winner])})


def _message(
    index: str, places: Mapping[str, int], digest: str, message: Mapping[str, Any], place: int
) -> tuple[str, int]:
    try:
        outputs = message["outputs"]
        (who,), (answer,) = outputs[index], outputs[MESSAGE]
        plan = message["plan_sha256"]
    except (KeyError, TypeError, ValueError):
        refuse("PS0842", f"message {place} is not one of this plan", help="messages are what `run --party` writes")
    if plan != digest:
        refuse("PS0843", f"message {place} was made under another plan", help="all parties need the same plan")
    if str(answer) not in places:
        refuse("PS0842", f"message {place} is not one of this plan: it names no alternative")
    return str(who), places[str(answer)]


def _local(whole: LotteryMechanism) -> tuple[LocalPick, str]:
    if not isinstance(whole.lottery, LocalPick) or whole.form.party is None:
        _no_messages()
    return whole.lottery, whole.form.party


def _no_messages() -> NoReturn:
    raise UsageError(
        Diagnostic(
            "PS0844",
            "parties make no messages under this plan: chance enters once, where all ballots are counted",
            help="with `options: trust nobody` every voter sends a report that is private by itself",
        )
    )
