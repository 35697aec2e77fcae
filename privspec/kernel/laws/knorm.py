"""K-norm noise: one vector of density ~ e^(-|v| / scale) in the Euclidean norm, rounded together with the answers.

Answers that move by d let through |d| / scale (Hardt & Talwar 2010; noise/notes/knorm-l2.md), whatever is rounded
afterwards.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb, ctx

from privspec.kernel.changes import Anything, ByDistance, Change, Units
from privspec.kernel.core.numbers import end, sqrt_up
from privspec.kernel.core.reading import Refused, frozen
from privspec.kernel.laws.law import WORDS_OF, Choice, NoisyView, OfOneScale
from privspec.kernel.losses import Loss, Response
from privspec.kernel.strategies.dense import Scaling


@frozen
class KNorm(OfOneScale):
    """Whoever sees some answers is charged for all of them: the numbers of one vector are not independent."""

    family, shape = "mixed", "knorm-l2"
    words = WORDS_OF["knorm"]
    title = "K-norm noise"
    notes = ("laplace", "knorm-l2")
    joint = True

    def variances(self, answers: int, grid: Fraction) -> list[Fraction]:
        """The radius of k numbers is of law Gamma(k)."""
        return [(answers + 1) * self.scale**2] * answers

    def let_through(self, view: NoisyView, change: Units, scaling: list[Scaling] | None) -> Loss:
        epsilon = sqrt_up(view.strategy.quadratic_sensitivity(change, scaling), 100) / self.scale
        return Loss(factors=(Response(epsilon),)) if epsilon else Loss()


LAWS = (KNorm,)
NORMS = ("l1", "l2", "linf")
"""From the largest to the least."""
PRECISION = 256


@frozen
class NoisyPoint(Choice):
    """A report of one point of `size` numbers: density ~ e^(-|v| / scale) in a norm, rounded afterwards.

    `diameter_squared`: the largest distance of two points in that norm, squared; None where points may lie anywhere.
    Two points let through their distance in scales, by the triangle inequality (notes/real-points.md).
    """

    norm: str
    size: int
    scale: Fraction
    diameter_squared: Fraction | None
    notes = ("real-points",)

    def __post_init__(self) -> None:
        if self.norm not in NORMS or self.scale <= 0 or self.size < 1:
            raise Refused("has noise of no size, or in no norm that is known")

    def let_through(self, change: Change) -> Loss:
        match change:
            case ByDistance(other):
                square: Fraction | None = ratio_squared(self.norm, other, self.size)
            case Anything():
                square = self.diameter_squared
            case _:
                square = None
        if square is None:
            raise Refused("is a report of one point, and nothing is known of such a change of it")
        return Loss(factors=(Response(root_up(square) / self.scale),))


def ratio_squared(norm: str, other: str, size: int) -> Fraction:
    """The square of the least c for which |v|_norm <= c |v|_other for all v."""
    return Fraction(size ** max(0, NORMS.index(other) - NORMS.index(norm)))


def root_up(value: Fraction) -> Fraction:
    """At least the square root: itself where it is rational."""
    with ctx.workprec(PRECISION):
        top, bottom = arb(value.numerator).sqrt(), arb(value.denominator).sqrt()
        if top.is_exact() and bottom.is_exact():
            return end(top) / end(bottom)
        return end((top / bottom).upper())
