"""K-norm noise: vectors of density ~ e^-|v| in a norm, rounded together with the answers.

Answers that move by d let through |d| (Hardt & Talwar 2010), whatever is rounded afterwards. The norm is the Euclidean
length in scales (noise/notes/knorm-l2.md), or one of blocks (noise/notes/knorm-blocks.md): the sum over blocks of the
largest of some sums of sizes. What moves in a box, a cross-polytope, a product of these, or in one of several such
shapes, is as long as any other move of its shape in a norm of that kind.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import count

from flint import arb, ctx

from privspec.kernel.changes import Anything, ByDistance, Change, Units
from privspec.kernel.core.numbers import ZERO, end, sqrt_up
from privspec.kernel.core.reading import Refused, frozen
from privspec.kernel.laws.law import WORDS_OF, Choice, Law, NoisyView, OfOneScale
from privspec.kernel.losses import Loss, Response
from privspec.kernel.strategies.dense import Answers, Scaling


@frozen
class KNorm(OfOneScale):
    """Whoever sees some answers is charged for all of them: the numbers of one vector are not independent."""

    family, FORM = "mixed", "knorm-l2"
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


@frozen
class KNormBlocks(Law):
    """A vector for each block of answers, |v| the largest over its parts of the sum of |v_i| / scale_i in each.

    `blocks`: the scale of each answer, by block and part.
    """

    blocks: tuple[tuple[tuple[Fraction, ...], ...], ...]
    family = FORM = "knorm-blocks"
    words = WORDS_OF["knorm"]
    title = "K-norm noise of the shape that moves"
    notes = ("laplace", "knorm-blocks")
    joint = True

    def __post_init__(self) -> None:
        if not all(parts and all(parts) for parts in self.blocks) or min(self.sizes(ZERO), default=ZERO) <= 0:
            raise Refused("has a block or a part without answers, or noise of no size")

    def times(self, factor: Fraction) -> Law:
        return KNormBlocks(
            tuple(tuple(tuple(scale * factor for scale in part) for part in parts) for parts in self.blocks)
        )

    @property
    def answers(self) -> int:
        return len(self.sizes(ZERO))

    def sizes(self, grid: Fraction) -> tuple[Fraction, ...]:
        return tuple(scale for parts in self.blocks for part in parts for scale in part)

    def _each(self) -> list[tuple[Fraction, int, int]]:
        """Of each answer its scale, how many its block has, and how many its part."""
        return [(scale, sum(map(len, parts)), len(part)) for parts in self.blocks for part in parts for scale in part]

    def variances(self, answers: int, grid: Fraction) -> list[Fraction]:
        """A vector is Gamma(k + 1) times a uniform point of the unit ball, a product of cross-polytopes."""
        return [2 * scale**2 * (k + 1) * (k + 2) / ((n + 1) * (n + 2)) for scale, k, n in self._each()]

    def mean_sizes(self, answers: int, grid: Fraction) -> list[Fraction]:
        return [scale * (k + 1) / (n + 1) for scale, k, n in self._each()]

    def let_through(self, view: NoisyView, change: Units, scaling: list[Scaling] | None) -> Loss:
        """Whoever sees an answer is charged for all answers of its block."""
        rows, shown = count(), list[list[Answers]]()
        for parts in self.blocks:
            own = [{next(rows): scale for scale in part} for part in parts]
            shown += [own] if any(row in part for part in own for row in view.rows) else []
        epsilon = view.strategy.largest_of_parts(shown, change)
        return Loss(factors=(Response(epsilon),)) if epsilon else Loss()


LAWS = (KNorm, KNormBlocks)
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
