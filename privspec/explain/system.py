"""A plan of a system: what each part spends of the lines that parts share, and every part in its family's own words.

And all of it in one picture: what each part is computed from, where its noise goes, who sees it, its share of lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any

from privspec.core.records import dataclass, replace
from privspec.explain.curves import Curve, EpsilonDeltaCurve, GaussianCurve, consequences
from privspec.explain.document import Block, Note, Plot, Section, Sentence, Table, proved
from privspec.explain.drawing import ACCENT, GRID, INK, MUTED, PAGE, cut, rect, svg, tag, themed, way
from privspec.explain.drawing import say as write
from privspec.explain.facts import Facts, MechanismFact, Moved, Rows, given
from privspec.explain.graphs import observers
from privspec.explain.messages import phrase, plotted, say, tabled
from privspec.explain.quantities import Quantity
from privspec.families.systems.execution import part_plans
from privspec.kernel.core.problem import AskedMeasure
from privspec.kernel.core.reading import read
from privspec.kernel.systems import DRAWN, PartOfSystem
from privspec.model.graph import condition_words
from privspec.model.reports import listing
from privspec.model.values import show
from privspec.problem.systems import parts_of
from privspec.stated import Stated

if TYPE_CHECKING:
    from privspec.explain.facts import AlternativeFact, Judgement
    from privspec.model.graph import Model


FEW_VALUES = 5
"""So many values of what is drawn first are listed."""
_COMPOSED, _EXACT = Note("composition"), Note("composition-exact")


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemFact(MechanismFact):
    """The facts of every part, each as if its plan stood alone, and what it spends of each line, in words.

    `chosen`: the numbers that the spec left to be picked, exactly; `runs`: what is said of parts that are drawn several
    times or on a condition; `shares` and `lines`: what each part spends, and of which lines; `often`: how many times.
    `cases`: of each part but the first its value of what is drawn first, and what that is called; none elsewhere.
    """

    parts: tuple[Facts, ...]
    spent: tuple[str, ...]
    chosen: tuple[tuple[str, str], ...]
    runs: tuple[str, ...]
    shares: tuple[tuple[AskedMeasure, ...], ...]
    lines: tuple[tuple[int, ...], ...]
    often: tuple[str, ...]
    cases: tuple[tuple[str, str], ...] = ()

    page = "system"

    @property
    def names(self) -> tuple[str, ...]:
        """What each part is called: what it releases, and in which case."""
        told = [listing(sorted(part.mechanism.released)) for part in self.parts]
        where = [phrase("system.cases.where", name=name, value=value) for name, value in self.cases]
        return (*told[:1], *map("".join, zip(told[1:], where, strict=True))) if where else tuple(told)

    @property
    def gaps(self) -> tuple[str, ...]:
        return tuple(gap for part in self.parts for gap in part.mechanism.gaps)

    def values(self, facts: Facts) -> Mapping[str, object]:
        cases = len(self.cases)
        several = len(self.parts) > 1 and not cases
        after = listing(sorted(self.parts[-1].mechanism.released))
        first = self.cases[0][0] if cases else ""
        values = listing([value for _, value in self.cases], "or") if cases else ""
        if cases > FEW_VALUES:
            values = phrase("system.cases.values", many=cases, least=self.cases[0][1], most=self.cases[-1][1])
        return {
            "many": len(self.parts),
            "several": several,
            "alone": not several and not cases,
            "cases": cases,
            "first": first,
            "after": after,
            "many_after": len(self.parts[-1].mechanism.released) > 1,
            "of": values,
        }

    def summary_rows(self, facts: Facts) -> Rows:
        """Each part: what is drawn, how far it is off, what it spends."""
        rows: Rows = []
        for name, part, spent in zip(self.names, self.parts, self.spent, strict=True):
            label, error = part.error
            off = f" · {label[0].lower()}{label[1:]}: {error}" if error else ""
            rows.append((name, f"{part.mechanism.drawn(part)} · spends {spent}{off}"))
        shared = [fact.claim for fact in facts.claims if len(self._by_line().get(fact.claim.requirement, ())) > 1]
        if shared:
            words = [f"line {c.line.number}: {'exact' if _EXACT in c.notes else 'an upper bound'}" for c in shared]
            rows.append(("Composition", " · ".join(words)))
        if self.chosen:
            rows.append(("Chosen shares", " · ".join(f"{name} = {value}" for name, value in self.chosen)))
        return rows

    def compared(self, item: AlternativeFact, facts: Facts) -> str:
        """How many times the loss."""
        return f": {item.weighed}"

    def with_units(self, units: Mapping[str, str]) -> SystemFact:
        return replace(self, parts=tuple(part.with_units(units) for part in self.parts))

    def moved_by(self, facts: Facts) -> tuple[Moved, ...]:
        if self.cases:  # one of them alone is published
            return ()
        return tuple(one for part in self.parts for one in part.mechanism.moved_by(part))

    def _moved_in_some_case(self, facts: Facts) -> Iterator[Sentence]:
        """By how much noise moves each output, from the case where that is least to the one where it is most."""
        each = [one for part in self.parts[1:] for one in part.mechanism.moved_by(part)] if self.cases else []
        for name in dict.fromkeys(one.name for one in each):
            sizes = sorted((one for one in each if one.name == name), key=lambda one: one.size.value)
            least, most = sizes[0].size, sizes[-1].size
            differ = least.text != most.text
            size = f"{least} to {most}" if differ else f"{most}"
            sentence = say("system.moved.case", sizes[-1], name=name, size=size, differ=differ)
            yield facts.of_chance(sentence, "deviation", (name, least.value, most.value))

    def public_accuracy(self, facts: Facts) -> tuple[Sentence, ...]:
        first, *others = (part.mechanism.public_accuracy(part) for part in self.parts)
        if self.cases:  # of what is drawn first, what it is: its error shows in what follows
            first = *self._sentences("public", facts), first[0], *self._moved_in_some_case(facts)
        return tuple(dict.fromkeys(sentence for sentences in (first, *others) for sentence in sentences))

    def exactly(self, facts: Facts) -> tuple[str, ...]:
        found = dict.fromkeys(thing for part in self.parts for thing in part.mechanism.exactly(part))
        numbers = any(thing.endswith("people there are") for thing in found)
        return tuple(thing for thing in found if not (numbers and thing == "how many values there are"))

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        every = [sentence for part in self.parts for sentence in part.mechanism.auditor_points(part)]
        picked = (say("system.chosen.number", name=name, value=value) for name, value in self.chosen)
        runs = (proved(one, _COMPOSED) for one in self.runs)
        return *self._sentences("auditor", facts), *self._lines(facts), *picked, *runs, *dict.fromkeys(every)

    def auditor_tables(self, facts: Facts) -> tuple[Block, ...]:
        every = self._each(lambda part: part.mechanism.auditor_tables(part))
        return (self._picture(facts), *_other_splits(facts), *every)

    def data(self, facts: Facts) -> tuple[Sentence, ...]:
        return tuple(dict.fromkeys(one for part in self.parts for one in part.mechanism.data(part)))

    def engineer_sections(self, facts: Facts) -> tuple[Section, ...]:
        """How the budget splits, then every part."""
        own = (
            replace(section, heading=f"{name}: {section.heading}")
            for name, part in zip(self.names, self.parts, strict=True)
            for section in part.mechanism.engineer_sections(part)
        )
        return (*MechanismFact.engineer_sections(self, facts), *own)

    def engineer_blocks(self, facts: Facts) -> list[Block]:
        return [self._budget(), self._picture(facts)]

    def engineer_points(self, facts: Facts) -> list[Sentence]:
        return list(self._lines(facts))

    def _lines(self, facts: Facts) -> Iterator[Sentence]:
        return line_sentences(facts, self._by_line(), self.cases[0][0] if self.cases else "")

    def _picture(self, facts: Facts) -> Plot:
        return system_plot(parts_of_picture(self.names, self.parts, self.spent, self.shares, facts))

    def _by_line(self) -> dict[int, list[tuple[str, str]]]:
        """For the number of each line the parts that share it, and what they spend."""
        found: dict[int, list[tuple[str, str]]] = {}
        for name, shares, lines, often in zip(self.names, self.shares, self.lines, self.often, strict=True):
            for share, line in zip(shares, lines, strict=True):
                found.setdefault(line, []).append((name, f"{_share(share)}{often}"))
        return found

    def execution(self, facts: Facts) -> tuple[Block, ...]:
        return self._each(lambda part: part.mechanism.execution(part))

    def run_commands(self, facts: Facts, plan: str) -> tuple[str, ...]:
        blocks = (block for part in self.parts if part.model is not None for block in part.model.blocks)
        return (f"privspec run {plan}{given(dict.fromkeys(block.name for block in blocks))}",)

    def _budget(self) -> Table:
        rows = (
            (name, part.family, spent, part.loss and part.loss.value)
            for name, part, spent in zip(self.names, self.parts, self.spent, strict=True)
        )
        return tabled("system.spent", rows)

    def _each(self, blocks: Callable[[Facts], tuple[Block, ...]]) -> tuple[Block, ...]:
        return tuple(
            replace(block, caption=f"{name}: {block.caption}") if isinstance(block, Table) else block
            for name, part in zip(self.names, self.parts, strict=True)
            for block in blocks(part)
        )


def _other_splits(facts: Facts) -> Iterator[Table]:
    """What other ways to split the budget would cost, where some were compared."""
    if others := [one for one in facts.alternatives if one.admissible]:
        yield tabled("system.splits", others)


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
    plans, executed = part_plans(document), plan.executed
    listed = executed.block.parts
    shares = [[read(AskedMeasure, one) for one in dict(own.entries())["shares"].items()] for _, own in executed.plans]
    models = [None] * len(plans) if model is None else [part.model for part in parts_of(model)]
    described = tuple(
        facts(one | {"digest": ""}, own, judgement, None if own is None else own.loss)
        for one, own in zip(plans, models, strict=True)
    )
    return SystemFact(
        family=plan.mechanism.family,
        released=frozenset().union(*(part.mechanism.released for part in described)),
        parts=described,
        runs=tuple(text for own, part in zip(described, listed, strict=True) for text in _runs(_names(own), part)),
        cases=tuple((str(part.only_if), show(part.limit)) for part in listed if part.sign == DRAWN),
        shares=tuple(map(tuple, shares)),
        lines=tuple(part.lines for part in listed),
        chosen=tuple((name, show(value)) for name, value in (executed.choices or {}).items()),
        spent=tuple(
            " and ".join(dict.fromkeys(map(_share, own))) + _each_time(held)
            for own, held in zip(shares, listed, strict=True)
        ),
        often=tuple(map(_each_time, listed)),
    )


def _each_time(part: PartOfSystem) -> str:
    times = f", {part.times} times" if part.times > 1 else ""
    return times + (f", if {condition_words(part)}" if part.only_if is not None and part.sign != DRAWN else "")


def _runs(names: str, part: PartOfSystem) -> Iterator[str]:
    """How often a part is drawn and when, and what bounds all of it together."""
    if part.times > 1:
        yield phrase("system.runs.times", names=names, times=part.times)
    if part.only_if is not None and part.sign != DRAWN:
        yield phrase("system.runs.only_if", names=names, condition=condition_words(part))


def _share(share: AskedMeasure) -> str:
    """As in "0.734278-DP"."""
    amounts = ", ".join(show(value) for value in share.figures({}).values())
    name = re.sub(r"^\(.*\)|^[a-z]+", "", share.name)
    return f"({amounts}){name}" if len(share.amounts) > 1 else f"{amounts}{name}"


# --- the picture of a system ----------------------------------------------------------------------


LEFT, MIDDLE, RIGHT = (4.0, 76.0), (112.0, 170.0), (318.0, 52.0)
"""Where the columns of inputs, parts and observers begin, and how wide they are."""
BOX, GAP, TOP = 50.0, 10.0, 22.0
SMALL, LETTER = 7.5, 3.9


@dataclass(frozen=True, slots=True)
class PartOfPicture:
    """One part; `alone`: by how much one who sees nothing else beats a guess at most, from its largest share."""

    names: str
    inputs: tuple[str, ...]
    noise: str
    seen_by: tuple[str, ...]
    spends: str
    alone: Quantity | None


def curve_of(share: AskedMeasure) -> Curve | None:
    """What a share lets through; None for a measure without a curve of its own."""
    amounts = {name: float(value) for name, value in share.figures({}).items()}
    if "mu" in amounts or "rho" in amounts:
        return GaussianCurve(amounts.get("mu", sqrt(2 * amounts.get("rho", 0.0))))
    return EpsilonDeltaCurve(amounts["epsilon"], amounts.get("delta", 0.0)) if "epsilon" in amounts else None


def parts_of_picture(
    names: Sequence[str],
    parts: Sequence[Facts],
    spent: Sequence[str],
    shares: Sequence[Sequence[AskedMeasure]],
    whole: Facts,
) -> tuple[PartOfPicture, ...]:
    """The parts in order, with who sees them by the lines of the whole spec."""
    seen = {"anyone": tuple(sorted(whole.mechanism.released))} if whole.model is None else observers(whole.model)
    found = []
    for name, part, words, own in zip(names, parts, spent, shares, strict=True):
        released = part.mechanism.released
        curves = [curve for share in own if (curve := curve_of(share)) is not None]
        alone = max((consequences(curve).advantage for curve in curves), key=lambda one: one.value, default=None)
        inputs = () if part.model is None else tuple(node.name for node in part.model.inputs)
        who = tuple(name for name, outputs in seen.items() if released & set(outputs))
        found.append(PartOfPicture(name, inputs, part.mechanism.drawn(part), who, words, alone))
    return tuple(found)


def system_plot(parts: Sequence[PartOfPicture]) -> Plot:
    """The picture, with a table of what it shows."""
    rows = [(one.names, listing(one.inputs), one.noise, listing(one.seen_by), one.spends, one.alone) for one in parts]
    longest = phrase("plots.system.longest", max(parts, key=_bar)) if parts else phrase("plots.system.none")
    return plotted("plots.system", lambda: draw(parts), rows, many=len(parts), longest=longest)


def line_sentences(
    facts: Facts, by_line: Mapping[int, Sequence[tuple[str, str]]], first: str = ""
) -> Iterator[Sentence]:
    """A sentence for each line: what it asks of what is released together, and what every part spends of it.

    Args: by_line, for the number of a line, the outputs of each part that shares it, and its share in words; first,
        what is drawn first, where one of the others follows.
    """
    for fact in facts.claims:
        claim = fact.claim
        shares = by_line.get(claim.requirement, ())
        spent = "; ".join(f"{names} {'spend' if ' and ' in names else 'spends'} {share}" for names, share in shares)
        if len(shares) > 1:
            reached = claim.achieved_parameter
            who = f"Whichever follows, it and {first} together" if first else "Together they"
            together = f"{who} reach {reached[0]} = {reached[1]}" if reached else f"{who} keep to it"
            exact = _EXACT in claim.notes
            yield say("system.line.shared", claim=claim, spent=spent, together=together, exact=exact)
        elif shares:
            yield say("system.line.single", claim=claim, spent=spent)


# --- drawing ---------------------------------------------------------------------------------------------


def _bar(part: PartOfPicture) -> float:
    return 0.0 if part.alone is None else min(max(part.alone.value, 0.0), 1.0)


def _words(
    x: float, y: float, words: str, wide: float, colour: str = INK, anchor: str = "start", **more: object
) -> str:
    return write(x, y, cut(words, int(wide / LETTER)), anchor, colour, size=SMALL, **more)


def _boxes(names: Sequence[str], column: tuple[float, float], height: float) -> tuple[dict[str, float], list[str]]:
    """Named boxes spread over a column: the middle of each, and their drawings."""
    left, wide = column
    step = height / max(len(names), 1)
    middles = {name: TOP + step * (i + 0.5) for i, name in enumerate(names)}
    drawn = [
        part
        for name, y in middles.items()
        for part in (
            rect(left, y - 9, wide, 18, rx=3.0, fill=themed(PAGE), stroke=themed(GRID), stroke_width=0.8),
            _words(left + wide / 2, y + 2.6, name, wide - 4, anchor="middle"),
        )
    ]
    return middles, drawn


def _link(start: tuple[float, float], stop: tuple[float, float]) -> str:
    (x, y), (to_x, to_y) = start, stop
    middle = (x + to_x) / 2
    path = way("M", x, y, "C", middle, y, middle, to_y, to_x, to_y)
    return tag("path", d=path, fill="none", stroke=themed(MUTED), stroke_width=0.7)


def draw(parts: Sequence[PartOfPicture]) -> str:
    """The picture as SVG text."""
    height = max(len(parts), 1) * (BOX + GAP)
    inputs = list(dict.fromkeys(name for part in parts for name in part.inputs))
    seeing = list(dict.fromkeys(name for part in parts for name in part.seen_by))
    sources, left = _boxes(inputs, LEFT, height)
    watchers, right = _boxes(seeing, RIGHT, height)
    x, wide = MIDDLE
    links, middle = [], []
    for i, part in enumerate(parts):
        y = TOP + i * (BOX + GAP) + GAP / 2
        centre, bar = y + BOX / 2, (wide - 12) * _bar(part)
        links += [_link((sum(LEFT), sources[name]), (x, centre)) for name in part.inputs]
        links += [_link((x + wide, centre), (RIGHT[0], watchers[name])) for name in part.seen_by]
        middle += [
            rect(x, y, wide, BOX, rx=4.0, fill=themed(PAGE), stroke=themed(INK), stroke_width=0.8),
            _words(x + 6, y + 11, part.names, wide - 10, font_weight="bold"),
            _words(x + 6, y + 22, part.noise, wide - 10, MUTED),
            _words(x + 6, y + 33, phrase("plots.system.spends", part), wide - 10),
            rect(x + 6, y + 39, wide - 12, 5, fill=themed(GRID)),
            rect(x + 6, y + 39, bar, 5, fill=themed(ACCENT)),
        ]
    heads = {"inputs": LEFT, "parts": MIDDLE, "observers": RIGHT}
    titles = [
        _words(at + size / 2, 12.0, phrase(f"plots.system.{name}"), size, MUTED, anchor="middle")
        for name, (at, size) in heads.items()
    ]
    return svg([*titles, *links, *left, *middle, *right], TOP + height + 4)
