"""The whole way on real data: solve, verify, run on 48,842 people, explain, check the predicted error by simulation.

    python examples/adult/run_adult.py OUT [--repetitions 1000] [--seed 1] [--only age_ranges]

Plans, releases and explanations go to the folder OUT; the prepared rows and the ledger live in a temporary folder.
The table on stdout compares the error that each plan predicts with the error of many simulated releases.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from adult_data import DATA, EXACT, read_people

import privspec
from privspec.core.diagnostics import BudgetError
from privspec.execute import ledger
from privspec.execute.family import simulate

HERE = Path(__file__).resolve().parent
READERS = ("public", "auditor", "engineer")
BUDGET = "epsilon=1.5 delta=1e-6"
"""For both releases together: two Gaussian releases of epsilon 1 cost less than epsilon 2."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """What a plan predicts, and what simulated releases show; squared people, in total over all answers."""

    name: str
    answers: int
    predicted: float
    mean: float
    standard_error: float
    others: tuple[tuple[str, float], ...]

    @property
    def z(self) -> float:
        """By how many standard errors the two differ."""
        return (self.mean - self.predicted) / self.standard_error


def say(text: str) -> None:
    """Tell what is happening."""
    print(text, file=sys.stderr, flush=True)


def solved(name: str, out: Path) -> privspec.Plan:
    """The verified plan of a spec of this folder, written to OUT.

    Raises: SystemExit if a claim of it does not hold.
    """
    started = time.perf_counter()
    plan = privspec.load(HERE / f"{name}.priv").solve().write(out / f"{name}.plan.json")
    say(f"{name}: solved in {time.perf_counter() - started:.1f} s, relative gap {plan.loss.relative_gap:.0e}")
    report = plan.verify()
    if not report.ok:
        raise SystemExit(f"{name}: the plan is not verified\n{report}")
    say(f"{name}: {len(report.claims)} claims verified")
    return plan


def released(plan: privspec.Plan, name: str, rows: Path, book: Path, out: Path) -> None:
    """One release of the real rows, paid for in the ledger, and the explanations of the plan."""
    place = out / f"{name}.release.json"
    release = plan.run({"people": rows}, ledger=book, output=place)
    say(f"{name}: {release.outputs['O'].size:,} answers released to {place}")
    for reader in READERS:
        page = out / f"{name}.{reader}.html"
        page.write_text(plan.explain(reader, "html"), encoding="utf-8")
        say(f"{name}: explained to the {reader} in {page}")


def agreement(plan: privspec.Plan, name: str, people: pl.DataFrame, repetitions: int, seed: int) -> Agreement:
    """The total squared error of simulated releases of the same rows, from the samplers of a real release."""
    started = time.perf_counter()
    draws = simulate(plan.document, repetitions, seed, base={"people": people})
    errors = ((draws - EXACT[name](people)) ** 2).sum(axis=1)
    say(f"{name}: {repetitions:,} releases simulated in {time.perf_counter() - started:.1f} s")
    others = tuple((other["name"], float(other["loss"])) for other in plan.document["alternatives"])
    spread = float(errors.std(ddof=1)) / repetitions**0.5
    return Agreement(name, draws.shape[1], plan.loss.value, float(errors.mean()), spread, others)


def table(found: list[Agreement]) -> str:
    """The figures as text: each plan with its simulation, then what the classic ways predict."""
    lines = [f"{'':<52}{'predicted':>13}{'simulated':>13}{'± (s.e.)':>10}{'z':>7}{'RMS an answer':>15}{'ratio':>8}"]
    for row in found:
        rms = (row.predicted / row.answers) ** 0.5
        figures = f"{row.predicted:>13,.0f}{row.mean:>13,.0f}{row.standard_error:>10,.0f}{row.z:>7.2f}"
        lines += ["", f"{f'{row.name}, {row.answers:,} answers: the plan':<52}{figures}{rms:>15.2f}{1:>8.2f}"]
        for name, loss in row.others:
            rms, ratio = (loss / row.answers) ** 0.5, loss / row.predicted
            lines.append(f"{f'  {name}':<52}{loss:>13,.0f}{'':>30}{rms:>15.2f}{ratio:>8.2f}")
    lines += [
        "",
        "predicted, simulated: expected total squared error, in squared people; ratio: to the plan's",
    ]
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The Adult example: solve, verify, run, explain, check by simulation.")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for plans, releases and explanations")
    parser.add_argument("--repetitions", type=int, default=1000, help="simulated releases a spec (default 1000)")
    parser.add_argument("--seed", type=int, default=1, help="of the simulation (default 1)")
    parser.add_argument("--only", choices=sorted(EXACT), help="one spec instead of all")
    return parser.parse_args()


def main() -> int:
    """Run the example.

    Returns: 0; 1 if a simulated mean is more than four standard errors from the prediction.
    """
    arguments = _arguments()
    if not DATA.is_file():
        say(f"skipped: the Adult extract is not at {DATA}")
        return 0
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    people = read_people()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        # the extract is public and this is no release of it: nobody's own registry of data sets learns of it
        os.environ["XDG_STATE_HOME"] = folder
        rows, book = Path(folder) / "people.csv", Path(folder) / "adult.ledger.db"
        people.write_csv(rows)
        say(f"{people.height:,} rows prepared; the budget of this data set is {BUDGET}")
        ledger.create(book, [BUDGET])
        for name in [arguments.only] if arguments.only else list(EXACT):
            plan = solved(name, out)
            released(plan, name, rows, book, out)
            found.append(agreement(plan, name, people, arguments.repetitions, arguments.seed))
        if len(found) == len(EXACT):
            try:
                plan.run({"people": rows}, ledger=book)
            except BudgetError as refusal:
                say(f"a third release is refused: {refusal}")
        say(ledger.show(book).describe())
    print(table(found))
    return 0 if np.all([abs(row.z) <= 4 for row in found]) else 1


if __name__ == "__main__":
    sys.exit(main())
