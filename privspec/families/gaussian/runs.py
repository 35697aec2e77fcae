"""Runs of plans that add noise to linear answers: of a keeper of all data, or of parties who send messages.

A party sends noisy answers of its own, or its masked part of a secure sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import UsageError
from privspec.core.matrices import DyadicMatrix, ExactVector, Integers, integers, multiply
from privspec.core.records import dataclass, replace
from privspec.core.rounding import step_text
from privspec.execute.budget import Spend
from privspec.execute.data import Grid, data_rules, read_inputs, read_values
from privspec.execute.family import (
    MESSAGE,
    PARTY,
    Drawn,
    Exposure,
    FamilyMechanism,
    Keys,
    Mechanism,
    OwnMessage,
    Plan,
    RunContext,
    Secret,
    Simulation,
    messages_by_party,
    read_plan,
    refuse_long_simulation,
    refuse_missing,
)
from privspec.execute.keeper import refuse
from privspec.families.gaussian.execution import (
    DEVIATIONS_LIMIT,
    Array,
    Base,
    Executed,
    base_of,
    deviations_of,
    draw,
    draws_of,
    in_units,
    origin,
    post_process,
    read_executed,
    strategy_answers,
)
from privspec.families.gaussian.masks import WORD, Roster, added, read_key, take
from privspec.kernel.core.linear import InputLayout, Release
from privspec.kernel.core.linear_privacy import losses
from privspec.kernel.core.problem import Frame
from privspec.kernel.core.reading import JsonNode
from privspec.kernel.strategies.dense import chosen_rows
from privspec.kernel.trust import KINDS, NOBODY, SECURE_SUM, TrustModel
from privspec.noise.law import Shares, on_points
from privspec.noise.samplers import Randomness, SimulationRandomness
from privspec.problem.linear import as_floats

if TYPE_CHECKING:
    from privspec.model.graph import Model

ROSTER = "roster"
"""The entry of a message that holds the digest of the keys that mask its numbers, which are in steps of the lattice."""
RECORD = "record"
"""What parties are called who are of no set, each with a record of its own."""
COUNTED = 2**40
"""Records up to which sums of counts have room."""
DEVIATIONS = 2**10
"""Standard deviations of noise that sums have room for."""


@dataclass(frozen=True, eq=False)
class Parts:
    """Who holds which coordinates of the base vector: parties of one set or several, or each its record."""

    executed: Executed
    trust: TrustModel

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
        return self.trust.by_parties and all(one.index is not None or records for one in inputs)

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
        noise = self.executed.noise_variances().max(initial=0.0) ** 0.5
        room = int(reach) + int(Fraction(float(noise)) * DEVIATIONS / release.grid) + 2
        return WORD * -(-(room.bit_length() + 2) // WORD)


def _largest(held: InputLayout) -> Fraction:
    """The size of a number of an input, or of what sums have room for where it has no limit."""
    if held.ball:
        return held.ball.radius
    if held.lower is None or held.upper is None:
        return Fraction(COUNTED)
    return max(abs(held.lower), abs(held.upper))


@dataclass(frozen=True, eq=False, slots=True)
class PartyMechanism(Mechanism):
    """The plan for one party; in a secure sum with its key, and the keys of all."""

    parts: Parts
    grid: str
    party: str
    keys: Keys | None
    roster: Roster | None

    @classmethod
    def of(cls, whole: LinearMechanism, party: str, keys: Keys | None) -> PartyMechanism:
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
            _no_messages(f"no message is masked under `{whole.trust.written}`: leave out --key and --roster")
        return cls(parts, whole.grid, party, keys, roster)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Who it is from, what it says, and under which keys it is masked."""
        return (self.parts.index, MESSAGE, *((ROSTER,) if self.roster else ()))

    def read(self, data: Mapping[str, Any], circumstances: RunContext) -> Secret:
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


def combined(whole: LinearMechanism, messages: Sequence[Mapping[str, Any]]) -> Integers:
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
        f"with `{NOBODY.written}` parties send noisy values of their own, with `{SECURE_SUM.written}` masked parts of "
        "the sum"
    )
    raise UsageError.of("PS0844", f"this message cannot be made: {why}", help=help_)


