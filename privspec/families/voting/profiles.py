"""What a lottery costs over profiles of votes: worst cases by formula or one by one, averages exact or simulated.

Formulas, laws and lists of profiles are the kernel's; where it knows none, a worst case is bounded from below and an
average is simulated, in doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache, singledispatch
from math import hypot
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass
from privspec.families.voting.rules import VotingSystem
from privspec.kernel.core.reading import Refused
from privspec.kernel.laws.voting import (
    PLURALITY,
    ByPowers,
    DummyVotes,
    OneReport,
    PermuteAndFlip,
    Plurality,
    Scores,
    TurnedWinner,
    VotingRule,
)
from privspec.kernel.voting import RuleAt, every_profile, totals, unanimous
from privspec.model.voting import Lottery
from privspec.problem.voting import BallotLaw, Costs, beside
from privspec.solvers.programs import OutOfTimeError, Watch

Profiles: TypeAlias = list[tuple[Scores, Fraction]]
"""Total points of the alternatives with their probabilities."""
Floats: TypeAlias = NDArray[np.float64]


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

    def __add__(self, other: Estimate) -> Estimate:
        """The sum; errors of averages add up as if they were independent."""
        return Estimate(
            self.value + other.value,
            self.at_least or other.at_least,
            hypot(self.standard_error, other.standard_error),
            max(self.profiles, other.profiles),
        )


# --- exact: a formula, or all profiles where they are few


def rule_of(lottery: Lottery) -> RuleAt:
    """As the kernel knows it."""
    return RuleAt(lottery.rule, lottery.number)


@lru_cache(maxsize=4)
def listed(system: VotingSystem, law: BallotLaw | None = None) -> Profiles | None:
    """Every total of points with its probability under a law (without one: no sense), alternatives permuted as one.

    None where there are too many to list.
    """
    try:
        ballots = system.votes.ballots
        if law is None:
            return [(one, Fraction(1)) for one in every_profile(system.votes)]
        return totals(ballots, system.votes.voters, law)
    except Refused:
        return None


def exact_at(parts: Costs, law: Sequence[Fraction], scores: Scores) -> Fraction:
    """A sum of costs at a profile."""
    return sum((cost.at(list(law), scores) for cost in parts), Fraction(0))


def worst_case(system: VotingSystem, lottery: Lottery, parts: Costs) -> Estimate:
    """The largest cost over all profiles; a lower bound, so marked, where no formula and no list gives it."""
    rule = rule_of(lottery)
    known = parts[0].worst(rule, system.votes) if len(parts) == 1 else []
    every = None if known else listed(system)
    if known or every is not None:
        profiles = known or [scores for scores, _ in every or ()]
        worst = max(exact_at(parts, rule.law(scores), scores) for scores in profiles)
        return Estimate(worst, profiles=0 if known else len(profiles))
    scores = np.array(list(_telling(system)), dtype=np.float64)
    seen = float(costs_at(parts, laws(rule, scores), scores).max())
    return Estimate(Fraction(seen - abs(seen) * ROUNDING), at_least=True, profiles=len(scores))


def unanimous_distance(system: VotingSystem) -> Fraction:
    """Total variation between the uniform law and the shares of points when all agree who are free to."""
    points = unanimous(system.votes)
    whole, even = sum(points), Fraction(1, len(points))
    return sum((abs(p / whole - even) for p in points), Fraction(0)) / 2 if whole else Fraction(0)


# --- in doubles -------------------------------------------------------------------------------------------

ROUNDING = 1e-9
"""What doubles may be wrong by, relatively, when they serve as a lower bound."""
SEED = 20190705
CELLS = 4_000_000
"""Numbers that one batch of profiles takes."""


@dataclass(frozen=True, eq=False, slots=True)
class Sample:
    """Total points at profiles that are drawn from the data model (n, m)."""

    scores: NDArray[np.float64]


def draw(system: VotingSystem, law: BallotLaw, profiles: int, batches: int = 10) -> Iterator[Sample]:
    """Profiles in batches, the same ones every time: what is compared meets the same voters."""
    rng = np.random.default_rng(SEED)
    weights = np.array([float(weight) for _, weight in law])
    given = np.array([[float(p) for p in points] for points, _ in law])
    each = max(1, min(-(-profiles // batches), CELLS // max(1, len(weights))))
    left = profiles
    while left > 0:
        count = min(each, left)
        counts = rng.multinomial(system.votes.voters, weights / weights.sum(), size=count)
        yield Sample(np.asarray(counts @ given, dtype=np.float64))
        left -= count


def laws(rule: RuleAt, scores: Floats) -> Floats:
    """The law of the winner at each profile, for simulation only.

    Args: scores (n, m), total points of the alternatives. Returns: (n, m), rows sum to 1.
    """
    weights = _weights(rule.rule, rule.number, scores)
    weights[~weights.any(axis=1)] = 1
    normed: Floats = weights / weights.sum(axis=1, keepdims=True)
    return normed


@singledispatch
def _weights(rule: VotingRule, number: Fraction, scores: Floats) -> Floats:
    """What the laws at profiles are in proportion to (n, m); of a rule that nothing faster is known for one by one."""
    every = ([Fraction(float(points)) for points in row] for row in scores)
    return np.array([[float(p) for p in rule.law(number, tuple(row))] for row in every])


@_weights.register
def _(rule: DummyVotes, number: Fraction, scores: Floats) -> Floats:  # noqa: ARG001
    return np.add(scores, float(number))


@_weights.register
def _(rule: OneReport, number: Fraction, scores: Floats) -> Floats:  # noqa: ARG001
    whole: Floats = scores.sum(axis=1, keepdims=True)
    return scores * (float(number) - 1) + whole


@_weights.register
def _first(rule: Plurality | TurnedWinner, number: Fraction, scores: Floats) -> Floats:
    """1 for the alternative with the most points, of several for the first; of randomised response more."""
    first = np.zeros_like(scores)
    first[np.arange(len(scores)), scores.argmax(axis=1)] = 1
    return first if isinstance(rule, Plurality) else first * (float(number) - 1) + 1


@_weights.register
def _(rule: ByPowers, number: Fraction, scores: Floats) -> Floats:  # noqa: ARG001
    gaps = scores.max(axis=1, keepdims=True) - scores
    chances: Floats = np.exp(-np.log1p(float(number - 1)) * gaps)
    return chances


@_weights.register
def _(rule: PermuteAndFlip, number: Fraction, scores: Floats) -> Floats:
    """The integral of its law by Gauss's rule, which is exact for polynomials of this degree."""
    m, chances = scores.shape[1], _weights.dispatch(ByPowers)(rule, number, scores)
    nodes, shares = np.polynomial.legendre.leggauss(max(1, (m + 1) // 2))
    found = np.zeros_like(scores)
    for node, share in zip((nodes + 1) / 2, shares / 2, strict=True):
        passed = 1 - node * chances
        for a in range(m):
            found[:, a] += share * chances[:, a] * np.delete(passed, a, axis=1).prod(axis=1)
    return found


def costs_at(parts: Costs, winners: Floats, scores: Floats) -> Floats:
    """A sum of costs at many profiles, as `Cost.at` at one: winners and scores (n, m); result (n,)."""
    total: Floats = np.zeros(len(scores))
    for cost in parts:
        other = laws(cost.beside[1], scores)
        apart = (
            np.abs(winners - other).sum(axis=1) / 2 if cost.form == "distance" else 1 - (winners * other).sum(axis=1)
        )
        total = total + float(cost.weight) * apart
    return total


def _telling(system: VotingSystem) -> Iterator[list[float]]:
    """Profiles where rules tend to be at their worst: everybody agrees, two camps, all alternatives alike."""
    m, sure = system.votes.ballots.size, system.votes.ballots.supporters
    voters = system.votes.voters - sure * m
    first = [float(p) for p in system.votes.ballots.points(tuple(range(system.votes.ballots.places)))]
    second = [first[1], first[0], *first[2:]] if m > 1 else first
    third = first[::-1]
    gaps = {0, 1, 2, 3, voters, *(int(voters * t / 64) for t in range(64))}
    gaps |= {int(1.2**i) for i in range(1, 90) if 1.2**i < voters}
    for gap in sorted(g for g in gaps if 0 <= g <= voters):
        fewer = (voters - gap) // 2
        for other in (second, third):
            yield [sure + fewer * b + (voters - fewer) * a for a, b in zip(first, other, strict=True)]
    if not system.votes.ballots.borda and not sure:
        for one in beside("mismatch", Lottery(PLURALITY)).worst(RuleAt(PLURALITY), system.votes):
            yield [float(v) for v in one]


# --- averages under the data model ------------------------------------------------------------------------

DRAWN = 20_000
"""Profiles that averages are taken over."""


@dataclass(frozen=True, eq=False)
class Averages:
    """Averages of several costs for several lotteries at the same profiles.

    Args: deadline in seconds, after which OutOfTimeError is raised: fewer profiles might have another winner; progress
    as in `Settings`.
    """

    system: VotingSystem
    deadline: float | None = None
    progress: Callable[[int, float, float], None] | None = None

    @cached_property
    def profiles(self) -> Profiles | None:
        """All of them with their probabilities, where they are few."""
        return None if self.system.votes.law is None else listed(self.system, self.system.votes.law)

    def of(self, lotteries: Sequence[Lottery], bodies: Sequence[Costs]) -> list[list[Estimate]]:
        """For each lottery, the average of each body."""
        if self.profiles is not None:
            return [self._exact(lottery, bodies) for lottery in lotteries]
        known = [[self._formula(lottery, body) for body in bodies] for lottery in lotteries]
        left = [lottery for lottery, row in zip(lotteries, known, strict=True) if None in row]
        drawn = iter(self._drawn(left, bodies) if left else [])
        out: list[list[Estimate]] = []
        for row in known:
            simulated = next(drawn) if None in row else [one for one in row if one is not None]
            out.append([one if one is not None else other for one, other in zip(row, simulated, strict=True)])
        return out

    def _exact(self, lottery: Lottery, bodies: Sequence[Costs]) -> list[Estimate]:
        assert self.profiles is not None
        totals, rule = [Fraction(0)] * len(bodies), rule_of(lottery)
        for scores, mass in self.profiles:
            law = rule.law(scores)
            for i, body in enumerate(bodies):
                totals[i] += mass * exact_at(body, law, scores)
        return [Estimate(total, profiles=len(self.profiles)) for total in totals]

    def _formula(self, lottery: Lottery, parts: Costs) -> Estimate | None:
        """By a formula, where profiles are too many to list; None where there is none."""
        try:
            law = self.system.votes.law or ()
            return Estimate(sum((c.mean(rule_of(lottery), self.system.votes, law) for c in parts), Fraction(0)))
        except Refused:
            return None

    def _drawn(self, lotteries: Sequence[Lottery], bodies: Sequence[Costs]) -> list[list[Estimate]]:
        assert self.system.votes.law is not None
        watch = Watch(self.deadline)
        count = 0
        sums = np.zeros((2, len(lotteries), len(bodies)))
        for sample in draw(self.system, self.system.votes.law, DRAWN):
            if watch.expired:
                raise OutOfTimeError(None)
            for i, lottery in enumerate(lotteries):
                winners = laws(rule_of(lottery), sample.scores)
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
