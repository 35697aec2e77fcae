"""Selections by scores, before the kernel: ratios and losses against all tables of few records, and forged plans."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import ceil, exp, factorial, log, prod

import numpy as np
import pytest
from scipy.optimize import linprog

from privspec.kernel import judge
from privspec.kernel.core.problem import Unit, read_frame
from privspec.kernel.core.reading import Grid, JsonNode, Refused, read
from privspec.kernel.laws.exponential import Target, epsilon_up, ratio_up, steps_of
from privspec.kernel.laws.voting import BY_NAME
from privspec.kernel.selection import (
    Drawn,
    Listed,
    Ranks,
    Selected,
    behind,
    beside,
    epsilon_of_unit,
    least,
    least_ranks,
    of_tables,
    read_witness,
    shortfall,
    tables_of,
    worst_ranks,
)
from privspec.kernel.worth.averages import Sought, averaged
from privspec.model.voting import Lottery
from privspec.plan import Plan
from tests.plans import mutate, solved_text

BASE = Fraction(17, 10)
FAMILIES = ("exponential", "permute_and_flip")
ADDING, REPLACING = (Unit("record", ("people",), adding, 1, None, None, False) for adding in (True, False))


def block_of(size, share, records=None, loss="ranks", by=()):
    score = {"form": "counts"} if share is None else {"form": "ranks", "share": str(share)}
    return read(
        Selected,
        JsonNode(
            {
                "form": "selection",
                "source": "people",
                "output": "m",
                "column": "age",
                "answers": [str(i) for i in range(size)],
                "numbers": None if share is None else [str(i) for i in range(size)],
                "where": [],
                "by": list(by),
                "score": score,
                "records": records,
                "law": None,
                "cost": {"form": loss, "power": 1, "weight": "1", "worst": True},
                "expression": "",
                "families": [],
            },
            "block",
        ),
    )


def every_table(size, most):
    return [table for table in product(range(most + 1), repeat=size) if sum(table) <= most]


def neighbours(size, most, adding, records):
    tables = every_table(size, most)
    if records is not None:
        tables = [table for table in tables if sum(table) == records]
    for table in tables:
        if adding:
            for i in range(size):
                more = tuple(n + (j == i) for j, n in enumerate(table))
                yield table, more
                yield more, table
        else:
            yield from ((table, other) for other in beside(table))


def law(family, target, table, base=BASE):
    return Lottery(BY_NAME[family], base).law([Fraction(-one) for one in behind(target, list(table))])


SHARES = [Fraction(1, 2), Fraction(9, 10), Fraction(1, 3), Fraction(0), Fraction(1), None]
TARGETS = [None if share is None else Target(share, 0) for share in SHARES]
TARGETS += [Target(Fraction(1), -1), Target(Fraction(0), 2), Target(Fraction(1, 3), 1), Target(Fraction(9, 10), 2)]


@pytest.mark.parametrize("adding", [True, False])
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_no_record_moves_scores_or_chances_by_more_than_is_derived(target, adding):
    """All tables of up to five records of three answers, and of a public number; one answer is always the best."""
    share = None if target is None else target.share
    for records in (None, 4) if not adding else (None,):
        block = block_of(3, share, records)
        steps = steps_of(block.records, target, adding)
        spread = reach = 0
        ratios = dict.fromkeys(FAMILIES, Fraction(1))
        for one, other in neighbours(3, 5, adding, records):
            before, after = behind(target, list(one)), behind(target, list(other))
            if target is None or target.offset == 0:
                assert min(before) == 0
            moved = [b - a for a, b in zip(before, after, strict=True)]
            spread, reach = max(spread, max(moved) - min(moved)), max(reach, *map(abs, moved))
            if steps.nearest:
                assert sorted(before)[1] >= steps.nearest
            for family in FAMILIES:
                pairs = zip(law(family, target, one), law(family, target, other), strict=True)
                ratios[family] = max(ratios[family], *(p / q for p, q in pairs))
        assert spread <= steps.spread
        assert reach <= steps.reach
        for family in FAMILIES:
            assert ratios[family] <= ratio_up(family, BASE, 3, steps, 1)


def largest_ratios(size, target, most, records, base):
    """Of all tables of up to so many records, or of a public number, and their neighbours, in doubles."""
    adding, known = records is None, {}
    nodes, weights = np.polynomial.legendre.leggauss(size)

    def laws(table):
        if table not in known:
            chances = base ** -np.array(behind(target, list(table)), dtype=float)
            passed = 1 - np.outer((nodes + 1) / 2, chances)
            others = [np.delete(passed, i, axis=1).prod(axis=1) @ weights / 2 for i in range(size)]
            known[table] = chances / chances.sum(), chances * np.array(others)
        return known[table]

    found = [1.0, 1.0]
    for one, other in neighbours(size, most if adding else records, adding, records):
        found = [max(m, (p / q).max()) for m, p, q in zip(found, laws(one), laws(other), strict=True)]
    return dict(zip(FAMILIES, found, strict=True))


@pytest.mark.parametrize("records", [None, 8, 9, 15])
@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(1, 3), Fraction(3, 4), Fraction(7, 10)], ids=str)
@pytest.mark.parametrize("size", [2, 3])
def test_ratios_of_quantiles_are_reached(size, share, records):
    """What is derived is what some tables have; of the exponential mechanism, as records become more: half as much
    was left unused of quantiles other than a median of a whole rank."""
    block, target = block_of(size, share, records), Target(share, 0)
    steps = steps_of(block.records, target, adding=records is None)
    base = Fraction(exp(1.5 / steps.reach))
    found = largest_ratios(size, target, 10, records, float(base))
    for family in FAMILIES:
        derived, reached = float(log(ratio_up(family, base, size, steps, 1))), log(found[family])
        assert reached <= derived + 1e-12
        assert reached >= derived * (1 - (1e-9 if family == "permute_and_flip" else 0.05))


def test_a_quantile_uses_all_of_its_epsilon():
    """Of a plan for epsilon 1, share .9, with records that come and go: tables of nine records reach e, to what a base
    of forty places leaves. The next larger base is refused."""
    plan, target = solved_text(NINE_TENTHS), Target(Fraction(9, 10), 0)
    base = Fraction(plan["mechanism"]["base"])
    assert plan["mechanism"]["family"] == "permute_and_flip"
    assert log(largest_ratios(3, target, 9, None, float(base))["permute_and_flip"]) == pytest.approx(1, abs=1e-9)
    more = str(1 / (1 / base - Fraction(1, 2**40)))
    refused(plan, [(("mechanism", "base"), more, "the plan states 1, ")])


@pytest.mark.parametrize("family", FAMILIES)
def test_groups_of_records(family):
    target = Target(Fraction(1, 2), 0)
    block = block_of(3, Fraction(1, 2))
    found = Fraction(1)
    for one in every_table(3, 3):
        for more in every_table(3, 2):
            other = tuple(a + b for a, b in zip(one, more, strict=True))
            pairs = zip(law(family, target, one), law(family, target, other), strict=True)
            found = max(found, *(max(p / q, q / p) for p, q in pairs))
    assert found <= ratio_up(family, BASE, 3, steps_of(block.records, target, adding=True), 2)


@pytest.mark.parametrize("adding", [True, False])
@pytest.mark.parametrize("target", [Target(Fraction(1, 2), 0), Target(Fraction(1), 0), None], ids=str)
def test_a_record_is_of_one_group(target, adding):
    """All tables of up to three records of two answers in two groups: what is drawn for both, together."""
    groups = [{"column": "sex", "values": ["F", "M"], "kept": [0, 1]}]
    block = block_of(2, target and target.share, by=groups)
    for family in FAMILIES:
        drawn, found = Drawn(block, family, BASE, target, (), drops=True), Fraction(1)
        for one, other in neighbours(4, 3, adding, None):
            laws = [[law(family, target, table[i : i + 2]) for i in (0, 2)] for table in (one, other)]
            both = [[p * q for p in first for q in second] for first, second in laws]
            found = max(found, *(p / q for p, q in zip(*both, strict=True)))
        assert found <= drawn.law.ratio(drawn.change(ADDING if adding else REPLACING))
        if not adding:
            assert found > drawn.law.ratio(drawn.change(ADDING))


def test_log_ratios_of_the_exponential_mechanism_lie_within_their_spread():
    """And so zero-concentrated privacy is spread^2 / 8: the Renyi divergences of all neighbours obey it."""
    for target, adding in product((Target(Fraction(1, 2), 0), Target(Fraction(1), 0), None), (True, False)):
        drawn = Drawn(block_of(3, target and target.share), "exponential", BASE, target, (), drops=True)
        spread = float(drawn.law.spread(drawn.change(ADDING if adding else REPLACING)))
        for one, other in neighbours(3, 4, adding, None):
            p, q = (np.array([float(x) for x in law("exponential", target, t)]) for t in (one, other))
            ratios = np.log(p / q)
            assert np.ptp(ratios) <= spread + 1e-9
            for order in (2.0, 5.0):
                renyi = np.log(np.sum(p**order * q ** (1 - order))) / (order - 1)
                assert renyi <= order * spread**2 / 8 + 1e-9


@pytest.mark.parametrize("family", FAMILIES)
def test_the_worst_mean_shortfall(family):
    """The largest over all numbers of steps of all answers but the best: no random scores have a larger one."""
    random, size = np.random.default_rng(5), 5
    worst = float(worst_ranks(family, BASE, size, 2))
    assert worst == pytest.approx(max(d * float(shortfall(family, BASE, size, d)) for d in range(1, 99)) / 2)
    for _ in range(300):
        steps = [0, *random.integers(0, 9, size - 1).tolist()]
        chances = Lottery(BY_NAME[family], BASE).law([Fraction(-one) for one in steps])
        assert float(sum(d * p for d, p in zip(steps, chances, strict=True))) / 2 <= worst * (1 + 1e-12)


def listed(size, records, share, epsilon, *, worst=True):
    kind = f"E[ |m - {share}| ]" if not worst else f"worst[ rank_error(m, {share}) ]"
    model = "" if worst else f"background: people.age ~ binomial({size - 1}, 0.4)\n"
    return solved_text(
        f"variables:\n  input people in table(age in 0..{size - 1})^{records}\n  output m\n{model}"
        f"loss: {kind}\nprivacy: m is {epsilon}-DP wrt people, replacing one record\n"
    )


@pytest.mark.parametrize(("size", "records", "share"), [(3, 4, "median(people.age)"), (2, 5, "mode(people.age)")])
def test_no_bound_is_above_the_best_table(size, records, share):
    """What data far apart prove, and what any multipliers prove, is no more than the best table has."""
    plan = listed(size, records, share, 1)
    assert plan["status"] == "optimal"
    block = read(Selected, JsonNode(plan["problem"]["blocks"][0], "block"))
    best = Fraction(plan["loss"]["value"])
    unit = replace(REPLACING)
    for far in (Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(2)):
        assert least_ranks(block, unit, unit.count, Fraction(1), far) <= best
    random, tables = np.random.default_rng(1), tables_of(block)
    at = {table: i for i, table in enumerate(tables)}
    for _ in range(30):
        pairs = [
            [i, at[other], int(random.integers(size)), float(random.exponential(0.05))]
            for i, table in enumerate(tables)
            for other in beside(table)
            if random.random() < 0.3
        ]
        weights = random.dirichlet(np.ones(len(tables))).tolist()
        witness = JsonNode({"pairs": pairs, "weights": weights}, "bound")
        assert of_tables(block, witness).at(Fraction(1)) <= best


NINE_TENTHS = """variables:
  input people in table(age in 0..2)
  output m
