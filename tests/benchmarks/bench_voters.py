"""`privspec run` on a Parquet file of voters: seconds on the clock and of processors, and the most memory it takes.

    python -m tests.benchmarks.bench_voters [--voters 4000000] [--spec crowd_rlcp] [--folder DIR] [--site PLACE]

10 decisions of 23 features each, a row a decision: 1.9 kB a voter, 7.6 GB for four millions. The file is made once in
the folder and kept. `crowd_vldp` has every voter add noise of its own; `--site society` adds noise to the estimates
themselves, so that every voter's are worked out. Beside it: the same file added up by polars, without privacy.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privspec.manual import template_text

COUNT, FEATURES, TOGETHER = 10, 23, 100_000


def made(path: Path, voters: int) -> None:
    """The file, if it is not there yet."""
    if path.exists():
        return
    names = ["voter", *(f"V_{j}" for j in range(1, FEATURES + 1))]
    random, writer = np.random.default_rng(0), None
    for start in range(0, voters, TOGETHER):
        here = np.arange(start + 1, min(start + TOGETHER, voters) + 1)
        records = random.normal(size=(len(here) * COUNT, FEATURES)) / 5
        table = pa.table([pa.array(np.repeat(here, COUNT)), *(pa.array(column) for column in records.T)], names=names)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def row(what: str, command: list[str]) -> None:
    """One line about a command of its own."""
    begin = time.perf_counter()
    child = subprocess.Popen(command)
    _, status, used = os.wait4(child.pid, 0)
    wall = time.perf_counter() - begin
    if status:
        raise SystemExit(f"{what}: it failed")
    cpu, memory = used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20
    print(f"{what:30} {wall:9.1f} s on the clock {cpu:9.1f} s of processors {memory:7.2f} GiB", flush=True)


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voters", type=int, default=4_000_000)
    parser.add_argument("--spec", default="crowd_rlcp")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--site", default="")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    data = asked.folder / f"voters-{asked.voters}.parquet"
    # in a process of its own: what this one has held counts among the memory of those that it starts
    maker = get_context("spawn").Process(target=made, args=(data, asked.voters))
    maker.start()
    maker.join()
    text = template_text(asked.spec)
    for name, value in (("N", asked.voters), ("n", COUNT), ("d", FEATURES)):
        text = re.sub(rf"(?m)^  {name} = \d+", f"  {name} = {value}", text)
    text += f"\n  noise at {asked.site}\n" if asked.site else ""
    spec, plan = data.with_suffix(".priv"), data.with_suffix(".plan.json")
    spec.write_text(text)
    privspec = [sys.executable, "-m", "privspec"]
    row("solve", [*privspec, "solve", str(spec), "-q", "-o", str(plan)])
    out = str(data.with_suffix(".release.json"))
    row("run", [*privspec, "run", str(plan), "--input", f"V={data}", "--seed", "1", "-q", "-o", out])
    row(
        "polars, sums without privacy",
        [sys.executable, "-c", f"import polars; polars.scan_parquet({str(data)!r}).sum().collect()"],
    )


if __name__ == "__main__":
    main()
