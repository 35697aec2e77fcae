"""Laplace noise at places: the bound beside a numeric search over scales, and forged witnesses."""

from __future__ import annotations

import copy
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from privspec.kernel import judge
from privspec.kernel.core.reading import JsonNode
from privspec.kernel.worth.traces import cbrt_down
from tests.plans import Document, resign, solved_text

SPEC = """\
variables:
  input x in [0, 1]^3
  output O
loss: 0.5 * E[ (O[1] - x[1])^2 ] + 2 * E[ (O[2] - x[2])^2 ] + 4.5 * E[ (O[3] - x[3])^2 ]
privacy: O is 1-DP wrt x, UNIT
options:
  noise at x
  noise family laplace
"""


@pytest.fixture(scope="module")
def plan() -> Document:
    return solved_text(SPEC.replace("UNIT", "replacing everything"))


def test_the_split_of_a_budget_is_the_best(plan: Document) -> None:
    """(1 + 4^(1/3) + 9^(1/3))^3, certified."""
    assert round(plan["loss"]["value"], 4) == 101.6831
    assert plan["status"] == "optimal"
    assert plan["loss"]["among"] == "independent Laplace noise at x, unbiased"


def test_a_unit_of_each_number_has_the_whole_budget() -> None:
    found = solved_text(SPEC.replace("UNIT", "replacing one entry"))
    assert found["loss"]["value"] == pytest.approx(2 * 7)
    assert found["status"] == "optimal"


@pytest.mark.parametrize("seed", range(3))
def test_no_scales_are_better(seed: int) -> None:
    """Entries of unequal width and cost: a numeric search over the scales ends at the bound."""
    dice = np.random.default_rng(seed)
    widths, costs = dice.integers(1, 5, 3), dice.integers(1, 9, 3)
    lines = [f"  input x{i} in [0, {width}]" for i, width in enumerate(widths)]
    outputs = [f"  output O{i}" for i in range(3)]
    loss = " + ".join(f"{cost} * E[ (O{i} - x{i})^2 ]" for i, cost in enumerate(costs))
    text = "variables:\n" + "\n".join(lines + outputs) + f"\nloss: {loss}\n"
    text += "privacy: (O0, O1, O2) is 1-DP wrt (x0, x1, x2), replacing everything\n"
    found = solved_text(text + "options:\n  noise at x0, x1, x2\n  noise family laplace\n")

    def loss_at(shares: np.ndarray) -> float:
        budget = np.exp(shares) / np.exp(shares).sum()
        return float(np.sum(2 * costs * (widths / budget) ** 2))

    best = minimize(loss_at, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-9}).fun
    assert found["loss"]["lower_bound"] <= best * (1 + 1e-9)
    assert found["loss"]["lower_bound"] == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(27), Fraction(2, 10**30), Fraction(10**40, 7)])
def test_cube_roots_are_rounded_down(value: Fraction) -> None:
    root = cbrt_down(value)
    assert root**3 <= value < (root * (1 + Fraction(1, 2**60))) ** 3


def _witness(plan: Any) -> Any:
    return plan["claims"]["bound"]


FORGERIES: dict[str, tuple[Callable[[Any], object], str]] = {
    "weights of more than one": (lambda p: _witness(p).update(weights=["2"]), "more than one together"),
    "less weight": (lambda p: _witness(p).update(weights=["1/2"]), "no such mechanism has a loss below"),
    "a unit too many": (lambda p: _witness(p).update(weights=["1/2", "1/2"]), "entries in place of"),
    "a line that is not there": (lambda p: _witness(p).update(requirement=1), "not a whole number in its range"),
    "a key more": (lambda p: _witness(p).update(slack=None), "not known"),
    "about all noise": (lambda p: p["loss"].update(among="additive noise of the same pure epsilon, unbiased"), "about"),
    "a weight that is no number": (lambda p: _witness(p).update(weights=[0.5]), "not a whole number"),
    "a higher bound": (lambda p: p["loss"].update(lower_bound=p["loss"]["value"] * 1.1), "not what the problem"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries(plan: Document, name: str) -> None:
    forge, why = FORGERIES[name]
    forged = copy.deepcopy(plan)
    forge(forged)
    found = judge(JsonNode(resign(forged), "plan"))
    assert not found.ok
    assert why in "; ".join(f"{claim.name}: {claim.text}" for claim in found.failed)
