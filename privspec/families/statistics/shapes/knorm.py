"""K-norm noise of the Euclidean ball and of the cube: one vector for a statistic (notes/knorm-l2.md, knorm-linf.md)."""

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
class _KNorm:
    """One vector with probability proportional to exp(-||z|| / scale) on the grid."""

    epsilon: Fraction
    spread: Fraction
    size: int
    norm: ClassVar[NormName]
    executable: ClassVar[bool] = True

    @property
    def scale(self) -> Fraction:
        """The spread over epsilon."""
        return self.spread / self.epsilon

    def achieved(self, spread: Bounds, measure: Measure) -> Mapping[str, Fraction]:
        """Epsilon, exactly."""
        return {"epsilon": spread[self.norm] / self.scale}

    def to_json(self) -> dict[str, Any]:
        """The scale, exactly."""
        return {"scale": str(self.scale)}


@dataclass(frozen=True, slots=True)
class EuclideanNoise(_KNorm):
    """The radius is Gamma(k, scale), the direction uniform (Hardt & Talwar 2010)."""

    norm: ClassVar[NormName] = NormName.L2
    shape: ClassVar[str] = "knorm-l2"
    notes: ClassVar[tuple[str, ...]] = ("knorm-l2", "discrete-laplace")

    @property
    def variance(self) -> float:
        """E radius^2 / k = (k + 1) scale^2."""
        return (self.size + 1) * float(self.scale) ** 2

    def noisy(self, statistics: Array, random: np.random.Generator) -> Array:
        """In doubles, for simulation."""
        direction = random.standard_normal(statistics.shape)
        direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
        radius = random.gamma(self.size, float(self.scale), size=(*statistics.shape[:-1], 1))
        noisy: Array = statistics + radius * direction
        return noisy


@dataclass(frozen=True, slots=True)
class CubeNoise(_KNorm):
    """Gamma(k + 1, scale) times a uniform point of the cube."""

    norm: ClassVar[NormName] = NormName.LINF
    shape: ClassVar[str] = "knorm-linf"
    notes: ClassVar[tuple[str, ...]] = ("knorm-linf", "discrete-laplace")

    @property
    def variance(self) -> float:
        """E radius^2 / 3 = (k + 1) (k + 2) scale^2 / 3."""
        return (self.size + 1) * (self.size + 2) * float(self.scale) ** 2 / 3

    def noisy(self, statistics: Array, random: np.random.Generator) -> Array:
        """In doubles, for simulation."""
        radius = random.gamma(self.size + 1, float(self.scale), size=(*statistics.shape[:-1], 1))
        noisy: Array = statistics + radius * random.uniform(-1.0, 1.0, size=statistics.shape)
        return noisy


@dataclass(frozen=True, slots=True)
class KNorm:
    """Calibrated by the spread in one norm; for every measure that a pure epsilon implies."""

    name: str
    norm: NormName
    noise: type[EuclideanNoise] | type[CubeNoise]
    family: ClassVar[str] = "knorm"

    def calibrate(self, site: Site, measure: Measure) -> Calibrated | None:
        """None without a pure epsilon, or without a bound on the spread."""
        epsilon, spread = measure.pure_epsilon, site.spread.get(self.norm)
        return None if epsilon is None or spread is None else self.noise(epsilon, spread, site.size)


EUCLIDEAN = KNorm("K-norm l2", NormName.L2, EuclideanNoise)
CUBE = KNorm("K-norm l_inf", NormName.LINF, CubeNoise)