loss: worst[ rank_error(m, quantile(people.age, 0.9)) ]
privacy: m is 1-DP wrt people, adding or removing one record
"""
MEDIAN = """spec median
variables:
  input people in table(age in 0..20, sex in {F, M})
  output m
loss: worst[ rank_error(m, median(people.age, sex = F)) ]
privacy: m is 1-DP wrt people, adding or removing one record
"""


def said(report):
    return " ".join(claim.text for claim in report.claims)


def refused(plan, cases):
    assert judge(JsonNode(plan, "plan")).ok, said(judge(JsonNode(plan, "plan")))
    for path, value, words in cases:
        report = judge(JsonNode(mutate(plan, path, value), "plan"))
        assert not report.ok, path
        assert words in said(report), (path, said(report))


def test_forged_draws_are_refused():
    plan = solved_text(MEDIAN)
    base = Fraction(plan["mechanism"]["base"])
    block = ("problem", "blocks", 0)
    refused(
        plan,
        (
            (("mechanism", "base"), str(Fraction(base.numerator, base.denominator - 2**20)), "the plan states"),
            (("mechanism", "base"), str(base + Fraction(1, 3**50)), "more binary places than are drawn"),
            (("mechanism", "base"), "1/2", "chances that grow with every step"),
            (("mechanism", "family"), "noisy_max", "is not known"),
            (("mechanism", "target"), None, "has a key 'target' that is not known"),
            (("mechanism", "target", "share"), "1/3", "the plan states"),
            (("mechanism", "target", "offset"), 3, "the plan states"),
            (("mechanism", "handicap"), [1] * 20, "is of other answers"),
            (("mechanism", "handicap"), [0] * 20 + [5], "the plan states"),
            (("mechanism", "leaves_out"), False, "has a key 'leaves_out' that is not known"),
            (("guarantees", 0, "achieved", "epsilon"), "0.9", "the plan states 0.9"),
            (("guarantees", 0, "because"), ["weighted-votes"], "the plan states"),
            (("loss", "value"), 0.1, "is not what"),
            (("loss", "lower_bound"), plan["loss"]["value"], "plan.loss.relative_gap"),
            (("loss", "among"), "the mechanisms that this plan lists", "is not what the bound is about"),
            (("claims", "bound", "records"), "0", "no mechanism has a loss below 0 "),
            (("status",), "optimal", "within 0.5 of the bound"),
            ((*block, "records"), 100, "a number of records that nobody knows"),
            ((*block, "score", "share"), "3/2", "is no share"),
            ((*block, "score"), {"form": "counts"}, "not in order"),
            ((*block, "numbers"), [str(20 - i) for i in range(21)], "not in order"),
            ((*block, "by"), [{"column": "sex", "values": ["F"], "kept": [1]}], "values that the column does not have"),
            ((*block, "where", 0, "kept"), [0, 2], "keeps values that the column does not have"),
            ((*block, "cost", "form"), "regret", "is not known"),
            ((*block, "source"), "others", "does not read just the one input"),
            (("problem", "data", 0, "rule"), "map", "leaves records out"),
            (("problem", "trust", "kind"), "nobody", "under a trust that is not known here"),
            (("problem", "obligations", 0, "units", 0, "kind"), "person", "of whom no records are kept"),
            (("problem", "obligations", 0, "units", 0, "adding"), False, "leaves records out"),
        ),
    )


def test_forged_tables_are_refused():
    plan = listed(3, 4, "median(people.age)", 1)
    rows = plan["mechanism"]["table"]["rows"]
    at = ("mechanism", "table", "rows")
    pairs = plan["claims"]["bound"]["pairs"]
    refused(
        plan,
        (
            (at, [rows[0] + rows[1] // 2, rows[1] - rows[1] // 2, *rows[2:]], "the plan states"),
            (at, [rows[0] + 1, *rows[1:]], "do not add up to one"),
            (at, [rows[0] + rows[2], rows[1], 0, *rows[3:]], "one side of a line alone"),
            (("claims", "bound", "pairs"), [[*one[:3], 5.0] for one in pairs], "no mechanism has a loss below"),
            (("claims", "bound", "pairs", 0, 3), -1.0, "a multiplier below 0"),
            (("claims", "bound", "pairs", 0, 1), pairs[0][0], "no neighbours"),
            (("claims", "bound", "weights"), [0.0] * (len(rows) // 3), "are no weights"),
            (("problem", "blocks", 0, "records"), 5, "has laws of other tables or answers"),
            (("problem", "blocks", 0, "records"), None, "too many to list"),
            (("loss", "value"), 0.2, "is not what"),
        ),
    )


MEAN = MEDIAN.replace("worst[ rank_error(m, ", "E[ |m - ").replace(")) ]", ")| ]").replace("{F, M})", "{F, M})^100")
MEAN = MEAN.replace("loss:", "background:\n  people.age ~ uniform\n  people.sex ~ uniform\nloss:")


def test_a_mean_that_is_simulated_is_tested_and_what_bounds_it_is_proved():
    plan = solved_text(MEAN)
    group = plan["claims"]["bound"]["groups"][0]
    witness, low = ("claims", "bound", "groups", 0), plan["loss"]["lower_bound"]
    assert 0.2 * plan["loss"]["value"] < low < plan["loss"]["value"]
    (said,) = (claim for claim in judge(JsonNode(plan, "plan")).claims if claim.name == "loss")
    assert said.status == "tested" and "tested, not proved" in said.text
    assert said.text not in Plan.of(plan).explain("auditor")
    apart = 1 - (low * 1.01) / plan["loss"]["value"]
    raised = plan["loss"] | {"lower_bound": low * 1.01, "relative_gap": apart}
    refused(
        plan,
        (
            (("status",), "optimal", "tested, not proved"),
            (("loss", "lower_bound"), 0.1, "plan.loss.relative_gap"),
            (("loss",), raised, "plan.loss.relative_gap" if apart != float(apart) else "no mechanism has a mean loss"),
            (("loss", "among"), "the mechanisms that this plan lists", "plan.loss.among"),
            (("claims",), {}, "plan.loss.among"),
            (("claims",), {"bound": {"records": "2"}}, "plan.claims.bound"),
            (("loss", "profiles"), 0, "plan.loss.profiles"),
            ((*witness, "group"), 1, "plan.claims.bound.groups[0].group"),
            ((*witness, "thresholds"), group["thresholds"][:1] * 2, "for the second time"),
            ((*witness, "thresholds"), group["thresholds"][:1], "no mechanism has a mean loss below"),
            ((*witness, "thresholds", 0), 20, "plan.claims.bound.groups[0].thresholds[0]"),
            ((*witness, "records"), group["records"][::-1], "no numbers in order"),
            ((*witness, "records"), [group["records"][0], group["records"][0] + 3], "whole shares apart"),
            ((*witness, "records"), group["records"][:1], "no mechanism has a mean loss below"),
            (("claims", "bound", "groups"), [group, group], "for the second time"),
            (("claims", "bound", "cells"), 0, "plan.claims.bound.cells"),
            (("claims", "bound", "cells"), 2**22, "too many chances"),
        ),
    )


def chances_of(sought, place, j):
    """The sum over all n of the smaller chance of A - j and A + 1 + j records below, by the law's formula."""
    below = sought.groups[0] * sum(sought.chances[: place + 1])
    above, size, found = sought.groups[0] - below, sought.size, Fraction(0)

    def chance(a, b):
        rest = size - a - b
        many = Fraction(factorial(size), factorial(a) * factorial(b) * factorial(rest))
        return many * below**a * above**b * (1 - below - above) ** rest

    for n in range(1, size + 1):
        first = max(ceil(sought.share * n), 1) - 1
        left, right = first - j, first + 1 + j
        if left >= 0 and right <= n:
            costs = (1, 1) if sought.gaps is not None else (sought.share * n - left, right - sought.share * n)
            found += min(chance(left, n - left) * costs[0], chance(right, n - right) * costs[1])
    return found


