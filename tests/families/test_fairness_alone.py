"""Fairness lines without a privacy line: the optimum, its proof, and that nobody calls it private."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from privspec.api import Problem
from privspec.core.diagnostics import BudgetError, SpecError
from privspec.execute.ledger import create
from privspec.kernel.writing import plan_digest
from privspec.plan import Plan

FAIR = """variables:
  input sex in {{F, M}}
  input score in 0..{top}
  output O in 0..{top}
background:
  (sex, score) ~ categorical({shares})
loss: E[ |O - score| ]
fairness:
  O is independent of sex{given}, up to {tolerance}
"""


def least_loss(shares: np.ndarray[Any, Any], tolerance: float, given: bool) -> float:
    """The linear program written down once more: a law of O for each sex and score, parity within the tolerance."""
    groups, values = shares.shape
    prior = shares / shares.sum()
    at = {cell: i for i, cell in enumerate(product(range(groups), range(values), range(values)))}
    cost = np.array([prior[s, y] * abs(o - y) for s, y, o in at])
    layers = [[y] for y in range(values)] if given else [list(range(values))]
    layers = [layer for layer in layers if all(prior[s, layer].sum() > 0 for s in range(groups))]
    slacks = len(layers) * values
    rows, bounds = [], []
    for number, layer in enumerate(layers):
        total = np.zeros(len(at) + slacks)
        for o in range(values):
            row = np.zeros(len(at) + slacks)
            for y in layer:
                row[at[0, y, o]] += prior[0, y] / prior[0, layer].sum()
                row[at[1, y, o]] -= prior[1, y] / prior[1, layer].sum()
            row[len(at) + number * values + o] = -1
            total[len(at) + number * values + o] = 1
            rows.append(row)
            bounds.append(0.0)
        rows.append(total)
        bounds.append(tolerance)
    sums = np.zeros((groups * values, len(at) + slacks))
    for (s, y, _), i in at.items():
        sums[s * values + y, i] = 1
    found = linprog(
        np.concatenate([cost, np.zeros(slacks)]), np.array(rows), bounds, sums, np.ones(groups * values), method="highs"
    )
    assert found.status == 0
    return float(found.fun)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.lists(st.integers(1, 9), min_size=3, max_size=3), min_size=2, max_size=2),
    st.sampled_from([0, 0.05, 0.2, 0.9]),
    st.booleans(),
)
def test_the_optimum_is_that_of_the_linear_program(shares: list[list[int]], tolerance: float, given: bool) -> None:
    text = FAIR.format(top=2, shares=shares, tolerance=tolerance, given=" given score" if given else "")
    plan = Problem(text).solve()
    assert plan.status == "optimal"
    assert plan.loss.value == pytest.approx(least_loss(np.array(shares), tolerance, given), abs=1e-7)
    assert plan.guarantees == ()


def offer() -> Plan:
    return Problem(FAIR.format(top=2, shares="[[30, 10, 10], [10, 15, 25]]", tolerance=0.05, given="")).solve()


def test_the_checker_proves_the_line_and_says_that_nothing_is_private() -> None:
    report = offer().verify()
    assert report.ok
    claims = {claim.name: claim for claim in report.claims}
    assert claims["fairness"].status == claims["bound"].status == "ok"
    assert "privacy" not in claims
    assert "No line asks for privacy: what is released may reveal the data." in report.told


@pytest.mark.parametrize("forged", ["table", "guarantee"])
def test_a_forged_plan_without_privacy_is_no_plan(forged: str) -> None:
    document = json.loads(offer().to_json())
    if forged == "table":
        size = len(document["mechanism"]["probabilities"][0])
        rows = [["1" if c == r % size else "0" for c in range(size)] for r in range(6)]
        document["mechanism"]["probabilities"] = rows
    else:
        protected = FAIR.format(top=2, shares="[[30, 10, 10], [10, 15, 25]]", tolerance=0.05, given="")
        other = Problem(protected + "privacy: O is 1-DP wrt (sex, score), replacing everything\n").solve()
        document["guarantees"] = json.loads(other.to_json())["guarantees"]
    assert not Plan(document | {"digest": plan_digest(document)}).verify().ok


def test_neither_pages_nor_release_call_it_private(tmp_path: Path) -> None:
    plan = offer()
    assert "**Not protected: the published result. Anyone may learn from it what is in score" in plan.explain("public")
    assert "No requirement protects anybody's privacy in this release" in plan.explain("public")
    assert "The guarantee" not in plan.explain("public")
    assert "may reveal anything about the inputs" in plan.explain("auditor")
    release = plan.run({"sex": ["F"], "score": [1]}, ledger=tmp_path / "own.ledger.db", new_ledger=True).to_json()
    assert (release["private"], release["guarantees"]) == (False, [])
    assert "asks for no privacy" in release["notice"]
    create(tmp_path / "data.ledger.db", ["epsilon=1"])
    with pytest.raises(BudgetError) as caught:
        plan.run({"sex": ["M"], "score": [2]}, ledger=tmp_path / "data.ledger.db")
    assert [d.code for d in caught.value.diagnostics] == ["PS1006"]


def test_the_author_is_warned() -> None:
    text = FAIR.format(top=1, shares="[[1, 2], [2, 1]]", tolerance=0, given="")
    assert {w.code for w in Problem(text).check().warnings} == {"PS0314"}


def test_where_all_is_not_finite_a_fairness_line_is_refused() -> None:
    text = "variables: input x in [0, 1]^4\n  output O\nloss: E[ ||O - x||^2 ]\nfairness: O is independent of x\n"
    with pytest.raises(SpecError) as caught:
        Problem(text).solve()
    assert [d.code for d in caught.value.diagnostics] == ["PS0501"]


def test_a_group_that_only_a_fairness_line_looks_at_is_not_protected_by_a_line_about_another_input() -> None:
    """Its chances differ between groups, so that O tells of sex what no line bounds."""
    text = FAIR.format(top=1, shares="[[30, 20], [10, 40]]", tolerance=0.05, given="")
    warnings = Problem(text + "privacy: O is 1-DP wrt score, replacing everything\n").check().warnings
    assert [(w.code, "input sex" in w.message) for w in warnings] == [("PS0314", True)]
