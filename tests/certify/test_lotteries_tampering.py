"""A plan that draws a winner does not verify once a number, a word or a flag of it is changed."""

import re
from fractions import Fraction
from functools import cache

import pytest

from privspec.certify.checker import verify
from tests.certify import lottery_plans as made
from tests.certify.lottery_plans import leaves, put, signed, without

PLANS = {
    "dummy votes, replacing": made.dictator,
    "dummy votes, adding": lambda: made.dictator(privacy=made.ADDING),
    "permute-and-flip": made.permute_and_flip,
    "exponential": made.exponential,
    "reports": made.reports,
    "winner": made.winner,
    "winner, adding": lambda: made.winner(privacy=made.ADDING),
    "borda": lambda: made.borda(12),
    "chosen epsilon": made.chosen,
}
plan = cache(lambda name: PLANS[name]())

FREE = (
    "format",  # any minor version
    "digest",  # made anew for every change
    "remarks",  # how it was found
    "spec/path",
    "loss/units",
    "loss/among",
    "assumptions",  # words; what they point to is checked to exist
    "guarantees/#/because",
    "alternatives/#/name",
    "alternatives/#/reason",
    "mechanism/properties/#/note",
    "mechanism/properties/#/because",
    "mechanism/properties/#/counterexample",
    "mechanism/paper/#/text",
    "mechanism/paper/#/quantity",  # another quantity is said to be unchecked
    "claims/scope",  # where there is no bound
    "accuracy/#/bound",  # may be left out
)
"""Places that carry words, or no claim: each is free text, or checked only to be there."""
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?(/\d+)?")


def place(path):
    return "/".join("#" if isinstance(key, int) else str(key) for key in path)


def free(path):
    return any(place(path) == item or place(path).startswith(f"{item}/") for item in FREE)


def others(value, path):
    """Values a little different: numbers up and down, another word, the other flag, something for nothing."""
    if isinstance(value, bool):
        return [not value]
    if value is None:
        return []
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, float):
        return [value * 1.001, value * 0.999] if abs(value) > 1e-9 else [0.01, -0.01]
    if isinstance(value, str) and NUMBER.fullmatch(value):
        number = Fraction(value)
        return [str(number * Fraction(1001, 1000) or Fraction(1, 100)), str(number * Fraction(999, 1000) or -1)]
    return [f"{value}x"] if isinstance(value, str) else []


@pytest.mark.parametrize("name", PLANS)
def test_plans_made_by_hand_are_verified(name):
    report = verify(plan(name))
    assert report.ok, str(report)
    assert {"coverage", "privacy", "achieved", "enumeration", "loss", "properties"} <= {
        claim.name for claim in report.claims if claim.status == "ok"
    }


@pytest.mark.parametrize("name", PLANS)
def test_every_leaf_counts(name):
    honest, tried = plan(name), 0
    for path, value in leaves(honest):
        if free(path):
            continue
        for other in others(value, path):
            report = verify(put(honest, path, other))
            assert not report.ok, f"{place(path)}: {value!r} -> {other!r}\n{report}"
            tried += 1
    assert tried > 30


OPTIONAL = (
    "spec/parameters",
    "spec/constants",
    "mechanism/figures",
    "mechanism/compared",
    "mechanism/rounds",
    "mechanism/scalars",
    "mechanism/paper",
    "mechanism/voters",
    "alternatives/#",
    "accuracy",
    "assumptions/#",
    "claims",
    "loss/lower_bound",
    "loss/relative_gap",
)
"""What may be left out without saying anything untrue (in some of the plans)."""


@pytest.mark.parametrize("name", PLANS)
def test_missing_entries_and_junk_never_end_in_a_traceback(name):
    honest = plan(name)
    junk = (None, True, -1, 10**40, "", "x", "1/0", "nan", "2^9999", [], [[]], {}, {"a": 1})
    for i, (path, value) in enumerate(leaves(honest)):
        if path[0] in ("spec", "remarks", "digest"):
            continue
        report = verify(without(honest, path))
        if not free(path) and not any(place(path).startswith(item) for item in OPTIONAL):
            assert not report.ok, f"without {place(path)}"
        for odd in (junk[i % len(junk)], junk[(5 * i + 3) % len(junk)]):
            report = verify(put(honest, path, odd))
            exempt = free(path) or any(place(path).startswith(item) for item in OPTIONAL)
            if not exempt and odd != value and (odd or value):
                assert not report.ok, f"{place(path)} := {odd!r}"


def failed(document):
    report = verify(document)
    assert not report.ok
    return " | ".join(f"{claim.name}: {claim.text}" for claim in report.failed)


TINY = Fraction(1, 2**60)


@pytest.mark.parametrize(
    ("name", "key", "step"),
    [
        ("dummy votes, replacing", "dummy_votes", -TINY),
        ("dummy votes, adding", "dummy_votes", -TINY),
        ("borda", "dummy_votes", -TINY),
        ("permute-and-flip", "base", TINY),
        ("reports", "ratio", TINY),
        ("winner", "ratio", TINY),
        ("winner, adding", "ratio", TINY),
    ],
)
def test_two_to_the_minus_sixty_less_privacy_fails(name, key, step):
    honest = plan(name)
    less = put(honest, ("mechanism", key), str(Fraction(honest["mechanism"][key]) + step))
    assert "privacy" in failed(less)
    more = put(honest, ("mechanism", key), str(Fraction(honest["mechanism"][key]) - step))
    assert verify(more).ok


def test_no_dummy_votes_have_no_epsilon():
    assert "privacy" in failed(put(plan("dummy votes, adding"), ("mechanism", "dummy_votes"), "0"))


