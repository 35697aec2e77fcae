"""Randomised response of the winner: its ratio and what it keeps, against electorates gone through one by one."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from math import exp

import pytest

from privspec.families.voting.rules import RULES, Draw, VotingTask, manipulation
from privspec.kernel.laws.voting import PLURALITY, TURNED_WINNER
from privspec.model.voting import Borda, FirstChoice, Lottery, scores
from tests.families import voting_oracle as oracle
from tests.families.voting_oracle import enumerated_ratio

ABCD = ("a", "b", "c", "d")
BOTH = (False, True)
ODDS = (Fraction(11, 10), Fraction(3, 2), Fraction(4))


def turned(odds: Fraction) -> oracle.Law:
    """The first of the largest, turned by hand."""

    def law(n: oracle.Counts) -> list[Fraction]:
        winner = next(a for a in range(len(n)) if n[a] == max(n))
        return [(odds if a == winner else 1) / (odds + len(n) - 1) for a in range(len(n))]

    return law


def test_the_law_has_two_values() -> None:
    found = Lottery(TURNED_WINNER, Fraction(3))
    assert found.law([Fraction(n) for n in (1, 4, 4, 0)]) == (
        Fraction(1, 6),
        Fraction(1, 2),
        Fraction(1, 6),
        Fraction(1, 6),
    )
    assert found.law([Fraction(7)]) == (1,)
    assert found.law([Fraction(0)] * 3) == (Fraction(3, 5), Fraction(1, 5), Fraction(1, 5))


@pytest.mark.parametrize("adding", BOTH)
@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_ratio_is_the_odds_at_every_size(m: int, adding: bool) -> None:
    for odds, voters in product(ODDS, range(0 if adding else 1, 7)):
        found, task = Draw("randomised_winner", odds), VotingTask(FirstChoice(ABCD[:m]), voters, adding)
        largest = oracle.largest(turned(odds), oracle.first_choices(m), m, voters, adding)
        assert found.ratio(task) == largest == odds


@pytest.mark.parametrize("adding", BOTH)
@pytest.mark.parametrize(("m", "most"), [(2, 5), (3, 3), (4, 2)])
def test_borda_points(m: int, most: int, adding: bool) -> None:
    for voters in range(0 if adding else 1, most + 1):
        largest = oracle.largest(turned(Fraction(5, 2)), oracle.rankings(m), m, voters, adding)
        found = Draw("randomised_winner", Fraction(5, 2)).ratio(VotingTask(Borda(ABCD[:m]), voters, adding))
        assert found == largest == Fraction(5, 2)


@pytest.mark.parametrize("group", [1, 2, 5])
@pytest.mark.parametrize("adding", BOTH)
def test_groups_cost_nothing_more(adding: bool, group: int) -> None:
    for voters in range(0 if adding else 1, 6):
        task = VotingTask(FirstChoice(ABCD[:3]), voters, adding, group)
        assert enumerated_ratio(Draw("randomised_winner", Fraction(7, 3)).lottery, task) == Fraction(7, 3)
        assert Draw("randomised_winner", Fraction(7, 3)).ratio(task) == Fraction(7, 3)
    assert Draw("randomised_winner", Fraction(2)).ratio(VotingTask(FirstChoice(ABCD[:3]), None, adding, group)) == 2


def test_nobody_and_one_alternative() -> None:
    for task in (VotingTask(FirstChoice(("a",)), 5), VotingTask(FirstChoice(ABCD), 0)):
        assert (
            Draw("randomised_winner", Fraction(2)).ratio(task) == 1
            and Draw("randomised_winner", Fraction(2)).epsilon(task) == 0
        )


@pytest.mark.parametrize("group", [1, 4])
def test_the_odds_are_as_large_as_epsilon_allows(group: int) -> None:
    (rule,) = (r for r in RULES if r.family == "randomised_winner")
    for epsilon in (Fraction(1, 1000), Fraction(1, 2), Fraction(3)):
        task = VotingTask(FirstChoice(ABCD), None, True, group)
        found = rule.calibrate(task, epsilon)
        assert isinstance(found, Draw)
        assert epsilon * (1 - Fraction(1, 10**8)) < found.epsilon(task) <= epsilon
        assert float(found.number) == pytest.approx(exp(epsilon), rel=1e-8)
        assert found.to_json() == {"family": "randomised_winner", "ratio": str(found.number)}
    assert isinstance(rule.calibrate(task, Fraction(0)), str)


@pytest.mark.parametrize("points", [FirstChoice(ABCD[:2]), Borda(ABCD[:2])], ids=lambda p: p.name)
def test_two_alternatives_are_strategy_proof(points: FirstChoice | Borda) -> None:
    """Every other ballot at every list of up to six, for voters of both orders."""
    lottery = Lottery(TURNED_WINNER, Fraction(4))
    for voters in range(6):
        for others in combinations_with_replacement(list(permutations(points.alternatives)), voters):
            for truth in permutations(points.alternatives):
                honest, lying = (lottery.law(scores(points, (*others, ballot))) for ballot in (truth, truth[::-1]))
                best = points.alternatives.index(truth[0])
                assert honest[best] >= lying[best]
    assert manipulation(lottery, points, most=6) is None


@pytest.mark.parametrize("m", [3, 4, 9])
@pytest.mark.parametrize("kind", [FirstChoice, Borda])
def test_from_three_on_a_lie_can_pay(kind: type[FirstChoice] | type[Borda], m: int) -> None:
    points = kind(tuple("abcdefghi")[:m])
    found = manipulation(Lottery(TURNED_WINNER, Fraction(4)), points)
    assert found is not None
    order = [points.alternatives.index(a) for a in found.truth[: found.best]]
    for ballot, chance in ((found.truth, found.honest), (found.lie, found.lying)):
        law = Lottery(TURNED_WINNER, Fraction(4)).law(scores(points, (*found.others, ballot)))
        assert sum(law[a] for a in order) == chance
    assert found.lying > found.honest
    kept = {p.name: p.holds for p in Draw("randomised_winner", Fraction(4)).properties(VotingTask(points))}
    assert kept == {"treats_voters_alike": True, "ex_post_efficient": False, "strategy_proof": False}


def test_the_manipulation_of_the_note() -> None:
    found = manipulation(Lottery(TURNED_WINNER, Fraction(4)), FirstChoice(ABCD[:3]))
    plain = manipulation(Lottery(PLURALITY), FirstChoice(ABCD[:3]))
    assert found is not None and plain is not None
    assert (
        (found.truth, found.others, found.lie)
        == (plain.truth, plain.others, plain.lie)
        == (("c", "a", "b"), ("b",), "a")
    )
    assert (found.honest, found.lying) == (Fraction(2, 6), Fraction(5, 6))
