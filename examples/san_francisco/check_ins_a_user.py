"""People, not rows: how many check-ins of each user to count. One half of the users is public, the other is counted.

    python examples/san_francisco/check_ins_a_user.py [--epsilon 1 0.02] [--data FILE]

The public half says how many check-ins users have, and when; `check_ins_a_user.priv` chooses k by it. The table shows
the error that is predicted for each k, and the true one for the other half: noise, and what is cut of their check-ins.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
from check_ins import DATA
from numpy.typing import NDArray

import privspec
from privspec.api import Problem

SPEC = Path(__file__).with_suffix(".priv")
PARTS = ("night", "morning", "afternoon", "evening")
WEST_OF_GREENWICH = 8
"""Hours by which San Francisco is behind, summer time aside."""


@dataclass(frozen=True, eq=False, slots=True)
class Half:
    """How many check-ins each user of one half has in each part of the day (users, 4)."""

    counts: NDArray[np.int64]

    def cut(self, most: int) -> float:
        """The expected squared error by what is cut, over the uniform choice of so many check-ins of each user."""
        total = self.counts.sum(axis=1)
        shares = self.counts / total[:, None]
        over = np.maximum(total - most, 0)
        bias = (over[:, None] * shares).sum(axis=0)
        drawn = most * (total - most) / np.maximum(total - 1, 1) * (total > most)
        return float(bias @ bias + (drawn[:, None] * shares * (1 - shares)).sum())


def read(path: Path) -> tuple[Half, Half]:
    """The public half, users with an even number, and the other."""
    table = pl.read_csv(path).select(
        "user", ((pl.col("time_utc").str.slice(11, 2).cast(pl.Int64) - WEST_OF_GREENWICH) % 24 // 6).alias("part")
    )
    halves = []
    for odd in (0, 1):
        half = table.filter(pl.col("user") % 2 == odd)
        users, rows = np.unique(half["user"].to_numpy(), return_inverse=True)
        counts = np.zeros((len(users), len(PARTS)), dtype=np.int64)
        np.add.at(counts, (rows, half["part"].to_numpy()), 1)
        halves.append(Half(counts))
    return halves[0], halves[1]


@dataclass(frozen=True, eq=False, slots=True)
class Found:
    """A plan, and for each k in turn the noise, and the error that is predicted; `chosen` of the plan."""

    plan: privspec.Plan
    chosen: int
    noise: NDArray[np.float64]
    predicted: NDArray[np.float64]


def solved(public: Half, epsilon: float) -> Found:
    """The best k by what is public."""
    records = sorted(public.counts.sum(axis=1).tolist())
    given = {"epsilon": epsilon, "records": records, "times": public.counts.sum(axis=0).tolist()}
    plan = Problem(SPEC.read_text("utf-8"), given).solve()
    design = json.loads(plan.to_json())["design"]
    noise = np.array([one["loss"]["value"] for one in design["outcomes"]])
    lost = [float(Fraction(one["cut"]["lost"])) for one in design["problem"]["alternatives"]]
    return Found(plan, design["chosen"] + 1, noise, noise + lost)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table for each epsilon."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 0.02])
    parser.add_argument("--data", type=Path, default=DATA)
    said = parser.parse_args(arguments)
    if not said.data.is_file():
        print(f"the check-ins are not at {said.data}: nothing is done", file=sys.stderr)
        return 0
    public, other = read(said.data)
    for epsilon in said.epsilon:
        found = solved(public, epsilon)
        true = found.noise + [other.cut(k) for k in range(1, len(found.noise) + 1)]
        print(f"\nepsilon {epsilon:g}: root of the summed squared errors of {len(PARTS)} counts\n")
        print("| k | noise | predicted | true, other half |\n|---|---|---|---|")
        for k, (noise, predicted, own) in enumerate(zip(found.noise, found.predicted, true, strict=True), 1):
            mark = " (chosen)" if k == found.chosen else ""
            print(f"| {k}{mark} | {noise**0.5:,.0f} | {predicted**0.5:,.0f} | {own**0.5:,.0f} |")
        ratio = true[found.chosen - 1] / true.min()
        best = int(true.argmin()) + 1
        print(f"\nchosen k = {found.chosen}; squared error {ratio:.4f} times that of the best, k = {best}")
        print(f"verified: {found.plan.verify().ok}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
