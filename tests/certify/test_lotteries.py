"""The checker's laws, ratios, losses and bounds of lotteries against brute force over lists of ballots."""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, permutations, product
from math import log

import numpy as np
import pytest
from scipy.optimize import linprog

from privspec.certify.checker import verify
from privspec.certify.lotteries import ties
from privspec.certify.lotteries.bound import farthest, walk
from privspec.certify.lotteries.costs import LARGEST, SHARES, Apart, Body, Missed, VotesMissed
from privspec.certify.lotteries.losses import over
from privspec.certify.lotteries.meaning import Ballots
from privspec.certify.lotteries.profiles import largest, neighbours, pairs, profiles, totals
from privspec.certify.lotteries.properties import TESTS
from privspec.certify.lotteries.rules import (
    Change,
    Dummies,
    Exponential,
    PermuteAndFlip,
    Ratio,
    Reports,
    Winner,
)
from privspec.certify.motion import NotUnderstood
from privspec.certify.reading import Malformed
from privspec.certify.relations import Unbounded
from privspec.model import lotteries as model
from tests.certify import lottery_plans as made

KAPPAS = [Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(3)]
SOME = (
    Dummies(Fraction(1, 3)),
    Exponential(Fraction(3, 2)),
    PermuteAndFlip(Fraction(3, 2)),
    Reports(Fraction(2)),
    Winner(Fraction(5, 2)),
)


def first(m: int) -> Ballots:
    return Ballots("first choice", m, 1, "first choice")


def ranking(m: int) -> Ballots:
    return Ballots("ranking", m, m, "borda")


def partial(m: int, places: int) -> Ballots:
    return Ballots("partial ranking", m, places, "borda")


def tally(votes, m):
    return tuple(Fraction(votes.count(a)) for a in range(m))


def brute(law, m: int, voters: int, *, adding: bool, group: int = 1) -> Fraction | None:
    """The largest ratio over all lists of first choices and all lists that differ in up to `group` places."""
    worst, known = Fraction(1), cache(lambda counts: law(tuple(map(Fraction, counts))))
    for one, other in _lists(m, voters, group, adding):
        before, after = ([votes.count(a) for a in range(m)] for votes in (one, other))
        for p, q in zip(known(tuple(before)), known(tuple(after)), strict=True):
            if not p or not q:
                return None
            worst = max(worst, p / q, q / p)
    return worst


def _lists(m: int, voters: int, group: int, adding: bool) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for votes in combinations_with_replacement(range(m), voters):
        if adding:
            for k in range(1, group + 1):
                yield from ((votes, votes + more) for more in product(range(m), repeat=k))
        else:
            k = min(group, voters)
            for kept in {tuple(votes[i] for i in keep) for keep in _keeps(voters, voters - k)}:
                yield from ((votes, kept + new) for new in product(range(m), repeat=k))


def _keeps(n: int, k: int) -> list[tuple[int, ...]]:
    return [c for c in combinations_with_replacement(range(n), k) if len(set(c)) == k]


# --- dummy votes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kappa", KAPPAS)
@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("voters", range(7))
def test_dummy_votes_by_brute_force(m, voters, kappa):
    rule, ballots = Dummies(kappa), first(m)
    for group in (1, 2):
        change = Change(False, group, voters)
        found = brute(rule.law, m, voters, adding=False, group=group)
        assert largest(rule, ballots, change, voters) == found == rule.ratio(ballots, change).value
    total = voters + m * kappa
    at_this_size = max((1 + kappa) / kappa * total / (total + 1), (total + 1) / total)
    adding = Change(True, 1, voters)
    assert brute(rule.law, m, voters, adding=True) == at_this_size
    assert largest(rule, ballots, adding, voters) >= at_this_size
    assert largest(rule, ballots, adding, voters) <= rule.ratio(ballots, adding).value == 1 + 1 / kappa


