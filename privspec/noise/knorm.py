"""K-norm noise of the l2 ball: one vector for all strategy rows."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from privspec.core.matrices import ExactVector, Integers
from privspec.core.records import dataclass
from privspec.kernel.laws import knorm as laws
from privspec.kernel.laws.law import Law
from privspec.noise.law import Array, NoiseLaw
from privspec.noise.samplers import Randomness
from privspec.noise.vectors import EuclideanVectors, approximate

if TYPE_CHECKING:
    from privspec.kernel.core.linear import Release


@dataclass(frozen=True, slots=True)
class KNormL2Noise(NoiseLaw):
    """answers + z, z a real vector of density ~ exp(-||z||_2 / scale), rounded to the lattice. Note knorm-l2."""

    scale: Fraction
    known: ClassVar[type[Law]] = laws.KNorm

    @classmethod
    def of(cls, release: Release) -> KNormL2Noise:
        law = release.noise
        assert isinstance(law, laws.KNorm)
        return cls(law.scale)

    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        return EuclideanVectors(1, len(answers), self.scale, randomness).nearest(answers, grid).ravel()

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> Array:
        """A Gamma radius times a uniform direction."""
        return np.asarray(float(self.scale) * approximate("l2", size, repetitions, generator))


DRAWN = (KNormL2Noise,)
