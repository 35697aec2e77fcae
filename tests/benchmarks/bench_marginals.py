"""Tables of counts at any size: from the spec to a verified plan and a release, beside what a user would take instead.

    python tests/benchmarks/bench_marginals.py [--rows 10000] [--no-dense]

Ours: processor seconds of one process to solve (bound included), to verify with the kernel, and to release from rows;
the most memory held; root mean squared error of a number at mu 1, and the gap to the certified bound. Beside: the
closed form of ResidualPlanner (Xiao, He, Zhang & Kifer 2023), written here again in doubles, no bound, no noise; of the
columns in order the fixed bases of ResidualPlanner+ as the paper states their loss; and the same program through cvxpy
on every cell for the smallest table. The last line fits how seconds grow with the sets of columns.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from itertools import combinations
from math import log, prod, sqrt

import numpy as np

ADULT = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
WORK = {
    "8 x 8": ((8, 8), "up_to = 2"),
    "1,700 cells": ((85, 2, 5, 2), "up_to = 2"),
    "5,950 cells": ((85, 7, 5, 2), "up_to = 2"),
    "Adult, 2-way": (ADULT, "ways = {2}"),
    "Adult, 3-way": (ADULT, "ways = {3}"),
    "10^6": ((10,) * 6, "ways = {0, 1, 2, 3}"),
    "10^10": ((10,) * 10, "ways = {0, 1, 2, 3}"),
    "10^30, 3-way": ((10,) * 30, "up_to = 3"),
    "prefix 16 x 5 x 3": ((16, 5, 3), "up_to = 3, cumulative = {c0}"),
    "range 16 x 16": ((16, 16), "up_to = 2, ranges = {c0}"),
    "Adult, age running": (ADULT, "up_to = 2, cumulative = {c0}"),
}
PLUS = {"prefix 16 x 5 x 3": 2429.92, "range 16 x 16": 10066.7}
"""What ResidualPlanner+ (arXiv 2305.08175v4) reaches, as measured; it has fixed bases along columns in order."""
CELLS = 64
"""Cells up to which cvxpy is asked."""
SPEC = """variables:
  input t in table({columns})
  intermediate y
  output O
background:
  y = marginals(t, {asked})
loss:
  E[ ||O - y||^2 ]
privacy:
  O is 1-GDP wrt t, adding or removing one record
