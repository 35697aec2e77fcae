"""Laplace noise: independent discrete Laplace noise on a lattice, one exact scale a row; and shares of it."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from privspec.core.matrices import ExactVector, Integers, integers
from privspec.core.records import dataclass
from privspec.kernel.laws import laplace as laws
from privspec.kernel.laws.law import Law
from privspec.noise.inverse import laplace_steps
from privspec.noise.law import Array, Indices, NoiseLaw, ScaledNoise, Shares, on_lattice
from privspec.noise.samplers import Randomness, polya

if TYPE_CHECKING:
    from privspec.kernel.core.linear import Release


@dataclass(frozen=True, slots=True)
class LaplaceNoise(ScaledNoise):
    """The answers rounded to the lattice, plus discrete Laplace noise of `scales` (one, or one for each answer).

    On the lattice that answers move on this is the geometric mechanism. Notes: laplace, discrete-laplace.
    """

    known: ClassVar[type[laws.Scaled]] = laws.Laplace

    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        noise = laplace_steps([scale / grid for scale in self.scales], len(answers), randomness)
        return np.asarray(on_lattice(answers, grid) + noise)

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> Array:
        scales = np.array([float(s) for s in self._each(size)])
        return np.asarray(generator.laplace(size=(repetitions, size)) * scales)

    def approximate_sums(self, senders: Array, repetitions: int, generator: np.random.Generator) -> Array:
        rising, falling = generator.gamma(senders, size=(2, repetitions, len(senders)))
        return np.asarray((rising - falling) * np.array([float(s) for s in self._each(len(senders))]))


@dataclass(frozen=True, slots=True)
class LaplaceShares(Shares):
    """Each party adds the difference of two negative binomial numbers: those of `honest` sum to discrete Laplace noise.

    The scale of that noise is one of `scales` for each answer.
    """

    scales: tuple[Fraction, ...]
    known: ClassVar[type[Law]] = laws.LaplaceShares
    separate: ClassVar[bool] = True

    @classmethod
    def of(cls, release: Release) -> LaplaceShares:
        law = release.noise
        assert isinstance(law, laws.LaplaceShares)
        return cls(release.parties, law.honest, law.scales)

    def part(self, rows: Indices) -> NoiseLaw:
        return LaplaceShares(self.parties, self.honest, tuple(self.scales[r] for r in rows))

    def share(self, rows: int, grid: Fraction, randomness: Randomness) -> Integers:
        own = Fraction(1, self.honest)
        each = ((own, scale / grid, randomness) for scale in self.scales)
        return integers(polya(*one) - polya(*one) for one in each)

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> Array:
        own, scales = self.parties / self.honest, np.array([float(s) for s in self.scales])
        rising, falling = generator.gamma(own, size=(2, repetitions, size)) * scales
        return np.asarray(rising - falling)


DRAWN = (LaplaceNoise, LaplaceShares)
