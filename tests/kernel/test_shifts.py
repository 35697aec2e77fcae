"""Laws in steps and bounds of shifts, as the kernel judges them: against plain sums, and forged."""

from __future__ import annotations

from fractions import Fraction
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from privspec.solvers.stepped import solve, stairs
from scipy.optimize import linprog

from privspec.kernel import judge
from privspec.kernel.core.linear import Linear, read_linear
from privspec.kernel.core.problem import read_frame
from privspec.kernel.core.reading import JsonNode, Refused
from privspec.kernel.laws.staircase import Stepped
from privspec.kernel.worth.shifts import ADDITIVE, EVERY, SCOPE, ByLaw, Outside, least, shown
from tests.plans import dense, mutate, resign, solved_text

NUMBER = """
variables:
  input x in {domain}
  output O
loss: {loss}
privacy: O is {amount}-DP wrt x, {neighbours}
"""
SQUARE, SIZE = "E[(O - sum(x))^2]", "E[|O - sum(x)|]"
NOISE = ("mechanism", "executed", "noise", "laws", 0)


def plan_of(
    amount: str, loss: str = SQUARE, domain: str = "[0, 1]^50", neighbours: str = "adding or removing one record"
) -> dict[str, Any]:
    return solved_text(NUMBER.format(domain=domain, loss=loss, amount=amount, neighbours=neighbours))


def law(weights: tuple[int, ...], *, width: int = 1, period: int = 1, ratio: str = "0", point: int = 0) -> Stepped:
    return Stepped(Fraction(1), width, period, Fraction(ratio), point, weights)


LAWS = [
    law((5, 3, 3, 1)),
    law((4, 4, 2, 1), width=3),
    law((7, 2), width=3, point=3),
    law((6, 6, 2), period=3, ratio="3/8"),
    law((3, 5, 2), period=2, ratio="1/2", width=5, point=1),
    law((1,), ratio="3/8"),
]


def chances(one: Stepped, reach: int = 4000) -> dict[int, float]:
    """The law on lattice steps, far into its tails, by its definition."""
    found = {0: float(one.point)}
    for cell in range(-reach, reach + 1):
        for inside in range(one.width):
            at = cell * one.width + inside - one.width // 2
            found[at] = found.get(at, 0.0) + float(one.weight(cell)) / one.width
    total = sum(found.values())
    return {at: chance / total for at, chance in found.items()}


@pytest.mark.parametrize("one", LAWS)
def test_figures_of_laws_are_sums_over_the_lattice(one: Stepped) -> None:
    listed = chances(one, 120)
    assert float(one.square) == pytest.approx(sum(p * at * at for at, p in listed.items()))
    assert float(one.size) == pytest.approx(sum(p * abs(at) for at, p in listed.items()))
    for steps in range(1, 3 * one.width + 2):
        plain = max(
            sum(max(0.0, p - exp(1) * listed.get(at + t, 0.0)) for at, p in listed.items()) for t in range(steps + 1)
        )
        assert plain - 1e-9 <= float(one.delta_up(steps))
        if steps % one.width == 0:
            # the point may share its place with a cell, of which the bound takes no notice
            spare = float(Fraction(one.point) / one.total) if one.point else 0.0
            assert float(one.delta_up(steps)) <= plain + spare + 1e-9
    assert one.delta_up(0) == 0


@pytest.mark.parametrize("one", [LAWS[0], LAWS[1], LAWS[3]])
@pytest.mark.parametrize("together", [2, 3, 6])
def test_whole_answers_are_judged_at_the_shifts_that_they_make(one: Stepped, together: int) -> None:
    listed, most = chances(one, 120), 4 * together
    plain = max(
        sum(max(0.0, p - exp(1) * listed.get(at + t, 0.0)) for at, p in listed.items())
        for t in range(together, most + 1, together)
    )
    found = float(one.delta_up(most, together))
    assert plain - 1e-9 <= found <= float(one.delta_up(most))
    if together % one.width == 0:
        assert found == pytest.approx(plain, abs=1e-9)


