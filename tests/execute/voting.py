"""Hand-made plans of lotteries, and their exact laws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privspec.kernel.writing import plan_digest

ABC = ("north", "south", "west")
PARAMETERS: dict[str, dict[str, str]] = {
    "dictator": {"dummy_votes": "3/2"},
    "exponential": {"base": "3/2"},
    "permute_and_flip": {"base": "3/2"},
    "local_dictator": {"ratio": "5/2"},
    "randomised_winner": {"ratio": "7/3"},
}


def make_lottery_plan(
    family: str = "dictator",
    *,
    alternatives: Sequence[str] = ABC,
    voters: int | None = None,
    ballots: str = "first choice",
    places: int | None = None,
    points: str = "first choice",
    output: str = "O",
    rounds: tuple[int, str, str] | None = None,
    **parameters: Any,
) -> dict[str, Any]:
    """A plan with the keys that execution and ledger read; rounds: how many, the budget, and the part of each."""
    neighbours = "adding or removing one voter" if voters is None else "replacing one voter"
    places = 1 if ballots == "first choice" else places or len(alternatives)
    count, budget, each = rounds or (1, "1", "1")
    shared = {"count": count, "budget": budget, "each": each, "fit": count}
    plan: dict[str, Any] = {
        "format": "privspec-plan/3.0",
        "spec": {"name": "vote"},
        "problem": _problem(
            {
                "form": "votes",
                "source": "vote",
                "party": "voter",
                "output": output,
                "voters": voters or 0,
                "secret": voters is None,
                "ballots": {"kind": ballots, "alternatives": list(alternatives), "places": places, "counted": points},
                "law": None,
                "loss": {"form": "measured", "terms": [], "offset": "0"},
                "expression": "0",
                "limits": [],
                "rounds": rounds and {"name": "rounds", "budget": budget, "count": count},
                "families": [],
            },
            neighbours,
        ),
        "status": "feasible",
        "mechanism": {
            "family": family,
            **(parameters or PARAMETERS[family]),
            **({"rounds": shared} if rounds else {}),
            "scalars": {},
        },
        "guarantees": [
            {
                "outputs": [output],
                "wrt": ["vote"],
                "neighbours": neighbours,
                "observer": "anyone",
                "measure": "epsilon-DP",
                "epsilon": "1",
                "achieved": {"epsilon": "0.9"},
                "requirement": 0,
            }
        ],
    }
    return plan | {"digest": plan_digest(plan)}


def _problem(block: dict[str, Any], neighbours: str) -> dict[str, Any]:
    adding = block["secret"]
    unit = {"kind": "party", "inputs": ["vote"], "adding": adding, "count": 1, "party": "voter"}
    line = {
        "outputs": [block["output"]],
        "seen": [block["output"]],
        "wrt": ["vote"],
        "neighbours": neighbours,
        "units": [{**unit, "apart": None, "exactly": False}],
        "observers": ["anyone"],
        "measure": {"name": "epsilon-DP", "amounts": [["epsilon", "1"]], "distance": None, "each": []},
        "line": 1,
        "text": "",
    }
    rule = "drop" if adding else "map"
    return {
        "format": "privspec-problem/1.0",
        "elaborator": "1",
        "name": "vote",
        "trust": {"kind": "curator", "colluding": 0},
        "data": [{"name": "vote", "domain": "ballots", "rule": rule, "party": "voter", "line": 1}],
        "public": [],
        "obligations": [line],
        "views": [],
        "blocks": [block],
    }
