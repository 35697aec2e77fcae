"""What rules do to data that do not fit, in words: beside every error by chance, what else moves a figure, and how."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from privspec.core.records import dataclass, replace
from privspec.explain.document import Accuracy, Sentence, SpecLine
from privspec.explain.messages import phrase, say
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
            several = len(one.lower) > 1
            lower = listing(
                phrase("fitting.lower.by", name=name if several else "", span=_span(*ends)) for name, *ends in one.lower
            )
            said = say("fitting.cut.expected", {"lower": lower}, one)
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
    said, limits = dict[str, Sentence](), dict[str, Sentence]()
    for data in problem["data"]:
        domain, line = _entry(model.block(data["name"]).domain), where.line_of(data["name"])
        for key in _of_records(data, domain):
            said.setdefault(key, say(f"fitting.done.{key}", line=line))
    for name, (column, domain) in clipped(problem, model):
        sentence = _limits(column, domain, where.line_of(name))
        limits.setdefault(sentence.text, sentence)
    if len(limits) > 1 and len(said | limits) > MOST_TOLD:
        (line,) = (one for one in next(iter(limits.values())).because if isinstance(one, SpecLine))
        limits = {"": say("fitting.done.numbers", line=line)}
    yield from (said | limits).values()


def _entry(domain: Domain) -> Domain:
    """What each of its entries is in."""
    return _entry(domain.base) if isinstance(domain, Power) else domain


def _of_records(data: Mapping[str, Any], domain: Domain) -> Iterator[str]:
    """What is done with those that do not fit, by the keys of its sentences."""
    table, drops = isinstance(domain, Table), data["rule"] == "drop"
    if drops:
        yield "records" if table else "votes"
    elif isinstance(domain, RankingOf | PartialRankingOf):
        yield "ranking"
    elif data["rule"] == "map" and (table or (domain.bounds == (None, None) and domain.size)):
        yield "value"


def _limits(name: str | None, domain: Domain, line: SpecLine) -> Sentence:
    """What becomes of numbers outside a range."""
    column = "" if name is None else f"“{name}”".replace("_", " ")
    if isinstance(domain, Ball):
        return say("fitting.done.length", radius=exact(domain.radius), line=line)
    low, high = domain.bounds
    if isinstance(domain, FiniteSet) and low is not None:
        return say("fitting.done.listed", line=line)
    kind = "above" if low is None else "below" if high is None else "outside"
    return say(f"fitting.done.{kind}", {"column": column, "low": exact(low or 0), "high": exact(high or 0)}, line=line)
