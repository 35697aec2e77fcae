"""Measures of finite laws that no ratio says: what the kernel finds of two laws, and plans of tables in them."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import norm

from privspec.core.diagnostics import SpecError
from privspec.kernel import judge
from privspec.kernel.core.reading import JsonNode, Refused
from privspec.kernel.divergences import Curved
from privspec.kernel.measures import GAUSSIAN, RENYI, ZERO_CONCENTRATED, Measure
from tests.plans import mutate, resign, solved_text

WHOLE = 10**12
SPEC = """variables:
  input x in 0..3
  output z in 0..3
background: x ~ uniform
loss: E[ |z - x| ]
privacy: z is {measure} wrt x, replacing everything
"""
MEASURES = {"rho": "0.2-zCDP", "mu": "0.8-GDP", "epsilon": "(3, 0.7)-RDP"}


def laws(seed: int, size: int) -> tuple[list[int], list[int]]:
    draw = random.Random(seed)
    found = []
    for _ in range(2):
        cuts = sorted(draw.randrange(1, WHOLE) for _ in range(size - 1))
        found.append([b - a for a, b in zip([0, *cuts], [*cuts, WHOLE], strict=True)])
    return found[0], found[1]


def divergences(p: list[int], q: list[int], orders: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of orders above 1."""
    logs, ratios = np.log(np.array(p) / WHOLE), np.log(np.array(p) / np.array(q))
    return np.asarray(logsumexp(logs + (orders[:, None] - 1) * ratios, axis=1) / (orders - 1))


def divergence(p: list[int], q: list[int], order: float) -> float:
    return float(divergences(p, q, np.array([order]))[0])


def needed_rho(p: list[int], q: list[int]) -> float:
    orders, most = 1 + 10 ** (np.arange(-1200, 1200) / 400), 0.0
    for a, b in ((p, q), (q, p)):
        least = sum(v / WHOLE * math.log(v / w) for v, w in zip(a, b, strict=True))  # of order 1
        most = max(most, least, float((divergences(a, b, orders) / orders).max()))
    return most


def needed_mu(p: list[int], q: list[int]) -> float:
    """Over all tests, whatever their order: more sets than any proof needs."""
    most = 0.0
    for chosen in range(1, 2 ** len(p) - 1):
        power, size = (sum(v for i, v in enumerate(law) if chosen >> i & 1) / WHOLE for law in (p, q))
        most = max(most, norm.ppf(power) - norm.ppf(size))
    return most


def curve(measure: Measure, amounts: dict[str, Fraction]) -> Curved:
    found = measure.condition(amounts)
    assert isinstance(found, Curved)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_laws_satisfy_what_they_need_and_nothing_less(seed: int) -> None:
    p, q = laws(seed, 2 + seed % 4)
    asked: list[tuple[Measure, str, float, dict[str, Fraction]]] = [
        (ZERO_CONCENTRATED, "rho", needed_rho(p, q), {}),
        (GAUSSIAN, "mu", needed_mu(p, q), {}),
        (RENYI, "epsilon", max(divergence(p, q, 3), divergence(q, p, 3)), {"order": Fraction(3)}),
    ]
    for measure, name, least, more in asked:
        for share, holds in ((1 + 3e-5, True), (1 - 1e-5, False)):
            amounts = more | {name: Fraction(least * share)}
            assert curve(measure, amounts).holds(p, q, WHOLE) is holds, (measure, least, share)
            assert curve(measure, amounts).holds(q, p, WHOLE) is holds


def test_gaussian_noise_that_is_cut_into_many_values_is_next_to_its_measures() -> None:
    """The law of a Gaussian on 60 cells and that of its neighbour need nearly the mu and the rho of the Gaussian."""
    edges = [-math.inf, *(k / 6 for k in range(-30, 36)), math.inf]
    found = []
    for mean in (0.0, 1.0):
        cells = [round((norm.cdf(b - mean) - norm.cdf(a - mean)) * WHOLE) for a, b in pairwise(edges)]
        cells[30] += WHOLE - sum(cells)
        found.append(cells)
    assert curve(GAUSSIAN, {"mu": Fraction(1001, 1000)}).holds(*found, WHOLE)
    assert not curve(GAUSSIAN, {"mu": Fraction(99, 100)}).holds(*found, WHOLE)
    assert curve(ZERO_CONCENTRATED, {"rho": Fraction(1, 2)}).holds(*found, WHOLE)
    assert not curve(ZERO_CONCENTRATED, {"rho": Fraction(49, 100)}).holds(*found, WHOLE)


def test_a_value_that_only_one_law_has_breaks_every_measure() -> None:
    for measure, amounts in (
        (ZERO_CONCENTRATED, {"rho": Fraction(100)}),
        (GAUSSIAN, {"mu": Fraction(30)}),
        (RENYI, {"order": Fraction(2), "epsilon": Fraction(100)}),
    ):
        assert not curve(measure, amounts).holds([1, WHOLE - 1], [0, WHOLE], WHOLE)
        assert curve(measure, amounts).holds([0, 7, WHOLE - 7], [0, 7, WHOLE - 7], WHOLE)


