"""K-norm noise of the l2 ball, one vector for all strategy rows, or of blocks: a vector for the rows of each."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from privspec.core.matrices import ExactVector, Integers
from privspec.core.records import dataclass
from privspec.kernel.laws import knorm as laws
from privspec.kernel.laws.law import Law
from privspec.noise.law import Array, NoiseLaw
from privspec.noise.samplers import Randomness
from privspec.noise.vectors import EuclideanVectors, ProductVectors, approximate, approximate_product

if TYPE_CHECKING:
    from privspec.kernel.core.linear import Release


@dataclass(frozen=True, slots=True)
class KNormNoise(NoiseLaw):
    """answers + z, z real vectors of density ~ exp(-|v|) in the norm of a law, rounded to the lattice."""

    law: Any

    @classmethod
    def of(cls, release: Release) -> Self:
        assert isinstance(release.noise, cls.known)
        return cls(release.noise)


class KNormL2Noise(KNormNoise):
    """One vector for all strategy rows. Note knorm-l2."""

    known: ClassVar[type[Law]] = laws.KNorm

    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        return EuclideanVectors(1, len(answers), self.law.scale, randomness).nearest(answers, grid).ravel()

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> Array:
        """A Gamma radius times a uniform direction."""
        return np.asarray(float(self.law.scale) * approximate("l2", size, repetitions, generator))


class KNormBlocksNoise(KNormNoise):
    """A vector for each block. Note knorm-blocks."""

    known: ClassVar[type[Law]] = laws.KNormBlocks

    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        found, start = list[Integers](), 0
        for parts in self.law.blocks:
            scales = sum(parts, ())
            own = ExactVector(answers.numerators[start:][: len(scales)], answers.denominator)
            start += len(scales)
            found.append(
                ProductVectors(1, tuple(map(len, parts)), Fraction(1), randomness).nearest(own, grid, scales).ravel()
            )
        return np.concatenate(found)

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> Array:
        vectors = [approximate_product(tuple(map(len, parts)), repetitions, generator) for parts in self.law.blocks]
        return np.asarray(np.hstack(vectors) * [*map(float, self.law.sizes(Fraction()))])


DRAWN = (KNormL2Noise, KNormBlocksNoise)