# --- runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class LinearMechanism(FamilyMechanism):
    """Exact strategy answers, exact noise, then post-processing."""

    executed: Executed
    grid: str
    trust: TrustModel
    digest: str

    @classmethod
    def of_plan(cls, plan: Plan) -> LinearMechanism:
        executed, trust = read_executed(plan), KINDS[str(plan["problem"]["trust"]["kind"])]
        return cls(executed, step_text(executed.release.output_grid), trust, str(plan.get("digest", "")))

    @property
    def by_messages(self) -> bool:
        """Whether parties hold all data, and each adds noise by itself, or a share of it."""
        return Parts(self.executed, self.trust).apart

    @property
    def masked(self) -> bool:
        return Parts(self.executed, self.trust).sums

    @staticmethod
    def fit(model: Model, data: Mapping[str, Any], circumstances: RunContext) -> None:
        from privspec.families.gaussian.release import INPUT_GRID_BITS
        from privspec.problem.elaborate import data_of
        from privspec.problem.linear import grid_of, held_of

        found = []
        for block in model.blocks:
            step = grid_of(block, INPUT_GRID_BITS)
            said = data_of(model, model.nodes[block.name])
            name = model.through.get(block.name, block.name)
            held = replace(held_of(block), name=name)
            found.append(Grid(held, step, said.rule == "drop", said.party, said.kept, said.derived))
        read_inputs(found, data, circumstances)

    def of_party(self, party: str, keys: Keys | None = None) -> Mechanism:
        """What one party sends: noisy answers of its own, or its masked part of a secure sum.

        Raises: UsageError PS0844, PS0850, PS0857.
        """
        return PartyMechanism.of(self, party, keys)

    def combine(self, digest: str, messages: Sequence[Mapping[str, Any]]) -> Drawn:
        """The release, from the messages of all parties.

        Raises: UsageError PS0844; DataError PS0811, PS0842, PS0843.
        """
        executed = self.executed.given({})
        noisy = in_units(combined(self, messages), executed.release.grid)
        values = executed.split(np.asarray(post_process(executed, noisy[None, :])[0]))
        return Drawn(values, self.grid, deviations=deviations_of(executed))

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.executed.outputs

    def read(self, data: Mapping[str, Any], circumstances: RunContext) -> Secret:
        """The base vector of the data.

        Raises: DataError; UsageError PS0824.
        """
        ready = replace(self, executed=self.executed.given(circumstances.constants))
        base = base_of(self.executed, read_values(self.executed.inputs, data, circumstances))
        added = (
            f"{name}: a public value given at this run, added after the noise"
            for name, _, _ in self.executed.release.problem.constants
        )
        return _BaseVector(ready, base, (*data_rules(self.executed.inputs, circumstances.strict), *added))

    def errors(self, draws: int, seed: int) -> Mapping[str, Array]:
        """Noise in floating point; rounding to the grid aside."""
        executed, rows = self.executed, self.executed.strategy.shape[0]
        if rows * draws * executed.vectors > DEVIATIONS_LIMIT:
            return {}
        noise = executed.approximate_noise(draws * executed.vectors, seed)
        rebuilt = noise @ executed.reconstruction.to_float().T
        return executed.split(executed.laid_out(rebuilt @ executed.target.T if executed.release.of_inputs else rebuilt))

    def simulate(self, asked: Simulation) -> Array:
        """Draws at a base vector, by default that of data that are all zero."""
        executed = self.executed
        rows = sum(executed.release.senders) * executed.vectors
        if isinstance(asked.base, ExactVector) and not executed.repeated:
            base: Base = asked.base
        else:
            data = asked.data
            base = origin(executed) if data is None else base_of(executed, read_values(executed.inputs, data))
        if asked.approximate:
            noise = executed.approximate_noise(asked.repetitions * executed.vectors, asked.seed)
            whole = np.tile(
                np.stack([own.to_float() for own in strategy_answers(executed, base)]), (asked.repetitions, 1)
            )
            return executed.laid_out(post_process(executed, whole + noise))
        refuse_long_simulation(
            asked.repetitions * rows,
            f"{asked.repetitions} exact draws of {rows} numbers",
            "pass approximate=True: floating-point noise, good enough for a simulation",
        )
        return draws_of(executed, base, SimulationRandomness(asked.seed), asked.repetitions)


@dataclass(frozen=True, eq=False, slots=True)
class _BaseVector(Secret):
    mechanism: LinearMechanism
    base: Base
    rules: tuple[str, ...]

    def draw(self, randomness: Randomness) -> Drawn:
        executed = self.mechanism.executed
        return Drawn(executed.split(draw(executed, self.base, randomness)), self.mechanism.grid)

    def deviations(self) -> Mapping[str, Array]:
        return deviations_of(self.mechanism.executed)


class LinearExposure(Exposure):
    """All outputs are functions of the noisy strategy answers (notes/post-processing.md)."""

    @cached_property
    def _read(self) -> tuple[Frame, Release]:
        return read_plan(self.plan)

    @property
    def outputs(self) -> frozenset[str]:
        return frozenset(one.name for one in self._read[1].problem.released)

    def covers(self, requirement: int, outputs: frozenset[str]) -> bool:
        """These are all outputs or, where answers are rounded, outputs that every strategy answer goes into."""
        _, release = self._read
        if self.outputs <= outputs or release.of_inputs or release.round_outputs:
            return self.outputs <= outputs or release.of_inputs
        shown = chosen_rows(release.reconstruction, release.problem.rows_of(tuple(outputs))).transpose().tolist()
        return all(any(column) for column in shown)

    def joint_spend(self, model: Model, requirement: int) -> Spend | None:
        """The cost of all noisy strategy answers, as the kernel bounds it."""
        from privspec.families.gaussian.exact import box_scalings
        from privspec.problem.linear import difference_of

        differences, (frame, release) = difference_of(model, model.requirements[requirement]), self._read
        if differences is None:
            return None
        strategy = as_floats(release.strategy)
        scaling = [box_scalings(strategy, one, release.problem.places) for one in differences]
        witness = JsonNode({"inverse": None, "scaling": scaling}, "witness")
        known = losses(release, frame, tuple(self.outputs), differences, witness)
        found = max((one.figure(release.noise.figures[-1]) for one in known), default=Fraction(0))
        if epsilon := release.noise.accounted.get("epsilon"):
            return Spend(pair=(epsilon, found)) if found else Spend(pure=epsilon)
        return Spend(mu=found) if release.noise.normal else Spend(pure=found)
