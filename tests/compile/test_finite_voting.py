"""Votes: tables that see how often each alternative is named, losses about winners that are drawn, and their proofs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from privspec.certify.finite.order import order_matters as reads_order
from privspec.core.spans import Source
from privspec.model.build import load_model
from privspec.model.looks import expressions, order_matters

from .tables import compiled

NAMES = ("north", "east", "south", "west")
SATISFIED = "E[ mean(mismatch(O, vote[voter]) for voter) ]"


def election(voters: int, alternatives: int, epsilon: str, loss: str, background: str = "", **more: str) -> str:
    """A vote by first choices; `more`: output (its domain), variables, accuracy, ballot (its domain)."""
    places = "{" + ", ".join(NAMES[:alternatives]) + "}"
    output = more.get("output", f" in {places}")
    return "\n".join(
        [
            "spec election",
            f"parties: voter in 1..{voters}",
            "variables:",
            f"  input vote[voter] in {more.get('ballot', places)}",
            *(f"  {line}" for line in more.get("variables", "").split("; ") if line),
            f"  output O{output}",
            *(["background:", *(f"  {line}" for line in background.split("; "))] if background else []),
            *([f"accuracy: {more['accuracy']}"] if "accuracy" in more else []),
            f"loss: {loss}",
            f"privacy: O is {epsilon}-DP wrt vote, replacing one voter",
        ]
    )


# --- what each voter thinks of the winner ---------------------------------------------------------


@pytest.mark.parametrize(
    ("voters", "alternatives", "epsilon", "welfare"),
    [(3, 2, "1", 0.6580), (10, 3, "1", 0.4520), (20, 3, "0.5", 0.4022), (8, 4, "1", 0.3772)],
)
def test_welfare_with_votes_at_random(voters: int, alternatives: int, epsilon: str, welfare: float) -> None:
    found = compiled(election(voters, alternatives, epsilon, SATISFIED, "vote ~ uniform"))
    assert 1 - found.loss == pytest.approx(welfare, abs=5.1e-5)
    assert found.mechanism["counted"] == ["vote"]


@pytest.mark.parametrize(
    ("term", "matters"),
    [
        ("mean(mismatch(O, vote[voter]) for voter)", False),
        ("max(mismatch(O, vote[v]) for v in voter)", False),
        ("sum(mean(mismatch(vote[u], vote[v]) for u in voter) * mismatch(O, vote[v]) for v in voter)", False),
        ("mean(mismatch(plurality(vote), vote[voter]) * mismatch(O, vote[voter]) for voter)", False),
        ("mismatch(O, vote[1])", True),
        ("sum(mismatch(O, vote[v]) for v in 1..2)", True),
        ("sum(voter * mismatch(O, vote[voter]) for voter)", True),
        ("sum(mismatch(O, vote[voter]) / voter for voter)", True),
        ("sum(mismatch(O, vote[voter]) * mismatch(vote[1], vote[voter]) for voter)", True),
        ("sum(mismatch(O, vote[voter]) * age[voter] for voter)", True),
        ("sum(sum(mismatch(vote[u], vote[v]) * u for u in voter) * mismatch(O, vote[v]) for v in voter)", True),
    ],
)
def test_who_looks_at_the_order(term: str, matters: bool) -> None:
    text = election(4, 2, "1", f"worst[ {term} ]", variables="input age[voter] in 0..1")
    model = load_model(Source("test.priv", text))
    assert order_matters(model, "vote") is matters
    assert reads_order("vote", "voter", list(expressions(model))) is matters


def test_order_is_seen_where_it_is_looked_at() -> None:
    """A voter with twice the weight: rows are lists of votes, and the answer is no worse for it."""
    loss = "E[ (mismatch(O, vote[1]) + sum(mismatch(O, vote[voter]) for voter)) / 4 ]"
    found = compiled(election(3, 2, "1", loss, "vote ~ uniform"))
    assert found.mechanism["counted"] == []
    assert len(found.rows) == 8
