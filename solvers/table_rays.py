"""Tables whose columns lie in one simple cone: column generation over its extreme rays (notes/tables.md).

With complete adjacency a column of the table is a sum of rays `m (1 + (R-1) 1_S)` over subsets S of the inputs
(Kairouz, Oh, Viswanath 2016); on a forest of neighbours a ray steps by the allowed ratio along every edge. Pricing
takes O(X Y): a sum of minima, or one recursion from the leaves to the root. The master program has one row per input,
whatever the number of ratio constraints.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import scipy
from highspy import HighsModelStatus
from numpy.typing import NDArray
from privspec.solvers.highs import HighsProgram
from privspec.solvers.programs import Array, Indices, OutOfTimeError, SolverError, Watch
from privspec.solvers.table_programs import (
    CompleteDual,
    CompleteRatio,
    PairDual,
    PairRatio,
    TableDual,
    TableProgram,
    float_ratio,
    float_ratios,
)

if TYPE_CHECKING:
    from privspec.solvers.table_interior import Interior

_MANY = 1024  # entries of a table from which interior points beat column generation from nothing
_DENSE = 256  # inputs up to which a dense solve takes less time than to load a sparse one


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

    def sparsifier(self) -> scipy.sparse.csc_array:
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
        if program.cost.size < _MANY:
            return None
        from privspec.solvers.table_interior import interior_point  # most tables are small

        return interior_point(program, self.ratio, watch)

    def sparsifier(self) -> scipy.sparse.csc_array:
        """Differences of neighbours: an interval has two or three entries."""
        return scipy.sparse.csc_array(scipy.sparse.eye_array(self.size) - scipy.sparse.eye_array(self.size, k=-1))

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
        rays = np.eye(len(self.parent))
        reached: list[int] = []
        for x in self.order[::-1]:
            if (above := self.parent[x]) >= 0:
                # f_x <= R f_z: from x towards z the ray falls by the ratio of (x, z).
                rays[reached, x] = rays[reached, above] / self.up[x]
                rays[x, reached] = rays[above, reached] / self.down[x]
            reached.append(x)
        yield rays, np.argmin(cost.T @ rays, axis=0)

    def interior(self, program: TableProgram, watch: Watch) -> Interior | None:
        """None: the rays that fall off from each input are a better start."""
        return None

    def sparsifier(self) -> scipy.sparse.csc_array:
        """The inverse of the kernel exp(-distance), sparse on a forest: a ray keeps its turning points only."""
        child = np.flatnonzero(self.parent >= 0)
        parent = self.parent[child]
        fall = np.minimum(1 / np.sqrt(self.up[child] * self.down[child]), 0.999)
        share, cross = fall**2 / (1 - fall**2), -fall / (1 - fall**2)
        every = np.arange(len(self.parent))
        rows = np.concatenate((every, child, parent, child, parent))
        columns = np.concatenate((every, child, parent, parent, child))
        values = np.concatenate((np.ones(len(every)), share, share, cross, cross))
        return scipy.sparse.csc_array((values, (rows, columns)), shape=(len(every), len(every)))

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
    if isinstance(block, PairRatio) and block.pure:
        return _forest(block, size)
    return None


def _forest(block: PairRatio, size: int) -> ForestCone | None:
    number = {(int(a), int(b)): k for k, (a, b) in enumerate(block.pairs)}
    if len(number) < len(block.pairs) or not all(a != b and (b, a) in number for a, b in number):
        return None
    near: list[set[int]] = [set() for _ in range(size)]
    for a, b in number:
        near[a].add(b)
    parent = np.full(size, -1, dtype=np.intp)
    up_pair, down_pair = parent.copy(), parent.copy()
    order: list[int] = []
    leaves = [x for x in range(size) if len(near[x]) <= 1]
    while leaves:  # round by round, so that every tree ends at its centre
        order += (taken := sorted(leaves, reverse=True))
        leaves = []
        for x in taken:
            for above in near[x]:
                parent[x], up_pair[x], down_pair[x] = above, number[x, above], number[above, x]
                near[above].remove(x)
                leaves += [above] if len(near[above]) == 1 else []
    if len(order) < size:
        return None  # a circle is left
    root = np.arange(size)
    for x in order[::-1]:
        root[x] = x if parent[x] < 0 else root[parent[x]]
    ratios, parts = float_ratios(block), np.unique(root)[:, None] == root
    return ForestCone(
        np.array(order, dtype=np.intp), parent, ratios[up_pair], ratios[down_pair], up_pair, down_pair, parts
    )


# --- column generation ----------------------------------------------------------------------------

_SMOOTHING = 0.8
_CENTRAL = 40  # inputs from which worst cases are solved by interior points
_CENTRAL_SMOOTHING = 0.5
_NEGLIGIBLE = 1e-12  # the smallest matrix entry that HiGHS keeps
_PATIENCE = 50
_MOST_SHIFTS = 12
_MOST_RAYS = 4000  # beyond, the interior point itself is the answer
_CLOSED = 1e-7
_UNPROVEN = 10.0  # ranks prices whose shift has not settled below those that prove their bound


@dataclass(frozen=True, eq=False, slots=True)
class _Prices:
    """Multipliers of the row sums and of the inputs' losses, and the bound that they prove."""

    bound: float
    weights: Array
    loss_weights: Array | None

    def towards(self, other: _Prices, share: float) -> _Prices:
        """A mixture with `share` of these prices; its bound is not known yet."""
        loss_weights = None
        if self.loss_weights is not None and other.loss_weights is not None:
            loss_weights = share * self.loss_weights + (1 - share) * other.loss_weights
        return _Prices(-np.inf, share * self.weights + (1 - share) * other.weights, loss_weights)

    def reduced(self, program: TableProgram) -> Array:
        """Reduced costs of the entries of the table (X, Y)."""
        cost = program.cost if self.loss_weights is None else program.cost * self.loss_weights[:, None]
        return cost - self.weights[:, None]


