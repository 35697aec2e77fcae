"""Data models, constraints on the mechanism, accuracy targets, lines of fairness and the loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

import numpy as np

from privspec.core.records import dataclass, field, replace
from privspec.core.spans import Span
from privspec.core.suggest import advice
from privspec.kernel.measures import TOTAL_VARIATION
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.walk import Comparison, comparisons, names_used, reached, reference, root, walk
from privspec.model.definitions import Definitions, whole_of
from privspec.model.domains import ENUMERATION_LIMIT, Domain, Table, Tables, Type, unknown_keys
from privspec.model.evaluate import Values, evaluate, exact_value, floats
from privspec.model.library import function_of
from privspec.model.priors import DISTRIBUTIONS
from privspec.model.reports import Failure, Report, listing, nearest, suggestion
from privspec.model.requirement_rules import RequirementReader, sort_clauses
from privspec.model.requirements import (
    AccuracyTarget,
    AssertedSensitivity,
    DataModel,
    Fact,
    IndependenceRequirement,
    MechanismConstraint,
)
from privspec.model.scope import Scope
from privspec.model.shapes import Bindings, Typer, plain
from privspec.model.spaces import is_finite
from privspec.model.values import CellCounts, Value

SAME = 1e-6
"""Two values of numbers up to a thousand that are no further apart are one, computed in another order."""


@dataclass(frozen=True, eq=False)
class _Somewhere(Values):
    """Values where each input has one that is drawn at random, and each output is what it stands for.

    What cannot be computed has a value at random as well, one for each expression as it is written.
    """

    typer: Typer
    definitions: Definitions
    drawn: dict[syntax.Node, Value]
    seed: int

    def bind(self, variable: str, place: Value) -> _Somewhere:
        return replace(self, environment=self.environment.bind(variable, place))

    def name(self, expr: syntax.Name) -> Value:
        if expr.id in self.environment.values:
            return super().name(expr)
        if expr not in self.drawn:
            definition, outside = self.definitions.of.get(expr.id), replace(self, environment=self.typer.environment)
            meant = definition.expr if definition is not None else self.definitions.targets.get(expr.id)
            if meant is None or expr.id in self.definitions.circular:
                return self._at_random(expr)
            if definition is None or definition.index is None:
                self.drawn[expr] = outside.of(meant)
            else:
                each = syntax.Comprehension(meant, definition.index, span=expr.span)
                self.drawn[expr] = outside.terms(each)[1]
        return self.drawn[expr]

    def call(self, expr: syntax.Call) -> Value:
        try:
            return super().call(expr)
        except Failure:
            return self._at_random(expr)

    def _at_random(self, expr: syntax.Expr) -> Value:
        if expr not in self.drawn:
            kind = replace(self.typer, report=Report(self.typer.report.source)).of(expr)
            table = kind.element.table if isinstance(kind.element, Tables) else None
            size = kind.size if table is None else table.cell_count
            if not kind.known or not (kind.numeric or table) or size > ENUMERATION_LIMIT:
                raise Failure("PS0261", expr.span, "this has no value of its own")
            numbers = np.random.default_rng([self.seed, len(self.drawn)]).integers(1, 1000, size).astype(np.float64)
            if table is not None:
                self.drawn[expr] = CellCounts(table, numbers)
            else:
                self.drawn[expr] = exact_value(numbers.reshape(kind.shape))
        return self.drawn[expr]


@dataclass(slots=True)
class LossReader:
    """Reads what is said about data, mechanism and loss."""

    scope: Scope
    report: Report
    typer: Typer
    definitions: Definitions
    domains: Mapping[str, Domain]
    modelled: dict[str, DataModel] = field(default_factory=dict)
    sequences: frozenset[str] = frozenset()
    """Inputs with laws of their entries, one given others."""
    given: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of inputs that are drawn given others, which those are."""

    # -- data models

    @property
    def finite(self) -> bool:
        """Whether all inputs and outputs have finitely many values: then losses average over laws of entries too."""
        held = [self.domains.get(name) for name in self.scope.of("input", "output")]
        return all(domain is not None and is_finite(domain) for domain in held)

    def model(self, statement: syntax.Relation) -> None:
        """`name ~ distribution`, or `(name, name) ~ distribution` for inputs that depend on one another."""
        subjects = self._subjects(statement)
        if not subjects:
            return
        match statement.right:
            case syntax.Name(id=name):
                arguments: tuple[syntax.Argument, ...] = ()
            case syntax.Call(function=name, arguments=arguments):
                pass
            case _:
                self.report.error("PS0404", statement.right.span, "a distribution is expected here, as in normal(0, 1)")
                return
        if not self._known_distribution(name, len(arguments), statement.right.span):
            return
        before = next((subject for subject in subjects if subject in self.modelled), None)
        if before is not None:
            others = ((self.modelled[before].span, "the first one"),)
            self.report.error("PS0405", statement.span, f"{before} has two data models", others=others)
            return
        number, _ = self.report.line(statement.span)
        joint = tuple(subjects) if len(subjects) > 1 else ()
        whole = f"({', '.join(joint)})" if joint else subjects[0]
        found = DataModel(whole, name, arguments, statement.span, number, joint)
        self.modelled.update(dict.fromkeys(subjects, found))
        if joint and not DISTRIBUTIONS[name].of_values:
            message = f"{name} is a law of one variable, and {whole} is one of {len(joint)}"
            known = sorted(other for other, one in DISTRIBUTIONS.items() if one.of_values)
            hint = f"a joint law is one of {', '.join(known)}, as in {whole} ~ categorical([[0.3, 0.2], [0.1, 0.4]])"
            self.report.error("PS0406", statement.right.span, message, help=hint)
        self._arguments(subjects[0], name, arguments, statement)

    def _subjects(self, statement: syntax.Relation) -> list[str]:
        """The names on the left of `~`; none after a complaint."""
        left = statement.left
        if not isinstance(left, syntax.TupleOf):
            found = self._subject(left, ("input", "intermediate"))
            return [] if found is None else [found]
        names = [self._subject(item, ("input",)) for item in left.items]
        for i, (name, item) in enumerate(zip(names, left.items, strict=True)):
            message = None
            if name is not None and name in names[:i]:
                message = f"{name} is named twice in this law"
            elif name in self.typer.indexed:
                message = f"a joint law is for inputs of one party, and {name} is one of many people's"
            if message is not None:
                self.report.error("PS0407", item.span, message)
                return []
        return [] if None in names else [name for name in names if name is not None]

    def _subject(self, expr: syntax.Expr, kinds: tuple[str, ...]) -> str | None:
        subject = root(expr)
        declared = None if subject is None else self.scope.get(subject.id)
        if isinstance(expr, syntax.Attribute) and isinstance(expr.base, syntax.Name) and "input" in kinds:
            domain = self.domains.get(expr.base.id)
            if isinstance(domain, Table) and len(kinds) > 1:
                return self._column(expr, expr.base.id, domain)
        if subject is None or isinstance(expr, syntax.Attribute):
            self.report.error("PS0407", expr.span, "a data model is given for a name: x ~ uniform")
            return None
        if declared is None:
            return None
        if declared.what not in kinds:
            what = "inputs and computed values" if len(kinds) > 1 else "inputs, where it is a joint law"
            message = f"a data model is for {what}; {subject.id} is {declared.with_article}"
            self.report.error("PS0407", expr.span, message, others=declared.here)
            return None
        return subject.id

    def _column(self, expr: syntax.Attribute, name: str, table: Table) -> str | None:
        """The law of a column is that of one record, the records being independent; questions need not look at it."""
        written = walk(self.definitions.domains[name]) if name in self.definitions.domains else ()
        known = {*table.names, *(one.name for one in written if isinstance(one, syntax.Member))}
        if expr.name in known:
            return f"{name}.{expr.name}"
        hint = suggestion(expr.name, known) or f"it has {', '.join(table.names)}"
        self.report.error("PS0407", expr.span, f"{name} has no column {expr.name}", help=hint)
        return None

    def _known_distribution(self, name: str, given: int, span: Span) -> bool:
        if name not in DISTRIBUTIONS:
            from privspec.language import meanings

            found = advice(name, DISTRIBUTIONS, meanings.DISTRIBUTIONS)
            message = f"there is no distribution {name}"
            self.report.error("PS0404", span, message, help=found or f"these exist: {', '.join(DISTRIBUTIONS)}")
            return False
        counts = DISTRIBUTIONS[name].counts
        if given not in counts:
            wanted = " or ".join(map(str, counts))
            self.report.error("PS0406", span, f"{name} takes {wanted} arguments, not {given}")
            return False
        return True

    def _arguments(
        self, subject: str, name: str, arguments: tuple[syntax.Argument, ...], statement: syntax.Relation
    ) -> None:
        kinds = [self.typer.type_of(a) for a in arguments if not isinstance(a, syntax.NO_EXPRESSION)]
        if name == "uniform" and not arguments:
            domain = self.domains.get(subject)
            if domain is not None and not domain.bounded and domain.size is None and not isinstance(domain, Table):
                message = f"{subject} has no bounds, so it cannot be uniform"
                self.report.error("PS0406", statement.right.span, message, help="write uniform(lo, hi)")
        if name == "thurstone_mosteller" and len(kinds) == 2:
            self._preferences(subject, arguments, statement)
        # sizes and weights are public; of finite inputs, one may be drawn given others
        mine = {subject} if name == "proportional" else set[str]()
        if not isinstance(statement.left, syntax.TupleOf) and self._plain(subject):
            given = {used for argument in arguments for used in names_used(argument) if self._plain(used)} - {subject}
            self.given[subject] = tuple(given)
            if subject in reached(given, lambda one: self.given.get(one, ())):
                message = f"{subject} is drawn given {listing(sorted(given))}, and these go back to {subject}"
                hint = "order the inputs, and draw each given some of those before it"
                self.report.error("PS0406", statement.right.span, message, help=hint)
            mine |= given
        elif name == "proportional":
            mine.update(one.id for one in getattr(statement.left, "items", ()) if isinstance(one, syntax.Name))
        for argument in arguments:
            for used in names_used(argument):
                declared = self.scope.get(used)
                if used not in mine and declared is not None and declared.what not in ("parameter", "constant"):
                    message = f"a data model is public: {used} is {declared.with_article}"
                    self.report.error("PS0406", argument.span, message, others=declared.here)

    def _plain(self, name: str) -> bool:
        """Whether it is an input of finitely many values that belongs to nobody of an index set."""
        declared, domain = self.scope.get(name), self.domains.get(name)
        known = declared is not None and declared.what == "input" and domain is not None
        return known and domain is not None and is_finite(domain) and name not in self.typer.indexed

    def _preferences(self, subject: str, arguments: tuple[syntax.Argument, ...], statement: syntax.Relation) -> None:
        kind = self.typer.types.get(subject)
        if kind is None or not kind.known:
            self.typer.attributes[subject, "*"] = Type()
            return
        indexed = subject in self.typer.indexed
        own = kind.shape[1:] if indexed else kind.shape
        values = [self.typer.public(a) for a in arguments if not isinstance(a, syntax.NO_EXPRESSION)]
        if len(own) != 2:
            message = f"thurstone_mosteller draws n pairs of d features; {subject} has another shape"
            self.report.error("PS0406", statement.span, message)
            self.typer.attributes[subject, "*"] = Type()
            return
        n, d = own
        for value, wanted, word in zip(values, (d, n), ("d", "n"), strict=False):
            if isinstance(value, Fraction) and value != wanted:
                message = f"thurstone_mosteller has {word} = {value} here, and {subject} says {wanted}"
                self.report.error("PS0406", statement.span, message)
        self.typer.attributes[subject, "weights"] = Type((kind.shape[0], d) if indexed else (d,))

    # -- constraints and claims

    def constraint(self, relation: syntax.Relation, bound: Bindings) -> MechanismConstraint | Fact | None:
        """`E[f(z) | x] = e`, `e <= e`: both sides fit, and an output is spoken of, or else data."""
        left, right = self.typer.type_of(relation.left, bound), self.typer.type_of(relation.right, bound)
        if left.known and right.known and left.shape != right.shape and left.shape and right.shape:
            one, other = left.describe(), right.describe()
            others = ((relation.left.span, one), (relation.right.span, other))
            self.report.error("PS0207", relation.span, f"{one} on the left, {other} on the right", others=others)
        outputs = self.scope.of("output", "choose", "component")
        names = names_used(relation.left) + names_used(relation.right)
        behind = reached(names, self._needs)
        numeric = all(kind.numeric for kind in (left, right) if kind.known)
        if not any(name in outputs for name in behind):
            if any(name in self.scope.of("input") for name in behind) and numeric and not _overs(relation.left):
                return Fact(relation, *self.report.line(relation.span))
            message = "this says nothing about an output or a choice, so the mechanism cannot obey it"
            hint = "what is believed of the data is written with ~, as in x ~ uniform"
            self.report.error("PS0411", relation.span, message, help=hint)
            return None
        return MechanismConstraint(relation, *self.report.line(relation.span))

    def claim(self, claim: syntax.SensitivityClaim, reader: RequirementReader) -> AssertedSensitivity | None:
        """`name has l1 sensitivity at most e wrt x, replacing one record`."""
        subject = root(claim.subject)
        declared = None if subject is None else self.scope.get(subject.id)
        if subject is None or declared is None or declared.what not in ("intermediate", "output"):
            self.report.error("PS0410", claim.subject.span, "a sensitivity is asserted of an intermediate or output")
            return None
        if claim.norm not in ("l1", "l2", "linf"):
            near = nearest(claim.norm, ("l1", "l2", "linf")) or "l1, l2 or linf"
            self.report.error("PS0410", claim.span, f"there is no {claim.norm} sensitivity", help=f"write {near}")
            return None
        amount = self.typer.public(claim.amount)
        if amount is not None and (not isinstance(amount, Fraction) or amount <= 0):
            self.report.error("PS0410", claim.amount.span, "a sensitivity is a positive number")
            return None
        wrt = reader.names(syntax.Refs((claim.wrt,), span=claim.wrt.span), "input", "PS0302")
        clauses = sort_clauses(claim.clauses, self.report)
        for extra in (clauses.distance, clauses.seen_by, clauses.model, clauses.apart, clauses.cell):
            if extra is not None:
                self.report.error("PS0310", extra.span, "a sensitivity takes a unit only")
        relation = reader.relation(clauses.unit, wrt)
        if not wrt or relation is None:
            return None
        return AssertedSensitivity(claim, subject.id, wrt[0], relation, *self.report.line(claim.span))

    # -- loss and accuracy

    def loss(self, loss: syntax.Expr) -> None:
        """One number, averaged over noise (and data) or the worst of such averages."""
        kind = self.typer.type_of(loss)
        if not plain(kind):
            message = f"a loss is one number, and this is {kind.describe()}"
            self.report.error("PS0402", loss.span, message, help=self._one_number(loss) if kind.numeric else None)
        self._averaged(loss, "loss")

    def _one_number(self, loss: syntax.Expr) -> str:
        """The same error as one number: `E[ (O - y)^2 ]` as `E[ ||O - y||^2 ]`."""
        over = loss if isinstance(loss, syntax.Over) else None
        body = loss if over is None else over.body
        match body:
            case syntax.Binary(op="^", left=inner, right=syntax.Number()):
                body = inner
        absolute = False
        match body:
            case syntax.Absolute(operand=inner):
                body, absolute = inner, True
            case syntax.Call(function="abs", arguments=(argument,)) if not isinstance(argument, syntax.NO_EXPRESSION):
                body, absolute = argument, True
        text, word = spell(body), "E" if over is None else over.operator
        squared = f"{word}[ ||{text}||^2 ]"
        if not absolute:
            return f"square and sum it: {squared}"
        return (
            f"write {word}[ ||{text}||_1 ] for the sum of all absolute errors, {squared} for that of the squared ones"
        )

    def target(self, target: syntax.Target, bound: Bindings) -> AccuracyTarget:
        left, right = self.typer.type_of(target.left, bound), self.typer.type_of(target.right, bound)
        for side, kind in ((target.left, left), (target.right, right)):
            if not plain(kind):
                self.report.error("PS0402", side.span, f"one number is expected here, and this is {kind.describe()}")
        if target.probability is None:
            self._averaged(target.left, "target")
        else:
            value = self.typer.public(target.probability)
            if value is not None and not (isinstance(value, Fraction) and 0 < value < 1):
                self.report.error("PS0409", target.probability.span, "a probability lies between 0 and 1")
        return AccuracyTarget(target, *self.report.line(target.span))

    def target_bindings(self, target: syntax.Target) -> Bindings:
        """What `for j in 1..32` binds."""
        if target.variable is None:
            return {}
        binding, _ = self.typer.running(target.variable, target.domain, target.span)
        return {target.variable: binding}

    def _averaged(self, expr: syntax.Expr, what: str) -> None:
        """Every E[...] depends only on noise and modelled inputs; nothing random stands outside one."""
        if self.report.marred(expr.span):
            return
        for over in _overs(expr):
            if over.operator == "E":
                self._modelled_only(over)
        secret = self.scope.of("input", "intermediate", "output")
        for name in _outside(expr):
            if name.id in secret:
                message = f"{name.id} differs from run to run, so the {what} must average over it"
                self.report.error("PS0408", name.span, message, help=self._around(expr, name.id))
                return

    def _around(self, expr: syntax.Expr, name: str) -> str:
        """The same expression averaged, where it is one term."""
        text = self.report.source.slice(expr.span).strip()
        if _overs(expr) or len(text) > 80:
            return f"write E[ ... ] or worst[ ... ] around {name}"
        return f"write E[ {text} ] for the average over the noise, or worst[ {text} ] for the largest over all data"

    def _modelled_only(self, over: syntax.Over) -> None:
        given = () if over.given is None else names_used(over.given)
        modelled = {subject.partition(".")[0] for subject in self.modelled} | (self.sequences if self.finite else set())
        free = [n for n in self._inputs(self._without_noise(over.body)) if n not in modelled and n not in given]
        # of unknown keys only their sizes have a law: what reads such a table asks for it
        free = [n for n in free if not unknown_keys(self.domains.get(n))]
        if not free:
            return
        name, text = free[0], self.report.source.slice(over.span)
        inside = text[text.find("[") + 1 : text.rfind("]")].strip() if "[" in text else "..."
        message = f"this average depends on {name}, for which there is no data model"
        hint = f"write worst[ {inside} ] for the largest over all {name}, or add a model such as {name} ~ uniform"
        others: tuple[tuple[Span, str], ...] = ((self.scope[name].span, "no data model for it"),)
        if name in self.sequences:
            message = f"this average depends on {name}, and the laws of its entries are for `given the model` alone"
            drawn = [n for n in names_used(over.body) if n in self.scope.of("output") and n in self.domains]
            hint = f"compare a number that noise is added to: output {drawn[0] if drawn else 'O'}, without a domain"
            others = ()
        self.report.error("PS0401", over.span, message, others=others, help=hint)

    def _without_noise(self, expr: syntax.Node) -> Iterator[str]:
        """Names used, leaving out `O - y` where O is a number the solver draws around y: only noise remains."""
        drawn = self._drawn()
        noise: list[syntax.Node] = [c.whole for c in comparisons(expr, drawn) if self._is_noise(c)]

        def closed(node: syntax.Node) -> bool:
            if not isinstance(node, syntax.Binary) or node.op not in "+-" or drawn.isdisjoint(names_used(node)):
                return False
            return any(node is one for one in noise) or self._cancels(node)

        rest = walk(expr, closed)
        return (node.id for node in rest if isinstance(node, syntax.Name))

    def _is_noise(self, comparison: Comparison) -> bool:
        """Whether the output is compared with what it stands for (anything, if it is computed from noisy values)."""
        name = reference(comparison.mine) or ""
        aim = self.definitions.targets.get(name)
        if name in self.definitions.of or (aim is None and not isinstance(comparison.mine, syntax.Name)):
            return True  # an entry by itself stands for what it is compared with
        return whole_of(comparison) == aim

    def _cancels(self, whole: syntax.Expr) -> bool:
        """Whether a sum of outputs and other terms is zero, whatever the data, once each output is what it stands for.

        It is tried at data drawn at random: two linear maps that differ do so nearly everywhere.
        """
        for seed in range(2):
            try:
                value = floats(
                    _Somewhere(self.typer.environment, self.typer, self.definitions, {}, seed).of(whole), whole.span
                )
            except Failure:
                return False
            if np.any(np.abs(value) > SAME):
                return False
        return True

    def _drawn(self) -> frozenset[str]:
        """Outputs that are drawn without bias around what they are compared with."""
        constrained = {n for relation in self.definitions.constraints for n in names_used(relation.left)}
        domains = {name: self.domains.get(name) for name in self.scope.of("output")}
        infinite = (name for name, domain in domains.items() if domain is None or domain.size is None)
        return frozenset(name for name in infinite if name not in constrained)

    def _inputs(self, names: Iterator[str]) -> list[str]:
        """Inputs that some names depend on, not looking behind a value that has a data model."""
        inputs = self.scope.of("input")
        seen = reached(names, lambda name: () if name in self.modelled else self._needs(name))
        return [name for name in seen if name in inputs]

    def _needs(self, name: str) -> tuple[str, ...]:
        return self.definitions.dependencies.get(name, ())


