"""Which pairs of worlds a requirement compares, as sets of differences of the inputs.

A difference set is convex and symmetric in effect: only its extreme points matter for a norm. All amounts
are exact. Sources: notes on neighbour relations; Ramon & Basu 2020, section 3.2 for one entry of an interval.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import SpecError
from privspec.core.records import dataclass, field
from privspec.core.spans import Source, Span
from privspec.model.domains import (
    ENUMERATION_LIMIT,
    Ball,
    Between,
    Domain,
    IntegerRange,
    Power,
    Table,
    Type,
    is_numeric,
)
from privspec.model.reports import Failure
from privspec.model.values import Array, approximate

if TYPE_CHECKING:
    from privspec.kernel.core.problem import ContributionBound

Indices: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True)
class InputBlock:
    """The coordinates `start:stop` of the base vector that one input fills.

    `layout` "entries": row-major entries of the value (of the whole collection if it is indexed); "cells": counts
    of the cells of a table. Arrays are laid out when asked for. `tallied`: each party holds one value, of which only
    how many hold each is looked at: a table of so many records.
    """

    name: str
    start: int
    stop: int
    layout: str
    domain: Domain
    type: Type
    span: Span
    source: Source
    index: str | None = None
    tallied: bool = False

    @property
    def size(self) -> int:
        return self.stop - self.start

    @property
    def place(self) -> tuple[tuple[Span, str], ...]:
        """Where it is declared, as a further place of a diagnostic."""
        return ((self.span, f"in {self.domain.describe()}"),)

    def check_size(self) -> None:
        """Refuse to lay out too many coordinates.

        Raises: SpecError PS0225.
        """
        if self.size > ENUMERATION_LIMIT:
            what = "cells" if self.layout == "cells" else "numbers"
            text = f"{self.name} has {self.size:,} {what}; at most {ENUMERATION_LIMIT:,} can be laid out in memory"
            hint = "use fewer attributes, or coarser ones" if self.layout == "cells" else None
            raise SpecError.at(self.source, self.span, "PS0225", text, label=f"{self.size:,} {what}", help=hint)

    @cached_property
    def lower(self) -> Array:
        """Least value of each coordinate (k,), -inf where there is none."""
        self.check_size()
        low = self.domain.bounds[0]
        return np.full(self.size, -np.inf if low is None else approximate(low))

    @cached_property
    def upper(self) -> Array:
        """Largest value of each coordinate (k,), inf where there is none."""
        self.check_size()
        high = self.domain.bounds[1]
        return np.full(self.size, np.inf if high is None else approximate(high))

    @property
    def record_length(self) -> int:
        """Coordinates of a record: of one factor of the outermost power, for each person."""
        if self.layout == "cells":
            return 1
        return prod(self.domain.shape[isinstance(self.domain, Power) :])

    @property
    def party_length(self) -> int:
        """Coordinates that one person of the index set holds; all of them if there is none."""
        return self.size // self.type.shape[0] if self.index and not self.tallied else self.size

    def runs(self, length: int) -> tuple[Indices, ...]:
        """The coordinates, so many at a time."""
        self.check_size()
        return tuple(np.arange(self.start, self.stop, dtype=np.intp).reshape(-1, max(length, 1)))

    @property
    def base_domain(self) -> Domain:
        """The domain without its powers."""
        return self.domain.innermost

    @property
    def schema(self) -> tuple[tuple[str, Domain], ...] | None:
        """Attributes of a table, None for other domains; of a table at each party, the party is the first of them."""
        base = self.base_domain
        if not isinstance(base, Table):
            return None
        if self.index is None or self.tallied:
            return base.attributes
        return ((self.index, IntegerRange(1, self.type.shape[0])), *base.attributes)

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns of a table that say whose a record is."""
        base = self.base_domain
        return base.ids if isinstance(base, Table) else ()

    @property
    def persons(self) -> bool:
        """Whether a record is made of all those of one person."""
        base = self.base_domain
        return isinstance(base, Table) and bool(base.persons)

    @property
    def sources(self) -> frozenset[str]:
        """The tables that its columns are gathered from."""
        base = self.base_domain
        return frozenset(o.made.source.table for _, o in base.gathered) if isinstance(base, Table) else frozenset()

    @property
    def looks_up(self) -> bool:
        """Whether a column of it is what another table says of the same person."""
        base = self.base_domain
        return isinstance(base, Table) and bool(base.gathered) and not base.persons

    @property
    def whole(self) -> bool:
        """Whether its numbers are counts: those of a table whose records stand in one cell each."""
        return self.layout == "cells" and not any(isinstance(domain, Between) for _, domain in self.schema or ())

    @property
    def records(self) -> int | None:
        """How many records a table has, or those of all parties, where the spec says so."""
        base = self.base_domain
        known = base.records if isinstance(base, Table) else None
        return None if known is None else known * prod(self.type.shape)

    @property
    def one_record(self) -> bool:
        """Whether it is a table of one record, or one of each party."""
        return isinstance(self.base_domain, Table) and self.base_domain.records == 1

    def reach(self, *, adding: bool) -> Fraction:
        """The most by which one coordinate can change; of a ball, the length of what changes a vector.

        Where units may be absent (`adding`), they count as 0 then.
        Raises: UnboundedError if there is no limit, Failure PS0231 for what does not consist of numbers.
        """
        base = self.base_domain
        if isinstance(base, Ball):
            return base.radius if adding else 2 * base.radius
        if isinstance(base, Table):
            if base.records is not None and not adding:
                return Fraction(base.records)
            raise UnboundedError(
                self,
                f"the table {self.name} may have any number of records, so replacing everything has no limit",
                "write `replacing one record` or `adding or removing one record`, or give the number of records: "
                "table(...)^100",
            )
        if not is_numeric(base):
            raise Failure("PS0231", self.span, f"{self.name} does not consist of numbers")
        low, high = base.bounds
        if low is None or high is None:
            raise UnboundedError(
                self,
                f"{self.name} has no bounds, so one unit can change a result by any amount",
                f"give {self.name} a bounded domain, such as [0, 1]; values outside are clipped",
            )
        return max(abs(low), abs(high)) if adding else high - low