@pytest.mark.parametrize("kappa", KAPPAS)
def test_the_supremum_is_that_of_all_numbers_of_voters(kappa):
    rule = Dummies(kappa)
    far = 10**6
    nothing, one = (Fraction(0), Fraction(far)), (Fraction(1), Fraction(far))
    near = rule.law(one)[0] / rule.law(nothing)[0]
    assert 0 < 1 + 1 / kappa - near < Fraction(5, far)


def test_lemma_1_fails_where_nobody_votes():
    found = largest(Dummies(Fraction(1)), first(2), Change(True, 1, 0), 0)
    assert found == Fraction(3, 2)  # the lemma says 2 (T + m) / (T + m + 1) = 4 / 3


def test_without_dummy_votes_there_is_no_ratio():
    rule = Dummies(Fraction(0))
    assert largest(rule, first(2), Change(False, 1, 2), 2) is None
    assert rule.ratio(first(2), Change(False, 1, 2)) == Ratio(None)
    assert not Ratio(None).within(Fraction(10**6))


@pytest.mark.parametrize("ballots", [ranking(3), partial(3, 3), partial(3, 1), partial(4, 4), ranking(2)])
def test_borda_points_by_enumeration(ballots):
    rule = Dummies(Fraction(7, 3))
    for voters in range(4):
        for change in (Change(False, 1, voters), Change(True, 1, voters), Change(False, 2, voters)):
            if pairs(ballots, change, voters) > 20_000:
                continue
            found, closed = largest(rule, ballots, change, voters), rule.ratio(ballots, change).value
            assert found <= closed
            if not change.adding and ballots.reaches_zero:
                assert found == closed


def test_pairs_are_counted_generously():
    for ballots in (first(3), ranking(3), partial(3, 2)):
        for change in (Change(False, 1, 3), Change(True, 2, 3), Change(False, 2, 3)):
            assert len(list(neighbours(ballots, change, 3))) <= pairs(ballots, change, 3)


# --- other rules ---------------------------------------------------------------------------------------

BASES = [Fraction(3, 2), Fraction(2), Fraction(7, 2)]


@pytest.mark.parametrize("b", BASES)
@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("voters", range(6))
def test_exponential_by_brute_force(m, voters, b):
    rule, ballots = Exponential(b), first(m)
    for group in (1, 2, 3):
        change = Change(False, group, voters)
        found = brute(rule.law, m, voters, adding=False, group=group)
        assert found == rule.at(ballots, change).value
        assert found <= rule.ratio(ballots, change).value
    adding = Change(True, 2, voters)
    assert largest(rule, ballots, adding, voters) <= rule.ratio(ballots, adding).value == b**2


@pytest.mark.parametrize("b", BASES)
@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("voters", range(6))
def test_permute_and_flip_by_brute_force(m, voters, b):
    rule, ballots = PermuteAndFlip(b), first(m)
    for votes in combinations_with_replacement(range(m), voters):
        assert rule.law(tally(votes, m)) == made.flipped(b, tuple(votes.count(a) for a in range(m)))
    change = Change(False, 1, voters)
    found, closed = brute(rule.law, m, voters, adding=False), rule.ratio(ballots, change).value
    assert found == rule.at(ballots, change).value <= closed
    assert found == closed or m > 2 or voters == 1
    assert largest(rule, ballots, Change(True, 1, voters), voters) <= b


def test_ratios_of_powers_are_reached_in_the_limit():
    many = Fraction(60)
    for rule in (Exponential(Fraction(2)), PermuteAndFlip(Fraction(2))):
        before, after = (Fraction(0), many, Fraction(0)), (Fraction(1), many - 1, Fraction(0))
        ratio = rule.law(after)[0] / rule.law(before)[0]
        assert 0 <= 1 - ratio / rule.ratio(first(3), Change(False, 1, 60)).value < Fraction(1, 10**6)


