"""A plan of the family "statistic" as a mechanism that can be run: records, exact statistics, noise, finishing.

One party's part of a run, and the release from the messages of all: nobody sees more than noisy statistics.
The laws of noise are drawn exactly, in steps of the grid: notes knorm-linf, knorm-l2, duchi-l2; a report of a direction
in place of a bounded vector is exact in its guarantee.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import exp
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self

import flint
import numpy as np
import scipy
from numpy.typing import NDArray

from privspec.core.diagnostics import UsageError
from privspec.core.matrices import ExactVector, Integers, integers
from privspec.core.records import dataclass, replace
from privspec.execute import family
from privspec.execute.data import located
from privspec.execute.keeper import STRICT_RULE, given_for, refuse, refuse_strictly
from privspec.execute.reading import number
from privspec.families.statistics.shapes import SphereReport
from privspec.families.statistics.tables import Gatherer, Wanted, rows_of, to_steps
from privspec.kernel.laws.statistics import Noise
from privspec.kernel.statistics import StatisticBlock
from privspec.kernel.trust import NOBODY
from privspec.model.library import GRID, GRID_BITS, NormName, Records, Route, Steps
from privspec.noise.gaussian import GaussianNoise
from privspec.noise.laplace import LaplaceNoise
from privspec.noise.samplers import WORD, Randomness, SimulationRandomness
from privspec.noise.vectors import VECTORS
from privspec.problem.statistics import offered, records_of, routed_call

if TYPE_CHECKING:
    import polars as pl

    from privspec.model.graph import Model


FINE = 2.0**20
"""Steps of a standard normal number in the public directions."""
TOGETHER = 4096
"""Directions that are drawn at once."""


@dataclass(frozen=True, slots=True)
class SphereLaw:
    """One report for each statistic, of the length that makes it unbiased."""

    epsilon: Fraction
    bound: Fraction
    size: int

    def each(self, statistics: Steps, randomness: Randomness) -> NDArray[np.float64]:
        """Reports (M, k) in data units for statistics (M, k) in steps."""
        if statistics.shape[1] != self.size:
            raise ValueError("a sphere report of a different size from the statistic")
        parts = [self._some(statistics[i : i + TOGETHER], randomness) for i in range(0, len(statistics), TOGETHER)]
        radius = SphereReport(self.epsilon, self.bound, self.size).radius
        return radius * np.concatenate(parts) if parts else np.zeros((0, self.size))

    def _some(self, statistics: Steps, randomness: Randomness) -> NDArray[np.float64]:
        found = directions(len(statistics), self.size, randomness)
        units = found / np.linalg.norm(found.astype(np.float64), axis=1, keepdims=True)
        reports: NDArray[np.float64] = units * self._sides(statistics, found, randomness)[:, None]
        return reports

    def _sides(self, statistics: Steps, found: Steps, randomness: Randomness) -> Steps:
        """1 if the direction is to be reported as it is, -1 if turned round."""
        poles = statistics.copy()
        squares = _inner(statistics, statistics)
        poles[squares == 0, 0] = 1  # zero has no pole, and both signs are as likely: any fixed one will do
        coins = randomness.words(len(poles))
        side = np.sign(_inner(poles, found)).astype(np.int64)
        side[side == 0] = (1 - 2 * (coins & np.uint64(1)).astype(np.int64))[side == 0]
        other = np.flatnonzero(coins & np.uint64(2))
        turned = ~roots(squares[other], (self.bound * 2**GRID_BITS) ** 2, randomness)
        side[other[turned]] *= -1
        side[~logistic(self.epsilon, len(side), randomness)] *= -1
        return np.asarray(side)


def _inner(left: Steps, right: Steps) -> NDArray[Any]:
    """Inner products of rows, exactly: Python integers where they may not fit into 64 bits."""
    largest = max(int(np.abs(left).max(initial=0)), 1) * max(int(np.abs(right).max(initial=0)), 1)
    if largest * left.shape[1] < 2**63:
        return np.asarray((left * right).sum(axis=1))
    return np.asarray((left.astype(object) * right).sum(axis=1))


def directions(count: int, size: int, randomness: Randomness) -> Steps:
    """Integer vectors (count, size), none zero, nearly uniform in direction; v and -v are equally likely, exactly.

    Which vectors are likely is public and no matter of privacy, so doubles may say it; the fair sign in front of each
    makes the law symmetric whatever they say.
    """
    out = np.zeros((count, size), dtype=np.int64)
    open_rows = np.arange(count)
    while open_rows.size:
        words = randomness.words(open_rows.size * size)
        uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        out[open_rows] = np.trunc(scipy.special.ndtri(uniform) * FINE).astype(np.int64).reshape(-1, size)
        open_rows = open_rows[~out[open_rows].any(axis=1)]
    signs = 1 - 2 * (randomness.words(count) & np.uint64(1)).astype(np.int64)
    return np.asarray(out * signs[:, None])


Decided = Callable[[int, int, int], "bool | None"]
"""Whether a uniform number is below its probability, by its place, its digits as an integer, and their number."""
UNSURE = 2.0**-40
"""More than doubles can be wrong by, of a probability or of a uniform number."""


def _below(near: NDArray[np.float64], decided: Decided, randomness: Randomness) -> NDArray[np.bool_]:
    """Whether uniform numbers are below probabilities known nearly: exactly, by as many digits as it takes."""
    words = randomness.words(len(near))
    gaps = words.astype(np.float64) * 2.0**-WORD - near
    found: NDArray[np.bool_] = gaps < 0
    for i in np.flatnonzero(~(np.abs(gaps) > UNSURE)).tolist():
        digits, bits = int(words[i]), WORD
        while (answer := decided(i, digits, bits)) is None:
            digits, bits = digits << WORD | randomness.word(), bits + WORD
        found[i] = answer
    return found


def roots(squares: NDArray[Any], limit: Fraction, randomness: Randomness) -> NDArray[np.bool_]:
    """True with probability sqrt(square / limit) <= 1, exactly, for each of some whole numbers."""

    def decided(i: int, digits: int, bits: int) -> bool | None:
        target = int(squares[i]) * limit.denominator << (2 * bits)
        if (digits + 1) ** 2 * limit.numerator <= target:
            return True
        return False if digits**2 * limit.numerator >= target else None

    return _below(np.sqrt(squares.astype(np.float64) / float(limit)), decided, randomness)


def logistic(epsilon: Fraction, count: int, randomness: Randomness) -> NDArray[np.bool_]:
    """True with probability e^epsilon / (1 + e^epsilon), exactly, so many times."""

    def decided(_: int, digits: int, bits: int) -> bool | None:
        with flint.ctx.workprec(2 * bits):
            share = 1 / (1 + (-flint.arb(flint.fmpq(epsilon.numerator, epsilon.denominator))).exp())
            scaled = share * flint.arb(2) ** bits
            return True if digits + 1 <= scaled else False if digits >= scaled else None

    return _below(np.full(count, 1 / (1 + exp(-float(epsilon)))), decided, randomness)


class Law(Protocol):
    """What every shape can do: noisy statistics for parties one by one."""

    def each(self, statistics: NDArray[Any], randomness: Randomness) -> NDArray[np.float64]:
        """Noisy statistics (M, k) in data units for statistics (M, k) in steps."""


class AddedLaw(ABC):
    """Noise that is added, at each party or once at the sum."""

    @abstractmethod
    def each(self, statistics: NDArray[Any], randomness: Randomness) -> NDArray[np.float64]:
        """Every statistic with noise of its own."""

    def pooled(self, total: Sequence[int], randomness: Randomness) -> NDArray[np.float64]:
        """The sum over all parties with noise, in data units."""
        return np.asarray(self.each(np.array([total], dtype=object), randomness)[0])


def to_units(steps: Integers) -> NDArray[np.float64]:
    """Data units, the nearest doubles: of noisy numbers only."""
    return np.asarray((steps / 2**GRID_BITS).astype(np.float64))


@dataclass(frozen=True, slots=True)
class EntrywiseNoise(AddedLaw):
    """Laplace or Gaussian noise as for linear answers."""

    law: LaplaceNoise | GaussianNoise

    def each(self, statistics: NDArray[Any], randomness: Randomness) -> NDArray[np.float64]:
        """On the grid already, so that no rounding enters the sensitivity."""
        answers = ExactVector(integers(statistics.ravel()), 2**GRID_BITS)
        return to_units(self.law.release(answers, GRID, randomness)).reshape(statistics.shape)


@dataclass(frozen=True, slots=True)
class VectorNoise(AddedLaw):
    """One real vector of K-norm noise for each statistic, rounded to the grid with it."""

    norm: str
    scale: Fraction

    def each(self, statistics: NDArray[Any], randomness: Randomness) -> NDArray[np.float64]:
        vectors = VECTORS[self.norm](len(statistics), statistics.shape[1], self.scale, randomness)
        return to_units(vectors.nearest(ExactVector(integers(statistics.ravel()), 2**GRID_BITS), GRID))


SHAPES: Mapping[str, Callable[[Noise, int], Law]] = {
    "laplace": lambda noise, _: EntrywiseNoise(LaplaceNoise((noise.size,))),
    "gaussian": lambda noise, _: EntrywiseNoise(GaussianNoise(noise.size)),
    "knorm-l2": lambda noise, _: VectorNoise("l2", noise.size),
    "knorm-linf": lambda noise, _: VectorNoise("linf", noise.size),
    "duchi-l2": lambda noise, size: SphereLaw(noise.size, noise.bound or Fraction(0), size),
}
"""The laws by the `shape` of a site's noise, for a statistic of so many numbers."""


