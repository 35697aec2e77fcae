"""Specs of votes for tests."""

from __future__ import annotations

from typing import Any

from privspec.core.spans import Source
from privspec.families.family import Settings, compiler_of
from privspec.families.voting.family import Voting, chosen_rule
from privspec.families.voting.plans import Judged
from privspec.families.voting.profiles import Averages
from privspec.families.voting.rules import VotingSystem
from privspec.model.graph import Model
from privspec.pipeline import Request, check

WORST = "worst[ total_variation(O, random_dictator(vote)) ]"
VOTES_MISSED = "mean(mismatch(O, vote[voter]) for voter)"


def vote(
    loss: str = WORST,
    *,
    voters: int = 1000,
    ballots: str = "{north, east, south}",
    privacy: str = "O is 0.5-DP wrt vote, adding or removing one voter",
    extra: str = "",
    background: str = "",
    choose: str = "",
    output: str = "",
) -> str:
    """The text of a spec; `extra` are whole sections."""
    lines = [
        "spec v",
        "parties:",
        f"  voter in 1..{voters}",
        "variables:",
        f"  input vote[voter] in {ballots}",
        f"  {output or ('output O' if VOTES_MISSED not in loss else f'output O in {ballots}')}",
        *([f"  {choose}"] if choose else []),
        *(["background:", f"  {background}"] if background else []),
        "loss:",
        f"  {loss}",
        "privacy:",
        f"  {privacy}",
        extra,
    ]
    return "\n".join(lines) + "\n"


def model_of(text: str) -> Model:
    return check(Request(Source("v.priv", text)))


def system_of(text: str) -> VotingSystem:
    return Voting().lower(model_of(text))


def averages_of(text: str) -> Averages:
    return Averages(system_of(text))


def decided(text: str) -> Any:
    model = model_of(text)
    assert isinstance(compiler_of(model), Voting)
    return chosen_rule(model, Voting().lower(model), Settings())


def rule(decision: Any, family: str) -> Judged:
    return next(one for one in decision.ranking if one.rule.family == family)
