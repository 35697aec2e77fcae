"""What a lottery costs over profiles of votes: worst cases by formula or one by one, averages exact or simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, singledispatch
from math import comb, hypot, lcm
from operator import add
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import InternalError
from privspec.families.selection.system import LotterySystem
from privspec.model.lotteries import (
    Exponential,
    FirstChoice,
    Largest,
    Law,
    LocalPick,
    Lottery,
    PermuteAndFlip,
    Proportional,
    RandomisedLargest,
)
from privspec.problem.vote_forms import BallotLaw, Cost, Costs
from privspec.solvers.programs import OutOfTimeError, Watch

# --- What is known of a loss: its exact value, a number that it is not below, or an average ove


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number and how it is known.

    `at_least`: the value is a lower bound only. `standard_error` is 0 unless profiles were drawn; `profiles`: how many
    were looked at, 0 where a formula gives the value.
    """

    value: Fraction
    at_least: bool = False
    standard_error: float = 0.0
    profiles: int = 0

    @property
    def exact(self) -> bool:
        """Whether the value is the number itself."""
        return not self.at_least and not self.standard_error

    def scaled(self, weight: Fraction) -> Estimate:
        """Times a number of at least 0, or any number where the value is exact."""
        return Estimate(self.value * weight, self.at_least, self.standard_error * abs(float(weight)), self.profiles)

    def __add__(self, other: Estimate) -> Estimate:
        """The sum; errors of averages add up as if they were independent."""
        return Estimate(
            self.value + other.value,
            self.at_least or other.at_least,
            hypot(self.standard_error, other.standard_error),
            max(self.profiles, other.profiles),
        )


# --- Laws whose exact probabilities are too long to write down, enclosed by ball arithmetic

POWER_BITS = 1 << 16
"""Binary digits of the largest power that is computed exactly."""
_PRECISION = 256


def near_law(lottery: Lottery, scores: Sequence[Fraction]) -> tuple[Law, Fraction]:
    """The law of the winner and how far it may be from it, in l1: 0 where powers are short, else below 2^-200."""
    if not isinstance(lottery, Exponential | PermuteAndFlip):
        return lottery.law(scores), Fraction(0)
    gaps = [max(scores) - score for score in scores]
    if max(gaps) * lottery.base.numerator.bit_length() <= POWER_BITS:
        return lottery.law(scores), Fraction(0)
    from flint import arb, ctx, fmpq

    with ctx.workprec(_PRECISION):
        base = arb(fmpq(lottery.base.numerator, lottery.base.denominator))
        chances = [base ** (-arb(fmpq(gap.numerator, gap.denominator))) for gap in gaps]
        balls = _in_proportion(chances) if isinstance(lottery, Exponential) else _flips(chances)
        centres = tuple(_fraction(ball.mid()) for ball in balls)
        return centres, sum((_fraction(ball.rad()) for ball in balls), Fraction(0))


def _in_proportion(chances: list[Any]) -> list[Any]:
    total = sum(chances[1:], chances[0])
    return [chance / total for chance in chances]


def _flips(chances: list[Any]) -> list[Any]:
    """As `PermuteAndFlip.law`: the integral over t in [0, 1] of prod over the others of (1 - t y)."""
    one = chances[0] / chances[0]
    found = []
    for a, chance in enumerate(chances):
        polynomial = [one]
        for other in (*chances[:a], *chances[a + 1 :]):
            raised = [0 * one, *(-other * c for c in polynomial)]
            polynomial = [c + r for c, r in zip([*polynomial, 0 * one], raised, strict=True)]
        found.append(chance * sum((c / (k + 1) for k, c in enumerate(polynomial)), 0 * one))
    return found


def _fraction(ball: Any) -> Fraction:
    """An exact ball as a fraction."""
    mantissa, exponent = (int(part) for part in ball.man_exp())
    return Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)


# --- Profiles of votes: all of them where they are few, else some that are drawn under the data

Scores: TypeAlias = tuple[Fraction, ...]
PROFILES = 5000
"""Profiles that are listed one by one."""


# --- all profiles ---------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _kinds(system: LotterySystem) -> tuple[Scores, ...]:
    return system.votes.ballots.kinds()


