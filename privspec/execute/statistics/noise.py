"""The noise at a site, one object a shape: exact draws on exact statistics in steps of the grid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privspec.execute.exact import ExactVector, integers
from privspec.execute.noise import GaussianNoise, LaplaceNoise
from privspec.execute.randomness import Randomness
from privspec.execute.statistics.lattice import discrete_knorm_linf, smooth_knorm_l2
from privspec.execute.statistics.sphere import SphereLaw
from privspec.kernel.lemmas.statistics import Noise
from privspec.model.library import GRID, GRID_BITS, Steps


class Law(Protocol):
    """What every shape can do: noisy statistics for parties one by one."""

    def each(self, statistics: Steps, randomness: Randomness) -> NDArray[np.float64]:
        """Noisy statistics (M, k) in data units for statistics (M, k) in steps."""


class Additive(Protocol):
    """A law of noise that is added."""

    def noisy(self, total: Sequence[int], randomness: Randomness) -> list[int]:
        """A statistic and its noise, in steps."""


@dataclass(frozen=True, slots=True)
class AddedLaw:
    """Noise that is added, at each party or once at the sum."""

    added: Additive

    def each(self, statistics: Steps, randomness: Randomness) -> NDArray[np.float64]:
        """Every statistic with noise of its own."""
        out = np.empty(statistics.shape)
        for i, statistic in enumerate(statistics.tolist()):
            out[i] = to_units(self.added.noisy(statistic, randomness))
        return out

    def pooled(self, total: Sequence[int], randomness: Randomness) -> NDArray[np.float64]:
        """The sum over all parties with noise, in data units."""
        return to_units(self.added.noisy(total, randomness))


def to_units(steps: Sequence[int]) -> NDArray[np.float64]:
    """Data units, the nearest doubles: of noisy numbers only."""
    return np.array([step / 2**GRID_BITS for step in steps])


@dataclass(frozen=True, slots=True)
class EntrywiseNoise:
    """Laplace or Gaussian noise as for linear answers."""

    law: LaplaceNoise | GaussianNoise

    def noisy(self, total: Sequence[int], randomness: Randomness) -> list[int]:
        """On the grid already, so that no rounding enters the sensitivity."""
        answers = ExactVector(integers(total), 2**GRID_BITS)
        return [int(step) for step in self.law.release(answers, GRID, randomness)]


@dataclass(frozen=True, slots=True)
class VectorNoise:
    """One lattice vector of K-norm noise."""

    sampler: Callable[[int, Fraction, Randomness], list[int]]
    scale: Fraction

    def noisy(self, total: Sequence[int], randomness: Randomness) -> list[int]:
        """The statistic plus the vector."""
        noise = self.sampler(len(total), self.scale / GRID, randomness)
        return [step + z for step, z in zip(total, noise, strict=True)]


SHAPES: Mapping[str, Callable[[Noise, int], Law]] = {
    "laplace": lambda noise, _: AddedLaw(EntrywiseNoise(LaplaceNoise((noise.size,)))),
    "gaussian": lambda noise, _: AddedLaw(EntrywiseNoise(GaussianNoise(noise.size))),
    "knorm-l2": lambda noise, _: AddedLaw(VectorNoise(smooth_knorm_l2, noise.size)),
    "knorm-linf": lambda noise, _: AddedLaw(VectorNoise(discrete_knorm_linf, noise.size)),
    "duchi-l2": lambda noise, size: SphereLaw(noise.size, noise.bound or Fraction(0), size),
}
"""The laws by the `shape` of a site's noise, for a statistic of so many numbers."""


def law_of(noise: Noise, size: int) -> Law:
    """The law of a site of a plan, of which the kernel read that it is known and can be drawn exactly."""
    return SHAPES[noise.shape](noise, size)
