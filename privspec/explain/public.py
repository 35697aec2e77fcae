"""The page for the people in the data: odds and a label, short and without formulas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from itertools import groupby
from typing import Any

from privspec.explain.claims import relation
from privspec.explain.document import (
    Because,
    Block,
    Document,
    Judged,
    Note,
    Paragraph,
    Points,
    Sentence,
    SpecLine,
    Table,
    asserted,
    assumed,
    proved,
    reported,
    sections,
    table,
)
from privspec.explain.facts import ClaimFact, Facts, Moved
from privspec.explain.messages import say, sentences
from privspec.explain.questions import COUNTS, LEDGER, ODDS_NOTE, Question, took_part
from privspec.explain.summary import bare_outputs
from privspec.kernel.trust import CURATOR
from privspec.model.graph import Model
from privspec.model.reports import listing

LONGEST = 35
"""Words of a sentence."""
MOST_NAMED = 4
"""Outputs whose errors the page tells one by one."""


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
        words = "Where several candidates are level, the one that is named first in the list counts as the first."
        accuracy = (*accuracy, proved(words, facts.context.loss_because))
    if facts.computed:
        names = [called.get(name, name) for name, _ in facts.computed]
        which = listing(names) if len(names) <= MOST_NAMED else f"{len(names)} others"
        words = f"From these figures {which} {'is' if len(names) == 1 else 'are'} worked out afterwards, which reveals "
        words += "nothing more."
        errors = tuple(_computed_errors(facts))
        words += "" if errors else " Their errors are those of the figures they come from."
        accuracy = (*accuracy, proved(words, Judged("computed")), *errors)
    return Document(
        title="What this release can reveal about you",
        subtitle=facts.title,
        reader="public",
        shows_basis=False,
        sections=(
            *sections(
                ("What is not protected", (_not_protected(facts),)),
                (
                    "What can it reveal?",
                    () if facts.claims else (Paragraph(sentences("public.public_unasked", facts)),),
                ),
                *((group[0].question.heading, _odds(group, facts)) for group in kinds),
                *_unexplained(facts),
                ("Privacy label", (label(facts),)),
            ),
            *facts.mechanism.public_sections(facts),
            *sections(
                (facts.mechanism.label("accuracy"), (Paragraph(accuracy),) if accuracy else ()),
                ("Are groups treated alike?", (Points(_fairness(facts)),) if facts.fairness else ()),
                ("What this page does not promise", (Points(tuple(_limits(facts))),)),
            ),
        ),
        footer=f"Plan fingerprint {facts.digest[:16]}; sources: the auditor's page.",
    )


def _off(facts: Facts) -> Iterator[Sentence]:
    """How far the noise alone moves what is published, and what moves it besides."""
    moved = facts.mechanism.moved_by(facts)
    if not moved:
        return
    sizes = [(one.name, one.size.value, one.size.value) for one in moved]
    for named in (_each, _together):
        words = f"The noise alone typically moves {named(moved)}."
        said = proved(words, facts.context.loss_because, Judged("loss"))
        found = facts.of_chance(said, "deviation", *sizes)
        if len(moved) <= MOST_NAMED and len(found.text.split()) <= LONGEST:
            break
    yield found


def _each(moved: tuple[Moved, ...]) -> str:
    """By how much each output is moved."""
    first, *others = (f"{one.name} by {one.size}{one.unit}" for one in moved)
    figures = ["each figure in " * one.many for one in moved]
    return listing([f"{figures[0]}the published {first}", *map("".join, zip(figures[1:], others, strict=True))])


def _together(moved: tuple[Moved, ...]) -> str:
    """Many in one: from the least of their errors to the largest."""
    least, *_, most = sorted(moved, key=lambda one: one.size.value)
    unit = least.unit if least.unit != most.unit else ""
    span = f"{least.size}{unit} to {most.size}{most.unit}"
    return f"each of the {len(moved)} published figures by {span}"


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
    """How far off is what is worked out afterwards, one sentence for all at the same data."""
    for at, group in groupby(facts.computed_errors, key=lambda one: one[3]):
        rows, where = list(group), f" (simulated with {at})"
        for start in range(0, len(rows), MOST_NAMED - 1):
            said, some = list[str](), rows[start : start + MOST_NAMED - 1]
            for name, least, most, _ in some:
                size = f"{most}" if least.text == most.text else f"{least} to {most}"
                said.append(f"{name} by {size}{facts.unit(name, size)}")
            sizes = ((name, least.value, most.value) for name, least, most, _ in some)
            words = f"The noise alone typically moves {listing(said)}{where}."
            yield facts.of_chance(reported(words, Note("sums")), "simulated", *sizes)
            where = " there"


def _not_protected(facts: Facts) -> Paragraph | None:
    """The outputs that hide nothing, by name, before anything else."""
    found: dict[str, Sentence] = {}
    for item in facts.exposures:
        names, claim = bare_outputs(item), item.fact.claim
        if names:
            who = "Anyone" if claim.observer == "anyone" else claim.observer
            text = (
                f"Not protected: the published {listing(names)}. {who} may learn from it what is in {item.input}: no "
                "requirement limits that, and next to nothing hides it."
            )
            found[text] = proved(text, claim.line, Judged("exposure"))
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
    yield Paragraph(
        (assumed(question.aim, claim.line), *((asserted(question.compared, claim.line),) if question.compared else ()))
    )
    listed = dict[str, str]()
    for fact, its in rows:
        free = " (limited by no requirement)" * any(fact is e.fact for e in facts.exposures)
        if free or not any(_covers(other, fact) for other, _ in rows):
            listed[f"{_who(fact, facts)}{free}"] = its.odds.without_words
    # true after rounding (tests simulate the best observer)
    because: tuple[Because, ...] = (ODDS_NOTE, *claim.notes, Judged("privacy"))
    yield Paragraph((proved(question.odds(shown.odds), *because),), strong=True)
    yield question.icons(shown.odds)
    if len(listed) > 1:
        caption = "Everybody's odds; above are the weakest"
        yield table(caption, ("Who sees what", COUNTS[0]), listed.items())
    if shown.odds.without * 20 < shown.odds.of:
        weak = f"These odds protect little: such a guesser {'can' if shown.exact else 'may'} be almost sure."
        yield Paragraph((proved(weak, *because),))
    yield from question.more(claim, worst.posteriors)
    half = f"{shown.odds.of // 2:,} of {shown.odds.of:,}"
    best = proved(f"No method does better on both counts; a coin toss gives {half}.", *because)
    more = "" if shown.odds.tells_little else question.several(worst.groups)
    yield Paragraph((best, *((proved(more, *because, Note("group-privacy")),) if more else ())))


def _covers(wide: ClaimFact, fact: ClaimFact) -> bool:
    """Whether the same observers see more, of at least the same data, by odds that are no better."""
    one, other = wide.claim, fact.claim
    seen = set(one.outputs) > set(other.outputs) and set(one.wrt) >= set(other.wrt) and one.observer == other.observer
    if wide.shown is None or fact.shown is None:
        return False
    return seen and wide.shown.odds.error.value <= fact.shown.odds.error.value


def _who(fact: ClaimFact, facts: Facts) -> str:
    """Who sees what: "Press: coarse totals"; where views differ in whose data they are about, that as well."""
    claim = fact.claim
    alike = [f for f in facts.every if (f.claim.observer, f.claim.outputs) == (claim.observer, claim.outputs)]
    about = f" (about {listing(claim.wrt)})" if len({f.claim.wrt for f in alike}) > 1 else ""
    whole = len(claim.outputs) > 1 and facts.mechanism.released <= set(claim.outputs)
    return (
        f"{claim.observer[0].upper()}{claim.observer[1:]}: {'everything' if whole else listing(claim.outputs)}{about}"
    )


def _unexplained(facts: Facts) -> Iterator[tuple[str, tuple[Block]]]:
    """Guarantees without odds."""
    for fact in (fact for fact in facts.claims if fact.shown is None):
        names = listing(fact.claim.outputs)
        text = f"The guarantee for the published {names} is of a kind that this page cannot turn into odds."
        yield (
            f"What {names} can reveal",
            (Paragraph((asserted(f"{text} The auditor's page quotes it.", fact.claim.line),)),),
        )


def label(facts: Facts) -> Table:
    """The label: six questions a person asks, with short answers."""
    words = facts.context.trust_words
    raw = server = f"The spec says: trust {facts.context.trust}. This page has no words for that."
    if words is not None:
        raw = words.sees_raw
        server = words.stolen_server
    exactly = listing(facts.mechanism.exactly(facts))
    groups = "Facts about them, with or without you: the figures are for that."
    return Table(
        caption="Six questions",
        header=("Question", "Answer"),
        rows=(
            ("Who sees my raw data?", raw),
            ("Could a stolen server reveal it?", server),
            (question(facts).of_label, _reveals(facts)),
            ("What can be learned about groups I belong to?", groups),
            ("What is released exactly, without noise?", f"{exactly[0].upper()}{exactly[1:]}."),
            ("What happens when results are released again?", _again(facts)),
        ),
        label=True,
    )


def _reveals(facts: Facts) -> str:
    weakest = facts.weakest
    bare = tuple(dict.fromkeys(name for item in facts.exposures for name in bare_outputs(item)))
    if bare:
        return f"Yes: the published {listing(bare)} {'is' if len(bare) == 1 else 'are'} not protected."
    if not facts.claims and weakest is None:
        return "Yes, and all that you told: nothing limits what the result can reveal."
    if weakest is None or weakest.shown is None:
        return "This page cannot say; see the auditor's page."
    return weakest.question.label(", at worst" if len(facts.every) > 1 else "")


def _again(facts: Facts) -> str:
    weakest = facts.weakest
    if not facts.claims:
        return "Each release may reveal more: nothing protects the data, and no ledger counts."
    if weakest is None or not weakest.repeats:
        return "Every further release weakens the protection; the keeper has to count them."
    times, odds = weakest.repeats[-1]
    if weakest.repeats[0][1].tells_little:
        return f"Every further release weakens what protection is left. {LEDGER}"
    return weakest.question.again(times.text, odds)


def _fairness(facts: Facts) -> tuple[Sentence, ...]:
    return tuple(say("public.public_fairness.reached", fact, most=1) for fact in facts.fairness)


def _limits(facts: Facts) -> Iterator[Sentence]:
    line = facts.context.trust_because
    if facts.overridden:
        yield say("public.public_limits.other_numbers", facts)
    if facts.claims:
        yield assumed(question(facts).first_limit, ODDS_NOTE)
    told = {name for fact in facts.claims if not fact.claim.conditional for name in fact.claim.wrt}
    for name in sorted(told & set(facts.context.entry_laws)):
        yield say("public.public_limits.related_entries", name=name, lines=facts.context.entry_laws[name])
    through = {} if facts.model is None else facts.model.through
    for one in () if facts.model is None else facts.model.asserted:
        if one.subject in through.values():
            yield say("public.public_limits.word_taken", text=one.text, line=SpecLine(one.line, one.text))
    yield say("public.public_limits.this_release", facts)
    if CURATOR.name in facts.context.trusts:
        yield say("public.public_limits.keeper", facts)
    yield from (assumed(gap, line) for gap in facts.gaps)