@pytest.mark.parametrize("share", ["1/2", "9/10", "0", "1"])
@pytest.mark.parametrize("gaps", [(Fraction(1), Fraction(1)), None])
def test_chances_beside_thresholds_are_those_of_all_tables(share, gaps):
    """Where every number of records is listed the sums are exact; between numbers they are no more, and close."""
    chances = (Fraction(3, 10), Fraction(1, 4), Fraction(9, 20))
    sought = Sought(120, Fraction(share), (Fraction(3, 4),), chances, gaps, True)
    steps = sought.share.denominator
    for place in (0, 1):
        wanted = [chances_of(sought, place, j) for j in range(4)]
        for apart, close in ((1, 1 - 1e-9), (2, 0.85)):
            points = list(range(1 if apart == 1 else 1 + steps, sought.size + 1, steps * apart))
            witness = {"cells": 4, "groups": [{"group": 0, "thresholds": [place], "records": points}]}
            found = averaged(sought, Fraction(1), JsonNode(witness, "bound")).cells
            for j, cell in enumerate(found):
                assert Fraction(cell, 2**96) <= wanted[j]
                if apart == 1 or (j == 0 and share == "1/2"):
                    assert cell / 2**96 >= close * float(wanted[j]) - 1e-20


@pytest.mark.parametrize("epsilon", ["0.2", "1", "3"])
@pytest.mark.parametrize("loss", ["E[ |m - median(people.age)| ]", "E[ mismatch(m, median(people.age)) ]"])
def test_no_threshold_proves_more_than_the_best_table(loss, epsilon):
    """Of five records of three ages the best of all laws is known: thresholds are below it, and not far at once."""
    plan = solved_text(
        "variables:\n  input people in table(age in 0..2)^5\n  output m\nbackground: people.age ~ binomial(2, 0.4)\n"
        f"loss: {loss}\nprivacy: m is {epsilon}-DP wrt people, replacing one record\n"
    )
    assert plan["status"] == "optimal"
    block = read(Selected, JsonNode(plan["problem"]["blocks"][0], "block"))
    found = []
    for places in ([0], [1], [0, 1])[: 3 if "|" in loss else 2]:
        group = {"group": 0, "thresholds": places, "records": [5]}
        witness = read_witness(block, JsonNode({"cells": 5, "groups": [group]}, "bound"))
        lines = read_frame(JsonNode(plan["problem"], "problem")).obligations
        found.append(float(least(block, lines, None, witness)))
    assert 0.5 * plan["loss"]["value"] < max(found) <= plan["loss"]["value"]