def test_noise_between_whole_numbers_is_for_counts_alone() -> None:
    """Of a count it may be judged by moves of one; the same law on numbers of an interval lets through more."""
    count = plan_of("(1, 0.05)", "E[(O - count(x, age >= 5))^2]", "table(age in 0..9)")
    assert judge(plan_text(count)).ok
    assert count["mechanism"]["executed"]["grid"] != "1"
    assert count["loss"]["value"] < 1.0587
    assert count["loss"]["relative_gap"] <= 1e-3
    law = count["mechanism"]["executed"]["noise"]["laws"][0]
    plan = plan_of("(1, 0.05)", domain="[0, 1]^50")
    refused(mutate(plan, NOISE, law))
    coarser = mutate(count, ("mechanism", "executed", "grid"), "1/64")
    refused(coarser)


def test_the_least_of_squares_between_points_is_found() -> None:
    own = [Fraction(3), Fraction(0), Fraction(-4), Fraction(0)]

    def value(d: float) -> float:
        k = min(int(d), 2)
        return d * d + float(own[k]) + (d - k) * float(own[k + 1] - own[k])

    plain = min(value(i / 1000) for i in range(3001))
    assert float(least(own, 2)) == pytest.approx(plain, abs=1e-5)
    assert least(own, 1) == -2


@pytest.mark.parametrize(
    ("amount", "loss", "value"),
    [("1", SQUARE, 1.918104), ("1", SIZE, 0.959517), ("(0.5, 0.01)", SQUARE, None), ("(2, 0.05)", SIZE, None)],
)
def test_no_mechanism_is_much_better(amount: str, loss: str, value: float | None) -> None:
    plan = plan_of(amount, loss)
    report = judge(plan_text(plan))
    assert report.ok, [claim for claim in report.claims if not claim.holds]
    assert plan["loss"]["among"] == EVERY
    assert plan["loss"]["relative_gap"] <= 1e-3
    if value is not None:
        assert plan["loss"]["value"] == pytest.approx(value, abs=1e-5)


def plan_text(plan: dict[str, Any]) -> str:
    import json

    return json.dumps(plan)


def test_a_fixed_number_of_replaced_records_bounds_additive_noise() -> None:
    assert plan_of("1", neighbours="replacing one record")["loss"]["among"] == ADDITIVE


def test_records_that_cannot_be_small_have_no_bound_of_shifts() -> None:
    plan = plan_of("1", domain="[1, 3]^50")
    assert plan["loss"]["among"] not in (ADDITIVE, EVERY)
    assert judge(plan_text(plan)).ok


COUNTS = """
variables:
  input people in table(age in 0..3)
  output O
loss: E[||O - {value}||^2]
privacy: O is {amount}-DP wrt people, {neighbours}
"""


@pytest.mark.parametrize(
    ("amount", "neighbours", "among", "status"),
    [
        ("1", "adding or removing one record", EVERY, "optimal"),
        ("1", "replacing one record", EVERY, "feasible"),
        # a delta allows mechanisms of no pure epsilon: these are bounded as well, by next to as much
        ("(1, 1e-9)", "adding or removing one record", EVERY, "optimal"),
    ],
)
def test_no_mechanism_of_any_kind_has_better_counts(amount: str, neighbours: str, among: str, status: str) -> None:
    """Twice what unbiased mechanisms have at least: of a histogram it is the loss of whole noise of a geometric law."""
    text = COUNTS.format(value="histogram(people, by = {age})", amount=amount, neighbours=neighbours)
    plan = solved_text(text)
    assert judge(plan_text(plan)).ok
    assert plan["status"] == status
    assert plan["loss"]["among"] == among
    if neighbours.startswith("adding"):
        most = 1e-9 if amount == "1" else 1e-6
        assert plan["loss"]["lower_bound"] == pytest.approx(4 * 2 * exp(1) / (exp(1) - 1) ** 2, rel=most)


def test_the_least_square_of_a_law_of_pure_epsilon() -> None:
    """The multipliers of the note, at many errors and amounts: never below 0, and worth x^2 - V at most."""
    for epsilon in (0.1, 1.0, 4.0):
        grown = exp(epsilon)
        least_square = 2 * grown / (grown - 1) ** 2

        def price(x: float, grown: float = grown) -> float:
            return x * x / (grown - 1) + (2 * grown * x + grown) / (grown - 1) ** 2

        for i in range(-8, 9):
            x = i / 16
            assert price(x) >= 0
            assert -price(x) - price(-x) <= x * x - least_square + 1e-9 * least_square
            for k in range(1, 5):
                paid = grown * price(x + k - 1) - price(x + k)
                assert paid == pytest.approx((x + k) ** 2 - least_square, rel=1e-9, abs=1e-9 * least_square)


