"""Bounds for strategy-proof rules: beside linear programs over all rules, and in plans with something changed."""

from fractions import Fraction
from itertools import product
from math import expm1, nextafter

import numpy as np
import pytest
from scipy.optimize import linprog

from privspec.certify.checker import verify
from privspec.certify.lotteries.truthful import SCOPE
from tests.certify import lottery_plans as made
from tests.certify.lottery_plans import put, signed
from tests.certify.test_lotteries import compiled
from tests.certify.test_lotteries_tampering import free, others

HALF = Fraction(1, 2)
TRUTHFUL = "manipulation(O, vote) <= 0"


# --- all rules, whoever votes what ---------------------------------------------------------------------


class Program:
    """The best rule by a linear program: a law for every list of votes, so that voters need not be alike."""

    def __init__(self, voters, size, epsilon):
        self.voters, self.size = voters, size
        self.lists = list(product(range(size), repeat=voters))
        self.first = {votes: size * i for i, votes in enumerate(self.lists)}
        self.rules = size * len(self.lists)
        self.rows, self.limits = [], []
        for votes in self.lists:
            for i, lie in product(range(voters), range(size)):
                if lie != votes[i]:
                    lied = (*votes[:i], lie, *votes[i + 1 :])
                    self.moved(votes, lied, votes[i], float(np.exp(epsilon)))

    def moved(self, votes, lied, true, factor):
        """No alternative but the one that is left gets less likely, and none by more than the factor."""
        for c in range(self.size):
            here, there = self.first[votes] + c, self.first[lied] + c
            self.at_most({there: 1, here: -factor})
            if c != true:
                self.at_most({here: 1, there: -1})

    def at_most(self, row, limit=0.0):
        self.rows.append(row)
        self.limits.append(limit)

    def solve(self, worst):
        """The least distance from random dictatorship: at worst, or on average over all lists."""
        count = len(self.lists)
        variables = 2 * self.rules + 1
        for votes in self.lists:
            for c in range(self.size):
                share = votes.count(c) / self.voters
                mine = self.first[votes] + c
                self.at_most({mine: 1, self.rules + mine: -1}, share)  # what the law has more than the shares
            parts = {self.rules + self.first[votes] + c: 1.0 for c in range(self.size)}
            self.at_most(parts | {variables - 1: -1.0})
        a = np.zeros((len(self.rows), variables))
        for i, row in enumerate(self.rows):
            for key, value in row.items():
                a[i, key] = value
        total = np.zeros((count, variables))
        for i, votes in enumerate(self.lists):
            total[i, self.first[votes] : self.first[votes] + self.size] = 1
        goal = np.zeros(variables)
        if worst:
            goal[-1] = 1
        else:
            goal[self.rules : 2 * self.rules] = 1 / count
        found = linprog(goal, A_ub=a, b_ub=self.limits, A_eq=total, b_eq=np.ones(count), bounds=(0, None))
        assert found.status == 0
        return found.fun


@pytest.mark.parametrize(("size", "voters"), [(3, 1), (3, 2), (3, 3), (4, 1), (4, 2)])
@pytest.mark.parametrize("epsilon", [0.25, 1.0])
def test_rules_that_prefer_some_voters_are_no_better(size, voters, epsilon):
    k = 1 / expm1(epsilon)
    w = size * k / (voters + size * k)
    assert Program(voters, size, epsilon).solve(True) == pytest.approx((size - 1) / size * w, abs=1e-8)
    spread = np.mean(
        [
            sum(max(votes.count(c) / voters - 1 / size, 0) for c in range(size))
            for votes in product(range(size), repeat=voters)
        ]
    )
    assert Program(voters, size, epsilon).solve(False) == pytest.approx(w * spread, abs=1e-8)


def test_with_two_alternatives_there_are_better_ones():
    k = 1 / expm1(0.5)
    assert Program(5, 2, 0.5).solve(True) < 0.95 * k / (5 + 2 * k)


# --- plans -----------------------------------------------------------------------------------------------