@pytest.mark.parametrize("truth", [Fraction(3, 2), Fraction(4)])
@pytest.mark.parametrize("ballots", [first(2), first(3), ranking(3)])
def test_reports(ballots, truth):
    seen, alone = Reports(truth), Reports(truth, seen=False)
    one = Change(False, 1, 1)
    assert largest(seen, ballots, one, 1) == seen.report(ballots) == seen.ratio(ballots, one).value
    assert seen.ratio(ballots, Change(False, 3, 9)).value == seen.report(ballots) ** 3
    for voters in range(1, 5):
        change = Change(False, 1, voters)
        assert largest(alone, ballots, change, voters) == alone.at(ballots, change).value
    for voters in range(4):
        for group in (1, 2):
            change = Change(True, group, voters)
            assert largest(alone, ballots, change, voters) <= alone.at(ballots, change).value
    assert max(largest(alone, ballots, Change(True, 1, n), n) for n in (0, 1)) == (
        alone.at(ballots, Change(True, 1, 0)).value
    )
    with pytest.raises(Unbounded):
        seen.ratio(ballots, Change(True, 1, 3))


@pytest.mark.parametrize("truth", [Fraction(3, 2), Fraction(4)])
@pytest.mark.parametrize("ballots", [first(2), first(3), first(4), ranking(3), partial(3, 1)])
@pytest.mark.parametrize("group", [1, 2])
def test_randomised_winner_by_brute_force(ballots, truth, group):
    rule = Winner(truth)
    for adding, voters in product((False, True), range(4)):
        change = Change(adding, group, voters)
        found = largest(rule, ballots, change, voters)
        assert found == rule.ratio(ballots, change).value == (truth if voters or adding else 1)
        if ballots.points == "first choice":
            assert found == brute(rule.law, ballots.size, voters, adding=adding, group=group)


@pytest.mark.parametrize("m", [2, 3, 4, 5])
@pytest.mark.parametrize("voters", range(1, 10))
def test_the_worst_of_all_profiles_for_the_randomised_winner(m, voters):
    for truth in (Fraction(1), Fraction(5, 4), Fraction(3), Fraction(40)):
        for cost in (Apart(SHARES), Missed(SHARES), VotesMissed(), Apart(LARGEST), Missed(LARGEST)):
            found = over(Voting(Winner(truth), first(m), voters), Body(((Fraction(1), cost),), Fraction(0)), "worst")
            law = Winner(truth).law
            assert found == max(cost.at(law(s), s, Fraction(1)) for s in totals(first(m), voters)), cost


@pytest.mark.parametrize("voters", range(1, 8))
def test_no_table_misses_plurality_less_often(voters):
    """The best table for three alternatives, by a linear program over all numbers of votes."""
    rows = [tuple(int(n) for n in s) for s in totals(first(3), voters)]
    size, factor = 3 * len(rows), float(made.e_to(Fraction(1, 2)))
    above, sums = [], np.zeros((len(rows), size + 1))
    for i, counts in enumerate(rows):
        sums[i, 3 * i : 3 * i + 3] = 1
        row = np.zeros(size + 1)  # 1 - p_winner <= d
        row[3 * i + counts.index(max(counts))], row[size] = -1, -1
        above.append((row, -1.0))
        for j, other in enumerate(rows):
            if sum(abs(a - b) for a, b in zip(counts, other, strict=True)) == 2:
                for a in range(3):
                    row = np.zeros(size + 1)
                    row[3 * i + a], row[3 * j + a] = 1, -factor
                    above.append((row, 0.0))
    best = linprog(
        np.eye(size + 1)[size],
        A_ub=np.array([row for row, _ in above]),
        b_ub=[bound for _, bound in above],
        A_eq=sums,
        b_eq=np.ones(len(rows)),
        bounds=(0, 1),
    )
    assert best.status == 0
    assert float(ties.miss(voters, 3, Fraction(1, 2), 1)) == pytest.approx(best.fun, rel=1e-8)


