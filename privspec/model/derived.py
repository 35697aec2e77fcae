"""Columns that follow from others of the same record: `people.group = cut(people.age, [0, 15, 30, 65, 100])`.

Their definitions become settings of the table, `table(age in 0..100, group = cut(people.age, ..))`: a table is read
with all of its columns at once, and questions about them need to know no more than their domains, which follow. What is
added up in a form of its own, as in `sum(people.hours * people.pay)`, is a column under the words it is written in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import date, datetime
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from math import ceil, floor
from operator import ge, gt, le, lt, ne
from typing import Any

import numpy as np

from privspec.core.records import dataclass, replace
from privspec.core.spans import Span
from privspec.kernel.core.reading import Refused
from privspec.kernel.derived import (
    COMBINED,
    MOST,
    POWER,
    Combined,
    Derived,
    Fixed,
    Formula,
    Named,
    Power,
    SourceColumn,
)
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.walk import every, items_of, names_used, walk, with_children, word_of
from privspec.model.domains import Between, Domain, FiniteSet, Follows, IntegerRange, cut_words, measured, moments_of
from privspec.model.evaluate import Environment, evaluate
from privspec.model.library import function_of
from privspec.model.reports import Failure, Report, suggestion
from privspec.model.values import show

LISTED = 5
"""Values that a message names."""
LARGEST = 2**20
"""Whole numbers that a column may be; more lie between two ends."""
NO, YES = "no", "yes"
SIGNS = {"<": lt, "<=": le, ">": gt, ">=": ge}


# --- from definitions to settings of tables -----------------------------------------------------------


def with_columns(spec: syntax.Spec, report: Report) -> syntax.Spec:
    """The spec with definitions of columns as settings of their tables."""
    tables = {one.target.name for one in spec.variables if _call_of(one.domain) is not None}
    found: dict[str, list[syntax.Keyword]] = {}
    kept = list[syntax.BackgroundStatement]()
    for line in spec.background:
        match line:
            case syntax.Relation(op="=", left=syntax.Attribute(base=syntax.Name(id=table), name=name), right=right) if (
                table in tables
            ):
                others = [one.name for one in every(right, syntax.Attribute) if not _is(one.base, table)]
                if others:
                    message = f"{name} follows from columns of {table} alone"
                    hint = "what other tables hold about the same person is in other records"
                    report.error("PS0206", right.span, message, help=hint)
                own, column = found.setdefault(table, []), syntax.Keyword(name, held(right), span=line.span)
                own += [] if column in own else [column]  # parts of a system may each define it
            case syntax.Relation(right=syntax.Condition(op=sign, span=span)):
                hint = "count the records that are meant, as in count(people, age >= 65); of columns of a table, one "
                hint += "may be yes or no: people.adult = people.age >= 18"
                report.error("PS0106", span, "a comparison has no value here", label=f"{sign} compares", help=hint)
                kept.append(replace(line, right=held(line.right)))
            case _:
                kept.append(line)
    return spec if tuple(kept) == spec.background else _with_settings(replace(spec, background=tuple(kept)), found)


def held(value: syntax.Expr | syntax.Condition) -> syntax.Expr:
    """A comparison that stands without brackets, as a value."""
    if isinstance(value, syntax.Condition):
        return syntax.Holds(value.op, value.left, value.right, span=value.span)
    return value


def _call_of(domain: syntax.Domain | None) -> syntax.Call | None:
    return next((call for call in every(domain, syntax.Call) if call.function == "table"), None)


def _is(node: syntax.Node, name: str) -> bool:
    return isinstance(node, syntax.Name) and node.id == name


def _with_settings(spec: syntax.Spec, found: Mapping[str, list[syntax.Keyword]]) -> syntax.Spec:
    def changed(variable: syntax.Variable, more: list[syntax.Keyword]) -> syntax.Variable:
        def change(node: syntax.Node) -> syntax.Node:
            if isinstance(node, syntax.Call) and node.function == "table":
                return replace(node, arguments=(*node.arguments, *more))
            return with_children(node, change)

        return replace(variable, domain=None if variable.domain is None else change(variable.domain))  # type: ignore[arg-type]

    variables = (changed(one, found.get(one.target.name, [])) for one in spec.variables)
    return replace(spec, variables=tuple(variables))


def with_sums(
    spec: syntax.Spec, tables: Mapping[str, tuple[tuple[str, Domain], ...]], simple: Callable[[syntax.Expr], bool]
) -> syntax.Spec:
    """The spec with a column for each sum of what is no column: `sum((people.pay - 50)^2)`.

    Args: tables, the columns of each; simple, whether what is added up is a product that needs no column of its own.
    """
    found: dict[str, dict[str, syntax.Keyword]] = {}

    def change(node: syntax.Node) -> syntax.Node:
        match node:
            case syntax.Call(function="sum", arguments=(first, *rest)) if (
                isinstance(first, syntax.Expr) and (table := _table_of(first, tables)) is not None
            ):
                columns = dict(tables[table])
                many = sum(measured(columns[one.name]) for one in every(first, syntax.Attribute) if one.name in columns)
                if isinstance(first, syntax.Attribute) or (many < 2 and not _powers(first, columns) and simple(first)):
                    return with_children(node, change)
                name = spell(_bare(first))
                found.setdefault(table, {}).setdefault(name, syntax.Keyword(name, first, span=first.span))
                column = syntax.Attribute(syntax.Name(table, span=first.span), name, span=first.span)
                return replace(node, arguments=(column, *map(change, rest)))  # type: ignore[arg-type]
            case _:
                return with_children(node, change)

    changed = change(spec)
    assert isinstance(changed, syntax.Spec)
    return _with_settings(changed, {table: list(some.values()) for table, some in found.items()}) if found else spec


def _table_of(expr: syntax.Expr, tables: Mapping[str, object]) -> str | None:
    """The one table whose columns an expression is made of."""
    found = {one.base.id for one in every(expr, syntax.Attribute) if isinstance(one.base, syntax.Name)}
    if len(found) != 1 or any(isinstance(node, syntax.Call) and node.function in tables for node in walk(expr)):
        return None
    (table,) = found
    return table if table in tables else None


def _powers(expr: syntax.Expr, columns: Mapping[str, Domain]) -> bool:
    """Whether a measured column is taken to a power."""
    bases = (one.left for one in every(expr, syntax.Binary) if one.op == "^")
    return any(
        measured(columns[one.name]) for base in bases for one in every(base, syntax.Attribute) if one.name in columns
    )


def _bare(node: syntax.Node) -> syntax.Expr:
    """An expression with the names of columns in place of columns."""

    def change(one: syntax.Node) -> syntax.Node:
        return syntax.Name(one.name, span=one.span) if isinstance(one, syntax.Attribute) else with_children(one, change)

    found = change(node)
    assert isinstance(found, syntax.Expr)
    return found


# --- what follows -------------------------------------------------------------------------------------


def follows(
    setting: syntax.Keyword, attributes: Mapping[str, Domain], before: Mapping[str, Follows], environment: Environment
) -> tuple[Domain, Follows]:
    """The domain of a column that follows from others, and how it does.

    Raises: Failure PS0206 for what does not follow from columns of numbers, words or days.
    """
    return _Reader(setting, attributes, before, environment).read()


def one_of(
    setting: syntax.Keyword,
    attributes: Mapping[str, Domain],
    before: Mapping[str, Follows],
    environment: Environment,
    asked: Callable[[Any], bool],
) -> Follows:
    """Whether a column, named by the setting, has one of the values that are asked for: no or yes.

    Raises: Failure PS0206 where all values are, or none.
    """
    reader = _Reader(setting, attributes, before, environment)
    domain = reader._domain(setting.name, setting.span)
    texts = [YES if asked(one) else NO for one in domain.elements()]
    return reader._tabled(setting.name, setting.span, texts, (NO, YES))[1]


def kernel_form(name: str, one: Follows) -> Derived:
    """The same in the kernel's terms."""
    columns = tuple(source_column(*source) for source in one.columns)
    return Derived(name, columns, one.formula, cut_words(one.cuts), one.labels, one.places)


