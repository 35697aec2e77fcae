"""A plan that selects a value of a column: how it is drawn, how far it is off, and what it was compared with."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar

from privspec.core.records import dataclass
from privspec.explain.document import Block, Judged, Note, Sentence, SpecLine, asserted, assumed, proved
from privspec.explain.facts import MechanismFact, executed, randomness, run_command
from privspec.explain.quantities import UP, Quantity, count, rounded
from privspec.kernel.core.problem import read_frame
from privspec.kernel.core.reading import Item
from privspec.kernel.selection import Drawn, Ranks, Selected, Where, read_drawn
from privspec.model.reports import listing
from privspec.stated import Stated

if TYPE_CHECKING:
    from privspec.explain.context import Context
    from privspec.explain.facts import Facts

_NOTE = Note("scores")
NAMES = {
    "exponential": "the exponential mechanism",
    "permute_and_flip": "permute-and-flip",
    "table": "a table of exact chances, a row for each table of counts",
}
FEW = 6
"""Values that a sentence names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionFact(MechanismFact):
    """One of the values of a column; `off` the loss in units that readers know, its root where it is a square."""

    block: Selected
    base: Fraction
    offset: int
    weighed: bool
    off: Quantity
    input_line: SpecLine

    drawn_label: ClassVar[str] = "How it is drawn"
    subject: ClassVar[str] = "The draw"
    reached_label: ClassVar[str] = "Reached by the draw"
    exact_curve: ClassVar[str] = "one draw (a bound)"
    entry: ClassVar[Judged] = Judged("law")
    loss_note: ClassVar[Note] = _NOTE
    accuracy_heading: ClassVar[str] = "How far off is the published value?"
    measure: ClassVar[str] = (
        "one value is drawn by lot, those near the true one far more often, as this report describes."
    )
    heading: ClassVar[str] = "Draw"
    compared_with: ClassVar[tuple[str, str]] = (
        "Other ways to draw, under the same lines",
        "Draw | Loss | Meets the lines | Reason",
    )

    @property
    def values(self) -> str:
        """The answers in a few words."""
        answers = self.block.answers
        if self.block.numbers:
            return f"{len(answers)} values from {answers[0]} to {answers[-1]}"
        return listing(list(answers[:FEW])) + (f" and {len(answers) - FEW} more" if len(answers) > FEW else "")

    @property
    def sought(self) -> str:
        """What is looked for, in words."""
        share = self.share
        if share is None:
            return f"the most frequent {self.block.column}"
        if share in (0, 1):
            return f"the {'largest' if share else 'smallest'} value of “{self.block.column}”"
        if share == Fraction(1, 2):
            return f"the median of “{self.block.column}” (the value in the middle)"
        return f"the value of “{self.block.column}” that {float(100 * share):g} % of the records do not exceed"

    @property
    def among(self) -> str:
        """Which records count, with the space before it."""
        each = f" in each of the {self.groups} groups by {listing([one.column for one in self.block.by])}"
        kept = f" among records with {listing([_kept(one) for one in self.block.where])}" if self.block.where else ""
        return (each if self.block.by else "") + kept

    @property
    def share(self) -> Fraction | None:
        """Of the records, that the value that is sought is at; None for the most frequent one."""
        return self.block.score.share if isinstance(self.block.score, Ranks) else None

    @property
    def groups(self) -> int:
        """How many values are drawn."""
        return self.block.groups

    def drawn(self, facts: Facts) -> str:
        each = f" for each of {self.groups} groups by {listing([one.column for one in self.block.by])}"
        where = f"{self.values}{each if self.block.by else ''}"
        return f"{self.block.output} is drawn from {where} by {NAMES[self.family]}{self._beside()}"

    def _beside(self) -> str:
        if not self.offset:
            return ", weighed by the stated law" if self.weighed else ""
        many = "1 record" if abs(self.offset) == 1 else f"{count(abs(self.offset))} records"
        return f", aiming {many} {'above' if self.offset > 0 else 'below'} what is sought" + (
            ", weighed by the stated law" if self.weighed else ""
        )

    def error(self, facts: Facts) -> tuple[str, str]:
        loss, cost = facts.loss, self.block.cost
        if loss is None:
            return "Expected error", ""
        label = "Largest expected error" if cost.worst else "Expected error"
        kind = {"ranks": "in records", "mismatch": "chance of another value"}.get(cost.form, "mean absolute error")
        kind = "root mean square error" if cost.power == 2 else kind
        kind += ", all groups together" if self.block.by else ""
        spread = "" if loss.standard_error is None or cost.power == 2 else f" ± {loss.standard_error}"
        return label, f"{self.off}{spread}  ({kind})"

    # --- the pages

    def public_accuracy(self, facts: Facts) -> tuple[Sentence, ...]:
        cost, off, unit = self.block.cost, self.off, self.block.output
        text = f"What is published is {self.sought}{self.among}, or a value near it. Chance decides, which is what "
        text += "protects each person."
        kind, which = "typically" if cost.power == 2 else "on average", "A" if self.block.by else "The"
        if self.block.by and cost.form not in ("ranks", "mismatch"):
            off = rounded(off.value / (sqrt(self.groups) if cost.power == 2 else self.groups), 3, UP)
        size = {
            "ranks": f"At worst the published value is on average {off} records away from the true one.",
            "mismatch": f"A value other than the true one is published with a chance of about {off}.",
        }.get(cost.form, f"{which} published value is {kind} about {off}{facts.unit(unit, off.text)} off.")
        if cost.form == "ranks" and self.share is None:
            size = f"At worst the published value has on average {off} records fewer than the most frequent one."
        if self.block.by and cost.form in ("ranks", "mismatch"):
            size += f" This is the sum over {self.groups} groups."
        found = [proved(text, _NOTE, Judged("law"))]
        if cost.worst:
            return (*found, proved(size, facts.context.loss_because, Judged("loss")))
        return (
            *found,
            assumed(f"{size} This was simulated with data such as the author expects.", facts.context.loss_because),
        )

    def exactly(self, facts: Facts) -> tuple[str, ...]:
        return "that a value was drawn", f"the {len(self.block.answers):,} values that it was drawn from"

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        block = self.block
        whole = self.share is None or self.share.denominator == 1
        step = "one record" if self.share is None or whole else f"1/{self.share.denominator} of a record"
        text = (
            f"{block.output} is one of {self.values}. Each is behind the best one by a number of steps of {step}; "
            f"a step multiplies its chance by {float(1 / self.base):.6g}. It is drawn by {NAMES[self.family]}"
            f"{self._beside()}."
        )
        if self.family == "table":
            text = (
                f"{block.output} is one of {self.values}, drawn by {NAMES[self.family]}; each row of it adds up to 1."
            )
        read = "Each record is read at the nearest of these values, by itself. " if block.numbers else ""
        why = f"{read}How far one record can move the steps, and with them the chances, is proved in the note."
        exact = "Draws compare whole numbers of the operating system's generator: no floating-point number takes part."
        return proved(text, Judged("law")), proved(why, _NOTE), proved(exact, _NOTE), *randomness(_NOTE)

    def auditor_tables(self, facts: Facts) -> tuple[Block, ...]:
        return (self.ways(facts),) if facts.alternatives else ()

    def data(self, facts: Facts) -> tuple[Sentence, ...]:
        block = self.block
        many = "a secret number of records" if block.records is None else f"{count(block.records)} records"
        text = f"Secret input {block.source}: a table of {many}, of which {self.sought}{self.among} is asked for."
        return (asserted(text, self.input_line),)

    def engineer_points(self, facts: Facts) -> list[Sentence]:
        step = "" if self.family == "table" else f"; a step of a score has the chance {1 / self.base}"
        words = f"How it is drawn: {self.drawn(facts)}{step}."
        return [proved(words, _NOTE, Judged("law"))]

    def engineer_blocks(self, facts: Facts) -> list[Block]:
        return list(self.auditor_tables(facts))

    def execution(self, facts: Facts) -> tuple[Block, ...]:
        block = self.block
        rows = [
            ("Column", f"{block.column} of {block.source}{self.among}"),
            ("Values", self.values),
            ("Rule", f"{NAMES[self.family]}{self._beside()}"),
            *([] if self.family == "table" else [("Chance of one step", str(1 / self.base))]),
            ("Released", block.output),
        ]
        text = "Chances are powers of one fraction: each is as many tosses of a coin that compares whole numbers."
        if self.family == "table":
            text = "A uniform whole number below the common sum of the chances is found among the sums of a row."
        return executed(facts, rows, proved(text, _NOTE))

    def run_commands(self, facts: Facts, plan: str) -> tuple[str, ...]:
        return (run_command(plan, (self.block.source,)),)


