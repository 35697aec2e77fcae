"""Laplace noise: independent discrete Laplace noise on a lattice, one exact scale a row."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from privspec.core.matrices import DyadicMatrix
from privspec.model.neighbours import Differences
from privspec.noise.law import Array, Indices, NoiseLaw
from privspec.noise.sensitivity import scaled_l1_sensitivity


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """Independent discrete Laplace noise (notes/laplace.md, notes/discrete-laplace.md).

    On a lattice of step 1 over counts this is the geometric mechanism.
    """

    scales: tuple[Fraction, ...]
    family: ClassVar[str] = "laplace"
    notes: ClassVar[tuple[str, ...]] = ("laplace", "discrete-laplace", "post-processing")
    separate: ClassVar[bool] = True
    amount: ClassVar[str] = "epsilon"

    def to_json(self) -> dict[str, Any]:
        """Its form under `executed.noise`."""
        return {"shape": "laplace", "scale": [str(b) for b in self.scales]}

    def part(self, rows: Indices) -> NoiseLaw:
        """The scales of these rows."""
        return LaplaceNoise(tuple(self.scales[r] for r in rows))

    def row_variances(self, rows: int, grid: Fraction) -> Array:
        """That of the discrete Laplace law: 2 g^2 p / (1 - p)^2 with p = exp(-g / b)."""
        step = float(grid)
        decay = np.array([step / float(b) for b in self.scales])
        return np.asarray(2 * step * step * np.exp(-decay) / np.expm1(-decay) ** 2)

    def achieved(self, strategy: DyadicMatrix, differences: Differences, grid: Fraction, counts: bool) -> Fraction:
        """Epsilon, exactly: the l1 sensitivity in units of the scales.

        Each answer is rounded to the lattice before noise, which adds one step wherever a row moves, unless all
        answers are lattice points: whole multiples of the step when inputs are counts.
        """
        on_lattice = counts and (strategy.unit / grid).denominator == 1
        return scaled_l1_sensitivity(strategy, self.scales, differences, Fraction(0) if on_lattice else grid)
