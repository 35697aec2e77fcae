"""What a shape of noise must say of itself; one object for each, in a file of its own beside its note."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from privspec.model.library import Bounds
from privspec.model.measures import Measure
from privspec.model.values import Array


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


class Calibrated(Protocol):
    """Noise of a certain shape and size, for one site and one requirement."""

    @property
    def shape(self) -> str:
        """Its name in plans: "laplace", "knorm-l2", "duchi-l2"."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Stems of the notes that prove the guarantee and how it is drawn."""

    @property
    def executable(self) -> bool:
        """Whether there is an exact sampler; without one it is for comparison only."""

    @property
    def variance(self) -> float:
        """Of one number of an unbiased noisy statistic, at a statistic of average size: for weights."""

    def achieved(self, spread: Bounds, measure: Measure) -> Mapping[str, Fraction]:
        """What it proves for a unit that moves the statistic by `spread`, rounded up: {"epsilon": ...}.

        It may have been calibrated to another requirement, which asked for more.
        """

    def noisy(self, statistics: Array, random: np.random.Generator) -> Array:
        """Noisy statistics (..., k) in doubles, each row by itself and unbiased: for simulation, never a release."""

    def to_json(self) -> dict[str, Any]:
        """Shape and exact parameters, from which whoever executes or checks it needs nothing else."""


class Shape(Protocol):
    """A family of noise."""

    @property
    def name(self) -> str:
        """As rankings list it: "Laplace", "K-norm l2"."""

    @property
    def family(self) -> str:
        """The word after `noise family` that allows it."""

    def calibrate(self, site: Site, measure: Measure) -> Calibrated | None:
        """The least noise of this shape that meets the measure at the site; None where it cannot."""