class UnboundedError(Exception):
    """One unit can change the input by any amount, so no finite noise hides it."""

    def __init__(self, block: InputBlock, why: str, suggestion: str) -> None:
        self.block, self.why, self.suggestion = block, why, suggestion
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class NeighbourRelation(ABC):
    """Pairs of worlds that differ in at most `group` units of the inputs named, and in no other input.

    `adding`: units are there or not, and one that is not counts as 0 (in a table as no record); else they take any
    other value of their domain.
    """

    group: int = 1
    adding: bool = field(default=False, kw_only=True)

    unit: ClassVar[str] = ""

    @property
    def unit_name(self) -> str:
        """The word for one unit."""
        return self.unit

    @property
    def by_id(self) -> bool:
        """Whether a column of each table says whose a record is."""
        return False

    def describe(self) -> str:
        """In the words of the language: "replacing one entry"."""
        verb = "adding or removing" if self.adding else "replacing"
        what = f"one {self.unit_name}" if self.group == 1 else f"up to {self.group} {plural(self.unit_name)}"
        return f"{verb} {what}"

    @abstractmethod
    def length(self, block: InputBlock) -> int:
        """How many coordinates of an input belong to each unit."""


def plural(word: str) -> str:
    """English plural of a unit."""
    return word[:-1] + "ies" if word.endswith("y") and word[-2:-1] not in "aeiou" else word + "s"


@dataclass(frozen=True, slots=True)
class ReplacingEntry(NeighbourRelation):
    """One number takes any other value of its domain."""

    unit: ClassVar[str] = "entry"

    def length(self, block: InputBlock) -> int:
        return 1


AGAINST, GIVEN = " against any other value", "given the model"
"""What follows the thing that a line hides from those who know the model."""


@dataclass(frozen=True, slots=True)
class GivenTheModel(NeighbourRelation):
    """One unit has one value or another, and all else is drawn from the data model given that value (Pufferfish).

    The worlds that are compared are laws of all data, not data that differ in one unit. `inner`: the unit, an entry or
    all that a line names; `secret`: the computed value that is hidden in its place.
    """

    inner: NeighbourRelation = field(default_factory=lambda: ReplacingEntry())
    secret: str = ""
    unit: ClassVar[str] = "entry given the model"

    @property
    def together(self) -> bool:
        """Whether all that one person has in several inputs is one unit."""
        return isinstance(self.inner, ReplacingVoter)

    def describe(self) -> str:
        what = self.secret or ("all of it" if self.inner.unit == "everything" else f"one {self.inner.unit_name}")
        return f"{what}{AGAINST}, {GIVEN}"

    def length(self, block: InputBlock) -> int:
        return self.inner.length(block)


@dataclass(frozen=True, slots=True)
class ReplacingRecord(NeighbourRelation):
    """One record takes any other value of its domain."""

    unit: ClassVar[str] = "record"

    def length(self, block: InputBlock) -> int:
        return block.record_length


@dataclass(frozen=True, slots=True)
class ReplacingPerson(ReplacingRecord):
    """All records of one person who has at most `group` of them in a table, at most `per_cell` of these in one cell.

    `by_id`: a column of the table says whose a record is, and no more are kept; else nothing says it.
    """

    person: str = "person"
    per_cell: int | None = None
    by_id: bool = False

    def describe(self) -> str:
        verb = "adding or removing" if self.adding else "replacing"
        cell = "" if self.per_cell is None else f", at most {self.per_cell} in one cell"
        return f"{verb} one {self.person} with at most {self.group} {self.unit if self.group == 1 else 'records'}{cell}"

    @property
    def unit_name(self) -> str:
        return self.person if self.by_id else self.unit

    @property
    def kept(self) -> ContributionBound:
        """What is kept of a person's records before anything is counted."""
        from privspec.kernel.core.problem import ContributionBound  # specs are checked without what judges plans

        return ContributionBound(self.person, self.group, self.per_cell)


