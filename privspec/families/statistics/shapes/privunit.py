"""Reports of a point of a sphere near a unit vector (notes/privunit.md): compared with, not executed yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp, log
from typing import Any, ClassVar

import numpy as np
from scipy.special import betainc, betaincinv, betaln

from privspec.families.statistics.shapes.shape import Calibrated, Site
from privspec.model.library import Bounds, NormName
from privspec.model.measures import Measure
from privspec.model.values import Array


@lru_cache(maxsize=4096)
def best_cap(size: int, epsilon: float) -> tuple[float, float, float]:
    """Height of the cap, probability of reporting from it, and mean of a report's coordinate, for the least variance.

    A report is uniform on the cap {u: <u, v> >= height} with probability p, else on the rest; with q the share of the
    cap, epsilon = log(p / (1 - p)) + log((1 - q) / q). Source: Bhowmick et al. 2018; Asi, Feldman & Talwar 2022.
    """
    best = (0.0, exp(epsilon) / (1 + exp(epsilon)), 0.0)
    for height in np.linspace(0.0, 0.99, 199):
        q = float(_cap_share(size, height))
        if q <= 0:
            break
        odds = epsilon - log((1 - q) / q)
        p = 1 / (1 + exp(-odds))
        # E <u, v> over a cap: the density of a coordinate is proportional to (1 - t^2)^((k - 3) / 2).
        edge = (1 - height**2) ** ((size - 1) / 2) / ((size - 1) * exp(betaln(0.5, (size - 1) / 2)))
        mean = edge * (p / q - (1 - p) / (1 - q))
        if mean > best[2]:
            best = (float(height), p, float(mean))
    return best


def _cap_share(size: int, height: float) -> float:
    return 0.5 * float(betainc((size - 1) / 2, 0.5, 1 - height**2))


@dataclass(frozen=True, slots=True)
class CapReport:
    """A point of a sphere, more often than not from the cap about the statistic's pole."""

    epsilon: Fraction
    bound: Fraction
    size: int
    shape: ClassVar[str] = "privunit"
    notes: ClassVar[tuple[str, ...]] = ("privunit",)
    executable: ClassVar[bool] = False

    @property
    def radius(self) -> float:
        """Length of a report, which makes it unbiased."""
        return float(self.bound) / best_cap(self.size, float(self.epsilon))[2]

    @property
    def variance(self) -> float:
        """At most radius^2 / k for one number."""
        return self.radius**2 / self.size

    def achieved(self, spread: Bounds, measure: Measure) -> Mapping[str, Fraction]:
        """Epsilon, whatever the statistic."""
        return {"epsilon": self.epsilon}

    def noisy(self, statistics: Array, random: np.random.Generator) -> Array:
        """In doubles, for simulation: the pole is rounded to without bias, as in Duchi's report."""
        height, p, _ = best_cap(self.size, float(self.epsilon))
        lengths = np.linalg.norm(statistics, axis=-1, keepdims=True)
        pole = np.where(lengths > 0, statistics / np.where(lengths > 0, lengths, 1.0), np.eye(self.size)[0])
        pole = pole * np.where(random.random(lengths.shape) < (1 + lengths / float(self.bound)) / 2, 1, -1)
        inside = random.random(lengths.shape) < p
        along = _coordinate(self.size, height, inside, random)
        across = random.standard_normal(statistics.shape)
        across -= np.sum(across * pole, axis=-1, keepdims=True) * pole
        across /= np.linalg.norm(across, axis=-1, keepdims=True)
        report: Array = self.radius * (along * pole + np.sqrt(1 - along**2) * across)
        return report

    def to_json(self) -> dict[str, Any]:
        """Bound and epsilon."""
        return {"epsilon": str(self.epsilon), "bound": str(self.bound)}


def _coordinate(size: int, height: float, inside: Any, random: np.random.Generator) -> Array:
    """A coordinate of a uniform point of the sphere, given that it is at least `height`, or that it is below.

    It is 1 - 2 X with X of the law Beta((k - 1)/2, (k - 1)/2): by its inverse, as caps can be too small to wait for.
    """
    half, share = (size - 1) / 2, _cap_share(size, height)
    uniform = random.random(inside.shape)
    placed = np.where(inside, share * uniform, share + (1 - share) * uniform)
    found: Array = 1 - 2 * betaincinv(half, half, placed)
    return found


class PrivUnit:
    """Calibrated by the l2 bound; where each party reports by itself."""

    name: ClassVar[str] = "PrivUnit"
    family: ClassVar[str] = "sphere"

    def calibrate(self, site: Site, measure: Measure) -> Calibrated | None:
        """None at the pool, without a pure epsilon, without a bound, or in one dimension."""
        epsilon, bound = measure.pure_epsilon, site.bound.get(NormName.L2)
        if epsilon is None or bound is None or not site.each_party or site.size < 2:
            return None
        return CapReport(epsilon, bound, site.size)
