"""Questions about some records of a table: `count(people, age >= 65, sex = F)`, `sum(people.pay, by = {sex})`.

Before anything else reads them, conditions become settings of their columns that list the values allowed, as in
`count(people, age = {65, 66, 67}, sex = {F})`, and `sum(people.pay)` becomes `sum(people, {pay})`. Functions of tables
know no other form; what the author wrote stays the text of the call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from operator import ge, gt, le, lt, ne
from typing import Any

from privspec.core.records import dataclass, field, replace
from privspec.core.spans import Span
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.walk import every, items_of, walk, with_children, word_of
from privspec.model.domain_rules import as_far_as_readable, read_domain
from privspec.model.domains import Between, Cut, Domain, Grid, IntegerRange, Table, Unknown, measured, moments_of
from privspec.model.evaluate import Environment, evaluate
from privspec.model.reports import Failure, Report, suggestion
from privspec.model.values import show

WORKED_OUT = ("mean", "variance", "covariance", "correlation", "regression")
"""Functions of a column that are worked out from sums (`privspec.model.released`)."""
OF_COLUMNS = dict.fromkeys(("sum", "median", "min", "max", "argmax", "mode", *WORKED_OUT), 0) | dict.fromkeys(
    ("quantile", "quantiles", "top"), 1
)
"""Functions of a column of a table, with how many public arguments follow it, ahead of conditions."""
ABOUT_TABLES = ("count", "histogram", "keys", *OF_COLUMNS)
"""Functions that take conditions on the columns of a table."""
SIGNS = {"<": lt, "<=": le, ">": gt, ">=": ge, "!=": ne}
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}
GROUPS = "by"
LEAST = "at_least"
"""The setting of `keys` that says how many records a key has at least."""
STEPS = 100
"""Steps in which a measured column might be declared."""
POWER = 4
"""Highest power of a column that is added up."""
CONDITIONS = (syntax.Keyword, syntax.Member, syntax.Condition)
"""Arguments that are about a column of a table."""


def holds(node: syntax.Holds | syntax.Condition) -> syntax.Call | syntax.Binary:
    """A comparison as a number, 1 where it holds and 0 where it does not."""
    if node.op == "!=":
        return syntax.Call("mismatch", (node.left, node.right), span=node.span)
    pair = (node.left, node.right) if node.op in (">=", "<") else (node.right, node.left)
    found = syntax.Call("at_least", pair, span=node.span)
    if node.op in (">=", "<="):
        return found
    return syntax.Binary("-", syntax.Number(Fraction(1), "1", span=node.span), found, span=node.span)


NEGATED = {">=": "<", "<=": ">"}


def compared_with(expr: syntax.Expr, environment: Environment) -> tuple[syntax.Name, str, Fraction] | None:
    """A name that is compared with a public number, `s > 20` or at_least(s, 20); None for anything else."""
    match expr:
        case syntax.Holds(op="<" | "<=" | ">" | ">="):
            return compared_with(holds(expr), environment)
        case syntax.Binary(op="-", left=syntax.Number(value=one), right=inner) if one == 1:
            found = compared_with(inner, environment)
            return None if found is None or found[1] not in NEGATED else (found[0], NEGATED[found[1]], found[2])
        case syntax.Call(function="at_least", arguments=(syntax.Name() as name, limit)) if (
            name.id not in environment.values
        ):
            sign = ">="
        case syntax.Call(function="at_least", arguments=(limit, syntax.Name() as name)):
            sign = "<="
        case _:
            return None
    value = None if isinstance(limit, syntax.NO_EXPRESSION) else evaluate(limit, environment)
    return (name, sign, value) if isinstance(value, Fraction) else None


def about_table(call: syntax.Call) -> str | None:
    """The name of the table that a call with conditions would be about: its first argument, or that of a column."""
    match call:
        case syntax.Call(function=function, arguments=(first, *_)) if function in ABOUT_TABLES:
            columns = factors(first) if function in OF_COLUMNS else None
            if function == "sum" and isinstance(first, syntax.Binary | syntax.Negate | syntax.Absolute):
                columns = [*every(first, syntax.Attribute)]
            base = columns[0].base if columns else first.base if isinstance(first, syntax.Attribute) else first
            return base.id if isinstance(base, syntax.Name) else None
        case _:
            return None


def factors(expr: syntax.Node) -> list[syntax.Attribute] | None:
    """The columns that a product multiplies, each as often as it does: `people.hours * people.pay`, `people.age^2`."""
    match expr:
        case syntax.Attribute():
            return [expr]
        case syntax.Binary(op="*", left=left, right=right):
            sides = factors(left), factors(right)
            return None if sides[0] is None or sides[1] is None else [*sides[0], *sides[1]]
        case syntax.Binary(op="^", left=left, right=syntax.Number(value=power)):
            found = factors(left)
            return found * int(power) if found and power.denominator == 1 and 1 <= power <= POWER else None
        case _:
            return None


def _adds_up_otherwise(node: syntax.Node) -> bool:
    """Whether something else than a column is added up."""
    match node:
        case syntax.Call(function="sum", arguments=(first, *_)):
            return not isinstance(first, syntax.Attribute) and any(every(first, syntax.Attribute))
        case _:
            return False


def _adds_up(expr: syntax.Expr) -> bool:
    """Whether it is a product of columns, which adds up without a column of its own."""
    return factors(expr) is not None


def _of_groups(call: syntax.Call) -> syntax.Call:
    """`argmax(histogram(t, by = {c}, conditions))` as `argmax(t.c, conditions)`, and so `top(.., k)`; others as is.

    A histogram of one column may name it, as in `histogram(t.c, conditions)`.
    """
    match call:
        case syntax.Call(
            function="argmax" | "top" as function,
            arguments=(syntax.Call(function="histogram", arguments=(syntax.Attribute() as column, *rest)), *public),
        ):
            return syntax.Call(function, (column, *public, *rest), span=call.span)
        case syntax.Call(
            function="argmax" | "top" as function,
            arguments=(
                syntax.Call(function="histogram", arguments=(syntax.Name() as table, *rest), span=span),
                *public,
            ),
        ):
            groups = [one.value for one in rest if isinstance(one, syntax.Keyword) and one.name == GROUPS]
            items = [item for one in groups for item in items_of(one)]
            if len(items) == 1 and (name := word_of(items[0])) is not None:
                kept = [one for one in rest if not _groups(one)]
                return syntax.Call(function, (syntax.Attribute(table, name, span=span), *public, *kept), span=call.span)
    return call


MANY = 512
"""Cells of a table up to which values that are only added up are held one by one."""
COUNTING = ("count", "histogram", "sum")
"""Functions that look at no more of a column than a condition says of it, and that add up others."""


def with_listed_values(
    spec: syntax.Spec, environment: Environment, report: Report
) -> tuple[syntax.Spec, dict[str, Table]]:
    """The spec with every condition as a list of values, and tables whose numbers conditions cut; errors are told."""
    tables = declared_tables(spec, environment)
    if any(_adds_up_otherwise(node) for node in walk(spec) if tables):
        from privspec.model.derived import with_sums

        spec = with_sums(spec, {name: table.attributes for name, table in tables.items()}, _adds_up)
        tables = declared_tables(spec, environment)
    _refuse_of_each(spec, report)
    cut = {name: new for name, table in tables.items() if (new := _cut(spec, name, table, environment)) != table}
    if not tables and not any(every(spec, syntax.Condition, syntax.Holds)):
        return spec, cut
    reader = _Reader(tables | cut, environment, report)
    found = reader.rewritten(spec)
    assert isinstance(found, syntax.Spec)
    return found, cut


def _refuse_of_each(spec: syntax.Spec, report: Report) -> None:
    """Tells of conditions on what each party holds: these stand in questions about one table."""
    held = {one.target.name: one for one in spec.variables if one.target.indices and one.domain is not None}
    for node in every(spec, syntax.Call):
        if node.function not in ABOUT_TABLES or not node.arguments:
            continue
        first, conditions = node.arguments[0], [one for one in node.arguments if isinstance(one, CONDITIONS)]
        base = first.base if isinstance(first, syntax.Index) else first
        own = held.get(base.id) if isinstance(base, syntax.Name) else None
        if own is None or own.domain is None or not conditions:
            continue
        name, party = own.target.name, spell(own.target.indices[0])
        tables = _tables_in(own.domain)
        if tables and isinstance(first, syntax.Name):
            continue
        values = spell(own.domain)
        hint = f"how many hold each value is histogram({name})"
        if tables:
            columns = tables[0].arguments
            values = spell(columns[0].domain) if isinstance(columns[0], syntax.Member) else values
            hint = f"those of all together are {node.function}({name}, ...); where each {party} holds one value, write "
            hint += f"`input {name}[{party}] in {values}` and histogram({name})"
        message = f"{node.function} with conditions is about a whole table, and this is what one {party} holds"
        report.failure(Failure("PS0206", node.span, message, help=hint))


def _cut(spec: syntax.Spec, name: str, table: Table, environment: Environment) -> Table:
    """A table with a cell between two cuts of each measured column that conditions are about, and nothing else is."""
    if not any(isinstance(domain, Between) for _, domain in table.attributes):
        return table
    calls = [call for call in every(spec, syntax.Call) if about_table(call) == name]
    named = sum(one.id == name for one in every(spec, syntax.Name))
    of_columns = [one.name for one in every(spec, syntax.Attribute) if _names(one.base, name)]
    held = len(of_columns) + sum(_names(call.arguments[0], name) for call in calls)
    if held < named or any(call.function not in COUNTING for call in calls):
        return table
    columns = dict(table.attributes)
    for column, domain in table.attributes:
        if isinstance(domain, Between) and column not in of_columns:
            cuts = {cut for call in calls for one in call.arguments for cut in _cuts_of(one, column, environment)}
            ends = (domain.low, False), (domain.high, True)
            if inner := sorted(cut for cut in cuts if ends[0] < cut < ends[1]):
                columns[column] = Cut(domain, tuple(inner))
    return replace(table, attributes=tuple(columns.items()))


def _names(node: syntax.Node, name: str) -> bool:
    return getattr(node, "id", getattr(node, "value", None)) == name


def _cuts_of(one: syntax.Argument, column: str, environment: Environment) -> list[tuple[Fraction, bool]]:
    """Where a condition on a column changes from held to not held; nothing of what cannot be read, which is told."""
    match one:
        case syntax.Keyword(name=name, value=value) if name == column:
            asked = [(item, up_to) for item in items_of(value) for up_to in (False, True)]
        case syntax.Member(name=name, domain=syntax.SetOf(items=items)) if name == column:
            asked = [(item, up_to) for item in items for up_to in (False, True)]
        case syntax.Member(name=name, domain=syntax.RangeOf() as domain) if name == column:
            asked = [(domain.low, False), (domain.high, True)]
        case syntax.Member(name=name, domain=syntax.Interval() as domain) if name == column:
            asked = [(domain.low, domain.low_open), (domain.high, not domain.high_open)]
        case syntax.Condition(op=op, left=left, right=right) if _names(left, column) or _names(right, column):
            other, op = (right, op) if _names(left, column) else (left, FLIPPED[op])
            asked = [(other, up_to) for up_to in ((False, True) if op == "!=" else (op in ("<=", ">"),))]
        case _:
            return []
    found = []
    for item, up_to in asked:
        try:
            bound = evaluate(item, environment)
        except Failure:
            continue
        if isinstance(bound, Fraction | int):
            found.append((Fraction(bound), up_to))
    return found


def columns_used(spec: syntax.Spec, tables: Mapping[str, Table]) -> dict[str, Table]:
    """Tables with those of their columns that some question is about; all of them where one is about whole records.

    What no question looks at is not read: cells that would count the same are one.
    """
    asked = {name: {column: _Asked() for column in table.names} for name, table in tables.items()}
    products: dict[str, list[list[str]]] = {name: [] for name in tables}
    alone = dict.fromkeys(tables, 0)  # how often a table stands elsewhere than first in a call
    for node in walk(spec) if tables else ():
        match node:
            case syntax.Call(function=function, arguments=(syntax.Name(id=name), *rest)) if name in tables:
                own = {column: asked[name][column] for column in _columns(function, rest, tables[name])}
                conditions = [one for one in rest if isinstance(one, syntax.Keyword) and one.name in own]
                rest = [one for one in rest if one not in conditions]
                sums = rest[0] if function == "sum" and rest else None
                factors = [str(getattr(o, "value", "")) for o in sums.items] if isinstance(sums, syntax.SetOf) else []
                rest = rest[1:] if factors else rest
                every = set(own) if function not in COUNTING else _columns(function, rest, tables[name])
                for column, one in own.items():
                    one.listed += [_listed(held.value) for held in conditions if held.name == column]
                    one.added = one.added or column in factors
                    one.every = one.every or column in every
                    one.used = True
                if len(factors) > 1:
                    products[name].append(factors)
                alone[name] -= 1
            case syntax.Attribute(base=syntax.Name(id=name), name=column) if name in tables and column in asked[name]:
                alone[name] -= 1  # the law of a column, which no question need look at
                asked[name][column].every = True
            case syntax.Name(id=name) if name in tables:
                alone[name] += 1
    found = {}
    for name, table in tables.items():
        for column in _not_linear(table, products[name]):
            asked[name][column].every = True
        # records are counted by some column where any would do: rather one of values than of numbers
        some = next((column for column, domain in table.attributes if not measured(domain)), table.names[0])
        used = [column for column, one in asked[name].items() if one.used] or [some]
        domains = table.attributes if alone[name] else [o for o in table.attributes if o[0] in used]
        found[name] = replace(table, attributes=tuple(domains))
        for many in (False, True) if not alone[name] else ():
            if not many or found[name].cell_count > MANY:
                told = [(o, asked[name][o].told_apart(domain, many=many)) for o, domain in domains]
                found[name] = replace(table, attributes=tuple(told))
    return found


def _not_linear(table: Table, products: list[list[str]]) -> Iterator[str]:
    """The columns whose values products tell apart one by one: all but one in each, the one of most values."""
    linear = [column for column, domain in table.attributes if measured(domain)]
    for column, _ in sorted(table.attributes, key=lambda one: -(one[1].size or 0)):
        own = [set(factors) for factors in products if column in factors]
        twice = any(factors.count(column) > 1 for factors in products)
        if twice or any(some & {*linear} - {column} for some in own):
            yield column
        elif own:
            linear.append(column)


@dataclass(slots=True)
class _Asked:
    """What questions look at in a column: lists of values, what it adds up to, or every value by itself."""

    listed: list[set[int]] = field(default_factory=list)
    added: bool = False
    every: bool = False
    used: bool = False

    def told_apart(self, domain: Domain, *, many: bool) -> Domain:
        """The values that questions tell apart: whole numbers are cut; of `many` cells what is added up is measured.

        Records of which nothing is asked are whole all the same: numbers are cut somewhere, and not shared.
        """
        if not self.used and isinstance(domain, Between):
            return Cut(domain, (((domain.low + domain.high) / 2, False),))
        if self.added and many and not (self.every or self.listed) and isinstance(domain, IntegerRange | Grid):
            return Between(Fraction(domain.low), Fraction(domain.high))
        if self.every or self.added or not isinstance(domain, IntegerRange):
            return domain
        cuts = {
            cut for ends in self.listed for one in ends for cut in (one, one + 1) if (cut in ends) != (cut - 1 in ends)
        }
        inner = sorted(cut for cut in cuts if domain.low < cut <= domain.high)
        apart = not inner or len(inner) >= domain.high - domain.low
        return domain if apart else Cut(domain, tuple((Fraction(cut), False) for cut in inner))


def _listed(value: syntax.Node) -> set[int]:
    items = value.items if isinstance(value, syntax.SetOf) else ()
    numbers = (getattr(item, "value", None) for item in items)
    return {int(one) for one in numbers if isinstance(one, Fraction | int)}


def unread_columns(spec: syntax.Spec, table: str, read: Collection[str]) -> tuple[str, ...]:
    """The columns that a spec declares for a table and that are not among those read."""
    return tuple(name for name in declared_columns(spec, table) if name not in read)


def declared_columns(spec: syntax.Spec, table: str) -> tuple[str, ...]:
    """The columns that a spec declares for a table."""
    calls = (call for one in spec.variables if one.target.name == table for call in _tables_in(one.domain))
    return tuple(
        one.name for call in calls for one in call.arguments if isinstance(one, syntax.Member | syntax.Keyword)
    )


def _columns(function: str, rest: list[syntax.Argument], table: Table) -> set[str]:
    """The columns that a question is about, every one where it does not say."""
    named = {one.name for one in rest if isinstance(one, syntax.Keyword)} & set(table.names)
    sets = [one.value if isinstance(one, syntax.Keyword) and one.name == GROUPS else one for one in rest]
    items = [item for one in sets if isinstance(one, syntax.SetOf) for item in one.items]
    words = {word_of(item) or "" for item in items}
    if function == "marginals" and not words <= set(table.names):
        return set(table.names)  # what is wrong is told where it is read
    by_sets = all(isinstance(one, syntax.SetOf) for one in rest) and bool(rest)
    grouped = any(map(_groups, rest))
    told = {
        "count": True,
        "histogram": grouped,
        "keys": grouped,
        "marginals": by_sets,
        **dict.fromkeys(OF_COLUMNS, True),
    }
    return named | (words & set(table.names)) if told.get(function) else set(table.names)


def _groups(one: syntax.Argument) -> bool:
    return isinstance(one, syntax.Keyword) and one.name == GROUPS


def declared_tables(spec: syntax.Spec, environment: Environment) -> dict[str, Table]:
    """The tables among the variables, as far as their domains can be read: what is wrong with others is told there."""
    found = {}
    for variable in spec.variables:
        if variable.domain is not None and _tables_in(variable.domain):
            try:
                domain: Domain | None = read_domain(variable.domain, environment)
            except Failure:
                domain = as_far_as_readable(variable.domain, environment)
            if isinstance(domain, Table):
                found[variable.target.name] = domain
    return found


def _tables_in(domain: syntax.Domain | None) -> list[syntax.Call]:
    return [call for call in every(domain, syntax.Call) if call.function == "table"]


@dataclass(frozen=True, slots=True)
class _Reader:
    tables: Mapping[str, Table]
    environment: Environment
    report: Report

    def rewritten(self, node: syntax.Node) -> syntax.Node:
        if isinstance(node, syntax.Counting) or not any(every(node, syntax.Call, syntax.Holds)):
            return node
        if isinstance(node, syntax.Holds):
            return with_children(holds(node), self.rewritten)
        if isinstance(node, syntax.Call) and node.function == "table":
            return node  # its columns are read with it
        if isinstance(node, syntax.Call):
            written, node = node, _of_groups(node)
            table = self.tables.get(about_table(node) or "")
            if table is not None and len(node.arguments) > isinstance(node.arguments[0], syntax.Name):
                return self.report.told(lambda: self._counting(node, table, spell(written))) or _plain(node)
            if node.function == "sum" and node.arguments and self._no_product(node.arguments[0]):
                return syntax.Number(Fraction(0), "0", span=node.span)
            return with_children(self._compared(node), self.rewritten)
        return with_children(node, self.rewritten)

    def _no_product(self, expr: syntax.Node) -> bool:
        """Whether some other computation with columns stands where a column is added up; that is told."""
        columns = every(expr, syntax.Attribute)
        found = next((one for one in columns if isinstance(one.base, syntax.Name) and one.base.id in self.tables), None)
        if found is None or not isinstance(expr, syntax.Binary | syntax.Negate):
            return False
        message = "sum adds up a column, or a product of columns"
        hint = f"take the rest out of it, as in 2 * sum({spell(found)}), or a sum of two sums; powers go up to {POWER}"
        self.report.failure(Failure("PS0206", expr.span, message, help=hint))
        return True

    def _compared(self, call: syntax.Call) -> syntax.Call:
        """A call whose conditions are numbers; those of questions about tables are told to be out of place."""
        conditions = [one for one in call.arguments if isinstance(one, syntax.Condition)]
        if not conditions:
            return call
        if call.function not in (*ABOUT_TABLES, "marginals"):
            arguments = (holds(one) if isinstance(one, syntax.Condition) else one for one in call.arguments)
            return syntax.Call(call.function, tuple(arguments), span=call.span)
        for one in conditions:
            hint = f"conditions stand in questions about tables: {', '.join(ABOUT_TABLES)}, as in count(t, age >= 65)"
            message = f"{call.function}(...) takes no conditions here"
            self.report.failure(Failure("PS0106", one.span, message, label="a condition", help=hint))
        kept = tuple(one for one in call.arguments if one not in conditions)
        return syntax.Call(call.function, kept, span=call.span)

    def _counting(self, call: syntax.Call, table: Table, text: str) -> syntax.Call:
        first, *rest = call.arguments
        public = [one for one in rest[: OF_COLUMNS.get(call.function, 0)] if not isinstance(one, CONDITIONS)]
        rest = rest[len(public) :]
        head: list[syntax.Argument] = [first]
        columns = factors(first) if isinstance(first, syntax.Attribute) or call.function in OF_COLUMNS else None
        if columns:
            if call.function in WORKED_OUT:
                message = f"the {call.function} of a column is released as what an output is compared with"
                hint = (
                    f"write it in the loss: E[ (m - {spell(call)})^2 ], with || || in place of ( ) for several numbers"
                )
                raise Failure("PS0229", call.span, message, help=hint)
            if call.function not in OF_COLUMNS:
                assert isinstance(first, syntax.Attribute)
                hint = f"write {call.function}({spell(first.base)}), with conditions after it"
                raise Failure("PS0206", first.span, f"{call.function} is about the whole table", help=hint)
            if len(columns) > 1 and call.function != "sum":
                said = f"{call.function} is about one column"
                raise Failure(
                    "PS0206", first.span, said, help="as in {}".format(f"{call.function}({spell(columns[0])})")
                )
            for column in columns:
                if column.base != columns[0].base:
                    raise Failure("PS0206", column.span, "the columns of a product belong to one table")
                self._column(column.name, table, column.span)
            named = tuple(syntax.String(column.name) for column in columns)
            head = [columns[0].base, syntax.SetOf(named, span=first.span)]
        elif call.function in OF_COLUMNS:
            what = "adds up" if call.function == "sum" else "is about"
            hint = f"as in {call.function}({spell(first)}.age)"
            raise Failure("PS0206", first.span, f"{call.function} {what} a column of a table", help=hint)
        allowed: dict[str, list[Any]] = {}
        places: dict[str, Span] = {}
        settings: list[syntax.Argument] = []
        for one in rest:
            if isinstance(one, syntax.Keyword) and one.name == GROUPS:
                settings.append(self._groups(one, table))
                continue
            if isinstance(one, syntax.Keyword) and (call.function, one.name) == ("keys", LEAST):
                settings.append(one)
                continue
            name, values = self._condition(one, table)
            before = allowed.get(name)
            allowed[name] = values if before is None else [value for value in before if value in values]
            places[name] = one.span
        for name, values in allowed.items():
            if not values:
                message = f"no value of {name} meets these conditions"
                raise Failure(
                    "PS0206", places[name], message, help=f"{name} is in {self._domain(name, table).describe()}"
                )
            kind = syntax.SetOf if any(isinstance(value, str) for value in values) else syntax.Numbers
            items = (syntax.String(one) if isinstance(one, str) else syntax.Number(Fraction(one)) for one in values)
            listed = kind(tuple(items), span=places[name])
            settings.append(syntax.Keyword(name, listed, span=places[name]))
        return syntax.Counting(call.function, (*head, *public, *settings), text, span=call.span)

    def _groups(self, setting: syntax.Keyword, table: Table) -> syntax.Keyword:
        names = []
        for item in items_of(setting.value):
            name = word_of(item)
            if name is None:
                raise Failure("PS0206", item.span, "groups are columns", help="as in by = {age, sex}")
            names.append(name)
            self._counted(name, table, item.span, grouped=True)
        if len(set(names)) < len(names):
            raise Failure("PS0206", setting.span, "a column stands twice among the groups")
        listed = syntax.SetOf(tuple(map(syntax.String, names)), span=setting.value.span)
        return syntax.Keyword(GROUPS, listed, span=setting.span)

    def _condition(self, one: syntax.Argument, table: Table) -> tuple[str, list[Any]]:
        """A column, and its values that meet a condition, in order."""
        match one:
            case syntax.Keyword(name=name, value=value):
                self._counted(name, table, one.span)
                wanted = self._values(items_of(value), name, table)
                return name, [item for item in self._domain(name, table).elements() if item in wanted]
            case syntax.Member(name=name, domain=domain):
                self._counted(name, table, one.span)
                return name, self._members(name, domain, table)
            case syntax.Condition(op=op, left=left, right=right):
                column, other = self._side(left, table), right
                if column is None:
                    column, other, op = self._side(right, table), left, FLIPPED[op]
                if column is None:
                    hint = suggestion(spell(left), table.names) or f"it has {', '.join(table.names)}"
                    raise Failure("PS0206", left.span, "neither side is a column of the table", help=hint)
                self._counted(column, table, one.span)
                (bound,) = self._values((other,), column, table)
                ordered = isinstance(bound, Fraction | int) or moments_of(self._domain(column, table)) is not None
                if op != "!=" and not ordered:
                    hint = f"as in {column} != {bound}"
                    raise Failure("PS0206", one.span, f"the words of {column} have no order", help=hint)
                return column, [item for item in self._domain(column, table).elements() if SIGNS[op](item, bound)]
            case _:
                hint = "as in age >= 65, sex = F, age in 18..64, or by = {sex}"
                raise Failure("PS0206", one.span, "a condition on a column is expected here", help=hint)

    def _members(self, name: str, domain: syntax.Domain, table: Table) -> list[Any]:
        """The values of a column within a range, an interval or a set."""
        if isinstance(domain, syntax.RangeOf) and measured(self._domain(name, table)):
            low, high = spell(domain.low), spell(domain.high)
            hint = f"write {name} in [{low}, {high}], and what lies between whole numbers belongs to it"
            raise Failure("PS0206", domain.span, f"{name} is measured, and a range has whole numbers alone", help=hint)
        elements = list(self._domain(name, table).elements())
        if isinstance(domain, syntax.SetOf):
            wanted = self._values(domain.items, name, table)
            return [item for item in elements if item in wanted]
        if not isinstance(domain, syntax.RangeOf | syntax.Interval):
            raise Failure("PS0206", domain.span, "a range or a set is expected here", help="as in age in 18..64")
        low, high = (self._values((end,), name, table)[0] for end in (domain.low, domain.high))
        numbers = all(isinstance(value, Fraction | int) for value in (low, high, *elements))
        if not numbers and moments_of(self._domain(name, table)) is None:
            raise Failure("PS0206", domain.span, f"the words of {name} have no order", help=f"as in {name} in {{a, b}}")
        ends = (domain.low_open, domain.high_open) if isinstance(domain, syntax.Interval) else (False, False)
        above, below = gt if ends[0] else ge, lt if ends[1] else le
        return [item for item in elements if above(item, low) and below(item, high)]

    def _values(self, items: tuple[syntax.Expr, ...], name: str, table: Table) -> list[Any]:
        """Public values that a column is compared with; words have to be among its own."""
        known, found = set(self._domain(name, table).elements()), []
        words = any(isinstance(one, str) for one in known)
        for item in items:
            value: Any
            if words and isinstance(item, syntax.Name) and item.id not in self.environment.values:
                value = item.id
            else:
                value = evaluate(item, self.environment)
            if not isinstance(value, str | Fraction | int):
                raise Failure("PS0206", item.span, f"{name} is compared with one public value")
            if isinstance(value, str) and value not in known:
                hint = suggestion(value, [str(one) for one in known if isinstance(one, str)])
                raise Failure("PS0206", item.span, f"{name} has no value {value}", help=hint)
            if not isinstance(value, str) and all(isinstance(one, str) for one in known):
                raise Failure("PS0206", item.span, f"the values of {name} are words", help="as in sex = F")
            found.append(value)
        return found

    def _side(self, side: syntax.Expr, table: Table) -> str | None:
        """The column that one side of a comparison names."""
        word = word_of(side)
        return word if word in (*table.names, *table.ids) else None

    def _counted(self, name: str, table: Table, span: Span, *, grouped: bool = False) -> None:
        """A column whose values a condition can tell apart, or of which each is a group."""
        self._column(name, table, span)
        if not grouped and isinstance(self._domain(name, table), Unknown):
            hint = f"declare its values, as in {name} in {{a, b}}, for conditions on it; `by = {{{name}}}` needs none"
            message = f"{name} has unknown values: no condition tells them apart"
            raise Failure("PS0206", span, message, help=hint)
        if grouped and measured(self._domain(name, table)):
            hint = f"declare its values or steps, as in {name} in 0..120, for groups by it"
            raise Failure("PS0206", span, f"{name} is measured, not counted: there are no groups by it", help=hint)
        domain = self._domain(name, table)
        if isinstance(domain, Between):
            step = (domain.high - domain.low) / STEPS
            hint = f"beside other questions about it, conditions need steps: {name} in "
            hint += f"grid({show(domain.low)}, {show(domain.high)}, {show(step)}), say"
            message = f"{name} is measured, not counted: no condition tells its values apart"
            raise Failure("PS0206", span, message, help=hint)

    def _column(self, name: str, table: Table, span: Span) -> None:
        if name in table.ids:
            hint = f"bound what one {name} adds by a line of privacy: one {name} with at most 5 records"
            raise Failure("PS0206", span, f"{name} says whose a record is, and no question is about that", help=hint)
        if name not in table.names:
            hint = suggestion(name, table.names) or f"it has {', '.join(table.names)}"
            raise Failure("PS0206", span, f"the table has no column {name}", help=hint)

    def _domain(self, name: str, table: Table) -> Any:
        return dict(table.attributes)[name]


def _plain(call: syntax.Call) -> syntax.Call:
    """A count of all records, or all keys, in place of a call, once what is wrong with it is told."""
    return syntax.Call(
        "keys" if call.function == "keys" else "count",
        (syntax.Name(about_table(call) or "", span=call.span),),
        span=call.span,
    )
