"""What one party sends of its part of linear answers: noisy answers of its own, or its masked part of a secure sum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, partial
from math import lcm
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import UsageError
from privspec.core.matrices import DyadicMatrix, ExactVector, Integers, integers, multiply
from privspec.core.records import dataclass, replace
from privspec.execute.data import Grid, data_rules, place_entries, read_inputs
from privspec.execute.family import (
    MESSAGE,
    PARTY,
    Circumstances,
    Keys,
    Mechanism,
    OwnMessage,
    Secret,
    Simulation,
    messages_by_party,
    refuse_missing,
)
from privspec.execute.keeper import refuse
from privspec.families.gaussian.masks import WORD, Roster, added, read_key, take
from privspec.kernel.core.linear import Held, Release
from privspec.kernel.trust import CURATOR
from privspec.noise.law import NoiseLaw
from privspec.noise.samplers import Randomness
from privspec.noise.shares import Shares, on_points

ROSTER = "roster"
"""The entry of a message that holds the digest of the keys that mask its numbers, which are in steps of the lattice."""
RECORD = "record"
"""What parties are called who are of no set, each with a record of its own."""
COUNTED = 2**40
"""Records up to which sums of counts have room."""
DEVIATIONS = 2**10
"""Standard deviations of noise that sums have room for."""


class Run(Protocol):
    """What is executed, of what all parties hold."""

    @property
    def inputs(self) -> tuple[Grid, ...]: ...

    @property
    def strategy(self) -> DyadicMatrix: ...

    @property
    def noise(self) -> NoiseLaw: ...

    @property
    def release(self) -> Release: ...


class Whole(Protocol):
    """The mechanism of a plan: what it executes, the grid of its outputs, who is trusted, and its digest."""

    @property
    def executed(self) -> Run: ...

    @property
    def grid(self) -> str: ...

    @property
    def trust(self) -> str: ...

    @property
    def digest(self) -> str: ...


@dataclass(frozen=True, eq=False)
class Parts:
    """Who holds which coordinates of the base vector: parties of one set or several, or each its record."""

    executed: Run
    trust: str

    @cached_property
    def sets(self) -> Mapping[str, int]:
        """The sets of parties, and how many there are of each.

        Raises: UsageError PS0844 where data are not those of parties, or a keeper sees them.
        """
        if not self.apart:
            _no_messages("one keeper sees all data, or they are not those of parties")
        return {one.index or RECORD: one.held.shape[0] for one in self.executed.inputs}

    @property
    def apart(self) -> bool:
        """Whether parties hold the data and nobody sees them all."""
        inputs = self.executed.inputs
        records = len(inputs) == 1 and len(inputs[0].held.shape) == 1 and not inputs[0].held.cells
        return self.trust != CURATOR.name and all(one.index is not None or records for one in inputs)

    @cached_property
    def index(self) -> str:
        """What the parties are called."""
        return min(self.sets) if len(self.sets) == 1 else PARTY

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of all parties, in order: numbers, with the set before them where there are several."""
        return tuple(
            str(k + 1) if len(self.sets) == 1 else f"{name}:{k + 1}"
            for name, size in self.sets.items()
            for k in range(size)
        )

    @property
    def sums(self) -> bool:
        """Whether messages are added up in a secure sum."""
        return isinstance(self.executed.noise, Shares)

    @cached_property
    def parties(self) -> int:
        """How many there are."""
        return len(self.names)

    def number(self, party: str) -> int:
        """The place of a party, from 0.

        Raises: UsageError PS0844 if there is none.
        """
        if party not in self._numbers:
            _no_messages(f"there is no {self.index} {party}: they are {self.names[0]} to {self.names[-1]}")
        return self._numbers[party]

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def held(self, number: int) -> tuple[int, list[Grid]]:
        """The place of a party in its set, and the inputs of which it has a part."""
        for name, size in self.sets.items():
            if number < size:
                return number, [one for one in self.executed.inputs if (one.index or RECORD) == name]
            number -= size
        raise IndexError

    def coordinates(self, number: int) -> NDArray[np.intp]:
        """What a party has a part in, input by input."""
        (number, inputs), found = self.held(number), []
        for one in inputs:
            at, alike = self.executed.release.problem.places[one.held.start]
            size = one.size // one.held.shape[0]
            start = at + number * size if alike.counts == (1,) else at + self._class(one.held.start, number) * size
            found.append(np.arange(start, start + size, dtype=np.intp))
        return np.concatenate(found)

    def _class(self, start: int, number: int) -> int:
        """The class of the unit at a place of the input that starts there."""
        _, alike = self.executed.release.problem.places[start]
        return alike.classes[int(np.searchsorted(self._ends[start], number, side="right"))]

    @cached_property
    def _ends(self) -> Mapping[int, NDArray[np.intp]]:
        """Where the runs of units of one class end, by the start of each input."""
        return {start: np.cumsum(one.counts) for start, (_, one) in self.executed.release.problem.places.items()}

    def rows(self, number: int) -> NDArray[np.intp]:
        """The answers that a party sends: all sums, or those that depend on its values, the first those of none."""
        moved = self.executed.strategy.integers != 0
        if self.sums:
            return np.arange(len(moved))
        owned = moved[:, self.coordinates(number)].any(axis=1)
        return np.flatnonzero(owned | (~moved.any(axis=1) & (number == 0)))

    def inputs(self, number: int) -> tuple[Grid, ...]:
        """What a party holds of each input."""
        found = []
        for one in self.held(number)[1]:
            held, size = one.held, one.size // one.held.shape[0]
            shape = held.shape[1:] if held.cells else (1, *held.shape[1:])
            columns = held.columns[1:] if held.cells else held.columns
            own = replace(held, start=0, stop=size, shape=shape, columns=columns, units=None)
            found.append(replace(one, held=own))
        return tuple(found)

    @cached_property
    def bits(self) -> int:
        """Whole words for the sums of all parties, in steps of the lattice, with room for their noise."""
        release = self.executed.release
        places = release.problem.places
        most = max(_largest(held) * max(places[held.start][1].copies) for held in release.problem.held)
        rows = np.abs(self.executed.strategy.integers).sum(axis=1, dtype=object)
        reach = most * max(rows, default=0) * self.executed.strategy.unit / release.grid
        noise = self.executed.noise.row_variances(len(rows), release.grid).max(initial=0.0) ** 0.5
        room = int(reach) + int(Fraction(float(noise)) * DEVIATIONS / release.grid) + 2
        return WORD * -(-(room.bit_length() + 2) // WORD)


def _largest(held: Held) -> Fraction:
    """The size of a number of an input, or of what sums have room for where it has no limit."""
    if held.ball:
        return held.ball[0]
    if held.lower is None or held.upper is None:
        return Fraction(COUNTED)
    return max(abs(held.lower), abs(held.upper))


AT_ONCE = 2**17
"""Answers of parties who count alike that are worked out and drawn at once."""


def sent(run: Run, values: Sequence[NDArray[Any]], randomness: Randomness) -> Integers:
    """The sums of what all parties send, each its answers with noise of its own, in steps of the lattice.

    Args: values, of each input what `read_values` reads.
    """
    matrix, law, grid = run.strategy, run.noise, run.release.grid
    found, used = integers([0] * matrix.shape[0]), matrix.integers != 0
    for inputs, columns, members in _classes(run):
        rows = np.flatnonzero(used[:, columns].any(axis=1))
        own = DyadicMatrix(np.ascontiguousarray(matrix.integers[np.ix_(rows, columns)]), matrix.exponent)
        each = max(AT_ONCE // max(len(columns), len(rows), 1), 1)
        for start in range(0, len(members) if len(rows) else 0, each):
            some = members[start : start + each]
            held = [place_entries(one, values[i].reshape(-1, size)[some].ravel()) for i, one, size in inputs]
            base = _beside(
                [part.numerators.reshape(len(some), -1) for part in held], [part.denominator for part in held]
            )
            answers = multiply(own, ExactVector(base.numerators.T, base.denominator))
            for parts in [[k] for k in range(len(rows))] if law.separate else [list(range(len(rows)))]:
                asked = ExactVector(answers.numerators[parts].ravel(), answers.denominator)
                noisy = law.part(rows[parts]).release(asked, grid, randomness)
                found[rows[parts]] += noisy.reshape(len(parts), -1).sum(axis=1)
    none = np.flatnonzero(~used.any(axis=1))
    if len(none):
        found[none] = law.part(none).release(ExactVector(integers([0] * len(none)), 1), grid, randomness)
    return found


def _beside(parts: list[Integers], below: list[int]) -> ExactVector:
    """Arrays (members, numbers) over denominators, one beside the other over one."""
    whole = lcm(*below)
    return ExactVector(np.hstack([part * (whole // own) for part, own in zip(parts, below, strict=True)]), whole)


def _classes(run: Run) -> Iterator[tuple[list[tuple[int, Grid, int]], NDArray[np.intp], NDArray[np.intp]]]:
    """For each class of parties its inputs, with their places and how many numbers a member holds; and its coordinates.

    Then which parties its members are. What is laid out is one member's.
    """
    places, sets = run.release.problem.places, dict[str, list[tuple[int, Grid]]]()
    for i, one in enumerate(run.inputs):
        sets.setdefault(f"{one.index}," if one.index else one.held.name, []).append((i, one))
    for some in sets.values():
        alike = places[some[0][1].held.start][1]
        labels = np.repeat(alike.classes, alike.counts)
        for kind in range(len(alike.copies)):
            own = [(i, one, *places[one.held.start]) for i, one in some]
            columns = [np.arange(at + kind * each.length, at + (kind + 1) * each.length) for _, _, at, each in own]
            inputs = [(i, replace(one, held=replace(one.held, units=None)), each.length) for i, one, _, each in own]
            yield inputs, np.concatenate(columns), np.flatnonzero(labels == kind)


@dataclass(frozen=True, eq=False, slots=True)
class PartyMechanism(Mechanism):
    """The plan for one party; in a secure sum with its key, and the keys of all."""

    parts: Parts
    grid: str
    party: str
    keys: Keys | None
    roster: Roster | None

    @classmethod
    def of(cls, whole: Whole, party: str, keys: Keys | None) -> PartyMechanism:
        """Raises: UsageError PS0844, PS0857, PS0850."""
        parts = Parts(whole.executed, whole.trust)
        number, roster = parts.number(party), None
        if parts.sums:
            if keys is None:
                _no_messages("a message of a secure sum is masked: it takes --key FILE and --roster FILE")
            roster = Roster.read(whole.digest, parts.names, keys.roster, keys.called)
            if roster.place(read_key(keys.called + party, keys.key)) != number:
                _no_messages(f"the key in {keys.key} is not that of {parts.index} {party} in the roster")
        elif keys is not None:
            _no_messages("no message is masked under `trust nobody`: leave out --key and --roster")
        return cls(parts, whole.grid, party, keys, roster)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Who it is from, what it says, and under which keys it is masked."""
        return (self.parts.index, MESSAGE, *((ROSTER,) if self.roster else ()))

    def read(self, data: Mapping[str, Any], circumstances: Circumstances) -> Secret:
        """The party's part of the answers.

        Raises: DataError.
        """
        number = self.parts.number(self.party)
        inputs = self.parts.inputs(number)
        base, strategy = read_inputs(inputs, data, circumstances), self.parts.executed.strategy
        own = np.ascontiguousarray(strategy.integers[:, self.parts.coordinates(number)][self.parts.rows(number)])
        answers = multiply(DyadicMatrix(own, strategy.exponent), base)
        rules = tuple(data_rules(inputs, circumstances.strict))
        return OwnMessage(self.parts.index, self.party, partial(self._say, answers), rules)

    def _say(self, answers: ExactVector, randomness: Randomness) -> dict[str, NDArray[Any]]:
        """The message; the key that masks it is used up before."""
        parts, grid = self.parts, self.parts.executed.release.grid
        noise = parts.executed.noise
        if not isinstance(noise, Shares):
            rows = parts.rows(parts.number(self.party))
            return {MESSAGE: _texts(noise.part(rows).release(answers, grid, randomness))}
        assert self.keys is not None
        assert self.roster is not None
        pair = take(self.party, self.keys, self.roster.digest)
        sent = on_points(answers, grid) + noise.share(len(answers), grid, randomness)
        masked = self.roster.masked(pair, sent, parts.bits)
        return {MESSAGE: _texts(integers(masked)), ROSTER: np.array([self.roster.digest], dtype=object)}

    def simulate(self, asked: Simulation) -> NDArray[np.float64]:
        _no_messages("a message is simulated as part of a run")


def _texts(numbers: Integers) -> NDArray[Any]:
    return np.array([str(number) for number in numbers], dtype=object)


def combined(whole: Whole, messages: Sequence[Mapping[str, Any]]) -> Integers:
    """The noisy answers from the messages of all parties, in steps of the lattice.

    Raises: UsageError PS0844; DataError PS0842 (no message of this plan), PS0843 (of another plan or roster), PS0811
        where parties are missing: then their masks do not cancel, and nothing can be read from the sum.
    """
    parts = Parts(whole.executed, whole.trust)

    def read(outputs: Mapping[str, Any]) -> tuple[int, tuple[list[int], str]]:
        (who,), sent = outputs[parts.index], [int(str(number)) for number in outputs[MESSAGE]]
        (roster,) = outputs[ROSTER] if parts.sums else ("",)
        return parts.number(str(who)), (sent, str(roster))

    def flaw(number: int, said: tuple[list[int], str]) -> str:
        size, least = len(parts.rows(number)), 0 if parts.sums else -(2**parts.bits)
        fits = len(said[0]) == size and all(least <= value < 2**parts.bits for value in said[0])
        return "" if fits else f"is no vector of {size} numbers of its lattice"

    said = messages_by_party(whole.digest, messages, parts.index, read, flaw)
    found, rosters = {who: sent for who, (sent, _) in said.items()}, {roster for _, roster in said.values()}
    why, help_ = "", None
    if parts.sums:
        why = "their masks do not cancel without them: nothing can be read from the others"
        help_ = "ask for the missing messages, or begin again with new keys of those who take part"
    refuse_missing(found, enumerate(parts.names), parts.index, why, help_)
    if len(rosters) > 1:
        refuse("PS0843", "messages are masked under different rosters", help="all parties need the same public keys")
    answers = integers([0] * whole.executed.strategy.shape[0])
    if parts.sums:
        answers[:] = added(list(found.values()), parts.bits)
    for number, own in found.items() if not parts.sums else ():
        answers[parts.rows(number)] += integers(own)
    return answers


def _no_messages(why: str) -> NoReturn:
    help_ = (
        "with `trust nobody` parties send noisy values of their own, with `trust secure_sum` masked parts of the sum"
    )
    raise UsageError.of("PS0844", f"this message cannot be made: {why}", help=help_)
