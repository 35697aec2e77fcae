"""The least noise at a point under privacy by distance: in closed form, and the best of its kind for usual losses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from time import perf_counter
from typing import Any

from privspec.core.records import dataclass, replace
from privspec.core.rounding import graded
from privspec.families.decision import (
    MISSES,
    STEP,
    Alternative,
    Decided,
    Decision,
    Infeasible,
    Relaxation,
    accuracy_json,
    conflict_line,
    missed,
    price,
    promised,
)
from privspec.families.family import Settings
from privspec.kernel.core.reading import JsonNode
from privspec.kernel.laws.knorm import ratio_squared, root_up
from privspec.kernel.points import (
    CLASSES,
    NOTE,
    least_loss,
    loss_of,
    reached,
    read_points,
    units_of,
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
        most, epsilon = unit.epsilon(), measure.pure_epsilon
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

    def beside(self, allowed: Sequence[str]) -> Alternative:
        """Beside noise of another norm that is taken."""
        name, loss = NAMES[self.points.norm], float(self.loss)
        if self.points.norm not in allowed:
            return Alternative(name, loss, "the spec asks for another kind of noise", admissible=False)
        return Alternative(name, loss, MISSES, admissible=False) if any(self.breaks()) else Alternative(name, loss)


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
        return System(model, block, read_points(JsonNode(document(block), "block"), JsonNode(mechanism, "mechanism")))

    def decide(self, model: Model, system: System, settings: Settings) -> Decision | Infeasible:
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
        found, block = fits[0], fits[0].points.block
        others = [one for one in known if one is not found] if settings.alternatives else []
        return Decided(
            model,
            NAMES[found.points.norm],
            float(found.loss),
            lambda: _stated(model, found.points),
            # no noise of one law, whatever the point, has less; reports that are moved to ends may
            lambda: None if block.moved else max(least_loss(block, *line) for line in _metrics(model)),
            CLASSES[not block.moved],
            units_of(system.block),
            system.block.kind,
            tuple(one.beside(allowed) for one in others),
            lambda: _prices(system, found),
            {"name": "closed form", "seconds": perf_counter() - started},
        )

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
    best = min(found, key=lambda one: len(list(one.breaks())))
    one, figure = next(best.breaks())
    conflict = missed(system.model, one, figure or Fraction(0), best.binding)
    if figure is None:
        reason = "nothing tells this error for the noise that the loss asks for"
        return replace(conflict, reason=reason, relaxations=())
    return conflict


def _metrics(model: Model) -> Iterator[tuple[str, Fraction]]:
    """The distance and the epsilon of each line of privacy by distance."""
    for line in model.requirements:
        if line.measure.of.by_distance:
            yield line.measure.metric, line.measure.amounts["epsilon"]


def _stated(model: Model, points: Executed) -> dict[str, Any]:
    """The noise as it stands in the plan, with what it guarantees."""
    reach = [(one, reached(points, one) or Fraction(0)) for one in points.block.accuracy]
    scale, unit = str(points.scale), str(points.step)
    return {
        "mechanism": {"family": "points", "norm": points.norm, "scale": scale, "unit": unit},
        "guarantees": [_guarantee(line, number, points) for number, line in enumerate(model.requirements)],
        "accuracy": accuracy_json((one.line, one.text, found, one.bound) for one, found in reach),
    }


def _guarantee(requirement: Requirement, number: int, points: Executed) -> dict[str, Any]:
    measure = requirement.measure
    least = points.epsilon(measure.metric if measure.of.by_distance else None)
    return promised(requirement, number, least, NOTE)


def _prices(system: System, found: Candidate) -> Iterator[dict[str, Any]]:
    """What a tenth more epsilon in the line that binds would bring."""
    after = system.candidate(found.points.norm, found.binding)
    if after is not None:
        yield price(system.model.requirements[found.binding], float(after.loss) / float(found.loss) - 1)
