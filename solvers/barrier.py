"""A log-barrier method for noise at given places.

Coordinates in which the barrier method moves: independent noise, or any covariance.

A state S carries unit noise to covariance S S'; a move X takes it to S (I + X) S'.

Log-barrier Newton method for Gaussian placement (MATH.md section 2; notes/placement.md).

One method serves two kinds of unknown. Write the covariance as `S S'` carried to the outputs by site maps;
a relative move `S (I + X) S'` has X diagonal when the sites' noise is independent, and X symmetric when any
covariance is allowed. In these coordinates the Newton matrix of the log barrier is the identity plus
positive semidefinite terms, so duplicate sites and vanishing variances do no harm.

With N = A S for a view (A its maps), Sigma = N N', G = N' Sigma^-1 V, H = N' Sigma^-1 N, q = colsum of V' Sigma^-1 V:
    dq_i[X] = -g_i' X g_i        d2q_i[X, X] = 2 g_i' X H X g_i
An l2 ball of differences spanned by the columns V_b has the term -log det(I - V_b' Sigma^-1 V_b).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from privspec.solvers.programs import Array, Indices, Watch
from scipy import linalg


class Chart(ABC):
    """Coordinates of the unknown: how a state S moves, and the quadratic forms of a move."""

    @abstractmethod
    def carry(self, maps: Array, state: Array) -> Array:
        """Return maps @ S."""

    @abstractmethod
    def squares(self, columns: Array) -> Array:
        """The linear forms X -> g' X g, one column (d, N) for each column g of `columns` (K, N)."""

    @abstractmethod
    def curvature(self, left: Array, right: Array) -> Array:
        """The bilinear form (X, X') -> tr(left X right X'), symmetrised, as a matrix (d, d)."""

    @abstractmethod
    def trace(self) -> Array:
        """The linear form X -> tr X (d,)."""

    @abstractmethod
    def move(self, state: Array, step: Array) -> tuple[Array, float] | None:
        """The state S (I + X)^(1/2) and log det(I + X); None when I + X is not positive definite."""


class Diagonal(Chart):
    """Independent noise: S = diag(state), X = diag(step)."""

    def __init__(self, size: int) -> None:
        self.size = size

    def carry(self, maps: Array, state: Array) -> Array:
        """Return maps @ diag(state)."""
        return maps * state

    def squares(self, columns: Array) -> Array:
        """Squares of the entries."""
        return columns**2

    def curvature(self, left: Array, right: Array) -> Array:
        """Return left o right."""
        return left * right

    def trace(self) -> Array:
        """All ones."""
        return np.ones(self.size)

    def move(self, state: Array, step: Array) -> tuple[Array, float] | None:
        """Scale the standard deviations."""
        if np.min(step, initial=0.0) <= -1 + 1e-12:
            return None
        return state * np.sqrt(1 + step), float(np.sum(np.log1p(step)))


class Symmetric(Chart):
    """Any covariance: S lower triangular, X symmetric, coordinates scaled to keep the inner product."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows, self.columns = np.triu_indices(size)
        self.scale = np.where(self.rows == self.columns, 1.0, np.sqrt(2.0))

    def carry(self, maps: Array, state: Array) -> Array:
        """Return maps @ S."""
        return np.asarray(maps @ state)

    def squares(self, columns: Array) -> Array:
        """The coordinates of g g'."""
        return columns[self.rows] * columns[self.columns] * self.scale[:, None]

    def curvature(self, left: Array, right: Array) -> Array:
        """Half the sum over orders of the indices of both sides."""
        i, j = self.rows, self.columns
        total = left[np.ix_(i, i)] * right[np.ix_(j, j)]
        total += left[np.ix_(i, j)] * right[np.ix_(j, i)]
        total += left[np.ix_(j, i)] * right[np.ix_(i, j)]
        total += left[np.ix_(j, j)] * right[np.ix_(i, i)]
        half = self.scale / 2
        return np.asarray(total * half[:, None] * half[None, :])

    def trace(self) -> Array:
        """Coordinates of the identity."""
        return np.asarray((self.rows == self.columns).astype(float))

    def move(self, state: Array, step: Array) -> tuple[Array, float] | None:
        """Multiply by the Cholesky factor of I + X."""
        matrix = np.zeros((self.size, self.size))
        matrix[self.rows, self.columns] = matrix[self.columns, self.rows] = step / self.scale
        try:
            factor = np.linalg.cholesky(np.eye(self.size) + matrix)
        except np.linalg.LinAlgError:
            return None
        return state @ factor, float(2 * np.sum(np.log(np.diag(factor))))


