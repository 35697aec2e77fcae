"""From local reports back to the law of what was reported on: a table as a channel, and estimators of its input.

Iterative Bayesian update goes from the uniform law to one of greatest likelihood, many samples at once. One
update (Agrawal & Aggarwal 2001; Palamidessi's lecture) is p_x <- p_x g_x with g_x = sum_y q_y C_xy / (p C)_y, an
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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Channel:
    """Pr(report | value), `matrix` (values, reports) with rows that sum to one, and a text for each value."""

    matrix: Array
    values: tuple[str, ...]

    @classmethod
    def of(cls, table: Sequence[Sequence[Fraction | float]] | NDArray[Any], values: Sequence[str] = ()) -> Channel:
        """A table of exact or floating-point probabilities.

        Raises: ValueError if a row is no law.
        """
        matrix = np.array([[float(p) for p in row] for row in table], dtype=np.float64)
        if matrix.ndim != 2 or not matrix.size or np.any(matrix < 0) or np.any(abs(matrix.sum(axis=1) - 1) > 1e-9):
            raise ValueError("each row of the table must be a law")
        return cls(matrix, tuple(values) or tuple(str(i + 1) for i in range(len(matrix))))

    @property
    def size(self) -> int:
        """The number of values whose shares are wanted."""
        return len(self.matrix)

    @cached_property
    def rank(self) -> int:
        """How many shares the law of the reports determines."""
        return int(np.linalg.matrix_rank(self.matrix))

    @property
    def identified(self) -> bool:
        """Whether the law of the reports determines all shares: without it, no number of reports tells them apart."""
        return self.rank == self.size

    def unique_maximum(self, counts: Array) -> bool:
        """Whether one law alone has the greatest likelihood.

        The likelihood looks at the reports that occurred only; two laws that give these the same probabilities are as
        likely, even if the whole table is invertible.
        """
        seen = self.matrix[:, counts > 0]
        return int(np.linalg.matrix_rank(np.column_stack([seen, np.ones(self.size)]))) == self.size

    @cached_property
    def inverse(self) -> Array:
        """Least squares (reports, values): q @ inverse is the r nearest to q = r C, before it must sum to one."""
        inverse: Array = np.linalg.pinv(self.matrix).astype(np.float64)
        return inverse

    @cached_property
    def correction(self) -> Array:
        """What is added for each unit that the shares lack of one, so that they stay nearest in least squares."""
        towards: Array = np.linalg.pinv(self.matrix @ self.matrix.T).sum(axis=1)
        total = float(towards.sum())
        return towards / total if total > 0 else np.full(self.size, 1 / self.size)

    def reports(self, law: Array, people: int, runs: int, generator: np.random.Generator) -> Array:
        """Counts of reports (runs, reports) of so many people whose values have a law (values,) or (runs, values)."""
        shares = np.clip(law @ self.matrix, 0, None)
        return generator.multinomial(people, shares / shares.sum(axis=-1, keepdims=True), size=runs).astype(np.float64)


# --- iterative Bayesian update --------------------------------------------------------------------


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


# --- estimators -----------------------------------------------------------------------------------


def inverse(channel: Channel, counts: Array, limits: Limits = FINE) -> Array:  # noqa: ARG001
    """Matrix inversion, r = q C^-1 (Kairouz, Bonawitz & Ramage 2016); least squares where C is not square.

    Unbiased where the shares are identified, and the only one here that is: shares below 0 or above 1 are its price.
    Where there are more reports than values, r minimises |r C - q| among vectors that sum to one.
    """
    raw = counts / counts.sum(axis=1, keepdims=True) @ channel.inverse
    return np.asarray(raw + (1 - raw.sum(axis=1, keepdims=True)) * channel.correction)


def clip(channel: Channel, counts: Array, limits: Limits = FINE) -> Array:  # noqa: ARG001
    """Matrix inversion, negative shares set to 0, the rest scaled to sum to one.

    Scaling pulls large shares down where much was clipped; at low signal this shrinking is what makes it good.
    """
    kept = np.clip(inverse(channel, counts), 0, None)
    return np.asarray(kept / kept.sum(axis=1, keepdims=True))


def simplex(channel: Channel, counts: Array, limits: Limits = FINE) -> Array:  # noqa: ARG001
    """The law nearest to the matrix inversion in Euclidean distance (Duchi et al. 2008): one number is taken off all.

    Never farther from the truth than the inversion itself in that distance, since the truth is a law.
    """
    return project(inverse(channel, counts))


def project(points: Array) -> Array:
    """The nearest points (runs, k) of the probability simplex, by sorting."""
    falling = -np.sort(-points, axis=1)
    excess = np.cumsum(falling, axis=1) - 1
    ranks = np.arange(1, points.shape[1] + 1)
    support = np.count_nonzero(falling * ranks > excess, axis=1)
    level = excess[np.arange(len(points)), support - 1] / support
    shares: Array = np.clip(points - level[:, None], 0, None)
    return shares


def update(channel: Channel, counts: Array, limits: Limits = FINE) -> Array:
    """Iterative Bayesian update: from the uniform law to within the limits of the greatest likelihood."""
    return bayesian_update(channel.matrix, counts, limits).shares


def _of_update(channel: Channel, counts: Array) -> Iterator[str]:
    """Whether the steps sufficed, and whether the maximum is unique."""
    found = bayesian_update(channel.matrix, counts[None, :])
    if not found.converged.all():
        gap = f"{found.gap.max():.2g}"
        yield f"stopped after {found.steps} steps: the log-likelihood is at most {gap} below its maximum"
    if channel.identified and not channel.unique_maximum(counts):
        yield (
            "several laws are equally likely, since some reports never occurred: this is the one that the update "
            "reaches from the uniform law"
        )


@dataclass(frozen=True, slots=True)
class Estimator:
    """A way from counts of reports to shares of values: its name, as it is asked for, and its title in words.

    `shares`: estimates (runs, values) from counts of reports (runs, reports), of which every run has one; `more`: what
    a reader of an estimate from counts (reports,) must know of this one.
    """

    name: str
    title: str
    shares: Callable[..., Array]
    more: Callable[[Channel, Array], Iterable[str]] = lambda *_: ()

    def notes(self, channel: Channel, counts: Array) -> tuple[str, ...]:
        """What a reader of an estimate from these counts (reports,) must know."""
        unknown = (
            f"the reports determine {channel.rank} of {channel.size} shares only: values that lead to the same mix of "
            "reports cannot be told apart by any number of them"
        )
        return (*(() if channel.identified else (unknown,)), *self.more(channel, counts))


_NEGATIVE = "unbiased; small shares can come out negative"
ESTIMATORS: Mapping[str, Estimator] = {
    one.name: one
    for one in (
        Estimator("inverse", "matrix inversion", inverse, lambda *_: (_NEGATIVE,)),
        Estimator("clip", "matrix inversion, clipped at 0 and rescaled", clip),
        Estimator("simplex", "matrix inversion, projected on the laws", simplex),
        Estimator("ibu", "iterative Bayesian update (maximum likelihood)", update, _of_update),
    )
}
"""All estimators by name."""
