"""Normal noise of one deviation on every answer; and discrete normal shares of many parties.

Answers that move by d, in deviations, let through what N(0, 1) and N(mu, 1) do for mu = |d| (Dong, Roth & Su 2022); any
rounding afterwards is post-processing (noise/notes/gaussian-exact.md, rounded-gaussian.md). The sum of the shares that
no coalition knows counts as normal noise of a little less than their variance (noise/notes/shares.md).
"""

from __future__ import annotations

from fractions import Fraction

from privspec.kernel.changes import Change, Units
from privspec.kernel.core.reading import Refused, frozen
from privspec.kernel.laws.law import WORDS_OF, Law, NoisyView, OfOneScale, Strategy
from privspec.kernel.losses import Loss
from privspec.kernel.strategies.dense import Scaling

LEAST, SMOOTHING = 128, 64
"""Least variance of a discrete share, in squared steps, and what of the whole makes it that of a normal number."""
MOST_MU = 60
SPARED = Fraction(1, 2**1000)
"""Squared mu below which noise is charged for as much."""


class Normal(Law):
    """Noise that is normal, or next to normal: so are errors."""

    words = WORDS_OF["gaussian"]
    family = "gaussian"
    figures = exposed = ("mu",)
    normal = True


@frozen
class Gaussian(Normal, OfOneScale):
    """N(0, scale^2) on each answer."""

    FORM = "gaussian"
    title = "Gaussian noise"
    notes = ("gaussian-exact", "rounded-gaussian")
    spherical = True
    entry = "variance"

    def variances(self, answers: int, grid: Fraction) -> list[Fraction]:
        return [self.scale**2] * answers

    def divided(self, honest: int, grid: Fraction) -> Law:
        return GaussianShares((self.scale**2 + SMOOTHING * grid**2) / honest, honest)

    def let_through(self, view: NoisyView, change: Units, scaling: list[Scaling] | None) -> Loss:
        square = view.seen.quadratic_sensitivity(change, scaling)
        return Loss(mu_squared=square * view.slack / self.scale**2)

    def of_structure(self, strategy: Strategy, change: Change, seen: frozenset[str]) -> Loss:
        return Loss(mu_squared=strategy.quadratic_sensitivity(change, seen) / self.scale**2)


@frozen
class GaussianShares(Normal):
    """Discrete normal shares of a `variance` each; `honest` of them are known to nobody else."""

    FORM = "gaussian-shares"
    GIVEN = ("honest",)

    variance: Fraction
    honest: int
    in_shares = True
    title = "discrete Gaussian noise in shares"
    notes = ("gaussian-exact", "shares")

    def variances(self, answers: int, grid: Fraction) -> list[Fraction]:
        return [self.honest * self.variance] * answers

    def let_through(self, view: NoisyView, change: Units, scaling: list[Scaling] | None) -> Loss:
        if any(view.rounding()):
            raise Refused("does not have all messages on the lattice of the shares")
        return Loss(mu_squared=self.mu_squared(view.strategy.quadratic_sensitivity(change, scaling), view.lattice.grid))

    def mu_squared(self, square: Fraction, grid: Fraction) -> Fraction:
        """At least that of shares on a lattice, of answers that move by at most the root of `square` together.

        Their sum is within e^K of randomly rounded normal noise of variance honest variance - 64 steps^2, for a
        variance of 128 steps^2 or more, at K <= 2^-1818 times answers and shares; K costs less than 2^-100 of a mu up
        to 60.
        """
        if self.variance < LEAST * grid**2 or self.honest < 1:
            raise Refused("adds shares that are too small for the lattice")
        found = square / (self.honest * self.variance - SMOOTHING * grid**2)
        if found > MOST_MU**2:
            raise Refused("adds shares that hide next to nothing")
        return max(found, SPARED) * (1 + Fraction(1, 2**98)) if found else found


LAWS = (Gaussian, GaussianShares)
