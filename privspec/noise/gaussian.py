"""Gaussian noise: independent normal numbers on every strategy row, exact, rounded afterwards."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from privspec.core.matrices import DyadicMatrix, ExactVector, Integers
from privspec.core.records import dataclass
from privspec.noise.inverse import nearest_normal
from privspec.noise.law import Array, Moves, NoiseLaw, l2_sensitivity_up
from privspec.noise.samplers import Randomness


@dataclass(frozen=True, slots=True)
class GaussianNoise(NoiseLaw):
    """answer + N(0, standard_deviation^2), real numbers rounded to the lattice.

    Notes: gaussian-exact, rounded-gaussian.
    """

    standard_deviation: Fraction = Fraction(1)
    family: ClassVar[str] = "gaussian"
    notes: ClassVar[tuple[str, ...]] = ("gaussian-exact", "rounded-gaussian", "post-processing")
    amount: ClassVar[str] = "mu"

    def to_json(self) -> dict[str, Any]:
        return {"shape": "gaussian", "standard_deviation": str(self.standard_deviation)}

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
