"""Names: what is declared, twice or not at all, and whether each name that is used stands for something."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from privspec.core.records import dataclass, field
from privspec.core.spans import Span
from privspec.core.suggest import advice, alike, disguised, fold, letter_name
from privspec.kernel.measures import GAUSSIAN, PURE, ZERO_CONCENTRATED
from privspec.kernel.trust import KINDS
from privspec.language import syntax
from privspec.language.automaton import is_name
from privspec.language.spelling import spell
from privspec.language.walk import children, every, walk, word_of
from privspec.model.conditions import CONDITIONS, about_table
from privspec.model.domain_rules import gathering
from privspec.model.evaluate import DOMAIN_CALLS, known_function
from privspec.model.library import library
from privspec.model.reports import Report, nearest

_NUMBER_WITHOUT_DIGITS = re.compile(r"[eE][+-]?[0-9]+(?![\w.])")

RESERVED = frozenset({"inf", "real", "E", "worst", "spec"})
"""Words with a fixed meaning; a variable cannot have one of these names."""

TRUST_WORDS = tuple(sorted(KINDS))


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a name stands for: `what` is the word of its section ("parameter", "party", "input", ...)."""

    name: str
    what: str
    span: Span
    node: syntax.Parameter | syntax.Party | syntax.Component | syntax.Variable
    index: str | None = None

    @property
    def with_article(self) -> str:
        word = {"party": "index set"}.get(self.what, self.what)
        return ("an " if word[0] in "aeiou" else "a ") + word

    @property
    def here(self) -> tuple[tuple[Span, str], ...]:
        """The place of the declaration, as a further one of a diagnostic."""
        return ((self.span, "declared here"),)


