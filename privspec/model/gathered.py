"""What is gathered from all records of a person: how a column is, and in which domain it lies (`model.persons`)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from privspec.core.records import dataclass
from privspec.core.spans import Span
from privspec.kernel.core.reading import Refused
from privspec.kernel.derived import Derived
from privspec.kernel.persons import WAYS, Gathered, Source
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.walk import items_of, with_children, word_of
from privspec.model.derived import NO, YES, follows, kernel_form, of_whole_numbers, one_of, source_column
from privspec.model.domains import Between, Domain, FiniteSet, Gathers, IntegerRange, Table, Unknown, moments_of
from privspec.model.evaluate import Environment, evaluate
from privspec.model.reports import Failure
from privspec.model.values import show


@dataclass(frozen=True, slots=True)
class Function:
    """A function of all records of a person.

    `way`: what the kernel calls it. `domain`: that of all that it comes to, where it is always the same; else it is
    that of the values, unless it has to be declared, for they are `unbounded`: what they are, in words.
    """

    way: str
    domain: Domain | None = None
    unbounded: str = ""


FUNCTIONS = {
    "count": Function("count", unbounded="how many records a person has"),
    "sum": Function("sum", unbounded="what a person's records add up to"),
    "min": Function("least"),
    "max": Function("greatest"),
    "any": Function("any", FiniteSet((NO, YES))),
}
ONLY = "only"
"""The way of a column itself, in the kernel's words."""
MOST = 2**31
"""The most that a count of records is bounded by."""
Read = Callable[[syntax.Domain, Environment], Domain]


def clamped(call: syntax.Call) -> tuple[syntax.Call, syntax.Expr] | None:
    """What is gathered, and what it is compared with: `min(count(visits), 30)`."""
    if call.function not in ("min", "max") or len(call.arguments) != 2:
        return None
    for one, other in (call.arguments, call.arguments[::-1]):
        if isinstance(one, syntax.Call) and one.function in FUNCTIONS and isinstance(other, syntax.Expr):
            return one, other
    return None


def sources_of(call: syntax.Call, _: Environment) -> tuple[Source, ...]:
    """The tables that a table of persons is made of."""
    return tuple(
        Source(one.name, one.domain.value)
        for one in call.arguments
        if isinstance(one, syntax.Member) and isinstance(one.domain, syntax.String)
    )


def gathers(name: str, call: syntax.Call, environment: Environment, read: Read) -> tuple[Domain, Gathers]:
    """The domain of a column that is made of all records of a person, and how it is.

    Raises: Failure PS0206, PS0275.
    """
    value, text, whose, table, *bounds = call.arguments
    assert isinstance(value, syntax.Expr)
    assert isinstance(text, syntax.String)
    assert isinstance(whose, syntax.String)
    assert isinstance(table, syntax.Member)
    records = read(table.domain, environment)
    assert isinstance(records, Table)
    within = next((read(one.domain, environment) for one in bounds if isinstance(one, syntax.Member)), None)
    reader = _Gatherer(name, Source(table.name, whose.value), records, environment, read)
    try:
        domain, made = reader.read(value, within)
    except Refused as refused:
        raise Failure("PS0275", call.span, f"this {refused}") from refused
    return domain, Gathers(made, text.value)


