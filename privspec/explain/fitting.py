"""What rules do to data that do not fit, in words: beside every error by chance, what else moves a figure, and how."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from privspec.core.records import dataclass, replace
from privspec.explain.document import Accuracy, Judged, Sentence, SpecLine, assumed, proved
from privspec.explain.quantities import Quantity, exact, rounded
from privspec.model.domains import Ball, Domain, FiniteSet, PartialRankingOf, Power, RankingOf, Table
from privspec.model.reports import listing
from privspec.problem.fitting import Done, Rule, Way, clipped, expected, rules

if TYPE_CHECKING:
    from privspec.explain.context import Context
    from privspec.model.graph import Model

MOST_TOLD, MOST_NAMED = 2, 2
"""Sentences on what is done, ranges of numbers in one; outputs that are told apart."""
Effects = Mapping[Done, str]
"""What a rule does to what is published, where that is not a figure that moves one way or the other."""

REPORTED: Effects = {Done.CLIPPED: "is further off", Done.NOT_LISTED: "counts as another value"}
"""Of reports, each of which is about one value."""


@dataclass(frozen=True, slots=True)
class CutFact:
    """How many records the spec's law lets expect to be cut, and by how much that lowers figures of outputs."""

    records: Quantity
    lower: tuple[tuple[str, Quantity, Quantity], ...]
    line: SpecLine

    @property
    def words(self) -> str:
        """For a table."""
        lower = "".join(f"; each figure of {name} too low by {_span(least, most)}" for name, least, most in self.lower)
        return f"{self.records} records{lower} (line {self.line.number})"


@dataclass(frozen=True, slots=True)
class Fitting:
    """The rules with the outputs that they move; in sentences what they do; what a law lets expect to be cut."""

    rules: tuple[Rule, ...] = ()
    told: tuple[Sentence, ...] = ()
    cut: tuple[CutFact, ...] = ()

    def clauses(self, names: Iterable[str], effects: Effects | None = None, most: int = MOST_NAMED) -> list[str]:
        """What moves these outputs besides chance, and how, a clause for each; nothing where nothing does.

        "what is left out makes it too low", "clipping moves it either way"; up to so many outputs are told by name.
        """
        wanted, said = tuple(dict.fromkeys(names)), dict[str, list[str]]()
        for rule in self.rules:
            moved = {name: way for name, way in rule.moves if name in wanted}
            if moved:
                how = (effects or {}).get(rule.done) or _moves(moved, wanted, most)
                said.setdefault(how, []).append(rule.done.value)
        alone = [] if effects else [Done.CLIPPED.value]
        return [
            f"{'clipping' if done == alone else 'what is ' + listing(done, 'or')} {how}" for how, done in said.items()
        ]

    def expectations(self) -> Iterator[Sentence]:
        """What the author's law lets expect to be cut, in a sentence for each table."""
        for one in self.cut:
            words = f"By the author's law of records, about {one.records} of them are cut"
            several = len(one.lower) > 1
            lower = [f"{f' in {name}' * several} by about {_span(least, most)}" for name, least, most in one.lower]
            said = assumed(f"{words}{f', which lowers each figure{listing(lower)}' if lower else ''}.", one.line)
            sizes = tuple((name, least.value, most.value) for name, least, most in one.lower)
            yield replace(said, accuracy=Accuracy("cut", sizes))


def _moves(moved: Mapping[str, Way], wanted: tuple[str, ...], most: int) -> str:
    """As in "makes it too low"; of several outputs each way with the names that it is about."""
    each = dict[Way, list[str]]()
    for name, way in moved.items():
        each.setdefault(way, []).append(name)
    found = list[str]()
    for way in (one for one in Way if one in each):
        names = each[way]
        them = "it" if len(wanted) == 1 else "them"
        if len(names) < len(wanted):
            them = listing(names) if len(wanted) <= most else "others" if found else "some"
        found.append(f"moves {them} either way" if way is Way.EITHER else f"makes {them} {way.value}")
    return listing(found)


def _span(least: Quantity, most: Quantity) -> str:
    return least.text if least.text == most.text else f"{least} to {most}"


def fitting(problem: Mapping[str, Any], model: Model | None, where: Context) -> Fitting:
    """What a plan's problem says of data that do not fit.

    Raises: Failure for a law of records that cannot be computed.
    """
    found = () if model is None else tuple(expected(problem, model))
    return Fitting(
        rules(problem, model),
        () if model is None else tuple(_told(problem, model, where)),
        tuple(
            CutFact(
                rounded(one.records),
                tuple((name, rounded(least), rounded(most)) for name, least, most in one.lower),
                where.line(one.line),
            )
            for one in found
        ),
    )


# --- what happens to data that do not fit ---------------------------------------------------------


def _told(problem: Mapping[str, Any], model: Model, where: Context) -> Iterator[Sentence]:
    """One sentence for each thing that is done; of numbers the limits, where they are few."""
    said, limits = dict[str, SpecLine](), dict[str, SpecLine]()
    for data in problem["data"]:
        domain, line = _entry(model.block(data["name"]).domain), where.line_of(data["name"])
        for words in _of_records(data, domain):
            said.setdefault(words, line)
    for name, (column, domain) in clipped(problem, model):
        limits.setdefault(_limits(column, domain), where.line_of(name))
    if len(limits) > 1 and len(said | limits) > MOST_TOLD:
        limits = {"Numbers outside their limits count as the nearest.": next(iter(limits.values()))}
    yield from (proved(words, line, Judged("problem")) for words, line in (said | limits).items())


def _entry(domain: Domain) -> Domain:
    """What each of its entries is in."""
    return _entry(domain.base) if isinstance(domain, Power) else domain


def _of_records(data: Mapping[str, Any], domain: Domain) -> Iterator[str]:
    table, drops = isinstance(domain, Table), data["rule"] == "drop"
    if drops:
        yield "Records that do not fit are left out." if table else "Votes that cannot be read are left out."
    elif isinstance(domain, RankingOf | PartialRankingOf):
        yield "A ranking that cannot be read counts as one in the order listed."
    elif data["rule"] == "map" and (table or (domain.bounds == (None, None) and domain.size)):
        yield "A value not listed counts as the first listed."


def _limits(name: str | None, domain: Domain) -> str:
    """What becomes of numbers outside a range."""
    if isinstance(domain, Ball):
        return f"A record longer than {exact(domain.radius)} is shortened to that."
    low, high = domain.bounds
    if isinstance(domain, FiniteSet) and low is not None:
        return "A number not listed counts as the nearest listed."
    what = "A number" if name is None else f"“{name}”".replace("_", " ")
    if low is None or high is None:
        side, end = ("above", high) if low is None else ("below", low)
        return f"{what} {side} {exact(end or 0)} counts as {exact(end or 0)}."
    one = "one " if name is None else ""
    return f"{what} below {exact(low)} counts as {exact(low)}, {one}above {exact(high)} as {exact(high)}."
