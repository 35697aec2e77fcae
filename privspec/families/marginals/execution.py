"""A plan of tables of counts as a mechanism that can be run: exact parts, exact noise, then sums of parts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import islice
from math import prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.columns import Column, Piece
from privspec.core.matrices import ExactVector, integers
from privspec.execute.data import Grid, count_tables, data_rules, located
from privspec.execute.family import (
    EXACT_BYTES,
    BlockMechanism,
    BlockSecret,
    Circumstances,
    Drawn,
    Simulation,
    refuse_unknown,
)
from privspec.execute.keeper import given_for
from privspec.families.marginals.ordered import along, floats, times, variances
from privspec.kernel.core.linear import Held
from privspec.kernel.core.problem import Data
from privspec.kernel.marginals import Marginals, Residuals, Separate, Subset
from privspec.kernel.ordered import Strategies, read_executed
from privspec.noise.gaussian import GaussianNoise
from privspec.noise.laplace import LaplaceNoise
from privspec.noise.law import NoiseLaw
from privspec.noise.samplers import Randomness

Array = NDArray[np.float64]
Counts = Mapping[Subset, NDArray[np.int64]]
"""The records by each set of columns, in the shape of their sizes."""
DRAWN = 2**24
"""Numbers of all draws up to which what is computed from them is predicted."""
PART = 2**19
"""Numbers that noise is added to at once: as exact whole numbers they take some 300 bytes each."""
ROOM = 2**62
"""Whole numbers below it are computed with in 64 bits."""


def grid_of(block: Marginals, source: Data) -> Grid:
    """The table as data are read into it."""
    size = prod(block.sizes)
    held = Held(block.source, 0, size, "cells", (), Fraction(0), None, None, block.columns, block.records, None)
    return Grid(held, Fraction(1), source.rule == "drop", None, source.kept)


class TableMechanism(BlockMechanism[Residuals | Separate | Strategies, Counts]):
    """Records are counted by sets of columns; noise is added to a part of each, and tables are sums of these."""

    BLOCK = Marginals
    READ = read_executed
    REMEDY = "pass approximate=True: floating-point noise, good enough for a simulation"

    @staticmethod
    def content(block: Any, source: Data, data: Mapping[str, Any], circumstances: Circumstances) -> Counts:
        """The number of all records."""
        return {(): counted(grid_of(block, source), ((),), data, circumstances)[0]}

    @cached_property
    def shapes(self) -> dict[Subset, tuple[int, ...]]:
        """The sets of columns by which records are counted, and how many each has; those in order as one, the last."""
        block = self.executed.block
        sets = dict.fromkeys(block.tables) if isinstance(self.executed, Separate) else block.subsets
        last = (block.cells,) if block.ordered else ()
        return {own: (*(block.sizes[i] for i in own), *last) for own in sets}

    @property
    def nothing(self) -> Counts:
        """An empty table."""
        return {own: np.zeros(shape, dtype=np.int64) for own, shape in self.shapes.items()}

    def kept(self, data: Mapping[str, Any], circumstances: Circumstances) -> Counts:
        """The records by every set of columns."""
        refuse_unknown(data, (self.source.name,))
        block, shapes = self.executed.block, self.shapes
        columns = [(*own, *block.ordered) for own in shapes]
        found = counted(grid_of(block, self.source), columns, data, circumstances)
        return {own: one.reshape(shape) for (own, shape), one in zip(shapes.items(), found, strict=True)}

    def errors(self, draws: int, seed: int) -> Mapping[str, Array]:
        """What is released of an empty table, with floating-point noise."""
        generator, empty = np.random.default_rng(seed), self.secret(self.nothing, strict=False)
        block = self.executed.block
        if draws * sum(prod(one.shape) for one in block.released) > DRAWN:
            return {}
        drawn = [split(block, empty.noisy(generator)) for _ in range(draws)]
        return {one.name: np.stack([each[one.name] for each in drawn]) for one in block.released}

    def secret(self, content: Counts, strict: bool) -> TableSecret:
        kinds: dict[type, Callable[..., TableSecret]]
        kinds = {Residuals: ResidualSecret, Separate: SeparateSecret, Strategies: StrategySecret}
        return kinds[type(self.executed)](self, content, strict)


def counted(
    grid: Grid, subsets: Sequence[Subset], data: Mapping[str, Any], circumstances: Circumstances
) -> list[NDArray[np.int64]]:
    """The records by each of some sets of columns, in the shape of their sizes.

    Raises: DataError PS0801 to PS0809.
    """
    name = grid.held.name
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


def with_noise(answers: NDArray[Any], noise: NoiseLaw, grid: Fraction, unit: Fraction, randomness: Randomness) -> Array:
    """Whole answers with their noise, in units of so much: exact until they are rounded to a grid and written down.

    Args: grid, in units.
    Returns: doubles, in the shape of the answers.
    """
    flat, found = answers.reshape(-1), np.empty(answers.size)
    for first in range(0, len(flat), PART):
        part = ExactVector(integers(flat[first : first + PART].tolist()), 1)
        steps = noise.release(part, grid * unit, randomness)
        found[first : first + PART] = [step * grid.numerator / grid.denominator for step in steps]
    return found.reshape(answers.shape)


class TableSecret(BlockSecret[TableMechanism, Counts]):
    """The records by sets of columns."""

    @property
    def executed(self) -> Any:
        """One of three kinds, each with a secret of its own."""
        return self.mechanism.executed

    @property
    def rules(self) -> tuple[str, ...]:
        return data_rules((grid_of(self.executed.block, self.mechanism.source),), self.strict)

    @property
    def size(self) -> int:
        return sum(map(prod, self.mechanism.shapes.values()))

    @abstractmethod
    def noisy(self, generator: np.random.Generator) -> Array:
        """The numbers of one release with floating-point noise, which is none."""

    def approximate(self, asked: Simulation) -> Array:
        generator = np.random.default_rng(asked.seed)
        return np.stack([self.noisy(generator) for _ in range(asked.repetitions)])

    @property
    def each(self) -> int:
        """Of counts, parts and released numbers; of those exact ones that are drawn together."""
        numbers: int = sum(self.executed.block.numbers)
        return 64 + EXACT_BYTES * min(PART, numbers) // numbers

    @property
    def step(self) -> Fraction:
        """Of the released numbers."""
        return Fraction(1) if isinstance(self.executed, Separate) else Fraction(self.executed.output_grid)

    def draw(self, randomness: Randomness) -> Drawn:
        return Drawn(split(self.executed.block, np.asarray(self.numbers(randomness))), str(self.step))

    def on_grid(self, tables: Iterable[Array]) -> Array:
        """Tables as the numbers of a release, each laid down when it is made."""
        values, step, at = np.empty(sum(self.executed.block.numbers)), float(self.step), 0
        for table in tables:
            values[at : at + table.size] = np.rint(table.reshape(-1) / step) * step + 0.0
            at += table.size
        return values


class ResidualSecret(TableSecret):
    """Noise of one deviation for each set of columns."""

    def deviations(self) -> Mapping[str, Column]:
        return _spread(self.executed.block, [sqrt(self.executed.variance(own)) for own in self.executed.block.tables])

    def numbers(self, randomness: Randomness) -> Array:
        """The released numbers: exact until the noisy parts are written as doubles."""
        return self.on_grid(self._tables({own: self._noisy(own, randomness) for own in self.executed.block.subsets}))

    def _noisy(self, own: Subset, randomness: Randomness) -> Array:
        """The part of a set of columns with its noise, rounded to the grid, then centred."""
        counts, deviation = self.content[own], self.executed.deviations[own]
        cells, answers = prod(counts.shape), whole_part(counts)
        if not deviation:
            return np.asarray(answers.astype(np.float64) / cells)
        unit = deviation * cells
        values = with_noise(answers, GaussianNoise(unit), self.executed.grid, unit, randomness)
        return centred(values) * float(deviation)

    def noisy(self, generator: np.random.Generator) -> Array:
        parts = {}
        for own, counts in self.content.items():
            noise = generator.standard_normal(counts.shape) * float(self.executed.deviations[own])
            parts[own] = centred(counts + noise)
        return self.on_grid(self._tables(parts))

    def _tables(self, parts: Mapping[Subset, Array]) -> Iterator[Array]:
        block = self.executed.block
        for table in block.tables:
            found = np.zeros(tuple(block.sizes[i] for i in table))
            for own in block.within(table):
                shape = tuple(block.sizes[i] if i in own else 1 for i in table)
                found += parts[own].reshape(shape) / (found.size // prod(shape))
            yield found


def split(block: Marginals, values: Array) -> dict[str, NDArray[Any]]:
    """The released numbers by output."""
    at, outputs = 0, dict[str, NDArray[Any]]()
    for one in block.released:
        size = prod(one.shape)
        outputs[one.name] = values[at : at + size].reshape(one.shape)
        at += size
    return outputs


def _spread(block: Marginals, deviations: Sequence[float]) -> dict[str, Column]:
    """The deviations of the numbers of tables, to six digits, by output."""
    tables = (Piece(np.array([float(f"{one:.6g}")]), size) for one, size in zip(deviations, block.numbers, strict=True))
    return {one.name: Column(tuple(islice(tables, len(one.tables)))) for one in block.released}


class SeparateSecret(TableSecret):
    """Some tables have noise of their own, others are added up from these."""

    def deviations(self) -> Mapping[str, Column]:
        executed = self.executed
        return _spread(executed.block, [sqrt(executed.variance(t)) for t in range(len(executed.scales))])

    def numbers(self, randomness: Randomness) -> Array:
        """The released counts: whole numbers."""

        def noisy(counts: NDArray[np.int64], scale: Fraction) -> Array:
            return with_noise(counts, LaplaceNoise((scale,)), Fraction(1), Fraction(1), randomness)

        return self.on_grid(self._tables(noisy))

    def noisy(self, generator: np.random.Generator) -> Array:
        def noisy(counts: NDArray[np.int64], scale: Fraction) -> Array:
            ups, downs = generator.geometric(1 - np.exp(-1 / float(scale)), (2, *counts.shape))
            return np.asarray(counts + ups - downs, dtype=np.float64)

        return self.on_grid(self._tables(noisy))

    def _tables(self, noisy: Callable[[NDArray[np.int64], Fraction], Array]) -> Iterator[Array]:
        tables = self.executed.block.tables
        scales = enumerate(self.executed.scales)
        drawn = {place: noisy(self.content[tables[place]], scale) for place, scale in scales if scale is not None}
        for place, source in enumerate(self.executed.sources):
            others = tuple(k for k, i in enumerate(tables[source]) if i not in tables[place])
            yield np.asarray(drawn[source].sum(axis=others))


class StrategySecret(TableSecret):
    """A strategy for each set of columns; tables are put together from estimates."""

    def deviations(self) -> Mapping[str, Array]:
        return split(
            self.executed.block,
            np.array([float(f"{value:.6g}") for value in np.sqrt(variances(self.executed)).tolist()]),
        )

    def numbers(self, randomness: Randomness) -> Array:
        """The released numbers: exact until the noisy answers are written as doubles."""
        return self.on_grid(self._tables({own: self._noisy(own, randomness) for own in self.executed.block.subsets}))

    def _noisy(self, own: Subset, randomness: Randomness) -> Array:
        """Strategy answers with their noise, rounded to the grid, centred along the columns of the set."""
        counts, strategy, grid = self.content[own], self.executed.parts[own].strategy, self.executed.grid
        cells, rows = prod(counts.shape[:-1]), strategy.nrows()
        whole, below = strategy.numer_denom()
        part = whole_part(counts, len(own)).reshape(cells, -1)
        exact = times(part, [int(value) for value in whole.entries()], rows)
        unit = Fraction(int(below) * cells)
        values = with_noise(exact, GaussianNoise(unit), grid, unit, randomness)
        return centred(values.reshape(*counts.shape[:-1], rows), len(own))

    def noisy(self, generator: np.random.Generator) -> Array:
        parts = {}
        for own, counts in self.content.items():
            answers = counts @ floats(self.executed.parts[own].strategy).T
            parts[own] = centred(answers + generator.standard_normal(answers.shape), len(own))
        return self.on_grid(self._tables(parts))

    def _tables(self, parts: Mapping[Subset, Array]) -> Iterator[Array]:
        block = self.executed.block
        known = {own: one @ floats(self.executed.parts[own].reconstruction).T for own, one in parts.items()}
        for place, table in enumerate(block.tables):
            plain, total = block.plain(table), np.zeros(())
            for own in block.within(table):
                values = along(block, place, known[own], len(own))
                spread = prod(block.sizes[i] for i in plain if i not in own)
                shape = [block.sizes[i] if i in own else 1 for i in plain]
                total = total + values.reshape((*shape, *values.shape[len(own) :])) / spread
            full = np.broadcast_to(total, [*(block.sizes[i] for i in plain), *total.shape[len(plain) :]])
            axes = [*plain, *(i for i in block.ordered if i in table)]
            yield full.transpose([axes.index(i) for i in table])
