"""Tables under a figure of each person's own: every pair of worlds that differ in one person keeps that person's."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product

import pytest

from privspec.core.diagnostics import SpecError
from privspec.kernel import judge
from privspec.plan import verify
from tests.plans import mutate, solved_text

SPEC = """parameters:
  own = {own}
parties: person in 1..3
variables:
  input v[person] in {{0, 1}}
  output O in 0..3
background: v ~ uniform
loss: E[ |O - sum(v[person] for person)| ]
privacy: O is {measure} wrt v[person], replacing one person
"""
OWN = (1.0, 2.0, 0.5)


def text(own: str = "[1, 2, 0.5]", measure: str = "own[person]-DP") -> str:
    return SPEC.format(own=own, measure=measure)


def test_each_person_keeps_their_own_epsilon() -> None:
    plan = solved_text(text())
    assert plan["status"] == "optimal"
    assert judge(json.dumps(plan)).ok
    assert verify(json.dumps(plan)).ok
    laws = dict(zip(product((0, 1), repeat=3), plan["mechanism"]["probabilities"], strict=True))
    reached = [0.0, 0.0, 0.0]
    for world in laws:
        for person in range(3):
            other = tuple(1 - v if i == person else v for i, v in enumerate(world))
            pairs = zip(laws[world], laws[other], strict=True)
            reached[person] = max(reached[person], *(math.log(Fraction(a) / Fraction(b)) for a, b in pairs if a != "0"))
    assert all(epsilon <= own + 1e-12 for epsilon, own in zip(reached, OWN, strict=True))
    assert reached[1] > 1.5  # the person who allows most is not held to what the strictest asks for


def test_it_lies_between_the_strictest_and_the_weakest_for_everybody() -> None:
    strictest, mixed, weakest = (
        solved_text(text(own))["loss"]["value"] for own in ("[0.5, 0.5, 0.5]", "[1, 2, 0.5]", "[2, 2, 2]")
    )
    assert weakest + 1e-3 < mixed < strictest - 1e-3
    plain = solved_text(text(measure="0.5-DP"))["loss"]["value"]
    assert strictest == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize("measure", ["(own[person], 1e-3)-DP", "own[person]-zCDP", "own[person]-GDP"])
def test_other_figures_of_people_are_refused_by_one_line(measure: str) -> None:
    with pytest.raises(SpecError) as caught:
        solved_text(text(measure=measure))
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == (
        "PS0501",
        "solve takes an epsilon for each person in tables, and no other figure",
    )


def test_forged_plans_are_refused() -> None:
    plan = solved_text(text())
    block = ("problem", "blocks", 0)
    for forged in (
        mutate(plan, (*block, "compared", 0, "squares"), ["100", "100", "100"]),
        mutate(plan, ("guarantees", 0, "achieved", "epsilon"), "0.4"),
        mutate(plan, ("guarantees", 0, "achieved", "epsilon"), "0.6"),
    ):
        assert any("privacy" in str(one) for one in judge(json.dumps(forged)).failed)
    # another order of the same people's figures is another problem than that of the spec
    squares = plan["problem"]["blocks"][0]["compared"][0]["squares"]
    assert not verify(json.dumps(mutate(plan, (*block, "compared", 0, "squares"), squares[::-1]))).ok
