"""Loss, gap, time and memory of three ways to place Gaussian noise, side by side in one run.

    python tests/benchmarks/bench_placement.py [--limit SECONDS] [--sizes 16,32,64] [--memory GIB] [--threads N]

Workload: n prefix sums, replacing one entry of [0, 1]^n, mu = 1, expected squared error. Ways: the default solver,
the plain convex program through cvxpy, and the dense factorisation of jax-privacy where it is installed; then the
same with noise restricted to the inputs and the outputs, which the factorisation does not offer. Every run has its
own process, so that peak memory is its own; whatever exceeds the limit is stopped and says so. Gaps of methods
without a certificate are taken to the default solver's lower bound. `seconds` is wall time, `cpu s` processor time
(the fairer figure on a machine that others use); one thread unless told otherwise.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Result = dict[str, Any]


class Clock:
    """Wall and processor time since it was made."""

    def __init__(self) -> None:
        self.wall, self.processor = time.perf_counter(), time.process_time()

    def read(self) -> Result:
        """The two times in seconds."""
        return {"seconds": time.perf_counter() - self.wall, "cpu": time.process_time() - self.processor}


def prefix(n: int) -> np.ndarray:
    """The n prefix sums as a matrix."""
    return np.tril(np.ones((n, n)))


def program(n: int, *, sites: bool) -> Any:
    """The prefix program of size n."""
    from privspec.solvers.programs import ExpectedLoss, GaussianProgram, Site, Vectors, View
    from scipy import sparse

    target = prefix(n)
    views = (View(None, Vectors(sparse.csc_array(sparse.eye_array(n)))),)
    places = (Site("x", target), Site("y", np.eye(n))) if sites else None
    return GaussianProgram(target, ExpectedLoss(np.eye(n)), views, places)


def default(n: int, *, sites: bool) -> Result:
    """The special solvers."""
    from privspec.solvers.gaussian import solve_gaussian

    problem = program(n, sites=sites)
    clock = Clock()
    solution = solve_gaussian(problem)
    return {"loss": solution.value, "bound": solution.lower_bound, **clock.read()}


def plain_cvxpy(n: int, *, sites: bool) -> Result:
    """The compiler's reference path: one linear matrix inequality for each difference."""
    from privspec.families.gaussian.reference import solve_with_cvxpy

    problem = program(n, sites=sites)
    clock = Clock()
    solution = solve_with_cvxpy(problem)
    return {"loss": solution.value, "bound": solution.lower_bound, **clock.read()}


def jax_dense(n: int, *, sites: bool) -> Result:
    """jax-privacy's dense factorisation A = B C, its loss ||B||_F^2 at unit sensitivity of C."""
    if sites:
        return {"note": "does not apply"}
    if importlib.util.find_spec("jax_privacy") is None:
        return {"note": "not installed: pip install -e '.[benchmarks]'"}
    from jax_privacy.matrix_factorization import dense

    target = prefix(n)
    clock = Clock()
    strategy = np.asarray(dense.optimize(n, A=target), dtype=float)
    times = clock.read()
    decoder = np.linalg.solve(strategy.T, target.T).T
    sensitivity = float(np.max(np.sum(strategy**2, axis=0)))
    return {"loss": float(np.sum(decoder**2)) * sensitivity, "bound": None, **times}


METHODS: dict[str, Callable[..., Result]] = {"default": default, "cvxpy": plain_cvxpy, "jax-privacy": jax_dense}


def child(name: str, n: int, *, sites: bool, memory: float) -> None:
    """Run one method and print its result and peak memory as JSON."""
    limit = int(memory * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    result = METHODS[name](n, sites=sites)
    result["mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(result))


def run(name: str, n: int, *, sites: bool, limit: float, memory: float, threads: int) -> Result:
    """Run one method in its own process."""
    command = [sys.executable, __file__, "--child", name, str(n), str(int(sites)), "--memory", str(memory)]
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(threads))}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False, env=environment)
    except subprocess.TimeoutExpired:
        return {"note": f"not finished in {limit:g} s"}
    if done.returncode:
        out_of_memory = "MemoryError" in done.stderr or "bad_alloc" in done.stderr or done.returncode < 0
        lines = done.stderr.strip().splitlines()
        return {"note": f"out of {memory:g} GiB" if out_of_memory else f"failed: {lines[-1] if lines else '?'}"}
    return json.loads(done.stdout.strip().splitlines()[-1])


def line(name: str, n: int, result: Result, bound: float | None) -> str:
    """One row of the table."""
    if "note" in result:
        return f"{name:>12} {n:>6}  {result['note']}"
    proof = result["bound"] if result["bound"] is not None else bound
    gap = "-" if proof is None else f"{(result['loss'] - proof) / result['loss']:.1e}"
    certified = "yes" if result["bound"] is not None else "no"
    return (
        f"{name:>12} {n:>6}  {result['loss']:>16.6f} {gap:>9} {certified:>9} "
        f"{result['seconds']:>9.2f} {result['cpu']:>9.2f} {result['mib']:>10.0f}"
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each run")
    parser.add_argument("--memory", type=float, default=8.0, help="address space for each run, GiB")
    parser.add_argument("--threads", type=int, default=1, help="threads of linear algebra in each run")
    parser.add_argument("--sizes", default="16,32,64,256,1024")
    parser.add_argument("--site-sizes", default="16,64,256")
    parser.add_argument("--child", nargs=3, metavar=("METHOD", "N", "SITES"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, n, sites = options.child
        child(name, int(n), sites=bool(int(sites)), memory=options.memory)
        return
    titles = f"{'gap':>9} {'certified':>9} {'seconds':>9} {'cpu s':>9} {'peak MiB':>10}"
    header = f"{'method':>12} {'n':>6}  {'loss':>16} {titles}"
    for title, sizes, sites in (
        ("prefix sums, any covariance", options.sizes, False),
        ("prefix sums, noise at inputs and outputs only", options.site_sizes, True),
    ):
        print(f"\n{title} (limit {options.limit:g} s a run)\n{header}", flush=True)
        for n in (int(size) for size in sizes.split(",")):
            bound = None
            for name in METHODS:
                result = run(name, n, sites=sites, limit=options.limit, memory=options.memory, threads=options.threads)
                bound = result.get("bound") if name == "default" else bound
                print(line(name, n, result, bound), flush=True)


if __name__ == "__main__":
    main()
