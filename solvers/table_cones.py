"""Tables whose columns lie in one simple cone, and its extreme rays (notes/tables.md).

With complete adjacency a column of the table is a sum of rays `m (1 + (R-1) 1_S)` over subsets S of the inputs
(Kairouz, Oh, Viswanath 2016); on a forest of neighbours a ray steps by the allowed ratio along every edge. Pricing
takes O(X Y): a sum of minima, or one recursion from the leaves to the root. The master program has one row per input,
whatever the number of ratio constraints.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from privspec.solvers.programs import Array
from privspec.solvers.results import Indices, Watch
from privspec.solvers.table_interior import Interior, interior_point
from privspec.solvers.table_programs import CompleteDual, CompleteRatio, PairDual, PairRatio, TableProgram
from privspec.solvers.table_ratios import float_ratio, float_ratios
from scipy import sparse

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