@dataclass(frozen=True, eq=False, slots=True)
class _Gatherer:
    name: str
    source: Source
    records: Table
    environment: Environment
    domain: Read

    def read(self, value: syntax.Expr, within: Domain | None) -> tuple[Domain, Gathered]:
        match value:
            case syntax.Attribute():
                domain, derived = self._value(value)
                if within is not None:
                    raise Failure("PS0275", value.span, f"{self.name} has the values of {derived.name}")
                return domain, Gathered(self.name, self.source, ONLY, derived)
            case syntax.Call() if (found := clamped(value)) is not None:
                return self._bounded(value, found, within)
            case syntax.Call(function=name) if name in FUNCTIONS:
                return self._declared(value, within, *self._called(value))
        hint = "count(visits), sum(visits.spent), min, max, and any(visits, code = A), each with conditions or none"
        raise Failure("PS0275", value.span, "nothing is gathered by this", help=hint)

    def _bounded(
        self, call: syntax.Call, found: tuple[syntax.Call, syntax.Expr], within: Domain | None
    ) -> tuple[Domain, Gathered]:
        """`min(count(visits), 30)`: the least or the greatest of it and a public number."""
        inner, other = found
        end = evaluate(other, self.environment)
        if not isinstance(end, Fraction) or within is not None:
            raise Failure("PS0275", call.span, "what is gathered is bounded once, by public numbers")
        made, _ = self._called(inner)
        self._numeric(inner, made)
        low, high = self._ends(FUNCTIONS[inner.function], made)
        low, high = (low, end) if call.function == "min" else (end, high)
        if low is None or high is None or low >= high:
            text = "this leaves an end open, or nothing between the two"
            raise Failure("PS0275", call.span, text, help=f"write person.{self.name} in -100..100, say")
        whole = _whole(made) and end.denominator == 1
        return IntegerRange(int(low), int(high)) if whole else Between(low, high), made

    def _ends(self, function: Function, made: Gathered) -> tuple[Fraction | None, Fraction | None]:
        """The ends that follow; of records that are counted as of ones that are added up."""
        low, high = (made.value and made.value.between()) or (Fraction(1), Fraction(1))
        if not function.unbounded:
            return low, high
        return (Fraction(0) if low >= 0 else None), (Fraction(0) if high <= 0 else None)

    def _called(self, call: syntax.Call) -> tuple[Gathered, Domain | None]:
        """What a function of all records is, and the domain that it has by itself."""
        function, value = FUNCTIONS[call.function], None
        domain, (first, *conditions) = function.domain, call.arguments
        if not WAYS[function.way].of_values:
            if not isinstance(first, syntax.Name):
                conditions = [first, *conditions]
            if not function.unbounded and not conditions:
                text = f"{call.function} has a condition, for every person has some record"
                hint = f"as in {call.function}({self.source.table}, code = A)"
                raise Failure("PS0275", call.span, text, help=hint)
        elif isinstance(first, syntax.Expr):
            of_value, value = self._value(first)
            domain = None if function.unbounded else of_value
            if domain is not None and value.labels and moments_of(domain) is None:
                raise Failure("PS0275", first.span, "words have no least and no greatest")
        else:
            hint = f"as in {call.function}(visits.spent)"
            raise Failure("PS0275", first.span, f"{call.function} is of a column", help=hint)
        when = [self._condition(one) for one in conditions]
        parts = tuple(one for one, _ in when), tuple(holds for _, holds in when)
        return Gathered(self.name, self.source, function.way, value, *parts), domain

    def _declared(
        self, call: syntax.Call, within: Domain | None, made: Gathered, domain: Domain | None
    ) -> tuple[Domain, Gathered]:
        """The domain that is declared, else that which it has by itself.

        Raises: Failure PS0275 if there is none, or if what is declared is none of numbers.
        """
        if within is None:
            if domain is None:
                hint = f"say where it lies: person.{self.name} in 0..30, or min({spell(call)}, 30); "
                hint += "what lies beyond counts as the end"
                text = f"{FUNCTIONS[call.function].unbounded} has no bounds, so that no noise hides a person"
                raise Failure("PS0275", call.span, text, help=hint)
            return domain, made
        self._numeric(call, made)
        low, high = within.bounds
        if isinstance(within, IntegerRange) and _whole(made) and -MOST <= within.low <= within.high <= MOST:
            return within, made
        if low is None or high is None or low >= high or not within.type.numeric or within.shape:
            hint = f"as in person.{self.name} in 0..30, or in [0, 1000]"
            raise Failure("PS0275", call.span, f"{self.name} lies between two numbers", help=hint)
        return Between(low, high), made

    def _numeric(self, call: syntax.Call, made: Gathered) -> None:
        """Raises: Failure PS0275 for words, which have no ends to be bounded by."""
        if FUNCTIONS[call.function].domain is not None:
            raise Failure("PS0275", call.span, f"{self.name} is no or yes")
        if made.value is not None and made.value.labels:
            raise Failure("PS0275", call.span, f"{self.name} has the values of {made.value.name}")

    def _value(self, expr: syntax.Expr) -> tuple[Domain, Derived]:
        """What is looked at in each record."""
        attributes, before = dict(self.records.attributes), dict(self.records.derived)
        name = expr.name if isinstance(expr, syntax.Attribute) else ""
        if name:
            self._column(name, expr.span)
            if name in before:
                return attributes[name], kernel_form(name, before[name])
            if not attributes[name].type.numeric:
                labels = tuple(map(show, attributes[name].elements()))
                source = source_column(name, attributes[name])
                return attributes[name], Derived(name, (source,), None, (), labels, tuple(range(len(labels))))
        text = name or _spelt(expr)
        domain, found = follows(syntax.Keyword(text, expr, span=expr.span), attributes, before, self.environment)
        return domain, kernel_form(text, found)

    def _condition(self, one: syntax.Argument) -> tuple[Derived, tuple[str, ...]]:
        """What a condition looks at in a record, and the labels for which it holds."""
        attributes, before = dict(self.records.attributes), dict(self.records.derived)
        match one:
            case syntax.Condition(op="=", left=syntax.Attribute(name=name), right=value):
                return self._condition(syntax.Keyword(name, value, span=one.span))
            case syntax.Condition(op=op, left=left, right=right):
                holds = syntax.Holds(op, left, right, span=one.span)
                text = _spelt(holds)
                setting = syntax.Keyword(text, holds, span=one.span)
                return kernel_form(text, follows(setting, attributes, before, self.environment)[1]), (YES,)
            case syntax.Keyword(name=name, value=value):
                listed = [self._public(item) for item in items_of(value)]
                asked: Callable[[Any], bool] = lambda cell: cell in listed  # noqa: E731
            case syntax.Member(name=name, domain=domain):
                inside = self.domain(domain, self.environment)
                asked = inside.contains
                listed = list(inside.elements()) if isinstance(inside, FiniteSet) else []
            case _:
                text = "a condition on records is code = A, code in {A, B}, or spent >= 10"
                raise Failure("PS0275", one.span, text)
        self._known(name, self._column(name, one.span), listed, one.span)
        if isinstance(attributes[name], Between):
            hint = f"as in {name} >= 10"
            raise Failure("PS0275", one.span, "numbers that are measured are compared with < and >=", help=hint)
        if name in before and before[name].labels:
            return kernel_form(name, before[name]), tuple(label for label in before[name].labels if asked(label))
        setting = syntax.Keyword(name, syntax.Name(name), span=one.span)
        return kernel_form(_spelt(one), one_of(setting, attributes, before, self.environment, asked)), (YES,)

    def _column(self, name: str, span: Span) -> Domain:
        """Raises: Failure PS0206 for a column that is not there, or of which nobody has listed the values."""
        domain = dict(self.records.attributes).get(name)
        if domain is None:
            hint = f"it has {', '.join(self.records.names)}"
            raise Failure("PS0206", span, f"{self.source.table} has no column {name}", help=hint)
        if isinstance(domain, Unknown):
            hint = f"declare its values, as in {name} in {{a, b}}"
            raise Failure("PS0206", span, f"{name} has unknown values: nothing tells them apart", help=hint)
        return domain

    def _public(self, item: syntax.Expr) -> Any:
        word = word_of(item)
        return evaluate(item, self.environment) if word is None or word in self.environment.values else word

    def _known(self, name: str, domain: Domain, listed: list[Any], span: Span) -> None:
        elements = list(domain.elements()) if not isinstance(domain, Between) else []
        unknown = next((one for one in listed if elements and one not in elements), None)
        if unknown is not None:
            raise Failure("PS0206", span, f"{name} has no value {unknown}")


def _whole(made: Gathered) -> bool:
    """Whether it is a whole number of a person's records."""
    return made.value is None or of_whole_numbers(made.value)


def _spelt(node: syntax.Node) -> str:
    """An expression with names of columns alone."""

    def change(one: syntax.Node) -> syntax.Node:
        return syntax.Name(one.name) if isinstance(one, syntax.Attribute) else with_children(one, change)

    text = spell(change(node))
    return text[1:-1] if isinstance(node, syntax.Holds) else text
