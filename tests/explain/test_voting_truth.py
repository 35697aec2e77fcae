"""Pages of votes in which no lie pays: among which rules they are optimal, and what was left out."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from privspec.core.spans import Source
from privspec.manual import template_text
from privspec.pipeline import Request, solve

from .plans import explain, summary

SCOPE = "every strategy-proof rule that meets the requirement"


@cache
def plan(name: str, old: str = "", new: str = "") -> dict[str, Any]:
    return solve(
        Request(Source(f"{name}.priv", template_text(name).replace(old, new) if old else template_text(name)))
    ).document


def compulsory() -> dict[str, Any]:
    return plan("dp_random_dictatorship_compulsory")


def test_the_scope_of_a_bound_is_said() -> None:
    text = " ".join(summary(compulsory(), width=120).split())
    assert "optimal, gap" in text and f"Optimal among {SCOPE}" in text
    assert f"No mechanism among those considered ({SCOPE}) has a loss below" in explain(compulsory(), "auditor", "md")
    assert "note lottery-bound, claim bound" in explain(compulsory(), "auditor", "md")
    assert f"| Optimal among | {SCOPE} |" in explain(compulsory(), "engineer", "md")


def test_without_the_line_it_is_a_bound_for_all_rules_and_not_reached() -> None:
    free = plan("dp_random_dictatorship_compulsory", "manipulation(O, vote) <= 0", "manipulation(O, vote) <= 0.5")
    text = " ".join(summary(free, width=120).split())
    assert "feasible: the best of" in text and "no rule that meets the requirement can have less than" in text
    assert "Optimal among" not in text
    assert "(every rule that meets the requirement) has a loss below" in explain(free, "auditor", "md")


def test_lies_are_told_in_words() -> None:
    assert "no voter gains by a lie (line 26)" in summary(compulsory(), width=120)
    found = {**compulsory(), "accuracy": [{**compulsory()["accuracy"][0], "value": 0.01, "bound": 0.02}]}
    text = " ".join(summary(found, width=120).split())
    assert "a lie adds at most 0.01 to the chances of what a voter wants, at most 0.02 asked for" in text


@pytest.mark.parametrize("reader", ["auditor", "engineer"])
def test_rules_that_were_considered_stand_beside_the_others(reader: str) -> None:
    found = plan("random_dictatorship")
    text = explain(found, reader, "md")
    for item in found["remarks"]["considered"]:
        assert f"{item['name']} (ruled out)" in text
        assert f"{item['name']}: {item['reason'][:30]}" in text
    figures = text[text.index("All rules that were compared") : text.index("What each rule keeps")]
    assert "permute-and-flip" not in figures


def test_a_summary_names_what_was_considered() -> None:
    assert "Considered, ruled out" in summary(plan("random_dictatorship"), width=120)
    assert "Considered" not in summary(compulsory(), width=120)
