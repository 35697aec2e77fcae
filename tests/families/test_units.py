"""The same spec in other units: euros or cents, counts of any size, columns of very different scale."""

from __future__ import annotations

import json
from fractions import Fraction
from math import prod

import numpy as np
import pytest

from privspec.api import Problem
from privspec.execute.run import _run as run
from privspec.kernel import judge
from privspec.kernel.core.reading import JsonNode
from privspec.noise.samplers import SimulationRandomness

UNITS = [Fraction(10) ** power for power in (-6, -3, 3, 6, 9)]


def text(variables, background, loss, privacy, more=""):
    return (
        f"variables:\n  {variables}\n"
        + (f"background:\n  {background}\n" if background else "")
        + f"loss: {loss}\nprivacy:\n  {privacy}\n{more}"
    )


ENTRY = "all outputs are {} wrt x, replacing one entry"
RECORD = "all outputs are {} wrt t, adding or removing one record"
PREFIX = "input x in [0, {s}]^6\n  intermediate y\n  output O", "y = prefix_sums(x)"
TABLE = "input t in table(x in grid(0, {m}, {s}))"
MIXED = "input t in table(x in grid(0, {m}, {s}), y in grid(0, 20, 1))"

SPECS = {
    "sums": (2, text(*PREFIX, "E[ ||O - y||^2 ]", ENTRY.format("1-GDP"))),
    "pure sums": (2, text(*PREFIX, "E[ ||O - y||^2 ]", ENTRY.format("1-DP"))),
    "worst sum": (2, text(*PREFIX, "max(E[ (O[j] - y[j])^2 ] for j in 1..6)", ENTRY.format("(1, 1e-6)-DP"))),
    "noise at places": (2, text(*PREFIX, "E[ ||O - y||^2 ]", ENTRY.format("1-GDP"), "options: noise at x, y\n")),
    "accuracy": (
        2,
        text(*PREFIX, "E[ ||O - y||^2 ]", ENTRY.format("1-GDP"), "accuracy: E[ (O[1] - y[1])^2 ] <= 1.2 * ({s})^2\n"),
    ),
    "vectors": (
        2,
        text(
            "input x in l2_ball({s}, 3)^8\n  output O",
            "",
            "E[ ||O - prefix_sums(x)||^2 ]",
            "O is 1-GDP wrt x, replacing up to 2 records, exactly 4 apart",
        ),
    ),
    "variance": (4, text(f"{TABLE}\n  output O", "", "E[ (O - variance(t.x))^2 ]", RECORD.format("1-GDP"))),
    "moments of their own units": (
        0,
        text(
            f"{TABLE}\n  output a\n  output b\n  output c\n  output d",
            "",
            "E[ (a - count(t))^2 ] + E[ (b - sum(t.x))^2 ] / ({s})^2 + E[ (c - sum(t.x^2))^2 ] / ({s})^4"
            " + E[ (d - sum(t.x^3))^2 ] / ({s})^6",
            RECORD.format("1-GDP"),
        ),
    ),
    "columns of different units": (
        0,
        text(
            f"{MIXED}\n  output a\n  output b\n  output c",
            "",
            "E[ (a - sum(t.x))^2 ] / ({s})^2 + E[ (b - sum(t.y))^2 ] + E[ (c - count(t))^2 ]",
            RECORD.format("1-GDP"),
        ),
    ),
    "pure columns of different units": (
        0,
        text(
            f"{MIXED}\n  output a\n  output b",
            "",
            "E[ (a - sum(t.x))^2 ] / ({s})^2 + E[ (b - sum(t.y))^2 ]",
            RECORD.format("1-DP"),
        ),
    ),
    "inputs of different units": (
        0,
        text(
            "input x in [0, {s}]^3\n  input y in [0, 1]^3\n  output a\n  output b",
            "",
            "E[ ||a - prefix_sums(x)||^2 ] / ({s})^2 + E[ ||b - prefix_sums(y)||^2 ]",
            f"{ENTRY.format('1-GDP')}\n  all outputs are 1-GDP wrt y, replacing one entry",
        ),
    ),
}


