"""K-norm noise of the l2 ball: one vector for all strategy rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from privspec.core.matrices import DyadicMatrix
from privspec.model.neighbours import Differences
from privspec.noise.law import Array, Indices, NoiseLaw
from privspec.noise.sensitivity import l2_sensitivity_up


@dataclass(frozen=True, slots=True)
class KNormL2Noise:
    """One vector with density proportional to exp(-||z||_2 / scale) on the lattice (notes/knorm-l2.md)."""

    scale: Fraction
    family: ClassVar[str] = "mixed"
    notes: ClassVar[tuple[str, ...]] = ("laplace", "knorm-l2", "post-processing")
    separate: ClassVar[bool] = False
    amount: ClassVar[str] = "epsilon"

    def to_json(self) -> dict[str, Any]:
        """Its form under `executed.noise`."""
        return {"shape": "knorm-l2", "scale": str(self.scale)}

    def part(self, rows: Indices) -> NoiseLaw:
        """The whole vector: part of it says no more than all of it."""
        return self

    def row_variances(self, rows: int, grid: Fraction) -> Array:
        """The radius is Gamma(rows, scale), the direction uniform: (rows + 1) scale^2 each."""
        return np.full(rows, (rows + 1) * float(self.scale) ** 2)

    def achieved(self, strategy: DyadicMatrix, differences: Differences, grid: Fraction, counts: bool) -> Fraction:
        """Epsilon: the l2 sensitivity in units of the scale, with the rounding of every row counted."""
        rounding = Fraction(float(np.nextafter(np.sqrt(strategy.shape[0]), np.inf)))
        return (l2_sensitivity_up(strategy, differences) + grid * rounding) / self.scale
