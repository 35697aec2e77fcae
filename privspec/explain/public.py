"""The page for the people in the data: odds and a label, short and without formulas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import groupby
from typing import Any

from privspec.explain.claims import Question, relation, took_part
from privspec.explain.document import Block, Document, Paragraph, Points, Sentence, SpecLine, Table, sections, table
from privspec.explain.facts import ClaimFact, Facts, Moved
from privspec.explain.messages import phrase, phrases, say, sentences
from privspec.explain.quantities import Quantity
from privspec.explain.summary import bare_outputs
from privspec.kernel.trust import KINDS
from privspec.model.graph import Model
from privspec.model.neighbours import ByNeighbour
from privspec.model.reports import listing

LONGEST = 30
"""Words of a sentence."""
MOST_NAMED = 4
"""Outputs whose errors the page reports one by one."""


def public_page(facts: Facts) -> Document:
    """What the release can reveal about one person, in odds and a label; outputs by the names that readers have."""
    facts, called = named_for_readers(facts)
    headings = list(dict.fromkeys(fact.question.heading for fact in facts.every))
    known = sorted((f for f in facts.every if f.shown), key=lambda fact: headings.index(fact.question.heading))
    kinds = [list(group) for _, group in groupby(known, key=lambda fact: fact.question.heading)]
    accuracy = (
        *_off(facts),
        *facts.fitting.expectations(),
        *facts.mechanism.public_accuracy(facts),
        *facts.fitting.told,
    )
    if accuracy and facts.context.ties and not any("named first" in s.text for s in accuracy):
        accuracy = (*accuracy, say("public.accuracy.ties", facts))
    if facts.computed:
        names = [called.get(name, name) for name, _ in facts.computed]
        few = names if len(names) <= MOST_NAMED else []
        errors = tuple(_computed_errors(facts))
        worked_out = sentences("public.computed", names=names, few=few, number=len(names), errors=errors)
        accuracy = (*accuracy, *worked_out, *errors)
    return Document(
        title=phrase("public.page.title"),
        subtitle=facts.title,
        reader="public",
        shows_basis=False,
        sections=(
            *sections(
                (phrase("public.page.not_protected"), (_not_protected(facts),)),
                (
                    phrase("public.page.unasked"),
                    () if facts.claims else (Paragraph(sentences("public.public_unasked", facts)),),
                ),
                *((group[0].question.heading, _odds(group, facts)) for group in kinds),
                *_unexplained(facts),
                (phrase("public.page.label"), (label(facts),)),
            ),
            *facts.mechanism.public_sections(facts),
            *sections(
                (facts.mechanism.label("accuracy"), (Paragraph(accuracy),) if accuracy else ()),
                (phrase("public.page.fairness"), (Points(_fairness(facts)),) if facts.fairness else ()),
                (phrase("public.page.limits"), (Points(tuple(_limits(facts))),)),
            ),
        ),
        footer=phrase("public.page.footer", digest=facts.digest[:16]),
    )


def _off(facts: Facts) -> Iterator[Sentence]:
    """How far the noise alone moves what is published, and what moves it besides."""
    moved = facts.mechanism.moved_by(facts)
    if not moved:
        return
    sizes = [(one.name, one.size.value, one.size.value) for one in moved]
    for what in (_each(moved), _together(moved)):
        found = facts.of_chance(say("public.moved.by_noise", facts, what=what), "deviation", *sizes)
        if len(moved) <= MOST_NAMED and longest(found.text) <= LONGEST:
            break
    yield found


def longest(text: str) -> int:
    """Words of its longest sentence."""
    return max(len(sentence.split()) for sentence in text.split(". "))


def _each(moved: tuple[Moved, ...]) -> str:
    """By how much each output is moved."""
    first, *others = moved
    return listing([phrase("public.moved.first", first), *(phrase("public.moved.other", one) for one in others)])


def _together(moved: tuple[Moved, ...]) -> str:
    """Many in one: from the least of their errors to the largest."""
    least, *_, most = sorted([*moved, *moved], key=lambda one: one.size.value)
    unit = least.unit if least.unit != most.unit else ""
    return phrase(
        "public.moved.together", number=len(moved), least=f"{least.size}{unit}", most=f"{most.size}{most.unit}"
    )


def named_for_readers(facts: Facts) -> tuple[Facts, Mapping[str, str]]:
    """The same facts with outputs by the labels that the spec gives, else by names as words; and which is which."""
    labels, released = {} if facts.model is None else facts.model.labels, sorted(facts.mechanism.released)
    names, units = dict[str, str](), dict[str, str]()
    # parts of a system may give all their outputs the same name
    apart = len({name.partition(".")[0] for name in released}) == len(released)
    for name in dict.fromkeys((*released, *(name for name, _ in facts.computed))):
        words, unit = readable(name.partition(".")[0] if apart else name, labels.get(name))
        names[name] = words if len(words) > 2 else "result" if len(released) == 1 else f"result {words}"
        units |= {names[name]: unit} if unit else {}

    def renamed(value: Any) -> Any:
        if isinstance(value, Question):  # its words are ready: a report is no output, even where one is called so
            return value
        if isinstance(value, str):
            return names.get(value, value)
        if isinstance(value, tuple | frozenset | list) and not isinstance(next(iter(value), None), int | float):
            return type(value)(map(renamed, value)) if not hasattr(value, "_fields") else value
        if isinstance(value, Mapping):
            return {key: renamed(part) for key, part in value.items()}
        if is_dataclass(value) and not isinstance(value, type | Model):
            own = {one.name: getattr(value, one.name) for one in fields(value) if one.init}
            new = {name: renamed(part) for name, part in own.items()}
            return replace(value, **new) if any(new[name] is not own[name] for name in own) else value
        return value

    found = renamed(facts)
    assert isinstance(found, Facts)
    return replace(found, claims=tuple(_measured(one, found, units) for one in found.claims)).with_units(units), names


def _measured(fact: ClaimFact, facts: Facts, units: Mapping[str, str]) -> ClaimFact:
    """A guarantee by distance with its unit, where that of an output is known to be that of the protected input."""
    claim = fact.claim
    named = facts.context.distances.get(claim.line.number) in ("manhattan", "euclidean", "chebyshev")
    stands = {t.left for t in facts.context.loss_terms if t.right in claim.wrt} & set(claim.outputs)
    found = {units[name] for name in stands if name in units} if named else set()
    return replace(fact, question=fact.question.in_units(found.pop())) if len(found) == 1 else fact


def readable(name: str, label: str | None) -> tuple[str, str]:
    """What people read for an output, and its unit: of the label "mean pay, in EUR a year", its two parts."""
    if not label:
        words = re.sub(r"[_.]+", " ", name)
        return (f"“{words}”" if len(words) > 2 else words), ""
    words, _, unit = label.rpartition(", in ")
    return f"“{words or unit}”", unit if words else ""


def _computed_errors(facts: Facts) -> Iterator[Sentence]:
    """How far off is what is worked out afterwards, as many in a sentence as it has room for."""
    for at, group in groupby(facts.computed_errors, key=lambda one: one[3]):
        waiting, where = list(group), at
        while waiting:
            tried = (_simulated(waiting[:many], where, facts) for many in range(MOST_NAMED - 1, 0, -1))
            shortest = [said for said in tried if longest(said.text.partition(" Apart from")[0]) <= LONGEST]
            found = shortest[0] if shortest else _simulated(waiting[:1], where, facts)
            yield found
            assert found.accuracy is not None
            waiting, where = waiting[len(found.accuracy.sizes) :], ""


def _simulated(rows: Sequence[tuple[str, Quantity, Quantity, str]], at: str, facts: Facts) -> Sentence:
    """How far off some of them are, at data that were made up."""
    said = list[str]()
    for name, least, most, _ in rows:
        size = f"{most}" if least.text == most.text else f"{least} to {most}"
        said.append(f"{name} by {size}{facts.unit(name, size)}")
    sentence = say("public.moved.simulated", what=listing(said), at=at)
    return facts.of_chance(sentence, "simulated", *((name, least.value, most.value) for name, least, most, _ in rows))


def _not_protected(facts: Facts) -> Paragraph | None:
    """The outputs that hide nothing, by name, before anything else."""
    found: dict[str, Sentence] = {}
    for item in facts.exposures:
        claim = item.fact.claim
        who = phrase("public.page.anyone") if claim.observer == "anyone" else claim.observer
        if names := bare_outputs(item):
            for said in sentences("public.not_protected", item, item.fact, names=names, who=who):
                found[said.text] = said
    return Paragraph(tuple(found.values()), strong=True) if found else None


def question(facts: Facts) -> Question:
    """The question that a reader has first: that of the weakest guarantee."""
    weakest = facts.weakest
    return took_part(relation("adding or removing one record")) if weakest is None else weakest.question


def _odds(known: list[ClaimFact], facts: Facts) -> Iterator[Block]:
    """The odds under the weakest guarantee in full, those under all in a table where there are several."""
    rows = [(fact, fact.shown) for fact in known if fact.shown is not None]
    worst, shown = min(rows, key=lambda row: row[1].odds.error.value)
    claim, question = worst.claim, worst.question
    yield Paragraph(question.aim(claim))
    listed = dict[str, str]()
    for fact, its in rows:
        free = any(fact is e.fact for e in facts.exposures)
        if free or not any(_covers(other, fact) for other, _ in rows):
            listed[_who(fact, facts, free=free)] = its.odds.without_words
    # true after rounding (tests simulate the best observer)
    yield Paragraph(question.odds(shown.odds, claim), strong=True)
    yield question.icons(shown.odds)
    if len(listed) > 1:
        yield table(phrase("public.everybody.caption"), phrase("public.everybody.columns"), listed.items())
    if shown.odds.without * 20 < shown.odds.of:
        yield Paragraph((say("public.odds.weak", shown, claim=claim),))
    yield from question.more(claim, worst.posteriors)
    best = say("public.odds.best", claim=claim, half=shown.odds.of // 2, odds=shown.odds)
    yield Paragraph((best, *(() if shown.odds.tells_little else question.several(worst.groups, claim))))


def _covers(wide: ClaimFact, fact: ClaimFact) -> bool:
    """Whether the same observers see more, of at least the same data, by odds that are no better."""
    one, other = wide.claim, fact.claim
    seen = set(one.outputs) > set(other.outputs) and set(one.wrt) >= set(other.wrt) and one.observer == other.observer
    if wide.shown is None or fact.shown is None:
        return False
    return seen and wide.shown.odds.error.value <= fact.shown.odds.error.value


def _who(fact: ClaimFact, facts: Facts, *, free: bool) -> str:
    """Who sees what: "Press: coarse totals"; where views differ in whose data they are about, that as well."""
    claim = fact.claim
    alike = [f for f in facts.every if (f.claim.observer, f.claim.outputs) == (claim.observer, claim.outputs)]
    about = listing(claim.wrt) if len({f.claim.wrt for f in alike}) > 1 else ""
    whole = len(claim.outputs) > 1 and facts.mechanism.released <= set(claim.outputs)
    seen = "" if whole else listing(claim.outputs)
    observer = f"{claim.observer[0].upper()}{claim.observer[1:]}"
    return phrase("public.everybody.who", observer=observer, seen=seen, about=about, free=free)


def _unexplained(facts: Facts) -> Iterator[tuple[str, tuple[Block]]]:
    """Guarantees without odds."""
    for fact in (fact for fact in facts.claims if fact.shown is None):
        heading = phrase("public.page.unexplained", outputs=fact.claim.outputs)
        yield heading, (Paragraph(sentences("public.unexplained", fact)),)


def label(facts: Facts) -> Table:
    """The label: six questions a person asks, with short answers."""
    exactly = listing(facts.mechanism.exactly(facts))
    answers = (
        facts.context.trust_words("sees_raw"),
        facts.context.trust_words("stolen_server"),
        _reveals(facts),
        phrase("public.label.groups"),
        f"{exactly[0].upper()}{exactly[1:]}.",
        _again(facts),
    )
    asked = (text for _, text in phrases("public.label_questions", of_result=question(facts).text("label")))
    rows = tuple(zip(asked, answers, strict=True))
    columns = tuple(phrase("public.label.columns").split(" | "))
    return Table(caption=phrase("public.label.caption"), header=columns, rows=rows, label=True)


def _reveals(facts: Facts) -> str:
    weakest = facts.weakest
    bare = tuple(dict.fromkeys(name for item in facts.exposures for name in bare_outputs(item)))
    if bare:
        return phrase("public.label.not_protected", names=bare)
    if not facts.claims and weakest is None:
        return phrase("public.label.unasked")
    if weakest is None or weakest.shown is None:
        return phrase("public.label.unexplained")
    return phrase("public.label.odds", several=len(facts.every) > 1)


def _again(facts: Facts) -> str:
    """What happens when it is done again; what never leaves its owner is counted by nobody else."""
    weakest = facts.weakest
    if not facts.claims:
        return phrase("public.again.unasked")
    if weakest is None or not weakest.repeats:
        return phrase("public.again.unknown")
    times, odds = weakest.repeats[-1]
    if weakest.repeats[0][1].tells_little:
        return phrase("public.again.little")
    asked = weakest.question
    words = {"further": asked.text("further"), "repeated": asked.text("repeated"), "times": times, "odds": odds}
    return phrase(f"public.again.{'hardly' if odds.tells_little else 'few'}", words, asked)


def _fairness(facts: Facts) -> tuple[Sentence, ...]:
    return tuple(say("public.public_fairness.reached", fact, most=1) for fact in facts.fairness)


def _limits(facts: Facts) -> Iterator[Sentence]:
    if facts.overridden:
        yield say("public.public_limits.other_numbers", facts)
    if facts.claims:
        yield say("public.public_limits.others_know")
    named = {name for fact in facts.claims if not fact.claim.conditional for name in fact.claim.wrt}
    for name in sorted(named & set(facts.context.entry_laws)):
        yield say("public.public_limits.related_entries", name=name, lines=facts.context.entry_laws[name])
    through = {} if facts.model is None else facts.model.through
    for one in () if facts.model is None else facts.model.asserted:
        if one.subject in through.values():
            yield say("public.public_limits.word_taken", text=one.text, line=SpecLine(one.line, one.text))
    for line in () if facts.model is None else facts.model.requirements:
        if isinstance(line.neighbours, ByNeighbour):
            yield say("public.public_limits.farther", line=SpecLine(line.line, line.text))
    for fact in () if facts.model is None else facts.model.facts:
        yield say("public.public_limits.of_all_data", text=fact.text, line=SpecLine(fact.line, fact.text))
    yield say("public.public_limits.this_release", facts)
    if any(not KINDS[kind].by_parties for kind in facts.context.trusts if kind in KINDS):
        yield say("public.public_limits.keeper", facts)
    yield from facts.gaps
