"""Values of variables at a given base vector: what they are, what each number is about, and how far they can move.

Labels are in the words of the spec; pages and files take them from here. Sensitivities are composed along paths of
linear maps, for display and for judging a graph; guarantees are derived elsewhere, with directed rounding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass
from privspec.language import syntax
from privspec.language.syntax import VariableKind
from privspec.language.walk import children, names_used, reached
from privspec.model.domains import ENUMERATION_LIMIT, Table
from privspec.model.evaluate import Environment, Reader, Values, bind_call, evaluate, stack
from privspec.model.graph import GraphNode, Model, once
from privspec.model.library import Argument, Bound, Tally, function_of
from privspec.model.neighbours import InputBlock
from privspec.model.reports import Failure
from privspec.model.values import Array, CellCounts, Value, as_float, word

if TYPE_CHECKING:
    from privspec.core.columns import Cells
    from privspec.model.domains import Table


def environment(model: Model, values: Mapping[str, Value] | None = None) -> Environment:
    """Public values of a model (and further ones) as names stand for them."""
    return Environment(
        values={**model.values, **(values or {})},
        parties={name: party.size for name, party in model.parties.items()},
        files=Reader(model.base, dict(model.files)),
    )


@dataclass(frozen=True, eq=False, slots=True)
class _Declared(Values):
    """The arguments of a call of variables of a model, which have types and domains and no values."""

    model: Model

    def argument(self, item: syntax.Argument) -> tuple[Argument, Value]:
        node = self.model.nodes.get(item.id) if isinstance(item, syntax.Name) else None
        if node is None or node.name in self.environment.values:
            return Values(self.environment).argument(item)
        return Argument(node.type, None, node.domain, item.span), node.name


def call_of(model: Model, call: syntax.Call) -> Bound:
    """A call of variables with its public arguments fixed.

    Raises: Failure.
    """
    return bind_call(call, _Declared(environment(model), model).arguments(call)[0])


def tallies_of(model: Model, expr: syntax.Node | None) -> list[tuple[str, Tally]]:
    """The tables of counts that an expression gives, one after another; none where it gives others, or is released.

    Each with the input that it counts, or "" where that has no name of its own.
    Raises: Failure.
    """
    match expr:
        case syntax.Name(id=name) if name in model.nodes:
            node = model.nodes[name]
            plain = node.index is None and node.kind is not VariableKind.OUTPUT
            return tallies_of(model, node.definition) if plain else []
        case syntax.Vector(items=items):
            parts = [tallies_of(model, item) for item in items]
            return [one for part in parts for one in part] if all(parts) else []
        case syntax.Call():
            first = expr.arguments[0] if expr.arguments else None
            name = first.id if isinstance(first, syntax.Name) else ""
            return [(name, one) for one in call_of(model, expr).tallies]
    return []


@once
def environment_of_computed(model: Model) -> Environment:
    """What computed outputs take beside released ones: public values, and how answers add up the cells of a table.

    Raises: Failure PS0501 for answers that do not, or of too many cells.
    """
    known: dict[str, Value] = {}
    for name in dict.fromkeys(name for one in model.computed for name in one.maps):
        node = model.nodes[name]
        cells = [block for block in model.blocks if isinstance(block.base_domain, Table)]
        found = linear_map(model, name) if len(model.blocks) == len(cells) == 1 else None
        if found is None:
            message = f"consistent takes answers that add up at most {COORDINATES_LIMIT:,} cells of one table"
            raise Failure("PS0501", node.span, message, help="release fewer columns of the table, or leave it as it is")
        known[f"{name}.cells"] = found
    return environment(model, known)


def input_value(block: InputBlock, u: Array) -> Value:
    """The value of an input at base vector u (n,): an array, a number, or cell counts."""
    part = np.array(u[block.start : block.stop], dtype=np.float64)
    table = block.base_domain
    if isinstance(table, Table):
        # tables that parties hold are asked together
        cells = table.cell_count  # none where there are unknown keys
        return CellCounts(table, part.reshape(-1, cells).sum(axis=0) if cells else part)
    return Fraction(float(part[0])) if not block.type.shape else part.reshape(block.type.shape)


def needed(model: Model, name: str) -> tuple[str, ...]:
    """What must be computed before `name`, in order, itself last.

    Raises: KeyError if there is no such variable.
    """

    def before(current: str) -> Iterable[str]:
        expr = meaning(model, current)
        return () if expr is None else (n for n in names_used(expr) if n in model.nodes)

    wanted = reached([name], before)
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
    except (TypeError, OverflowError) as error:
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
        known[current] = value_of(node, expr, environment(model, {**known, **given}))
    return known


def value_of(node: GraphNode, expr: syntax.Expr, known: Environment) -> Value:
    """A definition's value; of one with an index, for everybody, stacked."""
    if node.index is None or node.definition is None:
        return evaluate(expr, known)
    size = known.parties[node.index]
    return stack([evaluate(expr, known.bind(node.index, Fraction(i))) for i in range(1, size + 1)], expr.span)


