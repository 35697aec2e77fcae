"""Coverage, and what a plan says of its loss, its accuracy, and of itself in figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import log

from privspec.certify.lotteries.costs import LARGEST, SHARES, TARGETS, Apart, VotesMissed
from privspec.certify.lotteries.losses import listable, single, total
from privspec.certify.lotteries.meaning import BORDA, FIRST, expanded
from privspec.certify.lotteries.rules import Dummies
from privspec.certify.lotteries.subject import LotterySubject
from privspec.certify.lotteries.truthful import gained, limits_lies
from privspec.certify.measures import Finding
from privspec.certify.motion import NotUnderstood
from privspec.certify.promises import claim, mismatches
from privspec.certify.reading import At, Malformed
from privspec.certify.report import Claim
from privspec.core.spans import Source
from privspec.language import syntax
from privspec.language.parser import parse_expression
from privspec.language.walk import walk
from privspec.model.evaluate import evaluate
from privspec.model.targets import environment

CLOSE = Fraction(1, 10**9)
"""Relative distance of a figure from the one derived."""
ROUNDED = Fraction(1, 10**15)
ENCLOSED = Fraction(1, 2**99)
"""Losses over profiles are derived within half of this."""
DEVIATIONS = 6
"""Standard errors by which a simulated figure may be off."""


def near(said: float, found: Fraction) -> bool:
    """Whether a figure is the one derived, but for rounding."""
    return abs(Fraction(said) - found) <= abs(found) * CLOSE + ROUNDED


# --- coverage ------------------------------------------------------------------------------------------


def coverage(subject: LotterySubject) -> Iterator[Claim]:
    """Guarantees are the requirements of the spec, one for one; votes, alternatives and winner are as there."""
    wrong = list(_reading(subject))
    listed = [g.requirement for g in subject.guarantees]
    if sorted(listed) != list(range(len(subject.requirements))):
        wrong.append("the guarantees of the plan are not the requirements of the spec, one for one")
    else:
        for guarantee in subject.guarantees:
            asked = subject.requirements[guarantee.requirement]
            wrong.extend(mismatches(guarantee, replace(asked, measure=subject.measure(asked))))
    lines = (*subject.model.fairness, *subject.model.constraints)
    wrong.extend(f"line {line.line} asks for what such a plan does not answer: {line.text}" for line in lines)
    for text in wrong:
        yield Claim("coverage", "failed", text)
    if not wrong:
        count = len(listed)
        what = "requirement of the spec has its" if count == 1 else "requirements of the spec have their"
        yield Claim("coverage", "ok", f"{count} {what} guarantee, with the same figures; votes and winner as there")


def _reading(subject: LotterySubject) -> Iterator[str]:
    mechanism, meaning = subject.plan["mechanism"], subject.meaning
    named = tuple(mechanism[key].text() for key in ("input", "party", "output", "ballots", "points"))
    ballots = meaning.ballots
    if named != (meaning.source, meaning.party, meaning.output, ballots.kind, ballots.points):
        yield "the plan reads other votes, counts other points or releases another winner than the spec says"
    if mechanism["alternatives"].names() != meaning.words:
        yield "the plan has other alternatives than the spec"
    places = mechanism.get("places")
    if places is not None and places.integer() != ballots.places:
        yield "the plan counts other places of a ballot than the spec says"
    voters = mechanism.get("voters")
    if voters is None:
        if not subject.secret_size:
            yield "the plan takes the number of voters as secret, and a requirement is about replacing ballots"
    elif voters.integer() != meaning.voters:
        yield f"the spec has {meaning.voters} voters"


# --- loss ------------------------------------------------------------------------------------------------


def loss(subject: LotterySubject) -> Iterator[Claim]:
    """The expression is that of the spec, and its value is that of the rule over all profiles."""
    stated, model = subject.plan["loss"], subject.model
    said = stated["value"].double()
    if model.loss is None or parse_expression(Source("plan", stated["expression"].text())) != model.loss:
        yield Claim("loss", "failed", "the loss of the plan is not the loss of the spec")
        return
    operators = {node.operator for node in walk(model.loss) if isinstance(node, syntax.Over)}
    if stated["kind"].text() != ("expected" if "E" in operators else "worst"):
        yield Claim("loss", "failed", f"the loss of the spec is not of the kind {stated['kind'].text()!r}")
    error = stated.get("standard_error")
    if error is not None:
        yield from _simulated(subject, said, error, stated["profiles"].integer())
        return
    found = total(subject, model.loss)
    text = f"re-derived {float(found):.10g}, the plan says {said:.10g}"
    yield claim("loss", Finding(near(said, found) and Fraction(said) >= found - ENCLOSED, text))


def _simulated(subject: LotterySubject, said: float, error: At, count: int) -> Iterator[Claim]:
    """A simulation stands only for what cannot be worked out."""
    off = error.double()
    if off < 0 or count < 1:
        yield Claim("loss", "failed", "a loss without a simulation that it comes from")
        return
    assert subject.model.loss is not None
    try:
        found = float(total(subject, subject.model.loss))
    except NotUnderstood:
        text = f"the loss: a mean over {count} simulated profiles, with a standard error of {off:.2g}"
        yield Claim("loss", "not checked", text)
        return
    text = f"a simulated loss of {said:.10g} ± {off:.2g} where the exact one is known: {found:.10g}"
    yield Claim("loss", "failed", text)


# --- accuracy ----------------------------------------------------------------------------------------------


def accuracy(subject: LotterySubject) -> Iterator[Claim]:
    """Every accuracy line holds; figures that the plan states are those of the rule."""
    model = subject.model
    listed = subject.plan.get("accuracy")
    stated = [] if listed is None else listed.items()
    if len(stated) not in (0, len(model.accuracy)):
        yield Claim(
            "accuracy", "failed", f"{len(model.accuracy)} accuracy lines in the spec, {len(stated)} in the plan"
        )
        return
    for i, line in enumerate(model.accuracy):
        target = line.target
        if target.probability is not None or target.variable is not None:
            raise NotUnderstood("accuracy with a probability, or for each of several")
        found = gained(subject) if limits_lies(subject, line) else total(subject, target.left)
        bound = evaluate(target.right, environment(model))
        if not isinstance(bound, Fraction):
            raise Malformed(f"line {line.line}: the bound is no number")
        if found is None:
            yield Claim(
                "accuracy", "failed", f"line {line.line}: nobody knows what a lie brings at most under this rule"
            )
            continue
        text = f"line {line.line}: {float(found):.10g}, asked for at most {float(bound):.10g}"
        yield claim("accuracy", Finding(found <= bound, text))
        if stated and not _same(stated[i], line.line, line.text, found, bound):
            yield Claim("accuracy", "failed", f"line {line.line}: re-derived {float(found):.10g}, the plan differs")


def _same(item: At, line: int, text: str, found: Fraction, bound: Fraction) -> bool:
    limit = item.get("bound")
    said = near(item["value"].double(), found) and (limit is None or near(limit.double(), bound))
    return said and item["line"].integer() == line and item["text"].text() == text


# --- figures -------------------------------------------------------------------------------------------------


def figures(subject: LotterySubject) -> Iterator[Claim]:
    """Distortion (total variation from the lottery without noise) and welfare, over the profiles of the voters."""
    stated = subject.plan["mechanism"].get("figures")
    if stated is None:
        return
    compared = subject.plan["mechanism"].get("compared")
    if compared is not None and compared.text() != NAMES[reference(subject), subject.ballots.points]:
        yield Claim("figures", "failed", f"the spec does not compare the winner with {compared.text()}")
    yield from of_rule(subject, stated, "figures")


NAMES = {
    (SHARES, FIRST): "random_dictator",
    (SHARES, BORDA): "borda_lottery",
    (LARGEST, FIRST): "plurality",
    (LARGEST, BORDA): "plurality",
}
"""Lotteries without noise by their name in the language."""


SIMULATED = 0.01
"""By how much an average over simulated profiles may be off where there are too many to list."""
FIGURES = ("worst_distortion", "mean_distortion", "expected_welfare")


def of_rule(subject: LotterySubject, stated: At, name: str) -> Iterator[Claim]:
    """Figures of one rule; those that cannot be worked out are not checked."""
    compared = Apart(reference(subject))
    for key in FIGURES:
        item = stated.get(key)
        if item is None:
            continue
        said = item.double()
        try:
            match key:
                case "worst_distortion":
                    found = single(subject, compared, "worst")
                case "mean_distortion":
                    found = single(subject, compared, "E")
                case _:
                    found = 1 - single(subject, VotesMissed(), "E")
        except NotUnderstood as reason:
            yield Claim(name, "not checked", f"{key.replace('_', ' ')} ({reason})")
            continue
        few = key == "worst_distortion" or listable(subject)
        text = f"{key.replace('_', ' ')}: re-derived {float(found):.10g}, the plan says {said:.10g}"
        fits = near(said, found) if few else abs(said - float(found)) <= SIMULATED
        yield claim(name, Finding(fits, text if few else f"{text} (simulated there)"))


def reference(subject: LotterySubject) -> str:
    """The lottery without noise that the spec compares the winner with; plurality where it names none."""
    lines = [subject.model.loss, *(line.target.left for line in subject.model.accuracy)]
    for line in lines:
        for node in () if line is None else walk(expanded(subject.model, line)):
            match node:
                case syntax.Call(function="total_variation" | "mismatch", arguments=(a, b)):
                    for side in (a, b):
                        if isinstance(side, syntax.Call):
                            return TARGETS.get(side.function, SHARES)
    return LARGEST


# --- papers ------------------------------------------------------------------------------------------------


def paper(subject: LotterySubject) -> Iterator[Claim]:
    """Lemma 1 of Torra (2019) gives an epsilon for one number of voters; what holds is that for all of them."""
    listed = subject.plan["mechanism"].get("paper")
    for item in [] if listed is None else listed.items():
        quantity, says = item["quantity"].text(), item["says"].double()
        item["text"].text()
        holds = item["holds"].double()
        rule, t = subject.rule, subject.meaning.voters
        if not isinstance(rule, Dummies) or not rule.dummies or quantity not in (f"{LEMMA_1}{t}", LEMMA_2):
            yield Claim("paper", "not checked", f"what a paper says: {quantity[:80]}")
            continue
        whole = t + subject.ballots.size * rule.dummies
        every = 1 + 1 / rule.dummies
        there = Fraction(2) if quantity == LEMMA_2 else max(every * whole / (whole + 1), Fraction(1))
        fits = _log(says, there) and _log(holds, every)
        text = f"{quantity}: {log(there):.6g} at {t} voters; {log(every):.6g} holds for every number of them"
        yield claim("paper", Finding(fits, text))


LEMMA_1, LEMMA_2 = "epsilon of Lemma 1 at T = ", "epsilon of Lemma 2"
"""(1 + 1 / k) (T + m k) / (T + 1 + m k), the lemma's 2 (T + m) / (T + 1 + m) at one dummy vote; and 2."""


def _log(said: float, ratio: Fraction) -> bool:
    return abs(said - log(ratio)) <= float(CLOSE) * max(log(ratio), 1.0)
