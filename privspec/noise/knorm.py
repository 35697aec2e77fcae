"""K-norm noise of the l2 ball: one vector for all strategy rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from privspec.core.matrices import DyadicMatrix, ExactVector, Integers, integers
from privspec.noise.law import Array, Moves, NoiseLaw, l2_sensitivity_up, on_lattice
from privspec.noise.samplers import Randomness, discrete_knorm_l2


@dataclass(frozen=True, slots=True)
class KNormL2Noise(NoiseLaw):
    """The answers rounded to the lattice, plus a vector z of the lattice of density ~ exp(-||z||_2 / scale).

    At most KNORM_LIMIT answers; notes/knorm-l2.md.
    """

    scale: Fraction
    family: ClassVar[str] = "mixed"
    notes: ClassVar[tuple[str, ...]] = ("laplace", "knorm-l2", "post-processing")

    def to_json(self) -> dict[str, Any]:
        return {"shape": "knorm-l2", "scale": str(self.scale)}

    def row_variances(self, rows: int, grid: Fraction) -> Array:
        """The radius is Gamma(rows, scale), the direction uniform: (rows + 1) scale^2 each."""
        return np.full(rows, (rows + 1) * float(self.scale) ** 2)

    def achieved(self, strategy: DyadicMatrix, moves: Moves, grid: Fraction) -> Fraction:
        """Epsilon: the l2 sensitivity in units of the scale, with the rounding of every row counted."""
        rounding = Fraction(float(np.nextafter(np.sqrt(strategy.shape[0]), np.inf)))
        return (l2_sensitivity_up(strategy, moves.differences) + grid * rounding) / self.scale

    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        noise = discrete_knorm_l2(len(answers), self.scale / grid, randomness)
        return integers(a + z for a, z in zip(on_lattice(answers, grid), noise, strict=True))

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> Array:
        """A Gamma radius times a uniform direction."""
        directions = generator.standard_normal((repetitions, size))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        return np.asarray(float(self.scale) * generator.gamma(size, size=(repetitions, 1)) * directions)
