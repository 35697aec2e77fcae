"""A draw by scores: whole steps that every answer is behind the best one; exponential, or permute-and-flip.

The exponential mechanism draws in proportion to base^-score; permute-and-flip goes through the answers in random order
and takes each with that chance. Both are as private as `ratio_up` says, by what records can do to the scores
(McSherry & Talwar 2007; McKenna & Sheldon 2020; noise/notes/scores.md, sections 2 to 4).
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from flint import arb, ctx

from privspec.kernel.changes import Change, Records
from privspec.kernel.core.numbers import ZERO, ball, end
from privspec.kernel.core.reading import Refused, frozen
from privspec.kernel.divergences import Condition, Renyi
from privspec.kernel.laws.law import Choice
from privspec.kernel.losses import Factor, Loss, PrivacyLoss, Response, response

PRECISION = 256
LARGEST_LOG = 2000
"""Of a ratio that is worked out closely."""

FAMILIES = ("exponential", "permute_and_flip")
"""What a plan calls such draws."""


@frozen
class Target:
    """The share that the scores of a mechanism are about, and by how many records it aims beside it.

    Of n records the scores are the steps of the unit by which L - T or T - M is above 0, where L records are below an
    answer, M at or below it, and T = share n + offset, no less than 0 and no more than n.
    """

    share: Fraction
    offset: int

    def __post_init__(self) -> None:
        if self.share < 0:
            raise Refused("is no share of the records")

    def aim(self, records: int) -> Fraction:
        return min(max(self.share * records + self.offset, ZERO), Fraction(records))


@frozen
class Steps:
    """What one record changes: no score by more than `reach` steps, no two scores apart by more than `spread`.

    `unit`: steps in a record. `nearest`: so many steps at least is every answer but one behind, however the records
    lie, where each of them has a threshold that `reach` is about; None of counts, which have none (note, section 2).
    """

    unit: int
    spread: int
    reach: int
    nearest: int | None = None


def steps_of(records: int | None, target: Target | None, adding: bool) -> Steps:
    """The steps of one record that comes or goes, or is replaced by another one (note, section 2)."""
    if target is None:
        return Steps(1, 1, 1) if adding else Steps(1, 2, 2)
    share, unit = target.share, target.share.denominator
    if share in (0, 1) and not target.offset:
        # one side alone is ever away from its aim, and one record moves all of that side one way
        return Steps(1, 1, 1, 0)
    reach = unit if target.offset or not adding else max(share.numerator, unit - share.numerator)
    if adding or records is None:
        return Steps(unit, 2 * reach, reach, 0)
    above = target.aim(records) * unit % unit
    return Steps(unit, 2 * reach, reach, int(min(above, unit - above)))


def ratio_up(family: str, base: Fraction, size: int, steps: Steps, group: int) -> Fraction:
    """No chance of an answer is more than so many times that beside up to `group` records that changed.

    Note, section 3: base^spread at most; with x = base^reach, y = base^-nearest and l = k - 2 of k answers, of ranks
    x (1 + l y) / (1 + l y / x) for the exponential mechanism, and for permute-and-flip x J(y / x) / J(y), J(c) the
    integral over t in [0, 1] of (1 - t) (1 - c t)^l.
    """
    if base == 1 or not group:
        return Fraction(1)
    moved, near = steps.reach * group, steps.nearest
    with ctx.workprec(PRECISION):
        most = end((ball(base) ** (steps.spread * group)).upper())
        if near is None or (fall := float(ball(base).log()) * (moved + near)) > LARGEST_LOG:
            return most
    with ctx.workprec(PRECISION + ceil(3 * fall)):  # the integrals lose the digits of (y / x)^2
        x, y, others = ball(base) ** moved, ball(base) ** -near, size - 2
        if family == "exponential":
            found = x * (1 + others * y) / (1 + others * y / x)
        else:
            found = x * _passed(y / x, others) / _passed(y, others)
        return max(min(end(found.upper()), most), Fraction(1))


def _passed(chance: arb, others: int) -> arb:
    """The integral over t in [0, 1] of (1 - t) (1 - chance t)^others."""
    left = 1 - chance
    one, more = ((1 - left ** (n + 1)) / (chance * (n + 1)) for n in (others, others + 1))
    return (more - left * one) / chance


def epsilon_up(ratio: Fraction) -> Fraction:
    """At least its logarithm."""
    with ctx.workprec(PRECISION):
        return max(end(ball(ratio).log().upper()), ZERO)


@frozen
class BoundedRange(Factor):
    """A law of an epsilon, any two log ratios of which are at most a `spread` apart; or draws one after another.

    The squares of the spreads of such draws add up to that of `spread`: as much is let through in Rényi divergence.
    """

    most: Fraction
    spread: Fraction

    @property
    def epsilon(self) -> Fraction:
        return self.most

    def composed(self) -> PrivacyLoss:
        return response(self.most)

    def satisfies(self, condition: Condition) -> bool | None:
        return True if isinstance(condition, Renyi) and condition.within_spread(self.spread) else None


@frozen
class ByScores(Choice):
    """One of `size` answers, for each of some groups of the `records` where `grouped`.

    `target`: what ranks are about; None where scores are counts. `handicapped`: answers are behind whatever the data
    are, so that the best one need not be at 0, and only what is proved of the spread holds.
    """

    family: str
    base: Fraction
    size: int
    target: Target | None
    records: int | None
    grouped: bool
    handicapped: bool
    notes = ("scores",)

    def __post_init__(self) -> None:
        if self.family not in FAMILIES or self.base < 1 or self.size < 2:
            raise Refused("draws by no law that is known")

    def let_through(self, change: Change) -> Loss:
        if not isinstance(change, Records):
            raise Refused("is drawn by records of a table, and nothing is known of such a change of them")
        epsilon, spread = epsilon_up(self.ratio(change)), self.spread(change)
        factor: Factor = Response(epsilon) if spread is None else BoundedRange(epsilon, spread)
        return Loss(factors=(factor,))

    def ratio(self, change: Records) -> Fraction:
        """At least the largest ratio of two chances of an answer.

        No count moves by more than the records that change in one answer, and it is by counts that answers differ.
        A record is of one group; one that is replaced comes to a group, and leaves another, or stays in its own.
        """
        if not self.grouped:
            return self._ratio(change.adding, change.each if self.target is None else change.count)
        one = self._ratio(True, 1)
        return Fraction((one if change.adding else max(one * one, self._ratio(False, 1))) ** change.count)

    def _ratio(self, adding: bool, group: int) -> Fraction:
        """Of one value, beside so many records that come or go, or are replaced."""
        steps = steps_of(self.records, self.target, adding)
        if self.handicapped:
            return Fraction(self.base ** (steps.spread * group))
        return ratio_up(self.family, self.base, self.size, steps, group)

    def spread(self, change: Records) -> Fraction | None:
        """At least how far apart two log ratios of two neighbours are, where that is less than twice the largest.

        Of the exponential mechanism log ratios are apart as scores are moved apart (note, section 4).
        """
        if self.family != "exponential":
            return None
        spread = steps_of(self.records, self.target, change.adding).spread
        if self.grouped and not change.adding:
            spread = max(spread, 2 * steps_of(self.records, self.target, True).spread)
        of_counts = self.target is None and not self.grouped
        return epsilon_up(self.base ** (spread * (change.each if of_counts else change.count)))