def truthful(voters=100, **about):
    """Dummy votes as the best strategy-proof rule, without the compiler."""
    k = made.dummies(HALF)
    worst = 2 * k / (voters + 3 * k)
    exact = 1 / (made.e_to(HALF) - 1)
    lower = nextafter(float(2 * exact / (voters + 3 * exact)), 0.0)
    source = made.spec(voters, accuracy=TRUTHFUL)
    line = next(i for i, each in enumerate(source.split("\n"), 1) if each.startswith("accuracy"))
    mechanism = {
        "family": "dictator",
        "dummy_votes": str(k),
        "compared": "random_dictator",
        "figures": {"worst_distortion": made.up(worst), "mean_distortion": None, "expected_welfare": None},
    }
    loss = {"value": made.up(worst), "lower_bound": lower, "relative_gap": (made.up(worst) - lower) / made.up(worst)}
    stated = {"line": line, "text": TRUTHFUL, "value": 0.0, "bound": 0.0}
    proof = {"kind": "lottery", "lower_bound": lower, "votes": None, "scope": SCOPE}
    plan = made.plan(source, mechanism, loss, made.LINEAR, voters=voters, accuracy=[stated], claims=proof)
    return signed(plan | {"status": "optimal"} | about)


def failed(document):
    report = verify(document)
    assert not report.ok
    return " | ".join(f"{claim.name}: {claim.text}" for claim in report.failed)


def changed(document, old, new):
    import hashlib

    source = document["spec"]["source"]
    assert old in source
    source = source.replace(old, new)
    spec = document["spec"] | {"source": source, "sha256": hashlib.sha256(source.encode()).hexdigest()}
    return signed(document | {"spec": spec})


def test_a_plan_made_by_hand_is_verified():
    report = verify(truthful())
    assert report.ok, str(report)
    assert "no strategy-proof rule is below" in str(report)


def test_every_leaf_counts():
    honest, tried = truthful(), 0
    for path, value in made.leaves(honest):
        if not free(path) or path == ("claims", "scope"):
            for other in others(value, path):
                assert not verify(put(honest, path, other)).ok, f"{path}: {value!r} -> {other!r}"
                tried += 1
    assert tried > 30


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("claims", "scope"), "every rule that meets the requirement"),
        (("claims", "scope"), "every rule"),
        (("claims", "votes"), 3),
        (("claims", "lower_bound"), 0.001),
        (("claims", "kind"), "table"),
        (("claims", "profile"), [34, 33, 33]),
        (("loss", "lower_bound"), 0.031),
        (("loss", "lower_bound"), 0.02),
        (("loss", "relative_gap"), 0.01),
        (("status",), "feasible"),
        (("accuracy", 0, "value"), 0.1),
        (("accuracy", 0, "bound"), 0.1),
        (("accuracy", 0, "text"), "manipulation(O, vote) <= 0.1"),
        (("accuracy", 0, "line"), 3),
    ],
)
def test_a_changed_claim_fails(path, value):
    failed(put(truthful(), path, value))


@pytest.mark.parametrize("bound", [0.031, 0.0301, 0.02])
def test_another_bound_fails(bound):
    honest = put(put(truthful(), ("loss", "lower_bound"), bound), ("claims", "lower_bound"), bound)
    gap = max(0.0, (honest["loss"]["value"] - bound) / honest["loss"]["value"])
    assert "optimality" in failed(put(honest, ("loss", "relative_gap"), gap))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (TRUTHFUL, "manipulation(O, vote) <= 0.01"),
        (TRUTHFUL, f"{made.WORST} <= 1"),
        ("manipulation(O, vote) <= 0", "manipulation(O, vote) <= 1e-9"),
        (made.REPLACING, made.ADDING),
        ("epsilon-DP", "(epsilon, 1e-9)-DP"),
        ("epsilon = 1/2", "epsilon = 1"),
        ("T = 100", "T = 99"),
        (", south}", "}"),
        ("random_dictator(vote)", "plurality(vote)"),
    ],
)
def test_another_spec_fails(old, new):
    failed(changed(truthful(), old, new))