def law_of(noise: Noise, size: int) -> Law:
    """The law of a site of a plan, of which the kernel read that it is known and can be drawn exactly."""
    return SHAPES[noise.shape](noise, size)


# --- the mechanism --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Executed:
    """Records to statistic to noise to output: all of it public.

    `laws`: one for all, or one for each party in the order of their keys; `weights` (N,) of the parties, None: alike.
    """

    block: StatisticBlock
    route: Route
    each_party: bool
    finish_first: bool
    weights: NDArray[np.float64] | None
    laws: tuple[Law, ...]

    @property
    def personal(self) -> bool:
        """Whether parties have noise of their own size."""
        return len(self.laws) > 1


def executed_of(plan: family.Plan) -> Executed:
    """Raises: UsageError PS0820 if the plan is not one that this version can execute."""
    found = family.read_plan(plan)[1]
    return Executed(
        found.block,
        next(route for route in offered(found.block) if route.at == found.route),
        found.each_party,
        found.finish_first,
        None if found.weights is None else np.array([float(weight) for weight in found.weights]),
        tuple(law_of(noise, found.statistic.size) for noise in found.noises),
    )


CELLS = 2**23
"""Numbers that the statistics of a few parties take at once, at most."""
DRAWN = 4096
"""Parties whose noise is drawn between two reports of progress."""


