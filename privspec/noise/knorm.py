"""K-norm noise of the l2 ball, one vector for all strategy rows; of blocks or polytopes, one for the rows of each."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from math import comb
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from privspec.core.matrices import ExactVector, Integers, integers
from privspec.core.records import dataclass
from privspec.kernel.laws import knorm as laws
from privspec.kernel.laws.law import Law
from privspec.noise.law import Array, NoiseLaw, on_points
from privspec.noise.samplers import Randomness, bernoulli_exp, polya
from privspec.noise.vectors import (
    ConeVectors,
    EuclideanVectors,
    ManhattanVectors,
    ProductVectors,
    approximate,
    approximate_product,
)

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
        return _drawn(list(known.volumes), randomness)
    while True:
        place = randomness.below(len(known.starts))
        far = sum(known.starts[place])
        if bernoulli_exp(far * body.scale.denominator, body.scale.numerator, randomness):
            return place


class KNormSwapsNoise(KNormNoise):
    """Counts above 0, and what records go from where to where. Note knorm-swaps."""

    known: ClassVar[type[Law]] = laws.KNormSwaps

    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        law, size = self.law, self.law.cells
        own, last = (
            ExactVector(answers.numerators[at], answers.denominator) for at in (slice(size - 1), slice(-1, None))
        )
        turn = integers(v for row in laws.contrasts(size) for v in row).reshape(size - 1, size)
        if law.whole:
            found = on_points(own, grid) + turn @ _swapped(size, law.scale, randomness) * grid.denominator
        else:
            above = _drawn([comb(size, p) * comb(size - 2, p - 1) for p in range(1, size)], randomness) + 1
            sides = _chosen(size, above, randomness)
            path, corners = _chosen(size - 2, above - 1, randomness), list[Integers]()
            ends = [[i for i in range(size) if (i in sides) == side] for side in (True, False)]
            for step in range(size - 1):
                first = sum(i < step for i in path)
                corners.append(turn[:, ends[0][first]] - turn[:, ends[1][step - first]])
            found = ConeVectors(np.array(corners), law.scale, randomness).nearest(own, grid).ravel()
        quiet = ManhattanVectors(1, 1, law.quiet, randomness).nearest(last, grid).ravel()
        return np.concatenate([found, quiet])

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> Array:
        """Of real numbers, as wide as noise in whole steps where that is drawn."""
        ways = np.array([float(comb(size, p) * comb(size - 2, p - 1)) for p in range(1, size)])
        above = generator.choice(size - 1, size=(repetitions, 1), p=ways / ways.sum()) + 1
        sides = generator.random((repetitions, size)).argsort(axis=1) < above
        each = generator.exponential(size=(repetitions, size))
        up, down = (each * own / (each * own).sum(axis=1, keepdims=True) for own in (sides, ~sides))
        noise = generator.gamma(size - 1, size=(repetitions, 1)) * (up - down)
        wide = float(
            laws.expected_square(size, self.law.scale, self.law.whole) / laws.expected_square(size, Fraction(1), False)
        )
        quiet = float(self.law.quiet) * generator.laplace(size=(repetitions, 1))
        return np.hstack([np.sqrt(wide) * noise @ np.array(laws.contrasts(size)).T, quiet])


def _swapped(size: int, scale: Fraction, randomness: Randomness) -> Integers:
    """Counts that add up to 0, of chances ~ e^(-half the sum of their sizes, in scales).

    How many records swap is j and a negative binomial number, j of the law of two binomial numbers that are equal; then
    all such counts are alike.
    """
    while True:
        pair = [sum(_odds(scale, randomness) for _ in range(size - 1)) for _ in (0, 1)]
        if pair[0] == pair[1]:
            break
    n, found = pair[0] + polya(Fraction(size - 1), scale, randomness), np.zeros(size, dtype=object)
    if not n:
        return found
    ways = [comb(size, p) * comb(n - 1, p - 1) * comb(n + size - p - 1, n) for p in range(1, size)]
    above = _drawn(ways, randomness) + 1
    sides = np.zeros(size, dtype=bool)
    sides[_chosen(size, above, randomness)] = True
    found[sides] = _parts(n, above, randomness)
    found[~sides] = 1 - _parts(n + size - above, size - above, randomness)
    return found


def _odds(scale: Fraction, randomness: Randomness) -> bool:
    """A coin of odds e^(-1 / (2 scale))."""
    while randomness.sign() > 0:
        if bernoulli_exp(scale.denominator, 2 * scale.numerator, randomness):
            return True
    return False


def _drawn(weights: list[int], randomness: Randomness) -> int:
    """A place, in proportion to its weight."""
    below = randomness.below(sum(weights))
    return next(i for i, total in enumerate(accumulate(weights)) if below < total)


def _chosen(size: int, count: int, randomness: Randomness) -> list[int]:
    """So many of the places, all choices alike."""
    found = list[int]()
    for i in range(size):
        if randomness.below(size - i) < count - len(found):
            found.append(i)
    return found


def _parts(total: int, count: int, randomness: Randomness) -> Integers:
    """Whole numbers from 1 on that add up to a total, all alike."""
    cuts = set[int]()
    while len(cuts) < count - 1:
        cuts.add(1 + randomness.below(total - 1))
    return np.diff(integers([0, *sorted(cuts), total]))


DRAWN = (KNormL2Noise, KNormBlocksNoise, KNormHullsNoise, KNormSwapsNoise)
