"""How the printed figures come out: noise of the paper's size on statistics that its bounds do not hold for.

Records are not clipped, the bound B on the weights is not enforced, and the noise is that for clipped records and
enforced bounds. Simulations of these are comparisons, not mechanisms: `true_epsilons` says what they would guarantee.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import pi, sqrt

import numpy as np
from crowds import Array, Candidate, Source, algorithm

from privspec.families.statistics.predict import StatisticSystem
from privspec.families.statistics.shapes import LAPLACE, AddedNoise
from privspec.functions.probit import Objective, Result
from privspec.kernel.laws.statistics import statistics_of
from privspec.model.domains import L1Ball
from privspec.model.library import Records

NOT_ENFORCED = 5
"""Where the bound is not enforced, estimates reach about that many times B before they stop mattering.

With 5 the printed accuracies come out. Algorithm 3 solves in the ball of B, which costs no privacy.
"""


def printed(number: int, epsilon: float, **parameters: float) -> Candidate:
    """Algorithm 1, 2 or 3 as the printed figures read it: see the head of this file."""
    return uncalibrated(algorithm(number, epsilon, **parameters))


def uncalibrated(honest: Candidate) -> Candidate:
    """The same with records and bound as they come, and the noise of the paper."""
    system, way = honest.system, honest.way
    raw = Records(system.block.count, system.block.dimension, None)
    within = way.route.within  # type: ignore[attr-defined]
    if way.route.at == "objective":
        route: Objective | Result = Objective(raw, within, Fraction(1))
        spread = Fraction(paper_spread(raw.dimension))
    else:
        wide = L1Ball(within.radius * NOT_ENFORCED, within.dimension)
        route, spread = Result(raw, wide), 2 * within.radius
    noise = tuple(AddedNoise(LAPLACE, one.amount, spread, one.size) for one in way.noise)  # type: ignore[attr-defined]
    return replace(honest, system=unclipped(system), way=replace(way, route=route, noise=noise))


def unclipped(system: StatisticSystem) -> StatisticSystem:
    """The same with records of any length, which offer fewer places for noise."""
    offered = statistics_of(replace(system.block.records, radius=None))
    routes = tuple(route for route in system.block.routes if route.at in offered)
    return replace(system, block=replace(system.block, radius=None, routes=routes))


def paper_spread(dimension: int) -> float:
    """The sensitivity of Algorithm 3 that the paper states, for records of length one: 2 sqrt(2 d / pi) + 2 d / pi."""
    return 2 * sqrt(2 * dimension / pi) + 2 * dimension / pi


def true_epsilons(candidate: Candidate, source: Source, crowds: int, seed: int = 1) -> Array:
    """The epsilon of each of some crowds, at the least: what replacing a unit by another of the same crowd shows.

    Laplace noise of a scale tells two statistics apart with epsilon equal to their l1 distance over the scale. The
    unit is a voter's whole statistic in Algorithms 1 and 2, and in 3 one record, by another of the same voter. For all
    data there is no bound at all, because records have none.
    """
    random = np.random.default_rng(seed)
    scale = float(candidate.way.noise[0].scale)  # type: ignore[attr-defined]
    worst = []
    for _ in range(crowds):
        records = source(random)[0].records
        if candidate.way.route.at == "objective":
            worst.append(max(_widest(candidate.way.route.statistic(voter[:, None, :])) for voter in records[:10]))
        else:
            worst.append(_widest(candidate.way.route.statistic(records)))
    return np.array(worst) / scale


def _widest(points: Array) -> float:
    """The largest l1 distance of two rows."""
    return float(np.abs(points[:, None, :] - points[None, :, :]).sum(axis=-1).max())
