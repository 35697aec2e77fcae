"""Made-up records: from a release alone, with how well they keep each of its tables."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from privspec.api import Problem
from privspec.cli import run_command_line
from privspec.core.diagnostics import DataError, UsageError
from privspec.execute.release import Release
from privspec.plan import Plan

SPEC = """variables:
  input people in table(age in {young, old}, region in {north, south, west}, works in {yes, no}, pay in [0, 9])
  output T
  output P
loss: E[ ||T - marginals(people, up_to = 2)||^2 ] + E[ (P - sum(people.pay))^2 ]
privacy: (T, P) is 2-GDP wrt people, adding or removing one record
"""
RECORDS = 400


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Problem(SPEC).solve()


@pytest.fixture(scope="module")
def data() -> dict[str, list[Any]]:
    draw = np.random.default_rng(3)
    old = draw.random(RECORDS) < 0.4
    return {
        "age": np.where(old, "old", "young").tolist(),
        "region": draw.choice(["north", "south", "west"], RECORDS, p=[0.5, 0.3, 0.2]).tolist(),
        "works": np.where(draw.random(RECORDS) < np.where(old, 0.2, 0.8), "yes", "no").tolist(),
        "pay": (9 * draw.random(RECORDS)).tolist(),
    }


@pytest.fixture(scope="module")
def release(plan: Plan, data: dict[str, list[Any]]) -> Release:
    return plan.run({"people": data}, seed=1)


def test_records_keep_the_tables_within_their_noise(plan: Plan, release: Release, data: dict[str, list[Any]]) -> None:
    made = plan.synthetic(release, RECORDS)
    assert list(made.columns) == ["age", "region", "works"]
    assert len(made.columns["age"]) == RECORDS
    assert len(made.tables) == 6
    assert all(one.within for one in made.tables)
    # what a table says of two columns holds of the records: the old work less
    working = {who: np.mean(made.columns["works"][made.columns["age"] == who] == "yes") for who in ("young", "old")}
    assert working["young"] == pytest.approx(0.8, abs=0.1)
    assert working["old"] == pytest.approx(0.2, abs=0.1)
    assert "P gives no plain tables of counts" in " ".join(made.left)
    assert "pay is in no table of counts" in " ".join(made.left)
    assert "not private" in made.text()  # the release was drawn with a seed
    again = plan.synthetic(release.to_json(), RECORDS)
    assert np.array_equal(again.places, made.places)


@pytest.mark.parametrize("records", [1, 50, 5000])
def test_any_number_of_records(plan: Plan, release: Release, records: int) -> None:
    made = plan.synthetic(release, records)
    assert len(made.places) == records
    shares = {value: float(np.mean(made.columns["region"] == value)) for value in ("north", "south", "west")}
    if records > 1:
        assert shares["north"] == pytest.approx(0.5, abs=0.1)


def document(release: Release) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(release.to_json()))
    return found


def changed(found: dict[str, Any], kind: str) -> Any:
    """A release that is none of the plan's."""
    if kind == "digest":
        found["plan_sha256"] = "0" * 64
    elif kind == "format":
        found["format"] = "privspec-plan/3.0"
    elif kind == "short":
        found["outputs"]["T"]["values"].pop()
    elif kind == "text":
        found["outputs"]["T"]["values"][0] = "many"
    elif kind == "endless":
        found["outputs"]["T"]["values"][0] = float("inf")
    elif kind == "empty":
        found["outputs"]["T"]["values"] = [-1.0] * len(found["outputs"]["T"]["values"])
    elif kind == "gone":
        del found["outputs"]["T"]
    else:
        return [1, 2, 3]
    return found


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("digest", "another plan"),
        ("format", "no release"),
        ("list", "no release"),
        ("short", "as many numbers"),
        ("text", "something else than numbers"),
        ("endless", "something else than numbers"),
        ("empty", "count no records"),
        ("gone", "no tables of counts"),
    ],
)
def test_what_is_no_release_of_the_plan_is_refused(plan: Plan, release: Release, kind: str, words: str) -> None:
    with pytest.raises(DataError, match=words) as found:
        plan.synthetic(changed(document(release), kind), 10)
    assert found.value.diagnostics[0].code == "PS0845"
    assert "many" not in str(found.value).split("as many")[0]


@pytest.mark.parametrize("records", [0, -3, 10**7])
def test_how_many_are_made_up(plan: Plan, release: Release, records: int) -> None:
    with pytest.raises(UsageError, match="are made up"):
        plan.synthetic(release, records)


def test_the_command_writes_records(
    plan: Plan, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    plan.write(tmp_path / "p.json")
    (tmp_path / "r.json").write_text(json.dumps(release.to_json()), "utf-8")
    assert run_command_line(["synthesize", "p.json", "r.json", "--records", "300", "-o", "rows.csv"]) == 0
    assert "300 made-up records" in capsys.readouterr().out
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 300
    assert {row["age"] for row in rows} == {"young", "old"}
    assert run_command_line(["synthesize", "p.json", "r.json", "--records", "3", "-o", "r.json"]) == 2
    assert run_command_line(["synthesize", "p.json", "r.json", "--records", "30", "-o", "rows.parquet"]) == 0
    assert polars.read_parquet(tmp_path / "rows.parquet").shape == (30, 3)
