"""The loss of a spec as a sum of errors that have a name, and what they come to on a table."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import singledispatchmethod
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.explain.quantities import Quantity, parse_exact, rounded
from privspec.explain.table import Part, ProbabilityTable
from privspec.language import syntax
from privspec.language.spelling import spell


@dataclass(frozen=True, slots=True)
class Shape(ABC):
    """How an error is measured, and how its average reads."""

    name: ClassVar[str]
    """What is averaged, after a figure in brackets."""
    of_words: ClassVar[bool] = False
    """Whether it asks only if two values are the same, so that they may be words."""

    def figure(self, average: float) -> Quantity:
        """The average as a reader has it."""
        return rounded(average)

    def to_json(self) -> dict[str, object]:
        return {"name": self.name}

    @abstractmethod
    def brief(self, average: float) -> str:
        """The average in a table: "off by 1.3"."""

    def words(self, average: float) -> str:
        """The average in a sentence: "off by 1.3 on average"."""
        return f"{self.brief(average)} on average"


@dataclass(frozen=True, slots=True)
class Wrong(Shape):
    """1 where the answer differs."""

    name: ClassVar[str] = "probability of a wrong answer"
    of_words: ClassVar[bool] = True

    def brief(self, average: float) -> str:
        return f"wrong with probability {self.figure(average)}"

    def words(self, average: float) -> str:
        return self.brief(average)


@dataclass(frozen=True, slots=True)
class Off(Shape):
    """The absolute difference of two numbers."""

    name: ClassVar[str] = "mean absolute error"

    def brief(self, average: float) -> str:
        return f"off by {self.figure(average)}"


@dataclass(frozen=True, slots=True)
class Away(Shape):
    """The distance of two points in a norm."""

    name: ClassVar[str] = "mean distance"

    def brief(self, average: float) -> str:
        return f"{self.figure(average)} away"


@dataclass(frozen=True, slots=True)
class Squared(Shape):
    """The squared distance, read as its root."""

    name: ClassVar[str] = "root mean square"

    def figure(self, average: float) -> Quantity:
        return rounded(math.sqrt(max(average, 0.0)))

    def brief(self, average: float) -> str:
        return f"± {self.figure(average)}"

    def words(self, average: float) -> str:
        return f"typically off by {self.figure(average)}"


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
        words = {"left": self.left, "right": self.right}
        return {"weight": str(self.weight), "worst": self.worst, "shape": self.shape.to_json(), **words}


@dataclass(frozen=True, eq=False, slots=True)
class Formulas:
    """The definitions of a spec by name, and the parameters that are one number."""

    definitions: Mapping[str, syntax.Expr]
    parameters: Mapping[str, Fraction]

    def to_json(self) -> dict[str, object]:
        return {"defined": sorted(self.definitions), "parameters": sorted(self.parameters)}


def formulas(tree: syntax.Spec, parameters: Mapping[str, Any]) -> Formulas:
    """The definitions of a spec, with the values of its parameters as a plan states them."""
    found = {v.target.name: v.value for v in tree.variables if v.value is not None}
    for statement in tree.background:
        match statement:
            case syntax.Relation(op="=", left=syntax.Name(id=name), right=right):
                found[name] = right
    numbers = {}
    for name, value in parameters.items():
        try:
            numbers[str(name)] = parse_exact(value)
        except ValueError:
            continue
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
        case syntax.Over(operator=operator, body=body, given=None):
            yield _error(body, weight, operator == "worst")
        case _:
            yield None


def _error(body: syntax.Expr, weight: Fraction, worst: bool) -> LossTerm | None:
    found = _shape(body)
    if found is None:
        return None
    shape, left, right = found
    return LossTerm(weight, worst, shape, spell(left), spell(right), body)


def _shape(body: syntax.Expr) -> tuple[Shape, syntax.Expr, syntax.Expr] | None:
    """What kind of error an expression is, and of what against what."""
    match body:
        case syntax.Call(function="mismatch", arguments=(left, right)):
            return Wrong(), left, right  # type: ignore[return-value]
        case syntax.Absolute(operand=syntax.Binary(op="-", left=left, right=right)):
            return Off(), left, right
        case syntax.Norm(operand=syntax.Binary(op="-", left=left, right=right)):
            return Away(), left, right
        case syntax.Binary(op="^", left=inner, right=syntax.Number(value=power)) if power == 2:
            return _squared(inner)
    return None


def _squared(inner: syntax.Expr) -> tuple[Shape, syntax.Expr, syntax.Expr] | None:
    match inner:
        case syntax.Norm(operand=syntax.Binary(op="-", left=left, right=right), order="2"):
            return Squared(), left, right
        case syntax.Binary(op="-", left=left, right=right):
            return Squared(), left, right
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

    @singledispatchmethod
    def value(self, expr: Any) -> Values:
        """The value of an expression at every pair.

        Raises: UnknownValueError.
        """
        raise UnknownValueError(type(expr).__name__)

    @value.register
    def _(self, expr: syntax.Number) -> Values:
        return np.array([[float(expr.value)]])

    @value.register
    def _(self, expr: syntax.Name) -> Values:
        name = expr.id
        if name in self.table.releases:
            at = self.table.releases.index(name)
            return _parts([column[at] for column in self.table.columns])[None, ...]
        if name in self.table.of and name not in self.table.counted:
            at = self.table.of.index(name)
            return _parts([row[at] for row in self.table.rows])[:, None, ...]
        if name in self.numbers:
            return np.array([[self.numbers[name]]])
        if name in self.formulas.definitions:
            return self.value(self.formulas.definitions[name])
        raise UnknownValueError(name)

    @value.register
    def _(self, expr: syntax.Negate) -> Values:
        return np.asarray(-self.value(expr.operand))

    @value.register
    def _(self, expr: syntax.Binary) -> Values:
        if expr.op not in _OPERATIONS:
            raise UnknownValueError(expr.op)
        left, right = self.value(expr.left), self.value(expr.right)
        if left.ndim != right.ndim:
            raise UnknownValueError("a number and a vector")
        return np.asarray(_OPERATIONS[expr.op](left, right))

    @value.register
    def _(self, expr: syntax.Absolute) -> Values:
        return np.asarray(np.abs(self.value(expr.operand)))

    @value.register
    def _(self, expr: syntax.Norm) -> Values:
        inner = self.value(expr.operand)
        return np.asarray(np.linalg.norm(inner, ord=_ORDERS[expr.order], axis=2) if inner.ndim == 3 else np.abs(inner))

    @value.register
    def _(self, expr: syntax.Call) -> Values:
        match expr:
            case syntax.Call(function="mismatch", arguments=(left, right)):
                differs = self.value(left) != self.value(right)
                return np.asarray(differs.any(axis=2) if differs.ndim == 3 else differs, dtype=float)
        raise UnknownValueError(expr.function)

    @value.register
    def _(self, expr: syntax.Over) -> Values:
        """A mean over a chosen law; means over the table itself stand outside of errors."""
        from privspec.language.walk import names_used

        named = [name for name in names_used(expr.body) if name in self.laws]
        if expr.operator != "E" or expr.given is not None or len(named) != 1:
            raise UnknownValueError("a mean")
        total = np.zeros((1, 1))
        for value, mass in self.laws[named[0]].items():
            there = replace(self, numbers={**self.numbers, named[0]: value})
            total = total + mass * there.value(expr.body)
        return total


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


def numeric_law(masses: Mapping[str, float]) -> dict[float, float]:
    """A law by its values, where these are numbers; empty otherwise."""
    try:
        return {float(parse_exact(label)): mass for label, mass in masses.items()}
    except ValueError:
        return {}
