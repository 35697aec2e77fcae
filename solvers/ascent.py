"""Dual ascent for the full-covariance program (the matrix mechanism; MATH.md section 2).

Coordinates are such that the effects of the differences span R^r. For weights p on the differences (and, for a
worst-case loss, w on the error terms with G = E' diag(w) E; else G = E'E = I):
    M = sum p a a',   Sigma = G^-1/2 (G^1/2 M G^1/2)^1/2 G^-1/2,   q_i = a_i' Sigma^-1 a_i,   e_j = (E Sigma E')_jj.
Then (tr G Sigma)^2 / (sum p sum w) bounds the optimum from below, and Sigma * max q is feasible. The optimum is
a fixed point of p <- p q, w <- w e, which Anderson acceleration reaches in a few steps where it is positive;
L-BFGS-B takes over where many weights vanish.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from privspec.solvers.atoms import Atoms
from privspec.solvers.programs import Array
from privspec.solvers.results import Watch
from scipy import linalg

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
