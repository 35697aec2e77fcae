"""Privacy of noise at statistics: moves of the exact statistic against the law of the noise, for every party."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from privspec.certify.measures import Finding
from privspec.certify.motion import NotUnderstood
from privspec.certify.promises import claim, with_figures
from privspec.certify.reading import Guarantee, Malformed
from privspec.certify.report import Claim
from privspec.certify.statistics.noise import Noise
from privspec.certify.statistics.spreads import Moves
from privspec.certify.statistics.subject import StatisticSubject
from privspec.model.measures import Measure, Personalised
from privspec.model.neighbours import ReplacingEverything, ReplacingRecord, ReplacingVoter
from privspec.model.requirements import Curator, Nobody, Requirement


def privacy(subject: StatisticSubject) -> Iterator[Claim]:
    """Who may see what, then every guarantee."""
    wrong = [*_places(subject), *_spreads(subject)]
    for text in wrong:
        yield Claim("privacy", "failed", text)
    for guarantee in subject.guarantees:
        if not 0 <= guarantee.requirement < len(subject.requirements):
            raise Malformed(f"{guarantee.place}: there is no requirement {guarantee.requirement}")
        yield from _guarantee(subject, guarantee, subject.requirements[guarantee.requirement])


def _places(subject: StatisticSubject) -> Iterator[str]:
    """Where noise enters, and its families, are allowed."""
    model, each = subject.model, subject.each_party
    if isinstance(model.trust, Nobody) and not each:
        yield "with trust nobody, every party adds noise to its own statistic; here noise enters at the pool"
    elif not isinstance(model.trust, Curator | Nobody):
        yield f"trust {model.trust.name} is not covered by this checker"
    if model.noise_at is not None and subject.site not in model.noise_at:
        yield f"noise at {subject.site} is not what the spec allows: {', '.join(model.noise_at)}"
    families = {noise.family for noise in subject.noises}
    if model.families and not families <= set(model.families):
        yield f"noise of family {', '.join(sorted(families))} is not what the spec allows"
    if not each and any(_local(requirement.measure) for requirement in subject.requirements):
        yield "a requirement on each party's own report, and noise enters at the pool only"
    if not each and any(noise.each_party_only for noise in subject.noises):
        yield "reports of a sphere are made by each party, not at the pool"


def _local(measure: Measure) -> bool:
    """Whether it is about one party's report."""
    return any(one.local for one in measure.each) if isinstance(measure, Personalised) else measure.local


def _spreads(subject: StatisticSubject) -> Iterator[str]:
    """Spreads and bounds that the plan lists are true of one of the requirements, which decided the noise."""
    moves = [_moves(subject, requirement) for requirement in subject.requirements]
    for noise in dict.fromkeys(subject.noises):
        if not any(noise.covers(one, subject.statistic) for one in moves):
            yield f"one unit moves the {subject.statistic.name} further than the plan says"


def _moves(subject: StatisticSubject, requirement: Requirement) -> Moves:
    """What one unit of a requirement moves: one party's statistic, or the sum over parties, by as much."""
    relation, meaning, statistic = requirement.neighbours, subject.meaning, subject.statistic
    if relation.group != 1 or relation.adding:
        raise NotUnderstood(f"{relation.describe()} where statistics are made noisy")
    match relation:
        case ReplacingRecord():
            # A local requirement compares any two values of all that a party holds.
            return statistic.party if _local(requirement.measure) else statistic.record
        case ReplacingVoter(party=party) if party == meaning.party:
            return statistic.party
        case ReplacingEverything() if meaning.parties == 1:
            return statistic.party
    raise NotUnderstood(f"{relation.describe()} where statistics are made noisy")


def _guarantee(subject: StatisticSubject, guarantee: Guarantee, requirement: Requirement) -> Iterator[Claim]:
    meaning = subject.meaning
    if requirement.outputs != (meaning.output,) or requirement.wrt != (meaning.source,):
        raise NotUnderstood(f"a requirement that is not on {meaning.output} with respect to {meaning.source}")
    moves = _moves(subject, requirement)
    found = [
        (noise.amount(moves, subject.statistic), noise, measure)
        for noise, measure in _protected(subject, guarantee, requirement)
    ]
    yield from _achieved(guarantee, requirement, [(amount, noise) for amount, noise, _ in found])
    findings = [noise.proves(measure, amount) for amount, noise, measure in found]
    worst = next((f for f in findings if not f.holds), None) or min(
        findings, key=lambda f: 0.0 if f.margin is None else f.margin
    )
    head = f"{meaning.output}, {requirement.neighbours.describe()}, {subject.statistic.name}: "
    yield claim("privacy", Finding(worst.holds, head + worst.text, worst.margin))


def _protected(
    subject: StatisticSubject, guarantee: Guarantee, requirement: Requirement
) -> list[tuple[Noise, Measure]]:
    """Every different pair of a noise and a measure that it must meet: that of each party."""
    measure, parties = requirement.measure, subject.meaning.parties
    if not isinstance(measure, Personalised):
        said = with_figures(measure, dict(guarantee.figures))
        return [(noise, said) for noise in dict.fromkeys(subject.noises)]
    if measure.party != subject.meaning.party or len(measure.each) != parties:
        raise NotUnderstood("amounts of another index set than that of the records")
    noises = subject.noises if len(subject.noises) > 1 else subject.noises * parties
    return list(dict.fromkeys(zip(noises, measure.each, strict=True)))


def _achieved(guarantee: Guarantee, requirement: Requirement, found: list[tuple[Fraction, Noise]]) -> Iterator[Claim]:
    """The figures that the plan says it reaches are not below those derived, and keep what they are for."""
    figures = {noise.figure for _, noise in found}
    if len(figures) != 1 or not figures <= set(guarantee.achieved):
        raise Malformed(f"{guarantee.place}.achieved does not give {' and '.join(sorted(figures))}")
    figure = figures.pop()
    said, worst = guarantee.achieved[figure], max(amount for amount, _ in found)
    holds = worst <= said
    text = f"{figure} re-derived {float(worst):.8g} {'≤' if holds else '>'} {float(said):.8g} that the plan says"
    yield claim("achieved", Finding(holds, text, float(1 - worst / said) if said > 0 else None))
    measure = requirement.measure
    one = measure.each[0] if isinstance(measure, Personalised) else measure
    further = {key: value for key, value in guarantee.achieved.items() if key != figure}
    if not set(further) <= set(one.amounts):
        raise Malformed(f"{guarantee.place}.achieved gives figures without a meaning")
    if further and not next(noise for _, noise in found).proves(with_figures(one, further), worst).holds:
        yield Claim("achieved", "failed", f"{guarantee.place}: the figures are below what is derived")
