"""Optimal tables and the plain linear program side by side: seconds, rows, loss, certified gap.

    python tests/benchmarks/bench_tables.py [--limit SECONDS] [--cases chain400,grid7] [--only ours|plain]

`ours` is `solve_table`: optimum, exact integer table, certified bound, and the check of the table in exact arithmetic.
`plain` states every pair and output to cvxpy and lets it call HiGHS, without exactness or certificate. Every run has
its own process with one thread; whatever exceeds the limit is stopped and says so.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from fractions import Fraction
from typing import Any

import numpy as np

Result = dict[str, Any]
CASES = {
    "chain100": "count from 0 to 99, neighbours differ by one, absolute loss, eps 1/2",
    "chain400": "count from 0 to 399, neighbours differ by one, absolute loss, eps 1/2",
    "complete100": "100 inputs, all pairs neighbours, absolute loss, eps 1",
    "complete400": "400 inputs, all pairs neighbours, absolute loss, eps 1",
    "grid5": "5 x 5 grid, Euclidean metric-DP and loss, uniform prior, eps 1 a step",
    "grid7": "7 x 7 grid, Euclidean metric-DP and loss, uniform prior, eps 1 a step",
    "grid10": "10 x 10 grid, Euclidean metric-DP and loss, nonuniform prior, eps 1 a step",
}


def program(case: str) -> Any:
    """The program of a case."""
    from privspec.solvers.table_programs import CompleteRatio, PairRatio, TableProgram

    kind, size = case.rstrip("0123456789"), int(case.lstrip("abcdefghijklmnopqrstuvwxyz"))
    if kind == "grid":
        count = size * size
        points = np.stack(np.divmod(np.arange(count), size), axis=1)
        apart = np.linalg.norm(points[:, None] - points[None], axis=2)
        prior = np.random.default_rng(1).dirichlet(np.full(count, 2.0)) if size == 10 else np.full(count, 1 / count)
        pairs = np.array([(a, b) for a in range(count) for b in range(count) if a != b])
        logs = tuple(Fraction(math.floor(apart[a, b] * 2**40), 2**40) for a, b in pairs)
        return TableProgram(apart * prior[:, None], (PairRatio(pairs, logs),))
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) / size
    if kind == "complete":
        return TableProgram(apart, (CompleteRatio(Fraction(1)),))
    pairs = np.array([(a, b) for a in range(size) for b in (a - 1, a + 1) if 0 <= b < size])
    return TableProgram(apart, (PairRatio(pairs, (Fraction(1, 2),)),))


def ours(case: str) -> Result:
    """The solver, with the exact check."""
    from privspec.solvers.table_exact import violations
    from privspec.solvers.tables import solve_table

    problem = program(case)
    start = time.perf_counter()
    found = solve_table(problem)
    assert not violations(problem, found.exact)
    return {
        "seconds": time.perf_counter() - start,
        "rows": found.rows,
        "loss": float(found.value),
        "gap": found.relative_gap,
        "repair": float(found.value) / found.optimum - 1,
    }


def plain(case: str) -> Result:
    """Every pair and output in cvxpy."""
    import cvxpy as cp
    from privspec.solvers.table_programs import CompleteRatio

    problem = program(case)
    block = problem.privacy[0]
    inputs, outputs = problem.shape
    if isinstance(block, CompleteRatio):
        first, second = np.nonzero(~np.eye(inputs, dtype=bool))
        ratios = np.full(len(first), math.exp(block.log_ratio))
    else:
        first, second = block.pairs.T
        ratios = np.resize([math.exp(q) for q in block.log_ratios], len(first))
    start = time.perf_counter()
    table = cp.Variable(problem.shape, nonneg=True)
    constraints = [cp.sum(table, axis=1) == 1, table[first] <= cp.multiply(ratios[:, None], table[second])]
    whole = cp.Problem(cp.Minimize(cp.sum(cp.multiply(problem.cost, table))), constraints)
    whole.solve(solver=cp.HIGHS)
    return {
        "seconds": time.perf_counter() - start,
        "rows": inputs + len(first) * outputs,
        "loss": float(whole.value),
    }


WAYS = {"ours": ours, "plain": plain}


def measured(case: str, way: str, limit: float) -> str:
    """One run in its own process, as a line of the table."""
    command = [sys.executable, __file__, "--run", case, way]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=environment, check=False)
    except subprocess.TimeoutExpired:
        return f"{case:12} {way:6} stopped after {limit:.0f} s"
    if done.returncode:
        return f"{case:12} {way:6} failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
    result = json.loads(done.stdout.splitlines()[-1])
    proof = f"{result['gap']:9.1e} {result['repair']:9.1e}" if "gap" in result else f"{'-':>9} {'-':>9}"
    return f"{case:12} {way:6} {result['seconds']:8.2f} {result['rows']:10d} {result['loss']:14.9f} {proof}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=240.0)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--only", choices=sorted(WAYS))
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        case, way = arguments.run
        print(json.dumps(WAYS[way](case)))
        return
    print(f"{'case':12} {'way':6} {'seconds':>8} {'rows':>10} {'loss':>14} {'gap':>9} {'repair':>9}")
    for case in arguments.cases.split(","):
        for way in (arguments.only,) if arguments.only else WAYS:
            print(measured(case, way, arguments.limit), flush=True)
    for case in arguments.cases.split(","):
        print(f"{case}: {CASES.get(case, '')}")


if __name__ == "__main__":
    main()
