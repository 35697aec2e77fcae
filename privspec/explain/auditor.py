"""The page for auditors, in the order of NIST SP 800-226; every sentence with its status and source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from shlex import quote

from privspec.explain import drawing, summary
from privspec.explain.curves import Consequences, Curve, least_misses
from privspec.explain.document import Block, Document, Listing, Paragraph, Plot, Points, Sentence, Status, Table
from privspec.explain.facts import OWN_UNITS, ClaimFact, Facts
from privspec.explain.messages import phrase, phrases, plotted, say, sentences, tabled, titled
from privspec.explain.quantities import DOWN, percent
from privspec.model.reports import listing


def auditor_page(facts: Facts) -> Document:
    """Guarantee, composition, trust, mechanism, data, assumptions, residual risk, and how to check them."""
    mechanism, judgement = facts.mechanism, facts.judgement
    kept = tuple(say("auditor.kept.line", text=summary.short_amounts(text)) for text in judgement.told)
    claims = ((name, summary.short_amounts(text)) for name, text in judgement.claims)
    found = titled(
        "auditor.headings",
        sign=sign_blocks(facts),
        read=(legend(),),
        spec=(Listing(phrase("auditor.page.spec"), "\n".join(facts.context.source)),),
        kept=(Points(kept),) if kept else (),
        derived=(tabled("auditor.derived", claims),) if judgement.claims else (),
        exposures=exposure_blocks(facts),
        guarantee=guarantee_blocks(facts),
        composition=composition_blocks(facts),
        fairness=summary.fairness_blocks(facts),
        trust=(Points(_trust(facts)),),
        mechanism=(
            Points(tuple(_mechanism(facts))),
            *mechanism.auditor_tables(facts),
            *summary.accuracy_tables(facts),
        ),
        data=(Points(_data(facts)),),
        assumptions=(Points((*facts.assumptions, *sentences("auditor.assumptions", facts))),),
        residual=(Points(_residual(facts)),),
        check=(_commands(facts),),
    )
    return Document(
        title=phrase("auditor.page.title", name=facts.name),
        subtitle=facts.title,
        reader="auditor",
        shows_basis=True,
        sections=tuple(found),
        footer=facts.footer,
    )


MOST_LISTED = 5
"""Promises and assumptions that the page to sign lists; the others follow below it."""


def sign_blocks(facts: Facts) -> tuple[Block, ...]:
    """One page: what is released, under which promises, who proved what and when, what is assumed, and who signs."""
    weakest, judgement, loss = facts.weakest, facts.judgement, facts.loss
    shown = None if weakest is None else weakest.shown
    odds = weakest.question.odds(shown.odds, weakest.claim) if weakest is not None and shown is not None else ()
    taken = list(dict.fromkeys(s.text for s in facts.assumptions if s.status in (Status.ASSUMED, Status.ASSERTED)))
    bounded = loss is not None and loss.lower_bound is not None
    error_label, error_words = facts.error
    rows = phrases(
        "auditor.signed_rows",
        facts,
        published=published(facts),
        promise=_first([fact.claim.sentence for fact in facts.claims]),
        bare=listing(dict.fromkeys(name for item in facts.exposures for name in summary.bare_outputs(item))),
        number=len(judgement.claims),
        derived=", ".join(sorted(judgement.derived)),
        taken=_first(taken),
        odds=" ".join(sentence.text for sentence in odds),
        error_label=error_label,
        error_words=error_words,
        near=phrase(f"auditor.near.{'bound' if bounded else 'unknown'}", facts),
    )
    who = ((role, "", "", "") for _, role in phrases("auditor.roles"))
    return tabled("auditor.signed", rows), replace(tabled("auditor.signatures", who), fields=True)


def published(facts: Facts) -> str:
    """All that a release holds, with the labels that the spec gives: what is drawn, and what is worked out from it."""
    labels = {} if facts.model is None else facts.model.labels
    drawn, computed = (
        listing(
            phrase("auditor.published.output", name=name, label=labels[name]) if name in labels else name
            for name in names
        )
        for names in (sorted(facts.mechanism.released), [name for name, _ in facts.computed])
    )
    return phrase("auditor.published.all", drawn=drawn, computed=computed)


def _first(found: list[str]) -> str:
    """The first few sentences, and how many more there are."""
    listed = [text.removesuffix(".") for text in found[:MOST_LISTED]]
    if len(found) > MOST_LISTED:
        listed.append(phrase("auditor.signed.more", more=len(found) - MOST_LISTED))
    return " · ".join(listed)


def legend() -> Table:
    """What the statuses mean."""
    rows = ((status.value, phrase(f"auditor.meanings.{status.name.lower()}")) for status in Status)
    return tabled("auditor.legend", rows)


def _trust(facts: Facts) -> tuple[Sentence, ...]:
    where = facts.context
    models = (
        say("auditor.trust_model.kind", facts, of=listing(names), kind=kind, stated=where.trust_stated)
        for kind, names in where.trusts.items()
    )
    server = where.trust_words("stolen_server")
    return (*models, *sentences("auditor.trust", facts, words=where.trust_words("auditor"), server=server))


def _mechanism(facts: Facts) -> Iterator[Sentence]:
    mechanism = facts.mechanism
    yield say("auditor.mechanism.drawn", facts, label=mechanism.label("drawn"), drawn=mechanism.drawn(facts))
    yield from _loss(facts)
    yield from mechanism.auditor_points(facts)
    yield from facts.gaps


def _loss(facts: Facts) -> Iterator[Sentence]:
    loss = facts.loss
    if loss is None:
        return
    own = OWN_UNITS in loss.units and "+" in loss.units
    units = phrase("auditor.loss_units.own") if own else loss.units
    at_worst, by_chance = (
        facts.off_on_average,
        facts.mechanism.by_chance and loss.of_errors and not facts.off_on_average,
    )
    on_data = loss.of_errors and not facts.mechanism.by_chance
    by_law = at_worst and facts.by_law
    which = {"by_chance": by_chance, "on_data": on_data, "at_worst": at_worst and not by_law, "by_law": by_law}
    (value,) = sentences("auditor.loss_value", facts, units=units, **which)
    sizes = ((name, loss.value.value, loss.value.value) for name in sorted(facts.mechanism.released))
    yield facts.of_chance(value, "loss", *sizes) if by_chance else value
    yield from (*facts.fitting.expectations(), *facts.fitting.told)
    # what counts where several are equal is part of what the loss means
    for function, taken in facts.context.ties.items():
        yield say("auditor.loss_ties.ties", facts, function=function, taken=taken)
    if loss.lower_bound is not None and loss.gap is not None:
        yield from sentences("auditor.loss_bound", facts, listed=" (" in loss.among and ": " in loss.among)
    if words := summary.computed_errors(facts):
        sizes = ((name, least.value, most.value) for name, least, most, _ in facts.computed_errors)
        yield facts.of_chance(say("auditor.loss_computed.errors", words=words), "simulated", *sizes)
    yield from sentences("auditor.loss_simulated", facts)


def _data(facts: Facts) -> tuple[Sentence, ...]:
    found = facts.mechanism.data(facts)
    because = found[0].because if found else (facts.context.trust_because,)
    # sizes are public unless some guarantee hides how many units there are
    adding = listing(dict.fromkeys(f.claim.relation.plural for f in facts.claims if f.claim.relation.adds))
    return (*found, *sentences("auditor.data", adding=adding, because=because))


def _residual(facts: Facts) -> tuple[Sentence, ...]:
    weakest, told, advantage = facts.weakest, "", ""
    if weakest is not None and weakest.shown is not None:
        told, advantage = weakest.question.text("told"), weakest.shown.advantage.text
    return sentences("auditor.residual", measure=facts.mechanism.label("measure"), told=told, advantage=advantage)


def _commands(facts: Facts) -> Listing:
    plan, page = quote(facts.plan_file), quote(f"{facts.stem}.engineer.html")
    return Listing(
        phrase("auditor.page.commands"),
        f"privspec verify {plan}\nprivspec verify {plan} --trusted\nprivspec explain {plan} --for engineer -o {page}",
    )


def guarantee_blocks(facts: Facts) -> tuple[Block, ...]:
    """Each guarantee as a table, in sentences, and as a trade-off curve."""
    if not facts.claims:
        return (*changed_blocks(facts), Points((say("auditor.guarantee.none", facts),)))
    blocks: list[Block] = [*changed_blocks(facts)]
    for number, fact in enumerate(facts.claims, start=1):
        blocks += [_table(facts, fact, number), Points(tuple(_sentences(facts, fact))), *fact.question.details()]
        plot = tradeoff_plot(facts, fact, number)
        blocks += [plot] if plot else []
        if fact.posteriors:
            blocks.append(tabled("auditor.posteriors", fact.posteriors, sure=fact.question.text("sure")))
    return tuple(blocks)


TRADEOFF_MARKS = tuple(Fraction(n, 100) for n in (1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90))


def tradeoff_plot(facts: Facts, fact: ClaimFact, number: int) -> Plot | None:
    """False alarms against misses: what is executed allows, and what the statement alone would.

    Where there are several guarantees, the plot says which one it shows, by its number.
    """
    claim, total, scope = fact.claim, len(facts.claims), fact.question.scope
    if fact.shown is None:
        return None
    curves: dict[str, Curve] = {}
    if claim.achieved is not None and claim.achieved_parameter is not None:
        bound = phrase("plots.tradeoff.reached", claim)
        curves[facts.mechanism.label("curve") if claim.achieved.exact else bound] = claim.achieved
    if claim.promised is not None and not _same(claim.promised, claim.achieved):
        curves[phrase("plots.tradeoff.promised", claim)] = claim.promised
    rows = (
        (percent(a), *(percent(max(0.0, c.misses(float(a)) - 1e-12), 3, DOWN) for c in curves.values()))
        for a in TRADEOFF_MARKS
    )
    error, title = fact.shown.odds.error, ""
    if total > 1:
        title = phrase("plots.tradeoff.title", claim, number=number, total=total, one=claim.observer == "anyone")
    grid, share = [i / 160 for i in range(161)], float(error.text) / 100
    lines = [
        drawing.Line(
            label,
            list(zip(grid, least_misses(curve, grid), strict=True)),
            drawing.SECOND if position else drawing.ACCENT,
            None if curve.exact else drawing.DASHED,
        )
        for position, (label, curve) in enumerate(curves.items())
    ]
    blind = drawing.Line(phrase("plots.tradeoff.blind"), ((0, 1), (1, 0)), drawing.MUTED, drawing.DOTTED)
    mark = share, share, phrase("plots.tradeoff.mark", error=error)
    return plotted(
        "plots.tradeoff",
        lambda: drawing.line_chart([*lines, blind], [mark], *fact.question.axes, title=title, shares=True),
        rows,
        name=f"tradeoff{number}",
        more=[phrase("plots.tradeoff.column", label=label) for label in curves],
        head=f"{title}. " if title else "",
        scope=phrase("plots.tradeoff.scope", scope=scope) if scope else "",
        sentence=claim.sentence,
        error=error,
    )


def _same(one: Curve, other: Curve | None) -> bool:
    """Whether two curves could not be told apart in a drawing."""
    return type(one) is type(other) and other is not None and abs(one.equal_error() - other.equal_error()) < 1e-6


def changed_blocks(facts: Facts) -> tuple[Block, ...]:
    """Parameters that are not as the spec's text has them; all figures are for the values given."""
    return (Points((say("auditor.changed.parameters", facts),)),) if facts.overridden else ()