@lru_cache(maxsize=4)
def listed(system: LotterySystem, law: BallotLaw | None = None) -> dict[Scores, Fraction] | None:
    """Every total of points that the voters can reach with its probability under a law (0 without one).

    None where there are more than `PROFILES`.
    """
    kinds = _kinds(system) if law is None else tuple(given for given, _ in law)
    if not kinds or _surely_many(system, kinds):
        return None
    shares = (Fraction(0),) * len(kinds) if law is None else tuple(share for _, share in law)
    scale, bottom = lcm(*(p.denominator for given in kinds for p in given)), lcm(*(s.denominator for s in shares))
    steps = [(tuple(int(p * scale) for p in given), int(s * bottom)) for given, s in zip(kinds, shares, strict=True)]
    known = _totals(steps, system.voters, len(system.alternatives))
    if known is None:
        return None
    whole = bottom**system.voters
    return {tuple(Fraction(t, scale) for t in total): Fraction(mass, whole) for total, mass in known.items()}


def _totals(
    steps: list[tuple[tuple[int, ...], int]], voters: int, alternatives: int
) -> dict[tuple[int, ...], int] | None:
    """Sums of so many ballots with their weights, ballot by ballot."""
    known = {(0,) * alternatives: 1}
    for _ in range(voters):
        after: dict[tuple[int, ...], int] = {}
        for total, mass in known.items():
            for given, share in steps:
                reached = tuple(map(add, total, given))
                after[reached] = after.get(reached, 0) + mass * share
        if len(after) > PROFILES:
            return None
        known = after
    return known


def _surely_many(system: LotterySystem, kinds: tuple[Scores, ...]) -> bool:
    """Whether there are too many profiles, without counting them.

    Ballots whose points are linearly independent lead to as many totals as there are ways to share out the voters
    among them; of one kind of points with a constant sum no two are multiples of each other.
    """
    voters = system.voters
    independent = int(np.linalg.matrix_rank(np.array([[float(p) for p in given] for given in kinds])))
    return independent > 1 and (voters >= PROFILES or comb(voters + independent - 1, voters) > PROFILES)


# --- some profiles --------------------------------------------------------------------------------

SEED = 20190705
CELLS = 4_000_000
"""Numbers that one batch of profiles takes."""


@dataclass(frozen=True, eq=False, slots=True)
class Sample:
    """Total points at profiles that are drawn from the data model (n, m)."""

    scores: NDArray[np.float64]


