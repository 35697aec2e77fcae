"""Averages under a table, exactly: losses, accuracy lines, and both sides of conditions on the mechanism."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from operator import add, mul, sub, truediv
from typing import Any

import numpy as np

from privspec.certify.finite.draws import averaged_over_draws, draws_in
from privspec.certify.finite.ratios import Entries
from privspec.certify.finite.subject import FiniteSubject
from privspec.certify.motion import NotUnderstood
from privspec.certify.reading import Malformed
from privspec.language import syntax
from privspec.language.syntax import VariableKind
from privspec.language.walk import names_used, walk
from privspec.model.graph import Model
from privspec.model.pointwise import Grid, Pointwise

LAWS_COMPARED = "total_variation"
"""The function that compares laws, not values."""


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


def drawn(model: Model, expr: syntax.Node) -> bool:
    """Whether it differs from one draw to the next."""
    return VariableKind.OUTPUT in depends(model, expr)


def certain(model: Model, expr: syntax.Node) -> bool:
    """Whether neither an output nor a choice stands in it."""
    return not {VariableKind.OUTPUT, VariableKind.CHOOSE} & depends(model, expr)


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


# --- what a draw costs ---------------------------------------------------------------------------------


def pointlike(scene: Pointwise, expr: Any) -> Any:
    """With `total_variation(O, t)` as `mismatch(O, t)` where t is certain given the row: there the two are equal.

    The law of t is one point, and a law is as far from a point as it is likely to miss it. That holds for the number
    itself only, so it may not stand inside anything but sums and public multiples.

    Raises: NotUnderstood where laws are compared in another way.
    """
    model = scene.model
    if not any(isinstance(node, syntax.Call) and node.function == LAWS_COMPARED for node in walk(expr)):
        return expr
    match expr:
        case syntax.Call(function=function, arguments=(a, b)) if function == LAWS_COMPARED:
            single = all(next(draws_in(scene, side), None) is None for side in (a, b))
            if single and sorted((drawn(model, a), drawn(model, b))) == [False, True]:
                return replace(expr, function="mismatch")
        case syntax.Binary(op="+" | "-"):
            return replace(expr, left=pointlike(scene, expr.left), right=pointlike(scene, expr.right))
        case syntax.Binary(op="*") if not drawn(model, expr.left):
            return replace(expr, right=pointlike(scene, expr.right))
        case syntax.Binary(op="*" | "/") if not drawn(model, expr.right):
            return replace(expr, left=pointlike(scene, expr.left))
        case syntax.Negate():
            return replace(expr, operand=pointlike(scene, expr.operand))
    raise NotUnderstood("laws that are compared in this way")


@dataclass(frozen=True, eq=False, slots=True)
class Costs:
    """What every draw costs at every row: whole numbers (rows, columns) over one scale."""

    numerators: Entries
    scale: int

    @classmethod
    def of(cls, values: Entries) -> Costs:
        """From fractions."""
        scale = lcm(*{value.denominator for value in values.ravel().tolist()})
        whole: Entries = np.frompyfunc(lambda v: v.numerator * (scale // v.denominator), 1, 1)(values)
        return cls(whole, scale)

    def fractions(self, row: int) -> Entries:
        """One row as fractions."""
        return np.array([Fraction(v, self.scale) for v in self.numerators[row].tolist()], dtype=object)


def costs(subject: FiniteSubject, body: syntax.Expr, scene: Pointwise) -> Costs:
    """What every draw costs.

    Raises: Malformed if it is not one number.
    """
    chosen = VariableKind.CHOOSE in depends(subject.model, body)
    known = None if chosen or scene.bound else subject.known_costs
    if known is None or body not in known:
        found = Costs.of(subject.spread(averaged_over_draws(scene, pointlike(scene, body), subject.table.shape[0])))
        if known is None:
            return found
        known[body] = found
    result: Costs = known[body]
    return result


def _single(grid: Grid) -> Entries:
    if grid.shape or not isinstance(grid.data.ravel()[0], Fraction):
        raise Malformed("one number is wanted for each draw")
    return grid.data


def row_means(subject: FiniteSubject, values: Costs) -> list[Fraction]:
    """For each row the average cost under the table."""
    sums = (subject.table.numerators * values.numerators).sum(axis=1)
    return [Fraction(int(total), values.scale * subject.table.denominator) for total in sums]


def averaged(subject: FiniteSubject, means: list[Fraction]) -> Fraction:
    """The average over rows.

    Raises: NotUnderstood if the rows have no law.
    """
    if subject.prior is None:
        raise NotUnderstood("an average over data without a model")
    return sum((p * m for p, m in zip(subject.prior, means, strict=True)), Fraction(0))


# --- conditions ----------------------------------------------------------------------------------------

ARITHMETIC = {"+": add, "-": sub, "*": mul, "/": truediv}
"""Row by row."""


@dataclass(frozen=True, eq=False, slots=True)
class Sides:
    """Evaluates both sides of a condition at every row, with what is chosen as the plan says."""

    subject: FiniteSubject

    def at(self, expr: syntax.Expr) -> Entries:
        """The value (rows,) of an expression with averages in it."""
        model = self.subject.model
        if not drawn(model, expr):
            return self._spread(self.subject.scene.grid(expr))
        match expr:
            case syntax.Over(operator="E"):
                check_given(self.subject, expr)
                found = costs(self.subject, expr.body, self.subject.scene)
                return np.array(row_means(self.subject, found), dtype=object)
            case syntax.Binary(op=op) if op in ARITHMETIC:
                combined: Entries = ARITHMETIC[op](self.at(expr.left), self.at(expr.right))
                return combined
            case syntax.Negate():
                return -self.at(expr.operand)
            case syntax.Name(id=name) if (inner := model.nodes[name].definition) is not None:
                return self.at(inner)
        raise NotUnderstood("a condition with an output outside an average")

    def _spread(self, grid: Grid) -> Entries:
        column: Entries = np.broadcast_to(_single(grid), (self.subject.table.shape[0], 1))[:, 0]
        return column


def check_given(subject: FiniteSubject, expr: syntax.Over) -> None:
    """An average is over the draw alone: either all that picks the row is given, or only outputs stand in it.

    Raises: NotUnderstood.
    """
    given = set() if expr.given is None else set(names_used(expr.given))
    if given:
        if not set(subject.table.of) <= given:
            raise NotUnderstood("an average given a part of what picks the row")
    elif depends(subject.model, expr.body) & {VariableKind.INPUT}:
        raise NotUnderstood("an average over data in a condition")
