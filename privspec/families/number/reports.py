"""Reports that each party draws alone: of a real number by cells, of a value by sets of values, of a point by noise.

The best reports of a real number: a program over its cells, then exact chances, row by row. The best reports of values
for a histogram: sets of values, of the size whose estimates err least. The least noise at a point: in closed form, and
the best of its kind for usual losses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from math import exp
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import SpecError
from privspec.core.records import dataclass, replace
from privspec.core.rounding import exp_down as exp_down_to
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
    missed,
    price,
    promised,
    ranked,
)
from privspec.families.family import Settings, compiler_of
from privspec.kernel.core.numbers import exp_down
from privspec.kernel.core.reading import JsonNode
from privspec.kernel.points import CLASSES as ONE_LAW
from privspec.kernel.points import NORM_OF, PointBlock, loss_of, reached
from privspec.kernel.points import NOTE as POINTS_NOTE
from privspec.kernel.points import Points as Executed
from privspec.kernel.points import least_loss as least_point_loss
from privspec.kernel.points import units_of as point_units
from privspec.kernel.reports import (
    AMONG,
    CELLS_NOTE,
    OF_NUMBERS,
    SETS_NOTE,
    CellBlock,
    Cells,
    Frequencies,
    FrequencyBlock,
    Sets,
    best_subset,
    least_loss,
    least_of_all,
    lower_bound,
    units_of_cells,
    units_of_counts,
)
from privspec.kernel.writing import exact_grid, write
from privspec.language import syntax
from privspec.model.build import build
from privspec.model.graph import Model
from privspec.model.requirements import Requirement
from privspec.model.values import show
from privspec.problem import cells as reading_of_cells
from privspec.problem import frequencies as reading_of_sets
from privspec.problem import points as reading_of_points
from privspec.problem.points import FAMILIES
from privspec.problem.refusals import without_loss

CELL_BITS = 62
"""Binary places of the least chances, and of e^epsilon."""
LOWERED = (0.0, 1e-12, 1e-10, 1e-8, 1e-7, 1e-5, 1.0)
"""Shares by which multipliers are lowered."""
Rows = tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True, eq=False, slots=True)
class System:
    """A spec in numbers, as the kernel reads it, with the strictest epsilon and the number of its line.

    `limits`: the strictest epsilon of each party, where lines have figures of their own.
    """

    model: Model
    block: Any
    epsilon: Fraction
    binding: int
    limits: tuple[Fraction, ...] | None = None

    @classmethod
    def of(cls, model: Model, block: Any, limits: tuple[Fraction, ...] | None = None) -> System:
        """Of a block, at the strictest epsilon of all lines."""
        asked = [line.measure.amounts["epsilon"] for line in model.requirements]
        return cls(model, block, min(asked), asked.index(min(asked)), limits)

    def priced(self, loss: Callable[[Fraction], float], now: float) -> list[dict[str, Any]]:
        """What a tenth more epsilon in the line that binds would bring."""
        line = self.model.requirements[self.binding]
        return [] if self.limits else [price(line, loss(self.epsilon * STEP) / now - 1)]


# --- cells ----------------------------------------------------------------------------------------


class Reports:
    """Takes specs of one real number and a report of it that has finitely many values."""

    def lower(self, model: Model) -> System | Infeasible:
        """The cells and what reports cost in them, or that no report of the two ends alone meets all lines.

        Raises: SpecError PS05xx, PS0401.
        """
        return _none_at_ends(model) or System.of(model, reading_of_cells.block_of(model))

    def decide(self, model: Model, system: System, settings: Settings) -> Decision | Infeasible:
        """The best rows.

        Raises: SolverError.
        """
        started = perf_counter()
        block, epsilon = system.block, system.epsilon
        cells, witness = best_cells(block, epsilon)
        others = tuple(_beside_cells(system)) if settings.alternatives else ()
        loss = float(cells.loss())
        return Decided(
            model,
            f"a table of {block.cells} cells",
            loss,
            lambda: _cells_stated(model, cells) | {"claims": {"bound": witness}},
            # no mechanism that sees the number itself has less
            lambda: lower_bound(block, epsilon, JsonNode(witness, "bound")),
            OF_NUMBERS[1],
            units_of_cells(block),
            "worst" if block.costs is None else "expected",
            others,
            lambda: system.priced(lambda more: float(best_cells(block, more)[0].loss()), loss),
            {"name": "HiGHS", "seconds": perf_counter() - started},
            program=lambda: "reports have laws of a form of their own, whose program is not stated in cvxpy",
        )

    def size(self, system: System) -> int:
        """Entries of the table."""
        entries: int = system.block.cells * len(system.block.values)
        return entries


def best_cells(block: CellBlock, epsilon: Fraction) -> tuple[Cells, dict[str, Any]]:
    """The rows that were found, and the multipliers that bound every other mechanism."""
    from privspec.solvers.listed import cell_reports  # points and sets are in closed form

    if block.costs is not None:
        costs = np.array([[float(entry * block.costs.unit) for entry in row] for row in block.costs.rows])
    else:
        errors = [[float(error) for error in block.errors(number)] for number in block.ends]
        costs = np.array([errors[cell : cell + 2] for cell in range(block.cells)])
    size = float(costs.max())
    found = cell_reports(costs / size, exp(float(epsilon)))
    least = [Fraction(int(chance * 2**CELL_BITS), 2**CELL_BITS) for chance in found.least.tolist()]
    rows = exact_rows(block, least, epsilon)
    ends = None if found.ends is None else found.ends.tolist()
    # multipliers a little too large cost e^epsilon times as much: all are lowered alike until the bound is best
    tried = [{"rows": (found.rows * size * (1 - less)).tolist(), "ends": ends} for less in LOWERED]
    tried.append(_nearest(costs))
    return as_cells(block, rows), max(tried, key=lambda one: lower_bound(block, epsilon, JsonNode(one, "bound")))


def _nearest(costs: NDArray[np.float64]) -> dict[str, Any]:
    """Multipliers that say what the nearest value would cost, near what is reached at a large epsilon."""
    least = costs.min(axis=-1)
    if costs.ndim == 2:
        return {"rows": least.tolist(), "ends": None}
    cell, side = np.unravel_index(int(least.argmax()), least.shape)
    rows, ends = np.zeros(len(costs)), np.zeros(least.shape)
    rows[cell], ends[cell, side] = least[cell, side], 1.0
    return {"rows": rows.tolist(), "ends": ends.tolist()}


def exact_rows(block: CellBlock, least: Sequence[Fraction], epsilon: Fraction) -> Rows:
    """The cheapest rows with chances between m_y and R m_y: nearest values first, until a row adds up to one."""
    ratio = exp_down_to(epsilon, CELL_BITS)
    whole = sum(least, Fraction(0))
    if whole > 1 or whole * ratio < 1:
        # a little less, or a little more, of every report
        goal = Fraction(1) if whole > 1 else 1 / ratio
        least = [chance * goal / whole for chance in least]
        whole = goal
    rows = []
    for low, high in pairwise(block.ends):
        middle, left = (low + high) / 2, 1 - whole
        row = list(least)
        for y in sorted(range(len(row)), key=lambda y: (abs(block.values[y] - middle), y)):
            more = min(left, (ratio - 1) * least[y])
            row[y] += more
            left -= more
        rows.append(tuple(row))
    return tuple(rows)


def as_cells(block: CellBlock, rows: Rows) -> Cells:
    """The rows in whole numbers of one sum."""
    laws = exact_grid([chance for row in rows for chance in row], (len(rows), len(block.values)))
    return Cells(block, laws)


def _beside_cells(system: System) -> Iterator[Alternative]:
    """Randomised response about the nearest value: what people use."""
    block = system.block
    ratio, many = exp_down_to(system.epsilon, CELL_BITS), len(block.values)
    least = [1 / (ratio + many - 1)] * many
    cells = as_cells(block, exact_rows(block, least, system.epsilon))
    yield Alternative("k-randomised response of the nearest value", float(cells.loss()))


def _cells_stated(model: Model, cells: Cells) -> dict[str, Any]:
    """The rows as they stand in the plan, with what they guarantee."""
    ratio = cells.epsilon() or Fraction(0)
    guarantees = [promised(line, number, ratio, CELLS_NOTE) for number, line in enumerate(model.requirements)]
    return {"mechanism": write(cells), "guarantees": guarantees}


def _none_at_ends(model: Model) -> Infeasible | None:
    """That reports of the two ends of the number cannot meet all lines: then those of all its values cannot either."""
    (source,) = model.inputs
    low, high = source.bounds
    if not model.constraints or source.index is not None or low is None or high is None:
        return None
    ends = syntax.SetOf((syntax.Number(low), syntax.Number(high)))
    variables = tuple(
        replace(one, domain=ends) if one.target.name == source.name else one for one in model.spec.variables
    )
    spec = replace(model.spec, variables=variables)
    small = build(spec, model.source, parameters=model.parameters, base=model.base, files=model.files)
    family = compiler_of(small)
    try:
        found = family.lower(small)
        if not isinstance(found, Infeasible):
            found = family.decide(small, found, Settings(alternatives=False, exact=False))
    except SpecError:
        return None
    if not isinstance(found, Infeasible):
        return None
    reason = f"even where {source.name} is {show(low)} or {show(high)}, {found.reason}"
    return replace(found, reason=reason, relaxations=())


# --- sets of values -----------------------------------------------------------------------------


CHANCE_BITS = 128
"""Binary places of the chance to report one's own value."""


