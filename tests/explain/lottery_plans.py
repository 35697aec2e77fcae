"""Plans that draw a winner by lot, made by hand from exact fractions; no compiler."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from .plans import Plan, _spec, finished, made_once

THREE = ["north", "east", "south"]

COMPULSORY = '''spec council_seat
"""Who gets the last seat of a council; everybody votes"""
parties: voter in 1..1000
variables:
  input vote[voter] in {north, east, south}
  intermediate winner
  output O
background: winner = random_dictator(vote)
loss: worst[ total_variation(O, winner) ]
privacy: O is 0.7-DP wrt vote, replacing one voter
options:
  trust curator
'''

OPTIONAL = '''spec landmark
"""Which landmark a cohort of drones heads for; whoever is near votes"""
parties: drone in 1..50
variables:
  input vote[drone] in {tower, bridge}
  intermediate winner
  output O
background: winner = random_dictator(vote)
loss: worst[ total_variation(O, winner) ]
privacy: O is 0.7-DP wrt vote, adding or removing one drone
options: trust curator
'''

BORDA = '''spec sushi
"""Which of four kinds of sushi is served"""
parties: voter in 1..40
variables:
  input vote[voter] in ranking of {tuna, shrimp, egg, squid}
  intermediate winner
  output O
background: winner = borda_lottery(vote)
loss: worst[ total_variation(O, winner) ]
privacy: O is 1-DP wrt vote, replacing one voter
options: trust curator
'''

PLURALITY = '''spec lunch
"""Where twenty people have lunch"""
parties: voter in 1..20
variables:
  input vote[voter] in {north, east, south}
  output O in {north, east, south}
background: vote ~ uniform
loss: E[ mean(mismatch(O, vote[voter]) for voter) ]
privacy: O is 0.5-DP wrt vote, replacing one voter
options: trust curator
'''

CHAIR = '''spec chair
"""Who takes the chair of a board of sixty: the one with most votes, or almost"""
parties: voter in 1..60
variables:
  input vote[voter] in {north, east, south}
  output O
loss: worst[ mismatch(O, plurality(vote)) ]
privacy: O is 1-DP wrt vote, replacing one voter
options: trust curator
'''

LOCAL = '''spec quick_poll
"""A poll in which nobody is trusted"""
parties: voter in 1..1000
variables:
  input vote[voter] in {north, east, south}
  intermediate winner
  output O
background: winner = random_dictator(vote)
loss: worst[ total_variation(O, winner) ]
privacy: O is 1-LDP wrt vote
options: trust nobody
'''


def _guarantee(text: str, measure: str, neighbours: str, epsilon: str, achieved: str, note: str) -> Plan:
    return {
        "text": text,
        "requirement": 0,
        "measure": measure,
        "outputs": ["O"],
        "wrt": "vote",
        "neighbours": neighbours,
        "observer": "anyone",
        "epsilon": epsilon,
        "achieved": {"epsilon": achieved},
        "because": [note],
    }


def _alternative(
    name: str, loss: float, epsilon: str, worst: float, kept: tuple[bool, bool, bool], reason: str
) -> Plan:
    names = ("treats_voters_alike", "ex_post_efficient", "strategy_proof")
    return {
        "name": name,
        "loss": loss,
        "admissible": True,
        "reason": reason,
        "figures": {
            "epsilon": epsilon,
            "worst_distortion": worst,
            "mean_distortion": worst / 2,
            "expected_welfare": 0.4,
            "properties": dict(zip(names, kept, strict=True)),
        },
    }


def kept(case: str, *, proof: bool = True) -> list[Plan]:
    """The three properties as plans list them."""
    lie = "two voters of three rank egg first; the third gains by ranking squid last"
    return [
        {
            "name": "treats_voters_alike",
            "holds": True,
            "note": "keeping",
            "because": "the law depends on the ballots through their sum",
            "counterexample": None,
        },
        {
            "name": "ex_post_efficient",
            "holds": False,
            "note": "keeping",
            "because": "every alternative wins with some probability",
            "counterexample": case,
        },
        {
            "name": "strategy_proof",
            "holds": proof,
            "note": "keeping",
            "because": "the law is a mixture of one law for each ballot"
            if proof
            else "weights are not affine in a ballot",
            "counterexample": None if proof else lie,
        },
    ]


REMARKS = ("properties", "figures", "paper", "compared")
"""What a plan says of its rule that nobody certified."""


def _plan(
    name: str, source: str, mechanism: dict[str, Any], guarantee: Plan, value: float, expression: str, **more: Any
) -> Plan:
    bound = more.pop("lower_bound", None)
    loss = {
        "value": value,
        "lower_bound": bound,
        "relative_gap": None if bound is None else (value - bound) / bound,
        "expression": expression,
        "units": "probability",
        "among": "every rule that meets the requirement",
        "kind": "worst",
        **more.pop("loss", {}),
    }
    guarantee["line"] = next(i for i, line in enumerate(source.splitlines(), 1) if guarantee["text"] in line)
    plan = {
        "format": "privspec-plan/2.0",
        "spec": _spec(name, source, {}),
        "status": "feasible",
        "loss": loss,
        "alternatives": [],
        "guarantees": [guarantee],
        "accuracy": [],
        "assumptions": [],
        "claims": {"kind": "lottery", "lower_bound": bound, "scope": "every rule that meets the requirement"},
        "mechanism": {key: value for key, value in mechanism.items() if key not in REMARKS},
        **more,
        "remarks": {
            **{key: mechanism[key] for key in REMARKS if key in mechanism},
            "binding": [],
            "solver": {"name": "closed form", "iterations": 0, "seconds": 0.01},
        },
    }
    return finished(plan)


def _mechanism(family: str, voters: int | None, names: list[str], **more: Any) -> dict[str, Any]:
    return {
        "family": family,
        "input": "vote",
        "party": "voter",
        "voters": voters,
        "ballots": "first choice",
        "alternatives": names,
        "output": "O",
        "points": "first choice",
        "rounds": None,
        "figures": {"worst_distortion": None, "mean_distortion": None, "expected_welfare": None},
        "paper": [],
        "properties": kept("one voter who likes north better than east: east wins with probability 1/4"),
        **more,
    }


def distortion(voters: int, names: int, dummies: Fraction) -> float:
    """The worst total variation distance of dummy votes from the lottery without: (m - 1) k / (T + m k)."""
    return float((names - 1) * dummies / (voters + names * dummies))


@made_once
def council_seat(voters: int = 1000, dummies: str = "1") -> Plan:
    """Torra's Method 3: one dummy vote for each of three candidates."""
    k = Fraction(dummies)
    worst = distortion(voters, 3, k)
    epsilon = f"{math.log(1 + 1 / k) + 1e-9:.9f}"
    mechanism = _mechanism("dictator", voters, THREE, dummy_votes=dummies)
    mechanism["figures"] = {"worst_distortion": worst, "mean_distortion": worst / 40, "expected_welfare": 0.34}
    mechanism["paper"] = [
        {
            "quantity": "epsilon of Lemma 2",
            "says": 0.6931,
            "holds": math.log(2),
            "text": "Lemma 2 holds; its figure 0.6931 is log 2 rounded down",
        }
    ]
    text = "O is 0.7-DP wrt vote, replacing one voter"
    guarantee = _guarantee(text, "epsilon-DP", "replacing one voter", "0.7", epsilon, "dummy-votes")
    others = [
        _alternative("randomised ballots", 0.44, "0.7", 0.44, (True, False, True), "farther from the votes"),
        _alternative("permute-and-flip", 0.61, "0.7", 0.61, (True, False, False), "follows the largest count"),
    ]
    return _plan(
        "council_seat",
        COMPULSORY,
        mechanism,
        guarantee,
        worst,
        "worst[ total_variation(O, winner) ]",
        alternatives=others,
        lower_bound=worst / 4,
    )