def shown(number):
    return str(Fraction(number)) if Fraction(number).denominator == 1 else f"({Fraction(number)})"


def solved(name, unit):
    power, written = SPECS[name]
    source = written.format(s=shown(unit), m=shown(20 * unit))
    return json.loads(Problem(source).solve().to_json()), float(unit) ** power


def released(plan, unit):
    """A simulated release of the same data in these units, and the deviations of its noise, by output."""
    steps, inputs = np.array([0, 3, 7, 20, 20, 11, 4, 5.0]), plan["problem"]["blocks"][0]["held"]
    data = {"t": {"x": steps * float(unit), "y": steps[::-1]}, "y": np.linspace(0, 1, 3)}
    (shape,) = [tuple(held["shape"]) for held in inputs if held["name"] == "x"] or [(1,)]
    data["x"] = np.linspace(0, float(unit) / 2, prod(shape)).reshape(shape)
    return run(plan, {held["name"]: data[held["name"]] for held in inputs}, randomness=SimulationRandomness(3))


@pytest.mark.parametrize("unit", [pytest.param(one, marks=[pytest.mark.slow] * (one != UNITS[-1])) for one in UNITS])
@pytest.mark.parametrize("name", SPECS)
def test_a_spec_in_other_units_is_the_same_mechanism(name, unit):
    """Loss, bound, noise and releases go with the unit; the plan is verified and runs."""
    (plain, _), (plan, factor) = solved(name, Fraction(1)), solved(name, unit)
    assert judge(JsonNode(plan, "plan")).ok
    assert plan["loss"]["value"] == pytest.approx(plain["loss"]["value"] * factor, rel=1e-6)
    assert plan["loss"]["lower_bound"] == pytest.approx(plain["loss"]["lower_bound"] * factor, rel=2e-6)
    assert plan["status"] == plain["status"]
    assert plan["mechanism"]["family"] == plain["mechanism"]["family"]
    before, after = released(plain, Fraction(1)), released(plan, unit)
    for output, deviations in before.deviations.items():
        times = after.deviations[output] / deviations
        powers = np.log10(times) / np.log10(float(unit))
        assert powers == pytest.approx(np.rint(powers), abs=1e-6)
        off = (after.values[output] - before.values[output] * times) / after.deviations[output]
        assert np.abs(off).max() < 15


@pytest.mark.parametrize("measure", ["1-GDP", "1-DP", "(1, 1e-6)-DP"])
def test_moments_of_money_are_solved(measure):
    """Raw moments of 201 amounts, of which the fourth is 10^21 times the count; each is released."""
    asked = "[count(t), sum(t.x), sum(t.x^2), sum(t.x^3), sum(t.x^4)]"
    variables = "input t in table(x in grid(0, 200000, 1000))\n  output m"
    plan = json.loads(Problem(text(variables, "", f"E[ ||m - {asked}||^2 ]", RECORD.format(measure))).solve().to_json())
    assert judge(JsonNode(plan, "plan")).ok
    assert plan["loss"]["value"] <= 1.05 * plan["loss"]["lower_bound"] or measure != "1-GDP"
    found = run(plan, {"t": {"x": np.full(10**4, 2e5)}}, randomness=SimulationRandomness(1))
    off = (found.values["m"] - 1e4 * 2e5 ** np.arange(5)) / found.deviations["m"]
    assert np.abs(off).max() < 10


@pytest.mark.parametrize("most", ["grid(0, 200000, 1000)", pytest.param("0..200000", marks=pytest.mark.slow)])
def test_a_variance_of_money_is_solved(most):
    variables = f"input t in table(x in {most})\n  output v"
    loss = "E[ (v - variance(t.x))^2 ]"
    plan = json.loads(Problem(text(variables, "", loss, RECORD.format("1-DP"))).solve().to_json())
    assert plan["loss"]["value"] <= 1.25 * plan["loss"]["lower_bound"]
