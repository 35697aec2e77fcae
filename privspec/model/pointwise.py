"""What expressions mean at every pair of a row (the secret) and a column (what is drawn): exact, and all pairs at once.

A `Grid` holds a value for each pair; values that do not depend on the row (or the column) are held once. Numbers are
fractions throughout: sums, products and whole powers are exact, square roots are rounded to 64 binary places.

Values that are drawn from the data, such as `winner = random_dictator(vote)`, have their law at every row. A winner
that a loss speaks of is drawn by itself: given the data it is independent of what the mechanism draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from math import lcm, prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass, field, replace
from privspec.core.rounding import root
from privspec.core.spans import Span
from privspec.language import syntax
from privspec.language.walk import names_used, reached, uses, walk, with_children
from privspec.language.walk import root as root_of
from privspec.model.domains import Symbols
from privspec.model.evaluate import OPERATORS, Algebra, Environment, Unary, Values, computing, exact_value, value_type
from privspec.model.graph import Model
from privspec.model.library import Argument, Bound, library
from privspec.model.reports import Failure
from privspec.model.targets import call_of, environment
from privspec.model.values import Symbol, Value, exact_array, joined_length

if TYPE_CHECKING:
    from privspec.model.voting import Drawn

Entries: TypeAlias = NDArray[np.object_]
"""Exact values in a numpy array."""


@dataclass(frozen=True, eq=False, slots=True)
class Grid:
    """A value for each pair: `data` (rows or 1, columns or 1, *shape of one value), of fractions, words or tuples."""

    data: Entries

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.data.shape[2:])

    @property
    def constant(self) -> bool:
        """Whether it is one value for all pairs."""
        return self.data.shape[:2] == (1, 1)

    def value(self, row: int, column: int) -> Value:
        """The value of one pair."""
        a, b = self.data.shape[:2]
        return _single(self.data[row if a > 1 else 0, column if b > 1 else 0])

    def spread(self, rows: int, columns: int) -> Entries:
        """The values of all pairs (rows, columns, *shape)."""
        spread: Entries = np.broadcast_to(self.data, (rows, columns, *self.shape))
        return spread


def _single(entry: Any) -> Value:
    """A value as the evaluator of single values has it."""
    if isinstance(entry, np.ndarray) and entry.shape == ():
        inner: Value = entry.item()
        return inner
    found: Value = entry
    return found


def constant(value: Value) -> Grid:
    """One value for all pairs."""
    if isinstance(value, np.ndarray):
        return Grid((value if value.dtype == object else _exact(value))[None, None])
    data = np.empty((1, 1), dtype=object)
    data[0, 0] = value
    return Grid(data)


def _exact(array: NDArray[Any]) -> Entries:
    return exact_array([Fraction(float(entry)) for entry in array.ravel()], array.shape)


def stacked(values: Sequence[Value], axis: int) -> Grid:
    """One value for each row (axis 0) or column (axis 1); all of one shape."""
    first = values[0]
    if isinstance(first, np.ndarray):
        data = np.stack([v if v.dtype == object else _exact(v) for v in values if isinstance(v, np.ndarray)])
    else:
        data = np.empty(len(values), dtype=object)
        for place, value in enumerate(values):  # one by one: a ranking is a tuple
            data[place] = value
    return Grid(np.expand_dims(data, 1 - axis))


@dataclass(frozen=True, eq=False)
class Pointwise(Algebra[Grid]):
    """Evaluates expressions of a model at all pairs.

    Args: rows, columns: values of the nodes that pick them, by name (one for each row or column); fixed: values of
    further variables; laws: the masses of laws by value, for E[g(B)].
    """

    model: Model
    rows: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    columns: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    fixed: Mapping[str, Value] = field(default_factory=dict)
    laws: Mapping[str, Mapping[Symbol, Fraction]] = field(default_factory=dict)
    bound_variables: Mapping[str, Value] = field(default_factory=dict)
    _memory: dict[str, Grid] = field(default_factory=dict, repr=False)

    @cached_property
    def known(self) -> Environment:
        return environment(self.model, self.bound_variables)

    @cached_property
    def _single(self) -> Values:
        """The meaning at one pair."""
        return Values(self.known)

    def node(self, name: str, span: Span) -> Grid:
        """The value of a variable.

        Raises: Failure PS0261 if it has none at these pairs.
        """
        if name in self.bound_variables:
            return constant(self.bound_variables[name])
        if name not in self._memory:
            self._memory[name] = self._node(name, span)
        return self._memory[name]

    def _node(self, name: str, span: Span) -> Grid:
        if name in self.rows:
            return stacked(self.rows[name], 0)
        if name in self.columns:
            return stacked(self.columns[name], 1)
        if name in self.fixed:
            return constant(self.fixed[name])
        if name in self.known.values:
            return constant(self.known.values[name])
        node = self.model.nodes.get(name)
        if node is None or node.definition is None:
            raise Failure("PS0261", span, f"{name} has no value here", label="nothing says what it is")
        # a definition sees none of the variables bound around its use
        outside = replace(self, bound_variables={}) if self.bound_variables else self
        if node.index is None:
            return outside.of(node.definition)
        size = self.known.parties[node.index]
        return _stack([outside.bind(node.index, Fraction(i)).of(node.definition) for i in range(1, size + 1)])

    def bind(self, variable: str, place: Value) -> Pointwise:
        return replace(self, bound_variables={**self.bound_variables, variable: place})

    def given(self, values: Mapping[str, Value]) -> Pointwise:
        """The same where some variables have one value each, in definitions too."""
        return replace(self, fixed={**self.fixed, **values}, _memory={})

    def constant(self, value: Value) -> Grid:
        return constant(value)

    def name(self, expr: syntax.Name) -> Grid:
        return self.node(expr.id, expr.span)

    def stacked(self, items: list[Grid], span: Span) -> Grid:
        return _stack(items)

    def vector(self, expr: syntax.Vector | syntax.TupleOf, items: list[Grid]) -> Grid:
        if joined_length([item.shape for item in items]) is None:
            return _stack(items)
        return _stack([Grid(item.data[:, :, place]) for item in map(_listed, items) for place in range(item.shape[0])])

    def unary(self, expr: Unary, value: Grid) -> Grid:
        entries = _numbers(value, expr.span)
        axes = tuple(range(2, entries.ndim))
        match expr:
            case syntax.Negate():
                return Grid(-entries)
            case syntax.Transpose():
                return Grid(entries.swapaxes(2, 3) if len(axes) > 1 else entries)
            case syntax.Absolute():
                return Grid(np.abs(entries))
            case syntax.Norm(order="2") if axes:
                return Grid(_of_squares(root, entries))
            case syntax.Norm(order=order):
                return Grid((np.max if order == "inf" else np.sum)(np.abs(entries), axis=axes))

    def of(self, expr: syntax.Expr) -> Grid:
        match expr:
            case syntax.Binary(op="^", left=syntax.Norm(order="2") as norm, right=syntax.Number(value=power)) if (
                power == 2
            ):
                # exact, where the root would be rounded
                return Grid(_of_squares(Fraction, _numbers(self.of(norm.operand), norm.span)))
        return super().of(expr)

    def binary(self, expr: syntax.Binary, left: Grid, right: Grid) -> Grid:
        if expr.op == "@":
            return _each(partial(self._single.binary, expr), (left, right))
        a, b = _aligned(_numbers(left, expr.span), _numbers(right, expr.span))
        try:
            if expr.op in "+-" and (together := _in_whole_numbers(OPERATORS[expr.op], a, b)) is not None:
                return Grid(together)
            if expr.op != "^":
                return Grid(OPERATORS[expr.op](a, b))
        except ZeroDivisionError as error:
            raise Failure("PS0260", expr.span, "division by zero") from error
        except ValueError as error:
            raise Failure("PS0207", expr.span, f"shapes {left.shape} and {right.shape} do not fit") from error
        power = np.frompyfunc(partial(self._single.binary, expr), 2, 1)
        found: Entries = np.asarray(power(a, b), dtype=object)
        return Grid(found)

    def entry(self, expr: syntax.Index, base: Grid, places: list[Grid]) -> Grid:
        places = [self._numbered(place, written) for place, written in zip(places, expr.indices, strict=True)]
        return _each(lambda array, *at: self._single.entry(expr, array, list(at)), (base, *places))

    def _numbered(self, place: Grid, written: syntax.Expr) -> Grid:
        """An index: of a word, its number in the set that it is from."""
        name = root_of(written)
        node = self.model.nodes.get(name.id) if name is not None else None
        words = node.type.element.items if node is not None and isinstance(node.type.element, Symbols) else None
        if words is None:
            return place
        numbers = {word: Fraction(i) for i, word in enumerate(words, 1)}
        return _each(lambda word: numbers.get(word, word), [place])

    def over(self, expr: syntax.Over) -> Grid:
        """E[g(B)] where B is a law with known masses."""
        if expr.operator != "E":
            raise Failure("PS0262", expr.span, "a worst case has no value here")
        used = [name for name in self.laws if uses(expr.body, name)]
        if len(used) != 1 or expr.given is not None:
            raise Failure("PS0262", expr.span, "an average over the noise has no value here")
        (law,) = used
        total: Grid | None = None
        for value, mass in self.laws[law].items():
            data = _numbers(self.bind(law, value).of(expr.body), expr.span) * mass
            total = Grid(data if total is None else total.data + data)
        if total is None:
            raise Failure("PS0262", expr.span, f"{law} has no values")
        return total

    def described(self, item: syntax.Argument, value: Grid) -> Argument:
        """Of votes the type that is declared, which knows all alternatives and their order; else that of the values."""
        node = self.model.nodes.get(item.id) if isinstance(item, syntax.Name) else None
        known = value.value(0, 0)
        own = node is None or node.name in self.bound_variables or node.type.numeric or not node.type.shape
        kind = value_type(known) if own or node is None else node.type
        return Argument(kind, known if value.constant else None, None if node is None else node.domain, item.span)

    def applied(self, expr: syntax.Call, bound: Bound, data: list[Grid]) -> Grid:
        with computing(expr):
            if bound.of_values is not None:
                return _each(lambda held: _tallied(held, bound.of_values), data)
            return _each(bound.apply, data) if data else constant(bound.apply())


def _tallied(held: Any, values: Any) -> Entries:
    """How many entries have each value."""
    entries = list(np.ravel(held))
    return exact_array([Fraction(sum(entry == value for entry in entries)) for value in values], (len(values),))


def _numbers(grid: Grid, span: Span) -> Entries:
    first = grid.data.ravel()[:1]
    if len(first) and not isinstance(first[0], Fraction):
        raise Failure("PS0208", span, "numbers are expected here")
    return grid.data


def _aligned(a: Entries, b: Entries) -> tuple[Entries, Entries]:
    """Numbers beside arrays: axes for the entries are added to whichever has none."""
    if a.ndim == 2 and b.ndim > 2:
        a = a.reshape(*a.shape, *(1,) * (b.ndim - 2))
    elif b.ndim == 2 and a.ndim > 2:
        b = b.reshape(*b.shape, *(1,) * (a.ndim - 2))
    return a, b


def _listed(grid: Grid) -> Grid:
    """A number as a vector of one."""
    return grid if grid.shape else Grid(grid.data[:, :, None])


def _stack(grids: Sequence[Grid]) -> Grid:
    rows = max(g.data.shape[0] for g in grids)
    columns = max(g.data.shape[1] for g in grids)
    return Grid(np.stack([g.spread(rows, columns) for g in grids], axis=2))


def _each(apply: Callable[..., Any], grids: Sequence[Grid]) -> Grid:
    """A function of single values at all pairs; each distinct pair of positions once."""
    rows = max(g.data.shape[0] for g in grids)
    columns = max(g.data.shape[1] for g in grids)
    results = [[_value(apply(*(g.value(r, c) for g in grids))) for c in range(columns)] for r in range(rows)]
    shape = results[0][0].shape if isinstance(results[0][0], np.ndarray) else ()
    data = np.empty((rows, columns, *shape), dtype=object)
    for r, line in enumerate(results):
        for c, value in enumerate(line):
            data[r, c] = value
    return Grid(data)


def _value(result: Any) -> Any:
    """What a library function returned, in exact form."""
    found = exact_value(result)
    return found if not isinstance(found, np.ndarray) or found.dtype == object else _exact(found)


def _of_squares(of: Callable[[Fraction], Fraction], entries: Entries) -> Entries:
    """A function of the sum of the squares of all entries of a value."""
    # whole numbers over one denominator: sums of fractions reduce each
    whole, unit = _whole(entries)
    squares = (whole * whole).sum(axis=tuple(range(2, entries.ndim)))
    return _each_once(lambda one: of(Fraction(one, unit * unit)), squares)


SMALL = 2**28
"""Whole numbers below it, and sums of a few of their squares, are computed with in 64 bits."""


def _whole(entries: Entries) -> tuple[NDArray[Any], int]:
    """Numbers as whole ones, in 64 bits where these are small, over one denominator."""
    values = entries.ravel().tolist()
    unit = lcm(*{one.denominator for one in values})
    whole = [one.numerator * (unit // one.denominator) for one in values]
    small = max(map(abs, whole), default=0) < SMALL and prod(entries.shape[2:]) <= 64
    return np.array(whole, dtype=np.int64 if small else object).reshape(entries.shape), unit


def _each_once(of: Callable[[int], Fraction], whole: NDArray[Any]) -> Entries:
    """A function of whole numbers, worked out once for each different one."""
    found, places = np.unique(whole, return_inverse=True)
    known = np.empty(len(found), dtype=object)
    known[:] = [of(int(one)) for one in found]
    return np.asarray(known[places.reshape(whole.shape)], dtype=object)


def _in_whole_numbers(combine: Callable[[Any, Any], Any], a: Entries, b: Entries) -> Entries | None:
    """Sums or differences of few numbers at many pairs; None where there are not many."""
    if max(a.size, b.size) * 8 > prod(np.broadcast_shapes(a.shape, b.shape)):
        return None
    (first, one), (second, other) = _whole(a), _whole(b)
    unit = lcm(one, other)
    if unit // one >= SMALL or unit // other >= SMALL:
        return None
    whole = combine(first * (unit // one), second * (unit // other))
    return _each_once(lambda value: Fraction(value, unit), whole)


RowLaws: TypeAlias = tuple[Mapping[Symbol, Fraction], ...]
"""For each row the law of a value."""


def drawn_by(model: Model, expr: syntax.Node) -> Drawn | None:
    """How a call draws its value from the votes of an input; None for anything that is computed."""
    if not isinstance(expr, syntax.Call) or not expr.arguments:
        return None
    votes = expr.arguments[0]
    if not isinstance(votes, syntax.Name) or votes.id not in model.nodes or expr.function not in library():
        return None
    try:
        drawn = call_of(model, expr).drawn
    except Failure:
        return None
    return None if drawn is None or drawn.lottery.certain else drawn


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
        if isinstance(expr, syntax.Name) and expr.id in model.nodes and expr.id not in self.scene.bound_variables:
            node = model.nodes[expr.id]
            return None if node.definition is None or node.index is not None else self.law(node.definition)
        drawn = drawn_by(model, expr)
        if drawn is None:
            return None
        if expr not in self._laws:
            assert isinstance(expr, syntax.Call) and isinstance(expr.arguments[0], syntax.Name)
            votes = self.scene.of(expr.arguments[0])
            self._laws[expr] = tuple(drawn.law(votes.value(r, 0)) for r in range(self.rows))  # type: ignore[arg-type]
        return self._laws[expr]

    def random(self, expr: syntax.Node) -> bool:
        """Whether something that is drawn from the data stands in an expression, or in what it is computed from."""
        return bool(self._names(expr)) or any(drawn_by(self.scene.model, node) is not None for node in walk(expr))

    def _names(self, expr: syntax.Node) -> tuple[str, ...]:
        """Variables that are drawn, among those that an expression is computed from."""
        scene = self.scene

        def drawn(name: str) -> bool:
            node = scene.model.nodes.get(name)
            known = node is None or node.definition is None or name in scene.bound_variables
            return not known and self.law(syntax.Name(name)) is not None

        def following(name: str) -> Iterable[str]:
            return () if name in scene.bound_variables or drawn(name) else scene.model.uses(name)

        names = reached(names_used(expr), following)
        return tuple(sorted(filter(drawn, names)))

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
            return self.scene.of(expr)
        values = [tuple(dict.fromkeys(value for one in law for value in one)) for law in known.values()]
        if prod(map(len, values)) > COMBINATIONS:
            raise Failure("PS0515", expr.span, "too many values are drawn from the data at once")
        total: Grid | None = None
        for joint in product(*values):
            chosen = dict(zip(known, joint, strict=True))
            each = ([law.get(v, _NONE) for law in known[n]] for n, v in chosen.items())
            weights = exact_array([prod(row, start=_ONE) for row in zip(*each, strict=True)], (self.rows, 1))
            data = self.scene.given(chosen).of(named).data
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
        return with_children(node, lambda child: self._without_calls(child, calls))


_NONE, _ONE = Fraction(0), Fraction(1)
