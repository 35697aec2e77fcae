"""Laplace noise: independent discrete Laplace noise on a lattice, one exact scale a row; and shares of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations
from math import lcm
from operator import mul
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import InternalError
from privspec.core.matrices import DyadicMatrix, ExactVector, Integers, integers
from privspec.core.records import dataclass
from privspec.kernel.laws import laplace as laws
from privspec.kernel.laws.law import Law
from privspec.kernel.strategies.dense import widest
from privspec.noise.inverse import laplace_steps
from privspec.noise.law import Array, Indices, Moves, NoiseLaw, ScaledNoise, Shares, lattice_of, on_lattice
from privspec.noise.samplers import Randomness, polya
from privspec.problem.linear_differences import (
    BoxDifferences,
    Differences,
    PairDifferences,
    PersonDifferences,
    VectorDifferences,
)

if TYPE_CHECKING:
    from privspec.kernel.core.linear import Release


@dataclass(frozen=True, slots=True)
class LaplaceNoise(ScaledNoise):
    """The answers rounded to the lattice, plus discrete Laplace noise of `scales` (one, or one for each answer).

    On the lattice that answers move on this is the geometric mechanism. Notes: laplace, discrete-laplace.
    """

    known: ClassVar[type[laws.Scaled]] = laws.Laplace

    def row_variances(self, rows: int, grid: Fraction) -> Array:
        """That of the discrete Laplace law: 2 g^2 p / (1 - p)^2 with p = exp(-g / b)."""
        step = float(grid)
        decay = np.array([step / float(b) for b in self._each(rows)])
        return np.asarray(2 * step * step * np.exp(-decay) / np.expm1(-decay) ** 2)

    def achieved(self, strategy: DyadicMatrix, moves: Moves, grid: Fraction) -> Fraction:
        """Epsilon, exactly: the l1 sensitivity in units of the scales.

        Each answer is rounded to the lattice before noise, which adds one step wherever a row moves, unless all
        answers are lattice points: whole multiples of the step.
        """
        points = lattice_of(strategy, moves.points)
        on_points = points is not None and (points / grid).denominator == 1
        return scaled_l1_sensitivity(strategy, self.scales, moves.exact, Fraction(0) if on_points else grid)

    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        noise = laplace_steps([scale / grid for scale in self.scales], len(answers), randomness)
        return np.asarray(on_lattice(answers, grid) + noise)

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> Array:
        scales = np.array([float(s) for s in self._each(size)])
        return np.asarray(generator.laplace(size=(repetitions, size)) * scales)

    def approximate_sums(self, senders: Array, repetitions: int, generator: np.random.Generator) -> Array:
        rising, falling = generator.gamma(senders, size=(2, repetitions, len(senders)))
        return np.asarray((rising - falling) * np.array([float(s) for s in self._each(len(senders))]))


@dataclass(frozen=True, slots=True)
class LaplaceShares(Shares):
    """Each party adds the difference of two negative binomial numbers: those of `honest` sum to discrete Laplace noise.

    The scale of that noise is one of `scales` for each answer.
    """

    scales: tuple[Fraction, ...]
    known: ClassVar[type[Law]] = laws.LaplaceShares
    separate: ClassVar[bool] = True

    @classmethod
    def of(cls, release: Release) -> LaplaceShares:
        law = release.noise
        assert isinstance(law, laws.LaplaceShares)
        return cls(release.parties, law.honest, law.scales)

    def to_json(self) -> dict[str, Any]:
        return {"shape": self.known.shape, "scale": [str(b) for b in self.scales], **self._among}

    def part(self, rows: Indices) -> NoiseLaw:
        return LaplaceShares(self.parties, self.honest, tuple(self.scales[r] for r in rows))

    def row_variances(self, rows: int, grid: Fraction) -> Array:
        return np.asarray(LaplaceNoise(self.scales).row_variances(rows, grid) * self.parties / self.honest)

    def achieved(self, strategy: DyadicMatrix, moves: Moves, grid: Fraction) -> Fraction:
        """Epsilon, exactly: answers are points of the lattice."""
        return scaled_l1_sensitivity(strategy, self.scales, moves.exact, Fraction(0))

    def share(self, rows: int, grid: Fraction, randomness: Randomness) -> Integers:
        own = Fraction(1, self.honest)
        each = ((own, scale / grid, randomness) for scale in self.scales)
        return integers(polya(*one) - polya(*one) for one in each)

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> Array:
        own, scales = self.parties / self.honest, np.array([float(s) for s in self.scales])
        rising, falling = generator.gamma(own, size=(2, repetitions, size)) * scales
        return np.asarray(rising - falling)


DRAWN = (LaplaceNoise, LaplaceShares)


def _box_sensitivity(
    strategy: DyadicMatrix, scales: tuple[Fraction, ...], boxes: BoxDifferences, step: Fraction
) -> Fraction:
    """The same of boxes, at most: what each number does by itself, added up."""
    found = dict[frozenset[tuple[tuple[Fraction, Fraction], int]], None]()  # units that are alike, once
    for number, block in enumerate(boxes.blocks):
        part = strategy.integers[:, block]
        used = np.flatnonzero(part.any(axis=1))
        moved = np.abs(part[used]).astype(object) @ boxes.reach[block]
        if boxes.lines:
            moved = moved + np.abs(part[used].astype(object) @ boxes.lines[number]).sum(axis=1)
        found[frozenset(Counter((scales[r], Fraction(m)) for r, m in zip(used, moved, strict=True) if m).items())] = (
            None
        )
    sums = (sum(n * (strategy.unit * m + step) / scale for (scale, m), n in one) for one in found)
    return max(sums, default=Fraction(0)) or Fraction(0)


def _person_sensitivity(
    strategy: DyadicMatrix, scales: tuple[Fraction, ...], person: PersonDifferences, step: Fraction
) -> Fraction:
    """The same of one person's records, at most: what each of them does by itself, added up."""
    whole, touched, total = np.abs(strategy.integers), rows_touched(strategy, person.alike), Fraction(0)
    for start, room in person.rooms:
        costs = []
        for i in range(start, start + sum(map(len, room.cells))):
            rows = np.flatnonzero(touched[:, i]).tolist()
            costs.append(sum(((int(whole[r, i]) * strategy.unit + step) / scales[r] for r in rows), Fraction(0)))
        total += room.top(costs)
    return total * (1 + person.both)


