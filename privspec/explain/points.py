"""A plan about reports of real points: its noise, how far reports are off, and what distances hide.

Also one of finite reports of a real number: what each cell of the number draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from math import floor, log10, sqrt
from typing import TYPE_CHECKING, ClassVar

from scipy.special import gammaincinv

from privspec.core.records import dataclass, replace
from privspec.explain.curves import EpsilonDeltaCurve, consequences
from privspec.explain.document import (
    Accuracy,
    Block,
    Judged,
    Note,
    Sentence,
    SpecLine,
    asserted,
    assumed,
    proved,
    table,
)
from privspec.explain.facts import AddedNoise, MechanismFact, executed, randomness, run_command
from privspec.explain.fitting import REPORTED, Effects
from privspec.explain.quantities import UP, Quantity, count, exact, rounded, ungrouped
from privspec.explain.questions import Question, Step, how_near, largest_factor, took_part, which_answer
from privspec.kernel.cells import CellBlock, read_cells
from privspec.kernel.points import PointBlock, read_points
from privspec.kernel.trust import NOBODY
from privspec.stated import Stated

if TYPE_CHECKING:
    from privspec.explain.claims import Claim
    from privspec.explain.context import Context
    from privspec.explain.facts import Facts


_NOTE = Note("real-points")
MOST_STEPS = 3
"""Round distances that are shown, besides the largest."""
NOISE = {
    "l2": ("K-norm noise of the Euclidean distance", "its length is Gamma, its direction uniform"),
    "l1": ("independent Laplace noise on every number", "each number is off by as much as any other"),
    "linf": ("K-norm noise of the largest difference", "Gamma times a uniform point of a cube"),
}
"""The noise of a norm, and what it is."""


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

    exact_curve: ClassVar[str] = "the noise as executed (a bound)"
    entry: ClassVar[Judged] = Judged("privacy")
    loss_note: ClassVar[Note] = _NOTE
    accuracy_heading: ClassVar[str] = "How far off is a report?"
    compared_with: ClassVar[tuple[str, str]] = "Noise of other norms", MechanismFact.compared_with[1]
    measure: ClassVar[str] = "noise is added to each point before it is reported, sized by the distance to be hidden."

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

    def drawn(self, facts: Facts) -> str:
        noise, _ = NOISE[self.norm]
        return f"{noise} at {self.points.source} (scale {self.scale}){self._moved}{facts.context.place}"

    @property
    def _moved(self) -> str:
        """Where reports are moved to, if anywhere."""
        points = self.points
        if points.least is None and points.most is None:
            return ""
        low, high = (
            side if end is None else str(exact(end)) for side, end in (("-inf", points.least), ("inf", points.most))
        )
        return f", reports moved into [{low}, {high}]"

    def error(self, facts: Facts) -> tuple[str, str]:
        kind = "root mean square" if self.points.error.power == 2 else "mean"
        most = "at most " if self._moved else ""
        return "Expected error", f"{most}{self.error_size}  ({kind} of {self._what})"

    @property
    def _what(self) -> str:
        several = self.points.size > 1
        if not several:
            return "the error"
        return {"l1": "the sum of absolute errors", "l2": "the distance", "linf": "the largest error"}[
            self.points.error.norm
        ]

    # --- the pages

    def public_accuracy(self, facts: Facts) -> tuple[Sentence, ...]:
        kind, unit = (
            "typically" if self.points.error.power == 2 else "on average",
            facts.unit(self.points.output, self.error_size.text),
        )
        kind += " at most" if self._moved else ""
        off = {
            "l1": f"The errors of the numbers of a report {kind} add up to {self.error_size}{unit}",
            "l2": f"A report is {kind} {self.error_size}{unit} away from the truth",
            "linf": f"The number of a report that is furthest off is {kind} off by {self.error_size}{unit}",
        }[self.points.error.norm]
        because = (facts.context.loss_because, Judged("loss"))
        size, name = self.error_size.value, self.points.output
        measure = f"{'root mean square' if self.points.error.power == 2 else 'mean'} {self.points.error.norm}"
        measure += " at most" if self._moved else ""
        found = [facts.of_chance(proved(f"{off} by chance alone.", *because), measure, (name, size, size))]
        if self.near is not None:
            near = f"Chance alone takes 95 of 100 reports at most {self.near}{facts.unit(name)} away."
            said = Accuracy("of 95 in 100", ((name, 0.0, self.near.value),))
            found.append(replace(proved(near, _NOTE), accuracy=said))
        return (*found, proved("The noise protects you.", _NOTE))

    def exactly(self, facts: Facts) -> tuple[str, ...]:
        return "that a report was sent", "how the noise in it was drawn"

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        noise, law = NOISE[self.norm]
        order = "Points are taken as exact numbers, noise is added, and the sum is rounded to a multiple of"
        return (
            proved(f"Each point gets {noise}, of scale {self.scale}: {law}.", Judged("privacy")),
            proved(f"{order} {self.step}: rounding comes last, and costs no privacy.", _NOTE),
            proved("The noise is drawn in exact arithmetic, to as many digits as rounding asks for.", _NOTE),
            *randomness(_NOTE),
        )

    def data(self, facts: Facts) -> tuple[Sentence, ...]:
        points = self.points
        what = f"a point of {points.size} numbers" if points.size > 1 else "a number"
        whose = "" if points.party is None else f" for each of {count(points.count)} of {points.party}"
        return (asserted(f"Secret input {points.source}: {what}{whose}, {self._limits}.", self.input_line),)

    @property
    def _limits(self) -> str:
        points = self.points
        if points.radius is not None:
            return f"within a ball of radius {exact(points.radius)}"
        ends = ["no end" if end is None else str(exact(end)) for end in (points.lower, points.upper)]
        return f"from {ends[0]} to {ends[1]}"

    def execution(self, facts: Facts) -> tuple[Block, ...]:
        rows = [
            ("Noise", f"density in proportion to exp(-||v||_{self.norm.removeprefix('l')} / {self.scale})"),
            ("Step", self.step.text),
            ("Input", f"{self.points.source}: {self._limits}"),
        ]
        return executed(facts, rows, proved("The point and its noise are added as real numbers, then rounded.", _NOTE))

    def run_commands(self, facts: Facts, plan: str) -> tuple[str, ...]:
        return (f"{run_command(plan, (self.points.source,))} -o reports.csv",)


def point_fact(plan: Stated, context: Context) -> PointFact:
    """The mechanism of a plan of the family "points".

    Raises: KeyError, TypeError, ValueError if it is not of that form.
    """
    found = plan.executed_as(read_points)
    points = found.block
    round_ = points.error.norm == "l2" and (found.norm == "l2" or points.size == 1)
    each = (plan.loss.value if plan.loss else 0.0) / float(points.error.weight)
    return PointFact(
        family=plan.mechanism.family,
        released=frozenset(found.outputs),
        points=points,
        norm=found.norm,
        scale=rounded(found.scale, 9),
        step=exact(found.step),
        error_size=rounded(sqrt(each) if points.error.power == 2 else each),
        apart=_apart(points, context),
        near=rounded(float(found.scale) * float(gammaincinv(points.size, 0.95)), 3, UP) if round_ else None,
        local=context.trust == NOBODY.name,
        input_line=context.line_of(points.source),
    )


def _apart(points: PointBlock, context: Context) -> float | None:
    """The largest distance of two points by that of the first line that names one."""
    metric = next(iter(context.distances.values()), "euclidean")
    power = {"manhattan": 1.0, "euclidean": 0.5, "chebyshev": 0.0}.get(metric, 0.5)
    if points.radius is not None:
        wider = points.ball == "l2" and metric == "manhattan"
        return 2 * float(points.radius) * (sqrt(points.size) if wider else 1)
    if points.lower is None or points.upper is None:
        return None
    return float(points.upper - points.lower) * float(points.size**power)


# --- finite reports of a real number --------------------------------------------------------------


_CELL_NOTE = Note("real-cells")
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

    drawn_label: ClassVar[str] = "What is drawn"
    subject: ClassVar[str] = "The table"
    reached_label: ClassVar[str] = "Reached by the table"
    exact_curve: ClassVar[str] = "the table (a bound)"
    entry: ClassVar[Judged] = Judged("law")
    loss_note: ClassVar[Note] = _CELL_NOTE
    accuracy_heading: ClassVar[str] = "How far off is a report?"
    measure: ClassVar[str] = "what is released is drawn from the table of probabilities that this report describes."
    heading: ClassVar[str] = "Table"
    compared_with: ClassVar[tuple[str, str]] = "What people use", "Reports | Loss | Meets the lines | Reason"

    @property
    def effects(self) -> Effects:
        return REPORTED

    def judged(self, claim: Claim) -> tuple[Claim, Question]:
        """About any two numbers."""
        if not claim.local:
            return claim, took_part(claim.relation)
        reached = claim.achieved if isinstance(claim.achieved, EpsilonDeltaCurve) else None
        times = largest_factor(reached.epsilon) if reached is not None and reached.delta == 0.0 else None
        names = str(exact(self.block.ends[0])), str(exact(self.block.ends[-1]))
        return claim, which_answer(self.local, names, times)

    def drawn(self, facts: Facts) -> str:
        block = self.block
        return (
            f"{block.output} is drawn from one of {len(block.values)} values, by which of {len(self.rows)} cells "
            f"{block.source} lies in{facts.context.place}"
        )

    def error(self, facts: Facts) -> tuple[str, str]:
        kind = "root mean square" if self.block.power == 2 else "mean absolute"
        return ("Expected error" if self.averaged else "Largest expected error"), f"{self.error_size}  ({kind})"

    # --- the pages

    def public_accuracy(self, facts: Facts) -> tuple[Sentence, ...]:
        kind = "typically" if self.block.power == 2 else "on average"
        where, unit = "" if self.averaged else ", at worst", facts.unit(self.block.output, self.error_size.text)
        text = f"By chance alone a report is {kind} off by {self.error_size}{unit}{where}."
        because, size = (facts.context.loss_because, Judged("loss")), self.error_size.value
        measure = f"{'root mean square' if self.block.power == 2 else 'mean'} l1{'' if self.averaged else ', at worst'}"
        said = [facts.of_chance(proved(text, *because), measure, (self.block.output, size, size))]
        if self.averaged:
            text = "Averages are over values the author expects."
            said.append(assumed(text, facts.context.loss_because))
        return tuple(said)

    def exactly(self, facts: Facts) -> tuple[str, ...]:
        return "that a report was sent", "the chances that it was drawn with"

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        block = self.block
        return (
            proved(
                f"The mechanism is a table of {len(self.rows)} rows, one for each cell that {block.source} may lie in, "
                f"and {len(block.values)} values of {block.output}; each row adds up to exactly 1.",
                Judged("law"),
            ),
            proved(
                "The cell is a function of the number alone, so that which cells there are costs no privacy. They end "
                "at the middles of two values: no mechanism that sees the number itself does better.",
                _CELL_NOTE,
            ),
            *randomness(_CELL_NOTE),
        )

    def in_figures(self) -> list[Block]:
        block = self.block
        header = (f"{block.source} from", "to", *(str(exact(value)) for value in block.values))
        rows = [
            (exact(low), exact(high), *(rounded(chance, 4) for chance in row))
            for low, high, row in zip(block.ends, block.ends[1:], self.rows, strict=False)
        ][:MOST_CELLS]
        left = len(self.rows) - len(rows)
        more = f"; {left} further cells are in the plan" if left else ""
        caption = f"Chances of each value of {block.output}{more}"
        return [table(caption, header, rows, *range(len(header)))]

    def data(self, facts: Facts) -> tuple[Sentence, ...]:
        block = self.block
        whose = "" if block.party is None else f" for each of {count(block.count)} of {block.party}"
        ends = exact(block.ends[0]), exact(block.ends[-1])
        return (
            asserted(f"Secret input {block.source}: a number{whose}, from {ends[0]} to {ends[1]}.", self.input_line),
        )

    def execution(self, facts: Facts) -> tuple[Block, ...]:
        items = [
            ("Row", f"the cell of {self.block.source}, one of {len(self.rows)}; an end belongs to the cell above it"),
            ("Column", f"the value of {self.block.output}, one of {len(self.block.values)}"),
        ]
        text = "A uniform whole number below the common denominator is found among the running sums of the row."
        return executed(facts, items, proved(text, _CELL_NOTE))

    def run_commands(self, facts: Facts, plan: str) -> tuple[str, ...]:
        run = f"{run_command(plan, (self.block.source,))} -o reports.csv"
        return (run, f"privspec aggregate {plan} reports.csv") if self.block.party is None else (run,)

    def next_commands(self) -> tuple[str, ...]:
        local = ("aggregate",) if self.block.party is None else ()
        return ("run", *local, "explain", "verify")


def cell_fact(plan: Stated, context: Context) -> CellFact:
    """The mechanism of a plan of the family "cells".

    Raises: KeyError, TypeError, ValueError if it is not of that form.
    """
    cells = plan.executed_as(read_cells)
    block = cells.block
    each = (plan.loss.value if plan.loss else 0.0) / float(block.weight)
    return CellFact(
        family=plan.mechanism.family,
        released=frozenset(cells.outputs),
        block=block,
        rows=tuple(tuple(Fraction(chance, cells.total) for chance in row) for row in cells.rows),
        error_size=rounded(sqrt(each) if block.power == 2 else each),
        averaged=plan.loss is not None and plan.loss.kind == "expected",
        local=context.trust == NOBODY.name,
        input_line=context.line_of(block.source),
    )
