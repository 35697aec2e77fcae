"""A large election from the spec to the winner: seconds for solving, reading and drawing, and other ways to read.

    python tests/benchmarks/bench_voting.py [--voters 1000000] [--data FOLDER] [--crowd 400000]

`together` is what an election takes once everything is imported: solve, read a file of first choices, draw. A line
before them gives the same for a process of its own, imports included. Further lines read as many rankings, and files
of counts. The first lines are whole commands, in processor seconds and megabytes: `solve` of the crowds' templates and
of a large crowd (10 decisions, 23 features) that adds noise at each voter, its `run` on Parquet, and local reports: as
many rows as voters, beside reading, drawing and writing those in numpy and polars (no release). One thread for linear
algebra.
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
    from privspec.execute.family import RunContext, mechanism_of
    from privspec.noise.samplers import SystemRandomness
    from privspec.plan import verify

    try:
        solving, plan = timed(lambda: privspec.load(spec).solve())
    except PrivspecError as error:
        return f"not solved: {error}"
    mechanism = mechanism_of(plan.document)
    circumstances = RunContext(plan.model())
    reading, secret = timed(lambda: mechanism.read({"vote": ballots}, circumstances))
    drawing, _ = timed(lambda: secret.draw(SystemRandomness()))
    checking, report = timed(lambda: verify(plan.to_json()))
    steps = {"solve": solving, "read": reading, "draw": drawing, "together": solving + reading + drawing}
    return "  ".join(f"{name} {took:.3f}" for name, took in {**steps, "verify": checking}.items()) + (
        "" if report.ok else "  NOT VERIFIED"
    )


def command(what: str, *arguments: str | Path) -> None:
    """Print what a `privspec` command takes."""
    called = [str(Path(sys.executable).with_name("privspec")), *map(str, arguments)]
    with subprocess.Popen(called, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    failed = f"  FAILED ({process.returncode})" if process.returncode else ""
    print(f"  {what:<58} {used.ru_utime + used.ru_stime:8.2f} s {used.ru_maxrss / 1024:7.0f} MB{failed}", flush=True)


def decisions(path: Path, voters: int) -> None:
    """Ten decisions of each voter between alternatives of 23 small counts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(1), None
    for start in range(0, voters, 20_000):
        some = min(20_000, voters - start)
        records = rng.integers(-3, 4, (some, 10, 23), dtype=np.int8)
        tastes = rng.standard_normal((some, 23)) + np.linspace(-1, 1, 23)
        chosen = np.where(np.einsum("vnd,vd->vn", records, tastes)[..., None] > 0, records, -records).reshape(-1, 23)
        keys = np.repeat(np.arange(start + 1, start + some + 1, dtype=np.int32), 10)
        table = pa.table({"voter": keys, **{f"V_{j + 1}": chosen[:, j] for j in range(23)}})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def commands(folder: Path, voters: int, crowd: int) -> None:
    """Whole commands about crowds and reports."""
    print("whole commands, start-up included")
    specs = Path(__file__).parents[2] / "specs"
    for name in ("crowd_vldp", "crowd_rlcp"):
        command(f"solve {name}", "solve", name, "-o", folder / f"{name}.json")
    text = (specs / "crowd_vldp.priv").read_text(encoding="utf-8")
    for old, new in (("N = 50 ", f"N = {crowd} "), ("n = 50 ", "n = 10 "), ("d = 10 ", "d = 23 ")):
        text = text.replace(old, new)
    (folder / "crowd.priv").write_text(text, encoding="utf-8")
    command(f"solve, {crowd:,} voters", "solve", folder / "crowd.priv", "-o", folder / "crowd.json")
    decisions(folder / "crowd.parquet", crowd)
    given = ("--new-ledger", "-o")
    source = f"V={folder / 'crowd.parquet'}"
    rows, released = f"run, {crowd:,} voters", folder / "crowd.csv"
    command(rows, "run", folder / "crowd.json", "--input", source, *given, released)
    answers = np.array(["car", "train", "bus", "bicycle", "foot", "other"])
    rng = np.random.default_rng(1)
    pl.DataFrame({"answer": answers[rng.integers(0, 6, voters)]}).write_csv(folder / "answers.csv")
    command("solve frequency_survey", "solve", "frequency_survey", "-o", folder / "survey.json")
    source = f"answer={folder / 'answers.csv'}"
    command(
        f"run, {voters:,} reports", "run", folder / "survey.json", "--input", source, *given, folder / "reports.csv"
    )
    began = time.process_time()
    read = pl.read_csv(folder / "answers.csv")["answer"].to_numpy()
    lies = rng.random(voters) > np.e / (np.e + 5)
    pl.DataFrame({"report": np.where(lies, answers[rng.integers(0, 6, voters)], read)}).write_csv(folder / "plain.csv")
    print(f"  {'the same in numpy and polars, inexact, no ledger':<58} {time.process_time() - began:8.2f} s")


def main() -> None:
    """Print the times."""
    from privspec.execute.ballots import Form, read_ballots

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--voters", type=int, default=1_000_000)
    parser.add_argument("--data", type=Path, default=Path("/work/shared/data"))
    parser.add_argument("--crowd", type=int, default=400_000)
    voters, data = parser.parse_args().voters, parser.parse_args().data
    with tempfile.TemporaryDirectory() as name:
        commands(Path(name), voters, parser.parse_args().crowd)
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
