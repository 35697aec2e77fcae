"""The least amount at which a table meets its accuracy lines: known optima, several lines, ends of the range."""

from __future__ import annotations

import copy
from fractions import Fraction
from math import log

import pytest

from privspec.api import Problem
from privspec.kernel import judge
from privspec.kernel.core.reading import JsonNode
from tests.plans import Document, resign, solved_text

COUNT = """\
variables:
  input answers in {0, 1}^10
  intermediate yes
  choose epsilon in [0, 10]
  output O in 0..10
background:
  yes = sum(answers)
  yes ~ uniform
accuracy: LIMIT
loss: epsilon
privacy: O is epsilon-DP wrt answers, replacing one record
"""
REPORT = """\
variables:
  input answer in {red, green, blue, yellow}
  choose epsilon in [LOW, HIGH]
  output report in {red, green, blue, yellow}
accuracy: worst[ mismatch(report, answer) ] <= 0.5
loss: 3 * epsilon
privacy: report is epsilon-LDP wrt answer
"""


def picked(plan: Document) -> float:
    return float(Fraction(plan["mechanism"]["scalars"]["epsilon"]))


@pytest.mark.parametrize(("limit", "epsilon"), [(1.41735574, 0.5), (0.72854448, 1.0), (0.24673186, 2.0)])
def test_a_count(limit: float, epsilon: float) -> None:
    """The mean absolute error of the best count of ten at an epsilon asks for just that epsilon."""
    plan = solved_text(COUNT.replace("LIMIT", f"E[ |O - yes| ] <= {limit}"))
    assert picked(plan) == pytest.approx(epsilon, rel=1e-6)
    assert plan["status"] == "optimal"


def test_a_report() -> None:
    """k-randomised response tells the truth half of the time at epsilon log(k - 1)."""
    plan = solved_text(REPORT.replace("LOW", "0.1").replace("HIGH", "10"))
    assert picked(plan) == pytest.approx(log(3), rel=1e-6)
    assert plan["loss"]["value"] == pytest.approx(3 * log(3), rel=1e-6)
    assert plan["status"] == "optimal"
    assert plan["problem"]["trust"]["kind"] == "nobody"


@pytest.mark.slow
def test_two_lines() -> None:
    """Of two lines the one that asks for more is what it costs, whichever stands first."""
    lines = ["E[ |O - yes| ] <= 0.72854448", "E[ (O - yes)^2 ] <= 9"]
    for some in (lines, lines[::-1]):
        plan = solved_text(COUNT.replace("LIMIT", "\n  " + "\n  ".join(some)))
        assert picked(plan) == pytest.approx(1.0, rel=1e-6)
        assert plan["status"] == "optimal"


def test_the_ends_of_the_range() -> None:
    low = solved_text(REPORT.replace("LOW", "2").replace("HIGH", "10"))
    assert picked(low) == 2
    assert low["status"] == "optimal"
    high = Problem(REPORT.replace("LOW", "0.1").replace("HIGH", "1"), {}).solve().document
    assert high["status"] == "infeasible"
    assert [line["line"] for line in high["conflicts"]] == [5, 7, 3]
    assert {way["line"]: way["loss"] for way in high["relaxations"]} == {5: None, 3: None}
    (longer,) = [way["change"] for way in high["relaxations"] if way["line"] == 3]
    assert float(longer.rpartition(" ")[2]) == pytest.approx(log(3), rel=2e-3)


def test_a_price_beside_errors() -> None:
    """No amount of a fine grid costs less, and none at all less than is proved: at most one in fifty below."""
    text = COUNT.replace("accuracy: LIMIT\n", "").replace("loss: epsilon", "loss: E[ |O - yes| ] + 0.5 * epsilon")
    plan = solved_text(text)
    value, low = plan["loss"]["value"], plan["loss"]["lower_bound"]
    assert 0.98 * value <= low <= value
    for epsilon, error in ((0.5, 1.41735574), (1.0, 0.72854448), (2.0, 0.24673186)):
        assert value <= error + 0.5 * epsilon
    at = picked(plan)
    fixed = text.replace("  choose epsilon in [0, 10]\n", "").replace(" + 0.5 * epsilon", "")
    for factor in (0.9, 1.1):
        other = solved_text(fixed.replace("epsilon-DP", f"{at * factor}-DP"))
        assert low <= value <= other["loss"]["value"] + 0.5 * at * factor


def test_a_price_that_is_too_high() -> None:
    """A report that hardly gains by an epsilon takes the lower end of the range."""
    loss = "worst[ mismatch(report, answer) ] + epsilon"
    text = REPORT.replace("LOW", "0.1").replace("HIGH", "10").replace("3 * epsilon", loss)
    plan = solved_text(text.replace("accuracy: worst[ mismatch(report, answer) ] <= 0.5\n", ""))
    assert picked(plan) == 0.1
    assert plan["status"] == "optimal"


def test_forged_tables() -> None:
    plan = solved_text(REPORT.replace("LOW", "0.1").replace("HIGH", "10"))

    def verdict(plan: Document) -> str:
        return "; ".join(f"{claim.name}: {claim.text}" for claim in judge(JsonNode(plan, "plan")).failed)

    assert verdict(plan) == ""
    lower = copy.deepcopy(plan)
    value = Fraction(plan["mechanism"]["scalars"]["epsilon"]) * Fraction(9, 10)
    lower["mechanism"]["scalars"]["epsilon"] = lower["guarantees"][0]["epsilon"] = str(value)
    lower["loss"]["value"] = float(3 * value)
    assert "privacy" in verdict(resign(lower))
    farther = copy.deepcopy(plan)
    farther["claims"]["bound"]["cells"][0]["upto"] = str(value * Fraction(12, 10))
    assert "bound" in verdict(resign(farther))
    doubled = copy.deepcopy(plan)
    (line,) = doubled["claims"]["bound"]["proofs"][0]["accuracy"]
    line["multiplier"] = 2.0
    assert "bound" in verdict(resign(doubled))
    stated = copy.deepcopy(plan)
    stated["claims"]["bound"]["cells"][0]["mu"] = ["1"]
    assert "is not what the problem and the mechanism say" in verdict(resign(stated))


def test_a_loss_that_may_be_below_zero_is_bounded_by_proofs_alone() -> None:
    """Without a proof the rest of the loss is at least what its cheapest answers cost, and not at least 0."""
    text = COUNT.replace("accuracy: LIMIT\n", "").replace("[0, 10]", "[0.1, 3]")
    plan = solved_text(text.replace("loss: epsilon", "loss: 0.5 * epsilon + E[ (O - yes) * (O - 3) ]"))
    loss = plan["loss"]
    assert judge(JsonNode(plan, "plan")).ok
    assert loss["lower_bound"] <= loss["value"] < -2.5
    assert loss["relative_gap"] < 0.01
    forged = copy.deepcopy(plan)
    forged["claims"]["bound"] = {"proofs": [], "cells": [{"upto": None, "proof": None, "mu": []}]}
    assert not judge(JsonNode(resign(forged), "plan")).ok
    forged["loss"] |= {"lower_bound": loss["value"], "relative_gap": 0.0}
    forged["status"] = "optimal"
    assert not judge(JsonNode(resign(forged), "plan")).ok
