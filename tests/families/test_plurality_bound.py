"""Randomised response of the plurality winner: no rule misses that winner less often, at any number of votes."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from privspec.core.spans import Source
from privspec.families.voting.choices import near_tie
from privspec.kernel.laws.voting import PLURALITY, TURNED_WINNER
from privspec.model.voting import Lottery
from privspec.pipeline import Request, solve
from privspec.plan import Plan
from tests.families.voting import VOTES_MISSED, WORST, decided, rule, vote

MISSED = "worst[ mismatch(O, plurality(vote)) ]"
APART = "worst[ total_variation(O, plurality(vote)) ]"
LINE = "O is 1-DP wrt vote, replacing one voter"
ADDING = "O is 1-DP wrt vote, adding or removing one voter"
THREE = 2 / (math.e + 2)
LOTTERIES = "options:\n  noise family dictator, permute_and_flip, exponential, randomised_winner"


def winner(counts: list[int]) -> int:
    return Lottery(PLURALITY).law([Fraction(n) for n in counts]).index(1)


@pytest.mark.parametrize("m", range(2, 8))
def test_one_vote_leads_to_every_winner(m: int) -> None:
    for voters in range(1, 40):
        start = near_tie(voters, m)["profile"]
        first = winner(start)
        assert sum(start) == voters and min(start) >= 0
        for wanted in range(m):
            moved = [n - (a == first) + (a == wanted) for a, n in enumerate(start)]
            assert min(moved) >= 0 and winner(moved) == wanted


@pytest.mark.parametrize("voters", [1, 2, 5, 60, 100_000])
@pytest.mark.parametrize("loss", [MISSED, APART])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_the_rule_is_optimal(voters: int, loss: str, size: int) -> None:
    ballots = "{" + ", ".join("abcde"[:size]) + "}"
    decision = decided(vote(loss, voters=voters, ballots=ballots, privacy=LINE, extra=LOTTERIES))
    # of one ballot dummy votes are the same rule
    assert decision.chosen.rule.family == ("randomised_winner" if voters > 1 else "dictator")
    assert decision.decided().loss == pytest.approx((size - 1) / (math.e + size - 1), rel=1e-8)
    assert decision.decided().lower_bound <= (size - 1) / (math.e + size - 1)
    document = decision.decided().document()
    assert document["status"] == "optimal" and 0 <= document["loss"]["relative_gap"] < 1e-8
    assert document["claims"]["bound"] == near_tie(voters, size)
    assert Plan(document).verify().ok


def test_many_voters_beside_few() -> None:
    """T = 60 is close enough for a tie; at 100 000 others gain, and stay worse."""
    few, many = (decided(vote(MISSED, voters=t, privacy=LINE, extra=LOTTERIES)) for t in (60, 100_000))
    assert round(few.decided().loss, 4) == round(many.decided().loss, 4) == 0.4239
    assert round(float(rule(few, "permute_and_flip").loss.value), 4) == 0.6667
    assert round(float(rule(many, "permute_and_flip").loss.value), 4) == 0.5613


def test_the_table_of_few_voters_has_the_same_loss() -> None:
    document = solve(Request(Source("v.priv", vote(MISSED, voters=10, privacy=LINE)))).document
    assert document["mechanism"]["family"] == "table"
    (beside,) = (a for a in document["alternatives"] if a["name"] == "randomised response of the winner")
    assert beside["admissible"] and beside["loss"] == pytest.approx(document["loss"]["value"], rel=1e-8)
    assert document["loss"]["value"] == pytest.approx(THREE, rel=1e-8)


def test_sums_groups_and_rankings() -> None:
    text = vote(
        f"2 * {APART} + 1",
        voters=61,
        ballots="ranking of {a, b, c}",
        privacy="O is 1-DP wrt vote, replacing up to 3 voters",
    )
    decision = decided(text)
    assert decision.decided().loss == pytest.approx(2 * THREE + 1, rel=1e-8)
    assert decision.decided().document()["status"] == "optimal"
    assert Plan(decision.decided().document()).verify().ok


def test_voters_who_come_and_go_cost_two_steps() -> None:
    decision = decided(vote(MISSED, voters=60, privacy=ADDING))
    assert decision.chosen.rule.family == "randomised_winner"
    assert decision.decided().loss == pytest.approx(THREE, rel=1e-8)
    assert decision.decided().lower_bound == pytest.approx(2 / (math.e**2 + 2), rel=1e-8)
    assert decision.decided().document()["status"] == "feasible"
    assert Plan(decision.decided().document()).verify().ok
    # many alternatives: from one vote less each of them is one step away
    ten = "{" + ", ".join("abcdefghij") + "}"
    decision = decided(vote(MISSED, voters=60, ballots=ten, privacy=ADDING))
    assert decision.decided().loss == pytest.approx(9 / (math.e + 9), rel=1e-8)
    assert decision.decided().lower_bound == pytest.approx(1 - math.e / 10, rel=1e-8)
    assert Plan(decision.decided().document()).verify().ok


@pytest.mark.parametrize("relation", ["replacing", "adding or removing"])
@pytest.mark.parametrize("limit", ["0.1", "0.5"])
def test_the_least_epsilon_for_a_miss(relation: str, limit: str) -> None:
    text = vote(
        "epsilon",
        voters=1000,
        choose="choose epsilon in [0.001, 5]",
        privacy=f"O is epsilon-DP wrt vote, {relation} one voter",
        extra=f"accuracy:\n  {MISSED} <= {limit}",
    )
    decision = decided(text)
    found = math.log(2 * (1 / float(limit) - 1))
    assert decision.chosen.rule.family == "randomised_winner"
    assert decision.decided().loss == pytest.approx(found, rel=1e-8)
    least = found if relation == "replacing" else max(found / 2, math.log(3 * (1 - float(limit))))
    assert decision.decided().lower_bound == pytest.approx(least, rel=1e-8)
    assert (decision.decided().document()["status"] == "optimal") == (relation == "replacing")
    report = Plan(decision.decided().document()).verify()
    assert report.ok, str(report)


def test_rounds_are_bounded_as_well() -> None:
    text = vote(
        "-rounds",
        voters=1000,
        choose="choose rounds in 1..100",
        privacy="O is (5 / rounds)-DP wrt vote, replacing one voter",
        extra=f"accuracy:\n  {MISSED} <= 0.5",
    )
    decision = decided(text)
    assert decision.decided().loss == decision.decided().lower_bound == -math.floor(5 / math.log(2))
    report = Plan(decision.decided().document()).verify()
    assert report.ok, str(report)


@pytest.mark.parametrize("loss", [f"{MISSED} + {WORST}", f"worst[ {VOTES_MISSED} ]"])
def test_nothing_is_claimed_of_other_losses(loss: str) -> None:
    decision = decided(vote(loss, voters=30, privacy=LINE, extra=LOTTERIES))
    assert decision.bound is None and decision.decided().document()["claims"] == {}


def test_large_epsilons_prove_nothing() -> None:
    decision = decided(vote(MISSED, voters=30, privacy="O is 1000-DP wrt vote, replacing one voter", extra=LOTTERIES))
    assert decision.decided().lower_bound == 0 and Plan(decision.decided().document()).verify().ok


def test_the_family_can_be_asked_for() -> None:
    for loss in (WORST, f"worst[ {VOTES_MISSED} ]", MISSED):
        decision = decided(vote(loss, voters=2000, privacy=LINE, extra="options:\n  noise family randomised_winner"))
        assert decision.chosen.draw.rule is TURNED_WINNER
        assert decision.chosen.loss.exact
        assert Plan(decision.decided().document()).verify().ok
