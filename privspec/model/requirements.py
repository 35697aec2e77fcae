"""Requirements as the compiler reads them, and who sees the raw data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar

from privspec.core.records import dataclass, field
from privspec.core.spans import Span
from privspec.kernel.trust import PARTS, TrustModel
from privspec.language import syntax
from privspec.model.measures import AskedMeasure
from privspec.model.neighbours import GivenTheModel, NeighbourRelation
from privspec.model.values import Value


class Trust(ABC):
    """Who is trusted: `name` as written in a spec."""

    __slots__ = ()

    name: ClassVar[str]
    model: TrustModel | None = None
    """The one model of trust; None where it is left open, or each part has its own."""
    colluding: int = 0
    span: Span | None = None

    @property
    def public(self) -> bool:
        """Whether every message, or every sum of them, is seen by all."""
        return self.model is not None and self.model.public

    @property
    def alone(self) -> bool:
        """Whether each party draws noise for what it holds itself."""
        return self.model is not None and self.model.alone

    @property
    def shared(self) -> bool:
        """Whether all parties add shares of one noise."""
        return self.model is not None and self.model.shared

    @property
    def central(self) -> bool:
        """Whether one keeper sees all data and adds the noise, and nobody else sees more than outputs."""
        return self.model is not None and self.model.central

    @property
    def drawn_whole(self) -> bool:
        """Whether no noise is in shares, or left open."""
        return self.model is not None and not self.model.shared

    @abstractmethod
    def describe(self) -> str:
        """One sentence: who sees what."""

    def of(self, output: str) -> Trust:
        """Who is trusted with what an output is made of."""
        return self


@dataclass(frozen=True, slots=True)
class TrustIn(Trust):
    """A model of trust; `colluding` shares of a secure sum are not counted on."""

    model: TrustModel
    colluding: int = 0
    span: Span | None = field(default=None, compare=False)

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.model.name

    def describe(self) -> str:
        tail = f", even if {self.colluding} of them collude" if self.colluding else ""
        return f"{self.model.described}{tail}"


@dataclass(frozen=True, slots=True)
class ChosenTrust(Trust):
    """A `choose` variable picks the trust model."""

    variable: str
    among: tuple[str, ...]
    span: Span | None = None
    name: ClassVar[str] = "chosen"

    def describe(self) -> str:
        return f"{self.variable} picks one of {', '.join(self.among)}"


@dataclass(frozen=True, slots=True)
class EachPart(Trust):
    """Who is trusted with each output, where the parts of a system do not say the same."""

    outputs: tuple[tuple[str, Trust], ...]
    name: ClassVar[str] = PARTS

    def of(self, output: str) -> Trust:
        return dict(self.outputs)[output]

    def describe(self) -> str:
        found = dict[Trust, list[str]]()
        for output, trust in self.outputs:
            found.setdefault(trust, []).append(output)
        return " · ".join(f"for {', '.join(names)}, {trust.describe()}" for trust, names in found.items())


@dataclass(frozen=True, slots=True)
class Requirement:
    """For any two worlds that are neighbours, the joint law of `outputs` satisfies the measure.

    `text` is the source line without its comment; `unit_by_default` says that the line names no unit,
    `written` how amounts are written that no short decimal gives, as in "epsilon = log(3)".
    """

    outputs: tuple[str, ...]
    wrt: tuple[str, ...]
    neighbours: NeighbourRelation
    measure: AskedMeasure
    observers: tuple[str, ...]
    span: Span
    line: int
    text: str
    unit_by_default: bool = False
    written: str = ""

    @property
    def bounded(self) -> tuple[str, ...]:
        """The inputs of which it hides a unit; none where it hides a value that is computed from them."""
        hides_computed = isinstance(self.neighbours, GivenTheModel) and self.neighbours.secret
        return () if hides_computed else self.wrt

    def describe(self) -> str:
        """In one line, with the unit and the observer spelt out."""
        names = ", ".join(self.outputs)
        who = " and ".join(self.observers)
        measure = f"{self.measure.describe()} ({self.written})" if self.written else self.measure.describe()
        return f"{names}: {measure} with respect to {', '.join(self.wrt)}, {self.neighbours.describe()}, seen by {who}"


@dataclass(frozen=True, slots=True)
class IndependenceRequirement:
    """Outputs are independent of an attribute, perhaps given another, up to a tolerance in total variation.

    `equals` is the value of `given y = 1`, which `value` writes; a bare word of the domain of y is that word.
    """

    subjects: tuple[str, ...]
    of: str
    given: str | None
    value: syntax.Expr | None
    tolerance: syntax.Expr | None
    span: Span
    line: int
    text: str
    equals: Value | None = field(default=None, compare=False)
    further: tuple[str, ...] = ()
    """What else is given, where it is several things together."""

    @property
    def people(self) -> tuple[str, ...]:
        """The attributes that it is about: whose law is compared, and what is given."""
        return tuple(name for name in (self.of, self.given, *self.further) if name is not None)


@dataclass(frozen=True, slots=True)
class AccuracyTarget:
    """`left <= right`, for every value of `variable`, perhaps with a probability."""

    target: syntax.Target
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class DataModel:
    """`name ~ distribution`: what is believed of an input or a computed value; used for expected loss only.

    `subjects` are the names in a joint law `(sex, y) ~ ...`, whose `subject` is then "(sex, y)"; else the one name.
    """

    subject: str
    distribution: str
    arguments: tuple[syntax.Argument, ...]
    span: Span
    line: int
    joint: tuple[str, ...] = ()

    @property
    def subjects(self) -> tuple[str, ...]:
        """The names that the law is about."""
        return self.joint or (self.subject,)


@dataclass(frozen=True, slots=True)
class RecordsLaw:
    """The chances (n,) that a person has 0, 1, 2, ... records in a table, and how many people there are."""

    table: str
    person: str
    people: int
    chances: tuple[Fraction, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Conditional:
    """The law of an entry given earlier ones: a row of chances for all their values, those of the last one fastest."""

    parents: tuple[int, ...]
    rows: tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """The laws that are allowed of the entries of an input, in order: any of `starts` with any of `steps`.

    `starts`: of the first entry; a law of a step has a row for each value of the entry before, in the order of the
    domain. Where entries are drawn each in its own way, `network` has the law of each, and there are no steps. `lines`
    are those of the spec that declare it, each with its text. Read by `model.chains`.
    """

    subject: str
    length: int
    starts: tuple[tuple[Fraction, ...], ...]
    steps: tuple[tuple[tuple[Fraction, ...], ...], ...]
    lines: tuple[tuple[int, str], ...]
    network: tuple[Conditional, ...] = ()


@dataclass(frozen=True, slots=True)
class MechanismConstraint:
    """`E[f(z) | x] = e` or `e <= e`: the mechanism must obey it."""

    relation: syntax.Relation
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Fact:
    """`sum(x) = 10`, `a <= b`: what is true of all data that exist; entry by entry where both sides have several."""

    relation: syntax.Relation
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class AssertedSensitivity:
    """`name has l1 sensitivity at most e wrt x`: asserted by the user, never checked."""

    claim: syntax.SensitivityClaim
    subject: str
    wrt: str
    neighbours: NeighbourRelation
    line: int
    text: str


def takes_distance(requirement: object) -> bool:
    """Whether a line compares inputs by how far apart they are."""
    return isinstance(requirement, Requirement) and requirement.measure.of.takes_distance