def test_bounds_of_pure_epsilon_are_not_about_more_mechanisms_than_shown() -> None:
    """Numbers that stand once each and are replaced are no data of any size."""
    text = NUMBER.format(domain="[0, 1]^3", loss="E[||O - x||^2]", amount="1", neighbours="replacing one entry")
    plan = solved_text(text)
    assert judge(plan_text(plan)).ok
    assert plan["loss"]["among"] == ADDITIVE
    assert "about" in refused(mutate(plan, ("loss", "among"), EVERY))
    more = mutate(plan, ("loss", "lower_bound"), plan["loss"]["lower_bound"] * 1.001)
    refused(more)


def refused(plan: dict[str, Any]) -> str:
    report = judge(plan_text(plan))
    assert not report.ok
    return " ".join(claim.text for claim in report.claims if not claim.holds)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("epsilon", "1/2", "achieved|stated|says"),
        ("width", 2, "even"),
        ("ratio", "1/4", "stated"),
        ("ratio", "1", "fall"),
        ("point", 10**12, "stated"),
        ("period", 10**6, "period"),
        ("period", 199, ""),
    ],
)
def test_forged_laws_are_refused(key: str, value: object, reason: str) -> None:
    text = refused(mutate(plan_of("1"), (*NOISE, key), value))
    assert any(part in text for part in reason.split("|")), text


NO_NOISE = {"width": 1, "period": 1, "ratio": "0", "weights": {"shape": [1], "unit": "1", "rows": [1]}}


@pytest.mark.parametrize(
    ("forged", "first", "reason"),
    [
        ({}, 1, "answers that move together"),
        (NO_NOISE, 0, "too many cells apart"),
        ({"epsilon": "2"}, 0, "several epsilons"),
    ],
)
def test_laws_of_several_answers_are_refused(forged: dict[str, Any], first: int, reason: str) -> None:
    """Moves in several answers let through more than their sum in one, even under one law; another may be no noise."""
    plan = plan_of("1")
    executed, sites = plan["mechanism"]["executed"], plan["mechanism"]["sites"]
    honest = executed["noise"]["laws"][0]
    executed["noise"]["laws"].append(honest | forged)
    dense(plan).update(shape=[2, 50], rows=[first] * 50 + [1] * 50)
    matrix = dense(plan, "reconstruction")
    matrix |= {"shape": [1, 2], "rows": matrix["rows"] * 2}
    sites[0]["parameters"]["rows"] = 2
    assert reason in refused(resign(plan))


