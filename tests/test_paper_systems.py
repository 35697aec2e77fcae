"""Ramon & Basu 2020, sections 3.4 and 4, sentence by sentence: the spec in which each is seen, or why none shows it.

Where a sentence does not hold as it stands, the spec is the counterexample.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest

from privspec.core.spans import Source
from privspec.manual import list_templates, template_text
from privspec.pipeline import Request, solve
from privspec.plan import Plan
from tests.plans import solved, solved_text

SENTENCES: dict[str, tuple[str, ...]] = {
    "steps still need to be combined into a global solution": ("two_studies", "city_report"),
    "adding up epsilons and deltas exhausts the budget quickly": ("two_studies",),
    "programs that share variables may be solved better together than apart": ("two_observers",),
    "encryption or noise: both strategies as parts of one program": ("secure_sum_or_noise",),
    "the choice will be 0 or 1 in the optimum": ("shared_budget",),
    "users state requirements and strategies, the solver compares them": ("secure_sum_or_noise", "shared_budget"),
    "clear statements help to explain what a system guarantees": ("two_observers",),
    "users ask exactly to what extent data are protected": ("two_observers",),
    "requirements of fairness may be constraints as well": ("fair_response",),
}
"""Sentences in short, and the templates in which they are seen."""
WITHOUT = {
    "does the approach remain tractable at scale": "measured in tests/benchmarks, not shown by one spec",
    "there is no consensus on one notion of fairness": "four notions are lines of the language",
}


@lru_cache
def plan(name: str) -> Plan:
    return Plan(solved_text(template_text(name)))


def loss(name: str) -> float:
    return float(plan(name).document["loss"]["value"])


def test_every_sentence_has_a_spec_or_a_reason() -> None:
    names = {template.name for template in list_templates()}
    assert all(set(specs) <= names for specs in SENTENCES.values())
    assert all(WITHOUT.values())


def test_adding_up_amounts_wastes_the_budget() -> None:
    found = solved("two_studies", N=4)
    others = {one["name"]: one["loss"] for one in found["alternatives"]}
    basic = next(value for name, value in others.items() if "basic composition" in name)
    assert basic > found["loss"]["value"]


def test_shared_variables_are_solved_better_together() -> None:
    """One line over two answers about the same data: noise shared by both against two releases on half of it each."""
    head = "variables:\n  input x in [0, 1]^6\n  output O\n"
    line = "privacy: O is {}-GDP wrt x, replacing one entry\n"

    def alone(target: str, mu: str) -> float:
        text = f"{head}loss: E[ ||O - {target}||^2 ]\n{line.format(mu)}"
        return float(solve(Request(Source("alone.priv", text))).document["loss"]["value"])

    text = (
        "variables:\n  input x in [0, 1]^6\n  output P\n  output Q\n"
        "loss: E[ ||P - prefix_sums(x)||^2 ] + E[ ||Q - suffix_sums(x)||^2 ]\n"
        "privacy: (P, Q) is 1-GDP wrt x, replacing one entry\n"
    )
    together = float(solve(Request(Source("together.priv", text))).document["loss"]["value"])
    # Gaussian losses are c / mu^2: the best split of mu^2 = 1 costs (sqrt c1 + sqrt c2)^2
    apart = sum(alone(target, "1") ** 0.5 for target in ("prefix_sums(x)", "suffix_sums(x)")) ** 2
    assert together < 0.9 * apart


def test_a_choice_on_a_shared_budget_is_not_0_or_1_by_itself() -> None:
    """The relaxed optimum lies between; as a plan it would spend more than there is, and is none."""
    found: dict[str, Any] = plan("shared_budget").document
    assert loss("shared_budget") == pytest.approx(171.322, abs=1e-3)
    assert found["status"] == "optimal"
    assert "168.716" in str(found)


def test_the_price_of_encryption_decides() -> None:
    found = plan("secure_sum_or_noise").document
    assert found["design"]


def test_fairness_is_a_constraint() -> None:
    assert plan("fair_response").document["fairness"]


def test_pages_answer_what_is_protected() -> None:
    assert "of 100" in plan("two_observers").explain("public")