def exposure_blocks(facts: Facts) -> tuple[Block, ...]:
    """What observers see of inputs that no guarantee covers: what is not protected, and the bound of all together."""
    if not facts.exposures:
        return ()
    bare = dict[str, Sentence]()
    for item in facts.exposures:
        if names := summary.bare_outputs(item):
            said = say("auditor.exposure_bare.bare", item, item.fact, context=facts.context, names=names)
            bare.setdefault(said.text, said)
    rows = (
        (
            ", ".join(item.fact.claim.wrt),
            item.fact.claim.neighbours,
            item.fact.claim.observer,
            ", ".join(item.fact.claim.outputs),
            ", ".join(summary.bare_outputs(item)) or "none",
            item.words or "none could be computed",
            *((shown.odds.pair, shown.advantage) if (shown := item.fact.shown) else ("unknown", "1")),
        )
        for item in facts.exposures
    )
    joint = any(item.fact.claim.neighbours.endswith(" at once") for item in facts.exposures)
    return (
        *((Paragraph(tuple(bare.values()), strong=True),) if bare else ()),
        Points(sentences("auditor.exposure", facts, joint=joint)),
        tabled("auditor.exposures", rows),
    )


def _table(facts: Facts, fact: ClaimFact, number: int) -> Table:
    claim = fact.claim
    reached = facts.mechanism.label("reached"), claim.reached or "as stated"
    rows = (*phrases("auditor.guarantee_rows", fact), *claim.parameters, reached)
    return tabled("auditor.guarantee", rows, number=number, total=len(facts.claims))


