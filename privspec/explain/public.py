"""The page for the people in the data: odds and a label, short and without formulas."""

from __future__ import annotations

from itertools import groupby

from privspec.explain.claims import relation
from privspec.explain.document import (
    Because,
    Block,
    Document,
    Judged,
    Paragraph,
    Points,
    Section,
    Sentence,
    Table,
    asserted,
    assumed,
    proved,
)
from privspec.explain.facts import ClaimFact, Facts
from privspec.explain.questions import LEDGER, ODDS_NOTE, Question, took_part
from privspec.explain.summary import bare_outputs, overridden_words
from privspec.model.reports import listing


def public_page(facts: Facts) -> Document:
    """What the release can reveal about one person, in odds and a label."""
    every = [*(e.fact for e in facts.exposures), *facts.claims]
    known = sorted((f for f in every if f.shown is not None), key=lambda fact: _first(fact, every))
    kinds = [list(group) for _, group in groupby(known, key=lambda fact: fact.question.heading)]
    sections = [Section("What is not protected", (bare,))] if (bare := _not_protected(facts)) else []
    if not facts.claims:
        sections.append(Section("What can it reveal?", (Paragraph(_unasked(facts)),)))
    sections += [Section(group[0].question.heading, _odds(group, facts)) for group in kinds]
    sections += [_unexplained(fact) for fact in facts.claims if fact.shown is None]
    sections.append(Section("Privacy label", (label(facts),)))
    several = _several(facts)
    if several is not None:
        sections.append(several)
    sections += facts.mechanism.public_sections(facts)
    accuracy = facts.mechanism.public_accuracy(facts)
    if accuracy and facts.context.ties and not any("named first" in s.text for s in accuracy):
        words = "Where several candidates are level, the one that is named first in the list counts as the first."
        accuracy = (*accuracy, proved(words, facts.context.loss_because))
    if accuracy:
        sections.append(Section(facts.mechanism.accuracy_heading, (Paragraph(accuracy),)))
    if facts.fairness:
        sections.append(Section("Are groups treated alike?", (Points(_fairness(facts)),)))
    sections.append(Section("What this page does not promise", (Points(_limits(facts)),)))
    return Document(
        title="What this release can reveal about you",
        subtitle=facts.title,
        reader="public",
        shows_basis=False,
        sections=tuple(sections),
        footer=f"Computed from the plan {facts.name}, fingerprint {facts.digest[:16]}. "
        "The auditor's page gives the sources of every sentence.",
    )


def _first(fact: ClaimFact, every: list[ClaimFact]) -> int:
    """The place of the first fact under the same heading: one section for each heading."""
    return next(i for i, other in enumerate(every) if other.question.heading == fact.question.heading)


def _not_protected(facts: Facts) -> Paragraph | None:
    """The outputs that hide nothing, by name, before anything else."""
    found: dict[str, Sentence] = {}
    for item in facts.exposures:
        names = bare_outputs(item)
        if names:
            who = "Anyone" if item.fact.claim.observer == "anyone" else item.fact.claim.observer
            seen = listing(names)
            text = (
                f"Not protected: {seen}. {who} may learn from {'it' if len(names) == 1 else 'them'} what is in "
                f"{item.input}: no requirement limits that, and next to nothing hides it."
            )
            found[text] = proved(text, item.fact.claim.line, Judged("exposure"))
    return Paragraph(tuple(found.values()), strong=True) if found else None


def question(facts: Facts) -> Question:
    """The question that a reader has first: that of the weakest guarantee."""
    weakest = facts.weakest
    return took_part(relation("adding or removing one record")) if weakest is None else weakest.question


def _odds(known: list[ClaimFact], facts: Facts) -> tuple[Block, ...]:
    """The odds under each guarantee; what is compared with what is said once for each pair of worlds."""
    first = known[0]
    compared = first.question.compared
    opening = (assumed(first.question.aim, first.claim.line), asserted(compared, first.claim.line))
    blocks: list[Block] = [Paragraph(opening)]
    for fact in known:
        if fact.shown is None:
            continue
        line = fact.claim.line
        exposed = any(fact is e.fact for e in facts.exposures)
        if exposed or len({(f.claim.observer, f.claim.outputs, f.claim.wrt) for f in known}) > 1:
            about = f"{listing(fact.claim.wrt)}, " if facts.several_inputs else ""
            words = _who(fact, about)
            if exposed:
                words = f"{words[:-1]} (no requirement limits what this tells; the odds are those of what is drawn):"
            blocks.append(Paragraph((proved(words, line, Judged("exposure")) if exposed else asserted(words, line),)))
        if fact.question.compared != compared:
            compared = fact.question.compared
            blocks.append(Paragraph((asserted(compared, line),)))
        blocks += [Paragraph(odds_sentences(fact), strong=True), fact.question.icons(fact.shown.odds)]
        blocks += [Paragraph(weak)] if (weak := _weakness(fact)) else []
        blocks += fact.question.more(fact.claim, fact.posteriors)
    return (*blocks, Paragraph(_reading(known)))


def odds_sentences(fact: ClaimFact) -> tuple[Sentence, ...]:
    """The two sentences of natural frequencies; true after rounding (tests simulate the best observer)."""
    if fact.shown is None:
        return ()
    because: tuple[Because, ...] = (ODDS_NOTE, *fact.claim.notes, Judged("privacy"))
    return tuple(proved(text, *because) for text in fact.question.odds(fact.shown.odds))


