"""Sums, a count and a vote under one line: the whole command beside plain programs at sampled splits.

    python tests/benchmarks/bench_systems.py [--sums 16] [--people 30] [--splits 1000]

`ours` is `privspec solve` from text to a verified plan: the split is found, and its bound holds of every split. `plain`
is what a user would do instead: for each of so many random splits of the mu and the two epsilons, scaled to what the
line allows by the same composition in doubles, the table of the count and that of the vote as linear programs in
cvxpy, and the closed form of Gaussian noise. A few splits are timed, the rest is their mean times the number; the best
loss is of those that were timed. CPU seconds, one thread.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from math import exp, log
from pathlib import Path
from typing import Any

import cvxpy
import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

cp: Any = cvxpy
EPSILON, DELTA, TIMED = 1.0, 1e-6, 10
SPEC = """\
spec sums
parties: person in 1..{people}
variables:
  input hours[person] in [0, 1]^{sums}
  input works[person] in {{0, 1}}
  input vote[person] in {{north, south}}
  intermediate winner
  intermediate said
  output total
  output working in 0..{people}
  output seat in {{north, south}}
background:
  said = sum(works)
  said ~ uniform
  winner = random_dictator(vote)
loss: 0.003 * E[ ||total - sum(hours)||^2 ] + 4 * E[ |working - said| ] + 20 * worst[ total_variation(seat, winner) ]
privacy:
  all outputs are ({epsilon}, {delta})-DP wrt all inputs, replacing one person
"""


def scaled(direction: np.ndarray) -> np.ndarray:
    """The mu and the two epsilons in a direction that have delta together (randomised responses beside noise)."""
    signs = np.array([(a, b) for a in (1.0, -1.0) for b in (1.0, -1.0)])

    def excess(scale: float) -> float:
        mu, pure = scale * direction[0], scale * direction[1:]
        chances, rest = np.prod(1 / (1 + np.exp(-signs * pure)), axis=1), EPSILON - signs @ pure
        near, far = ndtr(mu / 2 - rest / mu), ndtr(-mu / 2 - rest / mu)
        return log(max(float(chances @ (near - np.exp(rest) * far)), 1e-300) / DELTA)

    return direction * float(brentq(excess, 1e-3, 1e2))


def table_loss(costs: np.ndarray, target: np.ndarray | None, epsilon: float) -> float:
    """The least mean cost of a table whose neighbouring rows keep to e^epsilon, or its largest distance from a law."""
    law = cp.Variable((len(costs), costs.shape[1]), nonneg=True)
    lines = [cp.sum(law, axis=1) == 1, law[1:] <= exp(epsilon) * law[:-1], law[:-1] <= exp(epsilon) * law[1:]]
    loss = cp.sum(cp.multiply(costs, law)) if target is None else cp.max(cp.sum(cp.pos(law - target), axis=1))
    return float(cp.Problem(cp.Minimize(loss), lines).solve(solver="HIGHS"))


def plain(sums: int, people: int, splits: int) -> dict[str, float]:
    """The best loss of a few random splits, and how long all of them would take."""
    counts, begun = np.arange(people + 1), time.process_time()
    costs = np.abs(counts[:, None] - counts) / len(counts)
    law = np.column_stack([counts, people - counts]) / people
    losses = []
    for direction in np.random.default_rng(1).dirichlet([1, 1, 1], TIMED):
        mu, first, second = scaled(direction)
        noise = 0.003 * sums * sums / mu**2  # each of them moves by 1 at once: |d|^2 = sums
        losses.append(noise + 4 * table_loss(costs, None, first) + 20 * table_loss(0 * law, law, second))
    return {"seconds": (time.process_time() - begun) / TIMED * splits, "loss": min(losses)}


def ours(sums: int, people: int) -> dict[str, float]:
    """From text to a verified plan on disk."""
    from privspec.core.spans import Source
    from privspec.pipeline import Request, solve
    from privspec.plan import verify

    text, begun = SPEC.format(sums=sums, people=people, epsilon=EPSILON, delta=DELTA), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        plan = solve(Request(Source("sums.priv", text)))
        plan.write(Path(folder) / "plan.json")
    found = {"seconds": time.process_time() - begun, "loss": plan.loss.value, "bound": plan.loss.lower_bound or 0.0}
    begun = time.process_time()
    assert verify(plan.to_json()).ok  # a plan that was solved here is known already
    return found | {"verify": time.process_time() - begun}


def main() -> None:
    """Both sides, one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("sums", 16), ("people", 30), ("splits", 1000)):
        parser.add_argument(f"--{name}", type=int, default=value)
    asked = parser.parse_args()
    for name, found in (
        ("ours", ours(asked.sums, asked.people)),
        (f"plain x {asked.splits}", plain(asked.sums, asked.people, asked.splits)),
    ):
        print(f"{name:12}", "  ".join(f"{key} {value:.6g}" for key, value in found.items()))


if __name__ == "__main__":
    main()
