"""Laplace noise on a lattice, of a scale for each answer; alone, or in shares of many parties.

The chance of a point falls by e^(-step / scale) from each point of the lattice to the next, so that answers that move
by d let through the sum of |d| in scales. An answer that lies between points is rounded onto one of them first, and
moves by a step more at most (noise/notes/laplace.md, discrete-laplace.md, shares.md).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from flint import ctx

from privspec.kernel.changes import Change, Units
from privspec.kernel.core.numbers import BITS, ZERO, ball, nearest
from privspec.kernel.core.reading import Refused, frozen
from privspec.kernel.laws.law import WORDS_OF, Law, NoisyView, OfOneScale, Strategy
from privspec.kernel.losses import Factor, LaplaceFactor, Loss, Response
from privspec.kernel.strategies.dense import Scaling

STEEPEST = 2000
"""Steps of a lattice in a scale from which on its noise is none."""


@frozen
class Scaled(Law):
    """Noise of a scale for each answer: Laplace noise, alone or in shares, where a law does not say otherwise."""

    scales: tuple[Fraction, ...]
    family = "laplace"
    words = WORDS_OF["laplace"]
    in_steps = ("geometric",)

    def __post_init__(self) -> None:
        if min(self.scales, default=ZERO) <= 0:
            raise Refused("has noise of no size")

    @property
    def answers(self) -> int:
        return len(self.scales)

    def times(self, factor: Fraction) -> Law:
        return replace(self, scales=tuple(scale * factor for scale in self.scales))

    def sizes(self, grid: Fraction) -> tuple[Fraction, ...]:
        return self.scales

    @classmethod
    def variance(cls, scale: Fraction, grid: Fraction) -> Fraction:
        """That of one number; of shares, of all that no coalition knows. On no lattice where the step is 0."""
        return laplace_variance(scale, grid)

    def variances(self, answers: int, grid: Fraction) -> list[Fraction]:
        known = {scale: self.variance(scale, grid) for scale in set(self.scales)}
        return [known[scale] for scale in self.scales]


@frozen
class Laplace(Scaled):
    """Noise of a scale for each answer; `whole`: answers have to be points of the lattice (geometric noise)."""

    FORM = "laplace"
    GIVEN = ("whole",)

    whole: bool = False
    title = "Laplace noise"
    notes = ("laplace", "discrete-laplace")
    entry = "scale"

    def divided(self, honest: int, grid: Fraction) -> Law:
        return LaplaceShares(self.scales, honest)

    def let_through(self, view: NoisyView, change: Units, scaling: list[Scaling] | None) -> Loss:
        rounding, scales = view.rounding(), [self.scales[row] for row in view.rows]
        if self.whole and any(rounding):
            raise Refused("is not geometric noise: answers lie between the points of its lattice")
        cost = view.seen.absolute_sensitivity(scales, rounding, change, view.lattice.shared)
        if not cost:
            return Loss()
        factor: Factor = LaplaceFactor(cost, view.lattice.grid / scales[0]) if len(scales) == 1 else Response(cost)
        return Loss(factors=(factor,))


@frozen
class WholeLaplace(OfOneScale):
    """Noise of one scale on all answers of a strategy with structure, which are whole numbers, and so is the noise."""

    notes = ("laplace", "discrete-laplace")

    def of_structure(self, strategy: Strategy, change: Change, seen: frozenset[str]) -> Loss:
        epsilon = strategy.absolute_sensitivity(change, seen) / self.scale
        return Loss(factors=(Response(epsilon),)) if epsilon else Loss()


@frozen
class LaplaceShares(Scaled):
    """Shares of which those of `honest` parties add up to Laplace noise of a scale on every answer."""

    FORM = "laplace-shares"
    GIVEN = ("honest",)

    honest: int
    in_shares = True
    title = "discrete Laplace noise in shares"
    notes = ("laplace", "shares")

    def let_through(self, view: NoisyView, change: Units, scaling: list[Scaling] | None) -> Loss:
        if any(view.rounding()):
            raise Refused("does not have all messages on the lattice of the shares")
        return Laplace(self.scales).let_through(view, change, scaling)


LAWS = (Laplace, LaplaceShares)


def laplace_variance(scale: Fraction, grid: Fraction) -> Fraction:
    """Variance of the discrete Laplace law with weights e^(-|z| / scale) on the multiples of a grid, to 128 bits.

    grid^2 / (2 sinh(grid / 2 scale)^2), and 2 scale^2 on no lattice, of step 0; 0 for a scale so far below the grid
    that no double is as small as the variance.
    """
    ratio = grid / (2 * scale)
    if not ratio:
        return 2 * scale**2
    if ratio > STEEPEST:
        return ZERO
    bits = max(0, (ratio.denominator.bit_length() - ratio.numerator.bit_length()))
    with ctx.workprec(4 * BITS + 2 * bits):
        return nearest(ball(grid) ** 2 / (2 * ball(ratio).sinh() ** 2))


def laplace_size(scale: Fraction) -> Fraction:
    """The mean absolute value of the same law on whole numbers, 1 / sinh(1 / scale), to 128 bits."""
    if scale * STEEPEST < 1:
        return ZERO
    with ctx.workprec(4 * BITS):
        return nearest(1 / ball(1 / scale).sinh())