def _overs(expr: syntax.Node) -> list[syntax.Over]:
    """The outermost averages and worst cases."""
    nodes = walk(expr, lambda node: isinstance(node, syntax.Over))
    return [node for node in nodes if isinstance(node, syntax.Over)]


def _outside(expr: syntax.Node) -> Iterator[syntax.Name]:
    """Names outside every average, and outside what is a number about laws."""

    def closed(node: syntax.Node) -> bool:
        return function_of(node).of_laws or isinstance(node, syntax.Over | syntax.Attribute)

    return (node for node in walk(expr, closed) if isinstance(node, syntax.Name))


# --- fairness lines -------------------------------------------------------------------------------


def read_independence(
    line: syntax.Independence,
    reader: RequirementReader,
    attributes: Mapping[str, Domain],
    tables: Mapping[str, Table] | None = None,
) -> IndependenceRequirement | None:
    """A fairness line; None after a complaint.

    Args: attributes, those of the tables among the inputs that questions look at; tables, with all of their columns.
    """
    if isinstance(line.subjects, syntax.AllOf):
        subjects: tuple[str | None, ...] = reader.names(line.subjects, "output", "PS0301")
    else:
        subjects = tuple(_known(ref, reader, attributes, tables) for ref in line.subjects.items)
    of = _known(line.of, reader, attributes, tables)
    refs = line.given.items if isinstance(line.given, syntax.Refs) else ()
    if line.given is not None and (not refs or (len(refs) > 1 and line.value is not None)):
        hint = "as in O is independent of sex given (income, age), or given y = 1"
        reader.report.error("PS0320", line.given.span, "names are given, or one name with a value", help=hint)
        return None
    found = [_known(ref, reader, attributes, tables) for ref in refs]
    named = [name for name in (*subjects, of, *found) if name is not None]
    if not subjects or len(named) < len(subjects) + 1 + len(refs):
        return None
    several = [name for name in found if name is not None]
    given = several[0] if several else None
    domain = {**attributes, **reader.domains}.get(given or "")
    try:
        _check(line, named, reader)
        equals = None if line.value is None or given is None else _value(line.value, given, domain, reader)
    except Failure as failure:
        reader.report.failure(failure)
        return None
    number, text = reader.report.line(line.span)
    whole = tuple(name for name in subjects if name is not None)
    return IndependenceRequirement(
        whole, of or "", given, line.value, line.tolerance, line.span, number, text, equals, tuple(several[1:])
    )


