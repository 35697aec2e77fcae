"""Several values at once, before the kernel: what every tiny table lets through, by the plain laws; forged plans."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations, product
from math import ceil, log

import numpy as np
import pytest
from scipy.stats import chisquare

from privspec.api import Problem
from privspec.families.selection.one_noise import OneNoise
from privspec.kernel.changes import Records
from privspec.kernel.core.reading import Refused
from privspec.kernel.laws.exponential import Target, steps_of
from privspec.kernel.laws.several import ByLargest, ByPeeling, ByRankNoise
from privspec.kernel.laws.voting import BY_NAME
from privspec.kernel.selection import behind
from privspec.model.voting import Lottery
from privspec.noise.samplers import SimulationRandomness
from tests.kernel.test_selection import every_table, neighbours, refused
from tests.plans import solved_text

BASE = Fraction(13, 10)
ORDERS = (Fraction(3, 2), Fraction(2), Fraction(8))


def together(table, targets, weights):
    """In proportion to base^-(the largest score), choice by choice."""
    each = [[w * one for one in behind(t, list(table))] for t, w in zip(targets, weights, strict=True)]
    chances = {
        v: BASE ** -max(e[i] for e, i in zip(each, v, strict=True)) for v in product(*map(range, map(len, each)))
    }
    whole = sum(chances.values())
    return {choice: chance / whole for choice, chance in chances.items()}


def one_by_one(table, many, family):
    """Each drawn by counts among those that are left."""
    found = {}
    for order in permutations(range(len(table)), many):
        chance, left = Fraction(1), list(range(len(table)))
        for place in order:
            law = Lottery(BY_NAME[family], BASE).law([Fraction(table[i]) for i in left])
            chance *= law[left.index(place)]
            left.remove(place)
        found[order] = chance
    return found


def largest(laws, pairs):
    """The largest log ratio, and the largest Rényi divergence of some orders over the order, of all pairs."""
    found, renyi = Fraction(1), 0.0
    for one, other in pairs:
        p, q = laws[one], laws[other]
        found = max(found, *(p[v] / q[v] for v in p))
        for order in ORDERS:
            moment = sum(float(p[v]) ** float(order) * float(q[v]) ** (1 - float(order)) for v in p)
            renyi = max(renyi, log(moment) / float(order - 1) / float(order))
    return found, renyi


@pytest.mark.parametrize("adding", [True, False])
@pytest.mark.parametrize(
    ("shares", "weights"),
    [
        (("1/4", "1/2", "3/4"), (1, 3, 1)),
        (("1/10", "1/2"), (1, 9)),
        (("0", "1/3", "1"), (2, 1, 2)),
        (("1/2", "1"), (1, 1)),
    ],
)
def test_quantiles_drawn_together_let_through_what_is_derived_at_most(shares, weights, adding):
    """All tables of up to four records of three values, or of four in public, and all their neighbours."""
    targets, records = tuple(Target(Fraction(one), 0) for one in shares), None if adding else 4
    pairs = list(neighbours(3, 4, adding, records))
    laws = {table: together(table, targets, weights) for table in {one for pair in pairs for one in pair}}
    loss = ByLargest(BASE, targets, weights, records).let_through(Records(1, adding, 1))
    ratio, renyi = largest(laws, pairs)
    assert 0.4 * float(loss.figure("epsilon")) <= log(ratio) <= float(loss.figure("epsilon")) * (1 + 1e-12)
    (factor,) = loss.factors
    assert renyi <= float(factor.spread) ** 2 / 8
    reach = max(w * steps_of(records, t, adding).reach for w, t in zip(weights, targets, strict=True))
    assert float(loss.figure("epsilon")) == pytest.approx(2 * reach * log(BASE))


@pytest.mark.parametrize("family", ["exponential", "permute_and_flip"])
@pytest.mark.parametrize("adding", [True, False])
@pytest.mark.parametrize(("size", "many"), [(3, 2), (4, 2), (4, 3)])
def test_values_peeled_let_through_what_is_derived_at_most(size, many, adding, family):
    pairs = list(neighbours(size, 3, adding, None if adding else 3))
    laws = {table: one_by_one(table, many, family) for table in {one for pair in pairs for one in pair}}
    loss = ByPeeling(family, BASE, size, many).let_through(Records(1, adding, 1))
    ratio, renyi = largest(laws, pairs)
    assert log(ratio) <= float(loss.figure("epsilon")) * (1 + 1e-12)
    if family == "exponential":
        (factor,) = loss.factors
        assert renyi <= float(factor.spread) ** 2 / 8
        assert float(factor.spread) == pytest.approx(many**0.5 * (1 if adding else 2) * log(BASE))


@pytest.mark.parametrize("each", [1, 2])
def test_a_person_with_few_records_of_each_value_counts_as_those(each):
    """Two records of a person who comes: of one value at most so many of them move its count."""
    laws = {table: one_by_one(table, 2, "permute_and_flip") for table in every_table(3, 4)}
    moves = [move for move in every_table(3, 2) if max(move) <= each]
    pairs = [
        (one, other)
        for table in every_table(3, 2)
        for move in moves
        for other in [tuple(a + b for a, b in zip(table, move, strict=True))]
        for one, other in ((table, other), (other, table))
    ]
    loss = ByPeeling("permute_and_flip", BASE, 3, 2).let_through(Records(2, True, each))
    assert log(largest(laws, pairs)[0]) <= float(loss.figure("epsilon")) * (1 + 1e-12)
    assert float(loss.figure("epsilon")) == pytest.approx(2 * each * log(BASE))


REACH = np.arange(-90, 91)


def of_one_noise(counts, shares, base, jitter, filled, middle):
    """What is passed at ranks that are off by one noise, as the note says it, in doubles; by plain code."""
    size, total = len(counts), sum(counts)
    long = [max(one, filled) for one in counts]
    upto = [sum(counts[: middle + 1]) + sum(long[: i + 1]) - sum(long[: middle + 1]) for i in range(size - 1)]
    rows = [[one - max(ceil(share * total), 1) + 1 for one in upto] for share in shares]
    noise = np.array([float(base) ** -abs(int(g)) for g in REACH])
    noise /= noise.sum()

    def below(place):  # the noise and a uniform place up to the next whole number
        return float(sum(p * min(max(place - g, 0.0), 1.0) for g, p in zip(REACH, noise, strict=True)))

    if len(rows) == 1:
        ends = [0.0, *map(below, rows[0]), 1.0]
        return {(i,): ends[i + 1] - ends[i] for i in range(size)}
    own = np.array([float(jitter) ** -abs(int(y)) for y in REACH])
    own /= own.sum()
    passed = [[[own[x - e > REACH].sum() for e in row] for x in REACH] for row in rows]
    chances = [-np.diff(np.array(row), axis=1, prepend=1.0, append=0.0) for row in passed]
    weights = {}
    for choice in product(range(size), repeat=len(rows)):
        weights[choice] = np.prod([chances[j][:, c] for j, c in enumerate(choice)], axis=0)
    last = len(rows) * (size - 1)
    by_number = [sum(w for c, w in weights.items() if sum(c) == s) for s in range(last + 1)]
    places = [(np.sum(by_number[: s + 1], axis=0) - (REACH <= 0)).sum() for s in range(last)]
    ends = [0.0, *map(below, places), 1.0]
    found = {}
    for choice, own_weights in weights.items():
        s = sum(choice)
        part = own_weights.sum() / by_number[s].sum() if 0 < s < last else 1.0
        found[choice] = (ends[s + 1] - ends[s]) * part
    assert sum(found.values()) == pytest.approx(1)
    return found


@pytest.mark.parametrize(
    ("shares", "filled", "base", "jitter"),
    [
        (("1/2",), 1, "2", "1"),
        (("1/3",), 3, "2", "1"),
        (("1",), 2, "3/2", "1"),
        (("1/4", "3/4"), 1, "2", "3/2"),
        (("1/4", "3/4"), 3, "3/2", "2"),
        (("1/2", "2/3"), 2, "2", "2"),
        (("1/4", "1/2", "3/4"), 2, "2", "3/2"),
        (("0", "1/2", "1"), 1, "3/2", "2"),
    ],
)
@pytest.mark.parametrize("middle", [0, 1])
def test_one_noise_lets_through_what_is_derived_at_most(shares, filled, base, jitter, middle):
    """All tables of four records of three values, and all their neighbours."""
    base, jitter, each = Fraction(base), Fraction(jitter), tuple(map(Fraction, shares))
    pairs = list(neighbours(3, 4, False, 4))
    tables = {table for pair in pairs for table in pair}
    laws = {table: of_one_noise(table, each, base, jitter, filled, middle) for table in tables}
    loss = ByRankNoise(base, jitter, filled, len(each), 4).let_through(Records(1, False, 1))
    worst = max(max(log(laws[a][o] / laws[b][o]) for o in laws[a]) for a, b in pairs)
    derived = float(loss.figure("epsilon"))
    assert 0.4 * log(base) < worst <= derived * (1 + 1e-9)
    assert derived == pytest.approx(log(base) + len(each) // 2 * log(jitter) + len(each) * log(1 + 1 / filled))
    twice = ByRankNoise(base, jitter, filled, len(each), 4).let_through(Records(2, False, 2))
    assert float(twice.figure("epsilon")) == pytest.approx(2 * derived)


@pytest.mark.parametrize(("shares", "jitter"), [(("1/3",), "1"), (("1/4", "3/4"), "3/2"), (("1/4", "1/2", "3/4"), "2")])
def test_one_noise_is_drawn_as_it_is_judged(shares, jitter):
    """Of a plan's thresholds: draws have the chances of plain code."""
    counts, each = (3, 1, 0, 4), tuple(map(Fraction, shares))
    law = of_one_noise(counts, each, BASE, Fraction(jitter), 2, 1)
    # above the second answer as they are, the others of two records at least: 4 at or below it
    rows = tuple(tuple(place + 1 - max(ceil(share * 8), 1) for place in (2, 4, 6)) for share in each)
    draw, random, many = OneNoise(BASE, Fraction(jitter), rows), SimulationRandomness(2), 700
    seen = Counter(tuple(draw.draw(random)) for _ in range(many))
    often = {one: chance * many for one, chance in law.items() if chance * many > 5}
    rest = many - sum(often.values())
    observed, expected = [seen[one] for one in often], list(often.values())
    if rest > 1:
        observed, expected = [*observed, many - sum(observed)], [*expected, rest]
    assert chisquare(observed, np.array(expected) * sum(observed) / sum(expected)).pvalue > 1e-4


