"""Values that a spec draws from votes, such as `winner = random_dictator(vote)`: their laws, derived from its text.

The shares of first choices, of Borda points, or weights that are powers of a base: worked out ballot by ballot here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import reduce
from itertools import combinations
from operator import mul
from typing import Any, TypeAlias

import numpy as np

from privspec.certify.finite.ratios import BITS, Entries, LogRatio
from privspec.certify.finite.worlds import plain
from privspec.certify.motion import NotUnderstood
from privspec.certify.reading import Malformed
from privspec.language import syntax
from privspec.language.walk import names_used, walk
from privspec.model.domains import PartialRankingOf, RankingOf
from privspec.model.graph import Model
from privspec.model.pointwise import Pointwise
from privspec.model.values import Symbol

Points: TypeAlias = dict[Any, Fraction]
"""What each alternative has."""
PLACES = 64
"""Binary places of the base of weights, by the text of the language's functions."""
FLIP_LIMIT = 12
"""Most alternatives whose orders are summed up."""


@dataclass(frozen=True, slots=True)
class Draw:
    """A call `function(votes)` or `function(votes, epsilon)` that draws an alternative."""

    function: str
    votes: str
    epsilon: Fraction | None
    alternatives: tuple[Symbol, ...]

    def law(self, ballots: Sequence[Any]) -> Points:
        """The probabilities of the alternatives, for some ballots: words, or tuples of words, best first."""
        borda = self.function == "borda_lottery"
        points = dict.fromkeys(self.alternatives, Fraction(0))
        for ballot in ballots:
            order = ballot if isinstance(ballot, tuple) else (ballot,)
            for alternative, more in (_borda(order, self.alternatives) if borda else {order[0]: Fraction(1)}).items():
                points[alternative] += more
        return LAWS[self.function](points, self.epsilon)


def _borda(order: Sequence[Any], alternatives: Sequence[Any]) -> Points:
    """How many others each named alternative stands above; the rest share what is left of all such pairs."""
    m = len(alternatives)
    found = {alternative: Fraction(m - place) for place, alternative in enumerate(order, 1)}
    rest = [alternative for alternative in alternatives if alternative not in found]
    left = Fraction(m * (m - 1), 2) - sum(found.values())
    return found | {alternative: left / len(rest) for alternative in rest}


def _shares(points: Points, _: Fraction | None) -> Points:
    whole = sum(points.values())
    return {a: Fraction(p, whole) if whole else Fraction(1, len(points)) for a, p in points.items()}


def _base(epsilon: Fraction | None) -> Fraction:
    """e^(epsilon / 2), rounded down."""
    if epsilon is None or epsilon <= 0:
        raise Malformed("weights need an epsilon above 0")
    return Fraction(LogRatio.of(epsilon / 2).down >> (BITS - PLACES), 1 << PLACES)


def _weights(points: Points, epsilon: Fraction | None) -> Points:
    weights = {a: _base(epsilon) ** int(p) for a, p in points.items()}
    whole = sum(weights.values())
    return {a: w / whole for a, w in weights.items()}


def _flips(points: Points, epsilon: Fraction | None) -> Points:
    """An alternative is reached by way of some set of others before it, none of which was taken.

    In a random order the others of a given set of k all stand before it with probability 1 / (k + 1), and the product
    of (1 - y) over those that do is, on average, the sum over sets S of (-1)^|S| prod y / (|S| + 1).
    """
    if len(points) > FLIP_LIMIT:
        raise NotUnderstood(f"orders of {len(points)} alternatives")
    base, most = _base(epsilon), max(points.values())
    taken = {a: Fraction(1) / base ** int(most - p) for a, p in points.items()}
    law = {}
    for a, chance in taken.items():
        others = [y for b, y in taken.items() if b != a]
        sums = (
            Fraction((-1) ** k, k + 1) * sum(reduce(mul, chosen, Fraction(1)) for chosen in combinations(others, k))
            for k in range(len(others) + 1)
        )
        law[a] = chance * sum(sums, Fraction(0))
    return law


LAWS: Mapping[str, Callable[[Points, Fraction | None], Points]] = {
    "random_dictator": _shares,
    "borda_lottery": _shares,
    "exponential": _weights,
    "permute_and_flip": _flips,
}
"""Functions that draw; the law from the points, and epsilon where there is one."""


