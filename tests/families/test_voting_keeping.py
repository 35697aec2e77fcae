"""What rules of private voting keep of random dictatorship: every claim searched for counterexamples."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product

import pytest

from privspec.families.voting.rules import Draw, VotingTask, manipulation
from privspec.kernel.laws.voting import PLURALITY
from privspec.model.voting import Borda, FirstChoice, Lottery, Points, scores

ABC = ("a", "b", "c")
ABCD = ("a", "b", "c", "d")
DRAWS: tuple[Draw, ...] = (
    Draw("dictator", Fraction(3, 2)),
    Draw("permute_and_flip", Fraction(3, 2)),
    Draw("exponential", Fraction(3, 2)),
    Draw("local_dictator", Fraction(4)),
    Draw("randomised_winner", Fraction(4)),
    Draw("none"),
)
SWAYED = ("exponential", "permute_and_flip", "randomised_winner")
POINTS: tuple[Points, ...] = (
    FirstChoice(("a", "b")),
    FirstChoice(ABC),
    FirstChoice(ABCD),
    Borda(("a", "b")),
    Borda(ABC),
)


def keeps(draw: Draw, points: Points) -> dict[str, bool]:
    found = draw.properties(VotingTask(points))
    assert all((p.counterexample is None) == p.holds for p in found)
    return {p.name: p.holds for p in found}


@pytest.mark.parametrize("draw", DRAWS, ids=lambda d: d.family)
@pytest.mark.parametrize("points", POINTS, ids=lambda p: f"{p.name} {len(p.alternatives)}")
def test_strategy_proofness_is_what_a_search_finds(draw: Draw, points: Points) -> None:
    most = {2: 5, 3: 4}.get(len(points.alternatives), 3) - (points.name == "borda")
    found = manipulation(draw.lottery, points, most)
    assert (found is None) == keeps(draw, points)["strategy_proof"]
    assert (found is None) == (draw.family not in SWAYED or len(points.alternatives) == 2)


def test_the_smallest_manipulation() -> None:
    found = manipulation(Draw("exponential", Fraction(3, 2)).lottery, FirstChoice(ABC))
    assert found is not None
    assert (found.others, found.truth, found.lie, found.best) == (("b",), ABC, "b", 2)
    assert (found.honest, found.lying) == (Fraction(3, 4), Fraction(13, 17))
    assert found.describe() == (
        "a voter who ranks a > b > c beside b: the ballot b raises the probability of a or b from 3/4 to 13/17"
    )
    # a larger base than any needs: still strictly more, and shown so
    tiny = manipulation(Draw("permute_and_flip", 1 + Fraction(1, 10**9)).lottery, FirstChoice(ABC))
    assert tiny is not None and tiny.lying > tiny.honest
    before, after = tiny.describe().rsplit(" from ", 1)[1].split(" to ")
    assert before != after


def test_the_manipulation_is_found_for_many_alternatives() -> None:
    nine = tuple("abcdefghi")
    for draw, points in product(
        (Draw("exponential", Fraction(2)), Draw("permute_and_flip", Fraction(2))), (FirstChoice(nine), Borda(nine))
    ):
        assert not keeps(draw, points)["strategy_proof"]


def test_plurality_can_be_manipulated() -> None:
    found = manipulation(Lottery(PLURALITY), FirstChoice(ABC))
    assert found is not None and (found.honest, found.lying) == (0, 1)
    # c > a > b beside b: b wins the tie against c, a would have won it
    assert (found.truth, found.others, found.lie) == (("c", "a", "b"), ("b",), "a")


def test_leaving_out_alternatives_never_pays_with_borda_points() -> None:
    points = Borda(ABC)
    kinds = [k for n in (1, 2, 3) for k in permutations(ABC, n)]
    for draw in (Draw("dictator", Fraction(1)), Draw("local_dictator", Fraction(4)), Draw("none")):
        for others, lie in product(combinations_with_replacement(kinds, 1), kinds):
            honest = draw.lottery.law(scores(points, (*others, ABC)))
            other = draw.lottery.law(scores(points, (*others, lie)))
            assert other[0] <= honest[0] and other[0] + other[1] <= honest[0] + honest[1]


@pytest.mark.parametrize("draw", DRAWS, ids=lambda d: d.family)
@pytest.mark.parametrize("points", POINTS, ids=lambda p: f"{p.name} {len(p.alternatives)}")
def test_ex_post_efficiency_is_what_a_search_finds(draw: Draw, points: Points) -> None:
    """Over profiles of full rankings: an alternative that all like less than another one must not win."""
    m = len(points.alternatives)
    found = True
    for voters in (1, 2):
        for profile in combinations_with_replacement(list(permutations(points.alternatives)), voters):
            law = draw.lottery.law(scores(points, profile))
            for worse, better in permutations(range(m), 2):
                names = points.alternatives[worse], points.alternatives[better]
                if all(ballot.index(names[1]) < ballot.index(names[0]) for ballot in profile):
                    found = found and not law[worse]
    assert keeps(draw, points)["ex_post_efficient"] == found
    assert found == (draw.family == "none" and (points.name == "first choice" or m == 2))


def test_the_case_against_efficiency() -> None:
    (lost,) = (p for p in Draw("dictator", Fraction(1)).properties(VotingTask(FirstChoice(ABC))) if not p.holds)
    assert lost.counterexample == "one voter who likes a better than b: b wins with probability 1/4"
    assert lost.to_json()["note"] == "keeping"
    (lost,) = (p for p in Draw("none").properties(VotingTask(Borda(ABC))) if not p.holds)
    assert lost.counterexample == "one voter who likes a better than b: b wins with probability 1/3"


def test_one_alternative_keeps_everything() -> None:
    for draw in DRAWS:
        assert all(keeps(draw, FirstChoice(("a",))).values())


@pytest.mark.parametrize("draw", DRAWS, ids=lambda d: d.family)
def test_voters_and_alternatives_are_treated_alike(draw: Draw) -> None:
    law = draw.lottery.law([Fraction(n) for n in (3, 0, 2)])
    assert keeps(draw, FirstChoice(ABC))["treats_voters_alike"]
    for order in permutations(range(3)):
        assert draw.lottery.law([Fraction((3, 0, 2)[a]) for a in order]) == tuple(law[a] for a in order)
