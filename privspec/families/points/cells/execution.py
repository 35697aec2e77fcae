"""A plan of finite reports of real numbers as a mechanism that can be run: exact cells, exact chances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.execute.drawing import Labels, RowLaw, TableLaw
from privspec.execute.family import BlockSecret, Circumstances, Drawn, LocalReports
from privspec.families.points.execution import read_points_of
from privspec.families.points.messages import Reports
from privspec.kernel.cells import CellBlock, Cells, read_cells
from privspec.kernel.core.problem import Data
from privspec.kernel.points import Error, PointBlock
from privspec.model.graph import Model
from privspec.model.values import show
from privspec.noise.samplers import Randomness

RULE = (
    "each number by itself: one outside its limits moves to the nearer one, and what is missing or cannot be read "
    "becomes the number nearest to zero; a number at the end of a cell belongs to the cell above it"
)


ALIKE = 10**12
"""Inverse of the difference of chances that tells two cells apart in what many reports say."""


def _as_points(block: CellBlock) -> PointBlock:
    """The numbers as points of one number, for reading."""
    low, *_, high = block.ends
    return PointBlock(
        source=block.source,
        output=block.output,
        party=block.party,
        count=block.count,
        size=1,
        shape=block.shape,
        lower=low,
        upper=high,
        radius=None,
        ball=None,
        least=None,
        most=None,
        error=Error("l2", block.power, block.weight),
        expression=block.expression,
        kind="",
        accuracy=(),
    )


class CellMechanism(Reports[Cells, list[int]]):
    """Each number picks the row of its cell, and gets a draw of its own."""

    BLOCK = CellBlock
    READ = read_cells

    @staticmethod
    def content(block: Any, _source: Data, data: Mapping[str, Any], circumstances: Circumstances) -> list[int]:
        return [block.cell(number) for (number,) in read_points_of(_as_points(block), data, circumstances)]

    @property
    def nothing(self) -> list[int]:
        """The number of the domain that is nearest to zero."""
        block = self.executed.block
        return [block.cell(Fraction(0))] * block.count

    def possible(self, report: Sequence[float]) -> bool:
        """Whether a report is one of the values."""
        return len(report) == 1 and set(report) <= {float(value) for value in self.executed.block.values}

    def local_reports(self, model: Model | None) -> LocalReports | None:
        """The rows that differ, each with the cells that have it; where every record is one person's."""
        block = self.executed.block
        if block.party is not None:
            return None
        ends, rows = [show(end) for end in block.ends], self.executed.rows
        # neighbours whose chances differ by what rounding leaves are one value
        total = self.executed.total
        same = [max(abs(a - b) for a, b in zip(*pair, strict=True)) * ALIKE <= total for pair in pairwise(rows)]
        starts = [0, *(cell for cell, alike in enumerate(same, 1) if not alike)]
        names = [f"{ends[cell]} to {ends[after]}" for cell, after in pairwise((*starts, block.cells))]
        laws = tuple(RowLaw.of(rows[cell], total) for cell in starts)
        values = Labels.read([block.output], [show(value) for value in block.values])
        return LocalReports(TableLaw(Labels.read([block.source], names), values, laws), tuple(names))


class CellSecret(BlockSecret[CellMechanism, list[int]]):
    """The cell of each number."""

    RULE = RULE

    @property
    def size(self) -> int:
        return len(self.content)

    def numbers(self, randomness: Randomness) -> NDArray[np.float64]:
        """The reports: a uniform whole number below the sum of a row, found among its running sums."""
        cells = self.mechanism.executed
        laws = [RowLaw.of(row, cells.total) for row in cells.rows]
        values = [float(value) for value in cells.block.values]
        return np.array([values[laws[place].draw(randomness)] for place in self.content])

    def draw(self, randomness: Randomness) -> Drawn:
        block, values = self.mechanism.executed.block, self.numbers(randomness)
        if block.party is not None:
            return Drawn({block.output: values.reshape(block.shape)})
        return Drawn({block.output: values}, reports=True)


CellMechanism.SECRET = CellSecret
