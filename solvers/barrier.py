"""Log-barrier Newton methods for the placement of Gaussian noise (MATH.md section 2).

One method serves two kinds of noise. Write the covariance as `S S'` carried to the outputs by site maps; a relative
move `S (I + X) S'` has X diagonal when the sites' noise is independent, and X symmetric when any covariance is allowed.
In these coordinates the Newton matrix of the log barrier is the identity plus positive semidefinite terms, so duplicate
sites and vanishing variances do no harm.

With N = A S for a view (A its maps), Sigma = N N', G = N' Sigma^-1 V, H = N' Sigma^-1 N, q = colsum of V' Sigma^-1 V:
    dq_i[X] = -g_i' X g_i        d2q_i[X, X] = 2 g_i' X H X g_i
An l2 ball of differences spanned by the columns V_b has the term -log det(I - V_b' Sigma^-1 V_b).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy
from privspec.solvers.programs import Array, Indices, Watch, groups

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
class Reached:
    """The state of least gap, its value and lower bound, and whether the time ran out."""

    at: Placed
    value: float
    bound: float
    expired: bool = False


def follow(path: Barrier, at: Placed, weight: float, tolerance: float, watch: Watch) -> Reached:
    """Follow the central path from a state and a weight t until the relative gap is at most `tolerance`.

    Stops at once where round-off leaves nothing to gain.
    """
    best = Reached(at, np.inf, 0.0)
    for _ in range(MAXIMUM_STEPS):
        value, bound = path.measure(at)
        # value and bound come from one state: whoever checks takes the dual vectors from the final covariance
        if not np.isfinite(best.value) or (value - bound) / value <= (best.value - best.bound) / best.value:
            best = Reached(at, value, bound)
        watch.step(best.value, best.bound)
        if best.value - best.bound <= tolerance * best.value:
            return best
        if watch.expired:
            return replace(best, expired=True)
        gradient, cost, matrix = path.newton(at)
        try:
            both = _solved(matrix, np.column_stack([gradient, cost]))
        except scipy.linalg.LinAlgError:
            return best
        # raise t while the step stays inside the Newton region; the bound needs a good centre only at the last t
        last = OVERSHOOT * path.parameters / (tolerance * best.value)
        for _ in range(60):
            step = -(both[:, 0] + weight * both[:, 1])
            slope = float((gradient + weight * cost) @ step)
            if -slope > (CENTRED if weight < last else CENTRED_LAST):
                break
            weight = min(weight * GROWTH, last) if weight < last else weight * GROWTH_LAST
        if weight > last * GROWTH:
            return best
        moved = _search(path, at, weight, step, slope)
        if moved is None:
            return best
        at = moved
    return best


def _solved(matrix: Array, right: Array) -> Array:
    """The solution of a positive definite system, scaled to a unit diagonal; lifted a little where round-off spoils it.

    Raises: LinAlgError if no lift helps.
    """
    sizes = np.sqrt(np.diag(matrix))[:, None]
    scaled, lift = matrix / sizes / sizes.T, 1e-15
    while True:
        try:
            factor = scipy.linalg.cho_factor(scaled, lower=True, check_finite=False)
            return np.asarray(scipy.linalg.cho_solve(factor, right / sizes, check_finite=False) / sizes)
        except scipy.linalg.LinAlgError:
            if lift > 1e-6:
                raise
            scaled, lift = scaled + lift * np.eye(len(sizes)), lift * 100


def _search(path: Barrier, at: Placed, weight: float, step: Array, slope: float) -> Placed | None:
    """Backtrack until the merit function falls; None when round-off leaves no descent."""
    before = path.merit(at, weight)
    length, found, least = 1.0, None, np.inf
    for _ in range(40):
        tried = path.moved(at, step * length)
        merit = np.inf if tried is None else path.merit(tried, weight)
        if merit <= before + 0.1 * length * slope + 1e-11 * abs(before) and merit < least:
            found, least = tried, merit
            if length == 1.0:
                break
        elif found is not None:
            break
        # shorter steps are tried while they are better: the longest one allowed ends up far off the centre
        length *= 0.5
    return found


# --- Gaussian noise -------------------------------------------------------------------------------


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
    def total(self, carried: Array) -> Array:
        """The linear form X -> tr(N X N') (1, d) for the columns N = maps @ S."""

    @abstractmethod
    def move(self, state: Array, step: Array) -> tuple[Array, float] | None:
        """The state S (I + X)^(1/2) and log det(I + X); None when I + X is not positive definite."""

    @abstractmethod
    def largest_ratio(self, weighted: list[Array], cost: Array) -> float:
        """Largest ratio of what `weighted` (K, N) charge unit noise, g' X g summed, to its cost."""


class Diagonal(Chart):
    """Independent noise: S = diag(state), X = diag(step)."""

    def __init__(self, size: int) -> None:
        self.size = size

    def carry(self, maps: Array, state: Array) -> Array:
        return maps * state

    def squares(self, columns: Array) -> Array:
        return columns**2

    def curvature(self, left: Array, right: Array) -> Array:
        return left * right

    def trace(self) -> Array:
        return np.ones(self.size)

    def total(self, carried: Array) -> Array:
        return np.asarray(np.sum(carried**2, axis=0)[None, :])

    def move(self, state: Array, step: Array) -> tuple[Array, float] | None:
        if np.min(step, initial=0.0) <= -1 + 1e-12:
            return None
        return state * np.sqrt(1 + step), float(np.sum(np.log1p(step)))

    def largest_ratio(self, weighted: list[Array], cost: Array) -> float:
        charge = np.sum([np.sum(part**2, axis=1) for part in weighted], axis=0)
        used = charge > 0
        return float(np.max(charge[used] / np.maximum(cost[used], 1e-300), initial=0.0))


class Symmetric(Chart):
    """Any covariance: S lower triangular, X symmetric, coordinates scaled to keep the inner product."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows, self.columns = np.triu_indices(size)
        self.scale = np.where(self.rows == self.columns, 1.0, np.sqrt(2.0))

    def carry(self, maps: Array, state: Array) -> Array:
        return np.asarray(maps @ state)

    def squares(self, columns: Array) -> Array:
        return columns[self.rows] * columns[self.columns] * self.scale[:, None]

    def curvature(self, left: Array, right: Array) -> Array:
        # half the sum over orders of the indices of both sides
        i, j = self.rows, self.columns
        total = left[np.ix_(i, i)] * right[np.ix_(j, j)]
        total += left[np.ix_(i, j)] * right[np.ix_(j, i)]
        total += left[np.ix_(j, i)] * right[np.ix_(i, j)]
        total += left[np.ix_(j, j)] * right[np.ix_(i, i)]
        half = self.scale / 2
        return np.asarray(total * half[:, None] * half[None, :])

    def trace(self) -> Array:
        return np.asarray((self.rows == self.columns).astype(float))

    def total(self, carried: Array) -> Array:
        left, right = np.linalg.eigh(carried.T @ carried)
        return np.asarray(np.sum(self.squares(right) * left, axis=1)[None, :])

    def _matrix(self, coordinates: Array) -> Array:
        matrix = np.zeros((self.size, self.size))
        matrix[self.rows, self.columns] = matrix[self.columns, self.rows] = coordinates / self.scale
        return matrix

    def move(self, state: Array, step: Array) -> tuple[Array, float] | None:
        try:
            factor = np.linalg.cholesky(np.eye(self.size) + self._matrix(step))
        except np.linalg.LinAlgError:
            return None
        return state @ factor, float(2 * np.sum(np.log(np.diag(factor))))

    def largest_ratio(self, weighted: list[Array], cost: Array) -> float:
        charge, last = np.sum([part @ part.T for part in weighted], axis=0), [self.size - 1, self.size - 1]
        try:
            return float(scipy.linalg.eigh(charge, self._matrix(cost), eigvals_only=True, subset_by_index=last)[0])
        except scipy.linalg.LinAlgError:
            return np.inf


@dataclass(frozen=True, eq=False, slots=True)
class Eye:
    """One view: `maps` (r, K) of full row rank, `effects` (r, N) of the differences in groups of `sizes` columns."""

    maps: Array
    effects: Array
    sizes: Indices

    def whitened(self, chart: Chart, state: Array) -> tuple[Array, Array] | None:
        """An orthonormal basis (K, r) of N', and the effects with Sigma taken out (r, N); None if Sigma is singular."""
        basis, upper = np.linalg.qr(chart.carry(self.maps, state).T)
        if not np.all(np.abs(np.diag(upper)) > 0):
            return None
        return basis, scipy.linalg.solve_triangular(upper, self.effects, trans="T", check_finite=False)

    def largest(self, chart: Chart, state: Array) -> float:
        """Largest squared norm of a unit combination of the whitened columns of one group."""
        found = self.whitened(chart, state)
        if found is None:
            return np.inf
        alone, wide = groups(self.sizes)
        largest = float(np.max(np.sum(found[1][:, :alone] ** 2, axis=0), initial=0.0))
        return max([largest, *(float(np.linalg.norm(found[1][:, part], 2)) ** 2 for part in wide)])


class _Term(NamedTuple):
    """One view at one state: barrier value, largest q, weighted G, H, sum of p q, sum of p, groups wider than one."""

    value: float
    largest: float
    weighted: Array
    hat: Array
    gain: float
    mass: float
    balls: list[slice]


def _term(chart: Chart, eye: Eye, state: Array) -> _Term | None:
    """The barrier term of one view, None outside its domain."""
    found = eye.whitened(chart, state)
    if found is None:
        return None
    basis, whitened = found
    # groups of one column come first and are treated together
    alone, balls = groups(eye.sizes)
    quadratics = [np.sum(whitened[:, :alone] ** 2, axis=0)]
    turned = [whitened[:, :alone]]
    for part in balls:
        _, singular, turn = np.linalg.svd(whitened[:, part], full_matrices=True)
        quadratics.append(np.pad(singular**2, (0, len(turn) - len(singular))))
        turned.append(whitened[:, part] @ turn.T)
    q = np.concatenate(quadratics)
    largest = float(np.max(q, initial=0.0))
    if not largest < 1:
        return None
    weights = 1 / (1 - q)
    weighted = basis @ (np.hstack(turned) * np.sqrt(weights))
    value, gain, mass = (float(part.sum()) for part in (np.log(weights), weights * q, weights))
    return _Term(value, largest, weighted, basis @ basis.T, gain, mass, balls)


class Placed(NamedTuple):
    """A strictly feasible state: its terms, the linear forms X -> error terms, the epigraph variable, log det S S'."""

    state: Array
    terms: list[_Term]
    errors: Array
    top: float
    logdet: float


class Barrier:
    """The path of least loss over the states of a chart; worst-case losses through an epigraph variable."""

    def __init__(self, chart: Chart, eyes: list[Eye], error_map: Array, *, worst: bool) -> None:
        """`error_map` (q, K): error terms of unit noise at each coordinate of the sites."""
        self.chart, self.eyes, self.error_map, self.worst = chart, eyes, error_map, worst
        self.unit = chart.trace()
        self.parameters = sum(int(np.sum(eye.sizes)) for eye in eyes) + len(self.unit)
        self.parameters += len(error_map) if worst else 0

    def _placed(self, state: Array, top: float, logdet: float) -> Placed | None:
        terms = []
        for eye in self.eyes:
            term = _term(self.chart, eye, state)
            if term is None:
                return None
            terms.append(term)
        carried = self.chart.carry(self.error_map, state)
        errors = self.chart.squares(carried.T).T if self.worst else self.chart.total(carried)
        return Placed(state, terms, errors, top, logdet)

    def minimise(self, state: Array, tolerance: float, watch: Watch) -> Reached:
        """Follow the central path from any state, scaled to lie inside; see `follow`."""
        inside = state * np.sqrt(2 * max(eye.largest(self.chart, state) for eye in self.eyes))
        placed = self._placed(inside, 0.0, 0.0)
        if placed is None:
            raise ValueError("the first state is not strictly feasible")
        losses = placed.errors @ self.unit
        top = float(losses.max()) * 2 if self.worst else float(losses[0])
        return follow(self, placed._replace(top=top), 0.1 * self.parameters / top, tolerance, watch)

    def shares(self, at: Placed) -> Array:
        """Weights of the error terms that prove the bound of a worst-case loss; one weight of one else."""
        if not self.worst:
            return np.ones(1)
        shares = 1 / (at.top - at.errors @ self.unit)
        return np.asarray(shares / shares.sum())

    def measure(self, at: Placed) -> tuple[float, float]:
        """The value of the state scaled to the boundary, and the lower bound that it proves."""
        value = float((at.errors @ self.unit).max()) * max(term.largest for term in at.terms)
        mass, gain = sum(term.mass for term in at.terms), sum(term.gain for term in at.terms)
        cost = self.shares(at) @ at.errors
        # the constant kappa of the lower bound: largest ratio of what the duals charge unit noise to its cost
        use = self.chart.largest_ratio([term.weighted for term in at.terms], cost)
        return value, gain**2 / (use * mass) if use > 0 else 0.0

    def newton(self, at: Placed) -> tuple[Array, Array, Array]:
        """Gradient of the barrier, gradient of the objective, and the Newton matrix, which does not depend on t.

        The epigraph variable is the last.
        """
        chart, size = self.chart, len(self.unit)
        gradient, matrix = -self.unit, np.eye(size)
        for term in at.terms:
            squares = chart.squares(term.weighted)
            gradient = gradient - np.sum(squares, axis=1)
            matrix += 2 * chart.curvature(term.weighted @ term.weighted.T, term.hat)
            alone = squares[:, : term.balls[0].start] if term.balls else squares
            matrix += alone @ alone.T
            for part in term.balls:
                product = term.weighted[:, part] @ term.weighted[:, part].T
                matrix += chart.curvature(product, product)
        if not self.worst:
            return gradient, at.errors[0], matrix
        slack = 1 / (at.top - at.errors @ self.unit)
        scaled = np.column_stack([at.errors, -np.ones(len(slack))]) * slack[:, None]
        bordered = scaled.T @ scaled
        bordered[:size, :size] += matrix
        return np.append(gradient, 0.0) + scaled.sum(axis=0), np.eye(size + 1)[size], bordered

    def moved(self, at: Placed, step: Array) -> Placed | None:
        """The state after a step; None outside the domain."""
        size = len(self.unit)
        moved = self.chart.move(at.state, step[:size])
        if moved is None:
            return None
        return self._placed(moved[0], at.top + float(step[size:].sum()), at.logdet + moved[1])

    def merit(self, at: Placed, weight: float) -> float:
        """Weighted objective plus barrier."""
        losses = at.errors @ self.unit
        barrier = sum(term.value for term in at.terms) - at.logdet
        if not self.worst:
            return weight * float(losses[0]) + barrier
        if not at.top > losses.max():
            return np.inf
        return weight * at.top + barrier - float(np.sum(np.log(at.top - losses)))