def draw(system: LotterySystem, law: BallotLaw, profiles: int, batches: int = 10) -> Iterator[Sample]:
    """Profiles in batches, the same ones every time: what is compared meets the same voters."""
    rng = np.random.default_rng(SEED)
    weights = np.array([float(weight) for _, weight in law])
    given = np.array([[float(p) for p in points] for points, _ in law])
    each = max(1, min(-(-profiles // batches), CELLS // max(1, len(weights))))
    left = profiles
    while left > 0:
        count = min(each, left)
        counts = rng.multinomial(system.voters, weights / weights.sum(), size=count)
        yield Sample(np.asarray(counts @ given, dtype=np.float64))
        left -= count


# --- Laws of lotteries in double precision, for many profiles at once: for simulation only, nev

Floats: TypeAlias = NDArray[np.float64]


@singledispatch
def laws(lottery: Lottery, scores: Floats) -> Floats:  # noqa: ARG001 - the form of all that are registered
    """The law of the winner at each profile.

    Args: scores (n, m), total points of the alternatives. Returns: (n, m), rows sum to 1.
    """
    raise InternalError(f"no laws in doubles for {type(lottery).__name__}")


@laws.register
def _(lottery: Proportional, scores: Floats) -> Floats:
    weights = scores + float(lottery.dummies)
    totals = weights.sum(axis=1, keepdims=True)
    even = np.full_like(weights, 1 / scores.shape[1])
    return np.where(totals > 0, weights / np.where(totals > 0, totals, 1), even)


@laws.register
def _(lottery: LocalPick, scores: Floats) -> Floats:
    voters, m = scores.sum(axis=1, keepdims=True), scores.shape[1]
    truth = float(lottery.ratio - 1) / float(lottery.ratio + m - 1)
    found: Floats = truth * laws(Proportional(), scores) + (1 - truth) / m * np.ones_like(voters)
    return found


@laws.register
def _(lottery: Largest, scores: Floats) -> Floats:  # noqa: ARG001 - dispatched on
    found = np.zeros_like(scores)
    found[np.arange(len(scores)), scores.argmax(axis=1)] = 1
    return found


@laws.register
def _(lottery: RandomisedLargest, scores: Floats) -> Floats:
    whole = lottery.ratio + scores.shape[1] - 1
    found: Floats = float(1 / whole) + float((lottery.ratio - 1) / whole) * laws(Largest(), scores)
    return found


@laws.register
def _(lottery: Exponential, scores: Floats) -> Floats:
    weights = _chances(lottery.base, scores)
    found: Floats = weights / weights.sum(axis=1, keepdims=True)
    return found


@laws.register
def _(lottery: PermuteAndFlip, scores: Floats) -> Floats:
    """The integral of `PermuteAndFlip.law` by Gauss's rule, which is exact for polynomials of this degree."""
    chances, m = _chances(lottery.base, scores), scores.shape[1]
    nodes, weights = np.polynomial.legendre.leggauss(max(1, (m + 1) // 2))
    found = np.zeros_like(scores)
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        passed = 1 - node * chances
        for a in range(m):
            found[:, a] += weight * chances[:, a] * np.delete(passed, a, axis=1).prod(axis=1)
    return found


def _chances(base: Fraction, scores: Floats) -> Floats:
    """base^(score - largest score)."""
    gaps = scores.max(axis=1, keepdims=True) - scores
    found: Floats = np.exp(-np.log1p(float(base - 1)) * gaps)
    return found


# --- costs ----------------------------------------------------------------------------------------


def costs_at(parts: Costs, winners: Floats, scores: Floats) -> Floats:
    """A sum of costs at many profiles, as `Cost.at` at one: winners and scores (n, m); result (n,)."""
    total: Floats = np.zeros(len(scores))
    for cost in parts:
        beside = laws(cost.other, scores)
        apart = (
            np.abs(winners - beside).sum(axis=1) / 2 if cost.form == "distance" else 1 - (winners * beside).sum(axis=1)
        )
        total = total + float(cost.weight) * apart
    return total


# --- The worst case over all profiles of votes: closed forms for any number of voters, else all

ROUNDING = 1e-9
"""What doubles may be wrong by, relatively, when they serve as a lower bound."""


def worst_case(system: LotterySystem, lottery: Lottery, parts: Costs) -> Estimate:
    """The largest cost over all profiles; a lower bound, so marked, where no formula and no list gives it."""
    found = _closed(system, lottery, parts)
    if found is not None:
        return Estimate(found)
    profiles = listed(system)
    if profiles is not None:
        return Estimate(
            max(exact_at(parts, lottery.law(scores), scores) for scores in profiles), profiles=len(profiles)
        )
    scores = np.array(list(_telling(system)), dtype=np.float64)
    seen = float(costs_at(parts, laws(lottery, scores), scores).max())
    return Estimate(Fraction(seen - abs(seen) * ROUNDING), at_least=True, profiles=len(scores))


# --- formulas -------------------------------------------------------------------------------------


def _closed(system: LotterySystem, lottery: Lottery, parts: Costs) -> Fraction | None:
    """Where one cost stands by itself."""
    if len(parts) != 1 or parts[0].weight < 0:
        return None
    (cost,) = parts
    found = _against_shares(system, lottery, cost)
    if found is None:
        profiles = _extreme(system, lottery, cost)
        found = None if profiles is None else max(_cost_up(cost, lottery, scores) for scores in profiles)
    return found


def exact_at(parts: Costs, law: Law, scores: Scores) -> Fraction:
    """A sum of costs at a profile."""
    return sum((cost.at(law, scores) for cost in parts), Fraction(0))


def _cost_up(cost: Cost, lottery: Lottery, scores: Scores) -> Fraction:
    """The cost at a profile; no cost moves further than the law does, in l1."""
    law, error = near_law(lottery, scores)
    return cost.at(law, scores) + cost.weight * error


def uniform_share(system: LotterySystem, lottery: Lottery) -> Fraction | None:
    """The weight of the uniform law in a lottery that is a mixture of it and the shares of points."""
    m = len(system.alternatives)
    match lottery:
        case Proportional(dummies=dummies):
            whole = system.voters * system.points.per_ballot + m * dummies
            return m * dummies / whole if whole else Fraction(1)
        case LocalPick(ratio=ratio):
            return m / (ratio + m - 1)
    return None


def unanimous_distance(system: LotterySystem) -> Fraction:
    """Total variation between the uniform law and the shares of points when all cast one of the longest ballots."""
    if len(system.alternatives) < 2:
        return Fraction(0)
    shares = [
        p / system.points.per_ballot for p in system.points.of(system.alternatives[: system.votes.ballots.places])
    ]
    even = Fraction(1, len(shares))
    return sum((abs(share - even) for share in shares), Fraction(0)) / 2


def _against_shares(system: LotterySystem, lottery: Lottery, cost: Cost) -> Fraction | None:
    """A mixture against the shares themselves: convex in the shares, so largest where everybody agrees."""
    share = uniform_share(system, lottery)
    if share is None or cost.form != "distance" or not cost.shares:
        return None
    return cost.weight * share * unanimous_distance(system)


def mixture_mean(system: LotterySystem, lottery: Lottery, parts: Costs) -> Estimate | None:
    """The average of votes missed by a mixture (1 - w) shares + w uniform, by the variance of counts; else None.

    1 - (1 - w) sum E[q^2] - w / m with E[N^2] = T p (1 - p) + T^2 p^2.
    """
    share, law, voters = uniform_share(system, lottery), system.law, system.voters
    if share is None or law is None or not isinstance(system.points, FirstChoice):
        return None
    if any(cost.form == "distance" or not cost.shares for cost in parts):
        return None
    squares = sum((p * (1 - p) / voters + p * p for _, p in law), Fraction(0))
    missed = 1 - (1 - share) * squares - share / len(system.alternatives)
    return Estimate(sum((cost.weight * missed for cost in parts), Fraction(0)))


def _extreme(system: LotterySystem, lottery: Lottery, cost: Cost) -> Iterator[Scores] | None:
    """Profiles of which one is the worst, for rules that treat alternatives alike and prefer those with more votes."""
    if not isinstance(system.points, FirstChoice):
        return None
    if cost.plurality:
        return _least_leads(system.voters, len(system.alternatives))
    even = system.voters % len(system.alternatives) == 0
    votes = cost.shares and cost.form != "distance"
    winner = isinstance(lottery, RandomisedLargest)
    if votes and (even or winner or uniform_share(system, lottery) is not None):
        return iter((_balanced(system.voters, len(system.alternatives)),))
    if winner and cost.shares:
        return _leads(system.voters, len(system.alternatives))
    return None


def _least_leads(voters: int, m: int) -> Iterator[Scores]:
    """For each number j of leaders: the least score that j of them, and no j + 1, can have; the rest in one hand."""
    for leaders in range(1, m + 1):
        score = voters // (leaders + 1) + 1 if leaders < m else voters // m
        rest = voters - leaders * score
        if score < 1 or rest < 0 or (leaders == m and rest):
            continue
        yield _profile((score,) * leaders + ((rest,) if leaders < m else ()), m)


def _leads(voters: int, m: int) -> Iterator[Scores]:
    """For each number j of leaders: the least and the largest score that j of them, and no j + 1, can have."""
    yield from _least_leads(voters, m)
    for leaders in range(1, m):
        score = voters // leaders
        rest = voters - leaders * score
        if score > rest:
            yield _profile((score,) * leaders + (rest,), m)


def _balanced(voters: int, m: int) -> Scores:
    each, more = divmod(voters, m)
    return _profile([each + 1] * more + [each] * (m - more), m)


def _profile(votes: Sequence[int], m: int) -> Scores:
    return tuple(Fraction(v) for v in (*votes, *(0,) * (m - len(votes))))


# --- profiles to look at --------------------------------------------------------------------------


def _telling(system: LotterySystem) -> Iterator[list[float]]:
    """Profiles where rules tend to be at their worst: everybody agrees, two camps, all alternatives alike."""
    m, voters = len(system.alternatives), system.voters
    first = [float(p) for p in system.points.of(system.alternatives[: system.votes.ballots.places])]
    second = [first[1], first[0], *first[2:]] if m > 1 else first
    third = first[::-1]
    gaps = {0, 1, 2, 3, voters, *(int(voters * t / 64) for t in range(64))}
    gaps |= {int(1.2**i) for i in range(1, 90) if 1.2**i < voters}
    for gap in sorted(g for g in gaps if 0 <= g <= voters):
        fewer = (voters - gap) // 2
        for other in (second, third):
            yield [fewer * b + (voters - fewer) * a for a, b in zip(first, other, strict=True)]
    if isinstance(system.points, FirstChoice):
        yield [float(v) for v in _balanced(voters, m)]
        yield from ([float(v) for v in profile] for profile in _least_leads(voters, m))


# --- Averages under the data model: exact where profiles can be listed, else over profiles that

LONGEST = 1 << 10
"""Binary digits beyond which a denominator is cut down to a quarter of them, upwards: powers share no factors."""
DRAWN = 20_000
"""Profiles that averages are taken over."""


@dataclass(frozen=True, eq=False)
class Averages:
    """Averages of several costs for several lotteries at the same profiles.

    Args: deadline in seconds, after which OutOfTimeError is raised: fewer profiles might have another winner; progress
    as in `Settings`.
    """

    system: LotterySystem
    deadline: float | None = None
    progress: Callable[[int, float, float], None] | None = None

    @cached_property
    def profiles(self) -> Mapping[Scores, Fraction] | None:
        """All of them with their probabilities, where they are few; those that permute alternatives as one.

        Every lottery treats alternatives alike, but for which of several equals is declared first: costs are the same.
        """
        every = None if self.system.law is None else listed(self.system, self.system.law)
        if every is None:
            return None
        found: dict[Scores, Fraction] = {}
        for scores, mass in every.items():
            ordered = tuple(sorted(scores, reverse=True))
            found[ordered] = found.get(ordered, Fraction(0)) + mass
        return found

    def of(self, lotteries: Sequence[Lottery], bodies: Sequence[Costs]) -> list[list[Estimate]]:
        """For each lottery, the average of each body."""
        if self.profiles is not None:
            return [self._exact(lottery, bodies) for lottery in lotteries]
        known = [[mixture_mean(self.system, lottery, body) for body in bodies] for lottery in lotteries]
        left = [lottery for lottery, row in zip(lotteries, known, strict=True) if None in row]
        drawn = iter(self._drawn(left, bodies) if left else [])
        out: list[list[Estimate]] = []
        for row in known:
            simulated = next(drawn) if None in row else [one for one in row if one is not None]
            out.append([one if one is not None else other for one, other in zip(row, simulated, strict=True)])
        return out

    def _exact(self, lottery: Lottery, bodies: Sequence[Costs]) -> list[Estimate]:
        assert self.profiles is not None
        totals = [Fraction(0)] * len(bodies)
        for scores, mass in self.profiles.items():
            law = lottery.law(scores)
            for i, body in enumerate(bodies):
                totals[i] += _short(mass * exact_at(body, law, scores))
        return [Estimate(total, profiles=len(self.profiles)) for total in totals]

    def _drawn(self, lotteries: Sequence[Lottery], bodies: Sequence[Costs]) -> list[list[Estimate]]:
        assert self.system.law is not None
        watch = Watch(self.deadline)
        count = 0
        sums = np.zeros((2, len(lotteries), len(bodies)))
        for sample in draw(self.system, self.system.law, DRAWN):
            if watch.expired:
                raise OutOfTimeError(None)
            for i, lottery in enumerate(lotteries):
                winners = laws(lottery, sample.scores)
                for j, body in enumerate(bodies):
                    costs = costs_at(body, winners, sample.scores)
                    sums[:, i, j] += costs.sum(), (costs * costs).sum()
            count += len(sample.scores)
            if self.progress is not None and sums.size:
                self.progress(count, float(sums[0].min() / count), 0.0)
        mean = sums[0] / count
        error = np.sqrt(np.maximum(sums[1] / count - mean * mean, 0) / max(count - 1, 1))
        return [
            [Estimate(Fraction(float(m)), False, float(e), count) for m, e in zip(ms, es, strict=True)]
            for ms, es in zip(mean, error, strict=True)
        ]


def _short(value: Fraction) -> Fraction:
    """As it is where it is short, else rounded up far below what a double can show."""
    if value.denominator.bit_length() <= LONGEST:
        return value
    scale = 1 << (LONGEST // 4)
    return Fraction(-(-value.numerator * scale // value.denominator), scale)
