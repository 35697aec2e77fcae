"""Hand-made plans of lotteries, and their exact laws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privspec.execute.run import plan_digest

ABC = ("north", "south", "west")
PARAMETERS: dict[str, dict[str, str]] = {
    "none": {},
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
    points: str = "first choice",
    output: str = "O",
    **parameters: Any,
) -> dict[str, Any]:
    """A plan with the keys that execution and ledger read."""
    neighbours = "adding or removing one voter" if voters is None else "replacing one voter"
    plan: dict[str, Any] = {
        "format": "privspec-plan/2.0",
        "spec": {"name": "vote"},
        "status": "feasible",
        "mechanism": {
            "family": family,
            "input": "vote",
            "party": "voter",
            "voters": voters,
            "ballots": ballots,
            "alternatives": list(alternatives),
            "output": output,
            "points": points,
            **(parameters or PARAMETERS[family]),
            "rounds": None,
            "properties": [],
            "paper": [],
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
