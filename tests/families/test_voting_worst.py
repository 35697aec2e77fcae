"""Worst cases of votes: formulas against all profiles, bounds against what is reached, doubles against fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from privspec.families.voting import profiles as priced
from privspec.families.voting.choices import best_walks
from privspec.families.voting.profiles import costs_at, laws, listed, rule_of, worst_case
from privspec.kernel.laws.voting import DUMMY_VOTES, EXPONENTIAL, ONE_REPORT, PERMUTE_AND_FLIP, PLURALITY, TURNED_WINNER
from privspec.kernel.voting import Cost, least_cost
from privspec.model.voting import Lottery, scores
from privspec.problem.voting import Costs, beside, points_of
from tests.families.voting import system_of, vote

DRAWS: tuple[Lottery, ...] = (
    Lottery(DUMMY_VOTES, Fraction(3, 2)),
    Lottery(ONE_REPORT, Fraction(5, 2)),
    Lottery(TURNED_WINNER, Fraction(5, 2)),
    Lottery(TURNED_WINNER, Fraction(20)),
    Lottery(EXPONENTIAL, Fraction(4, 3)),
    Lottery(PERMUTE_AND_FLIP, Fraction(4, 3)),
)
COSTS: Costs = (
    beside("distance", Lottery(DUMMY_VOTES)),
    beside("distance", Lottery(PLURALITY)),
    beside("mismatch", Lottery(PLURALITY)),
    beside("votes missed", Lottery(DUMMY_VOTES)),
)


def one(cost: Cost) -> Costs:
    return (cost,)


@pytest.mark.parametrize("ballots", ["{a, b}", "{a, b, c}", "{a, b, c, d}"])
@pytest.mark.parametrize("voters", [1, 2, 3, 4, 5, 8, 9])
def test_formulas_are_the_largest_of_all_profiles(ballots: str, voters: int) -> None:
    system = system_of(vote(ballots=ballots, voters=voters))
    profiles = listed(system)
    assert profiles is not None
    known = 0
    for lottery, cost in product(DRAWS, COSTS):
        found = cost.worst(rule_of(lottery), system.votes)
        if found:
            worst = max(cost.at(list(lottery.law(s)), s) for s, _ in profiles)
            assert max(cost.at(list(lottery.law(s)), s) for s in found) == worst, (lottery, cost)
            known += 1
    assert known >= 2 + 4 + 4 + 4 + 4 + 2


@pytest.mark.parametrize(
    "ballots", ["ranking of {a, b, c}", "partial_ranking({a, b, c})", "partial_ranking({a, b, c}, 1)"]
)
@pytest.mark.parametrize("voters", [1, 2, 3, 5])
def test_borda_against_all_profiles(ballots: str, voters: int) -> None:
    text = vote("worst[ total_variation(O, borda_lottery(vote)) ]", ballots=ballots, voters=voters)
    system = system_of(text)
    profiles = listed(system)
    assert profiles is not None
    for lottery in DRAWS[:2]:
        found = worst_case(system, lottery, one(COSTS[0]))
        assert found.value == max(COSTS[0].at(list(lottery.law(s)), s) for s, _ in profiles)


def test_profiles_are_all_that_ballots_lead_to() -> None:
    system = system_of(
        vote("worst[ total_variation(O, borda_lottery(vote)) ]", ballots="ranking of {a, b, c}", voters=3)
    )
    domain = system.model.nodes["vote"].domain
    assert domain is not None
    every = {scores(points_of(system.votes.ballots), votes) for votes in product(domain.elements(), repeat=3)}
    found = listed(system)
    assert found is not None
    assert {each for each, _ in found} == {tuple(sorted(one, reverse=True)) for one in every}


def test_probabilities_of_profiles() -> None:
    text = vote("E[ mismatch(O, plurality(vote)) ]", voters=4, background="vote ~ categorical([5, 3, 2])")
    system = system_of(text)
    listing = listed(system, system.votes.law)
    assert listing is not None
    found, shares = dict(listing), (Fraction(5, 10), Fraction(3, 10), Fraction(2, 10))
    assert sum(found.values()) == 1
    assert found[Fraction(2), Fraction(1), Fraction(1)] == 12 * sum(p * math.prod(shares) for p in shares)


@pytest.mark.parametrize(
    "text",
    [
        vote(voters=200),
        vote("worst[ total_variation(O, borda_lottery(vote)) ]", voters=200, ballots="ranking of {a, b, c}"),
    ],
)
def test_what_is_surely_too_much_is_not_counted(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privspec.kernel.laws.voting.plus", lambda *_: pytest.fail("counted"))
    assert listed(system_of(text)) is None


def test_where_nothing_is_known_a_bound_from_below() -> None:
    small, large = system_of(vote(voters=30)), system_of(vote(voters=2000))
    lottery = Lottery(EXPONENTIAL, Fraction(11, 10))
    found = worst_case(small, lottery, one(COSTS[0]))
    sorted_counts = sum(1 for a in range(31) for b in range(a + 1) if 0 <= 30 - a - b <= b)
    assert found.exact and found.profiles == sorted_counts
    seen = worst_case(large, lottery, one(COSTS[0]))
    assert seen.at_least and Fraction(1, 3) < seen.value < 1
    below = np.array(list(priced._telling(small)))
    assert float(costs_at(one(COSTS[0]), laws(rule_of(lottery), below), below).max()) <= float(found.value) + 1e-12


# --- laws -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lottery", [*DRAWS, Lottery(PLURALITY), Lottery(DUMMY_VOTES)])
def test_doubles_are_near_the_exact_laws(lottery: Lottery) -> None:
    profiles = [(3, 3, 1, 0), (7, 0, 0, 0), (0, 0, 0, 9), (2, 2, 2, 2), (10, 9, 1, 1)]
    found = laws(rule_of(lottery), np.array(profiles, dtype=float))
    for profile, row in zip(profiles, found, strict=True):
        exact = [float(p) for p in lottery.law([Fraction(v) for v in profile])]
        assert row == pytest.approx(exact, abs=1e-13)


# --- the bound for every rule ---------------------------------------------------------------------


@pytest.mark.parametrize("voters", [1, 2, 7, 40])
@pytest.mark.parametrize("others", [1, 2, 5])
@pytest.mark.parametrize("step", ["1/100", "1/2", "1", "7"])
def test_the_walk_with_the_largest_bound_is_found(voters: int, others: int, step: str) -> None:
    each = [least_cost("walk", voters, others + 1, k, Fraction(step), 1) for k in range(1, voters + 1)]
    tried = [one["votes"] for one in best_walks(voters, others, float(Fraction(step)))]
    assert max(each[k - 1] for k in tried) == max(each)


def test_the_bound_of_the_tables() -> None:
    """T = 10, m = 3, epsilon = 1/2: the best table has .0926, dummy votes .2108 (TABLES.md)."""
    tried = [one["votes"] for one in best_walks(10, 2, 0.5)]
    bounds = {k: least_cost("walk", 10, 3, k, Fraction(1, 2), 1) for k in tried}
    assert max(bounds, key=lambda k: bounds[k]) == 3
    assert float(bounds[3]) == pytest.approx(0.3 / (1 + math.exp(1.5) / 2), rel=1e-15)
    assert round(float(bounds[3]), 4) == 0.0926
    system = system_of(
        vote(voters=10, privacy="O is 0.5-DP wrt vote, replacing one voter", extra="options:\n  noise family dictator")
    )
    dummies = 1 / Fraction(math.expm1(0.5))
    assert round(float(worst_case(system, Lottery(DUMMY_VOTES, dummies), one(COSTS[0])).value), 4) == 0.2108
