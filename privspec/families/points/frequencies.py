"""The best reports of finite values for a histogram: sets of values, of the size whose estimates err least."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import exp
from time import perf_counter
from typing import Any

from privspec.core.records import dataclass
from privspec.families.document import STEP, accuracy_json, float_down, plan_document, price, promised, rated
from privspec.families.family import Infeasible, Relaxation, Settings, conflict_line
from privspec.kernel.core.numbers import exp_down
from privspec.kernel.frequencies import AMONG, NOTE, Accuracy, Frequencies, FrequencyBlock, best_subset, least_loss
from privspec.kernel.frequencies import units_of as units
from privspec.model.graph import Model
from privspec.problem.frequencies import block_of

BITS = 128
"""Binary places of the chance to report one's own value."""


@dataclass(frozen=True, eq=False, slots=True)
class System:
    """A spec in numbers, as the kernel reads it, with the strictest epsilon and the number of its line."""

    model: Model
    block: FrequencyBlock
    epsilon: Fraction
    binding: int


class Histograms:
    """Takes specs of how many parties hold each value, where they trust nobody."""

    def lower(self, model: Model) -> System:
        """The values, and what errors of their counts cost.

        Raises: SpecError PS05xx.
        """
        block = block_of(model)
        asked = [line.measure.amounts["epsilon"] for line in model.requirements]
        return System(model, block, min(asked), asked.index(min(asked)))

    def decide(self, model: Model, system: System, settings: Settings) -> HistogramDecision | Infeasible:
        """The best size of set."""
        started = perf_counter()
        found = best(system.block, system.epsilon)
        for one in system.block.accuracy:
            if found.error(one.weight) > one.bound:
                return _conflict(system, found, one)
        others = tuple(_alternatives(system, found)) if settings.alternatives else ()
        return HistogramDecision(model, system, found, others, perf_counter() - started)

    def size(self, system: System) -> int:
        """No matrix is laid out."""
        return 1


def best(block: FrequencyBlock, epsilon: Fraction) -> Frequencies:
    """The sets that tell most at an epsilon; the chance of the own value is rounded down."""
    ratio = exp_down(epsilon)
    return reports(block, best_subset(block.values, ratio), ratio)


def reports(block: FrequencyBlock, subset: int, ratio: Fraction) -> Frequencies:
    """Sets of a size that are at most `ratio` times as likely at a value that they hold as at another."""
    exact = subset * ratio / (subset * ratio + block.values - subset)
    return Frequencies(block, subset, Fraction(int(exact * 2**BITS), 2**BITS))


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
    block, epsilon = system.block, float(system.epsilon)
    k, whole = block.values, float(block.weight * block.scale**2 * block.count)
    reached: list[tuple[str, float]] = []
    if found.subset > 1:
        single = reports(block, 1, exp_down(system.epsilon))
        reached.append((name_of(single), float(single.error(block.weight))))
    # the own bit is sent as it is with chance p, another is one with chance q
    half = 1 / (1 + exp(-epsilon / 2))
    for name, p, q in (
        ("optimised unary encoding", 0.5, 1 / (exp(epsilon) + 1)),
        ("unary encoding, every bit flipped alike (RAPPOR)", half, 1 - half),
    ):
        if p > q:
            reached.append((name, whole * (p * (1 - p) + (k - 1) * q * (1 - q)) / (p - q) ** 2))
    # 0 and 1 for each value: two of them change by one; the sum of all is known
    reached.append(("Laplace noise on every person's counts", whole * (k - 1) * 8 / epsilon**2))
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
        return name_of(self.found)

    @property
    def loss(self) -> float:
        return float(self.found.error(self.system.block.weight))

    @property
    def lower_bound(self) -> float:
        """No unbiased estimate from reports has less."""
        return min(float_down(least_loss(self.system.block, self.system.epsilon)), self.loss)

    def document(self) -> dict[str, Any]:
        found, block = self.found, self.system.block
        epsilon = found.epsilon()
        return plan_document(
            self.model,
            {
                **rated(self.model, self.loss, self.lower_bound, AMONG, units(block), block.kind),
                "alternatives": list(self.others),
                "mechanism": {"family": "frequencies", "subset": found.subset, "chance": str(found.chance)},
                "guarantees": [
                    promised(line, number, epsilon, NOTE) for number, line in enumerate(self.model.requirements)
                ],
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
        after = float(best(block, self.system.epsilon * STEP).error(block.weight))
        return [price(line, after / self.loss - 1)]


def name_of(found: Frequencies) -> str:
    """The mechanism in the field's words."""
    k, size = found.block.values, found.subset
    if size == 1:
        return "randomised response" if k == 2 else "k-randomised response"
    return f"subset selection, {size} of {k} values"
