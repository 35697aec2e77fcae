"""What one party sends where each reports its own point or number: that report, and the release from all of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import UsageError
from privspec.core.records import dataclass, replace
from privspec.execute import family
from privspec.kernel.trust import CURATOR, NOBODY
from privspec.noise.samplers import Randomness

MESSAGE = "message"
"""The entry of a message that holds the numbers of a report."""


class Held(Protocol):
    """A block whose parties each hold one part."""

    @property
    def output(self) -> str: ...

    @property
    def party(self) -> str | None: ...

    @property
    def count(self) -> int: ...


class Reports(family.BlockMechanism[family.E, family.C]):
    """Independent reports, each of one party's or one record's own."""

    @property
    def held(self) -> Held:
        """What the parties hold."""
        found: Held = self.executed.block
        return found

    def alone(self) -> Self:
        """The same for one party."""
        executed: Any = self.executed
        block = replace(executed.block, count=1, shape=(1, *executed.block.shape[1:]))
        return replace(self, executed=replace(executed, block=block))

    @abstractmethod
    def possible(self, report: Any) -> bool:
        """Whether what was heard may be a report."""

    def by_party(self, number: int) -> Self:
        """The mechanism by which the party of a place reports: that of all, unless each has its own."""
        return self

    def said(self, own: family.Secret, randomness: Randomness) -> NDArray[Any]:
        """What a party says: a draw from its own secret, as texts."""
        report = own.draw(randomness).outputs[self.held.output].reshape(-1)
        return np.array([repr(float(value)) for value in report], dtype=object)

    def heard(self, said: Sequence[Any]) -> Any:
        """What a message says.

        Raises: TypeError, ValueError for what nobody says.
        """
        return [float(str(value)) for value in said]

    def combined(self, reports: Sequence[Any]) -> family.Drawn:
        """The release from the reports of all parties, in order."""
        block = self.executed.block
        return family.Drawn({self.held.output: np.array(reports, dtype=np.float64).reshape(block.shape)})

    @property
    def by_messages(self) -> bool:
        return self.trust != CURATOR.name and self.held.party is not None

    def of_party(self, party: str, keys: family.Keys | None = None) -> family.Mechanism:
        if keys is not None:
            _no_message("no message is masked under `trust nobody`: leave out --key and --roster")
        return OwnReport(self.by_party(self.number(party)), party)

    def number(self, party: str) -> int:
        """The place of a party, from 0.

        Raises: UsageError PS0844 if there is none, or parties make no messages.
        """
        held = self.held
        if held.party is None or self.trust != NOBODY.name:
            _no_message("one keeper sees all data, or each record is one person's, who runs the plan alone")
        if not party.isdecimal() or not 1 <= int(party) <= held.count:
            _no_message(f"there is no {held.party} {party}: they are numbered from 1 to {held.count}")
        return int(party) - 1

    def combine(self, digest: str, messages: Sequence[Mapping[str, Any]]) -> family.Drawn:
        held = self.held

        def read(outputs: Mapping[str, Any]) -> tuple[int, Any]:
            (who,) = outputs[str(held.party)]
            number = self.number(str(who))
            return number, self.by_party(number).heard(outputs[MESSAGE])

        def flaw(number: int, said: Any) -> str:
            return "" if self.by_party(number).possible(said) else f"is no report of {held.party} {number + 1}"

        found = family.messages_by_party(digest, messages, str(held.party), read, flaw)
        family.refuse_missing(found, ((number, str(number + 1)) for number in range(held.count)), str(held.party))
        return self.combined([found[number] for number in range(held.count)])


@dataclass(frozen=True, eq=False, slots=True)
class OwnReport(family.Mechanism):
    """The plan for one party."""

    whole: Reports[Any, Any]
    party: str

    @property
    def outputs(self) -> tuple[str, ...]:
        """Who it is from, and what it says."""
        return str(self.whole.held.party), MESSAGE

    def read(self, data: Mapping[str, Any], circumstances: family.Circumstances) -> family.Secret:
        """The party's own point.

        Raises: DataError.
        """
        own, held = self.whole.alone().read(data, circumstances), self.whole.held

        def say(randomness: Randomness) -> Mapping[str, NDArray[Any]]:
            return {MESSAGE: self.whole.said(own, randomness)}

        return family.OwnMessage(str(held.party), self.party, say, own.rules)

    def simulate(self, asked: family.Simulation) -> NDArray[np.float64]:
        _no_message("a message is simulated as part of a run")


def _no_message(why: str) -> NoReturn:
    help_ = "with `trust nobody` and points of an index set, as in x[person], every party sends its own report"
    raise UsageError.of("PS0844", f"this message cannot be made: {why}", help=help_)