class Histograms:
    """Takes specs of how many parties hold each value, where they trust nobody."""

    def lower(self, model: Model) -> System:
        """The values, and what errors of their counts cost.

        Raises: SpecError PS05xx.
        """
        block = reading_of_sets.block_of(model)
        if not block.weight:
            raise without_loss(model).of_spec(model.source)
        every = [[one.amounts["epsilon"] for one in line.measure.by_person] for line in model.requirements]
        return self.system(model, block, every)

    @staticmethod
    def system(model: Model, block: Any, every: list[list[Fraction]]) -> System:
        """A spec of a block, with the strictest epsilon of each party, by those of all lines."""
        least = [min(line) for line in every]
        whole = [line if len(line) == block.count else line * block.count for line in every]
        own = any(len(line) > 1 for line in every)
        limits = tuple(map(min, zip(*whole, strict=True))) if own else None
        return System(model, block, min(least), least.index(min(least)), limits)

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
            lambda: sets_stated(model, found),
            # no unbiased estimate from reports has less
            lambda: least_loss(block, system.epsilon) if limits is None else least_of_all(block, list(limits)),
            AMONG,
            units_of_counts(block),
            block.kind,
            tuple(_beside_sets(system, found)) if settings.alternatives else (),
            lambda: system.priced(lambda more: float(best_sets(block, more).error(block.weight)), loss),
            {"name": "closed form", "seconds": perf_counter() - started},
            program=lambda: "reports have laws of a form of their own, whose program is not stated in cvxpy",
        )

    def size(self, system: System) -> int:
        """No matrix is laid out."""
        return 1


