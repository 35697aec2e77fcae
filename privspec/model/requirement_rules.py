"""Requirements: outputs and inputs that exist, distances, observers, and effects that have a limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from privspec.core.spans import Span
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.model import neighbours as nb
from privspec.model.caution_rules import warn_about_amounts
from privspec.model.distance_rules import DistanceReader
from privspec.model.distances import DISTANCES
from privspec.model.domains import Domain
from privspec.model.evaluate import Environment, evaluate
from privspec.model.graph import InputBlock
from privspec.model.measure_rules import MEASURES, AmountReader
from privspec.model.measures import Lipschitz, Measure, Metric, MetricDP, PerAtomLDP, Personalised
from privspec.model.reports import Failure, Report, listing, nearest
from privspec.model.requirements import Requirement
from privspec.model.scope import Scope
from privspec.model.unit_rules import Clauses, UnitReader, sort_clauses
from privspec.model.values import readable, show


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
        """Reads units of privacy."""
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
                    "PS0228",
                    item.span,
                    f"{ref.name} is indexed by {party}",
                    help=f"write {ref.name}[{party}]",
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
                "PS0310",
                clause.span,
                f"{line.measure} takes no distance",
                help="leave it out, or write metric-DP",
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
