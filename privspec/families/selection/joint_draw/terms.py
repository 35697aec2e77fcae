"""What all parties agree on before a joint draw, and the exact arithmetic of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Self

from privspec.core.diagnostics import UsageError

MOST_VOTERS = 3000
MOST_ENTRIES = 1024
"""Entries in the table of a ballot: with fewer coins than that there is one for each coin."""
SHARE_BYTES = 64
_FRACTION = re.compile(r"\d{1,400}(/\d{1,400})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Terms:
    """Alternatives, the public number of voters, the dummy votes for each alternative, the number of mixers.

    A ballot is a secret table with one winner in each of `entries` places: `winner(vote, share, entry)`. For a share
    uniform in [0, `shares`) every entry has exactly the law of the mixture: the voter's own vote with probability
    T / (T + m kappa), each alternative with kappa / (T + m kappa) beside it.
    Raises: UsageError PS0851.
    """

    alternatives: tuple[str, ...]
    voters: int
    dummies: Fraction
    mixers: int = 2

    def __post_init__(self) -> None:
        if not 2 <= self.voters <= MOST_VOTERS:
            _refuse(f"a joint draw takes 2 to {MOST_VOTERS} voters, not {self.voters}")
        if self.mixers < 2:
            _refuse("a joint draw needs two mixers at least: one alone would see whose ballot is whose")
        if not 1 <= len(self.alternatives) < 2**32 or len(set(self.alternatives)) != len(self.alternatives):
            _refuse("a joint draw needs alternatives, each of them once")
        if self.dummies < 0 or self.shares.bit_length() > 8 * SHARE_BYTES:
            _refuse("the dummy votes are not a fraction of at most a hundred digits, zero or more")

    @property
    def own(self) -> int:
        """Coins that give the voter's own vote."""
        return self.voters * self.dummies.denominator

    @property
    def coins(self) -> int:
        """M: the coins of a ballot; own / M = T / (T + m kappa)."""
        return self.own + len(self.alternatives) * self.dummies.numerator

    @property
    def entries(self) -> int:
        """Places in the table of a ballot."""
        return min(self.coins, MOST_ENTRIES)

    @property
    def shares(self) -> int:
        """A voter draws its share uniformly below this."""
        return self.coins * min(self.coins, MOST_ENTRIES)

    def winner(self, vote: int, share: int, entry: int) -> int:
        """The winner that a ballot names in a place of its table (numbers of alternatives).

        The coins of the places are evenly spaced: whatever the share, each winner stands in the table as often as its
        probability says, up to one place for each run of coins that lead to it.
        """
        return self.table(vote, share, (entry,))[0]

    def table(self, vote: int, share: int, places: Sequence[int] | None = None) -> list[int]:
        """`winner` for many places, by default for all of them."""
        own, coins, shares, entries, each = self.own, self.coins, self.shares, self.entries, self.dummies.numerator
        places = range(entries) if places is None else places
        found = [(share + place * coins) % shares // entries for place in places]
        return [vote if coin < own else (coin - own) // each for coin in found]

    def law(self, votes: Sequence[int]) -> tuple[Fraction, ...]:
        """(N_a + kappa) / (T + m kappa), in the order of the alternatives."""
        total = self.voters + len(self.alternatives) * self.dummies
        return tuple((votes.count(a) + self.dummies) / total for a in range(len(self.alternatives)))

    def without(self, voters: int, mixers: int) -> Self:
        """The terms for what is left when some parties are shut out."""
        return type(self)(self.alternatives, self.voters - voters, self.dummies, self.mixers - mixers)

    def to_json(self) -> dict[str, Any]:
        """As the head of a transcript holds them."""
        return {
            "alternatives": list(self.alternatives),
            "voters": self.voters,
            "dummy_votes": str(self.dummies),
            "mixers": self.mixers,
        }

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Self:
        """Raises: KeyError, TypeError, ValueError, UsageError PS0851."""
        names = tuple(body["alternatives"])
        if not all(isinstance(name, str) for name in names) or not _FRACTION.fullmatch(body["dummy_votes"]):
            raise ValueError("not terms")
        for key in ("voters", "mixers"):
            if type(body[key]) is not int:
                raise TypeError(key)
        return cls(names, body["voters"], Fraction(body["dummy_votes"]), body["mixers"])


def law_of_draw(terms: Terms, votes: Sequence[int]) -> tuple[Fraction, ...]:
    """The law of the winner by enumeration of all positions, entries and shares: for tests on small terms."""
    counts = [0] * len(terms.alternatives)
    for vote, entry, share in product(votes, range(terms.entries), range(terms.shares)):
        counts[terms.winner(vote, share, entry)] += 1
    return tuple(Fraction(n, sum(counts)) for n in counts)


def coalition_ratio(terms: Terms, coalition: int) -> Fraction | None:
    """e^epsilon against `coalition` voters who tell each other that none of theirs was drawn (None: no bound).

    The largest ratio of probabilities of what they see, when one other voter votes otherwise: 1 + T / ((T - c) kappa).
    """
    if not 0 <= coalition < terms.voters:
        raise ValueError("somebody has to stand outside the coalition")
    if not terms.dummies:
        return None
    return 1 + Fraction(terms.voters, terms.voters - coalition) / terms.dummies


def dummies_against(dummies: Fraction, voters: int, coalition: int) -> Fraction:
    """The dummy votes that give the epsilon of `dummies` against a coalition of that many voters."""
    return dummies * Fraction(voters, voters - coalition)


def abort_bound(probability: Fraction, aborts: int) -> Fraction:
    """The most that a party can make of an event it wants, which it may see and void `aborts` times."""
    return 1 - (1 - probability) ** (aborts + 1)


def _refuse(message: str) -> None:
    raise UsageError.of("PS0851", message)
