"""Interior points of tables whose inputs are all neighbours: m_y <= f_xy <= R m_y, for any number of outputs.

Every output brings its own block of constraints, coupled with the others by the row sums (and, for a worst-case loss,
by the losses of the rows) alone. A step factors one matrix of the size of the coupling and works entry by entry
otherwise: twenty steps for a table of 400 x 400. Predictor and corrector: Mehrotra 1992; one round of iterative
refinement keeps row sums exact to the last digit. The multipliers it ends with start column generation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from privspec.solvers.programs import Array, Indices, Watch
from privspec.solvers.table_programs import TableProgram

_MOST_STEPS = 200
_STEP = 0.999
_CLOSE = 1e-12
_SNAP = 1e-3  # entries this close to an end of their range are taken to be at it: column generation mends that
_UNUSED = 1e-5


@dataclass(frozen=True, eq=False, slots=True)
class _Point:
    """Tables f (X, Y), minima m (Y,), and the level t of a worst-case loss, with all slacks and multipliers.

    `slacks` and `prices` (2, X, Y) belong to m <= f and f <= R m, `spare` and `shares` (X,) to the losses of the rows
    (no entries for an expected loss); `weights` (X,) to the row sums.
    """

    table: Array
    least: Array
    level: float
    slacks: Array
    spare: Array
    prices: Array
    shares: Array
    weights: Array

    def products(self) -> float:
        """The sum of slacks times prices."""
        return float(np.sum(self.slacks * self.prices) + self.spare @ self.shares)

    def moved(self, step: _Point, primal: float, dual: float) -> _Point:
        """Some way along a step."""
        return _Point(
            self.table + primal * step.table,
            self.least + primal * step.least,
            self.level + primal * step.level,
            self.slacks + primal * step.slacks,
            self.spare + primal * step.spare,
            self.prices + dual * step.prices,
            self.shares + dual * step.shares,
            self.weights + dual * step.weights,
        )


@dataclass(frozen=True, eq=False)
class Interior:
    """A table near the optimum and multipliers of the row sums and of the rows' losses that nearly prove it."""

    table: Array
    least: Array
    weights: Array
    loss_weights: Array | None
    ratio: float

    @cached_property
    def levels(self) -> dict[int, Array]:
        """How far entries stand above the minimum of their column, as shares of what is allowed, in steps (N,)."""
        found = {}
        for y in np.flatnonzero(self.least > _UNUSED * self.least.sum()).tolist():
            steps = np.unique(self._height(y))
            found[y] = np.append(steps[steps > 0], 1.0) if steps[-1] < 1 else steps[steps > 0]
        return found

    def _height(self, y: int) -> Array:
        height = (self.table[:, y] / self.least[y] - 1.0) / (self.ratio - 1.0)
        return np.where(height < _SNAP, 0.0, np.where(height > 1.0 - _SNAP, 1.0, height))

    @property
    def rays(self) -> int:
        """How many rays the table is made of."""
        return sum(len(steps) for steps in self.levels.values())

    def starts(self) -> Iterator[tuple[Array, Indices]]:
        """The rays (X, N) that the table is made of, with their outputs: each column is a mixture of its level sets."""
        inputs = self.table.shape[0]
        yield np.ones((inputs, 1)), np.array([np.argmax(self.least)], dtype=np.intp)
        for y, steps in self.levels.items():
            inside = self._height(y)[:, None] >= steps
            yield np.where(inside, self.ratio, 1.0), np.full(len(steps), y, dtype=np.intp)


def interior_point(program: TableProgram, ratio: float, watch: Watch) -> Interior | None:
    """The best point that was reached before the deadline or the end of double precision; None if that was none."""
    scale = float(np.abs(program.cost).max()) or 1.0
    newton = _Newton(program.cost / scale, ratio, program.worst)
    point = newton.start()
    best, quality = None, np.inf
    for _ in range(_MOST_STEPS):
        value, bound = newton.values(point)
        watch.step(value * scale, bound * scale)
        error = max(abs(value - bound), newton.errors(point))
        if error < quality:
            best, quality = point, error
        if error < _CLOSE * max(abs(value), 1e-6) or not np.isfinite(error) or error > 1e6 * quality or watch.expired:
            break
        try:
            point = newton.step(point)
        except np.linalg.LinAlgError:
            break
    if best is None:
        return None
    shares = best.shares / best.shares.sum() if program.worst else None
    return Interior(best.table, best.least, best.weights * scale, shares, ratio)