def rows_touched(strategy: DyadicMatrix, alike: tuple[Indices, ...]) -> NDArray[np.bool_]:
    """Which rows (first axis) a record in a cell may move, or with it in cells that have shares of it."""
    found: NDArray[np.bool_] = strategy.integers != 0
    for cells in alike:
        found[:, cells] = found[:, cells].any(axis=1, keepdims=True)
    return found


MANY = 256
"""Cells from which pairs are not listed: rows that round pay as if all of them moved, which is next to nothing."""


def scaled_l1_sensitivity(
    strategy: DyadicMatrix, scales: tuple[Fraction, ...], differences: Differences, step: Fraction
) -> Fraction:
    """The largest sum over rows of (|B_r d| + step where row r moves) / scale_r, exactly.

    Where d moves several units, a bound of it: each may round rows of its own; of mixtures, wherever a unit has a part.
    Records of which several cells have shares move every row that these are in.
    Of a box, the sum over its numbers. Raises: InternalError for balls.
    """
    if isinstance(differences, BoxDifferences):
        return _box_sensitivity(strategy, scales, differences, step)
    if isinstance(differences, PersonDifferences):
        return _person_sensitivity(strategy, scales, differences, step)
    moving: Iterable[tuple[int, int | None, Fraction]]
    mixed: tuple[Indices, ...] = ()
    if isinstance(differences, PairDifferences):
        moving = ((i, j, differences.scale) for i, j in combinations(differences.coordinates.tolist(), 2))
    elif isinstance(differences, VectorDifferences):
        pairs = zip(differences.indices.tolist(), differences.amounts, strict=True)
        moving, mixed = ((i, None, Fraction(amount)) for i, amount in pairs), differences.mixed
    else:
        raise InternalError("an l1 sensitivity over balls")
    B, times, worst = strategy.integers, differences.moved, Fraction(0)
    touched = rows_touched(strategy, differences.alike)
    own = Fraction(0) if mixed else step * times
    # in whole numbers over one: of differences that scales were fitted to, nearly all come near the worst
    rates = {b: (strategy.unit / b, own / b) for b in set(scales)}
    below = lcm(*(one.denominator for pair in rates.values() for one in pair))
    whole = {b: (int(rate * below), int(extra * below)) for b, (rate, extra) in rates.items()}
    rated, added = [whole[b][0] for b in scales], [whole[b][1] for b in scales]
    inverse, steps = (np.array([float(rates[b][i]) for b in scales]) for i in (0, 1))
    if isinstance(differences, PairDifferences) and max(2 ** len(rated), MANY) <= len(differences.coordinates):
        columns = [tuple(map(mul, rated, column)) for column in B[:, differences.coordinates].T.tolist()]
        return (Fraction(differences.scale) * widest(columns, len(rated)) + sum(added)) / below
    for first, second, amount in moving:
        shift = np.abs(B[:, first] - (B[:, second] if second is not None else 0))
        own_rows = touched[:, first] | (touched[:, second] if second is not None else False)
        moved = np.flatnonzero(own_rows if differences.alike else shift)
        near = float(amount) * float(inverse @ shift) + float(steps[moved].sum())
        if near < float(worst) * (1 - 1e-9):
            continue
        rows = moved.tolist()
        sizes = sum(size * rated[r] for r, size in zip(rows, shift[moved].tolist(), strict=True))
        worst = max(worst, (amount * sizes + sum(added[r] for r in rows)) / below)
    parts = (np.flatnonzero(B[:, unit].any(axis=1)) for unit in (mixed if step else ()))
    return worst + times * max((sum((step / scales[r] for r in rows), Fraction(0)) for rows in parts), default=0)
