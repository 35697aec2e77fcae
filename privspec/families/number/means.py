"""The best reports for sums of functions of what each party holds: a cone program, then exact chances and estimates.

The program's columns are rounded to chances whose ratios are at most e^epsilon, and its estimates to short numbers. A
small part of every row goes to spare columns by chances that make each row's mean estimate exactly what it stands for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import exp, frexp, tanh
from time import perf_counter
from typing import Any

import numpy as np
from flint import fmpq_mat
from numpy.typing import NDArray

from privspec.core.diagnostics import InternalError
from privspec.core.records import dataclass, replace
from privspec.core.rounding import exp_down
from privspec.families.decision import CONSTANT, WRONG, Alternative, Decided, Decision, Infeasible, promised
from privspec.families.family import Settings
from privspec.families.number.reports import Histograms, System
from privspec.kernel.core.numbers import fraction, rational
from privspec.kernel.core.problem import Obligation
from privspec.kernel.core.reading import Grid, JsonNode, Refused
from privspec.kernel.means import AMONG, MOST_ROWS, NOTE, Curve, Listed, MeanBlock, Means, Report, proved, units_of
from privspec.kernel.writing import array, exact_grid, write
from privspec.model.graph import Model
from privspec.problem import means as reading_of_means
from privspec.problem.elaborate import obligation_of
from privspec.solvers.reports import ReportSolution, best_report

CHANCE_BITS = 62
"""Binary places of the chances of columns."""
ESTIMATE_BITS = 44
"""Binary places of estimates, by the size of what is estimated."""
PROOF_BITS = 50
"""Binary digits of a witness."""
SPARE = (36, 33, 30, 27, 24, 21, 18)
"""Binary places of the part of every row that goes to spare columns: the first that is enough."""
SPLITS = 4
"""Rounds of the search for how separate reports share an epsilon."""
Array = NDArray[np.float64]


class LocalMeans:
    """Takes specs of sums and means of functions of each party's number, where nobody is trusted."""

    def lower(self, model: Model) -> System:
        """What each party holds, and what errors of the sums cost.

        Raises: SpecError PS05xx.
        """
        every = [[reading_of_means.enough(one) for one in line.measure.by_person] for line in model.requirements]
        return Histograms.system(model, reading_of_means.block_of(model), every)

    def decide(self, model: Model, system: System, settings: Settings) -> Decision | Infeasible:
        """The best report for each epsilon.

        Raises: SolverError.
        """
        started = perf_counter()
        block, best = system.block, list(_of_each(system))
        found = _together(system, [one.executed for one in best])
        loss, binding = float(found.loss()), model.requirements[system.binding]
        bound = _bound(model, found, best)
        columns = " or ".join(str(len(kind.term.rows[0])) for kind in found.kinds)
        return Decided(
            model,
            f"one report of {columns} values for all numbers",
            loss,
            lambda: _stated(model, found) | ({"claims": {"bound": bound[1]}} if bound else {}),
            # no unbiased estimate from a report of each has less
            lambda: None if bound is None else bound[0],
            AMONG[bound is not None],
            units_of(block),
            block.kind,
            tuple(_beside(system, best)) if settings.alternatives else (),
            lambda: (
                system.priced(lambda more: float(Best(block, more).executed.loss()), loss)
                if "epsilon" in binding.measure.amounts
                else []
            ),
            {"name": "Clarabel", "seconds": perf_counter() - started},
            program=lambda: "its cone program is solved by adding columns, and is not written out",
        )

    def size(self, system: System) -> int:
        """Columns of a table."""
        return int(2 ** min(len(system.block.held.points()), 12))


def _of_each(system: System) -> Iterator[Best]:
    """The best report for each epsilon, the least first, of those who have it."""
    limits = system.limits
    for epsilon in [system.epsilon] if limits is None else sorted(set(limits)):
        count = system.block.count if limits is None else limits.count(epsilon)
        yield Best(system.block if limits is None else replace(system.block, count=count), epsilon)


def _together(system: System, kinds: list[Means]) -> Means:
    """What all parties execute, each by its own epsilon."""
    if system.limits is None:
        return kinds[0]
    place = {epsilon: kind for kind, epsilon in enumerate(sorted(set(system.limits)))}
    more = tuple(Report(one.table, one.estimates) for one in kinds[1:])
    of = tuple(place[epsilon] for epsilon in system.limits)
    return replace(kinds[0], block=system.block, of=of, more=more)


def _bound(model: Model, found: Means, best: list[Best]) -> tuple[Fraction, Any] | None:
    """What no estimate is below, the most that is known: of all columns under pure lines, or of two values."""
    lines: list[Obligation] = [obligation_of(model, line) for line in model.requirements]
    tried: list[dict[str, Any]] = [{"requirement": number} for number in range(len(lines))]
    if not found.block.rooted and any(map(reading_of_means.pure, model.requirements)):
        tried.append(best[0].witness if found.of is None else {"kinds": [one.witness for one in best]})
    known = list[tuple[Fraction, Any]]()
    for witness in tried:
        try:
            known.append((proved(found, lines, JsonNode(witness, "bound")), witness))
        except Refused:
            continue
    return max(known, key=lambda pair: pair[0], default=None)


