"""Dual ascent over weighted differences: single ones, pairs, balls.

Weighted sums of difference effects, for the dual of the full-covariance program.

The dual variable is one weight for each single difference and one positive semidefinite matrix for each ball.
It is kept as a vector of logarithms, in which the fixed point of `ascent` is a smooth map.

Dual ascent for the full-covariance program (the matrix mechanism; MATH.md section 2).

Coordinates are such that the effects of the differences span R^r. For weights p on the differences (and, for a
worst-case loss, w on the error terms with G = E' diag(w) E; else G = E'E = I):
    M = sum p a a',   Sigma = G^-1/2 (G^1/2 M G^1/2)^1/2 G^-1/2,   q_i = a_i' Sigma^-1 a_i,   e_j = (E Sigma E')_jj.
Then (tr G Sigma)^2 / (sum p sum w) bounds the optimum from below, and Sigma * max q is feasible. The optimum is
a fixed point of p <- p q, w <- w e, which Anderson acceleration reaches in a few steps where it is positive;
L-BFGS-B takes over where many weights vanish.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from privspec.solvers.programs import Array, Directions, Indices, Pairs, Watch, pair_distances, pair_matrix
from scipy import linalg, sparse

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
    def dual(self, logs: Array) -> tuple[sparse.csc_array, Array]:
        """The input differences (n, N) and weights (N,) that the logarithms stand for."""

    def shifted(self, logs: Array, shift: float) -> Array:
        """The logarithms of all weights times e^shift."""
        return logs + shift

    def quadratics(self, whitener: Array) -> Array | None:
        """All q when every difference is single, None otherwise."""
        return None

    def normalised(self, logs: Array) -> Array:
        """The logarithms kept above the floor."""
        return np.asarray(np.maximum(logs, logs.max() + LEAST_LOG)) if logs.size else logs


class SingleAtoms(Atoms):
    """Explicit single differences: `effects` (r, N)."""

    def __init__(self, effects: Array, matrix: sparse.csc_array) -> None:
        self.effects, self.matrix = effects, matrix

    def start(self) -> Array:
        """Logarithms of the norms."""
        return np.asarray(np.log(np.maximum(np.linalg.norm(self.effects, axis=0), 1e-300)))

    def mass(self, logs: Array) -> float:
        """Sum of the weights."""
        return float(np.exp(logs).sum())

    def moment(self, logs: Array) -> Array:
        """Effects @ diag(weights) @ effects.T."""
        scaled = self.effects * np.exp(logs / 2)
        return np.asarray(scaled @ scaled.T)

    def quadratics(self, whitener: Array) -> Array:
        """Squared norms of the whitened effects."""
        return np.asarray(np.sum((whitener @ self.effects) ** 2, axis=0))

    def update(self, logs: Array, whitener: Array) -> tuple[Array, float]:
        """Log weights plus log q."""
        q = self.quadratics(whitener)
        return logs + np.log(np.maximum(q, 1e-300)), float(q.max(initial=0.0))

    def dual(self, logs: Array) -> tuple[sparse.csc_array, Array]:
        """Differences of weight above round-off."""
        weights = np.exp(logs - logs.max(initial=0.0))
        used = np.flatnonzero(weights > 1e-16)
        return sparse.csc_array(self.matrix[:, used]), weights[used] * np.exp(logs.max(initial=0.0))


class PairAtoms(Atoms):
    """All pairs of coordinates: `points` (r, k) are the effects of the coordinates, weights one for each i < j."""

    def __init__(self, points: Array, pairs: Pairs, n: int) -> None:
        self.points, self.pairs, self.n = points - points.mean(axis=1, keepdims=True), pairs, n
        self.firsts, self.seconds = np.triu_indices(points.shape[1], 1)

    def start(self) -> Array:
        """Logarithms of the distances."""
        distances = pair_distances(self.points.T @ self.points)[self.firsts, self.seconds]
        floor = 1e-12 * max(float(distances.max(initial=0.0)), 1e-300)
        return np.asarray(0.5 * np.log(np.maximum(distances, floor)) + np.log(self.pairs.scale))

    def mass(self, logs: Array) -> float:
        """Sum of the weights."""
        return float(np.exp(logs).sum())

    def moment(self, logs: Array) -> Array:
        """Points @ (weighted graph Laplacian) @ points.T."""
        k = self.points.shape[1]
        weights = np.zeros((k, k))
        weights[self.firsts, self.seconds] = np.exp(logs)
        weights += weights.T
        laplacian = np.diag(weights.sum(axis=1)) - weights
        return np.asarray(self.points @ laplacian @ self.points.T) * self.pairs.scale**2

    def quadratics(self, whitener: Array) -> Array:
        """Squared distances of the whitened points."""
        whitened = whitener @ self.points
        distances = pair_distances(whitened.T @ whitened)
        return np.asarray(distances[self.firsts, self.seconds] * self.pairs.scale**2)

    def update(self, logs: Array, whitener: Array) -> tuple[Array, float]:
        """Log weights plus log q."""
        q = self.quadratics(whitener)
        return logs + np.log(np.maximum(q, 1e-300)), float(q.max(initial=0.0))

    def dual(self, logs: Array) -> tuple[sparse.csc_array, Array]:
        """Pairs of weight above round-off."""
        weights = np.exp(logs - logs.max(initial=0.0))
        used = np.flatnonzero(weights > 1e-12)
        coordinates = np.asarray(self.pairs.coordinates, np.intp)
        matrix = pair_matrix(coordinates, self.firsts[used], self.seconds[used], self.pairs.scale, self.n)
        return matrix, weights[used] * np.exp(logs.max(initial=0.0))


class BallAtoms(Atoms):
    """l2 balls: one positive semidefinite weight matrix for each group of columns of `effects` (r, N)."""

    def __init__(self, effects: Array, direction: Directions) -> None:
        self.effects, self.matrix = effects, direction.matrix
        self.slices = tuple(direction.slices)
        stops = np.cumsum(direction.sizes**2)
        self.parts = tuple(slice(int(b - s * s), int(b)) for b, s in zip(stops, direction.sizes, strict=True))

    def _roots(self, logs: Array) -> list[Array]:
        """Symmetric square roots of the weight matrices."""
        roots = []
        for part in self.parts:
            size = int(np.sqrt(part.stop - part.start))
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
        """Logarithms of the Gram matrices over their norms: the optimum for one ball."""
        grams = [self.effects[:, columns].T @ self.effects[:, columns] for columns in self.slices]
        return self._logs([gram / max(np.sqrt(np.trace(gram)), 1e-300) for gram in grams])

    def mass(self, logs: Array) -> float:
        """Sum of the traces."""
        return float(sum(np.sum(root**2) for root in self._roots(logs)))

    def moment(self, logs: Array) -> Array:
        """Sum of effects @ weights @ effects.T over the balls."""
        scaled = np.column_stack(
            [self.effects[:, columns] @ root for columns, root in zip(self.slices, self._roots(logs), strict=True)]
        )
        return np.asarray(scaled @ scaled.T)

    def update(self, logs: Array, whitener: Array) -> tuple[Array, float]:
        """Logarithms of root @ Q @ root for each ball, and the largest eigenvalue of the matrices Q."""
        largest, following = 0.0, []
        whitened = whitener @ self.effects
        for columns, root in zip(self.slices, self._roots(logs), strict=True):
            part = whitened[:, columns]
            largest = max(largest, float(np.linalg.norm(part, 2)) ** 2)
            product = part @ root
            following.append(product.T @ product)
        return self._logs(following), largest

    def normalised(self, logs: Array) -> Array:
        """Unchanged: the floor is kept by the matrix logarithm."""
        return logs

    def shifted(self, logs: Array, shift: float) -> Array:
        """Shift the diagonals of the matrix logarithms."""
        identities = [np.eye(int(np.sqrt(part.stop - part.start))).ravel() for part in self.parts]
        return logs + shift * np.concatenate(identities)

    def dual(self, logs: Array) -> tuple[sparse.csc_array, Array]:
        """The axes of each weight matrix, shrunk so that round-off leaves them admissible."""
        columns, weights = [], []
        for part, root in zip(self.slices, self._roots(logs), strict=True):
            values, vectors = np.linalg.eigh(root)
            vectors = vectors / (np.linalg.norm(vectors, axis=0) * (1 + 1e-14))
            columns.append(sparse.csc_array(self.matrix[:, part] @ vectors))
            weights.append(values**2)
        p = np.concatenate(weights)
        used = np.flatnonzero(p > 1e-16 * p.max(initial=0.0))
        return sparse.csc_array(sparse.csc_array(sparse.hstack(columns))[:, used]), p[used]


def pair_span(coordinates: Indices, n: int) -> Array:
    """Columns (n, k) that span the differences e_i - e_j."""
    k = len(coordinates)
    span = np.zeros((n, k))
    span[coordinates, np.arange(k)] = 1.0
    span[coordinates] -= 1.0 / k
    return span


DEPTH = 8
"""Pairs of earlier iterates that Anderson acceleration combines."""
FAR = 8.0
"""Largest change of a logarithm in one accelerated step."""
PATIENCE = 25
"""Iterations without halving the gap after which the next method is tried."""


@dataclass(frozen=True, eq=False, slots=True)
class Point:
    """One dual point: `logs` for each group of atoms, `loss_logs`, with its covariance root and bracket."""

    logs: tuple[Array, ...]
    loss_logs: Array | None
    root: Array
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """Relative gap of this point alone."""
        return (self.value - self.bound) / self.value


class Stopped(Exception):  # noqa: N818 - leaves the library's minimiser; not an error
    """The tolerance is reached or the time is over."""


class Ascent:
    """The dual function, the best point so far, and three ways to improve it."""

    def __init__(self, atoms: tuple[Atoms, ...], error_map: Array | None, tolerance: float, watch: Watch) -> None:
        """`error_map` (q, r) of a worst-case loss; None for an expected loss in coordinates with E'E = I."""
        self.atoms, self.error_map, self.tolerance, self.watch = atoms, error_map, tolerance, watch
        self.best: Point | None = None

    @property
    def done(self) -> bool:
        """Whether the gap is closed."""
        return self.best is not None and self.best.gap <= self.tolerance

    def run(self) -> Point:
        """The best point that fixed-point iteration and, where that stalls, L-BFGS-B find."""
        self._anderson()
        single = all(type(atoms).quadratics is not Atoms.quadratics for atoms in self.atoms)
        for _ in range(3):
            if self.done or self.watch.expired or not single:
                break
            self._quasi_newton()
        if not self.done and not self.watch.expired and not single:
            self._plain()
        if self.best is None:
            raise ValueError("no differences")
        return self.best

    def evaluate(self, logs: tuple[Array, ...], loss_logs: Array | None) -> tuple[Point, Array, Array | None]:
        """The point at these logarithms, a whitener Y with Y'Y = Sigma^-1, and the errors e of a worst-case loss."""
        moment = np.sum([atoms.moment(part) for atoms, part in zip(self.atoms, logs, strict=True)], axis=0)
        mass = sum(atoms.mass(part) for atoms, part in zip(self.atoms, logs, strict=True))
        turn = None
        errors = None
        if self.error_map is not None and loss_logs is not None:
            _, turn = np.linalg.qr(self.error_map * np.exp(loss_logs / 2)[:, None])
            moment = turn @ moment @ turn.T
        values, vectors = np.linalg.eigh(moment)
        deviations = np.sqrt(np.maximum(values, 1e-32 * max(float(values[-1]), 1e-300)))
        root = vectors * np.sqrt(deviations)
        whitener = (vectors / np.sqrt(deviations)).T
        trace = float(deviations.sum())
        if self.error_map is not None and loss_logs is not None and turn is not None:
            root = linalg.solve_triangular(turn, root, check_finite=False)
            whitener = whitener @ turn
            errors = np.sum((self.error_map @ root) ** 2, axis=1)
        largest = max(atoms.update(part, whitener)[1] for atoms, part in zip(self.atoms, logs, strict=True))
        loss = trace if errors is None else float(errors.max())
        total = 1.0 if loss_logs is None else float(np.exp(loss_logs).sum())
        # with loss weights of sum `total` the weighted loss is at most total times the worst
        point = Point(logs, loss_logs, root, loss * largest, trace**2 / (mass * total))
        if self.best is None or point.gap < self.best.gap:
            self.best = point
        self.watch.step(self.best.value, self.best.bound)
        return point, whitener, errors

    def first(self) -> tuple[tuple[Array, ...], Array | None]:
        """First logarithms: sizes of the effects; equal loss weights."""
        logs = tuple(atoms.start() for atoms in self.atoms)
        return logs, None if self.error_map is None else np.full(len(self.error_map), -np.log(len(self.error_map)))

    def _pack(self, logs: tuple[Array, ...], loss_logs: Array | None) -> Array:
        return np.concatenate([*logs, *([] if loss_logs is None else [loss_logs])])

    def _unpack(self, packed: Array) -> tuple[tuple[Array, ...], Array | None]:
        sizes = [len(part) for part in (self.best.logs if self.best else self.first()[0])]
        parts = np.split(packed, np.cumsum(sizes))
        logs = tuple(atoms.normalised(part) for atoms, part in zip(self.atoms, parts, strict=False))
        return logs, None if self.error_map is None else np.maximum(parts[-1], parts[-1].max() - 40)

    def _mapped(self, logs: tuple[Array, ...], loss_logs: Array | None, whitener: Array, errors: Array | None) -> Array:
        """One fixed-point step, scaled so that the weights sum to one."""
        following = [atoms.update(part, whitener)[0] for atoms, part in zip(self.atoms, logs, strict=True)]
        mass = sum(atoms.mass(part) for atoms, part in zip(self.atoms, following, strict=True))
        scaled = tuple(atoms.shifted(part, -np.log(mass)) for atoms, part in zip(self.atoms, following, strict=True))
        if loss_logs is None or errors is None:
            return self._pack(scaled, None)
        weights = loss_logs + np.log(np.maximum(errors, 1e-300))
        return self._pack(scaled, weights - np.log(np.exp(weights).sum()))

    def _rescaled(self, packed: Array) -> tuple[tuple[Array, ...], Array | None]:
        """Unpacked logarithms with weights of sum one."""
        logs, loss_logs = self._unpack(packed)
        mass = sum(atoms.mass(part) for atoms, part in zip(self.atoms, logs, strict=True))
        logs = tuple(atoms.shifted(part, -np.log(mass)) for atoms, part in zip(self.atoms, logs, strict=True))
        return logs, None if loss_logs is None else loss_logs - np.log(np.exp(loss_logs).sum())

    def _anderson(self) -> None:
        """Anderson acceleration of the fixed point on the logarithms, restarted from the best point when it strays."""
        points: list[Array] = []
        residuals: list[Array] = []
        logs, loss_logs = self._rescaled(self._pack(*self.first()))
        milestone, since = np.inf, 0
        while since < PATIENCE:
            point, whitener, errors = self.evaluate(logs, loss_logs)
            if self.done or self.watch.expired:
                return
            since += 1
            if self.best is not None and self.best.gap < milestone / 2:
                milestone, since = self.best.gap, 0
            packed = self._pack(logs, loss_logs)
            mapped = self._mapped(logs, loss_logs, whitener, errors)
            if self.best is not None and point.gap > 20 * self.best.gap and points:
                # an extrapolation that lost ground: forget the history
                points.clear()
                residuals.clear()
            points.append(packed)
            residuals.append(mapped - packed)
            del points[: -DEPTH - 1], residuals[: -DEPTH - 1]
            logs, loss_logs = self._rescaled(self._mixed(points, residuals))

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
        if self.best is None:
            return
        logs, loss_logs = self.best.logs, self.best.loss_logs
        for _ in range(300):
            _, whitener, errors = self.evaluate(logs, loss_logs)
            if self.done or self.watch.expired:
                return
            logs, loss_logs = self._rescaled(self._mapped(logs, loss_logs, whitener, errors))

    def _quasi_newton(self) -> None:
        """L-BFGS-B on the weights themselves.

        Maximises 2 tr - sum p for an expected loss and tr - (sum p)^2/4 - (sum w)^2/4 for a worst-case loss,
        both smooth and concave (the trace is a root fidelity of the two weighted sums).
        """
        if self.best is None:
            return
        worst = self.error_map is not None
        first = np.exp(self._pack(self.best.logs, self.best.loss_logs))
        count = len(first) - (len(self.error_map) if self.error_map is not None else 0)
        trace = np.sqrt(self.best.bound * first[:count].sum() * (first[count:].sum() if worst else 1.0))
        # the best multiple along the ray, and a floor that lets vanished weights come back
        first = first * (trace / (first[:count].sum() ** 2) if worst else (trace / first[:count].sum()) ** 2)
        floor = 1e-13 * first.max()
        first = np.maximum(first, 1e-7 * first.max())

        def negative(weights: Array) -> tuple[float, Array]:
            logs, loss_logs = self._split(np.log(np.maximum(weights, floor)))
            point, whitener, errors = self.evaluate(logs, loss_logs)
            if self.done or self.watch.expired:
                raise Stopped
            q = np.concatenate([_single(atoms.quadratics(whitener)) for atoms in self.atoms])
            mass = weights[:count].sum()
            if errors is None:
                trace = np.sqrt(point.bound * float(np.maximum(weights, floor).sum()))
                return -(2 * trace - mass), 1 - q
            share = weights[count:].sum()
            trace = float(np.exp(_single(loss_logs)) @ errors)
            value = trace - mass**2 / 4 - share**2 / 4
            slope = np.concatenate([q / 2 - mass / 2, errors / 2 - share / 2])
            return -float(value), -slope

        from scipy.optimize import minimize  # slow to load, and small programs are done without

        options = {"maxiter": 1500, "maxfun": 1500, "maxcor": 30, "ftol": 0.0, "gtol": 0.0}
        try:
            minimize(  # type: ignore[call-overload]  # the stubs lack jac=True with options
                negative,
                first,
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, None)] * len(first),
                options=options,
            )
        except Stopped:
            return

    def _split(self, packed: Array) -> tuple[tuple[Array, ...], Array | None]:
        """Unpacked without floors."""
        sizes = [len(part) for part in (self.best.logs if self.best else self.first()[0])]
        parts = np.split(packed, np.cumsum(sizes))
        if self.error_map is None:
            return tuple(parts[: len(sizes)]), None
        return tuple(parts[:-1]), parts[-1]


def _single(values: Array | None) -> Array:
    """The values, which exist because every difference is single."""
    if values is None:
        raise ValueError("a ball has no single value")
    return values
