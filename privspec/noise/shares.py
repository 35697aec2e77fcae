"""Noise that the parties of a secure sum add in shares: integers on a lattice, whose sum has a known law."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from privspec.core.diagnostics import InternalError
from privspec.core.matrices import DyadicMatrix, ExactVector, Integers, integers
from privspec.core.records import dataclass
from privspec.kernel.laws.gaussian import GaussianShares as Law
from privspec.kernel.shares import SHARED
from privspec.noise.laplace import LaplaceNoise, scaled_l1_sensitivity
from privspec.noise.law import Array, Indices, Moves, NoiseLaw, l2_sensitivity_up
from privspec.noise.samplers import Randomness, discrete_gaussian, polya


@dataclass(frozen=True, slots=True)
class Shares(NoiseLaw):
    """Independent shares of `parties`, of which those of any `honest` protect: what the others know is left out.

    Notes: shares.
    """

    parties: int
    honest: int

    @property
    def _among(self) -> dict[str, int]:
        return {"parties": self.parties, "honest": self.honest}

    def share(self, rows: int, grid: Fraction, randomness: Randomness) -> Integers:
        """What one party adds to each of so many answers, in steps of `grid`."""
        raise NotImplementedError

    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        """The sum of what all parties send; every answer is a point of the lattice."""
        steps = on_points(answers, grid)
        for _ in range(self.parties):
            steps = steps + self.share(len(steps), grid, randomness)
        return steps


def on_points(answers: ExactVector, grid: Fraction) -> Integers:
    """Answers in steps of a lattice that they are points of.

    Raises: InternalError for one that is not.
    """
    steps = [Fraction(n * grid.denominator, answers.denominator * grid.numerator) for n in answers.numerators]
    if any(step.denominator > 1 for step in steps):
        raise InternalError("an answer of a secure sum that is no point of its lattice")
    return integers(step.numerator for step in steps)


@dataclass(frozen=True, slots=True)
class GaussianShares(Shares):
    """Each party adds a discrete Gaussian number of `variance` to every answer."""

    variance: Fraction
    family: ClassVar[str] = "gaussian"
    notes: ClassVar[tuple[str, ...]] = (*SHARED["gaussian"][3], "post-processing")
    amount: ClassVar[str] = "mu"

    def to_json(self) -> dict[str, Any]:
        return {"shape": SHARED["gaussian"][0], "variance": str(self.variance), **self._among}

    def row_variances(self, rows: int, grid: Fraction) -> Array:
        """Those of the sum of all shares: less than 2^-1800 below it."""
        return np.full(rows, float(self.parties * self.variance))

    def achieved(self, strategy: DyadicMatrix, moves: Moves, grid: Fraction) -> Fraction:
        """Mu, rounded up."""
        square = l2_sensitivity_up(strategy, moves.differences) ** 2
        return Fraction(np.nextafter(float(Law(self.variance, self.honest).mu_squared(square, grid)) ** 0.5, np.inf))

    def share(self, rows: int, grid: Fraction, randomness: Randomness) -> Integers:
        return integers(discrete_gaussian(self.variance / grid**2, randomness) for _ in range(rows))

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> Array:
        drawn: Array = generator.standard_normal((repetitions, size)) * float(self.parties * self.variance) ** 0.5
        return drawn


@dataclass(frozen=True, slots=True)
class LaplaceShares(Shares):
    """Each party adds the difference of two negative binomial numbers: those of `honest` sum to discrete Laplace noise.

    The scale of that noise is one of `scales` for each answer.
    """

    scales: tuple[Fraction, ...]
    family: ClassVar[str] = "laplace"
    notes: ClassVar[tuple[str, ...]] = (*SHARED["laplace"][3], "post-processing")
    separate: ClassVar[bool] = True

    def to_json(self) -> dict[str, Any]:
        return {"shape": SHARED["laplace"][0], "scale": [str(b) for b in self.scales], **self._among}

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
