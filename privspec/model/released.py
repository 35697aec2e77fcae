"""What is released in place of what is asked for: sums in place of a mean, a noisy number in place of one in a domain.

The mean of a column is not linear in the records, and no noise of one size hides a record in it. What is released is
the sums that it is worked out from, and the output is computed from these, at no cost (`model.graph.Computed`). What
their errors cost is the error of the statistic to first order: (e_S - m e_N) / n for a mean m = S / N of n records.
An output that stays within an interval, or among whole numbers, is computed from a noisy number likewise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import prod

from privspec.core.records import dataclass, field, replace
from privspec.kernel.measures import BY_WORD
from privspec.language import syntax
from privspec.language.walk import (
    children,
    every,
    items_of,
    names_used,
    ranged,
    reached,
    reference,
    summands,
    walk,
    with_children,
    word_of,
)
from privspec.model.conditions import CONDITIONS, GROUPS, declared_tables
from privspec.model.domains import Table, Unknown
from privspec.model.evaluate import Environment
from privspec.model.library import FunctionError, Question, Statistic, function_of, library, number
from privspec.model.reports import Failure, Report


def with_released(
    spec: syntax.Spec, environment: Environment, report: Report
) -> tuple[syntax.Spec, dict[str, Mapping[str, tuple[str, ...]]]]:
    """The spec with what is released in place of what is asked for, and labels of outputs; what is wrong is told."""
    labels: dict[str, Mapping[str, tuple[str, ...]]] = {}
    if any(_of_columns(node) or _share_of(node) for node in walk(spec)):
        tables = declared_tables(spec, environment)
        statistics = _Statistics(spec, tables, labels)
        spec = report.told(statistics.rewritten) or statistics.counted()
    return _moved_later(spec), labels


def _of_columns(call: syntax.Node) -> str | None:
    """The table of a call such as `mean(people.pay)` of a function that is worked out from sums of columns."""
    match call:
        case syntax.Call(arguments=(syntax.Attribute(base=syntax.Name(id=table)), *_)):
            return None if function_of(call).of_sums is None else table
        case _:
            return None


def _share_of(node: syntax.Node) -> tuple[str, tuple[syntax.Argument, ...], tuple[syntax.Argument, ...]] | None:
    """Of records that meet some conditions, what share meets more: the table, these conditions, the others.

    As in `count(people, works = yes, sex = F) / count(people, sex = F)`.
    """
    match node:
        case syntax.Binary(
            op="/",
            left=syntax.Call(function="count", arguments=(syntax.Name(id=table), *above)),
            right=syntax.Call(function="count", arguments=(syntax.Name(id=same), *below)),
        ) if table == same:
            more = tuple(one for one in above if one not in below)
            grouped = any(isinstance(one, syntax.Keyword) and one.name == GROUPS for one in (*above, *below))
            if more and len(more) + len(below) == len(above) and not grouped:
                return table, tuple(below), more
    return None


@dataclass(frozen=True, eq=False, slots=True)
class _Share(Question):
    """The share of records that meet `more` conditions: the mean of a number that is 1 for these, and else 0."""

    more: tuple[syntax.Argument, ...] = ()

    def sum_of(self, *columns: str) -> syntax.Expr:
        met = (*self.conditions, *self.more) if columns else self.conditions
        return syntax.Call("count", (self.table, *met), span=self.call.span)

    def ends(self, column: str) -> tuple[Fraction, Fraction]:
        return Fraction(0), Fraction(1)


@dataclass(eq=False)
class _Statistics:
    """Terms of the loss such as `E[ (m - mean(people.pay))^2 ]`."""

    spec: syntax.Spec
    tables: Mapping[str, Table]
    labels: dict[str, Mapping[str, tuple[str, ...]]]
    added: dict[str, list[syntax.Variable]] = field(default_factory=dict)
    beside: list[syntax.Over] = field(default_factory=list)
    without_number: list[syntax.Call] = field(default_factory=list)

    def rewritten(self) -> syntax.Spec:
        """The spec with sums in place of statistics.

        Raises: Failure.
        """
        spec = self._linear(self._inlined())
        for line in (*spec.accuracy, *spec.background, *spec.options):
            for node in self._asked(line):
                raise self._beside_loss(node)
        if spec.loss is None:
            return spec
        loss = self._changed(spec.loss)
        if self.without_number and self.beside:
            call = self.without_number[0]
            table = self._about(call)
            text = f"what an error of this {call.function} weighs beside others depends on the number of records"
            hint = (
                f"declare how many are expected: input {table} in table(...)^1000; while "
                "records are added or removed, that number serves the loss alone"
            )
            raise Failure("PS0530", call.span, text, help=hint)
        variables = [new for one in spec.variables for new in self.added.get(one.target.name, [one])]
        return replace(spec, variables=tuple(variables), loss=loss)  # type: ignore[arg-type]

    def _beside_loss(self, node: syntax.Call | syntax.Binary) -> Failure:
        """A statistic where only linear answers stand."""
        if not isinstance(node, syntax.Call):
            text = "how far off a share is depends on how many records it is of, which is secret: it stands in the loss"
            return Failure("PS0501", node.span, text, help="ask for the accuracy of the two counts")
        how, records = function_of(node).of_sums, self.tables[self._about(node) or ""].records
        text = f"solve computes the {node.function} of a column in the loss alone"
        hint = "write E[ (m - ...)^2 ] there, with m an output"
        if how is not None and how.linear_in is not None and len(node.arguments) == 1:
            text = f"a {node.function} is linear where the number of records is public; elsewhere it stands in the loss"
            size = "" if records else ", and declare how many: table(...)^1000"
            hint = f"protect them by `replacing one record`{size}; or ask for the accuracy of a sum and a count"
        return Failure("PS0501", node.span, text, help=hint)

    def counted(self) -> syntax.Spec:
        """The spec with counts in place of statistics, once what is wrong with one is told."""

        def change(node: syntax.Node) -> syntax.Node:
            table = self._about(node)
            if table is None:
                return with_children(node, change)
            return syntax.Call("count", (syntax.Name(table, span=node.span),), span=node.span)

        found = change(self.spec)
        assert isinstance(found, syntax.Spec)
        return found

    def _about(self, node: syntax.Node) -> str | None:
        """The table that a statistic is about."""
        table, share = _of_columns(node), _share_of(node)
        table = table if share is None else share[0]
        return table if table in self.tables else None

    def _inlined(self) -> syntax.Spec:
        """The spec with `intermediate y = mean(people.pay)` written where y stands in the loss."""
        found: dict[str, syntax.Expr] = {}
        for one in self.spec.variables:
            if one.kind is syntax.VariableKind.INTERMEDIATE and one.value is not None and self._about(one.value):
                found[one.target.name] = one.value
        for line in self.spec.background:
            match line:
                case syntax.Relation(op="=", left=syntax.Name(id=name), right=right) if self._about(right):
                    found[name] = right
        outputs = {one.target.name for one in self.spec.variables if one.kind is syntax.VariableKind.OUTPUT}
        found = {name: value for name, value in found.items() if name not in outputs}
        if not found:
            return self.spec

        def change(node: syntax.Node) -> syntax.Node:
            return found[node.id] if isinstance(node, syntax.Name) and node.id in found else with_children(node, change)

        kept = tuple(
            line
            for line in self.spec.background
            if not (isinstance(line, syntax.Relation) and isinstance(line.left, syntax.Name) and line.left.id in found)
        )
        variables = tuple(one for one in self.spec.variables if one.target.name not in found)
        loss = None if self.spec.loss is None else change(self.spec.loss)
        return replace(self.spec, variables=variables, background=kept, loss=loss)  # type: ignore[arg-type]

    def _linear(self, spec: syntax.Spec) -> syntax.Spec:
        """The mean of all records of a table whose number never changes is their sum over a public number."""
        moving = {
            name
            for line in spec.privacy
            if any(isinstance(clause, syntax.AddingOrRemoving) for clause in line.clauses)
            for name in (self.tables if isinstance(line.wrt, syntax.AllOf) else [one.name for one in line.wrt.items])
        }

        def change(node: syntax.Node) -> syntax.Node:
            table, share = self._about(node), _share_of(node)
            if table is not None and table not in moving and share is not None and not share[1]:
                records = self.tables[table].records
                if records and isinstance(node, syntax.Binary):
                    return replace(node, right=number(records, node.right.span))
            if table is not None and table not in moving and isinstance(node, syntax.Call):
                how, records = function_of(node).of_sums, self.tables[table].records
                if records and len(node.arguments) == 1 and how is not None and how.linear_in is not None:
                    return how.linear_in(node, records)
            return with_children(node, change)

        loss = None if spec.loss is None else change(spec.loss)
        return replace(spec, loss=loss, accuracy=tuple(map(change, spec.accuracy)))  # type: ignore[arg-type]

    def _changed(self, node: syntax.Node) -> syntax.Node:
        """An average of a squared error of a statistic as one of squared errors of sums; others as they are."""
        if not isinstance(node, syntax.Over):
            return with_children(node, self._changed)
        asked = list(self._asked(node))
        if not asked:
            self.beside.append(node)
            return node
        squared, name = _squared(node), getattr(asked[0], "function", "share")
        if squared is not None:
            terms = list(summands(squared))
            outputs = [(sign, term) for sign, term in terms if isinstance(term, syntax.Name)]
            others = [(sign, term) for sign, term in terms if term in asked]
            if len(outputs) == 1 and len(terms) == 1 + len(others):
                ((own, output),) = outputs
                return self._of(output, [(Fraction(-own * sign), term) for sign, term in others], node)
            text = f"solve compares a {name} with an output of its own, and this is about more"
            hint = f"write E[ (m - {name}(...))^2 ] for each, and what follows from them as `output gap = m - w`"
            raise Failure("PS0501", node.span, text, help=f"{hint}: it costs no privacy")
        hint = f"compare in squares: E[ (m - {name}(...))^2 ], with || || in place of ( ) for several numbers"
        raise Failure("PS0501", node.span, f"solve computes the {name} in squared errors only", help=hint)

    def _asked(self, node: syntax.Node) -> Iterator[syntax.Call | syntax.Binary]:
        """The statistics in an expression, left to right."""
        if self._about(node) is not None:
            assert isinstance(node, syntax.Call | syntax.Binary)
            yield node
        else:
            for child in children(node):
                yield from self._asked(child)

    def _of(self, output: syntax.Name, asked: list[tuple[Fraction, syntax.Expr]], over: syntax.Over) -> syntax.Expr:
        """The squared errors of the sums that an output, a sum of multiples of statistics, is computed from."""
        declared = next((one for one in self.spec.variables if one.target.name == output.id), None)
        if declared is None or declared.kind is not syntax.VariableKind.OUTPUT or declared.value is not None:
            what = getattr(asked[0][1], "function", "share")
            hint = f"write output {output.id}, without a value"
            raise Failure("PS0501", output.span, f"a {what} is compared with an output of its own", help=hint)
        if output.id in self.added:
            raise Failure("PS0501", over.span, f"{output.id} stands for two things", help="give each an output")
        errors, released, value, domain = list[syntax.Expr](), list[syntax.Variable](), None, None
        for place, (factor, node) in enumerate(asked, 1):
            found, question = self._found(node)
            last = "" if len(asked) == 1 else str(place)
            names = {own: syntax.Name(f"{output.id}.{own}{last}", span=node.span) for own in found.sums}
            if found.labels:
                self.labels[output.id] = found.labels
            size = Fraction(1) if question.records is None else Fraction(question.records, question.groups) ** 2
            for own, one in found.sums.items():
                apart = syntax.Binary("-", names[own], one.stands_for, span=over.span)
                inner = syntax.Binary("^", syntax.Norm(apart, span=over.span), number(2, over.span), span=over.span)
                average = syntax.Over("E", inner, span=over.span)
                errors.append(_times(one.cost * factor**2 / size, average))
                label = f"{output.id.replace('_', ' ')}{last and f' ({place})'}, {one.called}" if one.called else None
                target = replace(declared.target, name=names[own].id)
                released.append(syntax.Variable(declared.kind, target, label=label, span=declared.span))
            mine = _times(abs(factor), found.value(names))
            value = mine if value is None else syntax.Binary("+" if factor > 0 else "-", value, mine, span=over.span)
            if value is mine and factor < 0:
                value = syntax.Negate(mine, span=over.span)
            domain = found.domain if len(asked) == 1 and factor == 1 else None
        total = errors[0]
        for term in errors[1:]:
            total = syntax.Binary("+", total, term, span=over.span)
        own_domain = declared.domain if declared.domain is not None else domain
        self.added[output.id] = [*released, replace(declared, domain=own_domain, value=value)]
        return total

    def _found(self, node: syntax.Expr) -> tuple[Statistic, Question]:
        """How a statistic is worked out from sums."""
        share, call = _share_of(node), node
        if share is not None and isinstance(node, syntax.Binary) and isinstance(node.left, syntax.Call):
            table, conditions, more = share
            call = syntax.Call("mean", node.left.arguments, span=node.span)
            name = syntax.Name(table, span=node.left.span)
            domains, records = dict(self.tables[table].attributes), self.tables[table].records
            question: Question = _Share(call, name, domains, ("share",), conditions, 1, records, more)
        else:
            assert isinstance(call, syntax.Call)
            question = self._question(call)
        how = function_of(call).of_sums
        assert how is not None
        if question.records is None:
            self.without_number.append(call)
        try:
            return how.of(question), question
        except FunctionError as error:
            raise Failure(error.code, call.span, error.message, help=error.help) from error

    def _question(self, call: syntax.Call) -> Question:
        first, *rest = call.arguments
        assert isinstance(first, syntax.Attribute)
        assert isinstance(first.base, syntax.Name)
        table = self.tables[first.base.id]
        extra = function_of(call).keywords or ()
        named, conditions = [first.name], []
        groups: tuple[str, ...] = ()
        for one in rest:
            if isinstance(one, syntax.Keyword) and one.name in extra:
                named += _columns_of(one)
            elif isinstance(one, syntax.Attribute) and one.base == first.base and function_of(call).arity == (2, 2):
                named.append(one.name)
            elif isinstance(one, CONDITIONS):
                conditions.append(one)
                if isinstance(one, syntax.Keyword) and one.name == GROUPS:
                    groups = tuple(_columns_of(one))
            else:
                hint = f"it is written {function_of(call).signature}"
                raise Failure("PS0206", one.span, f"{call.function} of a column takes conditions here", help=hint)
        domains = dict(table.attributes)
        unknown = next((name for name in groups if isinstance(domains.get(name), Unknown)), None)
        if unknown is not None:
            message = f"solve cannot compute the {call.function} of groups by {unknown}, whose values are unknown"
            raise Failure(
                "PS0501", call.span, message, help="list its values, or count records: histogram(t, by = ...)"
            )
        number_of_groups = prod((domains[name].size or 1) if name in domains else 1 for name in groups)
        return Question(
            call, first.base, domains, tuple(named), tuple(conditions), number_of_groups, table.records
        )  # fmt: skip


def _columns_of(setting: syntax.Keyword) -> Iterator[str]:
    for item in items_of(setting.value):
        name = word_of(item)
        if name is None:
            raise Failure("PS0206", item.span, "columns are named here", help="as in {age, sex}")
        yield name


def _times(factor: Fraction, expr: syntax.Expr) -> syntax.Expr:
    return expr if factor == 1 else syntax.Binary("*", number(factor, expr.span), expr, span=expr.span)


def _squared(over: syntax.Over) -> syntax.Expr | None:
    """The e of `E[ e^2 ]` and of `E[ ||e||^2 ]`."""
    match over:
        case syntax.Over(
            operator="E", given=None, body=syntax.Binary(op="^", left=inner, right=syntax.Number(value=p))
        ):
            if p == 2:
                plain = isinstance(inner, syntax.Norm) and inner.order == "2"
                return inner.operand if plain or isinstance(inner, syntax.Absolute) else inner  # type: ignore[union-attr]
    return None


# --- outputs that stay within a domain ----------------------------------------------------------------


def _moved_later(spec: syntax.Spec) -> syntax.Spec:
    """The spec with a noisy number, moved into its domain once it is released, for each output that stays in one."""
    measures = (BY_WORD[line.measure][0] for line in spec.privacy if isinstance(line, syntax.Requirement))
    if any(one.any_values and not one.fairness for one in measures):  # reports, which are drawn within their domain
        return spec
    relations = [line for line in spec.background if isinstance(line, syntax.Relation)]
    tables = {one.target.name for one in spec.variables if _of_many(one.domain)}
    drawn_from = any(line.op == "~" and not set(names_used(line.left)) <= tables for line in relations)
    conditions = {name for line in relations if line.op != "=" or _operators(line.left) for name in names_used(line)}
    inputs = [one for one in spec.variables if one.kind is syntax.VariableKind.INPUT]
    counted = any(_of_many(one.domain) for one in inputs)
    moved: dict[str, syntax.Variable] = {}
    for one in spec.variables:
        name = one.target.name
        if one.kind is not syntax.VariableKind.OUTPUT or one.value is not None or name in conditions:
            continue
        if any(line.op == "=" and line.left == syntax.Name(name) for line in relations):
            continue
        within = ranged(one.domain)
        base = within.base if isinstance(within, syntax.Power) else within
        interval = isinstance(base, syntax.Interval) and "inf" not in {*names_used(base.low), *names_used(base.high)}
        steps = isinstance(base, syntax.RangeOf) or (isinstance(base, syntax.Call) and base.function == "grid")
        if counted and (
            interval or (steps and not drawn_from and spec.loss is not None and "worst" not in _operators(spec.loss))
        ):
            moved[name] = replace(one, domain=within)
    meant = {one.target.name: one.value for one in spec.variables if one.value is not None}
    meant |= {reference(line.left) or "": line.right for line in relations if line.op == "="}

    def drawn_itself(name: str) -> bool:
        """What is compared with words, or with the choice of a value, is drawn from a table or chosen."""
        terms = [] if spec.loss is None else [term for _, term in summands(spec.loss) if name in names_used(term)]
        used = (name for term in terms for name in names_used(term))
        names = reached(used, lambda own: names_used(meant[own]) if own in meant else ())
        behind = [*terms, *(meant[n] for n in names if n in meant)]
        return not all(_linear(node) for expr in behind for node in walk(expr))

    moved = {name: one for name, one in moved.items() if not drawn_itself(name)}
    if not moved:
        return spec

    def change(node: syntax.Node) -> syntax.Node:
        if isinstance(node, syntax.Name) and node.id in moved:
            return replace(node, id=f"{node.id}.noisy")
        if isinstance(node, syntax.Ref) and node.name in moved:
            return replace(node, name=f"{node.name}.noisy")
        return with_children(node, change)

    variables: list[syntax.Variable] = []
    for one in spec.variables:
        if one.target.name in moved:
            noisy = replace(one.target, name=f"{one.target.name}.noisy")
            value = syntax.Name(noisy.name, span=one.target.span)
            variables += [
                replace(one, target=noisy, domain=None, label=None),
                replace(moved[one.target.name], value=value),
            ]
        else:
            variables.append(one)
    return replace(
        spec,
        variables=tuple(variables),
        loss=None if spec.loss is None else change(spec.loss),  # type: ignore[arg-type]
        accuracy=tuple(with_children(line, change) for line in spec.accuracy),  # type: ignore[misc]
        fairness=tuple(with_children(line, change) for line in spec.fairness),  # type: ignore[misc]
        options=tuple(with_children(line, change) for line in spec.options),  # type: ignore[misc]
    )


def _operators(expr: syntax.Node) -> set[str]:
    """`E` and `worst`, as far as they stand in it."""
    return {over.operator for over in every(expr, syntax.Over)}


def _of_many(domain: syntax.Domain | None) -> bool:
    """Whether it has more values than a table of probabilities has rows: tables of records, and real numbers."""
    match domain:
        case syntax.Call(function="table") | syntax.Interval() | syntax.Call(function="l1_ball" | "l2_ball"):
            return True
        case syntax.Power(base=base):
            return _of_many(base)
        case _:
            return False


def _linear(node: syntax.Node) -> bool:
    """Whether it is no call of a function that noise cannot be added to."""
    if not isinstance(node, syntax.Call) or node.function in ("max", "csv", "npy"):
        return True
    return function_of(node).linear or node.function not in library()
