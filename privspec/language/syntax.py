"""The syntax tree: frozen dataclasses with positions; `span` never takes part in equality.

Mirrors the grammar of the language rule by rule. A tree that exists is grammatical; what names and
shapes mean is decided later, in `privspec.model`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import TypeAlias

from privspec.core.spans import NOWHERE, Span


@dataclass(frozen=True, slots=True)
class Node:
    """Anything with a place in the text."""

    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


# --- expressions -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A literal, exact; `text` keeps the author's spelling (not compared)."""

    value: Fraction
    text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class String(Node):
    """A quoted string, without its quotes."""

    value: str


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A bare word."""

    id: str


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`f(args)`."""

    function: str
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Counting(Call):
    """A call about a table, each of its conditions as `column = {values}`; `text` is what the author wrote."""

    text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class SetOf(Node):
    """`{a, b, c}`."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class TupleOf(Node):
    """`(a, b)`: two items or more; parentheses around one expression leave no node."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Vector(Node):
    """`[a, b]`."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Negate(Node):
    """`-e`."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """`left op right` with op one of + - * / @ ^ (`²` is `^ 2`)."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Transpose(Node):
    """`e'`."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Index(Node):
    """`base[i, j]`."""

    base: Expr
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """`base.name`."""

    base: Expr
    name: str


@dataclass(frozen=True, slots=True)
class Norm(Node):
    """`||e||`, `||e||_1`, `||e||_2`, `||e||_inf`; order "2", "1" or "inf"."""

    operand: Expr
    order: str = "2"


@dataclass(frozen=True, slots=True)
class Absolute(Node):
    """`|e|`."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Over(Node):
    """`E[body | given]` or `worst[body]`; operator "E" or "worst"."""

    operator: str
    body: Expr
    given: Expr | None = None


@dataclass(frozen=True, slots=True)
class RangeOf(Node):
    """`lo..hi`, as an argument or as a domain."""

    low: Expr
    high: Expr


@dataclass(frozen=True, slots=True)
class Keyword(Node):
    """`name = expr` in a call."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Member(Node):
    """`name in domain` in a call, as in `table(age in 0..120)`."""

    name: str
    domain: Domain


@dataclass(frozen=True, slots=True)
class Condition(Node):
    """`left op right` in a call with op one of < <= > >= !=, as in `count(people, age >= 65)`."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Holds(Node):
    """`(left op right)` with op one of < <= > >= !=: 1 where it holds, 0 where it does not."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Comprehension(Node):
    """`body for variable in domain` in a call; the domain of a party may be left out."""

    body: Expr
    variable: str
    domain: Domain | None = None


Expr: TypeAlias = (
    Number
    | String
    | Name
    | Call
    | SetOf
    | TupleOf
    | Vector
    | Negate
    | Binary
    | Transpose
    | Index
    | Attribute
    | Norm
    | Absolute
    | Over
    | Holds
)
Argument: TypeAlias = Expr | RangeOf | Keyword | Member | Condition | Comprehension
NO_EXPRESSION = (RangeOf, Keyword, Member, Condition, Comprehension)
"""Arguments that have no value by themselves."""


# --- domains ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Interval(Node):
    """`[lo, hi]`, `(lo, hi]`, `[lo, inf)`, ..."""

    low: Expr
    high: Expr
    low_open: bool = False
    high_open: bool = False


@dataclass(frozen=True, slots=True)
class RankingOf(Node):
    """`ranking of A`."""

    alternatives: Name | SetOf


@dataclass(frozen=True, slots=True)
class Power(Node):
    """`base^n` or `base^(m, n)`; several exponents are the dimensions of an array."""

    base: Domain
    exponents: tuple[Expr, ...]


Domain: TypeAlias = RangeOf | Name | Call | SetOf | Interval | RankingOf | Power


# --- statements ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ref(Node):
    """`name`, `component.name`, `name[index]`; `name_span` covers the first word only."""

    name: str
    attribute: str | None = None
    indices: tuple[Expr, ...] = ()
    name_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """`ref = expr` under `parameters:`."""

    target: Ref
    value: Expr


@dataclass(frozen=True, slots=True)
class Party(Node):
    """`voter in 1..N` under `parties:`."""

    name: str
    domain: Domain


@dataclass(frozen=True, slots=True)
class Component(Node):
    """`name = spec("file.priv", ...)` under `components:`."""

    name: str
    call: Call


class VariableKind(Enum):
    """The five kinds of variable."""

    INPUT = "input"
    CONSTANT = "constant"
    INTERMEDIATE = "intermediate"
    OUTPUT = "output"
    CHOOSE = "choose"


@dataclass(frozen=True, slots=True)
class Variable(Node):
    """`KIND ref [in domain] [= expr]` under `variables:`."""

    kind: VariableKind
    target: Ref
    domain: Domain | None = None
    value: Expr | None = None


@dataclass(frozen=True, slots=True)
class Relation(Node):
    """`left op right` under `background:` with op one of = ~ <= >=."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Membership(Node):
    """`expr in domain` under `background:`."""

    left: Expr
    domain: Domain