def source_column(name: str, domain: Domain) -> SourceColumn:
    """A column of the data in the kernel's terms."""
    if isinstance(domain, IntegerRange):
        return SourceColumn(name, (), domain.low, domain.high)
    return SourceColumn(name, tuple(map(show, domain.elements())), between=isinstance(domain, Between))


@dataclass(frozen=True, eq=False, slots=True)
class _Reader:
    setting: syntax.Keyword
    attributes: Mapping[str, Domain]
    before: Mapping[str, Follows]
    environment: Environment

    def read(self) -> tuple[Domain, Follows]:
        try:
            return self._follows()
        except Refused as refused:
            raise Failure("PS0206", self.setting.span, f"this {refused}") from refused

    def _follows(self) -> tuple[Domain, Follows]:
        match self.setting.value:
            case syntax.Holds() as compared:
                return self._compared(compared)
            case syntax.Call(function="cut", arguments=(of, points)) if isinstance(points, syntax.Expr):
                return self._cut(of, points)
            case syntax.Call(function="cut") as call:
                hint = "as in cut(people.age, [0, 15, 30, 65])"
                raise Failure("PS0206", call.span, "cut takes a column and the numbers at which it is cut", help=hint)
            case syntax.Call(
                function="lookup",
                arguments=(of, syntax.Call(function="csv", arguments=(syntax.String(value=file),)) as read),
            ) if isinstance(of, syntax.Expr):
                return self._listed(of, file, read.span)
            case syntax.Call(function="lookup") as call:
                return self._grouped(call)
            case syntax.Call(arguments=(of,)) as call if (of_day := function_of(call).of_day) is not None:
                return self._of_days(call.function, of, of_day)
            case value:
                return self._number(value)

    # -- numbers

    def _number(self, value: syntax.Expr) -> tuple[Domain, Follows]:
        formula = self._formula(value)
        low, high = self._ends(formula, value.span)
        whole = self._of_whole_numbers(formula)
        if whole and high - low < LARGEST:
            domain: Domain = IntegerRange(int(low), int(high))
            every_value = _each_once(formula) and _sum_of_units(formula)
        else:
            if low == high:
                raise Failure("PS0206", value.span, f"{self.setting.name} has one value only, {show(low)}")
            domain, every_value = Between(low, high), _each_once(formula) and (not whole or not _turns(formula))
        return domain, self._made(formula, (), (), every_value)

    def _made(
        self, formula: Formula, cuts: tuple[tuple[Fraction, bool], ...], labels: tuple[str, ...], every_value: bool
    ) -> Follows:
        text = spell(_bare(self.setting.value))
        return Follows(self._sources(formula), formula, cuts, labels, (), text, every_value)

    def _sources(self, formula: Formula) -> tuple[tuple[str, Domain], ...]:
        """The columns of the data, in their order; numbers of any other set lie between its ends."""
        found = list[tuple[str, Domain]]()
        for name, domain in self._columns():
            if name in formula.named:
                low, high = domain.bounds
                assert low is not None
                assert high is not None
                found.append((name, domain if isinstance(domain, IntegerRange | Between) else Between(low, high)))
        return tuple(found)

    def _of_whole_numbers(self, formula: Formula) -> bool:
        return whole(formula) and all(isinstance(domain, IntegerRange) for _, domain in self._sources(formula))

    def _columns(self) -> Iterator[tuple[str, Domain]]:
        return ((name, domain) for name, domain in self.attributes.items() if name not in self.before)

    def _ends(self, formula: Formula, span: Span) -> tuple[Fraction, Fraction]:
        ends = {}
        for name, domain in self._columns():
            low, high = domain.bounds
            if low is not None and high is not None:
                ends[name] = low, high
        try:
            return formula.between(ends)
        except Refused as refused:
            hint = "bound it away from 0 first, as in people.pay / max(people.hours, 1)"
            raise Failure("PS0206", span, f"this {refused}", help=hint) from refused

    def _formula(self, expr: syntax.Expr) -> Formula:
        found = self._read(expr)
        if len(found.named) > MOST:
            raise Failure("PS0206", expr.span, f"at most {MOST} columns stand in one formula")
        if not found.named:
            hint = f"as in {self.setting.name} = people.age >= 18"
            raise Failure("PS0206", expr.span, "no column of the table stands here", help=hint)
        return found

    def _read(self, expr: syntax.Expr) -> Formula:
        column = self._column(expr)
        if column is not None:
            return self._named(column, expr.span)
        if not any(every(expr, syntax.Attribute)) and not any(name in self.attributes for name in names_used(expr)):
            return Fixed(self._fixed(expr))
        match expr:
            case syntax.Negate(operand=operand):
                return Combined("-", Fixed(Fraction(0)), self._read(operand))
            case syntax.Absolute(operand=operand):
                return Power(self._read(operand), 1, size=True)
            case syntax.Binary(op="^", left=left, right=right):
                exponent = self._fixed(right)
                if exponent == 1:
                    return self._read(left)
                if exponent.denominator != 1 or not 2 <= exponent <= POWER:
                    raise Failure("PS0206", right.span, f"powers are whole numbers from 1 to {POWER}")
                return Power(self._read(left), int(exponent))
            case syntax.Binary(op="+" | "-" | "*" | "/" as sign, left=left, right=right):
                return Combined(sign, self._read(left), self._read(right))
            case syntax.Call(function="min" | "max" as function, arguments=parts) if len(parts) > 1:
                some = [self._read(one) for one in parts if isinstance(one, syntax.Expr)]
                if len(some) == len(parts):
                    return reduce(lambda a, b: Combined(function, a, b), some)
        hint = "numbers of a record are computed with + - * /, whole powers, | |, min and max, and told apart by cut, "
        hint += "comparisons and parts of a date"
        raise Failure("PS0206", expr.span, "no column follows from this", help=hint)

    def _column(self, expr: syntax.Expr) -> str | None:
        match expr:
            case syntax.Attribute(base=syntax.Name(), name=name):
                return name
            case syntax.Name(id=name) if name in self.attributes:
                return name
            case _:
                return None

    def _domain(self, name: str, span: Span) -> Domain:
        domain = self.attributes.get(name)
        if domain is None:
            hint = suggestion(name, self.attributes) or f"it has {', '.join(self.attributes)}"
            raise Failure("PS0206", span, f"the table has no column {name} before this line", help=hint)
        return domain

    def _named(self, name: str, span: Span) -> Formula:
        domain, derived = self._domain(name, span), self.before.get(name)
        low, high = domain.bounds
        if derived is not None and derived.formula is not None and not derived.cuts:
            return derived.formula
        if low is None or high is None or not domain.type.numeric or derived is not None:
            hint = "numbers of a record are computed with; words are told apart, as in people.sex != F"
            raise Failure("PS0206", span, f"the values of {name} are no numbers", help=hint)
        return Named(name)

    def _fixed(self, expr: syntax.Expr) -> Fraction:
        found = evaluate(expr, self.environment)
        if not isinstance(found, Fraction):
            raise Failure("PS0206", expr.span, "a public number is expected here")
        return found

    # -- what numbers are told apart by

    def _compared(self, compared: syntax.Holds) -> tuple[Domain, Follows]:
        """(no, yes): a comparison, as one cut of a number."""
        if compared.op == "!=":
            return self._told_apart(compared, ne)
        if isinstance(compared.left, syntax.String) or isinstance(compared.right, syntax.String):
            return self._told_apart(compared, SIGNS[compared.op])
        sides = self._read(compared.left), self._read(compared.right)
        low, high = sides if compared.op in ("<", "<=") else (sides[1], sides[0])
        if not low.named and not high.named:
            self._formula(compared.left)
        # yes where low < high, or low <= high: beyond a cut of high - low, or of the one of them that varies
        at_least = compared.op in ("<=", ">=")
        if isinstance(low, Fixed):
            formula, cut = high, low.number
        elif isinstance(high, Fixed):
            formula, cut = Combined("-", Fixed(Fraction(0)), low), -high.number
        else:
            formula, cut = Combined("-", high, low), Fraction(0)
        if len(formula.named) > MOST:
            raise Failure("PS0206", compared.span, f"at most {MOST} columns stand in one formula")
        return self._labelled(formula, ((cut, not at_least),), (NO, YES), compared.span)

    def _told_apart(self, compared: syntax.Holds, holds: Callable[[Any, Any], bool]) -> tuple[Domain, Follows]:
        """A comparison of words, of days, or of whole numbers that may be one number and no other."""
        turned = (compared.right, compared.left, lambda value, other: holds(other, value))
        for mine, other, sign in ((compared.left, compared.right, holds), turned):
            name = self._column(mine)
            domain = None if name is None else self.attributes.get(name)
            if name is None or domain is None or measured(domain):
                continue
            word = other.id if isinstance(other, syntax.Name) else getattr(other, "value", None)
            value = word if isinstance(word, str) else self._fixed(other)
            elements = list(domain.elements())
            if value not in elements:
                hint = suggestion(str(value), [str(one) for one in elements])
                raise Failure("PS0206", other.span, f"{name} has no value {show(value)}", help=hint)
            if compared.op != "!=" and moments_of(domain) is None:
                raise Failure("PS0206", mine.span, f"the words of {name} have no order")
            return self._tabled(name, mine.span, [YES if sign(one, value) else NO for one in elements], (NO, YES))
        hint = "as in people.sex != F; numbers that are measured are compared with < and >="
        raise Failure("PS0206", compared.span, "a column of words, or of whole numbers, is told apart here", help=hint)

    def _cut(self, of: syntax.Argument, points: syntax.Expr) -> tuple[Domain, Follows]:
        if not isinstance(of, syntax.Expr):
            raise Failure("PS0206", of.span, "a column of numbers is cut")
        formula = self._formula(of)
        low, high = self._ends(formula, of.span)
        listed = evaluate(points, self.environment)
        at = listed.ravel().tolist() if isinstance(listed, np.ndarray) else []
        if not at or not all(isinstance(point, Fraction) for point in at):
            raise Failure("PS0206", points.span, "the numbers of cut are a public vector", help="as in [0, 15, 30, 65]")
        if sorted(set(at)) != at:
            raise Failure("PS0206", points.span, "the numbers of cut ascend", help="as in [0, 15, 30, 65]")
        # the last number closes the last class where nothing lies beyond it
        inner = [point for point in at if low < point <= high and not (point == high == at[-1] and len(at) > 1)]
        if not inner:
            text = f"none of these numbers tells values from {show(low)} to {show(high)} apart"
            raise Failure("PS0206", points.span, text)
        whole = self._of_whole_numbers(formula)
        ends = [low, *inner, high]
        labels = []
        for place, (first, last) in enumerate(pairwise(ends)):
            if not whole:
                labels.append(f"{show(first)} to {'under ' if place < len(inner) else ''}{show(last)}")
                continue
            start, stop = ceil(first), floor(last) if place == len(inner) else ceil(last) - 1
            labels.append(show(Fraction(start)) if start == stop else f"{start} to {stop}")
        return self._labelled(formula, tuple((point, False) for point in inner), tuple(labels), points.span)

    def _labelled(
        self, formula: Formula, cuts: tuple[tuple[Fraction, bool], ...], labels: tuple[str, ...], span: Span
    ) -> tuple[Domain, Follows]:
        low, high = self._ends(formula, span)
        whole = self._of_whole_numbers(formula)
        if len(set(labels)) < len(labels):
            raise Failure("PS0206", span, "two of these classes would have one name")
        inside = [cut for cut in cuts if (low, False) < cut <= (high, False)]
        if len(inside) < len(cuts):
            text = f"this is the same for all values, which lie from {show(low)} to {show(high)}"
            raise Failure("PS0206", span, text)
        each = _each_once(formula) and (_sum_of_units(formula) if whole else True)
        if whole:
            firsts = [ceil(low), *(floor(point) + 1 if up_to else ceil(point) for point, up_to in cuts)]
            each = each and all(a < b for a, b in zip(firsts, [*firsts[1:], floor(high) + 1], strict=True))
        return FiniteSet(labels), self._made(formula, cuts, labels, each)

    # -- days and words

    def _of_days(self, function: str, of: syntax.Argument, of_day: Callable[[date], str]) -> tuple[Domain, Follows]:
        name = self._column(of) if isinstance(of, syntax.Expr) else None
        if name is None:
            raise Failure("PS0206", of.span, f"{function} is of a column of days", help=f"as in {function}(visits.day)")
        days = moments_of(self._domain(name, of.span))
        if days is None:
            hint = f"declare {name} in 2025-01-01..2025-12-31, say"
            raise Failure("PS0206", of.span, f"the values of {name} are no days", help=hint)
        if function == "hour" and not isinstance(days[0], datetime):
            hint = f"declare {name} in 2025-01-01T00:00..2025-01-31T23:00, say"
            raise Failure("PS0206", of.span, f"the values of {name} are days, and no hours", help=hint)
        texts = [of_day(day) for day in days]
        return self._tabled(name, of.span, texts, tuple(dict.fromkeys(texts)))

    def _grouped(self, call: syntax.Call) -> tuple[Domain, Follows]:
        """A word for each value of a column: that of the set in which it is listed."""
        of, *groups = call.arguments
        name = self._column(of) if isinstance(of, syntax.Expr) else None
        sets = [one for one in groups if isinstance(one, syntax.Keyword) and isinstance(one.value, syntax.SetOf)]
        if name is None or not sets or len(sets) < len(groups) or measured(self._domain(name, of.span)):
            text = "lookup takes a column of single values, and sets of them, each with the word that it is called"
            raise Failure(
                "PS0206", call.span, text, help="as in lookup(people.county, south = {essex, kent}, north = {york})"
            )
        elements, chosen = list(self._domain(name, of.span).elements()), dict[Any, str]()
        for one in sets:
            for item in items_of(one.value):
                word = word_of(item)
                value: Any = word if word is not None and word not in self.environment.values else self._fixed(item)
                if value not in elements or value in chosen:
                    wrong = "stands twice" if value in chosen else f"is no value of {name}"
                    hint = suggestion(show(value), [show(element) for element in elements if element not in chosen])
                    raise Failure("PS0206", item.span, f"{show(value)} {wrong}", help=hint)
                chosen[value] = one.name
        missing = [show(element) for element in elements if element not in chosen]
        if missing:
            text = f"no set has {', '.join(missing[:LISTED])}{' and more' if len(missing) > LISTED else ''}"
            raise Failure("PS0206", call.span, text, help=f"add them to a set, or others = {{{missing[0]}}}")
        return self._tabled(name, of.span, [chosen[one] for one in elements], tuple(one.name for one in sets))

    def _listed(self, of: syntax.Expr, file: str, span: Span) -> tuple[Domain, Follows]:
        """A word for each value of a column: the one beside it in a file, of which a first line may be a heading."""
        name = self._column(of)
        if name is None or measured(self._domain(name, of.span)):
            hint = f'as in lookup(people.county, csv("{file}"))'
            raise Failure("PS0206", of.span, "lookup takes a column of single values, and the file of words", help=hint)
        values, chosen = [show(value) for value in self._domain(name, of.span).elements()], dict[str, str]()
        for row, (value, word) in enumerate(self.environment.files.words(file, span).tolist(), 1):
            if value not in values and row > 1:
                text = f"{file}, line {row} with words: no value of {name}"
                raise Failure("PS0206", span, text, help=suggestion(value, values))
            if value in chosen:
                raise Failure("PS0206", span, f"{file}, line {row} with words: {value} stands twice")
            chosen |= {value: word} if value in values else {}
        missing = [value for value in values if value not in chosen]
        if missing:
            text = f"{file} has no line for {', '.join(missing[:LISTED])}{' and more' if len(missing) > LISTED else ''}"
            raise Failure("PS0206", span, text)
        texts = [chosen[value] for value in values]
        return self._tabled(name, of.span, texts, tuple(dict.fromkeys(texts)))

    def _tabled(self, name: str, span: Span, texts: list[str], labels: tuple[str, ...]) -> tuple[Domain, Follows]:
        """A column that has a word for each value of another."""
        domain, derived = self._domain(name, span), self.before.get(name)
        source, places = (name, domain), [labels.index(text) for text in texts]
        if derived is not None:
            if derived.formula is not None:
                hint = "compare numbers with < and >="
                raise Failure("PS0206", span, f"{name} follows from numbers, and has no single values", help=hint)
            (source,), places = derived.columns, [places[place] for place in derived.places]
        if len(set(places)) < len(labels):
            raise Failure("PS0206", span, "this is the same for all values")
        text = spell(_bare(self.setting.value))
        return FiniteSet(labels), Follows((source,), None, (), labels, tuple(places), text, every=True)