class _Newton:
    """The program with its residuals and Newton steps."""

    def __init__(self, cost: Array, ratio: float, worst: bool) -> None:
        self.cost, self.ratio, self.worst = cost, ratio, worst
        self.inputs, self.outputs = cost.shape
        self.pairs = 2 * cost.size + (self.inputs if worst else 0)

    def start(self) -> _Point:
        """A point strictly inside all constraints, of the program and of its dual."""
        table = np.full(self.cost.shape, 1.0 / self.outputs)
        least = 2.0 / self.outputs / (1.0 + self.ratio) * np.ones(self.outputs)
        shares = np.full(self.inputs, 1.0 / self.inputs) if self.worst else np.zeros(0)
        charged = self.charged(shares)
        weights = charged.min(axis=1) - np.abs(charged).max(axis=1) - 1e-6 * np.abs(charged).max()
        gaps = charged - weights[:, None]
        above = np.broadcast_to(gaps.sum(axis=0) / (self.ratio - 1.0) / self.inputs, self.cost.shape)
        losses = np.sum(self.cost * table, axis=1)
        level = float(losses.max() + 0.1 * np.abs(losses).max() + 1e-3) if self.worst else 0.0
        spare = level - losses if self.worst else np.zeros(0)
        slacks = self.slacks(table, least)
        return _Point(table, least, level, slacks, spare, np.stack((gaps + above, above)), shares, weights)

    def charged(self, shares: Array) -> Array:
        """What each entry of the table costs."""
        return self.cost * shares[:, None] if self.worst else self.cost

    def slacks(self, table: Array, least: Array) -> Array:
        """How far m <= f <= R m is met."""
        return np.stack((table - least, self.ratio * least - table))

    def collected(self, prices: Array) -> tuple[Array, Array]:
        """The transposed of `slacks`."""
        below, above = prices
        return below - above, self.ratio * above.sum(axis=0) - below.sum(axis=0)

    def values(self, point: _Point) -> tuple[float, float]:
        """The loss and its bound, each up to what is missing in feasibility."""
        value = point.level if self.worst else float(np.sum(self.cost * point.table))
        return value, float(point.weights.sum())

    def errors(self, point: _Point) -> float:
        """The largest violation of an equality of the program or of its dual."""
        first, second = self._dual_residual(point)
        found = [np.abs(first).max(), np.abs(second).max(), np.abs(1.0 - point.table.sum(axis=1)).max()]
        found.append(np.abs(point.slacks - self.slacks(point.table, point.least)).max())
        if self.worst:
            found += [np.abs(self._loss_residual(point)).max(), abs(1.0 - point.shares.sum())]
        return float(max(found))

    def _dual_residual(self, point: _Point) -> tuple[Array, Array]:
        first, second = self.collected(point.prices)
        return self.charged(point.shares) - point.weights[:, None] - first, -second

    def _loss_residual(self, point: _Point) -> Array:
        missing: Array = point.spare - point.level + np.sum(self.cost * point.table, axis=1)
        return missing

    def step(self, point: _Point) -> _Point:
        """One step of predictor and corrector."""
        system = _System(self, point)
        mean = point.products() / self.pairs
        guess = system.solve(-point.slacks * point.prices, -point.spare * point.shares)
        ahead = point.moved(guess, *self._reach(point, guess, 1.0))
        centre = mean * (ahead.products() / self.pairs / mean) ** 3
        second = system.solve(
            centre - point.slacks * point.prices - guess.slacks * guess.prices,
            centre - point.spare * point.shares - guess.spare * guess.shares,
        )
        return point.moved(second, *self._reach(point, second, _STEP))

    @staticmethod
    def _reach(point: _Point, step: _Point, share: float) -> tuple[float, float]:
        """How far the slacks and the prices stay positive."""

        def largest(values: Array, change: Array) -> float:
            falling = change < 0
            return float((-values[falling] / change[falling]).min()) if falling.any() else np.inf

        primal = min(largest(point.slacks, step.slacks), largest(point.spare, step.spare))
        dual = min(largest(point.prices, step.prices), largest(point.shares, step.shares))
        return min(1.0, share * primal), min(1.0, share * dual)