@pytest.mark.parametrize(
    ("loss", "background"),
    [
        ("worst[ total_variation(O, plurality(vote)) ]", False),
        (f"{made.WORST} - E[ total_variation(O, random_dictator(vote)) ]", True),
        ("E[ total_variation(O, plurality(vote)) ]", True),
    ],
)
def test_losses_that_need_not_grow_have_no_such_bound(loss, background):
    honest = compiled(made.spec(20, loss=loss, uniform=background, accuracy=TRUTHFUL, options="noise family dictator"))
    assert verify(honest).ok
    value = honest["loss"]["value"]
    claimed = put(put(honest, ("loss", "lower_bound"), value), ("claims", "lower_bound"), value)
    claimed = put(put(claimed, ("claims", "scope"), SCOPE), ("claims", "votes"), None)
    claimed["claims"].pop("profile", None)
    claimed = put(put(claimed, ("loss", "relative_gap"), 0.0), ("status",), "optimal")
    assert "a bound is claimed for a loss that it is not known for" in failed(claimed)


def test_a_least_epsilon_of_strategy_proof_rules_is_derived_again():
    honest = compiled(made.spec(100, loss="epsilon", choose=True, accuracy=f"{TRUTHFUL}\n    {made.WORST} <= 1/50"))
    assert honest["status"] == "optimal" and verify(honest).ok
    without = changed(honest, f"accuracy: {TRUTHFUL}\n", "accuracy:\n")
    assert "a bound is claimed for a loss that it is not known for" in failed(without)
    failed(changed(honest, "1/50", "1/40"))
    bound = honest["loss"]["lower_bound"]
    for other in (bound * (1 + 1e-6), bound * (1 - 1e-6)):
        failed(put(put(honest, ("loss", "lower_bound"), other), ("claims", "lower_bound"), other))


@pytest.mark.parametrize("family", ["exponential", "permute_and_flip", "randomised_winner"])
def test_a_rule_under_which_lies_pay_does_not_meet_the_line(family):
    loss = "worst[ total_variation(O, plurality(vote)) ]"
    free = compiled(made.spec(6, loss=loss, options=f"noise family {family}"))
    assert verify(free).ok
    asked = changed(free, "privacy:", f"accuracy: {TRUTHFUL}\nprivacy:")
    asked["guarantees"][0]["line"] += 1
    assert "accuracy" in failed(signed(asked))
    generous = changed(free, "privacy:", "accuracy: manipulation(O, vote) <= 0.9\nprivacy:")
    generous["guarantees"][0]["line"] += 1
    assert "nobody knows what a lie brings" in failed(signed(generous))


# --- alternatives and what was considered ----------------------------------------------------------------


def test_an_alternative_under_which_lies_pay_is_not_possible():
    honest = compiled(made.spec(20, accuracy=TRUTHFUL))
    assert verify(honest).ok
    for i, item in enumerate(honest["alternatives"]):
        if not item["admissible"] and item["name"] in ("exponential mechanism", "permute-and-flip"):
            claim = put(honest, ("alternatives", i, "admissible"), True)
            assert "said to be possible, and lies may pay" in failed(claim)
        assert not verify(put(honest, ("alternatives", i, "loss"), None)).ok


def test_rules_that_were_considered_keep_what_they_keep():
    honest = compiled(made.spec(1000, loss="epsilon", choose=True, accuracy=f"{made.WORST} <= 1/1000"))
    assert verify(honest).ok
    names = [item["name"] for item in honest["remarks"]["considered"]]
    assert "permute-and-flip" in names
    for i, item in enumerate(honest["remarks"]["considered"]):
        assert not verify(put(honest, ("remarks", "considered", i, "reason"), "")).ok
        for name, holds in item["properties"].items():
            assert not verify(put(honest, ("remarks", "considered", i, "properties", name), not holds)).ok
        assert not verify(put(honest, ("remarks", "considered", i, "rule"), {"family": "other"})).ok
        if item["rule"] is not None:
            assert not verify(put(honest, ("remarks", "considered", i, "rule"), None)).ok