def test_laws_that_are_none_are_refused():
    with pytest.raises(Refused):
        ByRankNoise(BASE, Fraction(1), 1, 2, 4)
    with pytest.raises(Refused):
        ByRankNoise(BASE, BASE, 1, 1, 4)
    with pytest.raises(Refused):
        ByRankNoise(BASE, BASE, 0, 2, 4)
    with pytest.raises(Refused):
        ByRankNoise(BASE, BASE, 1, 2, 4).let_through(Records(1, True, 1))
    with pytest.raises(Refused):
        ByRankNoise(BASE, Fraction(1), 1, 2, 4)
    with pytest.raises(Refused):
        ByRankNoise(BASE, BASE, 1, 1, 4)
    with pytest.raises(Refused):
        ByRankNoise(BASE, BASE, 0, 2, 4)
    with pytest.raises(Refused):
        ByRankNoise(BASE, BASE, 1, 2, 4).let_through(Records(1, True, 1))
    with pytest.raises(Refused):
        ByLargest(BASE, (Target(Fraction(1, 2), 0),), (0,), None)
    with pytest.raises(Refused):
        ByLargest(BASE, (Target(Fraction(1, 2), 0),), (1, 1), None)
    with pytest.raises(Refused):
        ByPeeling("exponential", BASE, 3, 3)
    with pytest.raises(Refused):
        ByPeeling("table", BASE, 3, 1)


