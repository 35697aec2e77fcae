"""The mechanism of a plan of the family "table": its figures and its words on every page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privspec.explain.consequences import consequences
from privspec.explain.curves import EpsilonDeltaCurve
from privspec.explain.finite import pages
from privspec.explain.finite.neighbours import neighbours
from privspec.explain.finite.questions import HowNear, Step, WhichAnswer
from privspec.explain.finite.rows import RowFact
from privspec.explain.finite.steps import reaches
from privspec.explain.finite.table import Table, spoken
from privspec.explain.finite.tradeoff import bound_of, curve_of, dominating
from privspec.explain.losses import Shape
from privspec.explain.lotteries.comparison import Comparison
from privspec.explain.lotteries.questions import HowYouVoted, WhetherYouVoted
from privspec.explain.lotteries.rounds import Rounds, public_rounds
from privspec.explain.mechanism import MechanismFact, Rows
from privspec.explain.quantities import Quantity, Rounding, exact, rounded
from privspec.explain.questions import Question, TookPart
from privspec.explain.sentences import CertificateEntry, Note, Sentence, SpecLine

if TYPE_CHECKING:
    from privspec.explain.claims import Claim
    from privspec.explain.curves import Curve
    from privspec.explain.document import Block, Section
    from privspec.explain.fact_types import AlternativeFact, Facts
    from privspec.model.graph import Model
    from privspec.model.observers import Unit


@dataclass(frozen=True, slots=True)
class Recognised:
    """The known mechanism that a table is: its name, a clause that describes it, and the note that proves it."""

    name: str
    text: str
    note: str


@dataclass(frozen=True, slots=True)
class ChosenNumber:
    """A number that the solver picked, and the lines that it stands in."""

    name: str
    value: Quantity
    exactly: str
    lines: tuple[SpecLine, ...]


@dataclass(frozen=True, slots=True)
class ChosenLaw:
    """A law that the solver picked: its masses but for traces, these together, and its mean if it is of numbers."""

    name: str
    masses: tuple[tuple[str, Quantity], ...]
    traces: Quantity | None
    values: Quantity
    mean: Quantity | None
    lines: tuple[SpecLine, ...]


@dataclass(frozen=True, slots=True)
class Truth:
    """How often an output is the true value of a node: least and largest over the rows, mean by the prior if any."""

    output: str
    node: str
    least: Quantity
    largest: Quantity
    mean: Quantity | None


@dataclass(frozen=True, slots=True)
class ErrorTerm:
    """One error of the loss with its average (or its largest average over the rows)."""

    output: str
    against: str
    shape: Shape
    worst: bool
    figure: Quantity
    brief: str
    words: str


@dataclass(frozen=True, slots=True)
class TableFact(MechanismFact):
    """A table of probabilities; `local` is whether each person draws from it for themselves."""

    table: Table
    rows: Quantity
    columns: Quantity
    entries: Quantity
    zeros: Quantity
    bits: Quantity
    local: bool
    recognised: Recognised | None
    numbers: tuple[ChosenNumber, ...]
    laws: tuple[ChosenLaw, ...]
    truths: tuple[Truth, ...]
    errors: tuple[ErrorTerm, ...]
    listed: tuple[RowFact, ...]
    metrics: Mapping[int, str]
    inputs: frozenset[str]
    comparison: Comparison | None = None
    rounds: Rounds | None = None

    drawn_label: ClassVar[str] = "What is drawn"
    brief_label: ClassVar[str] = "Drawn"
    subject: ClassVar[str] = "The table"
    reached_label: ClassVar[str] = "Reached by the table"
    exact_curve: ClassVar[str] = "the table (exact)"
    entry: ClassVar[CertificateEntry] = CertificateEntry("table")
    loss_note: ClassVar[Note] = Note("tables")
    accuracy_heading: ClassVar[str] = "How exact is what is released?"
    measure: ClassVar[str] = "what is released is drawn from the table of probabilities that this report describes."

    # --- facts

    def judged(self, claim: Claim) -> tuple[Claim, Question]:
        """Local claims and those of distances are about one report, and as exact as the rows of the table."""
        if claim.per_distance is not None:
            return self._near(claim, claim.per_distance)
        if not claim.local:
            return claim, self._of_votes(claim)
        pairs = self.table.pairs(claim.wrt)
        example = tuple(int(r) for r in pairs[-1]) if len(pairs) else (0, -1)
        bound = _bound(claim)
        if bound is not None and self._compares_rows(claim):
            found = curve_of(self.table.seen(claim.outputs), pairs, bound)
            example = example if found is None else tuple(int(r) for r in pairs[found.worst])
            claim = replace(claim, achieved=found or dominating(*bound))
        times = None
        if bound is not None and bound[1] == 0.0:
            times = rounded(float(np.exp(bound[0])) * (1 + 1e-12), 3, Rounding.UP)
        first, second = (self._named(r, claim) for r in example)
        same = tuple(name for name in self.table.of if name not in claim.wrt and self._compares_rows(claim))
        return claim, WhichAnswer("answer", self.local, first, second, times, same)

    def _of_votes(self, claim: Claim) -> Question:
        """Whether somebody took part, which of votes is whether or how somebody voted."""
        bound = _bound(claim)
        if self.comparison is None or bound is None or bound[1] > 0 or claim.relation.unit is None:
            return TookPart()
        times = rounded(math.exp(min(bound[0], 700.0)) * (1 + 1e-12), 3, Rounding.UP)
        if claim.relation.adds:
            return WhetherYouVoted(claim.relation.unit, times, local=False)
        return HowYouVoted(claim.relation.unit, times, local=False, first="one way", second="another way")

    def _named(self, row: int, claim: Claim) -> str:
        """A row by the values that a claim is about: "red", or "outcome 1" where rows hold several."""
        table = self.table
        parts = [spoken((table.rows[row][i],)) for i, name in enumerate(table.of) if name in claim.wrt]
        if len(table.of) == 1 or not parts:
            return spoken(table.rows[row])
        names = [name for name in table.of if name in claim.wrt]
        return ", ".join(f"{name} {part}" for name, part in zip(names, parts, strict=True))

    def _compares_rows(self, claim: Claim) -> bool:
        """Whether a claim compares any two rows that differ in nothing but its inputs."""
        return claim.local and set(self.table.of) <= self.inputs

    def _near(self, claim: Claim, epsilon: Fraction) -> tuple[Claim, Question]:
        """The curve is that of the least of a few distances."""
        metric = self.metrics.get(claim.line.number, "")
        found = reaches(self.table.seen(claim.outputs), claim.wrt, metric, epsilon)
        steps = tuple(Step(exact(r.distance), rounded(r.epsilon, 4, Rounding.UP), consequences(r.curve)) for r in found)
        at = self.table.row_points
        plane = at is not None and at.shape[1] == 2 and len(self.table.of) == 1
        question = HowNear("place" if plane else "value", self.local, "the first", "the second", steps, plane)
        return replace(claim, achieved=found[0].curve), question

    def released(self) -> frozenset[str]:
        """The columns' nodes."""
        return frozenset(self.table.releases)

    def seen(
        self,
        _plan: Mapping[str, Any],
        outputs: frozenset[str],
        claim: Claim,
        unit: Unit | None,
        model: Model | None,
    ) -> Curve | None:
        """The exact curve of the columns that are seen."""
        pairs = (
            self.table.pairs(claim.wrt) if self._compares_rows(claim) else neighbours(self.table, claim, unit, model)
        )
        if pairs is None:
            return None
        return bound_of(self.table.seen(tuple(outputs)), pairs)

    def to_json(self) -> dict[str, object]:
        """The facts, without the probabilities themselves: the plan holds them exactly."""
        return pages.table_json(self)

    # --- pages: words are in `pages`

    def drawn(self, facts: Facts) -> str:
        """What is drawn from how large a table, and where."""
        return pages.drawn(self, facts)

    def summary_rows(self, facts: Facts) -> Rows:
        """The known mechanism that it is, and what the solver chose."""
        return pages.summary_rows(self, facts)

    def error(self, facts: Facts) -> tuple[str, str]:
        """The errors of the loss in words."""
        return pages.error(self, facts)

    def compared(self, item: AlternativeFact, facts: Facts) -> str:
        """The error of a design, in the measure of the loss."""
        return pages.compared(self, item, facts)

    def next_commands(self, _facts: Facts) -> tuple[str, ...]:
        """With `aggregate` where reports are collected."""
        return ("run", "aggregate", "explain", "verify") if self.local else ("run", "explain", "verify")

    def public_sections(self, facts: Facts) -> tuple[Section, ...]:
        """What several votes on one budget mean."""
        return public_rounds(self.rounds, facts)

    def public_accuracy(self, facts: Facts) -> tuple[Sentence, ...]:
        """How often a report is true, or how far it is off."""
        return pages.public_accuracy(self, facts)

    def exactly(self, facts: Facts) -> str:
        """The table itself is public."""
        return pages.exactly(self, facts)

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        """The table, its draw, and what the solver chose."""
        return pages.auditor_points(self, facts)

    def auditor_tables(self, facts: Facts) -> tuple[Block, ...]:
        """Errors of the outputs, and chosen laws."""
        return pages.auditor_tables(self, facts)

    def data(self, facts: Facts) -> tuple[Sentence, ...]:
        """The domains of the inputs."""
        return pages.data(facts)

    def engineer_sections(self, facts: Facts) -> tuple[Section, ...]:
        """The table as a heat map."""
        return pages.engineer_sections(self, facts)

    def execution(self, facts: Facts) -> tuple[Block, ...]:
        """How a report is drawn."""
        return pages.execution(self, facts)

    def run_commands(self, facts: Facts, plan: str) -> tuple[str, ...]:
        """Run, and for local reports aggregate."""
        return pages.run_commands(self, facts, plan)


def _bound(claim: Claim) -> tuple[float, float] | None:
    """The epsilon and delta that were reached, where the plan states them."""
    curve = claim.achieved
    return (curve.epsilon, curve.delta) if isinstance(curve, EpsilonDeltaCurve) else None