@dataclass(frozen=True, slots=True)
class Everything(Node):
    """Unit `everything`."""


@dataclass(frozen=True, slots=True)
class OneUnit(Node):
    """Unit `one NAME`."""

    name: str


@dataclass(frozen=True, slots=True)
class UpToUnits(Node):
    """Unit `up to amount NAME`."""

    amount: Amount
    name: str


Unit: TypeAlias = Everything | OneUnit | UpToUnits


@dataclass(frozen=True, slots=True)
class Replacing(Node):
    """`replacing unit`."""

    unit: Unit


@dataclass(frozen=True, slots=True)
class AddingOrRemoving(Node):
    """`adding or removing unit`."""

    unit: Unit


@dataclass(frozen=True, slots=True)
class Distance(Node):
    """`distance euclidean`, `distance |x - x'|`, `distance csv("f")`: what it means is decided in `privspec.model`."""

    metric: Expr


@dataclass(frozen=True, slots=True)
class SeenBy(Node):
    """`seen by a and b`: one coalition."""

    observers: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class GivenTheModel(Node):
    """`given the model`: the line counts on the data model."""


Clause: TypeAlias = Replacing | AddingOrRemoving | Distance | SeenBy | GivenTheModel


@dataclass(frozen=True, slots=True)
class Refs(Node):
    """One name, or `(a, b)`."""

    items: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class AllOf(Node):
    """`all outputs` or `all inputs`; `what` is that last word."""

    what: str


Names: TypeAlias = Refs | AllOf


@dataclass(frozen=True, slots=True)
class Amount(Node):
    """A number, a name, or `(e, ...)`: the figures before `-DP`."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class SensitivityClaim(Node):
    """`name has l1 sensitivity at most e wrt x, ...` under `background:`."""

    subject: Expr
    norm: str
    amount: Expr
    wrt: Ref
    clauses: tuple[Clause, ...] = ()


BackgroundStatement: TypeAlias = Relation | Membership | SensitivityClaim


@dataclass(frozen=True, slots=True)
class Target(Node):
    """`e <= e [for j in D] [with probability p]` under `accuracy:`."""

    left: Expr
    right: Expr
    variable: str | None = None
    domain: Domain | None = None
    probability: Expr | None = None


@dataclass(frozen=True, slots=True)
class Requirement(Node):
    """`names is amount-MEASURE wrt names, clauses`; measure is the word after the hyphen ("DP", ...)."""

    subjects: Names
    amount: Amount
    measure: str
    wrt: Names
    clauses: tuple[Clause, ...] = ()


@dataclass(frozen=True, slots=True)
class Independence(Node):
    """`names is independent of ref [given ref [= e]] [, up to e]` under `fairness:`."""

    subjects: Names
    of: Ref
    given: Ref | None = None
    value: Expr | None = None
    tolerance: Expr | None = None


@dataclass(frozen=True, slots=True)
class Trust(Node):
    """`trust curator`, `trust secure_sum(colluding = 10)`, `trust protocol`."""

    model: Name | Call


@dataclass(frozen=True, slots=True)
class NoiseAt(Node):
    """`noise at e, e`."""

    sites: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class NoiseFamily(Node):
    """`noise family NAME, NAME`."""

    names: tuple[Name, ...]


Option: TypeAlias = Trust | NoiseAt | NoiseFamily


@dataclass(frozen=True, slots=True)
class Spec(Node):
    """A whole file. Sections that are absent are empty; `sections` keeps the author's order of headers."""

    name: str | None
    doc: str | None
    parameters: tuple[Parameter, ...] = ()
    parties: tuple[Party, ...] = ()
    components: tuple[Component, ...] = ()
    variables: tuple[Variable, ...] = ()
    background: tuple[BackgroundStatement, ...] = ()
    loss: Expr | None = None
    accuracy: tuple[Target, ...] = ()
    privacy: tuple[Requirement, ...] = ()
    fairness: tuple[Independence | Requirement, ...] = ()
    options: tuple[Option, ...] = ()
    sections: tuple[str, ...] = field(default=(), compare=False)
    within: tuple[Spec, ...] = ()
    """Further specs of the same file, which its components may name."""