def solve_cone(program: TableProgram, cone: Cone, tolerance: float, watch: Watch) -> ConeResult:
    """Column generation until value and Lagrangian bound agree within `tolerance` relative, or the deadline."""
    found = cone.interior(program, watch)
    best = None
    if found is not None:
        _, best = _prove(cone, _Prices(-np.inf, found.weights, found.loss_weights), program)
        if found.rays > _MOST_RAYS:
            value = _value(program, found.table)
            return ConeResult(found.table, value, _dual(cone, best, program), program.shape[0], _open(value, best))
    master = _Master(program, cone.sparsifier())
    if program.worst and found is None and program.shape[0] >= _CENTRAL:
        master.use_centre()
    for rays, outputs in cone.starts(program.cost) if found is None else found.starts():
        master.add(rays, outputs)
    notes: tuple[str, ...] = ()
    last, stalled = (np.inf, -np.inf), 0
    while True:
        try:
            value, prices = master.solve(watch)
        except SolverError:
            if not master.central and not watch.expired:
                master.use_centre()
                continue
            if best is None or master.amounts is None:
                raise
            # Rays that differ by little make the program over rays hard in the end: the last solution stands.
            value, notes = master.value, _open(master.value, best)
            break
        allowed = max(abs(value), 1e-12) * tolerance
        added = 0
        # Prices near the best ones so far give far better rays than the vertex of the master program's dual
        # (Wentges 1997); where they give none that helps, the vertex itself is tried.
        for trial in (prices,) if best is None else (best.towards(prices, master.smoothing), prices):
            rays, proven = _prove(cone, trial, program)
            best = proven if best is None or proven.bound > best.bound else best
            added = _add_improving(master, cone.parts, rays, prices.reduced(program), allowed)
            if added:
                break
        assert best is not None
        watch.step(value, best.bound)
        stalled = 0 if (value, best.bound) != last else stalled + 1
        last = (value, best.bound)
        if value - best.bound <= allowed or not added or stalled > _PATIENCE:
            break
        if watch.expired:
            notes = (f"stopped at the deadline with a relative gap of {(value - best.bound) / abs(value):.1e}",)
            break
    return ConeResult(master.table(), value, _dual(cone, best, program), master.rows, notes)


def _dual(cone: Cone, prices: _Prices, program: TableProgram) -> TableDual:
    return TableDual((cone.dual(prices.reduced(program)),), np.zeros(0), np.zeros(0), prices.loss_weights)


def _value(program: TableProgram, table: Array) -> float:
    rows = np.sum(program.cost * table, axis=1)
    return float(rows.max() if program.worst else rows.sum())


def _open(value: float, prices: _Prices) -> tuple[str, ...]:
    """What to say of a gap that is not closed."""
    gap = (value - prices.bound) / max(abs(value), 1e-300)
    return (f"stopped at a relative gap of {gap:.1e}",) if gap > _CLOSED else ()


def _prove(cone: Cone, trial: _Prices, program: TableProgram) -> tuple[Array, _Prices]:
    """The rays that the prices ask for, and the prices lowered just enough to prove a bound.

    Lowering all weights of a component by k adds k for each input to the price of a ray (of mean one): the least k is
    found by Dinkelbach's iteration.
    """
    reduced = trial.reduced(program)
    least, first = cone.price(reduced)
    weights = trial.weights.copy()
    for _ in range(_MOST_SHIFTS):
        shifts = np.maximum(-least.min(axis=1), 0.0) / cone.parts.sum(axis=1)
        if not shifts.any():
            break
        lowered = shifts @ cone.parts
        weights -= lowered
        reduced = reduced + lowered[:, None]
        least, _ = cone.price(reduced)
    shortfall = float(np.sum(np.maximum(-least.min(axis=1), 0.0)))
    return first, _Prices(float(weights.sum()) - shortfall * _UNPROVEN, weights, trial.loss_weights)