def best_of_all(system: System) -> Frequencies:
    """The best sets for each epsilon."""
    block, limits = system.block, system.limits
    if limits is None:
        return Frequencies(block, (law_of(best_sets(block, system.epsilon)),))
    every = sorted(set(limits))
    place = {epsilon: kind for kind, epsilon in enumerate(every)}
    of = tuple(place[epsilon] for epsilon in limits)
    return Frequencies(block, tuple(law_of(best_sets(block, epsilon)) for epsilon in every), of)


def law_of(sets: Sets) -> tuple[int, Fraction]:
    """What a plan states of sets."""
    return sets.subset, sets.chance


def best_sets(block: FrequencyBlock, epsilon: Fraction) -> Sets:
    """The sets that tell most at an epsilon; the chance of the own value is rounded down."""
    ratio = exp_down(epsilon)
    return reports(block, best_subset(block.told, ratio), ratio)


def reports(block: FrequencyBlock, subset: int, ratio: Fraction) -> Sets:
    """Sets of a size that are at most `ratio` times as likely at a value that they hold as at another."""
    exact = subset * ratio / (subset * ratio + block.told - subset)
    return Sets(block, subset, Fraction(int(exact * 2**CHANCE_BITS), 2**CHANCE_BITS))


def _beside_sets(system: System, found: Frequencies) -> Iterator[Alternative]:
    """What people use: reports of one value, bits that are flipped, Laplace noise."""
    if system.limits is not None:
        even = best_sets(system.block, system.epsilon)
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


def sets_stated(model: Model, found: Frequencies) -> dict[str, Any]:
    """The sets as they stand in the plan, with what they guarantee."""
    block, epsilon = found.block, found.epsilon()
    return {
        "mechanism": write(found),
        "guarantees": [promised(line, number, epsilon, SETS_NOTE) for number, line in enumerate(model.requirements)],
        "accuracy": accuracy_json((one.line, one.text, found.error(one.weight), one.bound) for one in block.accuracy),
    }


def name_of(found: Sets) -> str:
    """The mechanism in the field's words."""
    k, size = found.block.told, found.subset
    if size == 1:
        return "randomised response" if k == 2 else "k-randomised response"
    return f"subset selection, {size} of {k} values"


# --- points ---------------------------------------------------------------------------------------


FINE = 34
"""Points are rounded to a step of about 2^-34 of the scale of the noise."""
NOISE = {
    "l2": "K-norm noise of the Euclidean distance (planar Laplace noise, in the plane)",
    "l1": "independent Laplace noise on every number",
    "linf": "K-norm noise of the largest difference",
}


