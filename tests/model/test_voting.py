"""Laws of lotteries against their definitions, played out."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from math import factorial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privspec.kernel.laws.voting import DUMMY_VOTES, EXPONENTIAL, ONE_REPORT, PERMUTE_AND_FLIP, PLURALITY, TURNED_WINNER
from privspec.model.voting import Borda, Drawn, FirstChoice, Lottery, accepted, scores

A = ("north", "east", "south")
BASES = st.fractions(min_value=1, max_value=8, max_denominator=16)
COUNTS = st.lists(st.integers(0, 6).map(Fraction), min_size=1, max_size=4)
LOTTERIES = st.one_of(
    st.builds(Lottery, st.just(DUMMY_VOTES), st.fractions(min_value=0, max_value=5, max_denominator=8)),
    st.just(Lottery(PLURALITY)),
    st.builds(Lottery, st.just(EXPONENTIAL), BASES),
    st.builds(Lottery, st.just(PERMUTE_AND_FLIP), BASES),
    st.builds(Lottery, st.just(ONE_REPORT), BASES),
    st.builds(Lottery, st.just(TURNED_WINNER), BASES),
)


@given(LOTTERIES, COUNTS)
def test_every_law_sums_to_one(lottery: Lottery, counts: list[Fraction]) -> None:
    law = lottery.law(counts)
    assert len(law) == len(counts)
    assert sum(law) == 1
    assert min(law) >= 0


@given(LOTTERIES, COUNTS, st.randoms(use_true_random=False))
def test_no_alternative_is_favoured(lottery: Lottery, counts: list[Fraction], random: object) -> None:
    if lottery.rule in (PLURALITY, TURNED_WINNER):
        counts = sorted(set(counts))  # ties go by order of declaration
    reverse = list(reversed(counts))
    assert lottery.law(reverse) == tuple(reversed(lottery.law(counts)))


def _played(base: Fraction, counts: Sequence[Fraction]) -> list[Fraction]:
    """Permute and flip as its authors write it: over all orders."""
    most = max(counts)
    law = [Fraction(0)] * len(counts)
    for order in permutations(range(len(counts))):
        left = Fraction(1, factorial(len(counts)))
        for a in order:
            chance = Fraction(1) / base ** int(most - counts[a])
            law[a] += left * chance
            left *= 1 - chance
    return law


@given(BASES, COUNTS)
def test_permute_and_flip_is_what_its_authors_wrote(base: Fraction, counts: list[Fraction]) -> None:
    assert list(Lottery(PERMUTE_AND_FLIP, base).law(counts)) == _played(base, counts)


@given(BASES, COUNTS)
def test_permute_and_flip_is_never_worse_than_exponential(base: Fraction, counts: list[Fraction]) -> None:
    def short(lottery: Lottery) -> Fraction:
        return sum((p * (max(counts) - c) for p, c in zip(lottery.law(counts), counts, strict=True)), Fraction(0))

    assert short(Lottery(PERMUTE_AND_FLIP, base)) <= short(Lottery(EXPONENTIAL, base))


@given(st.fractions(min_value=1, max_value=8, max_denominator=16), st.lists(st.sampled_from(A), min_size=1, max_size=4))
def test_local_pick_is_a_report_of_a_random_voter(ratio: Fraction, votes: list[str]) -> None:
    def report(vote: str, answer: str) -> Fraction:
        return (ratio if answer == vote else Fraction(1)) / (ratio + len(A) - 1)

    expected = tuple(sum((report(v, a) for v in votes), Fraction(0)) / len(votes) for a in A)
    assert Lottery(ONE_REPORT, ratio).law(scores(FirstChoice(A), votes)) == expected


def test_dummy_votes_are_votes() -> None:
    votes = ["north", "north", "south"]
    with_dummies = scores(FirstChoice(A), [*votes, *A, *A])
    assert Lottery(DUMMY_VOTES, Fraction(2)).law(scores(FirstChoice(A), votes)) == Lottery(DUMMY_VOTES).law(
        with_dummies
    )


def test_nobody_voted() -> None:
    for lottery in (
        Lottery(DUMMY_VOTES),
        Lottery(DUMMY_VOTES, Fraction(3)),
        Lottery(ONE_REPORT, Fraction(2)),
        Lottery(EXPONENTIAL, Fraction(2)),
    ):
        assert lottery.law([Fraction(0)] * 4) == (Fraction(1, 4),) * 4


# --- points ---------------------------------------------------------------------------------------


def test_borda_points() -> None:
    assert Borda(A).of(("south", "north", "east")) == (1, 0, 2)
    assert Borda(A).of(("east",)) == (Fraction(1, 2), 2, Fraction(1, 2))
    assert Borda(A).of("east") == (Fraction(1, 2), 2, Fraction(1, 2))
    assert FirstChoice(A).of(("south", "north")) == (0, 0, 1)


@given(st.integers(1, 5).flatmap(lambda m: st.tuples(st.just(m), st.permutations(range(m)), st.integers(1, m))))
def test_every_ballot_has_the_same_weight(drawn: tuple[int, list[int], int]) -> None:
    m, order, length = drawn
    alternatives = tuple(str(i) for i in range(m))
    ballot = tuple(str(i) for i in order[:length])
    for points in (FirstChoice(alternatives), Borda(alternatives)):
        given_points = points.of(ballot)
        assert sum(given_points) == points.per_ballot
        assert max(given_points) <= points.highest
        assert min(given_points) >= 0


@pytest.mark.parametrize("ballot", [(), ("north", "north"), ("west",), "west"])
def test_ballots_that_name_no_alternative_or_one_twice(ballot: object) -> None:
    with pytest.raises(ValueError, match="names alternatives"):
        Borda(A).of(ballot)  # type: ignore[arg-type]


def test_powers_of_half_points_are_not_rational() -> None:
    with pytest.raises(ValueError, match="whole numbers"):
        accepted(Fraction(2), [Fraction(1, 2), Fraction(1)])


def test_the_law_of_a_list_of_votes() -> None:
    drawn = Drawn(FirstChoice(A), Lottery(DUMMY_VOTES))
    assert drawn.law(["north", "south", "south"]) == {"north": Fraction(1, 3), "east": 0, "south": Fraction(2, 3)}
