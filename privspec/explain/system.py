"""A plan of a system: what each part spends of the lines that parts share, and every part in its family's own words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from privspec.explain.document import Block, Judged, Note, Plot, Section, Sentence, Table, proved, table
from privspec.explain.facts import MechanismFact, Rows
from privspec.explain.system_picture import line_sentences, parts_of_picture, system_plot
from privspec.families.systems.execution import part_plans
from privspec.model.reports import listing
from privspec.model.values import show
from privspec.problem.systems import parts_of
from privspec.stated import Share, Stated

if TYPE_CHECKING:
    from privspec.explain.facts import AlternativeFact, Facts, Judgement
    from privspec.model.graph import Model

_COMPOSED = Note("composition")


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemFact(MechanismFact):
    """The facts of every part, each as if its plan stood alone, and what it spends of each line, in words.

    `chosen`: the numbers that the spec left to be picked, exactly; `runs`: what is said of parts that are drawn several
    times or on a condition; `shares` and `lines`: what each part spends, and of which lines.
    """

    parts: tuple[Facts, ...]
    spent: tuple[str, ...]
    chosen: tuple[tuple[str, str], ...]
    runs: tuple[str, ...]
    shares: tuple[tuple[Share, ...], ...]
    lines: tuple[tuple[int, ...], ...]

    drawn_label: ClassVar[str] = "What is released"
    subject: ClassVar[str] = "The system as executed"
    reached_label: ClassVar[str] = "Reached by all parts together"
    exact_curve: ClassVar[str] = "all parts together (a bound)"
    entry: ClassVar[Judged] = Judged("privacy")
    loss_note: ClassVar[Note] = _COMPOSED
    measure: ClassVar[str] = "noise is drawn for each part of what is released, by the plan that this report describes."
    heading: ClassVar[str] = "How the budget splits"

    @property
    def gaps(self) -> tuple[str, ...]:
        return tuple(gap for part in self.parts for gap in part.mechanism.gaps)

    def drawn(self, facts: Facts) -> str:
        return f"{len(self.parts)} parts with independent noise" if len(self.parts) > 1 else "one part"

    def summary_rows(self, facts: Facts) -> Rows:
        """Each part: what is drawn, how far it is off, what it spends."""
        rows: Rows = []
        for part, spent in zip(self.parts, self.spent, strict=True):
            label, error = part.mechanism.error(part)
            off = f" · {label[0].lower()}{label[1:]}: {error}" if error else ""
            rows.append((_names(part), f"{part.mechanism.drawn(part)} · spends {spent}{off}"))
        if self.chosen:
            rows.append(("Chosen shares", " · ".join(f"{name} = {value}" for name, value in self.chosen)))
        return rows

    def error(self, facts: Facts) -> tuple[str, str]:
        """The sum of the losses of the parts."""
        return "Expected loss", "" if facts.loss is None else f"{facts.loss.value}, the sum over all parts"

    def compared(self, item: AlternativeFact, facts: Facts) -> str:
        """How many times the loss."""
        return f": {item.weighed}"

    def public_accuracy(self, facts: Facts) -> tuple[Sentence, ...]:
        return tuple(sentence for part in self.parts for sentence in part.mechanism.public_accuracy(part))

    def exactly(self, facts: Facts) -> str:
        return " ".join(dict.fromkeys(f"{_names(part)}: {part.mechanism.exactly(part)}" for part in self.parts))

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        words = f"The release has {len(self.parts)} parts, whose noise is drawn independently of one another."
        words = words if len(self.parts) > 1 else "The release has one part."
        every = [sentence for part in self.parts for sentence in part.mechanism.auditor_points(part)]
        picked = [f"{name} was left to be chosen and is {value}, exactly." for name, value in self.chosen]
        said = (proved(one, _COMPOSED) for one in (*picked, *self.runs))
        return (proved(words, _COMPOSED), *line_sentences(facts, self._by_line()), *said, *dict.fromkeys(every))

    def auditor_tables(self, facts: Facts) -> tuple[Block, ...]:
        return (self._picture(facts), *self._each(lambda part: part.mechanism.auditor_tables(part)))

    def data(self, facts: Facts) -> tuple[Sentence, ...]:
        return tuple(dict.fromkeys(one for part in self.parts for one in part.mechanism.data(part)))

    def engineer_sections(self, facts: Facts) -> tuple[Section, ...]:
        """How the budget splits, then every part."""
        own = (
            replace(section, heading=f"{_names(part)}: {section.heading}")
            for part in self.parts
            for section in part.mechanism.engineer_sections(part)
        )
        return (*MechanismFact.engineer_sections(self, facts), *own)

    def engineer_blocks(self, facts: Facts) -> list[Block]:
        return [self._budget(), self._picture(facts)]

    def engineer_points(self, facts: Facts) -> list[Sentence]:
        return list(line_sentences(facts, self._by_line()))

    def _picture(self, facts: Facts) -> Plot:
        return system_plot(parts_of_picture(self.parts, self.spent, self.shares, facts))

    def _by_line(self) -> dict[int, list[tuple[str, str]]]:
        """For the number of each line the parts that share it, and what they spend."""
        found: dict[int, list[tuple[str, str]]] = {}
        for part, shares, lines in zip(self.parts, self.shares, self.lines, strict=True):
            for share, line in zip(shares, lines, strict=True):
                found.setdefault(line, []).append((_names(part), _share(share)))
        return found

    def execution(self, facts: Facts) -> tuple[Block, ...]:
        return self._each(lambda part: part.mechanism.execution(part))

    def run_commands(self, facts: Facts, plan: str) -> tuple[str, ...]:
        blocks = (block for part in self.parts if part.model is not None for block in part.model.blocks)
        names = dict.fromkeys(block.name for block in blocks)
        return (f"privspec run {plan}{''.join(f' --input {name}={name}.csv' for name in names)}",)

    def _budget(self) -> Table:
        rows = (
            (_names(part), part.family, spent, part.loss and part.loss.value)
            for part, spent in zip(self.parts, self.spent, strict=True)
        )
        return table("What each part spends (claim privacy)", "Outputs | Family | Spends | Loss", rows)

    def _each(self, blocks: Callable[[Facts], tuple[Block, ...]]) -> tuple[Block, ...]:
        return tuple(
            replace(block, caption=f"{_names(part)}: {block.caption}") if isinstance(block, Table) else block
            for part in self.parts
            for block in blocks(part)
        )


def _names(part: Facts) -> str:
    return listing(sorted(part.mechanism.released))


def system_fact(
    document: Mapping[str, Any],
    plan: Stated,
    model: Model | None,
    facts: Callable[..., Facts],
    judgement: Judgement | None,
) -> SystemFact:
    """The mechanism of a plan of a system; `facts` reads the plan of a part.

    Raises: KeyError, ValueError if it is not of that form.
    """
    plans = part_plans(document)
    models = [None] * len(plans) if model is None else [part.model for part in parts_of(model)]
    read = tuple(facts(one | {"digest": ""}, own, judgement) for one, own in zip(plans, models, strict=True))
    return SystemFact(
        family=plan.mechanism.family,
        released=frozenset().union(*(part.mechanism.released for part in read)),
        parts=read,
        runs=tuple(
            text
            for own, part in zip(read, plan.problem.blocks[0]["parts"], strict=True)
            for text in _runs(_names(own), part)
        ),
        shares=tuple(part.shares for part in plan.mechanism.parts),
        lines=tuple(tuple(part["lines"]) for part in plan.problem.blocks[0]["parts"]),
        chosen=tuple((name, show(value)) for name, value in plan.mechanism.chosen.items()),
        spent=tuple(
            " and ".join(dict.fromkeys(map(_share, part.shares))) + _each_time(held)
            for part, held in zip(plan.mechanism.parts, plan.problem.blocks[0]["parts"], strict=True)
        ),
    )


def _each_time(part: Mapping[str, Any]) -> str:
    times = f", {part['times']} times" if part["times"] > 1 else ""
    return times + (f", if {part['only_if']} is not 0" if part["only_if"] is not None else "")


def _runs(names: str, part: Mapping[str, Any]) -> Iterator[str]:
    """How often a part is drawn and when, and what bounds all of it together."""
    if part["times"] > 1:
        yield (
            f"{names} is drawn {part['times']} times, each time with noise of its own and the same share, and every "
            "line holds of all of them together: composed at fixed shares, exactly for Gaussian noise and for "
            "randomised response, by an upper bound for other noise of pure epsilon."
        )
    if part["only_if"] is not None:
        yield (
            f"{names} is drawn only if {part['only_if']} is released and is not 0. Whoever sees it is told that as "
            "well, so it could be computed from a release in which all is drawn; the whole budget is set aside."
        )


def _share(share: Share) -> str:
    """As in "0.734278-DP"."""
    amounts = ", ".join(show(Fraction(value)) for _, value in share.amounts)
    name = re.sub(r"^\(.*\)|^[a-z]+", "", share.name)
    return f"({amounts}){name}" if len(share.amounts) > 1 else f"{amounts}{name}"