@dataclass(frozen=True, eq=False, slots=True)
class PointSystem:
    """A spec in numbers: `unit` as the kernel reads it, with noise of scale 1."""

    model: Model
    unit: Executed

    def scale(self, norm: str, requirement: Requirement) -> Fraction | None:
        """The least scale at which noise of a norm meets a line, rounded up; None where none does."""
        most, epsilon = (
            replace(self.unit, norm=norm).epsilon(_metric(requirement)),
            requirement.measure.amounts["epsilon"],
        )
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
        name, loss = NOISE[self.points.norm], float(self.loss)
        if self.points.norm not in allowed:
            return Alternative(name, loss, "the spec asks for another kind of noise", admissible=False)
        return Alternative(name, loss, MISSES, admissible=False) if any(self.breaks()) else Alternative(name, loss)


def step_of(scale: Fraction) -> Fraction:
    """A power of two, about 2^-34 of the scale."""
    shift = scale.denominator.bit_length() - scale.numerator.bit_length() + FINE
    return Fraction(2) ** -shift


class Points:
    """Takes specs of real points with a line of metric-DP."""

    def lower(self, model: Model) -> PointSystem:
        """The point and what an error costs.

        Raises: SpecError PS05xx.
        """
        return PointSystem(model, Executed(reading_of_points.block_of(model), "l2", Fraction(1), Fraction(1)))

    def decide(self, model: Model, system: PointSystem, settings: Settings) -> Decision | Infeasible:
        """The best of the norms that are allowed."""
        started = perf_counter()
        allowed = [norm for family in model.families or ("knorm",) for norm in FAMILIES[family]]
        every = [system.candidate(norm) for norm in NORM_OF.values()]
        known = ranked(one for one in every if one is not None)
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
            NOISE[found.points.norm],
            float(found.loss),
            lambda: _points_stated(model, found.points),
            # no noise of one law, whatever the point, has less; reports that are moved to ends may
            lambda: None if block.moved else max(_least(block, line) for line in model.requirements),
            ONE_LAW[not block.moved],
            point_units(block),
            block.kind,
            tuple(one.beside(allowed) for one in others),
            lambda: _point_prices(system, found),
            {"name": "closed form", "seconds": perf_counter() - started},
            program=lambda: "reports have laws of a form of their own, whose program is not stated in cvxpy",
        )

    def size(self, system: PointSystem) -> int:
        """Numbers of a point."""
        return system.unit.block.size


def _nowhere(system: PointSystem) -> Infeasible:
    """A line about any two points, however far apart, where these may be anywhere."""
    model, source = system.model, system.unit.block.source
    lines = tuple(conflict_line(model, line.span) for line in model.requirements if not line.measure.of.by_distance)
    reason = f"points of {source} may be any distance apart, and no noise of its own hides that"
    change = Relaxation(f"give {source} a bounded domain, such as [0, 10]", None)
    return Infeasible(reason, lines, (change,))


def _conflict(system: PointSystem, found: list[Candidate]) -> Infeasible:
    """The least noise is more than a line of accuracy allows."""
    best = min(found, key=lambda one: len(list(one.breaks())))
    one, figure = next(best.breaks())
    conflict = missed(system.model, one, figure or Fraction(0), best.binding)
    if figure is None:
        reason = "nothing tells this error for the noise that the loss asks for"
        return replace(conflict, reason=reason, relaxations=())
    return conflict


def _metric(line: Requirement) -> str | None:
    """The distance of a line of privacy by distance."""
    return line.measure.metric if line.measure.of.by_distance else None


def _least(block: PointBlock, line: Requirement) -> Fraction:
    """What no noise of one law is below under a line; nothing is known of one that is not by distance."""
    metric = _metric(line)
    return Fraction(0) if metric is None else least_point_loss(block, metric, line.measure.amounts["epsilon"])


def _points_stated(model: Model, points: Executed) -> dict[str, Any]:
    """The noise as it stands in the plan, with what it guarantees."""
    reach = [(one, reached(points, one) or Fraction(0)) for one in points.block.accuracy]
    return {
        "mechanism": write(points),
        "guarantees": [
            promised(line, number, points.epsilon(_metric(line)), POINTS_NOTE)
            for number, line in enumerate(model.requirements)
        ],
        "accuracy": accuracy_json((one.line, one.text, found, one.bound) for one, found in reach),
    }


def _point_prices(system: PointSystem, found: Candidate) -> Iterator[dict[str, Any]]:
    """What a tenth more epsilon in the line that binds would bring."""
    after = system.candidate(found.points.norm, found.binding)
    if after is not None:
        yield price(system.model.requirements[found.binding], float(after.loss) / float(found.loss) - 1)
