"""The rules that draw a winner: their laws, and the largest ratio of probabilities that a change of ballots brings.

The laws are written for numbers of any kind: fractions where privacy is enumerated, balls (flint) where a loss is.
`S_a` are the points of alternative a, of one ballot at most h, at least 0, all ballots with the same sum s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from privspec.certify.finite.ratios import BITS, LogRatio
from privspec.certify.lotteries.meaning import FIRST, Ballots
from privspec.certify.reading import At, Malformed
from privspec.certify.relations import Unbounded

POWER_BITS = 2**16
"""Bits up to which powers of a base are worked out."""


@dataclass(frozen=True, slots=True)
class Change:
    """Up to `group` ballots are replaced, or added and removed; `voters` counts where it is known (replacing)."""

    adding: bool
    group: int
    voters: int

    @property
    def ballots(self) -> int:
        """How many ballots may change."""
        return self.group if self.adding else min(self.group, self.voters)


@dataclass(frozen=True, slots=True)
class Ratio:
    """`base` to the power of a whole number; None for the base: no finite ratio."""

    base: Fraction | None
    power: int = 1

    def within(self, epsilon: Fraction) -> bool:
        """Whether it is at most e^epsilon: base <= e^(epsilon / power), against a lower bound of 128 bits."""
        if self.base == 1 or not self.power:
            return epsilon >= 0
        if self.base is None or epsilon < 0:
            return False
        return self.base * (1 << BITS) <= LogRatio.of(epsilon / self.power).down

    @property
    def log(self) -> float:
        """Its logarithm, near enough for display and comparison to nine digits."""
        from flint import arb, ctx, fmpq

        if self.base is None:
            return float("inf")
        with ctx.workprec(128):
            return self.power * float(arb(fmpq(self.base.numerator, self.base.denominator)).log())

    @property
    def value(self) -> Fraction | None:
        """Itself."""
        return None if self.base is None else self.base**self.power


ONE = Ratio(Fraction(1))


class Rule(ABC):
    """A law of the winner."""

    __slots__ = ()

    family: ClassVar[str]
    key: ClassVar[str]
    """Where a plan holds its one number."""

    @property
    @abstractmethod
    def amount(self) -> Fraction:
        """Its one number."""

    @abstractmethod
    def law(self, scores: Sequence[Fraction], one: Any = Fraction(1)) -> tuple[Any, ...]:
        """Probabilities of the alternatives given their points; `one` is 1 in the numbers to compute with."""

    @abstractmethod
    def ratio(self, ballots: Ballots, change: Change) -> Ratio:
        """An upper bound, for every profile that the relation has, on the ratio of the probabilities of a winner.

        For dummy votes and reports it is attained (`exact`); for powers it is the supremum over all numbers of voters.

        Raises: Unbounded where the rule does not protect such a change.
        """

    def at(self, ballots: Ballots, change: Change) -> Ratio:
        """The same at the number of voters there is, where that is known to be smaller."""
        return self.ratio(ballots, change)

    def uniform_share(self, ballots: Ballots, voters: int) -> Fraction | None:
        """The share w where the law is (1 - w) S / sum S + w / m; None for other laws."""
        return None

    @abstractmethod
    def check(self, ballots: Ballots) -> None:
        """Refuse a number that is no parameter of the rule, and ballots that it cannot count.

        Raises: Malformed.
        """


def _free(ballots: Ballots, change: Change) -> bool:
    """Whether nothing that an observer sees can change: one alternative, or no ballot."""
    return ballots.size == 1 or not change.ballots


@dataclass(frozen=True, slots=True)
class Dummies(Rule):
    """(S_a + k) / (sum S + m k); uniform where that is 0/0."""

    dummies: Fraction

    family: ClassVar[str] = "dictator"
    key: ClassVar[str] = "dummy_votes"

    @property
    def amount(self) -> Fraction:
        """Dummy votes for each alternative, in points."""
        return self.dummies

    def check(self, ballots: Ballots) -> None:
        """Dummy votes do not take votes away."""
        if self.dummies < 0:
            raise Malformed("a negative number of dummy votes")

    def law(self, scores: Sequence[Fraction], one: Any = Fraction(1)) -> tuple[Any, ...]:
        """Shares."""
        whole = sum(scores, Fraction(0)) + len(scores) * self.dummies
        if not whole:
            return (one / len(scores),) * len(scores)
        return tuple(_number((score + self.dummies) / whole, one) for score in scores)

    def ratio(self, ballots: Ballots, change: Change) -> Ratio:
        """1 + g h / k for g ballots, for every number of voters.

        Replacing g of T ballots leaves the sum as it is, and S_a = S'_a + d with d <= g h: the ratio (S'_a + d + k) /
        (S'_a + k) is largest at S'_a = 0, d = g h: all T ballots give a nothing, then g of them put it first.
        Adding i and removing j, i + j <= g, from n ballots: the ratio is at most (1 + i h / k) (n s + m k) /
        ((n + i - j) s + m k). For i >= j the second factor is below 1 and tends to 1 with n, so that 1 + g h / k is the
        supremum (i = g). For i < j it is largest at n = j, and (k + i h)(k + j u) <= (k + i u)(k + (i + j) h) for
        u = s / m <= h, as the difference of the sides is k j (h - u) + k i u + i i u h.
        """
        if _free(ballots, change):
            return ONE
        if not self.dummies:
            return Ratio(None)
        return Ratio(1 + change.ballots * ballots.highest / self.dummies)

    def uniform_share(self, ballots: Ballots, voters: int) -> Fraction | None:
        """Dummies among all points."""
        dummies = ballots.size * self.dummies
        whole = voters * ballots.total + dummies
        return dummies / whole if whole else Fraction(1)


def _powers(base: Fraction, scores: Sequence[Fraction], one: Any) -> list[Any]:
    """base^(S_a - largest S)."""
    most = max(scores)
    gaps = [most - score for score in scores]
    if any(gap.denominator != 1 for gap in gaps):
        raise Malformed("powers of shared points are not rational")
    number = _number(base, one)
    return [one / number ** int(gap) for gap in gaps]


def _spread(ballots: Ballots, change: Change) -> int:
    """The most by which the ballots move the points of one alternative against those of another.

    A ballot that comes or goes moves a difference of points by h at most, one that is replaced by 2 h.
    """
    return change.ballots * ballots.highest * (1 if change.adding else 2)


class _Powers(Rule):
    """What rules with powers of a base share."""

    __slots__ = ()

    def check(self, ballots: Ballots) -> None:
        """Points have to be whole."""
        if self.amount < 1:
            raise Malformed("the base is below 1")
        if not ballots.whole:
            raise Malformed("powers of shared points are not rational")


@dataclass(frozen=True, slots=True)
class Exponential(_Powers):
    """base^S_a / sum of base^S."""

    base: Fraction

    family: ClassVar[str] = "exponential"
    key: ClassVar[str] = "base"

    @property
    def amount(self) -> Fraction:
        """The base."""
        return self.base

    def law(self, scores: Sequence[Fraction], one: Any = Fraction(1)) -> tuple[Any, ...]:
        """Powers, normalised."""
        weights = _powers(self.base, scores, one)
        whole = sum(weights[1:], weights[0])
        return tuple(weight / whole for weight in weights)

    def ratio(self, ballots: Ballots, change: Change) -> Ratio:
        """base^d, d the most by which differences of points move.

        With D = S - S', p_a(S) / p_a(S') = 1 / sum_c p_c(S') base^(D_c - D_a) <= base^(max_c (D_a - D_c)); it tends to
        that where c takes all the probability: many voters who put c first.
        """
        return ONE if _free(ballots, change) else Ratio(self.base, _spread(ballots, change))

    def at(self, ballots: Ballots, change: Change) -> Ratio:
        """First choices of T voters, g of them replaced: b^g (b^T + m - 1) / (b^(T-g) + b^g + m - 2).

        It is reached where all vote for c, then g of them for a. Any other pair has no larger ratio: a ballot that
        moves elsewhere than to a does better to move to a; with values v_c = b^-d_c where d_c ballots leave c, and
        b^g at a, p_a(S') / p_a(S) is the mean of v under p(S'), and it falls when (i) a ballot that stays is taken
        from a, or from any other alternative, to the c of the largest d_c (after c has been made the largest of them),
        and (ii) one that leaves another alternative leaves c instead: S stays, and p_a(S') falls by convexity.
        """
        b, t, g, m = self.base, change.voters, change.ballots, ballots.size
        long = t * b.numerator.bit_length() > POWER_BITS
        if _free(ballots, change) or change.adding or ballots.points != FIRST or long:
            return self.ratio(ballots, change)
        return Ratio(b**g * (b**t + m - 1) / (b ** (t - g) + b**g + m - 2))


@dataclass(frozen=True, slots=True)
class PermuteAndFlip(_Powers):
    """Alternatives in random order, each taken with probability base^(S_a - largest S), else the next."""

    base: Fraction

    family: ClassVar[str] = "permute_and_flip"
    key: ClassVar[str] = "base"

    @property
    def amount(self) -> Fraction:
        """The base."""
        return self.base

    def law(self, scores: Sequence[Fraction], one: Any = Fraction(1)) -> tuple[Any, ...]:
        """y_a times the sum over sets R of the others of (-1)^|R| prod_R y / (|R| + 1).

        Each of R stands before a, and would be taken, with probability prod_R y / (|R| + 1): a is the last of |R| + 1;
        inclusion and exclusion gives the probability that none does. Sums over sets of one size are the elementary
        symmetric polynomials e_j.
        """
        chances = _powers(self.base, scores, one)
        law = []
        for a, chance in enumerate(chances):
            symmetric = [one]
            for other in (*chances[:a], *chances[a + 1 :]):
                longer = [*symmetric, one * 0]
                symmetric = [longer[j] + (other * symmetric[j - 1] if j else 0) for j in range(len(longer))]
            law.append(chance * sum(((-1) ** j * e / (j + 1) for j, e in enumerate(symmetric)), one * 0))
        return tuple(law)

    def ratio(self, ballots: Ballots, change: Change) -> Ratio:
        """base^d, d the most by which differences of points move.

        The rule draws the largest S_a + Z_a with P(Z > t) = min(1, base^-t) (Ding et al. 2021): a wins where Z_a is
        above max_c (S_c + Z_c) - S_a, which rises by d at most, and P(Z > t - d) <= base^d P(Z > t). With two
        alternatives and enough voters for one of them it is attained; with more it is the limit for many voters.
        """
        return ONE if _free(ballots, change) else Ratio(self.base, _spread(ballots, change))


@dataclass(frozen=True, slots=True)
class Reports(Rule):
    """Each voter draws an alternative by the points of the ballot and reports it, or another; one report is drawn.

    What was drawn is reported `truth` times as likely as each other alternative. `seen`: whether reports are public.
    """

    truth: Fraction
    seen: bool = True

    family: ClassVar[str] = "local_dictator"
    key: ClassVar[str] = "ratio"

    @property
    def amount(self) -> Fraction:
        """How much more likely the truth is than each other answer."""
        return self.truth

    def check(self, ballots: Ballots) -> None:
        """The truth is at least as likely as the rest."""
        if self.truth < 1:
            raise Malformed("the truth is less likely than other answers")

    def law(self, scores: Sequence[Fraction], one: Any = Fraction(1)) -> tuple[Any, ...]:
        """The mean of the laws of the reports."""
        points, m = sum(scores, Fraction(0)), len(scores)
        if not points:
            return (one / m,) * m
        true, other = self.truth / (self.truth + m - 1), 1 / (self.truth + m - 1)
        return tuple(_number((s * true + (points - s) * other) / points, one) for s in scores)

    def report(self, ballots: Ballots) -> Fraction:
        """The largest ratio of one report: 1 + w, w = (truth - 1) h / s, of the most points against none."""
        return 1 + (self.truth - 1) * ballots.highest / ballots.total if ballots.size > 1 else Fraction(1)

    def ratio(self, ballots: Ballots, change: Change) -> Ratio:
        """1 + w for each report that changes where reports are seen; the winner is computed from these.

        Of the winner alone 1 + w for any change: every law is a mean of laws of reports, or uniform, and each entry of
        these lies between 1 and 1 + w, divided by truth + m - 1.

        Raises: Unbounded for voters who come and go where reports are seen.
        """
        if change.adding and self.seen:
            raise Unbounded("reports tell who takes part: nothing is hidden of a voter who comes or goes")
        if _free(ballots, change):
            return ONE
        return Ratio(self.report(ballots), change.ballots if self.seen else 1)

    def at(self, ballots: Ballots, change: Change) -> Ratio:
        """Of the winner alone: 1 + w g / T where g of T are replaced, as the share of the points moves by h g / (s T).

        One who comes to nobody: a report against the uniform law. To n > 0: the share moves by h / (s (n + 1)) <=
        h / (2 s) from 0, and by no larger factor from above. One who goes from n + 1: (1 + w) / (1 + w n / (n + 1)),
        which is below 1 + w / (n + 1).
        """
        if self.seen or _free(ballots, change) or (change.adding and change.group > 1):
            return self.ratio(ballots, change)
        w, m = self.report(ballots) - 1, ballots.size
        if not change.adding:
            return Ratio(1 + w * change.ballots / change.voters)
        return Ratio(max(m * (1 + w) / (self.truth + m - 1), (self.truth + m - 1) / m, 1 + w / 2))

    def uniform_share(self, ballots: Ballots, voters: int) -> Fraction | None:
        """The same for every number of voters."""
        return ballots.size / (self.truth + ballots.size - 1) if voters else Fraction(1)


def _number(value: Fraction, one: Any) -> Any:
    """A fraction in the numbers of `one`."""
    return value if isinstance(one, Fraction) else one * value.numerator / value.denominator


RULES: tuple[type[Dummies | Exponential | PermuteAndFlip | Reports], ...] = (
    Dummies,
    Exponential,
    PermuteAndFlip,
    Reports,
)


def read_rule(mechanism: At) -> Rule:
    """The rule of a plan.

    Raises: Malformed.
    """
    family = mechanism["family"].text()
    for rule in RULES:
        if rule.family == family:
            return rule(mechanism[rule.key].exact())
    raise Malformed(f"{mechanism.place}.family is unknown")
