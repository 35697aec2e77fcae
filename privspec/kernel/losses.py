"""What is let through on one change: losses of independent parts, and what they prove together.

A `Loss` is a claim about every two neighbours under one change. Its parts are independent of each other: Gaussian noise
of `mu_squared` in all, `factors` that are not Gaussian, each by all that it may let through, and a lump of `delta`.

Finite laws count by pairs of laws: of each answer its log ratio and its chance, both rounded up, and both rounded down
for what is surely let through. Of every part one pair is picked, and the picks that let through most are what counts
(noise/notes/composition-exact.md).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import ceil, expm1, floor, inf, log, prod

from flint import arb, ctx

from privspec.kernel.core.numbers import BITS as RATIO_BITS
from privspec.kernel.core.numbers import (
    LARGEST_LOG,
    ZERO,
    ball,
    end,
    exp_down,
    gaussian_delta,
    gaussian_delta_up,
    sqrt_up,
)
from privspec.kernel.core.reading import Refused, frozen
from privspec.kernel.divergences import PURE_PARTS, Composed, Condition, Curved, HockeyStick, delta_up

BITS, GRID, CHANCES = 320, 2**40, 2**60
"""Working precision; log ratios are whole multiples of 1 / GRID, chances of 1 / CHANCES."""
NEAR = 4
"""Log ratios that are no farther apart, in steps of the grid, count as the larger one."""
SPARE = 40
"""A pair counts for another that lets through up to 2^-SPARE of it more; its chances are raised by as much."""
LOOKED_AT, LISTED, ANSWERS, PICKS, ROWS = 2**18, 2**8, 2**10, 2**9, 2**7
"""Most log ratios of one part, pairs of it, answers of all parts together, picks of pairs, and rows of a strategy."""
LARGEST = 16
"""Largest log ratio of a finite law that is looked at."""
TIGHT = Fraction(1, 10**6)
"""What is exact is not larger than what is surely let through by more than this share, of epsilon and of delta."""
Law = dict[int, int]
"""Of each log ratio, over GRID, its chance, over CHANCES."""
Numerators = tuple[int, ...]
Pair = tuple[Law, Law]
"""What one law lets through beside another: rounded up, and rounded down."""
Ends = tuple[Fraction, Fraction]
"""At least a number, and at most."""


@frozen
class PrivacyLoss:
    """What a part lets through of one unit: mu^2 of Gaussian noise, or one of several pairs of laws, or Laplace noise.

    Of Laplace noise on one answer the epsilon, and the `step` of its lattice in scales. `own`: this is what the part
    executes, and not a law that lets through at least as much. `delta` comes on top.
    """

    own: bool
    mu_squared: Ends = (ZERO, ZERO)
    pairs: tuple[Pair, ...] = ()
    laplace: Ends = (ZERO, ZERO)
    step: Fraction = ZERO
    delta: Fraction = ZERO

    @property
    def epsilon_down(self) -> Fraction:
        """At most the largest log ratio of a law that is not Gaussian."""
        finite = Fraction(max((max(down, default=0) for _, down in self.pairs), default=0), GRID)
        return max(finite, self.laplace[1])


ABSENT = -1e300
"""Stands for the logarithm of zero: comparisons with it are always made exactly."""


def response(epsilon: Fraction, delta: Fraction = ZERO) -> PrivacyLoss:
    """Randomised response: what any law of pure epsilon lets through at most (Kairouz, Oh & Viswanath 2015)."""
    law = Law()
    for ratio in (epsilon, -epsilon):
        with ctx.workprec(BITS):
            chance = end((1 / (1 + ball(-ratio).exp())).upper())
        # at epsilon 0 both answers have the same ratio
        at = ceil(ratio * GRID)
        law[at] = law.get(at, 0) + ceil(chance * CHANCES)
    return PrivacyLoss(own=False, pairs=((law, {}),), delta=delta)


# --- what is not Gaussian ----------------------------------------------------------------------------------------


class Factor:
    """What one part lets through by itself, that is not Gaussian and independent of all others."""

    @property
    def epsilon(self) -> Fraction | None:
        """At least its largest log ratio; None where that has no limit."""
        raise NotImplementedError

    def composed(self) -> PrivacyLoss | None:
        """How it counts among others by what is known of its law; None where that is too much work."""
        raise NotImplementedError

    def satisfies(self, condition: Condition) -> bool | None:
        """Whether it satisfies a condition alone; None where its largest log ratio has to tell."""
        return None

    def delta_up(self, epsilon: Fraction) -> Fraction | None:
        """At least its delta at an epsilon, alone; None where that is what it counts among others."""
        return None


@frozen
class Response(Factor):
    """Any law of an epsilon: randomised response lets through as much."""

    most: Fraction

    @property
    def epsilon(self) -> Fraction:
        return self.most

    def composed(self) -> PrivacyLoss:
        return response(self.most)

    def delta_up(self, epsilon: Fraction) -> Fraction:
        """Without the lattice on which it counts among others: epsilons that are found by bisection just meet delta."""
        return delta_up(epsilon, ZERO, [self.most])


@frozen
class LaplaceFactor(Factor):
    """Laplace noise on one answer, which moves by `most` scales on a lattice of `step` scales."""

    most: Fraction
    step: Fraction

    @property
    def epsilon(self) -> Fraction:
        return self.most

    def composed(self) -> PrivacyLoss:
        return PrivacyLoss(own=True, laplace=(self.most, ZERO), step=self.step)

    def delta_up(self, epsilon: Fraction) -> Fraction:
        """By its own law, or by that of all of its epsilon, whichever says less: its lattice adds a little."""
        own, any_law = delta_to(0, epsilon, [(self.composed(), 1)]), delta_up(epsilon, ZERO, [self.most])
        return any_law if own is None else min(own, any_law)


@frozen
class FiniteLaws(Factor):
    """Laws of what is seen, numerators (rows, values) over `whole`; neighbours are some `pairs`, or all in a clique."""

    rows: tuple[Numerators, ...]
    whole: int
    pairs: tuple[tuple[int, int], ...]
    cliques: tuple[tuple[int, ...], ...]

    def every(self) -> list[tuple[Numerators, Numerators]]:
        """The laws of every two neighbours, one way round."""
        inside = ((a, b) for rows in self.cliques for i, a in enumerate(rows) for b in rows[:i])
        return [(self.rows[a], self.rows[b]) for a, b in (*self.pairs, *inside)]

    @property
    def epsilon(self) -> Fraction | None:
        """By logarithms that are off by less than `error`, and exactly for all that are nearer to the largest."""
        error = (log(self.whole) + LARGEST_LOG) * 2.0**-48
        above, below = 1, 1
        for members in self.cliques:
            for column in zip(*(self.rows[row] for row in members), strict=True):
                most, least = max(column), min(column)
                if most * below > least * above:
                    above, below = most, least
        logs = [[log(n) if n else ABSENT for n in row] for row in self.rows] if self.pairs else []
        for a, b in self.pairs:
            if not below:
                break
            near = log(above) - log(below) - error
            gaps = [x - y for x, y in zip(logs[a], logs[b], strict=True)]
            if -near < min(gaps) and max(gaps) < near:
                continue
            for x, y in zip(self.rows[a], self.rows[b], strict=True):
                if max(x, y) * below > min(x, y) * above:
                    above, below = max(x, y), min(x, y)
        if not below:
            return None
        with ctx.workprec(2 * RATIO_BITS):
            return max(end(ball(Fraction(above, below)).log().upper()), ZERO)

    def delta_up(self, epsilon: Fraction) -> Fraction:
        """The largest hockey-stick divergence at an epsilon, e^epsilon rounded down."""
        return self._most(epsilon, sum)

    def largest_excess(self, epsilon: Fraction) -> Fraction:
        """The largest p(o) - e^epsilon q(o) of a single value, e^epsilon rounded down."""
        return self._most(epsilon, max)

    def _most(self, epsilon: Fraction, together: Callable[[list[int]], int]) -> Fraction:
        """The largest of what is put together, pair by pair, of all p(o) - e^epsilon q(o) that are above 0."""
        ratio, most = int(exp_down(epsilon) * (1 << RATIO_BITS)), 0
        for one, other in self.every():
            for p, q in ((one, other), (other, one)):
                over = [(x << RATIO_BITS) - y * ratio for x, y in zip(p, q, strict=True)]
                most = max(most, together([0, *(part for part in over if part > 0)]))
        return Fraction(most, self.whole << RATIO_BITS)

    def composed(self) -> PrivacyLoss | None:
        listed = self.every()
        if 2 * len(listed) * len(self.rows[0]) > LOOKED_AT:
            return None
        return kept([pair for one, other in listed for pair in ((one, other), (other, one))], self.whole)

    def satisfies(self, condition: Condition) -> bool | None:
        match condition:
            case HockeyStick(epsilon, delta) if delta:
                return self.delta_up(epsilon) <= delta
            case Curved():
                pairs = ((list(one), list(other)) for one, other in self.every())
                return all(condition.holds(one, other, self.whole) for one, other in pairs)
        return None


# --- together ----------------------------------------------------------------------------------------------------


@frozen
class Loss:
    """At most what is let through on one change: independent Gaussian noise, factors, and a lump of `delta`."""

    mu_squared: Fraction = ZERO
    factors: tuple[Factor, ...] = ()
    delta: Fraction = ZERO

    def __post_init__(self) -> None:
        if self.mu_squared < 0 or self.delta < 0:
            raise Refused("a loss below nothing")

    def epsilons(self) -> list[Fraction] | None:
        """At least the largest log ratio of each factor; None where one has no limit."""
        known = [factor.epsilon for factor in self.factors]
        return [one for one in known if one is not None] if None not in known else None

    def figure(self, name: str) -> Fraction:
        """At least what is let through in one figure: mu of Gaussian noise, epsilon of all factors, or the delta."""
        if name == "mu":
            return sqrt_up(self.mu_squared, 100)
        return self.delta if name == "delta" else sum(self._epsilons(), ZERO)

    def _epsilons(self) -> list[Fraction]:
        pure = self.epsilons()
        if pure is None:
            raise Refused("a ratio without limit: some answer is possible on one side of a line alone")
        return pure

    def delta_up(self, epsilon: Fraction) -> Fraction:
        """At least delta at an epsilon: by the laws of all factors where these are few, else by their epsilons."""
        if not self.factors:
            return self.delta + gaussian_delta_up(epsilon, self.mu_squared)
        if not self.mu_squared:
            pure = self.epsilons()
            if pure is not None and sum(pure) <= epsilon:
                return self.delta
            alone = self.factors[0].delta_up(epsilon) if len(self.factors) == 1 else None
            if alone is not None:
                return self.delta + alone
        return self.delta + self._of_factors(epsilon)

    def _of_factors(self, epsilon: Fraction) -> Fraction:
        """What noise and factors let through together at an epsilon, without the lump."""
        if len(self.factors) > PURE_PARTS:
            raise Refused(f"more than {PURE_PARTS} parts share a line")
        parts = [(PrivacyLoss(own=True, mu_squared=(self.mu_squared, ZERO)), 1)] * bool(self.mu_squared)
        for number, factor in enumerate(self.factors):
            one = factor.composed()
            parts.append((response(self._epsilons()[number]) if one is None else one, 1))
        most = delta_to(0, epsilon, parts)
        return delta_up(epsilon, self.mu_squared, self._epsilons()) if most is None else most

    def satisfies(self, condition: Condition) -> bool:
        """Whether it satisfies what a measure asks of two laws."""
        if len(self.factors) == 1 and not self.mu_squared and not self.delta:
            alone = self.factors[0].satisfies(condition)
            if alone is not None:
                return alone
        if isinstance(condition, HockeyStick) and condition.delta:
            return self.delta_up(condition.epsilon) <= condition.delta
        pure = self.epsilons()
        return pure is not None and condition.satisfied_by(Composed(self.mu_squared, tuple(pure), self.delta, ZERO))


# --- pairs of laws -----------------------------------------------------------------------------------------------


def kept(listed: list[tuple[Numerators, Numerators]], whole: int) -> PrivacyLoss | None:
    """Pairs of laws, as shares of a whole, without those that let through no more than another; None if too many."""
    found: dict[tuple[tuple[int, int], ...], Pair] = {}
    for one, other in listed:
        pair = pair_of(one, other, whole)
        if pair is None:
            return None
        found[tuple(sorted(pair[0].items()))] = pair
    if len(found) > LISTED:
        return None
    largest = list[Pair]()
    # what is left out is covered by one that stays: a chain of pairs, each covered by the next, would add up its slack
    for pair in sorted(found.values(), key=lambda pair: (-_apart(pair[0], 0), -max(pair[0], default=0))):
        if not any(covers(other[0], pair[0]) for other in largest):
            largest.append(pair)
    pairs = (({log: chance + (chance >> SPARE) + 1 for log, chance in up.items()}, down) for up, down in largest)
    return PrivacyLoss(own=True, pairs=tuple(pairs))


def pair_of(one: Numerators, other: Numerators, whole: int) -> Pair | None:
    """What one law lets through beside another, neighbouring log ratios together; None where one has no limit."""
    if any(a and not b for a, b in zip(one, other, strict=True)):
        return None
    off = (2 + log(whole)) * 2.0**-48
    ratios = sorted(((log(a) - log(b), a) for a, b in zip(one, other, strict=True) if a), reverse=True)
    up, down, first = Law(), Law(), inf
    groups = list[list[tuple[float, int]]]()
    for ratio, chance in ratios:
        if abs(ratio) > LARGEST:
            return None
        if first - ratio > NEAR / GRID:
            groups.append([])
            first = ratio
        groups[-1].append((ratio, chance))
    for group in groups:
        high, low = ceil((group[0][0] + off) * GRID), floor((group[-1][0] - off) * GRID)
        chance = sum(chance for _, chance in group) * CHANCES
        up[high] = up.get(high, 0) - (-chance // whole)
        down[low] = down.get(low, 0) + chance // whole
    return up, down


def _apart(law: Law, at: int) -> float:
    """The sum of what chances have above e^at times the other law's, by e^at over GRID."""
    return -sum(chance * expm1((at - log) / GRID) for log, chance in law.items() if log > at)


