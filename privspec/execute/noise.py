"""The noise of a plan, one object a law: exact draws for releases, float draws for simulation only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privspec.execute.exact import ExactVector, Integers, integers
from privspec.execute.randomness import Randomness
from privspec.execute.samplers import (
    Normal,
    discrete_knorm_l2,
    discrete_laplace,
    round_half_up,
    round_noisy,
)
from privspec.noise import knorm, laplace


class NoiseLaw(ABC):
    """Adds noise to exact strategy answers and puts the sums on a lattice."""

    @abstractmethod
    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        """Noisy answers in steps of `grid`, drawn exactly."""

    @abstractmethod
    def variances(self, rows: int, grid: Fraction) -> NDArray[np.float64]:
        """The variance of the noise on each of so many answers; the answers' noise is uncorrelated."""

    @abstractmethod
    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """Floating-point noise (repetitions, size): simulation only, never a release."""


@dataclass(frozen=True, slots=True)
class GaussianNoise(NoiseLaw):
    """answer + N(0, standard_deviation^2), a real number, rounded to the lattice (rounded-gaussian)."""

    standard_deviation: Fraction

    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        """Noisy answers in steps of `grid`: the nearest lattice points of exact real sums."""
        scaled = self.in_standard_units(answers)
        step = grid / self.standard_deviation
        return integers(round_noisy(n, scaled.denominator, step, Normal(randomness)) for n in scaled.numerators)

    def in_standard_units(self, answers: ExactVector) -> ExactVector:
        """The answers divided by the standard deviation."""
        sd = self.standard_deviation
        return ExactVector(answers.numerators * sd.denominator, answers.denominator * sd.numerator)

    def variances(self, rows: int, grid: Fraction) -> NDArray[np.float64]:
        """That of the normal law; rounding adds at most grid^2 / 4."""
        return np.full(rows, float(self.standard_deviation) ** 2)

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """Floating-point normal noise: simulation only."""
        return float(self.standard_deviation) * generator.standard_normal((repetitions, size))


@dataclass(frozen=True, slots=True)
class LaplaceNoise(NoiseLaw):
    """The answer rounded to the lattice, plus discrete Laplace noise (notes/discrete-laplace.md).

    Args: scales in the units of the answers, one for each or one for all.
    """

    scales: tuple[Fraction, ...]

    def _scales(self, size: int) -> tuple[Fraction, ...]:
        return self.scales * size if len(self.scales) == 1 else self.scales

    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        """Noisy answers in steps of `grid`."""
        return integers(
            lattice + discrete_laplace(scale / grid, randomness)
            for lattice, scale in zip(on_lattice(answers, grid), self._scales(len(answers)), strict=True)
        )

    def variances(self, rows: int, grid: Fraction) -> NDArray[np.float64]:
        """Those of the discrete law."""
        return laplace.LaplaceNoise(self._scales(rows)).row_variances(rows, grid)

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """Floating-point Laplace noise: simulation only."""
        scales = np.array([float(s) for s in self._scales(size)])
        noise: NDArray[np.float64] = generator.laplace(size=(repetitions, size)) * scales
        return noise


@dataclass(frozen=True, slots=True)
class KNormNoise(NoiseLaw):
    """The answers rounded to the lattice, plus a vector z of the lattice of density ~ exp(-||z||_2 / scale).

    At most KNORM_LIMIT answers; notes/knorm-l2.md.
    """

    scale: Fraction

    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        """Noisy answers in steps of `grid`."""
        noise = discrete_knorm_l2(len(answers), self.scale / grid, randomness)
        return integers(a + z for a, z in zip(on_lattice(answers, grid), noise, strict=True))

    def variances(self, rows: int, grid: Fraction) -> NDArray[np.float64]:
        """That of a coordinate of the vector."""
        return knorm.KNormL2Noise(self.scale).row_variances(rows, grid)

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """A Gamma radius times a uniform direction, in floating point: simulation only."""
        directions = generator.standard_normal((repetitions, size))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        radii = float(self.scale) * generator.gamma(size, size=(repetitions, 1))
        noise: NDArray[np.float64] = radii * directions
        return noise


def on_lattice(answers: ExactVector, grid: Fraction) -> Integers:
    """The nearest lattice points of the answers, in steps of `grid`; halves go up."""
    return integers(
        round_half_up(n * grid.denominator, answers.denominator * grid.numerator) for n in answers.numerators
    )


def law_of(shape: str, scales: tuple[Fraction, ...]) -> NoiseLaw:
    """The law of a shape, with one scale for all strategy answers, or of Laplace noise with one for each.

    Raises: KeyError for another shape.
    """
    one = {"gaussian": GaussianNoise, "knorm-l2": KNormNoise}
    return LaplaceNoise(scales) if shape == "laplace" else one[shape](scales[0])
