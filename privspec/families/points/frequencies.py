"""The best reports of finite values for a histogram: sets of values, of the size whose estimates err least."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from math import exp
from time import perf_counter
from typing import Any

from privspec.core.records import dataclass, replace
from privspec.families.document import (
    STEP,
    accuracy_json,
    decimal_up,
    float_down,
    guarantee_head,
    plan_document,
    price,
    rated,
)
from privspec.families.family import Infeasible, Relaxation, Settings, conflict_line
from privspec.kernel.core.numbers import exp_down
from privspec.kernel.frequencies import (
    AMONG,
    NOTE,
    Accuracy,
    Frequencies,
    FrequencyBlock,
    Sets,
    best_subset,
    least_loss,
    least_of_all,
)
from privspec.kernel.frequencies import units_of as units
from privspec.model.graph import Model
from privspec.model.measures import Personalised
from privspec.model.requirements import Requirement
from privspec.model.values import show
from privspec.problem.form import Numbers
from privspec.problem.frequencies import block_of

BITS = 128
"""Binary places of the chance to report one's own value."""


@dataclass(frozen=True, eq=False, slots=True)
class System:
    """A spec in numbers, as the kernel reads it, with the strictest epsilon and the number of its line.

    `limits`: the strictest epsilon of each party, where lines have figures of their own.
    """

    model: Model
    block: FrequencyBlock
    epsilon: Fraction
    binding: int
    limits: tuple[Fraction, ...] | None


class Histograms:
    """Takes specs of how many parties hold each value, where they trust nobody."""

    def lower(self, model: Model) -> System:
        """The values, and what errors of their counts cost.

        Raises: SpecError PS05xx.
        """
        block = block_of(model)
        asked = [line.measure.amounts["epsilon"] for line in model.requirements]
        every = [_limits(line, block.count) for line in model.requirements]
        own = any(isinstance(line.measure, Personalised) for line in model.requirements)
        limits = tuple(map(min, zip(*every, strict=True))) if own else None
        return System(model, block, min(asked), asked.index(min(asked)), limits)

    def decide(self, model: Model, system: System, settings: Settings) -> HistogramDecision | Infeasible:
        """The best size of set."""
        started = perf_counter()
        found = best_of_all(system)
        for one in system.block.accuracy:
            if found.error(one.weight) > one.bound:
                return _conflict(system, found, one)
        others = tuple(_alternatives(system, found)) if settings.alternatives else ()
        return HistogramDecision(model, system, found, others, perf_counter() - started)

    def size(self, system: System) -> int:
        """No matrix is laid out."""
        return 1


def _limits(line: Requirement, count: int) -> list[Fraction]:
    """The epsilon of each party."""
    found = [one.amounts["epsilon"] for one in line.measure.by_person]
    return found if len(found) == count else found * count


def best_of_all(system: System, limits: tuple[Fraction, ...] | None = None) -> Frequencies:
    """The best sets for each epsilon."""
    block, limits = system.block, limits or system.limits
    if limits is None:
        return Frequencies(block, (best(block, system.epsilon),), None)
    every = sorted(set(limits))
    place = {epsilon: kind for kind, epsilon in enumerate(every)}
    of = tuple(place[epsilon] for epsilon in limits)
    sizes = Counter(of)
    kinds = tuple(best(replace(block, count=sizes[kind]), epsilon) for kind, epsilon in enumerate(every))
    return Frequencies(block, kinds, of)


def best(block: FrequencyBlock, epsilon: Fraction) -> Sets:
    """The sets that tell most at an epsilon; the chance of the own value is rounded down."""
    ratio = exp_down(epsilon)
    return reports(block, best_subset(block.told, ratio), ratio)


def reports(block: FrequencyBlock, subset: int, ratio: Fraction) -> Sets:
    """Sets of a size that are at most `ratio` times as likely at a value that they hold as at another."""
    exact = subset * ratio / (subset * ratio + block.told - subset)
    return Sets(block, subset, Fraction(int(exact * 2**BITS), 2**BITS))


def _conflict(system: System, found: Frequencies, one: Accuracy) -> Infeasible:
    """The least error is more than a line of accuracy allows."""
    model, figure = system.model, float(found.error(one.weight))
    line = next(line for line in model.accuracy if line.line == one.line)
    asked = model.requirements[system.binding]
    lines = (conflict_line(model, line.target.span), conflict_line(model, asked.span))
    change = Relaxation(f"accept {figure * (1 + 1e-6):.6g} in place of {float(one.bound):.6g}", one.line)
    reason = (
        f"the privacy asked for makes this error {figure / max(float(one.bound), 1e-300):.4g} times as large as allowed"
    )
    return Infeasible(reason, lines, (change,))


