"""The rules of private voting, each calibrated to epsilon, and all of them in the order of comparison."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any, ClassVar

from privspec.families.selection.properties import (
    TREATS_ALIKE,
    TRUTHFUL,
    enumerated_ratio,
    few,
    inefficient,
    swayed,
    undominated,
)
from privspec.families.selection.task import (
    CLOSE,
    Calibrated,
    Property,
    Rule,
    VotingTask,
    growth_down,
    growth_simple,
    log_up,
    simplest,
    simplest_up,
)
from privspec.model.lotteries import (
    Exponential,
    LocalPick,
    Lottery,
    PermuteAndFlip,
    Points,
    Proportional,
    RandomisedLargest,
)

# --- Random dictatorship with dummy votes: the winner in proportion to points + kappa (notes/du


@dataclass(frozen=True, slots=True)
class DummyVotes:
    """The winner in proportion to (S_a + dummies), `dummies` > 0 points for each alternative."""

    dummies: Fraction
    family: ClassVar[str] = "dictator"
    notes: ClassVar[tuple[str, ...]] = ("dummy-votes",)

    @property
    def lottery(self) -> Proportional:
        """(S_a + k) / (sum S + m k)."""
        return Proportional(self.dummies)

    def ratio(self, task: VotingTask) -> Fraction:
        """(g h + k) / k when replacing; when adding, the larger of the two directions at the size given.

        h are the highest points of a ballot, g the ballots that differ. The most is gained by an alternative that
        had nothing; when adding, another one may lose more to the larger total, at T = 0.
        """
        k, gained = self.dummies, task.moved * task.points.highest
        if task.constant:
            return Fraction(1)
        if not task.adding or task.voters is None:
            return (gained + k) / k
        before = task.points.per_ballot * task.voters + len(task.alternatives) * k
        after = before + task.points.per_ballot * task.group
        return max((gained + k) / k * before / after, after / before)

    def exact(self, task: VotingTask) -> bool:
        """Always."""
        return True

    def epsilon(self, task: VotingTask) -> Fraction:
        """log(1 + g h / k) where the size is not fixed."""
        return log_up(self.ratio(task))

    def properties(self, task: VotingTask) -> tuple[Property, ...]:
        """Strategy-proof; never ex-post efficient."""
        return (TREATS_ALIKE, inefficient(task, self.lottery), TRUTHFUL)

    def to_json(self) -> dict[str, Any]:
        """The dummy votes of each alternative, in points."""
        return {"family": self.family, "dummy_votes": str(self.dummies)}


class Dictator:
    """As few dummy votes as epsilon allows, whatever the number of voters: g h / (e^epsilon - 1)."""

    family: ClassVar[str] = "dictator"
    name: ClassVar[str] = "dummy votes"
    note: ClassVar[str] = "dummy-votes"

    def calibrate(self, task: VotingTask, epsilon: Fraction) -> Calibrated | str:
        """Rounded up to a simple rational; when adding, for every size at once, since no size may be revealed."""
        if epsilon <= 0:
            return "with epsilon 0 no lottery may depend on the votes"
        reach = max(task.moved, 1) * max(task.points.highest, Fraction(1))
        return DummyVotes(simplest_up(reach / growth_down(epsilon)))


# --- Lotteries whose weights are powers of the points (notes/weighted-votes.md): what both of t

_BITS = 1 << 16
"""Bits up to which powers are worked out, here as in the checker of plans; beyond them bounds serve."""

_NEAR = 1e-9
"""Share of an epsilon that a calibration may leave unused."""
_EXPANSIONS, _STEPS = 24, 24


@dataclass(frozen=True, slots=True)
class Weighted(ABC):
    """Weights base^points, base > 1."""

    base: Fraction
    family: ClassVar[str]
    notes: ClassVar[tuple[str, ...]] = ("weighted-votes",)
    groups: ClassVar[bool] = False
    """Whether `single` knows the ratio for several ballots that are replaced."""

    @property
    @abstractmethod
    def lottery(self) -> Lottery:
        """The law that the weights lead to."""

    @abstractmethod
    def single(self, task: VotingTask) -> tuple[Fraction, bool]:
        """The ratio for first choices at the size that the task names, and whether it is exact."""

    def ratio(self, task: VotingTask) -> Fraction:
        """At most base^(2 g h) when replacing, base^(g h) when adding; less at the sizes for which that is known."""
        return self._found(task)[0]

    def exact(self, task: VotingTask) -> bool:
        """Where the size is secret, in closed forms, and in electorates small enough to go through."""
        return self._found(task)[1]

    def _found(self, task: VotingTask) -> tuple[Fraction, bool]:
        if task.constant:
            return Fraction(1), True
        bound = self.base ** reach(task)
        if task.voters is None:
            return bound, True
        if task.points.highest == task.points.per_ballot and (task.moved == 1 or (self.groups and not task.adding)):
            return self.single(task)
        if task.whole and few(task):
            ratio = enumerated_ratio(self.lottery, task)
            assert ratio is not None
            return ratio, True
        return bound, False

    def epsilon(self, task: VotingTask) -> Fraction:
        """2 g h log(base) or g h log(base) where the size is not fixed."""
        return log_up(self.ratio(task))

    def properties(self, task: VotingTask) -> tuple[Property, ...]:
        """Strategy-proof for two alternatives only; never ex-post efficient."""
        return (TREATS_ALIKE, inefficient(task, self.lottery), swayed(task, self.lottery))

    def to_json(self) -> dict[str, Any]:
        """What one point multiplies a weight by."""
        return {"family": self.family, "base": str(self.base)}


def reach(task: VotingTask) -> int:
    """By how many powers of the base the ratios of a task are bounded: twice the points moved when replacing.

    Every score moves by at most g h; when adding, all in one direction, so that the sum of the weights does not turn
    against the weight (note weighted-votes).
    """
    points = task.moved * task.points.highest
    assert points.denominator == 1
    return int(points) * (1 if task.adding else 2)


def base_of(task: VotingTask, epsilon: Fraction) -> Fraction | str:
    """The largest base that meets epsilon for every size, rounded down to a simple rational; or why there is none."""
    if epsilon <= 0:
        return "with epsilon 0 no lottery may depend on the votes"
    if not task.whole:
        return "ballots that leave out alternatives give halves of points, whose powers are not rational"
    return 1 + growth_simple(epsilon / max(reach(task), 1))


def largest_base(build: Callable[[Fraction], Weighted], task: VotingTask, epsilon: Fraction) -> Fraction | str:
    """The largest base that meets epsilon, to 10^-9 of it; or why there is none.

    Where the number of voters is public, the ratio at that number decides, which is smaller than the one that holds
    for every number: `base_of` is where the search starts.
    """
    least = base_of(task, epsilon)
    if isinstance(least, str) or task.voters is None or task.adding or task.constant:
        return least
    limit, wanted = 1 + growth_simple(epsilon), float(epsilon)

    def over(base: Fraction) -> tuple[bool, float]:
        ratio = build(base).ratio(task)
        return ratio > limit, float(log_up(ratio)) - wanted

    best, (beyond, short) = least, over(least)
    if beyond:
        return least
    low, left = math.log(least), short
    high, right = low, short
    for _ in range(_EXPANSIONS):
        if right > 0 or -right <= _NEAR * wanted:
            break
        low, left = high, right
        # a little beyond where the logarithm of the ratio would be if it grew as that of the base does
        high *= max(wanted / (wanted + right) * (1 + _NEAR), 1 + 2 * _NEAR)
        base = _rational(high)
        beyond, right = over(base)
        best = best if beyond else max(best, base)
    for _ in range(_STEPS):
        if left >= -_NEAR * wanted or right <= left:
            break
        middle = (low * right - high * left) / (right - left)
        base = _rational(middle)
        beyond, found = over(base)
        if beyond:
            high, right, left = middle, found, left / 2
        else:
            best, low, left, right = max(best, base), middle, found, right / 2
            if found >= -_NEAR * wanted:
                break
    return best


def _rational(logarithm: float) -> Fraction:
    """A simple rational just below e^logarithm."""
    growth = Fraction(math.expm1(logarithm))
    return 1 + simplest(growth * (1 - CLOSE), growth)


def power(base: Fraction, exponent: int) -> Fraction | None:
    """base^exponent; None where it would be long."""
    return base**exponent if exponent * base.numerator.bit_length() <= _BITS else None


# --- The exponential mechanism over alternatives, by their points (notes/weighted-votes.md)


@dataclass(frozen=True, slots=True)
class ExponentialVotes(Weighted):
    """The winner in proportion to base^points."""

    family: ClassVar[str] = "exponential"
    groups: ClassVar[bool] = True

    @property
    def lottery(self) -> Exponential:
        """base^S_a / sum."""
        return Exponential(self.base)

    def single(self, task: VotingTask) -> tuple[Fraction, bool]:
        """From a unanimous electorate: x (x^T + m - 1) / (x^(T-1) + x + m - 2); when adding the larger of two.

        Where g ballots are replaced, x^g in place of x, and T - g in place of T - 1.
        """
        assert task.voters is not None
        x, m = self.base, len(task.alternatives)
        y = power(x, task.voters)
        if y is None:
            return x ** (1 if task.adding else 2 * task.moved), False
        if task.adding:
            return max(x * (y + m - 1) / (y + x + m - 2), (x * y + m - 1) / (y + m - 1)), True
        gone = x**task.moved
        return gone * (y + m - 1) / (y / gone + gone + m - 2), True


class ExponentialRule:
    """The largest base: e^(epsilon / (2 g h)) when replacing, e^(epsilon / (g h)) when adding; more for few voters."""

    family: ClassVar[str] = "exponential"
    name: ClassVar[str] = "exponential mechanism"
    note: ClassVar[str] = "weighted-votes"

    def calibrate(self, task: VotingTask, epsilon: Fraction) -> Calibrated | str:
        """For the number of voters where it is public, else for every number at once."""
        base = largest_base(ExponentialVotes, task, epsilon)
        return base if isinstance(base, str) else ExponentialVotes(base)


# --- Permute-and-flip over alternatives, by their points (notes/weighted-votes.md)


@dataclass(frozen=True, slots=True)
class PermutedVotes(Weighted):
    """Alternatives in random order, each taken with probability base^(points - most points)."""

    family: ClassVar[str] = "permute_and_flip"

    @property
    def lottery(self) -> PermuteAndFlip:
        """The same as the largest of points with exponential noise."""
        return PermuteAndFlip(self.base)

    def single(self, task: VotingTask) -> tuple[Fraction, bool]:
        """When adding: x for T > 0, as for one that stays behind. When replacing: from a unanimous electorate.

        Replacing, T > 1: x^2 A(x / x^T) / A(1 / x^T), which tends to x^2 with T.
        """
        assert task.voters is not None
        x, m, voters = self.base, len(task.alternatives), task.voters
        if task.adding and voters:
            return x, True
        if voters < 2:
            chosen, *others = self.lottery.law([Fraction(1), *[Fraction(0)] * (m - 1)])
            return (max(m * chosen, 1 / (m * others[0])) if task.adding else chosen / others[0]), True
        ahead = power(x, voters)
        if m == 2 or ahead is None:
            return x**2, m == 2
        return x**2 * _behind(x / ahead, m - 2) / _behind(1 / ahead, m - 2), True


def _behind(chance: Fraction, others: int) -> Fraction:
    """A(y), the integral over t in [0, 1] of (1 - t) (1 - t y)^others: nobody who is before, at t, is taken."""
    return sum((comb(others, k) * (-chance) ** k / ((k + 1) * (k + 2)) for k in range(others + 1)), Fraction(0))


class PermuteAndFlipRule:
    """At one base never a smaller chance for the alternatives with most points than the exponential mechanism gives."""

    family: ClassVar[str] = "permute_and_flip"
    name: ClassVar[str] = "permute-and-flip"
    note: ClassVar[str] = "weighted-votes"

    def calibrate(self, task: VotingTask, epsilon: Fraction) -> Calibrated | str:
        """For the number of voters where it is public, else for every number at once."""
        base = largest_base(PermutedVotes, task, epsilon)
        return base if isinstance(base, str) else PermutedVotes(base)


# --- Randomised response of every ballot, then one of the reports at random (notes/local-votes.


@dataclass(frozen=True, slots=True)
class LocalReports:
    """An alternative drawn by the points of one's own ballot and reported `odds` > 1 times as likely as each other."""

    odds: Fraction
    family: ClassVar[str] = "local_dictator"
    notes: ClassVar[tuple[str, ...]] = ("local-votes",)

    @property
    def lottery(self) -> LocalPick:
        """(S_a / sum S (odds - 1) + 1) / (odds + m - 1)."""
        return LocalPick(self.odds)

    def of_report(self, points: Points) -> Fraction:
        """The largest ratio of one voter's report, any ballot against any other: all that the public sees."""
        return 1 + (self.odds - 1) * points.highest / points.per_ballot

    def epsilon_of_report(self, points: Points) -> Fraction:
        """Its logarithm, rounded up: what each voter is promised without trusting anybody."""
        return log_up(self.of_report(points))

    def ratio(self, task: VotingTask) -> Fraction:
        """Of the winner alone: 1 + g w / T when replacing, w + 1 the ratio of one report.

        When adding: 1 + g w / (T + g) for T > 0; without any other voters the uniform law against a single report.
        """
        if task.constant:
            return Fraction(1)
        m, more = len(task.alternatives), self.of_report(task.points) - 1
        alone = max(m * (1 + more) / (self.odds + m - 1), (self.odds + m - 1) / m)
        if not task.adding:
            return 1 + more * task.moved / (task.moved if task.voters is None else task.voters)
        if task.voters is None:
            return max(alone, 1 + more / 2) if task.group == 1 else 1 + more
        return alone if task.voters == 0 else 1 + more * task.group / (task.voters + task.group)

    def exact(self, task: VotingTask) -> bool:
        """Always."""
        return True

    def epsilon(self, task: VotingTask) -> Fraction:
        """Of the winner alone: log(1 + (odds - 1) / T) for first choices."""
        return log_up(self.ratio(task))

    def properties(self, task: VotingTask) -> tuple[Property, ...]:
        """Strategy-proof; never ex-post efficient."""
        return (TREATS_ALIKE, inefficient(task, self.lottery), TRUTHFUL)

    def to_json(self) -> dict[str, Any]:
        """How much more likely the truth is than each other alternative."""
        return {"family": self.family, "ratio": str(self.odds)}


