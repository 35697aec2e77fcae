"""Questions that people ask of tables, surveys and counters, as the tutorials of other libraries pose them: each is a
spec of its own that solves, verifies, runs on made-up data and explains itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from privspec.audit import pairs_of, written
from privspec.language.formatter import format_source
from privspec.language.parser import read_source
from privspec.noise.samplers import SimulationRandomness
from privspec.pipeline import Request, check, solve

FOLDER = Path(__file__).parent
QUESTIONS = sorted(path.stem for path in FOLDER.glob("*.priv"))
FAST = ("how_many_older_women", "mean_pay_by_district", "spread_of_hours", "two_surveys_on_one_budget")


POINTS = {"where_somebody_is": {"place": (["place_1", "place_2"], [["3", "4"]])}}
"""Data that are no column of numbers."""


def request_of(name: str) -> Request:
    return Request(read_source(FOLDER / f"{name}.priv"), base=FOLDER)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_reads_well(name: str) -> None:
    request = request_of(name)
    model = check(request)
    assert model.name == name
    assert format_source(request.source) == request.source.text
    text = request.source.text
    assert re.search(r'"""[A-Z][^"]+"""', text), "a question has its own words"


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in FAST else pytest.mark.slow) for n in QUESTIONS])
def test_a_question_is_answered(name: str, tmp_path: Path) -> None:
    plan = solve(request_of(name))
    assert plan.status in ("optimal", "feasible")
    assert plan.verify().ok
    model = plan.model()
    data = {**next(pairs_of(model, model.requirements[0])).right, **POINTS.get(name, {})}
    release = plan.run(written(data, tmp_path), randomness=SimulationRandomness(1))
    assert {node.name for node in model.outputs} <= set(release.values)
    for reader in ("public", "auditor", "engineer"):
        assert len(plan.explain(reader)) > 1000
