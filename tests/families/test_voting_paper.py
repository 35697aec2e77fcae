"""What Torra 2019 says of random dictatorship, statement by statement: where it is true, and where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import exp, log

import pytest

from privspec.explain.paper import lemma_one, ratio_at
from privspec.families.voting.papers import (
    EachSupported,
    LeastShare,
    largest_percent,
    least_share,
    of_one_profile,
    readings,
)
from privspec.families.voting.rules import decimal_up
from tests.families import voting_oracle as oracle

Counts = tuple[int, ...]
PLAIN = oracle.dummies(Fraction(0))


def profiles(m: int, voters: int) -> set[Counts]:
    return {oracle.added(p, m) for p in oracle.combinations_with_replacement(oracle.first_choices(m), voters)}


def one_more(counts: Counts) -> Iterator[Counts]:
    for a in range(len(counts)):
        yield (*counts[:a], counts[a] + 1, *counts[a + 1 :])


def one_less(counts: Counts) -> Iterator[Counts]:
    for a in (a for a, c in enumerate(counts) if c):
        yield (*counts[:a], counts[a] - 1, *counts[a + 1 :])


def changed(counts: Counts) -> Iterator[Counts]:
    for fewer in one_less(counts):
        yield from (more for more in one_more(fewer) if more != counts)


def ratio(one: Counts, other: Counts) -> Fraction | None:
    """The largest ratio of a probability, either way; None if infinite."""
    worst = Fraction(1)
    for a, b in zip(PLAIN(one), PLAIN(other), strict=True):
        if bool(a) != bool(b):
            return None
        worst = max(worst, a / b, b / a) if a else worst
    return worst


# --- theorem 1 (ii), theorem 2: every alternative has a supporter ------------------------------------


@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("voters", range(3, 9))
def test_theorem_1_ii_is_exact_when_the_smaller_electorate_is_in_the_set(m: int, voters: int) -> None:
    condition = EachSupported(adding=True)
    inside = [c for c in profiles(m, voters) if condition.holds_on(c)]
    found = [ratio(c, more) for c in inside for more in one_more(c)]
    if voters < m:
        assert not inside
        return
    assert None not in found
    assert max(r for r in found if r is not None) == condition.ratio(voters)
    assert condition.sound(voters)


@pytest.mark.parametrize("voters", range(3, 9))
def test_theorem_1_ii_when_both_electorates_are_in_the_set_and_t_is_the_larger(voters: int) -> None:
    condition = EachSupported(adding=True)
    for m in (2, 3):
        for counts in (c for c in profiles(m, voters) if min(c) >= 1):
            for fewer in (f for f in one_less(counts) if min(f) >= 1):
                found = ratio(counts, fewer)
                assert found is not None and found <= condition.ratio(voters)


def test_theorem_1_ii_fails_for_a_voter_who_leaves() -> None:
    # the only supporter of the second alternative leaves: the set is not closed under it
    assert EachSupported(adding=True).holds_on((2, 1))
    assert ratio((2, 1), (2, 0)) is None


def test_theorem_1_ii_needs_three_voters() -> None:
    condition = EachSupported(adding=True)
    assert ratio((1, 1), (2, 1)) == Fraction(3, 2) > condition.ratio(2) == Fraction(4, 3)
    assert not condition.sound(2) and not condition.holds_on((1, 1))


@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("voters", range(2, 8))
def test_theorem_2_needs_both_electorates_in_the_set(m: int, voters: int) -> None:
    condition = EachSupported(adding=False)
    inside = {c for c in profiles(m, voters) if condition.holds_on(c)}
    found = [ratio(c, other) for c in inside for other in changed(c) if other in inside]
    assert None not in found
    assert all(r is not None and r <= condition.ratio(voters) == 2 for r in found)
    assert (condition.ratio(voters) in found) == (voters > m)
    leaving = [ratio(c, other) for c in inside for other in changed(c) if other not in inside]
    assert all(r is None for r in leaving) and (bool(leaving) == bool(inside))


# --- theorem 1 (iii), theorem 2: the least share -----------------------------------------------------


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("voters", range(3, 10))
@pytest.mark.parametrize("adding", [False, True])
def test_least_share_where_it_is_sound(m: int, voters: int, adding: bool) -> None:
    for percent in {least_share(c) for c in profiles(m, voters)} - {0}:
        condition = LeastShare(percent, adding)
        inside = {c for c in profiles(m, voters) if condition.holds_on(c)}
        steps = [(c, o) for c in inside for o in (one_more(c) if adding else changed(c)) if adding or o in inside]
        found = [ratio(*step) for step in steps]
        assert None not in found
        holds = all(r is not None and r <= condition.ratio(voters) for r in found)
        assert holds or not condition.sound(voters)
        if adding and condition.sound(voters):
            assert condition.ratio(voters) in found  # attained, as the share itself is


def test_least_share_of_one_half_is_what_the_condition_on_alpha_excludes() -> None:
    condition = LeastShare(Fraction(50), adding=True)
    assert condition.holds_on((2, 2)) and Fraction(50) > largest_percent(4) and not condition.sound(4)
    assert ratio((2, 2), (3, 2)) == Fraction(5, 4) > condition.ratio(4) == Fraction(6, 5)


def test_least_share_fails_where_t_is_the_larger_electorate() -> None:
    # both have at least 25 %; the bound for five voters is too small for the step from four
    condition = LeastShare(Fraction(25), adding=True)
    assert condition.holds_on((3, 1)) and condition.holds_on((3, 2)) and condition.sound(5)
    assert ratio((3, 1), (3, 2)) == Fraction(8, 5) > condition.ratio(5) == Fraction(3, 2)
    assert condition.ratio(4) == Fraction(8, 5)


def test_least_share_of_a_vote_that_changes_fails_where_one_electorate_is_outside() -> None:
    condition = LeastShare(Fraction(50), adding=False)
    assert condition.holds_on((2, 2)) and not condition.holds_on((3, 1))
    assert ratio((2, 2), (3, 1)) == 2 > condition.ratio(4) == Fraction(3, 2)


def test_sizes_are_where_the_bound_meets_epsilon() -> None:
    bound = Fraction(6, 5)
    for adding in (False, True):
        for percent in (Fraction(2), Fraction(10), Fraction(30)):
            size = LeastShare(percent, adding).size(bound)
            assert all((LeastShare(percent, adding).ratio(t) <= bound) == (t >= size) for t in range(1, 400))


def test_one_profile_exactly() -> None:
    for m in (2, 3):
        for voters in range(1, 8):
            for counts in profiles(m, voters):
                for adding in (False, True):
                    found = [ratio(counts, o) for o in (one_more(counts) if adding else changed(counts))]
                    worst = None if None in found else max(r for r in found if r is not None)
                    assert of_one_profile(counts, adding=adding) == worst, counts


def test_what_is_read_from_a_profile() -> None:
    supported, share = readings((7, 2, 1), adding=True)
    assert supported.applies and decimal_up(supported.epsilon) == "0.597838"  # log(20/11) = .5978370...
    assert share.epsilon == supported.epsilon  # the least share is one voter of ten
    outside = readings((7, 3, 0), adding=True)
    assert [r.applies for r in outside] == [False] and outside[0].epsilon is None
    assert readings((0, 0), adding=False)[0].applies is False


# --- figures of the paper, and lemma 1 ---------------------------------------------------------------


def test_figures_of_the_paper() -> None:
    assert round(log(EachSupported(True).ratio(10)), 4) == 0.5978 == round(log(Fraction(20, 11)), 4)
    assert round(log(EachSupported(False).ratio(10)), 4) == 0.6931
    assert largest_percent(10) == Fraction(1000, 21)
    # figure 3: alpha = 2 %
    assert LeastShare(Fraction(2), True).ratio(100) == Fraction(300, 202)
    # (iii.b) as the paper prints it
    size = LeastShare(Fraction(2), True).size(Fraction(exp(0.5)))
    assert float(size) == pytest.approx((100 - 2 * exp(0.5)) / (2 * (exp(0.5) - 1)))


def method_2(m: int, voters: int) -> Fraction:
    found = oracle.largest(oracle.dummies(Fraction(1)), oracle.first_choices(m), m, voters, True)
    assert found is not None
    return found


def test_lemma_1_fails_for_two_alternatives_and_nobody() -> None:
    assert method_2(2, 0) == ratio_at(2, 0, Fraction(1)) == Fraction(3, 2)
    assert lemma_one(2, 0) == Fraction(4, 3)
    # the second alternative: 1/2 of two dummies, 1/3 once somebody votes for the first
    assert oracle.dummies(Fraction(1))((0, 0))[1] == Fraction(1, 2)
    assert oracle.dummies(Fraction(1))((1, 0))[1] == Fraction(1, 3)


@pytest.mark.parametrize("m", [2, 3, 4])
def test_lemma_1_at_every_other_size_is_exact(m: int) -> None:
    for voters in range(9):
        says, holds = lemma_one(m, voters), ratio_at(m, voters, Fraction(1))
        assert holds == method_2(m, voters)
        assert (says < holds) == (m == 2 and voters == 0)
        assert says <= holds
        # between T - 1 and T voters it is true as well, but for nobody of two alternatives again
        if voters:
            assert method_2(m, voters - 1) <= says


def test_lemma_1_is_no_guarantee_for_every_size() -> None:
    says = [lemma_one(3, voters) for voters in range(50)]
    assert all(one < 2 for one in says)
    assert log(says[10]) == pytest.approx(log(26 / 14))
    assert says == sorted(says)