def test_the_rule_of_another_number_of_voters_fails():
    honest = plan("exponential")
    fewer = honest["spec"]["source"].replace("T = 4", "T = 40")
    assert "privacy" in failed(_with_source(honest, fewer))


def _with_source(document, source):
    import hashlib

    spec = document["spec"] | {"source": source, "sha256": hashlib.sha256(source.encode()).hexdigest()}
    return signed(document | {"spec": spec})


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("dummy votes, replacing", "replacing one voter", "replacing up to 2 voters"),
        ("dummy votes, replacing", "north, east, south", "north, east, south, west"),
        ("dummy votes, replacing", "north, east, south", "east, north, south"),
        ("dummy votes, replacing", "T = 100", "T = 99"),
        ("dummy votes, replacing", "random_dictator", "plurality"),
        ("dummy votes, replacing", "worst[", "2 * worst["),
        ("dummy votes, replacing", "epsilon = 1/2", "epsilon = 1/3"),
        ("reports", "trust nobody", "trust curator\n    noise family dictator"),
        ("dummy votes, replacing", "replacing one voter", "replacing one voter\noptions:\n    trust nobody"),
        ("borda", "ranking of A", "partial_ranking(A)"),
    ],
)
def test_another_spec_inside_fails(name, old, new):
    source = plan(name)["spec"]["source"]
    assert old in source
    failed(_with_source(plan(name), source.replace(old, new)))


def test_rounds_that_the_spec_does_not_have_fail():
    rounds = {"count": 10, "each": {"epsilon": "1/20"}, "fit": 10, "participation": 10}
    assert "several rounds" in failed(put(plan("reports"), ("mechanism", "rounds"), rounds))


# --- bounds --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("votes", [0, 1, 3, 50, 101])
def test_other_numbers_of_votes_prove_other_bounds(votes):
    assert "optimality" in failed(put(plan("dummy votes, replacing"), ("claims", "votes"), votes))


def test_a_bound_for_losses_without_one_fails():
    honest = plan("borda")
    for path, value in ((("loss", "lower_bound"), 0.001), (("claims", "lower_bound"), 0.001)):
        assert "a bound is claimed without its proof" in failed(put(honest, path, value))
    both = put(put(honest, ("loss", "lower_bound"), 0.001), ("claims", "lower_bound"), 0.001)
    both = put(put(both, ("claims", "votes"), 1), ("loss", "relative_gap"), 0.5)
    assert "a bound is claimed for a loss that it is not known for" in failed(both)
    assert "a bound is claimed without its proof" in failed(put(honest, ("status",), "optimal"))


def test_with_voters_who_come_and_go_a_vote_moves_in_two_steps():
    honest, strict = plan("dummy votes, adding"), plan("dummy votes, replacing")
    claimed = honest | {"claims": strict["claims"]}
    claimed["loss"] = honest["loss"] | {"lower_bound": strict["loss"]["lower_bound"]}
    assert "optimality" in failed(signed(claimed))


@pytest.mark.parametrize(
    "profile",
    [
        [17, 17, 16],  # nothing leads to the last one: the second takes every vote from the first to a tie, and wins it
        [50, 0, 0],
        [16, 17, 18],
        [17, 33],
        [16, 17, 17, 0],
        [-1, 26, 25],
        [],
    ],
)
def test_other_profiles_lead_to_fewer_winners(profile):
    assert plan("winner")["claims"]["profile"] == [16, 17, 17]
    report = verify(put(plan("winner"), ("claims", "profile"), profile))
    assert not report.ok and [claim.name for claim in report.failed] == ["optimality"]


def test_a_near_tie_says_nothing_of_random_dictatorship():
    honest, strict = plan("dummy votes, replacing"), plan("winner")
    proof = strict["claims"] | {"profile": [33, 33, 34], "lower_bound": honest["loss"]["lower_bound"]}
    assert "a bound is claimed for a loss that it is not known for" in failed(signed(honest | {"claims": proof}))
    walked = {key: value for key, value in strict["claims"].items() if key != "profile"}
    assert "a bound is claimed for a loss that it is not known for" in failed(signed(strict | {"claims": walked}))


def test_voters_who_come_and_go_leave_a_gap():
    assert plan("winner")["status"] == "optimal" and plan("winner, adding")["status"] == "feasible"
    bolder = plan("winner, adding") | {"claims": plan("winner")["claims"], "status": "optimal"}
    bolder["loss"] = plan("winner")["loss"]
    assert "optimality" in failed(signed(bolder))


# --- alternatives --------------------------------------------------------------------------------------


def test_alternatives_are_what_their_rules_are():
    honest = plan("dummy votes, replacing")
    assert "1 of them derived again" in str(verify(honest))
    better = honest["alternatives"][0] | {"loss": 0.0001, "admissible": True}
    assert "alternatives" in failed(signed(honest | {"alternatives": [better]}))
    unnamed = {key: value for key, value in better.items() if key != "rule"}
    assert "said to be possible and better" in failed(signed(honest | {"alternatives": [unnamed]}))


def test_reports_need_nobody_s_trust_and_dummy_votes_do():
    honest = plan("reports")
    k = made.dummies(made.HALF)
    value = made.up(2 * k / (100 + 3 * k))
    worse = made.other("dummy votes", {"family": "dictator", "dummy_votes": str(k)}, value, False, "1/2", made.LINEAR)
    worse["figures"]["epsilon"] = "0.5"
    assert verify(signed(honest | {"alternatives": [worse]})).ok
    assert "forbids it" in failed(signed(honest | {"alternatives": [worse | {"admissible": True}]}))
