"""All benchmarks as one table: ours, what a user would take instead, the bound, and how seconds grow with the size.

    python -m tests.benchmarks [--quick] [--only NAME[,NAME]] [--limit SECONDS]

Every row runs in a process of its own, one thread for linear algebra, and both of its sides in that one run; seconds
are of the processor (the rows of Parquet have those of the clock as well), and memory is the most that a command held.
Commands are started as a user starts them: with bytecode that is kept, the least of two times. `--quick` takes smaller
sizes, and three minutes; which sizes that leaves out is printed below the table, and progress goes to standard error.
`--only` takes parts of names.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import log, sqrt
from pathlib import Path
from typing import Any

TOP = Path(__file__).parents[2]
SMALL = TOP / "specs" / "counting_query.priv"
PRIVSPEC = (sys.executable, "-m", "privspec")


MISSING = "not installed: pip install -e '.[dev,benchmarks]'"


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    name: str
    ours: str
    instead: str
    bound: str = "-"
    growth: str = "-"


SIZES: dict[str, dict[bool, tuple[Any, ...]]] = {
    "sums": {True: (10**5, 10**6), False: (10**5, 10**6, 10**7)},
    "marginals": {
        True: ("1,700 cells", "5,950 cells", "Adult, 2-way", "Adult, 3-way"),
        False: ("1,700 cells", "5,950 cells", "Adult, 2-way", "Adult, 3-way", "10^30, 3-way"),
    },
    "streams": {True: ((64, 4), (256, 4)), False: ((256, 4), (1024, 8))},
    "long streams": {True: (10**5,), False: (10**5, 10**6)},
    "covariance": {True: (128, 256, 512), False: (512, 1024, 2048, 4096)},
    "ranges": {True: (64, 128), False: (64, 128, 256)},
    "command": {True: (64, 256), False: (64, 256, 512)},
    "tables": {True: ("delta30",), False: ("delta30", "delta30r")},
    "grids": {True: (7,), False: (10,)},
    "programs": {
        True: (
            ("prefix_sums", {"n": 8}),
            ("prefix_sums", {"n": 16}),
            ("histogram", {}),
            ("counting_query", {"n": 10}),
            ("counting_query", {"n": 20}),
        ),
        False: (
            ("prefix_sums", {"n": 16}),
            ("prefix_sums", {"n": 24}),
            ("two_observers", {}),
            ("geo_indistinguishability", {"side": 7}),
            ("counting_query", {"n": 40}),
        ),
    },
    "crowds": {True: ("crowd_vldp",), False: ("crowd_vldp", "crowd_rlcp")},
    "reports": {True: (10**5,), False: (10**6,)},
    "engines": {True: (10**6, 10**7), False: (10**7, 10**8)},
    "systems": {True: ((4, 10, 200),), False: ((16, 30, 1000),)},
    "elections": {True: (10**5,), False: (10**6,)},
    "kernel": {True: (64, 256), False: (64, 256, 1024)},
}
"""The sizes of each benchmark with `--quick`, and without."""


def left_out() -> str:
    """The sizes that `--quick` does without, in words."""
    words = []
    for name, of in SIZES.items():
        missing = [size for size in of[False] if size not in of[True]]
        listed = ", ".join(f"{size:,}" if isinstance(size, int) else str(size) for size in missing)
        words += [f"{name} {listed}"] if missing else []
    return "; ".join(words)


def used(*command: str, folder: Path | None = None, times: int = 2) -> tuple[float, float]:
    """Processor seconds of a command, the least of some times, and the megabytes that it held at most."""
    found = []
    for _ in range(times):
        child = subprocess.Popen(command, cwd=folder or TOP, stdout=subprocess.DEVNULL)
        _, status, spent = os.wait4(child.pid, 0)
        if status:
            raise SystemExit(f"{' '.join(command)} failed")
        found.append((spent.ru_utime + spent.ru_stime, spent.ru_maxrss / 1024))
    return min(found)[0], max(memory for _, memory in found)


def took(action: Callable[[], Any]) -> float:
    """Processor seconds of a call."""
    begin = time.process_time()
    action()
    return time.process_time() - begin


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> str:
    """The power of the size with which seconds grow from the first to the last."""
    if len(sizes) < 2:
        return "-"
    return f"{log(seconds[-1] / seconds[0]) / log(sizes[-1] / sizes[0]):.2f}"


def proved(path: Path) -> str:
    """What a plan says of its bound."""
    plan = json.loads(path.read_text(encoding="utf-8"))
    gap = plan["loss"].get("relative_gap")
    return f"{plan['status']}, gap {gap:.1e}" if gap is not None else f"{plan['status']}, no bound"


def errors(path: Path, numbers: int) -> tuple[str, str]:
    """The error of a plan's numbers, and that of the best of the plain mechanisms that it is compared with."""
    plan = json.loads(path.read_text(encoding="utf-8"))
    others = {one["name"]: one["loss"] for one in plan["alternatives"] if one["admissible"] and one.get("loss")}
    best = min(others, key=lambda name: float(others[name]), default=None)
    told = "-" if best is None else f"{best}: RMSE {sqrt(others[best] / numbers):.3f}"
    return f"RMSE {sqrt(plan['loss']['value'] / numbers):.3f}", told


