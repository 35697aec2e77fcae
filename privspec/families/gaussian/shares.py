"""A release in a secure sum: what a curator would execute, its noise in shares (noise/notes/shares.md).

Every party computes its own part of the strategy answers and adds a share of the noise; the sum is what is released.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from privspec.core.matrices import common
from privspec.families.decision import Infeasible
from privspec.families.gaussian.accuracy import within_limits
from privspec.families.gaussian.problem import Problem
from privspec.families.gaussian.release import Candidate, LinearRelease, input_grid_bits
from privspec.kernel.shares import SMOOTHING
from privspec.noise.gaussian import GaussianNoise
from privspec.noise.laplace import LaplaceNoise
from privspec.noise.shares import GaussianShares, LaplaceShares, Shares
from privspec.problem.linear import grid_of, held_of
from privspec.problem.linear_supported import parties_of

AT_THE_CURATOR = ", at the curator"


def in_shares(problem: Problem, candidate: Candidate) -> Candidate | None:
    """The same in shares, of which those of a coalition do not count; None for noise that has no shares."""
    trust, model = problem.model.trust, problem.model
    parties = parties_of(model)
    honest = parties - trust.colluding
    mechanism, factor = candidate.mechanism, parties / honest
    if mechanism is not None:
        unknown = problem.sizes and honest < parties and isinstance(mechanism.release.noise, LaplaceNoise)
        release = None if unknown else _shared(problem, mechanism.release, parties, honest)
        if release is None:
            return None
        mechanism = replace(mechanism, release=release)
    return replace(
        candidate,
        name=candidate.name.removesuffix(AT_THE_CURATOR) + ", in shares",
        loss=problem.scaled(candidate.loss, factor),
        lower_bound=None if candidate.lower_bound is None else candidate.lower_bound * factor,
        among=candidate.among and f"shares of {candidate.among}",
        mechanism=mechanism,
    )


def within_limits_in_shares(problem: Problem, budgets: tuple[float, ...]) -> Candidate | Infeasible | None:
    """The least loss of Gaussian shares that meet every accuracy line: without a coalition they meet narrower ones."""
    trust, model = problem.model.trust, problem.model
    parties = parties_of(model)
    left = (parties - trust.colluding) / parties
    limits = tuple(replace(limit, bound=limit.bound * left) for limit in problem.system.limits)
    narrow = Problem(model, replace(problem.system, limits=limits), problem.settings, problem.best_loss)
    found = within_limits(narrow, budgets)
    if isinstance(found, Infeasible):
        # what would be accepted is said of the noise that is left
        return found if not trust.colluding else replace(found, relaxations=())
    return in_shares(problem, found)


def _shared(problem: Problem, release: LinearRelease, parties: int, honest: int) -> LinearRelease | None:
    """On a lattice that every answer of every party is a point of."""
    grid = release.strategy.unit * common(_points(problem, release))
    noise = release.noise
    law: Shares
    if isinstance(noise, GaussianNoise):
        law = GaussianShares(parties, honest, (noise.standard_deviation**2 + SMOOTHING * grid**2) / honest)
    elif isinstance(noise, LaplaceNoise):
        law = LaplaceShares(parties, honest, noise.scales)
    else:
        return None
    return replace(release, noise=law, grid=str(grid))


def _points(problem: Problem, release: LinearRelease) -> Iterable[Fraction]:
    """What all values of the inputs are whole multiples of."""
    bits = input_grid_bits(problem, release)
    for block, held in zip(problem.model.blocks, map(held_of, problem.model.blocks), strict=True):
        low, high = held.lower, held.upper
        width = Fraction(1) if low is None or high is None else high - low
        yield grid_of(block, bits) * (held.ball.radius if held.ball else width)
        if low and held.ball is None:
            yield abs(low)
