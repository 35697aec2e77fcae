"""The least favourable data for answers that are affine in noisy ones, and the best such answers (notes/pulled.md).

With errors E of data u = c + d, d in a product of sets around 0, a rule whose averages are M u + shift loses
|(E - M) d|^2 + noise, and on average over data of covariance C tr((E - M) C (E - M)') + noise. That is convex in the
rule and linear in C. Of answers y = B u + noise, in units of the noise, the best rule for C is
M = E C B' (B C B' + 1)^-1 B (Wiener), and loses tr(E (C^-1 + B'B)^-1 E'), concave in C and convex in B'B.
The covariances of data between two ends, or in Euclidean balls, are replaced by all those with diagonals, or traces of
blocks, of data at the ends: of these the largest loss is that of the dual program for the worst data, within pi/2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from privspec.solvers.programs import Array, Indices, Watch

ROUNDS, STEPS, LAST = 200, 60, 500
"""Steps of the data for each strategy, of the strategy, and of one for data that are given."""
CLOSE, SMALL = 1e-12, 1e-12
"""Relative progress at which each of them stops."""
SPREAD = 0.1
"""Share by which a strategy is moved at first: where all columns are alike, no direction is better."""


@dataclass(frozen=True, eq=False, slots=True)
class Rule:
    """The best answers to data of some covariance (n, n): what averages are off, E - M (q, n), from answers B (k, n).

    `value`: its loss on average over such data. `roots`: of those that may lie together anyhow, vectors whose products
    are their correlations.
    """

    strategy: Array
    off: Array
    value: float
    covariance: Array
    roots: Array


@dataclass(frozen=True, eq=False, slots=True)
class Data:
    """What numbers there may be: `apart` (n, n) the covariance of those of which nothing worse is looked for.

    The others, `free` (f,), with `radii` (f,), are in turn numbers between two ends, or in Euclidean balls: `starts`.
    """

    apart: Array
    free: Indices
    radii: Array
    starts: Indices

    def rooted(self, given: Array) -> tuple[Array, Array]:
        """Vectors (f, k) of norm 1 in all of each set, and by what they were divided."""
        sizes = np.sqrt(np.add.reduceat((given**2).sum(axis=1), self.starts)) if len(self.free) else np.zeros(0)
        each = np.repeat(sizes, np.diff([*self.starts, len(self.free)]))[:, None]
        return given / each, each

    def covariance(self, roots: Array) -> Array:
        """That of such vectors."""
        found = self.apart.copy()
        found[np.ix_(self.free, self.free)] += (roots @ roots.T) * np.outer(self.radii, self.radii)
        return found

    def of_signs(self, roots: Array, alone: float) -> Array:
        """That of data at ends by the signs of normal numbers, or by themselves for some share of the time.

        Balls of one dimension lie on the same axis, each as often as any other.
        """
        sizes = np.diff([*self.starts, len(self.free)])
        each = np.repeat(sizes, sizes)
        axis = np.arange(len(each)) - np.repeat(self.starts, sizes)
        known = roots / np.maximum(np.linalg.norm(roots, axis=1, keepdims=True), 1e-300)
        signs = 2 / np.pi * np.arcsin(np.clip(known @ known.T, -1, 1)) * (1 - alone)
        signs *= np.equal.outer(each, each) & np.equal.outer(axis, axis)
        np.fill_diagonal(signs, 1)
        found = self.apart.copy()
        found[np.ix_(self.free, self.free)] += signs / each * np.outer(self.radii, self.radii)
        return found

    def first(self) -> Array:
        """Vectors from which the worst are looked for: half alike, half of their own."""
        size = len(self.free)
        return self.rooted(np.column_stack([np.ones(size), np.eye(size)]))[0]


def answered(errors: Array, strategy: Array, covariance: Array, roots: Array | None = None) -> Rule:
    """The best rule from these answers for data of this covariance."""
    seen = strategy @ covariance
    gain = np.linalg.solve(seen @ strategy.T + np.eye(len(strategy)), seen @ errors.T).T
    off = errors - gain @ strategy
    value = float((gain**2).sum() + ((off @ covariance) * off).sum())
    return Rule(strategy, off, value, covariance, np.zeros((0, 1)) if roots is None else roots)


def at_worst(
    errors: Array, strategy: Array, data: Data, roots: Array | None = None, watch: Watch | None = None
) -> Rule:
    """The best rule from these answers for the worst data; `roots`, from where these are looked for."""
    from scipy.optimize import minimize  # slow to load

    start = data.first() if roots is None else roots
    best = answered(errors, strategy, data.covariance(start), start)
    scale, rules = max(best.value, 1e-300), [best]
    if not len(data.free):
        return best

    def loss(flat: Array) -> tuple[float, Array]:
        own, sizes = data.rooted(flat.reshape(start.shape))
        rule = answered(errors, strategy, data.covariance(own), own)
        rules[0] = max(rules[0], rule, key=lambda one: one.value)
        off = rule.off[:, data.free] * data.radii
        pull = 2 * off.T @ (off @ own)
        # vectors keep their norm
        along = np.repeat(np.add.reduceat((pull * own).sum(axis=1), data.starts), np.diff([*data.starts, len(own)]))
        return -rule.value / scale, ((own * along[:, None] - pull) / sizes / scale).ravel()

    options = {"maxiter": ROUNDS, "ftol": CLOSE, "gtol": CLOSE}
    stop = partial(_in_time, watch)
    minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=options, callback=stop)  # type: ignore[call-overload]
    return rules[0]


def designed(errors: Array, moves: Array, start: Array, data: Data | Array, watch: Watch | None = None) -> Rule:
    """The best rule and the best answers for it, of any Gaussian noise, for the worst data or for a covariance.

    Args: moves (n,), by how many noise units one number may move the answers, over by how much it moves itself: a
        column of B is at most as long; start (k, n), answers with columns of any length; watch, when to stop.
    """
    from scipy.optimize import minimize  # slow to load

    roots, found = [None if isinstance(data, np.ndarray) else data.first()], list[Rule]()
    short = max(errors.shape[1] - len(start), 0)
    near = SPREAD * np.random.default_rng(0).standard_normal((len(start) + short, errors.shape[1])) * moves
    given = near + np.vstack([start, np.zeros((short, errors.shape[1]))])

    def loss(flat: Array) -> tuple[float, Array]:
        root = flat.reshape(given.shape)
        sizes = np.linalg.norm(root, axis=0) / moves
        strategy = root / sizes
        if isinstance(data, np.ndarray):
            rule = answered(errors, strategy, data)
        else:
            rule = at_worst(errors, strategy, data, roots[0], watch)
            roots[0] = rule.roots
        found[:] = [min([*found, rule], key=lambda one: one.value)]
        left = unknown(rule)
        slope = -2 * strategy @ left @ (errors.T @ errors) @ left
        # columns keep their length
        inward = slope - strategy * ((slope * strategy).sum(axis=0) / moves**2)
        return rule.value / scale, (inward / sizes / scale).ravel()

    scale = max(float((errors**2).sum()), 1e-300)
    options = {"maxiter": LAST if isinstance(data, np.ndarray) else STEPS, "ftol": SMALL}
    stop = partial(_in_time, watch)
    minimize(loss, given.ravel(), jac=True, method="L-BFGS-B", options=options, callback=stop)  # type: ignore[call-overload]
    return found[0]


def _in_time(watch: Watch | None, _: object) -> None:
    """End a search with what it has found where the deadline has passed."""
    if watch is not None and watch.expired:
        raise StopIteration


def unknown(rule: Rule) -> Array:
    """(C^-1 + B'B)^-1: the covariance of what is not known of the data when the answers are."""
    seen = rule.strategy @ rule.covariance
    inner = seen @ rule.strategy.T + np.eye(len(seen))
    return np.asarray(rule.covariance - seen.T @ np.linalg.solve(inner, seen))