def solved(spec: str | Path, folder: Path, *more: str, times: int = 2) -> tuple[float, float, Path]:
    """Seconds and megabytes of `privspec solve`, and the plan."""
    plan = folder / "plan.json"
    return (*used(*PRIVSPEC, "solve", str(spec), "-q", "-o", str(plan), *more, times=times), plan)


# --- rows -----------------------------------------------------------------------------------------


def sums(folder: Path, *, quick: bool) -> list[Row]:
    """A sum over many people: the whole commands."""
    import numpy as np

    sizes, spent, told = SIZES["sums"][quick], [], ""
    for n in sizes:
        text = f"variables:\n  input x in [0, 1]^{n}\n  output O\nloss:\n  E[ (O - sum(x))^2 ]\n"
        (folder / "sum.priv").write_text(f"{text}privacy:\n  O is 1-GDP wrt x, replacing one entry\n")
        np.save(folder / "x.npy", np.random.default_rng(1).uniform(0, 1, n))
        steps = {"solve": solved(folder / "sum.priv", folder)[:2]}
        steps["verify"] = used(*PRIVSPEC, "verify", "plan.json", folder=folder)
        run = (*PRIVSPEC, "run", "plan.json", "--input", "x=x.npy", "--new-ledger", "--ledger", f"{n}.db", "-q")
        steps["run"] = used(*run, "-o", "r.csv", folder=folder, times=1)
        spent.append(sum(seconds for seconds, _ in steps.values()))
        told = ", ".join(f"{name} {seconds:.2f}" for name, (seconds, _) in steps.items())
        told = f"n = {n:,}: {told} s, {max(memory for _, memory in steps.values()):.0f} MB"
    code = "import numpy as np; print(np.load('x.npy').sum() + np.random.normal())"
    beside = used(sys.executable, "-c", code, folder=folder)
    plain = f"numpy, no proof, no exact noise: {beside[0]:.2f} s, {beside[1]:.0f} MB"
    return [Row("y = sum(x), x in [0, 1]^n", told, plain, proved(folder / "plan.json"), exponent(sizes, spent))]


def marginals(_folder: Path, *, quick: bool, names: Sequence[str] = ()) -> list[Row]:
    """Tables of counts beside the closed form."""
    from tests.benchmarks import bench_marginals as bench

    rows, grown = [], []
    names = names or SIZES["marginals"][quick]
    for name in names:
        called = [sys.executable, bench.__file__, "--one", name]
        found = json.loads(subprocess.run(called, check=True, capture_output=True, cwd=TOP).stdout)
        sizes, asked = bench.WORK[name]
        plain = "cumulative" not in asked and "ranges" not in asked
        if plain:
            grown.append((found["sets"], found["solve"]))
            seconds = took(lambda sizes=sizes, asked=asked: bench.peer(sizes, bench.ways_of(asked, len(sizes))))
            beside = f"ResidualPlanner's closed form {seconds:.2f} s"
        else:
            beside = f"ResidualPlanner+ {(bench.PLUS[name] / found['loss'] - 1) * 100:.1f} % above"
        steps = ", ".join(
            f"{step} {found[step]:.2f}" if found[step] == found[step] else f"{step} not run"
            for step in ("solve", "verify", "release")
        )
        error = f"RMSE {sqrt(found['loss'] / found['numbers']):.4f}" if plain else f"loss {found['loss']:.2f}"
        told = f"{steps} s, {found['memory']:.0f} MB, {error}"
        rows.append(Row(f"marginals {name}" if plain else name, told, beside, f"gap {found['gap']:.1e}"))
    if len(grown) > 1:
        rows[len(grown) - 1] = Row(**{**asdict(rows[len(grown) - 1]), "growth": exponent(*zip(*grown, strict=True))})
    return rows


