"""Votes that share a budget: what one of so many may spend, and how many of them any rule leaves room for."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from privspec.certify.finite.averages import Price, terms
from privspec.certify.lotteries.subject import LotterySubject
from privspec.certify.motion import NotUnderstood
from privspec.certify.report import Claim
from privspec.certify.rounds import shared, told
from privspec.language import syntax
from privspec.model.evaluate import evaluate
from privspec.model.graph import Model
from privspec.model.pointwise import Pointwise
from privspec.model.targets import environment


def rounds(subject: LotterySubject) -> Iterator[Claim]:
    """Their number, the budget and the share of each are those of the spec."""
    return told(subject.plan, subject.model, subject.chosen)


def fewest_loss(subject: LotterySubject, loss: syntax.Expr, least: Fraction) -> Fraction:
    """The loss at the most rounds that there can be if each needs an epsilon of at least `least`.

    Raises: NotUnderstood for losses that do not fall with the number of rounds.
    """
    model, asked = subject.model, shared(subject.model)
    if asked is None or not _falls(model, loss, asked.name) or least <= 0:
        raise NotUnderstood("a bound for such a loss")
    high = None if (domain := model.nodes[asked.name].domain) is None else domain.bounds[1]
    most = Fraction(asked.budget // least)
    most = most if high is None else min(most, Fraction(high))
    value = evaluate(loss, environment(model, {asked.name: most})) if most >= 1 else None
    if not isinstance(value, Fraction):
        raise NotUnderstood("a bound where not one round fits")
    return value


def _falls(model: Model, loss: syntax.Expr, name: str) -> bool:
    """Whether it is a negative multiple of the number, or a positive amount divided by it."""
    match loss:
        case syntax.Binary(op="/", left=left, right=syntax.Name(id=found)) if found == name:
            amount = evaluate(left, environment(model))
            return isinstance(amount, Fraction) and amount > 0
    found_terms = list(terms(Pointwise(model), loss))
    return len(found_terms) == 1 and isinstance(found_terms[0], Price) and found_terms[0].weight < 0
