"""Sums of averages and worst cases in losses and accuracy lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from privspec.certify.motion import NotUnderstood
from privspec.certify.reading import Malformed
from privspec.language import syntax
from privspec.language.syntax import VariableKind
from privspec.language.walk import names_used, walk
from privspec.model.graph import Model
from privspec.model.pointwise import Pointwise


def depends(model: Model, expr: syntax.Node) -> frozenset[VariableKind]:
    """The kinds of variables that stand in an expression, or in what it is computed from."""
    waiting, seen, kinds = list(names_used(expr)), set[str](), set[VariableKind]()
    while waiting:
        name = waiting.pop()
        node = model.nodes.get(name)
        if node is None or name in seen:
            continue
        seen.add(name)
        kinds.add(node.kind)
        if node.definition is not None:
            waiting.extend(names_used(node.definition))
    return frozenset(kinds)


# --- sums of averages and worst cases ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Term:
    """`weight` times `E[body]` or `worst[body]`; operator "E" or "worst"."""

    weight: Fraction
    operator: str
    body: syntax.Expr


@dataclass(frozen=True, slots=True)
class Price:
    """`weight` times a number that is chosen."""

    weight: Fraction
    name: str


def terms(scene: Pointwise, expr: syntax.Expr, weight: Fraction = Fraction(1)) -> Iterator[Term | Price | Fraction]:
    """The parts of a loss or of the left side of an accuracy line.

    Raises: NotUnderstood for what is no weighted sum of averages, worst cases, chosen and public numbers.
    """
    model = scene.model
    match expr:
        case syntax.Binary(op="+" | "-"):
            yield from terms(scene, expr.left, weight)
            yield from terms(scene, expr.right, weight if expr.op == "+" else -weight)
        case syntax.Negate():
            yield from terms(scene, expr.operand, -weight)
        case syntax.Binary(op="*") if public(model, expr.left):
            yield from terms(scene, expr.right, weight * number(scene, expr.left))
        case syntax.Binary(op="*") if public(model, expr.right):
            yield from terms(scene, expr.left, weight * number(scene, expr.right))
        case syntax.Binary(op="/") if public(model, expr.right):
            yield from terms(scene, expr.left, weight / number(scene, expr.right))
        case syntax.Over(operator="worst", given=None) if weight < 0:
            raise NotUnderstood("a worst case with a negative weight")
        case syntax.Over(given=None):
            yield Term(weight, expr.operator, expr.body)
        case syntax.Name(id=name) if name in model.nodes and model.nodes[name].kind is VariableKind.CHOOSE:
            yield Price(weight, name)
        case _ if public(model, expr):
            yield weight * number(scene, expr)
        case _:
            raise NotUnderstood("a loss that is no sum of averages and worst cases")


def public(model: Model, expr: syntax.Node) -> bool:
    """Whether only constants stand in it."""
    return not any(isinstance(node, syntax.Over) for node in walk(expr)) and depends(model, expr) <= {
        VariableKind.CONSTANT
    }


def number(scene: Pointwise, expr: syntax.Expr) -> Fraction:
    """A public number.

    Raises: Malformed if it is none.
    """
    grid = scene.grid(expr)
    value = grid.value(0, 0)
    if not grid.constant or not isinstance(value, Fraction):
        raise Malformed("a number is wanted in a loss or bound")
    return value


def about_lies(expr: syntax.Node) -> bool:
    """Whether an expression is what a lie can bring."""
    return isinstance(expr, syntax.Call) and expr.function == "manipulation"
