"""Noise for vectors in a row of which some change at once, at distances: few choices exactly, others with a bracket.

Where units lie exactly so far apart, or choices are few, these are classes c. In coordinates with E'E = I for the
errors, F the effects of the units and X = F' Sigma^-1 F: minimise tr Sigma subject to, for each class, the sum of
X_ij v_i'v_j at most 1 over unit vectors (i, j in c). The dual is the largest ||F M^(1/2)||_*^2 over M = (+)_c p_c E_c,
sum p_c = 1, E_c the Gram matrix of unit vectors, or a mean of such where vectors have fewer numbers than units change:
concave in M, smooth in log p_c and the vectors: L-BFGS (noise/notes/streams.md). At the optimum M has an inverse, so
that the noise follows from it. Of many choices the same bound holds for those that lie exactly so far apart, and the
noise is that of a strategy in a band, in which units that change at once do not meet.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import scipy
from privspec.solvers.bounds import lower_bound
from privspec.solvers.gaussian import package, reduce_outputs
from privspec.solvers.programs import (
    Array,
    DualPoint,
    ExpectedLoss,
    GaussianProgram,
    GaussianSolution,
    Indices,
    NotSpecialError,
    OutOfTimeError,
    Progress,
    Streams,
    Watch,
    box_vertices,
    rows_of_places,
    same_rows,
)

LEAST = 1e-14
"""Share of the largest eigenvalue below which one is round-off."""
ROUNDS = 1500
RESTARTS = 5


class Closed(Exception):  # noqa: N818 - leaves the library's minimiser; not an error
    """The gap is closed, or the time is over."""


@dataclass(eq=False)
class Epochs:
    """The dual over classes of effects (r, n), and the best points so far: `root` of the value, `tip` of the bound.

    `places` (c, k): the units of each class, n behind them; vectors have at most `dimension` numbers.
    """

    effects: Array
    places: Indices
    dimension: int
    tolerance: float
    watch: Watch
    value: float = np.inf
    bound: float = 0.0
    first: float = 0.0
    directions: Array | None = None

    def __post_init__(self) -> None:
        classes, units = self.places.shape
        self.rank = min(units, self.dimension)
        self.size = self.effects.shape[1]
        self.padded = np.column_stack([self.effects, np.zeros(len(self.effects))])
        self.logs, self.vectors = np.zeros(classes), np.zeros((classes, units, self.rank))
        self.started: tuple[Array, Array] = np.zeros(0), self.vectors[:0]
        self.root = self.tip = np.zeros((len(self.effects), 0))

    def run(self) -> None:
        """Maximise; the best primal and the best dual point are kept."""
        classes, units = self.places.shape
        known, logs = len(self.started[0]), np.full(classes, -np.log(classes))
        generator = np.random.default_rng(0)
        # the first of equal classes begins with its first units in directions of their own, the next with those behind
        turns = np.arange(classes) % -(-units // self.rank) * self.rank
        first = np.eye(units, units + self.rank)[:, turns[:, None] + np.arange(self.rank)].swapaxes(0, 1)
        first = first + 0.3 * generator.standard_normal((classes, units, self.rank))
        first = first if self.directions is None else self.directions
        if known:
            # classes that were there before go on from where they were, others begin with little weight
            logs[:known], logs[known:] = self.started[0], self.started[0].max() + LITTLE
            first[:known] = self.started[1]
        start = np.concatenate([logs, first.ravel()])
        rounds = FEWER if len(self.started[0]) else ROUNDS
        options = {"maxiter": rounds, "maxfun": rounds, "maxcor": 30, "ftol": 0.0, "gtol": 0.0}
        with suppress(Closed):
            for _ in range(1 if rounds == FEWER else RESTARTS):
                # round-off of the value ends a search that slopes would carry on: begin again without its history
                found = scipy.optimize.minimize(self._negative, start, jac=True, method="L-BFGS-B", options=options)  # type: ignore[call-overload]
                start = found.x

    def _negative(self, packed: Array) -> tuple[float, Array]:
        """Minus log ||F M^(1/2)||_*^2 / sum p, and its slope."""
        classes, units = self.places.shape
        logs = packed[:classes] - packed[:classes].max()
        weights, raw = np.exp(logs), packed[classes:].reshape(classes, units, self.rank)
        lengths = np.maximum(np.linalg.norm(raw, axis=2, keepdims=True), 1e-300)
        unit = raw / lengths
        shared = unit @ unit.transpose(0, 2, 1)
        across, down = self.places[:, :, None], self.places[:, None, :]
        mixed = np.zeros((self.size + 1, self.size + 1))
        np.add.at(mixed, (across, down), weights[:, None, None] * shared)
        values, turned = np.linalg.eigh(self.effects @ mixed[:-1, :-1] @ self.effects.T)
        deviations = np.sqrt(np.maximum(values, LEAST * values[-1]))
        trace, mass = float(deviations.sum()), float(weights.sum())
        whitened = (turned / np.sqrt(deviations)).T @ self.padded
        gram = whitened.T @ whitened
        own = gram[across, down]
        self._keep(trace, mass, own, turned * np.sqrt(deviations), logs, unit)
        reached = np.sum(shared * own, axis=(1, 2))
        pull = 2 * weights[:, None, None] * (own @ unit) / trace
        slope = (pull - np.sum(pull * unit, axis=2, keepdims=True) * unit) / lengths
        self.first = self.first or trace
        return -2 * np.log(trace / self.first) + np.log(mass), -np.concatenate(
            [weights * (reached / trace - 1 / mass), slope.ravel()]
        )

    def _keep(self, trace: float, mass: float, own: Array, root: Array, logs: Array, vectors: Array) -> None:
        value = trace * float(np.abs(own).sum(axis=(1, 2)).max())
        bound = trace**2 / mass
        if bound > self.bound:
            self.bound, self.logs, self.vectors, self.tip = bound, logs, vectors, root
        if value < self.value:
            self.value, self.root = value, root
        self.watch.step(self.value, self.bound)
        if self.value - self.bound <= self.tolerance * self.value or self.watch.expired:
            raise Closed

    def joined(self, more: Indices) -> Epochs:
        """The same with more classes, of numbers with one sign."""
        signs = None if self.directions is None else np.vstack([self.directions, np.ones((*more.shape, 1))])
        found = Epochs(self.effects, np.vstack([self.places, more]), self.dimension, self.tolerance, self.watch)
        found.directions, found.started = signs, (self.logs, self.vectors)
        return found

    def gram(self) -> Array:
        """Effects' Sigma^-1 effects at the best covariance Sigma."""
        inverse = np.linalg.pinv(self.root) @ self.effects
        return np.asarray(inverse.T @ inverse)

    def differences(self) -> tuple[scipy.sparse.csc_array, Array]:
        """The dual point as differences (n, N), `rank` in turn for each class, and their weights."""
        classes, units = self.places.shape
        rows = np.repeat(self.places.ravel(), self.rank)
        columns = np.repeat(np.arange(classes), units)[:, None] * self.rank + np.arange(self.rank)
        values = self.vectors.reshape(-1) * np.sqrt(self.rank)
        # classes of next to no weight are left out: the bound is that of the others
        kept = (rows < self.size) & np.repeat(self.logs >= self.logs.max() + LIGHT, units * self.rank)
        shape = (self.size, classes * self.rank)
        matrix = scipy.sparse.csc_array((values[kept], (rows[kept], columns.ravel()[kept])), shape=shape)
        return matrix, np.repeat(np.exp(self.logs) / self.rank, self.rank)


