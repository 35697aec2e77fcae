"""What else a spec left open: each alternative with its loss and cost, and how well it is known that none is better."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from privspec.core.records import dataclass, replace
from privspec.explain import drawing
from privspec.explain.document import Block, Document, Paragraph, Plot, Section, Table
from privspec.explain.messages import phrase, phrases, say, sentences, tabled
from privspec.explain.quantities import DOWN, LOSS_DIGITS, Quantity, gap_words, known, rounded
from privspec.stated import DesignPart, Loss, Relaxed, Stated

MOST_SHOWN = 24
"""Alternatives that pages list: those of least loss with cost, then those without a plan."""


@dataclass(frozen=True, slots=True)
class AlternativeTotal:
    """An alternative by its values, with its own loss, its cost and their sum; or why it has no plan."""

    name: str
    cost: Quantity
    loss: Quantity | None
    total: Quantity | None
    least: Quantity | None
    why: str
    chosen: bool
    lost: Quantity | None = None
    clipped: Quantity | None = None

    @property
    def part(self) -> str:
        """Whether it is the one of the plan."""
        return phrase("designs.alternatives.chosen") if self.chosen else ""

    @property
    def sum_words(self) -> str:
        """The sum; where there is no plan, what it cannot be below if that is known."""
        if self.total is not None:
            return str(self.total)
        return phrase("designs.sum.unknown" if self.least is None else "designs.sum.bound", {"least": self.least})


@dataclass(frozen=True, slots=True)
class DesignFact:
    """The alternatives in order, and what is known of all of them together."""

    status: str
    expression: str
    alternatives: tuple[AlternativeTotal, ...]
    value: Quantity
    lower_bound: Quantity | None
    gap: Quantity | None
    relaxed: str = ""

    @property
    def chosen(self) -> AlternativeTotal:
        return next(one for one in self.alternatives if one.chosen)

    @property
    def verdict(self) -> str:
        """How well it is known that no other is better, in words."""
        computed = sum(1 for one in self.alternatives if one.total is not None)
        if len(self.alternatives) == 1:
            kind = "given"
        elif self.status == "optimal":
            kind = "optimal"
        elif computed < len(self.alternatives):
            kind = "computed"
        else:
            kind = "unknown" if self.lower_bound is None else "bound"
        return phrase(f"designs.verdict.{kind}", {"many": len(self.alternatives), "computed": computed}, self)


def design_fact(document: Mapping[str, Any], design: DesignPart) -> DesignFact:
    """The alternatives of a plan whose spec left something open."""
    loss = Loss.read(document["loss"])
    found = []
    names = [choice.name for choice in design.design.choices]
    for number, (one, came) in enumerate(zip(design.design.alternatives, design.outcomes, strict=True)):
        own, least = came.loss, known(came.least, LOSS_DIGITS, DOWN)
        if own is not None and own.lower_bound is not None:
            least = rounded(Fraction(own.lower_bound) + one.paid, LOSS_DIGITS, DOWN)
        found.append(
            AlternativeTotal(
                ", ".join(f"{name} = {value}" for name, value in zip(names, one.values, strict=True)),
                rounded(one.paid, LOSS_DIGITS),
                None if own is None else rounded(own.value, LOSS_DIGITS),
                None if own is None else rounded(Fraction(own.value) + one.paid, LOSS_DIGITS),
                least,
                came.reason,
                number == design.chosen,
                None if one.cut is None else rounded(one.cut.lost, LOSS_DIGITS),
                None if one.clipped is None else rounded(one.clipped.lost, LOSS_DIGITS),
            )
        )
    return DesignFact(
        str(document["status"]),
        loss.expression,
        tuple(found),
        rounded(loss.value, LOSS_DIGITS),
        known(loss.lower_bound, LOSS_DIGITS, DOWN),
        gap_words(loss.relative_gap),
        relaxed_words(Stated.of(document).remarks.relaxation),
    )


def relaxed_words(found: Relaxed | None) -> str:
    """The relaxation, and that it is no plan; empty where there is none."""
    if found is None:
        return ""
    shares = ", ".join(str(rounded(share)) for share in found.choices)
    return phrase("designs.sum.relaxed", value=rounded(found.value, LOSS_DIGITS), shares=shares)


def summary_rows(design: DesignFact) -> list[tuple[str, str]]:
    """The short table: what was chosen, what it costs, and what the others would."""
    others = [one for one in _best_first(design) if not one.chosen]
    words = [phrase("designs.more.other", one) for one in others[:MOST_ROWS]]
    if len(others) > MOST_ROWS:
        words.append(phrase("designs.more.alternatives", more=len(others) - MOST_ROWS))
    return phrases("designs.summary", design, instead=" · ".join(words))


MOST_ROWS = 6


def _best_first(design: DesignFact) -> list[AlternativeTotal]:
    return sorted(design.alternatives, key=lambda one: (one.total is None, one.total.value if one.total else 0.0))


def with_design(page: Document, design: DesignFact | None) -> Document:
    """The page with a section on the alternatives, after its first."""
    if design is None:
        return page
    if page.reader == "public":
        return replace(page, sections=(*page.sections[:-1], *_for_the_public(design), page.sections[-1]))
    first, *rest = page.sections
    section = Section(phrase("designs.page.heading"), tuple(_blocks(design)))
    return replace(page, sections=(first, section, *rest))


def _for_the_public(design: DesignFact) -> tuple[Section, ...]:
    """That something was chosen, and by what."""
    if len(design.alternatives) == 1:
        return ()
    found = sentences("designs.public_designs", many=len(design.alternatives))
    return (Section(phrase("designs.page.heading"), (Paragraph(found),)),)


def _blocks(design: DesignFact) -> list[Block]:
    without = tuple(say("designs.without.plan", one) for one in _without(design))
    listed = _best_first(design)[:MOST_SHOWN]
    more = len(design.alternatives) - len(listed)
    rest = phrase("designs.alternatives.rest", listed=MOST_SHOWN, more=more) if more else ""
    twin = tabled("designs.alternatives", listed, rest=rest)
    plot = _plot(listed, twin, design)
    return [Paragraph((*sentences("designs.chosen", design), *without)), twin if plot is None else plot]


def _without(design: DesignFact) -> list[AlternativeTotal]:
    return [one for one in design.alternatives if one.total is None][:MOST_SHOWN]


def _plot(listed: list[AlternativeTotal], twin: Table, design: DesignFact) -> Plot | None:
    items = [
        drawing.Row(one.name, one.total.value, one.total.text, chosen=one.chosen)
        for one in listed
        if one.total is not None and one.total.value > 0
    ]
    if len(items) < 2:
        return None
    low = design.lower_bound
    least = low.value if low is not None and low.value > 0 else None
    return Plot(
        name="designs",
        draw=lambda: drawing.row_chart(items, phrase("designs.page.axis"), least),
        alt=phrase("designs.page.alt", design, number=len(items), first=items[0].figure, last=items[-1].figure),
        caption=phrase("designs.page.plot"),
        twin=twin,
    )


def design_of(document: Mapping[str, Any]) -> DesignFact | None:
    """The alternatives of a plan; None where its spec left nothing open."""
    design = Stated.of(document).design
    return None if design is None else design_fact(document, design)
