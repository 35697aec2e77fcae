"""What clipping costs by a law of the data: a limit that is chosen weighs it against noise."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privspec.api import Problem
from privspec.families.decision import sealed
from privspec.kernel import judge
from privspec.plan import Plan
from privspec.problem.cells import mean_within
from privspec.problem.clipping import _moved, limited

PAY = """variables:
  choose C in {10, 20, 50, 100}
  input people in table(pay in [0, C])^1000
  output s
background: people.pay ~ lognormal(2, 1)
loss: E[ (s - sum(people.pay))^2 ]
privacy: s is 1-DP wrt people, adding or removing one record
"""
WEIGHED = """variables:
  choose C in {1, 2, 4}
  input x in [-C, C]^6
  output O
  output P
background: x ~ normal(0.5, 1)
loss: E[ (O - sum(x))^2 ] + 2 * E[ (P - x[1] + x[2])^2 ]
privacy: (O, P) is 3-GDP wrt x, replacing one entry
"""
GROUPS = """variables:
  input people in table(pay in [0, 3], sex in {F, M})^40
  output s
background:
  people.pay ~ exponential(1)
  people.sex ~ categorical([1, 3])
loss: E[ (s - sum(people.pay, sex = F))^2 ]
privacy: s is 1-DP wrt people, replacing one record
"""


def lost(plan: Plan) -> dict[str, float]:
    found = plan.document["design"]["problem"]["alternatives"]
    return {one["values"][0]: float(Fraction(one["clipped"]["lost"])) for one in found if one.get("clipped")}


def simulated(draw: Any, low: float, high: float, terms: np.ndarray, rounds: int = 40_000) -> float:
    """The mean square of how far weighted sums of rows move when numbers are clipped."""
    numbers = draw((rounds, terms.shape[1]))
    return float(((np.clip(numbers, low, high) - numbers) @ terms.T).__pow__(2).sum(axis=1).mean())


def test_a_limit_that_is_chosen_weighs_bias_against_noise() -> None:
    plan = Problem(PAY).solve()
    assert plan.verify().ok
    assert plan.document["design"]["problem"]["alternatives"][plan.document["design"]["chosen"]]["values"] == ["100"]
    draw = np.random.default_rng(3)
    for limit, known in lost(plan).items():
        found = simulated(lambda size: draw.lognormal(2, 1, size), 0, float(limit), np.ones((1, 1000)), 3000)
        assert found == pytest.approx(known, rel=0.1)
    assert plan.loss.value == pytest.approx(lost(plan)["100"] + 19181, rel=1e-4)
    assert "clipped to the chosen limits" in plan.explain("auditor")
    assert any("adds 64293.2 to the loss, which counts that" in one["text"] for one in plan.document["assumptions"])


def test_both_ends_and_several_errors_count() -> None:
    plan, draw = Problem(WEIGHED).solve(), np.random.default_rng(4)
    terms = np.array([[1.0] * 6, [2**0.5, -(2**0.5), 0, 0, 0, 0]])
    for limit, known in lost(plan).items():
        found = simulated(lambda size: draw.normal(0.5, 1, size), -float(limit), float(limit), terms)
        assert found == pytest.approx(known, rel=0.05, abs=1e-3)


def test_limits_that_are_given_say_what_the_law_lets_expect() -> None:
    plan, draw = Problem(GROUPS).solve(), np.random.default_rng(5)
    numbers, counted = draw.exponential(1, (100_000, 40)), draw.random((100_000, 40)) < 0.25
    found = float((((np.minimum(numbers, 3) - numbers) * counted).sum(axis=1) ** 2).mean())
    (text,) = [one["text"] for one in plan.document["assumptions"] if "is about clipped values" in one["text"]]
    assert float(text.split(" adds ")[1].split()[0]) == pytest.approx(found, rel=0.05)


def test_without_a_law_nothing_is_known() -> None:
    plan = Problem(PAY.replace("background: people.pay ~ lognormal(2, 1)\n", "")).solve()
    assert lost(plan) == {}
    assert any("Nothing is known of what clipping people.pay" in one["text"] for one in plan.document["assumptions"])


@pytest.mark.parametrize("change", [{"lost": "1"}, {"mean": "0"}, {"square": "0"}, {"column": "other"}])
def test_the_kernel_derives_what_is_lost(change: dict[str, str]) -> None:
    plan = copy.deepcopy(Problem(PAY).solve().document)
    plan["design"]["problem"]["alternatives"][3]["clipped"] |= change
    failed = judge(json.dumps(sealed({key: value for key, value in plan.items() if key != "digest"}))).failed
    assert any("clipped" in one.text or "moved" in one.text for one in failed)


@pytest.mark.parametrize(
    ("law", "mean", "square"), [("uniform(0, 30)", 20 / 3, 800 / 9), ("uniform(-5, 5)", -5 / 4, 25 / 6)]
)
def test_a_uniform_law_beyond_the_limits(law: str, mean: float, square: float) -> None:
    """Into [0, 10]: of numbers up to 30 two thirds, of those from -5 on one half are moved."""
    text = (
        PAY.replace("  choose C in {10, 20, 50, 100}\n", "")
        .replace("[0, C]", "[0, 10]")
        .replace("lognormal(2, 1)", law)
    )
    model = Problem(text).check()
    (one,) = limited(model)
    moved, squared = _moved(model, one)
    assert abs(float(moved)) == pytest.approx(abs(mean))
    assert float(squared) == pytest.approx(square)
    middle = mean_within(model, model.models[0], Fraction(0), Fraction(10))
    assert float(middle) == pytest.approx(25 / 3 if mean > 0 else 5 / 4)
