"""Noise in steps: one law for each answer, whole weights on the cells of a lattice with tails that fall by a ratio."""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from privspec.core.matrices import ExactVector, Integers, integers
from privspec.core.records import dataclass
from privspec.kernel.laws.law import Law
from privspec.kernel.laws.staircase import Staircase, Stepped
from privspec.noise.law import Array, NoiseLaw, on_lattice
from privspec.noise.samplers import Randomness, bernoulli_fraction

if TYPE_CHECKING:
    from privspec.kernel.core.linear import Release


@dataclass(frozen=True, slots=True)
class SteppedNoise(NoiseLaw):
    """Answers rounded to the lattice, plus for each a cell drawn by its weight and a uniform step within the cell.

    Note: stepped.
    """

    law: Staircase
    step: Fraction
    """That of the lattice."""
    known: ClassVar[type[Law]] = Staircase

    @classmethod
    def of(cls, release: Release) -> SteppedNoise:
        law = release.noise
        assert isinstance(law, Staircase)
        return cls(law, release.grid)

    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        each = zip(on_lattice(answers, grid), self.law.of(len(answers)), strict=True)
        return integers(lattice + stepped(law, randomness) for lattice, law in each)

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> Array:
        return np.column_stack([self._approximate(law, repetitions, generator) for law in self.law.of(size)])

    def _approximate(self, law: Stepped, count: int, generator: np.random.Generator) -> Array:
        """Tails are left out beyond 1e-16 of all weight."""
        total = law.total
        reach = range(len(law.weights) + law.period * int(-40 / np.log(float(law.ratio) or 1e-17)))
        weights = np.array([float(law.weight(k) / total) for k in reach])
        weights[1:] *= 2
        cells = generator.choice(len(weights), count, p=weights / weights.sum())
        signs, inside = generator.choice((-1, 1), count), generator.uniform(-0.5, 0.5, count)
        spread = generator.uniform(size=count) >= float(law.point / total)
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
