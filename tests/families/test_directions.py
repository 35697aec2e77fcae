"""Several numbers that real inputs move: what the law of one number along directions shows, also with a delta."""

from __future__ import annotations

import json
from math import exp, sinh

import pytest

from privspec.kernel import judge
from privspec.plan import Plan
from tests.plans import executed_of, mutate, solved_text

SPEC = """spec several
variables:
  input x in {domain}
  output O
loss: E[ ||O - {target}||^2 ]
privacy: O is {measure} wrt x, replacing one entry
{options}"""


def spec(measure="1-DP", domain="[0, 1]^4", target="prefix_sums(x)", options=""):
    return SPEC.format(domain=domain, target=target, measure=measure, options=options)


def stairs(epsilon):
    """The least square of noise that hides any part of one (Geng & Viswanath 2014)."""
    b = exp(-epsilon)
    return ((b * (1 + b) / 2) ** (2 / 3) + b) / (1 - b) ** 2


def two_points(epsilon):
    """The least that hides one as a whole."""
    return 1 / (2 * sinh(epsilon / 2) ** 2)


@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
def test_real_numbers_move_by_any_part(epsilon):
    """The bound rises by as much as staircases have more than geometric noise: twice as much at large epsilon."""
    plan, steps = (solved_text(spec(f"{epsilon}-DP", own)) for own in ("[0, 1]^4", "(0..1)^4"))
    assert Plan(plan).verify().ok
    assert Plan(steps).verify().ok
    ratio = plan["loss"]["lower_bound"] / steps["loss"]["lower_bound"]
    assert ratio == pytest.approx(stairs(epsilon) / two_points(epsilon), rel=1e-4)
    every = [plan["loss"]["value"], *(one["loss"] for one in plan["alternatives"] if one["admissible"])]
    assert len(every) > 3
    assert plan["loss"]["lower_bound"] <= min(every)
    assert 4 * stairs(epsilon) < plan["loss"]["lower_bound"] <= plan["loss"]["value"]  # more than of each by itself


def test_one_number_in_two_answers_is_met():
    """Both answers are multiples of one number: the best law of that number has the loss of the bound."""
    plan = solved_text(spec("2-DP", "[0, 1]^1", "[x[1], 2 * x[1]]"))
    assert plan["loss"]["lower_bound"] == pytest.approx(5 * stairs(2), rel=1e-6)


@pytest.mark.parametrize(("delta", "least"), [("1e-6", 0.98), ("1e-3", 0.8)])
def test_a_delta_takes_little_of_it(delta, least):
    """Laws in steps on the inputs use the delta; the bound is about all that do."""
    plan = solved_text(spec(f"(1, {delta})-DP", "[0, 1]^28", WEEKLY))
    pure = solved_text(spec("1-DP", "[0, 1]^28", WEEKLY))
    assert Plan(plan).verify().ok
    assert plan["loss"]["among"] == "additive noise of any law"
    assert least * pure["loss"]["lower_bound"] < plan["loss"]["lower_bound"] < pure["loss"]["lower_bound"]
    assert plan["loss"]["lower_bound"] > plan["loss"]["value"] / 2


WEEKLY = "[prefix_sums(x[1..7]), prefix_sums(x[8..14]), prefix_sums(x[15..21]), prefix_sums(x[22..28])]"


def test_what_is_about_more_is_preferred():
    """Laplace noise under a line with a small delta: next to nothing less is shown of noise that uses it."""
    plan = solved_text(spec("(1, 1e-6)-DP", options="options: noise family laplace\n"))
    assert plan["loss"]["among"] == "additive noise of any law"
    pure = solved_text(spec("1-DP", options="options: noise family laplace\n"))
    assert 0.99 * pure["loss"]["lower_bound"] < plan["loss"]["lower_bound"] < pure["loss"]["lower_bound"]


def test_forged_laws_are_refused():
    plan = solved_text(spec("(1, 1e-6)-DP", "[0, 1]^28", WEEKLY))
    assert judge(json.dumps(plan)).ok
    law = ("claims", "bound", "differences", 0, "law")
    own = plan["claims"]["bound"]["differences"][0]["law"]
    amounts = ("problem", "obligations", 0, "measure", "amounts")
    for path, value in (
        (("loss", "lower_bound"), plan["loss"]["lower_bound"] * 1.0001),
        ((*law, "cells"), own["cells"] - 1),
        ((*law, "shifts"), own["shifts"][::-1]),
        ((*law, "start"), own["start"] - 1),
        (law, None),
        (amounts, [["epsilon", "1"], ["delta", "1/1000"]]),
        (("problem", "data", 0, "domain"), "0..1"),
    ):
        assert not judge(json.dumps(mutate(plan, path, value))).ok, path
    normal = solved_text(spec("1-zCDP"))
    (first,) = normal["claims"]["bound"]["differences"]
    forged = mutate(normal, ("claims", "bound", "differences"), [{**first, "law": own}])
    assert not judge(json.dumps(forged)).ok
    assert executed_of(normal).noise.normal