Labels: TypeAlias = "Mapping[str, Cells]"
"""By column: one label for each number of a value, row-major; None where the column says nothing of a number."""

_AXES: Mapping[int, tuple[str, ...]] = {0: (), 1: ("index",), 2: ("row", "column")}


def labels_of(model: Model | None, name: str, shape: tuple[int, ...]) -> Labels:
    """The labels of a variable: attributes of a table's cells, members of an index set, or places counted from 1.

    Args: model, None where it is not known; shape, of the variable's value.
    """
    if model is None or name not in model.nodes or not prod(shape) or not shape:
        return numbered(shape)
    found = _of_name(model, name)
    if found and all(len(column) == prod(shape) for column in found.values()):
        return found
    return numbered(shape, model.nodes[name].index)


def numbered(shape: tuple[int, ...], index: str | None = None) -> Labels:
    """The place of each entry, counted from 1 as the language counts; `index` is the name of the first axis."""
    from privspec.core.columns import crossed  # few look at labels

    first = () if index is None or not shape else (index,)
    rest = len(shape) - len(first)
    names = first + _AXES.get(rest, tuple(f"index_{j + 1}" for j in range(rest)))
    return dict(zip(names, crossed([np.arange(1, size + 1) for size in shape]), strict=True))


def cell_values(
    table: Table, keep: Sequence[int], among: Sequence[Sequence[int]] | None = None
) -> dict[str, NDArray[Any]]:
    """The values of some attributes of a table that their counts have cells for; none where nobody knows which.

    `among`: of each attribute of the table, the places of the values that there are cells of.
    """
    kept = [table.attributes[i] for i in keep]
    if any(domain.size is None for _, domain in kept):
        return {}
    each = [[label(element) for element in domain.elements()] for _, domain in kept]
    if among is not None:
        each = [[values[place] for place in among[i]] for i, values in zip(keep, each, strict=True)]
    return {name: column(values) for (name, _), values in zip(kept, each, strict=True)}


def joined(parts: Iterable[tuple[Labels, int]]) -> Labels:
    """The labels of values one after another, of so many numbers each."""
    from privspec.core.columns import Column

    listed = list(parts)
    names = dict.fromkeys(name for labels, _ in listed for name in labels)
    return {
        name: Column.joined(
            Column.of(labels[name]) if name in labels else Column.same(None, size) for labels, size in listed
        )
        for name in names
    }


def column(values: Sequence[Any]) -> NDArray[Any]:
    """Labels as one column: whole numbers, doubles, or texts; objects where some are missing."""
    known = [v for v in values if v is not None]
    if any(isinstance(v, str) for v in known):
        texts = np.empty(len(values), dtype=object)
        texts[:] = [None if v is None else str(v) for v in values]
        return texts
    return np.array(values, dtype=object if len(known) < len(values) else None)


def label(element: Any) -> int | float | str:
    """An element of a domain as files show it: a number where it is one, a ranking best first."""
    if isinstance(element, Fraction):
        return int(element) if element.denominator == 1 and abs(element) < 2**62 else float(element)
    return word(element)


def _of_name(model: Model, name: str) -> Labels | None:
    """What the definition of a variable says of its entries; None where it says nothing."""
    node = model.nodes[name]
    computed = node.kind in (VariableKind.OUTPUT, VariableKind.INTERMEDIATE)
    expr = meaning(model, name) if computed and node.index is None else None
    return None if expr is None else _of(model, expr)


def _of(model: Model, expr: syntax.Expr) -> Labels | None:
    match expr:
        case syntax.Name(id=name) if name in model.nodes:
            return _of_name(model, name)
        case syntax.Negate(operand=operand):
            return _of(model, operand)
        case syntax.Binary(op="+" | "-" | "*" | "/", left=left, right=right):
            return _either(_of(model, left), _of(model, right))
        case syntax.Call():
            return _of_call(model, expr)
        case syntax.Vector(items=items):
            parts = [_of(model, item) for item in items]
            return joined((one, len(next(iter(one.values())))) for one in parts if one) if all(parts) else None
        case _:
            return None


