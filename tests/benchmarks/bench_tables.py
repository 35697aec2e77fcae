"""Optimal tables, the plain linear program, and the whole command side by side: seconds, rows, loss, certified gap.

    python tests/benchmarks/bench_tables.py [--limit SECONDS] [--cases chain400,grid7] [--only ours|plain|command]

`ours` is `solve_table`: optimum, exact integer table, certified bound, and the check of the table in exact arithmetic.
`plain` states every pair and output to cvxpy and takes the faster of HiGHS and Clarabel, without exactness or
certificate. `command` is `privspec solve` from text to a verified plan on disk; then `verify`. Every run has its own
process with one thread; whatever exceeds the limit is stopped and says so. Seconds are of the processor.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

Result = dict[str, Any]
STATED = 2e7
"""Rows beyond which the plain program is not stated: it would fill the memory."""


@dataclass(frozen=True)
class Family:
    """A kind of program by its size: inputs and outputs alike, what they are, and the requirement."""

    what: str
    values: Callable[[int], np.ndarray]
    variables: str
    prior: str
    privacy: str
    epsilon: Fraction

    def weights(self, size: int, even: bool) -> np.ndarray:
        """Whole weights of the inputs."""
        count = len(self.values(size))
        return np.ones(count, dtype=int) if even else np.random.default_rng(1).integers(1, 1000, count)

    def distances(self, size: int) -> np.ndarray:
        """Distances of the values (X, X): what a wrong report costs."""
        points = self.values(size)
        return np.sqrt(np.sum((points[:, None] - points[None]) ** 2, axis=2))

    def pairs(self, size: int) -> np.ndarray:
        """The ordered pairs that are compared (K, 2)."""
        apart = self.distances(size)
        return np.argwhere((apart > 0) & (apart <= 1) if self.what == "chain" else apart > 0)

    def program(self, size: int, even: bool) -> Any:
        """The program in the solvers' form."""
        from privspec.solvers.table_programs import CompleteRatio, PairRatio, TableProgram

        weights, apart = self.weights(size, even), self.distances(size)
        cost = apart * (weights / weights.sum())[:, None]
        pairs = self.pairs(size)
        if self.what == "complete":
            return TableProgram(cost, (CompleteRatio(self.epsilon),))
        if self.what == "delta":
            return TableProgram(cost, (PairRatio(pairs, (self.epsilon,), Fraction(1, 100)),))
        if self.what == "chain":
            return TableProgram(cost, (PairRatio(pairs, (self.epsilon,)),))
        logs = tuple(Fraction(math.floor(apart[a, b] * 2**40), 2**40) for a, b in pairs)
        return TableProgram(cost, (PairRatio(pairs, logs),))

    def spec(self, size: int, even: bool) -> str:
        """The spec of the same program."""
        weights = self.weights(size, even)
        listed = weights.reshape(size, size) if self.what == "grid" else weights
        law = "uniform" if even else f"categorical({listed.tolist()})"
        head = self.variables.format(n=size, last=size - 1)
        return f"{head}\n{self.prior} ~ {law}\nloss:\n  {self.loss}\nprivacy:\n  {self.privacy}\n"

    @property
    def loss(self) -> str:
        """The distance of report and value."""
        return "E[ ||z - x|| ]" if self.what == "grid" else "E[ |z - x| ]"


def line(size: int) -> np.ndarray:
    """0 to size - 1."""
    return np.arange(size, dtype=float)[:, None]


def square(size: int) -> np.ndarray:
    """Points of a square."""
    return np.stack(np.divmod(np.arange(size * size), size), axis=1).astype(float)


ONE = "variables:\n  input x in 0..{last}\n  output z in 0..{last}\nbackground:"
COUNT = (
    "variables:\n  input answers in {{0, 1}}^{last}\n  intermediate x\n  output z in 0..{last}\n"
    "background:\n  x = sum(answers)"
)
FAMILIES = {
    family.what: family
    for family in (
        Family("chain", line, COUNT, "  x", "z is 0.5-DP wrt answers, replacing one record", Fraction(1, 2)),
        Family("complete", line, ONE, "  x", "z is 1-LDP wrt x", Fraction(1)),
        Family(
            "grid",
            square,
            "variables:\n  input x in (1..{n})^2\n  output z in (1..{n})^2\nbackground:",
            "  x",
            "z is 1-metric-DP wrt x, distance euclidean",
            Fraction(1),
        ),
        Family("delta", line, ONE, "  x", "z is (1, 0.01)-LDP wrt x", Fraction(1)),
    )
}
CASES = {
    "chain100": "counts 0..99, neighbours differ by one, absolute loss, eps 1/2, uniform prior",
    "chain100r": "the same with an uneven prior",
    "chain400": "counts 0..399, uniform prior (goal: 20 s)",
    "chain400r": "the same with an uneven prior (goal: 20 s)",
    "complete100": "values 0..99, all pairs neighbours, absolute loss, eps 1, uniform prior",
    "complete100r": "the same with an uneven prior",
    "complete400": "values 0..399, uniform prior (goal: 15 s)",
    "complete400r": "the same with an uneven prior (goal: 15 s)",
    "grid5": "5 x 5 grid, Euclidean metric-DP and loss, eps 1 a step, uniform prior",
    "grid5r": "the same with an uneven prior",
    "grid7": "7 x 7 grid, uniform prior (goal: 5 s)",
    "grid7r": "the same with an uneven prior (goal: 5 s)",
    "grid10": "10 x 10 grid, uniform prior",
    "grid10r": "the same with an uneven prior (goal: 240 s)",
    "delta30": "values 0..29, all pairs, (1, 0.01)-LDP, absolute loss, uniform prior",
}


