"""The page for auditors, in the order of NIST SP 800-226; every sentence with its status and source.

And the page for engineers: sites, variances, solver, gap, alternatives, prices, and how to reproduce them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from shlex import quote

from privspec.explain import plots, summary
from privspec.explain.curves import Consequences, CountedOdds
from privspec.explain.document import (
    MEANINGS,
    Because,
    Block,
    Document,
    Judged,
    Listing,
    Note,
    Paragraph,
    Points,
    Sentence,
    Status,
    Table,
    asserted,
    assumed,
    proved,
    reported,
    sections,
    table,
    tested,
)
from privspec.explain.facts import OWN_UNITS, ClaimFact, Facts
from privspec.explain.questions import COUNTS
from privspec.model.reports import listing

_PRIVACY = Judged("privacy")
_LOSS, _EXPOSURE = Judged("loss"), Judged("exposure")
_ODDS, _LEDGER, _POST = Note("odds"), Note("ledger"), Note("post-processing")


def auditor_page(facts: Facts) -> Document:
    """Guarantee, composition, trust, mechanism, data, assumptions, residual risk, and how to check them."""
    mechanism, judgement = facts.mechanism, facts.judgement
    kept = tuple(proved(summary.short_amounts(sentence), Judged("problem")) for sentence in judgement.told)
    claims = ((name, summary.short_amounts(text)) for name, text in judgement.claims)
    derived = table(
        "Claims that were derived again for this page, without compiler and solver", "Claim | In figures", claims
    )
    return Document(
        title=f"Privacy report: {facts.name}",
        subtitle=facts.title,
        reader="auditor",
        shows_basis=True,
        sections=tuple(
            sections(
                ("To sign", sign_blocks(facts)),
                ("How to read this report", (legend(),)),
                ("The spec", (Listing("As it was solved", "\n".join(facts.context.source)),)),
                ("What this plan has to keep", (Points(kept),) if kept else ()),
                ("What the kernel derived", (derived,) if judgement.claims else ()),
                ("What no guarantee covers", exposure_blocks(facts)),
                ("Guarantee", guarantee_blocks(facts)),
                ("Composition over all releases", composition_blocks(facts)),
                ("Fairness", summary.fairness_blocks(facts)),
                ("Trust model", (Points(_trust(facts)),)),
                (
                    "Mechanism and implementation",
                    (Points(_mechanism(facts)), *mechanism.auditor_tables(facts), *summary.accuracy_tables(facts)),
                ),
                ("Data collection and access", (Points(_data(facts)),)),
                ("Assumptions", (Points(_assumptions(facts)),)),
                ("Measures and residual risk", (Points(tuple(_residual(facts))),)),
                ("How to check this report", (_commands(facts),)),
            )
        ),
        footer=facts.footer,
    )


MOST_LISTED = 5
"""Promises and assumptions that the page to sign lists; the others follow below it."""


def sign_blocks(facts: Facts) -> tuple[Block, ...]:
    """One page: what is released, under which promises, who proved what and when, what is assumed, and who signs."""
    weakest, judgement, unknown = facts.weakest, facts.judgement, "none is known"
    odds = unknown if weakest is None or weakest.shown is None else weakest.question.odds(weakest.shown.odds)
    taken = list(dict.fromkeys(s.text for s in facts.assumptions if s.status in (Status.ASSUMED, Status.ASSERTED)))
    label, error = facts.error
    derived = f"{len(judgement.claims)} claims: {', '.join(sorted(judgement.derived))}"
    bare = listing(list(dict.fromkeys(name for item in facts.exposures for name in summary.bare_outputs(item))))
    rows = [
        ("What is published", published(facts)),
        ("Promise", _first([fact.claim.sentence for fact in facts.claims]) or "none"),
        *([("Not protected", bare)] if bare else []),
        ("Derived by the kernel", derived if judgement.claims else "nothing, for this page"),
        ("Kernel and date", f"{judgement.kernel or 'unknown'}, {judgement.on or 'no date'}"),
        ("Assumed", _first(taken) or "nothing beyond what the last sections list"),
        ("What an observer can tell", odds),
        (label, error or "none is known"),
        ("How near to the best", _near(facts)),
        ("Plan (SHA-256)", facts.digest),
        ("Spec (SHA-256)", facts.spec_sha256),
    ]
    who = ((role, "", "", "") for role in ("Controller", "Author of the spec", "Auditor"))
    signed = replace(table("Signatures", "Role | Name | Place and date | Signature", who), fields=True)
    return table("What is signed", "Item | Value", rows), signed


def _near(facts: Facts) -> str:
    """How much less any other mechanism can lose, in a line."""
    loss = facts.loss
    if loss is None or loss.lower_bound is None:
        return f"{facts.status}: it is not proved that no other has less loss"
    known = "derived by the kernel" if facts.bound_certified else "not derived by the kernel"
    bound = f"none of the mechanisms considered has a loss below {loss.lower_bound} ({known})"
    return f"{facts.status}: this one loses {loss.value}, and {bound}"


def published(facts: Facts) -> str:
    """All that a release holds, with the labels that the spec gives: what is drawn, and what is worked out from it."""
    labels = {} if facts.model is None else facts.model.labels
    drawn, worked_out = (
        listing([f"{name} (“{labels[name]}”)" if name in labels else name for name in names])
        for names in (sorted(facts.mechanism.released), [name for name, _ in facts.computed])
    )
    return f"{drawn}; worked out from that: {worked_out}" if worked_out else drawn


def _first(found: list[str]) -> str:
    """The first few sentences, and how many more there are."""
    more = f" · and {len(found) - MOST_LISTED} more, below" if len(found) > MOST_LISTED else ""
    return " · ".join(text.removesuffix(".") for text in found[:MOST_LISTED]) + more


def legend() -> Table:
    """What the statuses mean."""
    caption = "Every sentence is followed by its status and by what it rests on"
    return table(caption, "Status | Meaning", ((status.value, words) for status, words in MEANINGS.items()))


def _trust(facts: Facts) -> tuple[Sentence, ...]:
    because = facts.context.trust_because
    words = facts.context.trust_words
    how = "is stated in the spec" if facts.context.trust_stated else "is the default, as the spec states none"
    said = "; ".join(
        f"the trust model{f' of {listing(names)}' if names else ''} is “{kind}”"
        for kind, names in facts.context.trusts.items()
    )
    found = [asserted(f"{said[0].upper()}{said[1:]}; it {how}.", because)]
    if words is None:
        return (*found, assumed("This report has no description of that trust model.", because))
    return (
        *found,
        assumed(words.auditor, because),
        assumed(f"Could a stolen server reveal raw data? {words.stolen_server}", because),
    )


def _mechanism(facts: Facts) -> tuple[Sentence, ...]:
    mechanism, where = facts.mechanism, facts.context
    drawn = f"{mechanism.label('drawn')}: {mechanism.drawn(facts)}."
    gaps = (assumed(gap, where.trust_because) for gap in facts.gaps)
    head = proved(drawn, where.sites_because, mechanism.entry)
    return head, *_loss(facts), *mechanism.auditor_points(facts), *gaps


def _loss(facts: Facts) -> Iterator[Sentence]:
    loss, line = facts.loss, facts.context.loss_because
    if loss is None:
        return
    units = "each term in units of its own" if OWN_UNITS in loss.units and "+" in loss.units else loss.units
    by_chance = facts.mechanism.by_chance and loss.of_errors
    scope = " by chance alone" if by_chance else " on the data that count" * loss.of_errors
    words = f"The loss `{loss.expression}` is {loss.value}{f' ({units})' if units else ''}{scope}."
    said = proved(words, line, _LOSS) if loss.standard_error is None else reported(words, line)
    sizes = ((name, loss.value.value, loss.value.value) for name in sorted(facts.mechanism.released))
    yield facts.of_chance(said, "loss", *sizes) if by_chance else said
    yield from (*facts.fitting.expectations(), *facts.fitting.told)
    # what counts where several are equal is part of what the loss means
    for name, taken in facts.context.ties.items():
        level = f"In the loss, {name} takes, among equals, {taken}: where several are level, any other winner counts as"
        yield proved(f"{level} another one.", line)
    if loss.lower_bound is not None and loss.gap is not None:
        listed = " (" in loss.among and ": " in loss.among
        yield proved(
            f"No mechanism among those considered{'' if listed else f' ({loss.among})'} has a loss below "
            f"{loss.lower_bound}; the relative gap is {loss.gap}.{f' Considered: {loss.among}.' if listed else ''}",
            facts.mechanism.loss_note,
            Judged("bound"),
        )
    if words := summary.computed_errors(facts):
        text = f"Root mean square errors of what is computed from the noisy figures: {words}."
        sizes = ((name, least.value, most.value) for name, least, most, _ in facts.computed_errors)
        yield facts.of_chance(reported(text, Note("sums")), "simulated", *sizes)
    if loss.standard_error is not None:
        yield tested(f"The loss was simulated; its standard error is {loss.standard_error}.", line)


def _data(facts: Facts) -> tuple[Sentence, ...]:
    found = facts.mechanism.data(facts)
    because = found[0].because if found else (facts.context.trust_because,)
    # sizes are public unless some guarantee hides how many units there are
    adding = list(dict.fromkeys(f.claim.relation.plural for f in facts.claims if f.claim.relation.adds))
    sizes = f", and sizes but for the number of {listing(adding)}, which is secret" if adding else " and sizes"
    owner = "That the data are what their owner says, and were collected lawfully, is outside this report."
    public = f"All that is not an input is public: parameters, constants, domains{sizes}."
    return *found, asserted(public, *because), assumed(owner, *because)


def _assumptions(facts: Facts) -> tuple[Sentence, ...]:
    machine = "The machine that runs the release is not compromised and runs this software unchanged."
    return (*facts.assumptions, assumed(machine, facts.context.trust_because))


def _residual(facts: Facts) -> Iterator[Sentence]:
    weakest = facts.weakest
    yield proved(f"Measure: {facts.mechanism.label('measure')}", _PRIVACY)
    ledger = "Measure: a ledger limits what all releases of the data together spend, as long as the keeper keeps it."
    yield tested(ledger, _LEDGER)
    if weakest is not None and weakest.shown is not None:
        yield proved(weakest.question.residual(weakest.shown.advantage.text), _ODDS, _PRIVACY)
    yield assumed("Residual risk: facts about groups can be learned, and may be used on their members.", _ODDS)
    unseen = "releases of the same data that are in no ledger add to this one, and nobody can notice them"
    yield assumed(f"Residual risk: {unseen}.", _LEDGER)


def _commands(facts: Facts) -> Listing:
    plan, page = quote(facts.plan_file), quote(f"{facts.stem}.engineer.html")
    return Listing(
        "Re-check every claim without the compiler and the solver, list the code and the proofs that its privacy rests "
        "on, and read the same plan as an engineer",
        f"privspec verify {plan}\nprivspec verify {plan} --trusted\nprivspec explain {plan} --for engineer -o {page}",
    )


def guarantee_blocks(facts: Facts) -> tuple[Block, ...]:
    """Each guarantee as a table, in sentences, and as a trade-off curve."""
    if not facts.claims:
        text = "The spec states no privacy requirement: what is released may reveal anything about the inputs."
        return (*changed_blocks(facts), Points((asserted(text, facts.context.trust_because),)))
    blocks: list[Block] = [*changed_blocks(facts)]
    for number, fact in enumerate(facts.claims, start=1):
        blocks += [_table(facts, fact, number), Points(tuple(_sentences(facts, fact))), *fact.question.details()]
        plot = plots.tradeoff_plot(facts, fact, number)
        blocks += [plot] if plot else []
        if fact.posteriors:
            caption = fact.question.posterior_caption
            blocks.append(table(caption, "Probability before | After, at most", fact.posteriors, 0, 1))
    return tuple(blocks)


def changed_blocks(facts: Facts) -> tuple[Block, ...]:
    """Parameters that are not as the spec's text has them; all figures are for the values given."""
    words = summary.overridden_words(facts)
    said = f"Parameters were given other values than the spec's text has: {words}. All figures are for the values"
    return (Points((asserted(f"{said} given.", facts.context.trust_because),)),) if words else ()


