"""What the errors of a loss come to on a table, in doubles: for display, where the plan states only their sum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import singledispatchmethod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.explain.finite.table import Part, Table
from privspec.explain.losses import Formulas, LossTerm
from privspec.explain.quantities import parse_exact
from privspec.language import syntax

Grid: TypeAlias = NDArray[Any]
"""A value for each row and column: (rows or 1, columns or 1), with one more axis for vectors; doubles or words."""

_OPERATIONS: Mapping[str, Callable[[Grid, Grid], Grid]] = {
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

    table: Table
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
    def value(self, expr: Any) -> Grid:
        """The value of an expression at every pair.

        Raises: UnknownValueError.
        """
        raise UnknownValueError(type(expr).__name__)

    @value.register
    def _(self, expr: syntax.Number) -> Grid:
        return np.array([[float(expr.value)]])

    @value.register
    def _(self, expr: syntax.Name) -> Grid:
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
    def _(self, expr: syntax.Negate) -> Grid:
        return np.asarray(-self.value(expr.operand))

    @value.register
    def _(self, expr: syntax.Binary) -> Grid:
        if expr.op not in _OPERATIONS:
            raise UnknownValueError(expr.op)
        left, right = self.value(expr.left), self.value(expr.right)
        if left.ndim != right.ndim:
            raise UnknownValueError("a number and a vector")
        return np.asarray(_OPERATIONS[expr.op](left, right))

    @value.register
    def _(self, expr: syntax.Absolute) -> Grid:
        return np.asarray(np.abs(self.value(expr.operand)))

    @value.register
    def _(self, expr: syntax.Norm) -> Grid:
        inner = self.value(expr.operand)
        return np.asarray(np.linalg.norm(inner, ord=_ORDERS[expr.order], axis=2) if inner.ndim == 3 else np.abs(inner))

    @value.register
    def _(self, expr: syntax.Call) -> Grid:
        match expr:
            case syntax.Call(function="mismatch", arguments=(left, right)):
                differs = self.value(left) != self.value(right)
                return np.asarray(differs.any(axis=2) if differs.ndim == 3 else differs, dtype=float)
        raise UnknownValueError(expr.function)

    @value.register
    def _(self, expr: syntax.Over) -> Grid:
        """A mean over a chosen law; means over the table itself stand outside of errors."""
        from privspec.model.walk import names_used

        named = [name for name in names_used(expr.body) if name in self.laws]
        if expr.operator != "E" or expr.given is not None or len(named) != 1:
            raise UnknownValueError("a mean")
        total = np.zeros((1, 1))
        for value, mass in self.laws[named[0]].items():
            there = replace(self, numbers={**self.numbers, named[0]: value})
            total = total + mass * there.value(expr.body)
        return total


def _parts(parts: list[Part]) -> Grid:
    """Values (n,) or vectors (n, d), as doubles where all are numbers."""
    width = {len(part) for part in parts}
    if len(width) != 1:
        raise UnknownValueError("values of several lengths")
    try:
        listed: Grid = np.array([[float(parse_exact(scalar)) for scalar in part] for part in parts])
    except ValueError:
        listed = np.array(parts)
    return listed[:, 0] if width == {1} else listed


def numeric_law(masses: Mapping[str, float]) -> dict[float, float]:
    """A law by its values, where these are numbers; empty otherwise."""
    try:
        return {float(parse_exact(label)): mass for label, mass in masses.items()}
    except ValueError:
        return {}
