"""Interior points of tables: the method, and tables whose inputs are all neighbours, m_y <= f_xy <= R m_y.

With all inputs neighbours every output brings its own block of constraints, coupled with the others by the row sums
(and, for a worst-case loss, by the losses of the rows) alone. A step factors one matrix of the size of the coupling and
works entry by entry otherwise: twenty steps for a table of 400 x 400. Predictor and corrector: Mehrotra 1992; one round
of iterative refinement keeps row sums exact to the last digit. The multipliers it ends with start column generation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy
from privspec.solvers.programs import Array, Indices, Watch
from privspec.solvers.table_programs import TableProgram

_MOST_STEPS = 200
_STEP = 0.9995
_CLOSE = 1e-12
_SNAP = 1e-3  # entries this close to an end of their range are taken to be at it: column generation mends that
_UNUSED = 1e-5


@dataclass(frozen=True, eq=False, slots=True)
class Point:
    """Unknowns of any sign, what has to be positive with its prices, multipliers of equalities; or a step of all."""

    free: tuple[Array, ...]
    positive: tuple[Array, ...]
    prices: tuple[Array, ...]
    multipliers: tuple[Array, ...]

    @property
    def products(self) -> float:
        """The sum of what is positive times its prices."""
        return float(sum(np.vdot(a, b) for a, b in zip(self.positive, self.prices, strict=True)))

    def moved(self, step: Point, share: float) -> Point:
        """As far along a step as what is positive, and its prices, stay so: a share of it, and never beyond its end."""

        def along(parts: Sequence[Array], changes: Sequence[Array], way: float) -> tuple[Array, ...]:
            return tuple(a + way * b for a, b in zip(parts, changes, strict=True))

        primal, dual = (
            min(1.0, share * min(_reaches(*both), default=np.inf))
            for both in ((self.positive, step.positive), (self.prices, step.prices))
        )
        return Point(
            along(self.free, step.free, primal),
            along(self.positive, step.positive, primal),
            along(self.prices, step.prices, dual),
            along(self.multipliers, step.multipliers, dual),
        )


def _reaches(values: Sequence[Array], changes: Sequence[Array]) -> Iterator[float]:
    for value, change in zip(values, changes, strict=True):
        falling = change < 0
        if falling.any():
            yield float((-value[falling] / change[falling]).min())


class Newton(Protocol):
    """A linear program in the form of points."""

    def error(self, point: Point) -> float:
        """How far a point is from the optimum, and from meeting its equations."""
        ...

    def system(self, point: Point) -> Callable[[Sequence[Array]], Point]:
        """The step after which what is positive times its prices changes so, to first order.

        Raises: LinAlgError where double precision ends.
        """
        ...


def central_path(newton: Newton, point: Point, close: float, watch: Watch) -> tuple[Point, float]:
    """The best point that was reached before the deadline or the end of double precision, with its error."""
    best, quality = point, np.inf
    with np.errstate(all="ignore"):  # programs without a table run away: their error says so
        for _ in range(_MOST_STEPS):
            error = newton.error(point)
            if error < quality:
                best, quality = point, error
            if error < close or not error < 1e6 * quality or watch.expired:
                break
            try:
                solve = newton.system(point)
            except np.linalg.LinAlgError:
                break
            goal = [-a * b for a, b in zip(point.positive, point.prices, strict=True)]
            guess, mean = solve(goal), point.products / sum(map(np.size, goal))
            centre = mean * (point.moved(guess, 1.0).products / point.products) ** 3
            bent = zip(goal, guess.positive, guess.prices, strict=True)
            point = point.moved(solve([centre + a - b * c for a, b, c in bent]), _STEP)
    return best, quality


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
    newton = _Newton(program, ratio, watch)
    best, quality = central_path(newton, newton.start(), _CLOSE, watch)
    if not np.isfinite(quality):
        return None
    (table, least, _), (_, shares), (weights,) = best.free, best.prices, best.multipliers
    return Interior(table, least, weights * newton.scale, shares / shares.sum() if program.worst else None, ratio)


class _Newton:
    """The program with its residuals.

    Free are tables f (X, Y), minima m (Y,), and the level (1,) of a worst-case loss; positive what is left of
    m <= f and f <= R m (2, X, Y), and of the losses of the rows (X,), which an expected loss has none of.
    """

    def __init__(self, program: TableProgram, ratio: float, watch: Watch) -> None:
        self.scale = float(np.abs(program.cost).max()) or 1.0
        self.cost, self.ratio, self.worst, self.watch = program.cost / self.scale, ratio, program.worst, watch
        self.inputs, self.outputs = self.cost.shape

    def start(self) -> Point:
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
        free = table, least, np.full(1, level)
        return Point(free, (self.slacks(table, least), spare), (np.stack((gaps + above, above)), shares), (weights,))

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

    def error(self, point: Point) -> float:
        """The gap, or the largest violation of an equality of the program or of its dual, in shares of the loss."""
        (table, least, level), (weights,) = point.free, point.multipliers
        value, bound = float(level[0]) if self.worst else float(np.sum(self.cost * table)), float(weights.sum())
        self.watch.step(value * self.scale, bound * self.scale)
        first, second = self.dual_residual(point)
        found = [np.abs(first).max(), np.abs(second).max(), np.abs(1.0 - table.sum(axis=1)).max(), abs(value - bound)]
        found.append(np.abs(point.positive[0] - self.slacks(table, least)).max())
        if self.worst:
            found += [np.abs(self.loss_residual(point)).max(), abs(1.0 - point.prices[1].sum())]
        return float(max(found)) / max(abs(value), 1e-6)

    def dual_residual(self, point: Point) -> tuple[Array, Array]:
        """What is missing in the dual, by the table and by its minima."""
        (prices, shares), (weights,) = point.prices, point.multipliers
        first, second = self.collected(prices)
        return self.charged(shares) - weights[:, None] - first, -second

    def loss_residual(self, point: Point) -> Array:
        """What is missing in the losses of the rows."""
        (table, _, level), (_, spare) = point.free, point.positive
        missing: Array = spare - level + np.sum(self.cost * table, axis=1)
        return missing

    def system(self, point: Point) -> Callable[[Sequence[Array]], Point]:
        """The equations of a step."""
        return _System(self, point).solve


class _System:
    """The linear equations of a step at one point, reduced to the coupling and factored."""

    def __init__(self, newton: _Newton, point: Point) -> None:
        self.newton, self.point = newton, point
        self.slacks, self.spare = point.positive
        self.prices, self.shares = point.prices
        self.scales = self.prices / self.slacks
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
        losses[np.diag_indices_from(losses)] += self.spare / self.shares
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

    def solve(self, goal: Sequence[Array]) -> Point:
        """The step after which slacks times prices change by the goal, to first order."""
        newton, (products, loss_products) = self.newton, goal
        table, least, _ = self.point.free
        residual = self.slacks - newton.slacks(table, least)
        wanted = newton.collected((products + self.prices * residual) / self.slacks)
        off = newton.dual_residual(self.point)
        coupled, total = 1.0 - table.sum(axis=1), 0.0
        if newton.worst:
            coupled = np.append(coupled, newton.loss_residual(self.point) + loss_products / self.shares)
            total = 1.0 - float(self.shares.sum())
        table, least, moves, level = self._refined(wanted[0] - off[0], wanted[1] - off[1], coupled, total)
        slacks = newton.slacks(table, least) - residual
        weights, shares = np.split(moves, [newton.inputs])
        spare = (loss_products - self.spare * shares) / self.shares
        prices = (products - self.prices * slacks) / self.slacks
        return Point((table, least, np.full(1, level)), (slacks, spare), (prices, shares), (weights,))

    def _refined(self, first: Array, second: Array, coupled: Array, total: float) -> tuple[Array, Array, Array, float]:
        """One round of iterative refinement on the equations before their reduction."""
        newton = self.newton
        table, least, moves, level = self._solved(first, second, coupled, total)
        used = newton.collected(self.scales * newton.slacks(table, least))
        rest = coupled - self._coupled(table)
        if newton.worst:
            count = newton.inputs
            rest = rest - np.append(np.zeros(count), self.spare / self.shares * moves[count:] + level)
            total = total - float(moves[count:].sum())
        more = self._solved(first + self._spread(moves) - used[0], second - used[1], rest, total)
        return table + more[0], least + more[1], moves + more[2], level + more[3]
