"""Rules that weigh alternatives by powers of their points: the exponential mechanism and permute-and-flip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any, ClassVar

from privspec.certify.lotteries.meaning import FIRST, Ballots
from privspec.certify.lotteries.rule import ONE, Change, Ratio, Rule, free, number
from privspec.certify.reading import Malformed

POWER_BITS = 2**16
"""Bits up to which powers of a base are worked out."""


def _powers(base: Fraction, scores: Sequence[Fraction], one: Any) -> list[Any]:
    """base^(S_a - largest S)."""
    most = max(scores)
    gaps = [most - score for score in scores]
    if any(gap.denominator != 1 for gap in gaps):
        raise Malformed("powers of shared points are not rational")
    each = number(base, one)
    return [one / each ** int(gap) for gap in gaps]


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
        return ONE if free(ballots, change) else Ratio(self.base, _spread(ballots, change))

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
        if free(ballots, change) or change.adding or ballots.points != FIRST or long:
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
        return ONE if free(ballots, change) else Ratio(self.base, _spread(ballots, change))

    def at(self, ballots: Ballots, change: Change) -> Ratio:
        """One of T first choices replaced: b^2 A(b^(1 - T)) / A(b^-T), A(y) the integral of (1 - t)(1 - t y)^(m - 2).

        p_a = b^S_a F_a(S), F_a the integral over z <= b^-S_a of prod over c != a of (1 - z b^S_c)_+. With z = e^v each
        factor is a log-concave function of v + S_c log b, and so is the indicator: F_a is log-concave in S (Prekopa),
        and log-supermodular (a log-concave function of s - u is totally positive of order 2, which integrating u
        keeps: Karlin and Rinott). A vote that goes from c to a has the ratio b F_a(S_a + 1, S_c - 1) / F_a(S_a, S_c),
        at most b F_a(S_a, S_c - 1) / F_a(S_a, S_c) as F_a falls with S_a; that grows with S_c by the first and falls
        with all other scores by the second, so it is largest where all T vote for c. There, from T = 2 on, F_a does
        not see that S_a is 1 and not 0, and z = t / b^T gives the formula. Ratios of bystanders have no factor b.
        """
        long = change.voters * self.base.numerator.bit_length() > POWER_BITS
        if free(ballots, change) or change.adding or change.ballots > 1 or ballots.points != FIRST or long:
            return self.ratio(ballots, change)
        if change.voters == 1:
            mine, *others = self.law([Fraction(a == 0) for a in range(ballots.size)])
            return Ratio(mine / others[0])
        least, m = 1 / self.base**change.voters, ballots.size
        return Ratio(self.base**2 * _passed(self.base * least, m - 2) / _passed(least, m - 2))


def _passed(chance: Fraction, others: int) -> Fraction:
    """The integral over t in [0, 1] of (1 - t) (1 - t y)^others, term by term."""
    terms = (comb(others, k) * (-chance) ** k / ((k + 1) * (k + 2)) for k in range(others + 1))
    return sum(terms, Fraction(0))
