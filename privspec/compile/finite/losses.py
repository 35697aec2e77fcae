"""The loss of a finite spec: averages and worst cases of what each draw costs at each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from privspec.compile.finite.system import Costs
from privspec.compile.terms import Chosen, public, terms
from privspec.core.spans import Span
from privspec.language import syntax
from privspec.model.pointwise import Grid, Pointwise
from privspec.model.reports import Failure
from privspec.model.walk import names_used
from privspec.model.worlds import Worlds


@dataclass(frozen=True, eq=False, slots=True)
class Losses:
    """The parts of `FiniteSystem`; `prices` of the `choose` numbers that stand in the loss by themselves."""

    expected: Costs | None
    worst: tuple[tuple[Fraction, Costs], ...]
    offset: Fraction
    prices: Mapping[str, Fraction]


def costs(body: syntax.Expr, scene: Pointwise, worlds: Worlds) -> Costs:
    """What each draw costs at each row (rows, columns).

    Raises: Failure PS0402 if it is not one number, and what evaluation raises.
    """
    grid = scene.grid(point_laws(body, worlds))
    if grid.shape:
        raise Failure("PS0402", body.span, "one number is wanted here")
    return spread(grid, worlds)


def spread(grid: Grid, worlds: Worlds) -> Costs:
    """At all pairs."""
    found: Costs = grid.spread(len(worlds.rows), len(worlds.columns))
    return found


def point_laws(expr: Any, worlds: Worlds) -> Any:
    """With `total_variation(O, t)` as `mismatch(O, t)` where t is certain given the input: the two are equal.

    The law of t is then one point, and the distance of a law from a point is its probability of missing it.
    """
    match expr:
        case syntax.Call(function="total_variation", arguments=(a, b)):
            drawn = [bool(set(names_used(side)) & set(worlds.releases)) for side in (a, b)]
            if sorted(drawn) == [False, True]:
                return replace(expr, function="mismatch")
        case syntax.Binary(op="+" | "-"):
            return replace(expr, left=point_laws(expr.left, worlds), right=point_laws(expr.right, worlds))
        case syntax.Binary(op="*") if public(expr.left, worlds.model):
            return replace(expr, right=point_laws(expr.right, worlds))
        case syntax.Binary(op="*" | "/") if public(expr.right, worlds.model):
            return replace(expr, left=point_laws(expr.left, worlds))
        case syntax.Negate():
            return replace(expr, operand=point_laws(expr.operand, worlds))
    return expr


def losses(worlds: Worlds, scene: Pointwise) -> Losses:
    """The loss of the spec.

    Raises: Failure PS0502, PS0401 (an average without a data model).
    """
    assert worlds.model.loss is not None
    expected: Costs | None = None
    worst: list[tuple[Fraction, Costs]] = []
    offset = Fraction(0)
    prices: dict[str, Fraction] = {}
    for term in terms(worlds.model.loss, worlds.model):
        if isinstance(term, Fraction):
            offset += term
            continue
        if isinstance(term, Chosen):
            prices[term.name] = prices.get(term.name, Fraction(0)) + term.weight
            continue
        found = costs(term.body, scene, worlds)
        if term.operator == "worst":
            worst.append((term.weight, found))
            continue
        weighted = averaged(found, worlds, term.span) * term.weight
        expected = weighted if expected is None else expected + weighted
    return Losses(expected, tuple(worst), offset, prices)


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