"""


def ways_of(asked: str, count: int) -> list[int]:
    """How many columns the tables of a workload are by."""
    if asked.startswith("up_to"):
        return list(range(1, int(asked.split()[2].rstrip(",")) + 1))
    return [int(word) for word in asked[asked.index("{") + 1 : asked.index("}")].split(",")]


def peer(sizes: tuple[int, ...], ways: list[int]) -> float:
    """The loss of ResidualPlanner for the sum of variances: (sum sqrt(p v))^2, by subsets of columns."""
    costs: dict[tuple[int, ...], float] = {}
    for k in ways:
        for table in combinations(range(len(sizes)), k):
            for own in (s for j in range(k + 1) for s in combinations(table, j)):
                spread = prod(sizes[i] for i in table if i not in own)
                costs[own] = costs.get(own, 0.0) + prod(sizes[i] - 1 for i in own) / spread
    return sum(sqrt(cost * prod((sizes[i] - 1) / sizes[i] for i in own)) for own, cost in costs.items()) ** 2


def cells_by_cvxpy(sizes: tuple[int, ...], ways: list[int]) -> float:
    """The same program over every cell: min tr(V X^-1), X_ii <= 1."""
    import cvxpy

    n = prod(sizes)
    gram = np.zeros((n, n))
    for k in ways:
        for table in combinations(range(len(sizes)), k):
            own = np.eye(1)
            for i, size in enumerate(sizes):
                own = np.kron(own, np.eye(size) if i in table else np.ones((size, size)))
            gram += own
    values, vectors = np.linalg.eigh(gram)
    root = vectors[:, values > 1e-9] * np.sqrt(values[values > 1e-9])
    x = cvxpy.Variable((n, n), PSD=True)
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.matrix_frac(root, x)), [cvxpy.diag(x) <= 1])
    return float(problem.solve(solver=cvxpy.SCS, eps=1e-6))


def ours(name: str, rows: int) -> dict[str, float]:
    """Seconds to solve, verify and release; megabytes; loss, gap, numbers and sets of columns."""
    from privspec.api import Problem
    from privspec.execute.family import RunContext, mechanism_of
    from privspec.noise.samplers import SystemRandomness
    from privspec.plan import verify
    from privspec.problem import marginals

    marginals.FROM = 2
    sizes, asked = WORK[name]
    columns = ", ".join(f"c{i} in 0..{n - 1}" for i, n in enumerate(sizes))
    times = [time.process_time()]
    plan = Problem(SPEC.format(columns=columns, asked=asked)).solve()
    times.append(time.process_time())
    assert verify(plan.to_json()).ok  # a plan that was solved here is known already
    times.append(time.process_time())
    document = plan.document
    (block,) = document["problem"]["blocks"]
    (size,) = block["released"][0]["shape"]
    if size <= 10**6:
        rng = np.random.default_rng(1)
        data = {f"c{i}": rng.integers(0, n, rows) for i, n in enumerate(sizes)}
        mechanism_of(document).read({"t": data}, RunContext()).draw(SystemRandomness())
    times.append(time.process_time())
    return {
        "solve": times[1] - times[0],
        "verify": times[2] - times[1],
        "release": times[3] - times[2] if size <= 10**6 else float("nan"),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "loss": plan.loss.value,
        "gap": plan.loss.relative_gap,
        "numbers": size,
        "sets": len(document["mechanism"].get("subsets", document["mechanism"].get("parts"))),
    }


def main() -> None:
    """One line for each workload."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--no-dense", action="store_true", help="without cvxpy")
    parser.add_argument("--only", choices=WORK)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(ours(given.one, given.rows)))
        return
    heads = ("solve s", "verify s", "release s", "MB", "error", "gap", "beside s", "beside", "cvxpy s", "cvxpy")
    print(f"{'':<20}" + "".join(f"{head:>11}" for head in heads))
    grown = []
    for name, (sizes, asked) in WORK.items():
        if given.only not in (None, name):
            continue
        # each in a process of its own: memory is the most that it ever held
        done = subprocess.run(
            [sys.executable, __file__, "--one", name, "--rows", str(given.rows)], check=True, capture_output=True
        )
        found = json.loads(done.stdout)
        plain, started = "cumulative" not in asked and "ranges" not in asked, time.process_time()
        beside = peer(sizes, ways_of(asked, len(sizes))) if plain else PLUS.get(name, float("nan"))
        took, roots = time.process_time() - started, found["numbers"]
        dense, seconds = float("nan"), float("nan")
        if plain and prod(sizes) <= CELLS and not given.no_dense:
            started = time.process_time()
            dense = cells_by_cvxpy(sizes, ways_of(asked, len(sizes)))
            seconds = time.process_time() - started
        figures = [found["solve"], found["verify"], found["release"], found["memory"], sqrt(found["loss"] / roots)]
        figures += [found["gap"], took, sqrt(beside / roots), seconds, sqrt(dense / roots)]
        print(f"{name:<20}" + "".join(f"{value:>11.4g}" for value in figures), flush=True)
        if plain:
            grown.append((found["sets"], found["solve"]))
    large = [(log(sets), log(seconds)) for sets, seconds in grown if sets > 100]
    if len(large) > 2:
        slope = np.polyfit(*np.array(large).T, 1)[0]
        print(f"solve grows with the sets of columns to the power {slope:.2f} (beyond 100 of them)")


if __name__ == "__main__":
    main()
