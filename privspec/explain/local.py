"""Plans of reports that each party draws alone: how far these are off, and what they hide.

Of real points: their noise, and what distances hide. Finite reports of a real number: what each cell of the number
draws. Histograms of what parties hold: which sets they report, and how far the estimated counts are off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import islice, pairwise
from math import floor, log10
from typing import TYPE_CHECKING

from scipy.special import gammaincinv

from privspec.core.records import dataclass, replace
from privspec.explain.curves import EpsilonDeltaCurve, consequences
from privspec.explain.document import (
    Accuracy,
    Block,
    SpecLine,
    table,
)
from privspec.explain.facts import AddedNoise, MechanismFact, typical
from privspec.explain.fitting import REPORTED, Effects
from privspec.explain.messages import phrase
from privspec.explain.quantities import UP, Quantity, count, exact, percent, rounded, ungrouped
from privspec.explain.questions import Question, Step, how_near, of_report, took_part, which_answer
from privspec.kernel.laws.knorm import root_up
from privspec.kernel.points import NORM_OF, PointBlock, read_points
from privspec.kernel.reports import CellBlock, Frequencies, FrequencyBlock, Sets, read_cells, read_frequencies
from privspec.stated import Stated

if TYPE_CHECKING:
    from privspec.explain.claims import Claim
    from privspec.explain.context import Context
    from privspec.explain.facts import Facts


MOST_STEPS = 3
"""Round distances that are shown, besides the largest."""
NEAR = Fraction(95, 100)
"""The share of reports of which pages tell how far off they are at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointFact(AddedNoise):
    """Noise at each point; `apart` is the largest distance of two points, `near` within which most reports are."""

    points: PointBlock
    norm: str
    scale: Quantity
    step: Quantity
    error_size: Quantity
    apart: float | None
    near: Quantity | None
    local: bool
    input_line: SpecLine

    page = "points"
    error = MechanismFact.error

    @property
    def effects(self) -> Effects:
        return REPORTED

    def judged(self, claim: Claim) -> tuple[Claim, Question]:
        """What distances hide: the odds are those of the least that is shown."""
        if claim.per_distance is None:
            names = "the first", "the second"
            return claim, which_answer(self.local, names, None, ()) if claim.local else took_part(claim.relation)
        found = list(self._steps(claim.per_distance))
        steps = tuple(
            Step(exact(far), rounded(claim.per_distance * far, 4, UP), consequences(self._curve(claim, far)))
            for far in found
        )
        return replace(claim, achieved=self._curve(claim, found[0])), how_near(
            self.local, steps, plane=self.points.size == 2
        )

    @staticmethod
    def _curve(claim: Claim, far: Fraction) -> EpsilonDeltaCurve:
        assert claim.per_distance is not None
        return EpsilonDeltaCurve(float(claim.per_distance * far), 0.0)

    def _steps(self, rate: Fraction) -> Iterator[Fraction]:
        """Round distances around that at which epsilon is 1, and the largest."""
        start = Fraction(10) ** (floor(log10(1 / float(rate))) - 1)
        every = (start * digit * 10**power for power in range(40) for digit in (1, 2, 5))
        most = None if self.apart is None else Fraction(ungrouped(rounded(self.apart, 3, UP).text))
        near = [far for far in islice(every, 12) if far * rate >= Fraction(1, 5) and (most is None or far < most)]
        yield from near[:MOST_STEPS]
        if most is not None:
            yield most

    # --- the short table

    @property
    def noise(self) -> str:
        """The noise of its norm."""
        return phrase(f"points.noise.{self.norm}")

    @property
    def moved(self) -> bool:
        """Whether reports are moved into a range."""
        return self.points.least is not None or self.points.most is not None

    @property
    def squared(self) -> bool:
        """Whether errors are squared."""
        return self.points.error.power == 2

    @property
    def limits(self) -> str:
        """Where a point lies."""
        points = self.points
        if points.radius is not None:
            return phrase("points.limits.ball", points)
        ends = [phrase("points.limits.none") if end is None else end for end in (points.lower, points.upper)]
        return phrase("points.limits.range", first=ends[0], last=ends[1])

    # --- the pages

    def values(self, facts: Facts) -> Mapping[str, object]:
        points = self.points
        return {
            "several": points.size > 1,
            "numbers": phrase("points.limits.numbers", points) if points.size > 1 else "",
            "least": "-inf" if points.least is None else points.least,
            "largest": "inf" if points.most is None else points.most,
            "unit": facts.unit(points.output, self.error_size.text),
            "units": facts.unit(points.output),
            "most_of": NEAR.numerator * 100 // NEAR.denominator,
            "all_of": 100,
            "of_norm": self.norm.removeprefix("l"),
        }

    def accuracies(self, facts: Facts) -> Mapping[str, Accuracy]:
        size, name = self.error_size.value, self.points.output
        measure = f"{'root mean square' if self.squared else 'mean'} {self.points.error.norm}"
        off = Accuracy(f"{measure} at most" if self.moved else measure, ((name, size, size),))
        found = dict.fromkeys(("sum", "distance", "largest"), off)
        near = () if self.near is None else ((name, 0.0, self.near.value),)
        return {**found, "most": Accuracy("of 95 in 100", near)}