def exposure_blocks(facts: Facts) -> tuple[Block, ...]:
    """What observers see of inputs that no guarantee covers: what is not protected, and the bound of all together."""
    if not facts.exposures:
        return ()
    because = facts.context.trust_because
    bare = []
    for words in dict.fromkeys(summary.bare_words(item) for item in facts.exposures if summary.bare_outputs(item)):
        names, _, why = words.partition(": ")
        bare.append(proved(f"Not protected: {names}. {why[:1].upper()}{why[1:]}.", because, _EXPOSURE))
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
    header = "Input | What changes | Observer | Sees | Not protected | Bound of all seen | Odds | Advantage at most"
    words = (
        "No line of the spec names all outputs that these observers see of these inputs. The bounds are those of what "
        "is executed, for all that is seen together; they are computed on the noisy values themselves, not by adding "
        "guarantees."
    )
    said = [proved(words, because, _EXPOSURE, _POST)]
    if any(item.fact.claim.neighbours.endswith(" at once") for item in facts.exposures):
        joint = "Of one person who may be in several inputs the bound is that of changing one input after the other."
        said.append(proved(joint, because, _EXPOSURE, Note("composition")))
    return (
        *((Paragraph(tuple(bare), strong=True),) if bare else ()),
        Points(tuple(said)),
        table("Bounds of what is executed, where no guarantee covers all that is seen", header, rows),
    )