@dataclass(frozen=True, slots=True)
class WholePerson(ReplacingRecord):
    """The one record that is made of all those of one person, wherever they are (`kernel.persons`)."""

    person: str = "person"

    @property
    def unit_name(self) -> str:
        return self.person


@dataclass(frozen=True, slots=True)
class ReplacingVoter(NeighbourRelation):
    """All that one person of an index set holds takes any other value."""

    party: str = "voter"

    @property
    def unit_name(self) -> str:
        return self.party

    def length(self, block: InputBlock) -> int:
        return block.party_length


@dataclass(frozen=True, slots=True)
class ReplacingEverything(NeighbourRelation):
    """All of the inputs named take any other values."""

    unit: ClassVar[str] = "everything"

    def describe(self) -> str:
        return "replacing everything"

    def length(self, block: InputBlock) -> int:
        return block.size


@dataclass(frozen=True, slots=True)
class ReplacingOneOf(NeighbourRelation):
    """One unit of one of several inputs, each with a relation of its own."""

    parts: tuple[tuple[str, NeighbourRelation], ...] = ()

    def describe(self) -> str:
        """In the words of the language: "replacing one record of x or one voter of V"."""
        words = [
            f"{relation.describe().removeprefix('replacing ')} of {' and '.join(names)}"
            for relation, names in self.joined
        ]
        return "replacing " + " or ".join(words)

    @property
    def joined(self) -> tuple[tuple[NeighbourRelation, tuple[str, ...]], ...]:
        """The relations with the inputs that they move: all that one person holds moves at once."""
        found: dict[object, tuple[NeighbourRelation, tuple[str, ...]]] = {}
        for name, relation in self.parts:
            key = relation if isinstance(relation, ReplacingVoter) else name
            found[key] = relation, (*found.get(key, (relation, ()))[1], name)
        return tuple(found.values())

    def of(self, block: InputBlock) -> NeighbourRelation:
        """The relation of one input."""
        return dict(self.parts)[block.name]

    def length(self, block: InputBlock) -> int:
        return self.of(block).length(block)


@dataclass(frozen=True, slots=True)
class Narrowed(NeighbourRelation):
    """Some of what a unit, `inner`, may do."""

    inner: NeighbourRelation = field(default_factory=ReplacingEverything)

    @property
    def unit_name(self) -> str:
        return self.inner.unit_name

    def describe(self) -> str:
        return self.inner.describe()

    def length(self, block: InputBlock) -> int:
        return self.inner.length(block)


@dataclass(frozen=True, slots=True)
class ByNeighbour(Narrowed):
    """One unit takes a value that lies next to its own in a graph (Blowfish, He, Machanavajjhala & Ding 2014).

    `inner`: the unit; `edges`: pairs of its values by their numbers, either of which may become the other; `written`:
    as in "one entry by a neighbour in bands".
    """

    edges: tuple[tuple[int, int], ...] = ()
    written: str = ""

    def describe(self) -> str:
        return f"replacing {self.written}"


@dataclass(frozen=True, slots=True)
class Spaced(Narrowed):
    """Up to `group` entries or records of one person change, at least or `exactly` so many places `apart`."""

    inner: NeighbourRelation = field(default_factory=ReplacingEntry)
    apart: int = 1
    exactly: bool = False

    def describe(self) -> str:
        return f"{self.inner.describe()}, {'exactly' if self.exactly else 'at least'} {self.apart} apart"


@dataclass(frozen=True, slots=True)
class Asserted(Narrowed):
    """One unit of an input of which a function alone is read, which moves by at most so much, as the author says.

    `inner`: the unit; `norm`: "l1", "l2" or "linf", that of the function's values.
    """

    function: str = ""
    norm: str = "l2"
    amount: Fraction = Fraction(0)
    line: int = 0

    def length(self, block: InputBlock) -> int:
        return block.size


def default_relation(block: InputBlock | None, party: str | None) -> NeighbourRelation:
    """One party where the input is indexed, else one record of a power or table, else everything."""
    if party:
        return ReplacingVoter(party=party)
    if block is not None and block.persons:
        return WholePerson(person=block.ids[0])
    if block is not None and block.looks_up:
        return ReplacingEverything()
    if block is not None and (block.layout == "cells" or block.domain is not block.base_domain):
        return ReplacingRecord()
    return ReplacingEverything()
