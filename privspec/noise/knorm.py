"""K-norm noise of the l2 ball, one vector for all strategy rows, or of blocks: a vector for the rows of each."""

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
from privspec.noise.vectors import EuclideanVectors, ProductVectors, approximate, approximate_product

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


@dataclass(frozen=True, slots=True)
class KNormBlocksNoise(NoiseLaw):
    """answers + z, z a real vector for each block, rounded to the lattice. Note knorm-blocks."""

    law: laws.KNormBlocks
    known: ClassVar[type[Law]] = laws.KNormBlocks

    @classmethod
    def of(cls, release: Release) -> KNormBlocksNoise:
        law = release.noise
        assert isinstance(law, laws.KNormBlocks)
        return cls(law)

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
