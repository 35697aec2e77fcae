"""Voting rules side by side, and several votes on one budget.

All rules that were compared, in one table: what they cost, how far they are from the votes, and what they keep. Plans
of lotteries have it, and tables of probabilities for voting. Then how many votes fit a budget, what one spends, and
what a voter who takes part in several has spent.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from privspec.core.records import dataclass
from privspec.explain.curves import Curve, Odds, odds
from privspec.explain.document import Block, Note, Paragraph, Points, Section, Sentence, Table
from privspec.explain.messages import phrase, phrases, say, sentences, tabled
from privspec.explain.quantities import DOWN, LOSS_DIGITS, NEAREST, UP, Quantity, count, exact, known, rounded
from privspec.kernel.promises import SharedBudget
from privspec.stated import Alternative, Property, RuleFigures, Stated, parse_exact


def without_noise(name: str) -> str:
    """The lottery that distortions are distances from, by its name in a plan."""
    return phrase(f"rules.without.{name or 'none'}")


def property_in_short(item: Property) -> str:
    """In a list: "not strategy-proof"."""
    return phrase(f"rules.kept.{item.name}") if item.holds else phrase(f"rules.lost.{item.name}")


def _property(item: Property) -> Sentence:
    """In a sentence, with the reason and the counterexample; a remark of the plan, which the kernel does not judge."""
    reason = _shut(item.because)
    return say(
        "rules.property.said",
        label=phrase(f"rules.properties.{item.name}"),
        meaning=phrase(f"rules.meanings.{item.name}"),
        holds=item.holds,
        reason=f"{reason[:1].upper()}{reason[1:]}",
        failing="" if item.holds else _shut(item.counterexample),
        note=Note(item.note),
    )


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One rule; what a plan does not state is None, and for a property missing; without a loss it was considered."""

    name: str
    chosen: bool
    admissible: bool
    loss: Quantity | None
    epsilon: Quantity | None
    worst: Quantity | None
    mean: Quantity | None
    welfare: Quantity | None
    keeps: Mapping[str, bool | None]
    reason: str

    @property
    def title(self) -> str:
        """Its name, with its part in the plan."""
        if self.chosen:
            return phrase("rules.names.own", self)
        return self.name if self.admissible else phrase("rules.names.out", self)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rules by loss, this plan's first, and what this plan's keeps."""

    rows: tuple[RuleRow, ...]
    properties: tuple[Property, ...]
    compared: str

    @property
    def considered(self) -> tuple[RuleRow, ...]:
        """Rules that have no loss: nothing in the range of the spec lets them meet its lines."""
        return tuple(row for row in self.rows if row.loss is None and not row.chosen)

    def blocks(self) -> tuple[Block, ...]:
        """The tables for engineers and auditors, and below them the reasons and counterexamples."""
        unknown = phrase("rules.names.unknown")
        figures = (
            (row.title, *(f or unknown for f in (row.loss, row.epsilon, row.worst, row.mean, row.welfare)))
            for row in self.rows
            if row.chosen or row.loss is not None
        )
        names = [name for name, _ in phrases("rules.properties")]
        kept = (
            (row.title, *(unknown if (keeps := row.keeps.get(name)) is None else keeps for name in names))
            for row in self.rows
        )
        note = Note(self.properties[0].note if self.properties else "keeping")
        reasons = (
            say("rules.reason.rule", name=row.name, reason=_shut(row.reason), note=note)
            for row in self.rows
            if row.reason and not row.chosen
        )
        found = (*map(_property, self.properties), *reasons)
        return (
            tabled("rules.figures", figures, compared=self.compared),
            tabled("rules.keeps", kept),
            *((Points(found),) if found else ()),
        )


def _shut(text: str) -> str:
    return text.strip().removesuffix(".")


def comparison(plan: Stated, title: str = "") -> Comparison | None:
    """The rules of a plan and of its alternatives that are compared; None where the plan has no such figures."""
    remarks = plan.remarks
    others = [item for item in plan.alternatives if item.figures is not None]
    if not remarks.properties and not others:
        return None
    spent = [g.achieved["epsilon"] for g in plan.guarantees if g.achieved.get("epsilon")]
    recognised = remarks.recognised.name if remarks.recognised is not None else phrase("rules.names.table")
    own = Alternative(
        title or recognised, None if plan.loss is None else plan.loss.value, admissible=True, figures=remarks.figures
    )
    keeps = {p.name: p.holds for p in remarks.properties}
    first = _row(own, chosen=True, epsilon=parse_exact(spent[0]) if spent else None, keeps=keeps)
    rows = [_row(item) for item in (*others, *remarks.considered)]
    rows.sort(key=lambda row: (not row.admissible, row.loss is None, row.loss.value if row.loss else 0.0))
    return Comparison((first, *rows), remarks.properties, without_noise(remarks.compared))


def _row(
    item: Alternative,
    *,
    chosen: bool = False,
    epsilon: Fraction | None = None,
    keeps: Mapping[str, bool | None] | None = None,
) -> RuleRow:
    """A loss that is the least it could be is rounded down; epsilon up."""
    figures = item.figures or RuleFigures()
    loss = known(item.loss, LOSS_DIGITS, DOWN if item.at_least else NEAREST)
    if loss is not None and item.at_least:
        loss = Quantity(loss.value, phrase("rules.names.at_least", loss=loss), loss.rounding)
    return RuleRow(
        item.name,
        chosen,
        item.admissible,
        loss,
        known(figures.epsilon if epsilon is None else epsilon, 4, UP),
        known(figures.worst_distortion, 4),
        known(figures.mean_distortion, 4),
        known(figures.expected_welfare, 4),
        figures.properties or item.properties if keeps is None else keeps,
        item.reason,
    )


SHOWN = (1, 2, 5)
"""Rounds of one voter that tables show, besides all of them."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A voter who took part in so many rounds: epsilon in all, and the odds of one who sees all their winners."""

    number: int
    count: Quantity
    epsilon: Quantity
    odds: Odds


