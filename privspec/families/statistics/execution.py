"""A plan of the family "statistic" as a mechanism that can be run: records, exact statistics, noise, finishing.

One party's part of a run, and the release from the messages of all: nobody sees more than noisy statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import UsageError
from privspec.core.records import dataclass, replace
from privspec.execute.data import located
from privspec.execute.family import (
    MESSAGE,
    Circumstances,
    Drawn,
    FamilyMechanism,
    Keys,
    Mechanism,
    OwnMessage,
    Plan,
    Secret,
    Simulation,
    messages_by_party,
    readable_plan,
    refuse_keys,
    refuse_long_simulation,
    refuse_unknown,
)
from privspec.execute.keeper import STRICT_RULE, given_for, refuse, refuse_strictly
from privspec.execute.reading import number
from privspec.families.statistics.noise import AddedLaw, Law, law_of
from privspec.families.statistics.tables import Gatherer, Wanted, rows_of, to_steps
from privspec.kernel.core.reading import Item
from privspec.kernel.lemmas.statistics import read_executed
from privspec.model.domains import Ball, L1Ball, L2Ball
from privspec.model.library import GRID_BITS, NormName, Records, Route, Steps, library
from privspec.noise.samplers import Randomness, SimulationRandomness

if TYPE_CHECKING:
    import polars as pl

    from privspec.model.graph import Model


BALLS: Mapping[str, type[Ball]] = {"l1": L1Ball, "l2": L2Ball}


@dataclass(frozen=True, eq=False, slots=True)
class Executed:
    """Records to statistic to noise to output: all of it public.

    `laws`: one for all, or one for each party in the order of their keys; `weights` (N,) of the parties, None: alike.
    """

    source: str
    party: str | None
    parties: int
    records: Records
    route: Route
    each_party: bool
    finish_first: bool
    mean: bool
    weights: NDArray[np.float64] | None
    laws: tuple[Law, ...]
    output: str

    @property
    def personal(self) -> bool:
        """Whether parties have noise of their own size."""
        return len(self.laws) > 1

    @property
    def share(self) -> float:
        """What one party counts in the pool."""
        return 1.0 / self.parties if self.mean else 1.0


def executed_of(plan: Plan) -> Executed:
    """Raises: UsageError PS0820 if the plan is not one that this version can execute."""
    with readable_plan():
        (block,) = plan["problem"]["blocks"]
        found = read_executed(Item(block, "block"), Item(plan["mechanism"], "mechanism"))
    records = Records(found.records.count, found.records.dimension, found.records.radius)
    routes = library()[found.function].routes
    assert routes is not None
    ball = BALLS[found.records.norm](found.records.within, records.dimension)
    return Executed(
        found.source,
        found.party,
        found.parties,
        records,
        next(route for route in routes(records, ball) if route.at == found.route),
        found.each_party,
        found.finish_first,
        found.mean,
        None if found.weights is None else np.array([float(weight) for weight in found.weights]),
        tuple(law_of(noise, found.statistic.size) for noise in found.noises),
        found.output,
    )


CELLS = 2**23
"""Numbers that the statistics of a few parties take at once, at most."""
DRAWN = 4096
"""Parties whose noise is drawn between two reports of progress."""


@dataclass(frozen=True, eq=False, slots=True)
class StatisticMechanism(FamilyMechanism):
    """The statistic of every party is exact and an integer in steps; only noise and what follows it are released."""

    executed: Executed

    @classmethod
    def of_plan(cls, plan: Plan) -> StatisticMechanism:
        return cls(executed_of(plan))

    @staticmethod
    def fit(model: Model, data: Mapping[str, Any], circumstances: Circumstances) -> None:
        from privspec.problem.statistics import records_of, routed_call

        call = routed_call(model)
        assert call is not None
        source = model.nodes[call.source]
        for _ in bounded(source.name, source.index, records_of(source), given_for(source.name, data), circumstances):
            pass

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.executed.output,)

    def read(self, data: Mapping[str, Any], circumstances: Circumstances) -> Secret:
        """Statistics of all parties; where noise enters at the pool, only their exact sum is kept.

        Raises: DataError PS0801 to PS0812.
        """
        executed = self.executed
        gathered = _Each(executed) if executed.each_party else _Sum(executed)
        for keys, statistics in read_statistics(executed, data, circumstances):
            gathered.add(keys, statistics)
        if gathered.parties != executed.parties:
            refuse_number(executed, gathered.parties)
        return gathered.secret(circumstances)

    @property
    def by_messages(self) -> bool:
        return self.executed.each_party and self.executed.party is not None

    def of_party(self, party: str, keys: Keys | None = None) -> Mechanism:
        """One party's part of a run: a message that says nothing more of its records than its noise lets through.

        Raises: UsageError PS0844 where noise enters at the pool, or a party of that name has no budget of its own.
        """
        refuse_keys(keys)
        return PartyMechanism.of(self.executed, party)

    def combine(self, digest: str, messages: Sequence[Mapping[str, Any]]) -> Drawn:
        """The release, from the messages of all parties.

        Raises: UsageError PS0844; DataError PS0811, PS0842, PS0843.
        """
        return combine(self.executed, digest, messages)

    def simulate(self, asked: Simulation) -> NDArray[np.float64]:
        """Exact draws at the given records, by default at statistics that are all zero."""
        data, size, parties = asked.data, self.executed.route.size, self.executed.parties
        refuse_long_simulation(
            asked.repetitions * size * (parties if self.executed.each_party else 1),
            f"{asked.repetitions} exact draws",
            "take fewer, or draw from the shapes of the plan in doubles",
        )
        secret = self._zeros() if data is None else self.read(data, Circumstances())
        randomness = SimulationRandomness(asked.seed)
        drawn = [secret.draw(randomness).outputs[self.executed.output] for _ in range(asked.repetitions)]
        return np.array(drawn).reshape(asked.repetitions, -1)

    def _zeros(self) -> Secret:
        size, parties = self.executed.route.size, self.executed.parties
        if self.executed.each_party:
            return EachParty(self.executed, np.zeros((parties, size), dtype=np.int64), Circumstances())
        return Pool(self.executed, (0,) * size, Circumstances())


def read_statistics(
    executed: Executed, data: Mapping[str, Any], circumstances: Circumstances, only: str | None = None
) -> Iterator[tuple[pl.Series, Steps]]:
    """Keys and exact statistics (M, k) of some parties at a time; of a single one, if `only` names it.

    Raises: DataError PS0801 to PS0805, PS0809, PS0812.
    """
    refuse_unknown(data, (executed.source,))
    source = given_for(executed.source, data)
    records = executed.records
    gatherer = Gatherer(executed.party or "party", records.count, records.dimension)
    done = 0
    for keys, found in gatherer.blocks(bounded(executed.source, executed.party, records, source, circumstances, only)):
        widest = records.count * max(records.dimension, executed.route.size)
        step = max(1, CELLS // widest)
        for start in range(0, len(keys), step):
            yield keys[start : start + step], executed.route.exact(found[start : start + step])
        done += len(keys)
        circumstances.progress(f"{executed.party or 'parties'}s read", done, executed.parties)


def bounded(
    name: str,
    party: str | None,
    records: Records,
    data: Any,
    circumstances: Circumstances,
    only: str | None = None,
) -> Iterator[tuple[pl.Series, Steps]]:
    """Keys of the parties of some rows, and their records in steps, each in its ball.

    Raises: DataError PS0802 to PS0805, PS0809.
    """
    fate = "records with such a number count as zero"
    fit = circumstances.keeper.fit(name, fate=fate, what="in records outside the ball")
    wanted = Wanted(name, party, records.dimension, records.count, only, circumstances.header, fit)
    for keys, values in rows_of(wanted, located(name, data)):
        steps, fits = to_steps(values, records.radius)
        fit.rows += values.size
        fit.outside += int((~fits & np.isfinite(values).all(axis=1)).sum()) * records.dimension
        if circumstances.strict and not fits.all():
            refuse_strictly(name)
        yield keys, steps


def refuse_number(executed: Executed, found: int) -> NoReturn:
    """Both numbers are public."""
    who = executed.party or "party"
    refuse(
        "PS0811",
        f"the plan is for {executed.parties} members of {who}, the data have {found}",
        "the number of parties is public; nothing was drawn and nothing was spent",
        help="solve the spec for this number of parties, or take the data of those who take part",
    )


MISFIT = "a number that is missing, unreadable or not finite"


class _Sum:
    """The exact sum of the statistics: Python integers, so that any number of parties fits."""

    def __init__(self, executed: Executed) -> None:
        self.executed, self.parties = executed, 0
        self._total = [0] * executed.route.size

    def add(self, keys: pl.Series, statistics: Steps) -> None:
        """Some more parties."""
        self.parties += len(keys)
        self._total = [a + b for a, b in zip(self._total, _column_sums(statistics), strict=True)]

    def secret(self, circumstances: Circumstances) -> Secret:
        """Once all are there."""
        return Pool(self.executed, tuple(self._total), circumstances)


def _column_sums(statistics: Steps) -> list[int]:
    """Sums over the parties, exactly: high and low halves are summed by themselves, which cannot overflow."""
    high, low = statistics >> 32, statistics & (2**32 - 1)
    return [(int(a) << 32) + int(b) for a, b in zip(high.sum(axis=0), low.sum(axis=0), strict=True)]


class _Each:
    """The statistics of all parties; in the order of their keys where their noise differs."""

    def __init__(self, executed: Executed) -> None:
        self.executed, self.parties = executed, 0
        self._keys: list[str] = []
        # half the memory where all numbers fit: there may be millions of parties
        largest = executed.route.bound()[NormName.LINF] * 2**GRID_BITS
        kind = np.int32 if largest < 2**31 else np.int64
        self._statistics = np.zeros((executed.parties, executed.route.size), dtype=kind)

    def add(self, keys: pl.Series, statistics: Steps) -> None:
        """Some more parties."""
        if self.executed.personal:
            self._keys += keys.to_list()
        room = self._statistics[self.parties : self.parties + len(statistics)]
        room[:] = statistics[: len(room)]
        self.parties += len(keys)

    def secret(self, circumstances: Circumstances) -> Secret:
        """Once all are there."""
        statistics = self._statistics
        if self.executed.personal:
            statistics = statistics[in_order_of_budgets(self.executed, self._keys)]
        return EachParty(self.executed, statistics, circumstances)


def in_order_of_budgets(executed: Executed, keys: Sequence[str]) -> list[int]:
    """Places of the parties 1..N among the keys.

    Raises: DataError PS0811 if the keys are others: a budget must not go to somebody it was not given to.
    """
    places = {number(key): i for i, key in enumerate(keys)}
    wanted = [float(i) for i in range(1, executed.parties + 1)]
    if len(keys) == executed.parties and any(name not in places for name in wanted):
        who = executed.party or "party"
        refuse(
            "PS0811",
            f"the budgets of this plan belong to {who} 1 to {executed.parties}, and the data name others",
            "nothing was drawn and nothing was spent",
            help=f"write the number of each {who}, as the spec counts them, in the column {who}",
        )
    return [places[name] for name in wanted if name in places]


def rules_of(executed: Executed, strict: bool) -> tuple[str, ...]:
    """What is done with records, whoever they are of."""
    who, n = executed.party or "party", executed.records.count
    grid = "rounded towards zero to a multiple of 2^-20"
    if executed.records.radius is None:
        record = f"each record by itself: numbers beyond 2^40 count as 2^40, then {grid}"
    else:
        record = f"each record by itself: one outside the ball is drawn in to it, then {grid}"
    counts = (
        f"the first {n} records of each {who} in the order of the data count, a {who} with fewer has zero records "
        f"in place of the others; rows without a {who} are left out"
    )
    rules = [record, counts] if strict else [f"{record}; one with {MISFIT} becomes zero", counts]
    if executed.personal:
        rules.append(f"the budgets belong to each {who} by number, from 1 to {executed.parties}")
    return (STRICT_RULE, *rules) if strict else tuple(rules)


@dataclass(frozen=True, eq=False, slots=True)
class Pool(Secret):
    """The sum of all parties' statistics (k,), in steps."""

    executed: Executed
    total: tuple[int, ...]
    circumstances: Circumstances

    @property
    def rules(self) -> tuple[str, ...]:
        return rules_of(self.executed, self.circumstances.strict)

    def draw(self, randomness: Randomness) -> Drawn:
        """The sum with noise, divided and finished."""
        law = self.executed.laws[0]
        assert isinstance(law, AddedLaw)
        pooled = law.pooled(self.total, randomness) * self.executed.share
        return Drawn({self.executed.output: self.executed.route.finish(pooled[None])[0]})


