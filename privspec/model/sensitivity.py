"""How far a computed value can move between neighbours: composed along paths of linear maps.

For display and for judging a graph; guarantees are derived elsewhere, with directed rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import SpecError
from privspec.language import syntax
from privspec.language.syntax import VariableKind
from privspec.model.graph import Model
from privspec.model.library import library
from privspec.model.neighbours import (
    BallDifferences,
    BoxDifferences,
    Differences,
    PairDifferences,
    UnboundedError,
    VectorDifferences,
)
from privspec.model.reports import Failure
from privspec.model.requirements import Requirement
from privspec.model.targets import meaning, needed, target
from privspec.model.values import Array, Value, as_float

COORDINATES_LIMIT = 1024
"""Largest number of input coordinates for which a linear map is laid out here."""

PAIRS_LIMIT = 512


class Degree(IntEnum):
    """How an expression depends on the inputs."""

    PUBLIC = 0
    OPEN = 1
    """Public, but its value is not known yet."""
    AFFINE = 2
    OTHER = 3


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The largest Euclidean change of a value between neighbours; an upper bound unless `exact`."""

    l2: float
    exact: bool


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
                degrees[current] = _degree(expr, degrees)
    return degrees[name]


def _degree(expr: syntax.Node, names: dict[str, Degree]) -> Degree:
    match expr:
        case syntax.Number() | syntax.String() | syntax.SetOf():
            return Degree.PUBLIC
        case syntax.Name():
            return names.get(expr.id, Degree.PUBLIC)
        case syntax.Negate(operand=inner) | syntax.Transpose(operand=inner):
            return _degree(inner, names)
        case syntax.Binary(op=op, left=left, right=right):
            return _binary(op, _degree(left, names), _degree(right, names))
        case syntax.Index(base=base):
            return _degree(base, names)
        case syntax.Vector(items=items) | syntax.TupleOf(items=items):
            return max(_degree(item, names) for item in items)
        case syntax.Comprehension(body=body):
            return _degree(body, names)
        case syntax.Call(function=function, arguments=arguments):
            if function in ("csv", "npy"):
                return Degree.PUBLIC
            inside = max((_degree(a, names) for a in arguments), default=Degree.PUBLIC)
            found = library().get(function)
            return inside if found is not None and found.linear else Degree.OTHER if inside else inside
        case _:
            return Degree.OTHER


def _binary(op: str, left: Degree, right: Degree) -> Degree:
    high, low = max(left, right), min(left, right)
    match op:
        case "+" | "-":
            return high
        case "*" | "@":
            # a factor without a value leaves the map unknown
            return high if low is Degree.PUBLIC or high is Degree.OPEN else Degree.OTHER
        case "/":
            return left if right is Degree.PUBLIC or high is Degree.OPEN else Degree.OTHER
        case _:
            return high if high <= Degree.OPEN else Degree.OTHER


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


def sensitivity(model: Model, requirement: Requirement, matrix: Array) -> Sensitivity | None:
    """The largest change of `matrix @ u` between the neighbours of a requirement.

    Returns: None if there is no limit, or the inputs are not made of numbers.
    """
    blocks = [model.block(name) for name in requirement.wrt]
    try:
        parts = requirement.neighbours.differences(blocks, model.size)
    except (UnboundedError, Failure, SpecError):
        return None
    found = [_largest(matrix, part) for part in parts]
    if not found:
        return None
    return Sensitivity(max(one.l2 for one in found), all(one.exact for one in found))


def _largest(matrix: Array, part: Differences) -> Sensitivity:
    match part:
        case VectorDifferences():
            lengths = np.linalg.norm(matrix[:, part.indices] * as_float(part.amounts), axis=0)
            return Sensitivity(float(lengths.max(initial=0.0)), part.exact)
        case PairDifferences():
            return _pairs(matrix[:, part.coordinates] * float(part.scale), exact=part.exact)
        case BallDifferences():
            norms = [np.linalg.norm(matrix[:, block], 2) for block in part.blocks]
            return Sensitivity(float(max(norms)) * float(part.radius), part.exact)
        case BoxDifferences():
            reach = as_float(part.reach)
            # the triangle inequality: exact only where one coordinate moves
            lengths = np.linalg.norm(matrix * reach, axis=0)
            sums = [float(lengths[block].sum()) for block in part.blocks]
            alone = all(len(block) == 1 for block in part.blocks)
            return Sensitivity(max(sums), part.exact and alone)


def _pairs(columns: NDArray[np.float64], *, exact: bool) -> Sensitivity:
    count = columns.shape[1]
    if count > PAIRS_LIMIT:
        return Sensitivity(2 * float(np.linalg.norm(columns, axis=0).max(initial=0.0)), exact=False)
    gram = columns.T @ columns
    squares = np.add.outer(np.diag(gram), np.diag(gram)) - 2 * gram
    return Sensitivity(float(np.sqrt(max(squares.max(initial=0.0), 0.0))), exact)
