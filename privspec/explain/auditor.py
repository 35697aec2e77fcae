"""The page for auditors, in the order of NIST SP 800-226; every sentence with its status and source."""

from __future__ import annotations

from privspec.explain import plots
from privspec.explain.document import Block, Document, Listing, Paragraph, Points, Section, Table
from privspec.explain.facts import ClaimFact, Facts
from privspec.explain.sentences import (
    Because,
    CertificateEntry,
    Note,
    Sentence,
    SpecLine,
    Status,
    asserted,
    assumed,
    proved,
    tested,
)
from privspec.explain.words import noise_words

_PRIVACY = CertificateEntry("privacy")
_ODDS = Note("odds")


def auditor_page(facts: Facts) -> Document:
    """Guarantee, composition, trust, mechanism, data, assumptions, residual risk, and how to check all of it."""
    return Document(
        title=f"Privacy report: {facts.name}",
        subtitle=facts.title,
        reader="auditor",
        shows_basis=True,
        sections=(
            Section("How to read this report", (legend(),)),
            Section("Guarantee", _guarantee(facts)),
            Section("Composition over all releases", _composition(facts)),
            Section("Trust model", _trust(facts)),
            Section("Mechanism and implementation", _mechanism(facts)),
            Section("Data collection and access", _data(facts)),
            Section("Assumptions", (Points(facts.assumptions + _standing(facts)),)),
            Section("Measures and residual risk", _residual(facts)),
            Section("How to check this report", (_commands(facts),)),
        ),
        footer=f"Plan fingerprint (SHA-256) {facts.digest}; spec fingerprint {facts.spec_sha256}.",
    )


def legend() -> Table:
    """What the four statuses mean."""
    rows = tuple((status.value, status.meaning) for status in Status)
    return Table(
        "Every sentence is followed by its status and by what it rests on", ("Status", "Meaning"), rows
    )


def _guarantee(facts: Facts) -> tuple[Block, ...]:
    blocks: list[Block] = []
    for number, fact in enumerate(facts.claims, start=1):
        blocks += [_claim_table(facts, fact), Points(_claim_sentences(fact)), *_consequences(fact, number)]
    if not facts.claims:
        blocks.append(
            Points((asserted("The spec states no privacy requirement.", facts.context.trust_line),))
        )
    return tuple(blocks)


def _claim_table(facts: Facts, fact: ClaimFact) -> Table:
    claim = fact.claim
    achieved = claim.achieved_parameter
    rows = [
        ("Statement", claim.sentence),
        ("Variant", claim.variant),
        *((name, quantity.text) for name, quantity in claim.parameters),
        ("Unit of privacy", _unit(fact)),
        ("Neighbouring data sets", claim.relation.text),
        ("Protected input", ", ".join(claim.wrt)),
        ("Outputs covered", ", ".join(claim.outputs)),
        ("Who sees them", claim.observer),
        ("Reached by the executed noise", f"{achieved[0]} ≤ {achieved[1]}" if achieved else "as stated"),
        ("Spec line", f"{claim.line.number}: {claim.line.text}"),
    ]
    number = facts.claims.index(fact) + 1
    return Table(f"Guarantee {number} of {len(facts.claims)}", ("Item", "Value"), tuple(rows))


def _unit(fact: ClaimFact) -> str:
    relation = fact.claim.relation
    if relation.unit is None:
        return relation.text
    many = f", up to {relation.group} at once" if relation.group > 1 else ""
    return f"{relation.unit}{many}"


def _claim_sentences(fact: ClaimFact) -> tuple[Sentence, ...]:
    claim = fact.claim
    because: tuple[Because, ...] = (*claim.notes, _PRIVACY)
    found = [asserted(f"The author of the spec requires that {claim.sentence}.", claim.line)]
    if claim.achieved_parameter is not None:
        name, value = claim.achieved_parameter
        found.append(
            proved(
                f"The noise as it is executed gives {name} ≤ {value}, which implies the statement; "
                f"{_what_parameter(name)}.",
                *because,
            )
        )
    if fact.shown is not None:
        found += _consequence_sentences(fact)
    else:
        found.append(
            asserted(
                f"This report knows no trade-off curve for {claim.statement} and gives no odds.", claim.line
            )
        )
    if fact.calibration is not None:
        found.append(_calibration(fact))
    return tuple(found)


