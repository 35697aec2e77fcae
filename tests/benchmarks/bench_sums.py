"""What a sum over many people takes: from the spec to a release and its pages, and with every number laid out.

    python tests/benchmarks/bench_sums.py [--sizes 256,1000,100000,1000000] [--laid-out 1000]

Workload: the sum of n numbers in [0, 1] and of the first half of them, replacing one entry, (1, 1e-6)-DP, Gaussian
noise. Times are processor seconds of one process, stage by stage; memory is the most that it held. Sizes up to
`--laid-out` are run once more with a column for each number, as sums over few numbers are.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

from privspec.api import Problem
from privspec.plan import verify
from privspec.problem import linear_affine

SPEC = """variables:
  input x in [0, 1]^{n}
  intermediate y
  output O
background:
  y = [sum(x), sum(x[i] for i in 1..{half})]
loss:
  E[ ||O - y||^2 ]
privacy:
  O is (1, 1e-6)-DP wrt x, replacing one entry
options:
  noise family gaussian
"""


def one(n: int, laid_out: bool) -> str:
    """Seconds to solve, to verify, to run and to explain; megabytes; size of the plan in kilobytes; the loss."""
    linear_affine.FROM = n + 1 if laid_out else 2
    times, text = [time.process_time()], SPEC.format(n=n, half=n // 2)
    plan = Problem(text, {}).solve()
    times.append(time.process_time())
    assert verify(plan.to_json()).ok  # a plan that was solved here is known already
    times.append(time.process_time())
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        path = Path(folder) / "x.csv"
        path.write_text("x\n" + "\n".join(map(str, np.random.default_rng(n).uniform(0, 1, n).round(6))) + "\n")
        writing = time.process_time() - times[-1]
        plan.run({"x": path}, ledger=Path(folder) / "x.ledger.db", new_ledger=True)
    times.append(time.process_time())
    times[:-1] = [stage + writing for stage in times[:-1]]
    plan.explain("public")
    times.append(time.process_time())
    stages = " ".join(f"{b - a:9.2f}" for a, b in pairwise(times))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    how = "laid out" if laid_out else "classes"
    return f"{n:9} {how:>9} {stages} {memory:7.0f} {len(plan.to_json()) / 1e3:8.1f} {plan.loss.value:12.6f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="256,1000,100000,1000000")
    parser.add_argument("--laid-out", type=int, default=1000)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(one(int(given.one[0]), given.one[1] == "True"))
        sys.exit()
    stages = " ".join(f"{name:>9}" for name in ("solve s", "verify s", "run s", "pages s"))
    print(f"{'n':>9} {'':>9} {stages} {'MB':>7} {'plan kB':>8} {'loss':>12}")
    for size in map(int, given.sizes.split(",")):
        for way in (False, True) if size <= given.laid_out else (False,):
            # each in a process of its own: memory is the most that it ever held
            subprocess.run([sys.executable, __file__, "--one", str(size), str(way)], check=True)