def covers(one: Law, other: Law) -> bool:
    """Whether one pair lets through as much as another at every ratio, but for 2^-SPARE of it.

    What is let through is convex and linear between the ratios of its own answers: these are looked at, and ratio 0.
    """
    if sum(other.values()) > sum(one.values()) * (1 + 2.0 ** -(SPARE + 1)):
        return False
    return all(_apart(other, at) <= _apart(one, at) * (1 + 2.0 ** -(SPARE + 1)) for at in {*one, *other})


# --- together ----------------------------------------------------------------------------------------------------


def delta_to(side: int, epsilon: Fraction, parts: list[tuple[PrivacyLoss, int]]) -> Fraction | None:
    """At least (side 0) or at most (side 1) the delta at an epsilon of independent parts; None if it is too much work.

    Of every part that is one of several pairs of laws one is picked, and the worst of the picks counts.
    """
    noise = [one for one, times in parts for _ in range(times) if one.laplace[0]]
    finite = [(one.pairs, times) for one, times in parts if one.pairs]
    if prod(len(pairs) for pairs, _ in finite) > PICKS or len(noise) > 1:
        return None
    square = sum((one.mu_squared[side] * times for one, times in parts), ZERO)
    found = list[Fraction]()
    with ctx.workprec(BITS):
        for picked in product(*(pairs for pairs, _ in finite)):
            laws = [pair[side] for pair, (_, times) in zip(picked, finite, strict=True) for _ in range(times)]
            delta = _together(epsilon, square, _product(laws, up=not side), noise, side)
            found.append(end(delta.lower() if side else delta.upper()))
    return max(found) if side else max(found) + sum((one.delta * times for one, times in parts), ZERO)