GROWTH = 12.0
"""Factor between the weights t of the objective on successive centres."""
GROWTH_LAST = 1.7
"""The same when the bound at the last centre did not suffice."""
OVERSHOOT = 1.6
"""The last centre has this part of the allowed gap: more would lose the bound to round-off in 1 - q."""
CENTRED = 1.0
"""Squared Newton decrement below which t is raised."""
CENTRED_LAST = 1e-8
"""The same at the last centre."""
MAXIMUM_STEPS = 400


@dataclass(frozen=True, eq=False, slots=True)
class Eye:
    """One view: `maps` (r, K) of full row rank, `effects` (r, N) of the differences in groups of `sizes` columns."""

    maps: Array
    effects: Array
    sizes: Indices


def largest_group(effects: Array, sizes: Indices) -> float:
    """Largest squared norm of a unit combination of the columns (r, N) of one group; groups of one come first."""
    alone = int(np.count_nonzero(sizes == 1))
    largest = float(np.max(np.sum(effects[:, :alone] ** 2, axis=0), initial=0.0))
    start = alone
    for size in sizes[alone:]:
        largest = max(largest, float(np.linalg.norm(effects[:, start : start + int(size)], 2)) ** 2)
        start += int(size)
    return largest


class _Term(NamedTuple):
    """One view at one state: barrier value, largest q, weighted G, H, sum of p q, sum of p, groups wider than one."""

    value: float
    largest: float
    weighted: Array
    hat: Array
    gain: float
    mass: float
    balls: tuple[slice, ...]


def _term(chart: Chart, eye: Eye, state: Array) -> _Term | None:
    """The barrier term of one view, None outside its domain."""
    carried = chart.carry(eye.maps, state)
    basis, upper = np.linalg.qr(carried.T)
    if not np.all(np.abs(np.diag(upper)) > 0):
        return None
    whitened = linalg.solve_triangular(upper, eye.effects, trans="T", check_finite=False)
    # groups of one column come first and are treated together
    alone = int(np.count_nonzero(eye.sizes == 1))
    quadratics = np.sum(whitened[:, :alone] ** 2, axis=0)
    largest = float(np.max(quadratics, initial=0.0))
    if not largest < 1:
        return None
    weights = 1 / (1 - quadratics)
    value = float(np.sum(np.log(weights)))
    gain, mass = float(np.sum(weights * quadratics)), float(np.sum(weights))
    scaled = whitened.copy()
    scaled[:, :alone] *= np.sqrt(weights)
    balls, start = [], alone
    for size in eye.sizes[alone:]:
        part = slice(start, start + int(size))
        start += int(size)
        _, singular, turn = np.linalg.svd(whitened[:, part], full_matrices=True)
        values = np.zeros(int(size))
        values[: len(singular)] = singular**2
        if not values.max(initial=0.0) < 1:
            return None
        ball = 1 / (1 - values)
        largest = max(largest, float(values.max(initial=0.0)))
        value += float(np.sum(np.log(ball)))
        gain += float(np.sum(ball * values))
        mass += float(np.sum(ball))
        scaled[:, part] = (whitened[:, part] @ turn.T) * np.sqrt(ball)
        balls.append(part)
    return _Term(value, largest, basis @ scaled, basis @ basis.T, gain, mass, tuple(balls))


@dataclass(frozen=True, eq=False, slots=True)
class BarrierResult:
    """The best state found, its weight t and loss weights, and whether the time ran out.

    `state` is strictly feasible; `value` its objective after scaling to the boundary, `bound` the lower bound.
    """

    state: Array
    value: float
    bound: float
    loss_weights: Array
    expired: bool