def _what_parameter(name: str) -> str:
    return {
        "μ": "μ is the largest distance between two neighbouring results, in standard deviations of the noise",
        "ε": "e to the ε bounds the ratio of the probabilities of any result in two neighbouring worlds",
    }.get(name, "it is the parameter of the executed noise")


def _consequence_sentences(fact: ClaimFact) -> list[Sentence]:
    shown = fact.shown
    if shown is None:
        return []
    claim = fact.claim
    because: tuple[Because, ...] = (_ODDS, *claim.notes, _PRIVACY)
    absence = f" (“not taking part” means that {claim.relation.absence})" if claim.relation.absence else ""
    found = [
        proved(
            f"Of an observer whose two kinds of mistakes are equally frequent: if a person did not take part, at "
            f"least {shown.odds.without} of {shown.odds.of} possible results would still make them say that the person "
            f"did; if the person did, at most {shown.odds.taking_part} of {shown.odds.of}{absence}.",
            *because,
        ),
        proved(
            f"The share of mistakes of that observer is at least {shown.odds.error} %, from the {shown.words}.",
            *because,
        ),
        proved(
            f"The advantage of any attacker (true minus false positive rate) is at most {shown.advantage}.",
            *because,
        ),
    ]
    if not shown.exact:
        found.append(
            proved(
                "These figures follow from the statement alone (the trade-off bound); the executed noise may allow less.",
                _ODDS,
            )
        )
    promised = fact.promised
    if promised is not None:
        found.append(
            proved(
                f"The statement by itself would allow {promised.odds.without} and {promised.odds.taking_part} of "
                f"{promised.odds.of} and an advantage of {promised.advantage} ({promised.words}).",
                _ODDS,
                claim.line,
            )
        )
    if not fact.posteriors:
        found.append(
            proved(
                "No bound on the change of a prior probability is given: it holds for pure differential privacy only.",
                _ODDS,
            )
        )
    return found


def _calibration(fact: ClaimFact) -> Sentence:
    c = fact.calibration
    if c is None:
        raise ValueError("no calibration to speak of")
    head = (
        f"Ramon & Basu use the well-known calibration sqrt(2 ln(1.25/δ))/ε, which at ε = {c.epsilon} and δ = {c.delta} "
        f"asks for {c.classic} standard deviations a unit of sensitivity, where the exact condition asks for {c.needed}"
    )
    proof = "its proof covers this ε" if c.proved else "its proof covers ε below 1 only"
    if c.enough:
        tail = f"it is safe here and spends {c.ratio} times the variance; {proof}"
    else:
        tail = f"here it would fall short (δ would be {c.true_delta}), for {proof}"
    return proved(f"{head}; {tail}. It is shown for comparison and not used.", Note("gaussian-exact"))


def _consequences(fact: ClaimFact, number: int) -> list[Block]:
    plot = plots.tradeoff_plot(fact, number)
    blocks: list[Block] = [plot] if plot else []
    if fact.posteriors:
        blocks.append(
            Table(
                "Largest probability after seeing the result, compared with not taking part (pure ε; note odds)",
                ("Before", "After at most"),
                tuple((a.text, b.text) for a, b in fact.posteriors),
                numeric=frozenset({0, 1}),
            )
        )
    return blocks


