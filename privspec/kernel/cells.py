"""Finite reports of a real number: a row of exact probabilities for each cell that the number may lie in.

Where a report costs more the farther it is from the number, the order of its values by cost changes only at the middles
of two of them. A mechanism of pure epsilon needs no more cells than these ends make: the bound here is about every
mechanism that sees the number itself (noise/notes/real-cells.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod

from privspec.kernel.changes import Rows
from privspec.kernel.core.numbers import exp_up
from privspec.kernel.core.problem import PlanUnderCheck
from privspec.kernel.core.reading import Grid, JsonNode, Positive, Refused, Size, read
from privspec.kernel.measures import PURE_MEASURES
from privspec.kernel.points import ReportRules, guarantees_of
from privspec.kernel.promises import OneOutput, Promise, Question, epsilon_of, judge_promises
from privspec.kernel.terms import Table
from privspec.kernel.worth import judge_worth

NOTE = "real-cells"
CLASSES = ("", "all mechanisms that see the number itself")


@dataclass(frozen=True, slots=True)
class CellBlock:
    """`count` numbers between two ends, each with a report, one of `values`; the loss weighs |report - number|^power.

    `ends`: those of the cells, in order. `costs` (cells, values): the mean over the law of the number of what a report
    costs, times the probability of the cell, all times 1 / weight; None where the loss is that at the worst number.
    """

    FORM = "cells"

    source: str
    output: str
    party: str | None
    count: Positive
    shape: tuple[int, ...]
    values: tuple[Fraction, ...]
    ends: tuple[Fraction, ...]
    power: Positive
    weight: Size
    expression: str
    costs: Grid | None

    def __post_init__(self) -> None:
        ordered = all(list(some) == sorted(set(some)) for some in (self.values, self.ends))
        if not ordered or len(self.values) < 2 or len(self.ends) < 2 or not self.weight or self.power > 2:
            raise Refused("has values or cells that are not in order, or an error that is not known")
        known, (low, *_, high) = set(self.ends), self.ends
        middles = ((a + b) / 2 for i, a in enumerate(self.values) for b in self.values[:i])
        if any(low < middle < high and middle not in known for middle in middles):
            raise Refused("has a cell in which one value becomes nearer than another")
        if prod(self.shape) != self.count or (self.count > 1 and self.party is None):
            raise Refused("has numbers that are nobody's")
        wide = [len(row) for row in self.costs.rows] if self.costs is not None else []
        if self.costs is not None and wide != [len(self.values)] * self.cells:
            raise Refused("has costs of other cells or values")

    @property
    def cells(self) -> int:
        return len(self.ends) - 1

    def cell(self, number: Fraction) -> int:
        """Where a number lies; an end belongs to the cell above it."""
        return min(max(sum(end <= number for end in self.ends) - 1, 0), self.cells - 1)

    def errors(self, number: Fraction) -> list[Fraction]:
        """What each value costs at a number, without the weight."""
        return [abs(value - number) ** self.power for value in self.values]


@dataclass(frozen=True, slots=True)
class Cells(OneOutput):
    """What is executed: the cell of the number picks a row; `rows` are whole numbers of one sum, `total`."""

    block: CellBlock
    rows: tuple[tuple[int, ...], ...]
    total: int

    def loss(self) -> Fraction:
        """By the law of the number, or at the worst one: within a cell it is convex in the number."""
        block = self.block
        if block.costs is not None:
            pairs = zip(self.rows, block.costs.rows, strict=True)
            whole = sum(chance * cost for row, costs in pairs for chance, cost in zip(row, costs, strict=True))
            return block.weight * block.costs.unit * whole / self.total
        worst = max(
            sum(chance * error for chance, error in zip(row, block.errors(number), strict=True))
            for cell, row in enumerate(self.rows)
            for number in block.ends[cell : cell + 2]
        )
        return block.weight * worst / self.total

    @property
    def term(self) -> Table:
        """A report of the cell, as a row of a table."""
        return Table(self.rows, self.total, ((self.block.output, tuple(range(len(self.block.values)))),))

    @property
    def change(self) -> Rows:
        """A number may move from any cell to any other."""
        return Rows((), (tuple(range(self.block.cells)),))

    def epsilon(self) -> Fraction | None:
        """The logarithm of the largest ratio of two chances of one report, rounded up; None where it has no limit."""
        return epsilon_of(self.term, self.change)


def read_cells(block: JsonNode, mechanism: JsonNode) -> Cells:
    """What a plan executes for a block."""
    found = read(CellBlock, block)
    family, table = mechanism.fields("family", "table")
    family.same("cells")
    drawn = table.array(found.cells, len(found.values))
    rows = tuple(map(tuple, drawn.rows))
    if any(min(row) < 0 or sum(row) * drawn.unit != 1 for row in rows):
        raise table.wrong("has a row that is no law: its chances do not add up to one")
    return Cells(found, rows, sum(rows[0]))


def lower_bound(block: CellBlock, epsilon: Fraction, witness: JsonNode) -> Fraction:
    """What multipliers prove of every mechanism of pure epsilon.

    With least chances m_y every chance is between m_y and R m_y, R = e^epsilon, and the m_y add up to at most one. For
    any multiplier l of "a row adds up to one", a row costs at least l plus the sum over y of m_y times the least of
    (cost - l) u, u from 1 to R.
    """
    rows, ends = witness.fields("rows", "ends")
    multipliers = [Fraction(item.double()) for item in rows.items(block.cells)]
    ratio = exp_up(epsilon)
    if block.costs is not None:
        ends.same(None)
        costs = [[Fraction(entry) * block.costs.unit for entry in row] for row in block.costs.rows]
    else:
        weights = [[Fraction(one.double()) for one in pair.items(2)] for pair in ends.items(block.cells)]
        whole = sum(map(sum, weights))
        if min(map(min, weights)) < 0 or not whole:
            raise ends.wrong("are no weights of numbers")
        errors = [block.errors(number) for number in block.ends]
        costs = [
            [(low * a + high * b) / whole for a, b in zip(errors[cell], errors[cell + 1], strict=True)]
            for cell, (low, high) in enumerate(weights)
        ]
    reduced = [Fraction(0)] * len(block.values)
    for row, multiplier in zip(costs, multipliers, strict=True):
        for y, cost in enumerate(row):
            reduced[y] += (cost - multiplier) * (1 if cost >= multiplier else ratio)
    return block.weight * (sum(multipliers, Fraction(0)) + min(min(reduced), Fraction(0)))


def units_of(block: CellBlock) -> str:
    """The units of the loss."""
    return f"{'squared ' * (block.power == 2)}units of {block.source}"


class CellRules(ReportRules):
    """How plans about finite reports of real numbers are judged."""

    of = "number"

    def privacy(self, case: PlanUnderCheck) -> Cells:
        cells = read_cells(case.block, case.mechanism)
        block = cells.block
        self.view(case, block)
        case.says("law", True, f"{block.cells} rows of {len(block.values)} chances, each of exactly one in all")
        text = "the cell of a number is a function of that number alone: it costs no privacy"
        case.says("rounding", True, f"{text}; within a cell the order of the values by cost never changes")
        promises = [
            Promise(one, (Question(cells.change, one.asked, one.achieved),), (NOTE,), "epsilon {:.8g}")
            for one in guarantees_of(case, block, PURE_MEASURES)
        ]
        judge_promises(case, cells.term, promises)
        return cells

    def judge(self, case: PlanUnderCheck) -> Cells:
        cells = self.privacy(case)
        block = cells.block
        (bound,) = case.claims.fields(optional=("bound",))
        strictest = min(one.measure.figures({})["epsilon"] for one in case.frame.obligations)
        derived = None if bound.absent else lower_bound(block, strictest, bound)
        words = [block.expression, units_of(block), "worst" if block.costs is None else "expected"]
        judge_worth(case, cells.loss(), derived, CLASSES[derived is not None :], "such mechanism", words)
        return cells
