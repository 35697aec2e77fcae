"""Coverage, what is executed against what the spec says, and what is said of the loss."""

from __future__ import annotations

from collections.abc import Iterator

from privspec.certify.promises import mismatches
from privspec.certify.reading import At, Malformed
from privspec.certify.report import Claim
from privspec.certify.statistics.spreads import STEP, WIDER
from privspec.certify.statistics.subject import StatisticSubject
from privspec.core.spans import Source
from privspec.language.parser import parse_expression


def coverage(subject: StatisticSubject) -> Iterator[Claim]:
    """Guarantees of the plan are the requirements of the spec, one for one, on its one output."""
    wrong = []
    listed = [g.requirement for g in subject.guarantees]
    if sorted(listed) != list(range(len(subject.requirements))):
        wrong.append("the guarantees of the plan are not the requirements of the spec, one for one")
    else:
        wrong.extend(w for g in subject.guarantees for w in mismatches(g, subject.requirements[g.requirement]))
    if subject.executed["output"].text() != subject.meaning.output:
        wrong.append("the plan releases another output than the spec names")
    lines = (*subject.model.accuracy, *subject.model.fairness, *subject.model.constraints)
    wrong.extend(f"line {line.line} asks for what such a plan does not answer: {line.text}" for line in lines)
    for text in wrong:
        yield Claim("coverage", "failed", text)
    if not wrong:
        count = len(listed)
        what = "requirement of the spec has its" if count == 1 else "requirements of the spec have their"
        yield Claim("coverage", "ok", f"{count} {what} guarantee, with the same figures")


# --- what is executed ----------------------------------------------------------------------------------


def statistic(subject: StatisticSubject) -> Iterator[Claim]:
    """Input, parties, records, function, ball, pool, route and sites are those of the spec, number for number."""
    wrong = [*_reading(subject), *_route(subject), *_sites(subject), *_weights(subject)]
    for text in wrong:
        yield Claim("statistic", "failed", text)
    if not wrong:
        meaning = subject.meaning
        text = (
            f"{subject.statistic.name}, {subject.statistic.size} numbers on the grid 2^-20, noise at {subject.site}; "
            f"{meaning.parties} x {meaning.records.count} records of {meaning.source}"
        )
        yield Claim("statistic", "ok", text)


def _reading(subject: StatisticSubject) -> Iterator[str]:
    executed, meaning = subject.executed, subject.meaning
    party = executed.get("party")
    if executed["input"].text() != meaning.source or (None if party is None else party.text()) != meaning.party:
        yield "the plan reads other records than the spec names"
    if executed["parties"].integer() != meaning.parties:
        yield f"the spec has {meaning.parties} parties"
    records = executed["records"]
    radius = records.get("radius")
    said = (records["count"].integer(), records["dimension"].integer(), None if radius is None else radius.exact())
    if said != (meaning.records.count, meaning.records.dimension, meaning.records.radius):
        yield "the records are not kept to the number, dimension and ball that the spec declares"
    if executed["grid"].exact() != STEP:
        yield "statistics are put on another grid than the one that sensitivities hold for"
    if subject.plan["mechanism"]["function"].text() != meaning.function:
        yield f"the spec uses {meaning.function}"
    if executed["mean"].flag() != meaning.mean:
        yield f"{meaning.pool} is a {'mean' if meaning.mean else 'sum'}, and the plan computes the other"


def _route(subject: StatisticSubject) -> Iterator[str]:
    route, found, records = subject.executed["route"], subject.statistic, subject.meaning.records
    named = (route["name"].text(), subject.plan["mechanism"]["route"].text(), route["size"].integer())
    if named != (found.name, found.name, found.size):
        yield f"the statistic at {found.at} has another name or size"
    within = route["within"]
    if (within["norm"].text(), within["radius"].exact()) != ("l1" if records.within_l1 else "l2", records.within):
        yield "the weights are looked for in another ball than the spec says"
    estimate = route.get("estimated_within")
    wide = (within["norm"].text(), records.within * WIDER) if found.at in ("direction", "signs") else None
    if wide != (None if estimate is None else (estimate["norm"].text(), estimate["radius"].exact())):
        yield f"the statistic at {found.at} is not of weights estimated in the ball that its name says"
    if subject.executed["finish_first"].flag() and not subject.each_party:
        yield "single results cannot be pooled where noise enters at the pool"