def _weakness(fact: ClaimFact) -> tuple[Sentence, ...]:
    if fact.shown is None or fact.shown.odds.plain.without * 20 >= fact.shown.odds.plain.of:
        return ()
    because: tuple[Because, ...] = (ODDS_NOTE, *fact.claim.notes)
    can = "can" if fact.shown.exact else "may"
    return (proved(f"These odds protect little: such an observer {can} be almost sure.", *because),)


def _reading(known: list[ClaimFact]) -> tuple[Sentence, ...]:
    notes = dict.fromkeys(note for fact in known for note in fact.claim.notes)
    coin = min((f.shown.odds for f in known if f.shown is not None), key=lambda odds: odds.plain.of)
    result = known[0].question.result
    return (
        proved("No method can do better on both counts.", ODDS_NOTE, *notes),
        proved(f"A coin toss in place of the {result} would give {coin.coin} of {coin.of} both times.", ODDS_NOTE),
    )


def _unexplained(fact: ClaimFact) -> Section:
    text = (
        f"The guarantee for {', '.join(fact.claim.outputs)} is of a kind that this page cannot turn into "
        "odds: "
        f"“{fact.claim.sentence}”."
    )
    heading = f"What {listing(fact.claim.outputs)} can reveal"
    return Section(heading, (Paragraph((asserted(text, fact.claim.line),)),))


def _unasked(facts: Facts) -> tuple[Sentence, ...]:
    because = facts.context.trust_because
    return (
        asserted("No requirement protects anybody's privacy in this release: none was asked for.", because),
        asserted("Whoever sees the result may learn from it what you told the keeper.", because),
    )


def label(facts: Facts) -> Table:
    """The label: six questions a person asks, with short answers."""
    words = facts.context.trust_words
    unknown = f"The spec says: trust {facts.context.trust}. This page has no words for that."
    return Table(
        caption="Six questions about this release",
        header=("Question", "Answer"),
        rows=(
            ("Who sees my raw data?", _sees_raw(facts, words.sees_raw) if words else unknown),
            ("Could a stolen server reveal it?", words.stolen_server if words else unknown),
            (question(facts).of_label, _reveals(facts)),
            (
                "What can be learned about groups I belong to?",
                "Facts about groups can be learned, with or without you: that is what the figures are for.",
            ),
            ("What is released exactly, without noise?", facts.mechanism.exactly(facts)),
            ("What happens when results are released again?", _again(facts)),
        ),
        label=True,
    )


def _sees_raw(facts: Facts, words: str) -> str:
    # the first sentence says who; what follows is about the guarantee
    return words if facts.claims else words.partition(". ")[0].removesuffix(".") + "."


def _reveals(facts: Facts) -> str:
    weakest = facts.weakest
    bare = tuple(dict.fromkeys(name for item in facts.exposures for name in bare_outputs(item)))
    if bare:
        return f"Yes: {listing(bare)} {'is' if len(bare) == 1 else 'are'} not protected."
    if not facts.claims and weakest is None:
        return "Yes, and all that you told: nothing limits what the result can reveal."
    if weakest is None or weakest.shown is None:
        return "These pages cannot say; see the guarantee itself."
    return weakest.question.label(
        weakest.shown.odds, ", at worst" if len(facts.claims) + len(facts.exposures) > 1 else ""
    )


def _again(facts: Facts) -> str:
    weakest = facts.weakest
    if not facts.claims:
        return "Each release may reveal more: nothing protects the data, and no ledger counts."
    if weakest is None or not weakest.repeats:
        return "Every further release weakens the protection; the keeper has to count them."
    times, odds = weakest.repeats[-1]
    if weakest.repeats[0][1].plain.tells_little:
        return f"Every further release weakens what protection is left. {LEDGER}"
    return weakest.question.again(times.text, odds)


def _several(facts: Facts) -> Section | None:
    weakest = facts.weakest
    gone = weakest is None or weakest.shown is None or weakest.shown.odds.plain.tells_little
    table = None if weakest is None or gone else weakest.question.several(weakest.groups)
    return None if table is None else Section("If more than one is yours", (table,))


def _fairness(facts: Facts) -> tuple[Sentence, ...]:
    return tuple(
        proved(
            f"The spec asks that {f.line.text.removesuffix('.')}. The largest difference is {f.achieved}, "
            "where 0 means the same chances for all and 1 the greatest difference there is.",
            f.line,
            Judged("fairness"),
        )
        for f in facts.fairness
    )


def _limits(facts: Facts) -> tuple[Sentence, ...]:
    line = facts.context.trust_because
    words = overridden_words(facts)
    changed = f"This release was made with other numbers than its description is written with: {words}."
    items = [
        *([asserted(changed, line)] if words else []),
        *([assumed(question(facts).first_limit, ODDS_NOTE)] if facts.claims else []),
        assumed("It speaks of this release only, not of other uses of the same data.", line),
    ]
    if facts.context.trust == "curator":
        items.append(assumed("It relies on the keeper of the data to run the release as planned.", line))
    items += [assumed(gap, line) for gap in facts.gaps]
    return tuple(items)


def _who(fact: ClaimFact, about: str) -> str:
    """Who sees what: "For press, who see press_release:", "About x, for anyone, who sees O:"."""
    observer = fact.claim.observer
    start = f"About {about}for" if about else "For"
    return f"{start} {observer}, who {'sees' if observer == 'anyone' else 'see'} {listing(fact.claim.outputs)}:"
