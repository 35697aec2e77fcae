"""Interior points of tables whose pairs share out a delta, and the sets of outputs that their multipliers are made of.

f_a(S) - R f_b(S) <= delta has a row for each set S of outputs. A slack for each pair and output states it in far fewer,
and a step of the interior method eliminates these: what is factored has the size of the table (30 x 30 with all pairs:
900, not 27,000). The multipliers of a pair are a mixture of those of its rows: of their level sets. A few of these are
enough for the simplex method to land on a vertex (`table_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray
from privspec.solvers.programs import Array, Indices, Watch
from privspec.solvers.table_interior import Point, central_path
from privspec.solvers.table_programs import (
    CompleteRatio,
    LinearRows,
    PairRatio,
    Privacy,
    TableProgram,
    classes,
    float_ratios,
)

_CLOSE = 1e-7
_USABLE = 1e-3
_LEVELS = tuple(0.025 + 0.05 * step for step in range(20))
_UNUSED = 1e-6

Sets = tuple[Indices, NDArray[np.bool_]]
"""Pair numbers (N,) and the seen outputs (N, seen) of rows f_a(S) - R f_b(S) <= delta."""


def sets_of(program: TableProgram, watch: Watch) -> list[Sets | None]:
    """Rows to start from for each privacy block that has a delta, None for others; all None if no point was found."""
    newton = _Newton(program)
    point, gap = central_path(newton, newton.start(), _CLOSE, watch)
    if not gap < _USABLE:
        return [None] * len(newton.blocks)
    return [block.sets(*_of(point, k)) if block.delta else None for k, block in enumerate(newton.blocks)]


def _of(point: Point, block: int) -> tuple[Array, ...]:
    """t, s, u of a block, and their prices."""
    at = slice(3 * block, 3 * block + 3)
    return (*point.positive[at], *point.prices[at])


class _Block:
    """The ratios of a requirement: f_a - R f_b <= s in every seen output, s fixed or, with a delta, shared out."""

    def __init__(self, block: Privacy, inputs: int, outputs: int) -> None:
        if isinstance(block, CompleteRatio):
            block = PairRatio(np.argwhere(~np.eye(inputs, dtype=bool)), (block.log_ratio,), view=block.view)
        assert isinstance(block, PairRatio)
        view, self.inputs = classes(block, outputs), inputs
        self.shown = (view == np.arange(int(view.max()) + 1)[:, None]).astype(float)
        self.first, self.second = block.pairs.T
        self.ratios = float_ratios(block)[:, None]
        self.delta, self.fixed = float(block.delta), float(block.slack)

    def slacks(self) -> Array:
        """Half of the delta in even shares (K, seen); no rows without one."""
        count = len(self.shown)
        return np.full((len(self.first) if self.delta else 0, count), self.delta / 2 / count)

    def excess(self, table: Array) -> Array:
        """f_a - R f_b of what is seen (K, seen)."""
        seen = table @ self.shown.T
        return np.asarray(seen[self.first] - self.ratios * seen[self.second])

    def collected(self, prices: Array) -> Array:
        """The transposed of `excess` (X, Y)."""
        found = np.zeros((self.inputs, len(self.shown)))
        np.add.at(found, self.first, prices)
        np.subtract.at(found, self.second, self.ratios * prices)
        return np.asarray(found @ self.shown)

    def sets(self, t: Array, s: Array, u: Array, z: Array, q: Array, whole: Array) -> Sets:
        """Level sets of the prices z of t, and where slack is used, of the pairs whose delta has a price."""
        pairs = np.flatnonzero(whole > _UNUSED * whole.max())
        masks = [z[pairs] >= level * whole[pairs, None] for level in _LEVELS] + [s[pairs] > _UNUSED * self.delta]
        both = np.hstack((np.tile(pairs, len(masks))[:, None], np.vstack(masks)))
        both = np.unique(both[both[:, 1:].any(axis=1)], axis=0)
        return both[:, 0].astype(np.intp), both[:, 1:].astype(bool)


class _Eliminated:
    """The second derivatives of a block at a point, with its slacks eliminated: diag(each) + share common common'."""

    def __init__(self, block: _Block, t: Array, s: Array, u: Array, z: Array, q: Array, whole: Array) -> None:
        self.block, self.tight = block, z / t
        self.each, self.common, self.share = self.tight, np.zeros_like(t), np.zeros(len(t))
        if block.delta:
            self.own = self.tight + q / s
            self.common, self.each = self.tight / self.own, self.tight * (q / s) / self.own
            self.share = whole / u / (1 + whole / u * (1 / self.own).sum(axis=1))

    def slacks(self, right: Array) -> Array:
        """The change of the slacks that a right side asks for."""
        found = right / self.own
        return np.asarray(found - (self.share * found.sum(axis=1))[:, None] / self.own)

    def weigh(self, into: Array) -> None:
        """Add them, as derivatives by the table, to (X, Y, X, Y)."""
        block, (inputs, outputs) = self.block, into.shape[:2]
        own, places = np.zeros((inputs, outputs, outputs)), np.arange(self.each.shape[1])
        for x in range(inputs):
            pairs = np.flatnonzero(block.first == x)
            part = self.share[pairs, None, None] * self.common[pairs, :, None] * self.common[pairs, None, :]
            part[:, places, places] += self.each[pairs]
            part = block.shown.T @ part @ block.shown if len(places) < outputs else part
            own[x] += part.sum(axis=0)
            for ratio, second, one in zip(block.ratios[pairs, 0], block.second[pairs], part, strict=True):
                own[second] += ratio**2 * one
                into[x, :, second] -= ratio * one
                into[second, :, x] -= ratio * one
        for x in range(inputs):
            into[x, :, x] += own[x]


