"""Votes that share a budget: what one of so many may spend, and how many of them any rule leaves room for.

`O is (budget / rounds)-DP` is about one vote; by basic composition a voter who takes part in k of them has spent k
times that, and in all of them the budget.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from privspec.certify.finite.averages import Price, terms
from privspec.certify.lotteries.subject import LotterySubject
from privspec.certify.measures import Finding
from privspec.certify.motion import NotUnderstood
from privspec.certify.promises import claim
from privspec.certify.reading import Malformed
from privspec.certify.report import Claim
from privspec.language import syntax
from privspec.model.evaluate import evaluate
from privspec.model.graph import Model
from privspec.model.pointwise import Pointwise
from privspec.model.targets import environment
from privspec.model.walk import walk


@dataclass(frozen=True, slots=True)
class Shared:
    """A budget that so many votes divide; `name` is that of their number."""

    budget: Fraction
    name: str


def shared(model: Model) -> Shared | None:
    """The budget that every requirement divides by one and the same number; None if they do not."""
    found: dict[Shared | None, None] = {}
    for line in model.spec.privacy:
        match line.amount.items:
            case (syntax.Binary(op="/", left=whole, right=syntax.Name(id=name)),):
                budget = evaluate(whole, environment(model))
                found[Shared(budget, name) if isinstance(budget, Fraction) else None] = None
            case _:
                found[None] = None
    return next(iter(found)) if len(found) == 1 else None


def rounds(subject: LotterySubject) -> Iterator[Claim]:
    """Their number, the budget and the share of each are those of the spec."""
    stated, model = subject.plan["mechanism"].get("rounds"), subject.model
    asked = shared(model)
    if stated is None:
        if asked is not None and asked.name in subject.chosen:
            yield Claim("rounds", "failed", "the plan does not say what one of several votes spends")
        return
    if asked is None:
        yield Claim("rounds", "failed", "the plan speaks of several rounds, and the spec of one vote")
        return
    if asked.name not in subject.chosen and not only_divides(model, asked.name):
        yield Claim("rounds", "failed", f"{asked.name} says something else in the spec than how many rounds there are")
        return
    count = subject.chosen.get(asked.name, model.values.get(asked.name))
    if not isinstance(count, Fraction) or count.denominator != 1 or count < 1:
        raise Malformed(f"{asked.name} is no number of rounds")
    said = [stated[key].exact() for key in ("count", "budget", "each", "fit")]
    fits = said == [count, asked.budget, asked.budget / count, count]
    text = f"{count} rounds share ε = {float(asked.budget):.10g}, each with {float(asked.budget / count):.10g}"
    yield claim("rounds", Finding(fits, text))


def only_divides(model: Model, name: str) -> bool:
    """Whether nothing but the requirements uses a parameter: the size of a party, say, is no number of rounds."""
    uses = sum(isinstance(node, syntax.Name) and node.id == name for node in walk(model.spec))
    return uses == len(model.spec.privacy)


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