def _either(left: Labels | None, right: Labels | None) -> Labels | None:
    """Entry by entry: the labels of the side that has some, of both where they agree."""
    if left is None or right is None:
        return left if right is None else right
    same = left.keys() == right.keys() and all(np.array_equal(left[n], right[n]) for n in left)
    return left if same else None


def _of_call(model: Model, expr: syntax.Call) -> Labels | None:
    """What the function says of its result, from the forms of its arguments alone: all data are zero.

    A table that is too large to be laid out has no counts at all, so that it is told apart by its columns only.
    """
    laid_out = model.size <= ENUMERATION_LIMIT
    used = (model.nodes[name] for name in names_used(expr) if name in model.nodes and name not in model.values)
    if not laid_out and any(one.kind is not VariableKind.INPUT for one in used):
        return None
    tables = {b.name: CellCounts(b.base_domain, np.zeros(0)) for b in model.blocks if isinstance(b.base_domain, Table)}
    try:
        values = values_at(model, expr, np.zeros(model.size)) if laid_out else tables
        bound = bind_call(expr, Values(environment(model, values)).arguments(expr)[0])
    except Failure:
        return None
    return None if bound.labels is None else bound.labels()


COORDINATES_LIMIT = 1024
"""Largest number of input coordinates for which a linear map is laid out here."""


class Degree(IntEnum):
    """How an expression depends on the inputs."""

    PUBLIC = 0
    OPEN = 1
    """Public, but its value is not known yet."""
    AFFINE = 2
    OTHER = 3


def degree_of(model: Model, name: str) -> Degree:
    """How a variable depends on the inputs."""
    degrees: dict[str, Degree] = {}
    for current in needed(model, name):
        node = model.nodes[current]
        expr = meaning(model, current)
        match node.kind:
            case VariableKind.INPUT:
                degrees[current] = Degree.AFFINE
            case VariableKind.CONSTANT:
                degrees[current] = Degree.PUBLIC if current in model.values else Degree.OPEN
            case _ if expr is None:
                degrees[current] = Degree.OTHER
            case _:
                degrees[current] = degree_in(expr, degrees)
    return degrees[name]


def degree_in(expr: syntax.Node, names: Mapping[str, Degree]) -> Degree:
    """How an expression depends on the inputs, where this is known of what it names."""
    inside = [degree_in(child, names) for child in children(expr)]
    most = max(inside, default=Degree.PUBLIC)
    match expr:
        case syntax.Number() | syntax.String() | syntax.SetOf() | syntax.Call(function="csv" | "npy"):
            return Degree.PUBLIC
        case syntax.Name():
            return names.get(expr.id, Degree.PUBLIC)
        case (
            syntax.Negate()
            | syntax.Transpose()
            | syntax.Index()
            | syntax.Slice()
            | syntax.Comprehension()
            | syntax.Each()
        ):
            return inside[0]
        case syntax.Keyword():
            return most  # as in `by = {age}`, and in conditions once they are read
        case syntax.Vector() | syntax.TupleOf() | syntax.Binary(op="+" | "-"):
            return most
        case syntax.Binary(op="*" | "@") if min(inside) is Degree.PUBLIC or most is Degree.OPEN:
            return most  # a factor without a value leaves the map unknown
        case syntax.Binary(op="/") if inside[1] is Degree.PUBLIC or most is Degree.OPEN:
            return inside[0]
        case syntax.Binary(op="^") if most <= Degree.OPEN:
            return most
        case syntax.Call():
            return most if not most or function_of(expr).linear else Degree.OTHER
        case _:
            return Degree.OTHER


def linear_map(model: Model, name: str) -> Array | None:
    """The matrix (m, n) of a variable that is an affine function of the inputs.

    Returns: None if it is not, or if the inputs have more than `COORDINATES_LIMIT` coordinates.
    """
    if model.size > COORDINATES_LIMIT or degree_of(model, name) is not Degree.AFFINE:
        return None
    open_values: dict[str, Value] = {
        node.name: np.zeros(node.type.shape) for node in model.constants if node.name not in model.values
    }
    zero = np.zeros(model.size)
    try:
        origin = target(model, name, zero, open_values).ravel()
        columns = np.empty((origin.size, model.size))
        for i in range(model.size):
            zero[i] = 1.0
            columns[:, i] = target(model, name, zero, open_values).ravel() - origin
            zero[i] = 0.0
    except Failure:
        return None
    return columns