@dataclass(frozen=True, eq=False, slots=True)
class StatisticMechanism(family.FamilyMechanism):
    """The statistic of every party is exact and an integer in steps; only noise and what follows it are released."""

    executed: Executed

    @classmethod
    def of_plan(cls, plan: family.Plan) -> StatisticMechanism:
        return cls(executed_of(plan))

    @staticmethod
    def fit(model: Model, data: Mapping[str, Any], circumstances: family.RunContext) -> None:
        call = routed_call(model)
        assert call is not None
        source = model.nodes[call.source]
        for _ in bounded(source.name, source.index, records_of(source), given_for(source.name, data), circumstances):
            pass

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.executed.block.output,)

    def read(self, data: Mapping[str, Any], circumstances: family.RunContext) -> family.Secret:
        """Statistics of all parties; where noise enters at the pool, only their exact sum is kept.

        Raises: DataError PS0801 to PS0812.
        """
        executed = self.executed
        gathered = _Each(executed) if executed.each_party else _Sum(executed)
        for keys, statistics in read_statistics(executed, data, circumstances):
            gathered.add(keys, statistics)
        if gathered.parties != executed.block.parties:
            refuse_number(executed, gathered.parties)
        return gathered.secret(circumstances)

    @property
    def by_messages(self) -> bool:
        return self.executed.each_party and self.executed.block.party is not None

    def of_party(self, party: str, keys: family.Keys | None = None) -> family.Mechanism:
        """One party's part of a run: a message that says nothing more of its records than its noise lets through.

        Raises: UsageError PS0844 where noise enters at the pool, or a party of that name has no budget of its own.
        """
        family.refuse_keys(keys)
        return PartyMechanism.of(self.executed, party)

    def combine(self, digest: str, messages: Sequence[Mapping[str, Any]]) -> family.Drawn:
        """The release, from the messages of all parties.

        Raises: UsageError PS0844; DataError PS0811, PS0842, PS0843.
        """
        return combine(self.executed, digest, messages)

    def simulate(self, asked: family.Simulation) -> NDArray[np.float64]:
        """Exact draws at the given records, by default at statistics that are all zero."""
        data, size, parties = asked.data, self.executed.route.size, self.executed.block.parties
        family.refuse_long_simulation(
            asked.repetitions * size * (parties if self.executed.each_party else 1),
            f"{asked.repetitions} exact draws",
            "take fewer, or draw from the shapes of the plan in doubles",
        )
        secret = self._zeros() if data is None else self.read(data, family.RunContext())
        randomness = SimulationRandomness(asked.seed)
        drawn = [secret.draw(randomness).outputs[self.executed.block.output] for _ in range(asked.repetitions)]
        return np.array(drawn).reshape(asked.repetitions, -1)

    def _zeros(self) -> family.Secret:
        size, parties = self.executed.route.size, self.executed.block.parties
        if self.executed.each_party:
            return EachParty(self.executed, np.zeros((parties, size), dtype=np.int64), family.RunContext())
        return Pool(self.executed, (0,) * size, family.RunContext())