def _sentences(facts: Facts, fact: ClaimFact) -> Iterator[Sentence]:
    claim, subject = fact.claim, facts.mechanism.label("subject")
    reached = claim.achieved_parameter
    meaning = "" if reached is None else phrase(f"auditor.meaning.{reached[0]}")
    remark = "" if claim.remark is None else claim.remark.text
    yield from sentences("auditor.guarantee_said", fact, subject=subject, meaning=meaning, remark=remark)
    if fact.shown is not None:
        yield from _consequences(fact, fact.shown, subject)
    if fact.calibration is not None:
        yield from sentences("auditor.calibration", fact.calibration)


def _consequences(fact: ClaimFact, shown: Consequences, subject: str) -> Iterator[Sentence]:
    """What an observer can achieve, in odds and in figures."""
    question = fact.question
    yield from question.odds(shown.odds, fact.claim)
    yield from sentences("auditor.consequences_first", fact, pair=question.text("pair"))
    yield from question.means(fact.claim)
    yield from sentences(
        "auditor.consequences",
        fact,
        whatever=question.text("whatever"),
        subject=subject,
        weaker=fact.promised is not None and fact.promised.words != shown.words,
        no_prior=not fact.posteriors and fact.claim.per_distance is None,
        unprotected=question.values.get("same", ""),
    )


def composition_blocks(facts: Facts) -> tuple[Block, ...]:
    """All outputs together, repeated releases, groups, and the ledger."""
    together = tuple(sentence for fact in facts.claims for sentence in sentences("auditor.everything", fact))
    blocks: list[Block] = [Points(together)] if together else []
    for fact in facts.claims:
        line, plural = fact.claim.line.number, fact.claim.relation.plural
        repeats, groups = (
            [(number, odds.without_words, odds.taking_part_words) for number, odds in known]
            for known in (fact.repeats, fact.groups)
        )
        if repeats:
            blocks.append(tabled("auditor.repeats", repeats, line=line, scope=fact.question.scope))
        if groups and fact.claim.relation.single:
            names = {"plural": plural, "plural_title": plural.capitalize()}
            blocks.append(tabled("auditor.groups", groups, line=line, **names))
    return (*blocks, Points(sentences("auditor.composition")))
