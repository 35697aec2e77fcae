"""A plan of finite reports of a real number: what each cell of the number draws, and how far reports are off."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, ClassVar

from privspec.core.records import dataclass
from privspec.explain.curves import EpsilonDeltaCurve
from privspec.explain.document import Block, Judged, Note, Sentence, SpecLine, asserted, assumed, proved, table
from privspec.explain.facts import MechanismFact, executed, randomness, run_command
from privspec.explain.quantities import Quantity, count, exact, rounded
from privspec.explain.questions import Question, largest_factor, took_part, which_answer
from privspec.kernel.cells import CellBlock, read_cells
from privspec.stated import Stated

if TYPE_CHECKING:
    from privspec.explain.claims import Claim
    from privspec.explain.context import Context
    from privspec.explain.facts import Facts

_NOTE = Note("real-cells")
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
    loss_note: ClassVar[Note] = _NOTE
    accuracy_heading: ClassVar[str] = "How far off is a report?"
    measure: ClassVar[str] = "what is released is drawn from the table of probabilities that this report describes."
    heading: ClassVar[str] = "Table"
    compared_with: ClassVar[tuple[str, str]] = "What people use", "Reports | Loss | Meets the lines | Reason"

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
        said = [
            proved(
                f"A report is {kind} off by {self.error_size}{unit}{where}.",
                facts.context.loss_because,
                Judged("loss"),
            )
        ]
        if self.averaged:
            text = "Averages are over the values that the author expects."
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
                _NOTE,
            ),
            *randomness(_NOTE),
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
        return executed(facts, items, proved(text, _NOTE))

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
        local=context.trust == "nobody",
        input_line=context.line_of(block.source),
    )
