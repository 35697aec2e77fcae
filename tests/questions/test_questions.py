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
    public, *others = (plan.explain(reader) for reader in ("public", "auditor", "engineer"))
    assert all(len(page) > 1000 for page in others)
    assert 300 <= sum(1 for word in public.split() if re.search(r"\w", word)) <= 450
    assert not re.search(r"[εδμρΣ√α@=^]|epsilon|delta|sqrt|\w_\w|\.priv|\.csv|\bspec\b", public)
    odds = r"errs equally often both ways would on average accuse at least [\d,]+ of [\d,]+ people (.*?)\. Such"
    whom = re.search(odds, public)
    assert whom is not None
    adds = "adding or removing" in request_of(name).source.text
    assert whom[1].startswith("who did not take part") == adds, "replacing: people who gave a different answer"
