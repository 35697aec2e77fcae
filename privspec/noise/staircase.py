"""Noise in steps: one law for each answer, whole weights on the cells of a lattice with tails that fall by a ratio."""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privspec.core.matrices import DyadicMatrix, ExactVector, Integers, integers
from privspec.core.records import dataclass
from privspec.kernel.core.reading import Grid
from privspec.kernel.laws.law import Law
from privspec.kernel.laws.staircase import Staircase, Stepped
from privspec.kernel.writing import array
from privspec.noise.laplace import scaled_l1_sensitivity
from privspec.noise.law import Array, Moves, NoiseLaw, lattice_of, on_lattice
from privspec.noise.samplers import Randomness, bernoulli_fraction

if TYPE_CHECKING:
    from privspec.kernel.core.linear import Release

PACKED = 16
"""Weights of more cells are packed."""


@dataclass(frozen=True, slots=True)
class SteppedNoise(NoiseLaw):
    """The answer rounded to the lattice, plus a cell drawn by its weight and a uniform step within the cell.

    Note: stepped.
    """

    law: Stepped
    step: Fraction
    """That of the lattice."""
    known: ClassVar[type[Law]] = Staircase

    @classmethod
    def of(cls, release: Release) -> SteppedNoise:
        law = release.noise
        assert isinstance(law, Staircase)
        return cls(law.law, release.grid)

    def to_json(self) -> dict[str, Any]:
        law = self.law
        weights = array(Grid((len(law.weights),), Fraction(1), law.weights), PACKED)
        named = {"epsilon": str(law.epsilon), "width": law.width, "period": law.period, "ratio": str(law.ratio)}
        return {"shape": self.known.shape, "laws": [named | {"point": law.point, "weights": weights}]}

    @property
    def size(self) -> Fraction:
        return self.law.size * self.step

    @property
    def beside(self) -> dict[str, str]:
        return {"epsilon": str(self.law.epsilon)}

    def row_variances(self, rows: int, grid: Fraction) -> Array:
        return np.full(rows, float(self.law.square * grid**2))

    def achieved(self, strategy: DyadicMatrix, moves: Moves, grid: Fraction) -> Fraction:
        """Delta at the epsilon of the law."""
        points, moved = (lattice_of(strategy, moves.points, moves=own) for own in (False, True))
        on_points = points is not None and (points / grid).denominator == 1
        cost = scaled_l1_sensitivity(strategy, (grid,), moves.exact, Fraction(0) if on_points else grid)
        together = int(moved / grid) if on_points and moved else 1
        return self.law.delta_up(cost.numerator // cost.denominator, together)

    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        return integers(lattice + stepped(self.law, randomness) for lattice in on_lattice(answers, grid))

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> Array:
        """Tails are left out beyond 1e-16 of all weight."""
        law, total = self.law, self.law.total
        reach = range(len(law.weights) + law.period * int(-40 / np.log(float(law.ratio) or 1e-17)))
        weights = np.array([float(law.weight(k) / total) for k in reach])
        weights[1:] *= 2
        cells = generator.choice(len(weights), (repetitions, size), p=weights / weights.sum())
        signs, inside = generator.choice((-1, 1), cells.shape), generator.uniform(-0.5, 0.5, cells.shape)
        spread = generator.uniform(size=cells.shape) >= float(law.point / total)
        return np.asarray((cells * signs + inside * (law.width > 1)) * spread * float(law.width * self.step))


DRAWN = (SteppedNoise,)


@lru_cache(maxsize=64)
def _cumulated(law: Stepped) -> tuple[list[int], int, list[int], int, int]:
    """Weights added up, in one unit: of the cells -K .. K, of the last period of both tails; totals; and the point."""
    up, down = law.ratio.as_integer_ratio()
    core = list(accumulate(w * (down - up) for w in (*law.weights[:0:-1], *law.weights)))
    tails = list(accumulate(w * up for w in law.weights[-law.period :] * 2))
    return core, core[-1], tails, tails[-1], law.point * (down - up)


def stepped(law: Stepped, randomness: Randomness) -> int:
    """A number of lattice steps, exactly of the law: a cell, periods of a tail one by one, and a step in the cell."""
    core, inside, tails, outside, point = _cumulated(law)
    place, last = randomness.below(inside + outside + point) - point, len(law.weights) - 1
    if place < 0:
        return 0
    if place < inside:
        cell = bisect_right(core, place) - last
    else:
        side, number = divmod(bisect_right(tails, place - inside), law.period)
        cell = last - law.period + 1 + number + law.period
        while bernoulli_fraction(*law.ratio.as_integer_ratio(), randomness):
            cell += law.period
        cell = -cell if side else cell
    return cell * law.width + randomness.below(law.width) - law.width // 2
