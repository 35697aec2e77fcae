"""What measures of privacy ask of two laws, and when independent parts, two finite laws, or Gaussian noise satisfy it.

A hockey-stick divergence: P(S) <= e^epsilon Q(S) + delta. Rényi divergences, of one order or of all. The trade-off
curve of two normal laws. Independent parts that one difference moves all at once are one: Gaussian parts of the sum of
their squared mu; a part of pure epsilon is dominated by binary randomised response of that epsilon, one of
(epsilon, delta) by the same that fails with probability delta, and such laws reach these bounds
(noise/notes/composition.md).

Finite laws p and q are whole numbers over one `whole`. With s = order - 1, the generator
(p^order q^-s - order p + s q) / (order s) is convex, >= 0, and adds up to (e^(s divergence) - 1) / (order s);
notes/divergences.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction

from flint import arb, ctx

from privspec.kernel.core.numbers import (
    BITS,
    LARGEST_LOG,
    PRECISION,
    ZERO,
    ball,
    chance_up,
    end,
    exp_up,
    gaussian_delta,
    gaussian_delta_up,
    rational,
    sqrt_down,
)
from privspec.kernel.core.reading import JsonNode, Refused, frozen

SMALLEST = Fraction(1, 2**1000)
"""Smaller ratios count as this."""
STEPS = 2**12
"""Most intervals of orders that are looked at for one pair."""
PURE_PARTS = 12
"""Parts that are not Gaussian of which one line may be composed: 2^12 patterns of their answers."""
Law = list[int]
Supported = tuple[Fraction, list[Fraction], list[Fraction]]
"""A bound, up, and factors u, down, and v, up, for which the sum over values of u p - v q is at most the bound."""


@frozen
class Composed:
    """What independent parts let through on one difference: Gaussian noise, pure epsilons, sums of deltas and rhos."""

    mu_squared: Fraction
    pure: tuple[Fraction, ...]
    delta: Fraction
    rho: Fraction

    @classmethod
    def of(cls, *parts: Mapping[str, Fraction]) -> Composed:
        """Parts of a mu each, of an epsilon (but for a delta), or of a rho.

        Raises: Refused where there are too many.
        """
        pure = tuple(part["epsilon"] for part in parts if "epsilon" in part)
        if len(pure) > PURE_PARTS:
            raise Refused(f"more than {PURE_PARTS} parts share a line")
        mu_squared = sum((part["mu"] ** 2 for part in parts if "mu" in part), ZERO)
        delta = sum((part.get("delta", ZERO) for part in parts), ZERO)
        rho = sum((part["rho"] for part in parts if "rho" in part), ZERO)
        return cls(mu_squared, pure, delta, rho)


class Condition(ABC):
    """How close two laws have to be, each of them to the other."""

    __slots__ = ()

    @abstractmethod
    def satisfied_by(self, parts: Composed) -> bool:
        """Whether independent parts satisfy it together."""

    @abstractmethod
    def broken_by(self, mu_squared: Fraction, pure: list[Fraction]) -> bool:
        """Whether Gaussian noise and randomised responses surely do not satisfy it together.

        Raises: Refused where no bound is known.
        """

    @abstractmethod
    def largest_mu_squared(self, stated: JsonNode) -> Fraction | None:
        """At least the mu^2 of every Gaussian release that satisfies it, None where none is known.

        `stated`: a mu that the plan says is too large, where there is no closed form.
        """

    def largest_unbiased(self) -> Fraction | None:
        """At least the mu^2 that any unbiased mechanism reaches, as `largest_mu_squared`."""
        return None

    @abstractmethod
    def least(self, epsilon: Fraction, mu_squared: Fraction) -> Fraction:
        """The amount that is surely let through by laws of an epsilon, or by Gaussian noise."""


@frozen
class HockeyStick(Condition):
    """No set of outputs is more than e^epsilon times as likely, up to delta."""

    epsilon: Fraction
    delta: Fraction

    def satisfied_by(self, parts: Composed) -> bool:
        if parts.rho:
            return False
        within = not parts.mu_squared and sum(parts.pure) <= self.epsilon
        if within or not self.delta:
            return within and parts.delta <= self.delta
        return parts.delta + delta_up(self.epsilon, parts.mu_squared, parts.pure) <= self.delta

    def broken_by(self, mu_squared: Fraction, pure: list[Fraction]) -> bool:
        if not self.delta:
            return mu_squared > 0 or sum(pure) > self.epsilon
        if len(pure) > PURE_PARTS:
            raise Refused(f"more than {PURE_PARTS} parts share a line")
        if not mu_squared and sum(pure) <= self.epsilon:
            return False
        with ctx.workprec(BITS):
            return bool(_delta(self.epsilon, mu_squared, pure) > ball(self.delta))

    def largest_mu_squared(self, stated: JsonNode) -> Fraction | None:
        if not self.delta:
            stated.same(None)
            return None
        mu = stated.exact(0)
        if not self.broken_by(mu * mu, []):
            raise stated.wrong("is not shown to be more than the measure allows")
        return mu * mu

    def largest_unbiased(self) -> Fraction | None:
        """Hammersley, Chapman and Robbins: mu^2 = e^eps + e^-eps - 2, of pure epsilon; none is known of epsilon 0."""
        if not self.epsilon:
            return None
        return exp_up(self.epsilon) + exp_up(-self.epsilon) - 2

    def least(self, epsilon: Fraction, mu_squared: Fraction) -> Fraction:
        return epsilon


class Curved(Condition):
    """A condition on two laws that no single ratio says; a linear bound stands for it at each of its levels."""

    __slots__ = ()

    def holds(self, p: Law, q: Law, whole: int) -> bool:
        """Whether two laws satisfy it, both ways; other laws do not, if one has a value that the other has not."""
        same = all((a > 0) == (b > 0) for a, b in zip(p, q, strict=True))
        with ctx.workprec(2 * BITS):
            return p == q or (same and self._one_way(p, q, whole) and self._one_way(q, p, whole))

    def support(self, level: JsonNode, multiplier: JsonNode, at: JsonNode, values: int) -> Supported:
        """A linear bound times a multiplier >= 0; for each value there is a t >= 0, where the bound is a tangent.

        The level is an epsilon of a trade-off curve, and t says how much of a value is counted, at most 1. Of Rényi
        divergences it is the order where all are asked for, and t the ratio at which the generator has its tangent.
        """
        picked, z = Fraction(level.double()), Fraction(multiplier.double())
        points = [Fraction(t.double()) for t in at.items(values)]
        if min(z, *points) < 0 or abs(picked) > LARGEST_LOG or not self._has_level(picked):
            raise level.wrong("is no order or epsilon, or has a multiplier or a ratio below 0")
        return self._support(picked, z, points)

    @abstractmethod
    def _one_way(self, p: Law, q: Law, whole: int) -> bool:
        """Whether p is as close to q as is asked."""

    @abstractmethod
    def _has_level(self, level: Fraction) -> bool:
        """Whether there is a linear bound at a level."""

    @abstractmethod
    def _support(self, level: Fraction, z: Fraction, points: list[Fraction]) -> Supported:
        """The linear bound times z."""


@frozen
class Renyi(Curved):
    """The divergence of an order is at most an amount; without an order, of every order that times the amount."""

    order: Fraction | None
    amount: Fraction

    def satisfied_by(self, parts: Composed) -> bool:
        """By epsilon^2 / 2 (Bun & Steinke 2016, proposition 1.4); of an order by min(epsilon, order epsilon^2 / 2)."""
        if parts.delta or (parts.rho and self.order is not None):
            return False
        if self.order is None:
            return parts.rho + (parts.mu_squared + sum(q * q for q in parts.pure)) / 2 <= self.amount
        pure = sum(min(q, self.order * q * q / 2) for q in parts.pure)
        return self.order * parts.mu_squared / 2 + pure <= self.amount

    def within_spread(self, spread: Fraction) -> bool:
        """Whether a law whose log ratios lie within a spread satisfies it.

        A spread s is (s^2 / 8)-zCDP (Cesar & Rogers 2021), and so of Renyi order a at most a s^2 / 8.
        """
        return spread * spread / 8 * (self.order or 1) <= self.amount

    def broken_by(self, mu_squared: Fraction, pure: list[Fraction]) -> bool:
        if self.order is not None:
            raise Refused("no bound is known for parts that share a line in this measure")
        return (mu_squared + sum(q * q for q in pure)) / 2 > self.amount

    def largest_mu_squared(self, stated: JsonNode) -> Fraction | None:
        stated.same(None)
        return 2 * self.amount / (self.order or 1)

    def largest_unbiased(self) -> Fraction | None:
        """Of order 2, which those above imply, log(1 + chi^2), by Hammersley, Chapman and Robbins."""
        if self.order is not None and self.order < 2:
            return None
        return exp_up(2 * self.amount if self.order is None else self.amount) - 1

    def least(self, epsilon: Fraction, mu_squared: Fraction) -> Fraction:
        return (self.order or 1) * mu_squared / 2

    def _one_way(self, p: Law, q: Law, whole: int) -> bool:
        if self.order is None:
            return self._every_order(p, q, whole)
        s = ball(self.order - 1)
        return bool(log_moment(log_ratios(p, q), whole, s) <= s * ball(self.amount))

    def _every_order(self, p: Law, q: Law, whole: int) -> bool:
        """Whether the divergence of p from q of every order above 1 is at most the amount times the order.

        Log-moments are then at most rho s (s + 1), as they are beyond s = (largest log ratio) / rho. Before, their
        chord over an interval is below it at both ends and where it comes nearest, or else the interval is halved.
        """
        ratios, rho, left, low = log_ratios(p, q), ball(self.amount), arb(0), arb(0)
        last = (ball(max(Fraction(a, b) for a, b in zip(p, q, strict=True) if b)).log() / rho).upper()
        todo = [(last, log_moment(ratios, whole, last).upper())]
        for _ in range(STEPS):
            right, high = todo[-1]
            slope = (high - low) / (right - left)
            nearest = (slope / rho - 1) / 2
            if not high <= rho * right * (right + 1):
                return False
            if nearest <= left or nearest >= right or low - slope * left + (slope - rho) ** 2 / (4 * rho) <= 0:
                left, low = todo.pop()
            else:
                middle = ((left + right) / 2).mid()
                todo.append((middle, log_moment(ratios, whole, middle).upper()))
            if not todo:
                return True
        return False

    def _has_level(self, level: Fraction) -> bool:
        return (level if self.order is None else self.order) >= 1

    def _support(self, level: Fraction, z: Fraction, points: list[Fraction]) -> Supported:
        order = level if self.order is None else self.order
        with ctx.workprec(2 * BITS):
            s, limit = ball(order - 1), ball(self.amount * order if self.order is None else self.amount)
            logs = [ball(max(t, SMALLEST)).log() for t in points]
            most = (s * limit).expm1() / (s * ball(order)) if order > 1 else limit
            ups = [(s * log).expm1() / s if order > 1 else log for log in logs]
            downs = [(ball(order) * log).expm1() / ball(order) for log in logs]
            return z * end(most.upper()), [z * end(up.lower()) for up in ups], [z * end(down.upper()) for down in downs]


@frozen
class TradeOff(Curved):
    """No test of one law against the other has more power than one of two normal laws of deviation 1, mu apart."""

    mu: Fraction

    def satisfied_by(self, parts: Composed) -> bool:
        if parts.delta or parts.rho:
            return False
        return parts.mu_squared + sum(pure_mu_up(q) ** 2 for q in parts.pure) <= self.mu**2

    def broken_by(self, mu_squared: Fraction, pure: list[Fraction]) -> bool:
        with ctx.workprec(BITS):
            roots = [arb(8) * (2 / (1 + ball(q).exp())).erfcinv() ** 2 for q in pure]
            return bool(ball(mu_squared) + sum(roots, arb(0)) > ball(self.mu**2))

    def largest_mu_squared(self, stated: JsonNode) -> Fraction | None:
        stated.same(None)
        return self.mu**2

    def largest_unbiased(self) -> Fraction | None:
        """No test tells more than of two normal laws mu apart, and so chi^2 is at most theirs."""
        return exp_up(self.mu**2) - 1

    def least(self, epsilon: Fraction, mu_squared: Fraction) -> Fraction:
        return sqrt_down(mu_squared)

    def _one_way(self, p: Law, q: Law, whole: int) -> bool:
        """The best tests count values by falling p / q; all others mix them, and the curve of Gaussians is concave."""
        mu, power, size = ball(self.mu) / arb(2).sqrt(), 0, 0
        pairs = zip(p, q, strict=True)
        for a, b in sorted(pairs, key=lambda one: Fraction(*one) if one[1] else ZERO, reverse=True):
            power, size = power + a, size + b
            most = arb(1) if size == whole else (ball(Fraction(2 * size, whole)).erfcinv() - mu).erfc() / 2
            if size and not ball(Fraction(power, whole)) <= most:
                return False
        return True

    def _has_level(self, level: Fraction) -> bool:
        return True

    def _support(self, level: Fraction, z: Fraction, points: list[Fraction]) -> Supported:
        counted = [z * min(t, Fraction(1)) for t in points]
        return z * gaussian_delta_up(level, self.mu**2), counted, [t * exp_up(level) for t in counted]


# --- what they are worked out from ----------------------------------------------------------------------


def log_ratios(p: Law, q: Law) -> list[tuple[int, arb]]:
    """Of each value of p its share, and the logarithm of p / q; q has all that p has."""
    return [(a, arb(a).log() - arb(b).log()) for a, b in zip(p, q, strict=True) if a]


def log_moment(ratios: list[tuple[int, arb]], whole: int, s: arb) -> arb:
    """Log sum p (p / q)^s, convex in s and 0 at 0."""
    return (sum((a * (s * ratio).exp() for a, ratio in ratios), arb(0)) / whole).log()


def delta_up(epsilon: Fraction, mu_squared: Fraction, pure: Sequence[Fraction]) -> Fraction:
    """At least delta(epsilon) of Gaussian noise and of randomised responses of some epsilons, on one difference."""
    if sum(pure) > LARGEST_LOG:  # all that is asked of such a part is that it is a law
        return Fraction(1)
    with ctx.workprec(PRECISION):
        return chance_up(_delta(epsilon, mu_squared, pure))


def _delta(epsilon: Fraction, mu_squared: Fraction, pure: Sequence[Fraction]) -> arb:
    """The sum over answers of the responses of P(answers) delta_G(epsilon - log ratio; mu) (notes/composition.md)."""
    chances = {rational(epsilon): arb(1)}  # by what is left of epsilon
    for q in map(rational, pure):
        before, chances = chances, {}
        for ratio in (-q, q):
            odds = 1 + ball(ratio).exp()
            for rest, chance in before.items():
                left = rest + ratio
                chances[left] = chances.get(left, arb()) + chance / odds
    mu = ball(mu_squared).sqrt()
    return sum((chance * gaussian_delta(rest, mu) for rest, chance in chances.items()), arb(0))


def pure_mu_up(epsilon: Fraction) -> Fraction:
    """At least the mu of which a law of pure epsilon satisfies mu-GDP: Phi(-mu / 2) = 1 / (1 + e^epsilon).

    The trade-off curve of randomised response is the chords of the Gaussian one through (0, 1), that point and (1, 0).
    """
    with ctx.workprec(256):
        return end((arb(8).sqrt() * (2 / (1 + ball(epsilon).exp())).erfcinv()).upper())
