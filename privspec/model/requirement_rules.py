"""Lines of privacy: outputs and inputs that exist, observers, units, amounts, effects that have a limit.

A line that names no unit means the one that fits its inputs. Amounts that are allowed and promise little are warned of:
a large epsilon, a delta that leaves room for publishing a person.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from math import prod
from typing import TypeAlias

import numpy as np

from privspec.core.records import dataclass, field, replace
from privspec.core.spans import Span
from privspec.kernel.measures import (
    BY_DISTANCE,
    BY_WORD,
    GAUSSIAN,
    LOCAL_APPROXIMATE,
    PURE,
    Amount,
    Measure,
    delta_of_sets,
)
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.walk import names_used
from privspec.model import neighbours as nb
from privspec.model.domain_rules import whole
from privspec.model.domains import Domain, Power, is_numeric
from privspec.model.evaluate import Environment, evaluate, members
from privspec.model.measures import AskedMeasure, Chosen, MeasureAt, Metric, Personalised, check_amount, measure_at
from privspec.model.neighbours import InputBlock
from privspec.model.reports import Failure, Report, listing, nearest, suggestion
from privspec.model.requirements import Chain, Requirement
from privspec.model.scope import Scope
from privspec.model.spaces import is_finite, key, values_of
from privspec.model.values import Symbol, Value, readable, show

LARGE_EPSILON = 10
"""A guesser may be right 22,026 times for each time that they are wrong."""
LARGE_DELTA = Fraction(1, 1000)
INSIDE = Fraction(1, 2**20)
"""So far inside of its range a number that is chosen has to be allowed."""
GRAPH = 1024
"""Most values that a graph is over."""
Figures: TypeAlias = tuple[str | None, tuple[Fraction, ...]]
"""One exact figure, or an index set and one figure per person."""


@dataclass(slots=True)
class Clauses:
    """The clauses of one line, each kind once."""

    unit: syntax.Replacing | syntax.AddingOrRemoving | None = None
    distance: syntax.Distance | None = None
    seen_by: syntax.SeenBy | None = None
    model: syntax.GivenTheModel | None = None
    apart: syntax.Apart | None = None
    cell: syntax.InOneCell | None = None


_KINDS = {
    syntax.Distance: "distance",
    syntax.SeenBy: "seen_by",
    syntax.GivenTheModel: "model",
    syntax.Apart: "apart",
    syntax.InOneCell: "cell",
}


def sort_clauses(clauses: Iterable[syntax.Clause], report: Report) -> Clauses:
    """Each kind of clause at most once."""
    found = Clauses()
    for clause in clauses:
        kind = _KINDS.get(type(clause), "unit")
        before = getattr(found, kind)
        setattr(found, kind, clause)
        if before is not None:
            message = "this says a second time what the line already says"
            hint = "one requirement per line"
            report.error("PS0310", clause.span, message, others=((before.span, "said here first"),), help=hint)
    return found


@dataclass(slots=True)
class RequirementReader:
    """Reads requirements one after another.

    `public` knows constants besides parameters, `party_of` the index sets of names, `domains` those of all variables.
    """

    scope: Scope
    report: Report
    environment: Environment
    public: Environment
    blocks: Mapping[str, InputBlock]
    unbounded_is_fine: frozenset[str] = frozenset()
    party_of: Mapping[str, str] = field(default_factory=dict)
    domains: Mapping[str, Domain] = field(default_factory=dict)
    chains: Mapping[str, Chain] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    """Inputs whose laws do not fit, which is told."""
    modelled: frozenset[str] = frozenset()
    """Names that have a law."""
    behind: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of each computed value, the inputs that it is computed from."""

    def requirement(self, line: syntax.Requirement) -> Requirement | None:
        """One privacy requirement; None after a complaint."""
        clauses = sort_clauses(line.clauses, self.report)
        outputs = self.names(line.subjects, "output", "PS0301")
        secret = self._secret(line, clauses)
        wrt = self.behind[secret] if secret else self.names(line.wrt, "input", "PS0302")
        metric = self._distance(line, clauses, wrt)
        measure = self._measure(line, metric or Metric(""))
        relation, default = self._neighbours(line, clauses, wrt)
        if isinstance(relation, nb.ReplacingPerson):
            relation = self._by_id(relation, clauses, wrt, line.span)
        elif clauses.cell is not None and relation is not None:
            hint = "write adding or removing one person with at most 5 records, at most 2 in one cell"
            text = "how many records lie in one cell is said of one person's records"
            self.report.error("PS0230", clauses.cell.span, text, help=hint)
        if clauses.apart is not None and relation is not None:
            relation = self._spaced(clauses.apart, relation, wrt)
        if clauses.model is not None:
            relation, default = self._given_the_model(line, clauses, relation, wrt, secret), False
        else:
            self._warn_of_correlations(line, wrt)
        self._warn_of_units(line, relation, wrt)
        if isinstance(measure, Personalised):
            self._check_personalised(measure, relation, line, wrt)
        if isinstance(measure, MeasureAt) and measure.of.each_output and outputs and wrt:
            self._check_atoms(measure, line, outputs, wrt)
        if relation is not None and measure is not None:
            self._check_bounded(relation, measure, line, wrt)
        observers = ("anyone",) if clauses.seen_by is None else tuple(n.id for n in clauses.seen_by.observers)
        if not outputs or not wrt or metric is None or measure is None or relation is None:
            return None
        number, text = self.report.line(line.span)
        seen = tuple(dict.fromkeys(observers))
        words = self._written(line, measure)
        found = Requirement(outputs, wrt, relation, measure, seen, line.span, number, text, default, words)
        warn_about_amounts(line, found, self.blocks, self.report)
        return found

    # -- names

    def names(self, names: syntax.Names, kind: str, code: str) -> tuple[str, ...]:
        """The outputs or inputs that a line names; complaints about others."""
        if isinstance(names, syntax.AllOf):
            if names.what != kind + "s":
                self.report.error(code, names.span, f"`all {kind}s` is expected here")
                return ()
            everything = tuple(self.scope.of(kind))
            if not everything:
                self.report.error(code, names.span, f"this spec has no {kind}s")
            return everything
        found: list[str] = []
        for ref in names.items:
            name = self._one(ref, kind, code)
            if name in found:
                self.report.error(code, ref.span, f"{name} is named twice in this line")
            elif name is not None:
                found.append(name)
        return tuple(found)

    def _one(self, ref: syntax.Ref, kind: str, code: str) -> str | None:
        known = self.scope.of(kind)
        full = f"{ref.name}.{ref.attribute}" if ref.attribute else ref.name
        if full in known:
            self.check_index(ref)
            return full
        if self.scope.of("component"):
            return None  # a part that could not be read, which is told, may have brought it
        declared = self.scope.get(ref.name)
        hint = suggestion(full, known) or (f"the {kind}s are {listing(known)}" if known else None)
        if ref.attribute is not None and declared is not None and declared.what == kind:
            message = f"a line is about all of {ref.name}, not about {full} alone: what hides a record hides that too"
            self.report.error(code, ref.span, message, others=declared.here, help=f"write {ref.name}")
        elif ref.attribute is not None and declared is None:
            self.report.error(code, ref.span, f"there is no {kind} {full}", help=hint)
        elif declared is None:
            self.report.error(code, ref.span, f"nothing is called {ref.name}", help=hint)
        else:
            message = f"{ref.name} is {declared.with_article}, and an {kind} is expected here"
            self.report.error(code, ref.span, message, others=declared.here, help=hint)
        return None

    def check_index(self, ref: syntax.Ref) -> None:
        """An index set that a name is not indexed by is complained about."""
        party = self.party_of.get(ref.name)
        for item in ref.indices:
            if party is None:
                self.report.error("PS0228", ref.span, f"{ref.name} is not indexed", help=f"write {ref.name}")
            elif not (isinstance(item, syntax.Name) and item.id == party):
                hint = f"write {ref.name}[{party}]"
                self.report.error("PS0228", item.span, f"{ref.name} is indexed by {party}", help=hint)

    # -- amounts

    def _distance(self, line: syntax.Requirement, clauses: Clauses, wrt: tuple[str, ...]) -> Metric | None:
        """The distance of a line that needs one; one without a name for others; None after a complaint."""
        needed, clause = BY_WORD[line.measure][0].takes_distance, clauses.distance
        if clause is not None and needed:
            from privspec.model.distances import DistanceReader

            return DistanceReader(self.scope, self.report, self.public, self.blocks).read(clause, wrt)
        if clause is not None:
            message = f"{line.measure} takes no distance"
            self.report.error("PS0310", clause.span, message, help=f"leave it out, or write {BY_DISTANCE.word}")
            return None
        if not needed:
            return Metric("")
        from privspec.model.distances import DISTANCES

        hint = f"add `, distance euclidean` (or {listing(list(DISTANCES)[1:], 'or')})"
        self.report.error("PS0309", line.span, f"{line.measure} needs a distance", help=hint)
        return None

    def _measure(self, line: syntax.Requirement, metric: Metric) -> AskedMeasure | None:
        """The measure with its figures; None after a complaint."""
        known, items = BY_WORD[line.measure], line.amount.items
        measure = next((one for one in known if len(one.amounts) == len(items)), None)
        if measure is None:
            counts = [len(one.amounts) for one in known]
            many = f"{listing(list(map(str, counts)), 'or')} figure{'' if counts[-1] == 1 else 's'}"
            message = f"{line.measure} takes {many}, not {len(items)}"
            written = listing([one.name for one in known], "or")
            self.report.error("PS0303", line.amount.span, message, help=f"it is written {written}")
            return None
        chosen = self.scope.of("choose")
        if any(name in chosen for item in items for name in names_used(item)):
            for item, amount in zip(items, measure.amounts, strict=True):
                self.report.told(partial(self._allowed, item, amount))
            return Chosen(measure, items, f"{self.report.source.slice(line.amount.span)}-{line.measure}")
        found = [self.report.told(lambda item=item: self._figures(item)) for item in items]  # type: ignore[misc]
        figures = [one for one in found if one is not None]
        return self._assembled(measure, items, figures, metric) if len(figures) == len(found) else None

    def _allowed(self, item: syntax.Expr, amount: Amount) -> None:
        """Whether an amount is public but for what is chosen in it, and allowed near the lower end of its range.

        Raises: Failure.
        """
        self._check_public(item, item.span, "choose", "constant", "party")
        values = dict(self.environment.values)
        for name in names_used(item):
            low, high = domain.bounds if (domain := self.domains.get(name)) is not None else (None, None)
            if low is not None:
                inside = INSIDE if high is None else min(INSIDE, Fraction(high - low) / 2)
                values[name] = Fraction(low) + (inside if low >= 0 else 0)
        if isinstance(value := self._value(item, values), Fraction):
            check_amount(amount, value, item.span)

    def _figures(self, item: syntax.Expr) -> Figures | None:
        """The figures of one amount; None where the value of a name failed, which has been told.

        Raises: Failure.
        """
        party, expr = None, item
        match item:
            case syntax.Index(base=syntax.Name() as base, indices=(syntax.Name(id=name),)) if (
                name in self.environment.parties
            ):
                expr, party = base, name
        self._check_public(expr, item.span)
        if any(name not in self.environment.values for name in names_used(expr)):
            return None
        value, text = evaluate(expr, self.environment), self.report.source.slice(expr.span)
        if isinstance(value, Fraction) and party is None:
            return None, (value,)
        if isinstance(value, Fraction):
            raise Failure("PS0317", item.span, f"{text} is one number, not one for each {party}", help=f"write {text}")
        if party is None or not isinstance(value, np.ndarray) or value.ndim != 1:
            raise Failure("PS0307", item.span, "an amount is one number", label=_what(value))
        size = self.environment.parties[party]
        if len(value) != size:
            raise Failure("PS0317", item.span, f"{len(value)} figures for {size} {party}s")
        return party, tuple(Fraction(entry) for entry in value)

    def _check_public(self, expr: syntax.Expr, span: Span, *further: str) -> None:
        """Whether all names in an amount are parameters, or of one of some further kinds.

        Raises: Failure.
        """
        for name in names_used(expr):
            declared = self.scope.get(name)
            if name == "inf":
                raise Failure("PS0307", span, "an amount must be finite")
            if declared is None:
                hint = suggestion(name, self.scope.of("parameter", "choose")) or "give it a value under `parameters:`"
                raise Failure("PS0201", span, f"nothing is called {name}", help=hint)
            if declared.what not in ("parameter", *further):
                message = f"an amount is public and known: {name} is {declared.with_article}"
                raise Failure("PS0307", span, message, others=declared.here)

    def _assembled(
        self, measure: Measure, items: tuple[syntax.Expr, ...], figures: Sequence[Figures], metric: Metric
    ) -> AskedMeasure | None:
        columns = [column for _, column in figures]
        good = True
        for column, item, amount in zip(columns, items, measure.amounts, strict=True):
            try:
                for number in sorted(set(column)):
                    check_amount(amount, number, item.span)
            except Failure as failure:
                given = [(self.scope[name].span, "given here") for name in names_used(item) if name in self.scope]
                self.report.failure(failure, others=given)
                good = False
        if not good:
            return None
        party = next((party for party, _ in reversed(figures) if party is not None), None)
        people = max(map(len, columns))
        wide = [column * people if len(column) == 1 else column for column in columns]
        each = (dict(zip(measure.figures, own, strict=True)) for own in zip(*wide, strict=True))
        found = tuple(measure_at(measure, own, metric) for own in each)
        return found[0] if party is None else Personalised(party, found)

    def _written(self, line: syntax.Requirement, measure: AskedMeasure) -> str:
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

    def _value(self, expr: syntax.Expr, values: Mapping[str, Value] | None = None) -> object:
        """The value of an expression, None where it has none."""
        try:
            return evaluate(expr, self.environment if values is None else replace(self.environment, values=values))
        except Failure:
            return None

    # -- units

    def _neighbours(
        self, line: syntax.Requirement, clauses: Clauses, wrt: tuple[str, ...]
    ) -> tuple[nb.NeighbourRelation | None, bool]:
        """The neighbour relation, and whether it is the default; None after a complaint."""
        clause = clauses.unit
        if BY_WORD[line.measure][0].any_values:
            if clause is not None:
                message = f"{line.measure} compares any value with any other, so it takes no unit"
                self.report.error("PS0310", clause.span, message, help="leave this clause out")
            parties = {self.party_of.get(name) for name in wrt}
            party = next(iter(parties)) if len(parties) == 1 else None
            return (nb.ReplacingVoter(party=party) if party else nb.ReplacingEverything()), True
        return self.relation(clause, wrt), clause is None

    def _spaced(
        self, clause: syntax.Apart, relation: nb.NeighbourRelation, wrt: tuple[str, ...]
    ) -> nb.NeighbourRelation | None:
        """The relation whose units lie apart; None after a complaint."""
        known = [self.blocks[name] for name in wrt if name in self.blocks]
        numbers = isinstance(relation, nb.ReplacingEntry | nb.ReplacingRecord)
        if relation.adding or not numbers or len(known) != 1 or known[0].layout == "cells" or known[0].index:
            message = "a distance is one between entries, or records, of one sequence that are replaced"
            hint = f"write O is 1-{GAUSSIAN.word} wrt x, replacing up to 4 entries, at least 16 apart"
            self.report.error("PS0230", clause.span, message, help=hint)
            return None
        apart = self.report.told(lambda: self._whole(clause, clause.amount, "a distance is", "a distance"))
        if apart is None:
            return None
        return nb.Spaced(relation.group, inner=relation, apart=apart, exactly=clause.exactly)

    def _by_id(
        self, relation: nb.ReplacingPerson, clauses: Clauses, wrt: tuple[str, ...], span: Span
    ) -> nb.ReplacingPerson | None:
        """The relation by the column that says whose a record is, where inputs have one; None after a complaint."""
        known = [self.blocks[name] for name in wrt if name in self.blocks]
        ids = {block.name: block.ids for block in known}
        if relation.person not in {column for columns in ids.values() for column in columns} and not any(ids.values()):
            if clauses.cell is not None:
                hint = f"declare a column that says whose a record is: table({relation.person} in id, ...)"
                text = f"nothing says which records are those of one {relation.person}"
                self.report.error("PS0230", clauses.cell.span, text, help=hint)
            return relation
        without = next((block for block in known if relation.person not in block.ids), None)
        if without is not None:
            has = f"its ids are {listing(without.ids)}" if without.ids else "it has no ids"
            message = f"no column {relation.person} says whose a record of {without.name} is"
            hint = f"declare {relation.person} in id among the columns of {without.name}; {has}"
            if len(without.ids) == 1 and len(known) == 1:
                hint = f"write one {without.ids[0]} in place of one {relation.person}"
            self.report.error("PS0231", span, message, others=((without.span, "declared here"),), help=hint)
            return None
        if (cell := clauses.cell) is None:
            return replace(relation, by_id=True)
        word, what = "`at most ... in one cell` takes", "how many records lie in one cell"
        most = self.report.told(lambda: self._whole(cell, cell.amount, word, what))
        return None if most is None else replace(relation, by_id=True, per_cell=most if most < relation.group else None)

    def _whole(self, clause: syntax.Node, amount: syntax.Amount, word: str, what: str) -> int:
        """The one number, whole and positive, that a clause gives.

        Raises: Failure PS0230 where there are several, and what `whole` raises.
        """
        if len(amount.items) != 1:
            raise Failure("PS0230", clause.span, f"{word} one number")
        return whole(amount.items[0], self.environment, what)

    def _given_the_model(
        self,
        line: syntax.Requirement,
        clauses: Clauses,
        relation: nb.NeighbourRelation | None,
        wrt: tuple[str, ...],
        secret: str,
    ) -> nb.NeighbourRelation | None:
        """The relation of a line that counts on the law of its inputs; None after a complaint."""
        clause = clauses.model
        assert clause is not None
        without = [name for name in wrt if name not in self.chains and not (self.finite and name in self.modelled)]
        if relation is None or not wrt or any(name in self.unread for name in without):
            return None
        if without and self.finite:
            hint = f"add a law under background, such as {without[0]} ~ uniform"
            self.report.error("PS0340", clause.span, f"no model says how {without[0]} is drawn", help=hint)
        elif secret and (clauses.unit is not None or not self.finite):
            text = f"{secret} is hidden as it is, from a result of finitely many values"
            hint = f"write O is {PURE.name} wrt {secret}, given the model, with outputs such as O in 0..10"
            self.report.error("PS0340", clause.span, text, help=hint)
        elif self.finite:
            if not relation.adding and relation.group == 1 and not isinstance(relation, nb.ReplacingOneOf):
                return nb.GivenTheModel(inner=nb.ReplacingEverything() if secret else relation, secret=secret)
            hint = f"write O is {PURE.name} wrt {wrt[0]}, replacing one entry, given the model"
            text = "a line that counts on the model is about one unit, which is replaced"
            self.report.error("PS0340", clause.span, text, help=hint)
        elif without:
            name = without[0]
            hint = f"add under background {name}[1] ~ categorical(w) and {name}[i] ~ categorical(step[{name}[i-1]])"
            message = f"no model says how the entries of {name} depend on one another"
            self.report.error("PS0340", clause.span, message, help=hint)
        elif len(wrt) > 1 or line.measure != PURE.word or relation not in (nb.ReplacingEntry(), nb.ReplacingRecord()):
            hint = f"write O is {PURE.name} wrt {wrt[0]}, replacing one entry, given the model"
            message = "a line that counts on the model is about one entry of one input, in epsilon"
            self.report.error("PS0340", clause.span, message, help=hint)
        else:
            return nb.GivenTheModel()
        return None

    def _secret(self, line: syntax.Requirement, clauses: Clauses) -> str:
        """The computed value that a line hides which counts on the model; empty where it names inputs."""
        match line.wrt:
            case syntax.Refs(items=(syntax.Ref(attribute=None, indices=(), name=name),)) if clauses.model is not None:
                return name if self.behind.get(name) else ""
        return ""

    @property
    def finite(self) -> bool:
        """Whether all inputs and outputs have finitely many values."""
        held = [self.domains.get(name) for name in self.scope.of("input", "output")]
        return all(domain is not None and is_finite(domain) for domain in held)

    def _warn_of_units(
        self, line: syntax.Requirement, relation: nb.NeighbourRelation | None, wrt: tuple[str, ...]
    ) -> None:
        """A record of several inputs is one of any of them: nothing says which records are the same person's."""
        whose = next((block for name in wrt if (block := self.blocks.get(name)) and block.ids), None)
        if (
            whose is not None
            and relation is not None
            and relation.unit == "record"
            and not (relation.by_id or whose.persons)
        ):
            message = f"{whose.name} says whose a record is, and this line hides {relation.unit_name}s, not people"
            hint = f"to hide all that one {whose.ids[0]} has: one {whose.ids[0]} with at most 5 records"
            self.report.warn("PS0342", line.span, message, label="single records", help=hint)
        joint = isinstance(relation, nb.ReplacingPerson) and relation.by_id
        if len(wrt) > 1 and not joint and isinstance(relation, nb.ReplacingEntry | nb.ReplacingRecord):
            message = f"this is about one {relation.unit} of {listing(wrt, 'or')}, not about one of each at once"
            hint = (
                "if one person has data in several inputs, say whose: parties: person in 1..N, and replacing one person"
            )
            self.report.warn("PS0326", line.span, message, label="one unit of several inputs", help=hint)

    def _warn_of_correlations(self, line: syntax.Requirement, wrt: tuple[str, ...]) -> None:
        """A line about an input whose entries tell of one another, and which does not count on that."""
        for name in (name for name in wrt if name in self.chains):
            message = f"this compares with not taking part; it does not bound what correlations tell of {name}"
            label = "the other entries may tell what an entry is"
            hint = "add `, given the model`, or protect all entries together: replacing everything"
            self.report.warn("PS0341", line.span, message, label=label, help=hint)

    def relation(
        self, clause: syntax.Replacing | syntax.AddingOrRemoving | None, wrt: tuple[str, ...]
    ) -> nb.NeighbourRelation | None:
        """The relation that a clause names, or the default without one; None after a complaint."""
        if clause is None:
            each = {name: nb.default_relation(self.blocks.get(name), self.party_of.get(name)) for name in wrt}
            kinds = set(each.values())
            return kinds.pop() if len(kinds) == 1 else nb.ReplacingOneOf(parts=tuple(each.items()))
        found = self.report.told(lambda: self._unit(clause, wrt))
        return found if found is not None and self._fits(found, clause.unit.span, wrt) else None

    def _unit(
        self, clause: syntax.Replacing | syntax.AddingOrRemoving, wrt: tuple[str, ...]
    ) -> nb.NeighbourRelation | None:
        """The relation that a clause names, of any inputs; None where what is wrong is told already.

        Raises: Failure.
        """
        unit, adding = clause.unit, isinstance(clause, syntax.AddingOrRemoving)
        if isinstance(unit, syntax.Everything):
            if adding:
                message = "everything cannot be added or removed"
                raise Failure("PS0311", clause.span, message, help="write `replacing everything`")
            return nb.ReplacingEverything()
        if isinstance(unit, syntax.ByNeighbour):
            return self._by_neighbour(unit, wrt, adding=adding)
        group = 1
        persons = [self.blocks[name] for name in wrt if name in self.blocks and self.blocks[name].persons]
        if persons:
            return self._whole_person(unit, persons[0], wrt, adding=adding)
        if isinstance(unit, syntax.OneUnit) and unit.most is not None:
            return self._person(unit, adding=adding)
        if isinstance(unit, syntax.UpToUnits):
            group = self._whole(unit, unit.amount, "`up to` takes", "the size of a group")
        makers: dict[str, nb.NeighbourRelation] = {
            "entry": nb.ReplacingEntry(group, adding=adding),
            "record": nb.ReplacingRecord(group, adding=adding),
            **{party: nb.ReplacingVoter(group, party, adding=adding) for party in self.scope.of("party")},
        }
        names = {nb.plural(name): name for name in makers} | {name: name for name in makers}
        if unit.name in names:
            return makers[names[unit.name]]
        if unit.name in {block.index for block in self.blocks.values()}:
            return None  # an index that is no index set is told where it is declared
        raise self._unknown_unit(unit.name, unit.span, tuple(makers))

    def _by_neighbour(self, unit: syntax.ByNeighbour, wrt: tuple[str, ...], *, adding: bool) -> nb.NeighbourRelation:
        """One unit whose value becomes one next to it in a graph.

        Raises: Failure PS0347.
        """
        if adding:
            raise Failure("PS0347", unit.span, "values that change are replaced, not added or removed")
        inner: nb.NeighbourRelation = nb.ReplacingEverything()
        named = [self.blocks[name] for name in wrt if name in self.blocks]
        held = [block for block in named if block.name == unit.name and not unit.one]
        if unit.one and unit.name in self.scope.of("party"):
            inner = nb.ReplacingVoter(party=unit.name)
            held = [block for block in named if block.index == unit.name]
        elif unit.one and unit.name == "entry":
            inner, held = nb.ReplacingEntry(), named
        entries = isinstance(inner, nb.ReplacingEntry)
        domain = (held[0].domain.innermost if entries else held[0].domain) if len(held) == len(wrt) == 1 else None
        if domain is None or not is_finite(domain) or (domain.size or 0) > GRAPH:
            hint = "write replacing x by a neighbour in bands, or replacing one entry by a neighbour in bands"
            text = "a graph is over the few values of one input, or of its entries"
            raise Failure("PS0347", unit.span, text, help=hint)
        values = {key(value): i for i, value in enumerate(values_of(domain))}
        edges = set[tuple[int, int]]()
        for together in self._together(unit.graph):
            missing = next((value for value in together if value not in values), None)
            if missing is not None:
                text = f"{show(missing)} is no value of {domain.describe()}"
                raise Failure("PS0347", unit.graph.span, text, help="a graph joins values that the input may have")
            places = sorted({values[value] for value in together})
            edges |= {(a, b) for i, a in enumerate(places) for b in places[i + 1 :]}
        written = f"{'one ' * unit.one}{unit.name} by a neighbour in {spell(unit.graph)}"
        return nb.ByNeighbour(inner=inner, edges=tuple(sorted(edges)), written=written)

    def _together(self, graph: syntax.Expr) -> list[list[Symbol]]:
        """Sets of values of which every two are neighbours: rows of numbers, or a list of sets.

        Raises: Failure PS0347.
        """
        if isinstance(graph, syntax.Vector) and all(isinstance(item, syntax.SetOf) for item in graph.items):
            return [list(members(item, self.public)) for item in graph.items if isinstance(item, syntax.SetOf)]
        found = evaluate(graph, self.public)
        if not isinstance(found, np.ndarray) or found.ndim != 2:
            hint = 'write csv("edges.csv") with two numbers a row, or [{north, east}, {east, south}]'
            raise Failure("PS0347", graph.span, "a graph is a list of pairs of values that are neighbours", help=hint)
        from privspec.model.distances import exact_entry

        return [[exact_entry(value) for value in row] for row in found]

    def _person(self, unit: syntax.OneUnit, *, adding: bool) -> nb.NeighbourRelation:
        """One person with a few records of a table or power.

        Raises: Failure.
        """
        by_id = any(unit.name in block.ids for block in self.blocks.values())
        whose = unit.name in self.scope.of("party") and not by_id
        if unit.held not in ("record", "records") or whose or unit.most is None:
            hint = "write one person with at most 5 records"
            raise Failure("PS0230", unit.span, "a unit of several holds records, and is no index set", help=hint)
        count = self._whole(unit, unit.most, "`at most` takes", "how many records a person has")
        return nb.ReplacingPerson(count, adding=adding, person=unit.name)

    def _whole_person(
        self, unit: syntax.OneUnit | syntax.UpToUnits, block: InputBlock, wrt: tuple[str, ...], *, adding: bool
    ) -> nb.NeighbourRelation:
        """One person of a table of persons, or several.

        Raises: Failure PS0275 for a unit that is no person, or for several inputs.
        """
        whose = block.ids[0]
        group = self._whole(unit, unit.amount, "`up to` takes", "how many") if isinstance(unit, syntax.UpToUnits) else 1
        if len(wrt) > 1:
            raise Failure("PS0275", unit.span, "a line about persons of a table names that table alone")
        if unit.name not in (whose, nb.plural(whose)) or getattr(unit, "most", None) is not None:
            text = f"{block.name} is read person by person, whatever records each has"
            raise Failure("PS0275", unit.span, text, help=f"write one {whose}")
        return nb.WholePerson(group, adding=adding, person=whose)

    def _unknown_unit(self, word: str, span: Span, units: tuple[str, ...]) -> Failure:
        from privspec.language import meanings

        parties = self.scope.of("party")
        near = nearest(word, (*units, *map(nb.plural, units), "everything"))
        near = next((name for name in units if near == nb.plural(name)), near) or meanings.UNITS.get(word)
        if near is None and len(parties) == 1 and word in ("person", "user", "individual", "people", "users", "party"):
            near = next(iter(parties))
        tables = [block.name for block in self.blocks.values() if block.layout == "cells"]
        hint = f"if each {word} holds data of their own, declare `parties: {word} in 1..N` and index the input"
        if near is not None:
            hint = f"did you mean `one {near}`?" if near != "everything" else "did you mean `everything`?"
        elif tables and word in meanings.PEOPLE:
            hint = f"write one record, if each {word} is one row of {tables[0]}"
        label = f"units are {listing([*units, 'everything'], 'or')}"
        return Failure("PS0230", span, f"there is no unit {word} here", label=label, help=hint)

    def together_with(self, block: InputBlock) -> set[str]:
        """Other inputs from which something is looked up for this one, or for which something is looked up in it."""
        own = {block.name, *block.sources}
        linked = (one for one in self.blocks.values() if one.name != block.name and (block.sources or one.sources))
        return {one.name for one in linked if own & {one.name, *one.sources}}

    def _fits(self, relation: nb.NeighbourRelation, span: Span, wrt: tuple[str, ...]) -> bool:
        good = True
        for block in (self.blocks[name] for name in wrt if name in self.blocks):
            declared = ((block.span, "declared here"),)
            beside = next((one for one in self.together_with(block) if one not in wrt), None)
            if beside is not None:
                message = f"{block.name} and {beside} hold what one person has, by the same ids, and move together"
                self.report.error("PS0275", span, message, others=declared, help=f"write wrt ({block.name}, {beside})")
                good = False
            if block.looks_up and not isinstance(relation, nb.ReplacingPerson | nb.ReplacingEverything):
                message = (
                    f"columns of {block.name} are looked up by person, so one record of another table moves several"
                )
                hint = f"write one {block.ids[0]} with at most 5 records"
                self.report.error("PS0275", span, message, others=declared, help=hint)
                good = False
            if isinstance(relation, nb.ReplacingVoter) and block.index != relation.party:
                by = f"is indexed by {block.index}" if block.index else "is not indexed"
                message = f"{block.name} {by}, so no {relation.party} holds a part of it"
                hint = f"declare it as {block.name}[{relation.party}]"
                self.report.error("PS0231", span, message, others=declared, help=hint)
                good = False
            if isinstance(relation, nb.ReplacingEntry) and block.layout == "cells":
                message = f"{block.name} is a table: it consists of records, not of single numbers"
                self.report.error("PS0231", span, message, others=declared, help="write `one record`")
                good = False
        return good

    # -- the line as a whole

    def _check_personalised(
        self,
        measure: Personalised,
        relation: nb.NeighbourRelation | None,
        line: syntax.Requirement,
        wrt: tuple[str, ...],
    ) -> None:
        party, hint = measure.party, None
        alone = next((name for name in wrt if self.party_of.get(name) != party), None)
        if alone is not None:
            message = f"a figure for each {party} needs an input indexed by {party}; {alone} is not"
        elif relation is None or isinstance(relation, nb.ReplacingVoter | nb.ReplacingRecord):
            return
        else:
            message = f"a figure for each {party} protects what one {party} holds"
            hint = f"write `replacing one {party}`"
        self.report.error("PS0317", line.amount.span, message, help=hint)

    def _check_atoms(
        self, measure: MeasureAt, line: syntax.Requirement, outputs: tuple[str, ...], wrt: tuple[str, ...]
    ) -> None:
        """What the condition of single outputs allows sets of outputs."""
        domains = {name: self.domains.get(name) for name in (*outputs, *wrt)}
        asked = measure.amounts["delta"]
        exact = measure_at(LOCAL_APPROXIMATE, measure.amounts).describe()
        for name, domain in domains.items():
            if domain is not None and domain.size is None:
                message = f"{line.measure} counts values, and {name} has infinitely many or too many"
                others = ((self.scope[name].span, f"in {domain.describe()}"),) if name in self.scope else ()
                self.report.error("PS0316", line.span, message, others=others, help=f"write {exact}")
                return
        if any(domain is None for domain in domains.values()):
            return
        inputs, drawn = (prod((d.size or 0) for n in names if (d := domains[n])) for names in (wrt, outputs))
        largest = delta_of_sets(asked, inputs, drawn)
        if largest > asked:
            message = (
                f"this bounds each single output, not sets of them: the true delta may be up to {show(largest)}, "
                f"and {show(asked)} is asked for"
            )
            label = f"{drawn} outputs, {inputs} inputs"
            hint = f"write {exact} for the exact condition; the plan says what the true delta is"
        else:
            message = f"this bounds each single output; with {drawn} outputs and {inputs} inputs it implies {exact}"
            label, hint = "", f"write {exact}: the exact condition leaves more freedom, so that the loss can be lower"
        self.report.warn("PS0316", line.span, message, label=label, help=hint)

    def _check_bounded(
        self, relation: nb.NeighbourRelation, measure: AskedMeasure, line: syntax.Requirement, wrt: tuple[str, ...]
    ) -> None:
        if measure.of.takes_distance:
            return
        for block in (self.blocks[name] for name in wrt if name in self.blocks):
            own = relation.of(block) if isinstance(relation, nb.ReplacingOneOf) else relation
            cells = block.layout == "cells"
            unlimited = isinstance(own, nb.ReplacingRecord) if cells else not is_numeric(block.base_domain)
            if unlimited or block.name in self.unbounded_is_fine:
                continue
            try:
                block.reach(adding=own.adding)
            except nb.UnboundedError as error:
                label, hint = "cannot hold with any finite noise", error.suggestion
                self.report.warn("PS0312", line.span, error.why, label=label, others=block.place, help=hint)