# --- in expressions ------------------------------------------------------------------------------------


def read_draw(scene: Pointwise, node: syntax.Node) -> Draw | None:
    """A call that draws, or a variable that is one; None for anything else.

    Raises: NotUnderstood for a call of another form.
    """
    model = scene.model
    if isinstance(node, syntax.Name):
        known = model.nodes.get(node.id)
        settled = known is None or node.id in scene.fixed or node.id in scene.bound or known.index is not None
        return None if known is None or settled or known.definition is None else read_draw(scene, known.definition)
    if not isinstance(node, syntax.Call) or node.function not in LAWS:
        return None
    match node.arguments:
        case (syntax.Name(id=votes), *others) if votes in model.nodes and len(others) < 2:
            pass
        case _:
            raise NotUnderstood(f"{node.function} of something else than an input")
    epsilon = scene.grid(others[0]).value(0, 0) if others else None  # type: ignore[arg-type]
    if others and not isinstance(epsilon, Fraction):
        raise Malformed(f"{node.function} takes a number")
    return Draw(node.function, votes, epsilon if isinstance(epsilon, Fraction) else None, _alternatives(model, votes))


def _alternatives(model: Model, votes: str) -> tuple[Symbol, ...]:
    domain = model.nodes[votes].domain
    if isinstance(domain, RankingOf | PartialRankingOf):
        return tuple(domain.alternatives)
    if domain is None or domain.size is None or model.nodes[votes].index is None:
        raise NotUnderstood(f"{votes} as ballots")
    return tuple(domain.elements())


def law_of(scene: Pointwise, draw: Draw, rows: int) -> tuple[Points, ...]:
    """The law in every row."""
    grid = scene.grid(syntax.Name(draw.votes))
    return tuple(draw.law(plain(grid.value(row, 0))) for row in range(rows))


def draws_in(scene: Pointwise, expr: syntax.Node) -> Iterator[syntax.Name | syntax.Call]:
    """What is drawn in an expression or in what it is computed from: calls in its text, and variables by name."""
    for node in walk(expr):
        if isinstance(node, syntax.Call) and read_draw(scene, node) is not None:
            yield node
    waiting, seen = list(names_used(expr)), set[str]()
    while waiting:
        name = waiting.pop()
        known = scene.model.nodes.get(name)
        if known is None or name in seen or name in scene.fixed or name in scene.bound:
            continue
        seen.add(name)
        if read_draw(scene, syntax.Name(name)) is not None:
            yield syntax.Name(name)
        elif known.definition is not None:
            waiting.extend(names_used(known.definition))


def averaged_over_draws(scene: Pointwise, expr: syntax.Expr, rows: int) -> Entries:
    """The number that an expression is at each row and column, averaged over what it draws, one thing after another.

    Raises: NotUnderstood, Malformed if it is no number.
    """
    draw = next(draws_in(scene, expr), None)
    if draw is None:
        grid = scene.grid(expr)
        if grid.shape or not isinstance(grid.data.ravel()[0], Fraction):
            raise Malformed("one number is wanted for each draw")
        return grid.data
    known = read_draw(scene, draw)
    assert known is not None
    name = draw.id if isinstance(draw, syntax.Name) else f"value {len(scene.fixed)} of {known.function}"
    rest = expr if isinstance(draw, syntax.Name) else _named(expr, draw, name)
    law = law_of(scene, known, rows)
    total: Entries = np.zeros((1, 1), dtype=object)
    for value in known.alternatives:
        chance: Entries = np.array([Fraction(one[value]) for one in law], dtype=object)
        total = total + averaged_over_draws(scene.given({name: value}), rest, rows) * chance[:, None]
    return total


def _named(node: Any, call: syntax.Call, name: str) -> Any:
    """The expression with a name in place of one call."""
    if node is call:
        return syntax.Name(name, span=node.span)
    changed: dict[str, Any] = {}
    for item in fields(node):
        value = getattr(node, item.name)
        if isinstance(value, syntax.Node):
            changed[item.name] = _named(value, call, name)
        elif isinstance(value, tuple):
            changed[item.name] = tuple(_named(v, call, name) if isinstance(v, syntax.Node) else v for v in value)
    return replace(node, **changed)