@dataclass(frozen=True, eq=False)
class Best:
    """The best report for a block, with numbers scaled by the roots of what their errors cost, and about a middle."""

    block: MeanBlock
    epsilon: Fraction

    @cached_property
    def scales(self) -> Array:
        """By which numbers are multiplied; those that cost nothing still have to be estimated."""
        costs = np.sqrt(np.array([float(one) for one in self.block.costs]))
        found: Array = np.where(costs > 0, costs, costs.max() * 1e-6)
        return found

    def targets(self, points: list[list[Fraction]]) -> Array:
        """Points as the program sees them."""
        found: Array = (np.array([[float(one) for one in point] for point in points]) - self.middle) * self.scales
        return found

    @cached_property
    def middle(self) -> Array:
        found: Array = np.array([[float(one) for one in point] for point in self.block.held.points()]).mean(axis=0)
        return found

    @cached_property
    def solution(self) -> ReportSolution:
        """Of the program about the rows of the table."""
        held = self.block.held
        groups = held.groups()
        places = np.array([row for row, _ in groups], dtype=np.intp)
        rows, about = self.targets(held.points()), self.targets([point for _, point in groups])
        offsets = ((about - 2 * rows[places]) * about).sum(axis=1)
        return self.solved(rows, places, offsets)

    @property
    def solution_loss(self) -> float:
        """The loss of what the program found, before it is rounded."""
        law = self.block.law
        points = self.targets(self.block.held.points())
        spread = 0.0 if law is None else float(np.array([float(one) for one in law]) @ (points**2).sum(axis=1))
        return self.block.count * (self.solution.value - spread)

    @cached_property
    def numbers(self) -> list[str] | None:
        """What the bound is about: the ends of pieces, and the middles of the first while there is room; or all."""
        held = self.block.held
        if isinstance(held, Listed):
            return None
        middles = [(low + high) / 2 for low, high in pairwise(held.ends)]
        return [str(one) for one in sorted([*held.ends, *middles[: MOST_ROWS - len(held.ends)]])]

    def solved(self, targets: Array, places: NDArray[np.intp], offsets: Array) -> ReportSolution:
        """The program with targets of such a size that estimates are about one."""
        law = None if self.block.law is None else np.array([float(one) for one in self.block.law])
        size = float(np.abs(targets).max()) / tanh(float(self.epsilon) / 2)
        found = best_report(targets / size, places, offsets / size**2, law, exp(float(self.epsilon)))
        return dataclasses.replace(
            found,
            value=found.value * size**2,
            estimates=found.estimates * size,
            directions=found.directions * size,
            multipliers=found.multipliers * size**2,
        )

    @cached_property
    def witness(self) -> dict[str, Any]:
        """What shows that no estimate has less loss."""
        points = self.targets(self.block.held.asked(JsonNode(self.numbers, "values")))
        found = self.solution
        if self.numbers is not None:
            found = self.solved(points, np.arange(len(points)), -(points**2).sum(axis=1))
        # the proof about points less their mean by the prior
        law = found.prior / found.prior.sum()
        mean = law @ points
        moved = found.directions - law[:, None] * mean
        multipliers = found.multipliers - 2 * found.directions @ mean + law * (mean @ mean)
        own = moved / self.scales
        return {
            "values": self.numbers,
            "prior": None if self.block.law is not None else array(_rounded(found.prior)),
            "directions": array(_rounded(own)),
            "multipliers": array(_rounded(multipliers)),
        }

    @cached_property
    def executed(self) -> Means:
        """Exact chances and estimates."""
        found, block = self.solution, self.block
        points, ratio = block.held.points(), exp_down(self.epsilon, CHANCE_BITS)
        size = frexp(float(np.abs(found.estimates / self.scales).max()))[1]
        unit = Fraction(2) ** (size - ESTIMATE_BITS)
        estimates = [
            [round(Fraction(float(one)) / unit) * unit for one in row]
            for row in (found.estimates / self.scales + self.middle).tolist()
        ]
        spare = _spare_estimates(points, tanh(float(self.epsilon) / 4), unit)
        for bits in SPARE:
            rows = [
                _row(number, found, estimates, spare, point, ratio, Fraction(1, 2**bits))
                for number, point in enumerate(points)
            ]
            if all(min(some) > 0 and max(some) <= ratio * min(some) for some in zip(*rows, strict=True)):
                return _as_executed(block, rows, estimates + spare)
        raise InternalError("no part of a report makes its estimates unbiased")


