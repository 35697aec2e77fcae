"""Epsilon of the rules of private voting, against electorates gone through ballot by ballot, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import exp, log

import pytest

from privspec.families.voting.rules import RULES, Draw, Rule, VotingTask, decimal_up, growth_down, log_up, simplest
from privspec.model.voting import Borda, FirstChoice, Points
from tests.families import voting_oracle as oracle
from tests.families.voting_oracle import enumerated_ratio

ABCD = ("a", "b", "c", "d")
FAMILIES = ("dictator", "exponential", "permute_and_flip", "local_dictator", "randomised_winner")
NEAR = Fraction(1, 2**100)
"""Powers are enclosed, and rounded up."""
BOTH = (False, True)
BASES = (Fraction(11, 10), Fraction(3, 2), Fraction(4))


def first(m: int, voters: int | None, adding: bool, group: int = 1) -> VotingTask:
    return VotingTask(FirstChoice(ABCD[:m]), voters, adding, group)


def borda(m: int, voters: int | None, adding: bool, group: int = 1) -> VotingTask:
    return VotingTask(Borda(ABCD[:m]), voters, adding, group)


@pytest.mark.parametrize("kappa", [Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(3)], ids=str)
@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("adding", BOTH)
def test_dummy_votes_at_every_size(kappa: Fraction, m: int, adding: bool) -> None:
    law = lru_cache(maxsize=None)(oracle.dummies(kappa))
    found = Draw("dictator", kappa)
    for voters in range(9):
        task = first(m, voters, adding)
        largest = oracle.largest(law, oracle.first_choices(m), m, voters, adding)
        assert largest is not None
        assert largest <= found.ratio(task) if adding else largest == found.ratio(task), voters
        assert found.ratio(task) <= found.ratio(first(m, None, adding)) == 1 + 1 / kappa


@pytest.mark.parametrize("adding", BOTH)
@pytest.mark.parametrize(("m", "most"), [(2, 5), (3, 4), (4, 2)])
def test_dummy_votes_with_borda_points(m: int, most: int, adding: bool) -> None:
    for kappa, voters in product((Fraction(1, 2), Fraction(3)), range(most + 1)):
        found = oracle.largest(oracle.dummies(kappa), oracle.rankings(m), m, voters, adding)
        assert found is not None and found <= Draw("dictator", kappa).ratio(borda(m, voters, adding))
        assert adding or found == Draw("dictator", kappa).ratio(borda(m, voters, adding))
    assert Draw("dictator", Fraction(3)).ratio(borda(m, None, adding)) == 1 + Fraction(m - 1, 3)


@pytest.mark.parametrize("adding", BOTH)
@pytest.mark.parametrize("m", [2, 3, 4])
def test_exponential_and_local_at_small_sizes(m: int, adding: bool) -> None:
    for x, voters in product(BASES, range(7)):
        task, kinds = first(m, voters, adding), oracle.first_choices(m)
        for family, law in (("exponential", oracle.exponential(x)), ("local_dictator", oracle.reports(x))):
            found, largest = Draw(family, x), oracle.largest(law, kinds, m, voters, adding)
            assert largest is not None
            assert largest <= found.ratio(task) if adding else largest == found.ratio(task)


@pytest.mark.parametrize("adding", BOTH)
@pytest.mark.parametrize("m", [2, 3, 4])
def test_permute_and_flip_at_small_sizes(m: int, adding: bool) -> None:
    for x, voters in product(BASES, range(5)):
        task = first(m, voters, adding)
        found = oracle.largest(lru_cache(maxsize=None)(oracle.flips(x)), oracle.first_choices(m), m, voters, adding)
        assert (
            found is not None
            and found <= Draw("permute_and_flip", x).ratio(task)
            and found <= x ** (1 if adding else 2)
        )
        assert adding or Draw("permute_and_flip", x).ratio(task) - found < NEAR
        if not adding and voters >= 2:
            assert (found == x**2) == (m == 2)


@pytest.mark.parametrize("voters", range(1, 9))
@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_permute_and_flip_is_worst_beside_a_unanimous_electorate(m: int, voters: int) -> None:
    for x in BASES:
        found, task = Draw("permute_and_flip", x), VotingTask(FirstChoice((*ABCD, "e")[:m]), voters)
        one = found.lottery.law([Fraction(voters), *[Fraction(0)] * (m - 1)])
        other = found.lottery.law([Fraction(voters - 1), Fraction(1), *[Fraction(0)] * (m - 2)])
        steepest = max(max(a / b, b / a) for a, b in zip(one, other, strict=True))
        assert 0 <= found.ratio(task) - steepest < NEAR
        if m * voters <= 24:
            assert enumerated_ratio(found.lottery, task) == steepest


def test_bounds_where_closed_forms_would_be_long() -> None:
    x = 1 + Fraction(1, 10**4)
    for rule, last in ((Draw("permute_and_flip", x), 4681), (Draw("exponential", x), 4681)):
        assert rule.ratio(first(3, last - 1, False)) < rule.ratio(first(3, last, False)) < x**2
        assert rule.ratio(first(3, last + 1, False)) == x**2


@pytest.mark.parametrize("law", [oracle.exponential, oracle.flips, oracle.reports])
@pytest.mark.parametrize("adding", BOTH)
def test_borda_points_of_three(law: Callable[[Fraction], oracle.Law], adding: bool) -> None:
    family = {oracle.exponential: "exponential", oracle.flips: "permute_and_flip", oracle.reports: "local_dictator"}[
        law
    ]
    for x, voters in product(BASES, range(4)):
        task, found = borda(3, voters, adding), oracle.largest(law(x), oracle.rankings(3), 3, voters, adding)
        assert (
            found is not None
            and found <= Draw(family, x).ratio(task) <= Draw(family, x).ratio(borda(3, None, adding)) + NEAR
        )
        assert adding or Draw(family, x).ratio(task) - found < NEAR


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("adding", BOTH)
def test_two_voters_at_once(family: str, adding: bool) -> None:
    draw = Draw(family, Fraction(3))
    for task in (*(first(3, t, adding, 2) for t in range(5)), *(borda(3, t, adding, 2) for t in range(3))):
        truth = enumerated_ratio(draw.lottery, task)
        assert truth is not None and truth <= draw.ratio(task) <= draw.ratio(VotingTask(task.points, None, adding, 2))
        assert truth == draw.ratio(task) or adding or family in ("exponential", "permute_and_flip")


def test_the_supremum_over_all_sizes_is_approached() -> None:
    x = Fraction(3, 2)
    for adding in BOTH:
        for rule in (Draw("exponential", x), Draw("permute_and_flip", x), Draw("dictator", x)):
            bound, at = rule.ratio(first(3, None, adding)), rule.ratio(first(3, 2000, adding))
            assert bound * Fraction(999, 1000) < at <= bound
    assert Draw("exponential", x).ratio(borda(3, None, False)) == x**4
    law = Draw("exponential", x).lottery
    # a and b change places in one ballot, beside many with b on top
    one, other = (
        law.law([Fraction(2), Fraction(200), Fraction(101)]),
        law.law([Fraction(0), Fraction(202), Fraction(101)]),
    )
    assert one[0] / other[0] > x**4 * Fraction(999, 1000)


def test_without_dummy_votes_there_is_no_epsilon() -> None:
    for adding, voters in ((True, 0), (True, 3), (False, 1), (False, 3)):
        assert enumerated_ratio(Draw("none").lottery, first(2, voters, adding)) is None
    (rule,) = (r for r in RULES if r.family == "none")
    assert isinstance(rule.calibrate(first(3, None, True), Fraction(10)), str)


@pytest.mark.parametrize("epsilon", ["1e-9", "1/10", "1/2", "0.6931471806", "1", "3", "20", "300"])
@pytest.mark.parametrize("adding", BOTH)
@pytest.mark.parametrize("group", [1, 3])
def test_calibration_meets_epsilon_and_wastes_little(epsilon: str, adding: bool, group: int) -> None:
    wanted = Fraction(epsilon)
    tasks = [make(3, voters, adding, group) for make in (first, borda) for voters in (None, 1, 4, 10**6)]
    for task, rule in product(tasks, RULES[:-1]):
        found = rule.calibrate(task, wanted)
        assert not isinstance(found, str)
        everywhere = VotingTask(task.points, None, adding, task.moved)
        assert found.epsilon(task) <= wanted
        # weights use what a public number of voters leaves; the others are calibrated for every number
        own = found.family in ("exponential", "permute_and_flip") and task.voters is not None and not adding
        if not own:
            assert found.epsilon(task) <= found.epsilon(everywhere) <= wanted
        if wanted < 100 and found.family != "local_dictator":
            assert found.epsilon(task if own else everywhere) > wanted * (1 - Fraction(1, 10**8))
        if found.family == "local_dictator" and not adding:
            assert found.epsilon(task, seen=True) <= wanted


@pytest.mark.parametrize("rule", [r for r in RULES if r.family in ("exponential", "permute_and_flip")])
@pytest.mark.parametrize("voters", [1, 2, 4, 7])
@pytest.mark.parametrize("epsilon", ["0.8", "3"])
def test_rivals_spend_the_same_epsilon_exactly(rule: Rule, voters: int, epsilon: str) -> None:
    """At a public number of voters the largest ratio of all pairs of electorates is e^epsilon, no less."""
    found = rule.calibrate(first(3, voters, False), Fraction(epsilon))
    assert not isinstance(found, str)
    ratio = enumerated_ratio(found.lottery, first(3, voters, False))
    assert ratio is not None
    assert float(epsilon) * (1 - 1e-8) <= log(ratio) <= float(epsilon)


def test_least_dummy_votes() -> None:
    task = first(3, None, True)
    just_above = Fraction(69314718057, 10**11)  # log 2 = .693147180559945...
    for points, adding in product((first, borda), BOTH):
        found = RULES[0].calibrate(points(3, None, adding), just_above)
        assert found == Draw("dictator", points(3, None, adding).points.highest)
    found = RULES[0].calibrate(task, Fraction(1, 2))
    assert isinstance(found, Draw)
    assert float(found.number) == pytest.approx(1 / (exp(0.5) - 1), rel=1e-8)


def test_nothing_is_calibrated_to_epsilon_zero_or_to_halves_of_points() -> None:
    for rule in RULES:
        assert isinstance(rule.calibrate(first(3, None, True), Fraction(0)), str)
    halves = VotingTask(Borda(ABCD), None, False, whole=False)
    said = {rule.family: rule.calibrate(halves, Fraction(1)) for rule in RULES}
    assert {family for family, found in said.items() if isinstance(found, str)} == {
        "exponential",
        "permute_and_flip",
        "none",
    }


def test_partial_rankings_change_no_ratio() -> None:
    points: Points = Borda(ABCD[:3])
    kinds = [points.of(ballot) for ballot in (("a",), ("b",), ("c",))]
    shares = [tuple(int(2 * p) for p in kind) for kind in kinds]  # in halves
    full = [tuple(2 * p for p in kind) for kind in oracle.rankings(3)]
    for adding, voters in product(BOTH, range(4)):
        found = oracle.largest(oracle.dummies(Fraction(2)), [*full, *shares], 3, voters, adding)
        assert found is not None and found <= Draw("dictator", Fraction(1)).ratio(borda(3, voters, adding))
        assert adding or found == Draw("dictator", Fraction(1)).ratio(borda(3, voters, adding))


def test_one_alternative_or_nobody_reveals_nothing() -> None:
    for family in FAMILIES:
        for task in (first(1, None, True), first(1, 3, False), borda(1, 3, False), first(3, 0, False)):
            assert Draw(family, Fraction(2)).ratio(task) == 1
            assert Draw(family, Fraction(2)).epsilon(task) == 0
    for rule in RULES[:-1]:
        assert not isinstance(rule.calibrate(borda(1, None, False), Fraction(1)), str)


def test_logarithms_are_rounded_up_and_powers_down() -> None:
    for ratio in (Fraction(1), Fraction(2), Fraction(10**9 + 1, 10**9), Fraction(10**80)):
        assert float(log_up(ratio)) == pytest.approx(log(ratio), rel=1e-12)
    for epsilon in (Fraction(1, 10**9), Fraction(1), Fraction(30)):
        assert log_up(1 + growth_down(epsilon)) >= epsilon * (1 - Fraction(1, 2**90))
        assert float(growth_down(epsilon)) == pytest.approx(exp(epsilon) - 1, rel=1e-6)
    assert simplest(Fraction(31, 100), Fraction(34, 100)) == Fraction(1, 3)
    assert simplest(Fraction(7, 2), Fraction(9, 2)) == 4
    assert (
        decimal_up(Fraction(2, 3)) == "0.666667"
        and decimal_up(Fraction(1, 2)) == "0.5"
        and decimal_up(Fraction(2)) == "2"
    )
