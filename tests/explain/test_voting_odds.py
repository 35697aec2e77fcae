"""Odds of lotteries: true of the best observer, whatever the others vote; laws, distances and drawings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from privspec.explain.curves import EpsilonDeltaCurve, LotteryCurve, lottery_curve, odds
from privspec.explain.paper import lemma_one, ratio_at
from privspec.explain.voting import FACTORS, VotingFact, dummies_plot, laws_plot
from privspec.explain.voting_rules import (
    Dictator,
    ExponentialRule,
    LocalDictator,
    PermuteAndFlipRule,
    RandomisedWinner,
    Rule,
    Vote,
)
from privspec.kernel.laws.voting import EXPONENTIAL, ONE_REPORT, PERMUTE_AND_FLIP, TURNED_WINNER
from privspec.model.voting import Borda, FirstChoice, Lottery, Points, scores

from .plans import drum, facts, plan

Laws = tuple[np.ndarray, np.ndarray]
KAPPAS = [Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(3)]


def election(points: Points, voters: int | None) -> Vote:
    names = tuple(str(a) for a in points.alternatives)
    kind = "ranking" if isinstance(points, Borda) else "first choice"
    return Vote("vote", "voter", voters, kind, "O", points, names)


def words(m: int) -> tuple[str, ...]:
    return tuple("abcde"[:m])


def firsts(m: int, voters: int) -> Iterator[tuple[int, ...]]:
    """All counts of first choices."""
    return (c for c in product(range(voters + 1), repeat=m) if sum(c) == voters)


def neighbours(rule: Rule, m: int, voters: int, *, adds: bool) -> Iterator[Laws]:
    """The laws of all pairs of neighbouring elections, in both orders."""
    for counts in firsts(m, voters):
        for a in range(m):
            for b in [None] if adds else [b for b in range(m) if b != a and counts[a]]:
                other = list(counts)
                other[a] += 1 if b is None else -1
                if b is not None:
                    other[b] += 1
                p, q = (np.array(rule.law([Fraction(n) for n in c])) for c in (counts, other))
                yield p, q
                yield q, p


def best_test(p: Sequence[float], q: Sequence[float], alarms: float) -> float:
    """The least share of misses of any test (Neyman and Pearson), by going through winners in falling order of q/p."""
    left, misses = alarms, 1.0
    for i in sorted(range(len(p)), key=lambda i: -q[i] / (p[i] + q[i])):
        share = min(1.0, left / p[i]) if p[i] else 1.0
        left, misses = left - share * p[i], misses - share * q[i]
    return misses


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("kappa", KAPPAS)
@pytest.mark.parametrize("m", [2, 3, 4])
def test_no_test_beats_the_curve(m: int, kappa: Fraction, adds: bool) -> None:
    rule, points = Dictator(kappa), FirstChoice(words(m))
    epsilon = math.log1p(float(1 / kappa))
    for voters in range(6) if adds else range(1, 5):
        vote = election(points, None if adds else voters)
        apart = rule.distance(vote, adds=adds, local=False)
        assert apart is not None
        found = lottery_curve(epsilon, float(apart))
        bounds = [(float(a), found.misses(float(a))) for a in np.linspace(0, 1, 13)]
        # many elections have the same laws
        for p, q in {(tuple(p), tuple(q)) for p, q in neighbours(rule, m, voters, adds=adds)}:
            assert 0.5 * sum(abs(a - b) for a, b in zip(p, q, strict=True)) <= float(apart) + 1e-12
            assert all(misses <= best_test(p, q, a) + 1e-9 for a, misses in bounds)


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("kappa", KAPPAS)
def test_the_distance_is_attained(kappa: Fraction, adds: bool) -> None:
    rule, points = Dictator(kappa), FirstChoice(words(3))
    sizes = range(7) if adds else [4]
    vote = election(points, None if adds else 4)
    largest = max(0.5 * np.abs(p - q).sum() for v in sizes for p, q in neighbours(rule, 3, v, adds=adds))
    assert largest == pytest.approx(float(rule.distance(vote, adds=adds, local=False) or 0))


@pytest.mark.parametrize("kappa", KAPPAS)
@pytest.mark.parametrize("m", [3, 4])
def test_an_exact_curve_is_attained(m: int, kappa: Fraction) -> None:
    rule, voters = Dictator(kappa), 4
    vote = election(FirstChoice(words(m)), voters)
    assert rule.attains(vote, adds=False, local=False)
    assert not rule.attains(election(FirstChoice(words(2)), voters), adds=False, local=False)
    apart = rule.distance(vote, adds=False, local=False)
    found = lottery_curve(math.log1p(float(1 / kappa)), float(apart or 0), exact=True)
    pairs = list(neighbours(rule, m, voters, adds=False))
    for a in np.linspace(0, 1, 21):
        assert found.misses(float(a)) == pytest.approx(min(best_test(p, q, float(a)) for p, q in pairs), abs=1e-9)


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_curve_of_the_randomised_winner_is_exact(m: int, adds: bool) -> None:
    """For one voter and for several: what the winner tells does not grow with the ballots that change."""
    rule = RandomisedWinner(Fraction(3))
    vote = election(FirstChoice(words(m)), None if adds else 4)
    apart = rule.distance(vote, adds=adds, local=False)
    assert apart == Fraction(2, 2 + m) and rule.attains(vote, adds=adds, local=False)
    found = lottery_curve(math.log(3), float(apart), exact=True, adds_up=rule.adds_up)
    pairs = list(neighbours(rule, m, 4, adds=adds))
    laws = [np.array(rule.law([Fraction(n) for n in counts])) for counts in firsts(m, 4)]
    for a in np.linspace(0, 1, 21):
        assert found.misses(float(a)) == pytest.approx(min(best_test(p, q, float(a)) for p, q in pairs), abs=1e-9)
        several = min(best_test(p, q, float(a)) for p in laws for q in laws)
        assert found.for_group(7).misses(float(a)) == pytest.approx(several, abs=1e-9)


@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("adds", [False, True])
def test_rankings_move_no_more_than_that(m: int, adds: bool) -> None:
    from itertools import permutations

    points = Borda(words(m))
    every = list(permutations(words(m)))
    rule = Dictator(Fraction(7, 4))
    largest = 0.0
    for voters in range(3) if adds else [2]:
        for others in product(every, repeat=voters if adds else voters - 1):
            base = scores(points, others)
            moved = [tuple(x + y for x, y in zip(base, points.of(b), strict=True)) for b in every]
            pairs = [(base, t) for t in moved] if adds else list(product(moved, repeat=2))
            for one, two in pairs:
                p, q = np.array(rule.law(one)), np.array(rule.law(two))
                largest = max(largest, float(0.5 * np.abs(p - q).sum()))
    apart = rule.distance(election(points, None if adds else 2), adds=adds, local=False)
    assert largest == pytest.approx(float(apart or 0))


def test_odds_are_those_of_the_best_observer_with_equal_errors() -> None:
    found = facts(drum("1", 1)).claims[0]
    assert found.shown is not None
    plain = found.shown.odds
    p, q = np.array([2, 1, 1]) / 4, np.array([1, 2, 1]) / 4
    alarms = np.linspace(0, 1, 100_001)
    equal = min(a for a in alarms if best_test(p, q, float(a)) <= a)
    assert plain.without == math.floor(100 * equal - 1e-6)
    assert plain.without + plain.taking_part == 100
    # nobody does better on both counts
    assert all(a >= plain.without / 100 or 1 - best_test(p, q, a) <= plain.taking_part / 100 for a in alarms[::100])


def test_a_curve_without_a_distance_is_that_of_epsilon() -> None:
    bound, found = EpsilonDeltaCurve(0.7), lottery_curve(0.7, 1.0)
    for a in (0.0, 0.01, 0.2, 0.5, 0.9, 1.0):
        assert found.misses(a) == pytest.approx(bound.misses(a), abs=1e-9)
    assert found.advantage() == pytest.approx(bound.advantage())
    assert lottery_curve(0.0, 0.3).equal_error() == pytest.approx(0.5)
    assert lottery_curve(5000.0, 1.0).equal_error() == pytest.approx(0.0, abs=1e-9)


def test_several_draws_and_several_voters() -> None:
    one = lottery_curve(math.log(2), 1 / 6)
    assert one.repeated(1) is one
    errors = [one.repeated(k).equal_error() for k in (1, 2, 4)]
    assert errors == sorted(errors, reverse=True)
    group = one.for_group(2)
    assert isinstance(group, LotteryCurve)
    assert group.distance == pytest.approx(1 / 3)
    # two draws: any set of pairs of winners, by brute force over the three winners of the pair
    p, q = one.first[0], one.second[0]
    twice = (np.outer(p, p).ravel(), np.outer(q, q).ravel())
    for a in (0.1, 0.3, 0.5):
        exact = best_test(*twice, a)
        assert one.repeated(2).misses(a) == pytest.approx(exact, abs=2e-3)
        assert one.repeated(2).misses(a) <= exact + 1e-9


# --- which question is asked ----------------------------------------------------------------------


def test_replacing_asks_how_and_adding_asks_whether() -> None:
    how, whether = (facts(plan).claims[0].question for plan in (drum("1"), plan("landmark")))
    assert how.heading == "Could someone tell how you voted?"
    assert whether.heading == "Could someone tell whether you voted?"
    assert facts(plan("sushi")).claims[0].question.text("accused") == "who voted another way"


def test_wording_of_the_odds() -> None:
    fact = facts(plan("landmark")).claims[0]
    assert fact.shown is not None
    assert [sentence.text for sentence in fact.question.odds(fact.shown.odds, fact.claim)] == [
        "A guesser who errs equally often both ways would on average accuse at least 41 of 100 people who did not "
        "vote.",
        "Such a guesser would find at most 59 of 100 who did.",
    ]
    fact = facts(plan("quick_poll")).claims[0]
    assert fact.shown is not None
    assert [sentence.text for sentence in fact.question.odds(fact.shown.odds, fact.claim)] == [
        "A guesser who errs equally often both ways would on average accuse at least 31 of 100 people who voted for "
        "east.",
        "Such a guesser would find at most 69 of 100 who voted for north.",
    ]


def test_one_draw_is_exact_where_it_can_be() -> None:
    curve = facts(drum("1")).claims[0].claim.achieved
    assert isinstance(curve, LotteryCurve)
    assert curve.exact
    assert curve.advantage() == pytest.approx(1 / 1003)
    added = facts(plan("landmark")).claims[0].claim.achieved
    assert added is not None
    assert not added.exact
    assert added.advantage() == pytest.approx(1 / 6)  # from nobody to one voter: 2/3 - 1/2
    only_epsilon = facts(plan("lunch")).claims[0].claim.achieved
    assert isinstance(only_epsilon, EpsilonDeltaCurve)


def test_rounds_compose() -> None:
    fact = facts(plan("nine_rounds")).claims[0]
    assert fact.shown is not None
    assert fact.claim.achieved is not None
    whole = EpsilonDeltaCurve(0.7).equal_error()
    assert whole < fact.claim.achieved.equal_error() < 0.5


def test_the_statement_bounds_what_is_not_known() -> None:
    assert odds(EpsilonDeltaCurve(0.5)).pair == "37 and 63 of 100"


# --- laws -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("counts", [(3, 1, 0), (0, 0, 0), (5, 5, 2), (4, 0, 0, 7), (1, 2)])
@pytest.mark.parametrize(
    ("rule", "lottery"),
    [
        (ExponentialRule(Fraction(5, 4)), Lottery(EXPONENTIAL, Fraction(5, 4))),
        (PermuteAndFlipRule(Fraction(5, 4)), Lottery(PERMUTE_AND_FLIP, Fraction(5, 4))),
        (LocalDictator(Fraction(3)), Lottery(ONE_REPORT, Fraction(3))),
        (RandomisedWinner(Fraction(3)), Lottery(TURNED_WINNER, Fraction(3))),
    ],
)
def test_laws_are_those_of_the_model(rule: Rule, lottery: Lottery, counts: tuple[int, ...]) -> None:
    points = [Fraction(n) for n in counts]
    assert rule.law(points) == pytest.approx([float(p) for p in lottery.law(points)], abs=1e-12)


def test_large_elections_do_not_overflow() -> None:
    law = PermuteAndFlipRule(Fraction(3, 2)).law([Fraction(10**6), Fraction(10**6 - 1), Fraction(0)])
    assert sum(law) == pytest.approx(1)
    assert law[2] == 0


@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("voters", range(9))
def test_lemma_one_beside_enumeration(m: int, voters: int) -> None:
    """Every number of voters: the closed form is the largest ratio; Lemma 1 is it but for two candidates and nobody."""
    largest = Fraction(1)
    for counts in firsts(m, voters):
        for a in range(m):
            more = [n + (i == a) for i, n in enumerate(counts)]
            one = [Fraction(n + 1, voters + m) for n in counts]
            two = [Fraction(n + 1, voters + 1 + m) for n in more]
            largest = max(largest, *(max(x / y, y / x) for x, y in zip(one, two, strict=True)))
    assert ratio_at(m, voters, Fraction(1)) == largest < 2
    assert (lemma_one(m, voters) >= largest) is not (m == 2 and voters == 0)


def test_lemma_one_fails_where_it_was_found_to() -> None:
    assert lemma_one(2, 0) == Fraction(4, 3)
    assert ratio_at(2, 0, Fraction(1)) == Fraction(3, 2)


# --- drawings -------------------------------------------------------------------------------------


@pytest.mark.parametrize("plan", [drum("1"), plan("landmark"), plan("sushi"), plan("lunch"), plan("quick_poll")])
def test_laws_are_drawn_as_they_are(plan: dict[str, object]) -> None:
    fact = facts(plan).mechanism
    assert isinstance(fact, VotingFact)
    plot = laws_plot(fact.examples, fact.rule, fact.vote)
    assert plot is not None
    svg = plot.draw()
    assert svg.startswith("<svg")
    for example in fact.examples:
        assert sum(c.chance.value for c in example.chances) == pytest.approx(1)
        assert sum(c.without.value for c in example.chances) == pytest.approx(1)
        for chance in example.chances:
            assert chance.chance.text in svg
    assert len(plot.twin.rows) == sum(len(e.chances) for e in fact.examples)


def test_epsilon_against_dummy_votes() -> None:
    fact = facts(drum("1")).mechanism
    assert isinstance(fact, VotingFact)
    plot = dummies_plot(fact.rule, fact.vote)
    assert plot is not None
    assert len(plot.twin.rows) == len(FACTORS)
    assert ("1", "0.6932", "3", "this plan") in plot.twin.rows
    assert plot.draw().startswith("<svg")
    other = facts(plan("lunch")).mechanism
    assert isinstance(other, VotingFact)
    assert dummies_plot(other.rule, other.vote) is None


def test_many_candidates_are_cut() -> None:
    plan = drum("1")
    plan["problem"]["blocks"][0]["ballots"]["alternatives"] = [f"candidate {i}" for i in range(40)]
    fact = facts(plan).mechanism
    assert isinstance(fact, VotingFact)
    plot = laws_plot(fact.examples, fact.rule, fact.vote)
    assert plot is not None
    assert "The first 12 of 40 candidates." in plot.caption
    assert "candidate 13" not in plot.draw()
