"""What a rule that draws a winner must say of itself on the pages.

Laws are doubles for display; the plan holds the parameters exactly and `privspec verify` works with those.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from privspec.explain.lotteries.vote import Vote
from privspec.explain.quantities import Quantity


@dataclass(frozen=True, slots=True)
class Rule(ABC):
    """How the winner is drawn from the points of the ballots."""

    title: ClassVar[str]
    """The rule by name."""
    without: ClassVar[str] = "the lottery without noise"
    """What it is compared with."""
    adds_up: ClassVar[bool] = True
    """Whether several ballots together can move the chances further than one of them."""

    @abstractmethod
    def law(self, scores: Sequence[Fraction]) -> tuple[float, ...]:
        """The chances of the alternatives, given their points."""

    @abstractmethod
    def noiseless(self, scores: Sequence[Fraction]) -> tuple[float, ...]:
        """Their chances in the lottery without noise."""

    @abstractmethod
    def parameter(self) -> tuple[str, Quantity]:
        """The name of its one parameter, and its value."""

    @abstractmethod
    def exactly(self) -> str:
        """The parameter as the plan holds it."""

    @abstractmethod
    def brief(self, vote: Vote) -> str:
        """The draw in a clause, for a table."""

    @abstractmethod
    def told(self, vote: Vote) -> tuple[str, ...]:
        """The draw in plain sentences for the people who vote."""

    @abstractmethod
    def executed(self, vote: Vote) -> tuple[str, ...]:
        """The draw for auditors, step by step."""

    def total(self, _vote: Vote) -> Quantity | None:
        """The tickets of a drum, if there is one and the number of voters is public."""
        return None

    def distance(self, _vote: Vote, *, adds: bool, local: bool) -> Fraction | None:
        """How far one ballot can move the chances (total variation); None where only epsilon bounds it."""
        return None

    def times(self, _vote: Vote, *, local: bool) -> Quantity | None:
        """The largest factor by which one ballot can change the chance of a winner; None: as epsilon says."""
        return None

    def attains(self, _vote: Vote, *, adds: bool, local: bool) -> bool:
        """Whether two neighbouring elections attain epsilon and the distance both, in both directions."""
        return False

    def to_json(self) -> dict[str, object]:
        """Its name and parameter."""
        name, value = self.parameter()
        return {"title": self.title, "parameter": name, "value": value.to_json(), "exactly": self.exactly()}