class _System:
    """The linear equations of a step at one point, reduced to the coupling and factored."""

    def __init__(self, newton: _Newton, point: _Point) -> None:
        self.newton, self.point = newton, point
        self.scales = point.prices / point.slacks
        below, above = self.scales
        self.own = below + above
        self.tilt = (below + newton.ratio * above) / self.own
        self.pivot = (newton.ratio - 1.0) ** 2 * np.sum(below * above / self.own, axis=0)
        self.factor = scipy.linalg.cho_factor(self._coupling())

    def _coupling(self) -> Array:
        """Sum over outputs of B H^-1 B', where H is the block of an output and B takes row sums (and losses)."""
        low = self.tilt / np.sqrt(self.pivot)
        sums: Array = low @ low.T
        sums[np.diag_indices_from(sums)] += np.sum(1.0 / self.own, axis=1)
        if not self.newton.worst:
            return sums
        cost = self.newton.cost
        dear = cost * low
        cross, losses = -low @ dear.T, dear @ dear.T
        cross[np.diag_indices_from(cross)] -= np.sum(cost / self.own, axis=1)
        losses[np.diag_indices_from(losses)] += np.sum(cost**2 / self.own, axis=1)
        losses[np.diag_indices_from(losses)] += self.point.spare / self.point.shares
        return np.block([[sums, cross], [cross.T, losses]])

    def _block(self, first: Array, second: Array) -> tuple[Array, Array]:
        """H^-1 of every output at once."""
        least = (second + np.sum(self.tilt * first, axis=0)) / self.pivot
        return first / self.own + self.tilt * least, least

    def _coupled(self, table: Array) -> Array:
        """B: row sums, and minus the losses of the rows."""
        sums = table.sum(axis=1)
        return np.append(sums, -np.sum(self.newton.cost * table, axis=1)) if self.newton.worst else sums

    def _spread(self, coupling: Array) -> Array:
        """B' of a vector."""
        count = self.newton.inputs
        if not self.newton.worst:
            return coupling[:, None]
        return coupling[:count, None] - self.newton.cost * coupling[count:, None]

    def _solved(self, first: Array, second: Array, coupled: Array, total: float) -> tuple[Array, Array, Array, float]:
        """The reduced equations; `total` is what the shares must add."""
        right = coupled - self._coupled(self._block(first, second)[0])
        moves: Array = scipy.linalg.cho_solve(self.factor, right)
        level = 0.0
        if self.newton.worst:
            count = self.newton.inputs
            ones = np.append(np.zeros(count), np.ones(count))
            other = scipy.linalg.cho_solve(self.factor, ones)
            level = float((moves[count:].sum() - total) / other[count:].sum())
            moves = moves - level * other
        table, least = self._block(first + self._spread(moves), second)
        return table, least, moves, level

    def solve(self, products: Array, loss_products: Array) -> _Point:
        """The step after which slacks times prices change by `products`, to first order."""
        newton, point = self.newton, self.point
        residual = point.slacks - newton.slacks(point.table, point.least)
        wanted = newton.collected((products + point.prices * residual) / point.slacks)
        off = newton._dual_residual(point)
        first, second = wanted[0] - off[0], wanted[1] - off[1]
        coupled = 1.0 - point.table.sum(axis=1)
        total = 0.0
        if newton.worst:
            coupled = np.append(coupled, newton._loss_residual(point) + loss_products / point.shares)
            total = 1.0 - float(point.shares.sum())
        table, least, moves, level = self._refined(first, second, coupled, total)
        slacks = newton.slacks(table, least) - residual
        prices = (products - point.prices * slacks) / point.slacks
        count = newton.inputs
        shares = moves[count:]
        spare = (loss_products - point.spare * shares) / point.shares
        return _Point(table, least, level, slacks, spare, prices, shares, moves[:count])

    def _refined(self, first: Array, second: Array, coupled: Array, total: float) -> tuple[Array, Array, Array, float]:
        """One round of iterative refinement on the equations before their reduction."""
        newton = self.newton
        table, least, moves, level = self._solved(first, second, coupled, total)
        used = newton.collected(self.scales * newton.slacks(table, least))
        rest = coupled - self._coupled(table)
        if newton.worst:
            count = newton.inputs
            rest = rest - np.append(np.zeros(count), self.point.spare / self.point.shares * moves[count:] + level)
            total = total - float(moves[count:].sum())
        more = self._solved(first + self._spread(moves) - used[0], second - used[1], rest, total)
        return table + more[0], least + more[1], moves + more[2], level + more[3]