class LocalDictator:
    """Every report meets epsilon by itself, against whoever sees it."""

    family: ClassVar[str] = "local_dictator"
    name: ClassVar[str] = "randomised response, then one report"
    note: ClassVar[str] = "local-votes"

    def calibrate(self, task: VotingTask, epsilon: Fraction) -> Calibrated | str:
        """Odds of e^epsilon for first choices, more for points that are spread; rounded down to a simple rational."""
        if epsilon <= 0:
            return "with epsilon 0 no report may depend on the vote"
        spread = task.points.per_ballot / task.points.highest if len(task.alternatives) > 1 else Fraction(1)
        return LocalReports(1 + growth_simple(epsilon / max(task.moved, 1)) * spread)


# --- Randomised response of the plurality winner (notes/randomised-winner.md)


@dataclass(frozen=True, slots=True)
class TurnedWinner:
    """The alternative with most points, the first declared among equals, `odds` > 1 times as likely as each other."""

    odds: Fraction
    family: ClassVar[str] = "randomised_winner"
    notes: ClassVar[tuple[str, ...]] = ("randomised-winner",)

    @property
    def lottery(self) -> RandomisedLargest:
        """The winner with probability odds / (odds + m - 1)."""
        return RandomisedLargest(self.odds)

    def ratio(self, task: VotingTask) -> Fraction:
        """The odds, for every relation, group and size: at each some ballot decides who has most points."""
        return Fraction(1) if task.constant else self.odds

    def exact(self, task: VotingTask) -> bool:
        """Always."""
        return True

    def epsilon(self, task: VotingTask) -> Fraction:
        """log(odds)."""
        return log_up(self.ratio(task))

    def properties(self, task: VotingTask) -> tuple[Property, ...]:
        """Strategy-proof for two alternatives only, as plurality is; never ex-post efficient."""
        return (TREATS_ALIKE, inefficient(task, self.lottery), swayed(task, self.lottery))

    def to_json(self) -> dict[str, Any]:
        """How much more likely the winner is than each other alternative."""
        return {"family": self.family, "ratio": str(self.odds)}


