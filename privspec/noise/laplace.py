"""Laplace noise: independent discrete Laplace noise on a lattice, one exact scale a row."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from privspec.core.matrices import DyadicMatrix, ExactVector, Integers, integers
from privspec.noise.law import Array, Indices, NoiseLaw, on_lattice
from privspec.noise.samplers import Randomness, discrete_laplace
from privspec.noise.sensitivity import scaled_l1_sensitivity
from privspec.problem.linear_differences import Differences


@dataclass(frozen=True, slots=True)
class LaplaceNoise(NoiseLaw):
    """The answers rounded to the lattice, plus discrete Laplace noise of `scales` (one, or one for each answer).

    On a lattice of step 1 over counts this is the geometric mechanism. Notes: laplace, discrete-laplace.
    """

    scales: tuple[Fraction, ...]
    family: ClassVar[str] = "laplace"
    notes: ClassVar[tuple[str, ...]] = ("laplace", "discrete-laplace", "post-processing")
    separate: ClassVar[bool] = True

    def _each(self, rows: int) -> tuple[Fraction, ...]:
        return self.scales * rows if len(self.scales) == 1 else self.scales

    def to_json(self) -> dict[str, Any]:
        return {"shape": "laplace", "scale": [str(b) for b in self.scales]}

    def part(self, rows: Indices) -> NoiseLaw:
        return LaplaceNoise(tuple(self.scales[r] for r in rows))

    def row_variances(self, rows: int, grid: Fraction) -> Array:
        """That of the discrete Laplace law: 2 g^2 p / (1 - p)^2 with p = exp(-g / b)."""
        step = float(grid)
        decay = np.array([step / float(b) for b in self._each(rows)])
        return np.asarray(2 * step * step * np.exp(-decay) / np.expm1(-decay) ** 2)

    def achieved(self, strategy: DyadicMatrix, differences: Differences, grid: Fraction, counts: bool) -> Fraction:
        """Epsilon, exactly: the l1 sensitivity in units of the scales.

        Each answer is rounded to the lattice before noise, which adds one step wherever a row moves, unless all
        answers are lattice points: whole multiples of the step when inputs are counts.
        """
        on_points = counts and (strategy.unit / grid).denominator == 1
        return scaled_l1_sensitivity(strategy, self.scales, differences, Fraction(0) if on_points else grid)

    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        return integers(
            lattice + discrete_laplace(scale / grid, randomness)
            for lattice, scale in zip(on_lattice(answers, grid), self._each(len(answers)), strict=True)
        )

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> Array:
        scales = np.array([float(s) for s in self._each(size)])
        return np.asarray(generator.laplace(size=(repetitions, size)) * scales)