@dataclass(slots=True)
class Scope:
    """All declarations of a file; `ambiguous` names were declared twice (the first one counts)."""

    declarations: dict[str, Declaration] = field(default_factory=dict)

    def of(self, *kinds: str) -> Mapping[str, Declaration]:
        return {name: found for name, found in self.declarations.items() if found.what in kinds}

    def __contains__(self, name: str) -> bool:
        return name in self.declarations

    def __getitem__(self, name: str) -> Declaration:
        return self.declarations[name]

    def get(self, name: str) -> Declaration | None:
        """The declaration of a name, if there is one."""
        return self.declarations.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name, in order of declaration."""
        return tuple(self.declarations)


def _index(target: syntax.Ref) -> str | None:
    match target.indices:
        case (syntax.Name(id=name),):
            return name
        case _:
            return None


def _declared(spec: syntax.Spec) -> Iterator[Declaration]:
    """Every declaration: parties first, as other sections are indexed by them."""
    for party in spec.parties:
        yield Declaration(party.name, "party", party.span, party)
    for parameter in spec.parameters:
        target = parameter.target
        yield Declaration(target.name, "parameter", target.span, parameter, _index(target))
    for component in spec.components:
        yield Declaration(component.name, "component", component.span, component)
    for variable in spec.variables:
        target = variable.target
        yield Declaration(target.name, variable.kind.value, target.span, variable, _index(target))


def collect(spec: syntax.Spec, report: Report) -> Scope:
    """Every name that is declared, with complaints about those declared twice or reserved.

    `alpha in (0, 1]` under background declares `choose alpha in (0, 1]` if nothing else is called alpha.
    """
    scope = Scope()
    for found in _declared(spec):
        _declare(found, scope, report)
    for statement in spec.background:
        match statement:
            case syntax.Membership(left=syntax.Name(id=name), domain=domain) if name not in scope:
                kind = syntax.VariableKind.CHOOSE
                target = syntax.Ref(name, span=statement.left.span)
                variable = syntax.Variable(kind, target, domain, span=statement.span)
                _declare(Declaration(name, kind.value, target.span, variable), scope, report)
    for found in scope.declarations.values():
        _check_index(found, scope, report)
    functions = [found for found in scope.declarations.values() if library().get(found.name) is not None]
    called = {call.function for call in every(spec, syntax.Call)} if functions else set()
    for found in functions:
        if found.name in called:
            message = f"{found.name} is also a function of the language"
            report.warn("PS0204", found.span, message, label=f"{found.name}(...) still means the function")
    _warn_of_lookalikes(spec, scope, report)
    return scope


def warn_of_unused(read: Iterable[syntax.Node], scope: Scope, report: Report, chosen: Collection[str]) -> None:
    """Parameters that nothing that was read uses: whoever changes one of them would change nothing.

    What is `chosen` has a use.
    """
    amount_of = {one.figure: one for one in (ZERO_CONCENTRATED, GAUSSIAN, PURE)}
    used = {*chosen, *(name.id for one in read for name in every(one, syntax.Name))}
    for name, found in scope.of("parameter").items():
        if name not in used:
            message = f"nothing uses the parameter {name}"
            hint = (
                f"leave it out, or write {name} where it belongs, as in O is {amount_of[name].name} wrt x"
                if name in amount_of
                else "leave it out, or write it where it belongs"
            )
            report.warn("PS0233", found.span, message, label="changing it would change nothing", help=hint)


def _warn_of_lookalikes(spec: syntax.Spec, scope: Scope, report: Report) -> None:
    """Names that a reader may take for others: letters of two alphabets, or two names that look the same."""
    groups: list[dict[str, Span]] = [{name: found.span for name, found in scope.declarations.items()}]
    for node in (node for variable in (*spec.parameters, *spec.variables) for node in walk(variable)):
        match node:
            case syntax.SetOf(items=items):
                groups.append({item.id: item.span for item in items if isinstance(item, syntax.Name)})
            case syntax.Call(function="table", arguments=columns):
                groups.append({column.name: column.span for column in columns if isinstance(column, syntax.Member)})
    for spans in groups:
        for name, span in spans.items():
            odd = disguised(name)
            if odd is not None:
                message = f"{name} mixes letters of two alphabets that look the same"
                label = f"{odd[0]} is the {letter_name(odd[0])}"
                report.warn("PS0232", span, message, label=label, help=f"write {odd[1]}, in letters of one alphabet")
        for first, second in alike(name for name in spans if disguised(name) is None):
            message = f"{first} and {second} are two names that look the same"
            hint = "give one of them another name"
            report.warn("PS0232", spans[second], message, others=((spans[first], "the other"),), help=hint)


def _declare(found: Declaration, scope: Scope, report: Report) -> None:
    if found.name in RESERVED:
        message = f"{found.name} has a fixed meaning and cannot be the name of {found.with_article}"
        report.error("PS0204", found.span, message, help=f"choose another name, such as {found.name.lower()}1")
    before = scope.get(found.name)
    if before is not None:
        report.error(
            "PS0202",
            found.span,
            f"{found.name} is declared twice",
            label="declared again here",
            others=((before.span, f"first declared here, as {before.with_article}"),),
            help="give one of them another name",
        )
        return
    scope.declarations[found.name] = found


def _check_index(found: Declaration, scope: Scope, report: Report) -> None:
    target = getattr(found.node, "target", None)
    if target is None:
        return
    if target.attribute is not None:
        report.error("PS0228", target.span, f"a name with a dot cannot be declared: {target.name}.{target.attribute}")
    if not target.indices:
        return
    source, parties, first = report.source, scope.of("party"), target.indices[0]
    if found.index in parties:
        if len(target.indices) > 1:
            report.error("PS0228", target.indices[1].span, f"{found.name} can be indexed by one index set only")
        return
    domain = found.node.domain if isinstance(found.node, syntax.Variable) else None
    if isinstance(first, syntax.Number) and domain is not None:
        hint = f"write {found.name} in {source.slice(domain.span)}^{source.slice(first.span)}"
        report.error("PS0228", target.span, "how many values a variable has is said by its domain", help=hint)
    elif found.index is None and len(target.indices) == 2:
        place = first.span.to(target.indices[1].span)
        message = "in is missing between the name and its domain"
        hint = f"write {found.what} {found.name} in [{source.slice(place)}]"
        report.error("PS0131", place, message, label="read as an index", help=hint)
    else:
        near = nearest(found.index or "", parties)
        message = f"{found.index or 'this'} is not an index set; {found.name}[...] is declared over one"
        hint = f"did you mean {found.name}[{near}]?" if near else "declare it: `parties: voter in 1..N`"
        report.error("PS0228", first.span, message, help=hint)


# --- uses -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Resolver:
    """Checks the names of one expression after another."""

    scope: Scope
    report: Report
    averaging: int = 0
    domains: set[Span] = field(default_factory=set)
    """Where names and calls stand for domains."""
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The columns of each table."""

    def check(self, node: syntax.Node | None, bound: Mapping[str, Span], public: str = "") -> None:
        """Check every name below; `public` says why nothing but parameters makes sense here, where that is so."""
        match node:
            case None:
                pass
            case syntax.Name():
                self._name(node, bound, public)
            case syntax.SetOf():
                # a bare word in braces is a symbol unless a parameter has that name
                for item in node.items:
                    if not isinstance(item, syntax.Name):
                        self.check(item, bound, public)
            case syntax.Comprehension():
                self._comprehension(node, bound, public)
            case syntax.Call():
                self._call(node, bound, public)
            case syntax.Attribute(base=syntax.Name(id=stem), name="csv" | "npy" as kind) if stem not in self.scope:
                hint = f'write {kind}("{stem}.{kind}")'
                self.report.error("PS0201", node.span, f"a file is read by the function {kind}", help=hint)
            case syntax.Attribute(base=syntax.Name() as base):
                self._name(base, bound, "")
            case syntax.Member():
                self.check(node.domain, bound, public)
            case syntax.Condition(left=left, right=right) | syntax.Holds(left=left, right=right):
                # beside a column a bare word is one of its values unless something has that name
                column = any(isinstance(side, syntax.Attribute) for side in (left, right))
                for side in (left, right):
                    if not (column and isinstance(side, syntax.Name) and side.id not in self.scope):
                        self.check(side, bound, public)
            case syntax.Interval(low=syntax.Name(id=low), high=syntax.Name(id=high)) if not (
                {low, high} & {*self.scope.names, "inf"}
            ):
                hint = f"write {{{low}, {high}}}"
                self.report.error("PS0220", node.span, "values that are listed stand in braces", help=hint)
            case syntax.RankingOf(alternatives=syntax.Name(id=name)) if name not in self.scope:
                pass  # the reader of domains says what a set of alternatives is
            case _:
                self.averaging += isinstance(node, syntax.Over)
                for child in children(node):
                    self.check(child, bound, public)
                self.averaging -= isinstance(node, syntax.Over)

    def _table_of(self, column: str) -> str | None:
        """The first table that has a column of this name."""
        return next((table for table, columns in self.tables.items() if column in columns), None)

    def _of_table(self, table: str, item: syntax.Expr) -> bool:
        """Whether what stands where an index does is the name of a column."""
        return word_of(item) in self.tables.get(table, ())

    def _name(self, node: syntax.Name, bound: Mapping[str, Span], public: str) -> None:
        if node.id in bound or node.id in ("inf", "real"):
            return
        found = self.scope.get(node.id)
        if found is None and node.id in ("id", "unknown") and node.span in self.domains:
            return
        if found is None:
            self._undefined(node, bound, domain=node.span in self.domains)
        elif public and found.what != "parameter":
            message = f"{node.id} is {found.with_article}; {public}"
            self.report.error("PS0203", node.span, message, others=found.here)

    def _undefined(self, node: syntax.Name, bound: Mapping[str, Span], *, domain: bool) -> None:
        functions, name, text = library(), node.id, self.report.source.text
        number = _NUMBER_WITHOUT_DIGITS.match(text, node.span.start)
        if number is not None:
            place, hint = Span(number.start(), number.end()), f"write 1{number[0]}"
            self.report.error("PS0121", place, "a number starts with a digit", label="read as a name", help=hint)
            return
        known = (*self.scope.names, *bound, *(("real", "id", "unknown") if domain else ()))
        from privspec.language import meanings as senses

        found = senses.NAMES.get(name) if not domain else None
        found = found or advice(name, known, senses.DOMAINS if domain else {})
        if found is None and name in functions:
            hint = f"it is written {functions[name].signature}"
            self.report.error("PS0203", node.span, f"{name} is a function; it needs arguments", help=hint)
            return
        if (table := self._table_of(name)) is not None:
            found = f"{name} is a column of {table}: write marginals({table}, {{{name}}}) to count its values"
        twin = next((other for other in known if fold(other) == fold(name)), None)
        if twin is not None:
            odd = next((a for a, b in zip(name, twin, strict=False) if a != b), name[0])
            found = f"write {twin}: the letter {odd} here is the {letter_name(odd)}"
        if text[: node.span.start].rstrip(" \t").endswith(("--", "//")):
            found = "a comment starts with #"
        places = (
            "the values of a column are {a, b}, 0..120 or [0, 1]"
            if domain
            else "declare it under `variables:` or `parameters:`"
        )
        hint = found or places
        self.report.error("PS0201", node.span, f"nothing is called {name}", help=hint)

    def _comprehension(self, node: syntax.Comprehension, bound: Mapping[str, Span], public: str) -> None:
        variable = node.variable
        found = self.scope.get(variable)
        party = found is not None and found.what == "party"
        if node.domain is not None:
            if not self._python_range(node.domain):
                self.check(node.domain, bound)
            if found is not None and not party:
                message = f"{variable} already means {found.with_article}"
                label = f"used here as the variable of `for {variable}`"
                hint = "another letter can be used"
                self.report.error("PS0204", node.span, message, label=label, others=found.here, help=hint)
        elif not party:
            near = nearest(variable, self.scope.of("party"))
            hint = f"did you mean `for {near}`?" if near else f"say what it runs through: for {variable} in 1..n"
            self.report.error("PS0228", node.span, f"{variable} is not an index set", help=hint)
        self.check(node.body, {**bound, variable: node.span}, public)

    def _python_range(self, domain: syntax.Domain) -> bool:
        """`range(10)` elsewhere means ten numbers from 0; here entries are counted from 1, and both ends belong."""
        match domain:
            case syntax.Call(function="range" | "arange" | "seq", arguments=(first, *rest)) if len(rest) < 2:
                ends = [self.report.source.slice(argument.span) for argument in (first, *rest)]
            case _:
                return False
        low, high = ("1", ends[0]) if len(ends) == 1 or ends[0] == "0" else (ends[0], ends[1])
        if len(ends) == 2:
            high = ends[1] if ends[0] == "0" else str(int(high) - 1) if high.isdigit() else f"{high} - 1"
        message = "a range is written lo..hi, with both ends included; entries are counted from 1"
        self.report.error("PS0220", domain.span, message, help=f"write {low}..{high}")
        return True

    def _call(self, node: syntax.Call, bound: Mapping[str, Span], public: str) -> None:
        function = node.function
        if node.span in self.domains and function not in DOMAIN_CALLS:
            from privspec.language import meanings as senses

            hint = advice(function, DOMAIN_CALLS, senses.DOMAINS) or f"these exist: {', '.join(DOMAIN_CALLS)}"
            self.report.error("PS0220", node.span, f"there is no domain {function}(...)", help=hint)
        elif function not in (*library(), "csv", "npy", *DOMAIN_CALLS):
            from privspec.language.meanings import FUNCTIONS

            place, message = self.scope.get(function), f"there is no function {function}"
            if place is not None and function not in FUNCTIONS:
                hint = f"{function} is {place.with_article}; its entries are written {function}[i]"
            else:
                arguments = [self.report.source.slice(argument.span) for argument in node.arguments]
                hint = known_function(function, arguments, averaged=self.averaging > 0)
                message = f"{function} takes square brackets" if function in ("E", "worst") else message
            self.report.error("PS0205", node.span, message, help=hint)
        questioned = about_table(node)
        for argument in node.arguments:
            about = CONDITIONS if self.tables.get(questioned or "") else syntax.Condition
            if isinstance(argument, about) or (isinstance(argument, syntax.Keyword) and gathering(argument)):
                continue  # read once the values of columns are known
            wrong = self._argument_of(node, argument, bound)
            if wrong is not None:
                self.report.error("PS0206", argument.span, wrong[0], help=wrong[1])
            else:
                self.check(argument.value if isinstance(argument, syntax.Keyword) else argument, bound, public)

    def _argument_of(
        self, node: syntax.Call, argument: syntax.Argument, bound: Mapping[str, Span]
    ) -> tuple[str, str] | None:
        """What is wrong with an argument, and what to write, where its form says what was meant."""
        text = self.report.source.slice
        table = text(node.arguments[0].span)
        counts = "marginals({}, {{{}}})"
        match node.function, argument:
            case _, syntax.Index(base=syntax.Name(id=owner), indices=(item,)) if self._of_table(owner, item):
                column = item.value if isinstance(item, syntax.String) and is_name(item.value) else spell(item)
                message = f"{column} is a column of {owner}, and is named after it, with a point"
                return message, f"write {owner}.{column}"
            case "sum" | "mean" | "median" | "quantile" | "variance", syntax.Name(id=column) if (
                column not in (*self.scope.names, *bound) and (home := self._table_of(column)) is not None
            ):
                return f"{column} is a column of {home}, and is named after it, with a point", f"write {home}.{column}"
            case "csv" | "npy" as function, syntax.Name() | syntax.Attribute() if argument is node.arguments[0]:
                return f"{function} takes the name of a file in quotes", f'write {function}("{text(argument.span)}")'
            case "marginals", syntax.Name(id=column) if column not in (*self.scope.names, *bound):
                return "columns stand in braces", f"write {counts.format(table, column)}"
            case "table", syntax.Name(id=column):
                example = f"as in {column} in {{a, b}} or {column} in 0..120"
                return f"the column {column} needs its values", f"say which values it may take, {example}"
            case _:
                return None


