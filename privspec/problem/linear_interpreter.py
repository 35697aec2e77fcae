"""Reading expressions as affine values and as sums of squares: the first half of lowering a linear system.

The model says what an expression is; this says how it moves with the inputs, with the outputs that are free,
and with noise at the nodes that are noise sites. What is not of this form raises `UnsupportedError`, with its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from scipy import sparse

from privspec.core.diagnostics import Diagnostic, Label, SpecError
from privspec.core.spans import Source, Span
from privspec.language import syntax
from privspec.language.walk import names_used
from privspec.model.domains import Table, Tables, Type
from privspec.model.evaluate import Environment, Reader, bind_call, evaluate, floats, places, value_type
from privspec.model.graph import Model
from privspec.model.library import Argument, Arguments
from privspec.model.values import Value
from privspec.problem.linear_affine import (
    INPUTS,
    Affine,
    Squares,
    Worst,
    constant,
    constant_symbol,
    noise_symbol,
    output_symbol,
    stack,
)


@dataclass(frozen=True, eq=False, slots=True)
class Cells:
    """A table through its cell counts."""

    counts: Affine
    table: Table


Moving: TypeAlias = Affine | Cells
Reading: TypeAlias = "Moving | Value"


class UnsupportedError(SpecError):
    """A construct that `check` accepts and the compiler cannot compute yet (PS05xx)."""


def unsupported(
    source: Source, span: Span, message: str, code: str = "PS0501", help_: str | None = None
) -> UnsupportedError:
    """The error for something that cannot be computed yet, under its own line."""
    label = (Label(span),) if span.end > span.start else ()
    return UnsupportedError(Diagnostic(code, message, label, help=help_, source=source))


_NOT_EXPRESSIONS = syntax.RangeOf | syntax.Keyword | syntax.Member | syntax.Comprehension


def environment_of(model: Model, local: Mapping[str, Value]) -> Environment:
    """What the model's evaluator needs to know of public values."""
    sizes = {name: party.size for name, party in model.parties.items()}
    return Environment({**model.values, **local}, sizes, Reader(model.base, dict(model.files)))