def ordered(folder: Path, *, quick: bool) -> list[Row]:
    """Columns in order."""
    return marginals(folder, quick=quick, names=("prefix 16 x 5 x 3", "range 16 x 16"))


STREAM = """variables:
  input x in l2_ball(1/2, {k})^{n}
  intermediate y
  output O
background:
  y = prefix_sums(x)
loss:
  E[ ||O - y||^2 ]
privacy:
  O is 1-GDP wrt x, replacing up to {k} records, {how} {apart} apart
"""


def square_root(n: int, k: int) -> float:
    """The least mean squared error of square roots of prefix sums in bands of any width that keeps units apart."""
    import numpy as np
    from scipy.linalg import solve_triangular, toeplitz

    steps = np.arange(1, n)
    column = np.cumprod(np.append(1.0, (2 * steps - 1) / (2 * steps)))
    widths = {max(1, round(n / k / 2**j)) for j in range(8)}

    def error(width: int) -> float:
        strategy = np.tril(toeplitz(column * (np.arange(n) < width)))
        strategy /= np.linalg.norm(strategy, axis=0)
        root = solve_triangular(strategy, np.tril(np.ones((n, n))).T, lower=True, trans="T")
        return float(k * np.sum(root**2) / n)

    return min(map(error, widths))


def streams(folder: Path, *, quick: bool) -> list[Row]:
    """Running sums of vectors of which one person contributes several; growth of those that lie exactly apart."""
    rows = []
    for how in ("exactly", "at least"):
        sizes, spent = [], []
        for n, k in SIZES["streams"][quick]:
            (folder / "stream.priv").write_text(STREAM.format(n=n, k=k, apart=n // k, how=how))
            seconds, memory, path = solved(folder / "stream.priv", folder, times=1)
            checked = used(*PRIVSPEC, "verify", str(path), times=1)[0]
            mean = json.loads(path.read_text(encoding="utf-8"))["loss"]["value"] / (n * k)
            told = f"solve {seconds:.1f}, verify {checked:.1f} s, {memory:.0f} MB, mean square {mean:.4f}"
            found: list[float] = []
            slow = took(lambda n=n, k=k, found=found: found.append(square_root(n, k)))
            beside = f"best square root in a band, no proof: {slow:.1f} s, mean square {found[0]:.4f}"
            sizes.append(n)
            spent.append(seconds)
            name = f"streams n = {n}, k = {k}, {how} {n // k} apart"
            rows.append(Row(name, told, beside, proved(path), exponent(sizes, spent)))
    return [*rows, *long_streams(folder, quick=quick)]


def long_streams(folder: Path, *, quick: bool) -> list[Row]:
    """The same of so many vectors that nothing of the square of their number can be computed, beside the plain root."""
    from privspec.solvers.totals import root, summed_inverse

    rows, sizes, spent = [], [], []
    for n in SIZES["long streams"][quick]:
        for k in (1, 4):
            (folder / "stream.priv").write_text(STREAM.format(n=n, k=k, apart=n // k, how="exactly"))
            seconds, memory, path = solved(folder / "stream.priv", folder, times=1)
            checked = used(*PRIVSPEC, "verify", str(path), times=1)[0]
            loss = json.loads(path.read_text(encoding="utf-8"))["loss"]
            bracket = f"{loss['lower_bound'] / (n * k):.4f} to {loss['value'] / (n * k):.4f}"
            told = f"solve {seconds:.1f}, verify {checked:.1f} s, {memory:.0f} MB, mean square {bracket}"
            costs = float((summed_inverse(n, 0.0, n // k) ** 2 * range(n, 0, -1)).sum()) / n
            plain = k * float((root(n // k, 0.0, n // k) ** 2).sum()) * costs
            if k == 1:
                sizes.append(n)
                spent.append(seconds)
            beside = f"square root in a band, no proof: mean square {plain:.4f}"
            rows.append(Row(f"streams n = {n}, k = {k}", told, beside, proved(path), exponent(sizes, spent)))
    return rows


def covariance(_folder: Path, *, quick: bool) -> list[Row]:
    """Noise of any covariance on prefix sums."""
    from tests.benchmarks import bench_placement as bench

    def run(name: str, n: int) -> dict[str, Any]:
        return bench.run(name, n, sites=False, limit=60.0 if quick else 500.0, memory=20.0, threads=1)

    rows, sizes, spent = [], [], []
    small = 16 if quick else 32
    plain, peer = run("cvxpy", small), run("jax-privacy", 256)
    beside = f"cvxpy n = {small}: {plain.get('note') or format(plain['cpu'], '.1f') + ' s'}"
    beside += f"; jax-privacy n = 256: {peer.get('note') or format(peer['cpu'], '.1f') + ' s'}"
    for n in SIZES["covariance"][quick]:
        found = run("default", n)
        if "note" in found:
            rows.append(Row(f"full covariance n = {n}", found["note"], beside))
            continue
        sizes.append(n)
        spent.append(found["cpu"])
        gap = f"gap {(found['loss'] - found['bound']) / found['loss']:.1e}"
        told = f"{found['cpu']:.2f} s, {found['mib']:.0f} MB"
        rows.append(Row(f"full covariance n = {n}", told, beside, gap, exponent(sizes, spent)))
    return rows


def ranges(folder: Path, *, quick: bool) -> list[Row]:
    """All ranges of a histogram."""
    rows, sizes, spent = [], [], []
    for n in SIZES["ranges"][quick]:
        seconds, memory, path = solved("range_queries", folder, "--set", f"oldest={n - 1}", times=1)
        sizes.append(n)
        spent.append(seconds)
        error, instead = errors(path, n * (n + 1) // 2)
        told = f"{seconds:.2f} s, {memory:.0f} MB, {error}"
        rows.append(Row(f"range queries n = {n}", told, instead, proved(path), exponent(sizes, spent)))
    return rows


def whole_command(folder: Path, *, quick: bool) -> list[Row]:
    """Everything around a solver."""
    from tests.benchmarks import bench_placement as bench

    rows, sizes, spent = [], [], []
    for n in SIZES["command"][quick]:
        seconds, memory, path = solved("prefix_sums", folder, "--set", f"n={n}")
        alone = bench.run("default", n, sites=False, limit=60, memory=8, threads=1)
        sizes.append(n)
        spent.append(seconds)
        told = f"{seconds:.2f} s, {memory:.0f} MB"
        beside = f"the solver alone {alone['cpu']:.2f} s"
        rows.append(Row(f"whole command n = {n}", told, beside, proved(path), exponent(sizes, spent)))
    return rows


def _table(case: str, name: str, limit: float) -> Row:
    from tests.benchmarks import bench_tables as bench

    found = {}
    for way in ("command", "plain"):
        called = [sys.executable, bench.__file__, "--run", case, way]
        try:
            done = subprocess.run(called, capture_output=True, text=True, timeout=limit, cwd=TOP, check=False)
            last = (done.stderr.strip().splitlines() or ["failed"])[-1]
            found[way] = last if done.returncode else json.loads(done.stdout.splitlines()[-1])
        except subprocess.TimeoutExpired:
            found[way] = f"not finished in {limit:.0f} s"
    mine, plain = found["command"], found["plain"]
    told = mine
    if not isinstance(mine, str):
        told = f"solve {mine['seconds']:.2f}, verify {mine['verify']:.2f} s, {mine['memory']:.0f} MB"
    beside = plain if isinstance(plain, str) else f"{plain['seconds']:.2f} s"
    bound = "-" if isinstance(mine, str) else f"gap {mine['gap']:.1e}"
    solver = "" if isinstance(plain, str) else f"{plain['solver']} through "
    return Row(name, told, f"{solver}cvxpy, no certificate: {beside}", bound)


def tables(_folder: Path, *, quick: bool) -> list[Row]:
    """Tables with delta, of an even and of an uneven prior."""
    said = "(eps, delta) table, 30 inputs"
    return [_table(case, said + ", uneven prior" * case.endswith("r"), 300.0) for case in SIZES["tables"][quick]]


def grids(_folder: Path, *, quick: bool) -> list[Row]:
    """A grid of places with an uneven prior."""
    (size,) = SIZES["grids"][quick]
    return [_table(f"grid{size}r", f"{size} x {size} grid, uneven prior", 30.0 if quick else 400.0)]


def programs(_folder: Path, *, quick: bool) -> list[Row]:
    """Special solvers, and the same convex program as it is written, through cvxpy."""
    import cvxpy

    import privspec
    from privspec.families.family import Settings
    from privspec.pipeline import program

    rows = []
    for name, given in SIZES["programs"][quick]:
        model, found = privspec.load(name, **given).check(), []

        def ours(model: Any = model, found: list[Any] = found) -> None:
            found.append(program(model, Settings(alternatives=False)))

        def plain(found: list[Any] = found) -> None:
            stated = found[0].state()
            found.append(stated.problem.solve(solver=cvxpy.CLARABEL))

        ours()  # what is loaded once is no work of a solver
        special, general = took(ours), took(plain)
        said = ", ".join(f"{key} = {value}" for key, value in given.items())
        told = f"{special:.2f} s, {general / special:.1f} times as fast"
        rows.append(Row(f"program of {name}{said and ', '}{said}", told, f"cvxpy, Clarabel {general:.2f} s"))
    return rows


def crowds(folder: Path, *, quick: bool) -> list[Row]:
    """Weights of a crowd."""
    rows = []
    for name in SIZES["crowds"][quick]:
        seconds, memory, path = solved(name, folder, times=1)
        rows.append(Row(f"solve {name}", f"{seconds:.1f} s, {memory:.0f} MB", "no other tool", proved(path)))
    return rows


def voters(_folder: Path, *, quick: bool) -> list[Row]:
    """The estimate of one voter."""
    import numpy as np

    from tests.benchmarks import bench_probit as bench

    rows = []
    for integers in (False, True):
        records = bench.voters(300 if quick else 2000, 13, 23, integers=integers)
        some = records[: 5 if quick else 20]
        cpu, _, answer = bench.timed(lambda records=records: bench.probit_mle(records, 2.0).weights, 3)
        ours = bench.inside(answer, 2.0, bench.L1)
        gap = bench.relative_gaps(records * 2.0, ours / 2.0, bench.L1).max()
        slow, _, _ = bench.timed(lambda some=some: np.stack([bench.slsqp(one, 2.0) for one in some]), 1)
        name = f"voters' estimate (13, 23) {'integer' if integers else 'normal'}"
        told, beside = f"{cpu / len(records) * 1e6:.0f} us", f"SLSQP {slow / len(some) * 1e6:,.0f} us"
        rows.append(Row(name, told, beside, f"gap {gap:.1e}"))
    return rows


def noise(_folder: Path, *, quick: bool) -> list[Row]:
    """Exact noise."""
    from tests.benchmarks import bench_noise as bench

    count = 2 * 10**5 if quick else 10**6
    source, zeros = bench.SystemRandomness(), bench.ExactVector(bench.integers([0] * count), 1)

    def exact(draw: Callable[[], Any], number: int) -> float:
        draw()
        return took(draw) / number * 1e6

    gaussian = exact(lambda: bench.nearest_normal(zeros, bench.STEP, source), count)
    laplace = exact(lambda: bench.laplace_steps([1 / bench.STEP], count, source), count)
    peers = {kind: bench.opendp_us(gaussian=kind == "Gaussian") for kind in ("Gaussian", "Laplace")}
    rows = []
    for kind, ours in (("Laplace", laplace), ("Gaussian", gaussian)):
        beside = MISSING if peers[kind] is None else f"{peers[kind]:.1f} us"
        rows.append(Row(f"exact noise: {kind}", f"{ours:.2f} us", f"OpenDP {beside}", "exact"))

    import numpy as np

    rng = np.random.default_rng(1)
    plain = took(lambda: [rng.gamma(16) * (v := rng.normal(size=16)) / np.linalg.norm(v) for _ in range(2000)]) / 2000
    rows.append(
        Row(
            "K-norm l2 d = 16, many at once",
            f"{exact(lambda: bench.vectors('l2', 16, source), 2000):.1f} us",
            f"numpy, no release: {plain * 1e6:.0f} us",
            "exact",
        )
    )
    return rows


def reports(folder: Path, *, quick: bool) -> list[Row]:
    """Reports of many people, drawn by one command."""
    import numpy as np

    (n,) = SIZES["reports"][quick]
    words = ["car", "train", "bus", "bicycle", "foot", "other"]
    drawn = np.random.default_rng(1).choice(words, n)
    (folder / "answers.csv").write_text("answer\n" + "\n".join(drawn.tolist()) + "\n")
    plan = solved("frequency_survey", folder)[2]
    run = (*PRIVSPEC, "run", "plan.json", "--input", "answer=answers.csv", "--new-ledger", "--ledger", "a.db", "-q")
    seconds, memory = used(*run, "-o", "reports.csv", folder=folder, times=1)
    code = (
        "import polars as pl, numpy as np; a = pl.read_csv('answers.csv')['answer'].to_numpy(); n = len(a); "
        "w = np.unique(a); k = np.random.random(n) < np.e / (np.e + 5); "
        "pl.DataFrame({'report': np.where(k, a, np.random.choice(w, n))}).write_csv('plain.csv')"
    )
    beside = used(sys.executable, "-c", code, folder=folder)
    told, plain = f"{seconds:.2f} s, {memory:.0f} MB", f"polars and numpy, no exact noise: {beside[0]:.2f} s"
    return [Row(f"local reports, {n:,} rows", told, plain, proved(plan))]


def starts(folder: Path, *, quick: bool) -> list[Row]:
    """Commands on a small spec."""
    times = 3 if quick else 7
    python = used(sys.executable, "-c", "import numpy", times=times)[0]
    plan = str(folder / "plan.json")
    commands = {
        "check": ("check", str(SMALL)),
        "solve": ("solve", str(SMALL), "-q", "-o", plan),
        "verify": ("verify", plan),
    }
    rows = []
    for name, words in commands.items():
        seconds, memory = used(*PRIVSPEC, *words, times=times)
        told = f"{seconds:.2f} s, {memory:.0f} MB"
        rows.append(Row(f"{name} of a small spec", told, f"Python and numpy {python:.2f} s"))
    return rows


def engines(_folder: Path, *, quick: bool) -> list[Row]:
    """Many records from Parquet."""
    from tests.benchmarks import bench_engines as bench

    rows = []
    for kind in bench.PAY:
        sizes, spent = [], []
        for count in SIZES["engines"][quick]:
            found = bench.compare(count, 2, "4GB", 2 if quick else 3, kind)
            sizes.append(count)
            spent.append(found["run"][0])
        told = f"{found['run'][0]:.2f} s by the clock, {found['run'][1]:.2f} s, {found['run'][2]:.0f} MB"
        plain = f"DuckDB {found['plain'][0]:.2f} s by the clock, {found['plain'][1]:.2f} s, {found['plain'][2]:.0f} MB"
        times = f"{found['run'][0] / found['plain'][0]:.2f} times"
        rows.append(Row(f"run, {sizes[-1]:,} rows of Parquet, {kind}", told, plain, times, exponent(sizes, spent)))
    return rows


def systems(_folder: Path, *, quick: bool) -> list[Row]:
    """Several families under one line."""
    from tests.benchmarks import bench_systems as bench

    sums_, people, splits = SIZES["systems"][quick][0]
    mine, plain = bench.ours(sums_, people), bench.plain(sums_, people, splits)
    told = ", ".join(f"{key} {value:.4g}" for key, value in mine.items())
    beside = ", ".join(f"{key} {value:.4g}" for key, value in plain.items())
    return [Row(f"{sums_} sums, a table and a vote", told, f"{splits} splits: {beside}")]


def elections(folder: Path, *, quick: bool) -> list[Row]:
    """A large vote."""
    from tests.benchmarks import bench_voting as bench

    (n,) = SIZES["elections"][quick]
    files = bench.choices(folder, n)
    found = bench.election(bench.write_spec(folder, n, bench.CASES[0]), files["choices.csv"])
    code = "import polars as pl; f = pl.read_csv('choices.csv'); print(f.sample(1))"
    beside = used(sys.executable, "-c", code, folder=folder)[0]
    return [Row(f"random dictator, {n:,} votes", f"{found} s", f"polars, one ballot at random: {beside:.2f} s")]


def kernels(_folder: Path, *, quick: bool) -> list[Row]:
    """The kernel's judgement."""
    from tests.benchmarks import bench_kernel as bench

    sizes, spent, rows = [], [], []
    for n in SIZES["kernel"][quick]:
        found = bench.measured(n)
        sizes.append(n)
        spent.append(found["judge"])
        told, beside = f"{found['judge']:.2f} s", f"to solve it: {found['solve']:.2f} s"
        bound = f"gap {found['gap']:.1e}, {'holds' if found['ok'] else 'FAILS'}"
        rows.append(Row(f"kernel judges n = {n}", told, beside, bound, exponent(sizes, spent)))
    return rows


ROWS: dict[str, Callable[..., list[Row]]] = {
    "sums": sums,
    "marginals": marginals,
    "ordered": ordered,
    "streams": streams,
    "covariance": covariance,
    "ranges": ranges,
    "command": whole_command,
    "tables": tables,
    "grids": grids,
    "programs": programs,
    "crowds": crowds,
    "voters": voters,
    "noise": noise,
    "reports": reports,
    "starts": starts,
    "engines": engines,
    "systems": systems,
    "elections": elections,
    "kernel": kernels,
}


# --- the table ------------------------------------------------------------------------------------


def environment(folder: Path) -> dict[str, str]:
    """Of a process that measures: one thread, bytecode that is kept, a registry of its own."""
    found = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    path = os.pathsep.join(filter(None, (str(TOP), os.environ.get("PYTHONPATH"))))
    state = {"XDG_STATE_HOME": str(folder / "state"), "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    return {**found, **threads, **state, "PYTHONPATH": path}


def rows_of(name: str, *, quick: bool, limit: float, folder: Path) -> list[Row]:
    """The lines of one benchmark, run in a process of its own; one that says why there are none."""
    called = [sys.executable, "-m", "tests.benchmarks", "--row", name, *(["--quick"] if quick else [])]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(called, cwd=TOP, env=environment(folder), start_new_session=True, **pipes) as child:
        try:
            said, why = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)  # with the commands that it started
            return [Row(name, f"not finished in {limit:.0f} s", "-")]
    if child.returncode:
        return [Row(name, f"failed: {(why.strip().splitlines() or ['?'])[-1][:80]}", "-")]
    return [Row(**one) for one in json.loads(said.splitlines()[-1])]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--only", default="", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--limit", type=float, help="seconds for each benchmark, by default 60 (quick) or 1800")
    parser.add_argument("--row", choices=ROWS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.row:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps([asdict(row) for row in ROWS[asked.row](Path(folder), quick=asked.quick)]))
        return
    wanted = [name for name in ROWS if not asked.only or any(part in name for part in asked.only.split(","))]
    found = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for place, name in enumerate(wanted, 1):
            begin = time.perf_counter()
            print(f"[{place}/{len(wanted)}] {name} ...", end=" ", file=sys.stderr, flush=True)
            limit = asked.limit or (60.0 if asked.quick else 1800.0)
            found += rows_of(name, quick=asked.quick, limit=limit, folder=Path(folder))
            print(f"{time.perf_counter() - begin:.1f} s", file=sys.stderr, flush=True)
    lines = [
        ("", "ours", "instead", "bound", "growth"),
        *((r.name, r.ours, r.instead, r.bound, r.growth) for r in found),
    ]
    widths = [max(len(line[j]) for line in lines) for j in range(5)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    if asked.quick:
        print(f"\nleft out by --quick: {left_out()}")


if __name__ == "__main__":
    main()
