"""The page for the people in the data: odds and a label, short and without formulas."""

from __future__ import annotations

from privspec.explain.document import (
    Block,
    Document,
    IconArray,
    IconRow,
    Paragraph,
    Points,
    Section,
    Table,
)
from privspec.explain.facts import ClaimFact, Facts, OddsFact
from privspec.explain.sentences import (
    Because,
    CertificateEntry,
    Note,
    Sentence,
    asserted,
    assumed,
    proved,
)
from privspec.explain.words import joined

_ODDS_NOTE = Note("odds")


def public_page(facts: Facts) -> Document:
    """What the release can reveal about one person, in odds and a label."""
    known = [fact for fact in facts.claims if fact.shown is not None]
    sections = [Section("Could someone tell that you took part?", _odds(known))] if known else []
    sections += [_unexplained(fact) for fact in facts.claims if fact.shown is None]
    sections.append(Section("Privacy label", (label(facts),)))
    several = _several(facts)
    if several is not None:
        sections.append(several)
    accuracy = _accuracy(facts)
    if accuracy:
        sections.append(Section("How exact are the published figures?", (Paragraph(accuracy),)))
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


def _odds(known: list[ClaimFact]) -> tuple[Block, ...]:
    """The odds under each guarantee; what is compared with what is said once for each relation."""
    line = known[0].claim.line
    aim = (
        "Someone tries to tell from the published result whether you took part. They may know everything about "
        "everybody else, have all the computers there are, and make both kinds of mistakes equally often."
    )
    blocks: list[Block] = [Paragraph((assumed(aim, line), asserted(_compared(known[0]), line)))]
    relation = known[0].claim.relation
    for fact in known:
        if fact.shown is None:
            continue
        if len(known) > 1:
            blocks.append(Paragraph((asserted(_who(fact), fact.claim.line),)))
        if fact.claim.relation != relation:
            relation = fact.claim.relation
            blocks.append(Paragraph((asserted(_compared(fact), fact.claim.line),)))
        blocks += [Paragraph(odds_sentences(fact, fact.shown.odds), strong=True), icons(fact.shown.odds)]
        blocks += [Paragraph(weak)] if (weak := _weakness(fact, fact.shown.odds)) else []
    return (*blocks, Paragraph(_reading(known)))


def _who(fact: ClaimFact) -> str:
    outputs = joined(fact.claim.outputs)
    observer = fact.claim.observer
    return f"For anyone, who sees {outputs}:" if observer == "anyone" else f"For {observer}, who see {outputs}:"


def _compared(fact: ClaimFact) -> str:
    relation = fact.claim.relation
    if relation.unit is None:
        return f"This compares the result with the one there would be if {relation.absence}."
    together = ""
    if relation.group > 1:
        together = f" It holds for up to {relation.group} {relation.plural} at once."
    if relation.absence:
        means = f"which here means that {relation.absence}"
        return f"All of this is compared with not taking part, {means}.{together}"
    return f"All of this is compared with not taking part.{together}"


def odds_sentences(fact: ClaimFact, odds: OddsFact) -> tuple[Sentence, ...]:
    """The two sentences of natural frequencies; true after rounding (tests simulate the best observer)."""
    because: tuple[Because, ...] = (_ODDS_NOTE, *fact.claim.notes, CertificateEntry("privacy"))
    return (
        proved(
            f"If you did not take part, {odds.without_words} possible results would still make them say that you did.",
            *because,
        ),
        proved(f"If you did, {odds.taking_part_words}.", *because),
    )


def icons(odds: OddsFact) -> IconArray:
    """Two rows of 100 figures."""
    plain = odds.plain
    return IconArray(
        caption="Each mark is a possible result; a full one would make them say that you took part.",
        rows=(
            IconRow(f"You did not take part: {odds.without_words}", plain.without, plain.of),
            IconRow(f"You took part: {odds.taking_part_words}", plain.taking_part, plain.of),
        ),
    )


def _weakness(fact: ClaimFact, odds: OddsFact) -> tuple[Sentence, ...]:
    if odds.plain.without * 20 >= odds.plain.of:
        return ()
    because: tuple[Because, ...] = (_ODDS_NOTE, *fact.claim.notes)
    return (proved("These odds protect little: such an observer can be almost sure.", *because),)


def _reading(known: list[ClaimFact]) -> tuple[Sentence, ...]:
    notes = dict.fromkeys(note for fact in known for note in fact.claim.notes)
    coin = next(fact.shown.odds for fact in known if fact.shown is not None)
    return (
        proved("No method can do better on both counts.", _ODDS_NOTE, *notes),
        proved(f"A coin toss in place of the result would give {coin.coin} of {coin.of} both times.", _ODDS_NOTE),
    )


