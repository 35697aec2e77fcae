"""A large election from the spec to the winner: seconds for solving, reading and drawing, and other ways to read.

    python tests/benchmarks/bench_voting.py [--voters 1000000] [--data FOLDER]

`together` is what an election takes once everything is imported: solve, read a file of first choices, draw. A line
before them gives the same for a process of its own, imports included. Further lines read as many rankings, and files
of counts. One thread for linear algebra.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import gzip
import subprocess
import sys
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
  input vote[voter] in A
  output O in A
background:
  vote ~ uniform
loss:
  {loss}
privacy:
  O is 1-DP wrt vote, {relation}
options:
  noise family {rule}
"""
WORST = "worst[ total_variation(O, random_dictator(vote)) ]"
MEAN = "E[ mean(mismatch(O, vote[voter]) for voter) ]"
CASES = (
    ("dictator", "adding or removing one voter", WORST),
    ("dictator", "replacing one voter", WORST),
    ("local_dictator", "replacing one voter", WORST),
    ("exponential", "replacing one voter", MEAN),
    ("permute_and_flip", "replacing one voter", MEAN),
)
ALONE = (
    "import privspec, sys; privspec.load(sys.argv[1]).solve().run({'vote': sys.argv[2]}, sys.argv[3], new_ledger=True)"
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


def write_spec(folder: Path, voters: int, case: tuple[str, str, str]) -> Path:
    """The spec of one case."""
    rule, relation, loss = case
    text = SPEC.format(alternatives=", ".join(ALTERNATIVES), voters=voters, relation=relation, rule=rule, loss=loss)
    (folder / "election.priv").write_text(text)
    return folder / "election.priv"


def election(spec: Path, ballots: Path) -> str:
    """Seconds of each step, in words."""
    import privspec
    from privspec.core.diagnostics import PrivspecError
    from privspec.execute.family import Circumstances, mechanism_of
    from privspec.noise.samplers import SystemRandomness
    from privspec.verification import verify

    try:
        solving, plan = timed(lambda: privspec.load(spec).solve())
    except PrivspecError as error:
        return f"not solved: {error}"
    mechanism = mechanism_of(plan.document)
    circumstances = Circumstances(plan.model())
    reading, secret = timed(lambda: mechanism.read({"vote": ballots}, circumstances))
    drawing, _ = timed(lambda: secret.draw(SystemRandomness()))
    checking, report = timed(lambda: verify(plan.to_json()))
    steps = {"solve": solving, "read": reading, "draw": drawing, "together": solving + reading + drawing}
    return "  ".join(f"{name} {took:.3f}" for name, took in {**steps, "verify": checking}.items()) + (
        "" if report.ok else "  NOT VERIFIED"
    )


def main() -> None:
    """Print the times."""
    from privspec.execute.ballot_files import Form
    from privspec.execute.ballots import read_ballots

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--voters", type=int, default=1_000_000)
    parser.add_argument("--data", type=Path, default=Path("/work/shared/data"))
    voters, data = parser.parse_args().voters, parser.parse_args().data
    with tempfile.TemporaryDirectory() as name:
        files = choices(Path(name), voters)
        print(f"{voters:,} first choices of {len(ALTERNATIVES)} alternatives, seconds")
        spec = write_spec(Path(name), voters, CASES[0])
        command = [sys.executable, "-c", ALONE, str(spec), str(files["choices.csv"]), str(Path(name) / "ledger.db")]
        print(f"  in a process of its own {timed(lambda: subprocess.run(command, check=True))[0]:.3f}", flush=True)
        election(write_spec(Path(name), 1000, CASES[0]), files["counts.csv"])
        for case in CASES:
            found = election(write_spec(Path(name), voters, case), files["choices.csv"])
            print(f"  {case[0]:<17} {case[1]:<29} {found}", flush=True)
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
