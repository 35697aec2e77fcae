"""Probit estimates a voter: ours beside scipy's SLSQP and cvxpy on the same voters, in microseconds.

    python tests/benchmarks/bench_probit.py [--voters 1000] [--few 20] [--radius 2]

One thread. `cpu` is processor time (the machine may be shared), `wall` clock time; the best of three passes for
ours. `gap` is the largest relative Frank-Wolfe gap after each answer was moved into the ball.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cvxpy as cp
import numpy as np
from privspec.solvers.probit import BALLS, inside, probit_mle, relative_gaps
from scipy.optimize import minimize
from scipy.special import erfcx, log_ndtr

Array = np.ndarray
SHAPES = ((13, 23), (50, 10))
L1 = BALLS["l1"]


def voters(count: int, n: int, d: int, *, integers: bool) -> Array:
    """Choices of a Thurstone-Mosteller crowd: chosen minus rejected."""
    rng = np.random.default_rng(0)
    records = rng.normal(size=(count, n, d))
    records = np.rint(2 * records) if integers else records
    taste = 0.5 * rng.normal(size=d) + 0.2 * rng.normal(size=(count, d))
    chosen = np.where((records @ taste[..., None])[..., 0] + rng.normal(size=(count, n)) >= 0, 1.0, -1.0)
    return records * chosen[..., None]


def slsqp(records: Array, radius: float) -> Array:
    """One voter by sequential quadratic programming on positive and negative parts."""
    d = records.shape[1]
    split = np.concatenate([records, -records], axis=1)
    root = np.sqrt(0.5)
    best = minimize(
        lambda x: (
            -log_ndtr(split @ x).sum(),
            -(np.sqrt(2 / np.pi) / erfcx(-root * (split @ x))) @ split,
        ),
        np.zeros(2 * d),
        jac=True,
        bounds=[(0, None)] * (2 * d),
        constraints=[{"type": "ineq", "fun": lambda x: radius - x.sum(), "jac": lambda x: -np.ones(2 * d)}],
        method="SLSQP",
        options={"ftol": 1e-10, "maxiter": 300},
    )
    return best.x[:d] - best.x[d:]


def modelled(records: Array, radius: float) -> Array:
    """One voter by cvxpy with its own `log_normcdf` (an approximation)."""
    weights = cp.Variable(records.shape[1])
    cp.Problem(cp.Maximize(cp.sum(cp.log_normcdf(records @ weights))), [cp.norm1(weights) <= radius]).solve()
    return np.asarray(weights.value)


def timed(work: Callable[[], Array], passes: int) -> tuple[float, float, Array]:
    """Least processor and clock seconds, and the answer."""
    cpu = wall = np.inf
    for _ in range(passes):
        began, clock = time.process_time(), time.perf_counter()
        answer = work()
        cpu, wall = min(cpu, time.process_time() - began), min(wall, time.perf_counter() - clock)
    return cpu, wall, answer


def show(name: str, records: Array, radius: float, work: Callable[[], Array], passes: int) -> None:
    """Run one solver on the voters and print a line."""
    cpu, wall, answer = timed(work, passes)
    weights = inside(answer, radius, L1)
    gap = relative_gaps(records * radius, weights / radius, L1).max()
    scale = 1e6 / len(records)
    print(f"  {name:<10}{len(records):>7}{cpu * scale:>12.1f}{wall * scale:>12.1f}{gap:>12.1e}", flush=True)


def main() -> None:
    """Print one table for each shape and kind of records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voters", type=int, default=1000)
    parser.add_argument("--few", type=int, default=20, help="voters given to SLSQP and cvxpy")
    parser.add_argument("--radius", type=float, default=2.0)
    options = parser.parse_args()
    radius = options.radius
    for n, d in SHAPES:
        for integers in (False, True):
            records = voters(options.voters, n, d, integers=integers)
            some = records[: options.few]
            print(f"n={n} d={d} radius={radius:g} {'integer' if integers else 'normal'} records, us a voter")
            print(f"  {'solver':<10}{'voters':>7}{'cpu':>12}{'wall':>12}{'gap':>12}")
            show("ours", records, radius, lambda v=records: probit_mle(v, radius).weights, 3)
            show("SLSQP", some, radius, lambda v=some: np.stack([slsqp(one, radius) for one in v]), 1)
            show("cvxpy", some, radius, lambda v=some: np.stack([modelled(one, radius) for one in v]), 1)


if __name__ == "__main__":
    main()