def solve_streams(
    program: GaussianProgram, tolerance: float = 1e-6, deadline: float | None = None, progress: Progress | None = None
) -> GaussianSolution:
    """The output covariance for units that lie apart: optimal, or with a bracket where they lie farther apart.

    Raises: NotSpecialError for several lines, sites or a worst-case loss; OutOfTimeError at the deadline.
    """
    stream, watch = program.views[0].differences, Watch(deadline, progress)
    plain = len(program.views) == 1 and same_rows(program) and isinstance(program.loss, ExpectedLoss)
    reduced = reduce_outputs(program) if plain else None
    if not isinstance(stream, Streams) or reduced is None or program.sites is not None:
        raise NotSpecialError("units that lie apart, under another loss, at sites or beside other lines")
    effects, listed = reduced.inputs * stream.reach, stream.choices()
    places = replace(stream, exactly=True).choices() if listed is None else listed
    assert places is not None
    places, signs = np.where(places < 0, stream.size, places), None
    units = places.shape[1]
    if stream.dimension == 1:
        # numbers have two directions: each choice of signs is a class
        every = _signs(units)
        signs = np.tile(every, (len(places), 1))[:, :, None]
        places = np.repeat(places, len(every), axis=0)
    else:
        # classes of the same units make up what one cannot: a matrix E_c of higher rank, and ways out of saddles
        needed = -(-units // min(units, stream.dimension))
        aside = listed is not None and (needed > 1 or not stream.exactly)
        places = np.repeat(places, needed + aside, axis=0)
    wanted = BRACKET if listed is None else 0.9 * tolerance
    found = Epochs(effects, places, stream.dimension, wanted, watch, directions=signs)
    found.run()
    root = found.root
    if listed is None:
        found, root = _with_worst(found, stream, watch)
    matrix, weights = found.differences()
    dual = DualPoint((scipy.sparse.csc_array(matrix * stream.reach),), (weights / weights.max(),))
    bound = lower_bound(program, dual)

    def executed(method: str, root: Array) -> GaussianSolution:
        return package(program, root, dual, bound, method, watch)

    best = executed(ASCENT, reduced.basis @ root)
    if best.relative_gap <= tolerance:
        return best
    if watch.expired and listed is not None:
        raise OutOfTimeError(best)
    # the ascent keeps what it met by a plainer bound of what moves: here all are compared by what is executed
    ways = [
        executed("noise on each input", reduced.basis @ effects),
        executed("equal noise on each answer", np.linalg.qr(reduced.basis)[0]),
    ]
    if best.relative_gap > NEAR:
        band = banded(effects, found.gram(), stream.apart, watch)
        ways.append(executed("strategy in a band", reduced.basis @ band))
    ways += [executed(ASCENT, reduced.basis @ found.tip), best]
    least = min(way.value for way in ways)
    return next(way for way in ways if way.value <= least * (1 + SAME))


ASCENT = "epochs, dual ascent"
SAME = 1e-8
"""Relative difference up to which the plainer of two ways is taken."""
NEAR = 1e-5
"""Relative gap up to which no strategy in a band is sought: none could be better by more."""
BRACKET = 2e-3
"""Relative gap for units that lie farther apart, over the choices that were looked at so far."""
FEWER = 40
"""Steps between two such looks."""
LOOKED = 40
"""Times that choices which move more than they may are looked for."""
WORK = 1.2e10
"""Cubes of the number of units that all this takes at most."""
LITTLE, LIGHT = -6.0, -16.0
"""Logarithms of shares of the heaviest class: that of a new one, and those that are left out."""


def _with_worst(found: Epochs, stream: Streams, watch: Watch) -> tuple[Epochs, Array]:
    """The classes of the best bound, with choices that move most beside the first; the best root of a covariance."""
    best, least, root = found, np.inf, found.root
    for _ in range(min(LOOKED, int(WORK / (FEWER * found.size**3)) + 1)):
        sizes = np.abs(found.gram())
        ways = rows_of_places(sizes, stream.count, stream.apart)
        reached = max(float(ends.max()) for ends, _ in ways)
        value = float(np.sum(found.root**2)) * reached
        if value < least:
            least, root = value, found.root
        known = {tuple(row) for row in found.places.tolist()}
        more = [row for row in _choices(ways, found.places.shape[1]) if row not in known]
        if least - best.bound <= BRACKET * least or watch.expired:
            break
        found = found.joined(np.array(more, dtype=np.intp).reshape(len(more), -1) if more else found.places[:0])
        found.run()
        best = max(best, found, key=lambda one: one.bound)
    return best, root


def _choices(ways: list[tuple[Array, Indices]], units: int) -> list[tuple[int, ...]]:
    """For each last place the choice of so many places that moves most, if any moves as much as most of them."""
    ends = ways[units - 1][0]
    found = []
    for last in np.flatnonzero(np.isfinite(ends) & (ends >= np.median(ends[np.isfinite(ends)]))).tolist():
        row = [last]
        for _, before in reversed(ways[1:units]):
            row.append(int(before[row[-1]]))
        found.append(tuple(row[::-1]))
    return found


SIGNED = 6
"""Units that change at once up to which all choices of signs are taken."""


def _signs(units: int) -> Array:
    """Choices of signs (N, units), the first +1: all of them, or Hadamard's, whose mean square is 1, and some drawn."""
    if units <= SIGNED:
        return np.asarray(box_vertices(np.eye(units)).T)
    order = 1 << (units - 1).bit_length()
    rows = [[1.0 - 2 * ((i & j).bit_count() % 2) for j in range(units)] for i in range(order)]
    drawn = np.random.default_rng(0).choice([-1.0, 1.0], size=(max(2 ** (SIGNED - 1) - order, 0), units))
    return np.vstack([rows, drawn * drawn[:, :1]])


BAND_ROUNDS = 150
"""Steps in search of a strategy in a band."""


def banded(effects: Array, gram: Array, band: int, watch: Watch) -> Array:
    """A root of covariance (r, n): effects C^-1 for a lower triangular C with `band` diagonals and columns of length 1.

    Units that are `band` or more apart then have orthogonal columns. `gram` (n, n): what C'C is near at the start.
    """
    n = len(gram)
    rows, columns = np.nonzero(np.tri(n) - np.tri(n, k=-band))
    # C'C = gram with C lower triangular is the Cholesky factor of the matrix read backwards
    start = np.linalg.cholesky(gram[::-1, ::-1] + LEAST * np.trace(gram) * np.eye(n)).T[::-1, ::-1]
    best: list[Array] = []
    least = [np.inf]

    def spread(packed: Array) -> tuple[float, Array]:
        free = np.zeros((n, n))
        free[rows, columns] = packed
        lengths = np.maximum(np.linalg.norm(free, axis=0), 1e-300)
        strategy = free / lengths
        root = scipy.linalg.solve_triangular(strategy, effects.T, lower=True, trans="T", check_finite=False).T
        value = float(np.sum(root**2))
        if np.isfinite(value) and value < least[0]:
            least[0], best[:] = value, [root]
        if watch.expired:
            raise Closed
        slope = -2 * scipy.linalg.solve_triangular(strategy, root.T @ root, lower=True, check_finite=False).T
        slope = (slope - strategy * np.sum(slope * strategy, axis=0)) / lengths
        return np.log(value), slope[rows, columns] / value

    options = {"maxiter": BAND_ROUNDS, "maxfun": 2 * BAND_ROUNDS, "maxcor": 20}
    with suppress(Closed):
        scipy.optimize.minimize(spread, start[rows, columns], jac=True, method="L-BFGS-B", options=options)  # type: ignore[call-overload]
    return best[0]


def loss_in_band(effects: Array, stream: Streams) -> float:
    """The expected squared error of a strategy in a band, which people use, sought from a root of the effects."""
    values, vectors = np.linalg.eigh(effects.T @ effects)
    gram = (vectors * np.sqrt(np.maximum(values, LEAST * values[-1]))) @ vectors.T
    root = banded(effects * stream.reach, gram, stream.apart, Watch())
    return float(np.sum(root**2)) * stream.most
