"""A black-box test of what a plan executes: releases of two data sets that differ in one unit, told apart.

Whoever can tell them apart proves that epsilon is at least so large (a test can do no more: that it is at most what a
plan promises is what `verify` proves). Of many pairs of neighbours the one that is told apart best is looked for;
guessers learn on releases of it, one of them is chosen on others, and what it shows is counted on fresh ones. Nothing
but that last count enters a bound, and all bounds of an audit together are wrong once in a million audits.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from fractions import Fraction
from math import ceil, log2
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from privspec.audit.bounds import SEEN, Array, Promise
from privspec.audit.guessing import Draws, Frame, chosen, learned, traits
from privspec.audit.neighbours import MOST, Data, NotMadeUpError, Pair, pairs_of, promised_of, written
from privspec.core.diagnostics import DataError
from privspec.core.records import dataclass, field, replace
from privspec.execute.family import Drawn, Mechanism, Progress, RunContext, Secret, mechanism_of, silent
from privspec.kernel.measures import GAUSSIAN, Measure
from privspec.noise.samplers import Randomness, SimulationRandomness, SystemRandomness

if TYPE_CHECKING:
    from privspec.model.graph import Model
    from privspec.model.requirements import Requirement
    from privspec.plan import Plan
    from privspec.stated import Guarantee

__all__ = ["ALARM", "DRAWS", "LEAST", "SECONDS", "Audit", "Finding", "audit", "pairs_of", "written"]

ALARM = 1e-6
"""How often an audit accuses a plan that keeps all its promises."""
DRAWS, LEAST, SECONDS = 40_000, 200, 15.0
"""Releases of each data set, at most and at least; how long all of an audit may take, about."""
TIMED, EACH, ALIKE = 0.3, 30, 16
"""How long releases are drawn to take their time; of a pair from which it is judged, at least; with the same noise."""
READING = 0.2
"""The share of the time for reading data sets."""
LOOKING, LEARNING, CHOOSING = 0.15, 0.3, 0.45
"""Shares of the releases by whose end the pair, the scores and the guesser are found; the rest are counted."""
NUMBERS = 20_000_000
"""Numbers of releases that are kept at a time."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a plan: what it promises, and what was seen at least; None where its data sets cannot be made up.

    Args: visible, the least amount that would have been seen broken, in 19 of 20 tests with as many guesses; None where
        none would; trait, what told the data sets apart best; draws, releases of each data set; counted, the fresh ones
        of both that the bound rests on.
    """

    line: int
    promise: str
    amount: str
    promised: float
    shown: float | None
    draws: int
    pair: str
    visible: float | None = None
    trait: str = ""
    counted: int = 0

    @property
    def broken(self) -> bool:
        """Whether more was seen than is promised."""
        return self.shown is not None and self.shown > self.promised

    def text(self) -> str:
        """In one line, and what it rests on in another."""
        head = f"line {self.line}: {self.promise}"
        if self.shown is None:
            return f"  -       {head}: not tested ({self.pair})"
        verdict = "BROKEN" if self.broken else "ok"
        seen = f"{self.amount} is at least {self.shown:.3g}" if self.shown > 0 else "these do not tell them apart"
        told = f"by {self.trait}; " if self.shown > 0 else ""
        could = "guesses so rare show no breach"
        if self.visible is not None:
            could = f"guesses like these show a breach from {self.amount} {self.visible:.3g} on"
        reach = "" if self.broken else f"; {could}"
        return f"  {verdict:<8}{head}: {seen}{reach}\n{'':10}({self.pair}; {told}{self.draws:,} releases of each)"


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
        return (
            "\n".join(
                [
                    f"{self.name}: releases of made-up data sets that differ in one unit",
                    *(one.text() for one in self.findings),
                    f"a breach is shown in {SEEN:.0%} of such tests; a plan that keeps its promises is accused once in",
                    f"{1 / ALARM:,.0f} tests. That it keeps them no test can show: privspec verify proves it",
                ]
            )
            + "\n"
        )

    def to_json(self) -> str:
        """As JSON."""
        keys = ("line", "promise", "amount", "promised", "shown", "draws", "pair", "broken")
        later = ("visible", "trait", "counted")  # from 1.1 on
        body = {
            "format": "privspec-audit/1.1",
            "ok": self.ok,
            "alarm": ALARM,
            "findings": [{key: getattr(one, key) for key in (*keys, *later)} for one in self.findings],
        }
        return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


# --- what is drawn --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Sampler:
    """Draws releases of a plan, or messages of one party where everybody sees them; none is ever written.

    `coins` say of which data set each release is: they owe nothing to what the noise comes from.
    """

    mechanism: Mechanism
    model: Model
    outputs: tuple[str, ...]
    randomness: Randomness
    coins: np.random.Generator
    told: Callable[[int], None] | None = None
    _read: dict[int, tuple[Pair, Secret, Secret]] = field(default_factory=dict)

    def secrets(self, pair: Pair) -> tuple[Secret, Secret]:
        """Both data sets, read once, as a run reads them.

        Raises: DataError.
        """
        if id(pair) not in self._read:
            self._read[id(pair)] = (pair, self._secret(pair.left, pair.place), self._secret(pair.right, pair.place))
        return self._read[id(pair)][1:]

    def _secret(self, data: Data, place: int) -> Secret:
        mechanism = self.mechanism
        if self.messages:
            party = str(place + 1)
            mechanism = mechanism.of_party(party)
            data = {name: (header, [row for row in rows if row[0] == party]) for name, (header, rows) in data.items()}
        with TemporaryDirectory() as folder:
            return mechanism.read(written(data, Path(folder)), RunContext(self.model))

    def draw(self, pair: Pair, count: int, kept: Draws) -> Draws:
        """So many releases more, each of the data set that a coin says."""
        secrets = self.secrets(pair)
        for coin in (self.coins.random(count) < 0.5).tolist():
            drawn = secrets[coin].draw(self.randomness)
            self.keep(coin, drawn, kept)
            if self.told is not None:
                self.told(1)
        return kept

    def keep(self, coin: bool, drawn: Drawn, kept: Draws) -> None:
        """What is seen of a release."""
        if self.messages:
            kept.hear(coin, drawn)
        else:
            kept.add(coin, drawn, self.outputs)

    @property
    def messages(self) -> bool:
        """Whether everybody sees what each party says, so that a release is what one of them says."""
        return self.mechanism.by_messages and not self.mechanism.masked


def audit(
    plan: Plan,
    *,
    draws: int | None = None,
    seconds: float | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Tests every line of a plan that is verified first.

    Args: draws, releases of each data set; by default as many as fit, `DRAWS` at most; seconds, how long all of it may
        keep the processor busy, about, by default `SECONDS` where `draws` is not given; seed, for a test that can be
        repeated with as many `draws`: without one the noise comes from where that of a release does; progress, told how
        many releases are drawn.
    Raises: VerificationError, UsageError.
    """
    whole = plan.verified()
    model, mechanism = whole.model(), mechanism_of(whole.document)
    randomness: Randomness = SystemRandomness() if seed is None else SimulationRandomness(seed)
    coins = np.random.default_rng(seed)
    tests = sum(len(_promises(one)) for one in whole.guarantees)
    time_ = seconds or (None if draws else SECONDS)
    limit = None if time_ is None else time_ / max(len(whole.guarantees), 1)
    findings = []
    for guarantee in whole.guarantees:
        line = model.requirements[guarantee.requirement]
        sampler = Sampler(mechanism, model, guarantee.outputs, randomness, coins)
        findings += _Line(sampler, line, guarantee, ALARM / max(tests, 1)).findings(draws, limit, progress or silent)
    return Audit(whole.name, tuple(findings))