@made_once
def landmark(rounds: int = 0) -> Plan:
    """Torra's Method 2 with two alternatives; with `rounds`, a budget for several votes."""
    k = Fraction(round(1000 / math.expm1(0.7 / rounds)) + 1, 1000) if rounds else Fraction(1)
    epsilon = Fraction(math.log(1 + 1 / k) + 1e-9)
    mechanism = _mechanism("dictator", None, ["tower", "bridge"], dummy_votes=str(k), party="drone")
    mechanism["paper"] = [
        {
            "quantity": "epsilon of Lemma 1 at T = 10",
            "says": math.log(24 / 13),
            "holds": math.log(2),
            "text": "the number of voters is secret, so only the figure for every number is a guarantee",
        }
    ]
    text = "O is 0.7-DP wrt vote, adding or removing one drone"
    achieved = epsilon
    if rounds:
        each = f"{float(epsilon):.9f}"
        mechanism["rounds"] = {"count": rounds, "each": each, "fit": rounds}
        achieved = Fraction(each) * rounds
    guarantee = _guarantee(
        text, "epsilon-DP", "adding or removing one drone", "0.7", f"{float(achieved):.9f}", "dummy-votes"
    )
    return _plan("landmark", OPTIONAL, mechanism, guarantee, 0.5, "worst[ total_variation(O, winner) ]")


