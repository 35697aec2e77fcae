"""An interior-point method for tables, over cones of ratios.

Interior points of tables whose inputs are all neighbours: m_y <= f_xy <= R m_y, for any number of outputs.

Every output brings its own block of constraints, coupled with the others by the row sums (and, for a worst-case loss,
by the losses of the rows) alone. A step factors one matrix of the size of the coupling and works entry by entry
otherwise: twenty steps for a table of 400 x 400. Predictor and corrector: Mehrotra 1992; one round of iterative
refinement keeps row sums exact to the last digit. The multipliers it ends with start column generation.

Tables whose columns lie in one simple cone, and its extreme rays (notes/tables.md).

With complete adjacency a column of the table is a sum of rays `m (1 + (R-1) 1_S)` over subsets S of the inputs
(Kairouz, Oh, Viswanath 2016); on a forest of neighbours a ray steps by the allowed ratio along every edge. Pricing
takes O(X Y): a sum of minima, or one recursion from the leaves to the root. The master program has one row per input,
whatever the number of ratio constraints.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from privspec.solvers.programs import Array, Indices, Watch
from privspec.solvers.table_programs import (
    CompleteDual,
    CompleteRatio,
    PairDual,
    PairRatio,
    TableProgram,
    float_ratio,
    float_ratios,
)
from scipy import linalg, sparse

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
        except linalg.LinAlgError:
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
        self.factor = linalg.cho_factor(self._coupling())

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
        moves: Array = linalg.cho_solve(self.factor, right)
        level = 0.0
        if self.newton.worst:
            count = self.newton.inputs
            ones = np.append(np.zeros(count), np.ones(count))
            other = linalg.cho_solve(self.factor, ones)
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


__all__ = ["Interior", "interior_point"]


_MANY = 1024  # entries of a table from which interior points beat column generation from nothing


class Cone(Protocol):
    """Columns (X,) that meet the ratios; `parts` (P, X) marks inputs that are bound together."""

    @property
    def parts(self) -> NDArray[np.bool_]:
        """Which inputs belong to each component, (P, X)."""
        ...

    def price(self, reduced: Array) -> tuple[Array, Array]:
        """Rays (X, Y) that find out whether `reduced[:, y] . ray` is negative for some ray, and the values (P, Y).

        Rays are scaled to a mean of one over each component.
        """
        ...

    def starts(self, cost: Array) -> Iterator[tuple[Array, Indices]]:
        """Rays (X, N) to start from, each with its best output; they make the master program feasible."""
        ...

    def interior(self, program: TableProgram, watch: Watch) -> Interior | None:
        """A point near the optimum to start from instead, where it can be had for less."""
        ...

    def sparsifier(self) -> sparse.csc_array:
        """An invertible matrix (X, X) that makes the rays sparse."""
        ...

    def dual(self, reduced: Array) -> CompleteDual | PairDual:
        """Multipliers that prove `reduced[:, y] . f >= 0` on the cone as far as it holds."""
        ...


@dataclass(frozen=True, eq=False, slots=True)
class CompleteCone:
    """All inputs are neighbours: m <= f_x <= ratio m."""

    size: int
    ratio: float

    @property
    def parts(self) -> NDArray[np.bool_]:
        """One component."""
        return np.ones((1, self.size), dtype=bool)

    def price(self, reduced: Array) -> tuple[Array, Array]:
        """The best subset takes the inputs of negative reduced cost."""
        rays = np.where(reduced < 0, self.ratio, 1.0)
        rays /= rays.mean(axis=0)
        return np.sum(rays * reduced, axis=0, keepdims=True), rays

    def starts(self, cost: Array) -> Iterator[tuple[Array, Indices]]:
        """The flat ray, every interval of inputs, and sublevel sets of the costs."""
        total = cost.sum(axis=0)
        yield np.ones((self.size, 1)), np.array([np.argmin(total)], dtype=np.intp)
        for first in range(self.size):
            gains = np.cumsum(cost[first:], axis=0)
            rays = np.ones((self.size, self.size - first))
            rays[first:] += (self.ratio - 1) * np.triu(np.ones((self.size - first, self.size - first)))
            yield rays, np.argmin(total + (self.ratio - 1) * gains, axis=1)
        order = np.argsort(cost, axis=0, kind="stable")
        for share in np.unique(np.geomspace(1, self.size, 10).astype(int)):
            rays = np.ones_like(cost)
            np.put_along_axis(rays, order[:share], self.ratio, axis=0)
            yield rays, np.arange(cost.shape[1])

    def interior(self, program: TableProgram, watch: Watch) -> Interior | None:
        """By interior points, unless the table is small."""
        return interior_point(program, self.ratio, watch) if program.cost.size >= _MANY else None

    def sparsifier(self) -> sparse.csc_array:
        """Differences of neighbours: an interval has two or three entries."""
        return sparse.csc_array(sparse.eye_array(self.size) - sparse.eye_array(self.size, k=-1))

    def dual(self, reduced: Array) -> CompleteDual:
        """The positive and the negative parts of the reduced costs."""
        return CompleteDual(np.maximum(reduced, 0.0), np.maximum(-reduced, 0.0))


@dataclass(frozen=True, eq=False, slots=True)
class ForestCone:
    """Neighbours form a forest: child <= up parent, parent <= down child; `order` lists children before parents.

    `up_pair` and `down_pair` are the numbers of the constraints in the block.
    """

    order: Indices
    parent: Indices
    up: Array
    down: Array
    up_pair: Indices
    down_pair: Indices
    parts: NDArray[np.bool_]

    def potentials(self, reduced: Array) -> Array:
        """Least cost of the subtree of x per unit of f_x, (X, Y)."""
        value = reduced.copy()
        for x in self.order:
            if self.parent[x] >= 0:
                value[self.parent[x]] += np.where(value[x] >= 0, value[x] / self.down[x], value[x] * self.up[x])
        return value

    def _settled(self, reduced: Array) -> Array:
        """Potentials with what is missing at a root handed down to where the ray is largest.

        A column that falls short by a rounding error of its peak would fall short by far more per unit of a root
        that is far from the peak: less is charged there, and the shortfall shrinks by the ratio with every edge.
        """
        value = self.potentials(reduced)
        missing = np.zeros_like(value)
        for x in self.order[::-1]:
            above = self.parent[x]
            if above < 0:
                missing[x] = np.minimum(value[x], 0.0)
            else:
                moved = np.minimum(np.maximum(-value[x], 0.0), -missing[above] / self.up[x])
                missing[above] += moved * self.up[x]
                value[x] += moved
                missing[x] = -moved
        return value

    def price(self, reduced: Array) -> tuple[Array, Array]:
        """Values from the leaves to the roots, rays on the way back."""
        value = self.potentials(reduced)
        rays = np.ones_like(reduced)
        for x in self.order[::-1]:
            if self.parent[x] >= 0:
                above = rays[self.parent[x]]
                rays[x] = np.where(value[x] >= 0, above / self.down[x], above * self.up[x])
        least = np.empty((len(self.parts), reduced.shape[1]))
        for number, part in enumerate(self.parts):
            rays[part] /= rays[part].mean(axis=0)
            least[number] = np.sum(rays[part] * reduced[part], axis=0)
        return least, rays

    def starts(self, cost: Array) -> Iterator[tuple[Array, Indices]]:
        """Rays that fall off geometrically from each input."""
        import networkx as nx  # type: ignore[import-untyped]  # slow to load

        graph: nx.DiGraph[int] = nx.DiGraph()
        for x in self.order:
            if self.parent[x] >= 0:
                graph.add_edge(int(x), int(self.parent[x]), weight=float(np.log(self.up[x])))
                graph.add_edge(int(self.parent[x]), int(x), weight=float(np.log(self.down[x])))
        rays = np.eye(len(self.parent))
        for x in range(len(self.parent)):
            if graph.has_node(x):
                # f_x <= R f_z: from x towards z the ray falls by the ratio of (x, z).
                for other, distance in nx.single_source_dijkstra_path_length(graph, x).items():
                    rays[other, x] = np.exp(-distance)
        yield rays, np.argmin(cost.T @ rays, axis=0)

    def interior(self, program: TableProgram, watch: Watch) -> Interior | None:
        """None: the rays that fall off from each input are a better start."""
        return None

    def sparsifier(self) -> sparse.csc_array:
        """The inverse of the kernel exp(-distance), sparse on a forest: a ray keeps its turning points only."""
        child = np.flatnonzero(self.parent >= 0)
        parent = self.parent[child]
        fall = np.minimum(1 / np.sqrt(self.up[child] * self.down[child]), 0.999)
        share, cross = fall**2 / (1 - fall**2), -fall / (1 - fall**2)
        every = np.arange(len(self.parent))
        rows = np.concatenate((every, child, parent, child, parent))
        columns = np.concatenate((every, child, parent, parent, child))
        values = np.concatenate((np.ones(len(every)), share, share, cross, cross))
        return sparse.csc_array((values, (rows, columns)), shape=(len(every), len(every)))

    def dual(self, reduced: Array) -> PairDual:
        """What each subtree has left is passed over the edge to its parent."""
        value = self._settled(reduced)
        pairs, columns, values = [], [], []
        for x in self.order:
            if self.parent[x] < 0:
                continue
            spare, short = value[x] > 0, value[x] < 0
            # parent <= down child: a multiplier z costs the child down z and gives the parent z; and so in reverse.
            for chosen, pair, scale in ((spare, self.down_pair[x], 1 / self.down[x]), (short, self.up_pair[x], -1.0)):
                where = np.flatnonzero(chosen)
                pairs.append(np.full(len(where), pair, dtype=np.intp))
                columns.append(where)
                values.append(value[x][where] * scale)
        if not pairs:
            empty = np.zeros(0, dtype=np.intp)
            return PairDual(empty, empty, np.zeros(0))
        return PairDual(np.concatenate(pairs), np.concatenate(columns), np.concatenate(values))


def cone_of(program: TableProgram) -> Cone | None:
    """The cone of the columns where it is a simple one and nothing else is asked of the table."""
    if not program.plain or len(program.privacy) != 1 or program.privacy[0].view is not None:
        return None
    block = program.privacy[0]
    size = program.shape[0]
    if isinstance(block, CompleteRatio):
        return CompleteCone(size, float_ratio(block.log_ratio))
    if isinstance(block, PairRatio) and block.delta == 0:
        return _forest(block, size)
    return None


def _forest(block: PairRatio, size: int) -> ForestCone | None:
    number = {(int(a), int(b)): k for k, (a, b) in enumerate(block.pairs)}
    import networkx as nx  # slow to load

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(size))
    graph.add_edges_from(number)
    both_ways = all((b, a) in number for a, b in number)
    if len(number) < len(block.pairs) or not both_ways or not nx.is_forest(graph):
        return None
    ratios = float_ratios(block)
    parent = np.full(size, -1, dtype=np.intp)
    up_pair, down_pair = parent.copy(), parent.copy()
    order: list[int] = []
    parts = np.zeros((nx.number_connected_components(graph), size), dtype=bool)
    for index, component in enumerate(nx.connected_components(graph)):
        parts[index, list(component)] = True
        root = nx.center(graph.subgraph(component))[0]
        order.append(root)
        for above, below in nx.bfs_edges(graph, root):
            parent[below] = above
            up_pair[below], down_pair[below] = number[below, above], number[above, below]
            order.append(below)
    return ForestCone(
        np.array(order[::-1], dtype=np.intp), parent, ratios[up_pair], ratios[down_pair], up_pair, down_pair, parts
    )
