"""Plans of strategies with structure as mechanisms that can be run; tables of counts: parts, noise, sums of parts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import islice
from math import prod, sqrt
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privspec.core.columns import Cells, Column, Piece
from privspec.core.matrices import ExactVector, integers
from privspec.execute.data import Grid, count_tables, data_rules, located
from privspec.execute.family import (
    EXACT_BYTES,
    BlockMechanism,
    BlockSecret,
    Drawn,
    Executed,
    RunContext,
    Simulation,
    refuse_unknown,
)
from privspec.execute.keeper import given_for
from privspec.kernel.core.linear import InputLayout, Matrix
from privspec.kernel.core.problem import Data
from privspec.kernel.marginals import Marginals, Residuals, Separate, Strategies, ways_of
from privspec.kernel.rows import doubles
from privspec.kernel.strategies.residuals import Subset
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
LIMB = 25
"""Bits of the pieces in which a strategy is multiplied with counts in 64 bits."""
ROOM = 2**62
"""Whole numbers below it are computed with in 64 bits."""


E = TypeVar("E", bound=Executed)
C = TypeVar("C")


class DrawnMechanism(BlockMechanism[E, C]):
    """What is released is rounded to a grid, one output after another."""

    REMEDY = "pass approximate=True: floating-point noise, good enough for a simulation"

    @property
    @abstractmethod
    def grid(self) -> Grid:
        """The input as data are read into it."""

    @property
    def released(self) -> tuple[Any, ...]:
        """The outputs, with their shapes."""
        found: tuple[Any, ...] = self.executed.block.released
        return found

    def split(self, values: Array) -> dict[str, NDArray[Any]]:
        """The released numbers by output."""
        at, outputs = 0, dict[str, NDArray[Any]]()
        for one in self.released:
            size = prod(one.shape)
            outputs[one.name] = values[at : at + size].reshape(one.shape)
            at += size
        return outputs


M = TypeVar("M", bound=DrawnMechanism[Any, Any])


class DrawnSecret(BlockSecret[M, C]):
    """What was kept of the data."""

    @property
    def executed(self) -> Any:
        """What draws."""
        return self.mechanism.executed

    @property
    def rules(self) -> tuple[str, ...]:
        return data_rules((self.mechanism.grid,), self.strict)

    @property
    def step(self) -> Fraction:
        """Of the released numbers."""
        return Fraction(self.executed.output_grid)

    @abstractmethod
    def noisy(self, generator: np.random.Generator) -> Array:
        """The numbers of one release with floating-point noise, which is none."""

    def approximate(self, asked: Simulation) -> Array:
        generator = np.random.default_rng(asked.seed)
        return np.stack([self.noisy(generator) for _ in range(asked.repetitions)])

    def draw(self, randomness: Randomness) -> Drawn:
        return Drawn(self.mechanism.split(np.asarray(self.numbers(randomness))), str(self.step))

    def on_grid(self, parts: Iterable[Array]) -> Array:
        """Parts as the numbers of a release, each laid down when it is made."""
        values, step, at = np.empty(sum(prod(one.shape) for one in self.mechanism.released)), float(self.step), 0
        for part in parts:
            values[at : at + part.size] = np.rint(part.reshape(-1) / step) * step + 0.0
            at += part.size
        return values


def six_digits(values: Array) -> Array:
    """Deviations as they are told."""
    return np.array([float(f"{value:.6g}") for value in values.tolist()])


# --- tables of counts -----------------------------------------------------------------------------


def grid_of(block: Marginals, source: Data) -> Grid:
    """The table as data are read into it."""
    size = prod(block.sizes)
    held = InputLayout(block.source, 0, size, "cells", (), Fraction(0), None, None, block.columns, block.records, None)
    return Grid(held, Fraction(1), source.rule == "drop", None, source.kept, source.derived)


class TableMechanism(DrawnMechanism[Residuals | Separate | Strategies, Counts]):
    """Records are counted by sets of columns; noise is added to a part of each, and tables are sums of these."""

    BLOCK = Marginals

    @staticmethod
    def content(block: Any, source: Data, data: Mapping[str, Any], circumstances: RunContext) -> Counts:
        """The number of all records."""
        return {(): counted(grid_of(block, source), ((),), data, circumstances)[0]}

    @property
    def grid(self) -> Grid:
        return grid_of(self.executed.block, self.source)

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

    def kept(self, data: Mapping[str, Any], circumstances: RunContext) -> Counts:
        """The records by every set of columns."""
        refuse_unknown(data, (self.source.name,))
        block, shapes = self.executed.block, self.shapes
        columns = [(*own, *block.ordered) for own in shapes]
        found = counted(self.grid, columns, data, circumstances)
        return {own: one.reshape(shape) for (own, shape), one in zip(shapes.items(), found, strict=True)}

    def errors(self, draws: int, seed: int) -> Mapping[str, Array]:
        """What is released of an empty table, with floating-point noise."""
        generator, empty = np.random.default_rng(seed), self.secret(self.nothing, strict=False)
        if draws * sum(prod(one.shape) for one in self.released) > DRAWN:
            return {}
        drawn = [self.split(empty.noisy(generator)) for _ in range(draws)]
        return {one.name: np.stack([each[one.name] for each in drawn]) for one in self.released}

    def secret(self, content: Counts, strict: bool) -> TableSecret:
        kinds: dict[type, Callable[..., TableSecret]]
        kinds = {Residuals: ResidualSecret, Separate: SeparateSecret, Strategies: StrategySecret}
        return kinds[type(self.executed)](self, content, strict)


def counted(
    grid: Grid, subsets: Sequence[Subset], data: Mapping[str, Any], circumstances: RunContext
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


class TableSecret(DrawnSecret[TableMechanism, Counts]):
    """The records by sets of columns."""

    @property
    def size(self) -> int:
        return sum(map(prod, self.mechanism.shapes.values()))

    @property
    def each(self) -> int:
        """Of counts, parts and released numbers; of those exact ones that are drawn together."""
        numbers: int = sum(self.executed.block.numbers)
        return 64 + EXACT_BYTES * min(PART, numbers) // numbers

    def told(self, deviations: Sequence[float]) -> dict[str, Column]:
        """The deviations of the numbers of tables, by output."""
        block, six = self.executed.block, six_digits(np.array(deviations))
        tables = (Piece(six[[place]], size) for place, size in enumerate(block.numbers))
        return {one.name: Column(tuple(islice(tables, len(one.tables)))) for one in block.released}


class ResidualSecret(TableSecret):
    """Noise of one deviation for each set of columns."""

    def deviations(self) -> Mapping[str, Cells]:
        return self.told([sqrt(self.executed.variance(own)) for own in self.executed.block.tables])

    def numbers(self, randomness: Randomness) -> Array:
        """The released numbers: exact until the noisy parts are written as doubles."""
        return self.on_grid(self._tables({own: self._noisy(own, randomness) for own in self.executed.block.subsets}))

    def _noisy(self, own: Subset, randomness: Randomness) -> Array:
        """The part of a set of columns with its noise, rounded to the grid, then centred."""
        counts, deviation = self.content[own], self.executed.each[own]
        cells, answers = prod(counts.shape), whole_part(counts)
        if not deviation:
            return np.asarray(answers.astype(np.float64) / cells)
        unit = deviation * cells
        values = with_noise(answers, GaussianNoise(unit), self.executed.grid, unit, randomness)
        return centred(values) * float(deviation)

    def noisy(self, generator: np.random.Generator) -> Array:
        parts = {}
        for own, counts in self.content.items():
            noise = generator.standard_normal(counts.shape) * float(self.executed.each[own])
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


class SeparateSecret(TableSecret):
    """Some tables have noise of their own, others are added up from these."""

    @property
    def step(self) -> Fraction:
        return Fraction(1)

    def deviations(self) -> Mapping[str, Column]:
        return self.told([sqrt(self.executed.variance(place)) for place in range(len(self.executed.scales))])

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


class StrategySecret(ResidualSecret):
    """A strategy in place of one deviation for each set of columns; tables are put together from estimates."""

    def deviations(self) -> Mapping[str, Array]:
        return self.mechanism.split(six_digits(np.sqrt(variances(self.executed))))

    def _noisy(self, own: Subset, randomness: Randomness) -> Array:
        """Strategy answers with their noise, rounded to the grid, centred along the columns of the set."""
        counts, strategy, grid = self.content[own], self.executed.each[own].strategy, self.executed.grid
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
            answers = counts @ floats(self.executed.each[own].strategy).T
            parts[own] = centred(answers + generator.standard_normal(answers.shape), len(own))
        return self.on_grid(self._tables(parts))

    def _tables(self, parts: Mapping[Subset, Array]) -> Iterator[Array]:
        block = self.executed.block
        known = {own: one @ floats(self.executed.each[own].reconstruction).T for own, one in parts.items()}
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


# --- strategies of ordered columns ----------------------------------------------------------------


def floats(matrix: Matrix) -> Array:
    """An exact matrix in doubles."""
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


def along(block: Marginals, place: int, values: Array, axes: int) -> Array:
    """What a table, by its place, asks of the ordered cells, the last axis; those before are left as they are."""
    found = values.reshape((*values.shape[:axes], *(block.sizes[i] for i in block.ordered)))
    at = axes
    for way in ways_of(block, place):
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
    roots = {own: floats(part.reconstruction).T for own, part in executed.each.items()}
    for place, table in enumerate(block.tables):
        plain, total = block.plain(table), np.zeros(())
        for own in block.within(table):
            spread = prod(block.sizes[i] for i in plain if i not in own)
            squares = (along(block, place, roots[own], 1) ** 2).sum(axis=0)
            total = total + squares * (float(block.share(own)) / spread**2)
        axes = [*plain, *(i for i in block.ordered if i in table)]
        full = np.broadcast_to(total, [*(block.sizes[i] for i in plain), *total.shape])
        found.append(full.transpose([axes.index(i) for i in table]).reshape(-1))
    return np.concatenate(found)