@pytest.mark.parametrize("seed", range(30))
def test_linear_bounds_hold_of_all_laws_that_satisfy_the_measure(seed: int) -> None:
    """For any level and any t, whatever a forged plan writes there."""
    draw = random.Random(seed)
    p, q = laws(seed, 4)
    at = JsonNode([draw.choice([0.0, 1e-9, draw.random(), 10 * draw.random(), 1e6]) for _ in p], "at")
    rho, mu = Fraction(needed_rho(p, q) * (1 + 1e-6)), Fraction(needed_mu(p, q) * (1 + 1e-6))
    order = 1 + 5 * draw.random()
    renyi = Fraction(max(divergence(p, q, order), divergence(q, p, order)) * (1 + 1e-6))
    for measure, amounts, level in (
        (ZERO_CONCENTRATED, {"rho": rho}, draw.choice([1, 1.5, 1 + draw.random(), 20])),
        (RENYI, {"order": Fraction(order), "epsilon": renyi}, 7.0),
        (GAUSSIAN, {"mu": mu}, draw.uniform(-5, 5)),
    ):
        most, up, down = curve(measure, amounts).support(
            JsonNode(level, "level"), JsonNode(2.5, "multiplier"), at, len(p)
        )
        pairs = zip(p, q, up, down, strict=True)
        assert sum(u * a - v * b for a, b, u, v in pairs) <= most * WHOLE, (measure, level)


@pytest.mark.parametrize(
    ("level", "multiplier", "at"),
    [(0.5, 1, [1.0]), (2, -1, [1.0]), (2, 1, [-1.0]), (2, 1, [1.0, 1.0]), (2000, 1, [1.0]), (2, "1", [1.0])],
)
def test_what_is_no_linear_bound_is_refused(level: float, multiplier: Any, at: list[float]) -> None:
    items = JsonNode(level, "level"), JsonNode(multiplier, "multiplier"), JsonNode(at, "at")
    with pytest.raises(Refused):
        curve(ZERO_CONCENTRATED, {"rho": Fraction(1)}).support(*items, 1)


@pytest.mark.parametrize("name", MEASURES)
def test_tables_are_optimal_in_every_measure(name: str) -> None:
    """Certified, and better than the best table of the pure epsilon that implies the measure."""
    plan = solved_text(SPEC.format(measure=MEASURES[name]))
    report = judge(json.dumps(plan))
    assert report.ok, report.failed
    assert plan["status"] == "optimal"
    assert plan["guarantees"][0]["achieved"][name] == plan["guarantees"][0][name]
    pure = {"rho": math.sqrt(0.4), "mu": 2 * math.atanh(2 * norm.cdf(0.4) - 1), "epsilon": 0.7}[name]
    implied = solved_text(SPEC.format(measure=f"{math.floor(pure * 1e6) / 1e6}-DP"))
    assert plan["loss"]["value"] < implied["loss"]["value"] - 1e-3


def test_two_values_are_told_apart_as_much_as_a_measure_allows() -> None:
    """Of two values the best table is randomised response at the largest epsilon that satisfies the measure."""
    text = SPEC.replace("0..3", "0..1")
    loss = solved_text(text.format(measure="0.8-GDP"))["loss"]["value"]
    assert loss == pytest.approx(norm.cdf(-0.4), rel=1e-6)
    loss = solved_text(text.format(measure="0.2-zCDP"))["loss"]["value"]
    law = [round(loss * WHOLE), WHOLE - round(loss * WHOLE)]
    assert needed_rho(law, law[::-1]) == pytest.approx(0.2, rel=1e-5)


Change = Callable[[dict[str, Any]], dict[str, Any]]


def _moved(plan: dict[str, Any]) -> dict[str, Any]:
    """A table that is a little nearer to the truth."""
    rows = [[Fraction(p) for p in row] for row in plan["mechanism"]["probabilities"]]
    step = Fraction(1, 2**20)
    rows[0][0], rows[0][3] = rows[0][0] + step, rows[0][3] - step
    return mutate(plan, ("mechanism", "probabilities"), [[str(p) for p in row] for row in rows])


