"""A plan of histograms of what parties hold: which sets they report, and how far the estimated counts are off."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, ClassVar

from privspec.core.records import dataclass
from privspec.explain.curves import EpsilonDeltaCurve
from privspec.explain.document import Block, Judged, Note, Sentence, SpecLine, asserted, proved, table
from privspec.explain.facts import MechanismFact, executed, randomness, run_command
from privspec.explain.quantities import UP, Quantity, count, exact, percent, rounded
from privspec.explain.questions import Question, largest_factor, took_part, which_answer
from privspec.kernel.frequencies import Frequencies, Sets, read_frequencies
from privspec.stated import Stated

if TYPE_CHECKING:
    from privspec.explain.claims import Claim
    from privspec.explain.context import Context
    from privspec.explain.facts import Facts

_NOTE = Note("local-histograms")
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

    drawn_label: ClassVar[str] = "What is drawn"
    subject: ClassVar[str] = "The law of the reports"
    reached_label: ClassVar[str] = "Reached by the reports"
    exact_curve: ClassVar[str] = "the reports (a bound)"
    entry: ClassVar[Judged] = Judged("law")
    loss_note: ClassVar[Note] = _NOTE
    accuracy_heading: ClassVar[str] = "How exact are the published counts?"
    measure: ClassVar[str] = "each report is a set of values, drawn by the chances that this report describes."
    heading: ClassVar[str] = "Reports"
    compared_with: ClassVar[tuple[str, str]] = "What people use", "Reports | Loss | Meets the lines | Reason"

    @property
    def ends(self) -> tuple[str, str]:
        """The first and the last value."""
        block = self.found.block
        if block.lower is None or block.step is None:
            return block.listed[0], block.listed[-1]
        return str(exact(block.lower)), str(exact(block.lower + (block.values - 1) * block.step))

    @property
    def reports(self) -> str:
        """What one report is."""
        sizes, k = sorted({kind.subset for kind in self.found.kinds}), self.found.block.told
        if self.found.block.group is not None:
            return "whether the value is one that is counted"
        if sizes == [1]:
            return "one value"
        size = " to ".join(dict.fromkeys(str(count(size)) for size in (sizes[0], sizes[-1])))
        return f"a set of {size} of the {count(k)} values"

    def between(self, of: Callable[[Sets], Fraction], digits: int) -> str:
        """A chance in percent, from the least to the largest of all kinds."""
        chances = sorted(of(kind) for kind in self.found.kinds)
        return " to ".join(dict.fromkeys(f"{percent(chance, digits)}" for chance in (chances[0], chances[-1])))

    def judged(self, claim: Claim) -> tuple[Claim, Question]:
        """About any two values."""
        if not claim.local:
            return claim, took_part(claim.relation)
        reached = claim.achieved if isinstance(claim.achieved, EpsilonDeltaCurve) else None
        times = largest_factor(reached.epsilon) if reached is not None and reached.delta == 0.0 else None
        return claim, which_answer(True, self.ends, times)

    def drawn(self, facts: Facts) -> str:
        found = self.found
        name = "subset selection" if max(kind.subset for kind in found.kinds) > 1 else "k-randomised response"
        own = self.between(lambda kind: kind.chance, 4)
        which = "" if len(found.kinds) == 1 else f", by its own epsilon ({count(len(found.kinds))} of them)"
        truth = "truly" if found.block.group is not None else "the own one among them"
        name = "randomised response" if found.block.told == 2 else name
        return (
            f"each {found.block.party} reports {self.reports}{which}, {truth} with a chance of {own} "
            f"({name}){facts.context.place}"
        )

    def error(self, facts: Facts) -> tuple[str, str]:
        label = "Expected error per count" if self.found.block.group is None else "Expected error"
        return label, f"± {self.error_size}  (root mean square, whatever people hold)"

    # --- the pages

    def public_accuracy(self, facts: Facts) -> tuple[Sentence, ...]:
        found, because = self.found, (facts.context.loss_because, Judged("loss"))
        block = found.block
        unit = facts.unit(block.output, self.error_size.text)
        what = "A published count" if block.group is None else "The published count"
        size = self.error_size.value
        off = proved(f"{what} is typically off by {self.error_size}{unit} by chance alone.", *because)
        said = [facts.of_chance(off, "deviation", (block.output, size, size))]
        if block.count >= MANY:
            far = rounded(size * NORMAL, 2, UP)
            text = f"So differences below about {far}{facts.unit(block.output)} mean little."
            said.append(proved(text, *because))
        if block.group is None:
            text = "Counts are estimated from all reports: one may come out below 0. They add up to the"
            said.append(proved(f"{text} {count(block.count)} reports.", _NOTE))
        return tuple(said)

    def exactly(self, facts: Facts) -> tuple[str, ...]:
        return "how many reports there are", "the chances that they were drawn with"

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        found = self.found
        block, others = found.block, self.between(lambda kind: kind.others, 3)
        if block.group is not None:
            return self._of_group()
        own = self.between(lambda kind: kind.chance, 3)
        mixed = ", by its own epsilon" if len(found.kinds) > 1 else ""
        return (
            proved(
                f"Each {block.party} sends {self.reports}{mixed}. The own value is in it with a chance of {own}; the "
                "others are a uniform choice of the rest. So it holds any given other value with a chance of "
                f"{others}.",
                Judged("law"),
            ),
            proved(
                f"A report is at most {self.largest} times as likely at one value as at another.",
                Judged("privacy"),
            ),
            proved(
                f"The estimate for a value is how many reports hold it, less {others} of all, divided by the "
                "difference of the two chances. It is right on average, whatever people hold, and is computed from the "
                "reports alone, which costs no privacy.",
                _NOTE,
            ),
            proved("No other reports, and no other unbiased estimate, have a smaller sum of squared errors.", _NOTE),
            *randomness(_NOTE),
        )

    def _of_group(self) -> tuple[Sentence, ...]:
        block, own = self.found.block, self.between(lambda kind: kind.chance, 3)
        some = "the value" if len(block.group or ()) == 1 else f"any of {count(len(block.group or ()))} values"
        return (
            proved(
                f"Each {block.party} sends yes or no: whether {block.source} is {some} that is counted. It is the "
                f"truth with a chance of {own}.",
                Judged("law"),
            ),
            proved(
                f"A report is at most {self.largest} times as likely at one value as at another.", Judged("privacy")
            ),
            proved("The estimate is computed from all reports, and right on average, whatever people hold.", _NOTE),
            proved("No other reports, and no other unbiased estimate, have a smaller squared error.", _NOTE),
            *randomness(_NOTE),
        )

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

    def data(self, facts: Facts) -> tuple[Sentence, ...]:
        block = self.found.block
        text = f"Secret input {block.source}: one of {count(block.values)} values, {self.ends[0]} to {self.ends[1]}"
        return (asserted(f"{text}, of each {block.party}; there are {count(block.count)} of them.", self.input_line),)

    def execution(self, facts: Facts) -> tuple[Block, ...]:
        found = self.found
        items = [
            ("Report", f"{self.reports}, sent by each {found.block.party}"),
            ("Own value", f"in it with a chance of {self.between(lambda kind: kind.chance, 8)}, exact in the plan"),
            ("Other values", "a uniform choice of those that are left"),
        ]
        text = "The own value's coin and the choice of the others are drawn from whole random words, without rounding."
        return executed(facts, items, proved(text, _NOTE))

    def run_commands(self, facts: Facts, plan: str) -> tuple[str, ...]:
        block = self.found.block
        return (f"{run_command(plan, (block.source,))} -o {block.output}.csv",)


def frequency_fact(plan: Stated, context: Context) -> FrequencyFact:
    """The mechanism of a plan of the family "frequencies".

    Raises: KeyError, TypeError, ValueError if it is not of that form.
    """
    found = plan.executed_as(read_frequencies)
    block = found.block
    each = (plan.loss.value if plan.loss else 0.0) / float(block.weight)
    each /= block.values if block.group is None else 1
    return FrequencyFact(
        family=plan.mechanism.family,
        released=frozenset(found.outputs),
        found=found,
        error_size=rounded(sqrt(each)),
        input_line=context.line_of(block.source),
    )
