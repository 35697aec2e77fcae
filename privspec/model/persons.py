"""Tables of persons, `person = persons(visits)`, and columns that are looked up by an id, `visits.sex = patients.sex`.

Definitions become settings of tables, with the tables that they gather records from inside them, as `derived` does for
columns of one record. The table of persons takes the place of the first table that it is made of, and its name: that is
what a line of privacy names, what data are given for, and what a ledger calls them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from privspec.core.records import dataclass, field, replace
from privspec.core.spans import Span
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.walk import every, with_children, word_of
from privspec.model.conditions import CONDITIONS
from privspec.model.derived import held
from privspec.model.domain_rules import GATHERED, PERSONS
from privspec.model.gathered import FUNCTIONS, clamped
from privspec.model.reports import Failure, Report, listing
from privspec.model.values import show

ONE = "record"
"""The column of a table of persons of which nothing is asked: that there is a record."""


# --- from definitions to settings of tables -----------------------------------------------------------


def persons_in(spec: syntax.Spec) -> Iterator[tuple[syntax.Relation, str, syntax.Call]]:
    """The lines that make tables of persons, their names and calls."""
    for line in spec.background:
        match line:
            case syntax.Relation(op="=", left=syntax.Name(id=name), right=syntax.Call(function="persons") as call):
                yield line, name, call


def with_columns_of_others(spec: syntax.Spec) -> syntax.Spec:
    """The spec with `visits.age = people.age` where a question about visits has a condition on `people.age`."""
    tables = {one.target.name: call for one in spec.variables if (call := _call_of(one)) is not None}
    lines = [one for one in spec.background if isinstance(one, syntax.Relation)]
    known = {
        table: {one.name for one in call.arguments if isinstance(one, syntax.Member | syntax.Keyword)}
        | {one.left.name for one in lines if isinstance(one.left, syntax.Attribute) and _base(one.left) == table}
        for table, call in tables.items()
    }
    added = dict[tuple[str, str, str], syntax.Relation]()

    def local(table: str, other: str, column: str, span: Span) -> str:
        """What a column of another table is called in this one: as a line of the spec has it, or by its own name."""
        for line in lines:
            match line:
                case syntax.Relation(op="=", left=syntax.Attribute() as mine, right=syntax.Attribute() as its):
                    if _base(mine) == table and (_base(its), its.name) == (other, column):
                        return mine.name
        name = column if column not in known[table] else f"{other} {column}"
        here = syntax.Attribute(syntax.Name(table, span=span), name, span=span)
        there = syntax.Attribute(syntax.Name(other, span=span), column, span=span)
        added.setdefault((table, other, column), syntax.Relation("=", here, there, span=span))
        return name

    def asked(node: Any, table: str) -> Any:
        match node:
            case syntax.Keyword(name=name) if (
                (parts := name.partition("."))[2] and parts[0] in tables and parts[0] != table
            ):
                return replace(node, name=local(table, parts[0], parts[2], node.span))
            case syntax.Attribute(name=name) if _base(node) in tables and _base(node) != table:
                return syntax.Name(local(table, _base(node), name, node.span), span=node.span)
            case _:
                return with_children(node, lambda one: asked(one, table))

    def change(node: Any) -> Any:
        match node:
            case syntax.Call(
                arguments=(syntax.Name(id=table) | syntax.Attribute(base=syntax.Name(id=table)) as first, *rest)
            ) if table in tables:
                return replace(
                    node,
                    arguments=(
                        first,
                        *(asked(one, table) if isinstance(one, CONDITIONS) else change(one) for one in rest),
                    ),
                )
            case _:
                return with_children(node, change)

    loss, accuracy = change(spec.loss) if spec.loss is not None else None, tuple(map(change, spec.accuracy))
    background = tuple(map(change, spec.background))
    return replace(spec, loss=loss, accuracy=accuracy, background=(*background, *added.values())) if added else spec


def with_persons(spec: syntax.Spec, report: Report) -> syntax.Spec:
    """The spec with tables of persons, and columns that are looked up, as settings of tables."""
    found = report.told(lambda: _Tables.of(_merged(spec)).rewritten())
    report.raise_errors()
    return found or spec


def _merged(spec: syntax.Spec) -> syntax.Spec:
    """The spec with one name for persons of the same tables, as several parts of a system may each have theirs."""
    known, names = dict[tuple[syntax.Argument, ...], str](), dict[str, str]()
    for _, name, call in persons_in(spec):
        names[name] = known.setdefault(call.arguments, name)
    lines = tuple(dict.fromkeys(spec.background))
    if set(names) == set(known.values()):
        return replace(spec, background=lines)

    def change(node: Any) -> Any:
        if isinstance(node, syntax.Name):
            return replace(node, id=names.get(node.id, node.id))
        return with_children(node, change)

    found: syntax.Spec = change(spec)
    variables = (one for one in found.variables if names.get(one.target.name, one.target.name) == one.target.name)
    return replace(found, variables=tuple(variables), background=tuple(dict.fromkeys(found.background)))


def _call_of(variable: syntax.Variable) -> syntax.Call | None:
    domain = variable.domain
    return domain if isinstance(domain, syntax.Call) and domain.function == "table" else None


def _base(node: syntax.Node) -> str:
    return node.base.id if isinstance(node, syntax.Attribute) and isinstance(node.base, syntax.Name) else ""


@dataclass(slots=True)
class _Tables:
    """Definitions of a spec: `raw` tables of records, tables of persons `made` of some of them."""

    spec: syntax.Spec
    raw: dict[str, syntax.Call]
    made: dict[str, tuple[str, ...]]
    columns: dict[str, list[syntax.Keyword]] = field(default_factory=dict)
    """What is gathered, of each table of persons; of others, what is looked up."""
    within: dict[tuple[str, str], syntax.Domain] = field(default_factory=dict)

    @classmethod
    def of(cls, spec: syntax.Spec) -> _Tables:
        """Raises: Failure PS0275."""
        inputs = [one for one in spec.variables if one.kind is syntax.VariableKind.INPUT and not one.target.indices]
        raw = {one.target.name: call for one in inputs if (call := _call_of(one)) is not None}
        made, taken = dict[str, tuple[str, ...]](), set[str]()
        for _, name, call in persons_in(spec):
            names = tuple(word_of(one) or "" for one in call.arguments)
            if not names or not set(names) <= set(raw) or len(set(names)) < len(names):
                hint = "as in person = persons(visits), of input visits in table(person in id, ...)"
                raise Failure("PS0275", call.span, "persons are those of tables of records of any number", help=hint)
            if taken & set(names):
                text = "a table makes one table of persons: add columns to that one"
                raise Failure("PS0275", call.span, text)
            taken |= set(names)
            made[name] = names
        return cls(spec, raw, made)

    def rewritten(self) -> syntax.Spec:
        """The spec with every definition where it belongs.

        Raises: Failure PS0275.
        """
        kept, own = list[syntax.BackgroundStatement](), list[tuple[str, syntax.Keyword, syntax.Relation]]()
        for statement in self.spec.background:
            match statement:
                case syntax.Membership(left=syntax.Attribute(name=name) as left, domain=domain) if (
                    _base(left) in self.made
                ):
                    self.within[_base(left), name] = domain
                case syntax.Relation(op="=", left=syntax.Attribute(name=name) as left, right=right):
                    table, column = _base(left), syntax.Keyword(name, right, span=statement.span)
                    if self._is_gathered(column, self.made.get(table, tuple(set(self.raw) - {table}))):
                        self.columns.setdefault(table, []).append(column)
                    elif table in self.made:
                        own.append((table, column, replace(statement, right=self._within(table, held(right)))))
                    else:
                        own.append((table, column, statement))
                case syntax.Relation(op="=", left=syntax.Name(id=name)) if name in self.made:
                    pass
                case _:
                    kept.append(statement)
        looked = {t: [_base(one.value) for one in some] for t, some in self.columns.items() if t in self.raw}
        sources = [name for names in self.made.values() for name in names]
        sources += [name for some in looked.values() for name in {*some}]
        whole = {name for names in self.made.values() for name in names}
        twice = next((n for n in sources if n in looked or (n in whole and sources.count(n) > 1)), None)
        if twice is not None:
            hint = "gather columns of several tables by one: person = persons(visits, patients), "
            hint += "person.sex = patients.sex"
            raise Failure("PS0275", self.raw[twice].span, f"{twice} is gathered from in two ways", help=hint)
        for table, column, line in own:
            if table in sources:  # of one record: it is read with the table, wherever its records are gathered
                if any(_base(one) != table for one in every(line.right, syntax.Attribute)):
                    raise Failure("PS0206", line.right.span, f"{column.name} follows from columns of {table} alone")
                setting = replace(column, value=held(column.value))
                self.raw[table] = replace(self.raw[table], arguments=(*self.raw[table].arguments, setting))
        kept += [line for table, _, line in own if table not in sources]
        tables = {names[0]: self._table(person, names) for person, names in self.made.items()}
        tables |= {name: self._with_looked_up(name) for name in looked}
        first = {person: names[0] for person, names in self.made.items()}
        # a table that others look up may be asked about as well: a person moves in both
        asked = self._asked() & {name for some in looked.values() for name in some}
        gone = set(sources) - set(first.values()) - asked
        variables = tuple(
            replace(one, domain=tables.get(one.target.name, one.domain))
            for one in self.spec.variables
            if one.target.name not in gone and one.target.name not in self.made
        )
        spec = replace(self.spec, variables=variables, background=tuple(kept))
        names = {name: first[person] for person, some in self.made.items() for name in some}
        names |= {name: table for table, some in looked.items() for name in some if name not in asked}
        return _renamed(spec, first, names, set(sources) - asked)

    def _asked(self) -> set[str]:
        """The names that questions are about."""
        spec = self.spec
        parts = [spec.loss, *spec.accuracy, *(one.value for one in spec.variables), *spec.background]
        columns = {id(line) for line in spec.background if isinstance(getattr(line, "left", None), syntax.Attribute)}
        read = (part for part in parts if part is not None and id(part) not in columns)
        return {name.id for part in read for name in every(part, syntax.Name)}

    def _within(self, person: str, value: syntax.Expr) -> Any:
        """What follows from columns of a person, each of which is gathered where it stands: `count(visits) >= 3`.

        What is compared with a public number is bounded just beyond it, which changes no comparison.
        """

        def change(node: Any) -> Any:
            match node:
                case syntax.Holds(left=left, right=right):
                    sides = [self._bounded(*pair) for pair in ((left, right), (right, left))]
                    return replace(node, left=change(sides[0]), right=change(sides[1]))
                case syntax.Call() if _gathers(node):
                    column = syntax.Keyword(spell(node), node, span=node.span)
                    known = self.columns.setdefault(person, [])
                    known += [] if column.name in {one.name for one in known} else [column]
                    return syntax.Attribute(syntax.Name(person, span=node.span), column.name, span=node.span)
                case syntax.Node():
                    return with_children(node, change)
            return node

        return change(value)

    def _bounded(self, side: syntax.Expr, other: syntax.Expr) -> syntax.Expr:
        unbounded = isinstance(side, syntax.Call) and side.function in FUNCTIONS and FUNCTIONS[side.function].unbounded
        if not unbounded or any(every(other, syntax.Call)):
            return side
        end: syntax.Expr = syntax.Binary("+", other, syntax.Number(Fraction(1), "1"), span=other.span)
        if isinstance(other, syntax.Number):
            end = syntax.Number(other.value + 1, show(other.value + 1), span=other.span)
        return syntax.Call("min", (side, end), span=side.span)

    def _id(self, table: str) -> str:
        """The column that says whose a record of a table is.

        Raises: Failure PS0275 if there is none, or if there are several.
        """
        call = self.raw[table]
        found = [o.name for o in call.arguments if isinstance(o, syntax.Member) and _is_id(o.domain)]
        if len(found) != 1:
            text = f"one column of {table} says whose a record is"
            raise Failure("PS0275", call.span, text, help=f"as in {table} in table(person in id, ...)")
        return found[0]

    def _table(self, person: str, names: tuple[str, ...]) -> syntax.Call:
        """The table of persons."""
        call, columns = self.raw[names[0]], self.columns.get(person, [])
        tables = tuple(syntax.Member(one, syntax.String(self._id(one))) for one in names)  # type: ignore[arg-type]
        undefined = next(
            (n for (table, n) in self.within if table == person and n not in {o.name for o in columns}), ""
        )
        if undefined:
            span = self.within[person, undefined].span
            hint = f"as in {person}.{undefined} = count({names[0]})"
            raise Failure("PS0275", span, f"nothing says what {person}.{undefined} is", help=hint)
        gathered = [self._gathered(one, names, self.within.get((person, one.name))) for one in columns]
        if not gathered:
            counted = syntax.Keyword(ONE, syntax.Call("count", (syntax.Name(names[0]),)), span=call.span)
            one = syntax.RangeOf(syntax.Number(Fraction(1)), syntax.Number(Fraction(1)))
            gathered = [self._gathered(counted, names, one)]
        whose = syntax.Member(self._id(names[0]), syntax.Name("id"))
        return replace(call, arguments=(whose, syntax.Keyword("", syntax.Call(PERSONS, tables)), *gathered))

    def _is_gathered(self, column: syntax.Keyword, names: tuple[str, ...]) -> bool:
        return _gathers(column.value) or _base(column.value) in names

    def _gathered(self, column: syntax.Keyword, names: tuple[str, ...], within: syntax.Domain | None) -> syntax.Keyword:
        """A column of what a person's records come to, with the table that these are in."""
        tables = {_base(one) for one in every(column.value, syntax.Attribute)}
        tables |= {one.id for one in every(column.value, syntax.Name) if one.id in self.raw}
        if len(tables) != 1 or not tables <= set(names):
            hint = f"of {listing(names, 'or')}, each by a column of its own"
            raise Failure("PS0275", column.span, f"{column.name} is gathered from one table", help=hint)
        (table,) = tables
        bounds = () if within is None else (syntax.Member("within", within),)
        whose, text = syntax.String(self._id(table)), syntax.String(spell(column.value))
        # a name of its own: what is asked of the table of persons is not asked of its records
        value, call = (_with_name(one, table, f"records of {table}") for one in (column.value, self.raw[table]))
        parts = (value, text, whose, syntax.Member(table, call), *bounds)
        return replace(column, value=syntax.Call(GATHERED, parts, span=column.value.span))

    def _with_looked_up(self, name: str) -> syntax.Call:
        """A table with what others say of the person of each record."""
        self._id(name)
        more = (self._gathered(one, (_base(one.value),), None) for one in self.columns[name])
        return replace(self.raw[name], arguments=(*self.raw[name].arguments, *more))


