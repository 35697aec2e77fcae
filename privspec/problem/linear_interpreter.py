"""Reading expressions as affine values and as sums of squares: the first half of lowering a linear system.

The model says what an expression is; this says how it moves with the inputs, with the outputs that are free,
and with noise at the nodes that are noise sites. What is not of this form raises `Failure`, with its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import prod
from typing import TypeAlias, TypeGuard

import numpy as np

from privspec.core.diagnostics import Diagnostic, Label, SpecError
from privspec.core.records import dataclass, field, replace
from privspec.core.spans import Span
from privspec.core.sparse import SparseMatrix, sparse_of
from privspec.language import syntax
from privspec.language.walk import every, names_used
from privspec.model.domains import Interval, Power, Table, Tables, Type
from privspec.model.evaluate import (
    Algebra,
    Environment,
    Unary,
    bind_call,
    evaluate,
    floats,
    places,
    places_in_turn,
    value_type,
)
from privspec.model.graph import Model
from privspec.model.library import Argument, Arguments, Bound, function_of
from privspec.model.reports import COMPUTED, Failure
from privspec.model.targets import environment
from privspec.model.values import Value, joined_length
from privspec.problem.linear_affine import (
    FROM,
    INPUTS,
    MOST,
    Affine,
    Layout,
    MixedError,
    Partition,
    PerUnit,
    Squares,
    UnlikeError,
    Worst,
    constant,
    constant_symbol,
    noise_symbol,
    output_symbol,
    own_symbol,
    stack,
)


@dataclass(frozen=True, eq=False, slots=True)
class Cells:
    """A table through its cell counts."""

    counts: Affine
    table: Table


Moving: TypeAlias = Affine | Cells | PerUnit
Reading: TypeAlias = "Moving | Value"
Binding: TypeAlias = "Value | Member"
"""What the variable of a loop stands for."""
HEAVIEST = Fraction(10) ** 200
"""Weights beyond it, or below its inverse, are not computed with: their squares and inverses are no doubles."""
FOLDED = 64
"""Numbers of a unit up to which a function of all units is read by what it does to their sum."""


@dataclass(frozen=True, eq=False, slots=True)
class Member:
    """A unit of class `kind`, in place of the variable of a loop over units from the place `first` (from 0) on.

    `sources`: which units the body of the loop looks at, in the form of `PerUnit`.
    """

    first: int
    partition: Partition
    kind: int
    sources: set[tuple[str, int, int]]


def _in_rows(values: list[Affine]) -> Affine:
    """Values of one shape, along a new first axis."""
    return replace(stack(values), shape=(len(values), *values[0].shape))


class _SplitLoopError(Exception):
    """The body of a loop is not the same for all places of a class."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        super().__init__("the loop is to be split")


class _CountedLoopError(Exception):
    """The body of a loop uses its variable for more than to take the unit of that place."""


_NOT_EXPRESSIONS = syntax.RangeOf | syntax.Keyword | syntax.Member | syntax.Condition | syntax.Comprehension