def _unexplained(fact: ClaimFact) -> Section:
    text = (
        f"The guarantee for {', '.join(fact.claim.outputs)} is of a kind that this page cannot turn into "
        "odds: "
        f"“{fact.claim.sentence}”."
    )
    heading = f"What {joined(fact.claim.outputs)} can reveal"
    return Section(heading, (Paragraph((asserted(text, fact.claim.line),)),))


def label(facts: Facts) -> Table:
    """The label: six questions a person asks, with short answers."""
    words = facts.context.trust_words
    unknown = f"The spec says: trust {facts.context.trust}. This page has no words for that."
    return Table(
        caption="Six questions about this release",
        header=("Question", "Answer"),
        rows=(
            ("Who sees my raw data?", words.sees_raw if words else unknown),
            ("Could a stolen server reveal it?", words.stolen_server if words else unknown),
            ("Could the published result reveal that I took part?", _reveals(facts)),
            (
                "What can be learned about groups I belong to?",
                "Facts about groups can be learned: that is what the figures are for. "
                "They can be learned almost as well without you.",
            ),
            ("What is released exactly, without noise?", _exactly(facts)),
            ("What happens when results are released again?", _again(facts)),
        ),
        label=True,
    )


def _reveals(facts: Facts) -> str:
    weakest = facts.weakest
    if weakest is None or weakest.shown is None:
        return "These pages cannot say; see the guarantee itself."
    odds = weakest.shown.odds
    worst = ", at worst" if len(facts.claims) > 1 else ""
    return (
        f"Only by the odds above{worst}: {odds.without_words} possible results say so if you did not, "
        f"{odds.taking_part_words} if you did."
    )


def _exactly(facts: Facts) -> str:
    bare = [o for o in facts.outputs if o.without_noise.value > 0]
    if bare:
        names = ", ".join(f"{o.without_noise} of the {o.size} numbers in {o.name}" for o in bare)
        return f"{names}: they do not depend on anybody's data."
    if facts.claims and all(c.claim.relation.adds for c in facts.claims):
        return "The questions asked and the groups counted, but not how many people took part."
    sizes = ", ".join(f"{i.size} for {i.name}" for i in facts.inputs)
    return f"The questions asked, the limits of the values, and how many values there are ({sizes})."


def _again(facts: Facts) -> str:
    weakest = facts.weakest
    if weakest is None or not weakest.repeats:
        return "Every further release weakens the protection; the keeper has to count them."
    times, odds = weakest.repeats[-1]
    return (
        f"Every further release weakens the protection. After {times} releases like this one the odds "
        f"would be {odds.pair}. "
        "A ledger counts the releases and refuses those over its limit."
    )


def _several(facts: Facts) -> Section | None:
    weakest = facts.weakest
    if weakest is None or weakest.claim.relation.unit in (None, "everything"):
        return None
    relation = weakest.claim.relation
    rows = tuple((k.text, odds.without_words, odds.taking_part_words) for k, odds in weakest.groups)
    table = Table(
        caption="The same odds for people who hold several together, or a family that acts as one",
        header=(f"How many of the {relation.plural} are yours", "If you did not take part", "If you did"),
        rows=rows,
    )
    return Section("If more than one is yours", (table,))


def _accuracy(facts: Facts) -> tuple[Sentence, ...]:
    loss = facts.loss
    where = facts.context.loss_because
    entry = CertificateEntry("loss")
    found = [
        proved(f"Noise makes the figures in {o.name} typically off by {o.typical}.", where, entry)
        for o in facts.outputs
        if o.typical.value > 0
    ]
    if not found and loss is not None and loss.error is not None:
        words = f"Noise makes {loss.error_of} typically off by {loss.error}."
        found.append(proved(words, where, entry))
    if found and loss is not None:
        found.append(
            proved(
                "The noise is what protects you; on average it neither adds nor takes away.",
                CertificateEntry("unbiased"),
            )
        )
    return tuple(found)


def _limits(facts: Facts) -> tuple[Sentence, ...]:
    line = facts.context.trust_because
    items = [
        assumed(
            "It compares with not taking part; it does not say what others know about you already.",
            _ODDS_NOTE,
        ),
        assumed("It speaks of this release only, not of other uses of the same data.", line),
    ]
    if facts.context.trust == "curator":
        items.append(assumed("It relies on the keeper of the data to run the release as planned.", line))
    items += [assumed(gap, line) for gap in facts.gaps]
    return tuple(items)
