"""Shapes and kinds of values: every expression gets a type, or one error that shows both sides."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from privspec.core.records import dataclass, field, replace
from privspec.core.spans import Span
from privspec.language import syntax
from privspec.language.automaton import is_name
from privspec.language.walk import names_used
from privspec.model.domain_rules import read_domain
from privspec.model.domains import (
    NUMBER,
    UNKNOWN,
    Between,
    Domain,
    FiniteSet,
    Laws,
    Numbers,
    Sets,
    Symbols,
    Tables,
    Texts,
    Type,
)
from privspec.model.evaluate import DOMAIN_CALLS, Algebra, Environment, Unary, bind_call, evaluate, value_type
from privspec.model.library import Argument, Bound, library
from privspec.model.reports import Failure, Report, listing, nearest
from privspec.model.values import Value, joined_length, show


@dataclass(frozen=True, slots=True)
class Binding:
    """What a comprehension variable or an index stands for: its type, its index set, its range if known."""

    type: Type = NUMBER
    party: str | None = None
    low: int | None = None
    high: int | None = None
    span: Span | None = None


Bindings = Mapping[str, Binding]


@dataclass(eq=False)
class Typer(Algebra[Type]):
    """Types of the expressions of one file; complaints go to the report, and a wrong part has type UNKNOWN."""

    report: Report
    environment: Environment
    types: dict[str, Type] = field(default_factory=dict)
    places: dict[str, Span] = field(default_factory=dict)
    indexed: dict[str, str] = field(default_factory=dict)
    attributes: dict[tuple[str, str], Type] = field(default_factory=dict)
    components: frozenset[str] = frozenset()
    domains: dict[str, Domain] = field(default_factory=dict)
    inferred: set[str] = field(default_factory=set)
    """Outputs whose type is that of what they are compared with."""
    running_variables: Bindings = field(default_factory=dict)

    def type_of(self, expr: syntax.Expr, bound: Bindings | None = None) -> Type:
        """The type of an expression; UNKNOWN after a complaint."""
        return self.within(bound).of(expr)

    def within(self, bound: Bindings | None) -> Typer:
        """The same where further variables run."""
        return replace(self, running_variables={**self.running_variables, **bound}) if bound else self

    def of(self, expr: syntax.Expr) -> Type:
        try:
            return super().of(expr)
        except Failure as failure:
            self.report.failure(failure)
            return UNKNOWN

    @property
    def known(self) -> Environment:
        return self.environment

    def constant(self, value: Value) -> Type:
        return value_type(value)

    def listed(self, expr: syntax.SetOf) -> Type:
        try:
            return super().listed(expr)
        except Failure:
            return Type((), Sets())

    # -- names

    def name(self, expr: syntax.Name) -> Type:
        if expr.id in self.running_variables:
            return self.running_variables[expr.id].type
        if expr.id in self.types:
            return self.types[expr.id]
        if expr.id in self.environment.values:
            return value_type(self.environment.values[expr.id])
        if expr.id in self.environment.parties:
            hint = f"write `for {expr.id}` inside sum(...) or mean(...), or define name[{expr.id}] = ..."
            raise Failure("PS0203", expr.span, f"{expr.id} is an index set, not a value", help=hint)
        if expr.id in self.components:
            raise Failure("PS0203", expr.span, f"{expr.id} is another spec", help=f"write {expr.id}.O for its output O")
        return UNKNOWN  # undefined: the pass for names has said so

    def _numeric(self, expr: syntax.Expr, found: Type) -> Type:
        """The type of an expression that must be made of numbers; a law stands for one draw from it."""
        if isinstance(found.element, Laws):
            return NUMBER if found.element.over is None else found.element.over.type
        if not found.numeric:
            message = f"numbers are expected here, and this is {found.describe()}"
            raise Failure("PS0208", expr.span, message, help=self._instead(expr, found))
        return found

    def _instead(self, expr: syntax.Expr, found: Type) -> str | None:
        """What can be computed of a value that is made of no numbers."""
        if isinstance(found.element, Symbols):
            return "compare words with mismatch(a, b) or total_variation(a, b)"
        if isinstance(found.element, Tables):
            text = self._text(expr)
            column = found.element.table.attributes[0][0]
            return f"count its records: write histogram({text}), or marginals({text}, {{{column}}}), or count({text})"
        if isinstance(found.element, Sets):
            return "braces list values; write ( ) around what belongs together, [ ] around a vector"
        if isinstance(found.element, Texts):
            return "leave the quotes out: they are for files and words"
        return None

    # -- building

    def vector(self, expr: syntax.Vector | syntax.TupleOf, items: list[Type]) -> Type:
        items = [self._numeric(item, found) for item, found in zip(expr.items, items, strict=True)]
        if any(not item.known for item in items):
            return UNKNOWN
        try:
            rows = any(isinstance(item, syntax.Vector) for item in expr.items)
            joined = None if rows else joined_length([item.shape for item in items])
        except ValueError:
            joined = None
        if joined is not None:
            return Type((joined,))
        for item, written in zip(items, expr.items, strict=True):
            if item.shape != items[0].shape:
                others = ((expr.items[0].span, items[0].describe()),)
                message = "the parts of a list must have one shape"
                self.report.error("PS0207", written.span, message, label=item.describe(), others=others)
        return Type((len(items), *items[0].shape))

    # -- arithmetic

    def unary(self, expr: Unary, value: Type) -> Type:
        found = self._numeric(expr.operand, value)
        match expr:
            case syntax.Norm() if found.known:
                return NUMBER
            case syntax.Transpose() if found.known:
                if len(found.shape) > 2:
                    raise Failure("PS0207", expr.span, f"{found.describe()} has no transpose")
                return Type(found.shape[::-1])
        return found

    def over(self, expr: syntax.Over) -> Type:
        several = expr.given.items if isinstance(expr.given, syntax.TupleOf) else (expr.given,)
        for one in (one for one in several if one is not None):
            self.of(one.name if isinstance(one, syntax.Known) else one)
        return self._numeric(expr.body, self.of(expr.body))

    def binary(self, expr: syntax.Binary, left: Type, right: Type) -> Type:
        if isinstance(expr.left, syntax.Name) and expr.left.id in self.inferred:
            self._numeric(expr.right, right)  # told before an output that takes its type from it
        left, right = self._numeric(expr.left, left), self._numeric(expr.right, right)
        return self._product(expr, left, right) if expr.op == "@" else self._entrywise(expr, left, right)

    def _entrywise(self, expr: syntax.Binary, left: Type, right: Type) -> Type:
        if not left.known or not right.known:
            return UNKNOWN
        divisor = self.public(expr.right) if expr.op == "/" else None
        if isinstance(divisor, Fraction) and not divisor:
            raise Failure("PS0260", expr.right.span, "division by zero")
        if left.shape == right.shape or not right.shape:
            return left
        if not left.shape:
            return right
        self._misfit(expr, left, right)
        return UNKNOWN

    def _product(self, expr: syntax.Binary, left: Type, right: Type) -> Type:
        if not left.known or not right.known:
            return UNKNOWN
        if not left.shape or not right.shape:
            one = expr.right if left.shape else expr.left
            message = "@ multiplies matrices and vectors, and this is one number"
            raise Failure("PS0207", one.span, message, help="write * to multiply by a number")
        inner = product_shape(left.shape, right.shape)
        if inner is not None:
            return Type(inner)
        self._misfit_product(expr, left, right)
        return UNKNOWN

    def _misfit_product(self, expr: syntax.Binary, left: Type, right: Type) -> None:
        hint = next(
            (text for text, a, b in self._transposed(expr, left, right) if product_shape(a, b) is not None), None
        )
        primary, others = self._sides(expr, left, right)
        rows = right.shape[0]
        self.report.error(
            "PS0207",
            primary,
            f"{self._text(expr.left)} has {left.shape[-1]} {'columns' if len(left.shape) > 1 else 'entries'} and "
            f"{self._text(expr.right)} has {rows} {'rows' if len(right.shape) > 1 else 'entries'}",
            label=f"{left.describe()} cannot multiply {self._text(expr.right)}, {right.describe()}",
            others=others,
            help=f"did you mean {hint}" if hint else self._other_extent(expr, left, right),
        )

    def _other_extent(self, expr: syntax.Binary, left: Type, right: Type) -> str | None:
        """The domain of an input, or the shape of a matrix, with which a product would fit."""
        if not isinstance(expr.right, syntax.Name) or len(right.shape) != 1:
            return None
        name, columns = expr.right.id, left.shape[-1]
        return f"{name} would need {columns} entries, or {self._text(expr.left)} {right.shape[0]} columns"

    def _transposed(
        self, expr: syntax.Binary, left: Type, right: Type
    ) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
        """The product with one side, or both, transposed (or untransposed), as it would be written."""
        text_left, text_right = self._text(expr.left), self._text(expr.right)
        flipped_left, flipped_right = left.shape[::-1], right.shape[::-1]
        other_left = self._flip(expr.left, text_left)
        other_right = self._flip(expr.right, text_right)
        word_left, word_right = (
            f"({min(one, other, key=len)}' is the transpose)"
            for one, other in ((text_left, other_left), (text_right, other_right))
        )
        return [
            (f"{other_left} @ {text_right}? {word_left}", flipped_left, right.shape),
            (f"{text_left} @ {other_right}? {word_right}", left.shape, flipped_right),
            (f"{other_left} @ {other_right}? {word_left}", flipped_left, flipped_right),
            (f"{text_right} @ {text_left}?", right.shape, left.shape),
        ]

    def _flip(self, expr: syntax.Expr, text: str) -> str:
        if isinstance(expr, syntax.Transpose):
            return self._text(expr.operand)
        simple = isinstance(expr, syntax.Name | syntax.Call | syntax.Index | syntax.Attribute)
        return f"{text}'" if simple else f"({text})'"

    def _text(self, expr: syntax.Expr) -> str:
        return self.report.source.slice(expr.span).strip() or "..."

    def _misfit(self, expr: syntax.Binary, left: Type, right: Type) -> None:
        word = {"+": "added to", "-": "subtracted from", "*": "multiplied with", "/": "divided by"}.get(
            expr.op, "combined with"
        )
        one, other = (right, left) if expr.op == "-" else (left, right)
        help_text = None
        if expr.op == "*" and product_shape(left.shape, right.shape) is not None:
            product = f"{self._text(expr.left)} @ {self._text(expr.right)}"
            help_text = f"write {product} for the matrix product; * acts entry by entry"
        elif left.shape == right.shape[::-1]:
            help_text = f"did you mean {self._flip(expr.right, self._text(expr.right))}? (' is the transpose)"
        else:
            help_text = self._deeper_help(expr, left, right)
        primary, others = self._sides(expr, left, right)
        message = f"{one.describe()} cannot be {word} {other.describe()}"
        self.report.error("PS0207", primary, message, label="shapes differ", others=others, help=help_text)

    def _deeper_help(self, expr: syntax.Binary, left: Type, right: Type) -> str | None:
        """`A' @ x + b` with b of the other extent: offer the product without its transpose."""
        for side, wanted in ((expr.left, right.shape), (expr.right, left.shape)):
            if isinstance(side, syntax.Binary) and side.op == "@":
                quiet = replace(self, report=Report(self.report.source))
                inner_left, inner_right = quiet.of(side.left), quiet.of(side.right)
                for text, a, b in self._transposed(side, inner_left, inner_right):
                    if product_shape(a, b) == wanted:
                        return f"did you mean {text}"
        return None

    def _sides(self, expr: syntax.Binary, left: Type, right: Type) -> tuple[Span, list[tuple[Span, str]]]:
        """The operator's place as primary, and where each named side got its shape."""
        others = []
        for side, kind in ((expr.left, left), (expr.right, right)):
            inner = side.operand if isinstance(side, syntax.Transpose) else side
            if isinstance(inner, syntax.Name) and inner.id in self.places:
                shape = self.types.get(inner.id, kind)
                others.append((self.places[inner.id], shape.describe()))
            else:
                others.append((side.span, kind.describe()))
        return expr.span, others

    # -- entries

    def index(self, expr: syntax.Index) -> Type:
        base = self.of(expr.base)
        if not base.known:
            return UNKNOWN
        if len(expr.indices) > len(base.shape):
            what = f"{base.describe()} takes {len(base.shape)}" if base.shape else f"{base.describe()} has no entries"
            raise Failure(
                "PS0209", expr.span, f"{len(expr.indices)} indices here; {what}", help=self._instead(expr.base, base)
            )
        for axis, item in enumerate(expr.indices):
            try:
                self._check_place(expr, item, axis, base)
            except Failure as failure:
                if failure.code != "PS0209" or not isinstance(expr, syntax.Counted):
                    raise
                what = f"{expr.text} is none of the entries that {self._text(expr.base)} was defined for"
                raise Failure("PS0209", failure.span, what) from failure
        return base.with_shape(base.shape[len(expr.indices) :])

    def _check_place(self, expr: syntax.Index, item: syntax.Expr, axis: int, base: Type) -> None:
        bound = self.running_variables
        name = expr.base.id if isinstance(expr.base, syntax.Name) else None
        party = self.indexed.get(name or "") if axis == 0 else None
        extent = base.shape[axis]
        if isinstance(item, syntax.Name) and item.id in self.environment.parties and item.id not in bound:
            hint = f"write {name or 'it'} alone for all of them, or `for {item.id}` inside sum(...) or mean(...)"
            raise Failure("PS0228", item.span, f"{item.id} stands for nobody in particular here", help=hint)
        if isinstance(item, syntax.Name) and item.id in bound:
            binding = bound[item.id]
            if party is not None and binding.party is not None and binding.party != party:
                raise Failure("PS0228", item.span, f"{name} is indexed by {party}, not by {binding.party}")
            place = binding.span or item.span
            fix = f"write {item.id} in 1..{extent}" if is_name(item.id) else f"write {name or ''}[1..{extent}] for all"
            if binding.low is not None and binding.low < 1:
                message = f"{item.id} starts at {binding.low}; entries are counted from 1"
                raise Failure("PS0209", place, message, help=fix)
            if binding.high is not None and binding.high > extent:
                message = f"{item.id} runs to {binding.high}, but there are {extent} entries"
                raise Failure("PS0209", place, message, help=fix)
            return
        kind = self.of(item)
        if isinstance(kind.element, Symbols) and kind.element.items is not None and not kind.shape:
            words = len(kind.element.items)
            if words != extent:
                message = f"{self._text(item)} is one of {words} words, and there are {extent} entries"
                raise Failure("PS0209", item.span, message, help="one entry for each word, in the order of its set")
            return
        kind = self._numeric(item, kind)
        if kind.shape:
            raise Failure("PS0209", item.span, f"an index is one number, not {kind.describe()}")
        value = self.public(item)
        if isinstance(value, Fraction) and (value.denominator != 1 or not 1 <= value <= extent):
            text = f"there is no entry {show(value)}"
            help_ = (
                f"the first is {self._text(expr.base)}[1], the last {self._text(expr.base)}[{extent}]"
                if len(base.shape) == 1
                else None
            )
            raise Failure("PS0209", item.span, text, label=f"entries are counted from 1 to {extent}", help=help_)

    def attribute(self, expr: syntax.Attribute) -> Type:
        match expr.base:
            case syntax.Name(id=name) | syntax.Index(base=syntax.Name(id=name)):
                found = self.attributes.get((name, expr.name))
            case _:
                name, found = "this", None
        if found is None:
            known = [attribute for owner, attribute in self.attributes if owner == name]
            near = nearest(expr.name, known)
            if (name, "*") in self.attributes:
                return UNKNOWN
            base = self.of(expr.base)
            if isinstance(base.element, Tables):
                raise _column(name, expr, base.element)
            if expr.name in ("T", "transpose") and base.known and base.numeric:
                text = self._text(expr.base)
                raise Failure("PS0229", expr.span, f"the transpose of {text} is written {text}'", help=f"write {text}'")
            hint = f"did you mean {name}.{near}?" if near else f"it has {', '.join(known)}" if known else None
            if expr.name == "weights" and not known:
                hint = f"weights belong to a data model: add {name} ~ thurstone_mosteller(d, n) under background"
            raise Failure("PS0229", expr.span, f"{name} has no {expr.name}", help=hint)
        if isinstance(expr.base, syntax.Index):
            self.of(expr.base)
            return found.with_shape(found.shape[len(expr.base.indices) :])
        return found

    # -- calls

    def call(self, expr: syntax.Call) -> Type:
        match expr.arguments:
            case (syntax.Attribute(base=syntax.Name() as table) as column, *_) if expr.function in OF_A_COLUMN:
                if isinstance(kind := self.name(table).element, Tables):
                    raise _statistic(expr, table.id, column, kind)
        found = self.bound(expr)
        return UNKNOWN if found is None else found.type

    def bound(self, expr: syntax.Call) -> Bound | None:
        """A library call with its public arguments fixed; None if a part of it is unknown."""
        arguments, _ = self.arguments(expr)
        every = (*arguments.positional, *arguments.keywords.values())
        return bind_call(expr, arguments) if all(argument.type.known for argument in every) else None

    def argument(self, item: syntax.Argument) -> tuple[Argument, Type]:
        match item:
            case syntax.Comprehension():
                return self.terms(item)
            case syntax.Call(function=function) if function in DOMAIN_CALLS:
                domain = read_domain(item, self.environment)
                return Argument(domain.type, None, domain, item.span), domain.type
        return super().argument(item)

    def described(self, item: syntax.Argument, value: Type) -> Argument:
        assert not isinstance(item, syntax.NO_EXPRESSION)
        domain = self.domains.get(item.id) if isinstance(item, syntax.Name) else None
        if isinstance(value.element, Laws):
            value = NUMBER if value.element.over is None else value.element.over.type
        return Argument(value, self.public(item), domain, item.span)

    def terms(self, item: syntax.Comprehension) -> tuple[Argument, Type]:
        binding, extent = self.running(item.variable, item.domain, item.span)
        body = UNKNOWN if extent is None else self.within({item.variable: binding}).of(item.body)
        found = body.with_shape((extent, *body.shape)) if extent is not None and body.known else UNKNOWN
        return Argument(found, None, None, item.span, iterated=True), found

    def running(self, variable: str, domain: syntax.Domain | None, span: Span) -> tuple[Binding, int | None]:
        """What `for variable in domain` runs through, and over how many."""
        if domain is None or (isinstance(domain, syntax.Name) and domain.id in self.environment.parties):
            party = variable if domain is None else self.report.source.slice(domain.span) or variable
            if isinstance(domain, syntax.Name):
                party = domain.id
            size = self.environment.parties.get(party)
            return Binding(NUMBER, party, 1, size), size
        around = [name for name in names_used(domain) if name in self.running_variables]
        environment = self.environment
        for name in around:  # as many for one value of an outer variable as for another: the first is taken
            first = self.running_variables[name].low
            environment = environment if first is None else environment.bind(name, Fraction(first))
        try:
            read = read_domain(domain, environment)
        except Failure as failure:
            if failure.code != "PS0261":
                self.report.failure(failure)
            return Binding(UNKNOWN), None
        if read.size is None or read.shape:
            raise Failure("PS0228", span, f"{variable} must run through a range lo..hi, a set or an index set")
        low, high = read.bounds
        whole = low is not None and high is not None and low.denominator == high.denominator == 1
        if around or not whole or low is None or high is None:
            return Binding(read.type), read.size
        return Binding(read.type, None, int(low), int(high), domain.span), read.size

    # -- public values

    def public(self, expr: syntax.Expr) -> Value | None:
        """The value of an expression made of literals and parameters only; None for all others."""
        values = self.environment.values
        if isinstance(expr, syntax.Call) and expr.function in ("csv", "npy"):
            return None
        for name in names_used(expr):
            held = values.get(name)
            if held is None and not isinstance(expr, syntax.SetOf):
                return None
            if isinstance(held, np.ndarray) and held.size > 4096:
                return None
        try:
            return evaluate(expr, self.environment)
        except Failure:
            return None


