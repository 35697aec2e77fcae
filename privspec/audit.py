"""A black-box test of what a plan executes: releases of two data sets that differ in one unit, told apart.

Whoever can tell them apart proves that epsilon is at least so large (a test can do no more: that it is at most what a
plan promises is what `verify` proves). Half of the releases teach a rule that says which data set a release is of; how
often it is right is counted on the other half, with exact binomial bounds (Clopper and Pearson 1934).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from privspec.core.records import dataclass
from privspec.execute.family import Circumstances, Mechanism, mechanism_of
from privspec.model import domains
from privspec.model.neighbours import (
    NeighbourRelation,
    ReplacingEntry,
    ReplacingEverything,
    ReplacingRecord,
    ReplacingVoter,
)
from privspec.model.values import show
from privspec.noise.samplers import Randomness, SimulationRandomness, SystemRandomness
from privspec.problem.elaborate import kept_of

if TYPE_CHECKING:
    from privspec.model.graph import Model
    from privspec.model.neighbours import InputBlock
    from privspec.model.requirements import Requirement
    from privspec.plan import Plan

ALARM = 1e-6
"""How often a mechanism that keeps its promise is accused."""
DRAWS, SECONDS = 20_000, 60.0
PILOT = 200
UNITS, UNKNOWN = 3, (1, 3, 12, 40)
"""Units of made-up data; where keys are unknown, each of several numbers of them."""
DISTINCT = 500
"""So many different releases are counted; of more, numbers are weighed against each other."""
ORDERS = (1.01, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 8.0, 16.0, 32.0, 64.0)
Rows: TypeAlias = list[list[str]]
Data: TypeAlias = dict[str, tuple[list[str], Rows]]
"""Of each input: the header of its file, and its rows."""


# --- what is seen at least ------------------------------------------------------------------------


def _apart(p: float, q: float, delta: float) -> float:
    return float(np.log((p - delta) / q)) if p - delta > q > 0 else 0.0


def _renyi(p: float, q: float, order: float) -> float:
    """Renyi divergence of two coins, the first of which falls on one side more often."""
    if not 1 > p > q > 0:
        return 0.0
    sides = (p * (p / q) ** (order - 1), (1 - p) * ((1 - p) / (1 - q)) ** (order - 1))
    return float(np.log(sum(sides)) / (order - 1))


SHOWN: Mapping[str, tuple[str, Callable[[float, float, Mapping[str, float]], float]]] = {
    "epsilon-DP": ("epsilon", lambda p, q, _: _apart(p, q, 0.0)),
    "epsilon-LDP": ("epsilon", lambda p, q, _: _apart(p, q, 0.0)),
    "(epsilon, delta)-DP": ("epsilon", lambda p, q, a: _apart(p, q, a["delta"])),
    "(epsilon, delta)-LDP": ("epsilon", lambda p, q, a: _apart(p, q, a["delta"])),
    "mu-GDP": ("mu", lambda p, q, _: float(ndtri(p) - ndtri(q)) if 1 > p > q > 0 else 0.0),
    "rho-zCDP": ("rho", lambda p, q, _: max(_renyi(p, q, order) / order for order in ORDERS)),
    "(order, epsilon)-RDP": ("epsilon", lambda p, q, a: _renyi(p, q, a["order"])),
}
"""By measure: its amount, and what that is at least where something has probability p on one side, q on the other."""


def at_most(hits: int, trials: int, alarm: float) -> float:
    """What a probability is at most, wrong in `alarm` of all samples."""
    return 1.0 if hits >= trials else float(betaincinv(hits + 1, trials - hits, 1 - alarm))


def at_least(hits: int, trials: int, alarm: float) -> float:
    """What a probability is at least, wrong in `alarm` of all samples."""
    return 0.0 if hits <= 0 else float(betaincinv(hits, trials - hits + 1, alarm))


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a plan: what it promises, and what was seen at least; None where its data sets cannot be made up."""

    line: int
    promise: str
    amount: str
    promised: float
    shown: float | None
    draws: int
    pair: str

    @property
    def broken(self) -> bool:
        """Whether more was seen than is promised."""
        return self.shown is not None and self.shown > self.promised

    def text(self) -> str:
        """In one line."""
        head = f"line {self.line}: {self.promise}"
        if self.shown is None:
            return f"  -       {head}: not tested ({self.pair})"
        verdict = "BROKEN" if self.broken else "ok"
        seen = f"{self.amount} is at least {self.shown:.3g}" if self.shown > 0 else "these do not tell them apart"
        return f"  {verdict:<8}{head}: {seen} ({self.pair}; {self.draws:,} releases of each)"


