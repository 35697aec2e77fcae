"""One party's part of a run, and the release from the messages of all: nobody sees more than noisy statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import Diagnostic, UsageError
from privspec.execute.exact import ExactVector
from privspec.execute.family import Circumstances, Drawn, Mechanism, Secret
from privspec.execute.mechanism import Target
from privspec.execute.problems import refuse
from privspec.execute.randomness import Randomness, SimulationRandomness
from privspec.execute.statistics.mechanism import (
    Executed,
    in_order_of_budgets,
    pooled_value,
    read_statistics,
    refuse_number,
    rules_of,
)
from privspec.model.library import Steps

MESSAGE = "message"
"""The entry of a message that holds the noisy statistic."""


@dataclass(frozen=True, eq=False, slots=True)
class PartyMechanism(Mechanism):
    """The plan for one party: its own records, its own noise; `executed` is that of a single party."""

    executed: Executed
    party: str

    @classmethod
    def of(cls, executed: Executed, party: str) -> Self:
        """Raises: UsageError PS0844 if parties make no messages, or that one has no budget of its own."""
        if not executed.each_party or executed.party is None:
            _no_messages(executed)
        law = executed.laws[0]
        if executed.personal:
            if not party.isdecimal() or not 1 <= int(party) <= executed.parties:
                _refuse_usage(f"{party} is not one of the {executed.parties} members of {executed.party}")
            law = executed.laws[int(party) - 1]
        return cls(replace(executed, parties=1, laws=(law,), weights=None), party)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Who it is from, and the noisy statistic."""
        return (str(self.executed.party), MESSAGE)

    def read(self, data: Mapping[str, Any], circumstances: Circumstances) -> Secret:
        """The party's own rows; data without a column of parties are all its own."""
        parts = [s for _, s in read_statistics(self.executed, data, circumstances, only=self.party) if len(s)]
        found = sum(len(part) for part in parts)
        if found != 1:
            refuse_number(self.executed, found)
        return _OneParty(self, parts[0], circumstances)

    def simulate(
        self,
        repetitions: int,
        seed: int,
        base: ExactVector | Mapping[str, Any] | None,
        target: Target | None,
        *,
        approximate: bool,
    ) -> NDArray[np.float64]:
        """Messages of a party whose statistic is zero."""
        zeros = np.zeros((repetitions, self.executed.route.size), dtype=np.int64)
        return self.executed.laws[0].each(zeros, SimulationRandomness(seed))


@dataclass(frozen=True, eq=False, slots=True)
class _OneParty(Secret):
    mechanism: PartyMechanism
    statistic: Steps
    circumstances: Circumstances

    @property
    def rules(self) -> tuple[str, ...]:
        return rules_of(self.mechanism.executed, self.circumstances.strict)

    def draw(self, randomness: Randomness) -> Drawn:
        noisy = self.mechanism.executed.laws[0].each(self.statistic, randomness)[0]
        who = np.array([self.mechanism.party], dtype=object)
        return Drawn({str(self.mechanism.executed.party): who, MESSAGE: noisy})


def combine(executed: Executed, digest: str, messages: Sequence[Mapping[str, Any]]) -> Drawn:
    """The release, as if one run had made all messages.

    Args: messages, one for each party, as their JSON files hold them.
    Raises: UsageError PS0844; DataError PS0842 (no message of this plan), PS0843 (of another plan), PS0811.
    """
    if not executed.each_party or executed.party is None:
        _no_messages(executed)
    found: dict[str, list[float]] = {}
    for place, message in enumerate(messages, 1):
        who, statistic = _message(executed, digest, message, place)
        if who in found:
            refuse("PS0842", f"message {place} is from a {executed.party} who has sent one already")
        found[who] = statistic
    if len(found) != executed.parties:
        refuse_number(executed, len(found))
    names = list(found)
    # Where all have one budget the order of the messages is no matter: weights are equal.
    order = in_order_of_budgets(executed, names) if executed.personal else range(len(names))
    return Drawn({executed.output: pooled_value(executed, [np.array([found[names[i]] for i in order])])})


def _message(executed: Executed, digest: str, message: Mapping[str, Any], place: int) -> tuple[str, list[float]]:
    try:
        outputs = message["outputs"]
        (who,), statistic = outputs[executed.party], [float(x) for x in outputs[MESSAGE]]
        plan = message["plan_sha256"]
    except (KeyError, TypeError, ValueError):
        refuse("PS0842", f"message {place} is not one of this plan", help="messages are what `run --party` writes")
    if plan != digest:
        refuse("PS0843", f"message {place} was made under another plan", help="all parties need the same plan")
    if len(statistic) != executed.route.size or not np.isfinite(statistic).all():
        refuse("PS0842", f"message {place} is not one of this plan: it is no vector of {executed.route.size} numbers")
    return str(who), statistic


def _no_messages(executed: Executed) -> NoReturn:
    _refuse_usage(
        "parties make no messages under this plan: "
        + ("it has one party" if executed.party is None else "noise enters once, at the pool, which a keeper must see")
    )


def _refuse_usage(message: str) -> NoReturn:
    help_ = "with `options: trust nobody` every party adds noise of its own"
    raise UsageError(Diagnostic("PS0844", message, help=help_))
