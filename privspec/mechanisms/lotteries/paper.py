"""Figures of Torra 2019 on random dictatorship, beside what holds (notes/dummy-votes.md, notes/no-dummies.md)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import Any

from privspec.mechanisms.lotteries.dictator import DummyVotes
from privspec.mechanisms.lotteries.rule import VotingTask
from privspec.model.lotteries import FirstChoice


@dataclass(frozen=True, slots=True)
class Claim:
    """A figure of the paper and the true one, both as exact ratios e^epsilon; `text` says what differs."""

    quantity: str
    says: Fraction
    holds: Fraction
    text: str

    @property
    def understates(self) -> bool:
        """Whether the paper promises more privacy than there is."""
        return self.says < self.holds

    def to_json(self) -> dict[str, Any]:
        """Epsilons as doubles, for display."""
        return {"quantity": self.quantity, "says": log(self.says), "holds": log(self.holds), "text": self.text}


def lemma_1(alternatives: int, voters: int) -> Claim:
    """Method 2 (one dummy vote for each alternative) at a size: 2n / (n + 1) with n = |I u I_0| = T + m.

    It is the exact ratio between T and T + 1 voters whenever n >= 3; for two alternatives and nobody who votes it is
    too small.
    """
    n = voters + alternatives
    exact = _method_2(alternatives, voters)
    text = (
        f"with {alternatives} alternatives, between {voters} and {voters + 1} voters; the number of voters is what "
        "the guarantee must hide, so that the largest figure over all sizes counts: log 2"
    )
    return Claim(f"epsilon of Lemma 1 at T = {voters}", Fraction(2 * n, n + 1), exact, text)


def lemma_1_everywhere(alternatives: int, voters: int) -> Claim:
    """The same figure of the paper beside the one that holds for every number of voters."""
    at_size = lemma_1(alternatives, voters)
    return Claim(at_size.quantity, at_size.says, _method_2(alternatives, None), at_size.text)


def theorem_1(voters: int) -> Claim:
    """Method 1 where each alternative has a supporter: 2T / (T + 1), log 1.818... = .5978 at T = 10.

    What holds beside it is that of dummy votes at any size, 2: without them there is no epsilon at all.
    """
    text = (
        f"true between an electorate of {voters} voters that has a supporter of every alternative and one with a "
        "voter more; in general random dictatorship without dummy votes has no epsilon, with one for each "
        "alternative it has log 2"
    )
    return Claim(f"epsilon of Theorem 1 (ii) at T = {voters}", Fraction(2 * voters, voters + 1), Fraction(2), text)


def _method_2(alternatives: int, voters: int | None) -> Fraction:
    points = FirstChoice(tuple(Fraction(a) for a in range(alternatives)))
    return DummyVotes(Fraction(1)).ratio(VotingTask(points, voters, adding=True))