def best_of_all(law, records, cost, epsilon):
    """The least mean cost over all laws of an answer at the tables of so many records and of one less, by a program."""
    tables = [one for one in every_table(len(law), records) if sum(one) >= records - 1]
    size, at = len(law), {one: i for i, one in enumerate(tables)}
    objective, rows = np.zeros((len(tables), size)), []
    for one in tables:
        if sum(one) == records:
            often = factorial(records) * prod(float(p) ** c / factorial(c) for p, c in zip(law, one, strict=True))
            objective[at[one]] = [often * cost(one, r) for r in range(size)]
        more = [tuple(c + (i == r) for i, c in enumerate(one)) for r in range(size)]
        for other, r in product((other for other in more if other in at), range(size)):
            for a, b in ((one, other), (other, one)):
                row = np.zeros((len(tables), size))
                row[at[a], r], row[at[b], r] = 1, -exp(epsilon)
                rows.append(row.ravel())
    sums = np.kron(np.eye(len(tables)), np.ones(size))
    found = linprog(objective.ravel(), np.array(rows), np.zeros(len(rows)), sums, np.ones(len(tables)))
    return found.fun


@pytest.mark.parametrize("epsilon", ["0.3", "1", "2"])
@pytest.mark.parametrize("size", [4, 5])
def test_records_that_come_and_go_prove_no_more_than_the_best_of_all(size, epsilon):
    """Of few records of three ages; the data between two that differ in one record say more than the two alone."""
    chances = (Fraction(3, 10), Fraction(1, 4), Fraction(9, 20))
    sought = Sought(size, Fraction(1, 2), (Fraction(1),), chances, (Fraction(1), Fraction(1)), True)
    witness = {"cells": 5, "groups": [{"group": 0, "thresholds": [0, 1], "records": [size]}]}
    proved = averaged(sought, Fraction(1), JsonNode(witness, "bound"))

    def off(table, answer):
        return abs(answer - next(r for r in range(3) if 2 * sum(table[: r + 1]) >= size))

    found, r = float(proved.at(Fraction(epsilon), 1, 2)), exp(float(epsilon))
    ends = sum(cell / 2**96 * r ** (-2 * j) for j, cell in enumerate(proved.cells)) * 2 / (1 + r * r)
    best = best_of_all(chances, size, off, float(epsilon))
    assert ends < found <= best * (1 + 1e-9)
    assert found > 0.5 * best


def test_zero_concentrated_privacy_of_the_exponential_mechanism():
    """Its spread allows it twice the epsilon that pure privacy would; permute-and-flip has no such lemma."""
    plan = solved_text(MEDIAN.replace("1-DP", "0.125-zCDP").replace(", sex = F", ""))
    assert plan["mechanism"]["family"] == "exponential"
    assert float(Fraction(plan["guarantees"][0]["achieved"]["epsilon"])) == pytest.approx(1.0, rel=0.05)
    refused(plan, ((("mechanism", "family"), "permute_and_flip", "the plan states"),))


def test_laws_of_tables_count_records_as_mechanisms_do():
    plan = listed(3, 4, "median(people.age)", 1)
    block = read(Selected, JsonNode(plan["problem"]["blocks"][0], "block"))
    assert isinstance(block.score, Ranks)
    assert len(tables_of(block)) == 15
    even = Listed(block, Grid((15, 3), Fraction(1, 3), (1,) * 45), drops=False)
    assert epsilon_of_unit(even, REPLACING) == 0
    with pytest.raises(Refused):
        tables_of(block_of(30, Fraction(1, 2), 40))
    assert float(epsilon_up(Fraction(round(exp(1) * 10**12), 10**12))) == pytest.approx(1)