@pytest.mark.parametrize("voters", range(1, 5))
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 2), Fraction(3, 2)])
def test_no_rule_for_voters_who_come_and_go_does_better(voters, epsilon):
    """The best laws for up to two voters more or less: the bound is not above them, nor far below."""
    rows = [tuple(int(n) for n in s) for t in range(max(voters - 2, 0), voters + 3) for s in totals(first(3), t)]
    places = {counts: i for i, counts in enumerate(rows)}
    size, factor = 3 * len(rows), float(made.e_to(epsilon))
    above, sums = [], np.zeros((len(rows), size + 1))
    for counts, i in places.items():
        sums[i, 3 * i : 3 * i + 3] = 1
        if sum(counts) == voters:
            row = np.zeros(size + 1)  # 1 - p_winner <= d
            row[3 * i + counts.index(max(counts))], row[size] = -1, -1
            above.append((row, -1.0))
        for more in range(3):
            j = places.get(tuple(n + (a == more) for a, n in enumerate(counts)))
            for a in range(3) if j is not None else ():
                for k, other in ((i, j), (j, i)):
                    row = np.zeros(size + 1)
                    row[3 * k + a], row[3 * other + a] = 1, -factor
                    above.append((row, 0.0))
    best = linprog(
        np.eye(size + 1)[size],
        A_ub=np.array([row for row, _ in above]),
        b_ub=[bound for _, bound in above],
        A_eq=sums,
        b_eq=np.ones(len(rows)),
        bounds=(0, 1),
    )
    assert best.status == 0
    found = float(ties.miss(voters, 3, epsilon, 2))
    assert best.fun / 2 <= found <= best.fun * (1 + 1e-8)
    assert found >= best.fun * 0.95 or voters == 1 or epsilon > 1


def test_one_alternative_hides_everything():
    for rule in (*SOME, Dummies(Fraction(0))):
        assert rule.ratio(first(1), Change(False, 1, 3)).value == 1
        assert rule.ratio(first(1), Change(False, 1, 3)).within(Fraction(0))


def test_powers_need_whole_points():
    assert [partial(4, k).whole for k in (1, 2, 3, 4)] == [True, False, False, False]
    for ballots in (ranking(4), *(partial(m, k) for m in (2, 3, 4, 5) for k in range(1, m + 1))):
        whole = all(p.denominator == 1 for order in ballots.orders() for p in ballots.scores(order))
        assert ballots.whole == whole
        assert ballots.reaches_zero == any(min(ballots.scores(o)) == 0 for o in ballots.orders())
    with pytest.raises(Malformed):
        Exponential(Fraction(2)).check(partial(4, 2))
    with pytest.raises(Malformed):
        PermuteAndFlip(Fraction(1, 2)).check(first(3))


# --- beside the model's own definitions ----------------------------------------------------------------


def test_points_and_laws_are_those_of_the_model():
    rng = np.random.default_rng(5)
    words = ("a", "b", "c", "d")
    for ballots in (first(4), ranking(4), partial(4, 3)):
        points = (model.FirstChoice if ballots.points == "first choice" else model.Borda)(words)
        assert (points.highest, points.per_ballot) == (ballots.highest, ballots.total)
        for order in ballots.orders():
            assert points.of([words[a] for a in order]) == ballots.scores(order)
    for _ in range(20):
        scores = tuple(Fraction(int(v)) for v in rng.integers(0, 9, size=4))
        for mine, theirs in (
            (Dummies(Fraction(3, 7)), model.Proportional(Fraction(3, 7))),
            (Exponential(Fraction(9, 7)), model.Exponential(Fraction(9, 7))),
            (PermuteAndFlip(Fraction(9, 7)), model.PermuteAndFlip(Fraction(9, 7))),
            (Reports(Fraction(9, 7)), model.LocalPick(Fraction(9, 7))),
            (Winner(Fraction(9, 7)), model.RandomisedLargest(Fraction(9, 7))),
        ):
            assert mine.law(scores) == theirs.law(scores)
            assert sum(mine.law(scores)) == 1


