"""How a law of noise is drawn: one object for each, in the file that has the name of the law's own in the kernel.

All of them are executed as `z = B u + noise` with an exact matrix B; outputs are functions of z.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import InternalError
from privspec.core.matrices import ExactVector, Integers, integers
from privspec.core.records import dataclass
from privspec.kernel.laws.laplace import Scaled
from privspec.kernel.laws.law import Law
from privspec.noise.samplers import Randomness

if TYPE_CHECKING:
    from privspec.kernel.core.linear import Release

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]


class NoiseLaw(ABC):
    """A law of the noise on the strategy answers, which puts their sums on a lattice."""

    known: ClassVar[type[Law]]
    """What it is to the kernel."""
    separate: ClassVar[bool] = False
    """Whether rows of the noise differ and are independent."""

    @classmethod
    @abstractmethod
    def of(cls, release: Release) -> NoiseLaw:
        """As the kernel read it in a mechanism."""

    def part(self, rows: Indices) -> NoiseLaw:
        """The law of some rows; the whole law where it has no parts, since part of it says no more than all of it."""
        return self

    @abstractmethod
    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        """Noisy answers in steps of `grid`, drawn exactly."""

    @abstractmethod
    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> Array:
        """Floating-point noise (repetitions, size): simulation only, never a release."""

    def approximate_sums(self, senders: Array, repetitions: int, generator: np.random.Generator) -> Array:
        """The same of sums of the noise of so many `senders` (k,) each: (repetitions, k).

        Raises: InternalError for laws that no class of parties draws.
        """
        raise InternalError(f"sums of {self.known.title}")


@dataclass(frozen=True, slots=True)
class ScaledNoise(NoiseLaw):
    """Independent noise of `scales` (one, or one for each answer), as a plan states it where it enters."""

    scales: tuple[Fraction, ...]
    known: ClassVar[type[Scaled]]
    separate: ClassVar[bool] = True

    @classmethod
    def of(cls, release: Release) -> ScaledNoise:
        law = release.noise
        assert isinstance(law, cls.known)
        return cls(law.scales)

    def _each(self, rows: int) -> tuple[Fraction, ...]:
        return self.scales * rows if len(self.scales) == 1 else self.scales

    def part(self, rows: Indices) -> NoiseLaw:
        return type(self)(tuple(self.scales[r] for r in rows))


@dataclass(frozen=True, slots=True)
class Shares(NoiseLaw):
    """Independent shares of `parties`, of which those of any `honest` protect: what the others know is left out.

    Notes: shares.
    """

    parties: int
    honest: int

    def share(self, rows: int, grid: Fraction, randomness: Randomness) -> Integers:
        """What one party adds to each of so many answers, in steps of `grid`."""
        raise NotImplementedError

    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        """The sum of what all parties send; every answer is a point of the lattice."""
        steps = on_points(answers, grid)
        for _ in range(self.parties):
            steps = steps + self.share(len(steps), grid, randomness)
        return steps


def on_points(answers: ExactVector, grid: Fraction) -> Integers:
    """Answers in steps of a lattice that they are points of.

    Raises: InternalError for one that is not.
    """
    steps = [Fraction(n * grid.denominator, answers.denominator * grid.numerator) for n in answers.numerators]
    if any(step.denominator > 1 for step in steps):
        raise InternalError("an answer of a secure sum that is no point of its lattice")
    return integers(step.numerator for step in steps)


def drawn(release: Release) -> NoiseLaw:
    """How the noise of a mechanism is drawn: by the object for its law in the module of the law's name."""
    return sampler_of(type(release.noise)).of(release)


def sampler_of(law: type[Law]) -> type[NoiseLaw]:
    """What draws the noise of a law."""
    home = import_module(f"privspec.noise.{law.__module__.rpartition('.')[2]}")
    sampler: type[NoiseLaw] = next(one for one in home.DRAWN if one.known is law)
    return sampler


def on_lattice(answers: ExactVector, grid: Fraction) -> Integers:
    """The nearest lattice points of the answers, in steps of `grid`; halves go up."""
    twice = 2 * answers.denominator * grid.numerator
    return np.asarray((2 * grid.denominator * answers.numerators + twice // 2) // twice)
