"""A plan of histograms of what parties hold: which sets they report, and how far the estimated counts are off."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from privspec.core.records import dataclass
from privspec.explain.document import Accuracy, Block, SpecLine, table
from privspec.explain.facts import MechanismFact, typical
from privspec.explain.messages import phrase
from privspec.explain.quantities import UP, Quantity, count, exact, percent, rounded
from privspec.explain.questions import Question, of_report
from privspec.kernel.reports import Frequencies, FrequencyBlock, Sets, read_frequencies
from privspec.stated import Stated

if TYPE_CHECKING:
    from privspec.explain.claims import Claim
    from privspec.explain.context import Context
    from privspec.explain.facts import Facts

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
