"""Laplace noise on every number of a statistic (notes/laplace.md, notes/discrete-laplace.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from privspec.families.statistics.shapes.shape import Calibrated, Site
from privspec.model.library import Bounds, NormName
from privspec.model.measures import Measure
from privspec.model.values import Array


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """Independent noise with probability proportional to exp(-|z| / scale) on the grid."""

    epsilon: Fraction
    spread: Fraction
    shape: ClassVar[str] = "laplace"
    notes: ClassVar[tuple[str, ...]] = ("laplace", "discrete-laplace")
    executable: ClassVar[bool] = True

    @property
    def scale(self) -> Fraction:
        """The l1 spread over epsilon."""
        return self.spread / self.epsilon

    @property
    def variance(self) -> float:
        """2 scale^2."""
        return 2 * float(self.scale) ** 2

    def achieved(self, spread: Bounds, measure: Measure) -> Mapping[str, Fraction]:
        """Epsilon, exactly."""
        return {"epsilon": spread[NormName.L1] / self.scale}

    def noisy(self, statistics: Array, random: np.random.Generator) -> Array:
        """In doubles, for simulation."""
        return statistics + random.laplace(scale=float(self.scale), size=statistics.shape)

    def to_json(self) -> dict[str, Any]:
        """The scale, exactly."""
        return {"scale": str(self.scale)}


class Laplace:
    """Calibrated by the l1 spread; for every measure that a pure epsilon implies."""

    name: ClassVar[str] = "Laplace"
    family: ClassVar[str] = "laplace"

    def calibrate(self, site: Site, measure: Measure) -> Calibrated | None:
        """None without a pure epsilon, or without a bound on the l1 spread."""
        epsilon, spread = measure.pure_epsilon, site.spread.get(NormName.L1)
        return None if epsilon is None or spread is None else LaplaceNoise(epsilon, spread)
