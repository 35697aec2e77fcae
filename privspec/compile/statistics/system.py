"""A spec of bounded records and a function of them that offers routes, as the compiler reads it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from privspec.language import syntax
from privspec.model.generators import Generator
from privspec.model.graph import Model
from privspec.model.measures import Measure
from privspec.model.requirements import Requirement
from privspec.model.routes import Records, Route, Unit


@dataclass(frozen=True, slots=True)
class Promise:
    """A requirement with what it protects: one party's whole records or one record; a measure for each party."""

    index: int
    requirement: Requirement
    unit: Unit
    measures: tuple[Measure, ...]

    @property
    def personal(self) -> bool:
        """Whether parties ask for different amounts."""
        return len(set(self.measures)) > 1


@dataclass(frozen=True, eq=False, slots=True)
class StatisticSystem:
    """Records of `parties` people; `each` names the value of one party, `pool` that of all (the mean, or the sum)."""

    model: Model
    source: str
    party: str | None
    parties: int
    records: Records
    function: str
    routes: tuple[Route, ...]
    each: str
    pool: str
    mean: bool
    output: str
    loss: syntax.Expr
    generator: Generator
    promises: tuple[Promise, ...]

    @property
    def share(self) -> Fraction:
        """What one party's value counts in the pool."""
        return Fraction(1, self.parties) if self.mean else Fraction(1)
