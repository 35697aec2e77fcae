"""Labels: which number of a value is about what, in the words of the spec. Pages and files take them from here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.language import syntax
from privspec.language.syntax import VariableKind
from privspec.model.evaluate import bound_call
from privspec.model.reports import Failure
from privspec.model.targets import environment, meaning, values_at
from privspec.model.values import show

if TYPE_CHECKING:
    from privspec.model.domains import Table
    from privspec.model.graph import Model

Labels: TypeAlias = Mapping[str, NDArray[Any]]
"""By column: one label for each number of a value, row-major; None where the column says nothing of a number."""

_AXES: Mapping[int, tuple[str, ...]] = {0: (), 1: ("index",), 2: ("row", "column")}


def labels_of(model: Model | None, name: str, shape: tuple[int, ...]) -> Labels:
    """The labels of a variable: attributes of a table's cells, members of an index set, or places counted from 1.

    Args: model, None where it is not known; shape, of the variable's value.
    """
    if model is None or name not in model.nodes:
        return numbered(shape)
    found = _of_name(model, name)
    if found and all(len(column) == prod(shape) for column in found.values()):
        return found
    return numbered(shape, model.nodes[name].index)


def numbered(shape: tuple[int, ...], index: str | None = None) -> Labels:
    """The place of each entry, counted from 1 as the language counts; `index` is the name of the first axis."""
    first = () if index is None or not shape else (index,)
    rest = len(shape) - len(first)
    names = first + _AXES.get(rest, tuple(f"index_{j + 1}" for j in range(rest)))
    places = np.indices(shape).reshape(len(shape), prod(shape)) + 1
    return dict(zip(names, places, strict=True))


def cell_labels(table: Table, keep: Sequence[int]) -> Labels:
    """The values of some attributes of a table in each cell of their counts, the last attribute running fastest."""
    kept = [table.attributes[i] for i in keep]
    each = [[label(element) for element in domain.elements()] for _, domain in kept]
    columns = zip(*product(*each), strict=True)
    return {name: column(values) for (name, _), values in zip(kept, columns, strict=True)}


def joined(parts: Iterable[tuple[Labels, int]]) -> Labels:
    """The labels of values one after another, of so many numbers each."""
    listed = list(parts)
    names = dict.fromkeys(name for labels, _ in listed for name in labels)
    return {name: column([v for labels, size in listed for v in _filled(labels.get(name), size)]) for name in names}


def _filled(values: NDArray[Any] | None, size: int) -> list[Any]:
    return [None] * size if values is None else values.tolist()


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
    return " ".join(show(item) for item in element) if isinstance(element, tuple) else show(element)


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
        case _:
            return None


def _either(left: Labels | None, right: Labels | None) -> Labels | None:
    """Entry by entry: the labels of the side that has some, of both where they agree."""
    if left is None or right is None:
        return left if right is None else right
    same = left.keys() == right.keys() and all(left[n].tolist() == right[n].tolist() for n in left)
    return left if same else None


def _of_call(model: Model, expr: syntax.Call) -> Labels | None:
    """What the function says of its result, from the forms of its arguments alone: all data are zero."""
    try:
        bound, _ = bound_call(expr, environment(model, values_at(model, expr, np.zeros(model.size))))
    except Failure:
        return None
    return None if bound.labels is None else bound.labels()
