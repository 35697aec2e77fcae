"""A set of values: the own value is in it with a chance, its other values are a uniform choice of all others.

Two values that one party may hold make a set at most chance / (1 - chance) (k - d) / d times as likely, k values told
apart and d in a set: that is the ratio of a set that holds the value to one that does not (notes/local-histograms.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import ctx

from privspec.kernel.changes import Anything, Change
from privspec.kernel.core.numbers import ball, end
from privspec.kernel.core.reading import Refused
from privspec.kernel.laws.law import Choice
from privspec.kernel.losses import Loss, Response

PRECISION = 256


@dataclass(frozen=True, slots=True)
class SetOfValues(Choice):
    """`subset` of so many `values`, the own one among them by a `chance`."""

    values: int
    subset: int
    chance: Fraction
    notes = ("local-histograms",)

    def __post_init__(self) -> None:
        if not 0 < self.subset < self.values or not Fraction(self.subset, self.values) < self.chance < 1:
            raise Refused("has sets that hold no value or all, or a chance that tells nothing")

    def let_through(self, change: Change) -> Loss:
        if not isinstance(change, Anything):
            raise Refused("is a report of one value, any of which may stand in place of another")
        ratio = self.chance / (1 - self.chance) * Fraction(self.values - self.subset, self.subset)
        with ctx.workprec(PRECISION):
            return Loss(factors=(Response(end(ball(ratio).log().upper())),))
