"""A guesser's advantage as the requirement: no set of results is by more than so much likelier."""

from __future__ import annotations

import json
from fractions import Fraction
from math import log
from statistics import NormalDist

import numpy as np
import pytest

from privspec.core.diagnostics import SpecError
from privspec.families.gaussian.stepped import law_of
from privspec.kernel import judge
from privspec.kernel.core.reading import JsonNode
from privspec.kernel.measures import TOTAL_VARIATION
from privspec.pipeline import Request, Source, solve
from tests.plans import Document, resign, solved_text

NUMBERS = """\
variables:
  input x in [0, 1]^{n}
  output O
loss: E[ ||O - {asked}||^2 ]
privacy: O is {advantage}-tv-DP wrt x, replacing one entry
"""
COUNT = """\
variables:
  input people in table(sex in {F, M})
  output n
loss: E[ (n - count(people, sex = F))^2 ]
privacy: n is ADVANTAGE-tv-DP wrt people, adding or removing one record
"""
WINNER = """\
parties: voter in 1..8
variables:
  input vote[voter] in {a, b, c}
  intermediate winner
  output O
background: winner = random_dictator(vote)
loss: worst[ total_variation(O, winner) ]
privacy: O is ADVANTAGE-tv-DP wrt vote, replacing one voter
"""


def holds(plan: Document) -> bool:
    return judge(JsonNode(plan, "plan")).ok


