"""Variances of independent parts that share one limit: the least of the largest of several sums, in plain matrices.

Terms of a loss are C v for variances v > 0, limits Q (1 / v) <= 1 (all C, Q >= 0): minimise the largest term. For
shares w of the terms and l of the limits, both adding up to 1, no v has a largest term below F(w, l)^2,

    F(w, l) = sum over s of sqrt((C'w)_s (Q'l)_s),

by Cauchy and Schwarz; F is concave in both together (a geometric mean of linear functions), and its largest value
squared is the optimum, at v = sqrt((Q'l) / (C'w)). With one term and one limit that is a closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
STEPS, NEWTON = 300, 80
FALL = 0.2
"""Of the barrier, from one Newton step to the next."""
LARGEST = 1500
"""Terms and limits up to which Newton steps are taken."""
CLOSE = 1e-10
"""Relative gap at which shares count as found."""
TINY = 1e-300


@dataclass(frozen=True, eq=False, slots=True)
class Shares:
    """Shares of the terms (J,) and of the limits (K,), variances (S,) that meet the limits, and both bounds.

    `term_values`, `limit_values`: what each term and limit is at variances that are sqrt((Q'l) / (C'w)).
    """

    terms: Array
    limits: Array
    variances: Array
    upper: float
    lower: float
    steps: int
    term_values: Array
    limit_values: Array

    @property
    def gap(self) -> float:
        """Relative distance of the bounds."""
        return self.upper / self.lower - 1


def least_worst(costs: Any, limits: Any) -> Shares:
    """Variances with the least largest term.

    Shares grow with what their term or limit is, which raises F in every step; where that is slow, Newton steps with a
    barrier at shares of 0 follow.

    Args: costs (J, S), terms in rows, dense or sparse; limits (K, S), dense or sparse. No column is all zero.
    Returns: the shares whose bounds were nearest to each other.
    """
    w, shares = (np.full(one.shape[0], 1 / one.shape[0]) for one in (costs, limits))
    now = best = _at(costs, limits, w, shares, 0)
    while best.gap > CLOSE and now.steps < STEPS:
        now = _risen(costs, limits, now)
        best = min((best, now), key=lambda one: one.gap)
    if best.gap > CLOSE and sum(costs.shape[:1] + limits.shape[:1]) <= LARGEST:
        best = min((best, _newton(costs, limits, best)), key=lambda one: one.gap)
    return best


def _at(costs: Any, limits: Any, w: Array, shares: Array, steps: int) -> Shares:
    """The variances of some shares, with what each term and each limit is at them."""
    a, b = (np.maximum(np.asarray(one.T @ own), TINY) for one, own in ((costs, w), (limits, shares)))
    v = np.sqrt(b / a)
    terms, used, f = np.asarray(costs @ v), np.asarray(limits @ (1 / v)), float(np.sqrt(a * b).sum())
    most = float(used.max())
    return Shares(w, shares, v * most, float(terms.max()) * most, f * f, steps, terms, used)


def _risen(costs: Any, limits: Any, now: Shares) -> Shares:
    """Shares in proportion to what they are times their terms and limits."""
    w, shares = now.terms * now.term_values, now.limits * now.limit_values
    return _at(costs, limits, w / w.sum(), shares / shares.sum(), now.steps + 1)


def _newton(costs: Any, limits: Any, start: Shares) -> Shares:
    """The largest of F + t (sum of the logarithms of all shares) for falling t, from shares that are not 0."""
    rows = [one.toarray() if hasattr(one, "toarray") else np.asarray(one) for one in (costs, limits)]
    size, count = len(rows[0]), len(rows[0]) + len(rows[1])
    x = np.concatenate([0.9 * one + 0.1 / len(one) for one in (start.terms, start.limits)])
    sums = np.zeros((2, count))
    sums[0, :size], sums[1, size:] = 1, 1
    best, t = start, np.sqrt(start.lower) / count
    for step in range(NEWTON):
        a, b = (np.maximum(one.T @ own, TINY) for one, own in zip(rows, (x[:size], x[size:]), strict=True))
        f = np.sqrt(a * b)
        gradient = np.concatenate([rows[0] @ (f / a), rows[1] @ (f / b)]) / 2 + t / x
        cross = rows[0] @ ((f / (a * b))[:, None] * rows[1].T)
        bend = -np.block(
            [
                [rows[0] @ ((f / a**2)[:, None] * rows[0].T), -cross],
                [-cross.T, rows[1] @ ((f / b**2)[:, None] * rows[1].T)],
            ]
        )
        scaled = bend / 4 * np.outer(x, x) - t * np.eye(count)
        system = np.block([[scaled, (sums * x).T], [sums * x, np.zeros((2, 2))]])
        move = np.linalg.lstsq(system, np.concatenate([-gradient * x, np.zeros(2)]), rcond=None)[0][:count]
        size_of_move = float(np.abs(move).max())
        x = x * (1 + move * min(1.0, 0.9 / max(size_of_move, TINY)))
        x[:size], x[size:] = x[:size] / x[:size].sum(), x[size:] / x[size:].sum()
        found = _at(costs, limits, x[:size], x[size:], start.steps + step + 1)
        best = min((best, found), key=lambda one: one.gap)
        if best.gap <= CLOSE:
            break
        t *= FALL if size_of_move < 1 else 1
    return best


# --- strategies for several sets of columns that share one limit ------------------------------------------

DEEP, TURNS, FLAT = 8, 400, 1e-11
"""Steps that are mixed (Anderson); eigendecompositions at most; relative gap at which the shares count as found."""
LEAST, FAR = -30.0, 4.0
"""Logarithm of the least share beside the largest, and by how much one may move at once."""
RANK = 1e-12
"""Of the largest eigenvalue: what is below counts as 0."""


@dataclass(frozen=True, eq=False, slots=True)
class Strategy:
    """Of one Gram matrix V: a strategy B (k, M), estimates R (M, k) from it, and vectors Y (M, M), |V^(1/2) Y| <= 1."""

    strategy: Array
    estimates: Array
    vectors: Array


@dataclass(frozen=True, eq=False, slots=True)
class Strategies:
    """Strategies at shares (M,) of the cells, scaled so that the limit is 1, with both bounds on their loss."""

    shares: Array
    parts: tuple[Strategy, ...]
    upper: float
    lower: float


def strategies(asked: list[Array], prices: list[float]) -> Strategies:
    """Strategies B_t with the least sum of tr(V_t (B_t'B_t)^+), where sum of p_t |B_t e_m|^2 <= 1 for every cell m.

    The dual: F(l) = sum sqrt(p_t) tr R_t, R_t = (S V_t S)^(1/2), S = diag(sqrt l), l >= 0 adding up to 1; no loss is
    below F^2. At the optimum l is in proportion to sum sqrt(p_t) diag R_t: a fixed point, whose steps are mixed.
    """
    cells = len(asked[0])
    here, points, moves, best = np.zeros(cells), list[Array](), list[Array](), None
    for _ in range(TURNS):
        here = np.maximum(here - here.max(), LEAST)
        shares = np.exp(here) / np.exp(here).sum()
        roots = [_root(one, shares) for one in asked]
        weights = sum(np.sqrt(p) * (q * e**0.5 @ q.T).diagonal() for p, (q, e) in zip(prices, roots, strict=True))
        f, gap = float(weights.sum()), float((weights / shares).max() / weights.sum()) - 1
        if best is None or gap < best[2]:
            best = shares, roots, gap
        if gap < FLAT:
            break
        worse = gap > 3 * best[2]
        if worse:
            points, moves = [], []
        points.append(np.log(shares))
        moves.append(np.log(np.maximum(weights / f, TINY)) - points[-1])
        mixed = _mixed(points[-DEEP:], moves[-DEEP:])
        here = mixed if np.isfinite(mixed).all() and np.abs(mixed - points[-1]).max() < FAR else points[-1] + moves[-1]
    assert best is not None
    return _strategies(best[0], best[1], prices)


def _root(asked: Array, shares: Array) -> tuple[Array, Array]:
    """Eigenvectors and eigenvalues of S V S that are not 0."""
    scale = np.sqrt(shares)
    values, vectors = np.linalg.eigh(scale[:, None] * asked * scale)
    kept = values > RANK * values[-1]
    return vectors[:, kept], values[kept]


def _mixed(points: list[Array], moves: list[Array]) -> Array:
    """The combination of the last points, moved on, whose move is shortest."""
    found: Array = points[-1] + moves[-1]
    if len(moves) > 1:
        steps = np.diff(np.array(moves), axis=0).T
        along = np.linalg.lstsq(steps, moves[-1], rcond=1e-10)[0]
        found = found - (np.diff(np.array(points), axis=0).T + steps) @ along
    return found


def _strategies(shares: Array, roots: list[tuple[Array, Array]], prices: list[float]) -> Strategies:
    scale, parts = np.sqrt(shares), []
    weights = sum(np.sqrt(p) * (q * e**0.5 @ q.T).diagonal() for p, (q, e) in zip(prices, roots, strict=True))
    f, most = float(weights.sum()), float((weights / shares).max())
    for p, (q, e) in zip(prices, roots, strict=True):
        strategy = (e**0.25)[:, None] * q.T / scale / p**0.25 / np.sqrt(most)
        estimates = scale[:, None] * q / e**0.25 * p**0.25 * np.sqrt(most)
        parts.append(Strategy(strategy, estimates, scale[:, None] * (q / e**0.5 @ q.T)))
    return Strategies(shares, tuple(parts), f * most, f * f)
