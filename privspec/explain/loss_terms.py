"""The loss of a spec as a sum of errors that have a name, and what they come to on a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass, replace
from privspec.explain.quantities import Quantity, rounded
from privspec.explain.table import Part, ProbabilityTable
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.walk import names_used
from privspec.stated import parse_exact


@dataclass(frozen=True, slots=True)
class Shape:
    """How an error is measured, and how its average reads: in brackets after a figure, in a table, in a sentence.

    `of_words` is whether it asks only if two values are the same, so that they may be words; of squares the root is
    read.
    """

    name: str
    in_brief: str
    in_words: str
    of_words: bool = False
    root: bool = False

    def figure(self, average: float) -> Quantity:
        """The average as a reader has it."""
        return rounded(math.sqrt(max(average, 0.0)) if self.root else average)

    def brief(self, average: float) -> str:
        """The average in a table: "off by 1.3"."""
        return self.in_brief.format(self.figure(average))

    def words(self, average: float) -> str:
        """The average in a sentence: "off by 1.3 on average"."""
        return self.in_words.format(self.figure(average))

    def to_json(self) -> dict[str, object]:
        return {"name": self.name}


_ALIKE = "wrong with probability {}"
WRONG = Shape("probability of a wrong answer", _ALIKE, _ALIKE, of_words=True)
OFF = Shape("mean absolute error", "off by {}", "off by {} on average")
AWAY = Shape("mean distance", "{} away", "{} away on average")
SQUARED = Shape("root mean square", "± {}", "typically off by {}", root=True)


@dataclass(frozen=True, slots=True)
class LossTerm:
    """weight * E[body], or its largest value over the inputs where `worst`; body is the error of `left` to `right`."""

    weight: Fraction
    worst: bool
    shape: Shape
    left: str
    right: str
    body: syntax.Expr

    def to_json(self) -> dict[str, object]:
        names = {"left": self.left, "right": self.right}
        return {"weight": str(self.weight), "worst": self.worst, "shape": self.shape, **names}


@dataclass(frozen=True, eq=False, slots=True)
class Formulas:
    """The definitions of a spec by name, and the parameters that are one number."""

    definitions: Mapping[str, syntax.Expr]
    parameters: Mapping[str, Fraction]

    def to_json(self) -> dict[str, object]:
        return {"defined": sorted(self.definitions), "parameters": sorted(self.parameters)}


def formulas(tree: syntax.Spec, parameters: Mapping[str, str]) -> Formulas:
    """The definitions of a spec, with the values of its parameters as a plan states them."""
    found = {v.target.name: v.value for v in tree.variables if v.value is not None}
    for statement in tree.background:
        match statement:
            case syntax.Relation(op="=", left=syntax.Name(id=name), right=right):
                found[name] = right
    numbers = {}
    for name, value in parameters.items():
        with suppress(ValueError):
            numbers[name] = parse_exact(value)
    return Formulas(found, numbers)


def loss_terms(loss: syntax.Expr | None, parameters: Mapping[str, Fraction]) -> tuple[LossTerm, ...]:
    """The terms of a loss, weights by `parameters`; empty where one of them is of no known shape."""
    if loss is None:
        return ()
    found = tuple(_terms(loss, Fraction(1), parameters))
    return () if None in found else tuple(t for t in found if t is not None)


def _terms(expr: syntax.Expr, weight: Fraction, parameters: Mapping[str, Fraction]) -> Iterator[LossTerm | None]:
    match expr:
        case syntax.Binary(op="+", left=left, right=right):
            yield from _terms(left, weight, parameters)
            yield from _terms(right, weight, parameters)
        case syntax.Binary(op="*", left=syntax.Number(value=factor), right=inner):
            yield from _terms(inner, weight * factor, parameters)
        case syntax.Binary(op="*", left=syntax.Name(id=name), right=inner) if name in parameters:
            yield from _terms(inner, weight * parameters[name], parameters)
        case syntax.Over(operator=operator, body=body, given=None) if (found := _shape(body)) is not None:
            shape, left, right = found
            yield LossTerm(weight, operator == "worst", shape, spell(left), spell(right), body)
        case _:
            yield None


def _shape(body: syntax.Expr) -> tuple[Shape, Any, Any] | None:
    """What kind of error an expression is, and of what against what."""
    match body:
        case syntax.Call(function="mismatch", arguments=(left, right)):
            return WRONG, left, right
        case syntax.Absolute(operand=syntax.Binary(op="-", left=left, right=right)):
            return OFF, left, right
        case syntax.Norm(operand=syntax.Binary(op="-", left=left, right=right)):
            return AWAY, left, right
        case syntax.Binary(op="^", left=inner, right=syntax.Number(value=power)) if power == 2:
            inner = inner.operand if isinstance(inner, syntax.Norm) and inner.order == "2" else inner
            if isinstance(inner, syntax.Binary) and inner.op == "-":
                return SQUARED, inner.left, inner.right
    return None


Values: TypeAlias = NDArray[Any]
"""A value for each row and column: (rows or 1, columns or 1), with one more axis for vectors; doubles or words."""

_OPERATIONS: Mapping[str, Callable[[Values, Values], Values]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "^": np.power,
}
_ORDERS = {"1": 1.0, "2": 2.0, "inf": np.inf}


class UnknownValueError(Exception):
    """An expression that holds something else than arithmetic with the values of the table."""


@dataclass(frozen=True, eq=False, slots=True)
class Scene:
    """The values of a table by name, and what was chosen with it.

    `numbers` are chosen numbers and public parameters, `laws` the masses of chosen laws by value, `formulas` the
    definitions of the spec.
    """

    table: ProbabilityTable
    numbers: Mapping[str, float]
    laws: Mapping[str, Mapping[float, float]]
    formulas: Formulas

    def average(self, term: LossTerm) -> float | None:
        """The average error of a term, or its largest average over the rows; None if it cannot be computed."""
        try:
            with np.errstate(all="ignore"):
                errors = np.broadcast_to(self.value(term.body), self.table.shares.shape).astype(float)
        except (UnknownValueError, ValueError, TypeError):
            return None
        rows = (self.table.shares * errors).sum(axis=1)
        if not np.isfinite(rows).all():
            return None
        return float(rows.max()) if term.worst else self.table.mean(rows)

    def value(self, expr: Any) -> Values:
        """The value of an expression at every pair.

        Raises: UnknownValueError.
        """
        match expr:
            case syntax.Number(value=value):
                return np.array([[float(value)]])
            case syntax.Name(id=name):
                return self._named(name)
            case syntax.Negate(operand=inner):
                return np.asarray(-self.value(inner))
            case syntax.Binary(op=op) if op in _OPERATIONS:
                left, right = self.value(expr.left), self.value(expr.right)
                if left.ndim == right.ndim:
                    return np.asarray(_OPERATIONS[op](left, right))
            case syntax.Absolute(operand=inner):
                return np.asarray(np.abs(self.value(inner)))
            case syntax.Norm(operand=inner, order=order):
                at = self.value(inner)
                return np.asarray(np.linalg.norm(at, ord=_ORDERS[order], axis=2) if at.ndim == 3 else np.abs(at))
            case syntax.Call(function="mismatch", arguments=(one, other)):
                differs = self.value(one) != self.value(other)
                return np.asarray(differs.any(axis=2) if differs.ndim == 3 else differs, dtype=float)
            case syntax.Over(operator="E", body=body, given=None):
                # a mean over a chosen law; means over the table itself stand outside of errors
                named = [name for name in names_used(body) if name in self.laws]
                if len(named) == 1:
                    law = self.laws[named[0]].items()
                    there = ((replace(self, numbers={**self.numbers, named[0]: v}), mass) for v, mass in law)
                    return sum((mass * scene.value(body) for scene, mass in there), np.zeros((1, 1)))
        raise UnknownValueError(type(expr).__name__)

    def _named(self, name: str) -> Values:
        table = self.table
        if name in table.releases:
            at = table.releases.index(name)
            return _parts([column[at] for column in table.columns])[None, ...]
        if name in table.of and name not in table.counted:
            at = table.of.index(name)
            return _parts([row[at] for row in table.rows])[:, None, ...]
        if name in self.numbers:
            return np.array([[self.numbers[name]]])
        if name in self.formulas.definitions:
            return self.value(self.formulas.definitions[name])
        raise UnknownValueError(name)


def _parts(parts: list[Part]) -> Values:
    """Values (n,) or vectors (n, d), as doubles where all are numbers."""
    width = {len(part) for part in parts}
    if len(width) != 1:
        raise UnknownValueError("values of several lengths")
    try:
        listed: Values = np.array([[float(parse_exact(scalar)) for scalar in part] for part in parts])
    except ValueError:
        listed = np.array(parts)
    return listed[:, 0] if width == {1} else listed