@pytest.mark.parametrize(
    "advantage", [Fraction(1, 5), Fraction(1, 2), Fraction(3, 10), Fraction(1, 20), Fraction(9, 10)]
)
@pytest.mark.parametrize("whole", [1, 3, None])
def test_the_law_of_cells_alike_lets_through_no_more_by_any_shift(advantage: Fraction, whole: int | None) -> None:
    law, steps = law_of(Fraction(0), advantage, 2, whole)
    apart = steps // whole if whole else law.width  # halfway between whole numbers there are points, too
    assert law.delta_up(steps, apart) == pytest.approx(float(advantage), rel=1e-6)
    assert law.delta_up(steps, apart) <= advantage
    cells, side = steps // law.width, np.array(law.weights, dtype=float)
    density = np.concatenate([np.zeros(cells), side[::-1], side[1:], np.zeros(cells)]) / float(law.total)
    for shift in range(apart // law.width, cells + 1, apart // law.width):
        moved = np.concatenate([np.zeros(shift), density[:-shift]])
        assert np.maximum(density - moved, 0).sum() <= float(advantage) * (1 + 1e-9)


@pytest.mark.parametrize(("advantage", "variance"), [("0.2", 2.0), ("0.1", 8.25), ("(1/3)", 2 / 3)])
def test_a_count_has_the_best_law_of_whole_numbers(advantage: str, variance: float) -> None:
    """As many numbers in steps of one as one over the advantage, k, each as likely: (k^2 - 1) / 12.

    No number has more than the advantage; where k is even, they are those halfway between whole numbers.
    """
    plan = solved_text(COUNT.replace("ADVANTAGE", advantage))
    assert holds(plan)
    assert plan["loss"]["value"] == pytest.approx(variance, rel=1e-5)
    assert plan["status"] == "optimal"


def test_a_sum_is_hidden_by_a_law_that_ends() -> None:
    """Of width 5: 25 / 12; the best Gaussian noise has nearly twice that, and no law two percent less."""
    plan = solved_text(NUMBERS.format(n=3, asked="sum(x)", advantage="0.2"))
    assert holds(plan)
    assert plan["loss"]["value"] == pytest.approx(25 / 12, rel=1e-4)
    assert plan["loss"]["lower_bound"] > 0.98 * 25 / 12


def test_several_numbers_have_gaussian_noise_of_that_total_variation() -> None:
    """A record moves two of them: their noise is drawn together."""
    text = COUNT.replace("  output n\n", "  output n\n  output h\n").replace("ADVANTAGE", "0.2")
    text = text.replace("^2 ]\n", "^2 ] + E[ ||h - histogram(people)||^2 ]\n").replace("n is", "(n, h) is")
    plan = solved_text(text)
    assert holds(plan)
    mu = float(Fraction(plan["guarantees"][0]["achieved"]["mu"]))
    assert 2 * NormalDist().cdf(mu / 2) - 1 == pytest.approx(0.2, rel=1e-6)


def test_one_of_so_many_votes_is_drawn_as_it_is() -> None:
    """One voter of eight moves the law of the winner by one eighth: no noise is needed, and for less some is."""
    free, strict = (solved_text(WINNER.replace("ADVANTAGE", one)) for one in ("0.125", "0.12"))
    assert holds(free)
    assert holds(strict)
    assert free["loss"]["value"] == 0
    assert strict["loss"]["value"] > 0


@pytest.mark.parametrize("text", [COUNT.replace("ADVANTAGE", "0.2"), WINNER.replace("ADVANTAGE", "0.125")])
def test_what_is_promised_and_not_kept_is_refused(text: str) -> None:
    plan = solved_text(text)
    stricter = {"0.2": "0.1", "0.125": "0.1", "1/5": "1/10", "1/8": "1/10"}
    forged = json.loads(json.dumps(plan))
    for part in ("problem", "guarantees"):
        said = json.dumps(plan[part])
        for old, new in stricter.items():
            said = said.replace(f'"{old}"', f'"{new}"')
        forged[part] = json.loads(said)
    assert forged != plan
    assert "privacy" in {one.name for one in judge(JsonNode(resign(forged), "plan")).failed}


@pytest.mark.parametrize(
    ("amount", "why"), [("0", "must be positive"), ("1", "must be below 1"), ("1.5", "must be below 1")]
)
def test_amounts_that_say_nothing_are_refused(amount: str, why: str) -> None:
    with pytest.raises(SpecError, match=f"the advantage of a guesser {why}"):
        solve(Request(Source("n.priv", COUNT.replace("ADVANTAGE", amount))))


def test_beside_a_pure_line_nothing_is_proved_of_what_its_delta_allows() -> None:
    """No noise is needed for s, on which nothing depends; a line at epsilon 0 bounds no unbiased mechanism."""
    lines = ["w is 1-DP wrt x, replacing everything", "w is 0.1-tv-DP wrt s, replacing everything"]
    text = "variables:\n  input x in [0, 1]\n  input s in [0, 1]\n  output w\nloss: E[ (w - x)^2 ]\nprivacy:\n"
    alone, both = (solved_text(text + "".join(f"  {one}\n" for one in some)) for some in (lines[:1], lines))
    assert holds(both)
    assert both["loss"]["value"] == pytest.approx(alone["loss"]["value"], rel=0.2)
    bound = both["loss"].get("lower_bound")
    assert bound is None or bound <= alone["loss"]["value"]
    assert TOTAL_VARIATION.condition({"advantage": Fraction(1, 10)}).largest_unbiased() is None


def test_a_median_is_drawn_with_chances_of_which_none_changes_by_more() -> None:
    """Randomised response of epsilon tells two worlds apart by tanh(epsilon / 2): the largest epsilon is used."""
    text = """variables:
  input people in table(age in 0..9)
  output m
loss: worst[ rank_error(m, median(people.age)) ]
privacy: m is 0.2-tv-DP wrt people, adding or removing one record
"""
    plan = solved_text(text)
    assert holds(plan)
    assert float(Fraction(plan["guarantees"][0]["achieved"]["epsilon"])) == pytest.approx(log(1.2 / 0.8), rel=1e-4)
    forged = json.loads(json.dumps(plan))
    forged["problem"]["obligations"][0]["measure"]["amounts"][0][1] = "19/100"
    forged["guarantees"][0]["advantage"] = "0.19"
    assert "privacy" in {one.name for one in judge(JsonNode(resign(forged), "plan")).failed}