class RandomisedWinner:
    """One draw from a function of the votes: whatever changes in these, the odds are e^epsilon."""

    family: ClassVar[str] = "randomised_winner"
    name: ClassVar[str] = "randomised response of the winner"
    note: ClassVar[str] = "randomised-winner"

    def calibrate(self, task: VotingTask, epsilon: Fraction) -> Calibrated | str:
        """Rounded down to a simple rational; the same for groups."""
        if epsilon <= 0:
            return "with epsilon 0 no lottery may depend on the votes"
        return TurnedWinner(1 + growth_simple(epsilon))


# --- Random dictatorship as it is, without dummy votes (notes/no-dummies.md): no epsilon at all


@dataclass(frozen=True, slots=True)
class Undisguised:
    """The winner in proportion to the points alone: Torra's Method 1, or Borda's lottery."""

    family: ClassVar[str] = "none"
    notes: ClassVar[tuple[str, ...]] = ("no-dummies",)

    @property
    def lottery(self) -> Proportional:
        """S_a / sum S."""
        return Proportional()

    def properties(self, task: VotingTask) -> tuple[Property, ...]:
        """Strategy-proof; with first choices ex-post efficient too, and nothing else is all three (Gibbard 1977)."""
        return (TREATS_ALIKE, undominated(task, self.lottery), TRUTHFUL)

    def to_json(self) -> dict[str, Any]:
        """No dummy votes."""
        return {"family": self.family, "dummy_votes": "0"}


class NoDummies:
    """Never admissible; it is listed to say why."""

    family: ClassVar[str] = "none"
    name: ClassVar[str] = "no dummy votes"
    note: ClassVar[str] = "no-dummies"
    draw: ClassVar[Undisguised] = Undisguised()

    def calibrate(self, task: VotingTask, epsilon: Fraction) -> Calibrated | str:
        """Always a refusal."""
        return (
            "an alternative that nobody else supports can win only if one voter chose it: the winner then reveals "
            "that vote, and no epsilon allows that"
        )


# --- All rules of private voting, in the order in which they are compared

RULES: tuple[Rule, ...] = (
    Dictator(),
    PermuteAndFlipRule(),
    ExponentialRule(),
    LocalDictator(),
    RandomisedWinner(),
    NoDummies(),
)
