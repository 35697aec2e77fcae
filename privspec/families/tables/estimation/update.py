"""Iterative Bayesian update: from the uniform law to one of greatest likelihood, many samples at once.

One update (Agrawal & Aggarwal 2001; Palamidessi's lecture) is p_x <- p_x g_x with g_x = sum_y q_y C_xy / (p C)_y, an
EM step: it never lowers the log-likelihood L(p) = sum_y n_y log (p C)_y. Near-uniform tables, which privacy asks for,
make it crawl, so the exponent of g is raised while L grows and lowered when it does not (adaptive overrelaxation,
Salakhutdinov & Roweis 2003); a step that would lower L is replaced by the plain update. Fixed points are the same.

Stopping: L is concave and sum_x p_x g_x = 1, so no law has a log-likelihood above L(p) + n (max_x g_x - 1), the duality
gap of Frank and Wolfe. A gap of 0.01 means that the law found is at most 1 % less likely than the best one.

The start has full support: a share that starts at 0 stays 0. The lecture says that the fixed point and the law of
greatest likelihood are unique where C is invertible; they need not be when some reports never occur
(`Channel.unique_maximum`), and the answer then depends on the start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privspec.families.tables.estimation.channel import Array

GROW, SHRINK = 1.2, 0.25
_LOG_RANGE = 50.0
"""No share changes by more than a factor of e^50 in one step."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When the update stops: at a `gap` in log-likelihood, or after so many steps."""

    gap: float = 0.01
    steps: int = 50_000


FINE = Limits()
COARSE = Limits(0.1, 5_000)
"""For simulations: far below the spread from sample to sample."""


@dataclass(frozen=True, eq=False, slots=True)
class Updated:
    """Shares (runs, values), the gap in log-likelihood of each run, which of them reached the limit, and the steps."""

    shares: Array
    gap: Array
    converged: NDArray[np.bool_]
    steps: int


def bayesian_update(matrix: Array, counts: Array, limits: Limits = FINE) -> Updated:
    """Laws of greatest likelihood, up to the limits.

    Args: matrix (values, reports); counts (runs, reports), at least one report in each run, and none that no value
        can lead to.
    """
    occurred = counts.sum(axis=0) > 0
    table = matrix[:, occurred]
    people = counts.sum(axis=1)
    shares = np.full((len(counts), len(matrix)), 1 / len(matrix))
    gaps = np.full(len(counts), np.inf)
    active = np.arange(len(counts))
    state = _State.start(table, counts[:, occurred] / people[:, None], shares)
    steps = 0
    while True:
        gain = state.gain()
        gaps[active] = people[active] * (gain.max(axis=1) - 1)
        shares[active] = state.shares
        open_ = gaps[active] > limits.gap
        if not open_.any() or steps == limits.steps:
            return Updated(shares, np.maximum(gaps, 0), gaps <= limits.gap, steps)
        if not open_.all():
            active, gain = active[open_], gain[open_]
            state = state.only(open_)
        state = state.step(gain)
        steps += 1


@dataclass(frozen=True, eq=False, slots=True)
class _State:
    """Runs that go on: their laws, the laws of reports that follow, log-likelihoods a report, exponents."""

    table: Array
    observed: Array
    shares: Array
    expected: Array
    likelihood: Array
    exponent: Array

    @classmethod
    def start(cls, table: Array, observed: Array, shares: Array) -> _State:
        expected = shares @ table
        return cls(table, observed, shares, expected, _likelihood(observed, expected), np.ones((len(observed), 1)))

    def gain(self) -> Array:
        """The factors g of the plain update (runs, values)."""
        gain: Array = (self.observed / self.expected) @ self.table.T
        return gain

    def only(self, keep: NDArray[np.bool_]) -> _State:
        return _State(
            self.table,
            self.observed[keep],
            self.shares[keep],
            self.expected[keep],
            self.likelihood[keep],
            self.exponent[keep],
        )

    def step(self, gain: Array) -> _State:
        """The overrelaxed update, or the plain one where it does not lower the likelihood."""
        with np.errstate(divide="ignore"):
            factor = np.clip(self.exponent * np.log(gain), -_LOG_RANGE, _LOG_RANGE)
        shares = self.shares * np.exp(factor)
        shares /= shares.sum(axis=1, keepdims=True)
        expected = shares @ self.table
        likelihood = _likelihood(self.observed, expected)
        worse = ~(likelihood >= self.likelihood)
        exponent = np.where(worse[:, None], np.maximum(self.exponent * SHRINK, 1), self.exponent * GROW)
        if worse.any():
            shares[worse] = (self.shares * gain)[worse]
            expected[worse] = shares[worse] @ self.table
            likelihood[worse] = _likelihood(self.observed[worse], expected[worse])
        return _State(self.table, self.observed, shares, expected, likelihood, exponent)


def _likelihood(observed: Array, expected: Array) -> Array:
    """Log-likelihood a report (runs,); reports of a batch that a run does not have do not count in it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(observed > 0, observed * np.log(expected), 0.0)
    total: Array = terms.sum(axis=1)
    return total
