"""Invented elections, to show what a rule does: never anybody's votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privspec.explain.lotteries.rule import Rule
from privspec.explain.lotteries.vote import Vote
from privspec.explain.quantities import Quantity, count, rounded

INVENTED = 100
"""Voters of an invented election where the true number is secret."""
RARE = 1e-3
"""Below this, a probability is told as once in so many draws."""
MOST = 12
"""Candidates that are listed."""


@dataclass(frozen=True, slots=True)
class Chance:
    """One candidate of an example: votes, and the chances with and without noise.

    `once_in` is the number of draws of which one is won, where a probability would be hard to read.
    """

    name: str
    votes: Quantity
    chance: Quantity
    without: Quantity
    once_in: Quantity | None

    @property
    def words(self) -> str:
        """How often it wins: "with probability 0.25", or "about once in 43,000 draws"."""
        return f"with probability {self.chance}" if self.once_in is None else f"about once in {self.once_in} draws"


@dataclass(frozen=True, slots=True)
class Example:
    """An invented election and the law of its winner; `distance` is that from the lottery without noise."""

    title: str
    voters: Quantity
    chances: tuple[Chance, ...]
    distance: Quantity


def examples(vote: Vote, rule: Rule) -> tuple[Example, ...]:
    """One where votes fall off from candidate to candidate, and one where all vote for the same."""
    voters = vote.voters if vote.voters is not None else INVENTED
    if voters < 1:
        return ()
    falling = _falling(voters, vote.size)
    unanimous = [voters] + [0] * (vote.size - 1)
    found = [("support falls off from candidate to candidate", falling)] if falling != unanimous else []
    return tuple(
        _example(title, firsts, vote, rule)
        for title, firsts in [*found, (f"everybody votes for {vote.names[0]}", unanimous)]
    )


def _falling(voters: int, size: int) -> list[int]:
    """Votes in proportion to m, m - 1, ..., 1; what rounding leaves goes to the first."""
    weights = [size - i for i in range(size)]
    shares = [voters * w // sum(weights) for w in weights]
    return [shares[0] + voters - sum(shares), *shares[1:]]


def _example(title: str, firsts: Sequence[int], vote: Vote, rule: Rule) -> Example:
    scores = vote.totals([(vote.ballot(i), n) for i, n in enumerate(firsts)])
    law, bare = rule.law(scores), rule.noiseless(scores)
    apart = sum(abs(p - q) for p, q in zip(law, bare, strict=True)) / 2
    chances = tuple(
        Chance(name, count(n), rounded(p, 4), rounded(q, 4), rounded(1 / p, 2) if 0 < p < RARE else None)
        for name, n, p, q in zip(vote.names, firsts, law, bare, strict=True)
    )
    return Example(title, count(sum(firsts)), chances, rounded(apart, 4))