QUANTILES = """
variables:
  input people in table(age in 0..9)^300
  output q
background: people.age ~ binomial(9, 0.4)
loss: E[ ||q - quantiles(people.age, [0.25, 0.5, 0.75])||_1 ]
privacy: q is 1-DP wrt people, replacing one record
"""
TOP = """
variables:
  input visits in table(page in {a, b, c, d, e})^300
  output pages
background: visits.page ~ categorical([0.3, 0.25, 0.2, 0.15, 0.1])
loss: E[ rank_error(pages, top(histogram(visits.page), 2)) ]
privacy: pages is 1-DP wrt visits, adding or removing one record
"""


def test_forged_quantiles_are_refused():
    plan = solved_text(QUANTILES + "options: noise family exponential\n")
    base, block = Fraction(plan["mechanism"]["base"]), ("problem", "blocks", 0)
    refused(
        plan,
        (
            (("mechanism", "base"), str(Fraction(base.numerator, base.denominator - 2**20)), "the plan states"),
            (("mechanism", "weights", 0), 2, "the plan states"),
            (("mechanism", "weights"), [1, 1], "has weights of other quantiles"),
            (("mechanism", "weights", 1), 0, ""),
            (("mechanism", "family"), "permute_and_flip", ""),
            (("mechanism", "family"), "peeling", ""),
            (("mechanism", "draw"), "exponential", "is not known"),
            ((*block, "score", "shares"), ["0.5", "0.25", "0.75"], "not in order"),
            ((*block, "score", "shares"), ["0.25", "0.5", "3/4", "1"], "has weights of other quantiles"),
            ((*block, "score"), {"form": "leaders", "values": 2}, ""),
            ((*block, "score"), {"form": "ranks", "share": "0.5"}, "draws quantiles where none are asked for"),
            ((*block, "cost", "form"), "mismatch", "a cost that is not known"),
            (("claims", "bound", "each", 0, "cells"), 0, ""),
            (("claims", "bound", "each"), plan["claims"]["bound"]["each"][:2], ""),
            (("loss", "lower_bound"), plan["loss"]["lower_bound"] * 1.01, ""),
            (("loss", "value"), plan["loss"]["lower_bound"] * 0.99, ""),
            (("guarantees", 0, "achieved", "epsilon"), "0.5", "the plan states"),
        ),
    )


