"""Several values at once mean what the manual says: on all tiny tables, by plain code, with what a plan draws by."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product
from math import exp

import numpy as np
import pytest
from scipy.stats import chisquare

from privspec.api import Problem
from privspec.execute.family import simulate

AGES, SHARES, RECORDS = range(4), (Fraction(1, 4), Fraction(1, 2), Fraction(9, 10)), 4
QUANTILES = """
variables:
  input people in table(age in 0..3, sex in {{F, M}}){size}
  output q
background:
  people.age ~ uniform
  people.sex ~ uniform
loss: E[ ||q - quantiles(people.age, [1/4, 1/2, 9/10]{where})||_1 ]
privacy: q is 1-DP wrt people, {relation}
options: noise family exponential
"""
TOP = """
variables:
  input visits in table(page in {{a, b, c, d}})^200
  output pages
background: visits.page ~ categorical([0.4, 0.3, 0.2, 0.1])
loss: E[ rank_error(pages, top(histogram(visits.page), 2)) ]
privacy: pages is {epsilon}-DP wrt visits, {relation}
options: noise family {family}
"""


def quantiles_of(ages, base, weights):
    """The chance of what is released of some records: as far as each answer is off, the farthest one decides."""

    def off(share, answer):
        below, upto = sum(age < answer for age in ages), sum(age <= answer for age in ages)
        return max(Fraction(0), below - share * len(ages), share * len(ages) - upto)

    found = dict[tuple[int, ...], Fraction]()
    for choice in product(AGES, repeat=len(SHARES)):
        steps = [w * s.denominator * off(s, a) for s, a, w in zip(SHARES, choice, weights, strict=True)]
        released = tuple(sorted(choice))
        found[released] = found.get(released, Fraction(0)) + base ** -int(max(steps))
    return {released: chance / sum(found.values()) for released, chance in found.items()}


def top_of(counts, many, base, permute):
    """The chance of what is released: each among those that are left, by how many records it is behind."""
    found = {}
    for order in permutations(range(len(counts)), many):
        chance, left = Fraction(1), list(range(len(counts)))
        for place in order:
            weights = {i: base ** (counts[i] - max(counts[j] for j in left)) for i in left}
            law = dict.fromkeys(left, Fraction(0))
            for way in permutations(left) if permute else ():
                rest = Fraction(1)
                for i in way:
                    law[i] += rest * weights[i]
                    rest *= 1 - weights[i]
            law = law if permute else weights
            chance *= law[place] / sum(law.values())
            left.remove(place)
        found[order] = chance
    return found


def ratio(one, other):
    return max(float(one[released] / other[released]) for released in one)


@pytest.mark.parametrize(
    ("relation", "size", "where"),
    [
        ("replacing one record", "^4", ""),
        ("replacing one record", "^4", ", sex = F"),
        ("adding or removing one record", "^4", ""),
    ],
)
def test_quantiles_keep_their_line_beside_every_neighbour(relation, size, where):
    plan = Problem(QUANTILES.format(relation=relation, size=size, where=where)).solve()
    base, weights = Fraction(plan.document["mechanism"]["base"]), plan.document["mechanism"]["weights"]
    laws = {}

    def law(ages):
        known = tuple(sorted(ages))
        if known not in laws:
            laws[known] = quantiles_of(known, base, weights)
        return laws[known]

    worst = 1.0
    for many in (RECORDS,) if relation.startswith("rep") and not where else range(RECORDS):
        for ages in {tuple(sorted(ages)) for ages in product(AGES, repeat=many)}:
            here = law(ages)
            others = [(*ages, age) for age in AGES] if where or relation.startswith("add") else []
            if relation.startswith("rep"):
                others += [(*ages[:i], age, *ages[i + 1 :]) for i in range(many) for age in AGES]
            for other in others:
                there = law(other)
                worst = max(worst, ratio(here, there), ratio(there, here))
    assert worst <= exp(1)
    assert worst >= exp(0.4), "what is let through is not far below the line"


@pytest.mark.parametrize("relation", ["replacing one record", "adding or removing one record"])
@pytest.mark.parametrize("family", ["exponential", "permute_and_flip"])
def test_the_first_values_keep_their_line_beside_every_neighbour(family, relation):
    """Values are behind by whole records, and far ones alike: tables of few records have all that there is."""
    plan = Problem(TOP.format(epsilon=1, relation=relation, family=family)).solve()
    base, permute = Fraction(plan.document["mechanism"]["base"]), family == "permute_and_flip"
    laws = {}
    for counts in product(range(3), repeat=4):
        laws[counts] = top_of(counts, 2, base, permute)
    worst = 1.0
    for counts in product(range(3), repeat=4):
        moved = [tuple(c + (i == j) for j, c in enumerate(counts)) for i in range(4)]
        if relation.startswith("rep"):
            moved = [tuple(c - (i == j) for j, c in enumerate(one)) for one in moved for i in range(4)]
        for other in moved:
            if other in laws:
                worst = max(worst, ratio(laws[counts], laws[other]), ratio(laws[other], laws[counts]))
    assert exp(0.35) <= worst <= exp(1)


def test_what_is_drawn_of_quantiles_has_the_chances_of_the_manual():
    ages = [0, 1, 1, 3]
    plan = Problem(QUANTILES.format(relation="replacing one record", size="^4", where="")).solve()
    base, weights = Fraction(plan.document["mechanism"]["base"]), plan.document["mechanism"]["weights"]
    drawn = simulate(plan.document, 4000, 3, base={"people": {"age": ages, "sex": ["F"] * 4}}).astype(int)
    alike(quantiles_of(ages, base, weights), [tuple(row) for row in drawn.tolist()])


@pytest.mark.parametrize("family", ["exponential", "permute_and_flip"])
def test_what_is_drawn_of_the_first_values_has_the_chances_of_the_manual(family):
    pages, counts = ["a"] * 70 + ["b"] * 68 + ["c"] * 60 + ["d"] * 2, (70, 68, 60, 2)
    plan = Problem(TOP.format(epsilon="0.5", relation="replacing one record", family=family)).solve()
    drawn = simulate(plan.document, 4000, 5, base={"visits": {"page": pages}}).astype(int)
    law = top_of(counts, 2, Fraction(plan.document["mechanism"]["base"]), family == "permute_and_flip")
    alike(law, [tuple(row) for row in drawn.tolist()])


def alike(law, drawn):
    """Draws beside a law; what is hardly ever drawn together."""
    often = {one: float(chance) * len(drawn) for one, chance in law.items()}
    kept = [one for one, many in often.items() if many > 5]
    seen = [sum(one == other for other in drawn) for one in kept]
    rest = len(drawn) - sum(often[one] for one in kept)
    observed, expected = [*seen, len(drawn) - sum(seen)], [*(often[one] for one in kept), rest]
    if rest < 1:
        observed, expected = observed[:-1], list(np.array(expected[:-1]) * sum(seen) / (len(drawn) - rest))
    assert chisquare(observed, expected).pvalue > 1e-4
