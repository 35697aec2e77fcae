"""Lines of privacy and fairness: outputs and inputs that exist, observers, effects that have a limit, amounts.

Amounts that are allowed and promise little are warned of: a large epsilon, a delta that leaves room for publishing a
person.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod

import numpy as np

from privspec.core.spans import Span
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.model import neighbours as nb
from privspec.model.clauses import Clauses, DistanceReader, UnitReader, sort_clauses
from privspec.model.distances import DISTANCES
from privspec.model.domains import Domain, Power
from privspec.model.evaluate import Environment, evaluate
from privspec.model.measures import (
    LDP,
    MEASURES,
    AmountReader,
    EpsilonDelta,
    Lipschitz,
    Measure,
    Metric,
    MetricDP,
    PerAtomLDP,
    Personalised,
    PureDP,
)
from privspec.model.neighbours import InputBlock
from privspec.model.reports import Failure, Report, listing, nearest
from privspec.model.requirements import IndependenceRequirement, Requirement
from privspec.model.scope import Scope
from privspec.model.values import Value, readable, show

LARGE_EPSILON = 10
"""A guesser may be right 22,026 times for each time that they are wrong."""

LARGE_DELTA = Fraction(1, 1000)


def warn_about_amounts(
    line: syntax.Requirement, found: Requirement, blocks: Mapping[str, InputBlock], report: Report
) -> None:
    """A requirement that holds and protects hardly anybody is warned about; nothing is refused."""
    measures = found.measure.each if isinstance(found.measure, Personalised) else (found.measure,)
    amounts = [one.amounts for one in measures if isinstance(one, PureDP | EpsilonDelta | LDP | PerAtomLDP)]
    epsilon = max((figures["epsilon"] for figures in amounts), default=Fraction(0))
    delta = max((figures.get("delta", Fraction(0)) for figures in amounts), default=Fraction(0))
    items = line.amount.items
    if epsilon > LARGE_EPSILON:
        report.warn(
            "PS0324",
            items[0].span,
            f"an epsilon of {show(epsilon)} promises very little",
            label="above 10",
            help="below 1 is strong, 1 to 3 usual, 10 the most that is ever defended; see what it means: "
            "privspec explain PLAN --for public",
        )
    people = [n for name in found.wrt if (n := _units(found.neighbours, blocks.get(name))) is not None]
    limit = min((Fraction(1, n) for n in people if n > 0), default=Fraction(1))
    if not any(isinstance(one, PureDP) for one in measures) and delta > min(limit, LARGE_DELTA):
        units = nb.plural(found.neighbours.unit_name) if people else "people"
        _warn_of_delta(delta, limit, f"{max(people, default=0):,} {units}", items[-1].span, report)


def _warn_of_delta(delta: Fraction, limit: Fraction, units: str, span: Span, report: Report) -> None:
    if delta > limit:
        message = f"a delta of {show(delta)} allows publishing all about one of {units}"
        label = f"above one over {units.split()[0]}"
    else:
        message = f"a delta of {show(delta)} allows publishing all about one person in {int(1 / delta):,}"
        label = "above 1/1000"
    report.warn(
        "PS0325",
        span,
        message,
        label=label,
        help="delta is the probability with which the promise may fail altogether: 1e-6, or far below one over "
        "the number of people",
    )


def _units(neighbours: nb.NeighbourRelation, block: InputBlock | None) -> int | None:
    """How many units an input holds, where that is public."""
    if block is None or neighbours.adding or isinstance(neighbours, nb.ReplacingEverything):
        return None
    if isinstance(neighbours, nb.ReplacingOneOf):
        return _units(neighbours.of(block), block)
    whole = block.type.shape
    if isinstance(neighbours, nb.ReplacingVoter):
        return whole[0] if block.index and whole else None
    if isinstance(neighbours, nb.ReplacingEntry):
        return block.size if block.layout == "entries" else None
    if isinstance(neighbours, nb.ReplacingRecord) and isinstance(block.domain, Power):
        return (whole[0] if block.index and whole else 1) * block.domain.exponents[0]
    return None


@dataclass(slots=True)
class RequirementReader:
    """Reads requirements one after another; `public` also knows constants, `domains` those of all variables."""

    scope: Scope
    report: Report
    environment: Environment
    blocks: Mapping[str, InputBlock]
    component_outputs: frozenset[str] = frozenset()
    components: frozenset[str] = frozenset()
    unbounded_is_fine: frozenset[str] = frozenset()
    party_of: Mapping[str, str] = field(default_factory=dict)
    public: Environment | None = None
    domains: Mapping[str, Domain] = field(default_factory=dict)

    # -- names
    @property
    def amounts(self) -> AmountReader:
        """Reads the figures of a measure."""
        return AmountReader(self.scope, self.report, self.environment)

    @property
    def units(self) -> UnitReader:
        return UnitReader(self.scope, self.report, self.environment, self.blocks, self.party_of)

    def names(self, names: syntax.Names, kind: str, code: str, also: frozenset[str] = frozenset()) -> tuple[str, ...]:
        """The outputs or inputs that a line names; complaints about others."""
        known = self.scope.of(kind)
        if isinstance(names, syntax.AllOf):
            if names.what != kind + "s":
                self.report.error(code, names.span, f"`all {kind}s` is wanted here")
                return ()
            everything = (*known, *(also if kind == "output" else ()))
            if not everything:
                self.report.error(code, names.span, f"this spec has no {kind}s")
            return everything
        found: list[str] = []
        for ref in names.items:
            name = self._one(ref, kind, code, also)
            if name in found:
                self.report.error(code, ref.span, f"{name} is named twice in this line")
            elif name is not None:
                found.append(name)
        return tuple(found)

    def _one(self, ref: syntax.Ref, kind: str, code: str, also: frozenset[str]) -> str | None:
        known = self.scope.of(kind)
        full = f"{ref.name}.{ref.attribute}" if ref.attribute else ref.name
        if full in known or full in also:
            self.check_index(ref)
            return full
        declared = self.scope.get(ref.name)
        near = nearest(full, (*known, *also))
        hint = f"did you mean {near}?" if near else f"the {kind}s are {listing(known)}" if known else None
        if ref.attribute is not None and (declared is None or declared.what == "component"):
            self.report.error(code, ref.span, f"there is no {kind} {full}", help=hint)
        elif declared is None:
            self.report.error(code, ref.span, f"nothing is called {ref.name}", help=hint)
        else:
            self.report.error(
                code,
                ref.span,
                f"{ref.name} is {declared.with_article}, and an {kind} is wanted here",
                others=((declared.span, "declared here"),),
                help=hint,
            )
        return None

    def check_index(self, ref: syntax.Ref) -> None:
        """An index set that a name is not indexed by is complained about."""
        party = self.party_of.get(ref.name)
        for item in ref.indices:
            if party is None:
                self.report.error("PS0228", item.span, f"{ref.name} is not indexed", help=f"write {ref.name}")
            elif not (isinstance(item, syntax.Name) and item.id == party):
                self.report.error(
                    "PS0228", item.span, f"{ref.name} is indexed by {party}", help=f"write {ref.name}[{party}]"
                )

    # -- distances

    def distance(self, line: syntax.Requirement, clauses: Clauses, wrt: tuple[str, ...]) -> Metric | None:
        """The distance of a line that needs one; one without a name for others; None after a complaint."""
        rule = MEASURES[line.measure]
        clause = clauses.distance
        if clause is None:
            if rule.distance:
                self.report.error(
                    "PS0309",
                    line.span,
                    f"{line.measure} needs a distance",
                    help=f"add `, distance euclidean` (or {listing(list(DISTANCES)[1:], 'or')})",
                )
                return None
            return Metric("")
        if not rule.distance:
            self.report.error(
                "PS0310", clause.span, f"{line.measure} takes no distance", help="leave it out, or write metric-DP"
            )
            return None
        return DistanceReader(self.scope, self.report, self.public or self.environment, self.blocks).read(clause, wrt)

    def requirement(self, line: syntax.Requirement) -> Requirement | None:
        """One privacy requirement; None after a complaint."""
        clauses = sort_clauses(line.clauses, self.report)
        outputs = self.names(line.subjects, "output", "PS0301", self.component_outputs)
        wrt = self.names(line.wrt, "input", "PS0302")
        metric = self.distance(line, clauses, wrt)
        measure = self.amounts.measure(line, metric or Metric(""))
        relation, default = self.units.neighbours(line, clauses, wrt)
        if isinstance(measure, Personalised):
            self._check_personalised(measure, relation, line, wrt)
        if isinstance(measure, PerAtomLDP) and outputs and wrt:
            self._check_atoms(measure, line, outputs, wrt)
        if relation is not None and measure is not None:
            self._check_bounded(relation, measure, line, wrt)
        observers = self._observers(clauses)
        if not outputs or not wrt or metric is None or measure is None or relation is None:
            return None
        number, text = self.line(line.span)
        found = Requirement(
            outputs, wrt, relation, measure, observers, line.span, number, text, default, self._written(line, measure)
        )
        warn_about_amounts(line, found, self.blocks, self.report)
        return found

    def _written(self, line: syntax.Requirement, measure: Measure) -> str:
        """The amounts that no short decimal gives, as the spec writes them."""
        found = []
        for (name, value), item in zip(measure.amounts.items(), line.amount.items, strict=False):
            if readable(value) == show(value):
                continue
            declared = self.scope.get(item.id) if isinstance(item, syntax.Name) else None
            node = None if declared is None else declared.node
            if isinstance(node, syntax.Parameter):
                # a value that was given from outside is not what the spec writes
                if self._value(node.value) == value:
                    found.append(f"{node.target.name} = {spell(node.value)}")
            elif self._value(item) == value:
                found.append(f"{name} = {spell(item)}")
        return ", ".join(found)

    def _value(self, expr: syntax.Expr) -> object:
        """The value of an expression, None where it has none."""
        try:
            return evaluate(expr, self.environment)
        except Failure:
            return None

    def line(self, span: Span) -> tuple[int, str]:
        """Line number and text, without its comment."""
        number, _ = self.report.source.position(span.start)
        return number, " ".join(self.report.source.slice(span).split())

    def _check_personalised(
        self,
        measure: Personalised,
        relation: nb.NeighbourRelation | None,
        line: syntax.Requirement,
        wrt: tuple[str, ...],
    ) -> None:
        for name in wrt:
            if self.party_of.get(name) != measure.party:
                self.report.error(
                    "PS0317",
                    line.amount.span,
                    f"a figure for each {measure.party} needs an input indexed by {measure.party}; {name} is not",
                )
                return
        if relation is not None and not isinstance(relation, nb.ReplacingVoter | nb.ReplacingRecord):
            self.report.error(
                "PS0317",
                line.amount.span,
                f"a figure for each {measure.party} protects what one {measure.party} holds",
                help=f"write `replacing one {measure.party}`",
            )

    def _check_atoms(
        self, measure: PerAtomLDP, line: syntax.Requirement, outputs: tuple[str, ...], wrt: tuple[str, ...]
    ) -> None:
        """What the condition of single outputs allows sets of outputs."""
        domains = {name: self.domains.get(name) for name in (*outputs, *wrt)}
        for name, domain in domains.items():
            if domain is not None and domain.size is None:
                self.report.error(
                    "PS0316",
                    line.span,
                    f"per-atom-LDP counts values, and {name} has infinitely many or too many",
                    others=((self.scope[name].span, f"in {domain.describe()}"),) if name in self.scope else (),
                    help=f"write {measure.describe().replace('per-atom-', '')}",
                )
                return
        if any(domain is None for domain in domains.values()):
            return
        inputs, drawn = (prod((d.size or 0) for n in names if (d := domains[n])) for names in (wrt, outputs))
        largest = measure.largest_delta(inputs, drawn)
        exact = measure.describe().replace("per-atom-", "")
        if largest > measure.delta:
            self.report.warn(
                "PS0316",
                line.span,
                f"this bounds each single output, not sets of them: the true delta may be up to {show(largest)}, "
                f"and {show(measure.delta)} is asked for",
                label=f"{drawn} outputs, {inputs} inputs",
                help=f"write {exact} for the exact condition; the plan says what the true delta is",
            )
        else:
            self.report.warn(
                "PS0316",
                line.span,
                f"this bounds each single output; with {drawn} outputs and {inputs} inputs it implies {exact}",
                help=f"write {exact}: the exact condition leaves more freedom, so that the loss can be lower",
            )

    def _check_bounded(
        self, relation: nb.NeighbourRelation, measure: Measure, line: syntax.Requirement, wrt: tuple[str, ...]
    ) -> None:
        if isinstance(measure, MetricDP | Lipschitz):
            return
        for name in wrt:
            block = self.blocks.get(name)
            if block is None or name in self.unbounded_is_fine or isinstance(block.geometry, nb.NoGeometry):
                continue
            own = relation.of(block) if isinstance(relation, nb.ReplacingOneOf) else relation
            if isinstance(block.geometry, nb.CellGeometry) and isinstance(own, nb.ReplacingRecord):
                continue
            try:
                block.geometry.reach(block, adding=own.adding)
            except nb.UnboundedError as error:
                self.report.warn(
                    "PS0312",
                    line.span,
                    error.why,
                    label="cannot hold with any finite noise",
                    others=((block.span, f"in {block.domain.describe()}"),),
                    help=error.suggestion,
                )

    @staticmethod
    def _observers(clauses: Clauses) -> tuple[str, ...]:
        if clauses.seen_by is None:
            return ("anyone",)
        return tuple(dict.fromkeys(name.id for name in clauses.seen_by.observers))


def read_independence(
    line: syntax.Independence, reader: RequirementReader, attributes: Mapping[str, Domain]
) -> IndependenceRequirement | None:
    """A fairness line; None after a complaint. `attributes` are those of the tables among the inputs."""
    if isinstance(line.subjects, syntax.AllOf):
        subjects: tuple[str | None, ...] = reader.names(line.subjects, "output", "PS0301", reader.component_outputs)
    else:
        subjects = tuple(_known(ref, reader, attributes) for ref in line.subjects.items)
    of = _known(line.of, reader, attributes)
    given = None if line.given is None else _known(line.given, reader, attributes)
    named = [name for name in (*subjects, of, given) if name is not None]
    if not subjects or len(named) < len(subjects) + 1 + (line.given is not None):
        return None
    if not _says_something(line, named, reader) or not _tolerable(line, reader):
        return None
    equals = None
    if line.value is not None and given is not None:
        try:
            equals = _value(line.value, given, {**attributes, **reader.domains}.get(given), reader)
        except Failure as failure:
            reader.report.failure(failure)
            return None
    number, text = reader.line(line.span)
    whole = tuple(name for name in subjects if name is not None)
    return IndependenceRequirement(whole, of or "", given, line.value, line.tolerance, line.span, number, text, equals)


def _known(ref: syntax.Ref, reader: RequirementReader, attributes: Mapping[str, Domain]) -> str | None:
    """The name of something that varies; None after a complaint."""
    known = {*reader.scope.of("input", "output", "intermediate"), *attributes, *reader.component_outputs}
    full = f"{ref.name}.{ref.attribute}" if ref.attribute else ref.name
    if full in known:
        reader.check_index(ref)
        return full
    near = nearest(full, known)
    hint = f"did you mean {near}?" if near else "it must be a variable, or an attribute of a table"
    reader.report.error("PS0320", ref.span, f"nothing that varies is called {full}", help=hint)
    return None


def _says_something(line: syntax.Independence, named: list[str], reader: RequirementReader) -> bool:
    """Whether the line speaks of an output and of nothing twice."""
    twice = next((name for i, name in enumerate(named) if name in named[:i]), None)
    if twice is not None:
        reader.report.error("PS0320", line.span, f"{twice} is named twice in this line")
        return False
    outputs = {*reader.scope.of("output"), *reader.component_outputs}
    if not outputs & set(named):
        reader.report.error(
            "PS0322",
            line.span,
            "this line names no output, so that no mechanism could obey it",
            label="nothing here is drawn by the mechanism",
            help="what is believed of the data is written under background, as in (sex, y) ~ categorical(...)",
        )
        return False
    return True


def _tolerable(line: syntax.Independence, reader: RequirementReader) -> bool:
    if line.tolerance is None:
        return True
    try:
        tolerance = evaluate(line.tolerance, reader.public or reader.environment)
        if not isinstance(tolerance, Fraction) or not 0 <= tolerance < 1:
            raise Failure("PS0321", line.tolerance.span, "a tolerance in total variation is a number from 0 to below 1")
    except Failure as failure:
        reader.report.failure(failure)
        return False
    return True


def _value(expr: syntax.Expr, name: str, domain: Domain | None, reader: RequirementReader) -> Value:
    """The value in `given y = 1`, `given sex = F`: a public one, or a bare word of the domain.

    Raises: Failure PS0323 if the attribute never takes it, and what evaluation raises.
    """
    public = reader.public or reader.environment
    if isinstance(expr, syntax.Name) and expr.id not in public.values:
        found: Value = expr.id
        if domain is None or not domain.contains(found):
            near = None if domain is None or domain.size is None else nearest(expr.id, _words(domain))
            hint = f"did you mean {near}?" if near else None
            raise Failure("PS0323", expr.span, _never(name, expr.id, domain), help=hint)
        return found
    found = evaluate(expr, public)
    if domain is not None and (np.shape(found) != domain.shape or not domain.contains(found)):  # type: ignore[arg-type]
        raise Failure("PS0323", expr.span, _never(name, reader.report.source.slice(expr.span), domain))
    return found


def _words(domain: Domain) -> list[str]:
    return [item for item in domain.elements() if isinstance(item, str)] if (domain.size or 0) <= 1000 else []


def _never(name: str, text: str, domain: Domain | None) -> str:
    where = "" if domain is None else f"; it lies in {domain.describe()}"
    return f"{name} never takes the value {text}{where}"
