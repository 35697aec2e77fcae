"""A plan of tables with columns in order as a mechanism that can be run: exact answers, exact noise, then estimates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.matrices import ExactVector, integers
from privspec.core.records import dataclass
from privspec.execute.data import Grid, data_rules
from privspec.execute.family import (
    Circumstances,
    Drawn,
    FamilyMechanism,
    Plan,
    Secret,
    Simulation,
    readable_plan,
    refuse_long_simulation,
)
from privspec.families.marginals.execution import centred, counted, grid_of, split, whole_part
from privspec.kernel.core.linear import Matrix
from privspec.kernel.core.problem import read_frame
from privspec.kernel.core.reading import Item, read
from privspec.kernel.marginals import Subset
from privspec.kernel.ordered import Ordered, Strategies, Table, read_strategies
from privspec.kernel.quality.linear_figures import doubles
from privspec.noise.gaussian import GaussianNoise
from privspec.noise.samplers import Randomness, SimulationRandomness

if TYPE_CHECKING:
    from privspec.model.graph import Model

Array = NDArray[np.float64]
Counts = Mapping[Subset, NDArray[np.int64]]
LIMB = 25
"""Bits of the pieces in which a strategy is multiplied with counts in 64 bits."""


@dataclass(frozen=True, eq=False)
class OrderedMechanism(FamilyMechanism):
    """Noise is added to the strategy answers of each set of columns; tables are put together from estimates."""

    executed: Strategies
    grid: Grid

    @classmethod
    def of_plan(cls, plan: Plan) -> OrderedMechanism:
        with readable_plan():
            (block,), (data,) = plan["problem"]["blocks"], read_frame(Item(plan["problem"], "problem")).data
            executed = read_strategies(Item(block, "block"), Item(plan["mechanism"], "mechanism"))
            return cls(executed, grid_of(executed.block, data.rule, data.kept))

    @staticmethod
    def fit(model: Model, data: Mapping[str, Any], circumstances: Circumstances) -> None:
        from privspec.problem.elaborate import data_of
        from privspec.problem.form import document
        from privspec.problem.ordered import block_of

        block = read(Ordered, Item(document(block_of(model)), "block"))
        assert isinstance(block, Ordered)
        said = data_of(model, model.nodes[block.source])
        counted(grid_of(block, said.rule, said.kept), ((),), data, circumstances)

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.executed.outputs

    def read(self, data: Mapping[str, Any], circumstances: Circumstances) -> Secret:
        """The records by every set of columns and the columns in order.

        Raises: DataError PS0801 to PS0809.
        """
        return OrderedSecret(
            self.executed, self._counts(data, circumstances), data_rules((self.grid,), circumstances.strict)
        )

    def _counts(self, data: Mapping[str, Any], circumstances: Circumstances) -> Counts:
        block = self.executed.block
        found = counted(self.grid, [(*own, *block.ordered) for own in block.subsets], data, circumstances)
        shapes = [(*(block.sizes[i] for i in own), block.cells) for own in block.subsets]
        return {own: one.reshape(shape) for own, one, shape in zip(block.subsets, found, shapes, strict=True)}

    def simulate(self, asked: Simulation) -> Array:
        """Draws at the given data; at an empty table otherwise."""
        block = self.executed.block
        shapes = {own: (*(block.sizes[i] for i in own), block.cells) for own in block.subsets}
        counts: Counts = {own: np.zeros(shape, dtype=np.int64) for own, shape in shapes.items()}
        if asked.data is not None:
            counts = self._counts(asked.data, Circumstances())
        secret = OrderedSecret(self.executed, counts, ())
        if asked.approximate:
            generator = np.random.default_rng(asked.seed)
            return np.stack([secret.approximate(generator) for _ in range(asked.repetitions)])
        numbers = sum(map(prod, shapes.values()))
        refuse_long_simulation(
            asked.repetitions * numbers,
            f"{asked.repetitions} exact draws of {numbers} numbers",
            "pass approximate=True: floating-point noise, good enough for a simulation",
        )
        randomness = SimulationRandomness(asked.seed)
        return np.stack([secret.numbers(randomness) for _ in range(asked.repetitions)])


def _floats(matrix: Matrix) -> Array:
    return np.array(doubles(matrix), dtype=np.float64).reshape(matrix.nrows(), matrix.ncols())


def times(left: NDArray[Any], whole: list[int], rows: int) -> NDArray[Any]:
    """Whole numbers (cells, M) times the transpose of a matrix (rows, M) of whole numbers, exactly."""
    entries, total, shift = (
        np.array(whole, dtype=object).reshape(rows, -1),
        np.zeros((len(left), rows), dtype=object),
        0,
    )
    signs, sizes = np.where(entries < 0, -1, 1), np.abs(entries)
    most = float(np.abs(left).astype(np.float64).max(initial=0.0)) * left.shape[1] * 2.0**LIMB
    while (sizes > 0).any():
        limb = signs * (sizes % 2**LIMB)
        part = left @ limb.T if left.dtype == object or most >= 2.0**62 else left @ limb.astype(np.int64).T
        total = total + part.astype(object) * 2**shift
        sizes, shift = sizes // 2**LIMB, shift + LIMB
    return total


@dataclass(frozen=True, eq=False, slots=True)
class OrderedSecret(Secret):
    """The records by every set of columns, those in order as one axis, the last."""

    executed: Strategies
    counts: Counts
    rules: tuple[str, ...]

    def draw(self, randomness: Randomness) -> Drawn:
        return Drawn(split(self.executed.block, self.numbers(randomness)), str(self.executed.output_grid))

    def deviations(self) -> Mapping[str, Array]:
        return split(
            self.executed.block,
            np.array([float(f"{value:.6g}") for value in np.sqrt(variances(self.executed)).tolist()]),
        )

    def numbers(self, randomness: Randomness) -> Array:
        """The released numbers: exact until the noisy answers are written as doubles."""
        return self._released({own: self._noisy(own, randomness) for own in self.executed.block.subsets})

    def _noisy(self, own: Subset, randomness: Randomness) -> Array:
        """Strategy answers with their noise, rounded to the grid, centred along the columns of the set."""
        counts, strategy, grid = self.counts[own], self.executed.parts[own].strategy, self.executed.grid
        cells, rows = prod(counts.shape[:-1]), strategy.nrows()
        whole, below = strategy.numer_denom()
        part = whole_part(counts, len(own)).reshape(cells, -1)
        exact = times(part, [int(value) for value in whole.entries()], rows).reshape(-1)
        size = int(below) * cells
        steps = GaussianNoise(Fraction(size)).release(ExactVector(integers(exact.tolist()), 1), grid * size, randomness)
        values = np.array([step * grid.numerator / grid.denominator for step in steps], dtype=np.float64)
        return centred(values.reshape(*counts.shape[:-1], rows), len(own))

    def approximate(self, generator: np.random.Generator) -> Array:
        """The same with floating-point noise: never a release."""
        parts = {}
        for own, counts in self.counts.items():
            answers = counts @ _floats(self.executed.parts[own].strategy).T
            parts[own] = centred(answers + generator.standard_normal(answers.shape), len(own))
        return self._released(parts)

    def _released(self, parts: Mapping[Subset, Array]) -> Array:
        """Tables put together from estimates of the counts of the ordered cells, on the output grid."""
        step, executed = float(self.executed.output_grid), self.executed
        known = {own: one @ _floats(executed.parts[own].reconstruction).T for own, one in parts.items()}
        values = np.concatenate([table.reshape(-1) for table in self._tables(known)])
        return np.asarray(np.rint(values / step) * step + 0.0)

    def _tables(self, known: Mapping[Subset, Array]) -> Iterator[Array]:
        block = self.executed.block
        for table in block.tables:
            plain, total = block.plain(table), np.zeros(())
            for own in block.within(table):
                values = along(block, table, known[own], len(own))
                spread = prod(block.sizes[i] for i in plain if i not in own)
                shape = [block.sizes[i] if i in own else 1 for i in plain]
                total = total + values.reshape((*shape, *values.shape[len(own) :])) / spread
            full = np.broadcast_to(total, [*(block.sizes[i] for i in plain), *total.shape[len(plain) :]])
            axes = [*plain, *(i for i in block.ordered if i in table.columns)]
            yield full.transpose([axes.index(i) for i in table.columns])


def along(block: Ordered, table: Table, values: Array, axes: int) -> Array:
    """What a table asks of the ordered cells, the last axis; those before are left as they are."""
    found = values.reshape((*values.shape[:axes], *(block.sizes[i] for i in block.ordered)))
    at = axes
    for way in block.ways(table):
        if way == "all":
            found = found.sum(axis=at)
            continue
        if way == "running":
            found = found.cumsum(axis=at)
        elif way == "ranges":
            low, high = np.triu_indices(found.shape[at])
            before = np.insert(found.cumsum(axis=at), 0, 0.0, axis=at)
            found = np.take(before, high + 1, axis=at) - np.take(before, low, axis=at)
        at += 1
    return found


def variances(executed: Strategies) -> Array:
    """The variance of every released number, in order."""
    block, found = executed.block, list[Array]()
    roots = {own: _floats(part.reconstruction).T for own, part in executed.parts.items()}
    for table in block.tables:
        plain, total = block.plain(table), np.zeros(())
        for own in block.within(table):
            spread = prod(block.sizes[i] for i in plain if i not in own)
            squares = (along(block, table, roots[own], 1) ** 2).sum(axis=0)
            total = total + squares * (float(block.share(own)) / spread**2)
        axes = [*plain, *(i for i in block.ordered if i in table.columns)]
        full = np.broadcast_to(total, [*(block.sizes[i] for i in plain), *total.shape])
        found.append(full.transpose([axes.index(i) for i in table.columns]).reshape(-1))
    return np.concatenate(found)