@dataclass(eq=False)
class Interpreter:
    """Affine values of the nodes of a model.

    `sites` are the nodes at which noise enters: each of them becomes its definition plus a noise symbol.
    Outputs are symbols of their own unless `computed_outputs`, and then those with a definition are computed.
    """

    model: Model
    sites: frozenset[str] = frozenset()
    computed_outputs: bool = False
    _nodes: dict[str, Reading] = field(default_factory=dict)

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
            return self._of_each(node.definition, node.index) if node.index else self.expression(node.definition)
        if is_output:
            return Affine.symbol(output_symbol(name), node.type.shape)
        raise unsupported(self.model.source, span, f"{name} has no definition that solve can compute")

    def _of_each(self, definition: syntax.Expr, party: str) -> Affine:
        """A value that is defined for each member of an index set."""
        members = range(1, self.model.parties[party].size + 1)
        values = [self._affine(definition, {party: Fraction(member)}) for member in members]
        return replace(stack(values), shape=(len(values), *values[0].shape))

    def _input(self, name: str) -> Reading:
        block = next(b for b in self.model.blocks if b.name == name)
        node = self.model.nodes[name]
        width = block.stop - block.start
        if not node.type.numeric and not isinstance(node.type.element, Tables):
            raise unsupported(
                self.model.source, node.span, f"solve cannot compute with {name}, {node.type.describe()}, yet"
            )
        place = sparse.csr_array(
            (np.ones(width), (np.arange(width), np.arange(block.start, block.stop))),
            shape=(width, self.model.size),
        )
        shape = (width,) if isinstance(node.type.element, Tables) else node.type.shape
        value = Affine(shape, np.zeros(width), {INPUTS: place})
        return Cells(value, node.type.element.table) if isinstance(node.type.element, Tables) else value

    # --- expressions -------------------------------------------------------------------------------

    def expression(self, expr: syntax.Expr, local: Mapping[str, Value] | None = None) -> Reading:
        """An expression as an affine value, or as a public value when it depends on nothing secret."""
        bound = dict(local or {})
        if not any(n in self.model.nodes and n not in bound and not self._public(n) for n in names_used(expr)):
            return evaluate(expr, self._environment(bound))
        match expr:
            case syntax.Name():
                return self.node(expr.id, expr.span)
            case syntax.Negate():
                return self._affine(expr.operand, bound).scaled(-1.0)
            case syntax.Binary():
                return self._binary(expr, bound)
            case syntax.Transpose():
                value = self._affine(expr.operand, bound)
                if len(value.shape) < 2:
                    return value
                order = np.arange(value.size).reshape(value.shape).swapaxes(0, 1)
                return value.taken(order.reshape(-1), order.shape)
            case syntax.Index():
                return self._index(expr, bound)
            case syntax.Vector() | syntax.TupleOf():
                items = [self._affine(item, bound) for item in expr.items]
                return replace(stack(items), shape=(len(items), *items[0].shape))
            case syntax.Call():
                return self._call(expr, bound)
            case _:
                raise self._not_linear(expr.span, "this is not linear in the inputs")

    def _public(self, name: str) -> bool:
        return name in self.model.values

    def _environment(self, local: Mapping[str, Value]) -> Environment:
        return environment_of(self.model, local)

    def _not_linear(self, span: Span, message: str) -> UnsupportedError:
        return unsupported(
            self.model.source,
            span,
            f"{message}; solve computes linear systems with squared error so far",
            help_="`privspec check` accepts this spec; see `privspec explain-error PS0501` for what solve computes",
        )

    def _affine(self, expr: syntax.Expr, local: dict[str, Value]) -> Affine:
        return self._as_affine(self.expression(expr, local), expr.span)

    def _as_affine(self, value: Reading, span: Span) -> Affine:
        match value:
            case Affine():
                return value
            case Cells(counts, _):
                return counts
            case Fraction() | np.ndarray():
                return constant(floats(value, span))
            case _:
                raise self._not_linear(span, "numbers are wanted here")

    def _binary(self, expr: syntax.Binary, local: dict[str, Value]) -> Affine:
        left, right = self.expression(expr.left, local), self.expression(expr.right, local)
        if expr.op in "+-":
            sign = 1.0 if expr.op == "+" else -1.0
            return self._as_affine(left, expr.left.span).plus(self._as_affine(right, expr.right.span), sign)
        moving_left, moving_right = isinstance(left, Affine | Cells), isinstance(right, Affine | Cells)
        if moving_left and moving_right:
            self._check_given(left, expr.left.span)
            self._check_given(right, expr.right.span)
            raise self._not_linear(expr.span, "a product of two secret values is not linear")
        match expr.op:
            case "*":
                factor, value, span = (right, left, expr.left.span) if moving_left else (left, right, expr.right.span)
                return self._as_affine(value, span).scaled(self._floats(factor, expr.span))
            case "/" if moving_left:
                return self._as_affine(left, expr.left.span).scaled(1.0 / self._floats(right, expr.right.span))
            case "@":
                return self._product(expr, left, right)
            case _:
                raise self._not_linear(expr.span, f"`{expr.op}` of a secret value is not linear")

    def _floats(self, value: Reading, span: Span) -> np.ndarray:
        self._check_given(value, span)
        if isinstance(value, Affine | Cells):
            raise self._not_linear(span, "a public number is wanted here")
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

    def _product(self, expr: syntax.Binary, left: Reading, right: Reading) -> Affine:
        if isinstance(right, Affine | Cells):
            matrix, value = self._floats(left, expr.left.span), self._as_affine(right, expr.right.span)
            if matrix.ndim == 0 or not value.shape:
                return value.scaled(matrix)
            if len(value.shape) == 1:
                rows = matrix.reshape(1, -1) if matrix.ndim == 1 else matrix
                return value.mapped(matrix.shape[:-1], lambda a: rows @ a, rows)
            return self._by_columns(value, lambda a: np.tensordot(matrix, a, axes=(-1, 0)))
        value, matrix = self._as_affine(left, expr.left.span), self._floats(right, expr.right.span)
        if matrix.ndim == 0 or not value.shape:
            return value.scaled(matrix)
        if len(value.shape) == 1:
            rows = matrix.reshape(-1, 1).T if matrix.ndim == 1 else matrix.T
            shape = () if matrix.ndim == 1 else (matrix.shape[1],)
            return value.mapped(shape, lambda a: rows @ a, rows)
        moved = np.arange(value.size).reshape(value.shape)
        turned = value.taken(moved.T.reshape(-1), moved.T.shape)
        back = self._by_columns(turned, lambda a: np.tensordot(matrix.T, a, axes=(-1, 0)))
        if len(back.shape) < 2:
            return back
        order = np.arange(back.size).reshape(back.shape).T
        return back.taken(order.reshape(-1), order.shape)

    def _by_columns(self, value: Affine, apply: Callable[[np.ndarray], np.ndarray]) -> Affine:
        """A linear function on arrays of this shape, applied to every coefficient column."""
        shape = np.shape(apply(np.zeros(value.shape)))

        def rows(block: np.ndarray) -> np.ndarray:
            image = np.asarray(apply(block.reshape(*value.shape, *block.shape[1:])))
            return image.reshape(-1, *block.shape[1:])

        return value.mapped(shape, rows)

    def _index(self, expr: syntax.Index, local: dict[str, Value]) -> Affine:
        value = self._affine(expr.base, local)
        at: list[int] = []
        for axis, item in enumerate(expr.indices):
            place = self.expression(item, local)
            if not isinstance(place, Fraction) or place.denominator != 1 or axis >= len(value.shape):
                raise self._not_linear(item.span, "a whole number is wanted here")
            if not 1 <= place <= value.shape[axis]:
                raise unsupported(
                    self.model.source,
                    item.span,
                    f"there is no entry {place}: it has {value.shape[axis]}",
                    "PS0209",
                )
            at.append(int(place) - 1)
        taken = np.arange(value.size).reshape(value.shape)[tuple(at)]
        return value.taken(np.asarray(taken).reshape(-1), np.shape(taken))

    # --- calls -------------------------------------------------------------------------------------

    def _call(self, expr: syntax.Call, local: dict[str, Value]) -> Reading:
        positional: list[Argument] = []
        values: list[Reading] = []
        keywords: dict[str, Argument] = {}
        for argument in expr.arguments:
            if isinstance(argument, syntax.Keyword):
                inner = self.expression(argument.value, local)
                keywords[argument.name] = self._argument(inner, argument.span)
            elif isinstance(argument, syntax.Comprehension):
                terms = [
                    self._affine(argument.body, {**local, argument.variable: place})
                    for place in places(argument, self._environment(local))
                ]
                value = replace(stack(terms), shape=(len(terms), *terms[0].shape))
                values.append(value)
                positional.append(Argument(Type(value.shape), None, None, argument.span, iterated=True))
            elif isinstance(argument, syntax.RangeOf | syntax.Member):
                raise self._not_linear(argument.span, "this argument belongs to a domain")
            else:
                values.append(self.expression(argument, local))
                positional.append(self._argument(values[-1], argument.span))
        bound = bind_call(expr, Arguments(tuple(positional), keywords))
        if not bound.linear or len(bound.data) != 1:
            raise self._not_linear(expr.span, f"{expr.function} is not linear")
        return self._by_columns(self._as_affine(values[bound.data[0]], expr.span), bound.apply)

    def _argument(self, value: Reading, span: Span) -> Argument:
        match value:
            case Affine():
                return Argument(Type(value.shape), None, None, span)
            case Cells(_, table):
                return Argument(Type((), Tables(table)), None, table, span)
            case _:
                return Argument(value_type(value), value, None, span)

    # --- losses ------------------------------------------------------------------------------------

    def loss(self, expr: syntax.Expr, local: Mapping[str, Value] | None = None) -> Squares | Worst:
        """A loss as weighted squares, averaged over the noise, or as the worst of several."""
        bound = dict(local or {})
        match expr:
            case syntax.Over(body=body, given=None):
                # the noise is additive and unbiased: its average is the same for every input
                return self.loss(body, bound)
            case syntax.Call(function="max", arguments=(syntax.Comprehension() as over,)):
                members = [
                    self._squares(over.body, {**bound, over.variable: place})
                    for place in places(over, self._environment(bound))
                ]
                return Worst(tuple(members))
            case syntax.Call(function="max"):
                items = [item for item in expr.arguments if not isinstance(item, _NOT_EXPRESSIONS)]
                if len(items) < len(expr.arguments):
                    raise self._not_linear(expr.span, "these arguments of max are no errors")
                return Worst(tuple(self._squares(item, bound) for item in items))
            case _:
                return self._squares(expr, bound)

    def _squares(self, expr: syntax.Expr, local: dict[str, Value]) -> Squares:
        match expr:
            case syntax.Over(body=body, given=None):
                return self._squares(body, local)
            case syntax.Binary(op="+"):
                return self._squares(expr.left, local).plus(self._squares(expr.right, local))
            case syntax.Binary(op="*"):
                return self._weighted(expr.left, expr.right, expr, local)
            case syntax.Binary(op="/"):
                divisor = self._weight(expr.right, local)
                return self._squares(expr.left, local).scaled(1.0 / divisor)
            case syntax.Binary(op="^", right=exponent) if self._is_two(exponent, local):
                return self._square_of(expr.left, local)
            case syntax.Call(function="sum" | "mean", arguments=(syntax.Comprehension() as over,)):
                parts = [
                    self._squares(over.body, {**local, over.variable: place})
                    for place in places(over, self._environment(local))
                ]
                total = Squares.added(parts)
                return total.scaled(1.0 / len(parts)) if expr.function == "mean" else total
            case syntax.Call(function="sum" | "mean", arguments=(inner,)) if not isinstance(inner, _NOT_EXPRESSIONS):
                squares = self._squares(inner, local)
                entries = max(int(np.prod(squares.shape)), 1)
                return squares.total().scaled(1.0 / entries if expr.function == "mean" else 1.0)
            case _:
                raise unsupported(
                    self.model.source,
                    expr.span,
                    "solve computes losses that are sums of squared errors, or the largest of several",
                    "PS0502",
                    "write E[ ||O - y||^2 ], a weighted sum of such terms, or max(E[ (O[j] - y[j])^2 ] for j in 1..m)",
                )

    def _weighted(self, left: syntax.Expr, right: syntax.Expr, expr: syntax.Expr, local: dict[str, Value]) -> Squares:
        if all(self._public(n) or n in local for n in names_used(left)):
            return self._squares(right, local).scaled(self._weight(left, local))
        if all(self._public(n) or n in local for n in names_used(right)):
            return self._squares(left, local).scaled(self._weight(right, local))
        raise self._not_linear(expr.span, "a product of two losses is not a sum of squares")

    def _weight(self, expr: syntax.Expr, local: dict[str, Value]) -> float:
        value = evaluate(expr, self._environment(local))
        if not isinstance(value, Fraction) or value <= 0:
            raise unsupported(self.model.source, expr.span, "a weight of a loss must be a positive number", "PS0503")
        return float(value)

    def _is_two(self, expr: syntax.Expr, local: dict[str, Value]) -> bool:
        return (
            not set(names_used(expr)) - set(local) - set(self.model.parameters)
            and evaluate(expr, self._environment(local)) == 2
        )

    def _square_of(self, base: syntax.Expr, local: dict[str, Value]) -> Squares:
        match base:
            case syntax.Norm(operand=operand, order="2"):
                return Squares.of(self._affine(operand, local)).total()
            case syntax.Absolute(operand=operand):
                return Squares.of(self._affine(operand, local))
            case syntax.Norm():
                raise unsupported(
                    self.model.source,
                    base.span,
                    f"solve cannot compute with the {base.order}-norm here yet",
                    "PS0502",
                )
            case _:
                return Squares.of(self._affine(base, local))