def _product(laws: list[Law], *, up: bool) -> dict[Fraction, Fraction]:
    """Log ratios of independent laws add up; where there are too many, they are rounded to coarser ones."""
    found, unit, scale = {0: 1}, 1, 1
    for law in laws:
        before, found, scale = found, {}, scale * CHANCES
        for known, chance in before.items():
            for more, own in law.items():
                found[known + more] = found.get(known + more, 0) + chance * own
        while len(found) > ANSWERS:
            before, found, unit = found, {}, 2 * unit
            for known, chance in before.items():
                rounded = unit * (-(-known // unit) if up else known // unit)
                found[rounded] = found.get(rounded, 0) + chance
    return {Fraction(known, GRID): Fraction(chance, scale) for known, chance in found.items()}


def _together(
    epsilon: Fraction, square: Fraction, law: dict[Fraction, Fraction], noise: list[PrivacyLoss], side: int
) -> arb:
    """The sum over the answers of finite laws of what all others let through beyond what is left of epsilon."""
    mu = ball(square).sqrt()
    rests = ((ball(chance), epsilon - ratio) for ratio, chance in law.items())
    if not noise:
        return sum((chance * gaussian_delta(rest, mu) for chance, rest in rests), arb(0))
    return sum((chance * _beside(noise[0], rest, square, side) for chance, rest in rests), arb(0))


def _beside(noise: PrivacyLoss, epsilon: Fraction, square: Fraction, side: int) -> arb:
    """What Laplace noise and Gaussian noise let through together: at least (side 0), or at most."""
    own, step = noise.laplace[side], noise.step
    if side:
        return (1 - ball(step)) * _with_laplace(epsilon + 2 * step, square, own, ZERO)
    return _with_laplace(epsilon, square, own, step)


def _normal(x: arb) -> arb:
    """The standard normal law up to x."""
    return (-x / arb(2).sqrt()).erfc() / 2


def _with_laplace(epsilon: Fraction, square: Fraction, own: Fraction, step: Fraction) -> arb:
    """The same beside Laplace noise of an epsilon of its own, on a lattice of such a step: no less.

    The largest log ratio, own, has chance 1 / (1 + e^-step), the least e^-own of that, and those in between at most the
    density e^((l - own) / 2) / 4, each moved up by two steps at most.
    """
    low, high, rest, mu = ball(-own), ball(own), ball(epsilon), ball(square).sqrt()
    ends = gaussian_delta(epsilon - own, mu) + low.exp() * gaussian_delta(epsilon + own, mu)
    if square:

        def primitive(c: arb, b: arb, at: arb) -> arb:
            """Of e^(c l) Phi(l / mu + b)."""
            power = (c * c * mu * mu / 2 - c * mu * b).exp()
            return ((c * at).exp() * _normal(at / mu + b) - power * _normal(at / mu + b - c * mu)) / c

        half, near, far = arb(1) / 2, mu / 2 - rest / mu, -mu / 2 - rest / mu
        between = primitive(half, near, high) - primitive(half, near, low)
        between -= rest.exp() * (primitive(-half, far, high) - primitive(-half, far, low))
    elif epsilon < own:
        start = ball(max(epsilon, -own))
        between = 2 * ((high / 2).exp() - (start / 2).exp() + (rest - high / 2).exp() - (rest - start / 2).exp())
    else:
        between = arb(0)
    return ends / (1 + ball(-step).exp()) + (low / 2).exp() * between / 4
