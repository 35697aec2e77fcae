"""Profiles of votes: all of them where they are few, else some that are drawn under the data model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb, lcm
from operator import add
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.compile.lotteries.system import LotterySystem
from privspec.problem.vote_forms import BallotLaw

Scores: TypeAlias = tuple[Fraction, ...]
PROFILES = 5000
"""Profiles that are listed one by one."""


# --- all profiles ---------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def listed(system: LotterySystem, law: BallotLaw | None = None) -> dict[Scores, Fraction] | None:
    """Every total of points that the voters can reach with its probability under a law (0 without one).

    None where there are more than `PROFILES`.
    """
    kinds = system.votes.kinds if law is None else law.points
    if not kinds or _surely_many(system, kinds):
        return None
    shares = (Fraction(0),) * len(kinds) if law is None else law.weights
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
    weights = np.array([float(w) for w in law.weights])
    given = np.array([[float(p) for p in points] for points in law.points])
    each = max(1, min(-(-profiles // batches), CELLS // max(1, len(weights))))
    left = profiles
    while left > 0:
        count = min(each, left)
        counts = rng.multinomial(system.voters, weights / weights.sum(), size=count)
        yield Sample(np.asarray(counts @ given, dtype=np.float64))
        left -= count