@dataclass(frozen=True, slots=True)
class Audit:
    """What came out for every line of a plan."""

    name: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether no promise was seen broken."""
        return not any(one.broken for one in self.findings)

    def text(self) -> str:
        """For a terminal."""
        lines = [
            f"{self.name}: releases of made-up data sets that differ in one unit",
            *(f.text() for f in self.findings),
        ]
        lines.append(
            f"a promise that is kept is accused once in {1 / ALARM:,.0f} tests; that one is kept no test can show: "
            "privspec verify proves it"
        )
        return "\n".join(lines) + "\n"

    def to_json(self) -> str:
        """As JSON."""
        keys = ("line", "promise", "amount", "promised", "shown", "draws", "pair", "broken")
        body = {
            "format": "privspec-audit/1.0",
            "ok": self.ok,
            "alarm": ALARM,
            "findings": [{key: getattr(one, key) for key in keys} for one in self.findings],
        }
        return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


# --- the test -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sampler:
    """Draws releases of a plan; none is ever written."""

    mechanism: Mechanism
    model: Model
    outputs: tuple[str, ...]
    randomness: Randomness

    def secret(self, data: Data) -> Any:
        """Data that were read as a run reads them."""
        with TemporaryDirectory() as folder:
            return self.mechanism.read(written(data, Path(folder)), Circumstances(self.model))

    def draws(self, secret: Any, count: int) -> list[tuple[Any, ...]]:
        """So many releases, each as one row of values."""
        found = []
        for _ in range(count):
            release = secret.draw(self.randomness)
            drawn = release.outputs
            row: list[Any] = []
            for name in self.outputs:
                row += np.asarray(drawn[name]).ravel().tolist() if name in drawn else ["not drawn"]
                row += [text for labels in release.labels.get(name, {}).values() for text in labels]
            found.append(tuple(row))
        return found


def written(data: Data, folder: Path) -> dict[str, Path]:
    """A CSV file of each input."""
    paths = {name: folder / f"{name}.csv" for name in data}
    for name, (header, rows) in data.items():
        paths[name].write_text("".join(",".join(row) + "\n" for row in (header, *rows)), "utf-8")
    return paths


@dataclass(frozen=True, slots=True)
class Pair:
    """Two data sets that are neighbours."""

    words: str
    left: Data
    right: Data


Score: TypeAlias = Callable[[list[tuple[Any, ...]]], NDArray[np.float64]]


def _rule(left: list[tuple[Any, ...]], right: list[tuple[Any, ...]]) -> Score:
    """Larger for what looks like a release of the right data: log ratios of counts, or Fisher's discriminant."""
    kinds = {*left, *right}
    if len(kinds) <= DISTINCT or any(isinstance(value, str) for kind in kinds for value in kind):
        counted: dict[tuple[Any, ...], list[float]] = {kind: [0.5, 0.5] for kind in kinds}
        for side, rows in enumerate((left, right)):
            for row in rows:
                counted[row][side] += 1
        ratios = {kind: float(np.log(b / a)) for kind, (a, b) in counted.items()}
        return lambda rows: np.array([ratios.get(row, 0.0) for row in rows])
    one, other = np.array(left, dtype=float), np.array(right, dtype=float)
    spread = np.cov(np.vstack([one - one.mean(0), other - other.mean(0)]).T).reshape(one.shape[1], -1)
    scale = np.diag(spread).mean() or 1.0
    if one.shape[1] > len(left) / 10:
        spread = np.diag(np.diag(spread))
    towards = np.linalg.solve(spread + 1e-9 * scale * np.eye(len(spread)), other.mean(0) - one.mean(0))
    return lambda rows: np.asarray(np.array(rows, dtype=float) @ towards)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Scores of releases that a rule takes for the first of two data sets where they are large: of it, of the other."""

    measure: str
    amounts: Mapping[str, float]
    own: NDArray[np.float64]
    other: NDArray[np.float64]

    def shown(self, cut: float, alarm: float) -> float:
        """What scores of at least the cut show of the measure's amount; wrong in twice `alarm` of all samples."""
        hits, wrong = (int(np.count_nonzero(scores >= cut)) for scores in (self.own, self.other))
        p, q = at_least(hits, len(self.own), alarm), at_most(wrong, len(self.other), alarm)
        return SHOWN[self.measure][1](p, q, self.amounts)

    @property
    def cuts(self) -> NDArray[np.float64]:
        """Where scores may be told apart."""
        return np.unique(np.quantile(np.concatenate((self.own, self.other)), np.linspace(0.001, 0.999, 400)))