def read_statistics(
    executed: Executed, data: Mapping[str, Any], circumstances: family.RunContext, only: str | None = None
) -> Iterator[tuple[pl.Series, Steps]]:
    """Keys and exact statistics (M, k) of some parties at a time; of a single one, if `only` names it.

    Raises: DataError PS0801 to PS0805, PS0809, PS0812.
    """
    family.refuse_unknown(data, (executed.block.source,))
    source = given_for(executed.block.source, data)
    records = executed.block
    gatherer = Gatherer(records.party or "party", records.count, records.dimension)
    done = 0
    batches = bounded(records.source, records.party, records, source, circumstances, only)
    for keys, found in gatherer.blocks(batches):
        widest = records.count * max(records.dimension, executed.route.size)
        step = max(1, CELLS // widest)
        for start in range(0, len(keys), step):
            yield keys[start : start + step], executed.route.exact(found[start : start + step])
        done += len(keys)
        circumstances.progress(f"{executed.block.party or 'parties'}s read", done, executed.block.parties)


def bounded(
    name: str,
    party: str | None,
    records: Records | StatisticBlock,
    data: Any,
    circumstances: family.RunContext,
    only: str | None = None,
) -> Iterator[tuple[pl.Series, Steps]]:
    """Keys of the parties of some rows, and their records in steps, each in its ball.

    Raises: DataError PS0802 to PS0805, PS0809.
    """
    fate = "records with such a number count as zero"
    fit = circumstances.keeper.fit(name, fate=fate, what="in records outside the ball")
    wanted = Wanted(name, party, records.dimension, records.count, only, circumstances.texts, fit)
    for keys, values in rows_of(wanted, located(name, data)):
        steps, fits = to_steps(values, records.radius)
        fit.rows += values.size
        fit.outside += int((~fits & np.isfinite(values).all(axis=1)).sum()) * records.dimension
        if circumstances.strict and not fits.all():
            refuse_strictly(name)
        yield keys, steps


def refuse_number(executed: Executed, found: int) -> NoReturn:
    """Both numbers are public."""
    who = executed.block.party or "party"
    refuse(
        "PS0811",
        f"the plan is for {executed.block.parties} members of {who}, the data have {found}",
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

    def secret(self, circumstances: family.RunContext) -> family.Secret:
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
        self._statistics = np.zeros((executed.block.parties, executed.route.size), dtype=kind)

    def add(self, keys: pl.Series, statistics: Steps) -> None:
        """Some more parties."""
        if self.executed.personal:
            self._keys += keys.to_list()
        room = self._statistics[self.parties : self.parties + len(statistics)]
        room[:] = statistics[: len(room)]
        self.parties += len(keys)

    def secret(self, circumstances: family.RunContext) -> family.Secret:
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
    wanted = [float(i) for i in range(1, executed.block.parties + 1)]
    if len(keys) == executed.block.parties and any(name not in places for name in wanted):
        who = executed.block.party or "party"
        refuse(
            "PS0811",
            f"the budgets of this plan belong to {who} 1 to {executed.block.parties}, and the data name others",
            "nothing was drawn and nothing was spent",
            help=f"write the number of each {who}, as the spec counts them, in the column {who}",
        )
    return [places[name] for name in wanted if name in places]


def rules_of(executed: Executed, strict: bool) -> tuple[str, ...]:
    """What is done with records, whoever they are of."""
    who, n = executed.block.party or "party", executed.block.count
    grid = "rounded towards zero to a multiple of 2^-20"
    if executed.block.radius is None:
        record = f"each record by itself: numbers beyond 2^40 count as 2^40, then {grid}"
    else:
        record = f"each record by itself: one outside the ball is drawn in to it, then {grid}"
    counts = (
        f"the first {n} records of each {who} in the order of the data count, a {who} with fewer has zero records "
        f"in place of the others; rows without a {who} are left out"
    )
    rules = [record, counts] if strict else [f"{record}; one with {MISFIT} becomes zero", counts]
    if executed.personal:
        rules.append(f"the budgets belong to each {who} by number, from 1 to {executed.block.parties}")
    return (STRICT_RULE, *rules) if strict else tuple(rules)


@dataclass(frozen=True, eq=False, slots=True)
class Pool(family.Secret):
    """The sum of all parties' statistics (k,), in steps."""

    executed: Executed
    total: tuple[int, ...]
    circumstances: family.RunContext

    @property
    def rules(self) -> tuple[str, ...]:
        return rules_of(self.executed, self.circumstances.strict)

    def draw(self, randomness: Randomness) -> family.Drawn:
        """The sum with noise, divided and finished."""
        law = self.executed.laws[0]
        assert isinstance(law, AddedLaw)
        pooled = law.pooled(self.total, randomness) * float(self.executed.block.share)
        return family.Drawn({self.executed.block.output: self.executed.route.finish(pooled[None])[0]})


@dataclass(frozen=True, eq=False, slots=True)
class EachParty(family.Secret):
    """Every party's statistic (N, k), in steps."""

    executed: Executed
    statistics: NDArray[np.int32 | np.int64]
    circumstances: family.RunContext

    @property
    def rules(self) -> tuple[str, ...]:
        return rules_of(self.executed, self.circumstances.strict)

    def draw(self, randomness: Randomness) -> family.Drawn:
        """Every statistic with noise of its own, then pooled by public weights."""
        return family.Drawn({self.executed.block.output: pooled_value(self.executed, self._parts(randomness))})

    def _parts(self, randomness: Randomness) -> Iterator[NDArray[np.float64]]:
        parties = self.executed.block.parties
        step = max(1, CELLS // (self.executed.route.size + self.executed.block.dimension**2))
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
    pooled = pooled * float(executed.block.share)
    return pooled if executed.finish_first else executed.route.finish(pooled[None])[0]


@dataclass(frozen=True, eq=False, slots=True)
class PartyMechanism(family.Mechanism):
    """The plan for one party: its own records, its own noise; `executed` is that of a single party."""

    executed: Executed
    party: str

    @classmethod
    def of(cls, executed: Executed, party: str) -> Self:
        """Raises: UsageError PS0844 if parties make no messages, or that one has no budget of its own."""
        if not executed.each_party or executed.block.party is None:
            _no_messages(executed)
        law = executed.laws[0]
        if executed.personal:
            if not party.isdecimal() or not 1 <= int(party) <= executed.block.parties:
                _refuse_usage(f"{party} is not one of the {executed.block.parties} members of {executed.block.party}")
            law = executed.laws[int(party) - 1]
        return cls(replace(executed, block=replace(executed.block, parties=1), laws=(law,), weights=None), party)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Who it is from, and the noisy statistic."""
        return (str(self.executed.block.party), family.MESSAGE)

    def read(self, data: Mapping[str, Any], circumstances: family.RunContext) -> family.Secret:
        """The party's own rows; data without a column of parties are all its own."""
        parts = [s for _, s in read_statistics(self.executed, data, circumstances, only=self.party) if len(s)]
        found = sum(len(part) for part in parts)
        if found != 1:
            refuse_number(self.executed, found)

        def say(randomness: Randomness) -> Mapping[str, NDArray[Any]]:
            return {family.MESSAGE: self.executed.laws[0].each(parts[0], randomness)[0]}

        return family.OwnMessage(
            str(self.executed.block.party), self.party, say, rules_of(self.executed, circumstances.strict)
        )

    def simulate(self, asked: family.Simulation) -> NDArray[np.float64]:
        """Messages of a party whose statistic is zero."""
        zeros = np.zeros((asked.repetitions, self.executed.route.size), dtype=np.int64)
        return self.executed.laws[0].each(zeros, SimulationRandomness(asked.seed))


def combine(executed: Executed, digest: str, messages: Sequence[Mapping[str, Any]]) -> family.Drawn:
    """The release, as if one run had made all messages.

    Args: messages, one for each party, as their JSON files hold them.
    Raises: UsageError PS0844; DataError PS0842 (no message of this plan), PS0843 (of another plan), PS0811.
    """
    party, size = executed.block.party, executed.route.size
    if not executed.each_party or party is None:
        _no_messages(executed)

    def read(outputs: Mapping[str, Any]) -> tuple[str, list[float]]:
        (who,) = outputs[party]
        return str(who), [float(number) for number in outputs[family.MESSAGE]]

    def flaw(_who: str, statistic: list[float]) -> str:
        fits = len(statistic) == size and bool(np.isfinite(statistic).all())
        return "" if fits else f"is no vector of {size} numbers"

    found = family.messages_by_party(digest, messages, party, read, flaw)
    if len(found) != executed.block.parties:
        refuse_number(executed, len(found))
    names = list(found)
    # Where all have one budget the order of the messages is no matter: weights are equal.
    order = in_order_of_budgets(executed, names) if executed.personal else range(len(names))
    return family.Drawn({executed.block.output: pooled_value(executed, [np.array([found[names[i]] for i in order])])})


def _no_messages(executed: Executed) -> NoReturn:
    _refuse_usage(
        "parties make no messages under this plan: "
        + ("noise enters once, at the pool, which a keeper must see" if executed.block.party else "it has one party")
    )


def _refuse_usage(message: str) -> NoReturn:
    raise UsageError.of("PS0844", message, help=f"with `options: {NOBODY.written}` every party adds noise of its own")
