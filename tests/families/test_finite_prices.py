"""Prices of what binds in a finite spec against the loss of the spec solved again."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from privspec.api import Problem
from privspec.families.family import Settings
from privspec.families.tables import family as prices
from privspec.families.tables.decision import SolvedTable, best_table
from privspec.families.tables.family import Finite

from .specs import model_of

CASES = {
    "local": """
parameters:
  epsilon = 1
variables:
  input x in 1..6
  output z in 1..6
background:
  x ~ uniform
loss:
  E[ |z - x| ]
privacy:
  z is epsilon-LDP wrt x
""",
    "delta": """
parameters:
  epsilon = 1
  delta = 0.02
variables:
  input x in 1..5
  output z in 1..5
background:
  x ~ uniform
loss:
  E[ (z - x)^2 ]
privacy:
  z is (epsilon, delta)-LDP wrt x
""",
    "metric": """
parameters:
  epsilon = 0.7
variables:
  input x in 0..6
  output z in 0..6
background:
  x ~ uniform
loss:
  E[ |z - x| ]
privacy:
  z is epsilon-metric-DP wrt x, distance manhattan
""",
    "accuracy": """
parameters:
  epsilon = 1
  bound = 1.5
variables:
  input x in 1..5
  output z in 1..5
background:
  x ~ uniform
loss:
  E[ (z - x)^2 ]
accuracy:
  E[ |z - x| ] <= bound
privacy:
  z is epsilon-LDP wrt x
""",
    "fair": """
parameters:
  epsilon = 1
  tolerance = 0.05
variables:
  input group in {young, old}
  input outcome in {well, ill}
  output report in {well, ill}
background:
  (group, outcome) ~ categorical([[45, 5], [25, 25]])
loss:
  E[ mismatch(report, outcome) ]
privacy:
  report is epsilon-LDP wrt outcome
fairness:
  report is independent of group, up to tolerance
""",
}


def decided(text: str, **parameters: Any) -> SolvedTable:
    model = model_of(text, **parameters)
    found = best_table(model, Finite().lower(model), Settings())
    assert isinstance(found, SolvedTable)
    return found


def actual(text: str, name: str) -> float:
    """The relative change of the loss when a parameter grows by a tenth."""
    now = decided(text)
    value = now.model.parameters[name]
    return decided(text, **{name: f"{value} * 11 / 10"}).loss / now.loss - 1


@pytest.mark.parametrize("name", CASES)
def test_prices_are_those_of_the_spec_solved_again(name: str) -> None:
    text = CASES[name]
    found = prices.binding_prices(decided(text))
    assert found
    for entry in found:
        assert entry["loss_change"] == pytest.approx(actual(text, entry["change"].split()[0]), rel=1e-6)
        assert text.split("\n")[entry["line"] - 1].strip() == entry["text"]


@pytest.mark.parametrize("name", ["local", "delta", "metric"])
def test_prices_of_slow_solutions_are_of_first_order(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = CASES[name]
    exact = {e["change"]: e["loss_change"] for e in prices.binding_prices(decided(text))}
    monkeypatch.setattr(prices, "RESOLVED", -1.0)
    found = prices.binding_prices(decided(text))
    assert {e["change"] for e in found} == set(exact)
    for entry in found:
        assert entry["first_order"]
        assert entry["loss_change"] == pytest.approx(exact[entry["change"]], rel=0.1)


def test_first_order_is_the_limit_of_small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    from fractions import Fraction

    text = CASES["local"]
    monkeypatch.setattr(prices, "STEP", Fraction(1001, 1000))
    (exact,) = prices.binding_prices(decided(text))
    monkeypatch.setattr(prices, "RESOLVED", -1.0)
    (found,) = prices.binding_prices(decided(text))
    assert found["loss_change"] == pytest.approx(exact["loss_change"], rel=2e-3)


def test_a_condition_that_binds_is_named_with_what_it_costs() -> None:
    text = """
variables:
  input x in 1..3
  output z in -5..9
background:
  x ~ uniform
  E[z | x] = x
loss:
  E[ (z - x)^2 ]
privacy:
  z is 1-LDP wrt x
"""
    found = {e["text"]: e for e in prices.binding_prices(decided(text))}
    free = decided(text.replace("  E[z | x] = x\n", "")).loss
    entry = found["E[z | x] = x"]
    assert entry["change"] == "leaving it out"
    assert entry["loss_change"] == pytest.approx(free / decided(text).loss - 1, rel=1e-6)


def test_what_does_not_bind_has_no_price() -> None:
    text = CASES["accuracy"].replace("bound = 1.5", "bound = 4")
    assert [e["change"] for e in prices.binding_prices(decided(text))] == ["epsilon 1 -> 1.1"]


CONFLICT = """
variables:
  input x in 1..4
  output z in 1..4
background:
  x ~ uniform
  E[z | x] = x
loss:
  E[ (z - x)^2 ]
privacy:
  z is 1-LDP wrt x
"""


@pytest.mark.parametrize("text", [CASES["local"], CASES["delta"], CASES["accuracy"], CONFLICT])
def test_no_clock_decides_what_a_plan_says(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which every look at the clock takes a minute gives the same plan, but for the time it took."""

    def body(**limits: float) -> dict[str, Any]:
        document = json.loads(Problem(text).solve(**limits).to_json())  # type: ignore[arg-type]
        document.pop("digest")
        document.get("remarks", {}).get("solver", {}).pop("seconds", None)
        return dict(document)

    fast = body()
    assert body(time_limit=1000.0) == fast
    for name in ("perf_counter", "monotonic", "process_time"):
        ticks = iter(range(0, 10**9, 60))
        monkeypatch.setattr(time, name, lambda ticks=ticks: float(next(ticks)))
    assert body() == fast


def test_prices_that_a_time_limit_ended_are_marked() -> None:
    found = decided(CASES["local"])
    late = replace(found, settings=replace(found.settings, until=0.0))
    notes: list[str] = []
    assert prices.binding_prices(late, notes) == []
    assert notes == ["the time limit ended the search for prices: there may be more lines that bind"]
    assert prices.decided(late).document()["remarks"]["solver"]["notes"] == notes
