"""The loss of a finite spec: averages and worst cases of what each draw costs at each row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from privspec.compile.finite.system import Costs
from privspec.core.spans import Span
from privspec.language import syntax
from privspec.model.evaluate import evaluate
from privspec.model.pointwise import Grid, Pointwise
from privspec.model.reports import Failure
from privspec.model.targets import environment
from privspec.model.walk import names_used
from privspec.model.worlds import Worlds


@dataclass(frozen=True, slots=True)
class Term:
    """weight * E[body] or weight * worst[body]."""

    weight: Fraction
    operator: str
    body: syntax.Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Chosen:
    """weight * a `choose` number."""

    weight: Fraction
    name: str


@dataclass(frozen=True, eq=False, slots=True)
class Losses:
    """The parts of `FiniteSystem`; `prices` of the `choose` numbers that stand in the loss by themselves."""

    expected: Costs | None
    worst: tuple[tuple[Fraction, Costs], ...]
    offset: Fraction
    prices: Mapping[str, Fraction]


def terms(expr: syntax.Expr, worlds: Worlds, weight: Fraction = Fraction(1)) -> Iterator[Term | Chosen | Fraction]:
    """A sum of weighted averages and worst cases, `choose` numbers and public numbers.

    Raises: Failure PS0502 for a loss of another form.
    """
    match expr:
        case syntax.Binary(op="+" | "-"):
            yield from terms(expr.left, worlds, weight)
            yield from terms(expr.right, worlds, weight if expr.op == "+" else -weight)
        case syntax.Negate():
            yield from terms(expr.operand, worlds, -weight)
        case syntax.Binary(op="*") if _public(expr.left, worlds):
            yield from terms(expr.right, worlds, weight * public_number(expr.left, worlds))
        case syntax.Binary(op="*" | "/") if _public(expr.right, worlds):
            factor = public_number(expr.right, worlds)
            if expr.op == "/" and factor == 0:
                raise Failure("PS0260", expr.span, "division by zero")
            yield from terms(expr.left, worlds, weight * factor if expr.op == "*" else weight / factor)
        case syntax.Over(given=None):
            if expr.operator == "worst" and weight < 0:
                raise Failure("PS0502", expr.span, "solve cannot reward a large worst case: its weight is negative")
            yield Term(weight, expr.operator, expr.body, expr.span)
        case syntax.Name(id=name) if name in worlds.model.nodes and _chosen_number(worlds, name):
            yield Chosen(weight, name)
        case _ if _public(expr, worlds):
            yield weight * public_number(expr, worlds)
        case _:
            raise Failure(
                "PS0502",
                expr.span,
                "solve takes sums of averages E[ ... ] and worst cases worst[ ... ] as the loss of a table",
            )


def _chosen_number(worlds: Worlds, name: str) -> bool:
    node = worlds.model.nodes[name]
    return node.kind is syntax.VariableKind.CHOOSE and node.type.numeric


def _public(expr: syntax.Expr, worlds: Worlds) -> bool:
    nodes = worlds.model.nodes
    kinds = (syntax.VariableKind.CONSTANT,)
    if isinstance(expr, syntax.Over):
        return False
    return all(name not in nodes or nodes[name].kind in kinds for name in names_used(expr))


def public_number(expr: syntax.Expr, worlds: Worlds) -> Fraction:
    """A public factor or bound.

    Raises: Failure if it has no value or is no number.
    """
    value = evaluate(expr, environment(worlds.model))
    if not isinstance(value, Fraction):
        raise Failure("PS0208", expr.span, "a number is wanted here")
    return value


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
        case syntax.Binary(op="*") if _public(expr.left, worlds):
            return replace(expr, right=point_laws(expr.right, worlds))
        case syntax.Binary(op="*" | "/") if _public(expr.right, worlds):
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
    for term in terms(worlds.model.loss, worlds):
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
