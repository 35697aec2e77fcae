"""The page for auditors, in the order of NIST SP 800-226; every sentence with its status and source."""

from __future__ import annotations

from shlex import quote

from privspec.explain.accuracy import accuracy_tables
from privspec.explain.auditor_guarantee import composition_blocks, guarantee_blocks
from privspec.explain.document import Document, Listing, Points, Section, Table
from privspec.explain.fact_types import InputFact
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
from privspec.explain.words import noise_words

_PRIVACY = CertificateEntry("privacy")
_LOSS, _SITES = CertificateEntry("loss"), CertificateEntry("sites")
_ODDS, _LEDGER, _POST = Note("odds"), Note("ledger"), Note("post-processing")


def auditor_page(facts: Facts) -> Document:
    """Guarantee, composition, trust, mechanism, data, assumptions, residual risk, and how to check them."""
    return Document(
        title=f"Privacy report: {facts.name}",
        subtitle=facts.title,
        reader="auditor",
        shows_basis=True,
        sections=(
            Section("How to read this report", (legend(),)),
            Section("Guarantee", guarantee_blocks(facts)),
            Section("Composition over all releases", composition_blocks(facts)),
            Section("Trust model", (Points(_trust(facts)),)),
            Section(
                "Mechanism and implementation",
                (Points(_mechanism(facts)), outputs_table(facts), *accuracy_tables(facts)),
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
    found = [proved(f"Where the noise goes: {noise_words(facts)}.", facts.context.sites_because, _SITES)]
    found += _loss(facts)
    found += _implementation(facts)
    found += [assumed(gap, facts.context.trust_because) for gap in facts.gaps]
    return tuple(found)


def _loss(facts: Facts) -> list[Sentence]:
    loss = facts.loss
    if loss is None:
        return []
    words = f"The loss {loss.expression} is {loss.value} ({loss.units})."
    found = [proved(words, facts.context.loss_because, _LOSS)]
    if loss.lower_bound is not None and loss.gap is not None:
        words = (
            f"No mechanism among those considered ({loss.among}) has a loss below {loss.lower_bound}; "
            f"the relative gap is {loss.gap}."
        )
        found.append(proved(words, Note("placement"), CertificateEntry("optimality")))
    if loss.standard_error is not None:
        words = f"The loss was simulated; its standard error is {loss.standard_error}."
        found.append(tested(words, facts.context.loss_because))
    return found


_LAWS = {
    "gaussian": ("Gaussian noise", "rounded-gaussian"),
    "laplace": ("Laplace noise", "discrete-laplace"),
    "knorm-l2": ("K-norm noise", "knorm-l2"),
}
_LATTICES = {
    "strategy": "the noisy values are lattice points of step {grid}",
    "outputs": "each released number is the point of the output grid nearest to an exact real number",
}


def _implementation(facts: Facts) -> list[Sentence]:
    law, name = _LAWS.get(facts.noise_shape, (f"noise of the shape “{facts.noise_shape}”", "post-processing"))
    note = Note(name)
    lattice = _LATTICES[facts.rounding].format(grid=facts.noise_grid or "that the plan does not state")
    return [
        proved(
            f"What is executed is {law} drawn in exact arithmetic: {lattice}, so that the low bits of "
            "floating-point "
            "numbers cannot reveal anything.",
            note,
        ),
        tested(
            "Randomness comes from the operating system's generator; a seed is accepted for simulations "
            "only, and the "
            "output then says that it is not private.",
            note,
        ),
        assumed(
            "Side channels: the time a run takes and the memory it uses are not part of the guarantee.",
            note,
        ),
        proved(
            f"Released values lie on a grid of step {facts.output_grid or 'not stated'}; rounding to it "
            "after the noise "
            "cannot weaken the guarantee.",
            _POST,
        ),
    ]


def outputs_table(facts: Facts) -> Table:
    """How far the numbers of each output are off."""
    rows = tuple(
        (o.name, o.size.text, o.typical.text, o.least.text, o.largest.text, o.without_noise.text) for o in facts.outputs
    )
    return Table(
        "Noise in the released numbers, in units of the output (certificate entry covariance)",
        ("Output", "Numbers", "Root mean square", "Least", "Largest", "Without noise"),
        rows or (("not stated in the plan", "", "", "", "", ""),),
        numeric=frozenset(range(1, 6)),
    )


def _data(facts: Facts) -> tuple[Sentence, ...]:
    found: list[Sentence] = []
    for item in facts.inputs:
        limits = f", {item.limits}" if item.limits else ""
        found.append(asserted(f"Secret input {item.name}: {item.size} {item.layout}{limits}.", item.because))
        if item.clipped and not _stated_clipping(facts, item):
            words = f"Values of {item.name} outside their limits are clipped to them before anything else."
            found.append(tested(words, item.because))
    because = facts.inputs[0].because if facts.inputs else facts.context.trust_because
    return (
        *found,
        asserted("All that is not an input is public: parameters, constants, domains and sizes.", because),
        assumed(
            "That the data are what their owner says, and were collected lawfully, is outside this report.",
            because,
        ),
    )


def _stated_clipping(facts: Facts, item: InputFact) -> bool:
    """Whether the plan itself says, with its own status, that an input is clipped."""
    return any(item.because in s.because and "clipped" in s.text for s in facts.assumptions)


def _assumptions(facts: Facts) -> tuple[Sentence, ...]:
    machine = "The machine that runs the release is not compromised and runs this software unchanged."
    return (*facts.assumptions, assumed(machine, facts.context.trust_because))


def _residual(facts: Facts) -> tuple[Sentence, ...]:
    weakest = facts.weakest
    found = [
        proved("Measure: noise is added to what is released, by the plan that this report describes.", _PRIVACY),
        tested("Measure: a ledger limits how often the data are used.", _LEDGER),
    ]
    if weakest is not None and weakest.shown is not None:
        words = (
            "Residual risk: compared with not taking part, an observer can tell “took part” from “did "
            "not” with an "
            f"advantage of at most {weakest.shown.advantage}."
        )
        found.append(proved(words, _ODDS, _PRIVACY))
    return (
        *found,
        assumed("Residual risk: facts about groups can be learned, and may be used on their members.", _ODDS),
        assumed("Residual risk: other releases of the same data add to this one.", _LEDGER),
    )


def _commands(facts: Facts) -> Listing:
    plan, page = quote(facts.plan_file), quote(f"{facts.stem}.engineer.html")
    return Listing(
        "Re-check every claim without the compiler and the solver, and read the same plan as an engineer",
        f"privspec verify {plan}\nprivspec explain {plan} --for engineer -o {page}",
    )