def _what(value: Value) -> str:
    if isinstance(value, np.ndarray):
        return "a list of " + " x ".join(str(n) for n in value.shape)
    return "not a number"


# --- amounts that promise little ----------------------------------------------------------------------


def warn_about_amounts(
    line: syntax.Requirement, found: Requirement, blocks: Mapping[str, InputBlock], report: Report
) -> None:
    """A requirement that holds and protects hardly anybody is warned about; nothing is refused."""
    measures = found.measure.by_person
    amounts = [one.amounts for one in measures if one.of.follows_from_pure]
    epsilon = max((figures.get("epsilon", Fraction(0)) for figures in amounts), default=Fraction(0))
    delta = max((figures.get("delta", Fraction(0)) for figures in amounts), default=Fraction(0))
    items = line.amount.items
    if epsilon > LARGE_EPSILON:
        message = f"an epsilon of {show(epsilon)} promises very little"
        hint = (
            "below 1 is strong, 1 to 3 usual, 10 the most that is ever defended; see what it means: "
            "privspec explain PLAN --for public"
        )
        report.warn("PS0324", items[0].span, message, label="above 10", help=hint)
    people = [n for name in found.wrt if (n := _units(found.neighbours, blocks.get(name))) is not None]
    limit = min((Fraction(1, n) for n in people if n > 0), default=Fraction(1))
    if any(one.common is PURE for one in measures) or delta <= min(limit, LARGE_DELTA):
        return
    message, label = f"a delta of {show(delta)} allows publishing all about one", "above 1/1000"
    if delta > limit:
        units, many = nb.plural(found.neighbours.unit_name) if people else "people", f"{max(people, default=0):,}"
        message, label = f"{message} of {many} {units}", f"above one over {many}"
    else:
        message += f" person in {int(1 / delta):,}"
    hint = (
        "delta is the probability with which the promise may fail altogether: 1e-6, or far below one over "
        "the number of people"
    )
    report.warn("PS0325", items[-1].span, message, label=label, help=hint)


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