def test_forged_noise_on_ranks_is_refused():
    plan = solved_text(QUANTILES.replace("^300", "^30000").replace("0..9", "0..5").replace("9, 0.4", "5, 0.4"))
    mechanism, block = plan["mechanism"], ("problem", "blocks", 0)
    assert mechanism["family"] == "rank_noise"
    base, jitter = Fraction(mechanism["base"]), Fraction(mechanism["jitter"])
    unit = ("problem", "obligations", 0, "units", 0)
    refused(
        plan,
        (
            (("mechanism", "base"), str(Fraction(base.numerator, base.denominator - 2**20)), "the plan states"),
            (("mechanism", "jitter"), str(Fraction(jitter.numerator, jitter.denominator - 2**30)), "the plan states"),
            (("mechanism", "jitter"), "1", "has jitters of one quantile, or none of several"),
            (("mechanism", "filled"), mechanism["filled"] - 1, "the plan states"),
            (("mechanism", "filled"), 0, ""),
            (("mechanism", "middle"), 5, "has a middle that is no answer"),
            (("mechanism", "middle"), -1, ""),
            (("mechanism", "family"), "joint", ""),
            ((*unit, "adding"), True, ""),
            ((*block, "records"), None, ""),
            ((*block, "score"), {"form": "leaders", "values": 2}, ""),
            ((*block, "score", "shares"), ["0.25", "0.5", "0.75", "1"], "the plan states"),
            ((*block, "cost", "worst"), True, ""),
            (("guarantees", 0, "achieved", "epsilon"), "0.5", "the plan states"),
        ),
    )


def test_forged_peelings_are_refused():
    plan = solved_text(TOP)
    base, block = Fraction(plan["mechanism"]["base"]), ("problem", "blocks", 0)
    refused(
        plan,
        (
            (("mechanism", "base"), str(Fraction(base.numerator, base.denominator - 2**20)), "the plan states"),
            (("mechanism", "base"), str(base * base), ""),
            (("mechanism", "draw"), "table", ""),
            (("mechanism", "family"), "permute_and_flip", ""),
            ((*block, "score", "values"), 3, "the plan states"),
            ((*block, "score", "values"), 5, "as many values as there are"),
            ((*block, "score"), {"form": "counts"}, "draws the most frequent values where they are not asked for"),
            ((*block, "cost", "form"), "mismatch", "a cost that is not known"),
            (("guarantees", 0, "achieved", "epsilon"), "0.5", "the plan states"),
        ),
    )


def test_a_bound_on_several_values_is_what_each_alone_proves():
    """The sum of what thresholds prove of each quantile, and no more."""
    plan = solved_text(QUANTILES)
    alone = [
        Problem(
            QUANTILES.replace("||q - quantiles(people.age, [0.25, 0.5, 0.75])||_1", f"|q - quantile(people.age, {s})|")
        )
        for s in ("0.25", "0.5", "0.75")
    ]
    each = [problem.solve().document["loss"]["lower_bound"] for problem in alone]
    assert plan["loss"]["lower_bound"] == pytest.approx(sum(each), rel=1e-9)
