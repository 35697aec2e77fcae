"""How far the law of an output is from that of a winner that is drawn from the data: linear, with slacks.

Given the row, the total variation of the laws f of the output and t of the winner is the sum over values o of what f_o
exceeds t_o by. A slack for each o, at least f_o - t_o and at least 0, stands for it wherever it costs something: the
weights of total variations in losses and bounds are positive. Names of rows: `apart:<where>:<row>:<value>`, where is
"loss:<number>" for the total variations of the loss, "<line>:<number>" for those of an accuracy line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privspec.compile.finite.system import Costs, LinearLine, Scalar
from privspec.core.spans import Span
from privspec.language import syntax
from privspec.model.chances import Chances, RowLaws
from privspec.model.reports import Failure
from privspec.model.walk import names_used, walk
from privspec.model.worlds import Worlds, key
from privspec.problem.terms import public, public_number
from privspec.solvers.table_programs import ExactTable

COMPARES = "total_variation"


@dataclass(frozen=True, eq=False, slots=True)
class Apart:
    """`weight` times the total variation between an output and a winner, in an average or in the worst case.

    `where` names it; `seen` the number of the output's value in each column; `law` (rows, values) what the winner's law
    gives to these values; `worst` the number of the worst case that it stands in, None for an average.
    """

    where: str
    span: Span
    weight: Fraction
    seen: NDArray[np.intp]
    law: Costs
    worst: int | None = None

    def slack(self, row: int, value: int) -> str:
        """The name of a slack."""
        return f"slack:{self.where}:{row}:{value}"

    def slacks(self, row: int) -> dict[str, Fraction]:
        """Those of a row with the weight."""
        return {self.slack(row, o): self.weight for o in self._values(row)}

    def _values(self, row: int) -> list[int]:
        """Values that may be drawn too often."""
        return [o for o, chance in enumerate(self.law[row]) if chance < 1]

    def scalars(self, shares: Costs | None) -> Iterator[Scalar]:
        """The slacks; `shares` (rows,) are the probabilities of rows where each costs the loss something."""
        for r in range(len(self.law)):
            cost = Fraction(0) if shares is None else shares[r] * self.weight
            yield from (Scalar(self.slack(r, o), Fraction(0), Fraction(1), cost) for o in self._values(r))

    def lines(self) -> Iterator[LinearLine]:
        """That no slack is less than the excess it stands for."""
        for r, law in enumerate(self.law):
            for o in self._values(r):
                table = {(r, int(c)): Fraction(1) for c in np.flatnonzero(self.seen == o)}
                below = {self.slack(r, o): Fraction(-1)}
                yield LinearLine(f"apart:{self.where}:{r}:{o}", self.span, table, below, law[o], False)

    def reached(self, exact: ExactTable) -> list[Fraction]:
        """The total variation in every row of a table."""
        found = []
        for numerators, law in zip(exact.numerators, self.law, strict=True):
            mass = [0] * len(law)
            for c, o in enumerate(self.seen):
                mass[o] += numerators[c]
            gaps = (Fraction(m, exact.denominator) - chance for m, chance in zip(mass, law, strict=True))
            found.append(sum((gap for gap in gaps if gap > 0), Fraction(0)))
        return found


def split(
    expr: syntax.Expr, chances: Chances, worlds: Worlds, weight: Fraction = Fraction(1)
) -> Iterator[tuple[Fraction, syntax.Expr]]:
    """Terms of a sum with public factors, as far as total variations from drawn winners stand in them."""
    model = worlds.model
    if not any(compared(node, chances, worlds) is not None for node in walk(expr)):
        yield weight, expr
        return
    match expr:
        case syntax.Binary(op="+" | "-"):
            yield from split(expr.left, chances, worlds, weight)
            yield from split(expr.right, chances, worlds, weight if expr.op == "+" else -weight)
        case syntax.Negate():
            yield from split(expr.operand, chances, worlds, -weight)
        case syntax.Binary(op="*") if public(expr.left, model):
            yield from split(expr.right, chances, worlds, weight * public_number(expr.left, model))
        case syntax.Binary(op="*") if public(expr.right, model):
            yield from split(expr.left, chances, worlds, weight * public_number(expr.right, model))
        case syntax.Binary(op="/") if public(expr.right, model) and public_number(expr.right, model):
            yield from split(expr.left, chances, worlds, weight / public_number(expr.right, model))
        case _:
            yield weight, expr


def compared(node: syntax.Node, chances: Chances, worlds: Worlds) -> tuple[syntax.Expr, RowLaws] | None:
    """The output and the winner's laws of `total_variation(O, winner)`; None for anything else, or certain winners."""
    match node:
        case syntax.Call(function=function, arguments=(a, b)) if function == COMPARES:
            for mine, other in ((a, b), (b, a)):
                law = chances.law(other)
                if law is not None and set(names_used(mine)) & set(worlds.releases):
                    return None if all(max(one.values()) == 1 for one in law) else (mine, law)  # type: ignore[return-value]
    return None


def apart(
    node: syntax.Expr, chances: Chances, worlds: Worlds, weight: Fraction, where: str, worst: int | None
) -> Apart | None:
    """A term of `split` that is a total variation from a drawn winner; None for others.

    Raises: Failure PS0502 if it is rewarded for being large.
    """
    found = compared(node, chances, worlds)
    if found is None:
        return None
    mine, laws = found
    if weight < 0:
        raise Failure("PS0502", node.span, "solve cannot reward a large total variation: its weight is negative")
    grid = chances.scene.grid(mine)
    if grid.data.shape[0] > 1:
        raise Failure("PS0502", mine.span, "solve compares the law of an output with that of a winner")
    values = [key(grid.value(0, c)) for c in range(len(worlds.columns))]
    number = {value: o for o, value in enumerate(dict.fromkeys(values))}
    law = np.array([[one.get(value, Fraction(0)) for value in number] for one in laws], dtype=object)
    return Apart(where, node.span, weight, np.array([number[v] for v in values], dtype=np.intp), law, worst)