def whole(formula: Formula) -> bool:
    """Whether it gives whole numbers for whole numbers."""
    found: bool = formula.fold(
        lambda _: True,
        lambda number: number.denominator == 1,
        lambda sign, left, right: sign != "/" and left and right,
        lambda base, *_: base,
    )
    return found


def of_whole_numbers(derived: Derived) -> bool:
    """Whether what follows is a whole number, of columns of whole numbers."""
    formula = derived.formula
    return formula is not None and whole(formula) and all(one.lower is not None for one in derived.columns)


def _each_once(formula: Formula) -> bool:
    """Whether every column stands in it once, so that it reaches all that lies between its ends."""
    return len(set(formula.named)) == len(formula.named)


def _sum_of_units(formula: Formula) -> bool:
    """Whether whole numbers are added and subtracted, or moved, and no more."""
    return _made_of(formula, ("+", "-", "min", "max"))


def _turns(formula: Formula) -> bool:
    """Whether an end may be that of a power between two values."""
    return not _made_of(formula, COMBINED)


def _made_of(formula: Formula, signs: Collection[str]) -> bool:
    """Whether numbers are combined by some signs only, and not taken to a power."""
    return formula.fold(lambda _: True, lambda _: True, lambda sign, a, b: all((sign in signs, a, b)), lambda *_: False)