def _alternatives(system: System, found: Frequencies) -> Iterator[dict[str, Any]]:
    """What people use: reports of one value, bits that are flipped, Laplace noise."""
    if system.limits is not None:
        even = best(system.block, system.epsilon)
        name, loss = "the strictest epsilon for everybody", float(even.error(system.block.weight))
        yield {"name": name, "loss": loss, "admissible": True, "reason": "meets every line of the spec"}
        return
    block, epsilon = system.block, float(system.epsilon)
    k = block.told
    reached: list[tuple[str, float]] = []
    if found.kinds[0].subset > 1:
        single = reports(block, 1, exp_down(system.epsilon))
        reached.append((name_of(single), float(single.error(block.weight))))
    # the own bit is sent as it is with chance p, another is one with chance q
    half = 1 / (1 + exp(-epsilon / 2))
    for name, p, q in (
        ("optimised unary encoding", 0.5, 1 / (exp(epsilon) + 1)),
        ("unary encoding, every bit flipped alike (RAPPOR)", half, 1 - half),
    ):
        if p > q:
            each = (p * (1 - p) + (k - 1) * q * (1 - q)) / (p - q) ** 2
            reached.append((name, float(block.summed(Fraction(each)))))
    # 0 and 1 for each value: two of them change by one, or one tells the other; the sum of all is known
    noise = Fraction(8 * (k - 1) if k > 2 else 4) / system.epsilon**2
    reached.append(("Laplace noise on every person's counts", float(block.summed(noise))))
    for name, loss in reached:
        lines = all(one.bound * block.weight >= Fraction(loss) * one.weight for one in block.accuracy)
        reason = "meets every line of the spec" if lines else "misses a line of accuracy"
        yield {"name": name, "loss": loss, "admissible": lines, "reason": reason}


@dataclass(frozen=True, eq=False, slots=True)
class HistogramDecision:
    """The sets that were found, and what else was looked at."""

    model: Model
    system: System
    found: Frequencies
    others: tuple[dict[str, Any], ...]
    seconds: float

    @property
    def name(self) -> str:
        return " and ".join(dict.fromkeys(map(name_of, self.found.kinds[:: max(len(self.found.kinds) - 1, 1)])))

    @property
    def loss(self) -> float:
        return float(self.found.error(self.system.block.weight))

    @property
    def lower_bound(self) -> float:
        """No unbiased estimate from reports has less."""
        block, limits = self.system.block, self.system.limits
        least = least_loss(block, self.system.epsilon) if limits is None else least_of_all(block, list(limits))
        return min(float_down(least), self.loss)

    def document(self) -> dict[str, Any]:
        found, block = self.found, self.system.block
        epsilon = found.epsilon()
        of = None if found.of is None else Numbers((block.count,), Fraction(1), found.of).to_json()
        kinds = [{"subset": kind.subset, "chance": str(kind.chance)} for kind in found.kinds]
        return plan_document(
            self.model,
            {
                **rated(self.model, self.loss, self.lower_bound, AMONG, units(block), block.kind),
                "alternatives": list(self.others),
                "mechanism": {"family": "frequencies", "kinds": kinds, "of": of},
                "guarantees": [_promised(line, number, epsilon) for number, line in enumerate(self.model.requirements)],
                "accuracy": accuracy_json(
                    (one.line, one.text, found.error(one.weight), one.bound) for one in block.accuracy
                ),
                "claims": {},
                "remarks": {"binding": self._price(), "solver": {"name": "closed form", "seconds": self.seconds}},
            },
        )

    def _price(self) -> list[dict[str, Any]]:
        """What a tenth more epsilon in the line that binds would bring."""
        line, block = self.model.requirements[self.system.binding], self.system.block
        if self.system.limits is not None:
            return []
        after = float(best(block, self.system.epsilon * STEP).error(block.weight))
        return [price(line, after / self.loss - 1)]


def _promised(line: Requirement, number: int, epsilon: Fraction) -> dict[str, Any]:
    """A guarantee of the largest epsilon of any party, rounded up, and no more than is asked for."""
    asked = max(_limits(line, 1))
    said = show(min(Fraction(decimal_up(epsilon)), asked))
    return guarantee_head(line, number) | {"achieved": {"epsilon": said}, "because": [NOTE]}


def name_of(found: Sets) -> str:
    """The mechanism in the field's words."""
    k, size = found.block.told, found.subset
    if size == 1:
        return "randomised response" if k == 2 else "k-randomised response"
    return f"subset selection, {size} of {k} values"
