"""The report on a real profile of votes, for the keeper of the data only: nothing in it may be published.

It says which conditional statements of Torra 2019 apply to these votes, and how far this plan's lottery is from random
dictatorship without noise. Every figure is computed from the votes and labelled so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from privspec.explain.document import Block, Document, Paragraph, Points, Section, Table
from privspec.explain.lotteries.paper import theorems
from privspec.explain.lotteries.rule import Rule
from privspec.explain.lotteries.rules import RULES
from privspec.explain.lotteries.vote import Vote, read_vote
from privspec.explain.quantities import Rounding, count, percent, rounded
from privspec.explain.sentences import Note, Sentence, assumed, proved
from privspec.mechanisms.lotteries.conditions import (
    Condition,
    LeastShare,
    Reading,
    least_share,
    of_one_profile,
    readings,
)
from privspec.mechanisms.lotteries.rounding import log_up
from privspec.model.lotteries import Ballot, Proportional
from privspec.model.values import show

LABEL = "depends on private data"
"""Stands beside every figure."""
READER = "keeper of the data"
_NOTE = Note("no-dummies")


def profile_report(plan: Mapping[str, Any], counted: Iterable[tuple[Ballot, int]]) -> Document:
    """The report on ballots, each with how often it was cast.

    Raises: ValueError, KeyError if the plan draws no winner by lot, or a ballot names what is no alternative.
    """
    mechanism = plan.get("mechanism") or {}
    reader = RULES.get(str(mechanism.get("family", "")))
    if reader is None:
        raise ValueError("it draws no winner by lot")
    vote, rule = read_vote(mechanism), reader(mechanism)
    ballots = list(counted)
    firsts, scores = vote.firsts(ballots), vote.totals(ballots)
    return Document(
        title="Private: a report on the votes themselves",
        subtitle=str((plan.get("spec") or {}).get("name") or "plan"),
        reader=READER,
        shows_basis=True,
        sections=(
            Section("Do not publish this report", (Paragraph(_warning(), strong=True),)),
            Section("The votes", _votes(vote, firsts)),
            Section("Conditional statements of Torra 2019 on these votes", _conditions(firsts)),
            Section("The winner's chances on these votes", _chances(vote, rule, firsts, scores)),
        ),
        footer=f"Computed from the votes and from the plan with the fingerprint (SHA-256) {plan.get('digest', '')}. "
        "For the keeper of the data only.",
    )


def _warning() -> tuple[Sentence, ...]:
    return (
        assumed(
            "This report is computed from the votes, without any noise. Do not publish it, nor any line of it.", _NOTE
        ),
        proved(
            "None of it is differential privacy, whatever ε stands in it. The number of voters, the least represented "
            "share α, and whether a condition holds reveal votes by themselves: α = 0 says that nobody voted for some "
            "candidate, and the next α may say whether one more voter did.",
            _NOTE,
        ),
        proved("What may be published is the winner that `privspec run` draws, and the plan's own guarantee.", _NOTE),
    )


def _labelled(text: str) -> Sentence:
    return proved(f"{text} [{LABEL}]", _NOTE)


# --- the votes ------------------------------------------------------------------------------------


def _votes(vote: Vote, firsts: tuple[int, ...]) -> tuple[Block, ...]:
    voters, least = sum(firsts), min(firsts)
    found = [_labelled(f"{count(voters)} ballots were read.")]
    if voters:
        name = vote.names[firsts.index(least)]
        share = rounded(least_share(firsts), 4)
        found.append(
            _labelled(
                f"The least represented candidate is {name}, the first choice of {count(least)}: the share α is "
                f"{share} %."
            )
        )
    if vote.voters is not None and vote.voters != voters:
        found.append(_labelled(f"The plan is for {vote.voters:,} voters, and its guarantee for that number only."))
    return (Points(tuple(found)),)


# --- conditional statements -----------------------------------------------------------------------


def _conditions(firsts: tuple[int, ...]) -> tuple[Block, ...]:
    found = [(adding, r) for adding in (True, False) for r in readings(firsts, adding=adding)]
    rows = tuple(
        (
            _upper(reading.condition.name),
            "one voter more" if adding else "another vote",
            "yes" if reading.applies else "no",
            _epsilon(reading),
            LABEL,
        )
        for adding, reading in found
    )
    table = Table(
        "Statements about random dictatorship without noise, between these votes and others in their scope",
        ("Statement", "Compared with", "Applies here", "ε at most, in its scope", "Status"),
        rows,
        numeric=frozenset({3}),
    )
    scopes = [_labelled(f"{_upper(r.condition.name)} speaks of {_scope(r.condition)}.") for _, r in found]
    exactly = [_labelled(_exact(firsts, adding=adding)) for adding in (True, False)]
    return (table, Points((*scopes, *exactly)), Points(theorems(_NOTE)[-1:]))


def _scope(condition: Condition) -> str:
    """In words, the share to a few digits."""
    if not isinstance(condition, LeastShare):
        return condition.scope
    return condition.scope.replace(f"{show(condition.percent)} %", f"{rounded(condition.percent, 4)} %")


def _epsilon(reading: Reading) -> str:
    return "none" if reading.epsilon is None else rounded(reading.epsilon, 5, Rounding.UP).text


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _exact(firsts: tuple[int, ...], *, adding: bool) -> str:
    """The largest ratio of exactly these votes to their neighbours."""
    ratio = of_one_profile(firsts, adding=adding)
    others = "one voter more" if adding else "one other vote"
    if ratio is None:
        return f"Between exactly these votes and any with {others}, the ratio of probabilities has no bound."
    figure = rounded(log_up(ratio), 5, Rounding.UP) if ratio > 1 else "0"
    return f"Between exactly these votes and any with {others}, the exact figure is {figure}; it is no guarantee."


# --- the law of the winner ------------------------------------------------------------------------


def _chances(vote: Vote, rule: Rule, firsts: tuple[int, ...], scores: tuple[Fraction, ...]) -> tuple[Block, ...]:
    """This plan's law beside random dictatorship, and beside its own lottery without noise where that is another."""
    law = rule.law(scores)
    plain = tuple(float(p) for p in Proportional().law([Fraction(n) for n in firsts]))
    bare = rule.noiseless(scores)
    differs = max(abs(a - b) for a, b in zip(plain, bare, strict=True)) > 0
    header = ["Candidate", "First choices", "Random dictatorship"]
    columns: list[tuple[float, ...]] = [plain]
    if differs:
        header.append(_upper(rule.without))
        columns.append(bare)
    columns.append(law)
    rows = tuple(
        (name, count(n).text, *(rounded(column[i], 5).text for column in columns), LABEL)
        for i, (name, n) in enumerate(zip(vote.names, firsts, strict=True))
    )
    table = Table(
        "Probability to win, exactly these votes",
        (*header, "This plan", "Status"),
        rows,
        numeric=frozenset(range(1, len(header) + 1)),
    )
    found = [
        _labelled(f"This plan is {_apart(law, plain)} from random dictatorship without noise, in total variation.")
    ]
    if differs:
        found.append(_labelled(f"It is {_apart(law, bare)} from {rule.without}."))
    welfare = sum(p * n for p, n in zip(law, firsts, strict=True)) / max(1, sum(firsts))
    found.append(_labelled(f"The winner is expected to be the first choice of {percent(welfare, 3)} of the voters."))
    return (table, Points(tuple(found)))


def _apart(one: tuple[float, ...], other: tuple[float, ...]) -> str:
    """Their total variation."""
    return rounded(sum(abs(a - b) for a, b in zip(one, other, strict=True)) / 2, 4).text