FORGERIES: dict[str, tuple[Change, str]] = {
    "another law": (_moved, "privacy"),
    "less than what is reached": (
        lambda plan: mutate(
            plan, ("guarantees", 0, "achieved"), dict.fromkeys(plan["guarantees"][0]["achieved"], "0.01")
        ),
        "privacy",
    ),
    "a pure epsilon": (lambda plan: mutate(plan, ("guarantees", 0, "achieved"), {"epsilon": "1/1000"}), "privacy"),
    "more than is asked for": (
        lambda plan: mutate(plan, ("guarantees", 0, "achieved"), dict.fromkeys(plan["guarantees"][0]["achieved"], "9")),
        "privacy",
    ),
    "a bound above the truth": (
        lambda plan: mutate(plan, ("loss", "lower_bound"), plan["loss"]["value"]),
        "",
    ),
    "rows that are not compared": (
        lambda plan: mutate(plan, ("claims", "supports", 0, 1), plan["claims"]["supports"][0][2]),
        "bound",
    ),
    "another line": (lambda plan: mutate(plan, ("claims", "supports", 0, 0), 1), "bound"),
    "a negative multiplier": (lambda plan: mutate(plan, ("claims", "supports", 0, 4), -1.0), "bound"),
}


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_plans_are_refused(forgery: str, name: str) -> None:
    change, claim = FORGERIES[forgery]
    report = judge(json.dumps(resign(change(solved_text(SPEC.format(measure=MEASURES[name]))))))
    assert not report.ok
    assert not claim or any(claim in str(one) for one in report.failed), report.failed


def test_distances_with_a_delta_are_judged_at_every_distance() -> None:
    text = SPEC.replace(", replacing everything", ", distance euclidean")
    plan = solved_text(text.format(measure="(1, 0.05)-metric-DP"))
    assert plan["status"] == "optimal"
    assert judge(json.dumps(plan)).ok
    pure = solved_text(text.format(measure="1-metric-DP"))
    assert plan["loss"]["value"] < pure["loss"]["value"]
    rows = [[float(Fraction(p)) for p in row] for row in plan["mechanism"]["probabilities"]]
    for a in range(4):
        for b in range(4):
            ratio = math.exp(abs(a - b))
            assert sum(max(0.0, p - ratio * q) for p, q in zip(rows[a], rows[b], strict=True)) <= 0.05 + 1e-12
    for forged in (
        mutate(plan, ("guarantees", 0, "achieved", "delta"), "0.01"),
        mutate(plan, ("guarantees", 0, "achieved", "epsilon"), "0.9"),
        _moved(plan),
    ):
        assert any("privacy" in str(one) for one in judge(json.dumps(forged)).failed)


@pytest.mark.parametrize("measure", ["1-zCDP", "1.5-GDP", "(3, 2)-RDP"])
def test_lines_hold_beside_a_measure(measure: str) -> None:
    """Conditions on averages hold exactly."""
    wide = SPEC.replace("output z in 0..3", "output z in -3..6").replace("loss:", "  E[z | x] = x\nloss:")
    plan = solved_text(wide.format(measure=measure))
    report = judge(json.dumps(plan))
    assert report.ok, report.failed
    rows = [[Fraction(p) for p in row] for row in plan["mechanism"]["probabilities"]]
    assert [sum(p * z for p, z in zip(row, range(-3, 7), strict=True)) for row in rows] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("measure", "loss", "inputs", "outputs"),
    [
        ("0.1-zCDP", "E[ (z - x)^2 ] + 0.3 * worst[ |z - x| ]", "1..5", "1..2"),
        ("0.01-zCDP", "worst[ |z - x| ]", "1..3", "1..3"),
        ("0.2-GDP", "worst[ |z - x| ]", "1..4", "1..6"),
        ("(2, 0.1)-RDP", "E[ mismatch(z, x) ]", "1..4", "1..6"),
        ("(3, 1)-RDP", "E[ (z - x)^2 ]", "1..3", "1..4"),
    ],
)
def test_outputs_that_are_of_no_use_and_worst_cases(measure: str, loss: str, inputs: str, outputs: str) -> None:
    """Columns that are never drawn have no ratio of their own; bounds hold there as well."""
    text = SPEC.replace("input x in 0..3", f"input x in {inputs}").replace("output z in 0..3", f"output z in {outputs}")
    plan = solved_text(text.replace("E[ |z - x| ]", loss).format(measure=measure))
    report = judge(json.dumps(plan))
    assert report.ok, report.failed
    assert plan["status"] == "optimal"


def test_what_no_table_meets_is_said_with_its_lines_and_a_scale_that_is_chosen_by_one_line() -> None:
    tight = SPEC.format(measure="0.2-zCDP").replace("privacy:", "accuracy: E[ mismatch(z, x) ] <= 0.1\nprivacy:")
    plan = solved_text(tight)
    assert "no table meets all of these lines" in json.dumps(plan)
    shaped = """variables:
  input x in 1..3
  choose alpha in [0.1, 0.5]
  output z in 1..3
  intermediate estimate
background:
  x ~ uniform
  E[z | x] = alpha * x
  estimate = z / alpha
loss: E[ (estimate - x)^2 ]
privacy: z is 1-zCDP wrt x, replacing everything
"""
    with pytest.raises(SpecError) as caught:
        solved_text(shaped)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("PS0501", "solve cannot compute rho-zCDP beside a scale that is chosen")