def test_figures_of_parties_are_epsilons_of_a_law_and_not_its_delta() -> None:
    """A law of next to no noise has no delta at an epsilon of 1000."""
    plan = solved_text((Path(__file__).parents[1] / "questions" / "everybody_chooses.priv").read_text())
    law = Stepped(Fraction(1000), (100 * 2**30) // 800 | 1, 1, Fraction(1, 3), 0, (1,))
    grid, mechanism, (guarantee,) = Fraction(1, 2**30), plan["mechanism"], plan["guarantees"]
    assert Fraction(mechanism["executed"]["grid"]) == grid
    stated = {"epsilon": "1000", "width": law.width, "period": 1, "ratio": "1/3", "point": 0}
    stated["weights"] = {"shape": [1], "unit": "1", "rows": [1]}
    mechanism["family"], mechanism["executed"]["noise"] = "stepped", {"shape": "stepped", "laws": [stated]}
    parameters = {"scale": str(grid), "rows": 1}
    mechanism["sites"] = [{"at": "paid", "shape": "stepped", "parameters": parameters, "grid": str(grid)}]
    variance = float(law.square * grid**2)
    mechanism["output_covariance"], plan["status"], plan["claims"]["bound"] = [[variance]], "feasible", None
    plan["loss"] |= {"value": variance, "lower_bound": None, "relative_gap": None, "among": ""}
    for achieved in ({"epsilon": "1/2"}, {"epsilon": "1/2", "delta": "0"}, {"epsilon": "1000", "delta": "0"}):
        guarantee |= {"because": ["stepped", "post-processing"], "achieved": achieved}
        report = judge(JsonNode(resign(plan), "plan"))
        assert not report.ok and ("alone" in str(report.failed) or "more than some party" in str(report.failed))


def test_forged_weights_are_refused() -> None:
    plan = plan_of("(2, 0.05)")
    weights = plan["mechanism"]["executed"]["noise"]["laws"][0]["weights"]
    assert judge(plan_text(plan)).ok
    weights["shape"] = [1]
    assert "length" in refused(resign(plan)) or "entries" in refused(resign(plan))


@pytest.mark.parametrize(
    ("key", "value"),
    [("cells", 1), ("cells", 100), ("shifts", [1]), ("shifts", []), ("start", 5), ("start", -1), ("requirement", 1)],
)
def test_forged_bounds_are_refused(key: str, value: object) -> None:
    plan = plan_of("(2, 0.05)")
    refused(mutate(plan, ("claims", "bound", key), value))


@pytest.mark.parametrize(("amount", "bound"), [("1", {"cells": 3}), ("1", {"requirement": 1}), ("(2, 0.05)", {})])
def test_closed_forms_are_of_pure_epsilon_alone(amount: str, bound: dict[str, Any]) -> None:
    plan = plan_of(amount)
    refused(mutate(plan, ("claims", "bound"), {"scope": "shifts", "requirement": 0} | bound))


def test_a_bound_is_not_stated_higher_than_derived() -> None:
    plan = plan_of("1")
    low = plan["loss"]["lower_bound"] * (1 + 1e-6)
    changed = mutate(mutate(plan, ("loss", "lower_bound"), low), ("loss", "relative_gap"), 0.0)
    refused(changed)


def test_a_bound_is_not_about_more_than_it_shows() -> None:
    plan = plan_of("1", neighbours="replacing one record")
    assert "about" in refused(mutate(plan, ("loss", "among"), EVERY))


def test_multipliers_below_zero_are_refused() -> None:
    plan = plan_of("(2, 0.05)")
    matrix = plan["claims"]["bound"]["multipliers"]
    one = {"shape": [1], "unit": "1", "rows": [0]}
    forged = matrix | {"places": one, "values": one | {"rows": [-1]}}
    assert "below 0" in refused(mutate(plan, ("claims", "bound", "multipliers"), forged))


def test_laws_out_of_proportion_are_refused() -> None:
    with pytest.raises(Refused):
        law((1, 1), width=1).delta_up(10**6)


@pytest.mark.parametrize("epsilon", [0.05, 0.4, 1.0, 3.0])
@pytest.mark.parametrize("power", [1, 2])
def test_no_law_of_pure_epsilon_is_below_the_closed_form(epsilon: float, power: int) -> None:
    """Staircases on ever finer grids come down to it and not below; geometric laws have that of whole moves."""
    found = float(ByLaw(Fraction(1), power, None).at(Fraction(epsilon)))
    losses = [stairs(epsilon, cells, power, spread=True)[1] for cells in (1, 7, 50, 400, 4000)]
    assert min(losses) >= found * (1 - 1e-9)
    assert losses[-1] == pytest.approx(found, rel=2e-3)
    whole = float(ByLaw(Fraction(1), power, 1).at(Fraction(epsilon)))
    assert whole == pytest.approx(stairs(epsilon, 1, power)[1], rel=1e-9)
    assert ByLaw(Fraction(1), power, None).at(Fraction(0)) == 0


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("parts", [1, 2, 3, pytest.param(6, marks=pytest.mark.slow)])
def test_no_law_of_moves_in_steps_is_below_the_closed_form(epsilon: float, power: int, parts: int) -> None:
    """It is what the program finds on points and between them, and what the best staircase of the two has."""
    found = float(ByLaw(Fraction(1), power, parts).at(Fraction(epsilon)))
    assert found == pytest.approx(ByLaw(Fraction(1), power, parts).near(epsilon), rel=1e-9)
    on, between = (stairs(epsilon, parts, power, halfway=own)[1] for own in (False, True))
    assert found == pytest.approx(min(on, between), rel=1e-9)
    best = solve(epsilon, 0.0, 4 * parts, range(4, 4 * parts + 1, 4), np.abs if power == 1 else np.square)
    assert best is not None
    assert best.loss == pytest.approx(found, rel=1e-5)
    finer = float(ByLaw(Fraction(1), power, 5 * parts).at(Fraction(epsilon)))
    assert found <= finer <= float(ByLaw(Fraction(1), power, None).at(Fraction(epsilon)))


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("inside", [1, 2, 5, 6])
def test_no_law_is_within_a_limit_more_often(epsilon: float, inside: int) -> None:
    """The linear program over laws on 200 points of which so many are within; tails fall no faster than they may."""
    points, grown = 200, np.exp(epsilon)
    costs = np.ones(points)
    first = (points - inside) // 2
    costs[first : first + inside] = 0.0
    near, following = np.eye(points)[:-1], np.eye(points)[1:]
    rows = np.vstack([near - grown * following, following - grown * near])
    found = linprog(costs, A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=np.ones((1, points)), b_eq=[1.0])
    bound = float(Outside(inside).at(Fraction(epsilon)))
    assert bound == pytest.approx(found.fun, rel=1e-5, abs=1e-7)
    assert float(Outside(inside + 1).at(Fraction(epsilon))) <= bound


STEPS = ("problem", "blocks", 0, "held", 0, "step")
INPUT = ("mechanism", "executed", "steps", 0)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("mechanism", "executed", "grid"), "2"),
        (("mechanism", "executed", "grid"), "2/3"),
        (INPUT, "1/2"),
        (INPUT, "1/3"),
        (INPUT, "2^-24"),
        (STEPS, "2/3"),
        (STEPS, "2"),
        (STEPS, "0"),
    ],
)
def test_answers_between_the_points_of_their_lattice_are_refused(path: tuple[str | int, ...], value: str) -> None:
    plan = plan_of("1", domain="{0, 1}^10", neighbours="replacing one record")
    assert judge(plan_text(plan)).ok
    assert plan["mechanism"]["executed"]["grid"] == plan["mechanism"]["executed"]["steps"][0] == "1"
    refused(mutate(plan, path, value))