class _Newton:
    """The program with its residuals.

    Free are entries and scalars v, and the slacks s of each block; positive, in this order, t = s - (f_a - R f_b), s,
    and u = delta - sum s of each block, what has a lower end above it, and rows below their bounds. Without a delta s
    and u are empty.
    """

    def __init__(self, program: TableProgram) -> None:
        inputs, outputs = self.shape = program.shape
        self.entries, extra = inputs * outputs, program.extra
        self.blocks = [_Block(block, *program.shape) for block in program.privacy]
        self.size = self.entries + len(extra) + program.worst
        lower, upper, price = ([float(v) for v in values] for values in (extra.lower, extra.upper, extra.cost))
        self.low = np.append(np.zeros(self.entries), lower)
        of_row = np.repeat(np.eye(inputs), outputs, axis=1)
        cost = np.zeros(self.entries) if program.worst else program.cost.ravel()
        self.cost = np.concatenate((cost, price, np.ones(int(program.worst))))
        self.cost /= float(np.abs(self.cost).max()) or 1.0
        sums = np.hstack((of_row, np.zeros((inputs, self.size - self.entries))))
        self.equal, self.sums = self._joined(sums, np.ones(inputs), program.equalities)
        ends = np.eye(self.size)[self.entries : self.entries + len(extra)]
        if program.worst:
            dear = [of_row * program.cost.ravel(), np.zeros((inputs, len(extra))), -np.ones((inputs, 1))]
            ends, upper = np.vstack((ends, np.hstack(dear))), upper + [0.0] * inputs
        self.most, self.bounds = self._joined(ends, np.array(upper), program.inequalities)

    def _joined(self, first: Array, bounds: Array, rows: LinearRows) -> tuple[Array, Array]:
        more = np.zeros((len(rows.bounds), self.size))
        np.add.at(more, (rows.rows, rows.columns), [float(v) for v in rows.values])
        return np.vstack((first, more)), np.append(bounds, [float(v) for v in rows.bounds])

    def measured(self, v: Array, slacks: Sequence[Array]) -> list[Array]:
        """What has to be positive, in order."""
        table = v[: self.entries].reshape(self.shape)
        found = []
        for block, own in zip(self.blocks, slacks, strict=True):
            most = own if block.delta else block.fixed
            found += [most - block.excess(table), own, block.delta - own.sum(axis=1)]
        return [*found, v[: len(self.low)] - self.low, self.bounds - self.most @ v]

    def transposed(self, prices: Sequence[Array]) -> tuple[Array, list[Array]]:
        """What prices of the positive say of v, and of the slacks."""
        of_v = -(self.most.T @ prices[-1])
        of_v[: len(self.low)] += prices[-2]
        slacks = []
        for k, block in enumerate(self.blocks):
            t, s, u = prices[3 * k : 3 * k + 3]
            of_v[: self.entries] -= block.collected(t).ravel()
            slacks.append(t + s - u[:, None] if block.delta else s)
        return of_v, slacks

    def start(self) -> Point:
        """An even table, and prices of size 1 / X."""
        v = np.full(self.size, 1.0 / self.shape[1])
        ends = slice(self.entries, len(self.low))
        v[ends] = (self.low[ends] + self.bounds[: len(self.low) - self.entries]) / 2
        v[len(self.low) :] = 1.1 * float(np.abs(self.cost).max()) * np.abs(self.most).max(initial=1.0)
        slacks = tuple(block.slacks() for block in self.blocks)
        positive = tuple(np.maximum(part, 1e-2 / self.size) for part in self.measured(v, slacks))
        size = 1.0 / self.shape[0]
        prices: list[Array] = [np.full(part.shape, size / 2) for part in positive]
        for k in range(len(self.blocks)):
            prices[3 * k + 2] *= 2
        prices[-2] = np.ones(len(self.low))
        return Point((v, *slacks), positive, tuple(prices), (np.zeros(len(self.sums)),))

    def residuals(self, point: Point) -> tuple[Array, list[Array], Array, list[Array]]:
        """What is missing in the dual (by v, by slacks), in the equalities, and in what is positive."""
        (v, *slacks), (w,) = point.free, point.multipliers
        of_v, of_slacks = self.transposed(point.prices)
        measured = zip(point.positive, self.measured(v, slacks), strict=True)
        missing = self.cost - self.equal.T @ w - of_v
        return missing, [-part for part in of_slacks], self.sums - self.equal @ v, [a - b for a, b in measured]

    def error(self, point: Point) -> float:
        """Sum of slacks times prices against the loss, or the largest violation of an equality."""
        missing, slacks, sums, positive = self.residuals(point)
        away = max(float(np.abs(part).max(initial=0.0)) for part in (missing, sums, *slacks, *positive))
        return max(point.products / max(abs(float(self.cost @ point.free[0])), 1e-9), away / 10)

    def system(self, point: Point) -> Callable[[Sequence[Array]], Point]:
        """The equations of a step."""
        return _System(self, point).solve


