"""What is gathered from all records of a person: how a column is, and in which domain it lies (`model.persons`)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from privspec.core.records import dataclass
from privspec.core.spans import Span
from privspec.kernel.core.reading import Refused
from privspec.kernel.derived import Derived
from privspec.kernel.persons import Gathered, Source
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.walk import items_of, with_children, word_of
from privspec.model.derived import NO, YES, follows, kernel_form, of_whole_numbers, one_of, source_column
from privspec.model.domains import Between, Domain, FiniteSet, Gathers, IntegerRange, Table, Unknown, days_of
from privspec.model.evaluate import Environment, evaluate
from privspec.model.reports import Failure
from privspec.model.values import show

WAYS = {"count": "count", "sum": "sum", "min": "least", "max": "greatest", "any": "any"}
"""Functions of all records of a person, and what the kernel calls them."""
MOST = 2**31
"""The most that a count of records is bounded by."""
Read = Callable[[syntax.Domain, Environment], Domain]


def clamped(call: syntax.Call) -> tuple[syntax.Call, syntax.Expr] | None:
    """What is gathered, and what it is compared with: `min(count(visits), 30)`."""
    if call.function not in ("min", "max") or len(call.arguments) != 2:
        return None
    for one, other in (call.arguments, call.arguments[::-1]):
        if isinstance(one, syntax.Call) and one.function in WAYS and isinstance(other, syntax.Expr):
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
                return domain, Gathered(self.name, self.source, "only", derived)
            case syntax.Call() if (found := clamped(value)) is not None:
                return self._bounded(value, found, within)
            case syntax.Call(function=function, arguments=(first, *conditions)) if function in WAYS:
                return self._called(value, function, first, conditions, within)
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
        _, made = self._called(inner, inner.function, inner.arguments[0], list(inner.arguments[1:]), self._anything)
        low, high = self._natural(made)
        low, high = (low, end) if call.function == "min" else (end, high)
        if low is None or high is None or low >= high:
            text = "this leaves an end open, or nothing between the two"
            raise Failure("PS0275", call.span, text, help=f"write person.{self.name} in -100..100, say")
        whole = self._whole(made) and end.denominator == 1
        return IntegerRange(int(low), int(high)) if whole else Between(low, high), made

    @property
    def _anything(self) -> Domain:
        return Between(Fraction(0), Fraction(1))

    def _natural(self, made: Gathered) -> tuple[Fraction | None, Fraction | None]:
        """The ends that follow."""
        if made.way == "count" or made.value is None:
            return Fraction(0), None
        formula = made.value.formula
        if formula is None:
            return None, None
        low, high = formula.between({one.name: one.ends for one in made.value.columns})
        if made.way == "sum":
            return (Fraction(0) if low >= 0 else None), (Fraction(0) if high <= 0 else None)
        return low, high

    def _whole(self, made: Gathered) -> bool:
        """Whether it is a whole number of a person's records."""
        return made.value is None or of_whole_numbers(made.value)

    def _called(
        self,
        call: syntax.Call,
        function: str,
        first: syntax.Argument,
        conditions: list[syntax.Argument],
        within: Domain | None,
    ) -> tuple[Domain, Gathered]:
        way, value, domain = WAYS[function], None, None
        if way in ("count", "any"):
            if not isinstance(first, syntax.Name):
                conditions = [first, *conditions]
            if way == "any" and not conditions:
                text = "any has a condition, for every person has some record"
                raise Failure("PS0275", call.span, text, help=f"as in any({self.source.table}, code = A)")
        elif isinstance(first, syntax.Expr):
            domain, value = self._value(first)
        else:
            raise Failure("PS0275", first.span, f"{function} is of a column", help=f"as in {function}(visits.spent)")
        when = [self._condition(one) for one in conditions]
        made = Gathered(
            self.name, self.source, way, value, tuple(one for one, _ in when), tuple(holds for _, holds in when)
        )
        if way == "any":
            if within is not None:
                raise Failure("PS0275", call.span, f"{self.name} is no or yes")
            return FiniteSet((NO, YES)), made
        if way in ("least", "greatest"):
            assert domain is not None
            assert value is not None
            if value.labels and days_of(domain) is None:
                raise Failure("PS0275", first.span, "words have no least and no greatest")
            return (domain if within is None else self._inside(call, within, made)), made
        if within is None:
            what = "how many records a person has" if way == "count" else "what a person's records add up to"
            hint = (
                f"say where it lies: person.{self.name} in 0..30, or min({spell(call)}, 30); what lies beyond counts "
            )
            hint += "as the end"
            raise Failure("PS0275", call.span, f"{what} has no bounds, so that no noise hides a person", help=hint)
        return self._inside(call, within, made), made

    def _inside(self, call: syntax.Call, within: Domain, made: Gathered) -> Domain:
        """The domain that is declared.

        Raises: Failure PS0275 if it is none of numbers.
        """
        low, high = within.bounds
        if made.value is not None and made.value.labels:
            raise Failure("PS0275", call.span, f"{self.name} has the values of {made.value.name}")
        if isinstance(within, IntegerRange) and self._whole(made) and -MOST <= within.low <= within.high <= MOST:
            return within
        if low is None or high is None or low >= high or not within.type.numeric or within.shape:
            hint = f"as in person.{self.name} in 0..30, or in [0, 1000]"
            raise Failure("PS0275", call.span, f"{self.name} lies between two numbers", help=hint)
        return Between(low, high)

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


def _spelt(node: syntax.Node) -> str:
    """An expression with names of columns alone."""

    def change(one: syntax.Node) -> syntax.Node:
        return syntax.Name(one.name) if isinstance(one, syntax.Attribute) else with_children(one, change)

    text = spell(change(node))
    return text[1:-1] if isinstance(node, syntax.Holds) else text