def resolve(spec: syntax.Spec, scope: Scope, report: Report) -> None:
    """Check every name that is used in expressions and domains; requirements and options have passes of their own."""
    resolver = Resolver(scope, report)
    why_parameter = "a parameter is computed from other parameters only"
    why_domain = "domains and sizes are public: only parameters can stand here"
    for parameter in spec.parameters:
        resolver.check(parameter.value, _bound(parameter.target, scope), why_parameter)
    for party in spec.parties:
        resolver.check(party.domain, {}, why_domain)
    for variable in spec.variables:
        if variable.domain is not None:
            resolver.domains.update(_domain_names(variable.domain))
            calls = [call for call in every(variable.domain, syntax.Call) if call.function == "table"]
            columns = tuple(c.name for call in calls for c in call.arguments if isinstance(c, syntax.Member))
            resolver.tables[variable.target.name] = columns
        resolver.check(variable.domain, {}, why_domain)
        resolver.check(variable.value, _bound(variable.target, scope))
    for statement in spec.background:
        match statement:
            case syntax.Relation(op="~"):
                bound = _bound(statement.left, scope) | running_index(statement, scope)
                resolver.check(statement.left, bound)
                if isinstance(statement.right, syntax.Call):  # its name is the business of the pass for data models
                    for argument in statement.right.arguments:
                        inner = argument.value if isinstance(argument, syntax.Keyword) else argument
                        resolver.check(inner, bound)
            case syntax.Relation(op="=", left=syntax.Name() as left) if left.id not in scope:
                _undeclared(left, spec, scope, report)
                resolver.check(statement.right, {})
            case syntax.Relation():
                bound = _bound(statement.left, scope) | _letters(statement)
                resolver.check(statement.left, bound)
                resolver.check(statement.right, bound)
            case syntax.Membership():
                resolver.check(statement.left, {})
                resolver.check(statement.domain, {}, why_domain)
            case syntax.SensitivityClaim():
                resolver.check(statement.subject, _bound(statement.subject, scope))
                resolver.check(statement.amount, {})
    resolver.check(spec.loss, {})
    for target in spec.accuracy:
        bound = {} if target.variable is None else {target.variable: target.span}
        if target.variable is None:
            resolver.check(target.left, {})
        else:
            resolver.check(syntax.Comprehension(target.left, target.variable, target.domain, span=target.span), {})
        resolver.check(target.right, bound)
        resolver.check(target.probability, bound)


