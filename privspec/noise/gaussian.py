"""Gaussian noise: independent normal numbers on every strategy row, exact, rounded afterwards; and discrete shares."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from privspec.core.matrices import ExactVector, Integers, integers
from privspec.core.records import dataclass
from privspec.kernel.laws import gaussian as laws
from privspec.kernel.laws.law import Law
from privspec.noise.inverse import nearest_normal
from privspec.noise.law import Array, NoiseLaw, Shares
from privspec.noise.samplers import Randomness, discrete_gaussian

if TYPE_CHECKING:
    from privspec.kernel.core.linear import Release


@dataclass(frozen=True, slots=True)
class GaussianNoise(NoiseLaw):
    """answer + N(0, standard_deviation^2), real numbers rounded to the lattice.

    Notes: gaussian-exact, rounded-gaussian.
    """

    standard_deviation: Fraction = Fraction(1)
    known: ClassVar[type[Law]] = laws.Gaussian

    @classmethod
    def of(cls, release: Release) -> GaussianNoise:
        law = release.noise
        assert isinstance(law, laws.Gaussian)
        return cls(law.scale)

    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        """The nearest lattice points of exact real sums."""
        step = grid / self.standard_deviation
        return nearest_normal(self.in_standard_units(answers), step, randomness)

    def in_standard_units(self, answers: ExactVector) -> ExactVector:
        """The answers divided by the standard deviation."""
        sd = self.standard_deviation
        return ExactVector(answers.numerators * sd.denominator, answers.denominator * sd.numerator)

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> Array:
        return generator.standard_normal((repetitions, size)) * float(self.standard_deviation)

    def approximate_sums(self, senders: Array, repetitions: int, generator: np.random.Generator) -> Array:
        return self.approximate(len(senders), repetitions, generator) * np.sqrt(senders)


@dataclass(frozen=True, slots=True)
class GaussianShares(Shares):
    """Each party adds a discrete Gaussian number of `variance` to every answer."""

    variance: Fraction
    known: ClassVar[type[Law]] = laws.GaussianShares

    @classmethod
    def of(cls, release: Release) -> GaussianShares:
        law = release.noise
        assert isinstance(law, laws.GaussianShares)
        return cls(release.parties, law.honest, law.variance)

    def share(self, rows: int, grid: Fraction, randomness: Randomness) -> Integers:
        return integers(discrete_gaussian(self.variance / grid**2, randomness) for _ in range(rows))

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> Array:
        drawn: Array = generator.standard_normal((repetitions, size)) * float(self.parties * self.variance) ** 0.5
        return drawn


DRAWN = (GaussianNoise, GaussianShares)