def _promises(guarantee: Guarantee) -> tuple[Measure | None, ...]:
    """What is tested of a line: what it asks for, and the mu of Gaussian noise."""
    asked = None if guarantee.by_person else guarantee.asked
    gaussian = GAUSSIAN.figure in guarantee.achieved and asked not in (None, GAUSSIAN)
    return (asked, *([GAUSSIAN] if gaussian else []))


@dataclass(frozen=True, eq=False, slots=True)
class _Line:
    """The test of one line, each of whose promises is accused wrongly in `alarm` of all tests."""

    sampler: Sampler
    line: Requirement
    guarantee: Guarantee
    alarm: float

    def findings(self, draws: int | None, seconds: float | None, progress: Progress) -> list[Finding]:
        """What was seen of each promise."""
        names = ", ".join(self.line.outputs)
        said = f"{names}: {self.line.measure.describe()}"
        try:
            pairs = self._pairs(seconds)
        except (NotMadeUpError, DataError) as why:
            return [Finding(self.line.line, said, "", 0.0, None, 0, str(why))]
        budget = _Budget(self._count(pairs, draws, seconds), seconds, progress, f"releases for line {self.line.line}")
        mine = replace(self, sampler=replace(self.sampler, told=budget.tell))
        pair, kept = mine._told_apart_best(pairs, budget)
        mine.sampler.draw(pair, budget.until(LEARNING), kept)
        frame = Frame.of(kept)
        scores = learned(traits(mine._shift(pair, frame)), frame.releases(kept))
        judged = frame.releases(mine.sampler.draw(pair, budget.until(CHOOSING), Draws()))
        fresh = frame.releases(mine.sampler.draw(pair, budget.until(1.0), Draws()))
        found: list[Finding] = []
        for promise in self._promised(pair):
            guesser = chosen(scores, judged, promise, self.alarm)
            right, wrong = guesser.counts(fresh)
            shown = float(promise.shown(right, wrong, len(fresh), self.alarm))
            visible = promise.visible(right + wrong, len(fresh), self.alarm)
            text = said if not found else f"{names}: Gaussian noise with mu = {promise.promised:.4g}"
            found.append(
                Finding(
                    self.line.line,
                    text,
                    promise.amount,
                    promise.promised,
                    shown,
                    budget.count // 2,
                    pair.words,
                    visible,
                    guesser.words,
                    len(fresh),
                )
            )
        return found

    def _promised(self, pair: Pair) -> list[Promise]:
        """What two data sets of a pair may show at most."""
        figures = {name: float(Fraction(str(value))) for name, value in self.guarantee.figures.items()}
        amounts = promised_of(self.sampler.model, self.line, pair)
        found = [Promise(self.line.measure.of, {**figures, **amounts})]
        if len(_promises(self.guarantee)) > 1:
            achieved = Fraction(str(self.guarantee.achieved[GAUSSIAN.figure]))
            found.append(Promise(GAUSSIAN, {GAUSSIAN.figure: float(achieved)}))
        return found

    def _pairs(self, seconds: float | None) -> list[Pair]:
        """Neighbours that are read, and that are some way apart.

        Raises: NotMadeUpError, DataError.
        """
        sampler = self.sampler
        first = next(pairs_of(sampler.model, self.line, plain=True), None)
        if first is None:
            raise NotMadeUpError(f"no data sets are made up for {self.line.neighbours.describe()}")
        if self.line.measure.of.each_output:
            raise NotMadeUpError(f"no test of {self.line.measure.name}")
        begun = time.process_time()
        plain = bool(sampler.secrets(first)[0].deviations()) or sampler.messages
        taken = max(time.process_time() - begun, 1e-6)
        most = MOST if seconds is None else max(min(MOST, int(READING * seconds / taken)), 2)
        found = []
        for pair in pairs_of(sampler.model, self.line, plain=plain, most=most):
            if self._promised(pair)[0].amounts.get("distance", 1.0) > 0:
                sampler.secrets(pair)
                found.append(pair)
        if not found:
            raise NotMadeUpError("all of the data sets that are made up are at distance 0")
        return found

    def _count(self, pairs: list[Pair], draws: int | None, seconds: float | None) -> int:
        """How many releases to draw, of both data sets together."""
        apart = replace(self.sampler, randomness=SystemRandomness(), coins=np.random.default_rng())
        known = apart.draw(pairs[0], 5, Draws())  # what is worked out once takes longer
        most = NUMBERS // max(sum(map(len, known.rows[0])), 1)
        if seconds is not None:
            taken, begun = [np.inf] * len(pairs), time.process_time()
            while np.inf in taken or time.process_time() < begun + TIMED:
                for place, pair in enumerate(pairs):
                    start = time.process_time()
                    apart.draw(pair, 1, Draws())
                    taken[place] = min(taken[place], time.process_time() - start)
            most = min(most, int(seconds / max(float(np.quantile(taken, 0.8)), 1e-6)))
        return max(2 * LEAST, min(2 * (draws or DRAWS), most))

    def _told_apart_best(self, pairs: list[Pair], budget: _Budget) -> tuple[Pair, Draws]:
        """The pair that is told apart best, with its releases: the better half of those left, again and again."""
        if len(pairs) == 1:
            return pairs[0], Draws()
        share, rounds = budget.until(LOOKING), ceil(log2(len(pairs)))
        most = max(share // rounds // EACH, 1)
        left = [(pair, Draws()) for pair in pairs[:: -(-len(pairs) // most)]]
        while len(left) > 1:
            ranked = []
            for pair, kept in left:
                self.sampler.draw(pair, share // rounds // len(left) // 2 * 2, kept)
                ranked.append(self._apart(pair, kept))
            order = sorted(range(len(left)), key=lambda place: ranked[place], reverse=True)
            left = [left[place] for place in order[: (len(left) + 1) // 2]]
        return left[0]

    def _apart(self, pair: Pair, kept: Draws) -> tuple[float, float]:
        """How much of what is promised some releases of a pair show: at least, and about."""
        releases, promise = Frame.of(kept).releases(kept), self._promised(pair)[0]
        half = len(releases) // 2
        found = np.zeros(2)
        for one, other in ((slice(half), slice(half, None)), (slice(half, None), slice(half))):
            guesser = chosen(learned(traits(coarse=True), releases[one]), releases[other], promise, 0.1)
            counts = guesser.counts(releases[other])
            found += [float(promise.shown(*counts, half, chance)) / promise.promised for chance in (0.1, 0.5)]
        return float(found[0]), float(found[1])

    def _shift(self, pair: Pair, frame: Frame) -> Array:
        """By how much the numbers of the second data set are more, where noise is added: it is drawn alike for both."""
        known = [Draws(), Draws()]
        for seed in range(ALIKE):
            for kept, secret in zip(known, self.sampler.secrets(pair), strict=True):
                drawn = secret.draw(SimulationRandomness(seed))
                self.sampler.keep(False, drawn, kept)
        first, second = (frame.releases(kept).numbers for kept in known)
        change: Array = np.nan_to_num(second - first).mean(axis=0)
        return change


class _Budget:
    """How many releases to draw until which share of them is drawn; fewer than planned, where time runs out."""

    def __init__(self, count: int, seconds: float | None, progress: Progress, what: str) -> None:
        self.count, self._seconds, self._progress, self._what = count, seconds, progress, what
        self._begun, self._share, self._done = time.process_time(), 0.0, 0

    def until(self, share: float) -> int:
        """So many more, an even number; it is settled before any of them is drawn."""
        taken = time.process_time() - self._begun
        if self._seconds is not None and self._share:
            slower = taken / self._share * (1 - self._share) / max(self._seconds - taken, 0.05 * self._seconds)
            self.count = max(int(self.count / max(slower, 1.0)), 2 * LEAST)
        before, self._share = self._share, share
        return int((share - before) * self.count) // 2 * 2

    def tell(self, count: int) -> None:
        """So many are drawn."""
        self._done += count
        if self._done % 50 == 0:
            self._progress(self._what, self._done, self.count)
