"""How a law of noise is drawn: one object for each, in the file that has the name of the law's own in the kernel.

All of them are executed as `z = B u + noise` with an exact matrix B; outputs are functions of z.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from importlib import import_module
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import InternalError
from privspec.core.matrices import DyadicMatrix, ExactVector, Integers, integers
from privspec.core.records import dataclass
from privspec.core.rounding import common
from privspec.kernel.laws.laplace import Scaled
from privspec.kernel.laws.law import Law
from privspec.noise.samplers import Randomness
from privspec.problem.linear_differences import Differences

if TYPE_CHECKING:
    from privspec.kernel.core.linear import Release
    from privspec.solvers import programs

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]


Points: TypeAlias = tuple[tuple[slice, Fraction, Fraction], ...]
"""Of each input its coordinates, what their values are whole multiples of, and what these are beyond."""


class Moves(Protocol):
    """What one unit changes: as the model states it and in doubles; `points`, where all values of all inputs lie."""

    @property
    def exact(self) -> Differences: ...

    @property
    def differences(self) -> programs.Differences: ...

    @property
    def points(self) -> Points | None: ...


class NoiseLaw(ABC):
    """A law of the noise on the strategy answers, which puts their sums on a lattice."""

    known: ClassVar[type[Law]]
    """What it is to the kernel."""
    separate: ClassVar[bool] = False
    """Whether rows of the noise differ and are independent, so that a view is charged for those it sees alone."""

    @classmethod
    @abstractmethod
    def of(cls, release: Release) -> NoiseLaw:
        """As the kernel read it in a mechanism."""

    @property
    def family(self) -> str:
        """The `mechanism.family` of plans."""
        return self.known.family

    @property
    def notes(self) -> tuple[str, ...]:
        """Stems of the proof notes that a guarantee rests on."""
        return *self.known.notes, "post-processing"

    @property
    def amount(self) -> str:
        """What a release of this noise achieves: "mu", "epsilon", or "delta" at an epsilon of its own."""
        return self.known.figures[-1]

    @property
    def size(self) -> Fraction | None:
        """The average size of the noise on one answer, where the law knows it exactly."""
        return None

    @property
    def beside(self) -> dict[str, str]:
        """Other figures that belong to the amount, as a plan states them."""
        return {}

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Its form under `executed.noise`."""

    def part(self, rows: Indices) -> NoiseLaw:
        """The law of some rows; the whole law where it has no parts, since part of it says no more than all of it."""
        return self

    @abstractmethod
    def row_variances(self, rows: int, grid: Fraction) -> Array:
        """The variance of the noise on each of so many answers, which is uncorrelated."""

    @abstractmethod
    def achieved(self, strategy: DyadicMatrix, moves: Moves, grid: Fraction) -> Fraction:
        """The amount that the release reaches, rounded up.

        Args: strategy (k, n); grid, the lattice of z.
        """

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
        raise InternalError(f"sums of {self.family} noise")


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

    def to_json(self) -> dict[str, Any]:
        return {"shape": self.known.shape, "scale": [str(b) for b in self.scales]}

    def part(self, rows: Indices) -> NoiseLaw:
        return type(self)(tuple(self.scales[r] for r in rows))

    def row_variances(self, rows: int, grid: Fraction) -> Array:
        """As the kernel knows them."""
        return np.array([float(v) for v in self.known(self._each(rows)).variances(rows, grid)])


@dataclass(frozen=True, slots=True)
class Shares(NoiseLaw):
    """Independent shares of `parties`, of which those of any `honest` protect: what the others know is left out.

    Notes: shares.
    """

    parties: int
    honest: int

    @property
    def _among(self) -> dict[str, int]:
        return {"parties": self.parties, "honest": self.honest}

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


def l2_sensitivity_up(strategy: DyadicMatrix, differences: programs.Differences) -> Fraction:
    """An upper bound, up to rounding the least one, of max ||B d||_2: in doubles, raised by more than their error."""
    integers = strategy.integers
    from privspec.solvers import programs  # who runs a plan needs no solver

    if isinstance(differences, programs.Pairs):
        # what is common to all cells (the number of records, which nothing hides) may be far larger than what is not
        integers = integers - integers[:, differences.coordinates[:1]]
    B = np.ldexp(integers.astype(np.float64), -strategy.exponent)
    margin = 1 + 1e-12 + 8 * (len(B) + 8) * float(np.finfo(float).eps)
    return Fraction(sqrt(programs.largest_norm(B, differences)) * margin)


def lattice_of(strategy: DyadicMatrix, points: Points | None, *, moves: bool = False) -> Fraction | None:
    """What all answers are whole multiples of, or all that neighbours move them by; None where they lie anywhere."""
    if points is None:
        return None
    parts = ((at, {step} if moves or not low else {step, low}) for at, step, low in points)
    return strategy.unit * common(
        _divisor(strategy.integers[:, at]) * abs(point) for at, values in parts for point in values
    )


def _divisor(integers: NDArray[Any]) -> int:
    """The greatest common divisor."""
    return int(np.gcd.reduce(np.abs(integers), axis=None, initial=0))


def on_lattice(answers: ExactVector, grid: Fraction) -> Integers:
    """The nearest lattice points of the answers, in steps of `grid`; halves go up."""
    twice = 2 * answers.denominator * grid.numerator
    return np.asarray((2 * grid.denominator * answers.numerators + twice // 2) // twice)
