"""The best reports of finite values for a histogram: sets of values, of the size whose estimates err least."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from math import exp
from time import perf_counter
from typing import Any

from privspec.core.records import dataclass, replace
from privspec.families.decision import (
    MEETS,
    MISSES,
    STEP,
    Alternative,
    Decided,
    Decision,
    Infeasible,
    accuracy_json,
    decimal_up,
    guarantee_head,
    missed,
    price,
)
from privspec.families.family import Settings
from privspec.kernel.core.numbers import exp_down
from privspec.kernel.frequencies import (
    AMONG,
    NOTE,
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

    def decide(self, model: Model, system: System, settings: Settings) -> Decision | Infeasible:
        """The best size of set."""
        started = perf_counter()
        block, limits, found = system.block, system.limits, best_of_all(system)
        for one in block.accuracy:
            if found.error(one.weight) > one.bound:
                return missed(model, one, found.error(one.weight), system.binding)
        loss = float(found.error(block.weight))
        return Decided(
            model,
            " and ".join(dict.fromkeys(map(name_of, found.kinds[:: max(len(found.kinds) - 1, 1)]))),
            loss,
            lambda: _stated(model, found),
            # no unbiased estimate from reports has less
            lambda: least_loss(block, system.epsilon) if limits is None else least_of_all(block, list(limits)),
            AMONG,
            units(block),
            block.kind,
            tuple(_alternatives(system, found)) if settings.alternatives else (),
            lambda: _prices(system, loss),
            {"name": "closed form", "seconds": perf_counter() - started},
        )

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


def _alternatives(system: System, found: Frequencies) -> Iterator[Alternative]:
    """What people use: reports of one value, bits that are flipped, Laplace noise."""
    if system.limits is not None:
        even = best(system.block, system.epsilon)
        yield Alternative("the strictest epsilon for everybody", float(even.error(system.block.weight)))
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
        fits = all(one.bound * block.weight >= Fraction(loss) * one.weight for one in block.accuracy)
        yield Alternative(name, loss, MEETS if fits else MISSES, fits)


def _stated(model: Model, found: Frequencies) -> dict[str, Any]:
    """The sets as they stand in the plan, with what they guarantee."""
    block, epsilon = found.block, found.epsilon()
    of = None if found.of is None else Numbers((block.count,), Fraction(1), found.of).to_json()
    kinds = [{"subset": kind.subset, "chance": str(kind.chance)} for kind in found.kinds]
    return {
        "mechanism": {"family": "frequencies", "kinds": kinds, "of": of},
        "guarantees": [_promised(line, number, epsilon) for number, line in enumerate(model.requirements)],
        "accuracy": accuracy_json((one.line, one.text, found.error(one.weight), one.bound) for one in block.accuracy),
    }


def _prices(system: System, loss: float) -> list[dict[str, Any]]:
    """What a tenth more epsilon in the line that binds would bring."""
    if system.limits is not None:
        return []
    after = float(best(system.block, system.epsilon * STEP).error(system.block.weight))
    return [price(system.model.requirements[system.binding], after / loss - 1)]


def _promised(line: Requirement, number: int, epsilon: Fraction) -> dict[str, Any]:
    """A guarantee of the largest epsilon of any party, rounded up, and no more than is asked for."""
    said = show(min(Fraction(decimal_up(epsilon)), max(_limits(line, 1))))
    return guarantee_head(line, number) | {"achieved": {"epsilon": said}, "because": [NOTE]}


def name_of(found: Sets) -> str:
    """The mechanism in the field's words."""
    k, size = found.block.told, found.subset
    if size == 1:
        return "randomised response" if k == 2 else "k-randomised response"
    return f"subset selection, {size} of {k} values"
