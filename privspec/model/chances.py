"""Values that are drawn from the data, such as `winner = random_dictator(vote)`, with their law at every row.

A winner that a loss speaks of is drawn by itself: given the data it is independent of what the mechanism draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any, TypeAlias

from privspec.language import syntax
from privspec.language.walk import names_used, walk
from privspec.model.evaluate import bind_call, evaluate, value_type
from privspec.model.graph import Model
from privspec.model.library import Argument, Arguments, library
from privspec.model.lotteries import Drawn, Largest
from privspec.model.pointwise import Grid, Pointwise
from privspec.model.reports import Failure
from privspec.model.targets import environment
from privspec.model.values import Symbol, exact_array

RowLaws: TypeAlias = tuple[Mapping[Symbol, Fraction], ...]
"""For each row the law of a value."""


def drawn_by(model: Model, expr: syntax.Node) -> Drawn | None:
    """How a call draws its value from the votes of an input; None for anything that is computed."""
    if not isinstance(expr, syntax.Call) or not expr.arguments:
        return None
    votes, *others = expr.arguments
    if not isinstance(votes, syntax.Name) or votes.id not in model.nodes or expr.function not in library():
        return None
    public = environment(model)
    try:
        values = [evaluate(other, public) for other in others if not isinstance(other, _SPECIAL)]
        further = tuple(Argument(value_type(value), value, None, expr.span) for value in values)
        first = Argument(model.nodes[votes.id].type, None, None, votes.span)
        drawn = bind_call(expr, Arguments((first, *further))).drawn
    except Failure:
        return None
    return None if drawn is None or isinstance(drawn.lottery, Largest) else drawn


_SPECIAL = (syntax.Keyword, syntax.Member, syntax.Comprehension, syntax.RangeOf)
COMBINATIONS = 4096
"""Most joint values of all winners in one expression."""


@dataclass(frozen=True, eq=False, slots=True)
class Chances:
    """What is drawn from the data in the expressions of a scene, which has so many rows."""

    scene: Pointwise
    rows: int
    _laws: dict[syntax.Node, RowLaws] = field(default_factory=dict)

    def law(self, expr: syntax.Node) -> RowLaws | None:
        """The law at every row of a value that is drawn, by name or as a call; None for what is computed."""
        model = self.scene.model
        if isinstance(expr, syntax.Name) and expr.id in model.nodes and expr.id not in self.scene.bound:
            node = model.nodes[expr.id]
            return None if node.definition is None or node.index is not None else self.law(node.definition)
        drawn = drawn_by(model, expr)
        if drawn is None:
            return None
        if expr not in self._laws:
            assert isinstance(expr, syntax.Call) and isinstance(expr.arguments[0], syntax.Name)
            votes = self.scene.grid(expr.arguments[0])
            self._laws[expr] = tuple(drawn.law(votes.value(r, 0)) for r in range(self.rows))  # type: ignore[arg-type]
        return self._laws[expr]

    def random(self, expr: syntax.Node) -> bool:
        """Whether something that is drawn from the data stands in an expression, or in what it is computed from."""
        return bool(self._names(expr)) or any(drawn_by(self.scene.model, node) is not None for node in walk(expr))

    def _names(self, expr: syntax.Node) -> tuple[str, ...]:
        """Variables that are drawn, among those that an expression is computed from."""
        nodes, waiting, seen = self.scene.model.nodes, list(names_used(expr)), set[str]()
        found = []
        while waiting:
            name = waiting.pop()
            node = nodes.get(name)
            if node is None or node.definition is None or name in seen or name in self.scene.bound:
                continue
            seen.add(name)
            if self.law(syntax.Name(name)) is not None:
                found.append(name)
            else:
                waiting += names_used(node.definition)
        return tuple(sorted(found))

    def mean(self, expr: syntax.Expr) -> Grid:
        """The value of an expression at every pair of row and column, averaged over all that is drawn from the data.

        Raises: Failure PS0515 if too much is drawn at once, and what evaluation raises.
        """
        calls: dict[str, syntax.Call] = {}
        named = self._without_calls(expr, calls)
        laws = {name: self.law(syntax.Name(name)) for name in self._names(named)}
        laws |= {name: self.law(call) for name, call in calls.items()}
        known = {name: law for name, law in laws.items() if law is not None}
        if not known:
            return self.scene.grid(expr)
        values = [tuple(dict.fromkeys(value for one in law for value in one)) for law in known.values()]
        if prod(map(len, values)) > COMBINATIONS:
            raise Failure("PS0515", expr.span, "too many values are drawn from the data at once")
        total: Grid | None = None
        for joint in product(*values):
            chosen = dict(zip(known, joint, strict=True))
            each = ([law.get(v, _NONE) for law in known[n]] for n, v in chosen.items())
            weights = exact_array([prod(row, start=_ONE) for row in zip(*each, strict=True)], (self.rows, 1))
            data = self.scene.given(chosen).grid(named).data
            data = data * weights.reshape(self.rows, *(1,) * (data.ndim - 1))
            total = Grid(data if total is None else total.data + data)
        assert total is not None
        return total

    def _without_calls(self, node: Any, calls: dict[str, syntax.Call]) -> Any:
        """The expression with a name of its own in place of every call that draws."""
        if drawn_by(self.scene.model, node) is not None:
            name = f"drawn here {len(calls)}"
            calls[name] = node
            return syntax.Name(name, span=node.span)
        changed: dict[str, Any] = {}
        for item in fields(node):
            value = getattr(node, item.name)
            if isinstance(value, syntax.Node):
                changed[item.name] = self._without_calls(value, calls)
            elif isinstance(value, tuple):
                parts = (self._without_calls(v, calls) if isinstance(v, syntax.Node) else v for v in value)
                changed[item.name] = tuple(parts)
        return replace(node, **changed)


_NONE, _ONE = Fraction(0), Fraction(1)