def undeclared(spec: syntax.Spec, scope: Scope) -> tuple[str, ...]:
    """Names that the background defines and nothing declares."""
    relations = (s for s in spec.background if isinstance(s, syntax.Relation) and s.op == "=")
    return tuple(r.left.id for r in relations if isinstance(r.left, syntax.Name) and r.left.id not in scope)


def _undeclared(left: syntax.Name, spec: syntax.Spec, scope: Scope, report: Report) -> None:
    """`z = A @ x` where `intermediate y` was declared, or nothing."""
    relations = [s for s in spec.background if isinstance(s, syntax.Relation)]
    defined = {r.left.id for r in relations if isinstance(r.left, syntax.Name)}
    waiting = [name for name, found in scope.of("intermediate").items() if name not in defined and found.index is None]
    waiting = [name for name in waiting if getattr(scope[name].node, "value", None) is None]
    near = nearest(left.id, waiting or scope.names) or (waiting[0] if len(waiting) == 1 else None)
    hint = f"did you mean {near}? Else " if near else ""
    hint += f"declare it: write intermediate {left.id} under `variables:`"
    others = ((scope[near].span, "declared, and defined nowhere"),) if near in waiting else ()
    report.error("PS0201", left.span, f"nothing is called {left.id}", others=others, help=hint)


