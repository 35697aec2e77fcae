"""A plan of finite reports of real numbers as a mechanism that can be run: exact cells, exact chances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privspec.execute.drawing import Labels, RowLaw, TableLaw
from privspec.execute.family import (
    Circumstances,
    Drawn,
    LocalReports,
    Plan,
    Secret,
    Simulation,
    readable_plan,
    refuse_long_simulation,
    refuse_unknown,
)
from privspec.execute.keeper import STRICT_RULE
from privspec.families.points.execution import read_points_of
from privspec.families.points.messages import Reports
from privspec.kernel.cells import CellBlock, Cells, read_cells
from privspec.kernel.core.reading import Item
from privspec.kernel.points import Error, PointBlock
from privspec.model.values import show
from privspec.noise.samplers import Randomness, SimulationRandomness

if TYPE_CHECKING:
    from privspec.model.graph import Model

RULE = (
    "each number by itself: one outside its limits moves to the nearer one, and what is missing or cannot be read "
    "becomes the number nearest to zero; a number at the end of a cell belongs to the cell above it"
)


ALIKE = 10**12
"""Inverse of the difference of chances that tells two cells apart in what many reports say."""


def cells_of_plan(plan: Plan) -> Cells:
    """Raises: UsageError PS0820 if the plan is not one that this version can execute."""
    with readable_plan():
        (block,) = plan["problem"]["blocks"]
        return read_cells(Item(block, "block"), Item(plan["mechanism"], "mechanism"))


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


@dataclass(frozen=True, eq=False)
class CellMechanism(Reports):
    """Each number picks the row of its cell, and gets a draw of its own."""

    cells: Cells
    trust: str

    @classmethod
    def of_plan(cls, plan: Plan) -> CellMechanism:
        return cls(cells_of_plan(plan), str(plan["problem"]["trust"]["kind"]))

    @staticmethod
    def fit(model: Model, data: Mapping[str, Any], circumstances: Circumstances) -> None:
        from privspec.kernel.core.reading import read
        from privspec.problem.cells import block_of
        from privspec.problem.form import document

        block = read(CellBlock, Item(document(block_of(model)), "block"))
        assert isinstance(block, CellBlock)
        read_points_of(_as_points(block), data, circumstances)

    @property
    def held(self) -> CellBlock:
        return self.cells.block

    def alone(self) -> CellMechanism:
        block = replace(self.cells.block, count=1, shape=(1, *self.cells.block.shape[1:]))
        return CellMechanism(replace(self.cells, block=block), self.trust)

    def possible(self, report: Sequence[float]) -> bool:
        """Whether a report is one of the values."""
        return set(report) <= {float(value) for value in self.cells.block.values}

    def local_reports(self, model: Model | None) -> LocalReports | None:
        """The rows that differ, each with the cells that have it; where every record is one person's."""
        block = self.cells.block
        if block.party is not None:
            return None
        ends, rows = [show(end) for end in block.ends], self.cells.rows
        # neighbours whose chances differ by what rounding leaves are one value
        same = [
            max(abs(a - b) for a, b in zip(*pair, strict=True)) * ALIKE <= self.cells.total for pair in pairwise(rows)
        ]
        starts = [0, *(cell for cell, alike in enumerate(same, 1) if not alike)]
        names = [f"{ends[cell]} to {ends[after]}" for cell, after in pairwise((*starts, block.cells))]
        laws = tuple(RowLaw.of(rows[cell], self.cells.total) for cell in starts)
        values = Labels.read([block.output], [show(value) for value in block.values])
        return LocalReports(TableLaw(Labels.read([block.source], names), values, laws), tuple(names))

    def read(self, data: Mapping[str, Any], circumstances: Circumstances) -> Secret:
        """The cells of the numbers.

        Raises: DataError PS0801 to PS0809.
        """
        block = self.cells.block
        refuse_unknown(data, (block.source,))
        return CellSecret(self.cells, self._places(data, circumstances), circumstances.strict)

    def _places(self, data: Mapping[str, Any], circumstances: Circumstances) -> list[int]:
        block = self.cells.block
        return [block.cell(number) for (number,) in read_points_of(_as_points(block), data, circumstances)]

    def simulate(self, asked: Simulation) -> NDArray[np.float64]:
        """Draws at the given data; at the number of the domain that is nearest to zero otherwise."""
        block = self.cells.block
        given = asked.data
        zero = [block.cell(Fraction(0))] * block.count
        places = zero if given is None else self._places(given, Circumstances())
        count = asked.repetitions * len(places)
        refuse_long_simulation(count, f"{count} exact draws", "take fewer")
        secret = CellSecret(self.cells, places, strict=False)
        randomness = SimulationRandomness(asked.seed)
        return np.array([secret.numbers(randomness) for _ in range(asked.repetitions)])


@dataclass(frozen=True, eq=False, slots=True)
class CellSecret(Secret):
    """The cell of each number."""

    cells: Cells
    places: Sequence[int]
    strict: bool

    @property
    def rules(self) -> tuple[str, ...]:
        return (STRICT_RULE,) if self.strict else (RULE,)

    def numbers(self, randomness: Randomness) -> NDArray[np.float64]:
        """The reports: a uniform whole number below the sum of a row, found among its running sums."""
        cells = self.cells
        laws = [RowLaw.of(row, cells.total) for row in cells.rows]
        values = [float(value) for value in cells.block.values]
        return np.array([values[laws[place].draw(randomness)] for place in self.places])

    def draw(self, randomness: Randomness) -> Drawn:
        block, values = self.cells.block, self.numbers(randomness)
        if block.party is not None:
            return Drawn({block.output: values.reshape(block.shape)})
        return Drawn({block.output: values}, reports=True)
