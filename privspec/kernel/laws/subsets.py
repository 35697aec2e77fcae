"""A set of values: the own value is in it with a chance, its other values are a uniform choice of all others.

Two values that one party may hold make a set at most chance / (1 - chance) (k - d) / d times as likely, k values told
apart and d in a set: that is the ratio of a set that holds the value to one that does not (notes/local-histograms.md).
"""

from __future__ import annotations

from fractions import Fraction

from flint import ctx

from privspec.kernel.changes import Anything, Change
from privspec.kernel.core.numbers import ball, end
from privspec.kernel.core.reading import Refused, frozen
from privspec.kernel.laws.law import Choice
from privspec.kernel.losses import Loss, Response

PRECISION = 256


@frozen
class SetOfValues(Choice):
    """A set of `values`: kinds of reports, each with a size of sets and the chance that the own value is among them."""

    values: int
    kinds: tuple[tuple[int, Fraction], ...]
    notes = ("local-histograms",)

    def __post_init__(self) -> None:
        for size, chance in self.kinds:
            if not 0 < size < self.values or not Fraction(size, self.values) < chance < 1:
                raise Refused("has sets that hold no value or all, or a chance that tells nothing")

    def let_through(self, change: Change) -> Loss:
        if not isinstance(change, Anything):
            raise Refused("is a report of one value, any of which may stand in place of another")
        kinds = self.kinds if change.kind is None else (self.kinds[change.kind],)
        ratio = max(chance / (1 - chance) * Fraction(self.values - size, size) for size, chance in kinds)
        with ctx.workprec(PRECISION):
            return Loss(factors=(Response(end(ball(ratio).log().upper())),))