def _table(facts: Facts, fact: ClaimFact, number: int) -> Table:
    claim = fact.claim
    rows = (
        ("Statement", claim.sentence),
        ("Variant", claim.variant),
        *claim.parameters,
        ("Unit of privacy", claim.unit),
        ("Neighbouring data sets", claim.neighbours),
        ("Protected input", ", ".join(claim.wrt)),
        ("Outputs covered", ", ".join(claim.outputs)),
        ("Who sees them", claim.observer),
        (facts.mechanism.label("reached"), claim.reached or "as stated"),
        ("Spec line", f"{claim.line.number}: {claim.line.text}"),
    )
    return table(f"Guarantee {number} of {len(facts.claims)}", "Item | Value", rows)


def _sentences(facts: Facts, fact: ClaimFact) -> Iterator[Sentence]:
    claim = fact.claim
    yield asserted(f"The author of the spec requires that {claim.sentence}.", claim.line)
    if claim.achieved_parameter is not None:
        implies = "" if claim.remark is not None else ", which implies the statement"
        words = f"{facts.mechanism.label('subject')} gives {claim.reached}{implies}"
        yield proved(f"{words}; {_MEANING[claim.achieved_parameter[0]]}.", *claim.notes, _PRIVACY)
    if claim.remark is not None:
        yield proved(claim.remark.text, Note("tables"), claim.line, _PRIVACY)
    if fact.shown is None:
        words = f"This report knows no trade-off curve for “{claim.statement}” and gives no odds for it."
        yield asserted(words, claim.line)
    else:
        yield from _consequences(facts, fact, fact.shown)
    if (c := fact.calibration) is not None:
        proof = "its proof covers this ε" if c.proved else "its proof covers ε below 1 only"
        safe = f"It would be safe here, at {c.ratio} times the variance; {proof}"
        verdict = safe if c.enough else f"Here it would not suffice (δ would be {c.true_delta}): {proof}"
        yield proved(
            f"The usual calibration sqrt(2 ln(1.25/δ))/ε, which Ramon & Basu use too, asks for {c.classic} standard "
            f"deviations per unit of sensitivity at ε = {c.epsilon} and δ = {c.delta}; the exact condition asks for "
            f"{c.needed}. {verdict}. It is shown for comparison and not used.",
            Note("gaussian-exact"),
        )


