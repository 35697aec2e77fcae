"""A plan of tables of counts as a mechanism that can be run: exact parts, exact noise, then sums of parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import prod, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.matrices import ExactVector, integers
from privspec.core.records import dataclass
from privspec.execute.data import Grid, count_tables, data_rules, located
from privspec.execute.family import (
    Circumstances,
    Drawn,
    FamilyMechanism,
    Plan,
    Secret,
    Simulation,
    readable_plan,
    refuse_long_simulation,
    refuse_unknown,
)
from privspec.execute.keeper import given_for
from privspec.kernel.core.linear import Held
from privspec.kernel.core.problem import read_frame
from privspec.kernel.core.reading import Item, read
from privspec.kernel.marginals import Marginals, Residuals, Separate, Subset, read_executed
from privspec.kernel.ordered import Ordered
from privspec.kernel.participation import Kept
from privspec.noise.gaussian import GaussianNoise
from privspec.noise.laplace import LaplaceNoise
from privspec.noise.samplers import Randomness, SimulationRandomness

if TYPE_CHECKING:
    from privspec.model.graph import Model

Array = NDArray[np.float64]
Counts = Mapping[Subset, NDArray[np.int64]]
"""The records by each set of columns, in the shape of their sizes."""
ROOM = 2**62
"""Whole numbers below it are computed with in 64 bits."""


def executed_of_plan(plan: Plan) -> Residuals | Separate:
    """Raises: UsageError PS0820 if the plan is not one that this version can execute."""
    with readable_plan():
        (block,) = plan["problem"]["blocks"]
        return read_executed(Item(block, "block"), Item(plan["mechanism"], "mechanism"))


def grid_of(block: Marginals | Ordered, rule: str, kept: Kept | None) -> Grid:
    """The table as data are read into it."""
    size = prod(block.sizes)
    held = Held(block.source, 0, size, "cells", (), Fraction(0), None, None, block.columns, block.records, None)
    return Grid(held, Fraction(1), rule == "drop", None, kept)


@dataclass(frozen=True, eq=False)
class TableMechanism(FamilyMechanism):
    """Noise is added to the part of each set of columns; tables are sums of these."""

    executed: Residuals | Separate
    grid: Grid

    @classmethod
    def of_plan(cls, plan: Plan) -> TableMechanism:
        executed = executed_of_plan(plan)
        (data,) = read_frame(Item(plan["problem"], "problem")).data
        return cls(executed, grid_of(executed.block, data.rule, data.kept))

    @staticmethod
    def fit(model: Model, data: Mapping[str, Any], circumstances: Circumstances) -> None:
        from privspec.problem.elaborate import data_of
        from privspec.problem.form import document
        from privspec.problem.marginals import block_of

        block = read(Marginals, Item(document(block_of(model)), "block"))
        assert isinstance(block, Marginals)
        said = data_of(model, model.nodes[block.source])
        counted(grid_of(block, said.rule, said.kept), ((),), data, circumstances)

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.executed.outputs

    def read(self, data: Mapping[str, Any], circumstances: Circumstances) -> Secret:
        """The records by every set of columns.

        Raises: DataError PS0801 to PS0809.
        """
        counts = counted(self.grid, self.counted, data, circumstances)
        return self._secret(
            dict(zip(self.counted, counts, strict=True)), data_rules((self.grid,), circumstances.strict)
        )

    @property
    def counted(self) -> tuple[Subset, ...]:
        """The sets of columns by which records are counted."""
        block = self.executed.block
        return tuple(dict.fromkeys(block.tables)) if isinstance(self.executed, Separate) else block.subsets

    def _secret(self, counts: Counts, rules: tuple[str, ...]) -> TableSecret | SeparateSecret:
        if isinstance(self.executed, Separate):
            return SeparateSecret(self.executed, counts, rules)
        return TableSecret(self.executed, counts, rules)

    def simulate(self, asked: Simulation) -> Array:
        """Draws at the given data; at an empty table otherwise."""
        data, block = asked.data, self.executed.block
        sizes = {own: tuple(block.sizes[i] for i in own) for own in self.counted}
        counts: Counts = {own: np.zeros(shape, dtype=np.int64) for own, shape in sizes.items()}
        if data is not None:
            found = counted(self.grid, self.counted, data, Circumstances())
            counts = dict(zip(self.counted, found, strict=True))
        secret = self._secret(counts, ())
        if asked.approximate:
            generator = np.random.default_rng(asked.seed)
            return np.stack([secret.approximate(generator) for _ in range(asked.repetitions)])
        numbers = sum(map(prod, sizes.values()))
        refuse_long_simulation(
            asked.repetitions * numbers,
            f"{asked.repetitions} exact draws of {numbers} numbers",
            "pass approximate=True: floating-point noise, good enough for a simulation",
        )
        randomness = SimulationRandomness(asked.seed)
        return np.stack([secret.numbers(randomness) for _ in range(asked.repetitions)])


def counted(
    grid: Grid, subsets: Sequence[Subset], data: Mapping[str, Any], circumstances: Circumstances
) -> list[NDArray[np.int64]]:
    """The records by each of some sets of columns, in the shape of their sizes.

    Raises: DataError PS0801 to PS0809.
    """
    name = grid.held.name
    refuse_unknown(data, (name,))
    return count_tables(grid, subsets, located(name, given_for(name, data)), circumstances)


def centred(values: Array, axes: int | None = None) -> Array:
    """With the mean along every axis, or the first so many, taken off, axis by axis."""
    for axis in range(values.ndim if axes is None else axes):
        values = values - values.mean(axis=axis, keepdims=True)
    return values


def whole_part(counts: NDArray[np.int64], axes: int | None = None) -> NDArray[Any]:
    """The centred counts times the number of cells, exactly: along every axis n times a number less their sum.

    Or along the first so many `axes`, times the number of their cells.
    """
    shape, total = counts.shape, float(counts.sum(dtype=np.float64))
    values: NDArray[Any] = counts if total * prod(2 * n for n in shape) < ROOM else counts.astype(object)
    for axis, n in enumerate(shape[:axes]):
        values = n * values - values.sum(axis=axis, keepdims=True)
    return values


@dataclass(frozen=True, eq=False, slots=True)
class TableSecret(Secret):
    """The records by every set of columns."""

    executed: Residuals
    counts: Counts
    rules: tuple[str, ...]

    def draw(self, randomness: Randomness) -> Drawn:
        return Drawn(split(self.executed.block, self.numbers(randomness)), str(self.executed.output_grid))

    def deviations(self) -> Mapping[str, Array]:
        return _spread(self.executed.block, [sqrt(self.executed.variance(own)) for own in self.executed.block.tables])

    def numbers(self, randomness: Randomness) -> Array:
        """The released numbers: exact until the noisy parts are written as doubles."""
        return self._released({own: self._noisy(own, randomness) for own in self.executed.block.subsets})

    def _noisy(self, own: Subset, randomness: Randomness) -> Array:
        """The part of a set of columns with its noise, rounded to the grid, then centred."""
        counts, deviation = self.counts[own], self.executed.deviations[own]
        cells = prod(counts.shape)
        answers = ExactVector(integers(whole_part(counts).reshape(-1).tolist()), 1)
        if not deviation:
            return np.asarray(answers.to_float().reshape(counts.shape) / cells)
        size, grid = deviation * cells, self.executed.grid
        steps = GaussianNoise(size).release(answers, grid * size, randomness)
        values = np.array([step * grid.numerator / grid.denominator for step in steps], dtype=np.float64)
        return centred(values.reshape(counts.shape)) * float(deviation)

    def approximate(self, generator: np.random.Generator) -> Array:
        """The same with floating-point noise: never a release."""
        parts = {}
        for own, counts in self.counts.items():
            noise = generator.standard_normal(counts.shape) * float(self.executed.deviations[own])
            parts[own] = centred(counts + noise)
        return self._released(parts)

    def _released(self, parts: Mapping[Subset, Array]) -> Array:
        """Tables put together from the parts of their sets of columns, on the output grid."""
        step = float(self.executed.output_grid)
        values = np.concatenate([table.reshape(-1) for table in self._tables(parts)])
        return np.asarray(np.rint(values / step) * step + 0.0)

    def _tables(self, parts: Mapping[Subset, Array]) -> Iterator[Array]:
        block = self.executed.block
        for table in block.tables:
            found = np.zeros(tuple(block.sizes[i] for i in table))
            for own in block.within(table):
                shape = tuple(block.sizes[i] if i in own else 1 for i in table)
                found += parts[own].reshape(shape) / (found.size // prod(shape))
            yield found


def split(block: Marginals | Ordered, values: Array) -> dict[str, NDArray[Any]]:
    """The released numbers by output."""
    at, outputs = 0, dict[str, NDArray[Any]]()
    for one in block.released:
        size = prod(one.shape)
        outputs[one.name] = values[at : at + size].reshape(one.shape)
        at += size
    return outputs


def _spread(block: Marginals, deviations: Sequence[float]) -> dict[str, NDArray[Any]]:
    """The deviations of the numbers of tables, to six digits, by output."""
    sizes = [prod(block.sizes[i] for i in table) for table in block.tables]
    return split(block, np.repeat([float(f"{one:.6g}") for one in deviations], sizes))


@dataclass(frozen=True, eq=False, slots=True)
class SeparateSecret(Secret):
    """The records by the columns of every table; some have noise of their own, others are added up from these."""

    executed: Separate
    counts: Counts
    rules: tuple[str, ...]

    def draw(self, randomness: Randomness) -> Drawn:
        return Drawn(split(self.executed.block, self.numbers(randomness)), "1")

    def deviations(self) -> Mapping[str, Array]:
        executed = self.executed
        return _spread(executed.block, [sqrt(executed.variance(t)) for t in range(len(executed.scales))])

    def numbers(self, randomness: Randomness) -> Array:
        """The released counts: whole numbers."""
        noisy = {}
        for place, scale in enumerate(self.executed.scales):
            counts = self.counts[self.executed.block.tables[place]]
            if scale is not None:
                exact = ExactVector(integers(counts.reshape(-1).tolist()), 1)
                drawn = LaplaceNoise((scale,)).release(exact, Fraction(1), randomness)
                noisy[place] = np.array(drawn, dtype=np.float64).reshape(counts.shape)
        return self._released(noisy)

    def approximate(self, generator: np.random.Generator) -> Array:
        """The same with floating-point noise: never a release."""
        noisy = {}
        for place, scale in enumerate(self.executed.scales):
            counts = self.counts[self.executed.block.tables[place]]
            if scale is not None:
                ups, downs = generator.geometric(1 - np.exp(-1 / float(scale)), (2, *counts.shape))
                noisy[place] = (counts + ups - downs).astype(np.float64)
        return self._released(noisy)

    def _released(self, noisy: Mapping[int, Array]) -> Array:
        tables, found = self.executed.block.tables, list[Array]()
        for place, source in enumerate(self.executed.sources):
            others = tuple(k for k, i in enumerate(tables[source]) if i not in tables[place])
            found.append(np.asarray(noisy[source].sum(axis=others)).reshape(-1))
        return np.concatenate(found)
