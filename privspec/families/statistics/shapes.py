"""Shapes of noise on a bounded statistic, calibrated by how far one unit moves it, or by how large one party's is.

Proofs, and how each is drawn: notes laplace, gaussian-exact, knorm-l2, knorm-linf, duchi-l2; privunit is compared with
only. What is drawn here is in doubles, for simulation, never a release: exact samplers are in `noise`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import exp, lgamma, log, pi, sqrt
from typing import Any, ClassVar, TypeAlias

import numpy as np
import scipy

from privspec.core.records import dataclass
from privspec.model.library import Bounds, NormName
from privspec.model.measures import AskedMeasure
from privspec.model.values import Array

Random: TypeAlias = np.random.Generator
Draw: TypeAlias = Callable[[Random, float, tuple[int, ...]], Array]
"""Noise (..., k) of a scale."""


@dataclass(frozen=True, slots=True)
class Site:
    """A statistic of `size` numbers: how far one unit moves it and how large one party's is, by norm, rounded up.

    `grid`: every number of it is a whole multiple of this step, exactly.
    """

    size: int
    spread: Bounds
    bound: Bounds
    grid: Fraction
    each_party: bool


class Calibrated(ABC):
    """Noise of a certain shape and size, for one site and one requirement."""

    executable: ClassVar[bool] = True
    """Whether there is an exact sampler; without one it is for comparison only."""

    @property
    @abstractmethod
    def shape(self) -> str:
        """Its name in plans: "laplace", "knorm-l2", "duchi-l2"."""

    @property
    @abstractmethod
    def notes(self) -> tuple[str, ...]:
        """Stems of the notes that prove the guarantee and how it is drawn."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """Of one number of an unbiased noisy statistic, at a statistic of average size: for weights."""

    @abstractmethod
    def achieved(self, spread: Bounds) -> Mapping[str, Fraction]:
        """What it proves for a unit that moves the statistic by `spread`, rounded up: {"epsilon": ...}.

        It may have been calibrated to another requirement, which asked for more.
        """

    @abstractmethod
    def noisy(self, statistics: Array, random: Random) -> Array:
        """Noisy statistics (..., k), each row by itself and unbiased."""

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Fraction]:
        """Exact parameters, from which whoever executes or checks it needs nothing else."""


class Shape(ABC):
    """A family of noise: its name in rankings, and `family`, the word after `noise family` that allows it."""

    name: str
    family: str

    @abstractmethod
    def calibrate(self, site: Site, measure: AskedMeasure) -> Calibrated | None:
        """The least noise of this shape that meets the measure at the site; None where it cannot."""


# --- noise that is added --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Added(Shape):
    """Noise that is added, calibrated by the spread in one norm.

    `figure`: what it proves, "mu" or the pure "epsilon", the spread over the scale; `parameter`: what plans call the
    scale; `variance` of one number of k where the scale is one.
    """

    name: str
    family: str
    shape: str
    norm: NormName
    figure: str
    parameter: str
    notes: tuple[str, ...]
    draw: Draw
    variance: Callable[[int], float]

    def calibrate(self, site: Site, measure: AskedMeasure) -> Calibrated | None:
        """None for a measure that it cannot meet, or without a bound on the spread."""
        amount = measure.gaussian_mu_down() if self.figure == "mu" else measure.pure_epsilon
        spread = site.spread.get(self.norm)
        return None if amount is None or spread is None else AddedNoise(self, amount, spread, site.size)


@dataclass(frozen=True, slots=True)
class AddedNoise(Calibrated):
    """Noise of scale spread / amount on a statistic of `size` numbers."""

    law: Added
    amount: Fraction
    spread: Fraction
    size: int

    @property
    def shape(self) -> str:
        return self.law.shape

    @property
    def notes(self) -> tuple[str, ...]:
        return self.law.notes

    @property
    def scale(self) -> Fraction:
        """Of Gaussian noise its standard deviation."""
        return self.spread / self.amount

    @property
    def variance(self) -> float:
        return self.law.variance(self.size) * float(self.scale) ** 2

    def achieved(self, spread: Bounds) -> Mapping[str, Fraction]:
        """Exactly."""
        return {self.law.figure: spread[self.law.norm] / self.scale}

    def noisy(self, statistics: Array, random: Random) -> Array:
        return statistics + self.law.draw(random, float(self.scale), statistics.shape)

    @property
    def parameters(self) -> dict[str, Fraction]:
        return {self.law.parameter: self.scale}


def _laplace(random: Random, scale: float, shape: tuple[int, ...]) -> Array:
    return random.laplace(scale=scale, size=shape)


def _normal(random: Random, scale: float, shape: tuple[int, ...]) -> Array:
    return scale * random.standard_normal(shape)


def _in_ball(random: Random, scale: float, shape: tuple[int, ...]) -> Array:
    """The radius is Gamma(k, scale), the direction uniform (Hardt & Talwar 2010); E radius^2 / k = (k + 1) scale^2."""
    direction = random.standard_normal(shape)
    direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
    return np.asarray(random.gamma(shape[-1], scale, size=(*shape[:-1], 1)) * direction)


def _in_cube(random: Random, scale: float, shape: tuple[int, ...]) -> Array:
    """Gamma(k + 1, scale) times a uniform point of the cube; E radius^2 / 3 = (k + 1) (k + 2) scale^2 / 3."""
    radius = random.gamma(shape[-1] + 1, scale, size=(*shape[:-1], 1))
    return np.asarray(radius * random.uniform(-1.0, 1.0, size=shape))


def _pure(name: str, shape: str, norm: NormName, draw: Draw, variance: Callable[[int], float]) -> Added:
    family = shape.partition("-")[0]
    return Added(name, family, shape, norm, "epsilon", "scale", (shape, "discrete-laplace"), draw, variance)


LAPLACE = _pure("Laplace", "laplace", NormName.L1, _laplace, lambda _: 2)
EUCLIDEAN = _pure("K-norm l2", "knorm-l2", NormName.L2, _in_ball, lambda k: k + 1)
CUBE = _pure("K-norm l_inf", "knorm-linf", NormName.LINF, _in_cube, lambda k: (k + 1) * (k + 2) / 3)
_EXACTLY = ("gaussian-exact", "rounded-gaussian")
GAUSSIAN = Added(
    "Gaussian", "gaussian", "gaussian", NormName.L2, "mu", "standard_deviation", _EXACTLY, _normal, lambda _: 1
)


# --- reports of a point of a sphere ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Report(Calibrated):
    """A point of a sphere in place of a vector of l2 norm at most `bound`: unbiased, one for each party.

    The vector v is drawn to a pole +-v/|v| without bias first, then a point near that pole.
    """

    epsilon: Fraction
    bound: Fraction
    size: int

    @property
    @abstractmethod
    def radius(self) -> float:
        """The length of a report that makes it unbiased."""

    @property
    def variance(self) -> float:
        """At most radius^2 / k for one number."""
        return self.radius**2 / self.size

    def achieved(self, spread: Bounds) -> Mapping[str, Fraction]:
        """Epsilon, whatever the statistic."""
        return {"epsilon": self.epsilon}

    @property
    def parameters(self) -> dict[str, Fraction]:
        return {"epsilon": self.epsilon, "bound": self.bound}


@dataclass(frozen=True, slots=True)
class SphereReport(Report):
    """With probability e^epsilon / (1 + e^epsilon) the point is of the pole's own hemisphere, else of the other.

    Either way it is uniform there. Source: Duchi, Jordan & Wainwright 2018, section 4.2.3.
    """

    shape: ClassVar[str] = "duchi-l2"
    notes: ClassVar[tuple[str, ...]] = ("duchi-l2",)

    @property
    def radius(self) -> float:
        """Bound (e^epsilon + 1) / (e^epsilon - 1) sqrt(pi) Gamma((k + 1) / 2) / Gamma(k / 2).

        The mean of the first coordinate of a uniform point of the hemisphere is Gamma(k / 2) / (sqrt(pi)
        Gamma((k + 1) / 2)).
        """
        e, k = exp(float(self.epsilon)), self.size
        return float(self.bound) * (e + 1) / (e - 1) * sqrt(pi) * exp(lgamma((k + 1) / 2) - lgamma(k / 2))

    def noisy(self, statistics: Array, random: Random) -> Array:
        lengths = np.linalg.norm(statistics, axis=-1, keepdims=True) / float(self.bound)
        towards = random.random(lengths.shape) < (1 + lengths) / 2
        point = random.standard_normal(statistics.shape)
        point /= np.linalg.norm(point, axis=-1, keepdims=True)
        near = random.random(lengths.shape) < 1 / (1 + exp(-float(self.epsilon)))
        # A zero vector has no pole: any fixed one will do.
        pole = np.where(lengths > 0, statistics, np.eye(self.size)[0])
        side = np.sign(np.sum(pole * point, axis=-1, keepdims=True)) * np.where(towards, 1, -1)
        return np.asarray(self.radius * point * side * np.where(near, 1, -1))


@dataclass(frozen=True, slots=True)
class CapReport(Report):
    """The point comes more often than not from the cap about the pole (notes/privunit.md); not executed yet."""

    shape: ClassVar[str] = "privunit"
    notes: ClassVar[tuple[str, ...]] = ("privunit",)
    executable: ClassVar[bool] = False

    @property
    def radius(self) -> float:
        return float(self.bound) / best_cap(self.size, float(self.epsilon))[2]

    def noisy(self, statistics: Array, random: Random) -> Array:
        height, p, _ = best_cap(self.size, float(self.epsilon))
        lengths = np.linalg.norm(statistics, axis=-1, keepdims=True)
        pole = np.where(lengths > 0, statistics / np.where(lengths > 0, lengths, 1.0), np.eye(self.size)[0])
        pole = pole * np.where(random.random(lengths.shape) < (1 + lengths / float(self.bound)) / 2, 1, -1)
        inside = random.random(lengths.shape) < p
        along = _coordinate(self.size, height, inside, random)
        across = random.standard_normal(statistics.shape)
        across -= np.sum(across * pole, axis=-1, keepdims=True) * pole
        across /= np.linalg.norm(across, axis=-1, keepdims=True)
        return np.asarray(self.radius * (along * pole + np.sqrt(1 - along**2) * across))


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
        edge = (1 - height**2) ** ((size - 1) / 2) / ((size - 1) * exp(scipy.special.betaln(0.5, (size - 1) / 2)))
        mean = edge * (p / q - (1 - p) / (1 - q))
        if mean > best[2]:
            best = (float(height), p, float(mean))
    return best


def _cap_share(size: int, height: float) -> float:
    return 0.5 * float(scipy.special.betainc((size - 1) / 2, 0.5, 1 - height**2))


def _coordinate(size: int, height: float, inside: Any, random: Random) -> Array:
    """A coordinate of a uniform point of the sphere, given that it is at least `height`, or that it is below.

    It is 1 - 2 X with X of the law Beta((k - 1)/2, (k - 1)/2): by its inverse, as caps can be too small to wait for.
    """
    half, share = (size - 1) / 2, _cap_share(size, height)
    uniform = random.random(inside.shape)
    placed = np.where(inside, share * uniform, share + (1 - share) * uniform)
    return np.asarray(1 - 2 * scipy.special.betaincinv(half, half, placed))


@dataclass(frozen=True, slots=True)
class Sphere(Shape):
    """Calibrated by the l2 bound, where each party reports by itself; in dimensions from `least` on."""

    name: str
    report: type[SphereReport | CapReport]
    least: int = 1
    family: str = "sphere"

    def calibrate(self, site: Site, measure: AskedMeasure) -> Calibrated | None:
        """None at the pool, without a pure epsilon, or without a bound."""
        epsilon, bound = measure.pure_epsilon, site.bound.get(NormName.L2)
        if epsilon is None or bound is None or not site.each_party or site.size < self.least:
            return None
        return self.report(epsilon, bound, site.size)


SHAPES: tuple[Shape, ...] = (
    *(LAPLACE, EUCLIDEAN, CUBE, GAUSSIAN),
    *(Sphere("Duchi's sphere", SphereReport), Sphere("PrivUnit", CapReport, 2)),
)
"""All shapes, in the order in which they are compared."""
