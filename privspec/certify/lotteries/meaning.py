"""What a spec says of votes: who casts them, what a ballot is, which points count, and which output is drawn.

Points and ballots are worked out here from the domain of the input, by rules of the checker's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, permutations
from math import perm
from typing import Any, TypeAlias

from privspec.certify.motion import NotUnderstood
from privspec.certify.reading import Malformed
from privspec.language import syntax
from privspec.language.syntax import VariableKind
from privspec.language.walk import walk
from privspec.model.domains import Domain, FiniteSet, PartialRankingOf, RankingOf
from privspec.model.graph import GraphNode, Model
from privspec.model.values import Symbol, show

Scores: TypeAlias = tuple[Fraction, ...]
"""Points of each alternative, in order."""
FIRST, BORDA = "first choice", "borda"
POINTS_OF = {
    "random_dictator": FIRST,
    "plurality": FIRST,
    "exponential": FIRST,
    "permute_and_flip": FIRST,
    "borda_lottery": BORDA,
}
"""The points that each function of the language looks at."""
BALLOT_LIMIT = 5040
"""Most different ballots that are listed."""


@dataclass(frozen=True, slots=True)
class Ballots:
    """Ballots over m alternatives: words, or orders of up to `places` of them; and the points that they give."""

    kind: str
    size: int
    places: int
    points: str

    def __post_init__(self) -> None:
        if self.kind == FIRST and self.points != FIRST:
            raise Malformed("first choices have no Borda points")

    @property
    def highest(self) -> int:
        """The most points that a ballot gives to an alternative."""
        return 1 if self.points == FIRST else self.size - 1

    @property
    def total(self) -> Fraction:
        """All points of one ballot."""
        return Fraction(1) if self.points == FIRST else Fraction(self.size * (self.size - 1), 2)

    @property
    def reaches_zero(self) -> bool:
        """Whether some ballot gives an alternative nothing while another one has the most: it does on a full order."""
        return self.points == FIRST or self.places >= self.size - 1

    @property
    def whole(self) -> bool:
        """Whether all points are whole numbers: those that m - k alternatives share are (m - k - 1) / 2 each."""
        return self.points == FIRST or all((self.size - k) % 2 or k == self.size for k in self._lengths)

    @property
    def count(self) -> int:
        """How many ballots there are."""
        if self.kind == FIRST:
            return self.size
        return sum(perm(self.size, k) for k in self._lengths)

    @property
    def _lengths(self) -> tuple[int, ...]:
        return (self.size,) if self.kind == "ranking" else tuple(range(1, self.places + 1))

    def orders(self) -> Iterator[tuple[int, ...]]:
        """The ballots, as numbers of alternatives, best first."""
        if self.kind == FIRST:
            return ((a,) for a in range(self.size))
        return chain.from_iterable(permutations(range(self.size), k) for k in self._lengths)

    def scores(self, order: tuple[int, ...]) -> Scores:
        """The points of a ballot; in Borda's count alternatives that it leaves out share what is left evenly."""
        if self.points == FIRST:
            return tuple(Fraction(a == order[0]) for a in range(self.size))
        points = {a: Fraction(self.size - 1 - place) for place, a in enumerate(order)}
        left = self.size - len(order)
        share = (self.total - sum(points.values(), Fraction(0))) / left if left else Fraction(0)
        return tuple(points.get(a, share) for a in range(self.size))

    def kinds(self) -> tuple[Scores, ...]:
        """The different points that ballots give.

        Raises: NotUnderstood if there are too many ballots to list.
        """
        if self.points == FIRST:
            return tuple(self.scores((a,)) for a in range(self.size))
        if self.count > BALLOT_LIMIT:
            raise NotUnderstood(f"{self.count:,} different ballots")
        return tuple(dict.fromkeys(self.scores(order) for order in self.orders()))

    def smaller(self, size: int) -> Ballots:
        """The same over fewer alternatives."""
        return replace(self, size=size, places=max(1, self.places - self.size + size))


@dataclass(frozen=True, slots=True)
class Meaning:
    """Votes `source[party]` of so many voters, and the output that is drawn."""

    source: str
    party: str
    voters: int
    alternatives: tuple[Symbol, ...]
    ballots: Ballots
    output: str

    @property
    def words(self) -> tuple[str, ...]:
        """The alternatives as plans write them."""
        return tuple(show(item) for item in self.alternatives)


def meaning_of(model: Model) -> Meaning:
    """What a voting spec says.

    Raises: Malformed if the spec is none; NotUnderstood if it is not covered here.
    """
    if model.components:
        raise NotUnderstood("a system of components with a lottery")
    if len(model.inputs) != 1 or len(model.outputs) != 1:
        raise Malformed("the spec has no one input of votes and one winner")
    source, output = model.inputs[0], model.outputs[0]
    if source.index is None or len(source.type.shape) != 1:
        raise Malformed(f"{source.name} is not one ballot for each voter")
    if output.definition is not None or output.type.shape:
        raise Malformed(f"{output.name} is no winner that is left to be drawn")
    kind, alternatives, places = _ballots(source)
    points = _points(model, source.name)
    if output.domain is not None and set(_items(output.domain)) != set(alternatives):
        raise Malformed(f"{output.name} is not one of the alternatives of {source.name}")
    ballots = Ballots(kind, len(alternatives), places, points)
    voters = model.parties[source.index].size
    return Meaning(source.name, source.index, voters, alternatives, ballots, output.name)


def _items(domain: Domain) -> tuple[Symbol, ...]:
    size = domain.size
    return tuple(domain.elements()) if size is not None and size <= BALLOT_LIMIT else ()


def _ballots(source: GraphNode) -> tuple[str, tuple[Symbol, ...], int]:
    match source.domain:
        case RankingOf(alternatives=alternatives):
            return "ranking", tuple(alternatives), len(alternatives)
        case PartialRankingOf(alternatives=alternatives, places=places):
            return "partial ranking", tuple(alternatives), places
        case FiniteSet() | None:
            pass
        case Domain() as domain if domain.size is not None:
            return FIRST, _items(domain), 1
    if isinstance(source.domain, FiniteSet):
        return FIRST, tuple(source.domain.items), 1
    raise Malformed(f"{source.name} holds no ballots over a finite set")


def _points(model: Model, source: str) -> str:
    """The points that the loss and the accuracy lines look at."""
    trees: list[syntax.Node] = [] if model.loss is None else [expanded(model, model.loss)]
    trees += [expanded(model, line.target.left) for line in model.accuracy]
    found = {
        POINTS_OF[node.function]
        for tree in trees
        for node in walk(tree)
        if isinstance(node, syntax.Call) and node.function in POINTS_OF
    }
    if len(found) > 1:
        raise NotUnderstood(f"points of several kinds of {source}")
    return found.pop() if found else FIRST


def expanded(model: Model, expr: Any) -> Any:
    """An expression with the definitions of what it names in their place; numbers and inputs stay names."""
    match expr:
        case syntax.Name(id=name):
            node = model.nodes.get(name)
            inner = None if node is None or node.index is not None else node.definition
            if node is not None and node.kind is VariableKind.INTERMEDIATE and inner is not None:
                return expanded(model, inner)
            return expr
        case syntax.Call():
            return replace(expr, arguments=tuple(expanded(model, a) for a in expr.arguments))
        case syntax.Comprehension() | syntax.Over():
            return replace(expr, body=expanded(model, expr.body))
        case syntax.Binary():
            return replace(expr, left=expanded(model, expr.left), right=expanded(model, expr.right))
        case syntax.Negate():
            return replace(expr, operand=expanded(model, expr.operand))
    return expr
