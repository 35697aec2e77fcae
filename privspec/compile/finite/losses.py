"""The loss of a finite spec: averages and worst cases of what each draw costs at each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from privspec.compile.finite.apart import Apart, apart, compared, split
from privspec.compile.finite.system import Costs
from privspec.core.spans import Span
from privspec.language import syntax
from privspec.model.chances import Chances
from privspec.model.pointwise import Grid, Pointwise
from privspec.model.reports import Failure
from privspec.model.walk import names_used
from privspec.model.worlds import Worlds
from privspec.problem.terms import Chosen, Term, public, terms


@dataclass(frozen=True, eq=False, slots=True)
class Body:
    """What stands in an average or a worst case: costs of draws, and total variations from winners."""

    costs: Costs
    apart: tuple[Apart, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Losses:
    """The parts of `FiniteSystem`; `prices` of the `choose` numbers that stand in the loss by themselves."""

    expected: Costs | None
    worst: tuple[tuple[Fraction, Costs], ...]
    offset: Fraction
    prices: Mapping[str, Fraction]
    apart: tuple[Apart, ...] = ()


def costs(body: syntax.Expr, scene: Pointwise, worlds: Worlds) -> Costs:
    """What each draw costs at each row (rows, columns), averaged over winners that are drawn from the data.

    Raises: Failure PS0402 if it is not one number, PS0502 if it compares laws, and what evaluation raises.
    """
    return _costs(body, Chances(scene, len(worlds.rows)), worlds)


def _costs(body: syntax.Expr, chances: Chances, worlds: Worlds) -> Costs:
    grid = chances.mean(point_laws(body, chances, worlds))
    if grid.shape:
        raise Failure("PS0402", body.span, "one number is wanted here")
    return spread(grid, worlds)


def body(term: Term, scene: Pointwise, worlds: Worlds, where: str, worst: int | None = None) -> Body:
    """The inside of an average or a worst case; `where` names its total variations, with a number each.

    Raises: as `costs`.
    """
    chances = Chances(scene, len(worlds.rows))
    none = np.full((len(worlds.rows), len(worlds.columns)), Fraction(0), dtype=object)
    linear: Costs | None = None
    found: list[Apart] = []
    first = int(where.rpartition(":")[2])
    for weight, part in split(term.body, chances, worlds):
        name = f"{where.rpartition(':')[0]}:{first + len(found)}"
        gap = apart(part, chances, worlds, weight, name, worst)
        if gap is not None:
            found.append(gap)
            continue
        cost = _costs(part, chances, worlds) * weight
        linear = cost if linear is None else linear + cost
    return Body(none if linear is None else linear, tuple(found))


def spread(grid: Grid, worlds: Worlds) -> Costs:
    """At all pairs."""
    found: Costs = grid.spread(len(worlds.rows), len(worlds.columns))
    return found


def point_laws(expr: Any, chances: Chances, worlds: Worlds) -> Any:
    """With `total_variation(O, t)` as `mismatch(O, t)` where t is certain given the input: the two are equal.

    The law of t is then one point, and the distance of a law from a point is its probability of missing it.
    Raises: Failure PS0502 where t is drawn: that is no average over draws.
    """
    model = worlds.model
    match expr:
        case syntax.Call(function="total_variation", arguments=(a, b)):
            drawn = [bool(set(names_used(side)) & set(worlds.releases)) for side in (a, b)]
            if compared(expr, chances, worlds) is not None or any(_spread_out(side, chances) for side in (a, b)):
                raise Failure(
                    "PS0502",
                    expr.span,
                    "solve takes the total variation from a winner that is drawn in sums with public weights only",
                    help="as in worst[ total_variation(O, winner) ]",
                )
            if sorted(drawn) == [False, True]:
                return replace(expr, function="mismatch")
        case syntax.Binary(op="+" | "-"):
            left, right = (point_laws(side, chances, worlds) for side in (expr.left, expr.right))
            return replace(expr, left=left, right=right)
        case syntax.Binary(op="*") if public(expr.left, model):
            return replace(expr, right=point_laws(expr.right, chances, worlds))
        case syntax.Binary(op="*" | "/") if public(expr.right, model):
            return replace(expr, left=point_laws(expr.left, chances, worlds))
        case syntax.Negate():
            return replace(expr, operand=point_laws(expr.operand, chances, worlds))
    return expr


def _spread_out(expr: syntax.Node, chances: Chances) -> bool:
    """Whether something is computed from a winner that is drawn, or is one whose law is no point at some row."""
    law = chances.law(expr)
    return chances.random(expr) if law is None else any(max(one.values()) < 1 for one in law)


def losses(worlds: Worlds, scene: Pointwise) -> Losses:
    """The loss of the spec.

    Raises: Failure PS0502, PS0401 (an average without a data model).
    """
    assert worlds.model.loss is not None
    expected: Costs | None = None
    worst: list[tuple[Fraction, Costs]] = []
    offset = Fraction(0)
    prices: dict[str, Fraction] = {}
    apart_: list[Apart] = []
    for term in terms(worlds.model.loss, worlds.model):
        if isinstance(term, Fraction):
            offset += term
            continue
        if isinstance(term, Chosen):
            prices[term.name] = prices.get(term.name, Fraction(0)) + term.weight
            continue
        at = f"loss:{len(apart_)}"
        if term.operator == "worst":
            found = body(term, scene, worlds, at, len(worst))
            worst.append((term.weight, found.costs))
            apart_ += found.apart
            continue
        found = body(term, scene, worlds, at)
        weighted = averaged(found.costs, worlds, term.span) * term.weight
        expected = weighted if expected is None else expected + weighted
        apart_ += (weighed(gap, term.weight) for gap in found.apart)
    return Losses(expected, tuple(worst), offset, prices, tuple(apart_))


def weighed(gap: Apart, weight: Fraction) -> Apart:
    """With the weight of the average that it stands in.

    Raises: Failure PS0502 if that is negative.
    """
    if weight * gap.weight < 0:
        raise Failure("PS0502", gap.span, "solve cannot reward a large total variation: its weight is negative")
    return replace(gap, weight=weight * gap.weight)


def no_losses(offset: Fraction = Fraction(0)) -> Losses:
    """Of specs whose loss is not linear in the table, but for a constant."""
    return Losses(None, (), offset, {})


def averaged(found: Costs, worlds: Worlds, span: Span) -> Costs:
    """Each row times its probability.

    Raises: Failure PS0401 where the data have no model.
    """
    if worlds.prior is None:
        raise Failure(
            "PS0401",
            span,
            "this average is over data without a model",
            help="write worst[ ... ], or add a model such as x ~ uniform",
        )
    prior = np.array(worlds.prior, dtype=object)
    weighted: Costs = found * prior[:, None]
    return weighted
