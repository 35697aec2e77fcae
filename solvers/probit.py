"""Probit estimates of many voters at once: maximum likelihood in a ball, certified by the Frank-Wolfe gap.

A voter's loss is f(b) = -sum_j ln Phi(b' V_j) over a ball of radius B, the l1 ball (Wang et al. 2019, section 4) or the
l2 ball. Each voter goes through rounds of accelerated projected gradient (it finds the face) and Newton steps on the
face (they finish), until its own gap is small. Nothing of one voter's computation looks at another voter: step sizes,
restarts and stopping are each voter's own, so the same records give the same bits in every batch, in every place.

`probit_mle` uses `probit_compiled` where numba is installed (extra `fast`), otherwise `probit_numpy`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Literal

import numpy as np
from privspec.solvers.probit_numpy import BALLS, Ball, inside, pulled_by, rounds, seen_by, slope
from privspec.solvers.programs import Array
from scipy.special import log_ndtr

Engine = Literal["numpy", "compiled"]
COMPILED = find_spec("numba") is not None
"""Whether the compiled engine is installed."""
LARGEST = 1e100
"""Differences of records (in units of 1/radius) beyond this count as this, so that no square overflows."""


@dataclass(frozen=True, eq=False, slots=True)
class ProbitSolution:
    """Estimates of N voters.

    `weights` (N, d) lie in the ball in exact arithmetic on the doubles; `gaps` (N,) bound (f(b) - f*) / f(b), computed
    at these weights in double arithmetic with its rounding added (a voter whose gap exceeds the tolerance did not
    converge); `iterations` is the largest number of gradient and Newton steps that a voter took.
    """

    weights: Array
    gaps: Array
    iterations: int

    def converged(self, tolerance: float = 1e-6) -> bool:
        """Whether every voter's relative gap is at most `tolerance`."""
        return bool(np.all(self.gaps <= tolerance))


def probit_mle(
    records: Array,
    radius: float,
    tolerance: float = 1e-6,
    norm: Literal["l1", "l2"] = "l1",
    *,
    engine: Engine | None = None,
    limit: int = 20_000,
) -> ProbitSolution:
    """Each voter's maximum likelihood in a ball: b_i = argmax over ||b|| <= radius of sum_j ln Phi(b' V_ij).

    Args: records (N, n, d), finite, chosen minus rejected; radius > 0 of the ball of `norm`; tolerance of the relative
        gap; engine, or None for the fastest one that is installed; limit on the steps of a voter.
    Returns: the weights, inside the ball in exact arithmetic whatever the records, with their gaps. A voter that
        reaches `limit` keeps its point and its (larger) gap; no error is raised: it would tell about records.
    Raises: ValueError if the shapes, the radius or the engine make no sense, or records are not finite.
    Source: Frank-Wolfe gap f(b) - f* <= g'b + B ||g||_dual (Jaggi 2013); restarts O'Donoghue & Candes 2015.
    """
    data = np.ascontiguousarray(records, dtype=np.float64)
    if data.ndim != 3 or not np.isfinite(data).all():
        raise ValueError("records are a finite array (voters, records, features)")
    if not (np.isfinite(radius) and radius > 0):
        raise ValueError("the radius is a positive number")
    if norm not in BALLS:
        raise ValueError(f"the norm is one of {', '.join(BALLS)}")
    engine = engine or ("compiled" if COMPILED else "numpy")
    if engine == "compiled" and not COMPILED:
        raise ValueError("the compiled engine needs numba: pip install privspec[fast]")
    ball = BALLS[norm]
    voters, _, features = data.shape
    if data.size == 0:
        return ProbitSolution(np.zeros((voters, features)), np.zeros(voters), 0)
    with np.errstate(over="ignore", under="ignore"):
        # In units of the radius every ball is the unit ball.
        unit = np.clip(data * radius, -LARGEST, LARGEST)
        if engine == "compiled":
            points = np.zeros((voters, features))
            kernel = import_module("privspec.solvers.probit_compiled")
            iterations = int(kernel.every_voter(unit, tolerance, norm == "l1", limit, points))
        else:
            points, iterations = rounds(unit, tolerance, ball, limit)
        weights = inside(points * radius, radius, ball)
        return ProbitSolution(weights, relative_gaps(unit, weights / radius, ball), iterations)


def relative_gaps(unit: Array, points: Array, ball: Ball) -> Array:
    """Bounds on (f - f*) / f over the unit ball at points (N, d), with the rounding of the sums added."""
    count, features = unit.shape[1:]
    gaps = np.empty(len(points))
    size = max(1, 2**20 // (8 * count * features))
    for start in range(0, len(points), size):
        part = slice(start, start + size)
        values = seen_by(unit[part], points[part])
        hazards = slope(values)
        gradients = pulled_by(unit[part], hazards)
        height = ball.dual(gradients)
        raw = height - (gradients * points[part]).sum(axis=1) + (count + features + 8) * 2.0**-52 * height
        losses = -log_ndtr(values).sum(axis=1)
        gaps[part] = np.where(height > 0, np.maximum(raw, 0.0) / np.maximum(losses, np.finfo(float).tiny), 0.0)
    return gaps
