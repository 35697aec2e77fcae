"""The page of a release: its limits hold as often as it says, and what is no release is refused without a traceback."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privspec.api import Problem
from privspec.cli import run_command_line
from privspec.core.diagnostics import UsageError
from privspec.explain.document import Document, Table
from privspec.explain.facts import Facts, Judgement
from privspec.explain.published import release_page
from privspec.explain.reading import facts
from privspec.plan import Plan

MEANS = """variables:
  input people in table(dept in {a, b, c}, pay in [0, 100])^90
  output heads "people"
  output paid
  output average = paid / heads
loss: E[ ||heads - histogram(people, by = {dept})||^2 ] + 1e-2 * E[ ||paid - sum(people.pay, by = {dept})||^2 ]
privacy: all outputs are LINE wrt people, adding or removing one record
"""
MEDIAN = """variables:
  input people in table(pay in 0..20)^90
  output typical
background: people.pay ~ uniform
loss: E[ |typical - median(people.pay)| ]
privacy: typical is 1-DP wrt people, adding or removing one record
"""
VECTOR = """variables:
  input x in [0, 1]^{size}
  output O
loss: E[ ||O - x||^2 ]
privacy: O is {line} wrt x, replacing one entry
"""
REPORT = """variables:
  input answer in {yes, no}
  output report in {yes, no}
loss: worst[ mismatch(report, answer) ]
privacy: report is 1-LDP wrt answer
"""
DATA = {"people": {"dept": ["a", "b", "c"] * 30, "pay": [float(place) for place in range(90)]}}
TRUE = {"heads": [30.0] * 3, "paid": [float(sum(range(first, 90, 3))) for first in range(3)]}
TIMES = 120


@cache
def plan(text: str) -> Plan:
    return Problem(text).solve()


@cache
def known(of: Plan) -> Facts:
    return facts(of.document, of.model(), Judgement())


def page(of: Plan, release: Mapping[str, Any]) -> Document:
    return release_page(known(of), of.document, release)


def tables(document: Document) -> Iterator[Table]:
    return (block for block in document.sections[0].blocks if isinstance(block, Table))


def limits(table: Table) -> list[tuple[float, float]]:
    first = table.header.index("from")
    return [(float(row[first].replace(",", "")), float(row[first + 1].replace(",", ""))) for row in table.rows]


@pytest.mark.slow
@pytest.mark.parametrize("line", ["1-DP", "0.5-zCDP", "(1, 1e-6)-DP"])
def test_limits_hold_in_as_many_releases_as_the_page_says(line: str) -> None:
    found = plan(MEANS.replace("LINE", line))
    true = TRUE | {"average": [paid / 30 for paid in TRUE["paid"]]}
    hits: dict[str, list[bool]] = {name: [] for name in true}
    for seed in range(TIMES):
        release = found.run(DATA, seed=seed).to_json()
        for name, table in zip(true, tables(page(found, release)), strict=True):
            hits[name] += [low <= value <= high for (low, high), value in zip(limits(table), true[name], strict=True)]
    error = 3 * np.sqrt(0.95 * 0.05 / TIMES)
    assert all(abs(np.mean(hits[name]) - 0.95) < error for name in TRUE)
    assert np.mean(hits["average"]) > 0.9


def test_a_page_of_a_release_shows_what_the_public_is_told_of_its_figures(tmp_path: Path) -> None:
    found = plan(MEANS.replace("LINE", "1-DP"))
    found.run(DATA, seed=1, output=tmp_path / "out.json")
    text = found.explain_release(tmp_path / "out.json")
    public = found.explain("public")
    said = public[public.index("## How exact") : public.index("## What this page does not")]
    assert said.strip() in text
    assert (
        "In about 95 of 100 releases of the same data, or more, what “people” and “paid” would be without noise" in text
    )
    assert "The limits of “average” are rough" in text
    assert "**Of this release it is said: simulation" in text


def test_words_have_no_limits_and_reports_are_not_listed(tmp_path: Path) -> None:
    release = plan(MEDIAN).run({"people": {"pay": [4] * 90}}, seed=1).to_json()
    (table,) = tables(page(plan(MEDIAN), release))
    assert table.header == ("figure",)
    assert table.rows[0][0] == str(release["outputs"]["typical"]["values"][0])
    of_reports = page(plan(REPORT), plan(REPORT).run({"answer": ["yes", "no"]}, seed=1).to_json())
    assert not [*tables(of_reports)]
    assert "is one person's report" in str(of_reports)


@pytest.mark.parametrize(("line", "sizes"), [("1-GDP", 1.96), ("1-DP", np.log(20) / np.sqrt(2))])
def test_limits_are_those_of_the_law_of_the_noise(line: str, sizes: float) -> None:
    """A normal law, and the two-sided exponential one, whose tails are heavier."""
    found = plan(VECTOR.format(size=3, line=line))
    release = found.run({"x": [0.5] * 3}, seed=1).to_json()
    (table,) = tables(page(found, release))
    deviation = release["outputs"]["O"]["standard_deviation"][0]
    for low, high in limits(table):
        assert (high - low) / 2 == pytest.approx(sizes * deviation, rel=0.04)


def test_limits_of_whole_numbers_are_whole() -> None:
    """|noise| of the law proportional to e^-|k| is at most 2 in 92.7 of 100 draws, and at most 3 in 97.3."""
    found = plan("""variables:
  input people in table(sex in {F, M})
  output O