def test_numbers_of_an_interval_are_not_judged_by_steps() -> None:
    """The law for whole numbers, on sums of numbers that may move by any part of one."""
    whole = plan_of("1", domain="{0, 1}^10", neighbours="replacing one record")
    plan = plan_of("1", domain="[0, 1]^10", neighbours="replacing one record")
    executed = whole["mechanism"]["executed"] | {"steps": plan["mechanism"]["executed"]["steps"]}
    refused(mutate(plan, ("mechanism", "executed"), executed))


@pytest.mark.parametrize("loss", [SQUARE, SIZE])
def test_multipliers_and_the_closed_form_are_of_one_loss(loss: str) -> None:
    plan = plan_of("0.7", loss)
    frame = read_frame(JsonNode(plan["problem"], "problem"))
    block = read_linear(JsonNode(plan["problem"]["blocks"][0], "block"), frame, Linear)
    found = float(shown(frame, block, JsonNode({"scope": SCOPE, "requirement": 0}, "bound")).at(frame.obligations))
    assert plan["loss"]["lower_bound"] <= found <= plan["loss"]["value"] * (1 + 1e-12)
    assert found == pytest.approx(plan["loss"]["value"], rel=3e-4)


SYSTEM = """
variables:
  input x in [0, 1]
  input y in {a, b, c}
  output O
  output P in {a, b, c}
background: y ~ uniform
loss: E[(O - x)^2] + 30 * E[mismatch(P, y)]
privacy: all outputs are 2-DP wrt (x, y), replacing everything
"""


@pytest.mark.slow
def test_steps_in_a_system_have_a_curve() -> None:
    plan = solved_text(SYSTEM)
    assert judge(JsonNode(plan, "plan")).ok
    loss = plan["loss"]
    assert 0 <= loss["relative_gap"] < 1e-3
    steps = next(name for name, one in plan["mechanism"]["components"].items() if "O" in name)
    part = ("mechanism", "components", steps)
    above = loss | {"lower_bound": loss["value"], "relative_gap": 0.0}
    for path, value, words in (
        (("loss",), above, "not shown by"),
        ((*part, "claims", "bound", "requirement"), 1, "claims.bound.requirement"),
        ((*part, "shares", 0, "amounts", 0, 1), "1", "is not what the line asks"),
        ((*part, "loss", "lower_bound"), loss["value"], "relative_gap"),
    ):
        report = judge(JsonNode(mutate(plan, path, value), "plan"))
        said = " ".join(claim.text for claim in report.claims)
        assert not report.ok and words in said, (path, said)