def _domain_names(node: syntax.Node) -> Iterator[Span]:
    """Where names and calls stand for domains."""
    match node:
        case syntax.Name():
            yield node.span
        case syntax.Power():
            yield from _domain_names(node.base)
        case syntax.Member():
            yield from _domain_names(node.domain)
        case syntax.Call():
            yield node.span
            for argument in node.arguments:
                if isinstance(argument, syntax.Member):
                    yield from _domain_names(argument)


def entry_of(statement: syntax.Relation, scope: Scope) -> str | None:
    """The input whose entry a law is about, as in `x[1] ~ ...`; None for a law of a whole variable."""
    match statement:
        case syntax.Relation(op="~", left=syntax.Index(base=syntax.Name(id=name), indices=(index,))):
            declared = scope.get(name)
            party = isinstance(index, syntax.Name) and index.id in scope.of("party")
            return name if declared is not None and declared.what == "input" and not party else None
    return None


def running_index(statement: syntax.Relation, scope: Scope) -> dict[str, Span]:
    """The letter on the left of `x[i] ~ ...`, which runs through the entries on that line."""
    match statement.left:
        case syntax.Index(indices=(syntax.Name(id=letter, span=span),)) if letter not in scope:
            return {letter: span} if entry_of(statement, scope) is not None else {}
    return {}


def _letters(statement: syntax.Relation) -> dict[str, Span]:
    """The indices on the left of `w[i] = e`; what is wrong with such a line is the business of the definitions."""
    match statement:
        case syntax.Relation(op="=", left=syntax.Index(base=syntax.Name(), indices=indices)):
            return {index.id: index.span for index in indices if isinstance(index, syntax.Name)}
    return {}


def _bound(target: syntax.Node, scope: Scope) -> dict[str, Span]:
    """The index of a declaration, or on the left of a statement, in force on its line."""
    match target:
        case syntax.Index(indices=(syntax.Name(id=name),)) | syntax.Ref(indices=(syntax.Name(id=name),)) if (
            name in scope.of("party")
        ):
            return {name: target.span}
        case _:
            return {}
