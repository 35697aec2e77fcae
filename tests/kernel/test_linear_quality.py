"""What the kernel says of losses, averages, places of noise and bounds of additive noise: forgeries are refused."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import nextafter
from typing import Any

import pytest

from privspec.core.spans import Source
from privspec.families.decision import Decided, sealed
from privspec.families.family import Settings
from privspec.families.gaussian.family import Linear
from privspec.families.gaussian.problem import LinearSystem, lower
from privspec.kernel import judge
from privspec.pipeline import Request, check
from tests.families.specs import spec
from tests.plans import dense

Plan = dict[str, Any]
LINE = "O is 1-GDP wrt x, replacing one entry"
PREFIX = ("input x in [0, 1]^6; intermediate y; output O", "y = prefix_sums(x)")
SPECS = {
    "prefix": spec(*PREFIX, privacy=LINE),
    "delta": spec(*PREFIX, privacy="O is (1, 1e-6)-DP wrt x, replacing one entry", options="noise family gaussian"),
    "pure": spec(*PREFIX, privacy="O is 1-DP wrt x, replacing one entry", options="noise family laplace"),
    "at inputs": spec(*PREFIX, privacy=LINE, options="noise at x"),
    "at both": spec(*PREFIX, privacy=LINE, options="noise at x, y"),
    "worst": spec(*PREFIX, loss="max(E[ (O[j] - y[j])^2 ] for j in 1..6)", privacy=LINE),
    "accurate": spec(*PREFIX, loss="E[ ||O - y||^2 ]\naccuracy:\n  E[ (O[1] - y[1])^2 ] <= 1.1", privacy=LINE),
    "equal": spec(
        "input x in [0, 1]^4; output O",
        "",
        "E[ (O - sum(x))^2 ]\naccuracy:\n  E[ (O - sum(x))^2 ] <= 1",
        LINE,
    ),
    "nobody": spec(*PREFIX, privacy=LINE, options="trust nobody"),
    "observers": spec(
        "input x in [0, 1]^6; intermediate y; output O; output P",
        "y = prefix_sums(x)",
        "E[ ||O - y||^2 ] + 3 * E[ (P - sum(x))^2 ]",
        "O is 1-GDP wrt x, replacing one entry, seen by a; (O, P) is 2-GDP wrt x, replacing one entry, seen by b",
    ),
    "records": spec(
        "input x in table(a in 1..12); intermediate y; output O",
        "y = prefix_sums(histogram(x))",
        privacy="O is 1-GDP wrt x, replacing one record",
    ),
    "inputs": spec(
        "input x in [0, 1]^3; input z in [-1, 2]^3; intermediate y; output O",
        "y = prefix_sums(x) + z",
        privacy="O is 1-GDP wrt x, replacing one entry; O is 2-GDP wrt z, replacing one entry",
    ),
    "ranges": spec("input x in [0, 1]^8; intermediate y; output O", "y = range_sums(x)", privacy=LINE),
}


@cache
def solved(name: str) -> str:
    model = check(Request(Source(f"{name}.priv", SPECS[name])))
    system = lower(model)
    assert isinstance(system, LinearSystem)
    decision = Linear().decide(model, system, Settings(alternatives=False))
    assert isinstance(decision, Decided)
    return json.dumps(decision.document())


def plan_of(name: str) -> Plan:
    found: Plan = json.loads(solved(name))
    return found


def failures(plan: Plan) -> str:
    body = {key: value for key, value in plan.items() if key != "digest"}
    return "; ".join(f"{claim.name}: {claim.text}" for claim in judge(json.dumps(sealed(body))).failed)


@pytest.mark.parametrize("name", SPECS)
def test_plans_hold(name: str) -> None:
    plan = plan_of(name)
    assert not failures(plan)
    assert plan["status"] == ("feasible" if name == "pure" else "optimal")


def restated(plan: Plan, bound: float) -> None:
    """Another bound, with the gap that goes with it."""
    value = plan["loss"]["value"]
    gap = (Fraction(value) - Fraction(bound)) / Fraction(value)
    plan["loss"]["lower_bound"], plan["loss"]["relative_gap"] = bound, gap.numerator / gap.denominator


def listed(array: Plan) -> list[int]:
    rows: list[int] = array["rows"]
    return rows


def bound(plan: Plan) -> Plan:
    found: Plan = plan["claims"]["bound"]
    return found


def vectors(plan: Plan) -> Plan:
    found: Plan = bound(plan)["vectors"]
    return found


def columns(plan: Plan, number: int = 0) -> tuple[list[list[list[int]]], Callable[[list[list[list[int]]]], None]]:
    """The differences of a requirement as lists of [input, amount], and what writes others in their place."""
    found = bound(plan)["differences"][number]["columns"]
    width, rows = found["shape"][1], [[] for _ in range(found["shape"][0])]
    for at, value in zip(listed(found["places"]), listed(found["values"]), strict=True):
        rows[at // width].append([at % width, value])

    def write(changed: list[list[list[int]]]) -> None:
        flat = sorted((r * width + i, value) for r, row in enumerate(changed) for i, value in row)
        found["shape"] = [len(changed), width]
        for key, entries in (("places", [at for at, _ in flat]), ("values", [value for _, value in flat])):
            found[key]["rows"], found[key]["shape"] = entries, [len(flat)]

    return rows, write


Attack = Callable[[Plan], object]


def higher_bound(plan: Plan) -> None:
    restated(plan, plan["loss"]["lower_bound"] + 0.9 * (plan["loss"]["value"] - plan["loss"]["lower_bound"]))


def scaled_vectors(plan: Plan) -> None:
    vectors(plan)["rows"] = [2 * v for v in listed(vectors(plan))]


def turned_vectors(plan: Plan) -> None:
    vectors(plan)["rows"] = [-v for v in listed(vectors(plan))]


def wrong_shape(plan: Plan) -> None:
    vectors(plan)["shape"] = vectors(plan)["shape"][::-1] if len(set(vectors(plan)["shape"])) > 1 else [4, 9]


def split_differences(plan: Plan) -> None:
    bound(plan)["differences"].append(copy.deepcopy(bound(plan)["differences"][0]))


def larger_difference(plan: Plan) -> None:
    rows, write = columns(plan)
    rows[0][0][1] *= 3
    write(rows)


def joint_differences(plan: Plan) -> None:
    rows, write = columns(plan)
    write([[*row, [(row[0][0] + 1) % len(rows), row[0][1]]] for row in rows])


def other_input(plan: Plan) -> None:
    rows, write = columns(plan)
    write([[[at + 3, value] for at, value in row] for row in rows])


def other_obligation(plan: Plan) -> None:
    first, second = bound(plan)["differences"]
    first["requirement"], second["requirement"] = second["requirement"], first["requirement"]


def hidden_errors(plan: Plan) -> None:
    shape = vectors(plan)["shape"]
    vectors(plan)["rows"][(shape[0] - 1) * shape[1]] += 2**30


def shares(plan: Plan) -> None:
    bound(plan)["loss_weights"][0] = str(Fraction(bound(plan)["loss_weights"][0]) + Fraction(1, 7))


def small_mu(plan: Plan) -> None:
    one = bound(plan)["differences"][0]
    one["mu"] = str(Fraction(one["mu"]) * Fraction(999, 1000))


def set_at(*path: Any, value: Any) -> Attack:
    def attack(plan: Plan) -> None:
        inner: Any = plan
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value(inner[path[-1]]) if callable(value) else value

    return attack


def biased(plan: Plan) -> None:
    matrix = dense(plan, "reconstruction")
    matrix["rows"][0] += matrix["rows"][0] // 1000 + 1000


def lowered(value: float) -> float:
    return nextafter(value, 0.0)


ATTACKS: list[tuple[str, Attack, str]] = [
    ("prefix", higher_bound, "bound"),
    ("at both", higher_bound, "bound"),
    ("observers", higher_bound, "bound"),
    ("records", higher_bound, "bound"),
    ("prefix", set_at("loss", "relative_gap", value=0.0), "relative_gap"),
    ("pure", set_at("status", value="optimal"), "bound: the loss is within"),
    ("prefix", set_at("status", value="feasible"), "bound: the loss is within"),
    ("prefix", set_at("claims", "bound", value=None), "loss.lower_bound|loss.among"),
    ("prefix", scaled_vectors, "bound"),
    ("at inputs", turned_vectors, "points away"),
    ("prefix", turned_vectors, "points away"),
    ("prefix", wrong_shape, "vectors"),
    ("at both", wrong_shape, "vectors"),
    ("observers", wrong_shape, "vectors"),
    ("prefix", split_differences, "stands twice"),
    ("prefix", larger_difference, "bound"),
    ("prefix", joint_differences, "bound"),
    ("inputs", other_input, "no difference of neighbours"),
    ("observers", other_obligation, "bound|does not see"),
    ("observers", hidden_errors, "does not see"),
    ("delta", small_mu, "more than the measure allows"),
    ("delta", set_at("claims", "bound", "differences", 0, "mu", value=None), "mu"),
    ("prefix", set_at("claims", "bound", "differences", 0, "mu", value="1/2"), "mu"),
    ("worst", shares, "sum to one"),
    ("worst", set_at("claims", "bound", "loss_weights", value=None), "loss_weights"),
    ("worst", set_at("loss", "kind", value="expected"), "kind"),
    ("accurate", set_at("claims", "bound", "prices", 0, value="-1"), "prices"),
    ("accurate", set_at("claims", "bound", "prices", value=None), "vectors|among"),
    ("prefix", set_at("claims", "bound", "scope", value="sites"), "scope"),
    ("prefix", set_at("claims", "bound", "scope", value="messages"), "scope"),
    ("at both", set_at("claims", "bound", "scope", value="errors"), "among"),
    ("prefix", set_at("loss", "among", value="all mechanisms"), "among"),
    ("pure", set_at("loss", "among", value="Gaussian noise of any covariance, unbiased"), "among"),
    ("prefix", set_at("loss", "value", value=lowered), "loss.value"),
    ("pure", set_at("loss", "value", value=lowered), "loss.value"),
    ("prefix", set_at("loss", "expression", value="E[ ||O||^2 ]"), "expression"),
    ("prefix", set_at("loss", "units", value="squared units of y"), "units"),
    ("prefix", set_at("mechanism", "output_covariance", 0, 1, value=lowered), "output_covariance"),
    ("prefix", set_at("mechanism", "output_covariance", value=None), "output_covariance"),
    ("prefix", set_at("mechanism", "sites", 0, "variance", 2, value=lowered), "sites"),
    ("prefix", set_at("mechanism", "sites", value=[]), "sites"),
    ("at both", set_at("mechanism", "sites", 0, "at", value="O"), "does not let noise enter at O"),
    ("at both", set_at("mechanism", "sites", 0, "variance", 0, value=lambda v: v * 1.01), "sites"),
    ("at inputs", set_at("mechanism", "sites", 0, "variance", 0, value=-1.0), "sites"),
    ("at inputs", set_at("mechanism", "sites", 0, value={"at": "O", "covariance": "full", "variance": [1.0]}), "sites"),
    ("pure", set_at("mechanism", "sites", 0, "scale", 0, value=lowered), "sites"),
    ("pure", set_at("mechanism", "sites", 0, "at", value="y"), "sites"),
    ("prefix", biased, "unbiased"),
    ("nobody", biased, "unbiased|loss.value|output_covariance"),
    ("prefix", set_at("mechanism", "executed", "output_grid", value="2^-4"), "rounding"),
    ("prefix", set_at("mechanism", "executed", "steps", 0, value="2^-4"), "rounding"),
    (
        "prefix",
        set_at("mechanism", "executed", "noise", "scale", value="1/2"),
        "privacy|output_covariance",
    ),
    ("pure", set_at("mechanism", "executed", "noise", "scales", 0, value="1e-300"), "privacy|below the grid"),
    ("accurate", set_at("accuracy", value=[]), "accuracy"),
    ("accurate", set_at("accuracy", 0, "value", value=lowered), "accuracy"),
    ("accurate", set_at("accuracy", 0, "bound", value=2.0), "accuracy"),
    (
        "records",
        set_at("claims", "bound", "differences", 0, "columns", "rows", 0, value=lambda v: v + 1),
        "no mixture",
    ),
    ("observers", set_at("claims", "bound", "slack", value=None), "bound|away"),
]


@pytest.mark.parametrize(("name", "attack", "why"), ATTACKS)
def test_forgeries_are_refused(name: str, attack: Attack, why: str) -> None:
    plan = plan_of(name)
    attack(plan)
    assert re.search(why, failures(plan)), failures(plan)


def test_a_lower_bound_that_is_lower_holds() -> None:
    plan = plan_of("pure")
    restated(plan, plan["loss"]["lower_bound"] * 0.5)
    assert not failures(plan)


def test_a_line_that_is_met_with_equality() -> None:
    """Noise has a little more than its exact size, 1e-11 of it: so much room a line of accuracy has."""
    plan = plan_of("equal")
    assert plan["accuracy"][0]["value"] > plan["accuracy"][0]["bound"] == 1.0
    assert not failures(plan)


def test_halved_columns_prove_no_more() -> None:
    """A difference written as two of half its size, with the same vectors, is as good as once."""
    plan = plan_of("at inputs")
    twice, write = columns(plan)
    write([column for column in twice for _ in range(2)])
    rows, count = vectors(plan)["rows"], vectors(plan)["shape"][1]
    vectors(plan)["rows"] = [v for v in rows for _ in range(2)]
    vectors(plan)["shape"][1] = 2 * count
    assert not failures(plan)
    higher_bound(plan)
    assert "bound" in failures(plan)