@made_once
def sushi() -> Plan:
    """Borda's lottery with dummy points."""
    mechanism = _mechanism(
        "dictator",
        40,
        ["tuna", "shrimp", "egg", "squid"],
        dummy_votes="1746/1000",
        ballots="ranking",
        points="borda",
        properties=kept("two voters who both like tuna better than squid: squid wins with probability 0.09"),
    )
    text = "O is 1-DP wrt vote, replacing one voter"
    guarantee = _guarantee(text, "epsilon-DP", "replacing one voter", "1", "1", "dummy-votes")
    return _plan("sushi", BORDA, mechanism, guarantee, 0.0071, "worst[ total_variation(O, winner) ]")


@made_once
def lunch(family: str = "permute_and_flip") -> Plan:
    """Plurality by permute-and-flip, or by the exponential mechanism, at epsilon 0.5."""
    base = Fraction(int(math.exp(0.25) * 10**6), 10**6)
    mechanism = _mechanism(family, 20, THREE, base=str(base), properties=kept("one voter", proof=False))
    mechanism["figures"] = {"worst_distortion": 0.6, "mean_distortion": 0.45, "expected_welfare": 0.3974}
    text = "O is 0.5-DP wrt vote, replacing one voter"
    guarantee = _guarantee(text, "epsilon-DP", "replacing one voter", "0.5", "0.5", "weighted-votes")
    others = [
        _alternative("exponential mechanism", 0.616, "0.5", 0.65, (True, False, False), ""),
        _alternative("dummy votes", 0.6396, "0.5", 0.12, (True, False, True), ""),
    ]
    return _plan(
        "lunch",
        PLURALITY,
        mechanism,
        guarantee,
        0.6026,
        "E[ mean(mismatch(O, vote[voter]) for voter) ]",
        alternatives=others,
        loss={"kind": "expected", "standard_error": 0.0012, "profiles": 10000, "units": "share of voters"},
    )


@made_once
def chair() -> Plan:
    """Randomised response of the winner, which no rule can better in the worst case."""
    ratio = Fraction(int(math.e * 10**9), 10**9)
    case = "one voter who likes north better than east: east wins with probability about 0.2119"
    properties = kept(case, proof=False)
    mechanism = _mechanism(
        "randomised_winner", 60, THREE, ratio=str(ratio), compared="plurality", properties=properties
    )
    worst = float(2 / (ratio + 2))
    mechanism["figures"] = {"worst_distortion": worst, "mean_distortion": None, "expected_welfare": None}
    text = "O is 1-DP wrt vote, replacing one voter"
    guarantee = _guarantee(text, "epsilon-DP", "replacing one voter", "1", "1", "randomised-winner")
    lower = 2 / (math.e + 2) - 1e-12
    proof = {"kind": "lottery", "lower_bound": lower, "votes": 1, "profile": [20, 20, 20]}
    return _plan(
        "chair",
        CHAIR,
        mechanism,
        guarantee,
        worst,
        "worst[ mismatch(O, plurality(vote)) ]",
        status="optimal",
        lower_bound=lower,
        claims=proof | {"scope": "every rule that meets the requirement"},
        alternatives=[_alternative("permute-and-flip", 0.6667, "1", 0.6667, (True, False, False), "")],
    )


@made_once
def quick_poll() -> Plan:
    """Randomised ballots, one of which is drawn."""
    ratio = Fraction(int(math.e * 10**6), 10**6)
    mechanism = _mechanism("local_dictator", 1000, THREE, ratio=str(ratio))
    guarantee = _guarantee("O is 1-LDP wrt vote", "epsilon-LDP", "replacing one voter", "1", "1", "local-votes")
    return _plan("quick_poll", LOCAL, mechanism, guarantee, 0.4239, "worst[ total_variation(O, winner) ]")


def nine_rounds() -> Plan:
    """A budget for nine votes of the drones."""
    plan = landmark(9)
    plan["spec"]["name"] = "landmark_rounds"
    return plan
