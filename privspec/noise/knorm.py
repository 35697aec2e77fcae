"""K-norm noise of the l2 ball, one vector for all strategy rows; of blocks or polytopes, one for the rows of each."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from privspec.core.matrices import ExactVector, Integers, integers
from privspec.core.records import dataclass
from privspec.kernel.laws import knorm as laws
from privspec.kernel.laws.law import Law
from privspec.noise.law import Array, NoiseLaw, on_points
from privspec.noise.samplers import Randomness, bernoulli_exp, polya
from privspec.noise.vectors import ConeVectors, EuclideanVectors, ProductVectors, approximate, approximate_product

if TYPE_CHECKING:
    from privspec.kernel.core.linear import Release
    from privspec.kernel.laws.knorm import Body


@dataclass(frozen=True, slots=True)
class KNormNoise(NoiseLaw):
    """answers + z, z real vectors of density ~ exp(-|v|) in the norm of a law, rounded to the lattice."""

    law: Any

    @classmethod
    def of(cls, release: Release) -> Self:
        assert isinstance(release.noise, cls.known)
        return cls(release.noise)


class KNormL2Noise(KNormNoise):
    """One vector for all strategy rows. Note knorm-l2."""

    known: ClassVar[type[Law]] = laws.KNorm

    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        return EuclideanVectors(1, len(answers), self.law.scale, randomness).nearest(answers, grid).ravel()

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> Array:
        """A Gamma radius times a uniform direction."""
        return np.asarray(float(self.law.scale) * approximate("l2", size, repetitions, generator))


class KNormBlocksNoise(KNormNoise):
    """A vector for each block. Note knorm-blocks."""

    known: ClassVar[type[Law]] = laws.KNormBlocks

    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        found, start = list[Integers](), 0
        for parts in self.law.blocks:
            scales = sum(parts, ())
            own = ExactVector(answers.numerators[start:][: len(scales)], answers.denominator)
            start += len(scales)
            found.append(
                ProductVectors(1, tuple(map(len, parts)), Fraction(1), randomness).nearest(own, grid, scales).ravel()
            )
        return np.concatenate(found)

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> Array:
        vectors = [approximate_product(tuple(map(len, parts)), repetitions, generator) for parts in self.law.blocks]
        return np.asarray(np.hstack(vectors) * [*map(float, self.law.sizes(Fraction()))])


class KNormHullsNoise(KNormNoise):
    """A vector for each polytope: a cone, and in it a sum of corners. Note knorm-hulls."""

    known: ClassVar[type[Law]] = laws.KNormHulls

    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        found, start = list[Integers](), 0
        for body in self.law.bodies:
            own = ExactVector(answers.numerators[start:][: body.size], answers.denominator)
            start += body.size
            place, points, unit = _cone(body, randomness), body.corners.rows, body.corners.unit
            corners = integers(v for i in body.cones.rows[place] for v in points[i]).reshape(body.size, body.size)
            if body.whole:
                each = [first + polya(Fraction(1), body.scale, randomness) for first in body.geometry.starts[place]]
                found.append(on_points(own, grid) + integers(each) @ corners * int(unit / grid))
            else:
                found.append(ConeVectors(corners, body.scale * unit, randomness).nearest(own, grid).ravel())
        return np.concatenate(found)

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> Array:
        parts = list[Array]()
        for body in self.law.bodies:
            corners = np.array(body.corners.rows, dtype=np.float64) * float(body.corners.unit)
            starts, scale = np.array(body.geometry.starts), float(body.scale)
            weights = (
                np.exp(-starts.sum(axis=1) / scale) if body.whole else np.array(list(map(float, body.geometry.volumes)))
            )
            chosen = generator.choice(len(weights), size=repetitions, p=weights / weights.sum())
            if body.whole:
                each = generator.geometric(-np.expm1(-1 / scale), size=(repetitions, body.size)) - 1 + starts[chosen]
            else:
                each = scale * generator.exponential(size=(repetitions, body.size))
            cones = np.array(body.cones.rows)
            parts.append(np.einsum("ni,nij->nj", each, corners[cones[chosen]]))
        return np.hstack(parts)


def _cone(body: Body, randomness: Randomness) -> int:
    """The place of a cone: by its volume; or of a lattice, by how likely its first point is against 0."""
    known = body.geometry
    if not body.whole:
        below = randomness.below(sum(known.volumes))
        return int(np.searchsorted(integers(accumulate(known.volumes)), below, side="right"))
    while True:
        place = randomness.below(len(known.starts))
        far = sum(known.starts[place])
        if bernoulli_exp(far * body.scale.denominator, body.scale.numerator, randomness):
            return place


DRAWN = (KNormL2Noise, KNormBlocksNoise, KNormHullsNoise)
