"""Visits of persons in a DuckDB file: daily users and a distinct count as releases, beside DuckDB's own queries.

    python tests/benchmarks/bench_persons.py [--rows 1e7,1e8] [--persons 1e6] [--threads 2] [--memory 4GB] [--repeat 1]

Workload: visits of so many persons at seconds of a year, drawn by DuckDB's hash. `plain` is a Python process that asks
DuckDB for `count(DISTINCT person)`, of each day and of all, without privacy; `run` is `privspec run` from the command
line with all that it does: at most 10 days of each person are kept, the file is recognised, the ledger debited, noise
drawn and the release written. Seconds are of whole processes, by the clock and of the processor (the fairer figures on
a busy machine), the least of some in turn; memory is the most that a process held. `run` may map twice the memory that
is given (RLIMIT_DATA); plain DuckDB is told that it may hold so much.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from bench_engines import measured

DAILY = """variables:
  input visits in table(person in id, day in 2025-01-01..2025-12-31)
  output daily
loss: E[ ||daily - histogram(visits, by = {day})||^2 ]
privacy: daily is (1, 1e-6)-DP wrt visits, adding or removing one person with at most 10 records, at most 1 in one cell
"""
USERS = """variables:
  input visits in table(person in id, day in 2025-01-01..2025-12-31)
  output users
background: person = persons(visits)
loss: E[ (users - count(person))^2 ]
privacy: users is 1-DP wrt person, adding or removing one person
"""
ASKED = {
    "daily": (DAILY, "SELECT CAST(day AS DATE), count(DISTINCT person) FROM data.visits GROUP BY 1"),
    "users": (USERS, "SELECT count(DISTINCT person) FROM data.visits"),
}
VISITS = """CREATE TABLE visits AS SELECT (hash(i) % {persons})::BIGINT AS person,
  TIMESTAMP '2025-01-01' + to_seconds((hash(i + 7) % 31536000)::BIGINT) AS day FROM range({rows}) t(i)"""
PLAIN = """import duckdb
database = duckdb.connect()
database.execute("SET enable_progress_bar = false; SET threads = {threads}; SET memory_limit = '{memory}'")
database.execute("ATTACH 'visits.duckdb' AS data (READ_ONLY)")
database.execute('''{query}''').fetchall()
"""


def compare(rows: int, persons: int, threads: int, memory: str, repeat: int) -> None:
    """A line for each question."""
    import duckdb

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.setdefault("PYTHONPYCACHEPREFIX", str(folder / "bytecode"))
        with duckdb.connect(str(folder / "visits.duckdb")) as database:
            database.execute(f"SET threads = {threads}; SET preserve_insertion_order = false")
            database.execute(VISITS.format(rows=rows, persons=persons))
        privspec = [sys.executable, "-m", "privspec"]
        for what, (spec, query) in ASKED.items():
            (folder / f"{what}.priv").write_text(spec)
            subprocess.run([*privspec, "solve", f"{what}.priv", "-q"], cwd=folder, check=True)
            # told 4 GB, DuckDB 2.0.1 ends for want of memory at 10^8 rows; and far more is mapped than held
            more = f"{2 * float(memory.removesuffix('GB'))}GB"
            plain = [sys.executable, "-c", PLAIN.format(threads=threads, memory=more, query=query)]
            sides: tuple[list[tuple[float, ...]], list[tuple[float, ...]]] = ([], [])
            for turn in range(repeat):
                os.environ["XDG_STATE_HOME"] = str(folder / f"{what}.{turn}")
                run = [*privspec, "run", f"{what}.plan.json", "--input", "visits=visits.duckdb::visits", "--new-ledger"]
                run += ["--ledger", f"{what}.{turn}.db", "-o", f"{what}.{turn}.csv"]
                for side, command, mapped in zip(sides, (plain, run), ("1000GB", more), strict=True):
                    side.append(measured(command, folder, threads, mapped))
            first, second = ([min(figures) for figures in zip(*side, strict=True)] for side in sides)
            seconds = " ".join(f"{a:10.2f} {b:10.2f} {b / a:6.2f}" for a, b in zip(first[:2], second, strict=False))
            print(f"{rows:12,} {what:>8} {seconds} {first[2]:8.0f} {second[2]:8.0f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="1e7,1e8")
    parser.add_argument("--persons", default="1e6")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--repeat", type=int, default=1)
    given = parser.parse_args()
    heads = [f"{'plain ' + what:>10} {'run ' + what:>10} {'times':>6}" for what in ("s", "cpu")]
    print(f"{'rows':>12} {'question':>8} {' '.join(heads)} {'plain MB':>8} {'run MB':>8}")
    for text in given.rows.split(","):
        compare(int(float(text)), int(float(given.persons)), given.threads, given.memory, given.repeat)
