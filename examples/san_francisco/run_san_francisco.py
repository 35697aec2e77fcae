"""Reports of places: the optimal mechanism beside planar Laplace noise and k-randomised response, on real check-ins.

    python examples/san_francisco/run_san_francisco.py OUT [--epsilon 1 2] [--repetitions 20] [--seed 1] [--data FILE]

The even-numbered users are public and make the prior; every check-in of the others is one report. Plans, tables and
maps go to the folder OUT. Every number printed is of simulated reports: a seed is no source of private noise.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
from check_ins import DATA, CheckIns, read_check_ins
from map_picture import draw
from mechanisms import Outcome, optimum, others, outcome

import privspec
from privspec.families.tables.aggregate import ESTIMATORS

HERE = Path(__file__).resolve().parent


def say(text: str) -> None:
    """Tell what is happening."""
    print(text, file=sys.stderr, flush=True)


def solved(people: CheckIns, epsilon: str, out: Path) -> privspec.Plan:
    """The verified plan, written to OUT.

    Raises: SystemExit if a claim of it does not hold.
    """
    started = time.perf_counter()

    def progress(iteration: int, value: float, _bound: float) -> None:
        say(f"  epsilon {epsilon}: round {iteration}, {value:.6f} steps, {_since(started)}")

    problem = privspec.load(HERE / "san_francisco.priv", side=people.side, epsilon=epsilon)
    plan = problem.solve(constants={"visits": people.visits}, progress=progress)
    plan.write(out / f"san_francisco_{epsilon}.plan.json")
    say(f"epsilon {epsilon}: solved in {_since(started)}, gap {plan.loss.relative_gap:.0e}")
    report = plan.verify()
    if not report.ok:
        raise SystemExit(f"the plan is not verified\n{report}")
    say(f"epsilon {epsilon}: {len(report.claims)} claims verified, {_since(started)}")
    return plan


def compared(people: CheckIns, epsilon: str, plan: privspec.Plan, repetitions: int, seed: int) -> list[Outcome]:
    """The optimum and the others, each by its simulated reports."""
    found = []
    for mechanism in (optimum(plan), *others(people.side, Fraction(epsilon), people.prior)):
        started = time.perf_counter()
        found.append(outcome(mechanism, people, repetitions, seed))
        say(f"  {mechanism.name}: {repetitions} x {len(people.reporting):,} reports in {_since(started)}")
    return found


def _since(started: float) -> str:
    return f"{time.perf_counter() - started:.0f} s"


def rows(people: CheckIns, epsilon: str, outcomes: Sequence[Outcome]) -> list[dict[str, str | float | int]]:
    """The figures, a row each."""
    table: list[dict[str, str | float | int]] = []
    for found in outcomes:
        row: dict[str, str | float | int] = {
            "epsilon": epsilon,
            "mechanism": found.mechanism.name,
            "answers": found.mechanism.answers,
            "expected_steps": found.mechanism.loss,
            "expected_km": found.mechanism.loss * people.step,
            "simulated_km": found.distance[0] * people.step,
            "simulated_km_standard_error": found.distance[1] * people.step,
            "picked": found.chosen,
        }
        for name, (mean, error) in found.variation.items():
            row[f"variation_{name}"], row[f"variation_{name}_standard_error"] = mean, error
        table.append(row)
    return table


def markdown(table: pl.DataFrame) -> str:
    """The figures for reading."""
    names = list(ESTIMATORS)
    lines = [
        "| ε | mechanism | reports in use | expected distance | simulated | " + " | ".join(names) + " | picked |",
        "|---|---|---|---|---|" + "---|" * (len(names) + 1),
    ]
    for row in table.to_dicts():
        variations = " | ".join(f"{row[f'variation_{name}']:.3f}" for name in names)
        lines.append(
            f"| {row['epsilon']} | {row['mechanism']} | {row['answers']} | {row['expected_steps']:.4f} steps, "
            f"{row['expected_km']:.2f} km | {row['simulated_km']:.2f} km | {variations} | {row['picked']} |"
        )
    return "\n".join(lines)


def legend(people: CheckIns, repetitions: int) -> str:
    """What the columns mean, and what the prior alone would give."""
    away = float(np.abs(people.prior - people.truth).sum() / 2)
    return (
        f"Prior: {len(people.public):,} check-ins of {people.public_users} users; reports: {len(people.reporting):,} "
        f"check-ins of {people.reporting_users} others.\nColumns {', '.join(ESTIMATORS)}: total variation of the "
        f"recovered shares from the true ones, mean of {repetitions} simulations;\nthe prior itself, without any "
        f"report: {away:.3f}."
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The San Francisco example: mechanisms for places, compared.")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for plans, tables and maps")
    parser.add_argument("--epsilon", nargs="+", default=["1", "2"], help="a step between neighbouring cells")
    parser.add_argument("--repetitions", type=int, default=20, help="simulations of all reports (default 20)")
    parser.add_argument("--seed", type=int, default=1, help="of the simulation (default 1)")
    parser.add_argument("--side", type=int, default=10, help="cells on each side of the map (default 10)")
    parser.add_argument("--data", type=Path, default=DATA, help="check-ins: user, lat, lon")
    return parser.parse_args()


def main() -> int:
    """Run the example."""
    arguments = _arguments()
    if not arguments.data.is_file():
        say(f"skipped: the check-ins are not at {arguments.data}")
        return 0
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    people = read_check_ins(arguments.data, arguments.side)
    figures = []
    for epsilon in arguments.epsilon:
        plan = solved(people, epsilon, out)
        outcomes = compared(people, epsilon, plan, arguments.repetitions, arguments.seed)
        figures += rows(people, epsilon, outcomes)
        for suffix in ("png", "svg"):
            draw(people, epsilon, outcomes, out / f"san_francisco_{epsilon}.{suffix}")
    table = pl.DataFrame(figures)
    table.write_csv(out / "san_francisco.csv")
    text = f"{markdown(table)}\n\n{legend(people, arguments.repetitions)}"
    (out / "san_francisco.md").write_text(text + "\n", encoding="utf-8")
    print(text)
    say(f"tables, plans and maps are in {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