_MEANING = {
    "μ": "μ is the largest distance between two neighbouring results, in standard deviations of the noise",
    "ε": "the probability of any result changes by a factor of at most e^ε between neighbouring worlds",
    "δ": "δ is the most by which the probability of any set of results exceeds e^ε times that in a neighbouring world",
    "ρ": "between two neighbouring results the Rényi divergence of any order α is at most ρ α",
    "ε per unit of distance": "the probability of any result changes by a factor of at most e^(ε d) between values "
    "that are d apart",
}


def _consequences(facts: Facts, fact: ClaimFact, shown: Consequences) -> Iterator[Sentence]:
    claim, odds, other = fact.claim, shown.odds, fact.promised
    because: tuple[Because, ...] = (_ODDS, *claim.notes, _PRIVACY)
    yield proved(fact.question.for_auditors(odds), *because)
    yield proved(f"That observer's share of mistakes is at least {odds.error} % ({shown.words}).", *because)
    words = f"The advantage of any attacker (true minus false positive rate) is at most {shown.advantage}."
    yield proved(words, *because)
    if not shown.exact:
        yield proved(f"These figures are bounds. {facts.mechanism.label('subject')} may allow less.", _ODDS)
    if other is not None and other.words != shown.words:
        words = f"The statement by itself would allow {other.odds.pair} and an advantage of {other.advantage}"
        yield proved(f"{words} ({other.words}).", _ODDS, claim.line)
    if not fact.posteriors and claim.per_distance is None:
        why = fact.question.posterior_gap or "there is one for pure ε only"
        yield proved(f"No bound is given on how far a prior probability can move: {why}.", _ODDS)


