"""What a line says after its measure: a distance, as in |x - x'| or a matrix of one's own, and the unit of privacy.

A line that names no unit means the one that fits its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import TypeAlias

from privspec.core.spans import Span
from privspec.language import meanings, syntax
from privspec.language.walk import names_used
from privspec.model import neighbours as nb
from privspec.model.distances import DISTANCES, MATRIX, OF_NUMBERS, OF_RANKINGS, exact_entry, read_matrix, shortcut
from privspec.model.domain_rules import whole
from privspec.model.domains import Numbers, PartialRankingOf, Rankings
from privspec.model.evaluate import Environment
from privspec.model.measures import Metric
from privspec.model.neighbours import InputBlock
from privspec.model.reports import Failure, Report, listing, nearest
from privspec.model.scope import Scope
from privspec.model.values import show

Side: TypeAlias = tuple[list[tuple[str, Span]], bool]
"""The inputs on one side of a difference, and whether they carry a prime."""


@dataclass(frozen=True, slots=True)
class DistanceReader:
    """Reads what follows `distance`; `public` holds parameters and constants, `blocks` the inputs."""

    scope: Scope
    report: Report
    public: Environment
    blocks: Mapping[str, InputBlock]

    def read(self, clause: syntax.Distance, wrt: tuple[str, ...]) -> Metric | None:
        """The distance between values of the inputs `wrt`; None after a complaint."""
        metric: Metric | None
        match clause.metric:
            case syntax.Name(id=name) if name in DISTANCES:
                metric = Metric(name)
            case syntax.Absolute(operand=difference):
                metric = self._difference(difference, "manhattan", clause, wrt)
            case syntax.Norm(operand=difference, order=order):
                metric = self._difference(difference, NORMS[order], clause, wrt)
            case matrix:
                return self._matrix(matrix, wrt)
        return metric if metric is not None and self._fits(metric, clause, wrt) else None

    # -- by name

    def _fits(self, metric: Metric, clause: syntax.Distance, wrt: tuple[str, ...]) -> bool:
        """Whether the inputs have what the distance measures."""
        named = isinstance(clause.metric, syntax.Name)
        for name in wrt:
            block = self.blocks.get(name)
            if block is None:
                continue
            element = block.domain.type.element
            if metric.name in OF_RANKINGS and not isinstance(element, Rankings):
                message = f"{metric.name} is a distance of rankings, and {name} is none"
                help_ = f"these are for all values: {listing(n for n in DISTANCES if n not in OF_RANKINGS)}"
                return self._unfit(clause.span, message, block, help_)
            if isinstance(element, Rankings) and isinstance(element.of, PartialRankingOf):
                message = f"{metric.name} does not say how far partial rankings of different lengths are apart"
                return self._unfit(clause.span, message, block, "give a matrix of distances")
            if metric.name in OF_NUMBERS and not isinstance(element, Numbers) and block.layout != "cells":
                if not named:
                    message = f"{name} is made of words, which have no difference"
                    return self._unfit(clause.span, message, block, "write distance discrete, or distance hamming")
                self.report.warn(
                    "PS0309",
                    clause.span,
                    f"{name} is made of words: they count as one apart where they differ",
                    others=((block.span, f"in {block.domain.describe()}"),),
                    help="write distance discrete or distance hamming, or give a matrix of distances",
                )
        return True

    def _unfit(self, span: Span, message: str, block: InputBlock, help_: str) -> bool:
        self.report.error("PS0309", span, message, others=((block.span, f"in {block.domain.describe()}"),), help=help_)
        return False

    # -- |x - x'|

    def _difference(
        self, operand: syntax.Expr, name: str, clause: syntax.Distance, wrt: tuple[str, ...]
    ) -> Metric | None:
        """A distance written as the size of a difference of two values of the inputs."""
        sides = _sides(operand)
        if sides is None:
            self._unreadable(clause.metric)
            return None
        (left, first), (right, second) = sides
        for place, span in (*left, *right):
            if place not in wrt:
                self.report.error(
                    "PS0309",
                    span,
                    f"this line is about {listing(wrt)}, and the distance speaks of {place}",
                    help=f"write {_written(clause.metric, wrt)}",
                )
                return None
        both = [[place for place, _ in side] for side in (left, right)]
        if first == second or both[0] != both[1] or set(both[0]) != set(wrt) or len(both[0]) != len(wrt):
            self.report.error(
                "PS0309",
                clause.metric.span,
                f"a distance compares one value of {listing(wrt)} with another",
                help=f"write {_written(clause.metric, wrt)}",
            )
            return None
        return Metric(name)

    # -- a matrix

    def _matrix(self, expr: syntax.Expr, wrt: tuple[str, ...]) -> Metric | None:
        """A public matrix of distances between the values of the inputs."""
        if isinstance(expr, syntax.Name) and expr.id not in self.scope:
            near = nearest(expr.id, (*DISTANCES, *self.scope.of("parameter", "constant")))
            self.report.error(
                "PS0309",
                expr.span,
                f"there is no distance {expr.id}",
                help=f"did you mean {near}?" if near else f"these exist: {', '.join(DISTANCES)}; or {MATRIX}",
            )
            return None
        for name in names_used(expr):
            declared = self.scope.get(name)
            if declared is not None and declared.what in ("input", "intermediate", "output"):
                self._unreadable(expr)
                return None
            if declared is not None and declared.what not in ("parameter", "constant"):
                message = f"distances are public and known: {name} is {declared.with_article}"
                self.report.error("PS0318", expr.span, message, others=((declared.span, "declared here"),))
                return None
        metric = Metric(" ".join(self.report.source.slice(expr.span).split()), expr)
        return metric if self._check(expr, wrt) else None

    def _check(self, expr: syntax.Expr, wrt: tuple[str, ...]) -> bool:
        """Whether the matrix fits; a constant whose value is given to `solve` is checked there."""
        waits = [n for n in names_used(expr) if n in self.scope.of("constant") and n not in self.public.values]
        blocks = [self.blocks.get(name) for name in wrt]
        if waits or None in blocks:
            return True
        known = [block for block in blocks if block is not None]
        sizes = [block.domain.size for block in known]
        for block, size in zip(known, sizes, strict=True):
            if size is None or block.index is not None:
                what = "belongs to several people" if block.index is not None else "has too many values for a matrix"
                self.report.error(
                    "PS0318",
                    expr.span,
                    f"a matrix lists the distances of all values, and {block.name} {what}",
                    others=((block.span, f"in {block.domain.describe()}"),),
                )
                return False
        try:
            matrix = read_matrix(expr, self.public, prod(size or 0 for size in sizes), wrt)
        except Failure as failure:
            self.report.failure(failure)
            return False
        found = shortcut(matrix)
        if found is not None:
            a, b, c = found
            way, first, second = (show(exact_entry(matrix[i, j])) for i, j in ((a, c), (a, b), (b, c)))
            start, over, end = (_called(known, place) for place in found)
            self.report.warn(
                "PS0319",
                expr.span,
                f"a detour is shorter than the way: {start} and {end} are {way} apart, "
                f"and {first} + {second} by way of {over}",
                help="the line is taken as it stands, pair by pair: no distance is replaced by another",
            )
        return True

    def _unreadable(self, expr: syntax.Expr) -> None:
        self.report.error("PS0309", expr.span, "this is no distance that is known here", help=MATRIX)


NORMS = {"1": "manhattan", "2": "euclidean", "inf": "chebyshev"}
"""Distances that norms of a difference stand for."""


def _called(blocks: Sequence[InputBlock], place: int) -> str:
    """The joint value with this number, in row-major order."""
    parts = []
    for block in reversed(blocks):
        place, own = divmod(place, block.domain.size or 1)
        parts.append(_shown(next(islice(block.domain.elements(), own, None))))
    return parts[0] if len(parts) == 1 else f"({', '.join(reversed(parts))})"


def _shown(value: object) -> str:
    return f"({', '.join(map(_shown, value))})" if isinstance(value, tuple) else show(value)


def _sides(difference: syntax.Expr) -> tuple[Side, Side] | None:
    """Both sides of a difference of inputs."""
    if not isinstance(difference, syntax.Binary) or difference.op != "-":
        return None
    left, right = _side(difference.left), _side(difference.right)
    return None if left is None or right is None else (left, right)


def _side(expr: syntax.Expr) -> Side | None:
    """One side of a difference: x, x', x[voter], (x, y), (x', y') or (x, y)'."""
    match expr:
        case syntax.Name(id=name) | syntax.Index(base=syntax.Name(id=name), indices=(syntax.Name(),)):
            return [(name, expr.span)], False
        case syntax.Transpose():
            inner = _side(expr.operand)
            return None if inner is None or inner[1] else (inner[0], True)
        case syntax.TupleOf():
            sides = [_side(item) for item in expr.items]
            known = [side for side in sides if side is not None]
            if len(known) < len(sides) or len({primed for _, primed in known}) != 1:
                return None
            return [place for places, _ in known for place in places], known[0][1]
        case _:
            return None


def _written(metric: syntax.Expr, wrt: tuple[str, ...]) -> str:
    """The form that was meant: |x - x'|."""
    one = wrt[0] if len(wrt) == 1 else f"({', '.join(wrt)})"
    if isinstance(metric, syntax.Norm):
        return f"||{one} - {one}'||" + ("" if metric.order == "2" else f"_{metric.order}")
    return f"|{one} - {one}'|"


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
                    "PS0311", clause.span, "everything cannot be added or removed", help="write `replacing everything`"
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