@dataclass(eq=False)
class Interpreter(Algebra[Reading]):
    """Affine values of expressions; what depends on nothing secret keeps its public value.

    `sites` are the nodes at which noise enters: each of them becomes its definition plus a noise symbol.
    Outputs are symbols of their own unless `computed_outputs`, and then those with a definition are computed.
    """

    model: Model
    layout: Layout
    sites: frozenset[str] = frozenset()
    computed_outputs: bool = False
    local: Mapping[str, Binding] = field(default_factory=dict)
    """What the variables of loops stand for."""
    _nodes: dict[str, Reading] = field(default_factory=dict)
    _rows: dict[tuple[int, int, int], Partition] = field(default_factory=dict)

    # --- nodes -------------------------------------------------------------------------------------

    def node(self, name: str, span: Span) -> Reading:
        """The value of a variable."""
        if name not in self._nodes:
            self._nodes[name] = self._with_noise(name, self._define(name, span))
        return self._nodes[name]

    def _with_noise(self, name: str, value: Reading) -> Reading:
        if name not in self.sites:
            return value
        match value:
            case Affine():
                return value.plus(Affine.symbol(noise_symbol(name), value.shape))
            case Cells(counts, table):
                return Cells(counts.plus(Affine.symbol(noise_symbol(name), counts.shape)), table)
            case PerUnit(partition, each, sources):
                return PerUnit(partition, each.plus(Affine.symbol(own_symbol(noise_symbol(name)), each.shape)), sources)
            case _:
                return value

    def _define(self, name: str, span: Span) -> Reading:
        node = self.model.nodes[name]
        if node.kind is syntax.VariableKind.INPUT:
            return self._input(name)
        if node.kind is syntax.VariableKind.CONSTANT:
            return Affine.symbol(constant_symbol(name), node.type.shape)
        is_output = node.kind is syntax.VariableKind.OUTPUT
        if node.definition is not None and (self.computed_outputs or not is_output):
            outside = replace(self, local={}) if self.local else self
            return outside._of_each(node.definition, node.index) if node.index else outside.of(node.definition)
        if is_output:
            return Affine.symbol(output_symbol(name), node.type.shape)
        raise Failure("PS0501", span, f"{name} has no definition that solve can compute")

    def _of_each(self, definition: syntax.Expr, party: str) -> Affine | PerUnit:
        """A value that is defined for each member of an index set."""
        members = range(1, self.model.parties[party].size + 1)
        found = self._per_unit(definition, party, members)
        return found or _in_rows([self.bind(party, Fraction(member))._affine(definition) for member in members])

    def _input(self, name: str) -> Reading:
        node = self.model.nodes[name]
        at, share = self.layout.places[name]
        width, block = share.width, self.model.block(name)
        place = SparseMatrix.of((width, self.layout.width), np.arange(width), np.arange(at, at + width), np.ones(width))
        if isinstance(block.domain, Table) and block.tallied:
            return Cells(Affine((width,), np.zeros(width), {INPUTS: place}), block.domain)
        if not node.type.numeric and not isinstance(node.type.element, Tables):
            text = f"solve cannot add noise to {name}, {node.type.describe()}"
            raise Failure("PS0501", node.span, text, help=COMPUTED)
        if share.partition is not None:
            each = Affine((share.partition.number, *node.type.shape[1:]), np.zeros(width), {own_symbol(INPUTS): place})
            return PerUnit(share.partition, each, frozenset({(name, 0, share.partition.size)}))
        # a table at each party: the cells of each
        table = isinstance(node.type.element, Tables)
        shape = (*node.type.shape, width // prod(node.type.shape)) if table else node.type.shape
        value = Affine(shape, np.zeros(width), {INPUTS: place})
        return Cells(value, node.type.element.table) if isinstance(node.type.element, Tables) else value

    # --- expressions -------------------------------------------------------------------------------

    def bind(self, variable: str, place: Binding) -> Interpreter:
        return replace(self, local={**self.local, variable: place})

    @property
    def known(self) -> Environment:
        local = {name: value for name, value in self.local.items() if not isinstance(value, Member)}
        return environment(self.model, local)

    def of(self, expr: syntax.Expr) -> Reading:
        names = names_used(expr)
        if not any(name in self.model.nodes and name not in self.local and not self._public(name) for name in names):
            return evaluate(expr, self._of_one_unit(expr))
        if isinstance(expr, syntax.Norm | syntax.Absolute | syntax.Over | syntax.Attribute):
            return self.refused(expr)  # before its parts are read: their units may have to be told apart
        return super().of(expr)

    def refused(self, expr: syntax.Expr) -> Reading:
        raise self._not_linear(expr.span, "this is not linear in the inputs", expr)

    def constant(self, value: Value) -> Reading:
        return value

    def name(self, expr: syntax.Name) -> Reading:
        return self._whole(self.node(expr.id, expr.span))

    def unary(self, expr: Unary, value: Reading) -> Reading:
        match expr:
            case syntax.Negate():
                return self._scaled(value, np.array(-1.0), expr.operand.span)
            case syntax.Transpose():
                affine = self._as_affine(value, expr.operand.span)
                return affine.transposed() if len(affine.shape) > 1 else affine
        return self.refused(expr)

    def vector(self, expr: syntax.Vector | syntax.TupleOf, items: list[Reading]) -> Reading:
        parts = [self._as_affine(item, written.span) for item, written in zip(items, expr.items, strict=True)]
        joined = joined_length([part.shape for part in parts])
        return stack(parts) if joined else _in_rows(parts)

    @staticmethod
    def _whole(value: Reading) -> Reading:
        """All records of the tables of parties together."""
        if not isinstance(value, Cells) or len(value.counts.shape) == 1:
            return value
        parties, cells = value.counts.shape
        places = np.arange(value.counts.size).reshape(parties, cells)
        total = value.counts.taken(places[0], (cells,))
        for own in places[1:]:
            total = total.plus(value.counts.taken(own, (cells,)))
        return Cells(total, value.table)

    def _public(self, name: str) -> bool:
        return name in self.model.values

    def _not_linear(self, span: Span, message: str, expr: syntax.Expr | None = None) -> Failure:
        text = f"{message}; solve adds noise to linear answers"
        hint = (None if expr is None else self._as_columns(expr)) or (
            "release the linear parts, such as sums, and compute this from them with `output NAME = ...`, which "
            f"costs no privacy; {COMPUTED}"
        )
        return Failure("PS0501", span, text, help=hint)

    def _as_columns(self, expr: syntax.Expr) -> str | None:
        """How numbers are held so that their squares and products add up; None for other inputs."""
        held = [node for node in self.model.inputs if node.name in names_used(expr)]
        domains = [node.domain.base if isinstance(node.domain, Power) else node.domain for node in held]
        if not held or not all(isinstance(one, Interval) and one.bounded for one in domains):
            return None
        described = [one.describe() for one in domains if one is not None]
        if len({node.index for node in held}) == 1 and (index := held[0].index) is not None:
            columns = ", ".join(f"{n.name} in {d}" for n, d in zip(held, described, strict=True))
            row = " * ".join(f"row.{node.name}" for node in held) if len(held) > 1 else f"row.{held[0].name}^2"
            written = f"`input row[{index}] in table({columns})^1`, sum({row})"
            return f"what one {index} holds is added up as columns: {written}"
        other = any(every(expr, syntax.Call)) or (isinstance(expr, syntax.Binary) and expr.op not in ("*", "^"))
        if len(held) > 1 or other or not isinstance(held[0].domain, Power):
            return None
        name, size = held[0].name, prod(held[0].type.shape)
        written = f"`input {name} in table(v in {described[0]})^{size}`, sum({name}.v^2), `one record`"
        return f"squares of a column are added up: {written}"

    def _affine(self, expr: syntax.Expr) -> Affine:
        return self._as_affine(self.of(expr), expr.span)

    def _as_affine(self, value: Reading, span: Span) -> Affine:
        match value:
            case Affine():
                return value
            case Cells(counts, _):
                return counts
            case PerUnit():
                raise value.refuse()
            case Fraction() | np.ndarray():
                return constant(floats(value, span))
            case _:
                raise self._not_linear(span, "numbers are expected here")

    def binary(self, expr: syntax.Binary, left: Reading, right: Reading) -> Reading:
        if expr.op in "+-":
            sign = 1.0 if expr.op == "+" else -1.0
            if isinstance(left, PerUnit):
                other = right if isinstance(right, PerUnit) else self._as_affine(right, expr.right.span)
                return left.plus(other, sign)
            if isinstance(right, PerUnit):
                return right.scaled(np.array(sign)).plus(self._as_affine(left, expr.left.span))
            return self._as_affine(left, expr.left.span).plus(self._as_affine(right, expr.right.span), sign)
        moving_left, moving_right = isinstance(left, Moving), isinstance(right, Moving)
        if moving_left and moving_right:
            self._check_given(left, expr.left.span)
            self._check_given(right, expr.right.span)
            raise self._not_linear(expr.span, "a product of two secret values is not linear", expr)
        match expr.op:
            case "*":
                factor, value, span = (right, left, expr.left.span) if moving_left else (left, right, expr.right.span)
                return self._scaled(value, self._floats(factor, expr.span), span)
            case "/" if moving_left:
                return self._scaled(left, 1.0 / self._floats(right, expr.right.span), expr.left.span)
            case "@":
                return self._product(expr, left, right)
            case _:
                raise self._not_linear(expr.span, f"`{expr.op}` of a secret value is not linear", expr)

    def _scaled(self, value: Reading, factor: np.ndarray, span: Span) -> Affine | PerUnit:
        if isinstance(value, PerUnit):
            return value.scaled(factor)
        return self._as_affine(value, span).scaled(factor)

    def _floats(self, value: Reading, span: Span) -> np.ndarray:
        self._check_given(value, span)
        if isinstance(value, Moving):
            raise self._not_linear(span, "a public number is expected here")
        return floats(value, span)

    def _check_given(self, value: Reading, span: Span) -> None:
        """Constants that shape the answer have their values when it is solved."""
        symbols = value.coefficients if isinstance(value, Affine) else {}
        missing = [node for node in self.model.constants if constant_symbol(node.name) in symbols]
        if missing and INPUTS not in symbols:
            names = " and ".join(node.name for node in missing)
            options = " ".join(f"--constant {node.name}=FILE" for node in missing)
            label = Label(span, "this shapes the answer")
            raise SpecError(
                Diagnostic(
                    "PS0261",
                    f"solve needs the value of {names}: only what is added to a result can be given at `run`",
                    (label, *(Label(node.span, "it has no value here") for node in missing)),
                    help=f"give it with {options}",
                    source=self.model.source,
                )
            )

    def _product(self, expr: syntax.Binary, left: Reading, right: Reading) -> Affine | PerUnit:
        if isinstance(left, PerUnit) or isinstance(right, PerUnit):
            return self._product_per_unit(expr, left, right)
        if isinstance(right, Affine | Cells):
            matrix, value = self._floats(left, expr.left.span), self._as_affine(right, expr.right.span)
            return self._times(matrix, value)
        value, matrix = self._as_affine(left, expr.left.span), self._floats(right, expr.right.span)
        if matrix.ndim == 0 or len(value.shape) < 2:
            return self._times(matrix.T if value.shape else matrix, value)
        back = self._times(matrix.T, value.transposed())
        return back.transposed() if len(back.shape) > 1 else back

    def _times(self, matrix: np.ndarray, value: Affine) -> Affine:
        """A public matrix, vector or number times a value."""
        if matrix.ndim == 0 or not value.shape:
            return value.scaled(matrix)
        if len(value.shape) == 1:
            rows = matrix.reshape(1, -1) if matrix.ndim == 1 else matrix
            return value.mapped(matrix.shape[:-1], lambda a: rows @ a, rows)
        return self._by_columns(value, lambda a: np.tensordot(matrix, a, axes=(-1, 0)))

    def _product_per_unit(self, expr: syntax.Binary, left: Reading, right: Reading) -> Affine | PerUnit:
        """Sums over the units, those of a class with the same weights."""
        if isinstance(right, PerUnit):
            matrix = self._floats(left, expr.left.span)
            return right.total(right.of_constants(np.moveaxis(matrix, -1, 0))) if matrix.ndim else right.scaled(matrix)
        assert isinstance(left, PerUnit)
        matrix = self._floats(right, expr.right.span)
        if matrix.ndim and len(left.shape) > 1:
            raise left.refuse()
        return left.total(left.of_constants(matrix)) if matrix.ndim else left.scaled(matrix)

    def _by_columns(self, value: Affine, apply: Callable[[np.ndarray], np.ndarray]) -> Affine:
        """A linear function on arrays of this shape, applied to every coefficient column."""
        shape = np.shape(apply(np.zeros(value.shape)))

        def rows(block: np.ndarray) -> np.ndarray:
            image = np.asarray(apply(block.reshape(*value.shape, *block.shape[1:])))
            return image.reshape(-1, *block.shape[1:])

        return value.mapped(shape, rows)

    def index(self, expr: syntax.Index) -> Reading:
        held = self.node(expr.base.id, expr.base.span) if self._tables(expr.base) else None
        value, indices = held or self.of(expr.base), expr.indices
        if isinstance(value, PerUnit):
            value, indices = self._unit(value, indices[0]), indices[1:]
        value = self._as_affine(value, expr.base.span)
        at = [
            self._place(item, value.shape[axis] if axis < len(value.shape) else None)
            for axis, item in enumerate(indices)
        ]
        taken = np.arange(value.size).reshape(value.shape)[tuple(at)]
        found = value.taken(np.asarray(taken).reshape(-1), np.shape(taken))
        return Cells(found, held.table) if isinstance(held, Cells) else found

    def _tables(self, expr: syntax.Expr) -> TypeGuard[syntax.Name]:
        """Whether it names an input with a table at each party."""
        node = self.model.nodes.get(expr.id) if isinstance(expr, syntax.Name) else None
        return node is not None and isinstance(node.type.element, Tables) and bool(node.type.shape)

    # --- units that count alike ----------------------------------------------------------------------

    def _per_unit(self, body: syntax.Expr, variable: str, run: range) -> PerUnit | None:
        """What the body of a loop is for each place; None where the places are taken one by one.

        Raises: SplitError, UnlikeError where inputs are in classes that do not serve this loop.
        """
        if self.layout.plain or len(run) < 2 or any(isinstance(value, Member) for value in self.local.values()):
            return None
        partition = Partition.single(len(run))
        while partition.number <= MOST:
            sources: set[tuple[str, int, int]] = set()
            members = [Member(run.start - 1, partition, kind, sources) for kind in range(partition.number)]
            try:
                rows = [self.bind(variable, member)._affine(body) for member in members]
            except _SplitLoopError as error:
                partition = partition.with_(error.partition)
                continue
            except _CountedLoopError:
                if len(run) < FROM:
                    return None
                break
            return PerUnit(partition, _in_rows(rows), frozenset(sources))
        raise UnlikeError([share.name for share in self.layout.shares if share.partition is not None])

    def _unit(self, value: PerUnit, item: syntax.Expr) -> Affine:
        """The value of the unit at a place: a member of a loop, or one that is a class of its own."""
        member = self.local.get(item.id) if isinstance(item, syntax.Name) else None
        alone = not isinstance(member, Member)
        if not isinstance(member, Member):
            member = Member(self._place(item, value.shape[0]), Partition.single(1), 0, set())
        self._check_place(Fraction(member.first + 1), value.shape[0], item.span)
        self._check_place(Fraction(member.first + member.partition.size), value.shape[0], item.span)
        inner, kinds = value.partition.within(member.first, member.partition.size)
        part = PerUnit(inner, value.each, frozenset((n, at + member.first, size) for n, at, size in value.sources))
        if np.any(inner.copies < value.partition.copies[kinds]):
            raise part.split(Partition.single(inner.size))
        both = member.partition.with_(inner)
        if both.number > member.partition.number:
            raise _SplitLoopError(inner)
        if both.number > inner.number:
            raise part.split(member.partition)
        member.sources.update(part.sources)
        unit = value.unit(int(kinds[member.kind]))
        return unit.of_classes() if alone else unit

    def _place(self, item: syntax.Expr, size: int | None) -> int:
        """The place that an index names, counted from 0; `size`: None where there is no such axis."""
        place = self.of(item)
        if not isinstance(place, Fraction) or place.denominator != 1 or size is None:
            raise self._not_linear(item.span, "a whole number is expected here")
        self._check_place(place, size, item.span)
        return int(place) - 1

    def _check_place(self, place: Fraction, size: int, span: Span) -> None:
        if not 1 <= place <= size:
            raise Failure("PS0209", span, f"there is no entry {place}: it has {size}")

    def _of_one_unit(self, expr: syntax.Node | None) -> Environment:
        """What names stand for in a public expression: of a variable of a loop over units, a place of the class.

        Raises: _SplitLoopError if it is not the same for all places of the class, _CountedLoopError if it uses the
            variable for more than to look up entries.
        """
        known = self.known
        if expr is None:
            return known
        loops = {name: self.local.get(name) for name in names_used(expr)}
        members = {name: member for name, member in loops.items() if isinstance(member, Member)}
        for name, member in members.items():
            looked_up = [
                node
                for node in every(expr, syntax.Index)
                if isinstance(node.indices[0], syntax.Name)
                and node.indices[0].id == name
                and name not in names_used(node.base)
            ]
            used = sum(node.id == name for node in every(expr, syntax.Name))
            if used > len(looked_up) or len(members) > 1:
                raise _CountedLoopError
            for node in looked_up:
                wanted = self._equal_rows(node, member)
                if member.partition.with_(wanted).number > member.partition.number:
                    raise _SplitLoopError(wanted)
            known = known.bind(name, Fraction(member.first + 1 + int(member.partition.first[member.kind])))
        return known

    def _equal_rows(self, node: syntax.Index, member: Member) -> Partition:
        """The places of a loop by the entries of a public value that are looked up."""
        key = (id(node), member.first, member.partition.size)
        if key not in self._rows:
            rows = floats(evaluate(node.base, self.known), node.span)
            if not rows.ndim or member.first + member.partition.size > len(rows):
                raise _CountedLoopError
            self._rows[key] = Partition.of_rows(rows[member.first : member.first + member.partition.size])
        return self._rows[key]

    def _folded(self, value: PerUnit, apply: Callable[[np.ndarray], np.ndarray]) -> Affine:
        """A linear function of all units in which their order does not matter, by what it does to their sum."""
        count, inner = value.shape[0], value.shape[1:]
        size = int(np.prod(inner, dtype=int))
        if size > FOLDED:
            raise value.refuse()
        basis = np.broadcast_to(np.eye(size).reshape(*inner, size), (count, *inner, size))
        image = np.asarray(apply(basis), dtype=np.float64) / count
        matrix = image.reshape(-1, size)
        whole = value.total(np.ones(value.partition.number))
        return whole.mapped(image.shape[:-1], lambda rows: matrix @ rows, sparse_of(matrix))

    # --- calls -------------------------------------------------------------------------------------

    def call(self, expr: syntax.Call) -> Reading:
        votes = expr.arguments[0] if len(expr.arguments) == 1 else None
        if not isinstance(votes, syntax.Name) or not function_of(expr).additive:
            return super().call(expr)
        node = self.model.nodes.get(votes.id)
        held = None if node is None or node.kind is not syntax.VariableKind.INPUT else self.node(node.name, votes.span)
        if node is None or node.domain is None or not isinstance(held, Cells):
            return super().call(expr)
        bound = bind_call(expr, Arguments((Argument(node.type, None, node.domain, votes.span),), {}))
        each = [np.asarray(bound.apply([vote]), dtype=np.float64).ravel() for vote in node.domain.elements()]
        matrix = np.column_stack(each)
        return held.counts.mapped(bound.type.shape, lambda counts: matrix @ counts, matrix)

    def terms(self, item: syntax.Comprehension) -> tuple[Argument, Reading]:
        run = places_in_turn(item, self._of_one_unit(item.domain))
        value: Affine | PerUnit | None = None if run is None else self._per_unit(item.body, item.variable, run)
        if value is None:
            value = _in_rows([self.bind(item.variable, place)._affine(item.body) for place in places(item, self.known)])
        return Argument(Type(value.shape), None, None, item.span, iterated=True), value

    def described(self, item: syntax.Argument, value: Reading) -> Argument:
        match value:
            case Affine() | PerUnit():
                return Argument(Type(value.shape), None, None, item.span)
            case Cells(_, table):
                return Argument(Type((), Tables(table)), None, table, item.span)
            case _:
                return Argument(value_type(value), value, None, item.span)

    def applied(self, expr: syntax.Call, bound: Bound, data: list[Reading]) -> Reading:
        if not bound.linear or len(data) != 1:
            raise self._not_linear(expr.span, f"{expr.function} is not linear")
        (moved,) = data
        if isinstance(moved, PerUnit):
            if not function_of(expr).symmetric:
                raise moved.refuse()
            return self._folded(moved, bound.apply)
        affine = self._as_affine(moved, expr.span)
        if bound.matrix is not None:
            return affine.mapped(bound.type.shape, bound.apply, bound.matrix())
        return self._by_columns(affine, bound.apply)

    # --- losses ------------------------------------------------------------------------------------

    def loss(self, expr: syntax.Expr, local: Mapping[str, Binding] | None = None) -> Squares | Worst:
        """A loss as weighted squares or sizes, averaged over the noise, or as the worst of several."""
        try:
            found = replace(self, local=local or {})._loss(expr)
            if isinstance(found, Worst) and len({member.sizes for member in found.members}) > 1:
                raise MixedError
            return found
        except MixedError as error:
            text = "solve takes squares of errors, or sizes of errors, not both in one sum"
            text += ": that is not convex in the noise"
            hint = "write all terms as (O - y)^2, or all as |O - y|"
            raise Failure("PS0502", expr.span, text, help=hint) from error

    def _loss(self, expr: syntax.Expr) -> Squares | Worst:
        match expr:
            case syntax.Over(body=body, given=None):
                # the noise is additive and unbiased: its average is the same for every input
                return self._loss(body)
            case syntax.Call(function="max", arguments=(syntax.Comprehension() as over,)):
                return Worst(tuple(self._each_term(over)))
            case syntax.Call(function="max") if (lopsided := self._lopsided(expr)) is not None:
                return lopsided
            case syntax.Call(function="max"):
                items = [item for item in expr.arguments if not isinstance(item, _NOT_EXPRESSIONS)]
                if len(items) < len(expr.arguments):
                    raise self._not_linear(expr.span, "these arguments of max are no errors")
                return Worst(tuple(self._squares(item) for item in items))
            case _:
                return self._squares(expr)

    def _each_term(self, over: syntax.Comprehension) -> list[Squares]:
        return [self.bind(over.variable, place)._squares(over.body) for place in places(over, self.known)]

    def _squares(self, expr: syntax.Expr) -> Squares:
        match expr:
            case syntax.Over(body=body, given=None):
                return self._squares(body)
            case syntax.Binary(op="+"):
                return self._squares(expr.left).plus(self._squares(expr.right))
            case syntax.Binary(op="*"):
                return self._weighted(expr.left, expr.right, expr)
            case syntax.Binary(op="/"):
                if not self._fixed(expr.right):
                    text = "a loss is divided by public numbers only: by the data, no noise of one size is best"
                    hint = "a law for each value of one count is sought: `input c in 0..60`, `output n in 0..60`, "
                    hint += "under metric privacy (`privspec help metric privacy`)"
                    raise Failure("PS0501", expr.right.span, text, help=hint)
                return self._squares(expr.left).scaled(1.0 / self._weight(expr.right))
            case syntax.Binary(op="^", right=exponent) if self._is_two(exponent):
                return self._square_of(expr.left)
            case syntax.Absolute(operand=operand):
                return Squares.of(self._affine(operand), sizes=True)
            case syntax.Norm(operand=operand, order="1"):
                return Squares.of(self._affine(operand), sizes=True).total()
            case syntax.Norm(operand=operand, order="inf") if (value := self._affine(operand)).size == 1:
                return Squares.of(value, sizes=True).total()
            case syntax.Norm(order="inf"):
                raise Failure(
                    "PS0502",
                    expr.span,
                    "the average of the largest of several normal errors has no closed form, and solve has none",
                    help="write max(E[ |O[j] - y[j]| ] for j in 1..m), the largest of the averages, or "
                    "E[ ||O - y||_1 ]",
                )
            case syntax.Call(function="max") if (lopsided := self._lopsided(expr)) is not None:
                return lopsided
            case syntax.Call(function="sum" | "mean", arguments=(syntax.Comprehension() as over,)):
                parts = self._each_term(over)
                total = Squares.added(parts)
                return total.scaled(1.0 / len(parts)) if expr.function == "mean" else total
            case syntax.Call(function="sum" | "mean", arguments=(inner,)) if not isinstance(inner, _NOT_EXPRESSIONS):
                squares = self._squares(inner)
                entries = max(int(np.prod(squares.shape)), 1)
                return squares.total().scaled(1.0 / entries if expr.function == "mean" else 1.0)
            case _:
                raise Failure(
                    "PS0502",
                    expr.span,
                    "solve computes losses that are sums of squares or of sizes of errors, or the largest of several",
                    help="write E[ ||O - y||^2 ], a weighted sum of such terms, or "
                    "max(E[ (O[j] - y[j])^2 ] for j in 1..m)",
                )

    def _lopsided(self, expr: syntax.Call) -> Squares | None:
        """An error that costs more on one side, max(e, -r e) with r > 0; None of anything else.

        It is (1 + r) / 2 times |e|, and (1 - r) / 2 times e, which is 0 on average where noise is.
        """
        items = [item for item in expr.arguments if not isinstance(item, _NOT_EXPRESSIONS)]
        if len(items) != 2 or len(expr.arguments) != 2:
            return None
        try:
            one, other = map(self._affine, items)
        except Failure:
            return None  # they are errors already, or none
        if one.shape != other.shape:
            return None
        both = stack([one, other])
        parts = (part.toarray() if isinstance(part, SparseMatrix) else part for part in both.coefficients.values())
        rows, against = np.split(np.hstack([*parts, both.offset.reshape(-1, 1)]), 2)
        lengths = np.sum(rows**2, axis=1)
        if not lengths.all():
            return None
        ratios = -np.sum(rows * against, axis=1) / lengths
        if np.any(ratios <= 0) or not np.allclose(against, -ratios[:, None] * rows, rtol=1e-12, atol=0):
            return None
        if any(over.operator == "worst" for over in every(self.model.loss or expr, syntax.Over)):
            text = "an error that costs more on one side is averaged: noise averages to 0"
            raise Failure("PS0502", expr.span, text, help="write E[ ... ] around it")
        size = Squares.of(one, sizes=True)
        return replace(size, weights=(1 + ratios) / 2)

    def _weighted(self, left: syntax.Expr, right: syntax.Expr, expr: syntax.Expr) -> Squares:
        if self._fixed(left):
            return self._squares(right).scaled(self._weight(left))
        if self._fixed(right):
            return self._squares(left).scaled(self._weight(right))
        raise self._not_linear(expr.span, "a product of two losses is not a sum of squares")

    def _fixed(self, expr: syntax.Expr) -> bool:
        return all(self._public(name) or name in self.local for name in names_used(expr))

    def _weight(self, expr: syntax.Expr) -> float:
        value = evaluate(expr, self.known)
        if not isinstance(value, Fraction) or value <= 0:
            raise Failure("PS0503", expr.span, "a weight of a loss must be a positive number")
        if not 1 / HEAVIEST <= value <= HEAVIEST:
            raise Failure("PS0513", expr.span, "this weight is beyond 1e+200 or below 1e-200")
        return float(value)

    def _is_two(self, expr: syntax.Expr) -> bool:
        return (
            not set(names_used(expr)) - set(self.local) - set(self.model.parameters) and evaluate(expr, self.known) == 2
        )

    def _square_of(self, base: syntax.Expr) -> Squares:
        match base:
            case syntax.Norm(operand=operand, order="2"):
                return Squares.of(self._affine(operand)).total()
            case syntax.Absolute(operand=operand):
                return Squares.of(self._affine(operand))
            case syntax.Norm():
                raise Failure(
                    "PS0502",
                    base.span,
                    f"solve cannot compute the square of a {base.order}-norm",
                    help="write ||...||^2, or E[ ||...||_1 ] without the square",
                )
            case _:
                return Squares.of(self._affine(base))
