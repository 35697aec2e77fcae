"""Two rounds, one voter more or less, everybody deciding by the first winner: every joint probability, exactly.

notes/repeated-votes.md says that a voter who takes part in at most k rounds is protected by k times the epsilon of one.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from privspec.core.rounding import exp_down
from privspec.execute.receipts import participation
from privspec.families.voting.rules import RULES, Draw, VotingTask
from privspec.kernel.promises import SharedBudget
from privspec.model.values import Symbol
from privspec.model.voting import FirstChoice, Lottery

PAIR: tuple[Symbol, ...] = ("gate", "bridge")
EACH = Fraction(1, 2)
TASK = VotingTask(FirstChoice(PAIR), None, adding=True)

Ballot = int | None
"""A vote for the first or second alternative, or staying away."""
Strategy = tuple[Ballot, Ballot, Ballot]
"""What a voter does in the first round, and in the second after either winner."""
STRATEGIES: tuple[Strategy, ...] = tuple(product((None, 0, 1), repeat=3))


def calibrated(family: str) -> Lottery:
    rule = next(rule for rule in RULES if rule.family == family)
    found = rule.calibrate(TASK, EACH)
    assert not isinstance(found, str)
    return found.lottery


@cache
def law(lottery: Lottery, first: int, second: int) -> tuple[Fraction, ...]:
    return lottery.law((Fraction(first), Fraction(second)))


def drawn(lottery: Lottery, votes: Iterable[Ballot]) -> tuple[Fraction, ...]:
    cast = [vote for vote in votes if vote is not None]
    return law(lottery, cast.count(0), cast.count(1))


def joint(lottery: Lottery, voters: Sequence[Strategy], cap: int) -> dict[tuple[int, int], Fraction]:
    """The law of both winners; whoever took part in `cap` rounds is left out of further ones."""
    first = drawn(lottery, (v[0] for v in voters))
    found = {}
    for one in (0, 1):
        late = [v[1 + one] if cap > (v[0] is not None) else None for v in voters]
        second = drawn(lottery, late)
        for two in (0, 1):
            found[one, two] = first[one] * second[two]
    return found


def largest(lottery: Lottery, others: int, cap: int) -> Fraction:
    """The largest ratio of a joint probability with a voter and without, whatever everybody does."""
    most = Fraction(1)
    for crowd in product(STRATEGIES, repeat=others):
        if list(crowd) != sorted(crowd, key=str):
            continue  # the order of voters does not matter
        without = joint(lottery, crowd, cap)
        for strategy in STRATEGIES:
            with_voter = joint(lottery, (*crowd, strategy), cap)
            for winners, p in without.items():
                most = max(most, p / with_voter[winners], with_voter[winners] / p)
    return most


@pytest.mark.parametrize("family", ["dictator", "exponential", "permute_and_flip", "randomised_winner"])
@pytest.mark.parametrize("others", [0, 1, 2])
def test_a_cap_of_one_costs_one_round(family: str, others: int) -> None:
    assert largest(calibrated(family), others, 1) <= exp_down(EACH)


@pytest.mark.parametrize("family", ["dictator", "exponential", "permute_and_flip", "randomised_winner"])
def test_two_rounds_cost_two(family: str) -> None:
    """And no less in general: without a cap the budget of one round is exceeded."""
    found = largest(calibrated(family), 1, 2)
    assert found <= exp_down(2 * EACH)
    if family == "dictator":
        assert found > exp_down(EACH)


def test_one_round_is_nearly_spent_whole() -> None:
    """The enumeration would see a cap that does not work: nobody else votes in the first round, which changes most."""
    lottery = calibrated("dictator")
    found = largest(lottery, 0, 1)
    k = lottery.number
    assert found == max((k + 1) / k * (2 * k) / (2 * k + 1), (2 * k + 1) / (2 * k))
    assert Draw("dictator", k).epsilon(TASK) <= EACH


@pytest.mark.parametrize("seed", range(5))
def test_the_file_leaves_out_whom_the_note_says(tmp_path: Path, seed: int) -> None:
    """Random rounds: the file admits exactly those who took part in fewer than `fit`."""
    source: Any = random.Random(seed)
    rounds = SharedBudget(3, Fraction(3), Fraction(1), 3)
    names = [f"voter {i}" for i in range(9)]
    before = dict.fromkeys(names, 0)
    for _ in range(15):
        present = source.sample(names, source.randint(1, 9))
        with participation(tmp_path / "voters.db", "digest", rounds) as counted:
            admitted = counted.admit(pl.Series(present, dtype=pl.String)).to_list()
            kept = source.random() < 0.8
            if kept:
                counted.commit()
        assert admitted == [before[name] < 3 for name in present]
        for name, takes_part in zip(present, admitted, strict=True):
            before[name] += takes_part and kept