def product_shape(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape of a matrix product of vectors and matrices, None if they do not fit."""
    if not 1 <= len(left) <= 2 or not 1 <= len(right) <= 2:
        return None
    if left[-1] != right[0]:
        return None
    return left[:-1] + right[1:]


OF_A_COLUMN = {
    "mean": "write `output S` for sum({column}), `output N` for count({table}), and `output m = S / N`, which is free",
    "variance": "release histogram({table}, by = {{{name}}}), and compute it from that",
}
"""What to write in place of statistics that no noise of one size makes private."""


def _statistic(call: syntax.Call, table: str, column: syntax.Attribute, kind: Tables) -> Failure:
    """`mean(people.pay)`, which is not linear in the records: what gives it."""
    domain = dict(kind.table.attributes).get(column.name)
    if domain is None or (isinstance(domain, FiniteSet) and not all(isinstance(one, Fraction) for one in domain.items)):
        return _column(table, column, kind)
    message = f"solve cannot release the {call.function} of a column by itself: its sensitivity depends on the data"
    hint = OF_A_COLUMN[call.function].format(table=table, column=f"{table}.{column.name}", name=column.name)
    if isinstance(domain, Between) and call.function != "mean":
        hint = f"declare {column.name} in steps, as in grid(0, 100, 5): then its values can be counted, and {hint}"
    return Failure("PS0229", call.span, message, help=hint)


def _column(name: str, expr: syntax.Attribute, kind: Tables) -> Failure:
    """`people.age`: what can be written of a column, and which columns there are."""
    columns = dict(kind.table.attributes)
    domain = columns.get(expr.name)
    if domain is None:
        near = nearest(expr.name, columns)
        message = f"the table {name} has no column {expr.name}; its columns are {listing(columns)}"
        if expr.name in library():
            hint = f"write {expr.name}({name})"
        elif near is not None:
            hint = f"did you mean {near}? Its values can be counted: write marginals({name}, {{{near}}})"
        else:
            hint = f"declare it in the table, with few values or in steps: {expr.name} in grid(0, 200000, 1000)"
            hint += f"; then marginals({name}, {{{expr.name}}}) counts its values"
        return Failure("PS0229", expr.span, message, help=hint)
    counts = f"marginals({name}, {{{expr.name}}})"
    hint = f"write {counts} for how many records have each value"
    if not isinstance(domain, FiniteSet) or all(isinstance(item, Fraction) for item in domain.items):
        hint += f", sum({name}.{expr.name}) for their sum"
    message = f"a column cannot be computed with by itself: the values of {name}.{expr.name} can be counted or added up"
    return Failure("PS0229", expr.span, message, help=hint)


def plain(kind: Type) -> bool:
    """Whether it is one number, or unknown."""
    return not kind.known or (isinstance(kind.element, Numbers) and not kind.shape)
