"""Laplace noise on a lattice, of a scale for each answer; alone, or in shares of many parties.

The chance of a point falls by e^(-step / scale) from each point of the lattice to the next, so that answers that move
by d let through the sum of |d| in scales. An answer that lies between points is rounded onto one of them first, and
moves by a step more at most (noise/notes/laplace.md, discrete-laplace.md, shares.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from privspec.kernel.changes import Change, Units
from privspec.kernel.core.reading import Refused
from privspec.kernel.laws.law import Law, NoisyView, Strategy
from privspec.kernel.losses import Factor, LaplaceFactor, Loss, Response
from privspec.kernel.strategies.dense import Scaling


@dataclass(frozen=True, slots=True)
class Laplace(Law):
    """Noise of a scale for each answer; `whole`: answers have to be points of the lattice (geometric noise)."""

    scales: tuple[Fraction, ...]
    whole: bool = False
    notes = ("laplace", "discrete-laplace")

    def __post_init__(self) -> None:
        if min(self.scales) <= 0:
            raise Refused("has noise of no size")

    @property
    def answers(self) -> int:
        return len(self.scales)

    def let_through(self, view: NoisyView, change: Units, scaling: list[Scaling] | None) -> Loss:
        rounding, scales = view.rounding(), [self.scales[row] for row in view.rows]
        if self.whole and any(rounding):
            raise Refused("is not geometric noise: answers lie between the points of its lattice")
        cost = view.seen.absolute_sensitivity(scales, rounding, change, view.lattice.shared)
        if not cost:
            return Loss()
        factor: Factor = LaplaceFactor(cost, view.lattice.grid / scales[0]) if len(scales) == 1 else Response(cost)
        return Loss(factors=(factor,))


@dataclass(frozen=True, slots=True)
class WholeLaplace(Law):
    """Noise of one scale on all answers of a strategy with structure, which are whole numbers, and so is the noise."""

    scale: Fraction
    notes = ("laplace", "discrete-laplace")

    def __post_init__(self) -> None:
        if self.scale <= 0:
            raise Refused("has noise of no size")

    def of_structure(self, strategy: Strategy, change: Change, seen: frozenset[str]) -> Loss:
        epsilon = strategy.absolute_sensitivity(change, seen) / self.scale
        return Loss(factors=(Response(epsilon),)) if epsilon else Loss()


@dataclass(frozen=True, slots=True)
class LaplaceShares(Law):
    """Shares of which those of `unknown` parties add up to Laplace noise of a scale on every answer."""

    scales: tuple[Fraction, ...]
    unknown: int
    notes = ("laplace", "shares")

    @property
    def answers(self) -> int:
        return len(self.scales)

    @property
    def honest(self) -> int:
        return self.unknown

    def let_through(self, view: NoisyView, change: Units, scaling: list[Scaling] | None) -> Loss:
        if any(view.rounding()):
            raise Refused("does not have all messages on the lattice of the shares")
        return Laplace(self.scales).let_through(view, change, scaling)