def parts(case: str) -> tuple[Family, int, bool]:
    """The family, the size, and whether the prior is even."""
    even = not case.endswith("r")
    kind = case.removesuffix("r").rstrip("0123456789")
    return FAMILIES[kind], int(case.removesuffix("r").removeprefix(kind)), even


def ours(case: str) -> Result:
    """The solver, with the exact check."""
    from privspec.solvers.table_programs import violations
    from privspec.solvers.tables import solve_table

    family, size, even = parts(case)
    problem = family.program(size, even)
    start = time.process_time()
    found = solve_table(problem)
    assert not violations(problem, found.exact)
    return {
        "seconds": time.process_time() - start,
        "rows": found.rows,
        "loss": float(found.value),
        "repair": float(found.value) / found.optimum - 1,
    }


def plain(case: str) -> Result:
    """Every pair and output in cvxpy."""
    import cvxpy as cp

    family, size, even = parts(case)
    problem = family.program(size, even)
    pairs, (inputs, outputs) = family.pairs(size), problem.shape
    rows = inputs + len(pairs) * outputs
    if rows > STATED:
        raise SystemExit(f"not stated: {rows:.1e} rows")
    apart = family.distances(size) if family.what == "grid" else np.ones((inputs, inputs))
    first, second = pairs.T
    ratios = np.exp(float(family.epsilon) * apart[first, second])
    start = time.process_time()
    table = cp.Variable(problem.shape, nonneg=True)
    excess = table[first] - cp.multiply(ratios[:, None], table[second])
    constraints = [cp.sum(table, axis=1) == 1]
    if family.what == "delta":
        slack = cp.Variable(excess.shape, nonneg=True)
        constraints += [excess <= slack, cp.sum(slack, axis=1) <= 0.01]
    else:
        constraints += [excess <= 0]
    whole = cp.Problem(cp.Minimize(cp.sum(cp.multiply(problem.cost, table))), constraints)
    stated, took = time.process_time() - start, {}
    for solver in (cp.CLARABEL, cp.HIGHS):
        start = time.process_time()
        whole.solve(solver=solver)
        took[solver] = stated + time.process_time() - start
    fastest = min(took, key=lambda name: took[name])
    return {"seconds": took[fastest], "rows": rows, "loss": float(whole.value), "solver": fastest}


def of_children() -> float:
    """Processor seconds of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def command(case: str) -> Result:
    """`privspec solve`: parse, lower, solve, certify, verify, write."""
    family, size, even = parts(case)
    with tempfile.TemporaryDirectory() as folder:
        spec, plan = Path(folder, "case.priv"), Path(folder, "case.json")
        spec.write_text(family.spec(size, even), encoding="utf-8")
        start = of_children()
        privspec = Path(sys.executable).with_name("privspec")
        subprocess.run([privspec, "solve", str(spec), "-q", "-o", str(plan)], check=True)
        solved = of_children()
        loss = json.loads(plan.read_text(encoding="utf-8"))["loss"]
        subprocess.run([privspec, "verify", str(plan), "-q"], check=True)
        return {
            "seconds": solved - start,
            "verify": of_children() - solved,
            "loss": loss["value"],
            "gap": loss["relative_gap"],
            "bytes": plan.stat().st_size,
        }


WAYS = {"ours": ours, "plain": plain, "command": command}


def measured(case: str, way: str, limit: float) -> str:
    """One run in its own process, as a line of the table."""
    called = [sys.executable, __file__, "--run", case, way]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(called, capture_output=True, text=True, timeout=limit, env=environment, check=False)
    except subprocess.TimeoutExpired:
        return f"{case:12} {way:8} stopped after {limit:.0f} s"
    if done.returncode:
        return f"{case:12} {way:8} {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
    result = json.loads(done.stdout.splitlines()[-1])

    def cell(key: str, form: str, width: int) -> str:
        return format(result[key], form) if key in result else f"{'-':>{width}}"

    numbers = (("seconds", "8.2f", 8), ("work", "8.2f", 8), ("rows", "10d", 10), ("loss", "14.9f", 14))
    proof = (("gap", "9.1e", 9), ("repair", "9.1e", 9), ("memory", "7.0f", 7), ("verify", "8.2f", 8))
    return f"{case:12} {way:8} " + " ".join(cell(*column) for column in (*numbers, *proof))


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
        result = WAYS[way](case)
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        whose = used[way == "command"]
        work = {"work": whose.ru_utime + whose.ru_stime, "memory": whose.ru_maxrss / 1024}
        print(json.dumps(result | work))
        return
    head = f"{'seconds':>8} {'work':>8} {'rows':>10} {'loss':>14} {'gap':>9} {'repair':>9} {'MiB':>7} {'verify':>8}"
    print(f"{'case':12} {'way':8} {head}")
    for case in arguments.cases.split(","):
        for way in (arguments.only,) if arguments.only else WAYS:
            print(measured(case, way, arguments.limit), flush=True)
    print("\nseconds: of the processor; repair: loss of exactness")
    print("work: with starting up and, of `plain`, with the slower of both solvers")
    for case in arguments.cases.split(","):
        print(f"{case}: {CASES.get(case, '')}")


if __name__ == "__main__":
    main()