class Barrier:
    """Minimise the loss over the states of a chart; worst-case losses through an epigraph variable."""

    def __init__(self, chart: Chart, eyes: tuple[Eye, ...], error_map: Array, *, worst: bool) -> None:
        """`error_map` (q, K): error terms of unit noise at each coordinate of the sites."""
        self.chart, self.eyes, self.error_map, self.worst = chart, eyes, error_map, worst
        self.parameters = sum(int(np.sum(eye.sizes)) for eye in eyes) + len(chart.trace())
        self.parameters += len(error_map) if worst else 0

    def errors(self, state: Array) -> Array:
        """The linear forms X -> error terms: (q, d) for a worst-case loss, their sum (1, d) else."""
        carried = self.chart.carry(self.error_map, state)
        if isinstance(self.chart, Diagonal) and not self.worst:
            return np.asarray(np.sum(carried**2, axis=0)[None, :])
        if self.worst:
            return self.chart.squares(carried.T).T
        product = carried.T @ carried
        left, right = np.linalg.eigh(product)
        return np.asarray(np.sum(self.chart.squares(right) * left, axis=1)[None, :])

    def terms(self, state: Array) -> list[_Term] | None:
        """The barrier terms of all views, None outside the domain."""
        found = []
        for eye in self.eyes:
            term = _term(self.chart, eye, state)
            if term is None:
                return None
            found.append(term)
        return found

    def minimise(self, state: Array, tolerance: float, watch: Watch) -> BarrierResult:
        """Follow the central path from a strictly feasible state until the relative gap is at most `tolerance`."""
        unit = self.chart.trace()
        terms = self.terms(state)
        if terms is None:
            raise ValueError("the first state is not strictly feasible")
        errors = self.errors(state)
        losses = errors @ unit
        top = float(losses.max()) * 2 if self.worst else float(losses[0])
        weight = 0.1 * self.parameters / top
        best = BarrierResult(state, np.inf, 0.0, np.ones(len(errors)) / len(errors), expired=False)
        for _ in range(MAXIMUM_STEPS):
            best = self._record(best, state, terms, errors, top)
            watch.step(best.value, best.bound)
            if best.value - best.bound <= tolerance * best.value:
                return best
            if watch.expired:
                return BarrierResult(best.state, best.value, best.bound, best.loss_weights, expired=True)
            gradient, cost, matrix = self._newton(terms, errors, top)
            try:
                factor = linalg.cho_factor(matrix, lower=True, check_finite=False)
            except linalg.LinAlgError:
                return best
            both = linalg.cho_solve(factor, np.column_stack([gradient, cost]), check_finite=False)
            # the Newton matrix does not depend on t: raise t while the step stays inside the Newton region;
            # the bound needs a good centre only at the last t
            last = OVERSHOOT * self.parameters / (tolerance * best.value)
            for _ in range(60):
                step = -(both[:, 0] + weight * both[:, 1])
                slope = float((gradient + weight * cost) @ step)
                if -slope > (CENTRED if weight < last else CENTRED_LAST):
                    break
                weight = min(weight * GROWTH, last) if weight < last else weight * GROWTH_LAST
            if weight > last * GROWTH:
                return best
            moved = self._search(state, top, terms, weight, step, slope)
            if moved is None:
                return best
            state, top, terms = moved
            errors = self.errors(state)
        return best

    def _record(
        self, best: BarrierResult, state: Array, terms: list[_Term], errors: Array, top: float
    ) -> BarrierResult:
        """Keep the better of the old and the new value and bound."""
        losses = errors @ self.chart.trace()
        shares = np.ones(1)
        if self.worst:
            shares = 1 / (top - losses)
            shares = shares / shares.sum()
        value = float(losses.max()) * max(term.largest for term in terms)
        mass = sum(term.mass for term in terms)
        use = self._use(terms, shares @ errors, state)
        bound = sum(term.gain for term in terms) ** 2 / (use * mass) if use > 0 else 0.0
        # value and bound come from one state: whoever checks takes the dual vectors from the final covariance
        if not np.isfinite(best.value) or (value - bound) / value <= (best.value - best.bound) / best.value:
            return BarrierResult(state, value, bound, shares, expired=False)
        return best

    def _use(self, terms: list[_Term], cost: Array, state: Array) -> float:
        """The constant kappa of the lower bound: largest ratio of what the duals charge unit noise to its cost."""
        if isinstance(self.chart, Diagonal):
            charge = np.sum([np.sum(term.weighted**2, axis=1) for term in terms], axis=0)
            used = charge > 0
            return float(np.max(charge[used] / np.maximum(cost[used], 1e-300), initial=0.0))
        total = np.sum([term.weighted @ term.weighted.T for term in terms], axis=0)
        size = len(state)
        matrix = np.zeros((size, size))
        rows, columns = np.triu_indices(size)
        scale = np.where(rows == columns, 1.0, np.sqrt(2.0))
        matrix[rows, columns] = matrix[columns, rows] = cost / scale
        try:
            return float(linalg.eigh(total, matrix, eigvals_only=True, subset_by_index=[size - 1, size - 1])[0])
        except linalg.LinAlgError:
            return np.inf

    def _newton(self, terms: list[_Term], errors: Array, top: float) -> tuple[Array, Array, Array]:
        """Gradient of the barrier, gradient of the objective, Newton matrix (with the epigraph variable last)."""
        chart, unit = self.chart, self.chart.trace()
        size = len(unit)
        gradient = -unit
        matrix = np.eye(size)
        for term in terms:
            squares = chart.squares(term.weighted)
            gradient = gradient - np.sum(squares, axis=1)
            matrix += 2 * chart.curvature(term.weighted @ term.weighted.T, term.hat)
            alone = squares[:, : term.balls[0].start] if term.balls else squares
            matrix += alone @ alone.T
            for part in term.balls:
                product = term.weighted[:, part] @ term.weighted[:, part].T
                matrix += chart.curvature(product, product)
        if not self.worst:
            return gradient, errors[0], matrix
        slack = 1 / (top - errors @ unit)
        scaled = errors * slack[:, None]
        bordered = np.zeros((size + 1, size + 1))
        bordered[:size, :size] = matrix + scaled.T @ scaled
        bordered[:size, size] = bordered[size, :size] = -(scaled.T @ slack)
        bordered[size, size] = slack @ slack
        cost = np.zeros(size + 1)
        cost[size] = 1.0
        return np.append(gradient + errors.T @ slack, -slack.sum()), cost, bordered

    def _search(
        self, state: Array, top: float, terms: list[_Term], weight: float, step: Array, slope: float
    ) -> tuple[Array, float, list[_Term]] | None:
        """Backtrack until the merit function falls; None when round-off leaves no descent."""
        size = len(self.chart.trace())
        rise = float(step[size]) if self.worst else 0.0
        direction = step[:size]
        before = self._merit(state, top, terms, weight)
        length, found = 1.0, None
        for _ in range(40):
            tried = self._try(state, top, weight, direction * length, rise * length)
            if tried is not None and tried[0] <= before + 0.1 * length * slope + 1e-11 * abs(before):
                if found is not None and tried[0] >= found[0]:
                    break
                found = tried
                if length == 1.0:
                    break
            elif found is not None:
                break
            # shorter steps are tried while they are better: the longest one allowed ends up far off the centre
            length *= 0.5
        return None if found is None else found[1:]

    def _try(
        self, state: Array, top: float, weight: float, step: Array, rise: float
    ) -> tuple[float, Array, float, list[_Term]] | None:
        """Merit, state, epigraph variable and terms after a step; None outside the domain."""
        moved = self.chart.move(state, step)
        if moved is None:
            return None
        following, logdet = moved
        terms = self.terms(following)
        if terms is None:
            return None
        return self._merit(following, top + rise, terms, weight) - logdet, following, top + rise, terms

    def _merit(self, state: Array, top: float, terms: list[_Term], weight: float) -> float:
        """Weighted objective plus barrier, without the log determinant of the state."""
        losses = self.errors(state) @ self.chart.trace()
        barrier = sum(term.value for term in terms)
        if not self.worst:
            return weight * float(losses[0]) + barrier
        if not top > losses.max():
            return np.inf
        return weight * top + barrier - float(np.sum(np.log(top - losses)))
