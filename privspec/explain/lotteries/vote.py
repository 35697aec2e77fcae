"""What is voted on, by whom and how: the part of a lottery's plan that does not depend on its rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from privspec.explain.quantities import parse_exact
from privspec.model.lotteries import Ballot, Borda, FirstChoice, Points
from privspec.model.values import Symbol, show

Counted: TypeAlias = Sequence[tuple[Ballot, int]]
"""Ballots, each with how often it was cast."""
_POINTS: Mapping[str, type[FirstChoice] | type[Borda]] = {"first choice": FirstChoice, "borda": Borda}


@dataclass(frozen=True, slots=True)
class Vote:
    """An election: `voters` is None where their number is secret, `names` are the alternatives as words.

    `ballots` is "first choice", "ranking" or "partial ranking".
    """

    input: str
    party: str
    voters: int | None
    ballots: str
    output: str
    points: Points
    names: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many alternatives there are."""
        return len(self.names)

    @property
    def people(self) -> str:
        """Those who vote, in the plural."""
        return f"{self.party}s"

    @property
    def ranked(self) -> bool:
        """Whether ballots are rankings whose whole order counts."""
        return isinstance(self.points, Borda)

    @property
    def apart(self) -> Fraction:
        """The most that one ballot's points can differ from another's: half the sum of absolute differences."""
        return Fraction(self.size**2 // 2, 2) if self.ranked else Fraction(1)

    @property
    def tilt(self) -> Fraction:
        """The most that one ballot's points can differ from an even spread, in the same measure."""
        return self.apart / 2 if self.ranked else Fraction(self.size - 1, self.size)

    def totals(self, counted: Counted) -> tuple[Fraction, ...]:
        """The points of each alternative.

        Raises: ValueError if a ballot names what is no alternative.
        """
        found = [Fraction(0)] * self.size
        for ballot, times in counted:
            found = [a + times * b for a, b in zip(found, self.points.of(ballot), strict=True)]
        return tuple(found)

    def firsts(self, counted: Counted) -> tuple[int, ...]:
        """How many put each alternative first."""
        first = FirstChoice(self.points.alternatives)
        found = [0] * self.size
        for ballot, times in counted:
            found = [a + times * int(b) for a, b in zip(found, first.of(ballot), strict=True)]
        return tuple(found)

    def ballot(self, first: int) -> Ballot:
        """A ballot with one alternative on top; where all are ranked, the others follow in the order declared."""
        items = self.points.alternatives
        if not self.ranked:
            return items[first]
        return (items[first], *(item for i, item in enumerate(items) if i != first))

    def to_json(self) -> dict[str, object]:
        """In words and numbers."""
        return {
            "input": self.input,
            "party": self.party,
            "voters": self.voters,
            "ballots": self.ballots,
            "output": self.output,
            "points": self.points.name,
            "points_of_a_ballot": str(self.points.per_ballot),
            "most_points": str(self.points.highest),
            "alternatives": list(self.names),
        }


def read_vote(mechanism: Mapping[str, Any]) -> Vote:
    """The election of a plan's mechanism.

    Raises: KeyError, ValueError if it is not of the form of this family.
    """
    alternatives = tuple(_symbol(item) for item in mechanism["alternatives"])
    if len(alternatives) < 2 or len(set(alternatives)) < len(alternatives):
        raise ValueError("a lottery has two alternatives or more, all different")
    kind = str(mechanism.get("points", "first choice"))
    if kind not in _POINTS:
        raise ValueError(f"points {kind!r} are not known")
    voters = mechanism.get("voters")
    return Vote(
        input=str(mechanism["input"]),
        party=str(mechanism.get("party") or "voter"),
        voters=None if voters is None else int(voters),
        ballots=str(mechanism.get("ballots", "first choice")),
        output=str(mechanism["output"]),
        points=_POINTS[kind](alternatives),
        names=tuple(show(item) for item in alternatives),
    )


def _symbol(item: object) -> Symbol:
    """A word, or a number that was declared as one."""
    try:
        return parse_exact(item)
    except ValueError:
        return str(item)
