"""Losses, accuracy lines and figures of a lottery over all profiles of the voters: closed forms, or one by one.

Sums over profiles are enclosed in ball arithmetic of 256 bits; closed forms are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from privspec.certify.finite.averages import Price, Term, terms
from privspec.certify.lotteries.costs import LARGEST, SHARES, Apart, Body, Cost, Missed, VotesMissed, body_of
from privspec.certify.lotteries.meaning import FIRST, Ballots, Scores
from privspec.certify.lotteries.profiles import profiles
from privspec.certify.lotteries.rules import Rule, Winner
from privspec.certify.lotteries.subject import LotterySubject
from privspec.certify.lotteries.winner import extremes
from privspec.certify.motion import NotUnderstood
from privspec.language import syntax
from privspec.language.walk import walk
from privspec.model.evaluate import evaluate
from privspec.model.pointwise import Pointwise
from privspec.model.targets import environment

PRECISION = 256


def total(subject: LotterySubject, expr: syntax.Expr) -> Fraction:
    """The value of a loss, or of the left side of an accuracy line; within 2^-100 of it.

    Raises: NotUnderstood where it cannot be worked out.
    """
    if not any(isinstance(node, syntax.Over) for node in walk(expr)):
        chosen = evaluate(expr, environment(subject.model, subject.chosen))
        if not isinstance(chosen, Fraction):
            raise NotUnderstood("a loss that is no number")
        return chosen
    scene = Pointwise(subject.model)
    value = Fraction(0)
    for term in terms(scene, expr):
        match term:
            case Term():
                value += term.weight * over(subject, body_of(subject, scene, term.body), term.operator)
            case Price():
                value += term.weight * subject.chosen[term.name]
            case _:
                value += term
    return value


def over(subject: LotterySubject, body: Body, operator: str) -> Fraction:
    """The average of a body over profiles ("E"), or its largest value ("worst").

    Raises: NotUnderstood.
    """
    rule, ballots, voters = subject.rule, subject.ballots, subject.meaning.voters
    law = subject.ballot_law if operator == "E" else None
    if operator == "E" and law is None:
        raise NotUnderstood("an average over votes without a data model")
    share = rule.uniform_share(ballots, voters)
    if share is not None and (operator == "E" or len(body.parts) < 2):
        known = [
            (weight, cost.mixed(share, ballots, voters, operator, law))
            for weight, cost in body.parts
            if operator == "E" or weight >= 0
        ]
        if len(known) == len(body.parts) and all(value is not None for _, value in known):
            return body.constant + sum((w * v for w, v in known if v is not None), Fraction(0))
    few = _worst_of(rule, ballots, voters, body) if operator == "worst" else None
    return _listed(rule, profiles(ballots, voters, law) if few is None else dict.fromkeys(few), body, operator)


def _worst_of(rule: Rule, ballots: Ballots, voters: int, body: Body) -> list[Scores] | None:
    """Profiles of which one is the worst for a cost that stands by itself; None where that is not known."""
    if _of_largest(ballots, body):
        return least_leads(voters, ballots.size)
    alone = len(body.parts) == 1 and body.parts[0][0] >= 0 and ballots.points == FIRST
    if alone and isinstance(rule, Winner) and body.parts[0][1] in (Apart(SHARES), Missed(SHARES), VotesMissed()):
        return extremes(voters, ballots.size)
    return None


def _of_largest(ballots: Ballots, body: Body) -> bool:
    """Whether it grows with the probability that the alternative with most first choices does not win."""
    if ballots.points != FIRST or len(body.parts) != 1 or body.parts[0][0] < 0:
        return False
    return body.parts[0][1] in (Apart(LARGEST), Missed(LARGEST))


def least_leads(voters: int, size: int) -> list[Scores]:
    """Profiles of which one makes the largest least likely to win, for every rule that is checked here.

    Let M be the most votes and g_c = M - S_c. Given M the sum of the gaps is m M - T, each in [0, M]. The largest wins
    with 1 / sum b^-g_c (the sum is convex in every gap: Schur-convex), with the integral of prod (1 - t b^-g_c)
    (log-concave in every gap: Schur-concave), with what M alone decides, or with one probability everywhere. So its
    chance is least at the gaps that majorise all others: j = T // M alternatives with M votes, the rest in one hand.
    With j the same every gap grows with M, and so does the chance: the least M with j is T // (j + 1) + 1, or T / m
    where all are even.
    """
    found = []
    for j in range(1, size + 1):
        most = voters // (j + 1) + 1 if j < size else voters // size
        rest = voters - j * most
        if most >= 1 and rest >= 0 and (j < size or not rest):
            counts = [most] * j + ([rest] if j < size else [])
            found.append(tuple(Fraction(n) for n in (*counts, *(0,) * (size - len(counts)))))
    return found


def _listed(rule: Rule, every: Mapping[Scores, Fraction | None], body: Body, operator: str) -> Fraction:
    from flint import arb, ctx

    if operator == "worst" and isinstance(rule, Winner):  # two short fractions
        values: list[Fraction] = [body.at(rule.law(scores), scores, Fraction(1)) for scores in _once(every)]
        return max(values)
    with ctx.workprec(PRECISION):
        one = arb(1)
        found: Any = None
        for scores, mass in _once(every).items():
            value = body.at(_law(rule, scores), scores, one)
            if operator == "worst":
                found = value if found is None or value > found else found
            elif mass:
                weighted = value * mass.numerator / mass.denominator
                found = weighted if found is None else found + weighted
        return _middle(found)


def _once(every: Mapping[Scores, Fraction | None]) -> Mapping[Scores, Fraction | None]:
    """Of profiles that differ in the names of alternatives only, one, with the probability of all.

    Rules and costs treat alternatives alike; where several have most points, whoever of them counts as the largest has
    the same probability to win, or is the same one for the rule and for the cost.
    """
    found: dict[Scores, Fraction | None] = {}
    for scores, mass in every.items():
        key = tuple(sorted(scores, reverse=True))
        before = found.get(key)
        found[key] = mass if mass is None or before is None else before + mass
    return found


@lru_cache(maxsize=2**15)
def _law(rule: Rule, scores: Scores) -> tuple[Any, ...]:
    """A law in balls."""
    from flint import arb

    return rule.law(scores, arb(1))


def _middle(ball: Any) -> Fraction:
    """A fraction inside a small ball.

    Raises: ArithmeticError if it is not small.
    """
    if ball is None or not ball.rad() < 2**-100:
        raise ArithmeticError("a sum over profiles was not enclosed")
    mantissa, exponent = (int(part) for part in ball.mid().man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent


def listable(subject: LotterySubject) -> bool:
    """Whether all profiles can be gone through."""
    try:
        profiles(subject.ballots, subject.meaning.voters, None)
    except NotUnderstood:
        return False
    return True


def single(subject: LotterySubject, cost: Cost, operator: str) -> Fraction:
    """One cost over all profiles."""
    return over(subject, Body(((Fraction(1), cost),), Fraction(0)), operator)
