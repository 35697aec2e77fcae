"""A plan that makes statistics noisy, as it is executed, beside what its spec says."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from privspec.certify.opened import Opened
from privspec.certify.reading import At, Malformed, read_guarantee
from privspec.certify.statistics.meaning import Meaning, meaning_of
from privspec.certify.statistics.noise import Noise, read_noise
from privspec.certify.statistics.spreads import Statistic, statistic_of
from privspec.model.graph import Model


@dataclass(frozen=True, eq=False)
class StatisticSubject(Opened):
    """What is verified. `executed`: the part of the plan that `run` reads."""

    @property
    def executed(self) -> At:
        """What `run` reads."""
        return self.plan["mechanism"]["executed"]

    @cached_property
    def meaning(self) -> Meaning:
        """Of the spec.

        Raises: Malformed, NotUnderstood.
        """
        return meaning_of(self.model)

    @cached_property
    def statistic(self) -> Statistic:
        """The one that is executed, with sensitivities derived from the spec's records.

        Raises: Malformed if there is none of that name.
        """
        place = self.executed["route"]["at"]
        found = statistic_of(place.text(), self.meaning.records)
        if found is None:
            raise Malformed(f"{place.place} is no statistic of such records")
        return found

    @cached_property
    def each_party(self) -> bool:
        """Whether every party adds noise of its own."""
        return self.executed["each_party"].flag()

    @cached_property
    def noises(self) -> tuple[Noise, ...]:
        """One for all, or one for each party.

        Raises: Malformed.
        """
        found = tuple(read_noise(item, self.statistic.size) for item in self.executed["noise"].items())
        if len(found) not in (1, self.meaning.parties if self.each_party else 1):
            raise Malformed(f"{len(found)} kinds of noise for {self.meaning.parties} parties")
        return found

    @property
    def site(self) -> str:
        """The place of the noise as `noise at` names it."""
        node = self.meaning.each if self.each_party else self.meaning.pool
        return node if self.statistic.at == "result" else f"{self.statistic.at}({node})"


def read_statistic(plan: At, model: Model) -> StatisticSubject:
    """A plan of the family "statistic".

    Raises: Malformed.
    """
    return StatisticSubject(plan, model, tuple(read_guarantee(item) for item in plan["guarantees"].items()))
