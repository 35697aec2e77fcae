"""The templates that are tables, the whole way: solved, verified, run on people in a file, explained, swept.

The reports of a hundred thousand people are drawn with the operating system's randomness and compared with the exact
law of each row in the plan; one test in this file raises a false alarm in less than one of a million runs.
"""

from __future__ import annotations

import csv
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from privspec.api import Problem
from privspec.cli import run_command_line
from privspec.core.spans import Source
from privspec.execute.drawing import TableLaw
from privspec.manual import template_text
from privspec.noise.samplers import SystemRandomness
from privspec.pipeline import Request
from privspec.plan import Plan
from privspec.sweep import sweep_spec
from tests.plans import solved_text

DRAWS = 100_000
FALSE_ALARM = 1e-6 / 10
"""Of one test; there are fewer than ten."""

PEOPLE: dict[str, dict[str, list[str]]] = {
    "k_randomised_response": {"answer": ["red", "yellow", "red", "blue"]},
    "frequency_survey": {"answer": ["car", "other", "foot"]},
    "fair_response": {"group": ["young", "old", "young"], "outcome": ["ill", "ill", "well"]},
    "metric_dp_line": {"minutes": ["0", "60", "110"]},
    "geo_indistinguishability": {"place_1": ["1", "2"], "place_2": ["1", "3"]},
    "power_means": {"x": ["1", "10", "4"]},
}
"""Columns of a file; a person in each row, over and over."""
SMALLER: dict[str, dict[str, int]] = {"geo_indistinguishability": {"side": 4}}
"""Parameters for a quick run."""

ALL = ("counting_query", *PEOPLE)


def solved(name: str) -> Plan:
    return Plan(solved_text(template_text(name), **SMALLER.get(name, {})))


def label(value: Any) -> Any:
    """A label of the plan as the cells of a line in a file."""
    return tuple(value) if isinstance(value, list) else (value,)


def alarm(counts: dict[Any, Counter[Any]], plan: Plan) -> float:
    """The p-value of draws, row by row: Pearson's statistic, columns of small expectation taken together."""
    mechanism = plan.document["mechanism"]
    columns = [label(c) for c in mechanism["outputs"]]
    statistic, freedom = 0.0, 0
    for row, drawn in counts.items():
        law = mechanism["probabilities"][[label(r) for r in mechanism["inputs"]].index(row)]
        total = drawn.total()
        assert set(drawn) <= set(columns)
        cells = [(total * float(Fraction(p)), drawn[column]) for p, column in zip(law, columns, strict=True)]
        assert all(count == 0 for expected, count in cells if expected == 0)
        large = [cell for cell in cells if cell[0] >= 10]
        rest = (sum(e for e, _ in cells if e < 10), sum(n for e, n in cells if e < 10))
        kept = [*large, rest] if rest[0] >= 10 else large
        statistic += sum((n - e) ** 2 / e for e, n in kept)
        freedom += len(kept) - 1
        if rest[0] < 10:
            assert rest[1] <= 60  # a count of mean below 10 exceeds 60 with probability below 1e-25
    return float(chi2.sf(statistic, freedom))


@pytest.mark.parametrize("name", PEOPLE)
def test_reports_of_people_in_a_file(name: str, tmp_path: Path) -> None:
    plan = solved(name)
    assert plan.verify().ok
    people = PEOPLE[name]
    kinds = list(zip(*people.values(), strict=True))
    path, out = tmp_path / "people.csv", tmp_path / "reports.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(people)
        lines.writerows(kinds[i % len(kinds)] for i in range(DRAWS))
    plan.run({block.name: path for block in plan.model().blocks}, tmp_path / "ledger.db", out, new_ledger=True)
    with out.open(encoding="utf-8", newline="") as file:
        _, *reports = csv.reader(file)
    assert len(reports) == DRAWS
    counts: dict[Any, Counter[Any]] = {kind: Counter() for kind in kinds}
    for i, report in enumerate(reports):
        # behind the values stand the marks: private, ledger, plan
        counts[kinds[i % len(kinds)]][tuple(report[:-3])] += 1
    assert alarm(counts, plan) > FALSE_ALARM


def test_counts_that_are_published() -> None:
    plan = solved("counting_query")
    assert plan.verify().ok
    law = TableLaw.of_plan(plan.document)
    rows = np.arange(DRAWS) % len(law.rows)
    drawn = law.draw(rows, SystemRandomness())
    mechanism = plan.document["mechanism"]
    counts: dict[Any, Counter[Any]] = {label(row): Counter() for row in mechanism["inputs"]}
    for row, column in zip(rows.tolist(), drawn.tolist(), strict=True):
        counts[label(mechanism["inputs"][row])][label(mechanism["outputs"][column])] += 1
    assert alarm(counts, plan) > FALSE_ALARM


@pytest.mark.slow
def test_a_map_of_49_points() -> None:
    plan = Problem(template_text("geo_indistinguishability")).solve()
    assert plan.verify().ok
    assert plan.loss.value == pytest.approx(2.08057819, abs=5e-8)


@pytest.mark.parametrize("name", ALL)
def test_three_readers(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    solved(name).write(path)
    for reader in ("public", "auditor", "engineer"):
        assert run_command_line(["explain", str(path), "--for", reader]) == 0
        text = capsys.readouterr().out
        assert len(text) > 500
        assert "anonymous" not in text.lower()
        for secret in ("nan", "None", "Fraction("):
            assert secret not in text


@pytest.mark.parametrize("name", ALL)
def test_more_privacy_costs_more(name: str) -> None:
    text = template_text(name).replace("side = 7 ", "side = 3 ")
    base = "0.05" if name == "metric_dp_line" else "1"
    values = [str(float(base) * factor) for factor in (0.5, 1, 2)]
    rows = sweep_spec(Request(Source(f"{name}.priv", text)), "epsilon", values)
    losses = [row.loss for row in rows]
    assert None not in losses
    assert losses == sorted(losses, reverse=True)  # type: ignore[type-var]
    assert losses[0] > losses[-1]  # type: ignore[operator]
    for row in rows:
        assert row.lower_bound is not None
        assert row.loss is not None
        assert 0 <= row.loss - row.lower_bound <= 1e-6 * row.loss
