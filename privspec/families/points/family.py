"""The least noise at a point under privacy by distance: in closed form, and the best of its kind for usual losses."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from time import perf_counter
from typing import Any

from privspec.core.records import dataclass, replace
from privspec.core.rounding import graded
from privspec.families.document import STEP, accuracy_json, float_down, plan_document, price, promised, rated
from privspec.families.family import Infeasible, Relaxation, Settings, conflict_line
from privspec.kernel.core.reading import Item
from privspec.kernel.points import (
    CLASSES,
    NOTE,
    least_loss,
    loss_of,
    rate,
    ratio_squared,
    reached,
    read_points,
    root_up,
    units_of,
    whole,
)
from privspec.kernel.points import Points as Executed
from privspec.model.graph import Model
from privspec.model.requirements import Requirement
from privspec.problem.form import document
from privspec.problem.points import FAMILIES, NORM_OF, PointBlock, block_of

FINE = 34
"""Points are rounded to a step of about 2^-34 of the scale of the noise."""
NAMES = {
    "l2": "K-norm noise of the Euclidean distance (planar Laplace noise, in the plane)",
    "l1": "independent Laplace noise on every number",
    "linf": "K-norm noise of the largest difference",
}


@dataclass(frozen=True, eq=False, slots=True)
class System:
    """A spec in numbers: `unit` as the kernel reads it, with noise of scale 1."""

    model: Model
    block: PointBlock
    unit: Executed

    def scale(self, norm: str, requirement: Requirement) -> Fraction | None:
        """The least scale at which noise of a norm meets a line, rounded up; None where none does."""
        unit, measure = replace(self.unit, norm=norm), requirement.measure
        if measure.of.by_distance:
            return root_up(ratio_squared(norm, NORM_OF[measure.metric], self.block.size)) / measure.amounts["epsilon"]
        most, epsilon = whole(unit), measure.pure_epsilon
        return None if most is None or not epsilon else most / epsilon

    def candidate(self, norm: str, raised: int | None = None) -> Candidate | None:
        """The least noise of a norm that meets all lines, that of number `raised` with a tenth more epsilon."""
        found: list[tuple[Fraction, int]] = []
        for number, requirement in enumerate(self.model.requirements):
            scale = self.scale(norm, requirement)
            if scale is None:
                return None
            found.append((scale / STEP if number == raised else scale, number))
        scale, binding = max(found, key=lambda one: one[0])
        points = replace(self.unit, norm=norm, scale=scale, step=step_of(scale))
        exact = loss_of(points, self.unit.block.error)
        return None if exact is None else Candidate(points, exact, binding)


@dataclass(frozen=True, eq=False, slots=True)
class Candidate:
    """Noise of one norm, its loss and the number of the line that asks for most of it."""

    points: Executed
    loss: Fraction
    binding: int

    def breaks(self) -> Iterator[tuple[Any, Fraction | None]]:
        """The lines of accuracy that it does not meet, each with what it reaches."""
        for one in self.points.block.accuracy:
            found = reached(self.points, one)
            if found is None or found > one.bound:
                yield one, found


def step_of(scale: Fraction) -> Fraction:
    """A power of two, about 2^-34 of the scale."""
    shift = scale.denominator.bit_length() - scale.numerator.bit_length() + FINE
    return Fraction(2) ** -shift


class Points:
    """Takes specs of real points with a line of metric-DP."""

    def lower(self, model: Model) -> System:
        """The point and what an error costs.

        Raises: SpecError PS05xx.
        """
        block = block_of(model)
        mechanism = {"family": "points", "norm": "l2", "scale": "1", "unit": "1"}
        return System(model, block, read_points(Item(document(block), "block"), Item(mechanism, "mechanism")))

    def decide(self, model: Model, system: System, settings: Settings) -> PointDecision | Infeasible:
        """The best of the norms that are allowed."""
        started = perf_counter()
        allowed = [norm for family in model.families or ("knorm",) for norm in FAMILIES[family]]
        every = {norm: system.candidate(norm) for norm in NORM_OF.values()}
        known = sorted((one for one in every.values() if one is not None), key=lambda one: graded(one.loss))
        free = [one for one in known if one.points.norm in allowed]
        fits = [one for one in free if not list(one.breaks())]
        if not free:
            return _nowhere(system)
        if not fits:
            return _conflict(system, free)
        others = [one for one in known if one is not fits[0]] if settings.alternatives else []
        return PointDecision(model, system, fits[0], tuple(others), tuple(allowed), perf_counter() - started)

    def size(self, system: System) -> int:
        """Numbers of a point."""
        return system.block.size


def _nowhere(system: System) -> Infeasible:
    """A line about any two points, however far apart, where these may be anywhere."""
    pure = [line for line in system.model.requirements if not line.measure.of.by_distance]
    lines = tuple(conflict_line(system.model, line.span) for line in pure)
    reason = f"points of {system.block.source} may be any distance apart, and no noise of its own hides that"
    change = Relaxation(f"give {system.block.source} a bounded domain, such as [0, 10]", None)
    return Infeasible(reason, lines, (change,))


def _conflict(system: System, found: list[Candidate]) -> Infeasible:
    """The least noise is more than a line of accuracy allows."""
    model = system.model
    best = min(found, key=lambda one: len(list(one.breaks())))
    one, figure_of = next(best.breaks())
    line = next(line for line in model.accuracy if line.line == one.line)
    lines = (conflict_line(model, line.target.span), conflict_line(model, model.requirements[best.binding].span))
    if figure_of is None:
        return Infeasible("nothing tells this error for the noise that the loss asks for", lines, ())
    figure = float(figure_of)
    change = Relaxation(f"accept {figure * (1 + 1e-6):.6g} in place of {float(one.bound):.6g}", one.line)
    reason = f"the privacy asked for makes this error {figure / float(one.bound):.4g} times as large as allowed"
    return Infeasible(reason, lines, (change,))


@dataclass(frozen=True, eq=False, slots=True)
class PointDecision:
    """The noise that was found, and what noise of other norms would cost."""

    model: Model
    system: System
    found: Candidate
    others: tuple[Candidate, ...]
    allowed: tuple[str, ...]
    seconds: float

    @property
    def points(self) -> Executed:
        """As it is executed."""
        return self.found.points

    @property
    def name(self) -> str:
        return NAMES[self.points.norm]

    @property
    def loss(self) -> float:
        return float(self.found.loss)

    @property
    def lower_bound(self) -> float | None:
        """No noise of one law, whatever the point, has less; None where reports are moved to ends."""
        block = self.points.block
        if block.moved:
            return None
        lines = [line.measure for line in self.model.requirements if line.measure.of.by_distance]
        return float_down(max(least_loss(block, one.metric, one.amounts["epsilon"]) for one in lines))

    def document(self) -> dict[str, Any]:
        points, block = self.points, self.system.block
        accuracy = [(one, reached(points, one)) for one in points.block.accuracy]
        among, units = CLASSES[not points.block.moved], units_of(points.block)
        return plan_document(
            self.model,
            {
                **rated(self.model, self.loss, self.lower_bound, among, units, block.kind),
                "alternatives": list(self._alternatives()),
                "mechanism": {
                    "family": "points",
                    "norm": points.norm,
                    "scale": str(points.scale),
                    "unit": str(points.step),
                },
                "guarantees": [self._guarantee(number) for number in range(len(self.model.requirements))],
                "accuracy": accuracy_json(
                    (one.line, one.text, found or Fraction(0), one.bound) for one, found in accuracy
                ),
                "claims": {},
                "remarks": {"binding": self._price(), "solver": {"name": "closed form", "seconds": self.seconds}},
            },
        )

    def _alternatives(self) -> Iterator[dict[str, Any]]:
        for one in self.others:
            reason = "meets every line of the spec"
            admissible = one.points.norm in self.allowed and not list(one.breaks())
            if one.points.norm not in self.allowed:
                reason = "the spec asks for another kind of noise"
            elif not admissible:
                reason = "misses a line of accuracy"
            name, loss = NAMES[one.points.norm], float(one.loss)
            yield {"name": name, "loss": loss, "admissible": admissible, "reason": reason}

    def _guarantee(self, number: int) -> dict[str, Any]:
        requirement = self.model.requirements[number]
        measure = requirement.measure
        least = rate(self.points, measure.metric) if measure.of.by_distance else whole(self.points)
        return promised(requirement, number, least, NOTE)

    def _price(self) -> list[dict[str, Any]]:
        """What a tenth more epsilon in the line that binds would bring."""
        number = self.found.binding
        line = self.model.requirements[number]
        after = self.system.candidate(self.points.norm, number)
        if after is None:
            return []
        return [price(line, float(after.loss) / self.loss - 1)]
