"""Privacy of a lottery: the closed form for every profile, and by enumeration of all profiles of a few voters."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from privspec.certify.lotteries.profiles import PAIR_LIMIT, largest, pairs
from privspec.certify.lotteries.rules import Change, Dummies, Exponential, PermuteAndFlip, Ratio, Reports, Winner
from privspec.certify.lotteries.subject import LotterySubject
from privspec.certify.measures import Finding, pure_proves
from privspec.certify.motion import NotUnderstood
from privspec.certify.promises import claim
from privspec.certify.reading import Guarantee, Malformed
from privspec.certify.report import Claim
from privspec.model.requirements import Requirement

CLOSE = 1e-9
"""Relative distance of an epsilon from the one derived."""


def privacy(subject: LotterySubject) -> Iterator[Claim]:
    """Who sees what, then every guarantee, then the closed forms against enumeration."""
    subject.rule.check(subject.ballots)
    for text in subject.forbidden(subject.rule):
        yield Claim("privacy", "failed", text)
    changes: dict[Change, None] = {}
    for guarantee in subject.guarantees:
        requirement = subject.requirements[guarantee.requirement]
        changes[subject.change(requirement)] = None
        yield from _guarantee(subject, guarantee, requirement)
    for change in changes:
        yield enumerated(subject, change)


def _guarantee(subject: LotterySubject, guarantee: Guarantee, requirement: Requirement) -> Iterator[Claim]:
    meaning = subject.meaning
    if requirement.outputs != (meaning.output,) or requirement.wrt != (meaning.source,):
        raise NotUnderstood(f"a requirement that is not on {meaning.output} with respect to {meaning.source}")
    change = subject.change(requirement)
    bound, near = subject.rule.ratio(subject.ballots, change), nearest(subject, change)
    measure = subject.measure(requirement)
    head = f"{meaning.output}, {requirement.neighbours.describe()}: largest ratio of probabilities e^{near.log:.10g}"
    said = guarantee.achieved.get("epsilon")
    if said is None or said < 0 or set(guarantee.achieved) != {"epsilon"}:
        raise Malformed(f"{guarantee.place}.achieved does not give epsilon")
    proved = near.within(said) or bound.within(said)
    kept = pure_proves(measure, said)
    sign = "≤" if proved else ">"
    yield claim("privacy", Finding(proved and kept.holds, f"{head} {sign} e^{float(said):.10g}; {kept.text}"))
    if not any(abs(float(said) - log) <= CLOSE * max(log, CLOSE) for log in (near.log, bound.log)):
        yield Claim("achieved", "failed", f"{guarantee.place} does not say what the rule spends: {near.log:.10g}")
    else:
        text = f"ε re-derived {near.log:.10g}, the plan says {float(said):.10g}"
        yield claim("achieved", Finding(True, text, float(1 - near.log / float(said)) if said else None))


def nearest(subject: LotterySubject, change: Change) -> Ratio:
    """The closed form, or for a known number of few voters the largest ratio of all pairs of profiles."""
    rule, ballots = subject.rule, subject.ballots
    closed = rule.at(ballots, change)
    few = not change.adding and pairs(ballots, change, change.voters) <= PAIR_LIMIT
    if not isinstance(rule, Exponential | PermuteAndFlip) or not few:
        return closed
    found = Ratio(largest(rule, ballots, change, change.voters))
    return found if found.log < closed.log else closed


# --- by enumeration ------------------------------------------------------------------------------------


def enumerated(subject: LotterySubject, change: Change) -> Claim:
    """The rule of the plan at every pair of profiles of a few voters never exceeds what the closed form says."""
    rule, ballots = subject.rule, subject.ballots
    if isinstance(rule, Reports) and rule.seen:
        return _reports(subject)
    last = None
    for voters in range(subject.meaning.voters + 1):
        if pairs(ballots, change, voters) > PAIR_LIMIT or (last is not None and voters > 8):
            break
        found = largest(rule, ballots, change, voters)
        here = Change(change.adding, change.group, voters)
        broken = _against(found, rule.at(ballots, here), exact=_attained(subject, change, voters))
        if broken:
            return Claim("privacy", "failed", f"profiles of {voters} voters: {broken}")
        last = voters
    if not last and subject.meaning.voters:
        return Claim("enumeration", "not checked", "all profiles of a few voters: there are too many ballots")
    relation = "adding or removing" if change.adding else "replacing"
    text = f"{relation} up to {change.group}: the ratio at all profiles of up to {last} voters, one by one"
    return Claim("enumeration", "ok", text)


def _attained(subject: LotterySubject, change: Change, voters: int) -> bool:
    """Whether the closed form is the largest ratio of exactly so many voters."""
    ballots, rule = subject.ballots, subject.rule
    if isinstance(rule, Winner):
        return True
    if change.adding or not ballots.reaches_zero:
        return False
    return isinstance(rule, Dummies) or (rule.at(ballots, change) != rule.ratio(ballots, change) and voters <= 64)


def _against(found: Fraction | None, closed: Ratio, *, exact: bool) -> str | None:
    if found is None:
        return None if closed.base is None else "an alternative can win at one of two neighbours only"
    if closed.value is None:
        return None
    if found > closed.value:
        return f"a ratio of {float(found):.10g} is above {float(closed.value):.10g}"
    if exact and found != closed.value:
        return f"the largest ratio is {float(found):.10g}, not {float(closed.value):.10g}"
    return None


def _reports(subject: LotterySubject) -> Claim:
    """One report, all pairs of ballots: its law is the rule's for one voter."""
    ballots = subject.ballots
    found = largest(subject.rule, ballots, Change(False, 1, 1), 1)
    broken = _against(found, subject.rule.ratio(ballots, Change(False, 1, 1)), exact=ballots.reaches_zero)
    if broken or found is None:
        return Claim("privacy", "failed", f"reports: {broken}")
    return Claim("enumeration", "ok", f"the ratio of one report at all pairs of ballots: {float(found):.10g}")