def _test(
    sampler: Sampler, pair: Pair, measure: str, amounts: Mapping[str, float], draws: int, alarm: float = ALARM
) -> float:
    """The largest amount that the pair shows, in either order; wrongly in `alarm` of all tests."""
    secrets, half = (sampler.secret(pair.left), sampler.secret(pair.right)), draws // 2
    learned = [sampler.draws(secret, half) for secret in secrets]
    score = _rule(learned[0], learned[1])

    def evidence(rows: list[list[tuple[Any, ...]]]) -> tuple[Evidence, Evidence]:
        """Large scores speak for the right data set, and small ones for the left."""
        left, right = map(score, rows)
        return Evidence(measure, amounts, right, left), Evidence(measure, amounts, -left, -right)

    # two directions, each with two bounds
    taught = evidence(learned)
    chosen = [max(one.cuts, key=lambda cut: one.shown(cut, alarm / 4)) for one in taught]
    fresh = evidence([sampler.draws(secret, half) for secret in secrets])
    return max(one.shown(cut, alarm / 4) for one, cut in zip(fresh, chosen, strict=True))


def audit(plan: Plan, *, draws: int = DRAWS, seconds: float = SECONDS, seed: int | None = None) -> Audit:
    """Tests every line of a plan that is verified first.

    Args: draws, releases of each data set at most; seconds, how long a line may take, about; seed, for a test that can
    be repeated: without one the noise comes from where that of a release does.
    Raises: VerificationError, UsageError.
    """
    whole = plan.verified()
    model = whole.model()
    randomness: Randomness = SystemRandomness() if seed is None else SimulationRandomness(seed)
    mechanism, findings = mechanism_of(whole.document), []
    for guarantee in whole.guarantees:
        line = model.requirements[guarantee.requirement]
        sampler = Sampler(mechanism, model, guarantee.outputs, randomness)
        findings.append(_line(sampler, line, guarantee.measure, guarantee.figures, draws, seconds))
    return Audit(whole.name, tuple(findings))


def _line(
    sampler: Sampler, line: Requirement, measure: str, figures: Mapping[str, Any], draws: int, seconds: float
) -> Finding:
    amounts = {name: float(Fraction(str(value))) for name, value in figures.items()}
    promise = f"{', '.join(line.outputs)}: {line.measure.describe()}"
    if measure not in SHOWN:
        return Finding(line.line, promise, "", 0.0, None, 0, f"no test of {measure}")
    amount = SHOWN[measure][0]
    try:
        pairs = list(pairs_of(sampler.model, line))
        if not pairs:
            raise NotMadeUpError(f"no data sets are made up for {line.neighbours.describe()}")
        begun = time.perf_counter()
        tried = [(_test(sampler, pair, measure, amounts, PILOT, 1.0), pair) for pair in pairs]
        each = (time.perf_counter() - begun) / (2 * PILOT * len(pairs))
    except NotMadeUpError as why:
        return Finding(line.line, promise, amount, amounts[amount], None, 0, str(why))
    pair = max(tried, key=lambda one: one[0])[1]
    count = max(PILOT, min(draws, int(seconds / (2 * each))))
    shown = _test(sampler, pair, measure, amounts, count)
    return Finding(line.line, promise, amount, amounts[amount], shown, count, pair.words)


# --- data sets that are neighbours ----------------------------------------------------------------


class NotMadeUpError(Exception):
    """Data of this kind are not made up."""


def pairs_of(model: Model, line: Requirement) -> Iterator[Pair]:
    """Some neighbours: the unit is at one end of what it may be, then at the other; all else stays as it is.

    Raises: NotMadeUpError.
    """
    relation = line.neighbours
    if not isinstance(relation, ReplacingEntry | ReplacingRecord | ReplacingVoter | ReplacingEverything):
        raise NotMadeUpError(f"no data sets are made up for {relation.describe()}")
    # whether an unknown key is shown depends on how many records have it
    for units in UNKNOWN if any(domains.unknown_keys(block.domain) for block in model.blocks) else (UNITS,):
        blocks = {block.name: _Input.of(model, block, units) for block in model.blocks}
        # an entry or record is one of any of the inputs, a party moves in all of them
        alone = isinstance(relation, ReplacingEntry | ReplacingRecord) and not relation.by_id
        for names in [(name,) for name in line.wrt] if alone else [line.wrt]:
            yield from _moved(relation, blocks, [blocks[name] for name in names])


def _moved(relation: NeighbourRelation, blocks: Mapping[str, _Input], moved: Sequence[_Input]) -> Iterator[Pair]:
    """Neighbours by a unit that changes in some inputs at once."""
    part = {ReplacingEntry: "entry", ReplacingRecord: "record"}.get(type(relation), "")
    everything = isinstance(relation, ReplacingEverything)
    for choice in range(0 if relation.adding else 1, max(len(one.choices) for one in moved)):
        for place in sorted({0, min(one.units for one in moved) - 1}):
            left: Data = {name: one.data(0, place, 0) for name, one in blocks.items()}
            right = dict(left)
            for one in moved:
                count = one.units if everything else min(1 if relation.by_id else relation.group, one.units)
                left[one.name] = one.data(count, place, 0, gone=relation.adding, part=part)
                right[one.name] = one.data(count, place, choice, part=part)
            who = ", ".join(one.name for one in moved)
            yield Pair(f"{who}: {relation.describe()} at place {place + 1}", left, right)