# --- losses --------------------------------------------------------------------------------------------


class Voting:
    """What a loss looks at."""

    def __init__(self, rule, ballots, voters, law=None):
        self.rule, self.ballots, self.ballot_law = rule, ballots, law
        self.meaning = self
        self.voters = voters


@pytest.mark.parametrize("voters", [1, 2, 5])
@pytest.mark.parametrize("ballots", [first(2), first(3), ranking(3), partial(3, 3), partial(4, 1)])
def test_closed_forms_of_losses_are_those_of_all_profiles(ballots, voters):
    for rule in (Dummies(Fraction(5, 3)), Reports(Fraction(5, 2))):
        worst = over(Voting(rule, ballots, voters), Body(((Fraction(1), Apart(SHARES)),), Fraction(0)), "worst")
        laws = [(s, rule.law(s)) for s in totals(ballots, voters)]
        listed = max(Apart(SHARES).at(p, s, Fraction(1)) for s, p in laws)
        assert worst == listed


@pytest.mark.parametrize("cost", [VotesMissed(), Missed(SHARES), Missed(LARGEST), Apart(LARGEST), Apart(SHARES)])
@pytest.mark.parametrize("operator", ["worst", "E"])
def test_losses_by_brute_force(cost, operator):
    law = {
        tuple(Fraction(a == b) for a in range(3)): w
        for b, w in enumerate([Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)])
    }
    weights = list(law.values())
    for rule in SOME:
        found = over(Voting(rule, first(3), 4, law), Body(((Fraction(2), cost),), Fraction(1)), operator)
        values, masses = [], []
        for votes in product(range(3), repeat=4):
            scores = tally(votes, 3)
            values.append(1 + 2 * cost.at(rule.law(scores), scores, Fraction(1)))
            mass = Fraction(1)
            for a in votes:
                mass *= weights[a]
            masses.append(mass)
        exact = max(values) if operator == "worst" else sum(v * p for v, p in zip(values, masses, strict=True))
        assert abs(found - exact) < Fraction(1, 2**90)


@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("voters", range(1, 9))
def test_the_least_leads_are_the_worst_of_all_profiles(m, voters):
    for rule in (*SOME, Reports(Fraction(3))):
        for cost in (Apart(LARGEST), Missed(LARGEST)):
            found = over(Voting(rule, first(m), voters), Body(((Fraction(1), cost),), Fraction(0)), "worst")
            listed = max(cost.at(rule.law(s), s, Fraction(1)) for s in totals(first(m), voters))
            assert abs(found - listed) < Fraction(1, 2**90)


def test_profiles_have_a_law():
    third = dict.fromkeys(ranking(3).kinds(), Fraction(1, 6))
    every = profiles(ranking(3), 4, third)
    assert sum(every.values()) == 1
    assert set(every) == set(totals(ranking(3), 4))
    with pytest.raises(NotUnderstood):
        profiles(first(5), 100, None)


# --- bounds --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("voters", [1, 2, 5, 9])
@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(1), Fraction(3)])
def test_no_rule_is_below_the_bound(voters, epsilon):
    """The best rule for two alternatives, by a linear program over the numbers of votes."""
    n = voters + 1
    above, below = [], []
    for k in range(n):
        for sign in (1, -1):
            row = np.zeros(n + 1)
            row[k], row[n] = sign, -1
            above.append(row)
            below.append(sign * k / voters)
    for a, b in [(k, k + 1) for k in range(voters)] + [(k + 1, k) for k in range(voters)]:
        for p in (1, -1):  # both alternatives: p_a <= e^eps p_b, and 1 - p_a <= e^eps (1 - p_b)
            row = np.zeros(n + 1)
            row[a], row[b] = p, -p * float(made.e_to(epsilon))
            above.append(row)
            below.append(0.0 if p == 1 else float(made.e_to(epsilon)) - 1)
    best = linprog(np.eye(n + 1)[n], A_ub=np.array(above), b_ub=below, bounds=[(0, 1)] * n + [(0, None)])
    assert best.status == 0
    found = max(walk(voters, 1, k, epsilon) for k in range(1, n))
    assert float(found) <= best.fun * (1 + 1e-7)
    assert float(found) >= best.fun / 3
    for k in range(1, n):
        if k > 2 * voters * best.fun:
            assert float(farthest(voters, 1, k, Fraction(best.fun)) / k) <= float(epsilon) * (1 + 1e-6)