def _add_improving(master: _Master, parts: NDArray[np.bool_], rays: Array, reduced: Array, allowed: float) -> int:
    """Add the rays whose reduced cost is negative."""
    added = 0
    for part in parts:
        least = np.sum(rays[part] * reduced[part], axis=0)
        columns = np.flatnonzero(least < -0.01 * allowed / len(part))
        added += len(columns)
        master.add(rays[:, columns] * part[:, None], columns)
    return added


@dataclass(frozen=True, eq=False, slots=True)
class ConeResult:
    """The table (X, Y), its loss, the dual, the rows of the master program, and what the user should know."""

    table: Array
    value: float
    dual: TableDual
    rows: int
    notes: tuple[str, ...]


class _Master:
    """The program over rays: nonnegative multiples whose columns sum to one in each row.

    Its rows are those of the row sums, transformed by the cone's sparsifier.
    """

    def __init__(self, program: TableProgram, sparsifier: scipy.sparse.csc_array) -> None:
        self.program = program
        self.sparsifier = sparsifier
        size = program.shape[0]
        self.rows = size * (2 if program.worst else 1)
        self.lp = HighsProgram(primal=True)
        totals = sparsifier @ np.ones(size)
        self.lp.add_rows(
            np.concatenate((totals, np.full(self.rows - size, -np.inf))),
            np.concatenate((totals, np.zeros(self.rows - size))),
        )
        self.central, self.smoothing = False, _SMOOTHING
        self.amounts: Array | None = None
        self.value = np.inf
        self.steps: list[scipy.sparse.csc_array] = []
        self.outputs: list[Indices] = []
        if program.worst:
            level = np.concatenate((np.zeros(size), -np.ones(size)))
            self.lp.add_columns(
                np.ones(1), np.full(1, -np.inf), np.full(1, np.inf), scipy.sparse.csc_array(level[:, None])
            )

    def add(self, rays: Array, outputs: Indices) -> None:
        """Add rays (X, N), each to be used for one output."""
        if not len(outputs):
            return
        entries = self.sparsifier @ rays
        entries[np.abs(entries) < _NEGLIGIBLE] = 0.0
        steps = scipy.sparse.csc_array(entries)
        costs = rays * self.program.cost[:, outputs]
        if self.program.worst:
            matrix, prices = (
                scipy.sparse.vstack((steps, scipy.sparse.csc_array(costs)), format="csc"),
                np.zeros(len(outputs)),
            )
        else:
            matrix, prices = steps, costs.sum(axis=0)
        self.lp.add_columns(prices, np.zeros(len(outputs)), np.full(len(outputs), np.inf), matrix)
        self.steps.append(steps)
        self.outputs.append(outputs)

    def use_centre(self) -> None:
        """Solve by interior points from now on: prices in the middle of the best ones, where a vertex is a poor guess.

        With the losses of the rows beside their sums there are many vertices, and the simplex method fails on them.
        """
        self.central, self.smoothing = True, _CENTRAL_SMOOTHING
        self.lp.set("solver", "ipm")
        self.lp.set("run_crossover", "off")
        self.lp.set("presolve", "off")

    def solve(self, watch: Watch) -> tuple[float, _Prices]:
        """The value and the prices.

        Raises: SolverError if HiGHS gave up; `amounts` and `value` are then those of the last solution.
        """
        # A deadline stops a search that has something to show for; until then a little more time is worth it.
        left = None if watch.deadline is None else max(watch.deadline - watch.seconds, 1.0)
        status = self.lp.run(left)
        if status == HighsModelStatus.kTimeLimit and self.amounts is None:
            raise OutOfTimeError(None)
        if status != HighsModelStatus.kOptimal:
            raise SolverError(f"the program over rays ended with {status.name}")
        self.amounts, self.value = np.maximum(self.lp.column_value(), 0.0), self.lp.value()
        dual = self.lp.row_dual()
        size = self.program.shape[0]
        weights = self.sparsifier.T @ dual[:size]
        if not self.program.worst:
            return self.lp.value(), _Prices(-np.inf, weights, None)
        loss_weights = np.maximum(-dual[size:], 0.0)
        return self.lp.value(), _Prices(-np.inf, weights, loss_weights / loss_weights.sum())

    def table(self) -> Array:
        """The table (X, Y) that the last multiples give."""
        assert self.amounts is not None
        amounts = self.amounts[1 if self.program.worst else 0 :]
        used = np.flatnonzero(amounts > 0)
        steps = scipy.sparse.hstack(self.steps, format="csc")[:, used].toarray()
        rays = np.maximum(_unmixed(self.sparsifier, steps), 0.0)
        result = np.zeros(self.program.shape)
        np.add.at(result.T, np.concatenate(self.outputs)[used], (rays * amounts[used]).T)
        return result


def _unmixed(sparsifier: scipy.sparse.csc_array, steps: Array) -> Array:
    """The rays of which `steps` are the images under the sparsifier."""
    if len(steps) <= _DENSE:
        return np.linalg.solve(sparsifier.toarray(), steps)
    return np.asarray(scipy.sparse.linalg.splu(sparsifier).solve(steps))
