"""Gaussian noise: independent N(0, 1) on every strategy row, exact, rounded afterwards."""

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
class GaussianNoise:
    """Independent N(0, 1) on every strategy row (notes/gaussian-exact.md, notes/rounded-gaussian.md)."""

    family: ClassVar[str] = "gaussian"
    notes: ClassVar[tuple[str, ...]] = ("gaussian-exact", "rounded-gaussian", "post-processing")
    separate: ClassVar[bool] = False
    amount: ClassVar[str] = "mu"

    def to_json(self) -> dict[str, Any]:
        """Its form under `executed.noise`."""
        return {"shape": "gaussian", "standard_deviation": "1"}

    def part(self, rows: Indices) -> NoiseLaw:
        """The same."""
        return self

    def row_variances(self, rows: int, grid: Fraction) -> Array:
        """One each (rounding to the grid adds at most grid^2 / 4, below any digit shown)."""
        return np.ones(rows)

    def achieved(self, strategy: DyadicMatrix, differences: Differences, grid: Fraction, counts: bool) -> Fraction:
        """Mu: the l2 sensitivity, as the noise has standard deviation one."""
        return l2_sensitivity_up(strategy, differences)
