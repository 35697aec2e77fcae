"""A budget that several rounds share, `O is (budget / rounds)-DP`: what a plan says of it, derived from the spec.

By basic composition who takes part in k rounds has spent k times the share of one, and in all of them the budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from privspec.certify.measures import Finding
from privspec.certify.promises import claim
from privspec.certify.reading import At, Malformed
from privspec.certify.report import Claim
from privspec.language import syntax
from privspec.language.walk import walk
from privspec.model.evaluate import evaluate
from privspec.model.graph import Model
from privspec.model.targets import environment


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


def told(plan: At, model: Model, chosen: Mapping[str, Fraction]) -> Iterator[Claim]:
    """Their number, the budget and the share of each are those of the spec; `chosen` are the numbers it leaves open."""
    stated = plan["mechanism"].get("rounds")
    asked = shared(model)
    if stated is None:
        if asked is not None and asked.name in chosen:
            yield Claim("rounds", "failed", "the plan does not say what one of several votes spends")
        return
    if asked is None:
        yield Claim("rounds", "failed", "the plan speaks of several rounds, and the spec of one vote")
        return
    if asked.name not in chosen and not only_divides(model, asked.name):
        yield Claim("rounds", "failed", f"{asked.name} says something else in the spec than how many rounds there are")
        return
    count = chosen.get(asked.name, model.values.get(asked.name))
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
