"""Programs of additive noise in plain matrices, what solving them gives, and sets of input differences as matrices.

Gaussian placement (notes/placement.md; Ramon & Basu 2020, section 3.2). Unknown is the covariance
`Sigma` (m, m) of the output noise, either any positive semidefinite matrix or `sum_k M_k diag(s_k) M_k'`
over given sites. Minimise `loss(Sigma)` subject to, for each view o (an observer of the rows P_o under one
requirement) and each admissible difference d of the inputs,

    (P_o F d)' (P_o Sigma P_o')^-1 (P_o F d) <= 1

(differences come divided by the mu that the requirement allows).

Over a box of many entries exact maxima are NP-hard. The largest s'Gs over sign vectors is bounded above by tr D for any
diagonal D with D - G positive semidefinite (the least such bound is within pi/2: Nesterov 1998), and below by any sign
vector. The solver plays one against the other: it meets the sign vectors found so far, looks for one that is violated,
and at last scales by the upper bound.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.kernel.changes import CROWD, spaced

if TYPE_CHECKING:  # all families import this file, and many specs are solved without scipy
    import scipy

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, eq=False, slots=True)
class Vectors:
    """The differences +-column, for each column of a sparse (n, N) matrix.

    `count`: these hold what is meant, sums of up to so many of them, each with the share 1 / count.
    """

    matrix: scipy.sparse.csc_array
    count: int = 1


@dataclass(frozen=True, eq=False, slots=True)
class Pairs:
    """The differences scale * (e_i - e_j), i != j, over the given coordinates (a record that moves between cells).

    `runs`: the cells are those of so many parties, one after another, whose records no question tells apart.
    """

    coordinates: Indices
    scale: float
    runs: int = 1


@dataclass(frozen=True, eq=False, slots=True)
class Balls:
    """Every vector of l2 norm at most `radius` that is supported on one of the blocks."""

    blocks: tuple[Indices, ...]
    radius: float


@dataclass(frozen=True, eq=False, slots=True)
class Boxes:
    """Every vector with |d_i| <= reach[i] that is supported on one of the blocks; reach has length n.

    `lines`, if any: block b of n_b inputs moves besides by any of its own lines (n_b, k_b) times numbers from -1 to 1.
    """

    blocks: tuple[Indices, ...]
    reach: Array
    lines: tuple[Array, ...] = ()

    def reaches(self) -> Array:
        """How far each input moves at most (n,), whatever its block."""
        found = self.reach.copy()
        for block, lines in zip(self.blocks, self.lines, strict=False):
            found[block] += np.abs(lines).sum(axis=1)
        return found

    def scaled(self, factor: float) -> Boxes:
        """Every difference times a factor."""
        return Boxes(self.blocks, self.reach * factor, tuple(lines * factor for lines in self.lines))

    def edges(self) -> Iterator[tuple[Indices, Array]]:
        """For each block the inputs that move, and its edges (k, e): it holds all sums of these, -1 to 1 times each."""
        for number, block in enumerate(self.blocks):
            lines = self.lines[number] if self.lines else np.zeros((len(block), 0))
            sizes = self.reach[block]
            kept = (sizes > 0) | lines.any(axis=1)
            sides = np.diag(sizes)[:, sizes > 0]
            yield block[kept], np.hstack([sides, lines])[kept]

    def moved(self, matrix: Array) -> Iterator[Array]:
        """What the edges of each block move (m, e), for a matrix (m, n)."""
        for number, block in enumerate(self.blocks):
            sizes = self.reach[block]
            found = matrix[:, block[sizes > 0]] * sizes[sizes > 0]
            yield np.hstack([found, matrix[:, block] @ self.lines[number]]) if self.lines else found


@dataclass(frozen=True, eq=False, slots=True)
class Streams:
    """Vectors of `dimension` numbers in a row, of which up to `count` change at once, each by one of length `reach`.

    They are `apart` from each other, or more unless `exactly`. A coordinate (n of them) stands for a vector, on each
    number of which all maps act alike.
    """

    size: int
    reach: float
    count: int
    apart: int
    exactly: bool
    dimension: int

    @property
    def most(self) -> int:
        """Units that change at once at most."""
        return min(self.count, -(-self.size // self.apart))

    def choices(self) -> NDArray[np.intp] | None:
        """Choices of coordinates (c, k) that change at once, in each as many as there are; -1 behind them.

        None for too many.
        """
        most = self.size if self.exactly else LISTED
        found = spaced(self.size, self.most, self.apart, exactly=self.exactly, most=most)
        return None if found is None else np.array([own + [-1] * (self.most - len(own)) for own in found], np.intp)


LISTED = 48
"""Choices of units that lie so far apart, or more, up to which each is met as it is."""


Differences: TypeAlias = Vectors | Pairs | Balls | Boxes | Streams


@dataclass(frozen=True, eq=False, slots=True)
class View:
    """What one requirement protects: output rows seen (None = all) and input differences divided by mu."""

    rows: Indices | None
    differences: Differences
    name: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class ExpectedLoss:
    """`trace(C Sigma C')`: C (q, m) maps output noise to error terms (weights as square roots)."""

    error_map: Array


@dataclass(frozen=True, eq=False, slots=True)
class WorstLoss:
    """`max_j (C Sigma C')_jj` over the q rows of C; with `groups` (q,), numbered from 0, over sums of their rows."""

    error_map: Array
    groups: Indices | None = None

    @property
    def count(self) -> int:
        """How many there are to be the largest."""
        return len(self.error_map) if self.groups is None else int(self.groups.max(initial=-1)) + 1

    def added(self, rows: Array) -> Array:
        """The sums of the groups (count,) of figures of the rows."""
        return rows if self.groups is None else np.bincount(self.groups, rows, self.count).astype(np.float64)

    def spread(self, weights: Array) -> Array:
        """Weights of the groups as weights of their rows."""
        return weights if self.groups is None else np.asarray(weights[self.groups])


Loss: TypeAlias = ExpectedLoss | WorstLoss


@dataclass(frozen=True, eq=False, slots=True)
class Site:
    """A place where independent noise may enter: `name`, and the map (m, k) from its coordinates to the outputs."""

    name: str
    map: Array


@dataclass(frozen=True, eq=False, slots=True)
class Limit:
    """An accuracy that must hold: `trace(C Sigma C') <= bound`, C (q, m)."""

    error_map: Array
    bound: float


@dataclass(frozen=True, eq=False, slots=True)
class GaussianProgram:
    """The whole program; `sites` None means that any covariance is allowed (a trusted curator).

    Only the reference path takes `limits`.
    """

    target: Array
    loss: Loss
    views: tuple[View, ...]
    sites: tuple[Site, ...] | None = None
    limits: tuple[Limit, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class DualPoint:
    """A certificate of optimality: weights on chosen differences, and on loss rows for a worst-case loss.

    For each view o, `differences[o]` (n, N_o) sparse with admissible columns (already divided by mu) and
    `weights[o]` (N_o,) >= 0. `loss_weights` >= 0 summing to 1 for `WorstLoss`, one for each row (q,) or group, else
    None. With
    v = P_o F d, any z_oi, p = weights:
    lower bound = (sum p z'v)^2 / (kappa sum p), kappa the largest ratio over admissible unit noise of
    sum p (z' P_o m)^2 to its cost (full covariance: the least kappa with sum p P_o'zz'P_o <= kappa W).
    With limits: `limit_weights` nu (L,) >= 0; the bound is that of the loss plus sum nu trace(C Sigma C'), less
    sum nu bound (weak duality).
    """

    differences: tuple[scipy.sparse.csc_array, ...]
    weights: tuple[Array, ...]
    loss_weights: Array | None = None
    limit_weights: Array | None = None


@dataclass(frozen=True, eq=False, slots=True)
class GaussianSolution:
    """A feasible point with its proof of quality.

    `variances`: one vector for each site, or None for full covariance. `strategy` (k, n) and
    `reconstruction` (m, k): output = reconstruction @ (strategy @ x + N(0, I)), reconstruction @ strategy = target
    on the inputs, and Sigma = reconstruction @ reconstruction'. When m is far larger than n the
    `input_estimate` (n, k) is given instead and reconstruction = target @ input_estimate.
    Rows of the strategy are ordered so that views that are nested see prefixes: `blocks[o]` is the number of
    leading strategy rows that view o's outputs depend on.
    `root` (m, r): a root of the covariance of what is protected, up to its scale, without the nominal noise on what is
    not; `lower_bound` is shown with vectors taken from it.
    """

    value: float
    lower_bound: float
    strategy: Array
    reconstruction: Array | None
    input_estimate: Array | None
    blocks: tuple[int, ...]
    variances: tuple[Array, ...] | None
    dual: DualPoint
    method: str
    iterations: int
    seconds: float
    notes: tuple[str, ...] = ()
    root: Array | None = None

    @property
    def relative_gap(self) -> float:
        """(value - lower bound) / value."""
        return (self.value - self.lower_bound) / self.value if self.value > 0 else 0.0


Progress: TypeAlias = Callable[[int, float, float], None]
"""Called with the iteration, the value of the best feasible point and the best lower bound."""


@dataclass(frozen=True, eq=False, slots=True)
class Unprotectable:
    """No noise at the allowed sites hides this input difference from this view: the program is infeasible.

    `view` is the index of the view, `difference` (n,) an admissible difference of the inputs whose effect on
    the view's outputs lies outside the range of every site map.
    """

    view: int
    name: str
    difference: Array


class SolverError(Exception):
    """A solver could not answer; `advice`: what may help."""

    advice = "name the places for noise (`noise at ...`), or release fewer numbers"


class ReferenceFailedError(SolverError):
    """cvxpy or its solver gave no usable answer; `status` is its own word for it."""

    def __init__(self, status: str) -> None:
        super().__init__(f"the reference solver stopped with status {status}")
        self.status = status


class NotSpecialError(SolverError):
    """The program has a shape that no special solver treats; the general convex solver must."""


class OutOfTimeError(SolverError):
    """The deadline passed; `best` is the best feasible solution so far with its certified gap, if there is one."""

    def __init__(self, best: GaussianSolution | None) -> None:
        """Carry the best solution so far."""
        gap = "no feasible point was found" if best is None else f"relative gap {best.relative_gap:.1e} reached"
        super().__init__(f"the solver ran out of time: {gap}")
        self.best = best


@dataclass(slots=True)
class Watch:
    """Counts iterations, tells `progress`, and knows when the deadline has passed."""

    deadline: float | None = None
    progress: Progress | None = None
    started: float = field(default_factory=time.perf_counter)
    iterations: int = 0

    def step(self, value: float, lower_bound: float) -> None:
        """Count one iteration and report it."""
        self.iterations += 1
        if self.progress is not None:
            self.progress(self.iterations, value, lower_bound)

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    @property
    def left(self) -> float | None:
        """Seconds until the deadline, None without one."""
        return None if self.deadline is None else self.deadline - self.seconds

    @property
    def expired(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline is not None and self.seconds > self.deadline


EVEN = 10
"""Powers of two by which outputs that are measured in one unit may move more or less."""


@dataclass(frozen=True, eq=False, slots=True)
class Units:
    """Powers of two in which a program is solved: of each output (m,), of the roots of the loss, of the noise at sites.

    Solvers tell what is small from what is round-off by its size, so that euros, cents and counts are brought near one.
    """

    outputs: Array
    loss: float
    limits: tuple[float, ...] = ()
    sites: tuple[Array, ...] | None = None

    @classmethod
    def of(cls, program: GaussianProgram) -> Units:
        """Each output by how far differences move it, all alike where that is much the same; errors by the largest.

        By powers of two, which leave every digit as it is; by these numbers themselves where the general solver, of
        limits, stops at absolute tolerances.
        """
        near = positive if program.limits else powers
        reach = np.max([_reach(view.differences, program.target.shape[1]) for view in program.views], axis=0)
        tops = np.array([np.max(np.abs(row) * reach, initial=0.0) for row in program.target])
        most = float(near(tops.max(initial=0.0)))
        alike = most <= 2.0**EVEN * tops.min(initial=np.inf, where=tops > 0)
        units = np.where(alike | (tops == 0), most, near(tops))
        loss = float(near(np.max(np.abs(program.loss.error_map) * units, initial=0.0)))
        limits = tuple(float(near(np.sqrt(one.bound))) for one in program.limits)
        maps = (np.abs(site.map) / units[:, None] for site in program.sites or ())
        sites = tuple(1 / near(one.max(axis=0, initial=0.0)) for one in maps)
        return cls(units, loss, limits, None if program.sites is None else sites)

    def program(self, program: GaussianProgram) -> GaussianProgram:
        """The program in these units."""
        loss, maps = program.loss, zip(program.sites or (), self.sites or (), strict=True)
        return replace(
            program,
            target=program.target / self.outputs[:, None],
            loss=replace(loss, error_map=loss.error_map * self.outputs / self.loss),
            sites=program.sites and tuple(Site(s.name, s.map / self.outputs[:, None] * u) for s, u in maps),
            limits=tuple(
                Limit(one.error_map * self.outputs / unit, one.bound / unit**2)
                for one, unit in zip(program.limits, self.limits, strict=True)
            ),
        )

    def solution(self, found: GaussianSolution) -> GaussianSolution:
        """A solution of that as one of the program itself."""
        square, dual = self.loss**2, found.dual
        if dual.limit_weights is not None:
            dual = replace(dual, limit_weights=dual.limit_weights * square / np.array(self.limits) ** 2)
        variances = zip(found.variances or (), self.sites or (), strict=True)
        return replace(
            found,
            value=found.value * square,
            lower_bound=found.lower_bound * square,
            reconstruction=None if found.reconstruction is None else found.reconstruction * self.outputs[:, None],
            variances=found.variances and tuple(own * unit**2 for own, unit in variances),
            root=None if found.root is None else found.root * self.outputs[:, None],
            dual=dual,
        )

    def progress(self, told: Progress | None) -> Progress | None:
        """One that is told of losses in these units."""
        return told and (lambda step, value, bound: told(step, value * self.loss**2, bound * self.loss**2))


def powers(values: Any) -> Array:
    """The powers of two that numbers are at most, of 0 one."""
    part, exponents = np.frexp(positive(values))
    return np.asarray(np.ldexp(1.0, exponents - (part == 0.5)))


def positive(values: Any) -> Array:
    """Numbers, one in place of 0."""
    return np.asarray(np.where(np.asarray(values) == 0, 1.0, values))


def _reach(differences: Differences, n: int) -> Array:
    """How far each input (n,) moves at most."""
    found = np.zeros(n)
    match differences:
        case Vectors(matrix):
            np.maximum.at(found, matrix.indices, np.abs(matrix.data))
        case Pairs(coordinates, scale):
            found[coordinates] = scale
        case Balls(blocks, radius):
            found[np.concatenate([np.zeros(0, np.intp), *blocks])] = radius
        case Boxes(blocks, reach):
            return reach
        case Streams(reach=radius):
            found[:] = radius
    return found


SWEEPS = 60
STARTS = 24
ROUNDS = 20
VIOLATED = 1e-7
"""Excess over one at which a sign vector is added to the program."""


def box_scaling(gram: Array) -> Array:
    """Positive c (k,): the largest eigenvalue of c G c times the sum of 1 / c^2 is the bound of `box_bound`."""
    diagonal = np.diag(gram)
    floor = 1e-12 * float(diagonal.max(initial=1e-300))
    known = [1.0 / np.sqrt(np.maximum(d, floor)) for d in (_dual_diagonal(gram), np.ones(len(gram)), diagonal)]
    return min(known, key=lambda c: _scaled_bound(gram, c))


def _scaled_bound(gram: Array, scaling: Array) -> float:
    return float(np.sum(scaling**-2.0)) * float(np.linalg.eigvalsh(scaling[:, None] * gram * scaling)[-1])


def box_bound(gram: Array) -> float:
    """An upper bound of s'Gs over sign vectors s, within pi/2 of the largest; never below it but for round-off.

    Args: gram (k, k) positive semidefinite.
    """
    if not np.any(gram):
        return 0.0
    return min(float(np.abs(gram).sum()), _scaled_bound(gram, box_scaling(gram)) * (1 + 1e-12 * len(gram)))


def _dual_diagonal(gram: Array) -> Array:
    """Near-optimal D: at unit vectors v_i that maximise sum G_ij v_i'v_j, d_i v_i = sum_j G_ij v_j."""
    k = len(gram)
    rank = min(k, int(np.sqrt(2 * k)) + 2)
    vectors = np.random.default_rng(0).standard_normal((k, rank))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    diagonal = np.diag(gram)
    sizes = np.zeros(k)
    for _ in range(SWEEPS):
        for i in range(k):
            pull = gram[i] @ vectors - diagonal[i] * vectors[i]
            sizes[i] = float(np.linalg.norm(pull))
            if sizes[i] > 0:
                vectors[i] = pull / sizes[i]
    return np.asarray(sizes + diagonal)


def large_signs(gram: Array, seed: int) -> Array:
    """Sign vectors (k, N), first entry +1, at local maxima of s'Gs: no single flip makes it larger."""
    k = len(gram)
    generator = np.random.default_rng(seed)
    starts = [np.ones(k), *(np.sign(generator.standard_normal((STARTS, k))) + 0.0)]
    values, vectors = np.linalg.eigh(gram)
    starts += [np.where(vectors[:, j] >= 0, 1.0, -1.0) for j in np.argsort(values)[-4:]]
    found = {tuple(_climb(gram, start)) for start in starts}
    return np.array(sorted(found)).T


def _climb(gram: Array, start: Array) -> Array:
    signs = np.where(start >= 0, 1.0, -1.0)
    diagonal = np.diag(gram)
    pull = gram @ signs
    for _ in range(20 * len(signs)):
        gains = diagonal - signs * pull  # a quarter of what flipping each entry gains
        best = int(np.argmax(gains))
        if gains[best] <= 1e-12 * max(float(diagonal.max()), 1e-300):
            break
        pull -= 2 * signs[best] * gram[:, best]
        signs[best] = -signs[best]
    return np.asarray(signs * signs[0])


VERTEX_LIMIT = 12
"""Largest box block that is replaced by its vertices: 2^11 of them up to sign."""
VERTEX_TOTAL = 32_768
"""Largest number of box vertices in one view."""


@dataclass(frozen=True, eq=False, slots=True)
class Directions:
    """Finitely many differences, in groups: the set is every unit combination of the columns of one group.

    `matrix` (n, N) sparse; `sizes` (number of groups,): group g holds the next sizes[g] columns. A group of one
    column is a single vector (and its negative), a larger group is an l2 ball; groups of one come first.
    """

    matrix: scipy.sparse.csc_array
    sizes: Indices

    @property
    def single(self) -> bool:
        """Whether every group is one vector."""
        return bool(np.all(self.sizes == 1))


def slices(sizes: Indices) -> list[slice]:
    """The columns of each group."""
    stops = np.cumsum(sizes)
    return [slice(int(stop - size), int(stop)) for stop, size in zip(stops, sizes, strict=True)]


def groups(sizes: Indices) -> tuple[int, list[slice]]:
    """How many columns are groups of their own (they come first), and the columns of every larger group."""
    alone = int(np.count_nonzero(sizes == 1))
    return alone, [slice(alone + one.start, alone + one.stop) for one in slices(sizes[alone:])]


def pair_matrix(
    coordinates: Indices, firsts: Indices, seconds: Indices, scale: float, n: int
) -> scipy.sparse.csc_array:
    """The differences scale * (e_i - e_j), i = coordinates[firsts], j = coordinates[seconds], as columns (n, N)."""
    import scipy

    count = len(firsts)
    rows = np.concatenate([coordinates[firsts], coordinates[seconds]])
    values = np.repeat([scale, -scale], count)
    return scipy.sparse.csc_array((values, (rows, np.tile(np.arange(count), 2))), shape=(n, count))


def on_block(values: Array, block: Indices, n: int) -> scipy.sparse.csc_array:
    """Columns (n, N) with `values` (k, N) on a block of k inputs."""
    import scipy

    rows, columns = np.repeat(block, values.shape[1]), np.tile(np.arange(values.shape[1]), len(block))
    return scipy.sparse.csc_array((values.ravel(), (rows, columns)), shape=(n, values.shape[1]))


def box_vertices(edges: Array) -> Array:
    """All sums of edges (k, e) with signs, up to the sign of the whole (k, 2^(e-1)), the first one added."""
    signs = [(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=max(edges.shape[1] - 1, 0))]
    return np.asarray(edges @ np.array(signs)[:, : edges.shape[1]].T)


def small_boxes(boxes: Boxes) -> bool:
    """Whether the box blocks have few enough vertices to list them."""
    lines = [own.shape[1] for own in boxes.lines] or [0] * len(boxes.blocks)
    widths = [int(np.count_nonzero(boxes.reach[block])) + k for block, k in zip(boxes.blocks, lines, strict=True)]
    return max(widths, default=0) <= VERTEX_LIMIT and sum(2**w for w in widths) <= 2 * VERTEX_TOTAL


def explicit(differences: Differences, n: int) -> Directions:
    """The differences as directions.

    Raises: NotSpecialError for boxes with too many vertices, and for streams.
    """
    import scipy

    match differences:
        case Vectors(matrix):
            matrix = scipy.sparse.csc_array(matrix[:, np.flatnonzero(abs(matrix).sum(axis=0) > 0)])
        case Pairs(coordinates, scale):
            matrix = pair_matrix(coordinates, *np.triu_indices(len(coordinates), 1), scale, n)
        case Balls(blocks, radius):
            blocks = tuple(sorted((block for block in blocks if len(block)), key=lambda block: len(block) > 1))
            rows = np.concatenate([np.zeros(0, np.intp), *blocks])
            matrix = scipy.sparse.csc_array(
                (np.full(len(rows), radius), (rows, np.arange(len(rows)))), shape=(n, len(rows))
            )
            return Directions(matrix, np.array([len(block) for block in blocks], np.intp))
        case Boxes():
            if not small_boxes(differences):
                raise NotSpecialError("a box with more than 12 entries has too many vertices")
            parts = [on_block(box_vertices(edges), block, n) for block, edges in differences.edges() if len(block)]
            matrix = scipy.sparse.csc_array(scipy.sparse.hstack([scipy.sparse.csc_array((n, 0)), *parts]))
        case Streams():
            raise NotSpecialError("vectors that change at once have too many directions")
    return Directions(matrix, np.ones(matrix.shape[1], np.intp))


def seen_rows(view: View, m: int) -> Indices:
    """The output rows that the view sees, sorted."""
    return np.arange(m) if view.rows is None else np.unique(np.asarray(view.rows, np.intp))


def sees_all(view: View, m: int) -> bool:
    """Whether the view sees every one of m output rows."""
    return len(seen_rows(view, m)) == m


def same_rows(program: GaussianProgram) -> bool:
    """Whether every view sees every output row."""
    return all(sees_all(view, len(program.target)) for view in program.views)


TALL = 4
"""Rows, in multiples of the columns, from which on a matrix is replaced by its products, where these are as good."""
WELL = 1e6
"""Condition number of the products up to which that costs no more than the last digits."""


def shorter(matrix: Array) -> Array:
    """R (r, n) of no more rows than columns, with R'R = M'M."""
    if len(matrix) > TALL * matrix.shape[1]:
        with suppress(np.linalg.LinAlgError):
            root = np.linalg.cholesky(matrix.T @ matrix).T
            if np.linalg.cond(root) ** 2 <= WELL:
                return np.asarray(root)
    return np.asarray(np.linalg.qr(matrix, mode="r"), dtype=np.float64)


NORM_VERTICES = 14
"""Numbers of a box up to which the largest norm is found at its vertices."""


def largest_norm(strategy: Array, differences: Differences) -> float:
    """Max ||strategy @ d||^2 over the differences (k, n); an upper bound for boxes with too many vertices."""
    match differences:
        case Vectors(matrix, count):
            import scipy

            effects = np.asarray(scipy.sparse.csr_array(matrix.T) @ strategy.T)
            alone = float(np.max(np.sum(effects**2, axis=1), initial=0.0))
            return alone if not 1 < count < len(effects) <= CROWD else min(alone, at_once(effects, count) / count**2)
        case Pairs(coordinates, scale):
            return _largest_pair(strategy[:, coordinates], scale)
        case Balls(blocks, radius):
            norms = (np.linalg.norm(strategy[:, block], 2) for block in blocks if len(block))
            return max((float(norm) for norm in norms), default=0.0) ** 2 * radius**2
        case Boxes():
            return max(map(_largest_in_box, differences.moved(strategy)), default=0.0)
        case Streams():
            return _largest_in_stream(strategy, differences)


def at_once(effects: Array, count: int) -> float:
    """The bound of `kernel.strategies.dense.at_once` for sums of so many of the rows (N, k)."""
    sizes = np.sort(np.abs(effects @ effects.T), axis=1)[:, -count:].sum(axis=1)
    return float(np.sort(sizes)[-count:].sum())


def _largest_in_stream(strategy: Array, stream: Streams) -> float:
    """At least the largest sum of G_ij v_i'v_j over unit vectors that change at once; G = strategy' strategy."""
    gram, epochs = strategy.T @ strategy * stream.reach**2, stream.choices()
    if epochs is None:
        return farthest(np.abs(gram), stream.count, stream.apart)
    grams = gram[epochs[:, :, None], epochs[:, None, :]] * ((epochs >= 0)[:, :, None] & (epochs >= 0)[:, None, :])
    sums, traces = np.abs(grams).sum(axis=(1, 2)), np.trace(grams, axis1=1, axis2=2)
    plain = sums <= traces * (1 + MEETING)
    return max(float(sums[plain].max(initial=0.0)), max(map(box_bound, grams[~plain]), default=0.0))


MEETING = 1e-7
"""Share of their own squares below which the products of units that change at once are added up as they are."""


def farthest(sizes: Array, count: int, apart: int) -> float:
    """The bound of `kernel.strategies.dense.farthest` for sizes |G_ij| (n, n)."""
    return max(float(ends.max()) for ends, _ in rows_of_places(sizes, count, apart))


def rows_of_places(sizes: Array, count: int, apart: int) -> list[tuple[Array, Indices]]:
    """For 1, 2, .. `count` places that lie apart: that bound (n,) by the last of them, and the one before it.

    Sizes of neighbours in a choice are added up as they are, those of others at their largest for each place.
    """
    at = np.arange(len(sizes))
    own = np.diag(sizes).copy()
    if count > 2:
        before = np.where(at[None, :] <= at[:, None] - 2 * apart, sizes, 0.0)
        behind = np.where(at[None, :] >= at[:, None] + 2 * apart, sizes, 0.0)[:, ::-1]
        sides = [_best(side, count - 2, apart) for side in (before, behind)]
        own += np.max([sides[0][c] + sides[1][count - 2 - c] for c in range(count - 1)], axis=0)
    found = [(own, np.full(len(at), -1))]
    steps = np.where(at[None, :] <= at[:, None] - apart, 2 * sizes, -np.inf)
    for _ in range(count - 1):
        totals = steps + found[-1][0]
        found.append((own + totals.max(axis=1), totals.argmax(axis=1)))
    return found


def _best(values: Array, count: int, apart: int) -> list[Array]:
    """For each row and up to 0, 1, .. `count` places that lie apart: the largest sum of values."""
    rows, n = values.shape
    found, before = [np.zeros(rows)], np.zeros((n + 1, rows))
    for _ in range(count):
        taken = values.T + before[np.maximum(np.arange(1, n + 1) - apart, 0)]
        before = np.vstack([np.zeros((1, rows)), np.maximum.accumulate(taken, axis=0)])
        found.append(before[-1])
    return found


def _largest_pair(columns: Array, scale: float) -> float:
    """Largest scaled squared distance of two columns: candidates by Gram matrix, evaluated again from the columns."""
    if columns.shape[1] < 2:
        return 0.0
    # a direction common to all columns (a total that is released exactly) would drown the differences
    columns = columns - columns.mean(axis=1, keepdims=True)
    distances = pair_distances(columns.T @ columns)
    firsts, seconds = np.triu_indices(len(distances), 1)
    values = distances[firsts, seconds]
    near = np.flatnonzero(values >= values.max() * (1 - 1e-9) - 1e-300)[:4096]
    exact = np.sum((columns[:, firsts[near]] - columns[:, seconds[near]]) ** 2, axis=0)
    # candidates left out are below the Gram value, which errs by round-off of the squared norms only
    slack = 8 * len(columns) * np.finfo(float).eps * float(np.max(np.sum(columns**2, axis=0)))
    return (max(float(exact.max()), float(values.max()) * (1 - 1e-9)) + slack) * scale**2


def pair_distances(gram: Array) -> Array:
    """Squared distances (k, k) of the points with this Gram matrix."""
    norms = np.diag(gram)
    return np.asarray(np.maximum(norms[:, None] + norms[None, :] - 2 * gram, 0.0))


def _largest_in_box(scaled: Array) -> float:
    """Max ||scaled @ h||^2 over |h_i| <= 1: exact by vertices; an upper bound when wide."""
    gram = scaled.T @ scaled
    scaled = scaled[:, np.diag(gram) > 0]
    width = scaled.shape[1]
    if width > NORM_VERTICES:
        return box_bound(gram)
    return float(np.max(np.sum(box_vertices(scaled) ** 2, axis=0), initial=0.0))
