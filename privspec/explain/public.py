"""The page for the people in the data: odds and a label, short and without formulas."""

from __future__ import annotations

from collections.abc import Iterator
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
)
from privspec.explain.facts import ClaimFact, Facts
from privspec.explain.quantities import Quantity
from privspec.explain.questions import LEDGER, ODDS_NOTE, Question, took_part
from privspec.explain.summary import bare_outputs, overridden_words
from privspec.model.graph import Model
from privspec.model.reports import listing


def public_page(facts: Facts) -> Document:
    """What the release can reveal about one person, in odds and a label; outputs by the names that readers have."""
    facts = called(facts)
    headings = list(dict.fromkeys(fact.question.heading for fact in facts.every))
    known = sorted((f for f in facts.every if f.shown), key=lambda fact: headings.index(fact.question.heading))
    kinds = [list(group) for _, group in groupby(known, key=lambda fact: fact.question.heading)]
    accuracy = facts.mechanism.public_accuracy(facts)
    if accuracy and facts.context.ties and not any("named first" in s.text for s in accuracy):
        words = "Where several candidates are level, the one that is named first in the list counts as the first."
        accuracy = (*accuracy, proved(words, facts.context.loss_because))
    if facts.computed:
        names = listing([_names(facts).get(name, name) for name, _ in facts.computed])
        words = (
            f"From these figures {names} {'is' if len(facts.computed) == 1 else 'are'} worked out afterwards, which "
        )
        words += "reveals nothing more; the noise in them is that of the figures they come from."
        accuracy = (*accuracy, proved(words, Judged("computed")))
        accuracy += tuple(_computed_error(*one) for one in facts.computed_errors)
    return Document(
        title="What this release can reveal about you",
        subtitle=facts.title,
        reader="public",
        shows_basis=False,
        sections=(
            *sections(
                ("What is not protected", (_not_protected(facts),)),
                ("What can it reveal?", () if facts.claims else (Paragraph(_unasked(facts)),)),
                *((group[0].question.heading, _odds(group, facts)) for group in kinds),
                *(_unexplained(fact) for fact in facts.claims if fact.shown is None),
                ("Privacy label", (label(facts),)),
                ("If more than one is yours", (_several(facts),)),
            ),
            *facts.mechanism.public_sections(facts),
            *sections(
                (facts.mechanism.accuracy_heading, (Paragraph(accuracy),) if accuracy else ()),
                ("Are groups treated alike?", (Points(_fairness(facts)),) if facts.fairness else ()),
                ("What this page does not promise", (Points(tuple(_limits(facts))),)),
            ),
        ),
        footer=f"Computed from the plan {facts.name}, fingerprint {facts.digest[:16]}. "
        "The auditor's page gives the sources of every sentence.",
    )


def called(facts: Facts) -> Facts:
    """The same facts with the labels that the spec gives outputs in place of their names."""
    names = _names(facts)

    def renamed(value: Any) -> Any:
        if isinstance(value, str):
            return names.get(value, value)
        if isinstance(value, tuple | frozenset | list) and not isinstance(next(iter(value), None), int | float):
            return type(value)(map(renamed, value)) if not hasattr(value, "_fields") else value
        if is_dataclass(value) and not isinstance(value, type | Model):
            own = {one.name: getattr(value, one.name) for one in fields(value) if one.init}
            new = {name: renamed(part) for name, part in own.items()}
            return replace(value, **new) if any(new[name] is not own[name] for name in own) else value
        return value

    found = renamed(facts) if names else facts
    assert isinstance(found, Facts)
    return found


def _names(facts: Facts) -> dict[str, str]:
    """The labels of outputs as they stand in a sentence, by name."""
    return {} if facts.model is None else {name: f"“{label}”" for name, label in facts.model.labels.items()}


def _computed_error(name: str, least: Quantity, most: Quantity, at: str) -> Sentence:
    size = f"{most}" if least.text == most.text else f"{least} to {most}"
    return reported(f"For {at}, {name} is typically off by {size}, as simulated.", Note("sums"))


def _not_protected(facts: Facts) -> Paragraph | None:
    """The outputs that hide nothing, by name, before anything else."""
    found: dict[str, Sentence] = {}
    for item in facts.exposures:
        names, claim = bare_outputs(item), item.fact.claim
        if names:
            who = "Anyone" if claim.observer == "anyone" else claim.observer
            text = (
                f"Not protected: {listing(names)}. {who} may learn from {'it' if len(names) == 1 else 'them'} what is "
                f"in {item.input}: no requirement limits that, and next to nothing hides it."
            )
            found[text] = proved(text, claim.line, Judged("exposure"))
    return Paragraph(tuple(found.values()), strong=True) if found else None


def question(facts: Facts) -> Question:
    """The question that a reader has first: that of the weakest guarantee."""
    weakest = facts.weakest
    return took_part(relation("adding or removing one record")) if weakest is None else weakest.question