def _is_id(domain: syntax.Domain) -> bool:
    return isinstance(domain, syntax.Name) and domain.id == "id"


def _gathers(value: syntax.Node) -> bool:
    """Whether a column is made of all records: by a function of a table, or of one of its columns."""
    match value:
        case syntax.Call(function="min" | "max", arguments=(_, other, *_)) if not isinstance(other, CONDITIONS):
            return clamped(value) is not None
        case syntax.Call(function=function) if function in (*FUNCTIONS, GATHERED):
            return True
    return False


def _with_name(node: Any, table: str, name: str) -> Any:
    """The same with another name of a table."""

    def change(one: Any) -> Any:
        match one:
            case syntax.Name(id=found) if found == table:
                return replace(one, id=name)
            case syntax.Call(arguments=(syntax.Name() as first, *rest)):
                return replace(one, arguments=(change(first), *rest))
        return with_children(one, change)

    return change(node)


def _renamed(spec: syntax.Spec, first: Mapping[str, str], names: Mapping[str, str], sources: set[str]) -> syntax.Spec:
    """The spec with questions about persons, and lines about any of the tables they are made of, about one table.

    Raises: Failure PS0275 for a question about records that are gathered.
    """
    whose = {**names, **first}

    def change(node: Any, *, columns: bool = False) -> Any:
        match node:
            case syntax.Call(function="table"):
                return node
            case syntax.Call(arguments=(table, *rest)) if _table_in(table) in first:
                # what stands beside a table are names of its columns, whatever a table is called
                return replace(node, arguments=(change(table), *(change(one, columns=True) for one in rest)))
            case syntax.Name(id=name) if name in first and not columns:
                return replace(node, id=first[name])
            case syntax.Name(id=name, span=span) if name in sources and not columns:
                hint = f"ask about {listing([*first] or ['the other table'], 'or')}: {name} is read person by person"
                raise Failure("PS0275", span, f"{name} is gathered, and no question is about its records", help=hint)
            case syntax.Refs(items=items):
                renamed = [replace(one, name=whose.get(one.name, one.name)) for one in items]
                return replace(node, items=tuple({one.name: one for one in renamed}.values()))
            case syntax.DifferentPeople() | syntax.SamePeople():
                people = [replace(one, id=whose.get(one.id, one.id)) for one in node.names]
                return replace(node, names=tuple({one.id: one for one in people}.values()))
            case syntax.Node():
                return with_children(node, lambda one: change(one, columns=columns))
        return node

    found: syntax.Spec = with_children(spec, change)  # type: ignore[assignment]
    return replace(found, options=tuple(one for one in found.options if len(getattr(one, "names", "xx")) > 1))


def _table_in(node: syntax.Node) -> str:
    """The table that a question is about: `person`, or `person.spent`."""
    return node.id if isinstance(node, syntax.Name) else _base(node)
