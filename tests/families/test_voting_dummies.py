"""The least loss of dummy votes where a spec takes no other rule, against all electorates of few voters."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from privspec.kernel import judge
from privspec.kernel.voting import SCOPES
from privspec.plan import Plan
from tests.families.voting import WORST, decided, vote
from tests.plans import mutate

ONLY = "options:\n  noise family dictator"
SCOPE = SCOPES["dummy votes"]
BORDA = "worst[ total_variation(O, borda_lottery(vote)) ]"


def document(loss: str = WORST, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = decided(vote(loss, extra=more.pop("extra", ONLY), **more)).decided().document()
    return found


@pytest.mark.parametrize(
    ("relation", "group", "adding"),
    [
        ("replacing one voter", 1, False),
        ("replacing up to 2 voters", 2, False),
        ("adding or removing one voter", 1, True),
    ],
)
@pytest.mark.parametrize("voters", [2, 4])
def test_fewer_dummy_votes_let_more_through(voters: int, relation: str, group: int, adding: bool) -> None:
    """One per cent fewer than the bound stands for, over all electorates: some probability changes by more."""
    plan = document(voters=voters, privacy=f"O is 0.5-DP wrt vote, {relation}")
    assert Plan(plan).verify().ok and plan["status"] == "optimal" and plan["loss"]["among"] == SCOPE
    low = plan["loss"]["lower_bound"]
    weight = low * 3 / 2  # of the uniform law: a unanimous profile is 2 / 3 from it
    dummies = weight * voters / (3 * (1 - weight)) * 0.99
    sizes = range(300) if adding else [voters]
    most = 0.0
    for first, second, size in product(range(3), range(3), sizes):
        rest = size - first - second
        if rest < 0:
            continue
        law = (first + dummies) / (size + 3 * dummies)
        gains = [(1, 1)] if adding else [(g, 0) for g in range(1, min(group, rest) + 1)]
        most = max([most, *((first + g + dummies) / (size + more + 3 * dummies) / law for g, more in gains)])
    assert math.log(most) > 0.5


@pytest.mark.parametrize(
    "changes",
    [
        {"loss": BORDA, "ballots": "ranking of {a, b, c}"},
        {"loss": BORDA, "ballots": "partial_ranking({a, b, c}, 2)"},
        {"loss": "worst[ total_variation(O, plurality(vote)) ] + 2 * " + WORST},
        {"loss": "E[ mismatch(O, plurality(vote)) ]", "background": "vote ~ categorical([2, 1, 1])", "voters": 30},
        {"background": "histogram(vote)[j] >= 1 for j in 1..3", "privacy": "O is 0.2-DP wrt vote, replacing one voter"},
        {"privacy": "O is 0.5-DP wrt vote, replacing up to 3 voters\n  O is 0.1-DP wrt vote, replacing one voter"},
        {"loss": "epsilon", "choose": "choose epsilon in [0, 5]", "extra": f"accuracy: {WORST} <= 0.1\n{ONLY}"},
    ],
)
def test_dummy_votes_are_the_best_of_their_kind(changes: dict[str, Any]) -> None:
    if "choose" in changes:
        changes |= {"privacy": "O is epsilon-DP wrt vote, replacing one voter"}
    plan = document(**changes)
    assert Plan(plan).verify().ok, str(Plan(plan).verify())
    assert plan["status"] == "optimal" and plan["loss"]["among"] == SCOPE
    forged = mutate(plan, ("loss", "lower_bound"), plan["loss"]["lower_bound"] * (1 + 1e-8))
    assert "bound" in {claim.name for claim in judge(json.dumps(forged)).failed}


def test_where_no_ballot_gives_nothing_the_last_factor_is_not_known() -> None:
    """Two of four alternatives share what a ballot leaves out, so that fewer dummy votes may do."""
    plan = document(BORDA, ballots="partial_ranking({a, b, c, d}, 2)")
    assert plan["status"] == "feasible" and plan["loss"]["lower_bound"] is None


def test_other_lines_leave_it_a_bound_only() -> None:
    """Dummy votes for (epsilon, delta) are not known to be the fewest; with another rule nothing is claimed."""
    plan = document(privacy="O is (0.1, 1e-9)-DP wrt vote, replacing one voter")
    assert plan["status"] == "feasible" and plan["loss"]["among"] != SCOPE
    other = document(extra=f"{ONLY}, randomised_winner")
    assert other["loss"]["among"] != SCOPE
    assert Fraction(other["loss"]["lower_bound"]) < Fraction(other["loss"]["value"]) / 2
