"""Laws of noise as a plan lists them, each with what it proves for given moves of the statistic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from privspec.certify.measures import Finding, gaussian_proves, pure_proves
from privspec.certify.reading import At, Malformed
from privspec.certify.statistics.spreads import Moves, Statistic
from privspec.model.measures import Measure


class Noise(ABC):
    """Noise at one site; exact numbers only."""

    __slots__ = ()

    family: ClassVar[str]
    """The word after `noise family` that allows it."""
    figure: ClassVar[str]
    """What it proves: "epsilon" or "mu"."""
    each_party_only: ClassVar[bool] = False

    @abstractmethod
    def amount(self, moves: Moves, statistic: Statistic) -> Fraction:
        """The figure that it proves for one unit, rounded up."""

    @abstractmethod
    def covers(self, moves: Moves, statistic: Statistic) -> bool:
        """Whether the spread or bound that the plan lists is one."""

    @abstractmethod
    def proves(self, measure: Measure, amount: Fraction) -> Finding:
        """Whether the figure implies a measure."""


class _Pure(Noise):
    """Noise whose figure is a pure epsilon."""

    __slots__ = ()
    figure = "epsilon"

    def proves(self, measure: Measure, amount: Fraction) -> Finding:
        """From pure epsilon."""
        return pure_proves(measure, amount)


@dataclass(frozen=True, slots=True)
class Added(_Pure):
    """Probabilities proportional to exp(-norm / scale) on the grid, on which the statistic lies already."""

    spread: Fraction
    scale: Fraction
    family: str  # type: ignore[misc]
    norm: Callable[[Moves], Fraction]

    def amount(self, moves: Moves, statistic: Statistic) -> Fraction:
        """By the triangle inequality."""
        return self.norm(moves) / self.scale

    def covers(self, moves: Moves, statistic: Statistic) -> bool:
        """At least the derived one."""
        return self.norm(moves) <= self.spread


@dataclass(frozen=True, slots=True)
class Normal(Noise):
    """Independent Gaussian noise, rounded to the grid once it is added."""

    spread: Fraction
    deviation: Fraction
    family = "gaussian"
    figure = "mu"

    def amount(self, moves: Moves, statistic: Statistic) -> Fraction:
        """The l2 distance in units of the noise."""
        return moves.l2 / self.deviation

    def covers(self, moves: Moves, statistic: Statistic) -> bool:
        """At least the derived one."""
        return moves.l2 <= self.spread

    def proves(self, measure: Measure, amount: Fraction) -> Finding:
        """By the exact curve."""
        return gaussian_proves(measure, amount)


@dataclass(frozen=True, slots=True)
class Sphere(_Pure):
    """A point of one of two hemispheres, of odds e^epsilon: whatever the statistic was."""

    epsilon: Fraction
    bound: Fraction
    family = "sphere"
    each_party_only = True

    def amount(self, moves: Moves, statistic: Statistic) -> Fraction:
        """Its epsilon, for any two statistics."""
        return self.epsilon

    def covers(self, moves: Moves, statistic: Statistic) -> bool:
        """The statistic must lie in the ball for reports to be without bias."""
        return statistic.length <= self.bound


def _sized(data: At, size: int) -> None:
    if data["size"].integer() != size:
        raise Malformed(f"{data.place} is for another number of entries than the statistic has")


def _normed(data: At, norm: str) -> None:
    if data["norm"].text() != norm:
        raise Malformed(f"{data.place}.norm is not that of its shape")


def _added(norm: str, family: str, *, sized: bool) -> Callable[[At, int], Noise]:
    def read(data: At, size: int) -> Noise:
        _normed(data, norm)
        if sized:
            _sized(data, size)
        spread, scale, epsilon = (data[key].positive() for key in ("spread", "scale", "epsilon"))
        if scale * epsilon != spread:
            raise Malformed(f"{data.place}: spread, epsilon and scale do not fit together")
        return Added(spread, scale, family, NORMS[norm])

    return read


def _gaussian(data: At, size: int) -> Noise:  # noqa: ARG001
    _normed(data, "l2")
    spread, mu, deviation = (data[key].positive() for key in ("spread", "mu", "standard_deviation"))
    if deviation * mu != spread:
        raise Malformed(f"{data.place}: spread, mu and standard deviation do not fit together")
    return Normal(spread, deviation)


def _sphere(data: At, size: int) -> Noise:
    _normed(data, "l2")
    _sized(data, size)
    return Sphere(data["epsilon"].positive(), data["bound"].positive())


NORMS: Mapping[str, Callable[[Moves], Fraction]] = {
    "l1": lambda moves: moves.l1,
    "l2": lambda moves: moves.l2,
    "linf": lambda moves: moves.linf,
}
SHAPES: Mapping[str, Callable[[At, int], Noise]] = {
    "laplace": _added("l1", "laplace", sized=False),
    "knorm-l2": _added("l2", "knorm", sized=True),
    "knorm-linf": _added("linf", "knorm", sized=True),
    "gaussian": _gaussian,
    "duchi-l2": _sphere,
}
"""By the name in plans."""


def read_noise(data: At, size: int) -> Noise:
    """One entry of `noise`.

    Raises: Malformed.
    """
    shape = data["shape"].text()
    if shape not in SHAPES:
        raise Malformed(f"{data.place}.shape is unknown")
    return SHAPES[shape](data, size)
