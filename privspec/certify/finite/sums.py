"""Losses and bounds as sums of averages and worst cases, with total variations between an output and a drawn winner.

Given the row, such a total variation is the sum of what the output has of each value beyond what the winner's law gives
to it. It is no average of a cost over draws, so it may stand in sums with public factors only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privspec.certify.finite.averages import (
    LAWS_COMPARED,
    Costs,
    Price,
    Term,
    averaged,
    costs,
    drawn,
    number,
    public,
    row_means,
    terms,
)
from privspec.certify.finite.draws import law_of, read_draw
from privspec.certify.finite.ratios import Entries, Indices
from privspec.certify.finite.subject import FiniteSubject
from privspec.certify.finite.worlds import plain
from privspec.certify.motion import NotUnderstood
from privspec.certify.reading import Malformed
from privspec.language import syntax
from privspec.language.walk import walk
from privspec.model.pointwise import Pointwise


@dataclass(frozen=True, eq=False, slots=True)
class Variation:
    """`weight` times a total variation: `seen` numbers what a column shows, `law` (rows, values) is the winner's."""

    weight: Fraction
    seen: Indices
    law: Entries

    def at_rows(self, subject: FiniteSubject) -> list[Fraction]:
        """The total variation itself, in each row of the table."""
        shown = subject.table.seen(self.seen)
        gaps = [[Fraction(int(n), shown.denominator) - p for n, p in zip(*row, strict=True)]
                for row in zip(shown.numerators, self.law, strict=True)]  # fmt: skip
        return [sum((gap for gap in row if gap > 0), Fraction(0)) for row in gaps]


@dataclass(frozen=True, eq=False, slots=True)
class Body:
    """What stands in an average or a worst case: weighted costs of draws, and total variations."""

    costs: tuple[tuple[Fraction, Costs], ...]
    variations: tuple[Variation, ...]

    def at_rows(self, subject: FiniteSubject) -> list[Fraction]:
        """Its value in each row of the table."""
        found = [Fraction(0)] * subject.table.shape[0]
        for weight, cost in self.costs:
            found = [old + weight * mean for old, mean in zip(found, row_means(subject, cost), strict=True)]
        for one in self.variations:
            found = [old + one.weight * gap for old, gap in zip(found, one.at_rows(subject), strict=True)]
        return found

    def cost(self, subject: FiniteSubject) -> Costs:
        """The costs of draws in one."""
        if len(self.costs) == 1 and self.costs[0][0] == 1:
            return self.costs[0][1]
        whole: Entries = np.full(subject.table.shape, Fraction(0), dtype=object)
        for weight, cost in self.costs:
            whole = whole + np.stack([cost.fractions(row) * weight for row in range(len(whole))])
        return Costs.of(whole)


def read_body(subject: FiniteSubject, expr: syntax.Expr, scene: Pointwise) -> Body:
    """The inside of an average or a worst case.

    Raises: NotUnderstood, Malformed.
    """
    cost: list[tuple[Fraction, Costs]] = []
    variations: list[Variation] = []
    for weight, part in _parts(scene, expr, Fraction(1)):
        found = _variation(subject, scene, part, weight)
        if found is None:
            cost.append((weight, costs(subject, part, scene)))
        elif all(max(law) == 1 for law in found.law):  # a law is as far from a point as it is likely to miss it
            cost.append((weight, Costs.of(1 - found.law[:, found.seen])))
        else:
            variations.append(found)
    return Body(tuple(cost), tuple(variations))


def _parts(scene: Pointwise, expr: Any, weight: Fraction) -> Iterator[tuple[Fraction, syntax.Expr]]:
    """Terms with public factors, down to where no total variation from a winner stands inside."""
    if not any(_winner(scene, node) is not None for node in walk(expr)):
        yield weight, expr
        return
    match expr:
        case syntax.Binary(op="+" | "-"):
            yield from _parts(scene, expr.left, weight)
            yield from _parts(scene, expr.right, weight if expr.op == "+" else -weight)
        case syntax.Negate():
            yield from _parts(scene, expr.operand, -weight)
        case syntax.Binary(op="*") if public(scene.model, expr.left):
            yield from _parts(scene, expr.right, weight * number(scene, expr.left))
        case syntax.Binary(op="*") if public(scene.model, expr.right):
            yield from _parts(scene, expr.left, weight * number(scene, expr.right))
        case syntax.Binary(op="/") if public(scene.model, expr.right):
            yield from _parts(scene, expr.left, weight / number(scene, expr.right))
        case _:
            yield weight, expr


def _winner(scene: Pointwise, node: syntax.Node) -> tuple[Any, Any] | None:
    """The two sides of a total variation of which the second is drawn from the data."""
    if isinstance(node, syntax.Call) and node.function == LAWS_COMPARED and len(node.arguments) == 2:
        for mine, other in (node.arguments, node.arguments[::-1]):
            if drawn(scene.model, mine) and read_draw(scene, other) is not None:
                return mine, other
    return None


def _variation(subject: FiniteSubject, scene: Pointwise, part: Any, weight: Fraction) -> Variation | None:
    sides = _winner(scene, part)
    if sides is None:
        return None
    grid, draw = scene.grid(sides[0]), read_draw(scene, sides[1])
    if grid.data.shape[0] > 1 or draw is None:
        raise NotUnderstood("a total variation from something that depends on the data and the draw")
    values = [plain(grid.value(0, column)) for column in range(subject.table.shape[1])]
    order = list(dict.fromkeys(values))
    laws = law_of(scene, draw, subject.table.shape[0])
    law: Entries = np.array([[Fraction(one.get(value, 0)) for value in order] for one in laws], dtype=object)
    return Variation(weight, np.array([order.index(value) for value in values], dtype=np.int64), law)


def total(subject: FiniteSubject, expr: syntax.Expr, scene: Pointwise | None = None) -> Fraction:
    """The value of a loss, or of the left side of an accuracy line."""
    scene = scene or subject.scene
    value = Fraction(0)
    for term in terms(scene, expr):
        match term:
            case Term():
                means = read_body(subject, term.body, scene).at_rows(subject)
                value += term.weight * (max(means) if term.operator == "worst" else averaged(subject, means))
            case Price():
                value += term.weight * _scalar(subject, term.name)
            case _:
                value += term
    return value


def _scalar(subject: FiniteSubject, name: str) -> Fraction:
    if name not in subject.table.scalars:
        raise Malformed(f"the plan does not say what {name} is")
    return subject.table.scalars[name]
