"""How long the kernel takes to judge plans of prefix sums, and what solving them took.

    python tests/benchmarks/bench_kernel.py [--sizes 64,256,1024]

Workload: n prefix sums, replacing one entry of [0, 1]^n, mu = 1, expected squared error. Times are processor seconds.
"""

from __future__ import annotations

import argparse
import json
import time

from privspec.core.spans import Source
from privspec.families.decision import Decided
from privspec.families.family import Settings
from privspec.families.gaussian.family import Linear
from privspec.families.gaussian.problem import LinearSystem, lower
from privspec.kernel import judge
from privspec.pipeline import Request, check

SPEC = """spec prefix
variables:
  input x in [0, 1]^{n}
  intermediate y
  output O
background:
  y = prefix_sums(x)
loss:
  E[ ||O - y||^2 ]
privacy:
  O is 1-GDP wrt x, replacing one entry
"""


def measured(n: int) -> dict[str, float]:
    """One size: gap, seconds to solve, to write the plan, to judge it, its megabytes, and whether it holds."""
    model = check(Request(Source("prefix.priv", SPEC.format(n=n))))
    started = time.process_time()
    system = lower(model)
    assert isinstance(system, LinearSystem)
    decision = Linear().decide(model, system, Settings(alternatives=False))
    assert isinstance(decision, Decided)
    solved = time.process_time()
    text = json.dumps(decision.document())
    written = time.process_time()
    report = judge(text)
    judged = time.process_time()
    gap = json.loads(text)["loss"]["relative_gap"]
    times = {"solve": solved - started, "write": written - solved, "judge": judged - written}
    return {"gap": gap, **times, "size": len(text) / 1e6, "ok": report.ok}


def row(n: int) -> str:
    """The same as a line."""
    found = measured(n)
    times = f"{found['solve']:8.1f} {found['write']:8.1f} {found['judge']:8.2f}"
    return f"{n:6} {found['gap']:9.1e} {times} {found['size']:7.1f} {'holds' if found['ok'] else 'FAILS'}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="64,256,1024")
    print(f"{'n':>6} {'gap':>9} {'solve s':>8} {'write s':>8} {'judge s':>8} {'MB':>7}")
    for size in parser.parse_args().sizes.split(","):
        print(row(int(size)), flush=True)