class _System:
    """The linear equations of a step at one point, factored."""

    def __init__(self, newton: _Newton, point: Point) -> None:
        self.newton, self.point = newton, point
        self.missing, self.missing_slacks, self.sums, self.off = newton.residuals(point)
        self.parts = [_Eliminated(block, *_of(point, k)) for k, block in enumerate(newton.blocks)]
        inputs, outputs = newton.shape
        pure = np.zeros((inputs, outputs, inputs, outputs))
        for part in self.parts:
            part.weigh(pure)
        ends, rows = (price / slack for slack, price in zip(point.positive[-2:], point.prices[-2:], strict=True))
        matrix = newton.most.T @ (rows[:, None] * newton.most)
        matrix[: newton.entries, : newton.entries] += pure.reshape(newton.entries, newton.entries)
        matrix[np.arange(len(ends)), np.arange(len(ends))] += ends
        self.factor = scipy.linalg.cho_factor(matrix, overwrite_a=True, check_finite=False)
        self.spread = scipy.linalg.cho_solve(self.factor, newton.equal.T)
        coupling = newton.equal @ self.spread
        coupling[np.diag_indices_from(coupling)] *= 1 + 1e-13
        self.coupling = scipy.linalg.cho_factor(coupling)

    def solve(self, goal: Sequence[Array]) -> Point:
        """The step after which what is positive times its prices changes by the goal, to first order."""
        newton, point = self.newton, self.point
        every = list(zip(goal, point.positive, point.prices, self.off, strict=True))
        right, of_slacks = newton.transposed([(a + price * off) / slack for a, slack, price, off in every])
        right -= self.missing
        asked = [a - b for a, b in zip(of_slacks, self.missing_slacks, strict=True)]
        for part, own in zip(self.parts, asked, strict=True):
            if part.block.delta:
                right[: newton.entries] += part.block.collected(part.tight * part.slacks(own)).ravel()
        first = scipy.linalg.cho_solve(self.factor, right)
        w = scipy.linalg.cho_solve(self.coupling, self.sums - newton.equal @ first)
        v = first + self.spread @ w
        slacks = []
        for part, own in zip(self.parts, asked, strict=True):
            excess = part.block.excess(v[: newton.entries].reshape(newton.shape))
            slacks.append(part.slacks(own + part.tight * excess) if part.block.delta else own)
        constant = newton.measured(0 * v, [0 * own for own in slacks])
        moves = [a - b - c for a, b, c in zip(newton.measured(v, slacks), constant, self.off, strict=True)]
        prices = tuple((a - price * move) / slack for (a, slack, price, _), move in zip(every, moves, strict=True))
        return Point((v, *slacks), tuple(moves), prices, (w,))
