"""What a ballot of an input may be, and the public rules that every ballot is read by."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from privspec.execute.keeper import STRICT_RULE
from privspec.model.domains import Domain, FiniteSet, IntegerRange, PartialRankingOf, RankingOf
from privspec.model.values import Symbol, show

if TYPE_CHECKING:
    from privspec.model.neighbours import InputBlock

MOST_ALTERNATIVES = 2**15 - 1
"""Alternatives that are numbered, at most."""
JOIN = "\x1e"
"""Stands for a space within the name of an alternative."""
NOT_ONE = -1
"""The number of what is no alternative."""
_NUMBER = re.compile(r"[+-]?\d{1,40}(?:\.\d{0,40}|/0{0,9}[1-9]\d{0,30})?", re.ASCII)
"""Other ways to write numbers: 3.0, 0.50, 1/2; none that takes long to compute."""


@dataclass(frozen=True, eq=False)
class Form:
    """The ballots of one input: rankings with `least` to `most` places, of which the first is the first choice.

    party: the index set whose members vote, None where nobody is named. drops: ballots that are none are left out,
    because nothing that is promised depends on how many there are; otherwise each counts as the first of all ballots.
    """

    name: str
    party: str | None
    alternatives: tuple[Symbol, ...]
    least: int = 1
    most: int = 1
    drops: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.alternatives) <= MOST_ALTERNATIVES:
            raise ValueError(f"ballots are about 1 to {MOST_ALTERNATIVES} alternatives")

    @classmethod
    def of_block(cls, block: InputBlock, *, drops: bool = False) -> Self | None:
        """The ballots of an input with one value for each party, None if its values are no ballots."""
        places = places_of(block.domain)
        return None if places is None else cls(block.name, block.index, *places, drops)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """From the ways to write an alternative to its number, from 0: its name, or, for words, its number from 1."""
        found = {JOIN.join(show(item).split()): i for i, item in enumerate(self.alternatives)}
        if not any(isinstance(item, Fraction) for item in self.alternatives):
            for i in range(len(self.alternatives)):
                found.setdefault(str(i + 1), i)
        return found

    @cached_property
    def spaced(self) -> tuple[str, ...]:
        """The alternatives whose names have spaces, the longest first."""
        names = {" ".join(show(item).split()) for item in self.alternatives}
        return tuple(sorted((name for name in names if " " in name), key=lambda name: (-len(name), name)))

    def find(self, text: str) -> int:
        """The number of the alternative that a word of a ballot names, NOT_ONE if it names none."""
        found = self.numbers.get(text)
        if found is not None or not _NUMBER.fullmatch(text):
            return NOT_ONE if found is None else found
        return self.numbers.get(show(Fraction(text)), NOT_ONE)

    @property
    def what(self) -> str:
        """What a ballot holds, in words."""
        if self.most == 1:
            return "one of the alternatives"
        if self.least == len(self.alternatives):
            return f"a ranking of all {self.least} alternatives"
        return f"a ranking of 1 to {self.most} alternatives"

    @property
    def first(self) -> NDArray[np.int16]:
        """The first of all ballots (most,): what counts in place of one that is none."""
        places = np.full(self.most, NOT_ONE, dtype=np.int16)
        places[: self.least] = np.arange(self.least)
        return places

    @property
    def fate(self) -> str:
        """What becomes of a ballot that is none."""
        names = " ".join(show(item) for item in self.alternatives[: self.least])
        return "each is left out" if self.drops else f"each counts as {names}"

    def rules(self, *, strict: bool) -> tuple[str, ...]:
        """What was done with ballots, whatever they are."""
        if strict:
            return (STRICT_RULE,)
        words = ["each ballot by itself: it counts as far as its first tie"]
        if self.most == 1:
            words.append("of a ranking the first place counts")
        elif self.most < len(self.alternatives):
            words.append(f"the first {self.most} places of a longer ranking count")
        elif self.least == len(self.alternatives):
            words.append("one that leaves out a single alternative has it last")
        words.append(f"one that is not {self.what} {'is left out' if self.drops else self.fate.removeprefix('each ')}")
        return ("; ".join(words),)


def places_of(domain: Domain) -> tuple[tuple[Symbol, ...], int, int] | None:
    """Alternatives, least and largest number of places of the ballots in a domain, None if its values are none."""
    match domain:
        case RankingOf(alternatives=items):
            return items, len(items), len(items)
        case PartialRankingOf(alternatives=items, places=places):
            return items, 1, places
        case FiniteSet(items=items):
            return items, 1, 1
        case IntegerRange() if (domain.size or 0) <= MOST_ALTERNATIVES:
            return tuple(domain.elements()), 1, 1
        case _:
            return None
