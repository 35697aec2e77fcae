"""Gaussian noise: independent normal numbers on every strategy row, exact, rounded afterwards; and discrete shares."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privspec.core.matrices import DyadicMatrix, ExactVector, Integers, integers
from privspec.core.records import dataclass
from privspec.kernel.laws import gaussian as laws
from privspec.kernel.laws.law import Law
from privspec.noise.inverse import nearest_normal
from privspec.noise.law import Array, Moves, NoiseLaw, Shares, l2_sensitivity_up
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

    def to_json(self) -> dict[str, Any]:
        return {"shape": self.known.shape, "standard_deviation": str(self.standard_deviation)}

    def row_variances(self, rows: int, grid: Fraction) -> Array:
        """Those of the normal law (rounding to the grid adds at most grid^2 / 4, below any digit shown)."""
        return np.full(rows, float(self.standard_deviation) ** 2)

    def achieved(self, strategy: DyadicMatrix, moves: Moves, grid: Fraction) -> Fraction:
        """Mu: the l2 sensitivity in standard deviations."""
        return l2_sensitivity_up(strategy, moves.differences) / self.standard_deviation

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

    def to_json(self) -> dict[str, Any]:
        return {"shape": self.known.shape, "variance": str(self.variance), **self._among}

    def row_variances(self, rows: int, grid: Fraction) -> Array:
        """Those of the sum of all shares: less than 2^-1800 below it."""
        return np.full(rows, float(self.parties * self.variance))

    def achieved(self, strategy: DyadicMatrix, moves: Moves, grid: Fraction) -> Fraction:
        """Mu, rounded up."""
        square = l2_sensitivity_up(strategy, moves.differences) ** 2
        return Fraction(
            np.nextafter(float(laws.GaussianShares(self.variance, self.honest).mu_squared(square, grid)) ** 0.5, np.inf)
        )

    def share(self, rows: int, grid: Fraction, randomness: Randomness) -> Integers:
        return integers(discrete_gaussian(self.variance / grid**2, randomness) for _ in range(rows))

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> Array:
        drawn: Array = generator.standard_normal((repetitions, size)) * float(self.parties * self.variance) ** 0.5
        return drawn


DRAWN = (GaussianNoise, GaussianShares)