def _composition(facts: Facts) -> tuple[Block, ...]:
    blocks: list[Block] = []
    for fact in facts.claims:
        blocks.append(Points((_everything(fact),)))
    for fact in facts.claims:
        if fact.repeats:
            blocks.append(_repeat_table(fact))
            if fact.claim.relation.unit not in (None, "everything"):
                blocks.append(_group_table(fact))
    blocks.append(
        Points(
            (
                tested(
                    "`privspec run` debits a ledger before each release and refuses what would exceed its limit; without "
                    "a limit of its own the first release uses up the budget.",
                    Note("post-processing"),
                ),
                assumed(
                    "Releases of the same data that are not entered in the same ledger are not counted here.",
                    facts.context.trust_line,
                ),
            )
        )
    )
    return tuple(blocks)


def _everything(fact: ClaimFact) -> Sentence:
    claim = fact.claim
    names = ", ".join(claim.outputs)
    if fact.covers_everything:
        return proved(
            f"Guarantee on line {claim.line.number} covers all outputs together, so it is itself the bound for one "
            "who sees everything that this plan releases.",
            Note("post-processing"),
            claim.line,
        )
    if fact.everything is None:
        return assumed(
            f"The bound for one who sees more than {names} could not be computed; do not add the separate guarantees, "
            "for outputs may share noise.",
            claim.line,
        )
    odds = fact.everything.odds
    return proved(
        f"One who sees every output, not only {names}, has odds of {odds.without} and {odds.taking_part} of {odds.of} and "
        f"an advantage of at most {fact.everything.advantage}: computed on all strategy answers, not by adding guarantees.",
        Note("post-processing"),
        _PRIVACY,
    )


def _repeat_table(fact: ClaimFact) -> Table:
    return Table(
        f"Odds after several independent releases like that of line {fact.claim.line.number} (note odds)",
        ("Releases", "Did not take part: at least", "Took part: at most"),
        tuple((k.text, f"{o.without} of {o.of}", f"{o.taking_part} of {o.of}") for k, o in fact.repeats),
        numeric=frozenset({0, 1, 2}),
    )


def _group_table(fact: ClaimFact) -> Table:
    return Table(
        f"Odds when several {fact.claim.relation.plural} change together (note group-privacy)",
        (fact.claim.relation.plural.capitalize(), "Did not take part: at least", "Took part: at most"),
        tuple((k.text, f"{o.without} of {o.of}", f"{o.taking_part} of {o.of}") for k, o in fact.groups),
        numeric=frozenset({0, 1, 2}),
    )


def _trust(facts: Facts) -> tuple[Block, ...]:
    where = facts.context
    words = where.trust_words
    how = "is stated in the spec" if where.trust_stated else "is the default, for the spec states none"
    found = [asserted(f"The trust model is “{where.trust}”; it {how}.", where.trust_line)]
    if words is not None:
        found.append(assumed(words.auditor, where.trust_line))
        found.append(
            assumed(f"Could a stolen server reveal raw data? {words.stolen_server}", where.trust_line)
        )
    else:
        found.append(assumed("This report has no description of that trust model.", where.trust_line))
    return (Points(tuple(found)),)


def _mechanism(facts: Facts) -> tuple[Block, ...]:
    sites_line = facts.context.sites_line or facts.context.trust_line
    entry = CertificateEntry("loss")
    found = [proved(f"Where the noise goes: {noise_words(facts)}.", sites_line, entry)]
    loss = facts.loss
    if loss is not None:
        found += _loss_sentences(facts)
    found += _implementation(facts)
    found += [assumed(gap, facts.context.trust_line) for gap in facts.gaps]
    return (Points(tuple(found)), outputs_table(facts))


def _loss_sentences(facts: Facts) -> list[Sentence]:
    loss = facts.loss
    if loss is None:
        return []
    line = facts.context.loss_line or SpecLine(0)
    found = [
        proved(f"The loss {loss.expression} is {loss.value} ({loss.units}).", line, CertificateEntry("loss")),
    ]
    if loss.lower_bound is not None:
        found.append(
            proved(
                f"No mechanism among those considered ({loss.among}) has a loss below {loss.lower_bound}; "
                f"the relative gap is {loss.gap}.",
                Note("placement"),
                CertificateEntry("optimality"),
            )
        )
    return found