def _row(
    number: int,
    found: ReportSolution,
    estimates: list[list[Fraction]],
    spare: list[list[Fraction]],
    point: list[Fraction],
    ratio: Fraction,
    part: Fraction,
) -> list[Fraction]:
    """The chances of a row: columns by their weights, and spare ones so that all of it is exact."""
    chances = []
    for weight, entry in zip(found.weights.tolist(), found.columns[number].tolist(), strict=True):
        least = Fraction(int(Fraction(weight) * (1 - part) * 2**CHANCE_BITS), 2**CHANCE_BITS)
        chances.append(Fraction(int(least * ratio * 2**CHANCE_BITS), 2**CHANCE_BITS) if entry > 1 else least)
    left = [1 - sum(chances, Fraction(0))]
    for j, one in enumerate(point):
        left.append(one - sum((p * row[j] for p, row in zip(chances, estimates, strict=True)), Fraction(0)))
    size = len(spare)
    system = fmpq_mat(
        size,
        size,
        [rational(Fraction(1)) for _ in spare] + [rational(row[j]) for j in range(size - 1) for row in spare],
    )
    solved = system.solve(fmpq_mat(size, 1, [rational(one) for one in left]))
    return chances + [fraction(one) for one in solved.entries()]


def _spare_estimates(points: list[list[Fraction]], share: float, unit: Fraction) -> list[list[Fraction]]:
    """The corners of a simplex so large that every point is a mean of them by chances that are nearly alike."""
    size = len(points[0])
    middle, wide = [], []
    for some in zip(*points, strict=True):
        low, high = min(some), max(some)
        middle.append(round((low + high) / 2 / unit) * unit)
        wide.append(max(round((high - low) * (2 * size + 1) / Fraction(share) / unit), 1) * unit)
    corners = [[at - far for at, far in zip(middle, wide, strict=True)]]
    corners += [
        [at + far * (j == k) for j, (at, far) in enumerate(zip(middle, wide, strict=True))] for k in range(size)
    ]
    return corners


def _as_executed(block: MeanBlock, rows: list[list[Fraction]], estimates: list[list[Fraction]]) -> Means:
    """The table in whole numbers of one sum, with its estimates."""
    columns, size = len(estimates), len(block.numbers)
    laws = exact_grid([one for row in rows for one in row], (len(rows), columns))
    known = exact_grid([one for row in estimates for one in row], (columns, size))
    return Means(block, laws, known)


def _rounded(values: Array) -> Grid:
    """In so many binary digits of the largest."""
    bits = PROOF_BITS - frexp(float(np.abs(values).max()))[1]
    entries = [round(Fraction(float(one)) * Fraction(2) ** bits) for one in values.ravel()]
    return Grid(values.shape, Fraction(2) ** -bits, tuple(entries))


def _beside(system: System, best: list[Best]) -> Iterator[Alternative]:
    """What people use: a report for each number by itself, and Laplace noise on every number."""
    block, laplace = system.block, 0.0
    many = sum(cost > 0 for cost in block.costs)
    if many > 1:
        apart = sum(separate(one.block, one.epsilon) for one in best)
        yield Alternative("a report for each number by itself, sharing the epsilon", apart)
    widths = [float(max(some) - min(some)) for some in zip(*block.held.points(), strict=True)]
    weights = np.cbrt([float(cost) * width**2 for cost, width in zip(block.costs, widths, strict=True)])
    for one in best:
        laplace += one.block.count * 2 * float(weights.sum()) ** 3 / float(one.epsilon) ** 2
    yield Alternative("Laplace noise on every number" + (", sharing the epsilon" if many > 1 else ""), laplace)
    if len(best) > 1:
        even = Best(block, system.epsilon).solution_loss
        yield Alternative("the strictest epsilon for everybody", even)
        middle = block.count**2 * sum(map(float.__mul__, map(float, block.costs), [(w / 2) ** 2 for w in widths]))
        if middle < laplace and block.law is None and not block.rooted:
            yield Alternative(CONSTANT, middle, WRONG, admissible=False)


def separate(block: MeanBlock, epsilon: Fraction) -> float:
    """The loss of a report for each number by itself, where these share an epsilon as well as was found."""
    singles = [_single(block, j) for j, cost in enumerate(block.costs) if cost]
    shares, best = np.full(len(singles), float(epsilon) / len(singles)), np.inf
    for _ in range(SPLITS):
        found = [Best(one, Fraction(share)).solution_loss for one, share in zip(singles, shares.tolist(), strict=True)]
        best = min(best, sum(found))
        # the best shares, if each loss were to fall by the square of its share
        wanted = np.cbrt(np.array(found) * shares**2)
        shares = float(epsilon) * wanted / wanted.sum()
    return float(best)


def _single(block: MeanBlock, number: int) -> MeanBlock:
    """The same about one number."""
    held, (first, *_) = block.held, block.outputs
    own: Listed | Curve
    if isinstance(held, Listed):
        functions = [point[number] for point in held.points()]
        own = Listed(held.values, exact_grid(functions, (len(functions), 1)))
    else:
        own = Curve(held.ends, (held.powers[number],))
    return replace(block, held=own, outputs=(replace(first, shape=()),), numbers=(block.numbers[number],))


def _stated(model: Model, found: Means) -> dict[str, Any]:
    """The report as it stands in the plan, with what it guarantees."""
    ratio = found.epsilon() or Fraction(0)
    return {
        "mechanism": write(found),
        "guarantees": [
            promised(line, number, ratio, NOTE, max(map(reading_of_means.enough, line.measure.by_person)))
            for number, line in enumerate(model.requirements)
        ],
    }