def test_bounds_are_rounded_down():
    exact = Fraction(3, 10) / (1 + made.e_to(Fraction(3, 2)))
    assert 0 < exact - walk(10, 1, 3, Fraction(1, 2)) < Fraction(1, 2**100)
    assert abs(float(farthest(100, 1, 9, Fraction(1, 50))) - log(3.5)) < 1e-15
    assert abs(float(farthest(100, 2, 9, Fraction(1, 50))) - log(7)) < 1e-15
    assert round(float(walk(10, 2, 3, Fraction(1, 2))), 4) == 0.0926  # what the best table for T = 10, m = 3 reaches
    assert farthest(100, 1, 3, Fraction(1, 50)) == 0


# --- properties ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "ballots", "expected"),
    [
        (Dummies(Fraction(0)), first(3), (True, True, True)),
        (Dummies(Fraction(1)), first(3), (True, False, True)),
        (Dummies(Fraction(0)), ranking(3), (True, False, True)),
        (Dummies(Fraction(1)), partial(3, 2), (True, False, True)),
        (Reports(Fraction(2)), first(3), (True, False, True)),
        (Exponential(Fraction(2)), first(3), (True, False, False)),
        (Exponential(Fraction(2)), first(2), (True, False, True)),
        (PermuteAndFlip(Fraction(2)), first(3), (True, False, False)),
        (Exponential(Fraction(3, 2)), ranking(3), (True, False, False)),
        (Winner(Fraction(2)), first(3), (True, False, False)),
        (Winner(Fraction(2)), first(2), (True, False, True)),
        (Winner(Fraction(2)), ranking(3), (True, False, False)),
    ],
)
def test_properties(rule, ballots, expected):
    found = tuple(test(rule, ballots, 3) is None for test in TESTS.values())
    assert found == expected


def test_a_gain_is_one_for_some_utility():
    """One voter of order 1>2>3 beside one who votes 2: the exponential mechanism pays for the vote 2."""
    rule = Exponential(Fraction(2))
    honest, lie = rule.law(tally((1, 0), 3)), rule.law(tally((1, 1), 3))
    assert sum(lie[:2]) > sum(honest[:2])
    assert len(list(permutations(range(3)))) == 6


# --- plans of the compiler -----------------------------------------------------------------------------

