"""Reports of a point of a sphere in place of a bounded vector: unbiased, one for each party (notes/duchi-l2.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import exp, lgamma, pi, sqrt
from typing import Any, ClassVar

import numpy as np

from privspec.families.statistics.shapes.shape import Calibrated, Site
from privspec.model.library import Bounds, NormName
from privspec.model.measures import Measure
from privspec.model.values import Array


@dataclass(frozen=True, slots=True)
class SphereReport:
    """The statistic v is drawn to a pole +-v/|v| without bias, then a point of that pole's hemisphere is reported.

    With probability e^epsilon / (1 + e^epsilon) the point is of the pole's own hemisphere, else of the other; either
    way it is uniform there. Source: Duchi, Jordan & Wainwright 2018, section 4.2.3.
    """

    epsilon: Fraction
    bound: Fraction
    size: int
    shape: ClassVar[str] = "duchi-l2"
    notes: ClassVar[tuple[str, ...]] = ("duchi-l2",)
    executable: ClassVar[bool] = True

    @property
    def radius(self) -> float:
        """Length of a report: bound (e^epsilon + 1) / (e^epsilon - 1) sqrt(pi) Gamma((k + 1) / 2) / Gamma(k / 2).

        The mean of the first coordinate of a uniform point of the hemisphere is Gamma(k / 2) / (sqrt(pi)
        Gamma((k + 1) / 2)), so reports of this length are unbiased.
        """
        e = exp(float(self.epsilon))
        return (
            float(self.bound) * (e + 1) / (e - 1) * sqrt(pi) * exp(lgamma((self.size + 1) / 2) - lgamma(self.size / 2))
        )

    @property
    def variance(self) -> float:
        """At most radius^2 / k for one number."""
        return self.radius**2 / self.size

    def achieved(self, spread: Bounds, measure: Measure) -> Mapping[str, Fraction]:
        """Epsilon, exactly: two laws on two hemispheres, mixed."""
        return {"epsilon": self.epsilon}

    def noisy(self, statistics: Array, random: np.random.Generator) -> Array:
        """In doubles, for simulation."""
        lengths = np.linalg.norm(statistics, axis=-1, keepdims=True) / float(self.bound)
        towards = random.random(lengths.shape) < (1 + lengths) / 2
        point = random.standard_normal(statistics.shape)
        point /= np.linalg.norm(point, axis=-1, keepdims=True)
        near = random.random(lengths.shape) < 1 / (1 + exp(-float(self.epsilon)))
        # A zero vector has no pole: any fixed one will do.
        pole = np.where(lengths > 0, statistics, np.eye(self.size)[0])
        side = np.sign(np.sum(pole * point, axis=-1, keepdims=True)) * np.where(towards, 1, -1)
        report: Array = self.radius * point * side * np.where(near, 1, -1)
        return report

    def to_json(self) -> dict[str, Any]:
        """Bound and epsilon, exactly."""
        return {"epsilon": str(self.epsilon), "bound": str(self.bound)}


class Duchi:
    """Calibrated by the l2 bound; where each party reports by itself."""

    name: ClassVar[str] = "Duchi's sphere"
    family: ClassVar[str] = "sphere"

    def calibrate(self, site: Site, measure: Measure) -> Calibrated | None:
        """None at the pool, without a pure epsilon, or without a bound."""
        epsilon, bound = measure.pure_epsilon, site.bound.get(NormName.L2)
        if epsilon is None or bound is None or not site.each_party:
            return None
        return SphereReport(epsilon, bound, site.size)