_SHAPES = {
    "gaussian": ("Gaussian noise rounded to a lattice", "rounded-gaussian"),
    "laplace": ("discrete Laplace noise on a lattice", "discrete-laplace"),
    "knorm-l2": ("K-norm noise on a lattice", "knorm-l2"),
}


def _implementation(facts: Facts) -> list[Sentence]:
    shape, note = _SHAPES.get(facts.noise_shape, (f"noise of shape {facts.noise_shape}", "post-processing"))
    found = [
        proved(
            f"What is executed is {shape} of step {facts.noise_grid or 'as the plan states'} on exact integer arithmetic, "
            "so that the low bits of floating-point numbers reveal nothing.",
            Note(note),
        ),
        tested(
            "Randomness comes from the operating system's generator; a seed is accepted for simulations only.",
            Note(note),
        ),
        assumed(
            "The time a run takes and the memory it uses are not part of the guarantee (side channels).",
            facts.context.trust_line,
        ),
        tested(
            f"Released values are rounded to multiples of {facts.output_grid or 'the output grid'} after the noise; "
            "that cannot weaken the guarantee.",
            Note("post-processing"),
        ),
    ]
    return found


def outputs_table(facts: Facts) -> Table:
    """How far the numbers of each output are off."""
    rows = tuple(
        (o.name, o.size.text, o.typical.text, o.least.text, o.largest.text, o.without_noise.text)
        for o in facts.outputs
    )
    return Table(
        "Noise in the released numbers, in units of the output (certificate entry loss)",
        ("Output", "Numbers", "Root mean square", "Least", "Largest", "Without noise"),
        rows or (("not stated in the plan", "", "", "", "", ""),),
        numeric=frozenset(range(1, 6)),
    )


def _data(facts: Facts) -> tuple[Block, ...]:
    found: list[Sentence] = []
    for item in facts.inputs:
        what = "counts of a table" if item.layout == "cells" else f"{item.size} values, {item.limits}"
        found.append(asserted(f"Secret input {item.name}: {what}.", item.line))
        if item.clipped:
            found.append(
                tested(
                    f"Values of {item.name} outside {item.limits} are clipped to it before anything else.",
                    item.line,
                )
            )
    found.append(
        assumed(
            "That the data are what their owner says, and were collected lawfully, is outside this report.",
            facts.context.trust_line,
        )
    )
    found.append(
        asserted(
            "Everything that is not an input is public: parameters, constants, domains and sizes.",
            facts.context.trust_line,
        )
    )
    return (Points(tuple(found)),)


def _standing(facts: Facts) -> tuple[Sentence, ...]:
    line = facts.context.trust_line
    return (
        assumed(
            "The machine that runs the release is not compromised and runs this software unchanged.", line
        ),
        assumed("The generator of the operating system cannot be predicted.", line),
    )


def _residual(facts: Facts) -> tuple[Block, ...]:
    weakest = facts.weakest
    line = facts.context.trust_line
    measures = [
        proved(
            "Measure: noise is added to what is released, by the plan that this report describes.", _PRIVACY
        ),
        tested("Measure: a ledger limits how often the data are used.", Note("post-processing")),
    ]
    risks: list[Sentence] = []
    if weakest is not None and weakest.shown is not None:
        risks.append(
            proved(
                f"Residual risk: an observer can tell apart “took part” and “did not” with an advantage of at most "
                f"{weakest.shown.advantage} compared with not taking part.",
                _ODDS,
                _PRIVACY,
            )
        )
    risks += [
        assumed("Residual risk: facts about groups can be learned, and may be used on their members.", _ODDS),
        assumed("Residual risk: other releases of the same data add to this one.", line),
    ]
    return (Points(tuple(measures + risks)),)


def _commands(facts: Facts) -> Listing:
    plan = f"{facts.name}.plan.json"
    return Listing(
        "Re-check every claim without the compiler and the solver, and see the same plan as an engineer",
        f"privspec verify {plan}\nprivspec explain {plan} --for engineer -o {facts.name}.engineer.html",
    )