loss: E[ ||O - histogram(people)||^2 ]
privacy: O is 1-DP wrt people, adding or removing one record
""")
    release = found.run({"people": {"sex": ["F", "M"]}}, seed=1).to_json()
    (table,) = tables(page(found, release))
    values = release["outputs"]["O"]["values"]
    assert limits(table) == [(value - 3, value + 3) for value in values]
    assert table.rows[0][1] == f"{values[0]:.0f}"


def test_long_outputs_are_shown_in_part() -> None:
    found = plan(VECTOR.format(size=300, line="1-GDP"))
    document = page(found, found.run({"x": [0.5] * 300}, seed=1).to_json())
    (table,) = tables(document)
    assert len(table.rows) == 200
    assert "the first 200 of 300 figures stand here" in str(document)


# --- what is no release ---------------------------------------------------------------------------


def without(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value in a document."""
    for key, value in document.items() if isinstance(document, dict) else enumerate(document):
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from without(value, (*path, key))


@pytest.mark.parametrize("other", [None, "x", [], {}, -1.5, "gone"], ids=str)
def test_a_release_that_was_changed_is_shown_or_refused(other: Any, tmp_path: Path) -> None:
    found, file = plan(MEDIAN), tmp_path / "out.json"
    whole = found.run({"people": {"pay": [4] * 90}}, seed=1).to_json()
    for path in without(whole):
        changed = copy.deepcopy(whole)
        inner = changed
        for key in path[:-1]:
            inner = inner[key]
        if other == "gone":
            del inner[path[-1]]
        else:
            inner[path[-1]] = other
        file.write_text(json.dumps(changed), "utf-8")
        try:
            assert found.explain_release(file)
        except UsageError as refused:
            assert refused.diagnostics[0].code == "PS0735"


def test_the_plan_beside_a_release_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    plan(MEANS.replace("LINE", "1-DP")).run(DATA, seed=1, output="out.json")
    plan(MEDIAN).write("another.plan.json")
    assert run_command_line(["explain", "out.json"]) == 2
    assert "PS0735" in capsys.readouterr().err
    assert run_command_line(["explain", "out.json", "--plan", "another.plan.json"]) == 2
    assert "a release of another plan" in capsys.readouterr().err
    plan(MEANS.replace("LINE", "1-DP")).write("means.plan.json")
    assert run_command_line(["explain", "out.json", "-o", "page.html"]) == 0
    assert "<table" in Path("page.html").read_text("utf-8")
    for wrong in (["explain", "out.json", "--for", "auditor"], ["explain", "means.plan.json", "--plan", "x.plan.json"]):
        assert run_command_line(wrong) == 2
