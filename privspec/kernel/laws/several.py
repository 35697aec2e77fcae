"""Several answers of one table: quantiles all at once, the most frequent ones one after another.

Answers of several quantiles are drawn together, in proportion to base^-(the largest of their scores): one record moves
the largest score by no more than the largest reach, whatever their number. The most frequent ones are peeled: each is
drawn among those that are left, and what the draws let through adds up (noise/notes/scores.md, sections 8 and 9).
Quantiles are also found at ranks that are off by one noise, with answers of few records filled up (section 10).
"""

from __future__ import annotations

from fractions import Fraction

from flint import ctx

from privspec.kernel.changes import Change, Records
from privspec.kernel.core.numbers import ZERO, ball, end, sqrt_up
from privspec.kernel.core.reading import Refused, frozen
from privspec.kernel.divergences import PURE_PARTS
from privspec.kernel.laws.exponential import (
    FAMILIES,
    PRECISION,
    BoundedRange,
    Target,
    epsilon_up,
    ratio_up,
    steps_of,
)
from privspec.kernel.laws.law import Choice
from privspec.kernel.losses import Factor, Loss, Response


@frozen
class ByLargest(Choice):
    """An answer for each target, in proportion to base^-(the largest of `weights` times the scores)."""

    base: Fraction
    targets: tuple[Target, ...]
    weights: tuple[int, ...]
    records: int | None
    notes = ("scores",)

    def __post_init__(self) -> None:
        if self.base < 1 or len(self.weights) != len(self.targets) or min(self.weights, default=0) < 1:
            raise Refused("draws by no law that is known")

    def let_through(self, change: Change) -> Loss:
        """All log ratios lie within twice the reach: the largest score moves up or down by no more than that."""
        if not isinstance(change, Records):
            raise Refused("is drawn by records of a table, and nothing is known of such a change of them")
        steps = [steps_of(self.records, target, change.adding).reach for target in self.targets]
        reach = max(weight * own for weight, own in zip(self.weights, steps, strict=True))
        with ctx.workprec(PRECISION):
            epsilon = max(end((ball(self.base).log() * (2 * reach * change.count)).upper()), ZERO)
        return Loss(factors=(BoundedRange(epsilon, epsilon),))


@frozen
class ByRankNoise(Choice):
    """The answers at so many `values` ranks of `records` in public: one noise, a step of which has the chance 1 / base.

    Rows of thresholds are jittered, by steps of the chance 1 / jitter; answers count as `filled` records at least.
    """

    base: Fraction
    jitter: Fraction
    filled: int
    values: int
    records: int
    notes = ("scores",)

    def __post_init__(self) -> None:
        if min(self.base, self.jitter) < 1 or min(self.filled, self.values, self.records) < 1:
            raise Refused("draws by no law that is known")
        if (self.values > 1) != (self.jitter > 1):
            raise Refused("has jitters of one quantile, or none of several")

    def let_through(self, change: Change) -> Loss:
        """A record that is replaced moves all thresholds one way, by a record or none, and leaves one answer."""
        if not isinstance(change, Records) or change.adding:
            raise Refused("is drawn at ranks of a public number of records, and nothing is known of such a change")
        with ctx.workprec(PRECISION):
            filled = (1 + 1 / ball(Fraction(self.filled))).log() * self.values
            each = ball(self.base).log() + ball(self.jitter).log() * (self.values // 2) + filled
            return Loss(factors=(Response(max(end((each * change.count).upper()), ZERO)),))


@frozen
class ByPeeling(Choice):
    """So `many` of `size` answers by counts, one after another, each drawn among those that are left."""

    family: str
    base: Fraction
    size: int
    many: int
    notes = ("scores",)

    def __post_init__(self) -> None:
        if self.family not in FAMILIES or self.base < 1 or not 1 <= self.many < self.size:
            raise Refused("draws by no law that is known")

    def let_through(self, change: Change) -> Loss:
        """What each draw lets through, given those before it, adds up: ranges of log ratios by their squares."""
        if not isinstance(change, Records):
            raise Refused("is drawn by records of a table, and nothing is known of such a change of them")
        steps = steps_of(None, None, change.adding)
        sizes = range(self.size, self.size - self.many, -1)
        each = [epsilon_up(ratio_up(self.family, self.base, size, steps, change.each)) for size in sizes]
        if self.family == "exponential":
            spread = epsilon_up(self.base ** (steps.spread * change.each))
            together = BoundedRange(sum(each, ZERO), sqrt_up(self.many * spread * spread, 100))
            return Loss(factors=(together,))
        if self.many > PURE_PARTS:
            return Loss(factors=(Response(sum(each, ZERO)),))
        return Loss(factors=tuple[Factor, ...](map(Response, each)))