def composition_blocks(facts: Facts) -> tuple[Block, ...]:
    """All outputs together, repeated releases, groups, and the ledger."""
    blocks: list[Block] = [Points(tuple(_everything(fact) for fact in facts.claims))] if facts.claims else []
    for fact in facts.claims:
        line, plural = fact.claim.line.number, fact.claim.relation.plural
        if fact.repeats:
            scope = f", for {fact.question.scope}" if fact.question.scope else ""
            caption = f"Odds after several independent releases like that of line {line}{scope} (note odds)"
            blocks.append(_odds_table(caption, "Releases", fact.repeats))
        if fact.groups and fact.claim.relation.single:
            caption = f"Odds when several {plural} change together, for line {line} (note group-privacy)"
            blocks.append(_odds_table(caption, plural.capitalize(), fact.groups))
    ledger = (
        "`privspec run` debits a ledger before each release and refuses what would exceed its limit. The limit is "
        "declared once for the data set, and all plans share it. Where the user's registry knows the data, a copied or "
        "renamed file, another ledger, a deleted one and an older copy are refused."
    )
    others = (
        "Nothing can stop a keeper who deletes ledger and registry, or who releases the data elsewhere: such releases "
        "are not counted."
    )
    return (*blocks, Points((tested(ledger, _LEDGER), assumed(others, _LEDGER))))


def _everything(fact: ClaimFact) -> Sentence:
    line, names = fact.claim.line, ", ".join(fact.claim.outputs)
    if fact.covers_everything:
        words = (
            f"The guarantee of line {line.number} covers all outputs together, so it is itself "
            "the bound for someone who sees everything that this plan releases."
        )
        return proved(words, line, _POST)
    if fact.everything is None:
        words = (
            f"The bound for someone who sees more than {names} could not be computed; the separate "
            "guarantees must not be added up, for outputs may share noise."
        )
        return assumed(words, line, _POST)
    words = (
        f"For the unit of line {line.number}, someone who sees every output, not only {names}, has odds of "
        f"{fact.everything.odds.pair} and an advantage of at most {fact.everything.advantage} "
        f"({fact.everything_words}). This is computed on all noisy values together, not by adding guarantees."
    )
    return proved(words, _POST, _PRIVACY)


def _odds_table(caption: str, first: str, rows: tuple[CountedOdds, ...]) -> Table:
    cells = ((k, odds.without_words, odds.taking_part_words) for k, odds in rows)
    return table(caption, (first, *COUNTS), cells, *range(3))
