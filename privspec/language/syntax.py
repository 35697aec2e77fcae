"""The syntax tree: frozen dataclasses with positions; `span` never takes part in equality.

Mirrors the grammar of the language rule by rule. A tree that exists is grammatical; what names and
shapes mean is decided later, in `privspec.model`.
"""

from __future__ import annotations

from enum import Enum
from fractions import Fraction
from typing import TypeAlias, dataclass_transform

from privspec.core.records import dataclass, field
from privspec.core.spans import NOWHERE, Span


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Tree:
    """Whatever derives from it is a frozen dataclass."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


FILL_IN = "fill_in"
"""What stands in a skeleton (`privspec init`) for the values of a column."""


class Node(Tree):
    """Anything with a place in the text."""

    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


# --- expressions -----------------------------------------------------------------------------------


class Number(Node):
    """A literal, exact; `text` keeps the author's spelling (not compared)."""

    value: Fraction
    text: str = field(default="", compare=False)


class String(Node):
    """A quoted string, without its quotes; or a day, as in 2025-01-31."""

    value: str


class Name(Node):
    """A bare word."""

    id: str


class Call(Node):
    """`f(args)`."""

    function: str
    arguments: tuple[Argument, ...]


class Counting(Call):
    """A call about a table, each of its conditions as `column = {values}`; `text` is what the author wrote."""

    text: str = field(default="", compare=False)


class SetOf(Node):
    """`{a, b, c}`."""

    items: tuple[Expr, ...]


class Numbers(SetOf):
    """The numbers that a condition allows, perhaps many: walks pass them by, as there is no name among them."""


class TupleOf(Node):
    """`(a, b)`: two items or more; parentheses around one expression leave no node."""

    items: tuple[Expr, ...]


class Vector(Node):
    """`[a, b]`."""

    items: tuple[Expr, ...]


class Each(Node):
    """`[e for i in D]`: what the terms are, one under another."""

    terms: Comprehension


class Negate(Node):
    """`-e`."""

    operand: Expr


class Binary(Node):
    """`left op right` with op one of + - * / @ ^ (`²` is `^ 2`)."""

    op: str
    left: Expr
    right: Expr


class Transpose(Node):
    """`e'`."""

    operand: Expr


class Index(Node):
    """`base[i, j]`."""

    base: Expr
    indices: tuple[Expr, ...]


class Slice(Node):
    """`x[1..7]`, `A[2..5, 1]`: all entries between the ends of its ranges."""

    base: Expr
    places: tuple[Expr | RangeOf, ...]


class Counted(Index):
    """An entry of what was defined for i in 2..7, counted from 1; `text` is what the author wrote."""

    text: str = field(default="", compare=False)


class Attribute(Node):
    """`base.name`."""

    base: Expr
    name: str


class Norm(Node):
    """`||e||`, `||e||_1`, `||e||_2`, `||e||_inf`; order "2", "1" or "inf"."""

    operand: Expr
    order: str = "2"


class Absolute(Node):
    """`|e|`."""

    operand: Expr


class Over(Node):
    """`E[body | given]` or `worst[body]`; operator "E" or "worst".

    What is given is an expression; or a tuple of names, and of values that are `Known`.
    """

    operator: str
    body: Expr
    given: Expr | None = None


class Known(Node):
    """`name = value` among what an average is given; the value as a set of one, in which a bare word is itself."""

    name: Name
    value: SetOf


class RangeOf(Node):
    """`lo..hi`, as an argument or as a domain."""

    low: Expr
    high: Expr


class Keyword(Node):
    """`name = expr` in a call."""

    name: str
    value: Expr


class Member(Node):
    """`name in domain` in a call, as in `table(age in 0..120)`."""

    name: str
    domain: Domain


class Condition(Node):
    """`left op right` in a call with op one of < <= > >= !=, as in `count(people, age >= 65)`."""

    op: str
    left: Expr
    right: Expr


class Holds(Node):
    """`(left op right)` with op one of < <= > >= !=: 1 where it holds, 0 where it does not."""

    op: str
    left: Expr
    right: Expr


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
    | Each
    | Negate
    | Binary
    | Transpose
    | Index
    | Slice
    | Attribute
    | Norm
    | Absolute
    | Over
    | Holds
    | Known
)
Argument: TypeAlias = Expr | RangeOf | Keyword | Member | Condition | Comprehension
NO_EXPRESSION = (RangeOf, Keyword, Member, Condition, Comprehension)
"""Arguments that have no value by themselves."""


# --- domains ---------------------------------------------------------------------------------------


class Interval(Node):
    """`[lo, hi]`, `(lo, hi]`, `[lo, inf)`, ..."""

    low: Expr
    high: Expr
    low_open: bool = False
    high_open: bool = False


class RankingOf(Node):
    """`ranking of A`."""

    alternatives: Name | SetOf


class Power(Node):
    """`base^n` or `base^(m, n)`; several exponents are the dimensions of an array."""

    base: Domain
    exponents: tuple[Expr, ...]


Domain: TypeAlias = RangeOf | Name | Call | SetOf | Interval | RankingOf | Power


