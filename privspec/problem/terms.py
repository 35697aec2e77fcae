"""What several forms have in common: one output, and a loss as a sum of weighted averages and worst cases."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TypeVar

from privspec.core.records import dataclass
from privspec.core.spans import Span
from privspec.language import syntax
from privspec.language.walk import names_used
from privspec.model.evaluate import evaluate
from privspec.model.graph import Model
from privspec.model.reports import Failure
from privspec.model.targets import environment

T = TypeVar("T")


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


@dataclass(frozen=True, slots=True)
class Measured:
    """An error, and how large it is: its `norm` ("1", "2", "inf", "abs", None for itself), squared or not.

    `function`: "sum" or "mean" where that is taken of all entries, or of `each` that a variable names.
    """

    function: str | None
    each: syntax.Comprehension | None
    norm: str | None
    squared: bool
    error: syntax.Expr


def measured(body: syntax.Expr) -> Measured:
    """How a body of an average measures the error that stands in it."""
    function: str | None = None
    each: syntax.Comprehension | None = None
    squared = False
    match body:
        case syntax.Call(function="sum" | "mean", arguments=(inner,)):
            function = body.function
            if isinstance(inner, syntax.Comprehension):
                each, body = inner, inner.body
            elif not isinstance(inner, syntax.NO_EXPRESSION):
                body = inner
    match body:
        case syntax.Binary(op="^", left=inner, right=syntax.Number(value=power)) if power == 2:
            body, squared = inner, True
    match body:
        case syntax.Norm(operand=error, order=order):
            return Measured(function, each, order, squared, error)
        case syntax.Absolute(operand=error):
            return Measured(function, each, "abs", squared, error)
    return Measured(function, each, None, squared, body)


def multiples(
    expr: syntax.Expr, model: Model, weight: Fraction = Fraction(1)
) -> Iterator[tuple[Fraction, syntax.Expr]]:
    """An expression as a sum of multiples of terms by public numbers, left to right.

    Raises: Failure PS0260 for a division by zero, PS0208 for a factor that is no number.
    """
    match expr:
        case syntax.Binary(op="+" | "-"):
            yield from multiples(expr.left, model, weight)
            yield from multiples(expr.right, model, weight if expr.op == "+" else -weight)
        case syntax.Negate():
            yield from multiples(expr.operand, model, -weight)
        case syntax.Binary(op="*") if public(expr.left, model):
            yield from multiples(expr.right, model, weight * public_number(expr.left, model))
        case syntax.Binary(op="*" | "/") if public(expr.right, model):
            factor = public_number(expr.right, model)
            if expr.op == "/" and factor == 0:
                raise Failure("PS0260", expr.span, "division by zero")
            yield from multiples(expr.left, model, weight * factor if expr.op == "*" else weight / factor)
        case _:
            yield weight, expr


def terms(expr: syntax.Expr, model: Model) -> Iterator[Term | Chosen | Fraction]:
    """A sum of weighted averages and worst cases, `choose` numbers and public numbers.

    Raises: Failure PS0502 for a loss of another form.
    """
    for weight, term in multiples(expr, model):
        match term:
            case syntax.Over(operator="worst", given=None) if weight < 0:
                raise Failure("PS0502", term.span, "solve cannot reward a large worst case: its weight is negative")
            case syntax.Over(given=None):
                yield Term(weight, term.operator, term.body, term.span)
            case syntax.Name(id=name) if name in model.nodes and _chosen_number(model, name):
                yield Chosen(weight, name)
            case _ if public(term, model):
                yield weight * public_number(term, model)
            case _:
                message = "solve takes sums of averages E[ ... ] and worst cases worst[ ... ] as the loss"
                raise Failure("PS0502", term.span, message)


def behind(model: Model, expr: T) -> T | syntax.Expr:
    """What names stand for that are defined by expressions; any other expression as it is."""
    found: T | syntax.Expr = expr
    while isinstance(found, syntax.Name):
        node = model.nodes.get(found.id)
        if node is None or node.definition is None:
            break
        found = node.definition
    return found


def beside_output(expr: syntax.Node, output: str) -> Iterator[syntax.Expr]:
    """What an output stands beside in a difference, or in a call of two arguments."""
    match expr:
        case syntax.Binary(op="-", left=left, right=right) | syntax.Call(arguments=(left, right)):
            for mine, other in ((left, right), (right, left)):
                if isinstance(mine, syntax.Name) and mine.id == output and not isinstance(other, syntax.NO_EXPRESSION):
                    yield other


def _chosen_number(model: Model, name: str) -> bool:
    node = model.nodes[name]
    return node.kind is syntax.VariableKind.CHOOSE and node.type.numeric


def public(expr: syntax.Expr, model: Model) -> bool:
    """Whether an expression is a constant: nothing secret, drawn or chosen stands in it."""
    nodes = model.nodes
    kinds = (syntax.VariableKind.CONSTANT,)
    if isinstance(expr, syntax.Over):
        return False
    return all(name not in nodes or nodes[name].kind in kinds for name in names_used(expr))


def public_number(expr: syntax.Expr, model: Model) -> Fraction:
    """A public factor or bound.

    Raises: Failure if it has no value or is no number.
    """
    value = evaluate(expr, environment(model))
    if not isinstance(value, Fraction):
        raise Failure("PS0208", expr.span, "a number is expected here")
    return value


def factor_of(expr: syntax.Expr, name: str, model: Model) -> tuple[Fraction, bool] | None:
    """The w of `w * name` (False) or of `w / name` (True), `name` a `choose` number; None for anything else."""
    match expr:
        case syntax.Name(id=found) if found == name:
            return Fraction(1), False
        case syntax.Negate(operand=operand):
            inner = factor_of(operand, name, model)
            return None if inner is None else (-inner[0], inner[1])
        case syntax.Binary(op="*", left=left, right=right) if public(left, model) or public(right, model):
            factor, rest = (left, right) if public(left, model) else (right, left)
            inner = factor_of(rest, name, model)
            return None if inner is None else (inner[0] * public_number(factor, model), inner[1])
        case syntax.Binary(op="/", left=left, right=right) if public(left, model):
            inner = factor_of(right, name, model)
            if inner is None or inner[1] or not inner[0]:
                return None
            return public_number(left, model) / inner[0], True
        case syntax.Binary(op="/", left=left, right=right) if public(right, model):
            inner, divisor = factor_of(left, name, model), public_number(right, model)
            return None if inner is None or not divisor else (inner[0] / divisor, inner[1])
    return None
