"""Units of privacy: which one a line names, or which is meant when it names none, and whether it fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from privspec.core.spans import Span
from privspec.language import meanings, syntax
from privspec.model import neighbours as nb
from privspec.model.domain_rules import whole
from privspec.model.evaluate import Environment
from privspec.model.graph import InputBlock
from privspec.model.reports import Failure, Report, listing, nearest
from privspec.model.scope import Scope


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


@dataclass(frozen=True, slots=True)
class UnitReader:
    """Reads `replacing ...` and `adding or removing ...`; `party_of` says which index set indexes a name."""

    scope: Scope
    report: Report
    environment: Environment
    blocks: Mapping[str, InputBlock]
    party_of: Mapping[str, str]

    def neighbours(
        self, line: syntax.Requirement, clauses: Clauses, wrt: tuple[str, ...]
    ) -> tuple[nb.NeighbourRelation | None, bool]:
        """The neighbour relation, and whether it is the default; None after a complaint."""
        clause = clauses.unit
        if line.measure in ("LDP", "per-atom-LDP", "metric-DP", "Lipschitz"):
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
        if word in {block.index for block in self.blocks.values()}:
            return  # an index that is no index set is told where it is declared
        parties = self.scope.of("party")
        near = nearest(word, (*makers, *(nb.plural(name) for name in makers), "everything"))
        near = next((name for name in makers if near == nb.plural(name)), near)
        tables = [block.name for block in self.blocks.values() if block.layout == "cells"]
        near = near or meanings.UNITS.get(word)
        if near is None and len(parties) == 1 and word in ("person", "user", "individual", "people", "users", "party"):
            near = next(iter(parties))
        if near is None and tables and word in meanings.PEOPLE:
            hint = f"write one record, if each {word} is one row of {tables[0]}"
        elif near is not None:
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
