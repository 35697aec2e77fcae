"""A large election from the spec to the winner: seconds for solving, reading and drawing, and other ways to read.

    python tests/benchmarks/bench_voting.py [--voters 1000000] [--data FOLDER]

`together` is what a run takes once Python is up: solve, read a file of first choices, draw. Further lines read the
same number of rankings, and files of counts. Everything happens in one process with one thread for linear algebra.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import gzip
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

ALTERNATIVES = ("ann", "bob", "cy", "di", "eve", "fred", "gus", "hal", "ida", "jo")
SPEC = """spec election
parameters:
  A = {{{alternatives}}}
parties:
  voter in 1..{voters}
variables:
  input vote[voter] in {domain}
  output O in A
loss:
  worst[ total_variation(O, random_dictator(vote)) ]
privacy:
  O is 1-DP wrt vote, {relation}
options:
  noise family {rule}
"""
CASES = (
    ("dictator", "adding or removing one voter"),
    ("dictator", "replacing one voter"),
    ("exponential", "replacing one voter"),
    ("permute_and_flip", "replacing one voter"),
    ("local_dictator", "replacing one voter"),
)


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what came of it."""
    began = time.perf_counter()
    found = action()
    return time.perf_counter() - began, found


def choices(folder: Path, voters: int) -> dict[str, Path]:
    """The same first choices in several files: the alternatives follow Zipf's law."""
    weights = 1 / np.arange(1, len(ALTERNATIVES) + 1)
    rng = np.random.default_rng(1)
    drawn = np.array(ALTERNATIVES)[rng.choice(len(ALTERNATIVES), voters, p=weights / weights.sum())]
    frame = pl.DataFrame({"choice": drawn})
    frame.write_csv(folder / "choices.csv")
    frame.write_parquet(folder / "choices.parquet")
    (folder / "choices.csv.gz").write_bytes(gzip.compress((folder / "choices.csv").read_bytes(), 1))
    frame.with_row_index("voter", 1).write_csv(folder / "named.csv")
    frame.group_by("choice").len("count").write_csv(folder / "counts.csv")
    return {path.name: path for path in sorted(folder.iterdir())}


def rankings(folder: Path, voters: int) -> dict[str, Path]:
    """Complete rankings, each about as likely as any other."""
    rng = np.random.default_rng(2)
    order = np.argsort(rng.random((voters, len(ALTERNATIVES))), axis=1)
    columns = [pl.Series(str(j), np.array(ALTERNATIVES)[order[:, j]]) for j in range(len(ALTERNATIVES))]
    frame = pl.DataFrame(columns).select(pl.concat_str(pl.all(), separator=" ").alias("ranking"))
    frame.write_csv(folder / "rankings.csv")
    frame.write_parquet(folder / "rankings.parquet")
    return {name: folder / name for name in ("rankings.csv", "rankings.parquet")}


def election(voters: int, rule: str, relation: str, ballots: Path) -> dict[str, float]:
    """Seconds of each step."""
    import privspec
    from privspec.execute.family import Circumstances, mechanism_of
    from privspec.execute.randomness import SystemRandomness

    text = SPEC.format(alternatives=", ".join(ALTERNATIVES), voters=voters, domain="A", relation=relation, rule=rule)
    folder = ballots.parent
    (folder / "election.priv").write_text(text)
    solving, plan = timed(lambda: privspec.load(folder / "election.priv").solve())
    if not plan.feasible:
        return {"solve": solving}
    mechanism = mechanism_of(plan.document)
    circumstances = Circumstances(plan.model())
    reading, secret = timed(lambda: mechanism.read({"vote": ballots}, circumstances))
    drawing, _ = timed(lambda: secret.draw(SystemRandomness()))
    checking, report = timed(plan.verify)
    assert report.ok, "the plan is not verified"
    return {
        "solve": solving,
        "read": reading,
        "draw": drawing,
        "together": solving + reading + drawing,
        "verify": checking,
    }


def main() -> None:
    """Print the times."""
    from privspec.execute.ballots.form import Form
    from privspec.execute.ballots.reading import read_ballots

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--voters", type=int, default=1_000_000)
    parser.add_argument("--data", type=Path, default=Path("/work/shared/data"))
    voters, data = parser.parse_args().voters, parser.parse_args().data
    with tempfile.TemporaryDirectory() as name:
        files = choices(Path(name), voters)
        print(f"{voters:,} first choices of {len(ALTERNATIVES)} alternatives, seconds")
        for rule, relation in CASES:
            steps = election(voters, rule, relation, files["choices.csv"])
            print(f"  {rule:<17} {relation:<29} " + "  ".join(f"{k} {v:.3f}" for k, v in steps.items()), flush=True)
        print("reading, seconds")
        first, complete = Form("vote", "voter", ALTERNATIVES), len(ALTERNATIVES)
        forms = {"first choices": first, "rankings": Form("vote", "voter", ALTERNATIVES, complete, complete)}
        for file, path in files.items():
            print(f"  {file:<42} {timed(lambda path=path: read_ballots(first, path))[0]:.3f}")
        for file, path in rankings(Path(name), voters).items():
            for what, form in forms.items():
                took = timed(lambda path=path, form=form: read_ballots(form, path))[0]
                print(f"  {f'{file} as {what}':<42} {took:.3f}")
        for file, count in (("preflib_irish_dublin_west_2002.csv.gz", 9), ("preflib_sushi_5000x10.csv.gz", 10)):
            if (data / file).is_file():
                form = Form("vote", "voter", tuple(f"a{i}" for i in range(count)), 1, count)
                print(f"  {file:<42} {timed(lambda form=form, file=file: read_ballots(form, data / file))[0]:.3f}")


if __name__ == "__main__":
    main()
