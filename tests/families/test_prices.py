"""Prices of binding requirements against the loss of the spec solved again."""

from __future__ import annotations

from fractions import Fraction
from math import log
from typing import Any

import pytest

from privspec import Problem
from privspec.families.gaussian.family import binding_prices

from .cases import OBSERVERS, PREFIX, SERIES, SQUARES
from .specs import chosen, problem_of, spec


def prices(text: str, **parameters: Any) -> list[dict[str, Any]]:
    choice = chosen(text, **parameters)
    assert choice.chosen.mechanism is not None
    return binding_prices(problem_of(text, **parameters), choice.chosen.mechanism, choice.chosen.loss)


def actual(text: str, name: str, value: str) -> float:
    """Relative change of the loss when a parameter grows by a tenth."""
    more = chosen(text, **{name: f"{value} * 11 / 10"}).chosen.loss
    return more / chosen(text, **{name: value}).chosen.loss - 1


def parametrised(measure: str, parameters: str, options: str = "") -> str:
    privacy = f"O is {measure} wrt x, replacing one entry"
    return f"parameters: {parameters}\n" + spec(SERIES, PREFIX, SQUARES, privacy, options)


@pytest.mark.parametrize(
    ("measure", "parameters", "name", "value"),
    [
        ("mu-GDP", "mu = 1", "mu", "1"),
        ("rho-zCDP", "rho = 0.2", "rho", "0.2"),
        ("(epsilon, 1e-6)-DP", "epsilon = 1", "epsilon", "1"),
        ("(2, epsilon)-RDP", "epsilon = 0.5", "epsilon", "0.5"),
    ],
)
@pytest.mark.parametrize("options", ["noise family gaussian", "noise family gaussian\n  noise at x, y"])
def test_one_requirement_has_an_exact_price(measure: str, parameters: str, name: str, value: str, options: str) -> None:
    text = parametrised(measure, parameters, options)
    (found,) = prices(text)
    assert found["loss_change"] == pytest.approx(actual(text, name, value), rel=1e-6)
    assert found["change"].startswith(f"{name} {value} -> ")
    assert found["line"] == 11
    assert found["text"] == f"O is {measure} wrt x, replacing one entry"


@pytest.mark.parametrize("family", ["laplace", "staircase"])
def test_pure_epsilon_is_priced_by_its_scales(family: str) -> None:
    """Staircases have a little less to gain from it where epsilon is small, and more where it is large."""
    text = parametrised("epsilon-DP", "epsilon = 1") + f"\noptions: noise family {family}"
    (found,) = prices(text)
    if family == "laplace":
        assert found["loss_change"] == pytest.approx(1 / 1.21 - 1)
    assert found["loss_change"] == pytest.approx(actual(text, "epsilon", "1"), rel=1e-6)


VIEWS = """parameters: press = 0.5
  audit = 1
""" + spec(
    *OBSERVERS[:3],
    "P is press-GDP wrt x, replacing one entry, seen by press; "
    "(O, P) is audit-GDP wrt x, replacing one entry, seen by auditors",
)
SEVERAL = [
    (VIEWS, [("press", "0.5"), ("audit", "1")]),
    # a tenth more of the first makes the third bind
    (
        """parameters: first = 1
  second = 0.3
variables: input x in [0, 1]^6
  input w in [0, 2]^3
  output A
  output B
loss: E[ ||A - prefix_sums(x)||^2 ] + E[ ||B - [sum(x) + w[1], w[2], w[3]]||^2 ]
privacy:
  A is first-GDP wrt x, replacing one entry
  all outputs are second-GDP wrt w, replacing one entry
  (A, B) is 1.02-GDP wrt x, replacing one entry
""",
        [("first", "1"), ("second", "0.3")],
    ),
]


def test_amounts_are_exact_in_the_plan_and_short_on_pages() -> None:
    privacy = "O is (log(3), 1e-6)-DP wrt x, replacing one entry"
    plan = Problem(spec(SERIES, PREFIX, SQUARES, privacy)).solve()
    assert "ε 1.09862 → 1.20848 lowers" in " ".join(plan.summary(100).split())
    (item,) = plan.document["remarks"]["binding"]
    assert Fraction(item["change"].split()[1]) == Fraction(plan.document["guarantees"][0]["epsilon"])


@pytest.mark.parametrize(("text", "amounts"), SEVERAL)
def test_several_requirements_are_priced_by_solving_again(text: str, amounts: list[tuple[str, str]]) -> None:
    found = prices(text)[: len(amounts)]
    for entry, (name, value) in zip(found, amounts, strict=True):
        assert entry["loss_change"] == pytest.approx(actual(text, name, value), rel=1e-4)
        assert "first_order" not in entry


def test_where_that_takes_too_long_prices_are_slopes_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from privspec.explain.reading import facts
    from privspec.explain.summary import _summary as summary

    monkeypatch.setattr("privspec.families.gaussian.family.RESOLVED", 0)
    found = prices(VIEWS)
    assert len(found) == 2
    for entry, (name, value) in zip(found, [("press", "0.5"), ("audit", "1")], strict=True):
        assert entry["first_order"]
        share = log(1 + entry["loss_change"]) / log(1 / 1.1)
        more, less = (chosen(VIEWS, **{name: f"{value} * {factor}"}).chosen.loss for factor in ("1.01", "0.99"))
        assert share == pytest.approx((log(less) - log(more)) / (log(1.01) - log(0.99)), rel=2e-3)
    # all budgets together scale the loss exactly
    product = (1 + found[0]["loss_change"]) * (1 + found[1]["loss_change"])
    assert product == pytest.approx(1 / 1.21, rel=1e-6)
    plan = Problem(VIEWS).solve()
    assert plan.verify().ok
    assert all(item.about for item in facts(plan.document).binding)
    assert "lowers the error by about" in summary(plan.document, width=100)
    assert "to first order" in plan.explain("engineer")


def test_noise_of_another_kind_than_the_bound_has_no_slope(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privspec.families.gaussian.family.RESOLVED", 0)
    privacy = "O is 1-DP wrt x, replacing one entry; O is 5-DP wrt x, replacing one entry"
    assert prices(spec(SERIES, PREFIX, SQUARES, privacy)) == []


def test_a_requirement_that_does_not_bind_has_no_price() -> None:
    privacy = "O is 1-GDP wrt x, replacing one entry; O is 5-GDP wrt x, replacing one entry"
    (found,) = prices(spec(SERIES, PREFIX, SQUARES, privacy))
    assert found["text"] == "O is 1-GDP wrt x, replacing one entry"
