"""Requirements: outputs and inputs that exist, amounts that make sense, units that fit, observers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from privspec.core.spans import Span
from privspec.language import syntax
from privspec.model import neighbours as nb
from privspec.model.domain_rules import whole
from privspec.model.evaluate import Environment, evaluate
from privspec.model.graph import InputBlock
from privspec.model.measures import (
    GDP,
    LDP,
    RDP,
    ZCDP,
    Chosen,
    EpsilonDelta,
    Lipschitz,
    Measure,
    MetricDP,
    Personalised,
    PureDP,
)
from privspec.model.reports import Failure, Report, listing, nearest
from privspec.model.requirements import IndependenceRequirement, Requirement
from privspec.model.scope import Scope
from privspec.model.values import Value, show
from privspec.model.walk import names_used

DISTANCES = ("euclidean", "manhattan", "chebyshev", "hamming", "discrete", "kendall", "footrule")


SMALLEST, LARGEST = Fraction(1, 10**300), Fraction(10**300)
"""Amounts outside are taken for slips: no double could hold them."""


def _in_range(name: str, value: Fraction, span: Span, code: str) -> None:
    if not SMALLEST <= value <= LARGEST:
        word = "large" if value > LARGEST else "small"
        raise Failure(code, span, f"{name} is too {word} to compute with")


def _positive(name: str) -> Callable[[Fraction, Span], None]:
    def check(value: Fraction, span: Span) -> None:
        if value <= 0:
            hint = (
                "an epsilon of 0 allows no dependence on the data at all; a chosen range may include it"
                if value == 0 and name == "epsilon"
                else None
            )
            raise Failure("PS0304", span, f"{name} must be positive, not {show(value)}", help=hint)
        _in_range(name, value, span, "PS0304")

    return check


def _delta(value: Fraction, span: Span) -> None:
    if value < 0:
        raise Failure("PS0305", span, f"delta must not be negative, and is {show(value)}")
    if value >= 1:
        raise Failure(
            "PS0305",
            span,
            f"delta must be below 1, and is {show(value)}",
            help="delta is a probability of failure: far below one over the number of people, as in 1e-6",
        )
    if value:
        _in_range("delta", value, span, "PS0305")


def _order(value: Fraction, span: Span) -> None:
    if value <= 1:
        raise Failure("PS0306", span, f"the order of a Renyi divergence must be above 1, and is {show(value)}")
    _in_range("the order", value, span, "PS0306")


@dataclass(frozen=True, slots=True)
class MeasureRule:
    """How one measure is written: the amounts it takes, each with its check, and the object it makes."""

    written: tuple[str, ...]
    checks: tuple[Callable[[Fraction, Span], None], ...]
    make: Callable[[tuple[Fraction, ...], str], Measure]
    optional: int = 0
    distance: bool = False
    kind: str = ""

    @property
    def arities(self) -> range:
        """How many amounts it may have."""
        return range(len(self.checks) - self.optional, len(self.checks) + 1)


def _dp(amounts: tuple[Fraction, ...], metric: str) -> Measure:  # noqa: ARG001 - one signature for all
    if len(amounts) == 2 and amounts[1] > 0:
        return EpsilonDelta(*amounts)
    return PureDP(amounts[0])


EPSILON, RHO, MU = _positive("epsilon"), _positive("rho"), _positive("mu")
CONSTANT = _positive("the constant")

MEASURES: Mapping[str, MeasureRule] = {
    "DP": MeasureRule(("epsilon-DP", "(epsilon, delta)-DP"), (EPSILON, _delta), _dp, 1, kind="epsilon-DP"),
    "LDP": MeasureRule(
        ("epsilon-LDP", "(epsilon, delta)-LDP"),
        (EPSILON, _delta),
        lambda a, _: LDP(*a),
        1,
        kind="epsilon-LDP",
    ),
    "zCDP": MeasureRule(("rho-zCDP",), (RHO,), lambda a, _: ZCDP(*a), kind="rho-zCDP"),
    "GDP": MeasureRule(("mu-GDP",), (MU,), lambda a, _: GDP(*a), kind="mu-GDP"),
    "RDP": MeasureRule(("(order, epsilon)-RDP",), (_order, EPSILON), lambda a, _: RDP(*a), kind="(order, epsilon)-RDP"),
    "metric-DP": MeasureRule(
        ("epsilon-metric-DP",),
        (EPSILON,),
        lambda a, metric: MetricDP(a[0], metric),
        distance=True,
        kind="epsilon-metric-DP",
    ),
    "Lipschitz": MeasureRule(
        ("1-Lipschitz",),
        (CONSTANT,),
        lambda a, metric: Lipschitz(a[0], metric),
        distance=True,
        kind="Lipschitz",
    ),
}


@dataclass(slots=True)
class Clauses:
    """The clauses of one line, each kind once."""

    unit: syntax.Replacing | syntax.AddingOrRemoving | None = None
    distance: syntax.Distance | None = None
    seen_by: syntax.SeenBy | None = None


def sort_clauses(clauses: Iterable[syntax.Clause], report: Report) -> Clauses:
    """Each kind of clause at most once."""
    found = Clauses()
    for clause in clauses:
        before: syntax.Clause | None
        match clause:
            case syntax.Replacing() | syntax.AddingOrRemoving():
                before, found.unit = found.unit, clause
            case syntax.Distance():
                before, found.distance = found.distance, clause
            case syntax.SeenBy():
                before, found.seen_by = found.seen_by, clause
        if before is not None:
            report.error(
                "PS0310",
                clause.span,
                "this says a second time what the line already says",
                others=((before.span, "said here first"),),
                help="write one requirement a line",
            )
    return found


@dataclass(slots=True)
class RequirementReader:
    """Reads requirements one after another."""

    scope: Scope
    report: Report
    environment: Environment
    blocks: Mapping[str, InputBlock]
    component_outputs: frozenset[str] = frozenset()
    components: frozenset[str] = frozenset()
    unbounded_is_fine: frozenset[str] = frozenset()
    party_of: Mapping[str, str] = field(default_factory=dict)

    # -- names

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
            self._check_ref_index(ref)
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

    def _check_ref_index(self, ref: syntax.Ref) -> None:
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

    # -- amounts

    def measure(self, line: syntax.Requirement, metric: str) -> Measure | None:
        """The measure with its figures; None after a complaint."""
        rule = MEASURES[line.measure]
        items = line.amount.items
        if len(items) not in rule.arities:
            self.report.error(
                "PS0303",
                line.amount.span,
                f"{line.measure} takes {listing([str(n) for n in rule.arities], 'or')} "
                f"figure{'' if rule.arities[-1] == 1 else 's'}, not {len(items)}",
                help=f"it is written {listing(rule.written, 'or')}",
            )
            return None
        chosen = self.scope.of("choose")
        if any(name in chosen for item in items for name in names_used(item)):
            text = f"{self.report.source.slice(line.amount.span)}-{line.measure}"
            return Chosen(rule.kind, items, text)
        figures = [self._figure(item) for item in items]
        if any(figure is None for figure in figures):
            return None
        return self._assemble(rule, items, [f for f in figures if f is not None], metric)

    def _figure(self, item: syntax.Expr) -> tuple[Fraction, ...] | tuple[str, tuple[Fraction, ...]] | None:
        """One exact figure, or (index set, one figure a person)."""
        party: str | None = None
        expr = item
        match item:
            case syntax.Index(base=syntax.Name() as base, indices=(syntax.Name(id=name),)) if (
                name in self.environment.parties
            ):
                expr, party = base, name
        for name in names_used(expr):
            declared = self.scope.get(name)
            if declared is not None and declared.what != "parameter" and name != "inf":
                self.report.error(
                    "PS0307",
                    item.span,
                    f"an amount is public and known: {name} is {declared.with_article}",
                    others=((declared.span, "declared here"),),
                )
                return None
            if declared is None:
                near = nearest(name, self.scope.of("parameter", "choose"))
                self.report.error(
                    "PS0307" if name == "inf" else "PS0201",
                    item.span,
                    "an amount must be finite" if name == "inf" else f"nothing is called {name}",
                    help=None
                    if name == "inf"
                    else f"did you mean {near}?"
                    if near
                    else "give it a value under `parameters:`",
                )
                return None
            if name not in self.environment.values:
                return None  # its value failed, which has been reported
        try:
            value = evaluate(expr, self.environment)
        except Failure as failure:
            self.report.failure(failure)
            return None
        if isinstance(value, Fraction) and party is not None:
            self.report.error(
                "PS0317",
                item.span,
                f"{self.report.source.slice(expr.span)} is one number, not one for each {party}",
                help=f"write {self.report.source.slice(expr.span)}",
            )
            return None
        if isinstance(value, Fraction):
            return (value,)
        if party is not None and isinstance(value, np.ndarray) and value.ndim == 1:
            if len(value) != self.environment.parties[party]:
                self.report.error(
                    "PS0317",
                    item.span,
                    f"{len(value)} figures for {self.environment.parties[party]} {party}s",
                )
                return None
            return party, tuple(Fraction(entry) for entry in value)
        self.report.error("PS0307", item.span, "an amount is one number", label=_what(value))
        return None

    def _assemble(
        self,
        rule: MeasureRule,
        items: tuple[syntax.Expr, ...],
        figures: list[tuple[Fraction, ...] | tuple[str, tuple[Fraction, ...]]],
        metric: str,
    ) -> Measure | None:
        party: str | None = None
        columns: list[tuple[Fraction, ...]] = []
        for figure in figures:
            if isinstance(figure[0], str):
                party, column = figure
                columns.append(column)
            else:
                columns.append(figure)
        good = True
        for column, item, check in zip(columns, items, rule.checks, strict=False):
            for number in sorted(set(column)):
                try:
                    check(number, item.span)
                except Failure as failure:
                    given = [(self.scope[name].span, "given here") for name in names_used(item) if name in self.scope]
                    self.report.failure(failure, others=given)
                    good = False
                    break
        if not good:
            return None
        if party is None:
            return rule.make(tuple(column[0] for column in columns), metric)
        people = max(len(column) for column in columns)
        wide = [column * people if len(column) == 1 else column for column in columns]
        return Personalised(party, tuple(rule.make(figure, metric) for figure in zip(*wide, strict=True)))

    # -- units

    def neighbours(
        self, line: syntax.Requirement, clauses: Clauses, wrt: tuple[str, ...]
    ) -> tuple[nb.NeighbourRelation | None, bool]:
        """The neighbour relation, and whether it is the default; None after a complaint."""
        clause = clauses.unit
        if line.measure in ("LDP", "metric-DP", "Lipschitz"):
            if clause is not None:
                self.report.error(
                    "PS0310",
                    clause.span,
                    f"{line.measure} compares any value with any other, so it takes no unit",
                    help="leave this clause out",
                )
            return self._whole_report(wrt), True
        if clause is None:
            return self.default(wrt), True
        return self.relation(clause, wrt), False

    def _whole_report(self, wrt: tuple[str, ...]) -> nb.NeighbourRelation:
        parties = {self.party_of.get(name) for name in wrt}
        party = next(iter(parties)) if len(parties) == 1 else None
        return nb.ReplacingVoter(party=party) if party else nb.ReplacingEverything()

    def default(self, wrt: tuple[str, ...]) -> nb.NeighbourRelation:
        """One party if x is indexed, else one record if its domain is a power or table, else everything."""
        each = {name: self._default_of(name) for name in wrt}
        kinds = set(each.values())
        if len(kinds) == 1:
            return kinds.pop()
        return nb.ReplacingOneOf(parts=tuple(each.items()))

    def _default_of(self, name: str) -> nb.NeighbourRelation:
        party = self.party_of.get(name)
        if party:
            return nb.ReplacingVoter(party=party)
        block = self.blocks.get(name)
        if block is not None and (block.layout == "cells" or block.domain is not block.base_domain):
            return nb.ReplacingRecord()
        return nb.ReplacingEverything()

    def relation(
        self, clause: syntax.Replacing | syntax.AddingOrRemoving, wrt: tuple[str, ...]
    ) -> nb.NeighbourRelation | None:
        """The relation that a clause names; None after a complaint."""
        adding = isinstance(clause, syntax.AddingOrRemoving)
        unit = clause.unit
        if isinstance(unit, syntax.Everything):
            if adding:
                self.report.error(
                    "PS0311",
                    clause.span,
                    "everything cannot be added or removed",
                    help="write `replacing everything`",
                )
                return None
            return self._fits(nb.ReplacingEverything(), unit.span, wrt)
        group = 1
        word = unit.name
        if isinstance(unit, syntax.UpToUnits):
            if len(unit.amount.items) != 1:
                self.report.error("PS0230", unit.span, "`up to` takes one number")
                return None
            try:
                group = whole(unit.amount.items[0], self.environment, "the size of a group")
            except Failure as failure:
                self.report.failure(failure)
                return None
        makers = self._units(adding)
        singular = {nb.plural(name): name for name in makers} | {name: name for name in makers}
        if word not in singular:
            self._unknown_unit(word, unit.span, makers)
            return None
        return self._fits(makers[singular[word]](group), unit.span, wrt)

    def _units(self, adding: bool) -> dict[str, Callable[[int], nb.NeighbourRelation]]:
        entry, record, voter = (
            (nb.AddingOrRemovingEntry, nb.AddingOrRemovingRecord, nb.AddingOrRemovingVoter)
            if adding
            else (nb.ReplacingEntry, nb.ReplacingRecord, nb.ReplacingVoter)
        )
        makers: dict[str, Callable[[int], nb.NeighbourRelation]] = {
            "entry": lambda group: entry(group),
            "record": lambda group: record(group),
        }
        for party in self.scope.of("party"):
            makers[party] = lambda group, party=party: voter(group, party)  # type: ignore[misc]
        return makers

    def _unknown_unit(self, word: str, span: Span, makers: Mapping[str, object]) -> None:
        parties = self.scope.of("party")
        near = nearest(word, (*makers, *(nb.plural(name) for name in makers), "everything"))
        near = next((name for name in makers if near == nb.plural(name)), near)
        if near is None and word in ("row", "rows", "line", "tuple", "element", "item"):
            near = "record"
        if near is None and len(parties) == 1 and word in ("person", "user", "individual", "people", "users", "party"):
            near = next(iter(parties))
        if near is not None:
            hint = f"did you mean `one {near}`?" if near != "everything" else "did you mean `everything`?"
        else:
            hint = f"if each {word} holds data of their own, declare `parties: {word} in 1..N` and index the input"
        self.report.error(
            "PS0230",
            span,
            f"there is no unit {word} here",
            label=f"units are {listing([*makers, 'everything'], 'or')}",
            help=hint,
        )

    def _fits(self, relation: nb.NeighbourRelation, span: Span, wrt: tuple[str, ...]) -> nb.NeighbourRelation | None:
        good = True
        for name in wrt:
            block = self.blocks.get(name)
            if block is None:
                continue
            if isinstance(relation, nb.ReplacingVoter) and block.index != relation.party:
                by = f"is indexed by {block.index}" if block.index else "is not indexed"
                self.report.error(
                    "PS0231",
                    span,
                    f"{name} {by}, so no {relation.party} holds a part of it",
                    others=((block.span, "declared here"),),
                    help=f"declare it as {name}[{relation.party}]",
                )
                good = False
            if isinstance(relation, nb.ReplacingEntry) and block.layout == "cells":
                self.report.error(
                    "PS0231",
                    span,
                    f"{name} is a table: it consists of records, not of single numbers",
                    others=((block.span, "declared here"),),
                    help="write `one record`",
                )
                good = False
        return relation if good else None

    # -- the line

    def distance(self, line: syntax.Requirement, clauses: Clauses) -> str | None:
        """The distance of a line that needs one; "" for others; None after a complaint."""
        rule = MEASURES[line.measure]
        clause = clauses.distance
        if clause is None:
            if rule.distance:
                self.report.error(
                    "PS0309",
                    line.span,
                    f"{line.measure} needs a distance",
                    help=f"add `, distance euclidean` (or {listing(DISTANCES[1:], 'or')})",
                )
                return None
            return ""
        if not rule.distance:
            self.report.error(
                "PS0310",
                clause.span,
                f"{line.measure} takes no distance",
                help="leave it out, or write metric-DP",
            )
            return None
        metric = clause.metric
        if isinstance(metric, syntax.Call):
            return self.report.source.slice(metric.span)
        if metric.id not in DISTANCES:
            near = nearest(metric.id, DISTANCES)
            self.report.error(
                "PS0309",
                metric.span,
                f"there is no distance {metric.id}",
                help=f"did you mean {near}?" if near else f"these exist: {', '.join(DISTANCES)}",
            )
            return None
        return metric.id

    def requirement(self, line: syntax.Requirement) -> Requirement | None:
        """One privacy requirement; None after a complaint."""
        clauses = sort_clauses(line.clauses, self.report)
        outputs = self.names(line.subjects, "output", "PS0301", self.component_outputs)
        wrt = self.names(line.wrt, "input", "PS0302")
        metric = self.distance(line, clauses)
        measure = self.measure(line, metric or "")
        relation, default = self.neighbours(line, clauses, wrt)
        if isinstance(measure, Personalised):
            self._check_personalised(measure, relation, line, wrt)
        if relation is not None and measure is not None:
            self._check_bounded(relation, measure, line, wrt)
        observers = self._observers(clauses)
        if not outputs or not wrt or metric is None or measure is None or relation is None:
            return None
        number, text = self.line(line.span)
        return Requirement(outputs, wrt, relation, measure, observers, line.span, number, text, default)

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
                self.report.error(
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


def _what(value: Value) -> str:
    if isinstance(value, np.ndarray):
        return "a list of " + " x ".join(str(n) for n in value.shape)
    return "not a number"


# --- fairness -------------------------------------------------------------------------------------


def read_independence(
    line: syntax.Independence, reader: RequirementReader, attributes: frozenset[str]
) -> IndependenceRequirement | None:
    """A fairness line; None after a complaint. `attributes` are those of the tables among the inputs."""
    report, scope = reader.report, reader.scope
    known = frozenset(scope.of("input", "output", "intermediate")) | attributes | reader.component_outputs
    good = True

    def check(ref: syntax.Ref) -> str:
        nonlocal good
        full = f"{ref.name}.{ref.attribute}" if ref.attribute else ref.name
        if full not in known:
            near = nearest(full, known)
            hint = f"did you mean {near}?" if near else "it must be a variable, or an attribute of a table"
            report.error("PS0320", ref.span, f"nothing that varies is called {full}", help=hint)
            good = False
        return full

    if isinstance(line.subjects, syntax.AllOf):
        subjects = reader.names(line.subjects, "output", "PS0301", reader.component_outputs)
    else:
        subjects = tuple(check(ref) for ref in line.subjects.items)
    of = check(line.of)
    given = None if line.given is None else check(line.given)
    if line.tolerance is not None:
        try:
            tolerance = evaluate(line.tolerance, reader.environment)
            if not isinstance(tolerance, Fraction) or not 0 <= tolerance < 1:
                raise Failure(
                    "PS0321",
                    line.tolerance.span,
                    "a tolerance in total variation is a number from 0 to below 1",
                )
        except Failure as failure:
            report.failure(failure)
            good = False
    if not good or not subjects:
        return None
    number, text = reader.line(line.span)
    return IndependenceRequirement(subjects, of, given, line.value, line.tolerance, line.span, number, text)


# --- across lines ---------------------------------------------------------------------------------


def warn_about_gaps(
    requirements: tuple[Requirement, ...], scope: Scope, outputs: Iterable[str], report: Report
) -> None:
    """Outputs that no line protects, inputs that no line names, and observers whose outputs no line joins."""
    seen: dict[tuple[str, ...], dict[str, Requirement]] = {}
    for requirement in requirements:
        for output in requirement.outputs:
            seen.setdefault(requirement.observers, {}).setdefault(output, requirement)
    for observers, held in seen.items():
        joined = any(set(held) <= set(r.outputs) for r in requirements if r.observers == observers)
        inputs = [set(r.wrt) for r in held.values()]
        share = any(a & b for i, a in enumerate(inputs) for b in inputs[i + 1 :])
        if len(held) > 1 and not joined and share:
            lines = list(dict.fromkeys(r.span for r in held.values()))
            report.warn(
                "PS0313",
                lines[-1],
                f"{listing(observers)} sees {listing(held)} together, and no line names both",
                others=tuple((span, "also seen") for span in lines[:-1]),
                help=f"add a line: ({', '.join(held)}) is ...",
                notes=("each line holds for its own outputs; what they reveal together is the composed bound",),
            )
    named = {output for requirement in requirements for output in requirement.outputs}
    for output in outputs:
        if output not in named:
            declared = scope.get(output.partition(".")[0])
            if declared is not None:
                report.warn(
                    "PS0315",
                    declared.span,
                    f"no requirement protects {output}: it may reveal anything",
                    help=f"add a line under privacy: {output} is ...",
                )
    protected = {name for requirement in requirements for name in requirement.wrt}
    for name, declared in scope.of("input").items():
        if requirements and name not in protected:
            report.warn(
                "PS0314",
                declared.span,
                f"no requirement protects the input {name}",
                help=f"add `wrt {name}` to a line, or declare it as a constant if it is public",
            )