@dataclass(frozen=True, slots=True)
class _Input:
    """How data of one input look in a file: `units`, each of `each` rows, which are one of `choices`.

    Rows are usually the first choice; `even`: the first and the second in turn. `free`: units may be left out.
    """

    name: str
    header: tuple[str, ...]
    choices: tuple[tuple[str, ...], ...]
    units: int
    each: int = 1
    numbered: bool = False
    even: bool = False
    free: bool = False

    def data(
        self, count: int, place: int, choice: int, *, gone: bool = False, part: str = ""
    ) -> tuple[list[str], Rows]:
        """The usual rows, but for those of `count` units from a place on: another choice, or zeros, or none at all.

        Args: part, "entry" or "record" where only the first number of the first row, or that row, of a unit changes.
        """
        rows = []
        first = min(place, self.units - count)
        for unit in range(self.units):
            changed = first <= unit < first + count
            if changed and gone and self.free:
                continue
            usual = self.choices[unit % 2 if self.even and not changed else 0]
            other = tuple("0" for _ in usual) if gone else self.choices[min(choice, len(self.choices) - 1)]
            other = (other[0], *usual[1:]) if part == "entry" else other
            own = [other if changed and not (part and row) else usual for row in range(self.each)]
            rows += [[*([str(unit + 1)] if self.numbered else []), *row] for row in own]
        return list(self.header), rows

    @classmethod
    def of(cls, model: Model, block: InputBlock, units: int) -> _Input:
        """Raises: NotMadeUpError."""
        domain, index, name = block.domain, block.index, block.name
        units = units if index is None else model.parties[index].size
        if isinstance(domain, domains.Table):
            if index is not None:
                raise NotMadeUpError("tables that parties hold are not made up")
            every = list(product(*(_two(one) for _, one in domain.attributes)))
            choices = tuple(dict.fromkeys([*every[:3], every[-1]]))
            kept = kept_of(model, model.nodes[name])
            if kept is not None:
                header = (kept.person, *domain.names)
                return cls(name, header, choices, units, each=kept.most, numbered=True, free=True)
            return cls(name, domain.names, choices, domain.records or units, free=True)
        if isinstance(domain, domains.RankingOf | domains.PartialRankingOf) and index is not None:
            words = [show(one) for one in domain.alternatives]
            words = words[: max(domain.places, 2)] if isinstance(domain, domains.PartialRankingOf) else words
            orders = ((" ".join(words),), (" ".join(words[::-1]),))
            return cls(name, ("ranking",), orders, units, even=True, free=True)
        if isinstance(domain, domains.FiniteSet) and index is not None:
            ballots = tuple((show(one),) for one in domain.items[:3])
            return cls(name, ("choice",), ballots, units, even=True, free=True)
        inner, shape = domain, block.type.shape if index is None else block.type.shape[1:]
        while isinstance(inner, domains.Power):
            inner = inner.base
        wide, ends = (inner.dimension, _ball(inner)) if isinstance(inner, domains.Ball) else (1, (_two(inner)))
        if isinstance(inner, domains.Ball):
            shape = shape[:-1]
        elif len(shape) > (index is None):
            wide, shape = shape[-1], shape[:-1]
        if len(shape) > 1:
            raise NotMadeUpError(f"data of the form {domain.describe()} are not made up")
        choices = tuple(one if isinstance(one, tuple) else (one,) * wide for one in ends)
        names = (name,) if wide == 1 else tuple(f"{name}_{i + 1}" for i in range(wide))
        several = shape[0] if shape else 1
        if index is None:
            return cls(name, names, choices, several)
        return cls(name, (index, *names), choices, units, each=several, numbered=True)


def _two(domain: domains.Domain) -> tuple[str, str]:
    """Two values that are far apart.

    Raises: NotMadeUpError.
    """
    if isinstance(domain, domains.Unknown):
        return "here", "there"
    if domain.size is not None and not isinstance(domain, domains.Between):
        every = list(domain.elements())
        return show(every[0]), show(every[-1])
    low, high = domain.bounds
    if low is None or high is None:
        raise NotMadeUpError(f"numbers in {domain.describe()} have no two ends")
    return show(low), show(high)


def _ball(ball: domains.Ball) -> tuple[tuple[str, ...], tuple[str, ...]]:
    rest = ("0",) * (ball.dimension - 1)
    return (show(-ball.radius), *rest), (show(ball.radius), *rest)