@dataclass(frozen=True, slots=True)
class Rounds:
    """A budget for several votes: how many, what each spends, and how many fit.

    `chosen` is whether the guarantee hides who takes part, so that voters may stay away; `taken` ends with all rounds.
    """

    number: int
    count: Quantity
    each: Quantity
    budget: Quantity | None
    fit: Quantity | None
    chosen: bool
    taken: tuple[Taken, ...]

    @property
    def words(self) -> str:
        """The budget in a line."""
        return "".join(words for _, words in phrases("rules.rounds_words", self))

    @property
    def next_round(self) -> int:
        """The first that the ledger refuses."""
        return self.number + 1

    @property
    def last(self) -> Taken:
        """A voter who takes part in all of them."""
        return self.taken[-1]

    def table(self) -> Table:
        """For auditors and engineers: epsilon of a voter, by rounds with them."""
        return tabled("rules.taken", self.taken)

    def points(self) -> tuple[Sentence, ...]:
        """How rounds add up, and who counts them."""
        return sentences("rules.rounds_add", self)


def rounds_fact(item: SharedBudget, one: Curve, *, chosen: bool) -> Rounds:
    """The rounds of a plan, with the curve of one of them."""
    epsilon, number = item.each, item.count
    return Rounds(
        number,
        count(number),
        rounded(epsilon, 6),
        exact(item.budget),
        count(item.fit),
        chosen=chosen,
        taken=tuple(
            Taken(k, count(k), rounded(k * epsilon, 6), odds(one.repeated(k)))
            for k in (*(k for k in SHOWN if k < number), number)
        ),
    )


def rounds_rows(rounds: Rounds) -> list[tuple[str, str]]:
    """The budget, and what a voter has spent."""
    spent = " · ".join(phrase("rules.rounds.each", taken) for taken in rounds.taken)
    return [
        (phrase("rules.rounds.label"), rounds.words),
        (phrase("rules.rounds.spent"), phrase("rules.rounds.spent_words", rounds=spent)),
    ]


def public_rounds(rounds: Rounds) -> tuple[Section, ...]:
    """What it means to take part again and again."""
    if rounds.number < 2:
        return ()
    return (Section(phrase("rules.rounds.again"), (Paragraph(sentences("rules.public_rounds", rounds)),)),)