def _sites(subject: StatisticSubject) -> Iterator[str]:
    mechanism, executed = subject.plan["mechanism"], subject.executed
    if mechanism["where"].text() != ("each party" if subject.each_party else "pool"):
        yield "the plan says that noise enters elsewhere than it does"
    sites, noises = mechanism["sites"].items(), executed["noise"].items()
    if len(sites) != len(noises):
        yield "the sites of the plan are not those of the noise that is executed"
    for site, noise in zip(sites, noises, strict=False):
        if site["at"].text() != subject.site or site["grid"].exact() != STEP:
            yield f"{site.place}: noise is at {subject.site}, on the grid 2^-20"
        if {"shape": site["shape"].value, **_mapping(site["parameters"])} != dict(_mapping(noise)):
            yield f"{site.place} is not the noise that is executed"


def _mapping(data: At) -> dict[str, object]:
    if not isinstance(data.value, dict):
        raise Malformed(f"{data.place} is not an object")
    return data.value


def _weights(subject: StatisticSubject) -> Iterator[str]:
    """Weights are public numbers, applied to what is noisy already: they matter for the loss alone."""
    weights = subject.executed.get("weights")
    if weights is None:
        return
    if not subject.each_party or len(weights.items()) != subject.meaning.parties:
        yield "weights are for parties that add noise of their own, one each"
    elif any(weight.exact() < 0 for weight in weights.items()):
        yield "a weight is negative"


# --- what is said of it --------------------------------------------------------------------------------


def loss(subject: StatisticSubject) -> Iterator[Claim]:
    """The expression is that of the spec; its value was found by simulation and is not found again."""
    stated = subject.plan["loss"]
    stated["value"].double()
    if stated["kind"].text() != "expected":
        yield Claim("loss", "failed", f"the loss of the spec is not of the kind {stated['kind'].text()!r}")
    if parse_expression(Source("plan", stated["expression"].text())) != subject.model.loss:
        yield Claim("loss", "failed", "the loss of the plan is not the loss of the spec")
    error, crowds = stated["standard_error"].double(), stated["crowds"].integer()
    if error < 0 or crowds < 1:
        yield Claim("loss", "failed", "a loss without a simulation that it comes from")
        return
    text = f"the predicted loss: a mean over {crowds} simulated crowds, with a standard error of {error:.2g}"
    yield Claim("loss", "not checked", text)


def optimality(subject: StatisticSubject) -> Iterator[Claim]:
    """Nothing may be claimed: ranking by simulation proves nothing about other mechanisms."""
    stated = subject.plan["loss"]
    claimed = [key for key in ("lower_bound", "relative_gap") if stated.get(key) is not None]
    if subject.plan["status"].text() != "feasible" or claimed:
        yield Claim("optimality", "failed", "a bound is claimed without its proof")
    else:
        yield Claim("optimality", "not checked", "whether a better mechanism exists: no lower bound is claimed")


def binding(subject: StatisticSubject) -> Iterator[Claim]:
    """Prices, where a plan lists any, come from simulation."""
    listed = subject.plan["remarks"].get("binding")
    items = [] if listed is None else listed.items()
    for item in items:
        item["loss_change"].double()
        line, text = item["line"].integer(), item["text"].text()
        if not any(r.line == line and r.text == text for r in subject.requirements):
            raise Malformed(f"{item.place} is no requirement of the spec")
    if items:
        yield Claim("binding", "not checked", "what a change of a requirement would do to the loss")
