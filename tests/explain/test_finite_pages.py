"""What holds of the pages of plans that draw from a table."""

from __future__ import annotations

import json

import pytest

from privspec.explain.reports import READERS

from .plans import TABLES, explain, facts, page, plan, plan_html
from .test_html import outline


@pytest.mark.parametrize("reader", READERS)
def test_labels_cannot_inject(reader: str) -> None:
    found = plan("commuting")
    evil = "<script>alert(1)</script>"
    (block,) = found["problem"]["blocks"]
    for labels in (found["mechanism"]["inputs"], found["mechanism"]["outputs"], block["rows"], block["columns"]):
        labels[0] = evil
    found["remarks"]["recognised"]["name"] = evil
    text = explain(found, reader, "html")
    outline(text)
    assert "<script" not in text
    assert "<script" not in plan_html(found)


@pytest.mark.parametrize("name", TABLES)
def test_what_is_drawn_stands_in_the_fragment(name: str) -> None:
    assert "What is drawn" in plan_html(plan(name))


def test_facts_of_a_table_are_machine_readable() -> None:
    found = json.loads(page("commuting", "engineer", "json"))["facts"]
    mechanism = found["mechanism"]
    assert mechanism["family"] == found["family"] == "table"
    assert mechanism["rows"]["value"] == mechanism["columns"]["value"] == 4
    assert mechanism["recognised"]["name"] == "k-randomised response"
    assert mechanism["truths"][0]["output"] == "report"
    assert mechanism["errors"][0]["figure"]["value"] == pytest.approx(0.5246, abs=1e-4)
    assert found["claims"][0]["question"]["largest_ratio"]["text"] == "2.72"
    steps = json.loads(page("kilometres", "auditor", "json"))["facts"]["claims"][0]["question"]["steps"]
    assert [step["distance"]["text"] for step in steps] == ["1", "2", "5", "20"]


@pytest.mark.parametrize("change", [{"inputs": []}, {"probabilities": [["1/2", "1/2"]]}, {"prior": ["1"]}])
def test_tables_that_do_not_fit_are_refused(change: dict[str, object]) -> None:
    found = plan("commuting")
    found["mechanism"] |= change
    with pytest.raises(ValueError, match=r"other inputs|another size|not known"):
        facts(found)
