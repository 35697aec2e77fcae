"""What a law of noise must say of itself; one object for each, in a file of its own beside its notes.

All of them are executed as `z = B u + noise` with an exact matrix B; outputs are functions of z.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.matrices import DyadicMatrix, ExactVector, Integers, integers
from privspec.noise.samplers import Randomness, round_half_up
from privspec.problem.linear_differences import Differences

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]


class NoiseLaw(ABC):
    """A law of the noise on the strategy answers, which puts their sums on a lattice."""

    family: ClassVar[str]
    """The `mechanism.family` of plans."""
    notes: ClassVar[tuple[str, ...]]
    """Stems of the proof notes that a guarantee rests on; the second is about how the noise is drawn."""
    separate: ClassVar[bool] = False
    """Whether rows of the noise differ and are independent, so that a view is charged for those it sees alone."""
    amount: ClassVar[str] = "epsilon"
    """What a release of this noise achieves: "mu" or "epsilon"."""

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
    def achieved(self, strategy: DyadicMatrix, differences: Differences, grid: Fraction, counts: bool) -> Fraction:
        """The amount that the release reaches for these differences, rounded up.

        Args: strategy (k, n); grid, the lattice of z; counts, whether every input is a table's counts.
        """

    @abstractmethod
    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        """Noisy answers in steps of `grid`, drawn exactly."""

    @abstractmethod
    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> Array:
        """Floating-point noise (repetitions, size): simulation only, never a release."""


def on_lattice(answers: ExactVector, grid: Fraction) -> Integers:
    """The nearest lattice points of the answers, in steps of `grid`; halves go up."""
    return integers(
        round_half_up(n * grid.denominator, answers.denominator * grid.numerator) for n in answers.numerators
    )
