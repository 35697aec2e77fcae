"""Dual ascent for the full-covariance program (the matrix mechanism; MATH.md section 2).

The dual variable is one weight for each single difference and one positive semidefinite matrix for each ball, kept as a
vector of logarithms, in which the fixed point is a smooth map. Coordinates are such that the effects of the differences
span R^r. For weights p on the differences (and, for a worst-case loss, w on the error terms with G = E' diag(w) E; else
G = E'E = I):
    M = sum p a a',   Sigma = G^-1/2 (G^1/2 M G^1/2)^1/2 G^-1/2,   q_i = a_i' Sigma^-1 a_i,   e_j = (E Sigma E')_jj.
Then (tr G Sigma)^2 / (sum p sum w) bounds the optimum from below, and Sigma * max q is feasible. The optimum is
a fixed point of p <- p q, w <- w e, which Anderson acceleration reaches in a few steps where it is positive;
L-BFGS-B takes over where many weights vanish.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
import scipy
from privspec.solvers.programs import (
    Array,
    Directions,
    Indices,
    Pairs,
    Watch,
    WorstLoss,
    pair_distances,
    pair_matrix,
    slices,
)

LEAST_LOG = -60.0
"""Weights below e^-60 of the largest are round-off of any sum they enter."""


class Atoms(ABC):
    """The differences of one view in whitened coordinates: r-dimensional effects and their dual weights."""

    @abstractmethod
    def start(self) -> Array:
        """Logarithms of first weights: the size of each effect."""

    @abstractmethod
    def mass(self, logs: Array) -> float:
        """Sum of the weights (trace of the matrices)."""

    @abstractmethod
    def moment(self, logs: Array) -> Array:
        """Sum of weight times effect times its transpose (r, r)."""

    @abstractmethod
    def update(self, logs: Array, whitener: Array) -> tuple[Array, float]:
        """Logarithms of weight * q, and the largest q, where q = ||whitener @ effect||^2."""

    @abstractmethod
    def dual(self, logs: Array) -> tuple[scipy.sparse.csc_array, Array]:
        """The input differences (n, N) and weights (N,) that the logarithms stand for."""

    @abstractmethod
    def shifted(self, logs: Array, shift: float) -> Array:
        """The logarithms of all weights times e^shift."""

    @abstractmethod
    def normalised(self, logs: Array) -> Array:
        """The logarithms kept above the floor."""


class Singles(Atoms):
    """Differences that are single vectors: a weight each; `negligible` of the largest weight is round-off."""

    negligible: float

    @abstractmethod
    def quadratics(self, whitener: Array) -> Array:
        """All q."""

    @abstractmethod
    def columns(self, used: Indices) -> scipy.sparse.csc_array:
        """Some of the differences (n, N)."""

    @abstractmethod
    def some(self, used: Indices) -> SingleAtoms:
        """Some of the differences by themselves."""

    def mass(self, logs: Array) -> float:
        return float(np.exp(logs).sum())

    def update(self, logs: Array, whitener: Array) -> tuple[Array, float]:
        q = self.quadratics(whitener)
        return logs + np.log(np.maximum(q, 1e-300)), float(q.max(initial=0.0))

    def dual(self, logs: Array) -> tuple[scipy.sparse.csc_array, Array]:
        top = logs.max(initial=0.0)
        weights = np.exp(logs - top)
        used = np.flatnonzero(weights > self.negligible)
        return self.columns(used), weights[used] * np.exp(top)

    def shifted(self, logs: Array, shift: float) -> Array:
        return logs + shift

    def normalised(self, logs: Array) -> Array:
        return np.asarray(np.maximum(logs, logs.max() + LEAST_LOG)) if logs.size else logs


class SingleAtoms(Singles):
    """Explicit single differences: `effects` (r, N)."""

    negligible = 1e-16

    def __init__(self, effects: Array, matrix: scipy.sparse.csc_array) -> None:
        self.effects, self.matrix = effects, matrix

    def start(self) -> Array:
        return np.asarray(np.log(np.maximum(np.linalg.norm(self.effects, axis=0), 1e-300)))

    def moment(self, logs: Array) -> Array:
        scaled = self.effects * np.exp(logs / 2)
        return np.asarray(scaled @ scaled.T)

    def quadratics(self, whitener: Array) -> Array:
        return np.asarray(np.sum((whitener @ self.effects) ** 2, axis=0))

    def columns(self, used: Indices) -> scipy.sparse.csc_array:
        return scipy.sparse.csc_array(self.matrix[:, used])

    def some(self, used: Indices) -> SingleAtoms:
        return SingleAtoms(self.effects[:, used], self.columns(used))


class PairAtoms(Singles):
    """All pairs of coordinates: `points` (r, k) are the effects of the coordinates, weights one for each i < j."""

    negligible = 1e-12

    def __init__(self, points: Array, pairs: Pairs, n: int) -> None:
        self.points, self.pairs, self.n = points - points.mean(axis=1, keepdims=True), pairs, n
        self.firsts, self.seconds = np.triu_indices(points.shape[1], 1)

    def _distances(self, points: Array) -> Array:
        return pair_distances(points.T @ points)[self.firsts, self.seconds]

    def start(self) -> Array:
        distances = self._distances(self.points)
        floor = 1e-12 * max(float(distances.max(initial=0.0)), 1e-300)
        return np.asarray(0.5 * np.log(np.maximum(distances, floor)) + np.log(self.pairs.scale))

    def moment(self, logs: Array) -> Array:
        k = self.points.shape[1]
        weights = np.zeros((k, k))
        weights[self.firsts, self.seconds] = np.exp(logs)
        weights += weights.T
        laplacian = np.diag(weights.sum(axis=1)) - weights
        return np.asarray(self.points @ laplacian @ self.points.T) * self.pairs.scale**2

    def quadratics(self, whitener: Array) -> Array:
        return np.asarray(self._distances(whitener @ self.points) * self.pairs.scale**2)

    def columns(self, used: Indices) -> scipy.sparse.csc_array:
        coordinates = np.asarray(self.pairs.coordinates, np.intp)
        return pair_matrix(coordinates, self.firsts[used], self.seconds[used], self.pairs.scale, self.n)

    def some(self, used: Indices) -> SingleAtoms:
        effects = (self.points[:, self.firsts[used]] - self.points[:, self.seconds[used]]) * self.pairs.scale
        return SingleAtoms(effects, self.columns(used))


class BallAtoms(Atoms):
    """l2 balls: one positive semidefinite weight matrix for each group of columns of `effects` (r, N)."""

    def __init__(self, effects: Array, direction: Directions) -> None:
        self.effects, self.matrix = effects, direction.matrix
        self.slices, self.parts = slices(direction.sizes), slices(direction.sizes**2)
        self.diagonals = np.concatenate([np.eye(size).ravel() for size in direction.sizes])

    def _roots(self, logs: Array) -> list[Array]:
        """Symmetric square roots of the weight matrices."""
        roots = []
        for part, columns in zip(self.parts, self.slices, strict=True):
            size = columns.stop - columns.start
            values, vectors = np.linalg.eigh(logs[part].reshape(size, size))
            roots.append((vectors * np.exp(values / 2)) @ vectors.T)
        return roots

    def _logs(self, matrices: list[Array]) -> Array:
        """Matrix logarithms, with eigenvalues kept above round-off."""
        decomposed = [np.linalg.eigh((matrix + matrix.T) / 2) for matrix in matrices]
        floor = max(float(values[-1]) for values, _ in decomposed) * np.exp(LEAST_LOG / 2)
        flat = [((vectors * np.log(np.maximum(values, floor))) @ vectors.T).ravel() for values, vectors in decomposed]
        return np.concatenate(flat)

    def start(self) -> Array:
        # the Gram matrices over their norms: the optimum for one ball
        grams = [self.effects[:, columns].T @ self.effects[:, columns] for columns in self.slices]
        return self._logs([gram / max(np.sqrt(np.trace(gram)), 1e-300) for gram in grams])

    def mass(self, logs: Array) -> float:
        return float(sum(np.sum(root**2) for root in self._roots(logs)))

    def moment(self, logs: Array) -> Array:
        roots = zip(self.slices, self._roots(logs), strict=True)
        scaled = np.column_stack([self.effects[:, columns] @ root for columns, root in roots])
        return np.asarray(scaled @ scaled.T)

    def update(self, logs: Array, whitener: Array) -> tuple[Array, float]:
        largest, following = 0.0, []
        whitened = whitener @ self.effects
        for columns, root in zip(self.slices, self._roots(logs), strict=True):
            part = whitened[:, columns]
            largest = max(largest, float(np.linalg.norm(part, 2)) ** 2)
            product = part @ root
            following.append(product.T @ product)
        return self._logs(following), largest

    def normalised(self, logs: Array) -> Array:
        return logs  # the floor is kept by the matrix logarithm

    def shifted(self, logs: Array, shift: float) -> Array:
        return logs + shift * self.diagonals

    def dual(self, logs: Array) -> tuple[scipy.sparse.csc_array, Array]:
        columns, weights = [], []
        for part, root in zip(self.slices, self._roots(logs), strict=True):
            values, vectors = np.linalg.eigh(root)
            # shrunk so that round-off leaves the axes admissible
            vectors = vectors / (np.linalg.norm(vectors, axis=0) * (1 + 1e-14))
            columns.append(scipy.sparse.csc_array(self.matrix[:, part] @ vectors))
            weights.append(values**2)
        p = np.concatenate(weights)
        used = np.flatnonzero(p > 1e-16 * p.max(initial=0.0))
        return scipy.sparse.csc_array(scipy.sparse.csc_array(scipy.sparse.hstack(columns))[:, used]), p[used]


def pair_span(coordinates: Indices, n: int) -> Array:
    """Columns (n, k) that span the differences e_i - e_j."""
    k = len(coordinates)
    span = np.zeros((n, k))
    span[coordinates, np.arange(k)] = 1.0
    span[coordinates] -= 1.0 / k
    return span


COARSE = 128
"""Differences in a row from which on those of every second one are weighed first."""
ROUGH = 0.1
"""Bend of the logarithms, half of all lie below it, from which on every second one says nothing of the others."""


def from_every_second(atoms: Singles, tolerance: float, watch: Watch) -> Array | None:
    """Logarithms near the best ones of differences in a row, from those of every second one; None where they jump.

    Weights are a smooth function of the place but at the ends, where they follow the number of places from the end.
    """
    if not isinstance(atoms, SingleAtoms) or not COARSE <= atoms.effects.shape[1] <= 2 * len(atoms.effects):
        return None  # of more differences than dimensions most have no weight
    count, kept = atoms.effects.shape[1], np.arange(0, atoms.effects.shape[1], 2)
    fewer = SingleAtoms(np.asarray(np.linalg.qr(atoms.effects[:, kept], mode="r")), atoms.matrix[:, kept])
    small = len(kept) < COARSE
    start = None if small else from_every_second(fewer, tolerance, watch)
    if (start is None and not small) or watch.expired:
        return None
    own = Watch(watch.left)
    logs = Ascent((fewer,), None, tolerance, own, None if start is None else [start]).run().logs[0]
    watch.iterations += own.iterations
    if np.median(np.abs(np.diff(logs, 2))) > ROUGH:
        return None
    last, places, reach = len(kept) - 1, np.arange(count), np.sqrt(count)
    found = middle = _between(logs, places * (last / (count - 1)))
    for side in (logs, logs[::-1]):
        far, near = _between(side, np.array([reach * last / (count - 1), reach]))
        found = found + (side[np.minimum(places, last)] + far - near - middle) / (1 + (places / reach) ** 4)
        middle, found = middle[::-1], found[::-1]
    return np.asarray(found)


def _between(values: Array, places: Array) -> Array:
    """Values in a row at places between them, by cubics through four of them."""
    first = np.clip(places.astype(int) - 1, 0, len(values) - 4)
    offset, found = places - first, np.zeros(len(places))
    for i in range(4):
        share = np.prod([(offset - j) / (i - j) for j in range(4) if j != i], axis=0)
        found += share * values[first + i]
    return found


DEPTH = 8
"""Pairs of earlier iterates that Anderson acceleration combines."""
FAR = 8.0
"""Largest change of a logarithm in one accelerated step."""
PATIENCE = 25
"""Iterations without halving the gap after which the next method is tried."""
FEW_DIMENSIONS = 16
"""Dimensions up to which Newton steps on the inverse covariance are few and short."""
STEPS = 300
"""Newton steps at most, which come nearer by CLOSER when they fall by less than CENTRAL; shorter ones are round-off."""
CLOSER = 8.0
CENTRAL = 0.05
LEAST_STEP = 1e-6
LAID_OUT = 5_000_000
"""Numbers of the squares of all differences up to which these are laid out."""


@dataclass(frozen=True, eq=False, slots=True)
class Point:
    """One dual point: `logs` for each group of atoms, last those of a worst case; its covariance root and bracket.

    `whitener` Y with Y'Y = Sigma^-1, and the `errors` e of a worst-case loss; `updated`: logarithms of weight * q.
    """

    logs: list[Array]
    root: Array
    whitener: Array
    errors: Array | None
    value: float
    bound: float
    updated: tuple[Array, ...]

    @property
    def gap(self) -> float:
        """Relative gap of this point alone."""
        return (self.value - self.bound) / self.value


class Stopped(Exception):  # noqa: N818 - leaves the library's minimiser; not an error
    """The tolerance is reached or the time is over."""


class Ascent:
    """The dual function, the best point so far, and three ways to improve it."""

    def __init__(
        self,
        atoms: tuple[Atoms, ...],
        worst: WorstLoss | None,
        tolerance: float,
        watch: Watch,
        first: list[Array] | None = None,
    ) -> None:
        """`worst`: a worst-case loss (q, r); None for an expected loss in coordinates with E'E = I.

        `first`: logarithms to start from, in place of the sizes of the effects.
        """
        self.atoms, self.worst, self.tolerance, self.watch = atoms, worst, tolerance, watch
        self.error_map = None if worst is None else worst.error_map
        first = [part.start() for part in atoms] if first is None else first
        if worst is not None:
            first.append(np.full(worst.count, -np.log(worst.count)))
        self.ends = np.cumsum([len(part) for part in first])
        self.best = self._at(self._floored(first))
        watch.step(self.best.value, self.best.bound)

    @property
    def over(self) -> bool:
        """Whether the gap is closed or the time is over."""
        return self.best.gap <= self.tolerance or self.watch.expired

    @property
    def interior(self) -> bool:
        """Whether an interior point is quick, and there are differences enough that no weights are unique."""
        rank, count = len(self.best.root), int(self.ends[-1])
        numbers = rank * (rank + 1) // 2
        return self.worst is None and numbers < count <= LAID_OUT / numbers and rank <= FEW_DIMENSIONS

    def run(self) -> Point:
        """The best point that fixed-point iteration and, where that stalls, an interior point or L-BFGS-B find."""
        self._anderson()
        singles = [atoms for atoms in self.atoms if isinstance(atoms, Singles)]
        if len(singles) == len(self.atoms) and self.interior and not self.over:
            self.close(singles)
        for _ in range(3):
            if not self.over and len(singles) == len(self.atoms):
                self._quasi_newton(singles)
        if len(singles) < len(self.atoms):
            self._plain()
        return self.best

    def evaluate(self, logs: list[Array]) -> Point:
        """The point at these logarithms; kept where it is the best so far."""
        point = self._at(logs)
        if point.gap < self.best.gap:
            self.best = point
        self.watch.step(self.best.value, self.best.bound)
        return point

    def _at(self, logs: list[Array]) -> Point:
        moment = np.sum([atoms.moment(part) for atoms, part in zip(self.atoms, logs, strict=False)], axis=0)
        mass, total, turn, errors = self._mass(logs), 1.0, None, None
        if self.worst is not None:
            weighted = self.worst.error_map * self.worst.spread(np.exp(logs[-1] / 2))[:, None]
            turn = np.asarray(np.linalg.qr(weighted, mode="r"))
            moment = turn @ moment @ turn.T
        values, vectors = np.linalg.eigh(moment)
        deviations = np.sqrt(np.maximum(values, 1e-32 * max(float(values[-1]), 1e-300)))
        root = vectors * np.sqrt(deviations)
        whitener = (vectors / np.sqrt(deviations)).T
        loss = trace = float(deviations.sum())
        if self.worst is not None and turn is not None:
            root = scipy.linalg.solve_triangular(turn, root, check_finite=False)
            whitener = whitener @ turn
            errors = self.worst.added(np.asarray(np.sum((self.worst.error_map @ root) ** 2, axis=1)))
            # with loss weights of sum `total` the weighted loss is at most total times the worst
            loss, total = float(errors.max()), float(np.exp(logs[-1]).sum())
        updates = [atoms.update(part, whitener) for atoms, part in zip(self.atoms, logs, strict=False)]
        largest = max(reached for _, reached in updates)
        following = tuple(own for own, _ in updates)
        return Point(logs, root, whitener, errors, loss * largest, trace**2 / (mass * total), following)

    def _mass(self, logs: list[Array]) -> float:
        return sum(atoms.mass(part) for atoms, part in zip(self.atoms, logs, strict=False))

    def _scaled(self, logs: list[Array]) -> list[Array]:
        """The logarithms with weights of sum one."""
        shift = -np.log(self._mass(logs))
        found = [atoms.shifted(part, shift) for atoms, part in zip(self.atoms, logs, strict=False)]
        return found if self.error_map is None else [*found, logs[-1] - np.log(np.exp(logs[-1]).sum())]

    def _mapped(self, point: Point) -> list[Array]:
        """One fixed-point step, scaled so that the weights sum to one."""
        found = list(point.updated)
        if point.errors is not None:
            found.append(point.logs[-1] + np.log(np.maximum(point.errors, 1e-300)))
        return self._scaled(found)

    def _floored(self, logs: list[Array]) -> list[Array]:
        """The logarithms above their floors, with weights of sum one."""
        found = [atoms.normalised(part) for atoms, part in zip(self.atoms, logs, strict=False)]
        return self._scaled(found if self.error_map is None else [*found, np.maximum(logs[-1], logs[-1].max() - 40)])

    def _split(self, packed: Array) -> list[Array]:
        return np.split(packed, self.ends[:-1])

    def _anderson(self) -> None:
        """Anderson acceleration of the fixed point on the logarithms, restarted from the best point when it strays."""
        points: list[Array] = []
        residuals: list[Array] = []
        point, milestone, since = self.best, np.inf, 0
        while not self.over:
            since += 1
            if self.best.gap < milestone / 2:
                milestone, since = self.best.gap, 0
            if since >= PATIENCE:
                return
            packed = np.concatenate(point.logs)
            if point.gap > 20 * self.best.gap and points:
                # an extrapolation that lost ground: forget the history
                points.clear()
                residuals.clear()
            points.append(packed)
            residuals.append(np.concatenate(self._mapped(point)) - packed)
            del points[: -DEPTH - 1], residuals[: -DEPTH - 1]
            point = self.evaluate(self._floored(self._split(self._mixed(points, residuals))))

    @staticmethod
    def _mixed(points: list[Array], residuals: list[Array]) -> Array:
        """The next iterate of Anderson acceleration."""
        following = points[-1] + residuals[-1]
        if len(points) < 2:
            return following
        changes = np.diff(np.array(points), axis=0).T
        responses = np.diff(np.array(residuals), axis=0).T
        shares, *_ = np.linalg.lstsq(responses, residuals[-1], rcond=1e-10)
        # far extrapolations come from a nearly singular history; they would overflow the weights
        return points[-1] + np.clip(following - (changes + responses) @ shares - points[-1], -FAR, FAR)

    def _plain(self) -> None:
        """The fixed point without acceleration, which never loses ground: for balls that Anderson could not close."""
        point = self.best
        for _ in range(300):
            if self.over:
                return
            point = self.evaluate(self._floored(self._mapped(point)))

    def close(self, atoms: list[Singles]) -> None:
        """Newton steps on Z, the inverse covariance, for more differences than it has numbers: their weights are many.

        Minimises t tr(C Z^-1) - log det Z - sum log(1 - a' Z a) for growing t, in coordinates in which the best
        covariance so far is one; the weights of the differences are 1 / (1 - a' Z a).
        """
        rank = len(self.best.root)
        first, second = np.triu_indices(rank)
        effects = np.column_stack([one.some(np.arange(len(one.start()))).effects for one in atoms])
        start, cost = self.best, self.best.root.T @ self.best.root
        moved = start.whitener @ effects
        features = np.where(first == second, 1.0, 2.0)[:, None] * moved[first] * moved[second]
        # the matrix of a vector of its entries on and above the diagonal
        spread, numbers = np.zeros((rank * rank, len(first))), np.arange(len(first))
        spread[first * rank + second, numbers] = spread[second * rank + first, numbers] = 1
        place = (first == second) / (2 * np.sum(moved**2, axis=0).max())
        slack = 1 - place @ features
        weight = len(slack) / float(np.trace(cost)) * float(place.max())

        def height(place: Array, slack: Array) -> tuple[float, Array]:
            values, vectors = np.linalg.eigh((spread @ place).reshape(rank, rank))
            if min(values[0], slack.min()) <= 0:
                return np.inf, vectors
            inverse = (vectors / values) @ vectors.T
            return weight * float(np.sum(cost * inverse)) - float(np.log(values).sum() + np.log(slack).sum()), inverse

        for _ in range(STEPS):
            now, inverse = height(place, slack)
            pull = weight * inverse @ cost @ inverse
            slope = features @ (1 / slack) - spread.T @ (pull + inverse).ravel()
            bend = spread.T @ (np.kron(pull, inverse) + np.kron(inverse, pull + inverse)) @ spread
            bend += (features / slack**2) @ features.T
            sizes = np.sqrt(np.diag(bend))
            try:
                factor = scipy.linalg.cho_factor(bend / sizes / sizes[:, None], overwrite_a=True, check_finite=False)
            except scipy.linalg.LinAlgError:
                return
            step = -scipy.linalg.cho_solve(factor, slope / sizes, check_finite=False) / sizes
            # slacks by what they change by: what is left of one is known to all its digits
            used, fall, length = step @ features, -float(slope @ step), 1.0
            while length > LEAST_STEP and (
                height(place + length * step, slack - length * used)[0] > now - length * fall / 4
            ):
                length /= 2
            if fall < CENTRAL or length <= LEAST_STEP:
                self._kept(-np.log(slack), start, (spread @ place).reshape(rank, rank))
                if self.over or length <= LEAST_STEP:
                    return
                weight *= CLOSER
            else:
                place, slack = place + length * step, slack - length * used

    def _kept(self, logs: Array, start: Point, inverse: Array) -> None:
        """A point with these logarithms, as few as bound it as well, and an inverse covariance where `start` has one.

        That of its own weights loses digits where little depends on some of the weights.
        """
        values, vectors = np.linalg.eigh(inverse)
        root, whitener = start.root @ (vectors / np.sqrt(values)), (vectors * np.sqrt(values)).T @ start.whitener
        every = self._floored(self._split(logs))
        updates = [atoms.update(part, whitener) for atoms, part in zip(self.atoms, every, strict=True)]
        value = float(np.sum(root**2)) * max(reached for _, reached in updates)
        for least in (1e-3, 1e-5, 1e-7, 0.0):
            few = (
                [np.where(part > logs.max() + np.log(least), part, LEAST_LOG) for part in self._split(logs)]
                if least
                else every
            )
            point = self._at(self._scaled(few))
            if value < point.value:
                point = replace(point, root=root, whitener=whitener, value=value)
            if point.gap <= self.tolerance:
                break
        if point.gap < self.best.gap:
            self.best = point
        self.watch.step(self.best.value, self.best.bound)

    def _quasi_newton(self, atoms: list[Singles]) -> None:
        """L-BFGS-B on the weights themselves.

        Maximises 2 tr - sum p for an expected loss and tr - (sum p)^2/4 - (sum w)^2/4 for a worst-case loss,
        both smooth and concave (the trace is a root fidelity of the two weighted sums).
        """
        first = np.exp(np.concatenate(self.best.logs))
        count = int(self.ends[len(atoms) - 1])
        worst = self.error_map is not None
        trace = np.sqrt(self.best.bound * first[:count].sum() * (first[count:].sum() if worst else 1.0))
        # the best multiple along the ray, and a floor that lets vanished weights come back
        first = first * (trace / (first[:count].sum() ** 2) if worst else (trace / first[:count].sum()) ** 2)
        floor = 1e-13 * first.max()
        first = np.maximum(first, 1e-7 * first.max())

        def negative(weights: Array) -> tuple[float, Array]:
            raised = np.maximum(weights, floor)
            point = self.evaluate(self._split(np.log(raised)))
            if self.over:
                raise Stopped
            q = np.concatenate([part.quadratics(point.whitener) for part in atoms])
            mass, share = weights[:count].sum(), weights[count:].sum()
            if point.errors is None:
                trace = np.sqrt(point.bound * float(raised.sum()))
                return -(2 * trace - mass), 1 - q
            trace = float(raised[count:] @ point.errors)
            slope = np.concatenate([q / 2 - mass / 2, point.errors / 2 - share / 2])
            return -float(trace - mass**2 / 4 - share**2 / 4), -slope

        options = {"maxiter": 1500, "maxfun": 1500, "maxcor": 30, "ftol": 0.0, "gtol": 0.0}
        bounds = [(0.0, None)] * len(first)
        try:
            # the stubs lack jac=True with options
            scipy.optimize.minimize(negative, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)  # type: ignore[call-overload]
        except Stopped:
            return


START = 500
"""Differences that are taken first, and more each time, in few dimensions."""
MANY = 5000
"""Differences beyond which those that bind are looked for: in r dimensions r (r + 1) / 2 are enough."""


def ascend(atoms: tuple[Atoms, ...], worst: WorstLoss | None, tolerance: float, watch: Watch) -> Point:
    """The best dual point, a weight for each difference: see `Ascent`; of many differences few at a time.

    The largest are taken first, and then those that exceed what the few found allow, until none does.
    """
    singles = [part for part in atoms if isinstance(part, Singles)]
    if len(singles) < len(atoms) or sum(len(part.start()) for part in singles) <= MANY:
        alone = singles[0] if len(atoms) == len(singles) == 1 and worst is None else None
        first = None if alone is None else from_every_second(alone, tolerance, watch)
        return Ascent(atoms, worst, tolerance, watch, None if first is None else [first]).run()
    closed = None if worst is not None else _in_few_dimensions(singles, tolerance, watch)
    if closed is not None:
        return closed
    whole = Ascent(atoms, worst, tolerance, watch)
    rank = whole.best.root.shape[0]
    few = rank * (rank + 1)
    if whole.ends[len(atoms) - 1] <= 8 * few:
        return whole.run()
    chosen = [_largest(part.start(), few) for part in singles]
    while not whole.over:
        quiet = replace(watch, progress=None)
        part = Ascent(
            tuple(one.some(own) for one, own in zip(singles, chosen, strict=True)), worst, tolerance / 4, quiet
        )
        found = part.run()
        watch.iterations = quiet.iterations
        logs = [np.full(end, LEAST_LOG) for end in np.diff(whole.ends, prepend=0)]
        for own, used, weights in zip(logs, chosen, found.logs, strict=False):
            own[used] = weights
        if worst is not None:
            logs[-1] = found.logs[-1]
        point = whole.evaluate(logs)
        excess = [new - old for new, old in zip(point.updated, logs, strict=False)]
        top = max(float(own[used].max()) for own, used in zip(excess, chosen, strict=True))
        more = [_largest(np.where(own > top + tolerance / 4, own, -np.inf), few) for own in excess]
        if not any(len(own) for own in more):
            return whole.run()
        chosen = [np.union1d(old, new) for old, new in zip(chosen, more, strict=True)]
    return whole.best


def _in_few_dimensions(atoms: list[Singles], tolerance: float, watch: Watch) -> Point | None:
    """The same by interior points of those differences that exceed what the ones before allow; None where that stalls.

    Covariances are those of the interior points: what weights say of them loses digits where they weigh little.
    """
    starts = [one.start() for one in atoms]
    chosen = [_largest(own, START) for own in starts]
    while not watch.expired:
        quiet = replace(watch, progress=None)
        some: list[Singles] = [one.some(own) for one, own in zip(atoms, chosen, strict=True)]
        part = Ascent(tuple(some), None, tolerance / 4, quiet)
        if not part.interior:
            return None
        part.close(some)
        found, watch.iterations = part.best, quiet.iterations
        logs = [np.full(len(own), LEAST_LOG) for own in starts]
        for own, used, weights in zip(logs, chosen, found.logs, strict=True):
            own[used] = weights
        squares = [one.quadratics(found.whitener) for one in atoms]
        reached = max(float(own.max(initial=0.0)) for own in squares)
        inner = max(float(own[used].max(initial=0.0)) for own, used in zip(squares, chosen, strict=True))
        value = float(np.sum(found.root**2)) * reached
        updated = tuple(own + np.log(np.maximum(q, 1e-300)) for own, q in zip(logs, squares, strict=True))
        point = replace(found, logs=logs, value=value, updated=updated)
        watch.step(point.value, point.bound)
        if point.gap <= tolerance:
            return point
        more = [_largest(np.where(q > inner * (1 + tolerance / 4), q, -np.inf), START) for q in squares]
        grown = [np.union1d(old, new) for old, new in zip(chosen, more, strict=True)]
        if all(len(new) == len(old) for new, old in zip(grown, chosen, strict=True)):
            return None
        chosen = grown
    return None


def _largest(values: Array, most: int) -> Indices:
    """Where the `most` largest finite values stand."""
    order = np.argpartition(values, -most)[-most:] if len(values) > most else np.arange(len(values))
    return np.asarray(order[np.isfinite(values[order])], np.intp)