def _kept(one: Where) -> str:
    """A condition in words: `age from 65 to 120`, `sex F`."""
    kept = [one.values[i] for i in one.kept]
    run = list(one.kept) == list(range(one.kept[0], one.kept[-1] + 1)) and len(kept) > 2
    number: Any = one.values[0].lstrip("-").replace(".", "").isdigit()
    if run and number:
        return f"{one.column} from {kept[0]} to {kept[-1]}"
    more = f" or {len(kept) - FEW} more" if len(kept) > FEW else ""
    return f"{one.column} {listing(kept[:FEW], 'or')}{more}"


def selection_fact(plan: Stated, context: Context) -> SelectionFact:
    """The mechanism of a plan of the form "selection".

    Raises: KeyError, TypeError, ValueError if it is not of that form.
    """
    frame = read_frame(Item(plan.document["problem"], "problem"))
    drawn = plan.executed_as(lambda block, mechanism: read_drawn(block, mechanism, frame))
    column, target = drawn.block, drawn.target if isinstance(drawn, Drawn) else None
    value = 0.0 if plan.loss is None else plan.loss.value / float(column.cost.weight)
    return SelectionFact(
        family=drawn.family,
        released=frozenset(drawn.outputs),
        block=column,
        base=drawn.base if isinstance(drawn, Drawn) else Fraction(1),
        offset=0 if target is None else target.offset,
        weighed=isinstance(drawn, Drawn) and any(drawn.handicap),
        off=rounded(sqrt(max(value, 0.0)) if column.cost.power == 2 else value),
        input_line=context.line_of(column.source),
    )
