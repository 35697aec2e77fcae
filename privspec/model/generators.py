"""Data drawn from a data model, for predicted losses: never real data, and nothing a guarantee rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Protocol

import numpy as np

from privspec.model.graph import Model
from privspec.model.values import Array


@dataclass(frozen=True, eq=False, slots=True)
class Drawn:
    """What every party of a simulated crowd holds: records (N, n, d), and hidden attributes such as weights (N, d)."""

    records: Array
    attributes: Mapping[str, Array]


class Generator(Protocol):
    """A data model that can be drawn from."""

    def draw(self, parties: int, random: np.random.Generator) -> Drawn:
        """One crowd."""


@dataclass(frozen=True, slots=True)
class ThurstoneMosteller:
    """Pairwise choices of voters with hidden weights (Wang et al. 2019, section 5.1).

    m uniform on [-1, 1]^d; weights N(m, I) for every voter; n pairs of alternatives N(0, I) each; the voter chooses the
    one of larger utility, where utilities are weights' alternative plus noise of variance 1/2. A record is the chosen
    alternative minus the other one, clipped to a ball of `radius` if there is one.
    """

    records: int
    dimension: int
    radius: float | None

    def draw(self, parties: int, random: np.random.Generator) -> Drawn:
        """One society and its voters."""
        centre = random.uniform(-1.0, 1.0, self.dimension)
        weights = centre + random.standard_normal((parties, self.dimension))
        # The difference of two alternatives N(0, I) is N(0, 2 I), that of the noises of two utilities N(0, 1).
        difference = sqrt(2.0) * random.standard_normal((parties, self.records, self.dimension))
        utility = np.einsum("vnd,vd->vn", difference, weights) + random.standard_normal((parties, self.records))
        chosen = np.where(utility[..., None] > 0, difference, -difference)
        return Drawn(clipped(chosen, self.radius), {"weights": weights})


def clipped(records: Array, radius: float | None) -> Array:
    """Every record drawn in to the ball, by itself: what it becomes does not depend on any other."""
    if radius is None:
        return records
    lengths = np.linalg.norm(records, axis=-1, keepdims=True)
    shrunk: Array = records * np.minimum(1.0, radius / np.maximum(lengths, 1e-300))
    return shrunk


def generator_of(model: Model, subject: str, records: int, dimension: int, radius: float | None) -> Generator | None:
    """The data model of an input, if it can be drawn from."""
    for known in model.models:
        if known.subject == subject and known.distribution == "thurstone_mosteller":
            return ThurstoneMosteller(records, dimension, radius)
    return None
