"""A plan of keys that nobody has listed: how often one is shown, by its records, and how far counts are off."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from math import sqrt
from typing import TYPE_CHECKING, ClassVar

from privspec.core.records import dataclass
from privspec.explain.document import Block, Judged, Note, Sentence, SpecLine, asserted, assumed, proved, table
from privspec.explain.facts import MechanismFact, executed, randomness, run_command
from privspec.explain.quantities import UP, Quantity, count, percent, rounded
from privspec.kernel.keys import KeyBlock, read_keys
from privspec.model.reports import listing
from privspec.stated import Stated

if TYPE_CHECKING:
    from privspec.explain.context import Context
    from privspec.explain.facts import Facts

_NOTE = Note("unknown-keys")
MOST_ROWS = 40
"""Counts of which a table tells the chance to be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFact(MechanismFact):
    """The chance that a key of 1, 2, ... records is shown, and what its count is off by on average."""

    block: KeyBlock
    kept: tuple[Fraction, ...]
    chances: tuple[Fraction, ...]
    centre: int
    error_size: Quantity
    averaged: bool
    input_line: SpecLine

    drawn_label: ClassVar[str] = "What is drawn"
    subject: ClassVar[str] = "The table of chances"
    reached_label: ClassVar[str] = "Reached by the chances"
    exact_curve: ClassVar[str] = "the chances (a bound)"
    entry: ClassVar[Judged] = Judged("law")
    loss_note: ClassVar[Note] = _NOTE
    accuracy_heading: ClassVar[str] = "What is missing, and how exact is the rest?"
    measure: ClassVar[str] = "what is shown is drawn by the chances that this report describes."
    heading: ClassVar[str] = "Chances"
    compared_with: ClassVar[tuple[str, str]] = "What people use", "Release | Loss | Meets the lines | Reason"

    @property
    def key(self) -> str:
        """What a key is called: its columns."""
        return listing([column.name for column in self.block.columns if column.grouped])

    def reached(self, chance: Fraction) -> int:
        """The fewest records with which a key is shown with so large a chance."""
        return next(n for n, kept in enumerate(self.kept, 1) if kept >= chance)

    def drawn(self, facts: Facts) -> str:
        what = "the keys that are shown, with their counts" if self.block.counts else "the keys that are shown"
        half, most = self.reached(Fraction(1, 2)), len(self.kept)
        return f"{what}: at least half of those with {count(half)} records, all with {count(most)}{facts.context.place}"

    def error(self, facts: Facts) -> tuple[str, str]:
        label = "Expected error" if self.averaged else "Largest expected error"
        if not self.block.counts:
            return label, f"{self._share()} of the keys missed"
        kind = "root mean square" if self.block.error == "squared" else "mean absolute"
        return label, f"{self.error_size} records  ({kind}, a hidden count being 0)"

    def _share(self) -> str:
        """The loss as a share of the keys."""
        return f"{percent(Fraction(self.error_size.value), 3, UP)}"

    # --- the pages

    def public_accuracy(self, facts: Facts) -> tuple[Sentence, ...]:
        half, most = self.reached(Fraction(1, 2)), len(self.kept)
        because = facts.context.loss_because
        said = [
            proved(
                f"A {self.key} is listed only if enough records have it: of those with {count(half)} records at least "
                f"half are listed, of those with {count(most)} or more all.",
                _NOTE,
                Judged("law"),
            ),
            proved(f"One that only one record has is almost never listed: {_rare(self.kept[0])}.", _NOTE),
        ]
        if self.block.counts:
            how = "typically" if self.block.error == "squared" else "on average"
            at = "" if self.averaged else ", at worst"
            text = f"A count is {how} off by {self.error_size}{at}; one that is not listed counts as 0."
        else:
            least = f" with at least {self.block.at_least} records" if self.block.at_least > 1 else ""
            text = f"Of all of them{least}, {self._share()} are not listed{'' if self.averaged else ', at worst'}."
        said.append(proved(text, because, Judged("loss")))
        if self.averaged:
            said.append(assumed("Averages are over the sizes that the author expects.", because))
        return tuple(said)

    def exactly(self, facts: Facts) -> tuple[str, ...]:
        return (f"the text of each listed {self.key}, as it stands in the data, but not which are left out",)

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        shown = (
            f"The count that is released is its records less its threshold, and {self.centre} more."
            if self.block.counts
            else "No count is released."
        )
        return (
            proved(
                f"Every {self.key} that occurs draws a threshold of its own, from 1 to {count(len(self.kept))}, by "
                f"exact chances, and is shown if it has at least so many records. {shown}",
                Judged("law"),
            ),
            proved("What no record has is never shown; the order of what is shown is that of the texts.", _NOTE),
            proved(
                f"One record alone is shown with a chance of {rounded(self.kept[0], 3, UP)}: no more than delta.",
                _NOTE,
                Judged("privacy"),
            ),
            *randomness(_NOTE),
        )

    def in_figures(self) -> list[Block]:
        every = range(1, len(self.kept) + 1)
        step = -(-len(self.kept) // MOST_ROWS)
        places = [n for n in every if n % step == 0 or n in (1, len(self.kept))]
        rows = [(count(n), rounded(self.kept[n - 1], 4), rounded(self.chances[n - 1], 4)) for n in places]
        caption = f"Chance that a {self.key} is shown, by how many records have it"
        return [table(caption, "Records | Shown | Threshold of so many", rows, 0, 1, 2)]

    def data(self, facts: Facts) -> tuple[Sentence, ...]:
        only = [column.name for column in self.block.columns if column.kept is not None]
        condition = f"; only some values of {listing(only)} count" if only else ""
        text = f"Secret input {self.block.source}: a table of records; which {self.key} occur is secret too{condition}."
        return (asserted(text, self.input_line),)

    def execution(self, facts: Facts) -> tuple[Block, ...]:
        items = [
            ("Threshold", f"one for each key that occurs, from 1 to {count(len(self.kept))}"),
            ("Shown", "a key with at least as many records as its threshold"),
        ]
        if self.block.counts:
            items.append(("Count", f"records - threshold + {self.centre}"))
        text = "A uniform whole number below the common denominator is found among the running sums of the chances."
        return executed(facts, items, proved(text, _NOTE))

    def run_commands(self, facts: Facts, plan: str) -> tuple[str, ...]:
        return (f"{run_command(plan, (self.block.source,))} -o {self.block.output}.csv",)


def _rare(chance: Fraction) -> str:
    """A small chance in natural frequencies, rounded up."""
    if not chance:
        return "never"
    often = int(1 / chance)
    if often <= 2:
        return f"with a chance of {percent(chance, 3, UP)}"
    step = 10 ** max(len(str(often)) - 2, 0)
    return f"at most once in {often // step * step:,}"


def key_fact(plan: Stated, context: Context) -> KeyFact:
    """The mechanism of a plan of the family "keys".

    Raises: KeyError, TypeError, ValueError if it is not of that form.
    """
    keys = plan.executed_as(read_keys)
    block, chances = keys.block, tuple(Fraction(step, keys.total) for step in keys.steps)
    each = (plan.loss.value if plan.loss else 0.0) / float(block.weight)
    return KeyFact(
        family=plan.mechanism.family,
        released=frozenset(keys.outputs),
        block=block,
        kept=tuple(accumulate(chances)),
        chances=chances,
        centre=keys.centre,
        error_size=rounded(sqrt(each) if block.error == "squared" else each),
        averaged=plan.loss is not None and plan.loss.kind == "expected",
        input_line=context.line_of(block.source),
    )
