"""The chances with which unknown keys are shown: the largest there are, by a recursion over the count."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from math import ceil, exp, expm1, floor, inf, log, sqrt
from time import perf_counter
from typing import Any

import numpy as np
import scipy
from flint import arb, ctx

from privspec.core.diagnostics import SpecError
from privspec.core.records import dataclass, replace
from privspec.families.decision import (
    MEETS,
    MISSES,
    STEP,
    Alternative,
    Decided,
    Decision,
    Infeasible,
    Relaxation,
    accuracy_json,
    conflict_line,
    decimal_up,
    guarantee,
    missed,
    price,
    ranked,
)
from privspec.families.family import Settings
from privspec.kernel.changes import Records
from privspec.kernel.core.numbers import ball, end, exp_down
from privspec.kernel.core.problem import Unit
from privspec.kernel.core.reading import Grid, JsonNode
from privspec.kernel.gaussian import mu_down
from privspec.kernel.keys import (
    CLASSES,
    MOST_RECORDS,
    MOST_STEPS,
    UNITS,
    Accuracy,
    KeyBlock,
    Keys,
    best_kept,
    lower_bound,
    moved,
)
from privspec.kernel.laws.threshold import Normal, composed, grown
from privspec.kernel.measures import APPROXIMATE
from privspec.kernel.writing import write
from privspec.model.graph import Model
from privspec.model.values import show
from privspec.problem.elaborate import kept_of, units_of
from privspec.problem.keys import block_of
from privspec.solvers.keys import solve

BITS = 128
"""Binary places of the chances of thresholds."""
SPARE = Fraction(1, 2**70)
"""By so much less than asked delta is taken, relatively: what rounding chances may bring is far below."""
SPLITS, SOLVED = 32, 3
PARTS = (0.3, 0.5, 0.7, 0.85, 0.95)
"""Parts of delta that are tried for Gaussian noise."""
SHARES = 2**20
"""Of the epsilon of all, sums beside keys spend so many shares."""
LEAST_SHARE, NEAR_SHARE, ROUNDS = 1e-3, 0.02, 3
"""The least share of a sum, how near to the best one it is found, and how often where there are several."""
SLACK, BEYOND = 1e-9, 1e-3
"""What doubles may be off, relatively; the part of what is cut off of a Gaussian law that lies above."""
"""Shares of epsilon that are looked at where a unit moves several keys, and those of them that are solved."""


@dataclass(frozen=True, eq=False, slots=True)
class System:
    """A spec in numbers, as the kernel reads it; `moved` is what one unit of its one line moves.

    `scales`: those of the noise of the sums beside keys, for which epsilon is what is left.
    """

    model: Model
    block: KeyBlock
    moved: Records
    epsilon: Fraction
    delta: Fraction
    scales: tuple[Fraction, ...] = ()

    def spent(self, shares: Sequence[float]) -> System:
        """What is left for keys where the sums beside them spend shares of epsilon."""
        parts = [self.epsilon * max(round(share * SHARES), 1) / SHARES for share in shares]
        sizes = [self.moved.moves * one.farthest / self.block.unit(one) for one in self.block.added]
        scales = tuple(size / part for size, part in zip(sizes, parts, strict=True))
        return replace(self, epsilon=self.epsilon - sum(parts), scales=scales)


class UnknownKeys:
    """Takes specs of one release of keys that nobody has listed, or of their counts."""

    def lower(self, model: Model) -> System | Infeasible:
        """What a key is and what it costs to hide it.

        Raises: SpecError PS05xx, PS0401.
        """
        block = block_of(model)
        (line,) = model.requirements
        measure = line.measure
        if measure.common is not APPROXIMATE:
            return _nothing_shown(model)
        (one,) = units_of(line.neighbours, line.wrt)
        if one.count > MOST_RECORDS:
            message = f"solve cannot compute keys of persons with more than {MOST_RECORDS:,} records"
            raise SpecError.at(model.source, line.span, "PS0501", message, help="keep fewer records of each person")
        unit = Unit(one.kind, one.inputs, one.adding, one.count, None, None, exactly=False)
        change = moved(unit, kept_of(model, model.inputs[0]))
        return System(model, block, change, measure.amounts["epsilon"], measure.amounts["delta"])

    def decide(self, model: Model, system: System, settings: Settings) -> Decision | Infeasible:
        """The largest chances, and the centre of counts with the least error.

        Raises: SpecError PS0515 where there would be too many thresholds.
        """
        started = perf_counter()
        shares, block = split(system), system.block
        found = best(system.spent(shares))
        if not found:
            (line,) = model.requirements
            message = f"so small an epsilon makes more than {MOST_STEPS:,} thresholds"
            raise SpecError.at(model.source, line.span, "PS0515", message, help="use a larger epsilon or delta")
        fits = [one for one in found if not list(one.breaks())]
        if not fits:
            return _conflict(system, found)
        taken, rest = fits[0], [one for one in found if one is not fits[0]]
        # of several keys at once nothing more is proved than of one
        alone = system.moved.moves == 1
        witness = _witness(system) if block.counts and alone else None
        claims = taken.claims | ({"bound": witness} if witness is not None else {})
        others = tuple(_alternatives(system, rest)) if settings.alternatives else ()
        return Decided(
            model,
            taken.name,
            float(taken.loss),
            lambda: _stated(system, taken) | {"claims": claims},
            lambda: _bound(system, witness),
            CLASSES[1 + (witness is not None)],
            "" if block.added else UNITS[block.error],
            block.kind,
            others,
            lambda: _prices(system, shares, taken),
            {"name": "recursion over counts", "seconds": perf_counter() - started},
            program=lambda: "chances to show a key follow one from another, in closed form",
        )

    def size(self, system: System) -> int:
        """A table of chances by count."""
        return 1


def _nothing_shown(model: Model) -> Infeasible:
    (line,) = model.requirements
    reason = (
        "a key that one record alone has may show who is there: with no delta the chance to show it is 0, "
        "and then 0 at every count"
    )
    epsilon = line.measure.amounts.get("epsilon", Fraction(1))
    change = Relaxation(
        f"write {APPROXIMATE.at((show(epsilon), '1e-6'))}: a key may then be shown by chance 1e-6 too often", line.line
    )
    return Infeasible(reason, (conflict_line(model, line.span),), (change,))


def _witness(system: System) -> dict[str, Any] | None:
    """Multipliers that bound every mechanism with counts; None where there are none that prove more than is known."""
    block, steps = system.block, len(best_kept(system.epsilon, system.delta, MOST_STEPS))
    sizes = None
    if block.kind == "expected" and block.sizes is not None:
        sizes = np.array(block.sizes.rows[0], dtype=np.float64) * float(block.sizes.unit)
    power = 2 if block.error == "squared" else 1
    found = solve(float(system.epsilon), float(system.delta), sizes, power, steps)
    if found is None:
        return None
    witness = {
        "columns": [
            {"outcome": outcome, "first": first, "up": up.tolist(), "down": down.tolist()}
            for outcome, first, up, down in found.columns
        ],
        "near": found.near,
        "end": found.end,
        "up": found.far[0].tolist(),
        "down": found.far[1].tolist(),
        "weights": None if found.weights is None else found.weights.tolist(),
    }
    return witness if _bound(system, witness) > _bound(system, None) else None


def _bound(system: System, witness: dict[str, Any] | None) -> Fraction:
    """No mechanism that shows only keys that occur has less."""
    return lower_bound(system.block, system.moved, system.epsilon, system.delta, JsonNode(witness, "bound"))


def _conflict(system: System, found: Sequence[Found]) -> Infeasible:
    """The least error is more than a line of accuracy allows."""
    best = min(found, key=lambda one: len(list(one.breaks())))
    one, reached = next(best.breaks())
    alone = system.moved.moves == 1 and not system.block.counts
    whose = "every mechanism" if alone else "the mechanisms that are known here"
    said = f"the privacy asked for makes this error {{}} times as large as allowed, of {whose} at least"
    return missed(system.model, one, reached, 0, said)


def steps_of(epsilon: Fraction, delta: Fraction) -> tuple[int, ...] | None:
    """Chances of thresholds in steps of 2^-128, so that keys are shown as often as one record may change them.

    The chance to be shown at n + 1 records is min(R p + delta, 1 - (1 - p - delta) / R, 1) after p at n, R at most
    e^epsilon, rounded down. None where there would be too many thresholds.
    """
    if half_of(epsilon, delta) > MOST_STEPS:
        return None  # without counting them
    ratio, unit = exp_down(epsilon), 2**BITS
    # what rounding chances adds to the delta of their differences is less than this
    spare = delta - (delta * SPARE if delta > SPARE else 0)
    kept = [0]
    while kept[-1] < unit:
        if len(kept) > MOST_STEPS:
            return None
        before = Fraction(kept[-1], unit)
        after = min(ratio * before + spare, 1 - (1 - before - spare) / ratio, Fraction(1))
        kept.append(int(after * unit))
    return tuple(after - before for before, after in pairwise(kept))


def half_of(epsilon: Fraction, delta: Fraction) -> float:
    """About how many records a key has that is shown as often as not."""
    return log(1 + expm1(min(float(epsilon), 30.0)) / (2 * float(delta))) / float(epsilon)


def as_keys(block: KeyBlock, steps: tuple[int, ...], scales: tuple[Fraction, ...] = ()) -> Keys:
    """The thresholds with the centre of counts that costs least, by doubles: any centre is as private."""
    total = sum(steps)
    keys = Keys(block, Grid((len(steps),), Fraction(1, total), steps), 0, scales)
    if not block.counts:
        return keys
    chances = np.array([float(Fraction(step, total)) for step in steps])
    at, power = np.arange(1, len(steps) + 1), 2 if block.error == "squared" else 1
    hidden = (1 - np.cumsum(chances)) * at**power
    weights = None
    if block.sizes is not None:
        sizes = np.array(block.sizes.rows[0], dtype=np.float64) * float(block.sizes.unit)
        # a key of more records than there are thresholds is as one of so many
        weights = np.bincount(np.minimum(np.arange(len(sizes)), len(at) - 1), sizes, len(at))

    def loss(centre: int) -> float:
        errors = np.cumsum(chances * np.abs(centre - at) ** power) + hidden
        return float(errors.max() if weights is None else weights @ errors)

    # for a fixed law the loss is convex in the centre
    last = len(steps)
    return replace(keys, centre=bisect_left(range(last), True, 1, key=lambda one: loss(one) <= loss(one + 1)))


def room_of(system: System, share: Fraction) -> Fraction:
    """The most delta of one key, where it spends a share of epsilon, so that a unit stays within the line."""
    change, epsilon, delta = system.moved, system.epsilon, system.delta
    moves = change.moves
    if change.each > 1:
        return delta / grown(change, share) * (1 - SPARE)
    if moves == 1:
        return delta
    # of what is left beside shares alone, all keys together fail with as much at most
    without = composed(share, Fraction(0), moves, epsilon)
    return max((delta - without) / (1 - without) / moves, Fraction(0)) if without < 1 else Fraction(0)


@dataclass(frozen=True, eq=False, slots=True)
class Found:
    """Thresholds that keep a line, what the kernel derives that from, and how they are called."""

    name: str
    keys: Keys
    delta: Fraction
    claims: dict[str, Any]
    loss: Fraction

    def breaks(self) -> Iterator[tuple[Accuracy, Fraction]]:
        """The lines of accuracy that it does not meet, each with what it reaches."""
        for one in self.keys.block.accuracy:
            reached = self.keys.error(one)
            if reached > one.bound:
                yield one, reached


def split(system: System) -> list[float]:
    """The shares of epsilon of sums beside keys of least cost, each searched in turn, by the law best for even ones."""
    count = len(system.block.added)
    even = [ranked(law(system.spent([1 / (count + 1)] * count))) for law in LAWS] if count else []
    law = min((one[0].loss, place) for place, one in enumerate(even) if one)[1] if any(even) else 0
    # a share against that of the keys, in logarithms
    weights = np.zeros(count)

    def shares() -> list[float]:
        parts = np.exp(weights)
        return [float(one) for one in parts / (1 + parts.sum())]

    def loss(weight: float, place: int) -> float:
        weights[place] = weight
        losses = [one.loss for one in LAWS[law](system.spent(shares()))]
        return log(float(min(losses))) if losses else inf

    widest = -log(LEAST_SHARE)
    for _ in range(ROUNDS if count > 1 else 1):
        for place in range(count):
            least = scipy.optimize.minimize_scalar(
                loss, bounds=(-widest, widest), args=(place,), method="bounded", options={"xatol": NEAR_SHARE}
            )
            weights[place] = least.x
    return shares()


def best(system: System) -> tuple[Found, ...]:
    """The thresholds of every law with the least loss of that law, the best first."""
    laws = (ranked(law(system)) for law in LAWS)
    return ranked(some[0] for some in laws if some)


def _composed(system: System) -> Iterator[Found]:
    """Thresholds that are the best for one record of one key, where a unit moves so many of these."""
    change, epsilon = system.moved, system.epsilon
    moves = change.moves
    shares = [epsilon / moves]
    if moves > 1 and change.each == 1:
        # more than an even share of epsilon is paid for by delta
        shares += [epsilon / moves * Fraction(round(moves ** (k / SPLITS) * 2**20), 2**20) for k in range(1, SPLITS)]
    known = [(half_of(share, delta), share, delta) for share in shares if (delta := room_of(system, share)) > 0]
    for _, share, delta in sorted(known)[:SOLVED]:
        steps = steps_of(share, delta)
        if steps is not None:
            keys = as_keys(system.block, steps, system.scales)
            least = keys.law.delta_up(change, epsilon, share)
            if least <= system.delta:
                yield Found("a truncated geometric law of thresholds", keys, least, {"share": str(share)}, keys.loss())


def _gaussian(system: System) -> Iterator[Found]:
    """Thresholds near a rounded Gaussian number: better where a unit moves many keys a little."""
    change, epsilon, delta = system.moved, system.epsilon, system.delta
    if change.moves == 1:
        return
    length = sqrt(change.sides * sum(size**2 for size in change.fullest))
    for part in PARTS:
        # a part of delta is for the noise, the rest for what is cut off of it
        scale = length / float(mu_down(epsilon, delta * Fraction(part))) * (1 + SLACK)
        off = float(delta) * (1 - part) / (1 + exp(float(epsilon))) / change.moves * (1 - SLACK)
        if not 0 < off < 1 / 4 or scale * 20 > MOST_STEPS:
            continue
        middle = 0.5 - scale * float(scipy.special.ndtri(off * (1 - 2 * BEYOND)))
        found = _cut_gaussian(system, Fraction(scale), Fraction(middle), off * BEYOND)
        least = found.law.delta_up(change, epsilon, Normal(Fraction(scale), Fraction(middle)))
        if least <= delta:
            claims = {"scale": str(Fraction(scale)), "middle": str(Fraction(middle))}
            yield Found("a Gaussian law of thresholds", found, least, claims, found.loss())


LAWS = (_composed, _gaussian)


def _cut_gaussian(system: System, scale: Fraction, middle: Fraction, beyond: float) -> Keys:
    """The chances of round(middle + scale Z) from 1 on, up to where so little is left, in steps of 2^-128."""
    most = ceil(float(middle) - float(scale) * float(scipy.special.ndtri(beyond)) + 1)
    with ctx.workprec(2 * BITS):
        size = ball(scale) * arb(2).sqrt()
        above = [(ball(Fraction(2 * i + 1, 2) - middle) / size).erfc() / 2 for i in range(most + 1)]
        chances = [end((one - after).mid()) for one, after in pairwise(above)]
    steps = [max(floor(chance * 2**BITS), 0) for chance in chances]
    steps[steps.index(max(steps))] += 2**BITS - sum(steps)
    return as_keys(system.block, tuple(steps), system.scales)


def _alternatives(system: System, found: list[Found]) -> Iterator[Alternative]:
    """Other laws, and Laplace noise above a threshold: what most libraries do."""
    for one in found:
        fits = not list(one.breaks())
        yield Alternative(one.name, float(one.loss), MEETS if fits else MISSES, fits)
    if system.block.added:
        for even in best(system.spent([1 / (1 + len(system.block.added))] * len(system.block.added)))[:1]:
            fits = not list(even.breaks())
            name = "equal shares of epsilon for keys and each sum"
            yield Alternative(name, float(even.loss), MEETS if fits else MISSES, fits)
        return
    if system.moved.moves > 1 or system.block.accuracy:
        return
    epsilon, delta, block = float(system.epsilon), float(system.delta), system.block
    threshold = 1 + max(log(1 / (2 * delta)), 0) / epsilon
    most = ceil(threshold + 60 / epsilon) if block.sizes is None else len(block.sizes.rows[0])
    at = np.arange(1, min(most, MOST_STEPS) + 1)
    far = np.exp(-np.abs(threshold - at) * epsilon) / 2
    kept = np.where(at >= threshold, 1 - far, far)
    if block.error == "missed":
        errors = 1 - kept
    else:
        power = 2 if block.error == "squared" else 1
        errors = _laplace_error(at, threshold, epsilon, power) + (1 - kept) * at**power
    exact = [Fraction(float(error)) for error in errors]
    loss = float(block.averaged(block, exact, exact[-1]))
    yield Alternative(f"Laplace noise, shown above a threshold of {threshold:.4g}", loss)


def _laplace_error(at: Any, threshold: float, epsilon: float, power: int) -> Any:
    """The mean of |X|^power where at + X is at least the threshold, X of Laplace's law with scale 1 / epsilon."""
    edge = threshold - at
    scale = 1 / epsilon
    tail = np.exp(-np.abs(edge) * epsilon) / 2
    size = np.abs(edge)
    beyond = tail * (size + scale if power == 1 else size**2 + 2 * scale * size + 2 * scale**2)
    whole = scale if power == 1 else 2 * scale**2
    return np.where(edge >= 0, beyond, whole - beyond)


def _stated(system: System, found: Found) -> dict[str, Any]:
    """The thresholds as they stand in the plan, with what they guarantee."""
    keys, (line,) = found.keys, system.model.requirements
    said = min(Fraction(decimal_up(found.delta)), system.delta)
    achieved = {"epsilon": system.epsilon, "delta": said}
    notes = [*keys.law.notes, "people"] if line.neighbours.by_id else list(keys.law.notes)
    return {
        "mechanism": write(keys),
        "guarantees": [guarantee(line, 0, achieved, notes)],
        "accuracy": accuracy_json((one.line, one.text, keys.error(one), one.bound) for one in keys.block.accuracy),
    }


def _prices(system: System, shares: Sequence[float], found: Found) -> Iterator[dict[str, Any]]:
    """What a tenth more epsilon would bring."""
    (line,) = system.model.requirements
    after = best(replace(system, epsilon=system.epsilon * STEP).spent(shares))
    if after and float(found.loss):
        yield price(line, float(after[0].loss) / float(found.loss) - 1)