@dataclass(frozen=True, eq=False, slots=True)
class EachParty(Secret):
    """Every party's statistic (N, k), in steps."""

    executed: Executed
    statistics: NDArray[np.int32 | np.int64]
    circumstances: Circumstances

    @property
    def rules(self) -> tuple[str, ...]:
        return rules_of(self.executed, self.circumstances.strict)

    def draw(self, randomness: Randomness) -> Drawn:
        """Every statistic with noise of its own, then pooled by public weights."""
        return Drawn({self.executed.output: pooled_value(self.executed, self._parts(randomness))})

    def _parts(self, randomness: Randomness) -> Iterator[NDArray[np.float64]]:
        parties = self.executed.parties
        step = max(1, CELLS // (self.executed.route.size + self.executed.records.dimension**2))
        for start in range(0, parties, min(step, DRAWN)):
            some = slice(start, start + min(step, DRAWN))
            yield self._noisy(some, randomness)
            self.circumstances.progress("draws", min(some.stop, parties), parties)

    def _noisy(self, some: slice, randomness: Randomness) -> NDArray[np.float64]:
        statistics = self.statistics[some].astype(np.int64)
        if not self.executed.personal:
            return self.executed.laws[0].each(statistics, randomness)
        each = zip(self.executed.laws[some], statistics, strict=True)
        return np.concatenate([law.each(one[None], randomness) for law, one in each])


def pooled_value(executed: Executed, parts: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The output, from noisy statistics (M, k) of parties in their order, some at a time."""
    pooled, done = np.zeros(1), 0
    for part in parts:
        values = executed.route.finish(part) if executed.finish_first else part
        if executed.weights is not None:
            values = values * executed.weights[done : done + len(values), None]
        pooled = pooled + values.sum(axis=0)
        done += len(values)
    pooled = pooled * executed.share
    return pooled if executed.finish_first else executed.route.finish(pooled[None])[0]


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

        def say(randomness: Randomness) -> Mapping[str, NDArray[Any]]:
            return {MESSAGE: self.executed.laws[0].each(parts[0], randomness)[0]}

        return OwnMessage(str(self.executed.party), self.party, say, rules_of(self.executed, circumstances.strict))

    def simulate(self, asked: Simulation) -> NDArray[np.float64]:
        """Messages of a party whose statistic is zero."""
        zeros = np.zeros((asked.repetitions, self.executed.route.size), dtype=np.int64)
        return self.executed.laws[0].each(zeros, SimulationRandomness(asked.seed))


def combine(executed: Executed, digest: str, messages: Sequence[Mapping[str, Any]]) -> Drawn:
    """The release, as if one run had made all messages.

    Args: messages, one for each party, as their JSON files hold them.
    Raises: UsageError PS0844; DataError PS0842 (no message of this plan), PS0843 (of another plan), PS0811.
    """
    party, size = executed.party, executed.route.size
    if not executed.each_party or party is None:
        _no_messages(executed)

    def read(outputs: Mapping[str, Any]) -> tuple[str, list[float]]:
        (who,) = outputs[party]
        return str(who), [float(number) for number in outputs[MESSAGE]]

    def flaw(_who: str, statistic: list[float]) -> str:
        fits = len(statistic) == size and bool(np.isfinite(statistic).all())
        return "" if fits else f"is no vector of {size} numbers"

    found = messages_by_party(digest, messages, party, read, flaw)
    if len(found) != executed.parties:
        refuse_number(executed, len(found))
    names = list(found)
    # Where all have one budget the order of the messages is no matter: weights are equal.
    order = in_order_of_budgets(executed, names) if executed.personal else range(len(names))
    return Drawn({executed.output: pooled_value(executed, [np.array([found[names[i]] for i in order])])})


def _no_messages(executed: Executed) -> NoReturn:
    _refuse_usage(
        "parties make no messages under this plan: "
        + ("it has one party" if executed.party is None else "noise enters once, at the pool, which a keeper must see")
    )


def _refuse_usage(message: str) -> NoReturn:
    raise UsageError.of("PS0844", message, help="with `options: trust nobody` every party adds noise of its own")
