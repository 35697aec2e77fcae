"""The page for auditors, in the order of NIST SP 800-226; every sentence with its status and source."""

from __future__ import annotations

from shlex import quote

from privspec.explain.accuracy import accuracy_tables, fairness_blocks
from privspec.explain.auditor_guarantee import composition_blocks, exposure_blocks, guarantee_blocks
from privspec.explain.document import Document, Listing, Points, Section, Table
from privspec.explain.facts import Facts
from privspec.explain.sentences import (
    CertificateEntry,
    Note,
    Sentence,
    Status,
    asserted,
    assumed,
    proved,
    tested,
)
from privspec.explain.words import joined

_PRIVACY = CertificateEntry("privacy")
_LOSS = CertificateEntry("loss")
_ODDS, _LEDGER = Note("odds"), Note("ledger")


def auditor_page(facts: Facts) -> Document:
    """Guarantee, composition, trust, mechanism, data, assumptions, residual risk, and how to check them."""
    return Document(
        title=f"Privacy report: {facts.name}",
        subtitle=facts.title,
        reader="auditor",
        shows_basis=True,
        sections=(
            Section("How to read this report", (legend(),)),
            *((Section("What no guarantee covers", bare),) if (bare := exposure_blocks(facts)) else ()),
            Section("Guarantee", guarantee_blocks(facts)),
            Section("Composition over all releases", composition_blocks(facts)),
            *((Section("Fairness", fairness_blocks(facts)),) if facts.fairness else ()),
            Section("Trust model", (Points(_trust(facts)),)),
            Section(
                "Mechanism and implementation",
                (Points(_mechanism(facts)), *facts.mechanism.auditor_tables(facts), *accuracy_tables(facts)),
            ),
            Section("Data collection and access", (Points(_data(facts)),)),
            Section("Assumptions", (Points(_assumptions(facts)),)),
            Section("Measures and residual risk", (Points(_residual(facts)),)),
            Section("How to check this report", (_commands(facts),)),
        ),
        footer=f"Plan fingerprint (SHA-256) {facts.digest}; spec fingerprint {facts.spec_sha256}.",
    )


def legend() -> Table:
    """What the four statuses mean."""
    rows = tuple((status.value, status.meaning) for status in Status)
    return Table("Every sentence is followed by its status and by what it rests on", ("Status", "Meaning"), rows)


def _trust(facts: Facts) -> tuple[Sentence, ...]:
    because = facts.context.trust_because
    words = facts.context.trust_words
    how = "is stated in the spec" if facts.context.trust_stated else "is the default, as the spec states none"
    found = [asserted(f"The trust model is “{facts.context.trust}”; it {how}.", because)]
    if words is None:
        return (*found, assumed("This report has no description of that trust model.", because))
    return (
        *found,
        assumed(words.auditor, because),
        assumed(f"Could a stolen server reveal raw data? {words.stolen_server}", because),
    )


def _mechanism(facts: Facts) -> tuple[Sentence, ...]:
    mechanism = facts.mechanism
    found = [
        proved(f"{mechanism.drawn_label}: {mechanism.drawn(facts)}.", facts.context.sites_because, mechanism.entry)
    ]
    found += _loss(facts)
    found += mechanism.auditor_points(facts)
    found += [assumed(gap, facts.context.trust_because) for gap in facts.gaps]
    return tuple(found)


def _loss(facts: Facts) -> list[Sentence]:
    loss = facts.loss
    if loss is None:
        return []
    words = f"The loss {loss.expression} is {loss.value}{f' ({loss.units})' if loss.units else ''}."
    found = [proved(words, facts.context.loss_because, _LOSS), *tie_sentences(facts)]
    if loss.lower_bound is not None and loss.gap is not None:
        words = (
            f"No mechanism among those considered ({loss.among}) has a loss below {loss.lower_bound}; "
            f"the relative gap is {loss.gap}."
        )
        found.append(proved(words, facts.mechanism.loss_note, CertificateEntry("optimality")))
    if loss.standard_error is not None:
        words = f"The loss was simulated; its standard error is {loss.standard_error}."
        found.append(tested(words, facts.context.loss_because))
    return found


def tie_sentences(facts: Facts) -> list[Sentence]:
    """What counts where several are equal: part of what the loss means."""
    return [
        proved(
            f"In the loss, {name} takes, among equals, {taken}: where several are level, any other winner counts as "
            "another one.",
            facts.context.loss_because,
        )
        for name, taken in facts.context.ties.items()
    ]


def _data(facts: Facts) -> tuple[Sentence, ...]:
    found = facts.mechanism.data(facts)
    because = found[0].because if found else (facts.context.trust_because,)
    return (
        *found,
        asserted(f"All that is not an input is public: parameters, constants, domains{_sizes(facts)}.", *because),
        assumed(
            "That the data are what their owner says, and were collected lawfully, is outside this report.",
            *because,
        ),
    )


def _sizes(facts: Facts) -> str:
    """Sizes are public unless some guarantee hides how many units there are."""
    adding = [f.claim.relation.plural for f in facts.claims if f.claim.relation.adds]
    if not adding:
        return " and sizes"
    return f", and sizes but for the number of {joined(list(dict.fromkeys(adding)))}, which is secret"


def _assumptions(facts: Facts) -> tuple[Sentence, ...]:
    machine = "The machine that runs the release is not compromised and runs this software unchanged."
    return (*facts.assumptions, assumed(machine, facts.context.trust_because))


def _residual(facts: Facts) -> tuple[Sentence, ...]:
    weakest = facts.weakest
    found = [
        proved(f"Measure: {facts.mechanism.measure}", _PRIVACY),
        tested(
            "Measure: a ledger limits what all releases of the data together spend, as long as the keeper keeps it.",
            _LEDGER,
        ),
    ]
    if weakest is not None and weakest.shown is not None:
        found.append(proved(weakest.question.residual(weakest.shown.advantage.text), _ODDS, _PRIVACY))
    return (
        *found,
        assumed("Residual risk: facts about groups can be learned, and may be used on their members.", _ODDS),
        assumed(
            "Residual risk: releases of the same data that are in no ledger add to this one, and nobody can notice "
            "them.",
            _LEDGER,
        ),
    )


def _commands(facts: Facts) -> Listing:
    plan, page = quote(facts.plan_file), quote(f"{facts.stem}.engineer.html")
    return Listing(
        "Re-check every claim without the compiler and the solver, and read the same plan as an engineer",
        f"privspec verify {plan}\nprivspec explain {plan} --for engineer -o {page}",
    )
