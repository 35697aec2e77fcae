"""What a plan says of rules that it did not choose: none that is allowed may be better than the plan or its bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from privspec.certify.lotteries.claims import DEVIATIONS, SIMULATED, near, of_rule
from privspec.certify.lotteries.losses import total
from privspec.certify.lotteries.privacy import nearest
from privspec.certify.lotteries.properties import flags
from privspec.certify.lotteries.rules import Dummies, Reports, Rule, read_rule
from privspec.certify.lotteries.subject import LotterySubject
from privspec.certify.lotteries.truthful import gained, limits_lies
from privspec.certify.motion import NotUnderstood
from privspec.certify.reading import At, Malformed
from privspec.certify.relations import Unbounded
from privspec.certify.report import Claim

SLACK = 1e-9
"""Relative distance of two losses that count as equal."""


def alternatives(subject: LotterySubject) -> Iterator[Claim]:
    """Losses against that of the plan; whatever an alternative whose rule is listed says of itself."""
    listed = subject.plan["alternatives"].items()
    unknown = []
    found: list[Claim] = []
    for item in listed:
        found.extend(_order(subject, item))
        rule = item.get("rule")
        if rule is None:
            unknown.append(item["name"].text())
        else:
            found.extend(_one(subject, item, _read(subject, rule)))
    yield from (claim for claim in found if claim.status != "ok")
    if listed and all(claim.status != "failed" for claim in found):
        again = len(listed) - len(unknown)
        text = f"{len(listed)} other rules, no admissible one with a smaller loss; {again} of them derived again"
        yield Claim("alternatives", "ok", text)
    if unknown:
        yield Claim("alternatives", "not checked", f"losses and figures of {', '.join(unknown)}")
    yield from _considered(subject)


def _considered(subject: LotterySubject) -> Iterator[Claim]:
    """Rules that have no loss, with the reason; what they keep is tested where a lottery is listed."""
    given = subject.plan["remarks"].get("considered")
    for item in [] if given is None else given.items():
        name, rule, kept = item["name"].text(), item.get("rule"), item["properties"]
        if not item["reason"].text():
            yield Claim("alternatives", "failed", f"{name} is left out without a reason")
        if rule is None:
            if kept.value != {}:
                yield Claim("alternatives", "failed", f"{name} keeps properties without being a lottery")
            continue
        found = _read(subject, rule)
        found.check(subject.ballots)
        wrong = (claim for claim in flags(found, subject.ballots, kept) if claim.status != "ok")
        yield from (Claim("alternatives", claim.status, f"{name}: {claim.text}") for claim in wrong)


def _read(subject: LotterySubject, data: At) -> Rule:
    """The rule of an alternative; that without noise counts as no dummy votes."""
    none = data["family"].text() == "none"
    if none and data["dummy_votes"].exact() != 0:
        raise Malformed(f"{data.place} has dummy votes")
    rule = Dummies(Fraction(0)) if none else read_rule(data)
    if isinstance(rule, Reports) and isinstance(subject.rule, Reports):
        return replace(rule, seen=subject.rule.seen)
    return replace(rule, seen=subject.reports_seen) if isinstance(rule, Reports) else rule


def _order(subject: LotterySubject, item: At) -> Iterator[Claim]:
    stated = subject.plan["loss"]
    own, bound, error = stated["value"].double(), stated.get("lower_bound"), stated.get("standard_error")
    slack = SLACK * abs(own) + (0.0 if error is None else DEVIATIONS * error.double())
    name, admissible = item["name"].text(), item["admissible"].flag()
    item["reason"].text()
    value = item["loss"]
    if admissible and value.double() < own - slack:
        yield Claim("alternatives", "failed", f"{name} is said to be possible and better than the plan")
    if admissible and bound is not None and value.double() < bound.double() - SLACK * abs(bound.double()):
        yield Claim("alternatives", "failed", f"{name} is said to be better than possible")


def _one(subject: LotterySubject, item: At, rule: Rule) -> Iterator[Claim]:
    """An alternative as if it were the plan's rule."""
    name, other = item["name"].text(), replace(subject, rule=rule)
    rule.check(subject.ballots)
    yield from _loss(other, item, name)
    figures = item["figures"]
    for claim in (*of_rule(other, figures, "alternatives"), *flags(rule, subject.ballots, figures["properties"])):
        yield Claim("alternatives", claim.status, f"{name}: {claim.text}")
    said = figures.get("epsilon")
    try:
        changes = [subject.change(requirement) for requirement in subject.requirements]
        spent = [nearest(other, change) for change in changes]
        known = [*spent, *(rule.ratio(subject.ballots, change) for change in changes)]
    except Unbounded:
        spent = known = []
    if said is not None:
        close = any(abs(ratio.log - float(said.exact())) <= SLACK * max(ratio.log, SLACK) for ratio in known)
        if not close or not all(ratio.within(said.exact()) for ratio in spent):
            yield Claim("alternatives", "failed", f"{name}: its epsilon is another")
    allowed = [subject.measure(r).amounts.get("epsilon") for r in subject.requirements]
    if item["admissible"].flag() and not subject.model.choices:
        kept = all(limit is not None and ratio.within(limit) for ratio, limit in zip(spent, allowed, strict=False))
        if not kept or len(spent) < len(allowed) or subject.forbidden(rule):
            yield Claim("alternatives", "failed", f"{name} is said to be possible, and a line or option forbids it")
    lies = any(limits_lies(subject, line) for line in subject.model.accuracy)
    if item["admissible"].flag() and lies and gained(other) is None:
        yield Claim("alternatives", "failed", f"{name} is said to be possible, and lies may pay")


def _loss(other: LotterySubject, item: At, name: str) -> Iterator[Claim]:
    value, error, least = item["loss"], item.get("standard_error"), item.get("at_least")
    if other.model.loss is None:
        return
    if other.model.choices:
        yield Claim("alternatives", "not checked", f"the number that {name} would lead to")
        return
    said = value.double()
    try:
        found = total(other, other.model.loss)
    except NotUnderstood as reason:
        yield Claim("alternatives", "not checked", f"the loss of {name} ({reason})")
        return
    # a simulation that is told to be off by more says nothing of what can be worked out
    off = 0.0 if error is None else DEVIATIONS * min(error.double(), SIMULATED * abs(float(found)))
    fits = near(said, found) or abs(said - float(found)) <= off
    if least is not None and least.flag():
        fits = Fraction(said) <= found * (1 + Fraction(1, 10**9))
    if not fits:
        yield Claim("alternatives", "failed", f"{name}: its loss is {float(found):.10g}, the plan says {said:.10g}")
    if item["figures"].value is None:
        raise Malformed(f"{item.place} has no figures")
