"""Gaussian noise on every number of a statistic (notes/gaussian-exact.md, notes/rounded-gaussian.md)."""

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
class NormalNoise:
    """Independent N(0, deviation^2), rounded to the grid after it is added."""

    mu: Fraction
    spread: Fraction
    shape: ClassVar[str] = "gaussian"
    notes: ClassVar[tuple[str, ...]] = ("gaussian-exact", "rounded-gaussian")
    executable: ClassVar[bool] = True

    @property
    def deviation(self) -> Fraction:
        """The l2 spread over mu."""
        return self.spread / self.mu

    @property
    def variance(self) -> float:
        """Of one number."""
        return float(self.deviation) ** 2

    def achieved(self, spread: Bounds, measure: Measure) -> Mapping[str, Fraction]:
        """Mu, exactly."""
        return {"mu": spread[NormName.L2] / self.deviation}

    def noisy(self, statistics: Array, random: np.random.Generator) -> Array:
        """In doubles, for simulation."""
        return statistics + float(self.deviation) * random.standard_normal(statistics.shape)

    def to_json(self) -> dict[str, Any]:
        """The standard deviation, exactly."""
        return {"standard_deviation": str(self.deviation)}


class Gaussian:
    """Calibrated by the l2 spread; for measures that a Gaussian release can satisfy."""

    name: ClassVar[str] = "Gaussian"
    family: ClassVar[str] = "gaussian"

    def calibrate(self, site: Site, measure: Measure) -> Calibrated | None:
        """None for pure epsilon, or without a bound on the l2 spread."""
        mu, spread = measure.gaussian_mu_down(), site.spread.get(NormName.L2)
        return None if mu is None or spread is None else NormalNoise(mu, spread)
