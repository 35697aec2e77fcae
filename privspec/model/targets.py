"""Values of variables at a given base vector: what is released when no noise is added."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from privspec.language import syntax
from privspec.language.syntax import VariableKind
from privspec.language.walk import names_used
from privspec.model.evaluate import Environment, evaluate, stack
from privspec.model.files import Reader
from privspec.model.graph import GraphNode, InputBlock, Model
from privspec.model.reports import Failure
from privspec.model.types import Tables
from privspec.model.values import Array, CellCounts, Value, as_float


def environment(model: Model, values: Mapping[str, Value] | None = None) -> Environment:
    """Public values of a model (and further ones) as names stand for them."""
    return Environment(
        values={**model.values, **(values or {})},
        parties={name: party.size for name, party in model.parties.items()},
        files=Reader(model.base, dict(model.files)),
    )


def input_value(block: InputBlock, u: Array) -> Value:
    """The value of an input at base vector u (n,): an array, a number, or cell counts."""
    part = np.array(u[block.start : block.stop], dtype=np.float64)
    element = block.type.element
    if isinstance(element, Tables):
        return CellCounts(element.table, part)
    return Fraction(float(part[0])) if not block.type.shape else part.reshape(block.type.shape)


def needed(model: Model, name: str) -> tuple[str, ...]:
    """What must be computed before `name`, in order, itself last.

    Raises: KeyError if there is no such variable.
    """
    wanted: set[str] = set()
    stack_ = [name]
    while stack_:
        current = stack_.pop()
        if current in wanted:
            continue
        wanted.add(current)
        expr = meaning(model, current)
        if expr is not None:
            stack_.extend(n for n in names_used(expr) if n in model.nodes)
    return tuple(n for n in model.order if n in wanted)


def meaning(model: Model, name: str) -> syntax.Expr | None:
    """What a variable is computed from; for an output without `=`, what the loss compares it with."""
    node = model.nodes[name]
    return node.definition if node.definition is not None else model.targets.get(name)


def target(model: Model, name: str, u: Array, values: Mapping[str, Value] | None = None) -> Array:
    """A variable, or what an output stands for, at base vector u, without noise.

    Args: u (n,), the inputs one after another (`InputBlock`; tables as cell counts); values, constants
    that have no value in the spec.
    Returns: float64 of the variable's shape.
    Raises: Failure PS0261 if a constant has no value, PS0262 if it cannot be computed.
    """
    given = dict(values or {})
    known = _computed(model, needed(model, name), u, given)
    found = known.get(name, given.get(name, model.values.get(name)))
    try:
        return as_float(found)
    except TypeError as error:
        raise Failure("PS0262", model.nodes[name].span, f"{name} is not made of numbers") from error


def values_at(model: Model, expr: syntax.Expr, u: Array) -> dict[str, Value]:
    """The value of every variable that an expression uses, and of all inputs, at base vector u, without noise.

    Raises: Failure PS0261, PS0262.
    """
    names = [n for name in names_used(expr) if name in model.nodes for n in needed(model, name)]
    return _computed(model, dict.fromkeys(names), u, {})


def _computed(model: Model, names: Iterable[str], u: Array, given: Mapping[str, Value]) -> dict[str, Value]:
    """Inputs, and what is computed from them, in this order."""
    known: dict[str, Value] = {block.name: input_value(block, u) for block in model.blocks}
    for current in names:
        if current in known or current in given:
            continue
        node = model.nodes[current]
        if current in model.values and node.kind is VariableKind.CONSTANT:
            continue
        expr = meaning(model, current)
        if expr is None:
            raise Failure("PS0261", node.span, f"{current} has no value")
        known[current] = _value(node, expr, environment(model, {**known, **given}))
    return known


def _value(node: GraphNode, expr: syntax.Expr, known: Environment) -> Value:
    """A definition's value; of one with an index, for everybody, stacked."""
    if node.index is None or node.definition is None:
        return evaluate(expr, known)
    size = known.parties[node.index]
    return stack([evaluate(expr, known.bind(node.index, Fraction(i))) for i in range(1, size + 1)], expr.span)


def evaluate_in(model: Model, expr: syntax.Expr, values: Mapping[str, Any] | None = None) -> Value:
    """A public expression of the spec's own."""
    return evaluate(expr, environment(model, values))