VOTES = {
    "replacing": made.spec(1000),
    "adding": made.spec(1000, privacy=made.ADDING),
    "group": made.spec(
        50, privacy="O is epsilon-DP wrt vote, replacing up to 3 voters", options="noise family dictator"
    ),
    "exponential": made.spec(
        6, loss="worst[ total_variation(O, plurality(vote)) ]", options="noise family exponential"
    ),
    "exponential, many": made.spec(
        10**5, loss="worst[ total_variation(O, plurality(vote)) ]", options="noise family exponential"
    ),
    "borda": made.spec(60, ballots="ranking of A", loss=made.BORDA, privacy=made.ADDING),
    "partial": made.spec(40, ballots="partial_ranking(A)", loss=made.BORDA, privacy=made.ADDING),
    "plurality": made.spec(20, loss=made.PLURALITY, uniform=True, privacy=made.ADDING),
    "many": made.spec(5000, loss=made.PLURALITY, uniform=True, privacy=made.ADDING),
    "nobody": made.spec(100, options="trust nobody"),
    "chosen": made.spec(100, loss="epsilon", choose=True, accuracy=f"{made.WORST} <= 1/20", privacy=made.ADDING),
    "weighted": made.spec(100, loss=f"2 * {made.WORST} + 1"),
    "million": made.spec(10**6, privacy=made.ADDING),
    "winner": made.spec(10**5, loss=made.MISSED, privacy=made.ADDING),
    "winner, ranking": made.spec(200, ballots="ranking of A", loss="worst[ total_variation(O, plurality(vote)) ] / 2"),
    "winner, borda": made.spec(20, ballots="ranking of A", loss=made.BORDA, options="noise family randomised_winner"),
    "winner, shares": made.spec(10**4, options="noise family randomised_winner"),
    "winner, chosen": made.spec(
        100, loss="epsilon", choose=True, accuracy="worst[ mismatch(O, plurality(vote)) ] <= 1/3"
    ),
}
COUNTED = """spec drones
parameters:
    budget = 2
    T = 40
parties: drone in 1..T
variables:
    input vote[drone] in {gate, bridge, tower}
    choose rounds in 1..10000
    output O
loss: -rounds
privacy: O is (budget / rounds)-DP wrt vote, adding or removing one drone
accuracy: worst[ total_variation(O, random_dictator(vote)) ] <= 0.05
"""
FIXED = COUNTED.replace("    choose rounds in 1..10000\n", "").replace("T = 40\n", "T = 40\n    rounds = 2\n")
FIXED = FIXED.replace("loss: -rounds", "loss: worst[ total_variation(O, random_dictator(vote)) ]")
VOTES |= {"rounds": COUNTED, "rounds, inverse": COUNTED.replace("-rounds", "1 / rounds"), "rounds, given": FIXED}


def compiled(text):
    from privspec.compile.lotteries.family import Lotteries
    from privspec.compile.problem import Settings
    from privspec.core.spans import Source
    from privspec.model.build import load_model

    voting, family = load_model(Source("vote.priv", text)), Lotteries()
    return family.decide(voting, family.lower(voting), Settings()).document()


@pytest.mark.parametrize("name", ["rounds", "rounds, inverse", "rounds, given"])
def test_rounds_are_those_that_share_the_budget(name):
    honest = compiled(VOTES[name])
    rounds = honest["mechanism"]["rounds"]
    for key, value in (("count", 1), ("count", 5), ("budget", "3"), ("each", "1/7"), ("fit", 9), ("count", None)):
        assert value != rounds[key]
        assert not verify(made.put(honest, ("mechanism", "rounds", key), value)).ok
    if honest["mechanism"]["scalars"]:
        assert not verify(made.put(honest, ("mechanism", "rounds"), None)).ok
        assert not verify(made.put(honest, ("mechanism", "scalars", "rounds"), "4")).ok
    # other numbers of votes may prove the same whole number of rounds
    for path in (("loss", "lower_bound"), ("claims", "lower_bound"), ("loss", "value")):
        value = honest[path[0]][path[1]]
        assert not verify(made.put(honest, path, value + 1)).ok


def test_parameter_that_says_something_else_is_no_number_of_rounds():
    text = FIXED.replace("budget / rounds", "budget / T").replace("    rounds = 2\n", "").split("accuracy")[0]
    honest = compiled(text)
    assert honest["mechanism"]["rounds"] is None
    shared = {"count": 40, "budget": "2", "each": "1/20", "fit": 40}
    assert not verify(made.put(honest, ("mechanism", "rounds"), shared)).ok


@pytest.mark.parametrize("name", VOTES)
def test_plans_of_the_compiler_are_verified(name):
    report = verify(compiled(VOTES[name]))
    assert report.ok, str(report)
    assert {"coverage", "privacy", "achieved", "enumeration", "properties"} <= {
        claim.name for claim in report.claims if claim.status == "ok"
    }