def point_fact(plan: Stated, context: Context) -> PointFact:
    """The mechanism of a plan of the family "points".

    Raises: KeyError, TypeError, ValueError if it is not of that form.
    """
    found = plan.executed_as(read_points)
    points = found.block
    round_ = points.error.norm == "l2" and (found.norm == "l2" or points.size == 1)
    return PointFact(
        family=plan.mechanism.family,
        released=frozenset(found.outputs),
        points=points,
        norm=found.norm,
        scale=rounded(found.scale, 9),
        step=exact(found.step),
        error_size=typical(plan, points.error.weight, squared=points.error.power == 2),
        apart=_apart(points, context),
        near=rounded(float(found.scale) * float(gammaincinv(points.size, float(NEAR))), 3, UP) if round_ else None,
        local=context.alone,
        input_line=context.line_of(points.source),
    )


def _apart(points: PointBlock, context: Context) -> float | None:
    """The largest distance of two points by that of the first line that names one."""
    metric = next(iter(context.distances.values()), "euclidean")
    square = points.diameter_squared(NORM_OF.get(metric, "l2"))
    return None if square is None else float(root_up(square))


# --- finite reports of a real number --------------------------------------------------------------


MOST_CELLS = 40
"""Rows of a table that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellFact(MechanismFact):
    """A row of chances for each cell of the number; `averaged`: the loss is over a law of the number."""

    block: CellBlock
    rows: tuple[tuple[Fraction, ...], ...]
    error_size: Quantity
    averaged: bool
    local: bool
    input_line: SpecLine

    page = "cells"

    @property
    def effects(self) -> Effects:
        return REPORTED

    def judged(self, claim: Claim) -> tuple[Claim, Question]:
        """About any two numbers."""
        names = exact(self.block.ends[0]).text, exact(self.block.ends[-1]).text
        return claim, of_report(claim, names, stays=self.local)

    @property
    def squared(self) -> bool:
        """Whether errors are squared."""
        return self.block.power == 2

    # --- the pages

    def values(self, facts: Facts) -> Mapping[str, object]:
        block = self.block
        return {
            "cells": len(self.rows),
            "values_many": len(block.values),
            "first": block.ends[0],
            "last": block.ends[-1],
            "unit": facts.unit(block.output, self.error_size.text),
        }

    def accuracies(self, facts: Facts) -> Mapping[str, Accuracy]:
        size = self.error_size.value
        measure = f"{'root mean square' if self.squared else 'mean'} l1{'' if self.averaged else ', at worst'}"
        return {"off": Accuracy(measure, ((self.block.output, size, size),))}

    def in_figures(self) -> list[Block]:
        block = self.block
        header = (f"{block.source} from", "to", *(str(exact(value)) for value in block.values))
        rows = [
            (*map(exact, ends), *(rounded(chance, 4) for chance in row))
            for ends, row in zip(pairwise(block.ends), self.rows, strict=True)
        ][:MOST_CELLS]
        left = len(self.rows) - len(rows)
        more = f"; {left} further cells are in the plan" if left else ""
        caption = f"Chances of each value of {block.output}{more}"
        return [table(caption, header, rows, *range(len(header)))]


def cell_fact(plan: Stated, context: Context) -> CellFact:
    """The mechanism of a plan of the family "cells".

    Raises: KeyError, TypeError, ValueError if it is not of that form.
    """
    cells = plan.executed_as(read_cells)
    block, term = cells.block, cells.term
    return CellFact(
        family=plan.mechanism.family,
        released=frozenset(cells.outputs),
        block=block,
        rows=tuple(tuple(Fraction(chance, term.whole) for chance in row) for row in term.rows),
        error_size=typical(plan, block.weight, squared=block.power == 2),
        averaged=plan.loss is not None and plan.loss.kind == "expected",
        local=context.alone,
        input_line=context.line_of(block.source),
    )


# --- sets of values -------------------------------------------------------------------------------


MOST_KINDS = 40
"""Kinds of sets of which a table tells."""
NORMAL = 1.96
"""Standard errors within which 95 of 100 estimates lie that are sums of very many reports."""
MANY = 1000
"""Reports from which their sum counts as normal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrequencyFact(MechanismFact):
    """The set that each party reports; `error_size` is what an estimate is typically off by, over all values."""

    found: Frequencies
    error_size: Quantity
    input_line: SpecLine

    page = "frequencies"

    @property
    def block(self) -> FrequencyBlock:
        """The problem."""
        return self.found.block

    @property
    def ends(self) -> tuple[str, str]:
        """The first and the last value."""
        block = self.block
        first, last = (block.value(place) for place in (0, block.values - 1))
        return _shown(first), _shown(last)

    @property
    def reports(self) -> str:
        """What one report is."""
        sizes = sorted({kind.subset for kind in self.found.kinds})
        which = "group" if self.block.group is not None else "value" if sizes == [1] else "sets"
        return phrase(
            f"frequencies.reports.{which}", {"sizes": self._span(map(count, (sizes[0], sizes[-1])))}, self.block
        )

    def between(self, of: Callable[[Sets], Fraction], digits: int) -> str:
        """A chance in percent, from the least to the largest of all kinds."""
        chances = sorted(of(kind) for kind in self.found.kinds)
        return self._span(percent(chance, digits) for chance in (chances[0], chances[-1]))

    @staticmethod
    def _span(ends: Iterable[Quantity]) -> str:
        return " to ".join(dict.fromkeys(map(str, ends)))

    def judged(self, claim: Claim) -> tuple[Claim, Question]:
        """About any two values."""
        return claim, of_report(claim, self.ends, stays=True)

    # --- the pages

    def values(self, facts: Facts) -> Mapping[str, object]:
        found, block = self.found, self.found.block
        several = max(kind.subset for kind in found.kinds) > 1
        group = block.group or ()
        return {
            "mixed": len(found.kinds) > 1,
            "grouped": block.group is not None,
            "kinds": len(found.kinds),
            "name": phrase(f"frequencies.name.{'two' if block.told == 2 else 'sets' if several else 'values'}"),
            "own": self.between(lambda kind: kind.chance, 3),
            "own_exactly": self.between(lambda kind: kind.chance, 4),
            "own_in_full": self.between(lambda kind: kind.chance, 8),
            "others": self.between(lambda kind: kind.others, 3),
            "of_group": "the value" if len(group) == 1 else phrase("frequencies.name.any_of_group", many=len(group)),
            "unit": facts.unit(block.output, self.error_size.text),
            "units": facts.unit(block.output),
            "far": rounded(self.error_size.value * NORMAL, 2, UP) if block.count >= MANY else None,
            "first": self.ends[0],
            "last": self.ends[1],
        }

    def accuracies(self, facts: Facts) -> Mapping[str, Accuracy]:
        size = self.error_size.value
        return {"off": Accuracy("deviation", ((self.block.output, size, size),))}

    def in_figures(self) -> list[Block]:
        found = self.found
        header = "Values in a report | Sent by | Count | Chance to be in a report | Variance of one report's estimate"
        rows = [
            (count(kind.subset), count(kind.block.count), of, rounded(chance, 6), rounded(variance, 6))
            for kind in found.kinds[:MOST_KINDS]
            for of, chance, variance in zip(
                ("of the own value", "of any other value"), (kind.chance, kind.others), kind.variances(), strict=True
            )
        ]
        return [table("What one report tells", header, rows, 0, 1, 3, 4)]

    @property
    def largest(self) -> Quantity:
        """How many times as likely a report can be at one value as at another."""
        return rounded(max(kind.ratio for kind in self.found.kinds), 4, UP)


def _shown(value: Fraction | str) -> str:
    return value if isinstance(value, str) else str(exact(value))


def frequency_fact(plan: Stated, context: Context) -> FrequencyFact:
    """The mechanism of a plan of the family "frequencies".

    Raises: KeyError, TypeError, ValueError if it is not of that form.
    """
    found = plan.executed_as(read_frequencies)
    block = found.block
    numbers = block.values if block.group is None else 1
    return FrequencyFact(
        family=plan.mechanism.family,
        released=frozenset(found.outputs),
        found=found,
        error_size=typical(plan, block.weight, squared=True, numbers=numbers),
        input_line=context.line_of(block.source),
    )
