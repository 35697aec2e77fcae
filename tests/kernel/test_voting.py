"""Votes in the kernel: laws, ratios, losses and bounds against brute force; plans changed by hand, each refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, permutations, product
from math import expm1, nextafter, prod
from typing import Any, NamedTuple

import numpy as np
import pytest
from flint import ctx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from privspec.kernel import judge
from privspec.kernel.changes import Anything, Records, Rows
from privspec.kernel.core.numbers import ball, end, exp_up
from privspec.kernel.core.reading import Refused
from privspec.kernel.laws.voting import BY_NAME, Ballots, Winner
from privspec.kernel.losses import Loss
from privspec.kernel.measures import PURE
from privspec.kernel.rules import derive
from privspec.kernel.terms import Pick
from privspec.kernel.voting import COMPARED, Cost, RuleAt, Term, Total, Vote, least_cost
from privspec.model import voting as model
from privspec.plan import Plan
from tests.corpus.mutants import sampled, still_true
from tests.plans import Document, mutate, resign, solved_text, without

Profile = tuple[int, ...]


class Change(NamedTuple):
    adding: bool
    moved: int
    voters: int | None


class Rule(NamedTuple):
    """A rule with its number; `seen`: everybody sees all reports."""

    family: str
    number: Fraction
    seen: bool = False

    @property
    def at(self) -> RuleAt:
        return RuleAt(BY_NAME[self.family], self.number)

    def law(self, scores: model.Law) -> list[Fraction]:
        return self.at.law(scores)

    def ratio(self, ballots: Ballots, adding: bool, moved: int, voters: int | None) -> tuple[Fraction, int]:
        winner = Winner(BY_NAME[self.family], self.number, ballots, voters, self.seen)
        return winner.ratio(Records(moved, adding, 1))


NUMBERS = (Fraction(3, 2), Fraction(4))
PLAIN = Rule("dictator", Fraction(0))
FAMILIES = ("dictator", "local_dictator", "exponential", "permute_and_flip", "randomised_winner")


def first(m: int, supporters: int = 0) -> Ballots:
    return Ballots("first choice", tuple("abcd"[:m]), 1, "first choice", supporters)


def ranking(m: int) -> Ballots:
    return Ballots("ranking", tuple("abcd"[:m]), m, "borda")


def partial(m: int, places: int) -> Ballots:
    return Ballots("partial ranking", tuple("abcd"[:m]), places, "borda")


def lottery(rule: Rule) -> model.Lottery:
    return model.Lottery(BY_NAME[rule.family], rule.number)


# --- laws and ratios ----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_laws_enclose_those_of_the_model(family: str) -> None:
    rule = Rule(family, Fraction(9, 7))
    with ctx.workprec(256):
        for scores in product(range(4), repeat=3):
            points = tuple(map(Fraction, scores))
            found, exact = rule.law(points), lottery(rule).law(points)
            apart = sum(abs(p - q) for p, q in zip(found, exact, strict=True))
            assert apart <= BY_NAME[family].off


def test_points_are_those_of_the_model() -> None:
    for ballots in (first(4), ranking(4), partial(4, 3), partial(3, 1)):
        points = (model.Borda if ballots.borda else model.FirstChoice)(ballots.alternatives)
        assert (points.highest, points.per_ballot) == (ballots.ladder[0], sum(ballots.ladder))
        orders = [(a,) for a in range(ballots.size)] if not ballots.borda else _orders(ballots)
        assert {points.of([points.alternatives[a] for a in order]) for order in orders} == set(ballots.kinds())
        for order in orders:
            assert points.of([points.alternatives[a] for a in order]) == ballots.points(order)


def _orders(ballots: Ballots) -> list[tuple[int, ...]]:
    from itertools import permutations

    lengths = [ballots.size] if ballots.kind == "ranking" else range(1, ballots.places + 1)
    return [order for k in lengths for order in permutations(range(ballots.size), k)]


def brute(rule: Rule, ballots: Ballots, change: Change, voters: int) -> Fraction | None:
    """The largest ratio over all lists of ballots of so many voters and all their neighbours."""
    law, worst = cache(lottery(rule).law), Fraction(1)
    points = cache(lambda votes: summed(ballots, votes))
    for one, other in _neighbours(len(ballots.kinds()), change, voters):
        if min(*points(one), *points(other)) < ballots.supporters:
            continue
        for p, q in zip(law(points(one)), law(points(other)), strict=True):
            if p != q:
                if not p or not q:
                    return None
                worst = max(worst, p / q, q / p)
    return worst


kinds_of = cache(Ballots.kinds)


def summed(ballots: Ballots, votes: Profile) -> model.Law:
    """The points of ballots by their kinds."""
    kinds = kinds_of(ballots)
    return tuple(sum((kinds[i][a] for i in votes), Fraction(0)) for a in range(ballots.size))


def _neighbours(kinds: int, change: Change, voters: int) -> Iterator[tuple[Profile, Profile]]:
    for votes in combinations_with_replacement(range(kinds), voters):
        if change.adding:
            for k in range(1, change.moved + 1):
                yield from ((votes, votes + more) for more in product(range(kinds), repeat=k))
            continue
        k = min(change.moved, voters)
        for places in combinations(range(voters), k):
            for new in product(range(kinds), repeat=k):
                cast = dict(zip(places, new, strict=True))
                yield votes, tuple(cast.get(i, vote) for i, vote in enumerate(votes))


@pytest.mark.parametrize("number", [Fraction(1, 2), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("voters", range(1, 6))
def test_dummy_votes(m: int, voters: int, number: Fraction) -> None:
    rule, ballots = Rule("dictator", number), first(m)
    for group in (1, 2):
        change = Change(False, min(group, voters), voters)
        assert rule.ratio(ballots, *change) == (brute(rule, ballots, change, voters), 1)
        adding = Change(True, group, None)
        assert brute(rule, ballots, adding, voters) <= rule.ratio(ballots, *adding)[0] == 1 + group / number


@pytest.mark.parametrize("number", [Fraction(0), Fraction(1, 2)])
@pytest.mark.parametrize(("m", "sure"), [(2, 1), (2, 2), (3, 1)])
def test_dummy_votes_where_supporters_are_certain(m: int, sure: int, number: Fraction) -> None:
    """Exactly, where the others have room for all that moves; only electorates that exist are compared."""
    rule, ballots = Rule("dictator", number), first(m, sure)
    for voters, group in product(range(m * sure, m * sure + 3), (1, 2)):
        most = 1 + Fraction(group) / (number + sure)
        found = brute(rule, ballots, Change(False, group, voters), voters)
        assert found is not None and rule.ratio(ballots, False, group, voters) == (most, 1)
        assert found == most if voters >= m * sure + group else found <= most
        change = Change(True, group, None)
        assert brute(rule, ballots, change, voters) < rule.ratio(ballots, *change)[0] == most


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("sure", [1, 2])
def test_a_winner_of_certain_supporters_lets_through_no_more_than_brute_force(family: str, sure: int) -> None:
    rule, voters = Rule(family, Fraction(3, 2)), 3 * sure + 2
    ballots = first(3, sure)
    loss = derive(
        Pick("O", Winner(BY_NAME[family], rule.number, ballots, voters)), frozenset({"O"}), Records(1, False, 1)
    ).loss
    worst = brute(rule, ballots, Change(False, 1, voters), voters)
    assert worst is not None
    with ctx.workprec(256):
        spent = end(ball(worst).log().upper())
        assert loss.satisfies(PURE.condition({"epsilon": spent + Fraction(1)}))
        assert not loss.satisfies(PURE.condition({"epsilon": spent - Fraction(1, 10**6)}))


def test_without_dummy_votes_there_is_no_ratio() -> None:
    assert brute(PLAIN, first(2), Change(False, 1, 2), 2) is None
    with pytest.raises(Refused, match="reveals its voter"):
        PLAIN.ratio(first(2), *Change(False, 1, 2))


@pytest.mark.parametrize("family", ["exponential", "permute_and_flip"])
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(("m", "voters"), [(m, t) for m in (2, 3, 4) for t in range(1, 6 if m < 4 else 4)])
def test_powers(family: str, m: int, voters: int, number: Fraction) -> None:
    rule, ballots = Rule(family, number), first(m)
    with ctx.workprec(256):
        for group in (1, 2):
            change = Change(False, min(group, voters), voters)
            base, power = rule.ratio(ballots, *change)
            found = brute(rule, ballots, change, voters)
            assert found is not None and found <= base**power
            exact = family == "exponential" or change.moved == 1
            assert not exact or base**power - found < Fraction(1, 2**100)
        adding = Change(True, 2, None)
        assert brute(rule, ballots, adding, voters) <= number**2 == number ** rule.ratio(ballots, *adding)[1]


@pytest.mark.parametrize("family", ["exponential", "permute_and_flip", "dictator", "randomised_winner"])
def test_borda(family: str) -> None:
    rule = Rule(family, Fraction(3, 2))
    with ctx.workprec(256):
        for voters in (1, 2, 3):
            change = Change(False, 1, voters)
            base, power = rule.ratio(ranking(3), *change)
            found = brute(rule, ranking(3), change, voters)
            assert found is not None and 0 <= base**power - found < Fraction(1, 2**100)
    if family in ("dictator", "randomised_winner"):
        for ballots in (partial(3, 2), partial(3, 3)):
            base, power = rule.ratio(ballots, *Change(False, 1, 2))
            assert brute(rule, ballots, Change(False, 1, 2), 2) <= base**power


@pytest.mark.parametrize("truth", NUMBERS)
@pytest.mark.parametrize("ballots", [first(2), first(3), ranking(3)])
def test_reports(ballots: Ballots, truth: Fraction) -> None:
    seen, alone = Rule("local_dictator", truth, True), Rule("local_dictator", truth)
    one = Change(False, 1, 1)
    assert brute(seen, ballots, one, 1) == seen.ratio(ballots, *one)[0]
    assert seen.ratio(ballots, *Change(False, 3, 9)) == (seen.ratio(ballots, *one)[0], 3)
    for voters in range(1, 4):
        assert (brute(alone, ballots, Change(False, 1, voters), voters), 1) == alone.ratio(
            ballots, *Change(False, 1, voters)
        )
    every = [brute(alone, ballots, Change(True, 1, None), n) for n in range(3)]
    assert max(every) == alone.ratio(ballots, *Change(True, 1, None))[0]
    with pytest.raises(Refused, match="hidden of a voter"):
        seen.ratio(ballots, *Change(True, 1, None))


@pytest.mark.parametrize("ballots", [first(2), first(3), first(4), partial(3, 1)])
def test_randomised_winner(ballots: Ballots) -> None:
    rule = Rule("randomised_winner", Fraction(4))
    for voters, group, adding in product(range(1, 4), (1, 2), (False, True)):
        change = Change(adding, group if adding else min(group, voters), None if adding else voters)
        assert brute(rule, ballots, change, voters) == 4 == rule.ratio(ballots, *change)[0]


def test_one_alternative_hides_everything() -> None:
    for family in ("dictator", "exponential", "permute_and_flip", "local_dictator", "randomised_winner"):
        assert Rule(family, Fraction(1)).ratio(first(1), *Change(False, 1, 3)) == (1, 1)


# --- what the rule lets through, beside brute force that knows no formula --------------------------------

Seen = dict[Any, Fraction]


def share(scores: model.Law) -> list[Fraction]:
    """One vote drawn of all."""
    return [score / sum(scores) for score in scores] if any(scores) else [Fraction(1, len(scores))] * len(scores)


def flipped(base: Fraction, scores: model.Law) -> list[Fraction]:
    """Permute-and-flip, order by order."""
    law, orders = [Fraction(0)] * len(scores), list(permutations(range(len(scores))))
    for order in orders:
        left = Fraction(1, len(orders))
        for a in order:
            taken = left / base ** int(max(scores) - scores[a])
            law[a] += taken
            left -= taken
    return law


def reported(ratio: Fraction, scores: model.Law) -> list[Fraction]:
    """A vote, then randomised response to it."""
    m = len(scores)
    return [
        sum((p * (ratio if a == b else 1) / (ratio + m - 1) for b, p in enumerate(share(scores))), Fraction(0))
        for a in range(m)
    ]


LITERAL: dict[str, Callable[[Fraction, model.Law], list[Fraction]]] = {
    "dictator": lambda k, scores: share(tuple(score + k for score in scores)),
    "local_dictator": reported,
    "exponential": lambda b, scores: share(tuple(b ** int(score) for score in scores)),
    "permute_and_flip": flipped,
    "randomised_winner": lambda r, scores: share(
        tuple(r if a == scores.index(max(scores)) else Fraction(1) for a in range(len(scores)))
    ),
}


@st.composite
def elections(draw: st.DrawFn) -> tuple[Rule, Ballots, Change]:
    family = draw(st.sampled_from(FAMILIES))
    ballots = draw(st.sampled_from([first(2), first(3), first(4), ranking(2), ranking(3), partial(3, 2)]))
    number = draw(st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(1), Fraction(9, 8), Fraction(3)]))
    adding, group = draw(st.booleans()), draw(st.integers(0, 3))
    voters = draw(st.one_of(st.none(), st.integers(0, 3)))
    return Rule(family, number, draw(st.booleans())), ballots, Change(adding, group, voters)


def seen_of(rule: Rule, ballots: Ballots, votes: Profile) -> Seen:
    """The law of what is seen: the winner, or every report, at one electorate."""
    if not rule.seen:
        return dict(enumerate(LITERAL[rule.family](rule.number, summed(ballots, votes))))
    laws = [reported(rule.number, kinds_of(ballots)[i]) for i in votes]
    return {
        answers: prod((law[a] for law, a in zip(laws, answers, strict=True)), start=Fraction(1))
        for answers in product(range(ballots.size), repeat=len(votes))
    }


@pytest.mark.parametrize("examples", [40, pytest.param(2500, marks=pytest.mark.slow)])
def test_a_winner_lets_through_no_more_than_the_rule_says(examples: int) -> None:
    """Every list of ballots of tiny electorates and every neighbour, by the two laws of what is seen."""

    def holds(drawn: tuple[Rule, Ballots, Change], epsilon: Fraction) -> None:
        rule, ballots, change = drawn
        known = BY_NAME[rule.family]
        wrong = rule.number < known.least or (rule.seen and not known.reported)
        public = change.adding and (rule.seen or change.voters is not None)
        bare = known.least == 0 and rule.number == 0 and change.moved and change.voters != 0
        try:
            winner = Winner(known, rule.number, ballots, change.voters, rule.seen)
            moved = Records(change.moved, change.adding, 1)
            loss = derive(Pick("O", winner, rule.seen), frozenset({"O"}), moved).loss
        except Refused:
            halves = not ballots.whole and known.off
            assert wrong or public or bare or halves
            return
        assert not wrong and not public and not bare
        if known.off and not ballots.whole:
            return  # such a law is refused where it is drawn
        (pure,) = loss.epsilons() or [None]
        assert pure is not None
        delta, sizes = loss.delta_up(epsilon), range(3) if change.voters is None else (change.voters,)
        law = cache(lambda votes: seen_of(rule, ballots, votes))
        for voters in sizes if len(ballots.kinds()) < 6 else [n for n in sizes if n < 3]:
            for one, other in _neighbours(len(ballots.kinds()), Change(change.adding, change.moved, None), voters):
                if change.adding and rule.seen:
                    continue
                for p, q in ((law(one), law(other)), (law(other), law(one))):
                    assert all(chance <= q[key] * exp_up(pure) for key, chance in p.items())
                    over = (chance - q[key] * exp_up(epsilon) for key, chance in p.items())
                    assert sum(gap for gap in over if gap > 0) <= delta

    epsilons = st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(1)])
    silent = list(HealthCheck)
    asked = settings(
        max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=silent
    )
    asked(given(elections(), epsilons)(holds))()


def test_what_a_winner_is_not_drawn_by_is_refused() -> None:
    one, rule = Records(1, False, 1), BY_NAME["dictator"]
    for number, voters in ((Fraction(-1), 3), (Fraction(1), -1)):
        with pytest.raises(Refused):
            Winner(rule, number, first(3), voters)
    with pytest.raises(Refused, match="no reports"):
        Winner(rule, Fraction(1), first(3), 3, seen=True)
    drawn = Winner(rule, Fraction(1), first(3), 3)
    for change in (Records(1, False, 2), Anything(), Rows(((0, 1),)), Records(1, True, 1)):
        with pytest.raises(Refused):
            derive(Pick("O", drawn), frozenset({"O"}), change)
    assert derive(Pick("O", drawn), frozenset(), one).loss == Loss()
    seen = Winner(BY_NAME["local_dictator"], Fraction(3), first(3), 3, seen=True)
    assert derive(Pick("O", seen, public=True), frozenset(), one).loss != Loss()
    with pytest.raises(Refused, match="without chance"):
        derive(Pick("O", Winner(COMPARED["plurality"], Fraction(0), first(3), 3)), frozenset({"O"}), one)


# --- values over all profiles -------------------------------------------------------------------------

COSTS = (
    Cost(Fraction(1, 3), "distance", "dictator", Fraction(0)),
    Cost(Fraction(1, 3), "distance", "plurality", Fraction(0)),
    Cost(Fraction(1, 3), "mismatch", "dictator", Fraction(0)),
    Cost(Fraction(1, 3), "mismatch", "plurality", Fraction(0)),
    Cost(Fraction(1, 3), "votes missed", "dictator", Fraction(0)),
    Cost(Fraction(1, 3), "distance", "exponential", Fraction(2)),
)


def at(cost: Cost, law: model.Law, scores: model.Law) -> Fraction:
    """The cost of a law at one profile, exactly."""
    whole = sum(scores, Fraction(0))
    if cost.form == "votes missed":
        return 1 - sum((p * s / whole for p, s in zip(law, scores, strict=True)), Fraction(0))
    beside = model.Lottery(COMPARED[cost.family], cost.number).law(scores)
    if cost.form == "distance":
        return sum((abs(p - q) for p, q in zip(law, beside, strict=True)), Fraction(0)) / 2
    return 1 - sum((p * q for p, q in zip(law, beside, strict=True)), Fraction(0))


def vote(ballots: Ballots, voters: int, law: Any = None) -> Vote:
    return Vote("v", "p", "O", voters, False, ballots, law, Total((), Fraction(0)), "", (), None, ())


@pytest.mark.parametrize("rule", [Rule(family, Fraction(5, 2)) for family in FAMILIES], ids=FAMILIES)
@pytest.mark.parametrize("ballots", [first(2), first(3), first(4), ranking(3), first(2, 1), first(3, 1)], ids=str)
def test_values_are_those_of_all_profiles(rule: Rule, ballots: Ballots) -> None:
    kinds = ballots.kinds()
    weights = [Fraction(i + 1, len(kinds) * (len(kinds) + 1) // 2) for i in range(len(kinds))]
    sizes = (
        (1, 2) if ballots.borda else range(max(1, ballots.supporters * ballots.size), 6 if ballots.supporters else 5)
    )
    for voters, cost in product(sizes, COSTS):
        if cost.form == "votes missed" and ballots.borda:
            continue
        worst, mean = Fraction(-9), Fraction(0)
        for votes in product(range(len(kinds)), repeat=voters):
            scores = summed(ballots, votes)
            if min(scores) < ballots.supporters:
                continue
            here = at(cost, lottery(rule).law(scores), scores)
            mass = Fraction(1)
            for i in votes:
                mass *= weights[i]
            worst, mean = max(worst, here), mean + mass * here
        with ctx.workprec(256):
            law = None if ballots.supporters else list(zip(kinds, weights, strict=True))
            for average, expected in ((False, worst), *([(True, mean)] if law else [])):
                term = Term("E" if average else "worst", (cost,))
                found = Total((term,), Fraction(1, 7)).of(rule.at, vote(ballots, voters, law), {})
                exact = Fraction(1, 7) + Fraction(1, 3) * expected
                assert 0 <= found - exact < Fraction(1, 2**200), (voters, cost, average)


# --- bounds -------------------------------------------------------------------------------------------


def best_table(voters: int, epsilon: float, *, plurality: bool, adding: bool, sure: int = 0) -> float:
    """The least worst cost of any law for three alternatives, by a linear program; voters may be two more or fewer.

    Only electorates in which each has `sure` supporters exist.
    """
    sizes = range(max(voters - 2, 0), voters + 3) if adding else (voters,)
    rows = [c for t in sizes for c in product(range(sure, t + 1), repeat=3) if sum(c) == t]
    place, n = {counts: i for i, counts in enumerate(rows)}, 3 * len(rows)
    above: list[tuple[dict[int, float], float]] = []
    for counts, i in place.items():
        if sum(counts) == voters and plurality:
            above.append(({3 * i + counts.index(max(counts)): -1.0, n: -1.0}, -1.0))
        elif sum(counts) == voters:
            for signs in product((0, 1), repeat=3):
                row = {3 * i + a: float(s) for a, s in enumerate(signs)}
                above.append((row | {n: -1.0}, sum(c * s for c, s in zip(counts, signs, strict=True)) / voters))
        gone = [(0, 0, 0)] if adding else [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
        moved = [tuple(k + (a == b) - out[a] for a, k in enumerate(counts)) for b in range(3) for out in gone]
        for j in (place[other] for other in moved if other in place and other != counts):
            for a, (x, y) in product(range(3), ((i, j), (j, i))):
                above.append(({3 * x + a: 1.0, 3 * y + a: -float(np.exp(epsilon))}, 0.0))
    matrix, sums = np.zeros((len(above), n + 1)), np.zeros((len(rows), n + 1))
    for k, (row, _) in enumerate(above):
        for key, value in row.items():
            matrix[k, key] = value
    for i in range(len(rows)):
        sums[i, 3 * i : 3 * i + 3] = 1
    goal = np.eye(n + 1)[n]
    found = linprog(goal, A_ub=matrix, b_ub=[b for _, b in above], A_eq=sums, b_eq=np.ones(len(rows)), bounds=(0, 1))
    assert found.status == 0
    return float(found.fun)


@pytest.mark.parametrize("voters", range(1, 6))
def test_no_table_misses_plurality_less_often(voters: int) -> None:
    found = float(least_cost("near tie", voters, 3, 1, Fraction(1, 2), 1))
    assert found == pytest.approx(best_table(voters, 0.5, plurality=True, adding=False), rel=1e-7)


@pytest.mark.parametrize("voters", range(1, 4))
def test_no_table_for_voters_who_come_and_go_does_better(voters: int) -> None:
    found, best = (
        float(least_cost("near tie", voters, 3, 1, Fraction(1, 2), 2)),
        best_table(voters, 0.5, plurality=True, adding=True),
    )
    assert best / 2 <= found <= best * (1 + 1e-8)


@pytest.mark.parametrize("voters", range(2, 6))
def test_no_table_is_nearer_to_random_dictatorship(voters: int) -> None:
    best = best_table(voters, 0.5, plurality=False, adding=False)
    found = max(float(least_cost("walk", voters, 3, k, Fraction(1, 2), 1)) for k in range(1, voters + 1))
    assert best / 3 <= found <= best * (1 + 1e-7)


@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(1, 2)])
@pytest.mark.parametrize("voters", [6, 7, 8])
def test_no_table_does_better_where_supporters_are_certain(voters: int, epsilon: Fraction) -> None:
    for adding, step in ((False, 1), (True, 2)) if voters < 7 else ((False, 1),):
        best = best_table(voters, float(epsilon), plurality=False, adding=adding, sure=1)
        walks = [float(least_cost("walk", voters, 3, k, epsilon, step, 1)) for k in range(1, voters - 2)]
        assert max(walks) <= best * (1 + 1e-7) + 1e-12
        assert adding or max(walks) >= best / 4
        best = best_table(voters, float(epsilon), plurality=True, adding=adding, sure=1)
        assert float(least_cost("near tie", voters, 3, 1, epsilon, step)) <= best * (1 + 1e-7)


@pytest.mark.parametrize(("size", "voters"), [(3, 1), (3, 2), (3, 3), (4, 1), (4, 2)])
def test_strategy_proof_rules_that_prefer_some_voters_are_no_better(size: int, voters: int) -> None:
    """The best law for every list of votes, under which no lie pays, by a linear program: dummy votes reach it."""
    lists = list(product(range(size), repeat=voters))
    place, n = {votes: size * i for i, votes in enumerate(lists)}, size * len(lists)
    above: list[tuple[dict[int, float], float]] = []
    for votes in lists:
        for signs in product((0, 1), repeat=size):
            row = {place[votes] + a: float(s) for a, s in enumerate(signs)}
            above.append((row | {n: -1.0}, sum(signs[a] for a in votes) / voters))
        for i, lie, c in product(range(voters), range(size), range(size)):
            lied = (*votes[:i], lie, *votes[i + 1 :])
            if lie != votes[i]:
                above.append(({place[lied] + c: 1.0, place[votes] + c: -float(np.exp(0.5))}, 0.0))
            if lie not in (votes[i],) and c != votes[i]:
                above.append(({place[votes] + c: 1.0, place[lied] + c: -1.0}, 0.0))
    matrix, sums = np.zeros((len(above), n + 1)), np.zeros((len(lists), n + 1))
    for k, (row, _) in enumerate(above):
        for key, value in row.items():
            matrix[k, key] = value
    for i in range(len(lists)):
        sums[i, size * i : size * i + size] = 1
    found = linprog(np.eye(n + 1)[n], A_ub=matrix, b_ub=[b for _, b in above], A_eq=sums, b_eq=np.ones(len(lists)))
    k = 1 / expm1(0.5)
    assert found.fun == pytest.approx((size - 1) * k / (voters + size * k), abs=1e-8)


# --- plans of the compiler ----------------------------------------------------------------------------

REPLACING = "O is epsilon-DP wrt vote, replacing one voter"
ADDING = "O is epsilon-DP wrt vote, adding or removing one voter"
WORST = "worst[ total_variation(O, random_dictator(vote)) ]"
BORDA = "worst[ total_variation(O, borda_lottery(vote)) ]"
MISSED = "worst[ mismatch(O, plurality(vote)) ]"
APART = "worst[ total_variation(O, plurality(vote)) ]"
PLURALITY = "E[ mean(mismatch(O, vote[voter]) for voter) ]"
TRUTHFUL = "manipulation(O, vote) <= 0"


def spec(
    voters: int,
    loss: str = WORST,
    privacy: str = REPLACING,
    *,
    ballots: str = "A",
    options: str = "",
    choose: str = "",
    accuracy: str = "",
    uniform: bool = False,
    size: int = 3,
    sure: str = "",
) -> str:
    words = ", ".join(("north", "east", "south", "west")[:size])
    lines = ["spec vote", "parameters:", f"  T = {voters}", f"  A = {{{words}}}", "  budget = 2"]
    lines += [] if "epsilon" in choose else ["  epsilon = 1/2"]
    lines += ["parties: voter in 1..T", "variables:", f"  input vote[voter] in {ballots}", "  output O in A"]
    lines += [f"  choose {choose}"] if choose else []
    lines += ["background: vote ~ uniform"] if uniform else []
    lines += [f"background: histogram(vote)[j] >= {sure} for j in 1..{size}"] if sure else []
    lines += [f"loss: {loss}"] + ([f"accuracy: {accuracy}"] if accuracy else []) + ["privacy:", f"  {privacy}"]
    return "\n".join([*lines, *(["options:", f"  {options}"] if options else [])]) + "\n"


FROM_ROUNDS = "O is (budget / rounds)-DP wrt vote, adding or removing one voter"
VOTES = {
    "replacing": spec(1000),
    "adding": spec(10**6, privacy=ADDING),
    "group": spec(50, privacy="O is epsilon-DP wrt vote, replacing up to 3 voters", options="noise family dictator"),
    "everything": spec(5, privacy="O is epsilon-DP wrt vote, replacing everything", options="noise family dictator"),
    "several lines": spec(40, privacy=f"{REPLACING}\n  O is 0.4-DP wrt vote, adding or removing one voter"),
    "exponential": spec(6, APART, options="noise family exponential"),
    "exponential, group": spec(
        9, APART, "O is epsilon-DP wrt vote, replacing up to 2 voters", options="noise family exponential"
    ),
    "exponential, many": spec(10**5, APART, options="noise family exponential"),
    "exponential, rankings": spec(2, BORDA, ballots="ranking of A", options="noise family exponential"),
    "permute-and-flip": spec(7, APART, options="noise family permute_and_flip"),
    "borda": spec(60, BORDA, ADDING, ballots="ranking of A"),
    "partial": spec(40, BORDA, ADDING, ballots="partial_ranking(A)"),
    "plurality": spec(20, PLURALITY, ADDING, uniform=True),
    "dictator on average": spec(5000, PLURALITY, uniform=True, options="noise family dictator"),
    "reports": spec(100, options="trust nobody"),
    "weighted": spec(100, f"2 * {WORST} + 1"),
    "winner": spec(50, MISSED),
    "winner, adding": spec(50, MISSED, ADDING),
    "winner, rankings": spec(200, f"{APART} / 2", ballots="ranking of A"),
    "winner, shares": spec(10**4, options="noise family randomised_winner"),
    "least epsilon": spec(100, "epsilon", choose="epsilon in [0.01, 10]", accuracy=f"{WORST} <= 1/50"),
    "least epsilon, winner": spec(100, "epsilon", choose="epsilon in [0.01, 10]", accuracy=f"{MISSED} <= 1/3"),
    "no lies": spec(100, accuracy=TRUTHFUL),
    "no lies, least epsilon": spec(
        100, "epsilon", choose="epsilon in [0.01, 10]", accuracy=f"{TRUTHFUL}\n  {WORST} <= 1/50"
    ),
    "most rounds": spec(40, "-rounds", FROM_ROUNDS, choose="rounds in 1..10000", accuracy=f"{WORST} <= 0.05"),
    "most rounds, inverse": spec(
        40, "1 / rounds", FROM_ROUNDS, choose="rounds in 1..10000", accuracy=f"{WORST} <= 0.05"
    ),
    "rounds": spec(40, privacy=FROM_ROUNDS).replace("budget = 2\n", "budget = 2\n  rounds = 2\n"),
    "supporters": spec(1000, sure="1").replace("epsilon = 1/2", "epsilon = 1/4"),
    "supporters, adding": spec(50, privacy=ADDING, sure="1").replace("epsilon = 1/2", "epsilon = 1/4"),
    "enough supporters": spec(1000, sure="T / 10"),
    "supporters, winner": spec(50, MISSED, sure="2"),
    "supporters, least epsilon": spec(
        100,
        "epsilon",
        choose="epsilon in [0.01, 10]",
        accuracy=f"{WORST} <= 1/1000",
        sure="1",
        options="noise family dictator",
    ),
    "one alternative": spec(6, "worst[ mean(mismatch(O, vote[voter]) for voter) ]", ADDING, size=1),
}


@pytest.mark.parametrize("name", VOTES)
def test_plans_of_the_compiler_are_verified(name: str) -> None:
    document = solved_text(VOTES[name])
    assert document["problem"]["blocks"][0]["form"] == "votes"
    report = judge(json.dumps(document))
    assert report.ok, [str(claim) for claim in report.failed]
    assert {"view", "law", "privacy", "loss"} <= {claim.name for claim in report.claims}
    assert report.mechanism.rule.rule.name == document["mechanism"]["family"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [name for name in VOTES if name != "one alternative"])
def test_every_leaf_counts(name: str) -> None:
    document = resign(solved_text(VOTES[name]) | {"remarks": {}, "alternatives": []})
    for done, path, text in sampled(document, 60, 7):
        assert not judge(text).ok or still_true(document, done, path, text), f"{path}: {done}"


TINY = Fraction(1, 2**40)


@pytest.mark.parametrize(
    ("name", "key", "step"),
    [
        ("replacing", "dummy_votes", -TINY),
        ("adding", "dummy_votes", -TINY),
        ("borda", "dummy_votes", -TINY),
        ("supporters", "dummy_votes", -TINY),
        ("supporters, adding", "dummy_votes", -TINY),
        ("exponential, many", "base", TINY),
        ("plurality", "base", TINY),
        ("reports", "ratio", TINY),
        ("winner", "ratio", TINY),
        ("winner, adding", "ratio", TINY),
    ],
)
def test_a_little_less_privacy_is_refused(name: str, key: str, step: Fraction) -> None:
    """At the largest number that epsilon allows, up to a small step."""
    document = solved_text(VOTES[name])
    rule, low = document["mechanism"][key], step / TINY
    edge = Fraction(rule)
    for k in range(60):  # how far towards less privacy the number may go
        finer = low * Fraction(1, 2**k)
        while not failed(document, ("mechanism", key), str(edge + finer), only="privacy"):
            edge += finer
    assert abs(edge - Fraction(rule)) < abs(Fraction(rule)) * Fraction(1, 2**20)
    assert failed(document, ("mechanism", key), str(edge + step), only="privacy")


def failed(document: Document, path: tuple[str | int, ...], value: Any, only: str = "") -> str:
    """What fails once a place says something else."""
    report = judge(json.dumps(mutate(document, path, value)))
    return " | ".join(str(claim) for claim in report.failed if only in claim.name)


LOPSIDED = [[[str(int(a == b)) for a in range(3)], weight] for b, weight in enumerate(("1/2", "1/4", "1/4"))]
FORGED: list[tuple[str, tuple[str | int, ...], Any, str]] = [
    (
        "adding",
        ("mechanism", "voters"),
        10**6,
        "'voters' that is not known",
    ),  # what the problem says stands there alone
    ("adding", ("problem", "blocks", 0, "secret"), False, "makes the number of voters public"),
    ("several lines", ("problem", "blocks", 0, "secret"), False, "makes the number of voters public"),
    ("replacing", ("problem", "data", 0, "rule"), "drop", "leaves ballots out"),
    ("replacing", ("mechanism", "drops"), True, "'drops' that is not known"),
    ("replacing", ("mechanism", "local"), True, "'local' that is not known"),
    ("replacing", ("mechanism", "dummy_votes"), "0", "reveals its voter"),
    ("replacing", ("mechanism", "dummy_votes"), "-1", "less than 0"),
    ("replacing", ("mechanism", "base"), "2", "states another number than that of its rule"),
    ("winner", ("mechanism", "ratio"), "1/2", "below the least"),
    ("replacing", ("problem", "obligations", 0, "units", 0, "count"), 2, "a different lemma"),
    ("replacing", ("problem", "obligations", 0, "units", 0, "kind"), "record", "a different unit"),
    ("replacing", ("problem", "obligations", 0, "units", 0, "party"), "other", "a different unit"),
    ("replacing", ("problem", "trust", "kind"), "nobody", "view"),
    ("replacing", ("problem", "trust", "kind"), "secure_sum", "trust"),
    ("reports", ("problem", "obligations", 0, "units", 0, "adding"), True, ""),
    ("replacing", ("problem", "blocks", 0, "families"), ["exponential"], "law"),
    ("replacing", ("guarantees", 0, "achieved"), {"epsilon": "0.4"}, "privacy"),
    ("replacing", ("guarantees", 0, "achieved"), {"epsilon": "0.5", "mu": "0.1"}, "privacy"),
    ("replacing", ("guarantees", 0, "because"), ["randomised-winner"], "a different lemma"),
    ("group", ("guarantees", 0, "because"), ["dummy-votes"], "a different lemma"),
    ("rounds", ("guarantees", 0, "because"), ["dummy-votes"], "a different lemma"),
    ("exponential", ("problem", "blocks", 0, "voters"), 40, "no profile"),
    ("least epsilon", ("mechanism", "scalars"), {}, "other numbers than the problem leaves open"),
    ("least epsilon", ("mechanism", "scalars", "epsilon"), "1/1000", "choices"),
    ("least epsilon", ("mechanism", "scalars", "epsilon"), "11", "choices"),
    ("most rounds", ("mechanism", "scalars", "rounds"), "4", "rounds"),
    ("most rounds", ("mechanism", "rounds"), None, "rounds"),
    ("rounds", ("mechanism", "rounds", "count"), 3, "rounds"),
    ("rounds", ("mechanism", "rounds", "each"), "1/7", "rounds"),
    ("rounds", ("mechanism", "rounds", "fit"), 9, "rounds"),
    ("replacing", ("mechanism", "rounds"), {"count": 1, "budget": "1/2", "each": "1/2", "fit": 1}, "rounds"),
    ("plurality", ("problem", "blocks", 0, "law", 0, 1), "1/4", "no law"),
    ("plurality", ("problem", "blocks", 0, "law"), LOPSIDED, "loss"),
    ("plurality", ("loss", "standard_error"), 0.01, "standard_error"),
    ("replacing", ("status",), "optimal", "bound"),
    ("winner", ("status",), "feasible", "bound"),
    ("borda", ("status",), "optimal", "without a bound"),
    ("borda", ("loss", "lower_bound"), 0.0, "lower_bound"),
    ("replacing", ("loss", "among"), "every strategy-proof rule that meets the requirement", "among"),
    ("replacing", ("claims", "bound", "votes"), 1001, "votes"),
    ("replacing", ("claims", "bound", "votes"), 0, "votes"),
    ("replacing", ("claims", "bound", "votes"), 500, "bound"),
    ("replacing", ("claims", "bound"), {"form": "near tie", "profile": [333, 333, 334]}, "not known for"),
    ("replacing", ("claims", "bound"), {"form": "strategy-proof"}, "strategy-proof"),
    ("winner", ("claims", "bound"), {"form": "walk", "votes": 1}, "not known for"),
    ("winner", ("claims", "bound", "profile"), [17, 17, 16], "no profile"),
    ("winner", ("claims", "bound", "profile"), [50, 0, 0], "no profile"),
    ("winner", ("claims", "bound", "profile"), [16, 17, 18], "no profile"),
    ("winner", ("claims", "bound", "profile"), [17, 33], "profile"),
    ("winner, adding", ("status",), "optimal", "bound"),
    ("no lies", ("problem", "blocks", 0, "limits", 0, "bound"), "1/10", "bound"),
    ("no lies", ("problem", "blocks", 0, "limits"), [], "accuracy"),
    ("no lies", ("accuracy", 0, "value"), 0.1, "accuracy"),
    ("no lies", ("accuracy",), [], "accuracy"),
    ("least epsilon", ("accuracy", 0, "bound"), 0.03, "accuracy"),
    ("least epsilon", ("problem", "blocks", 0, "limits", 0, "bound"), "1/60", "accuracy"),
    ("replacing", ("fairness",), [], "fairness"),
    ("most rounds", ("claims", "bound", "votes"), 1, "bound"),
    ("most rounds, inverse", ("claims", "bound", "votes"), 40, "bound"),
    ("least epsilon", ("claims", "bound", "votes"), 1, "bound"),
    ("plurality", ("problem", "blocks", 0, "loss", "terms", 0, "parts", 0, "family"), "plurality", "no cost"),
    ("exponential", ("problem", "blocks", 0, "loss", "terms", 0, "parts", 0, "family"), "exponential", "no cost"),
    ("replacing", ("problem", "blocks", 0, "loss", "terms", 0, "operator"), "best", "not known"),
    ("replacing", ("problem", "blocks", 0, "ballots", "supporters"), 3, "the facts say exist"),
    ("supporters", ("problem", "facts"), [], "the facts say exist"),
    ("supporters", ("problem", "blocks", 0, "ballots", "supporters"), 0, "the facts say exist"),
    ("supporters", ("problem", "blocks", 0, "ballots", "supporters"), 400, "fewer voters"),
    ("supporters, adding", ("mechanism", "dummy_votes"), "1/2", "privacy"),
    ("supporters", ("claims", "bound", "votes"), 998, "votes"),
    ("supporters", ("claims", "bound"), {"form": "strategy-proof"}, "strategy-proof"),
    ("replacing", ("claims", "bound"), {"form": "dummy votes"}, "other rules too"),
    ("supporters, winner", ("problem", "blocks", 0, "ballots", "supporters"), 16, "do not exist"),
    ("borda", ("problem", "blocks", 0, "ballots", "supporters"), 1, "points that they do not give"),
]
"""Plans of other meanings: at one place another word or number, and what the refusal names."""


@pytest.mark.parametrize(("name", "path", "value", "why"), FORGED)
def test_forgeries_are_refused(name: str, path: tuple[str | int, ...], value: Any, why: str) -> None:
    said = failed(solved_text(VOTES[name]), path, value)
    assert said and why in said, said


def test_a_bound_that_another_relation_proves_is_refused() -> None:
    """A vote that moves is two steps where voters come and go."""
    strict, loose = solved_text(VOTES["winner"]), solved_text(VOTES["winner, adding"])
    claimed = loose | {"loss": strict["loss"], "claims": strict["claims"], "status": "optimal"}
    assert "bound" in " ".join(claim.name for claim in judge(json.dumps(resign(claimed))).failed)


@pytest.mark.parametrize("family", ["exponential", "permute_and_flip", "randomised_winner"])
def test_a_rule_under_which_lies_pay_does_not_meet_the_line(family: str) -> None:
    document = solved_text(spec(6, APART, options=f"noise family {family}"))
    line = {"line": 9, "text": TRUTHFUL, "measured": None, "bound": "9/10"}
    asked = mutate(document, ("problem", "blocks", 0, "limits"), [line])
    asked = mutate(asked, ("accuracy",), [{"line": 9, "text": TRUTHFUL, "value": 0.0, "bound": 0.9}])
    assert "nobody knows what a lie brings" in str(judge(json.dumps(asked)).failed)


def test_powers_of_half_points_are_refused() -> None:
    document = solved_text(spec(30, BORDA, ADDING, ballots="ranking of A", options="noise family randomised_winner"))
    changed = mutate(document, ("problem", "blocks", 0, "ballots", "kind"), "partial ranking")
    rule = without(changed, ("mechanism", "ratio"))
    rule = mutate(mutate(rule, ("mechanism", "family"), "exponential"), ("mechanism", "base"), "5/4")
    assert not judge(json.dumps(rule)).ok


@pytest.mark.parametrize("bound", [1 + 1e-9, 1.01, 2.0])
@pytest.mark.parametrize("name", ["replacing", "winner", "no lies", "least epsilon", "no lies, least epsilon"])
def test_a_larger_bound_is_refused(name: str, bound: float) -> None:
    document = solved_text(VOTES[name])
    loss, said = document["loss"]["value"], document["loss"]["lower_bound"] * bound
    gap = float((Fraction(loss) - Fraction(said)) / abs(Fraction(loss)))
    forged = mutate(mutate(document, ("loss", "lower_bound"), said), ("loss", "relative_gap"), gap)
    assert "bound" in {claim.name for claim in judge(json.dumps(forged)).failed}


@pytest.mark.parametrize("name", ["replacing", "plurality", "winner", "most rounds"])
def test_the_loss_is_exact_to_the_last_digit(name: str) -> None:
    document = solved_text(VOTES[name])
    value = document["loss"]["value"]
    for other in (nextafter(value, 1e9), nextafter(value, -1e9)):
        assert "loss" in failed(document, ("loss", "value"), other)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("replacing one voter", "replacing up to 2 voters"),
        ("north, east, south", "north, east, south, west"),
        ("north, east, south", "east, north, south"),
        ("T = 1000", "T = 999"),
        ("random_dictator", "plurality"),
        ("worst[", "2 * worst["),
        ("epsilon = 1/2", "epsilon = 1/3"),
        ("replacing one voter", "adding or removing one voter"),
        ("replacing one voter\n", "replacing one voter\noptions:\n  trust nobody\n"),
    ],
)
def test_another_spec_inside_is_refused(old: str, new: str) -> None:
    document = solved_text(VOTES["replacing"])
    source = document["spec"]["source"].replace(old, new)
    assert source != document["spec"]["source"]
    digest = hashlib.sha256(source.encode()).hexdigest()
    inside = document["spec"] | {"parameters": {}, "source": source, "sha256": digest}
    assert not Plan.of(resign(document | {"spec": inside})).verify().ok