def _odds(known: list[ClaimFact], facts: Facts) -> Iterator[Block]:
    """The odds under each guarantee; what is compared with what is said once for each pair of worlds."""
    first, compared = known[0], known[0].question.compared
    yield Paragraph((assumed(first.question.aim, first.claim.line), asserted(compared, first.claim.line)))
    several = len({(f.claim.observer, f.claim.outputs, f.claim.wrt) for f in known}) > 1
    for fact in known:
        claim, shown = fact.claim, fact.shown
        if shown is None:
            continue
        exposed = any(fact is e.fact for e in facts.exposures)
        if exposed or several:
            words = _who(fact, facts)
            drawn = f"{words} (no requirement limits what this tells; the odds are those of what is drawn):"
            said = proved(drawn, claim.line, Judged("exposure")) if exposed else asserted(f"{words}:", claim.line)
            yield Paragraph((said,))
        if fact.question.compared != compared:
            compared = fact.question.compared
            yield Paragraph((asserted(compared, claim.line),))
        # true after rounding (tests simulate the best observer)
        because: tuple[Because, ...] = (ODDS_NOTE, *claim.notes, Judged("privacy"))
        yield Paragraph(tuple(proved(text, *because) for text in fact.question.odds(shown.odds)), strong=True)
        yield fact.question.icons(shown.odds)
        if shown.odds.without * 20 < shown.odds.of:
            weak = f"These odds protect little: such an observer {'can' if shown.exact else 'may'} be almost sure."
            yield Paragraph((proved(weak, ODDS_NOTE, *claim.notes),))
        yield from fact.question.more(claim, fact.posteriors)
    notes = dict.fromkeys(note for fact in known for note in fact.claim.notes)
    of = min(f.shown.odds.of for f in known if f.shown is not None)
    coin = f"A coin toss in place of the {first.question.result} would give {of // 2:,} of {of:,} both times."
    best = proved("No method can do better on both counts.", ODDS_NOTE, *notes)
    yield Paragraph((best, proved(coin, ODDS_NOTE)))


def _who(fact: ClaimFact, facts: Facts) -> str:
    """Who sees what: "For press, who see press_release", "About x, for anyone, who sees O"."""
    # where guarantees and exposures are about different inputs, pages have to say which
    several = len({f.claim.wrt for f in facts.every}) > 1
    start, observer = f"About {listing(fact.claim.wrt)}, for" if several else "For", fact.claim.observer
    return f"{start} {observer}, who {'sees' if observer == 'anyone' else 'see'} {listing(fact.claim.outputs)}"


def _unexplained(fact: ClaimFact) -> tuple[str, tuple[Block]]:
    text = f"The guarantee for {', '.join(fact.claim.outputs)} is of a kind that this page cannot turn into odds:"
    said = asserted(f"{text} “{fact.claim.sentence}”.", fact.claim.line)
    return f"What {listing(fact.claim.outputs)} can reveal", (Paragraph((said,)),)


def _unasked(facts: Facts) -> tuple[Sentence, ...]:
    because = facts.context.trust_because
    return (
        asserted("No requirement protects anybody's privacy in this release: none was asked for.", because),
        asserted("Whoever sees the result may learn from it what you told the keeper.", because),
    )


def label(facts: Facts) -> Table:
    """The label: six questions a person asks, with short answers."""
    words = facts.context.trust_words
    raw = server = f"The spec says: trust {facts.context.trust}. This page has no words for that."
    if words is not None:
        # the first sentence says who; what follows is about the guarantee
        raw = words.sees_raw if facts.claims else words.sees_raw.partition(". ")[0].removesuffix(".") + "."
        server = words.stolen_server
    groups = "Facts about groups can be learned, with or without you: that is what the figures are for."
    return Table(
        caption="Six questions about this release",
        header=("Question", "Answer"),
        rows=(
            ("Who sees my raw data?", raw),
            ("Could a stolen server reveal it?", server),
            (question(facts).of_label, _reveals(facts)),
            ("What can be learned about groups I belong to?", groups),
            ("What is released exactly, without noise?", facts.mechanism.exactly(facts)),
            ("What happens when results are released again?", _again(facts)),
        ),
        label=True,
    )


def _reveals(facts: Facts) -> str:
    weakest = facts.weakest
    bare = tuple(dict.fromkeys(name for item in facts.exposures for name in bare_outputs(item)))
    if bare:
        return f"Yes: {listing(bare)} {'is' if len(bare) == 1 else 'are'} not protected."
    if not facts.claims and weakest is None:
        return "Yes, and all that you told: nothing limits what the result can reveal."
    if weakest is None or weakest.shown is None:
        return "These pages cannot say; see the guarantee itself."
    return weakest.question.label(weakest.shown.odds, ", at worst" if len(facts.every) > 1 else "")


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


def _several(facts: Facts) -> Table | None:
    weakest = facts.weakest
    gone = weakest is None or weakest.shown is None or weakest.shown.odds.tells_little
    return None if weakest is None or gone else weakest.question.several(weakest.groups)


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


def _limits(facts: Facts) -> Iterator[Sentence]:
    line, words = facts.context.trust_because, overridden_words(facts)
    if words:
        yield asserted(f"This release was made with other numbers than its description is written with: {words}.", line)
    if facts.claims:
        yield assumed(question(facts).first_limit, ODDS_NOTE)
    told = {name for fact in facts.claims if not fact.claim.conditional for name in fact.claim.wrt}
    for name in sorted(told & set(facts.context.entry_laws)):
        words = f"It does not bound what correlations tell: entries of {name} are declared to tell of one another."
        yield assumed(words, *facts.context.entry_laws[name])
    through = {} if facts.model is None else facts.model.through
    for one in () if facts.model is None else facts.model.asserted:
        if one.subject in through.values():
            words = f"It takes its author's word for how far one person's data can move what is published ({one.text})."
            yield asserted(f"{words} Nobody has checked that.", SpecLine(one.line, one.text))
    yield assumed("It speaks of this release only, not of other uses of the same data.", line)
    if "curator" in facts.context.trusts:
        yield assumed("It relies on the keeper of the data to run the release as planned.", line)
    yield from (assumed(gap, line) for gap in facts.gaps)