def _known(
    ref: syntax.Ref, reader: RequirementReader, attributes: Mapping[str, Domain], tables: Mapping[str, Table] | None
) -> str | None:
    """The name of something that varies; None after a complaint."""
    known = {*reader.scope.of("input", "output", "intermediate"), *attributes}
    full = f"{ref.name}.{ref.attribute}" if ref.attribute else ref.name
    if full in known:
        reader.check_index(ref)
        return full
    column = ref.attribute or ref.name
    domains = {**reader.domains, **(tables or {})}
    table = next((n for n, d in domains.items() if column in _columns(d) and ref.name in (n, column)), None)
    text = f"nothing that varies is called {full}"
    hint = suggestion(full, known) or "it must be a variable, or an attribute of a table"
    if table is not None:
        text = f"{column} differs from record to record of {table}: a result is about all of them"
        hint = f"a line of privacy limits what it says of one record: 0.1-{TOTAL_VARIATION.word}, replacing one record"
    reader.report.error("PS0320", ref.span, text, help=hint)
    return None


def _columns(domain: Domain) -> tuple[str, ...]:
    inner = domain.innermost
    return inner.names if isinstance(inner, Table) else ()


def _check(line: syntax.Independence, named: list[str], reader: RequirementReader) -> None:
    """Whether the line speaks of an output, of nothing twice, and of a tolerance that is one.

    Raises: Failure.
    """
    twice = next((name for i, name in enumerate(named) if name in named[:i]), None)
    if twice is not None:
        raise Failure("PS0320", line.span, f"{twice} is named twice in this line")
    if not reader.scope.of("output").keys() & set(named):
        text = "this line names no output, so that no mechanism could obey it"
        hint = "what is believed of the data is written under background, as in (sex, y) ~ categorical(...)"
        raise Failure("PS0322", line.span, text, label="nothing here is drawn by the mechanism", help=hint)
    if line.tolerance is not None:
        tolerance = evaluate(line.tolerance, reader.public)
        if not isinstance(tolerance, Fraction) or not 0 <= tolerance < 1:
            raise Failure("PS0321", line.tolerance.span, "a tolerance in total variation is a number from 0 to below 1")


def _value(expr: syntax.Expr, name: str, domain: Domain | None, reader: RequirementReader) -> Value:
    """The value in `given y = 1`, `given sex = F`: a public one, or a bare word of the domain.

    Raises: Failure PS0323 if the attribute never takes it, and what evaluation raises.
    """
    word = isinstance(expr, syntax.Name) and expr.id not in reader.public.values
    text = reader.report.source.slice(expr.span)
    found: Value = text if word else evaluate(expr, reader.public)
    if word and domain is not None and domain.contains(found):
        return found
    if not word and (domain is None or (np.shape(found) == domain.shape and domain.contains(found))):  # type: ignore[arg-type]
        return found
    hint = None
    if word and domain is not None and 0 < (domain.size or 0) <= 1000:
        hint = suggestion(text, [item for item in domain.elements() if isinstance(item, str)])
    where = "" if domain is None else f"; it lies in {domain.describe()}"
    raise Failure("PS0323", expr.span, f"{name} never takes the value {text}{where}", help=hint)