# --- statements ------------------------------------------------------------------------------------


class Ref(Node):
    """`name`, `component.name`, `name[index]`; `name_span` covers the first word only."""

    name: str
    attribute: str | None = None
    indices: tuple[Expr, ...] = ()
    name_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


class Parameter(Node):
    """`ref = expr` under `parameters:`."""

    target: Ref
    value: Expr


class Party(Node):
    """`voter in 1..N` under `parties:`."""

    name: str
    domain: Domain


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


class Drawn(Node):
    """`from sought, spends epsilon`: a public value is drawn from data, near what is sought there."""

    sought: Expr
    epsilon: Expr


class Variable(Node):
    """`KIND ref ["label"] [in domain] [= expr] [drawn]` under `variables:`."""

    kind: VariableKind
    target: Ref
    domain: Domain | None = None
    value: Expr | None = None
    label: str | None = None
    drawn: Drawn | None = None


class Relation(Node):
    """`left op right` under `background:` with op one of = ~ <= >=; a column may be a comparison."""

    op: str
    left: Expr
    right: Expr


class Indexed(Relation):
    """`name[i, j] = right for i in D, j in D`."""

    running: tuple[Member, ...]


class Membership(Node):
    """`expr in domain` under `background:`."""

    left: Expr
    domain: Domain


class Everything(Node):
    """Unit `everything`."""


class OneUnit(Node):
    """Unit `one NAME`, or `one NAME with at most amount NAME`."""

    name: str
    most: Amount | None = None
    held: str | None = None


class UpToUnits(Node):
    """Unit `up to amount NAME`."""

    amount: Amount
    name: str


class ByNeighbour(Node):
    """Unit `NAME by a neighbour in graph`, an input as a whole, or `one NAME by ...`, one of its units."""

    name: str
    one: bool
    graph: Expr


Unit: TypeAlias = Everything | OneUnit | UpToUnits | ByNeighbour


class Replacing(Node):
    """`replacing unit`."""

    unit: Unit


class AddingOrRemoving(Node):
    """`adding or removing unit`."""

    unit: Unit


class Distance(Node):
    """`distance euclidean`, `distance |x - x'|`, `distance csv("f")`: what it means is decided in `privspec.model`."""

    metric: Expr


class SeenBy(Node):
    """`seen by a and b`: one coalition."""

    observers: tuple[Name, ...]


class GivenTheModel(Node):
    """`given the model`: the line counts on the data model."""


class Apart(Node):
    """`at least 64 apart`, or `exactly 64 apart`: how far units that change at once lie from each other."""

    amount: Amount
    exactly: bool


class InOneCell(Node):
    """`at most 2 in one cell`: how many of a person's records count in one cell."""

    amount: Amount


Clause: TypeAlias = Replacing | AddingOrRemoving | Distance | SeenBy | GivenTheModel | Apart | InOneCell


class Refs(Node):
    """One name, or `(a, b)`."""

    items: tuple[Ref, ...]


class AllOf(Node):
    """`all outputs` or `all inputs`; `what` is that last word."""

    what: str


Names: TypeAlias = Refs | AllOf


class Amount(Node):
    """A number, a name, or `(e, ...)`: the figures before `-DP`."""

    items: tuple[Expr, ...]


class SensitivityClaim(Node):
    """`name has l1 sensitivity at most e wrt x, ...` under `background:`."""

    subject: Expr
    norm: str
    amount: Expr
    wrt: Ref
    clauses: tuple[Clause, ...] = ()


BackgroundStatement: TypeAlias = Relation | Membership | SensitivityClaim


class Target(Node):
    """`e <= e [for j in D] [with probability p]` under `accuracy:`."""

    left: Expr
    right: Expr
    variable: str | None = None
    domain: Domain | None = None
    probability: Expr | None = None


class Requirement(Node):
    """`names is amount-MEASURE wrt names, clauses`; measure is the word after the hyphen ("DP", ...)."""

    subjects: Names
    amount: Amount
    measure: str
    wrt: Names
    clauses: tuple[Clause, ...] = ()


class Independence(Node):
    """`names is independent of ref [given ref [= e]] [, up to e]` under `fairness:`."""

    subjects: Names
    of: Ref
    given: Names | None = None
    value: Expr | None = None
    tolerance: Expr | None = None


class Trust(Node):
    """`trust curator`, `trust secure_sum(colluding = 10)`, `trust protocol`."""

    model: Name | Call


class NoiseAt(Node):
    """`noise at e, e`."""

    sites: tuple[Expr, ...]


class NoiseFamily(Node):
    """`noise family NAME, NAME`."""

    names: tuple[Name, ...]


class DifferentPeople(Node):
    """`different people: NAME, NAME`: nobody is in two of these inputs."""

    names: tuple[Name, ...]


class Unbiased(Node):
    """`unbiased`: answers are right on average, whatever the data."""


class SamePeople(Node):
    """`same people: NAME, NAME`: somebody may be in several of these inputs."""

    names: tuple[Name, ...]


Option: TypeAlias = Trust | NoiseAt | NoiseFamily | DifferentPeople | SamePeople | Unbiased


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
